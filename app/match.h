/* SPDX-License-Identifier: MIT
 * Words looked for in text: each a part of it, letter case aside, nothing an operator. */
#ifndef APP_MATCH_H
#define APP_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/array.h"

#define APP_MATCH_WORDS_MAX 32

/* One character as it is compared: its lower-case code point; an ill-formed byte b is
 * 0x110000 + b, so that it matches itself alone. */
struct app_match_word {
    uint32_t *v;
    size_t n;
    bool plain; /* well-formed and without NUL */
};

struct app_match {
    struct app_match_word words[APP_MATCH_WORDS_MAX];
    size_t n;
};

/* Cut query at white space; words past the limit count as part of the last. PLY_ENOMEM. */
int app_match_init(struct app_match *m, const char *query, size_t len);
void app_match_fini(struct app_match *m);
/* Where a word first stands; false when it does not. */
bool app_match_find(const struct app_match_word *w, const char *text, size_t len, size_t *pos,
                    size_t *match_len);
/* Whether every word stands in text; where the first of query's words does. No word: false. */
bool app_match_all(const struct app_match *m, const char *text, size_t len, size_t *pos,
                   size_t *match_len);
/* Append a query for the trigram index that no text which matches fails; nothing is appended
 * when every word is too short for it. PLY_ENOMEM. */
int app_match_trigrams(const struct app_match *m, struct ply_buf *out);

#endif

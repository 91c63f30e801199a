/* SPDX-License-Identifier: MIT
 * For tests of tokenizers and templates: vocabularies written on the spot, and ids and texts as
 * strings that an assertion can show. */
#ifndef TESTS_TOKUTIL_H
#define TESTS_TOKUTIL_H

#include <stddef.h>
#include <stdint.h>

#include "engine/ply.h"
#include "engine/tok.h"
#include "tests/ggufw.h"
#include "tests/mkvocab.h"

/* One piece as the file spells it. n: its length, 0: strlen. attr 0: PLY_TOK_NORMAL. */
struct tok_piece {
    const char *text;
    int attr;
    float score;
    size_t n;
};

/* The keys of a vocabulary. merges: NULL-terminated, or NULL for SentencePiece ("llama", with
 * scores); pre may be NULL. unk: -1 for none. */
void tok_write(struct ggufw *w, const char *model, const char *pre, const struct tok_piece *pieces,
               uint32_t n, const char *const *merges, int32_t unk);
/* The 256 pieces of single bytes in byte-level BPE's alphabet. Returns 256. */
uint32_t tok_byte_pieces(struct tok_piece *out);

/* Write the file, open it, remove it. */
int tok_open(struct ggufw *w, const char *chat_template, struct ply_vocab **out,
             struct ply_err *err);
/* The same, which must succeed; w is finished with. */
struct ply_vocab *tok_must_open(struct ggufw *w, const char *chat_template);
/* One of tests/mkvocab.h. */
struct ply_vocab *tok_tiny(const struct mkvocab_opts *o, const char *chat_template);
/* A new file's name in a folder for temporary files, to be freed. */
char *tok_tmp_path(void);

/* These results are good until the eighth next call. */
const char *tok_show_ids(const int32_t *ids, size_t n);                          /* "1 2 3" */
const char *tok_enc(const struct ply_vocab *v, const char *text, size_t len);    /* ids */
const char *tok_pieces(const struct ply_vocab *v, const char *text, size_t len); /* "He|llo" */
/* The ids as text, control ids as {piece}: "{<bos>}Hello". */
const char *tok_show(const struct ply_vocab *v, const int32_t *ids, size_t n);

#define assert_ids(v, text, ids) assert_string_equal(tok_enc(v, text, sizeof(text) - 1), ids)
#define assert_pieces(v, text, p) assert_string_equal(tok_pieces(v, text, sizeof(text) - 1), p)

/* A generator of numbers for random tests: the same everywhere. */
uint64_t tok_random(uint64_t *state);
/* A random text of up to max bytes; kind 0: well-formed, with scripts, spaces and line ends;
 * 1: any bytes. Returns the length. */
size_t tok_random_text(uint64_t *state, int kind, char *out, size_t max);

#endif

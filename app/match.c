/* SPDX-License-Identifier: MIT
 * Finding words in text. */
#include "app/match.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/base/err.h"
#include "engine/base/num.h"
#include "engine/base/utf8.h"

/* Trigrams asked of the index per query: it only narrows down, the text decides. */
#define TRIGRAMS_MAX 48

/* The next character of s, folded; returns its length in bytes. */
static size_t
fold_next(const char *s, size_t n, uint32_t *folded)
{
    unsigned char c = (unsigned char)s[0];
    if (c < 0x80) {
        *folded = c >= 'A' && c <= 'Z' ? c + 32u : c;
        return 1;
    }
    uint32_t cp;
    int len = ply_utf8_decode(s, n, &cp);
    if (len < 0) {
        *folded = 0x110000u + c;
        return 1;
    }
    *folded = (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
    return (size_t)len;
}

static bool
is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int
word_init(struct app_match_word *w, const char *s, size_t len)
{
    w->v = calloc(len, sizeof(*w->v));
    if (!w->v)
        return PLY_ENOMEM;
    w->plain = true;
    for (size_t i = 0; i < len;) {
        uint32_t c;
        i += fold_next(s + i, len - i, &c);
        w->v[w->n++] = c;
        w->plain = w->plain && c != 0 && c < 0x110000;
    }
    return PLY_OK;
}

int
app_match_init(struct app_match *m, const char *query, size_t len)
{
    *m = (struct app_match){0};
    size_t i = 0;
    for (;;) {
        while (i < len && is_space(query[i]))
            i++;
        size_t end = i;
        bool last = m->n == APP_MATCH_WORDS_MAX - 1;
        while (end < len && (last || !is_space(query[end])))
            end++;
        if (end == i)
            return PLY_OK;
        if (word_init(&m->words[m->n], query + i, end - i) != 0) {
            app_match_fini(m);
            return PLY_ENOMEM;
        }
        m->n++;
        i = end;
    }
}

void
app_match_fini(struct app_match *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->words[i].v);
    *m = (struct app_match){0};
}

/* The length in bytes of w at the beginning of s; 0 when it does not stand there. */
static size_t
match_here(const struct app_match_word *w, const char *s, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < w->n; i++) {
        uint32_t c;
        if (at == n)
            return 0;
        at += fold_next(s + at, n - at, &c);
        if (c != w->v[i])
            return 0;
    }
    return at;
}

bool
app_match_find(const struct app_match_word *w, const char *text, size_t len, size_t *pos,
               size_t *match_len)
{
    for (size_t i = 0; i < len;) {
        uint32_t c;
        size_t step = fold_next(text + i, len - i, &c);
        if (c == w->v[0]) {
            size_t n = match_here(w, text + i, len - i);
            if (n) {
                *pos = i;
                *match_len = n;
                return true;
            }
        }
        i += step;
    }
    return false;
}

bool
app_match_all(const struct app_match *m, const char *text, size_t len, size_t *pos,
              size_t *match_len)
{
    size_t p, n;
    for (size_t i = 0; i < m->n; i++) {
        if (!app_match_find(&m->words[i], text, len, &p, &n))
            return false;
        if (i == 0) {
            *pos = p;
            *match_len = n;
        }
    }
    return m->n > 0;
}

/* Three characters as a quoted string of the index's language: a '"' in it is doubled. */
static int
trigram_append(struct ply_buf *out, const uint32_t *c)
{
    int rc = ply_buf_append(out, out->n ? " AND \"" : "\"", out->n ? 6 : 1);
    for (size_t i = 0; i < 3 && !rc; i++) {
        char bytes[4];
        int n = ply_utf8_encode(c[i], bytes);
        rc = ply_buf_append(out, bytes, (size_t)n);
        if (!rc && c[i] == '"')
            rc = ply_buf_append(out, bytes, 1);
    }
    return rc ? rc : ply_buf_append(out, "\"", 1);
}

int
app_match_trigrams(const struct app_match *m, struct ply_buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        const struct app_match_word *w = &m->words[i];
        for (size_t j = 0; w->plain && j + 3 <= w->n && n < TRIGRAMS_MAX; j++, n++)
            if (trigram_append(out, w->v + j) != 0)
                return PLY_ENOMEM;
    }
    return PLY_OK;
}

/* SPDX-License-Identifier: MIT
 * The tokenizer of a vocabulary, and what each id stands for in bytes. Ids become bytes here
 * alone, never through a library's decoder: a piece may be part of a character, and only the
 * stream of all pieces makes it whole (tok_stream.c). */
#include "engine/tok.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "engine/base/utf8.h"
#include "engine/tok_impl.h"

#define TEXT_MAX ((size_t)1 << 28) /* bytes encoded by one call: far beyond any context */

struct ply_tok {
    struct ply_pieces pieces;
    size_t longest; /* bytes of the longest piece */
    bool space_prefix;
    bool lossy;        /* bytes may vanish from a text */
    struct ply_sp *sp; /* one of the two */
    struct ply_bpe *bpe;
};

/* ---- pieces in bytes ------------------------------------------------------------------- */

/* U+2581 is a space. Returns the length in out, which has room for s.n. */
static size_t
unescape_spaces(struct ply_str s, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n;) {
        if (s.n - i >= 3 && memcmp(s.s + i, "\xE2\x96\x81", 3) == 0) {
            out[n++] = ' ';
            i += 3;
        } else {
            out[n++] = s.s[i++];
        }
    }
    return n;
}

/* From the alphabet of byte-level BPE. A piece with a character outside of it, which no merge
 * can make, stands for itself. */
static size_t
spell_bytes(struct ply_str s, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        const int len = ply_utf8_decode(s.s + i, s.n - i, &cp);
        const int byte = len < 0 ? -1 : ply_bpe_alphabet(cp);
        if (byte < 0) {
            memcpy(out, s.s, s.n);
            return s.n;
        }
        out[n++] = (char)byte;
        i += (size_t)len;
    }
    return n;
}

/* The bytes of a piece; out has room for its length. */
static size_t
piece_bytes(struct ply_str s, int attr, bool bpe, char *out)
{
    const int byte = attr == PLY_TOK_BYTE ? ply_sp_byte(s) : -1;
    if (byte >= 0) {
        out[0] = (char)byte;
        return 1;
    }
    switch (attr) {
    case PLY_TOK_CONTROL:
    case PLY_TOK_UNKNOWN: return 0;
    case PLY_TOK_USER:
        if (bpe) { /* stored as it is read */
            memcpy(out, s.s, s.n);
            return s.n;
        }
        return unescape_spaces(s, out);
    default: return bpe ? spell_bytes(s, out) : unescape_spaces(s, out);
    }
}

static int
fill_pieces(struct ply_tok *t, const struct ply_tok_src *src, struct ply_err *err)
{
    struct ply_pieces *p = &t->pieces;
    uint64_t total = 0;
    for (uint32_t i = 0; i < src->n; i++)
        total += src->str[i].n;
    if (total > UINT32_MAX)
        return ply_fail(err, PLY_EFORMAT, "the vocabulary's %llu bytes are too many",
                        (unsigned long long)total);
    p->n = src->n;
    p->bytes = malloc((size_t)total + 1);
    p->off = malloc(((size_t)src->n + 1) * sizeof(*p->off));
    p->attr = malloc(src->n);
    if (!p->bytes || !p->off || !p->attr)
        return ply_fail(err, PLY_ENOMEM, "out of memory for %u pieces", src->n);
    memcpy(p->attr, src->attr, src->n);
    size_t at = 0;
    t->longest = 1;
    for (uint32_t i = 0; i < src->n; i++) {
        p->off[i] = (uint32_t)at;
        const size_t n = piece_bytes(src->str[i], src->attr[i], src->bpe, p->bytes + at);
        t->longest = PLY_MAX(t->longest, n);
        at += n;
    }
    p->off[src->n] = (uint32_t)at;
    return PLY_OK;
}

/* ---- open ------------------------------------------------------------------------------ */

int
ply_tok_open(struct ply_tok **out, const struct ply_tok_src *src, struct ply_err *err)
{
    *out = NULL;
    struct ply_tok *t = calloc(1, sizeof(*t));
    if (!t)
        return ply_fail(err, PLY_ENOMEM, "out of memory");
    int rc = fill_pieces(t, src, err);
    if (rc == PLY_OK && src->bpe) {
        rc = ply_bpe_open(&t->bpe, &t->pieces, src, err);
        t->lossy = rc == PLY_OK && ply_bpe_lossy(t->bpe);
    } else if (rc == PLY_OK) {
        rc = ply_sp_open(&t->sp, src, err);
        t->space_prefix = src->space_prefix;
        t->lossy = rc == PLY_OK && (ply_sp_lossy(t->sp) || src->charsmap.n > 0);
    }
    if (rc != PLY_OK)
        ply_tok_close(&t);
    *out = t;
    return rc;
}

void
ply_tok_close(struct ply_tok **tp)
{
    struct ply_tok *t = *tp;
    if (!t)
        return;
    ply_sp_close(&t->sp);
    ply_bpe_close(&t->bpe);
    free(t->pieces.bytes);
    free(t->pieces.off);
    free(t->pieces.attr);
    free(t);
    *tp = NULL;
}

/* ---- use ------------------------------------------------------------------------------- */

uint32_t
ply_tok_n(const struct ply_tok *t)
{
    return t->pieces.n;
}

int
ply_tok_encode(const struct ply_tok *t, const char *text, size_t len, bool begins,
               struct ply_ids *out, struct ply_err *err)
{
    if (len == 0)
        return PLY_OK;
    if (len > TEXT_MAX)
        return ply_fail(err, PLY_EINVAL, "a text of %zu MiB is too long; the limit is %zu MiB",
                        len >> 20, TEXT_MAX >> 20);
    return t->sp ? ply_sp_encode(t->sp, text, len, begins, out, err)
                 : ply_bpe_encode(t->bpe, text, len, out, err);
}

const char *
ply_tok_piece(const struct ply_tok *t, int32_t id, size_t *len)
{
    *len = 0;
    if (id < 0 || (uint32_t)id >= t->pieces.n)
        return "";
    return ply_pieces_at(&t->pieces, id, len);
}

bool
ply_tok_is_control(const struct ply_tok *t, int32_t id)
{
    if (id < 0 || (uint32_t)id >= t->pieces.n)
        return false;
    return t->pieces.attr[id] == PLY_TOK_CONTROL || t->pieces.attr[id] == PLY_TOK_UNKNOWN;
}

bool
ply_tok_space_prefix(const struct ply_tok *t)
{
    return t->space_prefix;
}

size_t
ply_tok_min(const struct ply_tok *t, size_t len)
{
    return t->lossy ? 0 : len / t->longest + (len % t->longest != 0);
}

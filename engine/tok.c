/* SPDX-License-Identifier: MIT
 * A file's vocabulary: which of the two tokenizers reads it, and what each id stands for in
 * bytes. Ids become bytes here alone, never through a library's decoder: a piece may be part
 * of a character, and only the stream of all pieces makes it whole (tok_stream.c).
 *
 * Keys (tokenizer.ggml.*): model "llama" or "gpt2", pre, tokens, scores, token_type, merges,
 * unknown_token_id, add_space_prefix, precompiled_charsmap. */
#include "engine/tok.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/cursor.h"
#include "engine/base/num.h"
#include "engine/base/utf8.h"
#include "engine/tok_impl.h"
#include "engine/tok_proto.h"

#define TOKENS "tokenizer.ggml.tokens"
#define N_MAX (1u << 26)           /* ids; the largest vocabularies have 2^18 */
#define TEXT_MAX ((size_t)1 << 28) /* bytes encoded by one call: far beyond any context */

struct ply_tok {
    char name[64];
    struct ply_pieces pieces;
    size_t longest; /* bytes of the longest piece */
    bool space_prefix;
    bool lossy;        /* bytes may vanish from a text */
    struct ply_sp *sp; /* one of the two */
    struct ply_bpe *bpe;
};

/* ---- from the file --------------------------------------------------------------------- */

/* An array of n numbers of four bytes, if the file has it. */
static int
number_array(const struct ply_gguf *g, const char *key, uint64_t n, struct ply_gguf_arr *out,
             struct ply_err *err)
{
    const int found = ply_gguf_arr(g, key, out, err);
    if (found <= 0)
        return found;
    if (out->type != PLY_GGUF_I32 && out->type != PLY_GGUF_U32 && out->type != PLY_GGUF_F32)
        return ply_fail(err, PLY_EFORMAT, "%s does not hold numbers of 32 bits", key);
    if (out->n != n)
        return ply_fail(err, PLY_EFORMAT, "%s has %llu elements for %llu pieces", key,
                        (unsigned long long)out->n, (unsigned long long)n);
    return 1;
}

static int
read_tokens(const struct ply_gguf *g, struct ply_gguf_arr *out, struct ply_err *err)
{
    const int found = ply_gguf_arr(g, TOKENS, out, err);
    if (found < 0)
        return found;
    if (found == 0 || out->type != PLY_GGUF_STR || out->n == 0)
        return ply_fail(err, PLY_EFORMAT, "the file has no vocabulary (" TOKENS ")");
    if (out->n > N_MAX)
        return ply_fail(err, PLY_EFORMAT, TOKENS ": %llu pieces are too many",
                        (unsigned long long)out->n);
    return PLY_OK;
}

static int
read_attrs(const struct ply_gguf *g, struct ply_tok_src *src, struct ply_err *err)
{
    struct ply_gguf_arr types = {0};
    const int found = number_array(g, "tokenizer.ggml.token_type", src->n, &types, err);
    if (found < 0)
        return found;
    src->attr = malloc(src->n);
    if (!src->attr)
        return ply_fail(err, PLY_ENOMEM, "out of memory for %u pieces", src->n);
    memset(src->attr, PLY_TOK_NORMAL, src->n);
    struct ply_cursor c;
    ply_cursor_init(&c, types.data, found ? (size_t)src->n * 4 : 0);
    for (uint32_t i = 0; found && i < src->n; i++) {
        const uint32_t type = ply_cursor_u32(&c);
        if (types.type == PLY_GGUF_F32 || type > PLY_TOK_BYTE)
            return ply_fail(err, PLY_EFORMAT, "the type of piece %u is not 1 to 6", i);
        if (type != 0) /* 0, undefined, is a normal piece */
            src->attr[i] = (uint8_t)type;
    }
    return PLY_OK;
}

static int
read_scores(const struct ply_gguf *g, struct ply_tok_src *src, struct ply_err *err)
{
    struct ply_gguf_arr scores;
    const int found = number_array(g, "tokenizer.ggml.scores", src->n, &scores, err);
    if (found < 0)
        return found;
    if (found == 0 || scores.type != PLY_GGUF_F32)
        return ply_fail(
            err, PLY_EFORMAT,
            "the vocabulary has no scores (tokenizer.ggml.scores), which SentencePiece needs");
    src->score = malloc((size_t)src->n * sizeof(*src->score));
    if (!src->score)
        return ply_fail(err, PLY_ENOMEM, "out of memory for %u pieces", src->n);
    struct ply_cursor c;
    ply_cursor_init(&c, scores.data, (size_t)src->n * 4);
    for (uint32_t i = 0; i < src->n; i++)
        src->score[i] = ply_cursor_f32(&c);
    return PLY_OK;
}

/* What only SentencePiece reads. */
static int
read_sp_keys(const struct ply_gguf *g, struct ply_tok_src *src, struct ply_err *err)
{
    struct ply_gguf_arr map;
    src->space_prefix = true;
    int rc = ply_gguf_bool(g, "tokenizer.ggml.add_space_prefix", &src->space_prefix, err);
    if (rc >= 0)
        rc = ply_gguf_arr(g, "tokenizer.ggml.precompiled_charsmap", &map, err);
    if (rc < 0)
        return rc;
    if (rc > 0 && (map.type == PLY_GGUF_U8 || map.type == PLY_GGUF_I8))
        src->charsmap = (struct ply_str){(const char *)map.data, (size_t)map.n};
    src->unk = ply_tok_file_id(g, "tokenizer.ggml.unknown_token_id");
    for (uint32_t i = 0; src->unk < 0 && i < src->n; i++) {
        if (src->attr[i] == PLY_TOK_UNKNOWN)
            src->unk = (int32_t)i;
    }
    return read_scores(g, src, err);
}

int32_t
ply_tok_find(const struct ply_gguf *g, const char *piece)
{
    struct ply_gguf_arr arr;
    const size_t len = strlen(piece);
    if (ply_gguf_arr(g, TOKENS, &arr, NULL) <= 0 || arr.type != PLY_GGUF_STR || arr.n > N_MAX)
        return -1;
    for (uint64_t i = 0; i < arr.n; i++) {
        if (arr.str[i].n == len && memcmp(arr.str[i].s, piece, len) == 0)
            return (int32_t)i;
    }
    return -1;
}

enum ply_tok_attr
ply_tok_file_attr(const struct ply_gguf *g, int32_t id)
{
    struct ply_gguf_arr arr;
    if (id < 0 || ply_gguf_arr(g, "tokenizer.ggml.token_type", &arr, NULL) <= 0 ||
        (arr.type != PLY_GGUF_I32 && arr.type != PLY_GGUF_U32) || (uint64_t)id >= arr.n)
        return PLY_TOK_NORMAL;
    struct ply_cursor c;
    ply_cursor_init(&c, arr.data + 4 * (size_t)id, 4);
    return (enum ply_tok_attr)ply_cursor_u32(&c);
}

int32_t
ply_tok_file_id(const struct ply_gguf *g, const char *key)
{
    struct ply_gguf_arr tokens;
    uint64_t id;
    if (ply_gguf_u64(g, key, &id, NULL) <= 0 || ply_gguf_arr(g, TOKENS, &tokens, NULL) <= 0)
        return -1;
    return id < tokens.n && id <= INT32_MAX ? (int32_t)id : -1;
}

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
fill_pieces(struct ply_tok *t, const struct ply_tok_src *src, bool bpe, struct ply_err *err)
{
    struct ply_pieces *p = &t->pieces;
    uint64_t total = 0;
    for (uint32_t i = 0; i < src->n; i++)
        total += src->str[i].n;
    if (total > UINT32_MAX)
        return ply_fail(err, PLY_EFORMAT, TOKENS ": %llu bytes are too many",
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
        const size_t n = piece_bytes(src->str[i], src->attr[i], bpe, p->bytes + at);
        t->longest = PLY_MAX(t->longest, n);
        at += n;
    }
    p->off[src->n] = (uint32_t)at;
    return PLY_OK;
}

/* ---- open ------------------------------------------------------------------------------ */

static int
open_sp(struct ply_tok *t, const struct ply_tok_src *src, struct ply_err *err)
{
    snprintf(t->name, sizeof(t->name), "sentencepiece");
    t->space_prefix = src->space_prefix;
    int rc = fill_pieces(t, src, false, err);
    if (rc == PLY_OK)
        rc = ply_sp_open(&t->sp, src, err);
    if (rc == PLY_OK)
        t->lossy = ply_sp_lossy(t->sp) || src->charsmap.n > 0;
    return rc;
}

static int
open_bpe(struct ply_tok *t, const struct ply_gguf *g, const struct ply_tok_src *src,
         struct ply_err *err)
{
    struct ply_str pre;
    struct ply_gguf_arr merges;
    int rc = ply_gguf_str(g, "tokenizer.ggml.pre", &pre, err);
    if (rc == 0)
        rc = ply_fail(err, PLY_EUNSUPPORTED,
                      "the file does not name its pre-tokenizer (tokenizer.ggml.pre)");
    if (rc > 0)
        rc = ply_gguf_arr(g, "tokenizer.ggml.merges", &merges, err);
    if (rc == 0 || (rc > 0 && merges.type != PLY_GGUF_STR))
        rc = ply_fail(err, PLY_EFORMAT, "the vocabulary has no merges (tokenizer.ggml.merges)");
    if (rc < 0)
        return rc;
    snprintf(t->name, sizeof(t->name), "byte-level BPE (%.*s)", (int)PLY_MIN(pre.n, (size_t)32),
             pre.s);
    rc = fill_pieces(t, src, true, err);
    if (rc == PLY_OK)
        rc = ply_bpe_open(&t->bpe, &t->pieces, &merges, pre, err);
    if (rc == PLY_OK)
        t->lossy = ply_bpe_lossy(t->bpe);
    return rc;
}

static int
open_by_model(struct ply_tok *t, const struct ply_gguf *g, struct ply_tok_src *src,
              struct ply_err *err)
{
    struct ply_str model;
    const int found = ply_gguf_str(g, "tokenizer.ggml.model", &model, err);
    if (found < 0)
        return found;
    if (found == 0)
        return ply_fail(err, PLY_EFORMAT, "the file has no tokenizer (tokenizer.ggml.model)");
    if (model.n == 4 && memcmp(model.s, "gpt2", 4) == 0)
        return open_bpe(t, g, src, err);
    if (model.n == 5 && memcmp(model.s, "llama", 5) == 0) {
        const int rc = read_sp_keys(g, src, err);
        return rc < 0 ? rc : open_sp(t, src, err);
    }
    return ply_fail(err, PLY_EUNSUPPORTED,
                    "unknown tokenizer \"%.*s\"; supported are llama (SentencePiece) and gpt2 "
                    "(byte-level BPE)",
                    (int)PLY_MIN(model.n, (size_t)80), model.s);
}

int
ply_tok_open(struct ply_tok **out, const struct ply_gguf *g, const int32_t *control,
             size_t n_control, struct ply_err *err)
{
    *out = NULL;
    struct ply_gguf_arr tokens;
    int rc = read_tokens(g, &tokens, err);
    if (rc != PLY_OK)
        return rc;
    struct ply_tok_src src = {.n = (uint32_t)tokens.n, .str = tokens.str, .unk = -1};
    struct ply_tok *t = calloc(1, sizeof(*t));
    if (!t)
        return ply_fail(err, PLY_ENOMEM, "out of memory");
    rc = read_attrs(g, &src, err);
    for (size_t i = 0; rc == PLY_OK && i < n_control; i++) {
        if (control[i] >= 0 && (uint32_t)control[i] < src.n)
            src.attr[control[i]] = PLY_TOK_CONTROL;
    }
    if (rc == PLY_OK)
        rc = open_by_model(t, g, &src, err);
    free(src.attr);
    free(src.score);
    if (rc != PLY_OK)
        ply_tok_close(&t);
    *out = t;
    return rc;
}

int
ply_tok_open_model(struct ply_tok **out, const void *bytes, size_t n, struct ply_err *err)
{
    *out = NULL;
    struct ply_proto p;
    int rc = ply_proto_read(&p, bytes, n, err);
    if (rc != PLY_OK)
        return rc;
    struct ply_tok *t = calloc(1, sizeof(*t));
    rc = t ? open_sp(t, &p.src, err) : ply_fail(err, PLY_ENOMEM, "out of memory");
    ply_proto_fini(&p);
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

const char *
ply_tok_name(const struct ply_tok *t)
{
    return t->name;
}

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

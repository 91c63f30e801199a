/* SPDX-License-Identifier: MIT
 * A vocabulary as a file states it: the keys tokenizer.ggml.* of a GGUF (model "llama" or
 * "gpt2", pre, tokens, scores, token_type, merges, bos/eos/unknown_token_id, add_space_prefix,
 * precompiled_charsmap), or the SentencePiece model that lies beside a GGUF without one.
 * Lengths and values are checked here; past this file the tables agree with each other. */
#include "engine/tok.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/cursor.h"
#include "engine/base/num.h"
#include "engine/tok_pre.h"
#include "engine/tok_proto.h"

#define TOKENS "tokenizer.ggml.tokens"
#define N_MAX (1u << 26) /* ids; the largest vocabularies have 2^18 */
#define MODEL_FILE "tokenizer.model"
#define MODEL_FILE_MAX (1l << 28) /* bytes; the largest have 2^22 */

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
read_tokens(const struct ply_gguf *g, struct ply_tok_src *s, struct ply_err *err)
{
    struct ply_gguf_arr arr;
    const int rc = ply_gguf_arr(g, TOKENS, &arr, err);
    if (rc < 0)
        return rc;
    if (arr.type != PLY_GGUF_STR || arr.n == 0 || arr.n > N_MAX)
        return ply_fail(err, PLY_EFORMAT, TOKENS " is not a list of pieces");
    s->n = (uint32_t)arr.n;
    s->str = arr.str;
    return PLY_OK;
}

static int
read_attrs(const struct ply_gguf *g, struct ply_tok_src *s, struct ply_err *err)
{
    struct ply_gguf_arr types = {0};
    const int found = number_array(g, "tokenizer.ggml.token_type", s->n, &types, err);
    if (found < 0)
        return found;
    s->attr = malloc(s->n);
    if (!s->attr)
        return ply_fail(err, PLY_ENOMEM, "out of memory for %u pieces", s->n);
    memset(s->attr, PLY_TOK_NORMAL, s->n);
    struct ply_cursor c;
    ply_cursor_init(&c, types.data, found ? (size_t)s->n * 4 : 0);
    for (uint32_t i = 0; found && i < s->n; i++) {
        const uint32_t type = ply_cursor_u32(&c);
        if (types.type == PLY_GGUF_F32 || type > PLY_TOK_BYTE)
            return ply_fail(err, PLY_EFORMAT, "the type of piece %u is not 1 to 6", i);
        if (type != 0) /* 0, undefined, is a normal piece */
            s->attr[i] = (uint8_t)type;
    }
    return PLY_OK;
}

static int
read_scores(const struct ply_gguf *g, struct ply_tok_src *s, struct ply_err *err)
{
    struct ply_gguf_arr scores;
    const int found = number_array(g, "tokenizer.ggml.scores", s->n, &scores, err);
    if (found < 0)
        return found;
    if (found == 0 || scores.type != PLY_GGUF_F32)
        return ply_fail(err, PLY_EFORMAT, "the vocabulary has no scores (tokenizer.ggml.scores)");
    s->score = malloc((size_t)s->n * sizeof(*s->score));
    if (!s->score)
        return ply_fail(err, PLY_ENOMEM, "out of memory for %u pieces", s->n);
    struct ply_cursor c;
    ply_cursor_init(&c, scores.data, (size_t)s->n * 4);
    for (uint32_t i = 0; i < s->n; i++) {
        s->score[i] = ply_cursor_f32(&c);
        if (isnan(s->score[i]))
            return ply_fail(err, PLY_EFORMAT, "the score of piece %u is not a number", i);
    }
    return PLY_OK;
}

static int
read_sentencepiece(const struct ply_gguf *g, struct ply_tok_src *s, struct ply_err *err)
{
    struct ply_gguf_arr map;
    s->space_prefix = true;
    int rc = ply_gguf_bool(g, "tokenizer.ggml.add_space_prefix", &s->space_prefix, err);
    if (rc >= 0)
        rc = ply_gguf_arr(g, "tokenizer.ggml.precompiled_charsmap", &map, err);
    if (rc < 0)
        return rc;
    if (rc > 0 && (map.type == PLY_GGUF_U8 || map.type == PLY_GGUF_I8))
        s->charsmap = (struct ply_str){(const char *)map.data, (size_t)map.n};
    return read_scores(g, s, err);
}

static int
read_bpe(const struct ply_gguf *g, struct ply_tok_src *s, struct ply_err *err)
{
    enum ply_pre_kind kind;
    s->bpe = true;
    int rc = ply_gguf_str(g, "tokenizer.ggml.pre", &s->pre, err);
    if (rc == 0)
        return ply_fail(err, PLY_EUNSUPPORTED,
                        "the file names no pre-tokenizer (tokenizer.ggml.pre); supported are %s",
                        ply_pre_known());
    if (rc > 0 && !ply_pre_find(s->pre.s, s->pre.n, &kind))
        return ply_fail(err, PLY_EUNSUPPORTED, "unknown pre-tokenizer \"%.*s\"; supported are %s",
                        (int)PLY_MIN(s->pre.n, (size_t)80), s->pre.s, ply_pre_known());
    if (rc > 0)
        rc = ply_gguf_arr(g, "tokenizer.ggml.merges", &s->merges, err);
    if (rc == 0 || (rc > 0 && (s->merges.type != PLY_GGUF_STR || s->merges.n > INT32_MAX / 4)))
        return ply_fail(err, PLY_EFORMAT, "the vocabulary has no merges (tokenizer.ggml.merges)");
    return rc < 0 ? rc : PLY_OK;
}

static int
read_gguf(const struct ply_gguf *g, struct ply_tok_src *s, struct ply_err *err)
{
    struct ply_str model;
    int rc = ply_gguf_str(g, "tokenizer.ggml.model", &model, err);
    if (rc == 0)
        rc = ply_fail(err, PLY_EFORMAT, "the file names no tokenizer (tokenizer.ggml.model)");
    if (rc > 0)
        rc = read_tokens(g, s, err);
    if (rc == PLY_OK)
        rc = read_attrs(g, s, err);
    if (rc != PLY_OK)
        return rc;
    if (model.n == 4 && memcmp(model.s, "gpt2", 4) == 0)
        return read_bpe(g, s, err);
    if (model.n == 5 && memcmp(model.s, "llama", 5) == 0)
        return read_sentencepiece(g, s, err);
    return ply_fail(err, PLY_EUNSUPPORTED,
                    "unknown tokenizer \"%.*s\"; supported are llama (SentencePiece) and gpt2 "
                    "(byte-level BPE)",
                    (int)PLY_MIN(model.n, (size_t)80), model.s);
}

/* ---- tokenizer.model ------------------------------------------------------------------- */

/* Read a whole file; *out is the caller's to free. PLY_ENOENT when there is none. */
static int
read_file(const char *path, char **out, size_t *n, struct ply_err *err)
{
    FILE *f = fopen(path, "rbe");
    if (!f)
        return errno == ENOENT ? PLY_ENOENT
                               : ply_fail(err, PLY_EIO, "%s: %s", path, strerror(errno));
    long size = -1;
    if (fseek(f, 0, SEEK_END) == 0)
        size = ftell(f);
    int rc = PLY_OK;
    char *bytes = NULL;
    if (size < 0 || size > MODEL_FILE_MAX || fseek(f, 0, SEEK_SET) != 0) {
        rc = ply_fail(err, PLY_EIO, "%s: not a SentencePiece model", path);
    } else {
        bytes = malloc((size_t)size + 1);
        if (!bytes)
            rc = ply_fail(err, PLY_ENOMEM, "out of memory for %s", path);
        else if (fread(bytes, 1, (size_t)size, f) != (size_t)size)
            rc = ply_fail(err, PLY_EIO, "%s: %s", path, strerror(errno));
    }
    fclose(f);
    if (rc != PLY_OK) {
        free(bytes);
        return rc;
    }
    *out = bytes;
    *n = (size_t)size;
    return PLY_OK;
}

/* The file of that name in the folder of the GGUF. */
static int
read_beside(const struct ply_gguf *g, struct ply_tok_src *s, struct ply_err *err)
{
    const char *path = ply_gguf_path(g), *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash + 1 - path) : 0;
    const size_t size = (size_t)folder + sizeof(MODEL_FILE);
    char *name = malloc(size), *bytes = NULL;
    size_t n = 0;
    if (!name)
        return ply_fail(err, PLY_ENOMEM, "out of memory");
    snprintf(name, size, "%.*s" MODEL_FILE, folder, path);
    int rc = read_file(name, &bytes, &n, err);
    free(name);
    if (rc == PLY_ENOENT)
        return ply_fail(err, PLY_EFORMAT,
                        "the file has no vocabulary (" TOKENS "), and no " MODEL_FILE
                        " lies beside it");
    if (rc == PLY_OK)
        rc = ply_proto_read(s, bytes, n, err);
    s->own_file = bytes;
    return rc;
}

/* ---- all of it ------------------------------------------------------------------------- */

/* A key that holds an id of the vocabulary. */
static void
read_id(const struct ply_gguf *g, const char *key, uint32_t n, int32_t *out)
{
    uint64_t id;
    if (ply_gguf_u64(g, key, &id, NULL) > 0)
        *out = id < n ? (int32_t)id : -1;
}

int
ply_tok_src_read(struct ply_tok_src *s, const struct ply_gguf *g, struct ply_err *err)
{
    *s = (struct ply_tok_src){.bos = -1, .eos = -1, .unk = -1};
    const int rc = ply_gguf_has(g, TOKENS) ? read_gguf(g, s, err) : read_beside(g, s, err);
    if (rc != PLY_OK) {
        ply_tok_src_fini(s);
        return rc;
    }
    read_id(g, "tokenizer.ggml.bos_token_id", s->n, &s->bos);
    read_id(g, "tokenizer.ggml.eos_token_id", s->n, &s->eos);
    read_id(g, "tokenizer.ggml.unknown_token_id", s->n, &s->unk);
    for (uint32_t i = 0; s->unk < 0 && i < s->n; i++) {
        if (s->attr[i] == PLY_TOK_UNKNOWN)
            s->unk = (int32_t)i;
    }
    return PLY_OK;
}

void
ply_tok_src_fini(struct ply_tok_src *s)
{
    free(s->attr);
    free(s->score);
    free(s->own_str);
    free(s->own_file);
    *s = (struct ply_tok_src){0};
}

int32_t
ply_tok_src_find(const struct ply_tok_src *s, const char *piece)
{
    const size_t len = strlen(piece);
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->str[i].n == len && memcmp(s->str[i].s, piece, len) == 0)
            return (int32_t)i;
    }
    return -1;
}

void
ply_tok_src_name(const struct ply_tok_src *s, char *out, size_t size)
{
    if (s->bpe)
        snprintf(out, size, "byte-level BPE (%.*s)", (int)s->pre.n, s->pre.s);
    else
        snprintf(out, size, "sentencepiece");
}

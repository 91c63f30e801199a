/* SPDX-License-Identifier: MIT
 * The two tokenizers behind one face. A tokenizer encodes user text only: it never yields a
 * control id, not even as a fallback. tok.c chooses by the file's tokenizer.ggml.model. */
#ifndef PLY_TOK_H
#define PLY_TOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/array.h"
#include "engine/base/err.h"
#include "engine/gguf.h"

enum ply_tok_attr {
    PLY_TOK_NORMAL = 1,
    PLY_TOK_UNKNOWN,
    PLY_TOK_CONTROL,
    PLY_TOK_USER,
    PLY_TOK_UNUSED,
    PLY_TOK_BYTE
};

/* A vocabulary as its file states it. What is pointed at lies in the file's mapping. */
struct ply_tok_src {
    bool bpe; /* byte-level BPE, else SentencePiece */
    uint32_t n;
    const struct ply_str *str; /* [n] pieces in the file's spelling */
    uint8_t *attr;             /* [n] enum ply_tok_attr */
    int32_t bos, eos, unk;     /* -1: none */
    /* SentencePiece: */
    float *score;            /* [n] */
    bool space_prefix;       /* text begins with a space that nobody typed */
    struct ply_str charsmap; /* the library's compiled normalisation, usually empty */
    /* BPE: */
    struct ply_str pre;         /* name of the pre-tokenizer */
    struct ply_gguf_arr merges; /* "left right" by rank */
    /* Owned, for ply_tok_src_fini: */
    struct ply_str *own_str;
    void *own_file;
};

/* From g; a file without a vocabulary (no tokenizer.ggml.tokens) takes the tokenizer.model that
 * lies beside it, if there is one. PLY_EFORMAT, PLY_EUNSUPPORTED (names the tokenizer or
 * pre-tokenizer that is not known, and those that are), PLY_EIO, PLY_ENOMEM. */
int ply_tok_src_read(struct ply_tok_src *s, const struct ply_gguf *g, struct ply_err *err);
void ply_tok_src_fini(struct ply_tok_src *s);
/* The id whose stored piece is exactly this text, -1 if none: for the template's markers. */
int32_t ply_tok_src_find(const struct ply_tok_src *s, const char *piece);
/* "sentencepiece", "byte-level BPE (smollm)" */
void ply_tok_src_name(const struct ply_tok_src *s, char *out, size_t size);

struct ply_tok;

/* src->attr is final here: what the template inserts by id has been made CONTROL. src may be
 * given up afterwards. */
int ply_tok_open(struct ply_tok **out, const struct ply_tok_src *src, struct ply_err *err);
void ply_tok_close(struct ply_tok **t);
uint32_t ply_tok_n(const struct ply_tok *t);
/* Append the ids of text: any bytes. begins: it stands at the beginning or after a control id;
 * there, and only there, a vocabulary that puts a space before text does so. On failure out is
 * as it was. */
int ply_tok_encode(const struct ply_tok *t, const char *text, size_t len, bool begins,
                   struct ply_ids *out, struct ply_err *err);
/* The bytes of an id; *len = 0 for control ids and ids out of range. */
const char *ply_tok_piece(const struct ply_tok *t, int32_t id, size_t *len);
bool ply_tok_is_control(const struct ply_tok *t, int32_t id);
/* The vocabulary puts a space before text. */
bool ply_tok_space_prefix(const struct ply_tok *t);
/* The fewest ids that len bytes of text can become. */
size_t ply_tok_min(const struct ply_tok *t, size_t len);

#endif

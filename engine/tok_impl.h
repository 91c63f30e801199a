/* SPDX-License-Identifier: MIT
 * What the tokenizer's files share: the table of pieces, and the two encoders behind tok.c. */
#ifndef PLY_TOK_IMPL_H
#define PLY_TOK_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/array.h"
#include "engine/base/err.h"
#include "engine/gguf.h"
#include "engine/tok.h"

/* What each id stands for, in bytes. */
struct ply_pieces {
    uint32_t n;
    char *bytes;
    uint32_t *off; /* [n + 1] */
    uint8_t *attr; /* [n] */
};

static inline const char *
ply_pieces_at(const struct ply_pieces *p, int32_t id, size_t *len)
{
    *len = p->off[id + 1] - p->off[id];
    return p->bytes + p->off[id];
}

/* ---- byte-level BPE (tok_bpe.c) ---- */

/* The byte that a code point of the vocabulary's alphabet stands for, -1: none. GPT-2's
 * published byte encoder: printable Latin-1 stands for itself, the other 68 bytes, in
 * ascending order, are U+0100 to U+0143. */
int ply_bpe_alphabet(uint32_t cp);

struct ply_bpe;
/* pieces must outlive it. Merges whose pieces are missing or control ids are left out. */
int ply_bpe_open(struct ply_bpe **out, const struct ply_pieces *pieces,
                 const struct ply_tok_src *src, struct ply_err *err);
void ply_bpe_close(struct ply_bpe **b);
int ply_bpe_encode(const struct ply_bpe *b, const char *text, size_t len, struct ply_ids *out,
                   struct ply_err *err);
/* Bytes may vanish from a text, because the vocabulary has neither them nor U+FFFD. */
bool ply_bpe_lossy(const struct ply_bpe *b);

/* ---- SentencePiece (tok_sp.c around tok_spm.cc) ---- */

struct ply_sp;
int ply_sp_open(struct ply_sp **out, const struct ply_tok_src *src, struct ply_err *err);
void ply_sp_close(struct ply_sp **s);
/* begins: the text stands at the beginning or after a control id, where the space is due. */
int ply_sp_encode(const struct ply_sp *s, const char *text, size_t len, bool begins,
                  struct ply_ids *out, struct ply_err *err);
bool ply_sp_lossy(const struct ply_sp *s);
/* "<0x0A>" and its like: the byte, else -1. */
int ply_sp_byte(struct ply_str piece);

#endif

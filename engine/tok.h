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

enum ply_tok_attr { PLY_TOK_NORMAL = 1, PLY_TOK_UNKNOWN, PLY_TOK_CONTROL, PLY_TOK_USER, PLY_TOK_UNUSED, PLY_TOK_BYTE };

struct ply_tok;

/* control/n_control: ids that count as CONTROL whatever the file says (the template's markers).
 * g must outlive the tokenizer. */
int ply_tok_open(struct ply_tok **out, const struct ply_gguf *g, const int32_t *control, size_t n_control,
                 struct ply_err *err);
void ply_tok_close(struct ply_tok **t);
const char *ply_tok_name(const struct ply_tok *t); /* "sentencepiece", "byte-level BPE (smollm)" */
uint32_t ply_tok_n(const struct ply_tok *t);
int ply_tok_encode(const struct ply_tok *t, const char *text, size_t len, struct ply_ids *out,
                   struct ply_err *err);
const char *ply_tok_piece(const struct ply_tok *t, int32_t id, size_t *len);
bool ply_tok_is_control(const struct ply_tok *t, int32_t id);
/* The id whose stored piece is exactly this text, -1 if none: for the template's markers. */
int32_t ply_tok_find(const struct ply_gguf *g, const char *piece);

#endif

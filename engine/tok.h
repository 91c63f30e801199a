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
 * g is not needed any more when this has returned. PLY_EFORMAT, PLY_EUNSUPPORTED (names the
 * tokenizer or pre-tokenizer that is not known, and those that are), PLY_ENOMEM. */
int ply_tok_open(struct ply_tok **out, const struct ply_gguf *g, const int32_t *control, size_t n_control,
                 struct ply_err *err);
/* From the bytes of a SentencePiece tokenizer.model instead. */
int ply_tok_open_model(struct ply_tok **out, const void *bytes, size_t n, struct ply_err *err);
void ply_tok_close(struct ply_tok **t);
const char *ply_tok_name(const struct ply_tok *t); /* "sentencepiece", "byte-level BPE (smollm)" */
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

/* The id whose stored piece is exactly this text, -1 if none: for the template's markers. */
int32_t ply_tok_find(const struct ply_gguf *g, const char *piece);
/* What the file says of an id, PLY_TOK_NORMAL if nothing. */
enum ply_tok_attr ply_tok_file_attr(const struct ply_gguf *g, int32_t id);
/* A key such as tokenizer.ggml.bos_token_id: -1 when it is absent or no id of the vocabulary. */
int32_t ply_tok_file_id(const struct ply_gguf *g, const char *key);

#endif

/* SPDX-License-Identifier: MIT
 * Where a text may be cut so that encoding the parts gives the ids of the whole. A symbol of
 * SentencePiece's BPE is one character or a piece of the vocabulary; where two characters
 * stand side by side in no piece, no symbol ever spans them. The set of pairs that do is kept
 * as hashed bits: a false hit only forbids a cut. Without cuts a long text costs some hundred
 * bytes of memory for each of its own. */
#ifndef PLY_TOK_CUT_H
#define PLY_TOK_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ply_cut {
    uint64_t *bits;
};

int ply_cut_init(struct ply_cut *c);
void ply_cut_fini(struct ply_cut *c);
/* s is well-formed UTF-8; spaces and U+2581 are one character here. */
void ply_cut_add(struct ply_cut *c, const char *s, size_t len);
/* The length of the first part of text, which begins with a well-formed character: it ends at
 * the first cut from `want` bytes on, before a NUL or an ill-formed byte, or with the text. */
size_t ply_cut_part(const struct ply_cut *c, const char *text, size_t len, size_t want);

#endif

/* SPDX-License-Identifier: MIT
 * The SentencePiece library behind a C face: load a serialized ModelProto, encode text. */
#ifndef PLY_TOK_SPM_H
#define PLY_TOK_SPM_H

#include <stddef.h>

#include "engine/base/array.h"
#include "engine/base/err.h"

struct ply_spm;

int ply_spm_open(struct ply_spm **out, const char *model, size_t len, struct ply_err *err);
void ply_spm_close(struct ply_spm **s);
/* text is well-formed UTF-8 without NUL. Several threads may encode at once. */
int ply_spm_encode(const struct ply_spm *s, const char *text, size_t len, struct ply_ids *out,
                   struct ply_err *err);

#endif

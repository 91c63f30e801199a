/* SPDX-License-Identifier: MIT
 * What other parts of the engine may know of a vocab besides ply.h. */
#ifndef PLY_VOCAB_H
#define PLY_VOCAB_H

#include "engine/gguf.h"
#include "engine/ply.h"

/* The file behind it, open as long as the vocab is. */
const struct ply_gguf *ply_vocab_gguf(const struct ply_vocab *v);

#endif

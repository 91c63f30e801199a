/* SPDX-License-Identifier: MIT
 * What other parts of the engine may know of a vocab besides ply.h. */
#ifndef PLY_VOCAB_H
#define PLY_VOCAB_H

#include "engine/gguf.h"
#include "engine/ply.h"

/* The file behind it, open as long as the vocab is. */
const struct ply_gguf *ply_vocab_gguf(const struct ply_vocab *v);

/* ply_vocab_open in two steps, for a caller with something to do meanwhile: building the
 * tables of a large vocabulary takes a few hundred milliseconds. After begin, the file, the
 * info and what concerns the template's text may be used, and the tokenizer is being built
 * on a thread of its own; nothing that takes or yields ids may be called before wait, which
 * returns the outcome. Close may be called at any time. */
int ply_vocab_begin(struct ply_vocab **out, const char *path, const struct ply_vocab_opts *opts,
                    struct ply_err *err);
int ply_vocab_wait(struct ply_vocab *v, struct ply_err *err);

#endif

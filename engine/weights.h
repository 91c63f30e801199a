/* SPDX-License-Identifier: MIT
 * A model's matrices made ready: packed for the integer kernels by all threads, while the file
 * is fingerprinted in the same pass. Matrices without a kernel, and all with precision full,
 * stay as the file has them and go through OpenBLAS. */
#ifndef PLY_WEIGHTS_H
#define PLY_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/matmul.h"
#include "engine/model.h"
#include "engine/pool.h"

struct ply_weights_layer {
    struct ply_mat q, k, v, o, gate, up, down;
};

struct ply_weights {
    struct ply_mat embd, head;        /* embd is only looked up, unless it is the head too */
    struct ply_weights_layer *layers; /* [n_layer] */
    const struct ply_tensor *blas;    /* the first tensor that goes through OpenBLAS, or NULL */
    bool own;                         /* some matrix has an integer kernel */
    uint8_t *mem;                     /* the packed copies */
    uint64_t mem_bytes;
    uint8_t fingerprint[16]; /* XXH3-128 of the file, canonical byte order */
};

/* Bytes that load will take. */
uint64_t ply_weights_bytes(const struct ply_model *m, bool full);
/* m must outlive the weights. On failure w is as after fini. */
int ply_weights_load(struct ply_weights *w, const struct ply_model *m, bool full,
                     struct ply_pool *pool, struct ply_err *err);
void ply_weights_fini(struct ply_weights *w);

#endif

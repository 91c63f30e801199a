/* SPDX-License-Identifier: MIT
 * What an engine is made of: engine.c opens and closes it, seq.c works with it. */
#ifndef PLY_ENGINE_H
#define PLY_ENGINE_H

#include <stdatomic.h>

#include "engine/forward.h"
#include "engine/kv.h"
#include "engine/model.h"
#include "engine/ply.h"
#include "engine/pool.h"
#include "engine/weights.h"

struct ply_engine {
    struct ply_vocab *vocab;
    struct ply_model *model;
    const struct ply_kernels *kern;
    struct ply_pool *pool;
    struct ply_weights weights;
    struct ply_kv *kv;
    struct ply_forward *forward;
    struct ply_engine_opts opts; /* with every default filled in */
    struct ply_info info;        /* texts live in the vocab or below */
    char gemm[64], exact_why[160];
    atomic_bool cancel;

    ply_trace_fn trace;
    void *trace_user;
    size_t n_seqs;    /* alive */
    uint64_t n_evals; /* begun; a sequence remembers the last one it stood in */
    struct ply_item step[PLY_EVAL_TOKS_MAX];         /* of ply_seq_step */
    struct ply_forward_item rows[PLY_EVAL_TOKS_MAX]; /* of ply_eval */
};

#endif

/* SPDX-License-Identifier: MIT
 * A pool of computing threads that run one function together (SPMD) and meet at barriers.
 * The caller is thread 0. Between runs the workers sleep: idle costs nothing. Every thread
 * computes with MXCSR 0x1F80. */
#ifndef PLY_POOL_H
#define PLY_POOL_H

#include "engine/base/err.h"

struct ply_pool;
typedef void (*ply_pool_fn)(void *arg, int ith, int nth);

int ply_pool_new(struct ply_pool **out, int n_threads, struct ply_err *err);
void ply_pool_free(struct ply_pool **p);
int ply_pool_size(const struct ply_pool *p);
/* Run fn(arg, ith, nth) on every thread; returns when all have returned. */
void ply_pool_run(struct ply_pool *p, ply_pool_fn fn, void *arg);
/* Inside fn: wait for all threads; what was written before is seen after. */
void ply_pool_barrier(struct ply_pool *p);

#endif

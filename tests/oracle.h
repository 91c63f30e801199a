/* SPDX-License-Identifier: MIT
 * The oracle: a naive forward pass in double precision that says what the right logits are.
 * No cache, no batches, no threads, no kernels: it shares with the engine only the reading of
 * weights (model.h, quant.h). It can also simulate, in double, the two roundings that the
 * engine commits to (activations to 8 and 12 bits, keys and values to the KV type), so
 * that the engine's own error can be told from the error of its formats. */
#ifndef TESTS_ORACLE_H
#define TESTS_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/model.h"

enum oracle_kv { ORACLE_KV_EXACT, ORACLE_KV_F16, ORACLE_KV_Q8_0 };

/* round_acts: A8 before a layer's matrix, A12 before the head, where the type has a kernel. */
struct oracle_opts {
    bool round_acts;
    enum oracle_kv kv;
};

/* Logits [n_want][n_vocab] after each of the last n_want of ids[0..n); free() them. */
double *oracle_logits(const struct ply_model *m, const int32_t *ids, size_t n, size_t n_want,
                      struct oracle_opts opts);

/* Natural-log probabilities of one row of logits, in place. */
void oracle_log_softmax(double *row, size_t n);

#endif

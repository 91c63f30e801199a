/* SPDX-License-Identifier: MIT
 * The sampler's parts, for itself and its tests; what callers use is in ply.h. */
#ifndef PLY_SAMPLE_H
#define PLY_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/gguf.h"
#include "engine/ply.h"

/* Whether no penalty may touch an id; NULL: none is exempt. */
typedef bool (*ply_exempt_fn)(const void *user, int32_t id);

/* ply_sampler_new for any number of ids. */
int ply_sampler_new_sized(uint32_t n_vocab, ply_exempt_fn exempt, const void *user,
                          struct ply_sampler **out, struct ply_err *err);
/* Uniform in [0, 1), 53 bits, a pure function of its arguments. */
double ply_random(uint64_t seed, uint64_t candidate, uint64_t position);
/* Apply p's penalties to logits[n_vocab] for the ids of context. */
void ply_penalise(struct ply_sampler *s, const struct ply_sampling *p, const int32_t *context,
                  size_t n_context, float *logits);
/* ln(sum(exp(logits))); NaN if a logit is NaN or +inf, -inf if all are -inf. */
double ply_log_sum_exp(const float *logits, size_t n);
/* What g asks for, over the defaults for a model of n_params (0: unknown). */
struct ply_sampling ply_sampling_from(const struct ply_gguf *g, uint64_t n_params);

#endif

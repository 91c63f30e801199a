/* SPDX-License-Identifier: MIT
 * For the tests of engine and sequences: models, ids, and the logits of a cold run. */
#ifndef TEST_ENGUTIL_H
#define TEST_ENGUTIL_H

#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine/ply.h"
#include "engine/seq.h"

/* A generated tiny model (tests/models/meson.build) by its name without ".gguf". Static. */
const char *tiny_path(const char *name);
/* Open or fail the test. */
struct ply_engine *open_model(const char *path, struct ply_engine_opts opts);
struct ply_engine *open_tiny(const char *name, struct ply_engine_opts opts);
/* The file that PLY_TEST_MODEL_S or _G names; NULL when it is unset: skip. */
const char *real_path(char which);

struct ply_seq *new_seq(struct ply_engine *e);
size_t n_vocab(const struct ply_engine *e);
float *new_logits(const struct ply_engine *e, size_t rows); /* free() */

/* n random ids of the vocabulary, always the same for a seed. */
void fill_ids(const struct ply_engine *e, int32_t *ids, size_t n, uint64_t seed);
/* The next number of a fixed generator. */
uint64_t next_random(uint64_t *state);

/* Append n ids in evaluations of at most `chunk`; all their logits are hashed on from h, and kept
 * in logits[n][n_vocab] unless that is NULL. */
uint64_t eval_all(struct ply_seq *s, const int32_t *ids, size_t n, size_t chunk, uint64_t h,
                  float *logits);
/* The hash of all logits of ids in a fresh sequence. */
uint64_t cold_hash(struct ply_engine *e, const int32_t *ids, size_t n);

/* The instruction sets that this build has and this processor runs; *n of them. */
const enum ply_isa *runnable_isas(size_t *n);

#endif

/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/engine/engutil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"

const char *
tiny_path(const char *name)
{
    static char path[1024];
    const char *dir = getenv("PLY_TEST_MODELS");
    if (!dir)
        fail_msg("PLY_TEST_MODELS is not set: run through meson test");
    snprintf(path, sizeof(path), "%s/%s.gguf", dir, name);
    return path;
}

const char *
real_path(char which)
{
    const char *path = getenv(which == 'S' ? "PLY_TEST_MODEL_S" : "PLY_TEST_MODEL_G");
    return path && *path ? path : NULL;
}

struct ply_engine *
open_model(const char *path, struct ply_engine_opts opts)
{
    struct ply_err err = {0};
    struct ply_engine *e;
    if (ply_engine_open(&e, path, &opts, &err) != PLY_OK)
        fail_msg("%s: %s", path, err.msg);
    return e;
}

struct ply_engine *
open_tiny(const char *name, struct ply_engine_opts opts)
{
    return open_model(tiny_path(name), opts);
}

struct ply_seq *
new_seq(struct ply_engine *e)
{
    struct ply_seq *s;
    assert_int_equal(ply_seq_new(e, &s, NULL), PLY_OK);
    return s;
}

size_t
n_vocab(const struct ply_engine *e)
{
    return e->model->hp.n_vocab;
}

float *
new_logits(const struct ply_engine *e, size_t rows)
{
    float *p = malloc(rows * n_vocab(e) * sizeof(*p));
    assert_non_null(p);
    return p;
}

uint64_t
next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

void
fill_ids(const struct ply_engine *e, int32_t *ids, size_t n, uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)(next_random(&state) % n_vocab(e));
}

uint64_t
eval_all(struct ply_seq *s, const int32_t *ids, size_t n, size_t chunk, uint64_t h, float *logits)
{
    float *own = logits ? NULL : new_logits(s->e, PLY_MIN(chunk, n));
    const size_t width = n_vocab(s->e);
    for (size_t at = 0; at < n; at += chunk) {
        const size_t m = PLY_MIN(chunk, n - at);
        float *out = logits ? logits + at * width : own;
        struct ply_item item = {.seq = s, .ids = ids + at, .n_ids = m, .n_want = m, .logits = out};
        struct ply_err err = {0};
        if (ply_eval(s->e, &item, 1, &err) != PLY_OK)
            fail_msg("%s", err.msg);
        h = ply_hash_logits(h, out, m * width);
    }
    free(own);
    return h;
}

uint64_t
cold_hash(struct ply_engine *e, const int32_t *ids, size_t n)
{
    struct ply_seq *s = new_seq(e);
    const uint64_t h = eval_all(s, ids, n, PLY_EVAL_TOKS_MAX, PLY_HASH_SEED, NULL);
    ply_seq_free(&s);
    return h;
}

const enum ply_isa *
runnable_isas(size_t *n)
{
    static enum ply_isa out[3];
    static const enum ply_isa all[] = {PLY_ISA_REF, PLY_ISA_AVX2, PLY_ISA_AVX512};
    *n = 0;
    for (size_t i = 0; i < PLY_COUNT(all); i++)
        if (ply_isa_available(all[i], NULL))
            out[(*n)++] = all[i];
    return out;
}

/* SPDX-License-Identifier: MIT
 * The law and the cases on the real models, which have what tiny ones have not: nine heads in
 * three groups, heads of 256, a window of 512, a vocabulary of 262,144. Cases B39, B41, B46 and
 * B47. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "engine/base/num.h"
#include "tests/engine/engutil.h"
#include "tests/engine/goldutil.h"

static const char *const texts[] = {"prose", "code", "mixed"};
static const char models[] = {'S', 'G'};

static const struct gold *
gold_of(char model, const char *text, const char *kind)
{
    char name[64];
    snprintf(name, sizeof(name), "%c.%s.%s", model == 'S' ? 's' : 'g', text, kind);
    return gold_read(name);
}

static void
need_models(void)
{
    for (size_t m = 0; m < PLY_COUNT(models); m++)
        if (!real_path(models[m]))
            skip();
}

static void
logits_are_the_recorded_ones(void **unused)
{
    static const enum ply_kv_type kv[] = {PLY_KV_F16, PLY_KV_Q8_0};
    need_models();
    for (size_t m = 0; m < PLY_COUNT(models); m++) {
        for (size_t k = 0; k < PLY_COUNT(kv); k++) {
            struct ply_engine *e = open_model(
                real_path(models[m]), (struct ply_engine_opts){.kv_type = kv[k], .n_ctx = 256});
            for (size_t t = 0; t < PLY_COUNT(texts); t++) {
                const struct gold *g = gold_of(models[m], texts[t], "top8");
                char name[64];
                snprintf(name, sizeof(name), "%c-%s", models[m], texts[t]);
                gold_check_hash(name, k ? "q8_0" : "f16", cold_hash(e, g->ids, g->n));
            }
            ply_engine_close(&e);
        }
    }
}

static void
chunks_threads_and_instruction_sets_change_no_bit(void **unused)
{
    static const size_t chunks[] = {512, 64, 7, 1};
    size_t n_isas;
    const enum ply_isa *isas = runnable_isas(&n_isas);
    need_models();
    for (size_t m = 0; m < PLY_COUNT(models); m++) {
        const struct gold *g = gold_of(models[m], "prose", "top8");
        for (size_t i = 0; i < PLY_COUNT(chunks); i++) {
            const struct ply_engine_opts o = {.isa = isas[i % n_isas],
                                              .n_threads = 1 + (int)(i % 3)};
            struct ply_engine *e = open_model(real_path(models[m]), o);
            struct ply_seq *s = new_seq(e);
            const uint64_t h = eval_all(s, g->ids, g->n, chunks[i], PLY_HASH_SEED, NULL);
            gold_check_hash(models[m] == 'S' ? "S-prose" : "G-prose", "f16", h);
            ply_seq_free(&s);
            ply_engine_close(&e);
        }
    }
}

/* n ids: the long text over and over. */
static void
long_ids(char model, int32_t *ids, size_t n)
{
    const struct gold *g = gold_of(model, "long", "top1");
    for (size_t i = 0; i < n; i++)
        ids[i] = i == 0 ? g->ids[0] : g->ids[1 + (i - 1) % (g->n - 1)];
}

/* Greedy ids from here on, `n` of them. */
static void
greedy(struct ply_seq *s, int32_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float *logits = ply_seq_logits(s);
        out[i] = 0;
        for (size_t v = 1; v < n_vocab(s->e); v++)
            out[i] = logits[v] > logits[out[i]] ? (int32_t)v : out[i];
        assert_int_equal(ply_seq_step(&s, &out[i], 1, NULL), PLY_OK);
    }
}

/* B39, B41, B46: after a reply of 40 ids to a prompt of 900, regenerate: one id is evaluated, and
 * the reply is the same. */
static void
regenerating_evaluates_one_id(void **unused)
{
    enum { N = 900, N_REPLY = 40 };
    static int32_t ids[N];
    need_models();
    for (size_t m = 0; m < PLY_COUNT(models); m++) {
        struct ply_engine *e = open_model(real_path(models[m]),
                                          (struct ply_engine_opts){.kv_cache = PLY_KV_CACHE_RAM});
        struct ply_seq *s = new_seq(e);
        int32_t first[N_REPLY], again[N_REPLY];
        long_ids(models[m], ids, N);
        assert_int_equal(ply_seq_sync(s, ids, N, NULL, NULL, NULL), PLY_OK);
        greedy(s, first, N_REPLY);
        for (size_t i = 0; i < 3; i++) {
            struct ply_sync_report r;
            assert_int_equal(ply_seq_sync(s, ids, N, NULL, &r, NULL), PLY_OK);
            assert_int_equal(r.reused_live, N - 1);
            assert_int_equal(r.evaluated, 1);
            greedy(s, again, N_REPLY);
            assert_memory_equal(first, again, sizeof(first));
        }
        ply_seq_free(&s);
        ply_engine_close(&e);
    }
}

/* B47: grown to 1,500 ids, rolled back by little, by much, and by the window and its neighbours. */
static void
rolling_back_past_the_window_is_a_cold_run(void **unused)
{
    enum { N = 1500, N_REPLY = 32 };
    static const size_t back[] = {80, 1400, 511, 512, 513};
    static int32_t ids[N], edited[N];
    need_models();
    struct ply_engine *e =
        open_model(real_path('G'), (struct ply_engine_opts){.kv_cache = PLY_KV_CACHE_RAM});
    struct ply_seq *s = new_seq(e), *cold = new_seq(e);
    long_ids('G', ids, N);
    assert_int_equal(ply_seq_sync(s, ids, N, NULL, NULL, NULL), PLY_OK);
    for (size_t i = 0; i < PLY_COUNT(back); i++) {
        int32_t a[N_REPLY], b[N_REPLY];
        const struct ply_sync_opts all = {.cold = true};
        const size_t n = N - back[i] + 1;
        memcpy(edited, ids, sizeof(ids));
        edited[n - 1] = ids[n - 1] == 1000 ? 1001 : 1000;
        assert_int_equal(ply_seq_sync(s, edited, n, NULL, NULL, NULL), PLY_OK);
        greedy(s, a, N_REPLY);
        assert_int_equal(ply_seq_sync(cold, edited, n, &all, NULL, NULL), PLY_OK);
        greedy(cold, b, N_REPLY);
        assert_memory_equal(a, b, sizeof(a));
        assert_int_equal(ply_seq_sync(s, ids, N, NULL, NULL, NULL), PLY_OK);
    }
    ply_seq_free(&cold);
    ply_seq_free(&s);
    ply_engine_close(&e);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_the_recorded_ones),
        cmocka_unit_test(chunks_threads_and_instruction_sets_change_no_bit),
        cmocka_unit_test(regenerating_evaluates_one_id),
        cmocka_unit_test(rolling_back_past_the_window_is_a_cold_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

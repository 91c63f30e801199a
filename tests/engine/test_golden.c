/* SPDX-License-Identifier: MIT
 * The real models against an independent float32 reference (tests/golden/README.md). |KL8| of a
 * position is |sum over the reference's eight likeliest ids of p (ln p - ln q)|, both normalised
 * over the whole vocabulary; means are over all positions of the three texts. For comparison, the
 * mean of llama.cpp on the same texts is 0.0060 for SmolLM2 and 0.0072 for Gemma. Case B89. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/num.h"
#include "tests/engine/engutil.h"
#include "tests/engine/goldutil.h"
#include "tests/oracle.h"

static const char *const texts[] = {"prose", "code", "mixed"};

static const struct gold *
gold_of(char model, const char *text, const char *kind)
{
    char name[64];
    snprintf(name, sizeof(name), "%c.%s.%s", model == 'S' ? 's' : 'g', text, kind);
    return gold_read(name);
}

static size_t
likeliest(const float *logits, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

struct quality {
    double kl8;  /* mean */
    double top1; /* percent */
    size_t n;
};

static void
add_position(struct quality *q, const struct gold *g, size_t i, const float *logits, size_t n)
{
    double kl = 0;
    const double norm = (double)logits[0] - ply_logprob(logits, n, 0);
    for (size_t k = 0; k < GOLD_TOP; k++)
        kl += exp(g->logprob[i][k]) * (g->logprob[i][k] - ((double)logits[g->top[i][k]] - norm));
    q->kl8 += fabs(kl);
    q->top1 += likeliest(logits, n) == (size_t)g->top[i][0];
    q->n++;
}

static struct quality
measure(char model, struct ply_engine_opts opts)
{
    struct quality q = {0};
    struct ply_engine *e = open_model(real_path(model), opts);
    for (size_t t = 0; t < PLY_COUNT(texts); t++) {
        const struct gold *g = gold_of(model, texts[t], "top8");
        float *logits = new_logits(e, g->n);
        struct ply_seq *s = new_seq(e);
        eval_all(s, g->ids, g->n, PLY_EVAL_TOKS_MAX, 0, logits);
        for (size_t i = 0; i < g->n; i++)
            add_position(&q, g, i, logits + i * n_vocab(e), n_vocab(e));
        ply_seq_free(&s);
        free(logits);
    }
    ply_engine_close(&e);
    q.kl8 /= (double)q.n;
    q.top1 *= 100 / (double)q.n;
    print_message("# %c: mean |KL8| %.6f, top-1 %.2f %% of %zu\n", model, q.kl8, q.top1, q.n);
    return q;
}

/* Within 1.1 times the goal of 0.0055, and at most half a point of top-1 below llama.cpp, which has
 * 97.8 % (SmolLM2) and 94.3 % (Gemma). */
static void
fast(char model, double top1_min)
{
    if (!real_path(model))
        skip();
    const struct quality q = measure(model, (struct ply_engine_opts){0});
    assert_true(q.kl8 <= 1.1 * 0.0055);
    assert_true(q.top1 >= top1_min);
}

static void
fast_is_within_the_goal_on_smollm2(void **unused)
{
    fast('S', 97.8 - 0.5);
}

static void
fast_is_within_the_goal_on_gemma(void **unused)
{
    fast('G', 94.3 - 0.5);
}

static void
full(char model)
{
    if (!real_path(model))
        skip();
    const struct quality q =
        measure(model, (struct ply_engine_opts){.precision = PLY_PRECISION_FULL});
    assert_true(q.kl8 < 0.0002);
    assert_true(q.top1 >= 99);
}

static void
full_is_the_reference_on_smollm2(void **unused)
{
    full('S');
}

static void
full_is_the_reference_on_gemma(void **unused)
{
    full('G');
}

/* The oracle itself: every log-probability to the reference's four decimals and float32's error. */
static void
oracle_is_the_reference(void **unused)
{
    enum { N = 20 };
    static const char names[] = {'S', 'G'};
    for (size_t m = 0; m < PLY_COUNT(names); m++) {
        if (!real_path(names[m]))
            skip();
        struct ply_engine *e =
            open_model(real_path(names[m]), (struct ply_engine_opts){.n_ctx = 64});
        const struct gold *g = gold_of(names[m], "mixed", "top8");
        double *want = oracle_logits(e->model, g->ids, N, N, (struct oracle_opts){0});
        for (size_t i = 0; i < N; i++) {
            double *row = want + i * n_vocab(e);
            oracle_log_softmax(row, n_vocab(e));
            for (size_t k = 0; k < GOLD_TOP; k++)
                assert_true(fabs(row[g->top[i][k]] - g->logprob[i][k]) < 2e-4);
        }
        free(want);
        ply_engine_close(&e);
    }
}

/* B89: a second rope base that is wrong shows only far from the beginning. Agreement with the
 * reference's likeliest id over 600 tokens: at least 94 %, and at positions 301-600 within 2 points
 * of 1-300. */
static void
far_positions_agree_as_near_ones(void **unused)
{
    if (!real_path('G'))
        skip();
    struct ply_engine *e = open_model(real_path('G'), (struct ply_engine_opts){0});
    const struct gold *g = gold_of('G', "long", "top1");
    struct ply_seq *s = new_seq(e);
    float *logits = new_logits(e, PLY_BLOCK_TOKS);
    double same[2] = {0}, all[2] = {0};
    for (size_t at = 0; at < 600; at += PLY_BLOCK_TOKS) {
        const size_t n = PLY_MIN(PLY_BLOCK_TOKS, 600 - at);
        eval_all(s, g->ids + at, n, n, 0, logits);
        for (size_t i = 0; i < n; i++) {
            all[at + i >= 300]++;
            same[at + i >= 300] +=
                likeliest(logits + i * n_vocab(e), n_vocab(e)) == (size_t)g->top[at + i][0];
        }
    }
    const double near = 100 * same[0] / all[0], far = 100 * same[1] / all[1];
    print_message("# top-1 %.1f %% at positions 1-300, %.1f %% at 301-600\n", near, far);
    assert_true(100 * (same[0] + same[1]) / (all[0] + all[1]) >= 94);
    assert_true(far >= near - 2);
    free(logits);
    ply_seq_free(&s);
    ply_engine_close(&e);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oracle_is_the_reference),
        cmocka_unit_test(fast_is_within_the_goal_on_smollm2),
        cmocka_unit_test(fast_is_within_the_goal_on_gemma),
        cmocka_unit_test(full_is_the_reference_on_smollm2),
        cmocka_unit_test(full_is_the_reference_on_gemma),
        cmocka_unit_test(far_positions_agree_as_near_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 * Sampling (cases B79-B84) and what is computed from whole vectors of logits. Frequencies are
 * held to four standard deviations of a binomial count; draws are a fixed function of the
 * numbers given, so a test that passes once passes always. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/num.h"
#include "engine/sample.h"
#include "tests/ggufw.h"

static const struct ply_sampling off = {
    .temp = 1,
    .top_p = 1,
    .repeat_penalty = 1,
    .penalty_window = 64,
};

static struct ply_sampler *
sampler(uint32_t n)
{
    struct ply_sampler *s;
    assert_int_equal(ply_sampler_new_sized(n, NULL, NULL, &s, NULL), 0);
    return s;
}

static int32_t
draw(struct ply_sampler *s, const float *logits, const struct ply_sampling *p, uint64_t position)
{
    struct ply_err err = {0};
    int32_t id = -1;
    if (ply_sample(s, logits, p, NULL, 0, 0, position, &id, &err) != 0)
        fail_msg("%s", err.msg);
    return id;
}

/* Draw n times and compare each id's count with its probability: within `sigmas` deviations where
 * enough is expected for a count to be nearly normal; what is impossible must not come. */
static void
expect_frequencies(struct ply_sampler *s, const float *logits, const struct ply_sampling *p,
                   const double *prob, size_t n_ids, unsigned n, double sigmas)
{
    unsigned *count = calloc(n_ids, sizeof(*count));
    assert_non_null(count);
    for (unsigned i = 0; i < n; i++) {
        const int32_t id = draw(s, logits, p, i);
        assert_in_range(id, 0, n_ids - 1);
        count[id]++;
    }
    for (size_t i = 0; i < n_ids; i++) {
        const double mean = n * prob[i], dev = sqrt(n * prob[i] * (1 - prob[i]));
        if (prob[i] == 0 ? count[i] > 0 : mean >= 5 && fabs(count[i] - mean) > sigmas * dev)
            fail_msg("id %zu came %u times, expected %.1f +- %.1f", i, count[i], mean, dev);
    }
    free(count);
}

static void
softmax(const float *logits, size_t n, double temp, double *prob)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += prob[i] = exp((double)logits[i] / temp);
    for (size_t i = 0; i < n; i++)
        prob[i] /= sum;
}

/* ---- temperature and top-k ------------------------------------------------------------- */

static const float four[4] = {1.0f, 3.0f, 2.0f, -5.0f};

/* B79 */
static void
no_temperature_is_too_low(void **state)
{
    static const float temps[] = {0.0f, 1e-6f, 1e-30f, 1e-45f};
    struct ply_sampler *s = sampler(4);
    for (size_t i = 0; i < PLY_COUNT(temps); i++) {
        struct ply_sampling p = off;
        p.temp = temps[i];
        for (uint64_t pos = 0; pos < 100; pos++)
            assert_int_equal(draw(s, four, &p, pos), 1);
    }
    ply_sampler_free(&s);
}

/* B79: refused with a message that names value and range. */
static void
settings_are_checked(void **state)
{
    static const struct {
        size_t at;
        float v;
        const char *text;
    } rows[] = {
        {offsetof(struct ply_sampling, temp), -1,
         "temperature must be a number from 0 to 100, not -1"},
        {offsetof(struct ply_sampling, temp), NAN, "temperature"},
        {offsetof(struct ply_sampling, temp), INFINITY, "temperature"},
        {offsetof(struct ply_sampling, top_p), 1.5f, "top-p must be a number from 0 to 1, not 1.5"},
        {offsetof(struct ply_sampling, top_p), -0.1f, "top-p"},
        {offsetof(struct ply_sampling, min_p), NAN, "min-p"},
        {offsetof(struct ply_sampling, repeat_penalty), 0, "repeat penalty"},
        {offsetof(struct ply_sampling, repeat_penalty), INFINITY, "repeat penalty"},
        {offsetof(struct ply_sampling, presence_penalty), NAN, "presence penalty"},
        {offsetof(struct ply_sampling, frequency_penalty), -INFINITY, "frequency penalty"},
    };
    for (size_t i = 0; i < PLY_COUNT(rows); i++) {
        struct ply_sampling p = off;
        struct ply_err err = {0};
        memcpy((char *)&p + rows[i].at, &rows[i].v, sizeof(float));
        assert_int_equal(ply_sampling_check(&p, &err), PLY_EINVAL);
        assert_non_null(strstr(err.msg, rows[i].text));
        struct ply_sampler *s = sampler(4);
        int32_t id;
        assert_int_equal(ply_sample(s, four, &p, NULL, 0, 0, 0, &id, NULL), PLY_EINVAL);
        ply_sampler_free(&s);
    }
    struct ply_sampling p = off;
    p.top_k = -1;
    assert_int_equal(ply_sampling_check(&p, NULL), PLY_EINVAL);
    p = off;
    p.penalty_window = -1;
    assert_int_equal(ply_sampling_check(&p, NULL), PLY_EINVAL);
    assert_int_equal(ply_sampling_check(&off, NULL), 0);
}

/* B80 */
static void
top_k_zero_is_off(void **state)
{
    static const int ks[] = {0, 4, 5, 1000000000};
    struct ply_sampler *s = sampler(4);
    struct ply_sampling p = off;
    double prob[4];
    p.temp = 1.5f;
    softmax(four, 4, 1.5, prob);
    for (size_t i = 0; i < PLY_COUNT(ks); i++) {
        p.top_k = ks[i];
        expect_frequencies(s, four, &p, prob, 4, 2000, 4);
    }
    /* The row asks that each of the four occurs; the rarest has a probability of 0.3 %. */
    unsigned seen = 0;
    for (uint64_t pos = 0; pos < 2000; pos++)
        seen |= 1u << draw(s, four, &p, pos);
    assert_int_equal(seen, 15);
    p.top_k = 1;
    for (uint64_t pos = 0; pos < 100; pos++)
        assert_int_equal(draw(s, four, &p, pos), 1);
    p.top_k = 2;
    softmax((float[]){3, 2}, 2, 1.5, prob);
    expect_frequencies(s, four, &p, (double[]){0, prob[0], prob[1], 0}, 4, 2000, 4);
    ply_sampler_free(&s);
}

/* ---- top-p and min-p ------------------------------------------------------------------- */

/* Which ids can come at all, as bits. */
static unsigned
support(struct ply_sampler *s, const float *logits, const struct ply_sampling *p)
{
    unsigned seen = 0;
    for (uint64_t pos = 0; pos < 4000; pos++)
        seen |= 1u << draw(s, logits, p, pos);
    return seen;
}

/* B81: probabilities 1/2, 1/4, 1/8, 1/8. Through the list that top-k makes and without it. */
static void
top_p_keeps_the_fewest_that_reach_it(void **state)
{
    static const struct {
        float p;
        unsigned keeps;
    } rows[] = {{0, 1},     {0.25f, 1},  {0.5f, 1},  {0.51f, 3}, {0.75f, 3},
                {0.76f, 7}, {0.875f, 7}, {0.9f, 15}, {1, 15}};
    const float logits[5] = {logf(0.5f), logf(0.25f), logf(0.125f), logf(0.125f), -INFINITY};
    struct ply_sampler *s = sampler(5);
    for (size_t i = 0; i < PLY_COUNT(rows); i++) {
        struct ply_sampling p = off;
        p.top_p = rows[i].p;
        assert_int_equal(support(s, logits, &p), rows[i].keeps);
        p.top_k = 4; /* nothing that is possible is cut, but the list is made another way */
        assert_int_equal(support(s, logits, &p), rows[i].keeps);
    }
    ply_sampler_free(&s);
}

/* After top-k the probabilities are those of the ids that are left. */
static void
top_p_counts_what_top_k_left(void **state)
{
    const float logits[4] = {logf(0.5f), logf(0.25f), logf(0.125f), logf(0.125f)};
    struct ply_sampler *s = sampler(4);
    struct ply_sampling p = off;
    p.top_k = 2; /* 2/3 and 1/3 */
    p.top_p = 0.6f;
    assert_int_equal(support(s, logits, &p), 1);
    p.top_p = 0.7f;
    assert_int_equal(support(s, logits, &p), 3);
    ply_sampler_free(&s);
}

/* B81 */
static void
top_p_one_keeps_a_uniform_vocabulary(void **state)
{
    const uint32_t n = 49152;
    float *logits = calloc(n, sizeof(*logits));
    uint8_t *seen = calloc(n, 1);
    struct ply_sampler *s = sampler(n);
    unsigned n_seen = 0;
    assert_true(logits && seen);
    for (uint64_t pos = 0; pos < 2000; pos++)
        seen[draw(s, logits, &off, pos)] = 1;
    for (uint32_t i = 0; i < n; i++)
        n_seen += seen[i];
    /* 2000 draws from 49152: 1960 different ones on average, 6 standard deviation. */
    assert_in_range(n_seen, 1936, 1984);
    free(logits);
    free(seen);
    ply_sampler_free(&s);
}

/* B81: min_p 1 keeps at least the best. */
static void
min_p_is_relative_to_the_best(void **state)
{
    static const struct {
        float p;
        unsigned keeps;
    } rows[] = {{0, 15}, {0.24f, 15}, {0.26f, 3}, {0.49f, 3}, {0.51f, 1}, {1, 1}};
    static const int ks[] = {0, 3, 4};
    const float logits[4] = {logf(0.5f), logf(0.25f), logf(0.125f), logf(0.125f)};
    struct ply_sampler *s = sampler(4);
    for (size_t i = 0; i < PLY_COUNT(rows); i++) {
        for (size_t k = 0; k < PLY_COUNT(ks); k++) {
            struct ply_sampling p = off;
            p.min_p = rows[i].p;
            p.top_k = ks[k];
            assert_int_equal(support(s, logits, &p),
                             ks[k] == 3 ? rows[i].keeps & 7 : rows[i].keeps);
        }
    }
    ply_sampler_free(&s);
}

/* Both cuts look at the distribution before temperature. */
static void
temperature_comes_last(void **state)
{
    const float logits[4] = {logf(0.5f), logf(0.25f), logf(0.125f), logf(0.125f)};
    struct ply_sampler *s = sampler(4);
    struct ply_sampling p = off;
    p.temp = 50;
    p.top_p = 0.75f;
    assert_int_equal(support(s, logits, &p), 3);
    p.top_p = 1;
    p.min_p = 0.3f;
    assert_int_equal(support(s, logits, &p), 3);
    ply_sampler_free(&s);
}

/* A plain implementation: sort everything, cut, normalise. */
struct ref {
    int32_t id;
    float logit;
};

static int
ref_cmp(const void *a, const void *b)
{
    const struct ref *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit < y->logit ? 1 : -1;
    return x->id - y->id;
}

static size_t
ref_cut(struct ref *r, size_t n, const struct ply_sampling *p)
{
    qsort(r, n, sizeof(*r), ref_cmp);
    while (n > 0 && r[n - 1].logit == -INFINITY)
        n--;
    if (p->top_k > 0 && (size_t)p->top_k < n)
        n = (size_t)p->top_k;
    double sum = 0, acc = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)r[i].logit - (double)r[0].logit);
    size_t keep = 0;
    while (keep < n && (keep == 0 || (p->top_p >= 1 || acc < (double)p->top_p * sum)) &&
           (p->min_p <= 0 || exp((double)r[keep].logit - (double)r[0].logit) >= (double)p->min_p)) {
        acc += exp((double)r[keep].logit - (double)r[0].logit);
        keep++;
    }
    return keep;
}

static void
cuts_equal_a_plain_implementation(void **state)
{
    static const int ks[] = {0, 2, 7, 40, 199};
    static const float ps[] = {1, 0.97f, 0.6f, 0.11f};
    static const float ms[] = {0, 0.013f, 0.3f};
    enum { N = 200 };
    struct ply_sampler *s = sampler(N);
    float logits[N];
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < N; i++) {
            logits[i] = (float)(ply_random(round, 1, i) * 8);
            if (round == 1)
                logits[i] = floorf(logits[i]); /* many ties */
            if (round == 2 && i % 3 == 0)
                logits[i] = -INFINITY;
        }
        for (size_t c = 0; c < PLY_COUNT(ks) * PLY_COUNT(ps) * PLY_COUNT(ms); c++) {
            struct ply_sampling p = off;
            struct ref r[N];
            double prob[N] = {0}, sum = 0;
            p.top_k = ks[c % PLY_COUNT(ks)];
            p.top_p = ps[c / PLY_COUNT(ks) % PLY_COUNT(ps)];
            p.min_p = ms[c / PLY_COUNT(ks) / PLY_COUNT(ps)];
            p.temp = 0.8f;
            for (unsigned i = 0; i < N; i++)
                r[i] = (struct ref){(int32_t)i, logits[i]};
            const size_t n = ref_cut(r, N, &p);
            for (size_t i = 0; i < n; i++)
                sum += prob[r[i].id] = exp((double)r[i].logit / (double)p.temp);
            for (unsigned i = 0; i < N; i++)
                prob[i] /= sum;
            /* Thousands of counts are compared here, so five deviations. */
            expect_frequencies(s, logits, &p, prob, N, 1000, 5);
        }
    }
    ply_sampler_free(&s);
}

/* ---- penalties ------------------------------------------------------------------------- */

/* B82 */
static void
a_penalty_never_rewards(void **state)
{
    const int32_t seen[] = {0, 2};
    struct ply_sampler *s = sampler(3);
    struct ply_sampling p = off;
    float logits[3] = {-1, -2, 3};
    p.repeat_penalty = 1.5f;
    ply_penalise(s, &p, seen, 2, logits);
    assert_true(logits[0] == -1.5f && logits[1] == -2 && logits[2] == 2);
    float zero[3] = {0, 0, 0};
    ply_penalise(s, &p, seen, 2, zero);
    assert_true(zero[0] == 0 && zero[1] == 0 && zero[2] == 0);
    p.repeat_penalty = 1;
    float same[3] = {-1, -2, 3};
    ply_penalise(s, &p, seen, 2, same);
    assert_true(same[0] == -1 && same[1] == -2 && same[2] == 3);
    ply_sampler_free(&s);
}

static void
presence_counts_once_frequency_each_time(void **state)
{
    const int32_t seen[] = {1, 0, 1, 1};
    struct ply_sampler *s = sampler(3);
    struct ply_sampling p = off;
    float logits[3] = {5, 5, 5};
    p.presence_penalty = 0.5f;
    p.frequency_penalty = 0.25f;
    ply_penalise(s, &p, seen, 4, logits);
    assert_true(logits[0] == 4.25f && logits[1] == 3.75f && logits[2] == 5);
    /* Nothing of that is remembered. */
    float again[3] = {5, 5, 5};
    ply_penalise(s, &p, seen + 1, 1, again);
    assert_true(again[0] == 4.25f && again[1] == 5 && again[2] == 5);
    ply_sampler_free(&s);
}

static void
the_repeat_penalty_comes_before_the_others(void **state)
{
    const int32_t seen[] = {0};
    struct ply_sampler *s = sampler(1);
    struct ply_sampling p = off;
    float logits[1] = {4};
    p.repeat_penalty = 2;
    p.presence_penalty = 1;
    ply_penalise(s, &p, seen, 1, logits);
    assert_true(logits[0] == 1);
    ply_sampler_free(&s);
}

static bool
is_two(const void *user, int32_t id)
{
    return id == *(const int32_t *)user;
}

/* B83: control ids are not penalised and take no room in the window. */
static void
the_window_skips_exempt_ids(void **state)
{
    const int32_t two = 2;
    const int32_t context[] = {0, 1, 2, 2, 2, 3, 2};
    struct ply_sampler *s;
    struct ply_sampling p = off;
    float logits[4] = {1, 1, 1, 1};
    assert_int_equal(ply_sampler_new_sized(4, is_two, &two, &s, NULL), 0);
    p.presence_penalty = 1;
    p.penalty_window = 2;
    ply_penalise(s, &p, context, PLY_COUNT(context), logits);
    assert_true(logits[0] == 1 && logits[1] == 0 && logits[2] == 1 && logits[3] == 0);
    p.penalty_window = 0;
    float same[4] = {1, 1, 1, 1};
    ply_penalise(s, &p, context, PLY_COUNT(context), same);
    assert_true(same[1] == 1 && same[3] == 1);
    ply_sampler_free(&s);
}

static void
ids_out_of_range_do_no_harm(void **state)
{
    const int32_t context[] = {-1, 5, INT32_MAX, INT32_MIN, 1};
    struct ply_sampler *s = sampler(3);
    struct ply_sampling p = off;
    float logits[3] = {1, 1, 1};
    p.presence_penalty = 1;
    ply_penalise(s, &p, context, PLY_COUNT(context), logits);
    assert_true(logits[0] == 1 && logits[1] == 0 && logits[2] == 1);
    ply_sampler_free(&s);
}

static void
penalties_change_what_greedy_takes(void **state)
{
    const int32_t seen[] = {1, 1};
    struct ply_sampler *s = sampler(4);
    struct ply_sampling p = off;
    int32_t id;
    p.temp = 0;
    p.frequency_penalty = 0.75f;
    assert_int_equal(ply_sample(s, four, &p, seen, 2, 0, 0, &id, NULL), 0);
    assert_int_equal(id, 2); /* 3 - 1.5 < 2 */
    assert_int_equal(ply_sample(s, four, &p, NULL, 0, 0, 0, &id, NULL), 0);
    assert_int_equal(id, 1);
    ply_sampler_free(&s);
}

/* ---- numbers that are none ------------------------------------------------------------- */

/* B84 */
static void
logits_that_are_no_numbers_are_errors(void **state)
{
    static const struct {
        float v[4];
        const char *text;
    } rows[] = {
        {{NAN, NAN, NAN, NAN}, "numeric error at token 17: the logit of id 0 is"},
        {{1, 2, NAN, 3}, "numeric error at token 17: the logit of id 2 is"},
        {{1, 2, 3, INFINITY}, "numeric error at token 17: the logit of id 3 is inf"},
        {{-INFINITY, -INFINITY, -INFINITY, -INFINITY},
         "numeric error at token 17: all logits are -inf"},
    };
    static const float temps[] = {0, 0.7f};
    struct ply_sampler *s = sampler(4);
    for (size_t i = 0; i < PLY_COUNT(rows); i++) {
        for (size_t k = 0; k < PLY_COUNT(temps); k++) {
            struct ply_sampling p = off;
            struct ply_err err = {0};
            int32_t id, ids[4];
            double lp[4];
            p.temp = temps[k];
            assert_int_equal(ply_sample(s, rows[i].v, &p, NULL, 0, 0, 17, &id, &err), PLY_ENUMERIC);
            assert_non_null(strstr(err.msg, rows[i].text));
            assert_int_equal(ply_top_logprobs(s, rows[i].v, 4, ids, lp), PLY_ENUMERIC);
        }
    }
    /* The sampler is as good as new. */
    assert_in_range(draw(s, four, &off, 0), 0, 3);
    ply_sampler_free(&s);
}

static void
impossible_ids_are_never_drawn(void **state)
{
    const float logits[4] = {-INFINITY, 0, -INFINITY, 0};
    static const int ks[] = {0, 3};
    struct ply_sampler *s = sampler(4);
    for (size_t i = 0; i < PLY_COUNT(ks); i++) {
        struct ply_sampling p = off;
        p.top_k = ks[i];
        assert_int_equal(support(s, logits, &p), 10);
        p.top_p = 0.999f;
        assert_int_equal(support(s, logits, &p), 10);
    }
    ply_sampler_free(&s);
}

static void
extreme_logits_are_fine(void **state)
{
    const float logits[4] = {FLT_MAX, -FLT_MAX, FLT_MAX, 0};
    struct ply_sampler *s = sampler(4);
    struct ply_sampling p = off;
    assert_int_equal(support(s, logits, &p), 5);
    p.temp = 100;
    p.top_p = 0.9f;
    p.min_p = 0.05f;
    p.top_k = 40;
    assert_int_equal(support(s, logits, &p), 5);
    p.temp = 0;
    assert_int_equal(draw(s, logits, &p, 0), 0); /* ties go to the lower id */
    ply_sampler_free(&s);
}

/* ---- randomness ------------------------------------------------------------------------ */

/* A change of these changes every recorded reply. */
static void
draws_are_recorded(void **state)
{
    assert_true(ply_random(0, 0, 0) == 0x1.1c13ade1c7e5cp-3);
    assert_true(ply_random(42, 0, 1) == 0x1.d7b6e42d49ffdp-1);
    assert_true(ply_random(UINT64_MAX, 3, 1000) == 0x1.dd8f246b004cdp-1);
}

static void
draws_are_uniform_and_independent(void **state)
{
    enum { BINS = 100, N = 100000 };
    for (unsigned kind = 0; kind < 3; kind++) {
        unsigned bins[BINS] = {0};
        double chi2 = 0, lag = 0, last = 0.5;
        for (uint64_t i = 0; i < N; i++) {
            const double u = ply_random(kind == 0 ? i : 1, kind == 1 ? i : 1, kind == 2 ? i : 1);
            assert_true(u >= 0 && u < 1);
            bins[(unsigned)(u * BINS)]++;
            lag += (u - 0.5) * (last - 0.5);
            last = u;
        }
        for (unsigned b = 0; b < BINS; b++)
            chi2 += pow((double)bins[b] - N / BINS, 2) / (N / BINS);
        /* 99 degrees of freedom: mean 99, deviation 14. The lag's deviation is sqrt(N) / 12. */
        assert_true(chi2 > 43 && chi2 < 155);
        assert_true(fabs(lag) < 4 * sqrt((double)N) / 12);
    }
}

/* Draws depend on (seed, candidate, position) alone. */
static void
draws_carry_no_state(void **state)
{
    struct ply_sampler *a = sampler(4), *b = sampler(4);
    struct ply_sampling p = off;
    int32_t x, y;
    p.seed = 99;
    for (uint64_t pos = 0; pos < 50; pos++) {
        assert_int_equal(ply_sample(a, four, &p, NULL, 0, 1, 49 - pos, &x, NULL), 0);
        assert_int_equal(ply_sample(b, four, &p, NULL, 0, 1, 49 - pos, &y, NULL), 0);
        assert_int_equal(x, y);
        ply_sample(b, four, &p, NULL, 0, 2, pos, &y, NULL);
    }
    ply_sampler_free(&a);
    ply_sampler_free(&b);
}

/* ---- log-probabilities and hashes ------------------------------------------------------ */

static void
log_probabilities_are_exact(void **state)
{
    const float logits[4] = {0, 1, 1, -1000};
    const double total = log(1 + 2 * exp(1));
    struct ply_sampler *s = sampler(4);
    int32_t ids[4];
    double lp[4];
    assert_int_equal(ply_top_logprobs(s, logits, 4, ids, lp), 0);
    assert_int_equal(ids[0], 1); /* ties by lower id */
    assert_int_equal(ids[1], 2);
    assert_int_equal(ids[2], 0);
    assert_int_equal(ids[3], 3);
    assert_true(fabs(lp[0] - (1 - total)) < 1e-15);
    assert_true(fabs(lp[2] + total) < 1e-15);
    assert_true(fabs(ply_logprob(logits, 4, 3) - (-1000 - total)) < 1e-12);
    assert_true(ply_logprob(logits, 4, 4) == -INFINITY);
    assert_true(ply_logprob(logits, 4, -1) == -INFINITY);
    assert_int_equal(ply_top_logprobs(s, logits, 0, ids, lp), 0);
    assert_int_equal(ply_top_logprobs(s, logits, 5, ids, lp), PLY_EINVAL);
    ply_sampler_free(&s);
}

static void
the_top_is_the_top_of_a_sort(void **state)
{
    enum { N = 1000 };
    struct ply_sampler *s = sampler(N);
    struct ref r[N];
    float logits[N];
    int32_t ids[N];
    double lp[N];
    for (unsigned i = 0; i < N; i++) {
        logits[i] = floorf((float)(ply_random(5, 5, i) * 100)); /* ten of each */
        r[i] = (struct ref){(int32_t)i, logits[i]};
    }
    qsort(r, N, sizeof(*r), ref_cmp);
    for (size_t k = 1; k <= N; k += 37) {
        assert_int_equal(ply_top_logprobs(s, logits, k, ids, lp), 0);
        for (size_t i = 0; i < k; i++)
            assert_int_equal(ids[i], r[i].id);
    }
    ply_sampler_free(&s);
}

/* FNV-1a 64 of the bytes, published test values: "" and "foobar" (draft-eastlake-fnv). */
static void
hashes_are_fnv_1a(void **state)
{
    float v[2] = {0};
    assert_true(ply_hash_logits(PLY_HASH_SEED, v, 0) == 0xcbf29ce484222325u);
    memcpy(v, "foob", 4);
    uint64_t h = ply_hash_logits(PLY_HASH_SEED, v, 1);
    h = (h ^ 'a') * 0x100000001b3u;
    h = (h ^ 'r') * 0x100000001b3u;
    assert_true(h == 0x85944171f73967e8u);
    const uint32_t nans[] = {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu};
    for (size_t i = 0; i < PLY_COUNT(nans); i++) {
        memcpy(v, &nans[i], 4);
        assert_true(ply_hash_logits(1, v, 1) == ply_hash_logits(1, (float[]){NAN}, 1));
    }
    assert_true(ply_hash_logits(1, (float[]){0.0f}, 1) != ply_hash_logits(1, (float[]){-0.0f}, 1));
}

/* ---- defaults -------------------------------------------------------------------------- */

static struct ply_sampling
defaults(struct ggufw *w, uint64_t n_params)
{
    struct ply_buf b = {0};
    struct ply_gguf *g;
    ggufw_finish(w, &b);
    assert_int_equal(ply_gguf_open_bytes(&g, "m", b.v, b.n, NULL), 0);
    const struct ply_sampling p = ply_sampling_from(g, n_params);
    ply_gguf_close(&g);
    ply_buf_fini(&b);
    return p;
}

static void
defaults_depend_on_the_size(void **state)
{
    struct ggufw w;
    ggufw_init(&w);
    const struct ply_sampling small = defaults(&w, 270000000), large = defaults(&w, 1100000000);
    assert_true(small.temp == 0.2f && small.top_p == 0.9f);
    assert_true(large.temp == 0.7f && large.top_p == 0.95f);
    assert_true(defaults(&w, 0).temp == 0.7f);
    assert_int_equal(large.top_k, 40);
    assert_true(large.min_p == 0.05f && large.repeat_penalty == 1 && large.presence_penalty == 0);
    assert_int_equal(large.penalty_window, 64);
    ggufw_fini(&w);
}

static void
the_file_wins_if_it_makes_sense(void **state)
{
    struct ggufw w;
    ggufw_init(&w);
    ggufw_f32(&w, "general.sampling.temp", 1);
    ggufw_int(&w, "general.sampling.top_k", PLY_GGUF_I32, 64);
    ggufw_f32(&w, "general.sampling.penalty_repeat", 1.05f);
    struct ply_sampling p = defaults(&w, 270000000);
    assert_true(p.temp == 1 && p.top_k == 64 && p.repeat_penalty == 1.05f && p.top_p == 0.9f);
    ggufw_f32(&w, "general.sampling.top_p", NAN);
    p = defaults(&w, 270000000);
    assert_true(p.temp == 0.2f && p.top_k == 40 && p.top_p == 0.9f && p.repeat_penalty == 1);
    ggufw_fini(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_temperature_is_too_low),
        cmocka_unit_test(settings_are_checked),
        cmocka_unit_test(top_k_zero_is_off),
        cmocka_unit_test(top_p_keeps_the_fewest_that_reach_it),
        cmocka_unit_test(top_p_counts_what_top_k_left),
        cmocka_unit_test(top_p_one_keeps_a_uniform_vocabulary),
        cmocka_unit_test(min_p_is_relative_to_the_best),
        cmocka_unit_test(temperature_comes_last),
        cmocka_unit_test(cuts_equal_a_plain_implementation),
        cmocka_unit_test(a_penalty_never_rewards),
        cmocka_unit_test(presence_counts_once_frequency_each_time),
        cmocka_unit_test(the_repeat_penalty_comes_before_the_others),
        cmocka_unit_test(the_window_skips_exempt_ids),
        cmocka_unit_test(ids_out_of_range_do_no_harm),
        cmocka_unit_test(penalties_change_what_greedy_takes),
        cmocka_unit_test(logits_that_are_no_numbers_are_errors),
        cmocka_unit_test(impossible_ids_are_never_drawn),
        cmocka_unit_test(extreme_logits_are_fine),
        cmocka_unit_test(draws_are_recorded),
        cmocka_unit_test(draws_are_uniform_and_independent),
        cmocka_unit_test(draws_carry_no_state),
        cmocka_unit_test(log_probabilities_are_exact),
        cmocka_unit_test(the_top_is_the_top_of_a_sort),
        cmocka_unit_test(hashes_are_fnv_1a),
        cmocka_unit_test(defaults_depend_on_the_size),
        cmocka_unit_test(the_file_wins_if_it_makes_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

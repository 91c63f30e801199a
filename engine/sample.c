/* SPDX-License-Identifier: MIT
 * Logits to an id. The order is the field's: penalties, top-k, top-p, min-p, temperature; so the
 * two cuts by probability see the distribution at temperature 1.
 *
 * All three cuts keep a beginning of the candidates in descending order, so one list, built only
 * as far as it is needed, serves them all: with top-k from a bounded heap, without it from a heap
 * over what min-p leaves. The whole vocabulary is never sorted. Equal logits are ordered by id.
 *
 * A draw is a hash of (seed, candidate, position): no state is carried from one to the next, so
 * resuming, continuing and drafting ahead draw the same numbers. */
#include "engine/sample.h"

#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/log.h"
#include "engine/base/num.h"
#include "engine/vocab.h"

/* Sums of probabilities that fall short of top-p by less than what a float32 logit can express
 * have reached it: p = 0.5 keeps one of {0.5, 0.25, ...} whatever way its logarithm was rounded. */
#define TOP_P_SLACK 1e-6

#define SMALL_MODEL_PARAMS 500000000u

struct cand {
    int32_t id;
    float logit;
};

struct ply_sampler {
    uint32_t n_vocab;
    ply_exempt_fn exempt;
    const void *user;
    struct cand *cand; /* [n_vocab] */
    float *penalised;  /* [n_vocab] */
    uint32_t *count;   /* [n_vocab] occurrences in the window; zeros between calls */
};

/* ---- settings -------------------------------------------------------------------------- */

static int
check_range(const char *name, double v, double lo, double hi, struct ply_err *err)
{
    if (v >= lo && v <= hi)
        return PLY_OK;
    return ply_fail(err, PLY_EINVAL, "%s must be a number from %g to %g, not %g", name, lo, hi, v);
}

int
ply_sampling_check(const struct ply_sampling *p, struct ply_err *err)
{
    const struct {
        const char *name;
        double v, lo, hi;
    } ranges[] = {
        {"temperature", (double)p->temp, 0, 100},
        {"top-k", (double)p->top_k, 0, INT_MAX},
        {"top-p", (double)p->top_p, 0, 1},
        {"min-p", (double)p->min_p, 0, 1},
        {"repeat penalty", (double)p->repeat_penalty, 0.01, 100},
        {"presence penalty", (double)p->presence_penalty, -100, 100},
        {"frequency penalty", (double)p->frequency_penalty, -100, 100},
        {"penalty window", (double)p->penalty_window, 0, INT_MAX},
    };
    for (size_t i = 0; i < PLY_COUNT(ranges); i++) {
        const int rc = check_range(ranges[i].name, ranges[i].v, ranges[i].lo, ranges[i].hi, err);
        if (rc != PLY_OK)
            return rc;
    }
    return PLY_OK;
}

static void
take_f32(const struct ply_gguf *g, const char *key, float *out)
{
    float v;
    if (ply_gguf_f32(g, key, &v, NULL) == 1)
        *out = v;
}

static void
take_int(const struct ply_gguf *g, const char *key, int *out)
{
    uint64_t v;
    if (ply_gguf_u64(g, key, &v, NULL) == 1)
        *out = v > INT_MAX ? INT_MAX : (int)v;
}

struct ply_sampling
ply_sampling_from(const struct ply_gguf *g, uint64_t n_params)
{
    const bool small = n_params > 0 && n_params < SMALL_MODEL_PARAMS;
    const struct ply_sampling by_size = {
        .temp = small ? 0.2f : 0.7f,
        .top_k = 40,
        .top_p = small ? 0.9f : 0.95f,
        .min_p = 0.05f,
        .repeat_penalty = 1,
        .penalty_window = 64,
    };
    struct ply_sampling p = by_size;
    struct ply_err err = {0};
    take_f32(g, "general.sampling.temp", &p.temp);
    take_int(g, "general.sampling.top_k", &p.top_k);
    take_f32(g, "general.sampling.top_p", &p.top_p);
    take_f32(g, "general.sampling.min_p", &p.min_p);
    take_f32(g, "general.sampling.penalty_repeat", &p.repeat_penalty);
    take_int(g, "general.sampling.penalty_last_n", &p.penalty_window);
    if (ply_sampling_check(&p, &err) == PLY_OK)
        return p;
    ply_log(PLY_LOG_WARN, "sample", "the model's own sampling settings are ignored: %s", err.msg);
    return by_size;
}

struct ply_sampling
ply_sampling_default(const struct ply_vocab *v)
{
    return ply_sampling_from(ply_vocab_gguf(v), ply_vocab_info(v)->n_params);
}

/* ---- the sampler ----------------------------------------------------------------------- */

int
ply_sampler_new_sized(uint32_t n_vocab, ply_exempt_fn exempt, const void *user,
                      struct ply_sampler **out, struct ply_err *err)
{
    *out = NULL;
    struct ply_sampler *s = calloc(1, sizeof(*s));
    if (s) {
        s->n_vocab = n_vocab;
        s->exempt = exempt;
        s->user = user;
        s->cand = malloc(n_vocab * sizeof(*s->cand));
        s->penalised = malloc(n_vocab * sizeof(*s->penalised));
        s->count = calloc(n_vocab, sizeof(*s->count));
    }
    if (!s || !s->cand || !s->penalised || !s->count) {
        ply_sampler_free(&s);
        return ply_fail(err, PLY_ENOMEM, "out of memory");
    }
    *out = s;
    return PLY_OK;
}

static bool
vocab_exempt(const void *user, int32_t id)
{
    return ply_is_exempt(user, id);
}

int
ply_sampler_new(const struct ply_vocab *v, struct ply_sampler **out, struct ply_err *err)
{
    const int n = ply_vocab_info(v)->n_vocab;
    return ply_sampler_new_sized((uint32_t)n, vocab_exempt, v, out, err);
}

void
ply_sampler_free(struct ply_sampler **sp)
{
    struct ply_sampler *s = *sp;
    if (!s)
        return;
    free(s->cand);
    free(s->penalised);
    free(s->count);
    free(s);
    *sp = NULL;
}

/* ---- random numbers -------------------------------------------------------------------- */

/* The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every bit in reaches every bit out. */
static uint64_t
mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

double
ply_random(uint64_t seed, uint64_t candidate, uint64_t position)
{
    const uint64_t step = 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio: no small pattern survives */
    uint64_t h = mix(seed + step);
    h = mix(h + (candidate + 1) * step);
    h = mix(h + (position + 1) * step);
    return (double)(h >> 11) * 0x1p-53;
}

/* ---- penalties ------------------------------------------------------------------------- */

static bool
penalties_on(const struct ply_sampling *p)
{
    return p->penalty_window > 0 &&
           (p->repeat_penalty != 1 || p->presence_penalty != 0 || p->frequency_penalty != 0);
}

/* Count the last penalty_window ids of the context that are not exempt; returns where in the
 * context that window begins. */
static size_t
count_window(struct ply_sampler *s, const struct ply_sampling *p, const int32_t *context,
             size_t n_context)
{
    size_t i = n_context;
    for (int left = p->penalty_window; i > 0 && left > 0; i--) {
        const int32_t id = context[i - 1];
        if (id < 0 || (uint32_t)id >= s->n_vocab || (s->exempt && s->exempt(s->user, id)))
            continue;
        s->count[id]++;
        left--;
    }
    return i;
}

void
ply_penalise(struct ply_sampler *s, const struct ply_sampling *p, const int32_t *context,
             size_t n_context, float *logits)
{
    const size_t begin = count_window(s, p, context, n_context);
    for (size_t i = begin; i < n_context; i++) {
        const int32_t id = context[i];
        if (id < 0 || (uint32_t)id >= s->n_vocab || s->count[id] == 0)
            continue;
        float *l = &logits[id];
        /* Away from the probable, whichever side of zero that is. */
        *l = *l > 0 ? *l / p->repeat_penalty : *l * p->repeat_penalty;
        *l -= (float)s->count[id] * p->frequency_penalty + p->presence_penalty;
        s->count[id] = 0;
    }
}

/* ---- candidates ------------------------------------------------------------------------ */

static bool
before(struct cand a, struct cand b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Restore the heap below i: the root comes first (worst_first false) or last in the order. */
static void
sift_down(struct cand *h, size_t n, size_t i, bool worst_first)
{
    const struct cand x = h[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && before(h[child + 1], h[child]) != worst_first)
            child++;
        if (before(h[child], x) == worst_first)
            break;
        h[i] = h[child];
        i = child;
    }
    h[i] = x;
}

static void
heapify(struct cand *h, size_t n, bool worst_first)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(h, n, i, worst_first);
}

/* The k first of all candidates, in order, at s->cand[0..k). Returns how many there are: ids
 * with a logit of -inf are none. */
static size_t
select_top(struct ply_sampler *s, const float *logits, size_t k)
{
    struct cand *h = s->cand;
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_vocab; i++) {
        const struct cand c = {(int32_t)i, logits[i]};
        if (n < k) {
            if (c.logit == -INFINITY)
                continue;
            h[n++] = c;
            if (n == k)
                heapify(h, n, true);
        } else if (c.logit > h[0].logit) {
            h[0] = c; /* ids come in ascending order, so an equal one never displaces */
            sift_down(h, n, 0, true);
        }
    }
    if (n < k)
        heapify(h, n, true);
    /* Taking the worst off again and again fills the array from its end. */
    for (size_t left = n; left > 1;) {
        const struct cand worst = h[0];
        h[0] = h[--left];
        sift_down(h, left, 0, true);
        h[left] = worst;
    }
    return n;
}

/* All candidates of at least `least`, in order of their ids. */
static size_t
gather(struct ply_sampler *s, const float *logits, float least)
{
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_vocab; i++) {
        if (logits[i] >= least && logits[i] != -INFINITY)
            s->cand[n++] = (struct cand){(int32_t)i, logits[i]};
    }
    return n;
}

static double
weight(float logit, float max, double temp)
{
    return exp(((double)logit - (double)max) / temp);
}

/* How many of n candidates in order lie in the nucleus: the fewest whose probabilities, of a
 * total of `sum`, reach p. At least one. */
static size_t
cut_top_p(const struct cand *c, size_t n, float p, double sum)
{
    const double enough = (double)p * sum * (1 - TOP_P_SLACK);
    double acc = 0;
    for (size_t i = 0; i < n; i++) {
        acc += weight(c[i].logit, c[0].logit, 1);
        if (acc >= enough)
            return i + 1;
    }
    return n;
}

static size_t
cut_min_p(const struct cand *c, size_t n, float least)
{
    while (n > 1 && c[n - 1].logit < least)
        n--;
    return n;
}

/* Without top-k the candidates are not in order. Those that the nucleus needs are taken from a
 * heap and end up, in order, at the front. */
static size_t
nucleus_unordered(struct ply_sampler *s, const float *logits, size_t n, float max, float p)
{
    struct cand *h = s->cand;
    double sum = 0, acc = 0;
    for (uint32_t i = 0; i < s->n_vocab; i++)
        sum += weight(logits[i], max, 1);
    const double enough = (double)p * sum * (1 - TOP_P_SLACK);
    heapify(h, n, false);
    size_t left = n;
    while (left > 0 && acc < enough) {
        const struct cand best = h[0];
        acc += weight(best.logit, max, 1);
        h[0] = h[--left];
        sift_down(h, left, 0, false);
        h[left] = best;
    }
    if (left == n)
        return 1; /* p is 0: the root of the heap is the best */
    /* The nucleus stands at the end, best last. */
    for (size_t i = left, j = n - 1; i < j; i++, j--) {
        const struct cand t = h[i];
        h[i] = h[j];
        h[j] = t;
    }
    memmove(h, h + left, (n - left) * sizeof(*h));
    return n - left;
}

/* ---- drawing --------------------------------------------------------------------------- */

/* The greatest logit, and whether one is NaN or +inf. Eight running maxima: one would make each
 * step wait for the last, and a vocabulary may have 262,144 ids. */
static float
find_max(const float *logits, uint32_t n, bool *bad)
{
    enum { LANES = 8 };
    float m[LANES];
    unsigned not_finite = 0;
    for (unsigned k = 0; k < LANES; k++)
        m[k] = -INFINITY;
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (unsigned k = 0; k < LANES; k++) {
            const float x = logits[i + k];
            m[k] = x > m[k] ? x : m[k];
            not_finite |= !(x <= FLT_MAX);
        }
    }
    for (; i < n; i++) {
        m[0] = logits[i] > m[0] ? logits[i] : m[0];
        not_finite |= !(logits[i] <= FLT_MAX);
    }
    for (unsigned k = 1; k < LANES; k++)
        m[0] = m[k] > m[0] ? m[k] : m[0];
    *bad = not_finite != 0;
    return m[0];
}

/* The greatest logit's id (the lowest of equals), after checking that all are numbers. */
static int
find_best(const float *logits, uint32_t n, uint64_t position, int32_t *best, struct ply_err *err)
{
    bool bad;
    const float max = find_max(logits, n, &bad);
    uint32_t at = 0;
    if (bad) {
        while (logits[at] <= FLT_MAX)
            at++;
        return ply_fail(err, PLY_ENUMERIC,
                        "numeric error at token %" PRIu64 ": the logit of id %" PRIu32 " is %g",
                        position, at, (double)logits[at]);
    }
    if (max == -INFINITY)
        return ply_fail(err, PLY_ENUMERIC,
                        "numeric error at token %" PRIu64 ": all logits are -inf", position);
    while (logits[at] != max)
        at++;
    *best = (int32_t)at;
    return PLY_OK;
}

static int32_t
draw(const struct cand *c, size_t n, float max, double temp, double u)
{
    double sum = 0, acc = 0;
    for (size_t i = 0; i < n; i++)
        sum += weight(c[i].logit, max, temp);
    const double at = u * sum;
    size_t last = 0;
    for (size_t i = 0; i < n; i++) {
        const double w = weight(c[i].logit, max, temp);
        acc += w;
        if (w > 0)
            last = i;
        if (at < acc)
            return c[i].id;
    }
    return c[last].id; /* rounding left `at` at the very end */
}

/* Cut the candidates down; returns how many are left at s->cand. */
static size_t
cut(struct ply_sampler *s, const float *logits, const struct ply_sampling *p, float max)
{
    const float least = p->min_p > 0 ? max + logf(p->min_p) : -INFINITY;
    if (p->top_k > 0 && (uint32_t)p->top_k < s->n_vocab) {
        size_t n = select_top(s, logits, (size_t)p->top_k);
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += weight(s->cand[i].logit, max, 1);
        if (p->top_p < 1)
            n = cut_top_p(s->cand, n, p->top_p, sum);
        return cut_min_p(s->cand, n, least);
    }
    const size_t n = gather(s, logits, least);
    return p->top_p < 1 ? nucleus_unordered(s, logits, n, max, p->top_p) : n;
}

int
ply_sample(struct ply_sampler *s, const float *logits, const struct ply_sampling *p,
           const int32_t *context, size_t n_context, uint64_t candidate, uint64_t position,
           int32_t *id, struct ply_err *err)
{
    int rc = ply_sampling_check(p, err);
    if (rc == PLY_OK)
        rc = find_best(logits, s->n_vocab, position, id, err);
    if (rc != PLY_OK)
        return rc;
    if (penalties_on(p)) {
        memcpy(s->penalised, logits, s->n_vocab * sizeof(*logits));
        ply_penalise(s, p, context, n_context, s->penalised);
        logits = s->penalised;
        rc = find_best(logits, s->n_vocab, position, id, err);
        if (rc != PLY_OK)
            return rc;
    }
    if (p->temp == 0 || p->top_k == 1)
        return PLY_OK;
    const float max = logits[*id];
    const size_t n = cut(s, logits, p, max);
    *id = draw(s->cand, n, max, (double)p->temp, ply_random(p->seed, candidate, position));
    return PLY_OK;
}

/* ---- log-probabilities ----------------------------------------------------------------- */

int
ply_top_logprobs(struct ply_sampler *s, const float *logits, size_t k, int32_t *ids,
                 double *logprobs)
{
    const double total = ply_log_sum_exp(logits, s->n_vocab);
    if (!isfinite(total))
        return PLY_ENUMERIC;
    if (k > s->n_vocab)
        return PLY_EINVAL;
    const size_t n = k > 0 ? select_top(s, logits, k) : 0;
    for (size_t i = 0; i < k; i++) {
        ids[i] = i < n ? s->cand[i].id : -1;
        logprobs[i] = i < n ? (double)s->cand[i].logit - total : -(double)INFINITY;
    }
    return PLY_OK;
}

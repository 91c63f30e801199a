/* SPDX-License-Identifier: MIT
 * Kernels other than the matrix products (test_matmul.c): each variant against ref, and the
 * values against double precision and libm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "tests/engine/kernutil.h"

static const struct ply_kernels *ks[4];
static size_t n_ks;

static void
every_variant_agrees(void **unused)
{
    for (size_t v = 0; v < n_ks; v++) {
        const char *differs = ply_kernels_check(ks[v]);
        if (differs)
            fail_msg("%s: %s differs from ref", ks[v]->isa, differs);
    }
}

/* ---- the check itself must be able to say no ------------------------------------------------- */

static void
add_one_ulp_off(float *x, const float *y, uint32_t n)
{
    ks[0]->add(x, y, n);
    if (n == 259)
        x[258] = nextafterf(x[258], 9e9f);
}

static void
mm_last_row_off(const uint8_t *packed, uint32_t n_in, uint32_t n_out, uint32_t p0, uint32_t p1,
                const struct ply_acts *a, uint32_t m, float *out, size_t ld)
{
    ks[0]->mm_a8[1](packed, n_in, n_out, p0, p1, a, m, out, ld);
    out[(m - 1) * ld + n_out - 1] = nextafterf(out[(m - 1) * ld + n_out - 1], 9e9f);
}

static void
mm_writes_padding(const uint8_t *packed, uint32_t n_in, uint32_t n_out, uint32_t p0, uint32_t p1,
                  const struct ply_acts *a, uint32_t m, float *out, size_t ld)
{
    ks[0]->mm_a12[7](packed, n_in, n_out, p0, p1, a, m, out, ld);
    out[n_out] = 0.0f;
}

static void
chunk_sees_next_key(const uint8_t *k, const uint8_t *v, uint32_t d, const struct ply_attn_query *q,
                    size_t n, float *scratch)
{
    struct ply_attn_query wrong[64];
    memcpy(wrong, q, n * sizeof(*q));
    wrong[n - 1].hi += wrong[n - 1].hi < 64;
    ks[0]->attn_chunk[0](k, v, d, wrong, n, scratch);
}

static void
exp_flushes(float *y, const float *x, uint32_t n)
{
    ks[0]->exp(y, x, n);
    for (uint32_t i = 0; i < n; i++)
        y[i] = x[i] < -87.4f ? 0.0f : y[i];
}

static void
finds(const struct ply_kernels *bad, const char *want)
{
    const char *name = ply_kernels_check(bad);
    assert_string_equal(name ? name : "nothing", want);
}

static void
check_finds_faults(void **unused)
{
    struct ply_kernels bad = *ks[0];
    finds(&bad, "nothing");
    bad.add = add_one_ulp_off;
    finds(&bad, "add");
    bad = *ks[0];
    bad.mm_a8[1] = mm_last_row_off;
    finds(&bad, "mm_a8 Q4_1");
    bad = *ks[0];
    bad.mm_a12[7] = mm_writes_padding;
    finds(&bad, "mm_a12 Q6_K");
    bad = *ks[0];
    bad.attn_chunk[0] = chunk_sees_next_key;
    finds(&bad, "attn_chunk f16");
    bad = *ks[0];
    bad.exp = exp_flushes;
    finds(&bad, "exp");
}

/* ---- activations ---------------------------------------------------------------------------- */

struct codes {
    int8_t q[96], lo[96];
    uint8_t fine[3];
    float d[3];
    int32_t sum16[6];
};

static struct codes
quantise(const struct ply_kernels *k, const float x[32], bool a12)
{
    struct codes c;
    memset(&c, 0x5a, sizeof(c));
    struct ply_acts a = {.q = c.q, .lo = c.lo, .fine = a12 ? NULL : c.fine, .d = c.d,
                         .sum16 = c.sum16, .n = 32};
    (a12 ? k->quant_a12 : k->quant_a8)(x, 32, 1, 0, &a);
    return c;
}

static void
a8_codes(void **unused)
{
    for (size_t v = 0; v < n_ks; v++) {
        float x[32] = {127.0f, -126.5f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 126.5f};
        const int8_t want[8] = {127, -126, 0, 2, 2, 0, -2, 126}; /* ties to even */
        x[16] = -3.0f;
        struct codes c = quantise(ks[v], x, false);
        assert_memory_equal(c.q, want, sizeof(want));
        assert_int_equal(c.q[16], -3);
        assert_int_equal(c.lo[0], 0x5a); /* A8 leaves the lower plane alone */
        assert_float_equal(c.d[0], 1.0f, 0.0f);
        assert_int_equal(c.sum16[0], 127 - 126 + 2 + 2 - 2 + 126);
        assert_int_equal(c.sum16[1], -3);

        float tiny[32] = {float_of((27u << 23) - 1)}, least[32] = {float_of(27u << 23)};
        c = quantise(ks[v], tiny, false); /* below 2^-100: nothing */
        assert_int_equal(bits_of(c.d[0]), 0);
        assert_int_equal(c.q[0], 0);
        c = quantise(ks[v], least, false);
        assert_int_equal(c.q[0], 127);
        float huge[32] = {-3.4028234e38f, 1e38f};
        c = quantise(ks[v], huge, false);
        assert_int_equal(c.q[0], -127);
        assert_int_equal(c.q[1], 37);
        float not_finite[3] = {NAN, INFINITY, -INFINITY};
        for (int i = 0; i < 3; i++) {
            x[31] = not_finite[i];
            c = quantise(ks[v], x, false);
            assert_true(isnan(c.d[0]));
            assert_int_equal(c.q[0], 0);
            assert_int_equal(c.sum16[0], 0);
        }
    }
}

/* One large number among small ones: its block is fine, the others are not. 8 times the root mean
 * square is the bound: of 96 numbers, one of them r and the rest 1, at r = 13.78. */
static void
a8_outliers(void **unused)
{
    for (size_t v = 0; v < n_ks; v++) {
        float x[96], below[96];
        struct codes c;
        struct ply_acts a = {.q = c.q, .lo = c.lo, .fine = c.fine, .d = c.d, .sum16 = c.sum16,
                             .n = 96};
        for (unsigned i = 0; i < 96; i++)
            x[i] = below[i] = 1.0f;
        x[5] = -2047.0f;
        x[6] = 1000.0f / 3;
        memset(&c, 0x5a, sizeof(c));
        ks[v]->quant_a8(x, 96, 1, 0, &a);
        assert_int_equal(c.fine[0], 1);
        assert_int_equal(c.fine[1], 0);
        assert_float_equal(c.d[0], 1.0f, 0.0f);
        assert_int_equal(32 * c.q[5] + c.lo[5], -2047);
        assert_int_equal(32 * c.q[6] + c.lo[6], 333);
        assert_int_equal(32 * c.q[0] + c.lo[0], 1);
        assert_int_equal(c.sum16[0], -2047 + 333 + 14);
        assert_int_equal(c.q[32], 127);
        assert_int_equal(c.lo[32], 0x5a); /* no lower plane in coarse blocks */
        below[5] = 13.7f; /* 187.7 < 64 * (187.7 + 95) / 96 = 188.5 */
        ks[v]->quant_a8(below, 96, 1, 0, &a);
        assert_int_equal(c.fine[0], 0);
        below[5] = 13.9f; /* 193.2 > 64 * (193.2 + 95) / 96 = 192.1 */
        ks[v]->quant_a8(below, 96, 1, 0, &a);
        assert_int_equal(c.fine[0], 1);
    }
}

static void
a12_codes(void **unused)
{
    for (size_t v = 0; v < n_ks; v++) {
        for (int base = -2047; base <= 2047; base += 30) {
            float x[32];
            for (int i = 0; i < 32; i++)
                x[i] = (float)(base + i > 2047 ? 2047 : base + i);
            x[31] = 2047.0f;
            struct codes c = quantise(ks[v], x, true);
            int32_t sums[2] = {0, 0};
            for (int i = 0; i < 32; i++) {
                assert_int_equal(32 * c.q[i] + c.lo[i], (int)x[i]);
                assert_in_range(c.q[i] + 64, 0, 128);
                assert_in_range(c.lo[i] + 16, 0, 31);
                sums[i / 16] += (int)x[i];
            }
            assert_float_equal(c.d[0], 1.0f, 0.0f);
            assert_int_equal(c.sum16[0], sums[0]);
            assert_int_equal(c.sum16[1], sums[1]);
        }
    }
}

/* ---- exponential and activation functions --------------------------------------------------- */

static void
exp_values(void **unused)
{
    static const float edges[] = {0.0f,  -0.0f,   INFINITY, -INFINITY, NAN,
                                  89.0f, -104.0f, 3e38f,    -3e38f};
    enum { N = 4096 };
    static float x[N], y[N];
    double worst = 0;
    ks[0]->exp(y, edges, 9);
    assert_int_equal(bits_of(y[0]), bits_of(1.0f));
    assert_int_equal(bits_of(y[1]), bits_of(1.0f));
    assert_int_equal(bits_of(y[2]), bits_of(INFINITY));
    assert_int_equal(bits_of(y[3]), 0);
    assert_true(isnan(y[4]));
    assert_int_equal(bits_of(y[5]), bits_of(INFINITY));
    assert_int_equal(bits_of(y[6]), 0);
    assert_int_equal(bits_of(y[7]), bits_of(INFINITY));
    assert_int_equal(bits_of(y[8]), 0);
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < N; i++)
            x[i] = rnd_float() * (round % 2 ? 1.0f : 24.0f);
        ks[0]->exp(y, x, N);
        for (int i = 0; i < N; i++) {
            const double want = exp((double)x[i]);
            if (want > 0x1p-126 && want < 3.4e38)
                worst = fmax(worst, fabs(y[i] / want - 1));
            else if (want < 1)
                assert_true(fabs(y[i] - want) <= 0x1p-149); /* gradual underflow */
        }
    }
    assert_true(worst < 1.5e-7);
}

static double
silu_exact(double x)
{
    return x / (1 + exp(-x));
}

static double
gelu_exact(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static void
activation_values(void **unused)
{
    enum { N = 1000 };
    float silu[N], gelu[N], ones[N];
    for (int i = 0; i < N; i++) {
        silu[i] = gelu[i] = (float)(i - N / 2) * 0.05f;
        ones[i] = 1.0f;
    }
    ks[0]->silu_mul(silu, ones, N);
    ks[0]->gelu_tanh_mul(gelu, ones, N);
    for (int i = 0; i < N; i++) {
        const double x = (float)(i - N / 2) * 0.05f;
        assert_true(fabs(silu[i] - silu_exact(x)) <= 3e-7 * fabs(silu_exact(x)) + 1e-38);
        assert_true(fabs(gelu[i] - gelu_exact(x)) <= 3e-7 * fabs(gelu_exact(x)) + 1e-8);
    }
    float ends[2][8];
    for (int i = 0; i < 2; i++) {
        const float x[8] = {INFINITY, -INFINITY, NAN, 1e30f, -1e30f, 0.0f, -0.0f, -3.4028234e38f};
        memcpy(ends[i], x, sizeof(x));
    }
    ks[0]->silu_mul(ends[0], ones, 8);
    ks[0]->gelu_tanh_mul(ends[1], ones, 8);
    for (int i = 0; i < 2; i++) {
        const float want[8] = {INFINITY, -0.0f, NAN, 1e30f, -0.0f, 0.0f, -0.0f, -0.0f};
        assert_true(same_floats(ends[i], want, 8));
    }
}

/* ---- vectors -------------------------------------------------------------------------------- */

/* The law of reductions, written out: sixteen lanes, then 8, 4, 2, 1. */
static void
norm_by_lanes(void **unused)
{
    static const uint32_t sizes[] = {1, 15, 16, 17, 576, 640, 2047};
    for (size_t s = 0; s < PLY_COUNT(sizes); s++) {
        const uint32_t n = sizes[s];
        float x[2047], w[2047], out[2047], lane[16] = {0};
        double exact = 0;
        for (uint32_t i = 0; i < n; i++) {
            x[i] = rnd_float();
            w[i] = rnd_float();
            lane[i % 16] = fmaf(x[i], x[i], lane[i % 16]);
            exact += (double)x[i] * x[i];
        }
        for (int width = 8; width; width /= 2) {
            for (int i = 0; i < width; i++)
                lane[i] += lane[i + width];
        }
        const float inv = 1.0f / sqrtf(lane[0] / (float)n + 1e-6f);
        ks[0]->rms_norm(out, x, w, n, 1e-6f);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(bits_of(out[i]), bits_of(x[i] * inv * w[i]));
            const double want = x[i] / sqrt(exact / n + 1e-6) * w[i];
            assert_true(fabs(out[i] - want) <= 1e-6 * fabs(want));
        }
        ks[0]->rms_norm(x, x, w, n, 1e-6f); /* in place */
        assert_memory_equal(x, out, n * sizeof(*x));
    }
}

static void
rope_values(void **unused)
{
    for (int neox = 0; neox < 2; neox++) {
        float x[40], was[40], cs[32];
        for (int i = 0; i < 40; i++)
            x[i] = was[i] = rnd_float();
        for (int i = 0; i < 16; i++) {
            cs[2 * i] = (float)cos(0.3 * i + 1);
            cs[2 * i + 1] = (float)sin(0.3 * i + 1);
        }
        ks[0]->rope(x, cs, 32, neox);
        for (int i = 0; i < 16; i++) {
            const int a = neox ? i : 2 * i, b = neox ? i + 16 : 2 * i + 1;
            const double angle = 0.3 * i + 1;
            assert_true(fabs(x[a] - (was[a] * cos(angle) - was[b] * sin(angle))) < 2e-6);
            assert_true(fabs(x[b] - (was[a] * sin(angle) + was[b] * cos(angle))) < 2e-6);
        }
        assert_memory_equal(x + 32, was + 32, 8 * sizeof(float)); /* beyond the rotated part */
    }
}

/* ---- keys and values ------------------------------------------------------------------------ */

/* Equal to F16C at every boundary, and to quant.c everywhere. */
static void
f16_stores(void **unused)
{
    static const struct {
        uint32_t f;
        uint16_t h;
    } edges[] = {
        {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x477fefff, 0x7bff}, {0x477ff000, 0x7c00},
        {0x33000000, 0x0000}, {0x33000001, 0x0001}, {0x33800000, 0x0001}, {0x33c00000, 0x0002},
        {0x387fc000, 0x03ff}, {0x387fe000, 0x0400}, {0x38800000, 0x0400}, {0x3f801000, 0x3c00},
        {0x3f803000, 0x3c02}, {0x7f800000, 0x7c00}, {0xff800000, 0xfc00}, {0x00000001, 0x0000},
        {0x7fc00000, 0x7e00}, {0x7f7fffff, 0x7c00},
    };
    for (size_t v = 0; v < n_ks; v++) {
        float x[PLY_COUNT(edges)];
        uint16_t h[PLY_COUNT(edges)];
        for (size_t i = 0; i < PLY_COUNT(edges); i++)
            x[i] = float_of(edges[i].f);
        ks[v]->v_store[PLY_KERN_KV_F16]((uint8_t *)h, 0, x, PLY_COUNT(edges));
        for (size_t i = 0; i < PLY_COUNT(edges); i++)
            assert_int_equal(h[i], edges[i].h);
        for (int round = 0; round < 2000; round++) {
            float y[64];
            uint16_t got[64];
            for (int i = 0; i < 64; i++) /* half of them in f16's range */
                y[i] = float_of(round % 2 ? rnd() : (rnd() & 0x8fffffffu) + 0x30000000u);
            ks[v]->v_store[PLY_KERN_KV_F16]((uint8_t *)got, 0, y, 64);
            for (int i = 0; i < 64; i++)
                assert_int_equal(got[i], ply_f32_to_f16(y[i]));
        }
    }
}

/* Places as kern.h draws them. */
static void
store_places(void **unused)
{
    enum { D = 64 };
    static uint8_t area[PLY_CHUNK * D * 2];
    float x[D];
    for (int i = 0; i < D; i++)
        x[i] = (float)(i + 1);
    for (uint32_t slot = 0; slot < PLY_CHUNK; slot += 7) {
        memset(area, 0, sizeof(area));
        ks[0]->k_store[PLY_KERN_KV_F16](area, slot, x, D);
        for (uint32_t i = 0; i < D; i++) {
            uint16_t h;
            memcpy(&h, area + 2 * ((slot / 16 * D + i) * 16 + slot % 16), sizeof(h));
            assert_float_equal(ply_f16_to_f32(h), x[i], 0.0f);
        }
        memset(area, 0, sizeof(area));
        ks[0]->k_store[PLY_KERN_KV_Q8_0](area, slot, x, D);
        for (uint32_t i = 0; i < D; i++) {
            uint16_t h;
            memcpy(&h,
                   area + PLY_CHUNK * D + 2 * ((slot / 16 * (D / 32) + i / 32) * 16 + slot % 16),
                   sizeof(h));
            const int8_t code = (int8_t)area[(slot / 16 * D + i) * 16 + slot % 16];
            assert_true(fabsf((float)code * ply_f16_to_f32(h) - x[i]) <= x[i / 32 * 32 + 31] / 250);
        }
        memset(area, 0, sizeof(area));
        ks[0]->v_store[PLY_KERN_KV_Q8_0](area, slot, x, D);
        for (uint32_t i = 0; i < D; i++) {
            uint16_t h;
            memcpy(&h, area + PLY_CHUNK * D + 2 * (slot * (D / 32) + i / 32), sizeof(h));
            const int8_t code = (int8_t)area[slot * D + i];
            assert_true(fabsf((float)code * ply_f16_to_f32(h) - x[i]) <= x[i / 32 * 32 + 31] / 250);
        }
    }
}

/* ---- attention ------------------------------------------------------------------------------ */

enum { AD = 64, AQ = 9, CHUNKS = 3, AKEYS = CHUNKS * 64 };

/* CHUNKS chunks of random keys and values, as floats (after the KV type) and as stored. */
struct past {
    float k[AKEYS][AD], v[AKEYS][AD], q[AQ][AD];
    uint8_t kc[CHUNKS][PLY_CHUNK * AD * 2], vc[CHUNKS][PLY_CHUNK * AD * 2];
    float scratch[2 * 64 * AD] __attribute__((aligned(64)));
};

static float
as_stored(float x)
{
    return ply_f16_to_f32(ply_f32_to_f16(x));
}

static struct past *
past_new(void)
{
    struct past *p = calloc(1, sizeof(*p));
    memset(p->kc, 0xff, sizeof(p->kc)); /* slots not stored are NaN */
    memset(p->vc, 0xff, sizeof(p->vc));
    for (int i = 0; i < AKEYS; i++) {
        for (int j = 0; j < AD; j++) {
            p->k[i][j] = as_stored(rnd_float());
            p->v[i][j] = as_stored(rnd_float());
        }
    }
    for (int i = 0; i < AQ * AD; i++)
        p->q[i / AD][i % AD] = rnd_float() * 0.2f;
    return p;
}

static void
past_store(struct past *p, int n_keys)
{
    for (int i = 0; i < n_keys; i++) {
        ks[0]->k_store[0](p->kc[i / 64], (uint32_t)i % 64, p->k[i], AD);
        ks[0]->v_store[0](p->vc[i / 64], (uint32_t)i % 64, p->v[i], AD);
    }
}

static void
attention_exact(const struct past *p, const float *q, int lo, int hi, double *out)
{
    double w[AKEYS], top = -INFINITY, sum = 0;
    for (int i = lo; i < hi; i++) {
        w[i] = 0;
        for (int j = 0; j < AD; j++)
            w[i] += (double)q[j] * p->k[i][j];
        top = fmax(top, w[i]);
    }
    memset(out, 0, AD * sizeof(*out));
    for (int i = lo; i < hi; i++) {
        w[i] = exp(w[i] - top);
        sum += w[i];
        for (int j = 0; j < AD; j++)
            out[j] += w[i] * p->v[i][j];
    }
    for (int j = 0; j < AD; j++)
        out[j] /= sum;
}

/* All queries, visible keys lo[i]..hi[i]-1 of the whole past, by chunk, merge and finish. */
static void
attention(const struct ply_kernels *k, struct past *p, int n, const int *lo, const int *hi,
          float (*out)[AD])
{
    float m[AQ], l[AQ], o[AQ][AD], mc[AQ], lc[AQ], oc[AQ][AD];
    bool any[AQ] = {0};
    for (int c = 0; c < CHUNKS; c++) {
        struct ply_attn_query q[AQ];
        int of[AQ], seen = 0;
        for (int i = 0; i < n; i++) {
            const int from = lo[i] > c * 64 ? lo[i] - c * 64 : 0;
            const int to = hi[i] < c * 64 + 64 ? hi[i] - c * 64 : 64;
            if (from >= to)
                continue;
            of[seen] = i;
            q[seen] = (struct ply_attn_query){p->q[i], &mc[i],         &lc[i],
                                              oc[i],   (uint32_t)from, (uint32_t)to};
            seen++;
        }
        if (seen)
            k->attn_chunk[0](p->kc[c], p->vc[c], AD, q, (size_t)seen, p->scratch);
        for (int s = 0; s < seen; s++) {
            const int i = of[s];
            if (any[i]) {
                k->attn_merge(&m[i], &l[i], o[i], mc[i], lc[i], oc[i], AD);
            } else {
                m[i] = mc[i];
                l[i] = lc[i];
                memcpy(o[i], oc[i], sizeof(o[i]));
                any[i] = true;
            }
        }
    }
    for (int i = 0; i < n; i++)
        k->attn_finish(out[i], o[i], l[i], AD);
}

static void
attention_values(void **unused)
{
    struct past *p = past_new();
    past_store(p, AKEYS);
    const int lo[AQ] = {0, 0, 0, 63, 64, 65, 100, 190, 127},
              hi[AQ] = {1, 64, 192, 65, 128, 192, 101, 192, 129};
    for (size_t v = 0; v < n_ks; v++) {
        float got[AQ][AD];
        attention(ks[v], p, AQ, lo, hi, got);
        for (int i = 0; i < AQ; i++) {
            double want[AD];
            attention_exact(p, p->q[i], lo[i], hi[i], want);
            for (int j = 0; j < AD; j++)
                assert_true(fabs(got[i][j] - want[j]) < 2e-5);
        }
    }
    free(p);
}

/* A query's result depends neither on the queries beside it nor on what lies in slots it does
 * not see: with three keys more in the cache, and alone, it is the same. */
static void
attention_by_query(void **unused)
{
    struct past *p = past_new();
    int lo[AQ], hi[AQ];
    for (int i = 0; i < AQ; i++) {
        hi[i] = 1 + (int)(rnd() % 100);
        lo[i] = i % 2 ? (int)(rnd() % (unsigned)hi[i]) : 0;
    }
    hi[AQ - 1] = 100;
    for (size_t v = 0; v < n_ks; v++) {
        float all[AQ][AD], more[AQ][AD], alone[1][AD];
        past_store(p, 100);
        attention(ks[v], p, AQ, lo, hi, all);
        past_store(p, 103);
        attention(ks[v], p, AQ, lo, hi, more);
        assert_memory_equal(all, more, sizeof(all));
        for (int i = 0; i < AQ; i++) {
            struct past *q = malloc(sizeof(*q));
            memcpy(q, p, sizeof(*q));
            memcpy(q->q[0], p->q[i], sizeof(q->q[0]));
            attention(ks[v], q, 1, lo + i, hi + i, alone);
            assert_memory_equal(alone[0], all[i], sizeof(alone[0]));
            free(q);
        }
    }
    free(p);
}

/* Heads of any size, also where 16 does not divide it (f16) or neither 64 does; as many queries
 * as make one tile, several, and parts of one; ranges that overlap or do not. */
static void
attention_any_head(void **unused)
{
    static const uint32_t dims[] = {2, 32, 40, 80, 96, 100, 160, 256};
    enum { N = 13, D = 256 };
    static uint8_t kc[PLY_CHUNK * D * 2], vc[PLY_CHUNK * D * 2];
    static float x[D], qs[N][D], o[2][N][D + 1], m[2][N], l[2][N];
    static float scratch[2 * PLY_CHUNK * D] __attribute__((aligned(64)));
    struct ply_attn_query q[2][N];
    for (size_t i = 0; i < PLY_COUNT(dims) * PLY_KERN_KV_N; i++) {
        const uint32_t d = dims[i / PLY_KERN_KV_N], kv = i % PLY_KERN_KV_N;
        if (kv == PLY_KERN_KV_Q8_0 && d % 32)
            continue;
        for (uint32_t s = 0; s < PLY_CHUNK; s++) {
            for (uint32_t c = 0; c < d; c++)
                x[c] = rnd_float();
            ks[0]->k_store[kv](kc, s, x, d);
            ks[0]->v_store[kv](vc, s, x, d);
        }
        for (size_t n = 1; n <= N; n++) {
            for (size_t j = 0; j < n; j++) {
                const uint32_t hi = 1 + rnd() % PLY_CHUNK, lo = rnd() % 2 ? rnd() % hi : 0;
                for (uint32_t c = 0; c < d; c++)
                    qs[j][c] = rnd_float() * 0.3f;
                for (int v = 0; v < 2; v++)
                    q[v][j] = (struct ply_attn_query){qs[j], &m[v][j], &l[v][j], o[v][j], lo, hi};
            }
            memset(o, 0x5a, sizeof(o));
            ks[0]->attn_chunk[kv](kc, vc, d, q[0], n, scratch);
            for (size_t v = 1; v < n_ks; v++) {
                memset(o[1], 0x5a, sizeof(o[1]));
                ks[v]->attn_chunk[kv](kc, vc, d, q[1], n, scratch);
                assert_memory_equal(m[0], m[1], n * sizeof(float));
                assert_memory_equal(l[0], l[1], n * sizeof(float));
                assert_memory_equal(o[0], o[1], sizeof(o[0])); /* nothing written past d */
            }
        }
    }
}

static int
find_variants(void **unused)
{
    n_ks = variants(ks);
    for (size_t v = 0; v < n_ks; v++)
        print_message("# variant %s\n", ks[v]->isa);
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variant_agrees),
        cmocka_unit_test(check_finds_faults),
        cmocka_unit_test(a8_codes),
        cmocka_unit_test(a8_outliers),
        cmocka_unit_test(a12_codes),
        cmocka_unit_test(exp_values),
        cmocka_unit_test(activation_values),
        cmocka_unit_test(norm_by_lanes),
        cmocka_unit_test(rope_values),
        cmocka_unit_test(f16_stores),
        cmocka_unit_test(store_places),
        cmocka_unit_test(attention_values),
        cmocka_unit_test(attention_by_query),
        cmocka_unit_test(attention_any_head),
    };
    return cmocka_run_group_tests(tests, find_variants, NULL);
}

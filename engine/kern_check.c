/* SPDX-License-Identifier: MIT
 * A kernel variant against ref, bit for bit, on input chosen to be awkward: extreme codes,
 * subnormals, infinities, NaN, -0, sizes that are no multiple of anything, pointers that are
 * aligned to nothing, and guards around everything that is written. Small enough to run at each
 * start; tests/engine/test_kernels.c goes further. */
#include <stdlib.h>
#include <string.h>

#include "engine/kern.h"
#include "engine/kern_layout.h"

#define N_MAX 520u /* floats in a vector */
#define M_MAX 9u   /* vectors */
#define D_MAX 96u  /* head dimension */
#define N_QUERY 7u
#define GUARD 16u /* floats before and after an output */
#define ROWS 21u  /* one whole panel and part of one */
#define N_PANELS ((ROWS + PLY_PANEL - 1) / PLY_PANEL)

enum fill { FILL_PLAIN, FILL_EXTREME, FILL_TINY, FILL_SPECIAL, FILL_N };

/* One variant's inputs and outputs; two of them are compared. */
struct side {
    float x[N_MAX + 1], y[N_MAX + 1], out[N_MAX * M_MAX + 2 * GUARD];
    int8_t q[N_MAX * M_MAX], lo[N_MAX * M_MAX];
    uint8_t fine[N_MAX * M_MAX / 32];
    float d[N_MAX * M_MAX / 32];
    int32_t sum16[N_MAX * M_MAX / 16];
    uint8_t kv[2][PLY_CHUNK * D_MAX * 2];
    float m[N_QUERY], l[N_QUERY], o[N_QUERY][D_MAX + 1];
};

struct check {
    const struct ply_kernels *k[2]; /* ref, and the one under test */
    struct side s[2];
    uint64_t seed;
    float in[N_MAX * M_MAX + 1];
    uint8_t packed[N_PANELS * 3392];
    float *scratch; /* ply_attn_scratch_floats(D_MAX), 64-byte aligned */
};

/* splitmix64 */
static uint32_t
rnd(struct check *c)
{
    uint64_t z = c->seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

static float
from_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static float
fill_float(struct check *c, enum fill fill)
{
    static const uint32_t special[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345};
    uint32_t u = rnd(c), sign = u & 0x80000000u;
    switch (fill) {
    case FILL_EXTREME: return from_bits(sign | 0x7f7fffffu >> (u & 1)); /* the largest, about 1.7 */
    case FILL_TINY: return from_bits(u & 0x807fffffu);
    case FILL_SPECIAL:
        if (u % 8 == 0)
            return from_bits(special[u / 8 % 5]);
        return u % 8 == 1 ? from_bits(sign) : from_bits(u);
    default: /* in [-4, 4), one in four in [-128, 128): past both ends of the exponential */
        return (float)(int32_t)u * (u % 4 ? 0x1p-29f : 0x1p-24f);
    }
}

static void
fill_floats(struct check *c, float *x, size_t n, enum fill fill)
{
    for (size_t i = 0; i < n; i++)
        x[i] = fill_float(c, fill);
}

/* Equal but for NaN payloads. */
static bool
same_floats(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool nan = a[i] != a[i];
        if (nan != (b[i] != b[i]) || (!nan && memcmp(a + i, b + i, sizeof *a) != 0))
            return false;
    }
    return true;
}

static void
clear_outputs(struct check *c)
{
    for (int i = 0; i < 2; i++)
        memset(c->s[i].out, 0x5a, sizeof c->s[i].out);
}

/* Outputs and the guards around them. */
static bool
same_outputs(const struct check *c)
{
    return same_floats(c->s[0].out, c->s[1].out, sizeof c->s[0].out / sizeof(float));
}

static struct ply_acts
acts_of(struct side *s, uint32_t n, bool a12)
{
    return (struct ply_acts){
        .q = s->q, .lo = s->lo, .fine = a12 ? NULL : s->fine, .d = s->d, .sum16 = s->sum16,
        .n = n};
}

static bool
check_quant(struct check *c, bool a12)
{
    static const uint32_t sizes[] = {32, 96, 512};
    for (unsigned v = 0; v < 3 * FILL_N; v++) {
        const uint32_t n = sizes[v % 3], m = n == 512 ? 1 : 3;
        fill_floats(c, c->in, N_MAX * M_MAX + 1, (enum fill)(v / 3));
        c->in[40] *= 1e4f; /* an outlier */
        for (int i = 0; i < 2; i++) {
            memset(&c->s[i], 0x5a, sizeof c->s[i]);
            struct ply_acts a = acts_of(&c->s[i], n, a12);
            (a12 ? c->k[i]->quant_a12 : c->k[i]->quant_a8)(c->in + 1, n + 5, m, 1, &a);
        }
        if (memcmp(c->s[0].q, c->s[1].q, sizeof c->s[0].q) ||
            memcmp(c->s[0].lo, c->s[1].lo, sizeof c->s[0].lo) ||
            memcmp(c->s[0].fine, c->s[1].fine, sizeof c->s[0].fine) ||
            memcmp(c->s[0].sum16, c->s[1].sum16, sizeof c->s[0].sum16) ||
            !same_floats(c->s[0].d, c->s[1].d, sizeof c->s[0].d / sizeof(float)))
            return false;
    }
    return true;
}

/* A panel's bytes at random, then scales and sub-scales as a file could have them. */
static void
fill_packed(struct check *c, enum ply_mm_slot slot, uint32_t n_in, enum fill fill)
{
    const struct ply_mm_layout l = ply_mm_layout(slot);
    const uint64_t bytes = ply_mm_panel_bytes(l, n_in);
    for (uint64_t i = 0; i < N_PANELS * bytes; i++)
        c->packed[i] = fill == FILL_EXTREME ? 0xff : (uint8_t)rnd(c);
    for (uint32_t b = 0; b < N_PANELS * n_in / 32; b++) {
        uint8_t *panel = c->packed + b / (n_in / 32) * bytes;
        uint8_t *scales = panel + ply_mm_scales_at(l, b % (n_in / 32));
        uint8_t *sub = panel + ply_mm_codes_at(l, b % (n_in / 32)) + ply_mm_code_bytes(l);
        for (unsigned i = 0; i < ply_mm_scale_bytes(l); i += 2) {
            uint16_t h = (uint16_t)rnd(c);
            if (fill != FILL_SPECIAL) /* in [2^-14, 2], or subnormal */
                h = fill == FILL_TINY ? h & 0x83ff
                                      : (h & 0x83ff) | (uint16_t)((h >> 10 & 15) << 10);
            memcpy(scales + i, &h, sizeof h);
        }
        for (unsigned i = 0; l.super && i < 32; i++)
            sub[i] = l.min ? sub[i] & 63 : fill == FILL_EXTREME ? 0x80 : sub[i];
    }
}

static bool
check_mm(struct check *c, enum ply_mm_slot slot, bool a12)
{
    static const uint32_t ms[] = {1, M_MAX, 2, 4};
    const uint32_t n_in = ply_mm_layout(slot).super ? 256 : 96;
    for (unsigned fill = 0; fill < FILL_N; fill++) {
        const uint32_t m = ms[fill];
        fill_packed(c, slot, n_in, (enum fill)fill);
        fill_floats(c, c->in, n_in * m, fill == FILL_SPECIAL ? FILL_SPECIAL : FILL_PLAIN);
        for (uint32_t i = 0; fill == FILL_EXTREME && i < n_in * m; i++)
            c->in[i] = i / n_in % 2 ? -1.0f : 1.0f; /* all codes at one end */
        for (uint32_t t = 0; fill != FILL_EXTREME && t < m; t++)
            c->in[t * n_in + 37 * t % n_in] *= t % 3 ? 1e4f : 1.0f; /* some blocks are fine */
        struct ply_acts a = acts_of(&c->s[0], n_in, a12);
        (a12 ? c->k[0]->quant_a12 : c->k[0]->quant_a8)(c->in, n_in, m, 0, &a);
        clear_outputs(c);
        for (int i = 0; i < 2; i++)
            (a12 ? c->k[i]->mm_a12 : c->k[i]->mm_a8)[slot](c->packed, n_in, ROWS, 0, N_PANELS, &a,
                                                           m, c->s[i].out + GUARD + 1, ROWS + 2);
        if (!same_outputs(c))
            return false;
    }
    return true;
}

enum vec {
    VEC_NORM,
    VEC_ADD,
    VEC_SILU,
    VEC_GELU,
    VEC_SCALE,
    VEC_EXP,
    VEC_ROPE,
    VEC_ROPE_NEOX,
    VEC_MERGE,
    VEC_FINISH
};

static void
run_vec(const struct ply_kernels *k, enum vec v, struct side *s, uint32_t n)
{
    float *out = s->out + GUARD + 1;
    float m = s->y[0], l = s->y[1];
    switch (v) {
    case VEC_NORM: k->rms_norm(out, s->x + 1, s->y + 1, n, 1e-5f); break;
    case VEC_ADD: k->add(out, s->y + 1, n); break;
    case VEC_SILU: k->silu_mul(out, s->y + 1, n); break;
    case VEC_GELU: k->gelu_tanh_mul(out, s->y + 1, n); break;
    case VEC_SCALE: k->scale(out, s->y[0], n); break;
    case VEC_EXP: k->exp(out, s->x + 1, n); break;
    case VEC_ROPE: k->rope(out, s->y + 1, n & ~1u, false); break;
    case VEC_ROPE_NEOX: k->rope(out, s->y + 1, n & ~1u, true); break;
    case VEC_MERGE:
        k->attn_merge(&m, &l, out, s->y[2], s->y[3], s->x + 1, n);
        out[n] = m;
        out[n + 1] = l;
        break;
    case VEC_FINISH: k->attn_finish(out, s->x + 1, s->y[0], n); break;
    }
}

static bool
check_vec(struct check *c, enum vec v)
{
    static const uint32_t sizes[] = {1, 7, 16, 31, 64, 259, N_MAX};
    for (unsigned i = 0; i < 7 * FILL_N; i++) {
        const uint32_t n = sizes[i % 7];
        clear_outputs(c);
        for (int j = 0; j < 2; j++) {
            c->seed = i; /* the same input twice */
            fill_floats(c, c->s[j].x, N_MAX + 1, (enum fill)(i / 7));
            fill_floats(c, c->s[j].y, N_MAX + 1, (enum fill)(i / 7));
            fill_floats(c, c->s[j].out + GUARD + 1, n, (enum fill)(i / 7));
            run_vec(c->k[j], v, &c->s[j], n);
        }
        if (!same_outputs(c))
            return false;
    }
    return true;
}

static bool
check_kv_store(struct check *c, enum ply_kern_kv kv)
{
    for (unsigned v = 0; v < 4 * FILL_N; v++) {
        const uint32_t d = v % 2 ? D_MAX : 32, slot = rnd(c) % PLY_CHUNK;
        fill_floats(c, c->in, d + 1, (enum fill)(v / 4));
        for (int i = 0; i < 2; i++) {
            memset(c->s[i].kv, 0x5a, sizeof c->s[i].kv);
            c->k[i]->k_store[kv](c->s[i].kv[0], slot, c->in + 1, d);
            c->k[i]->v_store[kv](c->s[i].kv[1], slot, c->in + 1, d);
        }
        if (memcmp(c->s[0].kv, c->s[1].kv, sizeof c->s[0].kv))
            return false;
    }
    return true;
}

/* Queries with visible ranges of their own over a chunk whose other slots hold anything. */
static bool
check_attn(struct check *c, enum ply_kern_kv kv)
{
    for (unsigned v = 0; v < 3 * FILL_N; v++) {
        const uint32_t d = v % 3 == 0 ? D_MAX : v % 3 == 1 ? 64 : 32;
        struct ply_attn_query q[2][N_QUERY];
        memset(c->s[0].kv, v % 2 ? 0xff : 0x5a, sizeof c->s[0].kv);
        for (uint32_t slot = 0; slot < PLY_CHUNK - v; slot++) {
            fill_floats(c, c->s[0].x, 2 * d,
                        v / 3 == FILL_EXTREME ? FILL_PLAIN : (enum fill)(v / 3));
            c->k[0]->k_store[kv](c->s[0].kv[0], slot, c->s[0].x, d);
            c->k[0]->v_store[kv](c->s[0].kv[1], slot, c->s[0].x + d, d);
        }
        fill_floats(c, c->in, N_QUERY * d, v / 3 == FILL_SPECIAL ? FILL_PLAIN : (enum fill)(v / 3));
        for (unsigned j = 0; j < N_QUERY; j++) {
            const uint32_t hi = 1 + rnd(c) % (PLY_CHUNK - v), lo = j % 3 ? rnd(c) % hi : 0;
            for (int i = 0; i < 2; i++)
                q[i][j] = (struct ply_attn_query){
                    c->in + j * d, &c->s[i].m[j], &c->s[i].l[j], c->s[i].o[j] + 1, lo, hi};
        }
        for (int i = 0; i < 2; i++) {
            memset(c->s[i].o, 0x5a, sizeof c->s[i].o);
            c->k[i]->attn_chunk[kv](c->s[0].kv[0], c->s[0].kv[1], d, q[i], 1 + v % N_QUERY,
                                    c->scratch);
        }
        const size_t n = 1 + v % N_QUERY;
        if (!same_floats(c->s[0].m, c->s[1].m, n) || !same_floats(c->s[0].l, c->s[1].l, n) ||
            !same_floats(c->s[0].o[0], c->s[1].o[0], sizeof c->s[0].o / sizeof(float)))
            return false;
    }
    return true;
}

static const char *
check_table(struct check *c)
{
    static const char *const mm[2][PLY_MM_SLOTS] = {
        {"mm_a8 Q4_0", "mm_a8 Q4_1", "mm_a8 Q5_0", "mm_a8 Q5_1", "mm_a8 Q8_0", "mm_a8 Q4_K",
         "mm_a8 Q5_K", "mm_a8 Q6_K"},
        {"mm_a12 Q4_0", "mm_a12 Q4_1", "mm_a12 Q5_0", "mm_a12 Q5_1", "mm_a12 Q8_0", "mm_a12 Q4_K",
         "mm_a12 Q5_K", "mm_a12 Q6_K"},
    };
    static const char *const vec[] = {"rms_norm",   "add",        "silu_mul", "gelu_tanh_mul",
                                      "scale",      "exp",        "rope",     "rope neox",
                                      "attn_merge", "attn_finish"};
    static const char *const store[] = {"kv store f16", "kv store q8_0"};
    static const char *const attn[] = {"attn_chunk f16", "attn_chunk q8_0"};
    for (int a12 = 0; a12 < 2; a12++) {
        if (!check_quant(c, a12))
            return a12 ? "quant_a12" : "quant_a8";
        for (int slot = 0; slot < PLY_MM_SLOTS; slot++) {
            if (!check_mm(c, (enum ply_mm_slot)slot, a12))
                return mm[a12][slot];
        }
    }
    for (int v = VEC_NORM; v <= VEC_FINISH; v++) {
        if (!check_vec(c, (enum vec)v))
            return vec[v];
    }
    for (int kv = 0; kv < PLY_KERN_KV_N; kv++) {
        if (!check_kv_store(c, (enum ply_kern_kv)kv))
            return store[kv];
        if (!check_attn(c, (enum ply_kern_kv)kv))
            return attn[kv];
    }
    return NULL;
}

const char *
ply_kernels_check(const struct ply_kernels *k)
{
    struct check *c = calloc(1, sizeof *c);
    float *scratch = aligned_alloc(64, ply_attn_scratch_floats(D_MAX) * sizeof(float));
    const char *differs = "memory for the check";
    if (c && scratch) {
        c->k[0] = ply_kernels_ref();
        c->k[1] = k;
        c->scratch = scratch;
        differs = check_table(c);
    }
    free(scratch);
    free(c);
    return differs;
}

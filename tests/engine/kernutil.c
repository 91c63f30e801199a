/* SPDX-License-Identifier: MIT */
#include "tests/engine/kernutil.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/err.h"
#include "engine/cpu.h"
#include "engine/matmul.h"

const struct ply_kernels *ply_kernels_ref_c(void); /* kern_table.c: the build without FMA */

static uint64_t state = 1;

void
rnd_seed(uint64_t seed)
{
    state = seed;
}

uint32_t
rnd(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

float
rnd_float(void)
{
    return (float)(int32_t)rnd() * 0x1p-29f;
}

float
float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

uint32_t
bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

bool
same_floats(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool nan = a[i] != a[i];
        if (nan != (b[i] != b[i]) || (!nan && bits_of(a[i]) != bits_of(b[i])))
            return false;
    }
    return true;
}

const enum ply_type slot_type[PLY_MM_SLOTS] = {
    PLY_TYPE_Q4_0, PLY_TYPE_Q4_1, PLY_TYPE_Q5_0, PLY_TYPE_Q5_1,
    PLY_TYPE_Q8_0, PLY_TYPE_Q4_K, PLY_TYPE_Q5_K, PLY_TYPE_Q6_K,
};

/* Offsets of the f16 scale and minimum in a block, -1 for none (ggml-common.h). */
static void
scale_offsets(enum ply_type type, int *d, int *m)
{
    *d = type == PLY_TYPE_Q6_K ? 208 : 0;
    switch (type) {
    case PLY_TYPE_Q4_1:
    case PLY_TYPE_Q5_1:
    case PLY_TYPE_Q4_K:
    case PLY_TYPE_Q5_K: *m = 2; break;
    default: *m = -1; break;
    }
}

static void
put_f16(uint8_t *p, float f)
{
    uint16_t h = ply_f32_to_f16(f);
    memcpy(p, &h, sizeof(h));
}

static void
set_scales(uint8_t *block, enum ply_type type, enum weights kind)
{
    int d_at, m_at;
    scale_offsets(type, &d_at, &m_at);
    const bool super = type == PLY_TYPE_Q4_K || type == PLY_TYPE_Q5_K || type == PLY_TYPE_Q6_K;
    float d = (0.01f + 0.01f * (float)(rnd() % 16)) / (super ? 32.0f : 1.0f);
    float m = super ? 7.5f * d : -7.5f * d; /* K types subtract theirs */
    if (kind == WEIGHTS_EXTREME) {
        d = rnd() % 2 ? 0.75f : 0.001f; /* scales that differ from block to block */
        m = rnd() % 2 ? -60000.0f * d : 0.5f;
    }
    put_f16(block + d_at, d);
    if (m_at >= 0)
        put_f16(block + m_at, m);
}

struct ply_tensor
weights_new(enum ply_type type, uint32_t n_in, uint32_t n_out, enum weights kind)
{
    const struct ply_type_traits *traits = ply_type_find(type);
    const size_t n_blocks = (size_t)n_in / traits->block * n_out;
    uint8_t *data = malloc(n_blocks * traits->block_bytes + 1);
    for (size_t i = 0; i < n_blocks; i++) {
        uint8_t *block = data + i * traits->block_bytes;
        const uint8_t end = rnd() % 4 ? 0xff : type == PLY_TYPE_Q8_0 ? 0x80 : 0x00;
        for (unsigned j = 0; j < traits->block_bytes; j++)
            block[j] = kind == WEIGHTS_EXTREME ? end : (uint8_t)rnd();
        if (kind == WEIGHTS_EXTREME && type == PLY_TYPE_Q6_K)
            memset(block + 192, 0x80, 16); /* sub-scales of -128 */
        if (kind != WEIGHTS_ANY)
            set_scales(block, type, kind);
    }
    return (struct ply_tensor){.type = traits, .n_in = n_in, .n_out = n_out, .data = data};
}

uint8_t *
packed_new(const struct ply_tensor *t)
{
    uint8_t *packed = aligned_alloc(64, ply_mat_packed_bytes(t));
    ply_mat_pack(t, packed, 0, (t->n_out + PLY_PANEL - 1) / PLY_PANEL);
    return packed;
}

struct ply_acts
acts_new(const struct ply_kernels *k, const float *x, uint32_t n, uint32_t m, bool a12)
{
    const size_t all = (size_t)n * m;
    struct ply_acts a = {.q = malloc(all),
                         .lo = malloc(all),
                         .fine = a12 ? NULL : malloc(all / 32),
                         .d = malloc(all / 32 * sizeof(float)),
                         .sum16 = malloc(all / 16 * sizeof(int32_t)),
                         .n = n};
    (a12 ? k->quant_a12 : k->quant_a8)(x, n, m, 0, &a);
    return a;
}

void
acts_free(struct ply_acts *a)
{
    free(a->q);
    free(a->lo);
    free(a->fine);
    free(a->d);
    free(a->sum16);
}

size_t
variants(const struct ply_kernels *out[4])
{
    size_t n = 0;
    out[n++] = ply_kernels_ref();
    if (ply_kernels_ref_c() != out[0])
        out[n++] = ply_kernels_ref_c();
    for (enum ply_isa isa = PLY_ISA_AVX2; isa <= PLY_ISA_AVX512; isa++) {
        const struct ply_kernels *k = ply_cpu_kernels(isa, NULL);
        if (k)
            out[n++] = k;
    }
    return n;
}

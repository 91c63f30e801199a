/* SPDX-License-Identifier: MIT
 * Packed weight matrices: nothing is lost in packing, products are right and do not depend on
 * variant, number of vectors or threads (B87: every type on every level that can run here). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "engine/blas.h"
#include "engine/cpu.h"
#include "engine/matmul.h"
#include "tests/engine/kernutil.h"

#define N_OUT 37u /* two panels and five rows */
#define M_MAX 67u
#define GUARD 0x7fedcba9u

static const uint32_t ms[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 64, M_MAX};

/* Columns that a type allows: one block, several, no multiple of 256 where it may, and more than
 * a slab of 20 blocks (kern_mm_impl.h), as 67 vectors are more than are taken at once. */
static const uint32_t *
columns(enum ply_type type)
{
    static const uint32_t small[] = {32, 96, 256, 576, 672, 0}, super[] = {256, 768, 0};
    return ply_type_find(type)->block == 32 ? small : super;
}

static float *
vectors_new(size_t n)
{
    float *x = malloc(n * sizeof(*x));
    for (size_t i = 0; i < n; i++)
        x[i] = rnd_float() * (rnd() % 16 ? 1.0f : 20.0f);
    return x;
}

/* The product of all panels, split after the first; the gaps between rows must stay. */
static float *
product_new(const struct ply_kernels *k, int slot, const uint8_t *packed, const struct ply_acts *a,
            uint32_t m)
{
    const size_t ld = N_OUT + 3;
    float *out = malloc(ld * m * sizeof(*out));
    for (size_t i = 0; i < ld * m; i++)
        out[i] = float_of(GUARD);
    ply_mm_fn mm = (a->fine ? k->mm_a8 : k->mm_a12)[slot];
    mm(packed, a->n, N_OUT, 0, 1, a, m, out, ld);
    mm(packed, a->n, N_OUT, 1, 3, a, m, out, ld);
    for (size_t i = 0; i < ld * m; i++)
        assert_int_equal(bits_of(out[i]) == GUARD, i % ld >= N_OUT);
    return out;
}

static void
pack_and_rows(void **unused)
{
    for (int slot = 0; slot < PLY_MM_SLOTS; slot++) {
        for (const uint32_t *n = columns(slot_type[slot]); *n; n++) {
            struct ply_tensor t = weights_new(slot_type[slot], *n, N_OUT, WEIGHTS_ANY);
            uint8_t *packed = packed_new(&t);
            struct ply_mat w = {.type = t.type, .n_in = *n, .n_out = N_OUT, .packed = packed};
            float *want = malloc(*n * sizeof(float)), *got = malloc(*n * sizeof(float));
            uint64_t row_bytes;
            assert_true(ply_type_row_bytes(t.type, *n, &row_bytes));
            for (uint32_t r = 0; r < N_OUT; r++) {
                t.type->dequant(t.data + r * row_bytes, want, *n);
                ply_mat_row(&w, r, got);
                assert_true(same_floats(want, got, *n));
            }
            free(want);
            free(got);
            free(packed);
            free((void *)t.data);
        }
    }
}

/* The packed copy replaces the file's pages: it must not be much larger. */
static void
packed_size(void **unused)
{
    for (int slot = 0; slot < PLY_MM_SLOTS; slot++) {
        const struct ply_type_traits *type = ply_type_find(slot_type[slot]);
        struct ply_tensor t = {.type = type, .n_in = 2048, .n_out = 256};
        uint64_t row_bytes;
        assert_true(ply_type_row_bytes(type, 2048, &row_bytes));
        assert_in_range(ply_mat_packed_bytes(&t), row_bytes * 256, row_bytes * 256 * 103 / 100);
    }
    struct ply_tensor f16 = {.type = ply_type_find(PLY_TYPE_F16), .n_in = 64, .n_out = 64};
    assert_int_equal(ply_mat_packed_bytes(&f16), 0);
}

/* Every variant gives ref's bits, whatever the weights. */
static void
products_agree(void **unused)
{
    const struct ply_kernels *ks[4];
    const size_t n_ks = variants(ks);
    for (int i = 0; i < PLY_MM_SLOTS * 2 * 3; i++) {
        const int slot = i / 6;
        const bool a12 = i % 2;
        for (const uint32_t *n = columns(slot_type[slot]); *n; n++) {
            struct ply_tensor t =
                weights_new(slot_type[slot], *n, N_OUT, (enum weights)(i / 2 % 3));
            uint8_t *packed = packed_new(&t);
            float *x = vectors_new(M_MAX * (size_t)*n);
            if (i % 2 == 0)
                x[rnd() % *n] = NAN;
            struct ply_acts a = acts_new(ks[0], x, *n, M_MAX, a12);
            for (size_t j = 0; j < PLY_COUNT(ms); j++) {
                float *want = product_new(ks[0], slot, packed, &a, ms[j]);
                for (size_t v = 1; v < n_ks; v++) {
                    float *got = product_new(ks[v], slot, packed, &a, ms[j]);
                    assert_true(same_floats(want, got, (size_t)(N_OUT + 3) * ms[j]));
                    free(got);
                }
                free(want);
            }
            acts_free(&a);
            free(x);
            free(packed);
            free((void *)t.data);
        }
    }
}

/* A vector's product does not depend on the vectors beside it. */
static void
products_by_vector(void **unused)
{
    const struct ply_kernels *ks[4];
    const size_t n_ks = variants(ks);
    for (size_t v = 0; v < n_ks; v++) {
        for (int i = 0; i < PLY_MM_SLOTS * 2; i++) {
            const uint32_t n = 512, m = 13;
            struct ply_tensor t = weights_new(slot_type[i / 2], n, N_OUT, WEIGHTS_PLAIN);
            uint8_t *packed = packed_new(&t);
            float *x = vectors_new((size_t)m * n);
            struct ply_acts all = acts_new(ks[v], x, n, m, i % 2);
            float *want = product_new(ks[v], i / 2, packed, &all, m);
            for (uint32_t j = 0; j < m; j++) {
                struct ply_acts one = acts_new(ks[v], x + (size_t)j * n, n, 1, i % 2);
                float *got = product_new(ks[v], i / 2, packed, &one, 1);
                assert_memory_equal(want + (size_t)j * (N_OUT + 3), got, N_OUT * sizeof(float));
                free(got);
                acts_free(&one);
            }
            free(want);
            acts_free(&all);
            free(x);
            free(packed);
            free((void *)t.data);
        }
    }
}

/* What A8 or A12 says the vector is. */
static double
code_value(const struct ply_acts *a, uint32_t i)
{
    const bool fine = !a->fine || a->fine[i / 32];
    return (fine ? 32 * a->q[i] + a->lo[i] : a->q[i]) * (double)a->d[i / 32];
}

/* One row in double: the product of the quantised operands, the sum of its terms' magnitudes,
 * the exact product with x, and how far half a step of every activation could move it. */
struct exact {
    double product, magnitude, plain, step;
};

static struct exact
exact_row(const float *w, const struct ply_acts *a, const float *x)
{
    struct exact e = {0};
    for (uint32_t i = 0; i < a->n; i++) {
        e.product += w[i] * code_value(a, i);
        e.magnitude += fabs(w[i] * code_value(a, i));
        e.plain += (double)w[i] * x[i];
        e.step += fabs(w[i] * (double)a->d[i / 32]) * 0.5;
    }
    return e;
}

/* B87: 1,000 random blocks, and blocks whose codes, scales and activations are all at an end,
 * against double precision; relative error below 1e-3 of the result, or, where positive and
 * negative terms cancel, 1e-5 of the terms. And against the unquantised vector: no further off
 * than half a step of each activation allows. */
static void
products_are_right(void **unused)
{
    const struct ply_kernels *ks[4];
    const size_t n_ks = variants(ks);
    for (int i = 0; i < PLY_MM_SLOTS * 2 * 2; i++) {
        const bool a12 = i % 2, extreme = i / 2 % 2;
        const enum ply_type type = slot_type[i / 4];
        const uint32_t n = 28 * 256 / 8; /* 28 blocks of 32; 28 * 37 of them make 1,036 */
        const uint32_t n_in = ply_type_find(type)->block == 32 ? n : 1024;
        struct ply_tensor t =
            weights_new(type, n_in, N_OUT, extreme ? WEIGHTS_EXTREME : WEIGHTS_PLAIN);
        uint8_t *packed = packed_new(&t);
        struct ply_mat w = {.type = t.type, .n_in = n_in, .n_out = N_OUT, .packed = packed};
        float *x = vectors_new(n_in), row[1024];
        for (uint32_t j = 0; extreme && j < n_in; j++) /* codes of +-127, +-2047 */
            x[j] = j / 32 % 3 ? 3.0f : -0.5f;
        struct ply_acts a = acts_new(ks[0], x, n_in, 1, a12);
        for (size_t v = 0; v < n_ks; v++) {
            float *got = product_new(ks[v], i / 4, packed, &a, 1);
            for (uint32_t r = 0; r < N_OUT; r++) {
                ply_mat_row(&w, r, row);
                const struct exact e = exact_row(row, &a, x);
                const double err = fabs(got[r] - e.product);
                assert_true(err <= 1e-3 * fabs(e.product) || err <= 1e-5 * e.magnitude);
                assert_true(fabs(got[r] - e.plain) <= e.step * 1.001 + 1e-5 * e.magnitude);
            }
            free(got);
        }
        acts_free(&a);
        free(x);
        free(packed);
        free((void *)t.data);
    }
}

/* Threads share the rows; the union of their parts is the whole, with the same bits. */
static void
thread_split(void **unused)
{
    const struct ply_kernels *k = ply_cpu_kernels(PLY_ISA_AUTO, NULL);
    struct ply_tensor t = weights_new(PLY_TYPE_Q4_1, 96, N_OUT, WEIGHTS_PLAIN);
    uint8_t *packed = packed_new(&t);
    struct ply_mat w = {.type = t.type, .n_in = 96, .n_out = N_OUT, .packed = packed};
    float *x = vectors_new(96 * 5);
    struct ply_acts a = acts_new(k, x, 96, 5, false);
    float *want = product_new(k, 1, packed, &a, 5);
    for (int nth = 1; nth <= 9; nth++) {
        float out[(N_OUT + 3) * 5];
        for (size_t i = 0; i < PLY_COUNT(out); i++)
            out[i] = float_of(GUARD);
        for (int ith = 0; ith < nth; ith++)
            ply_matmul(k, &w, &a, NULL, 0, 5, out, N_OUT + 3, NULL, ith, nth);
        assert_memory_equal(out, want, sizeof(out));
    }
    free(want);
    acts_free(&a);
    free(x);
    free(packed);
    free((void *)t.data);
}

/* Types without a kernel, and all types at full precision, go through OpenBLAS. */
static void
through_blas(void **unused)
{
    static const enum ply_type types[] = {PLY_TYPE_F32,  PLY_TYPE_F16,  PLY_TYPE_BF16,
                                          PLY_TYPE_Q2_K, PLY_TYPE_Q3_K, PLY_TYPE_Q4_1,
                                          PLY_TYPE_Q6_K};
    struct ply_err err = {0};
    if (ply_blas_load(&err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < PLY_COUNT(types); i++) {
        const struct ply_type_traits *type = ply_type_find(types[i]);
        const uint32_t n = 512, n_out = 150, m = 3;
        uint64_t row_bytes;
        assert_true(ply_type_row_bytes(type, n, &row_bytes));
        uint8_t *src = malloc(row_bytes * n_out);
        for (size_t j = 0; j < row_bytes * n_out; j++)
            src[j] = rnd() & 0x3f; /* no infinities and NaN in any type */
        struct ply_mat w = {.type = type, .n_in = n, .n_out = n_out, .src = src};
        float *x = vectors_new((size_t)m * n), *out = malloc(m * n_out * sizeof(float)), row[512];
        float *scratch = malloc(ply_matmul_scratch_floats(&w) * sizeof(float));
        for (int ith = 0; ith < 2; ith++)
            ply_matmul(ply_kernels_ref(), &w, NULL, x, n, m, out, n_out, scratch, ith, 2);
        for (uint32_t r = 0; r < n_out; r++) {
            ply_mat_row(&w, r, row);
            for (uint32_t j = 0; j < m; j++) {
                double want = 0, magnitude = 0;
                for (uint32_t c = 0; c < n; c++) {
                    want += (double)row[c] * x[j * n + c];
                    magnitude += fabs((double)row[c] * x[j * n + c]);
                }
                assert_true(fabs(out[j * n_out + r] - want) <= 1e-5 * magnitude);
            }
        }
        free(scratch);
        free(out);
        free(x);
        free(src);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pack_and_rows),      cmocka_unit_test(packed_size),
        cmocka_unit_test(products_agree),     cmocka_unit_test(products_by_vector),
        cmocka_unit_test(products_are_right), cmocka_unit_test(thread_split),
        cmocka_unit_test(through_blas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

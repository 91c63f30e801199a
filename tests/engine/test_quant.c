/* SPDX-License-Identifier: MIT
 * Tensor types: geometry, dequantisation against recorded values, half precision. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/num.h"
#include "engine/ply.h"
#include "engine/quant.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- dequantisation -------------------------------------------------------------------- */

static uint64_t
mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Byte i of a type's test blocks: the top byte of a SplitMix64 output. */
static uint8_t
test_byte(uint32_t type, uint64_t i)
{
    return (uint8_t)(mix(((uint64_t)type * 0x100000000u + i + 1) * 0x9e3779b97f4a7c15u) >> 56);
}

#define N_BLOCKS 64u

/* Recorded from the Python package gguf 0.19.0, gguf.quants.dequantize over N_BLOCKS blocks of
 * the bytes above: the FNV-1a 64 hash of all values' bits (every NaN as 0x7FC00000), and the first
 * four values for a person. */
static const struct {
    enum ply_type type;
    unsigned block, block_bytes;
    uint64_t hash;
    float first[4];
} recorded[] = {
    {PLY_TYPE_F32,
     1,
     4,
     0x8e1b6440aac2e1f0u,
     {-0x1.0cddc4p+113f, -0x1.58a636p+11f, -0x1.cbe67cp+5f, -0x1.6b1d0cp-118f}},
    {PLY_TYPE_F16,
     1,
     2,
     0x71fa113851182700u,
     {-0x1.d18p+10f, 0x1.664p-8f, -0x1.618p-12f, 0x1.87p+8f}},
    {PLY_TYPE_BF16,
     1,
     2,
     0x61ee1f5314d112c4u,
     {-0x1.3ep+1f, -0x1.7ep-32f, -0x1.24p+66f, -0x1.0cp-74f}},
    {PLY_TYPE_Q4_0, 32, 18, 0x34e8b224c0acad5au, {0x1.6f8p+15f, 0x1.6f8p+14f, 0, -0x1.6f8p+13f}},
    {PLY_TYPE_Q4_1,
     32,
     20,
     0x418783892f520df4u,
     {-0x1.220ba4p+9f, -0x1.21ae8cp+9f, -0x1.221b28p+9f, -0x1.2268bcp+9f}},
    {PLY_TYPE_Q5_0,
     32,
     22,
     0x0957e3269e3cda1au,
     {-0x1.5dcp+18f, 0x1.5dcp+17f, 0x1.e0e8p+18f, -0.0f}},
    {PLY_TYPE_Q5_1,
     32,
     24,
     0xdfeb03e95894c915u,
     {0x1.dc4842p+12f, 0x1.dc4714p+12f, 0x1.dc45e6p+12f, 0x1.dc425cp+12f}},
    {PLY_TYPE_Q8_0,
     32,
     34,
     0xfddd7b36589a1d22u,
     {0x1.4e47p+12f, -0x1.6aeep+12f, -0x1.8137p+12f, -0x1.34cfp+12f}},
    {PLY_TYPE_Q2_K,
     256,
     84,
     0x2df69200df81bcd6u,
     {-0x1.9e0008p+15f, -0x1.368004p+16f, -0x1.9e0008p+15f, -0x1.9e0008p+15f}},
    {PLY_TYPE_Q3_K,
     256,
     110,
     0xaad82e33827433acu,
     {-0x1.8ccp+3f, 0x1.299p+4f, -0x1.299p+4f, 0x1.8ccp+3f}},
    {PLY_TYPE_Q4_K,
     256,
     144,
     0xbff1ec56302a7ce4u,
     {0x1.7ffe8p+19f, 0x1.163b2p+21f, 0x1.397c4p+20f, 0x1.bcbdp+19f}},
    {PLY_TYPE_Q5_K,
     256,
     176,
     0x61c7c766ac4d683du,
     {0x1.1198f6p+17f, 0x1.1199eap+16f, 0x1.b5c3d4p+15f, 0x1.d11cf6p+17f}},
    {PLY_TYPE_Q6_K,
     256,
     210,
     0x7d67bfa7821f996du,
     {-0x1.00cp+10f, -0x1.f174p+14f, 0x1.912cp+14f, 0x1.00cp+11f}},
};

static void
dequant_equals_recorded_values(void **state)
{
    for (size_t r = 0; r < PLY_COUNT(recorded); r++) {
        const struct ply_type_traits *t = ply_type_find(recorded[r].type);
        assert_non_null(t);
        assert_int_equal(t->block, recorded[r].block);
        assert_int_equal(t->block_bytes, recorded[r].block_bytes);
        /* Exact sizes and an odd address: reads past the end or aligned ones show under ASan
         * and UBSan. */
        const size_t bytes = N_BLOCKS * t->block_bytes, n = N_BLOCKS * t->block;
        uint8_t *raw = malloc(bytes + 1);
        float *v = malloc(n * sizeof(*v));
        assert_true(raw && v);
        for (size_t i = 0; i < bytes; i++)
            raw[1 + i] = test_byte(t->type, i);
        t->dequant(raw + 1, v, n);
        for (size_t i = 0; i < 4; i++)
            assert_memory_equal(&v[i], &recorded[r].first[i], sizeof(float));
        if (ply_hash_logits(PLY_HASH_SEED, v, n) != recorded[r].hash)
            fail_msg("%s differs from the recorded values", t->name);
        free(raw);
        free(v);
    }
}

/* ---- tables ---------------------------------------------------------------------------- */

static void
types_have_names_and_sizes(void **state)
{
    unsigned block, bytes, n_supported = 0;
    for (uint32_t type = 0; type < 300; type++) {
        const struct ply_type_traits *t = ply_type_find(type);
        if (!t)
            continue;
        n_supported++;
        assert_int_equal(t->type, type);
        assert_string_equal(ply_type_name(type), t->name);
        assert_true(ply_type_geometry(type, &block, &bytes));
        assert_int_equal(block, t->block);
        assert_int_equal(bytes, t->block_bytes);
    }
    assert_int_equal(n_supported, PLY_COUNT(recorded));
    assert_string_equal(ply_type_name(23), "IQ4_XS");
    assert_null(ply_type_find(23));
    assert_true(ply_type_geometry(23, &block, &bytes));
    assert_int_equal(bytes, 136);
}

/* B77: numbers that were taken back or never given. */
static void
unknown_types_have_no_size(void **state)
{
    static const uint32_t none[] = {4,  5,   9,          15,          31,        36,
                                    42, 200, 0x7fffffff, 0x80000000u, UINT32_MAX};
    unsigned block, bytes;
    for (size_t i = 0; i < PLY_COUNT(none); i++) {
        assert_null(ply_type_find(none[i]));
        assert_false(ply_type_geometry(none[i], &block, &bytes));
    }
    assert_string_equal(ply_type_name(4), "Q4_2");
    assert_null(ply_type_name(200));
    assert_null(ply_type_name(UINT32_MAX));
}

static void
rows_are_whole_blocks(void **state)
{
    uint64_t n = 0;
    assert_true(ply_type_row_bytes(ply_type_find(PLY_TYPE_Q4_1), 576, &n));
    assert_int_equal(n, 360);
    assert_true(ply_type_row_bytes(ply_type_find(PLY_TYPE_Q6_K), 2048, &n));
    assert_int_equal(n, 1680);
    assert_false(ply_type_row_bytes(ply_type_find(PLY_TYPE_Q6_K), 640, &n));
    assert_false(ply_type_row_bytes(ply_type_find(PLY_TYPE_Q8_0), 33, &n));
    assert_false(ply_type_row_bytes(ply_type_find(PLY_TYPE_F32), UINT64_MAX / 2, &n));
}

/* ---- half precision -------------------------------------------------------------------- */

/* The value by the definition of the format. */
static double
half_value(uint16_t h)
{
    const int exp = h >> 10 & 31, man = h & 1023;
    const double v = exp == 0 ? ldexp(man, -24) : ldexp(1024 + man, exp - 25);
    return h & 0x8000 ? -v : v;
}

static bool
is_finite_half(uint16_t h)
{
    return (h & 0x7c00) != 0x7c00;
}

static void
every_half_has_its_value(void **state)
{
    for (uint32_t i = 0; i < 0x10000; i++) {
        const uint16_t h = (uint16_t)i;
        const float f = ply_f16_to_f32(h);
        if (is_finite_half(h)) {
            assert_true((double)f == half_value(h));
            assert_int_equal(signbit(f) != 0, h >> 15);
            assert_int_equal(ply_f32_to_f16(f), h);
        } else if ((h & 0x3ff) == 0) {
            assert_true(isinf(f));
            assert_int_equal(signbit(f) != 0, h >> 15);
            assert_int_equal(ply_f32_to_f16(f), h);
        } else {
            assert_true(isnan(f));
            assert_false(is_finite_half(ply_f32_to_f16(f)));
            assert_true(ply_f32_to_f16(f) & 0x3ff);
        }
    }
}

/* Between two neighbours: the middle goes to the even one, all else to the nearer one. */
static void
floats_round_to_nearest_even(void **state)
{
    for (uint16_t h = 0; h < 0x7c00; h++) {
        const float lo = (float)half_value(h);
        /* 65536 stands in for the infinity above the largest half. */
        const float hi = h == 0x7bff ? 65536.0f : (float)half_value((uint16_t)(h + 1));
        const float mid = lo + (hi - lo) / 2;
        const uint16_t even = h % 2 == 0 ? h : (uint16_t)(h + 1);
        assert_int_equal(ply_f32_to_f16(mid), even);
        assert_int_equal(ply_f32_to_f16(nextafterf(mid, 0)), h);
        assert_int_equal(ply_f32_to_f16(nextafterf(mid, INFINITY)), h + 1);
        assert_int_equal(ply_f32_to_f16(-mid), even | 0x8000);
        assert_int_equal(ply_f32_to_f16(nextafterf(hi, 0)), h + 1);
        assert_int_equal(ply_f32_to_f16(nextafterf(lo, INFINITY)), h);
    }
    assert_int_equal(ply_f32_to_f16(3.4e38f), 0x7c00);
    assert_int_equal(ply_f32_to_f16(-1e-30f), 0x8000);
    assert_int_equal(ply_f32_to_f16(0x1p-149f), 0);
}

#if defined(__x86_64__)
__attribute__((target("f16c"))) static uint16_t
hardware_half(float f)
{
    return (uint16_t)_cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT);
}

__attribute__((target("f16c"))) static float
hardware_float(uint16_t h)
{
    return _cvtsh_ss(h);
}

/* arithmetic.md: equal to F16C on subnormals, infinities and overflow. */
static void
halves_equal_the_processor(void **state)
{
    /* Whatever has AVX2 has F16C, whose own name clang 14 does not know here. */
    if (!__builtin_cpu_supports("avx2"))
        skip();
    for (uint32_t i = 0; i < 0x10000; i++) {
        const float a = ply_f16_to_f32((uint16_t)i), b = hardware_float((uint16_t)i);
        assert_true(memcmp(&a, &b, sizeof(a)) == 0);
    }
    for (uint64_t i = 0; i < 2000000; i++) {
        /* Half of them in the range where halves live, the others any bits at all. */
        uint32_t u = (uint32_t)(mix(i * 0x9e3779b97f4a7c15u) >> 32);
        if (i % 2)
            u = (u & 0x807fffffu) | (100 + (u >> 23 & 0xff) % 48) << 23;
        float f;
        memcpy(&f, &u, sizeof(f));
        assert_int_equal(ply_f32_to_f16(f), hardware_half(f));
    }
}
#endif

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dequant_equals_recorded_values),
        cmocka_unit_test(types_have_names_and_sizes),
        cmocka_unit_test(unknown_types_have_no_size),
        cmocka_unit_test(rows_are_whole_blocks),
        cmocka_unit_test(every_half_has_its_value),
        cmocka_unit_test(floats_round_to_nearest_even),
#if defined(__x86_64__)
        cmocka_unit_test(halves_equal_the_processor),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 * KV blocks, and the rotary tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/base/num.h"
#include "engine/kv.h"
#include "engine/mem.h"
#include "engine/rope.h"

static void
layouts_have_the_sizes_of_their_types(void **unused)
{
    struct ply_kv_layout l;
    /* SmolLM2-135M: 30 layers, 3 heads of 64; 1.5 MB a block, 23,040 bytes a token */
    assert_int_equal(ply_kv_layout_init(&l, PLY_KV_F16, 30, 3, 64, NULL), PLY_OK);
    assert_int_equal(l.k_bytes, 64 * 64 * 2);
    assert_int_equal(l.block_bytes, 64 * 23040);
    /* Gemma 3 270M: 18 layers, one head of 256; 1.2 MB a block */
    assert_int_equal(ply_kv_layout_init(&l, PLY_KV_F16, 18, 1, 256, NULL), PLY_OK);
    assert_int_equal(l.block_bytes, 64 * 18432);
    assert_int_equal(ply_kv_layout_init(&l, PLY_KV_Q8_0, 18, 1, 256, NULL), PLY_OK);
    assert_int_equal(l.block_bytes, 64 * 18 * 2 * (256 + 8 * 2));
    assert_int_equal(ply_kv_blocks(0), 0);
    assert_int_equal(ply_kv_blocks(1), 1);
    assert_int_equal(ply_kv_blocks(64), 1);
    assert_int_equal(ply_kv_blocks(65), 2);
}

static void
q8_0_refuses_heads_it_cannot_hold(void **unused)
{
    struct ply_kv_layout l;
    struct ply_err err = {0};
    assert_int_equal(ply_kv_layout_init(&l, PLY_KV_Q8_0, 2, 2, 80, &err), PLY_EUNSUPPORTED);
    assert_string_equal(err.msg, "--kv-type q8_0 needs heads of a multiple of 32; this model's "
                                 "have 80: use --kv-type f16");
    assert_int_equal(ply_kv_layout_init(&l, PLY_KV_F16, 2, 2, 80, NULL), PLY_OK);
}

/* Areas of one block do not overlap and fill it. */
static void
areas_tile_the_block(void **unused)
{
    struct ply_kv_layout l;
    assert_int_equal(ply_kv_layout_init(&l, PLY_KV_Q8_0, 3, 2, 96, NULL), PLY_OK);
    struct ply_block b = {.data = ply_mem_map(l.block_bytes)};
    assert_non_null(b.data);
    ptrdiff_t at = 0;
    for (uint32_t layer = 0; layer < 3; layer++) {
        for (uint32_t head = 0; head < 2; head++) {
            assert_int_equal(ply_block_k(&l, &b, layer, head) - b.data, at);
            assert_int_equal(ply_block_v(&l, &b, layer, head) - b.data, at + l.k_bytes);
            at += 2 * l.k_bytes;
        }
    }
    assert_int_equal(at, l.block_bytes);
    ply_mem_unmap(b.data, l.block_bytes);
}

static void
blocks_are_shared_and_copied_when_written(void **unused)
{
    struct ply_kv_layout l;
    struct ply_kv *kv;
    struct ply_block *a, *b, *c;
    struct ply_kv_stats st;
    struct ply_err err = {0};
    assert_int_equal(ply_kv_layout_init(&l, PLY_KV_F16, 2, 2, 64, NULL), PLY_OK);
    assert_int_equal(ply_kv_new(&kv, &l, 2 * l.block_bytes + 1, NULL), PLY_OK);
    assert_int_equal(ply_kv_take(kv, &a, NULL), PLY_OK);
    assert_int_equal((uintptr_t)a->data % 64, 0);
    memset(a->data, 0x5a, l.block_bytes);

    b = ply_kv_ref(a);
    assert_int_equal(ply_kv_own(kv, &b, NULL), PLY_OK);
    assert_true(b != a && a->refs == 1 && b->refs == 1);
    assert_memory_equal(a->data, b->data, l.block_bytes);
    c = b;
    assert_int_equal(ply_kv_own(kv, &b, NULL), PLY_OK); /* alone already: nothing happens */
    assert_ptr_equal(b, c);

    c = ply_kv_ref(a);
    assert_int_equal(ply_kv_own(kv, &c, &err), PLY_ENOMEM); /* the budget holds two */
    assert_string_equal(err.msg, "the KV budget of 0 MiB (128 tokens) is used up");
    assert_true(c == a && a->refs == 2);
    ply_kv_unref(kv, c);
    ply_kv_stats(kv, &st);
    assert_int_equal(st.n_blocks_live, 2);
    assert_int_equal(st.bytes_used, 2 * l.block_bytes);
    ply_kv_unref(kv, a);
    ply_kv_unref(kv, b);
    assert_int_equal(ply_kv_take(kv, &a, NULL), PLY_OK);
    ply_kv_unref(kv, a);
    ply_kv_stats(kv, &st);
    assert_int_equal(st.n_blocks_live, 0);
    ply_kv_free(&kv);
    assert_null(kv);
}

static void
large_memory_is_aligned_zero_and_bounded(void **unused)
{
    static const uint64_t sizes[] = {1, 4096, (2u << 20) - 1, 2u << 20, (4u << 20) + 1};
    for (size_t i = 0; i < PLY_COUNT(sizes); i++) {
        uint8_t *p = ply_mem_map(sizes[i]);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % (sizes[i] < 2u << 20 ? 64 : 2u << 20), 0);
        assert_true(p[0] == 0 && p[sizes[i] - 1] == 0);
        p[0] = p[sizes[i] - 1] = 1;
        ply_mem_unmap(p, sizes[i]);
    }
    assert_null(ply_mem_map(UINT64_MAX));
    assert_null(ply_mem_map((uint64_t)1 << 60));
    assert_true(ply_mem_available() > 0);
}

/* Against libm, over short and long positions, whole and partial rotation, scaling, divisors. */
static void
rotary_tables_are_cosines_and_sines(void **unused)
{
    static const struct {
        uint32_t dim;
        double base, scale;
    } kinds[] = {
        {64, 100000, 1}, {256, 1000000, 8}, {256, 10000, 1}, {80, 10000, 4}, {2, 500000, 1}};
    float divisors[128];
    for (size_t i = 0; i < PLY_COUNT(divisors); i++)
        divisors[i] = 1 + 0.0625f * (float)i;
    for (size_t k = 0; k < PLY_COUNT(kinds); k++) {
        struct ply_rope r;
        const uint32_t n = 131072, last = n - 3;
        assert_int_equal(ply_rope_init(&r, n, kinds[k].dim, kinds[k].base, kinds[k].scale,
                                       k % 2 ? divisors : NULL, NULL),
                         PLY_OK);
        ply_rope_need(&r, 0, 1);
        ply_rope_need(&r, 60, 70);
        ply_rope_need(&r, last, n);
        const uint32_t at[] = {0, 1, 63, 64, 69, last, n - 1};
        for (size_t p = 0; p < PLY_COUNT(at); p++) {
            for (uint32_t i = 0; i < r.half; i++) {
                const double angle = at[p] * pow(kinds[k].base, -2.0 * i / kinds[k].dim) /
                                     kinds[k].scale / (k % 2 ? (double)divisors[i] : 1);
                const float *cs = ply_rope_at(&r, at[p]) + 2 * (size_t)i;
                /* half a unit of a float around 1, and what is left of a double at that angle */
                assert_true(fabs((double)cs[0] - cos(angle)) < 0x1p-25 + 1e-15 * angle);
                assert_true(fabs((double)cs[1] - sin(angle)) < 0x1p-25 + 1e-15 * angle);
            }
        }
        ply_rope_fini(&r);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_have_the_sizes_of_their_types),
        cmocka_unit_test(q8_0_refuses_heads_it_cannot_hold),
        cmocka_unit_test(areas_tile_the_block),
        cmocka_unit_test(blocks_are_shared_and_copied_when_written),
        cmocka_unit_test(large_memory_is_aligned_zero_and_bounded),
        cmocka_unit_test(rotary_tables_are_cosines_and_sines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

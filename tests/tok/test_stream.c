/* SPDX-License-Identifier: MIT
 * Whole characters out of a stream of pieces (ply_stream_push, ply_stream_finish). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/num.h"
#include "engine/base/utf8.h"
#include "engine/ply.h"
#include "tests/tok/tokutil.h"

static const char mixed[] = "a\xc3\xa9\xe4\xbd\xa0\xf0\x9f\xa6\x99z\0y"; /* a é 你 🦙 z NUL y */

/* Wherever the pieces are cut, what has come out is whole and at the end it is the text. */
static void
any_cuts_give_whole_characters(void **state)
{
    const size_t n = sizeof(mixed) - 1;
    for (uint32_t cuts = 0; cuts < 1u << (n - 1); cuts++) {
        struct ply_stream s = {0};
        struct ply_buf out = {0};
        size_t from = 0;
        for (size_t i = 1; i <= n; i++) {
            if (i < n && !(cuts >> (i - 1) & 1))
                continue;
            assert_int_equal(ply_stream_push(&s, mixed + from, i - from, &out), PLY_OK);
            assert_true(ply_utf8_valid(out.v, out.n));
            from = i;
        }
        assert_int_equal(out.n, n);
        assert_memory_equal(out.v, mixed, n);
        assert_int_equal(ply_stream_finish(&s, &out), PLY_OK);
        assert_int_equal(out.n, n);
        ply_buf_fini(&out);
    }
}

/* A character comes out with its last byte, not later. */
static void
nothing_is_held_longer_than_needed(void **state)
{
    struct ply_stream s = {0};
    struct ply_buf out = {0};
    static const char llama[] = "\xf0\x9f\xa6\x99";
    for (size_t i = 0; i < 4; i++) {
        ply_stream_push(&s, llama + i, 1, &out);
        assert_int_equal(out.n, i < 3 ? 0 : 4);
    }
    assert_int_equal(s.n_held, 0);
    ply_buf_fini(&out);
}

/* B07: each ill-formed part is one U+FFFD, by the Unicode standard's maximal subparts. */
static void
ill_formed_bytes_become_replacements(void **state)
{
#define R "\xef\xbf\xbd"
    static const struct {
        const char *in, *out;
        size_t n;
    } t[] = {
        {"\xe6\xad", R, 2},
        {"\xff\xfe\x80", R R R, 3},
        {"\xc0\x80", R R, 2},
        {"\xed\xa0\x80", R R R, 3},
        {"\xf4\x90\x80\x80", R R R R, 4},
        {"a\xe6", "a" R, 2},
        {"\xe6"
         "a",
         R "a", 2},
        {"\xf0\x9f\xa6"
         "a",
         R "a", 4},
        {"\xf0\x9f\xf0\x9f\xa6\x99", R "\xf0\x9f\xa6\x99", 6},
    };
    for (size_t i = 0; i < PLY_COUNT(t); i++) {
        struct ply_stream s = {0};
        struct ply_buf out = {0};
        for (size_t k = 0; k < t[i].n; k++)
            ply_stream_push(&s, t[i].in + k, 1, &out);
        ply_stream_finish(&s, &out);
        assert_string_equal(out.v, t[i].out);
        ply_buf_fini(&out);
    }
}

/* What comes out does not depend on how any bytes are cut. */
static void
random_bytes_cut_at_random(void **state)
{
    uint64_t seed = 7;
    for (int round = 0; round < 500; round++) {
        char text[200];
        const size_t n = tok_random_text(&seed, 1, text, sizeof(text));
        struct ply_stream whole = {0}, parts = {0};
        struct ply_buf a = {0}, b = {0};
        ply_stream_push(&whole, text, n, &a);
        ply_stream_finish(&whole, &a);
        for (size_t i = 0; i < n;) {
            const size_t some = tok_random(&seed) % 5, k = PLY_MIN(n - i, some);
            ply_stream_push(&parts, text + i, k, &b);
            i += k;
        }
        ply_stream_finish(&parts, &b);
        assert_true(ply_utf8_valid(a.v, a.n));
        assert_int_equal(a.n, b.n);
        if (a.n > 0)
            assert_memory_equal(a.v, b.v, a.n);
        ply_buf_fini(&a);
        ply_buf_fini(&b);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cuts_give_whole_characters),
        cmocka_unit_test(nothing_is_held_longer_than_needed),
        cmocka_unit_test(ill_formed_bytes_become_replacements),
        cmocka_unit_test(random_bytes_cut_at_random),
    };
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}

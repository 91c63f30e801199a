/* SPDX-License-Identifier: MIT
 * The base layer: errors, arrays, cursor, sizes, log and UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/array.h"
#include "engine/base/cursor.h"
#include "engine/base/err.h"
#include "engine/base/log.h"
#include "engine/base/num.h"
#include "engine/base/utf8.h"

/* ---- errors ---------------------------------------------------------------------------- */

static void
first_error_wins(void **state)
{
    struct ply_err err = {0};
    assert_int_equal(ply_fail(&err, PLY_EIO, "first %d", 1), PLY_EIO);
    assert_int_equal(ply_fail(&err, PLY_EFORMAT, "second"), PLY_EFORMAT);
    assert_int_equal(err.code, PLY_EIO);
    assert_string_equal(err.msg, "first 1");
    assert_int_equal(ply_fail(NULL, PLY_EINVAL, "nobody listens"), PLY_EINVAL);
}

/* B91, B92: what a file says must not reach a terminal as a control sequence. */
static void
errors_hold_no_control_bytes(void **state)
{
    struct ply_err err = {0};
    ply_fail(&err, PLY_EFORMAT, "%s",
             "a\x1b]0;own\a\nb\x7f \xc2\x9b"
             "2J \xe2\x80\xa8 \xff \xc3\xa9");
    assert_string_equal(err.msg, "a?]0;own??b? ?2J ? ? \xc3\xa9");
}

static void
long_errors_end_at_a_character(void **state)
{
    struct ply_err err = {0};
    char text[1001];
    for (size_t i = 0; i < 1000; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    text[1000] = '\0';
    ply_fail(&err, PLY_EIO, "x%s", text + 1);
    assert_true(strlen(err.msg) < sizeof(err.msg));
    assert_true(ply_utf8_valid(err.msg, strlen(err.msg)));
}

/* ---- arrays ---------------------------------------------------------------------------- */

static void
ids_grow_and_keep(void **state)
{
    struct ply_ids a = {0};
    for (int32_t i = 0; i < 10000; i++)
        assert_int_equal(ply_ids_push(&a, i * 3), 0);
    assert_int_equal(a.n, 10000);
    for (int32_t i = 0; i < 10000; i++)
        assert_int_equal(a.v[i], i * 3);
    assert_int_equal(ply_ids_append(&a, NULL, 0), 0);
    ply_ids_fini(&a);
    assert_null(a.v);
    assert_int_equal(a.n, 0);
}

static void
impossible_sizes_are_refused(void **state)
{
    struct ply_ids a = {0};
    assert_int_equal(ply_ids_push(&a, 7), 0);
    assert_int_equal(ply_ids_reserve(&a, SIZE_MAX), PLY_ENOMEM);
    assert_int_equal(ply_ids_reserve(&a, SIZE_MAX / 4), PLY_ENOMEM);
    assert_int_equal(a.n, 1);
    assert_int_equal(a.v[0], 7);
    ply_ids_fini(&a);
    struct ply_buf b = {0};
    assert_int_equal(ply_buf_append(&b, "x", 1), 0);
    assert_int_equal(ply_buf_reserve(&b, SIZE_MAX), PLY_ENOMEM);
    assert_int_equal(ply_buf_reserve(&b, SIZE_MAX - 1), PLY_ENOMEM);
    assert_string_equal(b.v, "x");
    ply_buf_fini(&b);
}

static void
bufs_end_in_nul(void **state)
{
    struct ply_buf b = {0};
    assert_int_equal(ply_buf_append(&b, "", 0), 0);
    assert_string_equal(b.v, "");
    assert_int_equal(ply_buf_append(&b, "a\0b", 3), 0);
    assert_int_equal(b.n, 3);
    assert_int_equal(b.v[3], 0);
    assert_int_equal(ply_buf_printf(&b, "-%d-%s", 42, "x"), 0);
    assert_memory_equal(b.v, "a\0b-42-x", 9);
    for (int i = 0; i < 100; i++)
        assert_int_equal(ply_buf_printf(&b, "%0100d", i), 0);
    assert_int_equal(b.n, 8 + 100 * 100);
    assert_int_equal(b.v[b.n], 0);
    ply_buf_fini(&b);
}

/* ---- cursor ---------------------------------------------------------------------------- */

static void
cursor_reads_little_endian(void **state)
{
    const uint8_t bytes[] = {1,  2, 3, 4,    5,    6, 7, 8, 9, 10, 11, 12,   13,  14,
                             15, 0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0,  0,  0xf8, 0xbf};
    struct ply_cursor c;
    ply_cursor_init(&c, bytes, sizeof(bytes));
    assert_int_equal(ply_cursor_u8(&c), 1);
    assert_int_equal(ply_cursor_u16(&c), 0x0302);
    assert_int_equal(ply_cursor_u32(&c), 0x07060504);
    assert_true(ply_cursor_u64(&c) == 0x0f0e0d0c0b0a0908u);
    assert_true(ply_cursor_f32(&c) == 1.0f);
    assert_true(ply_cursor_f64(&c) == -1.5);
    assert_int_equal(c.pos, sizeof(bytes));
    assert_true(ply_cursor_ok(&c));
}

static void
cursor_latches_its_first_fault(void **state)
{
    const uint8_t bytes[] = {1, 2, 3, 4, 5};
    struct ply_cursor c;
    ply_cursor_init(&c, bytes, sizeof(bytes));
    assert_int_equal(ply_cursor_u32(&c), 0x04030201);
    assert_int_equal(ply_cursor_u16(&c), 0);
    assert_false(ply_cursor_ok(&c));
    assert_int_equal(c.fault_pos, 4);
    /* The byte that is left is not read any more. */
    assert_int_equal(ply_cursor_u8(&c), 0);
    assert_int_equal(c.pos, 4);
    ply_cursor_fail(&c, "later");
    assert_string_not_equal(c.fault, "later");
}

static void
cursor_takes_nothing_it_has_not(void **state)
{
    const uint8_t bytes[4] = {0};
    const uint64_t sizes[] = {5, UINT32_MAX, (uint64_t)INT64_MAX, UINT64_MAX, UINT64_MAX - 1};
    for (size_t i = 0; i < PLY_COUNT(sizes); i++) {
        struct ply_cursor c;
        ply_cursor_init(&c, bytes, sizeof(bytes));
        ply_cursor_u16(&c); /* so that position + size wraps for the largest */
        assert_null(ply_cursor_take(&c, sizes[i]));
        assert_false(ply_cursor_ok(&c));
        assert_int_equal(c.pos, 2);
    }
    struct ply_cursor c;
    ply_cursor_init(&c, bytes, sizeof(bytes));
    assert_ptr_equal(ply_cursor_take(&c, 4), bytes);
    assert_ptr_equal(ply_cursor_take(&c, 0), bytes + 4);
    assert_null(ply_cursor_take(&c, 1));
}

/* ---- sizes ----------------------------------------------------------------------------- */

static void
sizes_do_not_wrap(void **state)
{
    uint64_t v = 0;
    assert_true(ply_mul_u64(UINT32_MAX, UINT32_MAX, &v));
    assert_true(v == 0xfffffffe00000001u);
    assert_false(ply_mul_u64(1ull << 32, 1ull << 32, &v));
    assert_true(ply_add_u64(UINT64_MAX, 0, &v));
    assert_false(ply_add_u64(UINT64_MAX, 1, &v));
    assert_true(ply_align_u64(33, 32, &v));
    assert_int_equal(v, 64);
    assert_true(ply_align_u64(64, 32, &v));
    assert_int_equal(v, 64);
    assert_true(ply_align_u64(0, 4096, &v));
    assert_int_equal(v, 0);
    assert_false(ply_align_u64(UINT64_MAX - 30, 32, &v));
}

/* ---- log ------------------------------------------------------------------------------- */

static char logged[256];

static void
sink(void *user, enum ply_log_level level, const char *module, const char *line)
{
    snprintf(logged, sizeof(logged), "%s%d %s: %s", (const char *)user, (int)level, module, line);
}

static void
log_lines_reach_the_sink(void **state)
{
    logged[0] = '\0';
    ply_log(PLY_LOG_ERROR, "test", "nobody hears this");
    assert_string_equal(logged, "");
    ply_log_set(sink, "<", PLY_LOG_INFO);
    ply_log(PLY_LOG_DEBUG, "test", "too low");
    assert_string_equal(logged, "");
    ply_log(PLY_LOG_INFO, "test", "two\nlines %d", 7);
    assert_string_equal(logged, "<2 test: two?lines 7");
    ply_log_set(NULL, NULL, PLY_LOG_ERROR);
}

/* ---- UTF-8 ----------------------------------------------------------------------------- */

static void
every_character_round_trips(void **state)
{
    for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
        char s[4];
        uint32_t back;
        const int n = ply_utf8_encode(cp, s);
        const int want = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
        assert_int_equal(n, want);
        assert_int_equal(ply_utf8_decode(s, (size_t)n, &back), n);
        const int surrogate = cp >= 0xd800 && cp <= 0xdfff;
        assert_int_equal(back, surrogate ? 0xfffd : cp);
    }
    char s[4];
    assert_int_equal(ply_utf8_encode(0x110000, s), 3);
    assert_memory_equal(s, "\xef\xbf\xbd", 3);
}

/* Maximal ill-formed parts as the Unicode standard counts them (chapter 3, table 3-8 and the
 * rows of B07). */
static void
ill_formed_parts_are_maximal(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        int first;
    } rows[] = {
        {"\xe6\xad", 2, -2},
        {"\xff\xfe\x80", 3, -1},
        {"\xc0\x80", 2, -1},
        {"\xed\xa0\x80", 3, -1},
        {"\xf4\x90\x80\x80", 4, -1},
        {"\xf0\x9f\xa6", 3, -3},
        {"\xf1\x80\x80\x41", 4, -3},
        {"\xe0\x80\x41", 3, -1},
        {"\x80", 1, -1},
        {"\xf0\x8f\xbf\xbf", 4, -1},
        {"\xc3", 1, -1},
        {"\xc3\x28", 2, -1},
        {"\xf5\x80\x80\x80", 4, -1},
        {"\xe2\x82", 2, -2},
        {"\xed\x9f\xbf", 3, 3},
        {"\xf4\x8f\xbf\xbf", 4, 4},
        {"\x00", 1, 1},
    };
    for (size_t i = 0; i < PLY_COUNT(rows); i++) {
        uint32_t cp;
        assert_int_equal(ply_utf8_decode(rows[i].bytes, rows[i].n, &cp), rows[i].first);
        if (rows[i].first < 0)
            assert_int_equal(cp, 0xfffd);
        assert_int_equal(ply_utf8_valid(rows[i].bytes, rows[i].n), rows[i].first > 0);
    }
}

static void
whole_stops_before_an_unfinished_character(void **state)
{
    static const struct {
        const char *bytes;
        size_t n, whole;
    } rows[] = {
        {"", 0, 0},
        {"abc", 3, 3},
        {"a\xc3", 2, 1},
        {"a\xc3\xa9", 3, 3},
        {"\xf0\x9f\xa6", 3, 0},
        {"\xf0\x9f\xa6\x99", 4, 4},
        {"x\xe2\x82", 3, 1},
        {"x\x80\x80\x80\x80", 5, 5}, /* nothing can complete these */
        {"x\xff", 2, 2},
        {"\xed\xa0", 2, 2}, /* would be a surrogate */
        {"\xf4\x90", 2, 2}, /* would be above U+10FFFF */
        {"\xe0\x80", 2, 2}, /* would be overlong */
        {"\xc3\xc3", 2, 1},
    };
    for (size_t i = 0; i < PLY_COUNT(rows); i++)
        assert_int_equal(ply_utf8_whole(rows[i].bytes, rows[i].n), rows[i].whole);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_error_wins),
        cmocka_unit_test(errors_hold_no_control_bytes),
        cmocka_unit_test(long_errors_end_at_a_character),
        cmocka_unit_test(ids_grow_and_keep),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(bufs_end_in_nul),
        cmocka_unit_test(cursor_reads_little_endian),
        cmocka_unit_test(cursor_latches_its_first_fault),
        cmocka_unit_test(cursor_takes_nothing_it_has_not),
        cmocka_unit_test(sizes_do_not_wrap),
        cmocka_unit_test(log_lines_reach_the_sink),
        cmocka_unit_test(every_character_round_trips),
        cmocka_unit_test(ill_formed_parts_are_maximal),
        cmocka_unit_test(whole_stops_before_an_unfinished_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 * Lines out of a pipe, what a line means, lists of ids, files within limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/input.h"
#include "app/lines.h"
#include "app/mem.h"

struct got {
    char text[16];
    bool too_long;
};

/* Write `in` to a pipe in pieces of n bytes, reading after each; all lines that come out. */
static size_t
lines_of(const char *in, size_t n, size_t max, struct got *out)
{
    struct lines l;
    int fds[2];
    size_t n_out = 0;
    char *line;
    size_t len;
    bool too_long;
    assert_int_equal(pipe(fds), 0);
    lines_init(&l, fds[0], max);
    for (size_t i = 0, left = strlen(in); left > 0 || !l.ended;) {
        const size_t now = left < n ? left : n;
        if (now > 0)
            assert_int_equal(write(fds[1], in + i, now), now);
        i += now;
        left -= now;
        if (left == 0 && now == 0)
            close(fds[1]);
        if (now > 0 || left == 0)
            lines_read(&l);
        while (lines_take(&l, &line, &len, &too_long)) {
            snprintf(out[n_out].text, sizeof(out->text), "%.*s", too_long ? 0 : (int)len, line);
            out[n_out++].too_long = too_long;
        }
    }
    close(fds[0]);
    lines_fini(&l);
    return n_out;
}

static void
test_lines(void **state)
{
    for (size_t n = 1; n < 40; n++) {
        struct got g[8];
        assert_int_equal(lines_of("one\n\ntwo\nlast", n, 100, g), 4);
        assert_string_equal(g[0].text, "one");
        assert_string_equal(g[1].text, "");
        assert_string_equal(g[2].text, "two");
        assert_string_equal(g[3].text, "last");
        assert_int_equal(lines_of("", n, 100, g), 0);
        assert_int_equal(lines_of("\n", n, 100, g), 1);
    }
}

static void
test_too_long(void **state)
{
    for (size_t n = 1; n < 40; n++) {
        struct got g[8];
        assert_int_equal(lines_of("ok\n0123456789\nfine\n0123456789", n, 8, g), 4);
        assert_false(g[0].too_long);
        assert_true(g[1].too_long);
        assert_string_equal(g[2].text, "fine");
        assert_false(g[2].too_long);
        assert_true(g[3].too_long);
    }
}

static void
check_parse(const char *line, bool jsonl, int status, enum line_kind kind, const char *want,
            size_t n_want)
{
    struct ply_buf out = {0};
    struct ply_err err = {0};
    enum line_kind k;
    assert_int_equal(line_parse(line, strlen(line), jsonl, &k, &out, &err), status);
    assert_int_equal(k, kind);
    assert_int_equal(err.code, status);
    if (status == 0 && kind != LINE_EMPTY) {
        assert_int_equal(out.n, n_want);
        assert_memory_equal(out.v, want, n_want);
    }
    ply_buf_fini(&out);
}

#define MESSAGE(line, want) check_parse(line, true, 0, LINE_MESSAGE, want, sizeof(want) - 1)
#define COMMAND(line, want) check_parse(line, true, 0, LINE_COMMAND, want, sizeof(want) - 1)
#define REFUSED(line) check_parse(line, true, PLY_EINVAL, LINE_MESSAGE, NULL, 0)

static void
test_meaning(void **state)
{
    check_parse("", true, 0, LINE_EMPTY, NULL, 0);
    MESSAGE("hello", "hello");
    MESSAGE("a\\nb\\\\n \\t \\", "a\nb\\n \\t \\");
    MESSAGE("//x", "/x");
    MESSAGE(" /x", " /x");
    COMMAND("/set temp 1", "set temp 1");
    COMMAND("/", "");
    MESSAGE("{\"text\":\"x\\u0000y\"}", "x\0y");
    MESSAGE("{\"text\":\"/quit\"}", "/quit");
    MESSAGE("{\"bytes64\":\"AAECww==\"}", "\0\1\2\xc3");
    REFUSED("{bad");
    REFUSED("{\"text\":1}");
    REFUSED("{\"text\":\"a\",\"bytes64\":\"\"}");
    REFUSED("{\"bytes64\":\"AA\"}");
    REFUSED("{\"text\":\"a\"} x");
    REFUSED("{\"text\":\"\xff\"}");
    /* Outside jsonl a line is what was typed. */
    check_parse("a\\nb", false, 0, LINE_MESSAGE, "a\\nb", 4);
    check_parse("{x", false, 0, LINE_MESSAGE, "{x", 2);
    check_parse("//x", false, 0, LINE_MESSAGE, "/x", 2);
}

static void
test_ids(void **state)
{
    struct ply_ids ids = {0};
    assert_int_equal(input_ids("1 2,3\n\t004 2147483647", 21, &ids, NULL), 0);
    assert_int_equal(ids.n, 5);
    assert_int_equal(ids.v[3], 4);
    assert_int_equal(ids.v[4], INT32_MAX);
    static const char *const bad[] = {"x", "1x", "-1", "1.5", "2147483648", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct ply_err err = {0};
        assert_int_equal(input_ids(bad[i], strlen(bad[i]), &ids, &err), PLY_EINVAL);
        assert_non_null(strstr(err.msg, bad[i]));
    }
    ply_ids_fini(&ids);
}

static void
test_files(void **state)
{
    char path[] = "/tmp/parley-lines-XXXXXX";
    struct ply_buf b = {0};
    struct ply_err err = {0};
    struct ply_ids *lines;
    size_t n;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "1 2\n\n3", 6), 6);
    assert_int_equal(input_read_file(path, 6, &b, NULL), 0);
    assert_int_equal(b.n, 6);
    b.n = 0;
    assert_int_equal(input_read_file(path, 5, &b, &err), PLY_EINVAL);
    assert_int_equal(b.n, 0);
    assert_int_equal(input_id_lines(path, &lines, &n, NULL), 0);
    assert_int_equal(n, 3);
    assert_int_equal(lines[0].n, 2);
    assert_int_equal(lines[1].n, 0);
    assert_int_equal(lines[2].v[0], 3);
    for (size_t i = 0; i < n; i++)
        ply_ids_fini(&lines[i]);
    free(lines);
    close(fd);
    unlink(path);
    assert_int_equal(input_read_file(path, 5, &b, NULL), PLY_ENOENT);
    assert_int_equal(input_read_file("/tmp", 5, &b, NULL), PLY_EIO);
    ply_buf_fini(&b);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),   cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_meaning), cmocka_unit_test(test_ids),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 * Stop strings and their hold-back (B38), whatever pieces the text comes in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "app/stop.h"

#define NO_MATCH (-1)

struct want {
    const char *stops[4]; /* NULL-terminated */
    bool at_line_start, hold_newlines;
    const char *text;
    long match_at;
    const char *shown;
};

static void
check_pieces(const struct want *w, size_t n_piece)
{
    struct stop s;
    struct ply_buf out = {0};
    const size_t len = strlen(w->text);
    size_t at = 0;
    bool matched = false;
    stop_init(&s, w->hold_newlines);
    for (const char *const *p = w->stops; *p; p++)
        stop_add(&s, *p, w->at_line_start);
    for (size_t i = 0; i < len && !matched; i += n_piece) {
        const size_t n = len - i < n_piece ? len - i : n_piece;
        matched = stop_push(&s, w->text + i, n, &out, &at);
        /* Nothing is ever shown that is taken back later. */
        assert_true(out.n <= strlen(w->shown));
        if (out.n > 0)
            assert_memory_equal(out.v, w->shown, out.n);
    }
    if (!matched)
        stop_finish(&s, &out);
    assert_int_equal(matched ? (long)at : NO_MATCH, w->match_at);
    assert_int_equal(out.n, strlen(w->shown));
    ply_buf_fini(&out);
    stop_fini(&s);
}

static void
check(const struct want *w)
{
    for (size_t n = 1; n <= strlen(w->text) + 1; n++)
        check_pieces(w, n);
}

static void
test_b38_match_and_tail(void **state)
{
    check(&(struct want){{"beta gamma"}, false, false, "alpha beta gamma delta", 6, "alpha "});
    check(&(struct want){{"beta gamma"}, false, false, "alpha beta", NO_MATCH, "alpha beta"});
    check(&(struct want){{"beta gamma"}, false, false, "beta beta gammabeta gamma", 5, "beta "});
}

static void
test_self_overlap(void **state)
{
    check(&(struct want){{"aab"}, false, false, "aaaab", 2, "aa"});
    check(&(struct want){{"abab"}, false, false, "abaabab", 3, "aba"});
    check(&(struct want){{"x"}, false, false, "abx", 2, "ab"});
    check(&(struct want){{"aa"}, false, false, "baa", 1, "b"});
}

/* The first byte that completes any of them decides, the longest of those that end there. */
static void
test_several(void **state)
{
    check(&(struct want){{"cd", "bcd", "z"}, false, false, "abcde", 1, "a"});
    check(&(struct want){{"abcdef", "cd"}, false, false, "abcdef", 2, "ab"});
    check(&(struct want){{"", "b"}, false, false, "ab", 1, "a"});
    check(&(struct want){{NULL}, false, false, "anything\n", NO_MATCH, "anything\n"});
}

/* The transcript's "\n###" also stands for "###" as a reply's first characters. */
static void
test_at_line_start(void **state)
{
    check(&(struct want){{"\n###"}, true, true, "### User", 0, ""});
    check(&(struct want){{"\n###"}, true, true, "## no", NO_MATCH, "## no"});
    check(&(struct want){{"\n###"}, true, true, "a ### b", NO_MATCH, "a ### b"});
    check(&(struct want){{"\n###"}, false, false, "### User", NO_MATCH, "### User"});
    check(&(struct want){{"###"}, true, false, "###", 0, ""});
}

/* Newlines before the match or the end are never shown; the match is where the string begins. */
static void
test_hold_newlines(void **state)
{
    check(&(struct want){{"\n###"}, true, true, "Paris.\n\n### User", 7, "Paris."});
    check(&(struct want){{"\n###"}, true, true, "a\n\n\nb\n\n", NO_MATCH, "a\n\n\nb"});
    check(&(struct want){{"\n###"}, true, true, "\n\n", NO_MATCH, ""});
    check(&(struct want){{"\n###"}, true, true, "a\n\n##", NO_MATCH, "a\n\n##"});
}

static void
test_bytes(void **state)
{
    struct stop s;
    struct ply_buf out = {0};
    size_t at;
    stop_init(&s, false);
    stop_add(&s, "\xe2\x82\xac", false); /* a euro sign, its bytes apart */
    assert_false(stop_push(&s, "\0\xff\xe2", 3, &out, &at));
    assert_int_equal(out.n, 2);
    assert_false(stop_push(&s, "\x82", 1, &out, &at));
    assert_true(stop_push(&s, "\xac!", 2, &out, &at));
    assert_int_equal(at, 2);
    assert_memory_equal(out.v, "\0\xff", 2);
    /* After the match nothing more is taken. */
    assert_true(stop_push(&s, "more", 4, &out, &at));
    assert_int_equal(at, 2);
    assert_int_equal(out.n, 2);
    ply_buf_fini(&out);
    stop_fini(&s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_b38_match_and_tail),
        cmocka_unit_test(test_self_overlap),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_at_line_start),
        cmocka_unit_test(test_hold_newlines),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests_name("stop", tests, NULL, NULL);
}

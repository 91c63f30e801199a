/* SPDX-License-Identifier: MIT
 * Search: what is found is what a plain look through the text finds, whatever the words are
 * (B128). The index may only make it faster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "app/match.h"
#include "tests/app/store_fixture.h"

static bool
matches(const char *query, const char *text, size_t len)
{
    struct app_match m;
    size_t pos, n;
    assert_int_equal(app_match_init(&m, query, strlen(query)), 0);
    bool found = app_match_all(&m, text, len, &pos, &n);
    if (found)
        assert_true(pos + n <= len && n > 0);
    app_match_fini(&m);
    return found;
}

#define MATCHES(query, text) matches(query, text, sizeof(text) - 1)

static void
test_match(void **state)
{
    assert_true(MATCHES("tar", "How do I use TAR?"));
    assert_true(MATCHES("gz tar", "a .tar.gz"));
    assert_true(MATCHES("STRASSE", "Hauptstrasse"));
    assert_true(MATCHES("\xc3\x89T\xc3\x89", "l'\xc3\xa9t\xc3\xa9")); /* ÉTÉ, été */
    assert_true(MATCHES("\xe8\xa8\x80", "\xe6\x96\xb9\xe8\xa8\x80")); /* one ideograph */
    assert_true(MATCHES("\xff", "a\xff"));
    assert_true(MATCHES("b", "a\0b"));
    assert_true(MATCHES("100%_\\", "it is 100%_\\ so"));
    assert_false(MATCHES("tar gz", "a tar ball"));
    assert_false(MATCHES("%", "no percent"));
    assert_false(MATCHES("_", "nounderscore"));
    assert_false(MATCHES("", "anything"));
    assert_false(MATCHES(" \t ", "anything"));
    assert_false(MATCHES("x", ""));
    assert_false(MATCHES("aab", "aaaaaaaaaaaaaaaa"));
    assert_false(MATCHES("\x80", "\xc3\x80")); /* no byte of a character */
    char query[500];                           /* more words than are kept apart: the rest is one */
    for (size_t i = 0; i < sizeof(query); i++)
        query[i] = i % 2 ? ' ' : 'a';
    query[sizeof(query) - 1] = '\0';
    assert_false(MATCHES(query, "a"));
    assert_true(matches(query, query, strlen(query)));
}

static void
test_trigrams(void **state)
{
    static const struct {
        const char *query, *want;
    } cases[] = {
        {"ab", ""},
        {"abc", "\"abc\""},
        {"ABCD", "\"abc\" AND \"bcd\""},
        {"a\"bc x yyy", "\"a\"\"b\" AND \"\"\"bc\" AND \"yyy\""},
        {"\xff"
         "abc",
         ""},
        {"\"\"\"", "\"\"\"\"\"\"\"\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct app_match m;
        struct ply_buf out = {0};
        assert_int_equal(app_match_init(&m, cases[i].query, strlen(cases[i].query)), 0);
        assert_int_equal(app_match_trigrams(&m, &out), 0);
        assert_string_equal(out.n ? out.v : "", cases[i].want);
        app_match_fini(&m);
        ply_buf_fini(&out);
    }
}

/* Messages that hold what has a meaning to SQL, to LIKE and to FTS5. */
static const struct {
    const char *text;
    size_t len;
} messages[] = {
#define M(text)                \
    {                          \
        text, sizeof(text) - 1 \
    }
    M("x'); DROP TABLE sessions;--"),
    M("100%_\\"),
    M("she said \"no\""),
    M("one AND two OR three NOT four NEAR five"),
    M("content:column ^caret star* (paren) {brace} +plus -minus"),
    M("\xe6\x96\xb9\xe8\xa8\x80\xe3\x81\xae\xe8\xbe\x9e\xe6\x9b\xb8"),
    M("L'\xc3\xa9t\xc3\xa9 \xc3\x80 LA MER"),
    M("before\0after the NUL"),
    M("ill-formed \xff\xfe bytes"),
    M("\x1b[31mred\x1b[0m"),
    M("percent % alone"),
    M("a"),
    M(""),
    M("line one\nline two\ttab"),
#undef M
};
#define N_MESSAGES (sizeof(messages) / sizeof(messages[0]))

static void
test_found_is_what_is_there(void **state)
{
    static const char *const queries[] = {"x'); DROP TABLE sessions;--",
                                          "100%_\\",
                                          "%",
                                          "_",
                                          "\\",
                                          "\"",
                                          "\"no\"",
                                          "AND",
                                          "OR",
                                          "NOT four",
                                          "NEAR",
                                          "NEAR(",
                                          "content:",
                                          "content:column",
                                          "^caret",
                                          "star*",
                                          "*",
                                          "(",
                                          ")",
                                          "{brace}",
                                          "+plus",
                                          "-minus",
                                          "-",
                                          "'",
                                          "''",
                                          ";",
                                          "--",
                                          "\xe8\xa8\x80",
                                          "\xe6\x96\xb9\xe8\xa8\x80\xe3\x81\xae",
                                          "\xc3\x89t\xc3\xa9",
                                          "mer la",
                                          "after",
                                          "the nul",
                                          "before after",
                                          "\xff",
                                          "\xff\xfe bytes",
                                          "\x1b",
                                          "31mred",
                                          "percent alone",
                                          "a",
                                          "line",
                                          "one\ntwo",
                                          "two\ttab",
                                          "zzz",
                                          "",
                                          " ",
                                          "messages_fts",
                                          "null",
                                          "one two three four five",
                                          "AND AND AND",
                                          "\"\"\"\"",
                                          "fetched",
                                          "e"};
    struct store *st = fixture_open(*state);
    struct store_session s = {0};
    struct ply_err err = {0};
    store_string_set(&s.title, "[]"); /* no title of its own to be found */
    s.title_by_user = true;
    for (size_t i = 0; i < N_MESSAGES; i++)
        assert_non_null(store_session_push(&s, PLY_ROLE_USER, messages[i].text, messages[i].len));
    fixture_save(st, &s);
    for (size_t k = 0; k < sizeof(queries) / sizeof(queries[0]); k++) {
        struct store_hits h;
        if (store_search(st, queries[k], 0, &h, &err) != 0)
            fail_msg("'%s': %s", queries[k], err.msg);
        size_t n = 0;
        for (size_t i = N_MESSAGES; i-- > 0;) { /* newest first */
            if (!matches(queries[k], messages[i].text, messages[i].len))
                continue;
            if (n >= h.n || h.v[n].msg != s.path[i].id)
                fail_msg("'%s' does not find message %zu", queries[k], i);
            n++;
        }
        if (n != h.n)
            fail_msg("'%s' finds %zu, not %zu", queries[k], h.n, n);
        store_hits_fini(&h);
    }
    store_session_fini(&s);
    store_close(&st);
    fixture_assert_sound(*state);
}

static void
test_snippets(void **state)
{
    struct store *st = fixture_open(*state);
    struct ply_err err = {0};
    struct store_session s = {0};
    char text[2000];
    memset(text, '.', sizeof(text));
    memcpy(text + 1000, "\nNeedle\x1b\xff", 9);
    memcpy(text + 958, "\xe6\x96\xb9", 3); /* where the cut before it would fall */
    assert_non_null(store_session_push(&s, PLY_ROLE_USER, text, sizeof(text)));
    fixture_save(st, &s);
    struct store_hits h;
    assert_int_equal(store_search(st, "needle", 0, &h, &err), 0);
    assert_int_equal(h.n, 1);
    const struct store_hit *hit = &h.v[0];
    assert_int_equal(hit->match_len, 6);
    assert_memory_equal(hit->snippet + hit->match_pos, "Needle \xef\xbf\xbd.", 11);
    assert_memory_equal(hit->snippet, "\xe2\x80\xa6.", 4);
    assert_int_equal(hit->snippet[hit->match_pos - 1], ' ');
    assert_true(strlen(hit->snippet) < 200);
    store_hits_fini(&h);
    assert_int_equal(store_search(st, "needle", 0, &h, &err), 0);
    store_hits_fini(&h);
    store_session_fini(&s);
    store_close(&st);
}

/* The index follows what happens to a message. */
static void
test_index_follows(void **state)
{
    struct store *st = fixture_open(*state);
    struct ply_err err = {0};
    struct store_session s = {0};
    struct store_hits h;
    fixture_say(&s, PLY_ROLE_USER, "question");
    struct store_msg *m = store_session_push(&s, PLY_ROLE_ASSISTANT, "half an ans", 11);
    m->state = STORE_WRITING;
    fixture_save(st, &s);
    assert_int_equal(store_search(st, "half", 0, &h, &err), 0);
    assert_int_equal(h.n, 0); /* still being written */
    store_hits_fini(&h);
    ply_buf_append(&m->text, "wer", 3);
    m->state = STORE_DONE;
    m->dirty = true;
    fixture_save(st, &s);
    assert_int_equal(store_search(st, "answer", 0, &h, &err), 0);
    assert_int_equal(h.n, 1);
    store_hits_fini(&h);
    s.path[0].text.n = 0;
    ply_buf_append(&s.path[0].text, "edited", 6);
    s.path[0].dirty = true;
    fixture_save(st, &s);
    assert_int_equal(store_search(st, "question", 0, &h, &err), 0);
    assert_int_equal(h.n, 1); /* the title alone */
    assert_int_equal(h.v[0].msg, 0);
    store_hits_fini(&h);
    assert_int_equal(store_search(st, "edited", 0, &h, &err), 0);
    assert_int_equal(h.n, 1);
    store_hits_fini(&h);
    store_session_fini(&s);
    store_close(&st);
    fixture_assert_sound(*state);
}

static void
test_limit(void **state)
{
    struct store *st = fixture_open(*state);
    struct ply_err err = {0};
    struct store_hits h;
    for (int i = 0; i < 5; i++)
        fixture_session(st, "same words", 2);
    assert_int_equal(store_search(st, "answer", 3, &h, &err), 0);
    assert_int_equal(h.n, 3);
    assert_int_equal(h.v[0].session, 5);
    store_hits_fini(&h);
    assert_int_equal(store_search(st, "words", 7, &h, &err), 0);
    assert_int_equal(h.n, 7); /* five titles, two messages */
    assert_int_equal(h.v[4].msg, 0);
    assert_true(h.v[5].msg > 0);
    store_hits_fini(&h);
    store_close(&st);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_match),      cmocka_unit_test(test_trigrams),
        TEST(test_found_is_what_is_there), TEST(test_snippets),
        TEST(test_index_follows),          TEST(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

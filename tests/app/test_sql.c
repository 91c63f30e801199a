/* SPDX-License-Identifier: MIT
 * Every statement fits the schema, and none that runs while one waits reads a whole table
 * (B127: what it costs must not grow with all that was ever said). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "app/sql.h"
#include "tests/app/store_fixture.h"

static sqlite3 *
connect_to(const char *db)
{
    sqlite3 *c;
    struct store *st = fixture_open(db);
    fixture_session(st, "x", 2);
    store_close(&st);
    assert_int_equal(sqlite3_open(db, &c), SQLITE_OK);
    return c;
}

static void
test_statements_fit(void **state)
{
    sqlite3 *c = connect_to(*state);
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_stmt *q;
        const char *tail;
        assert_non_null(sql_text[i]);
        if (sqlite3_prepare_v2(c, sql_text[i], -1, &q, &tail) != SQLITE_OK)
            fail_msg("%s: %s", sql_text[i], sqlite3_errmsg(c));
        assert_string_equal(tail, ""); /* one statement */
        for (int p = 1; p <= sqlite3_bind_parameter_count(q); p++)
            assert_int_equal(sqlite3_bind_parameter_name(q, p)[0], ':');
        sqlite3_finalize(q);
    }
    sqlite3_close(c);
}

/* These read all sessions, or all messages, because that is what was asked for. */
static bool
may_scan(enum sql_id id)
{
    return id == SQL_SESSION_LIST || id == SQL_SESSION_TITLES || id == SQL_SEARCH_ALL ||
           id == SQL_SESSION_LAST || id == SQL_FOREIGN_KEY_CHECK || id == SQL_IDENTITY;
}

static void
test_statements_are_indexed(void **state)
{
    sqlite3 *c = connect_to(*state);
    for (int i = 0; i < SQL_COUNT; i++) {
        char sql[2048];
        sqlite3_stmt *q;
        if (may_scan((enum sql_id)i))
            continue;
        snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", sql_text[i]);
        if (sqlite3_prepare_v2(c, sql, -1, &q, NULL) != SQLITE_OK)
            continue; /* BEGIN and the like have no plan */
        while (sqlite3_step(q) == SQLITE_ROW) {
            const char *detail = (const char *)sqlite3_column_text(q, 3);
            bool index_only = strstr(detail, "messages_fts") ||
                              strstr(detail, "messages_with_nul") ||
                              strstr(detail, "messages_writing");
            if (strncmp(detail, "SCAN", 4) == 0 && !index_only)
                fail_msg("%s\nreads a whole table: %s", sql_text[i], detail);
        }
        sqlite3_finalize(q);
    }
    /* The last session is the end of an index, not a sort of all of them. */
    sqlite3_stmt *q;
    char sql[256];
    snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", sql_text[SQL_SESSION_LAST]);
    assert_int_equal(sqlite3_prepare_v2(c, sql, -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_non_null(strstr((const char *)sqlite3_column_text(q, 3), "USING COVERING INDEX"));
    assert_int_equal(sqlite3_step(q), SQLITE_DONE);
    sqlite3_finalize(q);
    sqlite3_close(c);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_statements_fit),
        TEST(test_statements_are_indexed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

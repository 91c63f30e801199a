/* SPDX-License-Identifier: MIT
 * The store without memory: allocation after allocation fails, in our code and in SQLite's,
 * until all goes through. After each failure the error says so, nothing leaks, the file is
 * sound and holds what it held. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/store_priv.h"
#include "tests/app/store_fixture.h"

/* The allocation that fails, counted down; 0: none. */
static long countdown;
static bool has_failed;

static bool
fails(void)
{
    if (countdown == 0 || --countdown > 0)
        return false;
    has_failed = true;
    return true;
}

/* Ours, by the linker's --wrap. */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);

void *
__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}

void *
__wrap_reallocarray(void *p, size_t n, size_t size)
{
    return fails() ? NULL : __real_reallocarray(p, n, size);
}

char *
__wrap_strdup(const char *s)
{
    return fails() ? NULL : __real_strdup(s);
}

/* SQLite's. */
static sqlite3_mem_methods real;

static void *
mem_malloc(int n)
{
    return fails() ? NULL : real.xMalloc(n);
}

static void *
mem_realloc(void *p, int n)
{
    return fails() ? NULL : real.xRealloc(p, n);
}

static int
group_setup(void **state)
{
    sqlite3_mem_methods mine;
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real) != SQLITE_OK)
        return -1;
    mine = real;
    mine.xMalloc = mem_malloc;
    mine.xRealloc = mem_realloc;
    if (sqlite3_config(SQLITE_CONFIG_MALLOC, &mine) != SQLITE_OK ||
        sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) != SQLITE_OK)
        return -1;
    return sqlite3_initialize() == SQLITE_OK ? 0 : -1;
}

/* The first ones all, then every fifth: they are the same ones over and over. */
static long
after(long n)
{
    return n < 300 ? n + 1 : n + 5;
}

/* One use of the store; 0 or the first error. */
static int
use(const char *db, int64_t id, struct ply_err *err)
{
    struct store *st = NULL;
    struct store_session s = {0};
    struct store_list list = {0};
    struct store_hits hits = {0};
    struct store_tree tree = {0};
    int64_t found;
    int rc = store_open(&st, db, 100, err);
    if (!rc)
        rc = store_session_find(st, "question 1", STORE_FIND_ANY, &found, err);
    if (!rc)
        rc = store_session_load(st, id, STORE_LOAD_CLAIM, &s, err);
    if (!rc && !store_session_push(&s, PLY_ROLE_USER, "more", 4))
        rc = PLY_ENOMEM;
    if (!rc)
        rc = store_session_save(st, &s, NULL, err);
    if (!rc)
        rc = store_session_pop(&s);
    if (!rc)
        rc = store_session_save(st, &s, NULL, err);
    if (!rc)
        rc = store_list(st, "first", 0, &list, err);
    if (!rc)
        rc = store_search(st, "answer", 0, &hits, err);
    if (!rc)
        rc = store_tree_load(st, id, &tree, err);
    store_tree_fini(&tree);
    store_hits_fini(&hits);
    store_list_fini(&list);
    if (st)
        store_session_release(st, &s);
    store_session_fini(&s);
    store_close(&st);
    return rc;
}

static void
test_each_allocation_fails(void **state)
{
    const char *db = *state;
    struct store *st = fixture_open(db);
    int64_t id = fixture_session(st, "the first question", 3);
    store_close(&st);
    long n = 0, n_runs = 0, n_reported = 0;
    do {
        struct ply_err err = {0};
        has_failed = false;
        countdown = n = after(n);
        int rc = use(db, id, &err);
        countdown = 0;
        /* A failure may be harmless: SQLite does without some caches. */
        if (rc) {
            n_reported++;
            if (rc != PLY_ENOMEM || !has_failed)
                fail_msg("allocation %ld: %d %s", n, rc, err.msg);
        }
        if (++n_runs % 32 == 0) {
            fixture_assert_sound(db);
            /* What a failed run had committed before it failed is at most its one message. */
            assert_in_range(fixture_int(db, "SELECT count(*) FROM messages"), 6, 6 + n_runs);
            fixture_sql(db, "DELETE FROM messages WHERE content = 'more'");
        }
    } while (has_failed);
    print_message("# %ld runs, %ld failures reported\n", n_runs, n_reported);
    assert_true(n_reported > 100);
    fixture_assert_sound(db);
    assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages WHERE content <> 'more'"), 6);
}

/* The same from the very first start. */
static void
test_creation(void **state)
{
    const char *db = *state;
    long n = 0;
    do {
        struct store *st;
        struct ply_err err = {0};
        remove(db);
        has_failed = false;
        countdown = n = after(n);
        int rc = store_open(&st, db, 100, &err);
        countdown = 0;
        if (rc && rc != PLY_ENOMEM)
            fail_msg("allocation %ld: %d %s", n, rc, err.msg);
        store_close(&st);
        st = fixture_open(db); /* whatever was left is begun again, or is whole */
        store_close(&st);
    } while (has_failed);
    fixture_assert_sound(db);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_each_allocation_fails),
        TEST(test_creation),
    };
    /* Thousands of files, each waited for: in memory where there is such a place. */
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, group_setup, NULL);
}

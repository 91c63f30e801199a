/* SPDX-License-Identifier: MIT
 * The file: rights, refusals, changes of its schema, other processes, a full disk, kill -9
 * (B115, B116, B117, B119, B123). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/paths.h"
#include "app/store_priv.h"
#include "tests/app/store_fixture.h"

static int
mode_of(const char *path)
{
    struct stat sb;
    return stat(path, &sb) == 0 ? (int)(sb.st_mode & 0777) : -1;
}

static int
try_open(const char *db, struct ply_err *err)
{
    struct store *st;
    *err = (struct ply_err){0};
    int rc = store_open(&st, db, 100, err);
    store_close(&st);
    return rc;
}

/* ---- rights ---------------------------------------------------------------------------- */

/* B123 */
static void
test_rights(void **state)
{
    const char *db = *state;
    char *dir = strdup(db);
    *strrchr(dir, '/') = '\0';
    umask(022);
    struct store *st = fixture_open(db);
    fixture_session(st, "x", 1);
    assert_int_equal(mode_of(dir), 0700);
    assert_int_equal(mode_of(db), 0600);
    assert_int_equal(mode_of(fixture_path(db, "-wal")), 0600);
    assert_int_equal(mode_of(fixture_path(db, "-shm")), 0600);
    /* Left by a program that knew no better. */
    chmod(dir, 0755);
    chmod(db, 0644);
    chmod(fixture_path(db, "-wal"), 0644);
    chmod(fixture_path(db, "-shm"), 0644);
    struct store *second = fixture_open(db);
    assert_int_equal(mode_of(dir), 0700);
    assert_int_equal(mode_of(db), 0600);
    assert_int_equal(mode_of(fixture_path(db, "-wal")), 0600);
    assert_int_equal(mode_of(fixture_path(db, "-shm")), 0600);
    store_close(&second);
    store_close(&st);
    free(dir);
}

/* ---- refusals -------------------------------------------------------------------------- */

/* The file is refused, keeps every byte, and nothing appears beside it. */
static void
assert_refused(const char *db, int code, const char *says)
{
    struct ply_err err;
    uint64_t before = fixture_hash(db);
    bool had_wal = fixture_exists(fixture_path(db, "-wal"));
    assert_int_equal(try_open(db, &err), code);
    if (!strstr(err.msg, says))
        fail_msg("'%s' does not say '%s'", err.msg, says);
    assert_non_null(strstr(err.msg, db));
    assert_true(fixture_hash(db) == before);
    assert_int_equal(fixture_exists(fixture_path(db, "-wal")), had_wal);
    assert_false(fixture_exists(fixture_path(db, "-journal")));
}

/* B116 */
static void
test_newer_is_refused(void **state)
{
    const char *db = *state;
    struct store *st = fixture_open(db);
    fixture_session(st, "x", 1);
    store_close(&st);
    fixture_sql(db, "PRAGMA user_version = 999");
    assert_refused(db, PLY_EUNSUPPORTED, "newer");
    fixture_sql(db, "PRAGMA user_version = 1");
    st = fixture_open(db);
    store_close(&st);
}

static int
raise_version_and_die(const char *db, int arg)
{
    struct store *st = fixture_open(db);
    db_exec(st->db, "PRAGMA user_version = 999", NULL);
    raise(SIGKILL);
    return 0;
}

/* The newer version stands in the log alone: the header's own bytes still say 1. */
static void
test_newer_in_the_log_is_refused(void **state)
{
    const char *db = *state;
    struct store *st = fixture_open(db);
    store_close(&st);
    assert_int_equal(fixture_wait(fixture_fork(raise_version_and_die, db, 0)), -SIGKILL);
    assert_true(fixture_exists(fixture_path(db, "-wal")));
    assert_refused(db, PLY_EUNSUPPORTED, "newer");
    assert_int_equal(fixture_int(db, "PRAGMA user_version"), 999);
}

static void
folder_for(const char *db)
{
    char *dir = strdup(db);
    *strrchr(dir, '/') = '\0';
    assert_int_equal(app_dir_make(dir, NULL), 0);
    free(dir);
}

/* B116 */
static void
test_foreign_is_refused(void **state)
{
    static const char *const foreign[] = {
        "CREATE TABLE sessions(id INTEGER PRIMARY KEY, title TEXT)",
        "PRAGMA journal_mode = WAL; CREATE TABLE other(x); INSERT INTO other VALUES (1)",
        "CREATE TABLE other(x); PRAGMA user_version = 1",
        "PRAGMA application_id = 1734440055; CREATE TABLE other(x); PRAGMA user_version = 1",
        "PRAGMA application_id = 0x50726c79; CREATE TABLE other(x)",
        "PRAGMA application_id = 0x50726c79; CREATE TABLE other(x); PRAGMA user_version = -1",
    };
    const char *db = *state;
    folder_for(db);
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        fixture_sql(db, foreign[i]);
        assert_refused(db, PLY_EUNSUPPORTED, "another program");
        remove(db);
    }
}

static void
file_write(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
}

static void
test_not_a_database(void **state)
{
    const char *db = *state;
    char bytes[5000];
    folder_for(db);
    memset(bytes, 'x', sizeof(bytes));
    static const size_t lens[] = {1, 50, 99, 100, 5000};
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        file_write(db, bytes, lens[i]);
        assert_refused(db, PLY_EFORMAT, "damaged");
    }
    memcpy(bytes, "SQLite format 3", 16);
    file_write(db, bytes, 60); /* cut within its header */
    assert_refused(db, PLY_EFORMAT, "damaged");
    remove(db);
    assert_int_equal(mkdir(db, 0700), 0);
    struct ply_err err;
    assert_int_equal(try_open(db, &err), PLY_EIO);
    rmdir(db);
    file_write(db, "", 0); /* an empty file is a new one */
    assert_int_equal(try_open(db, &err), 0);
}

/* Pages overwritten behind the header: an error that names the file, wherever it is met. */
static void
test_damaged_pages(void **state)
{
    const char *db = *state;
    char junk[4096];
    memset(junk, 0xa5, sizeof(junk));
    int n_failed = 0;
    for (long page = 0; page < 12; page++) {
        remove(db);
        struct store *st = fixture_open(db);
        for (int i = 0; i < 30; i++)
            fixture_session(st, "some words to look for", 2);
        store_close(&st);
        FILE *f = fopen(db, "r+b");
        fseek(f, page == 0 ? 100 : page * 4096, SEEK_SET);
        fwrite(junk, 1, page == 0 ? 3996 : 4096, f);
        fclose(f);
        struct ply_err err = {0};
        struct store_session s = {0};
        struct store_list list = {0};
        struct store_hits hits = {0};
        int rc = store_open(&st, db, 100, &err);
        for (int64_t id = 1; !rc && id <= 30; id++)
            rc = store_session_load(st, id, STORE_LOAD_READ, &s, &err);
        if (!rc)
            rc = store_list(st, NULL, 0, &list, &err);
        if (!rc)
            rc = store_search(st, "words", 0, &hits, &err);
        if (rc) {
            n_failed++;
            assert_int_equal(rc, PLY_EFORMAT);
            assert_non_null(strstr(err.msg, db));
        }
        store_hits_fini(&hits);
        store_list_fini(&list);
        store_session_fini(&s);
        store_close(&st);
    }
    assert_true(n_failed >= 6);
}

static void
test_cannot_create(void **state)
{
    struct ply_err err;
    char *path = NULL;
    assert_int_equal(try_open("/proc/no/such/parley.db", &err), PLY_ECREATE);
    assert_non_null(strstr(err.msg, "/proc/no"));
    folder_for(*state);
    file_write(*state, "x", 1);
    assert_true(asprintf(&path, "%s/sub/parley.db", (char *)*state) > 0);
    assert_int_equal(try_open(path, &err), PLY_ECREATE); /* a file where a folder must be */
    free(path);
}

/* ---- the schema's version -------------------------------------------------------------- */

/* A next version that takes its time: a column, an index and every row rewritten. */
static const char step_2[] = "ALTER TABLE messages ADD COLUMN extra TEXT;"
                             "UPDATE messages SET extra = hex(content);"
                             "CREATE INDEX messages_by_extra ON messages(extra);"
                             "DROP INDEX messages_by_extra;"
                             "UPDATE messages SET extra = lower(extra);"
                             "PRAGMA user_version = 2;";
static const char step_bad[] = "ALTER TABLE messages ADD COLUMN extra TEXT;"
                               "ALTER TABLE messages ADD COLUMN extra TEXT;"
                               "PRAGMA user_version = 2;";

static int
migrate_with(const char *db, const char *sql, struct ply_err *err)
{
    struct sql_step steps[2] = {sql_steps[0], {2, sql}};
    struct db *c = NULL;
    int lock, rc = store_folder_lock(db, &lock, err);
    if (!rc)
        rc = db_open(&c, db, 10000, err);
    if (!rc) {
        db_trust(c);
        rc = store_migrate(c, db, steps, 2, err);
    }
    db_close(&c);
    close(lock);
    return rc;
}

static int
migrate_child(const char *db, int arg)
{
    return migrate_with(db, step_2, NULL);
}

static void
many_messages(const char *db, int n_sessions)
{
    struct store *st = fixture_open(db);
    for (int i = 0; i < n_sessions; i++)
        fixture_session(st, "a first message that is long enough to be worth rewriting", 20);
    store_close(&st);
}

/* B117 */
static void
test_migration(void **state)
{
    const char *db = *state;
    struct ply_err err = {0};
    many_messages(db, 5);
    assert_int_equal(migrate_with(db, step_2, &err), 0);
    assert_int_equal(fixture_int(db, "PRAGMA user_version"), 2);
    assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages"), 200);
    fixture_assert_sound(db);
    char *copy = store_copy_path(db, 1);
    assert_int_equal(mode_of(copy), 0600);
    assert_int_equal(fixture_int(copy, "PRAGMA user_version"), 1);
    assert_int_equal(fixture_int(copy, "SELECT count(*) FROM messages"), 200);
    fixture_assert_sound(copy);
    assert_int_equal(migrate_with(db, step_2, &err), 0); /* nothing to do */
    assert_int_equal(fixture_int(db, "PRAGMA user_version"), 2);
    free(copy);
}

static void
test_migration_that_fails_changes_nothing(void **state)
{
    const char *db = *state;
    struct ply_err err = {0};
    many_messages(db, 2);
    assert_int_not_equal(migrate_with(db, step_bad, &err), 0);
    assert_int_equal(fixture_int(db, "PRAGMA user_version"), 1);
    assert_int_equal(fixture_int(db, "SELECT count(*) FROM pragma_table_info('messages')"
                                     " WHERE name = 'extra'"),
                     0);
    assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages"), 80);
    fixture_assert_sound(db);
    struct store *st = fixture_open(db); /* and goes on as it was */
    store_close(&st);
}

/* B117: killed at 20 moments, spread over what a whole run takes. */
static void
test_migration_killed(void **state)
{
    const char *db = *state;
    char *copy = store_copy_path(db, 1);
    int n_old = 0, n_new = 0;
    many_messages(db, 20);
    size_t len;
    char *old = fixture_read(db, &len);
    for (int i = 0; i < 20; i++) {
        remove(copy);
        remove(fixture_path(db, "-wal"));
        remove(fixture_path(db, "-shm"));
        file_write(db, old, len);
        pid_t pid = fixture_fork(migrate_child, db, 0);
        fixture_sleep_us(500 + i * i * 120L);
        kill(pid, SIGKILL);
        fixture_wait(pid);
        fixture_assert_sound(db);
        assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages"), 800);
        if (fixture_int(db, "PRAGMA user_version") == 1)
            n_old++;
        else
            n_new++;
        struct ply_err err = {0};
        assert_int_equal(migrate_with(db, step_2, &err), 0);
        assert_int_equal(fixture_int(db, "PRAGMA user_version"), 2);
        assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages WHERE extra"
                                         " = lower(hex(content))"),
                         800);
        assert_int_equal(fixture_int(copy, "SELECT count(*) FROM messages"), 800);
    }
    print_message("# killed before the change %d times, after it %d times\n", n_old, n_new);
    assert_true(n_old > 0);
    free(old);
    free(copy);
}

static void
test_two_migrate_at_once(void **state)
{
    const char *db = *state;
    many_messages(db, 10);
    pid_t a = fixture_fork(migrate_child, db, 0), b = fixture_fork(migrate_child, db, 0);
    assert_int_equal(fixture_wait(a), 0);
    assert_int_equal(fixture_wait(b), 0);
    assert_int_equal(fixture_int(db, "PRAGMA user_version"), 2);
    fixture_assert_sound(db);
}

/* ---- other processes ------------------------------------------------------------------- */

static int
first_start_child(const char *db, int arg)
{
    struct store *st;
    struct ply_err err = {0};
    int rc = store_open(&st, db, 10000, &err);
    if (rc) {
        print_message("# %s\n", err.msg);
        return rc;
    }
    fixture_session(st, "hello", 1);
    store_close(&st);
    return 0;
}

static void
test_first_start_twice_at_once(void **state)
{
    for (int round = 0; round < 25; round++) {
        remove(*state);
        pid_t pids[4];
        for (int i = 0; i < 4; i++)
            pids[i] = fixture_fork(first_start_child, *state, i);
        for (int i = 0; i < 4; i++)
            assert_int_equal(fixture_wait(pids[i]), 0);
        assert_int_equal(fixture_int(*state, "SELECT count(*) FROM sessions"), 4);
    }
    fixture_assert_sound(*state);
}

/* A chat of its own, as the loop runs it: short waits for the lock, and a save that failed is
 * made good for by the next. */
static int
chat_child(const char *db, int arg)
{
    struct store *st;
    if (store_open(&st, db, STORE_BUSY_LOOP_MS, NULL) != 0)
        return 1;
    struct store_session s = {0};
    for (int i = 0; i < 100; i++) {
        char text[64];
        snprintf(text, sizeof(text), "process %d message %d", arg, i);
        fixture_say(&s, i % 2 ? PLY_ROLE_ASSISTANT : PLY_ROLE_USER, text);
        store_session_save(st, &s, NULL, NULL);
    }
    int rc = PLY_EBUSY;
    for (int i = 0; i < 200 && rc == PLY_EBUSY; i++)
        rc = store_session_save(st, &s, NULL, NULL);
    store_session_fini(&s);
    store_close(&st);
    return rc;
}

/* B115 */
static void
test_two_chats_at_once(void **state)
{
    const char *db = *state;
    struct store *st = fixture_open(db);
    store_close(&st);
    pid_t a = fixture_fork(chat_child, db, 1), b = fixture_fork(chat_child, db, 2);
    fixture_sql(db, "BEGIN EXCLUSIVE; SELECT 1; COMMIT");
    assert_int_equal(fixture_wait(a), 0);
    assert_int_equal(fixture_wait(b), 0);
    assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages"), 200);
    assert_int_equal(fixture_int(db, "SELECT count(DISTINCT content) FROM messages"), 200);
    fixture_assert_sound(db);
}

static int
hold_lock_child(const char *db, int arg)
{
    struct db *c;
    if (db_open(&c, db, 10000, NULL) != 0 || db_run(c, SQL_BEGIN_EXCLUSIVE, NULL) != 0)
        return 1;
    fixture_sleep_us(arg * 1000L);
    db_close(&c);
    return 0;
}

/* B115: a lock held for long is PLY_EBUSY after the busy time, nothing is lost. */
static void
test_lock_held(void **state)
{
    const char *db = *state;
    struct store *st = fixture_open(db);
    int64_t id = fixture_session(st, "before", 1);
    struct store_session s = {0};
    struct ply_err err = {0};
    assert_int_equal(store_session_load(st, id, STORE_LOAD_CLAIM, &s, &err), 0);
    store_busy_set(st, 20);
    pid_t pid = fixture_fork(hold_lock_child, db, 700);
    int n_busy = 0, rc = PLY_EBUSY;
    fixture_sleep_us(200000);
    fixture_say(&s, PLY_ROLE_USER, "while locked");
    while (rc == PLY_EBUSY) {
        err = (struct ply_err){0};
        rc = store_session_save(st, &s, NULL, &err);
        if (rc == PLY_EBUSY) {
            n_busy++;
            assert_int_equal(s.path[2].id, 0);
            struct store_session other = {0}; /* reading goes on */
            assert_int_equal(store_session_load(st, id, STORE_LOAD_READ, &other, NULL), 0);
            assert_int_equal(other.n_path, 2);
            store_session_fini(&other);
        }
    }
    assert_int_equal(rc, 0);
    assert_true(n_busy > 0);
    assert_int_equal(fixture_wait(pid), 0);
    assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages"), 3);
    store_session_fini(&s);
    store_close(&st);
}

/* Opens session arg, says something on it, and stays until it is killed. */
static int
owner_child(const char *db, int arg)
{
    struct store *st = fixture_open(db);
    struct store_session s = {0};
    if (store_session_load(st, arg, STORE_LOAD_CLAIM, &s, NULL) != 0 || s.shared)
        return 1;
    fixture_say(&s, PLY_ROLE_USER, "the owner's question");
    struct store_msg *m = store_session_push(&s, PLY_ROLE_ASSISTANT, "the beginning", 13);
    m->state = STORE_WRITING;
    fixture_save(st, &s);
    for (;;)
        pause();
}

static void
wait_for(const char *db, const char *sql, int64_t want)
{
    for (int i = 0; i < 500 && fixture_int(db, sql) != want; i++)
        fixture_sleep_us(10000);
    assert_int_equal(fixture_int(db, sql), want);
}

static void
test_session_open_elsewhere(void **state)
{
    const char *db = *state;
    struct store *st = fixture_open(db);
    struct ply_err err = {0};
    int64_t id = fixture_session(st, "shared", 1);
    pid_t owner = fixture_fork(owner_child, db, (int)id);
    wait_for(db, "SELECT count(*) FROM messages", 4);

    struct store_session s = {0};
    assert_int_equal(store_session_load(st, id, STORE_LOAD_CLAIM, &s, &err), 0);
    assert_true(s.shared);
    assert_int_equal(s.n_path, 2); /* the question that is being answered is the owner's */
    bool moved = false;
    fixture_say(&s, PLY_ROLE_USER, "a question of ours");
    assert_int_equal(store_session_save(st, &s, &moved, &err), 0);
    assert_int_equal(s.path[2].id, 5);
    assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages WHERE parent = 2"), 2);
    assert_int_equal(store_session_delete(st, id, &err), PLY_EBUSY);
    struct store_list list;
    assert_int_equal(store_list(st, NULL, 0, &list, &err), 0);
    assert_true(list.v[0].open);
    store_list_fini(&list);
    store_session_fini(&s);

    /* A store that opens while the owner lives leaves its reply alone; afterwards it ends it. */
    struct store *second = fixture_open(db);
    assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages WHERE writing = 1"), 1);
    store_close(&second);
    kill(owner, SIGKILL);
    fixture_wait(owner);
    second = fixture_open(db);
    assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages WHERE writing = 1"), 0);
    struct store_hits hits;
    assert_int_equal(store_search(second, "beginning", 0, &hits, &err), 0);
    assert_int_equal(hits.n, 1);
    store_hits_fini(&hits);
    store_close(&second);

    /* The dead owner does not keep it. */
    err = (struct ply_err){0};
    assert_int_equal(store_session_load(st, id, STORE_LOAD_CLAIM, &s, &err), 0);
    assert_false(s.shared);
    assert_int_equal(store_session_goto(st, &s, 4, &err), 0);
    assert_int_equal(s.path[3].finish, STORE_FINISH_INTERRUPTED);
    assert_memory_equal(s.path[3].text.v, "the beginning", 13);
    store_session_fini(&s);
    assert_int_equal(store_session_delete(st, id, &err), 0);
    store_close(&st);
    fixture_assert_sound(db);
}

static int
go_on_child(const char *db, int arg)
{
    struct store *st = fixture_open(db);
    struct store_session s = {0};
    if (store_session_load(st, arg, STORE_LOAD_CLAIM, &s, NULL) != 0)
        return 1;
    fixture_say(&s, PLY_ROLE_USER, "from the other process");
    fixture_save(st, &s);
    store_session_fini(&s);
    store_close(&st);
    return 0;
}

/* Both went on from the same place: both are kept, and this one hears of it. */
static void
test_moved_on_elsewhere(void **state)
{
    const char *db = *state;
    struct store *st = fixture_open(db);
    struct ply_err err = {0};
    bool moved = true;
    struct store_session s = {0};
    int64_t id = fixture_session(st, "shared", 1);
    assert_int_equal(store_session_load(st, id, STORE_LOAD_CLAIM, &s, &err), 0);
    assert_int_equal(fixture_wait(fixture_fork(go_on_child, db, (int)id)), 0);
    assert_int_equal(store_session_save(st, &s, &moved, &err), 0);
    assert_false(moved); /* nothing said yet */
    assert_int_equal(fixture_wait(fixture_fork(go_on_child, db, (int)id)), 0);
    fixture_say(&s, PLY_ROLE_USER, "from this one");
    assert_int_equal(store_session_save(st, &s, &moved, &err), 0);
    assert_true(moved);
    fixture_say(&s, PLY_ROLE_ASSISTANT, "yes");
    assert_int_equal(store_session_save(st, &s, &moved, &err), 0);
    assert_false(moved); /* told once */
    assert_int_equal(s.n_path, 4);
    assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages WHERE parent = 2"), 3);
    store_session_fini(&s);
    store_close(&st);
}

/* A message that this process built on was taken back by another: it is stored again. */
static void
test_parent_taken_back_elsewhere(void **state)
{
    const char *db = *state;
    struct store *st = fixture_open(db);
    struct store_session a = {0}, b = {0};
    int64_t id = fixture_session(st, "start", 1);
    assert_int_equal(store_session_load(st, id, STORE_LOAD_CLAIM, &a, NULL), 0);
    fixture_say(&a, PLY_ROLE_USER, "taken back");
    fixture_save(st, &a);
    assert_int_equal(store_session_load(st, id, STORE_LOAD_CLAIM, &b, NULL), 0);
    assert_int_equal(b.n_path, 3);
    assert_int_equal(store_session_pop(&a), 0);
    fixture_save(st, &a);
    fixture_say(&b, PLY_ROLE_ASSISTANT, "an answer to it");
    fixture_save(st, &b);
    assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages"), 4);
    int64_t answer = b.path[3].id;
    store_session_fini(&a);
    store_session_fini(&b);
    assert_int_equal(store_session_load(st, id, STORE_LOAD_READ, &a, NULL), 0);
    assert_int_equal(a.n_path, 4);
    assert_int_equal(a.path[3].id, answer);
    store_session_fini(&a);
    store_close(&st);
    fixture_assert_sound(db);
}

static void
test_session_deleted_elsewhere(void **state)
{
    struct store *st = fixture_open(*state);
    struct ply_err err = {0};
    struct store_session s = {0};
    int64_t id = fixture_session(st, "x", 1);
    assert_int_equal(store_session_load(st, id, STORE_LOAD_READ, &s, &err), 0);
    assert_int_equal(store_session_delete(st, id, &err), 0);
    fixture_say(&s, PLY_ROLE_USER, "too late");
    assert_int_equal(store_session_save(st, &s, NULL, &err), PLY_ENOENT);
    assert_int_equal(s.n_path, 3);
    store_session_fini(&s);
    store_close(&st);
}

/* ---- kill -9 while writing ------------------------------------------------------------- */

static int
write_for_ever(const char *db, int arg)
{
    struct store *st = fixture_open(db);
    struct store_session s = {0};
    for (;;) {
        fixture_say(&s, PLY_ROLE_USER, "a question");
        fixture_save(st, &s);
        struct store_msg *m = store_session_push(&s, PLY_ROLE_ASSISTANT, "", 0);
        m->state = STORE_WRITING;
        for (int i = 0; i < 5; i++) {
            ply_buf_append(&m->text, "word ", 5);
            ply_ids_push(&m->ids, i);
            m->dirty = true;
            fixture_save(st, &s);
        }
        m->state = STORE_DONE;
        m->finish = STORE_FINISH_STOP;
        m->dirty = true;
        fixture_save(st, &s);
    }
    return 0;
}

static void
test_killed_while_writing(void **state)
{
    const char *db = *state;
    struct store *st = fixture_open(db);
    store_close(&st);
    int64_t n = 0;
    /* Later each time, and on until a slow build has come to write something too. */
    for (int i = 0; i < 15 || (n <= 15 && i < 200); i++) {
        pid_t pid = fixture_fork(write_for_ever, db, 0);
        fixture_sleep_us(3000 + i * 2500L);
        kill(pid, SIGKILL);
        fixture_wait(pid);
        st = fixture_open(db);
        fixture_assert_sound(db);
        assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages WHERE writing = 1"), 0);
        assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages WHERE finish = 'stop'"
                                         " AND content <> 'word word word word word '"),
                         0);
        store_close(&st);
        n = fixture_int(db, "SELECT count(*) FROM messages");
    }
    assert_true(n > 15);
}

/* ---- a full disk ----------------------------------------------------------------------- */

/* B119, by a limit on the file's pages: SQLite then fails as on a full disk. */
static void
test_full_disk(void **state)
{
    const char *db = *state;
    struct store *st = fixture_open(db);
    struct ply_err err = {0};
    int64_t old = fixture_session(st, "old messages", 3);
    struct store_session s = {0};
    assert_int_equal(db_exec(st->db, "PRAGMA max_page_count = 60", &err), 0);
    char *big = malloc(20000);
    memset(big, 'y', 20000);
    int rc = 0, n = 0;
    for (; n < 100 && !rc; n++) {
        assert_non_null(store_session_push(&s, PLY_ROLE_USER, big, 20000));
        rc = store_session_save(st, &s, NULL, &err);
    }
    assert_int_equal(rc, PLY_EIO);
    assert_non_null(strstr(err.msg, "disk is full"));
    assert_int_equal(s.n_path, n);
    assert_int_equal(s.path[n - 1].id, 0);
    fixture_say(&s, PLY_ROLE_ASSISTANT, "the chat goes on"); /* unsaved */
    fixture_say(&s, PLY_ROLE_USER, "and on");
    fixture_assert_sound(db);
    assert_int_equal(fixture_int(db, "SELECT count(*) FROM messages WHERE session = 1"), 6);

    assert_int_equal(db_exec(st->db, "PRAGMA max_page_count = 100000", NULL), 0);
    err = (struct ply_err){0};
    assert_int_equal(store_session_save(st, &s, NULL, &err), 0); /* saving resumes */
    assert_true(store_session_is_saved(&s));
    int64_t id = s.id;
    store_session_fini(&s);
    assert_int_equal(store_session_load(st, id, STORE_LOAD_READ, &s, &err), 0);
    assert_int_equal(s.n_path, n + 2);
    store_session_fini(&s);
    assert_int_equal(store_session_load(st, old, STORE_LOAD_READ, &s, &err), 0);
    assert_int_equal(s.n_path, 6);
    store_session_fini(&s);
    store_close(&st);
    free(big);
    fixture_assert_sound(db);
}

/* A copy that a change of the schema left holds deleted text too. */
static void
test_delete_wipes_copies(void **state)
{
    const char *db = *state;
    struct store *st = fixture_open(db);
    int64_t id = fixture_session(st, "Xylophonequark", 1);
    char *copy = store_copy_path(db, 1);
    char sql[600];
    snprintf(sql, sizeof(sql), "VACUUM INTO '%s'", copy);
    fixture_sql(db, sql);
    assert_true(fixture_folder_holds(db, "Xylophonequark"));
    assert_int_equal(store_session_delete(st, id, NULL), 0);
    assert_false(fixture_folder_holds(db, "Xylophonequark"));
    free(copy);
    store_close(&st);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_rights),
        TEST(test_newer_is_refused),
        TEST(test_newer_in_the_log_is_refused),
        TEST(test_foreign_is_refused),
        TEST(test_not_a_database),
        TEST(test_damaged_pages),
        TEST(test_cannot_create),
        TEST(test_migration),
        TEST(test_migration_that_fails_changes_nothing),
        TEST(test_migration_killed),
        TEST(test_two_migrate_at_once),
        TEST(test_first_start_twice_at_once),
        TEST(test_two_chats_at_once),
        TEST(test_lock_held),
        TEST(test_session_open_elsewhere),
        TEST(test_moved_on_elsewhere),
        TEST(test_parent_taken_back_elsewhere),
        TEST(test_session_deleted_elsewhere),
        TEST(test_killed_while_writing),
        TEST(test_full_disk),
        TEST(test_delete_wipes_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

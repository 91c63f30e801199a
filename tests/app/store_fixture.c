/* SPDX-License-Identifier: MIT */
#include "tests/app/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int
fixture_setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = NULL, *db = NULL;
    if (asprintf(&dir, "%s/parley-test-XXXXXX", tmp ? tmp : "/tmp") < 0 || !mkdtemp(dir) ||
        asprintf(&db, "%s/data/parley.db", dir) < 0)
        return -1;
    free(dir);
    *state = db;
    return 0;
}

static int
remove_one(const char *path, const struct stat *sb, int type, struct FTW *ftw)
{
    return remove(path);
}

int
fixture_teardown(void **state)
{
    char *db = *state;
    *strstr(db, "/data/parley.db") = '\0';
    int rc = nftw(db, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(db);
    return rc;
}

const char *
fixture_path(const char *db, const char *end)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s%s", db, end);
    return path;
}

struct store *
fixture_open(const char *db)
{
    struct store *st;
    struct ply_err err = {0};
    if (store_open(&st, db, 10000, &err) != 0)
        fail_msg("%s", err.msg);
    return st;
}

struct store_msg *
fixture_say(struct store_session *s, enum ply_role role, const char *text)
{
    struct store_msg *m = store_session_push(s, role, text, strlen(text));
    assert_non_null(m);
    if (role == PLY_ROLE_ASSISTANT)
        m->finish = STORE_FINISH_STOP;
    return m;
}

void
fixture_save(struct store *st, struct store_session *s)
{
    struct ply_err err = {0};
    if (store_session_save(st, s, NULL, &err) != 0)
        fail_msg("%s", err.msg);
}

int64_t
fixture_session(struct store *st, const char *first, int n_turns)
{
    struct store_session s = {0};
    for (int i = 0; i < n_turns; i++) {
        char text[64];
        snprintf(text, sizeof(text), "question %d", i);
        fixture_say(&s, PLY_ROLE_USER, i == 0 ? first : text);
        snprintf(text, sizeof(text), "answer %d", i);
        fixture_say(&s, PLY_ROLE_ASSISTANT, text);
    }
    fixture_save(st, &s);
    int64_t id = s.id;
    store_session_release(st, &s);
    store_session_fini(&s);
    return id;
}

static sqlite3 *
sqlite_at(const char *db)
{
    sqlite3 *c;
    assert_int_equal(sqlite3_open(db, &c), SQLITE_OK);
    sqlite3_busy_timeout(c, 10000);
    return c;
}

void
fixture_sql(const char *db, const char *sql)
{
    sqlite3 *c = sqlite_at(db);
    char *msg = NULL;
    if (sqlite3_exec(c, sql, NULL, NULL, &msg) != SQLITE_OK)
        fail_msg("%s: %s", sql, msg);
    sqlite3_close(c);
}

int64_t
fixture_int(const char *db, const char *sql)
{
    sqlite3 *c = sqlite_at(db);
    sqlite3_stmt *q;
    if (sqlite3_prepare_v2(c, sql, -1, &q, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(c));
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    int64_t v = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    sqlite3_close(c);
    return v;
}

void
fixture_assert_sound(const char *db)
{
    assert_int_equal(fixture_int(db, "SELECT count(*) FROM pragma_integrity_check"
                                     " WHERE integrity_check <> 'ok'"),
                     0);
    assert_int_equal(fixture_int(db, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    fixture_sql(db, "INSERT INTO messages_fts(messages_fts) VALUES ('integrity-check')");
}

bool
fixture_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

char *
fixture_read(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    struct stat sb;
    assert_int_equal(fstat(fileno(f), &sb), 0);
    char *bytes = malloc((size_t)sb.st_size + 1);
    assert_non_null(bytes);
    *len = fread(bytes, 1, (size_t)sb.st_size, f);
    fclose(f);
    return bytes;
}

uint64_t
fixture_hash(const char *path)
{
    size_t len;
    char *bytes = fixture_read(path, &len);
    if (!bytes)
        return 0;
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    free(bytes);
    return h;
}

bool
fixture_folder_holds(const char *db, const char *bytes)
{
    char dir[512], path[800];
    snprintf(dir, sizeof(dir), "%s", db);
    *strrchr(dir, '/') = '\0';
    DIR *d = opendir(dir);
    assert_non_null(d);
    bool found = false;
    for (struct dirent *e; (e = readdir(d)) != NULL && !found;) {
        size_t len;
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        char *all = e->d_type == DT_REG ? fixture_read(path, &len) : NULL;
        found = all && memmem(all, len, bytes, strlen(bytes));
        free(all);
    }
    closedir(d);
    return found;
}

pid_t
fixture_fork(int (*fn)(const char *db, int arg), const char *db, int arg)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(fn(db, arg) == 0 ? 0 : 1);
    return pid;
}

int
fixture_wait(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void
fixture_sleep_us(long us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

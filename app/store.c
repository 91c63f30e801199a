/* SPDX-License-Identifier: MIT
 * The file: whose it is, its rights, its schema's version, and who has a session open.
 *
 * A file is looked at before SQLite may touch it: first its header's bytes, then, because a
 * newer header may still stand in the write-ahead log, the same fields as SQLite sees them.
 * Until both say that it is ours and not newer than this build, nothing is written, and the log
 * is not folded back when the connection closes.
 *
 * An owner is "pid:start:boot": the process, its start in clock ticks since boot and the boot's
 * id, so that neither a number that is used again nor a reboot keeps a session taken. */
#include "app/store_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/paths.h"
#include "engine/base/log.h"

/* ---- time and owners ------------------------------------------------------------------- */

int64_t
store_now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static size_t
read_small(const char *path, char *buf, size_t size)
{
    buf[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, buf, size - 1);
    close(fd);
    if (n < 0)
        n = 0;
    buf[n] = '\0';
    return (size_t)n;
}

/* Field 22 of /proc/PID/stat; 0 when it cannot be had, or when the process is dead and only
 * waits for its parent. The name in field 2 may hold anything, so fields are counted from the
 * last ')'. */
static unsigned long long
process_start(long pid)
{
    char path[64], buf[1024];
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    read_small(path, buf, sizeof(buf));
    const char *s = strrchr(buf, ')');
    if (s && strncmp(s, ") Z", 3) == 0)
        return 0;
    for (int field = 2; s && field < 22; field++) {
        s = strchr(s, ' ');
        if (s)
            s++;
    }
    return s ? strtoull(s, NULL, 10) : 0;
}

static void
boot_id(char out[9])
{
    char buf[64];
    read_small("/proc/sys/kernel/random/boot_id", buf, sizeof(buf));
    snprintf(out, 9, "%.8s", buf);
}

static void
owner_write(long pid, char *out, size_t size)
{
    char boot[9];
    boot_id(boot);
    snprintf(out, size, "%ld:%llu:%s", pid, process_start(pid), boot);
}

bool
store_owner_is_other(const struct store *st, const char *owner)
{
    if (!owner || strcmp(owner, st->owner) == 0)
        return false;
    long pid = strtol(owner, NULL, 10);
    if (pid <= 0 || (kill((pid_t)pid, 0) != 0 && errno != EPERM))
        return false;
    char now[sizeof(st->owner)];
    owner_write(pid, now, sizeof(now));
    return strcmp(owner, now) == 0;
}

/* ---- transactions ---------------------------------------------------------------------- */

int
store_begin(struct store *st, struct ply_err *err)
{
    return db_run(st->db, SQL_BEGIN, err);
}

static int
end_transaction(struct db *db, int rc, struct ply_err *err)
{
    if (rc == PLY_OK)
        rc = db_run(db, SQL_COMMIT, err);
    /* A full disk or an I/O fault may have rolled back already. */
    if (rc != PLY_OK && db_in_transaction(db))
        db_run(db, SQL_ROLLBACK, NULL);
    return rc;
}

int
store_end(struct store *st, int rc, struct ply_err *err)
{
    return end_transaction(st->db, rc, err);
}

/* ---- whose file it is ------------------------------------------------------------------ */

struct identity {
    int64_t application_id, version, n_tables;
};

static uint32_t
be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int
identity_check(const struct identity *is, const char *path, struct ply_err *err)
{
    bool ours = is->application_id == SQL_APPLICATION_ID;
    bool new = is->application_id == 0 && is->version == 0 && is->n_tables == 0;
    if (new)
        return PLY_OK;
    if (!ours || is->version <= 0)
        return ply_fail(err, PLY_EUNSUPPORTED,
                        "%s is a database of another program: nothing was changed; move it away",
                        path);
    int latest = sql_steps[sql_n_steps - 1].to_version;
    if (is->version > latest)
        return ply_fail(err, PLY_EUNSUPPORTED,
                        "%s was written by a newer parley (schema %" PRId64 ", this one knows %d): "
                        "nothing was changed; use the newer program, or move the file away",
                        path, is->version, latest);
    return PLY_OK;
}

/* The header's own bytes: user_version at 60, application_id at 68, size in pages at 28,
 * write and read version at 18 and 19 (2: it has a log). A file that SQLite must not open is
 * refused here. *settled: its schema and its mode are this build's. */
static int
header_check(const char *path, bool *settled, struct ply_err *err)
{
    unsigned char h[100];
    *settled = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return ply_fail(err, PLY_EIO, "cannot read %s: %s", path, strerror(errno));
    struct stat sb;
    ssize_t n = fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode) ? read(fd, h, sizeof(h)) : -1;
    /* SQLite holds no lock on it yet: closing here drops none. */
    close(fd);
    if (n < 0)
        return ply_fail(err, PLY_EIO, "cannot read %s: it is not a plain file", path);
    if (n == 0)
        return PLY_OK;
    if (n < (ssize_t)sizeof(h) || memcmp(h, "SQLite format 3", 16) != 0)
        return ply_fail(err, PLY_EFORMAT, "%s is damaged: it is not a database; move it away",
                        path);
    struct identity is = {be32(h + 68), (int32_t)be32(h + 60), be32(h + 28) > 1};
    *settled = h[18] == 2 && h[19] == 2 && is.version == sql_steps[sql_n_steps - 1].to_version;
    return identity_check(&is, path, err);
}

static int
identity_read(struct db *db, struct identity *is, struct ply_err *err)
{
    struct db_stmt *q;
    int rc = db_query(db, SQL_IDENTITY, &q, err);
    if (!rc)
        rc = db_step(q, err);
    if (rc != 1)
        return rc ? rc : ply_fail(err, PLY_EINTERNAL, "a database without a header");
    *is = (struct identity){db_int(q, 0), db_int(q, 1), db_int(q, 2)};
    db_done(q);
    return PLY_OK;
}

/* ---- rights ---------------------------------------------------------------------------- */

static int
file_make(const char *path, struct ply_err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        return ply_fail(err, PLY_ECREATE, "cannot create %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return PLY_OK;
}

/* By name, never by descriptor: closing one would drop SQLite's locks on the file. */
static void
files_make_private(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char *name = NULL;
        if (asprintf(&name, "%s%s", path, ends[i]) < 0)
            return;
        struct stat sb;
        if (stat(name, &sb) == 0 && (sb.st_mode & 077) != 0 && chmod(name, 0600) != 0)
            ply_log(PLY_LOG_WARN, "store", "cannot make %s private: %s", name, strerror(errno));
        free(name);
    }
}

static char *
folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* ---- the schema's version -------------------------------------------------------------- */

int
store_folder_lock(const char *path, int *fd, struct ply_err *err)
{
    char *dir = folder_of(path);
    *fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(dir);
    if (*fd < 0)
        return ply_fail(err, PLY_EIO, "cannot open the folder of %s: %s", path, strerror(errno));
    for (int tries = 0; flock(*fd, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return PLY_OK;
        if (tries == 500) {
            close(*fd);
            *fd = -1;
            return ply_fail(err, PLY_EBUSY, "%s is being changed by another process", path);
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return PLY_OK;
}

char *
store_copy_path(const char *path, int version)
{
    char *copy = NULL;
    return asprintf(&copy, "%s.v%d.bak", path, version) < 0 ? NULL : copy;
}

/* VACUUM INTO writes to an empty file as readily as to a new one, so the file can be private
 * from its first byte. */
static int
copy_write(struct db *db, const char *temp, const char *copy, struct ply_err *err)
{
    unlink(temp); /* of a process that was killed here */
    int fd = app_file_create(temp, O_EXCL, err);
    if (fd < 0)
        return fd;
    struct db_stmt *q;
    int rc = db_query(db, SQL_COPY_TO, &q, err);
    if (!rc) {
        db_bind_str(q, ":path", temp);
        rc = db_finish(q, err);
    }
    if (!rc && (fsync(fd) != 0 || rename(temp, copy) != 0))
        rc = ply_fail(err, PLY_EIO, "cannot write %s: %s", copy, strerror(errno));
    close(fd);
    if (rc)
        unlink(temp);
    return rc;
}

static int
copy_make(struct db *db, const char *path, int version, struct ply_err *err)
{
    char *copy = store_copy_path(path, version), *temp = NULL;
    if (copy && asprintf(&temp, "%s.tmp", copy) < 0)
        temp = NULL;
    int rc = temp ? copy_write(db, temp, copy, err)
                  : ply_fail(err, PLY_ENOMEM, "no memory for a file name");
    free(temp);
    free(copy);
    return rc;
}

static int
steps_run(struct db *db, int64_t from, const struct sql_step *steps, size_t n_steps,
          struct ply_err *err)
{
    int rc = db_run(db, SQL_BEGIN_EXCLUSIVE, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n_steps && !rc; i++)
        if (steps[i].to_version > from)
            rc = db_exec(db, steps[i].sql, err);
    struct db_stmt *q;
    if (!rc)
        rc = db_query(db, SQL_FOREIGN_KEY_CHECK, &q, err);
    if (!rc) {
        rc = db_step(q, err);
        if (rc == 1) {
            db_done(q);
            rc = ply_fail(err, PLY_EINTERNAL, "the new schema would lose what rows refer to");
        }
    }
    return end_transaction(db, rc, err);
}

int
store_migrate(struct db *db, const char *path, const struct sql_step *steps, size_t n_steps,
              struct ply_err *err)
{
    int64_t version;
    int latest = steps[n_steps - 1].to_version;
    int rc = db_value(db, SQL_USER_VERSION, &version, err);
    if (!rc && version > 0 && version < latest)
        rc = copy_make(db, path, (int)version, err);
    if (!rc && version < latest)
        rc = steps_run(db, version, steps, n_steps, err);
    return rc;
}

/* ---- open and close -------------------------------------------------------------------- */

/* Replies whose process ended before they did. One that is locked out leaves it to the next. */
static void
writing_end(struct store *st)
{
    int64_t dead[64];
    size_t n = 0;
    struct db_stmt *q;
    if (db_query(st->db, SQL_WRITING_SESSIONS, &q, NULL) != 0)
        return;
    while (n < sizeof(dead) / sizeof(dead[0]) && db_step(q, NULL) == 1) {
        const char *owner = db_text(q, 1, NULL);
        if (!owner || !store_owner_is_other(st, owner))
            dead[n++] = db_int(q, 0);
    }
    db_done(q);
    if (n == 0 || store_begin(st, NULL) != 0)
        return;
    int rc = PLY_OK;
    for (size_t i = 0; i < n && !rc; i++) {
        rc = db_query(st->db, SQL_WRITING_END, &q, NULL);
        if (!rc) {
            db_bind_int(q, ":session", dead[i]);
            rc = db_finish(q, NULL);
        }
    }
    store_end(st, rc, NULL);
}

static int
database_connect(struct store *st, int busy_ms, struct ply_err *err)
{
    struct identity is;
    int rc = db_open(&st->db, st->path, busy_ms, err);
    if (!rc)
        rc = db_exec(st->db, sql_connect, err);
    if (!rc)
        rc = identity_read(st->db, &is, err);
    if (!rc)
        rc = identity_check(&is, st->path, err);
    if (rc)
        return rc;
    db_trust(st->db);
    files_make_private(st->path);
    rc = store_migrate(st->db, st->path, sql_steps, sql_n_steps, err);
    if (!rc)
        rc = db_exec(st->db, sql_settle, err);
    return rc;
}

/* A file that is not settled is connected to by one process at a time: switching to a log
 * fails at once when another one so much as reads. */
static int
database_open(struct store *st, int busy_ms, struct ply_err *err)
{
    bool settled;
    int lock = -1, rc = header_check(st->path, &settled, err);
    if (!rc && !settled)
        rc = store_folder_lock(st->path, &lock, err);
    if (!rc)
        rc = database_connect(st, busy_ms, err);
    if (lock >= 0)
        close(lock);
    return rc;
}

int
store_open(struct store **out, const char *path, int busy_ms, struct ply_err *err)
{
    *out = NULL;
    struct store *st = calloc(1, sizeof(*st));
    char *dir = folder_of(path);
    int rc = PLY_ENOMEM;
    if (st && dir)
        st->path = strdup(path);
    if (!st || !dir || !st->path)
        ply_fail(err, rc, "no memory for the database");
    else
        rc = app_dir_make(dir, err);
    free(dir);
    if (!rc)
        rc = file_make(path, err);
    if (!rc)
        rc = database_open(st, busy_ms, err);
    if (rc) {
        store_close(&st);
        return rc;
    }
    owner_write((long)getpid(), st->owner, sizeof(st->owner));
    writing_end(st);
    *out = st;
    return PLY_OK;
}

void
store_close(struct store **st)
{
    if (!*st)
        return;
    db_close(&(*st)->db);
    free((*st)->path);
    free(*st);
    *st = NULL;
}

void
store_busy_set(struct store *st, int busy_ms)
{
    db_busy_set(st->db, busy_ms);
}

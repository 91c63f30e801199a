/* SPDX-License-Identifier: MIT
 * SQLite, wrapped. */
#include "app/db.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

struct db_stmt {
    struct db *db;
    sqlite3_stmt *stmt;
    int bind_rc; /* first failed bind, reported by the next step */
};

struct db {
    sqlite3 *sqlite;
    char *path;
    bool full;
    struct db_stmt stmts[SQL_COUNT]; /* prepared when first asked for */
};

static int
fail_rc(struct db *db, int rc, struct ply_err *err)
{
    const char *path = db->path;
    const char *why = sqlite3_errmsg(db->sqlite);
    db->full = rc == SQLITE_FULL || sqlite3_system_errno(db->sqlite) == ENOSPC;
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ply_fail(err, PLY_EBUSY, "%s is busy: another process is writing to it", path);
    case SQLITE_FULL: return ply_fail(err, PLY_EIO, "the disk is full: cannot write to %s", path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return ply_fail(err, PLY_EFORMAT,
                        "%s is damaged (%s): move it away to begin anew, or try "
                        "'sqlite3 FILE .recover' on a copy",
                        path, why);
    case SQLITE_NOMEM: return ply_fail(err, PLY_ENOMEM, "no memory for the database");
    case SQLITE_CANTOPEN: return ply_fail(err, PLY_ECREATE, "cannot open %s: %s", path, why);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return ply_fail(err, PLY_EIO, "%s cannot be written to: %s", path, why);
    case SQLITE_IOERR:
        if (db->full)
            return ply_fail(err, PLY_EIO, "the disk is full: cannot write to %s", path);
        return ply_fail(err, PLY_EIO, "%s: %s", path, why);
    case SQLITE_TOOBIG: return ply_fail(err, PLY_EINVAL, "too long for the database");
    default: return ply_fail(err, PLY_EINTERNAL, "%s: %s", path, why);
    }
}

int
db_open(struct db **out, const char *path, int busy_ms, struct ply_err *err)
{
    *out = NULL;
    struct db *db = calloc(1, sizeof(*db));
    if (!db)
        return ply_fail(err, PLY_ENOMEM, "no memory for the database");
    db->path = strdup(path);
    int rc = SQLITE_NOMEM;
    if (db->path)
        rc = sqlite3_open_v2(path, &db->sqlite,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                             NULL);
    if (!db->sqlite) {
        db_close(&db);
        return ply_fail(err, PLY_ENOMEM, "no memory for the database");
    }
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(db->sqlite, busy_ms);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (rc != SQLITE_OK) {
        int code = fail_rc(db, rc, err);
        db_close(&db);
        return code;
    }
    *out = db;
    return PLY_OK;
}

void
db_close(struct db **db)
{
    if (!*db)
        return;
    for (size_t i = 0; i < SQL_COUNT; i++)
        sqlite3_finalize((*db)->stmts[i].stmt);
    sqlite3_close((*db)->sqlite);
    free((*db)->path);
    free(*db);
    *db = NULL;
}

void
db_trust(struct db *db)
{
    sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
}

void
db_busy_set(struct db *db, int busy_ms)
{
    sqlite3_busy_timeout(db->sqlite, busy_ms);
}

int
db_exec(struct db *db, const char *sql, struct ply_err *err)
{
    int rc = sqlite3_exec(db->sqlite, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? PLY_OK : fail_rc(db, rc, err);
}

int
db_query(struct db *db, enum sql_id id, struct db_stmt **out, struct ply_err *err)
{
    struct db_stmt *q = &db->stmts[id];
    *out = NULL;
    if (!q->stmt) {
        int rc = sqlite3_prepare_v3(db->sqlite, sql_text[id], -1, SQLITE_PREPARE_PERSISTENT,
                                    &q->stmt, NULL);
        if (rc != SQLITE_OK)
            return fail_rc(db, rc, err);
        q->db = db;
    }
    q->bind_rc = SQLITE_OK;
    *out = q;
    return PLY_OK;
}

/* The index of a name; a name that the statement does not have is a failed bind. */
static int
bind_index(struct db_stmt *q, const char *name)
{
    int index = sqlite3_bind_parameter_index(q->stmt, name);
    if (index == 0)
        q->bind_rc = SQLITE_RANGE;
    return index;
}

static void
bind_result(struct db_stmt *q, int rc)
{
    if (q->bind_rc == SQLITE_OK)
        q->bind_rc = rc;
}

void
db_bind_int(struct db_stmt *q, const char *name, int64_t v)
{
    bind_result(q, sqlite3_bind_int64(q->stmt, bind_index(q, name), v));
}

void
db_bind_real(struct db_stmt *q, const char *name, double v)
{
    bind_result(q, sqlite3_bind_double(q->stmt, bind_index(q, name), v));
}

void
db_bind_text(struct db_stmt *q, const char *name, const char *text, size_t len)
{
    bind_result(q, sqlite3_bind_text64(q->stmt, bind_index(q, name), text, len, SQLITE_STATIC,
                                       SQLITE_UTF8));
}

void
db_bind_str(struct db_stmt *q, const char *name, const char *s)
{
    db_bind_text(q, name, s, s ? strlen(s) : 0);
}

void
db_bind_blob(struct db_stmt *q, const char *name, const void *bytes, size_t len)
{
    bind_result(q, sqlite3_bind_blob64(q->stmt, bind_index(q, name), bytes, len, SQLITE_STATIC));
}

void
db_bind_null(struct db_stmt *q, const char *name)
{
    bind_result(q, sqlite3_bind_null(q->stmt, bind_index(q, name)));
}

void
db_bind_id(struct db_stmt *q, const char *name, int64_t id)
{
    if (id)
        db_bind_int(q, name, id);
    else
        db_bind_null(q, name);
}

int
db_step(struct db_stmt *q, struct ply_err *err)
{
    int rc = q->bind_rc == SQLITE_OK ? sqlite3_step(q->stmt) : q->bind_rc;
    if (rc == SQLITE_ROW)
        return 1;
    int code = rc == SQLITE_DONE ? PLY_OK : fail_rc(q->db, rc, err);
    db_done(q);
    return code;
}

void
db_done(struct db_stmt *q)
{
    sqlite3_reset(q->stmt);
    sqlite3_clear_bindings(q->stmt);
}

int
db_finish(struct db_stmt *q, struct ply_err *err)
{
    int rc;
    do
        rc = db_step(q, err);
    while (rc == 1);
    return rc;
}

int
db_run(struct db *db, enum sql_id id, struct ply_err *err)
{
    struct db_stmt *q;
    int rc = db_query(db, id, &q, err);
    return rc ? rc : db_finish(q, err);
}

int
db_value(struct db *db, enum sql_id id, int64_t *out, struct ply_err *err)
{
    struct db_stmt *q;
    *out = 0;
    int rc = db_query(db, id, &q, err);
    if (rc)
        return rc;
    rc = db_step(q, err);
    if (rc == 1) {
        *out = db_int(q, 0);
        db_done(q);
        rc = PLY_OK;
    }
    return rc;
}

bool
db_is_null(struct db_stmt *q, int col)
{
    return sqlite3_column_type(q->stmt, col) == SQLITE_NULL;
}

int64_t
db_int(struct db_stmt *q, int col)
{
    return sqlite3_column_int64(q->stmt, col);
}

double
db_real(struct db_stmt *q, int col)
{
    return sqlite3_column_double(q->stmt, col);
}

const char *
db_text(struct db_stmt *q, int col, size_t *len)
{
    const char *text = (const char *)sqlite3_column_text(q->stmt, col);
    if (len)
        *len = text ? (size_t)sqlite3_column_bytes(q->stmt, col) : 0;
    return text;
}

const void *
db_blob(struct db_stmt *q, int col, size_t *len)
{
    const void *bytes = sqlite3_column_blob(q->stmt, col);
    *len = bytes ? (size_t)sqlite3_column_bytes(q->stmt, col) : 0;
    return bytes;
}

int64_t
db_last_id(struct db *db)
{
    return sqlite3_last_insert_rowid(db->sqlite);
}

int64_t
db_changes(struct db *db)
{
    return sqlite3_changes64(db->sqlite);
}

bool
db_in_transaction(struct db *db)
{
    return sqlite3_get_autocommit(db->sqlite) == 0;
}

bool
db_is_full(struct db *db)
{
    return db->full;
}

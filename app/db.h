/* SPDX-License-Identifier: MIT
 * A connection to SQLite: the only place that knows its C interface. It runs the texts of
 * app/sql.h, turns its status codes into enum ply_status with a line for people, and holds no
 * SQL and no schema of its own. A statement is prepared when first asked for and kept. */
#ifndef APP_DB_H
#define APP_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/sql.h"
#include "engine/base/err.h"

struct db;
struct db_stmt;

/* The file must exist. It is not written by this, and not by db_close() until db_trust(). */
int db_open(struct db **out, const char *path, int busy_ms, struct ply_err *err);
void db_close(struct db **db);
/* The file is ours: the last connection to close folds the log back into it. */
void db_trust(struct db *db);
void db_busy_set(struct db *db, int busy_ms);

/* Several statements without parameters; rows are thrown away. */
int db_exec(struct db *db, const char *sql, struct ply_err *err);

/* A statement ready to be bound. Names carry their colon. Text and blobs must live until the
 * statement is done; a NULL pointer binds NULL. A failed bind is reported by the next step. */
int db_query(struct db *db, enum sql_id id, struct db_stmt **out, struct ply_err *err);
void db_bind_int(struct db_stmt *q, const char *name, int64_t v);
void db_bind_real(struct db_stmt *q, const char *name, double v);
void db_bind_text(struct db_stmt *q, const char *name, const char *text, size_t len);
void db_bind_str(struct db_stmt *q, const char *name, const char *s);
void db_bind_blob(struct db_stmt *q, const char *name, const void *bytes, size_t len);
void db_bind_null(struct db_stmt *q, const char *name);
void db_bind_id(struct db_stmt *q, const char *name, int64_t id); /* 0 binds NULL */
/* 1: a row; 0: no more; negative: failed. After 0 and failure the statement is done. */
int db_step(struct db_stmt *q, struct ply_err *err);
void db_done(struct db_stmt *q);
/* Step until there are no more rows. */
int db_finish(struct db_stmt *q, struct ply_err *err);
/* db_query and db_finish of a statement without parameters. */
int db_run(struct db *db, enum sql_id id, struct ply_err *err);
/* The first column of its first row; 0 when there is no row. */
int db_value(struct db *db, enum sql_id id, int64_t *out, struct ply_err *err);

/* Columns of the row, from 0; they live until the next step. A NULL gives 0, NULL, false. */
bool db_is_null(struct db_stmt *q, int col);
int64_t db_int(struct db_stmt *q, int col);
double db_real(struct db_stmt *q, int col);
const char *db_text(struct db_stmt *q, int col, size_t *len); /* NUL-terminated; len may be NULL */
const void *db_blob(struct db_stmt *q, int col, size_t *len);

int64_t db_last_id(struct db *db);
int64_t db_changes(struct db *db);
bool db_in_transaction(struct db *db);
/* Whether the last failure was a full disk. */
bool db_is_full(struct db *db);

#endif

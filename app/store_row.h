/* SPDX-License-Identifier: MIT
 * Between a row of the file and its struct. */
#ifndef APP_STORE_ROW_H
#define APP_STORE_ROW_H

#include "app/store_priv.h"

/* What bound parameters point to; freed when the statement has run. */
struct store_bound {
    struct ply_buf ids;
    char *sampling;
};
void store_bound_fini(struct store_bound *b);
/* All columns of a message but session, parent and created_ms. */
int store_msg_bind(struct db_stmt *q, const struct store_msg *m, struct store_bound *b,
                   struct ply_err *err);
/* The row of SQL_MESSAGE_GET. PLY_EFORMAT (err untouched): a damaged row. */
int store_msg_read(struct db_stmt *q, struct store_msg *m, struct ply_err *err);

/* Within a transaction. A session's row; its settings; a message under parent (0: a root). */
int store_row_insert(struct store *st, const struct store_session *s, const char *owner,
                     int64_t *id, struct ply_err *err);
int store_row_update(struct store *st, const struct store_session *s, int64_t id, int64_t leaf,
                     int64_t updated_ms, struct ply_err *err);
int store_message_insert(struct store *st, int64_t session, int64_t parent,
                         const struct store_msg *m, int64_t *id, struct ply_err *err);

/* JSON, to be freed; NULL: no memory. */
char *store_sampling_write(const struct ply_sampling *p);
/* False, *out untouched, when json is NULL or not what the other writes. */
bool store_sampling_read(const char *json, struct ply_sampling *out);

#endif

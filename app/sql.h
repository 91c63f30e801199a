/* SPDX-License-Identifier: MIT
 * All SQL there is. The statements are prepared once and bound by name, never put together
 * from strings; app/db.c runs them, app/store*.c know what they mean. */
#ifndef APP_SQL_H
#define APP_SQL_H

#include <stddef.h>

/* "Prly" in the file's header says whose database it is. */
#define SQL_APPLICATION_ID 0x50726c79

enum sql_id {
    SQL_BEGIN,
    SQL_BEGIN_EXCLUSIVE,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_IDENTITY,
    SQL_USER_VERSION,
    SQL_FOREIGN_KEY_CHECK,
    SQL_COPY_TO,
    SQL_CHECKPOINT,
    SQL_SESSION_INSERT,
    SQL_SESSION_UPDATE,
    SQL_SESSION_GET,
    SQL_SESSION_STATE,
    SQL_SESSION_TITLE_AUTO,
    SQL_SESSION_RENAME,
    SQL_SESSION_LEAF,
    SQL_SESSION_OWNER,
    SQL_SESSION_DELETE,
    SQL_SESSION_LAST,
    SQL_SESSION_BY_TITLE,
    SQL_SESSION_LIST,
    SQL_SESSION_TITLES,
    SQL_MESSAGE_INSERT,
    SQL_MESSAGE_UPDATE,
    SQL_MESSAGE_GET,
    SQL_MESSAGE_TREE,
    SQL_MESSAGE_EXISTS,
    SQL_MESSAGE_REMOVE,
    SQL_MESSAGE_SIBLINGS,
    SQL_MESSAGE_CHILD,
    SQL_MESSAGE_LAST,
    SQL_WRITING_SESSIONS,
    SQL_WRITING_END,
    SQL_SEARCH_INDEX,
    SQL_SEARCH_ALL,
    SQL_INDEX_COMPACT,
    SQL_COUNT,
};
extern const char *const sql_text[SQL_COUNT];

/* One step of the schema, to_version - 1 -> to_version, its PRAGMA user_version included. */
struct sql_step {
    int to_version;
    const char *sql;
};
extern const struct sql_step sql_steps[];
extern const size_t sql_n_steps;

/* For a connection: safe before it is known whose file it is, and what follows then. */
extern const char *const sql_connect;
extern const char *const sql_settle;

#endif

/* SPDX-License-Identifier: MIT
 * The schema, its steps, and every statement.
 *
 *   sessions   one row a conversation; leaf is the last message of the current path
 *   messages   a forest: parent NULL begins a conversation; a parent is older than its children
 *              (parent < id), so a path cannot be a circle
 *   messages_fts   trigrams of the text of messages that are complete. It holds no text of its
 *              own (content=messages) and no positions (detail=none): it can say which messages
 *              might hold a word, and the text itself decides
 *
 * content is bytes in a TEXT column, NUL and ill-formed UTF-8 included. ids are int32, little
 * endian. sampling is a JSON object. Times are milliseconds since 1970. Ids are never used
 * twice (AUTOINCREMENT): people write them down. leaf and place_msg are hints, no foreign keys:
 * a session whose leaf is gone opens at its newest message.
 *
 * The trigram tokenizer stops at a NUL, so messages that hold one have an index of their own. */
#include "app/sql.h"

static const char step_1[] =
    "CREATE TABLE sessions ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " title TEXT NOT NULL DEFAULT '',"
    " title_by_user INTEGER NOT NULL DEFAULT 0,"
    " model_path TEXT,"
    " model_name TEXT,"
    " model_fp TEXT,"
    " template TEXT,"
    " n_ctx INTEGER NOT NULL DEFAULT 0,"
    " sampling TEXT,"
    " system TEXT,"
    " draft TEXT,"
    " leaf INTEGER,"
    " place_msg INTEGER NOT NULL DEFAULT 0,"
    " place_line INTEGER NOT NULL DEFAULT 0,"
    " owner TEXT,"
    " created_ms INTEGER NOT NULL,"
    " updated_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX sessions_by_time ON sessions(updated_ms);"
    "CREATE INDEX sessions_by_title ON sessions(title);"

    "CREATE TABLE messages ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " session INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,"
    " parent INTEGER REFERENCES messages(id) CHECK (parent < id),"
    " role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant')),"
    " content TEXT NOT NULL,"
    " ids BLOB,"
    " writing INTEGER NOT NULL DEFAULT 0," /* 1: a reply whose end has not been stored */
    " finish TEXT,"
    " model_fp TEXT,"
    " template TEXT,"
    " sampling TEXT,"
    " prompt_toks INTEGER,"
    " cached_toks INTEGER,"
    " evaluated_toks INTEGER,"
    " drafted_toks INTEGER,"
    " predicted_toks INTEGER,"
    " ttft_ms REAL,"
    " tokenize_ms REAL,"
    " restore_ms REAL,"
    " prefill_ms REAL,"
    " decode_ms REAL,"
    " predicted_ms REAL,"
    " reuse_reason TEXT,"
    " created_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX messages_by_session ON messages(session, parent);"
    "CREATE INDEX messages_by_parent ON messages(parent);"
    "CREATE INDEX messages_writing ON messages(session) WHERE writing = 1;"
    "CREATE INDEX messages_with_nul ON messages(id) WHERE instr(content, char(0)) > 0;"

    "CREATE VIRTUAL TABLE messages_fts USING fts5("
    " content, content = 'messages', content_rowid = 'id', tokenize = 'trigram', detail = none);"
    "CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages WHEN new.writing = 0 BEGIN"
    " INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content);"
    "END;"
    "CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages WHEN old.writing = 0 BEGIN"
    " INSERT INTO messages_fts(messages_fts, rowid, content)"
    "  VALUES ('delete', old.id, old.content);"
    "END;"
    "CREATE TRIGGER messages_fts_update_old AFTER UPDATE OF content, writing ON messages"
    " WHEN old.writing = 0 BEGIN"
    " INSERT INTO messages_fts(messages_fts, rowid, content)"
    "  VALUES ('delete', old.id, old.content);"
    "END;"
    "CREATE TRIGGER messages_fts_update_new AFTER UPDATE OF content, writing ON messages"
    " WHEN new.writing = 0 BEGIN"
    " INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content);"
    "END;"

    "PRAGMA application_id = 0x50726c79;"
    "PRAGMA user_version = 1;";

const struct sql_step sql_steps[] = {
    {1, step_1},
};
const size_t sql_n_steps = sizeof(sql_steps) / sizeof(sql_steps[0]);

/* secure_delete overwrites what is freed; temporary tables stay in memory, because they would
 * hold text too. */
const char *const sql_connect = "PRAGMA secure_delete = ON;"
                                "PRAGMA temp_store = MEMORY;"
                                "PRAGMA cell_size_check = ON;";

/* NORMAL in WAL mode: after a power cut the last commits may be missing, the file is never
 * damaged, and a commit does not wait for the disk. The log is folded back early, so that it
 * stays small on a nearly full disk. */
const char *const sql_settle = "PRAGMA journal_mode = WAL;"
                               "PRAGMA synchronous = NORMAL;"
                               "PRAGMA wal_autocheckpoint = 250;"
                               "PRAGMA journal_size_limit = 1048576;"
                               "PRAGMA foreign_keys = ON;";

const char *const sql_text[SQL_COUNT] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_BEGIN_EXCLUSIVE] = "BEGIN EXCLUSIVE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    /* In one statement, because another process may be creating the file. */
    [SQL_IDENTITY] = "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)"
                     " FROM pragma_application_id, pragma_user_version",
    [SQL_USER_VERSION] = "PRAGMA user_version",
    [SQL_FOREIGN_KEY_CHECK] = "PRAGMA foreign_key_check",
    [SQL_COPY_TO] = "VACUUM INTO :path",
    [SQL_CHECKPOINT] = "PRAGMA wal_checkpoint(TRUNCATE)",

    [SQL_SESSION_INSERT] =
        "INSERT INTO sessions (title, title_by_user, owner, created_ms, updated_ms)"
        " VALUES (:title, :title_by_user, :owner, :created_ms, :updated_ms)",
    [SQL_SESSION_UPDATE] =
        "UPDATE sessions SET model_path = :model_path, model_name = :model_name,"
        " model_fp = :model_fp, template = :template, n_ctx = :n_ctx, sampling = :sampling,"
        " system = :system, draft = :draft, leaf = :leaf, place_msg = :place_msg,"
        " place_line = :place_line, updated_ms = max(updated_ms, :updated_ms)"
        " WHERE id = :id",
    [SQL_SESSION_GET] =
        "SELECT title, title_by_user, model_path, model_name, model_fp, template, n_ctx,"
        " sampling, system, draft, leaf, place_msg, place_line, owner, created_ms, updated_ms"
        " FROM sessions WHERE id = :id",
    [SQL_SESSION_STATE] = "SELECT leaf, title, title_by_user, owner FROM sessions WHERE id = :id",
    [SQL_SESSION_TITLE_AUTO] =
        "UPDATE sessions SET title = :title WHERE id = :id AND title = '' AND title_by_user = 0",
    [SQL_SESSION_RENAME] = "UPDATE sessions SET title = :title, title_by_user = 1 WHERE id = :id",
    [SQL_SESSION_LEAF] = "UPDATE sessions SET leaf = :leaf WHERE id = :id",
    [SQL_SESSION_OWNER] = "UPDATE sessions SET owner = :owner WHERE id = :id",
    [SQL_SESSION_DELETE] = "DELETE FROM sessions WHERE id = :id",
    [SQL_SESSION_LAST] = "SELECT id FROM sessions ORDER BY updated_ms DESC, id DESC LIMIT 1",
    [SQL_SESSION_BY_TITLE] =
        "SELECT id, title FROM sessions WHERE title = :title ORDER BY updated_ms DESC, id DESC",
    [SQL_SESSION_LIST] = "SELECT id, title, model_name, draft, owner, created_ms, updated_ms,"
                         " (SELECT count(*) FROM messages WHERE session = sessions.id)"
                         " FROM sessions ORDER BY updated_ms DESC, id DESC",
    [SQL_SESSION_TITLES] =
        "SELECT id, title, updated_ms FROM sessions ORDER BY updated_ms DESC, id DESC",

    [SQL_MESSAGE_INSERT] =
        "INSERT INTO messages (session, parent, role, content, ids, writing, finish, model_fp,"
        " template, sampling, prompt_toks, cached_toks, evaluated_toks, drafted_toks,"
        " predicted_toks, ttft_ms, tokenize_ms, restore_ms, prefill_ms, decode_ms,"
        " predicted_ms, reuse_reason, created_ms)"
        " VALUES (:session, :parent, :role, :content, :ids, :writing, :finish, :model_fp,"
        " :template, :sampling, :prompt_toks, :cached_toks, :evaluated_toks, :drafted_toks,"
        " :predicted_toks, :ttft_ms, :tokenize_ms, :restore_ms, :prefill_ms, :decode_ms,"
        " :predicted_ms, :reuse_reason, :created_ms)",
    [SQL_MESSAGE_UPDATE] =
        "UPDATE messages SET role = :role, content = :content, ids = :ids, writing = :writing,"
        " finish = :finish, model_fp = :model_fp, template = :template, sampling = :sampling,"
        " prompt_toks = :prompt_toks, cached_toks = :cached_toks,"
        " evaluated_toks = :evaluated_toks, drafted_toks = :drafted_toks,"
        " predicted_toks = :predicted_toks, ttft_ms = :ttft_ms, tokenize_ms = :tokenize_ms,"
        " restore_ms = :restore_ms, prefill_ms = :prefill_ms, decode_ms = :decode_ms,"
        " predicted_ms = :predicted_ms, reuse_reason = :reuse_reason"
        " WHERE id = :id",
    [SQL_MESSAGE_GET] =
        "SELECT session, parent, role, content, ids, writing, finish, model_fp, template,"
        " sampling, prompt_toks, cached_toks, evaluated_toks, drafted_toks, predicted_toks,"
        " ttft_ms, tokenize_ms, restore_ms, prefill_ms, decode_ms, predicted_ms,"
        " reuse_reason, created_ms FROM messages WHERE id = :id",
    /* The columns of SQL_MESSAGE_GET, and the id. */
    [SQL_MESSAGE_TREE] =
        "SELECT session, parent, role, content, ids, writing, finish, model_fp, template,"
        " sampling, prompt_toks, cached_toks, evaluated_toks, drafted_toks, predicted_toks,"
        " ttft_ms, tokenize_ms, restore_ms, prefill_ms, decode_ms, predicted_ms,"
        " reuse_reason, created_ms, id FROM messages WHERE session = :session ORDER BY id",
    [SQL_MESSAGE_EXISTS] = "SELECT 1 FROM messages WHERE id = :id AND session = :session",
    [SQL_MESSAGE_REMOVE] = "DELETE FROM messages WHERE id = :id AND session = :session"
                           " AND NOT EXISTS (SELECT 1 FROM messages WHERE parent = :id)",
    [SQL_MESSAGE_SIBLINGS] =
        "SELECT id FROM messages WHERE session = :session"
        " AND parent IS (SELECT parent FROM messages WHERE id = :id) ORDER BY id",
    [SQL_MESSAGE_CHILD] = "SELECT max(id) FROM messages WHERE parent = :parent",
    [SQL_MESSAGE_LAST] = "SELECT max(id) FROM messages WHERE session = :session",

    [SQL_WRITING_SESSIONS] =
        "SELECT DISTINCT m.session, s.owner FROM messages m INDEXED BY messages_writing"
        " JOIN sessions s ON s.id = m.session WHERE m.writing = 1",
    [SQL_WRITING_END] = "UPDATE messages SET writing = 0, finish = 'interrupted'"
                        " WHERE session = :session AND writing = 1",

    [SQL_SEARCH_INDEX] =
        "SELECT m.id, m.session, m.role, m.content, m.created_ms, s.title"
        " FROM messages m JOIN sessions s ON s.id = m.session"
        " WHERE m.id IN (SELECT rowid FROM messages_fts WHERE messages_fts MATCH :match"
        " UNION SELECT id FROM messages WHERE instr(content, char(0)) > 0)"
        " ORDER BY m.id DESC",
    [SQL_SEARCH_ALL] = "SELECT m.id, m.session, m.role, m.content, m.created_ms, s.title"
                       " FROM messages m JOIN sessions s ON s.id = m.session ORDER BY m.id DESC",
    /* Merges the index into one segment: entries of deleted messages leave the file. */
    [SQL_INDEX_COMPACT] = "INSERT INTO messages_fts(messages_fts) VALUES ('optimize')",
};

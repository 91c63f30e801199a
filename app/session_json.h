/* SPDX-License-Identifier: MIT
 * Sessions as JSON: what show, ls and search print, what export writes and import reads.
 *
 * A file of export is {"format": "parley-sessions", "version": 1, "sessions": [...]}. A session
 * holds all its messages, each with "id" and "parent" (null: a root) and after its parent;
 * "leaf" is where its current path ends. Text that is not UTF-8 stands in "bytes64" as it is,
 * and in "text" with replacement characters. Names are those of the jsonl events where the
 * thing is the same. */
#ifndef APP_SESSION_JSON_H
#define APP_SESSION_JSON_H

#include <jansson.h>

#include "app/store.h"

#define SESSION_JSON_FORMAT "parley-sessions"
#define SESSION_JSON_VERSION 1

/* New references; NULL: no memory. */
json_t *session_json_text(const char *text, size_t len); /* a string, ill-formed parts replaced */
json_t *session_json_time(int64_t ms);                   /* "2026-11-30T14:57:01.000Z" */
/* A session's own fields, without messages. */
json_t *session_json_head(const struct store_session *s);
/* parent 0: null. */
json_t *session_json_message(const struct store_msg *m, int64_t parent);

/* One session of an import, to be given to store_tree_insert(). PLY_EFORMAT says what is wrong. */
int session_json_read(const json_t *o, struct store_session *s, struct store_tree *t,
                      int64_t *leaf, struct ply_err *err);

#endif

/* SPDX-License-Identifier: MIT
 * What the tests of the store share: a private folder, a second look at the file through
 * SQLite's own interface, and processes to be killed. */
#ifndef TESTS_APP_STORE_FIXTURE_H
#define TESTS_APP_STORE_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "app/store.h"

/* cmocka set-up and tear-down: *state is the database's path in a new folder whose parent
 * folder goes away afterwards. */
int fixture_setup(void **state);
int fixture_teardown(void **state);
const char *fixture_path(const char *db, const char *end); /* db with end appended, static */

struct store *fixture_open(const char *db);
/* Append a complete message. */
struct store_msg *fixture_say(struct store_session *s, enum ply_role role, const char *text);
void fixture_save(struct store *st, struct store_session *s);
/* A stored session of n_turns questions and answers; returns its id. */
int64_t fixture_session(struct store *st, const char *first, int n_turns);

/* Through SQLite itself. */
void fixture_sql(const char *db, const char *sql);
int64_t fixture_int(const char *db, const char *sql);
void fixture_assert_sound(const char *db); /* integrity_check, foreign_key_check, the index */

bool fixture_exists(const char *path);
char *fixture_read(const char *path, size_t *len); /* its bytes, to be freed; NULL: no file */
uint64_t fixture_hash(const char *path); /* of its bytes; 0 when there is none */
bool fixture_folder_holds(const char *db, const char *bytes); /* any file beside db */

/* Fork; the child runs fn(db, arg) and exits 0 if that returns 0. */
pid_t fixture_fork(int (*fn)(const char *db, int arg), const char *db, int arg);
int fixture_wait(pid_t pid); /* its exit status; -signal when killed */
void fixture_sleep_us(long us);

#endif

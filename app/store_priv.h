/* SPDX-License-Identifier: MIT
 * What the store's files share. */
#ifndef APP_STORE_PRIV_H
#define APP_STORE_PRIV_H

#include "app/db.h"
#include "app/store.h"

struct store {
    struct db *db;
    char *path;
    char owner[80]; /* this process, as sessions.owner writes it */
};

/* A growing run of messages. */
struct store_path {
    struct store_msg *v;
    size_t n, cap;
};
struct store_msg *store_path_grow(struct store_path *p); /* zeroed; NULL: no memory */
void store_path_fini(struct store_path *p);
void store_msg_fini(struct store_msg *m);

int64_t store_now_ms(void);
/* Whether an owner's text names a live process other than this one. NULL: no. */
bool store_owner_is_other(const struct store *st, const char *owner);

/* BEGIN IMMEDIATE, and its end: COMMIT when rc is 0, else ROLLBACK. Returns rc, or the code of
 * a commit that failed and was rolled back. */
int store_begin(struct store *st, struct ply_err *err);
int store_end(struct store *st, int rc, struct ply_err *err);

/* Register this process as the one that has the session open; *shared: another live one has. */
int store_claim(struct store *st, int64_t id, bool *shared, struct ply_err *err);

/* An advisory lock on the file's folder, until *fd is closed: one process at a time creates the
 * file or changes its schema. A file system without such locks leaves it to SQLite's own. */
int store_folder_lock(const char *path, int *fd, struct ply_err *err);
/* Bring the schema of db at path up to the last of steps, in one transaction, after a copy of a
 * schema that held something. Under the folder's lock. */
int store_migrate(struct db *db, const char *path, const struct sql_step *steps, size_t n_steps,
                  struct ply_err *err);
/* The name of the copy that is made of version `version`. Allocated. */
char *store_copy_path(const char *path, int version);

#endif

/* SPDX-License-Identifier: MIT
 * File to memory: a session and the path to its current message, its branches. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

#include "app/store_row.h"

/* ---- one path -------------------------------------------------------------------------- */

static int64_t
id_of(struct store *st, enum sql_id sql, const char *name, int64_t value, int *rc,
      struct ply_err *err)
{
    struct db_stmt *q;
    int64_t id = 0;
    *rc = db_query(st->db, sql, &q, err);
    if (*rc)
        return 0;
    db_bind_int(q, name, value);
    *rc = db_step(q, err);
    if (*rc == 1) {
        id = db_int(q, 0);
        db_done(q);
        *rc = PLY_OK;
    }
    return id;
}

/* Read one message to the end of p. *parent: where its path goes on, 0 at the root or where
 * the way up is lost, which counts as one more skipped. */
static int
step_up(struct store *st, int64_t session, int64_t id, struct store_path *p, int64_t *parent,
        size_t *n_skipped, struct ply_err *err)
{
    struct db_stmt *q;
    *parent = 0;
    int rc = db_query(st->db, SQL_MESSAGE_GET, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":id", id);
    rc = db_step(q, err);
    if (rc < 0)
        return rc;
    if (rc == 0 || db_int(q, 0) != session) {
        if (rc == 1)
            db_done(q);
        ++*n_skipped;
        return PLY_OK;
    }
    *parent = db_int(q, 1);
    if (*parent >= id || *parent < 0) { /* never a circle */
        *parent = 0;
        ++*n_skipped;
    }
    struct store_msg *m = store_path_grow(p);
    rc = m ? store_msg_read(q, m, err) : ply_fail(err, PLY_ENOMEM, "no memory for a session");
    db_done(q);
    if (!rc) {
        m->id = id;
    } else if (m) {
        store_msg_fini(m);
        p->n--;
    }
    if (rc == PLY_EFORMAT) {
        ++*n_skipped;
        rc = PLY_OK;
    }
    return rc;
}

static void
path_reverse(struct store_path *p)
{
    for (size_t i = 0, j = p->n; i + 1 < j; i++) {
        struct store_msg m = p->v[i];
        p->v[i] = p->v[--j];
        p->v[j] = m;
    }
}

/* From leaf up to the root. A leaf that is not there is damage, or a session whose last message
 * was taken back: then the newest message of the session is the end. */
static int
path_read(struct store *st, int64_t session, int64_t leaf, struct store_path *p, size_t *n_skipped,
          struct ply_err *err)
{
    int rc = PLY_OK;
    size_t lost = 0;
    int64_t parent = 0;
    *n_skipped = 0;
    if (leaf)
        rc = step_up(st, session, leaf, p, &parent, &lost, err);
    if (!rc && p->n == 0 && parent == 0) {
        int64_t newest = id_of(st, SQL_MESSAGE_LAST, ":session", session, &rc, err);
        if (!rc && newest && newest != leaf)
            rc = step_up(st, session, newest, p, &parent, &lost, err);
    }
    *n_skipped = lost;
    while (!rc && parent)
        rc = step_up(st, session, parent, p, &parent, n_skipped, err);
    path_reverse(p);
    return rc;
}

/* ---- a session ------------------------------------------------------------------------- */

static int
string_read(struct db_stmt *q, int col, char **out)
{
    return store_string_set(out, db_text(q, col, NULL));
}

/* A count that makes sense, else 0. */
static int
small_read(struct db_stmt *q, int col)
{
    int64_t v = db_int(q, col);
    return v >= 0 && v <= 1 << 24 ? (int)v : 0;
}

/* The row's columns; the path comes after. */
static int
row_read(struct store *st, int64_t id, struct store_session *s, struct ply_err *err)
{
    struct db_stmt *q;
    int rc = db_query(st->db, SQL_SESSION_GET, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":id", id);
    rc = db_step(q, err);
    if (rc == 0)
        return ply_fail(err, PLY_ENOENT, "there is no session #%" PRId64, id);
    if (rc < 0)
        return rc;
    s->id = id;
    rc = string_read(q, 0, &s->title) | string_read(q, 2, &s->model_path) |
         string_read(q, 3, &s->model_name) | string_read(q, 5, &s->template_name) |
         string_read(q, 8, &s->system) | string_read(q, 9, &s->draft);
    s->title_by_user = db_int(q, 1) != 0;
    const char *fp = db_text(q, 4, NULL);
    snprintf(s->model_fp, sizeof(s->model_fp), "%s", fp ? fp : "");
    s->n_ctx = small_read(q, 6);
    s->has_sampling = store_sampling_read(db_text(q, 7, NULL), &s->sampling);
    s->seen_leaf = db_int(q, 10);
    s->place_msg = db_int(q, 11);
    s->place_line = small_read(q, 12);
    s->shared = store_owner_is_other(st, db_text(q, 13, NULL));
    s->created_ms = db_int(q, 14);
    s->updated_ms = db_int(q, 15);
    db_done(q);
    return rc ? ply_fail(err, PLY_ENOMEM, "no memory for a session") : PLY_OK;
}

/* What another live process is at: its question and the reply it is writing are its own. */
static void
cut_unfinished(struct store_session *s)
{
    size_t n = s->n_path;
    while (n > 0 &&
           !(s->path[n - 1].role == PLY_ROLE_ASSISTANT && s->path[n - 1].state == STORE_DONE))
        n--;
    store_session_cut(s, n);
}

/* Nobody is writing these any more: their process is dead. */
static void
end_unfinished(struct store_session *s)
{
    for (size_t i = 0; i < s->n_path; i++) {
        if (s->path[i].state != STORE_WRITING)
            continue;
        s->path[i].state = STORE_DONE;
        s->path[i].finish = STORE_FINISH_INTERRUPTED;
        s->path[i].dirty = true;
    }
}

int
store_session_load(struct store *st, int64_t id, enum store_load how, struct store_session *s,
                   struct ply_err *err)
{
    store_session_fini(s);
    bool shared = false;
    int rc = how == STORE_LOAD_CLAIM ? store_claim(st, id, &shared, err) : PLY_OK;
    bool claimed = how == STORE_LOAD_CLAIM && rc == PLY_OK && !shared;
    if (rc == PLY_EBUSY) { /* readable all the same, and a branch at worst */
        rc = PLY_OK;
        if (err)
            *err = (struct ply_err){0};
    }
    if (!rc)
        rc = row_read(st, id, s, err);
    struct store_path p = {0};
    if (!rc)
        rc = path_read(st, id, s->seen_leaf, &p, &s->n_skipped, err);
    s->path = p.v;
    s->n_path = p.n;
    s->cap_path = p.cap;
    s->claimed = claimed;
    if (rc) {
        s->id = id;
        store_session_release(st, s);
        store_session_fini(s);
        return rc;
    }
    if (how == STORE_LOAD_CLAIM && s->shared)
        cut_unfinished(s);
    if (!s->shared)
        end_unfinished(s);
    return PLY_OK;
}

/* ---- branches -------------------------------------------------------------------------- */

int
store_siblings(struct store *st, int64_t session, int64_t msg, int64_t **ids, size_t *n,
               struct ply_err *err)
{
    struct db_stmt *q;
    *ids = NULL;
    *n = 0;
    int rc = db_query(st->db, SQL_MESSAGE_SIBLINGS, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":session", session);
    db_bind_int(q, ":id", msg);
    while ((rc = db_step(q, err)) == 1) {
        int64_t *v = reallocarray(*ids, *n + 1, sizeof(*v));
        if (!v) {
            db_done(q);
            rc = ply_fail(err, PLY_ENOMEM, "no memory for the branches");
            break;
        }
        *ids = v;
        v[(*n)++] = db_int(q, 0);
    }
    if (rc) {
        free(*ids);
        *ids = NULL;
        *n = 0;
    }
    return rc;
}

static int
leaf_set(struct store *st, int64_t session, int64_t leaf, struct ply_err *err)
{
    struct db_stmt *q;
    int rc = db_query(st->db, SQL_SESSION_LEAF, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":id", session);
    db_bind_int(q, ":leaf", leaf);
    return db_finish(q, err);
}

int
store_session_goto(struct store *st, struct store_session *s, int64_t msg, struct ply_err *err)
{
    if (!store_session_is_saved(s))
        return ply_fail(err, PLY_EINVAL, "not everything said here is stored yet");
    int rc = PLY_OK;
    int64_t leaf = msg, child = msg;
    while (!rc && child > 0) {
        leaf = child;
        child = id_of(st, SQL_MESSAGE_CHILD, ":parent", leaf, &rc, err);
        if (child <= leaf)
            break;
    }
    struct store_path p = {0};
    size_t n_skipped = 0;
    if (!rc)
        rc = path_read(st, s->id, leaf, &p, &n_skipped, err);
    bool found = false;
    for (size_t i = 0; i < p.n; i++)
        found = found || p.v[i].id == msg;
    if (!rc && !found)
        rc = ply_fail(err, PLY_ENOENT, "there is no message %" PRId64 " in this session", msg);
    if (!rc)
        rc = leaf_set(st, s->id, leaf, err);
    if (rc) {
        store_path_fini(&p);
        return rc;
    }
    store_session_cut(s, 0);
    free(s->path);
    s->path = p.v;
    s->n_path = p.n;
    s->cap_path = p.cap;
    s->n_skipped = n_skipped;
    s->seen_leaf = leaf;
    return PLY_OK;
}

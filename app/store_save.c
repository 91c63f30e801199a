/* SPDX-License-Identifier: MIT
 * Memory to file: save, rename, delete, and who has a session open. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/store_row.h"
#include "engine/base/log.h"
#include "engine/base/num.h"

/* Messages that one transaction adds at most. After a time without a writable file many may
 * wait: then each attempt costs little, and what fits is kept. */
#define NEW_MAX 16

/* What a transaction finds and does; taken over into the session once it is committed. */
struct save {
    int64_t session, db_leaf, leaf;
    size_t first_new, end; /* path[first_new..end) is to be inserted */
    int64_t new_ids[NEW_MAX];
    bool changed; /* a message was added, changed or removed */
    bool title_changed;
    char title[256]; /* made up, if title_changed */
    char *db_title;  /* as the file has it */
    bool db_title_by_user;
};

static int
no_session(int64_t id, struct ply_err *err)
{
    return ply_fail(err, PLY_ENOENT, "there is no session #%" PRId64, id);
}

/* ---- the session's row ----------------------------------------------------------------- */

int
store_row_insert(struct store *st, const struct store_session *s, const char *owner, int64_t *id,
                 struct ply_err *err)
{
    struct db_stmt *q;
    int64_t now = store_now_ms();
    int rc = db_query(st->db, SQL_SESSION_INSERT, &q, err);
    if (rc)
        return rc;
    db_bind_str(q, ":title", s->title ? s->title : "");
    db_bind_int(q, ":title_by_user", s->title_by_user);
    db_bind_str(q, ":owner", owner);
    db_bind_int(q, ":created_ms", s->created_ms ? s->created_ms : now);
    db_bind_int(q, ":updated_ms", s->updated_ms ? s->updated_ms : now);
    rc = db_finish(q, err);
    *id = db_last_id(st->db);
    return rc;
}

static int
row_look(struct store *st, const struct store_session *s, struct save *sv, struct ply_err *err)
{
    struct db_stmt *q;
    int rc = db_query(st->db, SQL_SESSION_STATE, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":id", s->id);
    rc = db_step(q, err);
    if (rc == 0)
        return ply_fail(err, PLY_ENOENT, "session #%" PRId64 " was deleted by another process",
                        s->id);
    if (rc < 0)
        return rc;
    sv->session = s->id;
    sv->db_leaf = db_int(q, 0);
    rc = store_string_set(&sv->db_title, db_text(q, 1, NULL));
    sv->db_title_by_user = db_int(q, 2) != 0;
    db_done(q);
    return rc ? ply_fail(err, rc, "no memory for a title") : PLY_OK;
}

int
store_row_update(struct store *st, const struct store_session *s, int64_t id, int64_t leaf,
                 int64_t updated_ms, struct ply_err *err)
{
    struct db_stmt *q;
    char *sampling = s->has_sampling ? store_sampling_write(&s->sampling) : NULL;
    if (s->has_sampling && !sampling)
        return ply_fail(err, PLY_ENOMEM, "no memory to store a session");
    int rc = db_query(st->db, SQL_SESSION_UPDATE, &q, err);
    if (!rc) {
        db_bind_int(q, ":id", id);
        db_bind_str(q, ":model_path", s->model_path);
        db_bind_str(q, ":model_name", s->model_name);
        db_bind_str(q, ":model_fp", s->model_fp[0] ? s->model_fp : NULL);
        db_bind_str(q, ":template", s->template_name);
        db_bind_int(q, ":n_ctx", s->n_ctx);
        db_bind_str(q, ":sampling", sampling);
        db_bind_str(q, ":system", s->system);
        db_bind_str(q, ":draft", s->draft);
        db_bind_id(q, ":leaf", leaf);
        db_bind_int(q, ":place_msg", s->place_msg);
        db_bind_int(q, ":place_line", s->place_line);
        db_bind_int(q, ":updated_ms", updated_ms);
        rc = db_finish(q, err);
    }
    free(sampling);
    return rc;
}

static int
title_make(struct store *st, const struct store_session *s, struct save *sv, struct ply_err *err)
{
    if (s->title_by_user || sv->db_title_by_user || (sv->db_title && sv->db_title[0]))
        return PLY_OK;
    size_t i = 0;
    while (i < s->n_path && s->path[i].role != PLY_ROLE_USER)
        i++;
    if (i == s->n_path)
        return PLY_OK;
    store_title_from(s->path[i].text.v, s->path[i].text.n, sv->title);
    struct db_stmt *q;
    int rc = db_query(st->db, SQL_SESSION_TITLE_AUTO, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":id", sv->session);
    db_bind_str(q, ":title", sv->title);
    rc = db_finish(q, err);
    sv->title_changed = rc == PLY_OK && db_changes(st->db) == 1;
    return rc;
}

/* ---- its messages ---------------------------------------------------------------------- */

static int
message_exists(struct store *st, int64_t session, int64_t id, bool *yes, struct ply_err *err)
{
    struct db_stmt *q;
    int rc = db_query(st->db, SQL_MESSAGE_EXISTS, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":id", id);
    db_bind_int(q, ":session", session);
    rc = db_step(q, err);
    *yes = rc == 1;
    if (rc == 1)
        db_done(q);
    return rc < 0 ? rc : PLY_OK;
}

/* Where new messages begin. Another process may have taken back a message that ours builds on;
 * then it is stored again, so that nothing said is lost. Only ends of branches can be taken
 * back: what stands above one that exists, exists. */
static int
first_new_find(struct store *st, const struct store_session *s, struct save *sv,
               struct ply_err *err)
{
    size_t i = 0;
    while (i < s->n_path && s->path[i].id)
        i++;
    for (bool exists = false; i > 0 && !exists;) {
        int rc = message_exists(st, sv->session, s->path[i - 1].id, &exists, err);
        if (rc)
            return rc;
        if (!exists)
            i--;
    }
    sv->first_new = i;
    sv->end = PLY_MIN(s->n_path, i + NEW_MAX);
    return PLY_OK;
}

static int
messages_remove(struct store *st, const struct store_session *s, struct save *sv,
                struct ply_err *err)
{
    for (size_t i = 0; i < s->n_gone; i++) {
        struct db_stmt *q;
        int rc = db_query(st->db, SQL_MESSAGE_REMOVE, &q, err);
        if (rc)
            return rc;
        db_bind_int(q, ":id", s->gone[i]);
        db_bind_int(q, ":session", sv->session);
        rc = db_finish(q, err);
        if (rc)
            return rc;
        sv->changed = true;
    }
    return PLY_OK;
}

static int
message_finish(struct db_stmt *q, const struct store_msg *m, struct ply_err *err)
{
    struct store_bound bound;
    int rc = store_msg_bind(q, m, &bound, err);
    if (!rc)
        rc = db_finish(q, err);
    store_bound_fini(&bound);
    return rc;
}

int
store_message_insert(struct store *st, int64_t session, int64_t parent, const struct store_msg *m,
                     int64_t *id, struct ply_err *err)
{
    struct db_stmt *q;
    int rc = db_query(st->db, SQL_MESSAGE_INSERT, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":session", session);
    db_bind_id(q, ":parent", parent);
    db_bind_int(q, ":created_ms", m->created_ms ? m->created_ms : store_now_ms());
    rc = message_finish(q, m, err);
    *id = db_last_id(st->db);
    return rc;
}

static int
message_update(struct store *st, const struct store_msg *m, struct ply_err *err)
{
    struct db_stmt *q;
    int rc = db_query(st->db, SQL_MESSAGE_UPDATE, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":id", m->id);
    return message_finish(q, m, err);
}

static int
messages_write(struct store *st, const struct store_session *s, struct save *sv,
               struct ply_err *err)
{
    for (size_t i = 0; i < sv->end; i++) {
        const struct store_msg *m = &s->path[i];
        int64_t id = m->id;
        int rc = PLY_OK;
        if (i >= sv->first_new)
            rc = store_message_insert(st, sv->session, sv->leaf, m, &id, err);
        else if (m->dirty)
            rc = message_update(st, m, err);
        if (rc)
            return rc;
        if (i >= sv->first_new)
            sv->new_ids[i - sv->first_new] = id;
        sv->changed = sv->changed || i >= sv->first_new || m->dirty;
        sv->leaf = id;
    }
    return PLY_OK;
}

/* ---- save ------------------------------------------------------------------------------ */

static int
save_in_transaction(struct store *st, struct store_session *s, struct save *sv, struct ply_err *err)
{
    int rc =
        s->id ? row_look(st, s, sv, err) : store_row_insert(st, s, st->owner, &sv->session, err);
    if (!rc)
        rc = messages_remove(st, s, sv, err);
    if (!rc)
        rc = first_new_find(st, s, sv, err);
    if (!rc)
        rc = messages_write(st, s, sv, err);
    if (!rc)
        rc = store_row_update(st, s, sv->session, sv->leaf, sv->changed ? store_now_ms() : 0, err);
    if (!rc)
        rc = title_make(st, s, sv, err);
    return rc;
}

/* The file now says what memory says: take over what it added. Cannot fail. */
static void
save_take(struct store_session *s, struct save *sv)
{
    if (s->id == 0) {
        s->created_ms = store_now_ms();
        s->claimed = true;
    }
    s->id = sv->session;
    s->seen_leaf = sv->leaf;
    for (size_t i = 0; i < sv->end; i++) {
        if (i >= sv->first_new)
            s->path[i].id = sv->new_ids[i - sv->first_new];
        s->path[i].dirty = false;
    }
    s->n_gone = 0;
    if (sv->changed)
        s->updated_ms = store_now_ms();
    if (sv->title_changed) {
        store_string_set(&s->title, sv->title);
    } else if (sv->db_title) {
        free(s->title);
        s->title = sv->db_title;
        s->title_by_user = sv->db_title_by_user;
        sv->db_title = NULL;
    }
}

/* One transaction's worth; *more: there is more to be stored. */
static int
save_some(struct store *st, struct store_session *s, bool *moved, bool *more, struct ply_err *err)
{
    struct save sv = {0};
    *more = false;
    int rc = store_begin(st, err);
    if (!rc) {
        rc = save_in_transaction(st, s, &sv, err);
        rc = store_end(st, rc, err);
    }
    if (!rc) {
        bool added = sv.first_new < sv.end;
        *moved = *moved || (s->id && added && sv.db_leaf != s->seen_leaf);
        save_take(s, &sv);
        *more = sv.end < s->n_path;
    }
    free(sv.db_title);
    return rc;
}

int
store_session_save(struct store *st, struct store_session *s, bool *moved, struct ply_err *err)
{
    bool was_moved = false, more = true;
    struct ply_err first = {0};
    bool empty = s->n_path == 0 && (!s->draft || !s->draft[0]) && (!s->title || !s->title[0]);
    int rc = PLY_OK;
    if (s->id == 0 && empty)
        more = false;
    while (!rc && more) {
        rc = save_some(st, s, &was_moved, &more, &first);
        /* On a full disk the log may hold many versions of the same pages: folded back into
         * the file it leaves room. */
        if (rc == PLY_EIO && db_is_full(st->db) && db_run(st->db, SQL_CHECKPOINT, NULL) == 0) {
            first = (struct ply_err){0};
            rc = save_some(st, s, &was_moved, &more, &first);
        }
    }
    if (moved)
        *moved = was_moved;
    return rc ? ply_fail(err, rc, "%s", first.msg) : PLY_OK;
}

/* ---- who has it open ------------------------------------------------------------------- */

/* owner NULL: nobody. */
static int
owner_set(struct store *st, int64_t id, const char *owner, struct ply_err *err)
{
    struct db_stmt *q;
    int rc = db_query(st->db, SQL_SESSION_OWNER, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":id", id);
    db_bind_str(q, ":owner", owner);
    return db_finish(q, err);
}

static int
owner_is_other(struct store *st, int64_t id, bool *other, struct ply_err *err)
{
    struct db_stmt *q;
    int rc = db_query(st->db, SQL_SESSION_STATE, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":id", id);
    rc = db_step(q, err);
    if (rc == 0)
        return no_session(id, err);
    if (rc < 0)
        return rc;
    *other = store_owner_is_other(st, db_text(q, 3, NULL));
    db_done(q);
    return PLY_OK;
}

int
store_claim(struct store *st, int64_t id, bool *shared, struct ply_err *err)
{
    *shared = false;
    int rc = store_begin(st, err);
    if (rc)
        return rc;
    rc = owner_is_other(st, id, shared, err);
    if (!rc && !*shared)
        rc = owner_set(st, id, st->owner, err);
    return store_end(st, rc, err);
}

void
store_session_release(struct store *st, struct store_session *s)
{
    if (s->claimed && owner_set(st, s->id, NULL, NULL) != 0)
        ply_log(PLY_LOG_WARN, "store", "session #%" PRId64 " stays marked as open", s->id);
    s->claimed = false;
}

/* ---- rename and delete ----------------------------------------------------------------- */

int
store_session_rename(struct store *st, int64_t id, const char *title, size_t len,
                     struct ply_err *err)
{
    if (len == 0)
        return ply_fail(err, PLY_EINVAL, "a title needs at least one character");
    struct db_stmt *q;
    int rc = db_query(st->db, SQL_SESSION_RENAME, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":id", id);
    db_bind_text(q, ":title", title, len);
    rc = db_finish(q, err);
    if (!rc && db_changes(st->db) == 0)
        rc = no_session(id, err);
    return rc;
}

static int
row_delete(struct store *st, int64_t id, struct ply_err *err)
{
    bool other;
    int rc = owner_is_other(st, id, &other, err);
    if (!rc && other)
        rc = ply_fail(err, PLY_EBUSY, "session #%" PRId64 " is open in another process", id);
    struct db_stmt *q;
    if (!rc)
        rc = db_query(st->db, SQL_SESSION_DELETE, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":id", id);
    return db_finish(q, err);
}

/* What still holds text of a deleted session: old segments of the index, the log, and copies
 * that a change of the schema left. The session is gone whether or not this succeeds, so that
 * deleting works on a full disk; then the next delete makes good for it. */
static void
remains_wipe(struct store *st)
{
    struct ply_err err = {0};
    if (db_run(st->db, SQL_INDEX_COMPACT, &err) || db_run(st->db, SQL_CHECKPOINT, &err))
        ply_log(PLY_LOG_WARN, "store", "deleted text may remain for now: %s", err.msg);
    for (size_t i = 0; i < sql_n_steps; i++) {
        char *copy = store_copy_path(st->path, sql_steps[i].to_version);
        if (copy)
            unlink(copy);
        free(copy);
    }
}

int
store_session_delete(struct store *st, int64_t id, struct ply_err *err)
{
    int rc = store_begin(st, err);
    if (rc)
        return rc;
    rc = row_delete(st, id, err);
    rc = store_end(st, rc, err);
    if (!rc)
        remains_wipe(st);
    return rc;
}

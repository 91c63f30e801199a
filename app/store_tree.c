/* SPDX-License-Identifier: MIT
 * Whole sessions, all branches: for export and import. */
#include <inttypes.h>
#include <stdlib.h>

#include "app/store_row.h"

void
store_tree_fini(struct store_tree *t)
{
    struct store_path p = {t->v, t->n, t->n};
    store_path_fini(&p);
    free(t->parents);
    *t = (struct store_tree){0};
}

/* ---- load ------------------------------------------------------------------------------ */

/* Damaged messages that were left out, and their parents. */
struct left_out {
    int64_t *ids, *parents;
    size_t n;
};

static int
leave_out(struct left_out *l, int64_t id, int64_t parent)
{
    int64_t *ids = reallocarray(l->ids, l->n + 1, sizeof(*ids));
    if (ids)
        l->ids = ids;
    int64_t *parents = reallocarray(l->parents, l->n + 1, sizeof(*parents));
    if (parents)
        l->parents = parents;
    if (!ids || !parents)
        return PLY_ENOMEM;
    ids[l->n] = id;
    parents[l->n++] = parent;
    return PLY_OK;
}

/* The nearest ancestor that was not left out. Their order is that of ids, so one pass from the
 * back meets each parent after its child. */
static int64_t
parent_kept(const struct left_out *l, int64_t parent)
{
    for (size_t i = l->n; i-- > 0;)
        if (l->ids[i] == parent)
            parent = l->parents[i];
    return parent;
}

/* One row into the tree, or into what is left out. */
static int
row_take(struct db_stmt *q, struct store_path *p, struct store_tree *t, struct left_out *l,
         struct ply_err *err)
{
    int64_t id = db_int(q, 23), parent = parent_kept(l, db_int(q, 1));
    if (parent >= id || parent < 0)
        parent = 0;
    struct store_msg *m = store_path_grow(p);
    int64_t *parents = m ? reallocarray(t->parents, p->cap, sizeof(*parents)) : NULL;
    if (!parents)
        return ply_fail(err, PLY_ENOMEM, "no memory for a session");
    t->parents = parents;
    int rc = store_msg_read(q, m, err);
    if (rc) {
        store_msg_fini(m);
        p->n--;
        return rc == PLY_EFORMAT ? leave_out(l, id, parent) : rc;
    }
    m->id = id;
    t->parents[p->n - 1] = parent;
    return PLY_OK;
}

int
store_tree_load(struct store *st, int64_t session, struct store_tree *out, struct ply_err *err)
{
    struct db_stmt *q;
    struct store_path p = {0};
    struct left_out l = {0};
    *out = (struct store_tree){0};
    int rc = db_query(st->db, SQL_MESSAGE_TREE, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":session", session);
    while ((rc = db_step(q, err)) == 1) {
        rc = row_take(q, &p, out, &l, err);
        if (rc)
            break;
    }
    db_done(q);
    out->v = p.v;
    out->n = p.n;
    out->n_skipped = l.n;
    free(l.ids);
    free(l.parents);
    if (rc)
        store_tree_fini(out);
    return rc;
}

/* ---- insert ---------------------------------------------------------------------------- */

/* Where message id of t[0..n) went; 0 when there is none. Ids are looked for from the back:
 * a parent is nearly always the message before. */
static int64_t
new_id(const struct store_tree *t, const int64_t *ids, size_t n, int64_t id)
{
    while (n-- > 0)
        if (t->v[n].id == id)
            return ids[n];
    return 0;
}

static int
messages_insert(struct store *st, int64_t session, const struct store_tree *t, int64_t *ids,
                struct ply_err *err)
{
    for (size_t i = 0; i < t->n; i++) {
        int64_t parent = t->parents[i] ? new_id(t, ids, i, t->parents[i]) : 0;
        if (t->parents[i] && !parent)
            return ply_fail(err, PLY_EFORMAT, "message %" PRId64 " comes before its parent",
                            t->v[i].id);
        int rc = store_message_insert(st, session, parent, &t->v[i], &ids[i], err);
        if (rc)
            return rc;
    }
    return PLY_OK;
}

int
store_tree_insert(struct store *st, struct store_session *s, const struct store_tree *t,
                  int64_t leaf, struct ply_err *err)
{
    int64_t id = 0, *ids = calloc(t->n + 1, sizeof(*ids));
    if (!ids)
        return ply_fail(err, PLY_ENOMEM, "no memory for a session");
    int rc = store_begin(st, err);
    if (!rc) {
        rc = store_row_insert(st, s, NULL, &id, err);
        if (!rc)
            rc = messages_insert(st, id, t, ids, err);
        int64_t end = leaf ? new_id(t, ids, t->n, leaf) : t->n ? ids[t->n - 1] : 0;
        if (!rc)
            rc = store_row_update(st, s, id, end, 0, err);
        rc = store_end(st, rc, err);
    }
    free(ids);
    if (!rc)
        s->id = id;
    return rc;
}

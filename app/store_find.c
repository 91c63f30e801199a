/* SPDX-License-Identifier: MIT
 * Finding sessions and messages: by id, by title, by text; the list; search. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/match.h"
#include "app/store_priv.h"
#include "engine/base/num.h"
#include "engine/base/utf8.h"

/* ---- by key ---------------------------------------------------------------------------- */

/* Sessions that fit a key at one level: what is looked for is the only one, or the first. */
struct fits {
    int64_t first;
    size_t n;
    char names[256]; /* "#12 tar vs cpio, #9 tar notes" */
};

static void
fits_add(struct fits *f, int64_t id, const char *title)
{
    if (f->n++ == 0)
        f->first = id;
    size_t used = strlen(f->names);
    if (f->n <= 4)
        snprintf(f->names + used, sizeof(f->names) - used, "%s#%" PRId64 " %.40s", used ? ", " : "",
                 id, title ? title : "");
    else if (f->n == 5)
        snprintf(f->names + used, sizeof(f->names) - used, ", ...");
}

static int
fits_settle(const struct fits *f, const char *key, int64_t *id, struct ply_err *err)
{
    if (f->n > 1)
        return ply_fail(err, PLY_EINVAL, "several sessions fit '%.60s': %s; name one by its number",
                        key, f->names);
    *id = f->first;
    return PLY_OK;
}

/* "12" or "#12"; 0 for anything else. */
static int64_t
id_parse(const char *key)
{
    if (*key == '#')
        key++;
    if (!*key || strspn(key, "0123456789") != strlen(key) || strlen(key) > 18)
        return 0;
    return strtoll(key, NULL, 10);
}

static int
by_id(struct store *st, const char *key, int64_t *id, struct ply_err *err)
{
    struct db_stmt *q;
    int64_t number = id_parse(key);
    *id = 0;
    if (!number)
        return PLY_OK;
    int rc = db_query(st->db, SQL_SESSION_STATE, &q, err);
    if (rc)
        return rc;
    db_bind_int(q, ":id", number);
    rc = db_step(q, err);
    if (rc == 1) {
        *id = number;
        db_done(q);
        rc = PLY_OK;
    }
    return rc;
}

static int
by_title(struct store *st, const char *key, bool newest, int64_t *id, struct ply_err *err)
{
    struct db_stmt *q;
    struct fits fits = {0};
    int rc = db_query(st->db, SQL_SESSION_BY_TITLE, &q, err);
    if (rc)
        return rc;
    db_bind_str(q, ":title", key);
    while ((rc = db_step(q, err)) == 1)
        fits_add(&fits, db_int(q, 0), db_text(q, 1, NULL));
    if (rc)
        return rc;
    if (newest)
        fits.n = PLY_MIN(fits.n, (size_t)1);
    return fits_settle(&fits, key, id, err);
}

/* Titles that begin with the key, else titles that hold its words. */
static int
by_title_part(struct store *st, const char *key, const struct app_match *m, int64_t *id,
              struct ply_err *err)
{
    struct db_stmt *q;
    struct fits starts = {0}, parts = {0};
    int rc = db_query(st->db, SQL_SESSION_TITLES, &q, err);
    if (rc)
        return rc;
    while ((rc = db_step(q, err)) == 1) {
        size_t len, pos, n;
        const char *title = db_text(q, 1, &len);
        if (!title || !app_match_all(m, title, len, &pos, &n))
            continue;
        fits_add(&parts, db_int(q, 0), title);
        if (pos == 0)
            fits_add(&starts, db_int(q, 0), title);
    }
    if (rc)
        return rc;
    return fits_settle(starts.n ? &starts : &parts, key, id, err);
}

static int
by_text(struct store *st, const char *key, int64_t *id, struct ply_err *err)
{
    struct store_hits hits;
    struct fits fits = {0};
    int rc = store_search(st, key, 200, &hits, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < hits.n; i++) {
        size_t j = 0;
        while (hits.v[j].session != hits.v[i].session)
            j++;
        if (j == i)
            fits_add(&fits, hits.v[i].session, hits.v[i].title);
    }
    store_hits_fini(&hits);
    return fits_settle(&fits, key, id, err);
}

static int
by_part(struct store *st, const char *key, int64_t *id, struct ply_err *err)
{
    struct app_match m;
    if (app_match_init(&m, key, strlen(key)) != 0)
        return ply_fail(err, PLY_ENOMEM, "no memory for a search");
    int rc = by_title_part(st, key, &m, id, err);
    app_match_fini(&m);
    if (!rc && !*id)
        rc = by_text(st, key, id, err);
    return rc;
}

int
store_session_find(struct store *st, const char *key, enum store_find how, int64_t *id,
                   struct ply_err *err)
{
    bool named = how == STORE_FIND_NAMED;
    *id = 0;
    int rc = named ? by_title(st, key, true, id, err) : by_id(st, key, id, err);
    if (!rc && !*id)
        rc = named ? by_id(st, key, id, err) : by_title(st, key, false, id, err);
    if (!rc && !*id && how == STORE_FIND_ANY)
        rc = by_part(st, key, id, err);
    if (!rc && !*id)
        rc = ply_fail(err, PLY_ENOENT, "there is no session '%.100s'", key);
    return rc;
}

int
store_session_last(struct store *st, int64_t *id, struct ply_err *err)
{
    int rc = db_value(st->db, SQL_SESSION_LAST, id, err);
    if (!rc && !*id)
        rc = ply_fail(err, PLY_ENOENT, "there is no session yet");
    return rc;
}

/* ---- the list -------------------------------------------------------------------------- */

void
store_list_fini(struct store_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].title);
        free(l->v[i].model_name);
    }
    free(l->v);
    *l = (struct store_list){0};
}

/* Room for one more in an array that doubles; NULL: no memory, v is as it was. */
static void *
grow(void *v, size_t n, size_t size)
{
    if (n & (n - 1) || (n > 0 && n < 8))
        return v;
    return reallocarray(v, n ? n * 2 : 8, size);
}

static int
list_add(struct store *st, struct db_stmt *q, struct store_list *out)
{
    struct store_row *v = grow(out->v, out->n, sizeof(*v));
    if (!v)
        return PLY_ENOMEM;
    out->v = v;
    struct store_row *row = &v[out->n++];
    const char *title = db_text(q, 1, NULL), *model = db_text(q, 2, NULL);
    const char *draft = db_text(q, 3, NULL);
    *row = (struct store_row){
        .id = db_int(q, 0),
        .title = strdup(title ? title : ""),
        .model_name = model ? strdup(model) : NULL,
        .has_draft = draft && draft[0],
        .open = store_owner_is_other(st, db_text(q, 4, NULL)),
        .created_ms = db_int(q, 5),
        .updated_ms = db_int(q, 6),
        .n_msgs = db_int(q, 7),
    };
    return row->title && (row->model_name || !model) ? PLY_OK : PLY_ENOMEM;
}

int
store_list(struct store *st, const char *filter, size_t limit, struct store_list *out,
           struct ply_err *err)
{
    struct db_stmt *q;
    struct app_match m;
    *out = (struct store_list){0};
    if (app_match_init(&m, filter ? filter : "", filter ? strlen(filter) : 0) != 0)
        return ply_fail(err, PLY_ENOMEM, "no memory for the list");
    int rc = db_query(st->db, SQL_SESSION_LIST, &q, err);
    while (!rc && (limit == 0 || out->n < limit)) {
        rc = db_step(q, err);
        if (rc != 1)
            break;
        size_t len, pos, n;
        const char *title = db_text(q, 1, &len);
        rc = PLY_OK;
        if (m.n == 0 || (title && app_match_all(&m, title, len, &pos, &n)))
            rc = list_add(st, q, out);
        if (rc)
            ply_fail(err, rc, "no memory for the list");
    }
    if (q)
        db_done(q);
    app_match_fini(&m);
    if (rc)
        store_list_fini(out);
    return rc;
}

/* ---- search ---------------------------------------------------------------------------- */

#define SNIPPET_BEFORE 40 /* bytes around the match, about */
#define SNIPPET_AFTER 120

void
store_hits_fini(struct store_hits *h)
{
    for (size_t i = 0; i < h->n; i++) {
        free(h->v[i].title);
        free(h->v[i].snippet);
    }
    free(h->v);
    *h = (struct store_hits){0};
}

/* Text as one line: control characters and separators become spaces, ill-formed bytes U+FFFD. */
static int
line_append(struct ply_buf *out, const char *s, size_t len)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        char bytes[4];
        int n = ply_utf8_decode(s + i, len - i, &cp);
        i += (size_t)(n < 0 ? -n : n);
        if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029)
            cp = ' ';
        if (ply_buf_append(out, bytes, (size_t)ply_utf8_encode(cp, bytes)) != 0)
            return PLY_ENOMEM;
    }
    return PLY_OK;
}

static bool
is_inside_char(const char *s, size_t len, size_t i)
{
    return i < len && ((unsigned char)s[i] & 0xc0) == 0x80;
}

static int
snippet_make(struct store_hit *hit, const char *text, size_t len, size_t pos, size_t n)
{
    size_t from = pos > SNIPPET_BEFORE ? pos - SNIPPET_BEFORE : 0;
    while (from < pos && is_inside_char(text, len, from))
        from++;
    size_t end = PLY_MIN(len, pos + n + SNIPPET_AFTER);
    while (end > pos + n && is_inside_char(text, len, end))
        end--;
    struct ply_buf out = {0};
    int rc = ply_buf_append(&out, "\xe2\x80\xa6", from ? 3 : 0);
    if (!rc)
        rc = line_append(&out, text + from, pos - from);
    hit->match_pos = out.n;
    if (!rc)
        rc = line_append(&out, text + pos, n);
    hit->match_len = out.n - hit->match_pos;
    if (!rc)
        rc = line_append(&out, text + pos + n, end - pos - n);
    if (!rc)
        rc = ply_buf_append(&out, "\xe2\x80\xa6", end < len ? 3 : 0);
    hit->snippet = out.v;
    return rc;
}

struct found {
    int64_t session, msg, created_ms;
    enum ply_role role;
    const char *title, *text;
    size_t len;
};

/* Add it to out if every word stands in it. */
static int
hit_add(const struct app_match *m, const struct found *f, struct store_hits *out)
{
    size_t pos, n;
    if (!f->text || !app_match_all(m, f->text, f->len, &pos, &n))
        return PLY_OK;
    struct store_hit *v = grow(out->v, out->n, sizeof(*v));
    if (!v)
        return PLY_ENOMEM;
    out->v = v;
    struct store_hit *hit = &v[out->n++];
    *hit = (struct store_hit){
        .session = f->session,
        .msg = f->msg,
        .role = f->role,
        .title = strdup(f->title ? f->title : ""),
        .created_ms = f->created_ms,
    };
    int rc = snippet_make(hit, f->text, f->len, pos, n);
    return hit->title ? rc : PLY_ENOMEM;
}

static int
search_titles(struct store *st, const struct app_match *m, size_t limit, struct store_hits *out,
              struct ply_err *err)
{
    struct db_stmt *q;
    int rc = db_query(st->db, SQL_SESSION_TITLES, &q, err);
    if (rc)
        return rc;
    while (out->n < limit && (rc = db_step(q, err)) == 1) {
        struct found f = {.session = db_int(q, 0), .created_ms = db_int(q, 2)};
        f.title = f.text = db_text(q, 1, &f.len);
        rc = hit_add(m, &f, out);
        if (rc) {
            ply_fail(err, rc, "no memory for a search");
            break;
        }
    }
    db_done(q);
    return rc < 0 ? rc : PLY_OK;
}

/* match: a query for the index that narrows down where to look; empty: everywhere. */
static int
search_messages(struct store *st, const struct app_match *m, const struct ply_buf *match,
                size_t limit, struct store_hits *out, struct ply_err *err)
{
    struct db_stmt *q;
    int rc = db_query(st->db, match->n ? SQL_SEARCH_INDEX : SQL_SEARCH_ALL, &q, err);
    if (rc)
        return rc;
    if (match->n)
        db_bind_text(q, ":match", match->v, match->n);
    while (out->n < limit && (rc = db_step(q, err)) == 1) {
        struct found f = {.msg = db_int(q, 0),
                          .session = db_int(q, 1),
                          .created_ms = db_int(q, 4),
                          .title = db_text(q, 5, NULL)};
        f.text = db_text(q, 3, &f.len);
        rc = PLY_OK;
        if (store_role_parse(db_text(q, 2, NULL), &f.role))
            rc = hit_add(m, &f, out);
        if (rc) {
            ply_fail(err, rc, "no memory for a search");
            break;
        }
    }
    db_done(q);
    return rc < 0 ? rc : PLY_OK;
}

int
store_search(struct store *st, const char *query, size_t limit, struct store_hits *out,
             struct ply_err *err)
{
    struct app_match m;
    struct ply_buf match = {0};
    *out = (struct store_hits){0};
    if (limit == 0)
        limit = SIZE_MAX;
    if (app_match_init(&m, query, strlen(query)) != 0)
        return ply_fail(err, PLY_ENOMEM, "no memory for a search");
    int rc = app_match_trigrams(&m, &match);
    if (rc)
        ply_fail(err, rc, "no memory for a search");
    if (!rc && m.n)
        rc = search_titles(st, &m, limit, out, err);
    if (!rc && m.n)
        rc = search_messages(st, &m, &match, limit, out, err);
    app_match_fini(&m);
    ply_buf_fini(&match);
    if (rc)
        store_hits_fini(out);
    return rc;
}

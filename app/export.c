/* SPDX-License-Identifier: MIT
 * Sessions to files and back. */
#include "app/export.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/paths.h"
#include "app/session_json.h"

/* ---- export ---------------------------------------------------------------------------- */

static json_t *
tree_json(const struct store_session *s, const struct store_tree *t)
{
    json_t *head = session_json_head(s), *a = json_array();
    for (size_t i = 0; i < t->n; i++)
        json_array_append_new(a, session_json_message(&t->v[i], t->parents[i]));
    json_t *leaf = s->n_path ? json_integer(s->path[s->n_path - 1].id) : json_null();
    bool ok = json_array_size(a) == t->n;
    ok = json_object_set_new(head, "leaf", leaf) == 0 && ok;
    ok = json_object_set_new(head, "messages", a) == 0 && ok;
    if (!ok) {
        json_decref(head);
        return NULL;
    }
    return json_pack("{s:s, s:i, s:[o]}", "format", SESSION_JSON_FORMAT, "version",
                     SESSION_JSON_VERSION, "sessions", head);
}

static int
export_json(struct store *st, const struct store_session *s, struct sessions_out *out,
            struct ply_err *err)
{
    struct store_tree t;
    int rc = store_tree_load(st, s->id, &t, err);
    if (rc)
        return rc;
    json_t *all = tree_json(s, &t);
    if (!all || json_dumpf(all, out->f, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) != 0)
        rc = ply_fail(err, PLY_ENOMEM, "no memory for the session, or nowhere to write it to");
    fputc('\n', out->f);
    sessions_tell_skipped(out, t.n_skipped);
    json_decref(all);
    store_tree_fini(&t);
    return rc;
}

/* A heading a message, its text as it is: what was Markdown stays Markdown. */
static void
export_markdown(const struct store_session *s, struct sessions_out *out)
{
    char when[32];
    sessions_time_utc(s->created_ms, when, sizeof(when));
    const char *title = s->title && s->title[0] ? s->title : "Untitled";
    fputs("# ", out->f);
    sessions_put(out, title, strlen(title), true);
    fprintf(out->f, "\n\n%s", when);
    if (s->model_name) {
        fputs(", ", out->f);
        sessions_put(out, s->model_name, strlen(s->model_name), true);
    }
    fputc('\n', out->f);
    if (s->system && s->system[0]) {
        fputs("\n## System\n\n", out->f);
        sessions_put(out, s->system, strlen(s->system), false);
        fputc('\n', out->f);
    }
    static const char *const headings[] = {"System", "You", "Reply"};
    for (size_t i = 0; i < s->n_path; i++) {
        fprintf(out->f, "\n## %s\n\n", headings[s->path[i].role]);
        sessions_put(out, s->path[i].text.v, s->path[i].text.n, false);
        fputc('\n', out->f);
    }
    sessions_tell_skipped(out, s->n_skipped);
}

static bool
ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* out->f becomes the file of -o, private as all that holds text. */
static int
output_open(const struct app_opts *o, struct sessions_out *out, struct ply_err *err)
{
    int fd = app_file_create(o->output, O_TRUNC, err);
    if (fd < 0)
        return fd;
    FILE *f = fdopen(fd, "w");
    if (!f) {
        close(fd);
        return ply_fail(err, PLY_ENOMEM, "no memory to write %s", o->output);
    }
    FILE *errs = out->errs;
    sessions_out_init(out, f, errs);
    return PLY_OK;
}

static int
output_close(const struct app_opts *o, struct sessions_out *out, FILE *back, int rc,
             struct ply_err *err)
{
    bool failed = ferror(out->f) != 0;
    failed = fclose(out->f) != 0 || failed;
    sessions_out_init(out, back, out->errs);
    if (!rc && failed)
        rc = ply_fail(err, PLY_EIO, "cannot write %s: %s", o->output, strerror(errno));
    return rc;
}

int
sessions_export(struct store *st, const struct app_opts *o, struct sessions_out *out,
                struct ply_err *err)
{
    struct store_session s = {0};
    FILE *back = out->f;
    int64_t id;
    int rc = sessions_find_joined(st, o, &id, err);
    if (!rc)
        rc = store_session_load(st, id, STORE_LOAD_READ, &s, err);
    if (!rc && o->output)
        rc = output_open(o, out, err);
    if (!rc) {
        if (o->json || (o->output && ends_with(o->output, ".json")))
            rc = export_json(st, &s, out, err);
        else
            export_markdown(&s, out);
        if (o->output)
            rc = output_close(o, out, back, rc, err);
    }
    store_session_fini(&s);
    return rc;
}

/* ---- import ---------------------------------------------------------------------------- */

static int
file_load(const char *path, json_t **out, struct ply_err *err)
{
    json_error_t why;
    bool piped = strcmp(path, "-") == 0;
    FILE *f = piped ? stdin : fopen(path, "rb");
    if (!f)
        return ply_fail(err, errno == ENOENT ? PLY_ENOENT : PLY_EIO, "cannot read %s: %s", path,
                        strerror(errno));
    *out = json_loadf(f, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
    if (!piped)
        fclose(f);
    if (!*out)
        return ply_fail(err, PLY_EFORMAT, "%s, line %d: %s", path, why.line, why.text);
    return PLY_OK;
}

static int
session_import(struct store *st, const json_t *o, struct sessions_out *out, struct ply_err *err)
{
    struct store_session s;
    struct store_tree t;
    int64_t leaf;
    int rc = session_json_read(o, &s, &t, &leaf, err);
    if (rc)
        return rc;
    rc = store_tree_insert(st, &s, &t, leaf, err);
    if (!rc) {
        fprintf(out->f, "#%" PRId64 " ", s.id);
        sessions_put(out, s.title ? s.title : "", s.title ? strlen(s.title) : 0, true);
        fputc('\n', out->f);
    }
    store_session_fini(&s);
    store_tree_fini(&t);
    return rc;
}

int
sessions_import(struct store *st, const struct app_opts *o, struct sessions_out *out,
                struct ply_err *err)
{
    json_t *all = NULL;
    const char *path = o->args[0];
    int rc = file_load(path, &all, err);
    if (rc)
        return rc;
    const char *format = json_string_value(json_object_get(all, "format"));
    const json_t *sessions = json_object_get(all, "sessions");
    if (!format || strcmp(format, SESSION_JSON_FORMAT) != 0 || !json_is_array(sessions))
        rc = ply_fail(err, PLY_EFORMAT, "%s is not what parley export --json writes", path);
    else if (json_integer_value(json_object_get(all, "version")) != SESSION_JSON_VERSION)
        rc = ply_fail(err, PLY_EUNSUPPORTED, "%s was exported by a newer parley", path);
    for (size_t i = 0; i < json_array_size(sessions) && !rc; i++)
        rc = session_import(st, json_array_get(sessions, i), out, err);
    json_decref(all);
    return rc;
}

/* SPDX-License-Identifier: MIT
 * Sessions to JSON and back. */
#include "app/session_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/base64.h"
#include "app/store_row.h"
#include "engine/base/utf8.h"

/* ---- writing --------------------------------------------------------------------------- */

json_t *
session_json_text(const char *text, size_t len)
{
    if (ply_utf8_valid(text, len))
        return json_stringn_nocheck(len ? text : "", len);
    struct ply_buf valid = {0};
    json_t *s = NULL;
    size_t i = 0;
    while (i < len) {
        uint32_t cp;
        char bytes[4];
        int n = ply_utf8_decode(text + i, len - i, &cp);
        if (ply_buf_append(&valid, bytes, (size_t)ply_utf8_encode(cp, bytes)) != 0)
            break;
        i += (size_t)(n < 0 ? -n : n);
    }
    if (i == len)
        s = json_stringn_nocheck(valid.v, valid.n);
    ply_buf_fini(&valid);
    return s;
}

json_t *
session_json_time(int64_t ms)
{
    time_t t = (time_t)(ms / 1000);
    struct tm tm;
    char day[32], all[48];
    if (!gmtime_r(&t, &tm) || strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        return json_null();
    snprintf(all, sizeof(all), "%s.%03dZ", day, (int)(ms % 1000));
    return json_string(all);
}

static json_t *
string_or_null(const char *s)
{
    return s ? session_json_text(s, strlen(s)) : json_null();
}

static json_t *
sampling_json(bool has, const struct ply_sampling *p)
{
    char *text = has ? store_sampling_write(p) : NULL;
    json_t *o = text ? json_loads(text, 0, NULL) : json_null();
    free(text);
    return o;
}

json_t *
session_json_head(const struct store_session *s)
{
    /* "o" takes its reference over, and fails the whole on NULL. */
    return json_pack("{s:I, s:o, s:b, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o}", "id",
                     (json_int_t)s->id, "title", string_or_null(s->title ? s->title : ""), "named",
                     s->title_by_user, "model", string_or_null(s->model_name), "model_path",
                     string_or_null(s->model_path), "model_fingerprint",
                     string_or_null(s->model_fp[0] ? s->model_fp : NULL), "template",
                     string_or_null(s->template_name), "ctx", s->n_ctx, "sampling",
                     sampling_json(s->has_sampling, &s->sampling), "system",
                     string_or_null(s->system), "draft", string_or_null(s->draft), "created",
                     session_json_time(s->created_ms), "updated", session_json_time(s->updated_ms));
}

static json_t *
ids_json(const struct ply_ids *ids)
{
    json_t *a = json_array();
    for (size_t i = 0; a && i < ids->n; i++)
        if (json_array_append_new(a, json_integer(ids->v[i])) != 0) {
            json_decref(a);
            return NULL;
        }
    return a;
}

static int
put_stats(json_t *o, const struct store_stats *t)
{
    json_t *all = json_pack(
        "{s:{s:I, s:I, s:{s:I}}, s:f, s:{s:f, s:f, s:f, s:f}, s:f, s:I, s:I, s:s}", "usage",
        "prompt_tokens", (json_int_t)t->prompt_toks, "completion_tokens",
        (json_int_t)t->predicted_toks, "prompt_tokens_details", "cached_tokens",
        (json_int_t)t->cached_toks, "ttft_ms", t->ttft_ms, "ttft", "tokenize_ms", t->tokenize_ms,
        "restore_ms", t->restore_ms, "prefill_ms", t->prefill_ms, "decode_ms", t->decode_ms,
        "predicted_ms", t->predicted_ms, "evaluated", (json_int_t)t->evaluated_toks, "drafted",
        (json_int_t)t->drafted_toks, "reuse_reason", t->reuse_reason);
    int rc = all ? json_object_update(o, all) : -1;
    json_decref(all);
    return rc;
}

static int
put_bytes(json_t *o, const struct ply_buf *text)
{
    if (ply_utf8_valid(text->v, text->n))
        return 0;
    struct ply_buf encoded = {0};
    int rc = app_base64_encode(text->v, text->n, &encoded);
    if (!rc)
        rc = json_object_set_new(o, "bytes64", json_stringn(encoded.v, encoded.n));
    ply_buf_fini(&encoded);
    return rc;
}

json_t *
session_json_message(const struct store_msg *m, int64_t parent)
{
    json_t *o = json_pack(
        "{s:I, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id", (json_int_t)m->id, "parent",
        parent ? json_integer(parent) : json_null(), "role", store_role_name(m->role), "text",
        session_json_text(m->text.v, m->text.n), "ids", ids_json(&m->ids), "finish_reason",
        m->finish ? json_string(store_finish_name(m->finish)) : json_null(), "model_fingerprint",
        string_or_null(m->model_fp[0] ? m->model_fp : NULL), "template",
        string_or_null(m->template_name[0] ? m->template_name : NULL), "sampling",
        sampling_json(m->has_sampling, &m->sampling), "created", session_json_time(m->created_ms));
    if (o && (put_bytes(o, &m->text) != 0 || (m->stats.known && put_stats(o, &m->stats) != 0))) {
        json_decref(o);
        return NULL;
    }
    return o;
}

/* ---- reading --------------------------------------------------------------------------- */

static int64_t
time_read(const json_t *v)
{
    struct tm tm = {0};
    int ms;
    const char *s = json_string_value(v);
    if (!s || sscanf(s, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
                     &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ms) != 7)
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    return (int64_t)timegm(&tm) * 1000 + ms;
}

static void
short_read(const json_t *v, char *out, size_t size)
{
    const char *s = json_string_value(v);
    snprintf(out, size, "%s", s ? s : "");
}

static bool
sampling_read(const json_t *v, struct ply_sampling *out)
{
    char *text = json_is_object(v) ? json_dumps(v, JSON_COMPACT) : NULL;
    bool ok = store_sampling_read(text, out);
    free(text);
    return ok;
}

static int64_t
int_at(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static double
ms_at(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static void
stats_read(const json_t *o, struct store_stats *t)
{
    const json_t *usage = json_object_get(o, "usage"), *ttft = json_object_get(o, "ttft");
    *t = (struct store_stats){.known = json_is_object(usage)};
    if (!t->known)
        return;
    t->prompt_toks = int_at(usage, "prompt_tokens");
    t->predicted_toks = int_at(usage, "completion_tokens");
    t->cached_toks = int_at(json_object_get(usage, "prompt_tokens_details"), "cached_tokens");
    t->evaluated_toks = int_at(o, "evaluated");
    t->drafted_toks = int_at(o, "drafted");
    t->ttft_ms = ms_at(o, "ttft_ms");
    t->tokenize_ms = ms_at(ttft, "tokenize_ms");
    t->restore_ms = ms_at(ttft, "restore_ms");
    t->prefill_ms = ms_at(ttft, "prefill_ms");
    t->decode_ms = ms_at(ttft, "decode_ms");
    t->predicted_ms = ms_at(o, "predicted_ms");
    short_read(json_object_get(o, "reuse_reason"), t->reuse_reason, sizeof(t->reuse_reason));
}

static int
text_read(const json_t *o, struct ply_buf *out, struct ply_err *err)
{
    const json_t *text = json_object_get(o, "text"), *bytes = json_object_get(o, "bytes64");
    if (json_is_string(bytes)) {
        if (!app_base64_decode(json_string_value(bytes), json_string_length(bytes), out))
            return ply_fail(err, PLY_EFORMAT, "bytes64 of a message is not base64");
        return PLY_OK;
    }
    if (!json_is_string(text))
        return ply_fail(err, PLY_EFORMAT, "a message without text");
    size_t len = json_string_length(text);
    if (len && ply_buf_append(out, json_string_value(text), len) != 0)
        return ply_fail(err, PLY_ENOMEM, "no memory for a message of %zu bytes", len);
    return PLY_OK;
}

static int
ids_read(const json_t *a, struct ply_ids *out, struct ply_err *err)
{
    for (size_t i = 0; i < json_array_size(a); i++) {
        const json_t *v = json_array_get(a, i);
        json_int_t id = json_integer_value(v);
        if (!json_is_integer(v) || id < 0 || id > INT32_MAX)
            return ply_fail(err, PLY_EFORMAT, "ids of a message hold what is no token id");
        if (ply_ids_push(out, (int32_t)id) != 0)
            return ply_fail(err, PLY_ENOMEM, "no memory for a message");
    }
    return PLY_OK;
}

/* m is empty; what it holds after a failure belongs to the tree it stands in. */
static int
message_read(const json_t *o, struct store_msg *m, struct ply_err *err)
{
    if (!store_role_parse(json_string_value(json_object_get(o, "role")), &m->role))
        return ply_fail(err, PLY_EFORMAT,
                        "a message whose role is none of system, user, "
                        "assistant");
    m->id = int_at(o, "id");
    if (m->id <= 0)
        return ply_fail(err, PLY_EFORMAT, "a message without an id");
    m->finish = store_finish_parse(json_string_value(json_object_get(o, "finish_reason")));
    short_read(json_object_get(o, "model_fingerprint"), m->model_fp, sizeof(m->model_fp));
    short_read(json_object_get(o, "template"), m->template_name, sizeof(m->template_name));
    m->has_sampling = sampling_read(json_object_get(o, "sampling"), &m->sampling);
    m->created_ms = time_read(json_object_get(o, "created"));
    stats_read(o, &m->stats);
    int rc = text_read(o, &m->text, err);
    return rc ? rc : ids_read(json_object_get(o, "ids"), &m->ids, err);
}

static int
tree_read(const json_t *a, struct store_tree *t, struct ply_err *err)
{
    size_t n = json_array_size(a);
    t->v = calloc(n + 1, sizeof(*t->v));
    t->parents = calloc(n + 1, sizeof(*t->parents));
    if (!t->v || !t->parents)
        return ply_fail(err, PLY_ENOMEM, "no memory for a session");
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(a, i);
        t->n = i + 1;
        int rc = message_read(o, &t->v[i], err);
        if (rc)
            return rc;
        t->parents[i] = int_at(o, "parent");
    }
    return PLY_OK;
}

static int
head_read(const json_t *o, struct store_session *s)
{
    int rc = store_string_set(&s->title, json_string_value(json_object_get(o, "title")));
    const struct {
        const char *key;
        char **field;
    } strings[] = {{"model", &s->model_name},
                   {"model_path", &s->model_path},
                   {"template", &s->template_name},
                   {"system", &s->system},
                   {"draft", &s->draft}};
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
        rc |= store_string_set(strings[i].field,
                               json_string_value(json_object_get(o, strings[i].key)));
    s->title_by_user = json_is_true(json_object_get(o, "named"));
    short_read(json_object_get(o, "model_fingerprint"), s->model_fp, sizeof(s->model_fp));
    int64_t n_ctx = int_at(o, "ctx");
    s->n_ctx = n_ctx >= 0 && n_ctx <= 1 << 24 ? (int)n_ctx : 0;
    s->has_sampling = sampling_read(json_object_get(o, "sampling"), &s->sampling);
    s->created_ms = time_read(json_object_get(o, "created"));
    s->updated_ms = time_read(json_object_get(o, "updated"));
    return rc;
}

int
session_json_read(const json_t *o, struct store_session *s, struct store_tree *t, int64_t *leaf,
                  struct ply_err *err)
{
    *s = (struct store_session){0};
    *t = (struct store_tree){0};
    *leaf = int_at(o, "leaf");
    const json_t *messages = json_object_get(o, "messages");
    int rc = PLY_OK;
    if (!json_is_array(messages))
        rc = ply_fail(err, PLY_EFORMAT, "a session without messages");
    else if (head_read(o, s) != 0)
        rc = ply_fail(err, PLY_ENOMEM, "no memory for a session");
    if (!rc)
        rc = tree_read(messages, t, err);
    if (rc) {
        store_session_fini(s);
        store_tree_fini(t);
    }
    return rc;
}

/* SPDX-License-Identifier: MIT
 * --jsonl: lines in, JSON events out, for programs and tests. Each line ends in exactly one event
 * of turn, ok or error. SIGINT, SIGTERM and SIGHUP stop the reply, store what was said and end
 * the program the way the signal would. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "app/clock.h"
#include "app/cmd.h"
#include "app/front.h"
#include "app/lineloop.h"
#include "app/mem.h"
#include "app/signals.h"

struct jsonl {
    struct app app;
    struct lineloop loop;
};

/* ---- events out -------------------------------------------------------------------------- */

static void
emit(struct jsonl *j, json_t *event)
{
    if (!j->loop.broken && !report_write_json(STDOUT_FILENO, event))
        j->loop.broken = true;
    json_decref(event);
}

static json_t *
text_json(const char *s)
{
    return report_json_text(s, strlen(s));
}

/* more: further fields, taken over; NULL for none. */
static void
emit_error(struct jsonl *j, const char *command, const struct ply_err *err, json_t *more)
{
    json_t *e = json_pack("{s:s, s:o}", "event", "error", "message", text_json(err->msg));
    if (command)
        json_object_set_new(e, "command", json_string(command));
    if (more) {
        json_object_update(e, more);
        json_decref(more);
    }
    emit(j, e);
}

static void
emit_ready(struct jsonl *j)
{
    const struct app *a = &j->app;
    const struct ply_info *i = app_model(a);
    const struct store_session *s = &a->chat.s;
    json_t *e = json_pack("{s:s, s:s, s:o, s:I, s:o}", "event", "ready", "version", APP_VERSION,
                          "session", s->id ? json_integer(s->id) : json_null(), "messages",
                          (json_int_t)s->n_path, "draft", text_json(s->draft ? s->draft : ""));
    if (s->shared)
        json_object_set_new(e, "shared", json_true());
    if (i) {
        json_object_set_new(e, "model", text_json(i->name));
        json_object_set_new(e, "path", text_json(a->model_path));
        json_object_set_new(e, "fingerprint", text_json(i->fingerprint));
        json_object_set_new(e, "template", text_json(i->chat_template));
        json_object_set_new(e, "base_model", json_boolean(i->base_model));
        json_object_set_new(e, "context", json_integer(i->n_ctx));
        json_object_set_new(e, "exact", json_boolean(i->exact));
        json_object_set_new(e, "load_ms", json_real(i->load_ms));
    } else {
        json_object_set_new(e, "model", json_null());
        json_object_set_new(e, "read_only", text_json(a->model_err.msg));
    }
    emit(j, e);
}

static void
on_text(void *user, const char *text, size_t len)
{
    emit(user, json_pack("{s:s, s:o}", "event", "text", "text", report_json_text(text, len)));
}

static void
on_ended(void *user, const struct report *r)
{
    emit(user, report_json(r));
}

static void
on_refused(void *user, const struct ply_err *err, size_t n_prompt, size_t n_room)
{
    emit_error(
        user, NULL, err,
        json_pack("{s:I, s:I}", "prompt_tokens", (json_int_t)n_prompt, "room", (json_int_t)n_room));
}

static void
on_notice(void *user, const char *line)
{
    front_say(line);
}

/* ---- lines in ---------------------------------------------------------------------------- */

static void
emit_ok(struct jsonl *j, const struct cmd_result *r)
{
    json_t *e = json_pack("{s:s, s:s}", "event", "ok", "command", r->name);
    json_object_update(e, r->fields);
    if (r->text.n > 0)
        json_object_set_new(e, "text", report_json_text(r->text.v, r->text.n));
    emit(j, e);
}

/* A command that changes the model is answered when the model is there. */
static void
run_command(struct jsonl *j, const char *line)
{
    struct app *a = &j->app;
    struct cmd_result r;
    struct ply_err err = {0};
    int outcome = cmd_run(a, line, &r, &err);
    if (outcome >= 0 && a->loading && app_wait_model(a) != 0) {
        if (!app_model(a) && a->chat.s.n_path > 0)
            json_object_set_new(r.fields, "read_only", text_json(app_model_fault(a)));
        else
            outcome = ply_fail(&err, app_wait_model(a), "%s", app_model_fault(a));
    }
    if (outcome < 0)
        emit_error(j, r.name, &err, NULL);
    else if (outcome == CMD_DONE)
        emit_ok(j, &r);
    cmd_result_fini(&r);
}

static void
run_line(void *user, const char *line, size_t len)
{
    struct jsonl *j = user;
    struct ply_buf text = {0};
    struct ply_err err = {0};
    enum line_kind kind = LINE_MESSAGE;
    int r;
    if (!line)
        r = ply_fail(&err, PLY_EINVAL, "the line is too long: at most %zu MiB",
                     LINELOOP_BYTES_MAX >> 20);
    else
        r = line_parse(line, len, true, &kind, &text, &err);
    if (r == 0 && kind == LINE_COMMAND)
        run_command(j, text.v);
    else if (r == 0 && text.n == 0)
        r = ply_fail(&err, PLY_EINVAL, "the message is empty");
    else if (r == 0)
        r = turn_send(&j->app.turn, text.v, text.n, app_now_ms(), &err);
    if (r != 0)
        emit_error(j, NULL, &err, NULL);
    ply_buf_fini(&text);
}

int
front_jsonl(const struct app_opts *o)
{
    struct jsonl j = {.loop = {.app = &j.app, .user = &j, .run = run_line}};
    struct ply_err err = {0};
    const struct app_view view = {.turn = {.user = &j,
                                           .text = on_text,
                                           .ended = on_ended,
                                           .refused = on_refused,
                                           .notice = on_notice}};
    int r = signals_init(&err);
    if (r == 0)
        r = app_open(&j.app, o, APP_KEEP_SESSIONS, &view, &err);
    if (r == 0 && app_wait_model(&j.app) != 0 && j.app.chat.s.n_path == 0)
        r = ply_fail(&err, j.app.model_err.code, "%s", j.app.model_err.msg);
    if (r != 0) {
        app_close(&j.app);
        return front_fail(&err);
    }
    if (*app_banner(&j.app))
        front_say(app_banner(&j.app));
    emit_ready(&j);
    lineloop_run(&j.loop, STDIN_FILENO);
    return lineloop_finish(&j.loop);
}

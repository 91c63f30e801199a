/* SPDX-License-Identifier: MIT
 * --plain: a chat line by line, for line terminals, screen readers and pipes. What was written
 * stays written: nothing is redrawn. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/app.h"
#include "app/clock.h"
#include "app/cmd.h"
#include "app/front.h"
#include "app/lineloop.h"
#include "app/mem.h"
#include "app/script.h"
#include "app/signals.h"

#define LONG_PROMPT_TOKS 512 /* from here on it is said that something is being read */

struct plain {
    struct app app;
    struct lineloop loop;
    bool interactive; /* a person types: prompt and hints */
    bool prompted;    /* the prompt is the last thing written */
    bool warned;      /* ^C was pressed when there was nothing to stop */
    bool told_reading;
    char last; /* character of the reply */
};

static void
out(struct plain *p, const char *text, size_t len)
{
    if (!p->loop.broken && !front_write(STDOUT_FILENO, text, len))
        p->loop.broken = true;
    p->prompted = false;
}

static void
out_line(struct plain *p, const char *text)
{
    if (p->prompted && p->interactive)
        out(p, "\n", 1);
    out(p, text, strlen(text));
    out(p, "\n", 1);
}

/* ---- what a turn says -------------------------------------------------------------------- */

static void
on_changed(void *user)
{
    struct plain *p = user;
    char line[80];
    if (p->told_reading || p->app.turn.state != TURN_PREFILL ||
        p->app.turn.n_total < LONG_PROMPT_TOKS)
        return;
    p->told_reading = true;
    snprintf(line, sizeof(line), "[reading %zu tokens]", p->app.turn.n_total);
    out_line(p, line);
}

static void
on_text(void *user, const char *text, size_t len)
{
    struct plain *p = user;
    p->last = text[len - 1];
    out(p, text, len);
}

static void
on_ended(void *user, const struct report *r)
{
    struct plain *p = user;
    char line[240];
    struct ply_buf b = {0};
    if (p->last != '\n')
        out(p, "\n", 1);
    report_line(r, line, sizeof(line));
    app_buf_printf(&b, "[%s]", line);
    if (r->compared) {
        report_compare_line(r, line, sizeof(line));
        app_buf_printf(&b, "\n[%s]", line);
    }
    if (r->reason != PLY_REASON_FULL && r->reason != PLY_REASON_COLD)
        app_buf_printf(&b, "\n[%s]", r->reason_text);
    if (r->error)
        app_buf_printf(&b, "\n[%s]", r->error);
    if (r->n_ids == 0 && r->finish == GEN_CANCELLED)
        app_buf_puts(&b, "\n[stopped before the reply began: the message was not kept]");
    out_line(p, b.v);
    ply_buf_fini(&b);
}

static void
on_refused(void *user, const struct ply_err *err, size_t n_prompt, size_t n_room)
{
    out_line(user, err->msg);
}

static void
on_notice(void *user, const char *line)
{
    front_say(line);
}

/* The conversation so far, for who comes back to it. */
static void
on_session(void *user)
{
    struct plain *p = user;
    const struct store_session *s = &p->app.chat.s;
    if (s->shared)
        out_line(p, "[open in another parley too: what is said here becomes a branch]");
    for (size_t i = 0; i < s->n_path; i++) {
        const struct store_msg *m = &s->path[i];
        out_line(p, m->role == PLY_ROLE_USER ? "you:" : "reply:");
        out(p, m->text.v, m->text.n);
        out(p, "\n", 1);
    }
}

static void
on_model(void *user)
{
    struct plain *p = user;
    const struct app *a = &p->app;
    struct ply_buf b = {0};
    if (*app_model_fault(a) && (app_model(a) || a->chat.s.n_path > 0))
        out_line(p, app_model_fault(a));
    if (!app_model(a))
        return;
    app_buf_printf(&b, "%s, %s%s%s", app_model(a)->name, app_model(a)->quant,
                   *app_banner(a) ? "; " : "", app_banner(a));
    if (p->interactive)
        out_line(p, b.v);
    ply_buf_fini(&b);
}

/* ---- what is typed ----------------------------------------------------------------------- */

static void
run_command(struct plain *p, const char *line)
{
    struct cmd_result r;
    struct ply_err err = {0};
    const int outcome = cmd_run(&p->app, line, &r, &err);
    app_wait_model(&p->app);
    if (outcome < 0)
        out_line(p, err.msg);
    else if (r.text.n > 0)
        out_line(p, r.text.v);
    cmd_result_fini(&r);
}

static void
say(struct plain *p, const struct ply_buf *text)
{
    struct ply_err err = {0};
    char notice[200];
    const struct ply_info *info = app_model(&p->app);
    if (info && p->app.chat.s.n_path == 0 &&
        script_notice(text->v, text->n, info->languages, notice, sizeof(notice)))
        out_line(p, notice);
    p->told_reading = false;
    p->last = '\n';
    if (turn_send(&p->app.turn, text->v, text->n, app_now_ms(), &err) != 0)
        out_line(p, err.msg);
}

static void
run_line(void *user, const char *line, size_t len)
{
    struct plain *p = user;
    struct ply_buf text = {0};
    enum line_kind kind = LINE_EMPTY;
    p->prompted = p->warned = false;
    if (!line)
        out_line(p, "the line is too long");
    else
        line_parse(line, len, false, &kind, &text, NULL);
    if (kind == LINE_COMMAND)
        run_command(p, text.v);
    else if (kind == LINE_MESSAGE)
        say(p, &text);
    ply_buf_fini(&text);
}

static void
on_idle(void *user)
{
    struct plain *p = user;
    if (!p->interactive || p->prompted)
        return;
    out(p, "> ", 2);
    p->prompted = true;
}

/* ^C stops the reply; with nothing to stop, twice leaves. */
static bool
on_signal(void *user, int sig)
{
    struct plain *p = user;
    if (sig != SIGINT || !p->interactive)
        return false;
    if (turn_busy(&p->app.turn)) {
        turn_stop(&p->app.turn);
        return true;
    }
    if (p->warned)
        return false;
    p->warned = true;
    out_line(p, "(^C again or /quit leaves)");
    return true;
}

int
front_plain(const struct app_opts *o)
{
    struct plain p = {.last = '\n', .interactive = isatty(STDIN_FILENO)};
    struct ply_err err = {0};
    const struct app_view view = {.user = &p,
                                  .session = on_session,
                                  .model = on_model,
                                  .turn = {.user = &p,
                                           .changed = on_changed,
                                           .text = on_text,
                                           .ended = on_ended,
                                           .refused = on_refused,
                                           .notice = on_notice}};
    p.loop = (struct lineloop){
        .app = &p.app, .user = &p, .run = run_line, .idle = on_idle, .signal = on_signal};
    int r = signals_init(&err);
    if (r == 0)
        r = app_open(&p.app, o, APP_KEEP_SESSIONS, &view, &err);
    if (r == 0)
        on_session(&p);
    if (r == 0 && app_wait_model(&p.app) != 0 && p.app.chat.s.n_path == 0)
        r = ply_fail(&err, p.app.model_err.code, "%s", p.app.model_err.msg);
    if (r != 0) {
        app_close(&p.app);
        return front_fail(&err);
    }
    lineloop_run(&p.loop, STDIN_FILENO);
    if (p.prompted)
        out(&p, "\n", 1);
    return lineloop_finish(&p.loop);
}

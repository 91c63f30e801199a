/* SPDX-License-Identifier: MIT
 * The full screen: the loop that waits for the keyboard, the engine and signals, and what each
 * event does. The only place where this front end blocks. */
#include "app/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/clock.h"
#include "app/cmd.h"
#include "app/front.h"
#include "app/history.h"
#include "app/input.h"
#include "app/mem.h"
#include "app/script.h"
#include "app/signals.h"
#include "engine/base/num.h"

#define DRAFT_REST_MS 1000 /* a draft is stored when it has not changed for so long */

/* ---- what the turn says ------------------------------------------------------------------ */

static void
on_changed(void *user)
{
    struct loop *l = user;
    if (l->app.turn.state == TURN_PREFILL && l->t_prefill < 0)
        l->t_prefill = ui_now_ms(l->ui);
    if (l->header_id != l->app.chat.s.id)
        show_header(l); /* stored: it has a number and a title now */
}

static void
on_text(void *user, const char *text, size_t len)
{
    struct loop *l = user;
    ui_msg_append(l->ui, text, len);
}

static void
on_sent(void *user)
{
    struct loop *l = user;
    const struct store_session *s = &l->app.chat.s;
    if (!l->app.turn.again) {
        const struct store_msg *m = &s->path[s->n_path - 1];
        char line[200];
        ui_draft_accept(l->ui);
        history_add(&l->app.paths, m->text.v, m->text.n);
        if (s->n_path == 1 &&
            script_notice(m->text.v, m->text.n, app_model(&l->app)->languages, line, sizeof(line)))
            ui_notice(l->ui, UI_LEVEL_WARN, line);
    }
    show_sent(l);
}

/* What was taken back goes before what has been typed since. */
static void
restore_draft(struct loop *l)
{
    struct ply_buf b = {0};
    size_t len;
    const char *now = ui_draft(l->ui, &len);
    const char *back = l->app.chat.s.draft ? l->app.chat.s.draft : "";
    app_buf_puts(&b, back);
    if (len > 0)
        app_buf_puts(&b, "\n");
    app_buf_append(&b, now, len);
    ui_draft_set(l->ui, b.v, b.n);
    ply_buf_fini(&b);
}

static void
note_figures(struct loop *l, const struct report *r)
{
    struct ui_status *st = &l->last;
    *st = (struct ui_status)UI_STATUS_INIT;
    st->ttft_ms = r->ttft_ms;
    st->tokenize_ms = r->tokenize_ms;
    st->restore_ms = r->restore_ms;
    st->prefill_ms = r->prefill_ms;
    st->decode_ms = r->decode_ms;
    st->tok_s = r->tok_s;
    st->itl_ms = r->itl_ms;
    st->itl_p95_ms = r->itl_p95_ms;
    st->n_reply = (long)r->n_ids;
    st->reused = (long)(r->live + r->ram + r->disk);
    st->evaluated = (long)r->evaluated;
    st->source = r->disk ? "disk" : r->ram ? "RAM" : "live";
    st->ctx_used = (long)(r->n_prompt + r->n_ids);
    /* An estimate at this turn's own speed; of a few tokens it would be noise. */
    if (r->evaluated >= 8 && r->prefill_ms > 0)
        st->saved_ms = r->prefill_ms / (double)r->evaluated * (double)st->reused;
    if (r->reason != PLY_REASON_FULL && r->reason != PLY_REASON_COLD)
        snprintf(l->reason, sizeof(l->reason), "%s", r->reason_text);
    else
        l->reason[0] = '\0';
    st->reason = l->reason;
}

static void
on_ended(void *user, const struct report *r)
{
    struct loop *l = user;
    const bool nothing =
        r->message == 0 && r->n_ids == 0 && r->finish != GEN_STOP && r->finish != GEN_LENGTH;
    l->rest = r->finish == GEN_CANCELLED ? UI_STATE_STOPPED : UI_STATE_IDLE;
    l->t_enter = -1;
    if (nothing) {
        if (!l->app.turn.again)
            restore_draft(l);
        show_taken_back(l);
        ui_notice(l->ui, r->error ? UI_LEVEL_ERROR : UI_LEVEL_INFO,
                  r->error ? r->error
                           : "stopped before the reply began; what was read stays in the cache");
        return;
    }
    note_figures(l, r);
    show_ended(l, r);
    if (r->error)
        ui_notice(l->ui, UI_LEVEL_ERROR, r->error);
    else if (r->finish == GEN_LENGTH && app_model(&l->app) &&
             r->n_prompt + r->n_ids >= (size_t)app_model(&l->app)->n_ctx)
        l->rest = UI_STATE_FULL;
    show_header(l);
}

static void
on_refused(void *user, const struct ply_err *err, size_t n_prompt, size_t n_room)
{
    struct loop *l = user;
    l->t_enter = -1;
    l->rest = err->code == PLY_EFULL ? UI_STATE_FULL : UI_STATE_IDLE;
    ui_notice(l->ui, UI_LEVEL_ERROR, err->msg);
}

static void
on_notice(void *user, const char *line)
{
    struct loop *l = user;
    ui_notice(l->ui, UI_LEVEL_WARN, line);
}

/* ---- sending ----------------------------------------------------------------------------- */

static void
send_text(struct loop *l, const char *text, size_t len)
{
    struct ply_err err = {0};
    l->t_prefill = -1;
    if (turn_send(&l->app.turn, text, len, l->t_enter, &err) != 0)
        ui_notice(l->ui, UI_LEVEL_WARN, err.msg);
}

/* The editor keeps the draft until the message is stored, so it can be sent later as well. */
static void
send_draft(struct loop *l)
{
    size_t len;
    const char *text = ui_draft(l->ui, &len);
    struct ply_buf copy = {0};
    app_buf_append(&copy, text, len);
    if (len > 1 && text[0] == '/')
        send_text(l, copy.v + 1, len - 1);
    else if (len > 0)
        send_text(l, copy.v, len);
    ply_buf_fini(&copy);
}

static void
run_command(struct loop *l, const char *line)
{
    struct cmd_result r;
    struct ply_err err = {0};
    l->t_prefill = -1;
    const int outcome = cmd_run(&l->app, line, &r, &err);
    if (outcome < 0) {
        ui_notice(l->ui, UI_LEVEL_WARN, err.msg);
        cmd_result_fini(&r);
        return;
    }
    ui_draft_accept(l->ui);
    if (strcmp(r.name, "help") == 0)
        show_help(l);
    else if (strcmp(r.name, "sessions") == 0)
        show_sessions(l, true);
    else if (r.long_text)
        ui_pager_open(l->ui, r.name, r.text.v, r.text.n);
    else if (r.text.n > 0)
        ui_notice(l->ui, UI_LEVEL_INFO, r.text.v);
    cmd_result_fini(&r);
    show_header(l);
}

static void
on_submit(struct loop *l, const struct ui_event *ev)
{
    if (ev->len > 1 && ev->text[0] == '/' && ev->text[1] != '/') {
        char *line = app_xstrdup(ev->text + 1);
        run_command(l, line);
        free(line);
        return;
    }
    if (turn_busy(&l->app.turn)) {
        ui_notice(l->ui, UI_LEVEL_INFO, "a reply is being written; Esc stops it");
        return;
    }
    l->t_enter = ui_now_ms(l->ui);
    if (l->app.loading) {
        l->waits_for_model = true;
        ui_notice(l->ui, UI_LEVEL_INFO, "the message is sent as soon as the model is loaded");
        return;
    }
    send_draft(l);
}

/* ---- the model and the session ----------------------------------------------------------- */

static void
on_model(void *user)
{
    struct loop *l = user;
    if (*app_model_fault(&l->app))
        ui_notice(l->ui, UI_LEVEL_ERROR, app_model_fault(&l->app));
    else if (*app_banner(&l->app))
        ui_notice(l->ui, UI_LEVEL_INFO, app_banner(&l->app));
    show_header(l);
    if (l->waits_for_model && app_model(&l->app))
        send_draft(l);
    l->waits_for_model = false;
}

static void
on_session(void *user)
{
    struct loop *l = user;
    const char *draft = l->app.chat.s.draft ? l->app.chat.s.draft : "";
    l->last = (struct ui_status)UI_STATUS_INIT;
    l->rest = UI_STATE_IDLE;
    ui_draft_set(l->ui, draft, strlen(draft));
    l->draft_saved = l->draft_version = ui_draft_version(l->ui);
    show_session(l);
    if (l->app.chat.s.n_skipped > 0)
        ui_notice(l->ui, UI_LEVEL_WARN, "damaged messages of this conversation were left out");
    else if (l->app.chat.s.shared)
        ui_notice(l->ui, UI_LEVEL_WARN,
                  "open in another parley too: what is said here becomes a branch");
}

static void
save_draft(struct loop *l)
{
    size_t len;
    const char *text = ui_draft(l->ui, &len);
    l->draft_saved = l->draft_version;
    chat_draft_set(&l->app.chat, text, len);
    chat_save(&l->app.chat, NULL);
}

static void
open_session(struct loop *l, int64_t id)
{
    struct ply_err err = {0};
    if (turn_busy(&l->app.turn)) {
        ui_notice(l->ui, UI_LEVEL_WARN, "a reply is being written; Esc stops it");
        return;
    }
    save_draft(l);
    ui_list_close(l->ui);
    l->offered = 0;
    ui_draft_hint(l->ui, "");
    if (app_session_open(&l->app, id, &err) != 0)
        ui_notice(l->ui, UI_LEVEL_ERROR, err.msg);
}

static void
rename_session(struct loop *l, int64_t id, const char *title)
{
    struct ply_err err = {0};
    if (app_session_rename(&l->app, id, title, &err) != 0)
        ui_notice(l->ui, UI_LEVEL_ERROR, err.msg);
    show_sessions(l, false);
    show_header(l);
}

static void
delete_session(struct loop *l, int64_t id)
{
    struct ply_err err = {0};
    if (id == l->app.chat.s.id && turn_busy(&l->app.turn))
        ply_fail(&err, PLY_EINVAL, "a reply is being written; Esc stops it");
    else
        app_session_delete(&l->app, id, &err);
    if (err.code)
        ui_notice(l->ui, UI_LEVEL_ERROR, err.msg);
    if (id == l->offered)
        l->offered = 0;
    show_sessions(l, false);
    show_header(l);
}

/* ---- the editor -------------------------------------------------------------------------- */

static int
run_editor(const char *path)
{
    const char *visual = getenv("VISUAL"), *editor = getenv("EDITOR");
    const char *command = visual && *visual ? visual : editor && *editor ? editor : "vi";
    struct ply_buf script = {0};
    struct sigaction before;
    app_buf_printf(&script, "exec %s \"$1\"", command);
    /* ^C in the editor is the editor's matter. */
    sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_IGN}, &before);
    const pid_t pid = fork();
    if (pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        execl("/bin/sh", "sh", "-c", script.v, "sh", path, (char *)NULL);
        _exit(127);
    }
    ply_buf_fini(&script);
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    sigaction(SIGINT, &before, NULL);
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
edit_outside(struct loop *l, const struct ui_event *ev)
{
    const char *dir = getenv("TMPDIR");
    struct ply_buf path = {0}, text = {0};
    struct ply_err err = {0};
    app_buf_printf(&path, "%s/parley-XXXXXX", dir && *dir ? dir : "/tmp");
    const int fd = mkstemp(path.v);
    if (fd < 0 || write(fd, ev->text, ev->len) != (ssize_t)ev->len) {
        ui_notice(l->ui, UI_LEVEL_ERROR, "cannot write a file for the editor");
    } else {
        ui_pause(l->ui);
        const int code = run_editor(path.v);
        ui_unpause(l->ui);
        if (code != 0)
            ui_notice(l->ui, UI_LEVEL_WARN, "the editor did not end well: the draft is as it was");
        else if (input_read_file(path.v, CHAT_TEXT_MAX, &text, &err) != 0)
            ui_notice(l->ui, UI_LEVEL_ERROR, err.msg);
        else
            ui_draft_set(l->ui, text.n ? text.v : "",
                         text.n > 0 && text.v[text.n - 1] == '\n' ? text.n - 1 : text.n);
    }
    if (fd >= 0) {
        close(fd);
        unlink(path.v);
    }
    ply_buf_fini(&text);
    ply_buf_fini(&path);
}

/* One fit is written out, of several what they share; on an empty draft Tab takes up the offer. */
static void
complete(struct loop *l, const struct ui_event *ev)
{
    if (ui_draft_empty(l->ui) && l->offered) {
        open_session(l, l->offered);
        return;
    }
    if (ev->len < 1 || ev->text[0] != '/' || strchr(ev->text, ' ') || strlen(ev->text) != ev->len)
        return;
    const char *prefix = ev->text + 1, *first = cmd_complete(prefix, 0), *other;
    if (!first)
        return;
    size_t n = strlen(first);
    struct ply_buf all = {0};
    for (size_t i = 0; (other = cmd_complete(prefix, i)); i++) {
        size_t same = 0;
        while (same < n && other[same] == first[same])
            same++;
        n = same;
        app_buf_printf(&all, "%s/%s", i ? "  " : "", other);
    }
    struct ply_buf b = {0};
    app_buf_printf(&b, "/%.*s%s", (int)n, first, cmd_complete(prefix, 1) ? "" : " ");
    if (cmd_complete(prefix, 1))
        ui_notice(l->ui, UI_LEVEL_INFO, all.v);
    ui_draft_set(l->ui, b.v, b.n);
    ply_buf_fini(&b);
    ply_buf_fini(&all);
}

/* ---- the loop ---------------------------------------------------------------------------- */

static void
on_event(struct loop *l, const struct ui_event *ev)
{
    switch (ev->type) {
    case UI_EVENT_NONE:
    case UI_EVENT_ANSWER:
    case UI_EVENT_LIST_CLOSE: break;
    case UI_EVENT_SUBMIT: on_submit(l, ev); break;
    case UI_EVENT_STOP: turn_stop(&l->app.turn); break;
    case UI_EVENT_QUIT: l->app.quit = true; break;
    case UI_EVENT_HANGUP: l->sig = SIGHUP; break;
    case UI_EVENT_HELP: show_help(l); break;
    case UI_EVENT_SESSIONS:
        l->filter[0] = '\0';
        show_sessions(l, true);
        break;
    case UI_EVENT_STATS: show_stats(l); break;
    case UI_EVENT_EDITOR: edit_outside(l, ev); break;
    case UI_EVENT_TAB: complete(l, ev); break;
    case UI_EVENT_LIST_OPEN: open_session(l, ev->id); break;
    case UI_EVENT_LIST_RENAME: rename_session(l, ev->id, ev->text); break;
    case UI_EVENT_LIST_DELETE: delete_session(l, ev->id); break;
    case UI_EVENT_LIST_FILTER:
        snprintf(l->filter, sizeof(l->filter), "%s", ev->text);
        show_sessions(l, false);
        break;
    }
}

static void
take_signals(struct loop *l)
{
    for (int sig; (sig = signals_take());) {
        if (sig == SIGINT && turn_busy(&l->app.turn))
            turn_stop(&l->app.turn);
        else
            l->sig = sig;
    }
}

/* Milliseconds until the draft is to be stored, -1: it is. */
static int
draft_timeout(struct loop *l, double now)
{
    const uint64_t v = ui_draft_version(l->ui);
    if (v != l->draft_version) {
        l->draft_version = v;
        l->t_draft = now;
    }
    if (v == l->draft_saved)
        return -1;
    const double left = l->t_draft + DRAFT_REST_MS - now;
    if (left > 0)
        return (int)left + 1;
    save_draft(l);
    return -1;
}

/* The earlier of two timeouts of which -1 is never. */
static int
sooner(int a, int b)
{
    return a < 0 ? b : b < 0 ? a : PLY_MIN(a, b);
}

static void
run(struct loop *l)
{
    while (!l->app.quit && !l->sig) {
        const double now = app_now_ms();
        struct pollfd fds[UI_N_FDS + 2];
        int timeout = sooner(turn_tick(&l->app.turn, now), draft_timeout(l, now));
        ui_pollfds(l->ui, fds);
        fds[UI_N_FDS] = (struct pollfd){.fd = worker_fd(l->app.worker), .events = POLLIN};
        fds[UI_N_FDS + 1] = (struct pollfd){.fd = signals_fd(), .events = POLLIN};
        poll(fds, PLY_COUNT(fds), sooner(timeout, ui_timeout(l->ui)));
        take_signals(l);
        struct ui_event ev;
        while (!l->app.quit && ui_read(l->ui, &ev))
            on_event(l, &ev);
        app_events(&l->app);
        show_status(l);
        ui_refresh(l->ui);
    }
}

static void
add_history(void *user, const char *text, size_t len)
{
    struct loop *l = user;
    ui_history_add(l->ui, text, len);
}

/* A bare start is a new conversation; the last one is a key away. */
static void
offer_last(struct loop *l)
{
    struct store_list list = {0};
    struct ply_buf hint = {0};
    app_buf_puts(&hint, "Enter sends, F1 helps");
    if (l->app.chat.s.id == 0 && l->app.store &&
        store_list(l->app.store, NULL, 1, &list, NULL) == 0 && list.n > 0) {
        l->offered = list.v[0].id;
        app_buf_printf(&hint, "; Tab goes on with \"%s\"", list.v[0].title);
    }
    ui_draft_hint(l->ui, hint.v);
    ply_buf_fini(&hint);
    store_list_fini(&list);
}

static int
finish(struct loop *l, int r, const struct ply_err *err)
{
    const int sig = l->sig;
    if (r == 0)
        save_draft(l);
    app_close(&l->app); /* a turn that runs is stopped, and shows its end */
    ui_close(&l->ui);
    if (r != 0)
        return front_fail(err);
    if (sig == SIGINT)
        return APP_EXIT_SIGINT;
    if (sig)
        signals_die(sig);
    return APP_EXIT_OK;
}

int
front_screen(const struct app_opts *o)
{
    struct loop l = {
        .reply = -1, .t_enter = -1, .t_prefill = -1, .rest = UI_STATE_IDLE, .last = UI_STATUS_INIT};
    struct ply_err err = {0};
    const struct app_view view = {.user = &l,
                                  .session = on_session,
                                  .model = on_model,
                                  .turn = {.user = &l,
                                           .changed = on_changed,
                                           .text = on_text,
                                           .sent = on_sent,
                                           .ended = on_ended,
                                           .refused = on_refused,
                                           .notice = on_notice}};
    int r = signals_init(&err);
    if (r == 0)
        r = ui_open(&l.ui, &(struct ui_opts){.fd_in = STDIN_FILENO, .fd_out = STDOUT_FILENO}, &err);
    if (r == PLY_EUNSUPPORTED) {
        front_say(err.msg);
        return front_plain(o);
    }
    if (r != 0)
        return front_fail(&err);
    r = app_open(&l.app, o, APP_KEEP_SESSIONS, &view, &err);
    if (r == 0) {
        store_busy_set(l.app.store, STORE_BUSY_LOOP_MS);
        history_load(&l.app.paths, add_history, &l);
        on_session(&l);
        offer_last(&l);
        run(&l);
    }
    return finish(&l, r, &err);
}

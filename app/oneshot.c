/* SPDX-License-Identifier: MIT
 * -p and -f: one answer on stdout, everything else on stderr. Nothing is stored unless a session
 * is named. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/app.h"
#include "app/clock.h"
#include "app/front.h"
#include "app/input.h"
#include "app/mem.h"
#include "app/signals.h"
#include "engine/base/num.h"

struct oneshot {
    struct app app;
    int code; /* enum app_exit */
    int sig;  /* the signal that ended it, or 0 */
    bool ended;
    int broken; /* errno of a write that failed, or 0 */
    char last;  /* character written */
};

/* ---- the prompt -------------------------------------------------------------------------- */

/* A pipe, a socket or a file; not a terminal, and not /dev/null. */
static bool
is_piped(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 &&
           (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISREG(st.st_mode));
}

/* Files and pipes end in a newline that nobody typed. */
static void
add_part(struct ply_buf *out, const struct ply_buf *part)
{
    size_t n = part->n;
    if (n > 0 && part->v[n - 1] == '\n')
        n--;
    if (n == 0)
        return;
    if (out->n > 0)
        app_buf_puts(out, "\n\n");
    app_buf_append(out, part->v, n);
}

static int
gather(const struct app_opts *o, struct ply_buf *out, struct ply_err *err)
{
    struct ply_buf part = {0};
    int r = PLY_OK;
    app_buf_puts(out, o->prompt ? o->prompt : "");
    if (o->file) {
        r = input_read_file(o->file, CHAT_TEXT_MAX, &part, err);
        add_part(out, &part);
    }
    part.n = 0;
    if (r == 0 && is_piped(STDIN_FILENO)) {
        r = input_read_fd(STDIN_FILENO, "standard input", CHAT_TEXT_MAX, &part, err);
        add_part(out, &part);
    }
    ply_buf_fini(&part);
    if (r == 0 && out->n == 0)
        r = ply_fail(err, PLY_EINVAL, "the prompt is empty");
    return r;
}

/* ---- the answer -------------------------------------------------------------------------- */

static void
on_text(void *user, const char *text, size_t len)
{
    struct oneshot *s = user;
    if (s->app.opts->json || s->broken)
        return;
    s->last = text[len - 1];
    if (!front_write(STDOUT_FILENO, text, len)) {
        s->broken = errno;
        turn_stop(&s->app.turn);
    }
}

static void
tell_figures(const struct report *r)
{
    char line[200];
    if (r->compared)
        report_compare_line(r, line, sizeof(line));
    else if (isatty(STDERR_FILENO))
        report_line(r, line, sizeof(line));
    else
        return;
    front_say(line);
}

static void
on_ended(void *user, const struct report *r)
{
    struct oneshot *s = user;
    s->ended = true;
    if (s->app.opts->json) {
        json_t *o = report_json(r);
        s->broken = report_write_json(STDOUT_FILENO, o) ? 0 : errno;
        json_decref(o);
    } else if (!s->broken && s->last != '\n' && r->n_ids > 0) {
        s->broken = front_write(STDOUT_FILENO, "\n", 1) ? 0 : errno;
    }
    tell_figures(r);
    if (r->finish == GEN_ERROR) {
        front_say(r->error);
        s->code = APP_EXIT_FAILURE;
    } else if (r->finish == GEN_CANCELLED) {
        s->code = APP_EXIT_FAILURE;
    }
}

static void
on_refused(void *user, const struct ply_err *err, size_t n_prompt, size_t n_room)
{
    struct oneshot *s = user;
    s->ended = true;
    s->code = front_fail(err);
}

static void
on_notice(void *user, const char *line)
{
    front_say(line);
}

static void
loop(struct oneshot *s)
{
    while (!s->ended) {
        struct pollfd fds[] = {
            {.fd = worker_fd(s->app.worker), .events = POLLIN},
            {.fd = signals_fd(), .events = POLLIN},
        };
        poll(fds, PLY_COUNT(fds), turn_tick(&s->app.turn, app_now_ms()));
        const int sig = signals_take();
        if (sig) {
            s->sig = sig;
            turn_stop(&s->app.turn);
        }
        app_events(&s->app);
    }
}

static int
run(struct oneshot *s, const struct app_opts *o, struct ply_buf *prompt, struct ply_err *err)
{
    const struct app_view view = {.turn = {.user = s,
                                           .text = on_text,
                                           .ended = on_ended,
                                           .refused = on_refused,
                                           .notice = on_notice}};
    const bool named = o->session || o->continue_last;
    int r = app_open(&s->app, o, named ? APP_KEEP_SESSIONS : APP_KEEP_NOTHING, &view, err);
    if (r == 0 && app_wait_model(&s->app) != 0)
        r = ply_fail(err, s->app.model_err.code, "%s", s->app.model_err.msg);
    if (r != 0)
        return r;
    if (*app_banner(&s->app))
        front_say(app_banner(&s->app));
    r = turn_send(&s->app.turn, prompt->v, prompt->n, app_now_ms(), err);
    if (r == 0)
        loop(s);
    return r;
}

int
front_oneshot(const struct app_opts *o)
{
    struct oneshot s = {0};
    struct ply_buf prompt = {0};
    struct ply_err err = {0};
    int r = gather(o, &prompt, &err);
    /* Only now: while stdin is read, a signal may simply end the program. */
    if (r == 0)
        r = signals_init(&err);
    if (r == 0)
        r = run(&s, o, &prompt, &err);
    if (s.app.opts)
        app_close(&s.app);
    ply_buf_fini(&prompt);
    if (s.sig == SIGINT)
        return APP_EXIT_SIGINT;
    if (s.sig)
        signals_die(s.sig);
    if (s.broken == EPIPE)
        signals_die(SIGPIPE);
    if (s.broken)
        return APP_EXIT_IO;
    return r != 0 ? front_fail(&err) : s.code;
}

/* SPDX-License-Identifier: MIT
 * The loop over lines, worker events and signals. */
#include "app/lineloop.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "app/clock.h"
#include "app/cmd.h"
#include "app/mem.h"
#include "app/signals.h"
#include "engine/base/num.h"

#define AHEAD_MAX 1024 /* lines that may wait; more are left in the pipe */

struct lineloop_line {
    struct lineloop_line *next;
    bool too_long;
    size_t len;
    char text[]; /* [len] and a NUL */
};

static void
push(struct lineloop *l, const char *text, size_t len, bool too_long)
{
    struct lineloop_line *w = app_xcalloc(1, sizeof(*w) + len + 1);
    w->too_long = too_long;
    w->len = len;
    memcpy(w->text, text, len);
    *l->last = w;
    l->last = &w->next;
    l->n_waiting++;
}

static struct lineloop_line *
pop(struct lineloop *l)
{
    struct lineloop_line *w = l->first;
    if (!w)
        return NULL;
    l->first = w->next;
    if (!l->first)
        l->last = &l->first;
    l->n_waiting--;
    return w;
}

static bool
is_over(const struct lineloop *l)
{
    return l->broken || l->sig || l->app->quit;
}

/* Run lines until one of them is a turn, or none is left. */
static void
pump(struct lineloop *l)
{
    while (!turn_busy(&l->app->turn) && !is_over(l)) {
        struct lineloop_line *w = pop(l);
        if (!w)
            return;
        l->run(l->user, w->too_long ? NULL : w->text, w->len);
        free(w);
    }
}

static bool
is_stop(const char *line, size_t len)
{
    char name[16];
    if (len < 2 || len > sizeof(name) || line[0] != '/')
        return false;
    memcpy(name, line + 1, len - 1);
    name[len - 1] = '\0';
    return cmd_is_stop(name);
}

/* Each line is begun, if it can be, before the next is looked at: a /stop that was read together
 * with the message it is meant for finds it running. */
static void
take_lines(struct lineloop *l)
{
    char *line;
    size_t len;
    bool too_long;
    while (l->n_waiting < AHEAD_MAX && lines_take(&l->in, &line, &len, &too_long)) {
        if (len == 0 && !too_long)
            continue;
        if (is_stop(line, len)) {
            char copy[16] = {0};
            memcpy(copy, line, len);
            l->run(l->user, copy, len);
            continue;
        }
        push(l, line, too_long ? 0 : len, too_long);
        pump(l);
    }
}

static bool
is_idle(const struct lineloop *l)
{
    return !l->first && !turn_busy(&l->app->turn);
}

static void
take_signals(struct lineloop *l)
{
    for (int sig; (sig = signals_take());) {
        if (!l->signal || !l->signal(l->user, sig))
            l->sig = sig;
    }
}

void
lineloop_run(struct lineloop *l, int fd)
{
    lines_init(&l->in, fd, LINELOOP_BYTES_MAX);
    l->last = &l->first;
    while (!is_over(l) && !(l->in.ended && is_idle(l))) {
        const bool hungry = !l->in.ended && l->n_waiting < AHEAD_MAX;
        struct pollfd fds[] = {
            {.fd = worker_fd(l->app->worker), .events = POLLIN},
            {.fd = signals_fd(), .events = POLLIN},
            {.fd = hungry ? fd : -1, .events = POLLIN},
        };
        if (l->idle && is_idle(l))
            l->idle(l->user);
        poll(fds, PLY_COUNT(fds), turn_tick(&l->app->turn, app_now_ms()));
        take_signals(l);
        app_events(l->app);
        if (hungry && fds[2].revents)
            lines_read(&l->in);
        pump(l);
        take_lines(l);
    }
}

int
lineloop_finish(struct lineloop *l)
{
    app_close(l->app); /* a turn that runs is stopped, and tells its end */
    for (struct lineloop_line *w; (w = pop(l));)
        free(w);
    lines_fini(&l->in);
    if (l->sig == SIGINT)
        return APP_EXIT_SIGINT;
    if (l->sig)
        signals_die(l->sig);
    return l->broken ? APP_EXIT_IO : APP_EXIT_OK;
}

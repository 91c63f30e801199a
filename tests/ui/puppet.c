/* SPDX-License-Identifier: MIT
 * The wire to the puppet is a socket pair whose other end the program inherits. */
#include "tests/ui/puppet.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

const char *puppet_program;

static struct puppet *
start(const char *const *env, int rows, int cols, bool shell)
{
    static const char *const bash[] = {"bash", "--norc", "--noprofile", "-i", NULL};
    struct puppet *p = calloc(1, sizeof *p);
    char number[16], ps1[] = "PS1=prompt> ";
    int wire[2];
    if (!p || !puppet_program || socketpair(AF_UNIX, SOCK_STREAM, 0, wire) != 0) {
        printf("Bail out! puppet: cannot start\n");
        exit(99);
    }
    fcntl(wire[0], F_SETFD, FD_CLOEXEC);
    p->fd = wire[0];
    snprintf(number, sizeof number, "%d", wire[1]);
    const char *const argv[] = {puppet_program, number, NULL};
    const char *const shell_env[] = {ps1, "HISTFILE=/dev/null", "INPUTRC=/dev/null", NULL};
    p->screen = screen_open(shell ? bash : argv, shell ? shell_env : env, rows, cols);
    close(wire[1]);
    if (shell && screen_until(p->screen, "prompt>")) {
        char line[4096];
        snprintf(line, sizeof line, "%s %s\r", puppet_program, number);
        screen_keys(p->screen, line);
    }
    return p;
}

struct puppet *
puppet_open(const char *const *env, int rows, int cols)
{
    return start(env, rows, cols, false);
}

struct puppet *
puppet_open_shell(int rows, int cols)
{
    return start(NULL, rows, cols, true);
}

void
puppet_close(struct puppet **p)
{
    if (!*p)
        return;
    close((*p)->fd);
    screen_close(&(*p)->screen);
    free(*p);
    *p = NULL;
}

void
puppet_do(struct puppet *p, const char *fmt, ...)
{
    static char line[65536];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(line, sizeof line - 1, fmt, ap);
    va_end(ap);
    line[n] = '\n';
    const ssize_t w = send(p->fd, line, (size_t)n + 1, MSG_NOSIGNAL);
    (void)w;
}

const char *
puppet_event(struct puppet *p)
{
    static char event[sizeof p->in];
    for (int waited = 0; waited < SCREEN_WAIT_MS / 5; waited++) {
        char *nl = memchr(p->in, '\n', p->n_in);
        if (nl) {
            const size_t n = (size_t)(nl - p->in);
            memcpy(event, p->in, n);
            event[n] = '\0';
            p->n_in -= n + 1;
            memmove(p->in, nl + 1, p->n_in);
            return event;
        }
        struct pollfd fd = {.fd = p->fd, .events = POLLIN};
        screen_pump(p->screen, 0);
        if (poll(&fd, 1, 0) <= 0) {
            screen_pump(p->screen, 5);
            continue;
        }
        const ssize_t n = read(p->fd, p->in + p->n_in, sizeof p->in - p->n_in);
        if (n <= 0)
            break;
        p->n_in += (size_t)n;
    }
    event[0] = '\0';
    return event;
}

bool
puppet_sync(struct puppet *p)
{
    puppet_do(p, "sync");
    const char *event = puppet_event(p);
    if (strcmp(event, "synced") == 0)
        return true;
    printf("# not synced, but \"%s\"\n", event);
    screen_print(p->screen);
    return false;
}

/* SPDX-License-Identifier: MIT
 * Signal handlers. */
#include "app/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/num.h"
#include "ui/ui.h"

/* ui_term_restore() needs little, and a stack that overflowed has nothing left. */
static char alt_stack[65536];
static int pipe_fds[2] = {-1, -1};

static void
on_wake(int sig)
{
    const int saved = errno;
    const unsigned char byte = (unsigned char)sig;
    /* A full pipe means the loop has enough to wake for. */
    if (write(pipe_fds[1], &byte, 1) < 0)
        errno = saved;
    errno = saved;
}

/* SA_RESETHAND: the second time the signal kills. */
static void
on_fatal(int sig)
{
    ui_term_restore();
    raise(sig);
}

/* A signal that was ignored when the program began (nohup) stays ignored. */
static void
handle(int sig, const struct sigaction *sa)
{
    struct sigaction old;
    if (sigaction(sig, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(sig, sa, NULL);
}

int
signals_init(struct ply_err *err)
{
    static const int wake[] = {SIGINT, SIGTERM, SIGHUP};
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGQUIT};
    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return ply_fail(err, PLY_EIO, "cannot create a pipe: %s", strerror(errno));
    const stack_t alt = {.ss_sp = alt_stack, .ss_size = sizeof(alt_stack)};
    sigaltstack(&alt, NULL);
    struct sigaction sa = {.sa_handler = on_wake, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < PLY_COUNT(wake); i++)
        handle(wake[i], &sa);
    sa = (struct sigaction){.sa_handler = on_fatal,
                            .sa_flags = SA_RESETHAND | SA_NODEFER | SA_ONSTACK};
    for (size_t i = 0; i < PLY_COUNT(fatal); i++)
        handle(fatal[i], &sa);
    sa = (struct sigaction){.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &sa, NULL);
    return PLY_OK;
}

int
signals_fd(void)
{
    return pipe_fds[0];
}

int
signals_take(void)
{
    unsigned char sig;
    return read(pipe_fds[0], &sig, 1) == 1 ? sig : 0;
}

void
signals_die(int sig)
{
    signal(sig, SIG_DFL);
    raise(sig);
    _exit(128 + sig);
}

/* SPDX-License-Identifier: MIT
 * Signals become bytes in a pipe that the loops poll: no handler does more than write one byte,
 * or, for those a program dies of, give the terminal back and let it die of the same signal. */
#ifndef APP_SIGNALS_H
#define APP_SIGNALS_H

#include "engine/base/err.h"

/* SIGINT, SIGTERM and SIGHUP are queued, SIGPIPE is ignored, and what kills (SEGV, BUS, FPE, ILL,
 * ABRT, SYS, QUIT) restores the terminal first. Once, on the main thread. */
int signals_init(struct ply_err *err);
/* Readable while a signal waits. */
int signals_fd(void);
/* The next one that came, 0 for none. */
int signals_take(void);
/* Die of a signal that was taken, as if nothing had caught it. */
void signals_die(int sig) __attribute__((noreturn));

#endif

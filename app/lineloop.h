/* SPDX-License-Identifier: MIT
 * The loop of the two front ends that read lines, --jsonl and --plain. Lines wait in a queue and
 * run in order, one turn at a time; /stop acts when it is read; the end of the input lets the
 * queue finish. The only place where these front ends block. */
#ifndef APP_LINELOOP_H
#define APP_LINELOOP_H

#include <stdbool.h>
#include <stddef.h>

#include "app/app.h"
#include "app/lines.h"

struct lineloop_line;

struct lineloop {
    struct app *app;
    void *user;
    /* Run one line; it may start a turn. line has a NUL after it; NULL: it was too long. */
    void (*run)(void *user, const char *line, size_t len);
    /* About to wait for input with nothing left to do. May be NULL. */
    void (*idle)(void *user);
    /* A signal came: true when it has been dealt with. May be NULL. */
    bool (*signal)(void *user, int sig);

    bool broken; /* set by the front end: nobody reads what it writes */
    int sig;     /* the signal that ended the loop, or 0 */

    struct lines in;
    struct lineloop_line *first, **last;
    size_t n_waiting;
};

#define LINELOOP_BYTES_MAX (CHAT_TEXT_MAX * 2) /* of a line: room for escapes and base64 */

/* Until the input has ended and everything is answered, /quit, a signal, or broken. */
void lineloop_run(struct lineloop *l, int fd);
/* Close the program, storing what was said, and say with which code to exit; a signal that is to
 * be seen by the parent does not return. */
int lineloop_finish(struct lineloop *l);

#endif

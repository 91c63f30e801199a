/* SPDX-License-Identifier: MIT
 * ui_demo as a puppet on a screen: commands in, events out (see ui_demo.c). */
#ifndef TESTS_UI_PUPPET_H
#define TESTS_UI_PUPPET_H

#include <stdbool.h>

#include "tests/ui/screen.h"

struct puppet {
    struct screen *screen;
    int fd; /* our end of the wire */
    char in[1 << 20];
    size_t n_in;
};

/* The path of ui_demo, from the command line of the test. */
extern const char *puppet_program;

struct puppet *puppet_open(const char *const *env, int rows, int cols);
/* The same under `shell`, with the puppet as its job; FD in the shell's script is the wire. */
struct puppet *puppet_open_shell(int rows, int cols);
void puppet_close(struct puppet **p);

/* Sends a command, printf style. */
void puppet_do(struct puppet *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The next event, waited for; "" if none comes. Valid until the next call. */
const char *puppet_event(struct puppet *p);
/* Waits until the puppet has done all commands so far; false if an event came instead. */
bool puppet_sync(struct puppet *p);

#endif

/* SPDX-License-Identifier: MIT
 * What was typed before, for Up: one entry a line of $XDG_STATE_HOME/parley/history, newlines
 * and backslashes escaped, readable by the owner alone. Losing it costs nothing. */
#ifndef APP_HISTORY_H
#define APP_HISTORY_H

#include <stddef.h>

#include "app/paths.h"

typedef void (*history_fn)(void *user, const char *text, size_t len);

/* Calls fn for the last HISTORY_MAX entries, oldest first. */
#define HISTORY_MAX 500
void history_load(const struct app_paths *p, history_fn fn, void *user);
/* Adds an entry; a file grown to twice HISTORY_MAX entries is cut down by the next load. */
void history_add(const struct app_paths *p, const char *text, size_t len);

#endif

/* SPDX-License-Identifier: MIT
 * Log lines go to $XDG_STATE_HOME/parley/log, never to the terminal: warnings and errors, with
 * PARLEY_LOG=debug everything. The file is made when there is something to write. */
#ifndef APP_LOG_H
#define APP_LOG_H

#include "app/paths.h"

/* Once, before an engine is opened. Without a place to write, lines are lost. */
void log_open(const struct app_paths *p);
/* No line may come any more: engines are closed. */
void log_close(void);

#endif

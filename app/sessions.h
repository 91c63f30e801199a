/* SPDX-License-Identifier: MIT
 * The verbs that look after stored sessions: ls show search rename rm export import. Each
 * writes its answer to out, faults to errs as one line, and returns an enum app_exit. No model
 * is loaded. Text goes to a terminal without its control characters and to a pipe as it is;
 * --json writes one JSON array, or one object where there is one session. */
#ifndef APP_SESSIONS_H
#define APP_SESSIONS_H

#include <stdio.h>

#include "app/opts.h"

/* db: the database's path. o->verb is one of the seven. */
int app_sessions_run(const struct app_opts *o, const char *db, FILE *out, FILE *errs);

#endif

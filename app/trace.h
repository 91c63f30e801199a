/* SPDX-License-Identifier: MIT
 * --trace FILE: every KV row that is fed, as JSON lines, readable by the owner alone.
 *
 *   {"request":2,"prompt":57}                      a request begins: 57 ids are wanted
 *   {"pos":0,"id":1,"from":"live"}                 a row that was there: live, ram or disk
 *   {"pos":41,"id":198,"from":"evaluated"}         a row that was computed
 *
 * Rows of a request follow its line, the reply's included; a position that comes twice was
 * rolled back in between. Called on the engine thread alone. */
#ifndef APP_TRACE_H
#define APP_TRACE_H

#include "engine/ply.h"

struct trace;

/* PLY_ECREATE. */
int trace_open(struct trace **out, const char *path, struct ply_err *err);
void trace_close(struct trace **t);
void trace_attach(struct trace *t, struct ply_engine *e);
void trace_request(struct trace *t, size_t n_prompt);
/* What was written is in the file. */
void trace_flush(struct trace *t);

#endif

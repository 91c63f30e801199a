/* SPDX-License-Identifier: MIT
 * export: a session as Markdown to be read, or as JSON with everything in it. import: the JSON
 * back, as a new session. */
#ifndef APP_EXPORT_H
#define APP_EXPORT_H

#include "app/sessions_out.h"

int sessions_export(struct store *st, const struct app_opts *o, struct sessions_out *out,
                    struct ply_err *err);
int sessions_import(struct store *st, const struct app_opts *o, struct sessions_out *out,
                    struct ply_err *err);

#endif

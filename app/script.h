/* SPDX-License-Identifier: MIT
 * Which script a text is written in, and whether a model that lists its languages can be
 * expected to read it. */
#ifndef APP_SCRIPT_H
#define APP_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

/* True, with a line that names -m, when most letters of text are of a script that none of
 * languages ("en, fr"; "" when the file lists none: false) is written in. */
bool script_notice(const char *text, size_t len, const char *languages, char *out, size_t size);

#endif

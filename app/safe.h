/* SPDX-License-Identifier: MIT
 * Text on its way to a terminal, outside the full screen: nothing in it may be obeyed. */
#ifndef APP_SAFE_H
#define APP_SAFE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/array.h"

/* Append text with U+FFFD for control characters, ill-formed bytes and bidirectional controls.
 * No control picture: the bytes of some hold 0x9b, which a terminal that is not in UTF-8 obeys.
 * flat: on one line, newlines and tabs become spaces; else they stay. ascii: what is not ASCII
 * becomes '?', for terminals in another encoding. PLY_ENOMEM. */
int app_safe_append(struct ply_buf *out, const char *text, size_t len, bool flat, bool ascii);

/* Columns that flat text takes, and the bytes of its longest beginning that takes at most cols. */
int app_safe_cols(const char *text, size_t len);
size_t app_safe_fit(const char *text, size_t len, int cols);

#endif

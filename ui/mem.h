/* SPDX-License-Identifier: MIT
 * Small allocations of this layer. None of these returns on failure: they abort, and the
 * program's SIGABRT handler gives the terminal back (ui.h, "Errors"). */
#ifndef UI_MEM_H
#define UI_MEM_H

#include <stddef.h>
#include <stdlib.h>

#include "engine/base/array.h"

void *ui_xrealloc(void *p, size_t n, size_t size);
/* Replaces *p by a copy of s; NULL counts as "". */
void ui_str_set(char **p, const char *s);
void ui_buf_append(struct ply_buf *b, const void *bytes, size_t n);
/* Puts n bytes in at pos, or takes n out there. */
void ui_buf_insert(struct ply_buf *b, size_t pos, const void *bytes, size_t n);
void ui_buf_remove(struct ply_buf *b, size_t pos, size_t n);
void ui_buf_set(struct ply_buf *b, const void *bytes, size_t n);
/* b's bytes with a NUL after them, also when it was never written to. */
const char *ui_buf_str(const struct ply_buf *b);

#define ui_buf_printf(b, ...) (ply_buf_printf(b, __VA_ARGS__) == 0 ? (void)0 : abort())

#endif

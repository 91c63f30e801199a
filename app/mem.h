/* SPDX-License-Identifier: MIT
 * Small allocations of the program. They do not fail: without memory the process aborts, and
 * the handler of SIGABRT gives the terminal back (signals.h). Everything large, and everything
 * whose size comes from a file, goes through functions that can say no. */
#ifndef APP_MEM_H
#define APP_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/array.h"

void *app_xcalloc(size_t n, size_t size) __attribute__((malloc));
void *app_xrealloc(void *p, size_t n, size_t size);
char *app_xstrdup(const char *s) __attribute__((malloc));

void app_buf_append(struct ply_buf *b, const void *bytes, size_t n);
void app_buf_puts(struct ply_buf *b, const char *s);
void app_buf_printf(struct ply_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void app_buf_set(struct ply_buf *b, const void *bytes, size_t n);
void app_ids_append(struct ply_ids *a, const int32_t *ids, size_t n);
void app_ids_set(struct ply_ids *a, const int32_t *ids, size_t n);

#endif

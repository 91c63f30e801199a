/* SPDX-License-Identifier: MIT
 * Allocation that aborts instead of failing. */
#include "app/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/log.h"

static void *
check(void *p)
{
    if (!p) {
        ply_log(PLY_LOG_ERROR, "app", "out of memory");
        abort();
    }
    return p;
}

void *
app_xcalloc(size_t n, size_t size)
{
    return check(calloc(n ? n : 1, size ? size : 1));
}

void *
app_xrealloc(void *p, size_t n, size_t size)
{
    return check(reallocarray(p, n ? n : 1, size ? size : 1));
}

char *
app_xstrdup(const char *s)
{
    return check(strdup(s));
}

void
app_buf_append(struct ply_buf *b, const void *bytes, size_t n)
{
    if (ply_buf_append(b, bytes, n) != 0)
        check(NULL);
}

void
app_buf_puts(struct ply_buf *b, const char *s)
{
    app_buf_append(b, s, strlen(s));
}

void
app_buf_printf(struct ply_buf *b, const char *fmt, ...)
{
    char *s;
    va_list ap;
    va_start(ap, fmt);
    const int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    if (n < 0)
        check(NULL);
    app_buf_append(b, s, (size_t)n);
    free(s);
}

void
app_buf_set(struct ply_buf *b, const void *bytes, size_t n)
{
    b->n = 0;
    app_buf_append(b, bytes, n);
}

void
app_ids_append(struct ply_ids *a, const int32_t *ids, size_t n)
{
    if (ply_ids_append(a, ids, n) != 0)
        check(NULL);
}

void
app_ids_set(struct ply_ids *a, const int32_t *ids, size_t n)
{
    a->n = 0;
    app_ids_append(a, ids, n);
}

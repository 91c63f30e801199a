/* SPDX-License-Identifier: MIT
 * Allocation that aborts instead of failing, and edits on byte buffers. */
#include "ui/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/err.h"

void *
ui_xrealloc(void *p, size_t n, size_t size)
{
    if (size != 0 && n > SIZE_MAX / size)
        abort();
    void *q = realloc(p, n * size > 0 ? n * size : 1);
    if (!q)
        abort();
    return q;
}

void
ui_str_set(char **p, const char *s)
{
    const char *from = s ? s : "";
    const size_t n = strlen(from) + 1;
    char *copy = ui_xrealloc(NULL, n, 1);
    memcpy(copy, from, n);
    free(*p);
    *p = copy;
}

void
ui_buf_append(struct ply_buf *b, const void *bytes, size_t n)
{
    if (ply_buf_append(b, bytes, n) != PLY_OK)
        abort();
}

void
ui_buf_insert(struct ply_buf *b, size_t pos, const void *bytes, size_t n)
{
    if (n == 0)
        return;
    if (ply_buf_reserve(b, n) != PLY_OK)
        abort();
    memmove(b->v + pos + n, b->v + pos, b->n - pos);
    memcpy(b->v + pos, bytes, n);
    b->n += n;
    b->v[b->n] = '\0';
}

void
ui_buf_remove(struct ply_buf *b, size_t pos, size_t n)
{
    if (n == 0)
        return;
    memmove(b->v + pos, b->v + pos + n, b->n - pos - n);
    b->n -= n;
    b->v[b->n] = '\0';
}

void
ui_buf_set(struct ply_buf *b, const void *bytes, size_t n)
{
    b->n = 0;
    ui_buf_append(b, bytes, n);
}

const char *
ui_buf_str(const struct ply_buf *b)
{
    return b->v ? b->v : "";
}

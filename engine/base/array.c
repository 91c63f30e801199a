/* SPDX-License-Identifier: MIT
 * Growing arrays. Capacity grows by half, so that appending n elements one by one costs O(n);
 * sizes are checked before they are multiplied. */
#include "engine/base/array.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/err.h"

/* Make room for n_more elements of `size` bytes after the n that are there. */
static int
grow(void **v, size_t *cap, size_t n, size_t n_more, size_t size)
{
    const size_t max = (size_t)PTRDIFF_MAX / size;
    if (n_more > max - n)
        return PLY_ENOMEM;
    const size_t need = n + n_more;
    if (need <= *cap)
        return PLY_OK;
    size_t want = *cap + *cap / 2 + 16;
    if (want < need || want > max)
        want = need;
    void *p = realloc(*v, want * size);
    if (!p)
        return PLY_ENOMEM;
    *v = p;
    *cap = want;
    return PLY_OK;
}

int
ply_ids_reserve(struct ply_ids *a, size_t n_more)
{
    void *v = a->v;
    const int r = grow(&v, &a->cap, a->n, n_more, sizeof(*a->v));
    a->v = v;
    return r;
}

int
ply_ids_push(struct ply_ids *a, int32_t id)
{
    return ply_ids_append(a, &id, 1);
}

int
ply_ids_append(struct ply_ids *a, const int32_t *ids, size_t n)
{
    if (n == 0)
        return PLY_OK;
    const int r = ply_ids_reserve(a, n);
    if (r != PLY_OK)
        return r;
    memcpy(a->v + a->n, ids, n * sizeof(*ids));
    a->n += n;
    return PLY_OK;
}

void
ply_ids_fini(struct ply_ids *a)
{
    free(a->v);
    *a = (struct ply_ids){0};
}

int
ply_buf_reserve(struct ply_buf *b, size_t n_more)
{
    if (n_more == SIZE_MAX)
        return PLY_ENOMEM;
    void *v = b->v;
    /* one more for the NUL */
    const int r = grow(&v, &b->cap, b->n, n_more + 1, 1);
    b->v = v;
    if (r == PLY_OK)
        b->v[b->n] = '\0';
    return r;
}

int
ply_buf_append(struct ply_buf *b, const void *bytes, size_t n)
{
    const int r = ply_buf_reserve(b, n);
    if (r != PLY_OK)
        return r;
    if (n > 0)
        memcpy(b->v + b->n, bytes, n);
    b->n += n;
    b->v[b->n] = '\0';
    return PLY_OK;
}

int
ply_buf_printf(struct ply_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return PLY_ENOMEM;
    const int r = ply_buf_reserve(b, (size_t)n);
    if (r != PLY_OK)
        return r;
    va_start(ap, fmt);
    vsnprintf(b->v + b->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
    return PLY_OK;
}

void
ply_buf_fini(struct ply_buf *b)
{
    free(b->v);
    *b = (struct ply_buf){0};
}

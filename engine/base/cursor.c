/* SPDX-License-Identifier: MIT
 * The bounds-checked reader. Invariant: pos <= size, always. */
#include "engine/base/cursor.h"

#include <string.h>

void
ply_cursor_init(struct ply_cursor *c, const void *base, size_t size)
{
    *c = (struct ply_cursor){.base = base, .size = size};
}

bool
ply_cursor_ok(const struct ply_cursor *c)
{
    return c->fault == NULL;
}

void
ply_cursor_fail(struct ply_cursor *c, const char *fault)
{
    if (c->fault)
        return;
    c->fault = fault;
    c->fault_pos = c->pos;
}

const uint8_t *
ply_cursor_take(struct ply_cursor *c, uint64_t n)
{
    if (c->fault)
        return NULL;
    if (n > c->size - c->pos) {
        ply_cursor_fail(c, "the file ends too early");
        return NULL;
    }
    const uint8_t *p = c->base + c->pos;
    c->pos += (size_t)n;
    return p;
}

/* Assembled byte by byte: right on any host, and compilers make one load of it. */
static uint64_t
read_le(struct ply_cursor *c, unsigned n)
{
    const uint8_t *p = ply_cursor_take(c, n);
    uint64_t v = 0;
    if (!p)
        return 0;
    for (unsigned i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint8_t
ply_cursor_u8(struct ply_cursor *c)
{
    return (uint8_t)read_le(c, 1);
}

uint16_t
ply_cursor_u16(struct ply_cursor *c)
{
    return (uint16_t)read_le(c, 2);
}

uint32_t
ply_cursor_u32(struct ply_cursor *c)
{
    return (uint32_t)read_le(c, 4);
}

uint64_t
ply_cursor_u64(struct ply_cursor *c)
{
    return read_le(c, 8);
}

float
ply_cursor_f32(struct ply_cursor *c)
{
    const uint32_t u = ply_cursor_u32(c);
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

double
ply_cursor_f64(struct ply_cursor *c)
{
    const uint64_t u = ply_cursor_u64(c);
    double d;
    memcpy(&d, &u, sizeof(d));
    return d;
}

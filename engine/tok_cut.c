/* SPDX-License-Identifier: MIT
 * See tok_cut.h. */
#include "engine/tok_cut.h"

#include <stdlib.h>

#include "engine/base/err.h"
#include "engine/base/utf8.h"

#define SET_BITS 22u /* 512 KiB: some 300,000 pairs of a large vocabulary fill 7 % */
#define ESCAPED_SPACE 0x2581u

static size_t
pair_bit(uint32_t a, uint32_t b)
{
    const uint64_t key = (uint64_t)a << 32 | b;
    return (size_t)((key * 0x9E3779B97F4A7C15u) >> (64 - SET_BITS));
}

int
ply_cut_init(struct ply_cut *c)
{
    c->bits = calloc((size_t)1 << (SET_BITS - 6), sizeof(*c->bits));
    return c->bits ? PLY_OK : PLY_ENOMEM;
}

void
ply_cut_fini(struct ply_cut *c)
{
    free(c->bits);
    c->bits = NULL;
}

static int
next_char(const char *s, size_t len, uint32_t *cp)
{
    const int n = ply_utf8_decode(s, len, cp);
    if (*cp == ' ')
        *cp = ESCAPED_SPACE;
    return n;
}

void
ply_cut_add(struct ply_cut *c, const char *s, size_t len)
{
    uint32_t prev = 0, cp;
    for (size_t i = 0; i < len;) {
        const int n = next_char(s + i, len - i, &cp);
        if (n < 0)
            return;
        if (i > 0) {
            const size_t bit = pair_bit(prev, cp);
            c->bits[bit / 64] |= (uint64_t)1 << bit % 64;
        }
        prev = cp;
        i += (size_t)n;
    }
}

size_t
ply_cut_part(const struct ply_cut *c, const char *text, size_t len, size_t want)
{
    uint32_t prev = 0, cp;
    size_t i = 0;
    while (i < len) {
        const int n = next_char(text + i, len - i, &cp);
        if (n < 0 || cp == 0)
            break;
        if (i >= want) {
            const size_t bit = pair_bit(prev, cp);
            if (!(c->bits[bit / 64] >> bit % 64 & 1))
                break;
        }
        prev = cp;
        i += (size_t)n;
    }
    return i;
}

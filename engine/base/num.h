/* SPDX-License-Identifier: MIT
 * Arithmetic on sizes that come from files: every product and sum of such numbers goes
 * through these, which say false instead of wrapping. */
#ifndef PLY_BASE_NUM_H
#define PLY_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLY_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PLY_MIN(a, b) ((a) < (b) ? (a) : (b))
#define PLY_MAX(a, b) ((a) > (b) ? (a) : (b))

static inline bool
ply_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool
ply_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* The next multiple of a (a power of two); false when it does not fit. */
static inline bool
ply_align_u64(uint64_t v, uint64_t a, uint64_t *out)
{
    uint64_t s;
    if (!ply_add_u64(v, a - 1, &s))
        return false;
    *out = s & ~(a - 1);
    return true;
}

#endif

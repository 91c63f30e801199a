/* SPDX-License-Identifier: MIT
 * A bounds-checked reader over bytes in memory: the only way file bytes are read. The
 * first fault is latched with its offset; every later read yields zeros, so a parser may
 * read a whole record and check once. Numbers are little-endian. */
#ifndef PLY_BASE_CURSOR_H
#define PLY_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ply_cursor {
    const uint8_t *base;
    size_t size, pos;
    const char *fault; /* NULL while all is well; a static text */
    size_t fault_pos;  /* where the read that failed began */
};

void ply_cursor_init(struct ply_cursor *c, const void *base, size_t size);
bool ply_cursor_ok(const struct ply_cursor *c);
void ply_cursor_fail(struct ply_cursor *c, const char *fault);
/* n bytes in place, or NULL when fewer remain. */
const uint8_t *ply_cursor_take(struct ply_cursor *c, uint64_t n);
uint8_t ply_cursor_u8(struct ply_cursor *c);
uint16_t ply_cursor_u16(struct ply_cursor *c);
uint32_t ply_cursor_u32(struct ply_cursor *c);
uint64_t ply_cursor_u64(struct ply_cursor *c);
float ply_cursor_f32(struct ply_cursor *c);
double ply_cursor_f64(struct ply_cursor *c);

#endif

/* SPDX-License-Identifier: MIT
 * Large memory: anonymous pages, zero until written, that cost nothing until touched; and how
 * much of it this process may still take. */
#ifndef PLY_MEM_H
#define PLY_MEM_H

#include <stddef.h>
#include <stdint.h>

/* bytes > 0 of zeros, 64-byte aligned at least; areas of 2 MB and more are aligned to 2 MB and
 * ask for huge pages. NULL when the system refuses. */
void *ply_mem_map(uint64_t bytes);
/* The same bytes that were asked for. NULL is accepted. */
void ply_mem_unmap(void *p, uint64_t bytes);
/* Bytes that can still be taken: the least of the machine's available memory, the cgroup's
 * rest and the process' address-space and data limits. */
uint64_t ply_mem_available(void);

/* Places arrays one after the other in one area, each 64-byte aligned. With base NULL it only
 * adds up: the same code that places them also says how much they take. */
struct ply_carve {
    uint8_t *base;
    uint64_t at;
};

static inline void *
ply_carve(struct ply_carve *c, uint64_t n, size_t size)
{
    void *p = c->base ? c->base + c->at : NULL;
    c->at += (n * size + 63) & ~(uint64_t)63;
    return p;
}

#endif

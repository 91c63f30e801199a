/* SPDX-License-Identifier: MIT
 * Tensor types of GGUF as data: block sizes and how to dequantise. The arithmetic on packed
 * weights is kern.h's; this file is what "the weight's value" means. Types are ggml's numbers. */
#ifndef PLY_QUANT_H
#define PLY_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ply_type {
    PLY_TYPE_F32 = 0, PLY_TYPE_F16 = 1, PLY_TYPE_Q4_0 = 2, PLY_TYPE_Q4_1 = 3, PLY_TYPE_Q5_0 = 6,
    PLY_TYPE_Q5_1 = 7, PLY_TYPE_Q8_0 = 8, PLY_TYPE_Q2_K = 10, PLY_TYPE_Q3_K = 11,
    PLY_TYPE_Q4_K = 12, PLY_TYPE_Q5_K = 13, PLY_TYPE_Q6_K = 14, PLY_TYPE_BF16 = 30,
};

struct ply_type_traits {
    enum ply_type type;
    const char *name;       /* "Q4_1" */
    unsigned block;         /* elements in a block: 1, 32 or 256 */
    unsigned block_bytes;
    bool kernel;            /* own integer kernel; else through OpenBLAS */
    /* n elements, a multiple of block, from src (unaligned) to dst */
    void (*dequant)(const uint8_t *src, float *dst, size_t n);
};

/* NULL for a type that is not supported. */
const struct ply_type_traits *ply_type_find(uint32_t type);
/* The name of any type number ggml ever gave, supported or not; NULL if it gave none. */
const char *ply_type_name(uint32_t type);
/* Elements and bytes of a block of any type a file may hold, supported or not; false for a
 * number that has no size: never given, or taken back. */
bool ply_type_geometry(uint32_t type, unsigned *block, unsigned *block_bytes);
/* Bytes of one row of n elements; false when n is no multiple of the block or on overflow. */
bool ply_type_row_bytes(const struct ply_type_traits *t, uint64_t n, uint64_t *bytes);

/* f16 <-> f32, round to nearest even, equal to F16C everywhere, NaN payloads aside. */
float ply_f16_to_f32(uint16_t h);
uint16_t ply_f32_to_f16(float f);

#endif

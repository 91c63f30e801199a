/* SPDX-License-Identifier: MIT
 * A weight matrix ready to be multiplied: packed by rows of 16 for the integer kernels, or as
 * the file has it for OpenBLAS (blas.h). The packed copy replaces the file's pages.
 *
 * Packed layout: panels of PLY_PANEL rows, each self-contained and of equal size; kern_mm.c's
 * head says how a panel of each type is laid out. Rows past n_out in the last panel are zeros. */
#ifndef PLY_MATMUL_H
#define PLY_MATMUL_H

#include "engine/kern.h"
#include "engine/model.h"
#include "engine/pool.h"

struct ply_mat {
    const struct ply_type_traits *type; /* NULL: absent */
    uint32_t n_in, n_out;
    const uint8_t *packed; /* NULL: goes through OpenBLAS from src */
    const uint8_t *src;    /* the file's rows; valid while the mapping is */
};

/* Bytes the packed copy takes, a multiple of 64; 0 for a type without a kernel. */
uint64_t ply_mat_packed_bytes(const struct ply_tensor *t);
/* Pack panels p0..p1-1 of t to packed (64-byte aligned base of the whole matrix). */
void ply_mat_pack(const struct ply_tensor *t, uint8_t *packed, uint32_t p0, uint32_t p1);
/* One row dequantised to dst[n_in], from packed or src: bit-equal to the type's dequant. */
void ply_mat_row(const struct ply_mat *w, uint32_t row, float *dst);

/* Thread ith's share of out[t * ld + row] = W x[t], t < m. acts for packed matrices (already
 * quantised; A12 when acts->fine is NULL), else x [m][n_in] f32 with stride ldx, which goes through
 * OpenBLAS: this thread's rows are dequantised panel by panel into scratch
 * (ply_matmul_scratch_floats(w) floats, the thread's own) and multiplied by sgemm. */
void ply_matmul(const struct ply_kernels *k, const struct ply_mat *w, const struct ply_acts *acts,
                const float *x, size_t ldx, uint32_t m, float *out, size_t ld, float *scratch,
                int ith, int nth);
size_t ply_matmul_scratch_floats(const struct ply_mat *w);

#endif

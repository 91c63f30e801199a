/* SPDX-License-Identifier: MIT
 * Weight matrices: packing, single rows, and the product by the integer kernels or OpenBLAS. */
#include "engine/matmul.h"

#include <string.h>

#include "engine/base/num.h"
#include "engine/blas.h"
#include "engine/kern_layout.h"

/* Rows dequantised at a time for OpenBLAS: enough to keep sgemm busy, small enough for L2. */
#define BLAS_ROWS 64u

static int
slot_of(const struct ply_type_traits *type)
{
    return type && type->kernel ? ply_mm_slot(type->type) : -1;
}

static uint32_t
n_panels(uint32_t n_out)
{
    return (uint32_t)(((uint64_t)n_out + PLY_PANEL - 1) / PLY_PANEL);
}

uint64_t
ply_mat_packed_bytes(const struct ply_tensor *t)
{
    int slot = slot_of(t->type);
    return slot < 0 ? 0 : n_panels(t->n_out) * ply_mm_panel_bytes(ply_mm_layout(slot), t->n_in);
}

static size_t
file_row_bytes(const struct ply_type_traits *type, uint32_t n_in)
{
    return (size_t)(n_in / type->block) * type->block_bytes;
}

void
ply_mat_pack(const struct ply_tensor *t, uint8_t *packed, uint32_t p0, uint32_t p1)
{
    const enum ply_mm_slot slot = (enum ply_mm_slot)slot_of(t->type);
    const uint64_t bytes = ply_mm_panel_bytes(ply_mm_layout(slot), t->n_in);
    const size_t row_bytes = file_row_bytes(t->type, t->n_in);
    for (uint32_t p = p0; p < p1; p++) {
        uint8_t *panel = packed + p * bytes;
        memset(panel, 0, bytes);
        for (uint32_t r = 0; r < PLY_PANEL && p * PLY_PANEL + r < t->n_out; r++)
            ply_pack_row(slot, t->data + (p * (size_t)PLY_PANEL + r) * row_bytes, t->n_in, panel,
                         r);
    }
}

void
ply_mat_row(const struct ply_mat *w, uint32_t row, float *dst)
{
    if (!w->packed) {
        w->type->dequant(w->src + row * file_row_bytes(w->type, w->n_in), dst, w->n_in);
        return;
    }
    const enum ply_mm_slot slot = (enum ply_mm_slot)slot_of(w->type);
    const uint8_t *panel =
        w->packed + row / PLY_PANEL * ply_mm_panel_bytes(ply_mm_layout(slot), w->n_in);
    uint8_t block[256];
    for (uint32_t i = 0; i < w->n_in / w->type->block; i++) {
        ply_unpack_block(slot, panel, row % PLY_PANEL, i, block);
        w->type->dequant(block, dst + (size_t)i * w->type->block, w->type->block);
    }
}

size_t
ply_matmul_scratch_floats(const struct ply_mat *w)
{
    return w->packed ? 0 : (size_t)PLY_MIN(BLAS_ROWS, w->n_out) * w->n_in;
}

static void
matmul_blas(const struct ply_mat *w, const float *x, size_t ldx, uint32_t m, float *out, size_t ld,
            float *scratch, uint32_t row0, uint32_t row1)
{
    const size_t row_bytes = file_row_bytes(w->type, w->n_in);
    for (uint32_t row = row0; row < row1; row += BLAS_ROWS) {
        uint32_t n = PLY_MIN(BLAS_ROWS, row1 - row);
        w->type->dequant(w->src + row * row_bytes, scratch, (size_t)n * w->n_in);
        ply_blas_sgemm_nt(m, n, w->n_in, x, (uint32_t)ldx, scratch, w->n_in, out + row,
                          (uint32_t)ld);
    }
}

void
ply_matmul(const struct ply_kernels *k, const struct ply_mat *w, const struct ply_acts *acts,
           const float *x, size_t ldx, uint32_t m, float *out, size_t ld, float *scratch, int ith,
           int nth)
{
    const uint64_t panels = n_panels(w->n_out);
    const uint32_t p0 = (uint32_t)(panels * (unsigned)ith / (unsigned)nth);
    const uint32_t p1 = (uint32_t)(panels * ((unsigned)ith + 1) / (unsigned)nth);
    if (p0 == p1 || m == 0)
        return;
    if (w->packed) {
        const ply_mm_fn *const mm = acts->fine ? k->mm_a8 : k->mm_a12;
        mm[slot_of(w->type)](w->packed, w->n_in, w->n_out, p0, p1, acts, m, out, ld);
        return;
    }
    matmul_blas(w, x, ldx, m, out, ld, scratch, p0 * PLY_PANEL, PLY_MIN(p1 * PLY_PANEL, w->n_out));
}

/* SPDX-License-Identifier: MIT
 * OpenBLAS, loaded on first need (dlopen) and held to one thread a call; several of our
 * threads may call at once. The only file that knows cblas is blas.c. */
#ifndef PLY_BLAS_H
#define PLY_BLAS_H

#include <stdint.h>

#include "engine/base/err.h"

/* Load it and check one small product. PLY_EUNSUPPORTED names the package to install. */
int ply_blas_load(struct ply_err *err);
/* "Haswell", "SkylakeX", ...: the core OpenBLAS chose; "" before it is loaded. */
const char *ply_blas_core(void);
/* C[m][ldc] = A[m][lda] * B[n][ldb]^T, row-major, k inner; m, n, k may be 0. */
void ply_blas_sgemm_nt(uint32_t m, uint32_t n, uint32_t k, const float *a, uint32_t lda,
                       const float *b, uint32_t ldb, float *c, uint32_t ldc);

#endif

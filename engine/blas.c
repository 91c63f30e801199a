/* SPDX-License-Identifier: MIT
 * OpenBLAS by dlopen. Its thread pool is made when the library is loaded and its workers spin
 * after a call, so it is told to be single-threaded before; our own threads call it side by
 * side. */
#include "engine/blas.h"

#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/log.h"

#define LIBRARY "libopenblas.so.0"

static struct {
    void *handle;
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&openblas_set_num_threads) set_num_threads;
    __typeof__(&openblas_get_corename) core;
    char fault[256]; /* why it cannot be used */
} blas;

static pthread_once_t loaded = PTHREAD_ONCE_INIT;

/* One small product whose every sum is exact in float32, so that any order of adding gives it. */
static bool
blas_check(void)
{
    enum { M = 5, N = 7, K = 9 };
    float a[M * K], b[N * K], c[M * N];
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i * 7 % 11 - 5);
    for (int i = 0; i < N * K; i++)
        b[i] = (float)(i * 5 % 13 - 6);
    for (int i = 0; i < M * N; i++)
        c[i] = 1e30f;
    blas.sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, M, N, K, 1.0f, a, K, b, K, 0.0f, c, N);
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            int want = 0;
            for (int k = 0; k < K; k++)
                want += (int)a[i * K + k] * (int)b[j * K + k];
            if (c[i * N + j] != (float)want)
                return false;
        }
    }
    return true;
}

/* The library reads the variable once, as it is loaded; the program's own environment, which
 * its children inherit, is put back. */
static void *
open_single_threaded(void)
{
    static const char name[] = "OPENBLAS_NUM_THREADS";
    const char *value = getenv(name);
    char *saved = value ? strdup(value) : NULL;
    setenv(name, "1", 1);
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (saved)
        setenv(name, saved, 1);
    else
        unsetenv(name);
    free(saved);
    return handle;
}

static void
blas_load(void)
{
    blas.handle = open_single_threaded();
    if (!blas.handle) {
        snprintf(blas.fault, sizeof blas.fault,
                 "these weights need OpenBLAS, install the package libopenblas0-pthread (%s)",
                 dlerror());
        return;
    }
    blas.sgemm = (__typeof__(blas.sgemm))dlsym(blas.handle, "cblas_sgemm");
    blas.set_num_threads =
        (__typeof__(blas.set_num_threads))dlsym(blas.handle, "openblas_set_num_threads");
    blas.core = (__typeof__(blas.core))dlsym(blas.handle, "openblas_get_corename");
    if (!blas.sgemm || !blas.set_num_threads || !blas.core) {
        snprintf(blas.fault, sizeof blas.fault,
                 LIBRARY " is not OpenBLAS, install the package libopenblas0-pthread");
        return;
    }
    blas.set_num_threads(1);
    if (!blas_check()) {
        snprintf(
            blas.fault, sizeof blas.fault,
            "OpenBLAS computes wrong numbers here (core %s): set OPENBLAS_CORETYPE to another core",
            blas.core());
        return;
    }
    ply_log(PLY_LOG_INFO, "blas", "OpenBLAS loaded, core %s", blas.core());
}

int
ply_blas_load(struct ply_err *err)
{
    pthread_once(&loaded, blas_load);
    return blas.fault[0] ? ply_fail(err, PLY_EUNSUPPORTED, "%s", blas.fault) : 0;
}

const char *
ply_blas_core(void)
{
    return blas.core && !blas.fault[0] ? blas.core() : "";
}

void
ply_blas_sgemm_nt(uint32_t m, uint32_t n, uint32_t k, const float *a, uint32_t lda, const float *b,
                  uint32_t ldb, float *c, uint32_t ldc)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0) {
        for (uint32_t i = 0; i < m; i++)
            memset(c + (size_t)i * ldc, 0, n * sizeof *c);
        return;
    }
    blas.sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)m, (blasint)n, (blasint)k, 1.0f, a,
               (blasint)lda, b, (blasint)ldb, 0.0f, c, (blasint)ldc);
}

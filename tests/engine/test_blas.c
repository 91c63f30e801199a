/* SPDX-License-Identifier: MIT
 * OpenBLAS as we use it. B132: on every core type this processor can pretend to be, each in a
 * process of its own because the library chooses once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/num.h"
#include "engine/blas.h"
#include "tests/engine/kernutil.h"

/* One shape against double; rows of C are wider than n and what lies between them stays. */
static bool
product_is_right(uint32_t m, uint32_t n, uint32_t k)
{
    const uint32_t lda = k + 3, ldb = k + 1, ldc = n + 2;
    float *a = malloc((size_t)m * lda * sizeof(*a)), *b = malloc((size_t)n * ldb * sizeof(*b));
    float *c = malloc(((size_t)m * ldc + 1) * sizeof(*c));
    bool right = true;
    for (size_t i = 0; i < (size_t)m * lda; i++)
        a[i] = i % lda < k ? rnd_float() : NAN;
    for (size_t i = 0; i < (size_t)n * ldb; i++)
        b[i] = i % ldb < k ? rnd_float() : NAN;
    for (size_t i = 0; i < (size_t)m * ldc; i++)
        c[i] = i % ldc < n ? NAN : 7.0f; /* what was there does not count, not even NaN */
    ply_blas_sgemm_nt(m, n, k, a, lda, b, ldb, c, ldc);
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < ldc; j++) {
            double want = 0, magnitude = 0;
            for (size_t l = 0; l < k && j < n; l++) {
                want += (double)a[i * lda + l] * b[j * ldb + l];
                magnitude += fabs((double)a[i * lda + l] * b[j * ldb + l]);
            }
            const float got = c[i * ldc + j];
            right = right && (j < n ? fabs(got - want) <= 1e-5 * magnitude : got == 7.0f);
        }
    }
    free(a);
    free(b);
    free(c);
    return right;
}

static bool
all_products_are_right(void)
{
    static const uint32_t shapes[][3] = {
        {1, 1, 1}, {1, 64, 576}, {64, 1, 576}, {5, 7, 0},    {0, 4, 4},     {4, 0, 4},
        {3, 5, 1}, {17, 33, 65}, {64, 64, 96}, {8, 64, 576}, {33, 64, 256}, {100, 60, 300},
    };
    for (size_t i = 0; i < PLY_COUNT(shapes); i++) {
        if (!product_is_right(shapes[i][0], shapes[i][1], shapes[i][2]))
            return false;
    }
    return true;
}

static void
own_core(void **unused)
{
    struct ply_err err = {0};
    assert_string_equal(ply_blas_core(), "");
    setenv("OPENBLAS_NUM_THREADS", "7", 1);
    if (ply_blas_load(&err))
        fail_msg("%s", err.msg);
    assert_string_not_equal(ply_blas_core(), "");
    assert_string_equal(getenv("OPENBLAS_NUM_THREADS"), "7"); /* ours again */
    assert_int_equal(ply_blas_load(&err), 0);
    assert_true(all_products_are_right());
}

/* Only what this processor can run; SkylakeX needs AVX-512, Prescott SSE3. */
static bool
can_run(const char *core)
{
#ifdef __x86_64__
    if (!strcmp(core, "Prescott"))
        return __builtin_cpu_supports("sse3");
    if (!strcmp(core, "Nehalem"))
        return __builtin_cpu_supports("sse4.2");
    if (!strcmp(core, "Sandybridge"))
        return __builtin_cpu_supports("avx");
    if (!strcmp(core, "SkylakeX"))
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

static const char *self;

static void
other_cores(void **unused)
{
    static const char *const cores[] = {"Prescott", "Nehalem", "Sandybridge",
                                        "Haswell",  "Zen",     "SkylakeX"};
    int n = 0;
    for (size_t i = 0; i < PLY_COUNT(cores); i++) {
        if (!can_run(cores[i])) {
            print_message("# this processor cannot run %s\n", cores[i]);
            continue;
        }
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            setenv("OPENBLAS_CORETYPE", cores[i], 1);
            execl(self, self, "--as", cores[i], (char *)NULL);
            _exit(127);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("as %s: status %d", cores[i], status);
        n++;
    }
    if (n == 0)
        skip();
}

/* The child: load as the named core and multiply. The library may know a core under another
 * name, so the name it answers with is only shown. */
static int
run_as(const char *core)
{
    struct ply_err err = {0};
    if (ply_blas_load(&err)) {
        printf("# as %s: %s\n", core, err.msg);
        return 1;
    }
    printf("# as %s: runs %s\n", core, ply_blas_core());
    return all_products_are_right() ? 0 : 1;
}

int
main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--as"))
        return run_as(argv[2]);
    self = argv[0];
    const struct CMUnitTest tests[] = {cmocka_unit_test(own_core), cmocka_unit_test(other_cores)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

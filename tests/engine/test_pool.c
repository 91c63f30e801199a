/* SPDX-License-Identifier: MIT
 * The thread pool: every thread runs, barriers hold, the floating-point state is the law's, idle
 * costs nothing, and more threads than cores still get on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/err.h"
#include "engine/cpu.h"
#include "engine/pool.h"

#define MAX_THREADS 16
#define STEPS 300

static const int sizes[] = {1, 2, 3, 5, MAX_THREADS};

struct work {
    struct ply_pool *pool;
    int ran[MAX_THREADS], nth[MAX_THREADS];
    int cell[2][MAX_THREADS]; /* plain memory: only the barrier orders it */
    atomic_int wrong;
};

static void
mark(void *arg, int ith, int nth)
{
    struct work *w = arg;
    w->ran[ith]++;
    w->nth[ith] = nth;
}

static void
every_thread_runs(void **unused)
{
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        struct work w = {0};
        assert_int_equal(ply_pool_new(&w.pool, sizes[s], NULL), 0);
        assert_int_equal(ply_pool_size(w.pool), sizes[s]);
        for (int round = 1; round <= 100; round++) {
            ply_pool_run(w.pool, mark, &w);
            for (int i = 0; i < MAX_THREADS; i++) {
                assert_int_equal(w.ran[i], i < sizes[s] ? round : 0);
                assert_int_equal(w.nth[i], i < sizes[s] ? sizes[s] : 0);
            }
        }
        ply_pool_free(&w.pool);
        assert_null(w.pool);
    }
}

/* Each step, every thread writes its own cell and, after the barrier, reads all the others'. */
static void
steps(void *arg, int ith, int nth)
{
    struct work *w = arg;
    for (int step = 1; step <= STEPS; step++) {
        w->cell[step % 2][ith] = step * (ith + 1);
        ply_pool_barrier(w->pool);
        for (int i = 0; i < nth; i++) {
            if (w->cell[step % 2][i] != step * (i + 1))
                atomic_fetch_add(&w->wrong, 1);
        }
    }
}

static void
barriers_order(void **unused)
{
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        struct work w = {0};
        assert_int_equal(ply_pool_new(&w.pool, sizes[s], NULL), 0);
        for (int round = 0; round < 5; round++)
            ply_pool_run(w.pool, steps, &w);
        assert_int_equal(atomic_load(&w.wrong), 0);
        ply_pool_free(&w.pool);
    }
}

/* A thread that is late: the others fall asleep at the barrier and are woken. */
static void
late(void *arg, int ith, int nth)
{
    struct work *w = arg;
    for (int step = 0; step < nth; step++) {
        if (step == ith)
            nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        w->ran[ith] = step;
        ply_pool_barrier(w->pool);
        for (int i = 0; i < nth; i++) {
            if (w->ran[i] != step)
                atomic_fetch_add(&w->wrong, 1);
        }
        ply_pool_barrier(w->pool);
    }
}

static void
sleepers_wake(void **unused)
{
    struct work w = {0};
    assert_int_equal(ply_pool_new(&w.pool, 4, NULL), 0);
    for (int round = 0; round < 3; round++) {
        ply_pool_run(w.pool, late, &w);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    assert_int_equal(atomic_load(&w.wrong), 0);
    ply_pool_free(&w.pool);
}

#ifdef __x86_64__
#include <xmmintrin.h>

static void
subnormals_stay(void *arg, int ith, int nth)
{
    struct work *w = arg;
    volatile float tiny = 1e-39f;
    if (_mm_getcsr() % 0x10000 / 0x40 * 0x40 != 0x1f80 || tiny * 0.5f == 0.0f)
        atomic_fetch_add(&w->wrong, 1);
}

/* Flush-to-zero, denormals-are-zero and rounding up, set by whoever called us, reach no thread
 * and are there again afterwards. */
static void
float_state(void **unused)
{
    struct work w = {0};
    const uint32_t odd = 0x1f80 | 0x8000 | 0x0040 | 0x4000;
    assert_int_equal(ply_pool_new(&w.pool, 3, NULL), 0);
    const uint32_t before = _mm_getcsr();
    _mm_setcsr(odd);
    ply_pool_run(w.pool, subnormals_stay, &w);
    const uint32_t after = _mm_getcsr();
    _mm_setcsr(before);
    assert_int_equal(after, odd);
    assert_int_equal(atomic_load(&w.wrong), 0);
    ply_pool_free(&w.pool);
}
#else
static void
float_state(void **unused)
{
    skip();
}
#endif

/* B134: between runs nobody uses the processor. */
static void
idle_is_free(void **unused)
{
    struct work w = {0};
    struct timespec before, after;
    assert_int_equal(ply_pool_new(&w.pool, 4, NULL), 0);
    ply_pool_run(w.pool, mark, &w);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    const long us =
        (after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000;
    assert_in_range(us, 0, 30000); /* of 300,000: a single spinning worker uses all of it */
    ply_pool_free(&w.pool);
}

static void
bad_sizes(void **unused)
{
    struct ply_err err = {0};
    struct ply_pool *p;
    assert_int_equal(ply_pool_new(&p, 0, &err), PLY_EINVAL);
    assert_null(p);
    assert_int_equal(err.code, PLY_EINVAL);
    ply_pool_free(&p);
}

static void
counts_cores(void **unused)
{
    cpu_set_t all, one;
    const int n = ply_cpu_count();
    assert_in_range(n, 1, sysconf(_SC_NPROCESSORS_CONF));
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(ply_cpu_count(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
    assert_int_equal(ply_cpu_count(), n);
}

/* --isa: what is named is what runs, or there is a line that says why not. */
static void
chooses_kernels(void **unused)
{
    struct ply_err err = {0};
    assert_string_equal(ply_cpu_kernels(PLY_ISA_REF, &err)->isa, "ref");
    assert_non_null(ply_cpu_kernels(PLY_ISA_AUTO, &err));
    assert_int_equal(err.code, 0);
    assert_null(ply_cpu_kernels(PLY_ISA_AVXVNNI, &err));
    assert_int_equal(err.code, PLY_EUNSUPPORTED);
    static const struct {
        enum ply_isa isa;
        const char *name;
    } named[] = {{PLY_ISA_AVX2, "avx2"}, {PLY_ISA_AVX512, "avx512"}};
    for (int i = 0; i < 2; i++) {
        struct ply_err why = {0};
        const struct ply_kernels *k = ply_cpu_kernels(named[i].isa, &why);
        if (k)
            assert_string_equal(k->isa, named[i].name);
        else
            assert_non_null(strstr(why.msg, named[i].name));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_thread_runs), cmocka_unit_test(barriers_order),
        cmocka_unit_test(sleepers_wake),     cmocka_unit_test(float_state),
        cmocka_unit_test(idle_is_free),      cmocka_unit_test(bad_sizes),
        cmocka_unit_test(counts_cores),      cmocka_unit_test(chooses_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

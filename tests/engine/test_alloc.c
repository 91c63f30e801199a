/* SPDX-License-Identifier: MIT
 * The n-th allocation fails, for n = 1, 2, 3, ... until none is left to fail: opening an engine and
 * working with it then ends in PLY_ENOMEM with nothing left behind (the sanitizer build looks for
 * leaks). And the token loop, where nothing may be allocated at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "engine/base/num.h"
#include "tests/engine/engutil.h"

/* ---- allocation, counted (the linker wraps these; meson makes off_t 64 bits wide, and so mmap is
 * mmap64) ---- */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__real_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
void *__wrap_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t offset);

static atomic_long n_seen, fail_at; /* fail_at 0: none */

static bool
refused(void)
{
    const long n = atomic_fetch_add(&n_seen, 1) + 1;
    if (n != atomic_load(&fail_at))
        return false;
    errno = ENOMEM;
    return true;
}

void *
__wrap_malloc(size_t n)
{
    return refused() ? NULL : __real_malloc(n);
}

void *
__wrap_calloc(size_t n, size_t size)
{
    return refused() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t n)
{
    return refused() ? NULL : __real_realloc(p, n);
}

void *
__wrap_aligned_alloc(size_t align, size_t n)
{
    return refused() ? NULL : __real_aligned_alloc(align, n);
}

void *
__wrap_mmap64(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    return refused() ? MAP_FAILED : __real_mmap64(at, n, prot, flags, fd, offset);
}

static void
fail_allocation(long n)
{
    atomic_store(&fail_at, n);
    atomic_store(&n_seen, 0);
}

/* ---- tests ---- */

/* Open, evaluate, fork, write to the fork; the first error ends it. */
static int
work(const char *path, struct ply_engine_opts opts, struct ply_err *err)
{
    struct ply_engine *e = NULL;
    struct ply_seq *s = NULL, *child = NULL;
    int32_t ids[100] = {0};
    int rc = ply_engine_open(&e, path, &opts, err);
    if (rc != PLY_OK) {
        assert_null(e);
        return rc;
    }
    rc = ply_seq_new(e, &s, err);
    if (rc == PLY_OK)
        rc = ply_seq_sync(s, ids, PLY_COUNT(ids), NULL, NULL, err);
    if (rc == PLY_OK)
        rc = ply_seq_fork(s, &child, err);
    if (rc == PLY_OK)
        rc = ply_seq_step(&child, ids, 1, err);
    /* What failed left everything as it was: a sequence can be used again. */
    fail_allocation(0);
    if (s)
        assert_int_equal(ply_seq_sync(s, ids, PLY_COUNT(ids), NULL, NULL, NULL), PLY_OK);
    ply_seq_free(&child);
    ply_seq_free(&s);
    ply_engine_close(&e);
    return rc;
}

static void
check_all(const char *name, struct ply_engine_opts opts)
{
    const char *path = tiny_path(name);
    long n = 0;
    int rc;
    do {
        struct ply_err err = {0};
        fail_allocation(++n);
        rc = work(path, opts, &err);
        fail_allocation(0);
        if (rc != PLY_OK && (rc != PLY_ENOMEM || err.code != rc || !err.msg[0]))
            fail_msg("%s: allocation %ld: code %d, \"%s\"", name, n, rc, err.msg);
    } while (rc != PLY_OK);
    print_message("# %s: %ld allocations\n", name, n - 1);
    assert_true(n > 10);
}

static void
every_allocation_may_fail(void **unused)
{
    const struct ply_engine_opts opts = {
        .isa = PLY_ISA_REF, .n_threads = 2, .kv_cache = PLY_KV_CACHE_RAM};
    check_all("llama-q4_k-bpe-chatml", opts);
    check_all("gemma3-q4_k_m-spm-gemma", opts);
    check_all("llama-f16-bpe-chatml", opts);
}

/* Within a block, an evaluation of any shape allocates nothing; nor does a new block that the pool
 * has had before. */
static void
the_token_loop_allocates_nothing(void **unused)
{
    struct ply_engine *e = open_tiny("gemma3-q4_k_m-spm-gemma",
                                     (struct ply_engine_opts){.kv_cache = PLY_KV_CACHE_RAM});
    struct ply_seq *s = new_seq(e);
    int32_t ids[200];
    fill_ids(e, ids, PLY_COUNT(ids), 1);
    assert_int_equal(ply_seq_sync(s, ids, 200, NULL, NULL, NULL), PLY_OK);
    ply_seq_rollback(s, 0);
    fail_allocation(0);
    assert_int_equal(ply_seq_sync(s, ids, 130, NULL, NULL, NULL), PLY_OK);
    for (size_t i = 130; i < 200; i++)
        assert_int_equal(ply_seq_step(&s, &ids[i], 1, NULL), PLY_OK);
    assert_int_equal(ply_seq_sync(s, ids, 150, NULL, NULL, NULL), PLY_OK);
    assert_int_equal(atomic_load(&n_seen), 0);
    ply_seq_free(&s);
    ply_engine_close(&e);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(the_token_loop_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 * A run and a barrier are both waits for a counter to move: a short spin, then the futex. With
 * more threads than cores nobody spins, because the thread waited for may need the core. */
#include "engine/pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/cpu.h"

/* Pauses before a waiter sleeps: some 20 to 50 us, longer than a phase of a small model's layer
 * differs between threads, far shorter than the gap between two turns. */
#define SPIN_PAUSES 1000

/* A counter that threads wait to move, alone in its cache line. */
struct event {
    _Alignas(64) atomic_uint count;
    atomic_uint n_asleep;
};

struct worker {
    struct ply_pool *pool;
    pthread_t thread;
    int ith;
};

struct ply_pool {
    struct event run;   /* moves when there is work, or the end has come */
    struct event phase; /* moves when all have arrived at a barrier */
    _Alignas(64) atomic_uint n_arrived;
    int n_threads, n_started; /* the caller is thread 0, workers 1.. are started */
    int spin_pauses;
    bool stop; /* these three are written before run moves and read after */
    ply_pool_fn fn;
    void *arg;
    struct worker *workers; /* [n_threads], the first unused */
};

static void
pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* Everything written before the move is seen after the wait. A sleeper is counted before the
 * kernel compares the counter, and the mover looks at the count after it moved the counter: in
 * the single order of those four accesses one of the two sees the other. */
static void
event_move(struct event *e)
{
    atomic_fetch_add(&e->count, 1);
    if (atomic_load(&e->n_asleep) > 0)
        syscall(SYS_futex, &e->count, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void
event_wait(struct event *e, unsigned seen, int spin_pauses)
{
    for (int i = 0; i < spin_pauses; i++) {
        if (atomic_load_explicit(&e->count, memory_order_acquire) != seen)
            return;
        pause_cpu();
    }
    atomic_fetch_add(&e->n_asleep, 1);
    while (atomic_load(&e->count) == seen)
        syscall(SYS_futex, &e->count, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_sub(&e->n_asleep, 1);
}

void
ply_pool_barrier(struct ply_pool *p)
{
    unsigned seen = atomic_load_explicit(&p->phase.count, memory_order_relaxed);
    if (atomic_fetch_add(&p->n_arrived, 1) + 1 < (unsigned)p->n_threads) {
        event_wait(&p->phase, seen, p->spin_pauses);
        return;
    }
    atomic_store_explicit(&p->n_arrived, 0, memory_order_relaxed);
    event_move(&p->phase);
}

static void *
worker_main(void *arg)
{
    struct worker *w = arg;
    struct ply_pool *p = w->pool;
    ply_cpu_fp_enter(); /* the thread is ours: nothing to restore */
    for (unsigned seen = 0;; seen++) {
        event_wait(&p->run, seen, p->spin_pauses);
        if (p->stop)
            return NULL;
        p->fn(p->arg, w->ith, p->n_threads);
        ply_pool_barrier(p);
    }
}

/* Workers take no signals: handlers belong to the program's own threads. */
static int
start_workers(struct ply_pool *p, struct ply_err *err)
{
    sigset_t all, saved;
    int rc = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    for (int i = 1; i < p->n_threads && rc == 0; i++) {
        p->workers[i] = (struct worker){.pool = p, .ith = i};
        rc = pthread_create(&p->workers[i].thread, NULL, worker_main, &p->workers[i]);
        if (rc == 0)
            p->n_started++;
    }
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    if (rc)
        return ply_fail(err, PLY_EIO, "cannot start thread %d of %d: %s", p->n_started + 2,
                        p->n_threads, strerror(rc));
    return 0;
}

int
ply_pool_new(struct ply_pool **out, int n_threads, struct ply_err *err)
{
    *out = NULL;
    if (n_threads < 1)
        return ply_fail(err, PLY_EINVAL, "%d threads: at least 1 is needed", n_threads);
    struct ply_pool *p = aligned_alloc(_Alignof(struct ply_pool), sizeof *p);
    if (!p)
        return ply_fail(err, PLY_ENOMEM, "out of memory for the thread pool");
    memset(p, 0, sizeof *p);
    p->n_threads = n_threads;
    p->spin_pauses = n_threads <= ply_cpu_count() ? SPIN_PAUSES : 0;
    p->workers = calloc((size_t)n_threads, sizeof *p->workers);
    if (!p->workers) {
        ply_pool_free(&p);
        return ply_fail(err, PLY_ENOMEM, "out of memory for %d threads", n_threads);
    }
    int rc = start_workers(p, err);
    if (rc) {
        ply_pool_free(&p);
        return rc;
    }
    *out = p;
    return 0;
}

void
ply_pool_free(struct ply_pool **pool)
{
    struct ply_pool *p = *pool;
    if (!p)
        return;
    p->stop = true;
    event_move(&p->run);
    for (int i = 1; i <= p->n_started; i++)
        pthread_join(p->workers[i].thread, NULL);
    free(p->workers);
    free(p);
    *pool = NULL;
}

int
ply_pool_size(const struct ply_pool *p)
{
    return p->n_threads;
}

void
ply_pool_run(struct ply_pool *p, ply_pool_fn fn, void *arg)
{
    uint32_t saved = ply_cpu_fp_enter();
    p->fn = fn;
    p->arg = arg;
    event_move(&p->run);
    fn(arg, 0, p->n_threads);
    ply_pool_barrier(p);
    ply_cpu_fp_leave(saved);
}

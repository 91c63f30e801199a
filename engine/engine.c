/* SPDX-License-Identifier: MIT
 * Opening an engine: what it will take is added up and compared with what there is before the
 * first large allocation, so that a context that cannot fit is a message and not a crash. */
#include "engine/engine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/log.h"
#include "engine/base/num.h"
#include "engine/blas.h"
#include "engine/cpu.h"
#include "engine/mem.h"
#include "engine/rope.h"
#include "engine/vocab.h"

#define CTX_DEFAULT 8192u
#define THREADS_MAX 256
#define BUDGET_DEFAULT ((uint64_t)2 << 30)

static double
now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static unsigned long long
mib(uint64_t bytes)
{
    return (unsigned long long)((bytes + ((1u << 20) - 1)) >> 20);
}

/* ---- instruction sets ---- */

static const struct {
    const char *name;
    enum ply_isa isa;
} isas[] = {
    {"ref", PLY_ISA_REF},
    {"avx2", PLY_ISA_AVX2},
    {"avxvnni", PLY_ISA_AVXVNNI},
    {"avx512", PLY_ISA_AVX512},
};

bool
ply_isa_parse(const char *name, enum ply_isa *out)
{
    for (size_t i = 0; i < PLY_COUNT(isas); i++) {
        if (strcmp(name, isas[i].name) == 0) {
            *out = isas[i].isa;
            return true;
        }
    }
    return false;
}

bool
ply_isa_available(enum ply_isa isa, struct ply_err *err)
{
    return ply_cpu_kernels(isa, err) != NULL;
}

/* ---- options ---- */

static int
check_opts(const struct ply_engine_opts *o, struct ply_err *err)
{
    if (o->n_ctx < 0 || o->n_ctx > (int)PLY_ROPE_POS_MAX)
        return ply_fail(err, PLY_EINVAL,
                        "-c %d: a context has room for 1 to %u tokens (0: the "
                        "model's own, %u at most)",
                        o->n_ctx, PLY_ROPE_POS_MAX, CTX_DEFAULT);
    if (o->n_threads < 0 || o->n_threads > THREADS_MAX)
        return ply_fail(err, PLY_EINVAL, "-t %d: 1 to %d threads (0: one a core)", o->n_threads,
                        THREADS_MAX);
    return PLY_OK;
}

/* A context beyond what the model was trained for is allowed, since people may want it and
 * nothing breaks but the model's judgement; the log says so. */
static void
choose_ctx(struct ply_engine *e)
{
    const uint32_t trained = e->model->hp.n_ctx_train;
    if (e->opts.n_ctx == 0)
        e->opts.n_ctx = (int)(trained > 0 ? PLY_MIN(trained, CTX_DEFAULT) : CTX_DEFAULT);
    else if (trained > 0 && (uint32_t)e->opts.n_ctx > trained)
        ply_log(PLY_LOG_WARN, "engine", "-c %d: the model was trained for %u tokens", e->opts.n_ctx,
                trained);
}

/* What an engine takes, by purpose. ctx: what grows with the context, kv and tables. */
struct need {
    uint64_t weights, kv, ctx, scratch;
};

static void
add_up(const struct ply_engine *e, struct ply_forward_opts fo, struct need *need)
{
    const uint64_t all = ply_forward_bytes(&fo);
    fo.n_ctx = PLY_MIN(fo.n_ctx, PLY_BLOCK_TOKS);
    need->weights = ply_weights_bytes(e->model, e->opts.precision == PLY_PRECISION_FULL);
    need->kv = ply_kv_blocks((size_t)e->opts.n_ctx) * fo.kv->block_bytes;
    need->scratch = ply_forward_bytes(&fo);
    need->ctx = need->kv + all - need->scratch;
}

/* The KV budget: what was asked for, if a whole context fits; else the default, and at least a
 * whole context. */
static int
choose_budget(struct ply_engine *e, uint64_t available, const struct need *need,
              struct ply_err *err)
{
    if (e->opts.kv_budget_bytes == 0) {
        const uint64_t wish = PLY_MIN(BUDGET_DEFAULT, available / 4);
        e->opts.kv_budget_bytes = PLY_MAX(wish, need->kv);
    } else if (e->opts.kv_budget_bytes < need->kv) {
        return ply_fail(err, PLY_EINVAL,
                        "a KV budget of %llu MiB cannot hold a context of %d tokens, "
                        "which takes %llu MiB: lower -c",
                        mib(e->opts.kv_budget_bytes), e->opts.n_ctx, mib(need->kv));
    }
    return PLY_OK;
}

static int
check_memory(const struct ply_engine *e, const struct need *need, uint64_t available,
             struct ply_err *err)
{
    const uint64_t fixed = need->weights + need->scratch;
    if (fixed + need->ctx <= available)
        return PLY_OK;
    return ply_fail(err, PLY_ENOMEM,
                    "%llu MiB are needed (weights %llu, context of %d tokens %llu, "
                    "buffers %llu) and %llu are available: %s",
                    mib(fixed + need->ctx), mib(need->weights), e->opts.n_ctx, mib(need->ctx),
                    mib(need->scratch), mib(available),
                    fixed < available ? "lower -c" : "lower -c and use a smaller model");
}

/* ---- open ---- */

static int
open_threads(struct ply_engine *e, struct ply_err *err)
{
    e->kern = ply_cpu_kernels(e->opts.isa, err);
    if (!e->kern)
        return PLY_EUNSUPPORTED;
    if (e->opts.n_threads == 0)
        e->opts.n_threads = PLY_MIN(ply_cpu_count(), THREADS_MAX);
    return ply_pool_new(&e->pool, e->opts.n_threads, err);
}

/* Everything large, once it is known to fit. */
static int
open_memory(struct ply_engine *e, struct ply_err *err)
{
    const struct ply_hparams *hp = &e->model->hp;
    const bool full = e->opts.precision == PLY_PRECISION_FULL;
    const uint64_t available = ply_mem_available();
    struct ply_kv_layout layout;
    int rc =
        ply_kv_layout_init(&layout, e->opts.kv_type, hp->n_layer, hp->n_head_kv, hp->d_head, err);
    if (rc != PLY_OK)
        return rc;
    struct ply_forward_opts fo = {.model = e->model,
                                  .weights = &e->weights,
                                  .kern = e->kern,
                                  .kv = &layout,
                                  .pool = e->pool,
                                  .n_ctx = (uint32_t)e->opts.n_ctx};
    struct need need;
    add_up(e, fo, &need);
    rc = check_memory(e, &need, available, err);
    if (rc == PLY_OK)
        rc = choose_budget(e, available, &need, err);
    if (rc == PLY_OK)
        rc = ply_weights_load(&e->weights, e->model, full, e->pool, err);
    if (rc == PLY_OK)
        rc = ply_kv_new(&e->kv, &layout, e->opts.kv_budget_bytes, err);
    if (rc == PLY_OK) {
        fo.kv = ply_kv_layout(e->kv);
        rc = ply_forward_new(&e->forward, &fo, err);
    }
    e->info.weight_bytes = need.weights;
    e->info.scratch_bytes = need.scratch + need.ctx - need.kv;
    e->info.kv_bytes_per_tok = layout.block_bytes / PLY_BLOCK_TOKS;
    return rc;
}

static void
describe(struct ply_engine *e)
{
    const struct ply_weights *w = &e->weights;
    for (size_t i = 0; i < sizeof(w->fingerprint); i++)
        snprintf(e->info.fingerprint + 2 * i, 3, "%02x", w->fingerprint[i]);
    e->info.n_ctx = e->opts.n_ctx;
    e->info.n_threads = e->opts.n_threads;
    e->info.isa = e->kern->isa;

    size_t n = 0;
    if (w->own)
        n += (size_t)snprintf(e->gemm, sizeof(e->gemm), "own int8 (%s)", e->kern->isa);
    if (w->blas)
        snprintf(e->gemm + n, sizeof(e->gemm) - n, "%sOpenBLAS (%s)", n ? ", " : "",
                 ply_blas_core());
    if (w->blas && e->opts.precision == PLY_PRECISION_FULL)
        snprintf(e->exact_why, sizeof(e->exact_why), "--precision full computes through OpenBLAS");
    else if (w->blas)
        snprintf(e->exact_why, sizeof(e->exact_why), "%s is %s, which goes through OpenBLAS",
                 w->blas->name, w->blas->type->name);
    e->info.gemm = e->gemm;
    e->info.exact = !w->blas;
    e->info.exact_why = e->exact_why;
}

int
ply_engine_open(struct ply_engine **out, const char *path, const struct ply_engine_opts *opts,
                struct ply_err *err)
{
    static const struct ply_engine_opts defaults = {.kv_cache = PLY_KV_CACHE_RAM};
    const double t0 = now_ms();
    *out = NULL;
    opts = opts ? opts : &defaults;
    int rc = check_opts(opts, err);
    if (rc != PLY_OK)
        return rc;
    struct ply_engine *e = calloc(1, sizeof(*e));
    if (!e)
        return ply_fail(err, PLY_ENOMEM, "out of memory for an engine");
    e->opts = *opts;
    e->opts.chat_template = NULL; /* the vocab has made of it what it needs */
    const struct ply_vocab_opts vo = {.chat_template = opts->chat_template};
    rc = open_threads(e, err);
    if (rc == PLY_OK)
        rc = ply_vocab_open(&e->vocab, path, &vo, err);
    if (rc == PLY_OK)
        rc = ply_model_load(&e->model, ply_vocab_gguf(e->vocab), err);
    if (rc == PLY_OK) {
        e->info = *ply_vocab_info(e->vocab);
        choose_ctx(e);
        rc = open_memory(e, err);
    }
    if (rc != PLY_OK) {
        ply_engine_close(&e);
        return rc;
    }
    describe(e);
    e->info.load_ms = now_ms() - t0;
    *out = e;
    return PLY_OK;
}

void
ply_engine_close(struct ply_engine **engine)
{
    struct ply_engine *e = *engine;
    if (!e)
        return;
    assert(e->n_seqs == 0);
    ply_forward_free(&e->forward);
    ply_kv_free(&e->kv);
    ply_weights_fini(&e->weights);
    ply_model_free(&e->model);
    ply_vocab_close(&e->vocab);
    ply_pool_free(&e->pool);
    free(e);
    *engine = NULL;
}

/* ---- the rest ---- */

const struct ply_info *
ply_engine_info(const struct ply_engine *e)
{
    return &e->info;
}

const struct ply_vocab *
ply_engine_vocab(const struct ply_engine *e)
{
    return e->vocab;
}

void
ply_engine_cancel(struct ply_engine *e)
{
    atomic_store_explicit(&e->cancel, true, memory_order_relaxed);
}

void
ply_engine_cancel_clear(struct ply_engine *e)
{
    atomic_store_explicit(&e->cancel, false, memory_order_relaxed);
}

void
ply_engine_trace(struct ply_engine *e, ply_trace_fn fn, void *user)
{
    e->trace = fn;
    e->trace_user = user;
}

void
ply_engine_kv_stats(const struct ply_engine *e, struct ply_kv_stats *out)
{
    ply_kv_stats(e->kv, out);
}

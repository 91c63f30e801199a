/* SPDX-License-Identifier: MIT */
#include "engine/weights.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <xxhash.h>

#include "engine/base/num.h"
#include "engine/blas.h"
#include "engine/mem.h"

#define MATS_PER_LAYER 7u
#define PIECE_PANELS 32u /* packed by a thread at a time */

/* A matrix to be packed, and the tensor that it comes from. */
struct job {
    const struct ply_tensor *t;
    struct ply_mat *mat;
    uint8_t *packed;
    uint32_t n_panels;
};

struct load {
    const struct ply_gguf *gguf;
    struct job *jobs;
    uint32_t n_jobs;
    atomic_uint next; /* piece, counted over all jobs */
    uint8_t *fingerprint;
};

/* The tensor and the place of matrix i of a layer. */
static const struct ply_tensor *
layer_mat(const struct ply_layer *L, struct ply_weights_layer *w, uint32_t i, struct ply_mat **mat)
{
    switch (i) {
    case 0: *mat = &w->q; return &L->q;
    case 1: *mat = &w->k; return &L->k;
    case 2: *mat = &w->v; return &L->v;
    case 3: *mat = &w->o; return &L->o;
    case 4: *mat = &w->gate; return &L->gate;
    case 5: *mat = &w->up; return &L->up;
    default: *mat = &w->down; return &L->down;
    }
}

static uint64_t
packed_bytes(const struct ply_tensor *t, bool full)
{
    return full ? 0 : ply_mat_packed_bytes(t);
}

uint64_t
ply_weights_bytes(const struct ply_model *m, bool full)
{
    struct ply_weights_layer w;
    struct ply_mat *mat;
    uint64_t sum = packed_bytes(&m->head, full);
    for (uint32_t l = 0; l < m->hp.n_layer; l++)
        for (uint32_t i = 0; i < MATS_PER_LAYER; i++)
            sum += packed_bytes(layer_mat(&m->layers[l], &w, i, &mat), full);
    return sum;
}

/* Point mat at its source and its place in the packed area; list it if it is to be packed. */
static void
place(struct ply_weights *w, struct load *ld, const struct ply_tensor *t, struct ply_mat *mat,
      bool full, uint64_t *at)
{
    const uint64_t bytes = packed_bytes(t, full);
    *mat = (struct ply_mat){.type = t->type, .n_in = t->n_in, .n_out = t->n_out, .src = t->data};
    if (bytes == 0) {
        if (!w->blas)
            w->blas = t;
        return;
    }
    w->own = true;
    mat->packed = w->mem + *at;
    ld->jobs[ld->n_jobs++] = (struct job){
        .t = t,
        .mat = mat,
        .packed = w->mem + *at,
        .n_panels = (t->n_out + PLY_PANEL - 1) / PLY_PANEL,
    };
    *at += bytes;
}

static void
place_all(struct ply_weights *w, struct load *ld, const struct ply_model *m, bool full)
{
    uint64_t at = 0;
    for (uint32_t l = 0; l < m->hp.n_layer; l++) {
        for (uint32_t i = 0; i < MATS_PER_LAYER; i++) {
            struct ply_mat *mat;
            const struct ply_tensor *t = layer_mat(&m->layers[l], &w->layers[l], i, &mat);
            place(w, ld, t, mat, full, &at);
        }
    }
    place(w, ld, &m->head, &w->head, full, &at);
    if (m->tied)
        w->embd = w->head;
    else
        w->embd = (struct ply_mat){.type = m->embd.type,
                                   .n_in = m->embd.n_in,
                                   .n_out = m->embd.n_out,
                                   .src = m->embd.data};
}

/* Thread 0 hashes the file before it helps to pack: reading it once brings it in for both. */
static void
load_main(void *arg, int ith, int nth)
{
    struct load *ld = arg;
    if (ith == 0) {
        const XXH128_hash_t h = XXH3_128bits(ply_gguf_map(ld->gguf), ply_gguf_file_bytes(ld->gguf));
        XXH128_canonical_t c;
        XXH128_canonicalFromHash(&c, h);
        memcpy(ld->fingerprint, c.digest, sizeof(c.digest));
    }
    uint32_t job = 0, before = 0; /* pieces of the jobs before this one */
    for (;;) {
        const uint32_t piece = atomic_fetch_add(&ld->next, 1);
        uint32_t n = 0;
        while (job < ld->n_jobs) {
            n = (ld->jobs[job].n_panels + PIECE_PANELS - 1) / PIECE_PANELS;
            if (piece - before < n)
                break;
            before += n;
            job++;
        }
        if (job == ld->n_jobs)
            return;
        const struct job *j = &ld->jobs[job];
        const uint32_t p0 = (piece - before) * PIECE_PANELS;
        ply_mat_pack(j->t, j->packed, p0, PLY_MIN(p0 + PIECE_PANELS, j->n_panels));
    }
}

int
ply_weights_load(struct ply_weights *w, const struct ply_model *m, bool full, struct ply_pool *pool,
                 struct ply_err *err)
{
    struct load ld = {.gguf = m->gguf, .fingerprint = w->fingerprint};
    int rc = PLY_OK;
    memset(w, 0, sizeof(*w));
    w->mem_bytes = ply_weights_bytes(m, full);
    w->layers = calloc(m->hp.n_layer, sizeof(*w->layers));
    ld.jobs = calloc(m->hp.n_layer * MATS_PER_LAYER + 1u, sizeof(*ld.jobs));
    if (w->mem_bytes > 0)
        w->mem = ply_mem_map(w->mem_bytes);
    if (!w->layers || !ld.jobs || (w->mem_bytes > 0 && !w->mem))
        rc = ply_fail(err, PLY_ENOMEM, "out of memory for %llu MiB of weights",
                      (unsigned long long)(w->mem_bytes >> 20));
    if (rc == PLY_OK) {
        place_all(w, &ld, m, full);
        if (w->blas)
            rc = ply_blas_load(err);
    }
    if (rc == PLY_OK) {
        ply_pool_run(pool, load_main, &ld);
        /* What is packed is not read from the file again; what is, comes back by itself. */
        madvise((void *)(uintptr_t)ply_gguf_map(m->gguf), ply_gguf_file_bytes(m->gguf),
                MADV_DONTNEED);
    } else {
        ply_weights_fini(w);
    }
    free(ld.jobs);
    return rc;
}

void
ply_weights_fini(struct ply_weights *w)
{
    free(w->layers);
    ply_mem_unmap(w->mem, w->mem_bytes);
    memset(w, 0, sizeof(*w));
}

/* SPDX-License-Identifier: MIT
 * bench_kernels [isa [threads]] - how fast the kernels are, not whether they are right.
 *
 * For every type and number of vectors: multiply-adds a second in 10^9 and, for one vector,
 * weight bytes a second in 10^9. The weights are as many copies of a 1536 x 576 matrix (768 for
 * types of 256 columns) as make 48 MB, which no level-3 cache share keeps; "hot" is one copy
 * again and again. Then attention over a chunk and the small kernels. Best of several rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/err.h"
#include "engine/base/num.h"
#include "engine/cpu.h"
#include "engine/matmul.h"
#include "engine/ply.h"
#include "engine/pool.h"
#include "tests/engine/kernutil.h"

#define N_OUT 1536u
#define M_MAX 64u
#define ROUNDS 5

static double
seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct job {
    const struct ply_kernels *k;
    const struct ply_mat *mats;
    size_t n_mats;
    const struct ply_acts *acts;
    uint32_t m;
    float *out;
};

static void
multiply(void *arg, int ith, int nth)
{
    struct job *j = arg;
    for (size_t i = 0; i < j->n_mats; i++)
        ply_matmul(j->k, &j->mats[i], j->acts, NULL, 0, j->m, j->out, N_OUT, NULL, ith, nth);
}

static double
best_of(struct ply_pool *pool, struct job *j)
{
    double best = 1e9;
    for (int r = 0; r < ROUNDS; r++) {
        const double t = seconds();
        ply_pool_run(pool, multiply, j);
        best = PLY_MIN(best, seconds() - t);
    }
    return best;
}

static void
bench_type(const struct ply_kernels *k, struct ply_pool *pool, int slot, bool a12)
{
    const struct ply_type_traits *type = ply_type_find(slot_type[slot]);
    const uint32_t n_in = type->block == 32 ? 576 : 768;
    struct ply_tensor t = weights_new(type->type, n_in, N_OUT, WEIGHTS_PLAIN);
    const uint64_t bytes = ply_mat_packed_bytes(&t);
    const size_t n_mats = (48u << 20) / bytes;
    uint8_t *packed = packed_new(&t), *all = aligned_alloc(64, n_mats * bytes);
    struct ply_mat *mats = calloc(n_mats, sizeof(*mats));
    float *x = calloc((size_t)M_MAX * n_in, sizeof(*x)),
          *out = calloc((size_t)M_MAX * N_OUT, sizeof(*out));
    for (size_t i = 0; i < n_mats; i++) {
        memcpy(all + i * bytes, packed, bytes);
        mats[i] =
            (struct ply_mat){.type = type, .n_in = n_in, .n_out = N_OUT, .packed = all + i * bytes};
    }
    for (size_t i = 0; i < (size_t)M_MAX * n_in; i++)
        x[i] = rnd_float();
    struct ply_acts acts = acts_new(k, x, n_in, M_MAX, a12);
    struct job j = {.k = k, .mats = mats, .n_mats = n_mats, .acts = &acts, .m = 1, .out = out};
    const double macs = (double)n_in * N_OUT, cold = best_of(pool, &j) / (double)n_mats;
    printf("%-5s %-4s  m=1 %6.1f GMAC/s %5.1f GB/s", type->name, a12 ? "A12" : "A8",
           macs / cold * 1e-9, (double)bytes / cold * 1e-9);
    j.n_mats = 1;
    static const uint32_t ms[] = {1, 2, 4, 8, 16, 64};
    for (size_t i = 0; i < PLY_COUNT(ms); i++) {
        j.m = ms[i];
        printf("%s m=%u %.1f", i ? "" : "  hot:", j.m, macs * j.m / best_of(pool, &j) * 1e-9);
    }
    printf("\n");
    acts_free(&acts);
    free(x);
    free(out);
    free(mats);
    free(all);
    free(packed);
    free((void *)t.data);
}

/* n queries over one full chunk, both halves of attention counted as multiply-adds. */
static void
bench_attn(const struct ply_kernels *k, uint32_t d, size_t n)
{
    static uint8_t kc[PLY_CHUNK * 256 * 2], vc[PLY_CHUNK * 256 * 2];
    static float scratch[2 * PLY_CHUNK * 256] __attribute__((aligned(64)));
    static float qs[192][256], o[192][256], m[192], l[192];
    struct ply_attn_query q[192];
    printf("attn  d=%u n=%-3zu", d, n);
    for (int kv = 0; kv < PLY_KERN_KV_N; kv++) {
        for (size_t i = 0; i < n; i++) {
            for (uint32_t c = 0; c < d; c++)
                qs[i][c] = rnd_float() * 0.1f;
            q[i] = (struct ply_attn_query){qs[i], &m[i], &l[i], o[i], 0, PLY_CHUNK};
        }
        for (uint32_t s = 0; s < PLY_CHUNK; s++) {
            k->k_store[kv](kc, s, qs[s % n], d);
            k->v_store[kv](vc, s, qs[s % n], d);
        }
        double best = 1e9;
        for (int r = 0; r < ROUNDS; r++) {
            const int reps = 1 + (int)(300 / n);
            const double t = seconds();
            for (int i = 0; i < reps; i++)
                k->attn_chunk[kv](kc, vc, d, q, n, scratch);
            best = PLY_MIN(best, (seconds() - t) / reps);
        }
        printf("  %s %.1f GMAC/s", kv ? "q8_0" : "f16",
               2.0 * PLY_CHUNK * d * (double)n / best * 1e-9);
    }
    printf("\n");
}

static void
bench_vec(const struct ply_kernels *k)
{
    static float x[1536], y[1536];
    static const char *const names[] = {"quant_a8",      "rms_norm", "silu_mul",
                                        "gelu_tanh_mul", "exp",      "add"};
    struct ply_acts a = acts_new(k, x, 1536, 1, false);
    for (int i = 0; i < 1536; i++)
        y[i] = rnd_float();
    for (size_t f = 0; f < PLY_COUNT(names); f++) {
        double best = 1e9;
        for (int r = 0; r < ROUNDS; r++) {
            const double t = seconds();
            for (int i = 0; i < 50; i++) {
                memcpy(x, y, sizeof(x)); /* else products dwindle into slow subnormals */
                switch (f) {
                case 0: k->quant_a8(y, 1536, 1, 0, &a); break;
                case 1: k->rms_norm(x, y, y, 1536, 1e-5f); break;
                case 2: k->silu_mul(x, y, 1536); break;
                case 3: k->gelu_tanh_mul(x, y, 1536); break;
                case 4: k->exp(x, y, 1536); break;
                default: k->add(x, y, 1536); break;
                }
            }
            best = PLY_MIN(best, (seconds() - t) / 50);
        }
        printf("%s %.2f ns/element%s", names[f], best / 1536 * 1e9,
               f + 1 < PLY_COUNT(names) ? ", " : "\n");
    }
    acts_free(&a);
}

int
main(int argc, char **argv)
{
    enum ply_isa isa = PLY_ISA_AUTO;
    static const char *const names[] = {"auto", "ref", "avx2", "avxvnni", "avx512"};
    struct ply_err err = {0};
    struct ply_pool *pool;
    for (size_t i = 0; argc > 1 && i < PLY_COUNT(names); i++) {
        if (!strcmp(argv[1], names[i]))
            isa = (enum ply_isa)i;
    }
    const struct ply_kernels *k = ply_cpu_kernels(isa, &err);
    if (!k || ply_pool_new(&pool, argc > 2 ? atoi(argv[2]) : 1, &err)) {
        fprintf(stderr, "bench_kernels: %s\n", err.msg);
        return 2;
    }
    printf("%s, %d threads for the products, one for the rest\n", k->isa, ply_pool_size(pool));
    for (int slot = 0; slot < PLY_MM_SLOTS; slot++)
        bench_type(k, pool, slot, false);
    bench_type(k, pool, ply_mm_slot(PLY_TYPE_Q8_0), true);
    static const uint32_t ds[] = {64, 256};
    static const size_t ns[] = {1, 2, 3, 4, 24, 192};
    for (size_t i = 0; i < PLY_COUNT(ds) * PLY_COUNT(ns); i++)
        bench_attn(k, ds[i / PLY_COUNT(ns)], ns[i % PLY_COUNT(ns)]);
    bench_vec(k);
    ply_pool_free(&pool);
    return 0;
}

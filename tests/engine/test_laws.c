/* SPDX-License-Identifier: MIT
 * The law: logits are a pure function of model, KV type and ids. Whatever way a sequence came to
 * hold its ids (chunks, threads, instruction sets, companions, rollback, forks, edits), its logits
 * and its KV rows are those of a cold run, bit for bit. Cases B58, B47. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "tests/engine/engutil.h"

#define N_IDS 110u /* two blocks, past the tiny gemma3's window of 96 */

static const char *const models[] = {
    "llama-q4_0-bpe-chatml",   "llama-q4_1-bpe-chatml-smol",   "llama-q5_0-bpe-chatml",
    "llama-q5_1-bpe-chatml",   "llama-q8_0-bpe-llama3",        "llama-q4_k-bpe-chatml",
    "llama-q5_k-bpe-chatml",   "llama-q6_k-bpe-chatml",        "llama-q4_1-bpe-chatml-bias",
    "gemma3-q4_k_m-spm-gemma", "gemma3-q8_0-spm-gemma-linear",
};

static const enum ply_kv_type kv_types[] = {PLY_KV_F16, PLY_KV_Q8_0};

struct way {
    enum ply_isa isa;
    int threads;
    size_t chunk;
};

static uint64_t
hash_in(const char *name, enum ply_kv_type kv, const struct way *w)
{
    int32_t ids[N_IDS];
    struct ply_engine *e = open_tiny(
        name, (struct ply_engine_opts){.isa = w->isa, .n_threads = w->threads, .kv_type = kv});
    assert_true(ply_engine_info(e)->exact);
    assert_string_equal(ply_engine_info(e)->exact_why, "");
    fill_ids(e, ids, N_IDS, 11);
    struct ply_seq *s = new_seq(e);
    const uint64_t h = eval_all(s, ids, N_IDS, w->chunk, PLY_HASH_SEED, NULL);
    ply_seq_free(&s);
    ply_engine_close(&e);
    return h;
}

/* One number over all ways to cut, share and compute the work: every instruction set meets every
 * chunk and every number of threads, if not in every combination. */
static void
check_ways(const char *name, enum ply_kv_type kv)
{
    static const size_t chunks[] = {512, 64, 7, 1};
    size_t n_isas;
    const enum ply_isa *isas = runnable_isas(&n_isas);
    uint64_t want = 0;
    for (size_t i = 0; i < n_isas; i++) {
        for (size_t c = 0; c < PLY_COUNT(chunks); c++) {
            const struct way w = {isas[i], 1 + (int)((i + c) % 3), chunks[c]};
            const uint64_t h = hash_in(name, kv, &w);
            want = want ? want : h;
            if (h != want)
                fail_msg("%s, isa %d, %d threads, chunks of %zu: %016" PRIx64 " is not %016" PRIx64,
                         name, (int)w.isa, w.threads, w.chunk, h, want);
        }
    }
}

static void
chunks_threads_and_instruction_sets_change_no_bit(void **unused)
{
    for (size_t m = 0; m < PLY_COUNT(models); m++)
        check_ways(models[m], PLY_KV_F16);
    check_ways("llama-q4_1-bpe-chatml-smol", PLY_KV_Q8_0);
    check_ways("gemma3-q4_k_m-spm-gemma", PLY_KV_Q8_0);
}

/* The same ids beside others: a prefill beside single steps, wanted and unwanted rows mixed. */
static void
check_companions(const char *name, enum ply_kv_type kv)
{
    enum { N_OTHERS = 18 }; /* more than share one pass over the head */
    struct ply_engine *e = open_tiny(name, (struct ply_engine_opts){.n_threads = 2, .kv_type = kv});
    int32_t ids[N_IDS], noise[1 + 7 * N_OTHERS];
    fill_ids(e, ids, N_IDS, 5);
    fill_ids(e, noise, PLY_COUNT(noise), 6);
    const uint64_t want = cold_hash(e, ids, N_IDS);

    struct ply_seq *s = new_seq(e), *others[N_OTHERS];
    float *logits = new_logits(e, N_IDS), *waste = new_logits(e, N_OTHERS + 8);
    for (size_t i = 0; i < N_OTHERS; i++) {
        others[i] = new_seq(e);
        eval_all(others[i], noise, 1 + 7 * i, 64, 0, NULL);
    }
    uint64_t h = PLY_HASH_SEED, state = 1;
    for (size_t at = 0; at < N_IDS;) {
        const size_t wish = 1 + (size_t)(next_random(&state) % 40), n = PLY_MIN(wish, N_IDS - at);
        struct ply_item items[N_OTHERS + 1];
        for (size_t i = 0; i < N_OTHERS; i++)
            items[i] = (struct ply_item){.seq = others[i],
                                         .ids = noise + i,
                                         .n_ids = 1 + i % 2,
                                         .n_want = i % 4 != 3,
                                         .logits = waste + i * n_vocab(e)};
        /* Ours stands in the midst of them. */
        items[N_OTHERS] = items[9];
        items[9] =
            (struct ply_item){.seq = s, .ids = ids + at, .n_ids = n, .n_want = n, .logits = logits};
        assert_int_equal(ply_eval(e, items, N_OTHERS + 1, NULL), PLY_OK);
        h = ply_hash_logits(h, logits, n * n_vocab(e));
        at += n;
    }
    assert_true(h == want);
    for (size_t i = 0; i < N_OTHERS; i++)
        ply_seq_free(&others[i]);
    ply_seq_free(&s);
    free(logits);
    free(waste);
    ply_engine_close(&e);
}

static void
companions_change_no_bit(void **unused)
{
    check_companions("llama-q4_1-bpe-chatml-smol", PLY_KV_F16);
    check_companions("llama-q4_k-bpe-chatml", PLY_KV_Q8_0);
    check_companions("llama-q8_0-bpe-llama3", PLY_KV_F16);
    check_companions("gemma3-q4_k_m-spm-gemma", PLY_KV_F16);
    check_companions("gemma3-q4_k_m-spm-gemma", PLY_KV_Q8_0);
}

/* So many rows against so many chunks that attention's partial results come in waves. */
static void
waves_change_no_bit(void **unused)
{
    enum { N = 1800 };
    static const char *const long_models[] = {"llama-q4_0-bpe-chatml", "gemma3-q4_1-spm-gemma"};
    static int32_t ids[N];
    for (size_t m = 0; m < PLY_COUNT(long_models); m++) {
        struct ply_engine *e =
            open_tiny(long_models[m], (struct ply_engine_opts){.n_threads = 2, .n_ctx = N});
        fill_ids(e, ids, N, 9);
        struct ply_seq *s = new_seq(e);
        const uint64_t h = eval_all(s, ids, N, 48, PLY_HASH_SEED, NULL);
        assert_true(cold_hash(e, ids, N) == h); /* in chunks of 512 */
        ply_seq_free(&s);
        ply_engine_close(&e);
    }
}

/* ---- random scripts ---- */

/* One row of a head's keys or values, gathered from its place in the block (kern.h). */
static size_t
gather_row(const struct ply_kv_layout *l, const uint8_t *area, bool key, uint32_t slot,
           uint8_t *out)
{
    const bool q8 = l->type == PLY_KERN_KV_Q8_0;
    const uint32_t size = q8 ? 1 : 2, d = l->d, lane = slot % PLY_PANEL, panel = slot / PLY_PANEL;
    const uint8_t *scales = area + (size_t)PLY_CHUNK * d;
    size_t n = 0;
    for (uint32_t i = 0; i < d; i++, n += size) {
        const size_t at = key ? ((size_t)panel * d + i) * PLY_PANEL + lane : (size_t)slot * d + i;
        memcpy(out + n, area + at * size, size);
    }
    for (uint32_t g = 0; q8 && g < d / 32; g++, n += 2) {
        const size_t at =
            key ? ((size_t)panel * (d / 32) + g) * PLY_PANEL + lane : (size_t)slot * (d / 32) + g;
        memcpy(out + n, scales + at * 2, 2);
    }
    return n;
}

static void
assert_same_rows(const struct ply_seq *a, const struct ply_seq *b)
{
    const struct ply_kv_layout *l = ply_kv_layout(a->e->kv);
    uint8_t ra[1024], rb[1024];
    assert_true(a->n == b->n && l->d * 2 <= sizeof(ra));
    for (uint32_t pos = 0; pos < a->n; pos++) {
        const struct ply_block *ba = a->blocks[pos / PLY_BLOCK_TOKS],
                               *bb = b->blocks[pos / PLY_BLOCK_TOKS];
        const uint32_t slot = pos % PLY_BLOCK_TOKS;
        for (uint32_t i = 0; i < l->n_layer * l->n_head_kv; i++) {
            const uint32_t layer = i / l->n_head_kv, head = i % l->n_head_kv;
            size_t n = gather_row(l, ply_block_k(l, ba, layer, head), true, slot, ra);
            gather_row(l, ply_block_k(l, bb, layer, head), true, slot, rb);
            assert_memory_equal(ra, rb, n);
            n = gather_row(l, ply_block_v(l, ba, layer, head), false, slot, ra);
            gather_row(l, ply_block_v(l, bb, layer, head), false, slot, rb);
            assert_memory_equal(ra, rb, n);
        }
    }
}

#define N_SEQS 4u
#define LEN_MAX 200u

/* Sequences and what they must hold. */
struct world {
    struct ply_engine *e;
    struct ply_seq *seq[N_SEQS];
    int32_t ids[N_SEQS][LEN_MAX];
    size_t n[N_SEQS];
    float *logits; /* [LEN_MAX][n_vocab] */
    uint64_t random;
};

static size_t
upto(struct world *w, size_t n)
{
    return (size_t)(next_random(&w->random) % n);
}

/* Grow sequence i by up to n ids, in pieces. */
static void
do_append(struct world *w, size_t i, size_t n)
{
    n = PLY_MIN(n, LEN_MAX - w->n[i]);
    int32_t *ids = w->ids[i] + w->n[i];
    fill_ids(w->e, ids, n, next_random(&w->random));
    if (n > 0)
        eval_all(w->seq[i], ids, n, 1 + upto(w, 80), 0, w->logits);
    w->n[i] += n;
}

static void
do_step(struct world *w)
{
    struct ply_seq *seqs[N_SEQS];
    int32_t ids[N_SEQS];
    size_t n = 0;
    for (size_t i = 0; i < N_SEQS; i++) {
        if (w->n[i] == LEN_MAX)
            continue;
        fill_ids(w->e, &ids[n], 1, next_random(&w->random));
        w->ids[i][w->n[i]++] = ids[n];
        seqs[n++] = w->seq[i];
    }
    if (n > 0)
        assert_int_equal(ply_seq_step(seqs, ids, n, NULL), PLY_OK);
}

static void
do_fork(struct world *w, size_t from, size_t to)
{
    if (from == to)
        return;
    ply_seq_free(&w->seq[to]);
    assert_int_equal(ply_seq_fork(w->seq[from], &w->seq[to], NULL), PLY_OK);
    memcpy(w->ids[to], w->ids[from], sizeof(w->ids[to]));
    w->n[to] = w->n[from];
}

/* Change one id, perhaps cut the end off, and ask for exactly that. */
static void
do_edit(struct world *w, size_t i)
{
    struct ply_sync_opts opts = {.chunk = 1 + upto(w, 90)};
    struct ply_sync_report r;
    if (w->n[i] == 0)
        return;
    fill_ids(w->e, &w->ids[i][upto(w, w->n[i])], 1, next_random(&w->random));
    w->n[i] -= upto(w, PLY_MIN(w->n[i], 20));
    assert_int_equal(ply_seq_sync(w->seq[i], w->ids[i], w->n[i], &opts, &r, NULL), PLY_OK);
    assert_int_equal(r.reused_live + r.evaluated, w->n[i]);
}

/* Sequence i's last logits and all its KV rows are a cold run's. */
static void
check_world(struct world *w, size_t i)
{
    struct ply_seq *s = w->seq[i];
    assert_int_equal(ply_seq_len(s), w->n[i]);
    assert_memory_equal(ply_seq_ids(s), w->ids[i], w->n[i] * sizeof(int32_t));
    if (w->n[i] == 0)
        return;
    struct ply_seq *cold = new_seq(w->e);
    assert_int_equal(ply_seq_sync(cold, w->ids[i], w->n[i], NULL, NULL, NULL), PLY_OK);
    assert_same_rows(s, cold);
    assert_int_equal(ply_seq_sync(s, w->ids[i], w->n[i], NULL, NULL, NULL), PLY_OK);
    assert_memory_equal(ply_seq_logits(s), ply_seq_logits(cold), n_vocab(w->e) * sizeof(float));
    ply_seq_free(&cold);
}

static void
run_script(const char *name, enum ply_kv_type kv, size_t n_ops, uint64_t seed)
{
    struct world w = {.random = seed};
    w.e = open_tiny(name, (struct ply_engine_opts){
                              .n_threads = 2, .kv_type = kv, .kv_cache = PLY_KV_CACHE_RAM});
    w.logits = new_logits(w.e, LEN_MAX);
    for (size_t i = 0; i < N_SEQS; i++)
        w.seq[i] = new_seq(w.e);
    for (size_t op = 0; op < n_ops; op++) {
        const size_t i = upto(&w, N_SEQS);
        switch (upto(&w, 6)) {
        case 0: do_append(&w, i, 1 + upto(&w, 3)); break;
        case 1: do_append(&w, i, 1 + upto(&w, 150)); break;
        case 2: do_step(&w); break;
        case 3: do_fork(&w, i, upto(&w, N_SEQS)); break;
        case 4: do_edit(&w, i); break;
        default: w.n[i] = upto(&w, w.n[i] + 1); ply_seq_rollback(w.seq[i], w.n[i]);
        }
        check_world(&w, upto(&w, N_SEQS));
    }
    for (size_t i = 0; i < N_SEQS; i++) {
        check_world(&w, i);
        ply_seq_free(&w.seq[i]);
    }
    struct ply_kv_stats st;
    ply_engine_kv_stats(w.e, &st);
    assert_int_equal(st.n_blocks_live, 0);
    free(w.logits);
    ply_engine_close(&w.e);
}

static void
any_history_equals_a_cold_run(void **unused)
{
    static const char *const few[] = {"llama-q4_k-bpe-chatml", "gemma3-q4_k_m-spm-gemma",
                                      "llama-q4_1-bpe-chatml-smol"};
    for (size_t m = 0; m < PLY_COUNT(few); m++)
        for (size_t k = 0; k < PLY_COUNT(kv_types); k++)
            run_script(few[m], kv_types[k], 40, 100 * m + k + 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_threads_and_instruction_sets_change_no_bit),
        cmocka_unit_test(companions_change_no_bit),
        cmocka_unit_test(waves_change_no_bit),
        cmocka_unit_test(any_history_equals_a_cold_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

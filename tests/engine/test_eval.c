/* SPDX-License-Identifier: MIT
 * ply_eval and ply_engine_open: what they refuse, what they say, and that a failure changes
 * nothing. Cases B53 (too long), B84 (logits that are no numbers), B136 (memory). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/num.h"
#include "tests/engine/engutil.h"

#define LLAMA "llama-q4_k-bpe-chatml"
#define GEMMA "gemma3-q4_k_m-spm-gemma"

static const struct ply_engine_opts plain = {.n_threads = 2};

/* ---- open ---- */

static void
refuse(const char *name, struct ply_engine_opts o, int code, const char *text)
{
    struct ply_err err = {0};
    struct ply_engine *e = (struct ply_engine *)&err; /* must become NULL */
    assert_int_equal(ply_engine_open(&e, tiny_path(name), &o, &err), code);
    assert_null(e);
    assert_int_equal(err.code, code);
    if (!strstr(err.msg, text))
        fail_msg("\"%s\" does not hold \"%s\"", err.msg, text);
}

static void
open_refuses_nonsense_in_words(void **unused)
{
    refuse(LLAMA, (struct ply_engine_opts){.n_ctx = -1}, PLY_EINVAL, "-c -1: ");
    refuse(LLAMA, (struct ply_engine_opts){.n_ctx = INT32_MAX}, PLY_EINVAL, "1048576 tokens");
    refuse(LLAMA, (struct ply_engine_opts){.n_threads = -2}, PLY_EINVAL, "-t -2: ");
    refuse(LLAMA, (struct ply_engine_opts){.n_threads = 100000}, PLY_EINVAL, "256 threads");
    refuse(LLAMA, (struct ply_engine_opts){.isa = PLY_ISA_AVXVNNI}, PLY_EUNSUPPORTED, "ref");
    refuse(LLAMA, (struct ply_engine_opts){.n_ctx = 1024, .kv_budget_bytes = 4096}, PLY_EINVAL,
           "a context of 1024 tokens");
    refuse("no-such-model", plain, PLY_ENOENT, "no-such-model");
}

static void
open_says_what_runs(void **unused)
{
    struct ply_engine *e =
        open_tiny(GEMMA, (struct ply_engine_opts){.isa = PLY_ISA_REF, .n_threads = 1});
    const struct ply_info *i = ply_engine_info(e);
    assert_string_equal(i->isa, "ref");
    assert_string_equal(i->gemm, "own int8 (ref)");
    assert_true(i->exact);
    assert_string_equal(i->exact_why, "");
    assert_int_equal(i->n_threads, 1);
    assert_int_equal(i->n_ctx, 1024); /* the model's own: less than the default of 8192 */
    assert_int_equal(i->window, 96);
    /* 7 layers, one head of 128, keys and values, two bytes each */
    assert_int_equal(i->kv_bytes_per_tok, 7 * 128 * 2 * 2);
    assert_int_equal(strlen(i->fingerprint), 32);
    assert_true(i->weight_bytes > 0 && i->scratch_bytes > 0 && i->load_ms > 0);
    assert_non_null(ply_engine_vocab(e));
    ply_engine_close(&e);
    assert_null(e);

    e = open_tiny(GEMMA, (struct ply_engine_opts){.kv_type = PLY_KV_Q8_0, .n_ctx = 77});
    assert_int_equal(ply_engine_info(e)->n_ctx, 77);
    assert_int_equal(ply_engine_info(e)->kv_bytes_per_tok, 7 * (128 + 128 / 32 * 2) * 2);
    ply_engine_close(&e);
}

static void
open_says_when_it_is_not_exact(void **unused)
{
    struct ply_engine *e = open_tiny("llama-f16-bpe-chatml", plain);
    assert_false(ply_engine_info(e)->exact);
    assert_string_equal(ply_engine_info(e)->exact_why,
                        "blk.0.attn_q.weight is F16, which goes through OpenBLAS");
    assert_memory_equal(ply_engine_info(e)->gemm, "OpenBLAS (", 10);
    ply_engine_close(&e);

    e = open_tiny("llama-q4_k-bpe-chatml-untied", plain);
    assert_false(ply_engine_info(e)->exact);
    assert_string_equal(ply_engine_info(e)->exact_why,
                        "output.weight is F16, which goes through OpenBLAS");
    assert_non_null(strstr(ply_engine_info(e)->gemm, "own int8 ("));
    assert_non_null(strstr(ply_engine_info(e)->gemm, ", OpenBLAS ("));
    ply_engine_close(&e);

    e = open_tiny(LLAMA, (struct ply_engine_opts){.precision = PLY_PRECISION_FULL});
    assert_false(ply_engine_info(e)->exact);
    assert_string_equal(ply_engine_info(e)->exact_why,
                        "--precision full computes through OpenBLAS");
    ply_engine_close(&e);
}

static void
fingerprint_is_the_files_content(void **unused)
{
    struct ply_engine *a = open_tiny(LLAMA, plain), *b = open_tiny(GEMMA, plain);
    struct ply_engine *c = open_tiny(LLAMA, (struct ply_engine_opts){.n_threads = 1, .n_ctx = 64});
    assert_string_equal(ply_engine_info(a)->fingerprint, ply_engine_info(c)->fingerprint);
    assert_string_not_equal(ply_engine_info(a)->fingerprint, ply_engine_info(b)->fingerprint);
    ply_engine_close(&a);
    ply_engine_close(&b);
    ply_engine_close(&c);
}

/* B136: in a process that may have little more memory than it has. */
static void
open_says_how_much_memory_is_missing(void **unused)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* a sanitizer's shadow is address space too */
#else
    static const char *const words[] = {" MiB are needed (", "context of 1000000 tokens",
                                        "available: lower -c"};
    const char *path = tiny_path(GEMMA);
    const pid_t pid = fork();
    if (pid == 0) {
        struct ply_err err = {0};
        struct ply_engine *e;
        const struct ply_engine_opts o = {.n_ctx = 1000000, .n_threads = 1};
        setrlimit(RLIMIT_AS, &(struct rlimit){400u << 20, 400u << 20});
        bool ok = ply_engine_open(&e, path, &o, &err) == PLY_ENOMEM && !e;
        for (size_t i = 0; i < PLY_COUNT(words); i++)
            ok = ok && strstr(err.msg, words[i]);
        if (!ok)
            print_message("# %s\n", err.msg);
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
#endif
}

/* ---- eval ---- */

struct fixture {
    struct ply_engine *e;
    struct ply_seq *s;
    float *logits;
    int32_t ids[PLY_EVAL_TOKS_MAX + 1];
    struct ply_item item;
};

static struct fixture *
setup(const char *name, struct ply_engine_opts o)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->e = open_tiny(name, o);
    f->s = new_seq(f->e);
    f->logits = new_logits(f->e, PLY_EVAL_TOKS_MAX);
    fill_ids(f->e, f->ids, PLY_COUNT(f->ids), 3);
    f->item =
        (struct ply_item){.seq = f->s, .ids = f->ids, .n_ids = 4, .n_want = 1, .logits = f->logits};
    return f;
}

static void
teardown(struct fixture *f)
{
    ply_seq_free(&f->s);
    free(f->logits);
    ply_engine_close(&f->e);
    free(f);
}

/* The item fails with that code, and leaves the sequence of `len` ids as it was. */
static void
fails(struct fixture *f, struct ply_item item, int code, const char *text)
{
    struct ply_err err = {0};
    const size_t len = ply_seq_len(f->s);
    struct ply_kv_stats before, after;
    ply_engine_kv_stats(f->e, &before);
    assert_int_equal(ply_eval(f->e, &item, 1, &err), code);
    assert_int_equal(err.code, code);
    if (!strstr(err.msg, text))
        fail_msg("\"%s\" does not hold \"%s\"", err.msg, text);
    assert_int_equal(ply_seq_len(f->s), len);
    assert_memory_equal(ply_seq_ids(f->s), f->ids, len * sizeof(int32_t));
    ply_engine_kv_stats(f->e, &after);
    assert_int_equal(after.n_blocks_live, before.n_blocks_live);
}

static void
eval_refuses_nonsense(void **unused)
{
    struct fixture *f = setup(LLAMA, plain);
    struct ply_item bad = f->item;
    int32_t id[1] = {-1};
    assert_int_equal(ply_eval(f->e, &f->item, 1, NULL), PLY_OK);

    bad.n_ids = 0;
    fails(f, bad, PLY_EINVAL, "at least one");
    bad.n_ids = PLY_EVAL_TOKS_MAX + 1;
    fails(f, bad, PLY_EINVAL, "512");
    bad = f->item;
    bad.n_want = 5;
    fails(f, bad, PLY_EINVAL, "5 of 4");
    bad = f->item;
    bad.logits = NULL;
    fails(f, bad, PLY_EINVAL, "wanted");
    bad = (struct ply_item){.seq = f->s, .ids = id, .n_ids = 1};
    fails(f, bad, PLY_EINVAL, "id -1 ");
    id[0] = (int32_t)n_vocab(f->e);
    fails(f, bad, PLY_EINVAL, "vocabulary");

    struct ply_item twice[2] = {f->item, f->item};
    assert_int_equal(ply_eval(f->e, twice, 2, NULL), PLY_EINVAL);
    assert_int_equal(ply_eval(f->e, twice, 0, NULL), PLY_EINVAL);
    struct ply_engine *other = open_tiny(GEMMA, plain);
    assert_int_equal(ply_eval(other, &f->item, 1, NULL), PLY_EINVAL);
    ply_engine_close(&other);
    assert_int_equal(ply_seq_len(f->s), 4);
    teardown(f);
}

/* B53: with room for 64, for 1 and for 8. */
static void
eval_says_how_much_is_too_much(void **unused)
{
    struct fixture *f = setup(LLAMA, (struct ply_engine_opts){.n_ctx = 64});
    struct ply_item item = f->item;
    item.n_ids = 65;
    fails(f, item, PLY_EFULL, "too long: 65 tokens, room for 64 (-c)");
    item.n_ids = 64;
    assert_int_equal(ply_eval(f->e, &item, 1, NULL), PLY_OK);
    item.n_ids = 1;
    fails(f, item, PLY_EFULL, "too long: 65 tokens, room for 64 (-c)");
    /* One sequence that is full stops the batch before anything is computed. */
    struct ply_seq *s = new_seq(f->e);
    struct ply_item both[2] = {item, item};
    both[0].seq = s;
    assert_int_equal(ply_eval(f->e, both, 2, NULL), PLY_EFULL);
    assert_int_equal(ply_seq_len(s), 0);
    ply_seq_free(&s);
    teardown(f);

    f = setup(LLAMA, (struct ply_engine_opts){.n_ctx = 1});
    fails(f, f->item, PLY_EFULL, "too long: 4 tokens, room for 1 (-c)");
    f->item.n_ids = 1;
    assert_int_equal(ply_eval(f->e, &f->item, 1, NULL), PLY_OK);
    teardown(f);

    f = setup(GEMMA, (struct ply_engine_opts){.n_ctx = 8});
    f->item.n_ids = 9;
    fails(f, f->item, PLY_EFULL, "too long: 9 tokens, room for 8 (-c)");
    f->item.n_ids = 8;
    assert_int_equal(ply_eval(f->e, &f->item, 1, NULL), PLY_OK);
    teardown(f);
}

/* Logits of the last k are those of all, and of the last k only. */
static void
eval_gives_the_logits_that_are_wanted(void **unused)
{
    static const size_t wants[] = {0, 1, 2, 63, 70};
    struct fixture *f = setup(GEMMA, plain);
    float *all = new_logits(f->e, 70);
    eval_all(f->s, f->ids, 70, 70, 0, all);
    for (size_t i = 0; i < PLY_COUNT(wants); i++) {
        const size_t n = wants[i] * n_vocab(f->e);
        struct ply_seq *s = new_seq(f->e);
        struct ply_item item = {
            .seq = s, .ids = f->ids, .n_ids = 70, .n_want = wants[i], .logits = f->logits};
        f->logits[n] = 12345;
        assert_int_equal(ply_eval(f->e, &item, 1, NULL), PLY_OK);
        assert_memory_equal(f->logits, all + 70 * n_vocab(f->e) - n, n * sizeof(float));
        assert_true(f->logits[n] == 12345);
        ply_seq_free(&s);
    }
    free(all);
    teardown(f);
}

static void
eval_stops_when_cancelled(void **unused)
{
    struct fixture *f = setup(LLAMA, plain);
    struct ply_item item = f->item;
    assert_int_equal(ply_eval(f->e, &item, 1, NULL), PLY_OK);
    item.ids = f->ids + 4;
    item.n_ids = 100;
    ply_engine_cancel(f->e); /* early: not lost */
    fails(f, item, PLY_ECANCELLED, "stopped");
    fails(f, item, PLY_ECANCELLED, "stopped");
    ply_engine_cancel_clear(f->e);
    assert_int_equal(ply_eval(f->e, &item, 1, NULL), PLY_OK);

    struct ply_seq *cold = new_seq(f->e);
    float *want = new_logits(f->e, 104);
    eval_all(cold, f->ids, 104, 512, 0, want);
    assert_memory_equal(f->logits, want + 103 * n_vocab(f->e), n_vocab(f->e) * sizeof(float));
    ply_seq_free(&cold);
    free(want);
    teardown(f);
}

/* B84: a NaN is an error where it is wanted, and only there. */
static void
eval_refuses_logits_that_are_no_numbers(void **unused)
{
    struct fixture *f = setup("llama-q8_0-bpe-chatml-nan", plain);
    fails(f, f->item, PLY_ENUMERIC, "not a number");
    f->item.n_want = 0;
    assert_int_equal(ply_eval(f->e, &f->item, 1, NULL), PLY_OK);
    assert_int_equal(ply_seq_len(f->s), 4);
    teardown(f);
}

/* The tiny model's logits are NaN once id 100 was fed. Its keys and values then stand in the block,
 * and after rollback they must never be read: not those to be overwritten, nor those behind. */
static void
rows_beyond_the_length_are_never_read(void **unused)
{
    struct fixture *f = setup("llama-q8_0-bpe-chatml-nan100", plain);
    for (size_t i = 0; i < PLY_COUNT(f->ids); i++)
        f->ids[i] += f->ids[i] == 100;
    int32_t with_nan[50];
    memcpy(with_nan, f->ids, sizeof(with_nan));
    for (size_t i = 10; i < PLY_COUNT(with_nan); i++)
        with_nan[i] = 100;

    struct ply_item item = f->item;
    item.ids = with_nan;
    item.n_ids = 50;
    item.n_want = 0;
    assert_int_equal(ply_eval(f->e, &item, 1, NULL), PLY_OK);
    ply_seq_rollback(f->s, 10);
    const uint64_t h = eval_all(f->s, f->ids + 10, 20, 3, 0, NULL);

    struct ply_seq *cold = new_seq(f->e);
    eval_all(cold, f->ids, 10, 512, 0, NULL);
    assert_true(eval_all(cold, f->ids + 10, 20, 20, 0, NULL) == h);
    ply_seq_free(&cold);

    /* And as the next id, wanted: an error, after which the sequence goes on. */
    item.ids = with_nan + 49;
    item.n_ids = item.n_want = 1;
    fails(f, item, PLY_ENUMERIC, "not a number");
    item.ids = f->ids + 30;
    assert_int_equal(ply_eval(f->e, &item, 1, NULL), PLY_OK);
    teardown(f);
}

/* The budget holds one context; a second sequence that needs a block more finds none. */
static void
eval_stays_within_the_budget(void **unused)
{
    const uint64_t block = 64u * 1024; /* 2 layers * 2 heads * 64 * 2 * 2 bytes, 64 tokens */
    struct fixture *f =
        setup(LLAMA, (struct ply_engine_opts){.n_ctx = 128, .kv_budget_bytes = 2 * block});
    struct ply_kv_stats st;
    struct ply_item item = f->item;
    item.n_ids = 100;
    assert_int_equal(ply_eval(f->e, &item, 1, NULL), PLY_OK);
    ply_engine_kv_stats(f->e, &st);
    assert_int_equal(st.bytes_budget, 2 * block);
    assert_int_equal(st.bytes_used, 2 * block);
    assert_int_equal(st.n_blocks_live, 2);

    struct ply_seq *more = new_seq(f->e);
    item.seq = more;
    struct ply_err err = {0};
    assert_int_equal(ply_eval(f->e, &item, 1, &err), PLY_ENOMEM);
    assert_non_null(strstr(err.msg, "KV budget"));
    assert_int_equal(ply_seq_len(more), 0);
    ply_seq_rollback(f->s, 64);
    item.n_ids = 64;
    assert_int_equal(ply_eval(f->e, &item, 1, NULL), PLY_OK);
    ply_seq_free(&more);
    ply_engine_kv_stats(f->e, &st);
    assert_int_equal(st.n_blocks_live, 1);
    teardown(f);
}

static void
hash_counts_every_nan_as_one(void **unused)
{
    /* FNV-1a 64 of the bytes of 1.0f, by hand: 00 00 80 3f */
    const float one = 1;
    uint64_t want = PLY_HASH_SEED;
    static const uint8_t bytes[] = {0x00, 0x00, 0x80, 0x3f};
    for (size_t i = 0; i < sizeof(bytes); i++)
        want = (want ^ bytes[i]) * 0x100000001b3ull;
    assert_true(ply_hash_logits(PLY_HASH_SEED, &one, 1) == want);
    const uint32_t nans[] = {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu};
    float f[4];
    memcpy(f, nans, sizeof(f));
    for (size_t i = 1; i < PLY_COUNT(nans); i++)
        assert_true(ply_hash_logits(PLY_HASH_SEED, f, 1) ==
                    ply_hash_logits(PLY_HASH_SEED, f + i, 1));
}

static void
isa_names(void **unused)
{
    enum ply_isa isa;
    assert_true(ply_isa_parse("ref", &isa) && isa == PLY_ISA_REF);
    assert_true(ply_isa_parse("avx2", &isa) && isa == PLY_ISA_AVX2);
    assert_true(ply_isa_parse("avxvnni", &isa) && isa == PLY_ISA_AVXVNNI);
    assert_true(ply_isa_parse("avx512", &isa) && isa == PLY_ISA_AVX512);
    assert_false(ply_isa_parse("AVX2", &isa) || ply_isa_parse("", &isa) ||
                 ply_isa_parse("sse", &isa));
    assert_true(ply_isa_available(PLY_ISA_REF, NULL));
    assert_true(ply_isa_available(PLY_ISA_AUTO, NULL));
    struct ply_err err = {0};
    assert_false(ply_isa_available(PLY_ISA_AVXVNNI, &err));
    assert_true(err.msg[0] != '\0');
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_refuses_nonsense_in_words),
        cmocka_unit_test(open_says_what_runs),
        cmocka_unit_test(open_says_when_it_is_not_exact),
        cmocka_unit_test(fingerprint_is_the_files_content),
        cmocka_unit_test(open_says_how_much_memory_is_missing),
        cmocka_unit_test(eval_refuses_nonsense),
        cmocka_unit_test(eval_says_how_much_is_too_much),
        cmocka_unit_test(eval_gives_the_logits_that_are_wanted),
        cmocka_unit_test(eval_stops_when_cancelled),
        cmocka_unit_test(eval_refuses_logits_that_are_no_numbers),
        cmocka_unit_test(rows_beyond_the_length_are_never_read),
        cmocka_unit_test(eval_stays_within_the_budget),
        cmocka_unit_test(hash_counts_every_nan_as_one),
        cmocka_unit_test(isa_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

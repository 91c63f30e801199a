/* SPDX-License-Identifier: MIT
 * The vocab as a whole: metadata, errors, damaged files, several threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>

#include "engine/base/num.h"
#include "engine/vocab.h"
#include "tests/tok/tokutil.h"

/* ---- failing allocations (the linker wraps malloc and its kin) -------------------------- */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static long fail_after = -1; /* this many succeed, then one fails; -1: none does */

static bool
fails(void)
{
    return fail_after >= 0 && fail_after-- == 0;
}

void *
__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *
__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

/* ---- metadata -------------------------------------------------------------------------- */

static struct ply_vocab *
open_tiny_model(const char *name)
{
    char path[4096];
    struct ply_vocab *v = NULL;
    struct ply_err err = {0};
    snprintf(path, sizeof(path), "%s/%s.gguf", getenv("PLY_TEST_MODELS"), name);
    if (ply_vocab_open(&v, path, NULL, &err) != PLY_OK)
        fail_msg("%s", err.msg);
    return v;
}

static void
info_says_what_the_file_says(void **state)
{
    struct ply_vocab *v = open_tiny_model("llama-q4_1-bpe-chatml-smol");
    const struct ply_info *i = ply_vocab_info(v);
    assert_string_equal(i->arch, "llama");
    assert_string_equal(i->quant, "Q4_1, head Q8_0");
    assert_string_equal(i->tokenizer, "byte-level BPE (smollm)");
    assert_string_equal(i->chat_template, "chatml");
    assert_false(i->base_model);
    assert_int_equal(i->n_layer, 2);
    assert_true(i->n_params > 0 && i->file_bytes > 0 && i->n_vocab > 256 && i->n_ctx_train > 0);
    assert_true(i->n_embd > 0 && i->n_head >= i->n_head_kv && i->n_head_kv > 0 && i->n_ff > 0);
    assert_int_equal(i->window, 0);
    assert_string_equal(i->fingerprint, "");
    assert_non_null(strstr(i->path, "llama-q4_1-bpe-chatml-smol.gguf"));
    ply_vocab_close(&v);
    v = open_tiny_model("gemma3-q8_0-spm-gemma");
    i = ply_vocab_info(v);
    assert_string_equal(i->arch, "gemma3");
    assert_string_equal(i->quant, "Q8_0");
    assert_string_equal(i->tokenizer, "sentencepiece");
    assert_true(i->window > 0);
    ply_vocab_close(&v);
    assert_null(v);
    ply_vocab_close(&v);
}

/* B92: no text of the file can steer a terminal; what is missing is "", never NULL. */
static void
texts_are_clean(void **state)
{
    static const char evil[] = "\x1b]0;own\x07\x1b[31mred 100% %s %n\xc2\x9b"
                               "2J\xff\xe2\x80\xa8 ok\n";
    static const char clean[] = "?]0;own??[31mred 100% %s %n?2J?? ok?";
    struct ggufw w;
    ggufw_init(&w);
    mkvocab_write(&w, &(struct mkvocab_opts){.chat = "chatml"});
    ggufw_str(&w, "general.name", evil);
    ggufw_str(&w, "general.architecture", evil);
    ggufw_str(&w, "general.license", evil);
    ggufw_arr(&w, "general.languages", PLY_GGUF_STR, 2);
    ggufw_put_str(&w.kv, "en", 2);
    ggufw_put_str(&w.kv, evil, sizeof(evil) - 1);
    struct ply_vocab *v = tok_must_open(&w, NULL);
    const struct ply_info *i = ply_vocab_info(v);
    assert_string_equal(i->name, clean);
    assert_string_equal(i->arch, clean);
    assert_string_equal(i->licence, clean);
    assert_string_equal(i->languages, "en, ?]0;own??[31mred 100% %s %n?2J?? ok?");
    assert_string_equal(i->isa, "");
    assert_string_equal(i->gemm, "");
    assert_string_equal(i->exact_why, "");
    assert_string_equal(i->quant, "");
    ply_vocab_close(&v);
}

static void
a_file_that_says_nothing(void **state)
{
    struct ggufw w;
    ggufw_init(&w);
    mkvocab_write(&w, &(struct mkvocab_opts){.chat = "none", .spm = true});
    struct ply_vocab *v = tok_must_open(&w, NULL);
    const struct ply_info *i = ply_vocab_info(v);
    assert_non_null(strstr(i->path, i->name)); /* the file's name stands for one */
    assert_string_equal(i->arch, "");
    assert_string_equal(i->licence, "");
    assert_string_equal(i->languages, "");
    assert_int_equal(i->n_layer, 0);
    ply_vocab_close(&v);
}

/* Any architecture is accepted, and what it says in its own way does no harm. */
static void
strange_architectures_are_accepted(void **state)
{
    struct ggufw w;
    ggufw_init(&w);
    ggufw_str(&w, "general.architecture", "mamba9");
    ggufw_str(&w, "mamba9.block_count", "many");
    ggufw_arr(&w, "mamba9.attention.head_count", PLY_GGUF_U32, 2);
    ggufw_put_int(&w.kv, 1, 4);
    ggufw_put_int(&w.kv, 2, 4);
    ggufw_int(&w, "mamba9.context_length", PLY_GGUF_U64, UINT64_MAX);
    ggufw_int(&w, "mamba9.embedding_length", PLY_GGUF_U64, 640);
    ggufw_u32(&w, "general.languages", 3);
    mkvocab_write(&w, &(struct mkvocab_opts){.chat = "chatml"});
    struct ply_vocab *v = tok_must_open(&w, NULL);
    const struct ply_info *i = ply_vocab_info(v);
    assert_int_equal(i->n_layer, 0);
    assert_int_equal(i->n_head, 0);
    assert_int_equal(i->n_ctx_train, 0);
    assert_int_equal(i->n_embd, 640);
    assert_string_equal(i->languages, "");
    ply_vocab_close(&v);
}

/* ---- errors ---------------------------------------------------------------------------- */

static void
refused(struct ggufw *w, int code, const char *says)
{
    struct ply_vocab *v = NULL;
    struct ply_err err = {0};
    const int rc = tok_open(w, NULL, &v, &err);
    ggufw_fini(w);
    if (rc != code || v != NULL || !strstr(err.msg, says))
        fail_msg("code %d, \"%s\"; expected %d, \"%s\"", rc, err.msg, code, says);
}

static void
with_pre(struct ggufw *w, const char *model, const char *pre)
{
    static const char *const merges[] = {"a b", NULL};
    struct tok_piece piece[256];
    ggufw_init(w);
    tok_write(w, model, pre, piece, tok_byte_pieces(piece), merges, -1);
}

/* B15: a pre-tokenizer that is not known, or not named, is never replaced by another. */
static void
unknown_pre_tokenizers_are_refused(void **state)
{
    struct ggufw w;
    with_pre(&w, "gpt2", "smolxx");
    refused(&w, PLY_EUNSUPPORTED, "\"smolxx\"; supported are smollm");
    with_pre(&w, "gpt2", NULL);
    refused(&w, PLY_EUNSUPPORTED, "names no pre-tokenizer");
    with_pre(&w, "gpt2", "");
    refused(&w, PLY_EUNSUPPORTED, "unknown pre-tokenizer");
    with_pre(&w, "gpt2", "a\x1b[2Jb");
    refused(&w, PLY_EUNSUPPORTED, "\"a?[2Jb\"");
    with_pre(&w, "bert", "default");
    refused(&w, PLY_EUNSUPPORTED, "\"bert\"; supported are llama");
}

static void
broken_vocabularies_are_refused(void **state)
{
    struct tok_piece piece[300];
    struct ggufw w;
    static const char *const no_gap[] = {"a b", "ab", NULL}, *const empty_side[] = {" ab", NULL};
    const uint32_t n = tok_byte_pieces(piece);

    ggufw_init(&w);
    tok_write(&w, "gpt2", "gpt-2", piece, n, no_gap, -1);
    refused(&w, PLY_EFORMAT, "number 1 is not two pieces");
    ggufw_init(&w);
    tok_write(&w, "gpt2", "gpt-2", piece, n, empty_side, -1);
    refused(&w, PLY_EFORMAT, "number 0 is not two pieces");
    ggufw_init(&w);
    tok_write(&w, "gpt2", "gpt-2", piece, n, NULL, -1); /* scores instead */
    refused(&w, PLY_EFORMAT, "no merges");
    piece[7].attr = 9;
    ggufw_init(&w);
    tok_write(&w, "gpt2", "gpt-2", piece, n, empty_side, -1);
    refused(&w, PLY_EFORMAT, "type of piece 7");
    piece[7].attr = 0;

    ggufw_init(&w);
    ggufw_str(&w, "tokenizer.ggml.model", "llama");
    ggufw_arr(&w, "tokenizer.ggml.tokens", PLY_GGUF_STR, 0);
    refused(&w, PLY_EFORMAT, "not a list of pieces");
    ggufw_init(&w);
    ggufw_str(&w, "tokenizer.ggml.model", "llama");
    ggufw_arr(&w, "tokenizer.ggml.tokens", PLY_GGUF_STR, 1);
    ggufw_put_str(&w.kv, "a", 1);
    refused(&w, PLY_EFORMAT, "no scores");
    ggufw_init(&w);
    ggufw_arr(&w, "tokenizer.ggml.tokens", PLY_GGUF_STR, 1);
    ggufw_put_str(&w.kv, "a", 1);
    refused(&w, PLY_EFORMAT, "names no tokenizer");
    ggufw_init(&w);
    ggufw_str(&w, "general.architecture", "llama");
    refused(&w, PLY_EFORMAT, "no vocabulary");

    const struct tok_piece nan_score[] = {{.text = "<unk>", .attr = PLY_TOK_UNKNOWN},
                                          {.text = "a", .score = __builtin_nanf("")}};
    ggufw_init(&w);
    tok_write(&w, "llama", NULL, nan_score, 2, NULL, 0);
    refused(&w, PLY_EFORMAT, "score of piece 1");
    ggufw_init(&w);
    ggufw_arr(&w, "tokenizer.ggml.token_type", PLY_GGUF_I32, 1);
    ggufw_put_int(&w.kv, 1, 4);
    ggufw_str(&w, "tokenizer.ggml.model", "llama");
    ggufw_arr(&w, "tokenizer.ggml.tokens", PLY_GGUF_STR, 2);
    ggufw_put_str(&w.kv, "a", 1);
    ggufw_put_str(&w.kv, "b", 1);
    refused(&w, PLY_EFORMAT, "1 elements for 2 pieces");
}

static void
missing_files(void **state)
{
    struct ply_vocab *v = (void *)&v;
    struct ply_err err = {0};
    assert_int_equal(ply_vocab_open(&v, "/nonexistent/m.gguf", NULL, &err), PLY_ENOENT);
    assert_null(v);
    assert_non_null(strstr(err.msg, "/nonexistent/m.gguf"));
}

/* Any byte of a vocabulary changed, any length cut: opened or refused, and used without harm. */
static void
damaged_files(void **state)
{
    static const struct mkvocab_opts kinds[] = {{.chat = "chatml"}, {.chat = "gemma", .spm = true}};
    char *path = tok_tmp_path();
    uint64_t seed = 4;
    for (size_t k = 0; k < PLY_COUNT(kinds); k++) {
        struct ggufw w;
        struct ply_buf file = {0};
        ggufw_init(&w);
        mkvocab_write(&w, &kinds[k]);
        ggufw_finish(&w, &file);
        for (int round = 0; round < 400; round++) {
            struct ply_buf copy = {0};
            struct ply_vocab *v = NULL;
            const size_t n = round % 8 ? file.n : tok_random(&seed) % file.n;
            ply_buf_append(&copy, file.v, n);
            for (int c = 0; n > 0 && c < 1 + round % 5; c++)
                copy.v[tok_random(&seed) % n] = (char)tok_random(&seed);
            assert_int_equal(ggufw_save(&copy, path), 0);
            if (ply_vocab_open(&v, path, NULL, NULL) == PLY_OK) {
                struct ply_ids ids = {0};
                struct ply_buf text = {0};
                const struct ply_msg m = {PLY_ROLE_USER, "Hello the \xff", 11, NULL, 0};
                ply_chat_render(v, &m, 1, PLY_CHAT_OPEN_REPLY, &ids, NULL);
                for (size_t i = 0; i < ids.n; i++)
                    assert_true(ids.v[i] >= 0 && ids.v[i] < ply_vocab_info(v)->n_vocab);
                ply_decode(v, ids.v, ids.n, &text, NULL);
                ply_ids_fini(&ids);
                ply_buf_fini(&text);
            }
            ply_vocab_close(&v);
            ply_buf_fini(&copy);
        }
        ggufw_fini(&w);
        ply_buf_fini(&file);
    }
    unlink(path);
    free(path);
}

/* Every allocation of opening, encoding, rendering and decoding fails once: an error, nothing
 * lost (ASan watches), and what was there before stays. */
static void
failing_allocations(void **state)
{
    static const struct mkvocab_opts kinds[] = {{.chat = "chatml", .gaps = true},
                                                {.chat = "gemma", .spm = true},
                                                {.chat = "none", .spm = true}};
    static char text[5000];
    char *path = tok_tmp_path();
    memset(text, 'q', sizeof(text));
    memcpy(text, "Hello \xff\x04 the", 12);
    for (size_t k = 0; k < PLY_COUNT(kinds); k++) {
        struct ggufw w;
        struct ply_buf file = {0};
        ggufw_init(&w);
        mkvocab_write(&w, &kinds[k]);
        ggufw_finish(&w, &file);
        assert_int_equal(ggufw_save(&file, path), 0);
        long n_open = 0;
        bool done = false;
        for (; !done; n_open++) {
            struct ply_vocab *v = NULL;
            struct ply_err err = {0};
            fail_after = n_open;
            const int rc = ply_vocab_open(&v, path, NULL, &err);
            done = fail_after >= 0;
            fail_after = -1;
            assert_true(rc == (v ? PLY_OK : PLY_ENOMEM));
            assert_true(done ? rc == PLY_OK : rc == PLY_ENOMEM);
            ply_vocab_close(&v);
        }
        assert_true(n_open > 10);
        struct ply_vocab *v = NULL;
        assert_int_equal(ply_vocab_open(&v, path, NULL, NULL), PLY_OK);
        const struct ply_msg m = {PLY_ROLE_USER, text, sizeof(text), NULL, 0};
        done = false;
        for (long n = 0; !done; n++) {
            struct ply_ids ids = {0};
            struct ply_buf out = {0};
            int rc;
            ply_ids_push(&ids, 7);
            fail_after = n;
            rc = ply_encode(v, text, sizeof(text), &ids, NULL);
            if (rc != PLY_OK)
                assert_true(rc == PLY_ENOMEM && ids.n == 1 && ids.v[0] == 7);
            ids.n = 1;
            rc = ply_chat_render(v, &m, 1, PLY_CHAT_OPEN_REPLY, &ids, NULL);
            if (rc != PLY_OK)
                assert_true(rc == PLY_ENOMEM && ids.n == 1 && ids.v[0] == 7);
            rc = ply_decode(v, ids.v, ids.n, &out, NULL);
            done = fail_after >= 0;
            fail_after = -1;
            assert_true(rc == PLY_OK || rc == PLY_ENOMEM);
            ply_ids_fini(&ids);
            ply_buf_fini(&out);
        }
        ply_vocab_close(&v);
        ggufw_fini(&w);
        ply_buf_fini(&file);
    }
    unlink(path);
    free(path);
}

/* ---- use ------------------------------------------------------------------------------- */

static void
decode_takes_the_space_away_again(void **state)
{
    struct ply_vocab *v = tok_tiny(&(struct mkvocab_opts){.chat = "llama2", .spm = true}, NULL);
    struct ply_ids ids = {0};
    struct ply_buf text = {0};
    const int32_t strange[] = {-1, 1 << 28, 1};
    size_t len;
    ply_encode(v, "Hello", 5, &ids, NULL);
    assert_int_equal(ply_piece(v, ids.v[0], &len)[0], ' ');
    ply_ids_append(&ids, strange, 3); /* no ids, and a control one: no bytes */
    ply_decode(v, ids.v, ids.n, &text, NULL);
    assert_string_equal(text.v, "Hello");
    ids.n = text.n = 0;
    ply_encode(v, "  Hello", 7, &ids, NULL);
    ply_decode(v, ids.v, ids.n, &text, NULL);
    assert_string_equal(text.v, "  Hello");
    ply_ids_fini(&ids);
    ply_buf_fini(&text);
    ply_vocab_close(&v);
}

static void
no_text_becomes_fewer_ids_than_said(void **state)
{
    static const struct mkvocab_opts kinds[] = {
        {.chat = "chatml"}, {.chat = "gemma", .spm = true}, {.chat = "llama2", .spm = true}};
    uint64_t seed = 6;
    for (size_t k = 0; k < PLY_COUNT(kinds); k++) {
        struct ply_vocab *v = tok_tiny(&kinds[k], NULL);
        assert_int_equal(ply_encode_min(v, 0), 0);
        assert_int_equal(ply_encode_min(v, 1), 1);
        for (int round = 0; round < 300; round++) {
            char text[300];
            struct ply_ids ids = {0};
            const size_t n = tok_random_text(&seed, round % 2, text, sizeof(text));
            ply_encode(v, text, n, &ids, NULL);
            assert_true(ids.n >= ply_encode_min(v, n));
            ply_ids_fini(&ids);
        }
        ply_vocab_close(&v);
    }
}

struct reader {
    const struct ply_vocab *v;
    uint64_t sum;
};

static void *
read_much(void *arg)
{
    struct reader *r = arg;
    uint64_t seed = 8;
    for (int i = 0; i < 300; i++) {
        char text[200];
        struct ply_ids ids = {0};
        struct ply_msg m = {PLY_ROLE_USER, text, 0, NULL, 0};
        m.len = tok_random_text(&seed, i % 2, text, sizeof(text));
        ply_encode(r->v, text, m.len, &ids, NULL);
        ply_chat_render(r->v, &m, 1, PLY_CHAT_OPEN_REPLY, &ids, NULL);
        for (size_t k = 0; k < ids.n; k++) {
            size_t len;
            ply_piece(r->v, ids.v[k], &len);
            r->sum = r->sum * 31 + (uint64_t)ids.v[k] + len;
        }
        ply_ids_fini(&ids);
    }
    return NULL;
}

static void
several_threads_read_one_vocab(void **state)
{
    static const struct mkvocab_opts kinds[] = {{.chat = "chatml"}, {.chat = "gemma", .spm = true}};
    for (size_t k = 0; k < PLY_COUNT(kinds); k++) {
        struct ply_vocab *v = tok_tiny(&kinds[k], NULL);
        pthread_t thread[4];
        struct reader r[4];
        for (size_t i = 0; i < 4; i++) {
            r[i] = (struct reader){v, 0};
            assert_int_equal(pthread_create(&thread[i], NULL, read_much, &r[i]), 0);
        }
        for (size_t i = 0; i < 4; i++)
            pthread_join(thread[i], NULL);
        for (size_t i = 1; i < 4; i++)
            assert_true(r[i].sum == r[0].sum);
        ply_vocab_close(&v);
    }
}

/* In two steps: closed before it is built, or with its error said at the second. */
static void
opening_in_two_steps(void **state)
{
    char *path = tok_tmp_path();
    static const char *const bad[] = {"ab", NULL};
    for (int i = 0; i < 3; i++) {
        struct ggufw w;
        struct ply_buf file = {0};
        struct ply_vocab *v = NULL;
        struct ply_err err = {0};
        struct tok_piece piece[256];
        ggufw_init(&w);
        if (i == 2)
            tok_write(&w, "gpt2", "gpt-2", piece, tok_byte_pieces(piece), bad, -1);
        else
            mkvocab_write(&w, &(struct mkvocab_opts){.chat = "chatml"});
        ggufw_finish(&w, &file);
        assert_int_equal(ggufw_save(&file, path), 0);
        assert_int_equal(ply_vocab_begin(&v, path, NULL, &err), PLY_OK);
        assert_true(ply_vocab_info(v)->n_vocab >= 256);
        assert_non_null(ply_vocab_gguf(v));
        if (i == 1)
            assert_int_equal(ply_vocab_wait(v, &err), PLY_OK);
        if (i == 2) {
            assert_int_equal(ply_vocab_wait(v, &err), PLY_EFORMAT);
            assert_non_null(strstr(err.msg, "number 0"));
        }
        ply_vocab_close(&v);
        ggufw_fini(&w);
        ply_buf_fini(&file);
    }
    unlink(path);
    free(path);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(info_says_what_the_file_says),
        cmocka_unit_test(texts_are_clean),
        cmocka_unit_test(a_file_that_says_nothing),
        cmocka_unit_test(strange_architectures_are_accepted),
        cmocka_unit_test(unknown_pre_tokenizers_are_refused),
        cmocka_unit_test(broken_vocabularies_are_refused),
        cmocka_unit_test(missing_files),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(decode_takes_the_space_away_again),
        cmocka_unit_test(no_text_becomes_fewer_ids_than_said),
        cmocka_unit_test(several_threads_read_one_vocab),
        cmocka_unit_test(opening_in_two_steps),
    };
    return cmocka_run_group_tests_name("vocab", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT
 * SentencePiece and what is put in front of it, on small vocabularies: the traps of GGUF files,
 * one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/num.h"
#include "engine/tok_proto.h"
#include "engine/tok_spm.h"
#include "tests/tok/tokutil.h"

#define SP "\xe2\x96\x81" /* U+2581 */
#define N_MAX 700

struct vocab {
    struct tok_piece piece[N_MAX];
    uint32_t n;
};

static int32_t
add(struct vocab *v, const char *text, int attr, float score)
{
    v->piece[v->n] = (struct tok_piece){.text = text, .attr = attr, .score = score};
    return (int32_t)v->n++;
}

/* "<0x00>" to "<0xFF>"; returns the first id. */
static int32_t
add_bytes(struct vocab *v)
{
    static char text[256][8];
    const int32_t first = (int32_t)v->n;
    for (unsigned i = 0; i < 256; i++) {
        snprintf(text[i], sizeof(text[i]), "<0x%02X>", i);
        add(v, text[i], PLY_TOK_BYTE, 0);
    }
    return first;
}

static struct ply_vocab *
make(const struct vocab *v, int32_t unk, bool space_prefix)
{
    struct ggufw w;
    ggufw_init(&w);
    tok_write(&w, "llama", "default", v->piece, v->n, NULL, unk);
    ggufw_bool(&w, "tokenizer.ggml.add_space_prefix", space_prefix);
    return tok_must_open(&w, "raw");
}

/* Ids 0 <unk>, 1 <s>, 2 </s>, bytes 3 to 258; a 259, b 260, c 261, U+2581 262. */
static void
basic(struct vocab *v)
{
    memset(v, 0, sizeof(*v));
    add(v, "<unk>", PLY_TOK_UNKNOWN, 0);
    add(v, "<s>", PLY_TOK_CONTROL, 0);
    add(v, "</s>", PLY_TOK_CONTROL, 0);
    add_bytes(v);
    add(v, "a", 0, -100);
    add(v, "b", 0, -101);
    add(v, "c", 0, -102);
    add(v, SP, 0, -103);
}

/* B13: by score, not by length. */
static void
best_score_first(void **state)
{
    struct vocab v;
    basic(&v);
    add(&v, "ab", 0, -2);  /* 263 */
    add(&v, "bc", 0, -1);  /* 264 */
    add(&v, "abc", 0, -9); /* 265: only a|bc or ab|c can make it */
    struct ply_vocab *p = make(&v, 0, false);
    assert_ids(p, "abc", "265");
    assert_ids(p, "abcc", "265 261");
    assert_ids(p, "aab", "259 263");
    ply_vocab_close(&p);
    v.piece[265].text = "abx"; /* no longer makes abc */
    p = make(&v, 0, false);
    assert_ids(p, "abc", "259 264");
    ply_vocab_close(&p);
}

/* B03: one space before text at the beginning, none before text that goes on. */
static void
the_space_before_text(void **state)
{
    struct vocab v;
    basic(&v);
    add(&v, SP "a", 0, -1); /* 263 */
    struct ply_vocab *p = make(&v, 0, true);
    assert_ids(p, "a", "263");
    assert_ids(p, " a", "262 263");
    assert_ids(p, "\xff", "262 258"); /* before bytes that are no text, too */
    assert_ids(p, "", "");
    struct ply_ids ids = {0};
    assert_int_equal(ply_encode_more(p, "a", 1, &ids, NULL), PLY_OK);
    assert_string_equal(tok_show_ids(ids.v, ids.n), "259");
    ply_ids_fini(&ids);
    ply_vocab_close(&p);
    p = make(&v, 0, false);
    assert_ids(p, "a", "259");
    ply_vocab_close(&p);
}

/* B04: encode and decode, five times over, with and without the space. */
static void
decoding_is_the_inverse(void **state)
{
    struct vocab v;
    basic(&v);
    add(&v, SP "a", 0, -1);
    add(&v, SP SP, 0, -2);
    add(&v, "ab", 0, -3);
    uint64_t seed = 5;
    for (int prefix = 0; prefix < 2; prefix++) {
        struct ply_vocab *p = make(&v, 0, prefix);
        for (int round = 0; round < 500; round++) {
            char text[120];
            const size_t n = tok_random_text(&seed, round % 2, text, sizeof(text));
            if (memmem(text, n, SP, 3))
                continue; /* B05: cannot come back, and is stored as typed */
            struct ply_ids ids = {0}, again = {0};
            struct ply_buf back = {0};
            ply_encode(p, text, n, &ids, NULL);
            for (int k = 0; k < 5; k++) {
                back.n = again.n = 0;
                ply_decode(p, ids.v, ids.n, &back, NULL);
                assert_int_equal(back.n, n);
                if (n > 0)
                    assert_memory_equal(back.v, text, n);
                ply_encode(p, back.v, back.n, &again, NULL);
                assert_int_equal(again.n, ids.n);
                if (ids.n > 0)
                    assert_memory_equal(again.v, ids.v, ids.n * sizeof(*ids.v));
            }
            ply_ids_fini(&ids);
            ply_ids_fini(&again);
            ply_buf_fini(&back);
        }
        ply_vocab_close(&p);
    }
}

/* B01, B06: runs of spaces stored plainly are matched, and decode to spaces. */
static void
user_pieces_hold_plain_spaces(void **state)
{
    struct vocab v;
    basic(&v);
    add(&v, "  ", PLY_TOK_USER, 0);   /* 263 */
    add(&v, "    ", PLY_TOK_USER, 0); /* 264 */
    add(&v, "\n\n", PLY_TOK_USER, 0); /* 265 */
    add(&v, "a b", PLY_TOK_USER, 0);  /* 266 */
    struct ply_vocab *p = make(&v, 0, false);
    assert_ids(p, "a  b", "259 263 260");
    assert_ids(p, "     c", "264 262 261");
    assert_ids(p, "\n\n\n", "265 13"); /* 13: <0x0A> */
    assert_ids(p, "a b", "266");
    assert_pieces(p, "c  a b    ", "c|  |a b|    ");
    ply_vocab_close(&p);
}

/* B27: control pieces, an unknown piece, pieces of one character, pieces spelled as bytes. */
static void
text_never_becomes_a_control_id(void **state)
{
    struct vocab v;
    basic(&v);
    add(&v, "x", PLY_TOK_CONTROL, 0);     /* 263: the library would find it by its text */
    add(&v, "ab", PLY_TOK_CONTROL, 0);    /* 264 */
    add(&v, "<pad>", PLY_TOK_UNKNOWN, 0); /* 265: a second unknown piece becomes control */
    add(&v, "<s>a", 0, -1);               /* 266 */
    struct ply_vocab *p = make(&v, 0, false);
    assert_ids(p, "x", "123"); /* <0x78> */
    assert_ids(p, "ab", "259 260");
    assert_ids(p, "<s>", "63 118 65");
    assert_ids(p, "<0x0A>", "63 51 123 51 68 65"); /* the six characters */
    assert_true(ply_is_control(p, 265));
    assert_true(ply_is_control(p, 0));
    ply_vocab_close(&p);
}

/* The file's <unk> may be called control, as in Gemma's files; then unknown_token_id tells. */
static void
the_unknown_piece_may_be_called_control(void **state)
{
    struct vocab v;
    basic(&v);
    v.piece[0].attr = PLY_TOK_CONTROL;
    struct ply_vocab *p = make(&v, 0, false);
    assert_ids(p, "abz", "259 260 125");
    ply_vocab_close(&p);
    p = make(&v, -1, false); /* none at all */
    assert_ids(p, "abz", "259 260 125");
    ply_vocab_close(&p);
}

/* Pieces that no text can be keep their ids and do no harm. */
static void
odd_pieces(void **state)
{
    struct vocab v;
    basic(&v);
    add(&v, "a", 0, -1);        /* 263: a second "a": the first is meant */
    add(&v, "", 0, -1);         /* 264 */
    add(&v, "\xff\xfe", 0, -1); /* 265 */
    add(&v, "a\0b", 0, -1);     /* 266 */
    v.piece[266].n = 3;
    add(&v, "\0z", PLY_TOK_USER, 0); /* 267 */
    v.piece[267].n = 2;
    add(&v, "<0x41>", PLY_TOK_BYTE, 0); /* 268: a second byte 41 */
    add(&v, "ca", PLY_TOK_UNUSED, -1);  /* 269 */
    add(&v, "last", 0, -1);             /* 270 */
    struct ply_vocab *p = make(&v, 0, false);
    assert_ids(p, "aA", "259 68");
    assert_ids(p, "a\0b", "259 3 260");
    assert_ids(p, "ca", "261 259");      /* unused pieces are cut up again */
    assert_pieces(p, "last", "l|a|s|t"); /* nothing leads to it */
    size_t len;
    ply_piece(p, 264, &len);
    assert_int_equal(len, 0);
    ply_piece(p, 265, &len);
    assert_int_equal(len, 2);
    ply_vocab_close(&p);
}

/* B07, B08: with a piece for every byte, all bytes survive. */
static void
bytes_survive(void **state)
{
    struct vocab v;
    basic(&v);
    struct ply_vocab *p = make(&v, 0, false);
    assert_ids(p, "\xe6\xad", "233 176");
    assert_ids(p, "a\xe6", "259 233");
    assert_ids(p, "\xc0\x80", "195 131");
    assert_ids(p, "\xed\xa0\x80", "240 163 131");
    assert_ids(p, "\xf4\x90\x80\x80", "247 147 131 131");
    assert_ids(p, "\xf0\x9f\xa6\x99", "243 162 169 156"); /* a llama has no piece */
    assert_ids(p, "\0", "3");
    ply_vocab_close(&p);
}

/* B08: without them, what cannot be said becomes U+FFFD, or nothing; never the unknown id. */
static void
no_pieces_for_bytes(void **state)
{
    struct vocab v = {0};
    add(&v, "<unk>", PLY_TOK_UNKNOWN, 0);
    add(&v, "a", 0, -1);
    add(&v, "b", 0, -1);
    add(&v, "<0x41>", PLY_TOK_BYTE, 0); /* one alone is no fallback */
    struct ply_vocab *p = make(&v, 0, false);
    assert_ids(p, "azb", "1 2");
    assert_ids(p, "A\xff\0", "");
    assert_int_equal(ply_encode_min(p, 1000), 0);
    ply_vocab_close(&p);
    add(&v, "\xef\xbf\xbd", 0, -1); /* 4: U+FFFD */
    p = make(&v, 0, false);
    assert_ids(p, "azb", "1 4 2");
    assert_ids(p, "a\xff", "1 4");
    assert_true(ply_encode_min(p, 1000) > 0);
    ply_vocab_close(&p);
}

/* Texts are cut where no piece can span the cut; the ids are those of the whole. The library
 * sees the whole where nothing can be cut: a text of one letter pair that is a piece. */
static void
long_texts_are_cut_without_a_trace(void **state)
{
    struct vocab v;
    basic(&v);
    add(&v, "ab", 0, -1);   /* 263 */
    add(&v, SP "a", 0, -2); /* 264 */
    add(&v, "abab", 0, -3); /* 265 */
    add(&v, SP SP, 0, -4);  /* 266 */
    struct ply_vocab *p = make(&v, 0, false);
    uint64_t seed = 9;
    for (int round = 0; round < 20; round++) {
        enum { N = 20000 };
        static char text[N];
        struct ply_ids whole = {0}, parts = {0};
        size_t from = 0;
        for (size_t i = 0; i < N; i++)
            text[i] = "abc  \n"[tok_random(&seed) % 6];
        ply_encode(p, text, N, &whole, NULL);
        /* A newline is in no piece but its byte's: cutting there by hand is right, too. */
        for (size_t i = 1; i <= N; i++) {
            if (i < N && text[i] != '\n')
                continue;
            ply_encode_more(p, text + from, i - from, &parts, NULL);
            from = i;
        }
        assert_int_equal(whole.n, parts.n);
        assert_memory_equal(whole.v, parts.v, whole.n * sizeof(*whole.v));
        ply_ids_fini(&whole);
        ply_ids_fini(&parts);
    }
    enum { M = 40000 };
    char *abab = malloc(M);
    for (size_t i = 0; i < M; i++)
        abab[i] = "ab"[i % 2];
    struct ply_ids ids = {0};
    ply_encode(p, abab, M, &ids, NULL);
    assert_int_equal(ids.n, M / 4);
    for (size_t i = 0; i < ids.n; i++)
        assert_int_equal(ids.v[i], 265);
    ply_ids_fini(&ids);
    free(abab);
    ply_vocab_close(&p);
}

/* The library logs what it refuses; the terminal belongs to somebody else. */
static void
nothing_is_written_to_stderr(void **state)
{
    char *path = tok_tmp_path();
    const int saved = dup(2), log = open(path, O_RDWR);
    struct ply_spm *spm = NULL;
    struct ply_buf no_unknown = {0};
    struct ply_err err = {0};
    assert_true(saved >= 0 && log >= 0);
    ply_proto_piece(&no_unknown, "a", 1, 0, PLY_TOK_NORMAL);
    ply_proto_tail(&no_unknown, 0, true, (struct ply_str){"", 0});
    fflush(stderr);
    dup2(log, 2);
    const int rc_garbage = ply_spm_open(&spm, "garbage", 7, NULL);
    const int rc_refused = ply_spm_open(&spm, no_unknown.v, no_unknown.n, &err);
    fflush(stderr);
    dup2(saved, 2);
    assert_int_equal(rc_garbage, PLY_EFORMAT);
    assert_int_equal(rc_refused, PLY_EFORMAT);
    assert_non_null(strstr(err.msg, "SentencePiece refuses"));
    assert_int_equal(lseek(log, 0, SEEK_END), 0);
    close(saved);
    close(log);
    unlink(path);
    free(path);
    ply_buf_fini(&no_unknown);
}

/* ---- tokenizer.model ------------------------------------------------------------------- */

static const char *
model_bytes(const struct vocab *v, struct ply_buf *out)
{
    for (uint32_t i = 0; i < v->n; i++)
        ply_proto_piece(out, v->piece[i].text, strlen(v->piece[i].text), v->piece[i].score,
                        v->piece[i].attr ? v->piece[i].attr : PLY_TOK_NORMAL);
    ply_proto_tail(out, 0, true, (struct ply_str){"", 0});
    return out->v;
}

static void
a_model_file_reads_as_it_was_written(void **state)
{
    struct vocab v;
    struct ply_buf file = {0};
    struct ply_tok_src src = {0};
    struct ply_err err = {0};
    basic(&v);
    model_bytes(&v, &file);
    assert_int_equal(ply_proto_read(&src, file.v, file.n, &err), PLY_OK);
    assert_int_equal(src.n, v.n);
    assert_int_equal(src.unk, 0);
    assert_false(src.space_prefix);
    for (uint32_t i = 0; i < v.n; i++) {
        assert_int_equal(src.str[i].n, strlen(v.piece[i].text));
        assert_memory_equal(src.str[i].s, v.piece[i].text, src.str[i].n);
        assert_true(src.score[i] == v.piece[i].score);
        assert_int_equal(src.attr[i], v.piece[i].attr ? v.piece[i].attr : PLY_TOK_NORMAL);
    }
    ply_tok_src_fini(&src);
    ply_buf_fini(&file);
}

/* Cut or changed anywhere, it is refused or read, and never overruns. */
static void
damaged_model_files(void **state)
{
    struct vocab v;
    struct ply_buf file = {0};
    basic(&v);
    model_bytes(&v, &file);
    uint64_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        struct ply_tok_src src = {0};
        const size_t n = round % 2 ? tok_random(&seed) % file.n : file.n;
        char *copy = malloc(n ? n : 1);
        memcpy(copy, file.v, n);
        for (int k = 0; n > 0 && k < round % 4; k++)
            copy[tok_random(&seed) % n] = (char)tok_random(&seed);
        ply_proto_read(&src, copy, n, NULL);
        ply_tok_src_fini(&src);
        free(copy);
    }
    ply_buf_fini(&file);
}

/* A GGUF without a vocabulary takes the tokenizer.model beside it. */
static void
a_model_file_beside_the_gguf(void **state)
{
    struct vocab v;
    struct ply_buf file = {0}, gguf = {0};
    struct ggufw w;
    struct ply_vocab *p = NULL;
    struct ply_err err = {0};
    char *dir = tok_tmp_path(), path[4200], model[4200];
    unlink(dir);
    strcat(dir, ".d");
    assert_int_equal(mkdir(dir, 0700), 0);
    snprintf(path, sizeof(path), "%s/m.gguf", dir);
    snprintf(model, sizeof(model), "%s/tokenizer.model", dir);
    ggufw_init(&w);
    ggufw_str(&w, "general.architecture", "llama");
    ggufw_finish(&w, &gguf);
    assert_int_equal(ggufw_save(&gguf, path), 0);
    assert_int_equal(ply_vocab_open(&p, path, NULL, &err), PLY_EFORMAT);
    assert_non_null(strstr(err.msg, "tokenizer.model"));
    basic(&v);
    model_bytes(&v, &file);
    assert_int_equal(ggufw_save(&file, model), 0);
    err = (struct ply_err){0};
    assert_int_equal(ply_vocab_open(&p, path, NULL, &err), PLY_OK);
    assert_ids(p, "a b", "259 262 260");
    assert_string_equal(ply_vocab_info(p)->tokenizer, "sentencepiece");
    assert_true(ply_vocab_info(p)->base_model);
    assert_true(ply_chat_is_end(p, 2)); /* the model file's eos_id */
    ply_vocab_close(&p);
    ply_buf_fini(&file);
    ply_buf_fini(&gguf);
    ggufw_fini(&w);
    unlink(path);
    unlink(model);
    rmdir(dir);
    free(dir);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_score_first),
        cmocka_unit_test(the_space_before_text),
        cmocka_unit_test(decoding_is_the_inverse),
        cmocka_unit_test(user_pieces_hold_plain_spaces),
        cmocka_unit_test(text_never_becomes_a_control_id),
        cmocka_unit_test(the_unknown_piece_may_be_called_control),
        cmocka_unit_test(odd_pieces),
        cmocka_unit_test(bytes_survive),
        cmocka_unit_test(no_pieces_for_bytes),
        cmocka_unit_test(long_texts_are_cut_without_a_trace),
        cmocka_unit_test(nothing_is_written_to_stderr),
        cmocka_unit_test(a_model_file_reads_as_it_was_written),
        cmocka_unit_test(damaged_model_files),
        cmocka_unit_test(a_model_file_beside_the_gguf),
    };
    return cmocka_run_group_tests_name("spm", tests, NULL, NULL);
}

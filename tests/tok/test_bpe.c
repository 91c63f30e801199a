/* SPDX-License-Identifier: MIT
 * Byte-level BPE on vocabularies small enough to work out by hand: ids 0 to 255 are the bytes,
 * what follows is the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/num.h"
#include "tests/tok/tokutil.h"

#define N_MAX 400

struct vocab {
    struct tok_piece piece[N_MAX];
    uint32_t n;
};

static void
bytes(struct vocab *v)
{
    memset(v, 0, sizeof(*v));
    v->n = tok_byte_pieces(v->piece);
}

/* Returns the id. */
static int32_t
add(struct vocab *v, const char *text, int attr)
{
    v->piece[v->n] = (struct tok_piece){.text = text, .attr = attr};
    return (int32_t)v->n++;
}

static struct ply_vocab *
make(const struct vocab *v, const char *pre, const char *const *merges)
{
    struct ggufw w;
    ggufw_init(&w);
    tok_write(&w, "gpt2", pre, v->piece, v->n, merges, 0);
    return tok_must_open(&w, "raw");
}

/* ---- merging --------------------------------------------------------------------------- */

static void
lowest_rank_first_leftmost_of_equals(void **state)
{
    struct vocab v;
    bytes(&v);
    add(&v, "bc", 0);  /* 256 */
    add(&v, "ab", 0);  /* 257 */
    add(&v, "abc", 0); /* 258 */
    add(&v, "aa", 0);  /* 259 */
    add(&v, "aaa", 0); /* 260 */
    static const char *const merges[] = {"b c", "a b", "ab c", "a a", "aa a", NULL};
    struct ply_vocab *p = make(&v, "gpt-2", merges);
    assert_ids(p, "abc", "97 256"); /* bc before ab */
    assert_ids(p, "abd", "257 100");
    assert_ids(p, "aa", "259");
    assert_ids(p, "aaa", "260"); /* aa|a, then the two */
    assert_ids(p, "aaaaa", "259 260");
    assert_ids(p, "", "");
    ply_vocab_close(&p);
}

/* A pair listed twice has its first rank; a merge whose parts or result are no pieces is none. */
static void
odd_merges(void **state)
{
    struct vocab v;
    bytes(&v);
    add(&v, "ab", 0); /* 256 */
    add(&v, "bc", 0); /* 257 */
    static const char *const merges[] = {"a b", "b c", "a b", "x y", "ab c", "zz q", NULL};
    struct ply_vocab *p = make(&v, "gpt-2", merges);
    assert_ids(p, "abc", "256 99");
    assert_ids(p, "xy", "120 121");
    ply_vocab_close(&p);
}

/* Quadratic, and obviously right: merge the best pair until there is none. */
static size_t
merge_naively(const char *const *left, const char *const *right, size_t n_merges, char part[][32],
              size_t n)
{
    for (;;) {
        size_t best = n_merges, at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            for (size_t m = 0; m < best; m++) {
                if (strcmp(left[m], part[i]) == 0 && strcmp(right[m], part[i + 1]) == 0) {
                    best = m;
                    at = i;
                }
            }
        }
        if (best == n_merges)
            return n;
        const size_t len = strlen(part[at]);
        memcpy(part[at] + len, part[at + 1], sizeof(part[0]) - len);
        memmove(part[at + 1], part[at + 2], (n - at - 2) * sizeof(part[0]));
        n--;
    }
}

/* Random merges over four letters, words of up to 200 of them. */
static void
random_words_merge_as_naively(void **state)
{
    uint64_t seed = 11;
    for (int round = 0; round < 60; round++) {
        struct vocab v;
        static char text[64][32], pair[64][64];
        const char *left[64], *right[64], *merges[65];
        const char *known[64] = {"a", "b", "c", "d"};
        size_t n_known = 4, n_merges = 0;
        bytes(&v);
        while (n_merges < 40) {
            const char *l = known[tok_random(&seed) % n_known],
                       *r = known[tok_random(&seed) % n_known];
            if (strlen(l) + strlen(r) > 8)
                continue;
            snprintf(text[n_merges], sizeof(text[0]), "%s%s", l, r);
            snprintf(pair[n_merges], sizeof(pair[0]), "%s %s", l, r);
            left[n_merges] = l;
            right[n_merges] = r;
            merges[n_merges] = pair[n_merges];
            bool is_new = true;
            for (size_t i = 0; i < n_known; i++)
                is_new = is_new && strcmp(known[i], text[n_merges]) != 0;
            if (is_new) {
                known[n_known++] = text[n_merges];
                add(&v, text[n_merges], 0);
            }
            n_merges++;
        }
        merges[n_merges] = NULL;
        struct ply_vocab *p = make(&v, "gpt-2", merges);
        for (int k = 0; k < 20; k++) {
            static char part[200][32];
            char word[201];
            struct ply_buf want = {0};
            const size_t len = 1 + tok_random(&seed) % 200;
            for (size_t i = 0; i < len; i++) {
                word[i] = "abcd"[tok_random(&seed) % 4];
                snprintf(part[i], sizeof(part[i]), "%c", word[i]);
            }
            const size_t n = merge_naively(left, right, n_merges, part, len);
            for (size_t i = 0; i < n; i++)
                ply_buf_printf(&want, i ? "|%s" : "%s", part[i]);
            assert_string_equal(tok_pieces(p, word, len), want.v);
            ply_buf_fini(&want);
        }
        ply_vocab_close(&p);
    }
}

/* B20: a word that is a piece is that piece, though no merges reach it; only where the family
 * looks words up. */
static void
whole_words_before_merging(void **state)
{
    struct vocab v;
    bytes(&v);
    add(&v, "hello", 0);         /* 256: no merge makes it */
    add(&v, "he", 0);            /* 257 */
    add(&v, "\xc4\xa0hello", 0); /* 258: with the alphabet's space */
    static const char *const merges[] = {"h e", NULL};
    struct ply_vocab *p = make(&v, "llama-bpe", merges);
    assert_ids(p, "hello", "256");
    assert_ids(p, " hello", "258");
    assert_ids(p, "hello hello", "256 258");
    assert_ids(p, "hellos", "257 108 108 111 115");
    ply_vocab_close(&p);
    p = make(&v, "gpt-2", merges);
    assert_ids(p, "hello", "257 108 108 111");
    ply_vocab_close(&p);
}

/* ---- what text must not become --------------------------------------------------------- */

/* B27: not as a word, not by a merge, not as a byte. */
static void
text_never_becomes_a_control_id(void **state)
{
    struct vocab v;
    bytes(&v);
    add(&v, "<|x|>", PLY_TOK_CONTROL); /* 256 */
    add(&v, "word", PLY_TOK_CONTROL);  /* 257: forms one word */
    add(&v, "ab", PLY_TOK_CONTROL);    /* 258: a merge makes it */
    add(&v, "<unk>", PLY_TOK_UNKNOWN); /* 259 */
    v.piece['q'].attr = PLY_TOK_CONTROL;
    static const char *const merges[] = {"a b", NULL};
    static const char *const pres[] = {"gpt-2", "llama-bpe"};
    for (size_t i = 0; i < PLY_COUNT(pres); i++) {
        struct ply_vocab *p = make(&v, pres[i], merges);
        assert_ids(p, "<|x|>", "60 124 120 124 62");
        assert_ids(p, "word", "119 111 114 100");
        assert_ids(p, "ab", "97 98");
        assert_ids(p, "<unk>", "60 117 110 107 62");
        assert_ids(p, "aqb", "97 239 191 189 98"); /* q's byte has no other piece: U+FFFD */
        ply_vocab_close(&p);
    }
}

/* B08: SmolLM2's gaps. A character with a byte that has no piece is read as U+FFFD. */
static void
bytes_without_a_piece(void **state)
{
    struct ply_vocab *p =
        tok_tiny(&(struct mkvocab_opts){.chat = "chatml", .gaps = true, .pre = "smollm"}, "raw");
    assert_pieces(p, "a\x04z", "a|\xef|\xbf|\xbd|z");
    assert_pieces(p, "\x13", "\xef|\xbf|\xbd");
    assert_pieces(p, "\xf1\x90\x80\x80", "\xef|\xbf|\xbd"); /* U+50000 */
    assert_pieces(p, "\xff\xfe", "\xef|\xbf|\xbd|\xef|\xbf|\xbd");
    assert_pieces(p, "\x80\xf9", "\x80|\xef|\xbf|\xbd");
    assert_int_equal(ply_encode_min(p, 100) > 0, true);
    ply_vocab_close(&p);
}

/* Where U+FFFD cannot be said either, the character is left out, and its neighbours stay. */
static void
bytes_that_nothing_stands_for(void **state)
{
    struct vocab v;
    bytes(&v);
    v.piece[0xEF].attr = v.piece[0x04].attr = PLY_TOK_CONTROL;
    add(&v, "ab", 0);
    static const char *const merges[] = {"a b", NULL};
    struct ply_vocab *p = make(&v, "gpt-2", merges);
    assert_ids(p, "x\x04y", "120 121");
    assert_ids(p, "\x04", "");
    assert_int_equal(ply_encode_min(p, 1000000), 0);
    ply_vocab_close(&p);
}

/* B07: any bytes become the pieces of these bytes, and come back. */
static void
ill_formed_bytes_survive(void **state)
{
    struct vocab v;
    bytes(&v);
    static const char *const merges[] = {"a b", NULL};
    struct ply_vocab *p = make(&v, "llama-bpe", merges);
    assert_ids(p, "\xe6\xad", "230 173");
    assert_ids(p, "\xff\xfe\x80", "255 254 128");
    assert_ids(p, "a\0b", "97 0 98");
    uint64_t seed = 2;
    for (int i = 0; i < 500; i++) {
        char text[300];
        const size_t n = tok_random_text(&seed, 1, text, sizeof(text));
        struct ply_ids ids = {0};
        struct ply_buf back = {0};
        assert_int_equal(ply_encode(p, text, n, &ids, NULL), PLY_OK);
        assert_int_equal(ply_decode(p, ids.v, ids.n, &back, NULL), PLY_OK);
        assert_int_equal(back.n, n);
        if (n > 0)
            assert_memory_equal(back.v, text, n);
        ply_ids_fini(&ids);
        ply_buf_fini(&back);
    }
    ply_vocab_close(&p);
}

/* ---- user-defined pieces --------------------------------------------------------------- */

static void
user_pieces_are_cut_out_first(void **state)
{
    struct vocab v;
    bytes(&v);
    add(&v, "<t>", PLY_TOK_USER);      /* 256 */
    add(&v, "<t><t>", PLY_TOK_USER);   /* 257: the longest at a place wins */
    add(&v, "<tx", PLY_TOK_USER);      /* 258 */
    add(&v, "    ", PLY_TOK_USER);     /* 259: spelled as it is read */
    add(&v, "\xc3\xa9", PLY_TOK_USER); /* 260 */
    static const char *const merges[] = {"a b", NULL};
    struct ply_vocab *p = make(&v, "gpt-2", merges);
    assert_ids(p, "a<t>b", "97 256 98");
    assert_ids(p, "<t><t><t>", "257 256");
    assert_ids(p, "<txt", "258 116");
    assert_ids(p, "<t", "60 116");
    assert_ids(p, "     x", "259 32 120");
    assert_ids(p, "\xc3\xa9", "260");
    size_t len;
    assert_memory_equal(ply_piece(p, 259, &len), "    ", 4);
    assert_int_equal(len, 4);
    ply_vocab_close(&p);
}

/* ---- length ---------------------------------------------------------------------------- */

/* B11's shape without its clock: one word of 160,000 letters, and a mark it must not exceed. */
static void
a_very_long_word(void **state)
{
    struct vocab v;
    bytes(&v);
    add(&v, "aa", 0);
    add(&v, "aaaa", 0);
    static const char *const merges[] = {"a a", "aa aa", NULL};
    struct ply_vocab *p = make(&v, "smollm", merges);
    const size_t n = 160001;
    char *text = malloc(n);
    struct ply_ids ids = {0};
    memset(text, 'a', n);
    assert_int_equal(ply_encode(p, text, n, &ids, NULL), PLY_OK);
    assert_int_equal(ids.n, 40001);
    assert_int_equal(ids.v[0], 257);
    assert_int_equal(ids.v[40000], 97);
    assert_true(ids.n >= ply_encode_min(p, n));
    ply_ids_fini(&ids);
    free(text);
    ply_vocab_close(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lowest_rank_first_leftmost_of_equals),
        cmocka_unit_test(odd_merges),
        cmocka_unit_test(random_words_merge_as_naively),
        cmocka_unit_test(whole_words_before_merging),
        cmocka_unit_test(text_never_becomes_a_control_id),
        cmocka_unit_test(bytes_without_a_piece),
        cmocka_unit_test(bytes_that_nothing_stands_for),
        cmocka_unit_test(ill_formed_bytes_survive),
        cmocka_unit_test(user_pieces_are_cut_out_first),
        cmocka_unit_test(a_very_long_word),
    };
    return cmocka_run_group_tests_name("bpe", tests, NULL, NULL);
}

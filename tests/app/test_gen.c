/* SPDX-License-Identifier: MIT
 * The reply loop on tiny models, with replies that are forced: what is kept, what is shown, and
 * where the sequence stands afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/gen.h"
#include "app/mem.h"
#include "engine/base/num.h"

#define CHATML "llama-q8_0-bpe-chatml"
#define TRANSCRIPT "llama-q8_0-bpe-none"

struct fix {
    struct ply_engine *e;
    const struct ply_vocab *v;
    struct ply_seq *seq;
    struct ply_sampler *sampler;
    struct gen_params params;
    struct ply_ids prompt;
    struct gen_result r;
    struct ply_buf shown; /* what the text hook was given */
    struct ply_ids said;  /* and the ids */
    int cancel_at;        /* cancel in the n-th call of the text hook; 0: never */
    int n_texts;
};

static void
on_text(void *user, const char *text, size_t len, const int32_t *ids, size_t n_ids)
{
    struct fix *f = user;
    app_buf_append(&f->shown, text, len);
    app_ids_append(&f->said, ids, n_ids);
    if (++f->n_texts == f->cancel_at)
        ply_engine_cancel(f->e);
}

static void
fix_open(struct fix *f, const char *model, int n_ctx)
{
    char path[512];
    const char *dir = getenv("PLY_TEST_MODELS");
    const struct ply_engine_opts opts = {
        .n_ctx = n_ctx, .n_threads = 1, .kv_cache = PLY_KV_CACHE_RAM};
    struct ply_err err = {0};
    if (!dir)
        fail_msg("PLY_TEST_MODELS is not set: run through meson test");
    *f = (struct fix){.params = {.n_max = GEN_NO_LIMIT}};
    snprintf(path, sizeof(path), "%s/%s.gguf", dir, model);
    if (ply_engine_open(&f->e, path, &opts, &err) != 0)
        fail_msg("%s", err.msg);
    f->v = ply_engine_vocab(f->e);
    assert_int_equal(ply_seq_new(f->e, &f->seq, NULL), 0);
    assert_int_equal(ply_sampler_new(f->v, &f->sampler, NULL), 0);
    f->params.sampling = ply_sampling_default(f->v);
    assert_int_equal(ply_encode(f->v, "go on: ", 7, &f->prompt, NULL), 0);
}

static void
fix_close(struct fix *f)
{
    gen_result_fini(&f->r);
    ply_ids_fini(&f->prompt);
    ply_ids_fini(&f->said);
    ply_buf_fini(&f->shown);
    ply_sampler_free(&f->sampler);
    ply_seq_free(&f->seq);
    ply_engine_close(&f->e);
}

/* What holds for every reply: the hooks were told what is kept and shown, and the sequence holds
 * a beginning of prompt and kept ids, all of it but the last id at most (B42). */
static void
check_laws(struct fix *f)
{
    const size_t n = ply_seq_len(f->seq), n_all = f->prompt.n + f->r.ids.n;
    const int32_t *ids = ply_seq_ids(f->seq);
    assert_int_equal(f->said.n, f->r.ids.n);
    assert_memory_equal(f->said.v ? f->said.v : (int32_t[]){0},
                        f->r.ids.v ? f->r.ids.v : (int32_t[]){0}, f->r.ids.n * sizeof(int32_t));
    assert_int_equal(f->shown.n, f->r.text.n);
    assert_true(n <= n_all);
    assert_memory_equal(ids, f->prompt.v, PLY_MIN(n, f->prompt.n) * sizeof(int32_t));
    for (size_t i = f->prompt.n; i < n; i++)
        assert_int_equal(ids[i], f->r.ids.v[i - f->prompt.n]);
}

static void
run(struct fix *f, const struct ply_ids *forced)
{
    const struct gen_hooks hooks = {.user = f, .text = on_text};
    gen_result_fini(&f->r);
    f->shown.n = f->said.n = 0;
    f->n_texts = 0;
    f->params.forced = forced;
    ply_engine_cancel_clear(f->e);
    gen_run(f->e, f->seq, f->sampler, f->prompt.v, f->prompt.n, &f->params, &hooks, &f->r);
    check_laws(f);
}

static void
check_text(const struct fix *f, const char *want)
{
    assert_int_equal(f->shown.n, strlen(want));
    if (*want)
        assert_memory_equal(f->shown.v, want, strlen(want));
}

static struct ply_ids
ids_of(const struct fix *f, const char *text)
{
    struct ply_ids ids = {0};
    assert_int_equal(ply_encode_more(f->v, text, strlen(text), &ids, NULL), 0);
    return ids;
}

static int32_t
end_id(const struct fix *f)
{
    for (int32_t id = 0; id < ply_vocab_info(f->v)->n_vocab; id++) {
        if (ply_chat_is_end(f->v, id))
            return id;
    }
    fail_msg("no end id");
    return -1;
}

/* The ways a reply ends: the list, the end id, -n, the context. */
static void
test_ends(void **state)
{
    struct fix f;
    fix_open(&f, CHATML, 64);
    struct ply_ids ids = ids_of(&f, "seven little finches");
    run(&f, &ids);
    assert_int_equal(f.r.finish, GEN_STOP);
    assert_int_equal(f.r.ids.n, ids.n);
    check_text(&f, "seven little finches");

    const int32_t end = end_id(&f);
    app_ids_append(&ids, &end, 1);
    app_ids_append(&ids, ids.v, 2); /* not looked at any more */
    run(&f, &ids);
    assert_int_equal(f.r.finish, GEN_STOP);
    assert_int_equal(f.r.ids.n, ids.n - 2);
    assert_int_equal(f.r.ids.v[f.r.ids.n - 1], end);
    check_text(&f, "seven little finches");

    f.params.n_max = 5;
    run(&f, &ids);
    assert_int_equal(f.r.finish, GEN_LENGTH);
    assert_int_equal(f.r.ids.n, 5);
    assert_int_equal(ply_seq_len(f.seq), f.prompt.n + 4);
    f.params.n_max = 0;
    run(&f, &ids);
    assert_int_equal(f.r.finish, GEN_LENGTH);
    assert_int_equal(f.r.ids.n, 0);

    f.params.n_max = GEN_NO_LIMIT;
    struct ply_ids many = {0};
    for (int i = 0; i < 100; i++)
        app_ids_append(&many, ids.v, 1);
    run(&f, &many);
    assert_int_equal(f.r.finish, GEN_LENGTH);
    assert_int_equal(f.prompt.n + f.r.ids.n, 65);
    ply_ids_fini(&many);
    ply_ids_fini(&ids);
    fix_close(&f);
}

/* B38 with ids: whatever the cut, the ids before the stop string are kept and it never shows. */
static void
test_b38_stop_strings(void **state)
{
    struct fix f;
    const char *const stops[] = {"beta gamma"};
    fix_open(&f, CHATML, 0);
    f.params.stops = stops;
    f.params.n_stops = 1;
    /* In pieces of one, two and three characters: each encoded on its own. */
    for (size_t n = 1; n <= 3; n++) {
        static const char text[] = "alpha beta gamma delta";
        struct ply_ids ids = {0};
        for (size_t i = 0; i < sizeof(text) - 1; i += n)
            assert_int_equal(
                ply_encode_more(f.v, text + i, PLY_MIN(n, sizeof(text) - 1 - i), &ids, NULL), 0);
        run(&f, &ids);
        assert_int_equal(f.r.finish, GEN_STOP);
        check_text(&f, "alpha ");
        assert_int_equal(ply_seq_len(f.seq) <= f.prompt.n + f.r.ids.n, 1);
        ids.n = 0;
        for (size_t i = 0; i < 10; i += n)
            assert_int_equal(ply_encode_more(f.v, text + i, PLY_MIN(n, 10 - i), &ids, NULL), 0);
        const int32_t end = end_id(&f);
        app_ids_append(&ids, &end, 1);
        run(&f, &ids);
        check_text(&f, "alpha beta");
        assert_int_equal(f.r.ids.n, ids.n);
        ply_ids_fini(&ids);
    }
    fix_close(&f);
}

/* An id that straddles the stop string is dropped and its leading bytes are encoded anew; the ids
 * before it are the very ids that were drawn. */
static void
test_straddle(void **state)
{
    struct fix f;
    fix_open(&f, CHATML, 0);
    struct ply_ids ids = ids_of(&f, "the gold of the finches and the rest of them");
    size_t at = 0, len = 0;
    const char *piece = NULL;
    for (size_t i = 1; i < ids.n && len < 2; i++) {
        piece = ply_piece(f.v, ids.v[i], &len);
        at = i;
    }
    assert_true(len >= 2);
    char stop[16];
    const char *const stops[] = {stop};
    size_t next_len;
    const char *next = ply_piece(f.v, ids.v[at + 1], &next_len);
    snprintf(stop, sizeof(stop), "%c%.*s", piece[len - 1], (int)next_len, next);
    f.params.stops = stops;
    f.params.n_stops = 1;
    run(&f, &ids);
    assert_int_equal(f.r.finish, GEN_STOP);
    assert_memory_equal(f.r.ids.v, ids.v, at * sizeof(int32_t));
    assert_int_equal(ply_seq_len(f.seq), f.prompt.n + at);
    struct ply_buf kept = {0};
    for (size_t i = 0; i < f.r.ids.n; i++) {
        size_t n;
        const char *s = ply_piece(f.v, f.r.ids.v[i], &n);
        app_buf_append(&kept, s, n);
    }
    check_text(&f, kept.v);
    assert_int_equal(f.r.ids.v[at] == ids.v[at], 0);
    ply_buf_fini(&kept);
    ply_ids_fini(&ids);
    fix_close(&f);
}

/* In the transcript the newlines before the end or the stop are the closer's, and "###" as the
 * first characters of a reply is its stop string. */
static void
test_transcript(void **state)
{
    struct fix f;
    fix_open(&f, TRANSCRIPT, 0);
    struct ply_ids ids = ids_of(&f, "Paris.");
    const size_t n_paris = ids.n;
    static const char *const tails[] = {"\n\n### User\nmore", "\n\n", "\n", "\n\n\n###"};
    for (size_t i = 0; i < PLY_COUNT(tails); i++) {
        ids.n = n_paris;
        assert_int_equal(ply_encode_more(f.v, tails[i], strlen(tails[i]), &ids, NULL), 0);
        run(&f, &ids);
        assert_int_equal(f.r.finish, GEN_STOP);
        check_text(&f, "Paris.");
        assert_int_equal(f.r.ids.n, n_paris);
        assert_true(ply_seq_len(f.seq) <= f.prompt.n + n_paris);
    }
    /* Before an end id too; the end id is kept. */
    const int32_t end = end_id(&f);
    ids.n = n_paris;
    assert_int_equal(ply_encode_more(f.v, "\n\n", 2, &ids, NULL), 0);
    app_ids_append(&ids, &end, 1);
    run(&f, &ids);
    assert_int_equal(f.r.ids.n, n_paris + 1);
    assert_int_equal(f.r.ids.v[n_paris], end);
    check_text(&f, "Paris.");
    /* A newline inside is no end. */
    ids.n = 0;
    assert_int_equal(ply_encode_more(f.v, "a\n\nb\n", 5, &ids, NULL), 0);
    run(&f, &ids);
    check_text(&f, "a\n\nb");
    ids.n = 0;
    assert_int_equal(ply_encode_more(f.v, "### User", 8, &ids, NULL), 0);
    run(&f, &ids);
    assert_int_equal(f.r.ids.n, 0);
    assert_int_equal(f.r.finish, GEN_STOP);
    check_text(&f, "");
    ply_ids_fini(&ids);
    fix_close(&f);
}

/* B31: a control id in the middle is kept as an id and shows nothing. Bytes of a character that
 * come apart are shown when it is whole; a half one at the end as a replacement. */
static void
test_bytes(void **state)
{
    struct fix f;
    fix_open(&f, CHATML, 0);
    struct ply_ids ids = ids_of(&f, "a\xc3");
    const int32_t control = ply_vocab_info(f.v)->n_vocab - 1;
    assert_true(ply_is_control(f.v, control) && !ply_chat_is_end(f.v, control));
    app_ids_append(&ids, &control, 1);
    assert_int_equal(ply_encode_more(f.v, "\xa9z\xe2\x82", 4, &ids, NULL), 0);
    run(&f, &ids);
    assert_int_equal(f.r.ids.n, ids.n);
    assert_memory_equal(f.r.ids.v, ids.v, ids.n * sizeof(int32_t));
    check_text(&f, "a\xc3\xa9z\xef\xbf\xbd");
    ply_ids_fini(&ids);
    fix_close(&f);
}

/* B84: a numeric error names the reply's token; what was said is kept, and the next run works. */
static void
test_b84_numeric(void **state)
{
    struct fix f;
    fix_open(&f, "llama-q8_0-bpe-chatml-nan100", 0);
    const int32_t poison[] = {40, 100, 41}, sound[] = {40, 41, 42};
    const struct ply_ids bad = {.v = (int32_t *)poison, .n = 3},
                         good = {.v = (int32_t *)sound, .n = 3};
    run(&f, &bad);
    assert_int_equal(f.r.finish, GEN_ERROR);
    assert_string_equal(f.r.err.msg, "numeric error at token 3");
    assert_int_equal(f.r.ids.n, 2);
    run(&f, &good);
    assert_int_equal(f.r.finish, GEN_STOP);
    assert_int_equal(f.r.ids.n, 3);
    fix_close(&f);
}

/* A cancel ends the reply and keeps what was said, held text included. */
static void
test_cancel(void **state)
{
    struct fix f;
    const char *const stops[] = {"gold and silver"};
    fix_open(&f, CHATML, 0);
    struct ply_ids ids = ids_of(&f, "much gold and no silver at all");
    f.params.stops = stops;
    f.params.n_stops = 1;
    f.cancel_at = 2;
    run(&f, &ids);
    assert_int_equal(f.r.finish, GEN_CANCELLED);
    assert_true(f.r.ids.n >= 2 && f.r.ids.n < ids.n);
    assert_memory_equal(f.shown.v, "much gold and no silver at all", f.shown.n);
    f.cancel_at = 0;
    run(&f, &ids);
    assert_int_equal(f.r.finish, GEN_STOP);
    check_text(&f, "much gold and no silver at all");
    ply_ids_fini(&ids);
    fix_close(&f);
}

/* The first logits do not depend on whether the prompt was cached: the hash says so. */
static void
test_compare(void **state)
{
    struct fix f;
    fix_open(&f, CHATML, 0);
    struct ply_ids ids = ids_of(&f, "ok");
    f.params.want_hash = true;
    run(&f, &ids);
    const uint64_t hash = f.r.prompt_hash;
    assert_int_equal(f.r.report.evaluated, f.prompt.n);
    run(&f, &ids);
    assert_int_equal(f.r.report.evaluated, 1);
    assert_int_equal(f.r.prompt_hash, hash);
    f.params.compare = true;
    run(&f, &ids);
    assert_int_equal(f.r.report.evaluated, f.prompt.n);
    assert_int_equal(f.r.compare_evaluated, 1);
    assert_true(f.r.compare_equal && f.r.prompt_hash == hash);
    assert_true(f.r.compare_ms >= 0 && f.r.compare_spent_ms >= f.r.compare_ms);
    ply_ids_fini(&ids);
    fix_close(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),     cmocka_unit_test(test_b38_stop_strings),
        cmocka_unit_test(test_straddle), cmocka_unit_test(test_transcript),
        cmocka_unit_test(test_bytes),    cmocka_unit_test(test_b84_numeric),
        cmocka_unit_test(test_cancel),   cmocka_unit_test(test_compare),
    };
    return cmocka_run_group_tests_name("gen", tests, NULL, NULL);
}

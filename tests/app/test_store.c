/* SPDX-License-Identifier: MIT
 * Sessions as the program uses them: what was stored comes back as it was, a path becomes a
 * tree, damaged rows cost themselves alone (B122, B126, B128). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/app/store_fixture.h"

static struct store_session
load(struct store *st, int64_t id)
{
    struct store_session s = {0};
    struct ply_err err = {0};
    if (store_session_load(st, id, STORE_LOAD_CLAIM, &s, &err) != 0)
        fail_msg("%s", err.msg);
    return s;
}

static void
assert_text(const struct store_msg *m, const char *want, size_t len)
{
    assert_int_equal(m->text.n, len);
    if (len)
        assert_memory_equal(m->text.v, want, len);
}

static const struct ply_sampling some_sampling = {
    .temp = 0.7f,
    .top_k = 40,
    .top_p = 0.95f,
    .min_p = 0.05f,
    .repeat_penalty = 1.1f,
    .presence_penalty = -0.25f,
    .frequency_penalty = 0.125f,
    .penalty_window = 64,
    .seed = UINT64_MAX - 1,
};

static void
assert_sampling(const struct ply_sampling *p)
{
    assert_true(p->temp == some_sampling.temp && p->top_k == some_sampling.top_k &&
                p->top_p == some_sampling.top_p && p->min_p == some_sampling.min_p &&
                p->repeat_penalty == some_sampling.repeat_penalty &&
                p->presence_penalty == some_sampling.presence_penalty &&
                p->frequency_penalty == some_sampling.frequency_penalty &&
                p->penalty_window == some_sampling.penalty_window && p->seed == some_sampling.seed);
}

static void
test_session_comes_back(void **state)
{
    struct store *st = fixture_open(*state);
    struct store_session s = {0};
    store_string_set(&s.model_path, "/models/a.gguf");
    store_string_set(&s.model_name, "A model");
    store_string_set(&s.template_name, "chatml");
    store_string_set(&s.system, "");
    store_string_set(&s.draft, "half a thou\nght");
    snprintf(s.model_fp, sizeof(s.model_fp), "0123456789abcdef0123456789abcdef");
    s.n_ctx = 4096;
    s.has_sampling = true;
    s.sampling = some_sampling;
    s.place_line = 7;
    fixture_say(&s, PLY_ROLE_USER, "hello");
    fixture_save(st, &s);
    assert_true(s.id > 0);
    s.place_msg = s.path[0].id;
    fixture_save(st, &s);
    int64_t id = s.id, place = s.place_msg;
    store_session_fini(&s);
    store_close(&st);

    st = fixture_open(*state);
    s = load(st, id);
    assert_string_equal(s.title, "hello");
    assert_string_equal(s.model_path, "/models/a.gguf");
    assert_string_equal(s.model_name, "A model");
    assert_string_equal(s.template_name, "chatml");
    assert_string_equal(s.system, "");
    assert_string_equal(s.draft, "half a thou\nght");
    assert_string_equal(s.model_fp, "0123456789abcdef0123456789abcdef");
    assert_int_equal(s.n_ctx, 4096);
    assert_true(s.has_sampling);
    assert_sampling(&s.sampling);
    assert_int_equal(s.place_msg, place);
    assert_int_equal(s.place_line, 7);
    assert_true(s.created_ms > 0 && s.updated_ms >= s.created_ms);
    assert_false(s.shared);
    store_session_fini(&s);
    store_close(&st);
}

static void
test_unset_stays_unset(void **state)
{
    struct store *st = fixture_open(*state);
    struct store_session s = load(st, fixture_session(st, "x", 1));
    assert_null(s.model_path);
    assert_null(s.system); /* what the template adds, which "" is not */
    assert_null(s.draft);
    assert_false(s.has_sampling);
    assert_false(s.path[1].has_sampling);
    assert_false(s.path[1].stats.known);
    store_session_fini(&s);
    store_close(&st);
}

static void
test_reply_comes_back(void **state)
{
    struct store *st = fixture_open(*state);
    struct store_session s = {0};
    fixture_say(&s, PLY_ROLE_USER, "question");
    fixture_save(st, &s);
    struct store_msg *m = store_session_push(&s, PLY_ROLE_ASSISTANT, "", 0);
    m->state = STORE_WRITING;
    fixture_save(st, &s);
    assert_true(store_session_is_saved(&s));

    /* B45's ids: kept as they were sampled, whatever the text would encode to. */
    static const int32_t ids[] = {23859, 14040, 322, 2, INT32_MAX, -1, 0};
    ply_ids_append(&m->ids, ids, 7);
    ply_buf_append(&m->text, "goldfinch", 9);
    m->state = STORE_DONE;
    m->finish = STORE_FINISH_LENGTH;
    m->has_sampling = true;
    m->sampling = some_sampling;
    snprintf(m->model_fp, sizeof(m->model_fp), "f00d");
    snprintf(m->template_name, sizeof(m->template_name), "gemma");
    m->stats = (struct store_stats){.known = true,
                                    .prompt_toks = 331,
                                    .cached_toks = 318,
                                    .evaluated_toks = 13,
                                    .drafted_toks = 0,
                                    .predicted_toks = 212,
                                    .ttft_ms = 84.25,
                                    .tokenize_ms = 1,
                                    .restore_ms = 0,
                                    .prefill_ms = 62.5,
                                    .decode_ms = 20.75,
                                    .predicted_ms = 5083.125,
                                    .reuse_reason = "full"};
    m->dirty = true;
    assert_false(store_session_is_saved(&s));
    fixture_save(st, &s);
    int64_t id = s.id;
    store_session_fini(&s);

    s = load(st, id);
    assert_int_equal(s.n_path, 2);
    m = &s.path[1];
    assert_text(m, "goldfinch", 9);
    assert_int_equal(m->ids.n, 7);
    assert_memory_equal(m->ids.v, ids, sizeof(ids));
    assert_int_equal(m->role, PLY_ROLE_ASSISTANT);
    assert_int_equal(m->state, STORE_DONE);
    assert_int_equal(m->finish, STORE_FINISH_LENGTH);
    assert_string_equal(m->model_fp, "f00d");
    assert_string_equal(m->template_name, "gemma");
    assert_true(m->has_sampling);
    assert_sampling(&m->sampling);
    assert_true(m->stats.known && m->stats.prompt_toks == 331 && m->stats.cached_toks == 318 &&
                m->stats.evaluated_toks == 13 && m->stats.predicted_toks == 212);
    assert_true(m->stats.ttft_ms == 84.25 && m->stats.prefill_ms == 62.5 &&
                m->stats.decode_ms == 20.75 && m->stats.predicted_ms == 5083.125);
    assert_string_equal(m->stats.reuse_reason, "full");
    store_session_fini(&s);
    store_close(&st);
}

/* B122, B126: any bytes. */
static void
test_any_bytes(void **state)
{
    static const struct {
        const char *text;
        size_t len;
    } texts[] = {
        {"a\0b", 3},
        {"\0", 1},
        {"", 0},
        {"\xe2\x80\xa8 \xe2\x80\xa9 \xc2\x85", 9},
        {"\xff\xfe\x80 ill-formed \xc3", 17},
        {"\x1b]52;c;QUJD\x07", 12},
    };
    const size_t n = sizeof(texts) / sizeof(texts[0]), big = 1 << 20;
    struct store *st = fixture_open(*state);
    struct store_session s = {0};
    for (size_t i = 0; i < n; i++)
        assert_non_null(store_session_push(&s, PLY_ROLE_USER, texts[i].text, texts[i].len));
    char *line = malloc(big); /* 1 MB in one line */
    memset(line, 'x', big);
    assert_non_null(store_session_push(&s, PLY_ROLE_ASSISTANT, line, big));
    fixture_save(st, &s);
    int64_t id = s.id;
    store_session_fini(&s);
    s = load(st, id);
    assert_int_equal(s.n_path, n + 1);
    assert_int_equal(s.n_skipped, 0);
    for (size_t i = 0; i < n; i++)
        assert_text(&s.path[i], texts[i].text, texts[i].len);
    assert_text(&s.path[n], line, big);
    assert_int_equal(fixture_int(*state, "SELECT length(CAST(content AS BLOB)) FROM messages"
                                         " ORDER BY id LIMIT 1"),
                     3);
    free(line);
    store_session_fini(&s);
    store_close(&st);
    fixture_assert_sound(*state);
}

static void
test_nothing_is_not_created(void **state)
{
    struct store *st = fixture_open(*state);
    struct store_session s = {0};
    fixture_save(st, &s);
    assert_int_equal(s.id, 0);
    store_string_set(&s.draft, "unsent");
    fixture_save(st, &s);
    assert_true(s.id > 0);
    store_session_fini(&s);
    store_close(&st);
}

/* A message stopped before its first token leaves the tree and becomes the draft. */
static void
test_pop_leaves_the_tree(void **state)
{
    struct store *st = fixture_open(*state);
    struct store_session s = {0};
    fixture_say(&s, PLY_ROLE_USER, "one");
    fixture_say(&s, PLY_ROLE_ASSISTANT, "two");
    fixture_save(st, &s);
    fixture_say(&s, PLY_ROLE_USER, "three");
    fixture_save(st, &s);
    assert_int_equal(fixture_int(*state, "SELECT count(*) FROM messages"), 3);
    assert_int_equal(store_session_pop(&s), 0);
    store_string_set(&s.draft, "three");
    assert_false(store_session_is_saved(&s));
    fixture_save(st, &s);
    assert_int_equal(fixture_int(*state, "SELECT count(*) FROM messages"), 2);
    int64_t id = s.id;
    store_session_fini(&s);
    s = load(st, id);
    assert_int_equal(s.n_path, 2);
    assert_string_equal(s.draft, "three");
    store_session_fini(&s);
    store_close(&st);
    fixture_assert_sound(*state);
}

static void
test_branches(void **state)
{
    struct store *st = fixture_open(*state);
    struct ply_err err = {0};
    struct store_session s = {0};
    fixture_say(&s, PLY_ROLE_USER, "question");
    fixture_say(&s, PLY_ROLE_ASSISTANT, "first answer");
    fixture_say(&s, PLY_ROLE_USER, "thanks");
    fixture_save(st, &s);
    int64_t old = s.path[1].id, thanks = s.path[2].id;
    store_session_cut(&s, 1); /* regenerate */
    fixture_say(&s, PLY_ROLE_ASSISTANT, "second answer");
    bool moved = true;
    assert_int_equal(store_session_save(st, &s, &moved, &err), 0);
    assert_false(moved);

    int64_t *ids;
    size_t n;
    assert_int_equal(store_siblings(st, s.id, s.path[1].id, &ids, &n, &err), 0);
    assert_int_equal(n, 2);
    assert_int_equal(ids[0], old);
    assert_int_equal(ids[1], s.path[1].id);
    free(ids);
    /* The roots: one question, though other sessions have roots too. */
    fixture_session(st, "another", 1);
    assert_int_equal(store_siblings(st, s.id, s.path[0].id, &ids, &n, &err), 0);
    assert_int_equal(n, 1);
    free(ids);

    assert_int_equal(store_session_goto(st, &s, old, &err), 0);
    assert_int_equal(s.n_path, 3); /* down to the newest end below it */
    assert_int_equal(s.path[2].id, thanks);
    int64_t id = s.id;
    store_session_fini(&s);
    s = load(st, id);
    assert_int_equal(s.n_path, 3);
    assert_text(&s.path[1], "first answer", 12);

    assert_int_equal(store_session_goto(st, &s, 999999, &err), PLY_ENOENT);
    assert_int_equal(s.n_path, 3);
    fixture_say(&s, PLY_ROLE_USER, "unsaved");
    err = (struct ply_err){0};
    assert_int_equal(store_session_goto(st, &s, old, &err), PLY_EINVAL);
    store_session_fini(&s);
    store_close(&st);
    fixture_assert_sound(*state);
}

static void
test_titles(void **state)
{
    struct store *st = fixture_open(*state);
    struct ply_err err = {0};
    struct store_session s = {0};
    fixture_say(&s, PLY_ROLE_USER, "  \n first line \nsecond");
    fixture_save(st, &s);
    assert_string_equal(s.title, "first line");
    assert_int_equal(store_session_rename(st, s.id, "mine", 4, &err), 0);
    fixture_say(&s, PLY_ROLE_ASSISTANT, "ok");
    fixture_save(st, &s); /* brings the new name back, and does not overwrite it */
    assert_string_equal(s.title, "mine");
    assert_true(s.title_by_user);
    store_session_fini(&s);

    store_string_set(&s.title, "named at birth");
    s.title_by_user = true;
    fixture_save(st, &s);
    assert_true(s.id > 0);
    fixture_say(&s, PLY_ROLE_USER, "not a title");
    fixture_save(st, &s);
    assert_string_equal(s.title, "named at birth");
    store_session_fini(&s);

    assert_int_equal(store_session_rename(st, 1, "", 0, &err), PLY_EINVAL);
    err = (struct ply_err){0};
    assert_int_equal(store_session_rename(st, 4711, "x", 1, &err), PLY_ENOENT);
    store_close(&st);
}

static void
assert_title(const char *text, size_t len, const char *want)
{
    char title[256];
    store_title_from(text, len, title);
    assert_string_equal(title, want);
}

static void
test_title_from(void **state)
{
#define TITLE(text, want) assert_title(text, sizeof(text) - 1, want)
    TITLE("", "");
    TITLE(" \t\n\n ", "");
    TITLE("a\tb   c", "a b c");
    TITLE("\x1b]0;own\x07\x1b[31mred", "]0;own[31mred"); /* B92 */
    TITLE("a\0b\xff\xc2\x9b", "ab");
    TITLE("\xe2\x80\xae"
          "txt.exe",
          "txt.exe"); /* B100: no override of direction */
    TITLE("\xe2\x80\xa8x\xe2\x80\xa8y", "x");
    TITLE("1234567890123456789012345678901234567890", "1234567890123456789012345678901234567890");
    TITLE("12345678901234567890123456789012345678901",
          "123456789012345678901234567890123456789\xe2\x80\xa6");
    /* 21 wide characters are 42 columns: 19 and the mark fit. */
    TITLE("漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢", "漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢漢…");
    TITLE("x'); DROP TABLE sessions;--", "x'); DROP TABLE sessions;--");
#undef TITLE
    char marks[2000] = "a", title[256];
    for (size_t i = 1; i + 2 < sizeof(marks); i += 2)
        memcpy(marks + i, "\xcc\x81", 3);
    store_title_from(marks, strlen(marks), title); /* B101: no width, but not without end */
    assert_true(strlen(title) < 256);
}

static int
find(struct store *st, const char *key, enum store_find how, int64_t *id)
{
    struct ply_err err = {0};
    return store_session_find(st, key, how, id, &err);
}

static void
test_find(void **state)
{
    struct store *st = fixture_open(*state);
    struct ply_err err = {0};
    int64_t id;
    assert_int_equal(store_session_last(st, &id, &err), PLY_ENOENT);
    int64_t tar = fixture_session(st, "tar vs cpio", 1);
    int64_t regex = fixture_session(st, "regex for dates", 1);
    int64_t twin_a = fixture_session(st, "twins", 1), twin_b = fixture_session(st, "twins", 1);
    fixture_sql(*state, "UPDATE sessions SET updated_ms = updated_ms + id");
    char key[32];
    snprintf(key, sizeof(key), "#%d", (int)tar);

    assert_int_equal(find(st, key, STORE_FIND_EXACT, &id), 0);
    assert_int_equal(id, tar);
    assert_int_equal(find(st, "tar vs cpio", STORE_FIND_EXACT, &id), 0);
    assert_int_equal(id, tar);
    assert_int_equal(find(st, "tar", STORE_FIND_EXACT, &id), PLY_ENOENT);
    assert_int_equal(find(st, "twins", STORE_FIND_EXACT, &id), PLY_EINVAL); /* not by chance */
    assert_int_equal(find(st, "twins", STORE_FIND_NAMED, &id), 0);
    assert_int_equal(id, twin_b);
    assert_true(twin_b > twin_a);
    assert_int_equal(find(st, "REGEX", STORE_FIND_ANY, &id), 0);
    assert_int_equal(id, regex);
    assert_int_equal(find(st, "cpio", STORE_FIND_ANY, &id), 0);
    assert_int_equal(id, tar);
    assert_int_equal(find(st, "answer", STORE_FIND_ANY, &id), PLY_EINVAL); /* in all of them */
    assert_int_equal(find(st, "nowhere", STORE_FIND_ANY, &id), PLY_ENOENT);
    assert_int_equal(find(st, "99999999999999999999999", STORE_FIND_EXACT, &id), PLY_ENOENT);
    assert_int_equal(find(st, "", STORE_FIND_ANY, &id), PLY_ENOENT);
    err = (struct ply_err){0};
    assert_int_equal(store_session_last(st, &id, &err), 0);
    assert_int_equal(id, twin_b);

    /* A name that is a number: the name wins where names are meant. */
    snprintf(key, sizeof(key), "%d", (int)tar);
    assert_int_equal(store_session_rename(st, regex, key, strlen(key), &err), 0);
    assert_int_equal(find(st, key, STORE_FIND_NAMED, &id), 0);
    assert_int_equal(id, regex);
    assert_int_equal(find(st, key, STORE_FIND_EXACT, &id), 0);
    assert_int_equal(id, tar);
    store_close(&st);
}

static void
test_list(void **state)
{
    struct store *st = fixture_open(*state);
    struct ply_err err = {0};
    struct store_list l;
    assert_int_equal(store_list(st, NULL, 0, &l, &err), 0);
    assert_int_equal(l.n, 0);
    store_list_fini(&l);
    for (int i = 0; i < 20; i++) {
        char first[32];
        snprintf(first, sizeof(first), "Session %d", i);
        fixture_session(st, first, 1 + i % 3);
    }
    fixture_sql(*state, "UPDATE sessions SET updated_ms = 1000 - id, draft = 'd' WHERE id = 5;"
                        "UPDATE sessions SET updated_ms = 1000 - id");
    assert_int_equal(store_list(st, NULL, 0, &l, &err), 0);
    assert_int_equal(l.n, 20);
    for (size_t i = 0; i < l.n; i++) {
        assert_int_equal(l.v[i].id, i + 1);
        assert_int_equal(l.v[i].n_msgs, 2 * (1 + i % 3));
        assert_int_equal(l.v[i].has_draft, l.v[i].id == 5);
        assert_false(l.v[i].open);
    }
    store_list_fini(&l);
    assert_int_equal(store_list(st, "SESSION 7", 0, &l, &err), 0);
    assert_int_equal(l.n, 2); /* both words, anywhere */
    assert_string_equal(l.v[0].title, "Session 7");
    assert_string_equal(l.v[1].title, "Session 17");
    store_list_fini(&l);
    assert_int_equal(store_list(st, "session", 3, &l, &err), 0);
    assert_int_equal(l.n, 3);
    store_list_fini(&l);
    assert_int_equal(store_list(st, "%", 0, &l, &err), 0); /* B128: no wildcard */
    assert_int_equal(l.n, 0);
    store_list_fini(&l);
    store_close(&st);
}

static void
test_delete(void **state)
{
    struct store *st = fixture_open(*state);
    struct ply_err err = {0};
    /* Longer than SQLite's limit on triggers within triggers: no recursion along the path. */
    int64_t gone = fixture_session(st, "Xylophonequark", 800),
            kept = fixture_session(st, "kept", 2);
    assert_int_equal(store_session_delete(st, gone, &err), 0);
    assert_int_equal(store_session_delete(st, gone, &err), PLY_ENOENT);
    assert_int_equal(fixture_int(*state, "SELECT count(*) FROM messages"), 4);
    struct store_hits hits;
    assert_int_equal(store_search(st, "Xylophonequark", 0, &hits, &err), 0);
    assert_int_equal(hits.n, 0);
    store_hits_fini(&hits);
    struct store_session s = {0};
    err = (struct ply_err){0};
    assert_int_equal(store_session_load(st, gone, STORE_LOAD_READ, &s, &err), PLY_ENOENT);
    assert_int_equal(store_session_load(st, kept, STORE_LOAD_READ, &s, &err), 0);
    assert_int_equal(s.n_path, 4);
    store_session_fini(&s);
    /* Numbers are not used again. */
    assert_true(fixture_session(st, "new", 1) > kept);
    /* Nor is a byte of what was deleted left, in text or index (its trigrams hold "quark"). */
    assert_false(fixture_folder_holds(*state, "Xylophonequark"));
    assert_false(fixture_folder_holds(*state, "qua"));
    store_close(&st);
    fixture_assert_sound(*state);
}

/* B126: a damaged row costs itself, not the session. The schema forbids most of these, so they
 * are put there past it. */
static void
test_damaged_rows(void **state)
{
    static const struct {
        const char *sql;
        size_t n_path, n_skipped;
    } cases[] = {
        {"UPDATE messages SET content = NULL WHERE id = 3", 5, 1},
        {"UPDATE messages SET content = NULL WHERE id = 6", 5, 1}, /* the torn last one */
        {"UPDATE messages SET role = 'root' WHERE id = 1", 5, 1},
        {"UPDATE messages SET ids = x'010203' WHERE id = 2", 5, 1},
        {"UPDATE messages SET parent = 6 WHERE id = 4", 3, 1}, /* a circle */
        {"UPDATE messages SET parent = 4 WHERE id = 4", 3, 1},
        {"UPDATE messages SET parent = 77 WHERE id = 100; DELETE FROM messages WHERE id = 3", 3, 1},
        {"UPDATE sessions SET leaf = 12345", 6, 1},
        {"UPDATE sessions SET leaf = NULL", 6, 0},
        {"UPDATE sessions SET sampling = '{\"temp\":\"hot\"}'", 6, 0},
        {"UPDATE sessions SET title = NULL, model_fp = 'far longer than any fingerprint that there"
         " is in this world of ours'",
         6, 0},
        {"UPDATE messages SET finish = 'unheard of', reuse_reason = 'a reason that is longer than"
         " the room it has', prompt_toks = 1",
         6, 0},
        {"UPDATE messages SET sampling = '[[[[' WHERE id = 1", 6, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        remove(*state);
        struct store *st = fixture_open(*state);
        int64_t id = fixture_session(st, "one", 3);
        store_close(&st);
        fixture_sql(*state, "PRAGMA writable_schema = ON;"
                            "UPDATE sqlite_schema SET sql = replace(replace(sql, 'TEXT NOT NULL',"
                            " 'TEXT'), 'STRICT', '') WHERE type = 'table';");
        char sql[512];
        snprintf(sql, sizeof(sql), "PRAGMA ignore_check_constraints = ON; %s", cases[i].sql);
        fixture_sql(*state, sql);
        st = fixture_open(*state);
        struct store_session s = load(st, id);
        if (s.n_path != cases[i].n_path || s.n_skipped != cases[i].n_skipped)
            fail_msg("%s: %zu messages, %zu skipped", cases[i].sql, s.n_path, s.n_skipped);
        fixture_say(&s, PLY_ROLE_USER, "and it goes on"); /* can be gone on with */
        fixture_save(st, &s);
        struct store_hits hits;
        struct store_list list;
        struct ply_err err = {0};
        assert_int_equal(store_search(st, "and it goes", 0, &hits, &err), 0);
        assert_int_equal(hits.n, 1);
        assert_int_equal(store_list(st, NULL, 0, &list, &err), 0);
        assert_int_equal(list.n, 1);
        store_hits_fini(&hits);
        store_list_fini(&list);
        store_session_fini(&s);
        store_close(&st);
    }
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_session_comes_back),
        TEST(test_unset_stays_unset),
        TEST(test_reply_comes_back),
        TEST(test_any_bytes),
        TEST(test_nothing_is_not_created),
        TEST(test_pop_leaves_the_tree),
        TEST(test_branches),
        TEST(test_titles),
        TEST(test_title_from),
        TEST(test_find),
        TEST(test_list),
        TEST(test_delete),
        TEST(test_damaged_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

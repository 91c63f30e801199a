/* SPDX-License-Identifier: MIT
 * The verbs about sessions: what scripts read, what a terminal may get (B91, B92, B109, B126,
 * B128), exit codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/sessions.h"
#include "app/sessions_out.h"
#include "tests/app/store_fixture.h"

/* What control text could do: B91's sequences, and printf's. */
static const char evil[] = "\x1b]52;c;QUJD\x07 \x1b]0;x\x07 \x1b[2J \x1bP..\x1b\\ \x1b"
                           "c \xc2\x9b"
                           "2J \x9b 100% %s %n %p %5$s %% \x1b]";

struct answer {
    int code;
    char *out, *errs;
    size_t n_out;
};

static struct answer
answer_to(const char *db, FILE *out, int argc, char **argv)
{
    struct answer a = {0};
    size_t n_errs;
    struct app_opts o;
    struct ply_err err = {0};
    FILE *f = out ? out : open_memstream(&a.out, &a.n_out);
    FILE *e = open_memstream(&a.errs, &n_errs);
    if (app_opts_parse(&o, argc, argv, &err) != 0)
        fail_msg("%s", err.msg);
    a.code = app_sessions_run(&o, db, f, e);
    app_opts_fini(&o);
    fclose(f);
    fclose(e);
    return a;
}

#define RUN(db, ...)                                                                       \
    answer_to(db, NULL, (int)(sizeof((char *[]){"parley", __VA_ARGS__}) / sizeof(char *)), \
              (char *[]){"parley", __VA_ARGS__, NULL})

static void
answer_free(struct answer *a)
{
    free(a->out);
    free(a->errs);
}

/* The same on a terminal: what its other end gets. */
static char *
on_terminal(const char *db, const char *verb, const char *arg)
{
    static char got[65536];
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int keep = open(ptsname(master), O_RDWR | O_NOCTTY); /* what was written stays readable */
    FILE *tty = fopen(ptsname(master), "w");
    assert_non_null(tty);
    char *argv[] = {"parley", (char *)verb, (char *)arg, NULL};
    struct answer a = answer_to(db, tty, arg ? 3 : 2, argv);
    assert_int_equal(a.code, 0);
    fcntl(master, F_SETFL, O_NONBLOCK);
    size_t n = 0;
    for (ssize_t r; (r = read(master, got + n, sizeof(got) - 1 - n)) > 0;)
        n += (size_t)r;
    got[n] = '\0';
    close(keep);
    close(master);
    answer_free(&a);
    return got;
}

static int64_t
say(const char *db, const char *title, const char *question, size_t len)
{
    struct store *st = fixture_open(db);
    struct store_session s = {0};
    store_string_set(&s.model_name, "SmolLM2");
    if (title) {
        store_string_set(&s.title, title);
        s.title_by_user = true;
    }
    assert_non_null(store_session_push(&s, PLY_ROLE_USER, question, len));
    struct store_msg *m = fixture_say(&s, PLY_ROLE_ASSISTANT, "Paris.");
    m->stats = (struct store_stats){.known = true,
                                    .prompt_toks = 331,
                                    .cached_toks = 318,
                                    .evaluated_toks = 13,
                                    .predicted_toks = 3,
                                    .ttft_ms = 84.4};
    static const int32_t ids[] = {5, 6, 2};
    ply_ids_append(&m->ids, ids, 3);
    fixture_save(st, &s);
    int64_t id = s.id;
    store_session_release(st, &s);
    store_session_fini(&s);
    store_close(&st);
    return id;
}

static json_t *
json_of(const struct answer *a)
{
    json_error_t why;
    json_t *v = json_loads(a->out, JSON_ALLOW_NUL, &why);
    if (!v)
        fail_msg("%s: %s", why.text, a->out);
    return v;
}

static void
test_ls(void **state)
{
    struct answer a = RUN(*state, "ls");
    assert_int_equal(a.code, 0);
    assert_string_equal(a.out, "");
    answer_free(&a);
    a = RUN(*state, "ls", "--json");
    assert_string_equal(a.out, "[]\n");
    answer_free(&a);

    say(*state, NULL, "What is the capital of France?", 30);
    say(*state, "a\tb\nc", "x", 1);
    fixture_sql(*state, "UPDATE sessions SET updated_ms = 1000 * id, created_ms = 0");
    a = RUN(*state, "ls");
    assert_string_equal(a.out,
                        "2\ta b c\t1970-01-01T00:00:02Z\t2\tSmolLM2\n"
                        "1\tWhat is the capital of France?\t1970-01-01T00:00:01Z\t2\tSmolLM2\n");
    answer_free(&a);
    a = RUN(*state, "ls", "--limit", "1", "--json");
    assert_string_equal(a.out, "[{\"id\":2,\"title\":\"a\\tb\\nc\",\"model\":\"SmolLM2\","
                               "\"message_count\":2,\"draft\":false,\"open\":false,"
                               "\"created\":\"1970-01-01T00:00:00.000Z\","
                               "\"updated\":\"1970-01-01T00:00:02.000Z\"}]\n");
    answer_free(&a);
    a = RUN(*state, "ls", "capital", "france");
    assert_int_equal(strncmp(a.out, "1\t", 2), 0);
    answer_free(&a);
}

static void
test_show(void **state)
{
    say(*state, NULL, "What is the capital of France?", 30);
    struct answer a = RUN(*state, "show", "1");
    assert_int_equal(a.code, 0);
    assert_non_null(strstr(a.out, "#1 What is the capital of France?\n"));
    assert_non_null(strstr(a.out, "\nWhat is the capital of France?\n"));
    assert_non_null(strstr(a.out, "3 tok  ttft 84 ms  reuse 318/331\nParis.\n"));
    answer_free(&a);
    a = RUN(*state, "show", "1", "--json");
    json_t *v = json_of(&a), *m = json_array_get(json_object_get(v, "messages"), 1);
    assert_string_equal(json_string_value(json_object_get(m, "text")), "Paris.");
    assert_string_equal(json_string_value(json_object_get(m, "role")), "assistant");
    assert_string_equal(json_string_value(json_object_get(m, "finish_reason")), "stop");
    assert_int_equal(json_integer_value(json_object_get(m, "parent")), 1);
    assert_int_equal(json_integer_value(json_object_get(m, "evaluated")), 13);
    assert_int_equal(json_array_size(json_object_get(m, "ids")), 3);
    json_decref(v);
    answer_free(&a);
    a = RUN(*state, "show", "What", "is", "the", "capital", "of", "France?");
    assert_int_equal(a.code, 0);
    answer_free(&a);
    a = RUN(*state, "show", "%s%n");
    assert_int_equal(a.code, 66);
    assert_string_equal(a.errs, "parley: there is no session '%s%n'\n");
    assert_string_equal(a.out, "");
    answer_free(&a);
}

static void
test_search(void **state)
{
    say(*state, NULL, "What is the capital of France?", 30);
    struct answer a = RUN(*state, "search", "PARIS");
    assert_int_equal(a.code, 0);
    assert_string_equal(a.out, "1\t2\tassistant\tWhat is the capital of France?\tParis.\n");
    answer_free(&a);
    a = RUN(*state, "search", "--json", "capital");
    json_t *v = json_of(&a);
    assert_int_equal(json_array_size(v), 2); /* the title, and the message */
    assert_true(json_is_null(json_object_get(json_array_get(v, 0), "message")));
    assert_int_equal(json_integer_value(json_object_get(json_array_get(v, 1), "message")), 1);
    json_decref(v);
    answer_free(&a);
    a = RUN(*state, "search", "nowhere");
    assert_int_equal(a.code, 1);
    assert_string_equal(a.out, "");
    assert_string_equal(a.errs, "");
    answer_free(&a);
    a = RUN(*state, "search", "--json", "nowhere");
    assert_int_equal(a.code, 1);
    assert_string_equal(a.out, "[]\n");
    answer_free(&a);
}

static void
test_rename_and_rm(void **state)
{
    say(*state, NULL, "one", 3);
    say(*state, NULL, "two", 3);
    struct answer a = RUN(*state, "rename", "1", "a", "new", "name");
    assert_int_equal(a.code, 0);
    assert_string_equal(a.out, "#1 a new name\n");
    answer_free(&a);
    a = RUN(*state, "rename", "a new name", "x'); DROP TABLE sessions;--");
    assert_int_equal(a.code, 0);
    answer_free(&a);
    a = RUN(*state, "show", "x'); DROP TABLE sessions;--"); /* B128 */
    assert_int_equal(a.code, 0);
    answer_free(&a);
    a = RUN(*state, "rm", "77", "x'); DROP TABLE sessions;--", "78");
    assert_int_equal(a.code, 66); /* the one that is there goes all the same */
    assert_string_equal(a.out, "#1 deleted\n");
    assert_string_equal(a.errs, "parley: there is no session '78'\n"
                                "parley: there is no session '77'\n");
    answer_free(&a);
    assert_int_equal(fixture_int(*state, "SELECT count(*) FROM sessions"), 1);
}

/* Every answer on a terminal, with text in every place that comes from outside. */
static void
test_terminal_is_safe(void **state)
{
    setenv("LC_ALL", "C.UTF-8", 1); /* the verbs take it from there */
    say(*state, evil, evil, strlen(evil));
    fixture_sql(*state, "UPDATE sessions SET model_name = title, system = title, draft = title");
    static const char *const lines[][2] = {
        {"ls", NULL}, {"show", "1"}, {"search", "QUJD"}, {"export", "1"}};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        const char *got = on_terminal(*state, lines[i][0], lines[i][1]);
        assert_true(strlen(got) > 20);
        for (const char *c = got; *c; c++) {
            if (((unsigned char)*c < 0x20 && *c != '\n' && *c != '\r' && *c != '\t') ||
                *c == 0x7f || (unsigned char)*c == 0x9b)
                fail_msg("%s: byte %02x reached the terminal", lines[i][0], (unsigned char)*c);
        }
        assert_non_null(strstr(got, "]52;c;QUJD"));
        if (i == 1)
            assert_non_null(strstr(got, "100% %s %n %p %5$s %%"));
    }
    /* And a fault that names it. */
    struct answer a = RUN(*state, "show", (char *)evil);
    answer_free(&a);
    a = RUN(*state, "show", "\x1b]0;own\x07");
    assert_int_equal(a.code, 66);
    assert_null(strchr(a.errs, 0x1b));
    assert_null(strchr(a.errs, 0x07));
    answer_free(&a);
    /* A pipe gets what was said. */
    a = RUN(*state, "show", "1");
    assert_non_null(strstr(a.out, evil));
    answer_free(&a);
}

static void
test_terminal_columns(void **state)
{
    setenv("LC_ALL", "C.UTF-8", 1); /* the verbs take it from there */
    say(*state, "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字", "x", 1);
    say(*state, "short", "x", 1);
    char *got = on_terminal(*state, "ls", NULL);
    char *first = strstr(got, "today"), *line = strchr(got, '\n');
    assert_non_null(first);
    char *second = strstr(line, "today");
    assert_non_null(second);
    /* 20 ideographs of 3 bytes fill the 40 columns that "short" and blanks take. */
    assert_int_equal((second - line - 1) - (first - got), 60 - 40);
}

/* B126: everything that was stored comes back through JSON, to the byte and the branch. */
static void
test_export_and_import(void **state)
{
    const char *db = *state;
    static const char odd[] = "a\0b \xff \xe2\x80\xa8";
    struct store *st = fixture_open(db);
    int64_t id = say(db, "Branches", odd, sizeof(odd) - 1);
    struct store_session s = {0};
    assert_int_equal(store_session_load(st, id, STORE_LOAD_CLAIM, &s, NULL), 0);
    store_session_cut(&s, 1);
    fixture_say(&s, PLY_ROLE_ASSISTANT, "Lyon?");
    store_string_set(&s.draft, "unsent");
    store_string_set(&s.system, "Be brief.");
    s.has_sampling = true;
    s.sampling = (struct ply_sampling){.temp = 0.7f, .seed = UINT64_MAX};
    fixture_save(st, &s);
    store_session_release(st, &s);
    store_session_fini(&s);
    store_close(&st);

    const char *file = fixture_path(db, ".export.json");
    char *path = strdup(file);
    umask(022);
    fclose(fopen(path, "w")); /* is there already, for all to read */
    struct answer a = RUN(db, "export", "Branches", "-o", path);
    assert_int_equal(a.code, 0);
    assert_string_equal(a.out, "");
    answer_free(&a);
    struct stat sb;
    assert_int_equal(stat(path, &sb), 0);
    assert_int_equal(sb.st_mode & 0777, 0600); /* B123 */
    size_t len;
    char *json = fixture_read(path, &len);
    assert_non_null(memmem(json, len, "\"temp\": 0.7,", 12));
    free(json);
    a = RUN(db, "import", path);
    assert_string_equal(a.errs, "");
    assert_string_equal(a.out, "#2 Branches\n");
    answer_free(&a);

    st = fixture_open(db);
    assert_int_equal(store_session_load(st, 2, STORE_LOAD_READ, &s, NULL), 0);
    assert_int_equal(s.n_path, 2);
    assert_int_equal(s.path[0].text.n, sizeof(odd) - 1);
    assert_memory_equal(s.path[0].text.v, odd, sizeof(odd) - 1);
    assert_memory_equal(s.path[1].text.v, "Lyon?", 6);
    assert_string_equal(s.draft, "unsent");
    assert_string_equal(s.system, "Be brief.");
    assert_true(s.title_by_user && s.sampling.temp == 0.7f && s.sampling.seed == UINT64_MAX);
    struct store_tree was, is;
    assert_int_equal(store_tree_load(st, 1, &was, NULL), 0);
    assert_int_equal(store_tree_load(st, 2, &is, NULL), 0);
    assert_int_equal(is.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(was.v[i].ids.n, is.v[i].ids.n);
        assert_int_equal(was.v[i].created_ms, is.v[i].created_ms);
        assert_int_equal(was.v[i].finish, is.v[i].finish);
        assert_int_equal(was.v[i].stats.evaluated_toks, is.v[i].stats.evaluated_toks);
        assert_int_equal(was.parents[i] ? was.parents[i] + 3 : 0, is.parents[i]);
    }
    store_tree_fini(&was);
    store_tree_fini(&is);
    store_session_fini(&s);
    store_close(&st);
    fixture_assert_sound(db);
    free(path);
}

static void
test_markdown(void **state)
{
    say(*state, "Capitals", "What is the capital of *France*?", 32);
    fixture_sql(*state, "UPDATE sessions SET created_ms = 0");
    struct answer a = RUN(*state, "export", "1");
    assert_int_equal(a.code, 0);
    assert_string_equal(a.out, "# Capitals\n\n1970-01-01T00:00:00Z, SmolLM2\n"
                               "\n## You\n\nWhat is the capital of *France*?\n"
                               "\n## Reply\n\nParis.\n");
    answer_free(&a);
}

static void
test_bad_imports(void **state)
{
    static const struct {
        const char *json;
        int code;
    } cases[] = {
        {"", 65},
        {"{", 65},
        {"[]", 65},
        {"{\"format\":\"parley-sessions\",\"version\":2,\"sessions\":[]}", 65},
        {"{\"format\":\"other\",\"version\":1,\"sessions\":[]}", 65},
        {"{\"format\":\"parley-sessions\",\"version\":1,\"sessions\":[1]}", 65},
        {"{\"format\":\"parley-sessions\",\"version\":1,\"sessions\":[{\"messages\":[{}]}]}", 65},
        {"{\"format\":\"parley-sessions\",\"version\":1,\"sessions\":[{\"messages\":"
         "[{\"id\":1,\"role\":\"root\",\"text\":\"x\"}]}]}",
         65},
        {"{\"format\":\"parley-sessions\",\"version\":1,\"sessions\":[{\"messages\":"
         "[{\"id\":1,\"role\":\"user\",\"bytes64\":\"*\"}]}]}",
         65},
        {"{\"format\":\"parley-sessions\",\"version\":1,\"sessions\":[{\"messages\":"
         "[{\"id\":1,\"role\":\"user\",\"text\":\"x\",\"ids\":[-1]}]}]}",
         65},
        {"{\"format\":\"parley-sessions\",\"version\":1,\"sessions\":[{\"messages\":"
         "[{\"id\":1,\"parent\":2,\"role\":\"user\",\"text\":\"x\"}]}]}",
         65},
        {"{\"format\":\"parley-sessions\",\"version\":1,\"sessions\":[{\"ctx\":-5,\"title\":7,"
         "\"sampling\":\"hot\",\"created\":\"yesterday\",\"leaf\":99,\"messages\":"
         "[{\"id\":1,\"role\":\"user\",\"text\":\"x\\u0000y\",\"usage\":3}]}]}",
         0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *path = strdup(fixture_path(*state, ".json"));
        struct store *st = fixture_open(*state); /* makes the folder */
        store_close(&st);
        FILE *f = fopen(path, "w");
        fputs(cases[i].json, f);
        fclose(f);
        struct answer a = RUN(*state, "import", path);
        if (a.code != cases[i].code)
            fail_msg("%s: exit %d: %s", cases[i].json, a.code, a.errs);
        answer_free(&a);
        free(path);
    }
    assert_int_equal(fixture_int(*state, "SELECT count(*) FROM sessions"), 1);
    struct answer a = RUN(*state, "import", "/no/such/file");
    assert_int_equal(a.code, 66);
    answer_free(&a);
}

static void
test_exit_codes(void **state)
{
    const char *db = *state;
    struct answer a = RUN("/proc/no/parley.db", "ls");
    assert_int_equal(a.code, 73);
    answer_free(&a);
    a = RUN(db, "show", "1");
    assert_int_equal(a.code, 66);
    answer_free(&a);
    FILE *full = fopen("/dev/full", "w");
    say(db, NULL, "x", 1);
    a = answer_to(db, full, 2, (char *[]){"parley", "ls", NULL});
    assert_int_equal(a.code, 74);
    answer_free(&a);
    fixture_sql(db, "PRAGMA user_version = 999");
    a = RUN(db, "ls");
    assert_int_equal(a.code, 65);
    assert_non_null(strstr(a.errs, "newer"));
    answer_free(&a);
    truncate(db, 3000);
    a = RUN(db, "ls");
    assert_int_equal(a.code, 65);
    answer_free(&a);
}

static void
test_times(void **state)
{
    setenv("TZ", "UTC", 1);
    tzset();
    char out[32];
    const int64_t now = INT64_C(1796050621000); /* 2026-11-30 14:57:01 */
    const struct {
        int64_t ms;
        const char *want;
    } cases[] = {
        {now, "today 14:57"},
        {now - INT64_C(14) * 3600000, "today 00:57"},
        {now - INT64_C(15) * 3600000, "yesterday 23:57"},
        {now - INT64_C(40) * 3600000, "28 Nov 22:57"},
        {now - INT64_C(365) * 86400000, "30 Nov 2025"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        sessions_time_local(cases[i].ms, now, out, sizeof(out));
        assert_string_equal(out, cases[i].want);
    }
    sessions_time_utc(now, out, sizeof(out));
    assert_string_equal(out, "2026-11-30T14:57:01Z");
    sessions_time_utc(INT64_MAX, out, sizeof(out));
    sessions_time_local(INT64_MIN, now, out, sizeof(out));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_ls),
        TEST(test_show),
        TEST(test_search),
        TEST(test_rename_and_rm),
        TEST(test_terminal_is_safe),
        TEST(test_terminal_columns),
        TEST(test_export_and_import),
        TEST(test_markdown),
        TEST(test_bad_imports),
        TEST(test_exit_codes),
        TEST(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

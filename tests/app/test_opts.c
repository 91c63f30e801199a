/* SPDX-License-Identifier: MIT
 * The command line is a contract that scripts rely on (B109: nothing in it is a format). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "app/opts_table.h"

/* Parse "parley" and what follows it, cut at blanks; "''" stands for an empty argument. */
static int
parse(struct app_opts *o, const char *line, struct ply_err *err)
{
    static char copy[512], *argv[80];
    int argc = 0;
    snprintf(copy, sizeof(copy), "parley %s", line);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
        argv[argc++] = strcmp(w, "''") == 0 ? w + 2 : w;
    *err = (struct ply_err){0};
    return app_opts_parse(o, argc, argv, err);
}

static struct app_opts
good(const char *line)
{
    struct app_opts o;
    struct ply_err err;
    if (parse(&o, line, &err) != 0)
        fail_msg("parley %s: %s", line, err.msg);
    return o;
}

static void
bad(const char *line, const char *says)
{
    struct app_opts o;
    struct ply_err err;
    if (parse(&o, line, &err) == 0)
        fail_msg("parley %s is accepted", line);
    assert_int_equal(err.code, PLY_EINVAL);
    if (!strstr(err.msg, says))
        fail_msg("parley %s: '%s' does not say '%s'", line, err.msg, says);
    app_opts_fini(&o);
}

static void
test_defaults(void **state)
{
    struct app_opts o = good("");
    assert_int_equal(o.verb, APP_VERB_CHAT);
    assert_true(o.given == 0);
    assert_null(o.model);
    assert_null(o.sys);
    assert_int_equal(o.n_ctx, 0);
    assert_int_equal(o.n_threads, 0);
    assert_int_equal(o.n_max, -1);
    assert_int_equal(o.isa, PLY_ISA_AUTO);
    assert_int_equal(o.kv_type, PLY_KV_F16);
    assert_int_equal(o.precision, PLY_PRECISION_FAST);
    assert_int_equal(o.kv_cache, PLY_KV_CACHE_RAM);
    assert_true(o.draft);
    assert_int_equal(o.n_stops, 0);
    app_opts_fini(&o);
}

static void
test_everything(void **state)
{
    struct app_opts o =
        good("-m a.gguf -C -sys hi --plain -c 4096 -t 2 -n 32 --temp 0.5 --top-k 10 --top-p 0.25"
             " --min-p 0.125 --repeat-penalty 1.5 --presence-penalty -1 --frequency-penalty 2"
             " --repeat-last-n 128 --seed 18446744073709551615 --stop A --stop=B"
             " --chat-template chatml --isa avx2 --kv-type q8_0 --precision full --kv-cache off"
             " --draft off --trace t --force-ids f --hash");
    assert_string_equal(o.model, "a.gguf");
    assert_true(o.continue_last && o.plain && o.hash && !o.draft && !o.json);
    assert_string_equal(o.sys, "hi");
    assert_int_equal(o.n_ctx, 4096);
    assert_int_equal(o.n_threads, 2);
    assert_int_equal(o.n_max, 32);
    assert_true(o.sampling.temp == 0.5f && o.sampling.top_k == 10 && o.sampling.top_p == 0.25f &&
                o.sampling.min_p == 0.125f && o.sampling.repeat_penalty == 1.5f &&
                o.sampling.presence_penalty == -1 && o.sampling.frequency_penalty == 2 &&
                o.sampling.penalty_window == 128 && o.sampling.seed == UINT64_MAX);
    assert_int_equal(o.n_stops, 2);
    assert_string_equal(o.stops[0], "A");
    assert_string_equal(o.stops[1], "B");
    assert_string_equal(o.chat_template, "chatml");
    assert_int_equal(o.isa, PLY_ISA_AVX2);
    assert_int_equal(o.kv_type, PLY_KV_Q8_0);
    assert_int_equal(o.precision, PLY_PRECISION_FULL);
    assert_int_equal(o.kv_cache, PLY_KV_CACHE_OFF);
    assert_string_equal(o.trace, "t");
    assert_string_equal(o.force_ids, "f");
    app_opts_fini(&o);
}

static void
test_spellings(void **state)
{
    static const struct {
        const char *line;
        enum app_opt id;
    } cases[] = {
        {"--model=x", APP_OPT_MODEL},       {"-m=x", APP_OPT_MODEL},
        {"--file x", APP_OPT_FILE},         {"-f x", APP_OPT_FILE},
        {"-sysf x", APP_OPT_SYS_FILE},      {"--system-prompt-file x", APP_OPT_SYS_FILE},
        {"--system-prompt x", APP_OPT_SYS}, {"-s 1", APP_OPT_SEED},
        {"--ctx-size 9", APP_OPT_CTX},      {"--temperature 1", APP_OPT_TEMP},
        {"--n-predict 1", APP_OPT_N},       {"--max-tokens 1", APP_OPT_N},
        {"--continue", APP_OPT_CONTINUE},   {"--prompt x", APP_OPT_PROMPT},
        {"ls --limit=3", APP_OPT_LIMIT},    {"score --top 3", APP_OPT_TOP},
        {"export 1 -o f", APP_OPT_OUTPUT},  {"--isa auto", APP_OPT_ISA},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct app_opts o = good(cases[i].line);
        assert_true(app_opts_has(&o, cases[i].id));
        app_opts_fini(&o);
    }
    struct app_opts o = good("-sys '' -p -5");
    assert_string_equal(o.sys, ""); /* removes a template's own */
    assert_string_equal(o.prompt, "-5");
    app_opts_fini(&o);
    o = good("-s -1");
    assert_false(app_opts_has(&o, APP_OPT_SEED));
    app_opts_fini(&o);
    o = good("--stop=a=b");
    assert_string_equal(o.stops[0], "a=b");
    app_opts_fini(&o);
}

static void
test_verbs(void **state)
{
    struct app_opts o = good("resume tar vs cpio --plain");
    assert_int_equal(o.verb, APP_VERB_RESUME);
    assert_int_equal(o.n_args, 3);
    assert_string_equal(o.args[2], "cpio");
    assert_true(o.plain);
    app_opts_fini(&o);
    o = good("--json ls");
    assert_int_equal(o.verb, APP_VERB_LS);
    assert_true(o.json);
    app_opts_fini(&o);
    o = good("search -- --temp");
    assert_string_equal(o.args[0], "--temp");
    app_opts_fini(&o);
    o = good("import -");
    assert_string_equal(o.args[0], "-");
    app_opts_fini(&o);
    static const char *const lines[] = {"resume",
                                        "ls",
                                        "show 1",
                                        "search x",
                                        "rename 1 x",
                                        "rm 1 2 3",
                                        "export 1",
                                        "import f",
                                        "tokenize -m x",
                                        "detokenize -m x",
                                        "score -m x --chunk 7 --batch 3 --reuse --top 2 --hash",
                                        "bench -m x --json",
                                        "cache stat",
                                        "info x",
                                        "doctor"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        o = good(lines[i]);
        assert_int_equal(o.verb, i + 1);
        assert_int_equal(strncmp(lines[i], app_verb_name(o.verb), strlen(app_verb_name(o.verb))),
                         0);
        app_opts_fini(&o);
    }
    o = good("info -m x");
    app_opts_fini(&o);
    bad("show", "needs more");
    bad("rename 1", "needs more");
    bad("rm", "needs more");
    bad("doctor x", "no use for 'x'");
    bad("lss", "did you mean 'ls'");
    bad("serach x", "did you mean 'search'");
    bad("hello", "parley -p");
    bad("%s%n%p", "'%s%n%p'");
}

static void
test_names_the_nearest(void **state)
{
    bad("--tmep 1", "did you mean '--temp'");
    bad("--modle x", "did you mean '--model'");
    bad("--top_k 1", "did you mean '--top-k'");
    bad("--repeat 1.1", "did you mean '--repeat-penalty'");
    bad("--nothing-like-it", "unknown option '--nothing-like-it'; see");
    bad("-x", "unknown option '-x'; see");
    bad("--%s%n=1", "'--%s%n'");
    char line[300] = "--";
    memset(line + 2, 'y', 200); /* longer than any table row */
    bad(line, "unknown option");
}

static void
test_values_are_checked(void **state)
{
    bad("-m", "-m needs a value: -m FILE");
    bad("--plain=1", "--plain takes no value");
    bad("-c many", "-c many: not a whole number");
    bad("-c 1.5", "not a whole number");
    bad("-c 1e3", "not a whole number");
    bad("-c -1", "from 0 to 16777216");
    bad("-c 99999999999999999999", "from 0 to 16777216");
    bad("-t 0", "-t 0: must be from 1 to 512");
    bad("-n -2", "from -1 to 2147483647");
    bad("--temp hot", "--temp hot: not a number");
    bad("--temp nan", "not a number");
    bad("--temp inf", "not a number");
    bad("--temp 0x1p3", "not a number");
    bad("--temp ''", "not a number");
    bad("--temp -0.1", "from 0 to 100");
    bad("--top-p 1.01", "--top-p 1.01: must be from 0 to 1");
    bad("--repeat-penalty 0", "from 0.01 to 100");
    bad("--seed -2", "from 0 to 18446744073709551615");
    bad("--seed 18446744073709551616", "from 0 to 18446744073709551615");
    bad("--seed 1x", "whole number");
    bad("--kv-type q4", "must be one of: f16 q8_0");
    bad("--kv-cache RAM", "must be one of");
    bad("--draft maybe", "must be one of: off on");
    struct app_opts o = good("-c 0 --temp 0 --top-p 1 --top-k 0");
    app_opts_fini(&o);
}

static void
test_reserved(void **state)
{
    bad("--spec on", "--spec is reserved");
    bad("score --verify 3", "--verify is reserved");
    bad("score --screen on", "--screen is reserved");
    bad("--isa avxvnni", "--isa avxvnni is reserved");
}

static void
test_what_goes_together(void **state)
{
    bad("-C --session x", "cannot go together");
    bad("-sys a -sysf b", "cannot go together");
    bad("--jsonl -p x", "cannot go together");
    bad("--jsonl --plain", "cannot go together");
    bad("--raw --chat-template chatml", "cannot go together");
    bad("--json", "--jsonl");
    bad("ls -p x", "parley ls has no use for -p");
    bad("--top 3", "goes with a command, such as parley score");
    bad("score --limit 3", "parley score has no use for --limit");
    struct app_opts o = good("-p x -f y --json"); /* an instruction and what it is about */
    app_opts_fini(&o);
    o = good("resume --session x --help"); /* help is given whatever else stands there */
    assert_true(o.help);
    app_opts_fini(&o);
}

static void
test_sampling_is_laid_over(void **state)
{
    struct ply_sampling p = {.temp = 0.7f, .top_k = 40, .top_p = 0.95f, .seed = 3};
    struct app_opts o = good("--temp 0 --seed 9");
    app_opts_sampling(&o, &p);
    assert_true(p.temp == 0 && p.seed == 9 && p.top_k == 40 && p.top_p == 0.95f);
    app_opts_fini(&o);
}

static char *
help_of(enum app_verb verb)
{
    char *text;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    app_opts_help(f, verb);
    fclose(f);
    return text;
}

/* Every option and every verb is explained somewhere, in lines that fit 100 columns. */
static void
test_help(void **state)
{
    struct app_opts o = good("--help");
    assert_true(o.help);
    app_opts_fini(&o);
    o = good("help rm");
    assert_true(o.help);
    assert_int_equal(o.verb, APP_VERB_RM);
    app_opts_fini(&o);
    o = good("score -h");
    assert_true(o.help);
    assert_int_equal(o.verb, APP_VERB_SCORE);
    app_opts_fini(&o);

    bool seen[APP_OPT_COUNT] = {false};
    for (int v = 0; v < APP_VERB_COUNT; v++) {
        char *text = help_of((enum app_verb)v);
        for (size_t i = 0; i < opts_n_defs; i++) {
            char first[40];
            snprintf(first, sizeof(first), "%.*s", (int)strcspn(opts_defs[i].names, " "),
                     opts_defs[i].names);
            seen[i] = seen[i] || strstr(text, first) != NULL;
        }
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
            assert_true(strlen(line) <= 100);
        free(text);
    }
    for (size_t i = 0; i < opts_n_defs; i++)
        assert_true(seen[i] == (opts_defs[i].kind != OPTS_RESERVED));
    char *all = help_of(APP_VERB_CHAT);
    for (size_t i = 1; i < APP_VERB_COUNT; i++)
        assert_non_null(strstr(all, opts_verbs[i].name));
    assert_null(strstr(all, "avxvnni")); /* reserved words are not offered */
    free(all);
}

/* The tables hold together: rows in the order of their enum, no name twice. */
static void
test_tables(void **state)
{
    for (size_t i = 0; i < opts_n_defs; i++) {
        assert_int_equal(opts_defs[i].id, i);
        for (size_t j = i + 1; j < opts_n_defs; j++) {
            for (const char *w = opts_defs[i].names; *w;) {
                size_t n = strcspn(w, " ");
                for (const char *x = opts_defs[j].names; *x;) {
                    size_t m = strcspn(x, " ");
                    assert_false(n == m && memcmp(w, x, n) == 0);
                    x += m + (x[m] == ' ');
                }
                w += n + (w[n] == ' ');
            }
        }
    }
}

static void
test_exit_codes(void **state)
{
    assert_int_equal(app_exit_of(PLY_OK), 0);
    assert_int_equal(app_exit_of(PLY_EINVAL), 1);
    assert_int_equal(app_exit_of(PLY_ENOMEM), 1);
    assert_int_equal(app_exit_of(PLY_EFORMAT), 65);
    assert_int_equal(app_exit_of(PLY_EUNSUPPORTED), 65);
    assert_int_equal(app_exit_of(PLY_ENOENT), 66);
    assert_int_equal(app_exit_of(PLY_EINTERNAL), 70);
    assert_int_equal(app_exit_of(PLY_ECREATE), 73);
    assert_int_equal(app_exit_of(PLY_EIO), 74);
    assert_int_equal(app_exit_of(PLY_EBUSY), 75);
    assert_int_equal(app_exit_of(PLY_ECANCELLED), 130);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_verbs),
        cmocka_unit_test(test_names_the_nearest),
        cmocka_unit_test(test_values_are_checked),
        cmocka_unit_test(test_reserved),
        cmocka_unit_test(test_what_goes_together),
        cmocka_unit_test(test_sampling_is_laid_over),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

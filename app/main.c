/* SPDX-License-Identifier: MIT
 * parley: the command line to the front end or verb that it names. */
#include <locale.h>
#include <stdio.h>
#include <unistd.h>

#include "app/front.h"
#include "app/opts.h"
#include "app/paths.h"
#include "app/sessions.h"

static int
run_sessions(const struct app_opts *o)
{
    struct app_paths paths = {0};
    struct ply_err err = {0};
    if (app_paths_init(&paths, &err) != 0)
        return front_fail(&err);
    const int code = app_sessions_run(o, paths.db, stdout, stderr);
    app_paths_fini(&paths);
    return code;
}

/* Where there is no terminal to draw on, a chat is line by line. */
static int
run_chat(const struct app_opts *o)
{
    if (o->jsonl)
        return front_jsonl(o);
    if (o->prompt || o->file)
        return front_oneshot(o);
    if (o->plain || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return front_plain(o);
    return front_screen(o);
}

static int
run(const struct app_opts *o)
{
    switch (o->verb) {
    case APP_VERB_CHAT:
    case APP_VERB_RESUME: return run_chat(o);
    case APP_VERB_LS:
    case APP_VERB_SHOW:
    case APP_VERB_SEARCH:
    case APP_VERB_RENAME:
    case APP_VERB_RM:
    case APP_VERB_EXPORT:
    case APP_VERB_IMPORT: return run_sessions(o);
    case APP_VERB_TOKENIZE: return verb_tokenize(o);
    case APP_VERB_DETOKENIZE: return verb_detokenize(o);
    case APP_VERB_INFO: return verb_info(o);
    case APP_VERB_DOCTOR: return verb_doctor(o);
    case APP_VERB_SCORE: return verb_score(o);
    case APP_VERB_BENCH: return verb_bench(o);
    case APP_VERB_CACHE:
    case APP_VERB_COUNT: break;
    }
    front_say("this verb is not built yet: there is no cache on disk to look at");
    return APP_EXIT_USAGE;
}

int
main(int argc, char **argv)
{
    struct app_opts o;
    struct ply_err err = {0};
    int code = APP_EXIT_OK;
    setlocale(LC_CTYPE, "");
    if (app_opts_parse(&o, argc, argv, &err) != 0) {
        front_say(err.msg);
        code = APP_EXIT_USAGE;
    } else if (o.help) {
        app_opts_help(stdout, o.verb);
    } else if (o.version) {
        app_opts_version(stdout);
    } else {
        code = run(&o);
    }
    app_opts_fini(&o);
    return code;
}

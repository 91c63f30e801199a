/* SPDX-License-Identifier: MIT
 * --help and --version, out of the tables. */
#include <string.h>

#include "app/opts_table.h"

#define HELP_COL 30 /* where the explanations begin */

const char *
app_verb_name(enum app_verb verb)
{
    return opts_verbs[verb].name;
}

void
app_opts_version(FILE *f)
{
    fprintf(f, "parley %s\n", APP_VERSION);
}

/* Explanation at its column; on a line of its own where the left part is too long. */
static void
put_row(FILE *f, const char *left, const char *right)
{
    int len = (int)strlen(left);
    if (len >= HELP_COL - 1)
        fprintf(f, "%s\n%*s%s\n", left, HELP_COL, "", right);
    else
        fprintf(f, "%-*s%s\n", HELP_COL, left, right);
}

static void
put_choices(char *out, size_t size, const struct opts_def *d)
{
    for (const char *w = d->choices; *w;) {
        size_t n = strcspn(w, " "), used = strlen(out);
        bool reserved = d->reserved && strlen(d->reserved) == n && !memcmp(d->reserved, w, n);
        if (!reserved)
            snprintf(out + used, size - used, "%s%.*s", w == d->choices ? "" : "|", (int)n, w);
        w += n;
        w += *w == ' ';
    }
}

/* "  -m, --model FILE", synonyms beyond the second left out. */
static void
put_option(FILE *f, const struct opts_def *d)
{
    char left[120] = "";
    int first = (int)strcspn(d->names, " ");
    const char *second = d->names[first] ? d->names + first + 1 : "";
    bool long_only = d->names[1] == '-';
    snprintf(left, sizeof(left), "%s%.*s%s%.*s%s", long_only ? "      " : "  ", first, d->names,
             *second ? ", " : "", (int)strcspn(second, " "), second, d->arg ? " " : "");
    if (d->choices)
        put_choices(left, sizeof(left), d);
    else if (d->arg)
        snprintf(left + strlen(left), sizeof(left) - strlen(left), "%s", d->arg);
    put_row(f, left, d->help);
}

static void
put_options(FILE *f, enum app_verb verb)
{
    for (int g = 0; g < OPTS_GROUP_HIDDEN; g++) {
        bool titled = false;
        for (size_t i = 0; i < opts_n_defs; i++) {
            const struct opts_def *d = &opts_defs[i];
            if (d->group != (enum opts_group)g || !(d->verbs & OPTS_VERB(verb)))
                continue;
            if (!titled)
                fprintf(f, "\n%s\n", opts_group_titles[g]);
            titled = true;
            put_option(f, d);
        }
    }
}

/* Verbs that do not run a model: sampling and the engine mean nothing to them. */
static bool
is_light(enum app_verb verb)
{
    return verb != APP_VERB_RESUME && verb != APP_VERB_SCORE && verb != APP_VERB_BENCH;
}

static bool
reads_model(enum app_verb verb)
{
    return verb == APP_VERB_TOKENIZE || verb == APP_VERB_DETOKENIZE || verb == APP_VERB_INFO;
}

static bool
writes_json(enum app_verb verb)
{
    return verb == APP_VERB_LS || verb == APP_VERB_SHOW || verb == APP_VERB_SEARCH ||
           verb == APP_VERB_EXPORT || verb == APP_VERB_INFO;
}

/* Of the options that any command line may hold only those that do something here. */
static void
put_options_light(FILE *f, enum app_verb verb)
{
    fputs("\nOptions\n", f);
    for (size_t i = 0; i < opts_n_defs; i++) {
        const struct opts_def *d = &opts_defs[i];
        bool own = d->verbs != OPTS_ANY && (d->verbs & OPTS_VERB(verb));
        bool model = d->id == APP_OPT_MODEL && reads_model(verb);
        bool json = d->id == APP_OPT_JSON && writes_json(verb);
        if (own || model || json || d->id == APP_OPT_HELP)
            put_option(f, d);
    }
}

static void
put_verb(FILE *f, enum app_verb verb)
{
    const struct opts_verb *v = &opts_verbs[verb];
    fprintf(f, "parley %s %s\n%s\n", v->name, v->args, v->help);
    if (v->detail)
        fprintf(f, "\n%s", v->detail);
    if (is_light(verb))
        put_options_light(f, verb);
    else
        put_options(f, verb);
}

static void
put_program(FILE *f)
{
    fputs("parley [-m MODEL] [-C | --session NAME] [-sys TEXT]    chat\n"
          "parley -p TEXT | -f FILE                               one answer\n"
          "parley --jsonl                                         a chat for programs\n"
          "parley COMMAND ...\n"
          "\nA chat with a language model on this computer, which never reads the same words "
          "twice.\n"
          "\nCommands (parley COMMAND --help says more)\n",
          f);
    for (size_t i = 1; i < APP_VERB_COUNT; i++) {
        char left[80];
        snprintf(left, sizeof(left), "  %s %s", opts_verbs[i].name, opts_verbs[i].args);
        put_row(f, left, opts_verbs[i].help);
    }
    put_options(f, APP_VERB_CHAT);
    fputs("\nFigures\n"
          "  TTFT    from Enter pressed, or a message taken from the queue, to the first token:\n"
          "          tokenize + restore + prefill + the first decode\n"
          "  t/s     (tokens of the reply - 1) / (last token - first token)\n"
          "  ITL     the time between two tokens\n"
          "  reuse   tokens of the prompt whose keys and values were there already, of all\n"
          "\nExit status\n"
          "  0 ok  1 failure, no match  2 usage  65 model or database that cannot be used\n"
          "  66 model or session not found  70 internal error  73 cannot create  74 I/O\n"
          "  75 database busy  78 configuration  130 interrupted\n",
          f);
}

void
app_opts_help(FILE *f, enum app_verb verb)
{
    if (verb == APP_VERB_CHAT)
        put_program(f);
    else
        put_verb(f, verb);
}

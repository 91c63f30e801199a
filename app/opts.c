/* SPDX-License-Identifier: MIT
 * The command line, from two const tables (app/opts_table.c). */
#include "app/opts.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "app/opts_table.h"
#include "engine/base/num.h"

enum app_exit
app_exit_of(int status)
{
    switch (status) {
    case PLY_OK: return APP_EXIT_OK;
    case PLY_EFORMAT:
    case PLY_EUNSUPPORTED: return APP_EXIT_CORRUPT;
    case PLY_ENOENT: return APP_EXIT_NOT_FOUND;
    case PLY_EINTERNAL: return APP_EXIT_INTERNAL;
    case PLY_ECREATE: return APP_EXIT_CANT_CREATE;
    case PLY_EIO: return APP_EXIT_IO;
    case PLY_EBUSY: return APP_EXIT_BUSY;
    case PLY_ECANCELLED: return APP_EXIT_SIGINT;
    default: return APP_EXIT_FAILURE;
    }
}

/* ---- names ----------------------------------------------------------------------------- */

/* Whether name[0..len) is one of the space-separated words of list; its number in *index. */
static bool
word_in(const char *list, const char *name, size_t len, unsigned *index)
{
    unsigned i = 0;
    for (const char *w = list; *w; i++) {
        size_t n = strcspn(w, " ");
        if (n == len && memcmp(w, name, n) == 0) {
            *index = i;
            return true;
        }
        w += n;
        w += *w == ' ';
    }
    return false;
}

/* Edit distance, two neighbours that changed places counting as one; both short. */
static size_t
distance(const char *a, size_t n, const char *b, size_t m)
{
    enum { LEN_MAX = 31 };
    size_t row[3][LEN_MAX + 1];
    if (n > LEN_MAX || m > LEN_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t d = last[j - 1] + (a[i - 1] != b[j - 1]);
            d = PLY_MIN(d, PLY_MIN(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d = PLY_MIN(d, before[j - 2] + 1);
            now[j] = d;
        }
    }
    return row[n % 3][m];
}

/* The best of the words of list so far. */
static void
nearest_of(const char *list, const char *name, size_t len, struct opts_near *near)
{
    for (const char *w = list; *w;) {
        size_t n = strcspn(w, " ");
        size_t d = distance(name, len, w, n);
        /* Also what was only begun: --pres for --presence-penalty. */
        if (len >= 4 && n > len && memcmp(w, name, len) == 0)
            d = 1;
        if (d < near->distance) {
            *near = (struct opts_near){d, n, w};
        }
        w += n;
        w += *w == ' ';
    }
}

/* How far off a name of that length may be and still be taken for a slip. */
static size_t
typos_max(size_t len)
{
    return len < 3 ? 0 : 1 + len / 5;
}

static int
fail_near(struct ply_err *err, const char *what, const char *name, size_t len,
          const struct opts_near *near)
{
    if (near->word && near->distance <= typos_max(len))
        return ply_fail(err, PLY_EINVAL, "%s '%.*s'; did you mean '%.*s'?", what, (int)len, name,
                        (int)near->len, near->word);
    return ply_fail(err, PLY_EINVAL, "%s '%.*s'; see parley --help", what, (int)len, name);
}

static const struct opts_def *
option_find(const char *name, size_t len, struct ply_err *err)
{
    unsigned index;
    struct opts_near near = {SIZE_MAX, 0, NULL};
    for (size_t i = 0; i < opts_n_defs; i++)
        if (word_in(opts_defs[i].names, name, len, &index))
            return &opts_defs[i];
    for (size_t i = 0; i < opts_n_defs; i++)
        nearest_of(opts_defs[i].names, name, len, &near);
    fail_near(err, "unknown option", name, len, &near);
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------- */

static int
set_number(const struct opts_def *d, const char *name, const char *value, void *field,
           struct ply_err *err)
{
    char *end;
    errno = 0;
    bool whole = d->kind == OPTS_INT;
    double v = whole ? (double)strtoll(value, &end, 10) : strtod(value, &end);
    /* strtod also reads "nan", "inf" and hexadecimal. */
    if (end == value || *end || strspn(value, "+-.0123456789eE") != strlen(value))
        return ply_fail(err, PLY_EINVAL, "%s %s: not a %snumber", name, value,
                        whole ? "whole " : "");
    if (!(v >= d->min && v <= d->max))
        return ply_fail(err, PLY_EINVAL, "%s %s: must be from %.12g to %.12g", name, value, d->min,
                        d->max);
    if (whole)
        *(int *)field = (int)v;
    else
        *(float *)field = (float)v;
    return PLY_OK;
}

static int
set_seed(const char *name, const char *value, uint64_t *seed, struct ply_err *err)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(value, &end, 10);
    if (end == value || *end || errno || value[strspn(value, "0123456789")])
        return ply_fail(err, PLY_EINVAL,
                        "%s %s: must be a whole number from 0 to %llu, or -1 "
                        "for a new one each time",
                        name, value, ULLONG_MAX);
    *seed = v;
    return PLY_OK;
}

static int
set_choice(const struct opts_def *d, const char *name, const char *value, unsigned *field,
           struct ply_err *err)
{
    if (!word_in(d->choices, value, strlen(value), field))
        return ply_fail(err, PLY_EINVAL, "%s %s: must be one of: %s", name, value, d->choices);
    unsigned index;
    if (d->reserved && word_in(d->reserved, value, strlen(value), &index))
        return ply_fail(err, PLY_EINVAL, "%s %s is reserved: that part is not built yet", name,
                        value);
    return PLY_OK;
}

static int
list_add(struct app_opts *o, const char *value, struct ply_err *err)
{
    const char **stops = reallocarray(o->stops, o->n_stops + 1, sizeof(*stops));
    if (!stops)
        return ply_fail(err, PLY_ENOMEM, "no memory for the command line");
    o->stops = stops;
    stops[o->n_stops++] = value;
    return PLY_OK;
}

static int
set_value(struct app_opts *o, const struct opts_def *d, const char *name, const char *value,
          struct ply_err *err)
{
    void *field = (char *)o + d->field;
    unsigned choice;
    int rc = PLY_OK;
    switch (d->kind) {
    case OPTS_FLAG: *(bool *)field = true; break;
    case OPTS_TEXT: *(const char **)field = value; break;
    case OPTS_INT:
    case OPTS_FLOAT: rc = set_number(d, name, value, field, err); break;
    case OPTS_SEED:
        /* -1, as other programs write it, is the same as no seed. */
        if (strcmp(value, "-1") == 0)
            return PLY_OK;
        rc = set_seed(name, value, field, err);
        break;
    case OPTS_SWITCH:
        rc = set_choice(d, name, value, &choice, err);
        if (!rc)
            *(bool *)field = choice == 1;
        break;
    case OPTS_CHOICE: rc = set_choice(d, name, value, field, err); break;
    case OPTS_LIST: rc = list_add(o, value, err); break;
    case OPTS_RESERVED:
        return ply_fail(err, PLY_EINVAL, "%s is reserved: that part is not built yet", name);
    }
    if (!rc)
        o->given |= UINT64_C(1) << d->id;
    return rc;
}

/* One option at argv[*i]; *i moves past a value of its own. */
static int
option_parse(struct app_opts *o, int argc, char **argv, int *i, struct ply_err *err)
{
    const char *arg = argv[*i], *value = NULL;
    size_t len = strcspn(arg, "=");
    const struct opts_def *d = option_find(arg, len, err);
    if (!d)
        return PLY_EINVAL;
    char name[40];
    snprintf(name, sizeof(name), "%.*s", (int)PLY_MIN(len, sizeof(name) - 1), arg);
    bool takes = d->arg != NULL;
    if (arg[len] == '=')
        value = arg + len + 1;
    if (!takes && value)
        return ply_fail(err, PLY_EINVAL, "%s takes no value", name);
    if (takes && !value) {
        if (*i + 1 >= argc)
            return ply_fail(err, PLY_EINVAL, "%s needs a value: %s %s", name, name, d->arg);
        value = argv[++*i];
    }
    return set_value(o, d, name, value, err);
}

/* ---- the whole line -------------------------------------------------------------------- */

static int
verb_parse(struct app_opts *o, const char *word, struct ply_err *err)
{
    struct opts_near near = {SIZE_MAX, 0, NULL};
    for (size_t i = 1; i < APP_VERB_COUNT; i++) {
        if (strcmp(word, opts_verbs[i].name) == 0) {
            o->verb = (enum app_verb)i;
            return PLY_OK;
        }
        nearest_of(opts_verbs[i].name, word, strlen(word), &near);
    }
    if (strcmp(word, "help") == 0) {
        o->help = true;
        return PLY_OK;
    }
    if (near.distance <= typos_max(strlen(word)))
        return fail_near(err, "unknown command", word, strlen(word), &near);
    return ply_fail(err, PLY_EINVAL,
                    "unknown command '%.40s'; for one answer use parley -p TEXT, see parley --help",
                    word);
}

/* Options that say nothing to this verb would be ignored in silence. */
static int
check_belongs(const struct app_opts *o, struct ply_err *err)
{
    for (size_t i = 0; i < opts_n_defs; i++) {
        const struct opts_def *d = &opts_defs[i];
        if (!app_opts_has(o, d->id) || (d->verbs & OPTS_VERB(o->verb)))
            continue;
        int len = (int)strcspn(d->names, " ");
        if (o->verb == APP_VERB_CHAT) {
            size_t v = 0;
            while (!(d->verbs & OPTS_VERB(v)))
                v++;
            return ply_fail(err, PLY_EINVAL, "%.*s goes with a command, such as parley %s", len,
                            d->names, opts_verbs[v].name);
        }
        return ply_fail(err, PLY_EINVAL, "parley %s has no use for %.*s", opts_verbs[o->verb].name,
                        len, d->names);
    }
    return PLY_OK;
}

static int
check_together(const struct app_opts *o, struct ply_err *err)
{
    static const enum app_opt never[][2] = {
        {APP_OPT_CONTINUE, APP_OPT_SESSION}, {APP_OPT_SYS, APP_OPT_SYS_FILE},
        {APP_OPT_JSONL, APP_OPT_PROMPT},     {APP_OPT_JSONL, APP_OPT_FILE},
        {APP_OPT_JSONL, APP_OPT_PLAIN},      {APP_OPT_RAW, APP_OPT_TEMPLATE},
    };
    for (size_t i = 0; i < PLY_COUNT(never); i++) {
        if (!app_opts_has(o, never[i][0]) || !app_opts_has(o, never[i][1]))
            continue;
        const char *a = opts_defs[never[i][0]].names, *b = opts_defs[never[i][1]].names;
        return ply_fail(err, PLY_EINVAL, "%.*s and %.*s cannot go together", (int)strcspn(a, " "),
                        a, (int)strcspn(b, " "), b);
    }
    bool once = app_opts_has(o, APP_OPT_PROMPT) || app_opts_has(o, APP_OPT_FILE);
    if (o->verb == APP_VERB_CHAT && o->json && !once)
        return ply_fail(err, PLY_EINVAL,
                        "--json goes with -p, -f or a command; a chat in JSON is "
                        "--jsonl");
    return PLY_OK;
}

static int
check_args(const struct app_opts *o, struct ply_err *err)
{
    const struct opts_verb *v = &opts_verbs[o->verb];
    if (o->n_args < v->args_min)
        return ply_fail(err, PLY_EINVAL, "parley %s needs more: parley %s %s", v->name, v->name,
                        v->args);
    if (o->n_args > v->args_max)
        return ply_fail(err, PLY_EINVAL, "parley %s has no use for '%.40s'", v->name,
                        o->args[v->args_max]);
    return PLY_OK;
}

static int
arg_parse(struct app_opts *o, char *arg, struct ply_err *err)
{
    if (o->verb == APP_VERB_CHAT)
        return verb_parse(o, arg, err);
    o->args[o->n_args++] = arg;
    return PLY_OK;
}

int
app_opts_parse(struct app_opts *o, int argc, char **argv, struct ply_err *err)
{
    *o = (struct app_opts){
        .n_max = -1,
        .kv_cache = PLY_KV_CACHE_RAM,
        .draft = true,
        .top = 8,
        .batch = 1,
    };
    o->args = calloc((size_t)argc + 1, sizeof(*o->args));
    if (!o->args)
        return ply_fail(err, PLY_ENOMEM, "no memory for the command line");
    int rc = PLY_OK;
    bool options = true;
    for (int i = 1; i < argc && !rc; i++) {
        if (options && strcmp(argv[i], "--") == 0)
            options = false;
        else if (options && argv[i][0] == '-' && argv[i][1])
            rc = option_parse(o, argc, argv, &i, err);
        else
            rc = arg_parse(o, argv[i], err);
    }
    if (rc || o->help || o->version)
        return rc;
    rc = check_belongs(o, err);
    if (!rc)
        rc = check_together(o, err);
    if (!rc)
        rc = check_args(o, err);
    return rc;
}

void
app_opts_fini(struct app_opts *o)
{
    free(o->args);
    free(o->stops);
    o->args = NULL;
    o->stops = NULL;
    o->n_args = o->n_stops = 0;
}

void
app_opts_sampling(const struct app_opts *o, struct ply_sampling *p)
{
    const struct ply_sampling *s = &o->sampling;
    if (app_opts_has(o, APP_OPT_TEMP))
        p->temp = s->temp;
    if (app_opts_has(o, APP_OPT_TOP_K))
        p->top_k = s->top_k;
    if (app_opts_has(o, APP_OPT_TOP_P))
        p->top_p = s->top_p;
    if (app_opts_has(o, APP_OPT_MIN_P))
        p->min_p = s->min_p;
    if (app_opts_has(o, APP_OPT_REPEAT_PENALTY))
        p->repeat_penalty = s->repeat_penalty;
    if (app_opts_has(o, APP_OPT_PRESENCE_PENALTY))
        p->presence_penalty = s->presence_penalty;
    if (app_opts_has(o, APP_OPT_FREQUENCY_PENALTY))
        p->frequency_penalty = s->frequency_penalty;
    if (app_opts_has(o, APP_OPT_REPEAT_LAST_N))
        p->penalty_window = s->penalty_window;
    if (app_opts_has(o, APP_OPT_SEED))
        p->seed = s->seed;
}

/* SPDX-License-Identifier: MIT
 * The command line. One const table of options and one of verbs: parsing, --help and what
 * shells complete all come from them. Nothing here opens a file or reads the environment. */
#ifndef APP_OPTS_H
#define APP_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/base/err.h"
#include "engine/ply.h"

/* Exit codes are part of the contract with scripts. */
enum app_exit {
    APP_EXIT_OK = 0,
    APP_EXIT_FAILURE = 1, /* also: a search without a match */
    APP_EXIT_USAGE = 2,
    APP_EXIT_CORRUPT = 65,    /* a model or database that cannot be used */
    APP_EXIT_NOT_FOUND = 66,  /* model or session */
    APP_EXIT_INTERNAL = 70,
    APP_EXIT_CANT_CREATE = 73,
    APP_EXIT_IO = 74,
    APP_EXIT_BUSY = 75,
    APP_EXIT_CONFIG = 78,
    APP_EXIT_SIGINT = 130,
};
/* The exit code for an enum ply_status. PLY_EINVAL gives FAILURE: only the command line's own
 * faults are USAGE. */
enum app_exit app_exit_of(int status);

enum app_verb {
    APP_VERB_CHAT, /* no verb: full screen, --plain, --jsonl, or one-shot with -p or -f */
    APP_VERB_RESUME,
    APP_VERB_LS,
    APP_VERB_SHOW,
    APP_VERB_SEARCH,
    APP_VERB_RENAME,
    APP_VERB_RM,
    APP_VERB_EXPORT,
    APP_VERB_IMPORT,
    APP_VERB_TOKENIZE,
    APP_VERB_DETOKENIZE,
    APP_VERB_SCORE,
    APP_VERB_BENCH,
    APP_VERB_CACHE,
    APP_VERB_INFO,
    APP_VERB_DOCTOR,
    APP_VERB_COUNT,
};

enum app_opt {
    APP_OPT_MODEL, APP_OPT_CONTINUE, APP_OPT_SESSION, APP_OPT_SYS, APP_OPT_SYS_FILE,
    APP_OPT_PLAIN, APP_OPT_PROMPT, APP_OPT_FILE, APP_OPT_JSONL, APP_OPT_HASH,
    APP_OPT_CTX, APP_OPT_THREADS, APP_OPT_N, APP_OPT_TEMP, APP_OPT_TOP_K, APP_OPT_TOP_P,
    APP_OPT_MIN_P, APP_OPT_REPEAT_PENALTY, APP_OPT_PRESENCE_PENALTY, APP_OPT_FREQUENCY_PENALTY,
    APP_OPT_REPEAT_LAST_N, APP_OPT_SEED, APP_OPT_STOP, APP_OPT_TEMPLATE, APP_OPT_RAW,
    APP_OPT_ISA, APP_OPT_KV_TYPE, APP_OPT_PRECISION, APP_OPT_KV_CACHE, APP_OPT_DRAFT,
    APP_OPT_JSON, APP_OPT_TRACE, APP_OPT_FORCE_IDS,
    APP_OPT_TOP, APP_OPT_CHUNK, APP_OPT_BATCH, APP_OPT_REUSE, APP_OPT_OUTPUT, APP_OPT_LIMIT,
    APP_OPT_SPEC, APP_OPT_SCREEN, APP_OPT_VERIFY, /* reserved: always a usage error */
    APP_OPT_HELP, APP_OPT_VERSION,
    APP_OPT_COUNT,
};

/* Strings point into argv. A field whose option was not given holds the default named here;
 * app_opts_has() tells the two apart. */
struct app_opts {
    enum app_verb verb;
    uint64_t given; /* bit APP_OPT_* */
    char **args;    /* [n_args] what is neither verb nor option */
    size_t n_args;

    const char *model;      /* NULL */
    bool continue_last;     /* -C */
    const char *session;    /* NULL */
    const char *sys;        /* NULL; "" removes a template's own system text */
    const char *sys_file;   /* NULL */
    const char *prompt;     /* NULL; -p */
    const char *file;       /* NULL; -f */
    bool plain, jsonl, json, hash, raw;

    int n_ctx;     /* 0: the model's own */
    int n_threads; /* 0: as many as there are */
    int n_max;     /* -1: until the reply ends */
    struct ply_sampling sampling; /* only the fields that were given mean anything */
    const char **stops;           /* [n_stops]; --stop may be repeated */
    size_t n_stops;
    const char *chat_template; /* NULL: the file's own */
    enum ply_isa isa;             /* AUTO */
    enum ply_kv_type kv_type;     /* F16 */
    enum ply_precision precision; /* FAST */
    enum ply_kv_cache kv_cache;   /* RAM */
    bool draft;                   /* true; jsonl drafts only when it was given */
    const char *trace, *force_ids; /* NULL: files */

    int top, chunk, batch; /* score: 8, 0 (the engine's choice), 1 */
    bool reuse;            /* score: false */
    const char *output;    /* export: NULL, standard output */
    int limit;             /* ls, search: 0, no limit */

    bool help, version;
};

/* Fills *o. On failure PLY_EINVAL with a line that names the argument and, where there is one,
 * the nearest right spelling or the range: exit APP_EXIT_USAGE. app_opts_fini in either case. */
int app_opts_parse(struct app_opts *o, int argc, char **argv, struct ply_err *err);
void app_opts_fini(struct app_opts *o);
static inline bool
app_opts_has(const struct app_opts *o, enum app_opt opt)
{
    return (o->given >> opt) & 1;
}
/* Lay the sampling options that were given over *p. */
void app_opts_sampling(const struct app_opts *o, struct ply_sampling *p);

/* The help of a verb, or with APP_VERB_CHAT of the program. */
void app_opts_help(FILE *f, enum app_verb verb);
void app_opts_version(FILE *f); /* "parley 0.1.0\n" */
const char *app_verb_name(enum app_verb verb); /* "" for CHAT */

#endif

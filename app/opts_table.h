/* SPDX-License-Identifier: MIT
 * The tables behind app/opts.h: every option and every verb, once. */
#ifndef APP_OPTS_TABLE_H
#define APP_OPTS_TABLE_H

#include <stddef.h>

#include "app/opts.h"

enum opts_kind {
    OPTS_FLAG,     /* bool, becomes true */
    OPTS_TEXT,     /* const char * */
    OPTS_INT,      /* int, within min and max */
    OPTS_FLOAT,    /* float, the same */
    OPTS_SEED,     /* uint64_t */
    OPTS_SWITCH,   /* bool, "off on" */
    OPTS_CHOICE,   /* an enum whose values are the numbers of choices' words */
    OPTS_LIST,     /* stops, may be repeated */
    OPTS_RESERVED, /* always refused */
};

enum opts_group {
    OPTS_GROUP_CHAT,
    OPTS_GROUP_MODEL,
    OPTS_GROUP_SAMPLING,
    OPTS_GROUP_OUTPUT,
    OPTS_GROUP_ENGINE,
    OPTS_GROUP_HIDDEN,
    OPTS_GROUP_COUNT,
};
extern const char *const opts_group_titles[OPTS_GROUP_COUNT];

#define OPTS_VERB(v) (1u << (v))
#define OPTS_ANY (~0u)

struct opts_def {
    enum app_opt id;
    const char *names; /* separated by spaces, the one to be shown first */
    const char *arg;   /* what its value is called; NULL: it takes none */
    enum opts_kind kind;
    size_t field; /* offset in struct app_opts */
    double min, max;
    const char *choices;  /* words */
    const char *reserved; /* those of them that are refused */
    unsigned verbs;       /* OPTS_VERB bits: where it may stand */
    enum opts_group group;
    const char *help;
};
extern const struct opts_def opts_defs[]; /* in the order of enum app_opt */
extern const size_t opts_n_defs;

struct opts_verb {
    const char *name;
    const char *args; /* how its arguments are called */
    size_t args_min, args_max;
    const char *help;   /* one line */
    const char *detail; /* more, in the verb's own help; may be NULL */
};
extern const struct opts_verb opts_verbs[APP_VERB_COUNT];

/* The word of a list that is nearest to one that was typed. */
struct opts_near {
    size_t distance, len;
    const char *word;
};

#endif

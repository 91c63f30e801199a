/* SPDX-License-Identifier: MIT
 * One reply, from the ids of a prompt to the ids that are kept of it. Runs on the thread that
 * owns the engine and knows nothing of threads, sessions or screens: what it has to say on the
 * way it says through hooks.
 *
 * The ids kept are those the sequence may be asked for again. The last of them is not evaluated
 * yet when the reply ends by an end id, by -n or by cancel. A stop string takes back what was
 * drawn after it: ids that end at or before it stay, one that straddles it is dropped and its
 * leading bytes are encoded anew, and the sequence is rolled back to the ids that stayed. In the
 * transcript of a base model the newlines that end a reply belong to what closes it, so ids that
 * are newlines alone are cut from the end. */
#ifndef APP_GEN_H
#define APP_GEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/ply.h"

enum gen_finish { GEN_STOP, GEN_LENGTH, GEN_CANCELLED, GEN_ERROR };
const char *gen_finish_name(enum gen_finish f); /* "stop", "length", "cancelled", "error" */

#define GEN_NO_LIMIT SIZE_MAX

struct gen_params {
    struct ply_sampling sampling;
    uint64_t candidate;       /* which of several answers to the same prompt: its own draws */
    size_t n_max;             /* ids at most, GEN_NO_LIMIT for what the context holds */
    const char *const *stops; /* [n_stops], added to the template's */
    size_t n_stops;
    const struct ply_ids *forced; /* these ids as if they were drawn; NULL: draw */
    bool cold;                    /* reuse nothing of what is cached */
    bool compare;                 /* time the prompt with what is cached first, then without it */
    bool want_hash;
};

struct gen_hooks {
    void *user;
    /* n of n_total prompt ids that had to be evaluated are. */
    void (*progress)(void *user, size_t n, size_t n_total);
    /* Text that may be shown, whole characters, perhaps none; and the ids whose text is out. */
    void (*text)(void *user, const char *text, size_t len, const int32_t *ids, size_t n_ids);
};

struct gen_result {
    enum gen_finish finish;
    struct ply_ids ids;  /* kept, the end id included */
    struct ply_buf text; /* what was shown */
    struct ply_sync_report report;
    /* app_now_ms(): the prompt's turn came, it was evaluated, the first id was drawn and the last
     * that is kept.
     * 0: it never came so far. */
    double t_begun, t_prefilled, t_first, t_last;
    double *t_ids;        /* [ids.n] the same for each id that is kept */
    uint64_t prompt_hash; /* of the logits the first id was drawn from, if wanted */
    double compare_ms;    /* of the prompt with the cache; < 0: not compared */
    size_t compare_evaluated;
    bool compare_equal;      /* the logits are the same, bit for bit */
    double compare_spent_ms; /* what comparing took, before t_begun */
    struct ply_err err;      /* with GEN_ERROR */
};

void gen_result_fini(struct gen_result *r);

/* prompt: n >= 1 ids that leave room for one more. sampler: of the sequence's vocabulary. The
 * result is filled in any case; nothing is drawn when the prompt could not be evaluated. */
void gen_run(struct ply_engine *e, struct ply_seq *seq, struct ply_sampler *sampler,
             const int32_t *prompt, size_t n_prompt, const struct gen_params *params,
             const struct gen_hooks *hooks, struct gen_result *r);

#endif

/* SPDX-License-Identifier: MIT
 * What a turn has to say for itself when it is over, and how that is put: as numbers, as the
 * JSON object of --jsonl and --json, as one line for people.
 *
 * Counting: n_prompt = live + ram + disk + evaluated + drafted. Times are milliseconds; a figure
 * that has no meaning for this turn is negative, so that none is ever infinite or not a number. */
#ifndef APP_REPORT_H
#define APP_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/gen.h"
#include "engine/ply.h"

struct chat;

struct report {
    enum gen_finish finish;
    const char *error; /* with GEN_ERROR, else NULL */
    const char *text;  /* shown; text and ids live until the callback returns */
    size_t len;
    const int32_t *ids; /* kept */
    size_t n_ids;
    size_t n_prompt, live, ram, disk, evaluated, drafted;
    double ttft_ms;                                        /* the request to the first text shown */
    double tokenize_ms, restore_ms, prefill_ms, decode_ms; /* parts of it */
    double predicted_ms;                                   /* first id drawn to the last */
    size_t n_predicted;
    double tok_s; /* (n - 1) / predicted_ms */
    double itl_ms, itl_p95_ms;
    enum ply_reason reason;
    char reason_text[200];
    int64_t session, message; /* 0: not stored */
    bool has_hash;
    uint64_t prompt_hash;
    bool compared;       /* /cold: this turn ran without the cache, and the prompt also with it */
    double warm_ttft_ms; /* what it would have been */
    size_t warm_evaluated;
    bool warm_equal; /* the first logits agree, bit for bit */
};

/* Fills reason and reason_text from the engine's reason and what is known of the conversation.
 * diverged_msg: index in chat_msgs() of the message reuse stopped in; n_msgs of them. */
void report_reason(struct report *r, const struct ply_sync_report *sync, const struct chat *chat,
                   size_t diverged_msg, size_t n_msgs, bool cache_off);

/* tok/s by the one definition there is; negative when it has no meaning. */
double report_rate(size_t n, double ms);

json_t *report_json(const struct report *r);
/* "ttft 84 ms, 41.7 tokens/s, 212 tokens, reused 318 of 331" */
void report_line(const struct report *r, char *out, size_t size);
/* "without the cache 1.84 s, with it 0.09 s: ..." ; for a compared turn */
void report_compare_line(const struct report *r, char *out, size_t size);
/* "84 ms", "1.84 s" */
void report_ms(double ms, char *out, size_t size);

/* A JSON string of any bytes: what is ill-formed becomes U+FFFD. */
json_t *report_json_text(const char *s, size_t len);
/* One JSON value as a line, written whole; false on a write error (errno). */
bool report_write_json(int fd, const json_t *v);

#endif

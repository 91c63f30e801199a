/* SPDX-License-Identifier: MIT
 * The engine thread. It alone touches the engine, its sequence and the sampler; the main thread
 * sends requests and gets events, by two queues. A request is answered in order. A turn takes
 * two requests, so that the program can store the message (or refuse it) between them:
 *
 *     worker_open    -> OPENED or OPEN_FAILED
 *     worker_render  -> RENDERED           the conversation as ids: how many, is there room
 *     worker_start   -> PREFILL* TEXT* ENDED
 *
 * worker_cancel() makes the running evaluation end within a layer; the turn still ends with
 * ENDED. It is lost only if the turn is over. All functions on the main thread. */
#ifndef APP_WORKER_H
#define APP_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/gen.h"
#include "engine/ply.h"

struct worker;
struct trace;

enum worker_event_kind {
    WORKER_OPENED,
    WORKER_OPEN_FAILED, /* err; there is no engine now */
    WORKER_RENDERED,    /* n_prompt, tokenize_ms; or err.code set */
    WORKER_PREFILL,     /* n of n_total */
    WORKER_TEXT,        /* text, ids */
    WORKER_ENDED,       /* result, diverged_msg */
};

struct worker_event {
    enum worker_event_kind kind;
    uint64_t turn; /* the number given to worker_render() */
    struct ply_err err;
    size_t n_prompt;
    double tokenize_ms;
    size_t n, n_total;
    struct ply_buf text;
    struct ply_ids ids;
    struct gen_result result;
    size_t diverged_msg; /* which message reuse stopped in; n_msgs: after the last */
};

/* Ids to be taken for the replies of this process instead of drawing: --force-ids. */
struct worker_forced {
    struct ply_ids *lines; /* [n] */
    size_t n;
};

struct worker_opts {
    struct worker_forced forced; /* taken over */
    struct trace *trace;         /* NULL: none; taken over */
    bool want_hash;
};

int worker_new(struct worker **out, const struct worker_opts *opts, struct ply_err *err);
/* Cancels what runs, waits for the thread, closes the engine. */
void worker_free(struct worker **w);

/* Readable while events wait. */
int worker_fd(const struct worker *w);
/* The next event, to be given to worker_event_free(); NULL: none now. */
struct worker_event *worker_take(struct worker *w);
/* The same, but waits for one. */
struct worker_event *worker_wait(struct worker *w);
void worker_event_free(struct worker_event **ev);

/* Close the engine there is and load a model. path and opts are copied. */
void worker_open(struct worker *w, const char *path, const struct ply_engine_opts *opts);
/* A request to open has not been answered yet; with several, the last one's answer counts. */
bool worker_is_opening(const struct worker *w);
/* After OPENED and until the next worker_open(): what was loaded. NULL: nothing is. */
const struct ply_info *worker_info(struct worker *w);
const struct ply_vocab *worker_vocab(struct worker *w);
/* The KV cache's figures as of the end of the last turn. */
struct ply_kv_stats worker_kv_stats(struct worker *w);

/* Messages are copied. flags: enum ply_chat_flags. Forgets an earlier cancel. */
void worker_render(struct worker *w, uint64_t turn, const struct ply_msg *msgs, size_t n,
                   unsigned flags);
/* Evaluate what was rendered last and generate. stops is copied; params->forced is the
 * worker's own matter. */
void worker_start(struct worker *w, uint64_t turn, const struct gen_params *params);
void worker_cancel(struct worker *w);

#endif

/* SPDX-License-Identifier: MIT
 * A turn: the one state machine behind the screen, --plain, --jsonl and one-shots.
 *
 *     IDLE --turn_send--> RESTORE --> PREFILL --> GENERATE --> IDLE
 *                            \___________\___________\-stop-> STOPPING --> IDLE
 *
 * It is a transaction on the conversation. The message is stored before the prompt is evaluated;
 * a prompt that does not fit is refused before anything is stored; a turn that is stopped or
 * fails before its first id takes the message back out and leaves it as the draft. From the first
 * id on the reply is kept, stored at least once a second and once more at its end. /regen leaves
 * the old reply in place until the new one has its first id.
 *
 * Runs on the main thread. The front end sends worker events in (turn_event), calls turn_tick()
 * when the time it returned is up, and is told through struct turn_view what happens. */
#ifndef APP_TURN_H
#define APP_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/chat.h"
#include "app/report.h"
#include "app/worker.h"

enum turn_state { TURN_IDLE, TURN_RESTORE, TURN_PREFILL, TURN_GENERATE, TURN_STOPPING };

/* Called from turn_send() to turn_tick(), never from elsewhere. Any may be NULL. */
struct turn_view {
    void *user;
    void (*changed)(void *user); /* state, progress or speed: read them from struct turn */
    void (*text)(void *user, const char *text, size_t len);
    void (*sent)(void *user); /* the prompt fits: the message is stored now, and then read */
    /* Exactly one of these two ends a turn; in it turn_busy() is false already. */
    void (*ended)(void *user, const struct report *r);
    void (*refused)(void *user, const struct ply_err *err, size_t n_prompt, size_t n_room);
    void (*notice)(void *user, const char *line); /* something went wrong beside the turn */
};

struct turn_opts {
    size_t n_max;             /* GEN_NO_LIMIT */
    const char *const *stops; /* [n_stops] */
    size_t n_stops;
    bool cache_off, want_hash;
};

struct turn {
    struct chat *chat;
    struct worker *worker;
    struct turn_opts opts;
    struct turn_view view;

    enum turn_state state;
    bool cold_next; /* /cold: the next turn runs without the cache, and says what it cost */

    /* Of the running or the last turn. */
    uint64_t number;
    bool again; /* answers a message that is there already */
    bool cold;
    bool began;    /* the reply is in the path */
    size_t n_path; /* messages rendered: up to the one that is answered */
    size_t n_msgs; /* as many for the template */
    uint64_t candidate;
    double t_start, t_shown, t_saved; /* app_now_ms() */
    double tokenize_ms;
    size_t n_prompt, n_done, n_total; /* prefill progress */
    size_t n_ids;                     /* of the reply so far */
    double t_first, t_last;           /* ids that came, for the speed while it speaks */
};

void turn_init(struct turn *t, struct chat *chat, struct worker *w, const struct turn_opts *opts,
               const struct turn_view *view);

static inline bool
turn_busy(const struct turn *t)
{
    return t->state != TURN_IDLE;
}
/* Say something. t_start: app_now_ms() when the person did. PLY_EINVAL: a turn is running, no
 * model is there, or the text is too large; nothing has changed then, and no callback follows. */
int turn_send(struct turn *t, const char *text, size_t len, double t_start, struct ply_err *err);
/* Answer the last user message, again if it has an answer. */
int turn_again(struct turn *t, double t_start, struct ply_err *err);
/* End the running turn as soon as may be; the end comes as an event. */
void turn_stop(struct turn *t);
void turn_event(struct turn *t, struct worker_event *ev);
/* Stores the partial reply when it is time, and what could not be stored earlier. Returns the
 * milliseconds until it wants to be called again, -1 for never. */
int turn_tick(struct turn *t, double now);
/* tokens/s so far, negative when unknown. */
double turn_rate(const struct turn *t);

#endif

/* SPDX-License-Identifier: MIT
 * The full screen, inside: loop.c turns events into what is done, loop_show.c turns the state of
 * the program into what is seen. */
#ifndef APP_LOOP_H
#define APP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "app/app.h"
#include "ui/ui.h"

struct loop {
    struct app app;
    struct ui *ui;
    int sig; /* the signal that ends the program, or 0 */

    double t_enter;        /* when the message that runs or waits was sent; < 0: none */
    bool waits_for_model;  /* Enter was pressed before the model was there */
    int reply;             /* index of the running reply in the transcript, -1 for none */
    double t_prefill;      /* when the prompt began to be evaluated */
    enum ui_state rest;    /* what the last turn left behind: IDLE, STOPPED or FULL */
    struct ui_status last; /* the last turn's figures */
    char reason[200];      /* in words, for last */

    int64_t header_id; /* the session in the header */
    int64_t offered;   /* the session that Tab opens in an empty editor; 0: none */
    char filter[128];  /* of the session list */

    uint64_t draft_version, draft_saved;
    double t_draft; /* when the draft last changed */
};

/* ---- loop_show.c ------------------------------------------------------------------------- */

/* The whole conversation anew. */
void show_session(struct loop *l);
void show_header(struct loop *l);
void show_status(struct loop *l);
/* The message that was sent and the reply to come. */
void show_sent(struct loop *l);
void show_ended(struct loop *l, const struct report *r);
/* Nothing was said: take the message and the reply to come off the screen. */
void show_taken_back(struct loop *l);
void show_sessions(struct loop *l, bool open);
void show_help(struct loop *l);
void show_stats(struct loop *l);

#endif

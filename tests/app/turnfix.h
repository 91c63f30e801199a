/* SPDX-License-Identifier: MIT
 * For the tests of turns: a store in a folder of its own, a worker with a tiny model, a chat, and
 * a front end that writes down what it is told. */
#ifndef TEST_TURNFIX_H
#define TEST_TURNFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/turn.h"

struct turnfix {
    char dir[64], db[96];
    struct store *store;
    struct worker *worker;
    struct chat chat;
    struct turn turn;
    bool stop_when_sent; /* stop the turn between storing and evaluating */
    int stop_at_text;    /* stop it at the n-th piece; 0: never */
    /* What was heard: text since the last turn began, the rest from the start. */
    struct ply_buf text, notices;
    int n_sent, n_ended, n_refused, n_texts;
    struct report report; /* of the last turn; text, ids and error are copies */
    char error[400];
    struct ply_buf report_text;
    struct ply_ids report_ids;
    struct ply_err refusal;
    size_t room;
};

/* A generated model's path by its name without ".gguf"; a static buffer. */
const char *turnfix_model(const char *name);

struct turnfix_opts {
    const char *model;
    struct ply_engine_opts engine;
    struct turn_opts turn;
    const struct ply_ids *forced; /* [n_forced] lines for --force-ids; copied */
    size_t n_forced;
    bool no_store;
};

void turnfix_open(struct turnfix *f, const struct turnfix_opts *opts);
void turnfix_close(struct turnfix *f);
/* Take events until no turn runs. */
void turnfix_wait(struct turnfix *f);
/* Say text and wait for the end; fails the test unless the turn began. */
const struct report *turnfix_say(struct turnfix *f, const char *text);
const struct report *turnfix_again(struct turnfix *f);
/* The ids of text as user text. */
struct ply_ids turnfix_ids(struct turnfix *f, const char *text);
/* What the file holds: the conversation read by another connection. */
void turnfix_stored(struct turnfix *f, struct store_session *out);

#endif

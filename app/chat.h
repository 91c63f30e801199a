/* SPDX-License-Identifier: MIT
 * The open conversation: the session in memory, where it is stored, and what its next turn will
 * be rendered from. Knows nothing of how a turn runs (turn.h) or what is on the screen. */
#ifndef APP_CHAT_H
#define APP_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/store.h"
#include "engine/ply.h"

/* One message's bytes at most, wherever it comes from. */
#define CHAT_TEXT_MAX ((size_t)16 << 20)

struct chat {
    struct store *store; /* NULL: nothing is kept */
    struct store_session s;
    char *title_wanted; /* given to the session when it is stored; NULL: it makes its own */
    bool incomplete;    /* a save failed; the next one that succeeds makes good for it */
    bool told;          /* and that was said */
    bool moved;         /* set by a save: another process has gone on from the same place */

    /* What has changed since the last turn of this session, for the reason reuse stopped. */
    bool has_run; /* a turn has run in this process */
    bool system_changed;
    bool settings_changed;
    bool model_changed;
};

void chat_init(struct chat *c, struct store *store);
/* Saves, and gives the session up. */
void chat_fini(struct chat *c);

/* Leave the session for an empty one that keeps model, settings and system text. */
void chat_new(struct chat *c);
/* Leave the session for a stored one. On failure the open one stays open. */
int chat_open(struct chat *c, int64_t id, struct ply_err *err);
/* Store what is in memory. A failure is told once, in err, until a save has succeeded again; it
 * loses nothing, and is to be tried again while c->incomplete. */
int chat_save(struct chat *c, struct ply_err *err);

void chat_system_set(struct chat *c, const char *text); /* NULL: what the template adds */
void chat_draft_set(struct chat *c, const char *text, size_t len);

/* The messages to render: the system text and the first n messages of the path. A reply is given
 * by its ids if it was made with this vocabulary and template. Pointers go into the session.
 * Returns an array to be freed; *flags gets what the system text asks for. */
struct ply_msg *chat_msgs(const struct chat *c, const struct ply_info *model, size_t n,
                          size_t *n_msgs, unsigned *flags);
/* The number in the conversation of message i of chat_msgs(), from 1; 0: the system text. */
size_t chat_msg_number(const struct chat *c, size_t i);
/* The path's last user message; false when there is none. */
bool chat_last_user(const struct chat *c, size_t *index);

#endif

/* SPDX-License-Identifier: MIT
 * The running chat program, whatever its front end: store, engine thread, open conversation and
 * turn, and how they are put together when it starts, when a session is opened and when it ends. */
#ifndef APP_APP_H
#define APP_APP_H

#include <stdbool.h>

#include "app/chat.h"
#include "app/opts.h"
#include "app/paths.h"
#include "app/turn.h"
#include "app/worker.h"

struct app_view {
    struct turn_view turn;
    void *user;
    void (*session)(void *user); /* another conversation is open: show it */
    void (*model)(void *user);   /* a model was loaded, or could not be: see struct app */
};

struct app {
    const struct app_opts *opts;
    struct app_paths paths;
    struct store *store; /* NULL: nothing is kept in this run */
    struct worker *worker;
    struct chat chat;
    struct turn turn;
    struct app_view view;
    char *model_path;    /* loaded, being loaded, or missing */
    char *template_name; /* loaded with: NULL for the file's own */
    int n_ctx;           /* loaded with: 0 for the default */
    bool loading;
    struct ply_err model_err;  /* why there is no model, when nothing is loaded or being loaded */
    char *model_before;        /* to go back to when the one being loaded cannot be; or NULL */
    struct ply_err switch_err; /* why it could not: the model before is loaded again */
    bool quit;                 /* the front end is to end */
};

enum app_keep { APP_KEEP_NOTHING, APP_KEEP_SESSIONS };

/* Opens the store (if sessions are kept), finds the conversation that the command line names and
 * the model, starts the engine thread and begins to load. What goes wrong with loading comes as
 * view.model(); with it a conversation can still be read. After a failure app_close() is still
 * to be called. */
int app_open(struct app *a, const struct app_opts *o, enum app_keep keep,
             const struct app_view *view, struct ply_err *err);
/* Stops what runs, stores what is in memory. */
void app_close(struct app *a);

/* Take what the engine thread has said; the view hears of it. */
void app_events(struct app *a);
/* Wait until no model is being loaded. Returns the code of model_err or switch_err. */
int app_wait_model(struct app *a);
/* What went wrong with the last model that was asked for; "" when nothing did. */
const char *app_model_fault(const struct app *a);
/* Wait until no turn is running. */
void app_wait_turn(struct app *a);

/* All four while no turn is running. */
int app_session_open(struct app *a, int64_t id, struct ply_err *err);
void app_session_new(struct app *a);
/* A deleted session that is open leaves a new one behind. */
int app_session_delete(struct app *a, int64_t id, struct ply_err *err);
/* Any time. id 0: the open one, stored or not. */
int app_session_rename(struct app *a, int64_t id, const char *title, struct ply_err *err);
/* Switch to another model inside the conversation; name as for -m. If it cannot be loaded the
 * model before is again. */
int app_model_open(struct app *a, const char *name, struct ply_err *err);

/* The loaded model; NULL: none. */
static inline const struct ply_info *
app_model(const struct app *a)
{
    return worker_info(a->worker);
}
/* "base model: continues text", for a model without a template; "" for others. */
const char *app_banner(const struct app *a);

#endif

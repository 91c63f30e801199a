/* SPDX-License-Identifier: MIT
 * What the verbs without a conversation share: opening what they compute with. */
#ifndef APP_VERB_H
#define APP_VERB_H

#include "app/opts.h"
#include "engine/ply.h"

/* The path of the model that -m, or for `info` the argument, names. */
int verb_model_path(const struct app_opts *o, char **path, struct ply_err *err);
int verb_vocab_open(const struct app_opts *o, struct ply_vocab **v, struct ply_err *err);
/* n_ctx: 0 for what -c says, or the default. */
int verb_engine_open(const struct app_opts *o, int n_ctx, struct ply_engine **e,
                     struct ply_err *err);

#endif

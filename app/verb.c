/* SPDX-License-Identifier: MIT
 * Opening models for the verbs. */
#include "app/verb.h"

#include <stdlib.h>

#include "app/models.h"
#include "app/paths.h"

int
verb_model_path(const struct app_opts *o, char **path, struct ply_err *err)
{
    struct app_paths paths = {0};
    const char *name = o->model;
    if (!name && o->verb == APP_VERB_INFO && o->n_args > 0)
        name = o->args[0];
    int r = app_paths_init(&paths, err);
    if (r == 0)
        r = models_find(&paths, name, path, err);
    app_paths_fini(&paths);
    return r;
}

static const char *
template_name(const struct app_opts *o)
{
    return o->raw ? "raw" : o->chat_template;
}

int
verb_vocab_open(const struct app_opts *o, struct ply_vocab **v, struct ply_err *err)
{
    const struct ply_vocab_opts vo = {.chat_template = template_name(o)};
    char *path = NULL;
    int r = verb_model_path(o, &path, err);
    if (r == 0)
        r = ply_vocab_open(v, path, &vo, err);
    free(path);
    return r;
}

int
verb_engine_open(const struct app_opts *o, int n_ctx, struct ply_engine **e, struct ply_err *err)
{
    const struct ply_engine_opts eo = {.chat_template = template_name(o),
                                       .n_ctx = n_ctx ? n_ctx : o->n_ctx,
                                       .n_threads = o->n_threads,
                                       .isa = o->isa,
                                       .kv_type = o->kv_type,
                                       .precision = o->precision,
                                       .kv_cache = o->kv_cache};
    char *path = NULL;
    int r = verb_model_path(o, &path, err);
    if (r == 0)
        r = ply_engine_open(e, path, &eo, err);
    free(path);
    return r;
}

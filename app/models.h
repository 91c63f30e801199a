/* SPDX-License-Identifier: MIT
 * Which model file is meant, and which there are. A name is a path, or the name of a file in the
 * models folder, or a part of one that fits no other. */
#ifndef APP_MODELS_H
#define APP_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/paths.h"
#include "engine/base/err.h"

/* The model that is fetched when nobody asks for another. */
#define MODELS_DEFAULT "SmolLM2-135M-Instruct.Q4_1.gguf"

struct models_entry {
    char *path;
    char *name;  /* the file's name */
    char *title; /* what the file calls itself, with its quantisation; "" when unusable */
    uint64_t bytes;
    bool usable;
    char reason[400]; /* why not, one line */
};
struct models_list {
    struct models_entry *v;
    size_t n;
};

/* Every *.gguf in dir, by name. A file that cannot be used is listed with the reason, and never
 * keeps the others from being listed. A folder that is not there is an empty list. Opens each
 * file's metadata and tokenizer. */
void models_list(const char *dir, struct models_list *out);
void models_list_fini(struct models_list *l);

/* *path: the file that name stands for. name NULL: $PARLEY_MODEL, else the default model, else
 * the first usable one of the models folder. A folder stands for the models in it. PLY_ENOENT
 * with a line that says what there is and how to get one; PLY_EINVAL when several fit. */
int models_find(const struct app_paths *paths, const char *name, char **path, struct ply_err *err);

#endif

/* SPDX-License-Identifier: MIT
 * Where things are: the XDG folders. A variable that is unset, empty or relative counts as
 * unset, as the XDG specification asks. Nothing is created until it is needed. */
#ifndef APP_PATHS_H
#define APP_PATHS_H

#include <sys/types.h>

#include "engine/base/err.h"

struct app_paths {
    char *data_dir;   /* $XDG_DATA_HOME/parley, else ~/.local/share/parley */
    char *config_dir; /* $XDG_CONFIG_HOME/parley, else ~/.config/parley */
    char *cache_dir;  /* $XDG_CACHE_HOME/parley, else ~/.cache/parley */
    char *state_dir;  /* $XDG_STATE_HOME/parley, else ~/.local/state/parley */
    char *db;         /* data_dir/parley.db */
    char *models_dir; /* data_dir/models */
    char *kv_dir;     /* cache_dir/kv */
    char *history;    /* state_dir/history */
    char *log;        /* state_dir/log */
};

/* PLY_ENOENT when there is neither HOME nor a home folder in the user database. */
int app_paths_init(struct app_paths *p, struct ply_err *err);
void app_paths_fini(struct app_paths *p);

/* Make dir and its parents. What is created is 0700; dir itself becomes 0700 even where it
 * existed with more. PLY_ECREATE names the folder. */
int app_dir_make(const char *dir, struct ply_err *err);
/* Open a private file for writing: 0600, also where it existed with more. Returns the
 * descriptor, close-on-exec, or a negative status. flags: O_TRUNC, O_APPEND, O_EXCL or 0. */
int app_file_create(const char *path, int flags, struct ply_err *err);

#endif

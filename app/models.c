/* SPDX-License-Identifier: MIT
 * Finding model files. */
#include "app/models.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/mem.h"
#include "engine/ply.h"

static bool
is_gguf(const char *name)
{
    const size_t n = strlen(name);
    return n > 5 && name[0] != '.' && strcasecmp(name + n - 5, ".gguf") == 0;
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int
want_gguf(const struct dirent *d)
{
    return is_gguf(d->d_name);
}

static char *
join(const char *dir, const char *name)
{
    struct ply_buf b = {0};
    app_buf_printf(&b, "%s/%s", dir, name);
    return b.v;
}

static void
inspect(struct models_entry *e)
{
    struct ply_vocab *v = NULL;
    struct ply_err err = {0};
    struct ply_buf title = {0};
    struct stat st;
    if (stat(e->path, &st) == 0)
        e->bytes = (uint64_t)st.st_size;
    app_buf_puts(&title, "");
    e->usable = ply_vocab_open(&v, e->path, NULL, &err) == 0;
    if (e->usable) {
        const struct ply_info *info = ply_vocab_info(v);
        app_buf_printf(&title, "%s, %s", info->name, info->quant);
    } else {
        snprintf(e->reason, sizeof(e->reason), "%s", err.msg);
    }
    e->title = title.v;
    ply_vocab_close(&v);
}

/* The names alone. */
static void
scan(const char *dir, struct models_list *out)
{
    struct dirent **names;
    *out = (struct models_list){0};
    const int n = scandir(dir, &names, want_gguf, by_name);
    if (n < 0)
        return;
    out->v = app_xcalloc((size_t)n, sizeof(*out->v));
    for (int i = 0; i < n; i++) {
        struct models_entry *e = &out->v[out->n++];
        e->path = join(dir, names[i]->d_name);
        e->name = app_xstrdup(names[i]->d_name);
        free(names[i]);
    }
    free(names);
}

void
models_list(const char *dir, struct models_list *out)
{
    scan(dir, out);
    for (size_t i = 0; i < out->n; i++)
        inspect(&out->v[i]);
}

void
models_list_fini(struct models_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].path);
        free(l->v[i].name);
        free(l->v[i].title);
    }
    free(l->v);
    *l = (struct models_list){0};
}

/* " (there are: a, b)" or where to get one. */
static void
tell_names(const struct models_list *l, struct ply_buf *b)
{
    if (l->n == 0) {
        app_buf_puts(b, "; './run fetch' gets the default model, -m FILE names another");
        return;
    }
    app_buf_puts(b, "; there ");
    app_buf_puts(b, l->n == 1 ? "is " : "are ");
    for (size_t i = 0; i < l->n; i++)
        app_buf_printf(b, "%s%s", i ? ", " : "", l->v[i].name);
}

/* The default model of a folder: the one that is fetched, else the first that can be used. */
static int
default_in(const char *dir, char **path, struct ply_err *err)
{
    struct models_list l;
    struct ply_buf names = {0};
    scan(dir, &l);
    for (size_t i = 0; i < l.n && !*path; i++) {
        if (strcmp(l.v[i].name, MODELS_DEFAULT) == 0)
            *path = app_xstrdup(l.v[i].path);
    }
    for (size_t i = 0; i < l.n && !*path; i++) {
        inspect(&l.v[i]);
        if (l.v[i].usable)
            *path = app_xstrdup(l.v[i].path);
    }
    if (!*path && l.n > 0) {
        for (size_t i = 0; i < l.n; i++)
            app_buf_printf(&names, "%s%s: %s", i ? "; " : "", l.v[i].name, l.v[i].reason);
        ply_fail(err, PLY_ENOENT, "no model in '%s' can be used: %s", dir, names.v);
    } else if (!*path) {
        tell_names(&l, &names);
        ply_fail(err, PLY_ENOENT, "no model in '%s'%s", dir, names.v);
    }
    ply_buf_fini(&names);
    models_list_fini(&l);
    return *path ? PLY_OK : PLY_ENOENT;
}

/* Exact name, name without .gguf, else a part of one name, letter case aside. */
static int
named_in(const char *dir, const char *name, char **path, struct ply_err *err)
{
    struct models_list l;
    struct ply_buf names = {0};
    size_t n_fit = 0, fit = 0;
    scan(dir, &l);
    for (size_t i = 0; i < l.n; i++) {
        const size_t len = strlen(l.v[i].name);
        const bool exact =
            strcmp(l.v[i].name, name) == 0 ||
            (strlen(name) == len - 5 && strncasecmp(l.v[i].name, name, len - 5) == 0);
        if (exact) {
            n_fit = 1;
            fit = i;
            break;
        }
        if (strcasestr(l.v[i].name, name)) {
            n_fit++;
            fit = i;
        }
    }
    int r = PLY_OK;
    tell_names(&l, &names);
    if (n_fit == 0)
        r = ply_fail(err, PLY_ENOENT, "no model '%s' here or in '%s'%s", name, dir, names.v);
    else if (n_fit > 1)
        r = ply_fail(err, PLY_EINVAL, "several models fit '%s'%s", name, names.v);
    else
        *path = app_xstrdup(l.v[fit].path);
    ply_buf_fini(&names);
    models_list_fini(&l);
    return r;
}

int
models_find(const struct app_paths *paths, const char *name, char **path, struct ply_err *err)
{
    struct stat st;
    *path = NULL;
    if (!name)
        name = getenv("PARLEY_MODEL");
    if (!name || !*name)
        return default_in(paths->models_dir, path, err);
    if (stat(name, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return default_in(name, path, err);
        *path = app_xstrdup(name);
        return PLY_OK;
    }
    if (strchr(name, '/'))
        return ply_fail(err, PLY_ENOENT, "no model file '%s'", name);
    return named_in(paths->models_dir, name, path, err);
}

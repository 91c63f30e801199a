/* SPDX-License-Identifier: MIT
 * A session in memory: its strings and the messages of its path. Nothing here touches the file. */
#include <stdlib.h>
#include <string.h>

#include "app/store_priv.h"

int
store_string_set(char **s, const char *value)
{
    char *copy = value ? strdup(value) : NULL;
    if (value && !copy)
        return PLY_ENOMEM;
    free(*s);
    *s = copy;
    return PLY_OK;
}

void
store_msg_fini(struct store_msg *m)
{
    ply_buf_fini(&m->text);
    ply_ids_fini(&m->ids);
    *m = (struct store_msg){0};
}

void
store_path_fini(struct store_path *p)
{
    for (size_t i = 0; i < p->n; i++)
        store_msg_fini(&p->v[i]);
    free(p->v);
    *p = (struct store_path){0};
}

void
store_session_fini(struct store_session *s)
{
    free(s->title);
    free(s->model_path);
    free(s->model_name);
    free(s->template_name);
    free(s->system);
    free(s->draft);
    struct store_path p = {s->path, s->n_path, s->cap_path};
    store_path_fini(&p);
    free(s->gone);
    *s = (struct store_session){0};
}

struct store_msg *
store_path_grow(struct store_path *p)
{
    if (p->n == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 16;
        struct store_msg *v = reallocarray(p->v, cap, sizeof(*v));
        if (!v)
            return NULL;
        p->v = v;
        p->cap = cap;
    }
    struct store_msg *m = &p->v[p->n++];
    *m = (struct store_msg){0};
    return m;
}

struct store_msg *
store_session_push(struct store_session *s, enum ply_role role, const char *text, size_t len)
{
    struct store_path p = {s->path, s->n_path, s->cap_path};
    struct store_msg *m = store_path_grow(&p);
    if (!m)
        return NULL;
    s->path = p.v;
    s->cap_path = p.cap;
    if (len && ply_buf_append(&m->text, text, len) != 0)
        return NULL;
    m->role = role;
    m->created_ms = store_now_ms();
    s->n_path = p.n;
    return m;
}

int
store_session_pop(struct store_session *s)
{
    if (s->n_path == 0)
        return PLY_EINVAL;
    struct store_msg *m = &s->path[s->n_path - 1];
    if (m->id) {
        int64_t *gone = reallocarray(s->gone, s->n_gone + 1, sizeof(*gone));
        if (!gone)
            return PLY_ENOMEM;
        s->gone = gone;
        s->gone[s->n_gone++] = m->id;
    }
    store_msg_fini(m);
    s->n_path--;
    return PLY_OK;
}

void
store_session_cut(struct store_session *s, size_t n)
{
    while (s->n_path > n)
        store_msg_fini(&s->path[--s->n_path]);
}

bool
store_session_is_saved(const struct store_session *s)
{
    if (s->n_gone)
        return false;
    for (size_t i = 0; i < s->n_path; i++)
        if (s->path[i].id == 0 || s->path[i].dirty)
            return false;
    return true;
}

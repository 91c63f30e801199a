/* SPDX-License-Identifier: MIT
 * The open conversation. */
#include "app/chat.h"

#include <stdlib.h>
#include <string.h>

#include "app/mem.h"

void
chat_init(struct chat *c, struct store *store)
{
    *c = (struct chat){.store = store};
}

static void
leave(struct chat *c)
{
    chat_save(c, NULL);
    if (c->store)
        store_session_release(c->store, &c->s);
    store_session_fini(&c->s);
    free(c->title_wanted);
    c->title_wanted = NULL;
}

void
chat_fini(struct chat *c)
{
    leave(c);
    *c = (struct chat){0};
}

static void
set(char **s, const char *value)
{
    if (store_string_set(s, value) != 0)
        abort();
}

void
chat_new(struct chat *c)
{
    struct store_session fresh = {
        .n_ctx = c->s.n_ctx, .has_sampling = c->s.has_sampling, .sampling = c->s.sampling};
    set(&fresh.model_path, c->s.model_path);
    set(&fresh.model_name, c->s.model_name);
    set(&fresh.template_name, c->s.template_name);
    set(&fresh.system, c->s.system);
    memcpy(fresh.model_fp, c->s.model_fp, sizeof(fresh.model_fp));
    leave(c);
    *c = (struct chat){.store = c->store, .s = fresh};
}

int
chat_open(struct chat *c, int64_t id, struct ply_err *err)
{
    struct store_session s = {0};
    if (!c->store)
        return ply_fail(err, PLY_EINVAL, "sessions are not kept in this run");
    if (id == c->s.id)
        return PLY_OK;
    const int r = store_session_load(c->store, id, STORE_LOAD_CLAIM, &s, err);
    if (r != 0) {
        store_session_fini(&s);
        return r;
    }
    leave(c);
    *c = (struct chat){.store = c->store, .s = s};
    return PLY_OK;
}

int
chat_save(struct chat *c, struct ply_err *err)
{
    /* A session without a word in it is not worth a row. */
    const bool empty = c->s.id == 0 && c->s.n_path == 0 && (!c->s.draft || !*c->s.draft);
    if (!c->store || empty)
        return PLY_OK;
    struct ply_err why = {0};
    bool moved = false;
    int r = store_session_save(c->store, &c->s, &moved, &why);
    c->moved |= moved;
    if (r == 0 && c->title_wanted) {
        r = store_session_rename(c->store, c->s.id, c->title_wanted, strlen(c->title_wanted), &why);
        free(c->title_wanted);
        c->title_wanted = NULL;
    }
    if (r != 0 && !c->told && err) {
        *err = why;
        c->told = true;
    }
    c->incomplete = r != 0;
    return r;
}

void
chat_system_set(struct chat *c, const char *text)
{
    const bool same = text && c->s.system ? strcmp(text, c->s.system) == 0 : text == c->s.system;
    if (same)
        return;
    set(&c->s.system, text);
    c->system_changed = true;
}

void
chat_draft_set(struct chat *c, const char *text, size_t len)
{
    struct ply_buf b = {0};
    app_buf_append(&b, text, len);
    set(&c->s.draft, b.v);
    ply_buf_fini(&b);
}

/* Ids mean something only to the vocabulary and template they came from. */
static bool
ids_hold(const struct store_msg *m, const struct ply_info *model)
{
    return m->role == PLY_ROLE_ASSISTANT && m->ids.n > 0 &&
           strcmp(m->model_fp, model->fingerprint) == 0 &&
           strcmp(m->template_name, model->chat_template) == 0;
}

struct ply_msg *
chat_msgs(const struct chat *c, const struct ply_info *model, size_t n, size_t *n_msgs,
          unsigned *flags)
{
    struct ply_msg *v = app_xcalloc(n + 1, sizeof(*v));
    size_t k = 0;
    *flags = 0;
    if (c->s.system && !*c->s.system)
        *flags |= PLY_CHAT_NO_SYSTEM;
    else if (c->s.system)
        v[k++] = (struct ply_msg){
            .role = PLY_ROLE_SYSTEM, .text = c->s.system, .len = strlen(c->s.system)};
    for (size_t i = 0; i < n; i++) {
        const struct store_msg *m = &c->s.path[i];
        struct ply_msg *o = &v[k++];
        *o = (struct ply_msg){.role = m->role, .text = m->text.v, .len = m->text.n};
        if (ids_hold(m, model)) {
            o->ids = m->ids.v;
            o->n_ids = m->ids.n;
        }
    }
    *n_msgs = k;
    return v;
}

size_t
chat_msg_number(const struct chat *c, size_t i)
{
    return c->s.system && *c->s.system ? i : i + 1;
}

bool
chat_last_user(const struct chat *c, size_t *index)
{
    for (size_t i = c->s.n_path; i-- > 0;) {
        if (c->s.path[i].role == PLY_ROLE_USER) {
            *index = i;
            return true;
        }
    }
    return false;
}

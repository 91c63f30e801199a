/* SPDX-License-Identifier: MIT
 * A conversation becomes ids, fragment by fragment and text by text, each encoded on its own.
 * Nothing that is written depends on what comes later, so the ids of n messages begin with
 * those of the first n - 1:
 *
 *   - Where roles alternate, a user turn stays open until a reply opens, because another user
 *     text may join it. A reply is closed at once.
 *   - A reply's ids are written as they were sampled. If they end with the family's own end id,
 *     the rest of the closer follows; another end id gives way to the family's closer, because
 *     an end of text in the middle of a conversation would cut it in two.
 *   - In the transcript the newlines that end a reply are the closer's: ids that are nothing
 *     else are cut from its end, and the end id is not written.
 *
 * Text never becomes a control id (tok.h). Where a family's markers are plain text, text that
 * holds one gets a space inside it, and in the transcript one before "###" at the beginning of
 * a line: roles cannot be forged. */
#include "engine/chat.h"

#include <string.h>

#include "engine/base/num.h"

const char ply_chat_preamble[] = "Below is a conversation. The user asks short questions and the "
                                 "assistant gives correct, friendly answers.";

/* Eight examples: without them a small base model rarely answers at all. */
static const struct {
    const char *user, *reply;
} examples[] = {
    {"Hi! Who are you?", "Hello! I am a small language model running on your computer."},
    {"What is the largest planet?", "Jupiter is the largest planet in our solar system."},
    {"My brother is called Tom. What is my brother called?", "Your brother is called Tom."},
    {"Who painted the Mona Lisa?", "Leonardo da Vinci painted the Mona Lisa."},
    {"What is the capital of Japan?", "The capital of Japan is Tokyo."},
    {"And of Egypt?", "The capital of Egypt is Cairo."},
    {"How can I sleep better?",
     "Go to bed at the same time every night and keep the room dark and quiet."},
    {"Thank you!", "You're welcome! What else would you like to know?"},
};

struct render {
    const struct ply_chat *c;
    const struct ply_tok *t;
    struct ply_ids *out;
    size_t start;       /* where in out the conversation begins */
    struct ply_buf buf; /* a fragment's text, or a text with its markers broken up */
    bool gap;           /* a space is due before the next text */
    bool in_user;       /* a user turn is open */
    bool has_text;      /* and holds a user's text */
    struct ply_err *err;
};

static int
no_memory(struct render *r)
{
    return ply_fail(r->err, PLY_ENOMEM, "out of memory for the prompt");
}

/* Nothing but a control id stands before what comes next. */
static bool
begins(const struct render *r)
{
    return r->out->n == r->start || ply_tok_is_control(r->t, r->out->v[r->out->n - 1]);
}

/* ---- fragments ------------------------------------------------------------------------- */

static int
flush(struct render *r)
{
    const int rc = ply_tok_encode(r->t, r->buf.v, r->buf.n, begins(r), r->out, r->err);
    r->buf.n = 0;
    return rc;
}

static int32_t
control_id(const struct ply_chat *c, char code)
{
    switch (code) {
    case 5: return c->bos;
    case 6: return c->eos;
    default: return c->marker[code - 1];
    }
}

static int
put_control(struct render *r, char code)
{
    const int32_t id = control_id(r->c, code);
    if (id < 0) { /* a marker that is text; a BOS that the file does not have is left out */
        const char *text = code <= PLY_CHAT_MARKERS ? r->c->family->marker[code - 1] : "";
        return ply_buf_append(&r->buf, text, strlen(text)) == PLY_OK ? PLY_OK : no_memory(r);
    }
    const int rc = flush(r);
    if (rc != PLY_OK)
        return rc;
    return ply_ids_push(r->out, id) == PLY_OK ? PLY_OK : no_memory(r);
}

/* A space at the end is kept for the text that follows. An empty fragment changes nothing. */
static int
put_fragment(struct render *r, const char *f)
{
    int rc = PLY_OK;
    r->buf.n = 0;
    if (*f)
        r->gap = false;
    for (; *f && rc == PLY_OK; f++) {
        if (*f >= 1 && *f <= 6)
            rc = put_control(r, *f);
        else if (f[0] == ' ' && !f[1])
            r->gap = true;
        else if (ply_buf_append(&r->buf, f, 1) != PLY_OK)
            rc = no_memory(r);
    }
    return rc == PLY_OK ? flush(r) : rc;
}

/* ---- text ------------------------------------------------------------------------------ */

static bool
starts_with(const char *s, size_t len, const char *what)
{
    const size_t n = strlen(what);
    return len >= n && memcmp(s, what, n) == 0;
}

/* A plain-text marker begins at s. */
static bool
at_marker(const struct ply_chat *c, const char *s, size_t len)
{
    for (size_t i = 0; i < PLY_CHAT_MARKERS; i++) {
        const char *m = c->family->marker[i];
        if (m && c->marker[i] < 0 && starts_with(s, len, m))
            return true;
    }
    for (size_t i = 0; i < PLY_COUNT(c->family->shield); i++) {
        const char *m = c->family->shield[i];
        if (m && starts_with(s, len, m))
            return true;
    }
    return false;
}

/* Copy text to r->buf behind what is there, so that no marker of the template is in it. */
static int
shield(struct render *r, const char *text, size_t len)
{
    const bool lines = r->c->family->transcript;
    size_t from = 0;
    int rc = PLY_OK;
    for (size_t i = 0; i < len && rc == PLY_OK; i++) {
        size_t cut;
        if (lines && (i == 0 || text[i - 1] == '\n') &&
            starts_with(text + i, len - i, PLY_CHAT_LINE_MARK))
            cut = i;
        else if (!lines && at_marker(r->c, text + i, len - i))
            cut = i + 1;
        else
            continue;
        rc = ply_buf_append(&r->buf, text + from, cut - from);
        if (rc == PLY_OK)
            rc = ply_buf_append(&r->buf, " ", 1);
        from = cut;
    }
    if (rc == PLY_OK)
        rc = ply_buf_append(&r->buf, text + from, len - from);
    return rc == PLY_OK ? PLY_OK : no_memory(r);
}

static int
put_text(struct render *r, const char *text, size_t len)
{
    const bool gap = r->gap;
    r->gap = false;
    if (len == 0)
        return PLY_OK;
    r->buf.n = 0;
    if (gap && ply_buf_append(&r->buf, " ", 1) != PLY_OK)
        return no_memory(r);
    int rc = shield(r, text, len);
    if (rc != PLY_OK)
        return rc;
    /* The space of the gap is the one that the vocabulary would put there. */
    rc = ply_tok_encode(r->t, r->buf.v, r->buf.n, begins(r) && !gap, r->out, r->err);
    r->buf.n = 0;
    return rc;
}

/* ---- messages -------------------------------------------------------------------------- */

static int
put_user(struct render *r, const char *text, size_t len)
{
    const struct ply_chat_family *f = r->c->family;
    int rc = PLY_OK;
    if (!f->join || !r->in_user)
        rc = put_fragment(r, f->user_open);
    else if (r->has_text)
        rc = put_fragment(r, f->join);
    if (rc == PLY_OK)
        rc = put_text(r, text, len);
    if (rc != PLY_OK)
        return rc;
    if (!f->join)
        return put_fragment(r, f->user_close);
    r->in_user = r->has_text = true;
    return PLY_OK;
}

static int
put_system(struct render *r, const char *text, size_t len)
{
    const struct ply_chat_family *f = r->c->family;
    if (len == 0)
        return PLY_OK;
    if (f->join && r->in_user && r->has_text)
        return put_user(r, text, len);
    int rc = PLY_OK;
    if (f->join && !r->in_user)
        rc = put_fragment(r, f->user_open);
    r->in_user = f->join != NULL;
    r->has_text = false;
    if (rc == PLY_OK)
        rc = put_fragment(r, f->sys_open);
    if (rc == PLY_OK)
        rc = put_text(r, text, len);
    return rc == PLY_OK ? put_fragment(r, f->sys_close) : rc;
}

/* Close the user's turn, or give one that stays empty where roles alternate, and open a reply. */
static int
open_reply(struct render *r)
{
    const struct ply_chat_family *f = r->c->family;
    int rc = PLY_OK;
    if (f->join && !r->in_user)
        rc = put_fragment(r, f->user_open);
    if (f->join && rc == PLY_OK)
        rc = put_fragment(r, f->user_close);
    r->in_user = r->has_text = false;
    return rc == PLY_OK ? put_fragment(r, f->reply_open) : rc;
}

bool
ply_chat_ends(const struct ply_chat *c, int32_t id)
{
    for (size_t i = 0; i < c->ends.n; i++) {
        if (c->ends.v[i] == id)
            return true;
    }
    return false;
}

static bool
is_newlines(const struct ply_tok *t, int32_t id)
{
    size_t len, n = 0;
    const char *s = ply_tok_piece(t, id, &len);
    while (n < len && s[n] == '\n')
        n++;
    return len > 0 && n == len;
}

/* What follows the closer's own end id, if that is what `id` is; else NULL. */
static const char *
closer_after(const struct ply_chat *c, int32_t id)
{
    for (const char *p = c->family->reply_close; *p; p++) {
        if (*p >= 1 && *p <= 6 && control_id(c, *p) == id)
            return p + 1;
    }
    return NULL;
}

static int
put_ids(struct render *r, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t)ids[i] >= ply_tok_n(r->t))
            return ply_fail(r->err, PLY_EINVAL, "id %d of a reply is not of this vocabulary",
                            ids[i]);
    }
    return ply_ids_append(r->out, ids, n) == PLY_OK ? PLY_OK : no_memory(r);
}

static int
put_sampled(struct render *r, const struct ply_msg *m, bool leave_open)
{
    const struct ply_chat *c = r->c;
    const char *closer = c->family->reply_close;
    size_t n = m->n_ids;
    r->gap = false;
    if (n > 0 && ply_chat_ends(c, m->ids[n - 1])) {
        const char *rest = leave_open ? NULL : closer_after(c, m->ids[n - 1]);
        if (rest)
            closer = rest;
        else
            n--;
    }
    while (c->family->transcript && !leave_open && n > 0 && is_newlines(r->t, m->ids[n - 1]))
        n--;
    const int rc = put_ids(r, m->ids, n);
    return rc == PLY_OK && !leave_open ? put_fragment(r, closer) : rc;
}

static int
put_reply(struct render *r, const struct ply_msg *m, bool leave_open)
{
    int rc = open_reply(r);
    if (rc != PLY_OK)
        return rc;
    if (m->ids)
        return put_sampled(r, m, leave_open);
    size_t len = m->len;
    while (r->c->family->transcript && !leave_open && len > 0 && m->text[len - 1] == '\n')
        len--;
    rc = put_text(r, m->text, len);
    return rc == PLY_OK && !leave_open ? put_fragment(r, r->c->family->reply_close) : rc;
}

/* What stands before the first turn. The transcript's system text takes the preamble's place,
 * the examples stay. *n_used: messages that are dealt with. */
static int
put_beginning(struct render *r, const struct ply_msg *msgs, size_t n, unsigned flags,
              size_t *n_used)
{
    const bool own_system = n > 0 && msgs[0].role == PLY_ROLE_SYSTEM;
    const char *text = flags & PLY_CHAT_NO_SYSTEM ? "" : r->c->default_system;
    size_t len = strlen(text);
    if (own_system) {
        text = msgs[0].text;
        len = msgs[0].len;
    }
    *n_used = own_system;
    if (!r->c->family->transcript)
        return put_system(r, text, len);
    int rc = put_text(r, text, len);
    if (rc == PLY_OK && len > 0)
        rc = put_fragment(r, "\n\n");
    for (size_t i = 0; i < PLY_COUNT(examples) && rc == PLY_OK; i++) {
        const struct ply_msg reply = {.text = examples[i].reply, .len = strlen(examples[i].reply)};
        rc = put_user(r, examples[i].user, strlen(examples[i].user));
        if (rc == PLY_OK)
            rc = put_reply(r, &reply, false);
    }
    return rc;
}

static int
put_messages(struct render *r, const struct ply_msg *msgs, size_t n, unsigned flags)
{
    int rc = PLY_OK;
    size_t i = 0;
    if (r->c->begin_bos && ply_ids_push(r->out, r->c->bos) != PLY_OK)
        return no_memory(r);
    rc = put_beginning(r, msgs, n, flags, &i);
    for (; i < n && rc == PLY_OK; i++) {
        const struct ply_msg *m = &msgs[i];
        switch (m->role) {
        case PLY_ROLE_SYSTEM: rc = put_system(r, m->text, m->len); break;
        case PLY_ROLE_USER: rc = put_user(r, m->text, m->len); break;
        case PLY_ROLE_ASSISTANT:
            rc = put_reply(r, m, i + 1 == n && (flags & PLY_CHAT_CONTINUE) != 0);
            break;
        }
    }
    const bool open =
        n > 0 && msgs[n - 1].role == PLY_ROLE_ASSISTANT && (flags & PLY_CHAT_CONTINUE);
    if (rc == PLY_OK && (flags & PLY_CHAT_OPEN_REPLY) && !open)
        rc = open_reply(r);
    return rc;
}

int
ply_chat_write(const struct ply_chat *c, const struct ply_tok *t, const struct ply_msg *msgs,
               size_t n, unsigned flags, struct ply_ids *out, struct ply_err *err)
{
    if (c->why_not[0])
        return ply_fail(err, PLY_EUNSUPPORTED, "%s; choose one with --chat-template", c->why_not);
    struct render r = {.c = c, .t = t, .out = out, .start = out->n, .err = err};
    const int rc = put_messages(&r, msgs, n, flags);
    ply_buf_fini(&r.buf);
    if (rc != PLY_OK)
        out->n = r.start;
    return rc;
}

int
ply_chat_own_ids(const struct ply_chat *c, const struct ply_tok *t, struct ply_ids *out,
                 struct ply_err *err)
{
    const struct ply_chat_family *f = c->family;
    const char *const fragments[] = {f->sys_open,           f->sys_close,  f->user_open,
                                     f->user_close,         f->reply_open, f->reply_close,
                                     f->join ? f->join : ""};
    struct render r = {.c = c, .t = t, .out = out, .err = err};
    int rc = PLY_OK;
    for (size_t i = 0; i < PLY_COUNT(fragments) && rc == PLY_OK; i++) {
        rc = put_fragment(&r, fragments[i]);
        /* Once more, not at the beginning: with a space prefix that gives other ids. */
        if (rc == PLY_OK)
            rc = put_fragment(&r, fragments[i]);
    }
    ply_buf_fini(&r.buf);
    return rc;
}

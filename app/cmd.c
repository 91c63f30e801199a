/* SPDX-License-Identifier: MIT
 * Slash commands. */
#include "app/cmd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/clock.h"
#include "app/mem.h"
#include "app/models.h"
#include "app/param.h"
#include "engine/base/num.h"

typedef int (*cmd_fn)(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err);

struct cmd {
    const char *name;
    const char *synonyms; /* apart by spaces, "" for none */
    const char *args;
    const char *help;
    bool anytime; /* may run while a reply is being written */
    cmd_fn run;
};

static const struct cmd *find(const char *name, size_t len);

static void
field(struct cmd_result *r, const char *name, json_t *value)
{
    json_object_set_new(r->fields, name, value);
}

static json_t *
text_json(const char *s)
{
    return report_json_text(s, strlen(s));
}

/* ---- conversation ------------------------------------------------------------------------ */

static int
cmd_regen(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    const int s = turn_again(&a->turn, app_now_ms(), err);
    return s == 0 ? CMD_TURN : s;
}

static int
cmd_stop(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    field(r, "stopped", json_boolean(turn_busy(&a->turn)));
    turn_stop(&a->turn);
    return CMD_DONE;
}

static int
cmd_cold(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    a->turn.cold_next = true;
    app_buf_puts(&r->text, "the next answer is computed without the cache, and timed both ways");
    return CMD_DONE;
}

static int
cmd_system(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    const char *now = a->chat.s.system;
    if (*arg) {
        const bool none =
            strcmp(arg, "none") == 0 || strcmp(arg, "''") == 0 || strcmp(arg, "\"\"") == 0;
        chat_system_set(&a->chat, strcmp(arg, "default") == 0 ? NULL : none ? "" : arg);
        chat_save(&a->chat, NULL);
        app_buf_puts(&r->text,
                     "the system prompt is set; the next turn reads the conversation anew");
        return CMD_DONE;
    }
    const char *own = app_model(a) ? ply_chat_default_system(worker_vocab(a->worker)) : "";
    const char *shown = now ? now : own;
    field(r, "system", text_json(shown));
    app_buf_puts(&r->text, *shown ? shown : "there is no system prompt");
    if (!now && *own)
        app_buf_puts(&r->text,
                     "\n(the model's own; /system TEXT replaces it, /system none removes it)");
    r->long_text = true;
    return CMD_DONE;
}

static int
cmd_draft(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    chat_draft_set(&a->chat, arg, strlen(arg));
    chat_save(&a->chat, NULL);
    field(r, "drafted", json_integer(0));
    return CMD_DONE;
}

/* ---- settings ---------------------------------------------------------------------------- */

static int
cmd_set(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    struct param_values v = {.sampling = a->chat.s.sampling, .n_max = a->turn.opts.n_max};
    if (strncmp(arg, "parameter ", 10) == 0)
        arg += 10;
    if (*arg) {
        const int s = param_set(&v, arg, err);
        if (s != 0)
            return s;
        a->chat.s.sampling = v.sampling;
        a->turn.opts.n_max = v.n_max;
        chat_save(&a->chat, NULL);
    }
    field(r, "parameters", param_json(&v));
    param_text(&v, arg, &r->text);
    r->long_text = !*arg;
    return CMD_DONE;
}

static void
show_info(struct app *a, struct cmd_result *r)
{
    const struct ply_info *i = app_model(a);
    if (!i) {
        app_buf_printf(&r->text, "no model is loaded: %s", a->model_err.msg);
        return;
    }
    field(r, "model", text_json(i->name));
    field(r, "path", text_json(i->path));
    field(r, "template", text_json(i->chat_template));
    field(r, "context", json_integer(i->n_ctx));
    app_buf_printf(&r->text, "model      %s, %s, %s\nfile       %s\nlanguages  %s\nlicence    %s\n",
                   i->name, i->arch, i->quant, i->path, *i->languages ? i->languages : "not stated",
                   *i->licence ? i->licence : "not stated");
    app_buf_printf(
        &r->text, "tokenizer  %s\ntemplate   %s%s\ncontext    %d tokens, %.1f KiB of cache each\n",
        i->tokenizer, i->chat_template, i->base_model ? " (base model: continues text)" : "",
        i->n_ctx, (double)i->kv_bytes_per_tok / 1024);
    app_buf_printf(&r->text, "kernels    %s, %s, %d threads\nexact      %s%s%s\nload       %.0f ms",
                   i->isa, i->gemm, i->n_threads, i->exact ? "yes" : "no (", i->exact_why,
                   i->exact ? "" : ")", i->load_ms);
}

static void
show_session(struct app *a, struct cmd_result *r)
{
    const struct store_session *s = &a->chat.s;
    field(r, "session", s->id ? json_integer(s->id) : json_null());
    field(r, "messages", json_integer((json_int_t)s->n_path));
    field(r, "title", text_json(s->title ? s->title : ""));
    field(r, "draft", text_json(s->draft ? s->draft : ""));
    app_buf_printf(&r->text, "session    %" PRId64 "%s\ntitle      %s\nmessages   %zu", s->id,
                   s->id ? "" : " (not stored yet)", s->title ? s->title : "", s->n_path);
}

static int
cmd_show(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    r->long_text = true;
    if (!*arg || strcmp(arg, "info") == 0 || strcmp(arg, "model") == 0)
        show_info(a, r);
    else if (strcmp(arg, "system") == 0)
        return cmd_system(a, "", r, err);
    else if (strncmp(arg, "parameters", strlen(arg)) == 0)
        return cmd_set(a, "", r, err);
    else if (strcmp(arg, "template") == 0)
        app_buf_puts(&r->text, app_model(a) ? app_model(a)->chat_template : "no model is loaded");
    else if (strcmp(arg, "session") == 0)
        show_session(a, r);
    else
        return ply_fail(err, PLY_EINVAL,
                        "/show knows info, system, parameters, template, session; not '%s'", arg);
    return CMD_DONE;
}

/* ---- sessions ---------------------------------------------------------------------------- */

static int
cmd_new(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    app_session_new(a);
    field(r, "session", json_null());
    app_buf_puts(&r->text, "a new conversation");
    return CMD_DONE;
}

static void
list_row(const struct app *a, const struct store_row *row, struct cmd_result *r, json_t *list)
{
    char when[32];
    const time_t t = (time_t)(row->updated_ms / 1000);
    struct tm tm;
    localtime_r(&t, &tm);
    strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
    app_buf_printf(&r->text, "%c %5" PRId64 "  %s  %4" PRId64 " messages  %s\n",
                   row->id == a->chat.s.id ? '*' : ' ', row->id, when, row->n_msgs, row->title);
    json_array_append_new(
        list, json_pack("{s:I, s:o, s:I, s:I, s:b}", "id", (json_int_t)row->id, "title",
                        text_json(row->title), "messages", (json_int_t)row->n_msgs, "updated_ms",
                        (json_int_t)row->updated_ms, "open", row->id == a->chat.s.id));
}

static int
need_store(const struct app *a, struct ply_err *err)
{
    return a->store ? PLY_OK : ply_fail(err, PLY_EINVAL, "sessions are not kept in this run");
}

static int
cmd_sessions(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    struct store_list l = {0};
    int s = need_store(a, err);
    if (s == 0)
        s = store_list(a->store, *arg ? arg : NULL, 0, &l, err);
    if (s != 0)
        return s;
    json_t *list = json_array();
    for (size_t i = 0; i < l.n; i++)
        list_row(a, &l.v[i], r, list);
    if (l.n == 0)
        app_buf_puts(&r->text, "no session");
    field(r, "sessions", list);
    r->long_text = true;
    store_list_fini(&l);
    return CMD_DONE;
}

static int
cmd_resume(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    int64_t id;
    int s = need_store(a, err);
    if (s == 0)
        s = *arg ? store_session_find(a->store, arg, STORE_FIND_ANY, &id, err)
                 : store_session_last(a->store, &id, err);
    if (s == 0)
        s = app_session_open(a, id, err);
    if (s != 0)
        return s;
    show_session(a, r);
    r->text.n = 0;
    app_buf_printf(&r->text, "conversation %" PRId64 ": %s, %zu messages", a->chat.s.id,
                   a->chat.s.title ? a->chat.s.title : "", a->chat.s.n_path);
    return CMD_DONE;
}

static int
cmd_rename(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    int s = need_store(a, err);
    if (s == 0 && !*arg)
        s = ply_fail(err, PLY_EINVAL, "/rename TITLE: which title?");
    if (s == 0)
        s = app_session_rename(a, 0, arg, err);
    if (s != 0)
        return s;
    field(r, "title", text_json(arg));
    app_buf_printf(&r->text, "this conversation is called '%s'", arg);
    return CMD_DONE;
}

static int
cmd_delete(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    int64_t id = a->chat.s.id;
    int s = need_store(a, err);
    if (s == 0 && *arg)
        s = store_session_find(a->store, arg, STORE_FIND_EXACT, &id, err);
    if (s == 0 && id == 0)
        s = ply_fail(err, PLY_EINVAL, "this conversation is not stored yet");
    if (s == 0)
        s = app_session_delete(a, id, err);
    if (s != 0)
        return s;
    field(r, "deleted", json_integer(id));
    app_buf_printf(&r->text, "conversation %" PRId64 " is deleted", id);
    return CMD_DONE;
}

/* ---- models and the program -------------------------------------------------------------- */

static int
cmd_model(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    if (!*arg)
        return cmd_show(a, "info", r, err);
    const int s = app_model_open(a, arg, err);
    if (s != 0)
        return s;
    field(r, "path", text_json(a->model_path));
    app_buf_printf(&r->text, "loading %s", a->model_path);
    return CMD_DONE;
}

static int
cmd_models(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    struct models_list l;
    json_t *list = json_array();
    models_list(a->paths.models_dir, &l);
    for (size_t i = 0; i < l.n; i++) {
        const struct models_entry *e = &l.v[i];
        app_buf_printf(&r->text, "%s  %s (%.0f MB)\n", e->name, e->usable ? e->title : e->reason,
                       (double)e->bytes / 1e6);
        json_array_append_new(list,
                              json_pack("{s:o, s:o, s:b, s:o, s:I}", "name", text_json(e->name),
                                        "path", text_json(e->path), "usable", e->usable, "reason",
                                        text_json(e->reason), "bytes", (json_int_t)e->bytes));
    }
    if (l.n == 0)
        app_buf_printf(&r->text, "no model in %s", a->paths.models_dir);
    field(r, "models", list);
    r->long_text = true;
    models_list_fini(&l);
    return CMD_DONE;
}

static int
cmd_stats(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    const struct store_session *s = &a->chat.s;
    app_buf_puts(&r->text, "reply  prompt  reused  evaluated      TTFT  tokens/s  why\n");
    for (size_t i = 0; i < s->n_path; i++) {
        const struct store_stats *st = &s->path[i].stats;
        if (!st->known)
            continue;
        char ttft[32];
        report_ms(st->ttft_ms, ttft, sizeof(ttft));
        const double rate = report_rate((size_t)st->predicted_toks, st->predicted_ms);
        app_buf_printf(&r->text, "%5zu  %6" PRId64 "  %6" PRId64 "  %9" PRId64 "  %8s  %8.1f  %s\n",
                       i + 1, st->prompt_toks, st->cached_toks, st->evaluated_toks, ttft,
                       rate < 0 ? 0 : rate, st->reuse_reason);
    }
    const struct ply_kv_stats kv = worker_kv_stats(a->worker);
    app_buf_printf(&r->text, "cache: %.1f of %.0f MiB, %zu blocks in use",
                   (double)kv.bytes_used / 1048576, (double)kv.bytes_budget / 1048576,
                   kv.n_blocks_live);
    field(r, "kv_bytes", json_integer((json_int_t)kv.bytes_used));
    r->long_text = true;
    return CMD_DONE;
}

static int
cmd_help_page(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    cmd_help(&r->text);
    r->long_text = true;
    return CMD_DONE;
}

static int
cmd_quit(struct app *a, const char *arg, struct cmd_result *r, struct ply_err *err)
{
    a->quit = true;
    return CMD_DONE;
}

/* ---- the table --------------------------------------------------------------------------- */

static const struct cmd commands[] = {
    {"help", "?", "", "this page", true, cmd_help_page},
    {"new", "clear", "", "start a new conversation", false, cmd_new},
    {"regen", "regenerate retry", "", "answer the last message again; the old answer is kept",
     false, cmd_regen},
    {"stop", "", "", "stop the reply and keep what was said", true, cmd_stop},
    {"cold", "", "", "answer the next message without the cache and show both times", false,
     cmd_cold},
    {"system", "", "[TEXT|none|default]", "show or set the system prompt", false, cmd_system},
    {"set", "", "[NAME VALUE]", "show or set sampling parameters and the reply's length", false,
     cmd_set},
    {"show", "", "[info|system|parameters|template|session]", "show what is in use", true,
     cmd_show},
    {"stats", "context", "", "what each turn read, reused and took", true, cmd_stats},
    {"sessions", "ls", "[PART OF TITLE]", "list the conversations", true, cmd_sessions},
    {"resume", "open load", "[ID|TEXT]", "open a conversation, the last one without ID", false,
     cmd_resume},
    {"rename", "", "TITLE", "name this conversation", true, cmd_rename},
    {"delete", "rm", "[ID]", "delete a conversation, this one without ID", false, cmd_delete},
    {"model", "", "[FILE|NAME]", "go on with another model", false, cmd_model},
    {"models", "", "", "list the models there are", true, cmd_models},
    {"draft", "", "TEXT", "replace the unsent draft", false, cmd_draft},
    {"quit", "q exit bye", "", "leave", true, cmd_quit},
};

static bool
has_word(const char *words, const char *word, size_t len)
{
    for (const char *w = words; *w;) {
        const size_t n = strcspn(w, " ");
        if (n == len && strncmp(w, word, n) == 0)
            return true;
        w += n + strspn(w + n, " ");
    }
    return false;
}

static const struct cmd *
find(const char *name, size_t len)
{
    for (size_t i = 0; i < PLY_COUNT(commands); i++) {
        if (has_word(commands[i].name, name, len) || has_word(commands[i].synonyms, name, len))
            return &commands[i];
    }
    return NULL;
}

int
cmd_run(struct app *a, const char *line, struct cmd_result *r, struct ply_err *err)
{
    const size_t len = strcspn(line, " \t\n");
    const struct cmd *c = find(line, len);
    *r = (struct cmd_result){.fields = json_object()};
    app_buf_puts(&r->text, "");
    if (!c)
        return ply_fail(err, PLY_EINVAL, "no command '/%.*s'; /help lists them, // sends a slash",
                        (int)PLY_MIN(len, (size_t)40), line);
    r->name = c->name;
    if (!c->anytime && turn_busy(&a->turn))
        return ply_fail(err, PLY_EINVAL,
                        "/%s has to wait until the reply has ended; Esc or /stop ends it", c->name);
    const char *arg = line + len + strspn(line + len, " \t\n");
    return c->run(a, arg, r, err);
}

void
cmd_result_fini(struct cmd_result *r)
{
    ply_buf_fini(&r->text);
    json_decref(r->fields);
    *r = (struct cmd_result){0};
}

bool
cmd_is_stop(const char *line)
{
    const struct cmd *c = find(line, strcspn(line, " \t\n"));
    return c && c->run == cmd_stop;
}

void
cmd_help(struct ply_buf *out)
{
    for (size_t i = 0; i < PLY_COUNT(commands); i++) {
        const struct cmd *c = &commands[i];
        char left[64];
        snprintf(left, sizeof(left), "/%s %s", c->name, c->args);
        app_buf_printf(out, "%-28s %s%s", left,
                       strlen(left) > 28 ? "\n                             " : "", c->help);
        if (*c->synonyms) {
            app_buf_puts(out, " (also");
            for (const char *w = c->synonyms; *w;) {
                const size_t n = strcspn(w, " ");
                app_buf_printf(out, " /%.*s", (int)n, w);
                w += n + strspn(w + n, " ");
            }
            app_buf_puts(out, ")");
        }
        app_buf_puts(out, "\n");
    }
    app_buf_puts(out, "//text                       send text that begins with a slash\n");
}

const char *
cmd_complete(const char *prefix, size_t i)
{
    for (size_t k = 0; k < PLY_COUNT(commands); k++) {
        if (strncmp(commands[k].name, prefix, strlen(prefix)) == 0 && i-- == 0)
            return commands[k].name;
    }
    return NULL;
}

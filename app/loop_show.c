/* SPDX-License-Identifier: MIT
 * What the screen shows: transcript, header, status bar, session list, help. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/cmd.h"
#include "app/loop.h"
#include "app/mem.h"
#include "engine/base/num.h"

/* ---- the transcript ---------------------------------------------------------------------- */

/* Models are known by their files: what a file calls itself is often a training run's name. */
static void
model_name(const struct loop *l, char out[128])
{
    const char *path = l->app.model_path ? l->app.model_path : "";
    const char *slash = strrchr(path, '/');
    snprintf(out, 128, "%s", slash ? slash + 1 : path);
    const size_t n = strlen(out);
    if (n > 5 && strcasecmp(out + n - 5, ".gguf") == 0)
        out[n - 5] = '\0';
}

/* "smollm2" for "SmolLM2-135M-Instruct": who speaks, in a word. */
static void
author_name(const struct loop *l, char out[24])
{
    char model[128];
    size_t n = 0;
    model_name(l, model);
    for (; model[n] && !strchr("- _.(", model[n]) && n < 23; n++)
        out[n] = (char)tolower((unsigned char)model[n]);
    out[n] = '\0';
    if (n == 0)
        snprintf(out, 24, "reply");
}

static void
clock_text(int64_t ms, char out[16])
{
    const time_t t = (time_t)(ms / 1000);
    struct tm tm;
    localtime_r(&t, &tm);
    strftime(out, 16, "%H:%M", &tm);
}

static void
reply_info(const struct store_msg *m, char *out, size_t size)
{
    const struct store_stats *s = &m->stats;
    char ttft[32], rate[32] = "";
    const char *end = m->finish == STORE_FINISH_STOP ? "" : store_finish_name(m->finish);
    out[0] = '\0';
    if (!s->known) {
        snprintf(out, size, "%s", end);
        return;
    }
    report_ms(s->ttft_ms, ttft, sizeof(ttft));
    const double r = report_rate((size_t)s->predicted_toks, s->predicted_ms);
    if (r >= 0)
        snprintf(rate, sizeof(rate), "  %.1f t/s", r);
    snprintf(out, size, "ttft %s%s  %zu tok  reuse %" PRId64 "/%" PRId64 "%s%s", ttft, rate,
             m->ids.n, s->cached_toks, s->prompt_toks, *end ? "  " : "", end);
}

static int
add_message(struct loop *l, const struct store_msg *m)
{
    char author[24], info[160] = "", when[16];
    const bool user = m->role == PLY_ROLE_USER;
    author_name(l, author);
    clock_text(m->created_ms, when);
    if (!user)
        reply_info(m, info, sizeof(info));
    const struct ui_msg u = {.role = user                         ? UI_ROLE_USER
                                     : m->role == PLY_ROLE_SYSTEM ? UI_ROLE_SYSTEM
                                                                  : UI_ROLE_REPLY,
                             .author = user ? "you" : author,
                             .info = info,
                             .right = when,
                             .text = m->text.v,
                             .len = m->text.n};
    return ui_msg_add(l->ui, &u);
}

void
show_session(struct loop *l)
{
    const struct store_session *s = &l->app.chat.s;
    ui_msg_truncate(l->ui, 0);
    ui_msg_set_live(l->ui, -1);
    l->reply = -1;
    for (size_t i = 0; i < s->n_path; i++)
        add_message(l, &s->path[i]);
    ui_msg_follow(l->ui);
    show_header(l);
}

void
show_sent(struct loop *l)
{
    const struct store_session *s = &l->app.chat.s;
    char author[24];
    if (!l->app.turn.again)
        add_message(l, &s->path[s->n_path - 1]);
    else if (s->path[s->n_path - 1].role == PLY_ROLE_ASSISTANT)
        ui_msg_truncate(l->ui, ui_msg_count(l->ui) - 1);
    author_name(l, author);
    l->reply = ui_msg_add(l->ui, &(struct ui_msg){.role = UI_ROLE_REPLY, .author = author});
    ui_msg_set_live(l->ui, l->reply);
    ui_msg_follow(l->ui);
}

void
show_taken_back(struct loop *l)
{
    ui_msg_set_live(l->ui, -1);
    if (l->app.turn.again)
        show_session(l);
    else if (l->reply > 0)
        ui_msg_truncate(l->ui, l->reply - 1);
    l->reply = -1;
}

void
show_ended(struct loop *l, const struct report *r)
{
    const struct store_session *s = &l->app.chat.s;
    const struct store_msg *m = &s->path[s->n_path - 1];
    char line[240], when[16];
    ui_msg_set_live(l->ui, -1);
    reply_info(m, line, sizeof(line));
    clock_text(m->created_ms, when);
    ui_msg_set_info(l->ui, l->reply, line);
    ui_msg_set_right(l->ui, l->reply, when);
    l->reply = -1;
    if (r->compared) {
        report_compare_line(r, line, sizeof(line));
        ui_msg_add(l->ui,
                   &(struct ui_msg){
                       .role = UI_ROLE_NOTE, .author = "cold", .text = line, .len = strlen(line)});
    }
}

/* ---- header and status ------------------------------------------------------------------- */

static size_t
count_sessions(const struct loop *l)
{
    struct store_list list = {0};
    if (!l->app.store || store_list(l->app.store, NULL, 0, &list, NULL) != 0)
        return 0;
    const size_t n = list.n;
    store_list_fini(&list);
    return n;
}

void
show_header(struct loop *l)
{
    const struct store_session *s = &l->app.chat.s;
    const struct ply_info *i = app_model(&l->app);
    struct ply_buf model = {0}, title = {0}, notes = {0}, right = {0};
    const size_t n = count_sessions(l);
    char name[128];
    l->header_id = s->id;
    model_name(l, name);
    if (i)
        app_buf_puts(&model, name);
    else
        app_buf_puts(&model, l->app.loading ? "loading" : "no model: read only");
    if (s->id)
        app_buf_printf(&title, "#%" PRId64 " %s", s->id, s->title ? s->title : "");
    else
        app_buf_puts(&title, "new conversation");
    app_buf_puts(&notes, app_banner(&l->app));
    if (s->system)
        app_buf_printf(&notes, "%ssys: %s", notes.n ? "   " : "", *s->system ? "own" : "none");
    if (i && !i->exact)
        app_buf_printf(&notes, "%snot exact", notes.n ? "   " : "");
    if (s->shared)
        app_buf_printf(&notes, "%sopen elsewhere: a branch", notes.n ? "   " : "");
    app_buf_printf(&right, "%zu session%s", n, n == 1 ? "" : "s");
    ui_header_set(l->ui, &(struct ui_header){.model = model.v,
                                             .languages = i ? i->languages : "",
                                             .title = title.v,
                                             .notes = notes.v,
                                             .right = right.v});
    ply_buf_fini(&model);
    ply_buf_fini(&title);
    ply_buf_fini(&notes);
    ply_buf_fini(&right);
}

static int64_t
resident_bytes(void)
{
    unsigned long total, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return -1;
    if (fscanf(f, "%lu %lu", &total, &resident) != 2)
        resident = 0;
    fclose(f);
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

static void
status_of_turn(const struct loop *l, struct ui_status *st)
{
    const struct turn *t = &l->app.turn;
    const bool speaks = t->n_ids > 0;
    st->state = speaks ? UI_STATE_GEN : t->n_total > 0 ? UI_STATE_PREFILL : UI_STATE_RESTORE;
    st->start_ms = t->t_start;
    st->ttft_ms = t->t_shown >= 0 ? t->t_shown - t->t_start : -1;
    st->done = (long)t->n_done;
    st->total = t->n_total ? (long)t->n_total : -1;
    st->n_reply = (long)t->n_ids;
    st->tok_s = turn_rate(t);
    st->itl_ms = st->tok_s > 0 ? 1e3 / st->tok_s : -1;
    st->ctx_used = (long)(t->n_prompt + t->n_ids);
    if (t->n_total > 0) {
        st->evaluated = (long)t->n_done;
        st->reused = (long)(t->n_prompt - t->n_total);
    }
    const double spent = ui_now_ms(l->ui) - l->t_prefill;
    if (l->t_prefill > 0 && t->n_done > 0 && t->n_done < t->n_total)
        st->eta_ms = spent / (double)t->n_done * (double)(t->n_total - t->n_done);
}

void
show_status(struct loop *l)
{
    struct ui_status st = l->last;
    const struct ply_info *i = app_model(&l->app);
    if (l->app.loading) {
        st.state = UI_STATE_LOAD;
        st.start_ms = l->t_enter;
    } else if (turn_busy(&l->app.turn)) {
        st = (struct ui_status)UI_STATUS_INIT;
        status_of_turn(l, &st);
    } else {
        st.state = l->rest;
        st.rss_bytes = resident_bytes();
    }
    if (i) {
        st.ctx_size = i->n_ctx;
        st.kv_bytes = (int64_t)worker_kv_stats(l->app.worker).bytes_used;
    }
    ui_status_set(l->ui, &st);
}

/* ---- overlays ---------------------------------------------------------------------------- */

static void
when_text(int64_t ms, char out[32])
{
    const time_t t = (time_t)(ms / 1000), now = time(NULL);
    struct tm tm, today;
    localtime_r(&t, &tm);
    localtime_r(&now, &today);
    const bool same_day = tm.tm_year == today.tm_year && tm.tm_yday == today.tm_yday;
    strftime(out, 32,
             same_day                      ? "today %H:%M"
             : tm.tm_year == today.tm_year ? "%d %b %H:%M"
                                           : "%d %b %Y",
             &tm);
}

struct cells {
    char id[24], when[32], n[32];
};

void
show_sessions(struct loop *l, bool open)
{
    static const struct ui_list list = {.title = "Sessions",
                                        .empty = "no conversation yet",
                                        .cols = {{"#", 6, 0, true},
                                                 {"title", 0, 0, false},
                                                 {"last used", 14, 50, false},
                                                 {"messages", 8, 60, true},
                                                 {"model", 24, 90, false}},
                                        .n_cols = 5,
                                        .name_col = 1,
                                        .can_rename = true,
                                        .can_delete = true,
                                        .can_filter = true};
    struct store_list rows = {0};
    struct ply_err err = {0};
    if (!l->app.store ||
        store_list(l->app.store, *l->filter ? l->filter : NULL, 0, &rows, &err) != 0) {
        ui_notice(l->ui, UI_LEVEL_ERROR,
                  l->app.store ? err.msg : "sessions are not kept in this run");
        return;
    }
    struct ui_list_row *v = app_xcalloc(rows.n, sizeof(*v));
    struct cells *cells = app_xcalloc(rows.n, sizeof(*cells));
    for (size_t i = 0; i < rows.n; i++) {
        const struct store_row *r = &rows.v[i];
        snprintf(cells[i].id, sizeof(cells[i].id), "%" PRId64, r->id);
        snprintf(cells[i].n, sizeof(cells[i].n), "%" PRId64, r->n_msgs);
        when_text(r->updated_ms, cells[i].when);
        v[i] = (struct ui_list_row){
            .id = r->id,
            .marked = r->id == l->app.chat.s.id,
            .cells = {cells[i].id, r->title, cells[i].when, cells[i].n, r->model_name}};
    }
    if (open)
        ui_list_open(l->ui, &list);
    ui_list_rows(l->ui, v, (int)PLY_MIN(rows.n, (size_t)INT32_MAX));
    free(v);
    free(cells);
    store_list_fini(&rows);
}

void
show_help(struct loop *l)
{
    static const char keys[] =
        "KEYS\n"
        "Enter             send\n"
        "Alt+Enter, ^J     new line\n"
        "Esc, ^C           stop the reply, keep what was said\n"
        "^C twice, ^D      leave (with nothing written)\n"
        "F1                this page\n"
        "F2, ^O            conversations: Enter opens, r renames, d deletes, / filters\n"
        "F3                what each turn read, reused and took\n"
        "PgUp PgDn         scroll; End follows again\n"
        "Up Down           earlier messages\n"
        "^A ^E ^B ^F       line start, line end, left, right; Alt+b Alt+f by word\n"
        "^W ^U ^K ^Y       cut word, to line start, to line end; put back\n"
        "^_ Alt+_          undo, redo\n"
        "^G                write the message in $VISUAL or $EDITOR\n"
        "Tab               complete a command\n"
        "^L                draw anew\n"
        "^Z                suspend\n"
        "\n"
        "THE BAR\n"
        "TTFT              Enter to the first token you see, and what it was spent on\n"
        "reuse             tokens of the prompt whose keys and values were kept, of all\n"
        "ctx               tokens in the conversation, of those it has room for\n"
        "\n"
        "COMMANDS\n";
    struct ply_buf b = {0};
    app_buf_puts(&b, keys);
    cmd_help(&b);
    ui_pager_open(l->ui, "Help", b.v, b.n);
    ply_buf_fini(&b);
}

void
show_stats(struct loop *l)
{
    struct cmd_result r;
    struct ply_err err = {0};
    if (cmd_run(&l->app, "stats", &r, &err) == CMD_DONE)
        ui_pager_open(l->ui, "Turns", r.text.v, r.text.n);
    cmd_result_fini(&r);
}

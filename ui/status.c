/* SPDX-License-Identifier: MIT
 * The status bar is a row of fields, each with forms from rich to short. It is composed in the
 * richest forms; while it is too long the fields are shortened in a fixed order, the least wanted
 * words first; at the end what was shortened too much is lengthened again where room is left. */
#include "ui/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "ui/mem.h"
#include "ui/text.h"

/* ---- figures --------------------------------------------------------------------------- */

static void
put_ms(struct ply_buf *b, double ms)
{
    if (ms < 0)
        ui_buf_printf(b, "--");
    else if (ms < 999.5)
        ui_buf_printf(b, "%.0f ms", ms);
    else if (ms < 99950)
        ui_buf_printf(b, "%.*f s", ms < 9995 ? 2 : 1, ms / 1000);
    else
        ui_buf_printf(b, "%.0f min", ms / 60000);
}

/* An estimate: no more digits than it deserves. */
static void
put_eta(struct ply_buf *b, double ms)
{
    if (ms < 9950)
        ui_buf_printf(b, "eta %.1f s", ms / 1000);
    else if (ms < 119500)
        ui_buf_printf(b, "eta %.0f s", ms / 1000);
    else
        ui_buf_printf(b, "eta %.0f min", ms / 60000);
}

static void
put_bytes(struct ply_buf *b, int64_t bytes)
{
    if (bytes < 10000000000)
        ui_buf_printf(b, "%.0f MB", (double)bytes / 1e6);
    else
        ui_buf_printf(b, "%.1f GB", (double)bytes / 1e9);
}

static void
put_gauge(struct ply_buf *b, double part, int cells)
{
    int full = (int)(part * cells + 0.5);
    full = PLY_MAX(0, PLY_MIN(cells, full));
    ui_buf_append(b, "[", 1);
    for (int i = 0; i < cells; i++)
        ui_buf_append(b, i < full ? "#" : "-", 1);
    ui_buf_append(b, "]", 1);
}

static double
share(long part, long whole)
{
    return whole > 0 && part > 0 ? PLY_MIN((double)part / (double)whole, 1.0) : 0;
}

/* Floor, not rounded: 99 % must not read as all. */
static int
percent(long part, long whole)
{
    return (int)(100 * share(part, whole));
}

static long
prompt_toks(const struct ui_status *s)
{
    return PLY_MAX(s->reused, 0) + PLY_MAX(s->drafted, 0) + PLY_MAX(s->evaluated, 0);
}

/* ---- states ---------------------------------------------------------------------------- */

bool
ui_state_is_busy(enum ui_state s)
{
    return s == UI_STATE_RESTORE || s == UI_STATE_PREFILL || s == UI_STATE_GEN;
}

const char *
ui_state_word(enum ui_state s)
{
    static const char *const words[] = {"LOAD", "RESTORE", "PREFILL", "GEN",
                                        "IDLE", "STOPPED", "FULL"};
    return (size_t)s < PLY_COUNT(words) ? words[s] : "?";
}

/* Whether one waits for the first token. */
static bool
waits(const struct ui_status *s)
{
    return s->state == UI_STATE_LOAD || s->state == UI_STATE_RESTORE ||
           s->state == UI_STATE_PREFILL || (s->state == UI_STATE_GEN && s->ttft_ms < 0);
}

bool
ui_status_ticks(const struct ui_status *s)
{
    return s->start_ms >= 0 && waits(s);
}

/* Seconds since Enter, in full tenths: a clock shows what has passed. */
static double
waited_s(const struct ui_status *s, double now)
{
    const long tenths = (long)((now - s->start_ms) / 100);
    return (double)PLY_MAX(tenths, 0L) / 10;
}

/* ---- fields of the bar ----------------------------------------------------------------- */

enum field { F_STATE, F_TTFT, F_SPEED, F_REUSE, F_MISS, F_CTX, F_MEM, N_FIELDS };

struct bar_in {
    const struct ui_status *s;
    double now;
};

static bool
split_known(const struct ui_status *s)
{
    return !waits(s) && s->state != UI_STATE_GEN && s->ttft_ms >= 0 && s->tokenize_ms >= 0 &&
           s->restore_ms >= 0 && s->prefill_ms >= 0 && s->decode_ms >= 0;
}

static void
put_ttft(struct ply_buf *b, const struct bar_in *in, int form)
{
    const struct ui_status *s = in->s;
    const char *name = form < 3 ? "TTFT " : "";
    if (ui_status_ticks(s)) {
        ui_buf_printf(b, "%s%.1f s..", name, waited_s(s, in->now));
    } else if (form == 0 && split_known(s)) {
        ui_buf_append(b, "TTFT ", 5);
        put_ms(b, s->ttft_ms);
        ui_buf_printf(b, " = tok %.0f + kv %.0f + prefill %.0f + dec %.0f", s->tokenize_ms,
                      s->restore_ms, s->prefill_ms, s->decode_ms);
    } else if (form == 1 && split_known(s)) {
        ui_buf_printf(b, "TTFT %.0f=tok %.0f+kv %.0f+pre %.0f+dec %.0f ms", s->ttft_ms,
                      s->tokenize_ms, s->restore_ms, s->prefill_ms, s->decode_ms);
    } else if (s->state != UI_STATE_LOAD && (s->ttft_ms >= 0 || form < 3)) {
        ui_buf_append(b, name, strlen(name));
        put_ms(b, s->ttft_ms);
    }
}

static void
put_progress(struct ply_buf *b, const struct ui_status *s, int form)
{
    if (s->state == UI_STATE_LOAD || form >= 2)
        ui_buf_printf(b, "%d%%", percent(s->done, s->total));
    else
        ui_buf_printf(b, "%ld/%ld%s", s->done, s->total, form == 0 ? " tok" : "");
    if (s->eta_ms >= 0 && form < 3) {
        ui_buf_append(b, " ", 1);
        put_eta(b, s->eta_ms);
    }
}

static void
put_speed(struct ply_buf *b, const struct bar_in *in, int form)
{
    const struct ui_status *s = in->s;
    if (s->state == UI_STATE_LOAD || s->state == UI_STATE_RESTORE || s->state == UI_STATE_PREFILL) {
        if (s->total > 0 && s->done >= 0)
            put_progress(b, s, form);
        return;
    }
    const char *unit = form < 3 ? " t/s" : "t/s";
    if (s->tok_s < 0)
        ui_buf_printf(b, "--%s", unit);
    else
        ui_buf_printf(b, "%.*f%s", s->tok_s < 99.95 ? 1 : 0, s->tok_s, unit);
    if (form < 2 && s->itl_ms >= 0)
        ui_buf_printf(b, " ITL %.0f ms", s->itl_ms);
    if (form == 0 && s->itl_p95_ms >= 0)
        ui_buf_printf(b, " p95 %.0f", s->itl_p95_ms);
}

static void
put_reuse(struct ply_buf *b, const struct bar_in *in, int form)
{
    const struct ui_status *s = in->s;
    const long all = prompt_toks(s);
    if (s->reused < 0)
        return;
    if (form <= 1) {
        ui_buf_printf(b, "reused %ld", s->reused);
        if (s->drafted > 0)
            ui_buf_printf(b, ", drafted %ld", s->drafted);
        ui_buf_printf(b, ", evaluated %ld", PLY_MAX(s->evaluated, 0));
        if (form == 0 && s->saved_ms >= 1) {
            ui_buf_append(b, " ~", 2);
            put_ms(b, s->saved_ms);
            ui_buf_append(b, " saved", 6);
        }
    } else if (form <= 3) {
        ui_buf_printf(b, "reuse %ld/%ld", s->reused, all);
        if (form == 2)
            ui_buf_printf(b, " %d%%", percent(s->reused, all));
    } else {
        ui_buf_printf(b, "%s%d%%", form == 4 ? "reuse " : "", percent(s->reused, all));
    }
}

static void
put_ctx(struct ply_buf *b, const struct bar_in *in, int form)
{
    const struct ui_status *s = in->s;
    if (s->ctx_size <= 0 || s->ctx_used < 0)
        return;
    if (form >= 2) {
        ui_buf_printf(b, "%s%d%%", form == 2 ? "ctx " : "", percent(s->ctx_used, s->ctx_size));
        return;
    }
    ui_buf_append(b, "ctx ", 4);
    if (form == 0) {
        put_gauge(b, share(s->ctx_used, s->ctx_size), 6);
        ui_buf_append(b, " ", 1);
    }
    ui_buf_printf(b, "%ld/%ld", s->ctx_used, s->ctx_size);
}

static void
put_mem(struct ply_buf *b, const struct bar_in *in, int form)
{
    const struct ui_status *s = in->s;
    if (s->kv_bytes >= 0) {
        ui_buf_append(b, "KV ", 3);
        put_bytes(b, s->kv_bytes);
    }
    if (s->rss_bytes >= 0 && form == 0) {
        ui_buf_append(b, s->kv_bytes >= 0 ? " RSS " : "RSS ", s->kv_bytes >= 0 ? 5 : 4);
        put_bytes(b, s->rss_bytes);
    }
}

/* ---- composing ------------------------------------------------------------------------- */

/* How many forms a field has; the form of that number is "left out". The reason of a miss has:
 * whole, cut, the mere word. */
static const int n_forms[N_FIELDS] = {1, 4, 4, 6, 3, 4, 2};

#define MISS_CUT_COLS 24 /* fewer columns do not tell a reason */

struct shape {
    int form[N_FIELDS];
    bool tight; /* " " between fields instead of " | " */
};

static void
put_field(struct ply_buf *b, const struct bar_in *in, enum field f, int form)
{
    if (form >= n_forms[f])
        return;
    switch (f) {
    case F_STATE: ui_buf_printf(b, "%s", ui_state_word(in->s->state)); break;
    case F_TTFT: put_ttft(b, in, form); break;
    case F_SPEED: put_speed(b, in, form); break;
    case F_REUSE: put_reuse(b, in, form); break;
    case F_CTX: put_ctx(b, in, form); break;
    case F_MEM: put_mem(b, in, form); break;
    case F_MISS:
        ui_buf_append(b, "MISS", 4);
        if (form < 2)
            ui_buf_printf(b, ": %s", in->s->reason);
        break;
    default: break;
    }
}

/* Composes one shape into cols columns; false if it does not fit. */
static bool
compose(const struct bar_in *in, const struct shape *shape, int cols, struct ui_bar *bar)
{
    const char *const sep = shape->tight ? " " : " | ";
    bar->text.n = 0;
    bar->miss_off = bar->miss_len = 0;
    ui_buf_append(&bar->text, " ", 1);
    for (int f = 0; f < N_FIELDS; f++) {
        if (f == F_MISS && (!in->s->reason || !in->s->reason[0]))
            continue;
        const size_t before = bar->text.n;
        if (f > 0)
            ui_buf_append(&bar->text, sep, strlen(sep));
        const size_t start = bar->text.n;
        put_field(&bar->text, in, (enum field)f, shape->form[f]);
        if (bar->text.n == start)
            bar->text.n = before; /* nothing to say, no separator */
        else if (f == F_MISS) {
            bar->miss_off = start;
            bar->miss_len = bar->text.n - start;
        }
    }
    ui_buf_append(&bar->text, "", 0);
    int over = ui_text_cols(bar->text.v, bar->text.n) - cols;
    if (over <= 0)
        return true;
    if (shape->form[F_MISS] != 1 || bar->miss_len == 0)
        return false;
    const int miss_cols = ui_text_cols(bar->text.v + bar->miss_off, bar->miss_len);
    const int room = miss_cols - over - 2;
    if (room < MISS_CUT_COLS)
        return false;
    const size_t keep = ui_text_fit(bar->text.v + bar->miss_off, bar->miss_len, room);
    ui_buf_remove(&bar->text, bar->miss_off + keep, bar->miss_len - keep);
    ui_buf_insert(&bar->text, bar->miss_off + keep, "..", 2);
    bar->miss_len = keep + 2;
    return true;
}

/* In what order words are given up. SEP stands for the separators. */
enum { SEP = N_FIELDS };
static const struct {
    int field, form;
} shorten[] = {
    {F_MEM, 1},   {F_REUSE, 1}, {F_SPEED, 1}, {F_MEM, 2},   {F_TTFT, 1},  {F_CTX, 1},
    {F_REUSE, 2}, {F_CTX, 2},   {F_TTFT, 2},  {F_SPEED, 2}, {F_REUSE, 3}, {F_REUSE, 4},
    {F_TTFT, 3},  {F_SPEED, 3}, {SEP, 1},     {F_MISS, 1},  {F_MISS, 2},  {F_REUSE, 5},
    {F_CTX, 3},   {F_MISS, 3},  {F_CTX, 4},   {F_REUSE, 6}, {F_SPEED, 4}, {F_TTFT, 4},
};

void
ui_status_bar(const struct ui_status *s, double now, int cols, struct ui_bar *bar)
{
    const struct bar_in in = {s, now};
    struct shape shape = {.tight = false};
    size_t n = 0;
    while (!compose(&in, &shape, cols, bar) && n < PLY_COUNT(shorten)) {
        if (shorten[n].field == SEP)
            shape.tight = true;
        else
            shape.form[shorten[n].field] = shorten[n].form;
        n++;
    }
    /* Give back what still fits, the most wanted first. */
    while (n-- > 0) {
        struct shape longer = shape;
        const int f = shorten[n].field;
        if (f == SEP)
            longer.tight = false;
        else
            longer.form[f] = PLY_MIN(shape.form[f], shorten[n].form) - 1;
        if (compose(&in, &longer, cols, bar))
            shape = longer;
    }
    compose(&in, &shape, cols, bar);
    bar->word_off = 1;
    bar->word_len = strlen(ui_state_word(s->state));
}

/* ---- the reply under way --------------------------------------------------------------- */

/* Appends a part if it fits beside what is there. */
static void
add_part(struct ply_buf *out, const struct ply_buf *part, int cols)
{
    const int used = ui_text_cols(ui_buf_str(out), out->n);
    const int gap = out->n > 0 ? 2 : 0;
    if (part->n == 0 || used + gap + ui_text_cols(part->v, part->n) > cols)
        return;
    ui_buf_append(out, "  ", (size_t)gap);
    ui_buf_append(out, part->v, part->n);
}

static void
live_waiting(const struct ui_status *s, double now, int cols, struct ply_buf *out)
{
    struct ply_buf part = {0};
    const bool restore = s->state == UI_STATE_RESTORE;
    ui_buf_printf(&part, "%s",
                  restore                     ? "restore"
                  : s->state == UI_STATE_LOAD ? "load"
                                              : "prefill");
    if (s->total > 0 && s->done >= 0) {
        if (cols >= 30) {
            ui_buf_append(&part, " ", 1);
            put_gauge(&part, share(s->done, s->total), 14);
        }
        if (s->state == UI_STATE_LOAD)
            ui_buf_printf(&part, " %d%%", percent(s->done, s->total));
        else
            ui_buf_printf(&part, " %ld/%ld tok", s->done, s->total);
    }
    add_part(out, &part, cols);
    part.n = 0;
    if (s->eta_ms >= 0) {
        put_eta(&part, s->eta_ms);
    } else if (ui_status_ticks(s)) {
        ui_buf_printf(&part, "%.1f s", waited_s(s, now));
    }
    add_part(out, &part, cols);
    part.n = 0;
    if (s->reused > 0 && s->source && s->source[0])
        ui_buf_printf(&part, "(%ld reused from %s)", s->reused, s->source);
    else if (s->reused > 0)
        ui_buf_printf(&part, "(%ld reused)", s->reused);
    add_part(out, &part, cols);
    ply_buf_fini(&part);
}

void
ui_status_live(const struct ui_status *s, double now, int cols, struct ply_buf *out)
{
    out->n = 0;
    if (waits(s)) {
        live_waiting(s, now, cols, out);
        return;
    }
    struct ply_buf part = {0};
    if (s->ttft_ms >= 0) {
        ui_buf_append(&part, "ttft ", 5);
        put_ms(&part, s->ttft_ms);
    }
    add_part(out, &part, cols);
    part.n = 0;
    if (s->tok_s >= 0)
        ui_buf_printf(&part, "%.1f t/s", s->tok_s);
    add_part(out, &part, cols);
    part.n = 0;
    if (s->n_reply >= 0)
        ui_buf_printf(&part, "%ld tok", s->n_reply);
    add_part(out, &part, cols);
    part.n = 0;
    if (s->reused >= 0)
        ui_buf_printf(&part, "reuse %ld/%ld", s->reused, prompt_toks(s));
    add_part(out, &part, cols);
    ply_buf_fini(&part);
}

/* ---- header ---------------------------------------------------------------------------- */

void
ui_header_line(const struct ui_header *h, int cols, struct ply_buf *left, struct ply_buf *right)
{
    /* The order in which parts are given room; they are written in the order of the line. */
    enum { MODEL, TITLE, LANGUAGES, RIGHT, NOTES, N };
    static const int line_order[] = {MODEL, LANGUAGES, TITLE, NOTES};
    struct ply_buf lang = {0};
    if (h->languages && h->languages[0])
        ui_buf_printf(&lang, "[%s]", h->languages);
    const char *const part[N] = {h->model, h->title, ui_buf_str(&lang), h->right, h->notes};
    size_t len[N] = {0};
    bool cut[N] = {false};
    int room = cols - 2; /* a blank column at either edge */
    for (int i = 0; i < N; i++) {
        const size_t n = part[i] ? strlen(part[i]) : 0;
        const int gap = i == MODEL ? 0 : i == LANGUAGES ? 1 : 3;
        const int want = ui_text_cols(part[i] ? part[i] : "", n) + gap;
        const bool may_cut = i == MODEL || i == TITLE;
        if (n == 0 || room <= gap || (want > room && !may_cut))
            continue;
        cut[i] = want > room;
        len[i] = cut[i] ? ui_text_fit(part[i], n, PLY_MAX(room - gap - 2, 0)) : n;
        room -= PLY_MIN(want, room);
    }
    left->n = right->n = 0;
    for (size_t k = 0; k < PLY_COUNT(line_order); k++) {
        const int i = line_order[k];
        if (len[i] == 0)
            continue;
        ui_buf_append(left, "   ", i == LANGUAGES ? 1 : left->n > 0 ? 3 : 0);
        ui_buf_append(left, part[i], len[i]);
        ui_buf_append(left, "..", cut[i] ? 2 : 0);
    }
    if (len[RIGHT] > 0)
        ui_buf_append(right, part[RIGHT], len[RIGHT]);
    ply_buf_fini(&lang);
}

/* ---- copies ---------------------------------------------------------------------------- */

/* The struct is shared with the program, whose strings are const; ours are owned. */
static void
own(const char **field, char *old, const char *s)
{
    ui_str_set(&old, s);
    *field = old;
}

void
ui_status_copy(struct ui_status *to, const struct ui_status *from)
{
    char *const source = (char *)to->source, *const reason = (char *)to->reason;
    *to = *from;
    own(&to->source, source, from->source);
    own(&to->reason, reason, from->reason);
}

void
ui_status_fini(struct ui_status *s)
{
    free((char *)s->source);
    free((char *)s->reason);
    s->source = s->reason = NULL;
}

void
ui_header_copy(struct ui_header *to, const struct ui_header *from)
{
    own(&to->model, (char *)to->model, from->model);
    own(&to->languages, (char *)to->languages, from->languages);
    own(&to->title, (char *)to->title, from->title);
    own(&to->notes, (char *)to->notes, from->notes);
    own(&to->right, (char *)to->right, from->right);
}

void
ui_header_fini(struct ui_header *h)
{
    free((char *)h->model);
    free((char *)h->languages);
    free((char *)h->title);
    free((char *)h->notes);
    free((char *)h->right);
    *h = (struct ui_header){0};
}

/* SPDX-License-Identifier: MIT
 * The facade: the loop's two calls, what each key does, and the models' public side. Every change
 * of a model sets the dirty bit; ui_refresh() alone draws. */
#include "ui/ui.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/num.h"
#include "ui/bind.h"
#include "ui/draw.h"
#include "ui/mem.h"
#include "ui/screen.h"
#include "ui/term.h"

#define FRAME_MS 33        /* 30 frames a second */
#define TICK_MS 100        /* the clock in the status bar shows tenths of a second */
#define READ_MAX (4 << 20) /* bytes taken in one turn of the loop: a paste must not starve it */

/* ---- time and drawing ------------------------------------------------------------------ */

static double
real_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

double
ui_now_ms(const struct ui *ui)
{
    return ui->now_ms ? ui->now_ms(ui->user) : real_ms();
}

bool
ui_asks(const struct ui *ui)
{
    return ui->ask_keys[0] != '\0';
}

bool
ui_overlaid(const struct ui *ui)
{
    return ui->list.open || ui->pager.open;
}

/* The editor has the keyboard. */
static bool
edits(const struct ui *ui)
{
    return !ui_asks(ui) && !ui_overlaid(ui);
}

static void
lay_out(struct ui *ui)
{
    int rows, cols, col;
    size_t caret_row;
    ui_term_size(&rows, &cols);
    ui_editor_layout(&ui->editor, ui_layout_draft_cols(cols), &caret_row, &col);
    const size_t draft_rows = ui_overlaid(ui) ? 1 : ui->editor.rows.n;
    ui_layout_make(&ui->layout, rows, cols, (int)PLY_MIN(draft_rows, UI_EDITOR_ROWS_MAX),
                   ui->notice[0] != '\0', ui_asks(ui));
    ui_transcript_resize(&ui->transcript, ui_layout_text_cols(cols), ui->layout.view_rows,
                         ui->layout.gaps);
}

void
ui_refresh(struct ui *ui)
{
    const double now = real_ms();
    if (ui_status_ticks(&ui->status) && now - ui->drawn_ms >= TICK_MS)
        ui->dirty = true;
    if (!ui->dirty || ui->hung_up || now - ui->drawn_ms < FRAME_MS)
        return;
    lay_out(ui);
    ui_draw_screen(ui);
    ui_term_flush(ui->redraw);
    ui->dirty = ui->redraw = false;
    ui->drawn_ms = now;
}

int
ui_timeout(const struct ui *ui)
{
    const double now = real_ms();
    const int key = ui_keys_timeout(&ui->keys, now);
    double frame = -1;
    if (ui->dirty)
        frame = PLY_MAX(ui->drawn_ms + FRAME_MS - now, 0.0) + 1;
    else if (ui_status_ticks(&ui->status))
        frame = PLY_MAX(ui->drawn_ms + TICK_MS - now, 0.0) + 1;
    if (ui->hung_up)
        return ui->hang_up_told ? -1 : 0;
    if (key < 0 || frame < 0)
        return key < 0 ? (int)frame : key;
    return PLY_MIN(key, (int)frame);
}

/* ---- open, close ----------------------------------------------------------------------- */

int
ui_open(struct ui **out, const struct ui_opts *opts, struct ply_err *err)
{
    *out = NULL;
    const int r = ui_term_open(opts, err);
    if (r != PLY_OK)
        return r;
    struct ui *ui = ui_xrealloc(NULL, 1, sizeof *ui);
    *ui = (struct ui){.fd_in = opts->fd_in, .now_ms = opts->now_ms, .user = opts->user};
    ui->status = (struct ui_status)UI_STATUS_INIT;
    ui_transcript_init(&ui->transcript);
    ui_editor_init(&ui->editor, false);
    ui_str_set(&ui->notice, "");
    ui_str_set(&ui->ask_keys, "");
    ui_str_set(&ui->held, "");
    ui_str_set(&ui->note, "");
    ui_str_set(&ui->hint, "");
    ui->dirty = ui->redraw = true;
    ui->drawn_ms = -1e9;
    *out = ui;
    return PLY_OK;
}

void
ui_close(struct ui **ui)
{
    struct ui *u = *ui;
    if (!u)
        return;
    ui_term_close();
    ui_keys_fini(&u->keys);
    ui_transcript_fini(&u->transcript);
    ui_editor_fini(&u->editor);
    ui_status_fini(&u->status);
    ui_header_fini(&u->header);
    ui_list_view_close(&u->list);
    ui_pager_fini(&u->pager);
    free(u->notice);
    free(u->ask_keys);
    free(u->held);
    free(u->note);
    free(u->hint);
    ply_buf_fini(&u->event_text);
    free(u);
    *ui = NULL;
}

static void
repaint(struct ui *ui)
{
    ui->dirty = ui->redraw = true;
    ui->drawn_ms = -1e9;
}

void
ui_pause(struct ui *ui)
{
    ui_term_pause();
}

void
ui_unpause(struct ui *ui)
{
    ui_term_unpause();
    repaint(ui);
}

void
ui_pollfds(const struct ui *ui, struct pollfd *fds)
{
    fds[0] = (struct pollfd){.fd = ui->hung_up ? -1 : ui->fd_in, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = ui_term_signal_fd(), .events = POLLIN};
}

/* ---- keys ------------------------------------------------------------------------------ */

/* Sets an event whose text is kept until the next one. */
static void
tell(struct ui *ui, struct ui_event *ev, enum ui_event_type type, const char *text, size_t len)
{
    ui_buf_set(&ui->event_text, text, len);
    ev->type = type;
    ev->text = ui->event_text.v;
    ev->len = len;
}

static void
tell_draft(struct ui *ui, struct ui_event *ev, enum ui_event_type type, size_t len)
{
    tell(ui, ev, type, ui_buf_str(&ui->editor.text), len);
}

static void
suspend(struct ui *ui)
{
    ui_term_suspend();
    repaint(ui);
}

/* ^C stops a reply; else it clears the draft; on an empty draft the second one in a row quits. */
static void
interrupt(struct ui *ui, struct ui_event *ev)
{
    if (ui_state_is_busy(ui->status.state)) {
        tell(ui, ev, UI_EVENT_STOP, "", 0);
    } else if (ui->editor.text.n > 0 && edits(ui)) {
        ui_editor_do(&ui->editor, UI_EDIT_KILL_ALL);
        ui_notice(ui, UI_LEVEL_INFO, "draft cleared, ^Y brings it back");
    } else if (ui->quit_armed) {
        tell(ui, ev, UI_EVENT_QUIT, "", 0);
    } else {
        ui_notice(ui, UI_LEVEL_INFO, "^C again quits");
        ui->quit_armed = true;
    }
}

/* Keys that mean the same wherever the keyboard is. */
static bool
global_key(struct ui *ui, const struct ui_key *key, struct ui_event *ev)
{
    if (key->code != UI_KEY_CHAR || key->mods != UI_MOD_CTRL)
        return false;
    switch (key->ch) {
    case 'c': interrupt(ui, ev); return true;
    case 'l': repaint(ui); return true;
    case 'z': suspend(ui); return true;
    default: return false;
    }
}

/* Scrolls the transcript; false if the key does not. */
static bool
scroll_key(struct ui *ui, const struct ui_key *key)
{
    struct ui_transcript *t = &ui->transcript;
    const int page = PLY_MAX(t->height - 2, 1); /* two lines stay, for the eye */
    const bool alt = key->mods == UI_MOD_ALT;
    switch (key->code) {
    case UI_KEY_PGUP: ui_transcript_scroll(t, alt ? -1 : -page); return true;
    case UI_KEY_PGDN: ui_transcript_scroll(t, alt ? 1 : page); return true;
    case UI_KEY_UP:
        if (alt)
            ui_transcript_scroll(t, -1);
        return alt;
    case UI_KEY_DOWN:
        if (alt)
            ui_transcript_scroll(t, 1);
        return alt;
    case UI_KEY_HOME:
        if (alt)
            ui_transcript_home(t);
        return alt;
    case UI_KEY_END:
        /* Plain End follows too, as the line above the editor says, and is still the line's end. */
        if (alt || !t->follow)
            ui_transcript_follow(t);
        return alt;
    default: return false;
    }
}

static void
escape(struct ui *ui, struct ui_event *ev)
{
    if (ui_state_is_busy(ui->status.state))
        tell(ui, ev, UI_EVENT_STOP, "", 0);
    else
        ui_notice(ui, UI_LEVEL_INFO, NULL);
}

static void
enter(struct ui *ui, struct ui_event *ev, bool after_esc)
{
    if (after_esc) { /* Alt+Enter, sent slowly: the safe reading */
        ui_editor_insert(&ui->editor, "\n", 1, true);
        ui_notice(ui, UI_LEVEL_INFO, "a new line: Enter right after Esc never sends");
    } else if (!ui_editor_is_blank(&ui->editor)) {
        tell_draft(ui, ev, UI_EVENT_SUBMIT, ui->editor.text.n);
    }
}

/* Keys that call for the program; false if this is none. */
static bool
command_key(struct ui *ui, const struct ui_key *key, struct ui_event *ev)
{
    const size_t n = ui->editor.text.n;
    const bool ctrl = key->code == UI_KEY_CHAR && key->mods == UI_MOD_CTRL;
    const uint32_t f = key->code == UI_KEY_F ? key->ch : 0;
    if (f == 1)
        tell(ui, ev, UI_EVENT_HELP, "", 0);
    else if (f == 2 || (ctrl && key->ch == 'o'))
        tell(ui, ev, UI_EVENT_SESSIONS, "", 0);
    else if (f == 3)
        tell(ui, ev, UI_EVENT_STATS, "", 0);
    else if (ctrl && key->ch == 'g')
        tell_draft(ui, ev, UI_EVENT_EDITOR, n);
    else if (key->code == UI_KEY_TAB)
        tell_draft(ui, ev, UI_EVENT_TAB, ui->editor.caret);
    else if (ctrl && key->ch == 'd' && n == 0)
        tell(ui, ev, UI_EVENT_QUIT, "", 0);
    else
        return false;
    return true;
}

static void
edit_key(struct ui *ui, const struct ui_key *key, struct ui_event *ev, bool after_esc)
{
    if (key->code == UI_KEY_ESC)
        escape(ui, ev);
    else if (key->code == UI_KEY_ENTER)
        enter(ui, ev, after_esc);
    else if (!command_key(ui, key, ev) && !scroll_key(ui, key))
        ui_bind_edit(&ui->editor, key);
}

static void
ask_key(struct ui *ui, const struct ui_key *key, struct ui_event *ev)
{
    const bool is_char = key->code == UI_KEY_TEXT && key->n == 1;
    if (key->code != UI_KEY_ESC && !(is_char && strchr(ui->ask_keys, key->text[0])))
        return;
    ev->key = is_char ? key->text[0] : 0;
    tell(ui, ev, UI_EVENT_ANSWER, "", 0);
    ui_str_set(&ui->ask_keys, "");
    ui_notice(ui, ui->held_level, ui->held);
    ui_str_set(&ui->held, "");
}

static void
list_key(struct ui *ui, const struct ui_key *key, struct ui_event *ev)
{
    ui_list_view_key(&ui->list, key, ev);
    if (ev->type != UI_EVENT_NONE)
        tell(ui, ev, ev->type, ev->text ? ev->text : "", ev->len);
}

static void
handle_key(struct ui *ui, const struct ui_key *key, struct ui_event *ev)
{
    const bool after_esc = ui->after_esc;
    ui->dirty = true;
    ui->after_esc = key->code == UI_KEY_ESC;
    const bool is_ctrl_c = key->code == UI_KEY_CHAR && key->mods == UI_MOD_CTRL && key->ch == 'c';
    if (ui->quit_armed && !is_ctrl_c) {
        ui->quit_armed = false;
        ui_notice(ui, UI_LEVEL_INFO, NULL);
    }
    if (global_key(ui, key, ev))
        return;
    if (ui_asks(ui))
        ask_key(ui, key, ev);
    else if (ui->pager.open)
        ui_pager_key(&ui->pager, key);
    else if (ui->list.open)
        list_key(ui, key, ev);
    else
        edit_key(ui, key, ev, after_esc);
}

/* ---- reading --------------------------------------------------------------------------- */

/* Takes what the terminal has; false if it has nothing, or is gone. */
static bool
read_bytes(struct ui *ui)
{
    static char buf[65536];
    struct pollfd p = {.fd = ui->fd_in, .events = POLLIN};
    if (ui->hung_up || poll(&p, 1, 0) <= 0)
        return false;
    const ssize_t n = read(ui->fd_in, buf, sizeof buf);
    if (n > 0) {
        ui_keys_feed(&ui->keys, buf, (size_t)n, real_ms());
        ui->n_read += (size_t)n;
        return true;
    }
    if (n == 0 || (errno != EINTR && errno != EAGAIN))
        ui->hung_up = true;
    return false;
}

static void
handle_signals(struct ui *ui)
{
    const unsigned set = ui_term_signals();
    if (set & UI_SIG_CONT) {
        ui_term_retake();
        repaint(ui);
    }
    if (set & UI_SIG_STOP)
        suspend(ui);
    if (set != 0 && ui_term_resize())
        repaint(ui);
}

bool
ui_read(struct ui *ui, struct ui_event *ev)
{
    *ev = (struct ui_event){.text = ""};
    handle_signals(ui);
    for (;;) {
        struct ui_key key;
        ui->keys.single = !edits(ui);
        if (ui_keys_next(&ui->keys, real_ms(), &key)) {
            handle_key(ui, &key, ev);
            if (ev->type != UI_EVENT_NONE)
                return true;
        } else if (ui->n_read > READ_MAX || !read_bytes(ui)) {
            break;
        }
    }
    ui->n_read = 0;
    if (ui->hung_up && !ui->hang_up_told) {
        ui->hang_up_told = true;
        tell(ui, ev, UI_EVENT_HANGUP, "", 0);
        return true;
    }
    return false;
}

/* ---- transcript ------------------------------------------------------------------------ */

int
ui_msg_add(struct ui *ui, const struct ui_msg *msg)
{
    ui->dirty = true;
    return ui_transcript_add(&ui->transcript, msg);
}

void
ui_msg_append(struct ui *ui, const char *text, size_t len)
{
    ui->dirty = true;
    ui_transcript_append(&ui->transcript, text, len);
}

void
ui_msg_set_text(struct ui *ui, int index, const char *text, size_t len)
{
    ui->dirty = true;
    ui_transcript_set_text(&ui->transcript, index, text, len);
}

void
ui_msg_set_info(struct ui *ui, int index, const char *info)
{
    ui->dirty = true;
    if (index >= 0 && index < ui->transcript.n)
        ui_str_set(&ui->transcript.v[index].info, info);
}

void
ui_msg_set_right(struct ui *ui, int index, const char *right)
{
    ui->dirty = true;
    if (index >= 0 && index < ui->transcript.n)
        ui_str_set(&ui->transcript.v[index].right, right);
}

void
ui_msg_set_live(struct ui *ui, int index)
{
    ui->dirty = true;
    ui->transcript.live = index < ui->transcript.n ? index : -1;
}

int
ui_msg_count(const struct ui *ui)
{
    return ui->transcript.n;
}

void
ui_msg_truncate(struct ui *ui, int n)
{
    ui->dirty = true;
    ui_transcript_truncate(&ui->transcript, n);
}

void
ui_msg_follow(struct ui *ui)
{
    ui->dirty = true;
    ui_transcript_follow(&ui->transcript);
}

/* ---- editor ---------------------------------------------------------------------------- */

const char *
ui_draft(struct ui *ui, size_t *len)
{
    *len = ui->editor.text.n;
    return ui_buf_str(&ui->editor.text);
}

bool
ui_draft_empty(const struct ui *ui)
{
    return ui->editor.text.n == 0;
}

void
ui_draft_set(struct ui *ui, const char *text, size_t len)
{
    ui->dirty = true;
    ui_editor_set(&ui->editor, text, len);
}

void
ui_draft_accept(struct ui *ui)
{
    ui->dirty = true;
    ui_editor_history_add(&ui->editor, ui_buf_str(&ui->editor.text), ui->editor.text.n);
    ui_editor_reset(&ui->editor);
    ui_notice(ui, UI_LEVEL_INFO, NULL);
}

uint64_t
ui_draft_version(const struct ui *ui)
{
    return ui->editor.version;
}

void
ui_draft_note(struct ui *ui, const char *note)
{
    ui->dirty = true;
    ui_str_set(&ui->note, note);
}

void
ui_draft_hint(struct ui *ui, const char *hint)
{
    ui->dirty = true;
    ui_str_set(&ui->hint, hint);
}

void
ui_history_add(struct ui *ui, const char *text, size_t len)
{
    ui_editor_history_add(&ui->editor, text, len);
}

int
ui_history_count(const struct ui *ui)
{
    return ui->editor.n_history;
}

const char *
ui_history_get(const struct ui *ui, int index, size_t *len)
{
    *len = 0;
    if (index < 0 || index >= ui->editor.n_history)
        return "";
    *len = ui->editor.history[index].n;
    return ui_buf_str(&ui->editor.history[index]);
}

/* ---- status, header, notices ----------------------------------------------------------- */

void
ui_status_set(struct ui *ui, const struct ui_status *status)
{
    ui->dirty = true;
    ui_status_copy(&ui->status, status);
}

void
ui_header_set(struct ui *ui, const struct ui_header *header)
{
    ui->dirty = true;
    ui_header_copy(&ui->header, header);
}

void
ui_notice(struct ui *ui, enum ui_level level, const char *text)
{
    if (ui_asks(ui)) { /* a question stays until it is answered */
        ui->held_level = level;
        ui_str_set(&ui->held, text);
        return;
    }
    ui->dirty = true;
    ui->quit_armed = false;
    ui->notice_level = level;
    ui_str_set(&ui->notice, text);
}

void
ui_ask(struct ui *ui, const char *question, const char *keys)
{
    ui_str_set(&ui->ask_keys, "");
    ui_notice(ui, UI_LEVEL_WARN, question);
    ui_str_set(&ui->ask_keys, keys);
}

/* ---- overlays -------------------------------------------------------------------------- */

void
ui_list_open(struct ui *ui, const struct ui_list *list)
{
    ui->dirty = true;
    ui->pager.open = false;
    ui_list_view_open(&ui->list, list);
}

void
ui_list_rows(struct ui *ui, const struct ui_list_row *rows, int n)
{
    ui->dirty = true;
    ui_list_view_rows(&ui->list, rows, n);
}

void
ui_list_close(struct ui *ui)
{
    ui->dirty = true;
    ui_list_view_close(&ui->list);
}

bool
ui_list_is_open(const struct ui *ui)
{
    return ui->list.open;
}

void
ui_pager_open(struct ui *ui, const char *title, const char *text, size_t len)
{
    ui->dirty = true;
    ui_list_view_close(&ui->list);
    ui_pager_set(&ui->pager, title, text, len);
}

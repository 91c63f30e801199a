/* SPDX-License-Identifier: MIT
 * ui.h - libui, a full-screen chat on a terminal. Knows nothing of models or databases.
 *
 * The screen, top to bottom: a header line, the transcript, one notice line, the editor, the
 * status bar. Over the transcript may lie one overlay: a list (sessions) or a pager (help). The
 * program fills models (messages, status, header, rows); libui turns keys into events and draws.
 *
 * The program owns the loop and libui never blocks:
 *
 *     struct pollfd fds[UI_N_FDS + 1];
 *     for (;;) {
 *         ui_pollfds(ui, fds);
 *         poll(fds, n_fds, ui_timeout(ui));
 *         while (ui_read(ui, &ev))
 *             ...                          what the person wants
 *         ...                              what the engine has said: ui_msg_append(), ...
 *         ui_refresh(ui);                  draws what is dirty, 30 times a second at most
 *     }
 *
 * Call ui_read() until it says false and then ui_refresh() in every turn, whatever woke the poll.
 * Resizing, suspending (^Z), scrolling, editing and overlays happen inside these two calls.
 *
 * Text: any bytes, in and out. Nothing that is handed in reaches the terminal as a control
 * sequence: control bytes, ill-formed UTF-8 and bidirectional controls are drawn as placeholders;
 * single-line texts (titles, names, notices) show a newline as a placeholder too. Strings and
 * structs are copied; a NULL string is an empty one. Nothing is ever used as a printf format.
 *
 * Threads: one thread, always the same. Only ui_term_restore() may be called from anywhere.
 * Errors: only ui_open() can fail. Where memory runs out the process aborts; the program's
 * SIGABRT handler calls ui_term_restore(). There can be one struct ui at a time. */
#ifndef UI_H
#define UI_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

struct ui;

/* ---- open, close, the loop ------------------------------------------------------------- */

enum ui_color {
    UI_COLOR_AUTO, /* colours unless NO_COLOR is set and not empty, or the terminal has none */
    UI_COLOR_OFF,
};

struct ui_opts {
    int fd_in, fd_out; /* the terminal, usually 0 and 1 */
    const char *term;  /* NULL: $TERM */
    enum ui_color color;
    double (*now_ms)(void *user); /* NULL: CLOCK_MONOTONIC; tests bring their own clock */
    void *user;                   /* for now_ms */
};

/* Takes the terminal: alternate screen, raw mode, bracketed paste, handlers for SIGWINCH, SIGTSTP
 * and SIGCONT that only write to a pipe. Every other signal is left as it was. Calls
 * setlocale(LC_CTYPE, ""). In a locale that is not UTF-8 what is not ASCII is drawn as '?'.
 * PLY_EINVAL: not a terminal. PLY_EUNSUPPORTED: TERM is unset, unknown or too simple ("dumb"); the
 * message is complete for the person. After a failure the terminal is as it was, *out is NULL. */
int ui_open(struct ui **out, const struct ui_opts *opts, struct ply_err *err);
/* Gives the terminal back as it was found, and the signal handlers too. */
void ui_close(struct ui **ui);

/* For handlers of fatal signals and abort: gives the terminal back with write() and tcsetattr()
 * alone. Async-signal-safe, any thread, may be called when nothing is open and more than once.
 * After it the ui must not be used. */
void ui_term_restore(void);

/* Around a child program that wants the terminal ($EDITOR): pause gives it back, unpause takes it
 * again and draws everything. */
void ui_pause(struct ui *ui);
void ui_unpause(struct ui *ui);

#define UI_N_FDS 2
/* Fills fds[0..UI_N_FDS) with what to wait for; revents may be ignored. */
void ui_pollfds(const struct ui *ui, struct pollfd *fds);
/* Milliseconds until ui_read() and ui_refresh() want to be called again though no fd is ready (a
 * frame that was held back, a clock that ticks, a lone Esc); -1: never. An idle ui says -1. */
int ui_timeout(const struct ui *ui);
void ui_refresh(struct ui *ui);
/* The clock of the times below. */
double ui_now_ms(const struct ui *ui);

/* ---- events ---------------------------------------------------------------------------- */

enum ui_event_type {
    UI_EVENT_NONE,
    /* Enter: text is the draft, never blank. The editor keeps it until ui_draft_accept(), so that
     * a draft that is refused is not lost. */
    UI_EVENT_SUBMIT,
    UI_EVENT_STOP,     /* Esc or ^C while busy (states RESTORE, PREFILL, GEN) */
    UI_EVENT_QUIT,     /* ^D on an empty draft, or ^C twice when idle */
    UI_EVENT_HANGUP,   /* the terminal is gone: end of input or an error; comes once */
    UI_EVENT_HELP,     /* F1 */
    UI_EVENT_SESSIONS, /* F2 or ^O */
    UI_EVENT_STATS,    /* F3 */
    UI_EVENT_EDITOR,   /* ^G: text is the draft, to be edited in $VISUAL */
    /* Tab: text is the draft up to the caret, to be completed with ui_draft_set(). On an empty
     * draft it may take up an offer of the program's. */
    UI_EVENT_TAB,
    UI_EVENT_ANSWER,      /* to ui_ask(): key is the one pressed, 0 for Esc */
    UI_EVENT_LIST_OPEN,   /* Enter on row id; the list stays until ui_list_close() */
    UI_EVENT_LIST_RENAME, /* row id shall be called text; answer with ui_list_rows() */
    UI_EVENT_LIST_DELETE, /* row id, confirmed by the person; answer with ui_list_rows() */
    UI_EVENT_LIST_FILTER, /* the filter is now text, perhaps ""; answer with ui_list_rows() */
    UI_EVENT_LIST_CLOSE,  /* Esc, q, F2: the list is closed already */
};

/* text is UTF-8 with a NUL after it; it lives until the next call of ui_read() or ui_draft_*(). */
struct ui_event {
    enum ui_event_type type;
    const char *text;
    size_t len;
    int64_t id;
    int key;
};

/* The next event; false: nothing more for now. Reads what the terminal has, never waits. */
bool ui_read(struct ui *ui, struct ui_event *ev);

/* ---- the transcript -------------------------------------------------------------------- */

enum ui_role { UI_ROLE_USER, UI_ROLE_REPLY, UI_ROLE_SYSTEM, UI_ROLE_NOTE };

struct ui_msg {
    enum ui_role role;
    const char *author; /* "you", "smollm2"; the first word of the header line */
    const char *info;   /* after it: "ttft 84 ms  41.7 t/s  212 tok  reuse 318/331" */
    const char *right;  /* at the right edge: "09:41" or "[6]" */
    const char *text;
    size_t len;
};

/* Adds at the end; returns the message's index, counted from 0. */
int ui_msg_add(struct ui *ui, const struct ui_msg *msg);
/* More text for the last message. Costs what the last line costs, however long the message is. */
void ui_msg_append(struct ui *ui, const char *text, size_t len);
void ui_msg_set_text(struct ui *ui, int index, const char *text, size_t len);
void ui_msg_set_info(struct ui *ui, int index, const char *info);
void ui_msg_set_right(struct ui *ui, int index, const char *right);
/* A live message (one at a time, -1 for none) shows the status in its header line instead of its
 * info: prefill progress while one waits, the speed while it speaks. */
void ui_msg_set_live(struct ui *ui, int index);
int ui_msg_count(const struct ui *ui);
/* Keeps the first n messages; 0 clears. */
void ui_msg_truncate(struct ui *ui, int n);
/* Back to the end, following what arrives. Otherwise the view holds its place when scrolled. */
void ui_msg_follow(struct ui *ui);

/* ---- the editor ------------------------------------------------------------------------ */

/* The draft, with a NUL after it; valid until the next call of ui_read() or ui_draft_*(). */
const char *ui_draft(struct ui *ui, size_t *len);
bool ui_draft_empty(const struct ui *ui);
/* Replaces the draft, caret at its end; one step of undo. */
void ui_draft_set(struct ui *ui, const char *text, size_t len);
/* After UI_EVENT_SUBMIT: the draft goes into the history, and the editor is empty. */
void ui_draft_accept(struct ui *ui);
/* Grows with every change of the draft: for saving it, or evaluating it, when it rests. */
uint64_t ui_draft_version(const struct ui *ui);
/* Right of the draft: "draft prefilled 9 of 11 tok"; "" for none. */
void ui_draft_note(struct ui *ui, const char *note);
/* Shown, dimmed, in an empty editor: what can be done. */
void ui_draft_hint(struct ui *ui, const char *hint);

/* What Up recalls, oldest first. It lives in memory; keeping it is the program's matter. */
void ui_history_add(struct ui *ui, const char *text, size_t len);
int ui_history_count(const struct ui *ui);
const char *ui_history_get(const struct ui *ui, int index, size_t *len);

/* ---- status bar, header, notices ------------------------------------------------------- */

enum ui_state {
    UI_STATE_LOAD,
    UI_STATE_RESTORE, /* busy from here */
    UI_STATE_PREFILL,
    UI_STATE_GEN, /* busy to here */
    UI_STATE_IDLE,
    UI_STATE_STOPPED, /* the last reply was stopped */
    UI_STATE_FULL,    /* the context is full */
};

/* What is unknown is negative and drawn as "--" or left out; UI_STATUS_INIT sets all so. */
struct ui_status {
    enum ui_state state;
    /* ui_now_ms() when Enter was pressed: TTFT ticks from here in the states LOAD, RESTORE and
     * PREFILL, and in GEN while ttft_ms is unknown. Negative: nothing ticks. */
    double start_ms;
    double ttft_ms; /* of the current or the last turn, and its causes */
    double tokenize_ms, restore_ms, prefill_ms, decode_ms;
    double tok_s;                    /* of the current or the last reply */
    double itl_ms, itl_p95_ms;       /* time between two tokens: median, 95 % */
    long n_reply;                    /* tokens of the reply so far */
    long reused, evaluated, drafted; /* tokens of the prompt */
    const char *source;              /* where the reused ones came from: "live", "RAM", "disk" */
    double saved_ms;                 /* estimate of the time that reuse saved, drawn with a ~ */
    long done, total;                /* progress of LOAD (any unit), RESTORE and PREFILL (tokens) */
    double eta_ms;
    long ctx_used, ctx_size;
    int64_t kv_bytes, rss_bytes;
    const char *reason; /* after a miss, in words: "message 3 edited at token 211" */
};

#define UI_STATUS_INIT                                                                         \
    {                                                                                          \
        .state = UI_STATE_IDLE, .start_ms = -1, .ttft_ms = -1, .tokenize_ms = -1,              \
        .restore_ms = -1, .prefill_ms = -1, .decode_ms = -1, .tok_s = -1, .itl_ms = -1,        \
        .itl_p95_ms = -1, .n_reply = -1, .reused = -1, .evaluated = -1, .drafted = -1,         \
        .saved_ms = -1, .done = -1, .total = -1, .eta_ms = -1, .ctx_used = -1, .ctx_size = -1, \
        .kv_bytes = -1, .rss_bytes = -1,                                                       \
    }

void ui_status_set(struct ui *ui, const struct ui_status *status);

struct ui_header {
    const char *model;     /* "SmolLM2-135M-Instruct Q4_1" */
    const char *languages; /* "en" */
    const char *title;     /* "#12 tar vs cpio" */
    const char *notes;     /* "branch 2/3   sys: default" */
    const char *right;     /* "3 sessions" */
};

/* What does not fit is left out, notes first, then right, languages, and the title is cut last. */
void ui_header_set(struct ui *ui, const struct ui_header *header);

enum ui_level { UI_LEVEL_INFO, UI_LEVEL_WARN, UI_LEVEL_ERROR };

/* One line above the editor, until the next, ui_draft_accept() or Esc; NULL or "" removes it. */
void ui_notice(struct ui *ui, enum ui_level level, const char *text);
/* A question on that line that takes the keyboard until one of keys (ASCII letters or digits) or
 * Esc is pressed: UI_EVENT_ANSWER. A notice that comes meanwhile is shown after the answer. */
void ui_ask(struct ui *ui, const char *question, const char *keys);

/* ---- overlays: list and pager ---------------------------------------------------------- */

#define UI_LIST_COLS 8

struct ui_list_col {
    const char *title;
    int cols_max;   /* columns at most; 0: takes what is left (one such column) */
    int screen_min; /* shown on screens at least this wide */
    bool right;     /* aligned to the right */
};

struct ui_list {
    const char *title;
    const char *empty; /* shown when there is no row */
    struct ui_list_col cols[UI_LIST_COLS];
    int n_cols;
    int name_col; /* the cell a rename starts from and a delete asks about */
    bool can_rename, can_delete, can_filter;
};

struct ui_list_row {
    int64_t id;
    bool marked; /* drawn with a '*': the open session */
    const char *cells[UI_LIST_COLS];
};

/* Opens an empty list over the transcript; an open list or pager is replaced. Keys: Up Down PgUp
 * PgDn Home End, Enter open, r rename, d or Del delete (asks first), / filter, Esc or q close. */
void ui_list_open(struct ui *ui, const struct ui_list *list);
/* Replaces the rows; the cursor stays on its row's id, else on its line. */
void ui_list_rows(struct ui *ui, const struct ui_list_row *rows, int n);
void ui_list_close(struct ui *ui);
bool ui_list_is_open(const struct ui *ui);

/* Shows text (help, /show, statistics) until Esc, q or Enter. Lines are wrapped by word and keep
 * their leading spaces. */
void ui_pager_open(struct ui *ui, const char *title, const char *text, size_t len);

#endif

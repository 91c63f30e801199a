/* SPDX-License-Identifier: MIT
 * libui without an engine, for tests and for looking at it.
 *
 *     ui_demo         a chat with a stand-in that answers every message with the same text
 *     ui_demo FD      a puppet: reads commands, one a line, from FD and writes what the person
 *                     did to it, one event a line. Its clock stands still unless told.
 *
 * In both directions "\n", "\\" and "\xHH" are escapes; fields of a command are divided by "|". */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/array.h"
#include "engine/base/num.h"
#include "ui/ui.h"

#define FIELDS_MAX 8

static struct ui *ui;
static bool quit;
static struct ui_status status = UI_STATUS_INIT;

/* ---- escapes --------------------------------------------------------------------------- */

static size_t
unescape(char *s)
{
    char *out = s;
    const char *in = s;
    while (*in) {
        unsigned v;
        if (in[0] == '\\' && in[1] == 'n') {
            *out++ = '\n';
            in += 2;
        } else if (in[0] == '\\' && in[1] == 'x' && sscanf(in + 2, "%2x", &v) == 1) {
            *out++ = (char)v;
            in += 4;
        } else {
            in += in[0] == '\\' && in[1] == '\\';
            *out++ = *in++;
        }
    }
    *out = '\0';
    return (size_t)(out - s);
}

static void
say(int fd, const char *word, const char *text, size_t n)
{
    struct ply_buf b = {0};
    ply_buf_printf(&b, "%s", word);
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        ply_buf_printf(&b, i == 0 ? " " : "");
        if (c == '\n')
            ply_buf_printf(&b, "\\n");
        else if (c == '\\')
            ply_buf_printf(&b, "\\\\");
        else if (c < 0x20 || c == 0x7F)
            ply_buf_printf(&b, "\\x%02x", c);
        else
            ply_buf_append(&b, text + i, 1);
    }
    ply_buf_append(&b, "\n", 1);
    for (size_t done = 0; done < b.n;) {
        const ssize_t w = write(fd, b.v + done, b.n - done);
        if (w < 0)
            break;
        done += (size_t)w;
    }
    ply_buf_fini(&b);
}

/* ---- sample data ----------------------------------------------------------------------- */

static const struct ui_list sessions = {
    .title = "Sessions",
    .empty = "no session matches",
    .cols = {{"#", 5, 0, true},
             {"title", 0, 0, false},
             {"last used", 16, 60, false},
             {"messages", 8, 80, true},
             {"tokens", 8, 50, true}},
    .n_cols = 5,
    .name_col = 1,
    .can_rename = true,
    .can_delete = true,
    .can_filter = true,
};

static struct {
    int64_t id;
    char title[80];
    const char *used, *msgs, *toks;
} rows[] = {
    {12, "tar vs cpio", "today 09:41", "18", "549"},
    {9, "regex for dates", "yesterday", "42", "3.1k"},
    {8, "日本語の挨拶と返事の仕方", "14 Nov", "6", "412"},
    {7, "trip ideas", "12 Nov", "110", "7.9k"},
};
static size_t n_rows = PLY_COUNT(rows);

static void
show_rows(const char *filter)
{
    struct ui_list_row out[PLY_COUNT(rows)];
    char ids[PLY_COUNT(rows)][8];
    int n = 0;
    for (size_t i = 0; i < n_rows; i++) {
        if (!strstr(rows[i].title, filter))
            continue;
        snprintf(ids[n], sizeof ids[n], "%d", (int)rows[i].id);
        out[n] = (struct ui_list_row){
            .id = rows[i].id,
            .marked = rows[i].id == 12,
            .cells = {ids[n], rows[i].title, rows[i].used, rows[i].msgs, rows[i].toks}};
        n++;
    }
    ui_list_rows(ui, out, n);
}

static void
change_row(int64_t id, const char *title)
{
    for (size_t i = 0; i < n_rows; i++) {
        if (rows[i].id != id)
            continue;
        if (title) {
            snprintf(rows[i].title, sizeof rows[i].title, "%s", title);
        } else {
            memmove(&rows[i], &rows[i + 1], (n_rows - i - 1) * sizeof rows[0]);
            n_rows--;
        }
        break;
    }
    show_rows("");
}

/* What list and help events do in both modes. */
static void
common_event(const struct ui_event *ev)
{
    static const char help[] = "Keys\n\n  Enter        send\n  Alt+Enter    new line\n"
                               "  PgUp PgDn    scroll\n  Esc          stop the reply\n"
                               "  F2           sessions\n";
    switch (ev->type) {
    case UI_EVENT_HELP: ui_pager_open(ui, "Help", help, strlen(help)); break;
    case UI_EVENT_SESSIONS:
        ui_list_open(ui, &sessions);
        show_rows("");
        break;
    case UI_EVENT_LIST_FILTER: show_rows(ev->text); break;
    case UI_EVENT_LIST_RENAME: change_row(ev->id, ev->text); break;
    case UI_EVENT_LIST_DELETE: change_row(ev->id, NULL); break;
    case UI_EVENT_LIST_OPEN: ui_list_close(ui); break;
    case UI_EVENT_QUIT:
    case UI_EVENT_HANGUP: quit = true; break;
    default: break;
    }
}

static void
on_fatal(int sig)
{
    ui_term_restore();
    signal(sig, SIG_DFL);
    raise(sig);
}

/* ---- the puppet ------------------------------------------------------------------------ */

static int puppet_fd = -1;
static double puppet_now;

static double
puppet_clock(void *user)
{
    return puppet_now;
}

static enum ui_state
state_by_name(const char *s)
{
    static const char *const names[] = {"load", "restore", "prefill", "gen",
                                        "idle", "stopped", "full"};
    for (size_t i = 0; i < PLY_COUNT(names); i++) {
        if (strcmp(names[i], s) == 0)
            return (enum ui_state)i;
    }
    return UI_STATE_IDLE;
}

/* "status gen ttft=84 speed=41.7 ...|reason": what is not named is unknown. */
static void
set_status(char *args, const char *reason)
{
    static const struct {
        const char *name;
        double *d;
        long *l;
    } vars[] = {
        {"start", &status.start_ms, NULL},  {"ttft", &status.ttft_ms, NULL},
        {"tok", &status.tokenize_ms, NULL}, {"kv", &status.restore_ms, NULL},
        {"pre", &status.prefill_ms, NULL},  {"dec", &status.decode_ms, NULL},
        {"speed", &status.tok_s, NULL},     {"itl", &status.itl_ms, NULL},
        {"p95", &status.itl_p95_ms, NULL},  {"eta", &status.eta_ms, NULL},
        {"saved", &status.saved_ms, NULL},  {"n", NULL, &status.n_reply},
        {"reused", NULL, &status.reused},   {"evaluated", NULL, &status.evaluated},
        {"drafted", NULL, &status.drafted}, {"done", NULL, &status.done},
        {"total", NULL, &status.total},     {"used", NULL, &status.ctx_used},
        {"ctx", NULL, &status.ctx_size},
    };
    status = (struct ui_status)UI_STATUS_INIT;
    char *save = NULL, *word = strtok_r(args, " ", &save);
    status.state = state_by_name(word ? word : "idle");
    while ((word = strtok_r(NULL, " ", &save)) != NULL) {
        char *eq = strchr(word, '=');
        if (!eq)
            continue;
        *eq = '\0';
        for (size_t i = 0; i < PLY_COUNT(vars); i++) {
            if (strcmp(vars[i].name, word) == 0 && vars[i].d)
                *vars[i].d = atof(eq + 1);
            else if (strcmp(vars[i].name, word) == 0)
                *vars[i].l = atol(eq + 1);
        }
    }
    status.source = "RAM";
    status.reason = reason;
    ui_status_set(ui, &status);
}

static enum ui_role
role_by_name(const char *s)
{
    return s[0] == 'u'   ? UI_ROLE_USER
           : s[0] == 'r' ? UI_ROLE_REPLY
           : s[0] == 's' ? UI_ROLE_SYSTEM
                         : UI_ROLE_NOTE;
}

/* Fields of a command, unescaped; missing ones are "". */
static void
split(char *args, char *f[FIELDS_MAX], size_t n[FIELDS_MAX])
{
    static char none[] = "";
    for (int i = 0; i < FIELDS_MAX; i++) {
        f[i] = args ? args : none;
        char *bar = args ? strchr(args, '|') : NULL;
        if (bar)
            *bar++ = '\0';
        args = bar;
        n[i] = unescape(f[i]);
    }
}

static void
bulk(const char *what, int n)
{
    char s[64];
    for (int i = 1; i <= n; i++) {
        const int len = snprintf(s, sizeof s, "%s%d%s", what, i, what[0] == 'l' ? "\n" : " ");
        ui_msg_append(ui, s, (size_t)len);
    }
}

static void
command(char *line)
{
    char *f[FIELDS_MAX];
    size_t n[FIELDS_MAX];
    char *args = strchr(line, ' ');
    if (args)
        *args++ = '\0';
    split(args, f, n);
    if (strcmp(line, "msg") == 0) {
        const struct ui_msg m = {role_by_name(f[0]), f[1], f[2], f[3], f[4], n[4]};
        ui_msg_add(ui, &m);
    } else if (strcmp(line, "append") == 0)
        ui_msg_append(ui, f[0], n[0]);
    else if (strcmp(line, "lines") == 0)
        bulk("line ", atoi(f[0]));
    else if (strcmp(line, "words") == 0)
        bulk("word", atoi(f[0]));
    else if (strcmp(line, "info") == 0)
        ui_msg_set_info(ui, atoi(f[0]), f[1]);
    else if (strcmp(line, "live") == 0)
        ui_msg_set_live(ui, atoi(f[0]));
    else if (strcmp(line, "truncate") == 0)
        ui_msg_truncate(ui, atoi(f[0]));
    else if (strcmp(line, "status") == 0)
        set_status(f[0], f[1]);
    else if (strcmp(line, "header") == 0)
        ui_header_set(ui, &(struct ui_header){f[0], f[1], f[2], f[3], f[4]});
    else if (strcmp(line, "notice") == 0)
        ui_notice(ui, UI_LEVEL_ERROR, f[0]);
    else if (strcmp(line, "ask") == 0)
        ui_ask(ui, f[0], f[1]);
    else if (strcmp(line, "note") == 0)
        ui_draft_note(ui, f[0]);
    else if (strcmp(line, "hint") == 0)
        ui_draft_hint(ui, f[0]);
    else if (strcmp(line, "draft") == 0)
        ui_draft_set(ui, f[0], n[0]);
    else if (strcmp(line, "title") == 0)
        change_row(12, f[0]);
    else if (strcmp(line, "clock") == 0)
        puppet_now = atof(f[0]);
    else if (strcmp(line, "abort") == 0)
        abort();
    else if (strcmp(line, "get") == 0) {
        size_t len;
        const char *text = ui_draft(ui, &len);
        say(puppet_fd, "draft", text, len);
    } else if (strcmp(line, "sync") == 0)
        say(puppet_fd, "synced", "", 0);
    else
        quit = true;
}

static void
puppet_event(const struct ui_event *ev)
{
    static const char *const names[] = {
        [UI_EVENT_SUBMIT] = "submit",
        [UI_EVENT_STOP] = "stop",
        [UI_EVENT_QUIT] = "quit",
        [UI_EVENT_HANGUP] = "hangup",
        [UI_EVENT_HELP] = "help",
        [UI_EVENT_SESSIONS] = "sessions",
        [UI_EVENT_STATS] = "stats",
        [UI_EVENT_EDITOR] = "editor",
        [UI_EVENT_TAB] = "tab",
        [UI_EVENT_ANSWER] = "answer",
        [UI_EVENT_LIST_OPEN] = "list-open",
        [UI_EVENT_LIST_RENAME] = "list-rename",
        [UI_EVENT_LIST_DELETE] = "list-delete",
        [UI_EVENT_LIST_FILTER] = "list-filter",
        [UI_EVENT_LIST_CLOSE] = "list-close",
    };
    char word[64];
    if (ev->type == UI_EVENT_ANSWER)
        snprintf(word, sizeof word, "answer %c", ev->key ? ev->key : '-');
    else if (ev->id != 0)
        snprintf(word, sizeof word, "%s %d", names[ev->type], (int)ev->id);
    else
        snprintf(word, sizeof word, "%s", names[ev->type]);
    say(puppet_fd, word, ev->text, ev->len);
    if (ev->type == UI_EVENT_SUBMIT)
        ui_draft_accept(ui);
    common_event(ev);
}

static void
puppet_read(struct ply_buf *in)
{
    char buf[65536];
    const ssize_t n = read(puppet_fd, buf, sizeof buf);
    if (n <= 0) {
        quit = true;
        return;
    }
    ply_buf_append(in, buf, (size_t)n);
    char *start = in->v, *nl;
    while ((nl = memchr(start, '\n', (size_t)(in->v + in->n - start))) != NULL) {
        *nl = '\0';
        command(start);
        start = nl + 1;
    }
    in->n = (size_t)(in->v + in->n - start);
    memmove(in->v, start, in->n);
}

/* ---- the stand-in ---------------------------------------------------------------------- */

static const char answer[] =
    "Name the member after the archive:\n\n    tar -xzf archive.tar.gz path/in/archive.txt\n\n"
    "It is written below the current directory, under the same path. To see what an archive holds "
    "without unpacking anything, list it first with tar -tzf archive.tar.gz; the names it prints "
    "are exactly what -x wants. Emoji \xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x94\xAC "
    "\xE2\x9D\xA4\xEF\xB8\x8F 🇫🇷 👍🏽, 日本語の文字 and é line "
    "up.\n";

static struct {
    size_t said; /* bytes of the answer */
    double next; /* when the next step is due */
    int reply, n_toks;
} fake;

static void
fake_start(const struct ui_event *ev)
{
    const struct ui_msg q = {UI_ROLE_USER, "you", "", "09:41", ev->text, ev->len};
    const struct ui_msg a = {UI_ROLE_REPLY, "smollm2", "", "", "", 0};
    if (status.state != UI_STATE_IDLE && status.state != UI_STATE_STOPPED) {
        ui_notice(ui, UI_LEVEL_WARN, "still answering: Esc stops the reply");
        return;
    }
    ui_msg_add(ui, &q);
    fake.reply = ui_msg_add(ui, &a);
    ui_msg_set_live(ui, fake.reply);
    ui_msg_follow(ui);
    ui_draft_accept(ui);
    fake.said = 0;
    fake.n_toks = 0;
    fake.next = ui_now_ms(ui) + 50;
    status = (struct ui_status){.state = UI_STATE_PREFILL,
                                .start_ms = ui_now_ms(ui),
                                .ttft_ms = -1,
                                .tok_s = -1,
                                .itl_ms = -1,
                                .itl_p95_ms = -1,
                                .reused = 531,
                                .evaluated = 0,
                                .source = "RAM",
                                .total = 340,
                                .eta_ms = 1200,
                                .ctx_used = 531,
                                .ctx_size = 8192,
                                .kv_bytes = 12000000,
                                .rss_bytes = 214000000,
                                .saved_ms = 2900};
    ui_status_set(ui, &status);
}

static void
fake_end(enum ui_state state)
{
    status.state = state;
    status.tokenize_ms = 1;
    status.restore_ms = 0;
    status.prefill_ms = status.ttft_ms - 22;
    status.decode_ms = 21;
    ui_msg_set_live(ui, -1);
    ui_msg_set_info(ui, fake.reply, "ttft 1.2 s  25.0 t/s  96 tok  reuse 531/871");
    fake.next = 0;
    ui_status_set(ui, &status);
}

static void
fake_step(double now)
{
    if (status.state == UI_STATE_PREFILL) {
        status.done += 17;
        status.evaluated = status.done;
        status.eta_ms = (double)(status.total - status.done) * 3.5;
        fake.next = now + 60;
        if (status.done >= status.total) {
            status.state = UI_STATE_GEN;
            status.ttft_ms = now - status.start_ms;
        }
    } else {
        size_t n = 5;
        while ((answer[fake.said + n] & 0xC0) == 0x80)
            n++;
        n = PLY_MIN(n, sizeof answer - 1 - fake.said);
        ui_msg_append(ui, answer + fake.said, n);
        fake.said += n;
        status.n_reply = ++fake.n_toks;
        status.tok_s = 25;
        status.itl_ms = 40;
        status.itl_p95_ms = 43;
        status.ctx_used = 871 + fake.n_toks;
        fake.next = now + 40;
        if (fake.said == sizeof answer - 1) {
            fake_end(UI_STATE_IDLE);
            return;
        }
    }
    ui_status_set(ui, &status);
}

static void
fake_event(const struct ui_event *ev)
{
    if (ev->type == UI_EVENT_SUBMIT)
        fake_start(ev);
    else if (ev->type == UI_EVENT_STOP)
        fake_end(UI_STATE_STOPPED);
    common_event(ev);
}

static void
fake_init(void)
{
    const struct ui_header h = {"SmolLM2-135M-Instruct Q4_1", "en", "#12 tar vs cpio",
                                "branch 2/3   sys: default", "3 sessions"};
    static const char hello[] = "New chat. Tab continues the last one, \"tar vs cpio\".";
    const struct ui_msg m = {UI_ROLE_NOTE, "parley", "0.1.0", "", hello, sizeof hello - 1};
    ui_header_set(ui, &h);
    ui_draft_hint(ui, "type a message, F1 for help");
    ui_draft_note(ui, "draft prefilled 9 of 11 tok");
    ui_msg_add(ui, &m);
    status.ctx_size = 8192;
    status.ctx_used = 0;
    ui_status_set(ui, &status);
}

/* ---- the loop -------------------------------------------------------------------------- */

static void
loop(void)
{
    struct pollfd fds[UI_N_FDS + 1];
    struct ply_buf in = {0};
    while (!quit) {
        int timeout = ui_timeout(ui);
        if (fake.next > 0) {
            const double left = PLY_MAX(fake.next - ui_now_ms(ui), 0.0);
            timeout = timeout < 0 ? (int)left + 1 : PLY_MIN(timeout, (int)left + 1);
        }
        ui_pollfds(ui, fds);
        fds[UI_N_FDS] = (struct pollfd){.fd = puppet_fd, .events = POLLIN};
        if (poll(fds, UI_N_FDS + 1, timeout) < 0 && errno != EINTR)
            break;
        struct ui_event ev;
        while (ui_read(ui, &ev)) {
            if (puppet_fd >= 0)
                puppet_event(&ev);
            else
                fake_event(&ev);
        }
        if (puppet_fd >= 0 && fds[UI_N_FDS].revents)
            puppet_read(&in);
        if (fake.next > 0 && ui_now_ms(ui) >= fake.next)
            fake_step(ui_now_ms(ui));
        ui_refresh(ui);
    }
    ply_buf_fini(&in);
}

int
main(int argc, char **argv)
{
    static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM, SIGHUP, SIGQUIT};
    struct ply_err err = {0};
    puppet_fd = argc > 1 ? atoi(argv[1]) : -1;
    const struct ui_opts opts = {
        .fd_in = 0, .fd_out = 1, .now_ms = puppet_fd >= 0 ? puppet_clock : NULL};
    if (ui_open(&ui, &opts, &err) != PLY_OK) {
        fprintf(stderr, "ui_demo: %s\n", err.msg);
        return 1;
    }
    for (size_t i = 0; i < PLY_COUNT(fatal); i++)
        signal(fatal[i], on_fatal);
    if (getenv("UI_DEMO_NOHUP"))
        signal(SIGHUP, SIG_IGN);
    if (puppet_fd < 0)
        fake_init();
    loop();
    ui_close(&ui);
    return 0;
}

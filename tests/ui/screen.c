/* SPDX-License-Identifier: MIT
 * The pseudo-terminal and the emulator. */
#include "tests/ui/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <utmp.h>
#include <unistd.h>

#include <vterm.h>

#define ROW_BYTES 8192

struct screen {
    VTerm *vt;
    VTermScreen *vts;
    int fd, rows, cols;
    pid_t pid;
    int status; /* of the ended program, -1 while it runs */
    bool alternate;
    struct termios modes; /* of the terminal before the program began */
    char *log;
    size_t n_log, cap_log;
    char row[ROW_BYTES];
};

static double
now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void
die(const char *what)
{
    printf("Bail out! screen: %s: %s\n", what, strerror(errno));
    exit(99);
}

/* libvterm 0.1.4 crashes when a wide character comes to a screen of one column, which happens when
 * a frame for the old size is under way: its screen has two, and the program knows of one. */
static int
emulated_cols(int cols)
{
    return cols < 2 ? 2 : cols;
}

/* ---- start and end --------------------------------------------------------------------- */

static int
on_prop(VTermProp prop, VTermValue *val, void *user)
{
    struct screen *s = user;
    if (prop == VTERM_PROP_ALTSCREEN)
        s->alternate = val->boolean;
    return 1;
}

static const VTermScreenCallbacks callbacks = {.settermprop = on_prop};

static void
child(const char *const *argv, const char *const *env)
{
    setenv("TERM", "xterm-256color", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    unsetenv("NO_COLOR");
    for (; env && *env; env++) {
        char name[128];
        const char *eq = strchr(*env, '=');
        snprintf(name, sizeof name, "%.*s", eq ? (int)(eq - *env) : 127, *env);
        if (eq)
            setenv(name, eq + 1, 1);
        else
            unsetenv(name);
    }
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

struct screen *
screen_open(const char *const *argv, const char *const *env, int rows, int cols)
{
    struct screen *s = calloc(1, sizeof *s);
    const struct winsize ws = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    if (!s)
        die("memory");
    s->rows = rows;
    s->cols = cols;
    s->status = -1;
    s->vt = vterm_new(rows, emulated_cols(cols));
    vterm_set_utf8(s->vt, 1);
    s->vts = vterm_obtain_screen(s->vt);
    vterm_screen_set_callbacks(s->vts, &callbacks, s);
    vterm_screen_enable_altscreen(s->vts, 1);
    vterm_screen_reset(s->vts, 1);
    fflush(stdout);
    int slave;
    if (openpty(&s->fd, &slave, NULL, NULL, &ws) != 0 || tcgetattr(slave, &s->modes) != 0)
        die("openpty");
    s->pid = fork();
    if (s->pid < 0)
        die("fork");
    if (s->pid == 0) {
        close(s->fd);
        login_tty(slave);
        child(argv, env);
    }
    close(slave);
    fcntl(s->fd, F_SETFD, FD_CLOEXEC);
    fcntl(s->fd, F_SETFL, O_NONBLOCK);
    return s;
}

static bool
reap(struct screen *s, int flags)
{
    int status;
    if (s->status < 0 && waitpid(s->pid, &status, flags) == s->pid)
        s->status = status;
    return s->status >= 0;
}

void
screen_close(struct screen **s)
{
    if (!*s)
        return;
    if (!reap(*s, WNOHANG)) {
        kill((*s)->pid, SIGKILL);
        reap(*s, 0);
    }
    if ((*s)->fd >= 0)
        close((*s)->fd);
    vterm_free((*s)->vt);
    free((*s)->log);
    free(*s);
    *s = NULL;
}

pid_t
screen_pid(const struct screen *s)
{
    return s->pid;
}

bool
screen_modes_restored(const struct screen *s)
{
    struct termios now;
    if (tcgetattr(s->fd, &now) != 0)
        return false;
    return now.c_iflag == s->modes.c_iflag && now.c_oflag == s->modes.c_oflag &&
           now.c_cflag == s->modes.c_cflag && now.c_lflag == s->modes.c_lflag &&
           memcmp(now.c_cc, s->modes.c_cc, sizeof now.c_cc) == 0;
}

/* ---- bytes ----------------------------------------------------------------------------- */

static void
log_bytes(struct screen *s, const char *bytes, size_t n)
{
    if (s->n_log + n > s->cap_log) {
        s->cap_log = (s->n_log + n) * 2;
        s->log = realloc(s->log, s->cap_log);
        if (!s->log)
            die("memory");
    }
    memcpy(s->log + s->n_log, bytes, n);
    s->n_log += n;
}

/* Takes what the program has written, waiting up to ms for it; answers go back. */
static bool
take(struct screen *s, int ms)
{
    static char buf[65536];
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    if (poll(&p, 1, ms) <= 0)
        return false;
    const ssize_t n = read(s->fd, buf, sizeof buf);
    if (n <= 0) {
        usleep(1000); /* ended: nothing more will come */
        return false;
    }
    log_bytes(s, buf, (size_t)n);
    vterm_input_write(s->vt, buf, (size_t)n);
    const size_t n_out = vterm_output_read(s->vt, buf, sizeof buf);
    if (n_out > 0)
        screen_send(s, buf, n_out);
    return true;
}

void
screen_pump(struct screen *s, int ms)
{
    const double end = now_ms() + ms;
    for (double left = ms; left > 0; left = end - now_ms())
        take(s, left < 10 ? (int)left + 1 : 10);
}

void
screen_send(struct screen *s, const void *bytes, size_t n)
{
    const char *p = bytes;
    const double end = now_ms() + SCREEN_WAIT_MS;
    while (n > 0 && now_ms() < end) {
        const ssize_t w = write(s->fd, p, n);
        if (w > 0) {
            p += w;
            n -= (size_t)w;
        } else if (errno == EAGAIN) {
            take(s, 1);
        } else {
            return;
        }
    }
}

void
screen_keys(struct screen *s, const char *keys)
{
    screen_send(s, keys, strlen(keys));
}

void
screen_resize(struct screen *s, int rows, int cols)
{
    const struct winsize ws = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    while (take(s, 0))
        ;
    s->rows = rows;
    s->cols = cols;
    vterm_set_size(s->vt, rows, emulated_cols(cols));
    ioctl(s->fd, TIOCSWINSZ, &ws);
}

void
screen_hang_up(struct screen *s)
{
    close(s->fd);
    s->fd = -1;
}

int
screen_wait(struct screen *s)
{
    const double end = now_ms() + SCREEN_WAIT_MS;
    while (!reap(s, WNOHANG) && now_ms() < end)
        take(s, 5);
    while (take(s, 0))
        ;
    return s->status;
}

/* ---- what is seen ---------------------------------------------------------------------- */

static size_t
put_utf8(char *out, uint32_t cp)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    const int n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (cp & 0x3F));
        cp >>= 6;
    }
    out[0] = (char)((0xF0 << (4 - n)) | cp);
    return (size_t)n;
}

const char *
screen_row(struct screen *s, int y)
{
    size_t n = 0, last = 0;
    for (int x = 0; x < s->cols && n + 64 < sizeof s->row; x++) {
        VTermScreenCell cell;
        vterm_screen_get_cell(s->vts, (VTermPos){.row = y, .col = x}, &cell);
        if (cell.chars[0] == (uint32_t)-1)
            continue;
        if (cell.chars[0] == 0)
            s->row[n++] = ' ';
        for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell.chars[i]; i++)
            n += put_utf8(s->row + n, cell.chars[i]);
        if (cell.chars[0] != 0 && cell.chars[0] != ' ')
            last = n;
    }
    s->row[last] = '\0';
    return s->row;
}

int
screen_find(struct screen *s, const char *text, int *col)
{
    for (int y = 0; y < s->rows; y++) {
        const char *row = screen_row(s, y);
        const char *at = strstr(row, text);
        if (!at)
            continue;
        for (int x = 0, done = 0; col && !done; x++) { /* bytes before it -> columns */
            VTermScreenCell cell;
            size_t n = 0;
            char buf[8];
            vterm_screen_get_cell(s->vts, (VTermPos){.row = y, .col = x}, &cell);
            if (cell.chars[0] == (uint32_t)-1)
                continue;
            *col = x;
            done = at <= row;
            for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell.chars[i]; i++)
                n += put_utf8(buf, cell.chars[i]);
            row += n > 0 ? n : 1;
        }
        return y;
    }
    return -1;
}

void
screen_cursor(const struct screen *s, int *row, int *col)
{
    VTermPos pos;
    vterm_state_get_cursorpos(vterm_obtain_state(s->vt), &pos);
    *row = pos.row;
    *col = pos.col;
}

bool
screen_reverse(const struct screen *s, int row, int col)
{
    VTermScreenCell cell;
    vterm_screen_get_cell(s->vts, (VTermPos){.row = row, .col = col}, &cell);
    return cell.attrs.reverse;
}

bool
screen_on_alternate(const struct screen *s)
{
    return s->alternate;
}

void
screen_print(struct screen *s)
{
    for (int y = 0; y < s->rows; y++)
        printf("# %2d|%s\n", y, screen_row(s, y));
    fflush(stdout);
}

const char *
screen_log(const struct screen *s, size_t *n)
{
    *n = s->n_log;
    return s->log;
}

/* ---- waiting --------------------------------------------------------------------------- */

/* Pumps until ok() says so. It is asked when the program pauses, so that a half-sent frame is not
 * taken for the screen. */
static bool
wait_for(struct screen *s, bool (*ok)(struct screen *, const void *), const void *arg)
{
    const double end = now_ms() + SCREEN_WAIT_MS;
    for (;;) {
        while (take(s, 10) && now_ms() < end)
            ;
        if (ok(s, arg))
            return true;
        if (now_ms() > end)
            return false;
    }
}

static bool
has_text(struct screen *s, const void *arg)
{
    return screen_find(s, arg, NULL) >= 0;
}

static bool
has_not(struct screen *s, const void *arg)
{
    return screen_find(s, arg, NULL) < 0;
}

static bool
has_cursor(struct screen *s, const void *arg)
{
    const int *want = arg;
    int row, col;
    screen_cursor(s, &row, &col);
    return row == want[0] && col == want[1];
}

static bool
has_rows(struct screen *s, const void *arg)
{
    const char *const *rows = arg;
    for (int y = 0; y < s->rows; y++) {
        if (!rows[y])
            return false;
        if (strcmp(rows[y], "*") != 0 && strcmp(rows[y], screen_row(s, y)) != 0)
            return false;
    }
    return true;
}

static bool
report(struct screen *s, bool ok, const char *what, const char *text)
{
    if (!ok) {
        printf("# %s: %s\n", what, text);
        screen_print(s);
    }
    return ok;
}

bool
screen_until(struct screen *s, const char *text)
{
    return report(s, wait_for(s, has_text, text), "never on the screen", text);
}

bool
screen_until_gone(struct screen *s, const char *text)
{
    return report(s, wait_for(s, has_not, text), "still on the screen", text);
}

bool
screen_until_cursor(struct screen *s, int row, int col)
{
    const int want[] = {row, col};
    const bool ok = wait_for(s, has_cursor, want);
    if (!ok) {
        int y, x;
        screen_cursor(s, &y, &x);
        printf("# cursor at %d,%d, not %d,%d\n", y, x, row, col);
        screen_print(s);
    }
    return ok;
}

bool
screen_expect(struct screen *s, const char *const *rows)
{
    const bool ok = wait_for(s, has_rows, rows);
    if (!ok) {
        printf("# expected:\n");
        for (int y = 0; rows[y]; y++)
            printf("# %2d|%s\n", y, rows[y]);
        printf("# seen:\n");
        screen_print(s);
    }
    return ok;
}

/* SPDX-License-Identifier: MIT
 * Taking and giving back the terminal. Curses draws; bytes are read by ui.c itself, signals are
 * ours: the handlers only write a byte to a pipe. */
#include "ui/term.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <curses.h>
#include <term.h>

#include "engine/base/num.h"
#include "ui/draw.h"

/* More is not shown. A hostile size must not make curses allocate gigabytes. */
#define ROWS_MAX 500
#define COLS_MAX 1000

#define PASTE_ON "\033[?2004h"
#define PASTE_OFF "\033[?2004l"
#define SYNC_ON "\033[?2026h"
#define SYNC_OFF "\033[?2026l"

static struct {
    SCREEN *screen;
    FILE *in, *out;
    int fd_in, fd_out;
    struct termios saved;
    char restore[256]; /* what ui_term_restore() writes */
    size_t n_restore;
    volatile sig_atomic_t taken; /* the terminal is ours just now */
    bool ansi;                   /* understands, or ignores, private modes */
    bool utf8;
    int pipe_fds[2];
    struct sigaction old_winch, old_tstp, old_cont;
} term = {.pipe_fds = {-1, -1}};

static void
write_all(int fd, const char *s, size_t n)
{
    while (n > 0) {
        const ssize_t w = write(fd, s, n);
        if (w < 0 && errno != EINTR)
            return; /* the terminal is gone: nothing to tell anyone */
        if (w > 0) {
            s += w;
            n -= (size_t)w;
        }
    }
}

void
ui_term_restore(void)
{
    const int saved_errno = errno;
    if (term.taken) {
        term.taken = 0;
        write_all(term.fd_out, term.restore, term.n_restore);
        tcsetattr(term.fd_in, TCSANOW, &term.saved);
    }
    errno = saved_errno;
}

/* ---- signals --------------------------------------------------------------------------- */

static void
on_signal(int sig)
{
    const int saved_errno = errno;
    const char c = sig == SIGWINCH ? 'W' : sig == SIGTSTP ? 'Z' : 'C';
    /* A full pipe already says that signals came. */
    const ssize_t w = write(term.pipe_fds[1], &c, 1);
    (void)w;
    errno = saved_errno;
}

int
ui_term_signal_fd(void)
{
    return term.pipe_fds[0];
}

unsigned
ui_term_signals(void)
{
    char buf[256];
    unsigned set = 0;
    ssize_t n;
    while ((n = read(term.pipe_fds[0], buf, sizeof buf)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            set |= buf[i] == 'W' ? UI_SIG_RESIZE : buf[i] == 'Z' ? UI_SIG_STOP : UI_SIG_CONT;
    }
    return set;
}

static void
catch_signals(void)
{
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&sa.sa_mask);
    sigaction(SIGWINCH, &sa, NULL);
    sigaction(SIGCONT, &sa, NULL);
    if (term.old_tstp.sa_handler != SIG_IGN) /* a parent that forbids suspending is obeyed */
        sigaction(SIGTSTP, &sa, NULL);
}

static void
release_signals(void)
{
    sigaction(SIGWINCH, &term.old_winch, NULL);
    sigaction(SIGCONT, &term.old_cont, NULL);
    sigaction(SIGTSTP, &term.old_tstp, NULL);
}

/* ---- locale ---------------------------------------------------------------------------- */

/* The locale of the environment. Where it names UTF-8 but is not installed, or nothing at all is
 * set (a bare container), UTF-8 is taken: that is what terminals speak. */
static void
set_locale(void)
{
    const char *env = getenv("LC_ALL");
    if (!env || !env[0])
        env = getenv("LC_CTYPE");
    if (!env || !env[0])
        env = getenv("LANG");
    const bool unset = !env || !env[0];
    const bool wants = unset || strcasestr(env, "utf-8") || strcasestr(env, "utf8");
    const char *got = setlocale(LC_CTYPE, "");
    if (wants && (!got || strcmp(nl_langinfo(CODESET), "UTF-8") != 0))
        setlocale(LC_CTYPE, "C.UTF-8");
    term.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

bool
ui_term_is_utf8(void)
{
    return term.utf8;
}

/* ---- open and close -------------------------------------------------------------------- */

static int
check_type(const char *type, int fd, struct ply_err *err)
{
    int found = 0;
    if (!type || !type[0])
        return ply_fail(err, PLY_EUNSUPPORTED,
                        "TERM is not set: a full screen needs to know the kind of terminal");
    if (setupterm(type, fd, &found) != OK)
        return ply_fail(err, PLY_EUNSUPPORTED, "TERM is \"%s\", a terminal that is not known here",
                        type);
    const bool enough = cursor_address && clear_screen;
    term.ansi = enough && strncmp(cursor_address, "\033[", 2) == 0;
    del_curterm(cur_term);
    if (!enough)
        return ply_fail(err, PLY_EUNSUPPORTED,
                        "TERM is \"%s\", a terminal that cannot move its cursor", type);
    return PLY_OK;
}

static void
add_restore(const char *s)
{
    const size_t n = s ? strlen(s) : 0;
    if (n > 0 && term.n_restore + n <= sizeof term.restore) {
        memcpy(term.restore + term.n_restore, s, n);
        term.n_restore += n;
    }
}

/* Kept ready, since terminfo must not be asked in a signal handler. Padding ("$<5>") is for
 * terminals of the past and would be written as text: such a string is left out. */
static void
prepare_restore(void)
{
    const char *const caps[] = {exit_attribute_mode, orig_pair, cursor_normal, exit_ca_mode};
    term.n_restore = 0;
    if (term.ansi)
        add_restore(SYNC_OFF PASTE_OFF);
    for (size_t i = 0; i < PLY_COUNT(caps); i++) {
        if (caps[i] && !strstr(caps[i], "$<"))
            add_restore(caps[i]);
    }
    if (!exit_ca_mode)
        add_restore("\r\n");
}

static void
enter_modes(void)
{
    if (term.ansi)
        write_all(term.fd_out, PASTE_ON, strlen(PASTE_ON));
    term.taken = 1;
}

static void
leave_modes(void)
{
    if (term.ansi)
        write_all(term.fd_out, PASTE_OFF, strlen(PASTE_OFF));
    endwin();
    term.taken = 0;
}

/* newterm() wants streams; they are ours, so that closing them closes nothing of the caller's. */
static int
open_streams(struct ply_err *err)
{
    const int in = dup(term.fd_in), out = dup(term.fd_out);
    term.in = in >= 0 ? fdopen(in, "r") : NULL;
    term.out = out >= 0 ? fdopen(out, "w") : NULL;
    if (!term.in && in >= 0)
        close(in);
    if (!term.out && out >= 0)
        close(out);
    if (!term.in || !term.out || pipe2(term.pipe_fds, O_CLOEXEC | O_NONBLOCK) != 0)
        return ply_fail(err, PLY_EIO, "cannot open the terminal: %s", strerror(errno));
    return PLY_OK;
}

static void
close_streams(void)
{
    if (term.in)
        fclose(term.in);
    if (term.out)
        fclose(term.out);
    for (int i = 0; i < 2; i++) {
        if (term.pipe_fds[i] >= 0)
            close(term.pipe_fds[i]);
        term.pipe_fds[i] = -1;
    }
    term.in = term.out = NULL;
}

static bool
wants_color(const struct ui_opts *opts)
{
    const char *no_color = getenv("NO_COLOR");
    return opts->color != UI_COLOR_OFF && !(no_color && no_color[0]) && has_colors();
}

/* Curses installs handlers of its own for INT and TERM, which would end the program without
 * asking it: they are put back as they were. */
static bool
start_curses(const char *type)
{
    struct sigaction old_int, old_term;
    sigaction(SIGINT, NULL, &old_int);
    sigaction(SIGTERM, NULL, &old_term);
    use_env(FALSE); /* the size is asked for by ui_term_resize() */
    term.screen = newterm(type, term.out, term.in);
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    return term.screen != NULL;
}

int
ui_term_open(const struct ui_opts *opts, struct ply_err *err)
{
    const char *type = opts->term ? opts->term : getenv("TERM");
    term.fd_in = opts->fd_in;
    term.fd_out = opts->fd_out;
    if (!isatty(term.fd_in) || !isatty(term.fd_out) || tcgetattr(term.fd_in, &term.saved) != 0)
        return ply_fail(err, PLY_EINVAL, "a full screen needs a terminal");
    set_locale();
    int r = check_type(type, term.fd_out, err);
    if (r == PLY_OK)
        r = open_streams(err);
    if (r != PLY_OK)
        goto fail;
    sigaction(SIGWINCH, NULL, &term.old_winch);
    sigaction(SIGTSTP, NULL, &term.old_tstp);
    sigaction(SIGCONT, NULL, &term.old_cont);
    if (!start_curses(type)) {
        r = ply_fail(err, PLY_EUNSUPPORTED, "TERM is \"%s\", a terminal that cannot be used", type);
        goto fail;
    }
    prepare_restore();
    raw();
    noecho();
    nonl();
    typeahead(-1);
    idcok(stdscr, FALSE); /* see resend_changed_rows() */
    const bool color = wants_color(opts);
    if (color) {
        start_color();
        use_default_colors();
    }
    ui_draw_init_styles(color);
    catch_signals();
    enter_modes();
    ui_term_resize();
    return PLY_OK;
fail:
    close_streams();
    return r;
}

void
ui_term_close(void)
{
    if (!term.screen)
        return;
    if (term.taken)
        leave_modes();
    tcsetattr(term.fd_in, TCSADRAIN, &term.saved);
    delscreen(term.screen);
    term.screen = NULL;
    release_signals();
    close_streams();
}

/* ---- pause, suspend -------------------------------------------------------------------- */

void
ui_term_pause(void)
{
    if (term.taken)
        leave_modes();
}

void
ui_term_unpause(void)
{
    if (term.taken)
        return;
    doupdate(); /* leaves the state that endwin() began */
    enter_modes();
    catch_signals();
    ui_term_resize();
}

void
ui_term_suspend(void)
{
    struct sigaction sa = {.sa_handler = SIG_IGN};
    if (term.old_tstp.sa_handler == SIG_IGN || !term.taken)
        return;
    ui_term_pause();
    /* The whole group stops, as the terminal's own ^Z would do it: a script that started us waits
     * with us. The others first; our own stop comes last and is directed at this thread, so that
     * it has happened when raise() returns. */
    sigemptyset(&sa.sa_mask);
    sigaction(SIGTSTP, &sa, NULL);
    kill(0, SIGTSTP);
    sa.sa_handler = SIG_DFL;
    sigaction(SIGTSTP, &sa, NULL);
    raise(SIGTSTP);
    ui_term_unpause();
}

void
ui_term_retake(void)
{
    if (!term.taken)
        return;
    reset_prog_mode();
    if (enter_ca_mode)
        putp(enter_ca_mode);
    enter_modes();
}

/* ---- size and frames ------------------------------------------------------------------- */

bool
ui_term_resize(void)
{
    struct winsize ws;
    if (ioctl(term.fd_out, TIOCGWINSZ, &ws) != 0 || ws.ws_row == 0 || ws.ws_col == 0)
        return false;
    const int rows = PLY_MIN((int)ws.ws_row, ROWS_MAX), cols = PLY_MIN((int)ws.ws_col, COLS_MAX);
    if (rows == LINES && cols == COLS)
        return false;
    resize_term(rows, cols);
    return true;
}

void
ui_term_size(int *rows, int *cols)
{
    getmaxyx(stdscr, *rows, *cols);
    *rows = PLY_MAX(*rows, 1);
    *cols = PLY_MAX(*cols, 1);
}

/* Makes curses send every row that has changed as a whole. Otherwise it shifts lines and characters
 * on the screen to save bytes, which not every emulator does right, least of all with wide
 * characters, and leaves halves of them. A row costs a hundred bytes. */
static void
resend_changed_rows(void)
{
    static cchar_t old[COLS_MAX + 1], new[COLS_MAX + 1];
    int rows, cols, y, x, old_y, old_x;
    getmaxyx(stdscr, rows, cols);
    getyx(stdscr, y, x);
    getyx(curscr, old_y, old_x);
    const size_t n = (size_t)(cols + 1) * sizeof *old;
    for (int row = 0; row < rows; row++) {
        memset(old, 0, n);
        memset(new, 0, n);
        mvwin_wchnstr(curscr, row, 0, old, cols);
        mvwin_wchnstr(stdscr, row, 0, new, cols);
        if (memcmp(old, new, n) != 0)
            wredrawln(stdscr, row, 1);
    }
    wmove(curscr, old_y, old_x);
    wmove(stdscr, y, x);
}

void
ui_term_flush(bool full)
{
    if (!term.taken)
        return;
    if (full)
        clearok(curscr, TRUE);
    else
        resend_changed_rows();
    if (term.ansi)
        write_all(term.fd_out, SYNC_ON, strlen(SYNC_ON));
    refresh();
    if (term.ansi)
        write_all(term.fd_out, SYNC_OFF, strlen(SYNC_OFF));
}

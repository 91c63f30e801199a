/* SPDX-License-Identifier: MIT
 * A program on a pseudo-terminal, seen through a terminal emulator (libvterm): keys in, screen
 * out. Functions that wait return as soon as what they wait for is there; SCREEN_WAIT_MS is only
 * when they give up. */
#ifndef TESTS_UI_SCREEN_H
#define TESTS_UI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SCREEN_WAIT_MS 10000

struct screen;

/* Starts argv with TERM=xterm-256color, LC_ALL=C.UTF-8 and no NO_COLOR, then env ("NAME=value"
 * sets, "NAME" unsets; may be NULL). Descriptors that are not close-on-exec are inherited. Ends the
 * test program if it cannot. */
struct screen *screen_open(const char *const *argv, const char *const *env, int rows, int cols);
/* Ends the program (SIGKILL if it still runs) and frees. */
void screen_close(struct screen **s);

pid_t screen_pid(const struct screen *s);
/* Whether the terminal's modes are what they were before the program began. */
bool screen_modes_restored(const struct screen *s);
/* Waits until the program has ended; its status as waitpid gives it, or -1. */
int screen_wait(struct screen *s);

void screen_send(struct screen *s, const void *bytes, size_t n);
void screen_keys(struct screen *s, const char *keys);
void screen_resize(struct screen *s, int rows, int cols);
/* The terminal goes away, as when its window is closed. */
void screen_hang_up(struct screen *s);
/* Feeds the emulator for so long. */
void screen_pump(struct screen *s, int ms);

/* Waits until text is somewhere on the screen, or no longer is. */
bool screen_until(struct screen *s, const char *text);
bool screen_until_gone(struct screen *s, const char *text);
bool screen_until_cursor(struct screen *s, int row, int col);
/* Waits until the screen's rows are these, trailing blanks apart ("*" alone: any row). If it never
 * is, prints both and returns false. */
bool screen_expect(struct screen *s, const char *const *rows);

/* Row y without trailing blanks; valid until the next call. A wide character takes one place. */
const char *screen_row(struct screen *s, int y);
/* The row that holds text, -1: none; and the column where it begins. */
int screen_find(struct screen *s, const char *text, int *col);
void screen_cursor(const struct screen *s, int *row, int *col);
bool screen_reverse(const struct screen *s, int row, int col);
bool screen_on_alternate(const struct screen *s);
void screen_print(struct screen *s);

/* All bytes that the program has written. */
const char *screen_log(const struct screen *s, size_t *n);

#endif

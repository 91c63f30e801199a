/* SPDX-License-Identifier: MIT
 * The terminal: taking it, giving it back, signals, size, frames. There is one, so its state is
 * static. term.c and draw_*.c are the only files that include curses. */
#ifndef UI_TERM_H
#define UI_TERM_H

#include <stdbool.h>

#include "ui/ui.h"

/* Signals that arrived since they were last asked for. */
enum { UI_SIG_RESIZE = 1, UI_SIG_STOP = 2, UI_SIG_CONT = 4 };

int ui_term_open(const struct ui_opts *opts, struct ply_err *err);
void ui_term_close(void);
void ui_term_pause(void);
void ui_term_unpause(void);
/* Gives the terminal back, stops the process group as ^Z does and takes it again afterwards.
 * Returns at once where nobody could wake the process up. */
void ui_term_suspend(void);
/* After SIGCONT from elsewhere: the modes may have been changed behind our back. */
void ui_term_retake(void);

int ui_term_signal_fd(void);
unsigned ui_term_signals(void);

/* Asks the system for the size and adapts; true if it is another one. Always at least 1x1. */
bool ui_term_resize(void);
void ui_term_size(int *rows, int *cols);

/* Shows what was drawn, as one synchronised update. full: everything is sent again. */
void ui_term_flush(bool full);

bool ui_term_is_utf8(void);

#endif

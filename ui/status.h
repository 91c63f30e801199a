/* SPDX-License-Identifier: MIT
 * The lines of figures: status bar, header line, and the header line of a reply that is under
 * way. Models and text only; no curses. */
#ifndef UI_STATUS_H
#define UI_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/array.h"
#include "ui/ui.h"

/* The bar's text, and which part of it is the state word (drawn in the state's colour) and which,
 * if any, tells of a miss. */
struct ui_bar {
    struct ply_buf text;
    size_t word_off, word_len;
    size_t miss_off, miss_len;
};

/* Copies with owned strings. */
void ui_status_copy(struct ui_status *to, const struct ui_status *from);
void ui_status_fini(struct ui_status *s);
void ui_header_copy(struct ui_header *to, const struct ui_header *from);
void ui_header_fini(struct ui_header *h);

bool ui_state_is_busy(enum ui_state s);
const char *ui_state_word(enum ui_state s);
/* Whether the bar changes by the clock alone. */
bool ui_status_ticks(const struct ui_status *s);

/* Composes the richest bar that fits into cols. bar->text is overwritten. */
void ui_status_bar(const struct ui_status *s, double now, int cols, struct ui_bar *bar);
/* What a reply under way says after its author's name, in at most cols columns. */
void ui_status_live(const struct ui_status *s, double now, int cols, struct ply_buf *out);
/* Left and right part of the header line; what does not fit is left out (ui.h). */
void ui_header_line(const struct ui_header *h, int cols, struct ply_buf *left,
                    struct ply_buf *right);

#endif

/* SPDX-License-Identifier: MIT
 * Text as a terminal shows it: graphemes, their width in columns, and what is drawn instead of
 * bytes that must not reach a terminal. No curses, no locale.
 *
 * The rules of drawing, chosen so that every terminal agrees on the columns:
 *  - a grapheme is composed (NFC); at most UI_CELL_MARKS combining marks are kept per character;
 *  - emoji joined by U+200D are drawn side by side without the joiner, variation selectors and
 *    skin tones are not drawn, since terminals differ in the width they give to such sequences;
 *    a text symbol that is asked to be an emoji (U+FE0F) is followed by a blank column, and a
 *    flag is drawn as the two letters of its country;
 *  - control bytes are drawn as control pictures (U+2400 and up), and ill-formed UTF-8, C1 and
 *    bidirectional controls, unassigned and separator characters as U+FFFD;
 *  - a mark that has nothing to combine with is put on a dotted circle. */
#ifndef UI_TEXT_H
#define UI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UI_CELL_MARKS 3 /* curses' cells hold a base and four more */
#define UI_GLYPH_COLS 8 /* columns a single grapheme may take: a family of four */

/* A base character and its marks, in one or two columns. */
struct ui_cell {
    uint32_t cp; /* ' ' for the blank column after a widened symbol */
    uint32_t marks[UI_CELL_MARKS];
    uint8_t n_marks, width;
};

enum ui_glyph_kind { UI_GLYPH_TEXT, UI_GLYPH_SPACE, UI_GLYPH_TAB, UI_GLYPH_NEWLINE };

/* One grapheme of the source and how it is drawn. Tabs and newlines have no cells and width 0. */
struct ui_glyph {
    size_t bytes; /* of the source, at least 1 */
    uint32_t cp;  /* its first character, U+FFFD where ill-formed */
    enum ui_glyph_kind kind;
    int width, n_cells;
    struct ui_cell cells[UI_GLYPH_COLS];
};

/* The first grapheme of s[0..n), n > 0. */
void ui_glyph_next(const char *s, size_t n, struct ui_glyph *g);
/* The same for single-line texts: a newline is a placeholder, a tab a space. */
void ui_glyph_next_flat(const char *s, size_t n, struct ui_glyph *g);

/* True if the byte at s is a grapheme of its own that takes one column: the fast path. */
static inline bool
ui_text_plain(const char *s, size_t n)
{
    return s[0] >= 0x20 && s[0] < 0x7f && (n < 2 || (unsigned char)s[1] < 0x80);
}

/* Columns of a single-line text. */
int ui_text_cols(const char *s, size_t n);
/* Bytes of the longest prefix of a single-line text that takes at most cols columns. */
size_t ui_text_fit(const char *s, size_t n, int cols);

/* Grapheme boundaries in s[0..n): the one after pos (n at the end), the one before it (0 at the
 * start). */
size_t ui_text_next(const char *s, size_t n, size_t pos);
size_t ui_text_prev(const char *s, size_t n, size_t pos);
/* Letters, digits, marks and '_': what the editor's word commands move over. */
bool ui_text_is_word(uint32_t cp);

#endif

/* SPDX-License-Identifier: MIT
 * From graphemes to curses' cells, and what styles look like. Each cell is placed at the column
 * that text.c counted; where curses would count differently a substitute of the right width is
 * drawn, so a line can never be shifted. */
#include "ui/draw.h"

#include <string.h>
#include <wchar.h>

#include <curses.h>

#include "engine/base/num.h"
#include "ui/term.h"
#include "ui/text.h"

/* ---- styles ---------------------------------------------------------------------------- */

static struct {
    attr_t attr;
    short pair;
} styles[N_UI_STYLES];

struct look {
    attr_t mono;  /* without colours */
    attr_t attr;  /* with colours */
    short fg, bg; /* of eight; -1: the terminal's own */
    short fg256, bg256;
};

/* Names keep to the eight basic colours, which follow the person's theme; bars bring their own
 * background and foreground and read the same on any. */
static const struct look looks[N_UI_STYLES] = {
    [UI_STYLE_TEXT] = {A_NORMAL, A_NORMAL, -1, -1, -1, -1},
    [UI_STYLE_DIM] = {A_NORMAL, A_NORMAL, -1, -1, 245, -1},
    [UI_STYLE_BOLD] = {A_BOLD, A_BOLD, -1, -1, -1, -1},
    [UI_STYLE_USER] = {A_BOLD, A_BOLD, COLOR_CYAN, -1, COLOR_CYAN, -1},
    [UI_STYLE_REPLY] = {A_BOLD, A_BOLD, COLOR_GREEN, -1, COLOR_GREEN, -1},
    [UI_STYLE_SYSTEM] = {A_BOLD, A_BOLD, COLOR_MAGENTA, -1, COLOR_MAGENTA, -1},
    [UI_STYLE_NOTE] = {A_BOLD, A_BOLD, COLOR_YELLOW, -1, COLOR_YELLOW, -1},
    [UI_STYLE_PROMPT] = {A_BOLD, A_BOLD, COLOR_CYAN, -1, COLOR_CYAN, -1},
    [UI_STYLE_RULE] = {A_NORMAL, A_NORMAL, -1, -1, 240, -1},
    [UI_STYLE_MORE] = {A_BOLD, A_BOLD, COLOR_YELLOW, -1, COLOR_YELLOW, -1},
    [UI_STYLE_WARN] = {A_BOLD, A_NORMAL, COLOR_YELLOW, -1, COLOR_YELLOW, -1},
    [UI_STYLE_ERROR] = {A_BOLD, A_BOLD, COLOR_RED, -1, COLOR_RED, -1},
    [UI_STYLE_BAR] = {A_REVERSE, A_NORMAL, COLOR_BLACK, COLOR_WHITE, 252, 237},
    [UI_STYLE_BAR_BOLD] = {A_REVERSE | A_BOLD, A_BOLD, COLOR_BLACK, COLOR_WHITE, 231, 237},
    [UI_STYLE_BAR_BUSY] = {A_REVERSE | A_BOLD, A_BOLD, COLOR_BLACK, COLOR_GREEN, 231, 29},
    [UI_STYLE_BAR_ALERT] = {A_REVERSE | A_BOLD, A_BOLD, COLOR_WHITE, COLOR_RED, 231, 124},
    [UI_STYLE_SELECTED] = {A_REVERSE, A_REVERSE, -1, -1, -1, -1},
};

void
ui_draw_init_styles(bool color)
{
    for (int i = 0; i < N_UI_STYLES; i++) {
        const struct look *l = &looks[i];
        const short fg = COLORS >= 256 ? l->fg256 : l->fg, bg = COLORS >= 256 ? l->bg256 : l->bg;
        styles[i].attr = color ? l->attr : l->mono;
        styles[i].pair = 0;
        if (color && (fg >= 0 || bg >= 0) && init_pair((short)(i + 1), fg, bg) == OK)
            styles[i].pair = (short)(i + 1);
    }
}

/* ---- cells ----------------------------------------------------------------------------- */

/* What stands for a character where only ASCII can be shown. */
static wchar_t
ascii_for(uint32_t cp)
{
    switch (cp) {
    case 0x00A0: return L' ';
    case 0x2018:
    case 0x2019: return L'\'';
    case 0x201C:
    case 0x201D: return L'"';
    case 0x2010:
    case 0x2011:
    case 0x2012:
    case 0x2013:
    case 0x2014: return L'-';
    default: return cp < 0x80 ? (wchar_t)cp : L'?';
    }
}

static void
put(int y, int x, const wchar_t *s, enum ui_style style)
{
    cchar_t cc;
    if (setcchar(&cc, s, styles[style].attr, styles[style].pair, NULL) == OK)
        mvadd_wch(y, x, &cc);
}

static void
put_cell(int y, int x, const struct ui_cell *c, enum ui_style style)
{
    wchar_t s[2 + UI_CELL_MARKS] = {(wchar_t)c->cp};
    if (!ui_term_is_utf8()) {
        s[0] = ascii_for(c->cp);
        for (int i = 0; i < c->width; i++)
            put(y, x + i, s, style);
        return;
    }
    if (wcwidth(s[0]) != c->width) {
        s[0] = 0xFFFD;
        put(y, x, s, style);
        if (c->width == 2)
            put(y, x + 1, L" ", style);
        return;
    }
    int n = 1;
    for (int i = 0; i < c->n_marks; i++) {
        if (wcwidth((wchar_t)c->marks[i]) == 0)
            s[n++] = (wchar_t)c->marks[i];
    }
    put(y, x, s, style);
}

/* Draws what fits before x_end; returns the column after the grapheme, drawn or not. */
static int
put_glyph(int y, int x, int x_end, const struct ui_glyph *g, enum ui_style style)
{
    for (int i = 0; i < g->n_cells; i++) {
        if (x >= 0 && x + g->cells[i].width <= x_end)
            put_cell(y, x, &g->cells[i], style);
        x += g->cells[i].width;
    }
    return x;
}

/* ---- texts ----------------------------------------------------------------------------- */

int
ui_draw_text(int y, int x, int x_end, const char *s, size_t n, enum ui_style style)
{
    struct ui_glyph g;
    for (size_t pos = 0; pos < n && x < x_end; pos += g.bytes) {
        ui_glyph_next_flat(s + pos, n - pos, &g);
        x = put_glyph(y, x, x_end, &g, style);
    }
    return PLY_MIN(x, x_end);
}

int
ui_draw_str(int y, int x, int x_end, const char *s, enum ui_style style)
{
    return ui_draw_text(y, x, x_end, s, strlen(s), style);
}

int
ui_draw_cut(int y, int x, int x_end, const char *s, enum ui_style style)
{
    const size_t n = strlen(s);
    if (ui_text_cols(s, n) <= x_end - x)
        return ui_draw_text(y, x, x_end, s, n, style);
    const size_t fit = ui_text_fit(s, n, PLY_MAX(x_end - x - 2, 0));
    return ui_draw_str(y, ui_draw_text(y, x, x_end, s, fit, style), x_end, "..", style);
}

int
ui_draw_right(int y, int x, int x_end, const char *s, enum ui_style style)
{
    const int at = x_end - ui_text_cols(s, strlen(s));
    if (at < x)
        return x_end;
    ui_draw_str(y, at, x_end, s, style);
    return at;
}

int
ui_draw_row(int y, int x, int x_end, const char *text, const struct ui_row *row,
            enum ui_style style)
{
    const int x0 = x;
    struct ui_glyph g;
    for (size_t pos = 0; pos < row->len && x < x_end; pos += g.bytes) {
        ui_glyph_next(text + row->off + pos, row->len - pos, &g);
        if (g.kind == UI_GLYPH_TAB)
            x += UI_TAB_COLS - (x - x0) % UI_TAB_COLS;
        else
            x = put_glyph(y, x, x_end, &g, style);
    }
    return PLY_MIN(x, x_end);
}

void
ui_draw_blank(int y, int x, int x_end, enum ui_style style)
{
    for (; x < x_end; x++)
        put(y, x, L" ", style);
}

void
ui_draw_line(int y, int x, int x_end, enum ui_style style)
{
    const wchar_t *const s = ui_term_is_utf8() ? L"\x2500" : L"-";
    for (; x < x_end; x++)
        put(y, x, s, style);
}

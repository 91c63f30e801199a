/* SPDX-License-Identifier: MIT
 * Greedy word wrap. A row may be broken after spaces, after a hyphen between letters, and on both
 * sides of a wide character (Chinese, Japanese, Korean) except where its punctuation forbids it;
 * a word longer than the row is cut between graphemes. */
#include "ui/wrap.h"

#include <stdlib.h>
#include <string.h>

#include "ui/mem.h"
#include "ui/text.h"

/* A row ends here at the latest, so that a row of invisible characters cannot grow without end. */
#define ROW_BYTES_MAX 32768

/* Punctuation that must not begin a row, and that must not end one. */
static bool
is_closing(uint32_t cp)
{
    static const uint32_t set[] = {0x3001, 0x3002, 0x3005, 0x3009, 0x300B, 0x300D, 0x300F,
                                   0x3011, 0x3015, 0x3017, 0x30FB, 0x30FC, 0xFF01, 0xFF09,
                                   0xFF0C, 0xFF0E, 0xFF1A, 0xFF1B, 0xFF1F, 0xFF3D, 0xFF5D};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        if (set[i] == cp)
            return true;
    }
    return false;
}

static bool
is_opening(uint32_t cp)
{
    static const uint32_t set[] = {0x3008, 0x300A, 0x300C, 0x300E, 0x3010,
                                   0x3014, 0x3016, 0xFF08, 0xFF3B, 0xFF5B};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        if (set[i] == cp)
            return true;
    }
    return false;
}

/* The graphemes before the current one, as far as breaking asks. */
struct seen {
    enum ui_glyph_kind kind;
    uint32_t cp, cp2; /* the last and the one before it */
    int width;
};

/* Whether a row may end between what was seen and g. */
static bool
may_break(const struct seen *seen, const struct ui_glyph *g)
{
    if (seen->kind == UI_GLYPH_SPACE || seen->kind == UI_GLYPH_TAB)
        return true;
    if (seen->cp == '-')
        return ui_text_is_word(seen->cp2) && ui_text_is_word(g->cp);
    if (seen->width < 2 && g->width < 2)
        return false;
    return !is_closing(g->cp) && !is_opening(seen->cp);
}

static int
glyph_cols(const struct ui_glyph *g, int col)
{
    return g->kind == UI_GLYPH_TAB ? UI_TAB_COLS - col % UI_TAB_COLS : g->width;
}

/* Ends the row before byte end, where no newline is. Spaces that follow hang over the edge. */
static void
end_soft(const char *text, size_t n, size_t end, struct ui_row *row)
{
    row->len = end - row->off;
    while (end < n && (text[end] == ' ' || text[end] == '\t') && end - row->off < ROW_BYTES_MAX)
        end++;
    row->skip = end - row->off;
    if (end < n && text[end] == '\n') {
        row->skip++;
        row->hard = true;
    } else if (end + 1 < n && text[end] == '\r' && text[end + 1] == '\n') {
        row->skip += 2;
        row->hard = true;
    }
}

void
ui_wrap_row(const char *text, size_t n, size_t off, int cols, struct ui_row *row)
{
    *row = (struct ui_row){.off = off};
    struct seen seen = {.kind = UI_GLYPH_TEXT};
    struct ui_glyph g;
    size_t pos = off, brk = 0; /* brk: the last place to break, 0 for none */
    int col = 0;
    for (; pos < n; pos += g.bytes) {
        ui_glyph_next(text + pos, n - pos, &g);
        if (g.kind == UI_GLYPH_NEWLINE) {
            row->len = pos - off;
            row->skip = row->len + g.bytes;
            row->hard = true;
            return;
        }
        if (pos > off && may_break(&seen, &g))
            brk = pos;
        const int w = glyph_cols(&g, col);
        const bool over = col + w > cols && pos > off;
        if (over && (g.kind == UI_GLYPH_SPACE || g.kind == UI_GLYPH_TAB)) {
            end_soft(text, n, pos, row);
            return;
        }
        if (over || pos - off >= ROW_BYTES_MAX) {
            end_soft(text, n, over && brk ? brk : pos, row);
            return;
        }
        col += w;
        seen = (struct seen){.kind = g.kind, .cp = g.cp, .cp2 = seen.cp, .width = g.width};
    }
    row->len = row->skip = n - off;
}

static void
push(struct ui_rows *rows, const struct ui_row *row)
{
    if (rows->n == rows->cap) {
        rows->cap = rows->cap ? rows->cap * 2 : 4;
        rows->v = ui_xrealloc(rows->v, rows->cap, sizeof *rows->v);
    }
    rows->v[rows->n++] = *row;
}

void
ui_rows_update(struct ui_rows *rows, const char *text, size_t n, int cols, size_t from)
{
    if (rows->cols != cols || rows->n == 0) {
        rows->n = 0;
        rows->cols = cols;
    } else {
        const size_t holds = ui_rows_find(rows, from);
        rows->n = holds > 0 ? holds - 1 : 0;
    }
    size_t off = 0;
    bool hard = false;
    if (rows->n > 0) {
        const struct ui_row *last = &rows->v[rows->n - 1];
        off = last->off + last->skip;
        hard = last->hard;
    }
    while (off < n || rows->n == 0 || hard) {
        struct ui_row row;
        ui_wrap_row(text, n, off, cols, &row);
        push(rows, &row);
        off += row.skip;
        hard = row.hard;
    }
}

size_t
ui_rows_find(const struct ui_rows *rows, size_t off)
{
    size_t lo = 0, hi = rows->n;
    while (hi - lo > 1) {
        const size_t mid = lo + (hi - lo) / 2;
        if (rows->v[mid].off <= off)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

void
ui_rows_fini(struct ui_rows *rows)
{
    free(rows->v);
    *rows = (struct ui_rows){0};
}

int
ui_row_col(const char *text, const struct ui_row *row, size_t off)
{
    const size_t end = off < row->off + row->skip ? off : row->off + row->skip;
    struct ui_glyph g;
    int col = 0;
    for (size_t pos = row->off; pos < end; pos += g.bytes) {
        ui_glyph_next(text + pos, row->off + row->skip - pos, &g);
        col += glyph_cols(&g, col);
    }
    return col;
}

size_t
ui_row_at(const char *text, const struct ui_row *row, int col)
{
    const size_t end = row->off + row->len;
    struct ui_glyph g;
    size_t pos = row->off;
    for (int c = 0; pos < end; pos += g.bytes) {
        ui_glyph_next(text + pos, end - pos, &g);
        c += glyph_cols(&g, c);
        if (c > col)
            break;
    }
    return pos;
}

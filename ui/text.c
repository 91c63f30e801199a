/* SPDX-License-Identifier: MIT
 * Graphemes, widths and placeholders; the rules are in text.h. Grapheme boundaries and classes
 * are utf8proc's; where its widths differ from the C library's, which curses and most terminals
 * follow, the C library's rule is taken (spacing marks, Hangul vowels and finals). */
#include "ui/text.h"

#include <string.h>
#include <utf8proc.h>

#include "engine/base/utf8.h"

/* Characters of one grapheme that are looked at; the rest belongs to it but is not drawn. */
#define SEEN_MAX 32
/* A longer "grapheme" is cut: hundreds of marks on one letter are an attack or damage, and laying
 * out a line must not cost its square. */
#define CPS_MAX 1024

#define CP_BAD 0xFFFD
#define CP_CIRCLE 0x25CC

static bool
is_bidi_control(uint32_t cp)
{
    return (cp >= 0x202A && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069);
}

static bool
is_skin_tone(uint32_t cp)
{
    return cp >= 0x1F3FB && cp <= 0x1F3FF;
}

/* Characters without a shape of their own: joiners, selectors, directional marks, fillers, tags. */
static bool
is_invisible(uint32_t cp)
{
    return cp == 0x00AD || cp == 0x034F || cp == 0x061C || cp == 0x115F || cp == 0x1160 ||
           cp == 0x17B4 || cp == 0x17B5 || (cp >= 0x180B && cp <= 0x180F) ||
           (cp >= 0x200B && cp <= 0x200F) || (cp >= 0x2060 && cp <= 0x2064) || cp == 0x3164 ||
           (cp >= 0xFE00 && cp <= 0xFE0F) || cp == 0xFEFF || cp == 0xFFA0 ||
           (cp >= 0xE0000 && cp <= 0xE0FFF);
}

static int
cp_width(uint32_t cp)
{
    if ((cp >= 0x1160 && cp <= 0x11FF) || (cp >= 0xD7B0 && cp <= 0xD7FB))
        return 0; /* Hangul vowels and finals combine with the syllable before them */
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    if (c == UTF8PROC_CATEGORY_MC || c == UTF8PROC_CATEGORY_CF)
        return 1;
    return utf8proc_charwidth((utf8proc_int32_t)cp);
}

/* What is drawn for a character that may not be drawn itself, or 0. */
static uint32_t
placeholder(uint32_t cp)
{
    if (cp >= 0x1F1E6 && cp <= 0x1F1FF)
        return 'A' + (cp - 0x1F1E6);
    if (cp < 0x20)
        return 0x2400 + cp;
    if (cp == 0x7F)
        return 0x2421;
    if (is_bidi_control(cp))
        return CP_BAD;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return CP_BAD;
    default: return 0;
    }
}

static void
set_single(struct ui_glyph *g, uint32_t cp)
{
    g->n_cells = 1;
    g->width = 1;
    g->cells[0] = (struct ui_cell){.cp = cp, .width = 1};
}

static void
add_cell(struct ui_glyph *g, uint32_t cp, int width)
{
    if (g->n_cells == UI_GLYPH_COLS || g->width + width > UI_GLYPH_COLS)
        return;
    g->cells[g->n_cells++] = (struct ui_cell){.cp = cp, .width = (uint8_t)width};
    g->width += width;
}

static void
add_mark(struct ui_glyph *g, uint32_t cp)
{
    if (g->n_cells == 0)
        add_cell(g, CP_CIRCLE, 1);
    struct ui_cell *c = &g->cells[g->n_cells - 1];
    if (c->n_marks < UI_CELL_MARKS)
        c->marks[c->n_marks++] = cp;
}

/* Characters cps[0..n) of one grapheme -> cells. */
static void
build_cells(struct ui_glyph *g, const uint32_t *cps, int n)
{
    utf8proc_int32_t kept[SEEN_MAX];
    utf8proc_ssize_t n_kept = 0;
    bool emoji = false;
    for (int i = 0; i < n; i++) {
        emoji |= cps[i] == 0xFE0F;
        if (!is_invisible(cps[i]) && !(i > 0 && is_skin_tone(cps[i])))
            kept[n_kept++] = (utf8proc_int32_t)cps[i];
    }
    if (n_kept > 1)
        n_kept = utf8proc_normalize_utf32(kept, n_kept, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < n_kept; i++) {
        const uint32_t cp = (uint32_t)kept[i];
        const uint32_t instead = placeholder(cp);
        const int width = instead ? 1 : cp_width(cp);
        if (width > 0)
            add_cell(g, instead ? instead : cp, width);
        else
            add_mark(g, cp);
    }
    if (emoji && g->width == 1)
        add_cell(g, ' ', 1);
}

/* Read one grapheme: its characters into cps (SEEN_MAX of them), its bytes as the result. */
static size_t
read_grapheme(const char *s, size_t n, uint32_t *cps, int *n_cps, bool *bad)
{
    uint32_t prev = 0;
    const int first = ply_utf8_decode(s, n, &prev);
    cps[0] = prev;
    *n_cps = 1;
    *bad = first < 0;
    if (first < 0)
        return (size_t)-first;
    size_t pos = (size_t)first;
    utf8proc_int32_t state = 0;
    for (int i = 1; pos < n && i < CPS_MAX; i++) {
        uint32_t cp = 0;
        const int len = ply_utf8_decode(s + pos, n - pos, &cp);
        if (len < 0 ||
            utf8proc_grapheme_break_stateful((utf8proc_int32_t)prev, (utf8proc_int32_t)cp, &state))
            break;
        if (*n_cps < SEEN_MAX)
            cps[(*n_cps)++] = cp;
        pos += (size_t)len;
        prev = cp;
    }
    return pos;
}

void
ui_glyph_next(const char *s, size_t n, struct ui_glyph *g)
{
    g->width = 0;
    g->n_cells = 0;
    g->kind = UI_GLYPH_TEXT;
    if (ui_text_plain(s, n)) {
        g->bytes = 1;
        g->cp = (uint32_t)s[0];
        g->kind = s[0] == ' ' ? UI_GLYPH_SPACE : UI_GLYPH_TEXT;
        set_single(g, g->cp);
        return;
    }
    uint32_t cps[SEEN_MAX];
    int n_cps;
    bool bad;
    g->bytes = read_grapheme(s, n, cps, &n_cps, &bad);
    g->cp = cps[0];
    if (cps[0] == '\n' || (cps[0] == '\r' && g->bytes == 2))
        g->kind = UI_GLYPH_NEWLINE;
    else if (cps[0] == '\t')
        g->kind = UI_GLYPH_TAB;
    else if (bad)
        set_single(g, CP_BAD);
    else
        build_cells(g, cps, n_cps);
    if (cps[0] == ' ' && g->width == 1 && g->cells[0].n_marks == 0)
        g->kind = UI_GLYPH_SPACE;
}

void
ui_glyph_next_flat(const char *s, size_t n, struct ui_glyph *g)
{
    ui_glyph_next(s, n, g);
    if (g->kind == UI_GLYPH_NEWLINE)
        set_single(g, placeholder('\n'));
    else if (g->kind == UI_GLYPH_TAB)
        set_single(g, ' ');
}

int
ui_text_cols(const char *s, size_t n)
{
    int cols = 0;
    struct ui_glyph g;
    for (size_t pos = 0; pos < n; pos += g.bytes) {
        ui_glyph_next_flat(s + pos, n - pos, &g);
        cols += g.width;
    }
    return cols;
}

size_t
ui_text_fit(const char *s, size_t n, int cols)
{
    struct ui_glyph g;
    size_t pos = 0;
    for (int used = 0; pos < n; pos += g.bytes) {
        ui_glyph_next_flat(s + pos, n - pos, &g);
        used += g.width;
        if (used > cols)
            break;
    }
    return pos;
}

size_t
ui_text_next(const char *s, size_t n, size_t pos)
{
    struct ui_glyph g;
    if (pos >= n)
        return n;
    ui_glyph_next(s + pos, n - pos, &g);
    return pos + g.bytes;
}

size_t
ui_text_prev(const char *s, size_t n, size_t pos)
{
    /* Before an ASCII byte there is always a boundary (CR LF apart), so graphemes are counted
     * from there; text without any is entered a few kilobytes earlier. */
    const size_t floor = pos > 4096 ? pos - 4096 : 0;
    size_t from = pos;
    while (from > floor) {
        from--;
        if ((unsigned char)s[from] < 0x80 && !(s[from] == '\n' && from > 0 && s[from - 1] == '\r'))
            break;
    }
    while (from > 0 && ((unsigned char)s[from] & 0xC0) == 0x80)
        from--;
    while (from < pos) {
        const size_t next = ui_text_next(s, n, from);
        if (next >= pos)
            return from;
        from = next;
    }
    return 0;
}

bool
ui_text_is_word(uint32_t cp)
{
    if (cp == '_')
        return true;
    const utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NO;
}

/* SPDX-License-Identifier: MIT
 * A session's title out of its first message. */
#include <string.h>
#include <utf8proc.h>

#include "app/store.h"
#include "engine/base/utf8.h"

#define TITLE_COLS 40
#define TITLE_BYTES 255

/* What a title may not hold: control and format characters, line and paragraph separators,
 * and private or unassigned code points. */
static bool
is_printable(uint32_t cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return cp == 0x200d; /* joins the parts of an emoji */
    default: return true;
    }
}

/* A title in the making: a blank before the next character is owed, never written first or
 * last. cut is where the text ends if an ellipsis must follow. */
struct title {
    char *out;
    size_t n, cut;
    int cols;
    bool blank;
};

/* False: it does not fit any more. */
static bool
title_put(struct title *t, uint32_t cp)
{
    char bytes[4];
    int n = ply_utf8_encode(cp, bytes), cols = utf8proc_charwidth((utf8proc_int32_t)cp);
    int blank = t->blank && t->n ? 1 : 0;
    if (t->cols + blank + cols > TITLE_COLS || t->n + (size_t)(blank + n) > TITLE_BYTES - 3)
        return false;
    if (blank)
        t->out[t->n++] = ' ';
    memcpy(t->out + t->n, bytes, (size_t)n);
    t->n += (size_t)n;
    t->cols += blank + cols;
    t->blank = false;
    if (t->cols < TITLE_COLS)
        t->cut = t->n;
    return true;
}

void
store_title_from(const char *text, size_t len, char title[256])
{
    struct title t = {.out = title};
    bool fits = true;
    for (size_t i = 0; i < len && fits;) {
        uint32_t cp;
        int n = ply_utf8_decode(text + i, len - i, &cp);
        i += (size_t)(n < 0 ? -n : n);
        if ((cp == '\n' || cp == '\r' || cp == 0x2028 || cp == 0x2029 || cp == 0x85) && t.n > 0)
            break;
        if (utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_ZS || cp == '\t')
            t.blank = true;
        else if (n > 0 && is_printable(cp))
            fits = title_put(&t, cp);
    }
    if (!fits) {
        memcpy(title + t.cut, "\xe2\x80\xa6", 3);
        t.n = t.cut + 3;
    }
    title[t.n] = '\0';
}

/* SPDX-License-Identifier: MIT
 * Placeholders for what a terminal would obey. */
#include "app/safe.h"

#include <stdint.h>
#include <utf8proc.h>

#include "engine/base/err.h"
#include "engine/base/utf8.h"

static bool
is_bidi_control(uint32_t cp)
{
    return cp == 0x061c || cp == 0x200e || cp == 0x200f || (cp >= 0x202a && cp <= 0x202e) ||
           (cp >= 0x2066 && cp <= 0x2069);
}

static uint32_t
shown_as(uint32_t cp, bool flat, bool ascii)
{
    if (cp == '\n' || cp == '\t')
        return flat ? ' ' : cp;
    if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || is_bidi_control(cp))
        cp = 0xfffd;
    else if (flat && (cp == 0x2028 || cp == 0x2029))
        cp = ' ';
    return ascii && cp >= 0x80 ? '?' : cp;
}

int
app_safe_append(struct ply_buf *out, const char *text, size_t len, bool flat, bool ascii)
{
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        char bytes[4];
        int n = ply_utf8_decode(text + i, len - i, &cp);
        i += (size_t)(n < 0 ? -n : n);
        int m = ply_utf8_encode(shown_as(cp, flat, ascii), bytes);
        if (ply_buf_append(out, bytes, (size_t)m) != 0)
            return PLY_ENOMEM;
    }
    return PLY_OK;
}

/* Walk text until it is over or would take more than cols columns. */
static size_t
walk(const char *text, size_t len, int cols, int *taken)
{
    size_t i = 0;
    *taken = 0;
    while (i < len) {
        uint32_t cp;
        int n = ply_utf8_decode(text + i, len - i, &cp);
        int width = utf8proc_charwidth((utf8proc_int32_t)cp);
        if (width > cols - *taken)
            break;
        *taken += width;
        i += (size_t)(n < 0 ? -n : n);
    }
    return i;
}

int
app_safe_cols(const char *text, size_t len)
{
    int taken;
    walk(text, len, 1 << 30, &taken);
    return taken;
}

size_t
app_safe_fit(const char *text, size_t len, int cols)
{
    int taken;
    return walk(text, len, cols, &taken);
}

/* SPDX-License-Identifier: MIT
 * Formatting of the one-line errors; what may be in them is err.h's promise. */
#include "engine/base/err.h"

#include <stdarg.h>
#include <stdio.h>

#include "engine/base/utf8.h"

/* Names from files end up in messages and messages on a terminal: nothing that could steer one
 * may pass, C1 controls included, and what is cut or ill-formed must not confuse it either. */
static void
make_printable(char *s)
{
    char *w = s;
    size_t n = 0;
    while (s[n])
        n++;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        const int len = ply_utf8_decode(s + i, n - i, &cp);
        const size_t step = (size_t)(len < 0 ? -len : len);
        if (len < 0 || cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029) {
            *w++ = '?';
        } else {
            for (size_t k = 0; k < step; k++)
                *w++ = s[i + k];
        }
        i += step;
    }
    *w = '\0';
}

int
ply_fail(struct ply_err *err, int code, const char *fmt, ...)
{
    if (!err || err->code != PLY_OK)
        return code;
    va_list ap;
    va_start(ap, fmt);
    if (vsnprintf(err->msg, sizeof(err->msg), fmt, ap) < 0)
        err->msg[0] = '\0';
    va_end(ap);
    make_printable(err->msg);
    err->code = code;
    return code;
}

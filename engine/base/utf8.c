/* SPDX-License-Identifier: MIT
 * UTF-8 by the Unicode standard's table 3-7 (well-formed byte sequences). */
#include "engine/base/utf8.h"

#define REPLACEMENT 0xFFFDu

/* How many bytes the lead byte announces (0: it can lead nothing), and the range of the
 * second byte; every later byte is 80..BF. The narrow ranges are what keeps overlong forms,
 * surrogates and values above U+10FFFF out. */
static int
lead_len(uint8_t b, uint8_t *lo, uint8_t *hi)
{
    *lo = 0x80;
    *hi = 0xBF;
    if (b < 0x80)
        return 1;
    if (b >= 0xC2 && b <= 0xDF)
        return 2;
    if (b >= 0xE0 && b <= 0xEF) {
        if (b == 0xE0)
            *lo = 0xA0;
        if (b == 0xED)
            *hi = 0x9F;
        return 3;
    }
    if (b >= 0xF0 && b <= 0xF4) {
        if (b == 0xF0)
            *lo = 0x90;
        if (b == 0xF4)
            *hi = 0x8F;
        return 4;
    }
    return 0;
}

/* The number of bytes of s[0..n) that fit the form its lead byte announces (>= 1), and in
 * *want how many that form has. */
static int
scan(const uint8_t *s, size_t n, int *want)
{
    uint8_t lo, hi;
    *want = lead_len(s[0], &lo, &hi);
    int i = 1;
    while (i < *want && (size_t)i < n && s[i] >= lo && s[i] <= hi) {
        lo = 0x80;
        hi = 0xBF;
        i++;
    }
    return i;
}

int
ply_utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    const uint8_t *u = (const uint8_t *)s;
    int want;
    const int got = scan(u, n, &want);
    if (got != want) {
        *cp = REPLACEMENT;
        return -got;
    }
    if (want == 1) {
        *cp = u[0];
        return 1;
    }
    uint32_t v = u[0] & (0xFFu >> (want + 1));
    for (int i = 1; i < want; i++)
        v = v << 6 | (u[i] & 0x3Fu);
    *cp = v;
    return want;
}

int
ply_utf8_encode(uint32_t cp, char out[4])
{
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF))
        cp = REPLACEMENT;
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

bool
ply_utf8_valid(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        const int len = ply_utf8_decode(s + i, n - i, &cp);
        if (len < 0)
            return false;
        i += (size_t)len;
    }
    return true;
}

size_t
ply_utf8_whole(const char *s, size_t n)
{
    const uint8_t *u = (const uint8_t *)s;
    /* An unfinished character is at most three bytes at the end that fit their lead byte. */
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const size_t at = n - back;
        if (u[at] >= 0x80 && u[at] <= 0xBF)
            continue;
        int want;
        const int got = scan(u + at, back, &want);
        return got == (int)back && got < want ? at : n;
    }
    return n;
}

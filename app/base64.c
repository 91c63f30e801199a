/* SPDX-License-Identifier: MIT */
#include "app/base64.h"

#include <stdint.h>
#include <string.h>

#include "engine/base/err.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int
app_base64_encode(const char *bytes, size_t len, struct ply_buf *out)
{
    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < n ? (unsigned char)bytes[i + k] : 0u);
        char four[4];
        for (size_t k = 0; k < 4; k++)
            four[k] = k <= n ? digits[v >> (18 - 6 * k) & 63] : '=';
        if (ply_buf_append(out, four, 4) != 0)
            return PLY_ENOMEM;
    }
    return PLY_OK;
}

bool
app_base64_decode(const char *text, size_t len, struct ply_buf *out)
{
    if (len % 4)
        return false;
    for (size_t i = 0; i < len; i += 4) {
        size_t pad = 0;
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            char c = text[i + k];
            const char *d = c ? strchr(digits, c) : NULL;
            bool padding = c == '=' && i + 4 == len && k >= 2;
            if ((!d && !padding) || (d && pad))
                return false;
            pad += padding;
            v = v << 6 | (d ? (uint32_t)(d - digits) : 0u);
        }
        if (v & ((1u << (8 * pad)) - 1)) /* bits that stand for nothing */
            return false;
        char three[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
        if (ply_buf_append(out, three, 3 - pad) != 0)
            return false;
    }
    return true;
}

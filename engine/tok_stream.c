/* SPDX-License-Identifier: MIT
 * Whole characters out of a stream of pieces. A piece of a vocabulary may end in the middle
 * of a character; its bytes wait here until the rest has come or can no longer come. */
#include "engine/ply.h"

#include <string.h>

#include "engine/base/utf8.h"

#define REPLACEMENT "\xEF\xBF\xBD"

/* Move what is decided at the front of s->held to out: a character, or an ill-formed part.
 * False when the bytes held are the beginning of a character. out has room. */
static bool
take_one(struct ply_stream *s, struct ply_buf *out, bool at_end)
{
    if (s->n_held == 0)
        return false;
    if (!at_end && ply_utf8_whole(s->held, s->n_held) == 0)
        return false;
    uint32_t cp;
    const int len = ply_utf8_decode(s->held, s->n_held, &cp);
    const size_t used = (size_t)(len < 0 ? -len : len);
    if (len < 0)
        ply_buf_append(out, REPLACEMENT, 3);
    else
        ply_buf_append(out, s->held, used);
    s->n_held -= used;
    memmove(s->held, s->held + used, s->n_held);
    return true;
}

int
ply_stream_push(struct ply_stream *s, const char *bytes, size_t n, struct ply_buf *out)
{
    /* Every byte may become a replacement of three. Reserved at once, so that a failure
     * leaves the stream and the text as they were. */
    if (n > (SIZE_MAX - 16) / 3)
        return PLY_ENOMEM;
    const int rc = ply_buf_reserve(out, 3 * (n + s->n_held));
    if (rc != PLY_OK)
        return rc;
    for (size_t i = 0; i < n; i++) {
        s->held[s->n_held++] = bytes[i];
        while (take_one(s, out, false)) {
        }
    }
    return PLY_OK;
}

int
ply_stream_finish(struct ply_stream *s, struct ply_buf *out)
{
    const int rc = ply_buf_reserve(out, 3 * s->n_held);
    if (rc != PLY_OK)
        return rc;
    while (take_one(s, out, true)) {
    }
    return PLY_OK;
}

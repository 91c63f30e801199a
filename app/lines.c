/* SPDX-License-Identifier: MIT
 * Lines of input. */
#include "app/lines.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "app/base64.h"
#include "app/mem.h"

void
lines_init(struct lines *l, int fd, size_t max)
{
    *l = (struct lines){.fd = fd, .max = max};
}

void
lines_fini(struct lines *l)
{
    ply_buf_fini(&l->buf);
    *l = (struct lines){.fd = -1, .ended = true};
}

/* Room is made before reading, never while a line that was handed out is in use. */
void
lines_read(struct lines *l)
{
    char chunk[65536];
    const ssize_t n = read(l->fd, chunk, sizeof(chunk));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        l->ended = true;
        return;
    }
    if (l->first > 0) {
        memmove(l->buf.v, l->buf.v + l->first, l->buf.n - l->first);
        l->buf.n -= l->first;
        l->scanned -= l->first;
        l->first = 0;
    }
    app_buf_append(&l->buf, chunk, (size_t)n);
}

bool
lines_take(struct lines *l, char **line, size_t *len, bool *too_long)
{
    *too_long = false;
    for (;;) {
        char *nl = l->scanned < l->buf.n
                       ? memchr(l->buf.v + l->scanned, '\n', l->buf.n - l->scanned)
                       : NULL;
        const size_t end = nl ? (size_t)(nl - l->buf.v) : l->buf.n;
        const bool whole = nl || (l->ended && end > l->first);
        const bool skipped = l->skipping;
        if (!whole && end - l->first > l->max) {
            l->skipping = true;
            l->buf.n = l->first;
        }
        l->scanned = l->buf.n;
        if (!whole && !(l->ended && skipped))
            return false;
        *line = l->buf.v + l->first;
        *len = end - l->first;
        *too_long = skipped || *len > l->max;
        l->first = l->scanned = nl ? end + 1 : l->buf.n;
        l->skipping = false;
        return true;
    }
}

/* "\n" is a newline and "\\" a backslash; any other backslash is itself. */
static void
unescape(const char *s, size_t len, struct ply_buf *out)
{
    for (size_t i = 0; i < len; i++) {
        const bool pair = s[i] == '\\' && i + 1 < len && (s[i + 1] == 'n' || s[i + 1] == '\\');
        const char c = pair ? (s[i + 1] == 'n' ? '\n' : '\\') : s[i];
        app_buf_append(out, &c, 1);
        i += pair;
    }
}

static int
parse_json(const char *line, size_t len, struct ply_buf *out, struct ply_err *err)
{
    json_error_t why;
    json_t *o = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!o)
        return ply_fail(err, PLY_EINVAL, "not valid JSON: %s (byte %d)", why.text, why.position);
    const json_t *text = json_object_get(o, "text"), *bytes = json_object_get(o, "bytes64");
    int r = PLY_OK;
    if (json_is_string(text) && !bytes)
        app_buf_append(out, json_string_value(text), json_string_length(text));
    else if (!json_is_string(bytes) || text)
        r = ply_fail(err, PLY_EINVAL, "a JSON line is {\"text\": string} or {\"bytes64\": string}");
    else if (!app_base64_decode(json_string_value(bytes), json_string_length(bytes), out))
        r = ply_fail(err, PLY_EINVAL, "bytes64 is not base64");
    json_decref(o);
    return r;
}

int
line_parse(const char *line, size_t len, bool jsonl, enum line_kind *kind, struct ply_buf *out,
           struct ply_err *err)
{
    out->n = 0;
    app_buf_append(out, "", 0);
    *kind = LINE_MESSAGE;
    if (len == 0) {
        *kind = LINE_EMPTY;
        return PLY_OK;
    }
    if (jsonl && line[0] == '{')
        return parse_json(line, len, out, err);
    if (line[0] == '/' && !(len > 1 && line[1] == '/')) {
        *kind = LINE_COMMAND;
        line++;
        len--;
    } else if (line[0] == '/') {
        line++;
        len--;
    }
    if (jsonl)
        unescape(line, len, out);
    else
        app_buf_append(out, line, len);
    return PLY_OK;
}

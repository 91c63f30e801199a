/* SPDX-License-Identifier: MIT
 * The history file. */
#include "app/history.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/input.h"
#include "app/mem.h"
#include "engine/base/log.h"

#define FILE_MAX ((size_t)64 << 20)
#define ENTRY_MAX ((size_t)64 << 10) /* longer texts are pastes, and in the database */

static void
escape(const char *text, size_t len, struct ply_buf *out)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n')
            app_buf_puts(out, "\\n");
        else if (text[i] == '\\')
            app_buf_puts(out, "\\\\");
        else
            app_buf_append(out, &text[i], 1);
    }
    app_buf_puts(out, "\n");
}

static void
unescape(const char *line, size_t len, struct ply_buf *out)
{
    out->n = 0;
    app_buf_puts(out, "");
    for (size_t i = 0; i < len; i++) {
        const bool pair = line[i] == '\\' && i + 1 < len;
        const char c = pair ? (line[i + 1] == 'n' ? '\n' : line[i + 1]) : line[i];
        app_buf_append(out, &c, 1);
        i += pair;
    }
}

static size_t
count_lines(const struct ply_buf *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        n += b->v[i] == '\n';
    return n;
}

/* Where the last n lines begin. */
static size_t
tail_of(const struct ply_buf *b, size_t n)
{
    size_t at = b->n;
    while (at > 0) {
        if (b->v[at - 1] == '\n' && n-- == 0)
            break;
        at--;
    }
    return at;
}

static void
write_file(const struct app_paths *p, int flags, const char *bytes, size_t n)
{
    if (app_dir_make(p->state_dir, NULL) != 0)
        return;
    const int fd = app_file_create(p->history, flags, NULL);
    if (fd < 0)
        return;
    /* One write: entries of two processes do not mix. A short one loses an entry, no more. */
    if (write(fd, bytes, n) != (ssize_t)n)
        ply_log(PLY_LOG_WARN, "history", "entry not written");
    close(fd);
}

void
history_load(const struct app_paths *p, history_fn fn, void *user)
{
    struct ply_buf b = {0}, entry = {0};
    if (input_read_file(p->history, FILE_MAX, &b, NULL) == 0 && b.n > 0) {
        const size_t first = tail_of(&b, HISTORY_MAX);
        if (count_lines(&b) > 2 * HISTORY_MAX)
            write_file(p, O_TRUNC, b.v + first, b.n - first);
        for (size_t i = first; i < b.n;) {
            const char *nl = memchr(b.v + i, '\n', b.n - i);
            const size_t len = nl ? (size_t)(nl - b.v) - i : b.n - i;
            unescape(b.v + i, len, &entry);
            if (entry.n > 0)
                fn(user, entry.v, entry.n);
            i += len + 1;
        }
    }
    ply_buf_fini(&entry);
    ply_buf_fini(&b);
}

void
history_add(const struct app_paths *p, const char *text, size_t len)
{
    struct ply_buf line = {0};
    if (len > ENTRY_MAX || (getenv("PARLEY_NOHISTORY") && *getenv("PARLEY_NOHISTORY")))
        return;
    escape(text, len, &line);
    write_file(p, O_APPEND, line.v, line.n);
    ply_buf_fini(&line);
}

/* SPDX-License-Identifier: MIT
 * Whole lines out of a descriptor that is polled, and what a line of input means. */
#ifndef APP_LINES_H
#define APP_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/array.h"
#include "engine/base/err.h"

struct lines {
    int fd;
    size_t max;         /* bytes of a line at most */
    struct ply_buf buf; /* read, not taken */
    size_t first;       /* where the next line begins */
    size_t scanned;     /* no newline before this */
    bool skipping;      /* inside a line that was too long */
    bool ended;         /* the input is at its end */
};

void lines_init(struct lines *l, int fd, size_t max);
void lines_fini(struct lines *l);
/* Read once; may block unless the descriptor is readable. */
void lines_read(struct lines *l);
/* The next whole line, without its newline, valid until the next call; a last line without one
 * counts when the input has ended. *too_long: there was a line over the limit in its place. */
bool lines_take(struct lines *l, char **line, size_t *len, bool *too_long);

enum line_kind { LINE_EMPTY, LINE_COMMAND, LINE_MESSAGE };

/* What a line says: out gets the command after its slash, or the message's bytes. With jsonl a
 * line that begins with { is JSON, and others know \n and \\. PLY_EINVAL says what is wrong with
 * a line; kind is LINE_MESSAGE then. */
int line_parse(const char *line, size_t len, bool jsonl, enum line_kind *kind, struct ply_buf *out,
               struct ply_err *err);

#endif

/* SPDX-License-Identifier: MIT
 * The log sink: set once before threads exist, read by all of them. */
#include "engine/base/log.h"

#include <stdarg.h>
#include <stdio.h>

static struct {
    ply_log_fn fn;
    void *user;
    enum ply_log_level max;
} sink;

void
ply_log_set(ply_log_fn fn, void *user, enum ply_log_level max)
{
    sink.fn = fn;
    sink.user = user;
    sink.max = max;
}

void
ply_log(enum ply_log_level level, const char *module, const char *fmt, ...)
{
    if (!sink.fn || level > sink.max)
        return;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    /* One event, one line. */
    for (char *p = line; *p; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    }
    sink.fn(sink.user, level, module, line);
}

/* SPDX-License-Identifier: MIT
 * Writes the trace of KV rows. */
#include "app/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/mem.h"
#include "app/paths.h"

struct trace {
    FILE *f;
    uint64_t n_requests;
};

int
trace_open(struct trace **out, const char *path, struct ply_err *err)
{
    *out = NULL;
    const int fd = app_file_create(path, O_TRUNC, err);
    if (fd < 0)
        return fd;
    FILE *f = fdopen(fd, "w");
    if (!f) {
        const int saved = errno;
        close(fd);
        return ply_fail(err, PLY_ECREATE, "cannot write '%s': %s", path, strerror(saved));
    }
    *out = app_xcalloc(1, sizeof(**out));
    (*out)->f = f;
    return PLY_OK;
}

void
trace_close(struct trace **t)
{
    if (!*t)
        return;
    fclose((*t)->f);
    free(*t);
    *t = NULL;
}

static void
row(void *user, const struct ply_seq *s, size_t pos, int32_t id, enum ply_source source)
{
    static const char *const names[] = {"live", "ram", "disk", "evaluated"};
    struct trace *t = user;
    fprintf(t->f, "{\"pos\":%zu,\"id\":%" PRId32 ",\"from\":\"%s\"}\n", pos, id, names[source]);
}

void
trace_attach(struct trace *t, struct ply_engine *e)
{
    ply_engine_trace(e, row, t);
}

void
trace_request(struct trace *t, size_t n_prompt)
{
    fprintf(t->f, "{\"request\":%" PRIu64 ",\"prompt\":%zu}\n", ++t->n_requests, n_prompt);
}

void
trace_flush(struct trace *t)
{
    fflush(t->f);
}

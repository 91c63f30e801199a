/* SPDX-License-Identifier: MIT
 * What the front ends have in common: speaking on stdout and stderr. */
#include "app/front.h"

#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/mem.h"
#include "app/safe.h"

static bool
write_all(int fd, const char *s, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, s, len);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            s += n;
            len -= (size_t)n;
        }
    }
    return true;
}

static void
make_safe(const char *text, size_t len, struct ply_buf *out)
{
    const bool ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    if (app_safe_append(out, text, len, false, ascii) != 0)
        abort();
}

bool
front_write(int fd, const char *text, size_t len)
{
    if (!isatty(fd))
        return write_all(fd, text, len);
    struct ply_buf safe = {0};
    make_safe(text, len, &safe);
    const bool ok = write_all(fd, safe.v, safe.n);
    ply_buf_fini(&safe);
    return ok;
}

void
front_say(const char *line)
{
    struct ply_buf safe = {0};
    app_buf_puts(&safe, "parley: ");
    make_safe(line, strlen(line), &safe);
    app_buf_puts(&safe, "\n");
    /* Where stderr cannot be written there is nobody left to tell. */
    if (!write_all(STDERR_FILENO, safe.v, safe.n))
        errno = 0;
    ply_buf_fini(&safe);
}

int
front_fail(const struct ply_err *err)
{
    front_say(err->msg);
    return app_exit_of(err->code);
}

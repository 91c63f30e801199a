/* SPDX-License-Identifier: MIT
 * Reading files, pipes and lists of ids. */
#include "app/input.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/mem.h"
#include "engine/base/num.h"

#define IDS_FILE_MAX ((size_t)64 << 20)

static int
too_large(const char *name, uint64_t size, size_t max, struct ply_err *err)
{
    return ply_fail(err, PLY_EINVAL, "%s is too large: %s%llu MiB, at most %zu MiB can be read",
                    name, size ? "" : "over ", (unsigned long long)(size ? size >> 20 : max >> 20),
                    max >> 20);
}

int
input_read_fd(int fd, const char *name, size_t max, struct ply_buf *out, struct ply_err *err)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        return ply_fail(err, PLY_EIO, "%s is a folder", name);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size > max)
        return too_large(name, (uint64_t)st.st_size, max, err);
    for (size_t total = 0;;) {
        char chunk[65536];
        const ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ply_fail(err, PLY_EIO, "cannot read %s: %s", name, strerror(errno));
        if (n == 0)
            return PLY_OK;
        total += (size_t)n;
        if (total > max)
            return too_large(name, 0, max, err);
        app_buf_append(out, chunk, (size_t)n);
    }
}

int
input_read_file(const char *path, size_t max, struct ply_buf *out, struct ply_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return ply_fail(err, errno == ENOENT ? PLY_ENOENT : PLY_EIO, "cannot read '%s': %s", path,
                        strerror(errno));
    struct ply_buf name = {0};
    app_buf_printf(&name, "'%s'", path);
    const int r = input_read_fd(fd, name.v, max, out, err);
    ply_buf_fini(&name);
    close(fd);
    return r;
}

static bool
is_gap(char c)
{
    return c == ',' || isspace((unsigned char)c);
}

int
input_ids(const char *text, size_t len, struct ply_ids *out, struct ply_err *err)
{
    for (size_t i = 0; i < len;) {
        if (is_gap(text[i])) {
            i++;
            continue;
        }
        const size_t first = i;
        int64_t id = 0;
        for (; i < len && text[i] >= '0' && text[i] <= '9' && id <= INT32_MAX; i++)
            id = id * 10 + (text[i] - '0');
        if (i == first || id > INT32_MAX || (i < len && !is_gap(text[i])))
            return ply_fail(err, PLY_EINVAL, "not a token id: '%.*s'",
                            (int)PLY_MIN(len - first, (size_t)24), text + first);
        const int32_t v = (int32_t)id;
        app_ids_append(out, &v, 1);
    }
    return PLY_OK;
}

int
input_id_lines(const char *path, struct ply_ids **lines, size_t *n, struct ply_err *err)
{
    struct ply_buf text = {0};
    int r = input_read_file(path, IDS_FILE_MAX, &text, err);
    *lines = NULL;
    *n = 0;
    for (size_t i = 0; r == 0 && i < text.n;) {
        const char *nl = memchr(text.v + i, '\n', text.n - i);
        const size_t end = nl ? (size_t)(nl - text.v) : text.n;
        *lines = app_xrealloc(*lines, *n + 1, sizeof(**lines));
        (*lines)[*n] = (struct ply_ids){0};
        r = input_ids(text.v + i, end - i, &(*lines)[(*n)++], err);
        i = end + 1;
    }
    ply_buf_fini(&text);
    return r;
}

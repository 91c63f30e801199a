/* SPDX-License-Identifier: MIT
 * The log file. Lines come from any thread, also when memory has run out; one write each keeps
 * them whole. */
#include "app/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/mem.h"
#include "engine/base/log.h"
#include "engine/base/num.h"

#define LOG_MAX_BYTES (1 << 20) /* a larger file begins anew */

static struct {
    pthread_mutex_t lock;
    char *dir, *path; /* NULL: closed */
    int fd;
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static void
open_file(void)
{
    struct stat st;
    if (sink.fd >= 0 || !sink.path || app_dir_make(sink.dir, NULL) != 0)
        return;
    const bool large = stat(sink.path, &st) == 0 && st.st_size > LOG_MAX_BYTES;
    sink.fd = app_file_create(sink.path, O_APPEND | (large ? O_TRUNC : 0), NULL);
}

static void
write_line(void *user, enum ply_log_level level, const char *module, const char *text)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    char line[1200], when[32];
    struct tm tm;
    const time_t now = time(NULL);
    gmtime_r(&now, &tm);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
    const int n = snprintf(line, sizeof(line), "%s %s %s: %s\n", when, names[level], module, text);
    if (n < 0)
        return;
    pthread_mutex_lock(&sink.lock);
    open_file();
    /* A log that cannot be written has nowhere to say so. */
    if (sink.fd >= 0 && write(sink.fd, line, PLY_MIN((size_t)n, sizeof(line) - 1)) < 0) {
        close(sink.fd);
        sink.fd = -1;
    }
    pthread_mutex_unlock(&sink.lock);
}

void
log_open(const struct app_paths *p)
{
    const char *want = getenv("PARLEY_LOG");
    const bool debug = want && strcmp(want, "debug") == 0;
    pthread_mutex_lock(&sink.lock);
    free(sink.dir);
    free(sink.path);
    sink.dir = app_xstrdup(p->state_dir);
    sink.path = app_xstrdup(p->log);
    pthread_mutex_unlock(&sink.lock);
    ply_log_set(write_line, NULL, debug ? PLY_LOG_DEBUG : PLY_LOG_WARN);
}

void
log_close(void)
{
    ply_log_set(NULL, NULL, PLY_LOG_ERROR);
    pthread_mutex_lock(&sink.lock);
    free(sink.dir);
    free(sink.path);
    sink.dir = sink.path = NULL;
    if (sink.fd >= 0)
        close(sink.fd);
    sink.fd = -1;
    pthread_mutex_unlock(&sink.lock);
}

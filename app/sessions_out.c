/* SPDX-License-Identifier: MIT */
#include "app/sessions_out.h"

#include <langinfo.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/safe.h"

void
sessions_out_init(struct sessions_out *o, FILE *out, FILE *errs)
{
    int fd = fileno(out);
    *o = (struct sessions_out){.f = out, .errs = errs, .tty = fd >= 0 && isatty(fd)};
    o->ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

/* A pipe gets the bytes; what must stay on one line there too loses its newlines and tabs. */
static void
put_piped(struct sessions_out *o, const char *text, size_t len, bool flat)
{
    for (size_t i = 0; i < len; i++) {
        bool breaks = text[i] == '\n' || text[i] == '\t' || text[i] == '\r' || text[i] == '\0';
        fputc(flat && breaks ? ' ' : text[i], o->f);
    }
}

void
sessions_put(struct sessions_out *o, const char *text, size_t len, bool flat)
{
    if (!o->tty) {
        put_piped(o, text, len, flat);
        return;
    }
    struct ply_buf safe = {0};
    if (app_safe_append(&safe, text, len, flat, o->ascii) == 0 && safe.n)
        fwrite(safe.v, 1, safe.n, o->f);
    ply_buf_fini(&safe);
}

void
sessions_put_cols(struct sessions_out *o, const char *text, int cols)
{
    struct ply_buf safe = {0};
    if (app_safe_append(&safe, text, strlen(text), true, o->tty && o->ascii) != 0 || !safe.n) {
        fprintf(o->f, "%*s", cols, "");
        ply_buf_fini(&safe);
        return;
    }
    int taken = app_safe_cols(safe.v, safe.n);
    size_t n = safe.n;
    if (cols && taken > cols) {
        n = app_safe_fit(safe.v, safe.n, cols);
        taken = app_safe_cols(safe.v, n);
    }
    fprintf(o->f, "%.*s%*s", (int)n, safe.v, cols > taken ? cols - taken : 0, "");
    ply_buf_fini(&safe);
}

int
sessions_put_json(struct sessions_out *o, json_t *v, size_t n, struct ply_err *err)
{
    const json_t *a = json_is_object(v) ? json_object_get(v, "messages") : v;
    int rc = PLY_OK;
    if (!v || json_array_size(a) != n ||
        json_dumpf(v, o->f, JSON_COMPACT | JSON_REAL_PRECISION(9)) != 0)
        rc = ply_fail(err, PLY_ENOMEM, "no memory for the answer, or nowhere to write it to");
    else
        fputc('\n', o->f);
    json_decref(v);
    return rc;
}

void
sessions_tell(struct sessions_out *o, const char *line)
{
    struct ply_buf safe = {0};
    if (app_safe_append(&safe, line, strlen(line), true, o->ascii) == 0 && safe.n)
        fprintf(o->errs, "parley: %s\n", safe.v);
    ply_buf_fini(&safe);
}

void
sessions_tell_skipped(struct sessions_out *o, size_t n)
{
    char line[80];
    snprintf(line, sizeof(line), "%zu damaged message%s left out", n, n == 1 ? " was" : "s were");
    if (n)
        sessions_tell(o, line);
}

int64_t
sessions_now_ms(void)
{
    return (int64_t)time(NULL) * 1000;
}

void
sessions_time_utc(int64_t ms, char *out, size_t size)
{
    time_t t = (time_t)(ms / 1000);
    struct tm tm;
    if (!gmtime_r(&t, &tm) || strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(out, size, "?");
}

void
sessions_time_local(int64_t ms, int64_t now_ms, char *out, size_t size)
{
    time_t t = (time_t)(ms / 1000), now = (time_t)(now_ms / 1000);
    struct tm tm, today, yesterday;
    if (!localtime_r(&t, &tm) || !localtime_r(&now, &today)) {
        snprintf(out, size, "?");
        return;
    }
    yesterday = today;
    yesterday.tm_mday--;
    yesterday.tm_hour = 12; /* noon: no change of the clock is near */
    yesterday.tm_isdst = -1;
    mktime(&yesterday);
    bool this_year = tm.tm_year == today.tm_year;
    size_t n;
    if (this_year && tm.tm_yday == today.tm_yday)
        n = strftime(out, size, "today %H:%M", &tm);
    else if (tm.tm_year == yesterday.tm_year && tm.tm_yday == yesterday.tm_yday)
        n = strftime(out, size, "yesterday %H:%M", &tm);
    else if (this_year)
        n = strftime(out, size, "%e %b %H:%M", &tm);
    else
        n = strftime(out, size, "%e %b %Y", &tm);
    if (n == 0)
        snprintf(out, size, "?");
}

int
sessions_join(const struct app_opts *o, size_t first, struct ply_buf *out, struct ply_err *err)
{
    int rc = ply_buf_append(out, "", 0);
    for (size_t i = first; i < o->n_args && !rc; i++) {
        if (i > first)
            rc = ply_buf_append(out, " ", 1);
        if (!rc)
            rc = ply_buf_append(out, o->args[i], strlen(o->args[i]));
    }
    return rc ? ply_fail(err, rc, "no memory for the command line") : PLY_OK;
}

int
sessions_find_joined(struct store *st, const struct app_opts *o, int64_t *id, struct ply_err *err)
{
    struct ply_buf key = {0};
    int rc = sessions_join(o, 0, &key, err);
    if (!rc)
        rc = store_session_find(st, key.v, STORE_FIND_EXACT, id, err);
    ply_buf_fini(&key);
    return rc;
}

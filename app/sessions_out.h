/* SPDX-License-Identifier: MIT
 * How the verbs about sessions speak: to a terminal or a pipe, as text or JSON. */
#ifndef APP_SESSIONS_OUT_H
#define APP_SESSIONS_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "app/opts.h"
#include "app/store.h"

struct sessions_out {
    FILE *f, *errs;
    bool tty;      /* f is a terminal: columns, and nothing it would obey */
    bool ascii;    /* it shows no UTF-8 */
    bool no_match; /* a search that found nothing */
};
void sessions_out_init(struct sessions_out *o, FILE *out, FILE *errs);

/* Text of a person or a model: to a terminal safe, to a pipe as it is; flat: on one line and
 * without tabs in either. */
void sessions_put(struct sessions_out *o, const char *text, size_t len, bool flat);
/* Flat, cut or filled up to cols columns; 0: as long as it is. */
void sessions_put_cols(struct sessions_out *o, const char *text, int cols);
/* Takes v over. NULL, or an array that misses some of its n members: PLY_ENOMEM. */
int sessions_put_json(struct sessions_out *o, json_t *v, size_t n, struct ply_err *err);
void sessions_tell(struct sessions_out *o, const char *line); /* "parley: ..." to errs */
void sessions_tell_skipped(struct sessions_out *o, size_t n);

/* "2026-11-30T14:57:01Z"; "today 09:41", "yesterday 23:10", "12 Nov 09:41", "12 Nov 2025". */
int64_t sessions_now_ms(void);
void sessions_time_utc(int64_t ms, char *out, size_t size);
void sessions_time_local(int64_t ms, int64_t now_ms, char *out, size_t size);

/* The words of the command line from args[first] on, with blanks between; never NULL. */
int sessions_join(const struct app_opts *o, size_t first, struct ply_buf *out,
                  struct ply_err *err);
/* The session that all words together name. */
int sessions_find_joined(struct store *st, const struct app_opts *o, int64_t *id,
                         struct ply_err *err);

#endif

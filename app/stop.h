/* SPDX-License-Identifier: MIT
 * Stop strings over a stream of bytes, with hold-back: bytes that may yet turn out to be the
 * beginning of a stop string are not released, so that none ever shows on the screen.
 *
 * Bytes are looked at one by one, so the outcome does not depend on how the text was cut into
 * pieces: the first byte that completes any stop string ends the reply, and of several that end
 * there the longest counts. */
#ifndef APP_STOP_H
#define APP_STOP_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/array.h"

struct stop_pattern;

struct stop {
    struct stop_pattern *patterns;
    size_t n_patterns;
    bool hold_newlines;  /* a run of newlines is held until something follows it */
    struct ply_buf held; /* seen, not released */
    size_t n_released;   /* bytes of the reply released so far */
    bool matched;
};

void stop_init(struct stop *s, bool hold_newlines);
/* An empty string is ignored. at_line_start: the reply begins as if after a newline, so that
 * "\n###" also matches "###" as its first characters. */
void stop_add(struct stop *s, const char *string, bool at_line_start);
void stop_fini(struct stop *s);

/* Append to out what may be shown. True when a stop string is complete: *match_at is the offset
 * in the reply at which it begins, everything before it has been released (but for newlines that
 * are held), nothing after it. */
bool stop_push(struct stop *s, const char *bytes, size_t n, struct ply_buf *out, size_t *match_at);
/* The reply ends without a match: release what was held, but for a closing run of newlines when
 * those are held. */
void stop_finish(struct stop *s, struct ply_buf *out);

#endif

/* SPDX-License-Identifier: MIT
 * Stop strings by one Knuth-Morris-Pratt automaton each. An automaton's state is the length of
 * the longest prefix of its string that ends at the current byte; the longest over all strings
 * is what has to be held back. */
#include "app/stop.h"

#include <stdlib.h>
#include <string.h>

#include "app/mem.h"
#include "engine/base/num.h"

struct stop_pattern {
    char *string;
    size_t len;
    size_t *fail; /* [len + 1] the longest proper border of each prefix */
    size_t state;
};

void
stop_init(struct stop *s, bool hold_newlines)
{
    *s = (struct stop){.hold_newlines = hold_newlines};
}

static void
pattern_step(struct stop_pattern *p, char c)
{
    while (p->state == p->len || (p->state > 0 && p->string[p->state] != c))
        p->state = p->fail[p->state];
    if (p->string[p->state] == c)
        p->state++;
}

void
stop_add(struct stop *s, const char *string, bool at_line_start)
{
    struct stop_pattern p = {.len = strlen(string)};
    if (p.len == 0)
        return;
    p.string = app_xstrdup(string);
    p.fail = app_xcalloc(p.len + 1, sizeof(*p.fail));
    for (size_t i = 1, k = 0; i < p.len; i++) {
        while (k > 0 && string[k] != string[i])
            k = p.fail[k];
        if (string[k] == string[i])
            k++;
        p.fail[i + 1] = k;
    }
    if (at_line_start)
        pattern_step(&p, '\n');
    s->patterns = app_xrealloc(s->patterns, s->n_patterns + 1, sizeof(*s->patterns));
    s->patterns[s->n_patterns++] = p;
}

void
stop_fini(struct stop *s)
{
    for (size_t i = 0; i < s->n_patterns; i++) {
        free(s->patterns[i].string);
        free(s->patterns[i].fail);
    }
    free(s->patterns);
    ply_buf_fini(&s->held);
    *s = (struct stop){0};
}

/* Release all but the last n_keep bytes of what is held. */
static void
release(struct stop *s, size_t n_keep, struct ply_buf *out)
{
    const size_t n = s->held.n - n_keep;
    if (n == 0)
        return;
    app_buf_append(out, s->held.v, n);
    memmove(s->held.v, s->held.v + n, n_keep);
    s->held.n = n_keep;
    s->n_released += n;
}

/* The run of newlines that ends n_keep bytes before the end of what is held. */
static size_t
newlines_before(const struct stop *s, size_t n_keep)
{
    size_t n = 0;
    while (s->hold_newlines && n_keep + n < s->held.n &&
           s->held.v[s->held.n - n_keep - n - 1] == '\n')
        n++;
    return n;
}

bool
stop_push(struct stop *s, const char *bytes, size_t n, struct ply_buf *out, size_t *match_at)
{
    for (size_t i = 0; i < n && !s->matched; i++) {
        size_t longest = 0, longest_match = 0;
        app_buf_append(&s->held, &bytes[i], 1);
        for (size_t k = 0; k < s->n_patterns; k++) {
            struct stop_pattern *p = &s->patterns[k];
            pattern_step(p, bytes[i]);
            if (p->state > longest)
                longest = p->state;
            if (p->state == p->len && p->len > longest_match)
                longest_match = p->len;
        }
        s->matched = longest_match > 0;
        /* A match that began with the newline before the reply is longer than the reply. */
        size_t keep = PLY_MIN(s->matched ? longest_match : longest, s->held.n);
        *match_at = s->n_released + s->held.n - keep;
        release(s, keep + newlines_before(s, keep), out);
    }
    return s->matched;
}

void
stop_finish(struct stop *s, struct ply_buf *out)
{
    release(s, newlines_before(s, 0), out);
}

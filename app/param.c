/* SPDX-License-Identifier: MIT
 * Named parameters. */
#include "app/param.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/gen.h"
#include "app/mem.h"
#include "engine/base/num.h"

enum param_type { PARAM_FLOAT, PARAM_INT, PARAM_SEED, PARAM_LIMIT };

struct param {
    const char *name, *synonym, *help;
    enum param_type type;
    size_t offset; /* in struct param_values */
};

#define SAMPLING(field) \
    (offsetof(struct param_values, sampling) + offsetof(struct ply_sampling, field))

static const struct param params[] = {
    {"temp", "temperature", "0: the likeliest token, more: more variety", PARAM_FLOAT,
     SAMPLING(temp)},
    {"top_k", "top-k", "draw from the k likeliest; 0: from all", PARAM_INT, SAMPLING(top_k)},
    {"top_p", "top-p", "draw from the likeliest that make up p; 1: from all", PARAM_FLOAT,
     SAMPLING(top_p)},
    {"min_p", "min-p", "nothing below p times the likeliest; 0: off", PARAM_FLOAT, SAMPLING(min_p)},
    {"repeat_penalty", "repeat-penalty", "1: off", PARAM_FLOAT, SAMPLING(repeat_penalty)},
    {"presence_penalty", "presence-penalty", "0: off", PARAM_FLOAT, SAMPLING(presence_penalty)},
    {"frequency_penalty", "frequency-penalty", "0: off", PARAM_FLOAT, SAMPLING(frequency_penalty)},
    {"penalty_window", "repeat-last-n", "tokens that penalties look back upon", PARAM_INT,
     SAMPLING(penalty_window)},
    {"seed", "seed", "the same seed draws the same numbers", PARAM_SEED, SAMPLING(seed)},
    {"n", "max_tokens", "tokens of a reply at most; -1: no limit", PARAM_LIMIT,
     offsetof(struct param_values, n_max)},
};

static const struct param *
find(const char *name, size_t len)
{
    for (size_t i = 0; i < PLY_COUNT(params); i++) {
        const struct param *p = &params[i];
        if ((strlen(p->name) == len && strncmp(p->name, name, len) == 0) ||
            (strlen(p->synonym) == len && strncmp(p->synonym, name, len) == 0))
            return p;
    }
    return NULL;
}

/* The whole of text is a number of the parameter's type. */
static bool
assign(const struct param *p, struct param_values *v, const char *text)
{
    void *field = (char *)v + p->offset;
    char *end;
    errno = 0;
    if (p->type == PARAM_FLOAT) {
        /* Tiny values are legal though they underflow: the range is checked afterwards. */
        const float x = strtof(text, &end);
        memcpy(field, &x, sizeof(x));
        errno = 0;
    } else if (p->type == PARAM_SEED) {
        const unsigned long long x = strtoull(text, &end, 10);
        memcpy(field, &(uint64_t){x}, sizeof(uint64_t));
        if (*text == '-')
            return false;
    } else {
        const long x = strtol(text, &end, 10);
        if (x < -1 || x > INT_MAX)
            return false;
        if (p->type == PARAM_INT)
            memcpy(field, &(int){(int)x}, sizeof(int));
        else
            memcpy(field, &(size_t){x < 0 ? GEN_NO_LIMIT : (size_t)x}, sizeof(size_t));
    }
    return end != text && !*end && errno == 0;
}

int
param_set(struct param_values *v, const char *assignment, struct ply_err *err)
{
    const size_t len = strcspn(assignment, " =\t");
    const struct param *p = find(assignment, len);
    struct param_values next = *v;
    if (!p)
        return ply_fail(err, PLY_EINVAL, "no parameter '%.*s'; /set lists them",
                        (int)PLY_MIN(len, (size_t)40), assignment);
    const char *value = assignment + len + strspn(assignment + len, " =\t");
    if (!assign(p, &next, value))
        return ply_fail(err, PLY_EINVAL, "%s: '%.40s' is not a value (%s)", p->name, value,
                        p->help);
    const int r = ply_sampling_check(&next.sampling, err);
    if (r == 0)
        *v = next;
    return r;
}

static void
value_text(const struct param *p, const struct param_values *v, char out[32])
{
    const void *field = (const char *)v + p->offset;
    switch (p->type) {
    case PARAM_FLOAT: snprintf(out, 32, "%g", (double)*(const float *)field); break;
    case PARAM_INT: snprintf(out, 32, "%d", *(const int *)field); break;
    case PARAM_SEED: snprintf(out, 32, "%" PRIu64, *(const uint64_t *)field); break;
    case PARAM_LIMIT: snprintf(out, 32, "%zd", (ssize_t) * (const size_t *)field); break;
    }
}

void
param_text(const struct param_values *v, const char *assignment, struct ply_buf *out)
{
    const struct param *one = find(assignment, strcspn(assignment, " =\t"));
    char value[32];
    if (one) {
        value_text(one, v, value);
        app_buf_printf(out, "%s is %s (%s)", one->name, value, one->help);
        return;
    }
    for (size_t i = 0; i < PLY_COUNT(params); i++) {
        value_text(&params[i], v, value);
        app_buf_printf(out, "%-18s %-10s %s\n", params[i].name, value, params[i].help);
    }
}

json_t *
param_json(const struct param_values *v)
{
    json_t *o = json_object();
    for (size_t i = 0; i < PLY_COUNT(params); i++) {
        const struct param *p = &params[i];
        const void *field = (const char *)v + p->offset;
        json_t *x;
        if (p->type == PARAM_FLOAT)
            x = json_real(round((double)*(const float *)field * 1e6) / 1e6);
        else if (p->type == PARAM_INT)
            x = json_integer(*(const int *)field);
        else if (p->type == PARAM_SEED)
            x = json_integer((json_int_t) * (const uint64_t *)field);
        else
            x = json_integer(
                *(const size_t *)field == GEN_NO_LIMIT ? -1 : (json_int_t) * (const size_t *)field);
        json_object_set_new(o, p->name, x);
    }
    return o;
}

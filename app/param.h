/* SPDX-License-Identifier: MIT
 * What /set sets: a table of named parameters, their fields, and their text. */
#ifndef APP_PARAM_H
#define APP_PARAM_H

#include <jansson.h>
#include <stddef.h>

#include "engine/ply.h"

struct param_values {
    struct ply_sampling sampling;
    size_t n_max; /* GEN_NO_LIMIT */
};

/* "temp 0.7", "top_k=40": PLY_EINVAL names the parameter and its range, and changes nothing. */
int param_set(struct param_values *v, const char *assignment, struct ply_err *err);
/* A line a parameter; with an assignment, the line of the one it names. */
void param_text(const struct param_values *v, const char *assignment, struct ply_buf *out);
json_t *param_json(const struct param_values *v);

#endif

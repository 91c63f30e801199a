/* SPDX-License-Identifier: MIT
 * Slash commands: one const table for the screen, --plain and --jsonl; help and completion come
 * from it too. A command changes the program and says what it did, in text for people and in
 * fields for programs; it writes nothing itself. */
#ifndef APP_CMD_H
#define APP_CMD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "app/app.h"

struct cmd_result {
    const char *name;    /* the command's own name, whatever synonym was used; NULL: unknown */
    struct ply_buf text; /* "" when there is nothing to say */
    json_t *fields;      /* an object */
    bool long_text;      /* a list or a page, not a line */
};

enum cmd_outcome {
    CMD_DONE,
    CMD_TURN, /* a turn was started: its end is the command's answer */
};

/* line: what was typed after the slash. Returns an enum cmd_outcome, or a negative status with
 * err. Commands that load a model begin to; app_wait_model() waits. In either case
 * cmd_result_fini(). */
int cmd_run(struct app *a, const char *line, struct cmd_result *r, struct ply_err *err);
void cmd_result_fini(struct cmd_result *r);

/* The command acts at once, whatever is running. */
bool cmd_is_stop(const char *line);
/* The help, one command a line. */
void cmd_help(struct ply_buf *out);
/* The i-th command's name that begins with prefix, for completion; NULL: no more. */
const char *cmd_complete(const char *prefix, size_t i);

#endif

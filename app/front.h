/* SPDX-License-Identifier: MIT
 * What main() can turn into: four front ends of a chat, and the verbs that only compute. Each
 * returns an enum app_exit; faults go to stderr as one line. */
#ifndef APP_FRONT_H
#define APP_FRONT_H

#include <stdbool.h>
#include <stddef.h>

#include "app/opts.h"

int front_screen(const struct app_opts *o);
int front_plain(const struct app_opts *o);
int front_jsonl(const struct app_opts *o);
int front_oneshot(const struct app_opts *o);

int verb_tokenize(const struct app_opts *o);
int verb_detokenize(const struct app_opts *o);
int verb_info(const struct app_opts *o);
int verb_doctor(const struct app_opts *o);
int verb_score(const struct app_opts *o);
int verb_bench(const struct app_opts *o);

/* "parley: ..." on stderr, without control characters. */
void front_say(const char *line);
/* The same for an error; returns its exit code. */
int front_fail(const struct ply_err *err);
/* Text of the model or of a person: to a terminal without control characters, else as it is.
 * False when it could not be written (errno). */
bool front_write(int fd, const char *text, size_t len);

#endif

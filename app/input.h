/* SPDX-License-Identifier: MIT
 * Reading what the user hands in: files, pipes and lists of ids, within limits that are told
 * before memory is spent. */
#ifndef APP_INPUT_H
#define APP_INPUT_H

#include <stddef.h>

#include "engine/base/array.h"
#include "engine/base/err.h"

/* Append all of a file, at most max bytes; a larger one is PLY_EINVAL with both sizes, before
 * anything is read where the size is known. name is for messages. */
int input_read_fd(int fd, const char *name, size_t max, struct ply_buf *out, struct ply_err *err);
int input_read_file(const char *path, size_t max, struct ply_buf *out, struct ply_err *err);

/* Append the ids of text: decimal numbers apart by white space or commas. PLY_EINVAL names what
 * is not one. */
int input_ids(const char *text, size_t len, struct ply_ids *out, struct ply_err *err);
/* One list a line; a last line without a newline counts. *lines is the caller's, also empty. */
int input_id_lines(const char *path, struct ply_ids **lines, size_t *n, struct ply_err *err);

#endif

/* SPDX-License-Identifier: MIT
 * Growing arrays: token ids and bytes. Zero-initialised means empty; fini() frees and
 * leaves an empty array. Functions that grow return 0 or PLY_ENOMEM, and on failure the
 * array is as it was. A buf's bytes are followed by a NUL that n does not count. */
#ifndef PLY_BASE_ARRAY_H
#define PLY_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

struct ply_ids {
    int32_t *v;
    size_t n, cap;
};

struct ply_buf {
    char *v;
    size_t n, cap;
};

int ply_ids_reserve(struct ply_ids *a, size_t n_more);
int ply_ids_push(struct ply_ids *a, int32_t id);
int ply_ids_append(struct ply_ids *a, const int32_t *ids, size_t n);
void ply_ids_fini(struct ply_ids *a);

int ply_buf_reserve(struct ply_buf *b, size_t n_more);
int ply_buf_append(struct ply_buf *b, const void *bytes, size_t n);
int ply_buf_printf(struct ply_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ply_buf_fini(struct ply_buf *b);

#endif

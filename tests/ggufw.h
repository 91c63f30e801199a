/* SPDX-License-Identifier: MIT
 * Writing GGUF files, for the tiny models' generator and for tests that need a file, sound or
 * not. Everything is kept in memory until the end; running out of it aborts. Nothing is checked:
 * whoever asks for nonsense gets it written. */
#ifndef TESTS_GGUFW_H
#define TESTS_GGUFW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/array.h"
#include "engine/gguf.h"

struct ggufw {
    uint32_t version; /* 3 */
    uint64_t align;   /* 32; write general.alignment too when it is changed */
    uint64_t n_kv, n_tensors;
    struct ply_buf kv, info, data;
};

void ggufw_init(struct ggufw *w);
void ggufw_fini(struct ggufw *w);

/* Little-endian numbers and strings at the end of a buffer. */
void ggufw_put(struct ply_buf *b, const void *bytes, size_t n);
void ggufw_put_int(struct ply_buf *b, uint64_t v, unsigned bytes);
void ggufw_put_str(struct ply_buf *b, const char *s, size_t n);

/* One metadata entry. */
void ggufw_u32(struct ggufw *w, const char *key, uint32_t v);
void ggufw_int(struct ggufw *w, const char *key, enum ply_gguf_type type, uint64_t v);
void ggufw_f32(struct ggufw *w, const char *key, float v);
void ggufw_bool(struct ggufw *w, const char *key, bool v);
void ggufw_str(struct ggufw *w, const char *key, const char *v);
/* The key and the type; the value's bytes are the caller's to append to w->kv. */
void ggufw_key(struct ggufw *w, const char *key, uint32_t type);
/* The same for an array, with its element type and count. */
void ggufw_arr(struct ggufw *w, const char *key, uint32_t type, uint64_t n);

/* One tensor; data is padded to the alignment. data may be NULL: zeros. */
void ggufw_tensor(struct ggufw *w, const char *name, uint32_t type, unsigned n_dims,
                  const uint64_t *ne, const void *data, size_t n_bytes);

/* The whole file's bytes at the end of out. */
void ggufw_finish(const struct ggufw *w, struct ply_buf *out);
/* 0, or -1 with errno. */
int ggufw_save(const struct ply_buf *bytes, const char *path);

#endif

/* SPDX-License-Identifier: MIT
 * A GGUF file (v2, v3), mapped read-only: metadata and a tensor table whose every offset,
 * count and size has been checked against the file. Format: the GGUF specification in ggml's
 * docs/gguf.md. Strings are (pointer, length) into the mapping and may hold any bytes. */
#ifndef PLY_GGUF_H
#define PLY_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

struct ply_gguf;

struct ply_str {
    const char *s;
    size_t n;
};

enum ply_gguf_type {
    PLY_GGUF_U8, PLY_GGUF_I8, PLY_GGUF_U16, PLY_GGUF_I16, PLY_GGUF_U32, PLY_GGUF_I32, PLY_GGUF_F32,
    PLY_GGUF_BOOL, PLY_GGUF_STR, PLY_GGUF_ARR, PLY_GGUF_U64, PLY_GGUF_I64, PLY_GGUF_F64,
};

struct ply_gguf_tensor {
    struct ply_str name;
    uint32_t type;        /* enum ply_type; known and sized when the file was accepted */
    uint32_t n_dims;      /* 1..4 */
    uint64_t ne[4];       /* ne[0] is the fastest dimension; 1 beyond n_dims */
    const uint8_t *data;  /* n_bytes in the mapping */
    uint64_t n_bytes;
};

/* An array value: strings are indexed lazily by the arrays' own offset table. */
struct ply_gguf_arr {
    enum ply_gguf_type type; /* of the elements; never ARR */
    uint64_t n;
    const uint8_t *data;     /* elements of fixed size, unaligned */
    const struct ply_str *str; /* [n] when type is STR, else NULL */
};

/* PLY_ENOENT, PLY_EIO, PLY_EFORMAT ("... at byte N"), PLY_EUNSUPPORTED (version, split file). */
int ply_gguf_open(struct ply_gguf **out, const char *path, struct ply_err *err);
/* The same over n bytes in memory, which must outlive it: for tests. name stands for the path. */
int ply_gguf_open_bytes(struct ply_gguf **out, const char *name, const void *bytes, size_t n,
                        struct ply_err *err);
void ply_gguf_close(struct ply_gguf **g);

const char *ply_gguf_path(const struct ply_gguf *g);
/* The path without its folders, for messages. */
const char *ply_gguf_name(const struct ply_gguf *g);
uint64_t ply_gguf_file_bytes(const struct ply_gguf *g);
/* The whole mapping, for fingerprinting. */
const uint8_t *ply_gguf_map(const struct ply_gguf *g);
uint64_t ply_gguf_n_tensors(const struct ply_gguf *g);
const struct ply_gguf_tensor *ply_gguf_tensor_at(const struct ply_gguf *g, uint64_t i);
/* NULL when there is none of that name. */
const struct ply_gguf_tensor *ply_gguf_tensor(const struct ply_gguf *g, const char *name);

bool ply_gguf_has(const struct ply_gguf *g, const char *key);
/* Each: 1 found, 0 absent (*out untouched), PLY_EFORMAT when the type or value cannot be
 * what is asked for. Integers of any width convert if the value fits; f32 from f64 too. */
int ply_gguf_u64(const struct ply_gguf *g, const char *key, uint64_t *out, struct ply_err *err);
int ply_gguf_f32(const struct ply_gguf *g, const char *key, float *out, struct ply_err *err);
int ply_gguf_bool(const struct ply_gguf *g, const char *key, bool *out, struct ply_err *err);
int ply_gguf_str(const struct ply_gguf *g, const char *key, struct ply_str *out,
                 struct ply_err *err);
int ply_gguf_arr(const struct ply_gguf *g, const char *key, struct ply_gguf_arr *out,
                 struct ply_err *err);

#endif

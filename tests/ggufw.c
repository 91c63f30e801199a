/* SPDX-License-Identifier: MIT
 * The GGUF writer: three buffers (metadata, tensor table, data) that are joined at the end. */
#include "tests/ggufw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
must(int rc)
{
    if (rc != 0)
        abort();
}

void
ggufw_init(struct ggufw *w)
{
    *w = (struct ggufw){.version = 3, .align = 32};
}

void
ggufw_fini(struct ggufw *w)
{
    ply_buf_fini(&w->kv);
    ply_buf_fini(&w->info);
    ply_buf_fini(&w->data);
}

void
ggufw_put(struct ply_buf *b, const void *bytes, size_t n)
{
    must(ply_buf_append(b, bytes, n));
}

void
ggufw_put_int(struct ply_buf *b, uint64_t v, unsigned bytes)
{
    uint8_t le[8];
    for (unsigned i = 0; i < 8; i++)
        le[i] = (uint8_t)(v >> (8 * i));
    ggufw_put(b, le, bytes);
}

void
ggufw_put_str(struct ply_buf *b, const char *s, size_t n)
{
    ggufw_put_int(b, n, 8);
    ggufw_put(b, s, n);
}

void
ggufw_key(struct ggufw *w, const char *key, uint32_t type)
{
    ggufw_put_str(&w->kv, key, strlen(key));
    ggufw_put_int(&w->kv, type, 4);
    w->n_kv++;
}

void
ggufw_arr(struct ggufw *w, const char *key, uint32_t type, uint64_t n)
{
    ggufw_key(w, key, PLY_GGUF_ARR);
    ggufw_put_int(&w->kv, type, 4);
    ggufw_put_int(&w->kv, n, 8);
}

void
ggufw_int(struct ggufw *w, const char *key, enum ply_gguf_type type, uint64_t v)
{
    static const unsigned bytes[] = {
        [PLY_GGUF_U8] = 1,   [PLY_GGUF_I8] = 1,  [PLY_GGUF_U16] = 2,
        [PLY_GGUF_I16] = 2,  [PLY_GGUF_U32] = 4, [PLY_GGUF_I32] = 4,
        [PLY_GGUF_BOOL] = 1, [PLY_GGUF_U64] = 8, [PLY_GGUF_I64] = 8,
    };
    ggufw_key(w, key, type);
    ggufw_put_int(&w->kv, v, bytes[type]);
}

void
ggufw_u32(struct ggufw *w, const char *key, uint32_t v)
{
    ggufw_int(w, key, PLY_GGUF_U32, v);
}

void
ggufw_f32(struct ggufw *w, const char *key, float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof(u));
    ggufw_key(w, key, PLY_GGUF_F32);
    ggufw_put_int(&w->kv, u, 4);
}

void
ggufw_bool(struct ggufw *w, const char *key, bool v)
{
    ggufw_int(w, key, PLY_GGUF_BOOL, v);
}

void
ggufw_str(struct ggufw *w, const char *key, const char *v)
{
    ggufw_key(w, key, PLY_GGUF_STR);
    ggufw_put_str(&w->kv, v, strlen(v));
}

static void
pad(struct ply_buf *b, uint64_t align)
{
    while (b->n % align != 0)
        ggufw_put(b, "", 1);
}

void
ggufw_tensor(struct ggufw *w, const char *name, uint32_t type, unsigned n_dims, const uint64_t *ne,
             const void *data, size_t n_bytes)
{
    ggufw_put_str(&w->info, name, strlen(name));
    ggufw_put_int(&w->info, n_dims, 4);
    for (unsigned d = 0; d < n_dims; d++)
        ggufw_put_int(&w->info, ne[d], 8);
    ggufw_put_int(&w->info, type, 4);
    ggufw_put_int(&w->info, w->data.n, 8);
    w->n_tensors++;
    if (data) {
        ggufw_put(&w->data, data, n_bytes);
    } else {
        must(ply_buf_reserve(&w->data, n_bytes));
        memset(w->data.v + w->data.n, 0, n_bytes);
        w->data.n += n_bytes;
    }
    pad(&w->data, w->align);
}

void
ggufw_finish(const struct ggufw *w, struct ply_buf *out)
{
    ggufw_put(out, "GGUF", 4);
    ggufw_put_int(out, w->version, 4);
    ggufw_put_int(out, w->n_tensors, 8);
    ggufw_put_int(out, w->n_kv, 8);
    ggufw_put(out, w->kv.v, w->kv.n);
    ggufw_put(out, w->info.v, w->info.n);
    if (w->data.n > 0) {
        pad(out, w->align);
        ggufw_put(out, w->data.v, w->data.n);
    }
}

int
ggufw_save(const struct ply_buf *bytes, const char *path)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return -1;
    const size_t n = fwrite(bytes->v, 1, bytes->n, f);
    const int closed = fclose(f);
    return n == bytes->n && closed == 0 ? 0 : -1;
}

/* SPDX-License-Identifier: MIT
 * The GGUF reader. One pass over the file's head with the bounds-checked cursor fills two
 * tables, metadata and tensors; values stay in the mapping. Layout of a file, little-endian:
 *
 *   "GGUF" u32 version  u64 n_tensors  u64 n_kv
 *   n_kv     x  str key  u32 type  value          str: u64 length, bytes
 *   n_tensors x str name u32 n_dims u64 ne[n_dims] u32 type u64 offset
 *   padding to general.alignment (32 by default), then the data that offsets refer to
 *
 * A file is hostile until it has passed: no count sizes an allocation before the bytes it
 * promises have been seen, nothing recurses, and lookups go through sorted tables, so neither
 * many keys nor keys made to collide cost more than n log n. (What cannot be guarded against is
 * another program that shortens the file while it is mapped.) */
#include "engine/gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/cursor.h"
#include "engine/base/num.h"
#include "engine/quant.h"

#define NAME_MAX_BYTES 65535u /* the format's limit for keys */
#define ALIGN_DEFAULT 32u
#define ALIGN_MAX (1u << 24)
#define BIG_ENDIAN_VERSION_MAX 0x00ffffffu /* a version in the other byte order is above this */

struct kv {
    struct ply_str key;
    enum ply_gguf_type type;
    const uint8_t *val;      /* a scalar's bytes */
    struct ply_str str;      /* type STR */
    struct ply_gguf_arr arr; /* type ARR */
    struct ply_str *owned;   /* the index behind arr.str */
};

struct ply_gguf {
    char *path;
    const uint8_t *map;
    size_t size;
    bool mapped; /* else the bytes are the caller's */
    struct kv *kv;
    size_t n_kv;
    const struct kv **by_key; /* [n_kv] sorted */
    struct ply_gguf_tensor *tensors;
    size_t n_tensors;
    const struct ply_gguf_tensor **by_name; /* [n_tensors] sorted */
    uint64_t align;
};

/* What is being read, for the message if it goes wrong. */
struct reader {
    struct ply_cursor c;
    struct ply_gguf *g;
    struct ply_err *err;
    const char *what;    /* "key", "tensor" */
    uint64_t at, of;     /* number at of `of` (from 0) */
    struct ply_str name; /* its name once it was read */
};

static const struct {
    const char *name;
    unsigned bytes; /* 0: no fixed size */
} gguf_types[] = {
    [PLY_GGUF_U8] = {"u8", 1},     [PLY_GGUF_I8] = {"i8", 1},     [PLY_GGUF_U16] = {"u16", 2},
    [PLY_GGUF_I16] = {"i16", 2},   [PLY_GGUF_U32] = {"u32", 4},   [PLY_GGUF_I32] = {"i32", 4},
    [PLY_GGUF_F32] = {"f32", 4},   [PLY_GGUF_BOOL] = {"bool", 1}, [PLY_GGUF_STR] = {"string", 0},
    [PLY_GGUF_ARR] = {"array", 0}, [PLY_GGUF_U64] = {"u64", 8},   [PLY_GGUF_I64] = {"i64", 8},
    [PLY_GGUF_F64] = {"f64", 8},
};

/* ---- messages -------------------------------------------------------------------------- */

/* Enough to tell which file, short enough to leave room. */
const char *
ply_gguf_name(const struct ply_gguf *g)
{
    const char *slash = strrchr(g->path, '/');
    return slash && slash[1] ? slash + 1 : g->path;
}

#define STR_ARG(str) (int)PLY_MIN((str).n, (size_t)80), (str).s

/* A fault in the record at hand: `what` says what is wrong with it. */
static int
record_fail(const struct reader *r, int code, const char *what, size_t pos)
{
    if (r->name.n > 0)
        return ply_fail(r->err, code, "%.100s: %s %.*s: %s, at byte %zu", ply_gguf_name(r->g),
                        r->what, STR_ARG(r->name), what, pos);
    if (r->of > 0)
        return ply_fail(r->err, code, "%.100s: %s %" PRIu64 " of %" PRIu64 ": %s, at byte %zu",
                        ply_gguf_name(r->g), r->what, r->at + 1, r->of, what, pos);
    return ply_fail(r->err, code, "%.100s: %s: %s, at byte %zu", ply_gguf_name(r->g), r->what, what,
                    pos);
}

/* The cursor's latched fault, if there is one, as an error. */
static int
cursor_check(const struct reader *r)
{
    if (ply_cursor_ok(&r->c))
        return PLY_OK;
    return record_fail(r, PLY_EFORMAT, r->c.fault, r->c.fault_pos);
}

/* ---- parts of records ------------------------------------------------------------------ */

static struct ply_str
read_str(struct ply_cursor *c)
{
    const uint64_t n = ply_cursor_u64(c);
    if (n > c->size - c->pos)
        ply_cursor_fail(c, "a text is longer than the rest of the file");
    const uint8_t *p = ply_cursor_take(c, n);
    return (struct ply_str){(const char *)p, p ? (size_t)n : 0};
}

static struct ply_str
read_name(struct ply_cursor *c)
{
    const struct ply_str s = read_str(c);
    if (ply_cursor_ok(c) && (s.n == 0 || s.n > NAME_MAX_BYTES))
        ply_cursor_fail(c, s.n == 0 ? "its name is empty" : "its name is too long");
    return s;
}

static void
check_bools(struct ply_cursor *c, const uint8_t *p, uint64_t n)
{
    for (uint64_t i = 0; p && i < n; i++) {
        if (p[i] > 1) {
            ply_cursor_fail(c, "a bool is neither 0 nor 1");
            return;
        }
    }
}

/* The strings of an array are walked once to see that they are there, and only then is their
 * index allocated and filled: it is never larger than twice the bytes that were seen. */
static int
read_str_array(struct reader *r, struct kv *kv)
{
    struct ply_cursor *c = &r->c;
    const uint64_t n = kv->arr.n;
    const struct ply_cursor start = *c;
    for (uint64_t i = 0; i < n && ply_cursor_ok(c); i++)
        read_str(c);
    if (cursor_check(r) != PLY_OK)
        return PLY_EFORMAT;
    kv->owned = malloc((size_t)(n ? n : 1) * sizeof(*kv->owned));
    if (!kv->owned)
        return record_fail(r, PLY_ENOMEM, "out of memory", c->pos);
    struct ply_cursor again = start;
    for (uint64_t i = 0; i < n; i++)
        kv->owned[i] = read_str(&again);
    kv->arr.str = kv->owned;
    return PLY_OK;
}

static int
read_array(struct reader *r, struct kv *kv)
{
    struct ply_cursor *c = &r->c;
    const size_t pos = c->pos;
    const uint32_t type = ply_cursor_u32(c);
    const uint64_t n = ply_cursor_u64(c);
    if (cursor_check(r) != PLY_OK)
        return PLY_EFORMAT;
    if (type == PLY_GGUF_ARR)
        return record_fail(r, PLY_EUNSUPPORTED, "an array of arrays", pos);
    if (type >= PLY_COUNT(gguf_types))
        return record_fail(r, PLY_EFORMAT, "an array of an unknown type", pos);
    const unsigned bytes = type == PLY_GGUF_STR ? 8 : gguf_types[type].bytes;
    if (n > (c->size - c->pos) / bytes)
        return record_fail(r, PLY_EFORMAT, "an array is longer than the rest of the file", pos);
    kv->arr =
        (struct ply_gguf_arr){.type = (enum ply_gguf_type)type, .n = n, .data = c->base + c->pos};
    if (type == PLY_GGUF_STR)
        return read_str_array(r, kv);
    const uint8_t *p = ply_cursor_take(c, n * bytes);
    if (type == PLY_GGUF_BOOL)
        check_bools(c, p, n);
    return cursor_check(r);
}

static int
read_kv(struct reader *r, struct kv *kv)
{
    struct ply_cursor *c = &r->c;
    kv->key = read_name(c);
    if (cursor_check(r) != PLY_OK)
        return PLY_EFORMAT;
    r->name = kv->key;
    const size_t pos = c->pos;
    const uint32_t type = ply_cursor_u32(c);
    if (ply_cursor_ok(c) && type >= PLY_COUNT(gguf_types))
        return record_fail(r, PLY_EFORMAT, "a value of an unknown type", pos);
    kv->type = (enum ply_gguf_type)type;
    if (type == PLY_GGUF_ARR)
        return read_array(r, kv);
    if (type == PLY_GGUF_STR)
        kv->str = read_str(c);
    else
        kv->val = ply_cursor_take(c, gguf_types[type].bytes);
    if (type == PLY_GGUF_BOOL)
        check_bools(c, kv->val, 1);
    return cursor_check(r);
}

/* The size of the tensor's data; its dimensions and type have been read. */
static int
tensor_size(struct reader *r, struct ply_gguf_tensor *t, size_t pos)
{
    unsigned block, bytes;
    if (!ply_type_geometry(t->type, &block, &bytes)) {
        const char *type = ply_type_name(t->type);
        return ply_fail(r->err, PLY_EUNSUPPORTED,
                        "%.100s: tensor %.*s has unsupported type %" PRIu32 "%s%s%s",
                        ply_gguf_name(r->g), STR_ARG(t->name), t->type, type ? " (" : "",
                        type ? type : "", type ? ")" : "");
    }
    if (t->ne[0] % block != 0)
        return record_fail(r, PLY_EFORMAT, "its rows are no whole number of blocks", pos);
    uint64_t n = t->ne[0] / block;
    bool fits = ply_mul_u64(n, bytes, &n);
    for (unsigned d = 1; d < 4; d++)
        fits = fits && ply_mul_u64(n, t->ne[d], &n);
    if (!fits)
        return record_fail(r, PLY_EFORMAT, "its size overflows", pos);
    t->n_bytes = n;
    return PLY_OK;
}

/* Where the data section begins is known only after the last record, so the offset is handed on. */
static int
read_tensor(struct reader *r, struct ply_gguf_tensor *t, uint64_t *offset)
{
    struct ply_cursor *c = &r->c;
    t->name = read_name(c);
    if (cursor_check(r) != PLY_OK)
        return PLY_EFORMAT;
    r->name = t->name;
    const size_t pos = c->pos;
    t->n_dims = ply_cursor_u32(c);
    if (ply_cursor_ok(c) && (t->n_dims < 1 || t->n_dims > 4))
        return record_fail(r, PLY_EFORMAT, "it must have 1 to 4 dimensions", pos);
    for (unsigned d = 0; d < 4; d++)
        t->ne[d] = d < t->n_dims ? ply_cursor_u64(c) : 1;
    t->type = ply_cursor_u32(c);
    *offset = ply_cursor_u64(c);
    if (cursor_check(r) != PLY_OK)
        return PLY_EFORMAT;
    for (unsigned d = 0; d < 4; d++) {
        if (t->ne[d] == 0 || t->ne[d] > INT64_MAX)
            return record_fail(r, PLY_EFORMAT, "a dimension is not a positive number", pos);
    }
    return tensor_size(r, t, pos);
}

/* ---- tables ---------------------------------------------------------------------------- */

static int
str_cmp(struct ply_str a, struct ply_str b)
{
    const int c = memcmp(a.s, b.s, PLY_MIN(a.n, b.n));
    if (c != 0)
        return c;
    return (a.n > b.n) - (a.n < b.n);
}

static int
kv_cmp(const void *a, const void *b)
{
    return str_cmp((*(const struct kv *const *)a)->key, (*(const struct kv *const *)b)->key);
}

static int
tensor_cmp(const void *a, const void *b)
{
    return str_cmp((*(const struct ply_gguf_tensor *const *)a)->name,
                   (*(const struct ply_gguf_tensor *const *)b)->name);
}

static int
tensor_place_cmp(const void *a, const void *b)
{
    const uint8_t *pa = (*(const struct ply_gguf_tensor *const *)a)->data;
    const uint8_t *pb = (*(const struct ply_gguf_tensor *const *)b)->data;
    return (pa > pb) - (pa < pb);
}

/* Room for one more element, at most `max` in all: tables grow with the records that have been
 * read, because a file may promise any number of them. */
static void *
table_grow(void *v, size_t n, size_t *cap, uint64_t max, size_t size)
{
    if (n < *cap)
        return v;
    size_t want = *cap * 2 + 64;
    if (want > max)
        want = (size_t)max;
    void *p = realloc(v, want * size);
    if (p) {
        memset((char *)p + *cap * size, 0, (want - *cap) * size);
        *cap = want;
    }
    return p;
}

static int
read_kvs(struct reader *r, uint64_t n_kv)
{
    struct ply_gguf *g = r->g;
    size_t cap = 0;
    r->what = "key";
    r->of = n_kv;
    for (r->at = 0; r->at < n_kv; r->at++) {
        struct kv *v = table_grow(g->kv, g->n_kv, &cap, n_kv, sizeof(*v));
        if (!v)
            return record_fail(r, PLY_ENOMEM, "out of memory", r->c.pos);
        g->kv = v;
        r->name = (struct ply_str){0};
        const int rc = read_kv(r, &g->kv[g->n_kv]);
        g->n_kv++; /* counted even when it failed: it may own an index */
        if (rc != PLY_OK)
            return rc;
    }
    return PLY_OK;
}

static int
sort_keys(struct ply_gguf *g, struct ply_err *err)
{
    g->by_key = malloc((g->n_kv ? g->n_kv : 1) * sizeof(*g->by_key));
    if (!g->by_key)
        return ply_fail(err, PLY_ENOMEM, "%.100s: out of memory", ply_gguf_name(g));
    for (size_t i = 0; i < g->n_kv; i++)
        g->by_key[i] = &g->kv[i];
    qsort(g->by_key, g->n_kv, sizeof(*g->by_key), kv_cmp);
    for (size_t i = 1; i < g->n_kv; i++) {
        if (str_cmp(g->by_key[i - 1]->key, g->by_key[i]->key) == 0)
            return ply_fail(err, PLY_EFORMAT, "%.100s: key %.*s occurs twice", ply_gguf_name(g),
                            STR_ARG(g->by_key[i]->key));
    }
    return PLY_OK;
}

/* Offsets wait in *offsets, one a tensor, until the place of the data section is known. */
static int
read_tensors(struct reader *r, uint64_t n_tensors, uint64_t **offsets)
{
    struct ply_gguf *g = r->g;
    size_t cap = 0, cap_offsets = 0;
    r->what = "tensor";
    r->of = n_tensors;
    for (r->at = 0; r->at < n_tensors; r->at++) {
        struct ply_gguf_tensor *v =
            table_grow(g->tensors, g->n_tensors, &cap, n_tensors, sizeof(*v));
        if (v)
            g->tensors = v;
        uint64_t *o = table_grow(*offsets, g->n_tensors, &cap_offsets, n_tensors, sizeof(*o));
        if (o)
            *offsets = o;
        if (!v || !o)
            return record_fail(r, PLY_ENOMEM, "out of memory", r->c.pos);
        r->name = (struct ply_str){0};
        const int rc = read_tensor(r, &g->tensors[g->n_tensors], &(*offsets)[g->n_tensors]);
        if (rc != PLY_OK)
            return rc;
        g->n_tensors++;
    }
    return PLY_OK;
}

/* Point every tensor at its data, which must lie in the file whole. */
static int
place_tensors(struct ply_gguf *g, size_t head_end, const uint64_t *offsets, struct ply_err *err)
{
    uint64_t start;
    if (!ply_align_u64(head_end, g->align, &start))
        return ply_fail(err, PLY_EFORMAT, "%.100s: its size overflows", ply_gguf_name(g));
    for (size_t i = 0; i < g->n_tensors; i++) {
        struct ply_gguf_tensor *t = &g->tensors[i];
        uint64_t at, end;
        if (offsets[i] % g->align != 0)
            return ply_fail(err, PLY_EFORMAT,
                            "%.100s: tensor %.*s: offset %" PRIu64 " is not a multiple of %" PRIu64,
                            ply_gguf_name(g), STR_ARG(t->name), offsets[i], g->align);
        if (!ply_add_u64(start, offsets[i], &at) || !ply_add_u64(at, t->n_bytes, &end) ||
            end > g->size)
            return ply_fail(
                err, PLY_EFORMAT,
                "%.100s: tensor %.*s: %" PRIu64 " bytes of data at offset %" PRIu64
                " lie beyond the end of the file (%zu bytes); is the download complete?",
                ply_gguf_name(g), STR_ARG(t->name), t->n_bytes, offsets[i], g->size);
        t->data = g->map + at;
    }
    return PLY_OK;
}

/* Two tensors that share bytes are no sound file, and let a small one fill the memory. */
static int
sort_tensors(struct ply_gguf *g, struct ply_err *err)
{
    const size_t n = g->n_tensors;
    const struct ply_gguf_tensor **v = malloc((n ? n : 1) * sizeof(*v));
    if (!v)
        return ply_fail(err, PLY_ENOMEM, "%.100s: out of memory", ply_gguf_name(g));
    g->by_name = v;
    for (size_t i = 0; i < n; i++)
        v[i] = &g->tensors[i];
    qsort(v, n, sizeof(*v), tensor_place_cmp);
    for (size_t i = 1; i < n; i++) {
        if ((uint64_t)(v[i]->data - v[i - 1]->data) < v[i - 1]->n_bytes)
            return ply_fail(err, PLY_EFORMAT, "%.100s: tensors %.*s and %.*s overlap",
                            ply_gguf_name(g), STR_ARG(v[i - 1]->name), STR_ARG(v[i]->name));
    }
    qsort(v, n, sizeof(*v), tensor_cmp);
    for (size_t i = 1; i < n; i++) {
        if (str_cmp(v[i - 1]->name, v[i]->name) == 0)
            return ply_fail(err, PLY_EFORMAT, "%.100s: tensor %.*s occurs twice", ply_gguf_name(g),
                            STR_ARG(v[i]->name));
    }
    return PLY_OK;
}

/* ---- the file -------------------------------------------------------------------------- */

static int
read_header(struct reader *r, uint64_t *n_tensors, uint64_t *n_kv)
{
    const char *name = ply_gguf_name(r->g);
    r->what = "header";
    const uint8_t *magic = ply_cursor_take(&r->c, 4);
    if (!magic || memcmp(magic, "GGUF", 4) != 0)
        return ply_fail(r->err, PLY_EFORMAT, "%.100s: not a GGUF file", name);
    const uint32_t version = ply_cursor_u32(&r->c);
    if (ply_cursor_ok(&r->c) && version > BIG_ENDIAN_VERSION_MAX)
        return ply_fail(r->err, PLY_EUNSUPPORTED,
                        "%.100s: a big-endian GGUF file; supported are little-endian ones", name);
    if (ply_cursor_ok(&r->c) && version != 2 && version != 3)
        return ply_fail(r->err, PLY_EUNSUPPORTED,
                        "%.100s: GGUF version %" PRIu32 "; supported are 2 and 3", name, version);
    *n_tensors = ply_cursor_u64(&r->c);
    *n_kv = ply_cursor_u64(&r->c);
    return cursor_check(r);
}

static int
read_alignment(struct ply_gguf *g, struct ply_err *err)
{
    g->align = ALIGN_DEFAULT;
    const int rc = ply_gguf_u64(g, "general.alignment", &g->align, err);
    if (rc < 0)
        return rc;
    if (g->align == 0 || (g->align & (g->align - 1)) != 0 || g->align > ALIGN_MAX)
        return ply_fail(err, PLY_EFORMAT,
                        "%.100s: general.alignment is %" PRIu64 ", not a power of two up to %u",
                        ply_gguf_name(g), g->align, ALIGN_MAX);
    return PLY_OK;
}

static int
refuse_split(const struct ply_gguf *g, struct ply_err *err)
{
    uint64_t n = 1, no = 0;
    int rc = ply_gguf_u64(g, "split.count", &n, err);
    if (rc >= 0)
        rc = ply_gguf_u64(g, "split.no", &no, err);
    if (rc < 0)
        return rc;
    if (n > 1)
        return ply_fail(err, PLY_EUNSUPPORTED,
                        "%.100s: part %" PRIu64 " of a model split into %" PRIu64
                        " files; supported are models in one file",
                        ply_gguf_name(g), no + 1, n);
    return PLY_OK;
}

static int
parse(struct ply_gguf *g, struct ply_err *err)
{
    struct reader r = {.g = g, .err = err};
    uint64_t n_tensors = 0, n_kv = 0;
    uint64_t *offsets = NULL;
    ply_cursor_init(&r.c, g->map, g->size);
    int rc = read_header(&r, &n_tensors, &n_kv);
    if (rc == PLY_OK)
        rc = read_kvs(&r, n_kv);
    if (rc == PLY_OK)
        rc = sort_keys(g, err);
    if (rc == PLY_OK)
        rc = refuse_split(g, err);
    if (rc == PLY_OK)
        rc = read_alignment(g, err);
    if (rc == PLY_OK)
        rc = read_tensors(&r, n_tensors, &offsets);
    if (rc == PLY_OK)
        rc = place_tensors(g, r.c.pos, offsets, err);
    if (rc == PLY_OK)
        rc = sort_tensors(g, err);
    free(offsets);
    return rc;
}

static int
map_file(struct ply_gguf *g, struct ply_err *err)
{
    /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
    const int fd = open(g->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        const int code = errno == ENOENT || errno == ENOTDIR ? PLY_ENOENT : PLY_EIO;
        return ply_fail(err, code, "cannot open the model: %s: %s", strerror(errno), g->path);
    }
    struct stat st;
    int rc = PLY_OK;
    if (fstat(fd, &st) != 0)
        rc = ply_fail(err, PLY_EIO, "%.100s: %s", ply_gguf_name(g), strerror(errno));
    else if (!S_ISREG(st.st_mode))
        rc = ply_fail(err, PLY_EIO, "%.100s: not a regular file", ply_gguf_name(g));
    else if (st.st_size == 0)
        rc = ply_fail(err, PLY_EFORMAT, "%.100s: not a GGUF file: it is empty", ply_gguf_name(g));
    else if ((uint64_t)st.st_size > SIZE_MAX / 2)
        rc =
            ply_fail(err, PLY_EUNSUPPORTED, "%.100s: too large for this machine", ply_gguf_name(g));
    if (rc == PLY_OK) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            rc = ply_fail(err, errno == ENOMEM ? PLY_ENOMEM : PLY_EIO,
                          "%.100s: cannot map %lld MiB: %s", ply_gguf_name(g),
                          (long long)st.st_size >> 20, strerror(errno));
        } else {
            g->map = p;
            g->mapped = true;
            g->size = (size_t)st.st_size;
        }
    }
    close(fd);
    return rc;
}

/* bytes NULL: map the file at path. */
static int
open_any(struct ply_gguf **out, const char *path, const void *bytes, size_t n, struct ply_err *err)
{
    *out = NULL;
    struct ply_gguf *g = calloc(1, sizeof(*g));
    if (!g)
        return ply_fail(err, PLY_ENOMEM, "out of memory");
    g->path = strdup(path);
    g->map = bytes;
    g->size = n;
    int rc = g->path ? PLY_OK : ply_fail(err, PLY_ENOMEM, "out of memory");
    if (rc == PLY_OK && !bytes)
        rc = map_file(g, err);
    if (rc == PLY_OK)
        rc = parse(g, err);
    if (rc != PLY_OK) {
        ply_gguf_close(&g);
        return rc;
    }
    *out = g;
    return PLY_OK;
}

int
ply_gguf_open(struct ply_gguf **out, const char *path, struct ply_err *err)
{
    return open_any(out, path, NULL, 0, err);
}

int
ply_gguf_open_bytes(struct ply_gguf **out, const char *name, const void *bytes, size_t n,
                    struct ply_err *err)
{
    return open_any(out, name, bytes, n, err);
}

void
ply_gguf_close(struct ply_gguf **gp)
{
    struct ply_gguf *g = *gp;
    if (!g)
        return;
    for (size_t i = 0; i < g->n_kv; i++)
        free(g->kv[i].owned);
    free(g->kv);
    free(g->by_key);
    free(g->tensors);
    free(g->by_name);
    if (g->mapped)
        munmap((void *)(uintptr_t)g->map, g->size);
    free(g->path);
    free(g);
    *gp = NULL;
}

const char *
ply_gguf_path(const struct ply_gguf *g)
{
    return g->path;
}

uint64_t
ply_gguf_file_bytes(const struct ply_gguf *g)
{
    return g->size;
}

const uint8_t *
ply_gguf_map(const struct ply_gguf *g)
{
    return g->map;
}

/* ---- lookups --------------------------------------------------------------------------- */

uint64_t
ply_gguf_n_tensors(const struct ply_gguf *g)
{
    return g->n_tensors;
}

const struct ply_gguf_tensor *
ply_gguf_tensor_at(const struct ply_gguf *g, uint64_t i)
{
    return i < g->n_tensors ? &g->tensors[i] : NULL;
}

const struct ply_gguf_tensor *
ply_gguf_tensor(const struct ply_gguf *g, const char *name)
{
    const struct ply_gguf_tensor want = {.name = {name, strlen(name)}}, *p = &want;
    const struct ply_gguf_tensor **hit =
        bsearch(&p, g->by_name, g->n_tensors, sizeof(*g->by_name), tensor_cmp);
    return hit ? *hit : NULL;
}

static const struct kv *
find(const struct ply_gguf *g, const char *key)
{
    const struct kv want = {.key = {key, strlen(key)}}, *p = &want;
    const struct kv **hit = bsearch(&p, g->by_key, g->n_kv, sizeof(*g->by_key), kv_cmp);
    return hit ? *hit : NULL;
}

bool
ply_gguf_has(const struct ply_gguf *g, const char *key)
{
    return find(g, key) != NULL;
}

static int
type_fail(const struct ply_gguf *g, const struct kv *kv, const char *wanted, struct ply_err *err)
{
    return ply_fail(err, PLY_EFORMAT, "%.100s: key %.*s has type %s where %s is expected",
                    ply_gguf_name(g), STR_ARG(kv->key), gguf_types[kv->type].name, wanted);
}

/* The value's bytes, sign-extended to 64 bits for signed types. */
static int64_t
int_value(const struct kv *kv, bool is_signed)
{
    const unsigned bytes = gguf_types[kv->type].bytes;
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)kv->val[i] << (8 * i);
    if (is_signed && bytes < 8 && (v >> (8 * bytes - 1) & 1))
        v |= UINT64_MAX << (8 * bytes);
    return (int64_t)v;
}

int
ply_gguf_u64(const struct ply_gguf *g, const char *key, uint64_t *out, struct ply_err *err)
{
    const struct kv *kv = find(g, key);
    if (!kv)
        return 0;
    switch (kv->type) {
    case PLY_GGUF_U8:
    case PLY_GGUF_U16:
    case PLY_GGUF_U32:
    case PLY_GGUF_U64: *out = (uint64_t)int_value(kv, false); return 1;
    case PLY_GGUF_I8:
    case PLY_GGUF_I16:
    case PLY_GGUF_I32:
    case PLY_GGUF_I64: {
        const int64_t v = int_value(kv, true);
        if (v < 0)
            return ply_fail(err, PLY_EFORMAT,
                            "%.100s: key %s is %" PRId64 ", which must not be negative",
                            ply_gguf_name(g), key, v);
        *out = (uint64_t)v;
        return 1;
    }
    default: return type_fail(g, kv, "a whole number", err);
    }
}

int
ply_gguf_f32(const struct ply_gguf *g, const char *key, float *out, struct ply_err *err)
{
    const struct kv *kv = find(g, key);
    if (!kv)
        return 0;
    if (kv->type != PLY_GGUF_F32 && kv->type != PLY_GGUF_F64)
        return type_fail(g, kv, "f32", err);
    struct ply_cursor c;
    ply_cursor_init(&c, kv->val, gguf_types[kv->type].bytes);
    *out = kv->type == PLY_GGUF_F32 ? ply_cursor_f32(&c) : (float)ply_cursor_f64(&c);
    return 1;
}

int
ply_gguf_bool(const struct ply_gguf *g, const char *key, bool *out, struct ply_err *err)
{
    const struct kv *kv = find(g, key);
    if (!kv)
        return 0;
    if (kv->type != PLY_GGUF_BOOL)
        return type_fail(g, kv, "bool", err);
    *out = kv->val[0] != 0;
    return 1;
}

int
ply_gguf_str(const struct ply_gguf *g, const char *key, struct ply_str *out, struct ply_err *err)
{
    const struct kv *kv = find(g, key);
    if (!kv)
        return 0;
    if (kv->type != PLY_GGUF_STR)
        return type_fail(g, kv, "string", err);
    *out = kv->str;
    return 1;
}

int
ply_gguf_arr(const struct ply_gguf *g, const char *key, struct ply_gguf_arr *out,
             struct ply_err *err)
{
    const struct kv *kv = find(g, key);
    if (!kv)
        return 0;
    if (kv->type != PLY_GGUF_ARR)
        return type_fail(g, kv, "array", err);
    *out = kv->arr;
    return 1;
}

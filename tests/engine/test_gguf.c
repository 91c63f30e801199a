/* SPDX-License-Identifier: MIT
 * The GGUF reader on sound files and on every kind of damage (cases B65-B69, B77). Files are
 * handed over as copies of exact size, so that AddressSanitizer sees a read past the end, and
 * allocations are watched: no request may be larger than the file allows for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/num.h"
#include "engine/gguf.h"
#include "engine/quant.h"
#include "tests/ggufw.h"

/* ---- watched allocation (the linker wraps malloc and its kin) --------------------------- */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static size_t largest;       /* request since it was reset */
static long fail_after = -1; /* this many succeed, then none; -1: all do */

static bool
refused(size_t n)
{
    if (n > largest)
        largest = n;
    if (fail_after < 0)
        return false;
    if (fail_after == 0)
        return true;
    fail_after--;
    return false;
}

void *
__wrap_malloc(size_t n)
{
    return refused(n) ? NULL : __real_malloc(n);
}

void *
__wrap_calloc(size_t n, size_t size)
{
    return refused(n * size) ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t n)
{
    return refused(n) ? NULL : __real_realloc(p, n);
}

/* ---- helpers --------------------------------------------------------------------------- */

static struct ply_err err;

/* Open a copy of exactly n bytes; the copy lives until close_copy(). */
struct copy {
    uint8_t *bytes;
    struct ply_gguf *g;
};

static int
open_copy(struct copy *c, const char *bytes, size_t n)
{
    err = (struct ply_err){0};
    /* At least one byte, or NULL could come back; the size handed on is exact. */
    c->bytes = __real_malloc(n ? n : 1);
    memcpy(c->bytes, bytes, n);
    largest = 0;
    const int rc = ply_gguf_open_bytes(&c->g, "dir/test.gguf", c->bytes, n, &err);
    /* Twice the file for an index of strings, as much again for tables, a page to start with. */
    assert_true(largest <= 4 * n + 16384);
    assert_true((rc == 0) == (c->g != NULL));
    if (rc != 0)
        assert_true(err.msg[0] != '\0' && strstr(err.msg, "test.gguf") != NULL);
    return rc;
}

static void
close_copy(struct copy *c)
{
    ply_gguf_close(&c->g);
    assert_null(c->g);
    free(c->bytes);
}

static int
open_writer(struct copy *c, const struct ggufw *w)
{
    struct ply_buf b = {0};
    ggufw_finish(w, &b);
    const int rc = open_copy(c, b.v, b.n);
    ply_buf_fini(&b);
    return rc;
}

/* The file must be refused with this code and a message that holds this text. */
static void
expect_refusal(const struct ggufw *w, int code, const char *text)
{
    struct copy c;
    const int rc = open_writer(&c, w);
    close_copy(&c);
    if (rc != code || !strstr(err.msg, text))
        fail_msg("got %d \"%s\", expected %d and \"%s\"", rc, err.msg, code, text);
}

static void
put_strings(struct ggufw *w, const char *key, const char *const *v, size_t n)
{
    ggufw_arr(w, key, PLY_GGUF_STR, n);
    for (size_t i = 0; i < n; i++)
        ggufw_put_str(&w->kv, v[i], strlen(v[i]));
}

/* A value of every type. */
static void
write_values(struct ggufw *w)
{
    static const char *const names[] = {"one", "", "three"};
    ggufw_init(w);
    ggufw_str(w, "general.architecture", "test");
    ggufw_int(w, "u8", PLY_GGUF_U8, 200);
    ggufw_int(w, "i8", PLY_GGUF_I8, (uint64_t)-5);
    ggufw_int(w, "u16", PLY_GGUF_U16, 60000);
    ggufw_int(w, "i16", PLY_GGUF_I16, 300);
    ggufw_int(w, "u32", PLY_GGUF_U32, 4000000000u);
    ggufw_int(w, "i32", PLY_GGUF_I32, (uint64_t)-1);
    ggufw_int(w, "u64", PLY_GGUF_U64, UINT64_MAX);
    ggufw_int(w, "i64", PLY_GGUF_I64, INT64_MAX);
    ggufw_f32(w, "f32", 1.5f);
    ggufw_key(w, "f64", PLY_GGUF_F64);
    ggufw_put(&w->kv, &(double){-0.25}, 8);
    ggufw_bool(w, "bool", true);
    put_strings(w, "names", names, 3);
    put_strings(w, "nothing", names, 0);
    ggufw_arr(w, "numbers", PLY_GGUF_I32, 2);
    ggufw_put_int(&w->kv, 7, 4);
    ggufw_put_int(&w->kv, (uint64_t)-7, 4);
}

static void
write_tensors(struct ggufw *w)
{
    const float vec[4] = {1, 2, 3, 4};
    const uint8_t mat[80] = {0x3c};
    ggufw_tensor(w, "vec", PLY_TYPE_F32, 1, (uint64_t[]){4}, vec, sizeof(vec));
    ggufw_tensor(w, "mat", PLY_TYPE_Q4_1, 2, (uint64_t[]){64, 2}, mat, sizeof(mat));
}

/* A sound file. */
static void
write_sound(struct ggufw *w)
{
    write_values(w);
    write_tensors(w);
}

/* One tensor with anything at all in its record, and some bytes of data. */
static void
write_record(struct ggufw *w, uint32_t n_dims, const uint64_t *ne, size_t n_ne, uint32_t type,
             uint64_t offset)
{
    ggufw_init(w);
    ggufw_str(w, "general.architecture", "test");
    ggufw_put_str(&w->info, "odd one", 7);
    ggufw_put_int(&w->info, n_dims, 4);
    for (size_t i = 0; i < n_ne; i++)
        ggufw_put_int(&w->info, ne[i], 8);
    ggufw_put_int(&w->info, type, 4);
    ggufw_put_int(&w->info, offset, 8);
    w->n_tensors = 1;
    for (size_t i = 0; i < 256; i++)
        ggufw_put(&w->data, "x", 1);
}

/* ---- sound files ----------------------------------------------------------------------- */

static void
expect_u64(const struct ply_gguf *g, const char *key, uint64_t want)
{
    uint64_t v = 0;
    assert_int_equal(ply_gguf_u64(g, key, &v, &err), 1);
    assert_true(v == want);
}

static void
check_values(const struct ply_gguf *g)
{
    uint64_t u = 42;
    float f = 0;
    bool b = false;
    struct ply_str s;
    struct ply_gguf_arr a;
    expect_u64(g, "u8", 200);
    expect_u64(g, "u16", 60000);
    expect_u64(g, "i16", 300);
    expect_u64(g, "u32", 4000000000u);
    expect_u64(g, "u64", UINT64_MAX);
    expect_u64(g, "i64", INT64_MAX);
    assert_int_equal(ply_gguf_f32(g, "f32", &f, &err), 1);
    assert_true(f == 1.5f);
    assert_int_equal(ply_gguf_f32(g, "f64", &f, &err), 1);
    assert_true(f == -0.25f);
    assert_int_equal(ply_gguf_bool(g, "bool", &b, &err), 1);
    assert_true(b);
    assert_int_equal(ply_gguf_str(g, "general.architecture", &s, &err), 1);
    assert_int_equal(s.n, 4);
    assert_memory_equal(s.s, "test", 4);
    assert_int_equal(ply_gguf_arr(g, "names", &a, &err), 1);
    assert_int_equal(a.type, PLY_GGUF_STR);
    assert_int_equal(a.n, 3);
    assert_int_equal(a.str[1].n, 0);
    assert_memory_equal(a.str[2].s, "three", 5);
    assert_int_equal(ply_gguf_arr(g, "nothing", &a, &err), 1);
    assert_int_equal(a.n, 0);
    assert_int_equal(ply_gguf_arr(g, "numbers", &a, &err), 1);
    assert_int_equal(a.type, PLY_GGUF_I32);
    assert_memory_equal(a.data, "\x07\0\0\0\xf9\xff\xff\xff", 8);
    assert_null(a.str);
    assert_int_equal(ply_gguf_u64(g, "absent", &u, &err), 0);
    assert_int_equal(u, 42);
    assert_false(ply_gguf_has(g, "absent"));
    assert_true(ply_gguf_has(g, "bool"));
    assert_int_equal(err.code, 0);
}

static void
check_tensors(const struct ply_gguf *g)
{
    assert_int_equal(ply_gguf_n_tensors(g), 2);
    assert_null(ply_gguf_tensor(g, "absent"));
    assert_null(ply_gguf_tensor_at(g, 2));
    const struct ply_gguf_tensor *t = ply_gguf_tensor(g, "mat");
    assert_non_null(t);
    assert_ptr_equal(t, ply_gguf_tensor_at(g, 1));
    assert_int_equal(t->type, PLY_TYPE_Q4_1);
    assert_int_equal(t->n_dims, 2);
    assert_true(t->ne[0] == 64 && t->ne[1] == 2 && t->ne[2] == 1 && t->ne[3] == 1);
    assert_int_equal(t->n_bytes, 80);
    assert_int_equal(t->data[0], 0x3c);
    t = ply_gguf_tensor(g, "vec");
    assert_int_equal(t->n_bytes, 16);
    assert_int_equal(t->data[15], 0x40);
}

static void
sound_files_say_what_was_written(void **state)
{
    static const uint64_t aligns[] = {1, 8, 32, 64, 4096};
    for (uint32_t version = 2; version <= 3; version++) {
        for (size_t i = 0; i < PLY_COUNT(aligns); i++) {
            struct ggufw w;
            struct copy c;
            write_values(&w);
            w.version = version;
            w.align = aligns[i];
            ggufw_u32(&w, "general.alignment", (uint32_t)w.align);
            write_tensors(&w);
            assert_int_equal(open_writer(&c, &w), 0);
            check_values(c.g);
            check_tensors(c.g);
            assert_string_equal(ply_gguf_name(c.g), "test.gguf");
            close_copy(&c);
            ggufw_fini(&w);
        }
    }
}

static void
values_that_cannot_be_are_errors(void **state)
{
    struct ggufw w;
    struct copy c;
    uint64_t u;
    float f;
    bool b;
    struct ply_str s;
    struct ply_gguf_arr a;
    write_sound(&w);
    assert_int_equal(open_writer(&c, &w), 0);
    assert_int_equal(ply_gguf_u64(c.g, "i32", &u, &err), PLY_EFORMAT);
    assert_non_null(strstr(err.msg, "i32 is -1"));
    err = (struct ply_err){0};
    assert_int_equal(ply_gguf_u64(c.g, "f32", &u, &err), PLY_EFORMAT);
    assert_non_null(strstr(err.msg, "f32 has type f32 where a whole number is expected"));
    assert_int_equal(ply_gguf_u64(c.g, "bool", &u, NULL), PLY_EFORMAT);
    assert_int_equal(ply_gguf_u64(c.g, "names", &u, NULL), PLY_EFORMAT);
    assert_int_equal(ply_gguf_f32(c.g, "u32", &f, NULL), PLY_EFORMAT);
    assert_int_equal(ply_gguf_bool(c.g, "u8", &b, NULL), PLY_EFORMAT);
    assert_int_equal(ply_gguf_str(c.g, "names", &s, NULL), PLY_EFORMAT);
    assert_int_equal(ply_gguf_arr(c.g, "general.architecture", &a, NULL), PLY_EFORMAT);
    close_copy(&c);
    ggufw_fini(&w);
}

static void
a_vocabulary_may_have_many_strings(void **state)
{
    const uint64_t n = 262144;
    struct ggufw w;
    struct copy c;
    struct ply_gguf_arr a;
    char text[16];
    ggufw_init(&w);
    ggufw_arr(&w, "tokenizer.ggml.tokens", PLY_GGUF_STR, n);
    for (uint64_t i = 0; i < n; i++) {
        snprintf(text, sizeof(text), "%u", (unsigned)i);
        ggufw_put_str(&w.kv, text, strlen(text));
    }
    assert_int_equal(open_writer(&c, &w), 0);
    assert_int_equal(ply_gguf_n_tensors(c.g), 0);
    assert_int_equal(ply_gguf_arr(c.g, "tokenizer.ggml.tokens", &a, &err), 1);
    assert_true(a.n == n);
    assert_int_equal(a.str[n - 1].n, 6);
    assert_memory_equal(a.str[n - 1].s, "262143", 6);
    close_copy(&c);
    ggufw_fini(&w);
}

static void
names_may_hold_any_bytes(void **state)
{
    struct ggufw w;
    struct copy c;
    ggufw_init(&w);
    ggufw_put_str(&w.kv, "a\0b", 3);
    ggufw_put_int(&w.kv, PLY_GGUF_U8, 4);
    ggufw_put_int(&w.kv, 1, 1);
    ggufw_put_str(&w.kv, "a", 1);
    ggufw_put_int(&w.kv, PLY_GGUF_U8, 4);
    ggufw_put_int(&w.kv, 2, 1);
    w.n_kv = 2;
    assert_int_equal(open_writer(&c, &w), 0);
    expect_u64(c.g, "a", 2);
    close_copy(&c);
    ggufw_fini(&w);
}

/* ---- damage, byte by byte -------------------------------------------------------------- */

/* Ask for everything, so that whatever was accepted is also read. */
static void
read_all(const struct ply_gguf *g)
{
    unsigned sum = 0;
    for (uint64_t i = 0; i < ply_gguf_n_tensors(g); i++) {
        const struct ply_gguf_tensor *t = ply_gguf_tensor_at(g, i);
        for (uint64_t b = 0; b < t->n_bytes; b++)
            sum += t->data[b];
        for (size_t b = 0; b < t->name.n; b++)
            sum += (unsigned char)t->name.s[b];
    }
    struct ply_gguf_arr a;
    if (ply_gguf_arr(g, "names", &a, NULL) == 1 && a.type == PLY_GGUF_STR) {
        for (uint64_t i = 0; i < a.n; i++) {
            for (size_t b = 0; b < a.str[i].n; b++)
                sum += (unsigned char)a.str[i].s[b];
        }
    }
    assert_true(sum + 1 > 0);
}

static void
every_shortened_file_is_refused(void **state)
{
    struct ggufw w;
    struct ply_buf b = {0};
    struct copy c;
    write_sound(&w);
    ggufw_finish(&w, &b);
    /* The last tensor ends 16 bytes before the end: padding that may be missing. */
    for (size_t n = 0; n < b.n - 16; n++) {
        assert_int_equal(open_copy(&c, b.v, n), PLY_EFORMAT);
        close_copy(&c);
    }
    assert_int_equal(open_copy(&c, b.v, b.n - 17), PLY_EFORMAT);
    assert_non_null(strstr(err.msg, "tensor mat: 80 bytes of data"));
    close_copy(&c);
    assert_int_equal(open_copy(&c, b.v, b.n - 16), 0);
    read_all(c.g);
    close_copy(&c);
    ply_buf_fini(&b);
    ggufw_fini(&w);
}

static void
every_changed_byte_is_survived(void **state)
{
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    struct ggufw w;
    struct ply_buf b = {0};
    write_sound(&w);
    ggufw_finish(&w, &b);
    for (size_t i = 0; i < b.n; i++) {
        const char was = b.v[i];
        for (size_t k = 0; k < PLY_COUNT(values); k++) {
            struct copy c;
            b.v[i] = (char)values[k];
            if (open_copy(&c, b.v, b.n) == 0)
                read_all(c.g);
            close_copy(&c);
        }
        b.v[i] = was;
    }
    ply_buf_fini(&b);
    ggufw_fini(&w);
}

/* ---- damage, by kind ------------------------------------------------------------------- */

static void
versions_and_magic(void **state)
{
    static const uint32_t wrong[] = {0, 1, 4, 99};
    struct ggufw w;
    struct copy c;
    char text[32];
    for (size_t i = 0; i < PLY_COUNT(wrong); i++) {
        write_sound(&w);
        w.version = wrong[i];
        snprintf(text, sizeof(text), "GGUF version %u;", wrong[i]);
        expect_refusal(&w, PLY_EUNSUPPORTED, text);
        ggufw_fini(&w);
    }
    write_sound(&w);
    w.version = 3u << 24;
    expect_refusal(&w, PLY_EUNSUPPORTED, "big-endian");
    ggufw_fini(&w);
    assert_int_equal(open_copy(&c, "GGML\3\0\0\0", 8), PLY_EFORMAT);
    assert_non_null(strstr(err.msg, "not a GGUF file"));
    close_copy(&c);
    assert_int_equal(open_copy(&c, "", 0), PLY_EFORMAT);
    close_copy(&c);
}

/* B65 */
static void
wrong_numbers_of_dimensions(void **state)
{
    static const uint32_t wrong[] = {0, 5, 9, 0x7fffffff, 0xffffffffu};
    static const uint64_t ne[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (size_t i = 0; i < PLY_COUNT(wrong); i++) {
        struct ggufw w;
        write_record(&w, wrong[i], ne, PLY_MIN(wrong[i], 9u), PLY_TYPE_F32, 0);
        expect_refusal(&w, PLY_EFORMAT, "tensor odd one: it must have 1 to 4 dimensions");
        ggufw_fini(&w);
    }
}

/* B66 */
static void
wrong_alignments(void **state)
{
    static const uint32_t wrong[] = {0, 3, 48, 1u << 30, 1u << 31, 0xffffffffu};
    struct ggufw w;
    for (size_t i = 0; i < PLY_COUNT(wrong); i++) {
        ggufw_init(&w);
        ggufw_u32(&w, "general.alignment", wrong[i]);
        expect_refusal(&w, PLY_EFORMAT, "general.alignment");
        ggufw_fini(&w);
        write_sound(&w);
        ggufw_u32(&w, "general.alignment", wrong[i]);
        expect_refusal(&w, PLY_EFORMAT, "general.alignment");
        ggufw_fini(&w);
    }
    write_sound(&w);
    ggufw_str(&w, "general.alignment", "32");
    expect_refusal(&w, PLY_EFORMAT, "general.alignment has type string");
    ggufw_fini(&w);
    write_sound(&w);
    ggufw_arr(&w, "general.alignment", PLY_GGUF_U32, 0);
    expect_refusal(&w, PLY_EFORMAT, "general.alignment has type array");
    ggufw_fini(&w);
    write_sound(&w);
    ggufw_int(&w, "general.alignment", PLY_GGUF_U64, 1ull << 32);
    expect_refusal(&w, PLY_EFORMAT, "general.alignment");
    ggufw_fini(&w);
    write_sound(&w);
    ggufw_int(&w, "general.alignment", PLY_GGUF_I32, (uint64_t)-1);
    expect_refusal(&w, PLY_EFORMAT, "general.alignment is -1");
    ggufw_fini(&w);
}

/* B67 */
static void
impossible_shapes(void **state)
{
    static const struct {
        unsigned n;
        uint64_t ne[4];
    } shapes[] = {
        {1, {0}},
        {2, {256, 0}},
        {2, {0, 256}},
        {1, {UINT64_MAX}},
        {2, {(1ull << 63) - 1, 2}},
        {2, {1ull << 32, 1ull << 32}},
        {2, {1ull << 61, 8}},
        {4, {1ull << 16, 1ull << 16, 1ull << 16, 1ull << 16}},
        {2, {256, 1ull << 62}},
        {2, {1ull << 40, 1}},
        {1, {1ull << 63}},
    };
    static const uint32_t types[] = {PLY_TYPE_F32, PLY_TYPE_Q4_K, PLY_TYPE_Q6_K, PLY_TYPE_Q4_1, 23};
    struct ggufw w;
    for (size_t i = 0; i < PLY_COUNT(shapes); i++) {
        for (size_t k = 0; k < PLY_COUNT(types); k++) {
            write_record(&w, shapes[i].n, shapes[i].ne, shapes[i].n, types[k], 0);
            expect_refusal(&w, PLY_EFORMAT, "tensor odd one");
            ggufw_fini(&w);
        }
    }
    write_record(&w, 1, (uint64_t[]){31}, 1, PLY_TYPE_Q4_1, 0);
    expect_refusal(&w, PLY_EFORMAT, "no whole number of blocks");
    ggufw_fini(&w);
    write_record(&w, 2, (uint64_t[]){128, 1}, 2, PLY_TYPE_Q6_K, 0);
    expect_refusal(&w, PLY_EFORMAT, "no whole number of blocks");
    ggufw_fini(&w);
}

/* B68: lengths of keys, texts and names. */
static void
impossible_lengths(void **state)
{
    static const uint64_t lengths[] = {100,        1ull << 32, 1ull << 48,
                                       1ull << 63, UINT64_MAX, UINT64_MAX - 7};
    struct ggufw w;
    for (size_t i = 0; i < PLY_COUNT(lengths); i++) {
        ggufw_init(&w); /* a key's length, in a file of 32 bytes */
        ggufw_put_int(&w.kv, lengths[i], 8);
        w.n_kv = 1;
        expect_refusal(&w, PLY_EFORMAT, "key 1 of 1: a text is longer than the rest of the file");
        ggufw_fini(&w);
        ggufw_init(&w); /* a value's */
        ggufw_key(&w, "k", PLY_GGUF_STR);
        ggufw_put_int(&w.kv, lengths[i], 8);
        expect_refusal(&w, PLY_EFORMAT, "key k: a text is longer than the rest of the file");
        ggufw_fini(&w);
        ggufw_init(&w); /* an element's */
        ggufw_arr(&w, "k", PLY_GGUF_STR, 1);
        ggufw_put_int(&w.kv, lengths[i], 8);
        expect_refusal(&w, PLY_EFORMAT, "key k: a text is longer than the rest of the file");
        ggufw_fini(&w);
        ggufw_init(&w); /* a tensor name's */
        ggufw_put_int(&w.info, lengths[i], 8);
        w.n_tensors = 1;
        expect_refusal(&w, PLY_EFORMAT, "tensor 1 of 1: a text is longer");
        ggufw_fini(&w);
    }
    ggufw_init(&w);
    ggufw_u32(&w, "", 1);
    expect_refusal(&w, PLY_EFORMAT, "its name is empty");
    ggufw_fini(&w);
    ggufw_init(&w);
    ggufw_put_int(&w.kv, 65536, 8);
    for (int i = 0; i < 65536 + 8; i++)
        ggufw_put(&w.kv, "k", 1);
    w.n_kv = 1;
    expect_refusal(&w, PLY_EFORMAT, "its name is too long");
    ggufw_fini(&w);
}

/* B69: counts of records and elements. */
static void
impossible_counts(void **state)
{
    static const uint64_t counts[] = {3,          1ull << 31, 1ull << 32,
                                      1ull << 61, 1ull << 63, UINT64_MAX};
    struct ggufw w;
    for (size_t i = 0; i < PLY_COUNT(counts); i++) {
        ggufw_init(&w);
        ggufw_u32(&w, "k", 1);
        w.n_kv = counts[i];
        expect_refusal(&w, PLY_EFORMAT, "key 2 of");
        ggufw_fini(&w);
        ggufw_init(&w);
        w.n_tensors = counts[i];
        expect_refusal(&w, PLY_EFORMAT, "tensor 1 of");
        ggufw_fini(&w);
        for (uint32_t type = 0; type <= PLY_GGUF_F64; type++) {
            ggufw_init(&w);
            ggufw_arr(&w, "k", type, counts[i]);
            expect_refusal(&w, type == PLY_GGUF_ARR ? PLY_EUNSUPPORTED : PLY_EFORMAT,
                           "key k: an array");
            ggufw_fini(&w);
        }
    }
}

/* B69: types that are none. */
static void
wrong_types_of_values(void **state)
{
    static const uint32_t wrong[] = {13, 99, 1u << 31, 0xffffffffu};
    struct ggufw w;
    for (size_t i = 0; i < PLY_COUNT(wrong); i++) {
        ggufw_init(&w);
        ggufw_key(&w, "k", wrong[i]);
        ggufw_put_int(&w.kv, 0, 8);
        expect_refusal(&w, PLY_EFORMAT, "key k: a value of an unknown type");
        ggufw_fini(&w);
        ggufw_init(&w);
        ggufw_arr(&w, "k", wrong[i], 1);
        ggufw_put_int(&w.kv, 0, 8);
        expect_refusal(&w, PLY_EFORMAT, "key k: an array of an unknown type");
        ggufw_fini(&w);
    }
    ggufw_init(&w);
    ggufw_int(&w, "k", PLY_GGUF_BOOL, 7);
    expect_refusal(&w, PLY_EFORMAT, "key k: a bool is neither 0 nor 1");
    ggufw_fini(&w);
    ggufw_init(&w);
    ggufw_arr(&w, "k", PLY_GGUF_BOOL, 3);
    ggufw_put(&w.kv, "\0\1\2", 3);
    expect_refusal(&w, PLY_EFORMAT, "key k: a bool is neither 0 nor 1");
    ggufw_fini(&w);
}

/* B77 */
static void
wrong_types_of_tensors(void **state)
{
    static const struct {
        uint32_t type;
        const char *text;
    } rows[] = {
        {4, "tensor odd one has unsupported type 4 (Q4_2)"},
        {5, "tensor odd one has unsupported type 5 (Q4_3)"},
        {15, "tensor odd one has unsupported type 15 (Q8_K)"},
        {200, "tensor odd one has unsupported type 200"},
        {1u << 31, "tensor odd one has unsupported type 2147483648"},
        {0xffffffffu, "tensor odd one has unsupported type 4294967295"},
    };
    struct ggufw w;
    struct copy c;
    for (size_t i = 0; i < PLY_COUNT(rows); i++) {
        write_record(&w, 1, (uint64_t[]){32}, 1, rows[i].type, 0);
        expect_refusal(&w, PLY_EUNSUPPORTED, rows[i].text);
        ggufw_fini(&w);
    }
    /* One that we do not compute with but whose size is known: the file can be listed. */
    write_record(&w, 1, (uint64_t[]){256}, 1, 23, 0);
    assert_int_equal(open_writer(&c, &w), 0);
    assert_int_equal(ply_gguf_tensor_at(c.g, 0)->n_bytes, 136);
    close_copy(&c);
    ggufw_fini(&w);
}

static void
wrong_places_of_tensors(void **state)
{
    struct ggufw w;
    const uint64_t n[] = {32};
    static const uint64_t beyond[] = {160, 256, 1ull << 40, UINT64_MAX - 31};
    write_record(&w, 1, n, 1, PLY_TYPE_F32, 4);
    expect_refusal(&w, PLY_EFORMAT, "offset 4 is not a multiple of 32");
    ggufw_fini(&w);
    for (size_t i = 0; i < PLY_COUNT(beyond); i++) {
        write_record(&w, 1, n, 1, PLY_TYPE_F32, beyond[i]);
        expect_refusal(&w, PLY_EFORMAT, "tensor odd one: 128 bytes of data");
        ggufw_fini(&w);
    }
    /* Two tensors in the same bytes. */
    write_record(&w, 1, n, 1, PLY_TYPE_F32, 0);
    ggufw_put_str(&w.info, "other", 5);
    ggufw_put_int(&w.info, 1, 4);
    ggufw_put_int(&w.info, 8, 8);
    ggufw_put_int(&w.info, PLY_TYPE_F32, 4);
    ggufw_put_int(&w.info, 96, 8);
    w.n_tensors = 2;
    expect_refusal(&w, PLY_EFORMAT, "tensors odd one and other overlap");
    ggufw_fini(&w);
}

static void
names_that_occur_twice(void **state)
{
    struct ggufw w;
    write_sound(&w);
    ggufw_u32(&w, "u32", 5);
    expect_refusal(&w, PLY_EFORMAT, "key u32 occurs twice");
    ggufw_fini(&w);
    write_sound(&w);
    ggufw_tensor(&w, "vec", PLY_TYPE_F32, 1, (uint64_t[]){4}, NULL, 16);
    expect_refusal(&w, PLY_EFORMAT, "tensor vec occurs twice");
    ggufw_fini(&w);
}

static void
split_files(void **state)
{
    struct ggufw w;
    struct copy c;
    write_sound(&w);
    ggufw_int(&w, "split.count", PLY_GGUF_U16, 3);
    ggufw_int(&w, "split.no", PLY_GGUF_U16, 1);
    expect_refusal(&w, PLY_EUNSUPPORTED, "part 2 of a model split into 3 files");
    ggufw_fini(&w);
    write_sound(&w);
    ggufw_int(&w, "split.count", PLY_GGUF_U16, 1);
    assert_int_equal(open_writer(&c, &w), 0);
    close_copy(&c);
    ggufw_fini(&w);
}

/* Names from files are shown to people: no control byte may come through. */
static void
messages_are_clean(void **state)
{
    struct ggufw w;
    ggufw_init(&w);
    ggufw_int(&w, "\x1b[2J\x07", PLY_GGUF_BOOL, 7);
    expect_refusal(&w, PLY_EFORMAT, "key ?[2J?: a bool");
    ggufw_fini(&w);
}

/* ---- the operating system -------------------------------------------------------------- */

static void
files_that_are_none(void **state)
{
    struct ply_gguf *g;
    char dir[] = "/tmp/test_gguf.XXXXXX", fifo[64], empty[64];
    assert_non_null(mkdtemp(dir));
    snprintf(fifo, sizeof(fifo), "%s/fifo.gguf", dir);
    snprintf(empty, sizeof(empty), "%s/empty.gguf", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    FILE *f = fopen(empty, "w");
    assert_non_null(f);
    fclose(f);
    const struct {
        const char *path;
        int code;
        const char *text;
    } rows[] = {
        {"/nonexistent/model.gguf", PLY_ENOENT, "/nonexistent/model.gguf"},
        {dir, PLY_EIO, "not a regular file"},
        {fifo, PLY_EIO, "fifo.gguf: not a regular file"},
        {empty, PLY_EFORMAT, "empty.gguf: not a GGUF file"},
        {"/dev/null", PLY_EIO, "null: not a regular file"},
    };
    for (size_t i = 0; i < PLY_COUNT(rows); i++) {
        err = (struct ply_err){0};
        assert_int_equal(ply_gguf_open(&g, rows[i].path, &err), rows[i].code);
        assert_null(g);
        assert_non_null(strstr(err.msg, rows[i].text));
    }
    unlink(fifo);
    unlink(empty);
    rmdir(dir);
}

static void
a_model_on_disk(void **state)
{
    const char *dir = getenv("PLY_TEST_MODELS");
    struct ply_gguf *g;
    char path[4096];
    if (!dir)
        skip();
    snprintf(path, sizeof(path), "%s/gemma3-q4_k_m-spm-gemma.gguf", dir);
    assert_int_equal(ply_gguf_open(&g, path, &err), 0);
    assert_string_equal(ply_gguf_path(g), path);
    assert_int_equal(ply_gguf_n_tensors(g), 2 + 7 * 13);
    assert_int_equal(ply_gguf_tensor(g, "blk.3.ffn_down.weight")->type, PLY_TYPE_Q6_K);
    assert_memory_equal(ply_gguf_map(g), "GGUF", 4);
    read_all(g);
    ply_gguf_close(&g);
}

static void
memory_that_runs_out(void **state)
{
    struct ggufw w;
    struct ply_buf b = {0};
    write_sound(&w);
    ggufw_finish(&w, &b);
    int rc = PLY_ENOMEM;
    for (long n = 0; rc != 0 && n < 100; n++) {
        struct ply_gguf *g;
        err = (struct ply_err){0};
        fail_after = n;
        rc = ply_gguf_open_bytes(&g, "test.gguf", b.v, b.n, &err);
        fail_after = -1;
        assert_true(rc == 0 || rc == PLY_ENOMEM);
        assert_int_equal(err.code, rc);
        ply_gguf_close(&g);
    }
    assert_int_equal(rc, 0);
    ply_buf_fini(&b);
    ggufw_fini(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_files_say_what_was_written),
        cmocka_unit_test(values_that_cannot_be_are_errors),
        cmocka_unit_test(a_vocabulary_may_have_many_strings),
        cmocka_unit_test(names_may_hold_any_bytes),
        cmocka_unit_test(every_shortened_file_is_refused),
        cmocka_unit_test(every_changed_byte_is_survived),
        cmocka_unit_test(versions_and_magic),
        cmocka_unit_test(wrong_numbers_of_dimensions),
        cmocka_unit_test(wrong_alignments),
        cmocka_unit_test(impossible_shapes),
        cmocka_unit_test(impossible_lengths),
        cmocka_unit_test(impossible_counts),
        cmocka_unit_test(wrong_types_of_values),
        cmocka_unit_test(wrong_types_of_tensors),
        cmocka_unit_test(wrong_places_of_tensors),
        cmocka_unit_test(names_that_occur_twice),
        cmocka_unit_test(split_files),
        cmocka_unit_test(messages_are_clean),
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(a_model_on_disk),
        cmocka_unit_test(memory_that_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

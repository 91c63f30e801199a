/* SPDX-License-Identifier: MIT
 * See tok_proto.h for the format. */
#include "engine/tok_proto.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/cursor.h"
#include "engine/base/num.h"
#include "engine/tok.h"

enum kind { KIND_VARINT = 0, KIND_FIXED64 = 1, KIND_BYTES = 2, KIND_FIXED32 = 5 };

#define MODEL_UNIGRAM 1u
#define MODEL_BPE 2u

/* ---- writing --------------------------------------------------------------------------- */

static size_t
put_varint(uint8_t *out, uint64_t v)
{
    size_t n = 0;
    do {
        out[n++] = (uint8_t)((v & 0x7F) | (v > 0x7F ? 0x80 : 0));
        v >>= 7;
    } while (v);
    return n;
}

static size_t
put_key(uint8_t *out, unsigned field, enum kind kind)
{
    return put_varint(out, (uint64_t)field << 3 | (unsigned)kind);
}

static size_t
put_number(uint8_t *out, unsigned field, uint64_t v)
{
    const size_t n = put_key(out, field, KIND_VARINT);
    return n + put_varint(out + n, v);
}

/* A key and a length: the head of a message or bytes field. */
static size_t
put_head(uint8_t *out, unsigned field, uint64_t len)
{
    const size_t n = put_key(out, field, KIND_BYTES);
    return n + put_varint(out + n, len);
}

int
ply_proto_piece(struct ply_buf *b, const char *piece, size_t len, float score, int type)
{
    uint8_t outer[16], head[16], tail[16];
    const size_t n_head = put_head(head, 1, len);
    size_t n_tail = put_key(tail, 2, KIND_FIXED32);
    uint32_t bits;
    memcpy(&bits, &score, 4);
    for (unsigned i = 0; i < 4; i++)
        tail[n_tail++] = (uint8_t)(bits >> (8 * i));
    n_tail += put_number(tail + n_tail, 3, (uint64_t)type);
    const size_t n_outer = put_head(outer, 1, n_head + len + n_tail);
    /* Reserved at once: the appends cannot fail half way. */
    if (ply_buf_reserve(b, n_outer + n_head + len + n_tail) != PLY_OK)
        return PLY_ENOMEM;
    ply_buf_append(b, outer, n_outer);
    ply_buf_append(b, head, n_head);
    ply_buf_append(b, piece, len);
    ply_buf_append(b, tail, n_tail);
    return PLY_OK;
}

int
ply_proto_tail(struct ply_buf *b, uint32_t unk, bool byte_fallback, struct ply_str charsmap)
{
    static const char name[] = "identity";
    uint8_t trainer[32], outer[16], head[32], flags[16];
    size_t n_trainer = put_number(trainer, 3, MODEL_BPE);
    n_trainer += put_number(trainer + n_trainer, 35, byte_fallback);
    n_trainer += put_number(trainer + n_trainer, 40, unk);
    size_t n_outer = put_head(outer, 2, n_trainer);
    if (ply_buf_append(b, outer, n_outer) != PLY_OK ||
        ply_buf_append(b, trainer, n_trainer) != PLY_OK)
        return PLY_ENOMEM;

    size_t n_head = put_head(head, 1, sizeof(name) - 1);
    memcpy(head + n_head, name, sizeof(name) - 1);
    n_head += sizeof(name) - 1;
    if (charsmap.n > 0)
        n_head += put_head(head + n_head, 2, charsmap.n);
    size_t n_flags = put_number(flags, 3, 0);
    n_flags += put_number(flags + n_flags, 4, 0);
    n_flags += put_number(flags + n_flags, 5, 1);
    n_outer = put_head(outer, 3, n_head + charsmap.n + n_flags);
    if (ply_buf_append(b, outer, n_outer) != PLY_OK || ply_buf_append(b, head, n_head) != PLY_OK ||
        ply_buf_append(b, charsmap.s, charsmap.n) != PLY_OK ||
        ply_buf_append(b, flags, n_flags) != PLY_OK)
        return PLY_ENOMEM;
    return PLY_OK;
}

/* ---- reading --------------------------------------------------------------------------- */

struct field {
    uint64_t number;
    enum kind kind;
    uint64_t value;        /* VARINT, FIXED32 */
    struct ply_cursor sub; /* BYTES: over the content */
};

static uint64_t
take_varint(struct ply_cursor *c)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint8_t b = ply_cursor_u8(c);
        v |= (uint64_t)(b & 0x7F) << shift;
        if (!(b & 0x80))
            return v;
    }
    ply_cursor_fail(c, "a number is too long");
    return 0;
}

/* The next field; false at the end or at a fault, which c holds. */
static bool
next_field(struct ply_cursor *c, struct field *f)
{
    if (!ply_cursor_ok(c) || c->pos >= c->size)
        return false;
    const uint64_t key = take_varint(c);
    *f = (struct field){.number = key >> 3, .kind = (enum kind)(key & 7)};
    switch (f->kind) {
    case KIND_VARINT: f->value = take_varint(c); break;
    case KIND_FIXED64: f->value = ply_cursor_u64(c); break;
    case KIND_FIXED32: f->value = ply_cursor_u32(c); break;
    case KIND_BYTES: {
        const uint64_t n = take_varint(c);
        const uint8_t *p = ply_cursor_take(c, n);
        if (p)
            ply_cursor_init(&f->sub, p, (size_t)n);
        break;
    }
    default: ply_cursor_fail(c, "a field of an unknown kind");
    }
    return ply_cursor_ok(c);
}

static void
read_piece(struct ply_tok_src *s, struct ply_cursor *piece, struct ply_cursor *top)
{
    struct field f;
    uint64_t type = PLY_TOK_NORMAL;
    float score = 0;
    struct ply_str str = {"", 0};
    while (next_field(piece, &f)) {
        if (f.number == 1 && f.kind == KIND_BYTES) {
            str = (struct ply_str){(const char *)f.sub.base, f.sub.size};
        } else if (f.number == 2 && f.kind == KIND_FIXED32) {
            const uint32_t bits = (uint32_t)f.value;
            memcpy(&score, &bits, 4);
        } else if (f.number == 3 && f.kind == KIND_VARINT) {
            type = f.value;
        }
    }
    if (!ply_cursor_ok(piece) || type < PLY_TOK_NORMAL || type > PLY_TOK_BYTE || isnan(score)) {
        ply_cursor_fail(top, "a piece is malformed");
        return;
    }
    s->own_str[s->n] = str;
    s->score[s->n] = score;
    s->attr[s->n] = (uint8_t)type;
    s->n++;
}

static void
read_trainer(struct ply_tok_src *s, struct ply_cursor *c, uint64_t *model_type)
{
    struct field f;
    while (next_field(c, &f)) {
        if (f.kind != KIND_VARINT)
            continue;
        if (f.number == 3)
            *model_type = f.value;
        else if (f.number == 40)
            s->unk = (int32_t)f.value;
        else if (f.number == 41)
            s->bos = (int32_t)f.value;
        else if (f.number == 42)
            s->eos = (int32_t)f.value;
    }
}

static void
read_normalizer(struct ply_tok_src *s, struct ply_cursor *c)
{
    struct field f;
    while (next_field(c, &f)) {
        if (f.number == 2 && f.kind == KIND_BYTES)
            s->charsmap = (struct ply_str){(const char *)f.sub.base, f.sub.size};
        else if (f.number == 3 && f.kind == KIND_VARINT)
            s->space_prefix = f.value != 0;
    }
}

static void
read_fields(struct ply_tok_src *s, struct ply_cursor *c, uint64_t *model_type)
{
    struct field f;
    while (next_field(c, &f)) {
        if (f.kind != KIND_BYTES)
            continue;
        if (f.number == 1)
            read_piece(s, &f.sub, c);
        else if (f.number == 2)
            read_trainer(s, &f.sub, model_type);
        else if (f.number == 3)
            read_normalizer(s, &f.sub);
    }
}

/* How many pieces there are, so that the tables are allocated for bytes that were seen. */
static size_t
count_pieces(struct ply_cursor c)
{
    struct field f;
    size_t n = 0;
    while (next_field(&c, &f))
        n += f.number == 1 && f.kind == KIND_BYTES;
    return n;
}

static void
drop_wrong_id(int32_t *id, uint32_t n)
{
    if (*id < 0 || (uint32_t)*id >= n)
        *id = -1;
}

int
ply_proto_read(struct ply_tok_src *s, const void *bytes, size_t n, struct ply_err *err)
{
    struct ply_cursor c;
    ply_cursor_init(&c, bytes, n);
    const size_t n_pieces = count_pieces(c);
    if (n_pieces == 0 || n_pieces > INT32_MAX / 4)
        return ply_fail(err, PLY_EFORMAT, "not a SentencePiece model: it has %zu pieces", n_pieces);
    s->own_str = calloc(n_pieces, sizeof(*s->own_str));
    s->score = calloc(n_pieces, sizeof(*s->score));
    s->attr = calloc(n_pieces, 1);
    s->str = s->own_str;
    if (!s->own_str || !s->score || !s->attr)
        return ply_fail(err, PLY_ENOMEM, "out of memory for %zu pieces", n_pieces);
    /* The proto's defaults. */
    uint64_t model_type = MODEL_UNIGRAM;
    s->space_prefix = true;
    s->unk = 0;
    s->bos = 1;
    s->eos = 2;
    read_fields(s, &c, &model_type);
    if (!ply_cursor_ok(&c))
        return ply_fail(err, PLY_EFORMAT, "not a SentencePiece model: %s, at byte %zu", c.fault,
                        c.fault_pos);
    if (model_type != MODEL_BPE)
        return ply_fail(err, PLY_EUNSUPPORTED,
                        "a SentencePiece model of kind %llu; supported is BPE (kind %u)",
                        (unsigned long long)model_type, MODEL_BPE);
    drop_wrong_id(&s->unk, s->n);
    drop_wrong_id(&s->bos, s->n);
    drop_wrong_id(&s->eos, s->n);
    return PLY_OK;
}

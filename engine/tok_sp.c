/* SPDX-License-Identifier: MIT
 * SentencePiece as parley uses it: what is put into its model, and what is kept from it.
 *
 * Into the model go the pieces that text may become. Every other piece (control, unknown but
 * one, ill-formed, empty, a second of the same text) keeps its place under a name that no
 * text can contain, so that ids stay what they are and none of these comes out. User-defined
 * pieces hold plain spaces in a GGUF, but the library escapes spaces before it looks for
 * them: they are stored escaped.
 *
 * Ill-formed bytes and NUL never reach the library. Where the vocabulary has a piece for
 * every byte they become those pieces, so that a text's bytes survive whole; else, as all
 * characters that cannot be said, they become U+FFFD, or nothing where that cannot be said
 * either. The space before a text is put there here, once, because the library would put
 * one before every part. */
#include "engine/tok_impl.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "engine/base/num.h"
#include "engine/base/utf8.h"
#include "engine/tok.h"
#include "engine/tok_cut.h"
#include "engine/tok_proto.h"
#include "engine/tok_spm.h"

#define ESCAPED_SPACE "\xE2\x96\x81"
#define PART_BYTES 4096u
#define PIECE_MAX (1u << 16)

struct ply_sp {
    struct ply_spm *spm;
    struct ply_cut cut;
    int32_t byte_id[256];
    bool all_bytes;
    int32_t unk;
    bool space_prefix;
    size_t part_bytes;          /* text handed to the library at once, if it can be cut */
    struct ply_ids replacement; /* what stands for characters that cannot be said; may be empty */
};

int
ply_sp_byte(struct ply_str piece)
{
    static const char digits[] = "0123456789ABCDEF";
    if (piece.n != 6 || memcmp(piece.s, "<0x", 3) != 0 || piece.s[5] != '>')
        return -1;
    const char *hi = memchr(digits, piece.s[3], 16), *lo = memchr(digits, piece.s[4], 16);
    return hi && lo ? (int)((hi - digits) * 16 + (lo - digits)) : -1;
}

/* ---- the model ------------------------------------------------------------------------- */

/* A set of hashes of texts. A chance collision would hide one piece; they are 2^-64. */
struct seen {
    uint64_t *v;
    size_t mask;
};

static bool
seen_add(struct seen *s, const char *text, size_t len)
{
    uint64_t h = XXH3_64bits(text, len);
    h += h == 0;
    size_t i = (size_t)(h & s->mask);
    for (; s->v[i] != 0; i = (i + 1) & s->mask) {
        if (s->v[i] == h)
            return false;
    }
    s->v[i] = h;
    return true;
}

/* The pieces' texts as the library is to see them. */
struct model {
    struct ply_buf proto;
    struct ply_buf text; /* of the piece at hand, escaped */
    struct seen seen;
};

static int
escape_spaces(struct ply_buf *out, struct ply_str s)
{
    out->n = 0;
    for (size_t i = 0; i < s.n; i++) {
        const bool space = s.s[i] == ' ';
        const int rc = ply_buf_append(out, space ? ESCAPED_SPACE : s.s + i, space ? 3 : 1);
        if (rc != PLY_OK)
            return rc;
    }
    return PLY_OK;
}

static bool
can_be_text(struct ply_str s)
{
    return s.n > 0 && s.n <= PIECE_MAX && !memchr(s.s, 0, s.n) && ply_utf8_valid(s.s, s.n);
}

static int
add_hidden(struct model *m, uint32_t id, float score, int type)
{
    char name[16] = "\xFF"; /* no UTF-8 */
    size_t n = 1;
    for (uint32_t v = id; n == 1 || v > 0; v /= 10)
        name[n++] = (char)('0' + v % 10);
    return ply_proto_piece(&m->proto, name, n, score, type);
}

static int
add_piece(struct ply_sp *sp, struct model *m, const struct ply_tok_src *src, uint32_t id)
{
    const uint8_t attr = src->attr[id];
    const float score = src->score[id];
    struct ply_str s = src->str[id];
    if ((int32_t)id == sp->unk)
        return add_hidden(m, id, score, PLY_TOK_UNKNOWN);
    if (attr == PLY_TOK_BYTE) {
        const int byte = ply_sp_byte(s);
        if (sp->all_bytes && byte >= 0 && sp->byte_id[byte] == (int32_t)id)
            return ply_proto_piece(&m->proto, s.s, s.n, score, PLY_TOK_BYTE);
        return add_hidden(m, id, score, PLY_TOK_CONTROL);
    }
    const bool is_text = attr == PLY_TOK_NORMAL || attr == PLY_TOK_USER || attr == PLY_TOK_UNUSED;
    if (!is_text || !can_be_text(s))
        return add_hidden(m, id, score, PLY_TOK_CONTROL);
    if (attr == PLY_TOK_USER) {
        if (escape_spaces(&m->text, s) != PLY_OK)
            return PLY_ENOMEM;
        s = (struct ply_str){m->text.v, m->text.n};
    }
    if (!seen_add(&m->seen, s.s, s.n))
        return add_hidden(m, id, score, PLY_TOK_CONTROL);
    ply_cut_add(&sp->cut, s.s, s.n);
    return ply_proto_piece(&m->proto, s.s, s.n, score, attr);
}

static int
build(struct ply_sp *sp, struct model *m, const struct ply_tok_src *src)
{
    size_t size = 16;
    while (size < 2 * (size_t)src->n)
        size *= 2;
    m->seen = (struct seen){calloc(size, sizeof(*m->seen.v)), size - 1};
    if (!m->seen.v)
        return PLY_ENOMEM;
    for (uint32_t id = 0; id < src->n; id++) {
        const int rc = add_piece(sp, m, src, id);
        if (rc != PLY_OK)
            return rc;
    }
    uint32_t unk = (uint32_t)sp->unk;
    if (sp->unk < 0) { /* the library insists on one; its id is past the vocabulary's */
        unk = src->n;
        sp->unk = (int32_t)src->n;
        if (add_hidden(m, unk, 0, PLY_TOK_UNKNOWN) != PLY_OK)
            return PLY_ENOMEM;
    }
    return ply_proto_tail(&m->proto, unk, sp->all_bytes, src->charsmap);
}

/* ---- open ------------------------------------------------------------------------------ */

static void
find_bytes(struct ply_sp *sp, const struct ply_tok_src *src)
{
    memset(sp->byte_id, 0xFF, sizeof(sp->byte_id));
    for (uint32_t id = 0; id < src->n; id++) {
        const int byte = src->attr[id] == PLY_TOK_BYTE ? ply_sp_byte(src->str[id]) : -1;
        if (byte >= 0 && sp->byte_id[byte] < 0)
            sp->byte_id[byte] = (int32_t)id;
    }
    sp->all_bytes = true;
    for (int i = 0; i < 256; i++)
        sp->all_bytes = sp->all_bytes && sp->byte_id[i] >= 0;
}

static int
find_replacement(struct ply_sp *sp, struct ply_err *err)
{
    const int rc = ply_spm_encode(sp->spm, "\xEF\xBF\xBD", 3, &sp->replacement, err);
    for (size_t i = 0; i < sp->replacement.n; i++) {
        if (sp->replacement.v[i] == sp->unk)
            sp->replacement.n = 0;
    }
    return rc;
}

int
ply_sp_open(struct ply_sp **out, const struct ply_tok_src *src, struct ply_err *err)
{
    *out = NULL;
    struct ply_sp *sp = calloc(1, sizeof(*sp));
    if (!sp)
        return ply_fail(err, PLY_ENOMEM, "out of memory");
    sp->unk = src->unk;
    sp->space_prefix = src->space_prefix;
    /* Pairs of characters are those of pieces: a normalisation could join what they keep apart. */
    sp->part_bytes = src->charsmap.n > 0 ? SIZE_MAX : PART_BYTES;
    find_bytes(sp, src);
    struct model m = {0};
    int rc = ply_cut_init(&sp->cut);
    if (rc == PLY_OK)
        rc = build(sp, &m, src);
    if (rc != PLY_OK)
        ply_fail(err, rc, "out of memory for the tokenizer's pieces");
    if (rc == PLY_OK)
        rc = ply_spm_open(&sp->spm, m.proto.v, m.proto.n, err);
    ply_buf_fini(&m.proto);
    ply_buf_fini(&m.text);
    free(m.seen.v);
    if (rc == PLY_OK)
        rc = find_replacement(sp, err);
    if (rc != PLY_OK)
        ply_sp_close(&sp);
    *out = sp;
    return rc;
}

void
ply_sp_close(struct ply_sp **s)
{
    struct ply_sp *sp = *s;
    if (!sp)
        return;
    ply_spm_close(&sp->spm);
    ply_cut_fini(&sp->cut);
    ply_ids_fini(&sp->replacement);
    free(sp);
    *s = NULL;
}

bool
ply_sp_lossy(const struct ply_sp *sp)
{
    return !sp->all_bytes && sp->replacement.n == 0;
}

/* ---- encode ---------------------------------------------------------------------------- */

/* A run of well-formed text; the library's unknown id gives way to what stands for it. */
static int
encode_run(const struct ply_sp *sp, const char *text, size_t len, struct ply_ids *out,
           struct ply_err *err)
{
    const size_t from = out->n;
    const int rc = ply_spm_encode(sp->spm, text, len, out, err);
    if (rc != PLY_OK || sp->all_bytes)
        return rc;
    struct ply_ids fixed = {0};
    int grown = PLY_OK;
    for (size_t i = from; i < out->n && grown == PLY_OK; i++)
        grown = out->v[i] == sp->unk ? ply_ids_append(&fixed, sp->replacement.v, sp->replacement.n)
                                     : ply_ids_push(&fixed, out->v[i]);
    out->n = from;
    if (grown == PLY_OK)
        grown = ply_ids_append(out, fixed.v, fixed.n);
    ply_ids_fini(&fixed);
    return grown == PLY_OK ? PLY_OK : ply_fail(err, grown, "out of memory");
}

/* The first part of a text, with the space before it. */
static int
encode_first(const struct ply_sp *sp, const char *text, size_t len, struct ply_ids *out,
             struct ply_err *err)
{
    struct ply_buf b = {0};
    int rc = ply_buf_reserve(&b, len + 1);
    if (rc == PLY_OK) {
        ply_buf_append(&b, " ", 1);
        ply_buf_append(&b, text, len);
        rc = encode_run(sp, b.v, b.n, out, err);
    } else {
        rc = ply_fail(err, rc, "out of memory for a text of %zu bytes", len);
    }
    ply_buf_fini(&b);
    return rc;
}

/* One NUL or ill-formed part of n bytes. */
static int
encode_bytes(const struct ply_sp *sp, const char *text, size_t n, struct ply_ids *out)
{
    if (!sp->all_bytes)
        return ply_ids_append(out, sp->replacement.v, sp->replacement.n);
    for (size_t i = 0; i < n; i++) {
        if (ply_ids_push(out, sp->byte_id[(uint8_t)text[i]]) != PLY_OK)
            return PLY_ENOMEM;
    }
    return PLY_OK;
}

int
ply_sp_encode(const struct ply_sp *sp, const char *text, size_t len, bool begins,
              struct ply_ids *out, struct ply_err *err)
{
    const size_t n_before = out->n;
    bool space = begins && sp->space_prefix && len > 0;
    int rc = PLY_OK;
    for (size_t i = 0; i < len && rc == PLY_OK;) {
        const size_t part = ply_cut_part(&sp->cut, text + i, len - i, sp->part_bytes);
        if (space)
            rc = encode_first(sp, text + i, part, out, err);
        else if (part > 0)
            rc = encode_run(sp, text + i, part, out, err);
        space = false;
        i += part;
        if (rc != PLY_OK || part > 0)
            continue;
        uint32_t cp;
        const size_t n = (size_t)abs(ply_utf8_decode(text + i, len - i, &cp));
        if (encode_bytes(sp, text + i, n, out) != PLY_OK)
            rc = ply_fail(err, PLY_ENOMEM, "out of memory for a text of %zu bytes", len);
        i += n;
    }
    if (rc != PLY_OK)
        out->n = n_before;
    return rc;
}

/* SPDX-License-Identifier: MIT
 * The scanners of tok_pre.h. L, N and P are Unicode's general categories; S is the property
 * White_Space (what \s means in the models' regular expressions), not the category of
 * separators. Above each scanner stands the expression that it is.
 *
 * A scanner sees the text up to `end` only: to a lookahead, `end` is the end of the text. */
#include "engine/tok_pre.h"

#include <stdint.h>
#include <string.h>

#include <utf8proc.h>

#include "engine/base/num.h"
#include "engine/base/utf8.h"

enum cls { CLS_END, CLS_OTHER, CLS_PUNCT, CLS_L, CLS_N, CLS_S };

struct chr {
    uint32_t cp;
    enum cls cls;
    size_t len; /* bytes; 0 at the end */
};

static const struct {
    const char *name;
    enum ply_pre_kind kind;
} names[] = {
    {"smollm", PLY_PRE_DIGITS},    {"gpt-2", PLY_PRE_GPT2},      {"llama-bpe", PLY_PRE_LLAMA3},
    {"llama3", PLY_PRE_LLAMA3},    {"llama-v3", PLY_PRE_LLAMA3}, {"qwen2", PLY_PRE_QWEN2},
    {"starcoder", PLY_PRE_DIGITS}, {"refact", PLY_PRE_DIGITS},   {"default", PLY_PRE_DEFAULT},
};

bool
ply_pre_find(const char *name, size_t len, enum ply_pre_kind *kind)
{
    for (size_t i = 0; i < PLY_COUNT(names); i++) {
        if (strlen(names[i].name) == len && memcmp(names[i].name, name, len) == 0) {
            *kind = names[i].kind;
            return true;
        }
    }
    return false;
}

const char *
ply_pre_known(void)
{
    return "smollm, gpt-2, llama-bpe, llama3, llama-v3, qwen2, starcoder, refact, default";
}

bool
ply_pre_whole_words(enum ply_pre_kind kind)
{
    return kind == PLY_PRE_LLAMA3;
}

/* ---- characters ------------------------------------------------------------------------ */

static bool
is_white_space(uint32_t cp)
{
    switch (cp) {
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000: return true;
    default: return cp == ' ' || (cp >= 0x09 && cp <= 0x0D) || (cp >= 0x2000 && cp <= 0x200A);
    }
}

static enum cls
class_of(uint32_t cp)
{
    if (is_white_space(cp))
        return CLS_S;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CLS_L;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CLS_N;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return CLS_PUNCT;
    default: return CLS_OTHER;
    }
}

static struct chr
chr_at(const char *text, size_t pos, size_t end)
{
    if (pos >= end)
        return (struct chr){0, CLS_END, 0};
    const unsigned char b = (unsigned char)text[pos];
    if (b >= 'a' && b <= 'z') /* most of most texts */
        return (struct chr){b, CLS_L, 1};
    uint32_t cp;
    const int len = ply_utf8_decode(text + pos, end - pos, &cp);
    if (len < 0)
        return (struct chr){0xFFFD, CLS_OTHER, (size_t)-len};
    return (struct chr){cp, class_of(cp), (size_t)len};
}

/* [^\s\p{L}\p{N}] */
static bool
is_symbol(enum cls c)
{
    return c == CLS_OTHER || c == CLS_PUNCT;
}

/* The end of the run of characters of one class that begins at pos. */
static size_t
run_of(const char *text, size_t pos, size_t end, enum cls cls)
{
    for (;;) {
        const struct chr c = chr_at(text, pos, end);
        if (c.cls != cls)
            return pos;
        pos += c.len;
    }
}

static size_t
run_of_symbols(const char *text, size_t pos, size_t end)
{
    for (;;) {
        const struct chr c = chr_at(text, pos, end);
        if (!is_symbol(c.cls))
            return pos;
        pos += c.len;
    }
}

static uint32_t
lower(uint32_t cp)
{
    if (cp >= 'A' && cp <= 'Z')
        return cp + ('a' - 'A');
    return cp == 0x17F ? 's' : cp; /* the long s folds to s; no other character folds to these */
}

/* 's|'t|'re|'ve|'m|'ll|'d at pos, where the apostrophe stands: its end, or pos when there is
 * none. fold: (?i:...) */
static size_t
contraction(const char *text, size_t pos, size_t end, bool fold)
{
    const struct chr a = chr_at(text, pos + 1, end);
    const struct chr b = chr_at(text, pos + 1 + a.len, end);
    const uint32_t x = fold ? lower(a.cp) : a.cp, y = fold ? lower(b.cp) : b.cp;
    if (x == 's' || x == 't' || x == 'm' || x == 'd')
        return pos + 1 + a.len;
    if ((x == 'r' && y == 'e') || (x == 'v' && y == 'e') || (x == 'l' && y == 'l'))
        return pos + 1 + a.len + b.len;
    return pos;
}

/* \s+(?!\S)|\s+ at pos, where a space character stands: the whole run where it ends the text,
 * else all but its last character, else that one. */
static size_t
spaces(const char *text, size_t pos, size_t end)
{
    size_t last = pos, p = pos;
    for (;;) {
        const struct chr c = chr_at(text, p, end);
        if (c.cls == CLS_END)
            return p;
        if (c.cls != CLS_S)
            return last > pos ? last : p;
        last = p;
        p += c.len;
    }
}

/* ---- scanners: the end of the word that begins at pos, pos < end ------------------------ */

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static size_t
gpt2_word(const char *text, size_t pos, size_t end)
{
    struct chr c = chr_at(text, pos, end);
    if (c.cp == '\'') {
        const size_t e = contraction(text, pos, end, false);
        if (e > pos)
            return e;
    }
    size_t at = pos;
    if (c.cp == ' ') {
        const struct chr next = chr_at(text, pos + 1, end);
        if (next.cls != CLS_END && next.cls != CLS_S) {
            at++;
            c = next;
        }
    }
    if (c.cls == CLS_S)
        return spaces(text, pos, end);
    if (is_symbol(c.cls))
        return run_of_symbols(text, at, end);
    return run_of(text, at, end, c.cls);
}

/* The end of the last CR or LF in the run of space characters at pos; pos when it has none. */
static size_t
line_ends(const char *text, size_t pos, size_t end)
{
    size_t e = pos;
    for (size_t p = pos;;) {
        const struct chr c = chr_at(text, p, end);
        if (c.cls != CLS_S)
            return e;
        p += c.len;
        if (c.cp == '\n' || c.cp == '\r')
            e = p;
    }
}

static size_t
numbers(const char *text, size_t pos, size_t end, unsigned max)
{
    for (unsigned i = 0; i < max; i++) {
        const struct chr c = chr_at(text, pos, end);
        if (c.cls != CLS_N)
            break;
        pos += c.len;
    }
    return pos;
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,max}|
 *  ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t
llama3_word(const char *text, size_t pos, size_t end, unsigned max)
{
    const struct chr c = chr_at(text, pos, end);
    if (c.cp == '\'') {
        const size_t e = contraction(text, pos, end, true);
        if (e > pos)
            return e;
    }
    if (c.cls == CLS_L)
        return run_of(text, pos, end, CLS_L);
    if (c.cls == CLS_N)
        return numbers(text, pos, end, max);
    const struct chr next = chr_at(text, pos + c.len, end);
    if (next.cls == CLS_L && c.cp != '\r' && c.cp != '\n')
        return run_of(text, pos + c.len, end, CLS_L);
    if (is_symbol(c.cls) || (c.cp == ' ' && is_symbol(next.cls))) {
        size_t e = run_of_symbols(text, c.cp == ' ' ? pos + 1 : pos, end);
        while (e < end && (text[e] == '\n' || text[e] == '\r'))
            e++;
        return e;
    }
    const size_t e = line_ends(text, pos, end);
    return e > pos ? e : spaces(text, pos, end);
}

/* [\p{P}\$\+<=>\^~\|] */
static bool
is_default_punct(struct chr c)
{
    return c.cls == CLS_PUNCT ||
           (c.cls != CLS_END && c.cp < 0x80 && c.cp > 0 && strchr("$+<=>^~|", (int)c.cp) != NULL);
}

/* [0-9][0-9][0-9] in a run of number characters: the first such three if they are at pos, else
 * what stands before them. */
static size_t
threes(const char *text, size_t pos, size_t end)
{
    size_t digits = 0;
    for (size_t p = pos; p < end; p++) {
        digits = text[p] >= '0' && text[p] <= '9' ? digits + 1 : 0;
        if (digits == 3)
            return p + 1 - 3 > pos ? p + 1 - 3 : p + 1;
    }
    return end;
}

/* Four expressions one after the other, each cutting what the one before left:
 *   [\p{P}\$\+<=>\^~\|]+    gpt-2's    \p{N}+    [0-9][0-9][0-9] */
static size_t
default_word(struct ply_pre *p)
{
    if (p->pos < p->digits_end)
        return threes(p->text, p->pos, p->digits_end);
    if (p->pos >= p->part_end) {
        struct chr c = chr_at(p->text, p->pos, p->len);
        const bool punct = is_default_punct(c);
        size_t e = p->pos;
        while (c.cls != CLS_END && is_default_punct(c) == punct) {
            e += c.len;
            c = chr_at(p->text, e, p->len);
        }
        p->part_end = e;
    }
    const size_t e = gpt2_word(p->text, p->pos, p->part_end);
    if (chr_at(p->text, p->pos, e).cls == CLS_N) {
        p->digits_end = e;
        return threes(p->text, p->pos, e);
    }
    /* A word of numbers may begin with a space, which \p{N}+ then cuts off. */
    if (p->text[p->pos] == ' ' && chr_at(p->text, p->pos + 1, e).cls == CLS_N) {
        p->digits_end = e;
        return p->pos + 1;
    }
    return e;
}

/* \p{N} cuts the text, then gpt-2's expression what is between the numbers. */
static size_t
digits_word(struct ply_pre *p)
{
    const struct chr c = chr_at(p->text, p->pos, p->len);
    if (c.cls == CLS_N)
        return p->pos + c.len;
    if (p->pos >= p->part_end) {
        struct chr d = c;
        size_t e = p->pos;
        while (d.cls != CLS_END && d.cls != CLS_N) {
            e += d.len;
            d = chr_at(p->text, e, p->len);
        }
        p->part_end = e;
    }
    return gpt2_word(p->text, p->pos, p->part_end);
}

void
ply_pre_init(struct ply_pre *p, enum ply_pre_kind kind, const char *text, size_t len)
{
    *p = (struct ply_pre){.kind = kind, .text = text, .len = len};
}

bool
ply_pre_next(struct ply_pre *p, size_t *start, size_t *end)
{
    if (p->pos >= p->len)
        return false;
    *start = p->pos;
    switch (p->kind) {
    case PLY_PRE_GPT2: p->pos = gpt2_word(p->text, p->pos, p->len); break;
    case PLY_PRE_DIGITS: p->pos = digits_word(p); break;
    case PLY_PRE_LLAMA3: p->pos = llama3_word(p->text, p->pos, p->len, 3); break;
    case PLY_PRE_QWEN2: p->pos = llama3_word(p->text, p->pos, p->len, 1); break;
    case PLY_PRE_DEFAULT: p->pos = default_word(p); break;
    }
    *end = p->pos;
    return true;
}

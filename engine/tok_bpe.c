/* SPDX-License-Identifier: MIT
 * Byte-level byte-pair encoding. A word (tok_pre.h) starts as one symbol a byte; the adjacent
 * pair of the lowest merge rank, the leftmost of equals, becomes one symbol until no pair has
 * a rank. A heap of candidate pairs over a linked list of symbols makes that n log n.
 *
 * User-defined pieces are cut out of the text first, the longest at each place. A character
 * with a byte that the vocabulary has no piece for is read as U+FFFD, so that the model sees
 * that something stood there; where U+FFFD's own bytes are missing too, it is left out.
 * Neither becomes the file's unknown id: that may be a control id. */
#include "engine/tok_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <xxhash.h>

#include "engine/base/num.h"
#include "engine/base/utf8.h"
#include "engine/tok.h"
#include "engine/tok_pre.h"

#define NONE UINT32_MAX
#define USER_PIECE_MAX 1024u /* bytes; longer user-defined pieces are no words of anyone */
#define WORD_ON_STACK 64u

static const char replacement[3] = {'\xEF', '\xBF', '\xBD'};

struct merge {
    int32_t left, right; /* left -1: an empty slot */
    uint32_t rank;
    int32_t id;
};

struct ply_bpe {
    const struct ply_pieces *pieces;
    enum ply_pre_kind pre;
    uint64_t seed;
    uint32_t *by_bytes; /* open addressing: ids of normal pieces, NONE empty */
    uint32_t by_bytes_mask;
    struct merge *merges; /* open addressing by (left, right) */
    uint32_t merges_mask;
    int32_t byte_id[256]; /* -1: the vocabulary has no such piece */
    bool all_bytes, has_replacement;
    uint32_t *user; /* [n_user] ids of user-defined pieces in the order of their bytes */
    size_t n_user;
    uint8_t user_first[256]; /* some user-defined piece begins with this byte */
    /* Bit y of row x: bytes x, y stand side by side in some piece. Where two do not, no symbol
     * spans them, and a long word is merged in parts that stay in the processor's caches. */
    uint64_t pairs[256][4];
};

int
ply_bpe_alphabet(uint32_t cp)
{
    if ((cp >= 0x21 && cp <= 0x7E) || (cp >= 0xA1 && cp <= 0xAC) || (cp >= 0xAE && cp <= 0xFF))
        return (int)cp;
    if (cp >= 0x100 && cp <= 0x120)
        return (int)(cp - 0x100); /* 00..20 */
    if (cp >= 0x121 && cp <= 0x142)
        return (int)(cp - 0x121 + 0x7F); /* 7F..A0 */
    return cp == 0x143 ? 0xAD : -1;
}

/* ---- the table of pieces --------------------------------------------------------------- */

static uint32_t
table_size(uint64_t n)
{
    uint32_t size = 16;
    while (size < 2 * n)
        size *= 2;
    return size;
}

static uint32_t *
bytes_slot(const struct ply_bpe *b, const char *s, size_t len)
{
    uint32_t i = (uint32_t)XXH3_64bits_withSeed(s, len, b->seed) & b->by_bytes_mask;
    for (;; i = (i + 1) & b->by_bytes_mask) {
        const uint32_t id = b->by_bytes[i];
        if (id == NONE)
            return &b->by_bytes[i];
        size_t n;
        const char *p = ply_pieces_at(b->pieces, (int32_t)id, &n);
        if (n == len && memcmp(p, s, n) == 0)
            return &b->by_bytes[i];
    }
}

static int32_t
find_piece(const struct ply_bpe *b, const char *s, size_t len)
{
    const uint32_t id = *bytes_slot(b, s, len);
    return id == NONE ? -1 : (int32_t)id;
}

static bool
stand_together(const struct ply_bpe *b, char x, char y)
{
    return b->pairs[(uint8_t)x][(uint8_t)y / 64] >> (uint8_t)y % 64 & 1;
}

static int
index_pieces(struct ply_bpe *b)
{
    const struct ply_pieces *p = b->pieces;
    const uint32_t size = table_size(p->n);
    b->by_bytes = malloc((size_t)size * sizeof(*b->by_bytes));
    if (!b->by_bytes)
        return PLY_ENOMEM;
    memset(b->by_bytes, 0xFF, (size_t)size * sizeof(*b->by_bytes));
    b->by_bytes_mask = size - 1;
    for (uint32_t id = 0; id < p->n; id++) {
        size_t len;
        const char *s = ply_pieces_at(p, (int32_t)id, &len);
        if ((p->attr[id] != PLY_TOK_NORMAL && p->attr[id] != PLY_TOK_BYTE) || len == 0)
            continue;
        uint32_t *slot = bytes_slot(b, s, len);
        if (*slot != NONE) /* of two equal pieces the first is meant */
            continue;
        *slot = id;
        for (size_t i = 1; i < len; i++)
            b->pairs[(uint8_t)s[i - 1]][(uint8_t)s[i] / 64] |= (uint64_t)1 << (uint8_t)s[i] % 64;
    }
    b->all_bytes = true;
    for (int i = 0; i < 256; i++) {
        const char c = (char)i;
        b->byte_id[i] = find_piece(b, &c, 1);
        b->all_bytes = b->all_bytes && b->byte_id[i] >= 0;
    }
    b->has_replacement = true;
    for (int i = 0; i < 3; i++)
        b->has_replacement = b->has_replacement && b->byte_id[(uint8_t)replacement[i]] >= 0;
    return PLY_OK;
}

/* ---- merges ---------------------------------------------------------------------------- */

static struct merge *
merge_slot(const struct ply_bpe *b, int32_t left, int32_t right)
{
    /* An odd random factor, so that no file can choose pairs that all collide. */
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    const uint64_t h = (key ^ key >> 29) * (b->seed | 1);
    uint32_t i = (uint32_t)(h >> 32) & b->merges_mask;
    for (;; i = (i + 1) & b->merges_mask) {
        struct merge *m = &b->merges[i];
        if (m->left < 0 || (m->left == left && m->right == right))
            return m;
    }
}

static const struct merge *
find_merge(const struct ply_bpe *b, int32_t left, int32_t right)
{
    const struct merge *m = merge_slot(b, left, right);
    return m->left < 0 ? NULL : m;
}

/* Spell s, which is in the alphabet, in bytes. Returns the length in out, SIZE_MAX for
 * characters of no byte. out has room for s.n. */
static size_t
spell(struct ply_str s, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        const int len = ply_utf8_decode(s.s + i, s.n - i, &cp);
        const int byte = len < 0 ? -1 : ply_bpe_alphabet(cp);
        if (byte < 0)
            return SIZE_MAX;
        out[n++] = (char)byte;
        i += (size_t)len;
    }
    return n;
}

/* "left right": the ids of both and of what they become; false when one is no normal piece. */
static bool
read_merge(const struct ply_bpe *b, struct ply_str s, size_t gap, char *buf, struct merge *m)
{
    const size_t n1 = spell((struct ply_str){s.s, gap}, buf);
    if (n1 == SIZE_MAX)
        return false;
    const size_t n2 = spell((struct ply_str){s.s + gap + 1, s.n - gap - 1}, buf + n1);
    if (n2 == SIZE_MAX)
        return false;
    m->left = find_piece(b, buf, n1);
    m->right = find_piece(b, buf + n1, n2);
    m->id = find_piece(b, buf, n1 + n2);
    return m->left >= 0 && m->right >= 0 && m->id >= 0;
}

static int
index_merges(struct ply_bpe *b, const struct ply_gguf_arr *arr, struct ply_err *err)
{
    size_t longest = 1;
    for (uint64_t i = 0; i < arr->n; i++)
        longest = PLY_MAX(longest, arr->str[i].n);
    const uint32_t size = table_size(arr->n);
    char *buf = malloc(longest);
    b->merges = malloc((size_t)size * sizeof(*b->merges));
    if (!buf || !b->merges) {
        free(buf);
        return ply_fail(err, PLY_ENOMEM, "out of memory for the tokenizer's merges");
    }
    memset(b->merges, 0xFF, (size_t)size * sizeof(*b->merges));
    b->merges_mask = size - 1;
    int rc = PLY_OK;
    for (uint64_t i = 0; i < arr->n && rc == PLY_OK; i++) {
        const struct ply_str s = arr->str[i];
        const char *gap = s.n > 2 ? memchr(s.s + 1, ' ', s.n - 2) : NULL;
        struct merge m = {.rank = (uint32_t)i};
        if (!gap) {
            rc = ply_fail(
                err, PLY_EFORMAT,
                "tokenizer.ggml.merges: number %llu is not two pieces with a space between",
                (unsigned long long)i);
        } else if (read_merge(b, s, (size_t)(gap - s.s), buf, &m)) {
            struct merge *slot = merge_slot(b, m.left, m.right);
            if (slot->left < 0) /* a pair that comes again has its first rank */
                *slot = m;
        }
    }
    free(buf);
    return rc;
}

/* ---- user-defined pieces --------------------------------------------------------------- */

static int
user_cmp(const void *a, const void *b, void *arg)
{
    const struct ply_pieces *p = arg;
    size_t na, nb;
    const char *sa = ply_pieces_at(p, (int32_t) * (const uint32_t *)a, &na);
    const char *sb = ply_pieces_at(p, (int32_t) * (const uint32_t *)b, &nb);
    const int c = memcmp(sa, sb, PLY_MIN(na, nb));
    return c != 0 ? c : (na > nb) - (na < nb);
}

static int
index_user(struct ply_bpe *b)
{
    const struct ply_pieces *p = b->pieces;
    size_t n = 0;
    for (uint32_t id = 0; id < p->n; id++)
        n += p->attr[id] == PLY_TOK_USER;
    b->user = malloc((n ? n : 1) * sizeof(*b->user));
    if (!b->user)
        return PLY_ENOMEM;
    for (uint32_t id = 0; id < p->n; id++) {
        size_t len;
        const char *s = ply_pieces_at(p, (int32_t)id, &len);
        if (p->attr[id] != PLY_TOK_USER || len == 0 || len > USER_PIECE_MAX)
            continue;
        b->user[b->n_user++] = id;
        b->user_first[(uint8_t)s[0]] = 1;
    }
    qsort_r(b->user, b->n_user, sizeof(*b->user), user_cmp, (void *)(uintptr_t)p);
    return PLY_OK;
}

/* The byte at `at` of user piece k; -1 past its end, so that shorter pieces sort first. */
static int
user_byte(const struct ply_bpe *b, size_t k, size_t at)
{
    size_t len;
    const char *s = ply_pieces_at(b->pieces, (int32_t)b->user[k], &len);
    return at < len ? (uint8_t)s[at] : -1;
}

/* The first of user pieces [lo, hi), which agree before `at`, whose byte there is >= c. */
static size_t
user_bound(const struct ply_bpe *b, size_t lo, size_t hi, size_t at, int c)
{
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (user_byte(b, mid, at) < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The longest user-defined piece that text begins with, -1: none. */
static int32_t
user_match(const struct ply_bpe *b, const char *text, size_t len, size_t *n)
{
    size_t lo = 0, hi = b->n_user;
    int32_t best = -1;
    for (size_t at = 0; at < len && lo < hi; at++) {
        const int c = (uint8_t)text[at];
        lo = user_bound(b, lo, hi, at, c);
        hi = user_bound(b, lo, hi, at, c + 1);
        if (lo < hi && user_byte(b, lo, at + 1) < 0) {
            best = (int32_t)b->user[lo];
            *n = at + 1;
        }
    }
    return best;
}

/* ---- open ------------------------------------------------------------------------------ */

int
ply_bpe_open(struct ply_bpe **out, const struct ply_pieces *pieces, const struct ply_tok_src *src,
             struct ply_err *err)
{
    *out = NULL;
    struct ply_bpe *b = calloc(1, sizeof(*b));
    if (!b)
        return ply_fail(err, PLY_ENOMEM, "out of memory");
    b->pieces = pieces;
    if (getrandom(&b->seed, sizeof(b->seed), GRND_NONBLOCK) != (ssize_t)sizeof(b->seed))
        b->seed = (uint64_t)(uintptr_t)b;
    int rc = PLY_OK;
    if (!ply_pre_find(src->pre.s, src->pre.n, &b->pre))
        rc = ply_fail(err, PLY_EUNSUPPORTED, "unknown pre-tokenizer");
    else if (index_pieces(b) != PLY_OK || index_user(b) != PLY_OK)
        rc = ply_fail(err, PLY_ENOMEM, "out of memory for the tokenizer's pieces");
    else
        rc = index_merges(b, &src->merges, err);
    if (rc != PLY_OK)
        ply_bpe_close(&b);
    *out = b;
    return rc;
}

void
ply_bpe_close(struct ply_bpe **bp)
{
    struct ply_bpe *b = *bp;
    if (!b)
        return;
    free(b->by_bytes);
    free(b->merges);
    free(b->user);
    free(b);
    *bp = NULL;
}

bool
ply_bpe_lossy(const struct ply_bpe *b)
{
    return !b->all_bytes && !b->has_replacement;
}

/* ---- encode ---------------------------------------------------------------------------- */

struct symbol {
    int32_t id; /* -1: merged into its left neighbour */
    uint32_t prev, next;
    uint32_t rank;  /* of the merge with its right neighbour; NONE: there is none */
    int32_t merged; /* what that makes */
};

/* The pair that begins with symbol `at`, by rank and place: rank << 32 | at. It stands as long
 * as that symbol's rank is this one. */
typedef uint64_t candidate;

/* Scratch space of one call, grown with its longest word. */
struct work {
    struct symbol *symbols;
    candidate *heap;
    size_t cap, n_heap;
    char *plain; /* a word with U+FFFD in place of what cannot be said */
    size_t plain_cap;
    struct symbol few_symbols[WORD_ON_STACK];
    candidate few[2 * WORD_ON_STACK];
};

static void
work_fini(struct work *w)
{
    if (w->symbols != w->few_symbols) {
        free(w->symbols);
        free(w->heap);
    }
    free(w->plain);
}

static int
work_reserve(struct work *w, size_t n)
{
    if (n <= w->cap)
        return PLY_OK;
    /* n - 1 pairs at first; each of at most n - 1 merges makes two new ones and ends one. */
    struct symbol *s = malloc(n * sizeof(*s));
    candidate *h = malloc(2 * n * sizeof(*h));
    if (!s || !h) {
        free(s);
        free(h);
        return PLY_ENOMEM;
    }
    if (w->symbols != w->few_symbols) {
        free(w->symbols);
        free(w->heap);
    }
    w->symbols = s;
    w->heap = h;
    w->cap = n;
    return PLY_OK;
}

/* Four children a node: half the levels of a binary heap, each within one cache line. */
static void
heap_push(struct work *w, candidate c)
{
    size_t i = w->n_heap++;
    while (i > 0 && c < w->heap[(i - 1) / 4]) {
        w->heap[i] = w->heap[(i - 1) / 4];
        i = (i - 1) / 4;
    }
    w->heap[i] = c;
}

static candidate
heap_pop(struct work *w)
{
    const candidate top = w->heap[0], c = w->heap[--w->n_heap];
    size_t i = 0;
    for (size_t k = 1; k < w->n_heap; k = 4 * i + 1) {
        const size_t end = PLY_MIN(k + 4, w->n_heap);
        size_t least = k;
        for (size_t j = k + 1; j < end; j++) {
            if (w->heap[j] < w->heap[least])
                least = j;
        }
        if (c <= w->heap[least])
            break;
        w->heap[i] = w->heap[least];
        i = least;
    }
    w->heap[i] = c;
    return top;
}

/* Look up the merge of symbol `at` with its right neighbour, and offer it. */
static void
offer(const struct ply_bpe *b, struct work *w, uint32_t at)
{
    struct symbol *s = &w->symbols[at];
    const struct merge *m = s->next == NONE ? NULL : find_merge(b, s->id, w->symbols[s->next].id);
    s->rank = m ? m->rank : NONE;
    if (!m)
        return;
    s->merged = m->id;
    heap_push(w, (candidate)m->rank << 32 | at);
}

static void
merge_all(const struct ply_bpe *b, struct work *w, uint32_t n)
{
    struct symbol *s = w->symbols;
    w->n_heap = 0;
    for (uint32_t i = 0; i < n; i++)
        offer(b, w, i);
    while (w->n_heap > 0) {
        const candidate c = heap_pop(w);
        const uint32_t at = (uint32_t)c;
        if (s[at].id < 0 || s[at].rank != (uint32_t)(c >> 32))
            continue; /* merged since, or with another neighbour now */
        const uint32_t next = s[at].next;
        s[at].id = s[at].merged;
        s[at].next = s[next].next;
        s[next].id = -1;
        if (s[at].next != NONE)
            s[s[at].next].prev = at;
        if (s[at].prev != NONE)
            offer(b, w, s[at].prev);
        offer(b, w, at);
    }
}

/* Copy the word to w->plain with U+FFFD for every character that has a byte without a piece. */
static int
make_sayable(const struct ply_bpe *b, struct work *w, const char **word, size_t *len)
{
    const char *s = *word;
    bool sayable = true;
    for (size_t i = 0; i < *len && sayable; i++)
        sayable = b->byte_id[(uint8_t)s[i]] >= 0;
    if (sayable)
        return PLY_OK;
    if (w->plain_cap < 3 * *len) {
        free(w->plain);
        w->plain_cap = 3 * *len;
        w->plain = malloc(w->plain_cap);
        if (!w->plain) {
            w->plain_cap = 0;
            return PLY_ENOMEM;
        }
    }
    size_t n = 0;
    for (size_t i = 0; i < *len;) {
        uint32_t cp;
        const int step = abs(ply_utf8_decode(s + i, *len - i, &cp));
        bool all = true;
        for (int k = 0; k < step; k++)
            all = all && b->byte_id[(uint8_t)s[i + (size_t)k]] >= 0;
        const char *from = all ? s + i : replacement;
        const size_t n_from = all ? (size_t)step : b->has_replacement ? sizeof(replacement) : 0;
        memcpy(w->plain + n, from, n_from);
        n += n_from;
        i += (size_t)step;
    }
    *word = w->plain;
    *len = n;
    return PLY_OK;
}

/* Merge word[0..len), which no symbol crosses the ends of. */
static int
encode_part(const struct ply_bpe *b, struct work *w, const char *word, size_t len,
            struct ply_ids *out)
{
    if (len == 1)
        return ply_ids_push(out, b->byte_id[(uint8_t)word[0]]);
    if (work_reserve(w, len) != PLY_OK || ply_ids_reserve(out, len) != PLY_OK)
        return PLY_ENOMEM;
    for (size_t i = 0; i < len; i++)
        w->symbols[i] = (struct symbol){.id = b->byte_id[(uint8_t)word[i]],
                                        .prev = (uint32_t)i - 1,
                                        .next = i + 1 < len ? (uint32_t)i + 1 : NONE};
    merge_all(b, w, (uint32_t)len);
    for (uint32_t i = 0; i != NONE; i = w->symbols[i].next)
        out->v[out->n++] = w->symbols[i].id;
    return PLY_OK;
}

static int
encode_word(const struct ply_bpe *b, struct work *w, const char *word, size_t len,
            struct ply_ids *out)
{
    if (!b->all_bytes && make_sayable(b, w, &word, &len) != PLY_OK)
        return PLY_ENOMEM;
    if (ply_pre_whole_words(b->pre)) {
        const int32_t id = find_piece(b, word, len);
        if (id >= 0)
            return ply_ids_push(out, id);
    }
    for (size_t from = 0, i = 1; i <= len; i++) {
        if (i < len && stand_together(b, word[i - 1], word[i]))
            continue;
        if (encode_part(b, w, word + from, i - from, out) != PLY_OK)
            return PLY_ENOMEM;
        from = i;
    }
    return PLY_OK;
}

static int
encode_words(const struct ply_bpe *b, struct work *w, const char *text, size_t len,
             struct ply_ids *out)
{
    struct ply_pre pre;
    size_t start, end;
    ply_pre_init(&pre, b->pre, text, len);
    while (ply_pre_next(&pre, &start, &end)) {
        if (encode_word(b, w, text + start, end - start, out) != PLY_OK)
            return PLY_ENOMEM;
    }
    return PLY_OK;
}

int
ply_bpe_encode(const struct ply_bpe *b, const char *text, size_t len, struct ply_ids *out,
               struct ply_err *err)
{
    struct work w;
    w.symbols = w.few_symbols;
    w.heap = w.few;
    w.cap = WORD_ON_STACK;
    w.n_heap = w.plain_cap = 0;
    w.plain = NULL;
    const size_t n_before = out->n;
    size_t start = 0;
    int rc = PLY_OK;
    for (size_t i = 0; b->n_user > 0 && i < len && rc == PLY_OK;) {
        size_t n = 0;
        const int32_t id =
            b->user_first[(uint8_t)text[i]] ? user_match(b, text + i, len - i, &n) : -1;
        if (id < 0) {
            i++;
            continue;
        }
        rc = encode_words(b, &w, text + start, i - start, out);
        if (rc == PLY_OK)
            rc = ply_ids_push(out, id);
        i += n;
        start = i;
    }
    if (rc == PLY_OK)
        rc = encode_words(b, &w, text + start, len - start, out);
    work_fini(&w);
    if (rc != PLY_OK) {
        out->n = n_before;
        return ply_fail(err, rc, "out of memory for a text of %zu bytes", len);
    }
    return PLY_OK;
}

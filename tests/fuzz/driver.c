/* SPDX-License-Identifier: MIT
 * driver [-n ROUNDS] [-s SEED] FILE...: run a fuzz target without libFuzzer: each file as it is,
 * then ROUNDS times with a few random changes of the kind that breaks parsers. The changes are a
 * function of seed, file and round, so a failure can be repeated; the round that is running is
 * known from the last line of output. TAP, one result a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/array.h"
#include "tests/fuzz/fuzz.h"

struct rng {
    uint64_t x;
};

/* SplitMix64 */
static uint64_t
next(struct rng *r)
{
    uint64_t x = r->x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static size_t
below(struct rng *r, size_t n)
{
    return n ? (size_t)(next(r) % n) : 0;
}

/* Half of all changes fall into the first 1,500 bytes, where counts and hyper-parameters are. */
static size_t
place(struct rng *r, size_t n)
{
    return below(r, next(r) & 1 && n > 1500 ? 1500 : n);
}

static void
overwrite(struct rng *r, struct ply_buf *b)
{
    static const uint64_t values[] = {0,          1,          2,          7,
                                      31,         255,        0x7fffffff, 0x80000000,
                                      0xffffffff, 1ull << 32, 1ull << 48, 1ull << 61,
                                      1ull << 63, INT64_MAX,  UINT64_MAX, 0x7fc00000};
    const size_t width = (size_t)1 << below(r, 4);
    if (b->n < width)
        return;
    uint64_t v = values[below(r, sizeof(values) / sizeof(values[0]))];
    if (next(r) % 4 == 0)
        v = next(r) % (b->n + 2);
    const size_t at = place(r, b->n - width + 1);
    for (size_t i = 0; i < width; i++)
        b->v[at + i] = (char)(v >> (8 * i));
}

/* Remove, repeat or move a piece. */
static void
shuffle(struct rng *r, struct ply_buf *b)
{
    const size_t n = b->n, at = place(r, n), len = below(r, n - at < 64 ? n - at : 64);
    const size_t to = place(r, n - len + 1);
    switch (next(r) % 4) {
    case 0:
        memmove(b->v + at, b->v + at + len, n - at - len);
        b->n -= len;
        break;
    case 1:
        if (ply_buf_reserve(b, len) != 0)
            abort();
        memmove(b->v + at + len, b->v + at, n - at);
        b->n += len;
        break;
    case 2: memmove(b->v + to, b->v + at, len); break;
    default: b->n = place(r, n);
    }
}

static void
mutate(struct rng *r, struct ply_buf *b)
{
    const size_t n = 1 + below(r, 4);
    for (size_t i = 0; i < n && b->n > 0; i++) {
        const uint64_t kind = next(r) % 8;
        if (kind < 4)
            overwrite(r, b);
        else if (kind < 7)
            b->v[place(r, b->n)] ^= (char)(1u << below(r, 8));
        else
            shuffle(r, b);
    }
}

static int
read_file(const char *path, struct ply_buf *b)
{
    FILE *f = fopen(path, "rb");
    char chunk[65536];
    size_t n;
    if (!f)
        return -1;
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0) {
        if (ply_buf_append(b, chunk, n) != 0)
            abort();
    }
    const int bad = ferror(f);
    fclose(f);
    return bad ? -1 : 0;
}

static void
run_file(const struct ply_buf *file, uint64_t seed, unsigned long rounds)
{
    LLVMFuzzerTestOneInput((const uint8_t *)file->v, file->n);
    for (unsigned long i = 0; i < rounds; i++) {
        struct rng r = {seed * 1000003 + i};
        struct ply_buf b = {0};
        if (ply_buf_append(&b, file->v, file->n) != 0)
            abort();
        mutate(&r, &b);
        if (i % 64 == 0) {
            printf("# rounds %lu..\n", i);
            fflush(stdout);
        }
        LLVMFuzzerTestOneInput((const uint8_t *)b.v, b.n);
        ply_buf_fini(&b);
    }
}

int
main(int argc, char **argv)
{
    unsigned long rounds = 0;
    uint64_t seed = 1;
    int first = 1, failed = 0;
    while (first + 1 < argc && argv[first][0] == '-') {
        const unsigned long v = strtoul(argv[first + 1], NULL, 10);
        if (argv[first][1] == 'n')
            rounds = v;
        else
            seed = v;
        first += 2;
    }
    printf("1..%d\n", argc - first);
    for (int i = first; i < argc; i++) {
        struct ply_buf file = {0};
        const int rc = read_file(argv[i], &file);
        if (rc == 0)
            run_file(&file, seed + (uint64_t)i, rounds);
        printf("%s %d - %s\n", rc == 0 ? "ok" : "not ok", i - first + 1, argv[i]);
        failed |= rc != 0;
        ply_buf_fini(&file);
    }
    return failed;
}

/* SPDX-License-Identifier: MIT
 * bench: the two halves of a chat as tokens per second. ppN evaluates N ids, ppN@D after D that
 * are cached (the warm turn of a chat), tgN@D are N single steps whose logits are wanted. Medians.
 * pp rows use random ids, whose content costs nothing; tg rows feed an English text, because a
 * head that skips work may depend on what is likely. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/clock.h"
#include "app/front.h"
#include "app/mem.h"
#include "app/report.h"
#include "app/verb.h"
#include "engine/base/num.h"

#define CTX 4096
#define REPS_MAX 5

struct row {
    const char *name;
    bool prefill;
    size_t n, depth;
    int reps; /* deep rows take longer */
};

static const struct row rows[] = {
    {"pp8", true, 8, 0, 5},
    {"pp32", true, 32, 0, 5},
    {"pp128", true, 128, 0, 5},
    {"pp512", true, 512, 0, 5},
    {"pp8@2048", true, 8, 2048, 3},
    {"pp32@2048", true, 32, 2048, 3},
    {"pp128@2048", true, 128, 2048, 3},
    {"tg64@0", false, 64, 0, 5},
    {"tg64@2048", false, 64, 2048, 3},
};

static const char english[] =
    "Every morning the baker walks down to the harbour before the sun is up. She likes the "
    "quiet of the streets, the smell of salt and tar, and the slow knocking of the boats "
    "against the wall. By the time she comes back, the ovens are hot. She shapes the first "
    "loaves while the radio talks about the weather, and when the door opens at six there is "
    "already a line of people outside: fishermen, a nurse on her way home, two children who "
    "were sent for rolls. Nobody is in a hurry. They talk about the wind, about the new "
    "bridge, and about the price of flour, which has gone up again. In the afternoon the shop "
    "is empty and she reads by the window. Her grandfather built the counter from the planks "
    "of a wreck, and if one looks closely, one can still find the holes where the nails had "
    "been. She has often been asked why she does not sell the house and move to the city, "
    "where a baker with her hands could earn three times as much. She always answers that the "
    "bread would not be the same, and that the sea would miss her.\n";

struct bench {
    struct ply_engine *e;
    struct ply_seq *seq;
    struct ply_ids text;
    int32_t *ids; /* [CTX] */
    uint64_t random;
    double speed[PLY_COUNT(rows)]; /* tokens/s; 0: the row does not fit this model */
    double rss_mb;
};

/* xorshift64*, away from both ends of the vocabulary, where the odd pieces are. */
static int32_t
random_id(struct bench *b)
{
    const int n = ply_engine_info(b->e)->n_vocab, margin = n > 1000 ? 300 : 0;
    b->random ^= b->random >> 12;
    b->random ^= b->random << 25;
    b->random ^= b->random >> 27;
    return margin +
           (int32_t)((b->random * 0x2545f4914f6cdd1dull >> 33) % (uint64_t)(n - 2 * margin));
}

static void
fill_ids(struct bench *b, const struct row *r)
{
    for (size_t i = 0; i < r->depth + r->n; i++)
        b->ids[i] = r->prefill ? random_id(b) : b->text.v[i % b->text.n];
}

/* One measurement, on top of depth ids that are there already. Seconds, or negative. */
static double
measure(struct bench *b, const struct row *r, struct ply_err *err)
{
    ply_seq_rollback(b->seq, r->depth);
    const double t = app_now_ms();
    if (r->prefill) {
        if (ply_seq_sync(b->seq, b->ids, r->depth + r->n, NULL, NULL, err) != 0)
            return -1;
    } else {
        for (size_t i = 0; i < r->n; i++) {
            if (ply_seq_step(&b->seq, &b->ids[r->depth + i], 1, err) != 0)
                return -1;
        }
    }
    return (app_now_ms() - t) / 1e3;
}

static int
by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int
run_row(struct bench *b, size_t index, struct ply_err *err)
{
    const struct row *r = &rows[index];
    double seconds[REPS_MAX];
    if (r->depth + r->n > (size_t)ply_engine_info(b->e)->n_ctx)
        return PLY_OK;
    fill_ids(b, r);
    ply_seq_rollback(b->seq, 0);
    if (r->depth > 0 && ply_seq_sync(b->seq, b->ids, r->depth, NULL, NULL, err) != 0)
        return err->code;
    for (int i = 0; i < r->reps; i++) {
        seconds[i] = measure(b, r, err);
        if (seconds[i] < 0)
            return err->code;
    }
    qsort(seconds, (size_t)r->reps, sizeof(*seconds), by_value);
    b->speed[index] = (double)r->n / PLY_MAX(seconds[r->reps / 2], 1e-9);
    return PLY_OK;
}

static double
resident_mb(void)
{
    unsigned long total, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    if (fscanf(f, "%lu %lu", &total, &resident) != 2)
        resident = 0;
    fclose(f);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static int
setup(struct bench *b, const struct app_opts *o, struct ply_err *err)
{
    b->random = 1;
    b->ids = app_xcalloc(CTX, sizeof(*b->ids));
    int r = verb_engine_open(o, o->n_ctx ? 0 : CTX, &b->e, err);
    if (r != 0)
        return r;
    b->rss_mb = resident_mb();
    r = ply_encode(ply_engine_vocab(b->e), english, strlen(english), &b->text, err);
    if (r == 0)
        r = ply_seq_new(b->e, &b->seq, err);
    /* Once around, so that the first row does not pay for what is set up on first use. */
    const struct row warm = {"", true, 8, 0, 1};
    fill_ids(b, &warm);
    if (r == 0)
        r = ply_seq_sync(b->seq, b->ids, 8, NULL, NULL, err);
    return r;
}

static bool
print_json(const struct bench *b)
{
    json_t *o = json_object();
    for (size_t i = 0; i < PLY_COUNT(rows); i++) {
        if (b->speed[i] > 0)
            json_object_set_new(o, rows[i].name, json_real(b->speed[i]));
    }
    json_object_set_new(o, "load_ms", json_real(ply_engine_info(b->e)->load_ms));
    json_object_set_new(o, "rss_mb", json_real(b->rss_mb));
    const bool ok = report_write_json(STDOUT_FILENO, o);
    json_decref(o);
    return ok;
}

static void
print_row(const struct bench *b, size_t i)
{
    if (b->speed[i] > 0)
        printf("%-12s %9.1f tokens/s\n", rows[i].name, b->speed[i]);
    else
        printf("%-12s         - (the context of this model is too short)\n", rows[i].name);
    fflush(stdout);
}

int
verb_bench(const struct app_opts *o)
{
    struct bench b = {0};
    struct ply_err err = {0};
    int r = setup(&b, o, &err);
    for (size_t i = 0; r == 0 && i < PLY_COUNT(rows); i++) {
        r = run_row(&b, i, &err);
        if (r == 0 && !o->json)
            print_row(&b, i);
    }
    if (r == 0 && o->json && !print_json(&b))
        r = ply_fail(&err, PLY_EIO, "cannot write: %s", strerror(errno));
    if (r == 0 && !o->json)
        printf("%-12s %9.0f ms\n%-12s %9.0f MB\n", "load", ply_engine_info(b.e)->load_ms, "memory",
               b.rss_mb);
    ply_seq_free(&b.seq);
    ply_engine_close(&b.e);
    ply_ids_fini(&b.text);
    free(b.ids);
    return r == 0 ? APP_EXIT_OK : front_fail(&err);
}

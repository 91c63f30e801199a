/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/engine/goldutil.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Skip the comments; the number of positions follows. */
static size_t
read_head(FILE *f)
{
    char line[256];
    size_t n = 0;
    do {
        if (!fgets(line, sizeof(line), f))
            return 0;
    } while (line[0] == '#');
    return sscanf(line, "%zu", &n) == 1 && n <= GOLD_POS_MAX ? n : 0;
}

static int
read_position(FILE *f, struct gold *g, size_t i, int top8)
{
    if (fscanf(f, "%" SCNd32, &g->ids[i]) != 1)
        return 0;
    if (!top8)
        return fscanf(f, "%" SCNd32, &g->top[i][0]) == 1;
    for (size_t k = 0; k < GOLD_TOP; k++)
        if (fscanf(f, "%" SCNd32 " %lf", &g->top[i][k], &g->logprob[i][k]) != 2)
            return 0;
    return 1;
}

const struct gold *
gold_read(const char *name)
{
    static struct gold g;
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", GOLDEN_DIR, name);
    FILE *f = fopen(path, "r");
    if (!f)
        fail_msg("cannot open %s", path);
    memset(&g, 0, sizeof(g));
    g.n = read_head(f);
    int good = g.n > 0;
    for (size_t i = 0; good && i < g.n; i++)
        good = read_position(f, &g, i, strstr(name, ".top8") != NULL);
    fclose(f);
    if (!good)
        fail_msg("%s is damaged", path);
    return &g;
}

void
gold_check_hash(const char *name, const char *kv_type, uint64_t hash)
{
    char line[256], key[160], text[32];
    FILE *f = fopen(GOLDEN_DIR "/logits.hash", "r");
    if (!f)
        fail_msg("cannot open %s", GOLDEN_DIR "/logits.hash");
    const int n = snprintf(key, sizeof(key), "%s %s ", name, kv_type);
    snprintf(text, sizeof(text), "%016" PRIx64, hash);
    int found = 0;
    while (!found && fgets(line, sizeof(line), f))
        found = strncmp(line, key, (size_t)n) == 0;
    fclose(f);
    if (!found || strncmp(line + n, text, 16) != 0)
        fail_msg("%s%s is not what logits.hash records", key, text);
}

/* SPDX-License-Identifier: MIT
 * Readers of the figures in tests/golden. */
#ifndef TEST_GOLDUTIL_H
#define TEST_GOLDUTIL_H

#include <stddef.h>
#include <stdint.h>

#define GOLD_POS_MAX 1024u
#define GOLD_TOP 8u

struct gold {
    size_t n;
    int32_t ids[GOLD_POS_MAX];
    int32_t top[GOLD_POS_MAX][GOLD_TOP];    /* of a .top8 file; [0] of a .top1 file */
    double logprob[GOLD_POS_MAX][GOLD_TOP]; /* .top8 */
};

/* "s.prose.top8" and its like; fails the test when the file is not as it should be. Static. */
const struct gold *gold_read(const char *name);
/* Fails the test unless logits.hash records that number for the name and KV type. */
void gold_check_hash(const char *name, const char *kv_type, uint64_t hash);

#endif

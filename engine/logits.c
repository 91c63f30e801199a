/* SPDX-License-Identifier: MIT
 * Sums over whole vectors of logits: log-probabilities in double precision, and the hash by which
 * two runs are compared bit for bit. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/sample.h"

double
ply_log_sum_exp(const float *logits, size_t n)
{
    float max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (!(logits[i] <= FLT_MAX))
            return (double)NAN;
        max = fmaxf(max, logits[i]);
    }
    if (max == -INFINITY)
        return -(double)INFINITY;
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - (double)max);
    return (double)max + log(sum);
}

double
ply_logprob(const float *logits, size_t n_vocab, int32_t id)
{
    if (id < 0 || (size_t)id >= n_vocab)
        return -(double)INFINITY;
    return (double)logits[id] - ply_log_sum_exp(logits, n_vocab);
}

uint64_t
ply_hash_logits(uint64_t h, const float *logits, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &logits[i], sizeof(u));
        if ((u & 0x7fffffffu) > 0x7f800000u)
            u = 0x7fc00000u;
        for (unsigned b = 0; b < 4; b++)
            h = (h ^ (u >> (8 * b) & 0xffu)) * 0x100000001b3u;
    }
    return h;
}

/* SPDX-License-Identifier: MIT
 * For the tests of kernels and matrices: random numbers, random weights as a file holds them,
 * and the variants this processor can run. */
#ifndef TEST_KERNUTIL_H
#define TEST_KERNUTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/kern.h"
#include "engine/model.h"

uint32_t rnd(void); /* from a fixed seed: a failure repeats */
void rnd_seed(uint64_t seed);
float rnd_float(void); /* in [-4, 4) */
float float_of(uint32_t bits);
uint32_t bits_of(float f);
/* Equal bit for bit, any two NaN being equal. */
bool same_floats(const float *a, const float *b, size_t n);

/* The types with a kernel, by slot. */
extern const enum ply_type slot_type[PLY_MM_SLOTS];

enum weights {
    WEIGHTS_PLAIN,   /* like a trained model's: small scales, minima that centre the codes */
    WEIGHTS_EXTREME, /* every code, scale and minimum at an end of its range */
    WEIGHTS_ANY,     /* any bytes: infinities and NaN among the scales */
};
/* n_out rows of n_in columns in the file's format; free() data. */
struct ply_tensor weights_new(enum ply_type type, uint32_t n_in, uint32_t n_out, enum weights kind);
/* The tensor packed, 64-byte aligned; free(). */
uint8_t *packed_new(const struct ply_tensor *t);

/* Quantised activations of m vectors x[m][n]; free with acts_free. */
struct ply_acts acts_new(const struct ply_kernels *k, const float *x, uint32_t n, uint32_t m,
                         bool a12);
void acts_free(struct ply_acts *a);

/* Both builds of ref, then the variants that this build has and this processor runs. */
size_t variants(const struct ply_kernels *out[4]);

#endif

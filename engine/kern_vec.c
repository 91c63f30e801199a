/* SPDX-License-Identifier: MIT
 * Kernels over one vector: norm, activation functions, rotation, and the small ones. */
#include <float.h>

#include "engine/kern_impl.h"

void
KERN(rms_norm)(float *out, const float *x, const float *w, uint32_t n, float eps)
{
    float s[KERN_LANES] = {0};
    uint32_t i = 0;
    for (; i + KERN_LANES <= n; i += KERN_LANES)
        for (unsigned j = 0; j < KERN_LANES; j++)
            s[j] = fmaf(x[i + j], x[i + j], s[j]);
    for (unsigned j = 0; i + j < n; j++)
        s[j] = fmaf(x[i + j], x[i + j], s[j]);
    float inv = 1.0f / sqrtf(lanes_sum(s) / (float)n + eps);
    for (i = 0; i < n; i++)
        out[i] = (x[i] * inv) * w[i];
}

void
KERN(add)(float *x, const float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = x[i] + y[i];
}

void
KERN(scale)(float *x, float s, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = x[i] * s;
}

void
KERN(exp)(float *y, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] = exp_f32(x[i]);
}

/* x * logistic(z) as a division, which is -0 where the exponential overflows. -inf is taken as
 * the lowest finite number: the limit is -0, the quotient of infinities would be NaN. */
KERN_INLINE float
gated(float x, float z)
{
    return x / (1.0f + exp_f32(-z));
}

KERN_INLINE float
above_minus_inf(float x)
{
    return x < -FLT_MAX ? -FLT_MAX : x;
}

void
KERN(silu_mul)(float *gate, const float *up, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        float x = above_minus_inf(gate[i]);
        gate[i] = gated(x, x) * up[i];
    }
}

/* x / 2 * (1 + tanh(u)) = x * logistic(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3). */
void
KERN(gelu_tanh_mul)(float *gate, const float *up, uint32_t n)
{
    const float c1 = 1.5957691216f, c3 = 0.0713548163f; /* 2 sqrt(2 / pi), and times 0.044715 */
    for (uint32_t i = 0; i < n; i++) {
        float x = above_minus_inf(gate[i]);
        gate[i] = gated(x, x * fmaf(c3, x * x, c1)) * up[i];
    }
}

KERN_INLINE void
rotate(float *a, float *b, float c, float s)
{
    float a0 = *a, b0 = *b;
    *a = fmaf(a0, c, -(b0 * s));
    *b = fmaf(a0, s, b0 * c);
}

void
KERN(rope)(float *x, const float *cs, uint32_t dim, bool neox)
{
    uint32_t half = dim / 2;
    if (neox) {
        for (uint32_t i = 0; i < half; i++)
            rotate(x + i, x + half + i, cs[2 * i], cs[2 * i + 1]);
    } else {
        for (uint32_t i = 0; i < half; i++)
            rotate(x + 2 * i, x + 2 * i + 1, cs[2 * i], cs[2 * i + 1]);
    }
}

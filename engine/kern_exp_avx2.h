/* SPDX-License-Identifier: MIT
 * exp_f32 (kern_impl.h) for eight lanes, operation by operation. */
#ifndef PLY_KERN_EXP_AVX2_H
#define PLY_KERN_EXP_AVX2_H

#include <immintrin.h>

#include "engine/kern_impl.h"

/* minps and maxps return their second operand when either is NaN. */
KERN_INLINE __m256
exp_ps(__m256 x)
{
    const __m256 magic = _mm256_set1_ps(12582912.0f), one = _mm256_set1_ps(1.0f);
    const __m256i bias = _mm256_set1_epi32(127);
    __m256 c = _mm256_min_ps(_mm256_set1_ps(100.0f), x);
    c = _mm256_max_ps(_mm256_set1_ps(-150.0f), c);
    const __m256 t = _mm256_add_ps(_mm256_mul_ps(c, _mm256_set1_ps(0x1.715476p+0f)), magic);
    const __m256 n = _mm256_sub_ps(t, magic);
    const __m256i e = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_set1_epi32(0x4b400000));
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-0x1.62e43p-1f), c);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(0x1.05c61p-29f), r);
    __m256 p = _mm256_set1_ps(0x1.6a215ap-10f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.123b9ap-7f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.5558fcp-5f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.55549p-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.fffffcp-2f));
    p = _mm256_fmadd_ps(p, r, one);
    p = _mm256_fmadd_ps(p, r, one);
    const __m256i half = _mm256_srai_epi32(e, 1);
    const __m256i rest = _mm256_sub_epi32(e, half);
    p = _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23)));
    return _mm256_mul_ps(p,
                         _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23)));
}

#endif

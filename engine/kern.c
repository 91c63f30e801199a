/* SPDX-License-Identifier: MIT
 * What the kernel variants have in common and the choice between the two builds of ref. */
#include "engine/kern.h"

#include "engine/kern_layout.h"

int
ply_mm_slot(enum ply_type t)
{
    switch (t) {
    case PLY_TYPE_Q4_0: return PLY_MM_Q4_0;
    case PLY_TYPE_Q4_1: return PLY_MM_Q4_1;
    case PLY_TYPE_Q5_0: return PLY_MM_Q5_0;
    case PLY_TYPE_Q5_1: return PLY_MM_Q5_1;
    case PLY_TYPE_Q8_0: return PLY_MM_Q8_0;
    case PLY_TYPE_Q4_K: return PLY_MM_Q4_K;
    case PLY_TYPE_Q5_K: return PLY_MM_Q5_K;
    case PLY_TYPE_Q6_K: return PLY_MM_Q6_K;
    default: return -1;
    }
}

/* The keys and the values of a chunk as floats. */
size_t
ply_attn_scratch_floats(uint32_t d)
{
    return 2 * (size_t)PLY_CHUNK * d;
}

const struct ply_kernels *ply_kernels_ref_c(void);

#ifdef PLY_SIMD
const struct ply_kernels *ply_kernels_ref_fma(void);

/* The same scalar source with and without FMA instructions; where fmaf is a call into libm it
 * takes most of the time. */
const struct ply_kernels *
ply_kernels_ref(void)
{
    return __builtin_cpu_supports("fma") ? ply_kernels_ref_fma() : ply_kernels_ref_c();
}
#else
const struct ply_kernels *
ply_kernels_ref(void)
{
    return ply_kernels_ref_c();
}

const struct ply_kernels *
ply_kernels_avx2(void)
{
    return NULL;
}

const struct ply_kernels *
ply_kernels_avx512(void)
{
    return NULL;
}
#endif

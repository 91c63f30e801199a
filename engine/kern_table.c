/* SPDX-License-Identifier: MIT
 * The table of one instruction set. */
#include "engine/kern_impl.h"
#include "engine/kern_layout.h"

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#ifndef KERN_NAME /* what people call it: ref is built twice */
#define KERN_NAME TEXT(KERN_ISA)
#endif

#define MM_A8(type) [PLY_MM_##type] = KERN(mm_a8_##type),
#define MM_A12(type) [PLY_MM_##type] = KERN(mm_a12_##type),

const struct ply_kernels *
KERN(kernels)(void)
{
    static const struct ply_kernels k = {
        .isa = KERN_NAME,
        .quant_a8 = KERN(quant_a8),
        .quant_a12 = KERN(quant_a12),
        .mm_a8 = {KERN_MM_TYPES(MM_A8)},
        .mm_a12 = {KERN_MM_TYPES(MM_A12)},
        .rms_norm = KERN(rms_norm),
        .add = KERN(add),
        .silu_mul = KERN(silu_mul),
        .gelu_tanh_mul = KERN(gelu_tanh_mul),
        .scale = KERN(scale),
        .exp = KERN(exp),
        .rope = KERN(rope),
        .k_store = {KERN(k_store_f16), KERN(k_store_q8)},
        .v_store = {KERN(v_store_f16), KERN(v_store_q8)},
        .attn_chunk = {KERN(attn_chunk_f16), KERN(attn_chunk_q8)},
        .attn_merge = KERN(attn_merge),
        .attn_finish = KERN(attn_finish),
    };
    return &k;
}

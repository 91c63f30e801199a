/* SPDX-License-Identifier: MIT
 * From a GGUF file to typed weights. Every shape and every number that later code divides by,
 * indexes with or allocates from is checked here, once; past this file nothing is hostile. */
#ifndef PLY_MODEL_H
#define PLY_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/gguf.h"
#include "engine/quant.h"

enum ply_arch { PLY_ARCH_LLAMA, PLY_ARCH_GEMMA3 };
enum ply_act { PLY_ACT_SILU, PLY_ACT_GELU_TANH };

/* A matrix as the file holds it: n_out rows of n_in. type NULL: the tensor is absent. */
struct ply_tensor {
    const struct ply_type_traits *type;
    uint32_t n_in, n_out;
    const uint8_t *data;
    char name[64];
};

struct ply_hparams {
    enum ply_arch arch;
    uint32_t n_layer, n_embd, n_ff, n_vocab, n_ctx_train;
    uint32_t n_head, n_head_kv, d_head; /* key and value length are equal */
    uint32_t rope_dim;                  /* <= d_head, even */
    bool rope_neox;                     /* halves rotate together (gemma3); else neighbours */
    double rope_base, rope_base_local;  /* local: layers with a sliding window */
    double rope_scale;                  /* linear scaling: positions are divided by it; 1 without */
    double rope_scale_local;            /* 1: linear scaling does not touch local layers */
    float rms_eps;
    float embd_scale;                   /* sqrt(n_embd) for gemma3, 1 for llama */
    float attn_scale;                   /* 1/sqrt(d_head), or what the file says */
    uint32_t window;                    /* 0: none */
    uint32_t window_pattern;            /* l is global when (l + 1) % pattern == 0; 0: all are */
    enum ply_act act;
};

struct ply_layer {
    const float *attn_norm, *ffn_norm;             /* [n_embd] */
    const float *post_attn_norm, *post_ffn_norm;   /* [n_embd] or NULL */
    const float *q_norm, *k_norm;                  /* [d_head] or NULL */
    const float *q_bias, *k_bias, *v_bias;         /* or NULL */
    struct ply_tensor q, k, v, o, gate, up, down;
    bool local;                                    /* has the sliding window */
};

struct ply_model {
    const struct ply_gguf *gguf;   /* borrowed, must outlive the model */
    struct ply_hparams hp;
    struct ply_tensor embd;        /* [n_vocab][n_embd] */
    struct ply_tensor head;        /* output.weight, or embd again when tied */
    bool tied;
    const float *out_norm;
    const float *rope_freqs;       /* [rope_dim / 2] divisors, or NULL */
    struct ply_layer *layers;      /* [n_layer] */
    float *floats;                 /* owns the float vectors above, dequantised and aligned */
};

/* PLY_EUNSUPPORTED: one line that names the architecture, scaling or type and what is supported. */
int ply_model_load(struct ply_model **out, const struct ply_gguf *g, struct ply_err *err);
void ply_model_free(struct ply_model **m);

#endif

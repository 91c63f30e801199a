/* SPDX-License-Identifier: MIT
 * Hyper-parameters and weights of the supported architectures, checked. The tables below say
 * which tensors a model has and what shape each must be; a file with one too few, one too many
 * or one of another shape describes a computation that this engine does not do, and is refused.
 *
 * Float vectors (norms, biases) are dequantised into one block of memory: the tensor list is
 * walked twice, first to check and to add up their sizes, then to fill them in. Matrices stay in
 * the mapping. What is allocated is bounded by what the file really holds. */
#include "engine/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"

#define SUPPORTED_ARCHS "llama, gemma3"
#define SUPPORTED_TYPES "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K"

/* Limits well above any model there is, so that sums and products of them stay small and a
 * number that is only damage is named as such. */
#define LAYERS_MAX 512
#define WIDTH_MAX (1u << 20)
#define HEADS_MAX 4096
#define HEAD_WIDTH_MAX 1024
#define VOCAB_MAX (1u << 24)
#define CTX_MAX (1u << 28)
#define PATTERN_MAX 1024

/* Gemma 3: five local layers to a global one, and the local ones' own rotary base. */
#define GEMMA3_PATTERN 6
#define GEMMA3_LOCAL_BASE 10000.0f
/* The 27 B model scales scores by its width per head, not by its head width. */
#define GEMMA3_27B_LAYERS 62

#define VECTOR_ALIGN_FLOATS 16u /* 64 bytes */

struct loader {
    const struct ply_gguf *g;
    struct ply_model *m;
    struct ply_err *err;
    char arch[32];
    bool *used;      /* [n_tensors of the file]: is part of the model */
    uint64_t floats; /* so far, in the walk at hand */
};

static const char *
file_name(const struct loader *l)
{
    return ply_gguf_name(l->g);
}

/* ---- reading keys ---------------------------------------------------------------------- */

struct key {
    char text[96];
};

static struct key
arch_key(const struct loader *l, const char *name)
{
    struct key k;
    snprintf(k.text, sizeof(k.text), "%s.%s", l->arch, name);
    return k;
}

/* A whole number between lo and hi. 1 found, 0 absent, or an error. */
static int
get_uint(const struct loader *l, const char *name, uint32_t lo, uint32_t hi, uint32_t *out)
{
    const struct key k = arch_key(l, name);
    struct ply_gguf_arr per_layer;
    uint64_t v;
    if (ply_gguf_arr(l->g, k.text, &per_layer, NULL) == 1)
        return ply_fail(l->err, PLY_EUNSUPPORTED,
                        "%.100s: key %s differs by layer; supported is one value for all",
                        file_name(l), k.text);
    const int rc = ply_gguf_u64(l->g, k.text, &v, l->err);
    if (rc != 1)
        return rc;
    if (v < lo || v > hi)
        return ply_fail(l->err, PLY_EFORMAT,
                        "%.100s: key %s is %" PRIu64 ", must be from %" PRIu32 " to %" PRIu32,
                        file_name(l), k.text, v, lo, hi);
    *out = (uint32_t)v;
    return 1;
}

static int
need_uint(const struct loader *l, const char *name, uint32_t lo, uint32_t hi, uint32_t *out)
{
    const int rc = get_uint(l, name, lo, hi, out);
    if (rc == 0)
        return ply_fail(l->err, PLY_EFORMAT, "%.100s: key %s.%s is missing", file_name(l), l->arch,
                        name);
    return rc < 0 ? rc : PLY_OK;
}

/* A finite number above zero. 1 found, 0 absent, or an error. */
static int
get_positive(const struct loader *l, const char *name, float *out)
{
    const struct key k = arch_key(l, name);
    float v;
    const int rc = ply_gguf_f32(l->g, k.text, &v, l->err);
    if (rc != 1)
        return rc;
    if (!isfinite(v) || v <= 0)
        return ply_fail(l->err, PLY_EFORMAT,
                        "%.100s: key %s is %g, must be a finite number above 0", file_name(l),
                        k.text, (double)v);
    *out = v;
    return 1;
}

/* Features of a computation we do not do: the key may be there only with the value that says
 * "not used". */
static int
refuse_unless(const struct loader *l, const char *name, float neutral, const char *what)
{
    const struct key k = arch_key(l, name);
    float f;
    uint64_t u;
    bool differs = false;
    if (ply_gguf_f32(l->g, k.text, &f, NULL) == 1)
        differs = !(f == neutral);
    else if (ply_gguf_u64(l->g, k.text, &u, NULL) == 1)
        differs = u != (uint64_t)neutral;
    else
        differs = ply_gguf_has(l->g, k.text);
    if (!differs)
        return PLY_OK;
    return ply_fail(l->err, PLY_EUNSUPPORTED, "%.100s: %s (key %s) is not supported", file_name(l),
                    what, k.text);
}

/* ---- hyper-parameters ------------------------------------------------------------------ */

static int
read_arch(struct loader *l)
{
    struct ply_str s;
    const int rc = ply_gguf_str(l->g, "general.architecture", &s, l->err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return ply_fail(l->err, PLY_EFORMAT, "%.100s: key general.architecture is missing",
                        file_name(l));
    if (s.n == 5 && memcmp(s.s, "llama", 5) == 0) {
        l->m->hp.arch = PLY_ARCH_LLAMA;
    } else if (s.n == 6 && memcmp(s.s, "gemma3", 6) == 0) {
        l->m->hp.arch = PLY_ARCH_GEMMA3;
    } else {
        return ply_fail(
            l->err, PLY_EUNSUPPORTED,
            "%.100s: architecture %.*s is not supported; supported are " SUPPORTED_ARCHS,
            file_name(l), (int)PLY_MIN(s.n, (size_t)40), s.s);
    }
    memcpy(l->arch, s.s, s.n);
    l->arch[s.n] = '\0';
    return PLY_OK;
}

static int
read_sizes(const struct loader *l)
{
    struct ply_hparams *hp = &l->m->hp;
    int rc = need_uint(l, "block_count", 1, LAYERS_MAX, &hp->n_layer);
    if (rc == PLY_OK)
        rc = need_uint(l, "embedding_length", 1, WIDTH_MAX, &hp->n_embd);
    if (rc == PLY_OK)
        rc = need_uint(l, "feed_forward_length", 1, WIDTH_MAX, &hp->n_ff);
    if (rc == PLY_OK)
        rc = need_uint(l, "context_length", 1, CTX_MAX, &hp->n_ctx_train);
    return rc;
}

/* Keys and values of one length; without a length in the file heads share the width. */
static int
read_head_width(const struct loader *l)
{
    struct ply_hparams *hp = &l->m->hp;
    uint32_t value = 0;
    const int has_key = get_uint(l, "attention.key_length", 1, HEAD_WIDTH_MAX, &hp->d_head);
    const int has_value = get_uint(l, "attention.value_length", 1, HEAD_WIDTH_MAX, &value);
    if (has_key < 0 || has_value < 0)
        return has_key < 0 ? has_key : has_value;
    if (!has_key) {
        hp->d_head = hp->n_embd / hp->n_head;
        if (hp->n_embd % hp->n_head != 0)
            return ply_fail(l->err, PLY_EFORMAT,
                            "%.100s: key %s.attention.head_count is %" PRIu32
                            ", which does not divide embedding_length %" PRIu32,
                            file_name(l), l->arch, hp->n_head, hp->n_embd);
    }
    if (has_value && value != hp->d_head)
        return ply_fail(l->err, PLY_EUNSUPPORTED,
                        "%.100s: values of %" PRIu32 " and keys of %" PRIu32
                        " elements; supported are equal lengths",
                        file_name(l), value, hp->d_head);
    if (hp->d_head % 2 != 0 || hp->d_head > HEAD_WIDTH_MAX)
        return ply_fail(l->err, PLY_EFORMAT,
                        "%.100s: key %s.attention.key_length is %" PRIu32
                        ", must be even and at most %d",
                        file_name(l), l->arch, hp->d_head, HEAD_WIDTH_MAX);
    return PLY_OK;
}

static int
read_heads(const struct loader *l)
{
    struct ply_hparams *hp = &l->m->hp;
    int rc = need_uint(l, "attention.head_count", 1, HEADS_MAX, &hp->n_head);
    if (rc != PLY_OK)
        return rc;
    hp->n_head_kv = hp->n_head;
    rc = get_uint(l, "attention.head_count_kv", 1, HEADS_MAX, &hp->n_head_kv);
    if (rc < 0)
        return rc;
    if (hp->n_head % hp->n_head_kv != 0)
        return ply_fail(l->err, PLY_EFORMAT,
                        "%.100s: key %s.attention.head_count_kv is %" PRIu32
                        ", which does not divide head_count %" PRIu32,
                        file_name(l), l->arch, hp->n_head_kv, hp->n_head);
    return read_head_width(l);
}

/* Linear scaling divides positions. A file without a type means linear if it gives a factor. */
static int
read_rope_scaling(const struct loader *l)
{
    struct ply_hparams *hp = &l->m->hp;
    const struct key k = arch_key(l, "rope.scaling.type");
    struct ply_str type = {"linear", 6};
    float factor = 1;
    int rc = ply_gguf_str(l->g, k.text, &type, l->err);
    if (rc < 0)
        return rc;
    const bool none = type.n == 4 && memcmp(type.s, "none", 4) == 0;
    if (!none && (type.n != 6 || memcmp(type.s, "linear", 6) != 0))
        return ply_fail(l->err, PLY_EUNSUPPORTED,
                        "%.100s: rope scaling %.*s is not supported; supported are none, linear",
                        file_name(l), (int)PLY_MIN(type.n, (size_t)40), type.s);
    rc = get_positive(l, "rope.scaling.factor", &factor);
    if (rc == 0)
        rc = get_positive(l, "rope.scale_linear", &factor); /* the name of old files */
    if (rc < 0)
        return rc;
    hp->rope_scale = none ? 1.0 : (double)factor;
    hp->rope_scale_local = hp->arch == PLY_ARCH_GEMMA3 ? 1.0 : hp->rope_scale;
    return refuse_unless(l, "rope.scaling.attn_factor", 1, "attention factor of rope scaling");
}

static int
read_rope(const struct loader *l)
{
    struct ply_hparams *hp = &l->m->hp;
    float base = 10000.0f;
    float local = GEMMA3_LOCAL_BASE;
    hp->rope_neox = hp->arch == PLY_ARCH_GEMMA3;
    hp->rope_dim = hp->d_head;
    int rc = get_uint(l, "rope.dimension_count", 2, HEAD_WIDTH_MAX, &hp->rope_dim);
    if (rc < 0)
        return rc;
    if (hp->rope_dim % 2 != 0 || hp->rope_dim > hp->d_head)
        return ply_fail(l->err, PLY_EFORMAT,
                        "%.100s: key %s.rope.dimension_count is %" PRIu32
                        ", must be even and at most the head's %" PRIu32,
                        file_name(l), l->arch, hp->rope_dim, hp->d_head);
    rc = get_positive(l, "rope.freq_base", &base);
    if (rc >= 0 && hp->arch == PLY_ARCH_GEMMA3)
        rc = get_positive(l, "rope.freq_base_swa", &local);
    if (rc < 0)
        return rc;
    hp->rope_base = (double)base;
    hp->rope_base_local = hp->arch == PLY_ARCH_GEMMA3 ? (double)local : hp->rope_base;
    return read_rope_scaling(l);
}

/* A file of gemma3 without a window has none. */
static int
read_window(const struct loader *l)
{
    struct ply_hparams *hp = &l->m->hp;
    if (hp->arch != PLY_ARCH_GEMMA3)
        return PLY_OK;
    int rc = get_uint(l, "attention.sliding_window", 0, CTX_MAX, &hp->window);
    if (rc < 0 || hp->window == 0)
        return rc < 0 ? rc : PLY_OK;
    hp->window_pattern = GEMMA3_PATTERN;
    rc = get_uint(l, "attention.sliding_window_pattern", 1, PATTERN_MAX, &hp->window_pattern);
    return rc < 0 ? rc : PLY_OK;
}

static int
read_scales(const struct loader *l)
{
    struct ply_hparams *hp = &l->m->hp;
    int rc = get_positive(l, "attention.layer_norm_rms_epsilon", &hp->rms_eps);
    if (rc == 0)
        rc = ply_fail(l->err, PLY_EFORMAT,
                      "%.100s: key %s.attention.layer_norm_rms_epsilon is missing", file_name(l),
                      l->arch);
    if (rc < 0)
        return rc;
    const bool gemma = hp->arch == PLY_ARCH_GEMMA3;
    uint32_t width = hp->d_head;
    if (gemma && hp->n_layer == GEMMA3_27B_LAYERS)
        width = hp->n_embd / hp->n_head;
    hp->attn_scale = 1.0f / sqrtf((float)PLY_MAX(width, 1u));
    rc = get_positive(l, "attention.scale", &hp->attn_scale);
    if (rc < 0)
        return rc;
    hp->embd_scale = gemma ? sqrtf((float)hp->n_embd) : 1.0f;
    hp->act = gemma ? PLY_ACT_GELU_TANH : PLY_ACT_SILU;
    return PLY_OK;
}

static int
refuse_features(const struct loader *l)
{
    static const struct {
        const char *name;
        float neutral;
        const char *what;
    } features[] = {
        {"expert_count", 0, "a mixture of experts"},
        {"attn_logit_softcapping", 0, "soft-capping of scores"},
        {"final_logit_softcapping", 0, "soft-capping of logits"},
        {"logit_scale", 1, "scaling of logits"},
        {"residual_scale", 1, "scaling of residuals"},
        {"embedding_scale", 1, "scaling of embeddings"},
        {"attention.clamp_kqv", 0, "clamping of keys and values"},
        {"attention.max_alibi_bias", 0, "ALiBi"},
    };
    for (size_t i = 0; i < PLY_COUNT(features); i++) {
        const int rc = refuse_unless(l, features[i].name, features[i].neutral, features[i].what);
        if (rc != PLY_OK)
            return rc;
    }
    return PLY_OK;
}

/* The vocabulary's size is said three times: by the embedding, the list of pieces and, in some
 * files, a key. Every id that the file names must be below it. */
static int
read_vocab_size(const struct loader *l)
{
    static const char *const ids[] = {"bos", "eos", "unknown", "eot", "eom"};
    struct ply_hparams *hp = &l->m->hp;
    const struct ply_gguf_tensor *t = ply_gguf_tensor(l->g, "token_embd.weight");
    struct ply_gguf_arr pieces;
    uint32_t said = 0;
    if (!t)
        return ply_fail(l->err, PLY_EFORMAT, "%.100s: %s", file_name(l),
                        ply_gguf_n_tensors(l->g) ? "tensor token_embd.weight is missing"
                                                 : "a vocabulary without weights");
    if (t->ne[1] > VOCAB_MAX)
        return ply_fail(l->err, PLY_EFORMAT,
                        "%.100s: tensor token_embd.weight has %" PRIu64 " rows, at most %u can be",
                        file_name(l), t->ne[1], VOCAB_MAX);
    hp->n_vocab = (uint32_t)t->ne[1];
    int rc = get_uint(l, "vocab_size", 1, VOCAB_MAX, &said);
    if (rc == 1 && said != hp->n_vocab)
        return ply_fail(l->err, PLY_EFORMAT,
                        "%.100s: key %s.vocab_size is %" PRIu32
                        ", but tensor token_embd.weight has %" PRIu32 " rows",
                        file_name(l), l->arch, said, hp->n_vocab);
    if (rc >= 0)
        rc = ply_gguf_arr(l->g, "tokenizer.ggml.tokens", &pieces, l->err);
    if (rc == 1 && pieces.n != hp->n_vocab)
        return ply_fail(
            l->err, PLY_EFORMAT,
            "%.100s: %" PRIu64
            " pieces in tokenizer.ggml.tokens, but tensor token_embd.weight has %" PRIu32 " rows",
            file_name(l), pieces.n, hp->n_vocab);
    for (size_t i = 0; rc >= 0 && i < PLY_COUNT(ids); i++) {
        char key[64];
        uint64_t id = 0;
        snprintf(key, sizeof(key), "tokenizer.ggml.%s_token_id", ids[i]);
        rc = ply_gguf_u64(l->g, key, &id, l->err);
        if (rc == 1 && id >= hp->n_vocab)
            return ply_fail(l->err, PLY_EFORMAT,
                            "%.100s: key %s is %" PRIu64 ", but there are %" PRIu32 " pieces",
                            file_name(l), key, id, hp->n_vocab);
    }
    return rc < 0 ? rc : PLY_OK;
}

static int
read_hparams(struct loader *l)
{
    int rc = read_arch(l);
    if (rc == PLY_OK)
        rc = refuse_features(l);
    if (rc == PLY_OK)
        rc = read_sizes(l);
    if (rc == PLY_OK)
        rc = read_heads(l);
    if (rc == PLY_OK)
        rc = read_rope(l);
    if (rc == PLY_OK)
        rc = read_window(l);
    if (rc == PLY_OK)
        rc = read_scales(l);
    if (rc == PLY_OK)
        rc = read_vocab_size(l);
    return rc;
}

/* ---- tensors --------------------------------------------------------------------------- */

/* The tensor of that name if it has the shape [n_in, n_out] and a type we compute with; n_out 1
 * is a vector. *out NULL: it is absent, which is an error only if it is required. */
static int
find_tensor(struct loader *l, const char *name, uint64_t n_in, uint64_t n_out, bool required,
            const struct ply_gguf_tensor **out, const struct ply_type_traits **type)
{
    const struct ply_gguf_tensor *t = *out = ply_gguf_tensor(l->g, name);
    if (!t) {
        if (!required)
            return PLY_OK;
        return ply_fail(l->err, PLY_EFORMAT, "%.100s: tensor %s is missing", file_name(l), name);
    }
    if (t->ne[0] != n_in || t->ne[1] != n_out || t->ne[2] != 1 || t->ne[3] != 1)
        return ply_fail(l->err, PLY_EFORMAT,
                        "%.100s: tensor %s is %" PRIu64 " x %" PRIu64 "%s, must be %" PRIu64
                        " x %" PRIu64,
                        file_name(l), name, t->ne[0], t->ne[1],
                        t->ne[2] != 1 || t->ne[3] != 1 ? " x more" : "", n_in, n_out);
    *type = ply_type_find(t->type);
    if (!*type)
        return ply_fail(l->err, PLY_EUNSUPPORTED,
                        "%.100s: tensor %s has type %s; supported are " SUPPORTED_TYPES,
                        file_name(l), name, ply_type_name(t->type));
    l->used[t - ply_gguf_tensor_at(l->g, 0)] = true;
    return PLY_OK;
}

static int
load_matrix(struct loader *l, const char *name, uint32_t n_in, uint32_t n_out, bool required,
            struct ply_tensor *out)
{
    const struct ply_gguf_tensor *t;
    const struct ply_type_traits *type;
    const int rc = find_tensor(l, name, n_in, n_out, required, &t, &type);
    if (rc != PLY_OK || !t)
        return rc;
    *out = (struct ply_tensor){.type = type, .n_in = n_in, .n_out = n_out, .data = t->data};
    snprintf(out->name, sizeof(out->name), "%s", name);
    return PLY_OK;
}

/* First walk: check and count. Second walk: fill and point there. */
static int
load_vector(struct loader *l, const char *name, uint32_t n, bool required, const float **out)
{
    const struct ply_gguf_tensor *t;
    const struct ply_type_traits *type;
    const int rc = find_tensor(l, name, n, 1, required, &t, &type);
    if (rc != PLY_OK || !t)
        return rc;
    if (type->block != 1)
        return ply_fail(l->err, PLY_EUNSUPPORTED,
                        "%.100s: tensor %s has type %s; supported for vectors are F32 F16 BF16",
                        file_name(l), name, type->name);
    if (l->m->floats) {
        float *dst = l->m->floats + l->floats;
        type->dequant(t->data, dst, n);
        *out = dst;
    }
    l->floats += (n + VECTOR_ALIGN_FLOATS - 1) / VECTOR_ALIGN_FLOATS * VECTOR_ALIGN_FLOATS;
    return PLY_OK;
}

static int
load_layer(struct loader *l, uint32_t index)
{
    struct ply_hparams *hp = &l->m->hp;
    struct ply_layer *L = &l->m->layers[index];
    const bool gemma = hp->arch == PLY_ARCH_GEMMA3, llama = !gemma;
    const uint32_t E = hp->n_embd, Q = hp->n_head * hp->d_head, KV = hp->n_head_kv * hp->d_head;
    const struct {
        const char *part;
        uint32_t n_in, n_out;
        struct ply_tensor *out;
    } matrices[] = {
        {"attn_q.weight", E, Q, &L->q},
        {"attn_k.weight", E, KV, &L->k},
        {"attn_v.weight", E, KV, &L->v},
        {"attn_output.weight", Q, E, &L->o},
        {"ffn_gate.weight", E, hp->n_ff, &L->gate},
        {"ffn_up.weight", E, hp->n_ff, &L->up},
        {"ffn_down.weight", hp->n_ff, E, &L->down},
    };
    const struct {
        const char *part;
        uint32_t n;
        bool allowed, required;
        const float **out;
    } vectors[] = {
        {"attn_norm.weight", E, true, true, &L->attn_norm},
        {"ffn_norm.weight", E, true, true, &L->ffn_norm},
        {"post_attention_norm.weight", E, gemma, true, &L->post_attn_norm},
        {"post_ffw_norm.weight", E, gemma, true, &L->post_ffn_norm},
        {"attn_q_norm.weight", hp->d_head, gemma, true, &L->q_norm},
        {"attn_k_norm.weight", hp->d_head, gemma, true, &L->k_norm},
        {"attn_q.bias", Q, llama, false, &L->q_bias},
        {"attn_k.bias", KV, llama, false, &L->k_bias},
        {"attn_v.bias", KV, llama, false, &L->v_bias},
    };
    char name[64];
    int rc = PLY_OK;
    for (size_t i = 0; rc == PLY_OK && i < PLY_COUNT(matrices); i++) {
        snprintf(name, sizeof(name), "blk.%" PRIu32 ".%s", index, matrices[i].part);
        rc = load_matrix(l, name, matrices[i].n_in, matrices[i].n_out, true, matrices[i].out);
    }
    for (size_t i = 0; rc == PLY_OK && i < PLY_COUNT(vectors); i++) {
        snprintf(name, sizeof(name), "blk.%" PRIu32 ".%s", index, vectors[i].part);
        if (vectors[i].allowed)
            rc = load_vector(l, name, vectors[i].n, vectors[i].required, vectors[i].out);
    }
    L->local = hp->window_pattern > 0 && (index + 1) % hp->window_pattern != 0;
    return rc;
}

/* Rotary frequencies are divided by these, so none may be zero or no number. */
static int
check_rope_freqs(const struct loader *l)
{
    const float *f = l->m->rope_freqs;
    for (uint32_t i = 0; f && i < l->m->hp.rope_dim / 2; i++) {
        if (!isfinite(f[i]) || f[i] <= 0)
            return ply_fail(l->err, PLY_EFORMAT,
                            "%.100s: tensor rope_freqs.weight holds %g, must be finite and above 0",
                            file_name(l), (double)f[i]);
    }
    return PLY_OK;
}

/* One walk over all tensors. */
static int
load_tensors(struct loader *l)
{
    struct ply_model *m = l->m;
    const struct ply_hparams *hp = &m->hp;
    l->floats = 0;
    int rc = load_matrix(l, "token_embd.weight", hp->n_embd, hp->n_vocab, true, &m->embd);
    if (rc == PLY_OK)
        rc = load_matrix(l, "output.weight", hp->n_embd, hp->n_vocab, false, &m->head);
    if (rc == PLY_OK)
        rc = load_vector(l, "output_norm.weight", hp->n_embd, true, &m->out_norm);
    if (rc == PLY_OK && hp->arch == PLY_ARCH_LLAMA)
        rc = load_vector(l, "rope_freqs.weight", hp->rope_dim / 2, false, &m->rope_freqs);
    for (uint32_t i = 0; rc == PLY_OK && i < hp->n_layer; i++)
        rc = load_layer(l, i);
    if (rc == PLY_OK && !m->head.type) {
        m->head = m->embd;
        m->tied = true;
    }
    return rc;
}

static int
refuse_leftovers(const struct loader *l)
{
    for (uint64_t i = 0; i < ply_gguf_n_tensors(l->g); i++) {
        const struct ply_gguf_tensor *t = ply_gguf_tensor_at(l->g, i);
        if (!l->used[i])
            return ply_fail(l->err, PLY_EUNSUPPORTED,
                            "%.100s: tensor %.*s is no part of the %s architecture as supported",
                            file_name(l), (int)PLY_MIN(t->name.n, (size_t)80), t->name.s, l->arch);
    }
    return PLY_OK;
}

static int
load(struct loader *l)
{
    struct ply_model *m = l->m;
    const uint64_t n_tensors = ply_gguf_n_tensors(l->g);
    int rc = read_hparams(l);
    if (rc != PLY_OK)
        return rc;
    m->layers = calloc(m->hp.n_layer, sizeof(*m->layers));
    l->used = calloc((size_t)n_tensors, sizeof(*l->used));
    if (!m->layers || !l->used)
        return ply_fail(l->err, PLY_ENOMEM, "out of memory");
    rc = load_tensors(l);
    if (rc == PLY_OK)
        rc = refuse_leftovers(l);
    if (rc != PLY_OK)
        return rc;
    m->floats = aligned_alloc(64, (size_t)l->floats * sizeof(float));
    if (!m->floats)
        return ply_fail(l->err, PLY_ENOMEM, "out of memory");
    rc = load_tensors(l);
    return rc == PLY_OK ? check_rope_freqs(l) : rc;
}

int
ply_model_load(struct ply_model **out, const struct ply_gguf *g, struct ply_err *err)
{
    *out = NULL;
    struct ply_model *m = calloc(1, sizeof(*m));
    if (!m)
        return ply_fail(err, PLY_ENOMEM, "out of memory");
    m->gguf = g;
    struct loader l = {.g = g, .m = m, .err = err};
    const int rc = load(&l);
    free(l.used);
    if (rc != PLY_OK)
        ply_model_free(&m);
    *out = m;
    return rc;
}

void
ply_model_free(struct ply_model **mp)
{
    struct ply_model *m = *mp;
    if (!m)
        return;
    free(m->layers);
    free(m->floats);
    free(m);
    *mp = NULL;
}

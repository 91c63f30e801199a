/* SPDX-License-Identifier: MIT
 * mkmodel OUT [options]: write a tiny GGUF model with random weights, the same bytes on every
 * machine. The file is complete: metadata, a vocabulary, a chat template, all tensors.
 *
 *   --arch llama|gemma3     llama: 2 layers, 4 heads, 2 of them for keys; gemma3: 7 layers (the
 *                           sixth looks at everything, the others through a window of 96)
 *   --type T                the layers' type, F32 .. Q6_K, or Q4_K_M: the mixture that the common
 *                           files of that name have (Q5_0, Q4_K, Q6_K, Q8_0)
 *   --embd T  --head T      the embedding's type (default: --type); an untied output.weight
 *   --tok bpe|spm  --template NAME|none  --pre NAME  --gaps  --default-system TEXT
 *   --layers N  --ctx N  --seed N  --name TEXT
 *   --bias  --rope-freqs    q/k/v biases, Llama 3's frequency divisors
 *   --rope-scale F          linear scaling
 *   --small                 one narrow layer (width 32): seeds for fuzzing
 *   --vocab-only            no tensors
 *   --nan                   every logit is a NaN
 *   --nan-id ID             only after this id was fed (with --head, or its own logit always is)
 *
 * Weights are written as packed blocks: random codes under random scales, sized so that a product
 * with a normalised vector is about as large as the vector. A number is a hash of (seed, tensor,
 * index), so that adding a tensor changes no other. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "engine/quant.h"
#include "tests/ggufw.h"
#include "tests/mkvocab.h"

struct opts {
    const char *out, *arch, *type, *embd, *head, *name;
    struct mkvocab_opts vocab;
    uint32_t layers, ctx;
    uint64_t seed;
    bool bias, rope_freqs, nan, small, vocab_only;
    long nan_id;
    float rope_scale;
};

struct shape {
    bool gemma;
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, d_head, window, n_vocab;
};

/* ---- random numbers -------------------------------------------------------------------- */

struct rng {
    uint64_t key, n;
};

/* The finaliser of SplitMix64: a bijection that mixes every bit into every other. */
static uint64_t
mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static struct rng
rng_for(uint64_t seed, const char *tensor)
{
    uint64_t h = mix(seed + 0x9e3779b97f4a7c15u);
    for (; *tensor; tensor++)
        h = mix(h ^ (unsigned char)*tensor);
    return (struct rng){h, 0};
}

static uint64_t
rng_next(struct rng *r)
{
    return mix(r->key + ++r->n * 0x9e3779b97f4a7c15u);
}

/* Uniform in [lo, hi), a multiple of (hi - lo) / 2^24: exact in float32. */
static float
rng_range(struct rng *r, float lo, float hi)
{
    return lo + (hi - lo) * ((float)(rng_next(r) >> 40) * 0x1p-24f);
}

/* ---- weights --------------------------------------------------------------------------- */

/* Where a block keeps its f16 scale and minimum, and what the random codes around them are
 * worth: dev is the standard deviation of (code, offset taken away) x sub-scale. */
struct packing {
    enum ply_type type;
    int at_d, at_m; /* byte offsets; -1: none */
    float dev;
    float m_over_d; /* the minimum that centres the codes, in units of d */
};

static const struct packing packings[] = {
    {PLY_TYPE_Q4_0, 0, -1, 4.6f, 0},      {PLY_TYPE_Q4_1, 0, 2, 4.6f, -7.5f},
    {PLY_TYPE_Q5_0, 0, -1, 9.2f, 0},      {PLY_TYPE_Q5_1, 0, 2, 9.2f, -15.5f},
    {PLY_TYPE_Q8_0, 0, -1, 74.0f, 0},     {PLY_TYPE_Q2_K, 80, 82, 9.9f, 1.5f},
    {PLY_TYPE_Q3_K, 108, -1, 42.0f, 0},   {PLY_TYPE_Q4_K, 0, 2, 168.0f, 7.5f},
    {PLY_TYPE_Q5_K, 0, 2, 337.0f, 15.5f}, {PLY_TYPE_Q6_K, 208, -1, 1360.0f, 0},
};

static void
put_f16(uint8_t *p, float v)
{
    const uint16_t h = ply_f32_to_f16(v);
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
}

/* In the types with minima, give every sub-block the same number as scale and as minimum, so that
 * m_over_d centres them all. */
static void
tie_minima(enum ply_type type, uint8_t *block)
{
    if (type == PLY_TYPE_Q2_K) {
        for (unsigned i = 0; i < 16; i++)
            block[i] = (uint8_t)((block[i] & 15) | (block[i] & 15) << 4);
    } else if (type == PLY_TYPE_Q4_K || type == PLY_TYPE_Q5_K) {
        uint8_t *s = block + 4;
        for (unsigned i = 0; i < 4; i++) {
            s[4 + i] = s[i];
            s[8 + i] = (uint8_t)((s[8 + i] & 15) | (s[8 + i] & 15) << 4);
        }
    }
}

static void
fill_block(const struct packing *p, const struct ply_type_traits *t, uint8_t *block, float dev,
           struct rng *r)
{
    for (unsigned i = 0; i < t->block_bytes; i++)
        block[i] = (uint8_t)(rng_next(r) >> 56);
    if (p->type == PLY_TYPE_Q8_0) {
        for (unsigned i = 2; i < t->block_bytes; i++)
            block[i] = block[i] == 0x80 ? 0x81 : block[i]; /* quantisers never write -128 */
    }
    tie_minima(p->type, block);
    const float sign = rng_next(r) >> 63 && p->at_m < 0 ? -1.0f : 1.0f;
    const float d = ply_f16_to_f32(ply_f32_to_f16(sign * rng_range(r, 0.5f, 1.5f) * dev / p->dev));
    put_f16(block + p->at_d, d);
    if (p->at_m >= 0)
        put_f16(block + p->at_m, d * p->m_over_d * rng_range(r, 0.95f, 1.05f));
}

static void
fill_float(enum ply_type type, uint8_t *dst, float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof(u));
    if (type == PLY_TYPE_F16)
        put_f16(dst, v);
    for (unsigned i = 0; type == PLY_TYPE_F32 && i < 4; i++)
        dst[i] = (uint8_t)(u >> (8 * i));
    for (unsigned i = 0; type == PLY_TYPE_BF16 && i < 2; i++)
        dst[i] = (uint8_t)(u >> (16 + 8 * i));
}

static const struct ply_type_traits *
type_by_name(const char *name)
{
    for (uint32_t i = 0; i < 64; i++) {
        const struct ply_type_traits *t = ply_type_find(i);
        if (t && strcmp(t->name, name) == 0)
            return t;
    }
    fprintf(stderr, "mkmodel: no type %s\n", name);
    exit(2);
}

/* A random matrix of n_out rows; elements have standard deviation dev. */
static uint8_t *
make_matrix(const struct ply_type_traits *t, uint64_t seed, const char *name, uint32_t n_in,
            uint32_t n_out, float dev, size_t *n_bytes)
{
    const struct packing *p = NULL;
    for (size_t i = 0; i < PLY_COUNT(packings); i++) {
        if (packings[i].type == t->type)
            p = &packings[i];
    }
    const size_t n_blocks = (size_t)n_in / t->block * n_out;
    struct rng r = rng_for(seed, name);
    *n_bytes = n_blocks * t->block_bytes;
    uint8_t *data = malloc(*n_bytes);
    if (!data || n_in % t->block != 0)
        abort();
    /* A uniform number in [-1, 1) has a standard deviation of 1 / sqrt(3). */
    for (size_t i = 0; i < n_blocks; i++) {
        if (p)
            fill_block(p, t, data + i * t->block_bytes, dev, &r);
        else
            fill_float(t->type, data + i * t->block_bytes, 1.7320508f * dev * rng_range(&r, -1, 1));
    }
    return data;
}

/* ---- tensors --------------------------------------------------------------------------- */

static void
write_matrix(struct ggufw *w, const struct opts *o, const char *type, const char *name,
             uint32_t n_in, uint32_t n_out)
{
    const struct ply_type_traits *t = type_by_name(type);
    const uint64_t ne[2] = {n_in, n_out};
    size_t n_bytes;
    uint8_t *data = make_matrix(t, o->seed, name, n_in, n_out, 1.0f / sqrtf((float)n_in), &n_bytes);
    ggufw_tensor(w, name, t->type, 2, ne, data, n_bytes);
    free(data);
}

/* A float vector around `mid`, +- spread. */
static void
write_vector(struct ggufw *w, const struct opts *o, const char *name, uint32_t n, float mid,
             float spread)
{
    const uint64_t ne[1] = {n};
    struct rng r = rng_for(o->seed, name);
    uint8_t *data = malloc((size_t)n * 4);
    if (!data)
        abort();
    for (uint32_t i = 0; i < n; i++)
        fill_float(PLY_TYPE_F32, data + 4 * (size_t)i, mid + spread * rng_range(&r, -1, 1));
    if (o->nan && strcmp(name, "output_norm.weight") == 0)
        fill_float(PLY_TYPE_F32, data, nanf(""));
    ggufw_tensor(w, name, PLY_TYPE_F32, 1, ne, data, (size_t)n * 4);
    free(data);
}

static void
write_embedding(struct ggufw *w, const struct opts *o, const struct shape *s)
{
    const struct ply_type_traits *t = type_by_name(o->embd);
    const uint64_t ne[2] = {s->n_embd, s->n_vocab};
    size_t n_bytes;
    /* 0.15: tied logits get a standard deviation of about 2.4. */
    uint8_t *data =
        make_matrix(t, o->seed, "token_embd.weight", s->n_embd, s->n_vocab, 0.15f, &n_bytes);
    if (o->nan_id >= 0 && o->nan_id < (long)s->n_vocab) {
        const size_t row = n_bytes / s->n_vocab;
        uint8_t *p = data + row * (size_t)o->nan_id;
        if (t->block == 1)
            fill_float(t->type, p, nanf(""));
        for (size_t i = 0; i < PLY_COUNT(packings); i++) {
            if (packings[i].type == t->type)
                put_f16(p + packings[i].at_d, nanf(""));
        }
    }
    ggufw_tensor(w, "token_embd.weight", t->type, 2, ne, data, n_bytes);
    free(data);
}

/* The type of a layer's matrix: --type, or its part in the mixture. */
static const char *
layer_type(const struct opts *o, const char *part)
{
    if (strcmp(o->type, "Q4_K_M") != 0)
        return o->type;
    if (strcmp(part, "attn_output") == 0)
        return "Q4_K";
    if (strcmp(part, "attn_v") == 0)
        return "Q8_0";
    return strcmp(part, "ffn_down") == 0 ? "Q6_K" : "Q5_0";
}

static void
write_layer(struct ggufw *w, const struct opts *o, const struct shape *s, uint32_t l)
{
    const uint32_t n_q = s->n_head * s->d_head, n_kv = s->n_head_kv * s->d_head;
    const struct {
        const char *part;
        uint32_t n_in, n_out;
    } mats[] = {
        {"attn_q", s->n_embd, n_q},       {"attn_k", s->n_embd, n_kv},
        {"attn_v", s->n_embd, n_kv},      {"attn_output", n_q, s->n_embd},
        {"ffn_gate", s->n_embd, s->n_ff}, {"ffn_up", s->n_embd, s->n_ff},
        {"ffn_down", s->n_ff, s->n_embd},
    };
    const struct {
        const char *part;
        uint32_t n;
        bool here;
        float mid, spread;
    } vecs[] = {
        {"attn_norm.weight", s->n_embd, true, 1, 0.2f},
        {"ffn_norm.weight", s->n_embd, true, 1, 0.2f},
        {"post_attention_norm.weight", s->n_embd, s->gemma, 1, 0.2f},
        {"post_ffw_norm.weight", s->n_embd, s->gemma, 1, 0.2f},
        {"attn_q_norm.weight", s->d_head, s->gemma, 1, 0.2f},
        {"attn_k_norm.weight", s->d_head, s->gemma, 1, 0.2f},
        {"attn_q.bias", n_q, o->bias, 0, 0.3f},
        {"attn_k.bias", n_kv, o->bias, 0, 0.3f},
        {"attn_v.bias", n_kv, o->bias, 0, 0.3f},
    };
    char name[64];
    for (size_t i = 0; i < PLY_COUNT(mats); i++) {
        snprintf(name, sizeof(name), "blk.%" PRIu32 ".%s.weight", l, mats[i].part);
        write_matrix(w, o, layer_type(o, mats[i].part), name, mats[i].n_in, mats[i].n_out);
    }
    for (size_t i = 0; i < PLY_COUNT(vecs); i++) {
        snprintf(name, sizeof(name), "blk.%" PRIu32 ".%s", l, vecs[i].part);
        if (vecs[i].here)
            write_vector(w, o, name, vecs[i].n, vecs[i].mid, vecs[i].spread);
    }
}

/* Llama 3.1's kind: 1 for the fast half of the pairs, growing to 8 for the slow ones. */
static void
write_rope_freqs(struct ggufw *w, uint32_t n)
{
    const uint64_t ne[1] = {n};
    struct ply_buf b = {0};
    for (uint32_t i = 0; i < n; i++) {
        const float f = i < n / 2 ? 1.0f : 1.0f + 7.0f * (float)(i - n / 2) / (float)(n / 2);
        uint8_t le[4];
        fill_float(PLY_TYPE_F32, le, f);
        ggufw_put(&b, le, sizeof(le));
    }
    ggufw_tensor(w, "rope_freqs.weight", PLY_TYPE_F32, 1, ne, b.v, b.n);
    ply_buf_fini(&b);
}

static void
write_tensors(struct ggufw *w, const struct opts *o, const struct shape *s)
{
    write_embedding(w, o, s);
    for (uint32_t l = 0; l < s->n_layer; l++)
        write_layer(w, o, s, l);
    write_vector(w, o, "output_norm.weight", s->n_embd, 1, 0.2f);
    if (o->head)
        write_matrix(w, o, o->head, "output.weight", s->n_embd, s->n_vocab);
    if (o->rope_freqs)
        write_rope_freqs(w, s->d_head / 2);
}

/* ---- metadata -------------------------------------------------------------------------- */

static void
write_hparams(struct ggufw *w, const struct opts *o, const struct shape *s)
{
    const struct {
        const char *key;
        uint32_t v;
        bool here;
    } ints[] = {
        {"block_count", s->n_layer, true},
        {"context_length", o->ctx, true},
        {"embedding_length", s->n_embd, true},
        {"feed_forward_length", s->n_ff, true},
        {"attention.head_count", s->n_head, true},
        {"attention.head_count_kv", s->n_head_kv, true},
        {"rope.dimension_count", s->d_head, !s->gemma},
        {"vocab_size", s->n_vocab, !s->gemma},
        {"attention.key_length", s->d_head, s->gemma},
        {"attention.value_length", s->d_head, s->gemma},
        {"attention.sliding_window", s->window, s->gemma},
    };
    char key[64];
    for (size_t i = 0; i < PLY_COUNT(ints); i++) {
        snprintf(key, sizeof(key), "%s.%s", o->arch, ints[i].key);
        if (ints[i].here)
            ggufw_u32(w, key, ints[i].v);
    }
    snprintf(key, sizeof(key), "%s.attention.layer_norm_rms_epsilon", o->arch);
    ggufw_f32(w, key, s->gemma ? 1e-6f : 1e-5f);
    snprintf(key, sizeof(key), "%s.rope.freq_base", o->arch);
    ggufw_f32(w, key, s->gemma ? 1000000.0f : 10000.0f);
    if (o->rope_scale != 1.0f) {
        snprintf(key, sizeof(key), "%s.rope.scaling.type", o->arch);
        ggufw_str(w, key, "linear");
        snprintf(key, sizeof(key), "%s.rope.scaling.factor", o->arch);
        ggufw_f32(w, key, o->rope_scale);
    }
}

static int
write_model(const struct opts *o)
{
    struct shape s = {
        .n_layer = 2, .n_embd = 256, .n_ff = 512, .n_head = 4, .n_head_kv = 2, .d_head = 64};
    if (strcmp(o->arch, "gemma3") == 0)
        s = (struct shape){.gemma = true,
                           .n_layer = 7,
                           .n_embd = 256,
                           .n_ff = 256,
                           .n_head = 4,
                           .n_head_kv = 1,
                           .d_head = 128,
                           .window = 96};
    if (o->small) {
        s.n_layer = 1;
        s.n_embd = s.n_ff = 32;
        s.d_head = 8;
    }
    if (o->layers)
        s.n_layer = o->layers;
    struct ggufw w;
    ggufw_init(&w);
    ggufw_str(&w, "general.architecture", o->arch);
    ggufw_str(&w, "general.name", o->name ? o->name : "Tiny random model");
    ggufw_str(&w, "general.license", "mit");
    ggufw_arr(&w, "general.languages", PLY_GGUF_STR, 1);
    ggufw_put_str(&w.kv, "en", 2);
    s.n_vocab = mkvocab_write(&w, &o->vocab);
    if (s.n_vocab == 0) {
        fprintf(stderr, "mkmodel: no template %s\n", o->vocab.chat);
        return 2;
    }
    write_hparams(&w, o, &s);
    if (!o->vocab_only)
        write_tensors(&w, o, &s);
    struct ply_buf file = {0};
    ggufw_finish(&w, &file);
    const int rc = ggufw_save(&file, o->out);
    if (rc != 0)
        perror(o->out);
    ply_buf_fini(&file);
    ggufw_fini(&w);
    return rc != 0;
}

/* ---- command line ---------------------------------------------------------------------- */

static bool
flag(const char *arg, const char *name, bool *on)
{
    if (strcmp(arg, name) != 0)
        return false;
    *on = true;
    return true;
}

/* An option with a value; false when there is none of that name. */
static bool
option(struct opts *o, const char *arg, const char *v)
{
    const struct {
        const char *name;
        const char **dst;
    } texts[] = {
        {"--arch", &o->arch},     {"--type", &o->type},
        {"--embd", &o->embd},     {"--head", &o->head},
        {"--name", &o->name},     {"--template", &o->vocab.chat},
        {"--pre", &o->vocab.pre}, {"--default-system", &o->vocab.default_system},
    };
    for (size_t i = 0; i < PLY_COUNT(texts); i++) {
        if (strcmp(arg, texts[i].name) == 0) {
            *texts[i].dst = v;
            return true;
        }
    }
    if (strcmp(arg, "--tok") == 0)
        o->vocab.spm = strcmp(v, "spm") == 0;
    else if (strcmp(arg, "--layers") == 0)
        o->layers = (uint32_t)strtoul(v, NULL, 10);
    else if (strcmp(arg, "--ctx") == 0)
        o->ctx = (uint32_t)strtoul(v, NULL, 10);
    else if (strcmp(arg, "--seed") == 0)
        o->seed = strtoull(v, NULL, 10);
    else if (strcmp(arg, "--nan-id") == 0)
        o->nan_id = strtol(v, NULL, 10);
    else if (strcmp(arg, "--rope-scale") == 0)
        o->rope_scale = strtof(v, NULL);
    else
        return false;
    return true;
}

int
main(int argc, char **argv)
{
    struct opts o = {.arch = "llama",
                     .type = "Q8_0",
                     .vocab.chat = "chatml",
                     .ctx = 1024,
                     .seed = 1,
                     .nan_id = -1,
                     .rope_scale = 1};
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (flag(a, "--bias", &o.bias) || flag(a, "--rope-freqs", &o.rope_freqs) ||
            flag(a, "--nan", &o.nan) || flag(a, "--small", &o.small) ||
            flag(a, "--vocab-only", &o.vocab_only) || flag(a, "--gaps", &o.vocab.gaps))
            continue;
        if (a[0] != '-' && !o.out) {
            o.out = a;
        } else if (i + 1 == argc || !option(&o, a, argv[++i])) {
            fprintf(stderr, "mkmodel: bad argument %s\n", a);
            return 2;
        }
    }
    if (!o.out) {
        fprintf(stderr,
                "usage: mkmodel OUT [--arch A] [--type T] ... (see the head of mkmodel.c)\n");
        return 2;
    }
    if (!o.embd)
        o.embd = strcmp(o.type, "Q4_K_M") == 0 ? "Q8_0" : o.type;
    /* A gemma3 base model has Gemma's vocabulary, only no template. */
    if (strcmp(o.arch, "gemma3") == 0 && strcmp(o.vocab.chat, "none") == 0) {
        o.vocab.chat = "gemma";
        o.vocab.no_template = true;
    }
    return write_model(&o);
}

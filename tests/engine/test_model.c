/* SPDX-License-Identifier: MIT
 * Loading weights: what a sound file gives, and one line for every hyper-parameter or tensor that
 * cannot be (cases B72, B73). The files are built here: a small sound model, with one thing in
 * it replaced, left out or added. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/num.h"
#include "engine/model.h"
#include "tests/ggufw.h"

/* ---- building -------------------------------------------------------------------------- */

enum value { DROP, UINT, FLOAT, TEXT, ARRAY };

/* A change to the sound model. key: a metadata key or a tensor. */
struct patch {
    const char *key;
    enum value kind; /* DROP: leave it out */
    uint64_t u;      /* for a tensor: ne[0] */
    float f;
    const char *s;
    uint64_t ne1;  /* tensors: ne[1]; 0: a vector */
    uint32_t type; /* tensors */
};

struct build {
    struct ggufw w;
    const struct patch *p;
    bool used;
};

#define N_EMBD 64u
#define N_FF 96u
#define N_VOCAB 40u

static void
put_value(struct build *b, const char *key, const struct patch *p)
{
    if (p->kind == UINT)
        ggufw_int(&b->w, key, PLY_GGUF_U64, p->u);
    else if (p->kind == FLOAT)
        ggufw_f32(&b->w, key, p->f);
    else if (p->kind == TEXT)
        ggufw_str(&b->w, key, p->s);
    else if (p->kind == ARRAY)
        ggufw_arr(&b->w, key, PLY_GGUF_U32, 0);
}

/* The patch for this key if that is what is to be changed. */
static const struct patch *
patched(struct build *b, const char *key)
{
    if (!b->p || strcmp(b->p->key, key) != 0)
        return NULL;
    b->used = true;
    return b->p;
}

static void
put_key(struct build *b, const char *arch, const char *name, const struct patch *value)
{
    char key[96];
    snprintf(key, sizeof(key), "%s%s%s", arch, arch[0] ? "." : "", name);
    const struct patch *p = patched(b, key);
    put_value(b, key, p ? p : value);
}

static void
put_uint(struct build *b, const char *arch, const char *name, uint64_t v)
{
    put_key(b, arch, name, &(struct patch){.kind = UINT, .u = v});
}

static void
put_f32(struct build *b, const char *arch, const char *name, float v)
{
    put_key(b, arch, name, &(struct patch){.kind = FLOAT, .f = v});
}

static void
put_tensor(struct build *b, const char *name, uint64_t ne0, uint64_t ne1)
{
    const struct patch *p = patched(b, name);
    uint64_t ne[2] = {ne0, ne1};
    uint32_t type = ne1 ? PLY_TYPE_Q8_0 : PLY_TYPE_F32;
    unsigned block, bytes;
    if (p && p->kind == DROP)
        return;
    if (p) {
        ne[0] = p->u;
        ne[1] = p->ne1;
        type = p->type;
    }
    assert_true(ply_type_geometry(type, &block, &bytes));
    const uint64_t n_bytes = ne[0] / block * bytes * (ne[1] ? ne[1] : 1);
    float *ones = malloc((size_t)n_bytes + 4);
    assert_non_null(ones);
    for (size_t i = 0; i < n_bytes / 4; i++)
        ones[i] = 1.0f;
    ggufw_tensor(&b->w, name, type, ne[1] ? 2 : 1, ne, type == PLY_TYPE_F32 ? ones : NULL,
                 (size_t)n_bytes);
    free(ones);
}

static void
put_layer(struct build *b, unsigned l, bool gemma)
{
    const uint64_t q = gemma ? 128 : 64, kv = 32;
    const struct {
        const char *part;
        uint64_t ne0, ne1;
        bool here;
    } rows[] = {
        {"attn_q.weight", N_EMBD, q, true},
        {"attn_k.weight", N_EMBD, kv, true},
        {"attn_v.weight", N_EMBD, kv, true},
        {"attn_output.weight", q, N_EMBD, true},
        {"ffn_gate.weight", N_EMBD, N_FF, true},
        {"ffn_up.weight", N_EMBD, N_FF, true},
        {"ffn_down.weight", N_FF, N_EMBD, true},
        {"attn_norm.weight", N_EMBD, 0, true},
        {"ffn_norm.weight", N_EMBD, 0, true},
        {"post_attention_norm.weight", N_EMBD, 0, gemma},
        {"post_ffw_norm.weight", N_EMBD, 0, gemma},
        {"attn_q_norm.weight", 32, 0, gemma},
        {"attn_k_norm.weight", 32, 0, gemma},
    };
    char name[64];
    for (size_t i = 0; i < PLY_COUNT(rows); i++) {
        snprintf(name, sizeof(name), "blk.%u.%s", l, rows[i].part);
        if (rows[i].here)
            put_tensor(b, name, rows[i].ne0, rows[i].ne1);
    }
}

/* llama: 4 heads of 16, 2 for keys, 2 layers. gemma3: 4 heads of 32, 1 for keys, 7 layers. */
static void
build_model(struct build *b, const char *arch, const struct patch *p)
{
    const bool gemma = strcmp(arch, "gemma3") == 0;
    const unsigned n_layer = gemma ? 7 : 2;
    ggufw_init(&b->w);
    b->p = p;
    b->used = false;
    put_key(b, "", "general.architecture", &(struct patch){.kind = TEXT, .s = arch});
    put_uint(b, arch, "block_count", n_layer);
    put_uint(b, arch, "context_length", 512);
    put_uint(b, arch, "embedding_length", N_EMBD);
    put_uint(b, arch, "feed_forward_length", N_FF);
    put_uint(b, arch, "attention.head_count", 4);
    put_uint(b, arch, "attention.head_count_kv", gemma ? 1 : 2);
    put_f32(b, arch, "attention.layer_norm_rms_epsilon", 1e-5f);
    put_f32(b, arch, "rope.freq_base", gemma ? 1e6f : 5e5f);
    if (gemma) {
        put_uint(b, arch, "attention.key_length", 32);
        put_uint(b, arch, "attention.value_length", 32);
        put_uint(b, arch, "attention.sliding_window", 100);
    }
    put_uint(b, "", "tokenizer.ggml.bos_token_id", 1);
    put_uint(b, "", "tokenizer.ggml.eos_token_id", 2);
    put_tensor(b, "token_embd.weight", N_EMBD, N_VOCAB);
    for (unsigned l = 0; l < n_layer; l++)
        put_layer(b, l, gemma);
    put_tensor(b, "output_norm.weight", N_EMBD, 0);
    /* Not in the sound model: it is something to add. */
    if (p && !b->used && p->type == 0 && p->ne1 == 0 && !strstr(p->key, ".weight") &&
        !strstr(p->key, ".bias"))
        put_value(b, p->key, p);
    else if (p && !b->used)
        put_tensor(b, p->key, p->u, p->ne1);
}

struct loaded {
    struct ply_buf file;
    uint8_t *bytes;
    struct ply_gguf *g;
    struct ply_model *m;
    struct ply_err err;
};

static int
load(struct loaded *l, struct build *b)
{
    *l = (struct loaded){0};
    ggufw_finish(&b->w, &l->file);
    ggufw_fini(&b->w);
    l->bytes = malloc(l->file.n);
    assert_non_null(l->bytes);
    memcpy(l->bytes, l->file.v, l->file.n);
    int rc = ply_gguf_open_bytes(&l->g, "m.gguf", l->bytes, l->file.n, &l->err);
    if (rc == 0)
        rc = ply_model_load(&l->m, l->g, &l->err);
    assert_true((rc == 0) == (l->m != NULL));
    return rc;
}

static void
unload(struct loaded *l)
{
    ply_model_free(&l->m);
    ply_gguf_close(&l->g);
    ply_buf_fini(&l->file);
    free(l->bytes);
}

static void
expect_refusal(const char *arch, const struct patch *p, int code, const char *text)
{
    struct build b;
    struct loaded l;
    build_model(&b, arch, p);
    const int rc = load(&l, &b);
    if (rc != code || !strstr(l.err.msg, text))
        fail_msg("%s changed: got %d \"%s\", expected %d and \"%s\"", p->key, rc, l.err.msg, code,
                 text);
    unload(&l);
}

static void
load_sound(struct loaded *l, const char *arch, const struct patch *p)
{
    struct build b;
    build_model(&b, arch, p);
    if (load(l, &b) != 0)
        fail_msg("%s: %s", arch, l->err.msg);
}

/* ---- sound models ---------------------------------------------------------------------- */

static void
llama_has_its_parameters(void **state)
{
    struct loaded l;
    load_sound(&l, "llama", NULL);
    const struct ply_hparams *hp = &l.m->hp;
    assert_int_equal(hp->arch, PLY_ARCH_LLAMA);
    assert_int_equal(hp->n_layer, 2);
    assert_int_equal(hp->n_embd, N_EMBD);
    assert_int_equal(hp->n_ff, N_FF);
    assert_int_equal(hp->n_vocab, N_VOCAB);
    assert_int_equal(hp->n_ctx_train, 512);
    assert_int_equal(hp->n_head, 4);
    assert_int_equal(hp->n_head_kv, 2);
    assert_int_equal(hp->d_head, 16);
    assert_int_equal(hp->rope_dim, 16);
    assert_false(hp->rope_neox);
    assert_true(hp->rope_base == 5e5);
    assert_true(hp->rope_scale == 1 && hp->rope_scale_local == 1);
    assert_true(hp->rms_eps == 1e-5f);
    assert_true(hp->embd_scale == 1);
    assert_true(hp->attn_scale == 0.25f);
    assert_int_equal(hp->window, 0);
    assert_int_equal(hp->act, PLY_ACT_SILU);
    assert_true(l.m->tied);
    assert_ptr_equal(l.m->head.data, l.m->embd.data);
    assert_false(l.m->layers[0].local);
    assert_null(l.m->layers[0].q_norm);
    assert_null(l.m->layers[0].q_bias);
    assert_null(l.m->rope_freqs);
    assert_int_equal(l.m->layers[1].down.n_in, N_FF);
    assert_int_equal(l.m->layers[1].down.n_out, N_EMBD);
    assert_string_equal(l.m->layers[1].down.name, "blk.1.ffn_down.weight");
    assert_string_equal(l.m->layers[1].down.type->name, "Q8_0");
    unload(&l);
}

/* The local layers' own rotary base, 10000, is in no file (B89). */
static void
gemma3_has_its_parameters(void **state)
{
    struct loaded l;
    load_sound(&l, "gemma3", NULL);
    const struct ply_hparams *hp = &l.m->hp;
    assert_int_equal(hp->arch, PLY_ARCH_GEMMA3);
    assert_int_equal(hp->d_head, 32);
    assert_true(hp->rope_neox);
    assert_true(hp->rope_base == 1e6 && hp->rope_base_local == 1e4);
    assert_true(hp->embd_scale == 8.0f);
    assert_true(hp->attn_scale == 1.0f / sqrtf(32));
    assert_int_equal(hp->window, 100);
    assert_int_equal(hp->window_pattern, 6);
    assert_int_equal(hp->act, PLY_ACT_GELU_TANH);
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(l.m->layers[i].local, i != 5);
    assert_non_null(l.m->layers[6].post_attn_norm);
    assert_non_null(l.m->layers[6].post_ffn_norm);
    assert_non_null(l.m->layers[6].q_norm);
    assert_non_null(l.m->layers[6].k_norm);
    unload(&l);
}

static void
vectors_are_floats_and_aligned(void **state)
{
    struct loaded l;
    const struct patch half = {
        .key = "blk.0.attn_norm.weight", .kind = UINT, .u = N_EMBD, .type = PLY_TYPE_F16};
    load_sound(&l, "llama", NULL);
    assert_true(l.m->out_norm[0] == 1 && l.m->out_norm[N_EMBD - 1] == 1);
    assert_int_equal((uintptr_t)l.m->layers[1].ffn_norm % 64, 0);
    unload(&l);
    load_sound(&l, "llama", &half);
    assert_true(l.m->layers[0].attn_norm[0] == 0); /* the patched tensor holds zeros */
    assert_true(l.m->layers[1].attn_norm[0] == 1);
    unload(&l);
}

static void
optional_parts_are_found(void **state)
{
    const struct patch head = {
        .key = "output.weight", .kind = UINT, .u = N_EMBD, .ne1 = N_VOCAB, .type = PLY_TYPE_F16};
    const struct patch bias = {.key = "blk.1.attn_k.bias", .kind = UINT, .u = 32};
    const struct patch freqs = {.key = "rope_freqs.weight", .kind = UINT, .u = 8};
    struct loaded l;
    load_sound(&l, "llama", &head);
    assert_false(l.m->tied);
    assert_string_equal(l.m->head.name, "output.weight");
    unload(&l);
    load_sound(&l, "llama", &bias);
    assert_non_null(l.m->layers[1].k_bias);
    assert_null(l.m->layers[1].q_bias);
    unload(&l);
    load_sound(&l, "llama", &freqs);
    assert_true(l.m->rope_freqs[7] == 1);
    unload(&l);
}

static void
rotary_scaling_is_read(void **state)
{
    const struct patch factor = {.key = "llama.rope.scaling.factor", .kind = FLOAT, .f = 4};
    const struct patch old = {.key = "llama.rope.scale_linear", .kind = FLOAT, .f = 2};
    const struct patch global = {.key = "gemma3.rope.scaling.factor", .kind = FLOAT, .f = 8};
    const struct patch local = {.key = "gemma3.rope.freq_base_swa", .kind = FLOAT, .f = 20000};
    struct loaded l;
    load_sound(&l, "llama", &factor);
    assert_true(l.m->hp.rope_scale == 4);
    unload(&l);
    load_sound(&l, "llama", &old);
    assert_true(l.m->hp.rope_scale == 2);
    unload(&l);
    load_sound(&l, "gemma3", &global);
    assert_true(l.m->hp.rope_scale == 8 && l.m->hp.rope_scale_local == 1);
    unload(&l);
    load_sound(&l, "gemma3", &local);
    assert_true(l.m->hp.rope_base_local == 20000);
    unload(&l);
}

static void
a_file_without_a_window_has_none(void **state)
{
    const struct patch p = {.key = "gemma3.attention.sliding_window", .kind = DROP};
    struct loaded l;
    load_sound(&l, "gemma3", &p);
    assert_int_equal(l.m->hp.window, 0);
    assert_false(l.m->layers[0].local);
    unload(&l);
}

/* ---- hyper-parameters that cannot be (B73) ---------------------------------------------- */

static void
numbers_out_of_range(void **state)
{
    static const struct {
        const char *name;
        uint64_t v;
    } rows[] = {
        {"attention.head_count", 0},
        {"attention.head_count", 3},
        {"attention.head_count", 1ull << 31},
        {"attention.head_count_kv", 0},
        {"attention.head_count_kv", 3},
        {"attention.head_count_kv", 8},
        {"block_count", 0},
        {"block_count", 600},
        {"block_count", 1ull << 31},
        {"block_count", 1ull << 63},
        {"attention.key_length", 0},
        {"attention.key_length", 255},
        {"attention.key_length", 1ull << 32},
        {"context_length", 0},
        {"context_length", UINT32_MAX},
        {"embedding_length", 0},
        {"embedding_length", 1ull << 32},
        {"feed_forward_length", 0},
        {"feed_forward_length", 1ull << 40},
        {"rope.dimension_count", 0},
        {"rope.dimension_count", 3},
        {"rope.dimension_count", 64},
        {"vocab_size", N_VOCAB - 1},
        {"vocab_size", 60000},
        {"vocab_size", 1ull << 32},
    };
    char key[96];
    for (size_t i = 0; i < PLY_COUNT(rows); i++) {
        snprintf(key, sizeof(key), "llama.%s", rows[i].name);
        expect_refusal("llama", &(struct patch){.key = key, .kind = UINT, .u = rows[i].v},
                       PLY_EFORMAT, key);
    }
    expect_refusal("gemma3",
                   &(struct patch){.key = "gemma3.attention.sliding_window_pattern", .kind = UINT},
                   PLY_EFORMAT, "gemma3.attention.sliding_window_pattern is 0");
    expect_refusal(
        "gemma3",
        &(struct patch){.key = "gemma3.attention.sliding_window", .kind = UINT, .u = 1ull << 40},
        PLY_EFORMAT, "gemma3.attention.sliding_window is 1099511627776");
}

static void
floats_that_cannot_be(void **state)
{
    static const char *const names[] = {"attention.layer_norm_rms_epsilon", "rope.freq_base",
                                        "rope.scaling.factor", "attention.scale"};
    const float wrong[] = {0.0f, -0.0f, -1.0f, NAN, INFINITY, -INFINITY};
    char key[96];
    for (size_t i = 0; i < PLY_COUNT(names); i++) {
        snprintf(key, sizeof(key), "llama.%s", names[i]);
        for (size_t k = 0; k < PLY_COUNT(wrong); k++)
            expect_refusal("llama", &(struct patch){.key = key, .kind = FLOAT, .f = wrong[k]},
                           PLY_EFORMAT, key);
    }
}

static void
values_of_the_wrong_type(void **state)
{
    expect_refusal("llama", &(struct patch){.key = "llama.block_count", .kind = FLOAT, .f = 2},
                   PLY_EFORMAT, "llama.block_count has type f32");
    expect_refusal("llama", &(struct patch){.key = "llama.rope.freq_base", .kind = TEXT, .s = "x"},
                   PLY_EFORMAT, "llama.rope.freq_base has type string");
    expect_refusal("llama", &(struct patch){.key = "general.architecture", .kind = UINT, .u = 1},
                   PLY_EFORMAT, "general.architecture has type u64");
    expect_refusal("llama", &(struct patch){.key = "llama.attention.head_count", .kind = ARRAY},
                   PLY_EUNSUPPORTED, "llama.attention.head_count differs by layer");
}

static void
keys_that_are_missing(void **state)
{
    static const char *const needed[] = {
        "general.architecture",
        "llama.block_count",
        "llama.context_length",
        "llama.embedding_length",
        "llama.feed_forward_length",
        "llama.attention.head_count",
        "llama.attention.layer_norm_rms_epsilon",
    };
    char text[96];
    for (size_t i = 0; i < PLY_COUNT(needed); i++) {
        snprintf(text, sizeof(text), "key %s is missing", needed[i]);
        expect_refusal("llama", &(struct patch){.key = needed[i], .kind = DROP}, PLY_EFORMAT, text);
    }
}

/* B72: ids beyond the vocabulary. */
static void
ids_out_of_range(void **state)
{
    static const uint64_t wrong[] = {N_VOCAB, 999999, 0xffffffffu, 1ull << 63};
    static const char *const keys[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                                       "tokenizer.ggml.unknown_token_id",
                                       "tokenizer.ggml.eot_token_id"};
    for (size_t i = 0; i < PLY_COUNT(keys); i++) {
        for (size_t k = 0; k < PLY_COUNT(wrong); k++)
            expect_refusal("llama", &(struct patch){.key = keys[i], .kind = UINT, .u = wrong[k]},
                           PLY_EFORMAT, keys[i]);
    }
    expect_refusal("llama", &(struct patch){.key = "tokenizer.ggml.tokens", .kind = ARRAY},
                   PLY_EFORMAT,
                   "0 pieces in tokenizer.ggml.tokens, but tensor token_embd.weight has 40 rows");
}

/* ---- what is sound but not supported --------------------------------------------------- */

static void
unsupported_things_are_named(void **state)
{
    expect_refusal(
        "llama", &(struct patch){.key = "general.architecture", .kind = TEXT, .s = "qwen2"},
        PLY_EUNSUPPORTED, "architecture qwen2 is not supported; supported are llama, gemma3");
    expect_refusal("llama",
                   &(struct patch){.key = "general.architecture", .kind = TEXT, .s = "\x1b[2J"},
                   PLY_EUNSUPPORTED, "architecture ?[2J is not supported");
    expect_refusal(
        "llama", &(struct patch){.key = "llama.rope.scaling.type", .kind = TEXT, .s = "yarn"},
        PLY_EUNSUPPORTED, "rope scaling yarn is not supported; supported are none, linear");
    expect_refusal("llama", &(struct patch){.key = "llama.expert_count", .kind = UINT, .u = 8},
                   PLY_EUNSUPPORTED, "a mixture of experts");
    expect_refusal("gemma3",
                   &(struct patch){.key = "gemma3.final_logit_softcapping", .kind = FLOAT, .f = 30},
                   PLY_EUNSUPPORTED, "soft-capping of logits");
    expect_refusal("gemma3",
                   &(struct patch){.key = "gemma3.attention.value_length", .kind = UINT, .u = 64},
                   PLY_EUNSUPPORTED, "supported are equal lengths");
    expect_refusal(
        "llama",
        &(struct patch){.key = "blk.0.attn_q.weight", .kind = UINT, .u = 64, .ne1 = 64, .type = 20},
        PLY_EUNSUPPORTED, "tensor blk.0.attn_q.weight has type IQ4_NL; supported are F32");
    expect_refusal(
        "llama",
        &(struct patch){.key = "output_norm.weight", .kind = UINT, .u = 64, .type = PLY_TYPE_Q8_0},
        PLY_EUNSUPPORTED, "tensor output_norm.weight has type Q8_0");
    struct loaded l;
    load_sound(&l, "llama", &(struct patch){.key = "llama.expert_count", .kind = UINT, .u = 0});
    unload(&l);
    load_sound(&l, "llama",
               &(struct patch){.key = "llama.rope.scaling.type", .kind = TEXT, .s = "none"});
    unload(&l);
}

/* ---- tensors --------------------------------------------------------------------------- */

static void
every_tensor_is_needed(void **state)
{
    static const char *const names[] = {
        "token_embd.weight",          "output_norm.weight",
        "blk.1.attn_q.weight",        "blk.1.attn_k.weight",
        "blk.1.attn_v.weight",        "blk.1.attn_output.weight",
        "blk.1.ffn_gate.weight",      "blk.1.ffn_up.weight",
        "blk.1.ffn_down.weight",      "blk.1.attn_norm.weight",
        "blk.1.ffn_norm.weight",      "blk.6.post_attention_norm.weight",
        "blk.6.post_ffw_norm.weight", "blk.6.attn_q_norm.weight",
        "blk.6.attn_k_norm.weight",
    };
    char text[96];
    for (size_t i = 0; i < PLY_COUNT(names); i++) {
        snprintf(text, sizeof(text), "tensor %s is missing", names[i]);
        expect_refusal("gemma3", &(struct patch){.key = names[i], .kind = DROP}, PLY_EFORMAT, text);
    }
}

static void
every_shape_is_checked(void **state)
{
    static const struct {
        const char *name;
        uint64_t ne0, ne1;
    } rows[] = {
        {"token_embd.weight", N_EMBD + 32, N_VOCAB},
        {"blk.1.attn_q.weight", N_EMBD, 63},
        {"blk.1.attn_k.weight", N_EMBD, 64},
        {"blk.1.attn_v.weight", N_EMBD, 31},
        {"blk.1.attn_output.weight", 32, N_EMBD},
        {"blk.1.ffn_gate.weight", N_FF, N_EMBD},
        {"blk.1.ffn_up.weight", N_EMBD, N_FF + 1},
        {"blk.1.ffn_down.weight", N_FF, N_EMBD - 1},
        {"blk.1.attn_norm.weight", N_EMBD - 1, 0},
        {"blk.1.ffn_norm.weight", N_EMBD, 2},
        {"output_norm.weight", 1, 0},
        {"output.weight", N_EMBD, N_VOCAB - 1},
        {"blk.1.attn_q.bias", 32, 0},
        {"rope_freqs.weight", 16, 0},
    };
    char text[96];
    for (size_t i = 0; i < PLY_COUNT(rows); i++) {
        snprintf(text, sizeof(text), "tensor %s is ", rows[i].name);
        expect_refusal("llama",
                       &(struct patch){
                           .key = rows[i].name, .kind = UINT, .u = rows[i].ne0, .ne1 = rows[i].ne1},
                       PLY_EFORMAT, text);
    }
}

/* A tensor that we would not use means a computation that we would not do. */
static void
unknown_tensors_are_refused(void **state)
{
    static const char *const names[] = {"blk.0.attn_output.bias", "blk.0.attn_q_norm.weight",
                                        "blk.2.attn_q.weight", "rope_factors_long.weight"};
    for (size_t i = 0; i < PLY_COUNT(names); i++)
        expect_refusal("llama", &(struct patch){.key = names[i], .kind = UINT, .u = 64},
                       PLY_EUNSUPPORTED, names[i]);
}

static void
rotary_divisors_are_checked(void **state)
{
    /* F16 tensors are filled with zeros by the builder. */
    expect_refusal(
        "llama",
        &(struct patch){.key = "rope_freqs.weight", .kind = UINT, .u = 8, .type = PLY_TYPE_F16},
        PLY_EFORMAT, "rope_freqs.weight holds 0");
}

static void
a_vocabulary_is_no_model(void **state)
{
    struct build b;
    struct loaded l;
    build_model(&b, "llama", NULL);
    b.w.n_tensors = 0;
    b.w.info.n = b.w.data.n = 0;
    assert_int_equal(load(&l, &b), PLY_EFORMAT);
    assert_non_null(strstr(l.err.msg, "a vocabulary without weights"));
    unload(&l);
}

/* ---- the generated models -------------------------------------------------------------- */

static void
open_tiny(struct loaded *l, const char *name)
{
    char path[4096];
    *l = (struct loaded){0};
    snprintf(path, sizeof(path), "%s/%s.gguf", getenv("PLY_TEST_MODELS"), name);
    if (ply_gguf_open(&l->g, path, &l->err) != 0 || ply_model_load(&l->m, l->g, &l->err) != 0)
        fail_msg("%s: %s", name, l->err.msg);
}

static void
tiny_models_load(void **state)
{
    static const char *const types[] = {"f32",  "f16",  "bf16", "q4_0", "q4_1", "q5_0", "q5_1",
                                        "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k"};
    struct loaded l;
    char name[64];
    if (!getenv("PLY_TEST_MODELS"))
        skip();
    for (size_t i = 0; i < PLY_COUNT(types); i++) {
        snprintf(name, sizeof(name), "llama-%s-bpe-chatml", types[i]);
        open_tiny(&l, name);
        assert_int_equal(l.m->hp.n_layer, 2);
        unload(&l);
    }
    open_tiny(&l, "gemma3-q4_k_m-spm-gemma");
    assert_string_equal(l.m->layers[0].o.type->name, "Q4_K");
    assert_string_equal(l.m->layers[0].down.type->name, "Q6_K");
    assert_int_equal(l.m->layers[0].q.n_out, 512);
    unload(&l);
    open_tiny(&l, "llama-q4_1-bpe-chatml-bias");
    assert_non_null(l.m->layers[1].v_bias);
    unload(&l);
    open_tiny(&l, "llama-q8_0-bpe-llama3");
    assert_true(l.m->rope_freqs[0] == 1 && l.m->rope_freqs[31] > 7);
    assert_false(l.m->tied);
    unload(&l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_has_its_parameters),
        cmocka_unit_test(gemma3_has_its_parameters),
        cmocka_unit_test(vectors_are_floats_and_aligned),
        cmocka_unit_test(optional_parts_are_found),
        cmocka_unit_test(rotary_scaling_is_read),
        cmocka_unit_test(a_file_without_a_window_has_none),
        cmocka_unit_test(numbers_out_of_range),
        cmocka_unit_test(floats_that_cannot_be),
        cmocka_unit_test(values_of_the_wrong_type),
        cmocka_unit_test(keys_that_are_missing),
        cmocka_unit_test(ids_out_of_range),
        cmocka_unit_test(unsupported_things_are_named),
        cmocka_unit_test(every_tensor_is_needed),
        cmocka_unit_test(every_shape_is_checked),
        cmocka_unit_test(unknown_tensors_are_refused),
        cmocka_unit_test(rotary_divisors_are_checked),
        cmocka_unit_test(a_vocabulary_is_no_model),
        cmocka_unit_test(tiny_models_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

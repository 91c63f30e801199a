/* SPDX-License-Identifier: MIT
 * What a file knows about text, put together: metadata, tokenizer, chat template. Everything
 * is computed when it is opened; afterwards it is only read, by any number of threads. */
#include "engine/vocab.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "engine/base/utf8.h"
#include "engine/chat.h"
#include "engine/quant.h"
#include "engine/tok.h"
#include "engine/tok_pre.h"

#define TEXT_MAX 300 /* bytes of a text in ply_info */

struct ply_vocab {
    struct ply_gguf *gguf;
    struct ply_tok_src src; /* until the tokenizer is built */
    struct ply_tok *tok;
    struct ply_chat chat;
    int32_t bos;     /* -1: prompts begin without one */
    uint8_t *exempt; /* [n_vocab] bool: no sampling penalty touches it */
    struct ply_info info;
    char path[TEXT_MAX], name[TEXT_MAX], arch[TEXT_MAX], quant[TEXT_MAX], licence[TEXT_MAX],
        languages[TEXT_MAX], tokenizer[TEXT_MAX];
    pthread_t thread;
    bool running;
    int rc; /* of the thread */
    struct ply_err err;
};

/* ---- metadata -------------------------------------------------------------------------- */

/* Append s to out, of TEXT_MAX bytes, with '?' for what a terminal could obey or not show:
 * control characters, line and paragraph separators, ill-formed bytes. Cut at a character. */
static void
add_text(char *out, struct ply_str s)
{
    size_t n = strlen(out);
    for (size_t i = 0; i < s.n;) {
        uint32_t cp;
        const int len = ply_utf8_decode(s.s + i, s.n - i, &cp);
        const bool bad =
            len < 0 || cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || cp == 0x2028 || cp == 0x2029;
        const size_t n_out = bad ? 1 : (size_t)len;
        if (n + n_out >= TEXT_MAX)
            break;
        memcpy(out + n, bad ? "?" : s.s + i, n_out);
        n += n_out;
        i += (size_t)abs(len);
    }
    out[n] = '\0';
}

static void
add_chars(char *out, const char *s)
{
    add_text(out, (struct ply_str){s, strlen(s)});
}

/* A key that may hold anything: its text, or nothing. */
static void
read_text(const struct ply_gguf *g, const char *key, char *out)
{
    struct ply_str s;
    if (ply_gguf_str(g, key, &s, NULL) > 0)
        add_text(out, s);
}

static void
read_languages(const struct ply_gguf *g, char *out)
{
    struct ply_gguf_arr arr;
    if (ply_gguf_arr(g, "general.languages", &arr, NULL) <= 0 || arr.type != PLY_GGUF_STR)
        return;
    for (uint64_t i = 0; i < arr.n; i++) {
        if (i > 0)
            add_chars(out, ", ");
        add_text(out, arr.str[i]);
    }
}

/* <arch>.<key>; 0 when it is absent, not one number (some architectures have one a layer), or
 * none that an int holds: the architecture is checked where weights are loaded. */
static int
read_int(const struct ply_gguf *g, const char *arch, const char *key)
{
    char name[TEXT_MAX + 64];
    uint64_t v = 0;
    snprintf(name, sizeof(name), "%s.%s", arch, key);
    if (ply_gguf_u64(g, name, &v, NULL) <= 0 || v > INT32_MAX)
        return 0;
    return (int)v;
}

#define N_TYPES 64 /* more than ggml ever numbered */

/* "Q4_1, head Q8_0": the type that most of the layers' matrices have, and the head's. */
static void
describe_types(const struct ply_gguf *g, struct ply_info *info, char *out)
{
    unsigned count[N_TYPES] = {0};
    uint32_t best = 0;
    const struct ply_gguf_tensor *head = ply_gguf_tensor(g, "output.weight");
    for (uint64_t i = 0; i < ply_gguf_n_tensors(g); i++) {
        const struct ply_gguf_tensor *t = ply_gguf_tensor_at(g, i);
        uint64_t n = 1;
        for (unsigned d = 0; d < t->n_dims; d++)
            n *= t->ne[d]; /* fits: the reader checked the tensor's size */
        info->n_params += n;
        if (t->type < N_TYPES && t->n_dims >= 2 && t->name.n > 4 &&
            memcmp(t->name.s, "blk.", 4) == 0)
            count[t->type]++;
    }
    for (uint32_t i = 0; i < N_TYPES; i++) {
        if (count[i] > count[best])
            best = i;
    }
    if (count[best] == 0)
        return;
    const char *layers = ply_type_name(best);
    add_chars(out, layers ? layers : "unknown");
    head = head ? head : ply_gguf_tensor(g, "token_embd.weight");
    const char *name = head ? ply_type_name(head->type) : NULL;
    if (name && head->type != best) {
        add_chars(out, ", head ");
        add_chars(out, name);
    }
}

static void
read_metadata(struct ply_vocab *v)
{
    const struct ply_gguf *g = v->gguf;
    const char *path = ply_gguf_path(g), *slash = strrchr(path, '/');
    add_chars(v->path, path);
    read_text(g, "general.name", v->name);
    if (!v->name[0])
        add_chars(v->name, slash && slash[1] ? slash + 1 : path);
    read_text(g, "general.architecture", v->arch);
    read_text(g, "general.license", v->licence);
    read_languages(g, v->languages);
    char tokenizer[TEXT_MAX];
    ply_tok_src_name(&v->src, tokenizer, sizeof(tokenizer));
    add_chars(v->tokenizer, tokenizer);
    v->info = (struct ply_info){
        .path = v->path,
        .name = v->name,
        .arch = v->arch,
        .quant = v->quant,
        .licence = v->licence,
        .languages = v->languages,
        .tokenizer = v->tokenizer,
        .chat_template = ply_chat_family_name(&v->chat),
        .base_model = v->chat.base_model,
        .file_bytes = ply_gguf_file_bytes(g),
        .n_vocab = (int)v->src.n,
        .n_ctx_train = read_int(g, v->arch, "context_length"),
        .n_layer = read_int(g, v->arch, "block_count"),
        .n_embd = read_int(g, v->arch, "embedding_length"),
        .n_head = read_int(g, v->arch, "attention.head_count"),
        .n_head_kv = read_int(g, v->arch, "attention.head_count_kv"),
        .n_ff = read_int(g, v->arch, "feed_forward_length"),
        .window = read_int(g, v->arch, "attention.sliding_window"),
        .isa = "",
        .gemm = "",
        .exact_why = "",
    };
    if (v->info.n_head_kv == 0) /* without grouped queries the key may be left out */
        v->info.n_head_kv = v->info.n_head;
    describe_types(g, &v->info, v->quant);
}

/* ---- open ------------------------------------------------------------------------------ */

static int
find_exempt(struct ply_vocab *v)
{
    const uint32_t n = ply_tok_n(v->tok);
    struct ply_ids own = {0};
    v->exempt = calloc(n, 1);
    if (!v->exempt)
        return ply_fail(&v->err, PLY_ENOMEM, "out of memory");
    for (uint32_t id = 0; id < n; id++) {
        size_t len, k = 0;
        const char *s = ply_tok_piece(v->tok, (int32_t)id, &len);
        while (k < len && s[k] == '\n')
            k++;
        v->exempt[id] = (len > 0 && k == len) || ply_tok_is_control(v->tok, (int32_t)id);
    }
    const int rc = ply_chat_own_ids(&v->chat, v->tok, &own, &v->err);
    for (size_t i = 0; i < own.n; i++)
        v->exempt[own.v[i]] = 1;
    ply_ids_fini(&own);
    return rc;
}

static void *
build(void *arg)
{
    struct ply_vocab *v = arg;
    v->rc = ply_tok_open(&v->tok, &v->src, &v->err);
    ply_tok_src_fini(&v->src);
    if (v->rc == PLY_OK)
        v->rc = find_exempt(v);
    return NULL;
}

/* Whether prompts begin with BOS: the file's word, else its tokenizer's custom. */
static bool
wants_bos(const struct ply_gguf *g, const struct ply_tok_src *src)
{
    enum ply_pre_kind kind;
    bool add = !src->bpe || (ply_pre_find(src->pre.s, src->pre.n, &kind) && kind == PLY_PRE_LLAMA3);
    ply_gguf_bool(g, "tokenizer.ggml.add_bos_token", &add, NULL);
    return add && src->bos >= 0;
}

int
ply_vocab_begin(struct ply_vocab **out, const char *path, const struct ply_vocab_opts *opts,
                struct ply_err *err)
{
    *out = NULL;
    struct ply_vocab *v = calloc(1, sizeof(*v));
    if (!v)
        return ply_fail(err, PLY_ENOMEM, "out of memory");
    int rc = ply_gguf_open(&v->gguf, path, err);
    if (rc == PLY_OK)
        rc = ply_tok_src_read(&v->src, v->gguf, err);
    if (rc == PLY_OK) {
        const bool bos = wants_bos(v->gguf, &v->src);
        v->bos = bos ? v->src.bos : -1;
        rc = ply_chat_init(&v->chat, v->gguf, &v->src, opts ? opts->chat_template : NULL, bos, err);
    }
    if (rc != PLY_OK) {
        ply_vocab_close(&v);
        return rc;
    }
    read_metadata(v);
    v->running = pthread_create(&v->thread, NULL, build, v) == 0;
    if (!v->running)
        build(v);
    *out = v;
    return PLY_OK;
}

int
ply_vocab_wait(struct ply_vocab *v, struct ply_err *err)
{
    if (v->running)
        pthread_join(v->thread, NULL);
    v->running = false;
    return v->rc == PLY_OK ? PLY_OK : ply_fail(err, v->rc, "%s", v->err.msg);
}

int
ply_vocab_open(struct ply_vocab **out, const char *path, const struct ply_vocab_opts *opts,
               struct ply_err *err)
{
    int rc = ply_vocab_begin(out, path, opts, err);
    if (rc == PLY_OK)
        rc = ply_vocab_wait(*out, err);
    if (rc != PLY_OK)
        ply_vocab_close(out);
    return rc;
}

void
ply_vocab_close(struct ply_vocab **vp)
{
    struct ply_vocab *v = *vp;
    if (!v)
        return;
    if (v->running)
        pthread_join(v->thread, NULL);
    ply_tok_close(&v->tok);
    ply_tok_src_fini(&v->src);
    ply_chat_fini(&v->chat);
    free(v->exempt);
    ply_gguf_close(&v->gguf);
    free(v);
    *vp = NULL;
}

const struct ply_gguf *
ply_vocab_gguf(const struct ply_vocab *v)
{
    return v->gguf;
}

const struct ply_info *
ply_vocab_info(const struct ply_vocab *v)
{
    return &v->info;
}

/* ---- text and ids ---------------------------------------------------------------------- */

int
ply_encode(const struct ply_vocab *v, const char *text, size_t len, struct ply_ids *out,
           struct ply_err *err)
{
    return ply_tok_encode(v->tok, text, len, true, out, err);
}

int
ply_encode_more(const struct ply_vocab *v, const char *text, size_t len, struct ply_ids *out,
                struct ply_err *err)
{
    return ply_tok_encode(v->tok, text, len, false, out, err);
}

size_t
ply_encode_min(const struct ply_vocab *v, size_t len)
{
    return ply_tok_min(v->tok, len);
}

const char *
ply_piece(const struct ply_vocab *v, int32_t id, size_t *len)
{
    return ply_tok_piece(v->tok, id, len);
}

int
ply_decode(const struct ply_vocab *v, const int32_t *ids, size_t n, struct ply_buf *out,
           struct ply_err *err)
{
    const size_t from = out->n;
    bool first = ply_tok_space_prefix(v->tok);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *s = ply_tok_piece(v->tok, ids[i], &len);
        const size_t skip = first && len > 0 && s[0] == ' ';
        first = first && len == 0;
        if (ply_buf_append(out, s + skip, len - skip) != PLY_OK) {
            out->n = from;
            return ply_fail(err, PLY_ENOMEM, "out of memory for a text of %zu ids", n);
        }
    }
    return PLY_OK;
}

bool
ply_is_control(const struct ply_vocab *v, int32_t id)
{
    return ply_tok_is_control(v->tok, id);
}

bool
ply_is_exempt(const struct ply_vocab *v, int32_t id)
{
    return id >= 0 && (uint32_t)id < ply_tok_n(v->tok) && v->exempt[id];
}

int32_t
ply_bos(const struct ply_vocab *v)
{
    return v->bos;
}

/* ---- chat ------------------------------------------------------------------------------ */

int
ply_chat_render(const struct ply_vocab *v, const struct ply_msg *msgs, size_t n, unsigned flags,
                struct ply_ids *out, struct ply_err *err)
{
    return ply_chat_write(&v->chat, v->tok, msgs, n, flags, out, err);
}

const char *
ply_chat_default_system(const struct ply_vocab *v)
{
    return v->chat.default_system;
}

bool
ply_chat_is_end(const struct ply_vocab *v, int32_t id)
{
    return ply_chat_ends(&v->chat, id);
}

const char *const *
ply_chat_stops(const struct ply_vocab *v)
{
    static const char *const transcript[] = {"\n" PLY_CHAT_LINE_MARK, NULL}, *const none[] = {NULL};
    return v->chat.family->transcript ? transcript : none;
}

bool
ply_chat_stop_at_start(const struct ply_vocab *v, const char *text, size_t len)
{
    const size_t n = strlen(PLY_CHAT_LINE_MARK);
    return v->chat.family->transcript && len >= n && memcmp(text, PLY_CHAT_LINE_MARK, n) == 0;
}

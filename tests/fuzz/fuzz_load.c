/* SPDX-License-Identifier: MIT
 * Fuzz target: everything that is read from a model file before the first word is said. The bytes
 * lie in a block of exactly their size, so that AddressSanitizer sees one read too many; then
 * the same bytes go through the public way in, which also recognises the chat template. What is
 * accepted is used: every value read, every vector and a row of every matrix dequantised, text
 * encoded and every id decoded. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/model.h"
#include "engine/ply.h"
#include "engine/sample.h"
#include "engine/tok.h"
#include "tests/fuzz/fuzz.h"

static const char text[] =
    "Hello  world,\n\n 2024 caf\xc3\xa9 \xf0\x9f\xa6\x99 <|im_end|> \xe6\xad\x00x";

/* A sum that the compiler cannot know to be useless. */
static volatile uint64_t sink;

static void
touch(const void *p, size_t n)
{
    const uint8_t *b = p;
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += b[i];
    sink += sum;
}

static void
use_strings(const struct ply_gguf *g, const char *key)
{
    struct ply_gguf_arr a;
    if (ply_gguf_arr(g, key, &a, NULL) != 1 || !a.str)
        return;
    for (uint64_t i = 0; i < a.n; i++)
        touch(a.str[i].s, a.str[i].n);
}

static void
use_tensors(const struct ply_gguf *g)
{
    for (uint64_t i = 0; i < ply_gguf_n_tensors(g); i++) {
        const struct ply_gguf_tensor *t = ply_gguf_tensor_at(g, i);
        touch(t->name.s, t->name.n);
        touch(t->data, (size_t)t->n_bytes);
    }
}

static void
use_matrix(const struct ply_tensor *t, float *row)
{
    uint64_t bytes;
    if (t->n_in == 0 || !ply_type_row_bytes(t->type, t->n_in, &bytes))
        abort();
    t->type->dequant(t->data + bytes * (t->n_out - 1), row, t->n_in);
    touch(row, t->n_in * sizeof(*row));
}

static void
use_model(const struct ply_gguf *g)
{
    struct ply_model *m;
    if (ply_model_load(&m, g, NULL) != 0)
        return;
    const struct ply_hparams *hp = &m->hp;
    const size_t width = hp->n_embd > hp->n_ff ? hp->n_embd : hp->n_ff;
    const size_t heads = (size_t)hp->n_head * hp->d_head;
    float *row = malloc((width > heads ? width : heads) * sizeof(*row));
    if (!row)
        abort();
    use_matrix(&m->embd, row);
    use_matrix(&m->head, row);
    touch(m->out_norm, hp->n_embd * sizeof(float));
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        const struct ply_layer *l = &m->layers[i];
        const struct ply_tensor *all[] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
        for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
            use_matrix(all[k], row);
        touch(l->attn_norm, hp->n_embd * sizeof(float));
        touch(l->ffn_norm, hp->n_embd * sizeof(float));
    }
    free(row);
    ply_model_free(&m);
}

static void
use_tokenizer(const struct ply_gguf *g)
{
    struct ply_tok_src src;
    struct ply_tok *tok;
    if (ply_tok_src_read(&src, g, NULL) != 0)
        return;
    if (ply_tok_open(&tok, &src, NULL) == 0) {
        struct ply_ids ids = {0};
        if (ply_tok_encode(tok, text, sizeof(text) - 1, true, &ids, NULL) == 0) {
            for (size_t i = 0; i < ids.n; i++) {
                if (ids.v[i] < 0 || (uint32_t)ids.v[i] >= ply_tok_n(tok) ||
                    ply_tok_is_control(tok, ids.v[i]))
                    abort();
            }
        }
        for (uint32_t i = 0; i < ply_tok_n(tok); i++) {
            size_t len;
            const char *s = ply_tok_piece(tok, (int32_t)i, &len);
            touch(s, len);
        }
        ply_ids_fini(&ids);
        ply_tok_close(&tok);
    }
    ply_tok_src_fini(&src);
}

/* A conversation through the public interface. */
static void
use_vocab(const uint8_t *data, size_t size)
{
    const struct ply_msg msgs[] = {
        {.role = PLY_ROLE_SYSTEM, .text = "Be brief.", .len = 9},
        {.role = PLY_ROLE_USER, .text = text, .len = sizeof(text) - 1},
        {.role = PLY_ROLE_ASSISTANT, .text = "### no", .len = 6},
        {.role = PLY_ROLE_USER, .text = "", .len = 0},
    };
    struct ply_vocab *v;
    char path[64];
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (ply_vocab_open(&v, path, NULL, NULL) == 0) {
        struct ply_ids ids = {0};
        struct ply_buf out = {0};
        const struct ply_sampling p = ply_sampling_default(v);
        if (ply_sampling_check(&p, NULL) != 0)
            abort();
        if (ply_chat_render(v, msgs, 4, PLY_CHAT_OPEN_REPLY, &ids, NULL) == 0)
            ply_decode(v, ids.v, ids.n, &out, NULL);
        touch(ply_vocab_info(v)->name, strlen(ply_vocab_info(v)->name));
        ply_buf_fini(&out);
        ply_ids_fini(&ids);
        ply_vocab_close(&v);
    }
    close(fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ply_gguf *g;
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    struct ply_err err = {0};
    const int rc = ply_gguf_open_bytes(&g, "fuzz.gguf", copy, size, &err);
    if ((rc == 0) != (err.code == 0) || (rc == 0) != (g != NULL))
        abort();
    if (rc == 0) {
        use_strings(g, "tokenizer.ggml.tokens");
        use_strings(g, "tokenizer.ggml.merges");
        use_tensors(g);
        use_model(g);
        use_tokenizer(g);
        use_vocab(data, size);
        ply_gguf_close(&g);
    }
    free(copy);
    return 0;
}

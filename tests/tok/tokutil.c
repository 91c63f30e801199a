/* SPDX-License-Identifier: MIT
 * See tokutil.h. Running out of memory or disk aborts: no test is about this file. */
#include "tests/tok/tokutil.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/num.h"
#include "engine/base/utf8.h"
#include "engine/tok_impl.h"
#include "engine/vocab.h"

/* ---- files ----------------------------------------------------------------------------- */

void
tok_write(struct ggufw *w, const char *model, const char *pre, const struct tok_piece *pieces,
          uint32_t n, const char *const *merges, int32_t unk)
{
    ggufw_str(w, "tokenizer.ggml.model", model);
    if (pre)
        ggufw_str(w, "tokenizer.ggml.pre", pre);
    ggufw_arr(w, "tokenizer.ggml.tokens", PLY_GGUF_STR, n);
    for (uint32_t i = 0; i < n; i++)
        ggufw_put_str(&w->kv, pieces[i].text, pieces[i].n ? pieces[i].n : strlen(pieces[i].text));
    ggufw_arr(w, "tokenizer.ggml.token_type", PLY_GGUF_I32, n);
    for (uint32_t i = 0; i < n; i++)
        ggufw_put_int(&w->kv, (uint64_t)(pieces[i].attr ? pieces[i].attr : PLY_TOK_NORMAL), 4);
    if (unk >= 0)
        ggufw_u32(w, "tokenizer.ggml.unknown_token_id", (uint32_t)unk);
    uint32_t n_merges = 0;
    while (merges && merges[n_merges])
        n_merges++;
    ggufw_arr(w, merges ? "tokenizer.ggml.merges" : "tokenizer.ggml.scores",
              merges ? PLY_GGUF_STR : PLY_GGUF_F32, merges ? n_merges : n);
    for (uint32_t i = 0; i < n_merges; i++)
        ggufw_put_str(&w->kv, merges[i], strlen(merges[i]));
    for (uint32_t i = 0; !merges && i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &pieces[i].score, 4);
        ggufw_put_int(&w->kv, bits, 4);
    }
}

uint32_t
tok_byte_pieces(struct tok_piece *out)
{
    static char text[256][4];
    for (uint32_t cp = 0; cp < 0x180; cp++) {
        const int byte = ply_bpe_alphabet(cp);
        if (byte < 0)
            continue;
        text[byte][ply_utf8_encode(cp, text[byte])] = '\0';
        out[byte] = (struct tok_piece){.text = text[byte]};
    }
    return 256;
}

char *
tok_tmp_path(void)
{
    const char *dir = getenv("TMPDIR");
    char *path = malloc(4096);
    snprintf(path, 4096, "%s/plytok-XXXXXX", dir && *dir ? dir : "/tmp");
    const int fd = mkstemp(path);
    if (fd < 0)
        abort();
    close(fd);
    return path;
}

int
tok_open(struct ggufw *w, const char *chat_template, struct ply_vocab **out, struct ply_err *err)
{
    const struct ply_vocab_opts o = {.chat_template = chat_template};
    struct ply_buf file = {0};
    char *path = tok_tmp_path();
    ggufw_finish(w, &file);
    if (ggufw_save(&file, path) != 0)
        abort();
    const int rc = ply_vocab_open(out, path, &o, err);
    unlink(path);
    free(path);
    ply_buf_fini(&file);
    return rc;
}

struct ply_vocab *
tok_must_open(struct ggufw *w, const char *chat_template)
{
    struct ply_vocab *v = NULL;
    struct ply_err err = {0};
    if (tok_open(w, chat_template, &v, &err) != PLY_OK)
        fail_msg("cannot open the vocabulary: %s", err.msg);
    ggufw_fini(w);
    return v;
}

struct ply_vocab *
tok_tiny(const struct mkvocab_opts *o, const char *chat_template)
{
    struct ggufw w;
    ggufw_init(&w);
    ggufw_str(&w, "general.architecture", "llama");
    if (mkvocab_write(&w, o) == 0)
        abort();
    return tok_must_open(&w, chat_template);
}

/* ---- strings for assertions ------------------------------------------------------------ */

static struct ply_buf *
next_buf(void)
{
    static struct ply_buf bufs[8];
    static unsigned at;
    struct ply_buf *b = &bufs[at++ % PLY_COUNT(bufs)];
    b->n = 0;
    ply_buf_append(b, "", 0);
    return b;
}

const char *
tok_show_ids(const int32_t *ids, size_t n)
{
    struct ply_buf *b = next_buf();
    for (size_t i = 0; i < n; i++)
        ply_buf_printf(b, i ? " %d" : "%d", ids[i]);
    return b->v;
}

static void
encode(const struct ply_vocab *v, const char *text, size_t len, struct ply_ids *out)
{
    struct ply_err err = {0};
    if (ply_encode(v, text, len, out, &err) != PLY_OK)
        fail_msg("cannot encode: %s", err.msg);
}

const char *
tok_enc(const struct ply_vocab *v, const char *text, size_t len)
{
    struct ply_ids ids = {0};
    encode(v, text, len, &ids);
    const char *s = tok_show_ids(ids.v, ids.n);
    ply_ids_fini(&ids);
    return s;
}

const char *
tok_pieces(const struct ply_vocab *v, const char *text, size_t len)
{
    struct ply_ids ids = {0};
    struct ply_buf *b = next_buf();
    encode(v, text, len, &ids);
    for (size_t i = 0; i < ids.n; i++) {
        size_t n;
        const char *s = ply_piece(v, ids.v[i], &n);
        ply_buf_append(b, "|", i > 0);
        ply_buf_append(b, s, n);
    }
    ply_ids_fini(&ids);
    return b->v;
}

const char *
tok_show(const struct ply_vocab *v, const int32_t *ids, size_t n)
{
    struct ply_buf *b = next_buf();
    struct ply_gguf_arr tokens;
    if (ply_gguf_arr(ply_vocab_gguf(v), "tokenizer.ggml.tokens", &tokens, NULL) <= 0)
        abort();
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *s = ply_piece(v, ids[i], &len);
        if (ply_is_control(v, ids[i]))
            ply_buf_printf(b, "{%.*s}", (int)tokens.str[ids[i]].n, tokens.str[ids[i]].s);
        else
            ply_buf_append(b, s, len);
    }
    return b->v;
}

/* ---- random texts ---------------------------------------------------------------------- */

uint64_t
tok_random(uint64_t *state)
{
    /* splitmix64 */
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

size_t
tok_random_text(uint64_t *state, int kind, char *out, size_t max)
{
    static const struct {
        uint32_t first, n;
    } ranges[] = {
        {0x20, 95},      {'a', 26},      {'a', 26},        {'0', 10},       {0x20, 1},
        {0x20, 1},       {0x09, 5},      {0xA0, 0xE0},     {0x300, 0x70},   {0x370, 0x200},
        {0x600, 0x100},  {0x2000, 0x70}, {0x2150, 0x40},   {0x3000, 0x100}, {0x4E00, 0x1000},
        {0xAC00, 0x400}, {0xFF00, 0xF0}, {0x1F300, 0x400},
    };
    static const char *const words[] = {
        "<|im_end|>", "<|im_start|>", "<end_of_turn>", "[INST]", "[/INST]", "</s>", "###",
        "\n###",      "<|user|>",     "<<SYS>>",       "Hello",  " the",    "'ll",  "\r\n",
    };
    const size_t want = tok_random(state) % (max + 1);
    size_t n = 0;
    while (n + 16 <= want) {
        const uint64_t r = tok_random(state);
        if (kind == 1 && r % 2) {
            out[n++] = (char)(r >> 8);
        } else if (r % 16 == 0) {
            const char *w = words[(r >> 8) % PLY_COUNT(words)];
            memcpy(out + n, w, strlen(w));
            n += strlen(w);
        } else {
            const size_t k = (r >> 8) % PLY_COUNT(ranges);
            n += (size_t)ply_utf8_encode(ranges[k].first + (uint32_t)((r >> 32) % ranges[k].n),
                                         out + n);
        }
    }
    return n;
}

/* SPDX-License-Identifier: MIT
 * Vocabularies in which everything that trips tokenizers is present on a small scale: merges that
 * compete, runs of spaces, digits, pieces of several bytes, byte fallback, control pieces at
 * either end, a user-defined piece, an unknown piece that the file calls control.
 *
 * Pieces are listed once as plain text; a BPE vocabulary then writes each byte as the printable
 * character GPT-2 gave it, a SentencePiece one writes a space as U+2581. */
#include "tests/mkvocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "engine/base/utf8.h"
#include "engine/tok.h"

/* ---- chat families --------------------------------------------------------------------- */

struct family {
    const char *name;
    const char *const *front, *const *back; /* control pieces before and behind the others */
    const char *bos, *eos, *unk, *pad;      /* NULL: the key is left out */
    bool add_bos;
    bool gemma; /* user-defined runs of newlines and spaces, no space prefix */
    const char *pre;
    const char *text; /* tokenizer.chat_template */
};

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct family families[] = {
    {"chatml", LIST("<|endoftext|>", "<|im_start|>", "<|im_end|>"), LIST("<file_sep>"),
     "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_end|>", false, false, "smollm",
     "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
     "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"},
    {"gemma", LIST("<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"), NULL,
     "<bos>", "<eos>", "<unk>", "<pad>", true, true, "default",
     "{{ bos_token }}{% for message in messages %}{% set role = message['role'] %}"
     "{% if role == 'assistant' %}{% set role = 'model' %}{% endif %}"
     "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}"
     "{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"},
    {"llama2", LIST("<unk>", "<s>", "</s>"), NULL, "<s>", "</s>", "<unk>", NULL, true, false,
     "gpt-2",
     "{% for message in messages %}{% if message['role'] == 'system' %}"
     "{{ bos_token + '[INST] <<SYS>>\n' + message['content'] + '\n<</SYS>>\n\n' }}"
     "{% elif message['role'] == 'user' %}{{ bos_token + '[INST] ' + message['content'] + ' "
     "[/INST]' }}"
     "{% else %}{{ ' ' + message['content'] + ' ' + eos_token }}{% endif %}{% endfor %}"},
    {"llama3", NULL,
     LIST("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
          "<|eom_id|>", "<|eot_id|>"),
     "<|begin_of_text|>", "<|eot_id|>", NULL, NULL, true, false, "llama-bpe",
     "{{ bos_token }}{% for message in messages %}"
     "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | "
     "trim"
     " + '<|eot_id|>' }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% "
     "endif %}"},
    {"mistral", LIST("<unk>", "<s>", "</s>", "[INST]", "[/INST]"), NULL, "<s>", "</s>", "<unk>",
     NULL, true, false, "gpt-2",
     "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
     "{{ '[INST] ' + message['content'] + '[/INST]' }}"
     "{% else %}{{ ' ' + message['content'] + eos_token }}{% endif %}{% endfor %}"},
    {"zephyr", LIST("<unk>", "<s>", "</s>"), NULL, "<s>", "</s>", "<unk>", "</s>", true, false,
     "gpt-2",
     "{% for message in messages %}"
     "{{ '<|' + message['role'] + '|>\n' + message['content'] + eos_token + '\n' }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"
     "{# roles: <|system|> <|user|> <|assistant|> #}"},
    {"phi3", LIST("<unk>", "<s>", "</s>"),
     LIST("<|endoftext|>", "<|assistant|>", "<|system|>", "<|end|>", "<|user|>"), "<s>",
     "<|endoftext|>", "<unk>", "<|endoftext|>", true, false, "gpt-2",
     "{% for message in messages %}{% if message['role'] == 'system' %}"
     "{{ '<|system|>\n' + message['content'] + '<|end|>\n' }}{% elif message['role'] == 'user' %}"
     "{{ '<|user|>\n' + message['content'] + '<|end|>\n' }}{% else %}"
     "{{ '<|assistant|>\n' + message['content'] + '<|end|>\n' }}{% endif %}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}"},
    {"none", LIST("<unk>", "<s>", "</s>"), NULL, "<s>", "</s>", "<unk>", NULL, true, false, "gpt-2",
     NULL},
};

const char *const *
mkvocab_chats(void)
{
    static const char *names[PLY_COUNT(families) + 1];
    for (size_t i = 0; i < PLY_COUNT(families); i++)
        names[i] = families[i].name;
    return names;
}

/* ---- pieces ---------------------------------------------------------------------------- */

#define PIECES_MAX 1024
#define MERGES_MAX 512

struct piece {
    char *text; /* as it will be stored */
    enum ply_tok_attr attr;
    float score;
};

struct vocab {
    bool spm;
    struct piece piece[PIECES_MAX];
    uint32_t n;
    char *merge[MERGES_MAX]; /* "left right", as stored */
    uint32_t n_merges;
    char *whole[MERGES_MAX]; /* the plain text of each merge's result */
};

static uint32_t
add(struct vocab *v, const char *stored, enum ply_tok_attr attr, float score)
{
    if (v->n == PIECES_MAX)
        abort();
    v->piece[v->n] = (struct piece){strdup(stored), attr, score};
    return v->n++;
}

static int64_t
lookup(const struct vocab *v, const char *stored)
{
    for (uint32_t i = 0; stored && i < v->n; i++) {
        if (strcmp(v->piece[i].text, stored) == 0)
            return i;
    }
    return -1;
}

/* GPT-2's printable stand-in for a byte: itself where that is visible in Latin-1, else the next
 * of U+0100, U+0101, ... */
static uint32_t
byte_char(unsigned byte)
{
    uint32_t next = 0x100;
    for (unsigned b = 0; b < 256; b++) {
        const bool visible = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        if (b == byte)
            return visible ? b : next;
        if (!visible)
            next++;
    }
    return 0;
}

/* Plain text as the vocabulary stores it. */
static void
store_form(bool spm, const char *plain, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)plain[i];
        if (spm && c != ' ')
            *out++ = (char)c;
        else
            out += ply_utf8_encode(spm ? 0x2581 : byte_char(c), out);
    }
    *out = '\0';
}

/* Merges are the growing prefixes of these, in this order: earlier ones win where they compete. */
static const char *const words[] = {
    "  ",       "    ",          " the", " of",    " and",   " to",       " in",     " is",
    " you",     " that",         " it",  " he",    " was",   " for",      " on",     " are",
    " with",    " as",           "ing",  "tion",   "er",     "re",        "the",     "st",
    "Hello",    " hello",        "What", " what",  " world", " capital",  " France", "Paris",
    " Paris",   " answer",       "user", "system", "model",  "assistant", " word",   " number",
    "12",       "202",           "###",  "\n\n",   "://",    "ed",        "ly",      "ou",
    "\xc3\xa9", "\xe2\x80\x99s",
};

static void
add_merge(struct vocab *v, const char *word, size_t n_left, size_t n)
{
    char left[128], right[128], pair[260];
    for (uint32_t i = 0; i < v->n_merges; i++) {
        if (strlen(v->whole[i]) == n && memcmp(v->whole[i], word, n) == 0)
            return;
    }
    if (v->n_merges == MERGES_MAX)
        abort();
    store_form(v->spm, word, n_left, left);
    store_form(v->spm, word + n_left, n - n_left, right);
    snprintf(pair, sizeof(pair), "%s %s", left, right);
    v->merge[v->n_merges] = strdup(pair);
    v->whole[v->n_merges] = strndup(word, n);
    v->n_merges++;
}

/* SentencePiece merges characters, BPE bytes. */
static size_t
unit_len(bool spm, const char *s)
{
    uint32_t cp;
    return spm ? (size_t)ply_utf8_decode(s, strlen(s), &cp) : 1;
}

static void
add_merges(struct vocab *v)
{
    for (size_t i = 0; i < PLY_COUNT(words); i++) {
        const char *w = words[i];
        if (v->spm && strchr(w, '\n'))
            continue; /* SentencePiece never merges across a newline piece that is not there */
        size_t left = unit_len(v->spm, w);
        if (strcmp(w, "    ") == 0)
            left = 2; /* two runs of two: the order of merges shows */
        while (w[left] != '\0') {
            const size_t n = strcmp(w, "    ") == 0 ? 4 : left + unit_len(v->spm, w + left);
            add_merge(v, w, left, n);
            left = n;
        }
    }
    for (uint32_t i = 0; i < v->n_merges; i++) {
        char stored[128];
        store_form(v->spm, v->whole[i], strlen(v->whole[i]), stored);
        add(v, stored, PLY_TOK_NORMAL, -(float)(i + 1));
    }
}

/* SmolLM2's vocabulary has no piece for these bytes. */
static bool
is_gap(unsigned b)
{
    return b == 0x04 || b == 0x06 || b == 0x13 || b == 0x14 || b == 0x16 || b == 0x1d ||
           b == 0xc0 || b == 0xc1 || b == 0xf1 || b == 0xf2 || b >= 0xf5;
}

static void
add_bpe(struct vocab *v, bool gaps)
{
    for (unsigned b = 0; b < 256; b++) {
        const char byte = (char)b;
        char stored[8];
        if (gaps && is_gap(b))
            continue;
        store_form(false, &byte, 1, stored);
        add(v, stored, PLY_TOK_NORMAL, 0);
    }
    add_merges(v);
}

static void
add_spm(struct vocab *v, bool gemma)
{
    static const char *const chars[] = {
        "\xc3\xa9",     "\xc3\xa4",     "\xc3\xb6",     "\xc3\xbc",     "\xc3\x9f",
        "\xc3\xb1",     "\xe2\x80\x99", "\xe2\x80\x94", "\xe2\x82\xac", "\xe4\xbd\xa0",
        "\xe5\xa5\xbd", "\xe4\xb8\x96", "\xe7\x95\x8c"};
    char text[16];
    for (size_t n = 1; gemma && n <= 4; n++) {
        memset(text, '\n', n);
        text[n] = '\0';
        add(v, text, PLY_TOK_USER, 0);
    }
    for (size_t n = 2; gemma && n <= 8; n++) {
        memset(text, ' ', n); /* plain spaces, as Gemma's files have them */
        text[n] = '\0';
        add(v, text, PLY_TOK_USER, 0);
    }
    for (unsigned b = 0; b < 256; b++) {
        snprintf(text, sizeof(text), "<0x%02X>", b);
        add(v, text, PLY_TOK_BYTE, 0);
    }
    add_merges(v);
    for (char c = ' '; c <= '~'; c++) {
        store_form(true, &c, 1, text);
        add(v, text, PLY_TOK_NORMAL, -(float)(1000 + c));
    }
    for (size_t i = 0; i < PLY_COUNT(chars); i++)
        add(v, chars[i], PLY_TOK_NORMAL, -(float)(2000 + i));
}

/* ---- writing --------------------------------------------------------------------------- */

static void
write_pieces(struct ggufw *w, const struct vocab *v)
{
    ggufw_arr(w, "tokenizer.ggml.tokens", PLY_GGUF_STR, v->n);
    for (uint32_t i = 0; i < v->n; i++)
        ggufw_put_str(&w->kv, v->piece[i].text, strlen(v->piece[i].text));
    ggufw_arr(w, "tokenizer.ggml.token_type", PLY_GGUF_I32, v->n);
    for (uint32_t i = 0; i < v->n; i++)
        ggufw_put_int(&w->kv, v->piece[i].attr, 4);
    if (v->spm) {
        ggufw_arr(w, "tokenizer.ggml.scores", PLY_GGUF_F32, v->n);
        for (uint32_t i = 0; i < v->n; i++) {
            uint32_t bits;
            memcpy(&bits, &v->piece[i].score, sizeof(bits));
            ggufw_put_int(&w->kv, bits, 4);
        }
    } else {
        ggufw_arr(w, "tokenizer.ggml.merges", PLY_GGUF_STR, v->n_merges);
        for (uint32_t i = 0; i < v->n_merges; i++)
            ggufw_put_str(&w->kv, v->merge[i], strlen(v->merge[i]));
    }
}

static void
write_id(struct ggufw *w, const struct vocab *v, const char *key, const char *piece)
{
    const int64_t id = lookup(v, piece);
    if (id >= 0)
        ggufw_u32(w, key, (uint32_t)id);
}

static void
write_template(struct ggufw *w, const struct family *f, const char *default_system)
{
    char text[2048] = "";
    const char *loop = strcmp(f->name, "chatml") == 0 ? "{% for message in messages %}" : "";
    if (default_system)
        snprintf(text, sizeof(text),
                 "%s{%% if loop.first and messages[0]['role'] != 'system' %%}"
                 "{{ '<|im_start|>system\n%s<|im_end|>\n' }}{%% endif %%}%s",
                 loop, default_system, f->text);
    else
        snprintf(text, sizeof(text), "%s%s", loop, f->text);
    ggufw_str(w, "tokenizer.chat_template", text);
}

static void
add_controls(struct vocab *v, const struct family *f, const char *const *list)
{
    for (; list && *list; list++) {
        /* Gemma's files call even <unk> a control piece. */
        const bool unk = strcmp(*list, "<unk>") == 0 && !f->gemma;
        add(v, *list, unk ? PLY_TOK_UNKNOWN : PLY_TOK_CONTROL, 0);
    }
}

uint32_t
mkvocab_write(struct ggufw *w, const struct mkvocab_opts *o)
{
    const struct family *f = NULL;
    for (size_t i = 0; i < PLY_COUNT(families); i++) {
        if (strcmp(families[i].name, o->chat) == 0)
            f = &families[i];
    }
    if (!f)
        return 0;
    struct vocab *v = calloc(1, sizeof(*v));
    if (!v)
        abort();
    v->spm = o->spm;
    /* SentencePiece needs an unknown piece whatever the family. */
    if (o->spm && !(f->front && f->unk && strcmp(f->unk, "<unk>") == 0))
        add(v, "<unk>", PLY_TOK_UNKNOWN, 0);
    add_controls(v, f, f->front);
    if (o->spm)
        add_spm(v, f->gemma);
    else
        add_bpe(v, o->gaps);
    add_controls(v, f, f->back);

    ggufw_str(w, "tokenizer.ggml.model", o->spm ? "llama" : "gpt2");
    ggufw_str(w, "tokenizer.ggml.pre", o->spm ? "default" : o->pre ? o->pre : f->pre);
    write_pieces(w, v);
    write_id(w, v, "tokenizer.ggml.bos_token_id", f->bos);
    write_id(w, v, "tokenizer.ggml.eos_token_id", f->eos);
    write_id(w, v, "tokenizer.ggml.unknown_token_id", lookup(v, "<unk>") >= 0 ? "<unk>" : f->unk);
    write_id(w, v, "tokenizer.ggml.padding_token_id", f->pad);
    ggufw_bool(w, "tokenizer.ggml.add_bos_token", f->add_bos);
    if (f->gemma || !o->spm)
        ggufw_bool(w, "tokenizer.ggml.add_space_prefix", false);
    if (f->text && !o->no_template)
        write_template(w, f, o->default_system);

    const uint32_t n = v->n;
    for (uint32_t i = 0; i < v->n; i++)
        free(v->piece[i].text);
    for (uint32_t i = 0; i < v->n_merges; i++) {
        free(v->merge[i]);
        free(v->whole[i]);
    }
    free(v);
    return n;
}

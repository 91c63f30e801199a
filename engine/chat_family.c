/* SPDX-License-Identifier: MIT
 * The chat families and how a file's template text tells which one it is. The text is a Jinja
 * program; it is not run. Each family leaves marks in it that no other has. */
#include "engine/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"

/* Sources: the model cards and tokenizer files of SmolLM2, Qwen2, Gemma, Llama 2 and 3,
 * Mistral 7B v0.1 and v0.3 and Nemo, TinyLlama, Phi 3. Phi 3 eats the newline that its
 * template puts behind a marker (its markers strip what is right of them). */
static const struct ply_chat_family families[] = {
    {
        .name = "chatml",
        .marker = {"<|im_start|>", "<|im_end|>"},
        .by_id = true,
        .sys_open = "\1system\n",
        .sys_close = "\2\n",
        .user_open = "\1user\n",
        .user_close = "\2\n",
        .reply_open = "\1assistant\n",
        .reply_close = "\2\n",
    },
    {
        .name = "gemma",
        .marker = {"<start_of_turn>", "<end_of_turn>"},
        .by_id = true,
        .bos = true,
        .join = "\n\n",
        .sys_open = "",
        .sys_close = "\n\n",
        .user_open = "\1user\n",
        .user_close = "\2\n",
        .reply_open = "\1model\n",
        .reply_close = "\2\n",
    },
    {
        .name = "llama2",
        .marker = {"[INST]", "[/INST]"},
        .eos = true,
        .join = "\n\n",
        .sys_open = " <<SYS>>\n",
        .sys_close = "\n<</SYS>>\n\n",
        .user_open = "\5\1 ",
        .user_close = " \2 ",
        .reply_open = "",
        .reply_close = " \6",
        .shield = {"<<SYS>>", "<</SYS>>"},
    },
    {
        .name = "llama3",
        .marker = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
        .by_id = true,
        .bos = true,
        .sys_open = "\1system\2\n\n",
        .sys_close = "\3",
        .user_open = "\1user\2\n\n",
        .user_close = "\3",
        .reply_open = "\1assistant\2\n\n",
        .reply_close = "\3",
    },
    {
        .name = "mistral",
        .marker = {"[INST]", "[/INST]"},
        .eos = true,
        .bos = true,
        .join = "\n\n",
        .sys_open = "",
        .sys_close = "\n\n",
        .user_open = "\1 ",
        .user_close = " \2 ",
        .reply_open = "",
        .reply_close = "\6",
    },
    {
        .name = "zephyr",
        .marker = {"<|system|>", "<|user|>", "<|assistant|>"},
        .eos = true,
        .sys_open = "\1\n",
        .sys_close = "\6\n",
        .user_open = "\2\n",
        .user_close = "\6\n",
        .reply_open = "\3\n",
        .reply_close = "\6\n",
    },
    {
        .name = "phi3",
        .marker = {"<|system|>", "<|user|>", "<|assistant|>", "<|end|>"},
        .by_id = true,
        .sys_open = "\1",
        .sys_close = "\4",
        .user_open = "\2",
        .user_close = "\4",
        .reply_open = "\3",
        .reply_close = "\4",
    },
    {
        .name = "transcript",
        .transcript = true,
        .join = "\n\n",
        .sys_open = "",
        .sys_close = "\n\n",
        .user_open = "### User\n",
        .user_close = "\n\n",
        .reply_open = "### Assistant\n",
        .reply_close = "\n\n",
    },
    {
        .name = "raw",
        .join = "",
        .sys_open = "",
        .sys_close = "",
        .user_open = "",
        .user_close = "",
        .reply_open = "",
        .reply_close = "",
    },
};

/* Mistral's later vocabularies have [INST] and [/INST] as pieces: no space between the text
 * and [/INST], and with byte-level BPE none at all. */
static const struct ply_chat_family mistral_by_id = {
    .name = "mistral",
    .marker = {"[INST]", "[/INST]"},
    .eos = true,
    .bos = true,
    .join = "\n\n",
    .sys_open = "",
    .sys_close = "\n\n",
    .user_open = "\1 ",
    .user_close = "\2 ",
    .reply_open = "",
    .reply_close = "\6",
};
static const struct ply_chat_family mistral_tight = {
    .name = "mistral",
    .marker = {"[INST]", "[/INST]"},
    .eos = true,
    .bos = true,
    .join = "\n\n",
    .sys_open = "",
    .sys_close = "\n\n",
    .user_open = "\1",
    .user_close = "\2",
    .reply_open = "",
    .reply_close = "\6",
};

/* A template text is of the first family all of whose marks it has, and none of `no`. */
static const struct {
    const char *family;
    const char *has[3], *no[2];
} marks[] = {
    {"chatml", {"<|im_start|>", "<|im_end|>"}, {"<|im_sep|>"}},
    {"gemma", {"<start_of_turn>", "<end_of_turn>"}, {NULL}},
    {"llama3", {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, {NULL}},
    {"phi3", {"<|assistant|>", "<|end|>"}, {NULL}},
    {"zephyr", {"<|assistant|>", "<|user|>"}, {"[gMASK]", "content'] + '\\n'"}},
    {"llama2", {"[INST]", "<<SYS>>"}, {NULL}},
    {"mistral", {"[INST]", "[/INST]"}, {"<<SYS>>"}},
};

/* Control pieces that end a turn or a text in one family or another. A model may say any of
 * its own, whichever template it was prompted with. */
static const char *const end_pieces[] = {
    "<|im_end|>",      "<|endoftext|>", "<end_of_turn>", "<eos>",   "<|eot_id|>",
    "<|end_of_text|>", "<|eom_id|>",    "</s>",          "<|end|>", "<|end_of_turn|>",
};
static const char *const end_keys[] = {
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id",
};

/* Llama 3.1 and later put this before every system text; the date is the template's own
 * constant, so that equal conversations stay equal tomorrow. */
#define LLAMA31_MARK "Cutting Knowledge Date: December 2023"
static const char llama31_system[] = LLAMA31_MARK "\nToday Date: 26 Jul 2024\n\n";

const char *const *
ply_chat_names(void)
{
    static const char *const names[] = {"chatml", "gemma", "llama2",     "llama3", "mistral",
                                        "zephyr", "phi3",  "transcript", "raw",    NULL};
    _Static_assert(PLY_COUNT(names) == PLY_COUNT(families) + 1, "every family has a name");
    return names;
}

/* ---- which family ---------------------------------------------------------------------- */

static bool
contains(struct ply_str text, const char *what)
{
    return memmem(text.s, text.n, what, strlen(what)) != NULL;
}

static const struct ply_chat_family *
family_named(const char *name)
{
    for (size_t i = 0; i < PLY_COUNT(families); i++) {
        if (strcmp(families[i].name, name) == 0)
            return &families[i];
    }
    return NULL;
}

static const struct ply_chat_family *
recognise(struct ply_str text)
{
    for (size_t i = 0; i < PLY_COUNT(marks); i++) {
        bool fits = true;
        for (size_t k = 0; k < PLY_COUNT(marks[i].has) && marks[i].has[k]; k++)
            fits = fits && contains(text, marks[i].has[k]);
        for (size_t k = 0; k < PLY_COUNT(marks[i].no) && marks[i].no[k]; k++)
            fits = fits && !contains(text, marks[i].no[k]);
        if (fits)
            return family_named(marks[i].family);
    }
    return NULL;
}

/* ---- its ids --------------------------------------------------------------------------- */

/* Look the family's markers up. Returns the first that must be a piece and is none. */
static const char *
find_markers(struct ply_chat *c, const struct ply_chat_family *f, const struct ply_tok_src *src)
{
    for (size_t i = 0; i < PLY_CHAT_MARKERS; i++) {
        c->marker[i] = f->marker[i] ? ply_tok_src_find(src, f->marker[i]) : -1;
        if (c->marker[i] < 0 && f->marker[i] && f->by_id)
            return f->marker[i];
        /* A plain piece of that text comes out of the text by itself. */
        if (c->marker[i] >= 0 && !f->by_id && src->attr[c->marker[i]] == PLY_TOK_NORMAL)
            c->marker[i] = -1;
    }
    return f->eos && c->eos < 0 ? "that ends a text (tokenizer.ggml.eos_token_id)" : NULL;
}

/* The shape of a Mistral template depends on its vocabulary. */
static const struct ply_chat_family *
fit_mistral(const struct ply_chat *c, const struct ply_chat_family *f,
            const struct ply_tok_src *src, struct ply_str text)
{
    if (strcmp(f->name, "mistral") != 0 || c->marker[0] < 0 || c->marker[1] < 0)
        return f;
    const bool spaced = text.n > 0 ? contains(text, "[INST] ") : !src->bpe;
    return spaced ? &mistral_by_id : &mistral_tight;
}

static int
add_end(struct ply_chat *c, int32_t id)
{
    for (size_t i = 0; i < c->ends.n; i++) {
        if (c->ends.v[i] == id)
            return PLY_OK;
    }
    return ply_ids_push(&c->ends, id);
}

static int
find_ends(struct ply_chat *c, const struct ply_gguf *g, const struct ply_tok_src *src)
{
    int rc = c->eos >= 0 ? add_end(c, c->eos) : PLY_OK;
    for (size_t i = 0; i < PLY_COUNT(end_keys) && rc == PLY_OK; i++) {
        uint64_t id;
        if (ply_gguf_u64(g, end_keys[i], &id, NULL) > 0 && id < src->n)
            rc = add_end(c, (int32_t)id);
    }
    for (size_t i = 0; i < PLY_COUNT(end_pieces) && rc == PLY_OK; i++) {
        /* Only where the file says it is a control piece: "</s>" is a tag of HTML in some. */
        const int32_t id = ply_tok_src_find(src, end_pieces[i]);
        if (id >= 0 && src->attr[id] == PLY_TOK_CONTROL)
            rc = add_end(c, id);
    }
    /* The marker that closes the family's reply ends one, whatever the file calls it. */
    for (const char *p = c->family->reply_close; *p && rc == PLY_OK; p++) {
        if (*p >= 1 && *p <= PLY_CHAT_MARKERS && c->marker[*p - 1] >= 0)
            rc = add_end(c, c->marker[*p - 1]);
    }
    return rc;
}

static void
make_control(const struct ply_chat *c, struct ply_tok_src *src)
{
    for (size_t i = 0; i < PLY_CHAT_MARKERS; i++) {
        if (c->marker[i] >= 0)
            src->attr[c->marker[i]] = PLY_TOK_CONTROL;
    }
    for (size_t i = 0; i < c->ends.n; i++)
        src->attr[c->ends.v[i]] = PLY_TOK_CONTROL;
    if (c->bos >= 0)
        src->attr[c->bos] = PLY_TOK_CONTROL;
}

/* ---- the default system text ----------------------------------------------------------- */

/* The text of a Jinja literal from p up to the end mark, with its escapes undone; NULL when
 * the literal ends before the mark. quote: what ends it, 0 for template text outside of one. */
static char *
read_literal(const char *p, const char *end, char quote, const char *mark)
{
    const size_t n_mark = strlen(mark);
    char *out = malloc((size_t)(end - p) + 1);
    size_t n = 0;
    for (; out && p < end; p++) {
        if ((size_t)(end - p) >= n_mark && memcmp(p, mark, n_mark) == 0) {
            out[n] = '\0';
            return out;
        }
        if (*p == quote || (quote == 0 && *p == '{'))
            break;
        if (*p == '\\' && quote != 0 && p + 1 < end) {
            p++;
            out[n++] = *p == 'n' ? '\n' : *p == 't' ? '\t' : *p;
        } else {
            out[n++] = *p;
        }
    }
    free(out);
    return NULL;
}

/* ChatML templates hold a whole system turn as one literal where they add it by default. */
static char *
chatml_system(struct ply_str text)
{
    static const char open[] = "<|im_start|>system";
    const char *p = text.s, *end = text.s + text.n;
    while ((p = memmem(p, (size_t)(end - p), open, sizeof(open) - 1)) != NULL) {
        const char before = p > text.s ? p[-1] : 0;
        const char quote = before == '\'' || before == '"' ? before : 0;
        p += sizeof(open) - 1;
        if (p < end && *p == '\n')
            p++;
        else if (end - p >= 2 && p[0] == '\\' && p[1] == 'n')
            p += 2;
        else
            continue;
        char *s = read_literal(p, end, quote, "<|im_end|>");
        if (s && *s)
            return s;
        free(s);
    }
    return strdup("");
}

static char *
find_default_system(const struct ply_chat_family *f, struct ply_str text)
{
    if (f->transcript)
        return strdup(ply_chat_preamble);
    if (strcmp(f->name, "chatml") == 0)
        return chatml_system(text);
    if (strcmp(f->name, "llama3") == 0 && contains(text, LLAMA31_MARK))
        return strdup(llama31_system);
    return strdup("");
}

/* ---- init ------------------------------------------------------------------------------ */

/* Settle c->family and its markers. text is emptied when it is not the family's. */
static int
choose(struct ply_chat *c, struct ply_tok_src *src, const char *name, struct ply_str *text,
       struct ply_err *err)
{
    const struct ply_chat_family *own =
        c->base_model ? family_named("transcript") : recognise(*text);
    const struct ply_chat_family *f = name ? family_named(name) : own;
    if (name && !f)
        return ply_fail(err, PLY_EUNSUPPORTED,
                        "unknown chat template \"%.80s\"; known are chatml, gemma, llama2, llama3, "
                        "mistral, zephyr, phi3, transcript, raw",
                        name);
    const char *lacks = f ? find_markers(c, f, src) : NULL;
    if (name && lacks)
        return ply_fail(err, PLY_EUNSUPPORTED,
                        "the chat template %s needs the piece %s, which this vocabulary lacks",
                        name, lacks);
    if (lacks)
        snprintf(c->why_not, sizeof(c->why_not),
                 "the file's chat template is %s, but its vocabulary lacks the piece %s", f->name,
                 lacks);
    else if (!f)
        snprintf(c->why_not, sizeof(c->why_not), "the file's chat template is of no known kind");
    if (name && f != own)
        *text = (struct ply_str){"", 0};
    c->family = f ? fit_mistral(c, f, src, *text) : family_named("raw");
    return PLY_OK;
}

int
ply_chat_init(struct ply_chat *c, const struct ply_gguf *g, struct ply_tok_src *src,
              const char *name, bool add_bos, struct ply_err *err)
{
    struct ply_str text = {"", 0};
    *c = (struct ply_chat){.bos = src->bos, .eos = src->eos, .marker = {-1, -1, -1, -1}};
    int rc = ply_gguf_str(g, "tokenizer.chat_template", &text, err);
    if (rc < 0)
        return rc;
    c->base_model = text.n == 0;
    rc = choose(c, src, name, &text, err);
    if (rc != PLY_OK)
        return rc;
    c->begin_bos = c->bos >= 0 && (add_bos || c->family->bos || contains(text, "bos_token")) &&
                   c->family->user_open[0] != '\5';
    c->default_system = find_default_system(c->family, text);
    if (!c->default_system || find_ends(c, g, src) != PLY_OK)
        return ply_fail(err, PLY_ENOMEM, "out of memory");
    make_control(c, src);
    return PLY_OK;
}

void
ply_chat_fini(struct ply_chat *c)
{
    free(c->default_system);
    ply_ids_fini(&c->ends);
    *c = (struct ply_chat){0};
}

const char *
ply_chat_family_name(const struct ply_chat *c)
{
    return c->why_not[0] ? "unknown" : c->family->name;
}

/* SPDX-License-Identifier: MIT
 * info: what a file is, and with what it would be computed. The file's metadata is enough; what
 * only a loaded model can tell is added where it can be loaded. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/front.h"
#include "app/report.h"
#include "app/verb.h"

static json_t *
text(const char *s)
{
    return report_json_text(s, strlen(s));
}

static void
print_json(const struct ply_info *i, bool loaded, const struct ply_err *why)
{
    json_t *o = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b}",
        "path", text(i->path), "name", text(i->name), "architecture", text(i->arch), "quantisation",
        text(i->quant), "licence", text(i->licence), "languages", text(i->languages), "tokenizer",
        text(i->tokenizer), "template", text(i->chat_template), "base_model", i->base_model, "bytes",
        (json_int_t)i->file_bytes, "parameters", (json_int_t)i->n_params, "vocabulary", i->n_vocab,
        "context_trained", i->n_ctx_train, "layers", i->n_layer, "width", i->n_embd, "heads", i->n_head,
        "heads_kv", i->n_head_kv, "feed_forward", i->n_ff, "window", i->window, "loadable", loaded);
    json_t *more = loaded
        ? json_pack("{s:o, s:i, s:i, s:o, s:o, s:b, s:o, s:I, s:I, s:I, s:f}", "fingerprint",
                    text(i->fingerprint), "context", i->n_ctx, "threads", i->n_threads, "isa", text(i->isa),
                    "gemm", text(i->gemm), "exact", i->exact, "exact_why", text(i->exact_why), "weight_bytes",
                    (json_int_t)i->weight_bytes, "kv_bytes_per_token", (json_int_t)i->kv_bytes_per_tok,
                    "scratch_bytes", (json_int_t)i->scratch_bytes, "load_ms", i->load_ms)
        : json_pack("{s:o}", "not_loadable", text(why->msg));
    json_object_update(o, more);
    report_write_json(STDOUT_FILENO, o);
    json_decref(more);
    json_decref(o);
}

static void
row(const char *name, const char *value)
{
    if (*value)
        printf("%s: %s\n", name, value);
}

static void
print_file(const struct ply_info *i)
{
    row("model", i->name);
    row("file", i->path);
    printf("size: %.1f MB\n", (double)i->file_bytes / 1e6);
    row("architecture", i->arch);
    row("quantised", i->quant);
    if (i->n_params)
        printf("parameters: %.0f million\n", (double)i->n_params / 1e6);
    row("licence", i->licence);
    row("languages", i->languages);
    printf("tokenizer: %s, %d pieces\n", i->tokenizer, i->n_vocab);
    printf("template: %s%s\n", i->chat_template,
           i->base_model ? " (base model: continues text)" : "");
    if (i->n_layer)
        printf("shape: %d layers, width %d, %d heads (%d for keys and values), feed-forward %d\n",
               i->n_layer, i->n_embd, i->n_head, i->n_head_kv, i->n_ff);
    if (i->window)
        printf("window: %d tokens in the sliding layers\n", i->window);
    if (i->n_ctx_train)
        printf("trained for: %d tokens\n", i->n_ctx_train);
}

static void
print_engine(const struct ply_info *i)
{
    row("fingerprint", i->fingerprint);
    printf("context: %d tokens, %.1f KiB of cache each (%.0f MiB when full)\n", i->n_ctx,
           (double)i->kv_bytes_per_tok / 1024, (double)i->kv_bytes_per_tok * i->n_ctx / 1048576);
    printf("memory: %.1f MiB of weights, %.1f MiB to compute in\n",
           (double)i->weight_bytes / 1048576, (double)i->scratch_bytes / 1048576);
    printf("kernels: %s, %d threads\n", i->isa, i->n_threads);
    row("gemm", i->gemm);
    printf("exact: %s%s%s\n", i->exact ? "yes" : "no (", i->exact_why, i->exact ? "" : ")");
    printf("loaded in: %.0f ms\n", i->load_ms);
}

int
verb_info(const struct app_opts *o)
{
    struct ply_vocab *v = NULL;
    struct ply_engine *e = NULL;
    struct ply_err err = {0}, why = {0};
    if (verb_vocab_open(o, &v, &err) != 0)
        return front_fail(&err);
    const bool loaded = verb_engine_open(o, 0, &e, &why) == 0;
    const struct ply_info *i = loaded ? ply_engine_info(e) : ply_vocab_info(v);
    if (o->json) {
        print_json(i, loaded, &why);
    } else {
        print_file(i);
        if (loaded)
            print_engine(i);
        else
            row("not loadable", why.msg);
    }
    ply_engine_close(&e);
    ply_vocab_close(&v);
    return APP_EXIT_OK;
}

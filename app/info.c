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

static void
add_text(json_t *o, const char *name, const char *s)
{
    json_object_set_new(o, name, report_json_text(s, strlen(s)));
}

static void
add_n(json_t *o, const char *name, uint64_t n)
{
    json_object_set_new(o, name, json_integer((json_int_t)n));
}

static void
add_file(json_t *o, const struct ply_info *i)
{
    add_text(o, "path", i->path);
    add_text(o, "name", i->name);
    add_text(o, "architecture", i->arch);
    add_text(o, "quantisation", i->quant);
    add_text(o, "licence", i->licence);
    add_text(o, "languages", i->languages);
    add_text(o, "tokenizer", i->tokenizer);
    add_text(o, "template", i->chat_template);
    json_object_set_new(o, "base_model", json_boolean(i->base_model));
    add_n(o, "bytes", i->file_bytes);
    add_n(o, "parameters", i->n_params);
    add_n(o, "vocabulary", (uint64_t)i->n_vocab);
    add_n(o, "context_trained", (uint64_t)i->n_ctx_train);
    add_n(o, "layers", (uint64_t)i->n_layer);
    add_n(o, "width", (uint64_t)i->n_embd);
    add_n(o, "heads", (uint64_t)i->n_head);
    add_n(o, "heads_kv", (uint64_t)i->n_head_kv);
    add_n(o, "feed_forward", (uint64_t)i->n_ff);
    add_n(o, "window", (uint64_t)i->window);
}

static void
add_engine(json_t *o, const struct ply_info *i)
{
    add_text(o, "fingerprint", i->fingerprint);
    add_n(o, "context", (uint64_t)i->n_ctx);
    add_n(o, "threads", (uint64_t)i->n_threads);
    add_text(o, "isa", i->isa);
    add_text(o, "gemm", i->gemm);
    json_object_set_new(o, "exact", json_boolean(i->exact));
    add_text(o, "exact_why", i->exact_why);
    add_n(o, "weight_bytes", i->weight_bytes);
    add_n(o, "kv_bytes_per_token", i->kv_bytes_per_tok);
    add_n(o, "scratch_bytes", i->scratch_bytes);
    json_object_set_new(o, "load_ms", json_real(i->load_ms));
}

static void
print_json(const struct ply_info *i, bool loaded, const struct ply_err *why)
{
    json_t *o = json_object();
    add_file(o, i);
    json_object_set_new(o, "loadable", json_boolean(loaded));
    if (loaded)
        add_engine(o, i);
    else
        add_text(o, "not_loadable", why->msg);
    report_write_json(STDOUT_FILENO, o);
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

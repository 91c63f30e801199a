/* SPDX-License-Identifier: MIT
 * ply.h - libply, local inference over GGUF models with a KV cache that is never paid twice.
 *
 * The mental model:
 *   vocab     what a file knows about text: tokenizer, chat template, metadata. Needs no tensors.
 *   engine    a loaded model: weights, kernels, thread pool, KV blocks. Owns its vocab.
 *   sequence  one timeline of token ids and the KV blocks that hold their keys and values.
 * The caller always names the FULL list of ids it wants; the engine decides what it can reuse,
 * evaluates the rest and reports both. There is one way to compute, ply_eval(); ply_seq_sync()
 * and ply_seq_step() are thin wrappers.
 *
 * Exactness: the logits after a list of ids are a pure function of model file, KV type,
 * precision and ids. Chunking, threads, instruction set, batch companions and reuse change no
 * bit (ply_info.exact says where this cannot be kept, and why). PLY_NUMERICS_VERSION is part of
 * every cache key.
 *
 * Threads: one thread at a time may call into an engine and what belongs to it;
 * ply_engine_cancel() alone may be called from any thread or signal handler. A vocab is
 * immutable after it was opened and may be read by several threads.
 *
 * Errors: int, 0 or a negative enum ply_status, with struct ply_err filled (engine/base/err.h).
 * After a failure the object is valid: a sequence at a shorter length, an out pointer NULL.
 * The library never prints, never exits, and allocates nothing in the token loop.
 * Functions named open/new set *out on success, close/free take T **, accept NULL and set it
 * NULL. */
#ifndef PLY_H
#define PLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/array.h"
#include "engine/base/err.h"

#define PLY_NUMERICS_VERSION 1
#define PLY_BLOCK_TOKS 64 /* tokens in a KV block */

enum ply_isa { PLY_ISA_AUTO, PLY_ISA_REF, PLY_ISA_AVX2, PLY_ISA_AVXVNNI, PLY_ISA_AVX512 };
enum ply_kv_type { PLY_KV_F16, PLY_KV_Q8_0 };
enum ply_precision { PLY_PRECISION_FAST, PLY_PRECISION_FULL };
enum ply_kv_cache { PLY_KV_CACHE_OFF, PLY_KV_CACHE_RAM, PLY_KV_CACHE_DISK };

/* ---- what a file says ------------------------------------------------------------------ */

struct ply_vocab;
struct ply_engine;
struct ply_seq;

/* Strings are UTF-8 with control bytes replaced, never NULL ("" when the file is silent);
 * they live as long as the vocab or engine they came from. */
struct ply_info {
    const char *path;
    const char *name;          /* general.name, else the file's name */
    const char *arch;          /* general.architecture */
    const char *quant;         /* most layers' type and the head's: "Q4_1, head Q8_0" */
    const char *licence;
    const char *languages;     /* "en, fr"; "" when the file lists none */
    const char *tokenizer;     /* "sentencepiece" or "byte-level BPE (smollm)" */
    const char *chat_template; /* "chatml", "gemma", ..., "transcript" for a base model, "raw",
                                  "unknown": only an explicit one can be rendered */
    bool base_model;           /* the file has no chat template */
    uint64_t file_bytes;
    uint64_t n_params;
    char fingerprint[33];      /* XXH3-128 of the whole file, hex; "" from a vocab alone */
    int n_vocab, n_ctx_train, n_layer, n_embd, n_head, n_head_kv, n_ff, window;
    /* From here on only an engine knows; zero from a vocab. */
    int n_ctx, n_threads;
    const char *isa;           /* "ref", "avx2", "avx512": the kernels that run */
    const char *gemm;          /* "own int8 (avx2)", "OpenBLAS (Haswell)", or both */
    bool exact;
    const char *exact_why;     /* one line when !exact, else "" */
    uint64_t weight_bytes, kv_bytes_per_tok, scratch_bytes;
    double load_ms;
};

/* ---- vocab ----------------------------------------------------------------------------- */

struct ply_vocab_opts {
    const char *chat_template; /* NULL: by the file's own text; "raw" for none; else a name */
};

/* Reads metadata and tokenizer; any architecture is accepted, tensors need not be there.
 * PLY_ENOENT, PLY_EIO, PLY_EFORMAT, PLY_EUNSUPPORTED (names the pre-tokenizer, tokenizer or
 * template that is not known). opts may be NULL. */
int ply_vocab_open(struct ply_vocab **out, const char *path, const struct ply_vocab_opts *opts,
                   struct ply_err *err);
void ply_vocab_close(struct ply_vocab **v);
const struct ply_info *ply_vocab_info(const struct ply_vocab *v);

/* Append to out the ids of user text. Never yields a control id, adds no BOS. text is any
 * bytes, NUL and ill-formed UTF-8 included: they come back from ply_decode as they were,
 * except where the vocabulary has no pieces for them: then they are read as U+FFFD. */
int ply_encode(const struct ply_vocab *v, const char *text, size_t len, struct ply_ids *out,
               struct ply_err *err);
/* The same for text that goes on where ids end: a vocabulary that puts a space before text (as
 * Llama 2's) puts none before this. */
int ply_encode_more(const struct ply_vocab *v, const char *text, size_t len, struct ply_ids *out,
                    struct ply_err *err);
/* The fewest ids that len bytes of text can become: tells without encoding that a text is too
 * long. */
size_t ply_encode_min(const struct ply_vocab *v, size_t len);
/* The bytes an id stands for; *len = 0 for control ids and for ids out of range. */
const char *ply_piece(const struct ply_vocab *v, int32_t id, size_t *len);
/* Append the bytes of ids to out: the inverse of ply_encode. A space that the vocabulary put
 * before the text is taken away again; ids from the middle of a text are for ply_piece. */
int ply_decode(const struct ply_vocab *v, const int32_t *ids, size_t n, struct ply_buf *out,
               struct ply_err *err);
bool ply_is_control(const struct ply_vocab *v, int32_t id);
/* An id that no sampling penalty may touch: control ids, ids the template inserts, newlines. */
bool ply_is_exempt(const struct ply_vocab *v, int32_t id);
int32_t ply_bos(const struct ply_vocab *v); /* -1: prompts of this model begin without one */

/* ---- chat: messages to ids ------------------------------------------------------------- */

enum ply_role { PLY_ROLE_SYSTEM, PLY_ROLE_USER, PLY_ROLE_ASSISTANT };

/* One message. A reply that was generated is given by its ids, kept as they were sampled, the
 * end id included if there was one; one that was typed or imported by its text. Nothing is
 * owned. */
struct ply_msg {
    enum ply_role role;
    const char *text;
    size_t len;
    const int32_t *ids; /* NULL: encode text */
    size_t n_ids;
};

enum ply_chat_flags {
    PLY_CHAT_OPEN_REPLY = 1, /* end with the opening of the assistant's next reply */
    PLY_CHAT_CONTINUE = 2,   /* leave the last message, an assistant's, open to be continued */
    PLY_CHAT_NO_SYSTEM = 4,  /* do not add the template's own default system text */
};

/* Append the ids of the whole conversation. The ids of n messages, all closed, begin with the
 * ids of the first n-1 (n > 1). Control ids come from the template alone, never from text. Two
 * user messages in a row, or a system message, never break a template: where its roles must
 * alternate they are joined into one turn, which is closed when the reply opens; else each is
 * a turn of its own. A first system message without text stands for NO_SYSTEM.
 * PLY_EUNSUPPORTED: the file's template is of no known kind (chat_template is "unknown");
 * PLY_EINVAL: a reply's id is not of this vocabulary. */
int ply_chat_render(const struct ply_vocab *v, const struct ply_msg *msgs, size_t n, unsigned flags,
                    struct ply_ids *out, struct ply_err *err);
/* The system text the file's template adds when a conversation has none; "" for none. */
const char *ply_chat_default_system(const struct ply_vocab *v);
bool ply_chat_is_end(const struct ply_vocab *v, int32_t id);
/* The template's own stop strings, NULL-terminated; "\n###" for the transcript. */
const char *const *ply_chat_stops(const struct ply_vocab *v);
/* In the transcript a reply that begins with "###" is at a stop string already. */
bool ply_chat_stop_at_start(const struct ply_vocab *v, const char *text, size_t len);

/* Names accepted by --chat-template, NULL-terminated. */
const char *const *ply_chat_names(void);

/* Whole characters out of a stream of pieces: feed bytes, take what is complete. */
struct ply_stream {
    char held[4];
    size_t n_held;
};
/* Append to out the bytes that complete characters; ill-formed bytes become U+FFFD. */
int ply_stream_push(struct ply_stream *s, const char *bytes, size_t n, struct ply_buf *out);
int ply_stream_finish(struct ply_stream *s, struct ply_buf *out);

/* ---- engine ---------------------------------------------------------------------------- */

struct ply_engine_opts {
    const char *chat_template;  /* as in ply_vocab_opts */
    int n_ctx;                  /* tokens a sequence may hold; 0: min(n_ctx_train, 8192). More than
                                 * the model was trained for is allowed, and logged. */
    int n_threads;              /* 0: as many cores as the process may use */
    enum ply_isa isa;
    enum ply_kv_type kv_type;
    enum ply_precision precision;
    enum ply_kv_cache kv_cache;
    uint64_t kv_budget_bytes;   /* 0: the smaller of 2 GB and a quarter of free memory, at least
                                 * one context; less than one context is refused */
};

/* Loads a model. PLY_EUNSUPPORTED names architecture, scaling, type or --isa and what is
 * supported; PLY_ENOMEM names needed and available MiB and the flag to change. */
int ply_engine_open(struct ply_engine **out, const char *path, const struct ply_engine_opts *opts,
                    struct ply_err *err);
/* All sequences must have been freed. */
void ply_engine_close(struct ply_engine **e);
const struct ply_info *ply_engine_info(const struct ply_engine *e);
const struct ply_vocab *ply_engine_vocab(const struct ply_engine *e);
/* "ref", "avx2", ... ; false when unknown. */
bool ply_isa_parse(const char *name, enum ply_isa *out);
/* False with a reason when this processor or build cannot run it. */
bool ply_isa_available(enum ply_isa isa, struct ply_err *err);

/* Make the running evaluation return PLY_ECANCELLED within a layer. The flag stays up until
 * ply_engine_cancel_clear(), so that a cancel that comes early is not lost. Async-signal-safe. */
void ply_engine_cancel(struct ply_engine *e);
void ply_engine_cancel_clear(struct ply_engine *e);

/* Where a KV row came from. */
enum ply_source { PLY_SOURCE_LIVE, PLY_SOURCE_RAM, PLY_SOURCE_DISK, PLY_SOURCE_EVALUATED };
/* Called for every KV row that a sync reuses and every row that an eval computes. */
typedef void (*ply_trace_fn)(void *user, const struct ply_seq *s, size_t pos, int32_t id,
                             enum ply_source source);
void ply_engine_trace(struct ply_engine *e, ply_trace_fn fn, void *user);

/* ---- sequences ------------------------------------------------------------------------- */

int ply_seq_new(struct ply_engine *e, struct ply_seq **out, struct ply_err *err);
void ply_seq_free(struct ply_seq **s);
size_t ply_seq_len(const struct ply_seq *s);
const int32_t *ply_seq_ids(const struct ply_seq *s);
/* O(1): the blocks are shared, copied when written. The logits are those of s. */
int ply_seq_fork(const struct ply_seq *s, struct ply_seq **out, struct ply_err *err);
/* Keep the first n tokens. n <= length. */
void ply_seq_rollback(struct ply_seq *s, size_t n);

/* One sequence's part of a batch: ids are appended to it. */
struct ply_item {
    struct ply_seq *seq;
    const int32_t *ids;
    size_t n_ids;   /* >= 1 */
    size_t n_want;  /* logits of the last n_want ids are wanted; 0..n_ids */
    float *logits;  /* [n_want][n_vocab], the caller's; may be NULL when n_want is 0 */
};

/* Evaluate a batch, at most PLY_EVAL_TOKS_MAX ids in all; a sequence may stand in it once.
 * PLY_EFULL when a sequence would pass n_ctx (nothing was evaluated), PLY_ECANCELLED,
 * PLY_ENUMERIC when wanted logits are not numbers, PLY_EINVAL for an id out of range. After
 * a failure each sequence is as it was before. */
#define PLY_EVAL_TOKS_MAX 512
int ply_eval(struct ply_engine *e, struct ply_item *items, size_t n_items, struct ply_err *err);

/* Why reuse stopped where it did. */
enum ply_reason {
    PLY_REASON_COLD, PLY_REASON_FULL, PLY_REASON_EDITED, PLY_REASON_SYSTEM_CHANGED,
    PLY_REASON_MODEL_CHANGED, PLY_REASON_SETTINGS_CHANGED, PLY_REASON_EVICTED,
    PLY_REASON_WINDOW_DROPPED, PLY_REASON_VERIFY_FAILED, PLY_REASON_DISABLED,
};
const char *ply_reason_name(enum ply_reason r); /* "cold", "full", ... */

/* Called at least every 50 ms while a sync evaluates, on the calling thread. */
typedef void (*ply_progress_fn)(void *user, size_t n_evaluated, size_t n_to_evaluate);

struct ply_sync_opts {
    ply_progress_fn progress; /* may be NULL */
    void *user;
    size_t chunk;  /* ids per evaluation; 0: the engine's choice */
    bool cold;     /* reuse nothing this once */
};

struct ply_sync_report {
    size_t n_prompt;
    size_t reused_live, reused_ram, reused_disk;
    size_t evaluated;         /* n_prompt = reused_* + evaluated */
    enum ply_reason reason;
    size_t diverged_at;       /* first position that was not reused */
    double restore_ms, prefill_ms;
};

/* Make s exactly ids[0..n), n >= 1: the longest prefix that is live (later: in memory, on
 * disk) is kept, the rest evaluated in chunks. If everything is there the last id is evaluated
 * again, because its logits are needed. On failure s is valid and holds a prefix of ids, and
 * the report says how much was evaluated. opts and report may be NULL. */
int ply_seq_sync(struct ply_seq *s, const int32_t *ids, size_t n, const struct ply_sync_opts *opts,
                 struct ply_sync_report *report, struct ply_err *err);
/* Append ids[i] to seqs[i] for n sequences of one engine, as one batch. */
int ply_seq_step(struct ply_seq *const *seqs, const int32_t *ids, size_t n, struct ply_err *err);
/* [n_vocab] logits after the last id of the last sync or step; NULL after new or rollback. */
const float *ply_seq_logits(const struct ply_seq *s);

/* FNV-1a 64 over bytes; start with PLY_HASH_SEED. Every NaN counts as 0x7FC00000. */
#define PLY_HASH_SEED 0xcbf29ce484222325ull
uint64_t ply_hash_logits(uint64_t h, const float *logits, size_t n);

struct ply_kv_stats {
    uint64_t bytes_used, bytes_budget;
    size_t n_blocks_live, n_blocks_cached;
};
void ply_engine_kv_stats(const struct ply_engine *e, struct ply_kv_stats *out);

/* ---- sampling -------------------------------------------------------------------------- */

struct ply_sampling {
    float temp;      /* 0: the likeliest */
    int top_k;       /* 0: off */
    float top_p;     /* 1: off */
    float min_p;     /* 0: off */
    float repeat_penalty;    /* 1: off */
    float presence_penalty;  /* 0: off */
    float frequency_penalty; /* 0: off */
    int penalty_window;      /* ids looked back upon; 64 */
    uint64_t seed;
};

/* What the file asks for, else the defaults by the model's size. */
struct ply_sampling ply_sampling_default(const struct ply_vocab *v);
/* PLY_EINVAL with a message that names the value and its range. */
int ply_sampling_check(const struct ply_sampling *p, struct ply_err *err);

struct ply_sampler; /* scratch space for one vocabulary */
int ply_sampler_new(const struct ply_vocab *v, struct ply_sampler **out, struct ply_err *err);
void ply_sampler_free(struct ply_sampler **s);
/* Draw the id at `position` of candidate `candidate`. context: the ids fed so far, of which
 * penalties see the last penalty_window that are not exempt. Draws depend on (seed, candidate,
 * position) alone. PLY_ENUMERIC when a logit is NaN or +inf, or all are -inf. */
int ply_sample(struct ply_sampler *s, const float *logits, const struct ply_sampling *p,
               const int32_t *context, size_t n_context, uint64_t candidate, uint64_t position,
               int32_t *id, struct ply_err *err);
/* Natural-log probabilities: the k likeliest ids, best first, ties by lower id. PLY_ENUMERIC as
 * above, PLY_EINVAL when k is above n_vocab. */
int ply_top_logprobs(struct ply_sampler *s, const float *logits, size_t k, int32_t *ids,
                     double *logprobs);
double ply_logprob(const float *logits, size_t n_vocab, int32_t id);

#endif

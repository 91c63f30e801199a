/* SPDX-License-Identifier: MIT
 * What the command line knows. Spellings that users bring from other programs stand after ours. */
#include "app/opts_table.h"

#include <assert.h>
#include <limits.h>

#include "engine/base/num.h"

/* A choice's value is the number of its word. */
static_assert(PLY_ISA_AUTO == 0 && PLY_ISA_REF == 1 && PLY_ISA_AVX2 == 2 && PLY_ISA_AVXVNNI == 3 &&
                  PLY_ISA_AVX512 == 4,
              "--isa");
static_assert(PLY_KV_F16 == 0 && PLY_KV_Q8_0 == 1, "--kv-type");
static_assert(PLY_PRECISION_FAST == 0 && PLY_PRECISION_FULL == 1, "--precision");
static_assert(PLY_KV_CACHE_OFF == 0 && PLY_KV_CACHE_RAM == 1 && PLY_KV_CACHE_DISK == 2,
              "--kv-cache");
static_assert(APP_OPT_COUNT <= 64, "app_opts.given has 64 bits");
static_assert(APP_VERB_COUNT <= 32, "opts_def.verbs has 32 bits");

#define CHAT OPTS_VERB(APP_VERB_CHAT)
#define TALK (CHAT | OPTS_VERB(APP_VERB_RESUME))
#define SCORE OPTS_VERB(APP_VERB_SCORE)

/* clang-format off */
#define FLAG(id, names, field, verbs, group, help) \
    {id, names, NULL, OPTS_FLAG, offsetof(struct app_opts, field), 0, 0, NULL, NULL, verbs, \
     group, help}
#define TEXT(id, names, arg, field, verbs, group, help) \
    {id, names, arg, OPTS_TEXT, offsetof(struct app_opts, field), 0, 0, NULL, NULL, verbs, \
     group, help}
#define INT(id, names, field, min, max, verbs, group, help) \
    {id, names, "N", OPTS_INT, offsetof(struct app_opts, field), min, max, NULL, NULL, \
     verbs, group, help}
#define FLOAT(id, names, field, min, max, verbs, group, help) \
    {id, names, "X", OPTS_FLOAT, offsetof(struct app_opts, field), min, max, NULL, NULL, \
     verbs, group, help}
#define CHOICE(id, names, kind, words, reserved, field, group, help) \
    {id, names, "WORD", kind, offsetof(struct app_opts, field), 0, 0, words, reserved, \
     OPTS_ANY, group, help}
#define RESERVED(id, names, arg) \
    {id, names, arg, OPTS_RESERVED, 0, 0, 0, NULL, NULL, OPTS_ANY, OPTS_GROUP_HIDDEN, NULL}

const struct opts_def opts_defs[] = {
    TEXT(APP_OPT_MODEL, "-m --model", "FILE", model, OPTS_ANY, OPTS_GROUP_MODEL,
         "the model, a GGUF file"),
    FLAG(APP_OPT_CONTINUE, "-C --continue", continue_last, CHAT, OPTS_GROUP_CHAT,
         "go on with the last session"),
    TEXT(APP_OPT_SESSION, "--session", "NAME", session, CHAT, OPTS_GROUP_CHAT,
         "open the session of that name or number, or start one"),
    TEXT(APP_OPT_SYS, "-sys --system --system-prompt", "TEXT", sys, TALK, OPTS_GROUP_CHAT,
         "the system prompt; '' removes the one a model brings"),
    TEXT(APP_OPT_SYS_FILE, "-sysf --system-file --system-prompt-file", "FILE", sys_file, TALK,
         OPTS_GROUP_CHAT, "the system prompt from a file"),
    FLAG(APP_OPT_PLAIN, "--plain", plain, TALK, OPTS_GROUP_CHAT,
         "line by line, nothing redrawn: for line terminals and screen readers"),
    TEXT(APP_OPT_PROMPT, "-p --prompt", "TEXT", prompt, CHAT, OPTS_GROUP_CHAT,
         "one answer on standard output; piped input is appended"),
    TEXT(APP_OPT_FILE, "-f --file", "FILE", file, CHAT, OPTS_GROUP_CHAT,
         "the same, the text from a file"),
    FLAG(APP_OPT_JSONL, "--jsonl", jsonl, TALK, OPTS_GROUP_CHAT,
         "a chat for programs: messages in by line, JSON events out"),
    FLAG(APP_OPT_HASH, "--hash", hash, TALK | SCORE, OPTS_GROUP_OUTPUT,
         "add a hash of the logits"),

    INT(APP_OPT_CTX, "-c --ctx-size --ctx", n_ctx, 0, 16777216, OPTS_ANY, OPTS_GROUP_MODEL,
        "tokens a conversation may hold; 0: the model's own"),
    INT(APP_OPT_THREADS, "-t --threads", n_threads, 1, 512, OPTS_ANY, OPTS_GROUP_ENGINE,
        "threads, as many as given"),
    INT(APP_OPT_N, "-n --predict --n-predict --max-tokens", n_max, -1, INT_MAX, OPTS_ANY,
        OPTS_GROUP_SAMPLING, "tokens in a reply at most; -1: until it ends"),
    FLOAT(APP_OPT_TEMP, "--temp --temperature", sampling.temp, 0, 100, OPTS_ANY,
          OPTS_GROUP_SAMPLING, "temperature; 0: always the likeliest"),
    INT(APP_OPT_TOP_K, "--top-k", sampling.top_k, 0, INT_MAX, OPTS_ANY, OPTS_GROUP_SAMPLING,
        "only the N likeliest; 0: off"),
    FLOAT(APP_OPT_TOP_P, "--top-p", sampling.top_p, 0, 1, OPTS_ANY, OPTS_GROUP_SAMPLING,
          "only the likeliest that make up X; 1: off"),
    FLOAT(APP_OPT_MIN_P, "--min-p", sampling.min_p, 0, 1, OPTS_ANY, OPTS_GROUP_SAMPLING,
          "only those at least X times as likely as the likeliest"),
    FLOAT(APP_OPT_REPEAT_PENALTY, "--repeat-penalty", sampling.repeat_penalty, 0.01, 100, OPTS_ANY,
          OPTS_GROUP_SAMPLING, "less of what was said; 1: off"),
    FLOAT(APP_OPT_PRESENCE_PENALTY, "--presence-penalty", sampling.presence_penalty, -100, 100,
          OPTS_ANY, OPTS_GROUP_SAMPLING, "once for each token that was said; 0: off"),
    FLOAT(APP_OPT_FREQUENCY_PENALTY, "--frequency-penalty", sampling.frequency_penalty, -100, 100,
          OPTS_ANY, OPTS_GROUP_SAMPLING, "for each time it was said; 0: off"),
    INT(APP_OPT_REPEAT_LAST_N, "--repeat-last-n", sampling.penalty_window, 0, INT_MAX, OPTS_ANY,
        OPTS_GROUP_SAMPLING, "tokens the penalties look back upon"),
    {APP_OPT_SEED, "-s --seed", "N", OPTS_SEED, offsetof(struct app_opts, sampling.seed), 0, 0,
     NULL, NULL, OPTS_ANY, OPTS_GROUP_SAMPLING, "the same number, the same draws"},
    {APP_OPT_STOP, "--stop", "TEXT", OPTS_LIST, 0, 0, 0, NULL, NULL, OPTS_ANY,
     OPTS_GROUP_SAMPLING, "end the reply before this text; may be repeated"},
    TEXT(APP_OPT_TEMPLATE, "--chat-template", "NAME", chat_template, OPTS_ANY, OPTS_GROUP_MODEL,
         "the form of the conversation; the file's own if not given"),
    FLAG(APP_OPT_RAW, "--raw", raw, OPTS_ANY, OPTS_GROUP_MODEL,
         "no form at all: the model continues the text"),
    CHOICE(APP_OPT_ISA, "--isa", OPTS_CHOICE, "auto ref avx2 avxvnni avx512", "avxvnni", isa,
           OPTS_GROUP_ENGINE, "instruction set of the kernels"),
    CHOICE(APP_OPT_KV_TYPE, "--kv-type", OPTS_CHOICE, "f16 q8_0", NULL, kv_type,
           OPTS_GROUP_ENGINE, "numbers in the KV cache"),
    CHOICE(APP_OPT_PRECISION, "--precision", OPTS_CHOICE, "fast full", NULL, precision,
           OPTS_GROUP_ENGINE, "full: activations in float32, slow"),
    CHOICE(APP_OPT_KV_CACHE, "--kv-cache", OPTS_CHOICE, "off ram disk", NULL, kv_cache,
           OPTS_GROUP_ENGINE, "off: every prompt is read from its beginning"),
    CHOICE(APP_OPT_DRAFT, "--draft", OPTS_SWITCH, "off on", NULL, draft, OPTS_GROUP_ENGINE,
           "prefill while you type"),
    FLAG(APP_OPT_JSON, "--json", json, OPTS_ANY, OPTS_GROUP_OUTPUT, "the answer as JSON"),
    TEXT(APP_OPT_TRACE, "--trace", "FILE", trace, OPTS_ANY, OPTS_GROUP_OUTPUT,
         "write down every KV row that is fed, reused or evaluated"),
    TEXT(APP_OPT_FORCE_IDS, "--force-ids", "FILE", force_ids, OPTS_ANY, OPTS_GROUP_OUTPUT,
         "take the replies from here, ids by line, instead of drawing them"),

    INT(APP_OPT_TOP, "--top", top, 0, 1000, SCORE, OPTS_GROUP_OUTPUT,
        "likeliest ids to show at each position"),
    INT(APP_OPT_CHUNK, "--chunk", chunk, 1, 512, SCORE, OPTS_GROUP_ENGINE,
        "ids evaluated at once"),
    INT(APP_OPT_BATCH, "--batch", batch, 1, 64, SCORE, OPTS_GROUP_ENGINE,
        "sequences side by side, all but one at random"),
    FLAG(APP_OPT_REUSE, "--reuse", reuse, SCORE, OPTS_GROUP_ENGINE, "the cache may be used"),
    TEXT(APP_OPT_OUTPUT, "-o --output", "FILE", output, OPTS_VERB(APP_VERB_EXPORT),
         OPTS_GROUP_OUTPUT, "write to a file; .json: everything, .md or else: to be read"),
    INT(APP_OPT_LIMIT, "--limit", limit, 0, INT_MAX,
        OPTS_VERB(APP_VERB_LS) | OPTS_VERB(APP_VERB_SEARCH), OPTS_GROUP_OUTPUT,
        "rows at most; 0: all"),

    RESERVED(APP_OPT_SPEC, "--spec", "WORD"),
    RESERVED(APP_OPT_SCREEN, "--screen", "WORD"),
    RESERVED(APP_OPT_VERIFY, "--verify", "N"),
    FLAG(APP_OPT_HELP, "-h --help", help, OPTS_ANY, OPTS_GROUP_OUTPUT,
         "this, or with a command its own"),
    FLAG(APP_OPT_VERSION, "--version", version, OPTS_ANY, OPTS_GROUP_OUTPUT, "the version"),
};
const size_t opts_n_defs = PLY_COUNT(opts_defs);
static_assert(PLY_COUNT(opts_defs) == APP_OPT_COUNT, "one row an option");

const char *const opts_group_titles[OPTS_GROUP_COUNT] = {
    [OPTS_GROUP_CHAT] = "Talking",
    [OPTS_GROUP_MODEL] = "Model",
    [OPTS_GROUP_SAMPLING] = "Sampling",
    [OPTS_GROUP_OUTPUT] = "Output",
    [OPTS_GROUP_ENGINE] = "Engine",
};

#define MANY 1000
const struct opts_verb opts_verbs[APP_VERB_COUNT] = {
    [APP_VERB_CHAT] = {"", "", 0, 0, "chat on the full screen", NULL},
    [APP_VERB_RESUME] = {"resume", "[ID|TEXT]", 0, MANY, "go on with a session",
        "Without an argument: the last one. TEXT is a title, its beginning, a part of it, or\n"
        "words that were said.\n"},
    [APP_VERB_LS] = {"ls", "[TEXT]", 0, MANY, "list sessions, newest first",
        "TEXT: only those whose title holds its words.\n"},
    [APP_VERB_SHOW] = {"show", "ID", 1, MANY, "print a session", "ID is a number or a title.\n"},
    [APP_VERB_SEARCH] = {"search", "TEXT", 1, MANY, "find messages that hold all words of TEXT",
        "Letter case aside; nothing in TEXT is an operator. Exit status 1: no match.\n"},
    [APP_VERB_RENAME] = {"rename", "ID TITLE", 2, MANY, "give a session a name",
        "ID is a number or a title; quote a title of several words.\n"},
    [APP_VERB_RM] = {"rm", "ID...", 1, MANY, "delete sessions for good",
        "ID is a number or a title. The text is overwritten in the database.\n"},
    [APP_VERB_EXPORT] = {"export", "ID", 1, MANY,
        "write a session as Markdown, or with --json all of it",
        "ID is a number or a title.\n"},
    [APP_VERB_IMPORT] = {"import", "FILE", 1, 1, "read sessions that export --json wrote",
        "FILE '-' is standard input.\n"},
    [APP_VERB_TOKENIZE] = {"tokenize", "< TEXT", 0, 0, "bytes to ids of user text",
        "Ids on one line; no control tokens, none at the beginning.\n"},
    [APP_VERB_DETOKENIZE] = {"detokenize", "< IDS", 0, 0, "ids to bytes", NULL},
    [APP_VERB_SCORE] = {"score", "< IDS", 0, 0, "log-probabilities of a text given as ids",
        "One JSON line a position, the last with perplexity and, with --hash, a hash of all\n"
        "logits.\n"},
    [APP_VERB_BENCH] = {"bench", "", 0, 0, "measure prefill and decode speed", NULL},
    [APP_VERB_CACHE] = {"cache", "ls|stat|verify|clear", 1, 1,
        "look after the KV cache on disk", NULL},
    [APP_VERB_INFO] = {"info", "[FILE]", 0, 1, "what a model file is, and how it would run", NULL},
    [APP_VERB_DOCTOR] = {"doctor", "", 0, 0, "check this installation", NULL},
};
/* clang-format on */

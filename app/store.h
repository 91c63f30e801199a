/* SPDX-License-Identifier: MIT
 * The store: conversations in one SQLite file, $XDG_DATA_HOME/parley/parley.db.
 *
 * A session is a tree of messages, of which one path, root to leaf, is current. In memory a
 * struct store_session is that path and the settings that go with it. The caller changes it
 * freely (push, edit a message and mark it dirty, pop) and calls store_session_save(), which
 * makes the file say the same in one short transaction (a few where much has piled up). After a
 * save that failed what is missing in the file is still in memory: the chat goes on, and the
 * next save that succeeds writes it. That one rule covers a locked database, a full disk and a
 * crash.
 *
 *   user message    push, save                        before prefill
 *   reply           push with state WRITING           no save needed yet
 *   partial reply   append text and ids, dirty, save  once a second
 *   end of turn     finish, stats, state DONE, dirty, save
 *   stopped before the first token: pop, put the text in draft, save
 *   edit, regenerate: pop back to the message's parent with store_session_cut, push, save
 *
 * Text is any bytes, NUL and ill-formed UTF-8 included, and comes back as it was. Ids are the
 * truth of a reply, text is for people.
 *
 * Errors: PLY_EBUSY another process holds the write lock longer than the busy time; PLY_EIO
 * also a full disk (the message says so); PLY_EFORMAT the file is damaged; PLY_EUNSUPPORTED it
 * is newer than this build, or not ours; PLY_ENOENT no such session, or it was deleted by
 * another process; PLY_ENOMEM. All calls on one thread. */
#ifndef APP_STORE_H
#define APP_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/array.h"
#include "engine/base/err.h"
#include "engine/ply.h"

struct store;

/* ---- the file -------------------------------------------------------------------------- */

#define STORE_BUSY_CLI_MS 5000 /* verbs wait for a lock */
#define STORE_BUSY_LOOP_MS 60  /* the event loop does not: it tries again later */

/* Opens path, creating file (0600) and folder (0700) where they are missing, and brings an
 * older schema up to date, keeping a copy of the old file beside it. Replies that a crash left
 * unfinished become finish INTERRUPTED. At most one store on a file in a process. On failure
 * *out is NULL and a file that was refused is unchanged, byte for byte. */
int store_open(struct store **out, const char *path, int busy_ms, struct ply_err *err);
void store_close(struct store **st);
void store_busy_set(struct store *st, int busy_ms);

/* ---- a session in memory --------------------------------------------------------------- */

enum store_state {
    STORE_DONE,
    STORE_WRITING, /* a reply whose end has not been stored */
};

enum store_finish {
    STORE_FINISH_NONE, /* not a generated reply, or still being written */
    STORE_FINISH_STOP,
    STORE_FINISH_LENGTH,
    STORE_FINISH_CANCELLED,
    STORE_FINISH_ERROR,
    STORE_FINISH_INTERRUPTED, /* the program ended before the reply did */
};
const char *store_finish_name(enum store_finish f); /* "", "stop", "length", ... */
enum store_finish store_finish_parse(const char *name); /* NONE for what is not a name */
const char *store_role_name(enum ply_role role);        /* "system", "user", "assistant" */
bool store_role_parse(const char *name, enum ply_role *out);

/* What one turn cost; the same numbers that were shown. */
struct store_stats {
    bool known; /* false: nothing below means anything */
    int64_t prompt_toks, cached_toks, evaluated_toks, drafted_toks, predicted_toks;
    double ttft_ms, tokenize_ms, restore_ms, prefill_ms, decode_ms; /* the parts of TTFT */
    double predicted_ms;   /* first token to last */
    char reuse_reason[32]; /* ply_reason_name() */
};

struct store_msg {
    int64_t id; /* 0: not stored yet */
    enum ply_role role;
    enum store_state state;
    enum store_finish finish;
    bool dirty;          /* differs from what is stored; set by whoever changes a stored message */
    struct ply_buf text; /* as typed, or as generated */
    struct ply_ids ids;  /* as sampled, the end id included; empty for text that was typed */
    char model_fp[33];   /* the model's fingerprint, hex; "" when unknown */
    char template_name[32];
    bool has_sampling;
    struct ply_sampling sampling;
    struct store_stats stats;
    int64_t created_ms; /* since 1970; 0: set when it is stored */
};

/* Zero-initialised: a new, empty session. Strings are NULL when not set; set them with
 * store_string_set(). A settings field that is changed is written by the next save. */
struct store_session {
    int64_t id;    /* 0: not stored yet */
    char *title;   /* of a new session: its name, with title_by_user. Once stored only
                    * store_session_rename() changes it; what save finds there comes back here */
    bool title_by_user;
    char *model_path, *model_name;
    char model_fp[33];
    char *template_name; /* --chat-template; NULL: the file's own; "raw" */
    int n_ctx;           /* 0: the default */
    bool has_sampling;
    struct ply_sampling sampling; /* as the file has it: ply_sampling_check() before use */
    char *system; /* NULL: what the template adds; "": none */
    char *draft;  /* unsent text; NUL-free by the editor's contract */
    int64_t place_msg; /* the message at the top of the screen; 0: at the end */
    int place_line;    /* and its line there */
    int64_t created_ms, updated_ms;

    struct store_msg *path; /* [n_path] the current path, root first */
    size_t n_path;

    bool shared;      /* another live process has it open: what is said here becomes a branch */
    size_t n_skipped; /* damaged messages that were left out of path */

    /* private to the store */
    size_t cap_path;
    int64_t seen_leaf; /* the file's current leaf when it was last read or written */
    int64_t *gone;     /* [n_gone] stored messages to delete */
    size_t n_gone;
    bool claimed;
};

int store_string_set(char **s, const char *value); /* value may be NULL */
void store_session_fini(struct store_session *s);

/* Append a message with a copy of text. The pointer is valid until the next push, pop or cut;
 * NULL when memory is out. created_ms is now. */
struct store_msg *store_session_push(struct store_session *s, enum ply_role role,
                                     const char *text, size_t len);
/* Take the last message away, from the tree too at the next save. Only a message that nothing
 * was answered to. */
int store_session_pop(struct store_session *s);
/* Keep the first n messages of the path; the others stay in the tree, on a branch. */
void store_session_cut(struct store_session *s, size_t n);

/* ---- a session in the file ------------------------------------------------------------- */

enum store_load { STORE_LOAD_READ, STORE_LOAD_CLAIM };

/* Fill *s (finished first if it holds something). CLAIM registers this process as the one that
 * has it open; if another live one has, s->shared is set and the path ends before whatever
 * that one is writing. */
int store_session_load(struct store *st, int64_t id, enum store_load how, struct store_session *s,
                       struct ply_err *err);
/* See the head of this file. *moved (may be NULL): another process has gone on from the same
 * place; both continuations are kept, this one is current. Makes a title from the first user
 * message unless a person named the session. */
int store_session_save(struct store *st, struct store_session *s, bool *moved, struct ply_err *err);
/* Every message in memory is stored as it is. */
bool store_session_is_saved(const struct store_session *s);
/* Give up the claim of CLAIM or of a first save. Called before the session is finished. */
void store_session_release(struct store *st, struct store_session *s);

/* title: any text, kept as it is, shown sanitised. An empty one is PLY_EINVAL. */
int store_session_rename(struct store *st, int64_t id, const char *title, size_t len,
                         struct ply_err *err);
/* Delete a session, its messages and their index entries, so that no byte of them stays in the
 * file. PLY_EBUSY while another live process has it open. */
int store_session_delete(struct store *st, int64_t id, struct ply_err *err);

enum store_find {
    STORE_FIND_NAMED, /* exact title (the newest), else id: --session */
    STORE_FIND_EXACT, /* id ("12" or "#12"), else exact title: show, rename, rm, export */
    STORE_FIND_ANY,   /* EXACT, else a title's beginning, a part of one, a message's text: resume */
};
/* PLY_ENOENT, or PLY_EINVAL when several fit (the message lists some). */
int store_session_find(struct store *st, const char *key, enum store_find how, int64_t *id,
                       struct ply_err *err);
/* The session used last. */
int store_session_last(struct store *st, int64_t *id, struct ply_err *err);

/* Siblings of a stored message, itself included, oldest first: the alternatives at that place. */
int store_siblings(struct store *st, int64_t session, int64_t msg, int64_t **ids, size_t *n,
                   struct ply_err *err);
/* Make the path run through msg, down to the newest end below it. Unsaved messages must have
 * been saved. */
int store_session_goto(struct store *st, struct store_session *s, int64_t msg, struct ply_err *err);

/* ---- whole sessions -------------------------------------------------------------------- */

/* All messages of a session, on all branches, each after its parent. */
struct store_tree {
    struct store_msg *v;
    int64_t *parents; /* [n] ids; 0: a root */
    size_t n;
    size_t n_skipped; /* damaged ones; what hung on them hangs on their parents */
};
int store_tree_load(struct store *st, int64_t session, struct store_tree *out,
                    struct ply_err *err);
void store_tree_fini(struct store_tree *t);
/* Store a session anew: settings and title of s, whose path is not looked at, and the messages
 * of t. Ids in t are only names; s->id becomes the new session's. leaf: the id in t of the
 * current path's end, 0 for the last message. PLY_EFORMAT: a parent comes after its child. */
int store_tree_insert(struct store *st, struct store_session *s, const struct store_tree *t,
                      int64_t leaf, struct ply_err *err);

/* ---- lists ----------------------------------------------------------------------------- */

struct store_row {
    int64_t id;
    char *title; /* never NULL; "" before the first message */
    char *model_name;
    int64_t n_msgs; /* on all branches */
    bool has_draft;
    bool open; /* in a live process */
    int64_t created_ms, updated_ms;
};
struct store_list {
    struct store_row *v;
    size_t n;
};
/* Newest first. filter: part of the title, NULL for all; limit 0: no limit. */
int store_list(struct store *st, const char *filter, size_t limit, struct store_list *out,
               struct ply_err *err);
void store_list_fini(struct store_list *l);

struct store_hit {
    int64_t session, msg; /* msg 0: the title matched */
    enum ply_role role;
    char *title;
    char *snippet; /* around the first match; UTF-8, control characters replaced by spaces */
    size_t match_pos, match_len; /* bytes in snippet */
    int64_t created_ms;
};
struct store_hits {
    struct store_hit *v;
    size_t n;
};
/* Messages and titles that hold every word of query, as parts of words, letter case aside;
 * nothing in it is an operator. Newest first, at most limit (0: no limit). */
int store_search(struct store *st, const char *query, size_t limit, struct store_hits *out,
                 struct ply_err *err);
void store_hits_fini(struct store_hits *h);

/* A title from a first message: its first line with something in it, control characters
 * dropped, cut at 40 columns. title[256]; "" when there is none. */
void store_title_from(const char *text, size_t len, char title[256]);

#endif

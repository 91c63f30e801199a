/* SPDX-License-Identifier: MIT
 * Chat templates: which one a file means (chat_family.c), and how a conversation becomes ids
 * (chat.c).
 *
 * A template is a table of fragments. A fragment is text, encoded on its own, with bytes 1 to 6
 * in it for control ids:
 *   \1 .. \4  the family's markers, as its `marker` lists them
 *   \5        the id that begins a text    \6  the id that ends one
 * A marker that the vocabulary has as a plain piece or not at all is inserted as text, where
 * the family allows that. A space at a fragment's end belongs to the text that follows. */
#ifndef PLY_CHAT_H
#define PLY_CHAT_H

#include "engine/ply.h"
#include "engine/tok.h"

#define PLY_CHAT_MARKERS 4
#define PLY_CHAT_LINE_MARK "###" /* begins the transcript's role lines, and no line of text */

struct ply_chat_family {
    const char *name;
    const char *marker[PLY_CHAT_MARKERS]; /* pieces; NULL: none */
    bool by_id;                           /* markers must be pieces; else they may be text */
    /* Roles alternate: texts of one user turn are joined with this between them, a system text
     * stands in the user turn, and a user turn is closed when the reply opens. NULL: each
     * message is a turn of its own. */
    const char *join;
    const char *sys_open, *sys_close;
    const char *user_open, *user_close;
    const char *reply_open, *reply_close;
    bool bos;              /* prompts begin with BOS whatever the tokenizer's settings are */
    bool eos;              /* needs the id that ends a text */
    bool transcript;       /* preamble and examples; lines that begin with "###" are escaped */
    const char *shield[2]; /* further plain-text markers that text must not hold */
};

/* What a file and --chat-template come to. */
struct ply_chat {
    const struct ply_chat_family *family; /* never NULL */
    char why_not[160]; /* not empty: the file's template cannot be rendered, and why */
    bool base_model;   /* the file has no template */
    bool begin_bos;    /* prompts begin with bos */
    int32_t marker[PLY_CHAT_MARKERS]; /* -1: text, or none */
    int32_t bos, eos;                 /* -1: none */
    char *default_system;             /* "" for none */
    struct ply_ids ends;              /* ids that end a reply */
};

/* g: for the template's text; add_bos: what the tokenizer's settings say. Ids that the template
 * inserts or that end a reply become CONTROL in src. name: as in ply_vocab_opts.
 * PLY_EUNSUPPORTED: an unknown name, or one that needs a piece which the vocabulary lacks. */
int ply_chat_init(struct ply_chat *c, const struct ply_gguf *g, struct ply_tok_src *src,
                  const char *name, bool add_bos, struct ply_err *err);
void ply_chat_fini(struct ply_chat *c);
/* "chatml", ...; "unknown" when why_not says so. */
const char *ply_chat_family_name(const struct ply_chat *c);

/* Append the ids of all of the template's own text, in any order: what sampling penalties must
 * leave alone. */
int ply_chat_own_ids(const struct ply_chat *c, const struct ply_tok *t, struct ply_ids *out,
                     struct ply_err *err);
bool ply_chat_ends(const struct ply_chat *c, int32_t id);
int ply_chat_write(const struct ply_chat *c, const struct ply_tok *t, const struct ply_msg *msgs,
                   size_t n, unsigned flags, struct ply_ids *out, struct ply_err *err);

extern const char ply_chat_preamble[];

#endif

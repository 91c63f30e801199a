/* SPDX-License-Identifier: MIT
 * The tiny models' vocabularies: a byte-level BPE or a SentencePiece one of some hundred pieces,
 * with the control pieces and the template text of one chat family. */
#ifndef TESTS_MKVOCAB_H
#define TESTS_MKVOCAB_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/ggufw.h"

struct mkvocab_opts {
    bool spm;                   /* else byte-level BPE */
    const char *chat;           /* a name of mkvocab_chats() */
    bool no_template;           /* the family's pieces, but no template text: a base model */
    bool gaps;                  /* BPE: leave out the bytes that SmolLM2 has no piece for */
    const char *pre;            /* BPE: the pre-tokenizer's name; NULL: the family's own */
    const char *default_system; /* chatml: the template adds this system text; NULL: none */
};

/* NULL-terminated. */
const char *const *mkvocab_chats(void);
/* Write all tokenizer.* keys; returns the number of pieces, 0 for an unknown family. */
uint32_t mkvocab_write(struct ggufw *w, const struct mkvocab_opts *o);

#endif

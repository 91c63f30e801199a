/* SPDX-License-Identifier: MIT
 * Pre-tokenizers of the byte-level BPE family: how a text is cut into words before merging.
 * Each is what its model's regular expression says, written as a scanner: no recursion, time
 * linear in the text. Ill-formed bytes are characters that are neither letter, number nor space. */
#ifndef PLY_TOK_PRE_H
#define PLY_TOK_PRE_H

#include <stdbool.h>
#include <stddef.h>

enum ply_pre_kind {
    PLY_PRE_GPT2,    /* gpt-2 */
    PLY_PRE_DIGITS,  /* smollm, starcoder, refact: every number character alone, then gpt-2 */
    PLY_PRE_LLAMA3,  /* llama-bpe: numbers in threes */
    PLY_PRE_QWEN2,   /* as llama-bpe, numbers one by one */
    PLY_PRE_DEFAULT, /* default: punctuation apart, then gpt-2, numbers in threes */
};

struct ply_pre {
    enum ply_pre_kind kind;
    const char *text;
    size_t len, pos;
    /* Internal: where the part of the text that is being cut further ends. */
    size_t part_end, digits_end;
};

/* By the file's name for it; false when it is not known. */
bool ply_pre_find(const char *name, size_t len, enum ply_pre_kind *kind);
/* The names that are known, "smollm, gpt-2, ...": for messages. */
const char *ply_pre_known(void);
/* Models with this name look a whole word up before they merge. */
bool ply_pre_whole_words(enum ply_pre_kind kind);

void ply_pre_init(struct ply_pre *p, enum ply_pre_kind kind, const char *text, size_t len);
/* The next word, as [*start, *end) of the text; false at its end. Words are not empty, in
 * order, and cover the text without a gap. */
bool ply_pre_next(struct ply_pre *p, size_t *start, size_t *end);

#endif

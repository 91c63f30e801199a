/* SPDX-License-Identifier: MIT
 * SentencePiece's model file, a protocol buffer message, written by hand: Debian ships no
 * header for it. Fields, from sentencepiece_model.proto:
 *
 *   ModelProto      1 pieces (repeated)  2 trainer_spec  3 normalizer_spec: all messages
 *   SentencePiece   1 piece (bytes)  2 score (float)  3 type (enum)
 *   TrainerSpec     3 model_type (1 unigram, 2 BPE)  35 byte_fallback (bool)
 *                   40 unk_id  41 bos_id  42 eos_id (int32, -1: none)
 *   NormalizerSpec  1 name  2 precompiled_charsmap (bytes)  3 add_dummy_prefix (bool)
 *                   4 remove_extra_whitespaces (bool)  5 escape_whitespaces (bool)
 *
 * On the wire: a key (field << 3 | kind), then by kind 0 a varint, 1 eight bytes, 2 a varint
 * length and that many bytes, 5 four bytes. */
#ifndef PLY_TOK_PROTO_H
#define PLY_TOK_PROTO_H

#include "engine/tok_impl.h"

/* Append one piece. type: enum ply_tok_attr, whose numbers are the proto's. */
int ply_proto_piece(struct ply_buf *b, const char *piece, size_t len, float score, int type);
/* Append the rest: a BPE model that normalises nothing beyond charsmap and adds no space of
 * its own (tok_sp.c does). */
int ply_proto_tail(struct ply_buf *b, uint32_t unk, bool byte_fallback, struct ply_str charsmap);

/* Read a model into src, whose strings then lie in bytes and whose tables are its own.
 * PLY_EFORMAT, PLY_EUNSUPPORTED (another kind of model than BPE), PLY_ENOMEM. */
int ply_proto_read(struct ply_tok_src *src, const void *bytes, size_t n, struct ply_err *err);

#endif

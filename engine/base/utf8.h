/* SPDX-License-Identifier: MIT
 * UTF-8 by the Unicode standard's table 3-7: no overlong forms, no surrogates, nothing
 * above U+10FFFF. */
#ifndef PLY_BASE_UTF8_H
#define PLY_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decode the first character of s[0..n), n > 0. Returns its length in bytes with *cp set,
 * or the negated length (-1..-3) of the maximal ill-formed part with *cp = U+FFFD. */
int ply_utf8_decode(const char *s, size_t n, uint32_t *cp);
/* Encode cp to out[4]; returns the length (1..4). A surrogate or a value out of range is written
 * as U+FFFD. */
int ply_utf8_encode(uint32_t cp, char out[4]);
bool ply_utf8_valid(const char *s, size_t n);
/* The length of the longest prefix of s that does not end in the middle of a character
 * which further bytes could complete. Ill-formed bytes count as complete. */
size_t ply_utf8_whole(const char *s, size_t n);

#endif

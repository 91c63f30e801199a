/* SPDX-License-Identifier: MIT
 * Bytes from the terminal -> keys. Knows the sequences of xterm and its kin, rxvt, the Linux
 * console and the kitty and modifyOtherKeys forms of Shift+Enter; bracketed paste comes as one
 * key. What is unknown or ill-formed is left out. Times are in ms on any steady clock. */
#ifndef UI_KEYS_H
#define UI_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/array.h"

enum ui_keycode {
    UI_KEY_TEXT,  /* typed characters: text[0..n), valid UTF-8, no control characters */
    UI_KEY_PASTE, /* text[0..n), any bytes */
    UI_KEY_CHAR,  /* with Alt or Ctrl: ch is the character, a letter in lower case for Ctrl */
    UI_KEY_ENTER,
    UI_KEY_NEWLINE, /* ^J, Alt+Enter, Shift+Enter */
    UI_KEY_TAB,
    UI_KEY_BACKTAB,
    UI_KEY_ESC,
    UI_KEY_BACKSPACE,
    UI_KEY_DELETE,
    UI_KEY_INSERT,
    UI_KEY_UP,
    UI_KEY_DOWN,
    UI_KEY_LEFT,
    UI_KEY_RIGHT,
    UI_KEY_HOME,
    UI_KEY_END,
    UI_KEY_PGUP,
    UI_KEY_PGDN,
    UI_KEY_F, /* ch: 1 to 12 */
};

enum { UI_MOD_SHIFT = 1, UI_MOD_ALT = 2, UI_MOD_CTRL = 4 };

struct ui_key {
    enum ui_keycode code;
    unsigned mods;
    uint32_t ch;
    const char *text; /* until the next call */
    size_t n;
};

struct ui_keys {
    struct ply_buf in; /* bytes not yet decoded: in.v[pos..n) */
    size_t pos;
    struct ply_buf out; /* the text of the last key */
    double fed_ms;      /* when the last bytes came */
    bool single;        /* set by the caller: typed characters come one by one */
    bool pasting;
    struct ply_buf paste;
};

void ui_keys_feed(struct ui_keys *k, const char *bytes, size_t n, double now);
/* The next key; false: none, or the bytes at hand may be the beginning of one. */
bool ui_keys_next(struct ui_keys *k, double now, struct ui_key *key);
/* Milliseconds until ui_keys_next() may have a key without further bytes, -1: never. */
int ui_keys_timeout(const struct ui_keys *k, double now);
void ui_keys_fini(struct ui_keys *k);

#endif

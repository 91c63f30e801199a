/* SPDX-License-Identifier: MIT
 * Which key is which editing command: the set that readline and weechat share. */
#ifndef UI_BIND_H
#define UI_BIND_H

#include <stdbool.h>

#include "ui/editor.h"
#include "ui/keys.h"

/* Applies a key to an editor; false if it is no editing key. Enter, Tab and Esc are not. */
bool ui_bind_edit(struct ui_editor *ed, const struct ui_key *key);

#endif

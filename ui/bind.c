/* SPDX-License-Identifier: MIT
 * The table of editing keys. */
#include "ui/bind.h"

#include "engine/base/num.h"

static const struct {
    enum ui_keycode code;
    unsigned mods;
    uint32_t ch;
    enum ui_edit cmd;
} bindings[] = {
    {UI_KEY_LEFT, 0, 0, UI_EDIT_LEFT},
    {UI_KEY_RIGHT, 0, 0, UI_EDIT_RIGHT},
    {UI_KEY_UP, 0, 0, UI_EDIT_UP},
    {UI_KEY_DOWN, 0, 0, UI_EDIT_DOWN},
    {UI_KEY_HOME, 0, 0, UI_EDIT_LINE_START},
    {UI_KEY_END, 0, 0, UI_EDIT_LINE_END},
    {UI_KEY_HOME, UI_MOD_CTRL, 0, UI_EDIT_TEXT_START},
    {UI_KEY_END, UI_MOD_CTRL, 0, UI_EDIT_TEXT_END},
    {UI_KEY_LEFT, UI_MOD_CTRL, 0, UI_EDIT_WORD_LEFT},
    {UI_KEY_RIGHT, UI_MOD_CTRL, 0, UI_EDIT_WORD_RIGHT},
    {UI_KEY_LEFT, UI_MOD_ALT, 0, UI_EDIT_WORD_LEFT},
    {UI_KEY_RIGHT, UI_MOD_ALT, 0, UI_EDIT_WORD_RIGHT},
    {UI_KEY_BACKSPACE, 0, 0, UI_EDIT_BACKSPACE},
    {UI_KEY_BACKSPACE, UI_MOD_ALT, 0, UI_EDIT_KILL_WORD_LEFT},
    {UI_KEY_DELETE, 0, 0, UI_EDIT_DELETE},
    {UI_KEY_DELETE, UI_MOD_CTRL, 0, UI_EDIT_KILL_WORD_RIGHT},
    {UI_KEY_CHAR, UI_MOD_CTRL, 'a', UI_EDIT_LINE_START},
    {UI_KEY_CHAR, UI_MOD_CTRL, 'b', UI_EDIT_LEFT},
    {UI_KEY_CHAR, UI_MOD_CTRL, 'd', UI_EDIT_DELETE},
    {UI_KEY_CHAR, UI_MOD_CTRL, 'e', UI_EDIT_LINE_END},
    {UI_KEY_CHAR, UI_MOD_CTRL, 'f', UI_EDIT_RIGHT},
    {UI_KEY_CHAR, UI_MOD_CTRL, 'k', UI_EDIT_KILL_LINE_END},
    {UI_KEY_CHAR, UI_MOD_CTRL, 'n', UI_EDIT_HISTORY_NEXT},
    {UI_KEY_CHAR, UI_MOD_CTRL, 'p', UI_EDIT_HISTORY_PREV},
    {UI_KEY_CHAR, UI_MOD_CTRL, 't', UI_EDIT_TRANSPOSE},
    {UI_KEY_CHAR, UI_MOD_CTRL, 'u', UI_EDIT_KILL_LINE_START},
    {UI_KEY_CHAR, UI_MOD_CTRL, 'w', UI_EDIT_KILL_SPACE_LEFT},
    {UI_KEY_CHAR, UI_MOD_CTRL, 'y', UI_EDIT_YANK},
    {UI_KEY_CHAR, UI_MOD_CTRL, '_', UI_EDIT_UNDO},
    {UI_KEY_CHAR, UI_MOD_ALT, '_', UI_EDIT_REDO},
    {UI_KEY_CHAR, UI_MOD_ALT, 'b', UI_EDIT_WORD_LEFT},
    {UI_KEY_CHAR, UI_MOD_ALT, 'd', UI_EDIT_KILL_WORD_RIGHT},
    {UI_KEY_CHAR, UI_MOD_ALT, 'f', UI_EDIT_WORD_RIGHT},
};

bool
ui_bind_edit(struct ui_editor *ed, const struct ui_key *key)
{
    switch (key->code) {
    case UI_KEY_TEXT:
    case UI_KEY_PASTE:
        ui_editor_insert(ed, key->text, key->n, key->code == UI_KEY_TEXT);
        return true;
    case UI_KEY_NEWLINE: ui_editor_insert(ed, "\n", 1, true); return true;
    default: break;
    }
    for (size_t i = 0; i < PLY_COUNT(bindings); i++) {
        if (bindings[i].code == key->code && bindings[i].mods == key->mods &&
            bindings[i].ch == key->ch) {
            ui_editor_do(ed, bindings[i].cmd);
            return true;
        }
    }
    return false;
}

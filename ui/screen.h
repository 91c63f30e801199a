/* SPDX-License-Identifier: MIT
 * struct ui: the models behind the screen, shared by ui.c, which changes them, and draw_*.c, which
 * draw them. */
#ifndef UI_SCREEN_H
#define UI_SCREEN_H

#include "ui/editor.h"
#include "ui/keys.h"
#include "ui/layout.h"
#include "ui/list.h"
#include "ui/status.h"
#include "ui/transcript.h"
#include "ui/ui.h"

struct ui {
    struct ui_keys keys;
    struct ui_transcript transcript;
    struct ui_editor editor;
    struct ui_status status;
    struct ui_header header;
    struct ui_list_view list;
    struct ui_pager pager;
    struct ui_layout layout;

    char *notice; /* "" for none */
    enum ui_level notice_level;
    char *ask_keys; /* "" when nothing is asked */
    char *held;     /* the notice that came during a question, "" for none */
    enum ui_level held_level;
    char *note, *hint;

    struct ply_buf event_text; /* what the last event points to */
    int fd_in;
    size_t n_read; /* bytes read in this turn of the loop */
    bool hung_up, hang_up_told;
    bool after_esc;  /* the last key was Esc: Enter does not send */
    bool quit_armed; /* the last key was ^C on an empty draft */
    bool dirty, redraw;
    int cursor_y, cursor_x; /* set while drawing */
    double drawn_ms;        /* when the last frame was drawn, on the real clock */
    double (*now_ms)(void *user);
    void *user;
};

bool ui_asks(const struct ui *ui);
bool ui_overlaid(const struct ui *ui); /* a list or pager lies over the transcript */

#endif

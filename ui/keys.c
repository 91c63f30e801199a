/* SPDX-License-Identifier: MIT
 * The decoder. A lone Esc and the beginning of a sequence look alike: Esc is a key of its own when
 * nothing has followed it for ESC_MS. */
#include "ui/keys.h"

#include <string.h>

#include "engine/base/num.h"
#include "engine/base/utf8.h"
#include "ui/mem.h"

#define ESC_MS 25    /* what people do not feel, and terminals send sequences in one write */
#define REST_MS 200  /* for the rest of a sequence or character that has begun */
#define PASTE_MS 300 /* a paste that has stalled is shown as far as it has come */
#define CSI_MAX 64   /* no key's sequence is longer */

static const char paste_begin[] = "200";
static const char paste_end[] = "\x1b[201~";

/* A step of decoding: a key was found, bytes were dropped, or more bytes are needed. */
enum step { KEY, DROPPED, MORE };

void
ui_keys_feed(struct ui_keys *k, const char *bytes, size_t n, double now)
{
    /* The end of a paste got lost: ^C after a silence is the way out. */
    if (k->pasting && n == 1 && bytes[0] == 3 && now - k->fed_ms > 1000) {
        k->pasting = false;
        k->fed_ms = now;
        return;
    }
    ui_buf_remove(&k->in, 0, k->pos);
    k->pos = 0;
    ui_buf_append(&k->in, bytes, n);
    k->fed_ms = now;
}

static enum step
drop(struct ui_keys *k, size_t n)
{
    k->pos += n;
    return DROPPED;
}

static enum step
found(struct ui_keys *k, size_t n, struct ui_key *key, enum ui_keycode code, unsigned mods,
      uint32_t ch)
{
    *key = (struct ui_key){.code = code, .mods = mods, .ch = ch};
    k->pos += n;
    return KEY;
}

/* ---- sequences ------------------------------------------------------------------------- */

static int
code_by_letter(char c)
{
    switch (c) {
    case 'A': return UI_KEY_UP;
    case 'B': return UI_KEY_DOWN;
    case 'C': return UI_KEY_RIGHT;
    case 'D': return UI_KEY_LEFT;
    case 'H': return UI_KEY_HOME;
    case 'F': return UI_KEY_END;
    case 'Z': return UI_KEY_BACKTAB;
    case 'M': return UI_KEY_ENTER;
    default: return -1;
    }
}

static int
code_by_number(int n, uint32_t *ch)
{
    static const int8_t f_keys[] = {11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 23, 24};
    switch (n) {
    case 1:
    case 7: return UI_KEY_HOME;
    case 2: return UI_KEY_INSERT;
    case 3: return UI_KEY_DELETE;
    case 4:
    case 8: return UI_KEY_END;
    case 5: return UI_KEY_PGUP;
    case 6: return UI_KEY_PGDN;
    default: break;
    }
    for (size_t i = 0; i < PLY_COUNT(f_keys); i++) {
        if (f_keys[i] == n) {
            *ch = (uint32_t)i + 1;
            return UI_KEY_F;
        }
    }
    return -1;
}

/* A key given by its character's number (kitty: CSI n;m u, xterm: CSI 27;m;n ~). */
static int
code_by_char(int n, unsigned mods, uint32_t *ch)
{
    *ch = (uint32_t)n;
    switch (n) {
    case 9: return mods & UI_MOD_SHIFT ? UI_KEY_BACKTAB : UI_KEY_TAB;
    case 13: return mods & (UI_MOD_SHIFT | UI_MOD_ALT) ? UI_KEY_NEWLINE : UI_KEY_ENTER;
    case 27: return UI_KEY_ESC;
    case 8:
    case 127: return UI_KEY_BACKSPACE;
    default: return mods & (UI_MOD_ALT | UI_MOD_CTRL) && n > 32 && n < 127 ? UI_KEY_CHAR : -1;
    }
}

/* s[0..n) are the bytes between "ESC [" and the final byte. */
static int
csi_code(const char *s, size_t n, char final, unsigned *mods, uint32_t *ch)
{
    int v[3] = {0, 0, 0}, n_v = 0;
    for (size_t i = 0; i < n && n_v < 3; i++) {
        if (s[i] >= '0' && s[i] <= '9')
            v[n_v] = PLY_MIN(v[n_v] * 10 + (s[i] - '0'), 99999);
        else if (s[i] == ';')
            n_v++;
        else
            return -1;
    }
    *ch = 0;
    *mods |= v[1] > 1 ? (unsigned)(v[1] - 1) & 7U : 0;
    if (final == '~')
        return v[0] == 27 ? code_by_char(v[2], *mods, ch) : code_by_number(v[0], ch);
    if (final == 'u')
        return code_by_char(v[0], *mods, ch);
    if (final >= 'P' && final <= 'S') {
        *ch = (uint32_t)(final - 'P' + 1);
        return UI_KEY_F;
    }
    return code_by_letter(final);
}

/* "ESC [" at k->pos + lead; lead counts an Esc before it, which stands for Alt. */
static enum step
decode_csi(struct ui_keys *k, size_t lead, bool late, struct ui_key *key)
{
    const char *s = k->in.v + k->pos + lead + 2;
    const size_t n = k->in.n - k->pos - lead - 2;
    if (n > 0 && s[0] == '[') { /* the Linux console's function keys */
        if (n < 2)
            return late ? drop(k, lead + 3) : MORE;
        return s[1] >= 'A' && s[1] <= 'E'
                   ? found(k, lead + 4, key, UI_KEY_F, 0, (uint32_t)(s[1] - 'A' + 1))
                   : drop(k, lead + 4);
    }
    size_t i = 0;
    while (i < n && i < CSI_MAX && s[i] >= 0x20 && s[i] <= 0x3F)
        i++;
    if (i == n && i < CSI_MAX)
        return late ? drop(k, lead + 2 + i) : MORE;
    if (i == CSI_MAX || s[i] < 0x40 || s[i] > 0x7E)
        return drop(k, lead + 2 + i);
    const size_t all = lead + 2 + i + 1;
    if (s[i] == '~' && i == strlen(paste_begin) && memcmp(s, paste_begin, i) == 0) {
        k->pasting = true;
        k->paste.n = 0;
        return drop(k, all);
    }
    unsigned mods = lead > 0 ? UI_MOD_ALT : 0;
    uint32_t ch;
    const int code = csi_code(s, i, s[i], &mods, &ch);
    return code < 0 ? drop(k, all) : found(k, all, key, (enum ui_keycode)code, mods, ch);
}

/* "ESC O" at k->pos + lead. */
static enum step
decode_ss3(struct ui_keys *k, size_t lead, bool late, struct ui_key *key)
{
    if (k->in.n - k->pos < lead + 3)
        return late ? drop(k, lead + 2) : MORE;
    const char c = k->in.v[k->pos + lead + 2];
    const unsigned mods = lead > 0 ? UI_MOD_ALT : 0;
    if (c >= 'P' && c <= 'S')
        return found(k, lead + 3, key, UI_KEY_F, mods, (uint32_t)(c - 'P' + 1));
    const int code = code_by_letter(c);
    return code < 0 ? drop(k, lead + 3) : found(k, lead + 3, key, (enum ui_keycode)code, mods, 0);
}

static enum step
decode_alt(struct ui_keys *k, bool late, struct ui_key *key)
{
    const char *s = k->in.v + k->pos + 1;
    const size_t n = k->in.n - k->pos - 1;
    if (s[0] == '\r' || s[0] == '\n')
        return found(k, 2, key, UI_KEY_NEWLINE, UI_MOD_ALT, 0);
    if (s[0] == 0x7F || s[0] == 8)
        return found(k, 2, key, UI_KEY_BACKSPACE, UI_MOD_ALT, 0);
    if ((unsigned char)s[0] < 0x20)
        return found(k, 1, key, UI_KEY_ESC, 0, 0); /* Esc, then a control key of its own */
    uint32_t cp;
    if (ply_utf8_whole(s, n) == 0 && !late)
        return MORE;
    const int len = ply_utf8_decode(s, n, &cp);
    return len < 0 ? drop(k, (size_t)(1 - len))
                   : found(k, 1 + (size_t)len, key, UI_KEY_CHAR, UI_MOD_ALT, cp);
}

static enum step
decode_esc(struct ui_keys *k, double now, struct ui_key *key)
{
    const char *s = k->in.v + k->pos;
    const size_t n = k->in.n - k->pos;
    const bool alone = now - k->fed_ms >= ESC_MS, late = now - k->fed_ms >= REST_MS;
    if (n == 1)
        return alone ? found(k, 1, key, UI_KEY_ESC, 0, 0) : MORE;
    if (s[1] == '[')
        return decode_csi(k, 0, late, key);
    if (s[1] == 'O')
        return decode_ss3(k, 0, late, key);
    if (s[1] != 0x1B)
        return decode_alt(k, late, key);
    if (n >= 3 && s[2] == '[')
        return decode_csi(k, 1, late, key);
    if (n >= 3 && s[2] == 'O')
        return decode_ss3(k, 1, late, key);
    if (n == 2 && !alone)
        return MORE;
    return found(k, 1, key, UI_KEY_ESC, 0, 0);
}

/* ---- plain bytes ----------------------------------------------------------------------- */

static enum step
decode_control(struct ui_keys *k, char c, struct ui_key *key)
{
    switch (c) {
    case '\r': return found(k, 1, key, UI_KEY_ENTER, 0, 0);
    case '\n': return found(k, 1, key, UI_KEY_NEWLINE, 0, 0);
    case '\t': return found(k, 1, key, UI_KEY_TAB, 0, 0);
    case 8:
    case 0x7F: return found(k, 1, key, UI_KEY_BACKSPACE, 0, 0);
    case 0: return drop(k, 1);
    default:
        return found(k, 1, key, UI_KEY_CHAR, UI_MOD_CTRL, (uint32_t)c + (c <= 26 ? 0x60 : 0x40));
    }
}

static bool
is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7F;
}

/* As many characters as stand in a row, or one. */
static enum step
decode_text(struct ui_keys *k, bool late, struct ui_key *key)
{
    k->out.n = 0;
    while (k->pos < k->in.n && !is_control(k->in.v[k->pos]) && !(k->single && k->out.n > 0)) {
        const char *s = k->in.v + k->pos;
        const size_t n = k->in.n - k->pos;
        uint32_t cp;
        if (!late && n < 4 && ply_utf8_whole(s, n) == 0)
            break;
        const int len = ply_utf8_decode(s, n, &cp);
        if (len > 0 && !(cp >= 0x80 && cp < 0xA0))
            ui_buf_append(&k->out, s, (size_t)len);
        k->pos += (size_t)(len > 0 ? len : -len);
    }
    if (k->out.n > 0) {
        *key = (struct ui_key){.code = UI_KEY_TEXT, .text = k->out.v, .n = k->out.n};
        return KEY;
    }
    return k->pos < k->in.n && !is_control(k->in.v[k->pos]) ? MORE : DROPPED;
}

/* ---- paste ----------------------------------------------------------------------------- */

static bool
paste_key(struct ui_keys *k, struct ui_key *key)
{
    struct ply_buf swap = k->out;
    k->out = k->paste;
    k->paste = swap;
    k->paste.n = 0;
    *key = (struct ui_key){.code = UI_KEY_PASTE, .text = ui_buf_str(&k->out), .n = k->out.n};
    return true;
}

static bool
next_pasting(struct ui_keys *k, double now, struct ui_key *key)
{
    const size_t mark = sizeof paste_end - 1;
    const char *s = k->in.v + k->pos;
    const size_t n = k->in.n - k->pos;
    const char *end = n > 0 ? memmem(s, n, paste_end, mark) : NULL;
    size_t take = n;
    if (end) {
        take = (size_t)(end - s);
    } else { /* the end mark may have come in part */
        for (size_t part = PLY_MIN(mark - 1, n); part > 0; part--) {
            if (memcmp(s + n - part, paste_end, part) == 0) {
                take = n - part;
                break;
            }
        }
    }
    ui_buf_append(&k->paste, s, take);
    k->pos += take;
    if (end) {
        k->pos += mark;
        k->pasting = false;
        return paste_key(k, key);
    }
    return k->paste.n > 0 && now - k->fed_ms >= PASTE_MS && paste_key(k, key);
}

/* ---- the interface --------------------------------------------------------------------- */

bool
ui_keys_next(struct ui_keys *k, double now, struct ui_key *key)
{
    const bool late = now - k->fed_ms >= REST_MS;
    for (;;) {
        if (k->pasting)
            return next_pasting(k, now, key);
        if (k->paste.n > 0)
            return paste_key(k, key);
        if (k->pos == k->in.n)
            return false;
        const char c = k->in.v[k->pos];
        const enum step step = c == 0x1B       ? decode_esc(k, now, key)
                               : is_control(c) ? decode_control(k, c, key)
                                               : decode_text(k, late, key);
        if (step != DROPPED)
            return step == KEY;
    }
}

int
ui_keys_timeout(const struct ui_keys *k, double now)
{
    double after;
    if (k->pasting && k->paste.n > 0)
        after = PASTE_MS;
    else if (k->pasting || k->pos == k->in.n)
        return -1;
    else if (k->in.v[k->pos] == 0x1B && now - k->fed_ms < ESC_MS)
        after = ESC_MS;
    else
        after = REST_MS;
    const double left = k->fed_ms + after - now;
    return left <= 0 ? 0 : (int)left + 1;
}

void
ui_keys_fini(struct ui_keys *k)
{
    ply_buf_fini(&k->in);
    ply_buf_fini(&k->out);
    ply_buf_fini(&k->paste);
    *k = (struct ui_keys){0};
}

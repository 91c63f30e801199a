/* SPDX-License-Identifier: MIT
 * Scripts by ranges of code points: coarse, and enough to tell that a question in Japanese was
 * put to an English model. */
#include "app/script.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/num.h"
#include "engine/base/utf8.h"

enum script {
    SCRIPT_NONE,
    SCRIPT_LATIN,
    SCRIPT_GREEK,
    SCRIPT_CYRILLIC,
    SCRIPT_HEBREW,
    SCRIPT_ARABIC,
    SCRIPT_DEVANAGARI,
    SCRIPT_THAI,
    SCRIPT_HANGUL,
    SCRIPT_JAPANESE,
    SCRIPT_HAN,
    SCRIPT_COUNT,
};

struct range {
    uint32_t first, last;
    enum script script;
};

static const struct range ranges[] = {
    {'A', 'Z', SCRIPT_LATIN},          {'a', 'z', SCRIPT_LATIN},
    {0xc0, 0x24f, SCRIPT_LATIN},       {0x370, 0x3ff, SCRIPT_GREEK},
    {0x400, 0x52f, SCRIPT_CYRILLIC},   {0x590, 0x5ff, SCRIPT_HEBREW},
    {0x600, 0x6ff, SCRIPT_ARABIC},     {0x750, 0x77f, SCRIPT_ARABIC},
    {0x900, 0x97f, SCRIPT_DEVANAGARI}, {0xe00, 0xe7f, SCRIPT_THAI},
    {0x1100, 0x11ff, SCRIPT_HANGUL},   {0x1e00, 0x1eff, SCRIPT_LATIN},
    {0x1f00, 0x1fff, SCRIPT_GREEK},    {0x3040, 0x30ff, SCRIPT_JAPANESE},
    {0x3400, 0x4dbf, SCRIPT_HAN},      {0x4e00, 0x9fff, SCRIPT_HAN},
    {0xac00, 0xd7af, SCRIPT_HANGUL},   {0xf900, 0xfaff, SCRIPT_HAN},
    {0x20000, 0x3134f, SCRIPT_HAN},
};

struct script_facts {
    const char *name;
    const char *languages; /* ISO 639-1 codes written in it; "*": every other language */
};

static const struct script_facts facts[SCRIPT_COUNT] = {
    [SCRIPT_NONE] = {"", "*"},
    [SCRIPT_LATIN] = {"Latin", "*"},
    [SCRIPT_GREEK] = {"Greek", "el"},
    [SCRIPT_CYRILLIC] = {"Cyrillic", "ru uk be bg sr mk kk ky mn tg"},
    [SCRIPT_HEBREW] = {"Hebrew", "he yi"},
    [SCRIPT_ARABIC] = {"Arabic", "ar fa ur ps ug sd"},
    [SCRIPT_DEVANAGARI] = {"Devanagari", "hi mr ne sa"},
    [SCRIPT_THAI] = {"Thai", "th"},
    [SCRIPT_HANGUL] = {"Korean", "ko"},
    [SCRIPT_JAPANESE] = {"Japanese", "ja"},
    [SCRIPT_HAN] = {"Chinese", "zh ja"},
};

static enum script
script_of(uint32_t cp)
{
    for (size_t i = 0; i < PLY_COUNT(ranges); i++) {
        if (cp >= ranges[i].first && cp <= ranges[i].last)
            return ranges[i].script;
    }
    return SCRIPT_NONE;
}

/* The script of most letters; Han among kana is Japanese. */
static enum script
main_script(const char *text, size_t len)
{
    size_t n[SCRIPT_COUNT] = {0};
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        i += (size_t)abs(ply_utf8_decode(text + i, len - i, &cp));
        n[script_of(cp)]++;
    }
    if (n[SCRIPT_JAPANESE] > 0) {
        n[SCRIPT_JAPANESE] += n[SCRIPT_HAN];
        n[SCRIPT_HAN] = 0;
    }
    enum script most = SCRIPT_NONE;
    for (enum script s = SCRIPT_NONE + 1; s < SCRIPT_COUNT; s++) {
        if (n[s] > (most == SCRIPT_NONE ? 0 : n[most]))
            most = s;
    }
    return most;
}

bool
script_notice(const char *text, size_t len, const char *languages, char *out, size_t size)
{
    const struct script_facts *f = &facts[main_script(text, len)];
    if (!*languages || *f->languages == '*')
        return false;
    for (const char *w = f->languages; *w;) {
        const size_t n = strcspn(w, " ");
        char code[4] = {0};
        memcpy(code, w, PLY_MIN(n, sizeof(code) - 1));
        /* "ja", "ja-JP" and "multilingual" alike */
        for (const char *l = languages; *l;) {
            const size_t m = strcspn(l, ", ");
            if (strncasecmp(l, code, strlen(code)) == 0 || strncasecmp(l, "mul", 3) == 0)
                return false;
            l += m + strspn(l + m, ", ");
        }
        w += n + strspn(w + n, " ");
    }
    snprintf(out, size,
             "this model lists the languages: %s; for %s text another one may serve better "
             "(-m FILE)",
             languages, f->name);
    return true;
}

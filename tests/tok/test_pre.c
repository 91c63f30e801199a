/* SPDX-License-Identifier: MIT
 * Pre-tokenizers: every expected split was computed with an independent implementation of the
 * models' regular expressions (Hugging Face tokenizers 0.23, Oniguruma). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/num.h"
#include "engine/tok_pre.h"
#include "tests/tok/tokutil.h"

/* The lengths in bytes of a text's words. */
static const char *
split(const char *name, const char *text, size_t len)
{
    static char out[4096];
    enum ply_pre_kind kind;
    struct ply_pre p;
    size_t start, end, n = 0;
    assert_true(ply_pre_find(name, strlen(name), &kind));
    out[0] = '\0';
    ply_pre_init(&p, kind, text, len);
    while (ply_pre_next(&p, &start, &end))
        n += (size_t)snprintf(out + n, sizeof(out) - n, n ? " %zu" : "%zu", end - start);
    return out;
}

static const char *const kinds[] = {"smollm", "gpt-2", "llama-bpe", "qwen2", "default"};

static const struct {
    const char *text, *words[PLY_COUNT(kinds)];
} table[] = {
    {"Hello world", {"5 6", "5 6", "5 6", "5 6", "5 6"}},
    {"we'll go", {"2 3 3", "2 3 3", "2 3 3", "2 3 3", "2 1 2 3"}},
    {"we'LL go", {"2 1 2 3", "2 1 2 3", "2 3 3", "2 3 3", "2 1 2 3"}},
    {"I'm he'S they'RE it'd",
     {"1 2 3 1 1 5 1 2 3 2", "1 2 3 1 1 5 1 2 3 2", "1 2 3 2 5 3 3 2", "1 2 3 2 5 3 3 2",
      "1 1 1 3 1 1 5 1 2 3 1 1"}},
    {"x'\xc5\xbf", {"1 1 2", "1 1 2", "1 3", "1 3", "1 1 2"}},
    {"a'\xc5\xbf"
     "b",
     {"1 1 3", "1 1 3", "1 3 1", "1 3 1", "1 1 3"}},
    {"x\xe2\x80\x83y", {"1 3 1", "1 3 1", "1 4", "1 4", "1 3 1"}},
    {"x \xe2\x80\x83 y", {"1 4 2", "1 4 2", "1 4 2", "1 4 2", "1 4 2"}},
    {"x\xe2\x80\x89y", {"1 3 1", "1 3 1", "1 4", "1 4", "1 3 1"}},
    {"a\xc2\xa0"
     "b",
     {"1 2 1", "1 2 1", "1 3", "1 3", "1 2 1"}},
    {"a\xe3\x80\x80"
     "b",
     {"1 3 1", "1 3 1", "1 4", "1 4", "1 3 1"}},
    {"a \xc2\xa0 b", {"1 3 2", "1 3 2", "1 3 2", "1 3 2", "1 3 2"}},
    {"\xd9\xa3\xd9\xa4\xd9\xa5", {"2 2 2", "6", "6", "2 2 2", "6"}},
    {"\xc2\xbd cup", {"2 4", "2 4", "2 4", "2 4", "2 4"}},
    {"x\xc2\xb2", {"1 2", "1 2", "1 2", "1 2", "1 2"}},
    {"\xc3\xa9 e\xcc\x81", {"2 2 2", "2 2 2", "2 2 2", "2 2 2", "2 2 2"}},
    {"\xe2\x85\xa7 \xc7\x85 \xc2\xaa", {"3 3 3", "3 3 3", "3 3 3", "3 3 3", "3 3 3"}},
    {"  two  spaces   here ",
     {"1 4 1 7 2 5 1", "1 4 1 7 2 5 1", "1 4 1 7 2 5 1", "1 4 1 7 2 5 1", "1 4 1 7 2 5 1"}},
    {"\t\tif x:\n\t\t\treturn 7",
     {"1 1 2 2 1 3 1 6 1 1", "1 1 2 2 1 3 1 6 2", "1 3 2 2 2 7 1 1", "1 3 2 2 2 7 1 1",
      "1 1 2 2 1 3 1 6 1 1"}},
    {"1\n2\n\n3\n\n\n4",
     {"1 1 1 2 1 3 1", "1 1 1 1 1 1 2 1 1", "1 1 1 2 1 3 1", "1 1 1 2 1 3 1", "1 1 1 1 1 1 2 1 1"}},
    {"a\r\nb\r\n\r\nc",
     {"1 1 1 1 3 1 1", "1 1 1 1 3 1 1", "1 2 1 4 1", "1 2 1 4 1", "1 1 1 1 3 1 1"}},
    {"line \n  \n next", {"4 5 5", "4 5 5", "4 5 5", "4 5 5", "4 5 5"}},
    {"end   ", {"3 3", "3 3", "3 3", "3 3", "3 3"}},
    {"   ", {"3", "3", "3", "3", "3"}},
    {"\n\n", {"2", "2", "2", "2", "2"}},
    {"\xc2\x85x\xe1\x9a\x80y\xe2\x80\xa8z\xe2\x80\xaf\xe2\x81\x9f",
     {"2 1 3 1 3 1 6", "2 1 3 1 3 1 6", "3 4 4 6", "3 4 4 6", "2 1 3 1 3 1 6"}},
    {"12345 678 9",
     {"1 1 1 1 1 1 1 1 1 1 1", "5 4 2", "3 2 1 3 1 1", "1 1 1 1 1 1 1 1 1 1 1", "3 2 1 3 1 1"}},
    {"v1.2.3-rc4",
     {"1 1 1 1 1 1 1 2 1", "1 1 1 1 1 1 1 2 1", "1 1 1 1 1 1 3 1", "1 1 1 1 1 1 3 1",
      "1 1 1 1 1 1 1 2 1"}},
    {"$100 + 5% = x^2 <y> |z| ~q",
     {"1 1 1 1 2 1 1 1 2 2 1 1 2 1 1 2 1 1 2 1", "1 3 2 2 1 2 2 1 1 2 1 1 2 1 1 2 1",
      "1 3 2 1 1 1 2 2 1 1 2 1 1 2 1 1 2 1", "1 1 1 1 2 1 1 1 2 2 1 1 2 1 1 2 1 1 2 1",
      "1 3 1 1 1 1 1 1 1 2 1 1 1 1 1 1 1 1 1 1 1 1 1"}},
    {"...!?\n\nNext", {"5 1 1 4", "5 1 1 4", "7 4", "7 4", "5 1 1 4"}},
    {"(a) [b] {c} #d @e",
     {"1 1 1 2 1 1 2 1 1 2 1 2 1", "1 1 1 2 1 1 2 1 1 2 1 2 1", "2 1 2 1 1 2 1 1 2 1 2 1",
      "2 1 2 1 1 2 1 1 2 1 2 1", "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"}},
    {"3\xd9\xa6"
     "45678",
     {"1 2 1 1 1 1 1", "8", "4 3 1", "1 2 1 1 1 1 1", "3 3 2"}},
    {"don't 'quoted' ''x'",
     {"3 2 2 6 1 3 1 1", "3 2 2 6 1 3 1 1", "3 2 2 6 1 3 1 1", "3 2 2 6 1 3 1 1",
      "3 1 1 1 1 6 1 1 2 1 1"}},
    {"\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c\xef\xbc\x81",
     {"6 3 6 3", "6 3 6 3", "6 9 3", "6 9 3", "6 3 6 3"}},
    {"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac \xe2\x9d\xa4\xef\xb8\x8f",
     {"11 7", "11 7", "11 7", "11 7", "11 7"}},
    {"_a__b \xe2\x80\xbf"
     "c",
     {"1 1 2 1 4 1", "1 1 2 1 4 1", "2 2 1 4 1", "2 2 1 4 1", "1 1 2 1 1 3 1"}},
    {"a\xe2\x80\x8b"
     "b",
     {"1 3 1", "1 3 1", "1 4", "1 4", "1 3 1"}},
    {"x\x1cy", {"1 1 1", "1 1 1", "1 2", "1 2", "1 1 1"}},
    {"\xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8\xe0\xa5\x8d\xe0\xa4\xa6\xe0\xa5\x80 "
     "\xe0\xb9\x84\xe0\xb8\x97\xe0\xb8\xa2",
     {"3 3 3 3 3 3 10", "3 3 3 3 3 3 10", "3 6 6 3 10", "3 6 6 3 10", "3 3 3 3 3 3 10"}},
    {"if(a){\n    b();\n}\n",
     {"2 1 1 2 4 2 3 1 1 1", "2 1 1 2 4 2 3 1 1 1", "2 2 3 3 2 4 2", "2 2 3 3 2 4 2",
      "2 1 1 2 4 2 3 1 1 1"}},
    {"'", {"1", "1", "1", "1", "1"}},
    {"' s", {"1 2", "1 2", "1 2", "1 2", "1 2"}},
    {"12 \xc2\xb2\xc2\xb3\xc2\xb9 1",
     {"1 1 1 2 2 2 1 1", "2 7 2", "2 1 6 1 1", "1 1 1 2 2 2 1 1", "2 1 6 1 1"}},
};

/* B16, B17, B18 and their kinds. */
static void
splits_are_those_of_the_expressions(void **state)
{
    for (size_t i = 0; i < PLY_COUNT(table); i++) {
        const char *text = table[i].text;
        for (size_t k = 0; k < PLY_COUNT(kinds); k++) {
            const char *got = split(kinds[k], text, strlen(text));
            if (strcmp(got, table[i].words[k]) != 0)
                fail_msg("%s: \"%s\" is cut into %s, not %s", kinds[k], text, got,
                         table[i].words[k]);
        }
    }
}

/* Words cover any bytes in order, without gaps, and none is empty. */
static void
words_cover_the_text(void **state)
{
    static const char *const names[] = {"smollm", "gpt-2",     "llama-bpe", "qwen2",
                                        "refact", "starcoder", "default",   "llama3"};
    uint64_t seed = 3;
    for (int round = 0; round < 4000; round++) {
        char text[160];
        enum ply_pre_kind kind;
        struct ply_pre p;
        const size_t n = tok_random_text(&seed, round % 2, text, sizeof(text));
        const char *name = names[(size_t)round / 2 % PLY_COUNT(names)];
        size_t at = 0, start, end;
        assert_true(ply_pre_find(name, strlen(name), &kind));
        ply_pre_init(&p, kind, text, n);
        while (ply_pre_next(&p, &start, &end)) {
            assert_int_equal(start, at);
            assert_true(end > start && end <= n);
            at = end;
        }
        assert_int_equal(at, n);
    }
}

/* An exact copy: no read past the end (ASan watches). */
static void
ends_in_the_middle_of_everything(void **state)
{
    static const char *const ends[] = {"'",      "'r", "'l", " ",     "a ", "\xe2", "\xe2\x80",
                                       "x'\xc5", "12", "\r", " \xc2", "$",  "a\n"};
    static const char *const names[] = {"smollm", "gpt-2", "llama-bpe", "qwen2", "default"};
    for (size_t i = 0; i < PLY_COUNT(ends) * PLY_COUNT(names); i++) {
        const char *text = ends[i / PLY_COUNT(names)];
        const size_t n = strlen(text);
        char *copy = malloc(n);
        memcpy(copy, text, n);
        split(names[i % PLY_COUNT(names)], copy, n);
        free(copy);
    }
}

static void
unknown_names_are_not_found(void **state)
{
    enum ply_pre_kind kind;
    assert_false(ply_pre_find("smolxx", 6, &kind)); /* B15 */
    assert_false(ply_pre_find("smoll", 5, &kind));
    assert_false(ply_pre_find("", 0, &kind));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_are_those_of_the_expressions),
        cmocka_unit_test(words_cover_the_text),
        cmocka_unit_test(ends_in_the_middle_of_everything),
        cmocka_unit_test(unknown_names_are_not_found),
    };
    return cmocka_run_group_tests_name("pre", tests, NULL, NULL);
}

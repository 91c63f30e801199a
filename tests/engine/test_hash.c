/* SPDX-License-Identifier: MIT
 * One number per tiny model and KV type, recorded in tests/golden/logits.hash: the hash of all
 * logits of 150 ids. A number that changes is a change of the arithmetic: it takes a new
 * PLY_NUMERICS_VERSION and a reason, unless the model's generator changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/base/num.h"
#include "tests/engine/engutil.h"
#include "tests/engine/goldutil.h"

#define N_IDS 150u

static const char *const models[] = {
    "llama-q4_0-bpe-chatml",      "llama-q4_1-bpe-chatml",        "llama-q5_0-bpe-chatml",
    "llama-q5_1-bpe-chatml",      "llama-q8_0-bpe-chatml",        "llama-q4_k-bpe-chatml",
    "llama-q5_k-bpe-chatml",      "llama-q6_k-bpe-chatml",        "gemma3-q8_0-spm-gemma",
    "gemma3-q4_1-spm-gemma",      "gemma3-q4_k_m-spm-gemma",      "llama-q8_0-bpe-llama3",
    "llama-q4_1-bpe-chatml-bias", "llama-q4_0-bpe-chatml-linear", "gemma3-q8_0-spm-gemma-linear",
    "llama-q4_1-bpe-chatml-smol",
};

static void
check(const char *name, enum ply_kv_type kv)
{
    int32_t ids[N_IDS];
    struct ply_engine *e = open_tiny(name, (struct ply_engine_opts){.kv_type = kv});
    fill_ids(e, ids, N_IDS, 1);
    gold_check_hash(name, kv == PLY_KV_F16 ? "f16" : "q8_0", cold_hash(e, ids, N_IDS));
    ply_engine_close(&e);
}

static void
logits_are_the_recorded_ones(void **unused)
{
    for (size_t m = 0; m < PLY_COUNT(models); m++) {
        check(models[m], PLY_KV_F16);
        check(models[m], PLY_KV_Q8_0);
    }
}

static void
they_belong_to_this_numerics_version(void **unused)
{
    assert_int_equal(PLY_NUMERICS_VERSION, 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_the_recorded_ones),
        cmocka_unit_test(they_belong_to_this_numerics_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

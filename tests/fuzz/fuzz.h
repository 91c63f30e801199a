/* SPDX-License-Identifier: MIT
 * What a fuzz target and whoever drives it agree on; libFuzzer's own entry point. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

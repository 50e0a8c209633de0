/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fuzz.h - what every fuzz target shares.
 *
 * A target is one LLVMFuzzerTestOneInput.  It runs under libFuzzer,
 *     clang -g -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -I. \
 *         -o fuzz_cpuinfo tests/fuzz/fuzz_cpuinfo.c \
 *         $(find common/base common/energy common/sensors -name \*.c)
 *     ./fuzz_cpuinfo tests/fuzz/corpus/cpuinfo
 * and, linked with standalone.c, as a test in `make check`.
 */
#ifndef JOULE_TESTS_FUZZ_H
#define JOULE_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/error.h"

/* Always returns 0; what must not happen ends in abort(). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_MUST(condition)                                                   \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
            abort();                                                           \
        }                                                                      \
    } while (0)

/* A sentence is there, ends, and has nothing that breaks a log line. */
static inline void fuzz_check_sentence(const struct joule_error *err)
{
    size_t i = 0;

    for (; i < sizeof(err->text) && err->text[i]; i++)
        FUZZ_MUST((unsigned char)err->text[i] >= 0x20 && err->text[i] != 0x7F);
    FUZZ_MUST(i > 0 && i < sizeof(err->text));
}

#endif

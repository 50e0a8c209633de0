/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * words.h - copies of plain data in 64-bit words, from and to memory that several
 * processes have mapped.
 *
 * The words in the shared memory are atomic, so that a copy which the writer
 * overtakes is a stale copy and not a data race.  The order of a copy against
 * others is the caller's: it has the fences.
 */
#ifndef JOULE_BASE_WORDS_H
#define JOULE_BASE_WORDS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void joule_words_load(void *to, const _Atomic uint64_t *from,
                                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t word = atomic_load_explicit(&from[i], memory_order_relaxed);

        memcpy((char *)to + i * sizeof(word), &word, sizeof(word));
    }
}

static inline void joule_words_store(_Atomic uint64_t *to, const void *from,
                                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t word;

        memcpy(&word, (const char *)from + i * sizeof(word), sizeof(word));
        atomic_store_explicit(&to[i], word, memory_order_relaxed);
    }
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hash.h - FNV-1a in 64 bits (Fowler, Noll, Vo): numbers that tell things apart
 * where no secrecy is needed.
 *
 *     hash = joule_hash_u64(JOULE_HASH_BEGIN, 7);
 *     hash = joule_hash_text(hash, "Node");
 */
#ifndef JOULE_BASE_HASH_H
#define JOULE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JOULE_HASH_BEGIN UINT64_C(0xcbf29ce484222325)
#define JOULE_HASH_PRIME UINT64_C(0x100000001b3)

static inline uint64_t joule_hash_u64(uint64_t hash, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        hash ^= (value >> (8 * i)) & 0xff;
        hash *= JOULE_HASH_PRIME;
    }
    return hash;
}

/* The end of the text counts: "ab", "c" is not "a", "bc". */
static inline uint64_t joule_hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = joule_hash_u64(hash, (unsigned char)*text);
    return joule_hash_u64(hash, 0);
}

/* Over the 64-bit words of [bytes] bytes in place of single bytes: an eighth of the
 * time, and enough to see that a copy is not whole. */
static inline uint64_t joule_hash_words(const void *p, size_t bytes)
{
    uint64_t hash = JOULE_HASH_BEGIN, word;

    for (size_t i = 0; i < bytes; i += sizeof(word)) {
        memcpy(&word, (const char *)p + i, sizeof(word));
        hash = (hash ^ word) * JOULE_HASH_PRIME;
    }
    return hash;
}

#endif

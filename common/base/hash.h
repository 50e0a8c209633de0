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

#include <stdint.h>

#define JOULE_HASH_BEGIN UINT64_C(0xcbf29ce484222325)

static inline uint64_t joule_hash_u64(uint64_t hash, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        hash ^= (value >> (8 * i)) & 0xff;
        hash *= UINT64_C(0x100000001b3);
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

#endif

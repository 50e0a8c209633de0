/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * little.h - numbers as they lie in HDF5 files: low byte first.
 */
#ifndef JOULE_STORE_LITTLE_H
#define JOULE_STORE_LITTLE_H

#include <stddef.h>
#include <stdint.h>

/* An address that is none. */
#define JOULE_HDF_NOWHERE UINT64_MAX

/* Up to 8 bytes. */
static inline uint64_t joule_little_get(const void *at, size_t size)
{
    const unsigned char *byte = at;
    uint64_t value = 0;

    while (size-- > 0)
        value = value << 8 | byte[size];
    return value;
}

static inline void joule_little_put(void *at, uint64_t value, size_t size)
{
    unsigned char *byte = at;

    for (size_t i = 0; i < size; i++)
        byte[i] = (unsigned char)(value >> 8 * i);
}

#endif

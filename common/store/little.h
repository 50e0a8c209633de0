/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * little.h - numbers as they lie in HDF5 files: low byte first; and the sizes
 * of what they lie in.
 */
#ifndef JOULE_STORE_LITTLE_H
#define JOULE_STORE_LITTLE_H

#include <stddef.h>
#include <stdint.h>

/* An address that is none. */
#define JOULE_HDF_NOWHERE UINT64_MAX

#define JOULE_HDF_TREE_HEAD  24 /* of a node of a B-tree of version 1 */
#define JOULE_HDF_LEAF_HEAD  8  /* of a leaf of names */
#define JOULE_HDF_LEAF_ENTRY 40 /* a name in it */
#define JOULE_HDF_HEAP_HEAD  32 /* of a heap of names */
#define JOULE_HDF_CHUNK_KEY  24 /* of a chunk of one dimension in its tree */

/* Filters, as the HDF Group has numbered them. */
#define JOULE_HDF_DEFLATE    1
#define JOULE_HDF_SHUFFLE    2
#define JOULE_HDF_FLETCHER32 3

/* Structures begin at multiples of 8. */
static inline size_t joule_hdf_padded(size_t size)
{
    return (size + 7) / 8 * 8;
}

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

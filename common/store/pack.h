/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pack.h - what HDF5's shuffle and deflate filters do to a chunk.
 *
 * The writer compresses a chunk once, when it is full, and hands it to HDF5
 * as it is to lie in the file: so it is not compressed anew at each flush.
 */
#ifndef JOULE_STORE_PACK_H
#define JOULE_STORE_PACK_H

#include <stdbool.h>
#include <stddef.h>

struct joule_pack {
    int level;    /* 0: not compressed; 1 to 9 as zlib's */
    bool shuffle; /* first bytes of all rows first, then the second ... */
};

/* The most that size bytes may become. */
size_t joule_pack_bound(size_t size);

/*
 * Pack [size] bytes, rows of [row] bytes each, into out[out_size]; scratch
 * has [size] bytes.  Returns the packed size, or 0 if it would not be smaller
 * or the level is 0.  Thread rule: none, it has no state.
 */
size_t joule_pack(const struct joule_pack *pack, const void *rows, size_t size,
                  size_t row, void *scratch, void *out, size_t out_size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pack.h - what HDF5's filters do to a chunk: shuffle, deflate, and a checksum
 * behind them (fletcher.h), by which a merge knows that it is sound without
 * unpacking it.
 *
 * The writer compresses a chunk once, when it is full, and hands it to HDF5
 * as it is to lie in the file: so it is not compressed anew at each flush.
 */
#ifndef JOULE_STORE_PACK_H
#define JOULE_STORE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct joule_pack {
    int level;    /* 0: not compressed; 1 to 9 as zlib's */
    bool shuffle; /* first bytes of all rows first, then the second ... */
};

/* Masks of filters that are left out: all of them. */
uint32_t joule_pack_none(const struct joule_pack *pack);

/* The most that size bytes may become. */
size_t joule_pack_bound(size_t size);

/*
 * Pack [size] bytes, rows of [row] bytes each, into out[joule_pack_bound];
 * scratch has [size] bytes.  Returns the packed size, with the filters that
 * were left out in *ret_mask: rows that deflate would not make smaller have
 * the checksum alone.  0 if the level is 0.  Thread rule: none, it has no
 * state.
 */
size_t joule_pack(const struct joule_pack *pack, const void *rows, size_t size,
                  size_t row, void *scratch, void *out, uint32_t *ret_mask);

#endif

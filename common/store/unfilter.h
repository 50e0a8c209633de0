/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unfilter.h - take the filters of HDF5 off a chunk: deflate, shuffle and
 * fletcher32, in the order of a file's pipeline.
 *
 * libhdf5 can do this itself, at several microseconds a chunk; the chunks of
 * Slurm's plugin hold ten rows.  The formats are in the HDF5 File Format
 * Specification 3.0, IV.A.2.l, RFC 1950 and RFC 1951.
 *
 * One thread at a time.
 */
#ifndef JOULE_STORE_UNFILTER_H
#define JOULE_STORE_UNFILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOULE_FILTERS_MAX 4

enum joule_filter_kind {
    JOULE_FILTER_DEFLATE,
    JOULE_FILTER_SHUFFLE,
    JOULE_FILTER_FLETCHER32,
};

struct joule_filter {
    uint8_t kind;  /* enum joule_filter_kind */
    uint8_t level; /* of deflate */
    uint16_t spare;
    uint32_t element; /* shuffle: bytes of what was shuffled */
};

/* What was written first stands first. */
struct joule_pipeline {
    uint32_t count;
    struct joule_filter filter[JOULE_FILTERS_MAX];
};

/* The filter that a file has by this number, with the first of its values (0:
 * there is none).  -1: it is none of these, or the value is none of its. */
int joule_filter_known(unsigned number, uint32_t value,
                       struct joule_filter *ret);

struct joule_unfilter;

/* For chunks of [raw] bytes when nothing is on them.  NULL: ENOMEM. */
struct joule_unfilter *joule_unfilter_create(const struct joule_pipeline *p,
                                             size_t raw);
void joule_unfilter_destroy(struct joule_unfilter *u);

/*
 * Turn the [len] bytes of [stored] into the raw chunk [out].  Bit i of [mask]:
 * filter i was left out.  0, or -1 with EBADMSG if it is not what the filters
 * made, or does not come to [raw] bytes, or ENOMEM; [out] is then unspecified.
 */
int joule_unfilter(struct joule_unfilter *u, uint32_t mask, const void *stored,
                   size_t len, void *out);

/*
 * Whether the chunk is sound as it is stored: its outermost checksum fits.
 * That is fletcher32 where there is one: a pass over the stored bytes, which
 * finds every flipped bit, and everything else but for one case in 2^32 (and 16
 * bits of zeros that became ones, or the other way round).  Where there is
 * deflate alone it is that of the rows (Adler-32), for which they are unpacked
 * and counted; blocks that deflate has stored without packing are summed up as
 * they lie.  A chunk without filters can only have the wrong size.  -1 with
 * EBADMSG.
 */
int joule_unfilter_check(struct joule_unfilter *u, uint32_t mask,
                         const void *stored, size_t len);

/* Whether a chunk of [len] bytes is sound without a look at it: nothing on it
 * is packed or has a checksum. */
bool joule_unfilter_is_plain(const struct joule_unfilter *u, uint32_t mask,
                             size_t len);

/* The most that a chunk of [raw] bytes may take when stored. */
size_t joule_unfilter_bound(size_t raw);

#endif

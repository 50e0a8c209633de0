/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fletcher.h - the checksum of HDF5's filter 3 ("fletcher32").
 *
 * Fletcher's sums (RFC 1146, A) over words of 16 bits, the byte that stands
 * first being the high one; a last byte without a partner is a high one.  Sums
 * are folded, not reduced: 0xFFFF where only zeros would give 0.  The filter
 * appends it to the chunk, low byte first (HDF5 File Format Specification 3.0,
 * IV.A.2.l).
 */
#ifndef JOULE_STORE_FLETCHER_H
#define JOULE_STORE_FLETCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the filter adds to a chunk. */
#define JOULE_FLETCHER_SIZE 4

uint32_t joule_fletcher32(const void *data, size_t len);

/* Append it to data[len], which has room for it. */
void joule_fletcher_put(unsigned char *data, size_t len);

/* Whether the last four of data[len] are that of what is before them. */
bool joule_fletcher_check(const unsigned char *data, size_t len);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * typeform.h - types as they lie in HDF5 files: what who reads them
 * (plaintype.h) and who writes them (typeencode.h) have in common (HDF5 File
 * Format Specification 3.0, IV.A.2.d).
 */
#ifndef JOULE_STORE_TYPEFORM_H
#define JOULE_STORE_TYPEFORM_H

#include <stddef.h>

/* Classes. */
#define JOULE_HDF_INTEGER  0
#define JOULE_HDF_REAL     1
#define JOULE_HDF_STRING   3
#define JOULE_HDF_OPAQUE   5
#define JOULE_HDF_COMPOUND 6
#define JOULE_HDF_ARRAY    10

/* In front of all: class and version, bits, bytes of a value. */
#define JOULE_HDF_TYPE_HEAD 8

/* Of the bits: of numbers; of integers; of real numbers, whose mantissa's first
 * one is not stored. */
#define JOULE_HDF_BIT_BIG     0x01
#define JOULE_HDF_BIT_SIGNED  0x08
#define JOULE_HDF_BIT_IMPLIED 0x20

/* Of a member of a compound, behind its name: offset; in version 1, an array's
 * dimensions (of which there are none), their order and lengths. */
#define JOULE_HDF_MEMBER_OFFSET     4
#define JOULE_HDF_MEMBER_DIMENSIONS 28

/* Behind the head of a real number: offset, bits, where exponent and mantissa
 * are and how long, bias. */
#define JOULE_HDF_REAL_SIZE 12

/* Those of IEEE 754's format of 4 or [size] 8 bytes. */
static inline const unsigned char *joule_hdf_ieee(size_t size)
{
    static const unsigned char f32[JOULE_HDF_REAL_SIZE] = {
        0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0};
    static const unsigned char f64[JOULE_HDF_REAL_SIZE] = {
        0, 0, 64, 0, 52, 11, 0, 52, 0xff, 0x03, 0, 0};

    return size == 8 ? f64 : f32;
}

#endif

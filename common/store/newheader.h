/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * newheader.h - object headers of HDF5 files, and what a file begins with, in
 * the oldest format of each, which every libhdf5 reads (HDF5 File Format
 * Specification 3.0, II.A, IV.A.1.a, IV.A.2).
 *
 * One thread at a time.
 */
#ifndef JOULE_STORE_NEWHEADER_H
#define JOULE_STORE_NEWHEADER_H

#include <stddef.h>
#include <stdint.h>

enum joule_message {
    JOULE_MESSAGE_SPACE = 0x0001,
    JOULE_MESSAGE_TYPE = 0x0003,
    JOULE_MESSAGE_FILL = 0x0005,
    JOULE_MESSAGE_LAYOUT = 0x0008,
    JOULE_MESSAGE_FILTERS = 0x000B,
    JOULE_MESSAGE_ATTRIBUTE = 0x000C,
    JOULE_MESSAGE_MEMBERS = 0x0011, /* "symbol table" */
};

/* The largest message, and header. */
#define JOULE_MESSAGE_MAX ((size_t)65528)
#define JOULE_HEADER_MAX  ((size_t)4 << 20)

/* A header in the making; begins with all zeros. */
struct joule_header {
    unsigned char *bytes;
    size_t used, room;
    unsigned messages;
};

/* Room for a message of [size] bytes, zeros, good until the next message.
 * NULL: E2BIG, ENOMEM. */
unsigned char *joule_header_add(struct joule_header *header,
                                enum joule_message message, size_t size);

/* A type as it stands in a file. */
struct joule_type_bytes {
    const unsigned char *bytes;
    size_t size;
};

/* An attribute of [elements] (0: a scalar) and [size] bytes.  -1 as above. */
int joule_header_attribute(struct joule_header *header, const char *name,
                           struct joule_type_bytes type, uint32_t elements,
                           const void *data, size_t size);

/* The messages of another one, but the first [skip].  -1 as above. */
int joule_header_append(struct joule_header *header,
                        const struct joule_header *from, unsigned skip);

/* The value of the attribute [name], of 8 bytes; NULL: there is none. */
unsigned char *joule_header_u64(struct joule_header *header, const char *name);

/* It is complete: [bytes], [used] of them, can be put into a file. */
void joule_header_seal(struct joule_header *header);

void joule_header_free(struct joule_header *header);

/* How large the nodes are that hold the names of groups. */
struct joule_names_shape {
    unsigned leaf; /* names in a leaf: even, at most 131070 */
    unsigned node; /* children of a node of the tree above: likewise */
};

/* A file begins with this many bytes, which tell its end and the header of its
 * outermost group. */
#define JOULE_SUPERBLOCK_SIZE 96
void joule_superblock(unsigned char ret[JOULE_SUPERBLOCK_SIZE], uint64_t end,
                      uint64_t root, const struct joule_names_shape *shape);

#endif

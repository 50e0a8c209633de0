/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object.h - write the objects of an HDF5 file: object headers and groups, in
 * the oldest format of each, which every libhdf5 reads (HDF5 File Format
 * Specification 3.0, III.B to III.D, IV.A.1.a, IV.A.2).
 *
 * libhdf5 takes some hundred thousand instructions to make a node's group with
 * its two dozen attributes; a large job has thousands of them.
 *
 * One thread at a time.
 */
#ifndef JOULE_STORE_OBJECT_H
#define JOULE_STORE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/store/spool.h"

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

/* What libhdf5 encodes of the type of an attribute. */
struct joule_type_bytes {
    const unsigned char *bytes;
    size_t size;
};

/* An attribute of [elements] (0: a scalar) and [size] bytes.  -1 as above. */
int joule_header_attribute(struct joule_header *header, const char *name,
                           struct joule_type_bytes type, uint32_t elements,
                           const void *data, size_t size);

/* Write it and begin another; where it is. */
uint64_t joule_header_write(struct joule_header *header,
                            struct joule_spool *spool);

void joule_header_free(struct joule_header *header);

struct joule_member {
    char *name;
    uint64_t at; /* its object header */
};

/* What is in a group: names, in order; begins with all zeros. */
struct joule_members {
    struct joule_member *member;
    size_t count;
};

bool joule_members_have(const struct joule_members *members, const char *name);

/* -1: EEXIST, ENOMEM. */
int joule_members_add(struct joule_members *members, const char *name,
                      uint64_t at);

/*
 * Write the members and, with the messages that are in it, the header of their
 * group; begin another.  Where it is in *ret_at; -1: ENOMEM, E2BIG.
 */
int joule_group_write(struct joule_members *members,
                      struct joule_header *header, struct joule_spool *spool,
                      uint64_t *ret_at);

void joule_members_free(struct joule_members *members);

/* A file begins with this many bytes, which tell its end and the header of its
 * outermost group. */
#define JOULE_SUPERBLOCK_SIZE 96
void joule_superblock(unsigned char ret[JOULE_SUPERBLOCK_SIZE], uint64_t end,
                      uint64_t root);

#endif

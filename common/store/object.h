/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object.h - write the objects of an HDF5 file one behind the other: object
 * headers (newheader.h) and groups, in the oldest format, which every libhdf5
 * reads (HDF5 File Format Specification 3.0, III.B to III.D).
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

#include "common/store/newheader.h"
#include "common/store/spool.h"

/* Write a header and begin another; where it is. */
uint64_t joule_header_write(struct joule_header *header,
                            struct joule_spool *spool);

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

/* Of the groups that are written here. */
extern const struct joule_names_shape joule_group_shape;

#endif

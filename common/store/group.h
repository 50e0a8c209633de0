/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * group.h - a group of an HDF5 file that grows in an image (image.h): object
 * header, names and what they stand for, in the oldest format (HDF5 File
 * Format Specification 3.0, III.B to III.D).
 *
 * Who copies the file from its beginning while it grows finds everything that
 * was there when he began: names lie behind the leaves that refer to them and
 * those behind their tree, names are only ever added, and when there is no more
 * room for them, all of it is put to new places and what was there stays.
 *
 * Belongs to the thread of its image.
 */
#ifndef JOULE_STORE_GROUP_H
#define JOULE_STORE_GROUP_H

#include "common/store/image.h"
#include "common/store/newheader.h"

struct joule_group;

/*
 * An empty group.  [attributes] are taken over, and begin anew; [names] is how
 * many bytes of them are expected (each takes a multiple of 8).  [shape] is the
 * file's.  NULL with ENOMEM or E2BIG.
 */
struct joule_group *joule_group_create(struct joule_image *image,
                                       const struct joule_names_shape *shape,
                                       struct joule_header *attributes,
                                       size_t names);
void joule_group_destroy(struct joule_group *group);

/* Where its object header is. */
uint64_t joule_group_at(const struct joule_group *group);

/* What is there under that name; JOULE_IMAGE_NOWHERE: nothing. */
uint64_t joule_group_find(const struct joule_group *group, const char *name);

/* Another one; [object] is where its header is.  -1 with EEXIST, ENOMEM, or
 * E2BIG (no more names can be held); nothing has changed then. */
int joule_group_add(struct joule_group *group, const char *name,
                    uint64_t object);

/* Change the attribute [name], of 8 bytes.  -1 with ENOENT. */
int joule_group_set_u64(struct joule_group *group, const char *name,
                        uint64_t value);

/* What has changed, to the image.  -1 with ENOMEM: it is written next time. */
int joule_group_flush(struct joule_group *group);

/* A copy of its header's attributes; [ret] begins with all zeros.  -1 with
 * ENOMEM. */
int joule_group_attributes(const struct joule_group *group,
                           struct joule_header *ret);

/* Names in their order, and their objects, from [i] = 0 on; NULL: no more. */
const char *joule_group_member(const struct joule_group *group, size_t i,
                               uint64_t *ret_object);

#endif

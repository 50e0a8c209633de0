/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/group.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/little.h"

#define HEAP_NO_FREE 1 /* "there is no free block" */

struct leaf {
    uint64_t at;
    unsigned used;
    bool changed;
    unsigned char bytes[];
};

struct joule_group {
    struct joule_image *image;
    struct joule_names_shape shape;
    struct joule_header header;
    size_t own; /* bytes of it before the attributes */
    uint64_t at, tree_at, heap_at;
    bool is_moving; /* the next flush puts all but the header to new places */
    bool header_changed, tree_changed;
    struct leaf **leaf; /* shape.node of them */
    unsigned leaves;
    unsigned char *tree;
    char *names; /* the first is empty */
    size_t names_used, names_room;
    size_t names_flushed; /* bytes that are in the image */
};

static size_t leaf_size(const struct joule_group *group)
{
    return JOULE_HDF_LEAF_HEAD + group->shape.leaf * JOULE_HDF_LEAF_ENTRY;
}

static size_t tree_size(const struct joule_group *group)
{
    return JOULE_HDF_TREE_HEAD + group->shape.node * 16 + 8;
}

static unsigned char *entry_of(struct leaf *leaf, unsigned i)
{
    return leaf->bytes + JOULE_HDF_LEAF_HEAD + (size_t)i * JOULE_HDF_LEAF_ENTRY;
}

static const char *name_of(const struct joule_group *group, struct leaf *leaf,
                           unsigned i)
{
    return group->names + joule_little_get(entry_of(leaf, i), 8);
}

static struct leaf *make_leaf(const struct joule_group *group)
{
    struct leaf *leaf = calloc(1, sizeof(*leaf) + leaf_size(group));

    if (!leaf)
        return NULL;
    memcpy(leaf->bytes, "SNOD\1", 5);
    leaf->changed = true;
    return leaf;
}

/* ---- from nothing to an empty group ---- */

/* The message of members, and behind it the attributes. */
static int make_header(struct joule_group *group,
                       const struct joule_header *attributes)
{
    struct joule_header *h = &group->header;

    if (!joule_header_add(h, JOULE_MESSAGE_MEMBERS, 16))
        return -1;
    group->own = h->used;
    return joule_header_append(h, attributes, 0);
}

static int make_parts(struct joule_group *group,
                      const struct joule_header *attributes, size_t names)
{
    group->names_room = 8 + joule_hdf_padded(names);
    group->names_used = 8;
    group->names = calloc(1, group->names_room);
    group->tree = calloc(1, tree_size(group));
    group->leaf = calloc(group->shape.node, sizeof(struct leaf *));
    if (!group->names || !group->tree || !group->leaf)
        return -1;
    group->leaf[0] = make_leaf(group);
    if (!group->leaf[0])
        return -1;
    group->leaves = 1;
    return make_header(group, attributes);
}

struct joule_group *joule_group_create(struct joule_image *image,
                                       const struct joule_names_shape *shape,
                                       struct joule_header *attributes,
                                       size_t names)
{
    struct joule_group *group = calloc(1, sizeof(*group));

    if (!group)
        return NULL;
    group->image = image;
    group->shape = *shape;
    if (make_parts(group, attributes, names) < 0) {
        joule_group_destroy(group);
        return NULL;
    }
    joule_header_free(attributes);
    group->at =
        joule_image_alloc(image, JOULE_IMAGE_HEADER, group->header.used);
    group->is_moving = true;
    return group;
}

void joule_group_destroy(struct joule_group *group)
{
    if (!group)
        return;
    for (unsigned i = 0; i < group->leaves; i++)
        free(group->leaf[i]);
    free(group->leaf);
    free(group->tree);
    free(group->names);
    joule_header_free(&group->header);
    free(group);
}

uint64_t joule_group_at(const struct joule_group *group)
{
    return group->at;
}

/* ---- names ---- */

/* The leaf where [name] is or belongs, and the place in it. */
static unsigned find(const struct joule_group *group, const char *name,
                     unsigned *ret_entry, bool *ret_is_there)
{
    unsigned i = 0, k = 0;
    int order = 1;

    /* The last leaf whose first name is not behind it. */
    while (i + 1 < group->leaves &&
           strcmp(name_of(group, group->leaf[i + 1], 0), name) <= 0)
        i++;
    for (; k < group->leaf[i]->used; k++) {
        order = strcmp(name_of(group, group->leaf[i], k), name);
        if (order >= 0)
            break;
    }
    *ret_entry = k;
    *ret_is_there = k < group->leaf[i]->used && order == 0;
    return i;
}

uint64_t joule_group_find(const struct joule_group *group, const char *name)
{
    unsigned entry;
    bool is_there;
    unsigned i = find(group, name, &entry, &is_there);

    if (!is_there)
        return JOULE_IMAGE_NOWHERE;
    return joule_little_get(entry_of(group->leaf[i], entry) + 8, 8);
}

const char *joule_group_member(const struct joule_group *group, size_t i,
                               uint64_t *ret_object)
{
    for (unsigned k = 0; k < group->leaves; k++) {
        struct leaf *leaf = group->leaf[k];

        if (i < leaf->used) {
            *ret_object = joule_little_get(entry_of(leaf, (unsigned)i) + 8, 8);
            return name_of(group, leaf, (unsigned)i);
        }
        i -= leaf->used;
    }
    return NULL;
}

static int make_room(struct joule_group *group, size_t size)
{
    size_t room = (group->names_used + size) * 2;
    char *more;

    if (group->names_used + size <= group->names_room)
        return 0;
    more = calloc(1, room);
    if (!more)
        return -1;
    memcpy(more, group->names, group->names_used);
    free(group->names);
    group->names = more;
    group->names_room = room;
    group->is_moving = true;
    return 0;
}

static void take_entries(struct leaf *leaf, struct leaf *from, unsigned first,
                         unsigned count)
{
    memcpy(entry_of(leaf, 0), entry_of(from, first),
           (size_t)count * JOULE_HDF_LEAF_ENTRY);
    leaf->used = count;
}

/* The upper half of the full leaf [i] becomes another one; nothing of it if
 * the next name belongs behind it. */
static int split(struct joule_group *group, unsigned i, bool behind)
{
    struct leaf *left = group->leaf[i], *right;
    unsigned keep = behind ? left->used : group->shape.leaf / 2;

    if (group->leaves == group->shape.node) {
        errno = E2BIG;
        return -1;
    }
    right = make_leaf(group);
    if (!right)
        return -1;
    take_entries(right, left, keep, left->used - keep);
    left->used = keep;
    memmove(group->leaf + i + 2, group->leaf + i + 1,
            (group->leaves - i - 1) * sizeof(struct leaf *));
    group->leaf[i + 1] = right;
    group->leaves++;
    group->is_moving = true;
    return 0;
}

static void insert(struct joule_group *group, struct leaf *leaf, unsigned k,
                   const char *name, uint64_t object)
{
    size_t length = strlen(name) + 1;
    unsigned char *entry = entry_of(leaf, k);

    memmove(entry + JOULE_HDF_LEAF_ENTRY, entry,
            (size_t)(leaf->used - k) * JOULE_HDF_LEAF_ENTRY);
    memset(entry, 0, JOULE_HDF_LEAF_ENTRY);
    joule_little_put(entry, group->names_used, 8);
    joule_little_put(entry + 8, object, 8);
    memcpy(group->names + group->names_used, name, length);
    group->names_used += joule_hdf_padded(length);
    leaf->used++;
    leaf->changed = true;
    /* The tree tells the last name of each leaf. */
    group->tree_changed |= k + 1 == leaf->used;
}

int joule_group_add(struct joule_group *group, const char *name,
                    uint64_t object)
{
    unsigned k, i;
    bool is_there;

    i = find(group, name, &k, &is_there);
    if (is_there) {
        errno = EEXIST;
        return -1;
    }
    if (make_room(group, joule_hdf_padded(strlen(name) + 1)) < 0)
        return -1;
    if (group->leaf[i]->used == group->shape.leaf) {
        bool behind = k == group->shape.leaf;

        if (split(group, i, behind) < 0)
            return -1;
        if (behind || k > group->leaf[i]->used) {
            k -= group->leaf[i]->used;
            i++;
        }
    }
    insert(group, group->leaf[i], k, name, object);
    return 0;
}

/* ---- attributes ---- */

int joule_group_set_u64(struct joule_group *group, const char *name,
                        uint64_t value)
{
    unsigned char *at = joule_header_u64(&group->header, name);

    if (!at) {
        errno = ENOENT;
        return -1;
    }
    joule_little_put(at, value, 8);
    group->header_changed = true;
    return 0;
}

int joule_group_attributes(const struct joule_group *group,
                           struct joule_header *ret)
{
    return joule_header_append(ret, &group->header, 1);
}

/* ---- to the image ---- */

/*
 * The tree, its leaves and the names, in this order, and then the header tells
 * where they are.  What was there before stays as it is.
 */
static void move(struct joule_group *group)
{
    struct joule_image *image = group->image;
    unsigned char *message = group->header.bytes + group->own - 16;

    group->tree_at =
        joule_image_alloc(image, JOULE_IMAGE_INDEX, tree_size(group));
    for (unsigned i = 0; i < group->leaves; i++) {
        struct leaf *leaf = group->leaf[i];

        leaf->at =
            joule_image_alloc(image, JOULE_IMAGE_INDEX, leaf_size(group));
        leaf->changed = true;
    }
    group->heap_at = joule_image_alloc(image, JOULE_IMAGE_NAME,
                                       JOULE_HDF_HEAP_HEAD + group->names_room);
    group->names_flushed = 0;
    joule_little_put(message, group->tree_at, 8);
    joule_little_put(message + 8, group->heap_at, 8);
    joule_header_seal(&group->header);
    group->header_changed = true;
    group->tree_changed = true;
    group->is_moving = false;
}

/* All of a new heap; then the names that are added. */
static int flush_names(struct joule_group *group)
{
    unsigned char head[JOULE_HDF_HEAP_HEAD] = {'H', 'E', 'A', 'P'};
    uint64_t at = group->heap_at + JOULE_HDF_HEAP_HEAD;
    size_t from = group->names_flushed;
    size_t to = from ? group->names_used : group->names_room;

    if (from == to)
        return 0;
    joule_little_put(head + 8, group->names_room, 8);
    joule_little_put(head + 16, HEAP_NO_FREE, 8);
    joule_little_put(head + 24, at, 8);
    if ((from == 0 &&
         joule_image_write(group->image, JOULE_IMAGE_NAME, group->heap_at, head,
                           sizeof(head)) < 0) ||
        joule_image_write(group->image, JOULE_IMAGE_NAME, at + from,
                          group->names + from, to - from) < 0)
        return -1;
    group->names_flushed = group->names_used;
    return 0;
}

static int flush_leaves(struct joule_group *group)
{
    for (unsigned i = 0; i < group->leaves; i++) {
        struct leaf *leaf = group->leaf[i];

        if (!leaf->changed)
            continue;
        joule_little_put(leaf->bytes + 6, leaf->used, 2);
        if (joule_image_write(group->image, JOULE_IMAGE_INDEX, leaf->at,
                              leaf->bytes, leaf_size(group)) < 0)
            return -1;
        leaf->changed = false;
    }
    return 0;
}

/* A key of the tree is the last name of the leaf on its left. */
static int flush_tree(struct joule_group *group)
{
    unsigned char *at = group->tree + JOULE_HDF_TREE_HEAD + 8;
    bool is_empty = group->leaf[0]->used == 0;

    if (!group->tree_changed)
        return 0;
    memcpy(group->tree, "TREE", 4);
    joule_little_put(group->tree + 6, is_empty ? 0 : group->leaves, 2);
    joule_little_put(group->tree + 8, JOULE_HDF_NOWHERE, 8);
    joule_little_put(group->tree + 16, JOULE_HDF_NOWHERE, 8);
    for (unsigned i = 0; i < group->leaves; i++, at += 16) {
        struct leaf *leaf = group->leaf[i];

        joule_little_put(at, leaf->at, 8);
        if (leaf->used)
            memcpy(at + 8, entry_of(leaf, leaf->used - 1), 8);
    }
    if (joule_image_write(group->image, JOULE_IMAGE_INDEX, group->tree_at,
                          group->tree, tree_size(group)) < 0)
        return -1;
    group->tree_changed = false;
    return 0;
}

int joule_group_flush(struct joule_group *group)
{
    if (group->is_moving)
        move(group);
    if (flush_names(group) < 0 || flush_leaves(group) < 0 ||
        flush_tree(group) < 0)
        return -1;
    if (group->header_changed &&
        joule_image_write(group->image, JOULE_IMAGE_HEADER, group->at,
                          group->header.bytes, group->header.used) < 0)
        return -1;
    group->header_changed = false;
    return 0;
}

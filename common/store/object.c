/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/btree.h"
#include "common/store/little.h"

#define LEAF_ENTRIES 8
#define LEAF_SIZE    (JOULE_HDF_LEAF_HEAD + LEAF_ENTRIES * JOULE_HDF_LEAF_ENTRY)

#define HEAP_NO_FREE 1 /* "there is no free block" */

/* The tree's is btree.c's. */
const struct joule_names_shape joule_group_shape = {LEAF_ENTRIES, 32};

uint64_t joule_header_write(struct joule_header *h, struct joule_spool *spool)
{
    uint64_t at;

    joule_header_seal(h);
    at = joule_spool_put(spool, h->bytes, h->used);
    h->used = 0;
    h->messages = 0;
    return at;
}

/* The place of the first name that is not less. */
static size_t find(const struct joule_members *m, const char *name)
{
    size_t from = 0, to = m->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (strcmp(m->member[middle].name, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

bool joule_members_have(const struct joule_members *m, const char *name)
{
    size_t at = find(m, name);

    return at < m->count && strcmp(m->member[at].name, name) == 0;
}

int joule_members_add(struct joule_members *m, const char *name, uint64_t at)
{
    size_t place = find(m, name);
    struct joule_member *more = m->member;
    char *copy;

    if (place < m->count && strcmp(m->member[place].name, name) == 0) {
        errno = EEXIST;
        return -1;
    }
    if ((m->count & (m->count - 1)) == 0)
        more = reallocarray(more, m->count ? m->count * 2 : 1, sizeof(*more));
    if (!more)
        return -1;
    m->member = more;
    copy = strdup(name);
    if (!copy)
        return -1;
    memmove(more + place + 1, more + place, (m->count - place) * sizeof(*more));
    more[place] = (struct joule_member){.name = copy, .at = at};
    m->count++;
    return 0;
}

void joule_members_free(struct joule_members *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->member[i].name);
    free(m->member);
    memset(m, 0, sizeof(*m));
}

/* The heap of names: an empty one, then those of the members.  Its place; 0
 * with ENOMEM. */
static uint64_t write_heap(const struct joule_members *m,
                           struct joule_spool *spool)
{
    size_t size = 8;
    unsigned char *heap, *at;
    uint64_t place;

    for (size_t i = 0; i < m->count; i++)
        size += joule_hdf_padded(strlen(m->member[i].name) + 1);
    heap = calloc(1, JOULE_HDF_HEAP_HEAD + size);
    if (!heap)
        return 0;
    at = heap + JOULE_HDF_HEAP_HEAD + 8;
    for (size_t i = 0; i < m->count; i++) {
        size_t len = strlen(m->member[i].name) + 1;

        memcpy(at, m->member[i].name, len);
        at += joule_hdf_padded(len);
    }
    place = (joule_spool_size(spool) + 7) / 8 * 8;
    memcpy(heap, "HEAP", 4);
    joule_little_put(heap + 8, size, 8);
    joule_little_put(heap + 16, HEAP_NO_FREE, 8);
    joule_little_put(heap + 24, place + JOULE_HDF_HEAP_HEAD, 8);
    joule_spool_put(spool, heap, JOULE_HDF_HEAP_HEAD + size);
    free(heap);
    return place;
}

/* Leaves of names and the tree above them. */
static int write_tree(const struct joule_members *m, struct joule_spool *spool,
                      uint64_t *ret_at)
{
    struct joule_btree tree;
    unsigned char key[8] = {0};
    uint64_t offset = 8; /* of the next name in the heap */
    int rc = 0;

    joule_btree_start(&tree, JOULE_BTREE_NAMES, spool);
    for (size_t i = 0; rc == 0 && i < m->count;) {
        unsigned char leaf[LEAF_SIZE] = {'S', 'N', 'O', 'D', 1};
        uint64_t last = 0;
        size_t n = 0;

        for (; n < LEAF_ENTRIES && i < m->count; n++, i++) {
            unsigned char *entry =
                leaf + JOULE_HDF_LEAF_HEAD + n * JOULE_HDF_LEAF_ENTRY;

            joule_little_put(entry, offset, 8);
            joule_little_put(entry + 8, m->member[i].at, 8);
            last = offset;
            offset += joule_hdf_padded(strlen(m->member[i].name) + 1);
        }
        joule_little_put(leaf + 6, n, 2);
        rc = joule_btree_add(&tree, key,
                             joule_spool_put(spool, leaf, sizeof(leaf)));
        /* On the right of a leaf stands its last name. */
        joule_little_put(key, last, 8);
    }
    if (rc == 0)
        return joule_btree_finish(&tree, key, ret_at);
    joule_btree_free(&tree);
    return -1;
}

int joule_group_write(struct joule_members *m, struct joule_header *header,
                      struct joule_spool *spool, uint64_t *ret_at)
{
    uint64_t heap = write_heap(m, spool), tree;
    unsigned char *message;

    if (heap == 0 || write_tree(m, spool, &tree) < 0)
        return -1;
    message = joule_header_add(header, JOULE_MESSAGE_MEMBERS, 16);
    if (!message)
        return -1;
    joule_little_put(message, tree, 8);
    joule_little_put(message + 8, heap, 8);
    *ret_at = joule_header_write(header, spool);
    joule_members_free(m);
    return 0;
}

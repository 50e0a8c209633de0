/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/btree.h"
#include "common/store/little.h"

#define PREFIX       16 /* of an object header */
#define MESSAGE_HEAD 8
#define MESSAGES_MAX 65535

/* Of a leaf of names: twice the "leaf K" of the superblock. */
#define LEAF_ENTRIES 8
#define LEAF_HEAD    8
#define ENTRY_SIZE   40
#define LEAF_SIZE    (LEAF_HEAD + LEAF_ENTRIES * ENTRY_SIZE)

#define HEAP_HEAD    32
#define HEAP_NO_FREE 1 /* "there is no free block" */

static size_t padded(size_t size)
{
    return (size + 7) / 8 * 8;
}

unsigned char *joule_header_add(struct joule_header *h,
                                enum joule_message message, size_t size)
{
    size_t all = MESSAGE_HEAD + padded(size);
    size_t start = h->used ? h->used : PREFIX;
    unsigned char *at;

    if (padded(size) > JOULE_MESSAGE_MAX || h->messages == MESSAGES_MAX ||
        start + all > JOULE_HEADER_MAX) {
        errno = E2BIG;
        return NULL;
    }
    if (start + all > h->room) {
        size_t room = (start + all) * 2;
        unsigned char *more = realloc(h->bytes, room);

        if (!more)
            return NULL;
        h->bytes = more;
        h->room = room;
    }
    at = h->bytes + start;
    memset(at, 0, all);
    joule_little_put(at, message, 2);
    joule_little_put(at + 2, padded(size), 2);
    /* A type does not change (libhdf5 marks it so). */
    at[4] = message == JOULE_MESSAGE_TYPE;
    h->used = start + all;
    h->messages++;
    return at + MESSAGE_HEAD;
}

int joule_header_attribute(struct joule_header *h, const char *name,
                           struct joule_type_bytes type, uint32_t elements,
                           const void *data, size_t size)
{
    size_t name_size = strlen(name) + 1;
    size_t space = elements ? 16 : 8;
    unsigned char *at = joule_header_add(h, JOULE_MESSAGE_ATTRIBUTE,
                                         8 + padded(name_size) +
                                             padded(type.size) + space + size);

    if (!at)
        return -1;
    at[0] = 1;
    joule_little_put(at + 2, name_size, 2);
    joule_little_put(at + 4, type.size, 2);
    joule_little_put(at + 6, space, 2);
    at += 8;
    memcpy(at, name, name_size);
    at += padded(name_size);
    memcpy(at, type.bytes, type.size);
    at += padded(type.size);
    at[0] = 1;
    at[1] = elements != 0;
    if (elements)
        joule_little_put(at + 8, elements, 8);
    memcpy(at + space, data, size);
    return 0;
}

uint64_t joule_header_write(struct joule_header *h, struct joule_spool *spool)
{
    uint64_t at;

    memset(h->bytes, 0, PREFIX);
    h->bytes[0] = 1;
    joule_little_put(h->bytes + 2, h->messages, 2);
    joule_little_put(h->bytes + 4, 1, 4); /* references */
    joule_little_put(h->bytes + 8, h->used - PREFIX, 4);
    at = joule_spool_put(spool, h->bytes, h->used);
    h->used = 0;
    h->messages = 0;
    return at;
}

void joule_header_free(struct joule_header *h)
{
    free(h->bytes);
    memset(h, 0, sizeof(*h));
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
        size += padded(strlen(m->member[i].name) + 1);
    heap = calloc(1, HEAP_HEAD + size);
    if (!heap)
        return 0;
    at = heap + HEAP_HEAD + 8;
    for (size_t i = 0; i < m->count; i++) {
        size_t len = strlen(m->member[i].name) + 1;

        memcpy(at, m->member[i].name, len);
        at += padded(len);
    }
    place = (joule_spool_size(spool) + 7) / 8 * 8;
    memcpy(heap, "HEAP", 4);
    joule_little_put(heap + 8, size, 8);
    joule_little_put(heap + 16, HEAP_NO_FREE, 8);
    joule_little_put(heap + 24, place + HEAP_HEAD, 8);
    joule_spool_put(spool, heap, HEAP_HEAD + size);
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
            unsigned char *entry = leaf + LEAF_HEAD + n * ENTRY_SIZE;

            joule_little_put(entry, offset, 8);
            joule_little_put(entry + 8, m->member[i].at, 8);
            last = offset;
            offset += padded(strlen(m->member[i].name) + 1);
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

void joule_superblock(unsigned char ret[JOULE_SUPERBLOCK_SIZE], uint64_t end,
                      uint64_t root)
{
    memset(ret, 0, JOULE_SUPERBLOCK_SIZE);
    memcpy(ret, "\x89HDF\r\n\x1a\n", 8);
    ret[13] = 8; /* bytes of an address */
    ret[14] = 8; /* bytes of a length */
    joule_little_put(ret + 16, LEAF_ENTRIES / 2, 2);
    joule_little_put(ret + 18, 16, 2); /* children of trees of names: twice */
    joule_little_put(ret + 32, JOULE_HDF_NOWHERE, 8); /* free space */
    joule_little_put(ret + 40, end, 8);
    joule_little_put(ret + 48, JOULE_HDF_NOWHERE, 8); /* driver's block */
    joule_little_put(ret + 64, root, 8);
}

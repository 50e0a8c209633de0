/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/chunkmap.h"

#include <errno.h>
#include <string.h>

#include "common/store/little.h"

/* Of an object header of version 1. */
#define PREFIX_SIZE    16
#define MESSAGE_HEAD   8
#define MESSAGES_SIZE  ((size_t)64 << 10) /* that are looked at */
#define MESSAGE_LAYOUT 0x0008
#define MESSAGE_MORE   0x0010 /* continued elsewhere */
#define CHUNKED        2

/* Of a node of the tree: head, and keys and children in turns. */
#define CHILD_SIZE 8

#define CONTINUATIONS_MAX 16

static int odd(int errnum)
{
    errno = errnum;
    return -1;
}

/* Messages at[len]; 1: the layout was found, 0: it is not there, and *more and
 * *more_len are where they go on, if they do. */
static int find_layout(struct joule_chunkmap *map, uint32_t row_size,
                       uint64_t at, uint64_t len, uint64_t *more,
                       uint64_t *more_len)
{
    *more_len = 0;
    while (len >= MESSAGE_HEAD) {
        const unsigned char *m =
            joule_windows_look(map->windows, at, MESSAGE_HEAD);
        uint64_t type, size;

        if (!m)
            return -1;
        type = joule_little_get(m, 2);
        size = joule_little_get(m + 2, 2);
        at += MESSAGE_HEAD;
        len -= MESSAGE_HEAD;
        if (size > len ||
            (m = joule_windows_look(map->windows, at, size)) == NULL)
            return -1;
        if (type == MESSAGE_MORE && size >= 16) {
            *more = joule_little_get(m, 8);
            *more_len = joule_little_get(m + 8, 8);
        }
        if (type == MESSAGE_LAYOUT) {
            /* version, class, dimensions, address, sizes */
            if (size < 19 || m[0] != 3 || m[1] != CHUNKED || m[2] != 2 ||
                joule_little_get(m + 11, 4) != map->chunk_rows ||
                joule_little_get(m + 15, 4) != row_size)
                return -1;
            map->root = joule_little_get(m + 3, 8);
            return 1;
        }
        at += size;
        len -= size;
    }
    return 0;
}

int joule_chunkmap_open(struct joule_chunkmap *map,
                        struct joule_windows *windows, uint64_t header,
                        uint64_t chunk_rows, uint32_t row_size)
{
    const unsigned char *prefix =
        joule_windows_look(windows, header, PREFIX_SIZE);
    uint64_t at = header + PREFIX_SIZE, len;
    int rc = 0;

    memset(map, 0, sizeof(*map));
    map->windows = windows;
    map->chunk_rows = chunk_rows;
    if (!prefix || prefix[0] != 1)
        return odd(ENOTSUP);
    len = joule_little_get(prefix + 8, 4);
    for (int i = 0; rc == 0 && len > 0 && i < CONTINUATIONS_MAX; i++) {
        uint64_t more = 0, more_len = 0;

        if (len > MESSAGES_SIZE)
            return odd(ENOTSUP);
        rc = find_layout(map, row_size, at, len, &more, &more_len);
        at = more;
        len = more_len;
    }
    return rc == 1 ? 0 : odd(ENOTSUP);
}

void joule_chunkmap_rewind(struct joule_chunkmap *map)
{
    map->depth = 0;
    map->has_now = map->is_done = false;
}

/* Go down into the node at [at], which has to be on [level] (the root: on
 * any). */
static int enter(struct joule_chunkmap *map, uint64_t at, int level)
{
    const unsigned char *head;

    if (map->depth == JOULE_CHUNKMAP_DEPTH ||
        (head = joule_windows_look(map->windows, at, JOULE_HDF_TREE_HEAD)) ==
            NULL ||
        memcmp(head, "TREE", 4) != 0 || head[4] != 1 ||
        (level >= 0 && head[5] != level))
        return odd(EBADMSG);
    map->node[map->depth].at = at + JOULE_HDF_TREE_HEAD;
    map->node[map->depth].level = head[5];
    map->node[map->depth].entries = (unsigned)joule_little_get(head + 6, 2);
    map->node[map->depth].entry = 0;
    map->depth++;
    return 0;
}

/* The next entry of the innermost node: a chunk, or a node to enter. */
static int take_entry(struct joule_chunkmap *map)
{
    unsigned i = map->depth - 1;
    uint64_t at = map->node[i].at + (uint64_t)map->node[i].entry *
                                        (JOULE_HDF_CHUNK_KEY + CHILD_SIZE);
    const unsigned char *entry =
        joule_windows_look(map->windows, at, JOULE_HDF_CHUNK_KEY + CHILD_SIZE);
    struct joule_chunk next;

    if (!entry)
        return odd(EBADMSG);
    map->node[i].entry++;
    if (map->node[i].level > 0)
        return enter(map, joule_little_get(entry + JOULE_HDF_CHUNK_KEY, 8),
                     (int)map->node[i].level - 1);
    next.size = (uint32_t)joule_little_get(entry, 4);
    next.mask = (uint32_t)joule_little_get(entry + 4, 4);
    next.first = joule_little_get(entry + 8, 8);
    next.at = joule_little_get(entry + JOULE_HDF_CHUNK_KEY, 8);
    if (joule_little_get(entry + 16, 8) != 0 || next.size == 0 ||
        next.first % map->chunk_rows != 0 ||
        (map->has_now && next.first <= map->now.first))
        return odd(EBADMSG);
    map->now = next;
    map->has_now = true;
    return 1;
}

/* The next chunk becomes the present one.  1, 0 at the end, or -1. */
static int advance(struct joule_chunkmap *map)
{
    int rc = 0;

    if (map->root == JOULE_HDF_NOWHERE || map->is_done)
        return 0;
    if (map->depth == 0 && enter(map, map->root, -1) < 0)
        return -1;
    while (rc == 0 && map->depth > 0) {
        if (map->node[map->depth - 1].entry ==
            map->node[map->depth - 1].entries)
            map->depth--;
        else
            rc = take_entry(map);
    }
    map->is_done = rc == 0;
    return rc;
}

int joule_chunkmap_check(struct joule_chunkmap *map)
{
    int rc;

    joule_chunkmap_rewind(map);
    while ((rc = advance(map)) > 0)
        ;
    joule_chunkmap_rewind(map);
    return rc;
}

int joule_chunkmap_find(struct joule_chunkmap *map, uint64_t first,
                        struct joule_chunk *ret)
{
    while (!map->has_now || map->now.first < first) {
        int rc = advance(map);

        if (rc <= 0)
            return rc;
    }
    if (map->now.first != first)
        return 0;
    *ret = map->now;
    return 1;
}

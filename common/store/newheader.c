/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/newheader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/little.h"

#define PREFIX       16
#define MESSAGE_HEAD 8
#define MESSAGES_MAX 65535

unsigned char *joule_header_add(struct joule_header *h,
                                enum joule_message message, size_t size)
{
    size_t all = MESSAGE_HEAD + joule_hdf_padded(size);
    size_t start = h->used ? h->used : PREFIX;
    unsigned char *at;

    if (joule_hdf_padded(size) > JOULE_MESSAGE_MAX ||
        h->messages == MESSAGES_MAX || start + all > JOULE_HEADER_MAX) {
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
    joule_little_put(at + 2, joule_hdf_padded(size), 2);
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
    unsigned char *at =
        joule_header_add(h, JOULE_MESSAGE_ATTRIBUTE,
                         8 + joule_hdf_padded(name_size) +
                             joule_hdf_padded(type.size) + space + size);

    if (!at)
        return -1;
    at[0] = 1;
    joule_little_put(at + 2, name_size, 2);
    joule_little_put(at + 4, type.size, 2);
    joule_little_put(at + 6, space, 2);
    at += 8;
    memcpy(at, name, name_size);
    at += joule_hdf_padded(name_size);
    memcpy(at, type.bytes, type.size);
    at += joule_hdf_padded(type.size);
    at[0] = 1;
    at[1] = elements != 0;
    if (elements)
        joule_little_put(at + 8, elements, 8);
    memcpy(at + space, data, size);
    return 0;
}

/* From one message to the next. */
static size_t skip_message(const struct joule_header *h, size_t at)
{
    return at + MESSAGE_HEAD + joule_little_get(h->bytes + at + 2, 2);
}

int joule_header_append(struct joule_header *h, const struct joule_header *from,
                        unsigned skip)
{
    size_t at = PREFIX;

    for (unsigned i = 0; i < from->messages; i++) {
        const unsigned char *m = from->bytes + at;
        size_t size = joule_little_get(m + 2, 2);
        unsigned char *to;

        at = skip_message(from, at);
        if (i < skip)
            continue;
        to = joule_header_add(h, (enum joule_message)joule_little_get(m, 2),
                              size);
        if (!to)
            return -1;
        memcpy(to, m + MESSAGE_HEAD, size);
    }
    return 0;
}

unsigned char *joule_header_u64(struct joule_header *h, const char *name)
{
    size_t at = PREFIX, next;

    for (unsigned i = 0; i < h->messages; i++, at = next) {
        const unsigned char *m = h->bytes + at;

        next = skip_message(h, at);
        /* Eight bytes of version and sizes, then the name; the value is last.
         */
        if (joule_little_get(m, 2) == JOULE_MESSAGE_ATTRIBUTE &&
            strcmp((const char *)m + MESSAGE_HEAD + 8, name) == 0)
            return h->bytes + next - 8;
    }
    return NULL;
}

void joule_header_seal(struct joule_header *h)
{
    memset(h->bytes, 0, PREFIX);
    h->bytes[0] = 1;
    joule_little_put(h->bytes + 2, h->messages, 2);
    joule_little_put(h->bytes + 4, 1, 4); /* references */
    joule_little_put(h->bytes + 8, h->used - PREFIX, 4);
}

void joule_header_free(struct joule_header *h)
{
    free(h->bytes);
    memset(h, 0, sizeof(*h));
}

void joule_superblock(unsigned char ret[JOULE_SUPERBLOCK_SIZE], uint64_t end,
                      uint64_t root, const struct joule_names_shape *shape)
{
    memset(ret, 0, JOULE_SUPERBLOCK_SIZE);
    memcpy(ret, "\x89HDF\r\n\x1a\n", 8);
    ret[13] = 8; /* bytes of an address */
    ret[14] = 8; /* bytes of a length */
    joule_little_put(ret + 16, shape->leaf / 2, 2);
    joule_little_put(ret + 18, shape->node / 2, 2);
    joule_little_put(ret + 32, JOULE_HDF_NOWHERE, 8); /* free space */
    joule_little_put(ret + 40, end, 8);
    joule_little_put(ret + 48, JOULE_HDF_NOWHERE, 8); /* driver's block */
    joule_little_put(ret + 64, root, 8);
}

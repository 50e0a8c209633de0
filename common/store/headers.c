/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/headers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/chunkmap.h"
#include "common/store/little.h"
#include "common/store/object.h"
#include "common/store/plaintype.h"

#define PREFIX       16
#define MESSAGE_HEAD 8
#define BLOCKS_MAX   64   /* of one header */
#define SHARED       0x02 /* flag: the message stands elsewhere */

/* Messages that change nothing here. */
#define MESSAGE_NONE      0x0000
#define MESSAGE_OLD_FILL  0x0004
#define MESSAGE_OLD_TIME  0x000E
#define MESSAGE_CONTINUED 0x0010
#define MESSAGE_TIME      0x0012

/* What the messages of one object have said. */
struct object {
    struct joule_outline *outline;
    struct joule_outline_object now;
    struct joule_header_group group;
    bool has_space, has_type, has_layout;
    uint32_t row_size; /* as the layout says */
};

static int odd(void)
{
    errno = ENOTSUP;
    return -1;
}

/* A data space of at most one dimension; elements 0: a scalar. */
static int read_space(const unsigned char *m, size_t size,
                      uint64_t *ret_elements, bool *ret_scalar)
{
    if (size < 8 || m[0] != 1 || m[1] > 1 || m[2] > 1 ||
        (m[1] == 1 && size < 16))
        return odd();
    *ret_scalar = m[1] == 0;
    *ret_elements = m[1] ? joule_little_get(m + 8, 8) : 0;
    return 0;
}

static int keep_attribute(struct joule_outline *o,
                          const struct joule_outline_attribute *attribute)
{
    struct joule_outline_attribute *more = o->attribute;

    if ((o->attributes & (o->attributes - 1)) == 0)
        more = reallocarray(more, o->attributes ? o->attributes * 2 : 1,
                            sizeof(*more));
    if (!more)
        return -1;
    o->attribute = more;
    more[o->attributes++] = *attribute;
    return 0;
}

/* Version 1; name, type and space are padded. */
static int take_attribute(struct object *x, const unsigned char *m, size_t size)
{
    struct joule_rowtype type;
    struct joule_outline_attribute a = {0};
    size_t name_size, space_size, front;
    uint64_t elements;
    bool scalar;

    if (size < 8 || m[0] != 1)
        return odd();
    name_size = joule_little_get(m + 2, 2);
    a.type.size = joule_little_get(m + 4, 2);
    space_size = joule_little_get(m + 6, 2);
    front = 8 + joule_hdf_padded(name_size) + joule_hdf_padded(a.type.size) +
            joule_hdf_padded(space_size);
    if (front > size || !memchr(m + 8, '\0', name_size))
        return odd();
    a.name = (const char *)m + 8;
    a.type.bytes = m + 8 + joule_hdf_padded(name_size);
    a.data = m + front;
    if (!joule_store_is_name(a.name) ||
        read_space(a.type.bytes + joule_hdf_padded(a.type.size), space_size,
                   &elements, &scalar) < 0 ||
        joule_plaintype_read(a.type.bytes, a.type.size, &type) < 0)
        return odd();
    if (scalar ? elements != 0 : elements == 0)
        return odd();
    a.elements = (uint32_t)elements;
    if (scalar)
        elements = 1;
    if (elements > JOULE_ATTRIBUTE_MAX / type.size ||
        elements * type.size > size - front)
        return odd();
    a.bytes = (uint32_t)(elements * type.size);
    return keep_attribute(x->outline, &a);
}

static int take_filter(const unsigned char *m, size_t *at, size_t size,
                       struct joule_filter *filter)
{
    size_t name, count, values;
    uint32_t first;

    if (size - *at < 8)
        return odd();
    name = joule_little_get(m + *at + 2, 2);
    count = joule_little_get(m + *at + 6, 2);
    values = *at + 8 + joule_hdf_padded(name);
    if (values > size || count > 8 || (count + count % 2) * 4 > size - values)
        return odd();
    first = count ? (uint32_t)joule_little_get(m + values, 4) : 0;
    if (joule_filter_known((unsigned)joule_little_get(m + *at, 2), first,
                           filter) < 0)
        return odd();
    *at = values + (count + count % 2) * 4;
    return 0;
}

static int take_filters(struct object *x, const unsigned char *m, size_t size)
{
    struct joule_pipeline *p = &x->now.pipeline;
    size_t at = 8;

    if (size < 8 || m[0] != 1 || m[1] > JOULE_FILTERS_MAX || p->count)
        return odd();
    for (unsigned i = 0; i < m[1]; i++)
        if (take_filter(m, &at, size, &p->filter[i]) < 0)
            return -1;
    p->count = m[1];
    return 0;
}

/* In chunks; the address is a chunkmap's business. */
static int take_layout(struct object *x, const unsigned char *m, size_t size)
{
    if (x->has_layout || size < 19 || m[0] != 3 || m[1] != 2 || m[2] != 2)
        return odd();
    x->has_layout = true;
    x->now.chunk_rows = joule_little_get(m + 11, 4);
    x->row_size = (uint32_t)joule_little_get(m + 15, 4);
    return 0;
}

static int take_group(struct object *x, const unsigned char *m, size_t size)
{
    if (x->group.is_there || size < 16)
        return odd();
    x->group.is_there = true;
    x->group.tree = joule_little_get(m, 8);
    x->group.heap = joule_little_get(m + 8, 8);
    return 0;
}

static int take_message(struct object *x, unsigned type, const unsigned char *m,
                        size_t size)
{
    bool scalar;

    switch (type) {
    case MESSAGE_NONE:
    case MESSAGE_OLD_FILL:
    case MESSAGE_OLD_TIME:
    case MESSAGE_TIME:
    case JOULE_MESSAGE_FILL:
        return 0;
    case JOULE_MESSAGE_SPACE:
        if (x->has_space || read_space(m, size, &x->now.rows, &scalar) < 0 ||
            scalar)
            return odd();
        x->has_space = true;
        return 0;
    case JOULE_MESSAGE_TYPE:
        if (x->has_type)
            return odd();
        x->has_type = true;
        x->now.type = (struct joule_outline_type){m, size};
        return 0;
    case JOULE_MESSAGE_LAYOUT:
        return take_layout(x, m, size);
    case JOULE_MESSAGE_FILTERS:
        return take_filters(x, m, size);
    case JOULE_MESSAGE_ATTRIBUTE:
        return take_attribute(x, m, size);
    case JOULE_MESSAGE_MEMBERS:
        return take_group(x, m, size);
    default:
        return odd();
    }
}

/* The messages of one stretch of the header; *left of them are still to
 * come. */
static int take_block(struct object *x, const unsigned char *bytes, size_t size,
                      unsigned *left, uint64_t *more, uint64_t *more_size)
{
    while (*left > 0 && size >= MESSAGE_HEAD) {
        unsigned type = (unsigned)joule_little_get(bytes, 2);
        size_t len = joule_little_get(bytes + 2, 2);
        const unsigned char *m = bytes + MESSAGE_HEAD;

        if (len > size - MESSAGE_HEAD || (bytes[4] & SHARED))
            return odd();
        if (type == MESSAGE_CONTINUED) {
            if (len < 16 || *more_size)
                return odd();
            *more = joule_little_get(m, 8);
            *more_size = joule_little_get(m + 8, 8);
        } else if (take_message(x, type, m, len) < 0) {
            return -1;
        }
        (*left)--;
        bytes += MESSAGE_HEAD + len;
        size -= MESSAGE_HEAD + len;
    }
    return 0;
}

static int take_header(struct object *x, struct joule_windows *windows,
                       uint64_t at)
{
    const unsigned char *prefix = joule_windows_look(windows, at, PREFIX);
    uint64_t more = at + PREFIX, size;
    unsigned left;

    if (!prefix || prefix[0] != 1)
        return odd();
    left = (unsigned)joule_little_get(prefix + 2, 2);
    size = joule_little_get(prefix + 8, 4);
    for (int i = 0; size > 0 && i < BLOCKS_MAX; i++) {
        const unsigned char *bytes =
            joule_outline_keep(x->outline, windows, more, size);
        size_t len = size;

        size = 0;
        if (!bytes || take_block(x, bytes, len, &left, &more, &size) < 0)
            return -1;
    }
    return left == 0 && size == 0 ? 0 : odd();
}

static int check_table(const struct object *x, struct joule_windows *windows)
{
    struct joule_rowtype type;
    struct joule_chunkmap map;

    if (!x->has_space || !x->has_type || !x->has_layout ||
        joule_plaintype_read(x->now.type.bytes, x->now.type.size, &type) < 0 ||
        type.size != x->row_size || x->now.chunk_rows == 0 ||
        x->now.chunk_rows > JOULE_CHUNK_MAX / type.size ||
        joule_chunkmap_open(&map, windows, x->now.header, x->now.chunk_rows,
                            type.size) < 0 ||
        joule_chunkmap_check(&map) < 0)
        return odd();
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct joule_outline_attribute *one = a, *other = b;

    return strcmp(one->name, other->name);
}

static int keep_object(struct joule_outline *o,
                       const struct joule_outline_object *object)
{
    struct joule_outline_object *more = o->object;

    if ((o->objects & (o->objects - 1)) == 0)
        more =
            reallocarray(more, o->objects ? o->objects * 2 : 1, sizeof(*more));
    if (!more)
        return -1;
    o->object = more;
    more[o->objects++] = *object;
    return 0;
}

int joule_headers_read(struct joule_outline *o, struct joule_windows *windows,
                       uint64_t at, const char *name, unsigned depth,
                       struct joule_header_group *ret)
{
    struct object x = {
        .outline = o,
        .now = {.name = name,
                .header = at,
                .depth = depth,
                .attribute = o->attributes},
    };

    if (take_header(&x, windows, at) < 0)
        return -1;
    x.now.attributes = o->attributes - x.now.attribute;
    x.now.is_table = !x.group.is_there;
    if (x.now.is_table ? check_table(&x, windows) < 0
                       : x.has_space || x.has_type || x.has_layout)
        return odd();
    if (x.now.attributes > 1)
        qsort(o->attribute + x.now.attribute, x.now.attributes,
              sizeof(*o->attribute), by_name);
    *ret = x.group;
    return keep_object(o, &x.now);
}

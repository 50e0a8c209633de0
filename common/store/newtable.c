/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/newtable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/little.h"

/* Of filters, as the HDF Group has numbered them. */
#define FILTER_DEFLATE    1
#define FILTER_SHUFFLE    2
#define FILTER_FLETCHER32 3

#define FILTER_OPTIONAL 1

/* Messages are found again by where they begin in the header. */
static size_t place(const struct joule_header *header, const unsigned char *at)
{
    return (size_t)(at - header->bytes);
}

/* One dimension, without an end: the number of rows follows. */
static int add_space(struct joule_newtable *t)
{
    unsigned char *at = joule_header_add(&t->header, JOULE_MESSAGE_SPACE, 24);

    if (!at)
        return -1;
    at[0] = 1;
    at[1] = 1;
    at[2] = 1; /* a largest size is told */
    joule_little_put(at + 16, UINT64_MAX, 8);
    t->space_at = place(&t->header, at);
    return 0;
}

/* In chunks: where the index is, follows. */
static int add_layout(struct joule_newtable *t)
{
    unsigned char *at = joule_header_add(&t->header, JOULE_MESSAGE_LAYOUT, 19);

    if (!at)
        return -1;
    at[0] = 3;
    at[1] = 2;
    at[2] = 2; /* rows, and the bytes of a row */
    joule_little_put(at + 11, t->chunk_rows, 4);
    joule_little_put(at + 15, t->layout.type.size, 4);
    t->layout_at = place(&t->header, at);
    return 0;
}

static int add_type_and_fill(struct joule_newtable *t,
                             struct joule_type_bytes type)
{
    unsigned char *at =
        joule_header_add(&t->header, JOULE_MESSAGE_TYPE, type.size);

    if (!at)
        return -1;
    memcpy(at, type.bytes, type.size);
    at = joule_header_add(&t->header, JOULE_MESSAGE_FILL, 8);
    if (!at)
        return -1;
    at[0] = 2; /* version */
    at[1] = 3; /* room is made chunk by chunk */
    at[2] = 2; /* nothing is written there but a value that is set, */
    at[3] = 1; /* and that is the default, zeros */
    return 0;
}

/* A filter without its name: number, length of the name, flags, values. */
static unsigned char *put_filter(unsigned char *at, unsigned id, unsigned flags,
                                 const uint32_t *value)
{
    joule_little_put(at, id, 2);
    joule_little_put(at + 4, flags, 2);
    joule_little_put(at + 6, value != NULL, 2);
    if (!value)
        return at + 8;
    joule_little_put(at + 8, *value, 4);
    return at + 16; /* an even number of them */
}

static int add_filters(struct joule_newtable *t)
{
    const struct joule_pipeline *p = &t->layout.pipeline;
    unsigned char *at;

    if (p->count == 0)
        return 0;
    at = joule_header_add(&t->header, JOULE_MESSAGE_FILTERS,
                          8 + (size_t)p->count * 16);
    if (!at)
        return -1;
    at[0] = 1;
    at[1] = (unsigned char)p->count;
    at += 8;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct joule_filter *f = &p->filter[i];
        uint32_t level = f->level;

        if (f->kind == JOULE_FILTER_DEFLATE)
            at = put_filter(at, FILTER_DEFLATE, FILTER_OPTIONAL, &level);
        else if (f->kind == JOULE_FILTER_SHUFFLE)
            at = put_filter(at, FILTER_SHUFFLE, FILTER_OPTIONAL, &f->element);
        else
            at = put_filter(at, FILTER_FLETCHER32, 0, NULL);
    }
    return 0;
}

static int make_part(struct joule_newtable *t)
{
    size_t size = (size_t)t->chunk_rows * t->layout.type.size;
    unsigned char *more;

    if (size <= t->part_room)
        return 0;
    more = realloc(t->part, size);
    if (!more)
        return -1;
    t->part = more;
    t->part_room = size;
    return 0;
}

int joule_newtable_begin(struct joule_newtable *t, struct joule_spool *spool,
                         struct joule_typecache *types,
                         const struct joule_layout *layout, bool stored)
{
    struct joule_type_bytes type;

    t->spool = spool;
    t->rows = t->part_rows = 0;
    t->header.used = t->header.messages = 0;
    /* It is large: columns that are not set are not read. */
    memcpy(&t->layout, layout,
           offsetof(struct joule_layout, type) +
               joule_rowtype_bytes(&layout->type));
    t->chunk_rows = stored ? layout->chunk_rows : joule_batch_rows(layout);
    if (joule_typecache_get(types, &layout->type, &type) < 0 ||
        (!stored && make_part(t) < 0) || add_space(t) < 0 ||
        add_type_and_fill(t, type) < 0 || add_layout(t) < 0 ||
        (stored && add_filters(t) < 0))
        return -1;
    joule_btree_start(&t->index, JOULE_BTREE_CHUNKS, spool);
    t->is_open = true;
    return 0;
}

static void make_key(unsigned char key[24], size_t size, uint32_t mask,
                     uint64_t row, uint64_t byte)
{
    joule_little_put(key, size, 4);
    joule_little_put(key + 4, mask, 4);
    joule_little_put(key + 8, row, 8);
    joule_little_put(key + 16, byte, 8);
}

/* The chunk lies at [at] already. */
static int add_chunk(struct joule_newtable *t, uint64_t rows, uint32_t mask,
                     size_t len, uint64_t at)
{
    unsigned char key[24];

    make_key(key, len, mask, t->rows, 0);
    t->rows += rows;
    return joule_btree_add(&t->index, key, at);
}

static int write_chunk(struct joule_newtable *t, uint64_t rows, uint32_t mask,
                       const void *data, size_t len)
{
    return add_chunk(t, rows, mask, len, joule_spool_put(t->spool, data, len));
}

/* One that was lost leaves no hole: the next one takes its place.  But none
 * follows one that is not full. */
static int check_place(const struct joule_newtable *t)
{
    if (t->rows % t->chunk_rows == 0)
        return 0;
    errno = EBADMSG;
    return -1;
}

int joule_newtable_chunk(struct joule_newtable *t, uint64_t rows, uint32_t mask,
                         const void *data, size_t len)
{
    if (check_place(t) < 0)
        return -1;
    return write_chunk(t, rows, mask, data, len);
}

int joule_newtable_run(struct joule_newtable *t, const struct joule_run *run,
                       int fd)
{
    size_t raw = (size_t)t->chunk_rows * t->layout.type.size;
    uint64_t left = run->rows, at;

    if (check_place(t) < 0 ||
        joule_spool_copy(t->spool, fd, run->at, run->len, &at) < 0)
        return -1;
    for (; left > 0; at += raw) {
        uint64_t rows = left < t->chunk_rows ? left : t->chunk_rows;

        if (add_chunk(t, rows, run->mask, raw, at) < 0)
            return -1;
        left -= rows;
    }
    return 0;
}

int joule_newtable_rows(struct joule_newtable *t, const void *rows,
                        uint64_t count)
{
    size_t row = t->layout.type.size;
    const unsigned char *from = rows;

    while (count > 0) {
        uint64_t n = t->chunk_rows - t->part_rows;
        int rc = 0;

        if (t->part_rows == 0 && count >= n) {
            rc = write_chunk(t, n, 0, from, (size_t)n * row);
        } else {
            if (n > count)
                n = count;
            memcpy(t->part + t->part_rows * row, from, (size_t)n * row);
            t->part_rows += n;
            if (t->part_rows == t->chunk_rows) {
                t->part_rows = 0;
                rc = write_chunk(t, t->chunk_rows, 0, t->part,
                                 (size_t)t->chunk_rows * row);
            }
        }
        if (rc < 0)
            return -1;
        from += n * row;
        count -= n;
    }
    return 0;
}

static int end_part(struct joule_newtable *t)
{
    size_t used = (size_t)t->part_rows * t->layout.type.size;
    size_t size = (size_t)t->chunk_rows * t->layout.type.size;
    uint64_t rows = t->part_rows;

    if (rows == 0)
        return 0;
    memset(t->part + used, 0, size - used);
    t->part_rows = 0;
    return write_chunk(t, rows, 0, t->part, size);
}

int joule_newtable_end(struct joule_newtable *t, uint64_t *ret_at)
{
    uint64_t tree = JOULE_HDF_NOWHERE, chunks;
    unsigned char key[24];

    t->is_open = false;
    if (end_part(t) < 0) {
        joule_btree_free(&t->index);
        return -1;
    }
    /* libhdf5 has the key on the right of all one further in both. */
    chunks = (t->rows + t->chunk_rows - 1) / t->chunk_rows;
    make_key(key, 0, 0, chunks * t->chunk_rows, t->layout.type.size);
    if (t->rows > 0 && joule_btree_finish(&t->index, key, &tree) < 0)
        return -1;
    joule_little_put(t->header.bytes + t->space_at + 8, t->rows, 8);
    joule_little_put(t->header.bytes + t->layout_at + 3, tree, 8);
    *ret_at = joule_header_write(&t->header, t->spool);
    return 0;
}

void joule_newtable_free(struct joule_newtable *t)
{
    joule_btree_free(&t->index);
    joule_header_free(&t->header);
    free(t->part);
    memset(t, 0, sizeof(*t));
}

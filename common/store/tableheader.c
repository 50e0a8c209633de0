/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/tableheader.h"

#include <string.h>

#define FILTER_OPTIONAL 1 /* whoever does not know it may go on without */

/* The most that one of them takes: head, name, value. */
#define FILTER_SIZE (8 + 16 + 8)

/* Messages are found again by where they begin in the header. */
static size_t place(const struct joule_header *header, const unsigned char *at)
{
    return (size_t)(at - header->bytes);
}

static int add_space(struct joule_tableheader *t, struct joule_header *h)
{
    unsigned char *at = joule_header_add(h, JOULE_MESSAGE_SPACE, 24);

    if (!at)
        return -1;
    at[0] = 1;
    at[1] = 1;
    at[2] = 1; /* a largest size is told */
    joule_little_put(at + 16, UINT64_MAX, 8);
    t->rows_at = place(h, at) + 8;
    return 0;
}

static int add_type_and_fill(const struct joule_tableheader *t,
                             struct joule_header *h)
{
    unsigned char *at = joule_header_add(h, JOULE_MESSAGE_TYPE, t->type.size);

    if (!at)
        return -1;
    memcpy(at, t->type.bytes, t->type.size);
    at = joule_header_add(h, JOULE_MESSAGE_FILL, 8);
    if (!at)
        return -1;
    at[0] = 2; /* version */
    at[1] = 3; /* room is made chunk by chunk */
    at[2] = 2; /* nothing is written there but a value that is set, */
    at[3] = 1; /* and that is the default, zeros */
    return 0;
}

static int add_layout(struct joule_tableheader *t, struct joule_header *h)
{
    unsigned char *at = joule_header_add(h, JOULE_MESSAGE_LAYOUT, 19);

    if (!at)
        return -1;
    at[0] = 3; /* version */
    at[1] = 2; /* in chunks */
    at[2] = 2; /* rows, and the bytes of a row */
    joule_little_put(at + 3, JOULE_HDF_NOWHERE, 8);
    joule_little_put(at + 11, t->chunk_rows, 4);
    joule_little_put(at + 15, t->row_size, 4);
    t->tree_at = place(h, at) + 3;
    return 0;
}

/*
 * A filter: number, length of the name, flags, count of values; name; values.
 * Names may be left out, but libhdf5 (1.10 to 2.x) adds them when it copies the
 * object, and does not make room for them.
 */
static unsigned char *put_filter(unsigned char *at, unsigned id,
                                 const char *name, unsigned flags,
                                 const uint32_t *value)
{
    size_t length = strlen(name) + 1;

    joule_little_put(at, id, 2);
    joule_little_put(at + 2, joule_hdf_padded(length), 2);
    joule_little_put(at + 4, flags, 2);
    joule_little_put(at + 6, value != NULL, 2);
    memcpy(at + 8, name, length);
    at += 8 + joule_hdf_padded(length);
    if (!value)
        return at;
    joule_little_put(at, *value, 4);
    return at + 8; /* an even number of them */
}

static int add_filters(const struct joule_pipeline *p, struct joule_header *h)
{
    unsigned char bytes[8 + JOULE_FILTERS_MAX * FILTER_SIZE] = {1}, *at, *to;

    if (!p || p->count == 0)
        return 0;
    bytes[1] = (unsigned char)p->count;
    at = bytes + 8;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct joule_filter *f = &p->filter[i];
        uint32_t level = f->level;

        if (f->kind == JOULE_FILTER_DEFLATE)
            at = put_filter(at, JOULE_HDF_DEFLATE, "deflate", FILTER_OPTIONAL,
                            &level);
        else if (f->kind == JOULE_FILTER_SHUFFLE)
            at = put_filter(at, JOULE_HDF_SHUFFLE, "shuffle", FILTER_OPTIONAL,
                            &f->element);
        else
            at = put_filter(at, JOULE_HDF_FLETCHER32, "fletcher32", 0, NULL);
    }
    to = joule_header_add(h, JOULE_MESSAGE_FILTERS, (size_t)(at - bytes));
    if (!to)
        return -1;
    memcpy(to, bytes, (size_t)(at - bytes));
    return 0;
}

int joule_tableheader_add(struct joule_tableheader *t, struct joule_header *h)
{
    if (add_space(t, h) < 0 || add_type_and_fill(t, h) < 0 ||
        add_layout(t, h) < 0)
        return -1;
    return add_filters(t->filters, h);
}

static void put_key(unsigned char *key, uint64_t size, uint32_t mask,
                    uint64_t row, uint64_t byte)
{
    joule_little_put(key, size, 4);
    joule_little_put(key + 4, mask, 4);
    joule_little_put(key + 8, row, 8);
    joule_little_put(key + 16, byte, 8);
}

void joule_chunk_key(unsigned char key[JOULE_HDF_CHUNK_KEY], size_t size,
                     uint32_t mask, uint64_t row)
{
    put_key(key, size, mask, row, 0);
}

/* libhdf5 has it one further in both. */
void joule_chunk_last_key(unsigned char key[JOULE_HDF_CHUNK_KEY], uint64_t rows,
                          uint32_t row_size)
{
    put_key(key, 0, 0, rows, row_size);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/chunktree.h"
#include "common/store/little.h"
#include "common/store/newtype.h"
#include "common/store/tableheader.h"

struct joule_table {
    struct joule_image *image;
    struct joule_header header;
    bool is_new;      /* the header is not in the image yet */
    uint64_t at;      /* where it is */
    size_t rows_at;   /* in it: the number of rows */
    size_t tree_at;   /* the place of the tree of chunks */
    size_t lost_at;   /* the attribute of those that are lost */
    uint64_t told;    /* rows, by the image */
    bool is_lost_new; /* the attribute has changed */
    struct joule_chunktree *chunks;
    size_t row_size;
    size_t chunk_rows;
    struct joule_pack pack;
    uint64_t chunk; /* number of the chunk that is being filled */
    size_t filled;  /* rows in it */
    size_t flushed; /* of them, rows that are in the image */
    uint64_t place; /* where it lies unpacked, or JOULE_IMAGE_NOWHERE */
    unsigned char *rows;
    unsigned char *scratch; /* to pack: shuffled, and packed */
    unsigned char *packed;
};

static int make_type(struct joule_newtype_row *row,
                     const struct joule_table_options *opt)
{
    if (joule_newtype_add(row, "ElapsedTime", joule_newtype_u64) < 0 ||
        joule_newtype_add(row, "EpochTime", joule_newtype_u64) < 0)
        return -1;
    for (size_t i = 0; i < opt->count; i++)
        if (joule_newtype_add(row, opt->fields[i].name,
                              opt->fields[i].type == JOULE_FIELD_DOUBLE
                                  ? joule_newtype_f64
                                  : joule_newtype_u64) < 0)
            return -1;
    return joule_newtype_add(row, "ElapsedTimeNs", joule_newtype_u64);
}

/* The filters that pack.c puts on a chunk, in its order. */
static void make_filters(const struct joule_pack *pack, size_t row_size,
                         struct joule_pipeline *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (pack->level == 0)
        return;
    if (pack->shuffle)
        ret->filter[ret->count++] = (struct joule_filter){
            .kind = JOULE_FILTER_SHUFFLE, .element = (uint32_t)row_size};
    ret->filter[ret->count++] = (struct joule_filter){
        .kind = JOULE_FILTER_DEFLATE, .level = (uint8_t)pack->level};
    ret->filter[ret->count++] =
        (struct joule_filter){.kind = JOULE_FILTER_FLETCHER32};
}

static int add_u64(struct joule_header *header, const char *name,
                   uint64_t value)
{
    unsigned char bytes[8];

    joule_little_put(bytes, value, sizeof(bytes));
    return joule_header_attribute(header, name, joule_newtype_u64, 1, bytes,
                                  sizeof(bytes));
}

static int make_header(struct joule_table *table,
                       const struct joule_table_options *opt)
{
    struct joule_newtype_row row = {0};
    struct joule_pipeline filters;
    struct joule_tableheader head = {
        .row_size = (uint32_t)table->row_size,
        .chunk_rows = opt->chunk_rows,
        .filters = &filters,
    };
    int rc = make_type(&row, opt);

    make_filters(&opt->pack, table->row_size, &filters);
    if (rc == 0) {
        head.type = joule_newtype_seal(&row);
        rc = joule_tableheader_add(&head, &table->header);
    }
    joule_newtype_free(&row);
    if (rc < 0 ||
        add_u64(&table->header, "Joule Period ns", opt->period_ns) < 0 ||
        add_u64(&table->header, "Joule Lost Rows", 0) < 0)
        return -1;
    table->rows_at = head.rows_at;
    table->lost_at =
        (size_t)(joule_header_u64(&table->header, "Joule Lost Rows") -
                 table->header.bytes);
    table->tree_at = head.tree_at;
    return 0;
}

static int allocate(struct joule_table *table)
{
    size_t size = table->chunk_rows * table->row_size;

    table->rows = calloc(table->chunk_rows, table->row_size);
    if (!table->rows)
        return -1;
    if (table->pack.level == 0)
        return 0;
    table->scratch = malloc(size);
    table->packed = malloc(joule_pack_bound(size));
    return table->scratch && table->packed ? 0 : -1;
}

/* The header, and behind it the tree of chunks. */
static int make_places(struct joule_table *table)
{
    table->at =
        joule_image_alloc(table->image, JOULE_IMAGE_HEADER, table->header.used);
    table->chunks = joule_chunktree_create(table->image, table->chunk_rows,
                                           (uint32_t)table->row_size);
    if (!table->chunks)
        return -1;
    joule_little_put(table->header.bytes + table->tree_at,
                     joule_chunktree_at(table->chunks), 8);
    joule_header_seal(&table->header);
    table->is_new = true;
    return 0;
}

static struct joule_table *discard(struct joule_table *table)
{
    int saved = errno;

    joule_table_destroy(table);
    errno = saved;
    return NULL;
}

struct joule_table *joule_table_create(struct joule_image *image,
                                       const struct joule_table_options *opt)
{
    struct joule_table *table = calloc(1, sizeof(*table));

    if (!table)
        return NULL;
    table->image = image;
    table->row_size = (opt->count + 3) * 8;
    table->chunk_rows = opt->chunk_rows;
    table->pack = opt->pack;
    table->place = JOULE_IMAGE_NOWHERE;
    if (allocate(table) < 0 || make_header(table, opt) < 0 ||
        make_places(table) < 0)
        return discard(table);
    return table;
}

void joule_table_destroy(struct joule_table *table)
{
    if (!table)
        return;
    joule_chunktree_destroy(table->chunks);
    joule_header_free(&table->header);
    free(table->rows);
    free(table->scratch);
    free(table->packed);
    free(table);
}

uint64_t joule_table_at(const struct joule_table *table)
{
    return table->at;
}

size_t joule_table_row_size(const struct joule_table *table)
{
    return table->row_size;
}

uint64_t joule_table_rows(const struct joule_table *table)
{
    return table->chunk * table->chunk_rows + table->filled;
}

void joule_table_set_lost(struct joule_table *table, uint64_t rows)
{
    joule_little_put(table->header.bytes + table->lost_at, rows, 8);
    table->is_lost_new = true;
}

/* ---- chunks ---- */

static int put_chunk(struct joule_table *table, uint32_t mask,
                     const void *bytes, size_t size)
{
    uint64_t at;

    joule_image_set_floor(table->image, joule_chunktree_end(table->chunks));
    at = joule_image_alloc(table->image, JOULE_IMAGE_DATA, size);
    if (joule_image_write(table->image, JOULE_IMAGE_DATA, at, bytes, size) < 0)
        return -1;
    if (table->place != JOULE_IMAGE_NOWHERE) {
        joule_chunktree_replace(table->chunks, size, mask, at);
        joule_image_release(table->image, table->place,
                            table->chunk_rows * table->row_size);
    } else if (joule_chunktree_add(table->chunks, size, mask, at) < 0) {
        return -1;
    }
    table->place = at;
    return 0;
}

/* Of the chunk that is being filled. */
static int flush_rows(struct joule_table *table)
{
    size_t row = table->row_size;

    if (table->filled == table->flushed)
        return 0;
    if (table->place == JOULE_IMAGE_NOWHERE) {
        if (put_chunk(table, joule_pack_none(&table->pack), table->rows,
                      table->chunk_rows * row) < 0)
            return -1;
    } else if (joule_image_write(table->image, JOULE_IMAGE_DATA,
                                 table->place + table->flushed * row,
                                 table->rows + table->flushed * row,
                                 (table->filled - table->flushed) * row) < 0) {
        return -1;
    }
    table->flushed = table->filled;
    return 0;
}

/* The packed chunk takes the place of the unpacked one in the index; where
 * that was is free once this is on disk. */
static int put_packed(struct joule_table *table)
{
    size_t size = table->chunk_rows * table->row_size, length;
    uint32_t mask = 0;

    length = joule_pack(&table->pack, table->rows, size, table->row_size,
                        table->scratch, table->packed, &mask);
    if (length == 0)
        return flush_rows(table);
    if (put_chunk(table, mask, table->packed, length) < 0)
        return -1;
    table->flushed = table->filled;
    return 0;
}

static void next_chunk(struct joule_table *table)
{
    table->chunk++;
    table->filled = 0;
    table->flushed = 0;
    table->place = JOULE_IMAGE_NOWHERE;
}

int joule_table_append(struct joule_table *table, const void *row)
{
    /* A chunk that could not be put away when it became full. */
    if (table->filled == table->chunk_rows) {
        if (put_packed(table) < 0)
            return -1;
        next_chunk(table);
    }
    memcpy(table->rows + table->filled * table->row_size, row, table->row_size);
    table->filled++;
    if (table->filled == table->chunk_rows && put_packed(table) == 0)
        next_chunk(table);
    return 0;
}

int joule_table_finish(struct joule_table *table)
{
    joule_chunktree_finish(table->chunks);
    if (table->filled == 0)
        return 0;
    /* Behind the last row lie those of the chunk before. */
    memset(table->rows + table->filled * table->row_size, 0,
           (table->chunk_rows - table->filled) * table->row_size);
    return put_packed(table);
}

/* ---- the image ---- */

/* Eight bytes of the header, in their place. */
static int write_u64(struct joule_table *table, size_t at)
{
    return joule_image_write(table->image, JOULE_IMAGE_HEADER, table->at + at,
                             table->header.bytes + at, 8);
}

static int flush_header(struct joule_table *table)
{
    uint64_t rows = joule_table_rows(table);

    joule_little_put(table->header.bytes + table->rows_at, rows, 8);
    if (table->is_new) {
        if (joule_image_write(table->image, JOULE_IMAGE_HEADER, table->at,
                              table->header.bytes, table->header.used) < 0)
            return -1;
    } else if ((rows != table->told && write_u64(table, table->rows_at) < 0) ||
               (table->is_lost_new && write_u64(table, table->lost_at) < 0)) {
        return -1;
    }
    table->is_new = false;
    table->told = rows;
    table->is_lost_new = false;
    return 0;
}

int joule_table_flush(struct joule_table *table)
{
    if (flush_rows(table) < 0 || joule_chunktree_flush(table->chunks) < 0)
        return -1;
    return flush_header(table);
}

/* ---- a copy ---- */

/* What waits in an image of a file that nobody sees yet. */
#define COPY_MAX ((size_t)1024 * 1024)

struct copy {
    struct joule_table *from, *to;
    unsigned char *bytes; /* of a chunk */
    size_t room;
    size_t waiting;
};

static int copy_chunk(void *arg, size_t size, uint32_t mask, uint64_t at)
{
    struct copy *copy = arg;
    struct joule_table *to = copy->to;

    if (size > copy->room) {
        unsigned char *more = realloc(copy->bytes, size);

        if (!more)
            return -1;
        copy->bytes = more;
        copy->room = size;
    }
    if (joule_image_read(copy->from->image, at, copy->bytes, size) < 0 ||
        put_chunk(to, mask, copy->bytes, size) < 0)
        return -1;
    to->place = JOULE_IMAGE_NOWHERE;
    copy->waiting += size;
    if (copy->waiting < COPY_MAX)
        return 0;
    copy->waiting = 0;
    return joule_image_commit(to->image);
}

struct joule_table *joule_table_copy(struct joule_table *from,
                                     struct joule_image *image)
{
    struct joule_table *to = calloc(1, sizeof(*to));
    struct copy copy = {.from = from, .to = to};
    int rc;

    if (!to)
        return NULL;
    to->image = image;
    to->row_size = from->row_size;
    to->chunk_rows = from->chunk_rows;
    to->rows_at = from->rows_at;
    to->tree_at = from->tree_at;
    to->lost_at = from->lost_at;
    to->place = JOULE_IMAGE_NOWHERE;
    /* Its rows are all in chunks: of those that are being filled, only the
     * number is needed. */
    to->chunk = from->chunk;
    to->filled = to->flushed = from->filled;
    if (joule_header_append(&to->header, &from->header, 0) < 0 ||
        make_places(to) < 0)
        return discard(to);
    rc = joule_chunktree_walk(from->chunks, copy_chunk, &copy);
    free(copy.bytes);
    if (rc < 0)
        return discard(to);
    joule_chunktree_finish(to->chunks);
    return to;
}

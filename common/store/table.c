/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/attribute.h"

struct joule_table {
    struct joule_image *image;
    hid_t set;
    hid_t transfer;
    uint64_t count_at; /* where its header has the number of rows, or
                          JOULE_IMAGE_NOWHERE */
    uint64_t patched;  /* the number that was last put there */
    bool changed;      /* HDF5 was called since its last flush */
    uint64_t floor;    /* its data lies above, and its header below */
    size_t row_size;
    size_t chunk_rows;
    struct joule_pack pack;
    uint64_t chunk; /* number of the chunk that is being filled */
    size_t filled;  /* rows in it */
    size_t flushed; /* of them, rows that are in the image */
    uint64_t at;    /* where it lies unpacked, or JOULE_IMAGE_NOWHERE */
    unsigned char *rows;
    unsigned char *scratch; /* to pack: shuffled, and packed */
    unsigned char *packed;
};

static hid_t make_type(const struct joule_table_options *opt)
{
    size_t size = (opt->count + 3) * 8, i;
    hid_t type = H5Tcreate(H5T_COMPOUND, size);

    if (type < 0)
        return -1;
    if (H5Tinsert(type, "ElapsedTime", 0, H5T_NATIVE_UINT64) < 0 ||
        H5Tinsert(type, "EpochTime", 8, H5T_NATIVE_UINT64) < 0)
        goto fail;
    for (i = 0; i < opt->count; i++)
        if (H5Tinsert(type, opt->fields[i].name, (i + 2) * 8,
                      opt->fields[i].type == JOULE_FIELD_DOUBLE
                          ? H5T_NATIVE_DOUBLE
                          : H5T_NATIVE_UINT64) < 0)
            goto fail;
    if (H5Tinsert(type, "ElapsedTimeNs", size - 8, H5T_NATIVE_UINT64) < 0)
        goto fail;
    return type;
fail:
    H5Tclose(type);
    return -1;
}

/* No time of modification: the header changes with the number of rows only. */
static hid_t make_layout(const struct joule_table_options *opt)
{
    hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t rows = opt->chunk_rows;

    if (layout < 0)
        return -1;
    if (H5Pset_chunk(layout, 1, &rows) >= 0 &&
        H5Pset_fill_time(layout, H5D_FILL_TIME_NEVER) >= 0 &&
        H5Pset_obj_track_times(layout, false) >= 0 &&
        (opt->pack.level == 0 ||
         ((!opt->pack.shuffle || H5Pset_shuffle(layout) >= 0) &&
          H5Pset_deflate(layout, (unsigned)opt->pack.level) >= 0 &&
          H5Pset_fletcher32(layout) >= 0)))
        return layout;
    H5Pclose(layout);
    return -1;
}

static hid_t make_set(hid_t parent, const char *name,
                      const struct joule_table_options *opt)
{
    hsize_t none = 0, unlimited = H5S_UNLIMITED;
    hid_t type = make_type(opt), layout = make_layout(opt);
    hid_t space = H5Screate_simple(1, &none, &unlimited), set = -1;

    if (type >= 0 && layout >= 0 && space >= 0)
        set = H5Dcreate2(parent, name, type, space, H5P_DEFAULT, layout,
                         H5P_DEFAULT);
    if (space >= 0)
        H5Sclose(space);
    if (layout >= 0)
        H5Pclose(layout);
    if (type >= 0)
        H5Tclose(type);
    return set;
}

/* When a node of the index of chunks is full, the next one is begun and none
 * is moved to it: a reader may be about to look for it in the old one. */
static hid_t make_transfer(void)
{
    hid_t transfer = H5Pcreate(H5P_DATASET_XFER);

    if (transfer < 0 || H5Pset_btree_ratios(transfer, 1, 1, 1) >= 0)
        return transfer;
    H5Pclose(transfer);
    return -1;
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

static int set_extent(struct joule_table *table, hsize_t rows)
{
    if (H5Dset_extent(table->set, &rows) >= 0)
        return 0;
    errno = EIO;
    return -1;
}

/*
 * Two numbers that are nowhere else in an object header show where HDF5 writes
 * the number of rows.  The header has no checksum (version 1).
 */
static uint64_t find_count(struct joule_table *table)
{
    static const uint64_t odd[2] = {0x3ac5, 0x35ca};
    uint64_t at[2] = {JOULE_IMAGE_NOWHERE, JOULE_IMAGE_NOWHERE};
    int i;

    for (i = 0; i < 2; i++) {
        if (set_extent(table, odd[i]) < 0 ||
            H5Fflush(table->set, H5F_SCOPE_LOCAL) < 0)
            return JOULE_IMAGE_NOWHERE;
        at[i] = joule_image_find(table->image, &odd[i], sizeof(odd[i]));
    }
    return at[0] == at[1] ? at[0] : JOULE_IMAGE_NOWHERE;
}

struct joule_table *joule_table_create(struct joule_image *image, hid_t parent,
                                       const char *name,
                                       const struct joule_table_options *opt)
{
    struct joule_table *table = calloc(1, sizeof(*table));

    if (!table)
        return NULL;
    table->image = image;
    table->set = -1;
    table->transfer = -1;
    table->row_size = (opt->count + 3) * 8;
    table->chunk_rows = opt->chunk_rows;
    table->pack = opt->pack;
    table->at = JOULE_IMAGE_NOWHERE;
    if (allocate(table) < 0) {
        joule_table_destroy(table);
        errno = ENOMEM;
        return NULL;
    }
    table->set = make_set(parent, name, opt);
    table->transfer = make_transfer();
    if (table->set < 0 || table->transfer < 0 ||
        joule_attribute_u64(table->set, "Joule Period ns", opt->period_ns) <
            0 ||
        joule_attribute_u64(table->set, "Joule Lost Rows", 0) < 0) {
        joule_table_destroy(table);
        errno = EINVAL;
        return NULL;
    }
    table->count_at = find_count(table);
    if (set_extent(table, 0) < 0) {
        joule_table_destroy(table);
        errno = EINVAL;
        return NULL;
    }
    table->changed = true;
    table->floor = joule_image_used(image);
    return table;
}

void joule_table_destroy(struct joule_table *table)
{
    if (!table)
        return;
    if (table->set >= 0)
        H5Dclose(table->set);
    if (table->transfer >= 0)
        H5Pclose(table->transfer);
    free(table->rows);
    free(table->scratch);
    free(table->packed);
    free(table);
}

size_t joule_table_row_size(const struct joule_table *table)
{
    return table->row_size;
}

uint64_t joule_table_rows(const struct joule_table *table)
{
    return table->chunk * table->chunk_rows + table->filled;
}

int joule_table_set_lost(struct joule_table *table, uint64_t rows)
{
    table->changed = true;
    return joule_attribute_set_u64(table->set, "Joule Lost Rows", rows);
}

int joule_table_tell(struct joule_table *table)
{
    if (set_extent(table, joule_table_rows(table)) < 0)
        return -1;
    table->changed = false;
    return 0;
}

int joule_table_patch(struct joule_table *table)
{
    uint64_t rows = joule_table_rows(table);

    if (table->count_at == JOULE_IMAGE_NOWHERE || rows == table->patched)
        return 0;
    if (joule_image_write(table->image, JOULE_IMAGE_HEADER, table->count_at,
                          &rows, sizeof(rows)) < 0)
        return -1;
    table->patched = rows;
    return 0;
}

static int write_chunk(struct joule_table *table, uint32_t mask,
                       const void *bytes, size_t size)
{
    hsize_t first = table->chunk * table->chunk_rows;

    joule_image_set_floor(table->image, table->floor);
    table->changed = true;
    if (set_extent(table, joule_table_rows(table)) < 0 ||
        H5Dwrite_chunk(table->set, table->transfer, mask, &first, size, bytes) <
            0) {
        errno = EIO;
        return -1;
    }
    return 0;
}

static int find_chunk(struct joule_table *table)
{
    hsize_t first = table->chunk * table->chunk_rows, size;
    haddr_t at;
    unsigned mask;

    if (H5Dget_chunk_info_by_coord(table->set, &first, &mask, &at, &size) < 0 ||
        at == HADDR_UNDEF) {
        errno = EIO;
        return -1;
    }
    table->at = at;
    return 0;
}

int joule_table_flush(struct joule_table *table)
{
    size_t row = table->row_size, size = table->chunk_rows * row;

    if (table->filled == table->flushed)
        return table->changed;
    if (table->at == JOULE_IMAGE_NOWHERE) {
        if (write_chunk(table, joule_pack_none(&table->pack), table->rows,
                        size) < 0 ||
            find_chunk(table) < 0)
            return -1;
    } else {
        if (joule_image_write(table->image, JOULE_IMAGE_DATA,
                              table->at + table->flushed * row,
                              table->rows + table->flushed * row,
                              (table->filled - table->flushed) * row) < 0)
            return -1;
        if (table->count_at == JOULE_IMAGE_NOWHERE)
            table->changed = true;
    }
    table->flushed = table->filled;
    return table->changed;
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
        return joule_table_flush(table) < 0 ? -1 : 0;
    if (write_chunk(table, mask, table->packed, length) < 0)
        return -1;
    if (table->at != JOULE_IMAGE_NOWHERE)
        joule_image_release(table->image, table->at, size);
    table->flushed = table->filled;
    return 0;
}

static void next_chunk(struct joule_table *table)
{
    table->chunk++;
    table->filled = 0;
    table->flushed = 0;
    table->at = JOULE_IMAGE_NOWHERE;
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
    if (table->filled == 0)
        return 0;
    /* Behind the last row lie those of the chunk before. */
    memset(table->rows + table->filled * table->row_size, 0,
           (table->chunk_rows - table->filled) * table->row_size);
    return put_packed(table);
}

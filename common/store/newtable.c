/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/newtable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/little.h"

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
    struct joule_tableheader *head = &t->head;

    t->spool = spool;
    t->rows = t->part_rows = 0;
    t->header.used = t->header.messages = 0;
    /* It is large: columns that are not set are not read. */
    memcpy(&t->layout, layout,
           offsetof(struct joule_layout, type) +
               joule_rowtype_bytes(&layout->type));
    t->chunk_rows = stored ? layout->chunk_rows : joule_batch_rows(layout);
    *head = (struct joule_tableheader){
        .row_size = layout->type.size,
        .chunk_rows = t->chunk_rows,
        .filters = stored ? &t->layout.pipeline : NULL,
    };
    if (joule_typecache_get(types, &layout->type, &head->type) < 0 ||
        (!stored && make_part(t) < 0) ||
        joule_tableheader_add(head, &t->header) < 0)
        return -1;
    joule_btree_start(&t->index, JOULE_BTREE_CHUNKS, spool);
    t->is_open = true;
    return 0;
}

/* The chunk lies at [at] already. */
static int add_chunk(struct joule_newtable *t, uint64_t rows, uint32_t mask,
                     size_t len, uint64_t at)
{
    unsigned char key[JOULE_HDF_CHUNK_KEY];

    joule_chunk_key(key, len, mask, t->rows);
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
    unsigned char key[JOULE_HDF_CHUNK_KEY];

    t->is_open = false;
    if (end_part(t) < 0) {
        joule_btree_free(&t->index);
        return -1;
    }
    chunks = (t->rows + t->chunk_rows - 1) / t->chunk_rows;
    joule_chunk_last_key(key, chunks * t->chunk_rows, t->layout.type.size);
    if (t->rows > 0 && joule_btree_finish(&t->index, key, &tree) < 0)
        return -1;
    joule_little_put(t->header.bytes + t->head.rows_at, t->rows, 8);
    joule_little_put(t->header.bytes + t->head.tree_at, tree, 8);
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

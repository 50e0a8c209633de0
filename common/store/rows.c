/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/rows.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/chunkmap.h"

/* A file whose header says that there are chunks without end: after as many
 * in a row that are not there, the rest is given up. */
#define MISSES_MAX 4096

/* Deflate makes 1 byte of at most 1032 (zlib's technical details). */
#define GROWTH_MAX 1040

/* Bytes at a time of a table that is not in chunks. */
#define PIECE_SIZE ((size_t)64 << 10)

struct joule_rows {
    struct joule_layout layout;
    struct joule_windows *windows;
    const struct joule_rows_reader *reader; /* NULL: there is only the map */
    void *arg;                              /* of the reader */
    struct joule_chunkmap map; /* if has_map; else the reader is asked */
    bool has_map;
    struct joule_unfilter *unfilter;
    unsigned char *stored; /* a chunk with its filters */
    unsigned char *chunk;  /* rows of the chunk that is being handed out */
    uint64_t next;         /* row that is read next */
    uint64_t lost;
    uint64_t bytes_left; /* that may still come out of such a file */
    uint64_t at, end;    /* rows of [chunk] not yet handed out */
    uint64_t first;      /* row that [chunk] begins with */
    unsigned misses;
};

static int make_buffers(struct joule_rows *r, struct joule_error *err)
{
    const struct joule_layout *layout = &r->layout;
    size_t raw = (size_t)layout->chunk_rows * layout->type.size;

    if (layout->chunk_rows == 0)
        raw = PIECE_SIZE > layout->type.size ? PIECE_SIZE : layout->type.size;
    r->chunk = malloc(raw);
    if (layout->is_known) {
        r->stored = malloc(joule_unfilter_bound(raw));
        r->unfilter = joule_unfilter_create(&layout->pipeline, raw);
    }
    if (r->chunk && (!layout->is_known || (r->stored && r->unfilter)))
        return 0;
    return joule_error_set(err, ENOMEM, "out of memory");
}

static void free_buffers(struct joule_rows *r)
{
    joule_unfilter_destroy(r->unfilter);
    free(r->stored);
    free(r->chunk);
    r->unfilter = NULL;
    r->stored = r->chunk = NULL;
}

/* Nothing is open, and nothing known but the file and the layout. */
static struct joule_rows *begin(const struct joule_layout *layout,
                                struct joule_windows *windows,
                                struct joule_error *err)
{
    struct joule_rows *r = calloc(1, sizeof(*r));
    uint64_t size = joule_windows_size(windows);

    if (!r) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    r->windows = windows;
    r->bytes_left =
        size > UINT64_MAX / GROWTH_MAX ? UINT64_MAX : size * GROWTH_MAX;
    memcpy(&r->layout, layout,
           offsetof(struct joule_layout, type) +
               joule_rowtype_bytes(&layout->type));
    return r;
}

static void open_map(struct joule_rows *r, uint64_t header)
{
    r->has_map =
        joule_chunkmap_open(&r->map, r->windows, header, r->layout.chunk_rows,
                            r->layout.type.size) == 0;
}

static struct joule_rows *give_up(struct joule_rows *r)
{
    int saved = errno;

    joule_rows_close(r);
    errno = saved;
    return NULL;
}

struct joule_rows *joule_rows_create(const struct joule_layout *layout,
                                     struct joule_windows *windows,
                                     uint64_t header, struct joule_error *err)
{
    struct joule_rows *r = begin(layout, windows, err);

    if (!r)
        return NULL;
    open_map(r, header);
    if (!r->has_map)
        joule_error_set(err, ENOTSUP, "its chunks have another kind of index");
    return r->has_map && make_buffers(r, err) == 0 ? r : give_up(r);
}

struct joule_rows *
joule_rows_create_read(const struct joule_layout *layout,
                       struct joule_windows *windows, uint64_t header,
                       const struct joule_rows_reader *reader, void *arg,
                       struct joule_error *err)
{
    struct joule_rows *r = begin(layout, windows, err);

    if (!r) {
        reader->close(arg);
        errno = ENOMEM;
        return NULL;
    }
    r->reader = reader;
    r->arg = arg;
    if (header != 0 && layout->chunk_rows > 0 && layout->is_known)
        open_map(r, header);
    return make_buffers(r, err) == 0 ? r : give_up(r);
}

void joule_rows_close(struct joule_rows *r)
{
    if (!r)
        return;
    if (r->reader)
        r->reader->close(r->arg);
    free_buffers(r);
    free(r);
}

const struct joule_layout *joule_rows_layout(const struct joule_rows *r)
{
    return &r->layout;
}

uint64_t joule_rows_lost(const struct joule_rows *r)
{
    return r->lost;
}

void joule_rows_rewind(struct joule_rows *r)
{
    r->next = r->lost = r->at = r->end = 0;
    r->misses = 0;
    joule_chunkmap_rewind(&r->map);
}

/* Where the chunk at row [first] is; false: there is none, or the map is of no
 * more use. */
static bool look_up(struct joule_rows *r, uint64_t first, size_t room,
                    struct joule_chunk *ret)
{
    int rc = joule_chunkmap_find(&r->map, first, ret);

    r->has_map = rc >= 0;
    return rc == 1 && ret->size <= room;
}

/* The stored chunk at row [first] to buf; its size, 0 if there is none that
 * could be read. */
static size_t fetch(struct joule_rows *r, uint64_t first, void *buf,
                    size_t room, uint32_t *ret_mask)
{
    struct joule_chunk chunk;

    if (r->has_map && look_up(r, first, room, &chunk)) {
        *ret_mask = chunk.mask;
        return joule_windows_read(r->windows, chunk.at, chunk.size, buf) == 0
                   ? chunk.size
                   : 0;
    }
    if (r->has_map || !r->reader)
        return 0;
    return r->reader->chunk(r->arg, first, buf, room, ret_mask);
}

/* The same, not to a place of one's own if it is at hand. */
static const void *look(struct joule_rows *r, uint64_t first, size_t *ret_len,
                        uint32_t *ret_mask)
{
    size_t raw = (size_t)r->layout.chunk_rows * r->layout.type.size;
    size_t room = joule_unfilter_bound(raw);
    struct joule_chunk chunk;

    if (r->has_map && look_up(r, first, room, &chunk) &&
        chunk.size <= JOULE_WINDOW_MAX) {
        *ret_mask = chunk.mask;
        *ret_len = chunk.size;
        return joule_windows_look(r->windows, chunk.at, chunk.size);
    }
    *ret_len = fetch(r, first, r->stored, room, ret_mask);
    return *ret_len > 0 ? r->stored : NULL;
}

/* How many rows the next chunk has; 0 at the end of the table. */
static uint64_t next_count(const struct joule_rows *r)
{
    const struct joule_layout *layout = &r->layout;
    uint64_t left = layout->rows - r->next;
    uint64_t step = layout->chunk_rows;

    if (step == 0)
        step =
            PIECE_SIZE > layout->type.size ? PIECE_SIZE / layout->type.size : 1;
    return left < step ? left : step;
}

static void miss(struct joule_rows *r, uint64_t count)
{
    r->lost += count;
    r->next += count;
    if (++r->misses < MISSES_MAX)
        return;
    r->lost += r->layout.rows - r->next;
    r->next = r->layout.rows;
}

/* What a file of this size cannot hold is not believed. */
static bool may_come(struct joule_rows *r, uint64_t bytes)
{
    if (bytes <= r->bytes_left) {
        r->bytes_left -= bytes;
        r->misses = 0;
        return true;
    }
    r->lost += r->layout.rows - r->next;
    r->next = r->layout.rows;
    return false;
}

/* [count] rows from [first] on, which is where a chunk begins. */
static int load(struct joule_rows *r, uint64_t first, uint64_t count, void *out)
{
    const void *stored;
    uint32_t mask = 0;
    size_t len;

    if (r->layout.chunk_rows == 0 || !r->layout.is_known)
        return r->reader ? r->reader->rows(r->arg, first, count, out) : -1;
    stored = look(r, first, &len, &mask);
    return stored ? joule_unfilter(r->unfilter, mask, stored, len, out) : -1;
}

/* The next chunk that can be read to [out]; its rows, 0 at the end. */
static uint64_t next_chunk(struct joule_rows *r, void *out)
{
    uint64_t count;

    while ((count = next_count(r)) > 0) {
        if (load(r, r->next, count, out) == 0) {
            if (!may_come(r, count * r->layout.type.size))
                return 0;
            r->next += count;
            return count;
        }
        miss(r, count);
    }
    return 0;
}

/* The chunk in memory, if there is one: after a release, read again. */
static void ensure(struct joule_rows *r)
{
    if (r->chunk)
        return;
    if (make_buffers(r, NULL) < 0) {
        free_buffers(r);
        r->lost += r->layout.rows - r->next + (r->end - r->at);
        r->next = r->layout.rows;
        r->at = r->end = 0;
    } else if (r->at < r->end && load(r, r->first, r->end, r->chunk) < 0) {
        r->lost += r->end - r->at;
        r->at = r->end = 0;
    }
}

void joule_rows_release(struct joule_rows *r)
{
    free_buffers(r);
}

size_t joule_rows_read(struct joule_rows *r, void *buf, size_t room,
                       const void **ret_rows)
{
    size_t row = r->layout.type.size, done = 0;
    uint64_t step = r->layout.chunk_rows;

    *ret_rows = buf;
    ensure(r);
    /* Whole chunks go where they are wanted, as long as there is room. */
    while (r->chunk && r->at == r->end && step > 0 && done + step <= room) {
        uint64_t count = next_chunk(r, (char *)buf + done * row);

        if (count == 0)
            return done;
        done += count;
    }
    if (done > 0)
        return done;
    if (r->at == r->end) {
        r->at = 0;
        r->end = r->chunk ? next_chunk(r, r->chunk) : 0;
        r->first = r->next - r->end;
    }
    if (r->at == r->end)
        return 0;
    done = r->end - r->at < room ? (size_t)(r->end - r->at) : room;
    *ret_rows = r->chunk + r->at * row;
    r->at += done;
    return done;
}

/* The next chunk, where it is one for a run that is as long as this. */
static bool is_plain(struct joule_rows *r, const struct joule_run *run,
                     struct joule_chunk *ret)
{
    size_t raw = (size_t)r->layout.chunk_rows * r->layout.type.size;
    uint64_t size = joule_windows_size(r->windows);

    return r->has_map && raw <= JOULE_RUN_MAX - run->len && next_count(r) > 0 &&
           look_up(r, r->next, raw, ret) &&
           joule_unfilter_is_plain(r->unfilter, ret->mask, ret->size) &&
           ret->at <= size && ret->size <= size - ret->at &&
           (run->len == 0 ||
            (ret->at == run->at + run->len && ret->mask == run->mask));
}

bool joule_rows_skip_plain(struct joule_rows *r, struct joule_run *ret)
{
    struct joule_run run = {0};
    struct joule_chunk chunk;

    while (is_plain(r, &run, &chunk) && may_come(r, chunk.size)) {
        uint64_t count = next_count(r);

        if (run.len == 0) {
            run.at = chunk.at;
            run.mask = chunk.mask;
        }
        run.len += chunk.size;
        run.rows += count;
        r->next += count;
    }
    *ret = run;
    return run.len > 0;
}

size_t joule_rows_read_stored(struct joule_rows *r, void *buf, size_t room,
                              uint64_t *ret_first, uint32_t *ret_mask)
{
    uint64_t count;

    while ((count = next_count(r)) > 0) {
        size_t len = fetch(r, r->next, buf, room, ret_mask);

        if (len > 0 &&
            joule_unfilter_check(r->unfilter, *ret_mask, buf, len) == 0) {
            if (!may_come(r, len))
                return 0;
            *ret_first = r->next;
            r->next += count;
            return len;
        }
        miss(r, count);
    }
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/profile/convert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/profile/hdf5_driver.h"
#include "common/profile/log.h"

#define FORMAT 1

/* Rows of a chunk: some minutes at the usual rates, and little memory for a
 * node with a hundred tasks; at high rates half a minute. */
#define CHUNK_ROWS     256
#define CHUNK_ROWS_MAX 4096
#define CHUNK_NS       (40 * JOULE_NS_PER_S)

/* A table with fewer rows than a chunk has a smaller one. */
#define CHUNK_ROWS_MIN 64

/* Rows that a buffer has room for at first. */
#define BUFFER_ROWS 16

struct table {
    char *name;
    int64_t period_ns;
    hid_t type;
    hid_t set; /* made with the first chunk that is full, or at the end */
    size_t row_bytes;
    uint64_t rows; /* in the data set */
    uint64_t lost;
    size_t chunk;  /* rows of a chunk */
    size_t filled; /* rows in the buffer, that begin the next chunk */
    size_t room;   /* rows */
    unsigned char *buffer;
};

struct convert {
    struct joule_log_reader *log;
    hid_t file, group;
    struct table *tables;
    uint32_t count;
    struct joule_log_state state; /* lost_of is not kept */
    uint64_t rows;
};

/* The sentence is about the disk if a write has failed, else from libhdf5. */
static int fail(const struct convert *c, const char *what,
                struct joule_error *err)
{
    int error = c->file >= 0 ? joule_hdf5_write_error(c->file) : 0;

    if (!error)
        return joule_hdf5_error(err, EIO, "%s", what);
    return joule_error_set(err, error, "the HDF5 file cannot be written: %s",
                           strerror(error));
}

/* ---- attributes ---- */

static int put_i32(hid_t object, const char *name, uint32_t value)
{
    return joule_hdf5_put_attribute(object, name, H5T_STD_I32LE,
                                    H5T_NATIVE_UINT32, &value);
}

static int put_u64(hid_t object, const char *name, uint64_t value)
{
    return joule_hdf5_put_attribute(object, name, H5T_STD_U64LE,
                                    H5T_NATIVE_UINT64, &value);
}

/* As Slurm's: of the length of the text.  There is no string of none. */
static int put_text(hid_t object, const char *name, const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    int rc = -1;

    if (H5Tset_size(type, strlen(text) ? strlen(text) : 1) >= 0)
        rc = joule_hdf5_put_attribute(object, name, type, type, text);
    H5Tclose(type);
    return rc;
}

static int put_attributes(hid_t group, const struct joule_profile_facts *f,
                          const struct joule_log_state *s)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"Joule Format", FORMAT},
        {"Joule Start Wall ns", (uint64_t)f->start_wall_ns},
        {"Joule Start Boot ns", (uint64_t)f->start_boot_ns},
        {"Joule End ns", (uint64_t)s->end_ns},
        {"Joule End Wall ns", (uint64_t)s->end_wall_ns},
        {"Joule Run", f->run},
        {"Joule Missed Periods", s->missed},
        {"Joule Lost Rows", s->lost_rows},
        {"Joule Lost First ns", s->lost_first_ns},
        {"Joule Lost Last ns", s->lost_last_ns},
        {"Joule Lost Error", (uint64_t)s->lost_error},
    };
    int rc = put_i32(group, "Node Index", f->node_index) |
             put_text(group, "Node Name", f->node) |
             put_i32(group, "Number of Tasks", f->tasks) |
             put_i32(group, "CPUs per Task", f->cpus_per_task) |
             put_text(group, "Start Time", f->start) |
             put_text(group, "Joule Writer", f->writer);

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        rc |= put_u64(group, numbers[i].name, numbers[i].value);
    return rc;
}

/* ---- tables ---- */

static size_t chunk_rows(const struct joule_profile_facts *facts,
                         int64_t period_ns)
{
    size_t rows = CHUNK_ROWS;

    if (facts->chunk_rows)
        return facts->chunk_rows;
    if (period_ns > 0)
        while (rows < CHUNK_ROWS_MAX && period_ns < CHUNK_NS / (int64_t)rows)
            rows *= 2;
    return rows;
}

static hid_t make_type(const struct joule_log_table *def)
{
    hid_t type =
        H5Tcreate(H5T_COMPOUND, (joule_log_cells(def) + JOULE_ROW_TIMES) * 8);
    hid_t text = H5Tcopy(H5T_C_S1);
    const hid_t types[] = {H5T_STD_U64LE, H5T_IEEE_F64LE, text};
    herr_t rc = H5Tset_size(text, JOULE_TEXT_CELLS * 8);
    size_t at = 16;

    rc |= H5Tinsert(type, "ElapsedTime", 0, H5T_STD_U64LE);
    rc |= H5Tinsert(type, "EpochTime", 8, H5T_STD_U64LE);
    for (size_t i = 0; i < def->count; i++) {
        hid_t of = types[def->fields[i].type];

        rc |= H5Tinsert(type, def->fields[i].name, at, of);
        at += H5Tget_size(of);
    }
    rc |= H5Tinsert(type, "ElapsedTimeNs", at, H5T_STD_U64LE);
    H5Tclose(text);
    if (rc >= 0)
        return type;
    H5Tclose(type);
    return -1;
}

/* The checksum stands last, over the packed bytes. */
static herr_t set_filters(hid_t list, const struct joule_pack *pack)
{
    if (pack->level == 0)
        return 0;
    if (pack->shuffle && H5Pset_shuffle(list) < 0)
        return -1;
    if (H5Pset_deflate(list, (unsigned)pack->level) < 0)
        return -1;
    return H5Pset_fletcher32(list);
}

/* Chunks are written whole and not read again, so that none is cached. */
static hid_t make_set(const struct convert *c, const struct table *table)
{
    hsize_t none = 0, unlimited = H5S_UNLIMITED, rows = table->chunk;
    hid_t space = H5Screate_simple(1, &none, &unlimited);
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    hid_t link = H5Pcreate(H5P_LINK_CREATE), set = -1;

    if (H5Pset_chunk(create, 1, &rows) >= 0 &&
        set_filters(create, &joule_log_facts(c->log)->pack) >= 0 &&
        H5Pset_chunk_cache(access, 1, 0, 0) >= 0 &&
        H5Pset_create_intermediate_group(link, 1) >= 0)
        set = H5Dcreate2(c->group, table->name, table->type, space, link,
                         create, access);
    H5Pclose(link);
    H5Pclose(access);
    H5Pclose(create);
    H5Sclose(space);
    return set;
}

static int add_table(struct convert *c, const struct joule_log_table *def,
                     struct joule_error *err)
{
    struct table *table = reallocarray(c->tables, c->count + 1, sizeof(*table));

    if (!table)
        return joule_error_set(err, ENOMEM, "out of memory");
    c->tables = table;
    table += c->count++;
    *table = (struct table){
        .name = strdup(def->name),
        .period_ns = def->period_ns,
        .type = make_type(def),
        .set = -1,
        .row_bytes = (joule_log_cells(def) + JOULE_ROW_TIMES) * 8,
        .chunk = chunk_rows(joule_log_facts(c->log), def->period_ns),
    };
    if (!table->name)
        return joule_error_set(err, ENOMEM, "out of memory");
    if (table->type < 0)
        return fail(c, "cannot make a table", err);
    return 0;
}

/* Append the rows of the buffer to the data set. */
static int write_chunk(const struct convert *c, struct table *table,
                       struct joule_error *err)
{
    if (table->set < 0)
        table->set = make_set(c, table);
    if (table->set < 0)
        return fail(c, "cannot make a table", err);
    if (table->filled > 0 &&
        joule_hdf5_append(table->set, table->type, table->rows, table->buffer,
                          table->filled) < 0)
        return fail(c, "cannot write to a table", err);
    table->rows += table->filled;
    table->filled = 0;
    return 0;
}

static void close_table(struct table *table)
{
    joule_hdf5_release(table->set);
    joule_hdf5_release(table->type);
    table->set = table->type = -1;
    free(table->buffer);
    table->buffer = NULL;
    free(table->name);
    table->name = NULL;
}

/* Write the last rows and close the table: libhdf5 has some 50 KB for each that
 * is open. */
static int finish_table(const struct convert *c, struct table *table,
                        struct joule_error *err)
{
    size_t chunk = CHUNK_ROWS_MIN;

    while (chunk < table->filled)
        chunk *= 2;
    if (table->set < 0 && chunk < table->chunk &&
        !joule_log_facts(c->log)->chunk_rows)
        table->chunk = chunk;
    if (write_chunk(c, table, err) < 0)
        return -1;
    if (put_u64(table->set, "Joule Period ns", (uint64_t)table->period_ns) <
            0 ||
        put_u64(table->set, "Joule Lost Rows", table->lost) < 0)
        return fail(c, "cannot write an attribute", err);
    close_table(table);
    return 0;
}

static int make_room(struct table *table)
{
    size_t room = table->room ? 2 * table->room : BUFFER_ROWS;
    unsigned char *more;

    if (room > table->chunk)
        room = table->chunk;
    more = reallocarray(table->buffer, room, table->row_bytes);
    if (!more)
        return -1;
    table->buffer = more;
    table->room = room;
    return 0;
}

static int add_rows(struct convert *c, struct joule_error *err)
{
    const void *row;
    uint32_t number;

    while ((row = joule_log_row(c->log, &number))) {
        struct table *table = &c->tables[number];

        if (table->filled == table->room && make_room(table) < 0)
            return joule_error_set(err, ENOMEM, "out of memory");
        memcpy(table->buffer + table->filled * table->row_bytes, row,
               table->row_bytes);
        table->filled++;
        c->rows++;
        if (table->filled == table->chunk && write_chunk(c, table, err) < 0)
            return -1;
    }
    if (joule_hdf5_write_error(c->file))
        return fail(c, "", err);
    return 0;
}

/* ---- the file ---- */

static void keep_state(struct convert *c, const struct joule_log_state *state)
{
    c->state = *state;
    for (size_t i = 0; i < state->table_count; i++)
        c->tables[i].lost = state->lost_of[i];
}

static int begin(struct convert *c, int out_fd, struct joule_error *err)
{
    const struct joule_profile_facts *facts = joule_log_facts(c->log);
    char name[JOULE_NAME_MAX + 16];

    c->file = joule_hdf5_create_fd(out_fd, err);
    if (c->file < 0)
        return -1;
    snprintf(name, sizeof(name), facts->run ? "%s.r%u" : "%s", facts->node,
             (unsigned)facts->run);
    c->group = H5Gcreate2(c->file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (c->group < 0)
        return fail(c, "cannot make the node's group", err);
    return 0;
}

static int copy_blocks(struct convert *c, struct joule_error *err)
{
    struct joule_log_block block;
    int rc;

    while ((rc = joule_log_next(c->log, &block, err)) > 0) {
        if (block.kind == JOULE_LOG_STATE)
            keep_state(c, &block.state);
        else if (block.kind == JOULE_LOG_TABLE)
            rc = add_table(c, &block.table, err);
        else
            rc = add_rows(c, err);
        if (rc < 0)
            return -1;
    }
    return rc;
}

static int finish(struct convert *c, struct joule_error *err)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (finish_table(c, &c->tables[i], err) < 0)
            return -1;
    if (put_attributes(c->group, joule_log_facts(c->log), &c->state) < 0)
        return fail(c, "cannot write an attribute", err);
    return 0;
}

static int destroy(struct convert *c, int rc, struct joule_error *err)
{
    int saved = errno;

    for (uint32_t i = 0; i < c->count; i++)
        close_table(&c->tables[i]);
    free(c->tables);
    joule_hdf5_release(c->group);
    joule_log_close(c->log);
    errno = saved;
    if (rc == 0)
        return joule_hdf5_close(c->file, err);
    joule_hdf5_close(c->file, NULL);
    errno = saved;
    return rc;
}

int joule_profile_convert(int log_fd, int out_fd,
                          struct joule_convert_result *ret,
                          struct joule_error *err)
{
    struct convert c = {.file = -1, .group = -1};
    int rc;

    c.log = joule_log_open(log_fd, err);
    if (!c.log)
        return -1;
    rc = begin(&c, out_fd, err);
    if (rc == 0)
        rc = copy_blocks(&c, err);
    if (rc == 0)
        rc = finish(&c, err);
    if (rc == 0)
        *ret = (struct joule_convert_result){
            .is_ended = c.state.end_ns != 0,
            .rows = c.rows,
            .bytes_left_out = joule_log_left_out(c.log),
        };
    return destroy(&c, rc, err);
}

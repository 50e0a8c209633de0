/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/profile/hdf5_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile/hdf5_driver.h"

/* A header may say that there are chunks without end: after as many in a row
 * that are not there, the rest is given up. */
#define MISSES_MAX 4096

/* A damaged index may name one chunk for all rows: more than so many times the
 * size of the file does not come out of it.  (Deflate makes 1 byte of at most
 * 1,032: zlib's technical details.) */
#define GROWTH_MAX 1040

/* Bytes at a time of a table that is not in chunks. */
#define PIECE_SIZE ((size_t)64 << 10)

#define DEPTH_MAX   16
#define OBJECTS_MAX 1000000

/* ---- the columns ---- */

static bool is_sound(const struct joule_column *c, uint32_t row_size,
                     bool is_named)
{
    return memchr(c->name, '\0', sizeof(c->name)) &&
           (c->name[0] != '\0') == is_named && c->kind <= JOULE_KIND_OPAQUE &&
           (c->kind > JOULE_KIND_FLOAT || c->size == 8) && c->size > 0 &&
           c->size <= row_size && c->offset <= row_size - c->size;
}

int joule_rowtype_check(const struct joule_rowtype *type, size_t bytes)
{
    bool sound = bytes >= offsetof(struct joule_rowtype, column) &&
                 type->count >= 1 && type->count <= JOULE_COLUMNS_MAX &&
                 type->size >= 1 && type->size <= JOULE_ROW_MAX &&
                 type->is_compound <= 1 &&
                 (type->is_compound || type->count == 1) &&
                 bytes == joule_rowtype_bytes(type);

    for (uint32_t i = 0; sound && i < type->count; i++)
        sound = is_sound(&type->column[i], type->size, type->is_compound == 1);
    if (sound)
        return 0;
    errno = EBADMSG;
    return -1;
}

const struct joule_column *joule_rowtype_find(const struct joule_rowtype *type,
                                              const char *name)
{
    for (uint32_t i = 0; i < type->count; i++)
        if (strcmp(type->column[i].name, name) == 0)
            return &type->column[i];
    return NULL;
}

/* What a column of [type] is read into, and its kind.  The formats are taken bit
 * for bit: what only looks alike is bytes. */
static hid_t memory_type(hid_t type, struct joule_column *column)
{
    const hid_t in_file[][8] = {
        {H5T_STD_U64LE, H5T_STD_U32LE, H5T_STD_U16LE, H5T_STD_U8LE,
         H5T_STD_U64BE, H5T_STD_U32BE, H5T_STD_U16BE, H5T_STD_U8BE},
        {H5T_STD_I64LE, H5T_STD_I32LE, H5T_STD_I16LE, H5T_STD_I8LE,
         H5T_STD_I64BE, H5T_STD_I32BE, H5T_STD_I16BE, H5T_STD_I8BE},
        {H5T_IEEE_F64LE, H5T_IEEE_F32LE, H5T_IEEE_F64BE, H5T_IEEE_F32BE}};
    const hid_t numbers[] = {H5T_NATIVE_UINT64, H5T_NATIVE_INT64,
                             H5T_NATIVE_DOUBLE};

    for (uint32_t kind = 0; kind <= JOULE_KIND_FLOAT; kind++)
        for (int i = 0; i < 8 && in_file[kind][i]; i++)
            if (H5Tequal(type, in_file[kind][i]) > 0) {
                column->kind = kind;
                return H5Tcopy(numbers[kind]);
            }
    column->kind = H5Tget_class(type) == H5T_STRING ? JOULE_KIND_STRING
                                                    : JOULE_KIND_OPAQUE;
    return H5Tcopy(type);
}

/* Text, sequences and references point to other places of the file. */
static bool has_pointers(hid_t type)
{
    return H5Tdetect_class(type, H5T_VLEN) != 0 ||
           H5Tdetect_class(type, H5T_REFERENCE) != 0 ||
           (H5Tget_class(type) == H5T_STRING
                ? H5Tis_variable_str(type) != 0
                : H5Tget_class(type) != H5T_COMPOUND &&
                      H5Tdetect_class(type, H5T_STRING) != 0);
}

/* Column [i] of [type], put at the end of a row in [memory]. */
static int read_member(hid_t type, unsigned i, hid_t memory,
                       struct joule_rowtype *row, struct joule_error *err)
{
    struct joule_column *column = &row->column[i];
    hid_t member = H5Tget_member_type(type, i), as = -1;
    char *name = H5Tget_member_name(type, i);
    int rc = -1;

    memset(column, 0, sizeof(*column));
    if (member < 0 || !name) {
        joule_hdf5_error(err, EBADMSG, "a column has no name or no type");
    } else if (!*name || strlen(name) >= sizeof(column->name)) {
        joule_error_set(err, ENOTSUP,
                        "the name of a column is too long or empty");
    } else if (has_pointers(member)) {
        joule_error_set(err, ENOTSUP, "a column is of no fixed length");
    } else {
        strcpy(column->name, name);
        as = memory_type(member, column);
        column->offset = row->size;
        column->size = (uint32_t)H5Tget_size(as);
        row->size += column->size;
        rc = H5Tinsert(memory, name, column->offset, as) < 0
                 ? joule_hdf5_error(err, EBADMSG, "its columns are damaged")
                 : 0;
    }
    joule_hdf5_release(as);
    joule_hdf5_release(member);
    H5free_memory(name);
    return rc;
}

static int read_members(struct joule_hdf5_table *t, hid_t type,
                        struct joule_rowtype *row, struct joule_error *err)
{
    int count = H5Tget_nmembers(type);

    if (count <= 0 || count > JOULE_COLUMNS_MAX)
        return joule_error_set(err, ENOTSUP,
                               "a table has %d columns (up to %d are read)",
                               count, JOULE_COLUMNS_MAX);
    t->memory =
        H5Tcreate(H5T_COMPOUND, t->file_row + (size_t)count * sizeof(uint64_t));
    for (int i = 0; i < count; i++)
        if (read_member(type, (unsigned)i, t->memory, row, err) < 0)
            return -1;
    row->count = (uint32_t)count;
    return H5Tset_size(t->memory, row->size) < 0
               ? joule_hdf5_error(err, EBADMSG, "its columns are damaged")
               : 0;
}

static int read_rowtype(struct joule_hdf5_table *t, hid_t type,
                        struct joule_rowtype *row, struct joule_error *err)
{
    t->file_row = H5Tget_size(type);
    /* It is large: columns are cleared as they are filled. */
    memset(row, 0, offsetof(struct joule_rowtype, column));
    if (t->file_row == 0 || t->file_row > JOULE_ROW_MAX)
        return joule_error_set(err, ENOTSUP,
                               "a row of %zu bytes (up to %d are read)",
                               t->file_row, JOULE_ROW_MAX);
    if (has_pointers(type))
        return joule_error_set(err, ENOTSUP, "its rows are of no fixed length");
    if (H5Tget_class(type) == H5T_COMPOUND) {
        row->is_compound = 1;
        if (read_members(t, type, row, err) < 0)
            return -1;
    } else {
        memset(&row->column[0], 0, sizeof(row->column[0]));
        t->memory = memory_type(type, &row->column[0]);
        row->size = row->column[0].size = (uint32_t)H5Tget_size(t->memory);
        row->count = 1;
    }
    if (joule_rowtype_check(row, joule_rowtype_bytes(row)) < 0)
        return joule_error_set(err, EBADMSG,
                               "the columns of a table overlap "
                               "or leave its rows");
    return 0;
}

/* There may be thousands of tables open, and a joule_rowtype is large. */
static int keep_rowtype(struct joule_hdf5_table *t, hid_t type,
                        struct joule_error *err)
{
    struct joule_rowtype *row = malloc(sizeof(*row)), *kept = NULL;
    int rc = row ? read_rowtype(t, type, row, err)
                 : joule_error_set(err, ENOMEM, "out of memory");

    if (rc == 0) {
        kept = realloc(row, joule_rowtype_bytes(row));
        t->row = kept ? kept : row;
    } else {
        free(row);
    }
    return rc;
}

/* ---- a table ---- */

static int read_chunks(struct joule_hdf5_table *t, hid_t list,
                       struct joule_error *err)
{
    size_t row = t->file_row > t->row->size ? t->file_row : t->row->size;
    hsize_t chunk_rows = 0;

    if (H5Pget_chunk(list, 1, &chunk_rows) != 1 || chunk_rows == 0)
        return joule_hdf5_error(err, EBADMSG, "its chunks are damaged");
    if (chunk_rows > JOULE_CHUNK_MAX / row)
        return joule_error_set(err, ENOTSUP,
                               "a chunk of %llu rows is too large to be read",
                               (unsigned long long)chunk_rows);
    if (H5Pall_filters_avail(list) <= 0)
        return joule_hdf5_error(err, ENOTSUP,
                                "its filters are not available here");
    t->chunk_rows = chunk_rows;
    return 0;
}

static int read_layout(struct joule_hdf5_table *t, hid_t type, hid_t list,
                       struct joule_error *err)
{
    hsize_t rows = 0;

    if (H5Sget_simple_extent_ndims(t->space) != 1 ||
        H5Sget_simple_extent_dims(t->space, &rows, NULL) != 1)
        return joule_error_set(err, ENOTSUP, "it has not one dimension");
    t->rows = rows;
    if (keep_rowtype(t, type, err) < 0)
        return -1;
    switch (H5Pget_layout(list)) {
    case H5D_CONTIGUOUS:
    case H5D_COMPACT:
        if (H5Pget_external_count(list) != 0)
            return joule_error_set(err, ENOTSUP, "its data is in another file");
        t->is_stored = H5Dget_storage_size(t->dataset) > 0;
        return 0;
    case H5D_CHUNKED:
        return read_chunks(t, list, err);
    default:
        return joule_error_set(err, ENOTSUP, "its data is in other files");
    }
}

static int open_table(struct joule_hdf5_table *t, hid_t parent,
                      const char *path, struct joule_error *err)
{
    hid_t list = -1, type = -1;
    uint64_t size;
    int rc = -1;

    t->dataset = H5Dopen2(parent, path, H5P_DEFAULT);
    if (t->dataset >= 0) {
        list = H5Dget_create_plist(t->dataset);
        t->space = H5Dget_space(t->dataset);
        type = H5Dget_type(t->dataset);
    }
    if (list < 0 || t->space < 0 || type < 0)
        joule_hdf5_error(err, EBADMSG, "it cannot be opened");
    else
        rc = read_layout(t, type, list, err);
    joule_hdf5_release(list);
    joule_hdf5_release(type);
    size = t->dataset < 0 ? 0 : joule_hdf5_size(t->dataset);
    t->bytes_left =
        size > UINT64_MAX / GROWTH_MAX ? UINT64_MAX : size * GROWTH_MAX;
    return rc;
}

struct joule_hdf5_table *joule_hdf5_table_open(hid_t parent, const char *path,
                                               struct joule_error *err)
{
    struct joule_hdf5_table *t = calloc(1, sizeof(*t));

    if (!t) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    t->dataset = t->space = t->memory = -1;
    if (open_table(t, parent, path, err) == 0)
        return t;
    joule_hdf5_table_close(t);
    return NULL;
}

void joule_hdf5_table_close(struct joule_hdf5_table *t)
{
    int saved = errno;

    if (!t)
        return;
    joule_hdf5_release(t->memory);
    joule_hdf5_release(t->space);
    joule_hdf5_release(t->dataset);
    H5Eclear2(H5E_DEFAULT);
    free((void *)t->row);
    free(t);
    errno = saved;
}

uint64_t joule_hdf5_table_missing(const struct joule_hdf5_table *t)
{
    uint64_t wanted;
    hsize_t there = 0;

    if (t->chunk_rows == 0)
        return t->is_stored ? 0 : t->rows;
    wanted = t->rows / t->chunk_rows + (t->rows % t->chunk_rows != 0);
    if (H5Dget_num_chunks(t->dataset, t->space, &there) < 0) {
        H5Eclear2(H5E_DEFAULT);
        return t->rows;
    }
    if (there >= wanted)
        return 0;
    return there == 0 ? t->rows : (wanted - there) * t->chunk_rows;
}

size_t joule_hdf5_table_batch(const struct joule_hdf5_table *t, size_t bytes)
{
    size_t rows = bytes / t->row->size;

    if (rows < t->chunk_rows)
        rows = (size_t)t->chunk_rows;
    return rows > 0 ? rows : 1;
}

/* ---- its rows ---- */

/* Whether there is a chunk for each of these rows: libhdf5 makes up rows where
 * there is none. */
static bool are_stored(const struct joule_hdf5_table *t, uint64_t first,
                       uint64_t count)
{
    uint64_t end = first + count;

    if (t->chunk_rows == 0)
        return t->is_stored;
    first -= first % t->chunk_rows;
    for (; first < end; first += t->chunk_rows) {
        hsize_t offset = first, size = 0;

        if (H5Dget_chunk_storage_size(t->dataset, &offset, &size) < 0) {
            H5Eclear2(H5E_DEFAULT);
            return false;
        }
        if (size == 0)
            return false;
    }
    return true;
}

static int load(const struct joule_hdf5_table *t, uint64_t first,
                uint64_t count, void *buf)
{
    hsize_t start = first, length = count;
    herr_t rc = -1;
    hid_t memory;

    if (!are_stored(t, first, count))
        return -1;
    memory = H5Screate_simple(1, &length, NULL);
    if (memory >= 0 && H5Sselect_hyperslab(t->space, H5S_SELECT_SET, &start,
                                           NULL, &length, NULL) >= 0)
        rc = H5Dread(t->dataset, t->memory, memory, t->space, H5P_DEFAULT, buf);
    joule_hdf5_release(memory);
    if (rc < 0)
        H5Eclear2(H5E_DEFAULT);
    return rc < 0 ? -1 : 0;
}

/* Rows from the next one to the end of its chunk. */
static uint64_t rest_of_chunk(const struct joule_hdf5_table *t)
{
    uint64_t step = t->chunk_rows, left = t->rows - t->next, rest;

    if (step == 0)
        step = joule_hdf5_table_batch(t, PIECE_SIZE);
    rest = step - t->next % step;
    return rest < left ? rest : left;
}

/* The next rows that are read together: whole chunks, or a part of one. */
static uint64_t next_count(const struct joule_hdf5_table *t, size_t room)
{
    uint64_t count = rest_of_chunk(t), left = t->rows - t->next;

    if (count >= room)
        return room;
    if (t->chunk_rows > 0)
        count += (room - count) / t->chunk_rows * t->chunk_rows;
    return count < left ? count : left;
}

static void miss(struct joule_hdf5_table *t, uint64_t count)
{
    if (++t->misses >= MISSES_MAX)
        count = t->rows - t->next;
    t->lost += count;
    t->next += count;
}

static size_t take(struct joule_hdf5_table *t, uint64_t count)
{
    uint64_t bytes = count * t->file_row;

    if (bytes > t->bytes_left) {
        t->lost += t->rows - t->next;
        t->next = t->rows;
        return 0;
    }
    t->bytes_left -= bytes;
    t->misses = 0;
    t->next += count;
    return (size_t)count;
}

size_t joule_hdf5_table_read(struct joule_hdf5_table *t, void *buf, size_t room)
{
    while (room > 0 && t->next < t->rows) {
        uint64_t count = next_count(t, room), rest = rest_of_chunk(t);

        if (load(t, t->next, count, buf) == 0)
            return take(t, count);
        /* Which of the chunks is it? */
        if (count > rest && load(t, t->next, rest, buf) == 0)
            return take(t, rest);
        miss(t, rest);
    }
    return 0;
}

/* ---- what is in a group ---- */

bool joule_hdf5_is_name(const char *name)
{
    return *name != '\0' && strcmp(name, ".") != 0 &&
           strlen(name) < JOULE_PROFILE_NAME_MAX && !strchr(name, '/');
}

struct walk {
    const struct joule_hdf5_visitor *visitor;
    struct joule_error *err;
    unsigned objects;
    const char *step; /* of a job file */
    int errnum;       /* why the walk ended; 0: it has not */
};

static int end_walk(struct walk *w)
{
    w->errnum = errno ? errno : EIO;
    return -1;
}

static int note(struct walk *w, const char *path, const char *sentence)
{
    const struct joule_hdf5_visitor *v = w->visitor;

    H5Eclear2(H5E_DEFAULT);
    if (!v->note || v->note(v->arg, path, sentence, w->err) == 0)
        return 0;
    return end_walk(w);
}

static unsigned depth_of(const char *path)
{
    unsigned depth = 1;

    for (; *path; path++)
        depth += *path == '/';
    return depth;
}

static int visit_table(struct walk *w, hid_t group, const char *path)
{
    const struct joule_hdf5_visitor *v = w->visitor;
    struct joule_error why;
    struct joule_hdf5_table *table = joule_hdf5_table_open(group, path, &why);
    int rc;

    if (!table)
        return note(w, path, why.text);
    rc = v->table(v->arg, path, table, w->err) < 0 ? end_walk(w) : 0;
    joule_hdf5_table_close(table);
    return rc;
}

static herr_t visit_link(hid_t group, const char *path, const H5L_info_t *info,
                         void *arg)
{
    const char *slash = strrchr(path, '/');
    struct walk *w = arg;
    H5O_info_t object;

    if (++w->objects > OBJECTS_MAX || depth_of(path) > DEPTH_MAX) {
        joule_error_set(w->err, E2BIG, "too many objects in a group");
        return end_walk(w);
    }
    if (strlen(path) >= JOULE_PROFILE_PATH_MAX ||
        !joule_hdf5_is_name(slash ? slash + 1 : path))
        return note(w, path, "an object with such a name is left out");
    if (info->type != H5L_TYPE_HARD)
        return note(w, path, "a link to another place is not followed");
#if H5_VERSION_GE(1, 10, 3)
    if (H5Oget_info_by_name2(group, path, &object, H5O_INFO_BASIC,
                             H5P_DEFAULT) < 0)
#else
    if (H5Oget_info_by_name(group, path, &object, H5P_DEFAULT) < 0)
#endif
        return note(w, path, "it cannot be opened");
    if (object.type == H5O_TYPE_GROUP)
        return 0;
    if (object.type == H5O_TYPE_DATASET)
        return visit_table(w, group, path);
    return note(w, path, "it is neither a group nor a table");
}

static int walk_group(struct walk *w, hid_t group)
{
    if (H5Lvisit(group, H5_INDEX_NAME, H5_ITER_INC, visit_link, w) >= 0)
        return 0;
    if (w->errnum)
        return -1;
    return note(w, NULL, "a group cannot be listed to its end");
}

static int end(const struct walk *w, int rc)
{
    H5Eclear2(H5E_DEFAULT);
    if (rc < 0)
        errno = w->errnum;
    return rc;
}

int joule_hdf5_walk(hid_t group, const struct joule_hdf5_visitor *visitor,
                    struct joule_error *err)
{
    struct walk w = {.visitor = visitor, .err = err};

    return end(&w, walk_group(&w, group));
}

/* ---- what is in a job file ---- */

/* A group of a job file; negative: it cannot be opened, which is noted. */
static hid_t open_member(struct walk *w, hid_t group, const char *name,
                         const H5L_info_t *info)
{
    hid_t member = -1;

    if (info->type == H5L_TYPE_HARD && joule_hdf5_is_name(name))
        member = H5Gopen2(group, name, H5P_DEFAULT);
    if (member < 0)
        note(w, name, "it cannot be opened");
    return member;
}

static int list_group(struct walk *w, hid_t group, const char *name,
                      herr_t (*each)(hid_t, const char *, const H5L_info_t *,
                                     void *))
{
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, each, w) >= 0)
        return 0;
    if (w->errnum)
        return -1;
    return note(w, name, "it cannot be listed to its end");
}

static herr_t visit_node(hid_t nodes, const char *name, const H5L_info_t *info,
                         void *arg)
{
    struct walk *w = arg;
    hid_t node = open_member(w, nodes, name, info);
    int rc;

    if (node < 0)
        return w->errnum ? -1 : 0;
    w->objects = 0;
    rc = w->visitor->node(w->visitor->arg, w->step, name, node, w->err);
    rc = rc < 0 ? end_walk(w) : walk_group(w, node);
    H5Gclose(node);
    return rc;
}

static herr_t visit_step(hid_t steps, const char *name, const H5L_info_t *info,
                         void *arg)
{
    struct walk *w = arg;
    hid_t step = open_member(w, steps, name, info), nodes;
    int rc;

    if (step < 0)
        return w->errnum ? -1 : 0;
    w->step = name;
    nodes = H5Gopen2(step, "Nodes", H5P_DEFAULT);
    rc = nodes < 0 ? note(w, name, "it has no nodes")
                   : list_group(w, nodes, name, visit_node);
    joule_hdf5_release(nodes);
    H5Gclose(step);
    return rc;
}

int joule_hdf5_walk_job(hid_t file, const struct joule_hdf5_visitor *visitor,
                        struct joule_error *err)
{
    struct walk w = {.visitor = visitor, .err = err};
    hid_t steps = H5Gopen2(file, "/Steps", H5P_DEFAULT);
    int rc = 0;

    if (steps >= 0) {
        rc = list_group(&w, steps, "Steps", visit_step);
        H5Gclose(steps);
    }
    return end(&w, rc);
}

int joule_hdf5_read_number(hid_t object, const char *name, uint64_t *ret)
{
    hid_t id = -1, type = -1, space = -1;
    uint64_t value = 0;
    int rc = -1;

    if (H5Aexists(object, name) > 0)
        id = H5Aopen(object, name, H5P_DEFAULT);
    if (id >= 0) {
        type = H5Aget_type(id);
        space = H5Aget_space(id);
    }
    if (type >= 0 && space >= 0 && H5Tget_class(type) == H5T_INTEGER &&
        H5Tget_sign(type) == H5T_SGN_NONE &&
        H5Sget_simple_extent_npoints(space) == 1 &&
        H5Aread(id, H5T_NATIVE_UINT64, &value) >= 0)
        rc = 0;
    joule_hdf5_release(space);
    joule_hdf5_release(type);
    joule_hdf5_release(id);
    H5Eclear2(H5E_DEFAULT);
    if (rc == 0)
        *ret = value;
    else
        errno = ENOENT;
    return rc;
}

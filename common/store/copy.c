/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/copy.h"

#include <errno.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/filedriver.h"
#include "common/store/hdferror.h"

#define DEPTH_MAX 40

struct step {
    char name[JOULE_STORE_NAME_MAX];
    hid_t group, nodes;
    int32_t count;
};

/* The table that is being written. */
struct table {
    hid_t dataset, space; /* dataset < 0: there is none */
    struct joule_layout layout;
    uint64_t chunk_rows; /* of the copy */
    uint64_t rows;       /* in it, and in [part] */
    uint64_t part_rows;
    unsigned char *part; /* a chunk that is not full */
    size_t part_room;
};

struct joule_copy {
    struct joule_filedriver driver;
    hid_t driver_id, file, steps_group;
    hid_t group_list; /* of creation: no times in the file */
    hid_t one;        /* the data space of nearly all attributes */
    struct step step; /* the last one */
    int32_t step_count;
    char node[JOULE_STORE_NAME_MAX];
    unsigned depth;   /* of the group that is open */
    unsigned skipped; /* depth within a group that is left out */
    hid_t group[DEPTH_MAX];
    struct table table;
    struct joule_copy_state state;
    uint64_t bytes;
    bool has_node;
    struct joule_visitor visitor;
};

static int fail(struct joule_copy *c, struct joule_error *err, const char *what)
{
    if (c->driver.write_errno != 0) {
        H5Eclear2(H5E_DEFAULT);
        return joule_error_set(err, c->driver.write_errno, "%s: %s", what,
                               strerror(c->driver.write_errno));
    }
    return joule_hdf_error(err, EIO, "%s", what);
}

static int put_count(hid_t object, const char *name, int32_t value)
{
    hsize_t one = 1;
    hid_t space = H5Screate_simple(1, &one, NULL);
    hid_t id = H5Acreate2(object, name, H5T_STD_I32LE, space, H5P_DEFAULT,
                          H5P_DEFAULT);
    herr_t rc = id < 0 ? -1 : H5Awrite(id, H5T_NATIVE_INT32, &value);

    if (id >= 0)
        H5Aclose(id);
    H5Sclose(space);
    return rc < 0 ? -1 : 0;
}

/* Objects of 1.10 are small and quick to make, and 1.10 reads them. */
static hid_t create_list(struct joule_copy *c)
{
    hid_t list = joule_filedriver_list(&c->driver, &c->driver_id);
    H5AC_cache_config_t cache = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};

    if (list < 0)
        return -1;
#if H5_VERSION_GE(1, 10, 2)
    H5Pset_libver_bounds(list, H5F_LIBVER_V110, H5F_LIBVER_V110);
#else
    H5Pset_libver_bounds(list, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
#endif
    H5Pset_meta_block_size(list, 64 << 10);
    if (H5Pget_mdc_config(list, &cache) >= 0) {
        cache.set_initial_size = 1;
        cache.initial_size = 1 << 20;
        cache.min_size = 1 << 20;
        cache.max_size = 4 << 20;
        H5Pset_mdc_config(list, &cache);
    }
    return list;
}

struct joule_copy *joule_copy_create(int fd, struct joule_error *err)
{
    struct joule_copy *c = calloc(1, sizeof(*c));
    hsize_t one = 1;
    hid_t list, root_list;

    if (!c) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    c->driver.fd = fd;
    c->table.dataset = c->file = c->steps_group = -1;
    c->step.group = c->step.nodes = c->group_list = c->one = -1;
    list = create_list(c);
    root_list = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_obj_track_times(root_list, 0);
    if (list >= 0) {
        c->file = H5Fcreate("copy", H5F_ACC_TRUNC, root_list, list);
        H5Pclose(list);
    }
    H5Pclose(root_list);
    c->group_list = H5Pcreate(H5P_GROUP_CREATE);
    c->one = H5Screate_simple(1, &one, NULL);
    H5Pset_obj_track_times(c->group_list, 0);
    /* A node has up to two dozen attributes: in the header, not in a heap. */
    H5Pset_attr_phase_change(c->group_list, 64, 32);
    if (c->file >= 0)
        c->steps_group = H5Gcreate2(c->file, "Steps", H5P_DEFAULT,
                                    c->group_list, H5P_DEFAULT);
    if (c->steps_group >= 0)
        return c;
    fail(c, err, "cannot begin the file");
    joule_copy_destroy(c);
    return NULL;
}

static int close_step(struct joule_copy *c)
{
    int rc = 0;

    if (c->step.group < 0)
        return 0;
    if (c->step.count > 0)
        rc = put_count(c->step.group, "Number of Nodes", c->step.count);
    H5Gclose(c->step.nodes);
    H5Gclose(c->step.group);
    c->step.group = c->step.nodes = -1;
    return rc;
}

static int open_step(struct joule_copy *c, const char *name)
{
    struct step *s = &c->step;

    if (s->group >= 0 && strcmp(s->name, name) == 0)
        return 0;
    if (close_step(c) < 0)
        return -1;
    memset(s->name, 0, sizeof(s->name));
    memcpy(s->name, name, strnlen(name, sizeof(s->name) - 1));
    s->count = 0;
    s->group = H5Gcreate2(c->steps_group, s->name, H5P_DEFAULT, c->group_list,
                          H5P_DEFAULT);
    s->nodes = s->group < 0 ? -1
                            : H5Gcreate2(s->group, "Nodes", H5P_DEFAULT,
                                         c->group_list, H5P_DEFAULT);
    if (s->nodes < 0)
        return -1;
    c->step_count++;
    return 0;
}

static hid_t current(const struct joule_copy *c)
{
    return c->depth > 0 ? c->group[c->depth - 1] : c->step.nodes;
}

static int copy_note(void *arg, const char *sentence, struct joule_error *err)
{
    struct joule_copy *c = arg;

    (void)err;
    if (c->state.left_out++ == 0)
        memcpy(c->state.note, sentence,
               strnlen(sentence, sizeof(c->state.note) - 1));
    return 0;
}

static int copy_group(void *arg, const char *name, struct joule_error *err)
{
    struct joule_copy *c = arg;
    hid_t id;

    if (c->skipped > 0 || (c->depth == 0 && strcmp(name, c->node) != 0)) {
        if (c->skipped++ == 0) {
            struct joule_error text;

            joule_error_set(&text, 0,
                            "the group %s is not of the node the file is "
                            "named after",
                            name);
            return copy_note(c, text.text, err);
        }
        return 0;
    }
    if (c->depth == DEPTH_MAX)
        return joule_error_set(err, EBADMSG, "too many groups");
    id = H5Gcreate2(current(c), name, H5P_DEFAULT, c->group_list, H5P_DEFAULT);
    if (id < 0)
        return fail(c, err, "cannot make a group");
    c->group[c->depth++] = id;
    c->has_node = true;
    return 0;
}

static int copy_leave(void *arg, struct joule_error *err)
{
    struct joule_copy *c = arg;

    (void)err;
    if (c->skipped > 0)
        c->skipped--;
    else if (c->depth > 0)
        H5Gclose(c->group[--c->depth]);
    return 0;
}

/* The type of a plain number, which need not be made. */
static hid_t known_type(const struct joule_rowtype *type)
{
    const struct joule_column *c = &type->column[0];

    if (type->is_compound || c->count != 1 || c->big_endian)
        return -1;
    if (c->kind == JOULE_KIND_UNSIGNED && c->size == 8)
        return H5T_STD_U64LE;
    if (c->kind == JOULE_KIND_SIGNED && c->size == 4)
        return H5T_STD_I32LE;
    return -1;
}

static int write_attribute(struct joule_copy *c, hid_t object,
                           const struct joule_attribute *a)
{
    hid_t known = known_type(&a->type);
    hid_t type = known >= 0 ? known : joule_rowtype_make(&a->type);
    hid_t space = c->one, id;
    hsize_t elements = a->elements;
    herr_t rc = -1;

    if (elements != 1)
        space = elements ? H5Screate_simple(1, &elements, NULL)
                         : H5Screate(H5S_SCALAR);
    id = H5Acreate2(object, a->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (id >= 0)
        rc = H5Awrite(id, type, a->data);
    if (id >= 0)
        H5Aclose(id);
    if (space != c->one)
        H5Sclose(space);
    if (known < 0)
        H5Tclose(type);
    return rc < 0 ? -1 : 0;
}

static int copy_attribute(void *arg, const struct joule_attribute *a,
                          struct joule_error *err)
{
    struct joule_copy *c = arg;

    /* Of the file as a whole: it has no place here. */
    if (c->skipped > 0 || (c->depth == 0 && c->table.dataset < 0))
        return 0;
    if (c->depth == 1 && strcmp(a->name, "Joule End ns") == 0 &&
        a->type.column[0].kind == JOULE_KIND_UNSIGNED)
        c->state.is_open = joule_column_u64(&a->type.column[0], a->data) == 0;
    if (write_attribute(
            c, c->table.dataset >= 0 ? c->table.dataset : current(c), a) == 0)
        return 0;
    if (c->driver.write_errno)
        return fail(c, err, "cannot write an attribute");
    H5Eclear2(H5E_DEFAULT);
    return copy_note(c, "an attribute cannot be kept", err);
}

static int set_filters(hid_t list, const struct joule_pipeline *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        herr_t rc;

        switch (p->filter[i].kind) {
        case JOULE_FILTER_DEFLATE:
            rc = H5Pset_deflate(list, p->filter[i].level);
            break;
        case JOULE_FILTER_SHUFFLE:
            rc = H5Pset_shuffle(list);
            break;
        default:
            rc = H5Pset_fletcher32(list);
            break;
        }
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int create_dataset(struct joule_copy *c, const char *name, bool stored)
{
    struct table *t = &c->table;
    hid_t type = joule_rowtype_make(&t->layout.type);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
    hsize_t none = 0, unlimited = H5S_UNLIMITED, chunk = t->chunk_rows;
    hid_t space = H5Screate_simple(1, &none, &unlimited);

    H5Pset_obj_track_times(list, 0);
    H5Pset_chunk(list, 1, &chunk);
    H5Pset_chunk_cache(access, 1, 0, 1.0);
    if (type >= 0 && (!stored || set_filters(list, &t->layout.pipeline) == 0))
        t->dataset = H5Dcreate2(current(c), name, type, space, H5P_DEFAULT,
                                list, access);
    H5Sclose(space);
    H5Pclose(access);
    H5Pclose(list);
    if (type >= 0)
        H5Tclose(type);
    return t->dataset < 0 ? -1 : 0;
}

static int copy_table(void *arg, const char *name,
                      const struct joule_layout *layout, bool stored,
                      struct joule_error *err)
{
    struct joule_copy *c = arg;
    struct table *t = &c->table;
    size_t size;

    if (c->skipped > 0)
        return 0;
    if (c->depth == 0)
        return copy_note(c, "a table outside of the node's group", err);
    t->layout = *layout;
    t->rows = t->part_rows = 0;
    t->chunk_rows = stored ? layout->chunk_rows : joule_batch_rows(layout);
    size = (size_t)t->chunk_rows * layout->type.size;
    if (!stored && size > t->part_room) {
        unsigned char *more = realloc(t->part, size);

        if (!more)
            return joule_error_set(err, ENOMEM, "out of memory");
        t->part = more;
        t->part_room = size;
    }
    if (create_dataset(c, name, stored) < 0) {
        if (c->driver.write_errno)
            return fail(c, err, "cannot make a table");
        H5Eclear2(H5E_DEFAULT);
        return copy_note(c, "a table cannot be kept", err);
    }
    c->state.tables++;
    return 0;
}

/* Chunk after chunk; [rows] of them are meant. */
static int write_chunk(struct joule_copy *c, uint64_t rows, uint32_t mask,
                       const void *data, size_t len, struct joule_error *err)
{
    struct table *t = &c->table;
    hsize_t offset = t->rows, extent = t->rows + rows;

    if (H5Dset_extent(t->dataset, &extent) < 0 ||
        H5Dwrite_chunk(t->dataset, H5P_DEFAULT, mask, &offset, len, data) < 0)
        return fail(c, err, "cannot write rows");
    t->rows = extent;
    c->bytes += len;
    return 0;
}

static int copy_rows(void *arg, const void *rows, uint64_t count, size_t bytes,
                     struct joule_error *err)
{
    struct joule_copy *c = arg;
    struct table *t = &c->table;
    size_t row = t->layout.type.size;
    const unsigned char *from = rows;

    (void)bytes;
    if (t->dataset < 0)
        return 0;
    while (count > 0) {
        uint64_t n = t->chunk_rows - t->part_rows;

        if (t->part_rows == 0 && count >= t->chunk_rows) {
            n = t->chunk_rows;
            if (write_chunk(c, n, 0, from, (size_t)n * row, err) < 0)
                return -1;
        } else {
            if (n > count)
                n = count;
            memcpy(t->part + t->part_rows * row, from, (size_t)n * row);
            t->part_rows += n;
            if (t->part_rows == t->chunk_rows) {
                t->part_rows = 0;
                if (write_chunk(c, t->chunk_rows, 0, t->part,
                                (size_t)t->chunk_rows * row, err) < 0)
                    return -1;
            }
        }
        from += n * row;
        count -= n;
    }
    return 0;
}

static int copy_chunk(void *arg, uint64_t rows, uint32_t mask, const void *data,
                      size_t len, struct joule_error *err)
{
    struct joule_copy *c = arg;
    struct table *t = &c->table;

    if (t->dataset < 0)
        return 0;
    /* One that was lost leaves no hole: this one takes its place.  Only the
     * last may hold fewer rows than there is room for. */
    if (t->rows % t->chunk_rows != 0)
        return joule_error_set(err, EBADMSG, "a chunk behind the last one");
    return write_chunk(c, rows, mask, data, len, err);
}

static int copy_table_end(void *arg, uint64_t lost, struct joule_error *err)
{
    struct joule_copy *c = arg;
    struct table *t = &c->table;
    int rc = 0;

    if (t->dataset < 0)
        return 0;
    if (t->part_rows > 0) {
        size_t used = (size_t)t->part_rows * t->layout.type.size;
        size_t size = (size_t)t->chunk_rows * t->layout.type.size;

        memset(t->part + used, 0, size - used);
        rc = write_chunk(c, t->part_rows, 0, t->part, size, err);
        t->part_rows = 0;
    }
    c->state.rows += t->rows;
    c->state.lost_rows += lost;
    if (H5Dclose(t->dataset) < 0 && rc == 0)
        rc = fail(c, err, "cannot write a table");
    t->dataset = -1;
    return rc;
}

const struct joule_visitor *joule_copy_begin(struct joule_copy *c,
                                             const char *step, const char *node,
                                             struct joule_error *err)
{
    htri_t there;

    if (open_step(c, step) < 0) {
        fail(c, err, "cannot make the group of a step");
        return NULL;
    }
    there = H5Lexists(c->step.nodes, node, H5P_DEFAULT);
    if (there != 0) {
        joule_error_set(err, EEXIST, "step %s has a node %s already", step,
                        node);
        return NULL;
    }
    memset(c->node, 0, sizeof(c->node));
    memcpy(c->node, node, strnlen(node, sizeof(c->node) - 1));
    memset(&c->state, 0, sizeof(c->state));
    c->has_node = false;
    c->visitor = (struct joule_visitor){
        .group = copy_group,
        .leave = copy_leave,
        .attribute = copy_attribute,
        .table = copy_table,
        .table_end = copy_table_end,
        .note = copy_note,
        .rows = copy_rows,
        .chunk = copy_chunk,
        .arg = c,
    };
    return &c->visitor;
}

int joule_copy_end(struct joule_copy *c, struct joule_copy_state *ret_state,
                   struct joule_error *err)
{
    int rc = copy_table_end(c, 0, err);

    while (c->depth > 0)
        H5Gclose(c->group[--c->depth]);
    c->skipped = 0;
    if (c->has_node)
        c->step.count++;
    c->state.is_empty = !c->has_node;
    *ret_state = c->state;
    return rc;
}

uint64_t joule_copy_bytes(const struct joule_copy *c)
{
    return c->bytes;
}

int joule_copy_finish(struct joule_copy *c, struct joule_error *err)
{
    herr_t rc;

    if (close_step(c) < 0 ||
        put_count(c->file, "Number of Steps", c->step_count) < 0)
        return fail(c, err, "cannot write the counts");
    H5Gclose(c->steps_group);
    c->steps_group = -1;
    rc = H5Fclose(c->file);
    c->file = -1;
    if (rc < 0 || c->driver.write_errno)
        return fail(c, err, "cannot write the file");
    return 0;
}

void joule_copy_destroy(struct joule_copy *c)
{
    int saved = errno;

    if (!c)
        return;
    if (c->table.dataset >= 0)
        H5Dclose(c->table.dataset);
    while (c->depth > 0)
        H5Gclose(c->group[--c->depth]);
    if (c->step.nodes >= 0)
        H5Gclose(c->step.nodes);
    if (c->step.group >= 0)
        H5Gclose(c->step.group);
    if (c->steps_group >= 0)
        H5Gclose(c->steps_group);
    if (c->file >= 0)
        H5Fclose(c->file);
    if (c->group_list >= 0)
        H5Pclose(c->group_list);
    if (c->one >= 0)
        H5Sclose(c->one);
    if (c->driver_id > 0)
        H5FDunregister(c->driver_id);
    H5Eclear2(H5E_DEFAULT);
    free(c->table.part);
    free(c);
    errno = saved;
}

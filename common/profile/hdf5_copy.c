/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/profile/hdf5_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile/hdf5_driver.h"
#include "common/profile/hdf5_read.h"

/* Things that a node may have that are no tables: of a file with more, nothing
 * is copied. */
#define STRANGERS_MAX 64

/* Bytes of rows at a time, where they are copied one by one. */
#define BATCH_SIZE ((size_t)256 << 10)

#define ATTRIBUTE_MAX 65536

struct joule_hdf5_copy {
    hid_t file, steps;
    hid_t step, nodes;                 /* the last step, and its "Nodes"; -1 */
    char name[JOULE_PROFILE_NAME_MAX]; /* of that step */
    int32_t step_count, node_count;
};

/* A node that is being copied. */
struct node {
    const struct joule_hdf5_node *of;
    struct joule_hdf5_copied *result;
    hid_t from;                   /* its group in the file that has it */
    hid_t to;                     /* its group in the job file; -1 */
    char *strange[STRANGERS_MAX]; /* paths of what is not to be copied */
    size_t strangers;
};

/* ---- steps ---- */

static int put_count(hid_t group, const char *name, int32_t value)
{
    hsize_t one = 1;
    hid_t space = H5Screate_simple(1, &one, NULL), id = -1;
    herr_t rc = -1;

    if (space >= 0)
        id = H5Acreate2(group, name, H5T_STD_I32LE, space, H5P_DEFAULT,
                        H5P_DEFAULT);
    if (id >= 0)
        rc = H5Awrite(id, H5T_NATIVE_INT32, &value);
    if (id >= 0)
        H5Aclose(id);
    if (space >= 0)
        H5Sclose(space);
    return rc < 0 ? -1 : 0;
}

static void close_group(hid_t *group)
{
    if (*group >= 0)
        H5Gclose(*group);
    *group = -1;
}

static hid_t create_group(hid_t parent, const char *name)
{
    return H5Gcreate2(parent, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
}

/* A step of which no node came is not there. */
static int close_step(struct joule_hdf5_copy *c)
{
    int rc = 0;

    if (c->step < 0)
        return 0;
    if (c->node_count > 0)
        rc = put_count(c->step, "Number of Nodes", c->node_count);
    close_group(&c->nodes);
    close_group(&c->step);
    if (c->node_count > 0)
        c->step_count++;
    else if (H5Ldelete(c->steps, c->name, H5P_DEFAULT) < 0)
        rc = -1;
    return rc;
}

static int cannot_write(const struct joule_hdf5_copy *c,
                        struct joule_error *err)
{
    int error = joule_hdf5_write_error(c->file);

    if (error == 0)
        return joule_hdf5_error(err, EIO, "the job file cannot be written");
    H5Eclear2(H5E_DEFAULT);
    return joule_error_set(err, error, "cannot write: %s", strerror(error));
}

static int open_step(struct joule_hdf5_copy *c, const char *name,
                     struct joule_error *err)
{
    if (c->step >= 0 && strcmp(c->name, name) == 0)
        return 0;
    if (!joule_hdf5_is_name(name))
        return joule_error_set(err, EINVAL, "a step has no such name");
    if (close_step(c) < 0)
        return cannot_write(c, err);
    if (H5Lexists(c->steps, name, H5P_DEFAULT) > 0)
        return joule_error_set(err, EINVAL, "step %s is complete already",
                               name);
    strcpy(c->name, name);
    c->node_count = 0;
    c->step = create_group(c->steps, name);
    if (c->step >= 0)
        c->nodes = create_group(c->step, "Nodes");
    return c->nodes >= 0 ? 0 : cannot_write(c, err);
}

struct joule_hdf5_copy *joule_hdf5_copy_create(int fd, struct joule_error *err)
{
    struct joule_hdf5_copy *c = calloc(1, sizeof(*c));

    if (!c) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    c->steps = c->step = c->nodes = -1;
    c->file = joule_hdf5_create_fd(fd, err);
    if (c->file >= 0) {
        c->steps = create_group(c->file, "Steps");
        if (c->steps >= 0)
            return c;
        cannot_write(c, err);
    }
    joule_hdf5_copy_destroy(c);
    return NULL;
}

int joule_hdf5_copy_finish(struct joule_hdf5_copy *c, struct joule_error *err)
{
    hid_t file = c->file;

    if (close_step(c) < 0 ||
        put_count(c->file, "Number of Steps", c->step_count) < 0)
        return cannot_write(c, err);
    close_group(&c->steps);
    c->file = -1;
    return joule_hdf5_close(file, err);
}

void joule_hdf5_copy_destroy(struct joule_hdf5_copy *c)
{
    int saved = errno;

    if (!c)
        return;
    close_group(&c->nodes);
    close_group(&c->step);
    close_group(&c->steps);
    joule_hdf5_close(c->file, NULL);
    free(c);
    errno = saved;
}

/* ---- what is to be copied ---- */

static void leave_out(struct node *n, const char *path, const char *sentence)
{
    struct joule_error text;

    if (n->result->left_out++ > 0)
        return;
    joule_error_set(&text, 0, "%.200s%s%.280s", path ? path : "",
                    path ? ": " : "", sentence);
    memcpy(n->result->note, text.text, sizeof(n->result->note));
}

static int see_table(void *arg, const char *path,
                     const struct joule_hdf5_table *table,
                     struct joule_error *err)
{
    struct node *n = arg;

    (void)path;
    (void)err;
    n->result->tables++;
    n->result->rows += joule_hdf5_table_rows(table);
    n->result->lost_rows += joule_hdf5_table_missing(table);
    return 0;
}

static int see_stranger(void *arg, const char *path, const char *sentence,
                        struct joule_error *err)
{
    struct node *n = arg;

    leave_out(n, path, sentence);
    if (!path)
        return 0;
    if (n->strangers == STRANGERS_MAX)
        return joule_error_set(err, EBADMSG, "%.400s", n->result->note);
    n->strange[n->strangers] = strdup(path);
    if (!n->strange[n->strangers])
        return joule_error_set(err, ENOMEM, "out of memory");
    n->strangers++;
    return 0;
}

/* What stands beside the group of the node. */
static herr_t see_neighbour(hid_t root, const char *name,
                            const H5L_info_t *info, void *arg)
{
    struct node *n = arg;

    (void)root;
    (void)info;
    if (strcmp(name, n->of->name) != 0)
        leave_out(n, name, "it is not of the node the file is named after");
    return 0;
}

/* 1, or 0: there is no such node in the file. */
static int look_at(struct node *n, hid_t file, struct joule_error *err)
{
    const struct joule_hdf5_visitor visitor = {
        .table = see_table, .note = see_stranger, .arg = n};
    struct joule_hdf5_copied *r = n->result;
    uint64_t end_ns;

    r->is_cut = joule_hdf5_is_cut(file);
    if (n->of->is_node_file && H5Literate(file, H5_INDEX_NAME, H5_ITER_INC,
                                          NULL, see_neighbour, n) < 0)
        return joule_hdf5_error(err, EBADMSG, "damaged");
    n->from = H5Gopen2(file, n->of->path, H5P_DEFAULT);
    if (n->from < 0) {
        H5Eclear2(H5E_DEFAULT);
        return 0;
    }
    r->is_there = 1;
    r->has_start = joule_hdf5_read_number(n->from, "Joule Start Wall ns",
                                          &r->start_wall_ns) == 0;
    if (joule_hdf5_walk(n->from, &visitor, err) < 0)
        return -1;
    r->is_open =
        joule_hdf5_read_number(n->from, "Joule End ns", &end_ns) == 0 &&
        end_ns == 0;
    return 1;
}

/* ---- copying, as it is ---- */

static int copy_whole(struct joule_hdf5_copy *c, struct node *n)
{
    if (H5Ocopy(n->from, ".", c->nodes, n->of->name, H5P_DEFAULT, H5P_DEFAULT) <
        0)
        return -1;
    for (size_t i = 0; i < n->strangers; i++) {
        char path[2 * JOULE_PROFILE_NAME_MAX + JOULE_PROFILE_PATH_MAX];

        if (strlen(n->strange[i]) >= JOULE_PROFILE_PATH_MAX)
            return -1;
        snprintf(path, sizeof(path), "%s/%s", n->of->name, n->strange[i]);
        if (H5Ldelete(c->nodes, path, H5P_DEFAULT) < 0)
            return -1;
    }
    return 0;
}

/* ---- copying what can be read ---- */

static int copy_value(hid_t from, hid_t to, hid_t type, size_t bytes)
{
    void *value = bytes > 0 && bytes <= ATTRIBUTE_MAX ? malloc(bytes) : NULL;
    int rc = -1;

    if (value && H5Aread(from, type, value) >= 0 &&
        H5Awrite(to, type, value) >= 0)
        rc = 0;
    free(value);
    return rc;
}

static herr_t copy_attribute(hid_t object, const char *name,
                             const H5A_info_t *info, void *arg)
{
    hid_t to_object = *(const hid_t *)arg, to = -1, type = -1, space = -1;
    hid_t from = H5Aopen(object, name, H5P_DEFAULT);

    (void)info;
    if (from >= 0) {
        type = H5Aget_type(from);
        space = H5Aget_space(from);
    }
    /* One that cannot be copied is left out. */
    if (type >= 0 && space >= 0 && H5Tdetect_class(type, H5T_VLEN) == 0 &&
        H5Tdetect_class(type, H5T_REFERENCE) == 0 &&
        H5Tis_variable_str(type) == 0 &&
        (to = H5Acreate2(to_object, name, type, space, H5P_DEFAULT,
                         H5P_DEFAULT)) >= 0 &&
        copy_value(from, to, type, (size_t)H5Aget_storage_size(from)) < 0) {
        H5Aclose(to);
        to = -1;
        H5Adelete(to_object, name);
    }
    if (to >= 0)
        H5Aclose(to);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    if (from >= 0)
        H5Aclose(from);
    H5Eclear2(H5E_DEFAULT);
    return 0;
}

static void copy_attributes(hid_t from, hid_t to)
{
    H5Aiterate2(from, H5_INDEX_NAME, H5_ITER_INC, NULL, copy_attribute, &to);
    H5Eclear2(H5E_DEFAULT);
}

/* An empty table like that one; the groups of its path, too. */
static hid_t create_table(hid_t group, const char *path,
                          const struct joule_hdf5_table *like)
{
    hsize_t chunk = joule_hdf5_table_chunk_rows(like);
    hsize_t none = 0, unlimited = H5S_UNLIMITED;
    hid_t space = H5Screate_simple(1, &none, &unlimited), id = -1;
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    hid_t type = H5Dget_type(joule_hdf5_table_id(like));
    hid_t list = chunk > 0 ? H5Dget_create_plist(joule_hdf5_table_id(like))
                           : H5Pcreate(H5P_DATASET_CREATE);

    if (chunk == 0) {
        chunk = BATCH_SIZE / joule_hdf5_table_type(like)->size;
        chunk = chunk > 0 ? chunk : 1;
    }
    if (space >= 0 && links >= 0 && type >= 0 && list >= 0 &&
        H5Pset_create_intermediate_group(links, 1) >= 0 &&
        H5Pset_chunk(list, 1, &chunk) >= 0)
        id = H5Dcreate2(group, path, type, space, links, list, H5P_DEFAULT);
    if (list >= 0)
        H5Pclose(list);
    if (type >= 0)
        H5Tclose(type);
    if (links >= 0)
        H5Pclose(links);
    if (space >= 0)
        H5Sclose(space);
    return id;
}

static int append_rows(hid_t table, hid_t type, uint64_t at, const void *rows,
                       uint64_t count)
{
    hsize_t size = at + count, start = at, length = count;
    hid_t memory, space;
    herr_t rc = -1;

    if (H5Dset_extent(table, &size) < 0)
        return -1;
    memory = H5Screate_simple(1, &length, NULL);
    space = H5Dget_space(table);
    if (memory >= 0 && space >= 0 &&
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &length,
                            NULL) >= 0)
        rc = H5Dwrite(table, type, memory, space, H5P_DEFAULT, rows);
    if (space >= 0)
        H5Sclose(space);
    if (memory >= 0)
        H5Sclose(memory);
    return rc < 0 ? -1 : 0;
}

static int copy_rows(hid_t to, struct joule_hdf5_table *from, uint64_t *ret)
{
    size_t size = joule_hdf5_table_type(from)->size;
    uint64_t chunk = joule_hdf5_table_chunk_rows(from), rows = 0;
    size_t room = BATCH_SIZE / size > chunk ? BATCH_SIZE / size : (size_t)chunk;
    void *batch = malloc(room * size);
    hid_t type = H5Dget_type(to);
    size_t count;
    int rc = batch && type >= 0 ? 0 : -1;

    while (rc == 0 && (count = joule_hdf5_table_read(from, batch, room)) > 0) {
        rc = append_rows(to, type, rows, batch, count);
        rows += count;
    }
    if (type >= 0)
        H5Tclose(type);
    free(batch);
    *ret = rows;
    return rc;
}

/* For joule_hdf5_walk: the table that is open there is only for looking. */
static int save_table(void *arg, const char *path,
                      const struct joule_hdf5_table *seen,
                      struct joule_error *err)
{
    struct node *n = arg;
    struct joule_hdf5_table *from = joule_hdf5_table_open(n->from, path, err);
    uint64_t rows = 0;
    hid_t to;
    int rc = -1;

    (void)seen;
    if (!from)
        return see_stranger(arg, path, "it cannot be read", err);
    to = create_table(n->to, path, from);
    if (to >= 0) {
        copy_attributes(joule_hdf5_table_id(from), to);
        rc = copy_rows(to, from, &rows);
        H5Dclose(to);
    }
    n->result->tables++;
    n->result->rows += rows;
    n->result->lost_rows += joule_hdf5_table_lost(from);
    joule_hdf5_table_close(from);
    return rc == 0
               ? 0
               : joule_hdf5_error(err, EIO, "%.100s cannot be copied", path);
}

static int skip_stranger(void *arg, const char *path, const char *sentence,
                         struct joule_error *err)
{
    (void)arg; /* it was noted when the node was looked at */
    (void)path;
    (void)sentence;
    (void)err;
    return 0;
}

static int copy_readable(struct joule_hdf5_copy *c, struct node *n,
                         struct joule_error *err)
{
    const struct joule_hdf5_visitor visitor = {
        .table = save_table, .note = skip_stranger, .arg = n};
    struct joule_hdf5_copied *r = n->result;
    int rc;

    r->tables = r->rows = r->lost_rows = 0;
    if (H5Lexists(c->nodes, n->of->name, H5P_DEFAULT) > 0 &&
        H5Ldelete(c->nodes, n->of->name, H5P_DEFAULT) < 0)
        return cannot_write(c, err);
    n->to = create_group(c->nodes, n->of->name);
    if (n->to < 0)
        return cannot_write(c, err);
    copy_attributes(n->from, n->to);
    rc = joule_hdf5_walk(n->from, &visitor, err);
    close_group(&n->to);
    if (rc < 0) {
        int saved = errno;

        H5Ldelete(c->nodes, n->of->name, H5P_DEFAULT);
        H5Eclear2(H5E_DEFAULT);
        errno = saved;
    }
    return rc;
}

/* ---- a node ---- */

static int copy_found(struct joule_hdf5_copy *c, struct node *n,
                      struct joule_error *err)
{
    const struct joule_hdf5_node *of = n->of;

    if (!joule_hdf5_is_name(of->name))
        return joule_error_set(err, EINVAL, "a node has no such name");
    if (open_step(c, of->step, err) < 0)
        return -1;
    if (H5Lexists(c->nodes, of->name, H5P_DEFAULT) > 0)
        return joule_error_set(err, EEXIST, "step %s has a node %s already",
                               of->step, of->name);
    if (n->result->is_cut || copy_whole(c, n) < 0) {
        H5Eclear2(H5E_DEFAULT);
        if (joule_hdf5_write_error(c->file))
            return cannot_write(c, err);
        if (copy_readable(c, n, err) < 0)
            return -1;
    }
    c->node_count++;
    return 0;
}

int joule_hdf5_copy_node(struct joule_hdf5_copy *c,
                         const struct joule_hdf5_node *node,
                         struct joule_hdf5_copied *ret, struct joule_error *err)
{
    struct node n = {.of = node, .result = ret, .from = -1, .to = -1};
    hid_t file;
    int rc, saved;

    memset(ret, 0, sizeof(*ret));
    file = joule_hdf5_open_fd(node->fd, err);
    if (file < 0)
        return -1;
    rc = look_at(&n, file, err);
    if (rc == 1)
        rc = copy_found(c, &n, err);
    saved = errno;
    close_group(&n.from);
    joule_hdf5_close(file, NULL);
    for (size_t i = 0; i < n.strangers; i++)
        free(n.strange[i]);
    ret->write_error = joule_hdf5_write_error(c->file);
    if (ret->write_error)
        return cannot_write(c, err);
    if (rc < 0)
        ret->tables = ret->rows = 0;
    errno = saved;
    return rc;
}

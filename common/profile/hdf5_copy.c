/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/profile/hdf5_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/profile/hdf5_driver.h"
#include "common/profile/hdf5_read.h"

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
    hid_t from;         /* its group in the file that has it */
    hid_t to;           /* its group in the job file; -1 */
    bool has_strangers; /* things that are not to be copied */
};

/* ---- steps ---- */

static int put_count(hid_t group, const char *name, int32_t value)
{
    return joule_hdf5_put_attribute(group, name, H5T_STD_I32LE,
                                    H5T_NATIVE_INT32, &value);
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
                     struct joule_hdf5_table *table, struct joule_error *err)
{
    struct node *n = arg;

    (void)path;
    (void)err;
    n->result->rows += table->rows;
    n->result->lost_rows += joule_hdf5_table_missing(table);
    return 0;
}

static int see_stranger(void *arg, const char *path, const char *sentence,
                        struct joule_error *err)
{
    struct node *n = arg;

    (void)err;
    leave_out(n, path, sentence);
    n->has_strangers = true;
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
    joule_hdf5_release(to);
    joule_hdf5_release(space);
    joule_hdf5_release(type);
    joule_hdf5_release(from);
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
    hsize_t chunk = joule_hdf5_table_batch(like, BATCH_SIZE);
    hsize_t none = 0, unlimited = H5S_UNLIMITED;
    hid_t space = H5Screate_simple(1, &none, &unlimited), id = -1;
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    hid_t type = H5Dget_type(like->dataset);
    hid_t list = like->chunk_rows > 0 ? H5Dget_create_plist(like->dataset)
                                      : H5Pcreate(H5P_DATASET_CREATE);

    if (like->chunk_rows > 0)
        chunk = like->chunk_rows;
    if (type >= 0 && list >= 0 &&
        H5Pset_create_intermediate_group(links, 1) >= 0 &&
        H5Pset_chunk(list, 1, &chunk) >= 0)
        id = H5Dcreate2(group, path, type, space, links, list, H5P_DEFAULT);
    joule_hdf5_release(list);
    joule_hdf5_release(type);
    H5Pclose(links);
    H5Sclose(space);
    return id;
}

static int copy_rows(hid_t to, struct joule_hdf5_table *from, uint64_t *ret)
{
    size_t room = joule_hdf5_table_batch(from, BATCH_SIZE), count;
    void *batch = malloc(room * from->row->size);
    int rc = batch ? 0 : -1;

    while (rc == 0 && (count = joule_hdf5_table_read(from, batch, room)) > 0) {
        rc = joule_hdf5_append(to, from->memory, *ret, batch, count);
        *ret += count;
    }
    free(batch);
    return rc;
}

static int save_table(void *arg, const char *path,
                      struct joule_hdf5_table *from, struct joule_error *err)
{
    struct node *n = arg;
    hid_t to = create_table(n->to, path, from);
    uint64_t rows = 0;
    int rc = -1;

    if (to >= 0) {
        copy_attributes(from->dataset, to);
        rc = copy_rows(to, from, &rows);
        H5Dclose(to);
    }
    n->result->rows += rows;
    n->result->lost_rows += from->lost;
    return rc == 0
               ? 0
               : joule_hdf5_error(err, EIO, "%.100s cannot be copied", path);
}

static int copy_readable(struct joule_hdf5_copy *c, struct node *n,
                         struct joule_error *err)
{
    /* Strangers were noted when the node was looked at. */
    const struct joule_hdf5_visitor visitor = {.table = save_table, .arg = n};
    struct joule_hdf5_copied *r = n->result;
    int rc;

    r->rows = r->lost_rows = 0;
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

/* ---- what joule waits has written ---- */

static int see_nothing(void *arg, const char *path,
                       struct joule_hdf5_table *table, struct joule_error *err)
{
    (void)arg;
    (void)path;
    (void)table;
    (void)err;
    return 0;
}

static int see_bad(void *arg, const char *path, const char *sentence,
                   struct joule_error *err)
{
    (void)path;
    (void)sentence;
    (void)err;
    *(bool *)arg = true;
    return 0;
}

/* With the first node of the step that comes from a job file, if it is sound: it can
 * be written again. */
static void copy_waits(struct joule_hdf5_copy *c, const struct node *n)
{
    bool is_bad = n->result->is_cut;
    const struct joule_hdf5_visitor visitor = {
        .table = see_nothing, .note = see_bad, .arg = &is_bad};
    char path[JOULE_PROFILE_NAME_MAX + 32];
    hid_t from;

    if (H5Lexists(c->step, "Waits", H5P_DEFAULT) > 0)
        return;
    snprintf(path, sizeof(path), "/Steps/%s/Waits", n->of->step);
    from = H5Gopen2(n->from, path, H5P_DEFAULT);
    if (from >= 0 && joule_hdf5_walk(from, &visitor, NULL) == 0 && !is_bad)
        H5Ocopy(from, ".", c->step, "Waits", H5P_DEFAULT, H5P_DEFAULT);
    close_group(&from);
    H5Eclear2(H5E_DEFAULT);
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
    if (n->result->is_cut || n->has_strangers ||
        H5Ocopy(n->from, ".", c->nodes, of->name, H5P_DEFAULT, H5P_DEFAULT) <
            0) {
        H5Eclear2(H5E_DEFAULT);
        if (joule_hdf5_write_error(c->file))
            return cannot_write(c, err);
        if (copy_readable(c, n, err) < 0)
            return -1;
    }
    if (!of->is_node_file)
        copy_waits(c, n);
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
    ret->write_error = joule_hdf5_write_error(c->file);
    if (ret->write_error)
        return cannot_write(c, err);
    if (rc < 0)
        ret->rows = 0;
    errno = saved;
    return rc;
}

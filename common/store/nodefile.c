/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/nodefile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/store/attribute.h"
#include "common/store/driver.h"

#define FORMAT 1

/* Names of series that there may be besides tasks, of at most seven letters or
 * half as many longer ones. */
#define SERIES 16

/* Copied in any case: most of such a file is room for more. */
#define SMALL (UINT64_C(4096) * 1024)

struct joule_nodefile {
    struct joule_image *image;
    hid_t file;
    hid_t group;
    char name[320]; /* of the group */
    struct joule_table **tables;
    int count;
    uint32_t tasks;
    bool changed; /* HDF5 has something to flush */
};

void joule_nodefile_date(struct joule_nodefile_facts *facts)
{
    time_t start = (time_t)(facts->start_wall_ns / 1000000000);
    struct tm tm;

    /* As ctime(3), without its newline. */
    if (!localtime_r(&start, &tm) ||
        !strftime(facts->start, sizeof(facts->start), "%a %b %e %T %Y", &tm))
        facts->start[0] = '\0';
}

static int put_facts(hid_t group, const struct joule_nodefile_facts *facts)
{
    if (joule_attribute_i32(group, "Node Index", (int32_t)facts->node_index) ||
        joule_attribute_text(group, "Node Name", facts->node) ||
        joule_attribute_i32(group, "Number of Tasks", (int32_t)facts->tasks) ||
        joule_attribute_i32(group, "CPUs per Task",
                            (int32_t)facts->cpus_per_task) ||
        joule_attribute_text(group, "Start Time", facts->start) ||
        joule_attribute_u64(group, "Joule Format", FORMAT) ||
        joule_attribute_text(group, "Joule Writer", facts->writer) ||
        joule_attribute_u64(group, "Joule Start Wall ns",
                            (uint64_t)facts->start_wall_ns) ||
        joule_attribute_u64(group, "Joule Start Boot ns",
                            (uint64_t)facts->start_boot_ns) ||
        joule_attribute_u64(group, "Joule End ns", 0) ||
        joule_attribute_u64(group, "Joule End Wall ns", 0) ||
        joule_attribute_u64(group, "Joule Run", facts->run) ||
        joule_attribute_u64(group, "Joule Missed Periods", 0) ||
        joule_attribute_u64(group, "Joule Lost Rows", 0) ||
        joule_attribute_u64(group, "Joule Lost First ns", 0) ||
        joule_attribute_u64(group, "Joule Lost Last ns", 0) ||
        joule_attribute_u64(group, "Joule Lost Error", 0))
        return -1;
    return 0;
}

/* Names that HDF5 would take for a path, or nobody could type. */
static bool is_name(const char *name, size_t length)
{
    size_t i;

    if (length == 0 || name[0] == '.' || length > 255)
        return false;
    for (i = 0; i < length; i++)
        if (name[i] == '/' || (unsigned char)name[i] < ' ')
            return false;
    return true;
}

/*
 * A group with room for the names of [members]: its heap of names then never
 * moves, and lies on one page with its head, so that both are always of one
 * time.
 */
static hid_t make_group(hid_t parent, const char *name, uint32_t members)
{
    size_t room = 64 + 8 * (size_t)(members < 480 ? members : 480);
    hid_t layout = H5Pcreate(H5P_GROUP_CREATE), group = -1;

    if (layout < 0)
        return -1;
    if (H5Pset_local_heap_size_hint(layout, room) >= 0)
        group = H5Gcreate2(parent, name, H5P_DEFAULT, layout, H5P_DEFAULT);
    H5Pclose(layout);
    return group;
}

struct joule_nodefile *
joule_nodefile_create(int fd, const struct joule_nodefile_facts *facts,
                      struct joule_error *err)
{
    struct joule_nodefile *file;

    if (!is_name(facts->node, strlen(facts->node))) {
        joule_error_set(err, EINVAL, "'%s' cannot be the name of a group",
                        facts->node);
        return NULL;
    }
    file = calloc(1, sizeof(*file));
    if (!file) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    file->file = -1;
    file->group = -1;
    file->tasks = facts->tasks;
    file->image = joule_image_create(fd, false);
    if (!file->image) {
        joule_nodefile_destroy(file);
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    if (facts->run)
        snprintf(file->name, sizeof(file->name), "%s.r%u", facts->node,
                 facts->run);
    else
        snprintf(file->name, sizeof(file->name), "%s", facts->node);
    file->file = joule_driver_create(file->image, false);
    if (file->file >= 0)
        file->group = make_group(file->file, file->name, SERIES);
    file->changed = true;
    if (file->group >= 0 && put_facts(file->group, facts) == 0)
        return file;
    joule_nodefile_destroy(file);
    joule_error_set(err, EIO, "the HDF5 library does not make a file");
    return NULL;
}

void joule_nodefile_destroy(struct joule_nodefile *file)
{
    int i;

    if (!file)
        return;
    for (i = 0; i < file->count; i++)
        joule_table_destroy(file->tables[i]);
    free(file->tables);
    if (file->group >= 0)
        H5Gclose(file->group);
    if (file->file >= 0)
        H5Fclose(file->file);
    joule_image_destroy(file->image);
    free(file);
}

/* The group before the slash; the node's, if there is none. */
static hid_t open_parent(struct joule_nodefile *file, const char *name,
                         const char **ret_rest)
{
    const char *slash = strchr(name, '/');
    size_t length = slash ? (size_t)(slash - name) : 0;
    char group[256];

    *ret_rest = slash ? slash + 1 : name;
    if (!is_name(*ret_rest, strlen(*ret_rest)) ||
        (slash && !is_name(name, length)))
        return -1;
    if (!slash)
        return H5Gopen2(file->group, ".", H5P_DEFAULT);
    memcpy(group, name, length);
    group[length] = '\0';
    if (H5Lexists(file->group, group, H5P_DEFAULT) > 0)
        return H5Gopen2(file->group, group, H5P_DEFAULT);
    return make_group(file->group, group, file->tasks);
}

int joule_nodefile_add_table(struct joule_nodefile *file, const char *name,
                             const struct joule_table_options *opt)
{
    struct joule_table **tables, *table = NULL;
    const char *rest;
    hid_t parent;

    if (opt->count > JOULE_FIELDS_MAX) {
        errno = E2BIG;
        return -1;
    }
    tables = realloc(file->tables,
                     (size_t)(file->count + 1) * sizeof(struct joule_table *));
    if (!tables)
        return -1;
    file->tables = tables;
    parent = open_parent(file, name, &rest);
    if (parent < 0) {
        errno = EINVAL;
        return -1;
    }
    table = joule_table_create(file->image, parent, rest, opt);
    H5Gclose(parent);
    if (!table)
        return -1;
    tables[file->count] = table;
    file->changed = true;
    return file->count++;
}

struct joule_table *joule_nodefile_table(struct joule_nodefile *file, int table)
{
    return file->tables[table];
}

int joule_nodefile_set_loss(struct joule_nodefile *file,
                            const struct joule_loss *loss)
{
    file->changed = true;
    if (joule_attribute_set_u64(file->group, "Joule Lost Rows", loss->rows) ||
        joule_attribute_set_u64(file->group, "Joule Lost First ns",
                                loss->first_ns) ||
        joule_attribute_set_u64(file->group, "Joule Lost Last ns",
                                loss->last_ns) ||
        joule_attribute_set_u64(file->group, "Joule Lost Error",
                                (uint64_t)loss->error)) {
        errno = EIO;
        return -1;
    }
    return 0;
}

int joule_nodefile_set_missed(struct joule_nodefile *file, uint64_t periods)
{
    file->changed = true;
    if (joule_attribute_set_u64(file->group, "Joule Missed Periods", periods) ==
        0)
        return 0;
    errno = EIO;
    return -1;
}

/* HDF5's own flush.  It must not take back numbers of rows that were told
 * without it. */
static int flush(struct joule_nodefile *file)
{
    int i;

    for (i = 0; i < file->count; i++)
        if (joule_table_tell(file->tables[i]) < 0)
            return -1;
    if (H5Fflush(file->file, H5F_SCOPE_LOCAL) < 0) {
        errno = EIO;
        return -1;
    }
    file->changed = false;
    return 0;
}

static int patch(struct joule_nodefile *file)
{
    int i;

    for (i = 0; i < file->count; i++)
        if (joule_table_patch(file->tables[i]) < 0)
            return -1;
    return 0;
}

int joule_nodefile_commit(struct joule_nodefile *file)
{
    int i, rc;

    for (i = 0; i < file->count; i++) {
        rc = joule_table_flush(file->tables[i]);
        if (rc < 0)
            return -1;
        file->changed |= rc > 0;
    }
    if ((file->changed && flush(file) < 0) || patch(file) < 0)
        return -1;
    return joule_image_commit(file->image);
}

int joule_nodefile_finish(struct joule_nodefile *file, int64_t end_ns,
                          int64_t end_wall_ns)
{
    int i;

    for (i = 0; i < file->count; i++)
        if (joule_table_finish(file->tables[i]) < 0)
            return -1;
    if (joule_attribute_set_u64(file->group, "Joule End ns", (uint64_t)end_ns) <
            0 ||
        joule_attribute_set_u64(file->group, "Joule End Wall ns",
                                (uint64_t)end_wall_ns) < 0) {
        errno = EIO;
        return -1;
    }
    if (flush(file) < 0 || patch(file) < 0 ||
        joule_image_commit(file->image) < 0)
        return -1;
    return joule_image_sync(file->image);
}

int joule_nodefile_rescue(struct joule_nodefile *file,
                          const struct joule_loss *loss)
{
    /* Whatever else is new goes into the image before the mark. */
    if (flush(file) < 0)
        return -1;
    joule_image_mark(file->image);
    if (joule_nodefile_set_loss(file, loss) < 0 || flush(file) < 0)
        return -1;
    return joule_image_rescue(file->image);
}

bool joule_nodefile_is_loose(const struct joule_nodefile *file)
{
    uint64_t size = joule_image_used(file->image);

    return size < SMALL || joule_image_unused(file->image) > size / 10;
}

static int copy_group(struct joule_nodefile *file, struct joule_image *image)
{
    hid_t to = joule_driver_create(image, true);
    int rc = -1;

    if (to < 0)
        return -1;
    if (H5Ocopy(file->file, file->name, to, file->name, H5P_DEFAULT,
                H5P_DEFAULT) >= 0)
        rc = 0;
    if (H5Fclose(to) < 0)
        rc = -1;
    return rc;
}

int joule_nodefile_copy(struct joule_nodefile *file, int fd)
{
    struct joule_image *image = joule_image_create(fd, true);
    int rc = -1, saved;

    if (!image)
        return -1;
    if (copy_group(file, image) < 0)
        errno = EIO;
    else if (joule_image_commit(image) == 0)
        rc = joule_image_sync(image);
    saved = errno;
    joule_image_destroy(image);
    errno = saved;
    return rc;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/nodefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/store/group.h"
#include "common/store/little.h"
#include "common/store/newtype.h"

#define FORMAT 1

/* Bytes of names of series that there may be besides tasks, and of a task's. */
#define SERIES_NAMES 192
#define TASK_NAME    8

/* Copied in any case: most of such a file is room for more. */
#define SMALL (UINT64_C(4096) * 1024)

/* Nodes of one page hold as many names as possible: 100 in a leaf, and 252
 * leaves. */
static const struct joule_names_shape growing = {100, 252};

/* What has a few names takes little room; so many are certain to fit. */
static const struct joule_names_shape compact = {8, 32};
#define COMPACT_NAMES 128

/* A group in that of the node, "Tasks". */
struct sub {
    char name[256];
    struct joule_group *group;
};

struct joule_nodefile {
    struct joule_image *image;
    struct joule_names_shape shape;
    struct joule_group *root;
    struct joule_group *group;
    char name[320]; /* of the group */
    struct sub *subs;
    int sub_count;
    struct joule_table **tables;
    int count;
    uint32_t tasks;
    uint64_t told; /* the end that is in the superblock; 0: there is none yet */
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

/* ---- attributes ---- */

static int put_i32(struct joule_header *h, const char *name, uint32_t value)
{
    unsigned char bytes[4];

    joule_little_put(bytes, value, sizeof(bytes));
    return joule_header_attribute(h, name, joule_newtype_i32, 1, bytes,
                                  sizeof(bytes));
}

static int put_u64(struct joule_header *h, const char *name, uint64_t value)
{
    unsigned char bytes[8];

    joule_little_put(bytes, value, sizeof(bytes));
    return joule_header_attribute(h, name, joule_newtype_u64, 1, bytes,
                                  sizeof(bytes));
}

/* As Slurm's: of the length of the text.  There is no string of none. */
static int put_text(struct joule_header *h, const char *name, const char *text)
{
    unsigned char type[JOULE_NEWTYPE_TEXT_SIZE];
    size_t length = strlen(text) ? strlen(text) : 1;

    return joule_header_attribute(h, name, joule_newtype_text(type, length), 1,
                                  text, length);
}

static int put_facts(struct joule_header *h,
                     const struct joule_nodefile_facts *facts)
{
    if (put_i32(h, "Node Index", facts->node_index) < 0 ||
        put_text(h, "Node Name", facts->node) < 0 ||
        put_i32(h, "Number of Tasks", facts->tasks) < 0 ||
        put_i32(h, "CPUs per Task", facts->cpus_per_task) < 0 ||
        put_text(h, "Start Time", facts->start) < 0 ||
        put_u64(h, "Joule Format", FORMAT) < 0 ||
        put_text(h, "Joule Writer", facts->writer) < 0 ||
        put_u64(h, "Joule Start Wall ns", (uint64_t)facts->start_wall_ns) < 0 ||
        put_u64(h, "Joule Start Boot ns", (uint64_t)facts->start_boot_ns) < 0 ||
        put_u64(h, "Joule End ns", 0) < 0 ||
        put_u64(h, "Joule End Wall ns", 0) < 0 ||
        put_u64(h, "Joule Run", facts->run) < 0 ||
        put_u64(h, "Joule Missed Periods", 0) < 0 ||
        put_u64(h, "Joule Lost Rows", 0) < 0 ||
        put_u64(h, "Joule Lost First ns", 0) < 0 ||
        put_u64(h, "Joule Lost Last ns", 0) < 0 ||
        put_u64(h, "Joule Lost Error", 0) < 0)
        return -1;
    return 0;
}

/* ---- groups ---- */

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

/* The superblock, and the group of the node in the outermost one.  The
 * attributes are taken over. */
static int begin(struct joule_nodefile *file, struct joule_header *attributes)
{
    struct joule_header none = {0};

    joule_image_alloc(file->image, JOULE_IMAGE_SUPER, JOULE_SUPERBLOCK_SIZE);
    file->root = joule_group_create(file->image, &file->shape, &none,
                                    joule_hdf_padded(strlen(file->name) + 1));
    if (!file->root)
        return -1;
    file->group =
        joule_group_create(file->image, &file->shape, attributes, SERIES_NAMES);
    if (!file->group)
        return -1;
    return joule_group_add(file->root, file->name, joule_group_at(file->group));
}

static struct joule_nodefile *make(int fd, bool is_compact)
{
    struct joule_nodefile *file = calloc(1, sizeof(*file));

    if (!file)
        return NULL;
    file->image = joule_image_create(fd, is_compact);
    if (!file->image) {
        free(file);
        return NULL;
    }
    return file;
}

/*
 * An open file description lock: unlike flock(2) it is seen by the nodes that
 * share a file system whatever their NFS version, and unlike a lock of the
 * process it stays when another descriptor of the file is closed.  A file
 * system without locks refuses it; the file is written all the same, and a
 * merge keeps it until it is closed.
 */
static void lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    fcntl(fd, F_OFD_SETLK, &whole);
}

struct joule_nodefile *
joule_nodefile_create(int fd, const struct joule_nodefile_facts *facts,
                      struct joule_error *err)
{
    struct joule_header attributes = {0};
    struct joule_nodefile *file;

    if (!is_name(facts->node, strlen(facts->node))) {
        joule_error_set(err, EINVAL, "'%s' cannot be the name of a group",
                        facts->node);
        return NULL;
    }
    lock(fd);
    file = make(fd, false);
    if (file) {
        file->shape = growing;
        file->tasks = facts->tasks;
        snprintf(file->name, sizeof(file->name), facts->run ? "%s.r%u" : "%s",
                 facts->node, facts->run);
    }
    if (file && put_facts(&attributes, facts) == 0 &&
        begin(file, &attributes) == 0)
        return file;
    joule_header_free(&attributes);
    joule_nodefile_destroy(file);
    joule_error_set(err, ENOMEM, "out of memory");
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
    for (i = 0; i < file->sub_count; i++)
        joule_group_destroy(file->subs[i].group);
    free(file->subs);
    joule_group_destroy(file->group);
    joule_group_destroy(file->root);
    joule_image_destroy(file->image);
    free(file);
}

/* A new group in that of the node; its place in the list is there. */
static struct joule_group *add_sub(struct joule_nodefile *file,
                                   const char *name, size_t names)
{
    struct sub *sub = &file->subs[file->sub_count];
    struct joule_header none = {0};

    if (joule_group_find(file->group, name) != JOULE_IMAGE_NOWHERE) {
        errno = EINVAL; /* a table */
        return NULL;
    }
    snprintf(sub->name, sizeof(sub->name), "%s", name);
    sub->group = joule_group_create(file->image, &file->shape, &none, names);
    if (!sub->group)
        return NULL;
    if (joule_group_add(file->group, name, joule_group_at(sub->group)) < 0) {
        joule_group_destroy(sub->group);
        return NULL;
    }
    file->sub_count++;
    return sub->group;
}

static struct joule_group *find_sub(const struct joule_nodefile *file,
                                    const char *name)
{
    for (int i = 0; i < file->sub_count; i++)
        if (strcmp(file->subs[i].name, name) == 0)
            return file->subs[i].group;
    return NULL;
}

/* The group before the slash; the node's, if there is none. */
static struct joule_group *find_parent(struct joule_nodefile *file,
                                       const char *name, const char **ret_rest)
{
    const char *slash = strchr(name, '/');
    size_t length = slash ? (size_t)(slash - name) : 0;
    struct joule_group *group;
    struct sub *subs;
    char sub[256];

    *ret_rest = slash ? slash + 1 : name;
    if (!is_name(*ret_rest, strlen(*ret_rest)) ||
        (slash && !is_name(name, length))) {
        errno = EINVAL;
        return NULL;
    }
    if (!slash)
        return file->group;
    memcpy(sub, name, length);
    sub[length] = '\0';
    group = find_sub(file, sub);
    if (group)
        return group;
    subs = reallocarray(file->subs, (size_t)file->sub_count + 1, sizeof(*subs));
    if (!subs)
        return NULL;
    file->subs = subs;
    return add_sub(file, sub, (size_t)file->tasks * TASK_NAME);
}

/* ---- tables ---- */

static int make_place(struct joule_nodefile *file)
{
    struct joule_table **tables = reallocarray(
        file->tables, (size_t)file->count + 1, sizeof(struct joule_table *));

    if (!tables)
        return -1;
    file->tables = tables;
    return 0;
}

static int keep_table(struct joule_nodefile *file, struct joule_group *parent,
                      const char *name, struct joule_table *table)
{
    if (!table || joule_group_add(parent, name, joule_table_at(table)) < 0) {
        joule_table_destroy(table);
        return -1;
    }
    file->tables[file->count] = table;
    return file->count++;
}

int joule_nodefile_add_table(struct joule_nodefile *file, const char *name,
                             const struct joule_table_options *opt)
{
    struct joule_group *parent;
    const char *rest;

    if (opt->count > JOULE_FIELDS_MAX) {
        errno = E2BIG;
        return -1;
    }
    if (make_place(file) < 0)
        return -1;
    parent = find_parent(file, name, &rest);
    if (!parent)
        return -1;
    if (joule_group_find(parent, rest) != JOULE_IMAGE_NOWHERE) {
        errno = EINVAL;
        return -1;
    }
    return keep_table(file, parent, rest, joule_table_create(file->image, opt));
}

struct joule_table *joule_nodefile_table(struct joule_nodefile *file, int table)
{
    return file->tables[table];
}

/* ---- what is missing ---- */

void joule_nodefile_set_loss(struct joule_nodefile *file,
                             const struct joule_loss *loss)
{
    joule_group_set_u64(file->group, "Joule Lost Rows", loss->rows);
    joule_group_set_u64(file->group, "Joule Lost First ns", loss->first_ns);
    joule_group_set_u64(file->group, "Joule Lost Last ns", loss->last_ns);
    joule_group_set_u64(file->group, "Joule Lost Error", (uint64_t)loss->error);
}

void joule_nodefile_set_missed(struct joule_nodefile *file, uint64_t periods)
{
    joule_group_set_u64(file->group, "Joule Missed Periods", periods);
}

/* ---- to the disk ---- */

/* When all places are given away: how far it goes. */
static int flush_superblock(struct joule_nodefile *file)
{
    unsigned char bytes[JOULE_SUPERBLOCK_SIZE];
    uint64_t end = joule_image_end(file->image);

    if (end == file->told)
        return 0;
    joule_superblock(bytes, end, joule_group_at(file->root), &file->shape);
    if (joule_image_write(file->image, JOULE_IMAGE_SUPER, 0, bytes,
                          sizeof(bytes)) < 0)
        return -1;
    file->told = end;
    return 0;
}

/* Everything to the image. */
static int flush(struct joule_nodefile *file)
{
    int i;

    for (i = 0; i < file->count; i++)
        if (joule_table_flush(file->tables[i]) < 0)
            return -1;
    for (i = 0; i < file->sub_count; i++)
        if (joule_group_flush(file->subs[i].group) < 0)
            return -1;
    if (joule_group_flush(file->group) < 0 || joule_group_flush(file->root) < 0)
        return -1;
    return flush_superblock(file);
}

int joule_nodefile_commit(struct joule_nodefile *file)
{
    return flush(file) < 0 ? -1 : joule_image_commit(file->image);
}

int joule_nodefile_finish(struct joule_nodefile *file, int64_t end_ns,
                          int64_t end_wall_ns)
{
    int i;

    for (i = 0; i < file->count; i++)
        if (joule_table_finish(file->tables[i]) < 0)
            return -1;
    joule_group_set_u64(file->group, "Joule End ns", (uint64_t)end_ns);
    joule_group_set_u64(file->group, "Joule End Wall ns",
                        (uint64_t)end_wall_ns);
    if (joule_nodefile_commit(file) < 0)
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
    joule_nodefile_set_loss(file, loss);
    if (joule_group_flush(file->group) < 0)
        return -1;
    return joule_image_rescue(file->image);
}

bool joule_nodefile_is_loose(const struct joule_nodefile *file)
{
    uint64_t size = joule_image_used(file->image);

    return size < SMALL || joule_image_unused(file->image) > size / 10;
}

/* ---- a copy ---- */

static struct joule_table *table_at(const struct joule_nodefile *file,
                                    uint64_t at)
{
    for (int i = 0; i < file->count; i++)
        if (joule_table_at(file->tables[i]) == at)
            return file->tables[i];
    return NULL;
}

static size_t count_names(const struct joule_group *group, size_t *ret_bytes)
{
    const char *name;
    uint64_t at;
    size_t i;

    *ret_bytes = 0;
    for (i = 0; (name = joule_group_member(group, i, &at)) != NULL; i++)
        *ret_bytes += joule_hdf_padded(strlen(name) + 1);
    return i;
}

static int copy_members(const struct joule_nodefile *from,
                        const struct joule_group *group,
                        struct joule_nodefile *to, struct joule_group *parent)
{
    const char *name;
    uint64_t at;

    for (size_t i = 0; (name = joule_group_member(group, i, &at)) != NULL;
         i++) {
        struct joule_table *table = table_at(from, at);
        struct joule_group *old = table ? NULL : find_sub(from, name), *sub;
        size_t bytes;

        if (table) {
            if (make_place(to) < 0 ||
                keep_table(to, parent, name,
                           joule_table_copy(table, to->image)) < 0)
                return -1;
            continue;
        }
        count_names(old, &bytes);
        sub = add_sub(to, name, bytes);
        if (!sub || copy_members(from, old, to, sub) < 0)
            return -1;
    }
    return 0;
}

/* A shape in which the names of every group fit. */
static struct joule_names_shape find_shape(const struct joule_nodefile *file)
{
    size_t bytes;

    if (count_names(file->group, &bytes) > COMPACT_NAMES)
        return growing;
    for (int i = 0; i < file->sub_count; i++)
        if (count_names(file->subs[i].group, &bytes) > COMPACT_NAMES)
            return growing;
    return compact;
}

static int copy_all(const struct joule_nodefile *file,
                    struct joule_nodefile *to)
{
    struct joule_header attributes = {0};
    int rc;

    to->shape = find_shape(file);
    memcpy(to->name, file->name, sizeof(to->name));
    to->subs = calloc((size_t)file->sub_count + 1, sizeof(*to->subs));
    rc = to->subs ? joule_group_attributes(file->group, &attributes) : -1;
    if (rc == 0)
        rc = begin(to, &attributes);
    joule_header_free(&attributes);
    if (rc < 0 || copy_members(file, file->group, to, to->group) < 0 ||
        joule_nodefile_commit(to) < 0)
        return -1;
    return joule_image_sync(to->image);
}

int joule_nodefile_copy(struct joule_nodefile *file, int fd)
{
    struct joule_nodefile *to = make(fd, true);
    int rc, saved;

    if (!to)
        return -1;
    rc = copy_all(file, to);
    saved = errno;
    joule_nodefile_destroy(to);
    errno = saved;
    return rc;
}

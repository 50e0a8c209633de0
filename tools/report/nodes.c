/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/report/nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/profile/hdf5_driver.h"
#include "common/profile/hdf5_read.h"
#include "tools/joule/text.h"
#include "tools/sh5util/jobid.h"
#include "tools/sh5util/jobtables.h"
#include "tools/sh5util/resolve.h"
#include "tools/sh5util/sources.h"

/* Memory of a worker, besides what libhdf5 has. */
#define DATA_BYTES ((size_t)2 << 30)

/* A node with millions of regions takes seconds. */
#define CPU_S  300
#define WALL_S 600

#define BATCH_SIZE ((size_t)128 << 10)

#define NAMES_MAX 65536

struct joule_nodes {
    struct joule_job *job;
    char *dir, *user;
    struct joule_sources sources; /* node-step files, or none */
    struct joule_plan plan;       /* of a merged file */
    int fd;                       /* of the merged file; -1: node-step files */
    size_t *node;                 /* in plan, of nodes that are meant */
    size_t count;
    const struct joule_nodes_reading *reading;
};

static int no_memory(struct joule_error *err)
{
    return joule_error_set(err, ENOMEM, "out of memory");
}

/* ---- which ---- */

static int parse_job(struct joule_nodes *n, const char *text,
                     struct joule_error *err)
{
    size_t jobs;

    if (joule_jobs_parse(text, &n->job, &jobs, err) < 0)
        return -1;
    if (jobs > 1)
        return joule_error_set(err, EINVAL, "one job at a time");
    return joule_job_resolve(n->job, err);
}

static int find_places(struct joule_nodes *n,
                       const struct joule_nodes_request *request,
                       struct joule_error *err)
{
    const struct passwd *pw = getpwuid(geteuid());
    const char *conf = getenv("SLURM_CONF");
    int root_fd;

    if (!request->user && !pw)
        return joule_error_set(err, ENOENT,
                               "who runs this has no name: give one with -u");
    n->user = strdup(request->user ? request->user : pw->pw_name);
    if (request->dir) {
        n->dir = strdup(request->dir);
    } else {
        root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        n->dir = joule_profiledir(root_fd, conf && *conf ? conf : NULL, err);
        joule_close(root_fd);
        if (!n->dir)
            return -1;
    }
    return n->user && n->dir ? 0 : no_memory(err);
}

/* The file itself does not say of which job it is, and its name may. */
static int check_name(const struct joule_nodes *n, const char *path,
                      struct joule_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    uint32_t id;
    int length = 0;

    if (!n->job || sscanf(name, "job_%" SCNu32 ".h5%n", &id, &length) != 1 ||
        length == 0 || name[length] || id == n->job->id)
        return 0;
    return joule_error_set(err, EINVAL, "%s is of job %" PRIu32 ", not of %s",
                           path, id, n->job->text);
}

/* The nodes of a merged file. */
static int open_merged(struct joule_nodes *n, const char *path,
                       struct joule_error *err)
{
    struct stat st;

    n->fd = joule_plan_open(AT_FDCWD, path, path, &st, err);
    if (n->fd < 0)
        return -1;
    if (joule_plan_read(n->fd, &n->plan, err) < 0)
        return joule_error_set(err, errno, "%s: %s", path, err->text);
    n->node = calloc(n->plan.nodes + 1, sizeof(*n->node));
    if (!n->node)
        return no_memory(err);
    for (size_t i = 0; i < n->plan.nodes; i++)
        if (!n->job || joule_job_has_step(n->job, n->plan.node[i].step))
            n->node[n->count++] = i;
    if (n->count == 0 && n->plan.nodes > 0)
        return joule_error_set(err, ENOENT, "%s has no such step", path);
    return 0;
}

static int find(struct joule_nodes *n,
                const struct joule_nodes_request *request,
                struct joule_error *err)
{
    char path[64];

    if (request->job && parse_job(n, request->job, err) < 0)
        return -1;
    if (request->input)
        return check_name(n, request->input, err) < 0
                   ? -1
                   : open_merged(n, request->input, err);
    if (find_places(n, request, err) < 0 ||
        joule_sources_find(&n->sources, n->dir, n->user, n->job, err) < 0)
        return -1;
    n->count = n->sources.count;
    if (n->count > 0)
        return 0;
    snprintf(path, sizeof(path), "./job_%s.h5", n->job->text);
    if (open_merged(n, path, err) == 0)
        return 0;
    return joule_error_set(err, ENOENT,
                           "%s has no profile in %s/%s, and there is no %s of "
                           "it: a step has one with srun --profile=energy, %s",
                           request->job, n->dir, n->user, path,
                           "about 10 s after its begin at the earliest");
}

struct joule_nodes *joule_nodes_find(const struct joule_nodes_request *request,
                                     struct joule_error *err)
{
    struct joule_nodes *n = calloc(1, sizeof(*n));

    if (!n) {
        no_memory(err);
        return NULL;
    }
    n->fd = n->sources.dir_fd = n->sources.old_fd = -1;
    joule_hdf5_prepare();
    if (find(n, request, err) == 0)
        return n;
    joule_nodes_free(n);
    return NULL;
}

void joule_nodes_free(struct joule_nodes *n)
{
    if (!n)
        return;
    joule_plan_free(&n->plan);
    joule_sources_free(&n->sources);
    joule_close(n->fd);
    free(n->node);
    free(n->job);
    free(n->dir);
    free(n->user);
    free(n);
}

size_t joule_nodes_count(const struct joule_nodes *n)
{
    return n->count;
}

struct joule_node joule_nodes_get(const struct joule_nodes *n, size_t i)
{
    if (n->fd < 0)
        return (struct joule_node){n->sources.source[i].step,
                                   n->sources.source[i].node};
    return (struct joule_node){n->plan.node[n->node[i]].step,
                               n->plan.node[n->node[i]].name};
}

void joule_nodes_complain(const struct joule_nodes *nodes, size_t i,
                          const char *who, const char *sentence)
{
    struct joule_node node = joule_nodes_get(nodes, i);
    char text[JOULE_ERROR_MAX + 600];

    snprintf(text, sizeof(text), "%s: step %s on %s: %s", who, node.step,
             node.name, sentence);
    joule_text_put(stderr, text);
    fputc('\n', stderr);
}

/* ---- reading ---- */

static int open_node(void *arg, size_t i, struct joule_error *err)
{
    struct joule_nodes *n = arg;
    int fd;

    if (n->fd < 0 && n->sources.source[i].is_log)
        return joule_error_set(
            err, EBUSY,
            "the step runs, or was killed: after it, 'sh5util "
            "-j JOB' makes a file of its log");
    fd = n->fd < 0 ? joule_source_open(&n->sources, &n->sources.source[i], err)
                   : fcntl(n->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0 && n->fd >= 0)
        joule_error_set(err, errno, "cannot open the file again: %m");
    return fd;
}

static int read_node(void *arg, size_t i, int fd, struct joule_out *out,
                     struct joule_error *err)
{
    const struct joule_nodes *n = arg;
    struct joule_node node = joule_nodes_get(n, i);
    hid_t file = joule_hdf5_open_fd(fd, err), group;
    char *path;
    int rc;

    if (file < 0)
        return -1;
    rc = n->fd < 0
             ? asprintf(&path, "/%s", node.name)
             : asprintf(&path, "/Steps/%s/Nodes/%s", node.step, node.name);
    if (rc < 0) {
        joule_hdf5_close(file, NULL);
        return no_memory(err);
    }
    group = H5Gopen2(file, path, H5P_DEFAULT);
    free(path);
    rc = group < 0 ? joule_hdf5_error(err, EBADMSG, "the node's group")
                   : n->reading->read(n->reading->arg, i, group, out, err);
    joule_hdf5_release(group);
    joule_hdf5_close(file, NULL);
    return rc;
}

static int take(void *arg, size_t i, const void *data, size_t size,
                struct joule_error *err)
{
    const struct joule_nodes *n = arg;

    return n->reading->take(n->reading->arg, i, data, size, err);
}

static int ended(void *arg, size_t i, const struct joule_work_end *end,
                 struct joule_error *err)
{
    const struct joule_nodes *n = arg;

    (void)err;
    if (end->errnum)
        n->reading->failed(n->reading->arg, i, end->sentence);
    return 0;
}

int joule_nodes_read(struct joule_nodes *n,
                     const struct joule_nodes_reading *reading,
                     struct joule_error *err)
{
    const struct joule_work work = {
        .open = open_node,
        .run = read_node,
        .take = take,
        .ended = ended,
        .arg = n,
        .data_bytes = DATA_BYTES,
        .cpu_s = CPU_S,
        .wall_s = WALL_S,
    };

    n->reading = reading;
    return joule_work_run(&work, n->count, 1, err);
}

/* ---- tables ---- */

static int find_columns(const struct joule_hdf5_table *t, const char *name,
                        const char *const *column, size_t columns,
                        const struct joule_column **ret,
                        struct joule_error *err)
{
    for (size_t i = 0; i < columns; i++) {
        ret[i] = joule_rowtype_find(t->row, column[i]);
        if (!ret[i] || ret[i]->kind != JOULE_KIND_UNSIGNED)
            return joule_error_set(err, EINVAL,
                                   "table %s has no column %s of numbers", name,
                                   column[i]);
    }
    return 0;
}

static int read_rows(struct joule_hdf5_table *t,
                     const struct joule_column *const *column, size_t columns,
                     uint64_t *to, size_t *ret_rows, struct joule_error *err)
{
    size_t batch_rows = joule_hdf5_table_batch(t, BATCH_SIZE), count, rows = 0;
    unsigned char *batch = malloc(batch_rows * t->row->size);

    if (!batch)
        return no_memory(err);
    while (rows < t->rows &&
           (count = joule_hdf5_table_read(t, batch, batch_rows)) > 0)
        for (size_t i = 0; i < count && rows < t->rows; i++, rows++)
            for (size_t c = 0; c < columns; c++)
                *to++ = joule_column_u64(column[c], batch + i * t->row->size);
    free(batch);
    *ret_rows = rows;
    return 0;
}

int joule_nodes_table(hid_t group, const char *name, const char *const *column,
                      size_t columns, size_t rows_max, uint64_t **ret,
                      size_t *ret_rows, struct joule_error *err)
{
    const struct joule_column *found[16];
    struct joule_hdf5_table *t;
    uint64_t *rows = NULL;
    int rc = -1;

    if (H5Lexists(group, name, H5P_DEFAULT) <= 0)
        return joule_error_set(err, ENOENT, "there is no table %s", name);
    t = joule_hdf5_table_open(group, name, err);
    if (!t)
        return -1;
    if (find_columns(t, name, column, columns, found, err) < 0)
        goto out;
    if (t->rows > rows_max) {
        joule_error_set(err, E2BIG,
                        "table %s has %llu rows, of which %zu are "
                        "read at most",
                        name, (unsigned long long)t->rows, rows_max);
        goto out;
    }
    rows = calloc(t->rows + 1, columns * sizeof(*rows));
    rc = rows ? read_rows(t, found, columns, rows, ret_rows, err)
              : no_memory(err);
    if (rc == 0)
        *ret = rows;
    else
        free(rows);
out:
    joule_hdf5_table_close(t);
    return rc;
}

/* Rows of names: the one with number [i] is the row [i]. */
static int read_texts(struct joule_hdf5_table *t, joule_region_text *to,
                      size_t *ret_count, struct joule_error *err)
{
    const struct joule_column *number = joule_rowtype_find(t->row, "Region");
    const struct joule_column *text = joule_rowtype_find(t->row, "Name");
    size_t batch_rows = joule_hdf5_table_batch(t, BATCH_SIZE), count, n = 0;
    unsigned char *batch;

    if (!number || number->kind != JOULE_KIND_UNSIGNED || !text ||
        text->kind != JOULE_KIND_STRING || text->size > sizeof(*to))
        return joule_error_set(err, EINVAL, "RegionNames has no such columns");
    batch = malloc(batch_rows * t->row->size);
    if (!batch)
        return no_memory(err);
    while (n < t->rows &&
           (count = joule_hdf5_table_read(t, batch, batch_rows)) > 0)
        for (size_t i = 0; i < count && n < t->rows; i++, n++) {
            const unsigned char *row = batch + i * t->row->size;

            if (joule_column_u64(number, row) != n)
                continue;
            memcpy(to[n], row + text->offset, text->size);
            to[n][sizeof(*to) - 1] = '\0';
        }
    free(batch);
    *ret_count = n;
    return 0;
}

int joule_nodes_names(hid_t group, joule_region_text **ret, size_t *ret_count,
                      struct joule_error *err)
{
    struct joule_hdf5_table *t =
        joule_hdf5_table_open(group, "RegionNames", err);
    joule_region_text *names;
    int rc;

    if (!t)
        return -1;
    names = calloc(t->rows <= NAMES_MAX ? t->rows + 1 : 1, sizeof(*names));
    if (t->rows > NAMES_MAX)
        rc = joule_error_set(err, E2BIG, "more than %d names of regions",
                             NAMES_MAX);
    else
        rc = names ? read_texts(t, names, ret_count, err) : no_memory(err);
    joule_hdf5_table_close(t);
    if (rc == 0)
        *ret = names;
    else
        free(names);
    return rc;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * joule waits --hdf5: tables of the waits in a job's merged profile, beside the nodes of
 * the step (doc/hdf5-format.md).  A copy of the file gets them, and then the file's name.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/profile/hdf5_driver.h"
#include "common/profile/hdf5_read.h"
#include "config.h"
#include "tools/report/waits.h"
#include "tools/sh5util/jobid.h"
#include "tools/sh5util/jobtables.h"
#include "tools/sh5util/outfile.h"

#define FORMAT     1
#define TEXT_MAX   4096 /* bytes of a call path or a name, with the NUL */
#define COPY_BYTES ((size_t)1 << 20)
#define DATA_BYTES ((size_t)1 << 30) /* of the worker */

#define RANK_NONE UINT32_MAX

enum { TEXTS = 5, NUMBERS = 9 };

static const struct {
    const char *name;
    unsigned by; /* a table of which has it */
} text_columns[TEXTS] = {
    {"Pattern", JOULE_BY_PATTERN},           {"Path", JOULE_BY_PATH},
    {"Process", JOULE_BY_PROCESS},           {"Node", JOULE_BY_PROCESS},
    {"Communicator", JOULE_BY_COMMUNICATOR},
};

/* Of 8 bytes each; the first one where processes are told apart. */
static const struct {
    const char *name, *unit;
    bool is_double;
} number_columns[NUMBERS] = {
    {"Rank", NULL, false},         {"Count", NULL, false},
    {"TimeNs", "ns", false},       {"LongestNs", "ns", false},
    {"State1J", "J", true},        {"ESPJ", "J", true},
    {"ESPBWJ", "J", true},         {"UsedJ", "J", true},
    {"UsedUncertainJ", "J", true},
};

static const struct {
    const char *name;
    unsigned by;
} tables[] = {
    {"Patterns", JOULE_BY_PATTERN},
    {"Paths", JOULE_BY_PATH},
    {"Processes", JOULE_BY_PROCESS},
    {"All", JOULE_BY_ALL},
};

/* A table that is filled. */
struct filling {
    hid_t group;
    const char *name;
    int first_number;    /* of its columns */
    size_t bytes[TEXTS]; /* of the longest text, with the NUL; 0: no column */
    size_t row_bytes;
    unsigned char *row;
    size_t rows, room;
};

struct joule_waits_hdf5 {
    const char *path;
    struct joule_outfile out;
    int fd; /* of the file as it is */
    char step[JOULE_STEP_TEXT_MAX];
    const struct joule_waits *w;
};

/* ---- tables ---- */

static void texts_of(const struct joule_waits_line *l, const char *ret[TEXTS])
{
    ret[0] = l->pattern;
    ret[1] = l->path;
    ret[2] = l->process;
    ret[3] = l->node;
    ret[4] = l->communicator;
}

static int measure(void *arg, const struct joule_waits_line *l)
{
    struct filling *f = arg;
    const char *text[TEXTS];

    texts_of(l, text);
    for (int i = 0; i < TEXTS; i++) {
        size_t bytes = text[i] ? strnlen(text[i], TEXT_MAX - 1) + 1 : 0;

        if (bytes > f->bytes[i])
            f->bytes[i] = bytes;
    }
    f->room++;
    return 0;
}

static int fill(void *arg, const struct joule_waits_line *l)
{
    struct filling *f = arg;
    const uint64_t whole[4] = {l->has_rank ? l->rank : RANK_NONE, l->count,
                               l->ns, l->longest_ns};
    const double joules[5] = {
        l->has_saving ? l->state1_j : (double)NAN,
        l->has_saving ? l->esp_j : (double)NAN,
        l->has_saving ? l->esp_bw_j : (double)NAN,
        l->has_use ? l->used_j : (double)NAN,
        l->has_use ? l->used_uncertain_j : (double)NAN,
    };
    unsigned char *to = f->row + f->rows++ * f->row_bytes;
    const char *text[TEXTS];

    texts_of(l, text);
    for (int i = 0; i < TEXTS; i++) {
        if (f->bytes[i] > 0)
            memcpy(to, text[i], strnlen(text[i], f->bytes[i] - 1));
        to += f->bytes[i];
    }
    for (int i = f->first_number; i < 4; i++, to += 8)
        memcpy(to, &whole[i], 8);
    memcpy(to, joules, sizeof(joules));
    return 0;
}

/* Of rows in the file, or in memory. */
static hid_t make_type(const struct filling *f, hid_t whole, hid_t floating)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, f->row_bytes), text;
    size_t at = 0;
    herr_t rc = type < 0 ? -1 : 0;

    for (int i = 0; rc >= 0 && i < TEXTS; i++) {
        if (f->bytes[i] == 0)
            continue;
        text = H5Tcopy(H5T_C_S1);
        rc = H5Tset_size(text, f->bytes[i]);
        if (rc >= 0)
            rc = H5Tinsert(type, text_columns[i].name, at, text);
        H5Tclose(text);
        at += f->bytes[i];
    }
    for (int i = f->first_number; rc >= 0 && i < NUMBERS; i++, at += 8)
        rc = H5Tinsert(type, number_columns[i].name, at,
                       number_columns[i].is_double ? floating : whole);
    if (rc >= 0)
        return type;
    joule_hdf5_release(type);
    return -1;
}

static int put_text(hid_t object, const char *name, const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    int rc = -1;

    if (H5Tset_size(type, strlen(text) + 1) >= 0)
        rc = joule_hdf5_put_attribute(object, name, type, type, text);
    H5Tclose(type);
    return rc;
}

static int put_units(hid_t set)
{
    char name[64];
    int rc = 0;

    for (int i = 0; rc == 0 && i < NUMBERS; i++) {
        if (!number_columns[i].unit)
            continue;
        snprintf(name, sizeof(name), "Joule Unit %s", number_columns[i].name);
        rc = put_text(set, name, number_columns[i].unit);
    }
    return rc;
}

static int write_table(const struct filling *f)
{
    hsize_t rows = f->rows;
    hid_t type = make_type(f, H5T_STD_U64LE, H5T_IEEE_F64LE);
    hid_t memory = make_type(f, H5T_NATIVE_UINT64, H5T_NATIVE_DOUBLE);
    hid_t space = H5Screate_simple(1, &rows, NULL), set = -1;
    int rc = -1;

    if (type >= 0 && memory >= 0 && space >= 0)
        set = H5Dcreate2(f->group, f->name, type, space, H5P_DEFAULT,
                         H5P_DEFAULT, H5P_DEFAULT);
    if (set >= 0 && (rows == 0 || H5Dwrite(set, memory, H5S_ALL, H5S_ALL,
                                           H5P_DEFAULT, f->row) >= 0))
        rc = put_units(set);
    joule_hdf5_release(set);
    joule_hdf5_release(space);
    joule_hdf5_release(memory);
    joule_hdf5_release(type);
    return rc;
}

static int put_table(const struct joule_waits *w, hid_t group, const char *name,
                     unsigned by, struct joule_error *err)
{
    struct filling f = {.group = group,
                        .name = name,
                        .first_number = by & JOULE_BY_PROCESS ? 0 : 1};
    int rc;

    for (int i = 0; i < TEXTS; i++)
        f.bytes[i] = by & text_columns[i].by ? 1 : 0;
    rc = joule_waits_lines(w, by, measure, &f);
    f.row_bytes = 8 * (size_t)(NUMBERS - f.first_number);
    for (int i = 0; i < TEXTS; i++)
        f.row_bytes += f.bytes[i];
    f.row = calloc(f.room + 1, f.row_bytes);
    if (rc < 0 || !f.row || joule_waits_lines(w, by, fill, &f) < 0)
        rc = joule_error_set(err, ENOMEM, "out of memory");
    else if (write_table(&f) < 0)
        rc = joule_hdf5_error(err, EIO, "the table %s", name);
    free(f.row);
    return rc;
}

static int put_attributes(const struct joule_waits *w, hid_t group)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"Joule Format", FORMAT},
        {"Joule Begin Wall ns",
         w->d->wall_ns ? (uint64_t)w->d->wall_ns + w->facts->begin_ns : 0},
        {"Joule Length ns", w->facts->end_ns > w->facts->begin_ns
                                ? w->facts->end_ns - w->facts->begin_ns
                                : 0},
        {"Joule Whole", w->facts->missing + w->facts->damaged == 0},
    };
    int rc = put_text(group, "Joule Writer", PACKAGE_STRING) |
             put_text(group, "Joule Trace", w->trace);

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        rc |= joule_hdf5_put_attribute(group, numbers[i].name, H5T_STD_U64LE,
                                       H5T_NATIVE_UINT64, &numbers[i].value);
    return rc;
}

/* What was there of an earlier trace of the step is replaced. */
static int put_group(const struct joule_waits_hdf5 *h, hid_t file,
                     struct joule_error *err)
{
    char path[64];
    hid_t group;
    int rc = 0;

    snprintf(path, sizeof(path), "/Steps/%s/Waits", h->step);
    if (H5Lexists(file, path, H5P_DEFAULT) > 0 &&
        H5Ldelete(file, path, H5P_DEFAULT) < 0)
        return joule_hdf5_error(err, EIO, "%s", path);
    group = H5Gcreate2(file, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (group < 0 || put_attributes(h->w, group) < 0)
        rc = joule_hdf5_error(err, EIO, "%s", path);
    for (size_t i = 0; rc == 0 && i < sizeof(tables) / sizeof(tables[0]); i++)
        rc = put_table(h->w, group, tables[i].name, tables[i].by, err);
    joule_hdf5_release(group);
    return rc;
}

/* ---- the worker: what is in a file may be hostile ---- */

static int run(void *arg, size_t task, int fd, struct joule_out *out,
               struct joule_error *err)
{
    const struct joule_waits_hdf5 *h = arg;
    struct joule_error close_error;
    hid_t file = joule_hdf5_change_fd(h->out.fd, err);
    int rc;

    (void)task;
    (void)fd;
    (void)out;
    if (file < 0)
        return -1;
    rc = put_group(h, file, err);
    if (joule_hdf5_close(file, &close_error) < 0) {
        *err = close_error;
        rc = -1;
    }
    return rc;
}

static int take(void *arg, size_t task, const void *data, size_t size,
                struct joule_error *err)
{
    (void)arg;
    (void)task;
    (void)data;
    (void)size;
    return joule_error_set(err, EBADMSG, "its reader sent nonsense");
}

static int ended(void *arg, size_t task, const struct joule_work_end *end,
                 struct joule_error *err)
{
    const struct joule_waits_hdf5 *h = arg;

    (void)task;
    return end->errnum
               ? joule_error_set(err, end->errnum, "cannot write %s: %s",
                                 h->path, end->sentence)
               : 0;
}

/* ---- the file ---- */

struct joule_waits_hdf5 *joule_waits_hdf5_open(const char *path,
                                               struct joule_error *err)
{
    struct joule_waits_hdf5 *h = calloc(1, sizeof(*h));
    struct stat st;

    if (!h) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    h->path = path;
    h->fd = -1;
    if (joule_outfile_open(&h->out, path, err) == 0)
        h->fd = joule_plan_open(h->out.dir_fd, h->out.name, path, &st, err);
    if (h->fd >= 0) {
        joule_outfile_limit(&h->out, &st);
        return h;
    }
    joule_waits_hdf5_close(h);
    return NULL;
}

void joule_waits_hdf5_close(struct joule_waits_hdf5 *h)
{
    if (!h)
        return;
    joule_outfile_abandon(&h->out);
    joule_close(h->fd);
    free(h);
}

/* It is a merged file that has the step, and by its name of that job. */
static int find_step(struct joule_waits_hdf5 *h, const char *step,
                     struct joule_error *err)
{
    const struct joule_nodes_request request = {.job = step, .input = h->path};
    struct joule_nodes *nodes;

    if (!step || !strchr(step, '.'))
        return joule_error_set(err, EINVAL,
                               "of which step is the trace? Give --job="
                               "JOB.STEP");
    nodes = joule_nodes_find(&request, err);
    if (!nodes)
        return -1;
    for (size_t i = 0; i < joule_nodes_count(nodes); i++)
        if (strcmp(joule_nodes_get(nodes, i).step,
                   joule_nodes_get(nodes, 0).step) != 0) {
            joule_nodes_free(nodes);
            return joule_error_set(err, EINVAL, "--job is one step");
        }
    snprintf(h->step, sizeof(h->step), "%s", joule_nodes_get(nodes, 0).step);
    joule_nodes_free(nodes);
    return 0;
}

static int write_all(int fd, const char *from, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, from, size);

        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0) {
            from += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

static int copy_bytes(const struct joule_waits_hdf5 *h, struct joule_error *err)
{
    char *buffer = malloc(COPY_BYTES);
    ssize_t n = buffer ? 1 : -1;

    while (n > 0) {
        n = joule_file_fill(h->fd, buffer, COPY_BYTES);
        if (n > 0 && write_all(h->out.fd, buffer, (size_t)n) < 0)
            n = -1;
    }
    if (n < 0)
        joule_error_set(err, errno, "cannot copy %s: %m", h->path);
    free(buffer);
    return n < 0 ? -1 : 0;
}

int joule_waits_hdf5_write(struct joule_waits_hdf5 *h,
                           const struct joule_waits *w, const char *step,
                           struct joule_error *err)
{
    const struct joule_work work = {
        .run = run,
        .take = take,
        .ended = ended,
        .arg = h,
        .keep = &h->out.fd,
        .keeps = 1,
        .writes_files = true,
        .data_bytes = DATA_BYTES,
    };

    h->w = w;
    joule_hdf5_prepare();
    if (find_step(h, step, err) < 0 || copy_bytes(h, err) < 0 ||
        joule_work_run(&work, 1, 1, err) < 0)
        return -1;
    return joule_outfile_commit(&h->out, err);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/store/output.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"

/* Rows of a chunk: some minutes at the usual rates, and little memory for a
 * node with a hundred tasks; at high rates half a minute. */
#define CHUNK_ROWS     256
#define CHUNK_ROWS_MAX 4096
#define CHUNK_NS       (40 * JOULE_NS_PER_S)

struct joule_output {
    const struct joule_output_options *opt;
    struct joule_intake *intake;
    int dir_fd, fd;
    char name[NAME_MAX + 1];
    struct joule_nodefile *file;
    uint64_t unsafe_first_ns, unsafe_last_ns; /* rows since the last commit */
    struct joule_intake_toll told;
};

struct joule_output *joule_output_create(const struct joule_output_options *opt,
                                         struct joule_intake *intake)
{
    struct joule_output *o = calloc(1, sizeof(*o));

    if (!o)
        return NULL;
    o->opt = opt;
    o->intake = intake;
    o->dir_fd = -1;
    o->fd = -1;
    o->unsafe_first_ns = UINT64_MAX;
    return o;
}

void joule_output_destroy(struct joule_output *o)
{
    if (!o)
        return;
    joule_nodefile_destroy(o->file);
    if (o->fd >= 0)
        close(o->fd);
    if (o->dir_fd >= 0)
        close(o->dir_fd);
    free(o);
}

bool joule_output_has_file(const struct joule_output *o)
{
    return o->file != NULL;
}

static size_t chunk_rows(const struct joule_output *o, int64_t period_ns)
{
    size_t rows = CHUNK_ROWS;

    if (o->opt->chunk_rows)
        return o->opt->chunk_rows;
    if (period_ns > 0)
        while (rows < CHUNK_ROWS_MAX && (int64_t)rows * period_ns < CHUNK_NS)
            rows *= 2;
    return rows;
}

static int open_file(struct joule_output *o, struct joule_error *err)
{
    struct joule_nodefile_facts facts = o->opt->facts;
    unsigned run = 0;

    if (o->dir_fd < 0)
        o->dir_fd = joule_place_open(&o->opt->place, err);
    if (o->dir_fd >= 0 && o->fd < 0)
        o->fd = joule_place_create(&o->opt->place, o->dir_fd, o->opt->base,
                                   o->name, sizeof(o->name), &run, err);
    if (o->fd >= 0) {
        facts.run = run;
        o->file = joule_nodefile_create(o->fd, &facts, err);
    }
    if (o->file)
        return 0;
    joule_intake_set_error(o->intake, errno);
    return -1;
}

/* Series that have come since the last time. */
static void add_tables(struct joule_output *o)
{
    struct joule_series_entry *s;
    uint32_t i;

    for (i = 0; (s = joule_intake_series(o->intake, i)) != NULL; i++) {
        struct joule_table_options opt = {
            .fields = s->fields,
            .count = s->count,
            .chunk_rows = chunk_rows(o, s->period_ns),
            .pack = o->opt->pack,
            .period_ns = (uint64_t)s->period_ns,
        };

        if (s->table >= 0 || s->refused)
            continue;
        s->table = joule_nodefile_add_table(o->file, s->name, &opt);
        s->refused = s->table < 0;
        if (s->refused)
            joule_intake_set_error(o->intake, errno);
    }
}

/* What was taken, into the tables. */
static void drain(struct joule_output *o)
{
    struct joule_series_entry *s;
    const void *row;
    uint64_t ns;

    while ((row = joule_intake_next(o->intake, &s, &ns)) != NULL) {
        if (s->table < 0 ||
            joule_table_append(joule_nodefile_table(o->file, s->table), row) <
                0) {
            joule_intake_lose(o->intake, s, 1, ns, ns);
            continue;
        }
        s->appended++;
        if (o->unsafe_first_ns == UINT64_MAX)
            o->unsafe_first_ns = ns;
        if (o->unsafe_last_ns < ns)
            o->unsafe_last_ns = ns;
    }
}

/* The count of what is missing, into the attributes. */
static void tell_toll(struct joule_output *o)
{
    struct joule_intake_toll toll = joule_intake_toll(o->intake);
    struct joule_series_entry *s;
    uint32_t i;

    if (toll.missed != o->told.missed)
        joule_nodefile_set_missed(o->file, toll.missed);
    o->told.missed = toll.missed;
    if (toll.loss.rows == o->told.loss.rows)
        return;
    joule_nodefile_set_loss(o->file, &toll.loss);
    o->told.loss = toll.loss;
    for (i = 0; (s = joule_intake_series(o->intake, i)) != NULL; i++) {
        uint64_t lost = joule_intake_lost(o->intake, s);

        if (s->table >= 0 && lost != s->told)
            joule_table_set_lost(joule_nodefile_table(o->file, s->table), lost);
        s->told = lost;
    }
}

static void note_safe(struct joule_output *o)
{
    struct joule_series_entry *s;
    uint32_t i;

    for (i = 0; (s = joule_intake_series(o->intake, i)) != NULL; i++)
        s->on_disk = s->appended;
    o->unsafe_first_ns = UINT64_MAX;
    o->unsafe_last_ns = 0;
}

static int failed(struct joule_output *o, struct joule_error *err)
{
    int error = errno;

    joule_intake_set_error(o->intake, error);
    return joule_error_set(err, error, "%s", strerror(error));
}

static int commit(struct joule_output *o, struct joule_error *err)
{
    if (joule_nodefile_commit(o->file) < 0)
        return failed(o, err);
    note_safe(o);
    return 0;
}

int joule_output_flush(struct joule_output *o, struct joule_error *err)
{
    if (!o->file && open_file(o, err) < 0)
        return -1;
    if (o->unsafe_first_ns != UINT64_MAX && commit(o, err) < 0)
        return -1;
    joule_intake_take(o->intake);
    add_tables(o);
    drain(o);
    tell_toll(o);
    return commit(o, err);
}

/* A copy without the room that was left for more; if that cannot be had, what
 * there is will do. */
static void tidy(struct joule_output *o)
{
    int fd;

    if (!joule_nodefile_is_loose(o->file))
        return;
    fd = joule_place_create_copy(&o->opt->place, o->dir_fd, o->name, NULL);
    if (fd < 0)
        return;
    if (joule_nodefile_copy(o->file, fd) == 0)
        joule_place_replace(o->dir_fd, o->name, o->fd);
    else
        joule_place_drop_copy(o->dir_fd, o->name);
    close(fd);
}

/* Rows that are in the queue, or in tables that did not get to the disk. */
static void count_lost(struct joule_output *o)
{
    struct joule_series_entry *s;
    uint64_t ns;
    uint32_t i;
    int k;

    for (i = 0; (s = joule_intake_series(o->intake, i)) != NULL; i++)
        if (s->appended > s->on_disk)
            joule_intake_lose(o->intake, s, s->appended - s->on_disk,
                              o->unsafe_first_ns, o->unsafe_last_ns);
    for (k = 0; k < 2; k++) {
        while (joule_intake_next(o->intake, &s, &ns))
            joule_intake_lose(o->intake, s, 1, ns, ns);
        joule_intake_take(o->intake);
    }
}

int joule_output_finish(struct joule_output *o, int64_t end_ns,
                        int64_t end_wall_ns, struct joule_error *err)
{
    struct joule_intake_toll toll;
    int saved;

    if (joule_output_flush(o, err) == 0) {
        if (joule_nodefile_finish(o->file, end_ns, end_wall_ns) == 0) {
            tidy(o);
            return 0;
        }
        failed(o, err);
    }
    saved = errno;
    count_lost(o);
    toll = joule_intake_toll(o->intake);
    if (o->file)
        joule_nodefile_rescue(o->file, &toll.loss);
    errno = saved;
    return -1;
}

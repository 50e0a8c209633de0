/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/extraction.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/profile/hdf5_driver.h"
#include "tools/sh5util/cells.h"
#include "tools/sh5util/options.h"
#include "tools/sh5util/say.h"

#define CPU_S  5
#define WALL_S 60

int joule_extraction_cut(struct joule_extraction *x, struct joule_error *err)
{
    size_t tables = x->selection.tables;

    x->first = calloc(tables + 1, sizeof(*x->first));
    if (!x->first)
        return joule_error_set(err, ENOMEM, "out of memory");
    x->first[0] = tables;
    return 0;
}

void joule_extraction_task(struct joule_extraction *x, size_t i)
{
    x->first[x->tasks++] = i;
    x->first[x->tasks] = x->selection.tables;
}

hid_t joule_extraction_file(struct joule_extraction *x, struct joule_error *err)
{
    if (x->file < 0)
        x->file = joule_hdf5_open_fd(x->input_fd, err);
    return x->file;
}

static int write_text(const struct joule_extraction *x, const char *data,
                      size_t len, struct joule_error *err)
{
    while (len > 0) {
        ssize_t n = write(x->out.fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return joule_error_set(err, errno, "cannot write %s: %m",
                                   x->out.dir_fd < 0 ? "the output"
                                                     : x->out.name);
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

/* Rows that workers have made; see cells.h about the first comma. */
static int write_rows(struct joule_extraction *x, const char *data, size_t len,
                      struct joule_error *err)
{
    if (x->request->json && !x->has_rows && len > 0) {
        data++;
        len--;
    }
    x->has_rows = true;
    return write_text(x, data, len, err);
}

int joule_extraction_head(struct joule_extraction *x,
                          const char *const *columns, size_t count,
                          struct joule_error *err)
{
    const char *job = x->request->job->text;
    bool json = x->request->json;
    struct joule_cells cells;
    size_t room = 64 + strlen(job);
    char *head, *at;
    int rc;

    for (size_t i = 0; i < count; i++)
        room += joule_cells_room(1, strlen(columns[i]));
    head = malloc(room);
    if (!head)
        return joule_error_set(err, ENOMEM, "out of memory");
    at = head;
    if (json)
        at += sprintf(at, "{\"job\": \"%s\",\n\"columns\": ", job);
    joule_cells_begin(&cells, at, json);
    if (json)
        cells.at = at + 1, *at = '[';
    for (size_t i = 0; i < count; i++)
        joule_cells_text(&cells, columns[i], strlen(columns[i]));
    joule_cells_end(&cells);
    if (json)
        cells.at += sprintf(cells.at, ",\n\"rows\": [");
    rc = write_text(x, head, (size_t)(cells.at - head), err);
    free(head);
    return rc;
}

/* What could not be read, or not all of it. */
static void say_failed(struct joule_extraction *x, const char *sentence)
{
    x->failed++;
    joule_say("%s: %s", x->request->input, sentence);
}

static int take(void *arg, size_t task, const void *data, size_t len,
                struct joule_error *err)
{
    (void)task;
    return write_rows(arg, data, len, err);
}

static int ended(void *arg, size_t task, const struct joule_work_end *end,
                 struct joule_error *err)
{
    struct joule_extraction *x = arg;

    (void)task;
    (void)err;
    if (end->errnum)
        say_failed(x, end->sentence);
    else if (*end->sentence)
        joule_say_to(x->out.dir_fd < 0 ? stderr : stdout, "%s", end->sentence);
    return 0;
}

/* What the file has, and which of it is meant. */
static int select_tables(struct joule_extraction *x, struct joule_error *err)
{
    const struct joule_extract_request *r = x->request;

    x->input_fd =
        joule_plan_open(AT_FDCWD, r->input, r->input, &x->input_st, err);
    if (x->input_fd < 0)
        return -1;
    if (joule_plan_read(x->input_fd, &x->plan, err) < 0)
        return joule_error_set(err, errno, "%s: %s", r->input, err->text);
    if (x->plan.notes)
        say_failed(x, x->plan.first_note.text);
    if (joule_select(&x->plan, r->job, r->node, r->series, &x->selection) < 0)
        return joule_error_set(err, ENOMEM, "out of memory");
    return 0;
}

static int run(struct joule_extraction *x,
               const struct joule_extract_kind *kind, struct joule_error *err)
{
    const struct joule_extract_request *r = x->request;
    const struct joule_work work = {
        .run = kind->run,
        .take = take,
        .ended = ended,
        .arg = x,
        .keep = &x->input_fd,
        .keeps = 1,
        .cpu_s = CPU_S,
        .wall_s = WALL_S,
    };

    if (select_tables(x, err) < 0 || kind->choose(x, err) < 0 ||
        joule_outfile_open(&x->out, r->output, err) < 0)
        return -1;
    joule_outfile_limit(&x->out, &x->input_st);
    kind->say(x);
    if (kind->head(x, err) < 0 ||
        joule_work_run(&work, x->tasks, r->readers, err) < 0)
        return -1;
    if (x->failed && !x->has_rows)
        return joule_error_set(err, ENODATA, "nothing could be read from %s",
                               r->input);
    if (r->json && write_text(x, "\n]}\n", 4, err) < 0)
        return -1;
    return joule_outfile_commit(&x->out, err);
}

int joule_extraction_run(struct joule_extraction *x,
                         const struct joule_extract_kind *kind)
{
    struct joule_error err = {""};
    int rc;

    x->input_fd = x->out.fd = x->out.dir_fd = -1;
    x->file = -1;
    joule_hdf5_prepare();
    rc = run(x, kind, &err);
    if (rc < 0)
        joule_say("%s", err.text);
    joule_outfile_abandon(&x->out);
    joule_selection_free(&x->selection);
    joule_plan_free(&x->plan);
    free(x->first);
    if (x->input_fd >= 0)
        close(x->input_fd);
    if (rc < 0)
        return JOULE_EXIT_NOTHING;
    return x->failed ? JOULE_EXIT_PART : JOULE_EXIT_ALL;
}

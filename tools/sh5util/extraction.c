/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/extraction.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

struct joule_reader *joule_extraction_reader(struct joule_extraction *x, int fd,
                                             struct joule_error *err)
{
    int saved;

    if (x->reader && joule_reader_has_outline(x->reader)) {
        close(fd);
        return x->reader;
    }
    if (x->reader) {
        joule_reader_close(x->reader);
        close(x->reader_fd);
    }
    x->reader = joule_reader_open(fd, err);
    x->reader_fd = fd;
    if (!x->reader) {
        saved = errno;
        close(fd);
        errno = saved;
    }
    return x->reader;
}

static int open_task(void *arg, size_t task, struct joule_error *err)
{
    const struct joule_extraction *x = arg;

    (void)task;
    return joule_text_open(&x->text, err);
}

static int take(void *arg, size_t task, const void *data, size_t len,
                struct joule_error *err)
{
    struct joule_extraction *x = arg;

    (void)task;
    return joule_text_rows(&x->text, data, len, err);
}

static int ended(void *arg, size_t task, int errnum, const char *sentence,
                 struct joule_error *err)
{
    struct joule_extraction *x = arg;

    (void)task;
    (void)err;
    if (errnum)
        joule_text_failed(&x->text, x->request->input, sentence);
    else if (*sentence)
        joule_say_to(x->text.out.dir_fd < 0 ? stderr : stdout, "%s", sentence);
    return 0;
}

/* What the file has, and which of it is meant. */
static int select_tables(struct joule_extraction *x, struct joule_error *err)
{
    const struct joule_extract_request *r = x->request;

    x->text.fd =
        joule_text_input(AT_FDCWD, r->input, r->input, &x->input_st, err);
    if (x->text.fd < 0)
        return -1;
    if (joule_plan_read(x->text.fd, &x->plan, err) < 0)
        return joule_error_set(err, errno, "%s: %s", r->input, err->text);
    if (x->plan.notes)
        joule_text_failed(&x->text, r->input, x->plan.first_note.text);
    if (joule_select(&x->plan, r->job, r->node, r->series, &x->selection) < 0)
        return joule_error_set(err, ENOMEM, "out of memory");
    return 0;
}

static int run(struct joule_extraction *x,
               const struct joule_extract_kind *kind, struct joule_error *err)
{
    const struct joule_extract_request *r = x->request;
    const struct joule_work work = {
        .open = open_task,
        .run = kind->run,
        .take = take,
        .ended = ended,
        .equip = joule_reader_equip,
        .keeps_fd = true,
        .arg = x,
        .cpu_s = CPU_S,
        .wall_s = WALL_S,
    };

    if (select_tables(x, err) < 0 || kind->choose(x, err) < 0 ||
        joule_outfile_open(&x->text.out, r->output, err) < 0)
        return -1;
    joule_outfile_limit(&x->text.out, &x->input_st);
    kind->say(x);
    if (kind->head(x, err) < 0 ||
        joule_pool_run(&work, x->tasks, r->readers, err) < 0)
        return -1;
    if (x->text.failed && !x->text.has_rows)
        return joule_error_set(err, ENODATA, "nothing could be read from %s",
                               r->input);
    if (joule_text_tail(&x->text, err) < 0)
        return -1;
    return joule_outfile_commit(&x->text.out, err);
}

int joule_extraction_run(struct joule_extraction *x,
                         const struct joule_extract_kind *kind)
{
    struct joule_error err = {""};
    int rc;

    x->text.json = x->request->json;
    x->text.fd = x->text.out.fd = x->text.out.dir_fd = -1;
    rc = run(x, kind, &err);
    if (rc < 0)
        joule_say("%s", err.text);
    joule_outfile_abandon(&x->text.out);
    joule_selection_free(&x->selection);
    joule_plan_free(&x->plan);
    free(x->first);
    if (x->text.fd >= 0)
        close(x->text.fd);
    if (rc < 0)
        return JOULE_EXIT_NOTHING;
    return x->text.failed ? JOULE_EXIT_PART : JOULE_EXIT_ALL;
}

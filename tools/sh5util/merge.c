/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/store/copy.h"
#include "common/store/pool.h"
#include "common/store/record.h"
#include "common/store/send.h"
#include "tools/sh5util/extract.h"
#include "tools/sh5util/options.h"
#include "tools/sh5util/outfile.h"
#include "tools/sh5util/progress.h"
#include "tools/sh5util/say.h"
#include "tools/sh5util/sources.h"

#define CPU_S  5
#define WALL_S 60

struct merge {
    const struct joule_merge_request *request;
    struct joule_sources sources;
    struct joule_outfile out;
    struct joule_copy *copy;
    struct joule_decoder decoder;
    size_t current; /* task whose output is taken */
    bool is_begun;
    size_t merged, damaged; /* of the node-step files */
    uint64_t done_bytes;
    struct joule_progress progress;
};

static void say(struct merge *m, const char *text)
{
    joule_progress_clear(&m->progress);
    joule_say("%s", text);
}

static int open_task(void *arg, size_t task, struct joule_error *err)
{
    struct merge *m = arg;

    return joule_source_open(&m->sources, &m->sources.source[task], err);
}

/* In a worker: a node of the merged file takes the form of a node-step file. */
static int read_source(void *arg, size_t task, int fd, struct joule_out *out,
                       struct joule_error *err)
{
    const struct merge *m = arg;
    const struct joule_source *s = &m->sources.source[task];
    char path[2 * JOULE_STORE_NAME_MAX + 32] = "/";

    if (!s->file)
        snprintf(path, sizeof(path), "/Steps/%s/Nodes/%s", s->step, s->node);
    return joule_send_file(fd, path, s->file ? NULL : s->node,
                           JOULE_WALK_TABLES, out, err);
}

static int take(void *arg, size_t task, const void *data, size_t len,
                struct joule_error *err)
{
    struct merge *m = arg;

    if (!m->is_begun || m->current != task) {
        const struct joule_source *s = &m->sources.source[task];
        const struct joule_visitor *v =
            joule_copy_begin(m->copy, s->step, s->node, s->fd, err);

        if (!v) {
            /* Two files of one node: the first is taken. */
            errno = errno == EEXIST ? EBADMSG : errno;
            return -1;
        }
        joule_decoder_start(&m->decoder, v);
        m->current = task;
        m->is_begun = true;
    }
    return joule_decoder_take(&m->decoder, data, len, err);
}

/* What of a node-step file did not come over; empty: nothing. */
static void judge(const struct joule_source *s,
                  const struct joule_copy_state *state, int errnum,
                  const char *sentence, struct joule_error *ret)
{
    ret->text[0] = '\0';
    if (s->is_busy)
        joule_error_set(ret, 0, "it is still being written");
    else if (errnum)
        joule_error_set(ret, 0, "%s", sentence);
    else if (state->left_out)
        joule_error_set(ret, 0, "%s", state->note);
    else if (state->lost_rows)
        joule_error_set(ret, 0, "damaged: %llu rows cannot be read",
                        (unsigned long long)state->lost_rows);
    else if (state->tables == 0 && state->is_empty)
        joule_error_set(ret, 0, "it holds nothing of node %s", s->node);
    else if (state->is_open)
        joule_error_set(ret, 0,
                        "its writer was killed, or still writes it and cannot "
                        "lock files there");
}

static int ended(void *arg, size_t task, int errnum, const char *sentence,
                 struct joule_error *err)
{
    struct merge *m = arg;
    struct joule_source *s = &m->sources.source[task];
    struct joule_copy_state state = {.is_empty = true};
    struct joule_error why;
    char text[2 * JOULE_ERROR_MAX];

    if (m->is_begun && m->current == task &&
        (joule_decoder_finish(&m->decoder, err) < 0 ||
         joule_copy_end(m->copy, &state, err) < 0))
        return -1;
    m->is_begun = false;
    joule_source_close(s);
    if (s->file) {
        joule_outfile_limit(&m->out, &s->st);
        m->done_bytes += joule_source_bytes(s);
    }
    joule_progress_show(&m->progress, m->done_bytes);
    if (!s->file) {
        if (errnum == 0)
            return 0;
        return joule_error_set(err, errnum,
                               "node %s of step %s in the merged file that is "
                               "there already: %s",
                               s->node, s->step, sentence);
    }
    judge(s, &state, errnum, sentence, &why);
    if (!why.text[0]) {
        s->is_whole = true;
        m->merged++;
        return 0;
    }
    m->damaged++;
    if (state.rows > 0)
        m->merged++;
    snprintf(text, sizeof(text),
             "%s/%s/%s: %s (%llu rows taken; the file is "
             "kept)",
             m->request->dir, m->request->user, s->file->name, why.text,
             (unsigned long long)state.rows);
    say(m, text);
    return 0;
}

static void tick(void *arg)
{
    struct merge *m = arg;

    joule_progress_show(&m->progress, m->done_bytes);
}

/* The merged file that is there already, if there is one. */
static int read_old(struct merge *m, struct joule_error *err)
{
    struct joule_error why;
    struct stat st;

    m->sources.old_fd = joule_text_input(m->out.dir_fd, m->out.name,
                                         m->request->output, &st, err);
    if (m->sources.old_fd < 0 && errno == ENOENT) {
        if (err)
            err->text[0] = '\0';
        return 0;
    }
    if (m->sources.old_fd < 0)
        return -1;
    joule_outfile_limit(&m->out, &st);
    if (joule_plan_read(m->sources.old_fd, &m->sources.old, &why) == 0)
        return 0;
    return joule_error_set(err, errno,
                           "%s is there already, and nothing can be added to "
                           "it: %s",
                           m->request->output, why.text);
}

/* Those of which everything is on disk in the merged file. */
static void remove_files(struct merge *m)
{
    for (size_t i = 0; i < m->sources.count; i++) {
        const struct joule_source *s = &m->sources.source[i];
        struct joule_error why;

        if (!s->file || !s->is_whole ||
            joule_source_remove(&m->sources, s, &why) == 0)
            continue;
        say(m, why.text);
        m->damaged++;
    }
}

/* Those of which the merged file keeps what it has. */
static void say_later(struct merge *m)
{
    for (size_t i = 0; i < m->sources.count; i++) {
        const struct joule_stepfile *file = m->sources.source[i].later;
        struct joule_error text;

        if (!file)
            continue;
        joule_error_set(&text, 0,
                        "%s/%s/%s: it is still being written: --unfinished "
                        "takes what is in it so far (0 rows taken; the file is "
                        "kept, and what was merged of it before)",
                        m->request->dir, m->request->user, file->name);
        say(m, text.text);
        m->damaged++;
    }
}

static int write_merged(struct merge *m, struct joule_error *err)
{
    const struct joule_work work = {
        .open = open_task,
        .run = read_source,
        .take = take,
        .ended = ended,
        .equip = joule_reader_equip,
        .tick = tick,
        .arg = m,
        .cpu_s = CPU_S,
        .wall_s = WALL_S,
    };

    if (joule_sources_list(&m->sources, err) < 0)
        return -1;
    say_later(m);
    joule_progress_start(&m->progress, m->sources.bytes);
    m->copy = joule_copy_create(m->out.fd, err);
    if (!m->copy ||
        joule_pool_run(&work, m->sources.count, m->request->readers, err) < 0)
        return -1;
    if (m->merged == 0)
        return joule_error_set(err, ENODATA,
                               "none of the %zu files could be merged",
                               m->sources.files.count);
    if (joule_copy_finish(m->copy, err) < 0)
        return -1;
    return joule_outfile_commit(&m->out, err);
}

/* Say which of the steps that are meant are nowhere; their number. */
static size_t say_missing(struct merge *m)
{
    const struct joule_merge_request *r = m->request;
    size_t missing = 0;

    for (size_t i = 0; i < r->job->steps; i++) {
        const char *step = r->job->step[i];
        char text[JOULE_ERROR_MAX];

        if (joule_sources_have(&m->sources, step))
            continue;
        snprintf(text, sizeof(text),
                 "No node-step files of step %s of job %s found in %s/%s, and "
                 "it is not in %s",
                 step, r->job->text, r->dir, r->user, r->output);
        say(m, text);
        missing++;
    }
    return missing;
}

/* There is no node-step file. */
static int run_without_files(struct merge *m, struct joule_error *err)
{
    const struct joule_merge_request *r = m->request;
    size_t missing;

    if (m->sources.old.nodes == 0) {
        joule_error_set(err, ENOENT,
                        "No node-step files found for jobid %s in %s/%s",
                        r->job->text, r->dir, r->user);
        return JOULE_EXIT_NOTHING;
    }
    missing = say_missing(m);
    if (missing > 0)
        return missing < r->job->steps ? JOULE_EXIT_PART : JOULE_EXIT_NOTHING;
    joule_say("Job %s: all is merged in %s already", r->job->text, r->output);
    return JOULE_EXIT_ALL;
}

/* The exit status. */
static int run(struct merge *m, struct joule_error *err)
{
    const struct joule_merge_request *r = m->request;

    if (joule_stepfiles_find(r->dir, r->user, r->id, r->job, &m->sources.files,
                             err) < 0 ||
        joule_outfile_open(&m->out, r->output, err) < 0 || read_old(m, err) < 0)
        return JOULE_EXIT_NOTHING;
    if (m->sources.files.count == 0)
        return run_without_files(m, err);
    joule_say("Merging node-step files into %s", r->output);
    if (write_merged(m, err) < 0)
        return JOULE_EXIT_NOTHING;
    joule_progress_clear(&m->progress);
    if (!r->save)
        remove_files(m);
    if (r->verbose)
        joule_say("%zu of %zu node-step files merged", m->merged,
                  m->sources.files.count);
    return say_missing(m) > 0 || m->damaged ? JOULE_EXIT_PART : JOULE_EXIT_ALL;
}

int joule_merge(const struct joule_merge_request *request)
{
    struct merge *m = calloc(1, sizeof(*m));
    struct joule_error err = {""};
    int status;

    if (!m) {
        joule_say("out of memory");
        return JOULE_EXIT_NOTHING;
    }
    m->request = request;
    m->sources.unfinished = request->unfinished;
    m->sources.old_fd = m->out.fd = m->out.dir_fd = m->sources.files.dir_fd =
        -1;
    status = run(m, &err);
    joule_progress_clear(&m->progress);
    if (err.text[0] && status == JOULE_EXIT_NOTHING)
        joule_say("%s", err.text);
    joule_outfile_abandon(&m->out);
    joule_copy_destroy(m->copy);
    joule_sources_free(&m->sources);
    free(m);
    return status;
}

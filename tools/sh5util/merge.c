/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One worker (worker.h) writes the merged file and reads all that goes into it,
 * node by node.  libhdf5 crashes on some damaged files: then the worker's
 * output is of no use, the file at which it died is left out, and everything is
 * merged anew.  Before that, the same pass goes on from there with an output
 * that nobody wants, to find the other files of that kind: so two passes are
 * enough for any number of them.
 */
#include "tools/sh5util/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/profile/convert.h"
#include "common/profile/hdf5_copy.h"
#include "common/profile/hdf5_driver.h"
#include "common/profile/worker.h"
#include "tools/sh5util/options.h"
#include "tools/sh5util/outfile.h"
#include "tools/sh5util/progress.h"
#include "tools/sh5util/say.h"
#include "tools/sh5util/sources.h"

#define CPU_S  5
#define WALL_S 60

/* Of a log, a chunk of each table is in memory while it is converted: as much
 * as joule-profile-convert has. */
#define LOG_DATA_BYTES ((size_t)256 << 20)

struct merge {
    const struct joule_merge_request *request;
    struct joule_sources sources;
    struct joule_outfile out;
    int scratch_fd; /* for logs that are made into HDF5 files; -1 */
    struct joule_hdf5_copy *copy; /* of the worker */
    /* Of the pass: */
    bool is_broken; /* a worker has died: the output is of no use */
    /* What the worker has done: the last source, and the last one that was not
     * whole. */
    struct joule_source *before, *doubtful;
    /* At which a worker died that had done others; and which of those may be
     * the reason. */
    struct joule_source *again, *suspect;
    struct joule_hdf5_copied copied; /* what the worker says of its task */
    uint64_t done_bytes;
    /* Of all: */
    size_t files;           /* node-step files and logs */
    size_t merged, damaged; /* of them */
    struct joule_progress progress;
};

static void say(struct merge *m, const char *text)
{
    joule_progress_clear(&m->progress);
    joule_say("%s", text);
}

/* ---- in the worker ---- */

/* The HDF5 file of a log, in the scratch file.  What is missing of it goes to
 * [left_out]. */
static int convert(const struct merge *m, int fd, struct joule_error *left_out,
                   struct joule_error *err)
{
    struct joule_convert_result result;

    if (ftruncate(m->scratch_fd, 0) < 0)
        return joule_error_set(err, errno, "no room to convert it: %m");
    if (joule_profile_convert(fd, m->scratch_fd, &result, err) < 0)
        return -1;
    if (result.bytes_left_out)
        joule_error_set(left_out, 0, "damaged: %llu bytes of it cannot be read",
                        (unsigned long long)result.bytes_left_out);
    return 0;
}

static int copy_source(struct merge *m, const struct joule_source *s, int fd,
                       struct joule_hdf5_copied *ret, struct joule_error *err)
{
    char path[2 * JOULE_PROFILE_NAME_MAX + 32];
    struct joule_hdf5_node node = {.fd = fd,
                                   .path = path,
                                   .step = s->step,
                                   .name = s->node,
                                   .is_node_file = s->file != NULL};
    struct joule_error left_out = {""};

    if (s->file && s->file->is_log) {
        if (convert(m, fd, &left_out, err) < 0)
            return -1;
        node.fd = m->scratch_fd;
    }
    if (s->file)
        snprintf(path, sizeof(path), "/%s", s->node);
    else
        snprintf(path, sizeof(path), "/Steps/%s/Nodes/%s", s->step, s->node);
    if (joule_hdf5_copy_node(m->copy, &node, ret, err) < 0)
        return -1;
    if (left_out.text[0] && ret->left_out++ == 0)
        memcpy(ret->note, left_out.text, sizeof(ret->note));
    return 0;
}

/* The task behind the last source finishes the merged file. */
static int run_task(void *arg, size_t task, int fd, struct joule_out *out,
                    struct joule_error *err)
{
    struct merge *m = arg;
    struct joule_hdf5_copied *copied;
    int rc;

    if (!m->copy) {
        if (joule_outfile_empty(m->out.fd) < 0)
            return joule_error_set(err, errno, "cannot write: %m");
        m->copy = joule_hdf5_copy_create(m->out.fd, err);
        if (!m->copy)
            return -1;
    }
    copied = joule_out_room(out, sizeof(*copied), err);
    if (!copied)
        return -1;
    memset(copied, 0, sizeof(*copied));
    if (task < m->sources.count) {
        rc = copy_source(m, &m->sources.source[task], fd, copied, err);
    } else {
        rc = joule_hdf5_copy_finish(m->copy, err);
        copied->write_error = rc < 0 ? errno : 0;
    }
    joule_out_commit(out, sizeof(*copied));
    return rc;
}

/* ---- in the parent ---- */

static int open_task(void *arg, size_t task, struct joule_error *err)
{
    struct merge *m = arg;
    struct joule_source *s = &m->sources.source[task];

    if (task == m->sources.count)
        return fcntl(m->out.fd, F_DUPFD_CLOEXEC, 0);
    if (s->is_bad)
        return joule_error_set(err, EBADMSG, "%s",
                               s->why ? s->why : "damaged: its reader died");
    return joule_source_open(&m->sources, s, err);
}

static uint64_t task_bytes(void *arg, size_t task)
{
    const struct merge *m = arg;

    return task < m->sources.count
               ? joule_source_bytes(&m->sources.source[task])
               : m->sources.bytes;
}

static int take(void *arg, size_t task, const void *data, size_t len,
                struct joule_error *err)
{
    struct merge *m = arg;

    (void)task;
    if (len != sizeof(m->copied))
        return joule_error_set(err, EBADMSG, "its reader sent nonsense");
    memcpy(&m->copied, data, len);
    m->copied.note[sizeof(m->copied.note) - 1] = '\0';
    return 0;
}

/* What of a node-step file did not come over. */
static void judge(struct joule_source *s, const struct joule_hdf5_copied *c,
                  const struct joule_work_end *end)
{
    struct joule_error why = {""};

    s->rows = c->rows;
    if (s->is_busy)
        joule_error_set(&why, 0, "it is still being written");
    else if (end->errnum)
        joule_error_set(&why, 0, "%s", end->sentence);
    else if (c->left_out)
        joule_error_set(&why, 0, "%s", c->note);
    else if (c->lost_rows)
        joule_error_set(&why, 0, "damaged: %llu rows cannot be read",
                        (unsigned long long)c->lost_rows);
    else if (c->is_cut)
        joule_error_set(&why, 0, "damaged: its end is missing");
    else if (!c->is_there)
        joule_error_set(&why, 0, "it holds nothing of node %s", s->node);
    else if (c->is_open)
        joule_error_set(&why, 0,
                        "its writer was killed, or still writes it and cannot "
                        "lock files there");
    joule_source_set_why(s, why.text[0] ? why.text : NULL);
}

/* Whether what was copied is the same run of the step as the node that the merged
 * file has, and nothing of it is missing but what is still to be written. */
static bool replaces_old(const struct joule_source *s,
                         const struct joule_hdf5_copied *c,
                         const struct joule_work_end *end)
{
    if (end->errnum || !c->is_there || c->lost_rows || c->left_out || c->is_cut)
        return false;
    return !c->has_start || !s->old->has_start ||
           c->start_wall_ns == s->old->start_wall_ns;
}

/* What is merged is not given up for it: the next pass takes that. */
static void keep_old(struct merge *m, struct joule_source *s)
{
    m->is_broken = true;
    if (!s->why)
        joule_source_set_why(s, "it is of another run of the step than what is "
                                "merged: name another output with -o");
    joule_source_keep_old(&m->sources, s);
    if (m->doubtful == s)
        m->doubtful = NULL;
    if (m->before == s)
        m->before = NULL;
}

/* Leave a source out of the next pass. */
static int leave_out(struct merge *m, struct joule_source *s,
                     const char *sentence, struct joule_error *err)
{
    m->is_broken = true;
    if (s && s->file && s->old) {
        joule_source_set_why(s, sentence);
        keep_old(m, s);
        return 0;
    }
    if (!s || !s->file)
        return joule_error_set(
            err, EBADMSG, "%s cannot be added to: %s", m->request->output,
            s ? sentence : "who writes the merged file has died");
    joule_source_set_why(s, sentence);
    s->is_bad = true;
    s->rows = 0;
    return 0;
}

/* The worker has died at [s], NULL: at the end.  It may be that what it had
 * read before has hurt it: a worker that has nothing behind it tries once more.
 */
static int bury(struct merge *m, struct joule_source *s,
                const struct joule_work_end *end, struct joule_error *err)
{
    struct joule_source *last = m->before, *suspect = m->doubtful;

    m->is_broken = true;
    m->before = m->doubtful = m->again = NULL;
    if (!s)
        return leave_out(m, suspect ? suspect : last, end->sentence, err);
    if (!last || end->errnum == ETIMEDOUT)
        return leave_out(m, s, end->sentence, err);
    m->again = s;
    m->suspect = suspect ? suspect : s;
    return 1;
}

static int failed_to_write(const struct merge *m, const char *sentence,
                           struct joule_error *err)
{
    return joule_error_set(err, m->copied.write_error, "%s", sentence);
}

static int end_source(struct merge *m, struct joule_source *s,
                      const struct joule_work_end *end, struct joule_error *err)
{
    if (m->copied.write_error)
        return failed_to_write(m, end->sentence, err);
    if (!s->is_bad) {
        m->before = s;
        if (s->file)
            judge(s, &m->copied, end);
        if (s->file && s->why)
            m->doubtful = s;
    }
    if (s == m->again) {
        m->again = NULL;
        if (leave_out(m, s->why ? s : m->suspect, "damaged: its reader died",
                      err) < 0)
            return -1;
    }
    if (s->file && s->old && !s->is_bad && !replaces_old(s, &m->copied, end)) {
        keep_old(m, s);
        return 0;
    }
    if (s->file)
        joule_outfile_limit(&m->out, &s->st);
    if (!s->file && !end->errnum &&
        (!m->copied.is_there || m->copied.lost_rows))
        return joule_error_set(err, EBADMSG,
                               "node %s of step %s in the merged file that is "
                               "there already is damaged: name another output "
                               "with -o",
                               s->node, s->step);
    if (!s->file && end->errnum)
        return joule_error_set(err, end->errnum,
                               "node %s of step %s in the merged file that is "
                               "there already: %s",
                               s->node, s->step, end->sentence);
    return 0;
}

static int ended(void *arg, size_t task, const struct joule_work_end *end,
                 struct joule_error *err)
{
    struct merge *m = arg;
    bool is_last = task == m->sources.count;
    struct joule_source *s = is_last ? NULL : &m->sources.source[task];
    int rc = 0;

    if (end->is_dead)
        rc = bury(m, s, end, err);
    else if (s)
        rc = end_source(m, s, end, err);
    else if (end->errnum)
        rc = joule_error_set(err, end->errnum, "%s", end->sentence);
    memset(&m->copied, 0, sizeof(m->copied));
    if (rc == 0 && s && s->file) {
        m->done_bytes += joule_source_bytes(s);
        joule_progress_show(&m->progress, m->done_bytes);
    }
    return rc;
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

    m->sources.old_fd = joule_plan_open(m->out.dir_fd, m->out.name,
                                        m->request->output, &st, err);
    if (m->sources.old_fd < 0 && errno == ENOENT) {
        if (err)
            err->text[0] = '\0';
        return 0;
    }
    if (m->sources.old_fd < 0)
        return -1;
    joule_outfile_limit(&m->out, &st);
    if (joule_plan_read(m->sources.old_fd, &m->sources.old, &why) == 0) {
        if (m->sources.old.notes == 0)
            return 0;
        /* A node that it does not tell of would be lost. */
        errno = EBADMSG;
        why = m->sources.old.first_note;
    }
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

        if (!s->file || s->why || s->is_bad ||
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
        m->files++;
        joule_error_set(&text, 0,
                        "%s/%s/%s: it is still being written: --unfinished "
                        "takes what is in it so far (0 rows taken; the file is "
                        "kept, and what was merged of it before)",
                        m->request->dir, m->request->user, file->name);
        say(m, text.text);
        m->damaged++;
    }
}

/* Those of which not everything was taken, and how many were. */
static void say_results(struct merge *m)
{
    for (size_t i = 0; i < m->sources.count; i++) {
        const struct joule_source *s = &m->sources.source[i];
        const struct joule_stepfile *file = s->file ? s->file : s->later;
        char text[2 * JOULE_ERROR_MAX];

        /* Of the others say_later has told. */
        if (!file || (!s->file && !s->why))
            continue;
        m->files++;
        if (!s->file) {
            m->damaged++;
            snprintf(
                text, sizeof(text),
                "%s/%s/%s: %s (0 rows taken; the file is kept, and what was "
                "merged of it before)",
                m->request->dir, m->request->user, file->name, s->why);
            say(m, text);
            continue;
        }
        if (s->rows > 0 || (!s->why && !s->is_bad))
            m->merged++;
        if (!s->why && !s->is_bad)
            continue;
        m->damaged++;
        snprintf(text, sizeof(text),
                 "%s/%s/%s: %s (%llu rows taken; the file is kept)",
                 m->request->dir, m->request->user, s->file->name,
                 s->why ? s->why : "damaged", (unsigned long long)s->rows);
        say(m, text);
    }
}

static int open_scratch(struct merge *m, struct joule_error *err)
{
    for (size_t i = 0; i < m->sources.count && m->scratch_fd < 0; i++) {
        const struct joule_stepfile *file = m->sources.source[i].file;

        if (!file || !file->is_log)
            continue;
        m->scratch_fd = joule_outfile_scratch(&m->out, err);
        if (m->scratch_fd < 0)
            return -1;
    }
    return 0;
}

static int write_merged(struct merge *m, struct joule_error *err)
{
    int keep[2];
    struct joule_work work = {
        .open = open_task,
        .run = run_task,
        .take = take,
        .ended = ended,
        .bytes = task_bytes,
        .tick = tick,
        .arg = m,
        .keep = keep,
        .keeps = 2,
        .writes_files = true,
        .cpu_s = CPU_S,
        .wall_s = WALL_S,
    };

    if (joule_sources_list(&m->sources, err) < 0 || open_scratch(m, err) < 0)
        return -1;
    say_later(m);
    joule_progress_start(&m->progress, m->sources.bytes);
    keep[0] = m->out.fd;
    keep[1] = m->scratch_fd;
    if (m->scratch_fd >= 0)
        work.data_bytes = LOG_DATA_BYTES;
    do {
        m->is_broken = false;
        m->before = m->doubtful = m->again = NULL;
        m->done_bytes = 0;
        if (joule_work_run(&work, m->sources.count + 1, 1, err) < 0)
            return -1;
    } while (m->is_broken);
    say_results(m);
    if (m->merged == 0)
        return joule_error_set(
            err, ENODATA, "none of the %zu files could be merged", m->files);
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
        joule_say("%zu of %zu node-step files merged", m->merged, m->files);
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
    m->sources.old_fd = m->sources.files.dir_fd = -1;
    m->out.fd = m->out.dir_fd = m->scratch_fd = -1;
    joule_hdf5_prepare();
    status = run(m, &err);
    joule_progress_clear(&m->progress);
    if (err.text[0] && status == JOULE_EXIT_NOTHING)
        joule_say("%s", err.text);
    joule_outfile_abandon(&m->out);
    if (m->scratch_fd >= 0)
        close(m->scratch_fd);
    joule_sources_free(&m->sources);
    free(m);
    return status;
}

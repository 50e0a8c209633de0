/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One worker (worker.h) writes the merged file and reads all that goes into it,
 * node by node.  libhdf5 crashes on some damaged files: then the worker's
 * output is of no use, each file is tried by a worker of its own, and everything
 * is merged anew without those that a worker died of.
 */
#include "tools/sh5util/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/profile/convert.h"
#include "common/profile/hdf5_copy.h"
#include "common/profile/hdf5_driver.h"
#include "common/profile/worker.h"
#include "tools/sh5util/outfile.h"
#include "tools/sh5util/say.h"
#include "tools/sh5util/sources.h"

/* Of a log, a chunk of each table is in memory while it is converted: as much
 * as joule-profile-convert has. */
#define LOG_DATA_BYTES ((size_t)256 << 20)

struct merge {
    const struct joule_sh5_options *options;
    const struct joule_job *job;
    const char *output;
    struct joule_sources sources;
    struct joule_outfile out;
    int scratch_fd; /* for logs that are made into HDF5 files; -1 */
    struct joule_hdf5_copy *copy;    /* of the worker */
    struct joule_hdf5_copied copied; /* what the worker says of its task */
    /* Of the pass: */
    bool is_trial;  /* each file by itself, and the output is of no use */
    bool is_broken; /* the output is of no use, and another pass is needed */
    bool is_dead;   /* the worker has died */
    struct joule_source *last; /* at which it did; NULL: at the end */
    uint64_t done_bytes;
    /* Of all: */
    size_t files;           /* node-step files and logs */
    size_t merged, damaged; /* of them */
    /* The bar on a terminal: */
    bool is_terminal, is_shown;
    int64_t start_ns, last_ns;
};

#define BAR "########################################"

/* For what takes longer than a second; drawn at most ten times a second. */
static void show_progress(struct merge *m)
{
    int64_t now_ns = joule_clock_mono_ns(&joule_clock_system);
    double done = (double)m->done_bytes / (double)m->sources.bytes;

    if (!m->is_terminal || m->sources.bytes == 0 ||
        now_ns - m->start_ns < JOULE_NS_PER_S ||
        now_ns - m->last_ns < 100 * JOULE_NS_PER_MS)
        return;
    if (done > 1)
        done = 1;
    fprintf(stderr, "\r[%-*.*s] %3d %%", (int)strlen(BAR),
            (int)(done * (double)strlen(BAR)), BAR, (int)(done * 100));
    m->last_ns = now_ns;
    m->is_shown = true;
}

static void clear_progress(struct merge *m)
{
    if (m->is_shown)
        fputs("\r\033[K", stderr);
    m->is_shown = false;
}

static void say(struct merge *m, const char *text)
{
    clear_progress(m);
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
    bool is_file = s->take == JOULE_TAKE_FILE;
    char path[2 * JOULE_PROFILE_NAME_MAX + 32];
    struct joule_hdf5_node node = {.fd = fd,
                                   .path = path,
                                   .step = s->step,
                                   .name = s->node,
                                   .is_node_file = is_file};
    struct joule_error left_out = {""};

    if (is_file && s->is_log) {
        if (convert(m, fd, &left_out, err) < 0)
            return -1;
        node.fd = m->scratch_fd;
    }
    if (is_file)
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
    if (s->take == JOULE_TAKE_NOTHING)
        return joule_error_set(err, EBADMSG, "%s", s->why);
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

/* Not to take a file, but what was merged of it before; the next pass does. */
static int leave_out(struct merge *m, struct joule_source *s,
                     const char *sentence, struct joule_error *err)
{
    m->is_broken = true;
    if (s->take == JOULE_TAKE_OLD)
        return joule_error_set(err, EBADMSG, "%s cannot be added to: %s",
                               m->output, sentence);
    joule_source_set_why(s, sentence);
    if (s->old) {
        joule_source_keep_old(&m->sources, s);
    } else {
        s->take = JOULE_TAKE_NOTHING;
        s->rows = 0;
    }
    return 0;
}

static int end_file(struct merge *m, struct joule_source *s,
                    const struct joule_work_end *end, struct joule_error *err)
{
    m->done_bytes += joule_source_bytes(s);
    show_progress(m);
    if (s->take == JOULE_TAKE_NOTHING)
        return 0;
    judge(s, &m->copied, end);
    if (s->old && !replaces_old(s, &m->copied, end))
        return leave_out(m, s,
                         s->why ? s->why
                                : "it is of another run of the step than what "
                                  "is merged: name another output with -o",
                         err);
    joule_outfile_limit(&m->out, &s->st);
    return 0;
}

static int end_old(struct merge *m, const struct joule_source *s,
                   const struct joule_work_end *end, struct joule_error *err)
{
    if (end->errnum)
        return joule_error_set(err, end->errnum,
                               "node %s of step %s in the merged file that is "
                               "there already: %s",
                               s->node, s->step, end->sentence);
    if (!m->copied.is_there || m->copied.lost_rows)
        return joule_error_set(err, EBADMSG,
                               "node %s of step %s in the merged file that is "
                               "there already is damaged: name another output "
                               "with -o",
                               s->node, s->step);
    return 0;
}

/* The worker has died: the pass ends, but a trial, which goes on. */
static int end_worker(struct merge *m, struct joule_source *s,
                      const struct joule_work_end *end, struct joule_error *err)
{
    m->is_dead = true;
    m->last = s;
    if (m->is_trial)
        return leave_out(m, s, end->sentence, err);
    return joule_error_set(err, EBADMSG, "%s", end->sentence);
}

static int ended(void *arg, size_t task, const struct joule_work_end *end,
                 struct joule_error *err)
{
    struct merge *m = arg;
    bool is_last = task == m->sources.count;
    struct joule_source *s = is_last ? NULL : &m->sources.source[task];
    int rc = 0;

    if (end->is_dead)
        rc = end_worker(m, s, end, err);
    else if (m->copied.write_error || (!s && end->errnum))
        rc = joule_error_set(
            err, m->copied.write_error ? m->copied.write_error : end->errnum,
            "%s", end->sentence);
    else if (s && !m->is_trial)
        rc = s->take == JOULE_TAKE_OLD ? end_old(m, s, end, err)
                                       : end_file(m, s, end, err);
    memset(&m->copied, 0, sizeof(m->copied));
    return rc;
}

static void tick(void *arg)
{
    show_progress(arg);
}

/* The merged file that is there already, if there is one. */
static int read_old(struct merge *m, struct joule_error *err)
{
    struct joule_error why;
    struct stat st;

    m->sources.old_fd =
        joule_plan_open(m->out.dir_fd, m->out.name, m->output, &st, err);
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
                           m->output, why.text);
}

/* Those of which everything is on disk in the merged file. */
static void remove_files(struct merge *m)
{
    for (size_t i = 0; i < m->sources.count; i++) {
        const struct joule_source *s = &m->sources.source[i];
        struct joule_error why;

        if (s->take != JOULE_TAKE_FILE || s->why ||
            joule_source_remove(&m->sources, s, &why) == 0)
            continue;
        say(m, why.text);
        m->damaged++;
    }
}

/* Say of which files not everything was taken, and count them. */
static void say_results(struct merge *m)
{
    for (size_t i = 0; i < m->sources.count; i++) {
        const struct joule_source *s = &m->sources.source[i];
        char text[2 * JOULE_ERROR_MAX];

        if (!s->name[0])
            continue;
        m->files++;
        if (s->rows > 0 || !s->why)
            m->merged++;
        if (!s->why)
            continue;
        m->damaged++;
        snprintf(text, sizeof(text),
                 "%s/%s/%s: %s (%llu rows taken; the file is kept%s)",
                 m->options->dir, m->options->user, s->name, s->why,
                 (unsigned long long)s->rows,
                 s->take == JOULE_TAKE_OLD
                     ? ", and what was merged of it before"
                     : "");
        say(m, text);
    }
}

static int open_scratch(struct merge *m, struct joule_error *err)
{
    for (size_t i = 0; i < m->sources.count && m->scratch_fd < 0; i++) {
        if (!m->sources.source[i].is_log)
            continue;
        m->scratch_fd = joule_outfile_scratch(&m->out, err);
        if (m->scratch_fd < 0)
            return -1;
    }
    return 0;
}

static int run_pass(struct merge *m, bool is_trial, struct joule_error *err)
{
    const int keep[] = {m->out.fd, m->scratch_fd};
    const struct joule_work work = {
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
        .is_fresh = is_trial,
        .data_bytes = m->scratch_fd >= 0 ? LOG_DATA_BYTES : 0,
    };

    m->is_trial = is_trial;
    m->is_broken = m->is_dead = false;
    m->done_bytes = 0;
    return joule_work_run(&work, m->sources.count + !is_trial, 1, err);
}

/* Leave out the files that a worker dies of.  If there is none that it dies of by
 * itself, it is the one at which the pass has ended, as [err] says. */
static int find_bad(struct merge *m, struct joule_error *err)
{
    const struct joule_error sentence = *err;
    struct joule_source *last = m->last;

    if (run_pass(m, true, err) < 0)
        return -1;
    if (m->is_broken)
        return 0;
    if (last)
        return leave_out(m, last, sentence.text, err);
    return joule_error_set(err, EBADMSG, "%s cannot be written: %s", m->output,
                           sentence.text);
}

static int write_merged(struct merge *m, struct joule_error *err)
{
    int rc;

    m->is_terminal = isatty(STDERR_FILENO) == 1;
    m->start_ns = joule_clock_mono_ns(&joule_clock_system);
    if (open_scratch(m, err) < 0)
        return -1;
    do {
        rc = run_pass(m, false, err);
        if (rc < 0 && m->is_dead)
            rc = find_bad(m, err);
        if (rc < 0)
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
    const struct joule_sh5_options *o = m->options;
    size_t missing = 0;

    for (size_t i = 0; i < m->job->steps; i++) {
        const char *step = m->job->step[i];
        char text[JOULE_ERROR_MAX];

        if (joule_sources_have(&m->sources, step))
            continue;
        snprintf(text, sizeof(text),
                 "No node-step files of step %s of job %s found in %s/%s, and "
                 "it is not in %s",
                 step, m->job->text, o->dir, o->user, m->output);
        say(m, text);
        missing++;
    }
    return missing;
}

/* There is no node-step file. */
static int run_without_files(struct merge *m, struct joule_error *err)
{
    const struct joule_sh5_options *o = m->options;
    size_t missing;

    if (m->sources.old.nodes == 0) {
        joule_error_set(err, ENOENT,
                        "No node-step files found for jobid %s in %s/%s",
                        m->job->text, o->dir, o->user);
        return JOULE_EXIT_NOTHING;
    }
    missing = say_missing(m);
    if (missing > 0)
        return missing < m->job->steps ? JOULE_EXIT_PART : JOULE_EXIT_NOTHING;
    joule_say("Job %s: all is merged in %s already", m->job->text, m->output);
    return JOULE_EXIT_ALL;
}

/* The exit status. */
static int run(struct merge *m, struct joule_error *err)
{
    const struct joule_sh5_options *o = m->options;

    if (joule_sources_find(&m->sources, o->dir, o->user, m->job, err) < 0 ||
        joule_outfile_open(&m->out, m->output, err) < 0 ||
        read_old(m, err) < 0 || joule_sources_add_old(&m->sources, err) < 0)
        return JOULE_EXIT_NOTHING;
    if (m->sources.files == 0)
        return run_without_files(m, err);
    joule_say("Merging node-step files into %s", m->output);
    if (write_merged(m, err) < 0)
        return JOULE_EXIT_NOTHING;
    clear_progress(m);
    if (!o->save)
        remove_files(m);
    if (o->verbose)
        joule_say("%zu of %zu node-step files merged", m->merged, m->files);
    return say_missing(m) > 0 || m->damaged ? JOULE_EXIT_PART : JOULE_EXIT_ALL;
}

int joule_merge(const struct joule_sh5_options *options,
                const struct joule_job *job, const char *output)
{
    struct merge m = {
        .options = options,
        .job = job,
        .output = output,
        .sources = {.dir_fd = -1,
                    .old_fd = -1,
                    .unfinished = options->unfinished},
        .out = {.fd = -1, .dir_fd = -1},
        .scratch_fd = -1,
    };
    struct joule_error err = {""};
    int status;

    joule_hdf5_prepare();
    status = run(&m, &err);
    clear_progress(&m);
    if (err.text[0] && status == JOULE_EXIT_NOTHING)
        joule_say("%s", err.text);
    joule_outfile_abandon(&m.out);
    joule_close(m.scratch_fd);
    joule_sources_free(&m.sources);
    return status;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/store/copy.h"
#include "common/store/hdferror.h"
#include "common/store/pool.h"
#include "common/store/reader.h"
#include "common/store/record.h"
#include "tools/sh5util/stepfiles.h"
#include "tools/sh5util/options.h"
#include "tools/sh5util/outfile.h"
#include "tools/sh5util/plan.h"
#include "tools/sh5util/progress.h"

#define CPU_S  5
#define WALL_S 60

/* A file that its writer did not close, and that did not change for so long:
 * the writer is gone. */
#define WRITER_GONE_S 60

/* Where a node comes from: a node-step file, or the merged file that is there
 * already. */
struct source {
    const char *step, *node;
    const struct joule_stepfile *file; /* NULL: the merged file */
    struct stat st;
    bool is_whole;
};

struct merge {
    const struct joule_merge_request *request;
    struct joule_stepfiles files;
    struct joule_plan old;
    int old_fd; /* -1: there is no merged file yet */
    struct source *source;
    size_t count;
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
    fprintf(stderr, "sh5util: %s\n", text);
}

static int open_task(void *arg, size_t task, struct joule_error *err)
{
    struct merge *m = arg;
    struct source *s = &m->source[task];
    int fd;

    if (s->file)
        return joule_stepfile_open(&m->files, s->file, &s->st, err);
    fd = fcntl(m->old_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        joule_error_set(err, errno, "cannot use the merged file: %m");
    return fd;
}

/* In a worker: one node of the merged file, in the form of a node-step file. */
static int read_node(struct joule_reader *reader, const struct source *s,
                     const struct joule_visitor *v, struct joule_error *err)
{
    char path[2 * JOULE_STORE_NAME_MAX + 32];

    snprintf(path, sizeof(path), "/Steps/%s/Nodes/%s", s->step, s->node);
    if (v->group(v->arg, s->node, err) < 0 ||
        joule_reader_walk(reader, path, JOULE_WALK_TABLES, v, err) < 0)
        return -1;
    return v->leave(v->arg, err);
}

/* In a worker. */
static int read_source(void *arg, size_t task, int fd, struct joule_out *out,
                       struct joule_error *err)
{
    const struct merge *m = arg;
    const struct source *s = &m->source[task];
    struct joule_visitor sender = joule_record_sender(out);
    struct joule_reader *reader;
    int rc;

    joule_hdf_quiet();
    reader = joule_reader_open(fd, err);
    if (!reader)
        return -1;
    rc = s->file
             ? joule_reader_walk(reader, "/", JOULE_WALK_TABLES, &sender, err)
             : read_node(reader, s, &sender, err);
    if (rc == 0 && joule_reader_is_cut(reader))
        rc = sender.note(sender.arg, "the end of the file is missing", err);
    joule_reader_close(reader);
    return rc;
}

static int take(void *arg, size_t task, const void *data, size_t len,
                struct joule_error *err)
{
    struct merge *m = arg;

    if (!m->is_begun || m->current != task) {
        const struct joule_visitor *v = joule_copy_begin(
            m->copy, m->source[task].step, m->source[task].node, err);

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
static void judge(const struct source *s, const struct joule_copy_state *state,
                  int errnum, const char *sentence, struct joule_error *ret)
{
    ret->text[0] = '\0';
    if (errnum)
        joule_error_set(ret, 0, "%s", sentence);
    else if (state->left_out)
        joule_error_set(ret, 0, "%s", state->note);
    else if (state->lost_rows)
        joule_error_set(ret, 0, "damaged: %llu rows cannot be read",
                        (unsigned long long)state->lost_rows);
    else if (state->tables == 0 && state->is_empty)
        joule_error_set(ret, 0, "it holds nothing of node %s", s->node);
    else if (state->is_open && time(NULL) - s->st.st_mtime < WRITER_GONE_S)
        joule_error_set(ret, 0, "it is still being written");
}

static int ended(void *arg, size_t task, int errnum, const char *sentence,
                 struct joule_error *err)
{
    struct merge *m = arg;
    struct source *s = &m->source[task];
    struct joule_copy_state state = {.is_empty = true};
    struct joule_error why;
    char text[2 * JOULE_ERROR_MAX];

    if (m->is_begun && m->current == task &&
        (joule_decoder_finish(&m->decoder, err) < 0 ||
         joule_copy_end(m->copy, &state, err) < 0))
        return -1;
    m->is_begun = false;
    m->done_bytes += (uint64_t)s->st.st_size;
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

static int compare_sources(const void *pa, const void *pb)
{
    const struct source *a = pa, *b = pb;
    int order = joule_step_compare(a->step, b->step);

    return order ? order : strverscmp(a->node, b->node);
}

static const struct joule_stepfile *find_file(const struct merge *m,
                                              const struct joule_plan_node *n)
{
    for (size_t i = 0; i < m->files.count; i++)
        if (strcmp(m->files.file[i].node, n->name) == 0 &&
            strcmp(m->files.file[i].step, n->step) == 0)
            return &m->files.file[i];
    return NULL;
}

/* All sources in the order of the merged file; its bytes to read. */
static int list_sources(struct merge *m, uint64_t *ret_bytes,
                        struct joule_error *err)
{
    m->source = calloc(m->files.count + m->old.nodes + 1, sizeof(*m->source));
    if (!m->source)
        return joule_error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < m->files.count; i++) {
        struct source *s = &m->source[m->count++];

        s->file = &m->files.file[i];
        s->step = s->file->step;
        s->node = s->file->node;
        if (fstatat(m->files.dir_fd, s->file->name, &s->st,
                    AT_SYMLINK_NOFOLLOW) == 0)
            *ret_bytes += (uint64_t)s->st.st_size;
    }
    for (size_t i = 0; i < m->old.nodes; i++) {
        const struct joule_plan_node *n = &m->old.node[i];
        struct source *s = &m->source[m->count];

        if (find_file(m, n))
            continue;
        s->step = n->step;
        s->node = n->name;
        m->count++;
    }
    qsort(m->source, m->count, sizeof(*m->source), compare_sources);
    return 0;
}

/* The merged file that is there already, if there is one. */
static int read_old(struct merge *m, struct joule_error *err)
{
    struct joule_error why;

    m->old_fd = openat(m->out.dir_fd, m->out.name,
                       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (m->old_fd < 0 && errno == ENOENT)
        return 0;
    if (m->old_fd < 0)
        return joule_error_set(err, errno, "cannot open %s: %m",
                               m->request->output);
    if (joule_plan_read(m->old_fd, &m->old, &why) == 0)
        return 0;
    return joule_error_set(err, errno,
                           "%s is there already, and nothing can be added to "
                           "it: %s",
                           m->request->output, why.text);
}

/* Those of which everything is on disk in the merged file. */
static void remove_files(struct merge *m)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct source *s = &m->source[i];
        char text[JOULE_ERROR_MAX];
        struct stat now;

        if (!s->file || !s->is_whole)
            continue;
        if (fstatat(m->files.dir_fd, s->file->name, &now, AT_SYMLINK_NOFOLLOW) <
            0)
            continue;
        if (now.st_ino != s->st.st_ino || now.st_dev != s->st.st_dev ||
            now.st_size != s->st.st_size ||
            now.st_mtim.tv_sec != s->st.st_mtim.tv_sec ||
            now.st_mtim.tv_nsec != s->st.st_mtim.tv_nsec) {
            snprintf(text, sizeof(text),
                     "%s: it has changed meanwhile and is kept", s->file->name);
            say(m, text);
            m->damaged++;
        } else if (unlinkat(m->files.dir_fd, s->file->name, 0) < 0) {
            snprintf(text, sizeof(text), "%s: it cannot be removed: %s",
                     s->file->name, strerror(errno));
            say(m, text);
            m->damaged++;
        }
    }
}

static int write_merged(struct merge *m, struct joule_error *err)
{
    const struct joule_work work = {
        .open = open_task,
        .run = read_source,
        .take = take,
        .ended = ended,
        .tick = tick,
        .arg = m,
        .cpu_s = CPU_S,
        .wall_s = WALL_S,
    };
    uint64_t bytes = 0;

    if (list_sources(m, &bytes, err) < 0)
        return -1;
    joule_progress_start(&m->progress, bytes);
    joule_hdf_quiet();
    m->copy = joule_copy_create(m->out.fd, err);
    if (!m->copy ||
        joule_pool_run(&work, m->count, m->request->readers, err) < 0)
        return -1;
    if (m->merged == 0)
        return joule_error_set(err, ENODATA,
                               "none of the %zu files could be read",
                               m->files.count);
    if (joule_copy_finish(m->copy, err) < 0)
        return -1;
    return joule_outfile_commit(&m->out, err);
}

/* The exit status. */
static int run(struct merge *m, struct joule_error *err)
{
    const struct joule_merge_request *r = m->request;

    if (joule_stepfiles_find(r->dir, r->user, r->id, r->job, &m->files, err) <
            0 ||
        joule_outfile_open(&m->out, r->output, err) < 0 || read_old(m, err) < 0)
        return JOULE_EXIT_NOTHING;
    if (m->files.count == 0 && m->old.nodes > 0) {
        fprintf(stderr, "sh5util: Job %s: all is merged in %s already\n",
                r->job->text, r->output);
        return JOULE_EXIT_ALL;
    }
    if (m->files.count == 0) {
        joule_error_set(err, ENOENT,
                        "No node-step files of job %s found in %s/%s",
                        r->job->text, r->dir, r->user);
        return JOULE_EXIT_NOTHING;
    }
    fprintf(stderr, "sh5util: Merging node-step files into %s\n", r->output);
    if (write_merged(m, err) < 0)
        return JOULE_EXIT_NOTHING;
    joule_progress_clear(&m->progress);
    if (!r->save)
        remove_files(m);
    if (r->verbose)
        fprintf(stderr, "sh5util: %zu of %zu node-step files merged\n",
                m->merged, m->files.count);
    return m->damaged ? JOULE_EXIT_PART : JOULE_EXIT_ALL;
}

int joule_merge(const struct joule_merge_request *request)
{
    struct merge *m = calloc(1, sizeof(*m));
    struct joule_error err = {""};
    int status;

    if (!m) {
        fputs("sh5util: out of memory\n", stderr);
        return JOULE_EXIT_NOTHING;
    }
    m->request = request;
    m->old_fd = m->out.fd = m->out.dir_fd = m->files.dir_fd = -1;
    status = run(m, &err);
    joule_progress_clear(&m->progress);
    if (err.text[0] && status == JOULE_EXIT_NOTHING)
        fprintf(stderr, "sh5util: %s\n", err.text);
    joule_outfile_abandon(&m->out);
    joule_copy_destroy(m->copy);
    joule_plan_free(&m->old);
    joule_stepfiles_free(&m->files);
    if (m->old_fd >= 0)
        close(m->old_fd);
    free(m->source);
    free(m);
    return status;
}

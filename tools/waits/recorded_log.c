/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/waits/recorded_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/list.h"

#define SIZE_MAX_RANKS (1u << 20)
#define RECORDS_MAX    (1u << 16) /* of a block */
#define COMMS_MAX      (1u << 16)
#define NAMES_MAX      (1u << 12)
#define AT_ONCE        1024
#define FRESH_S        5
/* 36 years: what is made of several times does not overflow. */
#define TIME_MAX_NS (INT64_C(1) << 60)

/* ---- a file ---- */

static bool read_at(int fd, void *to, size_t size, off_t at)
{
    char *p = to;

    while (size > 0) {
        ssize_t n = pread(fd, p, size, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool is_time(int64_t ns)
{
    return ns >= -TIME_MAX_NS && ns <= TIME_MAX_NS;
}

static bool has_times(const struct joule_waits_head *h)
{
    for (int i = 0; i < 2; i++)
        if (!is_time(h->clock[i].at_ns) || !is_time(h->clock[i].offset_ns))
            return false;
    return is_time(h->begin_ns) && is_time(h->end_ns) && h->wall_ns >= 0 &&
           h->wall_ns < 4 * TIME_MAX_NS;
}

static int check_head(const struct joule_waits_head *h, const char *path,
                      struct joule_error *err)
{
    if (h->magic != JOULE_WAITS_MAGIC || h->version != JOULE_WAITS_VERSION ||
        h->head_bytes != sizeof(*h) ||
        h->record_bytes != sizeof(struct joule_waits_record))
        return joule_error_set(
            err, EINVAL,
            "%s is no log of this version of slurm-joule and of this machine",
            path);
    if (h->size == 0 || h->size > SIZE_MAX_RANKS || h->rank >= h->size)
        return joule_error_set(err, EINVAL, "%s is of rank %u of %u", path,
                               h->rank, h->size);
    if (!has_times(h))
        return joule_error_set(err, EINVAL, "%s has times out of all range",
                               path);
    return 0;
}

static bool take_comms(struct joule_recorded_log *l, int fd, off_t at,
                       uint32_t count)
{
    if (l->comms + count > COMMS_MAX ||
        joule_list_grow(&l->comm, l->comms, count, &l->comm_room,
                        sizeof(*l->comm)) < 0 ||
        !read_at(fd, l->comm + l->comms, count * sizeof(*l->comm), at))
        return false;
    l->comms += count;
    return true;
}

static bool take_names(struct joule_recorded_log *l, int fd, off_t at,
                       uint32_t count)
{
    if (l->names + count > NAMES_MAX ||
        joule_list_grow(&l->name, l->names, count, &l->name_room,
                        sizeof(*l->name)) < 0 ||
        !read_at(fd, l->name + l->names, count * sizeof(*l->name), at))
        return false;
    for (size_t i = l->names; i < l->names + count; i++) {
        struct joule_waits_text *t = &l->name[i];

        if (t->length >= sizeof(t->text))
            t->length = sizeof(t->text) - 1;
        t->text[t->length] = '\0';
    }
    l->names += count;
    return true;
}

/* Threads beyond the bound are left out. */
static bool take_piece(struct joule_recorded_log *l,
                       const struct joule_waits_block *b, off_t at)
{
    if (b->thread >= JOULE_WAITS_THREADS)
        l->is_damaged = true;
    if (b->thread >= JOULE_WAITS_THREADS || b->count == 0)
        return true;
    if (joule_list_grow(&l->piece, l->pieces, 1, &l->piece_room,
                        sizeof(*l->piece)) < 0)
        return false;
    l->piece[l->pieces++] = (struct joule_recorded_piece){
        b->thread, b->first, b->count, b->number, at};
    return true;
}

static size_t bytes_each(uint32_t kind)
{
    switch (kind) {
    case JOULE_WAITS_RECORDS:
        return sizeof(struct joule_waits_record);
    case JOULE_WAITS_COMMS:
        return sizeof(struct joule_waits_comm);
    case JOULE_WAITS_NAMES:
        return sizeof(struct joule_waits_text);
    default:
        return 0;
    }
}

/* Returns where it came to. */
static off_t read_blocks(struct joule_recorded_log *l, int fd, off_t size)
{
    off_t at = sizeof(l->head), end;
    struct joule_waits_block b;
    bool good = true;

    for (; read_at(fd, &b, sizeof(b), at); at = end) {
        size_t each = bytes_each(b.kind);

        end = at + (off_t)(sizeof(b) + b.count * each);
        if (each == 0 || b.count > RECORDS_MAX || end > size)
            break;
        at += (off_t)sizeof(b);
        if (b.kind == JOULE_WAITS_COMMS)
            good = take_comms(l, fd, at, b.count);
        else if (b.kind == JOULE_WAITS_NAMES)
            good = take_names(l, fd, at, b.count);
        else
            good = take_piece(l, &b, at);
        if (!good)
            break;
    }
    return at;
}

static int compare_pieces(const void *pa, const void *pb)
{
    const struct joule_recorded_piece *a = pa, *b = pb;

    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Threads that have left records, without gaps between their numbers. */
static void count_threads(struct joule_recorded_log *l)
{
    uint32_t before = UINT32_MAX;

    for (size_t i = 0; i < l->pieces; i++) {
        if (l->piece[i].thread != before)
            l->threads++;
        before = l->piece[i].thread;
        l->piece[i].thread = l->threads - 1;
    }
}

/* A process that was killed did not say when it ended. */
static void find_end(struct joule_recorded_log *l, int fd)
{
    struct joule_waits_record last;

    l->end_ns = l->head.end_ns;
    for (size_t i = 0; i < l->pieces; i++) {
        const struct joule_recorded_piece *p = &l->piece[i];

        if (p->count > 0 &&
            read_at(fd, &last, sizeof(last),
                    p->at + (off_t)((p->count - 1) * sizeof(last))) &&
            last.leave_ns > l->end_ns && is_time(last.leave_ns))
            l->end_ns = last.leave_ns;
    }
}

/* Where a process was killed, or could not write, the last block is cut. */
static void read_rest(struct joule_recorded_log *l, int fd, off_t size)
{
    l->head.node[sizeof(l->head.node) - 1] = '\0';
    l->head.program[sizeof(l->head.program) - 1] = '\0';
    l->head.library[sizeof(l->head.library) - 1] = '\0';
    if (read_blocks(l, fd, size) != size)
        l->is_damaged |=
            l->head.state != JOULE_WAITS_RUNS && l->head.error == 0;
    if (l->pieces > 0)
        qsort(l->piece, l->pieces, sizeof(*l->piece), compare_pieces);
    count_threads(l);
    find_end(l, fd);
}

static int read_log(int dir_fd, const char *name, struct joule_recorded_log *l,
                    struct joule_error *err)
{
    int fd =
        openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    int rc;

    if (fd < 0)
        return joule_error_set(err, errno, "cannot open %s: %s", l->path,
                               strerror(errno));
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        rc = joule_error_set(err, EINVAL, "%s is no file", l->path);
    else if (!read_at(fd, &l->head, sizeof(l->head), 0))
        rc = joule_error_set(err, EINVAL, "%s is cut short", l->path);
    else
        rc = check_head(&l->head, l->path, err);
    if (rc == 0)
        read_rest(l, fd, st.st_size);
    joule_close(fd);
    return rc;
}

/* ---- a directory of them ---- */

static bool is_log(const char *name)
{
    size_t length = strlen(name), end = strlen(JOULE_WAITS_SUFFIX);

    return length > end && strcmp(name + length - end, JOULE_WAITS_SUFFIX) == 0;
}

static int compare_logs(const void *pa, const void *pb)
{
    const struct joule_recorded_log *a = pa, *b = pb;

    if (a->head.rank != b->head.rank)
        return a->head.rank < b->head.rank ? -1 : 1;
    return strcmp(a->path, b->path);
}

static void free_log(struct joule_recorded_log *l)
{
    free(l->path);
    free(l->comm);
    free(l->name);
    free(l->piece);
}

/* What cannot be read is left out. */
static int add_log(struct joule_recorded_logs *logs, int dir_fd,
                   const char *directory, const char *name)
{
    struct joule_recorded_log l = {0};
    struct joule_error why;

    if (joule_list_grow(&logs->log, logs->logs, 1, &logs->room,
                        sizeof(*logs->log)) < 0 ||
        asprintf(&l.path, "%s/%s", directory, name) < 0)
        return -1;
    if (read_log(dir_fd, name, &l, &why) == 0) {
        logs->log[logs->logs++] = l;
        return 0;
    }
    if (logs->unreadable++ == 0) {
        logs->error = errno;
        logs->first_unreadable = why;
    }
    free_log(&l);
    return 0;
}

static int read_all(DIR *dir, const char *directory,
                    struct joule_recorded_logs *logs, struct joule_error *err)
{
    const struct dirent *entry;

    while ((entry = readdir(dir)))
        if (is_log(entry->d_name) &&
            add_log(logs, dirfd(dir), directory, entry->d_name) < 0)
            return joule_error_set(err, ENOMEM, "out of memory");
    return 0;
}

/* What was started with the wrong --mpi has each process alone in its world. */
static int check_ranks(const struct joule_recorded_logs *logs,
                       const char *directory, struct joule_error *err)
{
    const struct joule_recorded_log *l = logs->log;

    if (logs->logs == 0 && logs->unreadable > 0)
        return joule_error_set(err, logs->error, "%s",
                               logs->first_unreadable.text);
    if (logs->logs == 0)
        return joule_error_set(err, ENOENT, "%s has no logs (*%s)", directory,
                               JOULE_WAITS_SUFFIX);
    for (size_t i = 1; i < logs->logs; i++) {
        if (l[i].head.job != l[0].head.job || l[i].head.step != l[0].head.step)
            return joule_error_set(
                err, EINVAL,
                "%s has logs of steps %u.%u and %u.%u: each step wants a "
                "directory of its own",
                directory, l[0].head.job, l[0].head.step, l[i].head.job,
                l[i].head.step);
        if (l[i].head.size != l[0].head.size)
            return joule_error_set(
                err, EINVAL, "%s and %s are of runs of %u and %u ranks",
                l[0].path, l[i].path, l[0].head.size, l[i].head.size);
        if (l[i].head.rank != l[i - 1].head.rank)
            continue;
        if (l[0].head.size == 1)
            return joule_error_set(
                err, EINVAL,
                "%s: the %zu processes were not one MPI program: each is "
                "rank 0 of 1 (%s wants another srun --mpi)",
                directory, logs->logs, l[0].head.library);
        return joule_error_set(err, EINVAL, "%s and %s are both of rank %u",
                               l[i - 1].path, l[i].path, l[i].head.rank);
    }
    return 0;
}

int joule_recorded_open(const char *directory, struct joule_recorded_logs *ret,
                        struct joule_error *err)
{
    DIR *dir = opendir(directory);
    int rc;

    *ret = (struct joule_recorded_logs){0};
    if (!dir)
        return joule_error_set(err, errno, "cannot open %s: %s", directory,
                               strerror(errno));
    rc = read_all(dir, directory, ret, err);
    closedir(dir);
    if (rc == 0 && ret->logs > 0)
        qsort(ret->log, ret->logs, sizeof(*ret->log), compare_logs);
    if (rc == 0)
        rc = check_ranks(ret, directory, err);
    if (rc == 0)
        ret->size = ret->log[0].head.size;
    else
        joule_recorded_close(ret);
    return rc;
}

void joule_recorded_close(struct joule_recorded_logs *logs)
{
    int saved = errno;

    for (size_t i = 0; i < logs->logs; i++)
        free_log(&logs->log[i]);
    free(logs->log);
    *logs = (struct joule_recorded_logs){0};
    errno = saved;
}

/* A process writes at least once a second. */
static enum joule_recorded_state state_of(int dir_fd, const char *name)
{
    enum joule_recorded_state state = JOULE_RECORDED_DAMAGED;
    struct joule_waits_head head;
    struct stat st;
    int fd =
        openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return state;
    if (fstat(fd, &st) == 0 && read_at(fd, &head, sizeof(head), 0) &&
        check_head(&head, name, NULL) == 0)
        state =
            head.state == JOULE_WAITS_RUNS && time(NULL) - st.st_mtime < FRESH_S
                ? JOULE_RECORDED_RUNS
                : JOULE_RECORDED_OVER;
    joule_close(fd);
    return state;
}

enum joule_recorded_state joule_recorded_state_of(const char *directory)
{
    DIR *dir = opendir(directory);
    enum joule_recorded_state most = JOULE_RECORDED_NONE, state;
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        if (!is_log(entry->d_name))
            continue;
        state = state_of(dirfd(dir), entry->d_name);
        most = state > most ? state : most;
    }
    if (dir)
        closedir(dir);
    return most;
}

/* ---- records ---- */

static int read_piece(int fd, const struct joule_recorded_piece *p,
                      int (*take)(void *arg, const struct joule_waits_record *,
                                  size_t),
                      void *arg)
{
    struct joule_waits_record record[AT_ONCE];

    for (uint32_t i = 0, n; i < p->count; i += n) {
        n = p->count - i < AT_ONCE ? p->count - i : AT_ONCE;
        if (!read_at(fd, record, n * sizeof(*record),
                     p->at + (off_t)(i * sizeof(*record))))
            return 0;
        if (take(arg, record, n) < 0)
            return -1;
    }
    return 0;
}

int joule_recorded_read(const struct joule_recorded_log *log, uint32_t thread,
                        int (*take)(void *arg,
                                    const struct joule_waits_record *records,
                                    size_t count),
                        void *arg, struct joule_error *err)
{
    int fd = open(log->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    size_t low = 0, high = log->pieces;
    int rc = 0;

    if (fd < 0)
        return joule_error_set(err, errno, "cannot open %s: %s", log->path,
                               strerror(errno));
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (log->piece[middle].thread < thread)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < log->pieces && log->piece[low].thread == thread && rc == 0;
         low++)
        rc = read_piece(fd, &log->piece[low], take, arg);
    close(fd);
    return rc;
}

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

#include "common/base/list.h"

#define SIZE_MAX_RANKS (1u << 20)
#define RECORDS_MAX    (1u << 16) /* of a block */
#define COMMS_MAX      (1u << 16)
#define NAMES_MAX      (1u << 12)
#define AT_ONCE        1024
#define FRESH_S        5

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

static bool take_piece(struct joule_recorded_log *l,
                       const struct joule_waits_block *b, off_t at)
{
    if (b->count > RECORDS_MAX || b->thread >= JOULE_WAITS_THREADS ||
        joule_list_grow(&l->piece, l->pieces, 1, &l->piece_room,
                        sizeof(*l->piece)) < 0)
        return false;
    l->piece[l->pieces++] = (struct joule_recorded_piece){
        b->thread, b->first, b->count, b->number, at};
    if (b->thread >= l->threads)
        l->threads = b->thread + 1;
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

/* Where the process was killed while it wrote, the last block is cut. */
static void read_blocks(struct joule_recorded_log *l, int fd, off_t size)
{
    off_t at = sizeof(l->head);
    struct joule_waits_block b;
    bool good = true;

    while (good && read_at(fd, &b, sizeof(b), at)) {
        size_t each = bytes_each(b.kind);

        at += sizeof(b);
        if (each == 0 || b.count > RECORDS_MAX ||
            at + (off_t)(b.count * each) > size)
            return;
        if (b.kind == JOULE_WAITS_COMMS)
            good = take_comms(l, fd, at, b.count);
        else if (b.kind == JOULE_WAITS_NAMES)
            good = take_names(l, fd, at, b.count);
        else
            good = take_piece(l, &b, at);
        at += (off_t)(b.count * each);
    }
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
            last.leave_ns > l->end_ns)
            l->end_ns = last.leave_ns;
    }
}

static int read_log(int dir_fd, const char *name, struct joule_recorded_log *l,
                    struct joule_error *err)
{
    int fd =
        openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;

    if (fd < 0)
        return joule_error_set(err, errno, "cannot open %s: %s", l->path,
                               strerror(errno));
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return joule_error_set(err, EINVAL, "%s is no file", l->path);
    }
    if (!read_at(fd, &l->head, sizeof(l->head), 0)) {
        close(fd);
        return joule_error_set(err, EINVAL, "%s is cut short", l->path);
    }
    if (check_head(&l->head, l->path, err) < 0) {
        close(fd);
        return -1;
    }
    l->head.node[sizeof(l->head.node) - 1] = '\0';
    l->head.program[sizeof(l->head.program) - 1] = '\0';
    l->head.library[sizeof(l->head.library) - 1] = '\0';
    read_blocks(l, fd, st.st_size);
    if (l->pieces > 0)
        qsort(l->piece, l->pieces, sizeof(*l->piece), compare_pieces);
    find_end(l, fd);
    close(fd);
    return 0;
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

static int read_all(DIR *dir, const char *directory,
                    struct joule_recorded_logs *logs, struct joule_error *err)
{
    const struct dirent *entry;

    while ((entry = readdir(dir))) {
        struct joule_recorded_log *l;

        if (!is_log(entry->d_name))
            continue;
        if (joule_list_grow(&logs->log, logs->logs, 1, &logs->room,
                            sizeof(*logs->log)) < 0)
            return joule_error_set(err, ENOMEM, "out of memory");
        l = &logs->log[logs->logs++];
        memset(l, 0, sizeof(*l));
        if (asprintf(&l->path, "%s/%s", directory, entry->d_name) < 0) {
            l->path = NULL;
            return joule_error_set(err, ENOMEM, "out of memory");
        }
        if (read_log(dirfd(dir), entry->d_name, l, err) < 0)
            return -1;
    }
    return 0;
}

/* What was started with the wrong --mpi has each process alone in its world. */
static int check_ranks(const struct joule_recorded_logs *logs,
                       const char *directory, struct joule_error *err)
{
    const struct joule_recorded_log *l = logs->log;

    if (logs->logs == 0)
        return joule_error_set(err, ENOENT, "%s has no logs (*%s)", directory,
                               JOULE_WAITS_SUFFIX);
    for (size_t i = 1; i < logs->logs; i++) {
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

    for (size_t i = 0; i < logs->logs; i++) {
        free(logs->log[i].path);
        free(logs->log[i].comm);
        free(logs->log[i].name);
        free(logs->log[i].piece);
    }
    free(logs->log);
    *logs = (struct joule_recorded_logs){0};
    errno = saved;
}

/* A process writes at least once a second. */
static bool is_fresh(int dir_fd, const char *name)
{
    struct joule_waits_head head;
    struct stat st;
    bool runs = false;
    int fd =
        openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && read_at(fd, &head, sizeof(head), 0))
        runs = head.state == JOULE_WAITS_RUNS &&
               time(NULL) - st.st_mtime < FRESH_S;
    close(fd);
    return runs;
}

bool joule_recorded_is_there(const char *directory, bool *ret_is_written)
{
    DIR *dir = opendir(directory);
    const struct dirent *entry;
    bool any = false;

    *ret_is_written = false;
    while (dir && (entry = readdir(dir))) {
        if (!is_log(entry->d_name))
            continue;
        any = true;
        *ret_is_written |= is_fresh(dirfd(dir), entry->d_name);
    }
    if (dir)
        closedir(dir);
    return any;
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
    int fd = open(log->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), rc = 0;

    if (fd < 0)
        return joule_error_set(err, errno, "cannot open %s: %s", log->path,
                               strerror(errno));
    for (size_t i = 0; i < log->pieces && rc == 0; i++)
        if (log->piece[i].thread == thread)
            rc = read_piece(fd, &log->piece[i], take, arg);
    close(fd);
    return rc;
}

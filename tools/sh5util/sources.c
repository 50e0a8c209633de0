/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/sources.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* ---- files of the job ---- */

/* Of these are names of nodes; a file of another name is none of Slurm's. */
#define NODE_CHARACTERS                                                        \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* The node in the part of a file's name behind the step: it ends where ".h5"
 * first stands, as Slurm has it, or with ".log". */
static bool parse_node(const char *name, struct joule_stepfile *file)
{
    size_t all = strlen(name), len;
    const char *end = strstr(name, ".h5");

    file->is_log = !end && all > 4 && strcmp(name + all - 4, ".log") == 0;
    if (file->is_log)
        end = name + all - 4;
    else if (!end || end[3] != '\0')
        return false;
    len = (size_t)(end - name);
    if (len == 0 || len >= sizeof(file->node) || *name == '.' ||
        strspn(name, NODE_CHARACTERS) != all)
        return false;
    memcpy(file->node, name, len);
    file->node[len] = '\0';
    return true;
}

/* <job>_<step>_<node>.h5 or .log */
static bool parse_name(const char *name, uint32_t id,
                       struct joule_stepfile *file)
{
    char step[JOULE_STEP_TEXT_MAX];
    char *rest;
    unsigned long number;
    size_t len;

    if (!isdigit((unsigned char)*name) || strlen(name) > NAME_MAX)
        return false;
    errno = 0;
    number = strtoul(name, &rest, 10);
    if (errno || number != id || *rest != '_')
        return false;
    name = rest + 1;
    len = strcspn(name, "_");
    if (len == 0 || len >= sizeof(step) || name[len] != '_')
        return false;
    memcpy(step, name, len);
    step[len] = '\0';
    return parse_node(name + len + 1, file) &&
           joule_step_name(step, file->step) == 0;
}

/* An ordinary user's directory is the user's; root may have made it. */
static int open_user_dir(const char *dir, const char *user,
                         struct joule_error *err)
{
    int top, fd;
    struct stat st;

    if (!*user || strcmp(user, ".") == 0 || strcmp(user, "..") == 0 ||
        strchr(user, '/'))
        return joule_error_set(err, EINVAL, "\"%s\" is not a user's name",
                               user);
    top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return joule_error_set(err, errno,
                               "cannot open the profile directory %s: %m", dir);
    fd = openat(top, user, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        joule_error_set(err, errno == ELOOP ? EPERM : errno,
                        "cannot open the directory %s/%s: %m", dir, user);
    close(top);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0))
        return fd;
    close(fd);
    return joule_error_set(
        err, EPERM, "the directory %s/%s belongs to somebody else", dir, user);
}

static int compare_files(const void *pa, const void *pb)
{
    const struct joule_stepfile *a = pa, *b = pb;
    int order = joule_step_compare(a->step, b->step);

    if (order == 0)
        order = strverscmp(a->node, b->node);
    return order ? order : a->is_log - b->is_log;
}

static int list(struct joule_stepfiles *files, DIR *dir, uint32_t id,
                const struct joule_job *job, struct joule_error *err)
{
    struct dirent *entry;

    while (errno = 0, (entry = readdir(dir))) {
        struct joule_stepfile file = {0}, *more = files->file;

        if (!parse_name(entry->d_name, id, &file) ||
            !joule_job_has_step(job, file.step))
            continue;
        strcpy(file.name, entry->d_name);
        if ((files->count & (files->count - 1)) == 0)
            more = reallocarray(more, files->count ? files->count * 2 : 1,
                                sizeof(*more));
        if (!more)
            return joule_error_set(err, ENOMEM, "out of memory");
        files->file = more;
        files->file[files->count++] = file;
    }
    if (errno)
        return joule_error_set(err, errno, "cannot list the directory: %m");
    if (files->count > 1)
        qsort(files->file, files->count, sizeof(*files->file), compare_files);
    return 0;
}

int joule_stepfiles_find(const char *dir, const char *user, uint32_t id,
                         const struct joule_job *job,
                         struct joule_stepfiles *ret, struct joule_error *err)
{
    DIR *stream;
    int fd, rc;

    memset(ret, 0, sizeof(*ret));
    ret->dir_fd = open_user_dir(dir, user, err);
    if (ret->dir_fd < 0)
        return -1;
    fd = openat(ret->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream) {
        rc = joule_error_set(err, errno, "cannot list %s/%s: %m", dir, user);
        if (fd >= 0)
            close(fd);
    } else {
        rc = list(ret, stream, id, job, err);
        closedir(stream);
    }
    if (rc < 0) {
        int saved = errno;

        joule_stepfiles_free(ret);
        errno = saved;
    }
    return rc;
}

void joule_stepfiles_free(struct joule_stepfiles *files)
{
    if (files->dir_fd >= 0)
        close(files->dir_fd);
    free(files->file);
    files->file = NULL;
    files->count = 0;
    files->dir_fd = -1;
}

/*
 * Our plugin locks the log that it writes with fcntl(2), libhdf5 the file with
 * flock(2), where its file locking was not turned off.
 */
static bool is_locked(int fd)
{
    struct flock whole = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

    if (fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK)
        return true;
    return flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

int joule_stepfile_open(const struct joule_stepfiles *files,
                        const struct joule_stepfile *file, struct stat *ret_st,
                        bool *ret_is_busy, struct joule_error *err)
{
    /* O_NONBLOCK: a pipe in its place must not hold us up. */
    int fd = openat(files->dir_fd, file->name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool is_busy = false;
    int saved;

    if (fd < 0)
        return joule_error_set(
            err, errno == ELOOP ? EPERM : errno, "it cannot be opened: %s",
            errno == ELOOP ? "it is a link" : strerror(errno));
    if (fstat(fd, ret_st) < 0)
        joule_error_set(err, errno, "it cannot be examined: %m");
    else if (!S_ISREG(ret_st->st_mode))
        joule_error_set(err, EPERM, "it is no regular file");
    else if (ret_st->st_uid != geteuid() && ret_st->st_uid != 0)
        joule_error_set(err, EPERM, "it belongs to somebody else");
    else if ((is_busy = is_locked(fd)) && !ret_is_busy)
        joule_error_set(err, EBUSY,
                        "it is still being written: --unfinished takes what is "
                        "in it so far");
    else {
        if (ret_is_busy)
            *ret_is_busy = is_busy;
        return fd;
    }
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

/* ---- what is merged ---- */

static int compare(const void *pa, const void *pb)
{
    const struct joule_source *a = pa, *b = pb;
    int order = joule_step_compare(a->step, b->step);

    return order ? order : strverscmp(a->node, b->node);
}

/* The source of a node-step file; they stand first in the list. */
static struct joule_source *find_file(const struct joule_sources *s,
                                      size_t files,
                                      const struct joule_plan_node *n)
{
    for (size_t i = 0; i < files; i++)
        if (strcmp(s->source[i].node, n->name) == 0 &&
            strcmp(s->source[i].step, n->step) == 0)
            return &s->source[i];
    return NULL;
}

static bool is_busy(const struct joule_sources *s,
                    const struct joule_stepfile *file)
{
    bool busy = false;
    struct stat st;
    int fd = joule_stepfile_open(&s->files, file, &st, &busy, NULL);

    if (fd >= 0)
        close(fd);
    return busy;
}

/* The log of which [source] was made: they have one name but for its end. */
static bool is_log_of(const struct joule_stepfile *log,
                      const struct joule_stepfile *file)
{
    size_t len = strlen(file->name);

    return log->is_log && !file->is_log && len > 3 &&
           strlen(log->name) == len + 1 &&
           strncmp(log->name, file->name, len - 3) == 0;
}

bool joule_sources_have(const struct joule_sources *s, const char *step)
{
    for (size_t i = 0; i < s->files.count; i++)
        if (strcmp(s->files.file[i].step, step) == 0)
            return true;
    for (size_t i = 0; i < s->old.nodes; i++)
        if (strcmp(s->old.node[i].step, step) == 0)
            return true;
    return false;
}

/* A file that is being written ends with a hole that holds nothing yet. */
uint64_t joule_source_bytes(const struct joule_source *source)
{
    uint64_t size = (uint64_t)source->st.st_size;
    uint64_t on_disk = (uint64_t)source->st.st_blocks * 512;

    return on_disk > 0 && on_disk < size ? on_disk : size;
}

int joule_sources_list(struct joule_sources *s, struct joule_error *err)
{
    size_t files;

    s->source = calloc(s->files.count + s->old.nodes + 1, sizeof(*s->source));
    if (!s->source)
        return joule_error_set(err, ENOMEM, "out of memory");
    for (size_t i = 0; i < s->files.count; i++) {
        const struct joule_stepfile *file = &s->files.file[i];
        struct joule_source *source = &s->source[s->count];

        if (s->count > 0 && is_log_of(file, source[-1].file))
            continue;
        s->count++;
        *source = (struct joule_source){
            .step = file->step, .node = file->node, .file = file};
        if (fstatat(s->files.dir_fd, file->name, &source->st,
                    AT_SYMLINK_NOFOLLOW) == 0)
            s->bytes += joule_source_bytes(source);
    }
    files = s->count;
    if (s->old_fd >= 0)
        fstat(s->old_fd, &s->old_st);
    for (size_t i = 0; i < s->old.nodes; i++) {
        const struct joule_plan_node *n = &s->old.node[i];
        struct joule_source *source = find_file(s, files, n);

        if (!source) {
            s->source[s->count++] = (struct joule_source){
                .step = n->step, .node = n->name, .st = s->old_st};
            continue;
        }
        source->old = n;
        if (!s->unfinished && is_busy(s, source->file))
            joule_source_keep_old(s, source);
    }
    qsort(s->source, s->count, sizeof(*s->source), compare);
    return 0;
}

void joule_sources_free(struct joule_sources *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->source[i].why);
    free(s->source);
    if (s->old_fd >= 0)
        close(s->old_fd);
    joule_plan_free(&s->old);
    joule_stepfiles_free(&s->files);
}

int joule_source_open(const struct joule_sources *s,
                      struct joule_source *source, struct joule_error *err)
{
    int fd;

    if (source->file)
        return joule_stepfile_open(&s->files, source->file, &source->st,
                                   s->unfinished ? &source->is_busy : NULL,
                                   err);
    fd = fcntl(s->old_fd, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? joule_error_set(err, errno, "cannot use it: %m") : fd;
}

void joule_source_keep_old(const struct joule_sources *s,
                           struct joule_source *source)
{
    source->later = source->file;
    source->file = NULL;
    source->st = s->old_st;
    source->rows = 0;
    source->is_busy = source->is_bad = false;
}

void joule_source_set_why(struct joule_source *source, const char *sentence)
{
    free(source->why);
    source->why = sentence ? strdup(sentence) : NULL;
    /* Without memory for the reason, it is still not whole. */
    if (sentence && !source->why)
        source->is_bad = true;
}

int joule_source_remove(const struct joule_sources *s,
                        const struct joule_source *source,
                        struct joule_error *err)
{
    const char *name = source->file->name;
    const struct stat *then = &source->st;
    struct stat now;

    if (fstatat(s->files.dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (now.st_ino != then->st_ino || now.st_dev != then->st_dev ||
        now.st_size != then->st_size ||
        now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != then->st_mtim.tv_nsec)
        return joule_error_set(
            err, EBUSY, "%s: it has changed meanwhile and is kept", name);
    if (unlinkat(s->files.dir_fd, name, 0) < 0 && errno != ENOENT)
        return joule_error_set(err, errno, "%s: it cannot be removed: %m",
                               name);
    return 0;
}

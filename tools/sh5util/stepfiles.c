/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/stepfiles.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "tools/sh5util/plan.h"

/* Of these are names of nodes; a file of another name is none of Slurm's. */
#define NODE_CHARACTERS                                                        \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* <job>_<step>_<node>.h5, the name of the node up to the first ".h5". */
static bool parse_name(const char *name, uint32_t id,
                       struct joule_stepfile *file)
{
    char step[JOULE_STEP_TEXT_MAX];
    const char *end;
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
    name += len + 1;
    end = strstr(name, ".h5");
    if (!end || end == name || end[3] != '\0' ||
        (size_t)(end - name) >= sizeof(file->node) || *name == '.' ||
        strspn(name, NODE_CHARACTERS) != strlen(name))
        return false;
    memcpy(file->node, name, (size_t)(end - name));
    return joule_step_name(step, file->step) == 0;
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

static int compare(const void *pa, const void *pb)
{
    const struct joule_stepfile *a = pa, *b = pb;
    int order = joule_step_compare(a->step, b->step);

    return order ? order : strverscmp(a->node, b->node);
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
        qsort(files->file, files->count, sizeof(*files->file), compare);
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
 * Our plugin locks what it writes with fcntl(2) (nodefile.c), libhdf5 with
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

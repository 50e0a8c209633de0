/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/sources.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/base/file.h"

/* ---- files of the job ---- */

/* Of these are names of nodes; a file of another name is none of Slurm's. */
#define NODE_CHARACTERS                                                        \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* The node in the part of a file's name behind the step: it ends where ".h5"
 * first stands, as Slurm has it, or with ".log". */
static bool parse_node(const char *name, struct joule_source *file)
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
static bool parse_name(const char *name, uint32_t id, struct joule_source *file)
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

#define BEING_WRITTEN                                                          \
    "it is still being written: --unfinished takes what is in it so far"

/* In the order of a merged file; a log behind the file that was made of it. */
static int compare(const void *pa, const void *pb)
{
    const struct joule_source *a = pa, *b = pb;
    int order = joule_step_compare(a->step, b->step);

    if (order == 0)
        order = strverscmp(a->node, b->node);
    return order ? order : a->is_log - b->is_log;
}

/* Room for [more] sources. */
static int make_room(struct joule_sources *s, size_t more,
                     struct joule_error *err)
{
    struct joule_source *source =
        reallocarray(s->source, s->count + more, sizeof(*source));

    if (!source)
        return joule_error_set(err, ENOMEM, "out of memory");
    s->source = source;
    return 0;
}

/* Whether [log] has the name of the file before it but for its end. */
static bool is_log_of(const struct joule_source *log,
                      const struct joule_source *file)
{
    size_t len = strlen(file->name);

    return log->is_log && !file->is_log && strlen(log->name) == len + 1 &&
           strncmp(log->name, file->name, len - strlen("h5")) == 0;
}

static void drop_logs(struct joule_sources *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->count; i++)
        if (kept == 0 || !is_log_of(&s->source[i], &s->source[kept - 1]))
            s->source[kept++] = s->source[i];
    s->count = kept;
}

static int list(struct joule_sources *s, DIR *dir, const struct joule_job *job,
                struct joule_error *err)
{
    struct dirent *entry;

    while (errno = 0, (entry = readdir(dir))) {
        struct joule_source file = {0};

        if (!parse_name(entry->d_name, job->id, &file) ||
            !joule_job_has_step(job, file.step))
            continue;
        strcpy(file.name, entry->d_name);
        if ((s->count & (s->count - 1)) == 0 &&
            make_room(s, s->count ? s->count : 1, err) < 0)
            return -1;
        s->source[s->count++] = file;
    }
    if (errno)
        return joule_error_set(err, errno, "cannot list the directory: %m");
    if (s->count > 1)
        qsort(s->source, s->count, sizeof(*s->source), compare);
    drop_logs(s);
    for (size_t i = 0; i < s->count; i++)
        if (fstatat(s->dir_fd, s->source[i].name, &s->source[i].st,
                    AT_SYMLINK_NOFOLLOW) == 0)
            s->bytes += joule_source_bytes(&s->source[i]);
    s->files = s->count;
    return 0;
}

int joule_sources_find(struct joule_sources *s, const char *dir,
                       const char *user, const struct joule_job *job,
                       struct joule_error *err)
{
    DIR *stream;
    int fd, rc;

    s->dir_fd = open_user_dir(dir, user, err);
    if (s->dir_fd < 0)
        return -1;
    fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream) {
        joule_close(fd);
        return joule_error_set(err, errno, "cannot list %s/%s: %m", dir, user);
    }
    rc = list(s, stream, job, err);
    closedir(stream);
    return rc;
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

int joule_source_open(const struct joule_sources *s,
                      struct joule_source *source, struct joule_error *err)
{
    bool is_old = source->take == JOULE_TAKE_OLD;
    /* O_NONBLOCK: a pipe in its place must not hold us up. */
    int fd =
        is_old
            ? fcntl(s->old_fd, F_DUPFD_CLOEXEC, 0)
            : openat(s->dir_fd, source->name,
                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return joule_error_set(
            err, errno == ELOOP ? EPERM : errno, "it cannot be opened: %s",
            errno == ELOOP ? "it is a link" : strerror(errno));
    if (is_old)
        return fd;
    if (fstat(fd, &source->st) < 0)
        joule_error_set(err, errno, "it cannot be examined: %m");
    else if (!S_ISREG(source->st.st_mode))
        joule_error_set(err, EPERM, "it is no regular file");
    else if (source->st.st_uid != geteuid() && source->st.st_uid != 0)
        joule_error_set(err, EPERM, "it belongs to somebody else");
    else if (is_locked(fd) && !s->unfinished)
        joule_error_set(err, EBUSY, "%s", BEING_WRITTEN);
    else {
        source->is_busy = is_locked(fd);
        return fd;
    }
    joule_close(fd);
    return -1;
}

/* ---- what is merged ---- */

static bool is_step_of(const struct joule_source *source, const char *step)
{
    return strcmp(source->step, step) == 0;
}

bool joule_sources_have(const struct joule_sources *s, const char *step)
{
    for (size_t i = 0; i < s->count; i++)
        if (is_step_of(&s->source[i], step))
            return true;
    return false;
}

uint64_t joule_source_bytes(const struct joule_source *source)
{
    uint64_t size = (uint64_t)source->st.st_size;
    uint64_t on_disk = (uint64_t)source->st.st_blocks * 512;

    return on_disk > 0 && on_disk < size ? on_disk : size;
}

/* A file that may not be taken leaves what was merged of it before. */
static void add_old(struct joule_sources *s, struct joule_source *source)
{
    int fd = s->unfinished ? -1 : joule_source_open(s, source, NULL);

    if (!s->unfinished && fd < 0 && errno == EBUSY) {
        joule_source_set_why(source, BEING_WRITTEN);
        joule_source_keep_old(s, source);
    }
    joule_close(fd);
}

int joule_sources_add_old(struct joule_sources *s, struct joule_error *err)
{
    if (s->old.nodes == 0)
        return 0;
    fstat(s->old_fd, &s->old_st);
    if (make_room(s, s->old.nodes, err) < 0)
        return -1;
    for (size_t i = 0; i < s->old.nodes; i++) {
        const struct joule_plan_node *n = &s->old.node[i];
        struct joule_source *source = s->source;

        while (source < s->source + s->files &&
               (strcmp(source->node, n->name) != 0 ||
                !is_step_of(source, n->step)))
            source++;
        if (source < s->source + s->files) {
            source->old = n;
            add_old(s, source);
            continue;
        }
        source = &s->source[s->count++];
        *source = (struct joule_source){
            .old = n, .take = JOULE_TAKE_OLD, .st = s->old_st};
        strcpy(source->step, n->step);
        strcpy(source->node, n->name);
    }
    qsort(s->source, s->count, sizeof(*s->source), compare);
    return 0;
}

void joule_sources_free(struct joule_sources *s)
{
    for (size_t i = 0; i < s->count; i++)
        joule_source_set_why(&s->source[i], NULL);
    free(s->source);
    joule_close(s->old_fd);
    joule_close(s->dir_fd);
    joule_plan_free(&s->old);
}

void joule_source_keep_old(const struct joule_sources *s,
                           struct joule_source *source)
{
    source->take = JOULE_TAKE_OLD;
    source->st = s->old_st;
    source->rows = 0;
}

void joule_source_set_why(struct joule_source *source, const char *sentence)
{
    static char no_memory[] = "damaged";
    char *copy = sentence ? strdup(sentence) : NULL;

    if (source->why != no_memory)
        free(source->why);
    /* Without memory for the reason, it is still not whole. */
    source->why = sentence && !copy ? no_memory : copy;
}

int joule_source_remove(const struct joule_sources *s,
                        const struct joule_source *source,
                        struct joule_error *err)
{
    const char *name = source->name;
    const struct stat *then = &source->st;
    struct stat now;

    if (fstatat(s->dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (now.st_ino != then->st_ino || now.st_dev != then->st_dev ||
        now.st_size != then->st_size ||
        now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != then->st_mtim.tv_nsec)
        return joule_error_set(
            err, EBUSY, "%s: it has changed meanwhile and is kept", name);
    if (unlinkat(s->dir_fd, name, 0) < 0 && errno != ENOENT)
        return joule_error_set(err, errno, "%s: it cannot be removed: %m",
                               name);
    return 0;
}

/* ---- the user ---- */

int joule_sources_become(const char *user, struct joule_error *err)
{
    const struct passwd *pw;

    if (geteuid() != 0)
        return 0;
    errno = 0;
    pw = getpwnam(user);
    if (!pw)
        return joule_error_set(err, errno ? errno : ENOENT,
                               "there is no user \"%s\"", user);
    if (pw->pw_uid == 0)
        return 0;
    if (initgroups(pw->pw_name, pw->pw_gid) < 0 ||
        setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
        setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0)
        return joule_error_set(err, errno, "cannot become user %s: %m", user);
    return 0;
}

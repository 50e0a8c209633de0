/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/profile/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/file.h"

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define WALK   (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* setfsuid and setfsgid never fail; they tell the id before. */
static bool has_ids(uid_t uid, gid_t gid)
{
    return (uid_t)setfsuid((uid_t)-1) == uid &&
           (gid_t)setfsgid((gid_t)-1) == gid;
}

static void set_ids(uid_t uid, gid_t gid)
{
    if (uid != 0) {
        setfsgid(gid);
        setfsuid(uid);
    } else {
        setfsuid(uid);
        setfsgid(gid);
    }
}

/*
 * The groups, too, of this thread alone: glibc's setgroups is for the whole
 * process, the system call is not.
 */
static int become_user(const struct joule_place *place, struct joule_error *err)
{
    if (geteuid() == 0) {
        if (syscall(SYS_setgroups, place->group_count, place->groups) < 0)
            return joule_error_set(err, errno, "cannot take the groups of %s",
                                   place->user);
        set_ids(place->uid, place->gid);
    }
    if (has_ids(place->uid, place->gid))
        return 0;
    return joule_error_set(err, EPERM, "cannot take the rights of %s",
                           place->user);
}

/*
 * Another thread of the process may set its user, as slurmstepd does while it
 * launches tasks; then glibc sets that of all its threads, and with it what
 * this one has been given here.  What failed meanwhile says nothing.
 */
#define TRIES 20

static bool is_worth_a_try(const struct joule_place *place, int *tries)
{
    int failure = errno;
    bool refused = failure == EACCES || failure == EPERM;
    bool again =
        (refused || !has_ids(place->uid, place->gid)) && (*tries)++ < TRIES;

    if (again) {
        joule_sleep_ns(5 * JOULE_NS_PER_MS);
        become_user(place, NULL);
    }
    errno = failure;
    return again;
}

static bool is_name(const char *name)
{
    const unsigned char *c = (const unsigned char *)name;

    if (!*c || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        strlen(name) > NAME_MAX)
        return false;
    for (; *c; c++)
        if (*c == '/' || *c < ' ' || *c == 0x7f)
            return false;
    return true;
}

/* Nobody but root, the admin's account and who may become them can put
 * something else in [path], which is open as [fd]. */
static int check_above(const struct joule_place *place, const char *path,
                       int fd, struct joule_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return joule_error_set(err, errno, "cannot look at %s: %s", path,
                               strerror(errno));
    if (st.st_uid != 0 && st.st_uid != place->admin)
        return joule_error_set(err, EPERM,
                               "%s belongs to user %u, not to root or "
                               "SlurmUser, so that ProfileHDF5Dir=%s is not "
                               "safe",
                               path, (unsigned)st.st_uid, place->dir);
    if ((st.st_mode & 022) && !(st.st_mode & S_ISVTX))
        return joule_error_set(err, EPERM,
                               "%s can be written by others (mode %04o), so "
                               "that ProfileHDF5Dir=%s is not safe",
                               path, (unsigned)st.st_mode & 07777, place->dir);
    return 0;
}

/* [path] has no symbolic links: it was resolved before, and if that is no
 * longer true, the walk ends. */
static int walk(const struct joule_place *place, char *path,
                struct joule_error *err)
{
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), next;

    if (fd < 0)
        return joule_error_set(err, errno, "cannot open /");
    if (check_above(place, "/", fd, err) < 0)
        goto fail;
    for (char *part = path + 1; *part;) {
        char *end = part + strcspn(part, "/"), mark = *end;

        *end = '\0'; /* [path] is that of this part */
        next = openat(fd, part, WALK);
        if (next < 0) {
            joule_error_set(err, errno, "cannot open %s: %s", path,
                            strerror(errno));
            goto fail;
        }
        close(fd);
        fd = next;
        if (check_above(place, path, fd, err) < 0)
            goto fail;
        *end = mark;
        part = mark ? end + 1 : end;
    }
    return fd;
fail:
    joule_close(fd);
    return -1;
}

/* ProfileHDF5Dir.  The admin may have set symbolic links on the way. */
static int open_above(const struct joule_place *place, struct joule_error *err)
{
    char *path = realpath(place->dir, NULL);
    int fd;

    if (!path)
        return joule_error_set(err, errno, "cannot open %s: %s", place->dir,
                               strerror(errno));
    fd = walk(place, path, err);
    free(path);
    return fd;
}

static int make_dir(const struct joule_place *place, int above)
{
    return mkdirat(above, place->user, 0700) < 0 && errno != EEXIST ? -1 : 0;
}

/* What root made is given to the user; another node of the job may do the
 * same at this moment. */
static int give_dir(const struct joule_place *place, int above)
{
    int fd = openat(above, place->user, FOLDER), rc = -1;
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0)
        rc = st.st_uid == 0 ? fchown(fd, place->uid, place->gid) : 0;
    joule_close(fd);
    return rc;
}

/* As the user where all may make directories (and on root-squashed shares
 * nobody else can); else as root, to whom ProfileHDF5Dir belongs. */
static int make_user_dir(const struct joule_place *place, int above)
{
    int rc = make_dir(place, above), saved;

    if (geteuid() != 0)
        return rc;
    set_ids(0, 0);
    if (rc < 0)
        rc = make_dir(place, above);
    if (rc == 0)
        rc = give_dir(place, above);
    saved = errno;
    set_ids(place->uid, place->gid);
    errno = saved;
    return rc;
}

static int check_user_dir(const struct joule_place *place, int fd,
                          struct joule_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return joule_error_set(err, errno, "cannot look at %s/%s: %s",
                               place->dir, place->user, strerror(errno));
    if (st.st_uid != place->uid)
        return joule_error_set(err, EPERM, "%s/%s belongs to user %u",
                               place->dir, place->user, (unsigned)st.st_uid);
    if (st.st_mode & 022)
        return joule_error_set(
            err, EPERM, "%s/%s can be written by others (mode %04o)",
            place->dir, place->user, (unsigned)st.st_mode & 07777);
    return 0;
}

static int open_user_dir(const struct joule_place *place, int above,
                         struct joule_error *err)
{
    int fd = openat(above, place->user, FOLDER);
    struct stat st;

    /* Root's: one that this or another node is making at this moment. */
    if ((fd < 0 && (errno == ENOENT || errno == EACCES)) ||
        (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == 0 && place->uid != 0)) {
        joule_close(fd);
        if (make_user_dir(place, above) < 0)
            return joule_error_set(err, errno, "cannot make %s/%s: %s",
                                   place->dir, place->user, strerror(errno));
        fd = openat(above, place->user, FOLDER);
    }
    if (fd < 0)
        return joule_error_set(err, errno, "cannot open %s/%s: %s", place->dir,
                               place->user, strerror(errno));
    if (check_user_dir(place, fd, err) == 0)
        return fd;
    joule_close(fd);
    return -1;
}

static int open_all(const struct joule_place *place, struct joule_error *err)
{
    int above, fd;

    if (become_user(place, err) < 0)
        return -1;
    above = open_above(place, err);
    if (above < 0)
        return -1;
    fd = open_user_dir(place, above, err);
    joule_close(above);
    return fd;
}

int joule_place_open(const struct joule_place *place, struct joule_error *err)
{
    int fd, tries = 0;

    if (place->dir[0] != '/')
        return joule_error_set(err, EINVAL,
                               "ProfileHDF5Dir=%s is not an absolute path",
                               place->dir);
    if (!is_name(place->user))
        return joule_error_set(err, EINVAL,
                               "'%s' cannot be the name of a user's directory",
                               place->user);
    do
        fd = open_all(place, err);
    while (fd < 0 && is_worth_a_try(place, &tries));
    return fd;
}

/* A thread's ids may be set by others of its process in between. */
static int check_own(const struct joule_place *place, int fd,
                     struct joule_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return joule_error_set(err, errno, "cannot look at the new file: %s",
                               strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_uid != place->uid || st.st_nlink != 1 ||
        st.st_size != 0)
        return joule_error_set(err, EPERM, "the new file is not %s's own alone",
                               place->user);
    return 0;
}

static int create_file(const struct joule_place *place, int dir_fd,
                       const char *name, struct joule_error *err)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int tries = 0, saved;

    do {
        int fd = openat(dir_fd, name, flags, 0600);

        if (fd < 0) {
            joule_error_set(err, errno, "cannot make %s/%s/%s: %s", place->dir,
                            place->user, name, strerror(errno));
            continue;
        }
        if (check_own(place, fd, err) == 0)
            return fd;
        saved = errno;
        unlinkat(dir_fd, name, 0);
        errno = saved;
        joule_close(fd);
    } while (errno != EEXIST && is_worth_a_try(place, &tries));
    return -1;
}

int joule_place_names(const char *log, char hdf5[NAME_MAX + 1],
                      char temporary[NAME_MAX + 1])
{
    size_t length = strlen(log);

    /* The longest: ".BASE.h5.tmp". */
    if (!is_name(log) || length <= strlen(".log") || length + 4 > NAME_MAX ||
        strcmp(log + length - strlen(".log"), ".log") != 0) {
        errno = EINVAL;
        return -1;
    }
    length -= strlen(".log");
    if (hdf5)
        snprintf(hdf5, NAME_MAX + 1, "%.*s.h5", (int)length, log);
    if (temporary)
        snprintf(temporary, NAME_MAX + 1, ".%.*s.h5.tmp", (int)length, log);
    return 0;
}

/* 1: it is [name] now; 0: the name, or its HDF5 file's, is taken; -1. */
static int try_name(const struct joule_place *place, int dir_fd,
                    const char *name, int *ret_fd, struct joule_error *err)
{
    char hdf5[NAME_MAX + 1];
    struct stat st;
    int saved;

    *ret_fd = create_file(place, dir_fd, name, err);
    if (*ret_fd < 0)
        return errno == EEXIST ? 0 : -1;
    /* A converter gives the HDF5 file its name before it removes the log: in
     * this order, one of the two is seen. */
    if (joule_place_names(name, hdf5, NULL) == 0 &&
        fstatat(dir_fd, hdf5, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return 1;
    saved = errno;
    unlinkat(dir_fd, name, 0);
    close(*ret_fd);
    errno = saved;
    return 0;
}

int joule_place_create(const struct joule_place *place, int dir_fd,
                       const char *base, char *name, size_t size,
                       uint32_t *ret_run, struct joule_error *err)
{
    uint32_t run;

    for (run = 0; run < JOULE_PLACE_RUNS_MAX; run++) {
        int fd, length, rc;

        length = run ? snprintf(name, size, "%s.r%u.log", base, run)
                     : snprintf(name, size, "%s.log", base);
        if (length < 0 || (size_t)length >= size ||
            joule_place_names(name, NULL, NULL) < 0)
            return joule_error_set(
                err, EINVAL, "'%s.log' cannot be the name of a file", base);
        rc = try_name(place, dir_fd, name, &fd, err);
        if (rc < 0)
            return -1;
        if (rc > 0) {
            *ret_run = run;
            return fd;
        }
    }
    return joule_error_set(err, EEXIST, "%s/%s has %u profiles of %s",
                           place->dir, place->user, run, base);
}

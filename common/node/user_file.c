/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/node/user_file.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/file.h"

#define ACL_NAME  "system.posix_acl_access"
#define NAME_SIZE 24
#define FILE_NAME JOULE_USER_ROWS_FILE

_Static_assert(JOULE_USER_ROWS_MAX == 2 * JOULE_LEDGER_SLOTS_MAX &&
                   JOULE_USER_ROWS_BOOT == JOULE_BOOT_ID_MAX,
               "the layout that applications read");

#define READ_TRIES 100 /* the writer publishes at most each 10 ms */

/* A file that can be found by its name tells everybody its size and the times
 * of its changes.  So it is in a directory that its user alone may enter. */
static void dir_name_of(uid_t uid, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%u", (unsigned)uid);
}

static void name_of(uid_t uid, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%u/" FILE_NAME, (unsigned)uid);
}

/* ---- writing ---- */

/* Beside root, only [uid] has a permission, [perm]: acl(5), the kernel's
 * Documentation/filesystems on posix_acl_xattr.  The file's group bits are the
 * mask from now on. */
static int let_in(int fd, uid_t uid, unsigned perm)
{
    const struct {
        unsigned tag, perm, id;
    } entries[] = {
        {ACL_USER_OBJ, ACL_READ | ACL_WRITE | (perm & ACL_EXECUTE),
         (unsigned)ACL_UNDEFINED_ID},
        {ACL_USER, perm, uid},
        {ACL_GROUP_OBJ, 0, (unsigned)ACL_UNDEFINED_ID},
        {ACL_MASK, perm, (unsigned)ACL_UNDEFINED_ID},
        {ACL_OTHER, 0, (unsigned)ACL_UNDEFINED_ID},
    };
    struct {
        struct posix_acl_xattr_header header;
        struct posix_acl_xattr_entry entry[5];
    } acl = {.header = {.a_version = htole32(POSIX_ACL_XATTR_VERSION)}};

    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
        acl.entry[i] = (struct posix_acl_xattr_entry){
            .e_tag = htole16((uint16_t)entries[i].tag),
            .e_perm = htole16((uint16_t)entries[i].perm),
            .e_id = htole32(entries[i].id),
        };
    return fsetxattr(fd, ACL_NAME, &acl, sizeof(acl), 0);
}

/* [fd] or -1 if opening it went wrong; closed if nobody can be let in. */
static int let_in_or_close(int fd, uid_t uid, unsigned perm)
{

    if (fd < 0 || let_in(fd, uid, perm) == 0)
        return fd;
    joule_close(fd);
    return -1;
}

/* The user's directory, also one that an interrupted slurmd has left, and the
 * file in it. */
static int make(int dir_fd, uid_t uid)
{
    char name[NAME_SIZE];
    int fd;

    dir_name_of(uid, name);
    if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
        return -1;
    fd = let_in_or_close(
        openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
        uid, ACL_EXECUTE);
    if (fd < 0)
        return -1;
    dir_fd = fd;
    fd = let_in_or_close(openat(dir_fd, FILE_NAME,
                                O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600),
                         uid, ACL_READ);
    joule_close(dir_fd);
    return fd;
}

/* Whether it is still what has this name: as long as it is open, no other file
 * has its number. */
static bool is_there(int dir_fd, const char *name,
                     const struct userfile_open *o)
{
    struct stat st;

    return o->fd >= 0 && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_ino == o->ino && st.st_dev == o->dev;
}

/* Nobody but root puts anything here. */
static int open_or_make(int dir_fd, const char *name, uid_t uid,
                        struct userfile_open *o)
{
    struct stat st;

    o->fd =
        openat(dir_fd, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (o->fd < 0 && errno == ENOENT)
        o->fd = make(dir_fd, uid);
    if (o->fd < 0 || fstat(o->fd, &st) < 0)
        return -1;
    o->dev = st.st_dev;
    o->ino = st.st_ino;
    return 0;
}

static int write_at(int fd, const void *from, size_t bytes, off_t at)
{
    ssize_t n = pwrite(fd, from, bytes, at);

    if (n >= 0 && (size_t)n < bytes)
        errno = ENOSPC;
    return n == (ssize_t)bytes ? 0 : -1;
}

int joule_userfile_write(int dir_fd, struct userfile_open *o,
                         const char boot_id[JOULE_BOOT_ID_MAX],
                         uint64_t generation, const struct joule_user_rows *f,
                         struct joule_error *err)
{
    struct joule_user_head head = {JOULE_USER_ROWS_MAGIC,
                                   JOULE_USER_ROWS_VERSION, "", generation};
    uid_t uid = (uid_t)f->uid;
    char name[NAME_SIZE];
    int rc = 0, errnum;

    memcpy(head.boot_id, boot_id, JOULE_BOOT_ID_MAX);
    name_of(uid, name);
    if (!is_there(dir_fd, name, o)) {
        joule_userfile_close(o);
        rc = open_or_make(dir_fd, name, uid, o);
    }
    if (rc == 0 &&
        write_at(o->fd, f, JOULE_USER_ROWS_BYTES(f->rows),
                 JOULE_USER_ROWS_AT(generation)) == 0 &&
        write_at(o->fd, &head, sizeof(head), 0) == 0)
        return 0;
    errnum = errno;
    joule_userfile_close(o);
    joule_userfile_remove(dir_fd, uid, NULL);
    return joule_error_set(err, errnum,
                           "the figures of user %u cannot be written: %s",
                           (unsigned)uid, strerror(errnum));
}

void joule_userfile_close(struct userfile_open *o)
{
    if (o->fd >= 0)
        close(o->fd);
    o->fd = -1;
}

/* A user's directory with his file, or a file that stands in its place. */
static int remove_entry(int dir_fd, const char *name, struct joule_error *err)
{
    int fd =
        openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0) {
        unlinkat(fd, FILE_NAME, 0);
        close(fd);
    }
    if (unlinkat(dir_fd, name, fd >= 0 ? AT_REMOVEDIR : 0) == 0 ||
        errno == ENOENT)
        return 0;
    return joule_error_set(err, errno,
                           "the figures of user %s cannot be removed: %s", name,
                           strerror(errno));
}

int joule_userfile_remove(int dir_fd, uid_t uid, struct joule_error *err)
{
    char name[NAME_SIZE];

    dir_name_of(uid, name);
    return remove_entry(dir_fd, name, err);
}

int joule_userfile_remove_all(int dir_fd, struct joule_error *err)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    int rc = 0, saved;

    if (!dir) {
        saved = errno;
        if (fd >= 0)
            close(fd);
        return joule_error_set(err, saved, "cannot list directory users: %s",
                               strerror(saved));
    }
    while (rc == 0 && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = remove_entry(fd, entry->d_name, err);
    saved = errno;
    closedir(dir);
    errno = saved;
    return rc;
}

/* ---- reading ---- */

int joule_userfile_has_lists(int dir_fd, struct joule_error *err)
{
    char path[32];

    /* fgetxattr takes no descriptor that only looks names up. */
    snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
    if (getxattr(path, ACL_NAME, NULL, 0) >= 0 || errno != EOPNOTSUPP)
        return 0;
    return joule_error_set(err, EOPNOTSUPP,
                           "the file system of /run/slurm-joule has no access "
                           "lists (POSIX ACLs), so nobody but root can be "
                           "shown what is charged");
}

static bool makes_sense(const struct joule_user_rows *f, ssize_t bytes,
                        uid_t uid)
{
    if (bytes < (ssize_t)sizeof(*f) || f->uid != uid ||
        f->rows > JOULE_USERVIEW_ROWS_MAX ||
        (size_t)bytes < JOULE_USER_ROWS_BYTES(f->rows) ||
        f->attribution > JOULE_ATTRIBUTION_NODE)
        return false;
    for (size_t i = 0; i < f->rows; i++)
        if (f->row[i].kind > JOULE_STEP_OTHER ||
            (f->row[i].state != JOULE_ROW_RUNNING &&
             f->row[i].state != JOULE_ROW_ENDED))
            return false;
    return true;
}

/* 0, or errno. */
static int read_head(int fd, const char boot_id[JOULE_BOOT_ID_MAX],
                     struct joule_user_head *ret)
{
    ssize_t n = pread(fd, ret, sizeof(*ret), 0);

    if (n < 0)
        return errno;
    if ((size_t)n < sizeof(*ret))
        return ENOENT; /* nothing is published yet */
    return ret->magic == JOULE_USER_ROWS_MAGIC &&
                   ret->version == JOULE_USER_ROWS_VERSION &&
                   memcmp(ret->boot_id, boot_id, JOULE_BOOT_ID_MAX) == 0
               ? 0
               : ESTALE;
}

/* 0, or errno: EAGAIN if the writer was here meanwhile. */
static int look(int fd, struct joule_user_rows *f, uid_t uid,
                const char boot_id[JOULE_BOOT_ID_MAX])
{
    struct joule_user_head before, after;
    ssize_t n;
    int errnum = read_head(fd, boot_id, &before);

    if (errnum)
        return errnum;
    n = pread(fd, f, JOULE_USER_ROWS_BYTES(JOULE_USERVIEW_ROWS_MAX),
              JOULE_USER_ROWS_AT(before.generation));
    if (n < 0)
        return errno;
    errnum = read_head(fd, boot_id, &after);
    if (errnum)
        return errnum;
    if (after.generation != before.generation)
        return EAGAIN;
    return makes_sense(f, n, uid) ? 0 : EBADMSG;
}

static int no_file(int dir_fd, uid_t uid, struct joule_error *err)
{
    if (joule_userfile_has_lists(dir_fd, err) < 0)
        return -1;
    return joule_error_set(err, ENOENT,
                           "user %u has had no step here in the last minute",
                           (unsigned)uid);
}

static int open_file(int dir_fd, uid_t uid, struct joule_error *err)
{
    char name[NAME_SIZE], what[64];
    struct stat st;
    int fd, rc;

    name_of(uid, name);
    snprintf(what, sizeof(what), "the file of user %u", (unsigned)uid);
    fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return no_file(dir_fd, uid, err);
    if (fd < 0)
        return joule_error_set(err, errno == ELOOP ? EPERM : errno,
                               "cannot open %s: %s", what, strerror(errno));
    /* Removed just now. */
    if (fstat(fd, &st) == 0 && st.st_nlink == 0)
        rc = no_file(dir_fd, uid, err);
    else
        rc = joule_file_check_owner(fd, S_IFREG, S_IWGRP | S_IWOTH, what, err);
    if (rc == 0)
        return fd;
    joule_close(fd);
    return -1;
}

struct joule_user_rows *
joule_userfile_read(int dir_fd, uid_t uid,
                    const char boot_id[JOULE_BOOT_ID_MAX],
                    struct joule_error *err)
{
    struct joule_user_rows *f =
        malloc(JOULE_USER_ROWS_BYTES(JOULE_USERVIEW_ROWS_MAX));
    int fd, errnum = EAGAIN;

    if (!f) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    fd = open_file(dir_fd, uid, err);
    if (fd < 0) {
        errnum = errno;
        free(f);
        errno = errnum;
        return NULL;
    }
    for (int i = 0; errnum == EAGAIN && i < READ_TRIES; i++)
        errnum = look(fd, f, uid, boot_id);
    close(fd);
    if (errnum == 0)
        return f;
    if (errnum == EAGAIN)
        errnum = EBADMSG;
    free(f);
    if (errnum == ENOENT)
        no_file(dir_fd, uid, err);
    else
        joule_error_set(err, errnum, "the file of user %u %s", (unsigned)uid,
                        errnum == ESTALE    ? "is of another boot or version"
                        : errnum == EBADMSG ? "makes no sense"
                                            : "cannot be read");
    return NULL;
}

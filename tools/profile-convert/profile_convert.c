/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * joule-profile-convert - makes the HDF5 file of a profile log.  slurmstepd
 * starts it when a step ends, with the descriptors that converter.h names.
 *
 * It begins as root and becomes the user whose profile it is: nothing in the
 * user's directory can make it do more than the user may.  Its descriptor of the
 * log holds the writer's lock, so that sh5util does not remove the log meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/callfilter.h"
#include "common/base/error.h"
#include "common/base/parse.h"
#include "common/profile/convert.h"
#include "common/profile/hdf5_driver.h"
#include "common/profile/converter.h"
#include "common/profile/place.h"
#include "config.h"

#define NAME "joule-profile-convert"

/* slurmstepd kills it long before. */
#define SECONDS_MAX 300

/* More than slurmstepd has open. */
#define DESCRIPTORS_MAX 4096

/* Ten times what the usual profile takes. */
#define DATA_MAX (256u << 20)

static int usage(FILE *to)
{
    fprintf(to,
            "usage: " NAME " [--help | --version] | LOG UID GID\n"
            "Makes the HDF5 file of a profile's log for slurmstepd, which "
            "starts it with the\nlog as descriptor 0 and its directory as "
            "descriptor 3; it is of no use by\nitself.  To merge what steps "
            "have left behind: sh5util\n");
    return to == stdout ? 0 : 2;
}

/* close_range(2) is there since Linux 5.9. */
static void close_others(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, JOULE_CONVERTER_DIR + 1u, ~0u, 0u) == 0)
        return;
#endif
    for (int fd = JOULE_CONVERTER_DIR + 1; fd < DESCRIPTORS_MAX; fd++)
        close(fd);
}

static int bound(struct joule_error *err)
{
    const struct rlimit none = {0, 0}, seconds = {SECONDS_MAX, SECONDS_MAX};

    alarm(SECONDS_MAX);
    umask(077);
    close_others();
    if (setrlimit(RLIMIT_CORE, &none) < 0 ||
        setrlimit(RLIMIT_CPU, &seconds) < 0)
        return joule_error_set(err, errno, "cannot bound this process: %m");
#if !JOULE_HAS_SANITIZER
    const struct rlimit data = {DATA_MAX, DATA_MAX};

    if (setrlimit(RLIMIT_DATA, &data) < 0)
        return joule_error_set(err, errno, "cannot bound this process: %m");
#endif
    return 0;
}

static int become(uid_t uid, gid_t gid, pid_t parent, struct joule_error *err)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        (geteuid() == 0 &&
         (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
          setresuid(uid, uid, uid) < 0)) ||
        prctl(PR_SET_DUMPABLE, 0) < 0)
        return joule_error_set(err, errno, "cannot take the user's rights: %m");
    if (geteuid() != uid || getegid() != gid)
        return joule_error_set(err, EPERM, "cannot take the user's rights");
    /* Cleared by the kernel whenever the user changes. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        return joule_error_set(err, ESRCH, "slurmstepd is gone");
    return 0;
}

/* A file that an earlier run has left is removed. */
static int create(const char *name, struct joule_error *err)
{
    int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(JOULE_CONVERTER_DIR, name, flags, 0600);

    if (fd < 0 && errno == EEXIST &&
        unlinkat(JOULE_CONVERTER_DIR, name, 0) == 0)
        fd = openat(JOULE_CONVERTER_DIR, name, flags, 0600);
    if (fd < 0)
        return joule_error_set(err, errno, "cannot make %s: %m", name);
    return fd;
}

static int fill(int fd, struct joule_error *err)
{
    struct joule_convert_result result;

    joule_hdf5_prepare();
    if (joule_profile_convert(JOULE_CONVERTER_LOG, fd, &result, err) < 0)
        return -1;
    if (!result.is_ended || result.bytes_left_out)
        return joule_error_set(err, EBADMSG, "the log is damaged");
    if (fsync(fd) < 0)
        return joule_error_set(err, errno,
                               "the HDF5 file cannot be written: %m");
    return 0;
}

/* Replace no file.  NFS has no such call; there, a file that the user makes in
 * the meantime is replaced. */
static int rename_new(const char *from, const char *to)
{
    struct stat st;

    if (renameat2(JOULE_CONVERTER_DIR, from, JOULE_CONVERTER_DIR, to,
                  RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (fstatat(JOULE_CONVERTER_DIR, to, &st, AT_SYMLINK_NOFOLLOW) == 0)
        errno = EEXIST;
    if (errno != ENOENT)
        return -1;
    return renameat(JOULE_CONVERTER_DIR, from, JOULE_CONVERTER_DIR, to);
}

/* Another run of the step may have the name by now, where there are no locks. */
static bool is_ours(const char *log)
{
    struct stat ours, named;

    return fstat(JOULE_CONVERTER_LOG, &ours) == 0 &&
           fstatat(JOULE_CONVERTER_DIR, log, &named, AT_SYMLINK_NOFOLLOW) ==
               0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

/* The log is removed last: it has all rows until the HDF5 file is on disk. */
static int publish(const char *temporary, const char *hdf5, const char *log,
                   struct joule_error *err)
{
    if (rename_new(temporary, hdf5) < 0)
        return joule_error_set(err, errno, "cannot make %s: %m", hdf5);
    /* Some file systems have no such call for directories. */
    if (fsync(JOULE_CONVERTER_DIR) < 0 && errno != EINVAL && errno != EBADF)
        return joule_error_set(err, errno, "cannot keep %s: %m", hdf5);
    if (is_ours(log) && unlinkat(JOULE_CONVERTER_DIR, log, 0) < 0 &&
        errno != ENOENT)
        return joule_error_set(err, errno, "cannot remove %s: %m", log);
    return 0;
}

static int convert(const char *log, struct joule_error *err)
{
    char hdf5[NAME_MAX + 1], temporary[NAME_MAX + 1];
    int fd, rc;

    if (joule_place_names(log, hdf5, temporary) < 0)
        return joule_error_set(err, errno, "'%s' is not the name of a log",
                               log);
    fd = create(temporary, err);
    if (fd < 0)
        return -1;
    rc = fill(fd, err);
    if (rc == 0)
        rc = publish(temporary, hdf5, log, err);
    if (rc < 0)
        unlinkat(JOULE_CONVERTER_DIR, temporary, 0);
    close(fd);
    return rc;
}

int main(int argc, char **argv)
{
    pid_t parent = getppid();
    struct joule_error err;
    uint64_t uid, gid;
    struct stat st;

    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return usage(stdout);
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts(NAME " (" PACKAGE_NAME ") " PACKAGE_VERSION);
        return 0;
    }
    if (argc != 4 || joule_parse_u64(argv[2], 0, UINT32_MAX - 1, &uid) < 0 ||
        joule_parse_u64(argv[3], 0, UINT32_MAX - 1, &gid) < 0 ||
        fstat(JOULE_CONVERTER_LOG, &st) < 0 || !S_ISREG(st.st_mode) ||
        fstat(JOULE_CONVERTER_DIR, &st) < 0 || !S_ISDIR(st.st_mode))
        return usage(stderr);
    if (bound(&err) < 0 || become((uid_t)uid, (gid_t)gid, parent, &err) < 0 ||
        convert(argv[1], &err) < 0) {
        puts(err.text);
        return 1;
    }
    fputs(JOULE_CONVERTER_DONE, stdout);
    return 0;
}

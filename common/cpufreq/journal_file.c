/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/file.h"
#include "common/base/rundir.h"

#define FILE_NAME "journal"
#define NEW_NAME  "journal.new"
#define BAD_NAME  "journal.bad"
#define LOCK_NAME "lock"
#define OTHERS    (S_IRWXG | S_IRWXO)

/* Between two looks at a lock that another process has. */
#define PAUSE_MIN_NS (JOULE_NS_PER_MS / 10)
#define PAUSE_MAX_NS (JOULE_NS_PER_MS * 5)

int joule_journal_file_open(struct joule_journal_file *s, int root_fd,
                            bool create, struct joule_error *err)
{
    s->root_fd = root_fd;
    s->lock_fd = -1;
    s->is_locked = false;
    s->dir_fd = joule_rundir_open(root_fd, "cpufreq", 0700, create, err);
    return s->dir_fd < 0 ? -1 : 0;
}

void joule_journal_file_close(struct joule_journal_file *s)
{
    joule_journal_file_unlock(s);
    joule_close(s->lock_fd);
    joule_close(s->dir_fd);
    s->lock_fd = s->dir_fd = -1;
}

static int open_lock(struct joule_journal_file *s, struct joule_error *err)
{
    int fd =
        openat(s->dir_fd, LOCK_NAME,
               O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

    if (fd < 0)
        return joule_error_set(err, errno == ELOOP ? EPERM : errno,
                               "cannot open the lock of the journal: %s",
                               strerror(errno));
    if (joule_file_check_owner(fd, S_IFREG, OTHERS, "the journal's lock", err) <
        0) {
        joule_close(fd);
        return -1;
    }
    s->lock_fd = fd;
    return 0;
}

int joule_journal_file_lock(struct joule_journal_file *s, int64_t wait_ns,
                            struct joule_error *err)
{
    int64_t end_ns = joule_deadline_in(wait_ns), pause_ns = PAUSE_MIN_NS;

    if (s->lock_fd < 0 && open_lock(s, err) < 0)
        return -1;
    while (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return joule_error_set(err, errno, "cannot lock the journal: %m");
        if (joule_deadline_left(end_ns) == 0)
            return joule_error_set(err, EBUSY,
                                   "another process has been writing CPU "
                                   "frequencies for too long");
        joule_sleep_ns(pause_ns);
        if (pause_ns < PAUSE_MAX_NS)
            pause_ns *= 2;
    }
    s->is_locked = true;
    return 0;
}

void joule_journal_file_unlock(struct joule_journal_file *s)
{
    int saved = errno;

    /* Not left to close: a child that was forked in between has the same
     * description until it executes something. */
    if (s->is_locked)
        flock(s->lock_fd, LOCK_UN);
    s->is_locked = false;
    errno = saved;
}

/* One byte of the lock file, that no two living processes of a machine share:
 * namespace numbers have 32 bits, process numbers 22.  Record locks know nothing
 * of flock's. */
static struct flock byte_of(const struct joule_holder *h)
{
    return (struct flock){.l_type = F_WRLCK,
                          .l_whence = SEEK_SET,
                          .l_start = (off_t)((h->namespace & UINT32_MAX) << 23 |
                                             ((uint64_t)h->pid & 0x7fffff)),
                          .l_len = 1};
}

int joule_journal_file_live(struct joule_journal_file *s,
                            const struct joule_holder *h,
                            struct joule_error *err)
{
    struct flock byte = byte_of(h);

    if (s->lock_fd < 0 && open_lock(s, err) < 0)
        return -1;
    if (fcntl(s->lock_fd, F_SETLK, &byte) == 0)
        return 0;
    return joule_error_set(err, errno, "cannot lock process %lld's byte: %m",
                           (long long)h->pid);
}

int joule_journal_file_lives(struct joule_journal_file *s,
                             const struct joule_holder *h)
{
    struct flock byte = byte_of(h);

    if ((s->lock_fd < 0 && open_lock(s, NULL) < 0) ||
        fcntl(s->lock_fd, F_GETLK, &byte) < 0)
        return -1;
    return byte.l_type != F_UNLCK;
}

bool joule_journal_file_exists(const struct joule_journal_file *s)
{
    return faccessat(s->dir_fd, FILE_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
           errno != ENOENT;
}

/* NULL with errno ENOENT and no sentence if there is no file.  The directory
 * is root's alone: nobody puts another file there between the two looks. */
static char *load_text(struct joule_journal_file *s, size_t *ret_len,
                       struct joule_error *err)
{
    int fd = openat(s->dir_fd, FILE_NAME,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char *text;
    int rc;

    if (fd < 0) {
        if (errno != ENOENT)
            joule_error_set(err, errno == ELOOP ? EPERM : errno,
                            "cannot open " JOULE_CPUFREQ_JOURNAL ": %s",
                            strerror(errno));
        return NULL;
    }
    rc =
        joule_file_check_owner(fd, S_IFREG, OTHERS, JOULE_CPUFREQ_JOURNAL, err);
    joule_close(fd);
    if (rc < 0)
        return NULL;
    text =
        joule_file_load(s->dir_fd, FILE_NAME, JOULE_CPUFREQ_TEXT_MAX, ret_len);
    if (!text) {
        if (errno == EFBIG || errno == EINVAL)
            errno = EBADMSG;
        joule_error_set(err, errno,
                        "cannot read " JOULE_CPUFREQ_JOURNAL ": %m");
        return NULL;
    }
    /* The newline that joule_file_load takes off is part of the text. */
    text[(*ret_len)++] = '\n';
    return text;
}

int joule_journal_file_load(struct joule_journal_file *s,
                            struct joule_journal *ret, struct joule_error *err)
{
    char boot_id[JOULE_BOOT_ID_MAX], *text;
    struct joule_error why;
    size_t len;
    int rc;

    memset(ret, 0, sizeof(*ret));
    if (joule_rundir_boot_id(s->root_fd, boot_id, err) < 0)
        return -1;
    text = load_text(s, &len, err);
    if (!text && errno != ENOENT)
        return -1;
    rc = text ? joule_journal_parse(text, len, ret, &why) : 0;
    free(text);
    if (rc < 0)
        return joule_error_set(
            err, errno, "%s: %s; 'joule cpufreq --discard' puts it aside",
            JOULE_CPUFREQ_JOURNAL, why.text);
    if (memcmp(ret->boot_id, boot_id, JOULE_BOOT_ID_MAX) != 0) {
        joule_journal_clear(ret);
        joule_journal_init(ret, boot_id);
    }
    return 0;
}

/* All of the text, on disk, in a file of its own. */
static int write_new(int dir_fd, const char *text, size_t len)
{
    int fd, rc = -1;

    /* A writer that was killed has left one. */
    if (unlinkat(dir_fd, NEW_NAME, 0) < 0 && errno != ENOENT)
        return -1;
    fd = openat(dir_fd, NEW_NAME,
                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    while (len > 0) {
        ssize_t n = write(fd, text, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            goto out;
        text += n;
        len -= (size_t)n;
    }
    rc = fsync(fd);
out:
    joule_close(fd);
    return rc;
}

int joule_journal_file_save(struct joule_journal_file *s,
                            const struct joule_journal *j,
                            struct joule_error *err)
{
    size_t len;
    char *text;
    int rc;

    if (j->entry_count == 0 && j->holder_count == 0) {
        if (unlinkat(s->dir_fd, FILE_NAME, 0) == 0 || errno == ENOENT)
            return 0;
        return joule_error_set(err, errno,
                               "cannot remove " JOULE_CPUFREQ_JOURNAL ": %m");
    }
    text = joule_journal_format(j, &len);
    if (!text)
        return joule_error_set(err, ENOMEM, "out of memory");
    rc = write_new(s->dir_fd, text, len);
    if (rc == 0)
        rc = renameat(s->dir_fd, NEW_NAME, s->dir_fd, FILE_NAME);
    if (rc == 0)
        rc = fsync(s->dir_fd);
    free(text);
    if (rc == 0)
        return 0;
    return joule_error_set(err, errno,
                           "cannot write " JOULE_CPUFREQ_JOURNAL ": %m");
}

int joule_journal_file_set_aside(struct joule_journal_file *s,
                                 struct joule_error *err)
{
    if (renameat(s->dir_fd, FILE_NAME, s->dir_fd, BAD_NAME) == 0 ||
        errno == ENOENT)
        return 0;
    return joule_error_set(err, errno,
                           "cannot put " JOULE_CPUFREQ_JOURNAL " aside: %m");
}

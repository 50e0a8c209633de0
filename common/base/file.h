/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * file.h - small files below a root directory descriptor.
 *
 * Paths are relative to [root_fd] and must not start with '/', so that the
 * same code reads the live system (root_fd of "/") and a captured tree.
 * All functions return -1 (or NULL) with errno set on failure.
 */
#ifndef JOULE_BASE_FILE_H
#define JOULE_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "common/base/error.h"

/* Close; -1 is a no-op, errno is kept. */
void joule_close(int fd);

/* Open with O_CLOEXEC added; EINVAL for an absolute path and for O_CREAT.
 * The caller closes it. */
int joule_file_open(int root_fd, const char *path, int flags);

/*
 * Read the whole file into buf[size] and end it with NUL; one trailing
 * newline is removed.  Returns the length.  EFBIG if it does not fit (the
 * buffer is then unspecified), EINVAL if it holds a NUL byte.
 */
ssize_t joule_file_read(int root_fd, const char *path, char *buf, size_t size);

/*
 * As joule_file_read, into memory that the caller frees.  The file is read
 * to its end whatever its size says (/proc); EFBIG if it has more than [max]
 * bytes, the newline counted.  ret_len may be NULL.
 */
char *joule_file_load(int root_fd, const char *path, size_t max,
                      size_t *ret_len);

/* Read from fd until the end of the file or until [buf] is full: the bytes, or
 * -1 with errno of read. */
ssize_t joule_file_fill(int fd, void *buf, size_t size);

/*
 * Refuse what others could change or read: fd must be of [type] (S_IFREG,
 * S_IFDIR), belong to root or to the effective user, have none of the
 * permissions [forbidden], and be no file with a second name.  Write
 * permissions of a directory with the sticky bit are not held against it: in
 * there, nobody can replace what is not theirs.  [what] names it in the
 * sentence.  -1 with EPERM, or errno of fstat.
 */
int joule_file_check_owner(int fd, mode_t type, mode_t forbidden,
                           const char *what, struct joule_error *err);

/*
 * Open for reading the regular file at absolute [path] below root_fd, if it
 * and the directories on the way pass joule_file_check_owner (directories:
 * not to be written by group and others; the file: [forbidden]).  No symbolic
 * link is followed.  -1 with EPERM, EINVAL (not an absolute path, or one with
 * "..") or what open gave, and a sentence.  The caller closes it.
 */
int joule_file_open_trusted(int root_fd, const char *path, mode_t forbidden,
                            struct joule_error *err);

#endif

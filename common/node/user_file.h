/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * user_file.h - the file of one user, <uid>/rows: how it is written
 * and read.  For user_view.c alone.
 *
 * Its directory may be entered by its user only, so that others see neither its
 * size nor when it changes.  It is written in place, as the ledger is: the
 * version that is not published, then the generation that publishes it.
 */
#ifndef JOULE_NODE_USER_FILE_H
#define JOULE_NODE_USER_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/rundir.h"
#include "common/node/user_view.h"

/* A file between two times that it is written. */
struct userfile_open {
    int fd; /* -1: it is not open */
    dev_t dev;
    ino_t ino;
};

/*
 * Publish in the file of file->uid in the directory, made where missing.
 * Generations count up from 1.  [o] is what an earlier call for the same user
 * has left there, or has fd -1: it is left open for the next call, or
 * joule_userfile_close.  Where something else has its name meanwhile,
 * or nothing, that is opened or made instead.  -1 with errno and a sentence;
 * there is no file then, and it is not open.
 */
int joule_userfile_write(int dir_fd, struct userfile_open *o,
                         const char boot_id[JOULE_BOOT_ID_MAX],
                         uint64_t generation,
                         const struct joule_user_rows *file,
                         struct joule_error *err);

/* What is not open stays so. */
void joule_userfile_close(struct userfile_open *o);

/* Remove it and its directory; that there is none is well. */
int joule_userfile_remove(int dir_fd, uid_t uid, struct joule_error *err);

/* Remove everything in the directory. */
int joule_userfile_remove_all(int dir_fd, struct joule_error *err);

/* -1 with errno EOPNOTSUPP and a sentence: the directory's file system has no
 * access lists.  Also for one that may not be listed. */
int joule_userfile_has_lists(int dir_fd, struct joule_error *err);

/* The whole file, to be freed; NULL with errno and a sentence as
 * joule_userview_read. */
struct joule_user_rows *
joule_userfile_read(int dir_fd, uid_t uid,
                    const char boot_id[JOULE_BOOT_ID_MAX],
                    struct joule_error *err);

#endif

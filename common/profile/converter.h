/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * converter.h - the program joule-profile-convert, which makes an HDF5 file of a
 * profile log when the step ends (tools/profile-convert).
 *
 * libhdf5 is in a process of its own: Debian's takes 10 MB and 25 ms in a
 * slurmstepd that would have it loaded all the time.
 */
#ifndef JOULE_PROFILE_CONVERTER_H
#define JOULE_PROFILE_CONVERTER_H

#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"

/* Its descriptors: the log, the pipe for its answer, the directory. */
#define JOULE_CONVERTER_LOG    0
#define JOULE_CONVERTER_ANSWER 1
#define JOULE_CONVERTER_DIR    3

/* The answer when the HDF5 file is there and the log is gone; any other answer
 * is a sentence that says what is wrong. */
#define JOULE_CONVERTER_DONE "done\n"

struct joule_converter {
    const char *program; /* absolute path */
    int log_fd;          /* the log, open for reading */
    int dir_fd;          /* where it lies */
    const char *name;    /* of the log: "7_0_n1.log" */
    uid_t uid;           /* whose it is; the helper takes these ids */
    gid_t gid;
};

/*
 * Start the helper and wait for it, until the deadline [until_ns] (deadline.h) at
 * the longest; then it is killed.  It has an empty environment, and no signal blocked,
 * caught or ignored.  -1 with a sentence: the log is still there.  errno
 * ETIMEDOUT (killed), EPROTO (it failed), or why it could not be started.
 */
int joule_converter_run(const struct joule_converter *helper, int64_t until_ns,
                        struct joule_error *err);

#endif

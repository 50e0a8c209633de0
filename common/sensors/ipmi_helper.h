/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ipmi_helper.h - a power meter whose readings come from a process of its own,
 * joule-ipmi-reader: started, asked with a deadline, killed when it is late,
 * and started again with back-off.
 *
 * What FreeIPMI may do (block, leak, crash, sit in an ioctl that cannot be
 * interrupted) stays in that process.  Its domains are the labels of the
 * configuration; a reading of a label is the sum of its sensors, and a
 * measurement only if each of them is one.
 */
#ifndef JOULE_SENSORS_IPMI_HELPER_H
#define JOULE_SENSORS_IPMI_HELPER_H

#include "common/base/clock.h"
#include "common/sensors/ipmi_wire.h"
#include "common/sensors/meter.h"

struct joule_ipmi_helper_options {
    const struct joule_clock *clock;        /* required; kept */
    const char *program;                    /* absolute path; copied */
    const struct joule_ipmi_config *config; /* copied, wiped at destroy */
    /* JouleIPMICredentialsFile, copied, below root_fd, which is duplicated; or
     * NULL or empty.  It is opened for each connection, and read by the
     * process: here is no password then. */
    const char *credentials_file;
    int root_fd;
};

/*
 * A power meter.  The process is started by the first read, as
 * joule_helper_start says, and killed with the thread that reads.
 * NULL with errno and a sentence on failure.
 *
 * read waits at most config->answer_ns for a reading, and config->connect_ns
 * before it where it connects, each and 1 s for the process to say so; then the
 * process is killed.  After a failure the next tries are 1, 2, 4 ... 60 s apart
 * by [clock].  The first read after interrupt() ends the process, and gives it
 * a moment to close its session with the BMC.
 */
struct joule_meter *
joule_ipmi_helper_create(const struct joule_ipmi_helper_options *opt,
                         struct joule_error *err);

/* For diagnosis: ask for every sensor in watts that the BMC has, each with one
 * reading; takes config->connect_ns and 1 s at most.  The next read starts a
 * process of its own.  -1 with errno and a sentence, then ret->count is 0. */
int joule_reader_list(struct joule_meter *meter, struct joule_wire_reply *ret,
                      struct joule_error *err);

/* A power meter that has the domains only, for processes that follow
 * slurmd: read fails with ENOSYS.  NULL with ENOMEM. */
struct joule_meter *
joule_ipmi_helper_labels_create(const struct joule_ipmi_config *config);

/* What the sensors of the last connection turned out to be: those of the
 * configuration in its order, or those that were chosen for
 * JOULE_IPMI_SENSOR_DEFAULT, all of label 0.  NULL before the first connection.
 * The thread that reads, or after it has ended. */
const struct joule_wire_found *
joule_reader_found(const struct joule_meter *meter, uint32_t *ret_count);

#endif

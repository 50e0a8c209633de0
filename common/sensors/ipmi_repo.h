/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ipmi_repo.h - the sensor data records of a BMC, read over a link: one by its
 * id, or all in their order.  Nothing is kept in a file.
 *
 * Failures: -1 with a sentence and errno
 *   ENOENT     there is no record of this id
 *   EBADMSG    the BMC answers, but no record comes out of it
 *   others     of joule_ipmi_link_ask: the link is closed
 */
#ifndef JOULE_SENSORS_IPMI_REPO_H
#define JOULE_SENSORS_IPMI_REPO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/sensors/ipmi_link.h"
#include "common/sensors/sdr.h"

#define JOULE_IPMI_RECORD_FIRST 0x0000
#define JOULE_IPMI_RECORD_END   0xFFFF

/* Reading state of one connection; zeroed at its start. */
struct joule_ipmi_repo {
    struct joule_ipmi_link *link;
    uint16_t reservation;
    bool reserved;
    uint8_t chunk; /* bytes asked for at a time; 0: the whole record */
};

struct joule_ipmi_record {
    uint16_t next; /* id of the next one, or JOULE_IPMI_RECORD_END */
    size_t size;
    uint8_t bytes[JOULE_SDR_SIZE_MAX];
};

/* Whether the repository was changed: count and times of its last change. */
struct joule_ipmi_repo_info {
    uint16_t count;
    uint32_t added, erased;
};

int joule_ipmi_repo_info(struct joule_ipmi_repo *repo, int64_t deadline_ns,
                         struct joule_ipmi_repo_info *ret,
                         struct joule_error *err);

/*
 * Read record [id].  Of a record that is not an analog sensor's only the
 * header is sure to be there (ret->size says).  One message where the BMC
 * gives a whole record at once.
 */
int joule_ipmi_repo_read(struct joule_ipmi_repo *repo, uint16_t id,
                         int64_t deadline_ns, struct joule_ipmi_record *ret,
                         struct joule_error *err);

/* What a walk could not make sense of. */
struct joule_ipmi_skipped {
    unsigned count;   /* records */
    unsigned last_id; /* of the last of them */
};

/*
 * Call [visit] for every record in the repository's order.  A record that
 * cannot be read, or for which it returns -1 with EBADMSG, is skipped and
 * counted; other failures of [visit] mean nothing.  0 also for an empty
 * repository; EBADMSG if there is no way on, or no end.
 */
int joule_ipmi_repo_walk(struct joule_ipmi_repo *repo, int64_t deadline_ns,
                         int (*visit)(void *arg,
                                      const struct joule_ipmi_record *record),
                         void *arg, struct joule_ipmi_skipped *ret_skipped,
                         struct joule_error *err);

#endif

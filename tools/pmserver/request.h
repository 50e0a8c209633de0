/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * request.h - a request of pmlib's protocol, from the bytes that have come.
 *
 *     n = joule_pm_request_parse(buf, len, &request);
 *     if (n > 0)
 *         ... and the next one begins at buf + n
 *
 * Integers of 32 bits and doubles as the machine has them; a text is its length and
 * its bytes; nothing stands before a request that says how long it is.
 */
#ifndef JOULE_PMSERVER_REQUEST_H
#define JOULE_PMSERVER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define JOULE_PM_NAME_MAX   63 /* of a device; no longer one is known */
#define JOULE_PM_LINES_MAX  128
#define JOULE_PM_MASK_BYTES (JOULE_PM_LINES_MAX / 8)

enum joule_pm_operation {
    JOULE_PM_CREATE,
    JOULE_PM_START,
    JOULE_PM_CONTINUE,
    JOULE_PM_STOP,
    JOULE_PM_GET,
    JOULE_PM_FINALIZE,
    JOULE_PM_INFO_DEVICE,
    JOULE_PM_LIST_DEVICES,
    JOULE_PM_STATUS,
    JOULE_PM_READ_DEVICE,
};

struct joule_pm_request {
    enum joule_pm_operation operation;
    char device[JOULE_PM_NAME_MAX + 1]; /* CREATE, INFO_DEVICE, READ_DEVICE */
    int32_t frequency; /* CREATE, READ_DEVICE; 0: the highest */
    bool aggregate;    /* CREATE */
    unsigned char mask[JOULE_PM_MASK_BYTES]; /* CREATE: line i is bit i % 8 of
                                                byte i / 8 */
};

/* The longest request. */
#define JOULE_PM_REQUEST_MAX (20 + JOULE_PM_NAME_MAX + JOULE_PM_MASK_BYTES)

/* The length of the request that begins at [buf]; 0: there is more to come; -1
 * with EPROTO: it is none.  *ret is filled if the length is told. */
ssize_t joule_pm_request_parse(const void *buf, size_t len,
                               struct joule_pm_request *ret);

static inline bool joule_pm_has_line(const unsigned char *mask, unsigned line)
{
    return line < JOULE_PM_LINES_MAX && (mask[line / 8] >> line % 8 & 1);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * device.h - what the server has figures of: lines whose amounts grow, in joules,
 * or for states of CPUs in seconds x 100, so that the mean over a time is watts, or
 * percent.
 *
 *     joule_pm_devices_find(&list, root_fd, node, clock);
 *     joule_pm_device_hold(device, &err);
 *     while (joule_pm_device_read(device) >= 0)
 *         use(device->time_ns, device->amount);
 *     joule_pm_device_let_go(device);
 *     joule_pm_devices_free(&list);
 *
 * One thread at a time.
 */
#ifndef JOULE_PMSERVER_DEVICE_H
#define JOULE_PMSERVER_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "tools/pmserver/request.h"

#define JOULE_PM_STATE_CPUS  32 /* of a CSTATES or PSTATES device */
#define JOULE_PM_MISSING_MAX 4

struct joule_pm_device;

struct joule_pm_kind {
    const char *description;
    /* Required.  0, and the device may be read; or -1 with a sentence. */
    int (*open)(struct joule_pm_device *device, struct joule_error *err);
    /* Required.  Fill time_ns and amount, and rate if [ret_rate] is set.  -1 with
     * errno. */
    int (*read)(struct joule_pm_device *device, bool *ret_rate);
    /* Optional. */
    void (*close)(struct joule_pm_device *device);
    /* Required: the name of a line. */
    void (*line)(const struct joule_pm_device *device, unsigned line,
                 char buf[JOULE_PM_NAME_MAX + 1]);
};

struct joule_pm_device {
    const struct joule_pm_kind *kind;
    char name[JOULE_PM_NAME_MAX + 1];
    unsigned lines;
    int max_hz;        /* figures a second; 1 if they are fewer */
    int64_t period_ns; /* how often it should be read */

    /* As it was read last. */
    bool known;      /* there are figures */
    bool fails;      /* the last reading failed */
    int64_t time_ns; /* of the figures (joule_clock_mono_ns) */
    double amount[JOULE_PM_LINES_MAX];
    double rate[JOULE_PM_LINES_MAX]; /* a second, lately */

    unsigned users;
    int64_t due_ns; /* for the server: when it is read next */

    int root_fd;
    const struct joule_clock *clock;
    const char *node;
    unsigned first; /* CPU */
    void *reader;   /* of the kind, while there are users */
};

/* A device that is not there. */
struct joule_pm_missing {
    const char *name;
    struct joule_error why;
};

struct joule_pm_devices {
    struct joule_pm_device *device;
    size_t count, room;
    struct joule_pm_missing missing[JOULE_PM_MISSING_MAX];
    size_t missing_count;
};

/* Look for all there are below root_fd; [node] is its NodeName, or NULL. */
void joule_pm_devices_find(struct joule_pm_devices *list, int root_fd,
                           const char *node, const struct joule_clock *clock);
void joule_pm_devices_free(struct joule_pm_devices *list);

/* NULL: there is none of that name. */
struct joule_pm_device *joule_pm_devices_get(struct joule_pm_devices *list,
                                             const char *name);

/* From now on the device is read, until as many calls of let_go.  -1 with errno and a
 * sentence. */
int joule_pm_device_hold(struct joule_pm_device *device,
                         struct joule_error *err);
void joule_pm_device_let_go(struct joule_pm_device *device);

/* Read it.  1: there are new figures; 0: the same as before;
 * -1 with errno: it cannot be read now, and the figures are the last ones. */
int joule_pm_device_read(struct joule_pm_device *device);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * counter.h - what a client has asked to be recorded of a device: sets of samples.
 *
 *     c = joule_pm_counter_create(device, &request);
 *     joule_pm_counter_begin(c, now_ns);           START, CONTINUE
 *     joule_pm_counter_feed(c);                    the device has new figures
 *     joule_pm_counter_end(c, now_ns);             STOP
 *     if (joule_pm_counter_is_complete(c))
 *         joule_pm_counter_sizes(c, ...), joule_pm_counter_samples(c, ...);
 *     joule_pm_counter_destroy(c);
 *
 * What is kept are the device's amounts at points of time, so a set's samples,
 * means over equal parts of its time, have all that was used in it.  Figures of a
 * device come late; a set is complete when the device has told of its end.
 *
 * A counter keeps JOULE_PM_VALUES_MAX values.  Where there are more, each second
 * point is dropped, and samples are half as many from then on.
 */
#ifndef JOULE_PMSERVER_COUNTER_H
#define JOULE_PMSERVER_COUNTER_H

#include "tools/pmserver/device.h"

#define JOULE_PM_SETS_MAX   5000
#define JOULE_PM_VALUES_MAX (1 << 18) /* 2 MiB; a time of each point is one */

struct joule_pm_counter;

/* Holds the device.  NULL with errno: EINVAL (a frequency that the device has not,
 * or lines of which it has none), ENOMEM, or of opening the device. */
struct joule_pm_counter *
joule_pm_counter_create(struct joule_pm_device *device,
                        const struct joule_pm_request *request);

/* NULL is a no-op. */
void joule_pm_counter_destroy(struct joule_pm_counter *counter);

struct joule_pm_device *
joule_pm_counter_device(const struct joule_pm_counter *counter);

/* Its lines in the order of the device; returns how many. */
unsigned joule_pm_counter_lines(const struct joule_pm_counter *counter,
                                unsigned ret_line[JOULE_PM_LINES_MAX]);

/* Forget all sets. */
void joule_pm_counter_clear(struct joule_pm_counter *counter);

/* Begin a set; the device is known.  -1 with EINVAL (one is open), ENOSPC or
 * ENOMEM. */
int joule_pm_counter_begin(struct joule_pm_counter *counter, int64_t now_ns);

/* End it.  -1 with EINVAL: none is open. */
int joule_pm_counter_end(struct joule_pm_counter *counter, int64_t now_ns);

size_t joule_pm_counter_sets(const struct joule_pm_counter *counter);

/* The device has been read. */
void joule_pm_counter_feed(struct joule_pm_counter *counter);

bool joule_pm_counter_is_open(const struct joule_pm_counter *counter);
bool joule_pm_counter_is_complete(const struct joule_pm_counter *counter);

/* Where each set begins, in samples, and the end of the last one: *ret_index[0]
 * is 0.  Returns how many sets there are. */
size_t joule_pm_counter_sizes(const struct joule_pm_counter *counter,
                              int32_t ret_index[JOULE_PM_SETS_MAX + 1]);

/* The samples of the [line]-th of the lines, or of their sum if it is an
 * aggregate: as many as joule_pm_counter_sizes has said. */
void joule_pm_counter_samples(const struct joule_pm_counter *counter,
                              unsigned line, double *ret);

bool joule_pm_counter_is_aggregate(const struct joule_pm_counter *counter);

#endif

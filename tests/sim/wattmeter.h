/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wattmeter.h - the exact integral as a log: the truth that every accuracy
 * figure is measured against.
 *
 * CSV, "mono_ns,wall_ns,node_uj,package0_uj,...": cumulative microjoules
 * since the simulation began, at CLOCK_BOOTTIME mono_ns.  A package's figure
 * includes its DRAM; the packages add up to the node (with jobs: but for less
 * than a uJ each).
 */
#ifndef SIM_WATTMETER_H
#define SIM_WATTMETER_H

#include <stdint.h>

#include "common/base/error.h"
#include "tests/sim/registers.h"

struct sim_wattmeter;

/* Truncates [path] and writes the header.  NULL with errno and a sentence. */
struct sim_wattmeter *sim_wattmeter_create(const char *path, unsigned packages,
                                           struct joule_error *err);

/* Flushes and closes.  Returns 0, or -1 with errno if any line was lost.
 * NULL is a no-op. */
int sim_wattmeter_destroy(struct sim_wattmeter *meter);

/* Append a line; it reaches the file within 100 ms if lines keep coming. */
void sim_wattmeter_line(struct sim_wattmeter *meter, int64_t mono_ns,
                        int64_t wall_ns, const struct sim_energy *e);

/* 0, or -1 with errno. */
int sim_wattmeter_sync(struct sim_wattmeter *meter);

/*
 * The node's microjoules between two times of a log, each by linear
 * interpolation between its neighbours.  -1 with errno ERANGE (a time is
 * outside of the log), EINVAL (not such a log, or to before from) or that of
 * the open, and a sentence.
 */
int sim_wattmeter_integrate(const char *path, int64_t from_ns, int64_t to_ns,
                            int64_t *ret_uj, struct joule_error *err);

#endif

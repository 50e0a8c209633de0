/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpuinfo.h - which CPU this is, from the text of /proc/cpuinfo.
 *
 * Only the first processor's block is looked at: RAPL needs one kind of CPU
 * per machine, and the whole file is megabytes long and slow to make on large
 * machines.  Where a CPU sits (package, die, core) is not taken from here:
 * some guests and all non-x86 machines lack "physical id".  See topology.h.
 *
 * Pure functions of their arguments; safe from any thread.
 */
#ifndef JOULE_SENSORS_CPUINFO_H
#define JOULE_SENSORS_CPUINFO_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

struct joule_cpuinfo {
    char vendor[16]; /* "vendor_id": "GenuineIntel"; empty if not an x86 */
    char name[64];   /* "model name", may be empty, cut if it is longer */
    unsigned family; /* "cpu family", 0..4095; 0 if vendor is empty */
    unsigned model;  /* "model", 0..4095; 0 if vendor is empty */
    bool hypervisor; /* the flag a hypervisor sets (CPUID 1, ECX bit 31) */
};

/*
 * Parse text[len], which need not end in NUL nor hold the whole file, of any
 * architecture.  0, or -1 with EINVAL and a sentence, *ret unchanged: it is not
 * the text of /proc/cpuinfo, or the block of an x86 CPU (12 letters of
 * vendor_id, as CPUID gives them) lacks family or model or has nonsense there.
 */
int joule_cpuinfo_parse(const char *text, size_t len, struct joule_cpuinfo *ret,
                        struct joule_error *err);

/* The same for "proc/cpuinfo" below [root_fd]; also errno of open or read
 * (ENOENT: /proc is not mounted). */
int joule_cpuinfo_read(int root_fd, struct joule_cpuinfo *ret,
                       struct joule_error *err);

#endif

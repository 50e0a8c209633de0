/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * topology.h - packages, dies and cores of the online CPUs, from sysfs.
 *
 * Source: Documentation/ABI/stable/sysfs-devices-system-cpu and
 * Documentation/admin-guide/cputopology.rst.  CPU numbers may have holes, an
 * offline CPU has no topology directory, die_id is absent before Linux 5.3
 * and on some architectures, and an id may be -1 (unknown) in guests.
 *
 * A topology is a snapshot: CPUs may come and go afterwards
 * (joule_topology_refresh).
 */
#ifndef JOULE_SENSORS_TOPOLOGY_H
#define JOULE_SENSORS_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct joule_topology_cpu {
    uint32_t cpu;     /* logical number, 0..JOULE_CPU_MAX */
    uint16_t package; /* physical_package_id; 0 if unknown */
    uint16_t die;     /* die_id; 0 if unknown */
    uint32_t core;    /* core_id within the die; if unknown one that no other
                         CPU has */
};

struct joule_topology {
    struct joule_topology_cpu *cpus; /* online CPUs, ascending */
    size_t cpu_count;                /* >= 1 */
    unsigned packages;
    unsigned dies; /* in all packages together */
};

/* The extent over which a counter counts. */
enum joule_topology_scope {
    JOULE_TOPOLOGY_PACKAGE,
    JOULE_TOPOLOGY_DIE,
    JOULE_TOPOLOGY_CORE,
};

/*
 * Read "sys/devices/system/cpu" below [root_fd].  The CPUs are those of
 * "online"; where that file is missing, those of "present" or "possible"
 * whose "cpuN/online" does not say 0.
 *
 * Returns 0 and fills *ret, to be given to joule_topology_free; or -1 with a
 * sentence, *ret unchanged, and errno
 *   ENOENT  none of the three lists is there (sysfs not mounted)
 *   EINVAL  a file makes no sense, or no CPU has a topology
 *   ENOMEM, or the errno of open or read
 */
int joule_topology_read(int root_fd, struct joule_topology *ret,
                        struct joule_error *err);

/*
 * Bring *t, which joule_topology_read has filled, up to date.  Only the list of
 * online CPUs is read as long as that is the same.  As joule_topology_read.
 */
int joule_topology_refresh(int root_fd, struct joule_topology *t,
                           struct joule_error *err);

/* Frees what *t points to and clears it; a cleared one is a no-op. */
void joule_topology_free(struct joule_topology *t);

/*
 * The lowest CPU of each package, die or core, ordered by package, die and
 * core: an array of *ret_count entries (at least one) that the caller frees, or
 * NULL with ENOMEM.
 */
struct joule_topology_cpu *
joule_topology_first_cpus(const struct joule_topology *t,
                          enum joule_topology_scope scope, size_t *ret_count);

/* Whether both CPUs are in the same package, die or core. */
bool joule_topology_is_same(const struct joule_topology_cpu *a,
                            const struct joule_topology_cpu *b,
                            enum joule_topology_scope scope);

/*
 * Set the bitmap ret_cpus[words] to the CPUs of [cores] (ascending), numbered as
 * Slurm does: package after package, core after core, each in the order of its
 * lowest CPU (hwloc's logical order).  Returns how many CPUs these are; or -1
 * with ERANGE and an empty bitmap if a core, or one of its CPUs, is beyond the
 * topology or the bitmap (Slurm was told of more than the machine has).
 */
int joule_topology_core_cpus(const struct joule_topology *t,
                             const unsigned *cores, size_t count,
                             uint64_t *ret_cpus, size_t words);

#endif

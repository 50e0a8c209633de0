/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * busy.h - the CPU time that was used on each CPU of the node, whoever used
 * it; and lists of CPU times as the kernel writes them.
 *
 * From the root of the v1 hierarchy of cpuacct where it can be seen (in
 * nanoseconds, by the same account as that of groups), else from /proc/stat
 * (ticks of 10 ms: user, nice, system, irq and softirq).
 */
#ifndef JOULE_CGROUP_BUSY_H
#define JOULE_CGROUP_BUSY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct joule_busy;

/* The file is opened here, below root_fd, and kept open.  NULL with errno and
 * a sentence. */
struct joule_busy *joule_busy_create(int root_fd, size_t cpus,
                                     struct joule_error *err);
void joule_busy_destroy(struct joule_busy *b); /* NULL is a no-op */

/* cpu_ns[cpus]; a CPU that is offline stays where it was.  -1 with errno of
 * reading, or EBADMSG. */
int joule_busy_read(struct joule_busy *b, uint64_t *cpu_ns);

/*
 * Read fd from its beginning into buf[size], ended with NUL; what does not fit
 * is left out.  Returns the length, or -1 with errno.
 */
long joule_busy_text(int fd, char *buf, size_t size);

/* The same, but no further than to the end of the first line, and perhaps what
 * came with it: it spares the call that finds nothing more. */
long joule_busy_line(int fd, char *buf, size_t size);

/* Numbers between blanks, as in cpuacct.usage_percpu, one for each CPU; those
 * that are not there are left alone.  -1 with EBADMSG. */
int joule_busy_parse(char *text, uint64_t *cpu_ns, size_t cpus);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cgpeer.h - the CPUs of a process's cpuset as libcgroup has them.
 */
#ifndef JOULE_PEER_CGPEER_H
#define JOULE_PEER_CGPEER_H

#include <sys/types.h>

#include "common/base/cpus.h"

/*
 * What a program that has not asked before does: libcgroup looks for the
 * hierarchies, for the group of [pid] (in v2 it is told) and for its values;
 * where a group has none (v2), at those above it.  Returns NULL, or what
 * libcgroup says.
 */
const char *cgpeer_cpuset(pid_t pid, struct joule_cpus *ret_cpus);

#endif

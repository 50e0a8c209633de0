/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sandbox.h - what a process gives up before it reads a file that may be
 * hostile.
 *
 * libhdf5 1.10 crashes on damaged files, and may do worse on ones that were
 * made for it.  A process in here can read the descriptors it has, write to
 * those it has, use a bounded amount of memory and end.  It can open no file,
 * start no program and reach no other process.
 */
#ifndef JOULE_PROFILE_SANDBOX_H
#define JOULE_PROFILE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/base/error.h"

/*
 * In a child after fork: keep the [count] descriptors [keep], die with
 * [parent], no core file, no new privileges, bounded memory, and of system
 * calls only those that reading takes (seccomp(2), where the kernel has it).
 * [writes_files]: also pwrite(2) and ftruncate(2), for those of [keep] that are
 * open for writing. Standard error is kept where no files are written.  Built
 * with sanitizers, which need more, it is always kept, and memory and calls are
 * not bounded. -1 with errno and a sentence.
 */
int joule_sandbox_enter(pid_t parent, const int *keep, size_t count,
                        bool writes_files, size_t data_bytes,
                        struct joule_error *err);

/* The process is killed after [seconds] of CPU time unless this is called
 * again; 0: no more. */
void joule_sandbox_watch(unsigned seconds);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * process.h - which process a number means.
 *
 * Process numbers are used again; the number and the time at which the process
 * started mean one process of this boot.
 */
#ifndef JOULE_BASE_PROCESS_H
#define JOULE_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * When process [pid] started, in the kernel's ticks since boot, read from
 * proc/PID/stat below root_fd (field 22, proc(5)).  -1 with ESRCH if there is
 * no such process or it has ended (a zombie too), EBADMSG if the file is not
 * what the kernel writes, or what reading gave.
 */
int joule_process_start(int root_fd, pid_t pid, uint64_t *ret_ticks);

/* One number for both, never 0 for a process; and its pid. */
uint64_t joule_process_number(pid_t pid, uint64_t start_ticks);
pid_t joule_process_pid(uint64_t number);

/* Whether the process of this number has ended.  false where that is not known.
 */
bool joule_process_is_dead(int root_fd, uint64_t number);

/* A number for the process namespace that this process lives in: process
 * numbers of another one say nothing here.  0: the kernel does not tell. */
uint64_t joule_process_namespace(int root_fd);

#endif

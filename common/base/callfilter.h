/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * callfilter.h - the system calls that a process may still make (seccomp(2)).
 */
#ifndef JOULE_BASE_CALLFILTER_H
#define JOULE_BASE_CALLFILTER_H

#include <stddef.h>
#include <stdint.h>

/* More than these no list has. */
#define JOULE_CALLFILTER_MAX 128

/* Sanitizers need calls of their own: a process that is built with one goes
 * without a filter. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define JOULE_HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define JOULE_HAS_SANITIZER 1
#endif
#endif
#ifndef JOULE_HAS_SANITIZER
#define JOULE_HAS_SANITIZER 0
#endif

/*
 * From now on this process may make the [count] calls (SYS_...) and no other;
 * [otherwise] is what happens to another one: SECCOMP_RET_ERRNO | EPERM, or
 * SECCOMP_RET_KILL_PROCESS (SIGSYS).  A call of another architecture kills the
 * process.  PR_SET_NO_NEW_PRIVS must be set.  Cannot be undone.
 * 0, also where the kernel or this build cannot; or -1 with errno.
 */
int joule_callfilter_enter(const int *calls, size_t count, uint32_t otherwise);

#endif

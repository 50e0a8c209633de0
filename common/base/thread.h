/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * thread.h - threads in a process that is not ours: no signal is handled in
 * them, and their stacks are no larger than they need.
 */
#ifndef JOULE_BASE_THREAD_H
#define JOULE_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* 0, or what pthread_create gave. */
int joule_thread_start(pthread_t *ret_thread, size_t stack,
                       void *(*run)(void *arg), void *arg);

#endif

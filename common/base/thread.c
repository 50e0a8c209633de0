/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/thread.h"

#include <signal.h>

int joule_thread_start(pthread_t *ret_thread, size_t stack,
                       void *(*run)(void *arg), void *arg)
{
    pthread_attr_t attr;
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, stack);
    /* The new thread has the mask of this one. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(ret_thread, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}

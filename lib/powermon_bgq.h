/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* powermon_bgq.h - moneq.h, and what else programs have from MonEQ's own header of
 * this name. */
#ifndef JOULE_POWERMON_BGQ_H
#define JOULE_POWERMON_BGQ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#if defined(__has_include)
#if __has_include(<mpi.h>)
#include <mpi.h>
#endif
#endif

#include <moneq.h>

#define MAX_SAMPLES 16384
#define MAX_TAGS    1000

/* The older name. */
#define MonEQ_DisableCollection MonEQ_DisableAutoCollection

/* Ticks of 1.6 GHz, as that machine's register has them. */
static inline uint64_t GetTimeBase(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1600000000) +
           (uint64_t)t.tv_nsec * 8 / 5;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timers.h - the four timers of Slurm's profiles: libslurmfull's array
 * acct_gather_profile_timer, looked up at run time.
 *
 * Each timer has a thread of slurmstepd that takes a sample whenever its timer
 * is signalled.  When the step ends, Slurm tells these threads so by the same
 * signal, twice, and then waits for them without a limit.  A thread that is
 * still taking its sample, or has not yet begun to wait for the next, misses a
 * signal.  One that misses both never ends: slurmstepd waits for ever, the job
 * stays in COMPLETING, and slurmd drains the node ("Kill task failed").  This is
 * an error of Slurm (22.05 to 26.05), with any profile plugin; on a slow machine
 * it befell one step of 345.  So a profile of ours repeats the signal until the
 * threads have ended (joule_timers_wake).
 */
#ifndef JOULE_SLURM_TIMERS_H
#define JOULE_SLURM_TIMERS_H

#include "common/base/ticker.h"

struct joule_timers;

/*
 * NULL where libslurmfull has none, or not of this size.  It is the loader that
 * is asked: not from a thread that may run while slurmstepd forks.
 */
struct joule_timers *joule_timers_find(void);

/* That of the energy series in seconds, 0: none.  NULL has none. */
int joule_timers_energy_s(const struct joule_timers *timers);

/* It is not signalled any more, but for the end: what its thread would read
 * is read otherwise.  NULL is a no-op. */
void joule_timers_stop_energy(struct joule_timers *timers);

/*
 * The step has ended: signal all timers in 10 ms, and again each 100 ms until the
 * ticker is destroyed.  Never waits for a thread of Slurm's.  NULL with errno and
 * a sentence.
 */
struct joule_ticker *joule_timers_wake(struct joule_timers *timers,
                                       struct joule_error *err);

#endif

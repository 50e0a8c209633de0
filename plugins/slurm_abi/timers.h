/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * timers.h - the four timers of Slurm's profiles: libslurmfull's array
 * acct_gather_profile_timer, looked up at run time.
 *
 * Each has a thread of slurmstepd that takes a sample whenever its timer is
 * signalled.  The threads are told of the end in the same way, by a signal that
 * is given twice.  One that is between its sample and its wait both times does
 * not hear it, and slurmstepd waits for it for ever.
 */
#ifndef JOULE_SLURM_TIMERS_H
#define JOULE_SLURM_TIMERS_H

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
 * Signals all of them: their threads look whether it is the end (which it must
 * be; else they take a sample more).  Never waits, from any thread.  NULL is a
 * no-op.
 */
void joule_timers_wake(struct joule_timers *timers);

#endif

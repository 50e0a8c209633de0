/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * joule.h - named regions of a program, whose energy `joule regions JOB` tells
 * after the run, and the energy of the program's step while it runs.  Part of
 * slurm-joule; link with -ljoule (pkg-config joule).
 *
 *     joule_region_begin("solve");
 *     ...
 *     joule_region_end("solve");
 *
 * Regions belong to the thread that began them and may lie within each other or
 * overlap.  A region that its thread has not ended ends with the thread, or with
 * the process; the report marks it.
 *
 * The functions record where a job step runs that is profiled (srun
 * --profile=energy).  Everywhere else (outside of Slurm, without the plugin, in a
 * container without /run/slurm-joule) they do nothing, and joule_status says why.
 * They never end or block a program, keep errno, and may be called by any thread
 * at any time, before MPI_Init and after fork, too.
 *
 * Cost: about 50 ns a call, and 1 MiB of shared memory a process, which counts as
 * the step's.  The first call of a process takes about 0.1 ms.
 */
#ifndef JOULE_H
#define JOULE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Versions of this interface only add to it. */
#define JOULE_VERSION 1

/*
 * The calling thread enters, or leaves, the region [name]: up to 255 bytes of any
 * content, of which more are cut off.  The text is copied.  A process may have
 * 1,023 different names; more are recorded as "(other names)".
 *
 * Of several open regions of one name the innermost is ended; an end of NULL ends
 * the innermost of all, and a begin of NULL is ignored.  An end without a
 * begin, and regions more than 32 deep, are counted and otherwise ignored.
 */
void joule_region_begin(const char *name);
void joule_region_end(const char *name);

/* A moment with a name, for traces. */
void joule_mark(const char *name);

/* "recording", or in one sentence why nothing is recorded; lives as long as the
 * process.  Begins recording, as the functions above do. */
const char *joule_status(void);

/* What the calling process's step has used on this node, as slurmd last told its
 * user: once in JouleUserPeriod (1 s, unless the administrator allows more). */
struct joule_energy {
    int64_t time_ns;   /* CLOCK_BOOTTIME of the figures */
    uint64_t step_uj;  /* of the step since it began */
    uint64_t job_uj;   /* of its job on this node */
    uint32_t power_mw; /* of the step, since the figures before; 0: not known */
    uint32_t period_ms; /* figures are no newer than that */
    /* Of step_uj and power_mw, that of CPUs (packages) and of memory (DRAM), where
     * the node measures them apart; else JOULE_NOT_KNOWN, and 0.  The rest, if
     * any, is that of fans, boards, disks and losses. */
    uint64_t cpu_uj, memory_uj;
    uint32_t cpu_mw, memory_mw;
};

#define JOULE_NOT_KNOWN UINT64_MAX

/*
 * 0, or -1 with errno, and *ret as it was:
 *   ENODATA  this is no step of a Slurm job
 *   ENOENT   nothing is known of the step (yet), or slurm-joule is not there
 *   ESTALE   figures of another boot, or of another version of slurm-joule
 *   EAGAIN   the figures change all the time
 *   or of open(2).
 * Works without a profile; takes some 10 us.  Any thread.
 */
int joule_energy(struct joule_energy *ret);

#ifdef __cplusplus
}
#endif

#endif

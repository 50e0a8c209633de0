/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * joule.h - named regions of a program, whose energy `joule regions JOB` tells
 * after the run.  Part of slurm-joule; link with -ljoule (pkg-config joule).
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

#ifdef __cplusplus
extern "C" {
#endif

/* Versions of this interface only add to it. */
#define JOULE_VERSION 1

/*
 * The calling thread enters, or leaves, the region [name]: up to 255 bytes of any
 * content, of which more are cut off.  The text is copied.  A process may have
 * 1,023 different names; more are recorded as "(other names)".  NULL is ignored.
 *
 * Of several open regions of one name the innermost is ended.  An end without a
 * begin, and regions more than 32 deep, are counted and otherwise ignored.
 */
void joule_region_begin(const char *name);
void joule_region_end(const char *name);

/* A moment with a name, for traces. */
void joule_mark(const char *name);

/* "recording", or in one sentence why nothing is recorded; lives as long as the
 * process.  Begins recording, as the functions above do. */
const char *joule_status(void);

#ifdef __cplusplus
}
#endif

#endif

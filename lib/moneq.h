/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * moneq.h - the interface of MonEQ, the power monitor of Blue Gene/Q, on any node:
 * its power tags are regions of joule.h.  Part of slurm-joule; link with -ljoule.
 * Programs that were written for it include powermon_bgq.h (pkg-config moneq).
 *
 *     MPI_Init(...);
 *     MonEQ_Initialize();
 *     MonEQ_StartPowerTag("solve");
 *     ...
 *     MonEQ_EndPowerTag("solve");
 *     MonEQ_Finalize();
 *     MPI_Finalize();
 *
 * On each node one process of the step is the agent, that of local rank 0.  There the
 * functions do what they say; elsewhere those that tell power return -1, and those of
 * tags ENOTAGENTONRANK, which is no fault: the tag is a region of that process, too.
 *
 * Samples are the rows of the step's energy profile (srun --profile=energy): no timer
 * runs in the program, and no function sleeps or writes a file.  After the run,
 * joule regions JOB --format=moneq writes the files that MonEQ wrote, and --reduce
 * and --plot what its tools made of them.
 *
 * Power is in watts.  A function may be called by any thread, but Initialize and
 * Finalize by one.
 */
#ifndef JOULE_MONEQ_H
#define JOULE_MONEQ_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MonEQ_SUCCESS   0
#define ENOTAGENTONRANK (-1) /* this process is not its node's agent */
#define EMKPWRTAGSP     (-2) /* the name of a tag has a space */
#define EMKPWRTAG       (-3) /* no name, or too many different ones */
#define EFINDPWRTAGNM   (-4) /* no tag of that name is open */
#define ESIGACTION      (-5) /* these three are never returned */
#define ESETTIMER       (-6)
#define EOPENOUTPUT     (-7)
#define EEMONERR        (-8) /* some process records nothing */
#define EFSTCOLLSHORT   (-9) /* a first delay of less than 3 s */

typedef struct MonEQ_ERROR {
    int err_num;
    char *error_message;
} MonEQ_ERROR;

/* The caller frees it, and the message stays his; NULL without memory. */
MonEQ_ERROR *new_moneq_error(int number, char *message);
char *MonEQ_GetMessageForError(MonEQ_ERROR error);

/* Of this thread; never NULL. */
char *MonEQ_GetLastErrorMessage(void);

/*
 * Begin and end.  Where MPI is initialised, all processes of MPI_COMM_WORLD call
 * them.  Initialize: 0, or in all of them EEMONERR if one of them records nothing, and
 * the last message says why; the program may go on.  Finalize: 0.
 */
int MonEQ_Initialize(void);
int MonEQ_Finalize(void);

/* Before Initialize: the step needs no profile, only power is asked for. */
void MonEQ_DisableAutoCollection(void);

/* 1 or 0; 0 before Initialize. */
int MonEQ_MonitorAgentOnRank(void);

/*
 * The step's power on this node, as fresh as its administrator allows (joule_energy);
 * -1 where it is not known, or not on this rank.  Of the 7 domains the first (chip
 * core) is that of CPUs and the second (DRAM) that of memory, where the node
 * measures them apart; the others, voltages and currents are NAN.
 */
double MonEQ_GetPower(void);
double MonEQ_GetVoltageAndCurrent(double *volts, double *amperes); /* [14] */
double MonEQ_GetDomainPower(double *watts);                        /* [7] */
double MonEQ_GetDomainPowerByDCA(double *first, double *second);   /* [7] */

int MonEQ_GetNumDomains(void);        /* 7 */
int MonEQ_GetNumDCA(void);            /* 2 */
int MonEQ_GetVTMRatio(uint32_t *ret); /* [7], all 1; returns 0 */
int MonEQ_GetDomainIDs(int *ret);     /* [7], 0 to 6; returns 0 */
void MonEQ_PrintVTMRatio(void);
void MonEQ_PrintDomainInfo(void);

/* Taken, and without effect: the profile has its own period.  0; EFSTCOLLSHORT. */
int MonEQ_SetFirstCollectionDelay(int seconds, int microseconds);
int MonEQ_SetCollectionInterval(int seconds, int microseconds);

/* Tags may lie within each other, overlap and come again; names are copied.  Of
 * several that are open under one name the innermost is ended. */
int MonEQ_StartPowerTag(char *name);
int MonEQ_EndPowerTag(char *name);

/* The names of this process, each on a line. */
void MonEQ_PrintPowerTagsList(void);

#ifdef __cplusplus
}
#endif

#endif

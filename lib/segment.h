/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * segment.h - the shared memory in which a process of a step records its regions
 * (joule.h), and slurmstepd reads them.
 *
 * The process makes a file in memory (memfd_create(2)) of JOULE_SEGMENT_BYTES,
 * seals its size, sends a joule_hello with the file's descriptor to the datagram
 * socket of its step, and closes both: there is no answer.  slurmstepd knows the
 * process by the message's credentials, reads the file by pread(2) and never maps
 * it: everything in it is the user's, and may be anything.  What is missing or
 * wrong in it is missing or wrong in the user's own report.
 *
 * All in the byte order of the node.  Fields marked "shared" are changed while
 * the other side reads them.  Times are of CLOCK_MONOTONIC, in ns.
 *
 * Regions of one thread and one name that lie within fold_ns are one record: the
 * number of records is bounded by time and not by the number of calls.
 */
#ifndef JOULE_SEGMENT_H
#define JOULE_SEGMENT_H

#include <stdint.h>

/* The socket: RUNDIR/NODE/regions/JOB.STEP, with the texts of the environment
 * (SLURMD_NODENAME, SLURM_JOB_ID, SLURM_STEP_ID or "batch"). */
#define JOULE_REGIONS_DIR "regions"

#define JOULE_SEGMENT_MAGIC   UINT64_C(0x4745524c554f4a00) /* "\0JOULREG" */
#define JOULE_SEGMENT_VERSION 1
#define JOULE_SEGMENT_BYTES   1048576

#define JOULE_SEGMENT_NAMES   1024 /* the first is JOULE_OTHER_NAMES */
#define JOULE_SEGMENT_TEXT    110592
#define JOULE_SEGMENT_THREADS 256
#define JOULE_SEGMENT_RECORDS 12288

#define JOULE_REGION_NAME_MAX 255
#define JOULE_REGION_DEPTH    32
#define JOULE_REGION_CELLS    16

/* In place of names for which there is no room. */
#define JOULE_OTHER_NAMES "(other names)"

/* Where slurmstepd has not said another. */
#define JOULE_REGION_FOLD_NS 10000000

/* A record's thread, where all JOULE_SEGMENT_THREADS are taken. */
#define JOULE_REGION_NO_THREAD 65535

/* A record's rank of a process that says none. */
#define JOULE_REGION_NO_RANK UINT32_MAX

struct joule_hello {
    uint64_t magic;
    uint32_t version;
    uint32_t bytes; /* of the file */
};

enum joule_region_kind {
    JOULE_REGION_ENDED,
    JOULE_REGION_UNENDED, /* it ended with its thread or its process */
    JOULE_REGION_MARK,    /* begin is end */
};

struct joule_region_record {
    uint64_t seq;  /* shared: its index + 1, written last */
    uint32_t name; /* index in names */
    uint16_t thread;
    uint8_t depth; /* regions that were open around it */
    uint8_t kind;
    uint64_t count;            /* regions */
    uint64_t begin_ns, end_ns; /* of the first, and of the last */
    uint64_t time_ns;          /* within them, summed up */
};

struct joule_region_name {
    uint32_t at, length; /* in text, where a NUL follows */
    uint64_t count;      /* shared: of all records of this name so far */
    uint64_t time_ns;
    uint64_t unused;
};

/* A region that has begun. */
struct joule_region_open {
    uint32_t name;
    uint32_t unused;
    uint64_t begin_ns;
};

/* A record that may still grow. */
struct joule_region_cell {
    uint32_t name;
    uint32_t depth;
    uint64_t count; /* 0: there is none */
    uint64_t begin_ns, end_ns, time_ns;
};

/* What a thread is in.  Only the thread writes it; shared. */
struct joule_region_thread {
    uint32_t is_used; /* by a thread */
    uint32_t depth;   /* may be more than JOULE_REGION_DEPTH */
    uint32_t number;  /* of the thread, for records */
    uint32_t unused[13];
    struct joule_region_open open[JOULE_REGION_DEPTH];
    struct joule_region_cell cell[JOULE_REGION_CELLS];
};

struct joule_segment_head {
    uint64_t magic;
    uint32_t version;
    uint32_t rank;
    uint64_t fold_ns; /* shared: slurmstepd writes it, once */
    /* shared: what is not in any record */
    uint64_t too_deep;
    uint64_t without_begin;
    uint64_t without_name; /* recorded as JOULE_OTHER_NAMES */
    uint32_t name_count;   /* shared */
    uint32_t text_used;
    uint32_t thread_count; /* shared: threads that were used, ever */
    uint32_t unused;
    uint64_t record_count; /* shared: so far; the last RECORDS are there */
    uint64_t unused2[7];
};

struct joule_segment {
    union {
        struct joule_segment_head head;
        unsigned char page[4096];
    };
    struct joule_region_name name[JOULE_SEGMENT_NAMES];
    char text[JOULE_SEGMENT_TEXT];
    struct joule_region_thread thread[JOULE_SEGMENT_THREADS];
    struct joule_region_record record[JOULE_SEGMENT_RECORDS];
};

_Static_assert(sizeof(struct joule_region_thread) == 1216 &&
                   sizeof(struct joule_region_record) == 48 &&
                   sizeof(struct joule_region_name) == 32 &&
                   sizeof(struct joule_segment) == JOULE_SEGMENT_BYTES,
               "the layout of the segment");

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recorded_log.h - the logs that the processes of an MPI program have left
 * (lib/waits/log.h).
 *
 *     if (joule_recorded_open(directory, &logs, &err) < 0)
 *         ...
 *     for each of logs.log:
 *         joule_recorded_read(&logs.log[i], thread, take, arg, &err);
 *     joule_recorded_close(&logs);
 *
 * What the files hold is not trusted: a log whose head makes no sense is left out, a
 * block that is cut or makes none ends its file.
 */
#ifndef JOULE_WAITS_RECORDED_LOG_H
#define JOULE_WAITS_RECORDED_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"
#include "lib/waits/log.h"

/* Records of a thread, at a place of the file. */
struct joule_recorded_piece {
    uint32_t thread, first, count;
    uint64_t number;
    off_t at;
};

struct joule_recorded_log {
    char *path;
    struct joule_waits_head head;
    struct joule_waits_comm *comm;
    size_t comms;
    struct joule_waits_text *name; /* [i] is name i + 1; all are terminated */
    size_t names;
    struct joule_recorded_piece *piece; /* of the threads one after the other */
    size_t pieces;
    size_t comm_room, name_room, piece_room;
    uint32_t
        threads;     /* with records: their numbers are made 0 to threads - 1 */
    bool is_damaged; /* a part is left out, and the process was not killed */
    int64_t end_ns;  /* of the last record, or as the head has it */
};

struct joule_recorded_logs {
    struct joule_recorded_log *log; /* by rank */
    size_t logs, room;
    uint32_t size;     /* of MPI_COMM_WORLD */
    size_t unreadable; /* left out */
    int error;         /* errno and sentence of the first of these */
    struct joule_error first_unreadable;
};

/*
 * All logs of the directory that can be read: those of one run, each rank no more
 * than once.  -1 with errno and a sentence: ENOENT there are none; EINVAL they are not
 * of one run; or why none can be read.
 */
int joule_recorded_open(const char *directory, struct joule_recorded_logs *ret,
                        struct joule_error *err);
void joule_recorded_close(struct joule_recorded_logs *logs);

enum joule_recorded_state {
    JOULE_RECORDED_NONE,    /* the directory has no log */
    JOULE_RECORDED_DAMAGED, /* none that can be read */
    JOULE_RECORDED_OVER,
    JOULE_RECORDED_RUNS, /* one is still written: its process wrote just now */
};

enum joule_recorded_state joule_recorded_state_of(const char *directory);

/* Call [take] with the records of a thread, in their order, some at a time; it
 * returns -1, with a sentence in [err], to end this. */
int joule_recorded_read(const struct joule_recorded_log *log, uint32_t thread,
                        int (*take)(void *arg,
                                    const struct joule_waits_record *records,
                                    size_t count),
                        void *arg, struct joule_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jobtables.h - which tables a job file has: step, node, series, columns.
 *
 * Read by a worker (worker.h), checked, and kept in the order in which they are
 * written out: steps by number, then batch and the others; nodes and tasks by
 * name with numbers as numbers.
 */
#ifndef JOULE_SH5UTIL_JOBTABLES_H
#define JOULE_SH5UTIL_JOBTABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/base/error.h"
#include "common/profile/hdf5_read.h"

struct joule_plan_table {
    size_t node;   /* of the plan */
    char *series;  /* below the node: "Energy", "Tasks/0" */
    uint64_t rows; /* as the file says */
    const struct joule_rowtype *type;
};

struct joule_plan_node {
    char *step, *name; /* of the groups */
    bool has_start;
    uint64_t start_wall_ns; /* "Joule Start Wall ns" */
};

struct joule_plan {
    struct joule_plan_node *node;
    size_t nodes;
    struct joule_plan_table *table;
    size_t tables;
    struct joule_rowtype **type; /* each once */
    size_t types;
    size_t notes; /* things that could not be read */
    struct joule_error first_note;
};

/*
 * The job file [name] below [dir_fd] (or AT_FDCWD), opened for reading; [path]
 * names it in sentences, *ret_st is what it is.  A link is refused, and by root
 * a file of somebody else's: in a user's directory, the user says what stands
 * there.  -1 with a sentence: ELOOP, EPERM, EINVAL (no regular file), or as
 * open(2) says.
 */
int joule_plan_open(int dir_fd, const char *name, const char *path,
                    struct stat *ret_st, struct joule_error *err);

/*
 * Examine the job file open as [fd].  0, or -1 with a sentence: EBADMSG (no
 * job file, or nothing in it that can be read), ENOMEM, or what joule_work_run
 * says.
 */
int joule_plan_read(int fd, struct joule_plan *ret, struct joule_error *err);
void joule_plan_free(struct joule_plan *plan);

/* The path of a table in its file; the caller frees it.  NULL: ENOMEM. */
char *joule_plan_path(const struct joule_plan *plan,
                      const struct joule_plan_table *table);

/* <0, 0, >0 as strcmp: steps in the order of their output. */
int joule_step_compare(const char *a, const char *b);

/*
 * Whether the series at [path] is meant by [spec]: its name in any case, "Task"
 * or "Tasks" for all tasks, "Task_3" for one, a path; NULL for everything.
 */
bool joule_series_matches(const char *spec, const char *path);

#endif

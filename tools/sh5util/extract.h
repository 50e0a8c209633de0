/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * extract.h - write what is in a job file as text.
 *
 * Workers (pool.h) read and format, the caller's process only writes.
 */
#ifndef JOULE_SH5UTIL_EXTRACT_H
#define JOULE_SH5UTIL_EXTRACT_H

#include <stdbool.h>
#include <sys/stat.h>

#include "common/base/error.h"
#include "common/store/pool.h"
#include "tools/sh5util/jobid.h"
#include "tools/sh5util/outfile.h"

struct joule_extract_request {
    const char *input, *output;
    const struct joule_job *job;
    const char *node, *series, *item; /* NULL: all; not set */
    bool time_series, json;
    unsigned readers, verbose;
    /* joule_extract_list, of several jobs: how many it has printed; the caller
     * ends their JSON with "]".  NULL: of one. */
    size_t *listed;
};

/* Each returns the exit status and says on stderr what is to be said. */
int joule_extract(const struct joule_extract_request *request);
int joule_extract_item(const struct joule_extract_request *request);
int joule_extract_list(const struct joule_extract_request *request);

/* Rows of text from workers into a file. */
struct joule_text {
    struct joule_outfile out;
    int fd; /* of the job file */
    bool json, has_rows;
    size_t failed;
};

/*
 * The job file [name] below [dir_fd] (or AT_FDCWD), opened for reading; [path]
 * names it in sentences, *ret_st is what it is.  A link is refused, and by root
 * a file of somebody else's: in a user's directory, the user says what stands
 * there.  -1 with a sentence: ELOOP, EPERM, EINVAL (no regular file), or as
 * open(2) says.
 */
int joule_text_input(int dir_fd, const char *name, const char *path,
                     struct stat *ret_st, struct joule_error *err);

int joule_text_write(struct joule_text *text, const char *data, size_t len,
                     struct joule_error *err);

/* Rows that workers have made; see cells.h about the first comma. */
int joule_text_rows(struct joule_text *text, const char *data, size_t len,
                    struct joule_error *err);

/* What stands in front of the rows and behind them. */
int joule_text_head(struct joule_text *text, const char *job,
                    const char *const *columns, size_t count,
                    struct joule_error *err);
int joule_text_tail(struct joule_text *text, struct joule_error *err);

/* A descriptor of the job file for a worker. */
int joule_text_open(const struct joule_text *text, struct joule_error *err);

/* A task that failed: say so and count it. */
void joule_text_failed(struct joule_text *text, const char *input,
                       const char *sentence);

#endif

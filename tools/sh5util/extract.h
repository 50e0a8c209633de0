/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * extract.h - write what is in a job file as text.
 *
 * Workers (worker.h) read and format, the caller's process only writes.
 */
#ifndef JOULE_SH5UTIL_EXTRACT_H
#define JOULE_SH5UTIL_EXTRACT_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/sh5util/jobid.h"

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

#endif

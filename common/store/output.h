/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * output.h - the file of a profile: made when there is something to write, and
 * filled from an intake.
 *
 * Belongs to one thread, the one that takes out of the intake.
 */
#ifndef JOULE_STORE_OUTPUT_H
#define JOULE_STORE_OUTPUT_H

#include <stdbool.h>

#include "common/store/intake.h"
#include "common/store/place.h"

struct joule_output;

struct joule_output_options {
    struct joule_place place;
    const char *base;                  /* the file's name without ".h5" */
    struct joule_nodefile_facts facts; /* run is set here */
    size_t chunk_rows;                 /* 0: by the table's period */
    struct joule_pack pack;
};

/* Options and intake are borrowed until destroy.  Nothing is done on the disk.
 * NULL with errno ENOMEM. */
struct joule_output *joule_output_create(const struct joule_output_options *opt,
                                         struct joule_intake *intake);

/* What is open is closed. */
void joule_output_destroy(struct joule_output *output);

/* Whether there is a file, which may lack rows. */
bool joule_output_has_file(const struct joule_output *output);

/*
 * Bring to disk what has come in.  -1 with errno and a sentence: nothing is
 * taken from the intake until what was taken is on disk; memory stays bounded.
 */
int joule_output_flush(struct joule_output *output, struct joule_error *err);

/* The same for the last time, and close the file; if that fails, what is
 * missing is counted, and in the file if it can be.  -1 as above. */
int joule_output_finish(struct joule_output *output, int64_t end_ns,
                        int64_t end_wall_ns, struct joule_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace_definitions.h - the definitions of an OTF2 archive.  One thread.
 */
#ifndef JOULE_WAITS_TRACE_DEFINITIONS_H
#define JOULE_WAITS_TRACE_DEFINITIONS_H

#include <otf2/otf2.h>

#include "common/base/error.h"
#include "tools/waits/definitions.h"

/* The property of an archive that has Slurm's number of the step. */
#define JOULE_TRACE_STEP "SLURM_JOULE::STEP"

/* What has events of its own: a thread of a process. */
struct joule_trace_location {
    uint64_t ref;
    uint64_t events;  /* as the definitions have it */
    uint32_t process; /* of the definitions */
};

/* References of an archive, and what they are in the definitions. */
struct joule_trace_refs {
    struct joule_table region, comm;
    struct joule_trace_location *location; /* of CPU threads */
    size_t locations;
    uint64_t ticks_per_s, begin_ticks, length_ticks;
    uint64_t unknown; /* references to what is not there */
};

/* 0, or -1 with EBADMSG or ENOMEM and a sentence.  Both structs are the caller's to
 * free in any case; [d] has been initialised. */
int joule_trace_define(OTF2_Reader *reader, struct joule_definitions *d,
                       struct joule_trace_refs *ret, struct joule_error *err);
void joule_trace_refs_free(struct joule_trace_refs *refs);

#endif

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

/* The anchor file in a directory, by the names that EZTrace and Score-P give it, or
 * the file itself.  The caller frees it.  NULL with ENOENT or ENOMEM and a sentence. */
char *joule_trace_anchor(const char *path, struct joule_error *err);

/* NULL with EBADMSG and a sentence.  libotf2's messages are silenced. */
OTF2_Reader *joule_trace_open(const char *anchor, struct joule_error *err);

/* 0, or -1 with EBADMSG or ENOMEM and a sentence.  Both structs are the caller's to
 * free in any case; [d] has been initialised. */
int joule_trace_define(OTF2_Reader *reader, struct joule_definitions *d,
                       struct joule_trace_refs *ret, struct joule_error *err);
void joule_trace_refs_free(struct joule_trace_refs *refs);

/* Local definitions have clock offsets, and numbers of communicators of this
 * location alone; libotf2 applies both to events.  A location need not have them. */
void joule_trace_define_local(OTF2_Reader *reader, uint64_t ref);

/* A time of the archive, in ns. */
uint64_t joule_trace_ns(const struct joule_trace_refs *refs, uint64_t ticks);

#endif

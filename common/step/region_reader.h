/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * region_reader.h - the regions that one process has recorded (lib/segment.h), as
 * slurmstepd reads them.
 *
 *     reader = joule_region_reader_open(fd, &err);
 *     joule_region_reader_read(reader, &sink, from_ns, now_ns, most);  now and then
 *     joule_region_reader_end(reader, &sink, from_ns, now_ns, most, &counts);
 *     joule_region_reader_close(reader);
 *
 * The file is the user's, is read by pread(2) only, and may hold anything: a
 * region that is handed out is sound in itself, and no call takes long whatever
 * is in the file.  Times are of CLOCK_MONOTONIC, in ns.  One thread at a time.
 */
#ifndef JOULE_STEP_REGION_READER_H
#define JOULE_STEP_REGION_READER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "lib/segment.h"

/* Besides enum joule_region_kind: what was recorded of this name and had no room
 * in the ring; begin and end are not known. */
#define JOULE_REGION_LOST (JOULE_REGION_MARK + 1)

struct joule_region {
    uint32_t name; /* as the sink has numbered it */
    uint16_t thread;
    uint8_t depth;
    uint8_t kind;
    uint64_t count;            /* >= 1 */
    uint64_t begin_ns, end_ns; /* from_ns <= begin <= end <= now_ns */
    uint64_t time_ns;          /* <= end - begin, but of what is LOST */
};

struct joule_region_sink {
    /* The number of a name: up to JOULE_REGION_NAME_MAX bytes of any content. */
    uint32_t (*name)(void *arg, const char *text);
    void (*region)(void *arg, const struct joule_region *region);
    void *arg;
};

/* What is not in any region that was handed out. */
struct joule_region_counts {
    uint64_t lost;          /* records that had no room */
    uint64_t too_deep;      /* begins */
    uint64_t without_begin; /* ends */
    uint64_t without_name;  /* begins and marks, under JOULE_OTHER_NAMES */
};

struct joule_region_reader;

/* Takes [fd] if it succeeds.  NULL with a sentence and errno EINVAL (no file in
 * memory of a fixed size, or of another version) or ENOMEM. */
struct joule_region_reader *joule_region_reader_open(int fd,
                                                     struct joule_error *err);
void joule_region_reader_close(struct joule_region_reader *reader);

/* Say how long regions of one name are one record. */
void joule_region_reader_fold(struct joule_region_reader *reader, uint64_t ns);

/* JOULE_REGION_NO_RANK: none was said. */
uint32_t joule_region_reader_rank(const struct joule_region_reader *reader);

/* Hand out up to [most] of the next records; returns how many there were. */
size_t joule_region_reader_read(struct joule_region_reader *reader,
                                const struct joule_region_sink *sink,
                                uint64_t from_ns, uint64_t now_ns, size_t most);

/* After the last read: hand out up to [most] records that are left, then what its
 * threads have not recorded, regions that have not ended, and for each name what
 * was lost. */
void joule_region_reader_end(struct joule_region_reader *reader,
                             const struct joule_region_sink *sink,
                             uint64_t from_ns, uint64_t now_ns, size_t most,
                             struct joule_region_counts *ret);

#endif

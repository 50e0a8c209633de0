/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/step/region_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Records, or names, that are read at once. */
#define BATCH 256

/* Sums that cannot overflow, whatever the file says. */
#define SUM_MAX (UINT64_C(1) << 60)

struct name {
    uint32_t number;         /* the sink's */
    uint64_t count, time_ns; /* of the records that were handed out */
};

struct joule_region_reader {
    int fd;
    uint32_t rank;
    uint64_t next; /* index of the next record */
    uint64_t lost;
    struct name *names;
    uint32_t name_count, name_room;
};

/* What a call works on. */
struct pass {
    struct joule_region_reader *reader;
    const struct joule_region_sink *sink;
    uint64_t from_ns, now_ns;
};

#define AT(member) offsetof(struct joule_segment, member)

static int read_at(const struct joule_region_reader *r, void *to, size_t size,
                   size_t at)
{
    ssize_t n;

    do
        n = pread(r->fd, to, size, (off_t)at);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size ? 0 : -1;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- names ---- */

static uint32_t read_name(struct pass *pass,
                          const struct joule_region_name *name)
{
    char text[JOULE_REGION_NAME_MAX + 1] = "";
    size_t length = least(name->length, JOULE_REGION_NAME_MAX);

    if (name->at > JOULE_SEGMENT_TEXT - length ||
        read_at(pass->reader, text, length, AT(text) + name->at) < 0)
        text[0] = '\0';
    return pass->sink->name(pass->sink->arg, text);
}

/* Names up to the one with this index. */
static int read_names(struct pass *pass, uint32_t index)
{
    struct joule_region_reader *r = pass->reader;
    struct joule_region_name names[BATCH];
    struct name *more;

    if (index >= JOULE_SEGMENT_NAMES)
        return -1;
    if (index >= r->name_room) {
        uint32_t room = (index + 64) / 64 * 64;

        more = reallocarray(r->names, room, sizeof(*more));
        if (!more)
            return -1;
        r->names = more;
        r->name_room = room;
    }
    while (r->name_count <= index) {
        uint32_t count = (uint32_t)least(index + 1 - r->name_count, BATCH);

        if (read_at(r, names, count * sizeof(*names),
                    AT(name) + r->name_count * sizeof(*names)) < 0)
            return -1;
        for (uint32_t i = 0; i < count; i++)
            r->names[r->name_count++] =
                (struct name){.number = read_name(pass, &names[i])};
    }
    return 0;
}

/* ---- regions ---- */

/* Hand out what a record, of the file, says.  false: it makes no sense. */
static bool put(struct pass *pass, const struct joule_region_record *record,
                bool is_summed)
{
    struct joule_region region = {
        .thread = record->thread,
        .depth = record->depth,
        .kind = record->kind,
        .count = least(record->count, SUM_MAX),
        .begin_ns = record->begin_ns,
        .end_ns = least(record->end_ns, pass->now_ns),
    };
    struct name *name;

    if (record->kind > JOULE_REGION_MARK || record->count == 0 ||
        read_names(pass, record->name) < 0)
        return false;
    if (region.end_ns < pass->from_ns)
        region.end_ns = pass->from_ns;
    if (region.begin_ns < pass->from_ns)
        region.begin_ns = pass->from_ns;
    if (region.begin_ns > region.end_ns)
        region.begin_ns = region.end_ns;
    region.time_ns = least(record->time_ns, region.end_ns - region.begin_ns);
    name = &pass->reader->names[record->name];
    region.name = name->number;
    if (is_summed) {
        name->count = least(name->count + record->count, SUM_MAX);
        name->time_ns = least(name->time_ns + record->time_ns, SUM_MAX);
    }
    pass->sink->region(pass->sink->arg, &region);
    return true;
}

/* Records up to [end] are there, and the last RECORDS of them whole unless they
 * are being written. */
static int read_count(struct joule_region_reader *r, uint64_t *ret_end)
{
    if (read_at(r, ret_end, sizeof(*ret_end), AT(head.record_count)) < 0 ||
        *ret_end < r->next)
        return -1;
    if (*ret_end - r->next > JOULE_SEGMENT_RECORDS) {
        r->lost += *ret_end - JOULE_SEGMENT_RECORDS - r->next;
        r->next = *ret_end - JOULE_SEGMENT_RECORDS;
    }
    return 0;
}

/* A batch of those behind [next] that lie in one piece: how many are used up.
 * With [all] those that are still being written are passed over. */
static size_t read_batch(struct pass *pass, size_t most, bool all)
{
    struct joule_region_reader *r = pass->reader;
    struct joule_region_record records[BATCH];
    size_t first, count, used = 0;
    uint64_t end, next;

    if (read_count(r, &end) < 0)
        return 0;
    first = (size_t)(r->next % JOULE_SEGMENT_RECORDS);
    count = least(least(least(end - r->next, most), BATCH),
                  JOULE_SEGMENT_RECORDS - first);
    next = r->next;
    if (count == 0 || read_at(r, records, count * sizeof(*records),
                              AT(record) + first * sizeof(*records)) < 0)
        return 0;
    /* Those that were written over meanwhile. */
    if (read_count(r, &end) < 0)
        return 0;
    if (r->next - next >= count)
        return count;
    for (used = (size_t)(r->next - next); used < count; used++, r->next++) {
        bool is_whole = records[used].seq == r->next + 1;

        if (!is_whole && !all)
            break;
        if (!is_whole || !put(pass, &records[used], true))
            r->lost++;
    }
    return used;
}

size_t joule_region_reader_read(struct joule_region_reader *reader,
                                const struct joule_region_sink *sink,
                                uint64_t from_ns, uint64_t now_ns, size_t most)
{
    struct pass pass = {reader, sink, from_ns, now_ns};
    size_t used = 0, n;

    while (used < most && (n = read_batch(&pass, most - used, false)) > 0)
        used += n;
    return used;
}

/* ---- the end ---- */

static void end_thread(struct pass *pass, const struct joule_region_thread *t,
                       uint32_t number)
{
    for (int i = 0; i < JOULE_REGION_CELLS; i++) {
        const struct joule_region_cell *cell = &t->cell[i];
        const struct joule_region_record record = {
            .name = cell->name,
            .thread = (uint16_t)number,
            .depth = (uint8_t)least(cell->depth, UINT8_MAX),
            .kind = JOULE_REGION_ENDED,
            .count = cell->count,
            .begin_ns = cell->begin_ns,
            .end_ns = cell->end_ns,
            .time_ns = cell->time_ns,
        };

        put(pass, &record, false);
    }
    for (uint32_t i = 0; i < least(t->depth, JOULE_REGION_DEPTH); i++) {
        const struct joule_region_record record = {
            .name = t->open[i].name,
            .thread = (uint16_t)number,
            .depth = (uint8_t)i,
            .kind = JOULE_REGION_UNENDED,
            .count = 1,
            .begin_ns = t->open[i].begin_ns,
            .end_ns = pass->now_ns,
            .time_ns = UINT64_MAX,
        };

        put(pass, &record, false);
    }
}

/* What name [i] has in sum, and was not handed out. */
static void put_rest(struct pass *pass, uint32_t i,
                     const struct joule_region_name *entry)
{
    const struct name *name = &pass->reader->names[i];
    struct joule_region region = {
        .name = name->number,
        .thread = JOULE_REGION_NO_THREAD,
        .kind = JOULE_REGION_LOST,
        .begin_ns = pass->from_ns,
        .end_ns = pass->now_ns,
    };

    if (least(entry->count, SUM_MAX) <= name->count)
        return;
    region.count = least(entry->count, SUM_MAX) - name->count;
    if (least(entry->time_ns, SUM_MAX) > name->time_ns)
        region.time_ns = least(entry->time_ns, SUM_MAX) - name->time_ns;
    pass->sink->region(pass->sink->arg, &region);
}

static void put_lost(struct pass *pass, uint32_t count)
{
    struct joule_region_reader *r = pass->reader;
    struct joule_region_name names[BATCH];

    if (count == 0 || count > JOULE_SEGMENT_NAMES || r->lost == 0 ||
        read_names(pass, count - 1) < 0)
        return;
    for (uint32_t at = 0, n; at < count; at += n) {
        n = (uint32_t)least(count - at, BATCH);
        if (read_at(r, names, n * sizeof(*names),
                    AT(name) + at * sizeof(*names)) < 0)
            return;
        for (uint32_t i = 0; i < n; i++)
            put_rest(pass, at + i, &names[i]);
    }
}

void joule_region_reader_end(struct joule_region_reader *reader,
                             const struct joule_region_sink *sink,
                             uint64_t from_ns, uint64_t now_ns, size_t most,
                             struct joule_region_counts *ret)
{
    struct pass pass = {reader, sink, from_ns, now_ns};
    struct joule_region_thread thread;
    struct joule_segment_head head;
    uint64_t end;

    for (size_t used = 0, n; used < most; used += n)
        if ((n = read_batch(&pass, most - used, true)) == 0)
            break;
    /* What is left is lost. */
    if (read_count(reader, &end) == 0) {
        reader->lost += end - reader->next;
        reader->next = end;
    }
    memset(ret, 0, sizeof(*ret));
    if (read_at(reader, &head, sizeof(head), AT(head)) < 0)
        return;
    for (uint32_t i = 0; i < least(head.thread_count, JOULE_SEGMENT_THREADS);
         i++)
        if (read_at(reader, &thread, sizeof(thread),
                    AT(thread) + i * sizeof(thread)) == 0 &&
            thread.is_used)
            end_thread(&pass, &thread, i);
    put_lost(&pass, head.name_count);
    ret->lost = reader->lost;
    ret->too_deep = head.too_deep;
    ret->without_begin = head.without_begin;
    ret->without_name = head.without_name;
}

/* ---- open and close ---- */

/* A file in memory that can neither shrink nor grow: its pages are there, and
 * reading one waits for no other machine and no process. */
static int check_file(int fd)
{
    const int size_is_fixed = F_SEAL_SHRINK | F_SEAL_GROW;
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && (seals & size_is_fixed) == size_is_fixed &&
                   fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                   st.st_size == JOULE_SEGMENT_BYTES
               ? 0
               : -1;
}

struct joule_region_reader *joule_region_reader_open(int fd,
                                                     struct joule_error *err)
{
    struct joule_region_reader probe = {.fd = fd}, *r;
    struct joule_segment_head head;

    if (check_file(fd) < 0 || read_at(&probe, &head, sizeof(head), 0) < 0 ||
        head.magic != JOULE_SEGMENT_MAGIC ||
        head.version != JOULE_SEGMENT_VERSION) {
        joule_error_set(err, EINVAL,
                        "what a process sent is no record of regions, or of "
                        "another version of slurm-joule");
        return NULL;
    }
    r = calloc(1, sizeof(*r));
    if (!r) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    r->fd = fd;
    r->rank = head.rank;
    return r;
}

void joule_region_reader_close(struct joule_region_reader *reader)
{
    if (!reader)
        return;
    close(reader->fd);
    free(reader->names);
    free(reader);
}

void joule_region_reader_fold(struct joule_region_reader *reader, uint64_t ns)
{
    ssize_t n;

    do
        n = pwrite(reader->fd, &ns, sizeof(ns), AT(head.fold_ns));
    while (n < 0 && errno == EINTR);
}

uint32_t joule_region_reader_rank(const struct joule_region_reader *reader)
{
    return reader->rank;
}

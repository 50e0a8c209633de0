/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The input changes the memory in which a process has recorded its regions, seven
 * bytes each: where (24 bits) and what (32 bits).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/step/region_reader.h"
#include "tests/fuzz/fuzz.h"

#define FROM_NS UINT64_C(1000)
#define NOW_NS  UINT64_C(1000000)

static void make_good(struct joule_segment *s)
{
    static const char text[] = JOULE_OTHER_NAMES "\0solve\0exchange";

    s->head.magic = JOULE_SEGMENT_MAGIC;
    s->head.version = JOULE_SEGMENT_VERSION;
    s->head.name_count = 3;
    s->head.thread_count = 2;
    s->head.text_used = sizeof(text);
    memcpy(s->text, text, sizeof(text));
    s->name[0] = (struct joule_region_name){.length = 13};
    s->name[1] = (struct joule_region_name){.at = 14, .length = 5};
    s->name[2] = (struct joule_region_name){.at = 20, .length = 8};
    s->head.record_count = JOULE_SEGMENT_RECORDS + 100;
    for (uint64_t i = 100; i < s->head.record_count; i++)
        s->record[i % JOULE_SEGMENT_RECORDS] =
            (struct joule_region_record){.seq = i + 1,
                                         .name = (uint32_t)(i % 3),
                                         .count = 1 + i % 7,
                                         .begin_ns = 2000 + i,
                                         .end_ns = 3000 + i,
                                         .time_ns = 900};
    s->thread[1].is_used = 1;
    s->thread[1].depth = 2;
    s->thread[1].open[0] = (struct joule_region_open){1, 0, 2000};
    s->thread[1].open[1] = (struct joule_region_open){2, 0, 3000};
    s->thread[1].cell[3] = (struct joule_region_cell){1, 0, 5, 2000, 4000, 900};
}

static size_t regions, names;

static uint32_t take_name(void *arg, const char *text)
{
    (void)arg;
    FUZZ_MUST(memchr(text, '\0', JOULE_REGION_NAME_MAX + 1));
    return (uint32_t)names++;
}

static void take_region(void *arg, const struct joule_region *r)
{
    (void)arg;
    regions++;
    FUZZ_MUST(r->name < names && r->count >= 1);
    FUZZ_MUST(r->begin_ns >= FROM_NS && r->begin_ns <= r->end_ns);
    FUZZ_MUST(r->end_ns <= NOW_NS && r->kind <= JOULE_REGION_LOST);
    FUZZ_MUST(r->kind == JOULE_REGION_LOST ||
              r->time_ns <= r->end_ns - r->begin_ns);
}

static void read_all(int fd)
{
    const struct joule_region_sink sink = {take_name, take_region, NULL};
    struct joule_region_counts counts;
    struct joule_error err = {""};
    struct joule_region_reader *reader = joule_region_reader_open(fd, &err);

    regions = names = 0;
    if (!reader) {
        fuzz_check_sentence(&err);
        close(fd);
        return;
    }
    FUZZ_MUST(joule_region_reader_read(reader, &sink, FROM_NS, NOW_NS, 300) <=
              300);
    FUZZ_MUST(regions <= 300);
    joule_region_reader_fold(reader, 1);
    joule_region_reader_end(reader, &sink, FROM_NS, NOW_NS, 300, &counts);
    FUZZ_MUST(regions <= 300 + JOULE_SEGMENT_RECORDS + JOULE_SEGMENT_NAMES +
                             JOULE_SEGMENT_THREADS *
                                 (JOULE_REGION_CELLS + JOULE_REGION_DEPTH));
    FUZZ_MUST(names <= JOULE_SEGMENT_NAMES);
    joule_region_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct joule_segment *s;
    unsigned char *bytes;

    FUZZ_MUST(ftruncate(fd, JOULE_SEGMENT_BYTES) == 0 &&
              fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    FUZZ_MUST(s != MAP_FAILED);
    make_good(s);
    bytes = (unsigned char *)s;
    for (size_t i = 0; i + 7 <= size; i += 7) {
        size_t at =
            (data[i] | (size_t)data[i + 1] << 8 | (size_t)data[i + 2] << 16) %
            (sizeof(*s) - 4);

        memcpy(bytes + at, data + i + 3, 4);
    }
    munmap(s, sizeof(*s));
    read_all(fd);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits out of OTF2 archives whose times are known. */
#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/dice.h"
#include "tests/unit/tracefile.h"
#include "tools/waits/trace_copy.h"
#include "tools/waits/trace_definitions.h"
#include "tools/waits/trace_reader.h"
#include "tools/report/waits.h"

#define WAITS_MOST 100000

/* ---- a directory of each test ---- */

static char dir[64], trace[96];
static uint32_t local_numbers; /* see tracefile.h */
static bool with_slack;

static void setup(void)
{
    strcpy(dir, "/tmp/joule-waits-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(trace, sizeof(trace), "%s/trace", dir);
    local_numbers = 0;
    with_slack = false;
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_all(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void teardown(void)
{
    remove_all(dir);
}

/* ---- reading ---- */

struct told {
    struct joule_wait wait[WAITS_MOST];
    size_t count;
};

static struct told told[JOULE_MATCHER_PARTS_MAX];
static struct joule_definitions d;
static struct joule_trace_facts facts;
static struct joule_error err;

static void take(void *arg, unsigned part, const struct joule_wait *wait)
{
    (void)arg;
    ck_assert_uint_lt(told[part].count, WAITS_MOST);
    told[part].wait[told[part].count++] = *wait;
}

static uint64_t rounds;

static void tick(void *arg)
{
    (void)arg;
    rounds++;
}

static int compare_waits(const void *pa, const void *pb)
{
    const struct joule_wait *a = pa, *b = pb;

    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns < b->end_ns ? -1 : 1;
    return (a->pattern > b->pattern) - (a->pattern < b->pattern);
}

/* All waits are in told[0] then, by process and time. */
static int read_trace(unsigned threads, size_t round_events)
{
    const struct joule_trace_reading reading = {.path = trace,
                                                .threads = threads,
                                                .round_events = round_events,
                                                .with_slack = with_slack,
                                                .take = take,
                                                .tick = tick};
    int rc;

    for (unsigned i = 0; i < JOULE_MATCHER_PARTS_MAX; i++)
        told[i].count = 0;
    ck_assert_int_eq(joule_definitions_init(&d), 0);
    rc = joule_trace_read(&reading, &d, &facts, &err);
    for (unsigned i = 1; i < threads; i++)
        for (size_t k = 0; k < told[i].count; k++)
            take(NULL, 0, &told[i].wait[k]);
    qsort(told[0].wait, told[0].count, sizeof(told[0].wait[0]), compare_waits);
    return rc;
}

static void forget(void)
{
    joule_trace_facts_free(&facts);
    joule_definitions_free(&d);
}

static void is_wait(size_t i, enum joule_wait_pattern pattern, uint32_t process,
                    const char *path, const char *comm, uint64_t begin_ns,
                    uint64_t end_ns)
{
    const struct joule_wait *w = &told[0].wait[i];
    char *text;

    ck_assert_msg(i < told[0].count, "%zu waits", told[0].count);
    ck_assert_msg(w->pattern == pattern && w->process == process &&
                      w->begin_ns == begin_ns && w->end_ns == end_ns,
                  "wait %zu is %s of %u from %llu to %llu", i,
                  joule_wait_pattern_name(w->pattern), w->process,
                  (unsigned long long)w->begin_ns,
                  (unsigned long long)w->end_ns);
    text = joule_path_text(&d, w->path);
    ck_assert_str_eq(text, path);
    free(text);
    ck_assert_str_eq(d.comm[w->communicator].name, comm);
}

/* Numbers of threads and sizes of rounds that must make no difference. */
static const struct {
    unsigned threads;
    size_t round_events;
} ways[] = {{1, 0}, {1, 1}, {2, 0}, {2, 7}, {3, 1}, {3, 100}, {16, 0}};

#define WAYS ((int)(sizeof(ways) / sizeof(ways[0])))

static void read_well(int way)
{
    ck_assert_msg(read_trace(ways[way].threads, ways[way].round_events) == 0,
                  "%s", err.text);
    ck_assert_msg(facts.missing + facts.damaged == 0, "%s",
                  facts.first_damage.text);
}

/* ---- a copy with the waits marked ---- */

/* A location of the copy, as it is read. */
struct stack {
    OTF2_RegionRef region[64];
    uint64_t enter_ns[64], last_ns;
    size_t depth;
};

/* Of a name: the pattern that it marks, JOULE_WAIT_PATTERNS: none. */
static struct {
    uint64_t pattern[256];
    const char *string[256];
    char text[256][64];
    uint64_t marked_ns[JOULE_WAIT_PATTERNS];
} copied;

static OTF2_CallbackCode enter_copied(OTF2_LocationRef l, OTF2_TimeStamp ns,
                                      uint64_t position, void *arg,
                                      OTF2_AttributeList *attributes,
                                      OTF2_RegionRef region)
{
    struct stack *s = arg;

    (void)l;
    (void)position;
    (void)attributes;
    ck_assert_uint_ge(ns, s->last_ns);
    s->last_ns = s->enter_ns[s->depth] = ns;
    s->region[s->depth++] = region;
    ck_assert_uint_lt(s->depth, 64);
    return OTF2_CALLBACK_SUCCESS;
}

/* A mark is longer than nothing, and lies within whatever is around it. */
static OTF2_CallbackCode leave_copied(OTF2_LocationRef l, OTF2_TimeStamp ns,
                                      uint64_t position, void *arg,
                                      OTF2_AttributeList *attributes,
                                      OTF2_RegionRef region)
{
    struct stack *s = arg;

    (void)l;
    (void)position;
    (void)attributes;
    ck_assert_uint_ge(ns, s->last_ns);
    s->last_ns = ns;
    if (region >= 256 || copied.pattern[region] == JOULE_WAIT_PATTERNS) {
        s->depth -= s->depth > 0;
        return OTF2_CALLBACK_SUCCESS;
    }
    ck_assert_uint_gt(s->depth, 0);
    ck_assert_uint_eq(s->region[--s->depth], region);
    ck_assert_uint_gt(ns, s->enter_ns[s->depth]);
    copied.marked_ns[copied.pattern[region]] += ns - s->enter_ns[s->depth];
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode name_copied(void *arg, OTF2_StringRef self,
                                     const char *text)
{
    (void)arg;
    if (self < 256)
        snprintf(copied.text[self], sizeof(copied.text[0]), "%s", text);
    return OTF2_CALLBACK_SUCCESS;
}

static OTF2_CallbackCode
define_copied(void *arg, OTF2_RegionRef self, OTF2_StringRef name,
              OTF2_StringRef canonical, OTF2_StringRef about,
              OTF2_RegionRole role, OTF2_Paradigm paradigm,
              OTF2_RegionFlag flags, OTF2_StringRef file, uint32_t from,
              uint32_t to)
{
    (void)arg;
    (void)canonical;
    (void)about;
    (void)role;
    (void)paradigm;
    (void)flags;
    (void)file;
    (void)from;
    (void)to;
    ck_assert_uint_lt(self, 256);
    copied.string[self] = copied.text[name];
    return OTF2_CALLBACK_SUCCESS;
}

/* As any other program would read it. */
static void read_marks(const char *path)
{
    OTF2_Reader *reader = joule_trace_open(path, &err);
    OTF2_GlobalDefReaderCallbacks *g = OTF2_GlobalDefReaderCallbacks_New();
    OTF2_EvtReaderCallbacks *e = OTF2_EvtReaderCallbacks_New();
    OTF2_GlobalDefReader *from;
    uint64_t count, locations;

    ck_assert_msg(reader != NULL, "%s", err.text);
    memset(&copied, 0, sizeof(copied));
    OTF2_Reader_GetNumberOfLocations(reader, &locations);
    from = OTF2_Reader_GetGlobalDefReader(reader);
    OTF2_GlobalDefReaderCallbacks_SetStringCallback(g, name_copied);
    OTF2_GlobalDefReaderCallbacks_SetRegionCallback(g, define_copied);
    OTF2_Reader_RegisterGlobalDefCallbacks(reader, from, g, NULL);
    ck_assert_int_eq(OTF2_Reader_ReadAllGlobalDefinitions(reader, from, &count),
                     OTF2_SUCCESS);
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t p = 0;

        while (
            p < JOULE_WAIT_PATTERNS &&
            (!copied.string[i] || strncmp(copied.string[i], "WAIT: ", 6) != 0 ||
             strcmp(copied.string[i] + 6,
                    joule_wait_pattern_name((enum joule_wait_pattern)p)) != 0))
            p++;
        copied.pattern[i] = p;
    }
    OTF2_EvtReaderCallbacks_SetEnterCallback(e, enter_copied);
    OTF2_EvtReaderCallbacks_SetLeaveCallback(e, leave_copied);
    for (uint64_t l = 0; l < locations; l++)
        OTF2_Reader_SelectLocation(reader, l);
    OTF2_Reader_OpenEvtFiles(reader);
    for (uint64_t l = 0; l < locations; l++) {
        OTF2_EvtReader *events = OTF2_Reader_GetEvtReader(reader, l);
        struct stack stack = {.depth = 0};

        OTF2_Reader_RegisterEvtCallbacks(reader, events, e, &stack);
        ck_assert_int_eq(OTF2_Reader_ReadAllLocalEvents(reader, events, &count),
                         OTF2_SUCCESS);
        OTF2_Reader_CloseEvtReader(reader, events);
    }
    OTF2_EvtReaderCallbacks_Delete(e);
    OTF2_GlobalDefReaderCallbacks_Delete(g);
    OTF2_Reader_Close(reader);
}

/* Call paths are numbered as they are met: only the call is compared. */
static void keep_calls(void)
{
    for (size_t i = 0; i < told[0].count; i++)
        told[0].wait[i].path = d.paths.path[told[0].wait[i].path].region;
}

/* Of the trace that was read: its copy has the same waits, and marks for all of their
 * time.  Forgets it. */
static void check_copy(void)
{
    static struct told first;
    char copy[128], path[160], original[sizeof(trace)];
    struct joule_scratch marks;
    struct joule_trace_copying copying = {.path = trace, .directory = copy};
    struct joule_trace_copied result;
    uint64_t ns[JOULE_WAIT_PATTERNS] = {0};

    snprintf(copy, sizeof(copy), "%s/copy", dir);
    ck_assert_int_eq(joule_scratch_init(&marks, open(dir, O_TMPFILE | O_RDWR),
                                        sizeof(struct joule_mark), &err),
                     0);
    keep_calls();
    first.count = told[0].count;
    memcpy(first.wait, told[0].wait, first.count * sizeof(first.wait[0]));
    for (size_t i = 0; i < first.count; i++) {
        const struct joule_mark mark = joule_mark_of(&first.wait[i]);

        ns[mark.pattern] += first.wait[i].wait_ns;
        if (mark.pattern < JOULE_WAIT_COMPLETIONS)
            joule_scratch_add(&marks, i % JOULE_MATCHER_PARTS_MAX, &mark);
    }
    forget();
    ck_assert_int_eq(joule_scratch_sort(&marks, joule_mark_compare, &err), 0);
    copying.mark = marks.at;
    copying.marks = marks.count;
    ck_assert_msg(joule_trace_copy(&copying, &result, &err) == 0, "%s",
                  err.text);
    joule_scratch_free(&marks);
    ck_assert_uint_eq(result.not_marked, 0);
    strcpy(original, trace);
    strcpy(trace, copy);
    read_well(0);
    keep_calls();
    ck_assert_uint_eq(told[0].count, first.count);
    for (size_t i = 0; i < first.count; i++)
        ck_assert_mem_eq(&told[0].wait[i], &first.wait[i],
                         sizeof(first.wait[0]));
    forget();
    strcpy(trace, original);
    snprintf(path, sizeof(path), "%s/traces.otf2", copy);
    read_marks(path);
    for (uint32_t p = 0; p < JOULE_WAIT_COMPLETIONS; p++)
        ck_assert_uint_eq(copied.marked_ns[p], ns[p]);
    remove_all(copy);
}

/* ---- events of one location ---- */

static struct tracefile *t;

static uint64_t (*clock_of)(uint64_t location, uint64_t ns);

static uint64_t same_clock(uint64_t location, uint64_t ns)
{
    (void)location;
    return ns;
}

static void enter(uint64_t l, uint64_t ns, uint32_t region)
{
    tracefile_enter(t, l, clock_of(l, ns), region);
}

static void leave(uint64_t l, uint64_t ns, uint32_t region)
{
    tracefile_leave(t, l, clock_of(l, ns), region);
}

static void send_to(uint64_t l, uint64_t from, uint64_t to, uint32_t region,
                    uint32_t rank, uint32_t comm, uint32_t tag)
{
    enter(l, from, region);
    OTF2_EvtWriter_MpiSend(tracefile_writer(t, l), NULL, clock_of(l, from),
                           rank, comm + local_numbers, tag, 8);
    leave(l, to, region);
}

static void receive(uint64_t l, uint64_t from, uint64_t to, uint32_t rank,
                    uint32_t comm, uint32_t tag)
{
    enter(l, from, TRACEFILE_RECV);
    OTF2_EvtWriter_MpiRecv(tracefile_writer(t, l), NULL, clock_of(l, to), rank,
                           comm + local_numbers, tag, 8);
    leave(l, to, TRACEFILE_RECV);
}

static void collective(uint64_t l, uint64_t from, uint64_t to, uint32_t region,
                       OTF2_CollectiveOp op, uint32_t comm, uint32_t root,
                       uint64_t sent, uint64_t received)
{
    enter(l, from, region);
    OTF2_EvtWriter_MpiCollectiveBegin(tracefile_writer(t, l), NULL,
                                      clock_of(l, from));
    OTF2_EvtWriter_MpiCollectiveEnd(tracefile_writer(t, l), NULL,
                                    clock_of(l, to), op, comm + local_numbers,
                                    root, sent, received);
    leave(l, to, region);
}

/* Four ranks; communicator 2 has ranks 3, 2 and 0, in this order. */
static void write_patterns(const struct tracefile_offset *offset,
                           size_t offsets)
{
    static const uint64_t members[] = {3, 2, 0};
    static const struct tracefile_comm comm = {"row", members, 3};
    const struct tracefile_spec spec = {.ranks = 4,
                                        .comm = &comm,
                                        .comms = 1,
                                        .offset = offset,
                                        .offsets = offsets,
                                        .local_numbers = local_numbers};
    OTF2_EvtWriter *w;

    t = tracefile_create(trace, &spec);
    for (uint64_t l = 0; l < 4; l++)
        enter(l, 10, TRACEFILE_MAIN);
    send_to(0, 400, 420, TRACEFILE_SEND, 1, 0, 3);
    receive(1, 100, 450, 0, 0, 3);
    send_to(0, 500, 900, TRACEFILE_SSEND, 1, 0, 3);
    receive(1, 800, 910, 0, 0, 3);
    /* MPI_Bsend and MPI_Sendrecv have no Late Receiver. */
    send_to(0, 1000, 1400, TRACEFILE_BSEND, 1, 0, 3);
    receive(1, 1300, 1410, 0, 0, 3);
    /* To itself, on MPI_COMM_SELF: the same numbers in all processes. */
    for (uint64_t l = 2; l < 4; l++) {
        send_to(l, 1000 + l, 1010 + l, TRACEFILE_SEND, 0, 1, 1);
        receive(l, 1020 + l, 1030 + l, 0, 1, 1);
    }
    /* By requests, in another order, of any source. */
    w = tracefile_writer(t, 1);
    enter(1, 2000, TRACEFILE_IRECV);
    OTF2_EvtWriter_MpiIrecvRequest(w, NULL, clock_of(1, 2000), 11);
    leave(1, 2010, TRACEFILE_IRECV);
    enter(1, 2020, TRACEFILE_IRECV);
    OTF2_EvtWriter_MpiIrecvRequest(w, NULL, clock_of(1, 2020), 12);
    leave(1, 2030, TRACEFILE_IRECV);
    enter(1, 2040, TRACEFILE_SOLVE);
    enter(1, 2050, TRACEFILE_WAITALL);
    OTF2_EvtWriter_MpiIrecv(w, NULL, clock_of(1, 2900), 2, local_numbers, 5, 8,
                            12);
    OTF2_EvtWriter_MpiIrecv(w, NULL, clock_of(1, 2900), 0, local_numbers, 5, 8,
                            11);
    leave(1, 2900, TRACEFILE_WAITALL);
    leave(1, 2910, TRACEFILE_SOLVE);
    w = tracefile_writer(t, 0);
    enter(0, 2400, TRACEFILE_ISEND);
    OTF2_EvtWriter_MpiIsend(w, NULL, clock_of(0, 2400), 1, local_numbers, 5, 8,
                            1);
    leave(0, 2410, TRACEFILE_ISEND);
    enter(0, 2420, TRACEFILE_WAIT);
    OTF2_EvtWriter_MpiIsendComplete(w, NULL, clock_of(0, 2450), 1);
    leave(0, 2450, TRACEFILE_WAIT);
    send_to(2, 2600, 2610, TRACEFILE_SEND, 1, 0, 5);
    /* Of a part of the processes. */
    collective(3, 3000, 3500, TRACEFILE_BCAST, OTF2_COLLECTIVE_OP_BCAST, 2, 1,
               0, 8);
    collective(2, 3300, 3310, TRACEFILE_BCAST, OTF2_COLLECTIVE_OP_BCAST, 2, 1,
               8, 8);
    collective(0, 3100, 3500, TRACEFILE_BCAST, OTF2_COLLECTIVE_OP_BCAST, 2, 1,
               0, 8);
    collective(3, 4000, 4010, TRACEFILE_SCAN, OTF2_COLLECTIVE_OP_SCAN, 2,
               OTF2_COLLECTIVE_ROOT_NONE, 8, 8);
    collective(2, 3900, 4020, TRACEFILE_SCAN, OTF2_COLLECTIVE_OP_SCAN, 2,
               OTF2_COLLECTIVE_ROOT_NONE, 8, 8);
    collective(0, 3950, 4020, TRACEFILE_SCAN, OTF2_COLLECTIVE_OP_SCAN, 2,
               OTF2_COLLECTIVE_ROOT_NONE, 8, 8);
    /* Of one, and without a pattern. */
    for (uint64_t l = 0; l < 4; l++) {
        collective(l, 5000 + l, 5010, TRACEFILE_BARRIER,
                   OTF2_COLLECTIVE_OP_BARRIER, 1, OTF2_COLLECTIVE_ROOT_NONE, 0,
                   0);
        collective(l, 5100 + l, 5110, TRACEFILE_ALLTOALLV,
                   OTF2_COLLECTIVE_OP_ALLTOALLV, 0, OTF2_COLLECTIVE_ROOT_NONE,
                   8, 8);
        enter(l, 5200, TRACEFILE_IBARRIER);
        leave(l, 5210, TRACEFILE_IBARRIER);
        enter(l, 5220, TRACEFILE_PUT);
        leave(l, 5230, TRACEFILE_PUT);
    }
    /* All, at the end: the last one is alone. */
    for (uint64_t l = 0; l < 4; l++) {
        collective(l, 6000 + 100 * l, 6400, TRACEFILE_BARRIER,
                   OTF2_COLLECTIVE_OP_BARRIER, 0, OTF2_COLLECTIVE_ROOT_NONE, 0,
                   0);
        leave(l, 7000, TRACEFILE_MAIN);
    }
    tracefile_close(t);
}

/* Completions of no length are none. */
static void check_patterns(void)
{
    size_t i = 0;

    is_wait(i++, JOULE_LATE_RECEIVER, 0, "main/MPI_Ssend", "MPI_COMM_WORLD",
            500, 800);
    is_wait(i++, JOULE_LATE_BROADCAST, 0, "main/MPI_Bcast", "row", 3100, 3300);
    is_wait(i++, JOULE_EARLY_SCAN, 0, "main/MPI_Scan", "row", 3950, 4000);
    is_wait(i++, JOULE_WAIT_AT_BARRIER, 0, "main/MPI_Barrier", "MPI_COMM_WORLD",
            6000, 6300);
    is_wait(i++, JOULE_LATE_SENDER, 1, "main/MPI_Recv", "MPI_COMM_WORLD", 100,
            400);
    is_wait(i++, JOULE_LATE_SENDER, 1, "main/solve/MPI_Waitall",
            "MPI_COMM_WORLD", 2050, 2600);
    is_wait(i++, JOULE_WAIT_AT_BARRIER, 1, "main/MPI_Barrier", "MPI_COMM_WORLD",
            6100, 6300);
    is_wait(i++, JOULE_EARLY_SCAN, 2, "main/MPI_Scan", "row", 3900, 4000);
    is_wait(i++, JOULE_WAIT_AT_BARRIER, 2, "main/MPI_Barrier", "MPI_COMM_WORLD",
            6200, 6300);
    is_wait(i++, JOULE_LATE_BROADCAST, 3, "main/MPI_Bcast", "row", 3000, 3300);
    ck_assert_uint_eq(told[0].count, i);
    ck_assert_uint_eq(facts.counts.messages, 7);
    ck_assert_uint_eq(facts.counts.collectives, 3);
    ck_assert_uint_eq(facts.counts.clock_violations, 0);
    ck_assert_uint_eq(
        facts.counts.unmatched_sends + facts.counts.unmatched_receives, 0);
    ck_assert_uint_eq(facts.not_analysed[TRACEFILE_ALLTOALLV], 4);
    ck_assert_uint_eq(facts.not_analysed[TRACEFILE_IBARRIER], 4);
    ck_assert_uint_eq(facts.not_analysed[TRACEFILE_PUT], 4);
    ck_assert_uint_eq(facts.process[0].run_ns, 6990);
    ck_assert_str_eq(d.process[2].name, "MPI Rank 2");
    ck_assert_str_eq(d.process[2].node, "n1");
    ck_assert_uint_eq(d.process[2].rank, 2);
}

START_TEST(patterns)
{
    clock_of = same_clock;
    write_patterns(NULL, 0);
    read_well(_i);
    check_patterns();
    check_copy();
}
END_TEST

/* Each location numbers regions and communicators for itself. */
START_TEST(local_definitions)
{
    clock_of = same_clock;
    local_numbers = 70;
    write_patterns(NULL, 0);
    read_well(_i);
    check_patterns();
    ck_assert_uint_eq(facts.unknown_references, 0);
    check_copy();
}
END_TEST

/* The sum of the waits of write_patterns(). */
#define WAITED_NS (300 + 200 + 50 + 300 + 300 + 550 + 200 + 100 + 100 + 300)

/* Rank l's clock is l s ahead, and 250 ppm fast, which the offsets know. */
static uint64_t skewed_clock(uint64_t location, uint64_t ns)
{
    return ns + location * 1000000000 + (location ? ns / 4000 : 0);
}

START_TEST(skewed_clocks)
{
    struct tracefile_offset offset[8];
    uint64_t longs = 0, long_ns = 0;

    for (uint64_t l = 0; l < 4; l++) {
        offset[2 * l] = (struct tracefile_offset){l, skewed_clock(l, 0),
                                                  -(int64_t)(l * 1000000000)};
        offset[2 * l + 1] = (struct tracefile_offset){
            l, skewed_clock(l, 8000), 8000 - (int64_t)skewed_clock(l, 8000)};
    }
    clock_of = skewed_clock;
    write_patterns(offset, 8);
    read_well(_i);
    /* The offsets were applied once: to within the rounding of times. */
    for (size_t i = 0; i < told[0].count; i++) {
        ck_assert_uint_lt(told[0].wait[i].end_ns, 8000);
        long_ns += told[0].wait[i].wait_ns > 2 ? told[0].wait[i].wait_ns : 0;
        longs += told[0].wait[i].wait_ns > 2;
    }
    ck_assert_uint_eq(longs, 10);
    ck_assert_uint_ge(long_ns, WAITED_NS - 20);
    ck_assert_uint_le(long_ns, WAITED_NS + 20);
    forget();
}
END_TEST

/* Offsets without drift are exact. */
static uint64_t shifted_clock(uint64_t location, uint64_t ns)
{
    return ns + location * 1000000007;
}

START_TEST(shifted_clocks)
{
    struct tracefile_offset offset[8];

    for (uint64_t l = 0; l < 4; l++)
        for (uint64_t k = 0; k < 2; k++)
            offset[2 * l + k] = (struct tracefile_offset){
                l, shifted_clock(l, 8000 * k), -(int64_t)(l * 1000000007)};
    clock_of = shifted_clock;
    write_patterns(offset, 8);
    read_well(_i);
    check_patterns();
    check_copy();
}
END_TEST

/* Times in another unit. */
START_TEST(ticks)
{
    const struct tracefile_spec spec = {.ranks = 2, .ticks_per_s = 2000000000};

    clock_of = same_clock;
    t = tracefile_create(trace, &spec);
    send_to(0, 800, 840, TRACEFILE_SEND, 1, 0, 3);
    receive(1, 200, 900, 0, 0, 3);
    tracefile_close(t);
    read_well(_i);
    is_wait(0, JOULE_LATE_SENDER, 1, "MPI_Recv", "MPI_COMM_WORLD", 100, 400);
    ck_assert_uint_eq(told[0].count, 1);
    check_copy();
}
END_TEST

/* Threads of a process take turns: the messages are in the order of the calls. */
START_TEST(threads_of_a_process)
{
    const struct tracefile_spec spec = {.ranks = 2, .threads = 2};

    clock_of = same_clock;
    t = tracefile_create(trace, &spec);
    for (uint64_t i = 0; i < 200; i++) {
        uint64_t ns = 1000 * (i + 1), l = i % 2 ? 2 : 0;

        send_to(l, ns + 10 * i % 400 + 100, ns + 600, TRACEFILE_SEND, 1, 0, 3);
        receive(l + 1, ns, ns + 700, 0, 0, 3);
    }
    tracefile_close(t);
    read_well(_i);
    ck_assert_uint_eq(told[0].count, 200);
    for (uint64_t i = 0; i < 200; i++)
        is_wait(i, JOULE_LATE_SENDER, 1, "MPI_Recv", "MPI_COMM_WORLD",
                1000 * (i + 1), 1000 * (i + 1) + 10 * i % 400 + 100);
    check_copy();
}
END_TEST

/* ---- slack ---- */

static void is_slack(uint32_t process, const char *path, uint64_t computed_ns,
                     uint64_t slack_ns)
{
    for (size_t i = 0; i < facts.slacks; i++) {
        const struct joule_trace_slack *k = &facts.slack[i];
        char *text = k->path == JOULE_SLACK_ALL ? strdup("all")
                                                : joule_path_text(&d, k->path);
        bool is_it = k->process == process && strcmp(text, path) == 0;

        free(text);
        if (!is_it)
            continue;
        ck_assert_uint_eq(k->computed_ns, computed_ns);
        ck_assert_uint_eq(k->slack_ns, slack_ns);
        return;
    }
    ck_abort_msg("no computing of %u in '%s'", process, path);
}

/* Rank 1 computes in two regions before its send, and in none behind it; what its
 * other thread computes, which calls no MPI, says nothing. */
START_TEST(slack)
{
    const struct tracefile_spec spec = {.ranks = 2, .threads = 2};

    with_slack = true;
    clock_of = same_clock;
    t = tracefile_create(trace, &spec);
    enter(0, 1000, TRACEFILE_MAIN);
    receive(0, 2000, 2010, 1, 0, 3);
    send_to(0, 2500, 2510, TRACEFILE_SEND, 1, 0, 4);
    leave(0, 3000, TRACEFILE_MAIN);
    enter(1, 1000, TRACEFILE_MAIN);
    enter(1, 1100, TRACEFILE_SOLVE);
    leave(1, 1300, TRACEFILE_SOLVE);
    send_to(1, 1400, 1420, TRACEFILE_BSEND, 0, 0, 3);
    receive(1, 1430, 2600, 0, 0, 4);
    leave(1, 3000, TRACEFILE_MAIN);
    enter(3, 1000, TRACEFILE_SOLVE);
    leave(3, 2900, TRACEFILE_SOLVE);
    tracefile_close(t);
    read_well(_i);
    is_slack(0, "all", 1000 + 490, 0);
    is_slack(0, "main", 1000 + 490, 0);
    /* Its message could have come 600 ns later; it waits 1,070 ns itself. */
    is_slack(1, "main/solve", 200, 600);
    is_slack(1, "main", 100 + 100 + 10, 1070);
    is_slack(1, "all", 410, 1070);
    forget();
}
END_TEST

/* ---- what makes no sense ---- */

START_TEST(odd_events)
{
    const struct tracefile_spec spec = {.ranks = 2};
    OTF2_EvtWriter *w;

    clock_of = same_clock;
    t = tracefile_create(trace, &spec);
    w = tracefile_writer(t, 0);
    leave(0, 100, TRACEFILE_MAIN); /* not entered */
    enter(0, 110, 4711);           /* not defined */
    enter(0, 120, TRACEFILE_SOLVE);
    enter(0, 130, TRACEFILE_RECV); /* never left */
    leave(0, 140, 4711);
    OTF2_EvtWriter_MpiSend(w, NULL, 150, 1, 0, 3, 8);  /* in no call */
    OTF2_EvtWriter_MpiSend(w, NULL, 150, 9, 0, 3, 8);  /* no such rank */
    OTF2_EvtWriter_MpiSend(w, NULL, 150, 1, 99, 3, 8); /* no communicator */
    OTF2_EvtWriter_MpiIsendComplete(w, NULL, 160, 17);
    enter(0, 170, TRACEFILE_MAIN); /* never left */
    receive(1, 100, 200, 0, 0, 3);
    tracefile_close(t);
    read_well(_i);
    is_wait(0, JOULE_LATE_SENDER, 1, "MPI_Recv", "MPI_COMM_WORLD", 100, 150);
    ck_assert_uint_eq(told[0].count, 1);
    ck_assert_uint_eq(facts.unbalanced, 4);
    ck_assert_uint_eq(facts.unknown_references, 4);
    ck_assert_uint_eq(facts.outside_of_calls, 2);
    ck_assert_uint_eq(facts.counts.without_post, 1);
    check_copy();
}
END_TEST

/* A second without events is not a round for each ns, however short the rounds before
 * were. */
START_TEST(gap)
{
    const struct tracefile_spec spec = {.ranks = 2};

    clock_of = same_clock;
    t = tracefile_create(trace, &spec);
    for (uint64_t i = 0; i < 400; i++)
        send_to(0, 2 * i, 2 * i + 1, TRACEFILE_SEND, 1, 0, 3);
    receive(1, 100, 200, 0, 0, 3);
    send_to(0, UINT64_C(1) << 40, (UINT64_C(1) << 40) + 1, TRACEFILE_SEND, 1, 0,
            4);
    receive(1, 1000, (UINT64_C(1) << 40) + 2, 0, 0, 4);
    tracefile_close(t);
    read_well(_i);
    is_wait(0, JOULE_LATE_SENDER, 1, "MPI_Recv", "MPI_COMM_WORLD", 1000,
            UINT64_C(1) << 40);
    ck_assert_uint_eq(told[0].count, 1);
    forget();
}
END_TEST

/* The end of time is a round, too, and not one for each event. */
START_TEST(end_of_time)
{
    const struct tracefile_spec spec = {.ranks = 2, .ticks_per_s = 1};
    const uint64_t late = UINT64_C(1) << 40;

    clock_of = same_clock;
    t = tracefile_create(trace, &spec);
    enter(0, late, TRACEFILE_MAIN);
    for (uint64_t i = 1; i < 20000; i++)
        send_to(1, late + i, late + i, TRACEFILE_SEND, 0, 0, 3);
    leave(0, late + 20000, TRACEFILE_MAIN);
    tracefile_close(t);
    rounds = 0;
    read_well(_i);
    if (ways[_i].round_events == 0)
        ck_assert_uint_lt(rounds, 200);
    forget();
}
END_TEST

START_TEST(no_trace)
{
    FILE *f;

    ck_assert_int_eq(read_trace(1, 0), -1);
    ck_assert_msg(strstr(err.text, "there is no trace "), "%s", err.text);
    forget();
    ck_assert_int_eq(mkdir(trace, 0700), 0);
    ck_assert_int_eq(read_trace(1, 0), -1);
    ck_assert_msg(strstr(err.text, "/trace/traces.otf2"), "%s", err.text);
    forget();
    strcat(trace, "/x");
    f = fopen(trace, "w");
    fputs("no archive", f);
    fclose(f);
    ck_assert_int_eq(read_trace(1, 0), -1);
    ck_assert_msg(strstr(err.text, "is no OTF2 archive, or damaged"), "%s",
                  err.text);
    forget();
}
END_TEST

/* The events of a process are not there: the others are told. */
START_TEST(missing_events)
{
    char path[160];

    clock_of = same_clock;
    write_patterns(NULL, 0);
    snprintf(path, sizeof(path), "%s/traces/2.evt", trace);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(read_trace(ways[_i].threads, ways[_i].round_events), 0);
    ck_assert_uint_eq(facts.missing + facts.damaged, 1);
    ck_assert_msg(strstr(facts.first_damage.text, "MPI Rank 2"), "%s",
                  facts.first_damage.text);
    ck_assert_uint_eq(told[0].count, 3);
    ck_assert_uint_eq(facts.counts.incomplete_collectives, 3);
    forget();
}
END_TEST

/* ---- random archives: one way is as good as another ---- */

static void write_random(uint64_t *seed, uint32_t ranks, uint32_t threads,
                         int calls)
{
    const struct tracefile_spec spec = {.ranks = ranks, .threads = threads};
    uint64_t *ns = calloc(ranks * threads, sizeof(*ns));
    uint64_t request = 0;

    clock_of = same_clock;
    t = tracefile_create(trace, &spec);
    for (int i = 0; i < calls; i++) {
        uint64_t l = dice(seed, ranks * threads);
        OTF2_EvtWriter *w = tracefile_writer(t, l);
        uint32_t peer = (uint32_t)dice(seed, ranks);
        uint32_t tag = (uint32_t)dice(seed, 2);
        uint64_t from = ns[l] + dice(seed, 100), to = from + dice(seed, 400);

        ns[l] = to;
        switch (dice(seed, 6)) {
        case 0:
            send_to(l, from, to, TRACEFILE_SEND, peer, 0, tag);
            break;
        case 1:
            receive(l, from, to, peer, 0, tag);
            break;
        case 2:
            enter(l, from, TRACEFILE_ISEND);
            OTF2_EvtWriter_MpiIsend(w, NULL, from, peer, 0, tag, 8, ++request);
            leave(l, to, TRACEFILE_ISEND);
            break;
        case 3:
            enter(l, from, TRACEFILE_IRECV);
            OTF2_EvtWriter_MpiIrecvRequest(w, NULL, from, ++request);
            leave(l, to, TRACEFILE_IRECV);
            break;
        case 4:
            enter(l, from, TRACEFILE_WAITALL);
            for (uint64_t k = dice(seed, 8); k > 0; k--)
                if (dice(seed, 2))
                    OTF2_EvtWriter_MpiIrecv(w, NULL, to, peer, 0, tag, 8,
                                            dice(seed, request + 1));
                else
                    OTF2_EvtWriter_MpiIsendComplete(w, NULL, to,
                                                    dice(seed, request + 1));
            leave(l, to, TRACEFILE_WAITALL);
            break;
        default:
            collective(l, from, to, TRACEFILE_ALLREDUCE,
                       OTF2_COLLECTIVE_OP_ALLREDUCE, 0,
                       OTF2_COLLECTIVE_ROOT_NONE, dice(seed, 2), dice(seed, 2));
        }
    }
    tracefile_close(t);
    free(ns);
}

START_TEST(random_archives)
{
    static struct told first;
    uint64_t seed = dice_seed();

    for (int round = 0; round < dice_rounds(50); round++) {
        struct joule_matcher_counts counts = {0};
        uint32_t threads = 1 + (uint32_t)dice(&seed, 2);

        write_random(&seed, 2 + (uint32_t)dice(&seed, 6), threads,
                     200 + (int)dice(&seed, 2000));
        for (int way = 0; way < WAYS; way++) {
            read_well(way);
            keep_calls();
            if (way == 0) {
                first.count = told[0].count;
                memcpy(first.wait, told[0].wait,
                       first.count * sizeof(first.wait[0]));
                counts = facts.counts;
                ck_assert_uint_gt(first.count, 0);
            }
            ck_assert_uint_eq(told[0].count, first.count);
            for (size_t i = 0; i < first.count; i++)
                ck_assert_mem_eq(&told[0].wait[i], &first.wait[i],
                                 sizeof(first.wait[0]));
            ck_assert_mem_eq(&facts.counts, &counts, sizeof(counts));
            forget();
        }
        /* Whose a wait is that begins with the calls of two threads, a copy does
         * not know. */
        if (threads == 1) {
            read_well(0);
            check_copy();
        }
        remove_all(trace);
    }
}
END_TEST

/* ---- damage ---- */

static unsigned char *load(const char *path, size_t *ret_size)
{
    unsigned char *bytes = malloc(1 << 20);
    FILE *f = fopen(path, "r");

    ck_assert_msg(f && bytes, "%s", path);
    *ret_size = fread(bytes, 1, 1 << 20, f);
    fclose(f);
    return bytes;
}

static void store(const char *path, const unsigned char *bytes, size_t size)
{
    FILE *f = fopen(path, "w");

    ck_assert_msg(f && fwrite(bytes, 1, size, f) == size, "%s", path);
    fclose(f);
}

/* Where stdout and stderr go, while the command says nothing there; or 0. */
static int said_to[3];

static void speak_again(void)
{
    fflush(stdout);
    for (int fd = 1; fd < 3; fd++) {
        if (said_to[fd] == 0)
            continue;
        dup2(said_to[fd], fd);
        close(said_to[fd]);
        said_to[fd] = 0;
    }
}

static int run_command(int way)
{
    char copy[128], paraver[128], *options[] = {"--json", copy, paraver};
    char *argv[] = {"waits", "--threads=2", options[way], trace, NULL};

    snprintf(copy, sizeof(copy), "--otf2=%s/copy", dir);
    snprintf(paraver, sizeof(paraver), "--paraver=%s/paraver", dir);
    remove_all(copy + strlen("--otf2="));
    return joule_waits_main(4, argv);
}

/* Whatever libotf2 makes of it, the command ends with one of its own statuses. */
START_TEST(damaged_archives)
{
    static const char *const files[] = {"traces.otf2", "traces.def",
                                        "traces/0.evt", "traces/1.evt",
                                        "traces/0.def"};
    uint64_t seed = dice_seed();
    int null = open("/dev/null", O_WRONLY), statuses[4] = {0};

    clock_of = same_clock;
    write_patterns(NULL, 0);
    fflush(stdout);
    for (int fd = 1; fd < 3; fd++) {
        said_to[fd] = dup(fd);
        ck_assert_int_ge(dup2(null, fd), 0);
    }
    for (int round = 0; round < dice_rounds(1000); round++) {
        char path[160];
        size_t size, rest;
        unsigned char *bytes, *changed;
        int status;

        snprintf(path, sizeof(path), "%s/%s", trace, files[dice(&seed, 5)]);
        bytes = load(path, &size);
        changed = malloc(size + 1);
        memcpy(changed, bytes, size);
        rest = dice(&seed, 4) ? size : dice(&seed, size);
        for (uint64_t k = dice(&seed, 5); k > 0; k--)
            changed[dice(&seed, size)] ^= (unsigned char)(1 << dice(&seed, 8));
        store(path, changed, rest);
        status = run_command((int)dice(&seed, 3));
        ck_assert_int_ge(status, 0);
        ck_assert_int_le(status, 3);
        statuses[status]++;
        store(path, bytes, size);
        free(bytes);
        free(changed);
    }
    ck_assert_int_eq(statuses[2], 0);
    ck_assert_int_eq(run_command(0), 0);
    close(null);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace_reader");
    TCase *tc = tcase_create("trace_reader"), *damage = tcase_create("damage");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, patterns, 0, WAYS);
    tcase_add_loop_test(tc, local_definitions, 0, WAYS);
    tcase_add_loop_test(tc, shifted_clocks, 0, WAYS);
    tcase_add_loop_test(tc, skewed_clocks, 0, WAYS);
    tcase_add_loop_test(tc, ticks, 0, WAYS);
    tcase_add_loop_test(tc, threads_of_a_process, 0, WAYS);
    tcase_add_loop_test(tc, slack, 0, WAYS);
    tcase_add_loop_test(tc, odd_events, 0, WAYS);
    tcase_add_loop_test(tc, gap, 0, WAYS);
    tcase_add_loop_test(tc, end_of_time, 0, WAYS);
    tcase_add_test(tc, no_trace);
    tcase_add_loop_test(tc, missing_events, 0, WAYS);
    tcase_add_test(tc, random_archives);
    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(damage, setup, teardown);
    tcase_add_checked_fixture(damage, NULL, speak_again);
    /* Some damage costs a second of CPU time. */
    tcase_set_timeout(damage, 600);
    tcase_add_test(damage, damaged_archives);
    suite_add_tcase(suite, damage);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

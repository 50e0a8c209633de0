/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An OTF2 archive of logs, read back by the reader of traces. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/waits/log.h"
#include "lib/waits/mpi_calls.h"
#include "tests/unit/tree.h"
#include "tools/waits/trace_archive.h"
#include "tools/waits/trace_reader.h"

enum joule_mpi_call {
    JOULE_WAITS_ALL_CALLS(JOULE_WAITS_NUMBER) JOULE_MPI_COUNT
};

#define MS INT64_C(1000000)

static struct tree tree;
static struct joule_error err;
static struct joule_archive_facts facts;
static char directory[256];

/* What was found, by pattern and rank. */
static uint64_t waited_ns[JOULE_WAIT_PATTERNS][4];
static char paths[16][64];
static unsigned found;
static uint64_t locations;
static struct joule_definitions definitions;

static void setup(void)
{
    tree_create(&tree);
    snprintf(directory, sizeof(directory), "%s/run", tree.path);
    ck_assert_int_eq(mkdir(directory, 0755), 0);
    memset(waited_ns, 0, sizeof(waited_ns));
    found = 0;
}

static void teardown(void)
{
    tree_destroy(&tree);
}

/* A log as a process leaves it. */
struct log {
    struct joule_waits_head head;
    struct joule_waits_comm comm[4];
    struct joule_waits_text name[4];
    struct joule_waits_record record[64];
    uint32_t thread[64];
    size_t comms, names, records;
    int64_t offset_ns; /* of its clock, behind that of rank 0 */
};

static struct log new_log(uint32_t rank, uint32_t size)
{
    struct log l = {
        .head = {.magic = JOULE_WAITS_MAGIC,
                 .version = JOULE_WAITS_VERSION,
                 .head_bytes = sizeof(l.head),
                 .record_bytes = sizeof(l.record[0]),
                 .state = JOULE_WAITS_FINALIZED,
                 .rank = rank,
                 .size = size,
                 .job = 12,
                 .step = 3,
                 .machine = 1,
                 .begin_ns = 1000 * MS,
                 .end_ns = 2000 * MS,
                 .wall_ns = INT64_C(1700000000000000000),
                 .node = "n1",
                 .program = "test"},
        .comms = 1,
    };

    l.comm[0] = (struct joule_waits_comm){
        .id = 5, .rank = (int32_t)rank, .size = (int32_t)size};
    return l;
}

static void put(struct log *l, uint8_t call, int64_t enter_ns, int64_t leave_ns,
                struct joule_waits_record r)
{
    r.call = call;
    r.enter_ns = enter_ns - l->offset_ns;
    r.leave_ns = leave_ns - l->offset_ns;
    l->record[l->records++] = r;
}

static void write_block(FILE *file, uint32_t kind, uint32_t thread,
                        uint64_t number, const void *data, size_t each,
                        size_t count)
{
    const struct joule_waits_block head = {
        .kind = kind,
        .thread = thread,
        .count = (uint32_t)count,
        .number = number,
    };

    ck_assert_uint_eq(fwrite(&head, sizeof(head), 1, file), 1);
    ck_assert_uint_eq(fwrite(data, each, count, file), count);
}

/* Each record in a block of its own, the later ones first. */
static void write_log(struct log *l)
{
    char path[300];
    FILE *file;

    l->head.begin_ns -= l->offset_ns;
    l->head.end_ns -= l->offset_ns;
    snprintf(path, sizeof(path), "%s/n.%u.waits", directory, l->head.rank);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(&l->head, sizeof(l->head), 1, file), 1);
    for (size_t i = l->records; i-- > 0;)
        write_block(file, JOULE_WAITS_RECORDS, l->thread[i], i, &l->record[i],
                    sizeof(l->record[i]), 1);
    write_block(file, JOULE_WAITS_COMMS, 0, 0, l->comm, sizeof(l->comm[0]),
                l->comms);
    write_block(file, JOULE_WAITS_NAMES, 0, 0, l->name, sizeof(l->name[0]),
                l->names);
    ck_assert_int_eq(fclose(file), 0);
}

static void take(void *arg, unsigned part, const struct joule_wait *wait)
{
    char *path = joule_path_text(&definitions, wait->path);
    uint32_t rank;

    (void)arg;
    (void)part;
    if (wait->pattern >= JOULE_WAIT_COMPLETIONS || !path) {
        free(path);
        return;
    }
    rank = definitions.process[wait->process].rank;
    ck_assert_uint_lt(rank, 4);
    waited_ns[wait->pattern][rank] += wait->wait_ns;
    ck_assert_uint_lt(found, 16);
    snprintf(paths[found++], sizeof(paths[0]), "%s", path);
    free(path);
}

static void must_make(void)
{
    ck_assert_msg(joule_archive_make(directory, false, NULL, &facts, &err) == 0,
                  "%s", err.text);
}

static void make_and_read(void)
{
    const struct joule_trace_reading reading = {
        .path = directory, .threads = 1, .take = take};
    struct joule_trace_facts read_facts;

    must_make();
    ck_assert_int_eq(joule_definitions_init(&definitions), 0);
    ck_assert_msg(joule_trace_read(&reading, &definitions, &read_facts, &err) ==
                      0,
                  "%s", err.text);
    ck_assert_uint_eq(read_facts.damaged + read_facts.missing, 0);
    ck_assert_uint_eq(read_facts.unknown_references, 0);
    ck_assert_uint_eq(read_facts.unbalanced, 0);
    ck_assert_uint_eq(read_facts.times_back, 0);
    locations = read_facts.locations;
    joule_trace_facts_free(&read_facts);
}

/* Rank 1 receives at 1,100 ms what rank 0 sends at 1,130; at a barrier rank 0 waits
 * from 1,200 to 1,250.  [l] are the logs of both. */
static void put_waits(struct log *l)
{
    const struct joule_waits_record barrier = {.kind = JOULE_WAITS_COLLECTIVE,
                                               .peer = JOULE_WAITS_NO_ROOT};

    put(&l[0], JOULE_MPI_Send, 1130 * MS, 1131 * MS,
        (struct joule_waits_record){
            .kind = JOULE_WAITS_SEND, .peer = 1, .tag = 7, .sent = 4});
    put(&l[1], JOULE_MPI_Recv, 1100 * MS, 1132 * MS,
        (struct joule_waits_record){
            .kind = JOULE_WAITS_RECEIVE, .peer = 0, .tag = 7, .received = 4});
    put(&l[0], JOULE_MPI_Barrier, 1200 * MS, 1251 * MS, barrier);
    put(&l[1], JOULE_MPI_Barrier, 1250 * MS, 1251 * MS, barrier);
}

static void refused(const char *text)
{
    ck_assert_int_eq(joule_archive_make(directory, false, NULL, &facts, &err),
                     -1);
    ck_assert_msg(strstr(err.text, text), "%s", err.text);
    /* Nothing is left of it. */
    for (int rank = 0; rank < 4; rank++) {
        char path[300];

        snprintf(path, sizeof(path), "%s/n.%d.waits", directory, rank);
        unlink(path);
    }
    ck_assert_int_eq(rmdir(directory), 0);
    ck_assert_int_eq(mkdir(directory, 0755), 0);
}

START_TEST(two_ranks)
{
    struct log l[2] = {new_log(0, 2), new_log(1, 2)};
    char path[300];

    put_waits(l);
    write_log(&l[0]);
    write_log(&l[1]);
    make_and_read();
    ck_assert_uint_eq(waited_ns[JOULE_LATE_SENDER][1], 30 * MS);
    ck_assert_uint_eq(waited_ns[JOULE_WAIT_AT_BARRIER][0], 50 * MS);
    ck_assert_uint_eq(found, 2);
    ck_assert_str_eq(definitions.step, "12.3");
    ck_assert_int_eq(definitions.wall_ns, INT64_C(1700000000000000000));
    ck_assert_uint_eq(facts.ranks, 2);
    ck_assert_uint_eq(facts.calls, 4);
    ck_assert_uint_eq(facts.missing + facts.killed + facts.lost, 0);
    joule_definitions_free(&definitions);
    /* No log is left, and an archive is not made twice. */
    snprintf(path, sizeof(path), "%s/n.0.waits", directory);
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_assert_int_eq(joule_archive_make(directory, false, NULL, &facts, &err),
                     -1);
    ck_assert_int_eq(errno, EEXIST);
}
END_TEST

/* Nothing is removed of what the archive was made of, unless all of it is written. */
START_TEST(full_disk)
{
    struct log l[2] = {new_log(0, 2), new_log(1, 2)};
    struct rlimit limit, before;
    char path[300];
    int rc;

    put_waits(l);
    write_log(&l[0]);
    write_log(&l[1]);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 1000; /* the definitions alone are longer */
    setrlimit(RLIMIT_FSIZE, &limit);
    rc = joule_archive_make(directory, false, NULL, &facts, &err);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
    ck_assert_int_eq(rc, -1);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/n.%d.waits", directory, i);
        ck_assert_int_eq(access(path, F_OK), 0);
    }
}
END_TEST

/* Another machine: its clock is 5,000 s behind, and loses 100 us in a second. */
START_TEST(clocks)
{
    struct log l[2] = {new_log(0, 2), new_log(1, 2)};

    l[1].offset_ns = 5000000 * MS;
    put_waits(l);
    l[1].head.machine = 2;
    snprintf(l[1].head.node, sizeof(l[1].head.node), "n2");
    for (size_t i = 0; i < l[1].records; i++) {
        l[1].record[i].enter_ns -=
            (l[1].record[i].enter_ns + l[1].offset_ns - 1000 * MS) / 10000;
        l[1].record[i].leave_ns -=
            (l[1].record[i].leave_ns + l[1].offset_ns - 1000 * MS) / 10000;
    }
    l[1].head.clock[0] = (struct joule_waits_clock){1000 * MS - l[1].offset_ns,
                                                    l[1].offset_ns, 3000};
    l[1].head.clock[1] = (struct joule_waits_clock){
        1000 * MS - l[1].offset_ns + 1000 * MS - 1000 * MS / 10000,
        l[1].offset_ns + 1000 * MS / 10000, 8000};
    write_log(&l[0]);
    write_log(&l[1]);
    make_and_read();
    ck_assert_uint_ge(waited_ns[JOULE_LATE_SENDER][1], 30 * MS - 3);
    ck_assert_uint_le(waited_ns[JOULE_LATE_SENDER][1], 30 * MS + 3);
    ck_assert_uint_ge(waited_ns[JOULE_WAIT_AT_BARRIER][0], 50 * MS - 3);
    ck_assert_uint_le(waited_ns[JOULE_WAIT_AT_BARRIER][0], 50 * MS + 3);
    ck_assert_uint_eq(facts.clock_ns, 4000);
    ck_assert_str_eq(definitions.process[1].node, "n2");
    joule_definitions_free(&definitions);
}
END_TEST

/* Rank 1 of three has left no log, and rank 2 was killed: what the others did is
 * there. */
START_TEST(missing)
{
    struct log l[2] = {new_log(0, 3), new_log(2, 3)};

    put_waits(l);
    l[0].record[0].peer = 2;
    l[1].head.state = JOULE_WAITS_RUNS;
    l[1].head.end_ns = 0;
    write_log(&l[0]);
    write_log(&l[1]);
    make_and_read();
    ck_assert_uint_eq(facts.missing, 1);
    ck_assert_uint_eq(facts.killed, 1);
    ck_assert_uint_eq(waited_ns[JOULE_LATE_SENDER][2], 30 * MS);
    ck_assert_uint_eq(definitions.processes, 3);
    joule_definitions_free(&definitions);
}
END_TEST

/* One that is cut short is left out, and left. */
START_TEST(unreadable)
{
    struct log l[2] = {new_log(0, 3), new_log(2, 3)};
    char path[300];

    put_waits(l);
    l[0].record[0].peer = 2;
    write_log(&l[0]);
    write_log(&l[1]);
    snprintf(path, sizeof(path), "%s/n.1.waits", directory);
    ck_assert_int_eq(fclose(fopen(path, "w")), 0);
    make_and_read();
    ck_assert_uint_eq(facts.unreadable, 1);
    ck_assert_ptr_nonnull(strstr(facts.first_unreadable.text, "cut short"));
    ck_assert_uint_eq(facts.missing, 0);
    ck_assert_uint_eq(waited_ns[JOULE_LATE_SENDER][2], 30 * MS);
    ck_assert_int_eq(access(path, F_OK), 0);
    joule_definitions_free(&definitions);
}
END_TEST

/* Where ranks are in MPI_COMM_WORLD is known without their logs; in a communicator
 * of all if there is one that can be there, and one place. */
START_TEST(places)
{
    for (uint32_t ranks = 3; ranks <= 4; ranks++) {
        struct log l[2] = {new_log(0, ranks), new_log(1, ranks)};

        put_waits(l);
        for (int i = 0; i < 2; i++) {
            l[i].comm[l[i].comms++] = (struct joule_waits_comm){
                .id = 6, .comm = 1, .rank = i, .size = (int32_t)ranks};
            l[i].record[1].comm = 1; /* the barrier */
            write_log(&l[i]);
        }
        make_and_read();
        ck_assert_uint_eq(facts.missing, ranks - 2);
        ck_assert_uint_eq(facts.unplaced, ranks - 3);
        ck_assert_uint_eq(definitions.comms, 2 - facts.unplaced);
        ck_assert_uint_eq(waited_ns[JOULE_LATE_SENDER][1], 30 * MS);
        joule_definitions_free(&definitions);
        teardown();
        setup();
    }
}
END_TEST

/* A log that is damaged may have had the communicator, too. */
START_TEST(damaged)
{
    struct log l[2] = {new_log(0, 3), new_log(2, 3)};
    char path[300];

    put_waits(l);
    l[0].record[0].peer = 2;
    l[0].comm[l[0].comms++] =
        (struct joule_waits_comm){.id = 6, .comm = 1, .rank = 0, .size = 2};
    write_log(&l[0]);
    write_log(&l[1]);
    snprintf(path, sizeof(path), "%s/n.2.waits", directory);
    ck_assert_int_eq(truncate(path, (off_t)(sizeof(l[1].head) + 200)), 0);
    must_make();
    ck_assert_uint_eq(facts.damaged, 1);
    ck_assert_uint_eq(facts.unplaced, 1);
}
END_TEST

/* Regions that overlap, and a caller. */
START_TEST(regions)
{
    struct log l[2] = {new_log(0, 2), new_log(1, 2)};
    const struct joule_waits_record begin = {.kind = JOULE_WAITS_REGION_BEGIN};
    struct joule_waits_record r = begin;

    l[1].names = 2;
    l[1].name[0] = (struct joule_waits_text){1, 5, "outer"};
    l[1].name[1] = (struct joule_waits_text){2, 5, "inner"};
    r.name = 1;
    put(&l[1], 0, 1010 * MS, 1010 * MS, r);
    r.name = 2;
    put(&l[1], 0, 1020 * MS, 1020 * MS, r);
    r.kind = JOULE_WAITS_REGION_END;
    r.name = 1; /* inner goes on */
    put(&l[1], 0, 1030 * MS, 1030 * MS, r);
    r.name = 1; /* never began */
    put(&l[1], 0, 1040 * MS, 1040 * MS, r);
    put_waits(l);
    l[1].record[l[1].records - 1].name = 1; /* the barrier's caller */
    write_log(&l[0]);
    write_log(&l[1]);
    make_and_read();
    ck_assert_uint_eq(found, 2);
    for (unsigned i = 0; i < found; i++)
        ck_assert_msg(strcmp(paths[i], "inner/MPI_Recv") == 0 ||
                          strcmp(paths[i], "MPI_Barrier") == 0,
                      "%s", paths[i]);
    joule_definitions_free(&definitions);
}
END_TEST

/* Numbers that are out of all range. */
START_TEST(nonsense)
{
    struct log l[2] = {new_log(0, 2), new_log(1, 2)};

    put_waits(l);
    put(&l[0], 255, 1300 * MS, 1310 * MS, (struct joule_waits_record){0});
    put(&l[0], JOULE_MPI_Wait, 1310 * MS, 1300 * MS,
        (struct joule_waits_record){.kind = 200});
    put(&l[0], JOULE_MPI_Send, 1320 * MS, 1330 * MS,
        (struct joule_waits_record){
            .kind = JOULE_WAITS_SEND, .comm = 77, .peer = -5, .name = 900});
    put(&l[0], JOULE_MPI_Waitall, 1340 * MS, 1350 * MS,
        (struct joule_waits_record){.kind = JOULE_WAITS_COLLECTIVE_DONE,
                                    .tag = 100000});
    l[0].comms = 3;
    l[0].comm[1] = (struct joule_waits_comm){.id = 9, .rank = 5, .size = 2};
    l[0].comm[2] = (struct joule_waits_comm){.id = 9, .rank = -1, .size = 90};
    write_log(&l[0]);
    write_log(&l[1]);
    make_and_read();
    ck_assert_uint_eq(waited_ns[JOULE_LATE_SENDER][1], 30 * MS);
    joule_definitions_free(&definitions);
}
END_TEST

/* Times out of all range: no sum of them overflows. */
START_TEST(times)
{
    const int64_t end = INT64_C(1) << 60;
    struct log l[2] = {new_log(0, 2), new_log(1, 2)};

    put_waits(l);
    l[0].record[0].enter_ns = INT64_MIN;
    l[0].record[0].leave_ns = INT64_MAX;
    l[1].record[1].leave_ns = INT64_MAX;
    l[1].head.machine = 2;
    l[1].head.begin_ns = -end;
    l[1].head.end_ns = end;
    l[1].head.clock[0] = (struct joule_waits_clock){end - 1, end, 3000};
    l[1].head.clock[1] = (struct joule_waits_clock){end, -end, 3000};
    write_log(&l[0]);
    write_log(&l[1]);
    must_make();
}
END_TEST

/* One log does not make files of a million ranks, nor a list of them for each of its
 * communicators. */
START_TEST(too_many)
{
    struct log l = new_log(7, 1 << 20);
    const size_t comms = 65535;
    struct joule_waits_comm *comm = calloc(comms, sizeof(*comm));
    struct rusage before, after;
    FILE *file;
    char path[300];

    l.head.rank = 0;
    write_log(&l);
    refused("1048575 of 1048576 ranks have left no log");
    l = new_log(0, 1000);
    write_log(&l);
    for (size_t i = 0; i < comms; i++)
        comm[i] = (struct joule_waits_comm){
            .id = 100 + i, .comm = (uint32_t)i + 1, .rank = 0, .size = 1000};
    snprintf(path, sizeof(path), "%s/n.0.waits", directory);
    file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    write_block(file, JOULE_WAITS_COMMS, 0, 0, comm, sizeof(*comm), comms);
    ck_assert_int_eq(fclose(file), 0);
    free(comm);
    getrusage(RUSAGE_SELF, &before);
    must_make();
    getrusage(RUSAGE_SELF, &after);
    ck_assert_uint_eq(facts.unplaced, comms);
    ck_assert_int_lt(after.ru_maxrss - before.ru_maxrss, 300 * 1024);
}
END_TEST

/* Threads have locations if they have records, and no more than a program has. */
START_TEST(threads)
{
    struct log l = new_log(0, 1);

    put(&l, JOULE_MPI_Barrier, 1010 * MS, 1020 * MS,
        (struct joule_waits_record){0});
    put(&l, JOULE_MPI_Barrier, 1010 * MS, 1020 * MS,
        (struct joule_waits_record){0});
    put(&l, JOULE_MPI_Barrier, 1010 * MS, 1020 * MS,
        (struct joule_waits_record){0});
    l.thread[1] = 4000;
    l.thread[2] = 65534;
    write_log(&l);
    make_and_read();
    ck_assert_uint_eq(locations, 2);
    ck_assert_uint_eq(facts.damaged, 1);
    joule_definitions_free(&definitions);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace archive");
    TCase *tc = tcase_create("core");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, two_ranks);
    tcase_add_test(tc, full_disk);
    tcase_add_test(tc, clocks);
    tcase_add_test(tc, missing);
    tcase_add_test(tc, unreadable);
    tcase_add_test(tc, places);
    tcase_add_test(tc, damaged);
    tcase_add_test(tc, regions);
    tcase_add_test(tc, nonsense);
    tcase_add_test(tc, times);
    tcase_add_test(tc, too_many);
    tcase_add_test(tc, threads);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

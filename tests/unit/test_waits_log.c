/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a process of an MPI program records, and what is read of its log. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/waits/recorder.h"
#include "lib/waits/requests.h"
#include "tests/unit/dice.h"
#include "tests/unit/tree.h"
#include "tools/waits/recorded_log.h"

static struct tree tree;
static struct joule_error err;
static struct joule_recorded_logs logs;
static char directory[256];

static void setup(void)
{
    tree_create(&tree);
    snprintf(directory, sizeof(directory), "%s/waits", tree.path);
    setenv("JOULE_WAITS_DIR", directory, 1);
    setenv("JOULE_WAITS_MEMORY", "1", 1);
}

static void teardown(void)
{
    joule_recorded_close(&logs);
    tree_destroy(&tree);
}

static struct joule_waits_head head_of(uint32_t rank, uint32_t size)
{
    return (struct joule_waits_head){
        .magic = JOULE_WAITS_MAGIC,
        .version = JOULE_WAITS_VERSION,
        .head_bytes = sizeof(struct joule_waits_head),
        .record_bytes = sizeof(struct joule_waits_record),
        .rank = rank,
        .size = size,
        .pid = (uint32_t)getpid(),
        .node = "n1",
        .program = "test",
    };
}

/* In any thread of any process: without Check. */
static void record(uint32_t number)
{
    struct joule_waits_thread *thread = joule_recorder_enter();

    if (!thread)
        abort();
    *joule_recorder_add(thread) = (struct joule_waits_record){
        .enter_ns = number, .leave_ns = number, .request = number};
    joule_recorder_added(thread);
    joule_recorder_leave(thread);
}

/* In a process of its own: the recorder is begun once in each. */
static int in_child(void (*run)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        run();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static void must_open(void)
{
    ck_assert_msg(joule_recorded_open(directory, &logs, &err) == 0, "%s",
                  err.text);
}

struct sum {
    uint64_t count;
    uint32_t next;
};

static int take(void *arg, const struct joule_waits_record *r, size_t count)
{
    struct sum *sum = arg;

    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_ge(r[i].request, sum->next);
        sum->next = r[i].request + 1;
    }
    sum->count += count;
    return 0;
}

static struct sum sum_of(uint32_t thread)
{
    struct sum sum = {0};

    ck_assert_int_eq(
        joule_recorded_read(&logs.log[0], thread, take, &sum, &err), 0);
    return sum;
}

/* ---- the recorder ---- */

#define THREADS 4
#define EACH    3000

/* All at once: none has another's id. */
static pthread_barrier_t all_threads;

static void *run_thread(void *arg)
{
    for (uint32_t i = 0; i < EACH; i++)
        record(i);
    pthread_barrier_wait(&all_threads);
    return arg;
}

static void run_threads(void)
{
    struct joule_waits_head head = head_of(0, 1);
    pthread_t thread[THREADS];

    if (joule_recorder_start(&head) < 0)
        _exit(1);
    pthread_barrier_init(&all_threads, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, run_thread, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    if (joule_recorder_comm(77, 0, 1) != 0 ||
        joule_recorder_comm(78, 0, 1) != 1 ||
        joule_recorder_name("solve", 5) != 1 ||
        joule_recorder_name("", 0) != 2 || joule_recorder_name("solve", 5) != 1)
        _exit(2);
    joule_recorder_stop(JOULE_WAITS_FINALIZED, NULL);
    if (joule_recorder_enter())
        _exit(3);
}

START_TEST(threads)
{
    ck_assert_int_eq(in_child(run_threads), 0);
    must_open();
    ck_assert_uint_eq(logs.logs, 1);
    ck_assert_uint_eq(logs.log[0].head.state, JOULE_WAITS_FINALIZED);
    ck_assert_uint_eq(logs.log[0].head.lost, 0);
    ck_assert_uint_eq(logs.log[0].threads, THREADS);
    for (uint32_t t = 0; t < THREADS; t++)
        ck_assert_uint_eq(sum_of(t).count, EACH);
    ck_assert_uint_eq(logs.log[0].comms, 2);
    ck_assert_uint_eq(logs.log[0].comm[1].id, 78);
    ck_assert_uint_eq(logs.log[0].names, 2);
    ck_assert_str_eq(logs.log[0].name[0].text, "solve");
    ck_assert_str_eq(logs.log[0].name[1].text, "");
}
END_TEST

/* One after the other: more than there are blocks. */
#define PASSING 300

static void *run_passing(void *arg)
{
    for (uint32_t i = 0; i < 10; i++)
        record(*(uint32_t *)arg * 10 + i);
    return NULL;
}

static void run_passing_threads(void)
{
    struct joule_waits_head head = head_of(0, 1);
    pthread_t thread;

    if (joule_recorder_start(&head) < 0)
        _exit(1);
    for (uint32_t i = 0; i < PASSING; i++) {
        pthread_create(&thread, NULL, run_passing, &i);
        pthread_join(thread, NULL);
        usleep(1000);
    }
    joule_recorder_stop(JOULE_WAITS_FINALIZED, NULL);
}

START_TEST(passing_threads)
{
    struct sum sum;

    ck_assert_int_eq(in_child(run_passing_threads), 0);
    must_open();
    ck_assert_uint_eq(logs.log[0].head.threads, 1);
    ck_assert_uint_eq(logs.log[0].threads, 1);
    sum = sum_of(0);
    ck_assert_uint_eq(sum.count + logs.log[0].head.lost, PASSING * 10);
    /* Each had one of 15 blocks, unless the writer did not come to run for long. */
    ck_assert_uint_gt(sum.count, 1000);
}
END_TEST

#define BURST 300000

/* More than a MiB at once: what the disk does not take in time is lost. */
static void run_burst(void)
{
    struct joule_waits_head head = head_of(0, 1);

    if (joule_recorder_start(&head) < 0)
        _exit(1);
    for (uint32_t i = 0; i < BURST; i++)
        record(i);
    joule_recorder_stop(JOULE_WAITS_FINALIZED, NULL);
}

START_TEST(burst)
{
    ck_assert_int_eq(in_child(run_burst), 0);
    must_open();
    ck_assert_uint_eq(sum_of(0).count + logs.log[0].head.lost, BURST);
}
END_TEST

static void run_full(void)
{
    struct rlimit limit = {100000, 100000};

    setrlimit(RLIMIT_FSIZE, &limit);
    run_burst();
}

START_TEST(full_disk)
{
    /* No signal, and what is there can be read. */
    ck_assert_int_eq(in_child(run_full), 0);
    must_open();
    ck_assert_int_eq(logs.log[0].head.error, EFBIG);
    ck_assert_uint_eq(sum_of(0).count + logs.log[0].head.lost, BURST);
    ck_assert_uint_gt(sum_of(0).count, 0);
}
END_TEST

static void run_killed(void)
{
    struct joule_waits_head head = head_of(0, 1);

    if (joule_recorder_start(&head) < 0)
        _exit(1);
    for (uint32_t i = 0; i < 2000; i++)
        record(i);
    usleep(2500000);
    raise(SIGKILL);
}

START_TEST(killed)
{
    ck_assert(WIFSIGNALED(in_child(run_killed)));
    must_open();
    ck_assert_uint_eq(logs.log[0].head.state, JOULE_WAITS_RUNS);
    ck_assert_uint_eq(sum_of(0).count, 2000);
    ck_assert_int_eq(logs.log[0].end_ns, 1999);
}
END_TEST

/* The program closes what it does not know, and opens something else there. */
static void run_closed(void)
{
    struct joule_waits_head head = head_of(0, 1);
    char path[300];
    struct stat st;

    if (joule_recorder_start(&head) < 0)
        _exit(1);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    snprintf(path, sizeof(path), "%s/own", tree.path);
    for (int i = 0; i < 20; i++)
        if (!fopen(path, "w"))
            _exit(2);
    for (uint32_t i = 0; i < 5000; i++)
        record(i);
    joule_recorder_stop(JOULE_WAITS_FINALIZED, NULL);
    if (stat(path, &st) < 0 || st.st_size != 0)
        _exit(3);
}

START_TEST(closed)
{
    ck_assert_int_eq(in_child(run_closed), 0);
}
END_TEST

static void run_fork(void)
{
    struct joule_waits_head head = head_of(0, 1);
    int status;
    pid_t pid;

    if (joule_recorder_start(&head) < 0)
        _exit(1);
    record(0);
    pid = fork();
    if (pid == 0)
        exit(joule_recorder_enter() ? 1 : 0);
    if (waitpid(pid, &status, 0) != pid || status)
        _exit(2);
    record(1);
    joule_recorder_pause(true);
    if (!joule_recorder_pauses)
        _exit(3);
    joule_recorder_not_done();
    joule_recorder_pause(false);
    record(2);
    exit(0); /* without MPI_Finalize */
}

START_TEST(forked)
{
    ck_assert_int_eq(in_child(run_fork), 0);
    must_open();
    ck_assert_uint_eq(logs.logs, 1);
    ck_assert_uint_eq(logs.log[0].head.state, JOULE_WAITS_ENDED);
    ck_assert_uint_eq(sum_of(0).count, 3);
    ck_assert_uint_eq(logs.log[0].head.not_done, 0);
}
END_TEST

/* A disk that does not answer. */
static atomic_bool disk_hangs;

ssize_t __real_pwrite(int fd, const void *data, size_t size, off_t at);
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t at);

ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t at)
{
    while (atomic_load(&disk_hangs))
        pause();
    return __real_pwrite(fd, data, size, at);
}

static void run_abort(void)
{
    struct joule_waits_head head = head_of(0, 1);

    if (joule_recorder_start(&head) < 0)
        _exit(1);
    record(0);
    joule_recorder_abort();
}

static void run_abort_hanging(void)
{
    struct joule_waits_head head = head_of(0, 1);

    if (joule_recorder_start(&head) < 0)
        _exit(1);
    record(0);
    atomic_store(&disk_hangs, true);
    alarm(30);
    joule_recorder_abort();
    joule_recorder_stop(JOULE_WAITS_ENDED, NULL);
}

START_TEST(aborted)
{
    ck_assert_int_eq(in_child(run_abort), 0);
    must_open();
    ck_assert_uint_eq(logs.log[0].head.state, JOULE_WAITS_ENDED);
    ck_assert_uint_eq(sum_of(0).count, 1);
    ck_assert_int_eq(in_child(run_abort_hanging), 0);
}
END_TEST

/* ---- requests ---- */

START_TEST(requests)
{
    struct joule_request r = {.is_active = true}, got;

    joule_requests_begin(true);
    ck_assert(!joule_requests_take(5, &got));
    for (int i = 0; i < 3; i++) {
        r.tag = i;
        ck_assert(joule_requests_add(5, &r));
    }
    r.tag = 9;
    ck_assert(joule_requests_add(6, &r));
    /* Of one handle the oldest. */
    for (int i = 0; i < 3; i++) {
        ck_assert(joule_requests_take(5, &got));
        ck_assert_int_eq(got.tag, i);
    }
    ck_assert(!joule_requests_take(5, &got));
    ck_assert(joule_requests_take(6, &got));
    /* A persistent one stays. */
    r.is_persistent = true;
    r.is_active = false;
    ck_assert(joule_requests_add(7, &r));
    ck_assert(!joule_requests_take(7, &got));
    for (int i = 0; i < 2; i++) {
        uint32_t number = got.number;

        ck_assert(joule_requests_start(7, &got));
        ck_assert_uint_ne(got.number, number);
        ck_assert(joule_requests_take(7, &got));
        ck_assert(!joule_requests_take(7, &got));
    }
    joule_requests_drop(7);
    ck_assert(!joule_requests_start(7, &got));
}
END_TEST

/* A million of one handle take no time, and all are there. */
START_TEST(many_requests)
{
    struct joule_request r = {.is_active = true}, got;
    uint32_t first, count = 0;

    ck_assert(joule_requests_add(1, &r));
    first = r.number;
    while (joule_requests_add(1, &r))
        count++;
    ck_assert_uint_gt(count, 1000000);
    for (uint32_t i = 0; i <= count; i++) {
        ck_assert(joule_requests_take(1, &got));
        if (got.number != first + i)
            ck_abort_msg("%u", i);
    }
    ck_assert(!joule_requests_take(1, &got));
}
END_TEST

START_TEST(messages)
{
    joule_messages_add(&(struct joule_message){3, 1, 2, 4});
    ck_assert_int_eq(joule_messages_take(3).tag, 4);
    ck_assert_uint_eq(joule_messages_take(3).comm, JOULE_WAITS_NO_COMM);
}
END_TEST

/* ---- logs that are none ---- */

static void put_log(const char *name, const struct joule_waits_head *head,
                    const void *rest, size_t size)
{
    char path[400];
    FILE *file;

    mkdir(directory, 0755);
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(head, sizeof(*head), 1, file), 1);
    ck_assert_uint_eq(fwrite(rest, 1, size, file), size);
    fclose(file);
}

static void refused(int error, const char *text)
{
    ck_assert_int_eq(joule_recorded_open(directory, &logs, &err), -1);
    ck_assert_int_eq(errno, error);
    ck_assert_msg(strstr(err.text, text), "%s", err.text);
}

/* b.waits is read without a.waits. */
static void left_out(const char *text)
{
    must_open();
    ck_assert_uint_eq(logs.logs, 1);
    ck_assert_uint_eq(logs.unreadable, 1);
    ck_assert_msg(strstr(logs.first_unreadable.text, text), "%s",
                  logs.first_unreadable.text);
    joule_recorded_close(&logs);
}

START_TEST(other_files)
{
    struct joule_waits_head head = head_of(0, 1);
    char path[400];

    refused(ENOENT, "cannot open");
    mkdir(directory, 0755);
    refused(ENOENT, "has no logs");
    head.version++;
    put_log("a.waits", &head, "", 0);
    refused(EINVAL, "no log of this version");
    head = head_of(3, 3);
    put_log("a.waits", &head, "", 0);
    refused(EINVAL, "is of rank 3 of 3");
    ck_assert_int_eq(joule_recorded_state_of(directory),
                     JOULE_RECORDED_DAMAGED);
    head = head_of(0, 1);
    head.clock[1].offset_ns = INT64_MIN;
    put_log("a.waits", &head, "", 0);
    refused(EINVAL, "times out of all range");
    head = head_of(0, 1);
    put_log("a.waits", &head, "", 0);
    put_log("b.waits", &head, "", 0);
    refused(EINVAL, "were not one MPI program");
    head = head_of(0, 2);
    put_log("b.waits", &head, "", 0);
    refused(EINVAL, "runs of");
    put_log("a.waits", &head, "", 0);
    refused(EINVAL, "are both of rank 0");
    head.job = 12;
    head.step = 3;
    put_log("a.waits", &head, "", 0);
    refused(EINVAL, "each step wants a directory of its own");
    head.job = head.step = 0;
    put_log("a.waits", &head, "", 0);
    snprintf(path, sizeof(path), "%s/a.waits", directory);
    ck_assert_int_eq(truncate(path, 50), 0);
    left_out("cut short");
    ck_assert_int_eq(truncate(path, 0), 0);
    left_out("cut short");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0644), 0);
    left_out("is no file");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink("b.waits", path), 0);
    left_out("cannot open");
    ck_assert_int_eq(joule_recorded_state_of(directory), JOULE_RECORDED_RUNS);
}
END_TEST

static int take_any(void *arg, const struct joule_waits_record *r, size_t count)
{
    uint64_t *sum = arg;

    for (size_t i = 0; i < count; i++)
        *sum += r[i].request;
    return 0;
}

/* Blocks of a log, and anything in them. */
START_TEST(damage)
{
    struct {
        struct joule_waits_block block[2];
        struct joule_waits_record record[40];
        struct joule_waits_block comms;
        struct joule_waits_comm comm[5];
        struct joule_waits_block names;
        struct joule_waits_text name[3];
    } rest = {.block = {{JOULE_WAITS_RECORDS, 0, 0, 0, 0},
                        {JOULE_WAITS_RECORDS, 1, 0, 40, 0}},
              .comms = {JOULE_WAITS_COMMS, 0, 0, 5, 0},
              .names = {JOULE_WAITS_NAMES, 0, 0, 3, 0}};
    struct joule_waits_head head = head_of(0, 1);
    uint64_t seed = dice_seed();

    for (int i = 0; i < dice_rounds(2000); i++) {
        unsigned char *bytes = (unsigned char *)&rest, before;
        size_t at = dice64(&seed) % sizeof(rest);
        uint64_t sum = 0;

        before = bytes[at];
        bytes[at] = (unsigned char)dice64(&seed);
        put_log("a.waits", &head, &rest, dice64(&seed) % (sizeof(rest) + 1));
        must_open();
        ck_assert_uint_le(logs.log[0].threads, 2);
        for (uint32_t t = 0; t < logs.log[0].threads; t++)
            joule_recorded_read(&logs.log[0], t, take_any, &sum, &err);
        for (size_t n = 0; n < logs.log[0].names; n++)
            ck_assert_uint_lt(strlen(logs.log[0].name[n].text),
                              JOULE_WAITS_TEXT);
        joule_recorded_close(&logs);
        bytes[at] = before;
        memset(rest.record, 0, sizeof(rest.record));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("waits log");
    TCase *recorder = tcase_create("recorder"), *log = tcase_create("log"),
          *request = tcase_create("requests");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(recorder, setup, teardown);
    tcase_add_test(recorder, threads);
    tcase_add_test(recorder, passing_threads);
    tcase_add_test(recorder, burst);
    tcase_add_test(recorder, full_disk);
    tcase_add_test(recorder, killed);
    tcase_add_test(recorder, closed);
    tcase_add_test(recorder, forked);
    tcase_add_test(recorder, aborted);
    suite_add_tcase(suite, recorder);
    tcase_add_test(request, requests);
    tcase_add_test(request, many_requests);
    tcase_add_test(request, messages);
    suite_add_tcase(suite, request);
    tcase_add_checked_fixture(log, setup, teardown);
    tcase_add_test(log, other_files);
    tcase_add_test(log, damage);
    suite_add_tcase(suite, log);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

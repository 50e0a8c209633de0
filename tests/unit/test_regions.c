/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Regions that processes record with lib/joule.h, and what slurmstepd makes of
 * them: the whole way from a call to a row of the profile log. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "lib/joule.h"
#include "lib/segment.h"
#include "tests/unit/dice.h"
#include "tests/unit/regionstep.h"

#define MS JOULE_NS_PER_MS

static struct joule_error err;

static void sleep_ms(int64_t ms)
{
    joule_sleep_ns(ms * MS);
}

static void is_about(uint64_t ns, double ms, double more)
{
    ck_assert_msg((double)ns >= ms * 1e6 && (double)ns <= (ms + more) * 1e6,
                  "%.3f ms instead of %g to %g", (double)ns / 1e6, ms,
                  ms + more);
}

/* ---- tests ---- */

static void two_regions(void)
{
    joule_region_begin("outer");
    sleep_ms(20);
    joule_region_begin("inner");
    sleep_ms(50);
    joule_region_end("inner");
    joule_region_end("outer");
    joule_mark("here");
    if (strcmp(joule_status(), "recording") != 0)
        _exit(1);
}

START_TEST(nested)
{
    struct region_sum outer, inner;

    regionstep_run(two_regions);
    regionstep_end();
    outer = regionstep_sum("outer");
    inner = regionstep_sum("inner");
    ck_assert_uint_eq(outer.rows, 1);
    ck_assert_uint_eq(inner.rows, 1);
    ck_assert_uint_eq(regionstep_sum("here").rows, 1);
    is_about(inner.time, 50, 200);
    is_about(outer.time - inner.time, 20, 200);
    for (size_t i = 0; i < step.row_count; i++) {
        bool is_inner = strcmp(step.names[step.rows[i].region], "inner") == 0;

        ck_assert_uint_eq(step.rows[i].depth, is_inner);
        if (step.rows[i].kind == JOULE_REGION_ENDED)
            ck_assert_uint_eq(step.rows[i].time,
                              step.rows[i].end - step.rows[i].begin);
    }
    ck_assert_uint_eq(step.process_count, 1);
    ck_assert_uint_eq(step.processes[0].rank, 3);
    ck_assert_uint_eq(step.processes[0].lost, 0);
}
END_TEST

static void badly_paired(void)
{
    joule_region_end("never begun");
    joule_region_begin("a");
    joule_region_begin("b");
    joule_region_end("a"); /* overlapping */
    joule_region_end("b");
    joule_region_end("b");
    joule_region_begin("a");
    joule_region_begin("a"); /* in itself */
    joule_region_end("a");
    joule_region_end("a");
    joule_region_begin(NULL);
    joule_mark(NULL);
    joule_region_end(NULL); /* there is none */
    joule_region_begin("c");
    joule_region_begin("d");
    joule_region_end(NULL);
    joule_region_end("c");
    for (int i = 0; i < 40; i++)
        joule_region_begin("deep");
    for (int i = 0; i < 40; i++)
        joule_region_end("deep");
}

START_TEST(pairing)
{
    regionstep_run(badly_paired);
    regionstep_end();
    ck_assert_uint_eq(regionstep_sum("a").count, 3);
    ck_assert_uint_eq(regionstep_sum("b").count, 1);
    ck_assert_uint_eq(regionstep_sum("deep").count, JOULE_REGION_DEPTH);
    ck_assert_uint_eq(step.processes[0].too_deep, 8);
    ck_assert_uint_eq(regionstep_sum("c").count, 1);
    ck_assert_uint_eq(regionstep_sum("d").count, 1);
    ck_assert_uint_eq(step.processes[0].without_begin, 3);
}
END_TEST

#define CALLS 200000

static void hot_loop(void)
{
    for (int i = 0; i < CALLS; i++) {
        joule_region_begin("loop");
        joule_region_begin("part");
        joule_region_end("part");
        joule_region_end("loop");
    }
}

/* The number of rows is bounded by time. */
START_TEST(folded)
{
    int64_t begin_ns = joule_deadline_now(), ms;
    struct region_sum loop, part;

    regionstep_run(hot_loop);
    ms = (joule_deadline_now() - begin_ns) / MS;
    regionstep_end();
    loop = regionstep_sum("loop");
    part = regionstep_sum("part");
    ck_assert_uint_eq(loop.count, CALLS);
    ck_assert_uint_eq(part.count, CALLS);
    ck_assert_uint_le(part.time, loop.time);
    ck_assert_uint_le(loop.time, (uint64_t)(ms * MS));
    ck_assert_uint_le(loop.rows, (uint64_t)(ms / 8 + 3));
}
END_TEST

static void never_ends(void)
{
    joule_region_begin("done");
    sleep_ms(10);
    joule_region_end("done");
    joule_region_begin("endless");
    for (;;)
        pause();
}

START_TEST(killed)
{
    pid_t pid = regionstep_start(never_ends);

    sleep_ms(300);
    kill(pid, SIGKILL);
    regionstep_wait(pid);
    regionstep_end();
    ck_assert_uint_eq(regionstep_sum("done").count, 1);
    ck_assert_uint_eq(regionstep_sum("endless").unended, 1);
    is_about(regionstep_sum("endless").time, 200, 500);
}
END_TEST

/* The process is gone for a while when its memory is read. */
START_TEST(killed_early)
{
    pid_t pid = regionstep_start(never_ends);

    sleep_ms(300);
    kill(pid, SIGKILL);
    regionstep_wait(pid);
    sleep_ms(1500);
    regionstep_end();
    ck_assert_uint_eq(regionstep_sum("endless").unended, 1);
    is_about(regionstep_sum("endless").time, 200, 1700);
}
END_TEST

static const struct itimerval soon = {{0, 0}, {0, 50}};

/* Each signal of a timer comes with a name that is new, as the program's are; the
 * next one 50 us after its end. */
static void on_timer(int number)
{
    static int count;
    char name[32];

    (void)number;
    snprintf(name, sizeof(name), "signal %d", count++ % 400);
    joule_region_begin(name);
    joule_region_end(name);
    setitimer(ITIMER_REAL, &soon, NULL);
}

static void interrupted_body(void)
{
    char name[32];

    signal(SIGALRM, on_timer);
    setitimer(ITIMER_REAL, &soon, NULL);
    for (int i = 0; i < 400; i++) {
        snprintf(name, sizeof(name), "name %d", i);
        joule_region_begin(name);
        joule_region_end(name);
    }
    signal(SIGALRM, SIG_IGN);
    if (strcmp(joule_status(), "recording") != 0)
        _exit(1);
}

START_TEST(interrupted)
{
    for (int i = 0; i < 20; i++)
        regionstep_run(interrupted_body);
    regionstep_end();
    ck_assert_uint_eq(step.process_count, 20);
    ck_assert_uint_eq(regionstep_sum("name 399").count, 20);
}
END_TEST

static void forking(void)
{
    pid_t pid;

    joule_region_begin("parent");
    pid = fork();
    if (pid == 0) {
        joule_region_end("parent"); /* not the child's */
        joule_region_begin("child");
        joule_region_end("child");
        _exit(strcmp(joule_status(), "recording") != 0);
    }
    if (regionstep_wait(pid) != 0)
        _exit(1);
    joule_region_end("parent");
}

START_TEST(forked)
{
    regionstep_run(forking);
    regionstep_end();
    ck_assert_uint_eq(step.process_count, 2);
    ck_assert_uint_eq(regionstep_sum("parent").count, 1);
    ck_assert_uint_eq(regionstep_sum("child").count, 1);
    ck_assert_uint_eq(
        step.processes[0].without_begin + step.processes[1].without_begin, 1);
}
END_TEST

#define THREADS      300 /* more than a segment has room for */
#define THREADS_LONG 1000

static pthread_barrier_t all_there;

static int thread_count(void)
{
    return getenv("JOULE_TEST_LONG") ? THREADS_LONG : THREADS;
}

static void *thread_body(void *arg)
{
    joule_region_begin("thread");
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < 10; i++) {
        joule_region_begin("work");
        joule_region_end("work");
    }
    joule_region_end("thread");
    if (arg)
        joule_region_begin("left open");
    return NULL;
}

/* As a program of its own: the thread sanitizer takes no threads after fork. */
static void run_threads(void)
{
    execl("/proc/self/exe", "test_regions", "threads", NULL);
    _exit(127);
}

static void many_threads(void)
{
    static pthread_t threads[THREADS_LONG];
    int count = thread_count();
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    pthread_barrier_init(&all_there, NULL, (unsigned)count);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], &attr, thread_body,
                           i % 100 == 0 ? threads : NULL) != 0)
            _exit(1);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

START_TEST(threads)
{
    regionstep_run(run_threads);
    regionstep_end();
    ck_assert_uint_eq(regionstep_sum("thread").count, thread_count());
    ck_assert_uint_eq(regionstep_sum("work").count, 10 * thread_count());
    ck_assert_uint_eq(regionstep_sum("left open").unended,
                      thread_count() / 100);
    ck_assert_uint_eq(step.process_count, 1);
}
END_TEST

static char odd_name[] = "a\tb\x1b[31m\xff,\"\n=x";

static void many_names(void)
{
    char name[1024];

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    joule_region_begin(name);
    joule_region_end(name);
    joule_region_begin(odd_name);
    joule_region_end(odd_name);
    joule_region_begin("");
    joule_region_end("");
    /* One buffer, another text each time. */
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "name %d", i);
        joule_region_begin(name);
        joule_region_end(name);
    }
}

START_TEST(any_name)
{
    char longest[JOULE_REGION_NAME_MAX + 1];

    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    regionstep_run(many_names);
    regionstep_end();
    ck_assert_uint_eq(regionstep_sum(longest).count, 1);
    ck_assert_uint_eq(regionstep_sum(odd_name).count, 1);
    ck_assert_uint_eq(regionstep_sum("").count, 1);
    ck_assert_uint_eq(regionstep_sum("name 7").count, 1);
    ck_assert_uint_eq(regionstep_sum("name 1019").count, 1);
    ck_assert_uint_eq(regionstep_sum("name 1020").count, 0);
    ck_assert_uint_eq(regionstep_sum(JOULE_OTHER_NAMES).count, 980);
    ck_assert_uint_eq(step.processes[0].without_name, 980);
}
END_TEST

#define MARKS 200000

static void mark_much(void)
{
    for (int i = 0; i < MARKS; i++)
        joule_mark(i % 2 ? "odd" : "even");
}

/* Marks are not folded: what has no room is in the sum of its name. */
START_TEST(overrun)
{
    struct region_sum odd, even;

    regionstep_run(mark_much);
    regionstep_end();
    odd = regionstep_sum("odd");
    even = regionstep_sum("even");
    ck_assert_uint_eq(odd.count, MARKS / 2);
    ck_assert_uint_eq(even.count, MARKS / 2);
    ck_assert_uint_eq(odd.lost, 1);
    ck_assert_uint_ge(step.processes[0].lost, 1000);
    ck_assert_uint_eq(odd.rows + even.rows - 2 + step.processes[0].lost, MARKS);
}
END_TEST

static void burn(void)
{
    int64_t end_ns = joule_deadline_in(400 * MS);

    joule_region_begin("burn");
    while (joule_deadline_left(end_ns) > 0)
        continue;
    joule_region_end("burn");
    sleep_ms(300);
}

START_TEST(cpu_time)
{
    regionstep_run(burn);
    regionstep_end();
    /* A busy machine gives it less of the time. */
    is_about(step.cpu_ns[0], 50, 360);
    ck_assert_uint_ge(step.cpu_rows, 3);
    ck_assert_uint_le(step.cpu_rows, 71);
}
END_TEST

/* Two processes whose use of CPUs changes at other moments: rows of each are in
 * the order of their times. */
static void burn_in_turns(void)
{
    for (int i = 0; i < 4; i++) {
        int64_t end_ns = joule_deadline_in((30 + 13 * (getpid() % 2)) * MS);

        joule_region_begin("burn");
        while (joule_deadline_left(end_ns) > 0)
            continue;
        joule_region_end("burn");
        sleep_ms(30);
    }
}

START_TEST(cpu_times)
{
    pid_t a = regionstep_start(burn_in_turns);
    pid_t b = regionstep_start(burn_in_turns);

    ck_assert_int_eq(regionstep_wait(a), 0);
    ck_assert_int_eq(regionstep_wait(b), 0);
    regionstep_end();
    ck_assert_uint_ge(step.cpu_rows, 8);
}
END_TEST

#define TASKS    200
#define TOGETHER 20 /* the queue of a socket has room for ten */

static void short_task(void)
{
    joule_region_begin("short");
    joule_region_end("short");
}

START_TEST(many_processes)
{
    pid_t pids[TOGETHER];
    unsigned fds = tree_open_fds();

    for (int i = 0; i < TASKS; i += TOGETHER) {
        for (int k = 0; k < TOGETHER; k++)
            pids[k] = regionstep_start(short_task);
        for (int k = 0; k < TOGETHER; k++)
            ck_assert_int_eq(regionstep_wait(pids[k]), 0);
    }
    /* They are let go of while the step runs. */
    for (int i = 0; i < 300 && tree_open_fds() > fds + 2; i++)
        sleep_ms(10);
    ck_assert_uint_le(tree_open_fds(), fds + 2); /* the log and its directory */
    regionstep_end();
    ck_assert_uint_eq(step.process_count, TASKS);
    ck_assert_uint_eq(regionstep_sum("short").count, TASKS);
}
END_TEST

/* slurmstepd has descriptors for two of them. */
START_TEST(no_room)
{
    struct rlimit limit, before;
    char log[256];
    pid_t pids[5];

    regionstep_end();
    snprintf(log, sizeof(log), "%s/me/7_0_n1.log", step.dir);
    ck_assert_int_eq(unlink(log), 0);
    getrlimit(RLIMIT_NOFILE, &before);
    limit = (struct rlimit){256 + 2 * 2 + 1, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
    regionstep_begin();
    for (int i = 0; i < 5; i++)
        pids[i] = regionstep_start(never_ends);
    sleep_ms(500);
    for (int i = 0; i < 5; i++) {
        kill(pids[i], SIGKILL);
        regionstep_wait(pids[i]);
    }
    regionstep_end();
    setrlimit(RLIMIT_NOFILE, &before);
    ck_assert_uint_eq(step.refused, 3);
    ck_assert_uint_eq(step.process_count, 2);
    ck_assert_uint_eq(regionstep_sum("done").count, 2);
}
END_TEST

/* A slurmstepd that was killed leaves its socket, which the next one removes. */
START_TEST(stale_socket)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    regionstep_end();
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/n1/regions/6.0",
             step.run_dir);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    regionstep_begin();
    ck_assert_int_eq(access(address.sun_path, F_OK), 0);
    joule_regions_destroy(step.regions);
    step.regions = NULL;
    joule_writer_close(step.writer, JOULE_NS_PER_S);
    close(fd);
    regionstep_begin();
    ck_assert_int_eq(access(address.sun_path, F_OK), -1);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

/* ---- where there is nothing to record ---- */

static void without_job(void)
{
    unsetenv("SLURM_JOB_ID");
    two_regions();
}

static void with_small_files(void)
{
    const struct rlimit limit = {4096, 4096};

    setrlimit(RLIMIT_FSIZE, &limit);
    joule_region_begin("x");
    joule_region_end("x");
    _exit(!strstr(joule_status(), "File too large"));
}

static void without_profile(void)
{
    setenv("SLURM_JOB_ID", "8", 1);
    errno = 77;
    joule_region_begin("x");
    joule_region_end("x");
    _exit(errno != 77 || !strstr(joule_status(), "--profile"));
}

START_TEST(not_recorded)
{
    ck_assert_int_eq(
        WEXITSTATUS(regionstep_wait(regionstep_start(without_job))), 1);
    ck_assert_int_eq(regionstep_wait(regionstep_start(without_profile)), 0);
    ck_assert_int_eq(regionstep_wait(regionstep_start(with_small_files)), 0);
    regionstep_end();
    ck_assert_uint_eq(step.process_count, 0);
    /* A step whose processes record nothing has no such tables. */
    ck_assert_uint_eq(step.name_count, 0);
}
END_TEST

/* ---- what is no library of ours ---- */

/* The [count] files, which are given away; 0: a message without. */
static void send_files(const int *fds, size_t count)
{
    struct joule_hello hello = {JOULE_SEGMENT_MAGIC, JOULE_SEGMENT_VERSION,
                                JOULE_SEGMENT_BYTES};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct iovec text = {&hello, sizeof(hello)};
    union {
        char bytes[CMSG_SPACE(8 * sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr message = {.msg_name = &address,
                             .msg_namelen = sizeof(address),
                             .msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = count ? control.bytes : NULL,
                             .msg_controllen =
                                 count ? CMSG_SPACE(count * sizeof(int)) : 0};
    struct cmsghdr *c = &control.align;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/n1/regions/7.0",
             step.run_dir);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof(int));
    if (count)
        memcpy(CMSG_DATA(c), fds, count * sizeof(int));
    ck_assert_int_eq(sendmsg(fd, &message, MSG_NOSIGNAL), sizeof(hello));
    close(fd);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static void send_file(int fd)
{
    send_files(&fd, 1);
}

static int make_file(off_t size, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    ck_assert_int_eq(ftruncate(fd, size), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

START_TEST(other_files)
{
    const int fixed = F_SEAL_SHRINK | F_SEAL_GROW;
    int pipe_fds[2], many[8];
    unsigned fds = tree_open_fds();

    ck_assert_int_eq(pipe(pipe_fds), 0);
    close(pipe_fds[1]);
    send_file(pipe_fds[0]);
    send_file(open("/dev/zero", O_RDWR | O_CLOEXEC));
    send_file(open(step.tree.path, O_RDONLY | O_CLOEXEC));
    send_file(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
    send_file(make_file(JOULE_SEGMENT_BYTES, 0));
    send_file(make_file(JOULE_SEGMENT_BYTES, F_SEAL_GROW));
    send_file(make_file(4096, fixed));
    send_file(make_file(JOULE_SEGMENT_BYTES, fixed)); /* no magic */
    send_files(NULL, 0);
    for (int i = 0; i < 8; i++)
        many[i] = make_file(JOULE_SEGMENT_BYTES, fixed);
    send_files(many, 2);
    send_files(many + 2, 6);
    regionstep_run(two_regions);
    regionstep_end();
    ck_assert_uint_eq(step.process_count, 1);
    ck_assert_uint_eq(regionstep_sum("inner").count, 1);
    ck_assert_uint_le(tree_open_fds(), fds);
}
END_TEST

static uint64_t odd_number(uint64_t *state)
{
    const uint64_t odd[] = {0, 1, UINT64_MAX, UINT64_MAX / 2, 255, 1023, 1024};

    return dice(state, 2) ? odd[dice(state, 7)] : dice(state, 1 << 20);
}

struct lies {
    size_t regions;
    uint64_t from_ns, now_ns;
};

static uint32_t take_name(void *arg, const char *text)
{
    (void)arg;
    ck_assert_uint_le(strlen(text), JOULE_REGION_NAME_MAX);
    return 0;
}

static void check_region(void *arg, const struct joule_region *region)
{
    struct lies *lies = arg;

    lies->regions++;
    ck_assert_uint_ge(region->count, 1);
    ck_assert_uint_ge(region->begin_ns, lies->from_ns);
    ck_assert_uint_ge(region->end_ns, region->begin_ns);
    ck_assert_uint_le(region->end_ns, lies->now_ns);
    if (region->kind != JOULE_REGION_LOST)
        ck_assert_uint_le(region->time_ns, region->end_ns - region->begin_ns);
    ck_assert_uint_le(region->kind, JOULE_REGION_LOST);
}

/* A segment of which every field may be anything: what comes of it is sound, and
 * bounded. */
START_TEST(lies)
{
    struct lies l = {.from_ns = 1000, .now_ns = 1000000};
    const struct joule_region_sink sink = {take_name, check_region, &l};
    uint64_t dice_state = 7 + (uint64_t)_i;
    struct joule_region_counts counts;
    struct joule_region_reader *reader;
    int fd = make_file(JOULE_SEGMENT_BYTES, F_SEAL_SHRINK | F_SEAL_GROW);
    struct joule_segment *s =
        mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    ck_assert_ptr_ne(s, MAP_FAILED);
    for (size_t i = 0; i < sizeof(*s) / 8; i++)
        ((uint64_t *)s)[i] = odd_number(&dice_state);
    s->head.magic = JOULE_SEGMENT_MAGIC;
    s->head.version = JOULE_SEGMENT_VERSION;
    reader = joule_region_reader_open(fd, &err);
    ck_assert_msg(reader, "%s", err.text);
    for (int round = 0; round < 3; round++) {
        s->head.record_count = odd_number(&dice_state);
        for (uint64_t i = 0; i < JOULE_SEGMENT_RECORDS; i++)
            if (dice(&dice_state, 2))
                s->record[i].seq =
                    s->head.record_count -
                    (s->head.record_count - i - 1) % JOULE_SEGMENT_RECORDS;
        ck_assert_uint_le(
            joule_region_reader_read(reader, &sink, l.from_ns, l.now_ns, 5000),
            5000);
    }
    joule_region_reader_end(reader, &sink, l.from_ns, l.now_ns, 5000, &counts);
    ck_assert_uint_le(l.regions,
                      3 * 5000 + JOULE_SEGMENT_RECORDS +
                          JOULE_SEGMENT_THREADS *
                              (JOULE_REGION_CELLS + JOULE_REGION_DEPTH) +
                          JOULE_SEGMENT_NAMES);
    joule_region_reader_close(reader);
    munmap(s, sizeof(*s));
}
END_TEST

static int run_tests(void)
{
    Suite *s = suite_create("regions");
    TCase *tc = tcase_create("regions"), *plain = tcase_create("segment");
    SRunner *sr;
    int failed;

    tcase_add_checked_fixture(tc, regionstep_setup, regionstep_teardown);
    tcase_add_test(tc, nested);
    tcase_add_test(tc, pairing);
    tcase_add_test(tc, folded);
    tcase_add_test(tc, killed);
    tcase_add_test(tc, killed_early);
#ifndef __SANITIZE_THREAD__ /* which has signals wait until the program can take one */
    tcase_add_test(tc, interrupted);
#else
    (void)interrupted;
#endif
    tcase_add_test(tc, forked);
    tcase_add_test(tc, threads);
    tcase_add_test(tc, any_name);
    tcase_add_test(tc, overrun);
    tcase_add_test(tc, cpu_time);
    tcase_add_test(tc, cpu_times);
    tcase_add_test(tc, many_processes);
    tcase_add_test(tc, no_room);
    tcase_add_test(tc, stale_socket);
    tcase_add_test(tc, not_recorded);
    tcase_add_test(tc, other_files);
    suite_add_tcase(s, tc);
    tcase_add_loop_test(plain, lies, 0, 20);
    suite_add_tcase(s, plain);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc == 1 || strcmp(argv[1], "threads") != 0)
        return run_tests();
    many_threads();
    return 0;
}

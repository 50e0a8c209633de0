/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cgroup/processes.h"
#include "tests/unit/tree.h"

#define MS   UINT64_C(1000000)
#define TICK (10 * MS)

static int root_fd;
static struct joule_processes *p;
static int go[2], done[2]; /* pipes to and from the children */

static void setup(void)
{
    root_fd = open("/", O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(pipe(go) | pipe(done), 0);
    p = joule_processes_create(root_fd, getpid());
    ck_assert_ptr_nonnull(p);
}

static void teardown(void)
{
    joule_processes_destroy(p);
    close(root_fd);
}

static void burn(uint64_t ns)
{
    struct timespec t;
    uint64_t now, until = 0;

    do {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        now = (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
        until = until ? until : now + ns;
    } while (now < until);
}

static void tell(int fd)
{
    if (write(fd, "x", 1) != 1)
        _exit(9);
}

static void await(int fd)
{
    char byte;

    if (read(fd, &byte, 1) != 1)
        _exit(9);
}

static uint64_t look(void)
{
    uint64_t ns;

    ck_assert_int_eq(joule_processes_read(p, &ns), 0);
    return ns;
}

/* Ticks are cut off: for each process and look up to one is not seen. */
static void expect(uint64_t ns, uint64_t looks)
{
    uint64_t got = look();

    ck_assert_uint_ge(got + (looks + 1) * TICK, ns);
    ck_assert_uint_le(got, ns + 4 * TICK);
}

START_TEST(test_children_and_theirs)
{
    pid_t pid;

    ck_assert_uint_eq(look(), 0);
    burn(50 * MS); /* its own: not counted */
    ck_assert_uint_eq(look(), 0);
    pid = fork();
    if (pid == 0) {
        burn(100 * MS);
        if (fork() == 0) {
            burn(100 * MS);
            tell(done[1]);
            await(go[0]);
            burn(50 * MS);
            _exit(0);
        }
        wait(NULL);
        tell(done[1]);
        await(go[0]);
        _exit(0);
    }
    await(done[0]);
    expect(200 * MS, 2);
    tell(go[1]);
    await(done[0]); /* the grandchild has been waited for */
    expect(250 * MS, 2);
    expect(250 * MS, 2);
    tell(go[1]);
    waitpid(pid, NULL, 0);
    expect(250 * MS, 2);
    expect(250 * MS, 2);
}
END_TEST

/* A process that leaves its parent behind, and has a child of its own. */
START_TEST(test_orphans)
{
    pid_t pid;

    prctl(PR_SET_CHILD_SUBREAPER, 0);
    pid = fork();
    if (pid == 0) {
        if (fork() == 0) {
            setsid();
            burn(50 * MS);
            tell(done[1]);
            await(go[0]);
            if (fork() == 0) {
                burn(100 * MS);
                tell(done[1]);
                await(go[0]);
                _exit(0);
            }
            burn(50 * MS);
            tell(done[1]);
            await(go[0]);
            _exit(0);
        }
        await(go[0]);
        _exit(0);
    }
    await(done[0]);
    expect(50 * MS, 2);
    tell(go[1]);
    usleep(20000);
    tell(go[1]);
    waitpid(pid, NULL, 0);
    await(done[0]);
    await(done[0]);
    expect(200 * MS, 3);
    expect(200 * MS, 3);
    tell(go[1]);
    tell(go[1]);
}
END_TEST

/* Begun and ended between two looks. */
START_TEST(test_many_short_lives)
{
    struct rusage all;
    uint64_t ns;

    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            burn(2 * MS);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
        if (i % 40 == 0)
            look();
    }
    /* With what beginning and ending cost. */
    ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &all), 0);
    ns = (uint64_t)(all.ru_utime.tv_sec + all.ru_stime.tv_sec) * 1000 * MS +
         (uint64_t)(all.ru_utime.tv_usec + all.ru_stime.tv_usec) * 1000;
    ck_assert_uint_ge(ns, 200 * MS);
    expect(ns, 1);
}
END_TEST

/* Nobody waits: the kernel forgets them, what was counted stays. */
START_TEST(test_children_that_nobody_waits_for)
{
    uint64_t before;

    signal(SIGCHLD, SIG_IGN);
    for (int i = 0; i < 3; i++) {
        before = look();
        if (fork() == 0) {
            burn(100 * MS);
            tell(done[1]);
            await(go[0]);
            _exit(0);
        }
        await(done[0]);
        expect(before + 100 * MS, 1);
        before = look();
        tell(go[1]);
        usleep(20000);
        ck_assert_uint_ge(look(), before);
    }
    expect(300 * MS, 3);
}
END_TEST

START_TEST(test_a_thousand_processes)
{
    static pid_t pid[1000];

    for (int i = 0; i < 1000; i++) {
        pid[i] = fork();
        if (pid[i] == 0) {
            pause();
            _exit(0);
        }
        ck_assert_int_gt(pid[i], 0);
    }
    look();
    for (int i = 0; i < 1000; i++)
        kill(pid[i], SIGKILL);
    for (int i = 0; i < 1000; i++)
        waitpid(pid[i], NULL, 0);
    look();
    look();
}
END_TEST

/* Who has no child and has ended. */
START_TEST(test_nobody)
{
    uint64_t ns;
    pid_t pid = fork();

    if (pid == 0)
        pause();
    joule_processes_destroy(p);
    p = joule_processes_create(root_fd, pid);
    ck_assert_int_eq(joule_processes_read(p, &ns), 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ck_assert_int_eq(joule_processes_read(p, &ns), -1);
    ck_assert_int_eq(errno, ESRCH);
    joule_processes_destroy(NULL);
}
END_TEST

/* A /proc that says whatever it likes. */
START_TEST(test_bad_files)
{
    static const char *const stats[] = {
        "",
        "x",
        "1 (a)",
        "1 (a) S 1 2 3",
        "1 (a) S 1 1 1 0 -1 0 0 0 0 0 -5 0 0 0 20 0 1 0 77 1",
        "1 (a) S 1 1 1 0 -1 0 0 0 0 0 99999999999999999999 0 0 0 20 0 1 0 7 1",
    };
    struct tree tree;
    uint64_t ns;

    tree_create(&tree);
    joule_processes_destroy(p);
    p = joule_processes_create(tree.fd, 5);
    tree_write(&tree, "proc/5/stat",
               "5 (a) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 1");
    tree_write(&tree, "proc/5/task/5/children", "6 -7 0 x 99999999999 5 6 6 ");
    for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++) {
        tree_write(&tree, "proc/6/stat", stats[i]);
        ck_assert_int_eq(joule_processes_read(p, &ns), 0);
        ck_assert_uint_eq(ns, 0);
    }
    /* Its own child, in a circle. */
    tree_write(&tree, "proc/6/task/6/children", "5 6");
    tree_write(&tree, "proc/6/stat",
               "6 (a) S 1 1 1 0 -1 0 0 0 0 0 3 0 0 0 20 0 1 0 77 1");
    ck_assert_int_eq(joule_processes_read(p, &ns), 0);
    ck_assert_uint_eq(ns, 3 * TICK);
    /* The same number, another process. */
    tree_write(&tree, "proc/6/stat",
               "6 (a) S 1 1 1 0 -1 0 0 0 0 0 2 0 0 0 20 0 1 0 78 1");
    ck_assert_int_eq(joule_processes_read(p, &ns), 0);
    ck_assert_int_eq(joule_processes_read(p, &ns), 0);
    ck_assert_uint_eq(ns, 5 * TICK);
    tree_destroy(&tree);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("processes");
    TCase *tc = tcase_create("processes");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_children_and_theirs);
    tcase_add_test(tc, test_orphans);
    tcase_add_test(tc, test_many_short_lives);
    tcase_add_test(tc, test_children_that_nobody_waits_for);
    tcase_add_test(tc, test_a_thousand_processes);
    tcase_add_test(tc, test_nobody);
    tcase_add_test(tc, test_bad_files);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    /* Each check counts all the children of its process. */
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

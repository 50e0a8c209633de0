/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The keeper's loop, and the threads' ticker below the averages.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/ticker.h"
#include "common/cpufreq/average.h"
#include "common/cpufreq/keeper.h"
#include "tests/unit/freqtree.h"

static const struct joule_keeper_config config = {
    .period_ns = 20 * JOULE_NS_PER_MS,
    .control = {.rules = {.governors = JOULE_GOVERNORS_ALL},
                .lock_wait_ns = JOULE_NS_PER_S},
};

static struct tree tree;

static void setup(void)
{
    tree_create(&tree);
    freqtree_acpi(&tree, 0, 0, 1);
    freqtree_process(&tree, 101, 7);
}

static void teardown(void)
{
    tree_destroy(&tree);
}

/* What a keeper says, a line each. */
static int said[2];

static void say(void *arg, const char *text)
{
    (void)arg;
    dprintf(said[1], "%s\n", text);
}

/* Waits for the next sentence; "": the keeper has ended. */
static const char *heard(void)
{
    static char line[JOULE_ERROR_MAX + 1];
    size_t length = 0;

    while (length < JOULE_ERROR_MAX && read(said[0], line + length, 1) == 1 &&
           line[length] != '\n')
        length++;
    line[length] = '\0';
    return line;
}

static void pause_ms(int ms)
{
    const struct timespec t = {.tv_sec = ms / 1000,
                               .tv_nsec = ms % 1000 * JOULE_NS_PER_MS};

    nanosleep(&t, NULL);
}

static void take(const char *cpus)
{
    struct joule_control_claim claim = {.job = 1, .step = "0", .pid = 101};
    struct joule_control_grant grant;
    struct joule_control control;

    joule_request_parse("powersave", &claim.request, NULL);
    joule_cpus_parse(&claim.cpus, cpus);
    joule_control_init(&control, tree.fd, &config.control);
    ck_assert_int_eq(joule_control_hold(&control, &claim, &grant, NULL), 0);
    joule_control_destroy(&control);
}

static bool is_back(void)
{
    struct stat st;

    return strcmp(freqtree_read(&tree, 0, "scaling_governor"), "ondemand") ==
               0 &&
           fstatat(tree.fd, "run/slurm-joule/cpufreq/journal", &st, 0) < 0;
}

static bool wait_back(void)
{
    for (int i = 0; i < 500 && !is_back(); i++)
        pause_ms(10);
    return is_back();
}

/* A keeper in a process of its own; *ret_fd is slurmd's end. */
static pid_t start(int *ret_fd)
{
    int fds[2];
    pid_t pid;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    ck_assert_int_eq(pipe(said), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        close(fds[0]);
        close(said[0]);
        joule_keeper_run(fds[1], tree.fd, &config, say, NULL);
        _exit(0);
    }
    close(fds[1]);
    close(said[1]);
    *ret_fd = fds[0];
    return pid;
}

static void ends_well(pid_t pid)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

START_TEST(keeps)
{
    int fd;
    pid_t pid = start(&fd);

    take("0");
    pause_ms(100);
    ck_assert(!is_back());
    freqtree_process(&tree, 101, 0);
    ck_assert(wait_back());
    ck_assert_str_eq(heard(), "put back the CPU frequencies of 1 policy that "
                              "steps left behind");
    ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
    close(fd);
    ends_well(pid);
    ck_assert_str_eq(heard(), "");
}
END_TEST

/* slurmd goes first: the keeper stays until the step has gone, too. */
START_TEST(stays)
{
    int fd;
    pid_t pid;

    take("0");
    pid = start(&fd);
    close(fd);
    pause_ms(100);
    ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
    freqtree_process(&tree, 101, 0);
    ck_assert(wait_back());
    ends_well(pid);
}
END_TEST

/* Of two policies one is not there for a while, and slurmd is gone. */
START_TEST(stays_until_all_is_back)
{
    static const char policy[] = JOULE_CPUFREQ_DIR "/policy1";
    int fd;
    pid_t pid;

    freqtree_acpi(&tree, 1, 2, 2);
    take("0-2");
    ck_assert_int_eq(renameat(tree.fd, policy, tree.fd, "gone"), 0);
    freqtree_process(&tree, 101, 0);
    pid = start(&fd);
    close(fd);
    ck_assert_str_eq(heard(), "put back the CPU frequencies of 1 policy that "
                              "steps left behind");
    ck_assert_str_eq(heard(), "1 policy is not back yet: there is no policy1: "
                              "No such file or directory");
    ck_assert_str_eq(freqtree_read(&tree, 0, "scaling_governor"), "ondemand");
    pause_ms(100);
    ck_assert_int_eq(waitpid(pid, NULL, WNOHANG), 0);
    ck_assert_int_eq(renameat(tree.fd, "gone", tree.fd, policy), 0);
    ck_assert_str_eq(heard(), "put back the CPU frequencies of 1 policy that "
                              "steps left behind");
    ck_assert(is_back());
    ck_assert_str_eq(freqtree_read(&tree, 1, "scaling_governor"), "ondemand");
    ck_assert_str_eq(heard(), "");
    ends_well(pid);
}
END_TEST

/* What cannot be put back keeps it; a journal that nobody can read does
 * not. */
START_TEST(does_not_stay_for_nothing)
{
    int fd;
    pid_t pid;

    take("0");
    tree_write(&tree, "run/slurm-joule/cpufreq/journal", "x");
    pid = start(&fd);
    close(fd);
    ck_assert_ptr_nonnull(strstr(heard(), "joule cpufreq --discard"));
    ck_assert_ptr_nonnull(strstr(heard(), "they stay as they are"));
    ck_assert_str_eq(heard(), "");
    ends_well(pid);
}
END_TEST

START_TEST(not_started)
{
    struct joule_error err = {""};

    ck_assert_int_eq(joule_keeper_start("/no/such/program", &config.control,
                                        JOULE_NS_PER_S, "", &err),
                     -1);
    ck_assert(*err.text);
}
END_TEST

static void logs(int errnum, const char *path, const char *sentence)
{
    struct joule_error err = {""};
    int rc = joule_keeper_log(tree.fd, path, "a sentence", &err);

    ck_assert_int_eq(rc, errnum ? -1 : 0);
    if (errnum)
        ck_assert_int_eq(errno, errnum);
    ck_assert_str_eq(err.text, sentence);
}

/* What is not slurmd's log is left alone. */
START_TEST(refused_logs)
{
    logs(EINVAL, "", "slurmd has no log file");
    logs(EINVAL, "log", "slurmd has no log file");
    logs(ENOENT, "/log", "cannot open /log: No such file or directory");
    tree_mkdir(&tree, "dir");
    logs(EISDIR, "/dir", "cannot open /dir: Is a directory");
    tree_write(&tree, "log", "");
    ck_assert_int_eq(symlinkat("log", tree.fd, "link"), 0);
    logs(ELOOP, "/link",
         "cannot open /link: Too many levels of symbolic links");
    ck_assert_int_eq(linkat(tree.fd, "log", tree.fd, "second", 0), 0);
    logs(EPERM, "/log", "/log has more than one name");
    tree_remove(&tree, "second");
    ck_assert_int_eq(fchmodat(tree.fd, "log", 0666, 0), 0);
    logs(EPERM, "/log", "/log may be written by others (mode 0666)");
    ck_assert_int_eq(mkfifoat(tree.fd, "fifo", 0600), 0);
    logs(ENXIO, "/fifo", "cannot open /fifo: No such device or address");
}
END_TEST

START_TEST(logged)
{
    char text[256];
    unsigned year, ms;

    tree_write(&tree, "log", "before\n");
    ck_assert_int_eq(fchmodat(tree.fd, "log", 0640, 0), 0);
    logs(0, "//log", "");
    logs(0, "/log", "");
    ck_assert_int_gt(joule_file_read(tree.fd, "log", text, sizeof(text)), 0);
    ck_assert(!strncmp(text, "before\n[", 8));
    ck_assert_int_eq(
        sscanf(text + 7, "[%u-%*u-%*uT%*u:%*u:%*u.%3u]", &year, &ms), 2);
    ck_assert_uint_ge(year, 2026);
    ck_assert_ptr_nonnull(strstr(text, "] joule_cpufreq: a sentence\n["));
    ck_assert_str_eq(strrchr(text, ']'), "] joule_cpufreq: a sentence");
}
END_TEST

static void tell(void *arg, uint32_t khz)
{
    *(uint32_t *)arg = khz;
}

START_TEST(averages)
{
    uint32_t told = 1;
    struct joule_average_options opt = {
        .root_fd = tree.fd, .tell = tell, .arg = &told};
    struct joule_average_result result;
    struct joule_average *a;

    joule_cpus_add(&opt.policies, 0);
    a = joule_average_create(&opt, NULL);
    ck_assert_ptr_nonnull(a);
    pause_ms(300);
    joule_average_destroy(a, &result);
    ck_assert_uint_eq(result.khz, 2000000);
    ck_assert_uint_eq(result.readings, 1);
    ck_assert(!result.is_counted);
    ck_assert_uint_eq(told, 2000000);
    /* Many policies: some of them; none that tells. */
    memset(&opt.policies, 0xff, sizeof(opt.policies));
    joule_cpus_remove(&opt.policies, 0);
    a = joule_average_create(&opt, NULL);
    pause_ms(300);
    joule_average_destroy(a, &result);
    ck_assert_uint_eq(result.readings, 0);
    ck_assert_uint_eq(result.khz, 0);
    ck_assert_uint_eq(told, 0);
    joule_average_destroy(NULL, &result);
    ck_assert_uint_eq(result.khz, 0);
}
END_TEST

static void count(void *arg)
{
    ++*(int *)arg;
}

START_TEST(ticks)
{
    int n = 0;
    struct joule_ticker *t =
        joule_ticker_create(0, 10 * JOULE_NS_PER_MS, count, &n, NULL);

    pause_ms(300);
    joule_ticker_destroy(t);
    ck_assert_int_ge(n, 3);
    ck_assert_int_le(n, 40);
    t = joule_ticker_create(3600 * JOULE_NS_PER_S, 1, count, &n, NULL);
    n = 0;
    joule_ticker_destroy(t);
    ck_assert_int_eq(n, 0);
    joule_ticker_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpufreq keeper");
    TCase *c = tcase_create("keeper");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, does_not_stay_for_nothing);
    tcase_add_test(c, not_started);
    tcase_add_test(c, refused_logs);
    tcase_add_test(c, logged);
    tcase_add_test(c, keeps);
    tcase_add_test(c, stays);
    tcase_add_test(c, stays_until_all_is_back);
    tcase_add_test(c, averages);
    tcase_add_test(c, ticks);
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cgroup/busy.h"
#include "common/cgroup/hierarchy.h"
#include "common/cgroup/usage.h"
#include "tests/unit/tree.h"

#define MS    UINT64_C(1000000)
#define STEPD 100

/* slurm.h */
#define STEP_EXTERN      UINT32_C(0xfffffffc)
#define STEP_BATCH       UINT32_C(0xfffffffb)
#define STEP_INTERACTIVE UINT32_C(0xfffffffa)

static struct tree tree;
static struct joule_usage *usage;

static void setup(void)
{
    tree_create(&tree);
    tree_write(&tree, "proc/self/mountinfo",
               "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
               "33 31 0:30 / /cg/cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
               "41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n");
}

static void teardown(void)
{
    joule_usage_destroy(usage);
    usage = NULL;
    tree_destroy(&tree);
}

static void put(unsigned pid, const char *what, const char *text)
{
    char path[64];

    snprintf(path, sizeof(path), "proc/%u/%s", pid, what);
    tree_write(&tree, path, text);
}

/* slurmstepd with a child, and the groups that they are in. */
static void processes(const char *stepd, const char *child)
{
    put(STEPD, "cgroup", stepd);
    put(STEPD, "task/100/children", "101 ");
    put(STEPD, "stat",
        "100 (slurmstepd) S 1 1 1 0 -1 0 0 0 0 0 700 0 20 5 20 0 1 0 9 1 1");
    put(101, "cgroup", child);
    put(101, "task/101/children", "");
    put(101, "stat",
        "101 (a) b) R 100 1 1 0 -1 0 0 0 0 0 30 10 0 0 20 -5 1 0 9 1 1");
}

static void expect(uint64_t ns, enum joule_usage_from from)
{
    uint64_t got;

    ck_assert_int_eq(joule_usage_read(usage, &got, NULL), 0);
    ck_assert_uint_eq(got, ns);
    ck_assert_int_eq(joule_usage_from(usage), from);
}

/* The step that slurmstepd has registered. */
static struct joule_usage *make(uint32_t job, uint32_t step, const char *path,
                                size_t cpus)
{
    const struct joule_usage_step of = {.pid = STEPD,
                                        .job = job,
                                        .step = step,
                                        .uid = 1000,
                                        .node = "node0",
                                        .path = path};

    return joule_usage_create(tree.fd, &of, cpus);
}

START_TEST(test_v1)
{
    static const struct {
        uint32_t job, step;
        const char *group, *of_stepd;
    } rows[] = {
        /* By their names, and by where slurmstepd is in other hierarchies. */
        {1, 0, "/slurm_node0/uid_1000/job_1/step_0", "/"},
        {2, STEP_BATCH, "/slurm/uid_1000/job_2/step_batch", "/job_21/step_0"},
        {77, STEP_EXTERN, "/docker/abc/slurm/uid_1000/job_77/step_extern",
         "/docker/abc/slurm/uid_1000/job_77"},
        {78, 3, "/x/job_78/step_3+1", "/x/job_78/step_3+1"},
    };
    uint64_t got;
    const uint64_t *by_cpu;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[256], path[256];

        snprintf(text, sizeof(text),
                 "6:freezer:%s\n4:memory:/x\n2:cpu,cpuacct:/\n0::/\n",
                 rows[i].of_stepd);
        processes(text, "2:cpu,cpuacct:/\n0::/\n");
        snprintf(path, sizeof(path), "cg/cpuacct%s/cpuacct.usage",
                 rows[i].group);
        tree_write(&tree, path, "1234567890123\n");
        usage = make(rows[i].job, rows[i].step, "", 0);
        expect(UINT64_C(1234567890123), JOULE_USAGE_FROM_V1);
        tree_write(&tree, path, "5\n");
        expect(5, JOULE_USAGE_FROM_V1);
        tree_write(&tree, path, "-5\n");
        ck_assert_int_eq(joule_usage_read(usage, &got, NULL), -1);
        ck_assert_int_eq(errno, EBADMSG);
        tree_write(&tree, path, "");
        ck_assert_int_eq(joule_usage_read(usage, &got, NULL), -1);
        joule_usage_destroy(usage);
        snprintf(path, sizeof(path), "cg/cpuacct%s/cpuacct.usage_percpu",
                 rows[i].group);
        tree_write(&tree, path, "100 0 23 4\n");
        usage = make(rows[i].job, rows[i].step, NULL, 3);
        ck_assert_int_eq(joule_usage_read(usage, &got, &by_cpu), 0);
        ck_assert_uint_eq(got, 123);
        ck_assert_uint_eq(by_cpu[2], 23);
        joule_usage_destroy(usage);
    }
    usage = NULL;
}
END_TEST

/* A task that moves elsewhere takes nobody's eyes with it. */
START_TEST(test_v1_and_a_task_that_moves)
{
    static const char *const elsewhere[] = {
        "/slurm_node0/uid_1000/job_1/step_extern/x",
        "/slurm_node0/uid_1000/job_2/step_0/x", "/slurm_node0/uid_1000",
        "/job_1/step_0"};

    tree_write(&tree, "cg/cpuacct/slurm_node0/uid_1000/job_1/step_0/"
                      "cpuacct.usage", "77\n");
    for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
        char text[256];

        snprintf(text, sizeof(text), "cg/cpuacct%s/cpuacct.usage",
                 elsewhere[i]);
        tree_write(&tree, text, "1\n");
        snprintf(text, sizeof(text), "2:cpu,cpuacct:%s\n0::/\n", elsewhere[i]);
        processes("2:cpu,cpuacct:/\n0::/\n", text);
        usage = make(1, 0, "", 0);
        expect(77, JOULE_USAGE_FROM_V1);
        joule_usage_destroy(usage);
    }
    usage = NULL;
}
END_TEST

START_TEST(test_v1_job)
{
    static const char job[] = "cg/cpuacct/slurm_node0/uid_1000/job_1";
    static const char *const foreign[] = {"/step_0/x", "/step_0/task_0/task_1",
                                          "/step_extern/y/z"};
    struct joule_usage *whole;
    const uint64_t *by_cpu;
    char path[128];
    uint64_t got;

    processes("2:cpu,cpuacct:/\n0::/\n", "2:cpu,cpuacct:/\n0::/\n");
    usage = make(1, 0, "", 2);
    expect((30 + 10 + 25) * 10 * MS, JOULE_USAGE_FROM_PROCESSES);
    ck_assert_ptr_null(joule_usage_create_job(usage));
    ck_assert_int_eq(errno, ENOENT);
    /* Of the job before its step, as an extern step in 26.05. */
    snprintf(path, sizeof(path), "%s/cpuacct.usage_percpu", job);
    tree_write(&tree, path, "5000 600\n");
    expect((30 + 10 + 25) * 10 * MS, JOULE_USAGE_FROM_PROCESSES);
    whole = joule_usage_create_job(usage);
    ck_assert_ptr_nonnull(whole);
    ck_assert_int_eq(joule_usage_read(whole, &got, &by_cpu), 0);
    ck_assert_uint_eq(got, 5600);
    ck_assert_uint_eq(by_cpu[1], 600);
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        ck_assert_uint_eq(joule_usage_foreign(whole), i);
        snprintf(path, sizeof(path), "%s%s/cpuacct.usage", job, foreign[i]);
        tree_write(&tree, path, "1\n");
    }
    ck_assert_uint_eq(joule_usage_foreign(whole), 3);
    joule_usage_destroy(whole);
}
END_TEST

START_TEST(test_v2)
{
    static const char *const jobs[] = {
        "/system.slice/node0_slurmstepd.scope/job_4",
        "/system.slice/slurmstepd.scope/sDQ9M7Z0FW8500"};
    struct joule_usage *whole;
    uint64_t got;

    tree_write(&tree, "proc/self/mountinfo",
               "41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n");
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        char text[512], path[512], group[256];

        snprintf(group, sizeof(group), "%s/step_interactive", jobs[i]);
        snprintf(text, sizeof(text), "0::%s/slurm\n", group);
        processes(text, "0::/\n");
        snprintf(path, sizeof(path), "cg/unified%s/cpu.stat", jobs[i]);
        tree_write(&tree, path, "usage_usec 999999\n");
        snprintf(path, sizeof(path), "cg/unified%s/slurm/cpu.stat", group);
        tree_write(&tree, path, "usage_usec 30\n");
        snprintf(path, sizeof(path), "cg/unified%s/user/cpu.stat", group);
        tree_write(&tree, path,
                   "usage_usec 2820000\nuser_usec 2800000\nsystem_usec 9\n");
        usage = make(4, STEP_INTERACTIVE, "", 4);
        expect(2820 * MS, JOULE_USAGE_FROM_V2);
        ck_assert_uint_eq(joule_usage_stepd_ns(usage), 30000);
        whole = joule_usage_create_job(usage);
        ck_assert_ptr_nonnull(whole);
        ck_assert_int_eq(joule_usage_read(whole, &got, NULL), 0);
        ck_assert_uint_eq(got, 999999000);
        joule_usage_destroy(whole);
        tree_write(&tree, path, "user_usec 1\n");
        ck_assert_int_eq(joule_usage_read(usage, &got, NULL), -1);
        ck_assert_int_eq(errno, EBADMSG);
        tree_write(&tree, path, "usage_usec 99999999999999999999\n");
        ck_assert_int_eq(joule_usage_read(usage, &got, NULL), -1);
        joule_usage_destroy(usage);
        /* Another step's slurmstepd has that number by now. */
        usage = make(4, 0, "", 4);
        expect(650 * MS, JOULE_USAGE_FROM_PROCESSES);
        joule_usage_destroy(usage);
        /* The path is told. */
        tree_remove(&tree, "proc/100/cgroup");
        tree_write(&tree, path, "usage_usec 7\n");
        usage = make(4, STEP_INTERACTIVE, group, 4);
        expect(7000, JOULE_USAGE_FROM_V2);
        joule_usage_destroy(usage);
    }
    usage = NULL;
}
END_TEST

/* Until there is a group, and if there never is one: the children's time and
 * that of those it waited for, without its own. */
START_TEST(test_processes)
{
    uint64_t got;

    processes("0::/\n", "2:cpuacct:/user.slice\n0::/\n");
    usage = make(1, 0, "/no/such/step_0", 0);
    expect((30 + 10 + 25) * 10 * MS, JOULE_USAGE_FROM_PROCESSES);
    put(101, "stat",
        "101 (a) R 100 1 1 0 -1 0 0 0 0 0 70 10 0 0 20 -5 1 0 9 1 1");
    expect((70 + 10 + 25) * 10 * MS, JOULE_USAGE_FROM_PROCESSES);
    /* The group comes: what has been counted stays. */
    tree_write(&tree, "cg/cpuacct/slurm/uid_1000/job_1/step_0/cpuacct.usage",
               "1000\n");
    expect(1050 * MS, JOULE_USAGE_FROM_V1);
    tree_write(&tree, "cg/cpuacct/slurm/uid_1000/job_1/step_0/cpuacct.usage",
               "9000000000\n");
    expect(9000 * MS, JOULE_USAGE_FROM_V1);
    joule_usage_destroy(usage);
    /* Nobody is there. */
    usage = joule_usage_create(
        tree.fd, &(struct joule_usage_step){.pid = 4711, .job = 9}, 0);
    ck_assert_int_eq(joule_usage_read(usage, &got, NULL), -1);
    ck_assert_int_eq(errno, ESRCH);
}
END_TEST

/* Told of a group that is no step's: it is not counted. */
START_TEST(test_groups_that_are_not_steps)
{
    processes("0::/system.slice/slurmd.service\n", "2:cpuacct:/slurm\n");
    tree_write(&tree, "cg/unified/system.slice/slurmd.service/user/cpu.stat",
               "usage_usec 1\n");
    tree_write(&tree, "cg/cpuacct/slurm/cpuacct.usage", "1\n");
    usage = make(1, 0, "/slurm/uid_0", 0);
    expect(650 * MS, JOULE_USAGE_FROM_PROCESSES);
}
END_TEST

START_TEST(test_hierarchies)
{
    char group[PATH_MAX], dir[JOULE_CGROUP_DIR_MAX];
    size_t top;

    put(7, "cgroup",
        "9:name=cpuacct:/wrong\n8:cpuacctx,xcpuacct:/no\n"
        "7:cpu:relative\n2:cpu,cpuacct:/a\n0::/b\n");
    ck_assert_int_eq(joule_cgroup_of(tree.fd, 7, "cpuacct", group), 0);
    ck_assert_str_eq(group, "/a");
    ck_assert_int_eq(joule_cgroup_of(tree.fd, 7, NULL, group), 0);
    ck_assert_str_eq(group, "/b");
    ck_assert_int_eq(joule_cgroup_named(tree.fd, 7, "a", group), 0);
    ck_assert_str_eq(group, "/a");
    ck_assert_int_eq(joule_cgroup_named(tree.fd, 7, "b", group), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(joule_cgroup_of(tree.fd, 7, "freezer", group), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(joule_cgroup_of(tree.fd, 8, "cpuacct", group), -1);
    ck_assert_int_eq(errno, ESRCH);
    /* A mount of a part of it. */
    tree_write(&tree, "proc/self/mountinfo",
               "bad\n- - -\n"
               "33 31 0:30 /ab /cg/x rw - cgroup cgroup rw,cpuacct\n"
               "34 31 0:30 /a /cg/y rw - cgroup cgroup rw,cpuacct\n");
    ck_assert_int_eq(joule_cgroup_dir(tree.fd, "cpuacct", "/a/b", dir, &top),
                     0);
    ck_assert_str_eq(dir, "cg/y/b");
    ck_assert_uint_eq(top, 4);
    ck_assert_int_eq(joule_cgroup_dir(tree.fd, "cpuacct", "/c", dir, NULL), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(joule_cgroup_dir(tree.fd, NULL, "/", dir, NULL), -1);
    ck_assert_int_eq(joule_cgroup_mount(tree.fd, "cpuacct", dir), 0);
    ck_assert_str_eq(dir, "cg/x");
}
END_TEST

START_TEST(first_line)
{
    char text[32];
    int fd;

    tree_write(&tree, "f", "usage_usec 5\nuser_usec 4\n");
    fd = openat(tree.fd, "f", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 2; i++) { /* from the beginning, each time */
        ck_assert_int_ge(joule_busy_line(fd, text, sizeof(text)), 13);
        ck_assert_int_eq(strncmp(text, "usage_usec 5\n", 13), 0);
    }
    ck_assert_int_eq(joule_busy_line(fd, text, 4), 3);
    ck_assert_str_eq(text, "usa");
    close(fd);
    tree_write(&tree, "f", "no end");
    fd = openat(tree.fd, "f", O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(joule_busy_line(fd, text, sizeof(text)), 6);
    ck_assert_str_eq(text, "no end");
    ck_assert_int_eq(joule_busy_line(-1, text, sizeof(text)), -1);
    ck_assert_int_eq(errno, EBADF);
    close(fd);
}
END_TEST

START_TEST(test_busy)
{
    struct joule_error err;
    struct joule_busy *b;
    uint64_t ns[3];

    ck_assert_ptr_null(joule_busy_create(tree.fd, 3, &err));
    ck_assert_int_eq(errno, ENOENT);
    tree_write(&tree, "proc/stat",
               "cpu  9 9 9 9 9 9 9 9 9 9\n"
               "cpu0 100 20 3 999 999 4 5 999 0 0\n"
               "cpu2 1 1 1 999 999 1 1 999 0 0\nintr 1 2 3\n");
    /* What looks like the root group of a namespace is not the machine's. */
    tree_write(&tree, "cg/cpuacct/cpuacct.usage_percpu", "111 222 333\n");
    b = joule_busy_create(tree.fd, 3, &err);
    ck_assert_int_eq(joule_busy_read(b, ns), 0);
    ck_assert_uint_eq(ns[0], 132 * 10 * MS);
    ck_assert_uint_eq(ns[1], 0);
    ck_assert_uint_eq(ns[2], 5 * 10 * MS);
    /* A CPU goes offline; bad lines. */
    tree_write(&tree, "proc/stat", "cpu0 200 20 3 9 9 4 5 9 0 0\nintr 1\n");
    ck_assert_int_eq(joule_busy_read(b, ns), 0);
    ck_assert_uint_eq(ns[2], 5 * 10 * MS);
    tree_write(&tree, "proc/stat", "cpu0 200 20 -3 9 9 4 5 9\nintr 1\n");
    ck_assert_int_eq(joule_busy_read(b, ns), -1);
    ck_assert_int_eq(errno, EBADMSG);
    tree_write(&tree, "proc/stat", "cpu0 200 20 3\nintr 1\n");
    ck_assert_int_eq(joule_busy_read(b, ns), -1);
    tree_write(&tree, "proc/stat", "nothing\n");
    ck_assert_int_eq(joule_busy_read(b, ns), -1);
    joule_busy_destroy(b);
    tree_write(&tree, "cg/cpuacct/release_agent", "");
    b = joule_busy_create(tree.fd, 3, &err);
    ck_assert_int_eq(joule_busy_read(b, ns), 0);
    ck_assert_uint_eq(ns[2], 333);
    tree_write(&tree, "cg/cpuacct/cpuacct.usage_percpu", "111 x\n");
    ck_assert_int_eq(joule_busy_read(b, ns), -1);
    joule_busy_destroy(b);
    joule_busy_destroy(NULL);
}
END_TEST

/* -- on the running kernel ---------------------------------------------- */

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

static void burn(uint64_t ns)
{
    uint64_t until = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;

    while (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) < until)
        continue;
}

static int enter(const char *dir)
{
    char path[512];
    FILE *f;

    snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
    f = fopen(path, "w");
    if (!f)
        return -1;
    fprintf(f, "%d\n", getpid());
    return fclose(f);
}

/* A child uses 200 ms in the group [dir]/[task], which is mounted at the first
 * [mount] bytes of that. */
static void run_in_group(const char *dir, const char *task, size_t mount,
                         size_t cpus, enum joule_usage_from from)
{
    char path[256];
    uint64_t before, after;
    int root_fd = open("/", O_RDONLY | O_DIRECTORY), to_child[2], from_child[2],
        status;
    char byte;
    pid_t pid;

    ck_assert_int_eq(pipe(to_child) | pipe(from_child), 0);
    snprintf(path, sizeof(path), "%s/%s", dir, task);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (enter(path) < 0 || write(from_child[1], "x", 1) != 1 ||
            read(to_child[0], &byte, 1) != 1)
            _exit(1);
        burn(200 * MS);
        pause();
    }
    ck_assert_int_eq(read(from_child[0], &byte, 1), 1);
    usage = joule_usage_create(root_fd,
                               &(struct joule_usage_step){
                                   .pid = getpid(),
                                   .job = (uint32_t)getpid(),
                                   .path = path + mount,
                               },
                               cpus);
    ck_assert_int_eq(joule_usage_read(usage, &before, NULL), 0);
    ck_assert_int_eq(joule_usage_from(usage), from);
    ck_assert_int_eq(write(to_child[1], "x", 1), 1);
    for (int i = 0; i < 200; i++) {
        usleep(20000);
        ck_assert_int_eq(joule_usage_read(usage, &after, NULL), 0);
        if (after - before >= 199 * MS)
            break;
    }
    ck_assert_uint_ge(after - before, 195 * MS);
    ck_assert_uint_le(after - before, 220 * MS);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    for (int i = 0; i < 100 && rmdir(path) < 0; i++)
        usleep(10000);
    for (int i = 0; i < 2; i++) {
        close(to_child[i]);
        close(from_child[i]);
    }
    close(root_fd);
}

static void run_on_kernel(const char *mount, const char *task, size_t cpus,
                          enum joule_usage_from from)
{
    char job[128], step[160], path[200];
    uint64_t got;
    int rc;

    snprintf(job, sizeof(job), "%s/job_%d", mount, getpid());
    snprintf(step, sizeof(step), "%s/step_0", job);
    snprintf(path, sizeof(path), "%s/%s", step, task);
    if (mkdir(job, 0700) < 0) {
        printf("skipped: no group can be made in %s\n", mount);
        fflush(stdout);
        return;
    }
    ck_assert_int_eq(mkdir(step, 0700), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    run_in_group(step, task, strlen(mount), cpus, from);
    rc = rmdir(step) | rmdir(job);
    ck_assert_int_eq(rc, 0);
    /* The group is gone. */
    ck_assert_int_eq(joule_usage_read(usage, &got, NULL), -1);
    ck_assert_int_eq(errno, ENODEV);
}

START_TEST(test_v1_on_this_kernel)
{
    run_on_kernel("/sys/fs/cgroup/cpuacct", "task_0", 0, JOULE_USAGE_FROM_V1);
    joule_usage_destroy(usage);
    usage = NULL;
    run_on_kernel("/sys/fs/cgroup/cpuacct", "task_0", 4096,
                  JOULE_USAGE_FROM_V1);
}
END_TEST

START_TEST(test_v2_on_this_kernel)
{
    run_on_kernel(access("/sys/fs/cgroup/cgroup.procs", F_OK) == 0
                      ? "/sys/fs/cgroup"
                      : "/sys/fs/cgroup/unified",
                  "user", 0, JOULE_USAGE_FROM_V2);
}
END_TEST

START_TEST(test_busy_on_this_kernel)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    int root_fd = open("/", O_RDONLY | O_DIRECTORY);
    struct joule_busy *b = joule_busy_create(root_fd, (size_t)cpus, NULL);
    uint64_t *ns = calloc((size_t)cpus, sizeof(*ns)), before = 0, after = 0;

    ck_assert_ptr_nonnull(b);
    ck_assert_int_eq(joule_busy_read(b, ns), 0);
    for (long i = 0; i < cpus; i++)
        before += ns[i];
    burn(300 * MS);
    ck_assert_int_eq(joule_busy_read(b, ns), 0);
    for (long i = 0; i < cpus; i++)
        after += ns[i];
    ck_assert_uint_ge(after - before, 280 * MS);
    free(ns);
    joule_busy_destroy(b);
    close(root_fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("usage");
    TCase *tc = tcase_create("usage");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_v1);
    tcase_add_test(tc, test_v1_and_a_task_that_moves);
    tcase_add_test(tc, test_v1_job);
    tcase_add_test(tc, test_v2);
    tcase_add_test(tc, test_processes);
    tcase_add_test(tc, test_groups_that_are_not_steps);
    tcase_add_test(tc, test_hierarchies);
    tcase_add_test(tc, first_line);
    tcase_add_test(tc, test_busy);
    tcase_add_test(tc, test_v1_on_this_kernel);
    tcase_add_test(tc, test_v2_on_this_kernel);
    tcase_add_test(tc, test_busy_on_this_kernel);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

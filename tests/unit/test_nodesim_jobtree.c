/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The groups of jobs in trees of files, and slurmstepd as a process that has
 * nothing of it but the title.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/jobtree.h"
#include "tests/unit/tree.h"

#define SCOPE "system.slice/node1_slurmstepd.scope/"
#define SLUID SCOPE "s7WNM80N13EH00/"

static struct tree tree;
static struct sim_jobtree *jobs;

static void setup(void)
{
    tree_create(&tree);
    jobs = sim_jobtree_create(tree.path, true);
    ck_assert_ptr_nonnull(jobs);
}

static void teardown(void)
{
    sim_jobtree_destroy(jobs);
    tree_destroy(&tree);
}

static char found[256];

/* A sim_jobtree_f. */
static void add(void *arg, int at_fd, const char *dir, ino_t ino, uint32_t id)
{
    char word[64];
    struct stat st;

    (void)arg;
    (void)ino;
    snprintf(word, sizeof(word), "%u:%s ", id, dir);
    ck_assert_int_eq(fstatat(at_fd, dir, &st, 0), 0);
    ck_assert_uint_lt(strlen(found) + strlen(word), sizeof(found));
    strcat(found, word);
}

/* "JOB:GROUP " for each. */
static const char *walk(void)
{
    found[0] = '\0';
    sim_jobtree_walk(jobs, add, NULL);
    return found;
}

/* A process that has this title when this returns. */
static pid_t process_make(const char *title)
{
    char path[64], seen[64];
    pid_t pid = fork();
    FILE *f;

    ck_assert_int_ge(pid, 0);
    if (!pid) {
        execl("/bin/sleep", title, "60", (char *)NULL);
        _exit(127);
    }
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    do {
        f = fopen(path, "re");
        ck_assert_ptr_nonnull(f);
        if (!fgets(seen, sizeof(seen), f))
            seen[0] = '\0';
        fclose(f);
    } while (strcmp(seen, title));
    return pid;
}

static void process_end(pid_t pid)
{
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static void procs(const char *path, pid_t first, pid_t second)
{
    char text[64];

    snprintf(text, sizeof(text), "%d\n%d\n", (int)first, (int)second);
    tree_write(&tree, path, text);
}

START_TEST(first_version)
{
    sim_jobtree_destroy(jobs);
    jobs = sim_jobtree_create(tree.path, false);
    ck_assert_ptr_nonnull(jobs);
    tree_mkdir(&tree, "slurm_node1/uid_0/job_5/step_0");
    tree_mkdir(&tree, "slurm_node1/uid_0/s7WNM80N13EH00/step_0/slurm");
    procs("slurm_node1/uid_0/s7WNM80N13EH00/step_0/slurm/cgroup.procs",
          getpid(), getpid());
    ck_assert_str_eq(walk(), "5:job_5 ");
}
END_TEST

START_TEST(numbers)
{
    sim_jobtree_destroy(NULL);
    ck_assert_str_eq(walk(), "");
    tree_mkdir(&tree, SCOPE "job_5/step_0/user");
    tree_mkdir(&tree, SCOPE "job_0/step_0/user");
    tree_mkdir(&tree, SCOPE "job_5/other/user");
    tree_mkdir(&tree, SCOPE "other/job_6/step_0/user");
    ck_assert_str_eq(walk(), "5:step_0/user ");
}
END_TEST

START_TEST(nobody_names_it)
{
    static const char *const titles[] = {
        "slurmstepd: [0.0]", "slurmstepd: [7",    "slurmstepd: [7]",
        "sleep [7.0]",       "slurmstepd: [x.0]", "slurmstepd: [4294967296.0]",
    };

    tree_mkdir(&tree, SLUID "step_0/user");
    ck_assert_str_eq(walk(), "");
    tree_write(&tree, SLUID "step_0/slurm/cgroup.procs", "");
    ck_assert_str_eq(walk(), "");
    tree_write(&tree, SLUID "step_0/slurm/cgroup.procs", "0\n../self\n\n");
    ck_assert_str_eq(walk(), "");
    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
        pid_t pid = process_make(titles[i]);

        procs(SLUID "step_0/slurm/cgroup.procs", getpid(), pid);
        ck_assert_str_eq(walk(), "");
        process_end(pid);
    }
}
END_TEST

START_TEST(slurmstepd_names_it)
{
    pid_t pid = process_make("slurmstepd: [7.extern]");

    tree_mkdir(&tree, SLUID "step_extern/user");
    procs(SLUID "step_extern/slurm/cgroup.procs", getpid(), pid);
    ck_assert_str_eq(walk(), "7:step_extern/user ");
    process_end(pid);
    /* Its name stays, and is that of steps which come later. */
    ck_assert_str_eq(walk(), "7:step_extern/user ");
    tree_remove(&tree, SLUID "step_extern/slurm/cgroup.procs");
    tree_mkdir(&tree, SLUID "step_3/user");
    walk();
    ck_assert_ptr_nonnull(strstr(found, "7:step_extern/user "));
    ck_assert_ptr_nonnull(strstr(found, "7:step_3/user "));
    ck_assert_uint_eq(strlen(found),
                      strlen("7:step_extern/user 7:step_3/user "));
}
END_TEST

START_TEST(which_names)
{
    pid_t pid = process_make("slurmstepd: [4294967295+1.0]");
    static const char *const dirs[] = {
        "s7WNM80N13EH0U", /* no digit of that base */
        "s7WNM80N13EH000", "s7WNM80N13EH0", "t7WNM80N13EH00",
        "s7wnm80n13eh00",
    };
    char path[128];

    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        snprintf(path, sizeof(path), SCOPE "%s/step_0/user", dirs[i]);
        tree_mkdir(&tree, path);
        snprintf(path, sizeof(path), SCOPE "%s/step_0/slurm/cgroup.procs",
                 dirs[i]);
        procs(path, pid, pid);
    }
    ck_assert_str_eq(walk(), "");
    tree_mkdir(&tree, SLUID "step_0/user");
    procs(SLUID "step_0/slurm/cgroup.procs", pid, pid);
    ck_assert_str_eq(walk(), "4294967295:step_0/user ");
    process_end(pid);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nodesim_jobtree");
    TCase *tc = tcase_create("jobtree");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, first_version);
    tcase_add_test(tc, numbers);
    tcase_add_test(tc, nobody_names_it);
    tcase_add_test(tc, slurmstepd_names_it);
    tcase_add_test(tc, which_names);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which node this is: in slurmd, in slurmstepd, in tools.  The program stands
 * for each of the daemons, with a command line and an environment of its own.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/node/node_dir.h"
#include "plugins/slurm_abi/host.h"
#include "plugins/slurm_abi/slurm_abi.h"
#include "tests/unit/tree.h"

#define VARIABLE "SLURMD_NODENAME"

/* What the plugin looks up in its host, or links. */
JOULE_SLURM_EXPORT extern uint32_t slurm_daemon;
JOULE_SLURM_EXPORT char *slurm_conf_get_aliased_nodename(void);
uint32_t slurm_daemon;

/* slurm.conf knows this host, or does not. */
char *slurm_conf_get_aliased_nodename(void)
{
    const char *name = getenv("TEST_CONF");

    return name ? strdup(name) : NULL;
}

void slurm_xfree(void **item)
{
    free(*item);
    *item = NULL;
}

long slurm_api_version(void)
{
    return 0;
}

static struct tree tree;

static void setup(void)
{
    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/hostname", "host.example.org\n");
    unsetenv(VARIABLE);
    unsetenv("TEST_CONF");
}

static void teardown(void)
{
    tree_destroy(&tree);
}

/* What a daemon with this command line finds. */
static const char *daemon_finds(const char *daemon, const char *options)
{
    static char line[256];
    char command[512];
    FILE *f;

    snprintf(command, sizeof(command), "exec /proc/%d/exe %s %s %s",
             (int)getpid(), daemon, tree.path, options);
    f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    if (!fgets(line, sizeof(line), f))
        line[0] = '\0';
    ck_assert_int_eq(pclose(f), 0);
    return line;
}

/* In the place of main: DAEMON ROOT OPTIONS. */
static int be_daemon(const char *daemon, const char *path)
{
    struct joule_error err = {""};
    char name[256];
    int fd = open(path, O_PATH | O_DIRECTORY);

    slurm_daemon = strcmp(daemon, "slurmd") == 0 ? 1u << 4 : 1u << 5;
    if (joule_host_node_name(fd, name, sizeof(name), &err) < 0)
        snprintf(name, sizeof(name), "(%.250s)", err.text);
    fputs(name, stdout);
    return 0;
}

/* slurmd may have been started from a job's shell, of another node. */
START_TEST(slurmd)
{
    setenv(VARIABLE, "other", 1);
    ck_assert_str_eq(daemon_finds("slurmd", ""), "host");
    setenv("TEST_CONF", "cn7", 1);
    ck_assert_str_eq(daemon_finds("slurmd", ""), "cn7");
    ck_assert_str_eq(daemon_finds("slurmd", "-D -N node3"), "node3");
    ck_assert_str_eq(daemon_finds("slurmd", "-DNnode3"), "node3");
    /* What is in /run was another slurmd's. */
    tree_mkdir(&tree, "run/slurm-joule/node9");
    ck_assert_str_eq(daemon_finds("slurmd", ""), "cn7");
}
END_TEST

/* slurmd has told it, whatever slurm.conf says of this host. */
START_TEST(slurmstepd)
{
    setenv("TEST_CONF", "cn7", 1);
    setenv(VARIABLE, "node3", 1);
    ck_assert_str_eq(daemon_finds("slurmstepd", ""), "node3");
}
END_TEST

static void tool_finds(const char *option, const char *name, unsigned count)
{
    struct joule_nodename from = {
        .option = option, .is_tool = true, .job = getenv(VARIABLE)};
    struct joule_error err = {""};
    char buf[256];

    ck_assert_msg(joule_nodename_find(&from, tree.fd, buf, sizeof(buf), &err) ==
                      0,
                  "%s", err.text);
    ck_assert_str_eq(buf, name);
    ck_assert_uint_eq(from.ret_count, count);
}

START_TEST(tool)
{
    setenv(VARIABLE, "node2", 1);
    tool_finds(NULL, "host", 0);
    tree_mkdir(&tree, "run/slurm-joule/cpufreq");
    tree_write(&tree, "run/slurm-joule/node2", "no directory");
    tool_finds(NULL, "host", 0);
    tree_remove(&tree, "run/slurm-joule/node2");
    /* The shell of a job of node2, and a machine that is node1. */
    tree_mkdir(&tree, "run/slurm-joule/node1");
    tool_finds(NULL, "node1", 1);
    tool_finds("cn7", "cn7", 0);
    /* Several slurmd: the node of the job, else the host's name. */
    tree_mkdir(&tree, "run/slurm-joule/node2");
    tool_finds(NULL, "node2", 2);
    setenv(VARIABLE, "node3", 1);
    tool_finds(NULL, "host", 2);
    setenv(VARIABLE, "../slurm-joule/node1", 1);
    tool_finds(NULL, "host", 2);
    unsetenv(VARIABLE);
    tool_finds(NULL, "host", 2);
}
END_TEST

START_TEST(too_long)
{
    struct joule_nodename from = {.option = "node1234"};
    struct joule_error err = {""};
    char buf[8];

    ck_assert_int_eq(
        joule_nodename_find(&from, tree.fd, buf, sizeof(buf), &err), -1);
    ck_assert_int_eq(errno, ENAMETOOLONG);
    ck_assert(*err.text);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s;
    TCase *c;
    SRunner *runner;
    int failed;

    if (argc > 2)
        return be_daemon(argv[1], argv[2]);
    s = suite_create("node name");
    c = tcase_create("node name");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, too_long);
    tcase_add_test(c, slurmd);
    tcase_add_test(c, slurmstepd);
    tcase_add_test(c, tool);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

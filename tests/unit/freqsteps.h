/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freqsteps.h - a machine of two policies, and steps that take and release
 * them: the fixture of the tests of joule_control.
 */
#ifndef JOULE_TESTS_FREQSTEPS_H
#define JOULE_TESTS_FREQSTEPS_H

#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cpufreq/control.h"
#include "tests/unit/freqtree.h"

#define JOURNAL  "run/slurm-joule/cpufreq/journal"
#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const struct joule_control_config config = {
    .rules = {.governors = JOULE_GOVERNORS_ALL},
    .lock_wait_ns = 20000000,
};

static struct tree tree;
static struct joule_control control;
static char before[FREQTREE_TEXT];

/* Policy 0 of CPUs 0-1, policy 1 of CPUs 2-3; processes 101 to 104. */
static inline void setup(void)
{
    tree_create(&tree);
    freqtree_acpi(&tree, 0, 0, 1);
    freqtree_acpi(&tree, 1, 2, 3);
    for (unsigned pid = 101; pid <= 104; pid++)
        freqtree_process(&tree, pid, pid * 10);
    joule_control_init(&control, tree.fd, &config);
    freqtree_dump(&tree, 2, before);
}

static inline void teardown(void)
{
    joule_control_destroy(&control);
    tree_destroy(&tree);
}

static inline bool has_journal(void)
{
    struct stat st;

    return fstatat(tree.fd, JOURNAL, &st, 0) == 0;
}

/* As it was, and no journal. */
static inline void check_clean(void)
{
    char now[FREQTREE_TEXT];

    freqtree_dump(&tree, 2, now);
    ck_assert_str_eq(now, before);
    ck_assert(!has_journal());
}

static inline int try_take(unsigned pid, unsigned job, const char *cpus,
                           const char *request, struct joule_control_grant *g,
                           struct joule_error *err)
{
    struct joule_control_claim claim = {
        .job = job, .step = "0", .pid = (pid_t)pid};

    if (request)
        ck_assert_int_eq(joule_request_parse(request, &claim.request, NULL), 0);
    claim.is_watch = !request;
    ck_assert_int_eq(joule_cpus_parse(&claim.cpus, cpus), 0);
    return joule_control_hold(&control, &claim, g, err);
}

static inline void take(unsigned pid, unsigned job, const char *cpus,
                        const char *request, struct joule_control_grant *g)
{
    struct joule_error err = {""};

    ck_assert_msg(try_take(pid, job, cpus, request, g, &err) == 0, "%s",
                  err.text);
}

static inline void release(const struct joule_control_grant *g)
{
    struct joule_error err = {""};

    ck_assert_msg(joule_control_release(&control, g, &err) == 0, "%s",
                  err.text);
}

/* How many steps were found dead. */
static inline int recover(void)
{
    struct joule_control_recovery r;

    return joule_control_recover(&control, &r, NULL) < 0 ? -1 : (int)r.ended;
}

static inline void governor_is(unsigned id, const char *governor)
{
    ck_assert_str_eq(freqtree_read(&tree, id, "scaling_governor"), governor);
}

static inline void speed_is(unsigned id, const char *khz)
{
    ck_assert_str_eq(freqtree_read(&tree, id, "scaling_setspeed"), khz);
}

#endif

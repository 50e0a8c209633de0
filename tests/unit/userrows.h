/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userrows.h - for the tests of what users see of the ledger: a node in a
 * tree, rows of its ledger, and how a user's file is read.
 *
 * Each test program has its own copy of the state.
 */
#ifndef JOULE_TESTS_USERROWS_H
#define JOULE_TESTS_USERROWS_H

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/node/user_view.h"
#include "tests/unit/tree.h"

#define S     JOULE_NS_PER_S
#define MS    JOULE_NS_PER_MS
#define USERS "run/slurm-joule/n1/users"
#define WALL  (INT64_C(1700000000) * S)

static struct tree tree;
static struct joule_error err;
static struct joule_userview *view;
static struct joule_row rows[JOULE_LEDGER_SLOTS_MAX];

/* What was read last. */
static struct joule_user_totals totals;
static struct joule_user_row got[JOULE_USERVIEW_ROWS_MAX];
static size_t got_count;

static struct joule_userview *open_view(int64_t period_ns)
{
    const struct joule_userview_options options = {
        .period_ns = period_ns,
        .sample_period_ns = 2 * S,
        .attribution = JOULE_ATTRIBUTION_ALLOC,
    };

    return joule_userview_create(tree.fd, "n1", &options, &err);
}

/* A view for numbers each second, unless the file system cannot have one. */
static inline void begin_view(void)
{
    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "one\n");
    memset(&err, 0, sizeof(err));
    memset(rows, 0, sizeof(rows));
    view = open_view(S);
    if (!view && errno == EOPNOTSUPP) {
        fprintf(stderr, "skip - userview: all # no access lists in %s\n",
                tree.path);
        exit(0);
    }
    ck_assert_msg(view != NULL, "%s", err.text);
}

static inline void end_view(void)
{
    joule_userview_destroy(view);
    tree_destroy(&tree);
}

/* A step that runs, in this slot. */
static inline struct joule_row *put_row(unsigned slot, uint32_t uid,
                                        uint32_t job, int64_t began_ns)
{
    static uint64_t owner;

    rows[slot] = (struct joule_row){
        .owner = ++owner,
        .job = job,
        .step = slot,
        .uid = uid,
        .kind = JOULE_STEP_NUMBERED,
        .state = JOULE_ROW_RUNNING,
        .cpu_count = 2,
        .job_cpu_count = 3,
        .began_ns = began_ns,
    };
    return &rows[slot];
}

static inline void remove_row(unsigned slot)
{
    memset(&rows[slot], 0, sizeof(rows[slot]));
}

static inline void publish(int64_t now_ns)
{
    int rc = joule_userview_publish(view, rows, JOULE_LEDGER_SLOTS_MAX, now_ns,
                                    WALL + now_ns, &err);

    ck_assert_msg(rc == 0, "%s", err.text);
}

static inline int try_read(uint32_t uid)
{
    got_count = JOULE_USERVIEW_ROWS_MAX;
    return joule_userview_read(tree.fd, "n1", uid, &totals, got, &got_count,
                               &err);
}

static inline void must_read(uint32_t uid, size_t count)
{
    int rc = try_read(uid);

    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert_uint_eq(got_count, count);
}

static inline void must_not_read(uint32_t uid, int errnum, const char *text)
{
    ck_assert_int_eq(try_read(uid), -1);
    ck_assert_msg(errno == errnum && strstr(err.text, text), "%s: %s",
                  strerror(errno), err.text);
}

static inline int run_test(const char *name, TCase *tc)
{
    Suite *suite = suite_create(name);
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, begin_view, end_view);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif

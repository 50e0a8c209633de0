/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `joule ledger` on a ledger that is made here. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/node/ledger.h"
#include "tests/unit/tree.h"
#include "tools/joule/ledger_command.h"

#define S      JOULE_NS_PER_S
#define NOW    (1000 * S)
#define EXTERN UINT32_C(0xfffffffc)
#define BATCH  UINT32_C(0xfffffffb)
#define SALLOC UINT32_C(0xfffffffa)

static struct tree tree;
static struct joule_error err;
static struct joule_ledger_view *view;
static struct joule_ledger_totals totals;
static struct joule_row rows[8];
static char *text;
static size_t text_size;

static int64_t mono(void *arg)
{
    (void)arg;
    return NOW;
}

static int64_t wall(void *arg)
{
    (void)arg;
    return INT64_C(1700000000) * S;
}

static const struct joule_clock stopped = {mono, wall, NULL};

static void put_row(unsigned slot, uint32_t job, uint32_t step, uint32_t kind,
                    uint64_t uj)
{
    rows[slot] = (struct joule_row){
        .owner = slot + 1,
        .job = job,
        .step = step,
        .uid = job == 7 ? 1000 : 4000000,
        .kind = (uint16_t)kind,
        .state = JOULE_ROW_RUNNING,
        .cpu_count = 1,
        .job_cpu_count = 2,
        .began_ns = NOW - 90 * S,
        .uj = uj,
        .mw = (uint32_t)(uj / 1000),
    };
}

/* Two jobs; the second has a step that has ended, and one that is no more. */
static void fill(void)
{
    memset(rows, 0, sizeof(rows));
    put_row(0, 9, 1, JOULE_STEP_NUMBERED, 20000000);
    put_row(1, 9, 0, JOULE_STEP_NUMBERED, 3000000);
    rows[1].state = JOULE_ROW_ENDED;
    rows[1].ended_ns = NOW - 30 * S;
    put_row(3, 9, EXTERN, JOULE_STEP_EXTERN, 1000000);
    put_row(4, 9, BATCH, JOULE_STEP_OTHER, 2000000);
    put_row(5, 7, SALLOC, JOULE_STEP_OTHER, 500);
    rows[0].job_uj = rows[3].job_uj = rows[4].job_uj = 30000000;
    rows[1].job_uj = 7000000;
    rows[5].job_uj = 500;
    totals = (struct joule_ledger_totals){
        .mono_ns = NOW - S / 2,
        .begun_ns = NOW - 100 * S,
        .charged_uj = 60000000,
        .jobs_uj = 30000500,
        .unallocated_uj = 19999500,
        .system_uj = 10000000,
        .gone_uj = 4000000,
        .node_mw = 123456,
        .how = JOULE_ATTRIBUTION_ALLOC + 1,
        .part_count = 1,
    };
}

static void publish_ledger(const char *node)
{
    struct joule_ledger *l = joule_ledger_create(tree.fd, node, 1, &err);

    ck_assert_msg(l != NULL, "%s", err.text);
    for (unsigned i = 0; i < 8; i++)
        joule_ledger_stage(l, i, &rows[i]);
    joule_ledger_publish(l, &totals);
    joule_ledger_destroy(l);
}

static void publish_node(const char *node)
{
    struct joule_ledger *ledger = joule_ledger_create(tree.fd, node, 1, &err);
    struct joule_snapshot *s = calloc(1, sizeof(*s));
    struct joule_sensor_state *state = calloc(1, sizeof(*state));

    s->period_ns = S;
    s->samples = 1;
    s->total.mono_ns = totals.mono_ns;
    s->total.valid = true;
    joule_ledger_stage_node(ledger, s, state);
    joule_ledger_publish(ledger, NULL);
    joule_ledger_destroy(ledger);
    free(s);
    free(state);
}

static void setup(void)
{
    setenv("TZ", "UTC", 1);
    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "one\n");
    tree_write(&tree, "proc/sys/kernel/hostname", "host\n");
    memset(&err, 0, sizeof(err));
    view = calloc(1, sizeof(*view));
    fill();
}

static void teardown(void)
{
    free(view);
    tree_destroy(&tree);
}

static int collect(const char *node, uint32_t job)
{
    return joule_ledger_collect(view, tree.fd, &stopped, node, job, &err);
}

static void must_collect(const char *node, uint32_t job)
{
    int rc = collect(node, job);

    ck_assert_msg(rc == 0, "%s", err.text);
}

static void must_refuse(const char *node, int errnum, const char *sentence)
{
    ck_assert_int_eq(collect(node, 0), -1);
    ck_assert_msg(errno == errnum && strstr(err.text, sentence), "%s: %s",
                  strerror(errno), err.text);
}

static void report(void (*print)(FILE *, const struct joule_ledger_view *))
{
    FILE *out = open_memstream(&text, &text_size);

    print(out, view);
    fclose(out);
}

static void must_say(const char *words)
{
    ck_assert_msg(strstr(text, words), "no \"%s\" in\n%s", words, text);
}

static void must_not_say(const char *words)
{
    ck_assert_msg(!strstr(text, words), "\"%s\" in\n%s", words, text);
}

START_TEST(test_nothing_there)
{
    must_refuse("n1", ENOENT, "slurmd of node n1 has not measured");
    must_refuse(NULL, ENOENT, "slurmd of node host has not measured");
    must_refuse("a/b", EINVAL, "not a node name");
    joule_ledger_destroy(joule_ledger_create(tree.fd, "n1", 1, &err));
    must_refuse("n1", ENODATA, "the ledger of node n1 has no sample yet");
    must_refuse(NULL, ENODATA, "n1");
    joule_ledger_destroy(joule_ledger_create(tree.fd, "n2", 1, &err));
    must_refuse(NULL, ENOENT, "none of node host (say --node NAME)");
}
END_TEST

START_TEST(test_jobs_and_steps)
{
    static const char *const steps[] = {"interactive", "extern", "batch", "0",
                                        "1"};
    char buf[JOULE_STEP_TEXT_MAX];

    publish_node("n1");
    publish_ledger("n1");
    must_collect(NULL, 0);
    ck_assert(!view->own);
    ck_assert(!view->stale);
    ck_assert(joule_ledger_good(view));
    ck_assert_int_eq(view->age_ns, S / 2);
    ck_assert_int_eq(view->totals.how, JOULE_ATTRIBUTION_ALLOC + 1);
    ck_assert_uint_eq(view->line_count, 5);
    ck_assert_uint_eq(view->job_count, 2);
    for (size_t i = 0; i < 5; i++)
        ck_assert_str_eq(joule_ledger_step(&view->line[i].row, buf), steps[i]);
    ck_assert_uint_eq(view->job[0].count, 1);
    ck_assert_uint_eq(view->job[0].uj, 500);
    ck_assert_uint_eq(view->job[0].uj_gone, 0);
    ck_assert_uint_eq(view->job[1].first, 1);
    ck_assert_uint_eq(view->job[1].count, 4);
    ck_assert_uint_eq(view->job[1].uj, 30000000);
    /* 30 J of the job, 26 J of the rows there are. */
    ck_assert_uint_eq(view->job[1].uj_gone, 4000000);
    ck_assert_uint_eq(view->job[1].mw, 23000);
    ck_assert_uint_eq(view->job[1].cpu_count, 2);
    ck_assert(view->job[1].runs);
    ck_assert_uint_eq(view->jobs_mw, 23000);
}
END_TEST

START_TEST(test_text)
{
    publish_node("n1");
    publish_ledger("n1");
    must_collect("n1", 0);
    report(joule_ledger_print_text);
    must_say("Node n1: attribution alloc, last sample 0.5 s ago\n"
             "Charged since 2023-11-14 22:11:40 (99.5 s)\n");
    must_say(
        "       9 job         4000000       2   89.5 s    30.00 J    23.0 W"
        "  50.0 %\n");
    must_say(
        "         extern                    1   89.5 s    1.000 J     1.0 W"
        "   1.7 %\n");
    must_say(
        "         0                         1   60.0 s    3.000 J         -"
        "   5.0 % ended\n");
    must_say("(earlier)");
    must_say("jobs (4.000 J of it by steps that are gone) ");
    must_say("\nunallocated (CPUs that no job has) ");
    must_say("\nnode (the sum)                                   60.00 J   "
             "123.5 W 100.0 %\n");
    must_say("Learned idle power: not known until the node has been");
    must_not_say("add up");
    must_not_say("STALE");
    free(text);
}
END_TEST

START_TEST(test_json_is_exact)
{
    totals.charged_uj = totals.system_uj = UINT64_C(18446744073709551615);
    totals.part[0].idle_power.idle_power_uw = 45678000;
    publish_ledger("n1");
    must_collect("n1", 0);
    report(joule_ledger_print_json);
    must_say("\"node\": \"n1\"");
    must_say("\"only_user_id\": null");
    must_say("\"attribution\": \"alloc\"");
    must_say("\"energy_uj\": 30000000");
    must_say("\"earlier_steps_uj\": 4000000");
    must_say("\"step_id\": 4294967292");
    must_say("\"state\": \"ended\"");
    must_say("\"power_mw\": null");
    must_say("\"system_uj\": 18446744073709551615");
    must_say("\"learned_idle_mw\": 45678");
    free(text);
}
END_TEST

START_TEST(test_one_job)
{
    const uint32_t job = 7, none = 8;

    publish_node("n1");
    publish_ledger("n1");
    must_collect("n1", job);
    ck_assert_uint_eq(view->job_count, 1);
    ck_assert_uint_eq(view->line_count, 1);
    /* The sums are the node's all the same. */
    ck_assert_uint_eq(view->jobs_mw, 23000);
    ck_assert_int_eq(collect("n1", none), -1);
    ck_assert_int_eq(errno, ESRCH);
    ck_assert_str_eq(err.text, "job 8 has no step on node n1");
}
END_TEST

START_TEST(test_what_is_not_well)
{
    totals.mono_ns = NOW - 4 * S;
    totals.faults = 2;
    totals.backwards = 3;
    totals.unknown = 4;
    totals.refused = 5;
    totals.multiple_uj = 6000000;
    totals.how = 0;
    totals.part_count = 2;
    totals.part[0].idle_power.idle_power_uw = 20000000;
    publish_node("n1");
    publish_ledger("n1");
    must_collect("n1", 0);
    ck_assert(view->stale);
    ck_assert(!joule_ledger_good(view));
    report(joule_ledger_print_text);
    must_say("attribution not known");
    must_say("last sample 4.0 s ago\nSTALE: ");
    must_say("charged more than once");
    must_say("6.000 J");
    must_say("package 1 of 2 20.0 W, package 2 of 2 not known yet\n");
    must_say("2 intervals did not add up");
    must_say("3 times a counter of CPU time went back");
    must_say("4 times the CPU time of a step was not known");
    must_say("5 registrations made no sense");
    free(text);
}
END_TEST

START_TEST(test_no_step)
{
    memset(rows, 0, sizeof(rows));
    publish_ledger("n1");
    must_collect("n1", 0);
    report(joule_ledger_print_text);
    must_say("no step\n");
    free(text);
    report(joule_ledger_print_json);
    must_say("\"jobs\": []");
    free(text);
}
END_TEST

/* Somebody who is not root: 0, or what went wrong. */
static int as_user(void)
{
    if (setgid(1000) < 0 || setuid(1000) < 0)
        return 1;
    if (collect(NULL, 0) < 0)
        return 2;
    if (!view->own || view->uid != 1000 || view->line_count != 1 ||
        view->line[0].row.job != 7 || view->totals.charged_uj != 0)
        return 3;
    if (view->totals.how != JOULE_ATTRIBUTION_ALLOC + 1)
        return 4;
    report(joule_ledger_print_text);
    /* 500 uJ, without anything of the node. */
    if (strstr(text, "system") || strstr(text, "%") || !strstr(text, "0.001 J"))
        return 5;
    return 0;
}

START_TEST(test_a_user_sees_his_own)
{
    const struct joule_userview_options options = {
        .period_ns = S,
        .sample_period_ns = S,
        .attribution = JOULE_ATTRIBUTION_ALLOC,
    };
    struct joule_userview *users;
    pid_t pid;
    int status;

    if (geteuid() != 0) {
        fprintf(stderr, "skip - joule_ledger: a user # needs root\n");
        return;
    }
    publish_ledger("n1");
    pid = fork();
    if (pid == 0) {
        if (setgid(1000) < 0 || setuid(1000) < 0)
            _exit(1);
        _exit(collect("n1", 0) == 0 || errno != ENOENT ? 2 : 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    users = joule_userview_create(tree.fd, "n1", &options, &err);
    if (!users && errno == EOPNOTSUPP) {
        fprintf(stderr, "skip - joule_ledger: a user # no access lists\n");
        return;
    }
    ck_assert_int_eq(joule_userview_publish(users, rows, 8, NOW - S, 0, &err),
                     0);
    pid = fork();
    if (pid == 0)
        _exit(as_user());
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    joule_userview_destroy(users);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("joule ledger");
    TCase *tc = tcase_create("joule ledger");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_nothing_there);
    tcase_add_test(tc, test_jobs_and_steps);
    tcase_add_test(tc, test_text);
    tcase_add_test(tc, test_json_is_exact);
    tcase_add_test(tc, test_one_job);
    tcase_add_test(tc, test_what_is_not_well);
    tcase_add_test(tc, test_no_step);
    tcase_add_test(tc, test_a_user_sees_his_own);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/node/ledger_file.h"
#include "tests/unit/tree.h"

#define MS INT64_C(1000000)

static struct tree tree;
static struct joule_ledger *writer;

static void setup(void)
{
    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "one\n");
    writer = joule_ledger_create(tree.fd, "n1", 1, NULL);
    ck_assert_ptr_nonnull(writer);
}

static void teardown(void)
{
    joule_ledger_destroy(writer);
    tree_destroy(&tree);
}

START_TEST(test_nobody_answers)
{
    ck_assert_int_eq(joule_ledger_ask(writer, 20 * MS), -1);
    ck_assert_int_eq(errno, ETIMEDOUT);
    ck_assert_int_eq(joule_ledger_ask(writer, -1), -1);
    ck_assert(!joule_ledger_wait(writer, 2, 5 * MS));
    ck_assert(joule_ledger_wait(writer, 1, 1000 * MS));
    /* Tickets go round. */
    writer->head->asked = UINT32_MAX;
    ck_assert(joule_ledger_wait(writer, UINT32_MAX - 1, 0));
    ck_assert(!joule_ledger_wait(writer, UINT32_MAX, 0));
    joule_ledger_wake(writer);
    ck_assert(joule_ledger_wait(writer, UINT32_MAX, 0));
}
END_TEST

static _Atomic bool stop;

/* Publishes before it answers. */
static void *answer(void *arg)
{
    struct joule_ledger *l = joule_ledger_create(tree.fd, "n1", 1, NULL);
    uint32_t ticket = 0;
    uint64_t samples = 1;

    (void)arg;
    while (!stop) {
        if (!joule_ledger_wait(l, ticket, 1000 * MS))
            continue;
        ticket = joule_ledger_asked(l);
        joule_ledger_publish(
            l, &(struct joule_ledger_totals){.mono_ns = (int64_t)++samples});
        joule_ledger_answer(l, ticket);
    }
    joule_ledger_destroy(l);
    return NULL;
}

START_TEST(test_fresh_samples)
{
    struct joule_ledger_totals before, after;
    pthread_t thread;
    pid_t pid;
    int status;

    joule_ledger_publish(writer, &(struct joule_ledger_totals){.mono_ns = 1});
    ck_assert_int_eq(pthread_create(&thread, NULL, answer, NULL), 0);
    pid = fork();
    if (pid == 0)
        writer = joule_ledger_open(tree.fd, "n1", NULL);
    for (int i = 0; i < 1000; i++) {
        int a = joule_ledger_read(writer, &before, NULL, NULL);
        int b = joule_ledger_ask(writer, 5000 * MS);
        int c = joule_ledger_read(writer, &after, NULL, NULL);

        if (pid == 0 && (a || b || c || after.mono_ns <= before.mono_ns))
            _exit(1);
        ck_assert_int_eq(a | b | c, 0);
        ck_assert_int_gt(after.mono_ns, before.mono_ns);
    }
    if (pid == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    stop = true;
    joule_ledger_wake(writer);
    pthread_join(thread, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("request");
    TCase *tc = tcase_create("request");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_nobody_answers);
    tcase_add_test(tc, test_fresh_samples);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

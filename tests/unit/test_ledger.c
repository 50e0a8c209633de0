/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/process.h"
#include "common/node/ledger_file.h"
#include "tests/unit/dice.h"
#include "tests/unit/tree.h"

#define LEDGER "run/slurm-joule/n1/ledger"
#define SLOTS  JOULE_LEDGER_SLOTS_MAX

static struct tree tree;
static struct joule_error err;
static struct joule_ledger *writer;

static void set_boot(const char *id)
{
    tree_write(&tree, "proc/sys/kernel/random/boot_id", id);
}

/* A process that is alive, or is not, in the tree's /proc. */
static void set_process(unsigned pid, char state)
{
    char path[32], text[128];

    snprintf(path, sizeof(path), "proc/%u/stat", pid);
    snprintf(text, sizeof(text),
             "%u (a ) b) %c 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 1 1", pid,
             state);
    tree_write(&tree, path, text);
}

static void setup(void)
{
    tree_create(&tree);
    set_boot("one\n");
    memset(&err, 0, sizeof(err));
    writer = joule_ledger_create(tree.fd, "n1", 1, &err);
    ck_assert_msg(writer != NULL, "%s", err.text);
}

static void teardown(void)
{
    joule_ledger_destroy(writer);
    tree_destroy(&tree);
}

static struct joule_registration step(uint32_t job, uint32_t number,
                                      uint64_t owner)
{
    return (struct joule_registration){.owner = owner,
                                       .job = job,
                                       .step = number,
                                       .uid = 1000 + job,
                                       .cpu_count = 2,
                                       .job_cpu_count = 4,
                                       .began_ns = 55,
                                       .path = "/slurm/job_1/step_0"};
}

static const uint64_t cpus = 0x33, own_cpus = 0x30;

static int add_kind(struct joule_ledger *l, uint32_t job, uint32_t uid,
                    enum joule_step_kind kind, uint64_t owner, unsigned *slot)
{
    struct joule_registration r = step(job, 0, owner);

    r.uid = uid;
    r.kind = (uint32_t)kind;
    return joule_ledger_register(l, tree.fd, &r, &cpus, &own_cpus, slot, &err);
}

static int add(struct joule_ledger *l, uint32_t job, uint64_t owner,
               unsigned *slot)
{
    struct joule_registration r = step(job, 0, owner);

    return joule_ledger_register(l, tree.fd, &r, &cpus, &own_cpus, slot, &err);
}

START_TEST(test_registration)
{
    struct joule_ledger *l = joule_ledger_open(tree.fd, "n1", &err);
    struct joule_registration r;
    uint64_t got, got_own;
    unsigned slot;

    set_process(7, 'S');
    ck_assert_int_eq(joule_ledger_registered(writer, 0, &r, &got, NULL), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(add(l, 3, joule_process_number(7, 77), &slot), 0);
    ck_assert_int_eq(joule_ledger_registered(writer, slot, &r, &got, &got_own),
                     0);
    ck_assert_uint_eq(got_own, own_cpus);
    ck_assert_int_eq(joule_ledger_registered(writer, slot, &r, NULL, NULL), 0);
    ck_assert_uint_eq(r.job, 3);
    ck_assert_uint_eq(r.uid, 1003);
    ck_assert_int_eq(r.began_ns, 55);
    ck_assert_int_eq(r.ended_ns, 0);
    ck_assert_str_eq(r.path, "/slurm/job_1/step_0");
    ck_assert_uint_eq(got, cpus);
    ck_assert_int_eq(joule_process_pid(r.owner), 7);
    ck_assert(!joule_ledger_sweep(writer, tree.fd, slot));
    ck_assert_uint_eq(joule_ledger_reported_cpu(writer, slot, r.owner),
                      JOULE_CPU_UNKNOWN);
    joule_ledger_report_cpu(l, slot, r.owner, 88);
    joule_ledger_report_cpu(l, slot, r.owner + 1, 77);
    joule_ledger_end(l, slot, r.owner, 99);
    joule_ledger_end(l, slot, r.owner + 1, 98);
    ck_assert_int_eq(joule_ledger_registered(writer, slot, &r, &got, NULL), 0);
    ck_assert_int_eq(r.ended_ns, 99);
    joule_ledger_release(l, slot, r.owner + 1);
    ck_assert_int_eq(joule_ledger_registered(writer, slot, &r, &got, NULL), 0);
    joule_ledger_release(l, slot, r.owner);
    ck_assert_int_eq(joule_ledger_registered(writer, slot, &r, &got, NULL), -1);
    ck_assert_int_eq(joule_ledger_ended(writer, slot, r.owner), 99);
    ck_assert_int_eq(joule_ledger_ended(writer, slot, r.owner + 1), 0);
    ck_assert_uint_eq(joule_ledger_reported_cpu(writer, slot, r.owner), 88);
    ck_assert_uint_eq(joule_ledger_reported_cpu(writer, slot, r.owner + 1),
                      JOULE_CPU_UNKNOWN);
    joule_ledger_destroy(l);
}
END_TEST

START_TEST(test_bad_registrations_are_refused)
{
    struct joule_registration r, bad[8];
    unsigned slot;
    uint64_t got;

    for (int i = 0; i < 8; i++)
        bad[i] = step(1, 0, 7);
    bad[0].owner = 0;
    bad[1].kind = 3;
    bad[2].cpu_count = UINT32_MAX;
    bad[3].job_cpu_count = UINT32_MAX;
    bad[4].began_ns = -1;
    memset(bad[5].path, '/', sizeof(bad[5].path));
    strcpy(bad[6].path, "relative");
    strcpy(bad[7].path, "/a/../../../etc");
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(joule_ledger_register(writer, tree.fd, &bad[i], &cpus,
                                               &own_cpus, &slot, &err),
                         -1);
        ck_assert_int_eq(errno, EINVAL);
    }
    /* Written past the check, into the file. */
    ck_assert_int_eq(add(writer, 1, 7, &slot), 0);
    ledger_slot(writer, slot)->registration.word[1] |= UINT64_C(0xffff) << 32;
    ck_assert_int_eq(joule_ledger_registered(writer, slot, &r, &got, NULL), -1);
    ck_assert_int_eq(errno, EBADMSG);
}
END_TEST

/* Noise in the whole of the file behind its head: no harm, no row. */
START_TEST(test_noise)
{
    static struct joule_row rows[SLOTS];
    struct joule_ledger_totals totals;
    struct joule_registration r;
    uint64_t seed = dice_seed(), got, got_own;
    size_t count = SLOTS;

    for (int round = 0; round < 200; round++) {
        for (unsigned i = 0; i < 64; i++) {
            uint64_t *word = (uint64_t *)ledger_slot(writer, i);

            for (size_t k = 0; k < writer->slot_size / 8; k++)
                word[k] = dice64(&seed) >> dice(&seed, 64);
            ledger_slot(writer, i)->registration.ready =
                (uint64_t)ledger_slot(writer, i)->registration.owner;
            joule_ledger_registered(writer, i, &r, &got, &got_own);
            joule_ledger_sweep(writer, tree.fd, i);
        }
        writer->head->slots = (uint32_t)dice64(&seed);
        ck_assert_uint_eq(joule_ledger_slots(writer), 64);
        writer->head->generation = 2;
        writer->head
            ->totals[0][offsetof(struct joule_ledger_totals, part) / 8 - 1] =
            dice64(&seed);
        joule_ledger_read(writer, &totals, rows, &count);
    }
    writer->head->slots = 64;
}
END_TEST

static int add_extern(struct joule_ledger *l, uint32_t job, pid_t pid,
                      uint64_t start, unsigned *slot)
{
    return add_kind(l, job, 1000, JOULE_STEP_EXTERN,
                    joule_process_number(pid, start), slot);
}

START_TEST(test_slots_grow_are_full_and_are_free_again)
{
    struct joule_ledger *l = joule_ledger_open(tree.fd, "n1", &err);
    struct stat st;
    unsigned slot;

    for (unsigned i = 1; i <= SLOTS; i++) {
        set_process(i, 'S');
        ck_assert_int_eq(add_extern(l, i, (pid_t)i, 77, &slot), 0);
        ck_assert_uint_eq(slot, i - 1);
        if (i == 512) {
            ck_assert_int_eq(fstatat(tree.fd, LEDGER, &st, 0), 0);
            ck_assert_int_lt(st.st_size, 328 * 1024);
        }
    }
    ck_assert_uint_eq(joule_ledger_slots(writer), SLOTS);
    ck_assert_int_eq(add_extern(l, 1, 5000, 77, &slot), -1);
    ck_assert_int_eq(errno, ENOSPC);
    /* Ended, gone, and its number used again. */
    set_process(9, 'Z');
    ck_assert_int_eq(add_extern(l, 1, 5000, 77, &slot), 0);
    ck_assert_uint_eq(slot, 8);
    tree_remove(&tree, "proc/100/stat");
    ck_assert(!joule_ledger_sweep(writer, tree.fd, 98));
    ck_assert(joule_ledger_sweep(writer, tree.fd, 99));
    ck_assert_int_eq(add_extern(l, 1, 9, 78, &slot), 0);
    ck_assert_uint_eq(slot, 99);
    set_process(99, 'S');
    ck_assert(!joule_ledger_sweep(writer, tree.fd, 98));
    ledger_slot(writer, 98)->registration.owner = joule_process_number(99, 76);
    ck_assert(joule_ledger_sweep(writer, tree.fd, 98));
    joule_ledger_destroy(l);
}
END_TEST

/* Registers steps until one is refused: returns how many there are. */
static unsigned flood(uint32_t job, uint32_t uid)
{
    static unsigned pid;
    unsigned slot, n = 0;

    do
        set_process(++pid, 'S');
    while (add_kind(writer, job, uid, JOULE_STEP_NUMBERED,
                    joule_process_number((pid_t)pid, 77), &slot) == 0 &&
           ++n);
    ck_assert_int_eq(errno, EDQUOT);
    return n;
}

/* The sleeping steps of one job, or one user, leave room for all others. */
START_TEST(test_one_job_does_not_fill_the_ledger)
{
    unsigned slot, n = 0;

    ck_assert_uint_eq(flood(1, 1000), JOULE_LEDGER_STEPS_MAX / 2);
    ck_assert_uint_eq(flood(1, 1000), 0);
    for (uint32_t job = 2; job < 300; job++)
        n += flood(job, 1000);
    ck_assert_uint_eq(n, JOULE_LEDGER_USER_MAX - JOULE_LEDGER_STEPS_MAX / 2);
    ck_assert_uint_eq(flood(300, 1001),
                      (JOULE_LEDGER_STEPS_MAX - JOULE_LEDGER_USER_MAX) / 2);
    ck_assert_uint_gt(flood(301, 1002), 50);
    /* Extern steps find room whatever there is. */
    for (unsigned i = 0; i < SLOTS - JOULE_LEDGER_STEPS_MAX; i++) {
        set_process(10000 + i, 'S');
        ck_assert_int_eq(add_extern(writer, 1, (pid_t)(10000 + i), 77, &slot),
                         0);
    }
    /* A slot of the job's own becomes free: its slurmstepd was killed. */
    tree_remove(&tree, "proc/5/stat");
    set_process(9999, 'S');
    ck_assert_int_eq(add_kind(writer, 303, 1003, JOULE_STEP_NUMBERED,
                              joule_process_number(9999, 77), &slot),
                     0);
    ck_assert_uint_eq(joule_ledger_surplus(writer), 0);
    joule_ledger_add_surplus(writer);
    ck_assert_uint_eq(joule_ledger_surplus(writer), 1);
}
END_TEST

static void stage(unsigned slot, uint64_t k)
{
    struct joule_row row = {.owner = 1 + slot, .uj = k, .job_uj = 3 * k};

    row.mw = (uint32_t)k;
    joule_ledger_stage(writer, slot, &row);
}

static void publish(uint64_t k)
{
    struct joule_ledger_totals totals = {
        .mono_ns = (int64_t)k, .jobs_uj = 2 * k, .part_count = 2};

    totals.part[1].uj = 5 * k;
    joule_ledger_publish(writer, &totals);
}

/* What there is is of one publication. */
static void check_whole(struct joule_ledger *l, uint64_t k, size_t rows)
{
    static struct joule_row row[SLOTS];
    struct joule_ledger_totals totals;
    size_t count = SLOTS;

    ck_assert_int_eq(joule_ledger_read(l, &totals, row, &count), 0);
    ck_assert_int_eq(totals.mono_ns, (int64_t)k);
    ck_assert_uint_eq(totals.jobs_uj, 2 * k);
    ck_assert_uint_eq(totals.part[1].uj, 5 * k);
    for (size_t i = 0; i < rows; i++) {
        ck_assert_uint_eq(row[i].uj, k);
        ck_assert_uint_eq(row[i].job_uj, 3 * k);
        ck_assert_uint_eq(row[i].mw, (uint32_t)k);
    }
}

START_TEST(test_rows_are_published_together)
{
    struct joule_ledger *l = joule_ledger_open(tree.fd, "n1", &err);
    struct joule_ledger_totals totals;
    struct joule_row row;
    int64_t mono_ns;

    ck_assert_int_eq(joule_ledger_read(l, &totals, NULL, NULL), -1);
    ck_assert_int_eq(errno, ENODATA);
    stage(0, 1);
    ck_assert_int_eq(joule_ledger_read_row(l, 0, 1, &row, &mono_ns), -1);
    ck_assert_int_eq(errno, ENOENT);
    publish(1);
    check_whole(l, 1, 1);
    stage(0, 77);
    stage(0, 2);
    stage(1, 2);
    check_whole(l, 1, 1);
    publish(2);
    check_whole(l, 2, 2);
    ck_assert_int_eq(joule_ledger_read_row(l, 1, 2, &row, &mono_ns), 0);
    ck_assert_int_eq(mono_ns, 2);
    ck_assert_int_eq(joule_ledger_read_row(l, 1, 3, &row, &mono_ns), -1);
    ck_assert_int_eq(joule_ledger_read_row(l, 64, 1, &row, &mono_ns), -1);
    /* What is not changed stays. */
    publish(3);
    ck_assert_int_eq(joule_ledger_read_row(l, 1, 2, &row, &mono_ns), 0);
    ck_assert_uint_eq(row.uj, 2);
    ck_assert_int_eq(mono_ns, 3);
    /* Prepared by a writer that died: never seen. */
    stage(1, 4);
    joule_ledger_destroy(writer);
    writer = joule_ledger_create(tree.fd, "n1", 1, &err);
    publish(4);
    ck_assert_int_eq(joule_ledger_read_row(l, 1, 2, &row, &mono_ns), 0);
    ck_assert_uint_eq(row.uj, 2);
    row.owner = 0;
    joule_ledger_stage(writer, 1, &row);
    publish(5);
    ck_assert_int_eq(joule_ledger_read_row(l, 1, 2, &row, &mono_ns), -1);
    joule_ledger_destroy(l);
}
END_TEST

/* Four processes take and leave slots: nobody finds another's in his. */
START_TEST(test_many_register_at_once)
{
    pid_t pid[4];
    int status;

    for (unsigned p = 0; p < 4; p++) {
        set_process(10 + p, 'S');
        pid[p] = fork();
        if (pid[p] == 0) {
            struct joule_ledger *l = joule_ledger_open(tree.fd, "n1", NULL);
            struct joule_registration r;
            unsigned slot[40];
            uint64_t got, owner;

            for (int round = 0; round < 100; round++) {
                for (unsigned i = 0; i < 40; i++) {
                    owner = joule_process_number((pid_t)(10 + p), 77 + i);
                    if (add(l, 100 * p + i, owner, &slot[i]) < 0)
                        _exit(1);
                }
                for (unsigned i = 0; i < 40; i++) {
                    owner = joule_process_number((pid_t)(10 + p), 77 + i);
                    if (joule_ledger_registered(l, slot[i], &r, &got, NULL) <
                            0 ||
                        r.owner != owner || r.job != 100 * p + i)
                        _exit(2);
                    joule_ledger_release(l, slot[i], owner);
                }
            }
            _exit(0);
        }
    }
    for (unsigned p = 0; p < 4; p++) {
        ck_assert_int_eq(waitpid(pid[p], &status, 0), pid[p]);
        ck_assert_int_eq(status, 0);
    }
    /* 16,000 steps: nothing is left of them. */
    ck_assert_uint_le(joule_ledger_slots(writer), 192);
    for (unsigned i = 0; i < joule_ledger_slots(writer); i++)
        ck_assert_uint_eq(ledger_slot(writer, i)->registration.owner, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ledger");
    TCase *tc = tcase_create("ledger");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_registration);
    tcase_add_test(tc, test_bad_registrations_are_refused);
    tcase_add_test(tc, test_noise);
    tcase_add_test(tc, test_slots_grow_are_full_and_are_free_again);
    tcase_add_test(tc, test_one_job_does_not_fill_the_ledger);
    tcase_add_test(tc, test_rows_are_published_together);
    tcase_add_test(tc, test_many_register_at_once);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

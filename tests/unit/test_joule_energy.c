/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The energy of its step that a program asks for (joule_energy), in files that
 * slurmd's part writes. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/joule.h"
#include "lib/user_rows.h"
#include "tests/unit/userrows.h"

static char path[128];

/* The node of a tree, in this boot; the user is who runs the test. */
static void setup(void)
{
    char boot_id[64] = "", run[96];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    ck_assert_int_gt(read(fd, boot_id, sizeof(boot_id) - 1), 0);
    close(fd);
    begin_view();
    joule_userview_destroy(view);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", boot_id);
    view = open_view(S);
    ck_assert_msg(view, "%s", err.text);
    snprintf(run, sizeof(run), "%s/run/slurm-joule", tree.path);
    snprintf(path, sizeof(path), "%s/n1/users/%u/rows", run,
             (unsigned)geteuid());
    setenv("JOULE_RUN_DIR", run, 1);
    setenv("SLURMD_NODENAME", "n1", 1);
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_STEP_ID", "2", 1);
}

/* Rows of 40 steps, of which this is the third. */
static void put_rows(void)
{
    for (unsigned i = 0; i < 40; i++) {
        struct joule_row *row = put_row(i, geteuid(), 7, 0);

        row->uj = (i + 1) * UINT64_C(1000000);
        row->job_uj = UINT64_C(900000000);
        row->components = i ? 1 << JOULE_COMPONENT_CPU : 0;
    }
    publish(10 * S);
    for (unsigned i = 0; i < 40; i++) {
        rows[i].uj += UINT64_C(5000000);
        rows[i].component_uj[JOULE_COMPONENT_CPU] += UINT64_C(3000000);
    }
    publish(12 * S);
}

static void fails(int error)
{
    struct joule_energy energy = {.step_uj = 77};

    errno = 0;
    ck_assert_int_eq(joule_energy(&energy), -1);
    ck_assert_int_eq(errno, error);
    ck_assert_uint_eq(energy.step_uj, 77);
}

START_TEST(known)
{
    struct joule_energy energy;

    put_rows();
    ck_assert_int_eq(joule_energy(&energy), 0);
    ck_assert_uint_eq(energy.step_uj, 8000000);
    ck_assert_uint_eq(energy.job_uj, 900000000);
    ck_assert_int_eq(energy.time_ns, 12 * S);
    ck_assert_uint_eq(energy.power_mw, 2500);
    ck_assert_uint_eq(energy.period_ms, 2000);
    ck_assert_uint_eq(energy.cpu_uj, 3000000);
    ck_assert_uint_eq(energy.cpu_mw, 1500);
    ck_assert_uint_eq(energy.memory_uj, JOULE_NOT_KNOWN);
    ck_assert_uint_eq(energy.memory_mw, 0);
    setenv("SLURM_STEP_ID", "39", 1); /* of the second batch of rows */
    ck_assert_int_eq(joule_energy(&energy), 0);
    ck_assert_uint_eq(energy.step_uj, 45000000);
    setenv("SLURM_STEP_ID", "0", 1);
    ck_assert_int_eq(joule_energy(&energy), 0);
    ck_assert_uint_eq(energy.cpu_uj, JOULE_NOT_KNOWN);
}
END_TEST

START_TEST(not_known)
{
    fails(ENOENT); /* no file */
    put_rows();
    setenv("SLURM_STEP_ID", "40", 1);
    fails(ENOENT);
    setenv("SLURM_STEP_ID", "x", 1);
    fails(ENODATA);
    setenv("SLURM_STEP_ID", "2", 1);
    setenv("SLURM_JOB_ID", "8", 1);
    fails(ENOENT);
    unsetenv("SLURM_JOB_ID");
    fails(ENODATA);
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURMD_NODENAME", "n2", 1);
    fails(ENOENT);
}
END_TEST

static void damage(off_t at, int error)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    unsigned char byte;

    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    fails(error);
    byte ^= 1;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

START_TEST(other_files)
{
    struct joule_energy energy;

    put_rows();
    damage(0, ESTALE);
    damage(offsetof(struct joule_user_head, version), ESTALE);
    damage(offsetof(struct joule_user_head, boot_id), ESTALE);
    ck_assert_int_eq(joule_energy(&energy), 0);
    ck_assert_int_eq(truncate(path, 100), 0);
    fails(ESTALE);
    ck_assert_int_eq(truncate(path, 0), 0);
    fails(ESTALE);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("joule_energy");
    TCase *tc = tcase_create("joule_energy");
    SRunner *sr;
    int failed;

    tcase_add_checked_fixture(tc, setup, end_view);
    tcase_add_test(tc, known);
    tcase_add_test(tc, not_known);
    tcase_add_test(tc, other_files);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

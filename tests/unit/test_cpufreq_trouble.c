/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Steps that hold policies, and what may be in their way: the journal, its
 * lock, the kernel, the hardware.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/unit/freqsteps.h"

START_TEST(unmet)
{
    struct joule_control_grant g;
    struct joule_error err = {""};

    freqtree_write(&tree, 1, "scaling_available_governors", "performance");
    take(101, 1, "0-3", "powersave", &g);
    ck_assert_uint_eq(g.met, 1);
    ck_assert_uint_eq(g.unmet, 1);
    ck_assert_uint_eq(g.notes.count, 1);
    ck_assert_ptr_nonnull(strstr(g.notes.first.text, "policy1"));
    release(&g);
    check_clean();
    ck_assert_int_eq(try_take(101, 1, "2", "powersave", &g, &err), -1);
    ck_assert_int_eq(errno, ENOTSUP);
    ck_assert_ptr_nonnull(strstr(err.text, "has no governor powersave"));
    check_clean();
    ck_assert_int_eq(try_take(101, 1, "9", "powersave", &g, &err), -1);
    ck_assert_int_eq(errno, ENOTSUP);
    ck_assert_ptr_nonnull(strstr(err.text, "CPU 9"));
    ck_assert_int_eq(try_take(109, 1, "0", "powersave", &g, &err), -1);
    ck_assert_int_eq(errno, ESRCH);
    check_clean();
}
END_TEST

/* The journal of another boot says nothing about this one. */
START_TEST(reboot)
{
    struct joule_control_grant g, h;
    char now[FREQTREE_TEXT];

    take(101, 1, "0-3", "powersave", &g);
    tree_write(&tree, "proc/sys/kernel/random/boot_id",
               "99999999-2222-3333-4444-555555555555\n");
    freqtree_write(&tree, 0, "scaling_governor", "schedutil");
    freqtree_write(&tree, 1, "scaling_governor", "schedutil");
    freqtree_dump(&tree, 2, before);
    ck_assert_int_eq(recover(), 0);
    check_clean();
    take(102, 1, "0", "performance", &h);
    release(&g);
    governor_is(0, "performance");
    release(&h);
    freqtree_dump(&tree, 2, now);
    ck_assert_str_eq(now, before);
}
END_TEST

static void must_refuse(int errnum, const char *word)
{
    struct joule_control_grant g;
    struct joule_error err = {""};

    ck_assert_int_eq(try_take(102, 2, "0-3", "performance", &g, &err), -1);
    ck_assert_int_eq(errno, errnum);
    ck_assert_msg(strstr(err.text, word) != NULL, "%s", err.text);
    ck_assert_int_eq(joule_control_recover(&control, NULL, &err), -1);
    ck_assert_int_eq(errno, errnum);
    ck_assert_int_eq(joule_control_restore(&control, NULL, &err), -1);
    ck_assert_int_eq(errno, errnum);
}

START_TEST(bad_journals)
{
    struct joule_control_grant g;
    char now[FREQTREE_TEXT];

    take(101, 1, "0-3", "powersave", &g);
    freqtree_dump(&tree, 2, now);
    ck_assert_int_eq(joule_control_discard(&control, NULL), -1);
    ck_assert_int_eq(errno, EINVAL);
    /* None of these is applied, none is replaced. */
    tree_write(&tree, JOURNAL, "");
    must_refuse(EBADMSG, "not one of this version");
    tree_write(&tree, JOURNAL,
               "slurm-joule cpufreq journal 1\nboot=1\ncrc32=00000000\n");
    must_refuse(EBADMSG, "damaged");
    tree_bytes(&tree, JOURNAL, "a\0b", 3);
    must_refuse(EBADMSG, "cannot read");
    tree_truncate(&tree, JOURNAL, JOULE_CPUFREQ_TEXT_MAX + 2);
    must_refuse(EBADMSG, "cannot read");
    tree_remove(&tree, JOURNAL);
    ck_assert_int_eq(symlinkat("../../../journal", tree.fd, JOURNAL), 0);
    must_refuse(EPERM, "cannot open");
    tree_remove(&tree, JOURNAL);
    tree_mkdir(&tree, JOURNAL);
    must_refuse(EPERM, "not a regular file");
    ck_assert_int_eq(unlinkat(tree.fd, JOURNAL, AT_REMOVEDIR), 0);
    tree_write(&tree, JOURNAL, "");
    ck_assert_int_eq(fchmodat(tree.fd, JOURNAL, 0660, 0), 0);
    must_refuse(EPERM, "may be written by others");
    ck_assert_int_eq(joule_control_discard(&control, NULL), 0);
    ck_assert(!has_journal());
    {
        char same[FREQTREE_TEXT];

        freqtree_dump(&tree, 2, same);
        ck_assert_str_eq(same, now);
    }
}
END_TEST

START_TEST(bad_places)
{
    struct joule_control_grant g;
    struct joule_error err;

    tree_mkdir(&tree, "run/slurm-joule");
    tree_mkdir(&tree, "elsewhere");
    ck_assert_int_eq(
        symlinkat("../../elsewhere", tree.fd, "run/slurm-joule/cpufreq"), 0);
    ck_assert_int_eq(try_take(101, 1, "0", "performance", &g, &err), -1);
    ck_assert_int_eq(errno, EPERM);
    tree_remove(&tree, "run/slurm-joule/cpufreq");
    tree_mkdir(&tree, "run/slurm-joule/cpufreq");
    fchmodat(tree.fd, "run/slurm-joule/cpufreq", 0777, 0);
    ck_assert_int_eq(try_take(101, 1, "0", "performance", &g, &err), -1);
    ck_assert_int_eq(errno, EPERM);
    check_clean();
}
END_TEST

START_TEST(lock_is_bounded)
{
    struct joule_control_grant g;
    struct joule_error err = {""};
    int fd;

    take(101, 1, "0", "performance", &g);
    fd = openat(tree.fd, "run/slurm-joule/cpufreq/lock", O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    ck_assert_int_eq(joule_control_release(&control, &g, &err), -1);
    ck_assert_int_eq(errno, EBUSY);
    governor_is(0, "performance");
    close(fd);
    release(&g);
    check_clean();
}
END_TEST

static const int refusals[] = {EBUSY, EINVAL, ENODEV, EROFS, EACCES, EIO};

/* What cannot be put back stays on record until it can. */
START_TEST(stays_on_record)
{
    struct joule_control_grant g, h;
    struct joule_control_recovery r;
    struct joule_error err = {""};

    take(101, 1, "0-3", "performance", &g);
    freqtree_refuse(refusals[_i]);
    ck_assert_int_eq(joule_control_release(&control, &g, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "scaling_governor"));
    for (int i = 0; i < 3 * JOULE_CONTROL_TRIES; i++) {
        ck_assert_int_eq(joule_control_recover(&control, &r, &err), 0);
        ck_assert_uint_eq(r.notes.count, 2);
        ck_assert_uint_eq(r.failed, 2);
        ck_assert_uint_eq(r.restored, 0);
    }
    ck_assert(has_journal());
    /* A step that cannot be given its frequency does not hold it either. */
    ck_assert_int_eq(try_take(102, 2, "0", "powersave", &h, &err), -1);
    ck_assert_int_eq(errno, ENOTSUP);
    freqtree_refuse(0);
    ck_assert_int_eq(joule_control_recover(&control, &r, &err), 0);
    ck_assert_uint_eq(r.failed, 0);
    ck_assert_uint_eq(r.restored, 2);
    check_clean();
}
END_TEST

static void rename_policy(unsigned id, bool away)
{
    const char *from =
        id ? JOULE_CPUFREQ_DIR "/policy1" : JOULE_CPUFREQ_DIR "/policy0";

    ck_assert_int_eq(away ? renameat(tree.fd, from, tree.fd, "gone")
                          : renameat(tree.fd, "gone", tree.fd, from),
                     0);
}

/* A policy goes while it is held, and comes back as it went. */
START_TEST(unplugged)
{
    struct joule_control_grant g;
    struct joule_error err = {""};

    take(101, 1, "0-3", "powersave", &g);
    rename_policy(1, true);
    ck_assert_int_eq(joule_control_release(&control, &g, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.text, "policy1"));
    governor_is(0, "ondemand");
    ck_assert_int_eq(recover(), 0);
    ck_assert(has_journal());
    /* Meanwhile it cannot be taken. */
    ck_assert_int_eq(try_take(102, 1, "2", "powersave", &g, &err), -1);
    rename_policy(1, false);
    ck_assert_int_eq(recover(), 0);
    check_clean();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpufreq trouble");
    TCase *c = tcase_create("trouble");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, bad_journals);
    tcase_add_test(c, bad_places);
    tcase_add_test(c, lock_is_bounded);
    tcase_add_test(c, unmet);
    tcase_add_loop_test(c, stays_on_record, 0, COUNT(refusals));
    tcase_add_test(c, unplugged);
    tcase_add_test(c, reboot);
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

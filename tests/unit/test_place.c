/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a job's user may have put where profiles go. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/profile/place.h"
#include "tests/unit/tree.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* Nobody in particular. */
#define USER  5001
#define OTHER 5002

static struct tree tree;
static struct joule_error err;
static char dir[128], name[256];
static struct joule_place place;
static gid_t groups[] = {5001, 5100};

/* As root it is the whole of it; else the user is who runs the test. */
static bool is_root(void)
{
    return geteuid() == 0;
}

static void setup(void)
{
    tree_create(&tree);
    ck_assert_int_eq(fchmod(tree.fd, 0755), 0);
    snprintf(dir, sizeof(dir), "%s/profile", tree.path);
    ck_assert_int_eq(mkdir(dir, 0755), 0);
    ck_assert_int_eq(chmod(dir, 0755), 0);
    place = (struct joule_place){
        .dir = dir,
        .user = "alice",
        .uid = is_root() ? USER : geteuid(),
        .gid = is_root() ? USER : getegid(),
        .groups = groups,
        .group_count = 2,
        .admin = geteuid(),
    };
    memset(&err, 0, sizeof(err));
}

/* The thread may have the ids of the user now. */
static void become_root(void)
{
    if (is_root()) {
        setfsuid(0);
        setfsgid(0);
    }
}

static void teardown(void)
{
    become_root();
    tree_destroy(&tree);
}

static void refused(int errnum, const char *sentence)
{
    unsigned fds = tree_open_fds();
    int fd;

    errno = 0;
    fd = joule_place_open(&place, &err);
    become_root();
    ck_assert_msg(fd == -1, "not refused");
    ck_assert_msg(errno == errnum || errnum == 0, "%s: %s", strerror(errno),
                  err.text);
    ck_assert_msg(strstr(err.text, sentence), "%s", err.text);
    ck_assert_uint_eq(tree_open_fds(), fds);
}

static int must_open(void)
{
    int fd = joule_place_open(&place, &err);

    ck_assert_msg(fd >= 0, "%s", err.text);
    return fd;
}

static int must_make(int fd, const char *expected, uint32_t expected_run)
{
    uint32_t run = 99;
    int file = joule_place_create(&place, fd, "7_0_n1", name, sizeof(name),
                                  &run, &err);

    ck_assert_msg(file >= 0, "%s", err.text);
    ck_assert_str_eq(name, expected);
    ck_assert_uint_eq(run, expected_run);
    return file;
}

/* A path of the user's directory. */
static const char *in_user_dir(const char *file)
{
    static char path[300];

    snprintf(path, sizeof(path), "%s/alice%s%s", dir, *file ? "/" : "", file);
    return path;
}

static void make_user_dir(uid_t uid, mode_t mode)
{
    ck_assert_int_eq(mkdir(in_user_dir(""), 0700), 0);
    if (is_root())
        ck_assert_int_eq(chown(in_user_dir(""), uid, uid), 0);
    ck_assert_int_eq(chmod(in_user_dir(""), mode), 0);
}

START_TEST(bad_names)
{
    static const char *const names[] = {
        "", ".", "..", "a/b", "/", "../bob", "a\nb", "a\x7f", "\x01", "alice/"};
    int i;

    for (i = 0; i < COUNT(names); i++) {
        place.user = names[i];
        refused(EINVAL, "cannot be the name");
    }
    place.user = "alice";
    place.dir = "profile";
    refused(EINVAL, "absolute");
}
END_TEST

/* What may be in a name all the same. */
START_TEST(strange_names)
{
    static const char *const names[] = {"-rf",      "a b",     "*",  "$(id)",
                                        "\xc3\xa4", ".hidden", "a;b"};
    int i, fd, file;

    for (i = 0; i < COUNT(names); i++) {
        place.user = names[i];
        fd = must_open();
        file = must_make(fd, "7_0_n1.log", 0);
        become_root();
        close(file);
        close(fd);
    }
}
END_TEST

START_TEST(no_such_dir)
{
    ck_assert_int_eq(rmdir(dir), 0);
    refused(ENOENT, "profile");
}
END_TEST

START_TEST(others_may_write_the_dir)
{
    ck_assert_int_eq(chmod(dir, 0777), 0);
    refused(EPERM, "can be written by others");
    ck_assert_int_eq(chmod(dir, 0775), 0);
    refused(EPERM, "can be written by others");
}
END_TEST

START_TEST(others_may_write_above)
{
    char sentence[256];

    ck_assert_int_eq(fchmod(tree.fd, 0777), 0);
    snprintf(sentence, sizeof(sentence),
             "%s can be written by others (mode 0777), so that "
             "ProfileHDF5Dir=%s/profile is",
             tree.path, tree.path);
    refused(EPERM, sentence);
}
END_TEST

START_TEST(dir_of_somebody)
{
    if (!is_root())
        return;
    ck_assert_int_eq(chown(dir, OTHER, OTHER), 0);
    refused(EPERM, "belongs to user 5002");
    ck_assert_int_eq(chown(dir, 0, 0), 0);
    ck_assert_int_eq(fchown(tree.fd, USER, USER), 0);
    refused(EPERM, "belongs to user 5001");
}
END_TEST

START_TEST(dir_is_a_file)
{
    ck_assert_int_eq(rmdir(dir), 0);
    tree_write(&tree, "profile", "x");
    refused(ENOTDIR, "cannot open");
}
END_TEST

/* The admin's links on the way are followed, if what they lead to is safe. */
START_TEST(dir_by_a_link)
{
    char link[160];
    int fd;

    snprintf(link, sizeof(link), "%s/link", tree.path);
    ck_assert_int_eq(symlink("profile", link), 0);
    place.dir = link;
    fd = must_open();
    become_root();
    close(fd);
    ck_assert_int_eq(chmod(dir, 0777), 0);
    refused(EPERM, "can be written by others");
}
END_TEST

START_TEST(user_dir_is_a_link)
{
    ck_assert_int_eq(symlink("/tmp", in_user_dir("")), 0);
    refused(0, "alice");
    ck_assert_int_eq(unlink(in_user_dir("")), 0);
    ck_assert_int_eq(symlink("nowhere", in_user_dir("")), 0);
    refused(0, "alice");
}
END_TEST

START_TEST(user_dir_is_something_else)
{
    tree_write(&tree, "profile/alice", "x");
    refused(ENOTDIR, "alice");
    ck_assert_int_eq(unlink(in_user_dir("")), 0);
    ck_assert_int_eq(mkfifo(in_user_dir(""), 0666), 0);
    refused(ENOTDIR, "alice");
}
END_TEST

START_TEST(user_dir_of_somebody_else)
{
    if (!is_root())
        return;
    make_user_dir(OTHER, 0755);
    refused(EPERM, "belongs to user 5002");
    ck_assert_int_eq(chmod(in_user_dir(""), 0700), 0);
    refused(0, "alice");
}
END_TEST

START_TEST(others_may_write_the_user_dir)
{
    make_user_dir(USER, 0777);
    refused(EPERM, "can be written by others");
    ck_assert_int_eq(chmod(in_user_dir(""), 0720), 0);
    refused(EPERM, "can be written by others");
    ck_assert_int_eq(chmod(in_user_dir(""), 01777), 0);
    refused(EPERM, "can be written by others");
}
END_TEST

START_TEST(makes_the_user_dir)
{
    struct stat st;
    int fd = must_open(), file = must_make(fd, "7_0_n1.log", 0);

    become_root();
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_uint_eq(st.st_uid, place.uid);
    ck_assert_uint_eq(st.st_gid, place.gid);
    ck_assert_uint_eq(st.st_mode & 07777, 0700);
    ck_assert_int_eq(fstat(file, &st), 0);
    ck_assert_uint_eq(st.st_uid, place.uid);
    ck_assert_uint_eq(st.st_gid, place.gid);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    ck_assert_int_eq(fcntl(file, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(file);
    close(fd);
}
END_TEST

/* A share where root is nobody: all may make directories. */
START_TEST(user_makes_it_where_all_may)
{
    struct stat st;
    int fd;

    ck_assert_int_eq(chmod(dir, 01777), 0);
    fd = must_open();
    become_root();
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_uint_eq(st.st_uid, place.uid);
    close(fd);
}
END_TEST

/* Whatever has the name already stays what it is; so does an HDF5 file of it. */
START_TEST(names_that_are_taken)
{
    struct stat st;
    char victim[160];
    int fd, file;

    make_user_dir(USER, 0700);
    snprintf(victim, sizeof(victim), "%s/victim", tree.path);
    tree_write(&tree, "victim", "precious");
    tree_write(&tree, "profile/alice/7_0_n1.log", "first");
    ck_assert_int_eq(symlink(victim, in_user_dir("7_0_n1.r1.log")), 0);
    ck_assert_int_eq(symlink("nowhere", in_user_dir("7_0_n1.r2.log")), 0);
    ck_assert_int_eq(mkfifo(in_user_dir("7_0_n1.r3.log"), 0666), 0);
    ck_assert_int_eq(link(victim, in_user_dir("7_0_n1.r4.log")), 0);
    ck_assert_int_eq(mkdir(in_user_dir("7_0_n1.r5.log"), 0777), 0);
    if (is_root())
        ck_assert_int_eq(
            mknod(in_user_dir("7_0_n1.r6.log"), S_IFCHR | 0666, 0x103), 0);
    else
        tree_write(&tree, "profile/alice/7_0_n1.r6.log", "");
    tree_write(&tree, "profile/alice/7_0_n1.r7.h5", "second");
    ck_assert_int_eq(symlink("nowhere", in_user_dir("7_0_n1.r8.h5")), 0);
    fd = must_open();
    file = must_make(fd, "7_0_n1.r9.log", 9);
    become_root();
    close(file);
    ck_assert_int_eq(stat(victim, &st), 0);
    ck_assert_int_eq(st.st_size, 8);
    ck_assert_int_eq(stat(in_user_dir("7_0_n1.log"), &st), 0);
    ck_assert_int_eq(st.st_size, 5);
    ck_assert_int_eq(lstat(in_user_dir("nowhere"), &st), -1);
    ck_assert_int_eq(lstat(in_user_dir("7_0_n1.r7.log"), &st), -1);
    ck_assert_int_eq(lstat(in_user_dir("7_0_n1.r8.log"), &st), -1);
    close(fd);
}
END_TEST

START_TEST(all_names_are_taken)
{
    char file[64];
    uint32_t run;
    int fd;

    make_user_dir(USER, 0700);
    for (int i = 0; i < JOULE_PLACE_RUNS_MAX; i++) {
        snprintf(
            file, sizeof(file),
            i ? "profile/alice/7_0_n1.r%d.log" : "profile/alice/7_0_n1.log", i);
        tree_write(&tree, file, "");
    }
    fd = must_open();
    errno = 0;
    ck_assert_int_eq(joule_place_create(&place, fd, "7_0_n1", name,
                                        sizeof(name), &run, &err),
                     -1);
    ck_assert_int_eq(errno, EEXIST);
    ck_assert_ptr_nonnull(strstr(err.text, "1000 profiles of 7_0_n1"));
    close(fd);
}
END_TEST

START_TEST(bad_files)
{
    uint32_t run;
    int fd = must_open();

    errno = 0;
    ck_assert_int_eq(
        joule_place_create(&place, fd, "a/b", name, sizeof(name), &run, &err),
        -1);
    ck_assert_int_eq(errno, EINVAL);
    errno = 0;
    ck_assert_int_eq(
        joule_place_create(&place, fd, "7_0_n1", name, 8, &run, &err), -1);
    ck_assert_int_eq(errno, EINVAL);
    close(fd);
}
END_TEST

START_TEST(names_of_a_log)
{
    static const char *const bad[] = {
        "", ".log", "a", "a.h5", "a/b.log", "../a.log", "a.log/", "a\n.log"};
    char hdf5[NAME_MAX + 1], temporary[NAME_MAX + 1], longest[NAME_MAX + 1];

    for (int i = 0; i < COUNT(bad); i++) {
        errno = 0;
        ck_assert_int_eq(joule_place_names(bad[i], hdf5, temporary), -1);
        ck_assert_int_eq(errno, EINVAL);
    }
    memset(longest, 'a', sizeof(longest));
    strcpy(longest + NAME_MAX - 4, ".log");
    ck_assert_int_eq(joule_place_names(longest, hdf5, temporary), -1);
    strcpy(longest + NAME_MAX - 8, ".log");
    ck_assert_int_eq(joule_place_names(longest, hdf5, temporary), 0);
    ck_assert_uint_eq(strlen(temporary), NAME_MAX);
    ck_assert_int_eq(joule_place_names("7_0_n1.r2.log", hdf5, temporary), 0);
    ck_assert_str_eq(hdf5, "7_0_n1.r2.h5");
    ck_assert_str_eq(temporary, ".7_0_n1.r2.h5.tmp");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("place");
    TCase *tc = tcase_create("place");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, bad_names);
    tcase_add_test(tc, strange_names);
    tcase_add_test(tc, no_such_dir);
    tcase_add_test(tc, others_may_write_the_dir);
    tcase_add_test(tc, others_may_write_above);
    tcase_add_test(tc, dir_of_somebody);
    tcase_add_test(tc, dir_is_a_file);
    tcase_add_test(tc, dir_by_a_link);
    tcase_add_test(tc, user_dir_is_a_link);
    tcase_add_test(tc, user_dir_is_something_else);
    tcase_add_test(tc, user_dir_of_somebody_else);
    tcase_add_test(tc, others_may_write_the_user_dir);
    tcase_add_test(tc, makes_the_user_dir);
    tcase_add_test(tc, user_makes_it_where_all_may);
    tcase_add_test(tc, names_that_are_taken);
    tcase_add_test(tc, all_names_are_taken);
    tcase_add_test(tc, bad_files);
    tcase_add_test(tc, names_of_a_log);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may read the files of users, and what becomes of what is not right. */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/node/ledger.h"
#include "common/node/user_file.h"
#include "tests/unit/fail.h"
#include "tests/unit/userrows.h"

#define DIR_1000  USERS "/1000"
#define FILE_1000 DIR_1000 "/rows"
#define NO_MOUNT  77

static bool skips(const char *test, bool unless, const char *why)
{
    if (!unless)
        fprintf(stderr, "skip - userview: %s # %s\n", test, why);
    return !unless;
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    ck_assert_int_eq(fstatat(tree.fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

static void publish_one(void)
{
    put_row(0, 1000, 7, S);
    publish(10 * S);
    must_read(1000, 1);
}

START_TEST(test_modes)
{
    /* user::rw-,user:1000:r--,group::---,mask::r--,other::--- */
    static const unsigned char expected[] = {
        2,    0, 0, 0,                                     /* version */
        0x01, 0, 6, 0, 0xff,       0xff,       0xff, 0xff, /* owner */
        0x02, 0, 4, 0, 1000 % 256, 1000 / 256, 0,    0,    /* the user */
        0x04, 0, 0, 0, 0xff,       0xff,       0xff, 0xff, /* group */
        0x10, 0, 4, 0, 0xff,       0xff,       0xff, 0xff, /* mask */
        0x20, 0, 0, 0, 0xff,       0xff,       0xff, 0xff, /* others */
    };
    unsigned char acl[256];
    char path[160];
    ssize_t n;

    umask(0);
    joule_ledger_destroy(joule_ledger_create(tree.fd, "n1", 1, &err));
    publish_one();
    ck_assert_uint_eq(mode_of("run/slurm-joule"), 0755);
    ck_assert_uint_eq(mode_of("run/slurm-joule/n1"), 0711);
    ck_assert_uint_eq(mode_of("run/slurm-joule/n1/ledger"), 0600);
    ck_assert_uint_eq(mode_of(USERS), 0711);
    /* With an access list the group's bits are the mask. */
    ck_assert_uint_eq(mode_of(FILE_1000), 0640);
    ck_assert_uint_eq(mode_of(DIR_1000), 0710);
    snprintf(path, sizeof(path), "%s/%s", tree.path, FILE_1000);
    n = getxattr(path, "system.posix_acl_access", acl, sizeof(acl));
    ck_assert_int_eq(n, (int)sizeof(expected));
    ck_assert_mem_eq(acl, expected, sizeof(expected));
}
END_TEST

/* Directories of an older version, or of a slurmd with another umask. */
START_TEST(test_directories_are_opened)
{
    joule_userview_destroy(view);
    ck_assert_int_eq(fchmodat(tree.fd, USERS, 0700, 0), 0);
    ck_assert_int_eq(fchmodat(tree.fd, "run/slurm-joule/n1", 0700, 0), 0);
    ck_assert_int_eq(fchmodat(tree.fd, "run/slurm-joule", 0700, 0), 0);
    ck_assert_int_eq(fchmodat(tree.fd, "run", 0700, 0), 0);
    view = open_view(S);
    ck_assert_msg(view != NULL, "%s", err.text);
    ck_assert_uint_eq(mode_of(USERS), 0711);
    ck_assert_uint_eq(mode_of("run/slurm-joule/n1"), 0711);
    ck_assert_uint_eq(mode_of("run/slurm-joule"), 0755);
    ck_assert_uint_eq(mode_of("run"), 0700);
}
END_TEST

/* As this user: 0, or which of his tries went wrong. */
static int try_as(uid_t uid)
{
    struct stat st;

    if (setgid(uid) < 0 || setuid(uid) < 0)
        return 1;
    if (try_read(uid) < 0 || got_count != 1 || got[0].uj != uid)
        return 2;
    if (try_read(1000) == 0 || errno != EACCES)
        return 3;
    if (try_read(2222) == 0 || errno != ENOENT)
        return 4;
    if (joule_ledger_open(tree.fd, "n1", &err) || errno != EACCES)
        return 5;
    if (joule_ledger_open(tree.fd, "n1", &err) || errno != EACCES)
        return 6;
    if (openat(tree.fd, USERS, O_RDONLY) >= 0 || errno != EACCES ||
        openat(tree.fd, "run/slurm-joule/n1", O_RDONLY) >= 0 || errno != EACCES)
        return 7;
    if (openat(tree.fd, USERS "/1001/rows", O_WRONLY) >= 0 || errno != EACCES ||
        openat(tree.fd, USERS "/1001/rows", O_RDONLY | O_TRUNC) >= 0)
        return 8;
    if (unlinkat(tree.fd, USERS "/1001/rows", 0) == 0 ||
        renameat(tree.fd, USERS "/1001/rows", tree.fd, USERS "/x") == 0 ||
        openat(tree.fd, USERS "/1001/x", O_WRONLY | O_CREAT, 0600) >= 0 ||
        openat(tree.fd, USERS "/1001", O_RDONLY) >= 0 ||
        openat(tree.fd, USERS "/x", O_WRONLY | O_CREAT, 0600) >= 0 ||
        mkdirat(tree.fd, "run/slurm-joule/n1/x", 0700) == 0)
        return 9;
    if (fchmodat(tree.fd, USERS "/1001/rows", 0666, 0) == 0)
        return 10;
    /* Of another's file nothing can be seen: not that there is one. */
    if (fstatat(tree.fd, FILE_1000, &st, 0) == 0 || errno != EACCES ||
        fstatat(tree.fd, DIR_1000 "/x", &st, 0) == 0 || errno != EACCES)
        return 11;
    return 0;
}

START_TEST(test_users)
{
    pid_t pid;
    int status;

    if (skips("users", geteuid() == 0, "needs root"))
        return;
    joule_ledger_destroy(joule_ledger_create(tree.fd, "n1", 1, &err));
    joule_ledger_destroy(joule_ledger_create(tree.fd, "n1", 1, &err));
    put_row(0, 1000, 7, S)->uj = 1000;
    put_row(1, 1001, 7, S)->uj = 1001;
    put_row(2, 0, 7, S)->uj = 1;
    publish(10 * S);
    must_read(1000, 1);
    must_read(0, 1);
    pid = fork();
    if (pid == 0)
        _exit(try_as(1001));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    rows[1].uj = 2002;
    publish(11 * S);
    must_read(1001, 1);
    ck_assert_uint_eq(got[0].uj, 2002);
}
END_TEST

START_TEST(test_bad_names)
{
    static const char *const names[] = {"", ".", "..", "a/b", ".x"};
    const struct joule_userview_options options = {.period_ns = S};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ck_assert_ptr_null(
            joule_userview_create(tree.fd, names[i], &options, &err));
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_int_eq(joule_userview_read(tree.fd, names[i], 0, &totals, got,
                                             &got_count, &err),
                         -1);
        ck_assert_int_eq(errno, EINVAL);
    }
    ck_assert_int_eq(
        joule_userview_read(tree.fd, "n2", 0, &totals, got, &got_count, NULL),
        -1);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

static void refused_by_both(const char *text)
{
    ck_assert_ptr_null(open_view(S));
    ck_assert_msg(errno == EPERM && strstr(err.text, text), "%s", err.text);
    must_not_read(1000, EPERM, text);
}

START_TEST(test_foreign_directories)
{
    publish_one();
    ck_assert_int_eq(fchmodat(tree.fd, USERS, 0777, 0), 0);
    refused_by_both("may be written by others");
    ck_assert_int_eq(renameat(tree.fd, USERS, tree.fd, "away"), 0);
    ck_assert_int_eq(symlinkat("../../../away", tree.fd, USERS), 0);
    refused_by_both("cannot open directory users");
    tree_remove(&tree, USERS);
    tree_write(&tree, USERS, "");
    refused_by_both("cannot open directory users");
    tree_remove(&tree, USERS);
    must_not_read(1000, ENOENT, "cannot open directory users");
}
END_TEST

START_TEST(test_foreign_files)
{
    publish_one();
    ck_assert_int_eq(linkat(tree.fd, FILE_1000, tree.fd, "other", 0), 0);
    must_not_read(1000, EPERM, "more than one name");
    tree_remove(&tree, FILE_1000);
    ck_assert_int_eq(symlinkat("../../../../other", tree.fd, FILE_1000), 0);
    must_not_read(1000, EPERM, "cannot open the file of user 1000");
    /* The writer follows none either, and says so. */
    rows[0].uj++;
    ck_assert_int_eq(joule_userview_publish(view, rows, 1, 11 * S, 0, &err),
                     -1);
    ck_assert_int_eq(errno, ELOOP);
    publish(12 * S);
    must_read(1000, 1);
    ck_assert_int_eq(fchmodat(tree.fd, FILE_1000, 0666, 0), 0);
    must_not_read(1000, EPERM, "may be written by others");
}
END_TEST

/* What the file has at [at] is another number. */
static void damage(off_t at, int errnum)
{
    int fd = openat(tree.fd, FILE_1000, O_RDWR);
    unsigned char byte, other;

    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    other = (unsigned char)~byte;
    ck_assert_int_eq(pwrite(fd, &other, 1, at), 1);
    ck_assert_int_eq(try_read(1000), -1);
    ck_assert_msg(errno == errnum, "byte %d: %s", (int)at, err.text);
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

START_TEST(test_files_that_are_none)
{
    const off_t at = JOULE_USER_ROWS_AT(1),
                row = at + sizeof(struct joule_user_rows);

    publish_one(); /* the first generation */
    for (off_t i = 0; i < (off_t)offsetof(struct joule_user_head, generation);
         i++)
        damage(i, ESTALE);
    damage(offsetof(struct joule_user_head, generation), EBADMSG);
    damage(at + offsetof(struct joule_user_rows, uid), EBADMSG);
    damage(at + offsetof(struct joule_user_rows, rows), EBADMSG);
    damage(at + offsetof(struct joule_user_rows, rows) + 7, EBADMSG);
    damage(at + offsetof(struct joule_user_rows, attribution), EBADMSG);
    damage(row + offsetof(struct joule_user_row, kind), EBADMSG);
    damage(row + offsetof(struct joule_user_row, state), EBADMSG);
    must_read(1000, 1);
    tree_truncate(&tree, FILE_1000, row + sizeof(struct joule_user_row) - 1);
    must_not_read(1000, EBADMSG, "makes no sense");
    tree_truncate(&tree, FILE_1000, at);
    must_not_read(1000, EBADMSG, "makes no sense");
    tree_truncate(&tree, FILE_1000, sizeof(struct joule_user_head) - 1);
    must_not_read(1000, ENOENT, "no step");
    /* The next numbers are right again. */
    rows[0].uj++;
    publish(11 * S);
    must_read(1000, 1);
}
END_TEST

/* slurmd is killed before it has published what it has written. */
START_TEST(test_an_unpublished_version)
{
    struct joule_user_rows none = {.uid = UINT64_MAX};
    uint64_t uj;

    publish_one();
    uj = got[0].uj;
    tree_poke(&tree, FILE_1000, JOULE_USER_ROWS_AT(2), &none, sizeof(none));
    must_read(1000, 1);
    ck_assert_uint_eq(got[0].uj, uj);
}
END_TEST

/* What is in the way of one user's file takes nothing from the others. */
START_TEST(test_a_file_that_cannot_be_written)
{
    unsigned fds = tree_open_fds();

    tree_mkdir(&tree, FILE_1000);
    put_row(0, 1000, 7, S);
    put_row(1, 1001, 7, S);
    ck_assert_int_eq(joule_userview_publish(view, rows, 2, 10 * S, 0, &err),
                     -1);
    ck_assert_int_eq(errno, EISDIR);
    ck_assert_ptr_nonnull(strstr(err.text, "user 1000 cannot be written"));
    must_read(1001, 1);
    ck_assert_int_eq(joule_userview_publish(view, rows, 2, 11 * S, 0, NULL),
                     -1);
    ck_assert_int_eq(unlinkat(tree.fd, FILE_1000, AT_REMOVEDIR), 0);
    publish(12 * S);
    must_read(1000, 1);
    /* Nor does what is in the way of its removal. */
    memset(rows, 0, sizeof(rows));
    publish(13 * S);
    tree_remove(&tree, FILE_1000);
    tree_mkdir(&tree, FILE_1000);
    ck_assert_int_eq(joule_userview_publish(view, rows, 2, 80 * S, 0, &err),
                     -1);
    ck_assert_ptr_nonnull(strstr(err.text, "user 1000 cannot be removed"));
    ck_assert_int_eq(unlinkat(tree.fd, FILE_1000, AT_REMOVEDIR), 0);
    publish(81 * S);
    must_not_read(1000, ENOENT, "no step");
    must_not_read(1001, ENOENT, "no step");
    ck_assert_uint_eq(tree_open_fds(), fds);
}
END_TEST

/* Removed by somebody: it is made again, for this user alone. */
START_TEST(test_a_file_that_was_removed)
{
    publish_one();
    tree_remove(&tree, FILE_1000);
    rows[0].uj++;
    publish(11 * S);
    must_read(1000, 1);
    ck_assert_uint_eq(mode_of(FILE_1000), 0640);
    ck_assert_uint_eq(mode_of(DIR_1000), 0710);
}
END_TEST

START_TEST(test_no_memory)
{
    unsigned fds = tree_open_fds();

    for (int n = 1; n <= 2; n++) {
        fail_calloc = n;
        ck_assert_ptr_null(open_view(S));
        ck_assert_int_eq(errno, ENOMEM);
    }
    fail_calloc = 0;
    ck_assert_uint_eq(tree_open_fds(), fds);
}
END_TEST

/* With another file system in the place of run, in a mount namespace of its
 * own.  The old descriptor sees the old mounts. */
static bool mount_run(const char *type, const char *options)
{
    char path[80];

    snprintf(path, sizeof(path), "%s/run", tree.path);
    if (unshare(CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", path, type, 0, options) < 0)
        return false;
    close(tree.fd);
    tree.fd = open(tree.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return true;
}

/* ramfs has no attributes. */
static int without_lists(void)
{
    if (!mount_run("ramfs", "mode=755"))
        return NO_MOUNT;
    if (open_view(S) || errno != EOPNOTSUPP ||
        !strstr(err.text, "has no access lists"))
        return 1;
    if (try_read(1000) == 0 || errno != EOPNOTSUPP ||
        !strstr(err.text, "has no access lists"))
        return 2;
    return 0;
}

/* Room for the directories and one file: the other comes when there is. */
static int without_room(void)
{
    if (!mount_run("tmpfs", "nr_inodes=6,mode=755"))
        return NO_MOUNT;
    view = open_view(S);
    if (!view)
        return 1;
    put_row(0, 1000, 7, S);
    put_row(1, 1001, 7, S);
    if (joule_userview_publish(view, rows, 2, 10 * S, 0, &err) == 0 ||
        errno != ENOSPC)
        return 2;
    if (try_read(1000) < 0 || try_read(1001) == 0 || errno != ENOENT)
        return 3;
    remove_row(0);
    if (joule_userview_publish(view, rows, 2, 11 * S, 0, NULL) == 0)
        return 4;
    publish(72 * S);
    if (try_read(1000) == 0 || try_read(1001) < 0)
        return 5;
    return 0;
}

static void in_child(const char *test, int (*f)(void))
{
    pid_t pid;
    int status;

    if (skips(test, geteuid() == 0, "needs root"))
        return;
    pid = fork();
    if (pid == 0)
        _exit(f());
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    if (skips(test, !WIFEXITED(status) || WEXITSTATUS(status) != NO_MOUNT,
              "may not mount"))
        return;
    ck_assert_int_eq(status, 0);
}

START_TEST(test_no_access_lists)
{
    in_child("no_access_lists", without_lists);
}
END_TEST

START_TEST(test_no_room)
{
    in_child("no_room", without_room);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("access");

    tcase_add_test(tc, test_modes);
    tcase_add_test(tc, test_directories_are_opened);
    tcase_add_test(tc, test_users);
    tcase_add_test(tc, test_bad_names);
    tcase_add_test(tc, test_foreign_directories);
    tcase_add_test(tc, test_foreign_files);
    tcase_add_test(tc, test_files_that_are_none);
    tcase_add_test(tc, test_an_unpublished_version);
    tcase_add_test(tc, test_a_file_that_cannot_be_written);
    tcase_add_test(tc, test_a_file_that_was_removed);
    tcase_add_test(tc, test_no_memory);
    tcase_add_test(tc, test_no_access_lists);
    tcase_add_test(tc, test_no_room);
    return run_test("userview access", tc);
}

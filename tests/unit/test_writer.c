/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The writer's thread before disks that refuse, are full, or do not answer, and
 * helpers that do. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/profile/writer.h"
#include "tests/unit/rows.h"
#include "tests/unit/tree.h"

#define MS JOULE_NS_PER_MS

static struct tree tree;
static struct joule_error err;
static char dir[128], path[300], log_path[300], helper[300];
static struct joule_writer_options opt;
static struct joule_writer *writer;
static _Atomic int problems;
static char problem[3][JOULE_ERROR_MAX];

/* ---- the disk ---- */

static pthread_mutex_t stuck = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int writes, fail_errno, fail_from = -1;

ssize_t __real_pwritev(int fd, const struct iovec *part, int count, off_t at);
ssize_t __wrap_pwritev(int fd, const struct iovec *part, int count, off_t at);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

ssize_t __wrap_pwritev(int fd, const struct iovec *part, int count, off_t at)
{
    pthread_mutex_lock(&stuck);
    pthread_mutex_unlock(&stuck);
    if (fail_errno && writes++ >= fail_from) {
        errno = fail_errno;
        return -1;
    }
    return __real_pwritev(fd, part, count, at);
}

int __wrap_fdatasync(int fd)
{
    return __real_fdatasync(fd);
}

/* ---- helpers ---- */

static void on_problem(const char *text, void *arg)
{
    int i = problems++;

    (void)arg;
    if (i < 3)
        snprintf(problem[i], sizeof(problem[i]), "%s", text);
}

/* A program of the tree: nobody else could have put it there. */
static void make_helper(const void *bytes, size_t size)
{
    tree_bytes(&tree, "helper", bytes, size);
    snprintf(helper, sizeof(helper), "%s/helper", tree.path);
    ck_assert_int_eq(chmod(helper, 0755), 0);
}

static void copy_helper(void)
{
    static char bytes[8 << 20];
    int fd = open(JOULE_BUILD_DIR "/joule-profile-convert", O_RDONLY);
    ssize_t n = read(fd, bytes, sizeof(bytes));

    ck_assert_int_gt(n, 0);
    ck_assert_int_lt(n, sizeof(bytes));
    close(fd);
    make_helper(bytes, (size_t)n);
}

static void script(const char *text)
{
    char bytes[1024];

    make_helper(
        bytes, (size_t)snprintf(bytes, sizeof(bytes), "#!/bin/sh\n%s\n", text));
}

/* Rows that are in the log by now, of Energy; -1: there is no log. */
static long rows_by_now(void)
{
    char now[160];

    snprintf(now, sizeof(now), "%s/now.h5", tree.path);
    if (!rows_convert(log_path, now))
        return -1;
    return rows_count(now, "/n1/Energy", 0, 1);
}

static bool is_there(const char *name)
{
    struct stat st;

    return lstat(name, &st) == 0;
}

static void setup(void)
{
    tree_create(&tree);
    ck_assert_int_eq(fchmod(tree.fd, 0755), 0);
    snprintf(dir, sizeof(dir), "%s/profile", tree.path);
    ck_assert_int_eq(mkdir(dir, 0755), 0);
    snprintf(path, sizeof(path), "%s/alice/7_0_n1.h5", dir);
    snprintf(log_path, sizeof(log_path), "%s/alice/7_0_n1.log", dir);
    copy_helper();
    opt = (struct joule_writer_options){
        .place = {.dir = dir,
                  .user = "alice",
                  .uid = geteuid() ? geteuid() : 5001,
                  .gid = geteuid() ? getegid() : 5001,
                  .admin = geteuid()},
        .base = "7_0_n1",
        .facts = {.node = "n1",
                  .writer = "test",
                  .tasks = 1,
                  .pack = {1, true}},
        .helper = helper,
        .clock = &joule_clock_system,
        .flush_ns = 20 * MS,
        .queue_bytes = 64 * 1024,
        .problem = on_problem,
    };
}

static void teardown(void)
{
    tree_destroy(&tree);
}

static int must_start(const char *table)
{
    int id;

    writer = joule_writer_create(&opt, &err);
    ck_assert_msg(writer != NULL, "%s", err.text);
    id = joule_writer_add_table(writer, table, rows_fields, ROWS_FIELDS, 0);
    ck_assert_int_ge(id, 0);
    return id;
}

static int add(int table, uint64_t i)
{
    uint64_t row[ROWS_FIELDS + 3];

    rows_make(row, (unsigned)table, i);
    return joule_writer_append(writer, table, row + 2, (int64_t)row[1],
                               joule_clock_mono_ns(&joule_clock_system));
}

static void sleep_ms(long ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&ts, NULL);
}

static int64_t since_ns(int64_t then)
{
    return joule_clock_mono_ns(&joule_clock_system) - then;
}

/* ---- bad inputs ---- */

START_TEST(bad_calls)
{
    static const char *const names[] = {"",      "/", "a/",  "/a",
                                        "a/b/c", ".", "a/.."};
    struct joule_field many[JOULE_FIELDS_MAX + 1];
    int table = must_start("Energy"), i;

    for (i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++) {
        errno = 0;
        ck_assert_int_eq(joule_writer_add_table(writer, names[i], rows_fields,
                                                ROWS_FIELDS, 0),
                         -1);
        ck_assert_int_eq(errno, EINVAL);
    }
    errno = 0;
    ck_assert_int_eq(
        joule_writer_add_table(writer, "Energy", rows_fields, ROWS_FIELDS, 0),
        -1);
    ck_assert_int_eq(errno, EEXIST);
    for (i = 0; i <= JOULE_FIELDS_MAX; i++)
        many[i] = rows_fields[0];
    errno = 0;
    ck_assert_int_eq(
        joule_writer_add_table(writer, "Many", many, JOULE_FIELDS_MAX + 1, 0),
        -1);
    ck_assert_int_eq(errno, E2BIG);
    errno = 0;
    ck_assert_int_eq(add(table + 1, 0), -1);
    ck_assert_int_eq(errno, EINVAL);
    errno = 0;
    ck_assert_int_eq(add(-1, 0), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
    ck_assert_int_eq(joule_writer_close(NULL, 0), 0);
    ck_assert_int_eq(problems, 0);
}
END_TEST

/* ---- it works ---- */

START_TEST(rows_arrive)
{
    int energy = must_start("Energy"), task, i;
    time_t start =
        (time_t)(joule_writer_start_wall_ns(writer) / JOULE_NS_PER_S);
    char when[32];

    task =
        joule_writer_add_table(writer, "Tasks/0", rows_fields, ROWS_FIELDS, 0);
    for (i = 0; i < 1000; i++) {
        ck_assert_int_eq(add(energy, (uint64_t)i), 0);
        if (i < 10)
            ck_assert_int_eq(add(task, (uint64_t)i), 0);
        if (i % 100 == 0)
            sleep_ms(15);
    }
    ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
    ck_assert_int_eq(rows_count(path, "/n1/Energy", 0, 1), 1000);
    ck_assert_int_eq(rows_count(path, "/n1/Tasks/0", 1, 1), 10);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Lost Rows"), 0);
    ck_assert_uint_gt(rows_attribute(path, "/n1", "Joule End ns"), 0);
    ck_assert_ptr_nonnull(ctime_r(&start, when));
    when[24] = '\0';
    rows_has_text(path, "/n1", "Start Time", when);
    ck_assert(!is_there(log_path));
    ck_assert_int_eq(problems, 0);
}
END_TEST

START_TEST(rows_are_there_before_the_end)
{
    int energy, i;

    opt.flush_ns = 50 * MS;
    energy = must_start("Energy");
    for (i = 0; i < 10; i++)
        ck_assert_int_eq(add(energy, (uint64_t)i), 0);
    for (i = 0; i < 100; i++) {
        sleep_ms(20);
        if (rows_by_now() == 10)
            break;
    }
    ck_assert_int_lt(i, 100);
    ck_assert(!is_there(path));
    ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
    ck_assert_int_eq(rows_count(path, "/n1/Energy", 0, 1), 10);
}
END_TEST

/* Before the first interval, slurmstepd launches its tasks. */
START_TEST(nothing_is_done_at_once)
{
    struct stat st;
    char user[160];
    int energy;

    opt.flush_ns = 60000 * MS;
    energy = must_start("Energy");
    ck_assert_int_eq(add(energy, 0), 0);
    sleep_ms(50);
    snprintf(user, sizeof(user), "%s/alice", dir);
    ck_assert_int_eq(stat(user, &st), -1);
    ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
    ck_assert_int_eq(rows_count(path, "/n1/Energy", 0, 1), 1);
}
END_TEST

START_TEST(a_requeued_job)
{
    struct stat first, after;
    int run, energy;

    for (run = 0; run < 3; run++) {
        energy = must_start("Energy");
        ck_assert_int_eq(add(energy, 0), 0);
        ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
        if (run == 0)
            ck_assert_int_eq(stat(path, &first), 0);
    }
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_uint_eq(first.st_ino, after.st_ino);
    ck_assert_int_eq(first.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    snprintf(path, sizeof(path), "%s/alice/7_0_n1.r2.h5", dir);
    ck_assert_int_eq(rows_count(path, "/n1.r2/Energy", 0, 1), 1);
}
END_TEST

/* Threads that add while it is closed are told so by whoever closes; time does
 * not run backwards in a table. */
START_TEST(late_rows_keep_their_order)
{
    uint64_t row[ROWS_FIELDS + 3];
    int energy = must_start("Energy");
    int64_t now = joule_clock_mono_ns(&joule_clock_system);

    rows_make(row, 0, 0);
    ck_assert_int_eq(joule_writer_append(writer, energy, row + 2, 1, now), 0);
    rows_make(row, 0, 1);
    ck_assert_int_eq(
        joule_writer_append(writer, energy, row + 2, 1, now - 1000), 0);
    ck_assert_int_eq(joule_writer_append(writer, energy, row + 2, 1, -5), 0);
    ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
}
END_TEST

/* What it is closed with: whose file, and nothing left beside it. */
START_TEST(the_file_is_the_users)
{
    int energy = must_start("Energy");
    struct stat st;
    char user[160];

    ck_assert_int_eq(add(energy, 0), 0);
    ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_uid, opt.place.uid);
    ck_assert_uint_eq(st.st_gid, opt.place.gid);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    ck_assert_uint_eq(st.st_nlink, 1);
    ck_assert_int_eq(unlink(path), 0);
    snprintf(user, sizeof(user), "%s/alice", dir);
    ck_assert_int_eq(rmdir(user), 0);
}
END_TEST

START_TEST(no_helper)
{
    int energy;

    opt.helper = NULL;
    energy = must_start("Energy");
    ck_assert_int_eq(add(energy, 0), 0);
    ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
    ck_assert_int_eq(problems, 0);
    ck_assert(!is_there(path));
    ck_assert_int_eq(rows_by_now(), 1);
}
END_TEST

/* ---- helpers that fail: the log is as good as before ---- */

static void write_one(void)
{
    int energy = must_start("Energy");

    ck_assert_int_eq(add(energy, 0), 0);
    ck_assert_int_eq(joule_writer_close(writer, 2000 * MS), 0);
}

static void stays(const char *sentence)
{
    char temporary[160];

    ck_assert_int_eq(problems, 1);
    ck_assert_msg(strstr(problem[0], "the profile stays in 7_0_n1.log, which "
                                     "sh5util reads: ") == problem[0] &&
                      strstr(problem[0], sentence),
                  "%s", problem[0]);
    ck_assert(!is_there(path));
    snprintf(temporary, sizeof(temporary), "%s/alice/.7_0_n1.h5.tmp", dir);
    ck_assert(!is_there(temporary));
    ck_assert_int_eq(rows_by_now(), 1);
}

START_TEST(helper_is_missing)
{
    ck_assert_int_eq(unlink(helper), 0);
    write_one();
    stays("No such file");
}
END_TEST

START_TEST(helper_is_no_program)
{
    make_helper("\x7f"
                "ELFx",
                5);
    write_one();
    stays("cannot start");
}
END_TEST

static const struct {
    const char *script, *sentence;
} bad_helpers[] = {
    {"exit 0", "helper ended with exit code 0"},
    {"exit 7", "helper ended with exit code 7"},
    {"kill -SEGV $$", "helper died of signal 11"},
    {"echo the roof is on fire; exit 1", ": the roof is on fire"},
    {"printf done", ": done"},
    {"echo no; echo done", ": no"},
    {"head -c 100000 /dev/zero | tr '\\0' x", ": xxx"},
    {"cat <&- >/proc/self/fd/1", "helper ended with exit code 1"},
};

START_TEST(helper_fails)
{
    script(bad_helpers[_i].script);
    write_one();
    stays(bad_helpers[_i].sentence);
}
END_TEST

/* It is given 9 tenths of the time, and killed. */
START_TEST(helper_hangs)
{
    int64_t then;

    script(_i ? ": > /proc/self/fd/3/.7_0_n1.h5.tmp; exec sleep 60"
              : "trap '' TERM INT HUP; exec sleep 60");
    then = joule_clock_mono_ns(&joule_clock_system);
    write_one();
    ck_assert_int_ge(since_ns(then), 1800 * MS);
    ck_assert_int_lt(since_ns(then), 4000 * MS);
    stays("takes too long");
}
END_TEST

/* It has the log, its answer and the directory, and nothing else of slurmstepd;
 * a shell has its script open as well. */
START_TEST(helper_has_nothing_else)
{
    script("find /proc/$$/fd -mindepth 1 -printf '%f=%l '");
    write_one();
    stays("0=");
    ck_assert_ptr_nonnull(strstr(problem[0], "/7_0_n1.log 1=pipe:["));
    ck_assert_ptr_nonnull(strstr(problem[0], " 2=/dev/null 3="));
    for (int fd = 4; fd < 10; fd++) {
        char text[16];

        snprintf(text, sizeof(text), " %d=", fd);
        ck_assert_ptr_null(strstr(problem[0], text));
    }
}
END_TEST

START_TEST(helper_has_no_environment)
{
    /* A shell that waits for another program blocks signals. */
    script("while read -r key value; do\n"
           "    case $key$value in\n"
           "    SigBlk:*[!0]*) echo blk $value; exit ;;\n"
           "    esac\n"
           "done < /proc/$$/status\n"
           "[ $(wc -c < /proc/$$/environ) = 0 ] || { echo env; exit; }\n"
           "echo \"all is well: $*\"");
    write_one();
    stays(": all is well: 7_0_n1.log ");
}
END_TEST

/* What the user has put in the way of the HDF5 file. */
START_TEST(the_name_is_taken)
{
    int energy = must_start("Energy"), i;

    ck_assert_int_eq(add(energy, 0), 0);
    for (i = 0; i < 500 && rows_by_now() != 1; i++)
        sleep_ms(20);
    tree_write(&tree, "profile/alice/7_0_n1.h5", "precious");
    ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
    ck_assert_int_eq(problems, 1);
    ck_assert_ptr_nonnull(strstr(problem[0], "File exists"));
    ck_assert_int_eq(rows_by_now(), 1);
}
END_TEST

/* Somebody's link in the way of the file while it is made. */
START_TEST(a_link_in_the_way)
{
    char temporary[160], victim[160];
    struct stat st;

    snprintf(victim, sizeof(victim), "%s/victim", tree.path);
    tree_write(&tree, "victim", "precious");
    ck_assert_int_eq(chmod(victim, 0666), 0);
    snprintf(temporary, sizeof(temporary), "%s/alice", dir);
    ck_assert_int_eq(mkdir(temporary, 0700), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(chown(temporary, 5001, 5001), 0);
    snprintf(temporary, sizeof(temporary), "%s/alice/.7_0_n1.h5.tmp", dir);
    ck_assert_int_eq(symlink(victim, temporary), 0);
    write_one();
    ck_assert_int_eq(problems, 0);
    ck_assert_int_eq(rows_count(path, "/n1/Energy", 0, 1), 1);
    ck_assert_int_eq(stat(victim, &st), 0);
    ck_assert_int_eq(st.st_size, 8);
}
END_TEST

/* ---- disks that refuse ---- */

static const int errors[] = {ENOSPC, EDQUOT, EROFS, EIO};

START_TEST(refused_from_the_first_write)
{
    int energy, i;

    fail_from = 0;
    fail_errno = errors[_i];
    energy = must_start("Energy");
    for (i = 0; i < 100; i++)
        ck_assert_int_eq(add(energy, (uint64_t)i), 0);
    sleep_ms(100);
    ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
    ck_assert_int_eq(problems, 1);
    ck_assert_ptr_nonnull(strstr(problem[0], "cannot be written"));
    ck_assert_ptr_nonnull(strstr(problem[0], strerror(errors[_i])));
    ck_assert(!is_there(log_path));
    ck_assert(!is_there(path));
}
END_TEST

/* One sentence, with the directory and its mode: nothing of it is a file. */
START_TEST(refused_place)
{
    char sentence[160];
    int energy;

    ck_assert_int_eq(fchmod(tree.fd, 0777), 0);
    snprintf(sentence, sizeof(sentence),
             "%s can be written by others (mode 0777)", tree.path);
    energy = must_start("Energy");
    ck_assert_int_eq(add(energy, 0), 0);
    ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
    ck_assert_int_eq(problems, 1);
    ck_assert_msg(strstr(problem[0], sentence) != NULL, "%s", problem[0]);
}
END_TEST

START_TEST(refused_for_a_while)
{
    int energy = must_start("Energy"), i, k;

    for (i = 0; i < 300; i++) {
        if (i == 100) {
            sleep_ms(60);
            fail_from = writes = 0;
            fail_errno = errors[_i];
        }
        if (i == 200) {
            for (k = 0; k < 500 && problems == 0; k++)
                sleep_ms(20);
            fail_errno = 0;
        }
        ck_assert_int_eq(add(energy, (uint64_t)i), 0);
    }
    ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
    ck_assert_int_eq(problems, 1);
    ck_assert_int_eq(rows_count(path, "/n1/Energy", 0, 1), 300);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Lost Rows"), 0);
}
END_TEST

/* The queue is full before the disk is back: the file tells what is missing. */
START_TEST(rows_are_dropped)
{
    uint64_t lost = 0;
    int energy = must_start("Energy"), i;

    for (i = 0; i < 100; i++)
        ck_assert_int_eq(add(energy, (uint64_t)i), 0);
    sleep_ms(100);
    fail_from = writes = 0;
    fail_errno = ENOSPC;
    for (i = 0; i < 5000; i++) {
        errno = 0;
        if (add(energy, 100) < 0) {
            ck_assert_int_eq(errno, ENOBUFS);
            lost++;
        }
        if (i % 500 == 0)
            sleep_ms(10);
    }
    ck_assert_uint_gt(lost, 100);
    fail_errno = 0;
    ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
    ck_assert_int_eq(problems, 2);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Lost Rows"), lost);
    ck_assert_uint_eq(rows_attribute(path, "/n1/Energy", "Joule Lost Rows"),
                      lost);
    ck_assert_uint_gt(rows_attribute(path, "/n1", "Joule Lost Last ns"),
                      rows_attribute(path, "/n1", "Joule Lost First ns"));
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Lost Error"), ENOSPC);
}
END_TEST

/* A small file system, as full as it gets: the loss is in the file. */
START_TEST(full)
{
    char buf[65536];
    int energy, i, fd;
    long lost;

    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return;
    ck_assert_int_eq(mount("none", dir, "tmpfs", 0, "size=256k,mode=755"), 0);
    energy = must_start("Energy");
    for (i = 0; i < 100; i++)
        ck_assert_int_eq(add(energy, (uint64_t)i), 0);
    for (int tries = 0; tries < 500 && rows_by_now() < 100; tries++)
        sleep_ms(10);
    snprintf(buf, sizeof(buf), "%s/filler", dir);
    fd = open(buf, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    memset(buf, 1, sizeof(buf));
    while (write(fd, buf, sizeof(buf)) > 0 || write(fd, buf, 4096) > 0)
        ;
    for (; i < 1000; i++)
        ck_assert_int_eq(add(energy, (uint64_t)i), 0);
    sleep_ms(50);
    ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
    close(fd);
    ck_assert_int_eq(problems, 3);
    ck_assert_ptr_nonnull(strstr(problem[0], "No space left"));
    ck_assert_ptr_nonnull(strstr(problem[1], " rows of the profile are lost"));
    ck_assert_ptr_nonnull(strstr(problem[2], "stays in 7_0_n1.log"));
    /* A few rows may have found room. */
    lost = strtol(problem[1], NULL, 10);
    ck_assert_int_ge(lost, 800);
    ck_assert_int_eq(rows_by_now(), 1000 - lost);
    snprintf(path, sizeof(path), "%s/now.h5", tree.path);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Lost Rows"), lost);
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Lost Error"), ENOSPC);
    ck_assert_uint_gt(rows_attribute(path, "/n1", "Joule End ns"), 0);
    ck_assert_int_eq(umount(dir), 0);
}
END_TEST

START_TEST(read_only)
{
    int energy, i;

    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return;
    ck_assert_int_eq(mount("none", dir, "tmpfs", MS_RDONLY, "mode=755"), 0);
    energy = must_start("Energy");
    for (i = 0; i < 100; i++)
        ck_assert_int_eq(add(energy, (uint64_t)i), 0);
    sleep_ms(60);
    ck_assert_int_eq(joule_writer_close(writer, 5000 * MS), 0);
    ck_assert_int_eq(problems, 1);
    ck_assert_ptr_nonnull(strstr(problem[0], "Read-only"));
    ck_assert_int_eq(umount(dir), 0);
}
END_TEST

/* ---- a disk that does not answer ---- */

/* In a process of its own, which must come to an end all the same. */
START_TEST(hangs)
{
    int status, i, dropped = 0, written[2];
    char byte = 0;
    pid_t pid;

    ck_assert_int_eq(pipe(written), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        int64_t then, longest = 0;
        int energy = must_start("Energy");

        add(energy, 0);
        if (read(written[0], &byte, 1) != 1)
            exit(1);
        pthread_mutex_lock(&stuck);
        for (i = 1; i < 5000; i++) {
            then = joule_clock_mono_ns(&joule_clock_system);
            dropped += add(energy, (uint64_t)i) < 0;
            if (since_ns(then) > longest)
                longest = since_ns(then);
            if (i % 100 == 0)
                sleep_ms(2);
        }
        if (longest > 100 * MS || !dropped || problems != 1)
            exit(2);
        then = joule_clock_mono_ns(&joule_clock_system);
        if (joule_writer_close(writer, 300 * MS) != -1 || errno != ETIMEDOUT ||
            since_ns(then) > 2000 * MS || problems != 2)
            exit(3);
        exit(0);
    }
    for (i = 0; i < 500 && rows_by_now() != 1; i++)
        sleep_ms(20);
    ck_assert_int_eq(write(written[1], &byte, 1), 1);
    alarm(20);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    alarm(0);
    close(written[0]);
    close(written[1]);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x",
                  status);
    ck_assert_int_eq(rows_by_now(), 1);
}
END_TEST

/* One that answers after all, when nobody waits any more. */
START_TEST(answers_late)
{
    int energy = must_start("Energy"), i;

    add(energy, 0);
    sleep_ms(100);
    pthread_mutex_lock(&stuck);
    for (i = 1; i < 100; i++)
        add(energy, (uint64_t)i);
    errno = 0;
    ck_assert_int_eq(joule_writer_close(writer, 100 * MS), -1);
    ck_assert_int_eq(errno, ETIMEDOUT);
    ck_assert_int_eq(problems, 1);
    pthread_mutex_unlock(&stuck);
    for (i = 0; i < 200 && rows_by_now() != 100; i++)
        sleep_ms(20);
    ck_assert_int_lt(i, 200);
    sleep_ms(200);
    ck_assert_int_eq(problems, 1);
}
END_TEST

/* kill -9 of the process: all but the last interval is there. */
START_TEST(killed)
{
    int pipe_fd[2], i;
    uint64_t last = 0;
    pid_t pid;

    ck_assert_int_eq(pipe(pipe_fd), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        int energy;

        opt.flush_ns = 50 * MS;
        energy = must_start("Energy");
        for (i = 0;; i++) {
            uint64_t n = (uint64_t)i;

            add(energy, n);
            /* What was added 5 intervals ago. */
            if (i >= 250 && write(pipe_fd[1], &(uint64_t){n - 250}, 8) < 0)
                _exit(1);
            sleep_ms(1);
        }
    }
    close(pipe_fd[1]);
    ck_assert_int_eq(read(pipe_fd[0], &last, sizeof(last)), sizeof(last));
    sleep_ms(100 + 37 * _i);
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    while (read(pipe_fd[0], &last, sizeof(last)) == sizeof(last))
        ;
    close(pipe_fd[0]);
    ck_assert_int_ge(rows_by_now(), (long)last);
    ck_assert_uint_gt(last, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("writer");
    TCase *tc = tcase_create("writer");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, bad_calls);
    tcase_add_test(tc, rows_arrive);
    tcase_add_test(tc, rows_are_there_before_the_end);
    tcase_add_test(tc, nothing_is_done_at_once);
    tcase_add_test(tc, a_requeued_job);
    tcase_add_test(tc, late_rows_keep_their_order);
    tcase_add_test(tc, the_file_is_the_users);
    tcase_add_test(tc, no_helper);
    tcase_add_test(tc, helper_is_missing);
    tcase_add_test(tc, helper_is_no_program);
    tcase_add_loop_test(tc, helper_fails, 0,
                        sizeof(bad_helpers) / sizeof(bad_helpers[0]));
    tcase_add_loop_test(tc, helper_hangs, 0, 2);
    tcase_add_test(tc, helper_has_nothing_else);
    tcase_add_test(tc, helper_has_no_environment);
    tcase_add_test(tc, the_name_is_taken);
    tcase_add_test(tc, a_link_in_the_way);
    tcase_add_loop_test(tc, refused_from_the_first_write, 0, 4);
    tcase_add_test(tc, refused_place);
    tcase_add_loop_test(tc, refused_for_a_while, 0, 4);
    tcase_add_test(tc, rows_are_dropped);
    tcase_add_test(tc, full);
    tcase_add_test(tc, read_only);
    tcase_add_test(tc, hangs);
    tcase_add_test(tc, answers_late);
    tcase_add_loop_test(tc, killed, 0, 5);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    /* A check mounts, and leaves that to the end of its process. */
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

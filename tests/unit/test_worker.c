/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/callfilter.h"
#include "common/profile/worker.h"

/* Built with sanitizers, a worker has none. */
#define HAS_SANDBOX (!JOULE_HAS_SANITIZER)

enum { TASKS = 40 };

struct results {
    unsigned char got[TASKS]; /* what came of each task */
    int errnum[TASKS];
    bool is_dead[TASKS];
    size_t last;
    int fail_take_at;
};

static int open_task(void *arg, size_t task, struct joule_error *err)
{
    (void)arg;
    if (task % 10 == 3)
        return joule_error_set(err, EPERM, "not this one");
    return open("/dev/null", O_RDONLY);
}

static int endless = 1;

static int run_task(void *arg, size_t task, int fd, struct joule_out *out,
                    struct joule_error *err)
{
    unsigned char *room;

    (void)arg;
    ck_assert_int_ge(fd, 0);
    if (task % 10 == 5)
        raise(SIGKILL);
    if (task == 7)
        while (*(volatile int *)&endless)
            ;
    if (task == 8) {
        /* No way to another file, nor to a socket. */
        if (open("/etc/passwd", O_RDONLY) >= 0 ||
            socket(AF_INET, SOCK_STREAM, 0) >= 0)
            return joule_error_set(err, 1000, "the sandbox has a hole");
    }
    /* More than fits into all slots. */
    for (int i = 0; i < 200; i++) {
        room = joule_out_room(out, 100000, err);
        if (!room)
            return -1;
        memset(room, (int)task + 1, 100000);
        joule_out_commit(out, 100000);
    }
    if (joule_out_room(out, JOULE_WORKER_SLOT_SIZE + 1, NULL))
        return -1;
    return task == 9 ? joule_error_set(err, EDOM, "nine") : 0;
}

static int take(void *arg, size_t task, const void *data, size_t len,
                struct joule_error *err)
{
    struct results *t = arg;
    const unsigned char *bytes = data;

    if (t->fail_take_at == (int)task)
        return joule_error_set(err, ENOSPC, "full");
    if (task == 12)
        return joule_error_set(err, EBADMSG, "nonsense");
    ck_assert_uint_ge(task, t->last);
    ck_assert_uint_eq(bytes[0], task + 1);
    ck_assert_uint_eq(bytes[len - 1], task + 1);
    t->got[task] = (unsigned char)(t->got[task] + len / 100000);
    return 0;
}

static int ended(void *arg, size_t task, const struct joule_work_end *end,
                 struct joule_error *err)
{
    struct results *t = arg;

    (void)err;
    ck_assert_uint_eq(task, t->last);
    ck_assert((end->errnum == 0) == (end->sentence[0] == '\0'));
    t->errnum[task] = end->errnum;
    t->is_dead[task] = end->is_dead;
    t->last = task + 1;
    return 0;
}

START_TEST(output_in_order)
{
    struct results t = {.fail_take_at = -1};
    const struct joule_work work = {.open = open_task,
                                    .run = run_task,
                                    .take = take,
                                    .ended = ended,
                                    .arg = &t,
                                    .cpu_s = 1,
                                    .wall_s = 20};
    struct joule_error err;

    ck_assert_int_eq(joule_work_run(&work, TASKS, (unsigned)_i, &err), 0);
    ck_assert_uint_eq(t.last, TASKS);
    for (int i = 0; i < TASKS; i++) {
        int want = i % 10 == 3              ? EPERM
                   : i % 10 == 5 || i == 12 ? EBADMSG
                   : i == 7                 ? ETIMEDOUT
                   : i == 9                 ? EDOM
                                            : 0;

        if (i == 8 && !HAS_SANDBOX)
            continue;
        ck_assert_msg(t.errnum[i] == want, "task %d: %d", i, t.errnum[i]);
        ck_assert_int_eq(t.is_dead[i], i % 10 == 5 || i == 7 || i == 12);
        if (want == 0)
            ck_assert_uint_eq(t.got[i], 200);
    }
    t = (struct results){.fail_take_at = 14};
    ck_assert_int_eq(joule_work_run(&work, TASKS, (unsigned)_i, &err), -1);
    ck_assert_int_eq(errno, ENOSPC);
    ck_assert_str_eq(err.text, "full");
    ck_assert_int_eq(joule_work_run(&work, 0, 1, &err), 0);
}
END_TEST

/* 16 MB each time, and never the whole machine. */
static int hungry_run(void *arg, size_t task, int fd, struct joule_out *out,
                      struct joule_error *err)
{
    size_t size = task ? (size_t)16 << 20 : (size_t)256 << 20;
    void *volatile p = malloc(size); /* else nothing needs to be allocated */

    (void)arg;
    (void)fd;
    (void)out;
    if (!p)
        return joule_error_set(err, ENOMEM, "no memory");
    memset(p, 1, size);
    free(p);
    return 0;
}

/* The memory of a task is bounded, but what its parent has is not held against
 * it. */
START_TEST(workers_of_a_big_process)
{
    struct results t = {.fail_take_at = -1};
    const struct joule_work work = {.open = open_task,
                                    .run = hungry_run,
                                    .take = take,
                                    .ended = ended,
                                    .arg = &t,
                                    .cpu_s = 10,
                                    .wall_s = 20};
    struct joule_error err;
    void *volatile much = malloc((size_t)128 << 20);

    ck_assert_ptr_nonnull(much);
    ck_assert_int_eq(joule_work_run(&work, 3, 1, &err), 0);
    if (HAS_SANDBOX)
        ck_assert_int_eq(t.errnum[0], ENOMEM);
    ck_assert_int_eq(t.errnum[1], 0);
    ck_assert_int_eq(t.errnum[2], 0);
    free(much);
}
END_TEST

/* ---- a worker that writes ---- */

struct writing {
    int fd, other; /* the second is not to be had */
    int deaths;
    char done[8];
};

static int writing_run(void *arg, size_t task, int fd, struct joule_out *out,
                       struct joule_error *err)
{
    struct writing *w = arg;

    (void)out;
    (void)err;
    if (fd != -1)
        return -1;
    /* What the worker knows, another one that takes its place does not. */
    w->done[task] = 'x';
    if (task == 2 && w->done[1] == 'x')
        raise(SIGSEGV);
    if (task == 3 && (pwrite(w->other, "y", 1, 0) >= 0 ||
                      ftruncate(w->other, 0) == 0 || errno != EBADF))
        return -1;
    if (task == 4 && HAS_SANDBOX &&
        (open("/tmp", O_TMPFILE | O_RDWR, 0600) >= 0 ||
         rename("/tmp/no", "/tmp/such") == 0 || errno != EPERM))
        return -1;
    return pwrite(w->fd, w->done, sizeof(w->done), 0) == sizeof(w->done) ? 0
                                                                         : -1;
}

static int writing_ended(void *arg, size_t task,
                         const struct joule_work_end *end,
                         struct joule_error *err)
{
    struct writing *w = arg;

    (void)err;
    if (end->is_dead) {
        ck_assert_uint_eq(task, 2);
        w->deaths++;
        return 0;
    }
    ck_assert_msg(end->errnum == 0, "task %zu: %s", task, end->sentence);
    return 0;
}

/* Into the file that it was given, and into no other; after its death, another
 * one goes on that has done nothing yet, and so it is for each task if that is
 * wanted. */
START_TEST(a_worker_that_writes)
{
    struct writing w = {.fd = memfd_create("out", 0),
                        .other = memfd_create("other", 0)};
    const struct joule_work work = {.run = writing_run,
                                    .ended = writing_ended,
                                    .arg = &w,
                                    .keep = &w.fd,
                                    .keeps = 1,
                                    .writes_files = true,
                                    .is_fresh = _i,
                                    .cpu_s = 5,
                                    .wall_s = 20};
    struct joule_error err;
    char got[8];

    ck_assert_int_eq(joule_work_run(&work, 5, 1, &err), 0);
    ck_assert_int_eq(w.deaths, _i ? 0 : 1);
    ck_assert_int_eq(pread(w.fd, got, sizeof(got), 0), sizeof(got));
    ck_assert_mem_eq(got, _i ? "\0\0\0\0x\0\0\0" : "\0\0\0xx\0\0\0",
                     sizeof(got));
    ck_assert_int_eq(lseek(w.other, 0, SEEK_END), 0);
    close(w.fd);
    close(w.other);
}
END_TEST

/* Without that, not even into those that it has. */
static int reading_run(void *arg, size_t task, int fd, struct joule_out *out,
                       struct joule_error *err)
{
    const struct writing *w = arg;

    (void)task;
    (void)fd;
    (void)out;
    (void)err;
    return !HAS_SANDBOX || (pwrite(w->fd, "y", 1, 0) < 0 && errno == EPERM &&
                            ftruncate(w->fd, 100) < 0 && errno == EPERM)
               ? 0
               : -1;
}

START_TEST(a_worker_that_reads)
{
    struct writing w = {.fd = memfd_create("out", 0)};
    const struct joule_work work = {.run = reading_run,
                                    .ended = writing_ended,
                                    .arg = &w,
                                    .keep = &w.fd,
                                    .keeps = 1,
                                    .cpu_s = 5,
                                    .wall_s = 20};
    struct joule_error err;

    ck_assert_int_eq(joule_work_run(&work, 1, 1, &err), 0);
    close(w.fd);
}
END_TEST

/* A task that has much to read has more time for it. */
static int slow_run(void *arg, size_t task, int fd, struct joule_out *out,
                    struct joule_error *err)
{
    const struct timespec time = {.tv_sec = 2, .tv_nsec = 500000000};
    uint32_t word = 0;

    (void)arg;
    (void)task;
    (void)fd;
    (void)out;
    (void)err;
    /* Sleeping is a call that the sandbox does not know. */
    syscall(SYS_futex, &word, FUTEX_WAIT, 0, &time, NULL, 0);
    return 0;
}

static uint64_t slow_bytes(void *arg, size_t task)
{
    (void)arg;
    return task ? (uint64_t)10 << 20 : 0;
}

START_TEST(time_by_size)
{
    struct results t = {.fail_take_at = -1};
    const struct joule_work work = {.run = slow_run,
                                    .ended = ended,
                                    .bytes = slow_bytes,
                                    .arg = &t,
                                    .cpu_s = 1,
                                    .wall_s = 1};
    struct joule_error err;

    ck_assert_int_eq(joule_work_run(&work, 2, 1, &err), 0);
    ck_assert_int_eq(t.errnum[0], ETIMEDOUT);
    ck_assert_int_eq(t.errnum[1], 0);
}
END_TEST

/* A worker dies with orders that it has not read, while its parent is busy: what
 * it had sent before is not lost. */
static int last_run(void *arg, size_t task, int fd, struct joule_out *out,
                    struct joule_error *err)
{
    char *room = joule_out_room(out, 1, err);

    (void)arg;
    (void)fd;
    if (task == 2)
        raise(SIGKILL);
    *room = 'x';
    joule_out_commit(out, 1);
    return 0;
}

static int busy_take(void *arg, size_t task, const void *data, size_t len,
                     struct joule_error *err)
{
    const struct timespec busy = {.tv_nsec = 300000000};

    (void)arg;
    (void)data;
    (void)len;
    (void)err;
    if (task == 0)
        nanosleep(&busy, NULL);
    return 0;
}

START_TEST(last_words)
{
    struct results t = {.last = 0};
    const struct joule_work work = {.run = last_run,
                                    .take = busy_take,
                                    .ended = ended,
                                    .arg = &t,
                                    .cpu_s = 5,
                                    .wall_s = 20};
    struct joule_error err;

    ck_assert_int_eq(joule_work_run(&work, 4, 1, &err), 0);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(t.errnum[i], i == 2 ? EBADMSG : 0);
        ck_assert_int_eq(t.is_dead[i], i == 2);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker");
    TCase *tc = tcase_create("worker");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tc, output_in_order, 1, 4);
    tcase_add_test(tc, workers_of_a_big_process);
    tcase_add_loop_test(tc, a_worker_that_writes, 0, 2);
    tcase_add_test(tc, a_worker_that_reads);
    tcase_add_test(tc, time_by_size);
    tcase_add_test(tc, last_words);
    tcase_set_timeout(tc, 120);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

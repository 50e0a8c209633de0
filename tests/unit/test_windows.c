/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file looked at here and there: the right bytes, and not many times over.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/store/windows.h"

#define SIZE ((size_t)8 << 20)

static unsigned char *whole;
static struct joule_windows *windows;
static int fd;

static void setup(void)
{
    char path[] = "/tmp/joule-windows.XXXXXX";

    whole = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        whole[i] = (unsigned char)(i * 2654435761u >> 13);
    fd = mkstemp(path);
    unlink(path);
    ck_assert_int_eq(write(fd, whole, SIZE), (ssize_t)SIZE);
    windows = joule_windows_create(fd, SIZE);
    ck_assert_uint_eq(joule_windows_size(windows), SIZE);
}

static void teardown(void)
{
    joule_windows_destroy(windows);
    close(fd);
    free(whole);
}

/* What this process has read of files, pages in memory included. */
static unsigned long long bytes_read(void)
{
    unsigned long long bytes = 0;
    FILE *f = fopen("/proc/self/io", "r");

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "rchar: %llu", &bytes), 1);
    fclose(f);
    return bytes;
}

static void look(uint64_t at, size_t size)
{
    const unsigned char *bytes = joule_windows_look(windows, at, size);

    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(memcmp(bytes, whole + at, size), 0);
}

START_TEST(anywhere)
{
    unsigned char *buf = malloc(SIZE);

    srand(7);
    for (int i = 0; i < 20000; i++) {
        size_t size = (size_t)rand() % (i % 100 ? 2000 : JOULE_WINDOW_MAX + 1);
        uint64_t at = (uint64_t)rand() % (SIZE - size + 1);

        look(at, size);
        if (i % 500)
            continue;
        size = (size_t)rand() % (SIZE - at + 1);
        ck_assert_int_eq(joule_windows_read(windows, at, size, buf), 0);
        ck_assert_int_eq(memcmp(buf, whole + at, size), 0);
    }
    free(buf);
}
END_TEST

START_TEST(eight_are_good)
{
    const unsigned char *bytes[8];

    for (size_t i = 0; i < 8; i++)
        bytes[i] = joule_windows_look(windows, i * 1000000, 100);
    for (size_t i = 0; i < 8; i++)
        ck_assert_int_eq(memcmp(bytes[i], whole + i * 1000000, 100), 0);
}
END_TEST

START_TEST(not_beyond)
{
    look(SIZE - 100, 100);
    look(SIZE, 0);
    ck_assert_ptr_null(joule_windows_look(windows, SIZE - 99, 100));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_null(joule_windows_look(windows, UINT64_MAX - 10, 100));
    ck_assert_ptr_null(joule_windows_look(windows, 0, JOULE_WINDOW_MAX + 1));
    ck_assert_int_eq(ftruncate(fd, 5000), 0);
    ck_assert_ptr_null(joule_windows_look(windows, 4000, 2000));
    ck_assert_int_eq(errno, ENODATA);
}
END_TEST

START_TEST(forwards)
{
    unsigned long long before = bytes_read();

    for (uint64_t at = 0; at < SIZE; at += 512)
        look(at, 512);
    ck_assert_uint_lt(bytes_read() - before, SIZE / 10 * 11);
}
END_TEST

START_TEST(backwards)
{
    unsigned long long before = bytes_read();

    for (uint64_t at = SIZE - 512; at > 0; at -= 512)
        look(at, 512);
    ck_assert_uint_lt(bytes_read() - before, SIZE / 10 * 21);
}
END_TEST

/* The objects of a node, each before what refers to it, and nodes in the order
 * of their names; the names stand elsewhere. */
START_TEST(from_object_to_object)
{
    const size_t nodes = SIZE / 10240;
    unsigned long long before = bytes_read();

    for (size_t i = 0; i < nodes; i++) {
        uint64_t node = i * 331 % nodes * 10240;

        look(i * 24, 24);
        for (int object = 9; object >= 0; object--)
            look(node + (uint64_t)object * 1024, 500);
    }
    /* Two spots at the most for each. */
    ck_assert_uint_lt(bytes_read() - before, nodes * 2 * 36000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("windows");
    TCase *tc = tcase_create("windows");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, anywhere);
    tcase_add_test(tc, eight_are_good);
    tcase_add_test(tc, not_beyond);
    tcase_add_test(tc, forwards);
    tcase_add_test(tc, backwards);
    tcase_add_test(tc, from_object_to_object);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pmlib's client (lib/pmlib.c) with servers that break the protocol, and without
 * one. */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "lib/pmlib.h"

static line_t all;
static counter_t counter;

static void setup(void)
{
    LINE_SET_ALL(&all);
}

/* ---- a server of the test's own ---- */

/* It sends [a] to the first connection and [b] to the
 * second. */
static struct {
    int fd;
    server_t address;
    unsigned char a[512], b[64];
    size_t a_len, b_len;
    bool drips, closes;
    int connection[2];
} bad;

static void bad_int(int32_t value)
{
    memcpy(bad.a + bad.a_len, &value, sizeof(value));
    bad.a_len += sizeof(value);
}

static void bad_send(int fd, const unsigned char *from, size_t len)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    for (size_t i = 0; bad.drips && i < len; i++) {
        send(fd, from + i, 1, MSG_NOSIGNAL);
        usleep(1000);
    }
    if (!bad.drips)
        send(fd, from, len, MSG_NOSIGNAL);
    if (bad.closes)
        shutdown(fd, SHUT_WR);
}

static void *bad_run(void *arg)
{
    (void)arg;
    bad.connection[0] = accept4(bad.fd, NULL, NULL, SOCK_CLOEXEC);
    bad_send(bad.connection[0], bad.a, bad.a_len);
    bad.connection[1] = accept4(bad.fd, NULL, NULL, SOCK_CLOEXEC);
    if (bad.connection[1] >= 0)
        bad_send(bad.connection[1], bad.b, bad.b_len);
    return NULL;
}

static pthread_t bad_thread;

static void begin_bad(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(here);
    char ip[] = "127.0.0.1";

    bad.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(bad.fd, (struct sockaddr *)&here, sizeof(here)), 0);
    ck_assert_int_eq(listen(bad.fd, 4), 0);
    getsockname(bad.fd, (struct sockaddr *)&here, &size);
    ck_assert_int_eq(pm_set_server(ip, ntohs(here.sin_port), &bad.address), 0);
    bad.connection[0] = bad.connection[1] = -1;
    ck_assert_int_eq(pthread_create(&bad_thread, NULL, bad_run, NULL), 0);
}

static void end_bad(void)
{
    shutdown(bad.fd, SHUT_RDWR);
    pthread_join(bad_thread, NULL);
    close(bad.fd);
    for (int i = 0; i < 2; i++)
        if (bad.connection[i] >= 0)
            close(bad.connection[i]);
    bad.a_len = bad.b_len = 0;
}

/* ---- servers that break the protocol ---- */

/* What comes before the data of a counter of 4 lines. */
static void put_life(void)
{
    const int32_t info[] = {10, 4, 1};

    memset(&bad, 0, sizeof(bad));
    for (int i = 0; i < 3; i++)
        bad_int(0);
    memcpy(bad.b, info, sizeof(info));
    bad.b[sizeof(info)] = 'x';
    bad.b_len = sizeof(info) + 1;
}

static int get_bad(int aggregate)
{
    char x[] = "x";
    int rc, error;

    begin_bad();
    ck_assert_msg(
        pm_create_counter(x, all, aggregate, 0, bad.address, &counter) == 0,
        "%s", strerror(errno));
    ck_assert_int_eq(pm_start_counter(&counter), 0);
    ck_assert_int_eq(pm_stop_counter(&counter), 0);
    rc = pm_get_counter_data(&counter);
    error = errno;
    if (rc < 0) {
        ck_assert_ptr_null(counter.measures->energy.watts);
        ck_assert_int_eq(pm_start_counter(&counter), -1);
        pm_finalize_counter(&counter);
    }
    end_bad();
    errno = error;
    return rc;
}

static void put_data(int watts, int numbers, int lines, const int32_t *at,
                     int count)
{
    put_life();
    bad_int(watts);
    bad_int(numbers);
    bad_int(lines);
    for (int i = 0; i < count; i++)
        bad_int(at[i]);
}

static void must_break(int watts, int numbers, int lines, const int32_t *at,
                       int count, int error)
{
    put_data(watts, numbers, lines, at, count);
    ck_assert_int_eq(get_bad(0), -1);
    ck_assert_msg(errno == error, "%s", strerror(errno));
}

START_TEST(bad_data)
{
    static const int32_t good[] = {0, 2}, from_one[] = {1, 2},
                         back[] = {0, 2, 1}, long_set[] = {0, 1 << 28};

    must_break(1 << 28, 2, 4, good, 2, EPROTO); /* 2 GB */
    must_break(INT32_MAX, 2, 4, good, 2, EPROTO);
    must_break(8, 1 << 30, 4, good, 2, EPROTO);
    must_break(8, 0, 4, good, 2, EPROTO);
    must_break(8, -1, 4, good, 2, EPROTO);
    must_break(8, 2, 129, good, 2, EPROTO);
    must_break(6, 2, 3, good, 2, EPROTO);
    must_break(9, 2, 4, good, 2, EPROTO);
    must_break(4, 2, 4, from_one, 2, EPROTO);
    must_break(4, 3, 4, back, 3, EPROTO);
    must_break(0, 2, 4, long_set, 2, EPROTO);
    put_data(-7, 2, 4, good, 2);
    ck_assert_int_eq(get_bad(0), -1);
}
END_TEST

/* One byte after the other; then the same, and it ends before its end. */
START_TEST(drips)
{
    static const int32_t good[] = {0, 2};
    double watts;

    for (int cut = 0; cut < 2; cut++) {
        put_data(8, 2, 4, good, 2);
        for (int i = 0; i < 8 - cut; i++) {
            watts = i;
            memcpy(bad.a + bad.a_len, &watts, sizeof(watts));
            bad.a_len += sizeof(watts);
        }
        bad.drips = true;
        bad.closes = cut;
        ck_assert_int_eq(get_bad(0), cut ? -1 : 1);
        if (cut) {
            ck_assert_int_eq(errno, ECONNRESET);
            return;
        }
        for (int i = 0; i < 8; i++)
            ck_assert_double_eq(counter.measures->energy.watts[i], i);
        pm_finalize_counter(&counter);
    }
}
END_TEST

static void list_must_break(int32_t first, int32_t second, int error)
{
    char **list;
    int count;

    memset(&bad, 0, sizeof(bad));
    bad_int(first);
    bad_int(second);
    bad.closes = true;
    begin_bad();
    ck_assert_int_eq(pm_get_devices(bad.address, &list, &count), -1);
    ck_assert_msg(errno == error, "%s", strerror(errno));
    end_bad();
}

START_TEST(bad_lists)
{
    list_must_break(1 << 30, 0, EPROTO);
    list_must_break(2, INT32_MAX, EPROTO);
    list_must_break(2, -5, EPROTO);
    list_must_break(2, 8, ECONNRESET);
    list_must_break(-1, 0, EREMOTEIO);
}
END_TEST

START_TEST(stalls)
{
    struct timespec from, to;
    char **list;
    int count;

    memset(&bad, 0, sizeof(bad));
    begin_bad();
    clock_gettime(CLOCK_MONOTONIC, &from);
    ck_assert_int_eq(pm_get_devices(bad.address, &list, &count), -1);
    ck_assert_int_eq(errno, ETIMEDOUT);
    clock_gettime(CLOCK_MONOTONIC, &to);
    ck_assert_int_le(to.tv_sec - from.tv_sec, 7);
    end_bad();
}
END_TEST

/* ---- without a server ---- */

START_TEST(addresses)
{
    char ip[] = "10.0.0.1", name[] = "localhost", none[] = "";
    char long_ip[] = "255.255.255.255", longer[] = "255.255.255.2555";
    server_t s = {.port = 77};

    ck_assert_int_eq(pm_set_server(name, 1, &s), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(pm_set_server(longer, 1, &s), -1);
    ck_assert_int_eq(pm_set_server(ip, 0, &s), -1);
    ck_assert_int_eq(pm_set_server(ip, 65536, &s), -1);
    ck_assert_int_eq(s.port, 0);
    ck_assert_int_eq(pm_set_server(long_ip, 65535, &s), 0);
    ck_assert_str_eq(s.server_ip, long_ip);
    setenv("JOULE_PMSERVER", "127.0.0.1:4711", 1);
    ck_assert_int_eq(pm_set_server(none, 6526, &s), 0);
    ck_assert_int_eq(s.port, 4711);
    ck_assert_str_eq(s.server_ip, "127.0.0.1");
    setenv("JOULE_PMSERVER", "127.0.0.1", 1);
    ck_assert_int_eq(pm_set_server(NULL, 0, &s), -1);
    ck_assert_int_eq(errno, EINVAL);
    setenv("JOULE_PMSERVER", "127.0.0.1:99999", 1);
    ck_assert_int_eq(pm_set_server(NULL, 0, &s), -1);
    setenv("JOULE_PMSERVER", ":1", 1);
    ck_assert_int_eq(pm_set_server(NULL, 0, &s), -1);
    unsetenv("JOULE_PMSERVER");
    ck_assert_int_eq(pm_set_server(NULL, 0, &s), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(s.port, 0);
}
END_TEST

/* As a program's variables may be, which goes on after errors. */
START_TEST(garbage)
{
    char step[] = "step";
    server_t s;
    counter_t c;
    line_t lines;

    memset(&s, 'A', sizeof(s));
    memset(&c, 'A', sizeof(c));
    LINE_SET_ALL(&lines);
    ck_assert_int_eq(pm_set_server(NULL, 0, &s), -1);
    ck_assert_int_eq(pm_create_counter(step, lines, 1, 0, s, &c), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(pm_start_counter(&c), -1);
    ck_assert_int_eq(pm_stop_counter(&c), -1);
    ck_assert_int_eq(pm_get_counter_data(&c), -1);
    ck_assert_int_eq(pm_finalize_counter(&c), -1);
}
END_TEST

static int members(const line_t *set)
{
    int count = 0;

    for (int i = -1; i < 200; i++)
        count += LINE_ISSET(i, set);
    return count;
}

START_TEST(masks)
{
    static const char *const wrong[] = {
        "128", "0-128", "3-2",  "1,",    ",1",          "1-", "-1",
        "a",   "1 2",   "1,,2", "1-2-3", "99999999999", "0x1"};
    line_t lines, other;

    LINE_CLR_ALL(&lines);
    LINE_SET(9, &lines);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char text[16];

        snprintf(text, sizeof(text), "%s", wrong[i]);
        ck_assert_msg(pm_set_lines(text, &lines) == -1, "%s", text);
        ck_assert_int_eq(members(&lines), 1);
    }
    ck_assert_int_eq(pm_set_lines("0,2-5,100,127", &lines), 0);
    ck_assert_int_eq(members(&lines), 7);
    ck_assert(LINE_ISSET(100, &lines) && LINE_ISSET(127, &lines));
    pm_set_lines("4-7", &other);
    LINE_AND(&other, other, lines);
    ck_assert_int_eq(members(&other), 2);
    LINE_CLR(4, &other);
    LINE_CLR(128, &other);
    LINE_SET(128, &other);
    LINE_SET(-1, &other);
    ck_assert_int_eq(members(&other), 1);
    ck_assert_int_eq(pm_set_lines("", &other), 0);
    ck_assert_int_eq(members(&other), 0);
    LINE_SET_ALL(&other);
    ck_assert_int_eq(members(&other), 128);
    ck_assert_int_eq(pm_set_lines(NULL, &other), -1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pmlib_client");
    TCase *tc = tcase_create("pmlib_client");
    SRunner *sr;
    int failed;

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, bad_data);
    tcase_add_test(tc, drips);
    tcase_add_test(tc, bad_lists);
    tcase_add_test(tc, stalls);
    tcase_add_test(tc, addresses);
    tcase_add_test(tc, garbage);
    tcase_add_test(tc, masks);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

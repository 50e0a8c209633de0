/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of joule-pmserver, without a connection: requests, the table of
 * connections, and counters of a device that the test plays. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/pmserver/counter.h"
#include "tools/pmserver/peer.h"
#include "tools/pmserver/request.h"

#define S  JOULE_NS_PER_S
#define MS JOULE_NS_PER_MS

/* ---- requests ---- */

static unsigned char bytes[256];
static size_t byte_count;

static void put(const void *from, size_t size)
{
    memcpy(bytes + byte_count, from, size);
    byte_count += size;
}

static void put_int(int32_t value)
{
    put(&value, sizeof(value));
}

static void put_text(const char *text)
{
    put_int((int32_t)strlen(text));
    put(text, strlen(text));
}

START_TEST(requests)
{
    unsigned char mask[16] = {0x05, [15] = 0x80};
    struct joule_pm_request r = {.frequency = 77};

    put_int(JOULE_PM_CREATE);
    put_text("step");
    put_int(10);
    put_int(1);
    put_int(16);
    put(mask, sizeof(mask));
    for (size_t i = 0; i < byte_count; i++)
        ck_assert_int_eq(joule_pm_request_parse(bytes, i, &r), 0);
    ck_assert_int_eq(r.frequency, 77);
    put_int(JOULE_PM_STOP);
    ck_assert_int_eq(joule_pm_request_parse(bytes, byte_count, &r),
                     (int)byte_count - 4);
    ck_assert_int_eq(r.operation, JOULE_PM_CREATE);
    ck_assert_str_eq(r.device, "step");
    ck_assert_int_eq(r.frequency, 10);
    ck_assert(r.aggregate);
    ck_assert(joule_pm_has_line(r.mask, 0) && !joule_pm_has_line(r.mask, 1));
    ck_assert(joule_pm_has_line(r.mask, 127) &&
              !joule_pm_has_line(r.mask, 128));
}
END_TEST

static void must_be_garbage(void)
{
    struct joule_pm_request r;

    errno = 0;
    ck_assert_int_eq(joule_pm_request_parse(bytes, byte_count, &r), -1);
    ck_assert_int_eq(errno, EPROTO);
    byte_count = 0;
}

START_TEST(no_requests)
{
    put_int(-1);
    must_be_garbage();
    put_int(10);
    must_be_garbage();
    put_int(JOULE_PM_INFO_DEVICE);
    put_int(-1);
    must_be_garbage();
    put_int(JOULE_PM_READ_DEVICE);
    put_int(JOULE_PM_NAME_MAX + 1);
    must_be_garbage();
    put_int(JOULE_PM_CREATE);
    put_text("step");
    put_int(0);
    put_int(0);
    put_int(8);
    must_be_garbage();
}
END_TEST

/* ---- whose a connection is ---- */

#define HEAD "  sl  local_address rem_address   st tx_queue rx_queue tr\n"
#define REST " 00000000:00000000 00:00000000 00000000"

/* From 127.0.0.1:1000 to 127.0.0.1:6526. */
static int find(const char *table, uid_t *ret)
{
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                               .sin_port = htons(1000)};
    struct sockaddr_in to = from;
    FILE *in = fmemopen((void *)(uintptr_t)table, strlen(table), "r");
    int rc;

    ck_assert_ptr_nonnull(in);
    to.sin_port = htons(6526);
    rc = joule_pm_peer_find(in, &from, &to, ret);
    fclose(in);
    return rc;
}

START_TEST(peers)
{
    uid_t uid = 77;

    ck_assert_int_eq(
        find(HEAD "   0: 0100007F:03E8 0100007F:197E 01" REST
                  "  1234        0 568 1 00000000e7f81aaf 100 0 0 10 0\n",
             &uid),
        0);
    ck_assert_uint_eq(uid, 1234);
    /* The other end; a port too many; closed; without an owner; cut. */
    ck_assert_int_eq(
        find(HEAD "   0: 0100007F:197E 0100007F:03E8 01" REST " 1 0 568 1\n"
                  "   1: 0100007F:03E9 0100007F:197E 01" REST " 1 0 568 1\n"
                  "   2: 0100007F:03E8 0100007F:197E 06" REST " 0 0 0 3\n"
                  "   3: 0100007F:03E8 0100007F:197E 01" REST " 0 0 0 3\n"
                  "   4: 0100007F:03E8 0100007F:197E 01\n",
             &uid),
        -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_uint_eq(uid, 1234);
}
END_TEST

/* ---- counters ---- */

static int64_t clock_ns;

static int64_t test_clock_ns(void *arg)
{
    (void)arg;
    return clock_ns;
}

static const struct joule_clock test_clock = {.mono_ns = test_clock_ns,
                                              .wall_ns = test_clock_ns};

static int open_fake(struct joule_pm_device *d, struct joule_error *err)
{
    (void)d;
    (void)err;
    return 0;
}

/* Line i uses i + 1 W for 10 s, and ten times as much from then on. */
static double used(unsigned line, int64_t ns)
{
    double s = (double)ns / 1e9;

    return (line + 1) * (s < 10 ? s : 10 + 10 * (s - 10));
}

/* Its figures are those of the last full period. */
static int64_t figures_ns;

static int read_fake(struct joule_pm_device *d, bool *ret_rate)
{
    *ret_rate = false;
    d->time_ns = clock_ns / figures_ns * figures_ns;
    for (unsigned i = 0; i < d->lines; i++)
        d->amount[i] = used(i, d->time_ns);
    return 0;
}

static const struct joule_pm_kind fake_kind = {
    .description = "fake", .open = open_fake, .read = read_fake};

static struct joule_pm_device device;
static struct joule_pm_counter *counter;
static int32_t set_at[JOULE_PM_SETS_MAX + 1];
static double samples[JOULE_PM_VALUES_MAX];

static void setup(void)
{
    byte_count = 0;
    clock_ns = 0;
    figures_ns = S;
    device = (struct joule_pm_device){.kind = &fake_kind,
                                      .name = "fake",
                                      .lines = 4,
                                      .max_hz = 1,
                                      .clock = &test_clock};
    counter = NULL;
}

static void teardown(void)
{
    joule_pm_counter_destroy(counter);
    ck_assert_uint_eq(device.users, 0);
}

static void create(int hz, bool aggregate, unsigned char mask)
{
    struct joule_pm_request r = {
        .frequency = hz, .aggregate = aggregate, .mask = {mask}};

    counter = joule_pm_counter_create(&device, &r);
    ck_assert_ptr_nonnull(counter);
}

/* Go on, looking at the device each [step_ns]. */
static void pass(int64_t ns, int64_t step_ns)
{
    for (int64_t end_ns = clock_ns + ns; clock_ns < end_ns;) {
        clock_ns += step_ns;
        joule_pm_device_read(&device);
        joule_pm_counter_feed(counter);
    }
}

static void begin(void)
{
    ck_assert_int_eq(joule_pm_counter_begin(counter, clock_ns), 0);
}

static void end(void)
{
    ck_assert_int_eq(joule_pm_counter_end(counter, clock_ns), 0);
}

/* Mean x time of the set's samples: what a client makes of them. */
static double joules(size_t set, unsigned line, double seconds)
{
    double sum = 0;
    int32_t from, to;

    ck_assert_uint_gt(joule_pm_counter_sizes(counter, set_at), set);
    joule_pm_counter_samples(counter, line, samples);
    from = set_at[set];
    to = set_at[set + 1];
    ck_assert_int_ge(to - from, 2);
    for (int32_t i = from; i < to; i++)
        sum += samples[i];
    return sum / (to - from) * seconds;
}

/* A set from 8.5 s to 12.25 s, and one at once from there to 14.75 s. */
START_TEST(all_that_was_used)
{
    create(0, false, 0x06);
    pass(8500 * MS, 250 * MS);
    begin();
    ck_assert_int_eq(joule_pm_counter_begin(counter, clock_ns), -1);
    pass(3750 * MS, 250 * MS);
    end();
    ck_assert_int_eq(joule_pm_counter_end(counter, clock_ns), -1);
    ck_assert(!joule_pm_counter_is_complete(counter));
    begin();
    pass(2500 * MS, 250 * MS);
    end();
    ck_assert(!joule_pm_counter_is_complete(counter));
    pass(S, 250 * MS);
    ck_assert(joule_pm_counter_is_complete(counter));
    ck_assert_double_eq_tol(joules(0, 0, 3.75), 2 * (1.5 + 22.5), 1e-6);
    ck_assert_double_eq_tol(joules(0, 1, 3.75), 3 * (1.5 + 22.5), 1e-6);
    ck_assert_double_eq_tol(joules(1, 0, 2.5), 2 * 25.0, 1e-6);
    ck_assert_int_eq(set_at[0], 0);
    ck_assert_int_eq(set_at[1], 4);
    ck_assert_int_eq(set_at[2], 4 + 3);
    /* The samples show when it rose: at 10 s of 8.5 to 12.25. */
    ck_assert_double_eq_tol(samples[0], 2, 1e-6);
    ck_assert_double_gt(samples[1], 2.1);
    ck_assert_double_eq_tol(samples[3], 20, 1e-6);
}
END_TEST

/* Where the device says nothing more, the rate goes on. */
START_TEST(not_settled)
{
    create(0, true, 0);
    pass(3 * S, S);
    begin();
    pass(2 * S, S);
    clock_ns += 700 * MS;
    end();
    ck_assert(!joule_pm_counter_is_complete(counter));
    ck_assert_double_eq_tol(joules(0, 0, 2.7), 10 * 2.7, 1e-6);
}
END_TEST

/* Much shorter than the figures are apart: still two samples, of the mean. */
START_TEST(short_set)
{
    create(0, true, 0x0f);
    pass(4250 * MS, 250 * MS);
    begin();
    clock_ns += 100 * MS;
    end();
    pass(S, 250 * MS);
    ck_assert(joule_pm_counter_is_complete(counter));
    ck_assert_double_eq_tol(joules(0, 0, 0.1), 10 * 0.1, 1e-6);
    ck_assert_int_eq(set_at[1], 2);
    joule_pm_counter_clear(counter);
    ck_assert_uint_eq(joule_pm_counter_sizes(counter, set_at), 0);
    begin();
    end();
    joules(0, 0, 0);
}
END_TEST

START_TEST(lines_and_frequencies)
{
    struct joule_pm_request r = {.mask = {0xf0}};
    unsigned line[JOULE_PM_LINES_MAX];

    ck_assert_ptr_null(joule_pm_counter_create(&device, &r));
    ck_assert_int_eq(errno, EINVAL);
    r = (struct joule_pm_request){.frequency = 2};
    ck_assert_ptr_null(joule_pm_counter_create(&device, &r));
    r.frequency = -1;
    ck_assert_ptr_null(joule_pm_counter_create(&device, &r));
    create(1, false, 0xfa);
    ck_assert_uint_eq(joule_pm_counter_lines(counter, line), 2);
    ck_assert_uint_eq(line[0], 1);
    ck_assert_uint_eq(line[1], 3);
}
END_TEST

/* Each third figure, and the energy all the same. */
START_TEST(lower_frequency)
{
    device.max_hz = 10;
    figures_ns = 100 * MS;
    create(3, true, 0x01);
    pass(5 * S, 100 * MS);
    begin();
    pass(9 * S, 100 * MS);
    end();
    pass(200 * MS, 100 * MS);
    ck_assert_double_eq_tol(joules(0, 0, 9), 5 + 40, 1e-6);
    ck_assert_int_eq(set_at[1], 30);
}
END_TEST

/* For days: what is kept stays bounded, and what was used is right. */
START_TEST(bounded)
{
    int64_t end_ns;

    device.max_hz = 10;
    device.lines = 128;
    figures_ns = 100 * MS;
    create(0, false, 0);
    begin();
    pass(3000 * S, 100 * MS);
    end();
    begin();
    pass(100 * S, 100 * MS);
    end();
    pass(200 * MS, 100 * MS);
    end_ns = 3000 * S;
    ck_assert_double_eq_tol(joules(0, 0, 3000), used(0, end_ns), 1e-3);
    ck_assert_int_le(set_at[2], 2 * JOULE_PM_VALUES_MAX / 129);
    ck_assert_int_gt(set_at[1], JOULE_PM_VALUES_MAX / 129 / 3);
    ck_assert_double_eq_tol(joules(1, 127, 100), 128 * 1000.0, 1e-3);
}
END_TEST

START_TEST(many_sets)
{
    int i;

    create(0, true, 0x01);
    for (i = 0; i < JOULE_PM_SETS_MAX; i++) {
        begin();
        clock_ns += MS;
        end();
    }
    ck_assert_int_eq(joule_pm_counter_begin(counter, clock_ns), -1);
    ck_assert_int_eq(errno, ENOSPC);
    pass(6 * S, S);
    ck_assert(joule_pm_counter_is_complete(counter));
    ck_assert_double_eq_tol(joules(4999, 0, 0.001), 0.001, 1e-6);
    joule_pm_counter_destroy(counter);
    /* Of 128 lines there is room for fewer. */
    device.lines = 128;
    create(0, false, 0);
    for (i = 0; joule_pm_counter_begin(counter, clock_ns) == 0; i++) {
        clock_ns += MS;
        end();
    }
    ck_assert_int_eq(errno, ENOSPC);
    ck_assert_int_gt(i, 500);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pmserver");
    TCase *tc = tcase_create("pmserver");
    SRunner *sr;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, requests);
    tcase_add_test(tc, no_requests);
    tcase_add_test(tc, peers);
    tcase_add_test(tc, all_that_was_used);
    tcase_add_test(tc, not_settled);
    tcase_add_test(tc, short_set);
    tcase_add_test(tc, lines_and_frequencies);
    tcase_add_test(tc, lower_frequency);
    tcase_add_test(tc, bounded);
    tcase_add_test(tc, many_sets);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

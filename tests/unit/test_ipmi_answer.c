/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/sdr.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/error.h"

#define OK_FLAGS 0xC0

static const struct joule_sdr two_watts = {.m = 2};

static bool believe;

static struct joule_wire_value sensor(const struct joule_sdr *sdr,
                                      const void *bytes, size_t size)
{
    struct joule_wire_value v = {.watts = 99.0, .code = 99};
    uint8_t *exact = malloc(size ? size : 1);

    memcpy(exact, bytes, size);
    joule_ipmi_sensor_answer(sdr, believe, exact, size, &v);
    free(exact);
    if (v.status != JOULE_POWER_OK)
        ck_assert(v.watts == 0.0);
    return v;
}

static void expect(const struct joule_sdr *sdr, uint8_t raw, uint8_t flags,
                   enum joule_power_status status, double watts)
{
    const uint8_t rs[] = {0, raw, flags, 0};
    struct joule_wire_value v = sensor(sdr, rs, sizeof(rs));

    ck_assert_int_eq(v.status, status);
    ck_assert(v.watts == watts);
    ck_assert_uint_eq(v.code, 0);
}

START_TEST(sensor_bad)
{
    static const uint8_t good[] = {0, 100, OK_FLAGS};

    for (size_t size = 0; size < sizeof(good); size++)
        ck_assert_int_eq(sensor(&two_watts, good, size).status,
                         JOULE_POWER_FAILED);
    for (unsigned code = 1; code < 256; code++) {
        const uint8_t rs[] = {(uint8_t)code, 100, OK_FLAGS};
        struct joule_wire_value v = sensor(&two_watts, rs, sizeof(rs));

        ck_assert_int_eq(v.status, JOULE_POWER_REFUSED);
        ck_assert_uint_eq(v.code, code);
        ck_assert_int_eq(sensor(&two_watts, rs, 1).status, JOULE_POWER_REFUSED);
    }
}
END_TEST

START_TEST(sensor_kinds)
{
    struct joule_sdr sdr = two_watts;

    expect(&sdr, 100, OK_FLAGS, JOULE_POWER_OK, 200.0);
    expect(&sdr, 100, 0x40, JOULE_POWER_OK, 200.0);
    expect(&sdr, 254, OK_FLAGS, JOULE_POWER_OK, 508.0);
    expect(&sdr, 255, OK_FLAGS, JOULE_POWER_SATURATED, 0.0);
    expect(&sdr, 0, OK_FLAGS, JOULE_POWER_ZERO, 0.0);
    expect(&sdr, 100, OK_FLAGS | 0x20, JOULE_POWER_UNAVAILABLE, 0.0);
    expect(&sdr, 100, 0x80, JOULE_POWER_NOT_SCANNED, 0.0);
    expect(&sdr, 100, 0x20, JOULE_POWER_UNAVAILABLE, 0.0);
    sdr.format = JOULE_SDR_TWOS;
    expect(&sdr, 0xFB, OK_FLAGS, JOULE_POWER_NEGATIVE, 0.0);
    expect(&sdr, 0x7F, OK_FLAGS, JOULE_POWER_SATURATED, 0.0);
    sdr = two_watts;
    sdr.r_exp = 7;
    expect(&sdr, 100, OK_FLAGS, JOULE_POWER_ABSURD, 0.0);
    sdr = two_watts;
    sdr.linearization = 1; /* ln of a negative number: not a number */
    sdr.m = -1;
    expect(&sdr, 100, OK_FLAGS, JOULE_POWER_ABSURD, 0.0);
    sdr.linearization = 7; /* 1/0 */
    sdr.m = 0;
    expect(&sdr, 100, OK_FLAGS, JOULE_POWER_ABSURD, 0.0);
    sdr.linearization = 0x70;
    expect(&sdr, 100, OK_FLAGS, JOULE_POWER_FAILED, 0.0);
}
END_TEST

/* 300 W now, 250 W on average, active. */
static const uint8_t dcmi[] = {0,    0xDC, 0x2C, 1,    10,  0, 0x58,
                               2,    0xFA, 0,    0x60, 0,   0, 0,
                               0x88, 0x13, 0,    0,    0x40};

static void expect_dcmi(bool average, const uint8_t *bytes, size_t size,
                        enum joule_power_status status, double watts)
{
    struct joule_wire_value v = {.watts = 99.0};
    uint8_t *exact = malloc(size ? size : 1);

    memcpy(exact, bytes, size);
    joule_ipmi_dcmi_answer(average, believe, exact, size, &v);
    free(exact);
    ck_assert_int_eq(v.status, status);
    ck_assert(v.watts == watts);
}

START_TEST(dcmi_bad)
{
    uint8_t rs[sizeof(dcmi)];

    for (size_t size = 0; size < sizeof(dcmi); size++)
        expect_dcmi(false, dcmi, size, JOULE_POWER_FAILED, 0.0);
    memcpy(rs, dcmi, sizeof(rs));
    rs[1] = 0xDB;
    expect_dcmi(false, rs, sizeof(rs), JOULE_POWER_FAILED, 0.0);
    rs[0] = 0xD5;
    expect_dcmi(false, rs, 1, JOULE_POWER_REFUSED, 0.0);
}
END_TEST

START_TEST(dcmi_kinds)
{
    uint8_t rs[sizeof(dcmi)];

    memcpy(rs, dcmi, sizeof(rs));
    expect_dcmi(false, rs, sizeof(rs), JOULE_POWER_OK, 300.0);
    expect_dcmi(true, rs, sizeof(rs), JOULE_POWER_OK, 250.0);
    rs[18] = 0;
    expect_dcmi(false, rs, sizeof(rs), JOULE_POWER_NOT_ACTIVE, 0.0);
    rs[18] = 0x40;
    rs[2] = rs[3] = 0xFF;
    expect_dcmi(false, rs, sizeof(rs), JOULE_POWER_SATURATED, 0.0);
    rs[2] = rs[3] = 0;
    expect_dcmi(false, rs, sizeof(rs), JOULE_POWER_ZERO, 0.0);
    expect_dcmi(true, rs, sizeof(rs), JOULE_POWER_OK, 250.0);
}
END_TEST

START_TEST(window)
{
    static const uint8_t rs[] = {0, 0xDC, 1, 5, 2, 4, 0x00, 0x41, 0x1E, 0x81};
    uint8_t attribute = 0x77, exact[sizeof(rs)];

    for (size_t size = 0; size < sizeof(rs); size++) {
        ck_assert_int_eq(joule_ipmi_dcmi_window(rs, size, &attribute), -1);
        ck_assert_int_eq(errno, EBADMSG);
    }
    memcpy(exact, rs, sizeof(rs));
    exact[5] = 1; /* "now" alone */
    ck_assert_int_eq(joule_ipmi_dcmi_window(exact, sizeof(rs), &attribute), -1);
    ck_assert_int_eq(errno, ENOTSUP);
    exact[5] = 0;
    ck_assert_int_eq(joule_ipmi_dcmi_window(exact, sizeof(rs), &attribute), -1);
    exact[0] = 0xC1;
    ck_assert_int_eq(joule_ipmi_dcmi_window(exact, sizeof(rs), &attribute), -1);
    ck_assert_uint_eq(attribute, 0x77);
    ck_assert_int_eq(joule_ipmi_dcmi_window(rs, sizeof(rs), &attribute), 0);
    ck_assert_uint_eq(attribute, 0x1E); /* 30 s */
}
END_TEST

/* The bits alone are ignored: what is no power stays none. */
START_TEST(believed)
{
    uint8_t rs[sizeof(dcmi)];

    memcpy(rs, dcmi, sizeof(rs));
    rs[18] = 0;
    expect_dcmi(false, rs, sizeof(rs), JOULE_POWER_NOT_ACTIVE, 0.0);
    expect(&two_watts, 100, 0x80, JOULE_POWER_NOT_SCANNED, 0.0);
    believe = true;
    expect_dcmi(false, rs, sizeof(rs), JOULE_POWER_OK, 300.0);
    expect_dcmi(true, rs, sizeof(rs), JOULE_POWER_OK, 250.0);
    expect(&two_watts, 100, 0x80, JOULE_POWER_OK, 200.0);
    expect(&two_watts, 100, 0xA0, JOULE_POWER_UNAVAILABLE, 0.0);
    expect(&two_watts, 0, 0x80, JOULE_POWER_ZERO, 0.0);
    expect(&two_watts, 255, 0x80, JOULE_POWER_SATURATED, 0.0);
    rs[2] = rs[3] = 0;
    expect_dcmi(false, rs, sizeof(rs), JOULE_POWER_ZERO, 0.0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ipmi_answer");
    TCase *t = tcase_create("ipmi_answer");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_test(t, sensor_bad);
    tcase_add_test(t, sensor_kinds);
    tcase_add_test(t, dcmi_bad);
    tcase_add_test(t, dcmi_kinds);
    tcase_add_test(t, window);
    tcase_add_test(t, believed);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

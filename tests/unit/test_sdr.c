/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/sdr.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

#ifdef HAVE_FREEIPMI
#include <freeipmi/freeipmi.h>
#endif

/* "Node", sensor 1 of the BMC, 2 W a count: as ipmi_sim's sdrcomp makes it. */
static const uint8_t node[] = {
    0x02, 0x00, 0x51, 0x01, 0x2f, 0x20, 0x00, 0x01, 0x07, 0x01, 0x45,
    0x00, 0x0b, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x06,
    0x00, 0x00, 0x02, 0x00, 0x00, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00,
    0x00, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0xc4, 0x4e, 0x6f, 0x64, 0x65};

static void expect_refused(const uint8_t *record, size_t size, int errnum)
{
    struct joule_sdr sdr, before;
    struct joule_error err = {""};
    uint8_t *exact = malloc(size ? size : 1);

    memset(&sdr, 0x5A, sizeof(sdr));
    before = sdr;
    memcpy(exact, record, size);
    ck_assert_int_eq(joule_sdr_parse(exact, size, &sdr, &err), -1);
    ck_assert_int_eq(errno, errnum);
    ck_assert_str_ne(err.text, "");
    ck_assert_mem_eq(&sdr, &before, sizeof(sdr));
    free(exact);
}

START_TEST(cut_off)
{
    for (size_t size = 0; size < sizeof(node); size++)
        expect_refused(node, size, EBADMSG);
}
END_TEST

START_TEST(contradicts_itself)
{
    uint8_t r[sizeof(node)];

    memcpy(r, node, sizeof(r));
    r[4]--; /* shorter than its name */
    expect_refused(r, sizeof(r), EBADMSG);
    memcpy(r, node, sizeof(r));
    r[47] = 0xC5;
    expect_refused(r, sizeof(r), EBADMSG);
}
END_TEST

START_TEST(other_types)
{
    uint8_t r[sizeof(node)];

    memcpy(r, node, sizeof(r));
    for (unsigned type = 0; type < 256; type++) {
        r[3] = (uint8_t)type;
        if (type != JOULE_SDR_FULL)
            expect_refused(r, sizeof(r), ENOMSG);
    }
}
END_TEST

START_TEST(plain)
{
    struct joule_sdr sdr;
    double watts;

    ck_assert_int_eq(joule_sdr_parse(node, sizeof(node), &sdr, NULL), 0);
    ck_assert_uint_eq(sdr.record_id, 2);
    ck_assert_uint_eq(sdr.owner, 0x20);
    ck_assert_uint_eq(sdr.number, 1);
    ck_assert_str_eq(sdr.name, "Node");
    ck_assert_str_eq(sdr.unit, "W");
    ck_assert(sdr.watts);
    ck_assert(joule_sdr_step(&sdr) == 2.0);
    ck_assert_int_eq(joule_sdr_value(&sdr, 118, &watts), 0);
    ck_assert(watts == 236.0);
    ck_assert_uint_eq(joule_sdr_highest(&sdr), 0xFF);
}
END_TEST

/* Watts per hour, watts times metres and a percentage are no watts. */
START_TEST(units)
{
    static const struct {
        uint8_t units, base;
        bool watts;
        const char *text;
    } rows[] = {
        {0x00, 6, true, "W"},          {0x80, 6, true, "W"},
        {0x00, 1, false, "degrees C"}, {0x00, 7, false, "J"},
        {0x18, 6, false, "unit 6/18"}, {0x02, 6, false, "unit 6/02"},
        {0x01, 6, false, "%"},         {0x00, 200, false, "unit 200/00"},
    };
    uint8_t r[sizeof(node)];

    memcpy(r, node, sizeof(r));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct joule_sdr sdr;

        r[20] = rows[i].units;
        r[21] = rows[i].base;
        ck_assert_int_eq(joule_sdr_parse(r, sizeof(r), &sdr, NULL), 0);
        ck_assert(sdr.watts == rows[i].watts);
        ck_assert_str_eq(sdr.unit, rows[i].text);
    }
}
END_TEST

static void expect_name(uint8_t type_length, const char *bytes,
                        const char *name)
{
    size_t len = type_length & 0x1F;
    uint8_t r[48 + 31];
    struct joule_sdr sdr;

    memcpy(r, node, 47);
    r[4] = (uint8_t)(43 + len);
    r[47] = type_length;
    memcpy(r + 48, bytes, len);
    ck_assert_int_eq(joule_sdr_parse(r, 48 + len, &sdr, NULL), 0);
    ck_assert_str_eq(sdr.name, name);
}

START_TEST(names)
{
    expect_name(0xC0, "", "");
    expect_name(0xC4, "PSU1", "PSU1");
    expect_name(0xC8, "PSU1 \0\0\0", "PSU1");
    expect_name(0xC6, "Pwr   ", "Pwr");
    expect_name(0xC3, "\x1B\xFF\n", "???");
    expect_name(0x04, "Node", "Node");
    expect_name(0x42, "\x12\xBC", "12-.");
    /* "IPMI" in 6-bit ASCII: IPMI 2.0, 43.16. */
    expect_name(0x83, "\x29\xDC\xA6", "IPMI");
    expect_name(0xDF, "0123456789012345678901234567890",
                "0123456789012345678901234567890");
    expect_name(0x5F,
                "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99"
                "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99"
                "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\x00",
                "0011223344556677889900112233445566778899"
                "0011223344556677889900");
}
END_TEST

START_TEST(saturation)
{
    struct joule_sdr sdr = {.format = JOULE_SDR_UNSIGNED, .m = 1};

    ck_assert(joule_sdr_saturated(&sdr, 0xFF));
    ck_assert(!joule_sdr_saturated(&sdr, 0xFE));
    ck_assert(!joule_sdr_saturated(&sdr, 0x7F));
    sdr.format = JOULE_SDR_TWOS;
    ck_assert(joule_sdr_saturated(&sdr, 0x7F));
    ck_assert(joule_sdr_saturated(&sdr, 0x80));
    ck_assert(!joule_sdr_saturated(&sdr, 0xFF)); /* -1 */
    ck_assert_uint_eq(joule_sdr_highest(&sdr), 0x7F);
}
END_TEST

START_TEST(not_convertible)
{
    struct joule_sdr sdr = {.format = JOULE_SDR_NO_ANALOG, .m = 1};
    double value = 7.0;

    ck_assert_int_eq(joule_sdr_value(&sdr, 1, &value), -1);
    ck_assert_int_eq(errno, ENOTSUP);
    sdr.format = JOULE_SDR_UNSIGNED;
    for (unsigned l = 11; l < 128; l++) {
        sdr.linearization = (uint8_t)l;
        ck_assert_int_eq(joule_sdr_value(&sdr, 1, &value), -1);
    }
    ck_assert(value == 7.0);
}
END_TEST

#ifdef HAVE_FREEIPMI
/* Every raw byte, format and linearization over a spread of factors. */
START_TEST(same_as_freeipmi)
{
    static const int factors[] = {-512, -37, -1, 0, 1, 2, 15, 511};
    unsigned compared = 0;

    for (unsigned i = 0; i < 8 * 8 * 256 * 3 * 11; i++) {
        struct joule_sdr sdr = {
            .m = (int16_t)factors[i % 8],
            .b = (int16_t)factors[i / 8 % 8],
            .format = i / (8 * 8 * 256) % 3,
            .linearization = (uint8_t)(i / (8 * 8 * 256 * 3)),
            .r_exp = (int8_t)((int)(i % 7) - 3),
            .b_exp = (int8_t)((int)(i % 5) - 2),
        };
        uint8_t raw = (uint8_t)(i / 64 % 256);
        double ours, theirs;

        ck_assert_int_eq(joule_sdr_value(&sdr, raw, &ours), 0);
        if (ipmi_sensor_decode_value(sdr.r_exp, sdr.b_exp, sdr.m, sdr.b,
                                     sdr.linearization, (uint8_t)sdr.format,
                                     raw, &theirs) < 0)
            continue;
        compared++;
        /* FreeIPMI takes 1/0 for 0. */
        if (isfinite(ours))
            ck_assert_msg(fabs(ours - theirs) <= 1e-12 * fabs(theirs) + 1e-12,
                          "%g, not %g: linearization %u, raw %u", ours, theirs,
                          sdr.linearization, raw);
    }
    ck_assert_uint_gt(compared, 500000);
}
END_TEST
#endif

int main(void)
{
    Suite *s = suite_create("sdr");
    TCase *t = tcase_create("sdr");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_test(t, cut_off);
    tcase_add_test(t, contradicts_itself);
    tcase_add_test(t, other_types);
    tcase_add_test(t, plain);
    tcase_add_test(t, units);
    tcase_add_test(t, names);
    tcase_add_test(t, saturation);
    tcase_add_test(t, not_convertible);
#ifdef HAVE_FREEIPMI
    tcase_add_test(t, same_as_freeipmi);
    /* Half a million conversions. */
    tcase_set_timeout(t, 60);
#endif
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

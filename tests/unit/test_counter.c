/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "common/energy/counter.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define S        INT64_C(1000000000)

static const struct joule_unit unit_14 = {.num = 15625, .shift = 8};
static const struct joule_unit unit_16 = {.num = 15625, .shift = 10};

static struct joule_domain make_domain(struct joule_unit unit, unsigned width)
{
    return (struct joule_domain){
        .kind = JOULE_DOMAIN_PACKAGE,
        .unit = unit,
        .width_bits = (uint8_t)width,
        .in_total = true,
    };
}

static void good(struct joule_counter *c, const struct joule_domain *d,
                 uint64_t raw, int64_t now_ns)
{
    joule_counter_update(c, d, (struct joule_raw){.raw = raw}, now_ns);
}

static void bad(struct joule_counter *c, const struct joule_domain *d,
                int errnum, int64_t now_ns)
{
    joule_counter_update(c, d, (struct joule_raw){.error = errnum}, now_ns);
}

START_TEST(error_first)
{
    struct joule_domain d = make_domain(unit_14, 32);
    struct joule_counter c = {0};

    bad(&c, &d, EIO, S);
    ck_assert_uint_eq(c.state, JOULE_COUNTER_NEW);
    ck_assert_uint_eq(c.errors, 1);
    good(&c, &d, 5000, 2 * S);
    ck_assert_uint_eq(c.ticks, 0);
    ck_assert_uint_eq(c.state, JOULE_COUNTER_STILL);
    ck_assert_int_eq(c.began_ns, 2 * S);
    ck_assert_int_eq(c.read_ns, 2 * S);
    ck_assert_int_eq(c.moved_ns, 2 * S);
    ck_assert_int_eq(c.gap_ns, 0);
    good(&c, &d, 6000, 3 * S);
    ck_assert_int_eq(c.began_ns, 2 * S);
}
END_TEST

START_TEST(error_changes_nothing)
{
    struct joule_domain d = make_domain(unit_14, 32);
    struct joule_counter c = {0}, before;

    good(&c, &d, 1000, S);
    good(&c, &d, 2000, 2 * S);
    before = c;
    before.errors++;
    bad(&c, &d, EIO, 3 * S);
    ck_assert_mem_eq(&c, &before, sizeof(c));
    good(&c, &d, 3500, 4 * S);
    ck_assert_uint_eq(c.ticks, 2500);
    ck_assert_uint_eq(c.wraps, 0);
    ck_assert_uint_eq(c.gaps, 0);
}
END_TEST

START_TEST(errors_saturate)
{
    struct joule_domain d = make_domain(unit_14, 32);
    struct joule_counter c = {.errors = UINT32_MAX - 1};

    bad(&c, &d, EIO, S);
    bad(&c, &d, EIO, 2 * S);
    ck_assert_uint_eq(c.errors, UINT32_MAX);
}
END_TEST

/* Slurm's plugin takes a failed read for 0, and that for a wrap. */
START_TEST(every_seventh_fails)
{
    struct joule_domain d = make_domain(unit_14, 32);
    struct joule_counter c = {0};
    uint64_t truth = 0, before = 0, at_good = 0;

    good(&c, &d, 0xFFFF0000, S);
    for (int i = 1; i <= 10000; i++) {
        truth += 5734000; /* 350 W for a second */
        if (i % 7 == 0) {
            bad(&c, &d, EIO, (i + 1) * S);
        } else {
            good(&c, &d, (0xFFFF0000 + truth) & UINT32_MAX, (i + 1) * S);
            at_good = truth;
        }
        ck_assert_uint_ge(c.ticks, before);
        ck_assert_uint_eq(c.ticks, at_good);
        before = c.ticks;
    }
    ck_assert_uint_eq(c.errors, 1428);
    ck_assert_uint_eq(c.gaps, 0);
    ck_assert_uint_eq(c.wraps, (0xFFFF0000 + truth) >> 32);
}
END_TEST

/* Firmware that sets the counter back looks like a wrap; [0] is the width. */
static const unsigned set_back_widths[] = {32, 64};

START_TEST(set_back_adds_nothing)
{
    unsigned width = set_back_widths[_i];
    struct joule_domain d = make_domain(unit_14, width);
    struct joule_counter c = {0};

    good(&c, &d, 1000000000, S);
    good(&c, &d, 1001000000, 2 * S);
    good(&c, &d, 100, 3 * S);
    ck_assert_uint_eq(c.ticks, 1000000);
    ck_assert_uint_eq(c.gaps, 1);
    ck_assert_int_eq(c.gap_ns, S);
    ck_assert_uint_eq(c.wraps, 0);
    ck_assert_uint_eq(c.state, JOULE_COUNTER_MOVING);
    good(&c, &d, 1000100, 4 * S);
    ck_assert_uint_eq(c.ticks, 2000000);
    ck_assert_uint_eq(c.gaps, 1);
    ck_assert_int_eq(c.gap_ns, S);
}
END_TEST

/* In 64 bits of microjoules these differences come out as nearly nothing. */
START_TEST(set_back_beyond_64_bits)
{
    struct joule_domain d = make_domain((struct joule_unit){1u << 20, 0}, 64);
    struct joule_counter c = {0};

    good(&c, &d, UINT64_C(3) << 44, S);
    good(&c, &d, UINT64_C(2) << 44, 2 * S);
    ck_assert_uint_eq(c.ticks, 0);
    ck_assert_uint_eq(c.gaps, 1);
}
END_TEST

START_TEST(set_back_of_a_still_counter)
{
    struct joule_domain d = make_domain(unit_14, 32);
    struct joule_counter c = {0};

    good(&c, &d, 1000, S);
    good(&c, &d, 0, 2 * S);
    ck_assert_uint_eq(c.state, JOULE_COUNTER_STILL);
    good(&c, &d, 0, 30 * S);
    ck_assert_uint_eq(c.state, JOULE_COUNTER_STILL);
}
END_TEST

/* Two readings a microsecond apart may differ by one whole update step. */
START_TEST(one_step_at_once)
{
    struct joule_domain d = make_domain(unit_14, 32);
    struct joule_counter c = {0};

    good(&c, &d, 0, S);
    good(&c, &d, 16384, S + 1000);
    ck_assert_uint_eq(c.ticks, 16384);
    good(&c, &d, 32768, S + 1000);
    ck_assert_uint_eq(c.ticks, 32768);
    ck_assert_uint_eq(c.gaps, 0);
}
END_TEST

START_TEST(too_far_apart)
{
    struct joule_domain d = make_domain(unit_16, 32);
    struct joule_counter c = {0};
    int64_t wrap_ns = joule_domains_wrap_ns(&d, 1);

    good(&c, &d, 0, S);
    good(&c, &d, 1000, S + wrap_ns);
    ck_assert_uint_eq(c.gaps, 0);
    ck_assert_int_eq(c.gap_ns, 0);
    good(&c, &d, 2000, S + 2 * wrap_ns + 1);
    ck_assert_uint_eq(c.gaps, 1);
    ck_assert_int_eq(c.gap_ns, wrap_ns + 1);
    ck_assert_uint_eq(c.ticks, 2000);
    /* Readings that failed are part of the time. */
    bad(&c, &d, EIO, S + 3 * wrap_ns);
    good(&c, &d, 3000, S + 4 * wrap_ns);
    ck_assert_int_eq(c.gap_ns, 3 * wrap_ns);
}
END_TEST

START_TEST(still)
{
    struct joule_domain d = make_domain(unit_14, 32);
    struct joule_counter c = {0};

    for (int i = 1; i < 1000; i++) {
        good(&c, &d, 0, i * S);
        ck_assert_uint_eq(c.state, JOULE_COUNTER_STILL);
    }
    ck_assert_int_eq(c.moved_ns, S);
    ck_assert_uint_eq(c.ticks, 0);
}
END_TEST

START_TEST(freeze_and_thaw)
{
    struct joule_domain d = make_domain(unit_14, 32);
    struct joule_counter c = {0};

    good(&c, &d, 10, S);
    good(&c, &d, 20, 2 * S);
    ck_assert_uint_eq(c.state, JOULE_COUNTER_MOVING);
    good(&c, &d, 20, 2 * S + JOULE_COUNTER_FROZEN_NS);
    ck_assert_uint_eq(c.state, JOULE_COUNTER_MOVING);
    good(&c, &d, 20, 2 * S + JOULE_COUNTER_FROZEN_NS + 1);
    ck_assert_uint_eq(c.state, JOULE_COUNTER_FROZEN);
    good(&c, &d, 25, 10 * S);
    ck_assert_uint_eq(c.state, JOULE_COUNTER_MOVING);
    ck_assert_uint_eq(c.ticks, 15);
}
END_TEST

static const struct {
    uint64_t now, before;
    unsigned width;
    uint64_t diff;
} diffs[] = {
    {0, 0, 32, 0},
    {5, 3, 32, 2},
    {0, UINT32_MAX, 32, 1},
    {UINT32_MAX, 0, 32, UINT32_MAX},
    {2, UINT32_MAX - 2, 32, 5},
    {0, UINT64_MAX, 64, 1},
    {UINT64_MAX, 0, 64, UINT64_MAX},
    {UINT64_C(1) << 32, UINT32_MAX, 64, 1},
};

START_TEST(diff)
{
    struct joule_domain d = make_domain((struct joule_unit){1, 31}, 32);
    struct joule_counter c = {0};

    d.width_bits = (uint8_t)diffs[_i].width;
    good(&c, &d, diffs[_i].before, S);
    good(&c, &d, diffs[_i].now, 1000000 * S);
    ck_assert_uint_eq(c.ticks, diffs[_i].diff);
}
END_TEST

static const struct {
    struct joule_unit unit;
    uint64_t ticks, uj;
} conversions[] = {
    {{15625, 8}, 0, 0},
    {{15625, 8}, 1, 61},
    {{15625, 8}, 16384, 1000000},
    {{15625, 10}, 65536, 1000000},
    {{15625, 10}, UINT64_C(1) << 32, UINT64_C(65536000000)},
    {{15625, 8}, UINT64_C(1) << 32, UINT64_C(262144000000)},
    {{1000000, 0}, 7, 7000000},
    {{1, 31}, UINT64_C(1) << 31, 1},
    {{1, 31}, (UINT64_C(1) << 31) - 1, 0},
    /* 64 bits of ticks x num are long gone. */
    {{15625, 10}, UINT64_C(1) << 52, UINT64_C(15625) << 42},
    {{15625, 10}, UINT64_C(1) << 59, UINT64_C(15625) << 49},
    {{1, 0}, UINT64_MAX, UINT64_MAX},
    {{UINT32_MAX, 31}, UINT64_C(1) << 62, (UINT64_C(1) << 63) - (1ull << 31)},
};

START_TEST(unit_to_uj)
{
    ck_assert_uint_eq(
        joule_unit_to_uj(conversions[_i].unit, conversions[_i].ticks),
        conversions[_i].uj);
}
END_TEST

static const struct {
    uint64_t uj;
    int64_t ns;
    uint64_t mw;
} powers[] = {
    {0, 1, 0},
    {1, S, 0},
    {499, S, 0},
    {500, S, 1},
    {1000, S, 1},
    {350000000, S, 350000},
    {1, 1, 1000000},
    {UINT64_C(20000000000000), INT64_C(100000) * S, 200000},
    {UINT64_MAX, INT64_MAX, 2000000},
};

START_TEST(power)
{
    ck_assert_uint_eq(joule_power_mw(powers[_i].uj, powers[_i].ns),
                      powers[_i].mw);
}
END_TEST

START_TEST(wrap_time)
{
    struct joule_domain d = make_domain(unit_16, 32);

    ck_assert_int_eq(joule_domains_wrap_ns(&d, 1), INT64_C(65536000000));
    d.unit = unit_14;
    ck_assert_int_eq(joule_domains_wrap_ns(&d, 1), INT64_C(262144000000));
    d.unit = (struct joule_unit){1000000, 0};
    ck_assert_int_eq(joule_domains_wrap_ns(&d, 1), INT64_C(4294967296000000));
    d.unit = (struct joule_unit){UINT32_MAX, 0};
    d.width_bits = 63;
    ck_assert_int_eq(joule_domains_wrap_ns(&d, 1), INT64_MAX);
    d.width_bits = 64;
    ck_assert_int_eq(joule_domains_wrap_ns(&d, 1), INT64_MAX);
}
END_TEST

START_TEST(absurd_edge)
{
    struct joule_domain d = make_domain((struct joule_unit){1, 0}, 32);
    uint64_t most_uj =
        UINT64_C(1002000) * JOULE_DOMAIN_POWER_ABSURD_W; /* 2 ms slack */
    struct joule_counter c = {0};

    d.width_bits = 64;
    good(&c, &d, 0, S);
    good(&c, &d, most_uj, 2 * S);
    ck_assert_uint_eq(c.gaps, 0);
    good(&c, &d, 2 * most_uj + 1, 3 * S);
    ck_assert_uint_eq(c.gaps, 1);
    good(&c, &d, 2 * most_uj, 103 * S);
    ck_assert_uint_eq(c.gaps, 2);
    ck_assert_uint_eq(c.ticks, most_uj);
}
END_TEST

START_TEST(a_thousand_wraps)
{
    struct joule_domain d = make_domain(unit_16, 32);
    struct joule_counter c = {0};
    uint64_t truth = 0, start = UINT32_MAX - 3;
    int64_t now_ns = S;
    int i;

    good(&c, &d, start, now_ns);
    for (i = 0; i < 3000; i++) {
        truth += UINT64_C(1431655765); /* a third of a wrap */
        now_ns += 22 * S;
        good(&c, &d, (start + truth) & UINT32_MAX, now_ns);
        ck_assert_uint_eq(c.ticks, truth);
    }
    ck_assert_uint_eq(c.wraps, (start + truth) >> 32);
    ck_assert_uint_eq(c.gaps, 0);
}
END_TEST

START_TEST(wrap_of_64_bits)
{
    struct joule_domain d = make_domain(unit_16, 64);
    struct joule_counter c = {0};

    good(&c, &d, UINT64_MAX - 99, S);
    good(&c, &d, 900, 2 * S);
    ck_assert_uint_eq(c.ticks, 1000);
    ck_assert_uint_eq(c.wraps, 1);
    good(&c, &d, 900 + UINT64_C(10000000000000), 100000000 * S);
    ck_assert_uint_eq(c.ticks, UINT64_C(10000000001000));
    ck_assert_uint_eq(c.gaps, 0);
}
END_TEST

/* Any start, any pace below one wrap a reading: exact to the tick. */
START_TEST(random_walk)
{
    struct joule_domain d = make_domain(unit_16, _i ? 64 : 32);
    uint64_t mask = _i ? UINT64_MAX : UINT32_MAX;

    srandom(1);
    for (int run = 0; run < 200; run++) {
        struct joule_counter c = {0};
        uint64_t truth = 0;
        uint64_t start = -(uint64_t)(random() % 100000);
        int64_t now_ns = S;

        good(&c, &d, start & mask, now_ns);
        for (int i = 0; i < 200; i++) {
            truth += (uint64_t)random() * 2;
            now_ns += 60 * S;
            good(&c, &d, (start + truth) & mask, now_ns);
            ck_assert_uint_eq(c.ticks, truth);
        }
        ck_assert_uint_eq(c.gaps, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("counter");
    TCase *wrong = tcase_create("bad readings");
    TCase *right = tcase_create("readings");
    SRunner *runner;
    int failed;

    tcase_add_test(wrong, error_first);
    tcase_add_test(wrong, error_changes_nothing);
    tcase_add_test(wrong, errors_saturate);
    tcase_add_test(wrong, every_seventh_fails);
    tcase_add_loop_test(wrong, set_back_adds_nothing, 0,
                        COUNT(set_back_widths));
    tcase_add_test(wrong, set_back_beyond_64_bits);
    tcase_add_test(wrong, set_back_of_a_still_counter);
    tcase_add_test(wrong, one_step_at_once);
    tcase_add_test(wrong, too_far_apart);
    tcase_add_test(wrong, still);
    tcase_add_test(wrong, freeze_and_thaw);
    suite_add_tcase(suite, wrong);

    tcase_add_loop_test(right, diff, 0, COUNT(diffs));
    tcase_add_loop_test(right, unit_to_uj, 0, COUNT(conversions));
    tcase_add_loop_test(right, power, 0, COUNT(powers));
    tcase_add_test(right, wrap_time);
    tcase_add_test(right, absurd_edge);
    tcase_add_test(right, a_thousand_wraps);
    tcase_add_test(right, wrap_of_64_bits);
    tcase_add_loop_test(right, random_walk, 0, 2);
    suite_add_tcase(suite, right);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

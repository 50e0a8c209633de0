/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters that do not move, do not answer, are set back or wrap unseen: what
 * is energy of them, and what is said not to be known.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/energy/node_total.h"
#include "common/sensors/counter_sensor.h"
#include "tests/unit/fake.h"

#define S  JOULE_NS_PER_S
#define MS JOULE_NS_PER_MS
#define J  UINT64_C(1000000)

#define JOULE_TICKS 65536 /* of the fake */

static struct fake fake;
static struct joule_sensor *sensor;
static struct joule_reading out[FAKE_MAX];
static struct joule_node_total total; /* of the domains */
static struct joule_error text;
static enum joule_event event;

static void setup(void)
{
    fake_init(&fake);
    sensor = NULL;
    memset(out, 0xFF, sizeof(out));
}

static void teardown(void)
{
    joule_sensor_destroy(sensor);
}

static void start(void)
{
    sensor = fake_sensor(&fake);
    ck_assert_ptr_nonnull(sensor);
    joule_node_total_start(&total, sensor->domains, sensor->domain_count, 0);
}

static void step(int64_t ns)
{
    fake.now_ns += ns;
    ck_assert_int_eq(joule_sensor_read(sensor, false, out), fake.now_ns);
    joule_node_total_update(&total, sensor->domains, out, fake.now_ns);
}

/* The next sentence, or "". */
static const char *said(void)
{
    text.text[0] = '\0';
    if (!sensor->ops->remark(sensor, &event, &text))
        return "";
    return text.text;
}

static void says(enum joule_event what, const char *words)
{
    const char *sentence = said();

    ck_assert_msg(strstr(sentence, words) != NULL, "\"%s\"", sentence);
    ck_assert_int_eq(event, what);
}

/* slurmd restarts: [ns] later another sensor goes on. */
static void restart(int64_t ns)
{
    struct joule_sensor *before = sensor;

    fake.now_ns += ns;
    sensor = fake_sensor(&fake);
    ck_assert_ptr_nonnull(sensor);
    ck_assert(joule_sensor_resume(sensor, &before->state));
    joule_sensor_destroy(before);
}

/* ---- what is not known ---- */

/* Registers of a guest: 0, or any other constant, for ever. */
START_TEST(never_moves)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, _i ? 0xDEADBEEF : 0);
    start();
    for (int i = 0; i < 100; i++) {
        step(S);
        ck_assert_uint_eq(out[0].state, JOULE_READING_UNKNOWN);
        ck_assert_uint_eq(out[0].uj, 0);
        ck_assert_uint_eq(out[0].mw, JOULE_MW_UNKNOWN);
        ck_assert_uint_eq(total.valid, 0);
        if (i <= 3)
            ck_assert_str_eq(said(), "");
    }
    says(JOULE_EVENT_PROBLEM, "do not move");
    ck_assert_str_eq(said(), "");
    fake.ticks[0] += JOULE_TICKS;
    step(S);
    ck_assert_uint_eq(out[0].state, JOULE_READING_OK);
    ck_assert_uint_eq(out[0].uj, J);
    ck_assert_uint_eq(total.valid, 1);
    says(JOULE_EVENT_INFO, "move now");
    ck_assert_str_eq(said(), "");
}
END_TEST

START_TEST(never_answers)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake.error[0] = EIO;
    start();
    for (int i = 0; i < 10; i++) {
        fake.ticks[0] += 1000;
        step(S);
        ck_assert_uint_eq(out[0].state, JOULE_READING_UNKNOWN);
        ck_assert_int_eq(out[0].began_ns, 0);
        ck_assert_uint_eq(total.valid, 0);
    }
    ck_assert_uint_eq(out[0].errors, 10);
    ck_assert_int_eq(joule_counter_sensor_raw(sensor)[0].error, EIO);
    says(JOULE_EVENT_PROBLEM, "reading energy counter domain-0 on CPU 0");
    says(JOULE_EVENT_PROBLEM, "domain-0 answers on no CPU");
    ck_assert_str_eq(said(), "");
}
END_TEST

START_TEST(one_package_never_moves)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 1, 0);
    start();
    for (int i = 0; i < 10; i++) {
        fake.ticks[0] += 1000;
        step(S);
        ck_assert_uint_eq(total.valid, 0);
    }
    says(JOULE_EVENT_PROBLEM, "do not move");
    fake.ticks[1]++;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_int_eq(total.from_ns, fake.now_ns);
    says(JOULE_EVENT_INFO, "move now");
}
END_TEST

/* Desktop parts: DRAM reads 0 for ever. */
START_TEST(dram_zero_spoils_nothing)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_DRAM, 0, 0);
    start();
    step(S);
    for (int i = 0; i < 10; i++) {
        fake.ticks[0] += JOULE_TICKS;
        step(S);
        ck_assert_uint_eq(out[1].state, JOULE_READING_OK);
        ck_assert_uint_eq(out[1].mw, 0);
        ck_assert_uint_eq(total.valid, 1);
        ck_assert_uint_eq(total.stale, 0);
        ck_assert_uint_eq(total.mw, 1000);
    }
    ck_assert_uint_eq(total.node_uj, 10 * J);
    ck_assert_str_eq(said(), "");
}
END_TEST

START_TEST(dram_alone_makes_nothing)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_DRAM, 0, 0);
    start();
    for (int i = 0; i < 10; i++) {
        fake.ticks[1] += JOULE_TICKS;
        step(S);
        ck_assert_uint_eq(total.valid, 0);
    }
    ck_assert_uint_eq(out[1].uj, 9 * J);
}
END_TEST

START_TEST(cores_do_not_count)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_PP0, 0, 0);
    start();
    step(S);
    fake.ticks[1] += JOULE_TICKS;
    step(S);
    ck_assert_uint_eq(total.valid, 0);
    fake.ticks[0] += JOULE_TICKS;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_uint_eq(total.node_uj, J);
    ck_assert_uint_eq(out[1].uj, J);
}
END_TEST

/* ---- readings that fail ---- */

/* EIO on every 7th reading: energy never falls, never jumps. */
START_TEST(every_seventh_fails)
{
    uint64_t before_uj;

    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, UINT32_MAX - 10);
    fake_add(&fake, JOULE_DOMAIN_DRAM, 0, 5);
    fake.fail_every = 7;
    start();
    step(S);
    before_uj = total.node_uj;
    for (int i = 0; i < 5000; i++) {
        fake.ticks[0] += 20000000; /* 305 W */
        fake.ticks[1] += 2000000;
        step(S);
        ck_assert_uint_ge(total.node_uj, before_uj);
        ck_assert_uint_le(total.node_uj - before_uj, 2 * 335693359 + 4);
        before_uj = total.node_uj;
        /* It would fill the log. */
        if (i == 5)
            says(JOULE_EVENT_PROBLEM, "failed: Input/output error; the energy "
                                      "is counted with its next good reading");
        else
            ck_assert_str_eq(said(), "");
        if (i == 0)
            continue;
        ck_assert_uint_eq(total.valid, 1);
        ck_assert_uint_le(out[0].mw - 305175, 1);
        ck_assert_uint_le(out[1].mw - 30517, 1);
    }
    ck_assert_uint_eq(out[0].uj, fake_uj(fake.good[0]));
    ck_assert_uint_eq(out[1].uj, fake_uj(fake.good[1]));
    ck_assert_uint_eq(total.node_uj, out[0].uj + out[1].uj);
    ck_assert_int_eq(out[0].gap_ns, 0);
    ck_assert_uint_eq(out[0].errors, 5001 / 7);
    ck_assert_uint_gt(sensor->state.counter[0].wraps, 10);
}
END_TEST

/* What it has used since it answered last is not in it yet: that is said. */
START_TEST(time_of_a_reading)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    start();
    step(S);
    ck_assert_int_eq(out[0].mono_ns, fake.now_ns);
    ck_assert_int_eq(out[0].began_ns, fake.now_ns);
    fake.error[0] = EIO;
    fake.ticks[0] += JOULE_TICKS;
    step(S);
    ck_assert_int_eq(out[0].mono_ns, fake.now_ns - S);
    ck_assert_uint_eq(out[0].uj, 0);
    fake.error[0] = 0;
    step(S);
    ck_assert_int_eq(out[0].mono_ns, fake.now_ns);
    ck_assert_int_eq(out[0].began_ns, fake.now_ns - 2 * S);
    ck_assert_uint_eq(out[0].uj, J);
}
END_TEST

START_TEST(set_back)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0x80000000);
    start();
    step(S);
    fake.ticks[0] += JOULE_TICKS;
    step(S);
    fake.start[0] = 0;
    step(S);
    ck_assert_uint_eq(out[0].uj, J);
    ck_assert_int_eq(out[0].gap_ns, S);
    ck_assert_int_eq(total.gap_ns, S);
    ck_assert_uint_eq(total.valid, 1);
    /* Nothing was added: that is no power of 0. */
    ck_assert_uint_eq(out[0].mw, JOULE_MW_UNKNOWN);
    fake.ticks[0] += JOULE_TICKS;
    step(S);
    ck_assert_uint_eq(out[0].uj, 2 * J);
    ck_assert_int_eq(out[0].gap_ns, S);
    ck_assert_uint_eq(out[0].mw, 1000);
}
END_TEST

/* Readings too far apart to know the wraps; those that fail are none. */
START_TEST(gap)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 1, 0);
    fake_add(&fake, JOULE_DOMAIN_PP0, 0, 0);
    start();
    step(S);
    for (int i = 0; i < 3; i++)
        fake.ticks[i]++;
    fake.error[1] = EIO;
    step(60 * S);
    ck_assert_int_eq(out[0].gap_ns, 0);
    ck_assert_int_eq(out[1].gap_ns, 0);
    fake.error[1] = 0;
    fake.ticks[0]++;
    fake.ticks[1]++;
    step(66 * S);
    ck_assert_int_eq(out[0].gap_ns, 66 * S);
    ck_assert_int_eq(out[1].gap_ns, 126 * S);
    ck_assert_int_eq(total.gap_ns, 126 * S);
    ck_assert_uint_eq(out[0].mw, JOULE_MW_UNKNOWN);
    fake.error[0] = fake.error[1] = EIO;
    step(66 * S);
    ck_assert_int_eq(total.gap_ns, 126 * S);
}
END_TEST

START_TEST(stale_when_frozen)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_DRAM, 0, 0);
    start();
    step(S);
    fake.ticks[0]++;
    fake.ticks[1]++;
    step(S);
    fake.ticks[0] += JOULE_TICKS;
    step(4 * S);
    ck_assert_uint_eq(out[0].state, JOULE_READING_OK);
    ck_assert_uint_eq(total.stale, 0);
    step(4 * S);
    ck_assert_uint_eq(out[0].state, JOULE_READING_STALE);
    ck_assert_uint_eq(out[0].mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(out[1].state, JOULE_READING_OK);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_uint_eq(total.stale, 1);
    ck_assert_uint_eq(total.node_uj, fake_uj(JOULE_TICKS + 1) + fake_uj(1));
    says(JOULE_EVENT_PROBLEM, "have stopped");
    ck_assert_str_eq(said(), "");
    fake.ticks[0] += JOULE_TICKS;
    step(S);
    ck_assert_uint_eq(out[0].state, JOULE_READING_OK);
    ck_assert_uint_eq(total.stale, 0);
    says(JOULE_EVENT_INFO, "move again");
    ck_assert_str_eq(said(), "");
}
END_TEST

/* For 3 s energy is as it was; then nobody knows it. */
START_TEST(silent)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    start();
    step(S);
    fake.ticks[0] += JOULE_TICKS;
    step(S);
    fake.error[0] = EIO;
    step(3 * S);
    ck_assert_uint_eq(out[0].state, JOULE_READING_OK);
    says(JOULE_EVENT_PROBLEM, "counted with its next good reading");
    ck_assert_str_eq(said(), "");
    step(1);
    ck_assert_uint_eq(out[0].state, JOULE_READING_UNKNOWN);
    ck_assert_uint_eq(out[0].uj, J);
    ck_assert_uint_eq(out[0].mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(total.valid, 0);
    ck_assert_uint_eq(total.node_uj, J);
    says(JOULE_EVENT_PROBLEM, "answers on no CPU");
    ck_assert_str_eq(said(), "");
    fake.error[0] = 0;
    fake.ticks[0] += JOULE_TICKS;
    step(S);
    ck_assert_uint_eq(out[0].state, JOULE_READING_OK);
    ck_assert_uint_eq(total.node_uj, 2 * J);
    says(JOULE_EVENT_INFO, "answer again");
    ck_assert_str_eq(said(), "");
}
END_TEST

/* A package is lost, or its memory: there is no total any more.  When it is
 * back, what it has used meanwhile is there. */
START_TEST(unknown_without_a_part)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, _i ? JOULE_DOMAIN_DRAM : JOULE_DOMAIN_PACKAGE, 1,
             UINT32_MAX);
    start();
    step(S);
    for (int i = 0; i < 2; i++)
        fake.ticks[i] += JOULE_TICKS;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    fake.error[1] = ENXIO;
    for (int i = 1; i <= 20; i++) {
        fake.ticks[0] += JOULE_TICKS;
        fake.ticks[1] += JOULE_TICKS;
        step(S);
        ck_assert_uint_eq(out[1].state,
                          i <= 3 ? JOULE_READING_OK : JOULE_READING_UNKNOWN);
        ck_assert_uint_eq(total.valid, i <= 3);
    }
    says(JOULE_EVENT_PROBLEM, "domain-1");
    says(JOULE_EVENT_PROBLEM, "domain-1 answers on no CPU");
    fake.error[1] = 0;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_int_eq(total.from_ns, fake.now_ns);
    ck_assert_uint_eq(total.node_uj, 42 * J);
    ck_assert_int_eq(total.gap_ns, 0);
    says(JOULE_EVENT_INFO, "answer again");
    /* Longer than a wrap takes: how much it was is not known. */
    fake.error[1] = ENXIO;
    step(S);
    step(70 * S);
    ck_assert_uint_eq(total.valid, 0);
    fake.error[1] = 0;
    fake.ticks[0]++;
    fake.ticks[1]++;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_int_eq(out[1].gap_ns, 72 * S);
    ck_assert_int_eq(total.gap_ns, 72 * S);
}
END_TEST

/* What is no part of the total does not spoil it: cores, and the DRAM register
 * of a desktop. */
START_TEST(known_without_what_is_no_part)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_DRAM, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_PP0, 0, 0);
    start();
    step(S);
    fake.ticks[2] += JOULE_TICKS;
    step(S);
    fake.error[1] = fake.error[2] = EIO;
    for (int i = 0; i < 10; i++) {
        fake.ticks[0] += JOULE_TICKS;
        step(S);
        ck_assert_uint_eq(total.valid, 1);
    }
    ck_assert_uint_eq(total.node_uj, 10 * J);
    ck_assert_uint_eq(out[1].state, JOULE_READING_OK);
    ck_assert_uint_eq(out[2].state, JOULE_READING_UNKNOWN);
    says(JOULE_EVENT_PROBLEM, "reading energy counter domain-1");
    ck_assert_str_eq(said(), "");
}
END_TEST

/* The time until a part answers first is not in the total, and said to be. */
START_TEST(first_answer_is_late)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 1, 0);
    fake.error[1] = EIO;
    start();
    for (int i = 0; i < 3; i++) {
        fake.ticks[0] += JOULE_TICKS;
        fake.ticks[1] += JOULE_TICKS;
        step(S);
        ck_assert_uint_eq(total.valid, 0);
    }
    if (_i)
        restart(0);
    fake.error[1] = 0;
    step(S);
    ck_assert_int_eq(out[0].gap_ns, 0);
    ck_assert_int_eq(out[1].gap_ns, 3 * S);
    ck_assert_int_eq(total.gap_ns, 3 * S);
    fake.ticks[1] += JOULE_TICKS;
    step(S);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_uint_eq(total.node_uj, 3 * J);
    ck_assert_int_eq(total.gap_ns, 3 * S);
}
END_TEST

/* Two parts at once: it is one time that is missing. */
START_TEST(first_answers_are_late)
{
    for (unsigned i = 0; i < 3; i++)
        fake_add(&fake, JOULE_DOMAIN_PACKAGE, i, 0);
    fake.error[1] = fake.error[2] = EIO;
    start();
    step(S);
    step(60 * S);
    fake.error[1] = 0;
    step(S);
    fake.error[2] = 0;
    step(S);
    ck_assert_int_eq(out[1].gap_ns, 61 * S);
    ck_assert_int_eq(out[2].gap_ns, 62 * S);
    ck_assert_int_eq(total.gap_ns, 62 * S);
}
END_TEST

/* ---- power ---- */

/* A quantum of the counter within a microsecond makes no megawatt: power is the
 * mean over 100 ms or more. */
START_TEST(power_is_a_mean)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    start();
    step(S);
    ck_assert_uint_eq(out[0].mw, JOULE_MW_UNKNOWN);
    fake.ticks[0] += 100 * JOULE_TICKS;
    step(S);
    ck_assert_uint_eq(out[0].mw, 100000);
    fake.ticks[0] += 10000;
    step(1000);
    ck_assert_uint_eq(out[0].mw, 100000);
    fake.ticks[0] += 20 * JOULE_TICKS - 10000;
    step(100 * MS - 1000);
    ck_assert_uint_eq(out[0].mw, 200000);
}
END_TEST

/* ---- the counters' own ---- */

START_TEST(domains)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0)->unit.shift = 8;
    fake_add(&fake, JOULE_DOMAIN_DRAM, 0, 0);
    start();
    ck_assert_ptr_eq(sensor->domains, fake.domain);
    ck_assert_uint_eq(sensor->domain_count, 2);
    ck_assert_int_eq(sensor->wrap_ns, joule_domains_wrap_ns(fake.domain, 2));
    ck_assert_str_eq(sensor->ops->type, "counters");
    ck_assert_str_eq(said(), ""); /* before it is read */
}
END_TEST

START_TEST(raw)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 7);
    start();
    step(S);
    fake.ticks[0] += 5;
    step(S);
    ck_assert_uint_eq(joule_counter_sensor_raw(sensor)[0].raw, 12);
    ck_assert_int_eq(joule_counter_sensor_raw(sensor)[0].error, 0);
}
END_TEST

/* What the counters say gets through, alone or with the rest. */
START_TEST(remarks)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    start();
    joule_error_set(&fake.counters.remark, 0, "CPU 3 now");
    says(JOULE_EVENT_INFO, "CPU 3 now");
    ck_assert_str_eq(said(), "");
    fake.error[0] = EIO;
    step(S);
    joule_error_set(&fake.counters.remark, 0, "CPU 4 now");
    ck_assert_int_eq(joule_counter_sensor_moved(sensor, &text), 1);
    ck_assert_str_eq(text.text, "CPU 4 now");
    ck_assert_int_eq(joule_counter_sensor_moved(sensor, &text), 0);
    says(JOULE_EVENT_PROBLEM, "domain-0");
}
END_TEST

/* The first reading takes 20 ms, the second none. */
static int64_t slow_once_ns(void *arg)
{
    struct fake *f = arg;

    if (f->reads == 1)
        f->now_ns += 20 * MS;
    return f->now_ns;
}

static int64_t always_slow_ns(void *arg)
{
    ((struct fake *)arg)->now_ns += 20 * MS;
    return ((struct fake *)arg)->now_ns;
}

START_TEST(late_clock_reads_again)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    start();
    fake.clock.mono_ns = slow_once_ns;
    fake.reads = 0;
    step(S);
    ck_assert_int_eq(out[0].mono_ns, fake.now_ns);
    ck_assert_uint_ge(fake.reads, 2);
    fake.reads = 10;
    step(S);
    ck_assert_uint_eq(fake.reads, 11);
    fake.clock.mono_ns = always_slow_ns;
    fake.reads = 10;
    step(S);
    ck_assert_uint_eq(fake.reads, 14);
}
END_TEST

/* ---- another process ---- */

START_TEST(resumed)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0xFFFF0000);
    start();
    step(S);
    fake.ticks[0] += 100 * JOULE_TICKS;
    step(S);
    fake.ticks[0] += 2000 * JOULE_TICKS; /* meanwhile */
    restart(20 * S);
    step(0);
    ck_assert_uint_eq(out[0].uj, 2100 * J);
    ck_assert_uint_eq(out[0].state, JOULE_READING_OK);
    ck_assert_uint_eq(out[0].mw, 100000);
    ck_assert_int_eq(out[0].gap_ns, 0);
    ck_assert_int_eq(out[0].began_ns, 1001 * S);
    ck_assert_uint_eq(total.node_uj, 2100 * J);
    /* So long that it may have wrapped. */
    fake.ticks[0] += 1000 * JOULE_TICKS;
    restart(66 * S);
    step(0);
    ck_assert_uint_eq(out[0].uj, 3100 * J);
    ck_assert_int_eq(out[0].gap_ns, 66 * S);
    ck_assert_uint_eq(out[0].mw, JOULE_MW_UNKNOWN);
    ck_assert_int_eq(total.gap_ns, 66 * S);
}
END_TEST

/* A step goes on from each sample of slurmd: its power is that of what it has
 * read itself. */
START_TEST(resumed_again_and_again)
{
    struct joule_sensor *slurmd;
    struct joule_reading theirs;

    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    start();
    slurmd = sensor;
    step(S);
    fake.ticks[0]++;
    step(S);
    sensor = fake_sensor(&fake);
    for (int i = 0; i < 100; i++) {
        if (i % 10 == 0) {
            joule_sensor_read(slurmd, false, &theirs);
            ck_assert(joule_sensor_resume(sensor, &slurmd->state));
        }
        fake.ticks[0] += 10 * JOULE_TICKS;
        step(100 * MS);
        ck_assert_uint_eq(out[0].uj, (uint64_t)(i + 1) * 10 * J + 15);
        ck_assert_uint_eq(out[0].mw, 100000);
        ck_assert_int_eq(out[0].began_ns, 1001 * S);
    }
    joule_sensor_destroy(slurmd);
}
END_TEST

/* A state that is of others or makes no sense: nothing has changed. */
START_TEST(state_of_others)
{
    static struct joule_sensor_state state, bad;
    uint64_t uj;

    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&fake, JOULE_DOMAIN_DRAM, 0, 0);
    start();
    step(S);
    fake.ticks[0] += JOULE_TICKS;
    step(S);
    state = sensor->state;
    ck_assert_uint_eq(state.domain_key, joule_domains_key(fake.domain, 2));
    ck_assert_uint_eq(state.counters, 2);
    ck_assert_uint_eq(state.integrators, 0);
    ck_assert_uint_eq(state.is_fused, 0);
    fake.ticks[0] += JOULE_TICKS;
    step(S);
    uj = out[0].uj;
#define REFUSED(field, value)                                                  \
    do {                                                                       \
        bad = state;                                                           \
        bad.field = (value);                                                   \
        ck_assert(!joule_sensor_resume(sensor, &bad));                         \
        step(1);                                                               \
        ck_assert_uint_eq(out[0].uj, uj);                                      \
    } while (0)
    REFUSED(domain_key, state.domain_key + 1);
    REFUSED(counters, 1);
    REFUSED(counters, 3);
    REFUSED(integrators, 1);
    REFUSED(is_fused, 1);
    REFUSED(counter[1].state, JOULE_COUNTER_FROZEN + 1);
    REFUSED(counter[1].read_ns, -1);
    REFUSED(counter[1].read_ns, fake.now_ns + S);
    REFUSED(counter[1].moved_ns, fake.now_ns + S);
    REFUSED(counter[1].began_ns, -1);
    REFUSED(counter[1].began_ns, fake.now_ns + S);
    REFUSED(counter[1].moved_ns, INT64_MIN);
    REFUSED(counter[1].gap_ns, -1);
    REFUSED(counter[1].gap_ns, INT64_MAX);
#undef REFUSED
    ck_assert(joule_sensor_resume(sensor, &state));
    step(1);
    ck_assert_uint_eq(out[0].uj, uj);
}
END_TEST

/* Of a node whose counters do not move, that is said again soon, and once. */
START_TEST(problems_after_a_restart)
{
    fake_add(&fake, JOULE_DOMAIN_PACKAGE, 0, 0);
    start();
    step(S);
    fake.ticks[0]++;
    step(S);
    step(4 * S);
    says(JOULE_EVENT_PROBLEM, "have stopped");
    restart(S);
    step(S);
    says(JOULE_EVENT_PROBLEM, "have stopped");
    ck_assert_str_eq(said(), "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("counter sensor");
    TCase *bad = tcase_create("bad counters");
    TCase *good = tcase_create("counters");
    TCase *again = tcase_create("another process");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(bad, setup, teardown);
    tcase_add_loop_test(bad, never_moves, 0, 2);
    tcase_add_test(bad, never_answers);
    tcase_add_test(bad, one_package_never_moves);
    tcase_add_test(bad, dram_zero_spoils_nothing);
    tcase_add_test(bad, dram_alone_makes_nothing);
    tcase_add_test(bad, cores_do_not_count);
    tcase_add_test(bad, every_seventh_fails);
    tcase_add_test(bad, time_of_a_reading);
    tcase_add_test(bad, set_back);
    tcase_add_test(bad, gap);
    tcase_add_test(bad, stale_when_frozen);
    tcase_add_test(bad, silent);
    tcase_add_loop_test(bad, unknown_without_a_part, 0, 2);
    tcase_add_test(bad, known_without_what_is_no_part);
    tcase_add_loop_test(bad, first_answer_is_late, 0, 2);
    tcase_add_test(bad, first_answers_are_late);
    suite_add_tcase(suite, bad);

    tcase_add_checked_fixture(good, setup, teardown);
    tcase_add_test(good, power_is_a_mean);
    tcase_add_test(good, domains);
    tcase_add_test(good, raw);
    tcase_add_test(good, remarks);
    tcase_add_test(good, late_clock_reads_again);
    suite_add_tcase(suite, good);

    tcase_add_checked_fixture(again, setup, teardown);
    tcase_add_test(again, resumed);
    tcase_add_test(again, resumed_again_and_again);
    tcase_add_test(again, state_of_others);
    tcase_add_test(again, problems_after_a_restart);
    suite_add_tcase(suite, again);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

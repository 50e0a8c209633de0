/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sensor that is made of counters and a BMC: nobody who reads it waits for
 * the BMC, and nothing of what that says is lost.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/daemon/sampler.h"
#include "common/energy/integrator.h"
#include "common/energy/node_total.h"
#include "common/sensors/fused_sensor.h"
#include "common/step/node_energy.h"
#include "tests/unit/fake.h"
#include "tests/unit/fake_power.h"
#include "tests/unit/tree.h"

#define S  JOULE_NS_PER_S
#define MS JOULE_NS_PER_MS

static struct fake counters;
static struct fake_power bmc;
static struct joule_sensor *sensor;
static struct joule_reading out[JOULE_DOMAINS_MAX];
static struct joule_node_total total; /* of the domains */
static struct joule_error err;
static enum joule_event event;
static int counters_destroyed, meters_destroyed;

#define NODE JOULE_FUSED_SENSOR_NODE
#define BMC  JOULE_FUSED_SENSOR_BMC
#define MEM  JOULE_FUSED_SENSOR_LABELS
/* Behind the label. */
#define COUNTERS (JOULE_FUSED_SENSOR_LABELS + 1)

static void count_counters(struct joule_counters *c)
{
    (void)c;
    counters_destroyed++;
}

static void count_meters(struct joule_meter *m)
{
    (void)m;
    meters_destroyed++;
}

static const struct joule_fused_sensor_options options = {
    .clock = &counters.clock,
    .counters = &counters.counters,
    .meter = &bmc.meter,
    .period_ns = 2 * MS,
    .gap_ns = 3 * S,
};

static struct joule_sensor *create(const struct joule_fused_sensor_options *opt)
{
    struct joule_sensor *made = joule_fused_sensor_create(opt, &err);

    ck_assert_msg(made != NULL, "%s", err.text);
    return made;
}

static void start(const struct joule_fused_sensor_options *opt)
{
    joule_sensor_destroy(sensor);
    bmc.is_interrupted = false;
    sensor = create(opt);
    joule_node_total_start(&total, sensor->domains, sensor->domain_count, 0);
}

static void setup(void)
{
    static struct joule_counters_ops counters_ops;
    static struct joule_meter_ops meter_ops;

    fake_init(&counters);
    fake_add(&counters, JOULE_DOMAIN_PACKAGE, 0, 0);
    fake_add(&counters, JOULE_DOMAIN_DRAM, 0, 4000000000);
    fake_power_init(&bmc);
    bmc.watts[0] = 250;
    fake_power_add(&bmc, "Mem", 40);
    counters_ops = fake_ops;
    counters_ops.destroy = count_counters;
    counters.counters.ops = &counters_ops;
    meter_ops = fake_power_ops;
    meter_ops.destroy = count_meters;
    bmc.meter.ops = &meter_ops;
    start(&options);
}

static void teardown(void)
{
    joule_sensor_destroy(sensor);
    sensor = NULL;
}

static int64_t real_ns(void)
{
    return joule_clock_mono_ns(&joule_clock_system);
}

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * MS}, NULL);
}

/* 100 W and 20 W. */
static void pass(int64_t ns)
{
    counters.ticks[0] += (uint64_t)(100 * ns / 1000 * 1024 / 15625);
    counters.ticks[1] += (uint64_t)(20 * ns / 1000 * 1024 / 15625);
    counters.now_ns += ns;
    bmc.now_ns += ns;
}

static void ask(void)
{
    ck_assert_int_eq(joule_sensor_read(sensor, false, out), counters.now_ns);
    joule_node_total_update(&total, sensor->domains, out, counters.now_ns);
}

/* Until the BMC's thread has read that often from here on. */
static void wait_for_reads(unsigned more)
{
    unsigned until = bmc.reads + more;

    for (int i = 0; i < 5000 && bmc.reads < until; i++)
        sleep_ms(1);
    ck_assert_uint_ge(bmc.reads, until);
}

/* The BMC is asked now, and what it says is taken. */
static void ask_bmc(void)
{
    wait_for_reads(2);
    ask();
}

/* The node is known, and the BMC's thread goes on. */
static void begin(void)
{
    ask();
    for (int i = 0; i < 3; i++) {
        pass(10 * MS);
        ask_bmc();
    }
    ck_assert_uint_eq(total.valid, 1);
}

/* The next sentence, or "". */
static const char *said(void)
{
    static struct joule_error text;

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

/* What a domain has used since then. */
static double since_j(size_t i, const struct joule_reading *then)
{
    return ((double)out[i].uj - (double)then[i].uj) / 1e6;
}

START_TEST(domains)
{
    static const char *const names[] = {"Node", "BMC", "Mem", "domain-0",
                                        "domain-1"};

    ck_assert_str_eq(sensor->ops->type, "fused");
    ck_assert_uint_eq(sensor->domain_count, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(sensor->domains[i].name, names[i]);
        ck_assert(sensor->domains[i].in_total == (i == 0));
        ck_assert(sensor->domains[i].kind ==
                  (i < COUNTERS ? JOULE_DOMAIN_POWER
                                : counters.domain[i - COUNTERS].kind));
    }
    ck_assert_int_eq(sensor->wrap_ns,
                     joule_domains_wrap_ns(counters.domain, 2));
}
END_TEST

/* Two columns of a profile would have one name. */
START_TEST(labels_that_cannot_be)
{
    static const char *const names[] = {"BMC", "Node", "domain_0"};

    for (int i = 0; i < 3; i++) {
        counters_destroyed = meters_destroyed = 0;
        strcpy(bmc.domain[1].name, names[i]);
        errno = 0;
        ck_assert_ptr_null(joule_fused_sensor_create(&options, &err));
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_ptr_nonnull(strstr(err.text, names[i]));
        ck_assert_int_eq(counters_destroyed, 1);
        ck_assert_int_eq(meters_destroyed, 1);
    }
    strcpy(bmc.domain[1].name, "Mem");
}
END_TEST

/* One of the meter's is the node, which has two domains here. */
START_TEST(too_many_domains)
{
    static struct joule_domain many[JOULE_DOMAINS_MAX];
    struct joule_fused_sensor_options opt = options;
    struct joule_sensor *other;

    for (size_t i = 0; i < JOULE_DOMAINS_MAX; i++) {
        many[i] = counters.domain[0];
        snprintf(many[i].name, sizeof(many[i].name), "core-%zu", i);
    }
    counters.counters.domains = many;
    counters.counters.domain_count = JOULE_DOMAINS_MAX - 2;
    counters_destroyed = meters_destroyed = 0;
    ck_assert_ptr_null(joule_fused_sensor_create(&opt, &err));
    ck_assert_int_eq(errno, E2BIG);
    ck_assert_ptr_nonnull(strstr(err.text, "128"));
    ck_assert_int_eq(counters_destroyed, 1);
    ck_assert_int_eq(meters_destroyed, 1);
    counters.counters.domain_count = JOULE_DOMAINS_MAX - 3;
    other = create(&opt);
    ck_assert_uint_eq(other->domain_count, JOULE_DOMAINS_MAX);
    joule_sensor_destroy(other);
    counters.counters.domains = counters.domain;
    counters.counters.domain_count = 2;
}
END_TEST

/* Until the BMC has answered, or has had its time to. */
START_TEST(before_the_bmc)
{
    bmc.error = EAGAIN;
    for (int i = 0; i < 12; i++) {
        ask();
        ck_assert_uint_eq(total.valid, i >= 10);
        ck_assert_uint_eq(out[BMC].state, JOULE_READING_UNKNOWN);
        ck_assert_uint_eq(out[MEM].state, JOULE_READING_UNKNOWN);
        pass(S);
    }
    ask();
    /* That is the sockets' then. */
    ck_assert_uint_eq(out[NODE].mw, 120000);
    ck_assert_str_eq(said(), "");
}
END_TEST

START_TEST(readings)
{
    struct joule_reading then[JOULE_DOMAINS_MAX];

    begin();
    memcpy(then, out, sizeof(then));
    for (int i = 0; i < 100; i++) {
        pass(100 * MS);
        if (i % 10 == 0)
            wait_for_reads(2);
        ask();
        for (size_t k = 0; k < sensor->domain_count; k++) {
            ck_assert_int_eq(out[k].mono_ns, counters.now_ns);
            ck_assert_uint_eq(out[k].state, JOULE_READING_OK);
            ck_assert_uint_eq(out[k].errors, 0);
        }
    }
    ck_assert_double_eq_tol(since_j(NODE, then), 2500, 0.1);
    ck_assert_double_eq_tol(since_j(BMC, then), 2500, 0.1);
    ck_assert_double_eq_tol(since_j(MEM, then), 400, 0.1);
    ck_assert_double_eq_tol(since_j(COUNTERS, then), 1000, 0.1);
    ck_assert_double_eq_tol(since_j(COUNTERS + 1, then), 200, 0.1);
    ck_assert_double_eq_tol((double)out[NODE].mw, 250e3, 100);
    ck_assert_uint_eq(out[BMC].mw, 250000);
    ck_assert_uint_eq(out[MEM].mw, 40000);
    ck_assert_double_eq_tol((double)out[COUNTERS].mw, 100e3, 100);
    ck_assert_double_eq_tol((double)out[COUNTERS + 1].mw, 20e3, 100);
    ck_assert_int_eq(total.gap_ns, 0);
    ck_assert_uint_eq(total.node_uj, out[NODE].uj);
    ck_assert_str_eq(said(), "");
}
END_TEST

/* What the counters' own sensor says of them. */
START_TEST(counters_pass_through)
{
    struct joule_sensor *own = fake_sensor(&counters);
    struct joule_reading theirs[2];

    ask();
    joule_sensor_read(own, false, theirs);
    for (int i = 0; i < 50; i++) {
        counters.error[i % 2] = i % 7 == 3 ? EIO : 0;
        if (i == 30)
            counters.start[0] = 0x40000000; /* set back or forth */
        pass(i == 40 ? 70 * S : 300 * MS);
        ask();
        joule_sensor_read(own, false, theirs);
        ck_assert_mem_eq(&out[COUNTERS], theirs, sizeof(theirs));
        counters.error[0] = counters.error[1] = 0;
    }
    ck_assert_int_gt(out[COUNTERS].gap_ns, 70 * S);
    ck_assert_uint_gt(out[COUNTERS].errors, 0);
    joule_sensor_destroy(own);
}
END_TEST

/* A label's power holds until the next reading. */
START_TEST(labels_are_held)
{
    struct joule_reading then[JOULE_DOMAINS_MAX];
    uint64_t before_uj;

    begin();
    memcpy(then, out, sizeof(then));
    bmc.hangs = true;
    for (int i = 0; i < 5000 && bmc.waits == 0; i++)
        sleep_ms(1);
    pass(2 * S);
    ask();
    ck_assert_double_eq_tol(since_j(MEM, then), 80, 1);
    bmc.watts[1] = 60;
    bmc.late_ns = S; /* that is the reading of a second ago */
    bmc.hangs = false;
    before_uj = out[MEM].uj;
    ask_bmc();
    ck_assert_double_eq_tol(since_j(MEM, then), 40 + 60, 1);
    ck_assert_uint_eq(out[MEM].mw, 60000);
    /* What was too much is not taken off, but held until it is used. */
    bmc.watts[1] = 10;
    pass(2 * S);
    ask();
    before_uj = out[MEM].uj;
    ck_assert_double_eq_tol(since_j(MEM, then), 100 + 120, 1);
    ask_bmc();
    ck_assert_uint_eq(out[MEM].mw, 10000);
    ck_assert_uint_eq(out[MEM].uj, before_uj);
    pass(10 * S);
    ask_bmc();
    ck_assert_double_eq_tol(since_j(MEM, then), 100 + 60 + 110, 1);
}
END_TEST

/* A quantum of the counter within a microsecond makes no megawatt. */
START_TEST(power_is_a_mean)
{
    uint64_t before_uj;

    begin();
    pass(100 * MS);
    ask();
    before_uj = out[COUNTERS].uj;
    counters.ticks[0] += 10000;
    counters.now_ns += 1000;
    ask();
    ck_assert_double_eq_tol((double)out[NODE].mw, 250e3, 1e3);
    ck_assert_uint_gt(out[COUNTERS].uj - before_uj, 100000);
    ck_assert_double_eq_tol((double)out[COUNTERS].mw, 100e3, 1e3);
}
END_TEST

static void hang(void)
{
    bmc.hangs = true;
    for (int i = 0; i < 5000 && bmc.waits == 0; i++)
        sleep_ms(1);
    ck_assert_uint_gt(bmc.waits, 0);
}

START_TEST(the_bmc_hangs)
{
    int64_t begin_ns;

    begin();
    hang();
    begin_ns = real_ns();
    for (int i = 0; i < 100; i++) {
        pass(100 * MS);
        ask();
    }
    ck_assert_int_lt(real_ns() - begin_ns, S);
    /* 10 s without it */
    ck_assert_uint_eq(out[BMC].state, JOULE_READING_STALE);
    ck_assert_uint_eq(out[MEM].state, JOULE_READING_STALE);
    ck_assert_uint_eq(out[NODE].state, JOULE_READING_OK);
    ck_assert_uint_eq(total.valid, 1);
    counters_destroyed = meters_destroyed = 0;
    begin_ns = real_ns();
    joule_sensor_destroy(sensor);
    ck_assert_int_lt(real_ns() - begin_ns, S);
    ck_assert_int_eq(counters_destroyed, 1);
    ck_assert_int_eq(meters_destroyed, 1);
    sensor = NULL;
}
END_TEST

/* It has not answered for gap_ns: what it says is no longer measured.  The
 * time without it is a gap, in which its last power holds. */
START_TEST(the_bmc_is_overdue)
{
    struct joule_reading then[JOULE_DOMAINS_MAX];

    begin();
    ask_bmc(); /* what it says now */
    bmc.error = EAGAIN;
    wait_for_reads(2);
    memcpy(then, out, sizeof(then));
    pass(3 * S);
    ask();
    ck_assert_uint_eq(out[BMC].state, JOULE_READING_OK);
    ck_assert_uint_eq(out[MEM].state, JOULE_READING_OK);
    ck_assert_uint_eq(out[BMC].mw, 250000);
    pass(20 * MS);
    ask();
    ck_assert_uint_eq(out[BMC].state, JOULE_READING_STALE);
    ck_assert_uint_eq(out[MEM].state, JOULE_READING_STALE);
    ck_assert_uint_eq(out[BMC].mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(out[MEM].mw, JOULE_MW_UNKNOWN);
    ck_assert_int_ge(out[BMC].gap_ns, 3 * S);
    for (int i = 0; i < 7; i++) {
        pass(S);
        ask();
    }
    bmc.error = 0;
    ask_bmc();
    for (size_t i = BMC; i <= MEM; i++) {
        ck_assert_uint_eq(out[i].state, JOULE_READING_OK);
        ck_assert_int_ge(out[i].gap_ns, 10 * S);
        ck_assert_int_le(out[i].gap_ns, 11 * S);
    }
    ck_assert_double_eq_tol(since_j(BMC, then), 250 * 10.02, 10);
    ck_assert_double_eq_tol(since_j(MEM, then), 40 * 10.02, 2);
    /* And from here on it is what it reads. */
    memcpy(then, out, sizeof(then));
    pass(S);
    ask_bmc();
    ck_assert_double_eq_tol(since_j(BMC, then), 250, 1);
    ck_assert_double_eq_tol(since_j(MEM, then), 40, 1);
}
END_TEST

/* The sentence comes once, and once that it is over. */
START_TEST(the_bmc_fails)
{
    begin();
    bmc.text = "the BMC has no time";
    bmc.error = EBUSY;
    wait_for_reads(3);
    pass(S);
    ask();
    says(JOULE_EVENT_PROBLEM, "the BMC has no time; the counters carry on");
    ck_assert_str_eq(said(), "");
    wait_for_reads(3);
    pass(S);
    ask();
    ck_assert_str_eq(said(), "");
    bmc.error = EAGAIN;
    bmc.text = NULL;
    wait_for_reads(3);
    pass(5 * S);
    ask();
    ck_assert_str_eq(said(), "");
    ck_assert_uint_eq(out[BMC].state, JOULE_READING_STALE);
    bmc.error = 0;
    pass(MS);
    ask_bmc();
    ck_assert_uint_eq(out[BMC].state, JOULE_READING_OK);
    says(JOULE_EVENT_INFO, "answers again");
    ck_assert_str_eq(said(), "");
}
END_TEST

/* It answers, but says that it does not know. */
START_TEST(label_not_measured)
{
    struct joule_reading then[JOULE_DOMAINS_MAX];

    begin();
    bmc.status[1] = JOULE_POWER_UNAVAILABLE;
    wait_for_reads(2);
    memcpy(then, out, sizeof(then));
    for (int i = 0; i < 5; i++) {
        pass(S);
        ask_bmc();
    }
    says(JOULE_EVENT_PROBLEM, "Mem");
    ck_assert_uint_eq(out[MEM].state, JOULE_READING_STALE);
    ck_assert_uint_eq(out[MEM].mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_gt(out[MEM].errors, 0);
    ck_assert_uint_eq(out[BMC].state, JOULE_READING_OK);
    ck_assert_uint_eq(out[BMC].errors, 0);
    ck_assert_uint_eq(out[NODE].state, JOULE_READING_OK);
    ck_assert_double_eq_tol(since_j(NODE, then), 1250, 1);
    ck_assert_int_eq(total.gap_ns, 0);
}
END_TEST

START_TEST(a_counter_fails)
{
    struct joule_reading then[JOULE_DOMAINS_MAX];

    begin();
    memcpy(then, out, sizeof(then));
    counters.error[0] = EIO;
    for (int i = 0; i < 10; i++) {
        pass(S);
        ask_bmc();
    }
    ck_assert_uint_eq(out[NODE].state, JOULE_READING_OK);
    ck_assert_uint_eq(out[COUNTERS].state, JOULE_READING_UNKNOWN);
    ck_assert_double_eq_tol(since_j(NODE, then), 2500, 1);
    says(JOULE_EVENT_INFO, "domain-0 on CPU 0 failed: Input/output error; the "
                           "power of the BMC stands in");
    ck_assert_str_eq(said(), "");
    counters.error[0] = 0;
    for (int i = 0; i < 5; i++) {
        pass(S);
        ask_bmc();
    }
    ck_assert_uint_eq(out[COUNTERS].state, JOULE_READING_OK);
    ck_assert_double_eq_tol(since_j(COUNTERS, then), 1500, 1);
    ck_assert_double_eq_tol(since_j(NODE, then), 15 * 250, 1);
}
END_TEST

/* Nothing answers: energy is carried on for 300 s and corrected. */
START_TEST(nothing_answers)
{
    uint64_t before_uj;

    begin();
    bmc.error = EAGAIN;
    counters.error[0] = EIO;
    wait_for_reads(2);
    before_uj = out[NODE].uj;
    for (int i = 0; i < 400; i++) {
        pass(S);
        ask();
        ck_assert_uint_ge(out[NODE].uj, before_uj);
        before_uj = out[NODE].uj;
    }
    ck_assert_uint_eq(out[NODE].state, JOULE_READING_STALE);
    ck_assert_uint_eq(total.valid, 1);
    ck_assert_uint_eq(total.stale, 1);
    ck_assert_int_ge(total.gap_ns, 396 * S);
    ck_assert_double_eq_tol((double)out[NODE].uj / 1e6, 250 * 300.0, 250 * 4);
}
END_TEST

START_TEST(counters_missing)
{
    struct joule_fused_sensor_options opt = options;
    struct joule_reading then[JOULE_DOMAINS_MAX];

    opt.counters = NULL;
    opt.missing = "there is no MSR device";
    start(&opt);
    ck_assert_uint_eq(sensor->domain_count, COUNTERS);
    ck_assert_int_eq(sensor->wrap_ns, INT64_MAX);
    says(JOULE_EVENT_PROBLEM, "of its BMC alone: there is no MSR device");
    ck_assert_str_eq(said(), "");
    begin();
    memcpy(then, out, sizeof(then));
    for (int i = 0; i < 10; i++) {
        pass(S);
        ask_bmc();
    }
    ck_assert_double_eq_tol(since_j(NODE, then), 2500, 0.1);
    ck_assert_uint_eq(out[NODE].mw, 250000);
    ck_assert_uint_eq(out[NODE].state, JOULE_READING_OK);
    ck_assert_int_eq(total.gap_ns, 0);
    /* No counters carry on when it fails. */
    bmc.text = "the BMC has no time";
    bmc.error = EBUSY;
    wait_for_reads(3);
    ask();
    says(JOULE_EVENT_PROBLEM, "the BMC has no time; energy goes on with the "
                              "last power");
    pass(4 * S);
    ask();
    ck_assert_uint_eq(out[NODE].state, JOULE_READING_STALE);
    bmc.error = 0;
    ask_bmc();
    says(JOULE_EVENT_INFO, "answers again after");
    ck_assert_uint_eq(out[NODE].state, JOULE_READING_OK);
    ck_assert_int_ge(total.gap_ns, 4 * S);
    ck_assert_int_lt(total.gap_ns, 5 * S);
}
END_TEST

/* What counters and meter have to say gets through, in its order. */
START_TEST(remarks)
{
    begin();
    bmc.remark = "reads sensor 7";
    wait_for_reads(2);
    joule_error_set(&counters.counters.remark, 0, "CPU 3 now");
    ask();
    says(JOULE_EVENT_INFO, "CPU 3 now");
    says(JOULE_EVENT_INFO, "reads sensor 7");
    ck_assert_str_eq(said(), "");
}
END_TEST

/* slurmd forks: the child has no thread, and gives back the memory. */
START_TEST(fork_without_thread)
{
    int status;
    pid_t pid;

    begin();
    pid = fork();
    if (pid == 0) {
        alarm(20);
        joule_sensor_destroy(sensor);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    pass(S);
    ask_bmc();
    ck_assert_uint_eq(total.valid, 1);
}
END_TEST

/* ---- another process ---- */

/* slurmd restarts: [ns] later another sensor goes on. */
static void restart(int64_t ns)
{
    static struct joule_sensor_state kept;

    kept = sensor->state;
    joule_sensor_destroy(sensor);
    bmc.is_interrupted = false;
    pass(ns);
    sensor = create(&options);
    ck_assert(joule_sensor_resume(sensor, &kept));
}

START_TEST(resumed)
{
    struct joule_reading then[JOULE_DOMAINS_MAX];

    begin();
    pass(10 * S);
    ask_bmc();
    memcpy(then, out, sizeof(then));
    restart(20 * S);
    ask();
    ck_assert_double_eq_tol(since_j(NODE, then), 20 * 250, 1);
    ck_assert_double_eq_tol(since_j(BMC, then), 20 * 250, 1);
    ck_assert_double_eq_tol(since_j(MEM, then), 20 * 40, 1);
    ck_assert_double_eq_tol(since_j(COUNTERS, then), 20 * 100, 1);
    ck_assert_double_eq_tol(since_j(COUNTERS + 1, then), 20 * 20, 1);
    pass(S);
    ask_bmc();
    ck_assert_double_eq_tol(since_j(NODE, then), 21 * 250, 1);
    ck_assert_double_eq_tol(since_j(BMC, then), 21 * 250, 1);
    ck_assert_double_eq_tol(since_j(MEM, then), 21 * 40, 1);
    ck_assert_double_eq_tol((double)out[NODE].mw, 250e3, 1e3);
    for (size_t i = 0; i < sensor->domain_count; i++) {
        ck_assert_uint_eq(out[i].state, JOULE_READING_OK);
        ck_assert_int_eq(out[i].began_ns, then[i].began_ns);
    }
    ck_assert_str_eq(said(), "");
}
END_TEST

/* A state that is of others or makes no sense: nothing has changed. */
START_TEST(state_of_others)
{
    static struct joule_sensor_state state, bad;
    struct joule_reading then[JOULE_DOMAINS_MAX];

    begin();
    state = sensor->state;
    ck_assert_uint_eq(state.domain_key, joule_domains_key(sensor->domains, 5));
    ck_assert_uint_eq(state.is_fused, 1);
    ck_assert_uint_eq(state.counters, 2);
    ck_assert_uint_eq(state.integrators, 3);
    bmc.error = EAGAIN;
    wait_for_reads(2);
    pass(S);
    ask();
    memcpy(then, out, sizeof(then));
#define REFUSED(field, value)                                                  \
    do {                                                                       \
        bad = state;                                                           \
        bad.field = (value);                                                   \
        ck_assert(!joule_sensor_resume(sensor, &bad));                         \
        ask();                                                                 \
        ck_assert_mem_eq(out, then, 5 * sizeof(out[0]));                       \
    } while (0)
    REFUSED(domain_key, state.domain_key + 1);
    REFUSED(is_fused, 0);
    REFUSED(is_fused, 2);
    REFUSED(counters, 1);
    REFUSED(integrators, 4);
    REFUSED(fused.mono_ns, counters.now_ns + S);
    REFUSED(fused.watts, -1);
    REFUSED(integrator[2].power_w, -1);
    REFUSED(integrator[0].read_ns, counters.now_ns + S);
    REFUSED(counter[1].state, JOULE_COUNTER_FROZEN + 1);
    REFUSED(counter[1].read_ns, counters.now_ns + S);
#undef REFUSED
    /* It is an hour ago. */
    counters.now_ns += 3600 * S;
    ck_assert(joule_sensor_resume(sensor, &state));
}
END_TEST

/* ---- a step's sensor ---- */

static struct fake_power labels; /* a meter that is never asked */

static struct joule_sensor *create_follower(void)
{
    struct joule_fused_sensor_options opt = options;

    fake_power_init(&labels);
    fake_power_add(&labels, "Mem", 40);
    opt.meter = &labels.meter;
    opt.period_ns = 0;
    return create(&opt);
}

static void destroy_follower(struct joule_sensor *follower)
{
    joule_sensor_destroy(follower);
    ck_assert_uint_eq(labels.reads, 0);
}

static void resume(struct joule_sensor *follower)
{
    ck_assert(joule_sensor_resume(follower, &sensor->state));
}

START_TEST(follows)
{
    struct joule_reading then[JOULE_DOMAINS_MAX], theirs[JOULE_DOMAINS_MAX];
    struct joule_sensor *follower = create_follower();

    joule_sensor_read(follower, false, theirs);
    for (size_t i = NODE; i <= MEM; i++)
        ck_assert_uint_eq(theirs[i].state, JOULE_READING_UNKNOWN);
    begin();
    memcpy(then, out, sizeof(then));
    for (int i = 0; i < 10; i++) {
        resume(follower);
        for (int k = 0; k < 10; k++) {
            pass(100 * MS);
            joule_sensor_read(follower, false, theirs);
            for (size_t d = 0; d < sensor->domain_count; d++) {
                ck_assert_uint_eq(theirs[d].state, JOULE_READING_OK);
                ck_assert_int_eq(theirs[d].mono_ns, counters.now_ns);
                ck_assert_int_eq(theirs[d].began_ns, then[d].began_ns);
                ck_assert_int_eq(theirs[d].gap_ns, 0);
            }
        }
        ask_bmc();
        ck_assert_double_eq_tol((double)theirs[NODE].uj, (double)out[NODE].uj,
                                1e5);
        ck_assert_double_eq_tol((double)theirs[BMC].uj, (double)out[BMC].uj,
                                1e5);
        ck_assert_double_eq_tol((double)theirs[MEM].uj, (double)out[MEM].uj,
                                1e5);
        ck_assert_mem_eq(&theirs[COUNTERS].uj, &out[COUNTERS].uj, 8);
    }
    ck_assert_double_eq_tol(since_j(NODE, then), 2500, 1);
    ck_assert_double_eq_tol(since_j(MEM, then), 400, 1);
    destroy_follower(follower);
}
END_TEST

/* The BMC is silent, here and there. */
START_TEST(follows_an_overdue_bmc)
{
    struct joule_reading theirs[JOULE_DOMAINS_MAX];
    struct joule_sensor *follower = create_follower();

    begin();
    bmc.error = EAGAIN;
    wait_for_reads(2);
    ask();
    for (int i = 0; i < 5; i++) {
        resume(follower);
        pass(S);
        joule_sensor_read(follower, false, theirs);
        ask();
        for (size_t d = 0; d < sensor->domain_count; d++)
            ck_assert_uint_eq(theirs[d].state, out[d].state);
    }
    ck_assert_uint_eq(theirs[NODE].state, JOULE_READING_OK);
    ck_assert_uint_eq(theirs[BMC].state, JOULE_READING_STALE);
    ck_assert_uint_eq(theirs[MEM].state, JOULE_READING_STALE);
    destroy_follower(follower);
}
END_TEST

/* slurmd is away.  The BMC's last power holds for 300 s, as nothing has been
 * learned; the counters go on. */
START_TEST(follows_nobody)
{
    struct joule_reading then[JOULE_DOMAINS_MAX], theirs[JOULE_DOMAINS_MAX];
    struct joule_sensor *follower = create_follower();
    uint64_t before_uj;

    begin();
    memcpy(then, out, sizeof(then));
    resume(follower);
    before_uj = out[NODE].uj;
    for (int i = 0; i < 60; i++) {
        pass(10 * S);
        joule_sensor_read(follower, false, theirs);
        ck_assert_double_eq_tol((double)(theirs[NODE].uj - before_uj) / 1e7,
                                i < 29 ? 250 : 120, i == 29 ? 131 : 1);
        before_uj = theirs[NODE].uj;
    }
    memcpy(out, theirs, sizeof(out));
    ck_assert_double_eq_tol(since_j(COUNTERS, then), 60000, 1);
    ck_assert_uint_eq(theirs[MEM].state, JOULE_READING_STALE);
    ck_assert_uint_eq(theirs[BMC].state, JOULE_READING_STALE);
    destroy_follower(follower);
}
END_TEST

/* The ledger has the state, and another slurmd goes on with it. */
START_TEST(sampled)
{
    struct tree tree;
    struct joule_sampler_options opt = {
        .clock = &counters.clock,
        .sensor = sensor,
        .node = "n1",
        .period_ns = 2 * MS,
    };
    static struct joule_snapshot snapshot;
    static struct joule_sensor_state state;
    struct joule_sampler *sampler;
    struct joule_ledger *ledger;
    uint64_t before_uj;

    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "boot-1\n");
    tree_mkdir(&tree, "run");
    opt.root_fd = tree.fd;
    sampler = joule_sampler_create(&opt, &err);
    ck_assert_msg(sampler != NULL, "%s", err.text);
    for (int i = 0; i < 200; i++) {
        pass(100 * MS);
        sleep_ms(3);
    }
    ck_assert_int_eq(joule_sampler_read(sampler, &snapshot), 0);
    ck_assert(snapshot.total.valid);
    joule_sampler_destroy(sampler);
    ledger = joule_ledger_open(tree.fd, "n1", &err);
    ck_assert_ptr_nonnull(ledger);
    ck_assert_int_eq(joule_ledger_read_node(ledger, &snapshot, &state), 0);
    ck_assert_int_eq(state.fused.mono_ns, snapshot.total.mono_ns);
    before_uj = snapshot.total.node_uj;
    ck_assert_uint_gt(before_uj, 15000000);

    /* 20 s later */
    joule_sensor_destroy(sensor);
    pass(20 * S);
    bmc.is_interrupted = false;
    sensor = create(&options);
    opt.sensor = sensor;
    sampler = joule_sampler_create(&opt, &err);
    ck_assert_msg(sampler != NULL, "%s", err.text);
    for (int i = 0; i < 20; i++) {
        pass(10 * MS);
        sleep_ms(3);
    }
    joule_sampler_destroy(sampler);
    ck_assert_int_eq(joule_ledger_read_node(ledger, &snapshot, &state), 0);
    ck_assert_double_eq_tol((double)(snapshot.total.node_uj - before_uj) / 1e6,
                            250 * 20.2, 250);
    ck_assert_int_eq(state.fused.mono_ns, snapshot.total.mono_ns);
    joule_ledger_destroy(ledger);
    tree_destroy(&tree);
}
END_TEST

/* ---- the node's energy in a step ---- */

static struct tree tree;
static struct joule_ledger *ledger;
static struct joule_snapshot snapshot;
static struct joule_sensor *follower;
static struct joule_node_energy *account;
static struct joule_node_energy_reading reading;

static bool has_other_counters;

/* What slurmd's thread does. */
static void publish(void)
{
    static struct joule_sensor_state state;

    ask();
    snapshot.total = total;
    state = sensor->state;
    state.domain_key += has_other_counters;
    snapshot.samples++;
    joule_ledger_stage_node(ledger, &snapshot, &state);
    joule_ledger_publish(ledger, NULL);
}

static void follow(struct joule_counters *its_counters)
{
    struct joule_fused_sensor_options opt = options;

    opt.counters = its_counters;
    opt.period_ns = 0;
    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "boot-1\n");
    tree_mkdir(&tree, "run");
    ledger = joule_ledger_create(tree.fd, "n1", 1, &err);
    ck_assert_ptr_nonnull(ledger);
    memset(&snapshot, 0, sizeof(snapshot));
    memset(&reading, 0, sizeof(reading));
    snapshot.period_ns = S;
    begin();
    pass(S);
    publish();
    follower = create(&opt);
    account = joule_node_energy_create(&counters.clock, follower, ledger);
    ck_assert_ptr_nonnull(account);
    joule_node_energy_begin(account);
}

static void unfollow(void)
{
    joule_node_energy_destroy(account);
    joule_sensor_destroy(follower);
    joule_ledger_destroy(ledger);
    tree_destroy(&tree);
}

/* A row. */
static double row_w(int64_t ns)
{
    uint64_t before_uj = reading.used_uj;

    pass(ns);
    ck_assert_int_eq(joule_node_energy_update(account, &reading), 0);
    return (double)(reading.used_uj - before_uj) * 1e3 / (double)ns;
}

/* Of seconds with a hundred rows, the last [count]. */
static void rows(int count, double least_w, double most_w)
{
    for (int i = 0; i < count * 100; i++) {
        double watts = row_w(10 * MS);

        ck_assert_double_ge(watts, least_w);
        ck_assert_double_le(watts, most_w);
        if (i % 100 == 99) {
            wait_for_reads(2);
            publish();
        }
    }
}

/* Rows of 10 ms are what the counters say of them and the BMC of all; that it
 * had read 20 W more half a second before a sample is no jump of 1000 W. */
START_TEST(followed)
{
    uint64_t begin_uj;

    follow(&counters.counters);
    begin_uj = snapshot.total.node_uj;
    rows(2, 249, 251);
    bmc.late_ns = 500 * MS;
    bmc.watts[0] = 270;
    rows(1, 249, 251);
    ck_assert_double_eq_tol(row_w(10 * MS), 260, 1); /* begins before */
    rows(10, 269, 281);
    ck_assert_double_eq_tol((double)reading.used_uj,
                            (double)(snapshot.total.node_uj - begin_uj), 1e5);
    ck_assert_double_eq_tol((double)reading.domain_uj[MEM], 40 * 13.01e6, 1e4);
    ck_assert_double_eq_tol((double)reading.domain_uj[COUNTERS], 1301e6, 1e5);
    ck_assert_double_eq_tol((double)reading.domain_uj[COUNTERS + 1], 260.2e6,
                            1e5);
    for (size_t i = 0; i < sensor->domain_count; i++)
        ck_assert(reading.domain_known[i]);
    unfollow();
}
END_TEST

/* The last figure is what the ledger says. */
START_TEST(followed_to_the_end)
{
    uint64_t begin_uj;

    follow(&counters.counters);
    begin_uj = snapshot.total.node_uj;
    ck_assert_int_eq(joule_node_energy_update(account, &reading), 0);
    bmc.late_ns = 500 * MS;
    bmc.watts[0] = 270;
    rows(1, 249, 251);
    joule_node_energy_end(account);
    ck_assert_int_eq(joule_node_energy_update(account, &reading), 0);
    ck_assert_double_eq_tol((double)reading.used_uj,
                            (double)(snapshot.total.node_uj - begin_uj), 1e3);
    unfollow();
}
END_TEST

/* The state of a slurmd whose counters are others is of no use here; its
 * samples are. */
START_TEST(followed_with_other_counters)
{
    uint64_t begin_uj;

    follow(&counters.counters);
    rows(1, 249, 251);
    begin_uj = snapshot.total.node_uj - reading.used_uj;
    has_other_counters = true;
    bmc.watts[0] = 400;
    rows(10, 0, 1000);
    has_other_counters = false;
    /* A sample's energy is spread over the second behind it. */
    ck_assert_double_eq_tol((double)reading.used_uj,
                            (double)(snapshot.total.node_uj - begin_uj), 4.1e8);
    joule_node_energy_end(account);
    ck_assert_int_eq(joule_node_energy_update(account, &reading), 0);
    ck_assert_double_eq_tol((double)reading.used_uj,
                            (double)(snapshot.total.node_uj - begin_uj), 1e3);
    unfollow();
}
END_TEST

/* Without counters, what is carried on while the BMC is away has been said. */
START_TEST(followed_without_the_bmc)
{
    struct joule_fused_sensor_options opt = options;

    opt.counters = NULL;
    start(&opt);
    follow(NULL);
    rows(3, 249, 251);
    bmc.status[0] = JOULE_POWER_FAILED;
    rows(20, 249, 251);
    bmc.status[0] = JOULE_POWER_OK;
    rows(5, 249, 251);
    unfollow();
}
END_TEST

/* A label that the BMC does not measure is not known, and takes nothing from
 * the node. */
START_TEST(followed_without_a_label)
{
    follow(&counters.counters);
    bmc.status[1] = JOULE_POWER_UNAVAILABLE;
    rows(5, 249, 251);
    ck_assert_uint_eq(out[MEM].state, JOULE_READING_STALE);
    ck_assert_uint_eq(out[NODE].state, JOULE_READING_OK);
    ck_assert(!reading.domain_known[MEM]);
    ck_assert(reading.domain_known[NODE]);
    unfollow();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fused sensor");
    TCase *bad = tcase_create("what cannot be");
    TCase *tc = tcase_create("read");
    TCase *again = tcase_create("another process");
    TCase *step = tcase_create("step");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(bad, setup, teardown);
    tcase_add_test(bad, labels_that_cannot_be);
    tcase_add_test(bad, too_many_domains);
    suite_add_tcase(s, bad);

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, domains);
    tcase_add_test(tc, before_the_bmc);
    tcase_add_test(tc, readings);
    tcase_add_test(tc, counters_pass_through);
    tcase_add_test(tc, labels_are_held);
    tcase_add_test(tc, power_is_a_mean);
    tcase_add_test(tc, the_bmc_hangs);
    tcase_add_test(tc, the_bmc_is_overdue);
    tcase_add_test(tc, the_bmc_fails);
    tcase_add_test(tc, label_not_measured);
    tcase_add_test(tc, a_counter_fails);
    tcase_add_test(tc, nothing_answers);
    tcase_add_test(tc, counters_missing);
    tcase_add_test(tc, remarks);
    tcase_add_test(tc, fork_without_thread);
    suite_add_tcase(s, tc);

    tcase_add_checked_fixture(again, setup, teardown);
    tcase_add_test(again, resumed);
    tcase_add_test(again, state_of_others);
    tcase_add_test(again, follows);
    tcase_add_test(again, follows_an_overdue_bmc);
    tcase_add_test(again, follows_nobody);
    tcase_add_test(again, sampled);
    suite_add_tcase(s, again);

    tcase_add_checked_fixture(step, setup, teardown);
    tcase_add_test(step, followed);
    tcase_add_test(step, followed_to_the_end);
    tcase_add_test(step, followed_with_other_counters);
    tcase_add_test(step, followed_without_the_bmc);
    tcase_add_test(step, followed_without_a_label);
    suite_add_tcase(s, step);

    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

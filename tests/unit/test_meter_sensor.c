/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A meter that is asked every millisecond of the kernel's time; the power and
 * the time that it measures are the test's, in memory that children share.
 */
#include <check.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/thread.h"
#include "common/energy/node_total.h"
#include "common/sensors/counter_sensor.h"
#include "common/sensors/meter_sensor.h"
#include "tests/unit/dice.h"
#include "tests/unit/fail.h"
#include "tests/unit/fake_power.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define S         JOULE_NS_PER_S
#define MS        JOULE_NS_PER_MS
#define GAP       (3 * S)
#define T0        (1000 * S)
#define TEXTS_MAX 64

/* The fake, and what a test of the sensor wants to see and say beyond it. */
struct meter {
    struct fake_power fake; /* first */
    _Atomic uint64_t key;   /* sensor_key of all labels */
    _Atomic unsigned put_away, destroyed;
};

static struct meter *meter;
static struct fake_power *bmc;
static struct joule_sensor *sensor;
static struct joule_reading r[FAKE_LABELS_MAX];
static struct joule_sensor_state state;

static char texts[TEXTS_MAX][JOULE_ERROR_MAX + 16];
static int told;

static int fail_thread; /* errno of joule_thread_start */

int __real_joule_thread_start(pthread_t *ret_thread, size_t stack,
                              void *(*run)(void *arg), void *arg);
int __wrap_joule_thread_start(pthread_t *ret_thread, size_t stack,
                              void *(*run)(void *arg), void *arg);

int __wrap_joule_thread_start(pthread_t *ret_thread, size_t stack,
                              void *(*run)(void *arg), void *arg)
{
    if (fail_thread)
        return fail_thread;
    return __real_joule_thread_start(ret_thread, stack, run, arg);
}

static int meter_read(struct joule_meter *m, struct joule_power *out,
                      struct joule_error *err)
{
    int rc;

    if (bmc->is_interrupted)
        atomic_fetch_add(&meter->put_away, 1);
    rc = fake_power_read(m, out, err);
    for (size_t i = 0; rc == 0 && i < m->domain_count; i++)
        out[i].sensor_key = meter->key;
    return rc;
}

static void meter_destroy(struct joule_meter *m)
{
    (void)m;
    atomic_fetch_add(&meter->destroyed, 1);
}

static const struct joule_meter_ops meter_ops = {
    .read = meter_read,
    .remark = fake_power_remark,
    .interrupt = fake_power_interrupt,
    .destroy = meter_destroy,
};

static struct joule_sensor *create_with(int64_t period_ns, bool no_carry)
{
    const struct joule_meter_sensor_options opt = {
        .clock = &bmc->clock,
        .meter = &bmc->meter,
        .period_ns = period_ns,
        .gap_ns = GAP,
        .no_carry = no_carry,
    };

    return joule_meter_sensor_create(&opt);
}

static void init_meter(void)
{
    memset(meter, 0, sizeof(*meter));
    fake_power_init(bmc);
    bmc->meter.ops = &meter_ops;
    fake_power_add(bmc, "Socket0", 40);
}

static void setup(void)
{
    meter = mmap(NULL, sizeof(*meter), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(meter, MAP_FAILED);
    bmc = &meter->fake;
    init_meter();
    told = 0;
    fail_thread = 0;
    sensor = create_with(MS, false);
    ck_assert_ptr_nonnull(sensor);
}

static void teardown(void)
{
    joule_sensor_destroy(sensor);
    munmap(meter, sizeof(*meter));
}

/* Instead of the sensor that there is. */
static void become(struct joule_sensor *other)
{
    ck_assert_ptr_nonnull(other);
    joule_sensor_destroy(sensor);
    bmc->is_interrupted = false;
    bmc->reads = 0;
    sensor = other;
}

/* As a sampler does. */
static int64_t read_now(bool is_edge)
{
    int64_t now_ns = joule_sensor_read(sensor, is_edge ? bmc->now_ns : 0, r);
    enum joule_event event;
    struct joule_error text;

    while (told < TEXTS_MAX && sensor->ops->remark(sensor, &event, &text))
        snprintf(texts[told++], sizeof(texts[0]), "%s: %s",
                 event == JOULE_EVENT_PROBLEM ? "problem" : "info", text.text);
    return now_ns;
}

/* What it says when the meter has been asked at this time; it has said nothing
 * of this time before. */
static void measure(void)
{
    if (bmc->reads == 0)
        read_now(false);
    fake_power_settle(bmc);
    read_now(false);
}

static void pass(int64_t ns)
{
    bmc->now_ns += ns;
    measure();
}

/* The meter says nothing more until the next measure. */
static void begin_silence(void)
{
    measure();
    bmc->hangs = true;
    while (bmc->waits == 0)
        joule_sensor_read(sensor, false, r);
}

static void end_silence(void)
{
    bmc->hangs = false;
    measure();
}

/* How often something with these words was told. */
static int count_told(const char *words)
{
    int n = 0;

    for (int i = 0; i < told; i++)
        n += strstr(texts[i], words) != NULL;
    return n;
}

static void copy_state(void)
{
    state = sensor->state;
}

static int64_t kernel_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * S + t.tv_nsec;
}

/* -- what is no power --------------------------------------------------- */

START_TEST(no_memory)
{
    for (int n = 1; n <= 2; n++) {
        fail_calloc = n;
        ck_assert_ptr_null(create_with(MS, false));
        ck_assert_int_eq(errno, ENOMEM);
        ck_assert_int_eq(fail_calloc, 0);
        ck_assert_uint_eq(meter->destroyed, (unsigned)n);
    }
}
END_TEST

START_TEST(destroy_null)
{
    joule_meter_thread_destroy(NULL);
    joule_meter_destroy(NULL);
    joule_sensor_destroy(NULL);
}
END_TEST

START_TEST(no_thread)
{
    fail_thread = EAGAIN;
    for (int i = 0; i < 10; i++)
        read_now(false);
    ck_assert_uint_eq(r[0].state, JOULE_READING_UNKNOWN);
    ck_assert_int_eq(count_told("problem: no reading of power: cannot start "
                                "the BMC's thread: Resource temporarily "
                                "unavailable; energy is unknown until there"),
                     1);
    ck_assert_int_eq(told, 1);
    fail_thread = 0;
    measure();
    ck_assert_uint_eq(r[0].state, JOULE_READING_OK);
    ck_assert_int_eq(count_told("info: the BMC answers again"), 1);
    ck_assert_int_eq(told, 2);
}
END_TEST

START_TEST(never_answers)
{
    bmc->hangs = true;
    for (int i = 0; i < 10; i++) {
        bmc->now_ns += S;
        ck_assert_int_eq(read_now(false), bmc->now_ns);
        for (int k = 0; k < 2; k++) {
            ck_assert_uint_eq(r[k].state, JOULE_READING_UNKNOWN);
            ck_assert_uint_eq(r[k].mw, JOULE_MW_UNKNOWN);
            ck_assert_uint_eq(r[k].uj, 0);
            ck_assert_int_eq(r[k].gap_ns, 0);
            ck_assert_uint_eq(r[k].errors, 0);
        }
    }
    ck_assert_int_eq(told, 0);
}
END_TEST

/* Not due yet, or interrupted: neither is a failure. */
START_TEST(silent_failures)
{
    static const int silent[] = {EAGAIN, ECANCELED};

    for (size_t i = 0; i < COUNT(silent); i++) {
        bmc->error = silent[i];
        pass(S);
        ck_assert_uint_eq(r[0].state, JOULE_READING_UNKNOWN);
        ck_assert_uint_eq(r[0].errors, 0);
    }
    ck_assert_int_eq(told, 0);
}
END_TEST

/* Each sentence once in an outage, and once that it is over. */
START_TEST(fails)
{
    static const char *const text = "the BMC at 127.0.0.1 does not answer";

    bmc->text = text;
    bmc->error = ETIMEDOUT;
    for (int i = 0; i < 3; i++)
        pass(S);
    ck_assert_uint_eq(r[0].state, JOULE_READING_UNKNOWN);
    ck_assert_uint_ge(r[0].errors, 3);
    ck_assert_uint_ge(r[1].errors, 3);
    ck_assert_int_eq(count_told("problem: no reading of power: the BMC at "
                                "127.0.0.1 does not answer; energy is unknown "
                                "until there is one"),
                     1);
    /* Without a sentence errno has one. */
    bmc->error = EAGAIN;
    measure();
    bmc->text = NULL;
    bmc->error = EIO;
    measure();
    measure();
    bmc->text = text;
    measure();
    measure();
    ck_assert_int_eq(count_told("problem: no reading of power: Input/output"),
                     1);
    ck_assert_int_eq(told, 2);
    bmc->error = 0;
    measure();
    ck_assert_uint_eq(r[0].state, JOULE_READING_OK);
    ck_assert_int_eq(count_told("info: the BMC answers again"), 1);
    ck_assert_int_eq(told, 3);
    /* It is over, so it is told again. */
    bmc->error = ETIMEDOUT;
    measure();
    measure();
    ck_assert_int_eq(count_told("problem: no reading of power: the BMC at"), 2);
    ck_assert_int_eq(count_told("energy goes on with the last power for 300 s "
                                "at most"),
                     1);
    ck_assert_int_eq(told, 4);
}
END_TEST

START_TEST(many_sentences)
{
    static char text[20][32];

    bmc->error = EIO;
    for (int i = 0; i < 40; i++) {
        snprintf(text[i % 20], sizeof(text[0]), "sentence %d", i % 20);
        bmc->text = text[i % 20];
        measure();
    }
    ck_assert_int_eq(count_told("problem: no reading of power: sentence"),
                     JOULE_METER_TEXTS);
    ck_assert_int_eq(told, JOULE_METER_TEXTS);
}
END_TEST

static const char *const fault_words[JOULE_POWER_STATUS_COUNT] = {
    [JOULE_POWER_UNAVAILABLE] = "unavailable",
    [JOULE_POWER_NOT_SCANNED] = "scanning disabled",
    [JOULE_POWER_NOT_ACTIVE] = "not active",
    [JOULE_POWER_ZERO] = "0 W",
    [JOULE_POWER_NEGATIVE] = "less than 0 W",
    [JOULE_POWER_SATURATED] = "highest value",
    [JOULE_POWER_ABSURD] = "more watts",
    [JOULE_POWER_REFUSED] = "refuses",
    [JOULE_POWER_FAILED] = "no answer",
};

START_TEST(faults)
{
    char words[128];

    measure();
    for (int round = 1; round <= 2; round++) {
        uint64_t errors = r[0].errors;

        bmc->status[0] = _i;
        bmc->status[1] = round == 2 ? _i : JOULE_POWER_OK;
        for (int i = 0; i < 7; i++)
            measure();
        ck_assert_uint_ge(r[0].errors, errors + 7);
        ck_assert(round == 2 || r[1].errors == 0);
        snprintf(words, sizeof(words),
                 "problem: power of Node%s is not measured: ",
                 round == 2 ? ", Socket0" : "");
        ck_assert_int_eq(count_told(words), 1);
        ck_assert_int_eq(count_told(fault_words[_i]), round);
        ck_assert_int_eq(count_told("energy goes on with the last power"),
                         round);
        ck_assert_int_eq(told, 2 * round - 1);
        bmc->status[0] = bmc->status[1] = JOULE_POWER_OK;
        measure();
        ck_assert_int_eq(count_told("info: all power is measured again"),
                         round);
        ck_assert_int_eq(told, 2 * round);
    }
}
END_TEST

/* The power meanwhile is that before, and the other label's is measured. */
START_TEST(fault_of_a_label)
{
    measure();
    bmc->status[0] = _i;
    bmc->watts[0] = 9000;
    pass(2 * S);
    ck_assert_uint_eq(r[0].uj, 200000000);
    ck_assert_uint_eq(r[0].mw, 100000);
    ck_assert_uint_eq(r[1].uj, 80000000);
    bmc->watts[1] = 60;
    pass(2 * S);
    ck_assert_uint_eq(r[0].state, JOULE_READING_STALE);
    ck_assert_uint_eq(r[0].mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(r[0].uj, 400000000);
    ck_assert_uint_eq(r[1].state, JOULE_READING_OK);
    ck_assert_uint_eq(r[1].uj, 180000000);
}
END_TEST

START_TEST(fault_from_the_beginning)
{
    bmc->status[0] = _i;
    pass(S);
    pass(S);
    ck_assert_uint_eq(r[0].state, JOULE_READING_UNKNOWN);
    ck_assert_uint_eq(r[0].mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(r[0].uj, 0);
    ck_assert_uint_eq(r[1].uj, 40000000);
    ck_assert_int_eq(count_told("energy is unknown until there is one"), 1);
    bmc->status[0] = JOULE_POWER_OK;
    measure();
    pass(S);
    ck_assert_uint_eq(r[0].state, JOULE_READING_OK);
    ck_assert_int_eq(r[0].began_ns, T0 + 2 * S);
    ck_assert_uint_eq(r[0].uj, 100000000);
}
END_TEST

/* Numbers that no meter may call a measurement. */
START_TEST(no_numbers)
{
    const double watts[] = {NAN, INFINITY, -INFINITY, -1,
                            JOULE_POWER_MAX_W * 1.001};

    for (size_t i = 0; i < COUNT(watts); i++) {
        bmc->watts[0] = watts[i];
        pass(S);
        ck_assert_uint_eq(r[0].state, JOULE_READING_UNKNOWN);
        ck_assert_uint_eq(r[0].uj, 0);
        ck_assert_uint_ge(r[0].errors, i + 1);
    }
    bmc->watts[0] = 100;
    bmc->now_ns += 1;
    measure();
    pass(S);
    ck_assert_uint_eq(r[0].uj, 100000000);
}
END_TEST

/* What became of the energy of an outage is said with its end. */
START_TEST(outages)
{
    measure();
    bmc->text = "no answer";
    bmc->error = ETIMEDOUT;
    pass(0);
    pass(60 * S);
    ck_assert_uint_eq(r[0].state, JOULE_READING_STALE);
    ck_assert_uint_eq(r[0].mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(r[0].uj, UINT64_C(6000000000));
    ck_assert_int_eq(r[0].gap_ns, 60 * S);
    bmc->watts[0] = 300;
    bmc->error = 0;
    measure();
    ck_assert_uint_eq(r[0].uj, UINT64_C(12000000000));
    ck_assert_uint_eq(r[0].mw, 300000);
    ck_assert_int_eq(r[0].gap_ns, 60 * S);
    ck_assert_int_eq(count_told("info: the BMC answers again after 60 s; the "
                                "energy of that time is estimated"),
                     1);
    bmc->error = ETIMEDOUT;
    pass(0);
    pass(301 * S);
    bmc->error = 0;
    measure();
    ck_assert_int_eq(r[0].gap_ns, 361 * S);
    ck_assert_int_eq(count_told("info: the BMC answers again after 301 s; the "
                                "energy of that time is that of 300 s"),
                     1);
    ck_assert_int_eq(told, 4);
    copy_state();
    ck_assert_uint_eq(state.integrator[0].uj, UINT64_C(102000000000));
    ck_assert_uint_eq(state.integrator[0].lost, 1);
    ck_assert_uint_eq(state.integrator[0].gaps, 2);
}
END_TEST

/* A BMC that misses a reading now and then is no outage. */
START_TEST(short_outages)
{
    measure();
    for (int i = 0; i < 5; i++) {
        bmc->status[0] = JOULE_POWER_UNAVAILABLE;
        pass(2 * S);
        bmc->status[0] = JOULE_POWER_OK;
        measure();
        bmc->text = "no answer";
        bmc->error = ETIMEDOUT;
        pass(2 * S);
        bmc->error = 0;
        measure();
    }
    ck_assert_uint_eq(r[0].uj, UINT64_C(2000000000));
    ck_assert_int_eq(r[0].gap_ns, 0);
    ck_assert_int_eq(count_told(" after "), 0);
    ck_assert_int_eq(told, 20);
}
END_TEST

START_TEST(stuck)
{
    measure();
    for (int i = 0; i < 59; i++) {
        bmc->watts[1] = 40 + i;
        pass(60 * S);
    }
    ck_assert_int_eq(told, 0);
    bmc->watts[1] = 30;
    pass(61 * S);
    pass(60 * S);
    ck_assert_int_eq(count_told("info: power of Node has been 100.0 W for an "
                                "hour"),
                     1);
    ck_assert_int_eq(told, 1);
    /* Once: what stands still for hours does so every day. */
    bmc->watts[0] = 101;
    pass(60 * S);
    for (int i = 0; i < 70; i++) {
        bmc->watts[1] = 40 + i;
        pass(60 * S);
    }
    ck_assert_int_eq(told, 1);
}
END_TEST

/* An old measurement, as of a BMC whose answer was under way, changes nothing.
 */
START_TEST(older_measurement)
{
    pass(10 * S);
    bmc->watts[0] = 900;
    bmc->late_ns = 5 * S;
    pass(2 * S);
    ck_assert_uint_eq(r[0].mw, 100000);
    ck_assert_uint_eq(r[0].uj, 200000000);
    begin_silence();
    bmc->late_ns = 0;
    bmc->now_ns += S;
    end_silence();
    ck_assert_uint_eq(r[0].mw, 900000);
    ck_assert_uint_eq(r[0].uj, 1500000000);
}
END_TEST

/* -- energy ------------------------------------------------------------- */

START_TEST(head)
{
    ck_assert_str_eq(sensor->ops->type, "meter");
    ck_assert_ptr_eq(sensor->domains, bmc->domain);
    ck_assert_uint_eq(sensor->domain_count, 2);
    ck_assert_int_eq(sensor->wrap_ns, INT64_MAX);
}
END_TEST

START_TEST(trapezoids)
{
    measure();
    ck_assert_uint_eq(r[0].state, JOULE_READING_OK);
    ck_assert_uint_eq(r[0].mw, 100000);
    ck_assert_uint_eq(r[0].uj, 0);
    ck_assert_int_eq(r[0].began_ns, T0);
    ck_assert_int_eq(r[0].mono_ns, T0);
    bmc->watts[0] = 300;
    bmc->watts[1] = 50;
    pass(2 * S);
    ck_assert_uint_eq(r[0].mw, 300000);
    ck_assert_uint_eq(r[0].uj, 400000000);
    ck_assert_uint_eq(r[1].mw, 50000);
    ck_assert_uint_eq(r[1].uj, 90000000);
    bmc->watts[0] = 50.5;
    pass(S);
    ck_assert_uint_eq(r[0].mw, 50500);
    ck_assert_uint_eq(r[0].uj, 575250000);
    ck_assert_int_eq(r[0].began_ns, T0);
    ck_assert_int_eq(r[0].mono_ns, T0 + 3 * S);
    ck_assert_int_eq(r[0].gap_ns, 0);
    ck_assert_uint_eq(r[0].errors, 0);
    ck_assert_int_eq(told, 0);
}
END_TEST

/* Powers of a few nanoseconds and milliwatts add up. */
START_TEST(nothing_is_rounded)
{
    bmc->watts[0] = 0.001;
    measure();
    for (int i = 0; i < 300; i++)
        pass(333333);
    ck_assert_uint_eq(r[0].uj, 99);
    pass(100000);
    ck_assert_uint_eq(r[0].uj, 100);
}
END_TEST

/* From the measurement to now, with the last power, and correctly then. */
START_TEST(carried_on_and_corrected)
{
    begin_silence();
    bmc->now_ns += 2 * S;
    ck_assert_int_eq(read_now(false), T0 + 2 * S);
    ck_assert_uint_eq(r[0].uj, 200000000);
    ck_assert_uint_eq(r[0].mw, 100000);
    ck_assert_int_eq(r[0].mono_ns, T0 + 2 * S);
    bmc->watts[0] = 50;
    end_silence();
    /* 150 J are right, and 200 J have been said. */
    ck_assert_uint_eq(r[0].uj, 200000000);
    ck_assert_uint_eq(r[0].mw, 50000);
    pass(S / 2);
    ck_assert_uint_eq(r[0].uj, 200000000);
    pass(S);
    ck_assert_uint_eq(r[0].uj, 225000000);
    bmc->watts[0] = 250;
    pass(S);
    ck_assert_uint_eq(r[0].uj, 375000000);
}
END_TEST

/* At most 300 s, whatever comes. */
START_TEST(carried_on_for_so_long)
{
    begin_silence();
    for (int s = 1; s <= 1000; s++) {
        bmc->now_ns += S;
        read_now(false);
        ck_assert_uint_eq(r[0].uj,
                          (s < 300 ? (uint64_t)s : 300) * UINT64_C(100000000));
        ck_assert_uint_eq(r[0].state,
                          s > 3 ? JOULE_READING_STALE : JOULE_READING_OK);
        ck_assert_int_eq(r[0].gap_ns, s > 3 ? s * S : 0);
    }
    end_silence();
    ck_assert_uint_eq(r[0].state, JOULE_READING_OK);
    ck_assert_int_eq(r[0].gap_ns, 1000 * S);
    /* What was said before is not taken back. */
    ck_assert_uint_eq(r[0].uj, UINT64_C(30000000000));
    pass(S);
    ck_assert_uint_eq(r[0].uj, UINT64_C(30100000000));
}
END_TEST

START_TEST(stale_and_back)
{
    begin_silence();
    bmc->now_ns += GAP;
    read_now(false);
    ck_assert_uint_eq(r[0].state, JOULE_READING_OK);
    ck_assert_uint_eq(r[0].mw, 100000);
    ck_assert_int_eq(r[0].gap_ns, 0);
    bmc->now_ns += 1;
    read_now(false);
    ck_assert_uint_eq(r[0].state, JOULE_READING_STALE);
    ck_assert_uint_eq(r[0].mw, JOULE_MW_UNKNOWN);
    ck_assert_int_eq(r[0].gap_ns, GAP + 1);
    end_silence();
    ck_assert_uint_eq(r[0].state, JOULE_READING_OK);
    ck_assert_uint_eq(r[0].mw, 100000);
    ck_assert_uint_eq(r[0].uj, 300000000);
    ck_assert_int_eq(r[0].gap_ns, GAP + 1);
    pass(GAP);
    ck_assert_int_eq(r[0].gap_ns, GAP + 1);
    ck_assert_int_eq(told, 0);
}
END_TEST

/* An answer that is on its way for longer than gap_ns is no gap when it has
 * come. */
START_TEST(late_answers)
{
    bmc->late_ns = 2 * S;
    begin_silence();
    for (int i = 0; i < 5; i++) {
        bmc->now_ns += 2 * S;
        read_now(false);
        ck_assert_uint_eq(r[0].state, JOULE_READING_STALE);
        ck_assert_int_eq(r[0].gap_ns, 4 * S);
        end_silence();
        ck_assert_uint_eq(r[0].state, JOULE_READING_OK);
        ck_assert_int_eq(r[0].gap_ns, 0);
        begin_silence();
    }
    ck_assert_uint_eq(r[0].uj, UINT64_C(1200000000));
}
END_TEST

START_TEST(no_carry)
{
    become(create_with(MS, true));
    begin_silence();
    bmc->now_ns += 2 * S;
    read_now(false);
    ck_assert_uint_eq(r[0].uj, 0);
    ck_assert_uint_eq(r[0].mw, 100000);
    ck_assert_int_eq(r[0].mono_ns, T0 + 2 * S);
    bmc->watts[0] = 50;
    end_silence();
    ck_assert_uint_eq(r[0].uj, 150000000);
    begin_silence();
    bmc->now_ns += 5 * S;
    read_now(false);
    ck_assert_uint_eq(r[0].uj, 150000000);
    ck_assert_uint_eq(r[0].state, JOULE_READING_STALE);
}
END_TEST

/* Measured in the middle of a request that takes long: from there on, the power
 * is carried on. */
START_TEST(power_of_the_past)
{
    bmc->late_ns = 2 * S;
    measure();
    ck_assert_uint_eq(r[0].uj, 200000000);
    ck_assert_int_eq(r[0].began_ns, T0 - 2 * S);
    bmc->watts[0] = 300;
    pass(4 * S);
    ck_assert_uint_eq(r[0].uj, 4 * 200000000 + 2 * 300000000);
    ck_assert_int_eq(r[0].mono_ns, T0 + 4 * S);
}
END_TEST

/* -- edges -------------------------------------------------------------- */

/* The load begins at the edge. */
START_TEST(edge)
{
    begin_silence();
    bmc->now_ns += S / 4;
    read_now(true);
    ck_assert_uint_eq(r[0].uj, 25000000);
    bmc->watts[0] = 500;
    bmc->now_ns += 3 * S / 4;
    end_silence();
    ck_assert_uint_eq(r[0].uj, 25000000 + 375000000);
    /* It is over: trapezoids again. */
    bmc->watts[0] = 100;
    pass(S);
    ck_assert_uint_eq(r[0].uj, 25000000 + 375000000 + 300000000);
}
END_TEST

/* Neither is in the interval: the measurement was before the one, and long after
 * the other. */
START_TEST(edges_elsewhere)
{
    measure();
    read_now(true);
    pass(S);
    pass(S);
    begin_silence();
    bmc->now_ns += 3 * S / 2;
    read_now(true);
    bmc->late_ns = S / 2;
    bmc->watts[0] = 300;
    end_silence();
    /* One second to the measurement, and half a one of 300 W from there. */
    ck_assert_uint_eq(r[0].uj, 200000000 + 200000000 + 150000000);
}
END_TEST

/* The measurement before is of the moment when the task had only been forked. */
START_TEST(edge_just_before)
{
    measure();
    pass(S);
    read_now(true);
    pass(JOULE_POWER_SETTLE_NS);
    begin_silence();
    bmc->watts[0] = 500;
    bmc->now_ns += S;
    end_silence();
    ck_assert_uint_eq(r[0].uj, 100000000 + 10000000 + 500000000);
}
END_TEST

/* The last of them counts, and those that came after the measurement do not
 * drive it out. */
START_TEST(many_edges)
{
    begin_silence();
    for (int i = 0; i < 40; i++) {
        bmc->now_ns += S / 80;
        read_now(true);
    }
    for (int i = 0; i < 15; i++) {
        bmc->now_ns += S / 40;
        read_now(true);
    }
    bmc->watts[0] = 500;
    bmc->late_ns = bmc->now_ns - (T0 + S / 2);
    end_silence();
    /* It was measured at an edge. */
    ck_assert_uint_eq(r[0].uj, 50000000 + 15 * 12500000);
    bmc->late_ns = 0;
    pass(S / 8);
    ck_assert_uint_eq(r[0].uj, 50000000 + 20 * 12500000);
}
END_TEST

/* Nothing is between the powers of two sensors. */
START_TEST(another_sensor)
{
    meter->key = 7;
    measure();
    pass(S);
    ck_assert_uint_eq(r[0].sensor_key, 7);
    begin_silence();
    meter->key = 8;
    bmc->watts[0] = 900;
    bmc->now_ns += S;
    end_silence();
    ck_assert_uint_eq(r[0].sensor_key, 8);
    ck_assert_uint_eq(r[0].uj, 200000000);
    ck_assert_uint_eq(r[0].mw, 900000);
}
END_TEST

/* -- the thread --------------------------------------------------------- */

/* A reading waits for nothing, however the meter answers.  A busy machine may
 * stop this process now and then; what waits for the meter does so each time. */
START_TEST(never_delayed)
{
    int64_t begin_ns, took_ns, least_ns = INT64_MAX;
    int slow = 0;

    measure();
    bmc->hangs = _i == 0;
    bmc->slow_ns = _i == 0 ? 0 : 60 * MS;
    while (bmc->waits == 0)
        usleep(1000);
    for (int i = 0; i < 300; i++) {
        bmc->now_ns += MS;
        begin_ns = kernel_ns();
        ck_assert_int_eq(joule_sensor_read(sensor, i % 3 ? 0 : bmc->now_ns, r),
                         bmc->now_ns);
        took_ns = kernel_ns() - begin_ns;
        slow += took_ns >= 20 * MS;
        least_ns = took_ns < least_ns ? took_ns : least_ns;
        ck_assert_uint_eq(r[0].state, JOULE_READING_OK);
        ck_assert_uint_eq(r[0].uj, (uint64_t)(bmc->now_ns - T0) / 10);
        usleep(1000);
    }
    ck_assert_msg(slow <= 15 && least_ns < MS, "%d of 20 ms, none below %d us",
                  slow, (int)(least_ns / 1000));
}
END_TEST

/* At any point of the thread's loop, many times; as above. */
START_TEST(destroy_at_any_time)
{
    int64_t longest_ns = 0, begin_ns, took_ns;
    int slow = 0;

    srandom(3);
    for (int i = 0; i < 200; i++) {
        unsigned put_away = meter->put_away, destroyed = meter->destroyed;

        become(create_with(i % 3 ? MS : 1000 * S, false));
        bmc->hangs = i % 2;
        bmc->slow_ns = random() % 3 * MS;
        if (i % 10)
            read_now(false);
        usleep((useconds_t)(random() % 3000));
        begin_ns = kernel_ns();
        joule_sensor_destroy(sensor);
        took_ns = kernel_ns() - begin_ns;
        sensor = NULL;
        slow += took_ns >= 250 * MS;
        longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
        /* What the thread has begun, it has put away. */
        ck_assert(i % 10 == 0 || meter->put_away > put_away);
        ck_assert_uint_ge(meter->destroyed, destroyed + 1);
    }
    ck_assert_msg(slow <= 20 && longest_ns < 2 * S,
                  "%d above 250 ms, one of %d", slow, (int)(longest_ns / MS));
}
END_TEST

/* Nor does the end ask once more: that may take seconds, and what was asked
 * would not be put away. */
START_TEST(not_asked_at_the_end)
{
    joule_sensor_destroy(sensor);
    for (int i = 0; i < 300; i++) {
        bmc->is_interrupted = false;
        bmc->reads = 0;
        sensor = create_with(1000 * S, false);
        while (bmc->reads == 0 || bmc->waits > 0 ||
               r[0].state == JOULE_READING_UNKNOWN)
            joule_sensor_read(sensor, false, r);
        memset(r, 0, sizeof(r));
        joule_sensor_destroy(sensor);
        sensor = NULL;
        ck_assert_uint_eq(bmc->reads, 1);
    }
}
END_TEST

START_TEST(begins_with_the_first_read)
{
    usleep(20000);
    ck_assert_uint_eq(bmc->reads, 0);
    become(create_with(1000 * S, false));
    ck_assert_uint_eq(meter->destroyed, 1);
    ck_assert_uint_eq(meter->put_away, 0);
    ck_assert_uint_eq(bmc->reads, 0);
    /* And does not wait for the period. */
    while (bmc->reads == 0)
        read_now(false);
    while (r[0].state != JOULE_READING_OK)
        read_now(false);
    ck_assert_uint_eq(bmc->reads, 1);
}
END_TEST

/* At a steady pace; what took longer than the period is not made up for. */
START_TEST(pace)
{
    int64_t begin_ns;
    unsigned reads;

    become(create_with(20 * MS, false));
    bmc->slow_ns = 200 * MS;
    read_now(false);
    while (bmc->waits == 0)
        usleep(1000);
    usleep(100000);
    bmc->slow_ns = 0;
    while (bmc->waits > 0)
        usleep(1000);
    reads = bmc->reads;
    begin_ns = kernel_ns();
    while (bmc->reads < reads + 10)
        usleep(1000);
    /* The first may follow at once. */
    ck_assert_int_ge(kernel_ns() - begin_ns, 7 * 20 * MS);
}
END_TEST

START_TEST(never_asked)
{
    become(create_with(0, false));
    for (int i = 0; i < 20; i++) {
        bmc->now_ns += S;
        read_now(i % 2);
        usleep(1000);
    }
    ck_assert_uint_eq(r[0].state, JOULE_READING_UNKNOWN);
    ck_assert_uint_eq(bmc->reads, 0);
    joule_sensor_destroy(sensor);
    sensor = NULL;
    ck_assert_uint_eq(meter->destroyed, 2);
    ck_assert(!bmc->is_interrupted);
}
END_TEST

static int in_child(bool begins)
{
    struct joule_sensor *mine;

    joule_sensor_destroy(sensor);
    /* The parent's meter is not interrupted, and waited for neither. */
    if (bmc->is_interrupted || meter->destroyed != 1)
        return __LINE__;
    if (!begins)
        return 0;
    mine = create_with(MS, false);
    bmc->hangs = false;
    for (int i = 0; i < 5000 && r[0].state != JOULE_READING_OK; i++) {
        joule_sensor_read(mine, false, r);
        usleep(1000);
    }
    joule_sensor_destroy(mine);
    return r[0].state == JOULE_READING_OK ? 0 : __LINE__;
}

START_TEST(destroyed_in_a_child)
{
    int64_t begin_ns;
    int status;
    pid_t pid;

    begin_silence();
    pid = fork();
    if (pid == 0) {
        begin_ns = kernel_ns();
        status = in_child(false);
        _exit(status ? 1 : kernel_ns() - begin_ns > 5 * S ? 2 : 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    bmc->now_ns += S;
    end_silence();
    ck_assert_uint_eq(r[0].uj, 100000000);
    pass(S);
    ck_assert_uint_eq(r[0].uj, 200000000);
}
END_TEST

/* Sometimes while the thread has its lock. */
START_TEST(destroyed_in_many_children)
{
    int status;
    pid_t pid;

    measure();
    for (int i = 0; i < 100; i++) {
        meter->destroyed = 0;
        read_now(false);
        pid = fork();
        if (pid == 0) {
            alarm(20);
            _exit(in_child(false) ? 1 : 0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
    }
    pass(S);
    ck_assert_uint_eq(r[0].uj, 100000000);
}
END_TEST

/* A process that has become another one before it asked (a daemon). */
START_TEST(begun_in_a_child)
{
    int status;
    pid_t pid;

    ck_assert_uint_eq(bmc->reads, 0);
    pid = fork();
    if (pid == 0) {
        memset(r, 0, sizeof(r));
        _exit(in_child(true) ? 1 : 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    bmc->is_interrupted = false;
    bmc->reads = 0;
    measure();
    ck_assert_uint_eq(r[0].state, JOULE_READING_OK);
}
END_TEST

START_TEST(remarks)
{
    bmc->remark = "connected to 127.0.0.1";
    measure();
    ck_assert_int_eq(count_told("info: connected to 127.0.0.1"), 1);
    bmc->text = "no answer";
    bmc->error = ETIMEDOUT;
    bmc->remark = "starting anew";
    measure();
    ck_assert_int_eq(count_told("info: starting anew"), 1);
    ck_assert_int_eq(count_told("problem: no reading of power: no answer"), 1);
    ck_assert_int_eq(told, 3);
}
END_TEST

/* The thread alone. */
START_TEST(news)
{
    static struct joule_power power[JOULE_DOMAINS_MAX];
    struct joule_meter_thread *t;
    enum joule_event event;
    struct joule_error text;

    t = joule_meter_thread_create(&bmc->meter, MS, GAP, false);
    ck_assert_ptr_nonnull(t);
    bmc->remark = "one";
    joule_meter_thread_take(t, power);
    fake_power_settle(bmc);
    bmc->text = "no answer";
    bmc->error = ETIMEDOUT;
    fake_power_settle(bmc);
    /* A failure after the power, and the remark is not lost. */
    ck_assert_int_eq(joule_meter_thread_take(t, power), JOULE_METER_POWER);
    ck_assert_double_eq(power[1].watts, 40);
    ck_assert_int_eq(power[0].mono_ns, T0);
    ck_assert_int_eq(joule_meter_thread_remark(t, &event, &text), 1);
    ck_assert_str_eq(text.text, "one");
    ck_assert_int_eq(joule_meter_thread_remark(t, &event, &text), 1);
    ck_assert_ptr_nonnull(strstr(text.text, "no answer"));
    ck_assert_int_eq(joule_meter_thread_remark(t, &event, &text), 0);
    fake_power_settle(bmc);
    ck_assert_int_eq(joule_meter_thread_take(t, power), JOULE_METER_FAILURE);
    ck_assert_int_eq(joule_meter_thread_remark(t, &event, &text), 0);
    /* Power after a failure: that is over. */
    bmc->error = 0;
    bmc->watts[1] = 41;
    fake_power_settle(bmc);
    ck_assert_int_eq(joule_meter_thread_take(t, power), JOULE_METER_POWER);
    ck_assert_double_eq(power[1].watts, 41);
    ck_assert_int_eq(joule_meter_thread_remark(t, &event, &text), 1);
    ck_assert_ptr_nonnull(strstr(text.text, "answers again"));
    /* Nothing is told twice. */
    bmc->hangs = true;
    while (bmc->waits == 0)
        usleep(1000);
    joule_meter_thread_take(t, power);
    ck_assert_int_eq(joule_meter_thread_take(t, power), JOULE_METER_NOTHING);
    joule_meter_thread_destroy(t);
}
END_TEST

/* More remarks than there is room for wait for their turn. */
static _Atomic unsigned remarks_left;

static int talk(struct joule_meter *m, struct joule_error *ret)
{
    (void)m;
    if (remarks_left == 0)
        return 0;
    snprintf(ret->text, sizeof(ret->text), "remark %u", remarks_left--);
    return 1;
}

START_TEST(many_remarks)
{
    struct joule_meter_ops ops = meter_ops;

    ops.remark = talk;
    bmc->meter.ops = &ops;
    remarks_left = 13;
    for (int i = 0; i < 6; i++)
        measure();
    ck_assert_int_eq(told, 13);
    ck_assert_str_eq(texts[0], "info: remark 13");
    ck_assert_str_eq(texts[12], "info: remark 1");
    joule_sensor_destroy(sensor);
    sensor = NULL;
}
END_TEST

/* -- another process goes on -------------------------------------------- */

START_TEST(goes_on)
{
    measure();
    bmc->watts[0] = 300;
    pass(2 * S);
    copy_state();
    ck_assert_uint_eq(state.domain_key, joule_domains_key(bmc->domain, 2));
    ck_assert_uint_eq(state.counters, 0);
    ck_assert_uint_eq(state.integrators, 2);
    ck_assert_uint_eq(state.is_fused, 0);
    become(create_with(MS, false));
    bmc->now_ns += 20 * S;
    bmc->hangs = true;
    ck_assert(joule_sensor_resume(sensor, &state));
    /* The energy is there at once, the power is not. */
    while (bmc->waits == 0)
        read_now(false);
    ck_assert_uint_eq(r[0].state, JOULE_READING_STALE);
    ck_assert_uint_eq(r[0].mw, JOULE_MW_UNKNOWN);
    ck_assert_uint_eq(r[0].uj, 400000000 + UINT64_C(6000000000));
    bmc->watts[0] = 500;
    end_silence();
    ck_assert_uint_eq(r[0].uj, 400000000 + UINT64_C(8000000000));
    ck_assert_uint_eq(r[0].mw, 500000);
    ck_assert_uint_eq(r[1].uj, 22 * 40000000);
    ck_assert_int_eq(r[0].began_ns, T0);
    ck_assert_int_eq(r[0].gap_ns, 20 * S);
    ck_assert_int_eq(told, 0);
}
END_TEST

/* How long the last process has not measured is known. */
START_TEST(goes_on_in_an_outage)
{
    measure();
    copy_state();
    become(create_with(MS, false));
    ck_assert(joule_sensor_resume(sensor, &state));
    bmc->text = "no answer";
    bmc->error = ETIMEDOUT;
    pass(10 * S);
    ck_assert_int_eq(count_told("energy goes on with the last power"), 1);
    bmc->error = 0;
    measure();
    ck_assert_int_eq(count_told("info: the BMC answers again after 10 s; the "
                                "energy of that time is estimated"),
                     1);
}
END_TEST

/* As slurmstepd does: the states of slurmd, again and again. */
START_TEST(follows)
{
    struct joule_sensor *follower = create_with(0, false);
    struct joule_reading f[FAKE_LABELS_MAX];
    unsigned reads;

    for (int i = 0; i < 20; i++) {
        bmc->watts[0] = 100 + 10 * i;
        pass(S);
        copy_state();
        ck_assert(joule_sensor_resume(follower, &state));
        ck_assert_int_eq(joule_sensor_read(follower, false, f), bmc->now_ns);
        ck_assert_mem_eq(f, r, 2 * sizeof(f[0]));
        bmc->hangs = true;
        while (bmc->waits == 0)
            joule_sensor_read(sensor, false, r);
        bmc->now_ns += S / 2;
        reads = bmc->reads;
        read_now(false);
        joule_sensor_read(follower, false, f);
        ck_assert_mem_eq(f, r, 2 * sizeof(f[0]));
        ck_assert_uint_eq(bmc->reads, reads);
        bmc->hangs = false;
    }
    joule_sensor_destroy(follower);
}
END_TEST

/* A state with less energy corrects what was carried on. */
START_TEST(follows_a_correction)
{
    struct joule_sensor *follower = create_with(0, false);
    struct joule_reading f[FAKE_LABELS_MAX];

    begin_silence();
    copy_state();
    ck_assert(joule_sensor_resume(follower, &state));
    bmc->now_ns += 2 * S;
    joule_sensor_read(follower, false, f);
    ck_assert_uint_eq(f[0].uj, 200000000);
    bmc->watts[0] = 50;
    end_silence();
    copy_state();
    ck_assert(joule_sensor_resume(follower, &state));
    joule_sensor_read(follower, false, f);
    ck_assert_uint_eq(f[0].uj, 150000000);
    ck_assert_uint_eq(f[0].mw, 50000);
    joule_sensor_destroy(follower);
}
END_TEST

/* What is refused changes nothing. */
static void check_refused(const struct joule_sensor_state *bad, size_t i)
{
    static struct joule_sensor_state before;
    struct joule_reading reading[FAKE_LABELS_MAX];

    before = sensor->state;
    joule_sensor_read(sensor, false, r);
    ck_assert_msg(!joule_sensor_resume(sensor, bad), "case %zu", i);
    ck_assert_mem_eq(&sensor->state, &before, sizeof(before));
    joule_sensor_read(sensor, false, reading);
    ck_assert_mem_eq(reading, r, 2 * sizeof(r[0]));
}

START_TEST(of_other_domains)
{
    static struct joule_sensor_state bad;

    measure();
    pass(S);
    copy_state();
    become(create_with(0, false));
    ck_assert(joule_sensor_resume(sensor, &state));
    bad = state;
    bad.domain_key++;
    check_refused(&bad, 0);
    bad = state;
    bad.integrators = 1;
    check_refused(&bad, 1);
    bad.integrators = 3;
    check_refused(&bad, 2);
    bad.integrators = UINT64_MAX;
    check_refused(&bad, 3);
    bad = state;
    bad.counters = 1;
    check_refused(&bad, 4);
    bad = state;
    bad.is_fused = 1;
    check_refused(&bad, 5);
    memset(&bad, 0, sizeof(bad));
    check_refused(&bad, 6);
    memset(&bad, 0xff, sizeof(bad));
    check_refused(&bad, 7);
    ck_assert(joule_sensor_resume(sensor, &state));
}
END_TEST

static void spoil(struct joule_integrator *g, size_t i, int64_t now_ns)
{
    const struct joule_integrator bad[] = {
        {.power_w = NAN},
        {.power_w = INFINITY},
        {.power_w = -1},
        {.power_w = JOULE_POWER_MAX_W * 2},
        {.rest_uj = NAN},
        {.rest_uj = 1},
        {.rest_uj = -0.5},
        {.began_ns = -1},
        {.began_ns = now_ns + 1, .read_ns = now_ns + 1},
        {.began_ns = now_ns - 1, .read_ns = now_ns - 2},
        {.read_ns = now_ns + 1},
        {.read_ns = INT64_MAX},
        {.read_ns = INT64_MIN},
        {.changed_ns = now_ns + 1},
        {.changed_ns = INT64_MIN},
        {.gap_ns = -1},
        {.gap_ns = INT64_MAX},
    };
    const struct joule_integrator *b = &bad[i];

    ck_assert_uint_lt(i, COUNT(bad));
    if (b->power_w != 0)
        g->power_w = b->power_w;
    if (b->rest_uj != 0)
        g->rest_uj = b->rest_uj;
    if (b->began_ns)
        g->began_ns = b->began_ns;
    if (b->read_ns)
        g->read_ns = b->read_ns;
    if (b->changed_ns)
        g->changed_ns = b->changed_ns;
    if (b->gap_ns)
        g->gap_ns = b->gap_ns;
}

START_TEST(without_sense)
{
    static struct joule_sensor_state bad;

    measure();
    pass(S);
    copy_state();
    become(create_with(0, false));
    ck_assert(joule_sensor_resume(sensor, &state));
    for (size_t i = 0; i < 17; i++)
        for (size_t k = 0; k < 2; k++) {
            bad = state;
            spoil(&bad.integrator[k], i, bmc->now_ns);
            check_refused(&bad, i);
        }
}
END_TEST

/* Whatever is resumed, what follows has a definite value, and the next
 * measurement is one. */
START_TEST(random_states)
{
    uint64_t d = dice_seed();
    int resumed = 0;

    measure();
    pass(S);
    copy_state();
    for (int i = 0; i < 3000; i++) {
        static struct joule_sensor_state bad;
        unsigned char *bytes = (unsigned char *)bad.integrator;
        struct joule_sensor *follower = create_with(0, false);

        bad = state;
        for (uint64_t n = dice(&d, 4) + 1; n > 0; n--)
            bytes[dice(&d, 2 * sizeof(bad.integrator[0]))] ^=
                (unsigned char)(1 << dice(&d, 8));
        if (joule_sensor_resume(follower, &bad)) {
            resumed++;
            joule_sensor_read(follower, false, r);
            ck_assert_int_ge(r[0].gap_ns, 0);
            ck_assert(r[0].mw == JOULE_MW_UNKNOWN ||
                      r[0].mw <= JOULE_POWER_MAX_W * 1000);
        }
        joule_sensor_destroy(follower);
    }
    ck_assert_int_gt(resumed, 100);
    pass(S);
    ck_assert_uint_eq(r[0].uj, 200000000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("meter_sensor");
    TCase *bad = tcase_create("no power");
    TCase *energy = tcase_create("energy");
    TCase *thread = tcase_create("thread");
    TCase *resume = tcase_create("resume");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(bad, setup, teardown);
    tcase_set_timeout(bad, 60);
    tcase_add_test(bad, no_memory);
    tcase_add_test(bad, destroy_null);
    tcase_add_test(bad, no_thread);
    tcase_add_test(bad, never_answers);
    tcase_add_test(bad, silent_failures);
    tcase_add_test(bad, fails);
    tcase_add_test(bad, many_sentences);
    tcase_add_loop_test(bad, faults, 1, JOULE_POWER_STATUS_COUNT);
    tcase_add_loop_test(bad, fault_of_a_label, 1, JOULE_POWER_STATUS_COUNT);
    tcase_add_loop_test(bad, fault_from_the_beginning, 1,
                        JOULE_POWER_STATUS_COUNT);
    tcase_add_test(bad, no_numbers);
    tcase_add_test(bad, outages);
    tcase_add_test(bad, short_outages);
    tcase_add_test(bad, stuck);
    tcase_add_test(bad, older_measurement);
    suite_add_tcase(suite, bad);

    tcase_add_checked_fixture(energy, setup, teardown);
    tcase_set_timeout(energy, 60);
    tcase_add_test(energy, head);
    tcase_add_test(energy, trapezoids);
    tcase_add_test(energy, nothing_is_rounded);
    tcase_add_test(energy, carried_on_and_corrected);
    tcase_add_test(energy, carried_on_for_so_long);
    tcase_add_test(energy, stale_and_back);
    tcase_add_test(energy, late_answers);
    tcase_add_test(energy, no_carry);
    tcase_add_test(energy, power_of_the_past);
    tcase_add_test(energy, edge);
    tcase_add_test(energy, edges_elsewhere);
    tcase_add_test(energy, edge_just_before);
    tcase_add_test(energy, many_edges);
    tcase_add_test(energy, another_sensor);
    suite_add_tcase(suite, energy);

    tcase_add_checked_fixture(thread, setup, teardown);
    tcase_set_timeout(thread, 60);
    tcase_add_loop_test(thread, never_delayed, 0, 2);
    tcase_add_test(thread, destroy_at_any_time);
    tcase_add_test(thread, not_asked_at_the_end);
    tcase_add_test(thread, begins_with_the_first_read);
    tcase_add_test(thread, pace);
    tcase_add_test(thread, never_asked);
    tcase_add_test(thread, destroyed_in_a_child);
    tcase_add_test(thread, destroyed_in_many_children);
    tcase_add_test(thread, begun_in_a_child);
    tcase_add_test(thread, remarks);
    tcase_add_test(thread, news);
    tcase_add_test(thread, many_remarks);
    suite_add_tcase(suite, thread);

    tcase_add_checked_fixture(resume, setup, teardown);
    tcase_set_timeout(resume, 60);
    tcase_add_test(resume, goes_on);
    tcase_add_test(resume, goes_on_in_an_outage);
    tcase_add_test(resume, follows);
    tcase_add_test(resume, follows_a_correction);
    tcase_add_test(resume, of_other_domains);
    tcase_add_test(resume, without_sense);
    tcase_add_test(resume, random_states);
    suite_add_tcase(suite, resume);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

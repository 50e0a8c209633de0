/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sensor records as no simulator gives them: common/sensors/ipmi*.c over a link
 * that is played here.
 */
#include "common/sensors/ipmi.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/sensors/ipmi_link.h"

#define RECORDS_MAX 64

/* The BMC.  Each test has a process, and thus a BMC, of its own. */
static struct {
    struct {
        uint16_t id;
        uint8_t bytes[80];
    } record[RECORDS_MAX];
    unsigned count;
    uint8_t chunk; /* gives no more at a time; 0: all */
    bool no_repository, no_reservation, circle, hangs;
    unsigned lose_reservations; /* so many more */
    uint16_t reservation;
    uint8_t raw;
    unsigned messages, opened;
} bmc;

static struct joule_ipmi_config config;
static struct joule_ipmi_link *link_of; /* the one that was made last */
static struct joule_wire_reply reply;
static struct joule_error err;

/* ---- the link ---- */

static struct ipmi_ctx *const an_open_one = (struct ipmi_ctx *)&bmc;

int joule_ipmi_link_init(struct joule_ipmi_link *l,
                         const struct joule_ipmi_config *c,
                         struct joule_error *e)
{
    (void)e;
    *l = (struct joule_ipmi_link){.config = c};
    link_of = l;
    return 0;
}

int joule_ipmi_link_open(struct joule_ipmi_link *l, bool lookup,
                         struct joule_error *e)
{
    (void)lookup;
    if (bmc.hangs)
        return joule_error_set(e, ETIMEDOUT, "no answer");
    l->ctx = an_open_one;
    bmc.opened++;
    return 0;
}

void joule_ipmi_link_close(struct joule_ipmi_link *l)
{
    l->ctx = NULL;
}

static int index_of(unsigned id)
{
    for (unsigned i = 0; i < bmc.count; i++)
        if (bmc.record[i].id == id || id == 0)
            return (int)i;
    return -1;
}

static int get_record(const uint8_t *q, uint8_t *rs)
{
    int i = index_of(q[2] | (unsigned)q[3] << 8);
    size_t size, offset = q[4], want = q[5];
    unsigned next;

    if (i < 0) {
        rs[0] = 0xCB;
        return 1;
    }
    size = 5u + bmc.record[i].bytes[4];
    if (offset > 0 && bmc.lose_reservations > 0) {
        bmc.lose_reservations--;
        bmc.reservation++;
    }
    if (offset > 0 && !bmc.no_reservation &&
        (q[0] | (unsigned)q[1] << 8) != bmc.reservation) {
        rs[0] = 0xC5;
        return 1;
    }
    if ((bmc.chunk && want > bmc.chunk) || offset > size) {
        rs[0] = 0xCA;
        return 1;
    }
    if (want > size - offset)
        want = size - offset;
    next = (unsigned)i + 1 < bmc.count ? bmc.record[i + 1].id
           : bmc.circle                ? bmc.record[0].id
                                       : 0xFFFF;
    rs[0] = 0;
    rs[1] = (uint8_t)next;
    rs[2] = (uint8_t)(next >> 8);
    memcpy(rs + 3, bmc.record[i].bytes + offset, want);
    return 3 + (int)want;
}

int joule_ipmi_link_ask(struct joule_ipmi_link *l,
                        const struct joule_ipmi_question *q,
                        uint8_t rs[JOULE_IPMI_ANSWER_MAX],
                        struct joule_error *e)
{
    ck_assert_ptr_nonnull(l->ctx);
    memset(rs, 0, JOULE_IPMI_ANSWER_MAX);
    bmc.messages++;
    l->asked_ns = joule_clock_mono_ns(&joule_clock_system);
    if (bmc.hangs) {
        l->ctx = NULL;
        return joule_error_set(e, ETIMEDOUT, "no answer");
    }
    switch (q->net_fn << 8 | q->cmd) {
    case 0x0A22:
        bmc.reservation++;
        rs[0] = bmc.no_reservation ? 0xC1 : 0;
        rs[1] = (uint8_t)bmc.reservation;
        rs[2] = (uint8_t)(bmc.reservation >> 8);
        return rs[0] ? 1 : 3;
    case 0x0A23:
        rs[0] = 0xC1;
        return bmc.no_repository ? 1 : get_record(q->data, rs);
    case 0x042D:
        rs[1] = bmc.raw;
        rs[2] = 0xC0;
        return 4;
    default:
        rs[0] = 0xC1;
        return 1;
    }
}

/* ---- the test's side ---- */

static void add_record(uint16_t id, const char *name, uint8_t m, uint8_t unit)
{
    uint8_t *r = bmc.record[bmc.count].bytes;

    bmc.record[bmc.count++].id = id;
    memset(r, 0, sizeof(bmc.record[0].bytes));
    r[0] = (uint8_t)id;
    r[1] = (uint8_t)(id >> 8);
    r[2] = 0x51;
    r[3] = 1;
    r[4] = (uint8_t)(43 + strlen(name));
    r[5] = 0x20;
    r[7] = (uint8_t)id;
    r[8] = 7; /* the system board */
    r[21] = unit;
    r[24] = m;
    r[47] = (uint8_t)(0xC0 | strlen(name));
    memcpy(r + 48, name, strlen(name));
}

static void want(enum joule_ipmi_sensor_kind kind, const char *name)
{
    struct joule_ipmi_sensor *s = &config.sensor[config.sensor_count++];

    s->kind = kind;
    strcpy(s->name, name);
}

static struct joule_ipmi *ipmi;

static void setup(void)
{
    memset(&bmc, 0, sizeof(bmc));
    memset(&config, 0, sizeof(config));
    config.driver = JOULE_IPMI_DRIVER_LAN_2_0;
    config.period_ns = JOULE_NS_PER_MS; /* records are looked at each 60 ms */
    config.answer_ns = JOULE_NS_PER_S;
    config.connect_ns = JOULE_NS_PER_S;
    config.label_count = 1;
    bmc.raw = 100;
    add_record(7, "Temp", 1, 1);
    add_record(300, "Node", 2, 6);
    add_record(12, "PSU1", 4, 6);
    ipmi = joule_ipmi_create(&config, &err);
    ck_assert_ptr_nonnull(ipmi);
}

static void teardown(void)
{
    joule_ipmi_destroy(ipmi);
}

static void connects(void)
{
    int rc = joule_ipmi_connect(ipmi, false, &reply, &err);

    ck_assert_msg(rc == 0, "%s", err.text);
}

static void refuses(int errnum, const char *word)
{
    ck_assert_int_eq(joule_ipmi_connect(ipmi, false, &reply, &err), -1);
    ck_assert_int_eq(errno, errnum);
    ck_assert_msg(strstr(err.text, word), "%s", err.text);
    ck_assert_ptr_null(link_of->ctx);
    ck_assert_int_eq(joule_ipmi_read(ipmi, &reply, &err), -1);
    ck_assert_int_eq(errno, ENOTCONN);
}

static void reads(double watts)
{
    int rc = joule_ipmi_read(ipmi, &reply, &err);

    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert(reply.value[0].watts == watts);
}

START_TEST(no_end)
{
    bmc.circle = true;
    want(JOULE_IPMI_SENSOR_NAME, "PSU9");
    refuses(EBADMSG, "no end");
}
END_TEST

START_TEST(no_repository)
{
    bmc.no_repository = true;
    want(JOULE_IPMI_SENSOR_NAME, "Node");
    refuses(EBADMSG, "C1h");
}
END_TEST

START_TEST(empty_repository)
{
    bmc.count = 0;
    want(JOULE_IPMI_SENSOR_NAME, "Node");
    refuses(ENOENT, "\"Node\"");
    config.sensor[0].kind = JOULE_IPMI_SENSOR_DEFAULT;
    refuses(ENOENT, "watts");
}
END_TEST

START_TEST(reservations_always_lost)
{
    bmc.chunk = 16;
    bmc.lose_reservations = 100000;
    want(JOULE_IPMI_SENSOR_NAME, "Node");
    refuses(EBADMSG, "C5h");
}
END_TEST

START_TEST(gives_little)
{
    static const uint8_t chunks[] = {0, 60, 22, 16, 9, 8, 5};

    want(JOULE_IPMI_SENSOR_NAME, "PSU1");
    for (size_t i = 0; i < sizeof(chunks); i++) {
        bmc.chunk = chunks[i];
        bmc.lose_reservations = 3;
        connects();
        ck_assert_uint_eq(reply.found[0].record_id, 12);
        ck_assert_str_eq(reply.head.text, "");
        reads(400.0);
    }
    bmc.no_reservation = true;
    connects();
}
END_TEST

/* One message a record where the BMC gives it whole. */
START_TEST(few_messages)
{
    want(JOULE_IPMI_SENSOR_NAME, "PSU1");
    connects();
    ck_assert_uint_eq(bmc.messages, 1 + 3); /* reservation */
    bmc.messages = 0;
    reads(400.0);
    ck_assert_uint_eq(bmc.messages, 1);
}
END_TEST

START_TEST(record_damaged)
{
    bmc.record[0].bytes[4] = 20; /* too short for a sensor */
    want(JOULE_IPMI_SENSOR_NAME, "PSU1");
    connects();
    ck_assert_uint_eq(reply.found[0].record_id, 12);
    ck_assert_ptr_nonnull(strstr(reply.head.text, "cannot be read"));
}
END_TEST

START_TEST(software_sensor)
{
    bmc.record[1].bytes[5] = 0x41;
    want(JOULE_IPMI_SENSOR_NAME, "Node");
    refuses(ENOTSUP, "software");
}
END_TEST

START_TEST(non_linear)
{
    bmc.record[1].bytes[23] = 0x70;
    want(JOULE_IPMI_SENSOR_NAME, "Node");
    refuses(ENOTSUP, "not supported");
    /* Nor does it come into question for the default. */
    config.sensor[0].kind = JOULE_IPMI_SENSOR_DEFAULT;
    connects();
    ck_assert_str_eq(reply.found[0].name, "PSU1");
}
END_TEST

/* ---- in the middle of a session ---- */

static const struct timespec look_time = {0, 70 * 1000000L};

/* Somebody looks, and readings end before they become wrong. */
static void expect_stale(void)
{
    nanosleep(&look_time, NULL);
    joule_ipmi_idle(ipmi);
    ck_assert_int_eq(joule_ipmi_read(ipmi, &reply, &err), -1);
    ck_assert_int_eq(errno, ESTALE);
    ck_assert_ptr_nonnull(strstr(err.text, "have changed"));
    ck_assert_int_eq(joule_ipmi_idle(ipmi), -1);
    strcpy(config.sensor[0].found_name, "Node");
    connects();
    ck_assert_str_eq(reply.found[0].name, "Node");
    ck_assert_ptr_nonnull(strstr(reply.head.text, "have changed"));
}

START_TEST(rescaled)
{
    want(JOULE_IPMI_SENSOR_NAME, "Node");
    connects();
    bmc.record[1].bytes[24] = 4;
    expect_stale();
    reads(400.0);
}
END_TEST

START_TEST(reordered)
{
    config.sensor[0].record_id = 300;
    want(JOULE_IPMI_SENSOR_RECORD, "");
    connects();
    bmc.count = 0;
    add_record(300, "CPU", 1, 6);
    add_record(301, "Node", 2, 6);
    add_record(302, "Temp", 1, 1);
    expect_stale();
    ck_assert_uint_eq(reply.found[0].record_id, 301);
    reads(200.0);
}
END_TEST

/* Each look takes one record, in half of the time: two need two looks. */
START_TEST(second_sensor_rescaled)
{
    want(JOULE_IPMI_SENSOR_NAME, "PSU1");
    want(JOULE_IPMI_SENSOR_NAME, "Node");
    connects();
    bmc.record[1].bytes[24] = 4;
    nanosleep(&look_time, NULL);
    joule_ipmi_idle(ipmi);
    nanosleep(&look_time, NULL);
    joule_ipmi_idle(ipmi);
    ck_assert_int_eq(joule_ipmi_read(ipmi, &reply, &err), -1);
    ck_assert_int_eq(errno, ESTALE);
}
END_TEST

/* Thresholds, other sensors: nothing that readings depend on. */
START_TEST(harmless_change)
{
    want(JOULE_IPMI_SENSOR_NAME, "Node");
    connects();
    bmc.record[1].bytes[36] = 200;
    bmc.record[0].bytes[24] = 9;
    nanosleep(&look_time, NULL);
    ck_assert_int_ge(joule_ipmi_idle(ipmi), 0);
    reads(200.0);
    ck_assert_uint_eq(bmc.opened, 1);
}
END_TEST

START_TEST(hangs_while_looking)
{
    want(JOULE_IPMI_SENSOR_NAME, "Node");
    connects();
    bmc.hangs = true;
    nanosleep(&look_time, NULL);
    ck_assert_int_eq(joule_ipmi_idle(ipmi), -1);
    ck_assert_int_eq(joule_ipmi_read(ipmi, &reply, &err), -1);
    ck_assert_int_eq(errno, ETIMEDOUT);
    bmc.hangs = false;
    reads(200.0);
}
END_TEST

/* A device is not opened again: the rights for it may be gone. */
START_TEST(inband_stays_closed)
{
    config.driver = JOULE_IPMI_DRIVER_OPENIPMI;
    want(JOULE_IPMI_SENSOR_NAME, "Node");
    connects();
    reads(200.0);
    bmc.hangs = true;
    ck_assert_int_eq(joule_ipmi_read(ipmi, &reply, &err), -1);
    bmc.hangs = false;
    ck_assert_int_eq(joule_ipmi_read(ipmi, &reply, &err), -1);
    ck_assert_int_eq(errno, ENOTCONN);
    ck_assert_uint_eq(bmc.opened, 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ipmi_find");
    TCase *t = tcase_create("ipmi_find");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, no_end);
    tcase_add_test(t, no_repository);
    tcase_add_test(t, empty_repository);
    tcase_add_test(t, reservations_always_lost);
    tcase_add_test(t, gives_little);
    tcase_add_test(t, few_messages);
    tcase_add_test(t, record_damaged);
    tcase_add_test(t, software_sensor);
    tcase_add_test(t, non_linear);
    tcase_add_test(t, rescaled);
    tcase_add_test(t, reordered);
    tcase_add_test(t, second_sensor_rescaled);
    tcase_add_test(t, harmless_change);
    tcase_add_test(t, hangs_while_looking);
    tcase_add_test(t, inband_stays_closed);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/ipmi_wire.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"

static struct joule_wire_request request;

static void good(void)
{
    struct joule_ipmi_config *c = &request.config;

    memset(&request, 0, sizeof(request));
    request.head.version = JOULE_WIRE_VERSION;
    request.head.type = JOULE_WIRE_OPEN;
    request.head.size = sizeof(request);
    c->driver = JOULE_IPMI_DRIVER_LAN_2_0;
    strcpy(c->host, "bmc1");
    strcpy(c->password, "hush-hush");
    c->period_ns = c->answer_ns = c->connect_ns = JOULE_NS_PER_S;
    c->label_count = 1;
    c->sensor_count = 1;
    c->sensor[0].kind = JOULE_IPMI_SENSOR_DEFAULT;
}

static int check(size_t size)
{
    struct joule_error err = {""};
    void *exact = malloc(size ? size : 1);
    int rc;

    memcpy(exact, &request, size);
    rc = joule_wire_request_check(exact, size, &err);
    free(exact);
    if (rc < 0) {
        ck_assert_int_eq(errno, EPROTO);
        ck_assert_str_ne(err.text, "");
        ck_assert_ptr_null(strstr(err.text, "hush"));
    }
    return rc;
}

START_TEST(sizes)
{
    good();
    for (size_t size = 0; size < sizeof(request); size++)
        ck_assert_int_eq(check(size), -1);
    request.head.size--;
    ck_assert_int_eq(check(sizeof(request)), -1);
    ck_assert_int_eq(check(sizeof(request) - 1), -1);
    good();
    ck_assert_int_eq(check(sizeof(request)), 0);
    request.head.type = JOULE_WIRE_LIST;
    ck_assert_int_eq(check(sizeof(request)), 0);
    ck_assert_int_eq(check(sizeof(request) - 1), -1);
    request.head.type = JOULE_WIRE_READ;
    ck_assert_int_eq(check(sizeof(request)), -1);
    request.head.size = sizeof(struct joule_helper_head);
    ck_assert_int_eq(check(sizeof(struct joule_helper_head)), 0);
}
END_TEST

START_TEST(head)
{
    good();
    request.head.version++;
    ck_assert_int_eq(check(sizeof(request)), -1);
    good();
    request.head.type = 0;
    ck_assert_int_eq(check(sizeof(request)), -1);
    request.head.type = JOULE_WIRE_LIST + 1;
    ck_assert_int_eq(check(sizeof(request)), -1);
    good();
    memset(request.head.text, 'a', sizeof(request.head.text));
    ck_assert_int_eq(check(sizeof(request)), -1);
}
END_TEST

#define BAD(change)                                                            \
    do {                                                                       \
        good();                                                                \
        change;                                                                \
        ck_assert_msg(check(sizeof(request)) == -1, "%s", #change);            \
    } while (0)

START_TEST(config)
{
    struct joule_ipmi_config *c = &request.config;
    unsigned char two = 2;

    BAD(c->driver = JOULE_IPMI_DRIVER_LAN_2_0 + 1);
    BAD(c->driver = -1);
    BAD(c->host[0] = '\0');
    BAD(memset(c->host, 'a', sizeof(c->host)));
    BAD(memset(c->username, 'a', sizeof(c->username)));
    BAD(memset(c->password, 'a', sizeof(c->password)));
    BAD(memset(c->device, 'a', sizeof(c->device)));
    BAD(memset(c->label[15], 'a', sizeof(c->label[15])));
    BAD(c->privilege = 256);
    BAD(c->authentication = 256);
    BAD(c->cipher_suite = 256);
    BAD(c->driver_address = 65536);
    BAD(c->register_spacing = 256);
    BAD(memcpy(&c->no_probe, &two, 1));
    BAD(memcpy(&c->ignore_inactive, &two, 1));
    BAD(memcpy(&c->ignore_scanning, &two, 1));
    BAD(c->sensor_count = 2); /* beside the default */
    BAD(c->period_ns = 0);
    BAD(c->answer_ns = -1);
    BAD(c->connect_ns = INT64_MAX);
    BAD(c->session_timeout_ms = UINT32_MAX);
    BAD(c->retransmission_timeout_ms = UINT32_MAX);
    BAD(c->label_count = 0);
    BAD(c->label_count = JOULE_IPMI_LABELS_MAX + 1);
    BAD(c->sensor_count = 0);
    BAD(c->sensor_count = JOULE_IPMI_SENSORS_MAX + 1);
    BAD(c->sensor_count = UINT32_MAX);
    BAD(c->sensor[0].kind = JOULE_IPMI_SENSOR_DCMI_ENHANCED + 1);
    BAD(c->sensor[0].kind = JOULE_IPMI_SENSOR_NAME);
    BAD(c->sensor[0].label = 1);
    BAD(memset(c->sensor[0].name, 'a', sizeof(c->sensor[0].name)));
    BAD(memset(c->sensor[0].found_name, 'a', sizeof(c->sensor[0].found_name)));
}
END_TEST

START_TEST(inband_needs_no_host)
{
    good();
    request.config.driver = JOULE_IPMI_DRIVER_OPENIPMI;
    request.config.host[0] = '\0';
    ck_assert_int_eq(check(sizeof(request)), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ipmi_wire");
    TCase *t = tcase_create("ipmi_wire");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_test(t, sizes);
    tcase_add_test(t, head);
    tcase_add_test(t, config);
    tcase_add_test(t, inband_needs_no_host);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}

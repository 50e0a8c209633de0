/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The input is a request to the IPMI reader: as it is, and as changes of a good
 * one, each three bytes: where (16 bits) and what.
 */
#include <errno.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/sensors/ipmi_wire.h"
#include "tests/fuzz/fuzz.h"

static void good(struct joule_wire_request *r)
{
    memset(r, 0, sizeof(*r));
    r->head.version = JOULE_WIRE_VERSION;
    r->head.type = JOULE_WIRE_OPEN;
    r->head.size = sizeof(*r);
    r->config.driver = JOULE_IPMI_DRIVER_LAN_2_0;
    strcpy(r->config.host, "bmc1:9001");
    strcpy(r->config.username, "mon");
    r->config.period_ns = JOULE_NS_PER_S;
    r->config.answer_ns = JOULE_NS_PER_S;
    r->config.connect_ns = JOULE_NS_PER_S;
    r->config.label_count = 2;
    r->config.sensor_count = 2;
    r->config.sensor[1].kind = JOULE_IPMI_SENSOR_NAME;
    r->config.sensor[1].label = 1;
    strcpy(r->config.sensor[1].name, "PSU1 PIN");
}

static void ends(const char *text, size_t size)
{
    FUZZ_MUST(memchr(text, '\0', size));
}

/* What the reader relies on. */
static void check_open(const struct joule_wire_request *r)
{
    const struct joule_ipmi_config *c = &r->config;

    ends(r->head.text, sizeof(r->head.text));
    ends(c->host, sizeof(c->host));
    ends(c->username, sizeof(c->username));
    ends(c->password, sizeof(c->password));
    ends(c->device, sizeof(c->device));
    FUZZ_MUST((unsigned)c->driver <= JOULE_IPMI_DRIVER_LAN_2_0);
    FUZZ_MUST(c->period_ns > 0 && c->answer_ns > 0 && c->connect_ns > 0);
    FUZZ_MUST(c->sensor_count >= 1 &&
              c->sensor_count <= JOULE_IPMI_SENSORS_MAX);
    for (uint32_t i = 0; i < c->sensor_count; i++) {
        ends(c->sensor[i].name, sizeof(c->sensor[i].name));
        ends(c->sensor[i].found_name, sizeof(c->sensor[i].found_name));
        FUZZ_MUST((unsigned)c->sensor[i].kind <=
                  JOULE_IPMI_SENSOR_DCMI_ENHANCED);
        FUZZ_MUST(c->sensor[i].label < JOULE_IPMI_LABELS_MAX);
    }
}

static void check(const void *packet, size_t size)
{
    struct joule_error err = {""};
    struct joule_helper_head head;

    if (joule_wire_request_check(packet, size, &err) < 0) {
        FUZZ_MUST(errno == EPROTO);
        fuzz_check_sentence(&err);
        return;
    }
    FUZZ_MUST(size >= sizeof(head));
    memcpy(&head, packet, sizeof(head));
    FUZZ_MUST(head.size == size);
    if (head.type == JOULE_WIRE_OPEN) {
        FUZZ_MUST(size == sizeof(struct joule_wire_request));
        check_open(packet);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct joule_wire_request *request = malloc(sizeof(*request));
    uint8_t *bytes = (uint8_t *)request;

    FUZZ_MUST(request);
    good(request);
    for (size_t i = 0; i + 3 <= size; i += 3)
        bytes[(data[i] | (size_t)data[i + 1] << 8) % sizeof(*request)] =
            data[i + 2];
    check(request, sizeof(*request));
    free(request);
    /* Packets come in aligned memory. */
    bytes = malloc(size ? size : 1);
    FUZZ_MUST(bytes);
    memcpy(bytes, data, size);
    check(bytes, size);
    free(bytes);
    return 0;
}

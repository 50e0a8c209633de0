/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The first byte of the input says what the rest is: 'S' the sensors of
 * EnergyIPMIPowerSensors, 'H' a host pattern, 'W' work-arounds, anything else
 * a file of credentials.
 */
#include <errno.h>
#include <string.h>

#include "common/sensors/ipmi_config.h"
#include "tests/fuzz/fuzz.h"

static void check_text(const char *text, size_t size)
{
    FUZZ_MUST(memchr(text, '\0', size) != NULL);
}

static void check_sensors(const struct joule_ipmi_config *c)
{
    FUZZ_MUST(c->label_count >= 1 && c->label_count <= JOULE_IPMI_LABELS_MAX);
    FUZZ_MUST(c->sensor_count >= c->label_count);
    FUZZ_MUST(c->sensor_count <= JOULE_IPMI_SENSORS_MAX);
    FUZZ_MUST(strcmp(c->label[0], "Node") == 0);
    for (uint32_t i = 0; i < c->label_count; i++) {
        unsigned sensors = 0;

        check_text(c->label[i], sizeof(c->label[i]));
        FUZZ_MUST(c->label[i][0]);
        for (uint32_t k = 0; k < i; k++)
            FUZZ_MUST(strcmp(c->label[i], c->label[k]) != 0);
        for (uint32_t k = 0; k < c->sensor_count; k++)
            sensors += c->sensor[k].label == i;
        FUZZ_MUST(sensors > 0);
    }
    for (uint32_t i = 0; i < c->sensor_count; i++) {
        const struct joule_ipmi_sensor *s = &c->sensor[i];

        FUZZ_MUST(s->label < c->label_count);
        FUZZ_MUST(s->kind <= JOULE_IPMI_SENSOR_DCMI_ENHANCED);
        check_text(s->name, sizeof(s->name));
        FUZZ_MUST((s->kind == JOULE_IPMI_SENSOR_NAME) == (s->name[0] != 0));
        FUZZ_MUST((s->kind == JOULE_IPMI_SENSOR_RECORD) == (s->record_id != 0));
        FUZZ_MUST(s->found_name[0] == '\0');
    }
}

static int parse(char kind, const char *text, size_t len,
                 struct joule_ipmi_config *c, struct joule_error *err)
{
    uint32_t flags;
    int rc;

    switch (kind) {
    case 'S':
        rc = joule_ipmi_sensors_parse(text, c, err);
        if (rc == 0)
            check_sensors(c);
        return rc;
    case 'H':
        rc = joule_ipmi_host_expand(text, "host.example.org", "node", c, err);
        if (rc == 0)
            check_text(c->host, sizeof(c->host));
        return rc;
    case 'W':
        rc = 0;
        for (int d = JOULE_IPMI_DRIVER_ANY; d <= JOULE_IPMI_DRIVER_LAN_2_0; d++)
            rc = joule_ipmi_workarounds_parse(text, (enum joule_ipmi_driver)d,
                                              &flags, err);
        return rc;
    default:
        rc = joule_ipmi_credentials_parse(text, len, c, err);
        if (rc == 0) {
            check_text(c->username, sizeof(c->username));
            check_text(c->password, sizeof(c->password));
            FUZZ_MUST(c->username[0] && c->password[0]);
        }
        return rc;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct joule_ipmi_config c, before;
    struct joule_error err = {""};
    char *text;

    if (size == 0)
        return 0;
    memset(&c, 0xA5, sizeof(c));
    before = c;
    /* In memory of its own: reading beyond the end is seen. */
    text = malloc(size);
    FUZZ_MUST(text);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (parse((char)data[0], text, size - 1, &c, &err) < 0) {
        FUZZ_MUST(errno == EINVAL);
        fuzz_check_sentence(&err);
        FUZZ_MUST(memcmp(&c, &before, sizeof(c)) == 0);
    }
    free(text);
    return 0;
}

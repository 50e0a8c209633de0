/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/ipmi_wire.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/clock.h"

/* Longer is no period and no patience. */
#define TIME_MAX_NS (INT64_C(86400) * JOULE_NS_PER_S)

static bool ends(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

#define ENDS(field) ends(field, sizeof(field))

static bool is_time(int64_t ns)
{
    return ns > 0 && ns <= TIME_MAX_NS;
}

static int check_sensor(const struct joule_ipmi_sensor *s, uint32_t labels,
                        struct joule_error *err)
{
    if ((unsigned)s->kind > JOULE_IPMI_SENSOR_DCMI_ENHANCED)
        return joule_error_set(err, EPROTO,
                               "a request with a sensor of no "
                               "known kind");
    if (s->label >= labels)
        return joule_error_set(err, EPROTO,
                               "a request with a sensor of no label");
    if (!ENDS(s->name) || !ENDS(s->found_name))
        return joule_error_set(err, EPROTO,
                               "a request with a sensor name without end");
    if (s->kind == JOULE_IPMI_SENSOR_NAME && !s->name[0])
        return joule_error_set(err, EPROTO,
                               "a request with a sensor without name");
    return 0;
}

static bool strings_end(const struct joule_ipmi_config *c)
{
    for (size_t i = 0; i < JOULE_IPMI_LABELS_MAX; i++)
        if (!ENDS(c->label[i]))
            return false;
    return ENDS(c->host) && ENDS(c->username) && ENDS(c->password) &&
           ENDS(c->device);
}

static int check_config(const struct joule_ipmi_config *c,
                        struct joule_error *err)
{
    bool lan = c->driver == JOULE_IPMI_DRIVER_LAN ||
               c->driver == JOULE_IPMI_DRIVER_LAN_2_0;

    if ((unsigned)c->driver > JOULE_IPMI_DRIVER_LAN_2_0)
        return joule_error_set(err, EPROTO,
                               "a request with a driver of no known kind");
    if (!strings_end(c))
        return joule_error_set(err, EPROTO,
                               "a request with a string without "
                               "end");
    if (lan && !c->host[0])
        return joule_error_set(err, EPROTO, "a request without a host");
    if (c->privilege > UINT8_MAX || c->authentication > UINT8_MAX ||
        c->cipher_suite > UINT8_MAX || c->driver_address > UINT16_MAX ||
        c->register_spacing > UINT8_MAX)
        return joule_error_set(err, EPROTO,
                               "a request with a number out of range");
    if (!is_time(c->period_ns) || !is_time(c->answer_ns) ||
        !is_time(c->connect_ns) ||
        c->session_timeout_ms > TIME_MAX_NS / JOULE_NS_PER_MS ||
        c->retransmission_timeout_ms > TIME_MAX_NS / JOULE_NS_PER_MS)
        return joule_error_set(err, EPROTO,
                               "a request with a time out of range");
    if (c->label_count < 1 || c->label_count > JOULE_IPMI_LABELS_MAX ||
        c->sensor_count < 1 || c->sensor_count > JOULE_IPMI_SENSORS_MAX)
        return joule_error_set(err, EPROTO,
                               "a request with %u labels and %u sensors",
                               c->label_count, c->sensor_count);
    for (uint32_t i = 0; i < c->sensor_count; i++) {
        if (check_sensor(&c->sensor[i], c->label_count, err) < 0)
            return -1;
        if (c->sensor[i].kind == JOULE_IPMI_SENSOR_DEFAULT &&
            c->sensor_count > 1)
            return joule_error_set(err, EPROTO,
                                   "a request with sensors beside the default");
    }
    return 0;
}

/* A bool that is neither 0 nor 1 may be both at once. */
static bool is_bool(const bool *field)
{
    unsigned char byte;

    memcpy(&byte, field, 1);
    return byte <= 1;
}

int joule_wire_request_check(const void *packet, size_t size,
                             struct joule_error *err)
{
    const struct joule_helper_head *head = packet;
    const struct joule_wire_open *request = packet;
    size_t need;

    if (size < sizeof(*head))
        return joule_error_set(err, EPROTO, "a request of %zu bytes", size);
    if (head->version != JOULE_WIRE_VERSION)
        return joule_error_set(err, EPROTO,
                               "a request of version %u, not %d: the reader "
                               "is of another build",
                               head->version, JOULE_WIRE_VERSION);
    switch (head->type) {
    case JOULE_WIRE_OPEN:
    case JOULE_WIRE_LIST:
        need = sizeof(struct joule_wire_open);
        break;
    case JOULE_WIRE_READ:
        need = sizeof(struct joule_wire_read);
        break;
    default:
        return joule_error_set(err, EPROTO, "a request of type %u", head->type);
    }
    if (head->size != size || size != need)
        return joule_error_set(err, EPROTO,
                               "a request of %zu bytes that says %u and "
                               "should have %zu",
                               size, head->size, need);
    if (head->type == JOULE_WIRE_READ)
        return 0;
    if (!is_bool(&request->config.no_probe) ||
        !is_bool(&request->config.ignore_inactive) ||
        !is_bool(&request->config.ignore_scanning))
        return joule_error_set(err, EPROTO,
                               "a request with a number out of range");
    if (!ENDS(head->text))
        return joule_error_set(err, EPROTO,
                               "a request with a string without end");
    return check_config(&request->config, err);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/ipmi_wire.h"

#include <errno.h>
#include <string.h>

int joule_wire_request_check(const void *packet, size_t size,
                             struct joule_error *err)
{
    const struct joule_helper_head *head = packet;
    const struct joule_wire_request *request = packet;
    size_t need = sizeof(*head);

    if (size < sizeof(*head))
        return joule_error_set(err, EPROTO, "a request of %zu bytes", size);
    if (head->version != JOULE_WIRE_VERSION)
        return joule_error_set(err, EPROTO,
                               "a request of version %u, not %d: the reader "
                               "is of another build",
                               head->version, JOULE_WIRE_VERSION);
    if (head->type < JOULE_WIRE_OPEN || head->type > JOULE_WIRE_LIST)
        return joule_error_set(err, EPROTO, "a request of type %u", head->type);
    if (head->type != JOULE_WIRE_READ)
        need = sizeof(*request);
    if (head->size != size || size != need)
        return joule_error_set(err, EPROTO,
                               "a request of %zu bytes that says %u and "
                               "should have %zu",
                               size, head->size, need);
    if (head->type != JOULE_WIRE_READ &&
        (!memchr(head->text, '\0', sizeof(head->text)) ||
         !joule_ipmi_config_is_sound(&request->config)))
        return joule_error_set(err, EPROTO,
                               "a request with a configuration that cannot be");
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ipmi_wire.h - what slurmd's sampler and the reader process say to each
 * other over a SOCK_SEQPACKET socket pair, descriptor 0 of the reader: one
 * request, one reply, each a packet (common/base/helper.h).
 *
 * The reader ends when the socket is closed.  It answers in the order of the
 * requests.  With an OPEN or LIST comes the descriptor of the credentials file
 * (SCM_RIGHTS), where there is one; the head's text is then the file's name.
 *
 * Errors of replies (errno values):
 *   ESTALE    to OPEN: this process has given up the rights that opening the
 *             device needs; it ends now, start another.
 *             to READ: the BMC's sensor records have changed; send an OPEN.
 *   ENOTCONN  to READ: nothing is open; send an OPEN.
 *   EPROTO    the request was not one of this protocol, or a BMC's answer none
 *             of its.
 * After any other error of a READ the next READ connects again by itself where
 * the BMC is on the LAN, an OPEN always does.  In-band the reader ends after a
 * READ that failed, and always after one of the readings beyond the first did:
 * nobody may be waiting for that.
 */
#ifndef JOULE_SENSORS_IPMI_WIRE_H
#define JOULE_SENSORS_IPMI_WIRE_H

#include "common/base/helper.h"
#include "common/energy/domain.h"
#include "common/sensors/ipmi_config.h"

#define JOULE_WIRE_VERSION 6

enum joule_wire_type {
    JOULE_WIRE_OPEN = 1, /* connect (again) with this configuration */
    JOULE_WIRE_READ = 2, /* one reading of every sensor */
    JOULE_WIRE_LIST = 3, /* connect with this configuration, and name every
                            sensor in watts that the BMC has, with one reading,
                            whatever sensors the configuration asks for; the
                            next READ fails with ENOTCONN */
};

/* OPEN and LIST; a READ is the head alone. */
struct joule_wire_request {
    struct joule_helper_head head;
    struct joule_ipmi_config config;
};

/* What a sensor turned out to be. */
struct joule_wire_found {
    enum joule_ipmi_sensor_kind kind; /* RECORD, DCMI or DCMI_ENHANCED */
    uint16_t record_id;
    uint8_t number;
    uint8_t entity, instance; /* RECORD: as in struct joule_sdr */
    char name[JOULE_IPMI_NAME_SIZE];
    char unit[16]; /* "W" */
    double step_w; /* between two raw values; 0: unknown */
    double max_w;  /* the highest raw value; 0: unknown */
};

struct joule_wire_value {
    double watts;
    int64_t begin_ns, end_ns; /* of the request (joule_clock_mono_ns) */
    enum joule_power_status status;
    uint32_t code; /* REFUSED: the completion code, if known */
};

struct joule_wire_reply {
    struct joule_helper_head head; /* OPEN: the text may be a remark */
    uint32_t count; /* of sensors: as in the request, or what was chosen for
                       DEFAULT; LIST: all */
    uint32_t more;  /* LIST: for which there was no room */
    struct joule_wire_value value[JOULE_IPMI_SENSORS_MAX]; /* READ, LIST */
    struct joule_wire_found found[JOULE_IPMI_SENSORS_MAX]; /* OPEN, LIST */
};

/* A READ's reply ends here. */
#define JOULE_WIRE_VALUES_SIZE offsetof(struct joule_wire_reply, found)

/* See whether packet[size] is a request that can be obeyed.  0, or -1 with
 * EPROTO and a sentence that quotes nothing of it. */
int joule_wire_request_check(const void *packet, size_t size,
                             struct joule_error *err);

#endif

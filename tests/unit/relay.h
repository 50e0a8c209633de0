/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * relay.h - a UDP relay on loopback between a program and a BMC: counts the
 * packets, and delays, loses or doubles them on request.
 *
 * A process of its own that dies with the one that started it; the fields are
 * in memory that both share and may be changed while it runs.
 */
#ifndef JOULE_TESTS_RELAY_H
#define JOULE_TESTS_RELAY_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

struct relay {
    _Atomic unsigned requests; /* towards the BMC */
    _Atomic unsigned answers;
    _Atomic unsigned delay_us; /* of each answer */
    _Atomic unsigned lose;     /* so many of the next answers; UINT_MAX: all */
    _Atomic unsigned copies;   /* of each answer, beside itself */
    _Atomic unsigned corrupt;  /* so many of the next answers */
    uint16_t port;             /* what the program connects to */
    pid_t pid;
};

/* A relay to 127.0.0.1:bmc_port that does nothing to the packets.  A failure
 * ends the program. */
struct relay *relay_create(uint16_t bmc_port);

void relay_destroy(struct relay *relay);

#endif

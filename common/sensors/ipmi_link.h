/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ipmi_link.h - one connection to a BMC: messages through FreeIPMI, each with
 * a deadline.
 *
 * Its .c is the only file that includes FreeIPMI.  It is for a process of its
 * own: SIGALRM's handler and a timer cut calls of FreeIPMI short.
 * (An in-band call cannot be cut: the kernel ends it after a few seconds, and
 * whoever waits for this process may kill it.)
 */
#ifndef JOULE_SENSORS_IPMI_LINK_H
#define JOULE_SENSORS_IPMI_LINK_H

#include <time.h>

#include "common/sensors/ipmi_config.h"

/* A BMC drops a session after 60 s +- 3 s without a message
 * (IPMI 2.0, 6.12.15), some after 30 s: no pause is longer than this. */
#define JOULE_IPMI_IDLE_NS INT64_C(15000000000)

/* The longest answer: completion code and data. */
#define JOULE_IPMI_ANSWER_MAX 300

struct joule_ipmi_question {
    uint8_t net_fn;
    uint8_t lun;
    uint8_t cmd;
    uint8_t owner;   /* slave address; 0 or 20h: the BMC itself */
    uint8_t channel; /* of the owner */
    uint8_t size;    /* of data */
    uint8_t data[8];
};

struct joule_ipmi_link {
    const struct joule_ipmi_config *config; /* each opening goes by it */
    int64_t deadline_ns;  /* of all that is asked; set by the caller
                            (joule_clock_mono_ns of joule_clock_system) */
    struct ipmi_ctx *ctx; /* NULL: not open */
    bool wants_ipc;       /* the driver asks for semaphores of root */
    int64_t asked_ns;     /* when the last message ended */
    int64_t slowest_ns;   /* recent answer; decays by an eighth with each */
    timer_t timer;        /* from here on ipmi_link.c's own */
    unsigned retry_ms;    /* before FreeIPMI asks again */
    unsigned quick;       /* answers in a row far below retry_ms */
    char address[300];    /* numeric, with the port; or empty */
};

/* [config] is kept, not copied: the password stays where it is.  One link a
 * process: it takes SIGALRM, and a timer until the process ends.  -1 with errno
 * and a sentence. */
int joule_ipmi_link_init(struct joule_ipmi_link *link,
                         const struct joule_ipmi_config *config,
                         struct joule_error *err);

/*
 * Close and connect.  The host's name is looked up at the first time, or where
 * [lookup] says so; that may take as long as the resolver likes.
 * -1 with a sentence that names the user where it matters, never the password:
 *   EACCES       user or password are wrong
 *   EPERM        the user may not have the privilege; no rights to the device
 *   ENODEV       no such device
 *   EHOSTUNREACH the host has no address
 *   ETIMEDOUT    no answer before the deadline
 *   EBUSY        BMC or driver are busy
 *   EPROTO       others
 */
int joule_ipmi_link_open(struct joule_ipmi_link *link, bool lookup,
                         struct joule_error *err);

/* Tell the BMC that the session is over; a moment at most.  errno is kept. */
void joule_ipmi_link_close(struct joule_ipmi_link *link);

/*
 * Ask and wait for the answer: its size (>= 1), rs[0] is the completion code.
 * -1: there is none, and the link is closed (but not if there was no time left
 * to ask); a sentence and errno
 *   ETIMEDOUT  not before the deadline
 *   ENOTCONN   the session is gone, or was not open
 *   EPROTO     others
 */
int joule_ipmi_link_ask(struct joule_ipmi_link *link,
                        const struct joule_ipmi_question *question,
                        uint8_t rs[JOULE_IPMI_ANSWER_MAX],
                        struct joule_error *err);

#endif

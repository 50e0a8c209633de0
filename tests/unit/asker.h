/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * asker.h - the other side of the reader process: starts it, asks it.
 *
 * A failure of the machinery ends the program; what the reader says is
 * returned.
 */
#ifndef JOULE_TESTS_ASKER_H
#define JOULE_TESTS_ASKER_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/sensors/ipmi_wire.h"

struct asker {
    pid_t pid;
    int fd;
    uint64_t seq;
    struct joule_ipmi_config config;
    struct joule_wire_reply opened; /* the last of each */
    struct joule_wire_reply values;
};

/* LAN_2_0 to 127.0.0.1:port as the simulator's user; period 1 s, answers in
 * 1 s, connections in 1.5 s; no sensors. */
void asker_config(struct joule_ipmi_config *config, unsigned port);

/* Add a sensor of the label Node. */
struct joule_ipmi_sensor *asker_sensor(struct joule_ipmi_config *config,
                                       enum joule_ipmi_sensor_kind kind);

/* Start the reader; config is all zero.  preload: LD_PRELOAD of it, or NULL. */
void asker_start(struct asker *a, const char *program, const char *preload);

/* Close the socket and wait for the reader; its wait status. */
int asker_stop(struct asker *a);

/* A request and its reply: head.error of it, or -1 if the reader ended. */
int asker_open(struct asker *a);
int asker_read(struct asker *a);

/* Send a packet as it is; reply_size bytes at most of what comes back, 0 if
 * the reader ended. */
ssize_t asker_raw(struct asker *a, const void *packet, size_t size, void *reply,
                  size_t reply_size);

/* Of the reader, in kB: a line of its /proc/PID/status. */
long asker_status_kb(const struct asker *a, const char *key);

/* CPU time of the reader so far, in seconds. */
double asker_cpu_s(const struct asker *a);

#endif

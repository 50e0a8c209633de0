/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ipmi_choice.h - which of the sensors that a BMC lists make the node's power
 * where the configuration names none, and the line of acct_gather.conf that
 * names them.  Pure functions.
 */
#ifndef JOULE_SENSORS_IPMI_CHOICE_H
#define JOULE_SENSORS_IPMI_CHOICE_H

#include "common/sensors/ipmi_wire.h"

/* What a sensor in watts measures. */
enum joule_ipmi_coverage {
    JOULE_IPMI_PART,   /* a part of the node, a limit, or not known */
    JOULE_IPMI_NODE,   /* the node */
    JOULE_IPMI_SUPPLY, /* what goes into one power supply */
};

/* By the entity that its record names (IPMI 2.0, table 43-13), and by its name
 * where makers use others. */
enum joule_ipmi_coverage
joule_ipmi_coverage(const struct joule_wire_found *found);

/* Sensors of a list whose sum is the node's power. */
struct joule_ipmi_choice {
    uint32_t count;
    uint32_t index[JOULE_IPMI_SENSORS_MAX]; /* rising */
    double watts, step_w;                   /* of all of them */
};

/*
 * Choose: DCMI, else a sensor of the node, else all power supplies together,
 * never a part of it.  Two that differ by more than 20 %, beyond the steps in
 * which they count, are not both the node's power.
 * 0, or -1 with a sentence and errno
 *   ENOTUNIQ  they contradict each other; *ret is the one to look at first
 *   ENOENT    none of them is known to measure the node; *ret may be empty
 */
int joule_ipmi_choose(const struct joule_wire_reply *list,
                      struct joule_ipmi_choice *ret, struct joule_error *err);

/* "EnergyIPMIPowerSensors=Node=...", as acct_gather.conf takes it. */
void joule_ipmi_choice_line(const struct joule_wire_reply *list,
                            const struct joule_ipmi_choice *choice, char *buf,
                            size_t size);

/* Sensor [f] as EnergyIPMIPowerSensors takes it: by its name if no other of the
 * list has that, else by its record id. */
#define JOULE_IPMI_WORD_SIZE 80
void joule_ipmi_sensor_word(const struct joule_wire_reply *list,
                            const struct joule_wire_found *f,
                            char buf[JOULE_IPMI_WORD_SIZE]);

/* Put the value of the line KEY=VALUE into double quotes if Slurm's parser
 * needs them. */
void joule_ipmi_line_quote(char *line, size_t size);

#endif

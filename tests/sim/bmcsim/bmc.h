/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bmc.h - the BMC apart from how messages reach it: what it answers to Get
 * Sensor Reading and to DCMI, its faults, its counters and its commands.
 *
 * One thread.
 */
#ifndef BMCSIM_BMC_H
#define BMCSIM_BMC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "tests/sim/bmcsim/fault.h"
#include "tests/sim/bmcsim/feed.h"
#include "tests/sim/bmcsim/sensor.h"
#include "tests/sim/bmcsim/value.h"
#include "tests/sim/bmcsim/window.h"

#define BMC_CONTROL_NAME "control" /* of its socket, see talk.h */
#define BMC_CONFIG_NAME  "powerbmc.conf"
#define BMC_ANSWER_MAX   32
#define BMC_NETFNS       64

struct bmc {
    const struct joule_clock *clock;
    struct bmc_feed *feed;
    struct bmc_sensors sensors;
    struct bmc_value value;
    struct bmc_window window;
    struct bmc_faults faults;
    int dropped; /* of faults.drop_n */
    bool stuck_have[256];
    uint8_t stuck_raw[256];
    int stuck_w; /* of DCMI; -1: none yet */
    struct bmc_sample sample;
    uint64_t received; /* messages, by network function and command */
    uint32_t counts[BMC_NETFNS][256];
    unsigned (*sessions)(void *arg); /* open ones; may be NULL */
    void *sessions_arg;
};

/*
 * A BMC as BMC_CONFIG_NAME in [dir_fd] says, lines of
 *   Nodesim=DIR or File=PATH     where power comes from
 *   Sensor=...                   see bmc_sensors_add
 *   Settle=, Update= (durations), Mean=, NoiseMilliwatts=, Seed=
 * NULL with errno and a sentence.
 */
struct bmc *bmc_create(int dir_fd, const struct joule_clock *clock,
                       struct joule_error *err);
/* NULL is a no-op. */
void bmc_destroy(struct bmc *bmc);

/* Look at the node: returns the watts that the BMC shows now, or -1 with a
 * sentence. */
double bmc_sample(struct bmc *bmc, struct joule_error *err);

/* A message has arrived. */
void bmc_count(struct bmc *bmc, uint8_t netfn, uint8_t cmd);

/*
 * The answer to Get Sensor Reading of sensor [number]: completion code and
 * data.  false: the sensor is none of ours.
 */
bool bmc_sensor_answer(struct bmc *bmc, uint8_t number,
                       uint8_t answer[BMC_ANSWER_MAX], unsigned *ret_len);

/*
 * The answer to a DCMI command; data[0] of the request is the group (DCh).
 */
void bmc_dcmi_answer(struct bmc *bmc, uint8_t cmd, const uint8_t *data,
                     unsigned len, uint8_t answer[BMC_ANSWER_MAX],
                     unsigned *ret_len);

/* What is to happen to the answer to a message. */
enum bmc_fate { BMC_SEND, BMC_DELAY, BMC_BLOCK, BMC_DROP };
/* ret_ms: how long, of BMC_DELAY and BMC_BLOCK. */
enum bmc_fate bmc_answer_fate(struct bmc *bmc, uint8_t netfn, uint8_t cmd,
                              int *ret_ms);

/*
 * Commands, a sim_talk_f with a struct bmc:
 *   faults [KEY=VALUE ...]  from now on these faults and no others
 *   count                   "total=N sessions=N NETFN:CMD=N ..." (hexadecimal)
 *   count-reset
 *   power                   "mono_ns shown_mw true_mw"
 */
void bmc_command(void *arg, char *line, char *reply, size_t size);

#endif

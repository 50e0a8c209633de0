/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bmc.h - OpenIPMI's ipmi_sim as a BMC of a test, on a free loopback port.
 *
 * A failure of these functions ends the program.  The simulator dies with the
 * process that started it.
 */
#ifndef JOULE_TESTS_BMC_H
#define JOULE_TESTS_BMC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define BMC_SENSORS_MAX 8
#define BMC_USER        "admin"
#define BMC_PASSWORD    "sEcret-7"
#define BMC_WATTS       6
#define BMC_DEGREES_C   1

/* W = m x raw x 10^r_exp; the simulator follows what the file "sNUMBER" says,
 * in watts, or as it is where raw is set. */
struct bmc_sensor {
    const char *name;
    uint8_t number;
    uint8_t m;
    int8_t r_exp;
    uint8_t unit;
    uint8_t entity; /* 0: the system board, 7 */
    uint8_t format; /* 0 unsigned, 2 two's complement */
    int raw;        /* fixed; -1: div = m from the file */
    bool no_scan;   /* scanning is disabled */
    bool absent;    /* there is a record, but no sensor */
};

struct bmc {
    pid_t pid; /* 0: not running */
    uint16_t port;
    char dir[64];
    const char *module; /* loadlib line's arguments, or NULL */
};

/* Whether ipmi_sim is installed. */
bool bmc_installed(void);

/* A directory and a port; nothing runs yet. */
void bmc_create(struct bmc *bmc);

/* Start with these sensors; records are 2, 3, ... (1 is the controller's
 * locator).  Returns when it answers. */
void bmc_start(struct bmc *bmc, const struct bmc_sensor *sensors, int count);

/* SIGKILL, nothing is said to sessions. */
void bmc_kill(struct bmc *bmc);

void bmc_destroy(struct bmc *bmc);

/* What the sensor is to measure (an integer), and wait until it does. */
void bmc_watts(struct bmc *bmc, unsigned number, int watts);

/* Write any file of the simulator's directory. */
void bmc_file(struct bmc *bmc, const char *name, const char *text);

#endif

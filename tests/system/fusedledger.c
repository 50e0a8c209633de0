/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fusedledger NODE PART LAG SENSORS - the ledger of a node whose slurmd has
 * watched BMC and counters for 15 minutes of jobs before it was stopped: RAPL
 * sees PART of the node's power, and the BMC shows it with a first-order lag of
 * LAG seconds in steps of 4 W.  SENSORS is the slurmd's EnergyIPMIPowerSensors.
 * As root, with the files of the node's slurmd.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/node/ledger.h"
#include "common/sensors/sensor_table.h"

#define MINUTES 15

static void watch(struct joule_lag_model *fuse, double part, double lag_s)
{
    uint64_t seed = 1;
    double node_w = 100, shown_w = node_w, until_s = 30;

    for (int s = 0; s < MINUTES * 60; s++) {
        if (s >= until_s) {
            seed = seed * UINT64_C(6364136223846793005) +
                   UINT64_C(1442695040888963407);
            node_w = 80 + (double)(seed >> 40) / (1 << 24) * 250;
            until_s = s + 10 + (double)((seed >> 20) % 60);
        }
        shown_w =
            lag_s > 0 ? node_w + (shown_w - node_w) * exp(-1 / lag_s) : node_w;
        joule_lag_model_rapl(fuse, part * node_w, JOULE_NS_PER_S);
        joule_lag_model_bmc(fuse, round(shown_w / 4) * 4);
    }
}

static int publish(const char *node, double part, double lag_s,
                   const char *sensors)
{
    static struct joule_snapshot snapshot;
    static struct joule_sensor_state state;
    struct joule_sensor *sensor;
    struct joule_ledger *ledger;
    struct joule_energy_config config;
    struct joule_error err = {""};
    int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    joule_option_defaults(joule_energy_config_options, &config);
    snprintf(config.ipmi_sensors, sizeof(config.ipmi_sensors), "%s", sensors);
    sensor = joule_sensor_open("joule_fused", root_fd, &config, node,
                               JOULE_SENSOR_FOLLOW, &err);
    ledger = sensor ? joule_ledger_create(root_fd, node, 1, &err) : NULL;
    if (!ledger) {
        fprintf(stderr, "fusedledger: %s\n", err.text);
        return 1;
    }
    state = sensor->state;
    watch(&state.fused.lag_model, part, lag_s);
    joule_node_total_start(&snapshot.total, sensor->domains,
                           sensor->domain_count, 0);
    snapshot.samples = 1;
    joule_ledger_stage_node(ledger, &snapshot, &state);
    joule_ledger_publish(ledger, NULL);
    printf("lag %s, %.2f x RAPL %+.0f W\n",
           joule_lag_model_words(&state.fused.lag_model),
           state.fused.lag_model.gain, state.fused.lag_model.rest_w);
    joule_ledger_destroy(ledger);
    joule_sensor_destroy(sensor);
    return 0;
}

static bool parse(const char *text, double most, double *ret)
{
    char *end;

    *ret = strtod(text, &end);
    return end != text && !*end && *ret >= 0 && *ret <= most;
}

int main(int argc, char **argv)
{
    double part, lag_s;

    if (argc != 5 || !parse(argv[2], 1, &part) ||
        !parse(argv[3], 3600, &lag_s)) {
        fputs("usage: fusedledger NODE PART LAG SENSORS\n", stderr);
        return 2;
    }
    return publish(argv[1], part, lag_s, argv[4]);
}

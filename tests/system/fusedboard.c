/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fusedboard NODE PART LAG SENSORS - the board of a node whose slurmd has
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

#include "common/node/board.h"
#include "common/sensors/energy_config.h"
#include "common/sensors/fused_sensor.h"

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
    static struct joule_fused_state state;
    struct joule_sensor *source;
    struct joule_board *board;
    struct joule_energy_config config;
    struct joule_error err = {""};
    int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    joule_option_defaults(joule_energy_config_options, &config);
    snprintf(config.ipmi_sensors, sizeof(config.ipmi_sensors), "%s", sensors);
    source = joule_fused_sensor_follower_open(root_fd, &config, &err);
    board = source ? joule_board_create(root_fd, node, &err) : NULL;
    if (!board) {
        fprintf(stderr, "fusedboard: %s\n", err.text);
        return 1;
    }
    state = *source->ops->state(source);
    watch(&state.lag_model, part, lag_s);
    joule_node_total_start(&snapshot.total, source->domains,
                           source->domain_count, 0);
    joule_board_publish_fused(board, &snapshot, &state);
    printf("lag %s, %.2f x RAPL %+.0f W\n", joule_lag_model_words(&state.lag_model),
           state.lag_model.gain, state.lag_model.rest_w);
    joule_board_destroy(board);
    joule_sensor_destroy(source);
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
        fputs("usage: fusedboard NODE PART LAG SENSORS\n", stderr);
        return 2;
    }
    return publish(argv[1], part, lag_s, argv[4]);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/slurm_abi/series_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/sensors/sensor_table.h"
#include "plugins/slurm_abi/conf.h"

struct joule_series_input {
    const char *plugin; /* of the energy, if it is ours; or NULL */
    struct joule_energy_config config;
    struct joule_sensor *sensor;
    struct joule_ledger *ledger;
    struct joule_node_energy *node_energy;
    struct joule_step_energy *step_energy;
};

/* The energy plugin that is configured, if it is one of ours. */
static const char *find_plugin(void)
{
    const char *type = &slurm_conf ? slurm_conf.acct_gather_energy_type : NULL;
    static const char prefix[] = "acct_gather_energy/";

    if (!type)
        return NULL;
    if (strncmp(type, prefix, strlen(prefix)) == 0)
        type += strlen(prefix);
    return joule_sensor_is_there(type) ? type : NULL;
}

struct joule_series_input *joule_series_input_create(void)
{
    return calloc(1, sizeof(struct joule_series_input));
}

static void close_all(struct joule_series_input *input)
{
    joule_step_energy_destroy(input->step_energy);
    joule_node_energy_destroy(input->node_energy);
    joule_ledger_destroy(input->ledger);
    joule_sensor_destroy(input->sensor);
    input->node_energy = NULL;
    input->step_energy = NULL;
    input->ledger = NULL;
    input->sensor = NULL;
}

void joule_series_input_destroy(struct joule_series_input *input)
{
    if (!input)
        return;
    close_all(input);
    free(input);
}

void joule_series_input_configure(struct joule_series_input *input,
                                  const s_p_hashtbl_t *table)
{
    input->plugin = find_plugin();
    if (!input->plugin)
        return;
    joule_conf_load(joule_energy_config_options, &input->config, table, true);
    explicit_bzero(input->config.ipmi.password,
                   sizeof(input->config.ipmi.password));
}

/* What the series shows: its own energy alone, where other jobs are there. */
static enum joule_energy_columns_of
choose_columns(const struct joule_series_input *input, uint32_t job)
{
    if (!input->step_energy)
        return JOULE_ENERGY_COLUMNS_NODE;
    if (input->config.profile_node == JOULE_PROFILE_NODE_ALWAYS)
        return JOULE_ENERGY_COLUMNS_BOTH;
    return joule_step_energy_has_other_job(input->step_energy, job)
               ? JOULE_ENERGY_COLUMNS_STEP
               : JOULE_ENERGY_COLUMNS_ALONE;
}

static int open_all(struct joule_series_input *input, int root_fd,
                    const struct joule_slurm_step *step,
                    struct joule_error *err)
{
    input->sensor = joule_sensor_open(input->plugin, root_fd, &input->config,
                                      step->node, JOULE_SENSOR_FOLLOW, err);
    if (!input->sensor)
        return -1;
    input->ledger = joule_ledger_open(root_fd, step->node, err);
    if (!input->ledger)
        return -1;
    input->node_energy = joule_node_energy_create(&joule_clock_system,
                                                  input->sensor, input->ledger);
    if (!input->node_energy)
        return joule_error_set(err, ENOMEM, "out of memory");
    if (input->config.attribution != JOULE_ATTRIBUTION_NODE) {
        input->step_energy =
            joule_step_energy_watch(&joule_clock_system, root_fd, step->node);
        if (!input->step_energy)
            return joule_error_set(err, ENOMEM, "out of memory");
    }
    return 0;
}

int joule_series_input_open(struct joule_series_input *input,
                            const struct joule_slurm_step *step,
                            struct joule_energy_series_options *ret,
                            struct joule_error *err)
{
    int root_fd, rc, errnum;

    if (!input->plugin)
        return joule_error_set(err, ENOTSUP,
                               "the energy series is the energy plugin's");
    close_all(input);
    root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return joule_error_set(err, errno, "cannot open /");
    rc = open_all(input, root_fd, step, err);
    errnum = errno;
    close(root_fd);
    if (rc < 0) {
        close_all(input);
        errno = errnum;
        return -1;
    }
    joule_node_energy_begin(input->node_energy);
    ret->sensor = input->sensor;
    ret->node_energy = input->node_energy;
    ret->step_energy = input->step_energy;
    ret->columns = choose_columns(input, step->job_id);
    ret->job = step->job_id;
    ret->sample_period_ns = input->config.sample_period_ns;
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/slurm_abi/series_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/sensors/energy_config.h"
#include "common/sensors/fused_sensor.h"
#include "common/sensors/ipmi_helper.h"
#include "common/sensors/rapl.h"
#include "plugins/slurm_abi/conf.h"

struct row {
    const char *type; /* AcctGatherEnergyType */
    struct joule_sensor *(*open)(int root_fd,
                                 const struct joule_energy_config *config,
                                 struct joule_error *err);
};

struct joule_series_input {
    const struct row *row;
    struct joule_energy_config config;
    struct joule_sensor *source;
    struct joule_board *board;
    struct joule_node_energy *node_energy;
    struct joule_step_energy *step_energy;
    enum joule_energy_columns_of columns;
};

static struct joule_sensor *open_rapl(int root_fd,
                                      const struct joule_energy_config *config,
                                      struct joule_error *err)
{
    struct joule_rapl_options opt = {.total_kinds = config->rapl_total_kinds};

    return joule_rapl_create(root_fd, &opt, err);
}

/* The labels only: power comes from the board. */
static struct joule_sensor *open_ipmi(int root_fd,
                                      const struct joule_energy_config *config,
                                      struct joule_error *err)
{
    struct joule_ipmi_config ipmi;
    struct joule_sensor *source;

    (void)root_fd;
    if (joule_ipmi_sensors_parse(config->ipmi_sensors, &ipmi, err) < 0)
        return NULL;
    source = joule_ipmi_helper_labels_create(&ipmi);
    if (!source)
        joule_error_set(err, ENOMEM, "out of memory");
    return source;
}

static const struct row rows[] = {
    {"joule_rapl", open_rapl},
    {"joule_ipmi", open_ipmi},
    {"joule_fused", joule_fused_sensor_follower_open},
};

static const struct row *find_row(void)
{
    const char *type = &slurm_conf ? slurm_conf.acct_gather_energy_type : NULL;
    static const char prefix[] = "acct_gather_energy/";
    size_t i;

    if (!type)
        return NULL;
    if (strncmp(type, prefix, strlen(prefix)) == 0)
        type += strlen(prefix);
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(type, rows[i].type) == 0)
            return &rows[i];
    return NULL;
}

struct joule_series_input *joule_series_input_create(void)
{
    return calloc(1, sizeof(struct joule_series_input));
}

static void close_all(struct joule_series_input *input)
{
    joule_step_energy_destroy(input->step_energy);
    joule_node_energy_destroy(input->node_energy);
    joule_board_destroy(input->board);
    joule_sensor_destroy(input->source);
    input->node_energy = NULL;
    input->step_energy = NULL;
    input->board = NULL;
    input->source = NULL;
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
    input->row = find_row();
    if (!input->row)
        return;
    joule_conf_load(joule_energy_config_options, &input->config, table, true);
    explicit_bzero(input->config.ipmi_password,
                   sizeof(input->config.ipmi_password));
}

int joule_series_input_open(struct joule_series_input *input,
                            const struct joule_slurm_step *step,
                            struct joule_error *err)
{
    int root_fd, errnum;

    if (!input->row)
        return joule_error_set(err, ENOTSUP,
                               "the energy series is the energy plugin's");
    close_all(input);
    root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return joule_error_set(err, errno, "cannot open /");
    input->source = input->row->open(root_fd, &input->config, err);
    errnum = errno;
    if (input->source) {
        /* Without a board, counters count alone. */
        input->board = joule_board_open(root_fd, step->node, NULL);
        input->node_energy = joule_node_energy_create(&joule_clock_system,
                                                  input->source, input->board);
        errnum = ENOMEM;
        if (!input->node_energy)
            joule_error_set(err, ENOMEM, "out of memory");
    }
    input->columns = JOULE_ENERGY_COLUMNS_NODE;
    if (input->node_energy && input->config.attribution != JOULE_ATTRIBUTION_NODE) {
        input->step_energy =
            joule_step_energy_watch(&joule_clock_system, root_fd, step->node);
        if (input->config.profile_node == JOULE_PROFILE_NODE_ALWAYS)
            input->columns = JOULE_ENERGY_COLUMNS_BOTH;
        else if (input->step_energy &&
                 joule_step_energy_has_other_job(input->step_energy, step->job_id))
            input->columns = JOULE_ENERGY_COLUMNS_STEP;
        else
            input->columns = JOULE_ENERGY_COLUMNS_ALONE;
        if (!input->step_energy)
            joule_error_set(err, ENOMEM, "out of memory");
    }
    close(root_fd);
    if (!input->node_energy ||
        (input->columns != JOULE_ENERGY_COLUMNS_NODE && !input->step_energy)) {
        close_all(input);
        errno = errnum;
        return -1;
    }
    if (joule_sensor_has_energy(input->source))
        joule_node_energy_smooth(input->node_energy);
    else
        joule_node_energy_extend(input->node_energy, input->config.ipmi_adjust);
    joule_node_energy_begin(input->node_energy);
    return 0;
}

const struct joule_sensor *
joule_series_input_source(const struct joule_series_input *input)
{
    return input->source;
}

struct joule_node_energy *
joule_series_input_account(const struct joule_series_input *input)
{
    return input->node_energy;
}

struct joule_step_energy *
joule_series_input_stake(const struct joule_series_input *input)
{
    return input->step_energy;
}

enum joule_energy_columns_of
joule_series_input_columns(const struct joule_series_input *input)
{
    return input->columns;
}

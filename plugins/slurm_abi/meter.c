/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/slurm_abi/meter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/sampler/config.h"
#include "common/sampler/fusion.h"
#include "common/sampler/reader.h"
#include "common/source/rapl.h"
#include "plugins/slurm_abi/conf.h"

struct row {
    const char *type; /* AcctGatherEnergyType */
    struct joule_source *(*open)(int root_fd, const struct joule_config *config,
                                 struct joule_error *err);
};

struct joule_meter {
    const struct row *row;
    struct joule_config config;
    struct joule_source *source;
    struct joule_board *board;
    struct joule_account *account;
    struct joule_stake *stake;
    enum joule_columns_of columns;
};

static struct joule_source *open_rapl(int root_fd,
                                      const struct joule_config *config,
                                      struct joule_error *err)
{
    struct joule_rapl_options opt = {.total_kinds = config->rapl_total_kinds};

    return joule_rapl_create(root_fd, &opt, err);
}

/* The labels only: power comes from the board. */
static struct joule_source *open_ipmi(int root_fd,
                                      const struct joule_config *config,
                                      struct joule_error *err)
{
    struct joule_ipmi_config ipmi;
    struct joule_source *source;

    (void)root_fd;
    if (joule_ipmi_sensors_parse(config->ipmi_sensors, &ipmi, err) < 0)
        return NULL;
    source = joule_reader_labels_create(&ipmi);
    if (!source)
        joule_error_set(err, ENOMEM, "out of memory");
    return source;
}

static const struct row rows[] = {
    {"joule_rapl", open_rapl},
    {"joule_ipmi", open_ipmi},
    {"joule_fused", joule_fusion_follower_open},
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

struct joule_meter *joule_meter_create(void)
{
    return calloc(1, sizeof(struct joule_meter));
}

static void close_all(struct joule_meter *meter)
{
    joule_stake_destroy(meter->stake);
    joule_account_destroy(meter->account);
    joule_board_destroy(meter->board);
    joule_source_destroy(meter->source);
    meter->account = NULL;
    meter->stake = NULL;
    meter->board = NULL;
    meter->source = NULL;
}

void joule_meter_destroy(struct joule_meter *meter)
{
    if (!meter)
        return;
    close_all(meter);
    free(meter);
}

void joule_meter_configure(struct joule_meter *meter,
                           const s_p_hashtbl_t *table)
{
    meter->row = find_row();
    if (!meter->row)
        return;
    joule_conf_load(joule_config_options, &meter->config, table, true);
    explicit_bzero(meter->config.ipmi_password,
                   sizeof(meter->config.ipmi_password));
}

int joule_meter_open(struct joule_meter *meter,
                     const struct joule_slurm_step *step,
                     struct joule_error *err)
{
    int root_fd, errnum;

    if (!meter->row)
        return joule_error_set(err, ENOTSUP,
                               "the energy series is the energy plugin's");
    close_all(meter);
    root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return joule_error_set(err, errno, "cannot open /");
    meter->source = meter->row->open(root_fd, &meter->config, err);
    errnum = errno;
    if (meter->source) {
        /* Without a board, counters count alone. */
        meter->board = joule_board_open(root_fd, step->node, NULL);
        meter->account = joule_account_create(&joule_clock_system,
                                              meter->source, meter->board);
        errnum = ENOMEM;
        if (!meter->account)
            joule_error_set(err, ENOMEM, "out of memory");
    }
    meter->columns = JOULE_COLUMNS_NODE;
    if (meter->account &&
        meter->config.attribution != JOULE_ATTRIBUTION_NODE) {
        meter->stake =
            joule_stake_watch(&joule_clock_system, root_fd, step->node);
        if (meter->config.profile_node == JOULE_PROFILE_NODE_ALWAYS)
            meter->columns = JOULE_COLUMNS_BOTH;
        else if (meter->stake &&
                 joule_stake_has_other_job(meter->stake, step->job_id))
            meter->columns = JOULE_COLUMNS_STEP;
        else
            meter->columns = JOULE_COLUMNS_ALONE;
        if (!meter->stake)
            joule_error_set(err, ENOMEM, "out of memory");
    }
    close(root_fd);
    if (!meter->account ||
        (meter->columns != JOULE_COLUMNS_NODE && !meter->stake)) {
        close_all(meter);
        errno = errnum;
        return -1;
    }
    if (joule_source_has_energy(meter->source))
        joule_account_smooth(meter->account);
    else
        joule_account_extend(meter->account, meter->config.ipmi_adjust);
    joule_account_begin(meter->account);
    return 0;
}

const struct joule_source *joule_meter_source(const struct joule_meter *meter)
{
    return meter->source;
}

struct joule_account *joule_meter_account(const struct joule_meter *meter)
{
    return meter->account;
}

struct joule_stake *joule_meter_stake(const struct joule_meter *meter)
{
    return meter->stake;
}

enum joule_columns_of joule_meter_columns(const struct joule_meter *meter)
{
    return meter->columns;
}

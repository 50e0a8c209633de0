/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/bmcsim/bmc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/conffile.h"
#include "common/base/file.h"
#include "common/base/option.h"

#define CONFIG_MAX 65536

/* Configuration. */

struct config {
    int64_t settle_ns, update_ns;
    bool mean;
    uint64_t noise_mw, seed;
    char *nodesim, *file;
    struct bmc_sensors sensors;
    struct joule_error *err;
};

#define FIELD(name) offsetof(struct config, name)

static const struct joule_option options[] = {
    {.key = "Settle",
     .type = JOULE_OPTION_DURATION,
     .offset = FIELD(settle_ns),
     .default_text = "0",
     .max = 3600 * JOULE_NS_PER_S,
     .help = "settling time"},
    {.key = "Update",
     .type = JOULE_OPTION_DURATION,
     .offset = FIELD(update_ns),
     .default_text = "0",
     .max = 3600 * JOULE_NS_PER_S,
     .help = "the BMC's own update period"},
    {.key = "Mean",
     .type = JOULE_OPTION_BOOL,
     .offset = FIELD(mean),
     .default_text = "no",
     .help = "means over the update period"},
    {.key = "NoiseMilliwatts",
     .type = JOULE_OPTION_U64,
     .offset = FIELD(noise_mw),
     .default_text = "0",
     .max = 1000000000,
     .help = "standard deviation of the node's power"},
    {.key = "Seed",
     .type = JOULE_OPTION_U64,
     .offset = FIELD(seed),
     .default_text = "1",
     .max = INT64_MAX,
     .help = "of the noise and of lost packets"},
    {.key = NULL},
};

static int config_text(char **field, const char *value)
{
    free(*field);
    *field = strdup(value);
    return *field ? 0 : -1;
}

static int config_line(const char *key, const char *value, unsigned line,
                       void *arg)
{
    struct config *config = arg;
    const struct joule_option *row;

    if (!key)
        return joule_error_set(config->err, EINVAL,
                               "line %u: \"%s\" is no setting", line, value);
    row = joule_option_find(options, key);
    if (row)
        return joule_option_set(row, config, value, config->err);
    if (!strcasecmp(key, "Sensor"))
        return bmc_sensors_add(&config->sensors, value, config->err);
    if (!strcasecmp(key, "Nodesim"))
        return config_text(&config->nodesim, value);
    if (!strcasecmp(key, "File"))
        return config_text(&config->file, value);
    return joule_error_set(config->err, EINVAL, "there is no option \"%s\"",
                           key);
}

static int config_load(struct config *config, int dir_fd)
{
    size_t len;
    char *text = joule_file_load(dir_fd, BMC_CONFIG_NAME, CONFIG_MAX, &len);
    int rc;

    if (!text)
        return joule_error_set(config->err, errno, "cannot read %s: %m",
                               BMC_CONFIG_NAME);
    rc = joule_conffile_walk(text, len, config_line, config);
    free(text);
    return rc;
}

struct bmc *bmc_create(int dir_fd, const struct joule_clock *clock,
                       struct joule_error *err)
{
    struct config config = {.err = err};
    struct bmc *bmc = NULL;

    joule_option_defaults(options, &config);
    if (config_load(&config, dir_fd))
        goto out;
    bmc = calloc(1, sizeof(*bmc));
    if (!bmc) {
        joule_error_set(err, ENOMEM, "out of memory");
        goto out;
    }
    bmc->clock = clock;
    bmc->sensors = config.sensors;
    bmc->stuck_w = -1;
    bmc_faults_parse("", &bmc->faults, NULL);
    bmc_value_init(&bmc->value,
                   &(struct bmc_value_options){
                       config.settle_ns, config.update_ns, config.mean,
                       (double)config.noise_mw / 1e3, config.seed});
    bmc->feed = bmc_feed_create(config.nodesim, config.file, clock, err);
    if (!bmc->feed) {
        free(bmc);
        bmc = NULL;
    }
out:
    free(config.nodesim);
    free(config.file);
    return bmc;
}

void bmc_destroy(struct bmc *bmc)
{
    if (!bmc)
        return;
    bmc_feed_destroy(bmc->feed);
    free(bmc);
}

/* Readings. */

double bmc_sample(struct bmc *bmc, struct joule_error *err)
{
    double watts;

    if (bmc_feed_read(bmc->feed, &bmc->sample, err))
        return -1;
    watts = bmc_value_add(&bmc->value, &bmc->sample);
    bmc_window_add(&bmc->window, bmc->sample.mono_ns, watts);
    return watts;
}

static double part_watts(const struct bmc *bmc, const struct bmc_sensor *sensor,
                         double node_w)
{
    double share = 1;

    if (sensor->part == BMC_DRAM)
        share = bmc->sample.dram_share;
    else if (sensor->part == BMC_CPU && sensor->package < bmc->sample.packages)
        share = (1 - bmc->sample.dram_share) / bmc->sample.packages;
    else if (sensor->part == BMC_CPU)
        share = 0;
    return node_w * share * sensor->percent / 100;
}

/* IPMI 2.0, table 35-: Get Sensor Reading. */
bool bmc_sensor_answer(struct bmc *bmc, uint8_t number,
                       uint8_t answer[BMC_ANSWER_MAX], unsigned *ret_len)
{
    enum { EVENTS_ON = 0x80, SCANNING_ON = 0x40, UNAVAILABLE = 0x20 };
    const struct bmc_sensor *sensor = bmc_sensors_find(&bmc->sensors, number);
    struct bmc_faults none;
    const struct bmc_faults *f = &bmc->faults;
    double node_w;

    if (!sensor)
        return false;
    bmc_faults_parse("", &none, NULL);
    if (sensor->part == BMC_STILL ||
        (f->sens_num >= 0 && f->sens_num != number))
        f = &none;
    node_w = bmc_sample(bmc, NULL);
    memset(answer, 0, 5);
    *ret_len = 5;
    answer[2] = EVENTS_ON | SCANNING_ON;
    if (sensor->part == BMC_STILL)
        answer[1] = (uint8_t)sensor->percent;
    else if (node_w >= 0)
        answer[1] = bmc_sensor_raw(sensor, part_watts(bmc, sensor, node_w));
    else
        answer[2] |= UNAVAILABLE;
    if (f->sens_raw >= 0)
        answer[1] = (uint8_t)f->sens_raw;
    if (!f->sens_stuck) {
        bmc->stuck_have[number] = false;
    } else {
        if (!bmc->stuck_have[number])
            bmc->stuck_raw[number] = answer[1];
        bmc->stuck_have[number] = true;
        answer[1] = bmc->stuck_raw[number];
    }
    if (f->sens_unavail)
        answer[2] |= UNAVAILABLE;
    if (f->sens_noscan)
        answer[2] &= (uint8_t)~SCANNING_ON;
    if (f->sens_short)
        *ret_len = 2;
    if (f->sens_cc) {
        answer[0] = (uint8_t)f->sens_cc;
        *ret_len = 1;
    }
    return true;
}

/* Messages. */

void bmc_count(struct bmc *bmc, uint8_t netfn, uint8_t cmd)
{
    bmc->received++;
    bmc->counts[netfn % BMC_NETFNS][cmd]++;
}

enum bmc_fate bmc_answer_fate(struct bmc *bmc, uint8_t netfn, uint8_t cmd,
                              int *ret_ms)
{
    const struct bmc_faults *f = &bmc->faults;

    *ret_ms = 0;
    if ((f->netfn >= 0 && f->netfn != netfn) || (f->cmd >= 0 && f->cmd != cmd))
        return BMC_SEND;
    if (bmc->dropped < f->drop_n) {
        bmc->dropped++;
        return BMC_DROP;
    }
    if (bmc_value_random(&bmc->value) * 100 < f->drop_pct)
        return BMC_DROP;
    if (f->block_ms) {
        *ret_ms = f->block_ms;
        return BMC_BLOCK;
    }
    *ret_ms = f->delay_ms;
    return f->delay_ms ? BMC_DELAY : BMC_SEND;
}

/* Commands. */

static int do_faults(struct bmc *bmc, const char *arg, char *reply, size_t size,
                     struct joule_error *err)
{
    (void)reply;
    (void)size;
    if (bmc_faults_parse(arg, &bmc->faults, err))
        return -1;
    bmc->dropped = 0;
    bmc->stuck_w = -1;
    memset(bmc->stuck_have, 0, sizeof(bmc->stuck_have));
    return 0;
}

static int do_count(struct bmc *bmc, const char *arg, char *reply, size_t size,
                    struct joule_error *err)
{
    size_t used;

    (void)arg;
    (void)err;
    used = (size_t)snprintf(
        reply, size, "total=%" PRIu64 " sessions=%u", bmc->received,
        bmc->sessions ? bmc->sessions(bmc->sessions_arg) : 0);
    for (unsigned netfn = 0; netfn < BMC_NETFNS; netfn++)
        for (unsigned cmd = 0; cmd < 256; cmd++)
            if (bmc->counts[netfn][cmd] && used < size)
                used += (size_t)snprintf(reply + used, size - used,
                                         " %02x:%02x=%" PRIu32, netfn, cmd,
                                         bmc->counts[netfn][cmd]);
    return 0;
}

static int do_count_reset(struct bmc *bmc, const char *arg, char *reply,
                          size_t size, struct joule_error *err)
{
    (void)arg;
    (void)reply;
    (void)size;
    (void)err;
    bmc->received = 0;
    memset(bmc->counts, 0, sizeof(bmc->counts));
    return 0;
}

static int do_power(struct bmc *bmc, const char *arg, char *reply, size_t size,
                    struct joule_error *err)
{
    double watts = bmc_sample(bmc, err);

    (void)arg;
    if (watts < 0)
        return -1;
    snprintf(reply, size, "%" PRId64 " %.0f %.0f", bmc->sample.mono_ns,
             watts * 1e3, bmc->sample.watts * 1e3);
    return 0;
}

static const struct command {
    const char *name;
    int (*run)(struct bmc *bmc, const char *arg, char *reply, size_t size,
               struct joule_error *err);
} commands[] = {
    {"faults", do_faults}, {"count", do_count}, {"count-reset", do_count_reset},
    {"power", do_power},   {NULL, NULL},
};

void bmc_command(void *arg, char *line, char *reply, size_t size)
{
    struct joule_error err = {""};
    const struct command *c = commands;
    char *rest = strchrnul(line, ' ');

    if (*rest)
        *rest++ = '\0';
    while (c->name && strcmp(c->name, line))
        c++;
    *reply = '\0';
    if (!c->name)
        snprintf(reply, size, "error: no command \"%s\"", line);
    else if (c->run(arg, rest, reply, size, &err))
        snprintf(reply, size, "error: %s", err.text);
    else if (!*reply)
        snprintf(reply, size, "ok");
}

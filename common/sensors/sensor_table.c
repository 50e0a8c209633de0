/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/sensor_table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/energy/integrator.h"
#include "common/sensors/counter_sensor.h"
#include "common/sensors/cpu_counters.h"
#include "common/sensors/cray.h"
#include "common/sensors/fused_sensor.h"
#include "common/sensors/hwmon.h"
#include "common/sensors/ipmi_helper.h"
#include "common/sensors/meter_sensor.h"

/* BMCs have a new value once a second at most. */
#define BMC_PERIOD_NS JOULE_NS_PER_S

#define READER JOULE_LIBEXECDIR "/joule-ipmi-reader"

/* What is opened, as joule_sensor_open was asked. */
struct request {
    int root_fd;
    const struct joule_energy_config *config;
    const char *node;
    enum joule_sensor_use use;
    struct joule_error *err;
};

/* Another reader than the installed one runs with the rights of slurmd: it
 * must be a file that only root could have put there. */
static int check_reader(const struct request *r)
{
    struct joule_error reason;
    int fd = joule_file_open_trusted(r->root_fd, r->config->ipmi_reader,
                                     S_IWGRP | S_IWOTH, &reason);

    if (fd < 0)
        return joule_error_set(r->err, errno, "JouleIPMIReader: %s",
                               reason.text);
    close(fd);
    return 0;
}

/* Who follows needs to know the labels only, and no password. */
static struct joule_meter *open_labels(const struct request *r)
{
    struct joule_ipmi_config ipmi;
    struct joule_error reason;

    if (joule_ipmi_sensors_parse(r->config->ipmi_sensors, &ipmi, &reason) < 0) {
        joule_error_set(r->err, errno, "EnergyIPMIPowerSensors: %s",
                        reason.text);
        return NULL;
    }
    return joule_ipmi_helper_labels_create(&ipmi);
}

static struct joule_meter *open_bmc(const struct request *r, int64_t period_ns)
{
    const struct joule_energy_config *config = r->config;
    struct joule_ipmi_config ipmi;
    struct joule_ipmi_helper_options opt = {
        .clock = &joule_clock_system,
        .program = config->ipmi_reader[0] ? config->ipmi_reader : READER,
        .config = &ipmi,
        .credentials_file =
            config->ipmi_host[0] ? config->ipmi_credentials_file : NULL,
        .root_fd = r->root_fd,
    };
    struct joule_meter *meter = NULL;
    char hostname[256];
    int errnum;

    if (gethostname(hostname, sizeof(hostname)) < 0)
        hostname[0] = '\0';
    hostname[sizeof(hostname) - 1] = '\0';
    if (config->ipmi_reader[0] && check_reader(r) < 0)
        return NULL;
    if (joule_ipmi_config_make(config, r->root_fd, hostname, r->node, &ipmi,
                               r->err) == 0) {
        ipmi.period_ns = period_ns;
        meter = joule_ipmi_helper_create(&opt, r->err);
    }
    errnum = errno;
    explicit_bzero(&ipmi, sizeof(ipmi));
    errno = errnum;
    return meter;
}

static struct joule_meter *open_meter(const struct request *r,
                                      int64_t period_ns)
{
    return r->use == JOULE_SENSOR_FOLLOW ? open_labels(r)
                                         : open_bmc(r, period_ns);
}

static struct joule_counters *open_counters(const struct request *r,
                                            struct joule_error *err)
{
    const struct joule_cpu_options opt = {
        .way = r->config->cpu_way,
        .total_kinds = r->config->rapl_total_kinds,
        .compares = r->use == JOULE_SENSOR_MEASURE,
    };

    return joule_cpu_counters_create(r->root_fd, &opt, err);
}

static struct joule_sensor *open_rapl(const struct request *r)
{
    struct joule_counters *counters = open_counters(r, r->err);

    return counters ? joule_counter_sensor_create(&joule_clock_system, counters)
                    : NULL;
}

static struct joule_sensor *open_power(const struct request *r,
                                       struct joule_meter *meter)
{
    int64_t period_ns = r->config->sample_period_ns;
    struct joule_meter_sensor_options opt = {
        .clock = &joule_clock_system,
        .meter = meter,
        .period_ns = r->use == JOULE_SENSOR_MEASURE ? period_ns : 0,
        .gap_ns = joule_power_gap_ns(period_ns),
        .no_carry = !r->config->ipmi_adjust,
    };

    return meter ? joule_meter_sensor_create(&opt) : NULL;
}

static struct joule_sensor *open_ipmi(const struct request *r)
{
    return open_power(r, open_meter(r, r->config->sample_period_ns));
}

static struct joule_sensor *open_hwmon(const struct request *r)
{
    return open_power(r, joule_hwmon_create(r->root_fd, r->err));
}

static struct joule_sensor *open_fused(const struct request *r)
{
    int64_t period_ns = r->config->sample_period_ns > BMC_PERIOD_NS
                            ? r->config->sample_period_ns
                            : BMC_PERIOD_NS;
    struct joule_fused_sensor_options opt = {
        .clock = &joule_clock_system,
        .meter = open_meter(r, period_ns),
        .period_ns = r->use == JOULE_SENSOR_MEASURE ? period_ns : 0,
        .gap_ns = joule_power_gap_ns(period_ns),
    };
    struct joule_error missing;

    if (!opt.meter)
        return NULL;
    opt.counters = open_counters(r, &missing);
    opt.missing = opt.counters ? NULL : missing.text;
    return joule_fused_sensor_create(&opt, r->err);
}

static struct joule_sensor *open_cray(const struct request *r)
{
    struct joule_counters *counters = joule_cray_create(r->root_fd, r->err);

    return counters ? joule_counter_sensor_create(&joule_clock_system, counters)
                    : NULL;
}

/* ---- whether a node has it: 0, or -1 and why not ---- */

static int has_cray(const struct request *r)
{
    struct joule_counters *counters = joule_cray_create(r->root_fd, r->err);

    if (counters)
        counters->ops->destroy(counters);
    return counters ? 0 : -1;
}

static int has_counters(const struct request *r)
{
    struct joule_counters *counters = open_counters(r, r->err);

    if (counters)
        counters->ops->destroy(counters);
    return counters ? 0 : -1;
}

static int has_hwmon(const struct request *r)
{
    struct joule_meter *meter = joule_hwmon_create(r->root_fd, r->err);

    if (meter)
        meter->ops->destroy(meter);
    return meter ? 0 : -1;
}

/* One that is named, or a driver's device. */
static int has_bmc(const struct request *r)
{
    static const char *const devices[] = {"dev/ipmi0", "dev/ipmi/0",
                                          "dev/ipmidev/0"};

    if (r->config->ipmi_host[0] ||
        r->config->ipmi.driver != JOULE_IPMI_DRIVER_ANY)
        return 0;
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
        if (faccessat(r->root_fd, devices[i], F_OK, 0) == 0)
            return 0;
    return joule_error_set(r->err, ENOENT,
                           "there is no /dev/ipmi0, and JouleIPMIHost is not "
                           "set");
}

static int has_both(const struct request *r)
{
    return has_counters(r) == 0 ? has_bmc(r) : -1;
}

/* What covers more comes first. */
static const struct row {
    const char *name, *what;
    unsigned word; /* of JouleSensors */
    int (*is_there)(const struct request *r);
    struct joule_sensor *(*open)(const struct request *r);
} rows[] = {
    {"joule_cray", "the counters of the blade's controller, of the whole node",
     JOULE_USE_CRAY, has_cray, open_cray},
    {"joule_fused", "the BMC's power in the shape of the CPUs' counters",
     JOULE_USE_FUSED, has_both, open_fused},
    {"joule_hwmon", "the power meters of Grace", JOULE_USE_HWMON, has_hwmon,
     open_hwmon},
    {"joule_ipmi", "the BMC's power", JOULE_USE_IPMI, has_bmc, open_ipmi},
    {"joule_rapl", "the CPUs' counters, no more of the node than these",
     JOULE_USE_RAPL, has_counters, open_rapl},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const struct row *find_row(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(name, rows[i].name) == 0)
            return &rows[i];
    return NULL;
}

bool joule_sensor_is_there(const char *name)
{
    return strcmp(name, JOULE_SENSOR_CHOICE) == 0 || find_row(name) != NULL;
}

static void add_text(struct joule_error *to, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void add_text(struct joule_error *to, const char *fmt, ...)
{
    size_t length = strlen(to->text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(to->text + length, sizeof(to->text) - length, fmt, ap);
    va_end(ap);
}

const char *joule_sensor_choose(int root_fd,
                                const struct joule_energy_config *config,
                                struct joule_error *ret_why)
{
    struct joule_error reason, rest = {""};
    const struct request r = {root_fd, config, NULL, JOULE_SENSOR_MEASURE,
                              &reason};
    const struct row *found = NULL;

    for (size_t i = 0; i < ROWS && !found; i++) {
        const char *name = rows[i].name + strlen("joule_");

        if (!(config->sensors & rows[i].word))
            add_text(&rest, "; not %s: JouleSensors", name);
        else if (rows[i].is_there(&r) == 0)
            found = &rows[i];
        else
            add_text(&rest, "; not %s: %s", name, reason.text);
    }
    joule_error_set(ret_why, ENODEV, "%s%s%s", found ? found->name : "nothing",
                    found ? ": " : "", found ? found->what : "");
    add_text(ret_why, "%s", rest.text);
    return found ? found->name : NULL;
}

struct joule_sensor *joule_sensor_open(const char *name, int root_fd,
                                       const struct joule_energy_config *config,
                                       const char *node,
                                       enum joule_sensor_use use,
                                       struct joule_error *err)
{
    const struct request r = {root_fd, config, node, use, err};
    const struct row *row = find_row(name);
    struct joule_error why;
    struct joule_sensor *sensor;

    if (strcmp(name, JOULE_SENSOR_CHOICE) == 0) {
        name = joule_sensor_choose(root_fd, config, &why);
        if (!name) {
            joule_error_set(err, ENODEV, "this node has %s", why.text);
            return NULL;
        }
        row = find_row(name);
    }
    if (!row) {
        joule_error_set(err, ENOTSUP, "there is no sensor \"%s\"", name);
        return NULL;
    }
    sensor = row->open(&r);
    if (!sensor && errno == ENOMEM)
        joule_error_set(err, ENOMEM, "out of memory");
    return sensor;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/file.h"
#include "common/sensors/ipmi_helper.h"

#define READER JOULE_LIBEXECDIR "/joule-ipmi-reader"

/* Then it is asked as often as the sampler would. */
#define QUICK_NS (10 * JOULE_NS_PER_S)

/* The last so many make the median. */
#define LATENCIES_MAX 1024

struct probing {
    struct joule_bmc *bmc;
    const struct joule_clock *clock;
    struct joule_meter *meter;
    int64_t period_ns;
    int64_t latencies[LATENCIES_MAX];
    double before_w; /* of the first label, if have_before */
    bool have_before;
    int64_t changed_ns; /* when it last changed, if changes > 0 */
    int errnum;         /* of the last request that failed */
};

const char *joule_bmc_driver_name(enum joule_ipmi_driver driver)
{
    static const char *const names[] = {
        [JOULE_IPMI_DRIVER_ANY] = "in-band, the driver that is found",
        [JOULE_IPMI_DRIVER_OPENIPMI] = "in-band, OPENIPMI",
        [JOULE_IPMI_DRIVER_KCS] = "in-band, KCS",
        [JOULE_IPMI_DRIVER_SSIF] = "in-band, SSIF",
        [JOULE_IPMI_DRIVER_LAN] = "LAN",
        [JOULE_IPMI_DRIVER_LAN_2_0] = "LAN_2_0",
    };

    return names[driver];
}

const char *joule_bmc_status_name(enum joule_power_status status)
{
    static const char *const names[JOULE_POWER_STATUS_COUNT] = {
        [JOULE_POWER_OK] = "measured",
        [JOULE_POWER_UNAVAILABLE] = "unavailable",
        [JOULE_POWER_NOT_SCANNED] = "not scanned",
        [JOULE_POWER_NOT_ACTIVE] = "not active",
        [JOULE_POWER_ZERO] = "zero",
        [JOULE_POWER_NEGATIVE] = "negative",
        [JOULE_POWER_SATURATED] = "saturated",
        [JOULE_POWER_ABSURD] = "absurd",
        [JOULE_POWER_REFUSED] = "refused",
        [JOULE_POWER_FAILED] = "failed",
    };

    return names[status];
}

/* ---- permissions ---- */

/* Where the driver's device is, and whether this user may open it. */
static void find_device(struct joule_bmc *bmc,
                        const struct joule_energy_config *config)
{
    static const char *const places[] = {"/dev/ipmi0", "/dev/ipmi/0",
                                         "/dev/ipmidev/0"};

    snprintf(bmc->device, sizeof(bmc->device), "%s",
             config->ipmi.device[0] ? config->ipmi.device : places[0]);
    for (size_t i = 1; i < sizeof(places) / sizeof(places[0]); i++)
        if (!config->ipmi.device[0] && access(bmc->device, F_OK) < 0 &&
            access(places[i], F_OK) == 0)
            snprintf(bmc->device, sizeof(bmc->device), "%s", places[i]);
    int fd = open(bmc->device, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        bmc->device_error = errno;
    else
        close(fd);
}

/* It is run on this machine, wherever the configuration comes from, which may
 * name only one that nobody but root could have put there. */
static int find_reader(struct joule_probe *p)
{
    const char *named = p->conf.config.ipmi_reader;
    struct joule_bmc *bmc = &p->bmc;
    struct joule_error reason;
    int fd, root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    snprintf(bmc->program, sizeof(bmc->program), "%s",
             named[0] ? named : READER);
    if (named[0] && !p->own_reader) {
        fd =
            joule_file_open_trusted(root_fd, named, S_IWGRP | S_IWOTH, &reason);
        if (fd < 0)
            joule_error_set(&bmc->error, errno, "JouleIPMIReader: %s",
                            reason.text);
        joule_close(fd);
    }
    joule_close(root_fd);
    if (bmc->error.text[0])
        return -1;
    if (access(bmc->program, X_OK) < 0)
        return joule_error_set(&bmc->error, errno,
                               "the reader %s cannot be run (%m): install the "
                               "whole of slurm-joule, built with FreeIPMI",
                               bmc->program);
    return 0;
}

/* ---- readings ---- */

/* What was connected to; a remark that only repeats it is left out. */
static void take_found(struct probing *p, const struct joule_ipmi_config *ipmi)
{
    uint32_t count;
    const struct joule_wire_found *found = joule_reader_found(p->meter, &count);
    struct joule_error remark;
    bool first = true;

    if (!found)
        return;
    p->bmc->connected = true;
    p->bmc->sensor_count = count;
    for (uint32_t i = 0; i < count; i++) {
        p->bmc->sensors[i].label = ipmi->sensor[i].label; /* chosen: 0 */
        p->bmc->sensors[i].found = found[i];
    }
    while (p->meter->ops->remark(p->meter, &remark)) {
        if (!first)
            p->bmc->remark = remark;
        first = false;
    }
}

static void add_label(struct joule_bmc_label *label,
                      const struct joule_power *power)
{
    bool first = label->readings[JOULE_POWER_OK] == 0;

    label->readings[power->status]++;
    if (power->status != JOULE_POWER_OK)
        return;
    label->last_w = power->watts;
    label->sum_w += power->watts;
    if (first || power->watts < label->min_w)
        label->min_w = power->watts;
    if (first || power->watts > label->max_w)
        label->max_w = power->watts;
}

/* The first change says nothing: the value may have been there for long. */
static void follow_change(struct probing *p, const struct joule_power *power)
{
    struct joule_bmc *bmc = p->bmc;
    int64_t since_ns = power->mono_ns - p->changed_ns;

    if (power->status != JOULE_POWER_OK)
        return;
    if (p->have_before && power->watts != p->before_w) {
        if (bmc->changes++ > 0 &&
            (bmc->refresh_ns == 0 || since_ns < bmc->refresh_ns))
            bmc->refresh_ns = since_ns;
        p->changed_ns = power->mono_ns;
    }
    p->before_w = power->watts;
    p->have_before = true;
}

/* One request; -1: there is no use in going on. */
static int ask(struct probing *p, bool quick)
{
    struct joule_power power[JOULE_IPMI_LABELS_MAX];
    struct joule_bmc *bmc = p->bmc;
    struct joule_error err = {""};
    uint32_t count;
    int64_t begin_ns = joule_clock_mono_ns(p->clock);

    if (p->meter->ops->read(p->meter, power, &err) < 0) {
        if (errno == EAGAIN)
            return 0;
        p->errnum = errno;
        bmc->error = err;
        bmc->failures++;
        p->have_before = false;
        return joule_reader_found(p->meter, &count) ? 0 : -1;
    }
    /* The first one connects. */
    if (bmc->readings + bmc->failures == 0)
        bmc->connect_ns = joule_clock_mono_ns(p->clock) - begin_ns;
    else
        p->latencies[bmc->readings % LATENCIES_MAX] =
            joule_clock_mono_ns(p->clock) - begin_ns;
    bmc->readings++;
    for (uint32_t i = 0; i < bmc->label_count; i++)
        add_label(&bmc->labels[i], &power[i]);
    if (quick)
        follow_change(p, &power[0]);
    return 0;
}

static int compare_ns(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Places that no reading has filled are 0. */
static int64_t median_ns(int64_t latencies[LATENCIES_MAX])
{
    size_t zeros = 0;

    qsort(latencies, LATENCIES_MAX, sizeof(latencies[0]), compare_ns);
    while (zeros < LATENCIES_MAX && latencies[zeros] == 0)
        zeros++;
    return zeros == LATENCIES_MAX
               ? 0
               : latencies[zeros + (LATENCIES_MAX - zeros) / 2];
}

static void follow(struct probing *p, int64_t measure_ns)
{
    struct joule_bmc *bmc = p->bmc;
    int64_t begin_ns = 0, now_ns, gone_ns = 0;

    if (ask(p, true) < 0)
        return;
    begin_ns = now_ns = joule_clock_mono_ns(p->clock);
    while (gone_ns < measure_ns) {
        bool quick = gone_ns < QUICK_NS;
        int64_t pause_ns = quick ? JOULE_BMC_PAUSE_NS : p->period_ns;
        int64_t left_ns = measure_ns - gone_ns;

        joule_sleep_ns(left_ns < pause_ns ? left_ns : pause_ns);
        if (ask(p, quick) < 0)
            break;
        now_ns = joule_clock_mono_ns(p->clock);
        gone_ns = now_ns - begin_ns;
    }
    bmc->measured_ns = now_ns - begin_ns;
    bmc->latency_ns = median_ns(p->latencies);
    bmc->measures = bmc->labels[0].readings[JOULE_POWER_OK] > 0;
}

/* A BMC that answers, also one that lacks the sensors that it is asked for. */
static bool answers(const struct probing *p)
{
    return p->bmc->connected || p->errnum == ENOENT || p->errnum == ENOTUNIQ ||
           p->errnum == EINVAL || p->errnum == ENOTSUP;
}

static void measure(struct joule_probe *probe,
                    const struct joule_ipmi_config *ipmi, int64_t measure_ns)
{
    struct joule_bmc *bmc = &probe->bmc;
    const struct joule_ipmi_helper_options opt = {
        .clock = probe->clock,
        .program = bmc->program,
        .config = ipmi,
        .credentials_file = probe->conf.config.ipmi_host[0]
                                ? probe->conf.config.ipmi_credentials_file
                                : NULL,
        .root_fd = probe->conf_fd,
    };
    struct probing *p = calloc(1, sizeof(*p));

    if (!p) {
        joule_error_set(&bmc->error, ENOMEM, "out of memory");
        return;
    }
    p->bmc = bmc;
    p->clock = probe->clock;
    p->period_ns = ipmi->period_ns;
    p->meter = joule_ipmi_helper_create(&opt, &bmc->error);
    if (p->meter) {
        follow(p, measure_ns);
        take_found(p, ipmi);
        bmc->listed = answers(p) && joule_reader_list(p->meter, &bmc->list,
                                                      &bmc->list_error) == 0;
        joule_meter_destroy(p->meter);
    }
    free(p);
}

static int make_config(struct joule_probe *p, struct joule_ipmi_config *ipmi)
{
    const struct joule_energy_config *config = &p->conf.config;
    struct joule_bmc *bmc = &p->bmc;
    char hostname[256];

    if (gethostname(hostname, sizeof(hostname)) < 0)
        hostname[0] = '\0';
    hostname[sizeof(hostname) - 1] = '\0';
    if (joule_ipmi_config_make(config, p->conf_fd, hostname, p->node.name, ipmi,
                               &bmc->error) < 0)
        return -1;
    bmc->driver = ipmi->driver;
    bmc->lan = joule_ipmi_is_lan(ipmi);
    memcpy(bmc->host, ipmi->host, sizeof(bmc->host));
    bmc->has_credentials = config->ipmi_credentials_file[0] ||
                           ipmi->username[0] || ipmi->password[0];
    bmc->label_count = ipmi->label_count;
    bmc->sensor_count = ipmi->sensor_count;
    for (uint32_t i = 0; i < ipmi->label_count; i++)
        memcpy(bmc->labels[i].name, ipmi->label[i], JOULE_IPMI_LABEL_SIZE);
    return 0;
}

void joule_bmc_collect(struct joule_probe *p, int64_t measure_ns)
{
    const struct joule_energy_config *config = &p->conf.config;
    struct joule_bmc *bmc = &p->bmc;
    struct joule_ipmi_config ipmi;

    bmc->euid = geteuid();
    bmc->in_order = find_reader(p) == 0 && make_config(p, &ipmi) == 0;
    if (!bmc->in_order)
        return;
    /* KCS and SSIF need no driver of the kernel's. */
    if (bmc->driver == JOULE_IPMI_DRIVER_ANY ||
        bmc->driver == JOULE_IPMI_DRIVER_OPENIPMI ||
        (!bmc->lan && config->ipmi.device[0]))
        find_device(bmc, config);
    measure(p, &ipmi, measure_ns);
    explicit_bzero(&ipmi, sizeof(ipmi));
}

bool joule_bmc_is_used(const struct joule_bmc *bmc, uint32_t i)
{
    const struct joule_wire_found *candidate = &bmc->list.found[i];
    bool record = candidate->kind == JOULE_IPMI_SENSOR_RECORD;

    if (!bmc->connected)
        return false;
    for (uint32_t n = 0; n < bmc->sensor_count; n++) {
        const struct joule_wire_found *used = &bmc->sensors[n].found;

        if (record ? used->kind == JOULE_IPMI_SENSOR_RECORD &&
                         used->record_id == candidate->record_id
                   : used->kind != JOULE_IPMI_SENSOR_RECORD)
            return true;
    }
    return false;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/file.h"
#include "common/sensors/counter_sensor.h"
#include "common/sensors/cpu_counters.h"
#include "common/sensors/cray.h"
#include "common/sensors/sensor_table.h"
#include "common/sensors/topology.h"

static unsigned lowest_cpu(int root_fd)
{
    struct joule_topology topology = {0};
    unsigned cpu = 0;

    if (joule_topology_read(root_fd, &topology, NULL) == 0)
        cpu = topology.cpus[0].cpu;
    joule_topology_free(&topology);
    return cpu;
}

/* "[none] integrity confidentiality": the mode is the one in brackets. */
static void read_lockdown(int root_fd, char mode[32])
{
    char text[128], *open, *close;

    mode[0] = '\0';
    if (joule_file_read(root_fd, "sys/kernel/security/lockdown", text,
                        sizeof(text)) < 0)
        return;
    open = strchr(text, '[');
    close = open ? strchr(open, ']') : NULL;
    if (close) {
        *close = '\0';
        snprintf(mode, 32, "%.31s", open + 1);
    }
}

void joule_access_collect(struct joule_access *a, int root_fd)
{
    int fd;

    memset(a, 0, sizeof(*a));
    a->euid = geteuid();
    snprintf(a->msr, sizeof(a->msr), "/dev/cpu/%u/msr", lowest_cpu(root_fd));
    fd = joule_file_open(root_fd, a->msr + 1, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        a->msr_error = errno;
    else
        close(fd);
    read_lockdown(root_fd, a->lockdown);
}

/* All that the machine has; its cores only if there is room for them. */
static struct joule_counters *open_counters(struct joule_probe_sensor *s,
                                            int root_fd,
                                            const struct joule_energy_config *c)
{
    struct joule_cpu_options opt = {
        .way = c->cpu_way,
        .total_kinds = c->rapl_total_kinds,
        .with_cores = true,
        .ret_info = &s->info,
    };
    struct joule_counters *counters =
        joule_cpu_counters_create(root_fd, &opt, &s->error);

    if (!counters && (errno == E2BIG || errno == EMFILE)) {
        s->cores_left_out = true;
        opt.with_cores = false;
        counters = joule_cpu_counters_create(root_fd, &opt, &s->error);
    }
    if (counters)
        s->error.text[0] = '\0';
    else
        s->cores_left_out = false;
    return counters;
}

/* Follow the counters often enough to miss no wrap.  Returns the time between
 * the first and the last reading. */
static int64_t follow(struct joule_sensor *sensor, int64_t measure_ns,
                      struct joule_node_total *total)
{
    struct joule_reading readings[JOULE_DOMAINS_MAX];
    int64_t step_ns = sensor->wrap_ns / 3;
    int64_t begin_ns, now_ns;

    if (step_ns > JOULE_NS_PER_S)
        step_ns = JOULE_NS_PER_S;
    joule_node_total_start(total, sensor->domains, sensor->domain_count, 0);
    begin_ns = now_ns = joule_sensor_read(sensor, 0, readings);
    joule_node_total_update(total, sensor->domains, readings, now_ns);
    while (now_ns - begin_ns < measure_ns) {
        int64_t left_ns = measure_ns - (now_ns - begin_ns);

        joule_sleep_ns(left_ns < step_ns ? left_ns : step_ns);
        now_ns = joule_sensor_read(sensor, 0, readings);
        joule_node_total_update(total, sensor->domains, readings, now_ns);
    }
    return now_ns - begin_ns;
}

/* Of a meter, in the words of a counter. */
static uint32_t state_of_power(const struct joule_reading *r)
{
    return r->state == JOULE_READING_OK ? JOULE_COUNTER_MOVING
                                        : JOULE_COUNTER_NEW;
}

static void measure(struct joule_probe_sensor *s, struct joule_sensor *sensor,
                    int64_t measure_ns, struct joule_node_total *total)
{
    s->measured_ns = follow(sensor, measure_ns, total);
    s->moves = total->valid;
    if (s->moves && s->measured_ns > 0)
        s->node_mw = joule_power_mw(total->node_uj, s->measured_ns);
    s->count = sensor->domain_count;
    for (size_t i = 0; i < s->count; i++) {
        struct joule_probe_sensor_domain *d = &s->domains[i];

        d->domain = sensor->domains[i];
        d->state = sensor->state.counters == 0
                       ? state_of_power(&total->reading[i])
                       : sensor->state.counter[i].state;
        d->errors = (uint32_t)total->reading[i].errors;
        if (s->measured_ns > 0)
            d->power_mw = joule_power_mw(total->reading[i].uj, s->measured_ns);
    }
}

static void judge(const struct joule_probe_sensor *s,
                  struct joule_findings *findings)
{
    if (!s->opened) {
        joule_finding_add(findings, JOULE_FAULT, "no-counters", NULL, NULL,
                          "%s", s->error.text);
        return;
    }
    if (!s->moves)
        joule_finding_add(findings, JOULE_FAULT, "counters-still", NULL, NULL,
                          "the energy counters of the node's total %s within "
                          "%.1f s%s",
                          s->domains[0].state == JOULE_COUNTER_NEW
                              ? "could not be read"
                              : "did not move",
                          (double)s->measured_ns / 1e9,
                          s->info.cpu.hypervisor
                              ? ": this is a virtual machine, and hypervisors "
                                "rarely pass RAPL on"
                              : ": see that the firmware enables RAPL");
    else if (s->info.cpu.hypervisor)
        joule_finding_add(findings, JOULE_NOTE, "hypervisor", NULL, NULL,
                          "this is a virtual machine: its hypervisor decides "
                          "what these counters count");
    if (s->info.filtering)
        joule_finding_add(findings, JOULE_WARNING, "energy-filtering", NULL,
                          NULL,
                          "energy filtering is on (MSR 0xBC bit 0, switched "
                          "on with SGX): readings carry noise that averages "
                          "out over seconds");
    if (s->cores_left_out)
        joule_finding_add(findings, JOULE_NOTE, "cores-left-out", NULL, NULL,
                          "the counters of the single cores are not shown: "
                          "there are too many of them to open");
}

static struct joule_sensor *open_sensor(struct joule_probe *p)
{
    struct joule_probe_sensor *s = &p->sensor;
    struct joule_counters *counters;
    struct joule_sensor *sensor = NULL;

    if (p->hwmon) {
        s->way = "hwmon";
        return joule_sensor_open("joule_hwmon", p->root_fd, &p->conf.config,
                                 p->node.name, JOULE_SENSOR_MEASURE, &s->error);
    }
    counters = p->cray ? joule_cray_create(p->root_fd, &s->error)
                       : open_counters(s, p->root_fd, &p->conf.config);
    if (counters) {
        s->way = counters->way;
        sensor = joule_counter_sensor_create(p->clock, counters);
        if (!sensor)
            joule_error_set(&s->error, ENOMEM, "out of memory");
    }
    return sensor;
}

void joule_probe_sensor_collect(struct joule_probe *p, int64_t measure_ns,
                                struct joule_findings *findings)
{
    struct joule_probe_sensor *s = &p->sensor;
    struct joule_node_total *total;
    struct joule_sensor *sensor;

    total = calloc(1, sizeof(*total));
    if (!total) {
        joule_error_set(&s->error, ENOMEM, "out of memory");
        judge(s, findings);
        return;
    }
    sensor = open_sensor(p);
    if (sensor) {
        s->opened = true;
        measure(s, sensor, measure_ns, total);
        joule_sensor_destroy(sensor);
    }
    free(total);
    judge(s, findings);
}

static double range_uj(const struct joule_domain *d)
{
    double ticks = d->modulus ? (double)d->modulus : ldexp(1, d->width_bits);

    return ldexp(ticks * d->unit.num, -(int)d->unit.shift);
}

double joule_probe_sensor_wrap_s(const struct joule_domain *domain, uint64_t mw)
{
    if (mw == 0)
        return 0;
    return range_uj(domain) / ((double)mw * 1000);
}

const char *joule_probe_state_name(enum joule_counter_state state)
{
    static const char *const names[] = {
        [JOULE_COUNTER_NEW] = "unreadable",
        [JOULE_COUNTER_STILL] = "still",
        [JOULE_COUNTER_MOVING] = "moving",
        [JOULE_COUNTER_FROZEN] = "stopped",
    };

    return names[state];
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_sensors - one reading of a node's counters: two packages with DRAM in powercap
 * (four small texts), and a Cray blade's node, CPU and memory, beside four MSRs, the
 * peer.  All are files, so that what the kernel does behind them is in none.
 *
 *     bench_sensors DIRECTORY   is new; prints rows of tests/bench/run
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/sensors/cray.h"
#include "common/sensors/powercap.h"
#include "common/sensors/rapl.h"
#include "tests/bench/bench.h"

#define PACKAGES 2
#define KINDS                                                                  \
    (JOULE_DOMAIN_BIT(JOULE_DOMAIN_PACKAGE) |                                  \
     JOULE_DOMAIN_BIT(JOULE_DOMAIN_DRAM))
#define POWERCAP_GOAL 2.0

static struct joule_counters *msrs, *other;
static struct joule_raw raw[JOULE_DOMAINS_MAX];

static void read_msrs(void)
{
    msrs->ops->read(msrs, raw);
}

static void read_other(void)
{
    other->ops->read(other, raw);
}

static void put_msrs(const char *dir)
{
    static const uint64_t values[][2] = {
        {0x606, 0xA0E03}, {0x611, 0x12345678}, {0x619, 0x1234567}, {0x620, 0}};
    char path[96];
    int root_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

    bench_file(dir, "proc/cpuinfo",
               "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
               "model\t\t: 85\nmodel name\t: CPU\nflags\t\t: fpu\n\n");
    bench_file(dir, "sys/devices/system/cpu/online", "0-1\n");
    for (int i = 0; i < PACKAGES; i++) {
        snprintf(path, sizeof(path),
                 "sys/devices/system/cpu/cpu%d/topology/physical_package_id",
                 i);
        bench_file(dir, path, i ? "1\n" : "0\n");
        snprintf(path, sizeof(path),
                 "sys/devices/system/cpu/cpu%d/topology/core_id", i);
        bench_file(dir, path, "0\n");
        snprintf(path, sizeof(path), "dev/cpu/%d/msr", i);
        bench_file(dir, path, "");
        fd = openat(root_fd, path, O_WRONLY | O_CLOEXEC);
        for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++)
            if (pwrite(fd, &values[k][1], 8, (off_t)values[k][0]) != 8)
                bench_die(path, "cannot write");
        close(fd);
    }
    close(root_fd);
}

static void put_zone(const char *dir, const char *zone, const char *name,
                     const char *range)
{
    char path[96];

    snprintf(path, sizeof(path), "sys/class/powercap/%s/name", zone);
    bench_file(dir, path, name);
    snprintf(path, sizeof(path), "sys/class/powercap/%s/max_energy_range_uj",
             zone);
    bench_file(dir, path, range);
    snprintf(path, sizeof(path), "sys/class/powercap/%s/energy_uj", zone);
    bench_file(dir, path, "40123456789\n");
}

static void put_all(const char *dir)
{
    put_msrs(dir);
    put_zone(dir, "intel-rapl:0", "package-0\n", "262143328850\n");
    put_zone(dir, "intel-rapl:0:0", "dram\n", "65712999613\n");
    put_zone(dir, "intel-rapl:1", "package-1\n", "262143328850\n");
    put_zone(dir, "intel-rapl:1:0", "dram\n", "65712999613\n");
    bench_file(dir, "sys/cray/pm_counters/energy",
               "598732067 J 1606240000123456 us\n");
    bench_file(dir, "sys/cray/pm_counters/cpu_energy",
               "398732067 J 1606240000123456 us\n");
    bench_file(dir, "sys/cray/pm_counters/memory_energy",
               "98732067 J 1606240000123456 us\n");
    bench_file(dir, "sys/cray/pm_counters/freshness", "123456\n");
    bench_file(dir, "sys/cray/pm_counters/startup", "1606240000123456\n");
}

static void measure(struct bench_result *r)
{
    const struct bench_race race = {read_other, read_msrs, 2000, 200};

    bench_run_race(&race, &r->ours, &r->peer);
}

int main(int argc, char **argv)
{
    const struct joule_rapl_options opt = {.total_kinds = KINDS};
    struct joule_error err = {""};
    bool pass = true;
    int root_fd;

    if (argc != 2)
        return 2;
    put_all(argv[1]);
    root_fd = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
    msrs = joule_rapl_create(root_fd, &opt, &err);
    other = joule_powercap_create(root_fd, KINDS, &err);
    if (!msrs || !other || msrs->domain_count != 4 || other->domain_count != 4)
        bench_die("the counters", err.text);
    bench_print_head();
    pass &= bench_print_row(
        "a reading of four counters in powercap (peer: four MSRs)", "ns",
        bench_measure(measure), BENCH_RATIO, POWERCAP_GOAL);
    other->ops->destroy(other);
    other = joule_cray_create(root_fd, &err);
    if (!other)
        bench_die("pm_counters", err.text);
    pass &= bench_print_row(
        "a reading of a Cray blade's three counters (peer: four MSRs)", "ns",
        bench_measure(measure), BENCH_BELOW, 20000);
    return pass ? 0 : 1;
}

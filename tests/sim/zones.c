/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/zones.h"

#include "tests/sim/model.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLASS "sys/class/powercap"

/* 2^-16 J, as Linux rounds it. */
#define DRAM_FIXED_NJ 15300

struct zone {
    char path[48], name[24];
    size_t cpu; /* that shows the counter */
    uint32_t reg;
    uint64_t unit_nj;
};

static uint64_t unit_nj(struct joule_unit unit)
{
    return ((uint64_t)unit.num * 1000) >> unit.shift;
}

static const struct part {
    const char *name;
    uint32_t intel, amd; /* 0: it has none */
} parts[] = {
    {"", 0x611, 0xc001029b}, /* the package */
    {"dram", 0x619, 0},
    {"core", 0x639, 0xc001029a},
    {"uncore", 0x641, 0},
};

#define PARTS (sizeof(parts) / sizeof(parts[0]))

static bool has_part(const struct sim_machine *m, size_t part)
{
    const bool there[PARTS] = {true, m->dram, m->pp0 || m->vendor != SIM_INTEL,
                               m->pp1};

    return there[part] && (m->vendor == SIM_INTEL || parts[part].amd);
}

/* The first CPU of that package and die. */
static bool is_first(const struct sim_machine *m, size_t cpu)
{
    bool per_die = m->vendor == SIM_INTEL;

    for (size_t i = 0; i < cpu; i++)
        if (m->cpus[i].package == m->cpus[cpu].package &&
            (!per_die || m->cpus[i].die == m->cpus[cpu].die))
            return false;
    return true;
}

static struct zone make_zone(const struct sim_machine *m, size_t cpu,
                             unsigned top, size_t part, unsigned sub)
{
    const struct sim_cpu *c = &m->cpus[cpu];
    bool is_intel = m->vendor == SIM_INTEL;
    struct zone z = {.cpu = cpu,
                     .reg = is_intel ? parts[part].intel : parts[part].amd,
                     .unit_nj = unit_nj(m->unit)};

    if (part == 0)
        snprintf(z.path, sizeof(z.path), CLASS "/intel-rapl:%u", top);
    else
        snprintf(z.path, sizeof(z.path), CLASS "/intel-rapl:%u:%u", top, sub);
    if (part > 0)
        strcpy(z.name, parts[part].name);
    else if (is_intel && m->dies > 1)
        snprintf(z.name, sizeof(z.name), "package-%u-die-%u", c->package,
                 c->die);
    else
        snprintf(z.name, sizeof(z.name), "package-%u", c->package);
    if (z.reg == 0x619)
        z.unit_nj = m->dram_unit.num == m->unit.num &&
                            m->dram_unit.shift == m->unit.shift
                        ? z.unit_nj
                        : DRAM_FIXED_NJ;
    return z;
}

/* Call [take] for each zone until it returns other than 0. */
static int each_zone(const struct sim_machine *m,
                     int (*take)(void *arg, size_t i, const struct zone *z),
                     void *arg)
{
    unsigned top = 0;
    size_t count = 0;
    int rc = 0;

    for (size_t cpu = 0; m->powercap && cpu < m->cpu_count; cpu++) {
        unsigned sub = 0;

        if (!is_first(m, cpu))
            continue;
        for (size_t part = 0; part < PARTS; part++) {
            struct zone z = make_zone(m, cpu, top, part, sub);

            if (!has_part(m, part) || count == SIM_ZONES_MAX)
                continue;
            sub += part > 0;
            rc = take(arg, count++, &z);
            if (rc != 0)
                return rc;
        }
        top++;
    }
    if (m->powercap && m->psys && count < SIM_ZONES_MAX) {
        struct zone z = make_zone(m, 0, top, 0, 0);

        strcpy(z.name, "psys");
        z.reg = 0x64d;
        z.unit_nj = unit_nj(m->psys_unit);
        rc = take(arg, count, &z);
    }
    return rc;
}

static int count_zone(void *arg, size_t i, const struct zone *z)
{
    (void)z;
    *(size_t *)arg = i + 1;
    return 0;
}

static size_t zone_count(const struct sim_machine *machine)
{
    size_t count = 0;

    each_zone(machine, count_zone, &count);
    return count;
}

/* ---- pm_counters ---- */

#define CRAY       "sys/cray/pm_counters"
#define UPDATE_NS  (100 * JOULE_NS_PER_MS)
#define CPU_PPM    600000u
#define MEMORY_PPM 150000u

enum { ENERGY, CPU_ENERGY, MEMORY_ENERGY, FRESHNESS, STARTUP, CRAY_FILES };

static const char *const cray_files[CRAY_FILES] = {
    "energy", "cpu_energy", "memory_energy", "freshness", "startup"};

/* The energy of the last update. */
static void read_cray(struct sim_node *node, int file, char text[SIM_ZONE_TEXT])
{
    int64_t now_ns = joule_clock_mono_ns(node->clock);
    int64_t age_ns = now_ns % UPDATE_NS;
    uint64_t nj = sim_node_exact(node, now_ns).node_nj;
    uint64_t since_nj =
        (uint64_t)sim_node_uw(node, now_ns) * (uint64_t)age_ns / 1000000;
    static const uint32_t ppm[] = {1000000, CPU_PPM, MEMORY_PPM};

    nj = nj > since_nj ? nj - since_nj : 0;
    if (file == FRESHNESS)
        snprintf(text, SIM_ZONE_TEXT, "%" PRId64 "\n", now_ns / UPDATE_NS);
    else if (file == STARTUP)
        snprintf(text, SIM_ZONE_TEXT, "1606240000123456\n");
    else
        snprintf(text, SIM_ZONE_TEXT, "%" PRIu64 " J %" PRId64 " us\n",
                 sim_share(nj, ppm[file]) / 1000000000 + 1000000,
                 (now_ns - age_ns) / 1000);
}

static size_t cray_count(const struct sim_machine *machine)
{
    return machine->cray ? CRAY_FILES : 0;
}

/* ---- hwmon ---- */

#define HWMON     "sys/class/hwmon"
#define GRACE_PPM 600000u

/* Of each package its module and its processor. */
static size_t grace_count(const struct sim_machine *machine)
{
    return machine->grace ? 2 * machine->packages : 0;
}

static void read_grace(struct sim_node *node, size_t i,
                       char text[SIM_ZONE_TEXT])
{
    int64_t now_ns = joule_clock_mono_ns(node->clock);
    uint64_t uw = (uint64_t)sim_node_uw(node, now_ns) / node->machine->packages;

    snprintf(text, SIM_ZONE_TEXT, "%" PRIu64 "\n",
             i % 2 == 0 ? uw : sim_share(uw, GRACE_PPM));
}

size_t sim_zones(const struct sim_machine *machine)
{
    return zone_count(machine) + cray_count(machine) + grace_count(machine);
}

/* ---- the tree ---- */

struct writing {
    int root_fd;
    struct joule_error *err;
};

static int put_file(const struct writing *w, const struct zone *z,
                    const char *name, const char *text)
{
    char path[80];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", z->path, name);
    fd = openat(w->root_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                0444);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        joule_error_set(w->err, errno, "cannot write %s: %m", path);
    else
        return close(fd);
    if (fd >= 0)
        close(fd);
    return -1;
}

static int put_link(const struct writing *w, const char *path, const char *root,
                    size_t i)
{
    char text[64];

    snprintf(text, sizeof(text), "%s/dev/cpu/energy-%zu", root, i);
    unlinkat(w->root_fd, path, 0);
    if (symlinkat(text, w->root_fd, path) < 0)
        return joule_error_set(w->err, errno, "cannot make %s: %m", path);
    return 0;
}

static int write_zone(void *arg, size_t i, const struct zone *z)
{
    const struct writing *w = arg;
    char text[64], path[80];

    if (mkdirat(w->root_fd, z->path, 0755) < 0 && errno != EEXIST)
        return joule_error_set(w->err, errno, "cannot make %s: %m", z->path);
    snprintf(text, sizeof(text), "%s\n", z->name);
    if (put_file(w, z, "name", text) < 0)
        return -1;
    snprintf(text, sizeof(text), "%" PRIu64 "\n",
             UINT64_C(0xffffffff) * z->unit_nj / 1000);
    if (put_file(w, z, "max_energy_range_uj", text) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/energy_uj", z->path);
    return put_link(w, path, "../../../..", i);
}

static int write_cray(const struct writing *w, const struct sim_machine *m)
{
    char path[80];
    int rc = 0;

    if ((mkdirat(w->root_fd, "sys/cray", 0755) < 0 && errno != EEXIST) ||
        (mkdirat(w->root_fd, CRAY, 0755) < 0 && errno != EEXIST))
        return joule_error_set(w->err, errno, "cannot make " CRAY ": %m");
    for (size_t i = 0; i < CRAY_FILES && rc == 0; i++) {
        snprintf(path, sizeof(path), CRAY "/%s", cray_files[i]);
        rc = put_link(w, path, "../../..", zone_count(m) + i);
    }
    return rc;
}

static int write_grace(const struct writing *w, const struct sim_machine *m)
{
    static const char *const labels[] = {"Module", "Grace"};
    struct zone z = {.cpu = 0};
    char path[96], text[64];
    int rc = 0;

    if ((mkdirat(w->root_fd, "sys/class", 0755) < 0 && errno != EEXIST) ||
        (mkdirat(w->root_fd, HWMON, 0755) < 0 && errno != EEXIST))
        return joule_error_set(w->err, errno, "cannot make " HWMON ": %m");
    for (size_t i = 0; i < grace_count(m) && rc == 0; i++) {
        snprintf(z.path, sizeof(z.path), HWMON "/hwmon%zu", i);
        snprintf(path, sizeof(path), "%s/device", z.path);
        if ((mkdirat(w->root_fd, z.path, 0755) < 0 && errno != EEXIST) ||
            (mkdirat(w->root_fd, path, 0755) < 0 && errno != EEXIST))
            return joule_error_set(w->err, errno, "cannot make %s: %m", path);
        snprintf(text, sizeof(text), "%s Power Socket %zu\n", labels[i % 2],
                 i / 2);
        rc = put_file(w, &z, "device/power1_oem_info", text);
        snprintf(path, sizeof(path), "%s/device/power1_average", z.path);
        if (rc == 0)
            rc = put_link(w, path, "../../../../..",
                          zone_count(m) + cray_count(m) + i);
    }
    return rc;
}

int sim_zones_write(int root_fd, const struct sim_machine *machine,
                    struct joule_error *err)
{
    struct writing w = {root_fd, err};

    if ((machine->cray && write_cray(&w, machine) < 0) ||
        (machine->grace && write_grace(&w, machine) < 0))
        return -1;
    if (!machine->powercap)
        return 0;
    if ((mkdirat(root_fd, "sys/class", 0755) < 0 && errno != EEXIST) ||
        (mkdirat(root_fd, CLASS, 0755) < 0 && errno != EEXIST))
        return joule_error_set(err, errno, "cannot make " CLASS ": %m");
    return each_zone(machine, write_zone, &w);
}

/* ---- values ---- */

struct reading {
    struct sim_node *node;
    size_t wanted;
    char *text;
};

static int read_zone(void *arg, size_t i, const struct zone *z)
{
    struct reading *r = arg;
    uint64_t ticks;
    int errnum;

    if (i != r->wanted)
        return 0;
    errnum = sim_node_rdmsr(r->node, z->cpu, z->reg, &ticks);
    if (errnum)
        return errnum;
    snprintf(r->text, SIM_ZONE_TEXT, "%" PRIu64 "\n",
             (ticks & UINT32_MAX) * z->unit_nj / 1000);
    return -1; /* that was it */
}

int sim_zone_read(struct sim_node *node, size_t i, char text[SIM_ZONE_TEXT])
{
    struct reading r = {node, i, text};
    size_t zones = zone_count(node->machine);
    int rc;

    if (i >= zones + cray_count(node->machine))
        read_grace(node, i - zones - cray_count(node->machine), text);
    else if (i >= zones)
        read_cray(node, (int)(i - zones), text);
    if (i >= zones)
        return 0;
    rc = each_zone(node->machine, read_zone, &r);

    return rc == -1 ? 0 : rc == 0 ? ENOENT : rc;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _FILE_OFFSET_BITS 64 /* AMD's registers are beyond 2^31 */

#include "common/sensors/rapl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/sensors/cpuinfo.h"
#include "common/sensors/rapl_row.h"
#include "common/sensors/topology.h"

_Static_assert(sizeof(off_t) == 8, "MSR numbers need 64-bit file offsets");

#define PACKAGE JOULE_DOMAIN_BIT(JOULE_DOMAIN_PACKAGE)
#define DRAM    JOULE_DOMAIN_BIT(JOULE_DOMAIN_DRAM)
#define PSYS    JOULE_DOMAIN_BIT(JOULE_DOMAIN_PSYS)
#define CORE    JOULE_DOMAIN_BIT(JOULE_DOMAIN_CORE)

/* Intel SDM volume 4. */
#define MSR_ARCH_CAPABILITIES 0x10A
#define MSR_MISC_PACKAGE_CTLS 0xBC
#define CAP_FILTERING         (3u << 10) /* 0xBC exists and can filter */
#define CTL_FILTERING         1u

#define MSR_PATH_MAX 64

/* How many other CPUs one reading asks.  Each that is asked is interrupted: a
 * register that no CPU can read must not disturb all of them each second. */
#define ELSEWHERE_MAX 4

/* All that a reading needs, and nothing else: this is the hot path. */
struct slot {
    int fd;
    off_t offset;
    uint64_t mask;
};

/* An MSR device that is open, and where its counters can be read as well. */
struct device {
    int fd;
    struct joule_topology_cpu at; /* the CPU whose device it is */
    enum joule_topology_scope scope;
    uint32_t asked; /* the other CPU that was tried last */
};

struct rapl {
    struct joule_counters counters; /* first */
    int root_fd;                    /* our own copy */
    struct joule_topology topology;
    size_t device_count;
    /* Each has a domain, but for the one that is being opened. */
    struct device devices[JOULE_DOMAINS_MAX + 1];
    struct slot slots[JOULE_DOMAINS_MAX];
    struct joule_domain domains[JOULE_DOMAINS_MAX];
};

/* What creation needs beside the counters. */
struct builder {
    struct rapl *rapl;
    struct joule_rapl_info info;
    const struct joule_rapl_row *row;
    unsigned total_kinds;
    struct joule_error *err;
};

/* Domain names without the numbers, in the order of the kinds. */
static const char *const kind_names[JOULE_RAPL_KINDS] = {
    [JOULE_DOMAIN_PACKAGE] = "package", [JOULE_DOMAIN_DRAM] = "dram",
    [JOULE_DOMAIN_PP0] = "pp0",         [JOULE_DOMAIN_PP1] = "pp1",
    [JOULE_DOMAIN_PSYS] = "psys",       [JOULE_DOMAIN_CORE] = "core",
};

/* pread is a cancellation point: in a process of several threads it calls two
 * more functions, which after a sleep are in no cache. */
static ssize_t read_at(int fd, void *buf, size_t size, off_t offset)
{
#ifdef __x86_64__
    return (ssize_t)syscall(SYS_pread64, fd, buf, size, offset);
#else
    return pread(fd, buf, size, offset);
#endif
}

/* 0 or an errno value.  The MSR device gives a register whole or fails; fewer
 * bytes come from something that is no MSR device. */
static int read_msr(int fd, off_t offset, uint64_t *ret_raw)
{
    ssize_t n = read_at(fd, ret_raw, sizeof(*ret_raw), offset);

    if (n == (ssize_t)sizeof(*ret_raw))
        return 0;
    return n < 0 ? errno : EIO;
}

static void msr_path(char path[MSR_PATH_MAX], unsigned cpu)
{
    snprintf(path, MSR_PATH_MAX, "dev/cpu/%u/msr", cpu);
}

/* The device's counters are read on another CPU of its package, die or core
 * from now on.  A core keeps the number by which it is known. */
static void move_device(struct rapl *rapl, struct device *d, uint32_t cpu,
                        int errnum)
{
    const char *name = NULL;

    for (size_t i = 0; i < rapl->counters.domain_count; i++) {
        if (rapl->slots[i].fd != d->fd)
            continue;
        if (!name)
            name = rapl->domains[i].name;
        if (d->scope != JOULE_TOPOLOGY_CORE)
            rapl->domains[i].cpu = cpu;
    }
    joule_error_set(&rapl->counters.remark, 0,
                    "energy counter %s is read on CPU %u now: on CPU %u it "
                    "failed (%s)",
                    name, cpu, d->at.cpu, strerror(errnum));
    d->at.cpu = cpu;
}

/* Read the slot's register on one other CPU, and stay there if it answers. */
static int read_on(struct rapl *rapl, struct device *d, const struct slot *slot,
                   uint32_t cpu, int errnum, uint64_t *ret_raw)
{
    char path[MSR_PATH_MAX];
    int fd, rc = -1;

    msr_path(path, cpu);
    fd = joule_file_open(rapl->root_fd, path, O_RDONLY);
    if (fd < 0)
        return -1;
    /* All slots of the device have its number. */
    if (read_msr(fd, slot->offset, ret_raw) == 0 &&
        dup3(fd, d->fd, O_CLOEXEC) >= 0) {
        move_device(rapl, d, cpu, errnum);
        rc = 0;
    }
    close(fd);
    return rc;
}

/*
 * The CPU of the slot has gone offline, or its device has failed: another one
 * of the same package, die or core shows the same counter.  The process may
 * run as a user at this moment (slurmstepd): then nothing can be opened, and
 * the next reading tries again.
 */
static int read_elsewhere(struct rapl *rapl, const struct slot *slot,
                          int errnum, uint64_t *ret_raw)
{
    const struct joule_topology *t = &rapl->topology;
    struct device *d = rapl->devices;
    size_t from = 0;
    unsigned asked = 0;

    while (d->fd != slot->fd)
        d++;
    if (joule_topology_refresh(rapl->root_fd, &rapl->topology, NULL) < 0)
        return -1;
    while (from < t->cpu_count && t->cpus[from].cpu <= d->asked)
        from++;
    for (size_t i = 0; i < t->cpu_count && asked < ELSEWHERE_MAX; i++) {
        const struct joule_topology_cpu *c =
            &t->cpus[(from + i) % t->cpu_count];

        if (c->cpu == d->at.cpu || !joule_topology_is_same(c, &d->at, d->scope))
            continue;
        asked++;
        d->asked = c->cpu;
        if (read_on(rapl, d, slot, c->cpu, errnum, ret_raw) == 0)
            return 0;
    }
    return -1;
}

/* After a first failure: 0 or an errno value. */
static int read_again(struct rapl *rapl, const struct slot *slot,
                      uint64_t *ret_raw)
{
    int errnum = read_msr(slot->fd, slot->offset, ret_raw);

    if (errnum != 0 && read_elsewhere(rapl, slot, errnum, ret_raw) == 0)
        errnum = 0;
    return errnum;
}

static void rapl_read(struct joule_counters *counters, struct joule_raw *out)
{
    struct rapl *rapl = (struct rapl *)counters;
    const struct slot *slot = rapl->slots;
    const struct slot *end = slot + counters->domain_count;

    for (; slot < end; slot++, out++) {
        uint64_t raw;

        out->error = read_msr(slot->fd, slot->offset, &raw);
        if (__builtin_expect(out->error != 0, 0)) {
            out->error = read_again(rapl, slot, &raw);
            if (out->error != 0)
                raw = 0;
        }
        out->raw = raw & slot->mask;
    }
}

static void rapl_destroy(struct joule_counters *counters)
{
    struct rapl *rapl = (struct rapl *)counters;

    for (size_t i = 0; i < rapl->device_count; i++)
        close(rapl->devices[i].fd);
    if (rapl->root_fd >= 0)
        close(rapl->root_fd);
    joule_topology_free(&rapl->topology);
    free(rapl);
}

static const struct joule_counters_ops rapl_ops = {
    .read = rapl_read,
    .destroy = rapl_destroy,
};

/* Appended to sentences about registers that do not answer. */
static const char *guest_hint(const struct builder *b)
{
    return b->info.cpu.hypervisor
               ? "; this is a virtual machine, and hypervisors rarely pass "
                 "RAPL on: measure on the host"
               : "";
}

/* Open the MSR device of a CPU; the counters own it from here on. */
static int open_msr(struct builder *b, const struct joule_topology_cpu *at,
                    enum joule_topology_scope scope)
{
    char path[MSR_PATH_MAX];
    int fd;

    msr_path(path, at->cpu);
    fd = joule_file_open(b->rapl->root_fd, path, O_RDONLY);
    if (fd >= 0) {
        b->rapl->devices[b->rapl->device_count++] = (struct device){
            .fd = fd, .at = *at, .scope = scope, .asked = at->cpu};
        return fd;
    }
    switch (errno) {
    case ENOENT:
    case ENOTDIR:
    case ENXIO: /* a device node without the module behind it */
    case ENODEV:
        return joule_error_set(b->err, ENOENT,
                               "there is no /%s: load the kernel module msr "
                               "(modprobe msr, and a line \"msr\" in "
                               "/etc/modules-load.d)",
                               path);
    case EACCES:
        return joule_error_set(b->err, errno,
                               "may not open /%s: run as root, or let this "
                               "user read the file",
                               path);
    case EPERM:
        return joule_error_set(b->err, errno,
                               "may not open /%s: the capability "
                               "CAP_SYS_RAWIO is needed, and kernel lockdown "
                               "or a container may withhold it",
                               path);
    default:
        return joule_error_set(b->err, errno, "cannot open /%s: %m", path);
    }
}

/* A register that must answer did not.  On a CPU that no row knows by its
 * model it is simply not there. */
static int register_error(struct builder *b, unsigned cpu, uint32_t reg,
                          int errnum)
{
    const struct joule_cpuinfo *info = &b->info.cpu;
    char path[MSR_PATH_MAX];

    msr_path(path, cpu);
    if (errnum == EIO && b->row->unlisted && !info->hypervisor)
        return joule_error_set(b->err, ENODEV,
                               "this CPU (%s family %u model %u) has no RAPL: "
                               "register 0x%X of /%s does not answer",
                               info->vendor, info->family, info->model, reg,
                               path);
    return joule_error_set(b->err, errnum,
                           "cannot read register 0x%X of /%s: %s%s", reg, path,
                           strerror(errnum), guest_hint(b));
}

/* Fill b->info.filtering where the CPU says whether it can filter. */
static void read_filtering(struct builder *b, int fd)
{
    uint64_t caps, ctls;

    if (!b->row->map->filtering)
        return;
    if (read_msr(fd, MSR_ARCH_CAPABILITIES, &caps) == 0 &&
        (caps & CAP_FILTERING) != CAP_FILTERING)
        return;
    if (read_msr(fd, MSR_MISC_PACKAGE_CTLS, &ctls) != 0)
        return;
    b->info.filtering_known = true;
    b->info.filtering = (ctls & CTL_FILTERING) != 0;
}

/* The unit register, checked once for the ESU field that all kinds use. */
static int read_unit(struct builder *b, int fd, unsigned cpu, uint64_t *ret_raw)
{
    char path[MSR_PATH_MAX];
    struct joule_unit unit;
    int errnum = read_msr(fd, b->row->map->unit, ret_raw);

    if (errnum != 0)
        return register_error(b, cpu, b->row->map->unit, errnum);
    if (joule_rapl_row_unit(b->row, JOULE_DOMAIN_PACKAGE, *ret_raw, &unit) == 0)
        return 0;
    msr_path(path, cpu);
    return joule_error_set(b->err, ENODEV,
                           "the energy unit register 0x%X of /%s reads "
                           "0x%llX, which is no unit%s",
                           b->row->map->unit, path,
                           (unsigned long long)*ret_raw, guest_hint(b));
}

/* Counters of a package are told apart by die where there are several. */
static void name_domain(const struct builder *b, struct joule_domain *d)
{
    const char *kind = kind_names[d->kind];
    const struct joule_topology *t = &b->rapl->topology;

    if (d->kind == JOULE_DOMAIN_PSYS)
        snprintf(d->name, sizeof(d->name), "%s", kind);
    else if (d->kind == JOULE_DOMAIN_CORE)
        snprintf(d->name, sizeof(d->name), "%s-%u", kind, (unsigned)d->cpu);
    else if (b->row->per_die && t->dies > t->packages)
        snprintf(d->name, sizeof(d->name), "%s-%u-die-%u", kind, d->package,
                 d->die);
    else
        snprintf(d->name, sizeof(d->name), "%s-%u", kind, d->package);
}

/*
 * Add the domain if its register answers.  EIO is how the MSR device says
 * that the CPU does not know the register; only the package must have one.
 */
static int add_domain(struct builder *b, int fd,
                      const struct joule_topology_cpu *cpu,
                      enum joule_domain_kind kind, uint64_t unit_raw)
{
    uint32_t reg = b->row->map->energy[kind];
    size_t n = b->rapl->counters.domain_count;
    struct joule_domain d = {
        .kind = kind,
        .package = cpu->package,
        .die = cpu->die,
        .cpu = cpu->cpu,
        .width_bits = b->row->width_bits,
        .in_total = (b->total_kinds & JOULE_DOMAIN_BIT(kind)) != 0,
    };
    uint64_t raw;
    int errnum = read_msr(fd, reg, &raw);

    if (errnum == EIO && kind != JOULE_DOMAIN_PACKAGE)
        return 0;
    if (errnum != 0)
        return register_error(b, cpu->cpu, reg, errnum);
    if (n == JOULE_DOMAINS_MAX)
        return joule_error_set(b->err, E2BIG,
                               "this machine has more than %d energy counters",
                               JOULE_DOMAINS_MAX);
    joule_rapl_row_unit(b->row, kind, unit_raw, &d.unit);
    name_domain(b, &d);
    b->rapl->domains[n] = d;
    b->rapl->slots[n] = (struct slot){
        .fd = fd,
        .offset = reg,
        .mask = d.width_bits == 64 ? UINT64_MAX : UINT32_MAX,
    };
    b->rapl->counters.domain_count = n + 1;
    return 0;
}

/* All domains of [kinds] that the CPU can read. */
static int add_device(struct builder *b, const struct joule_topology_cpu *cpu,
                      enum joule_topology_scope scope, unsigned kinds)
{
    struct rapl *rapl = b->rapl;
    size_t before = rapl->counters.domain_count;
    bool is_first = rapl->device_count == 0;
    uint64_t unit_raw;
    int fd = open_msr(b, cpu, scope);

    if (fd < 0 || read_unit(b, fd, cpu->cpu, &unit_raw) < 0)
        return -1;
    if (is_first) {
        b->info.unit_raw = unit_raw;
        read_filtering(b, fd);
    }
    for (int kind = 0; kind < JOULE_RAPL_KINDS; kind++)
        if ((kinds & JOULE_DOMAIN_BIT(kind)) &&
            add_domain(b, fd, cpu, kind, unit_raw) < 0)
            return -1;
    if (rapl->counters.domain_count == before)
        close(rapl->devices[--rapl->device_count].fd);
    return 0;
}

/* The domains of [kinds] that the machine has of each package, die or core. */
static int add_devices(struct builder *b, enum joule_topology_scope scope,
                       unsigned kinds)
{
    struct joule_topology_cpu *cpus;
    size_t count;
    int rc = 0;

    if (kinds == 0)
        return 0;
    cpus = joule_topology_first_cpus(&b->rapl->topology, scope, &count);
    if (!cpus)
        return joule_error_set(b->err, errno,
                               "cannot list the packages and cores: %m");
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = add_device(b, &cpus[i], scope, kinds);
        kinds &= ~PSYS; /* the first package speaks for the one platform */
    }
    free(cpus);
    return rc;
}

/* Who and where: CPU, row and topology, as far as they are known. */
static int identify(struct builder *b)
{
    struct joule_rapl_info *info = &b->info;
    struct joule_cpuinfo *cpu = &info->cpu;
    struct joule_error reason;
    int rc;

    if (joule_cpuinfo_read(b->rapl->root_fd, cpu, b->err) < 0) {
        if (errno == ENOENT) /* which stands for the MSR device */
            errno = EINVAL;
        return -1;
    }
    b->row = joule_rapl_row_find(cpu);
    info->row = b->row ? b->row->name : NULL;
    info->kernel_has_more = b->row && b->row->kernel_has_more;
    rc = joule_topology_read(b->rapl->root_fd, &b->rapl->topology, &reason);
    info->packages = b->rapl->topology.packages;
    info->dies = b->rapl->topology.dies;
    if (cpu->vendor[0] == '\0')
        return joule_error_set(b->err, ENODEV,
                               "this is not an x86 CPU: RAPL is a feature of "
                               "Intel, AMD and Hygon CPUs");
    if (!b->row)
        return joule_error_set(b->err, ENODEV,
                               "%s family %u model %u is not known to have "
                               "RAPL: what its energy registers mean is not "
                               "guessed",
                               cpu->vendor, cpu->family, cpu->model);
    if (b->row->without)
        return joule_error_set(b->err, ENODEV,
                               "this CPU (%s family %u model %u) has no RAPL "
                               "energy counters: %s%s",
                               cpu->vendor, cpu->family, cpu->model,
                               b->row->without, guest_hint(b));
    if (rc < 0)
        return joule_error_set(b->err, errno == ENOENT ? EINVAL : errno, "%s",
                               reason.text);
    return 0;
}

static int check_total(const struct builder *b)
{
    for (size_t i = 0; i < b->rapl->counters.domain_count; i++)
        if (b->rapl->domains[i].in_total)
            return 0;
    return joule_error_set(b->err, EOPNOTSUPP,
                           "this machine (%s) has no %s energy counter, of "
                           "which the node's total is to be made%s",
                           b->row->name,
                           b->total_kinds == PSYS ? "psys" : "package",
                           guest_hint(b));
}

static int build(struct builder *b, bool with_cores)
{
    unsigned kinds;

    if (identify(b) < 0)
        return -1;
    kinds = b->row->kinds;
    if (add_devices(
            b, b->row->per_die ? JOULE_TOPOLOGY_DIE : JOULE_TOPOLOGY_PACKAGE,
            kinds & ~CORE) < 0 ||
        (with_cores && add_devices(b, JOULE_TOPOLOGY_CORE, kinds & CORE) < 0))
        return -1;
    return check_total(b);
}

struct joule_counters *joule_rapl_create(int root_fd,
                                         const struct joule_rapl_options *opt,
                                         struct joule_error *err)
{
    struct builder b = {.total_kinds = opt->total_kinds, .err = err};
    int rc, saved;

    if (b.total_kinds != PACKAGE && b.total_kinds != (PACKAGE | DRAM) &&
        b.total_kinds != PSYS) {
        joule_error_set(err, EINVAL,
                        "the node's energy is package, package and DRAM, or "
                        "psys: any other sum counts some of it twice or not "
                        "at all");
        return NULL;
    }
    b.rapl = calloc(1, sizeof(*b.rapl));
    if (!b.rapl) {
        joule_error_set(err, errno, "cannot open the RAPL counters: %m");
        return NULL;
    }
    b.rapl->counters.ops = &rapl_ops;
    b.rapl->counters.way = "MSR";
    b.rapl->counters.domains = b.rapl->domains;
    b.rapl->root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    if (b.rapl->root_fd < 0)
        rc = joule_error_set(err, errno, "cannot open the RAPL counters: %m");
    else
        rc = build(&b, opt->with_cores);
    if (opt->ret_info)
        *opt->ret_info = b.info;
    saved = errno;
    if (rc < 0)
        rapl_destroy(&b.rapl->counters);
    else if (b.info.filtering)
        joule_error_set(&b.rapl->counters.remark, 0,
                        "RAPL energy filtering is on (MSR 0xBC bit 0, switched "
                        "on with SGX): readings carry noise that averages out "
                        "over seconds");
    errno = saved;
    return rc < 0 ? NULL : &b.rapl->counters;
}

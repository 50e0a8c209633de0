/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/powercap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/int128.h"
#include "common/base/parse.h"
#include "common/sensors/cpuinfo.h"
#include "common/sensors/topology.h"

#define CLASS     "sys/class/powercap"
#define ZONE_PATH 96
#define ZONE_NAME 32
#define TEXT_MAX  32 /* 20 digits and a newline */
#define TICKS     (UINT64_C(1) << 32)

/* The unit is 2^-n J, but for what rounding has made of it. */
#define ESU_MAX      20
#define OFF_PER_1000 4

#define NO_PARENT UINT32_MAX

/* "intel-rapl:3:1" is zone 1 of zone 3. */
struct zone {
    uint32_t top, sub; /* NO_PARENT: it is a top one */
};

struct powercap {
    struct joule_counters counters; /* first */
    int root_fd;                    /* our own copy */
    bool is_amd;                    /* "core" is one core of many */
    struct joule_topology topology;
    int fd[JOULE_DOMAINS_MAX];
    struct zone zone[JOULE_DOMAINS_MAX];
    struct joule_domain domains[JOULE_DOMAINS_MAX];
};

/* ---- reading ---- */

/* 0 or an errno value. */
static int read_energy(int fd, uint64_t modulus, uint64_t *ret_raw)
{
    char text[TEXT_MAX];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

    if (n < 0)
        return errno;
    if (n > 0 && text[n - 1] == '\n')
        n--;
    text[n] = '\0';
    if (strlen(text) != (size_t)n ||
        joule_parse_u64(text, 0, modulus - 1, ret_raw) < 0)
        return EBADMSG;
    return 0;
}

static void zone_path(char path[ZONE_PATH], struct zone z, const char *file)
{
    if (z.sub == NO_PARENT)
        snprintf(path, ZONE_PATH, CLASS "/intel-rapl:%u/%s", z.top, file);
    else
        snprintf(path, ZONE_PATH, CLASS "/intel-rapl:%u:%u/%s", z.top, z.sub,
                 file);
}

static int open_energy(struct powercap *p, struct zone z)
{
    char path[ZONE_PATH];

    zone_path(path, z, "energy_uj");
    return joule_file_open(p->root_fd, path, O_RDONLY);
}

/* A package that has gone and come back has other files of the same names. */
static int read_again(struct powercap *p, size_t i, uint64_t *ret_raw)
{
    const struct joule_domain *d = &p->domains[i];
    int errnum = read_energy(p->fd[i], d->modulus, ret_raw), fd;

    if (errnum == 0)
        return 0;
    fd = open_energy(p, p->zone[i]);
    if (fd < 0)
        return errnum;
    errnum = read_energy(fd, d->modulus, ret_raw);
    if (errnum == 0 && dup3(fd, p->fd[i], O_CLOEXEC) >= 0)
        joule_error_set(&p->counters.remark, 0,
                        "energy counter %s was opened again", d->name);
    close(fd);
    return errnum;
}

static void powercap_read(struct joule_counters *counters,
                          struct joule_raw *out)
{
    struct powercap *p = (struct powercap *)counters;

    for (size_t i = 0; i < counters->domain_count; i++) {
        out[i].error =
            read_energy(p->fd[i], p->domains[i].modulus, &out[i].raw);
        if (out[i].error)
            out[i].error = read_again(p, i, &out[i].raw);
        if (out[i].error)
            out[i].raw = 0;
    }
}

static void powercap_destroy(struct joule_counters *counters)
{
    struct powercap *p = (struct powercap *)counters;

    for (size_t i = 0; i < counters->domain_count; i++)
        close(p->fd[i]);
    joule_close(p->root_fd);
    joule_topology_free(&p->topology);
    free(p);
}

static const struct joule_counters_ops powercap_ops = {
    .read = powercap_read,
    .destroy = powercap_destroy,
};

/* ---- zones ---- */

/* "intel-rapl:N" and "intel-rapl:N:M"; others (intel-rapl-mmio, dtpm) count the
 * same again or something else. */
static bool parse_zone(const char *name, struct zone *ret)
{
    static const char prefix[] = "intel-rapl:";
    char text[ZONE_NAME], *colon;
    uint64_t top, sub = NO_PARENT;

    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0 ||
        strlen(name) >= sizeof(text))
        return false;
    strcpy(text, name + sizeof(prefix) - 1);
    colon = strchr(text, ':');
    if (colon) {
        *colon = '\0';
        if (joule_parse_u64(colon + 1, 0, UINT16_MAX, &sub) < 0)
            return false;
    }
    if (joule_parse_u64(text, 0, UINT16_MAX, &top) < 0)
        return false;
    *ret = (struct zone){(uint32_t)top, (uint32_t)sub};
    return true;
}

/* A zone before those in it. */
static int compare_zones(const void *pa, const void *pb)
{
    const struct zone *a = pa, *b = pb;

    if (a->top != b->top)
        return a->top < b->top ? -1 : 1;
    return (a->sub + 1 > b->sub + 1) - (a->sub + 1 < b->sub + 1);
}

/* How many, in order; the caller frees *ret. */
static ssize_t list_zones(int root_fd, struct zone **ret)
{
    int fd = joule_file_open(root_fd, CLASS, O_RDONLY | O_DIRECTORY);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct zone *zone = calloc(JOULE_DOMAINS_MAX + 1, sizeof(*zone));
    struct dirent *entry;
    ssize_t count = 0;

    if (!dir || !zone) {
        if (!dir)
            joule_close(fd);
        else
            closedir(dir);
        free(zone);
        return -1;
    }
    while (count <= JOULE_DOMAINS_MAX && (entry = readdir(dir)))
        count += parse_zone(entry->d_name, &zone[count]);
    closedir(dir);
    qsort(zone, (size_t)count, sizeof(*zone), compare_zones);
    *ret = zone;
    return count;
}

/* ---- domains ---- */

static int read_text(struct powercap *p, struct zone z, const char *file,
                     char text[ZONE_NAME], struct joule_error *err)
{
    char path[ZONE_PATH];

    zone_path(path, z, file);
    if (joule_file_read(p->root_fd, path, text, ZONE_NAME) >= 0)
        return 0;
    return joule_error_set(err, errno == EFBIG ? EINVAL : errno,
                           "cannot read /%s: %m", path);
}

/* "package-1" and "package-1-die-0". */
static bool parse_package(const char *name, struct joule_domain *d)
{
    unsigned package, die = 0;
    char canonical[ZONE_NAME];

    if (sscanf(name, "package-%5u-die-%5u", &package, &die) < 1)
        return false;
    snprintf(canonical, sizeof(canonical),
             strstr(name, "-die-") ? "package-%u-die-%u" : "package-%u",
             package, die);
    if (strcmp(name, canonical) != 0 || package > UINT16_MAX ||
        die > UINT16_MAX)
        return false;
    d->kind = JOULE_DOMAIN_PACKAGE;
    d->package = (uint16_t)package;
    d->die = (uint16_t)die;
    snprintf(d->name, sizeof(d->name), "%s", name);
    return true;
}

/* What a zone in the package [in] is. */
static bool parse_part(const struct powercap *p, const char *name,
                       const struct joule_domain *in, struct joule_domain *d)
{
    static const struct {
        const char *zone, *name;
        enum joule_domain_kind kind;
    } parts[] = {
        {"dram", "dram", JOULE_DOMAIN_DRAM},
        {"core", "pp0", JOULE_DOMAIN_PP0},
        {"uncore", "pp1", JOULE_DOMAIN_PP1},
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strcmp(name, parts[i].zone) != 0)
            continue;
        *d = *in;
        d->kind = parts[i].kind;
        snprintf(d->name, sizeof(d->name), "%s%.20s", parts[i].name,
                 in->name + strlen("package"));
        return d->kind != JOULE_DOMAIN_PP0 || !p->is_amd;
    }
    return false;
}

static uint32_t first_cpu(const struct powercap *p,
                          const struct joule_domain *d)
{
    for (size_t i = 0; i < p->topology.cpu_count; i++)
        if (p->topology.cpus[i].package == d->package)
            return p->topology.cpus[i].cpu;
    return 0;
}

/*
 * The counter has 32 bits, and the range is what they hold in uJ, by the kernel's
 * whole nJ: it tells these, and they what the hardware really counts in.
 */
static void find_unit(struct joule_domain *d, uint64_t range_uj)
{
    uint64_t unit_nj =
        (uint64_t)(((joule_u128)range_uj * 1000 + TICKS / 2) / (TICKS - 1));
    uint64_t true_pj;

    d->unit = (struct joule_unit){.num = 1, .shift = 0};
    d->width_bits = 64;
    d->modulus = range_uj < UINT64_MAX ? range_uj + 1 : UINT64_MAX;
    if (unit_nj == 0 || (joule_u128)unit_nj * TICKS / 1000 > UINT64_MAX)
        return;
    d->modulus = (uint64_t)((joule_u128)unit_nj * TICKS / 1000);
    for (unsigned n = 0; n <= ESU_MAX; n++) {
        true_pj = (UINT64_C(1000000000000) + (1u << n) / 2) >> n;
        if (true_pj > unit_nj * (1000 + OFF_PER_1000) ||
            true_pj < unit_nj * (1000 - OFF_PER_1000))
            continue;
        d->unit = (struct joule_unit){
            .num = (uint32_t)(((joule_u128)true_pj << 31) / (unit_nj * 1000)),
            .shift = 31};
        return;
    }
}

static int add_domain(struct powercap *p, struct zone z, struct joule_domain *d,
                      unsigned total_kinds, struct joule_error *err)
{
    size_t n = p->counters.domain_count;
    char text[ZONE_NAME];
    uint64_t range_uj, raw;
    int errnum;

    if (n == JOULE_DOMAINS_MAX)
        return joule_error_set(err, E2BIG,
                               "this machine has more than %d energy counters",
                               JOULE_DOMAINS_MAX);
    if (read_text(p, z, "max_energy_range_uj", text, err) < 0)
        return -1;
    if (joule_parse_u64(text, 1000, UINT64_MAX, &range_uj) < 0)
        return joule_error_set(err, EINVAL,
                               "max_energy_range_uj of powercap's %s makes no "
                               "sense",
                               d->name);
    find_unit(d, range_uj);
    d->cpu = first_cpu(p, d);
    d->in_total = (total_kinds & JOULE_DOMAIN_BIT(d->kind)) != 0;
    p->fd[n] = open_energy(p, z);
    if (p->fd[n] < 0)
        return joule_error_set(
            err, errno, "may not read energy_uj of powercap's %s: %m", d->name);
    p->zone[n] = z;
    p->domains[n] = *d;
    p->counters.domain_count = n + 1;
    errnum = read_energy(p->fd[n], d->modulus, &raw);
    if (errnum)
        return joule_error_set(err, errnum == EBADMSG ? EINVAL : errnum,
                               "energy_uj of powercap's %s: %s", d->name,
                               errnum == EBADMSG ? "it is no energy"
                                                 : strerror(errnum));
    return 0;
}

static bool has_name(const struct powercap *p, const char *name)
{
    for (size_t i = 0; i < p->counters.domain_count; i++)
        if (strcmp(p->domains[i].name, name) == 0)
            return true;
    return false;
}

/* A zone that is of nothing we know is left alone. */
static int add_zone(struct powercap *p, struct zone z, struct joule_domain *top,
                    unsigned total_kinds, struct joule_error *err)
{
    struct joule_domain d = {0};
    char name[ZONE_NAME];
    bool known;

    if (read_text(p, z, "name", name, err) < 0)
        return -1;
    if (z.sub != NO_PARENT) {
        known = top->name[0] && parse_part(p, name, top, &d);
    } else if (strcmp(name, "psys") == 0) {
        d.kind = JOULE_DOMAIN_PSYS;
        strcpy(d.name, "psys");
        known = true;
    } else {
        known = parse_package(name, &d);
    }
    if (z.sub == NO_PARENT)
        *top = known && d.kind == JOULE_DOMAIN_PACKAGE
                   ? d
                   : (struct joule_domain){0};
    if (!known)
        return 0;
    if (has_name(p, d.name))
        return joule_error_set(err, EINVAL,
                               "powercap has two zones of the name %s", d.name);
    return add_domain(p, z, &d, total_kinds, err);
}

static int check_total(const struct powercap *p, struct joule_error *err)
{
    for (size_t i = 0; i < p->counters.domain_count; i++)
        if (p->domains[i].in_total)
            return 0;
    return joule_error_set(err, EOPNOTSUPP,
                           "powercap has no energy counter of which the "
                           "node's total is to be made");
}

static int build(struct powercap *p, unsigned total_kinds,
                 struct joule_error *err)
{
    struct joule_domain top = {0};
    struct joule_cpuinfo cpu;
    struct zone *zone = NULL;
    ssize_t count = list_zones(p->root_fd, &zone);
    int rc = 0;

    if (count < 0 && errno != ENOENT && errno != ENOTDIR)
        return joule_error_set(err, errno, "cannot list /" CLASS ": %m");
    if (count <= 0) {
        free(zone);
        return joule_error_set(err, ENOENT,
                               "there is no /" CLASS "/intel-rapl:0 (kernel "
                               "module intel_rapl_msr or intel_rapl_tpmi)");
    }
    p->is_amd = joule_cpuinfo_read(p->root_fd, &cpu, NULL) == 0 &&
                strcmp(cpu.vendor, "GenuineIntel") != 0;
    joule_topology_read(p->root_fd, &p->topology, NULL);
    for (ssize_t i = 0; i < count && rc == 0; i++)
        rc = add_zone(p, zone[i], &top, total_kinds, err);
    free(zone);
    return rc < 0 ? -1 : check_total(p, err);
}

struct joule_counters *joule_powercap_create(int root_fd, unsigned total_kinds,
                                             struct joule_error *err)
{
    struct powercap *p = calloc(1, sizeof(*p));
    int saved;

    if (!p) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    p->counters.ops = &powercap_ops;
    p->counters.way = "powercap";
    p->counters.domains = p->domains;
    p->root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    if (p->root_fd < 0)
        joule_error_set(err, errno, "cannot open powercap: %m");
    else if (build(p, total_kinds, err) == 0)
        return &p->counters;
    saved = errno;
    powercap_destroy(&p->counters);
    errno = saved;
    return NULL;
}

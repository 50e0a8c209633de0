/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sparse file stands in for an MSR device: its offset is the register's
 * number.  Intel's energy registers lie 8 bytes or more apart.  AMD's lie one
 * byte apart, so that in a file the second byte of the unit register (which
 * is the ESU field) is also the lowest byte of the core's counter; that is
 * enough for which domains there are, and the values of AMD are tested with
 * the simulated node.
 */
#define _FILE_OFFSET_BITS 64

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/sensors/rapl.h"
#include "common/sensors/rapl_row.h"
#include "tests/unit/tree.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

#define BIT(kind) JOULE_DOMAIN_BIT(JOULE_DOMAIN_##kind)

#define UNIT 0x606
#define PKG  0x611
#define DRAM 0x619
#define PP0  0x639
#define PP1  0x641
#define PSYS 0x64D

#define ESU_14 UINT64_C(0xA0E03) /* Xeon */
#define ESU_16 UINT64_C(0xA1003)

static struct tree tree;
static struct joule_error err;

static void setup(void)
{
    tree_create(&tree);
    memset(&err, 0, sizeof(err));
}

static void teardown(void)
{
    tree_destroy(&tree);
}

static void cpuinfo(const char *vendor, unsigned family, unsigned model,
                    const char *flags)
{
    char text[512];

    snprintf(text, sizeof(text),
             "processor\t: 0\nvendor_id\t: %s\ncpu family\t: %u\n"
             "model\t\t: %u\nmodel name\t: Test CPU\nflags\t\t: fpu %s\n\n",
             vendor, family, model, flags);
    tree_write(&tree, "proc/cpuinfo", text);
}

static void online(const char *list)
{
    tree_write(&tree, "sys/devices/system/cpu/online", list);
}

static void poke(unsigned cpu, off_t reg, uint64_t value)
{
    char path[64];

    snprintf(path, sizeof(path), "dev/cpu/%u/msr", cpu);
    tree_poke(&tree, path, reg, &value, sizeof(value));
}

static void cut(unsigned cpu, off_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "dev/cpu/%u/msr", cpu);
    tree_truncate(&tree, path, size);
}

/* A Skylake-SP with [packages] of one CPU each, and PSYS behind its last
 * register that a row without PSYS must not see. */
static void xeon(unsigned packages)
{
    char list[32];

    cpuinfo("GenuineIntel", 6, 0x55, "");
    snprintf(list, sizeof(list), "0-%u", packages - 1);
    online(list);
    for (unsigned cpu = 0; cpu < packages; cpu++) {
        tree_cpu(&tree, cpu, (int)cpu, 0, 0);
        poke(cpu, UNIT, ESU_14);
        poke(cpu, PKG, 0x100 + cpu);
        poke(cpu, DRAM, 0x200 + cpu);
        cut(cpu, DRAM + 8);
    }
}

static struct joule_rapl_info info; /* of the counters made last */

/* [opt] with what it does not say: package and DRAM. */
static struct joule_rapl_options options(const struct joule_rapl_options *opt)
{
    struct joule_rapl_options o = opt ? *opt : (struct joule_rapl_options){0};

    if (o.total_kinds == 0)
        o.total_kinds = BIT(PACKAGE) | BIT(DRAM);
    o.ret_info = &info;
    return o;
}

static void must_fail(const struct joule_rapl_options *opt, int errnum,
                      const char *sentence)
{
    const struct joule_rapl_options o = options(opt);
    unsigned fds = tree_open_fds();

    errno = 0;
    ck_assert_ptr_null(joule_rapl_create(tree.fd, &o, &err));
    ck_assert_msg(errno == errnum, "%s: %s", strerror(errno), err.text);
    ck_assert_msg(strstr(err.text, sentence), "%s", err.text);
    ck_assert_ptr_null(joule_rapl_create(tree.fd, &o, NULL));
    ck_assert_int_eq(errno, errnum);
    ck_assert_uint_eq(tree_open_fds(), fds);
}

static struct joule_counters *must_create(const struct joule_rapl_options *opt)
{
    const struct joule_rapl_options o = options(opt);
    struct joule_counters *counters = joule_rapl_create(tree.fd, &o, &err);

    ck_assert_msg(counters != NULL, "%s", err.text);
    return counters;
}

/* The names of the domains, "*" behind those of the total. */
static void must_have(const struct joule_counters *counters,
                      const char *expected)
{
    char text[4096] = "";

    for (size_t i = 0; i < counters->domain_count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%s",
                 i ? " " : "", counters->domains[i].name,
                 counters->domains[i].in_total ? "*" : "");
    ck_assert_str_eq(text, expected);
}

START_TEST(empty_root)
{
    must_fail(NULL, EINVAL, "/proc/cpuinfo");
}
END_TEST

START_TEST(bad_cpuinfo)
{
    tree_write(&tree, "proc/cpuinfo",
               "processor : 0\nvendor_id : GenuineIntel"
               "\ncpu family : six\n");
    must_fail(NULL, EINVAL, "cpu family: six");
}
END_TEST

START_TEST(not_x86)
{
    tree_write(&tree, "proc/cpuinfo", "processor : 0\nCPU part : 0xd0c\n");
    must_fail(NULL, ENODEV, "not an x86 CPU");
}
END_TEST

static const struct {
    const char *vendor;
    unsigned family, model;
} unknown[] = {
    {"CentaurHauls", 6, 0x55}, {"GenuineIntel", 15, 6},
    {"GenuineIntel", 5, 1},    {"AuthenticAMD", 0x15, 1},
    {"AuthenticAMD", 0x16, 1}, {"AuthenticAMD", 6, 0x55},
    {"HygonGenuine", 0x17, 1}, {"GenuineIntel", 6, 0x100},
    {"GenuineIntel", 6, 0xFE}, {"GenuineIntel", 0x12, 1},
    {"GenuineIntel", 0x13, 2}, {"AuthenticAMD", 0x1B, 1},
};

START_TEST(unknown_cpu)
{
    cpuinfo(unknown[_i].vendor, unknown[_i].family, unknown[_i].model, "");
    must_fail(NULL, ENODEV, "is not known to have RAPL");
}
END_TEST

START_TEST(bad_topology)
{
    cpuinfo("GenuineIntel", 6, 0x55, "");
    must_fail(NULL, EINVAL, "mount sysfs");
    online("0-");
    must_fail(NULL, EINVAL, "not a list of CPUs");
}
END_TEST

START_TEST(no_device)
{
    xeon(1);
    tree_remove(&tree, "dev/cpu/0/msr");
    must_fail(NULL, ENOENT, "modprobe msr");
    ck_assert_ptr_nonnull(strstr(err.text, "/dev/cpu/0/msr"));
}
END_TEST

START_TEST(no_device_on_second_package)
{
    xeon(2);
    tree_remove(&tree, "dev/cpu/1/msr");
    must_fail(NULL, ENOENT, "/dev/cpu/1/msr");
}
END_TEST

/* A socket refuses to be opened as a device node without a module does. */
START_TEST(no_module)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    xeon(1);
    tree_remove(&tree, "dev/cpu/0/msr");
    snprintf(name.sun_path, sizeof(name.sun_path), "%s/dev/cpu/0/msr",
             tree.path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    must_fail(NULL, ENOENT, "modprobe msr");
    close(fd);
}
END_TEST

START_TEST(no_permission)
{
    bool root = geteuid() == 0;

    xeon(1);
    ck_assert_int_eq(fchmodat(tree.fd, "dev/cpu/0/msr", 0, 0), 0);
    if (root)
        ck_assert_int_eq(seteuid(65534), 0);
    must_fail(NULL, EACCES, "run as root");
    if (root)
        ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

START_TEST(not_a_device)
{
    xeon(1);
    tree_remove(&tree, "dev/cpu/0/msr");
    tree_mkdir(&tree, "dev/cpu/0/msr");
    must_fail(NULL, EISDIR, "register 0x606 of /dev/cpu/0/msr");
}
END_TEST

START_TEST(no_unit_register)
{
    xeon(1);
    cut(0, UNIT);
    must_fail(NULL, EIO, "register 0x606 of /dev/cpu/0/msr");
    ck_assert_ptr_null(strstr(err.text, "virtual"));
}
END_TEST

START_TEST(half_a_register)
{
    xeon(1);
    cut(0, UNIT + 4);
    must_fail(NULL, EIO, "register 0x606");
    cut(0, PKG + 7);
    must_fail(NULL, EIO, "register 0x611");
}
END_TEST

START_TEST(no_package_register)
{
    xeon(2);
    cut(1, PKG);
    must_fail(NULL, EIO, "register 0x611 of /dev/cpu/1/msr");
}
END_TEST

START_TEST(guest)
{
    xeon(1);
    cpuinfo("GenuineIntel", 6, 0x55, "hypervisor");
    cut(0, UNIT);
    must_fail(NULL, EIO, "virtual machine");
}
END_TEST

/* With and without the module, whose loading would help nobody. */
START_TEST(cpu_without_rapl)
{
    static const struct {
        unsigned family, model;
        const char *sentence;
    } cpus[] = {
        {6, 0x0F, "Sandy Bridge"}, {6, 0x17, "Sandy Bridge"},
        {6, 0x1A, "Sandy Bridge"}, {6, 0x2C, "Sandy Bridge"},
        {6, 0x2F, "Sandy Bridge"}, {0x13, 1, "TPMI"},
    };

    xeon(1);
    for (int i = 0; i < COUNT(cpus); i++) {
        cpuinfo("GenuineIntel", cpus[i].family, cpus[i].model, "");
        must_fail(NULL, ENODEV, "has no RAPL energy counters");
        ck_assert_ptr_nonnull(strstr(err.text, cpus[i].sentence));
    }
    tree_remove(&tree, "dev/cpu/0/msr");
    cpuinfo("GenuineIntel", 6, 0x0F, "");
    must_fail(NULL, ENODEV, "has no RAPL energy counters");
    ck_assert_ptr_null(strstr(err.text, "modprobe"));
    cpuinfo("GenuineIntel", 6, 0x0F, "hypervisor");
    must_fail(NULL, ENODEV, "virtual machine");
}
END_TEST

static const uint64_t bad_units[] = {0, 0xA0003, 0x303, 0x1503, 0x1F03};

START_TEST(bad_unit)
{
    xeon(1);
    cpuinfo("GenuineIntel", 6, 0x55, "hypervisor");
    poke(0, UNIT, bad_units[_i]);
    must_fail(NULL, ENODEV, "which is no unit; this is a virtual machine");
}
END_TEST

START_TEST(bad_unit_on_second_package)
{
    xeon(2);
    poke(1, UNIT, 0);
    must_fail(NULL, ENODEV, "0x606 of /dev/cpu/1/msr reads 0x0");
}
END_TEST

static const unsigned bad_totals[] = {
    BIT(DRAM),
    BIT(PP0),
    BIT(CORE),
    BIT(PSYS) | BIT(PACKAGE),
    BIT(PSYS) | BIT(DRAM),
    BIT(PACKAGE) | BIT(PP0),
    1u << 31,
};

START_TEST(bad_total)
{
    struct joule_rapl_options opt = {.total_kinds = bad_totals[_i]};

    xeon(1);
    must_fail(&opt, EINVAL, "counts some of it twice");
}
END_TEST

START_TEST(no_psys_for_total)
{
    struct joule_rapl_options opt = {.total_kinds = BIT(PSYS)};

    xeon(1);
    must_fail(&opt, EOPNOTSUPP, "no psys energy counter");
    cpuinfo("GenuineIntel", 6, 0x8F, ""); /* has one, but it is silent */
    must_fail(&opt, EOPNOTSUPP, "no psys energy counter");
}
END_TEST

START_TEST(too_many_domains)
{
    xeon(65);
    must_fail(NULL, E2BIG, "more than 128 energy counters");
}
END_TEST

START_TEST(as_many_domains_as_can_be)
{
    struct joule_counters *counters;

    xeon(64);
    counters = must_create(NULL);
    ck_assert_uint_eq(counters->domain_count, JOULE_DOMAINS_MAX);
    counters->ops->destroy(counters);
}
END_TEST

START_TEST(too_many_devices)
{
    struct joule_rapl_options opt = {.with_cores = true};

    cpuinfo("AuthenticAMD", 0x17, 0x31, "");
    online("0-127");
    for (unsigned cpu = 0; cpu < 128; cpu++) {
        tree_cpu(&tree, cpu, 0, 0, (int)cpu);
        poke(cpu, 0xC0010299, 0xA1003);
        poke(cpu, 0xC001029B, 0x1234);
    }
    must_fail(&opt, E2BIG, "more than 128 energy counters");
}
END_TEST

START_TEST(read_error)
{
    struct joule_raw out[2];
    struct joule_counters *counters;

    xeon(1);
    counters = must_create(NULL);
    cut(0, DRAM + 4);
    memset(out, 0xFF, sizeof(out));
    counters->ops->read(counters, out);
    ck_assert_int_eq(out[0].error, 0);
    ck_assert_uint_eq(out[0].raw, 0x100);
    ck_assert_int_eq(out[1].error, EIO);
    cut(0, 0);
    counters->ops->read(counters, out);
    ck_assert_int_eq(out[0].error, EIO);
    poke(0, PKG, 7);
    poke(0, DRAM, 8);
    counters->ops->read(counters, out);
    ck_assert_int_eq(out[0].error, 0);
    ck_assert_int_eq(out[1].error, 0);
    ck_assert_uint_eq(out[0].raw, 7);
    ck_assert_uint_eq(out[1].raw, 8);
    counters->ops->destroy(counters);
}
END_TEST

static void four_dies(const char *vendor, unsigned family, unsigned model,
                      off_t unit, off_t pkg);

/* Four CPUs in two packages, 0 and 2, 1 and 3, whose counters all CPUs of a
 * package show. */
static void two_by_two(void)
{
    xeon(2);
    online("0-3");
    for (unsigned cpu = 2; cpu < 4; cpu++) {
        tree_cpu(&tree, cpu, (int)cpu % 2, 0, 1);
        poke(cpu, UNIT, ESU_14);
        poke(cpu, PKG, 0x1000 + cpu);
        poke(cpu, DRAM, 0x2000 + cpu);
        cut(cpu, DRAM + 8);
    }
}

/* Reads of the CPU fail from now on, though its device is open. */
static void offline(unsigned cpu, const char *rest)
{
    char path[64];

    cut(cpu, 0);
    snprintf(path, sizeof(path), "dev/cpu/%u/msr", cpu);
    tree_remove(&tree, path);
    snprintf(path, sizeof(path),
             "sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
    tree_remove(&tree, path);
    online(rest);
}

static void must_remark(struct joule_counters *counters, const char *sentence)
{
    ck_assert_msg(sentence ? strstr(counters->remark.text, sentence) != NULL
                           : counters->remark.text[0] == '\0',
                  "%s", counters->remark.text);
    counters->remark.text[0] = '\0';
}

static void must_read(struct joule_counters *counters, uint64_t package_1,
                      uint64_t dram_1)
{
    struct joule_raw out[4];

    counters->ops->read(counters, out);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(out[i].error, 0);
    ck_assert_uint_eq(out[0].raw, 0x100);
    ck_assert_uint_eq(out[2].raw, package_1);
    ck_assert_uint_eq(out[3].raw, dram_1);
}

/* At once, and for all counters of the device; and back, when the other one
 * goes in its turn. */
START_TEST(cpu_goes_offline)
{
    struct joule_counters *counters;
    unsigned fds;

    two_by_two();
    counters = must_create(NULL);
    fds = tree_open_fds();
    must_read(counters, 0x101, 0x201);
    must_remark(counters, NULL);
    offline(1, "0,2-3");
    must_read(counters, 0x1003, 0x2003);
    must_remark(counters, "package-1 is read on CPU 3 now: on CPU 1 it failed");
    must_remark(counters, NULL);
    ck_assert_uint_eq(counters->domains[0].cpu, 0);
    ck_assert_uint_eq(counters->domains[2].cpu, 3);
    ck_assert_uint_eq(counters->domains[3].cpu, 3);
    ck_assert_uint_eq(tree_open_fds(), fds);
    must_read(counters, 0x1003, 0x2003);
    /* CPU 1 is back, on another file, as its device is. */
    tree_cpu(&tree, 1, 1, 0, 0);
    poke(1, PKG, 0x111);
    poke(1, DRAM, 0x211);
    offline(3, "0-2");
    must_read(counters, 0x111, 0x211);
    ck_assert_uint_eq(counters->domains[2].cpu, 1);
    ck_assert_uint_eq(tree_open_fds(), fds);
    counters->ops->destroy(counters);
}
END_TEST

/* No CPU of another package stands in; the other package is read. */
START_TEST(package_goes_offline)
{
    struct joule_raw out[4];
    struct joule_counters *counters;
    unsigned fds;

    two_by_two();
    counters = must_create(NULL);
    fds = tree_open_fds();
    offline(1, "0,2-3");
    offline(3, "0,2");
    for (int i = 0; i < 3; i++) {
        counters->ops->read(counters, out);
        ck_assert_int_eq(out[0].error, 0);
        ck_assert_int_eq(out[1].error, 0);
        ck_assert_int_eq(out[2].error, EIO);
        ck_assert_int_eq(out[3].error, EIO);
    }
    must_remark(counters, NULL);
    ck_assert_uint_eq(tree_open_fds(), fds);
    /* One that was not there when the counters were opened. */
    tree_cpu(&tree, 5, 1, 0, 2);
    poke(5, PKG, 0x555);
    poke(5, DRAM, 0x666);
    online("0,2,5");
    must_read(counters, 0x555, 0x666);
    must_remark(counters, "package-1 is read on CPU 5 now");
    counters->ops->destroy(counters);
}
END_TEST

/* The device fails though its CPU is online; some of the others do, too. */
START_TEST(devices_fail)
{
    struct joule_raw out[1];
    struct joule_counters *counters;
    char list[] = "0-9";
    int tries = 0;

    xeon(1);
    cut(0, DRAM);
    online(list);
    for (unsigned cpu = 1; cpu < 10; cpu++) {
        tree_cpu(&tree, cpu, 0, 0, (int)cpu);
        poke(cpu, UNIT, ESU_14);
    }
    poke(9, PKG, 0x999);
    cut(9, PKG + 8);
    counters = must_create(NULL);
    must_have(counters, "package-0*");
    cut(0, 0);
    do {
        counters->ops->read(counters, out);
        tries++;
    } while (out[0].error && tries < 10);
    ck_assert_int_eq(out[0].error, 0);
    ck_assert_uint_eq(out[0].raw, 0x999);
    ck_assert_int_le(tries, 3);
    counters->ops->destroy(counters);
}
END_TEST

/* Each die has counters of its own; those of a package that mirror one do
 * not; a core has its own, and its name. */
START_TEST(another_cpu_of_what_counts)
{
    struct joule_rapl_options opt = {.with_cores = true};
    struct joule_raw out[9];
    struct joule_counters *counters;

    four_dies("GenuineIntel", 6, 0x55, UNIT, PKG);
    counters = must_create(NULL);
    offline(2, "0-1,3-7");
    counters->ops->read(counters, out);
    ck_assert_uint_eq(out[1].raw, 1003);
    offline(3, "0-1,4-7");
    counters->ops->read(counters, out);
    ck_assert_int_eq(out[1].error, EIO);
    ck_assert_int_eq(out[0].error, 0);
    counters->ops->destroy(counters);

    four_dies("AuthenticAMD", 0x17, 1, 0xC0010299, 0xC001029B);
    for (unsigned cpu = 0; cpu < 8; cpu++)
        tree_cpu(&tree, cpu, (int)cpu / 4, (int)cpu / 2 % 2, 0);
    counters = must_create(&opt);
    must_have(counters, "package-0* package-1* core-0 core-2 core-4 core-6");
    offline(0, "1-7");
    offline(1, "2-7");
    offline(6, "2-5,7");
    counters->ops->read(counters, out);
    ck_assert_int_eq(out[0].error, 0);
    ck_assert_uint_eq(out[0].raw, 1002);
    ck_assert_int_eq(out[2].error, EIO);
    ck_assert_int_eq(out[5].error, 0);
    must_have(counters, "package-0* package-1* core-0 core-2 core-4 core-6");
    ck_assert_uint_eq(counters->domains[5].cpu, 6);
    counters->ops->destroy(counters);
}
END_TEST

/* Whoever reads may not open the device: another reading may. */
START_TEST(no_permission_to_open_another)
{
    struct joule_raw out[4];
    struct joule_counters *counters;

    if (geteuid() != 0)
        return;
    two_by_two();
    ck_assert_int_eq(fchmodat(tree.fd, "dev/cpu/3/msr", 0600, 0), 0);
    counters = must_create(NULL);
    offline(1, "0,2-3");
    ck_assert_int_eq(seteuid(65534), 0);
    counters->ops->read(counters, out);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(out[0].error, 0);
    ck_assert_int_eq(out[2].error, EIO);
    must_read(counters, 0x1003, 0x2003);
    counters->ops->destroy(counters);
}
END_TEST

START_TEST(destroy_keeps_errno)
{
    unsigned fds = tree_open_fds();
    struct joule_counters *counters;

    xeon(4);
    counters = must_create(NULL);
    ck_assert_uint_eq(tree_open_fds(), fds + 4 + 1); /* and the root */
    errno = EXDEV;
    counters->ops->destroy(counters);
    ck_assert_int_eq(errno, EXDEV);
    ck_assert_uint_eq(tree_open_fds(), fds);
}
END_TEST

START_TEST(close_on_exec)
{
    struct joule_counters *counters;
    int fd = dup(0), flags;

    close(fd); /* the number that open() gives next */
    xeon(1);
    counters = must_create(NULL);
    flags = fcntl(fd, F_GETFD);
    ck_assert_int_ge(flags, 0);
    ck_assert_int_eq(flags & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    counters->ops->destroy(counters);
}
END_TEST

START_TEST(two_packages)
{
    struct joule_raw out[4];
    struct joule_counters *counters;

    xeon(2);
    counters = must_create(NULL);
    must_have(counters, "package-0* dram-0* package-1* dram-1*");
    counters->ops->read(counters, out);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(out[i].error, 0);
        ck_assert_uint_eq(out[i].raw, (i % 2 ? 0x200 : 0x100) + i / 2);
        ck_assert_uint_eq(counters->domains[i].width_bits, 32);
        ck_assert_uint_eq(counters->domains[i].package, i / 2);
        ck_assert_uint_eq(counters->domains[i].cpu, i / 2);
        ck_assert_uint_eq(counters->domains[i].unit.num, 15625);
        ck_assert_uint_eq(counters->domains[i].unit.shift, i % 2 ? 10 : 8);
    }
    ck_assert_str_eq(info.cpu.vendor, "GenuineIntel");
    ck_assert_str_eq(info.cpu.name, "Test CPU");
    ck_assert_str_eq(info.row, "Skylake-SP/Cascade Lake/Cooper Lake");
    ck_assert_uint_eq(info.cpu.family, 6);
    ck_assert_uint_eq(info.cpu.model, 0x55);
    ck_assert_uint_eq(info.packages, 2);
    ck_assert_uint_eq(info.dies, 2);
    ck_assert_uint_eq(info.unit_raw, ESU_14);
    ck_assert(!info.cpu.hypervisor);
    ck_assert(!info.filtering_known);
    counters->ops->destroy(counters);
}
END_TEST

START_TEST(low_half_of_register)
{
    struct joule_raw out[2];
    struct joule_counters *counters;

    xeon(1);
    poke(0, PKG, UINT64_C(0xDEADBEEFFFFFFFFF));
    counters = must_create(NULL);
    counters->ops->read(counters, out);
    ck_assert_uint_eq(out[0].raw, UINT32_MAX);
    counters->ops->destroy(counters);
}
END_TEST

START_TEST(unit_of_each_package)
{
    struct joule_counters *counters;

    xeon(2);
    poke(1, UNIT, ESU_16);
    counters = must_create(NULL);
    ck_assert_uint_eq(counters->domains[0].unit.shift, 8);
    ck_assert_uint_eq(counters->domains[2].unit.shift, 10);
    counters->ops->destroy(counters);
}
END_TEST

START_TEST(sparse_and_offline_cpus)
{
    struct joule_counters *counters;

    xeon(1);
    online("5,300\n");
    tree_remove(&tree, "dev/cpu/0/msr");
    for (unsigned cpu = 5; cpu <= 300; cpu += 295) {
        tree_cpu(&tree, cpu, cpu == 5 ? 3 : 1, -1, -1);
        poke(cpu, UNIT, ESU_14);
        poke(cpu, PKG, cpu);
    }
    counters = must_create(NULL);
    must_have(counters, "package-1* package-3*");
    ck_assert_uint_eq(counters->domains[0].cpu, 300);
    ck_assert_uint_eq(counters->domains[1].cpu, 5);
    counters->ops->destroy(counters);
}
END_TEST

START_TEST(sixteen_packages)
{
    struct joule_counters *counters;

    xeon(16);
    counters = must_create(NULL);
    ck_assert_uint_eq(counters->domain_count, 32);
    ck_assert_str_eq(counters->domains[31].name, "dram-15");
    counters->ops->destroy(counters);
}
END_TEST

static void four_dies(const char *vendor, unsigned family, unsigned model,
                      off_t unit, off_t pkg)
{
    cpuinfo(vendor, family, model, "");
    online("0-7\n");
    for (unsigned cpu = 0; cpu < 8; cpu++) {
        tree_cpu(&tree, cpu, (int)cpu / 4, (int)cpu / 2 % 2, (int)cpu % 2);
        poke(cpu, unit, ESU_14);
        poke(cpu, pkg, 1000 + cpu);
    }
}

START_TEST(dies_that_count)
{
    struct joule_counters *counters;

    four_dies("GenuineIntel", 6, 0x55, UNIT, PKG);
    counters = must_create(NULL);
    must_have(counters, "package-0-die-0* package-0-die-1* package-1-die-0* "
                        "package-1-die-1*");
    ck_assert_uint_eq(counters->domains[1].die, 1);
    ck_assert_uint_eq(counters->domains[1].cpu, 2);
    ck_assert_uint_eq(info.packages, 2);
    ck_assert_uint_eq(info.dies, 4);
    counters->ops->destroy(counters);
}
END_TEST

START_TEST(dies_that_mirror)
{
    static const struct {
        const char *vendor;
        unsigned family;
    } cpus[] = {{"AuthenticAMD", 0x17}, {"HygonGenuine", 0x18}};
    struct joule_counters *counters;

    four_dies(cpus[_i].vendor, cpus[_i].family, 1, 0xC0010299, 0xC001029B);
    counters = must_create(NULL);
    must_have(counters, "package-0* package-1*");
    ck_assert_uint_eq(counters->domains[1].cpu, 4);
    ck_assert_uint_eq(info.dies, 4);
    counters->ops->destroy(counters);
}
END_TEST

START_TEST(amd_registers)
{
    struct joule_rapl_options opt = {.with_cores = true};
    struct joule_raw out[5];
    struct joule_counters *counters;

    /* Two threads a core: 0 and 2, 1 and 3 are one core each. */
    cpuinfo("AuthenticAMD", 0x19, 0x11, "");
    online("0-3\n");
    for (unsigned cpu = 0; cpu < 4; cpu++) {
        tree_cpu(&tree, cpu, 0, 0, (int)cpu % 2);
        poke(cpu, 0xC0010299, 0x1003);
        poke(cpu, 0xC001029B, UINT64_C(0x1122334455667788));
    }
    counters = must_create(NULL);
    must_have(counters, "package-0*");
    counters->ops->destroy(counters);
    counters = must_create(&opt);
    must_have(counters, "package-0* core-0 core-1");
    ck_assert_uint_eq(counters->domains[0].width_bits, 64);
    counters->ops->read(counters, out);
    ck_assert_uint_eq(out[0].raw, UINT64_C(0x1122334455667788));
    ck_assert_uint_eq(out[1].raw, UINT64_C(0x2233445566778810));
    ck_assert_uint_eq(counters->domains[2].unit.num, 15625);
    ck_assert_uint_eq(counters->domains[2].unit.shift, 10);
    ck_assert(!info.filtering_known);
    counters->ops->destroy(counters);
}
END_TEST

START_TEST(cores_of_intel)
{
    struct joule_rapl_options opt = {.with_cores = true};
    struct joule_counters *counters;

    xeon(1);
    counters = must_create(&opt);
    must_have(counters, "package-0* dram-0*");
    counters->ops->destroy(counters);
}
END_TEST

static void sapphire_rapids(void)
{
    xeon(2);
    cpuinfo("GenuineIntel", 6, 0x8F, "");
    for (unsigned cpu = 0; cpu < 2; cpu++)
        poke(cpu, PSYS, 0x500 + cpu);
}

START_TEST(psys)
{
    struct joule_rapl_options opt = {.total_kinds = BIT(PSYS)};
    struct joule_counters *counters;

    sapphire_rapids();
    counters = must_create(&opt);
    must_have(counters, "package-0 dram-0 pp0-0 psys* package-1 dram-1 pp0-1");
    ck_assert_uint_eq(counters->domains[1].unit.num, 15625);
    ck_assert_uint_eq(counters->domains[1].unit.shift, 8);
    ck_assert_uint_eq(counters->domains[3].unit.num, 1000000);
    ck_assert_uint_eq(counters->domains[3].unit.shift, 0);
    counters->ops->destroy(counters);
}
END_TEST

/* What is not known to be right is not read, though it answers. */
START_TEST(granite_rapids)
{
    struct joule_rapl_options opt = {.total_kinds = BIT(PSYS)};
    struct joule_counters *counters;

    sapphire_rapids();
    cpuinfo("GenuineIntel", 6, 0xAD, "");
    counters = must_create(NULL);
    must_have(counters, "package-0* psys package-1*");
    ck_assert_uint_eq(counters->domains[0].unit.shift, 8);
    ck_assert_uint_eq(counters->domains[1].unit.num, 1000000);
    ck_assert_uint_eq(counters->domains[1].unit.shift, 0);
    counters->ops->destroy(counters);
    cpuinfo("GenuineIntel", 6, 0xAF, "");
    counters = must_create(NULL);
    must_have(counters, "package-0* package-1*");
    counters->ops->destroy(counters);
    must_fail(&opt, EOPNOTSUPP, "no psys energy counter");
}
END_TEST

START_TEST(filtering)
{
    const struct joule_rapl_options by_psys = {.total_kinds = BIT(PSYS)};
    struct joule_counters *counters;

    xeon(1);
    poke(0, 0x10A, 1u << 10 | 1u << 11);
    poke(0, 0xBC, 1);
    counters = must_create(NULL);
    ck_assert(info.filtering_known);
    ck_assert(info.filtering);
    must_remark(counters, "RAPL energy filtering is on");
    must_remark(counters, NULL);
    counters->ops->destroy(counters);
    must_fail(&by_psys, EOPNOTSUPP, "no psys energy counter");
    poke(0, 0xBC, 2);
    counters = must_create(NULL);
    ck_assert(info.filtering_known);
    ck_assert(!info.filtering);
    must_remark(counters, NULL);
    counters->ops->destroy(counters);
    poke(0, 0x10A, 1u << 10);
    poke(0, 0xBC, 1);
    counters = must_create(NULL);
    ck_assert(!info.filtering_known);
    ck_assert(!info.filtering);
    counters->ops->destroy(counters);
}
END_TEST

#define W15_3                                                                  \
    {                                                                          \
        15625, 10                                                              \
    } /* 2^-16 J */
#define W61                                                                    \
    {                                                                          \
        15625, 8                                                               \
    } /* 2^-14 J */
#define JOULE                                                                  \
    {                                                                          \
        1000000, 0                                                             \
    }

/* What each CPU's row must say when the unit register reads [raw]; num 0: the
 * row has no such domain. */
static const struct {
    const char *vendor;
    unsigned family, model;
    uint64_t raw;
    unsigned width;
    struct joule_unit package, dram, psys;
    const char *name;
} cpus[] = {
#define I "GenuineIntel", 6
    {I, 0x2A, ESU_16, 32, W15_3, {0, 0}, {0, 0}, "Sandy/Ivy Bridge"},
    {I, 0x3A, ESU_16, 32, W15_3, {0, 0}, {0, 0}, "Sandy/Ivy Bridge"},
    {I, 0x2D, ESU_16, 32, W15_3, W15_3, {0, 0}, "Sandy/Ivy Bridge-EP"},
    {I, 0x3E, ESU_16, 32, W15_3, W15_3, {0, 0}, "Sandy/Ivy Bridge-EP"},
    {I, 0x3C, ESU_14, 32, W61, W61, {0, 0}, "Haswell/Broadwell"},
    {I, 0x45, ESU_14, 32, W61, W61, {0, 0}, "Haswell/Broadwell"},
    {I, 0x46, ESU_14, 32, W61, W61, {0, 0}, "Haswell/Broadwell"},
    {I, 0x3D, ESU_14, 32, W61, W61, {0, 0}, "Haswell/Broadwell"},
    {I, 0x47, ESU_14, 32, W61, W61, {0, 0}, "Haswell/Broadwell"},
    {I, 0x3F, ESU_14, 32, W61, W15_3, {0, 0}, "Haswell-EP"},
    {I, 0x4F, ESU_14, 32, W61, W15_3, {0, 0}, "Broadwell-EP"},
    {I, 0x56, ESU_14, 32, W61, W15_3, {0, 0}, "Broadwell-DE"},
    {I,
     0x55,
     ESU_14,
     32,
     W61,
     W15_3,
     {0, 0},
     "Skylake-SP/Cascade Lake/Cooper Lake"},
    {I, 0x6A, ESU_14, 32, W61, W15_3, {0, 0}, "Ice Lake-SP"},
    {I, 0x6C, ESU_14, 32, W61, W15_3, {0, 0}, "Ice Lake-D"},
    {I, 0x57, ESU_14, 32, W61, W15_3, {0, 0}, "Knights Landing"},
    {I, 0x85, ESU_14, 32, W61, W15_3, {0, 0}, "Knights Mill"},
    {I, 0x8F, ESU_14, 32, W61, W61, JOULE, "Sapphire Rapids"},
    {I, 0xCF, ESU_14, 32, W61, W61, JOULE, "Emerald Rapids"},
    {I, 0x37, 0x503, 32, {32, 0}, {0, 0}, {0, 0}, "Silvermont/Airmont"},
    {I, 0x4A, 0x503, 32, {32, 0}, {0, 0}, {0, 0}, "Silvermont/Airmont"},
    {I, 0x4C, 0x603, 32, {64, 0}, {0, 0}, {0, 0}, "Silvermont/Airmont"},
    {I, 0x4D, 0x503, 32, {32, 0}, {0, 0}, {0, 0}, "Silvermont/Airmont"},
    {I, 0x5A, 0x103, 32, {2, 0}, {0, 0}, {0, 0}, "Silvermont/Airmont"},
    {I, 0x5D, 0xA03, 32, {1024, 0}, {0, 0}, {0, 0}, "Silvermont/Airmont"},
    {I, 0x5C, ESU_14, 32, W61, W61, {0, 0}, "Goldmont"},
    {I, 0x5E, ESU_14, 32, W61, W61, W61, "Skylake client and later"},
    {I, 0x8E, ESU_14, 32, W61, W61, W61, "Skylake client and later"},
    {I, 0x9E, ESU_14, 32, W61, W61, W61, "Skylake client and later"},
    {I, 0x97, ESU_14, 32, W61, W61, W61, "Skylake client and later"},
    {I, 0xB7, ESU_14, 32, W61, W61, W61, "Skylake client and later"},
    {I, 0xAD, ESU_14, 32, W61, {0, 0}, JOULE, "Granite Rapids"},
    {I, 0xAE, ESU_14, 32, W61, {0, 0}, JOULE, "Granite Rapids"},
    {I, 0xAF, ESU_14, 32, W61, {0, 0}, {0, 0}, "Sierra Forest"},
    {I, 0xDD, ESU_14, 32, W61, {0, 0}, {0, 0}, "Clearwater Forest"},
    {I, 0x86, ESU_14, 32, W61, {0, 0}, {0, 0}, "Tremont/Lakefield"},
#undef I
#define A "AuthenticAMD"
    {A, 0x17, 0x01, ESU_16, 32, W15_3, {0, 0}, {0, 0}, "AMD Zen 1/2"},
    {A, 0x17, 0x31, ESU_16, 32, W15_3, {0, 0}, {0, 0}, "AMD Zen 1/2"},
    {A, 0x17, 0xFF, ESU_16, 32, W15_3, {0, 0}, {0, 0}, "AMD Zen 1/2"},
    {"HygonGenuine",
     0x18,
     0,
     ESU_16,
     32,
     W15_3,
     {0, 0},
     {0, 0},
     "Hygon Dhyana"},
    {A, 0x19, 0x01, ESU_16, 32, W15_3, {0, 0}, {0, 0}, "AMD Zen 3"},
    {A, 0x19, 0x0F, ESU_16, 32, W15_3, {0, 0}, {0, 0}, "AMD Zen 3"},
    {A, 0x19, 0x21, ESU_16, 32, W15_3, {0, 0}, {0, 0}, "AMD Zen 3"},
    {A, 0x19, 0x44, ESU_16, 32, W15_3, {0, 0}, {0, 0}, "AMD Zen 3"},
    {A, 0x19, 0x5F, ESU_16, 32, W15_3, {0, 0}, {0, 0}, "AMD Zen 3"},
    {A, 0x19, 0x10, ESU_16, 64, W15_3, {0, 0}, {0, 0}, "AMD Zen 4"},
    {A, 0x19, 0x1F, ESU_16, 64, W15_3, {0, 0}, {0, 0}, "AMD Zen 4"},
    {A, 0x19, 0x60, ESU_16, 64, W15_3, {0, 0}, {0, 0}, "AMD Zen 4"},
    {A, 0x19, 0x7F, ESU_16, 64, W15_3, {0, 0}, {0, 0}, "AMD Zen 4"},
    {A, 0x19, 0xA0, ESU_16, 64, W15_3, {0, 0}, {0, 0}, "AMD Zen 4"},
    {A, 0x19, 0xAF, ESU_16, 64, W15_3, {0, 0}, {0, 0}, "AMD Zen 4"},
    {A, 0x19, 0x80, ESU_16, 32, W15_3, {0, 0}, {0, 0}, "AMD (unlisted model)"},
    {A, 0x19, 0xB0, ESU_16, 32, W15_3, {0, 0}, {0, 0}, "AMD (unlisted model)"},
    {A, 0x1A, 0x02, ESU_16, 64, W15_3, {0, 0}, {0, 0}, "AMD Zen 5"},
#undef A
};

static void must_count_in(const struct joule_rapl_row *row,
                          enum joule_domain_kind kind, uint64_t raw,
                          struct joule_unit expected)
{
    struct joule_unit unit;

    ck_assert_int_eq((row->kinds & JOULE_DOMAIN_BIT(kind)) != 0,
                     expected.num != 0);
    if (expected.num == 0)
        return;
    ck_assert_int_eq(joule_rapl_row_unit(row, kind, raw, &unit), 0);
    ck_assert_uint_eq(unit.num, expected.num);
    ck_assert_uint_eq(unit.shift, expected.shift);
}

START_TEST(row_of_cpu)
{
    struct joule_cpuinfo cpu = {.family = cpus[_i].family,
                                .model = cpus[_i].model};
    const struct joule_rapl_row *row;

    snprintf(cpu.vendor, sizeof(cpu.vendor), "%s", cpus[_i].vendor);
    row = joule_rapl_row_find(&cpu);
    ck_assert_ptr_nonnull(row);
    ck_assert_str_eq(row->name, cpus[_i].name);
    ck_assert_uint_eq(row->width_bits, cpus[_i].width);
    ck_assert_int_eq(row->per_die, strcmp(row->vendor, "GenuineIntel") == 0);
    must_count_in(row, JOULE_DOMAIN_PACKAGE, cpus[_i].raw, cpus[_i].package);
    must_count_in(row, JOULE_DOMAIN_DRAM, cpus[_i].raw, cpus[_i].dram);
    must_count_in(row, JOULE_DOMAIN_PSYS, cpus[_i].raw, cpus[_i].psys);
}
END_TEST

START_TEST(every_row_can_be_found)
{
    const struct joule_rapl_row *row, *found;

    for (row = joule_rapl_rows; row->name; row++) {
        struct joule_cpuinfo cpu = {.family = row->family,
                                    .model = row->models[0].last};

        ck_assert_uint_eq(row->models[COUNT(row->models) - 1].last, 0);
        ck_assert(row->width_bits == 32 || row->width_bits == 64);
        ck_assert(row->without ? row->kinds == 0 : row->kinds & BIT(PACKAGE));
        for (int kind = 0; kind < JOULE_RAPL_KINDS; kind++)
            if (row->kinds & (1u << kind))
                ck_assert_uint_ne(row->map->energy[kind], 0);
        snprintf(cpu.vendor, sizeof(cpu.vendor), "%s", row->vendor);
        found = joule_rapl_row_find(&cpu);
        ck_assert_msg(found == row, "%s", row->name);
    }
}
END_TEST

START_TEST(every_esu)
{
    struct joule_cpuinfo joule = {
        .vendor = "GenuineIntel", .family = 6, .model = 0x5E};
    struct joule_cpuinfo uj = {
        .vendor = "GenuineIntel", .family = 6, .model = 0x37};
    struct joule_unit unit = {.num = 4711};

    for (unsigned esu = 0; esu < 32; esu++) {
        uint64_t raw = UINT64_C(0xFFFFFFFFFFFFE0FF) | esu << 8;
        int rc = joule_rapl_row_unit(joule_rapl_row_find(&joule),
                                     JOULE_DOMAIN_PACKAGE, raw, &unit);

        if (esu < 4 || esu > 20) {
            ck_assert_int_eq(rc, -1);
            ck_assert_int_eq(errno, EINVAL);
        } else {
            ck_assert_int_eq(rc, 0);
            ck_assert_double_eq((double)unit.num / (1u << unit.shift),
                                1e6 / (1u << esu));
        }
        rc = joule_rapl_row_unit(joule_rapl_row_find(&uj), JOULE_DOMAIN_PACKAGE,
                                 raw, &unit);
        ck_assert_int_eq(rc, esu < 1 || esu > 10 ? -1 : 0);
        if (rc == 0)
            ck_assert_uint_eq(unit.num, 1u << esu);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rapl");
    TCase *bad = tcase_create("bad machines");
    TCase *good = tcase_create("machines");
    TCase *rows = tcase_create("rows");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(bad, setup, teardown);
    tcase_add_test(bad, empty_root);
    tcase_add_test(bad, bad_cpuinfo);
    tcase_add_test(bad, not_x86);
    tcase_add_loop_test(bad, unknown_cpu, 0, COUNT(unknown));
    tcase_add_test(bad, bad_topology);
    tcase_add_test(bad, no_device);
    tcase_add_test(bad, no_device_on_second_package);
    tcase_add_test(bad, no_module);
    tcase_add_test(bad, no_permission);
    tcase_add_test(bad, not_a_device);
    tcase_add_test(bad, no_unit_register);
    tcase_add_test(bad, half_a_register);
    tcase_add_test(bad, no_package_register);
    tcase_add_test(bad, guest);
    tcase_add_test(bad, cpu_without_rapl);
    tcase_add_loop_test(bad, bad_unit, 0, COUNT(bad_units));
    tcase_add_test(bad, bad_unit_on_second_package);
    tcase_add_loop_test(bad, bad_total, 0, COUNT(bad_totals));
    tcase_add_test(bad, no_psys_for_total);
    tcase_add_test(bad, too_many_domains);
    tcase_add_test(bad, too_many_devices);
    tcase_add_test(bad, read_error);
    tcase_add_test(bad, cpu_goes_offline);
    tcase_add_test(bad, package_goes_offline);
    tcase_add_test(bad, devices_fail);
    tcase_add_test(bad, another_cpu_of_what_counts);
    tcase_add_test(bad, no_permission_to_open_another);
    suite_add_tcase(suite, bad);

    tcase_add_checked_fixture(good, setup, teardown);
    tcase_add_test(good, destroy_keeps_errno);
    tcase_add_test(good, close_on_exec);
    tcase_add_test(good, two_packages);
    tcase_add_test(good, low_half_of_register);
    tcase_add_test(good, unit_of_each_package);
    tcase_add_test(good, sparse_and_offline_cpus);
    tcase_add_test(good, sixteen_packages);
    tcase_add_test(good, as_many_domains_as_can_be);
    tcase_add_test(good, dies_that_count);
    tcase_add_loop_test(good, dies_that_mirror, 0, 2);
    tcase_add_test(good, amd_registers);
    tcase_add_test(good, cores_of_intel);
    tcase_add_test(good, psys);
    tcase_add_test(good, granite_rapids);
    tcase_add_test(good, filtering);
    suite_add_tcase(suite, good);

    tcase_add_loop_test(rows, row_of_cpu, 0, COUNT(cpus));
    tcase_add_test(rows, every_row_can_be_found);
    tcase_add_test(rows, every_esu);
    suite_add_tcase(suite, rows);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Zones of powercap, as the kernel shows them and as it never would. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/energy/counter.h"
#include "common/sensors/cpu_counters.h"
#include "common/sensors/powercap.h"
#include "tests/unit/tree.h"

#define BIT(kind) JOULE_DOMAIN_BIT(JOULE_DOMAIN_##kind)
#define TOTAL     (BIT(PACKAGE) | BIT(DRAM))

/* max_energy_range_uj of Linux: 2^32 - 1 ticks of so many whole nJ. */
#define RANGE(unit_nj) (UINT64_C(4294967295) * (unit_nj) / 1000)
#define UNIT_14        UINT64_C(61035) /* 2^-14 J is 61,035.156 nJ */
#define UNIT_16        UINT64_C(15258)
#define UNIT_DRAM      UINT64_C(15300) /* 15,258.789 */

static struct tree tree;
static struct joule_error err;
static struct joule_counters *c;
static struct joule_raw raw[JOULE_DOMAINS_MAX];

static void setup(void)
{
    tree_create(&tree);
    memset(&err, 0, sizeof(err));
    c = NULL;
}

static void teardown(void)
{
    if (c)
        c->ops->destroy(c);
    tree_destroy(&tree);
}

static void put(const char *zone, const char *file, const char *text)
{
    char path[128];

    snprintf(path, sizeof(path), "sys/class/powercap/%s/%s", zone, file);
    tree_write(&tree, path, text);
}

static void put_energy(const char *zone, uint64_t uj)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRIu64 "\n", uj);
    put(zone, "energy_uj", text);
}

static void put_zone(const char *zone, const char *name, uint64_t unit_nj,
                     uint64_t uj)
{
    char text[64];

    snprintf(text, sizeof(text), "%s\n", name);
    put(zone, "name", text);
    snprintf(text, sizeof(text), "%" PRIu64 "\n", RANGE(unit_nj));
    put(zone, "max_energy_range_uj", text);
    put_energy(zone, uj);
}

static void cpuinfo(const char *vendor)
{
    char text[256];

    snprintf(text, sizeof(text),
             "processor\t: 0\nvendor_id\t: %s\ncpu family\t: 6\nmodel\t\t: 1\n"
             "model name\t: Test CPU\nflags\t\t: fpu\n\n",
             vendor);
    tree_write(&tree, "proc/cpuinfo", text);
}

/* Two packages with DRAM. */
static void xeon(void)
{
    cpuinfo("GenuineIntel");
    tree_write(&tree, "sys/devices/system/cpu/online", "0-3");
    for (unsigned cpu = 0; cpu < 4; cpu++)
        tree_cpu(&tree, cpu, (int)cpu / 2, 0, (int)cpu);
    tree_mkdir(&tree, "sys/class/powercap/intel-rapl");
    put_zone("intel-rapl:0", "package-0", UNIT_14, 1000);
    put_zone("intel-rapl:0:0", "dram", UNIT_DRAM, 2000);
    put_zone("intel-rapl:1", "package-1", UNIT_14, 3000);
    put_zone("intel-rapl:1:0", "dram", UNIT_DRAM, 4000);
}

static void must_create(unsigned kinds)
{
    c = joule_powercap_create(tree.fd, kinds, &err);
    ck_assert_msg(c != NULL, "%s", err.text);
}

static void must_fail(unsigned kinds, int errnum, const char *sentence)
{
    unsigned fds = tree_open_fds();

    ck_assert_ptr_null(joule_powercap_create(tree.fd, kinds, &err));
    ck_assert_msg(errno == errnum, "%s: %s", strerror(errno), err.text);
    ck_assert_msg(strstr(err.text, sentence), "%s", err.text);
    ck_assert_uint_eq(tree_open_fds(), fds);
}

static void is_domain(size_t i, const char *name, enum joule_domain_kind kind,
                      unsigned package, unsigned cpu, bool in_total)
{
    const struct joule_domain *d = &c->domains[i];

    ck_assert_uint_lt(i, c->domain_count);
    ck_assert_str_eq(d->name, name);
    ck_assert_int_eq(d->kind, kind);
    ck_assert_uint_eq(d->package, package);
    ck_assert_uint_eq(d->cpu, cpu);
    ck_assert_int_eq(d->in_total, in_total);
}

static void is_raw(size_t i, uint64_t uj)
{
    c->ops->read(c, raw);
    ck_assert_int_eq(raw[i].error, 0);
    ck_assert_uint_eq(raw[i].raw, uj);
}

START_TEST(two_packages)
{
    xeon();
    must_create(TOTAL);
    ck_assert_uint_eq(c->domain_count, 4);
    is_domain(0, "package-0", JOULE_DOMAIN_PACKAGE, 0, 0, true);
    is_domain(1, "dram-0", JOULE_DOMAIN_DRAM, 0, 0, true);
    is_domain(2, "package-1", JOULE_DOMAIN_PACKAGE, 1, 2, true);
    is_domain(3, "dram-1", JOULE_DOMAIN_DRAM, 1, 2, true);
    is_raw(0, 1000);
    is_raw(3, 4000);
    put_energy("intel-rapl:1:0", 4500);
    is_raw(3, 4500);
}
END_TEST

/* What counts the same once more, or something else, is left alone. */
START_TEST(other_zones)
{
    xeon();
    put_zone("intel-rapl:2", "psys", 1000000000, 77);
    put_zone("intel-rapl:1:1", "core", UNIT_14, 5);
    put_zone("intel-rapl:1:2", "uncore", UNIT_14, 6);
    put_zone("intel-rapl:1:3", "novelty", UNIT_14, 6);
    put_zone("intel-rapl:3", "novelty-0", UNIT_14, 6);
    put_zone("intel-rapl:3:0", "dram", UNIT_14, 6);
    put_zone("intel-rapl-mmio:0", "package-0", UNIT_14, 1000);
    put_zone("dtpm:0", "package-0", UNIT_14, 1000);
    put_zone("intel-rapl:x", "package-7", UNIT_14, 1000);
    must_create(BIT(PSYS));
    ck_assert_uint_eq(c->domain_count, 7);
    is_domain(4, "pp0-1", JOULE_DOMAIN_PP0, 1, 2, false);
    is_domain(5, "pp1-1", JOULE_DOMAIN_PP1, 1, 2, false);
    is_domain(6, "psys", JOULE_DOMAIN_PSYS, 0, 0, true);
}
END_TEST

START_TEST(dies)
{
    xeon();
    put_zone("intel-rapl:0", "package-0-die-0", UNIT_14, 1);
    put_zone("intel-rapl:1", "package-0-die-1", UNIT_14, 1);
    must_create(TOTAL);
    is_domain(0, "package-0-die-0", JOULE_DOMAIN_PACKAGE, 0, 0, true);
    is_domain(3, "dram-0-die-1", JOULE_DOMAIN_DRAM, 0, 0, true);
    ck_assert_uint_eq(c->domains[3].die, 1);
}
END_TEST

/* AMD's zone "core" is one core. */
START_TEST(amd)
{
    cpuinfo("AuthenticAMD");
    put_zone("intel-rapl:0", "package-0", UNIT_16, 10);
    put_zone("intel-rapl:0:0", "core", UNIT_16, 10);
    must_create(TOTAL);
    ck_assert_uint_eq(c->domain_count, 1);
}
END_TEST

/* The joules of 10^9 ticks of the hardware, out of the kernel's rounded ones. */
static const struct {
    uint64_t unit_nj;
    double true_nj;
} units[] = {
    {UNIT_14, 1e9 / 16384},
    {UNIT_16, 1e9 / 65536},
    {UNIT_DRAM, 1e9 / 65536},
    {1000000000, 1e9},
    {30517, 1e9 / 32768},
    {953, 1e9 / 1048576},
    {32000, 32000} /* Silvermont: 2^5 uJ, which is no 2^-n J */,
};

START_TEST(rounded_units)
{
    uint64_t unit_nj = units[_i].unit_nj, ticks = 1000000000, uj;
    double wanted_uj = units[_i].true_nj * 1e6;
    int64_t ns = INT64_C(1000000000000);

    cpuinfo("GenuineIntel");
    put_zone("intel-rapl:0", "package-0", unit_nj, 0);
    must_create(TOTAL);
    uj = joule_unit_to_uj(c->domains[0].unit, ticks * unit_nj / 1000);
    ck_assert_double_eq_tol((double)uj / wanted_uj, 1, 2e-6);
    /* It wraps where the register does. */
    {
        struct joule_counter counter = {0};
        struct joule_raw from = {RANGE(unit_nj) - 5 * unit_nj / 1000, 0};
        struct joule_raw to = {5 * unit_nj / 1000, 0};

        joule_counter_update(&counter, &c->domains[0], from, ns);
        joule_counter_update(&counter, &c->domains[0], to, ns + 1000000000);
        ck_assert_uint_eq(counter.wraps, 1);
        ck_assert_double_eq_tol(
            (double)joule_unit_to_uj(c->domains[0].unit, counter.ticks),
            11 * units[_i].true_nj / 1e3, 3 + units[_i].true_nj / 1e6);
    }
}
END_TEST

START_TEST(a_zone_that_came_back)
{
    xeon();
    must_create(TOTAL);
    is_raw(2, 3000);
    ck_assert_str_eq(c->remark.text, "");
    put("intel-rapl:1", "energy_uj", "");
    c->ops->read(c, raw);
    ck_assert_int_eq(raw[2].error, EBADMSG);
    ck_assert_int_eq(raw[0].error, 0);
    tree_remove(&tree, "sys/class/powercap/intel-rapl:1/energy_uj");
    put_energy("intel-rapl:1", 42);
    is_raw(2, 42);
    ck_assert_str_eq(c->remark.text,
                     "energy counter package-1 was opened again");
}
END_TEST

static const struct {
    const char *file, *text, *sentence;
} hostile[] = {
    {"energy_uj", "-5\n", "energy_uj of powercap's package-1: it is no energy"},
    {"energy_uj", "0x10\n", "it is no energy"},
    {"energy_uj", "12 34\n", "it is no energy"},
    {"energy_uj", "99999999999999999999\n", "it is no energy"},
    {"energy_uj", "262144000000000\n", "it is no energy"},
    {"energy_uj", "1\n\n", "it is no energy"},
    {"energy_uj", "123456789012345678901234567890123456789", "no energy"},
    {"max_energy_range_uj", "0\n", "makes no sense"},
    {"max_energy_range_uj", "no\n", "makes no sense"},
    {"name", "package-00000000000000000000000000000000001\n", "cannot read"},
    {"name", "package-0\n", "two zones of the name package-0"},
};

START_TEST(hostile_zones)
{
    xeon();
    put("intel-rapl:1", hostile[_i].file, hostile[_i].text);
    must_fail(TOTAL, EINVAL, hostile[_i].sentence);
}
END_TEST

START_TEST(nul_bytes)
{
    xeon();
    tree_bytes(&tree, "sys/class/powercap/intel-rapl:0/energy_uj", "12\0\n", 4);
    must_fail(TOTAL, EINVAL, "it is no energy");
}
END_TEST

/* Names that look like a package's are of none. */
static const char *const odd_names[] = {
    "package-",      "package-x",      "package-01", "package-1x",
    "package-99999", "package-0-die-", "package--1", ""};

START_TEST(odd_name)
{
    xeon();
    put("intel-rapl:1", "name", odd_names[_i]);
    must_create(TOTAL);
    ck_assert_uint_eq(c->domain_count, 2);
}
END_TEST

START_TEST(nothing)
{
    must_fail(TOTAL, ENOENT, "there is no /sys/class/powercap/intel-rapl:0");
    xeon();
    must_fail(BIT(PSYS), EOPNOTSUPP, "no energy counter of which");
    tree_remove(&tree, "sys/class/powercap/intel-rapl:1/energy_uj");
    must_fail(TOTAL, ENOENT, "may not read energy_uj of powercap's package-1");
}
END_TEST

/* More than there is room for. */
START_TEST(many)
{
    char zone[32], name[32];

    cpuinfo("GenuineIntel");
    for (unsigned i = 0; i < JOULE_DOMAINS_MAX; i++) {
        snprintf(zone, sizeof(zone), "intel-rapl:%u", i);
        snprintf(name, sizeof(name), "package-%u", i);
        put_zone(zone, name, UNIT_14, i);
    }
    must_create(TOTAL);
    ck_assert_uint_eq(c->domain_count, JOULE_DOMAINS_MAX);
    c->ops->destroy(c);
    c = NULL;
    put_zone("intel-rapl:999", "package-999", UNIT_14, 1);
    must_fail(TOTAL, E2BIG, "more than 128 energy counters");
}
END_TEST

/* ---- or MSRs ---- */

static void msrs(unsigned family, unsigned model)
{
    const uint64_t unit = 0xA0E03, energy = 5;
    char text[256];

    snprintf(text, sizeof(text),
             "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: %u\n"
             "model\t\t: %u\nmodel name\t: Test CPU\nflags\t\t: fpu\n\n",
             family, model);
    tree_write(&tree, "proc/cpuinfo", text);
    for (unsigned cpu = 0; cpu < 4; cpu++) {
        snprintf(text, sizeof(text), "dev/cpu/%u/msr", cpu);
        tree_poke(&tree, text, 0x606, &unit, sizeof(unit));
        tree_poke(&tree, text, 0x611, &energy, sizeof(energy));
        tree_truncate(&tree, text, 0x619);
    }
}

static void chosen(unsigned way, const char *wanted, const char *remark)
{
    struct joule_rapl_info info;
    const struct joule_cpu_options opt = {
        .way = way, .total_kinds = TOTAL, .ret_info = &info};

    if (c)
        c->ops->destroy(c);
    c = joule_cpu_counters_create(tree.fd, &opt, &err);
    ck_assert_msg(c != NULL, "%s", err.text);
    ck_assert_str_eq(c->way, wanted);
    ck_assert_str_eq(c->remark.text, remark);
    ck_assert_str_eq(info.cpu.vendor, "GenuineIntel");
}

static void no_powercap(void)
{
    ck_assert_int_eq(
        renameat(tree.fd, "sys/class/powercap", tree.fd, "powercap"), 0);
}

START_TEST(msrs_and_powercap)
{
    xeon();
    msrs(6, 0x55);
    chosen(JOULE_CPU_AUTO, "MSR", "");
    chosen(JOULE_CPU_MSR, "MSR", "");
    chosen(JOULE_CPU_POWERCAP, "powercap", "");
    /* Granite Rapids: the register of DRAM is not to be trusted. */
    msrs(6, 0xAD);
    chosen(JOULE_CPU_AUTO, "powercap",
           "the energy counters are read in /sys/class/powercap: the kernel "
           "knows more of them on this CPU (Granite Rapids)");
    ck_assert_uint_eq(c->domain_count, 4);
    no_powercap();
    chosen(JOULE_CPU_AUTO, "MSR", "");
    ck_assert_uint_eq(c->domain_count, 2);
}
END_TEST

static void both_grow(uint64_t msr_ticks, uint64_t uj)
{
    msr_ticks += 5;
    for (unsigned cpu = 0; cpu < 4; cpu++) {
        char path[64];

        snprintf(path, sizeof(path), "dev/cpu/%u/msr", cpu);
        tree_poke(&tree, path, 0x611, &msr_ticks, sizeof(msr_ticks));
    }
    put_energy("intel-rapl:0", 1000 + uj);
    put_energy("intel-rapl:1", 3000 + uj);
}

/* MSRs and powercap, which counts what they do, 3 % less, or 2. */
START_TEST(comparison)
{
    static const uint64_t percent[] = {100, 97, 98};
    const struct joule_cpu_options opt = {.total_kinds = TOTAL,
                                          .compares = true};
    unsigned fds = tree_open_fds();

    xeon();
    msrs(6, 0x55);
    c = joule_cpu_counters_create(tree.fd, &opt, &err);
    ck_assert_msg(c != NULL, "%s", err.text);
    ck_assert_str_eq(c->way, "MSR");
    c->ops->read(c, raw);
    both_grow(16384 * 100, 1000000 * percent[_i]);
    usleep(1010000);
    c->ops->read(c, raw);
    ck_assert_int_eq(c->remark.text[0] != '\0', percent[_i] < 98);
    if (percent[_i] < 98)
        ck_assert_msg(strstr(c->remark.text,
                             "the MSRs count 200.0 J of the packages where "
                             "/sys/class/powercap counts 194.0 J"),
                      "%s", c->remark.text);
    c->remark.text[0] = '\0';
    both_grow(16384 * 200, 0);
    c->ops->read(c, raw);
    ck_assert_uint_eq(raw[0].raw, 16384 * 200 + 5);
    ck_assert_str_eq(c->remark.text, "");
    c->ops->destroy(c);
    c = NULL;
    ck_assert_uint_eq(tree_open_fds(), fds);
}
END_TEST

START_TEST(no_msrs)
{
    xeon();
    msrs(19, 1);
    chosen(JOULE_CPU_AUTO, "powercap",
           "the energy counters are read in /sys/class/powercap: this CPU "
           "(GenuineIntel family 19 model 1) has no RAPL energy counters: its "
           "counters are in TPMI alone, which Linux 6.5 and later show in "
           "powercap");
    msrs(6, 0xEE);
    chosen(JOULE_CPU_AUTO, "powercap",
           "the energy counters are read in /sys/class/powercap: GenuineIntel "
           "family 6 model 238 is not known to have RAPL: what its energy "
           "registers mean is not guessed");
}
END_TEST

static void neither(unsigned way, int errnum, const char *sentence)
{
    const struct joule_cpu_options opt = {.way = way, .total_kinds = TOTAL};

    ck_assert_ptr_null(joule_cpu_counters_create(tree.fd, &opt, &err));
    ck_assert_msg(errno == errnum, "%s: %s", strerror(errno), err.text);
    ck_assert_msg(strstr(err.text, sentence), "%s", err.text);
}

START_TEST(neither_way)
{
    xeon();
    msrs(6, 0xEE);
    put("intel-rapl:0", "energy_uj", "x");
    neither(JOULE_CPU_AUTO, EINVAL, "powercap: energy_uj of powercap's");
    neither(JOULE_CPU_MSR, ENODEV, "not known to have RAPL");
    no_powercap();
    neither(JOULE_CPU_AUTO, ENODEV, "not known to have RAPL");
    neither(JOULE_CPU_POWERCAP, ENOENT, "there is no /sys/class/powercap");
    tree_write(&tree, "proc/cpuinfo",
               "processor\t: 0\ncpu\t\t: PPC970\nmodel\t\t: Power Macintosh\n");
    neither(JOULE_CPU_AUTO, ENODEV, "this is not an x86 CPU");
}
END_TEST

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

int main(void)
{
    Suite *suite = suite_create("powercap");
    TCase *tc = tcase_create("powercap");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, two_packages);
    tcase_add_test(tc, other_zones);
    tcase_add_test(tc, dies);
    tcase_add_test(tc, amd);
    tcase_add_loop_test(tc, rounded_units, 0, COUNT(units));
    tcase_add_test(tc, a_zone_that_came_back);
    tcase_add_loop_test(tc, hostile_zones, 0, COUNT(hostile));
    tcase_add_test(tc, nul_bytes);
    tcase_add_loop_test(tc, odd_name, 0, COUNT(odd_names));
    tcase_add_test(tc, nothing);
    tcase_add_test(tc, many);
    tcase_add_test(tc, msrs_and_powercap);
    tcase_add_loop_test(tc, comparison, 0, 3);
    tcase_add_test(tc, no_msrs);
    tcase_add_test(tc, neither_way);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The simulated node against closed forms: a simulator that is wrong makes
 * every accuracy figure wrong.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/control.h"
#include "tests/sim/drive.h"
#include "tests/sim/load.h"
#include "tests/sim/machine.h"
#include "tests/sim/model.h"
#include "tests/sim/node.h"
#include "tests/sim/number.h"
#include "tests/sim/registers.h"
#include "tests/sim/talk.h"
#include "tests/sim/wattmeter.h"

#define S  INT64_C(1000000000)
#define MS INT64_C(1000000)

/* Energies of loads in nJ: fits 64 bits, 1 W x 1 ns. */
static uint64_t load_nj(const struct sim_load *load, int64_t t_ns)
{
    return (uint64_t)(sim_load_fj(load, t_ns) / SIM_FJ_PER_NJ);
}

static struct sim_load *load_ok(const char *spec)
{
    struct joule_error err = {""};
    struct sim_load *load = sim_load_parse(spec, &err);

    ck_assert_msg(load != NULL, "%s", err.text);
    return load;
}

static char *tmp_file(const char *text)
{
    char *path = strdup("/tmp/test_nodesim.XXXXXX");
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

static void tmp_remove(char *path)
{
    unlink(path);
    free(path);
}

START_TEST(number_bad)
{
    static const char *const bad[] = {"",      ".",         ".5", "1.",  "-1",
                                      "+1",    " 1",        "1 ", "1e3", "0x1",
                                      "1.2.3", "1.1234567", "nan"};
    int64_t value = 42;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        errno = 0;
        ck_assert_msg(sim_parse_uw(bad[i], &value) == -1, "%s", bad[i]);
        ck_assert_int_eq(errno, EINVAL);
    }
    ck_assert_int_eq(sim_parse_uw("100000.000001", &value), -1);
    ck_assert_int_eq(errno, ERANGE);
    ck_assert_int_eq(sim_parse_uw("99999999999999999999999", &value), -1);
    ck_assert_int_eq(errno, ERANGE);
    ck_assert_int_eq(value, 42);
}
END_TEST

START_TEST(number_good)
{
    int64_t value;

    ck_assert_int_eq(sim_parse_uw("0", &value), 0);
    ck_assert_int_eq(value, 0);
    ck_assert_int_eq(sim_parse_uw("150.5", &value), 0);
    ck_assert_int_eq(value, 150500000);
    ck_assert_int_eq(sim_parse_uw("100000", &value), 0);
    ck_assert_int_eq(value, SIM_POWER_MAX_UW);
    ck_assert_int_eq(sim_parse_ns("0.000000001", &value), 0);
    ck_assert_int_eq(value, 1);
    ck_assert_int_eq(sim_parse_ppm("1", &value), 0);
    ck_assert_int_eq(value, 1000000);
}
END_TEST

START_TEST(load_bad)
{
    static const char *const bad[] = {"",
                                      "const",
                                      "const:",
                                      "const:1:2",
                                      "const:-1",
                                      "square:1:2",
                                      "square:1:2:0",
                                      "square:1:2:1:2",
                                      "square:1:2:1:0.5:",
                                      "ramp:1:2",
                                      "ramp:1:2:0",
                                      "ramp:1:2:3:4",
                                      "sine:1:2:3",
                                      "const:100001"};
    struct joule_error err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        err.text[0] = '\0';
        ck_assert_msg(!sim_load_parse(bad[i], &err), "%s", bad[i]);
        ck_assert_int_eq(errno, EINVAL);
        ck_assert_ptr_nonnull(strstr(err.text, bad[i]));
    }
}
END_TEST

START_TEST(load_const)
{
    struct sim_load *load = load_ok("const:123.456789");

    ck_assert_uint_eq(load_nj(load, -5), 0);
    ck_assert_uint_eq(load_nj(load, 0), 0);
    ck_assert_uint_eq(load_nj(load, 1), 123);
    ck_assert_uint_eq(load_nj(load, S), 123456789000);
    /* a year */
    ck_assert_uint_eq(load_nj(load, 31536000 * S),
                      UINT64_C(123456789) * 31536000 * 1000);
    sim_load_destroy(load);
}
END_TEST

START_TEST(load_square)
{
    struct sim_load *load = load_ok("square:50:150:0.1:0.3");
    /* a period of 100 ms: 30 ms at 150 W, 70 ms at 50 W: 8 J */

    for (int64_t n = 0; n < 10000000; n += 999983) {
        uint64_t whole = (uint64_t)n * 8 * (uint64_t)S;

        ck_assert_uint_eq(load_nj(load, n * 100 * MS), whole);
        ck_assert_uint_eq(load_nj(load, n * 100 * MS + 10 * MS),
                          whole + 1500 * MS);
        ck_assert_uint_eq(load_nj(load, n * 100 * MS + 30 * MS),
                          whole + 4500 * MS);
        ck_assert_uint_eq(load_nj(load, n * 100 * MS + 30 * MS + 1),
                          whole + 4500 * MS + 50);
        ck_assert_uint_eq(load_nj(load, n * 100 * MS + 100 * MS - 1),
                          whole + 8000 * MS - 50);
    }
    sim_load_destroy(load);
    load = load_ok("square:50:150:0.1:0");
    ck_assert_uint_eq(load_nj(load, 1050 * MS), 52500 * MS);
    sim_load_destroy(load);
    load = load_ok("square:50:150:0.1:1");
    ck_assert_uint_eq(load_nj(load, 1050 * MS), 157500 * MS);
    sim_load_destroy(load);
}
END_TEST

START_TEST(load_ramp)
{
    struct sim_load *load = load_ok("ramp:100:200:10");

    for (int64_t n = 0; n < 1000000; n += 99991) {
        for (int64_t ms = 0; ms <= 10000; ms += 7) {
            /* 1500 J a period; 100 W + 10 W/s: 0.1 J/ms + 5 uJ/ms^2 */
            uint64_t want = (uint64_t)n * 1500 * (uint64_t)S +
                            (uint64_t)(ms * 100 * MS + ms * ms * 5000);

            ck_assert_uint_eq(load_nj(load, n * 10 * S + ms * MS), want);
        }
    }
    sim_load_destroy(load);
    load = load_ok("ramp:200:100:10");
    ck_assert_uint_eq(load_nj(load, 4 * S), 800 * S - 80 * S);
    sim_load_destroy(load);
    /* the longest period and the highest power stay within 128 bits:
     * 1e5 W x 1e8 s / 2 / 4 after half of it */
    load = load_ok("ramp:0:100000:100000000");
    ck_assert(sim_load_fj(load, SIM_TIME_MAX_NS / 2) ==
              (sim_fj)SIM_POWER_MAX_UW * SIM_TIME_MAX_NS / 8);
    sim_load_destroy(load);
}
END_TEST

START_TEST(load_never_falls)
{
    static const char *const specs[] = {"square:0:3:0.000000007:0.5",
                                        "ramp:3:0.1:0.000000013",
                                        "ramp:0:0.000007:0.000000011"};

    for (size_t i = 0; i < 3; i++) {
        struct sim_load *load = load_ok(specs[i]);
        sim_fj last = 0;

        for (int64_t t = 0; t < 1000; t++) {
            sim_fj now = sim_load_fj(load, t);

            ck_assert(now >= last);
            last = now;
        }
        sim_load_destroy(load);
    }
}
END_TEST

START_TEST(trace_bad)
{
    static const struct {
        const char *text, *say;
    } bad[] = {
        {"", "no point"},           {"# nothing\n", "no point"},
        {"1\n", "line 1"},          {"0,1\n1;2\n", "line 2"},
        {"1,1\n0.5,1\n", "line 2"}, {"0,-1\n", "line 1"},
        {"0,100001\n", "line 1"},   {"0,1\nseconds,watts\n", "line 2"},
        {"0, 1\n", "line 1"},       {"0,5\n0,6\n", "cannot repeat"},
    };
    struct joule_error err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char *path = tmp_file(bad[i].text);

        ck_assert_ptr_null(sim_load_read(path, true, &err));
        ck_assert_msg(strstr(err.text, bad[i].say) != NULL, "%s", err.text);
        tmp_remove(path);
    }
    ck_assert_ptr_null(sim_load_read("/nonexistent", false, &err));
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

START_TEST(trace_good)
{
    /* 1 s hold, 2 s from 10 to 30, step to 100, 1 s down to 0 */
    char *path = tmp_file("seconds,watts\n# c\n\n1,10\r\n3,30\n3,100\n4,0\n");
    struct sim_load *load = sim_load_read(path, false, NULL);

    ck_assert_ptr_nonnull(load);
    ck_assert_uint_eq(load_nj(load, S / 2), 5 * S);
    ck_assert_uint_eq(load_nj(load, S), 10 * S);
    ck_assert_uint_eq(load_nj(load, 2 * S), 25 * S);
    ck_assert_uint_eq(load_nj(load, 3 * S), 50 * S);
    ck_assert_uint_eq(load_nj(load, 3 * S + S / 2), 50 * S + 75 * S / 2);
    ck_assert_uint_eq(load_nj(load, 4 * S), 100 * S);
    ck_assert_uint_eq(load_nj(load, 400 * S), 100 * S); /* holds 0 W */
    sim_load_destroy(load);

    load = sim_load_read(path, true, NULL);
    ck_assert_ptr_nonnull(load);
    for (int64_t n = 1; n < 1000000; n *= 7) {
        ck_assert_uint_eq(load_nj(load, n * 4 * S), (uint64_t)n * 100 * S);
        ck_assert_uint_eq(load_nj(load, n * 4 * S + 2 * S),
                          (uint64_t)n * 100 * S + 25 * S);
    }
    sim_load_destroy(load);
    tmp_remove(path);

    path = tmp_file("0,0\n1,7");
    load = sim_load_read(path, false, NULL);
    ck_assert_ptr_nonnull(load);
    ck_assert_uint_eq(load_nj(load, 11 * S), 3500 * MS + 70 * S);
    sim_load_destroy(load);
    tmp_remove(path);
}
END_TEST

START_TEST(model_changes_are_continuous)
{
    struct sim_model *m = sim_model_create(sim_load_const(100000000), 10000000);

    ck_assert_ptr_nonnull(m);
    /* 100 W x 2 s + 10 W x 3 CPU seconds */
    ck_assert_uint_eq(sim_model_nj(m, 2 * S, 3 * S), 230 * S);
    sim_model_set_busy(m, 20000000, 3 * S);
    ck_assert_uint_eq(sim_model_nj(m, 2 * S, 3 * S), 230 * S);
    ck_assert_uint_eq(sim_model_nj(m, 2 * S, 4 * S), 250 * S);
    sim_model_set_load(m, load_ok("square:0:50:2"), 2 * S);
    ck_assert_uint_eq(sim_model_nj(m, 2 * S, 4 * S), 250 * S);
    /* a step that began before the change */
    ck_assert_uint_eq(sim_model_nj(m, 2 * S - MS, 4 * S), 250 * S);
    ck_assert_uint_eq(sim_model_nj(m, 5 * S, 4 * S), 350 * S);
    sim_model_destroy(m);
    sim_model_destroy(NULL);

    ck_assert_int_eq(sim_busy_at(8000000, 2400000, 2400000), 8000000);
    ck_assert_int_eq(sim_busy_at(8000000, 1200000, 2400000), 1000000);
    ck_assert_int_eq(sim_busy_at(8000000, 4800000, 2400000), 64000000);
}
END_TEST

START_TEST(parts_add_up)
{
    for (unsigned n = 1; n < 9; n++) {
        uint64_t last[8] = {0};

        for (uint64_t e = 0; e < 200; e++) {
            uint64_t sum = 0;

            for (unsigned i = 0; i < n; i++) {
                uint64_t part = sim_part(e, i, n);

                ck_assert_uint_ge(part, last[i]);
                last[i] = part;
                sum += part;
            }
            ck_assert_uint_eq(sum, e);
        }
    }
}
END_TEST

static struct sim_machine *machine_ok(const struct sim_machine_options *opt)
{
    struct joule_error err = {""};
    struct sim_machine *m = sim_machine_create(opt, &err);

    ck_assert_msg(m != NULL, "%s", err.text);
    return m;
}

static struct sim_machine *machine_of(enum sim_vendor vendor, unsigned family,
                                      unsigned model)
{
    struct sim_machine_options opt;

    sim_machine_options_init(&opt);
    opt.vendor = vendor;
    opt.family = family;
    opt.model = model;
    opt.cpus = 4;
    opt.start = "0";
    return machine_ok(&opt);
}

START_TEST(machine_bad)
{
    struct sim_machine_options opt;
    struct joule_error err;

#define REFUSED(set)                                                           \
    do {                                                                       \
        sim_machine_options_init(&opt);                                        \
        opt.cpus = 4;                                                          \
        set;                                                                   \
        err.text[0] = '\0';                                                    \
        ck_assert_ptr_null(sim_machine_create(&opt, &err));                    \
        ck_assert_int_eq(errno, EINVAL);                                       \
        ck_assert_str_ne(err.text, "");                                        \
    } while (0)
    REFUSED(opt.cpus = 3);
    REFUSED(opt.dies = 4);
    REFUSED(opt.start = "");
    REFUSED(opt.start = "4294967296");
    REFUSED(opt.start = "wrap-0");
    REFUSED(opt.start = "wrap--1");
    REFUSED(opt.offline = "4");
    REFUSED(opt.offline = "0-3");
    REFUSED(opt.offline = "x");
    REFUSED(opt.cpu_numbers = "1-3");
    REFUSED(opt.cpu_numbers = "");
#undef REFUSED
}
END_TEST

START_TEST(machine_units)
{
    static const struct {
        enum sim_vendor vendor;
        unsigned family, model;
        struct joule_unit unit, dram, psys;
        unsigned width;
        bool has_dram;
    } rows[] = {
        {SIM_INTEL, 6, 0x55, {15625, 8}, {15625, 10}, {15625, 8}, 32, true},
        {SIM_INTEL, 6, 0x6a, {15625, 8}, {15625, 10}, {15625, 8}, 32, true},
        {SIM_INTEL, 6, 0x8f, {15625, 8}, {15625, 8}, {1000000, 0}, 32, true},
        {SIM_INTEL, 6, 0x2d, {15625, 10}, {15625, 10}, {15625, 10}, 32, true},
        {SIM_INTEL, 6, 0x37, {32, 0}, {32, 0}, {32, 0}, 32, false},
        {SIM_INTEL, 6, 0xff, {15625, 8}, {15625, 8}, {15625, 8}, 32, true},
        {SIM_AMD, 0x19, 0x01, {15625, 10}, {15625, 10}, {15625, 10}, 32, false},
        {SIM_AMD, 0x19, 0x11, {15625, 10}, {15625, 10}, {15625, 10}, 64, false},
        {SIM_AMD, 0x1a, 0x02, {15625, 10}, {15625, 10}, {15625, 10}, 64, false},
        {SIM_HYGON, 0x18, 0, {15625, 10}, {15625, 10}, {15625, 10}, 32, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sim_machine *m =
            machine_of(rows[i].vendor, rows[i].family, rows[i].model);

        ck_assert_mem_eq(&m->unit, &rows[i].unit, sizeof(m->unit));
        ck_assert_mem_eq(&m->dram_unit, &rows[i].dram, sizeof(m->unit));
        ck_assert_mem_eq(&m->psys_unit, &rows[i].psys, sizeof(m->unit));
        ck_assert_uint_eq(m->width_bits, rows[i].width);
        ck_assert_int_eq(m->dram, rows[i].has_dram);
        sim_machine_destroy(m);
    }
}
END_TEST

START_TEST(machine_places)
{
    struct sim_machine_options opt;
    struct sim_machine *m;

    sim_machine_options_init(&opt);
    opt.cpus = 16;
    opt.packages = 2;
    opt.dies = 2;
    opt.threads = 2;
    opt.sparse = true;
    opt.offline = "31";
    m = machine_ok(&opt);
    ck_assert_uint_eq(m->cpu_count, 16);
    ck_assert_uint_eq(m->cores, 4);
    for (unsigned i = 0; i < 16; i++) {
        ck_assert_uint_eq(m->cpus[i].number, 2 * i + 1);
        ck_assert_uint_eq(m->cpus[i].package, i % 8 / 4);
        ck_assert_uint_eq(m->cpus[i].core, i % 4);
        ck_assert_uint_eq(m->cpus[i].die, i % 4 / 2);
        ck_assert_int_eq(m->cpus[i].online, i != 15);
    }
    sim_machine_destroy(m);
}
END_TEST

static uint64_t reg_ok(struct sim_registers *regs, size_t cpu, uint32_t reg,
                       uint64_t node_nj)
{
    const struct sim_energy e = {.t_ns = S, .node_nj = node_nj};
    uint64_t value = 0;

    ck_assert_int_eq(sim_registers_read(regs, cpu, reg, &e, &value), 0);
    return value;
}

static void reg_eio(struct sim_registers *regs, uint32_t reg)
{
    const struct sim_energy e = {.t_ns = S, .node_nj = 1000};
    uint64_t value = 42;

    ck_assert_int_eq(sim_registers_read(regs, 0, reg, &e, &value), EIO);
    ck_assert_uint_eq(value, 42);
}

START_TEST(registers_intel)
{
    struct sim_machine *m = machine_of(SIM_INTEL, 6, 0x55);
    struct sim_registers regs;
    uint64_t node = 2 * UINT64_C(1000) * S; /* 1000 J a package */

    sim_registers_init(&regs, m, 250000);
    reg_eio(&regs, 0);
    reg_eio(&regs, 0x612);
    reg_eio(&regs, 0x639);
    reg_eio(&regs, 0x641);
    reg_eio(&regs, 0x64d);
    reg_eio(&regs, 0xbc);
    reg_eio(&regs, 0xc0010299);
    reg_eio(&regs, 0xc001029b);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x606, 0), 0xa0e03);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x10a, 0), 0);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x611, 0), 0);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x611, node), 750 << 14);
    ck_assert_uint_eq(reg_ok(&regs, 3, 0x611, node), 750 << 14);
    ck_assert_uint_eq(reg_ok(&regs, 3, 0x619, node), 250 << 16);
    /* one tick short: 2^-14 J of a package are 61035.15 nJ of 81380.2 */
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x611, 2 * 81380), 0);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x611, 2 * 81382), 1);
    m->pp0 = m->pp1 = m->psys = true;
    m->filtering = SIM_FILTERING_ON;
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x639, node), 525 << 14);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x641, node), 614400); /* 37.5 J */
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x64d, node), 2220 << 14);
    ck_assert_uint_eq(reg_ok(&regs, 3, 0x64d, node), 0);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0xbc, 0), 1);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x10a, 0), 0xc00);
    m->filtering = SIM_FILTERING_OFF;
    ck_assert_uint_eq(reg_ok(&regs, 0, 0xbc, 0), 0);
    m->dram = false;
    reg_eio(&regs, 0x619);
    sim_machine_destroy(m);
}
END_TEST

START_TEST(registers_amd)
{
    struct sim_machine *m = machine_of(SIM_AMD, 0x19, 0x11);
    struct sim_registers regs;
    uint64_t node = 2 * UINT64_C(100000) * S; /* beyond 32 bits of 2^-16 J */

    sim_registers_init(&regs, m, 0);
    reg_eio(&regs, 0x606);
    reg_eio(&regs, 0x611);
    reg_eio(&regs, 0x10a);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0xc0010299, 0), 0xa1003);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0xc001029b, node), UINT64_C(100000)
                                                              << 16);
    /* two cores a package */
    ck_assert_uint_eq(reg_ok(&regs, 1, 0xc001029a, node), UINT64_C(35000)
                                                              << 16);
    m->width_bits = 32;
    ck_assert_uint_eq(reg_ok(&regs, 0, 0xc001029b, node),
                      (UINT64_C(100000) << 16) & UINT32_MAX);
    sim_machine_destroy(m);
}
END_TEST

START_TEST(registers_add_up)
{
    struct sim_machine_options opt;
    struct sim_machine *m;
    struct sim_registers regs;

    sim_machine_options_init(&opt);
    opt.packages = 3;
    opt.dies = 2;
    opt.cpus = 12;
    opt.start = "0";
    opt.dram_esu = 14;
    m = machine_ok(&opt);
    sim_registers_init(&regs, m, 333333);
    for (uint64_t nj = 0; nj < 1000 * (uint64_t)S; nj += 777777777) {
        uint64_t sum = 0, node = nj / 15625 * 256 / 1000;

        for (size_t cpu = 0; cpu < 12; cpu += 2)
            sum +=
                reg_ok(&regs, cpu, 0x611, nj) + reg_ok(&regs, cpu, 0x619, nj);
        /* each of the 12 counters rounds down by less than a tick */
        ck_assert_uint_le(sum, node + 1);
        ck_assert_uint_ge(sum + 12, node);
    }
    sim_machine_destroy(m);
}
END_TEST

START_TEST(registers_wrap)
{
    struct sim_machine_options opt;
    struct sim_machine *m;
    struct sim_registers regs;
    uint64_t node = 2 * UINT64_C(100) * S;

    sim_machine_options_init(&opt);
    opt.start = "wrap-100000";
    opt.cpus = 2;
    m = machine_ok(&opt);
    ck_assert_uint_eq(m->start, UINT64_C(0x100000000) - 100000);
    sim_registers_init(&regs, m, 0);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x611, 0), m->start);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x611, node), (100 << 14) - 100000);
    sim_machine_destroy(m);

    opt.width = 64;
    m = machine_ok(&opt);
    ck_assert_uint_eq(m->start, UINT64_MAX - 99999);
    sim_registers_init(&regs, m, 0);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x611, node), (100 << 14) - 100000);
    sim_machine_destroy(m);
}
END_TEST

START_TEST(registers_faults)
{
    struct sim_machine *m = machine_of(SIM_INTEL, 6, 0x55);
    struct sim_registers regs;
    struct sim_energy e = {.t_ns = S, .node_nj = 20 * (uint64_t)S};
    unsigned failed = 0;
    uint64_t value;

    sim_registers_init(&regs, m, 0);
    regs.eio_every = 3;
    for (unsigned i = 1; i <= 9; i++)
        failed += sim_registers_read(&regs, 0, 0x611, &e, &value) == EIO &&
                  i % 3 == 0;
    ck_assert_uint_eq(failed, 3);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x606, 0), 0xa0e03); /* no counter */
    regs.eio_every = 0;

    sim_registers_freeze(&regs, &e);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x611, 30 * S), 10 << 14);
    e.node_nj = 40 * (uint64_t)S;
    sim_registers_freeze(&regs, &e); /* again: nothing */
    sim_registers_thaw(&regs, &e);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x611, 40 * S), 10 << 14);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x611, 60 * S), 20 << 14);
    /* a second freeze adds to what the first one lost */
    e.node_nj = 60 * (uint64_t)S;
    sim_registers_freeze(&regs, &e);
    e.node_nj = 100 * (uint64_t)S;
    sim_registers_thaw(&regs, &e);
    sim_registers_thaw(&regs, &e);
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x611, 110 * S), 25 << 14);

    m->dead = true;
    m->start = 5;
    ck_assert_uint_eq(reg_ok(&regs, 0, 0x611, 60 * S), 0);
    sim_machine_destroy(m);
}
END_TEST

static int64_t fake_now(void *arg)
{
    return *(int64_t *)arg;
}

static void node_make(struct sim_node *node, const struct joule_clock *clock)
{
    sim_node_init(node, clock, MS, machine_of(SIM_INTEL, 6, 0x55),
                  sim_model_create(load_ok("const:200"), 0), sim_drive_create(),
                  0);
}

START_TEST(node_steps)
{
    int64_t now = 5 * S + 123;
    const struct joule_clock clock = {fake_now, fake_now, &now};
    struct sim_node node;
    uint64_t value;

    node_make(&node, &clock);
    now += S + MS - 1;
    /* 100 W a package, still those of the step at 1 s */
    ck_assert_int_eq(sim_node_rdmsr(&node, 0, 0x611, &value), 0);
    ck_assert_uint_eq(value, 100 << 14);
    ck_assert_uint_eq(sim_node_exact(&node, now).node_nj,
                      200 * (uint64_t)(S + MS - 1));
    now++;
    ck_assert_int_eq(sim_node_rdmsr(&node, 0, 0x611, &value), 0);
    ck_assert_uint_eq(value, (100 << 14) + 1638); /* 0.1 J */
    sim_node_clear(&node);
}
END_TEST

START_TEST(control_commands)
{
    static const struct {
        const char *command, *reply;
    } bad[] = {
        {"", "error: "},
        {"foo", "error: "},
        {"energy now", "error: "},
        {"eio", "error: "},
        {"eio every 0", "error: "},
        {"eio every x", "error: "},
        {"load x", "error: "},
        {"busy -1", "error: "},
        {"freq 0", "error: "},
        {"add-pid 0", "error: "},
        {"add-cgroup /nonexistent", "error: "},
        {"sync", "error: "},
        {"eio every 7", "ok"},
        {"eio off", "ok"},
        {"load const:400\n", "ok"},
        {"busy 5", "ok"},
        {"freq 1.2", "ok"},
    };
    int64_t now = 7 * S;
    const struct joule_clock clock = {fake_now, fake_now, &now};
    struct sim_node node;
    struct sim_control control = {&node, NULL, -1};
    char line[128], reply[512];

    node_make(&node, &clock);
    now += S;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(line, sizeof(line), "%s", bad[i].command);
        sim_control_command(&control, line, reply, sizeof(reply));
        ck_assert_msg(!strncmp(reply, bad[i].reply, strlen(bad[i].reply)),
                      "%s: %s", bad[i].command, reply);
    }
    now += S; /* 200 J before, 400 J since "load" */
    snprintf(line, sizeof(line), "energy");
    sim_control_command(&control, line, reply, sizeof(reply));
    ck_assert_str_eq(reply, "9000000000 600000000 300000000 300000000");
    snprintf(line, sizeof(line), "power");
    sim_control_command(&control, line, reply, sizeof(reply));
    ck_assert_str_eq(reply, "9000000000 600000000000 400000000 2 0");
    sim_node_clear(&node);
}
END_TEST

/* A socket of commands: many clients one after the other, and more at once
 * than there are places. */
static void echo(void *arg, char *line, char *reply, size_t size)
{
    (*(int *)arg)++;
    snprintf(reply, size, "%s", line);
}

START_TEST(talk_clients)
{
    char dir[] = "/tmp/test_nodesim.XXXXXX", reply[64];
    int fds[SIM_TALK_CLIENTS + 2], dir_fd, served = 0;
    struct joule_error err = {""};
    struct sim_talk *talk;
    struct pollfd poller;

    ck_assert_ptr_nonnull(mkdtemp(dir));
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(sim_talk_open(dir, "t", 100, &err), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, dir));
    talk = sim_talk_create(dir_fd, "t", echo, &served, &err);
    ck_assert_msg(talk != NULL, "%s", err.text);
    poller = (struct pollfd){sim_talk_fd(talk), POLLIN, 0};
    for (int i = 0; i < SIM_TALK_CLIENTS + 2; i++) {
        fds[i] = sim_talk_open(dir, "t", 100, &err);
        ck_assert_msg(fds[i] >= 0, "%s", err.text);
        ck_assert_int_eq(send(fds[i], "error: a\n", 9, 0), 9);
        sim_talk_serve(talk);
    }
    for (int i = 0; i < 3 * SIM_TALK_CLIENTS; i++)
        sim_talk_serve(talk);
    ck_assert_int_eq(served, SIM_TALK_CLIENTS);
    ck_assert_int_eq(poll(&poller, 1, 0), 0);
    for (int i = 0; i < SIM_TALK_CLIENTS; i++)
        close(fds[i]);
    ck_assert_int_eq(poll(&poller, 1, 1000), 1);
    for (int i = 0; i < 3 * SIM_TALK_CLIENTS; i++)
        sim_talk_serve(talk);
    ck_assert_int_eq(served, SIM_TALK_CLIENTS + 2);
    ck_assert_int_eq(recv(fds[SIM_TALK_CLIENTS], reply, sizeof(reply), 0), 8);
    /* Nobody serves now: the bound holds. */
    ck_assert_int_eq(sim_talk_exchange(fds[SIM_TALK_CLIENTS], "x", reply,
                                       sizeof(reply), &err),
                     -1);
    ck_assert_int_eq(errno, EAGAIN);
    sim_talk_serve(talk);
    ck_assert_int_eq(recv(fds[SIM_TALK_CLIENTS], reply, sizeof(reply), 0), 1);
    close(fds[SIM_TALK_CLIENTS]);
    close(fds[SIM_TALK_CLIENTS + 1]);
    sim_talk_destroy(talk);
    sim_talk_destroy(NULL);
    close(dir_fd);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(load_power)
{
    struct sim_load *load = load_ok("square:50:150:1:0.25");

    ck_assert_int_eq(sim_load_uw(load, -1), 150000000);
    ck_assert_int_eq(sim_load_uw(load, 250 * MS - 1), 150000000);
    ck_assert_int_eq(sim_load_uw(load, 250 * MS), 50000000);
    ck_assert_int_eq(sim_load_uw(load, 77 * S + 999 * MS), 50000000);
    ck_assert_int_eq(sim_load_uw(load, 78 * S), 150000000);
    sim_load_destroy(load);
    load = load_ok("ramp:100:200:10");
    ck_assert_int_eq(sim_load_uw(load, 0), 100000000);
    ck_assert_int_eq(sim_load_uw(load, 12 * S + 500 * MS), 125000000);
    sim_load_destroy(load);
    load = load_ok("const:7.5");
    ck_assert_int_eq(sim_load_uw(load, SIM_TIME_MAX_NS), 7500000);
    sim_load_destroy(load);
}
END_TEST

/* CPU time becomes power over the last 50 to 100 ms. */
START_TEST(model_power)
{
    struct sim_model *model =
        sim_model_create(sim_load_const(100000000), 10000000);

    ck_assert_int_eq(sim_model_uw(model, S, 5 * MS, 0), 100000000);
    ck_assert_int_eq(sim_model_uw(model, S, 0, 100 * MS), 100000000);
    ck_assert_int_eq(sim_model_uw(model, S, 150 * MS, 100 * MS), 115000000);
    sim_model_destroy(model);
}
END_TEST

START_TEST(drive_pid)
{
    struct sim_drive *drive = sim_drive_create();
    struct joule_error err;
    struct timespec ts;
    uint64_t used, own[2];

    ck_assert_int_eq(sim_drive_add_pid(drive, 0x7fffffff, &err), -1);
    ck_assert_int_eq(errno, ESRCH);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    own[0] = (uint64_t)(ts.tv_sec * S + ts.tv_nsec);
    ck_assert_int_eq(sim_drive_add_pid(drive, getpid(), &err), 0);
    ck_assert_int_eq(sim_drive_add_pid(drive, getpid(), &err), -1);
    do {
        used = sim_drive_cpu_ns(drive, S);
    } while (used < 20 * (uint64_t)MS);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    own[1] = (uint64_t)(ts.tv_sec * S + ts.tv_nsec);
    ck_assert_uint_le(used, own[1] - own[0]);
    sim_drive_destroy(drive);
}
END_TEST

static void put(const char *dir, const char *name, const char *text)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

START_TEST(drive_cgroup)
{
    char dir[] = "/tmp/test_nodesim.XXXXXX", path[128];
    struct sim_drive *drive = sim_drive_create();

    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(sim_drive_add_cgroup(drive, dir, NULL), -1);
    ck_assert_int_eq(errno, ENOENT);
    put(dir, "cpu.stat", "user_usec 1\n");
    ck_assert_int_eq(sim_drive_add_cgroup(drive, dir, NULL), -1);
    put(dir, "cpu.stat", "usage_usec 1000\nuser_usec 900\n");
    ck_assert_int_eq(sim_drive_add_cgroup(drive, dir, NULL), 0);
    ck_assert_uint_eq(sim_drive_cpu_ns(drive, S), 0);
    put(dir, "cpu.stat", "usage_usec 1500\nuser_usec 900\n");
    ck_assert_uint_eq(sim_drive_cpu_ns(drive, S), 500000);
    /* gone: an empty file reads as one */
    put(dir, "cpu.stat", "");
    ck_assert_uint_eq(sim_drive_cpu_ns(drive, S), 500000);
    /* and back: counted from 0, on top */
    put(dir, "cpu.stat", "usage_usec 70\n");
    ck_assert_uint_eq(sim_drive_cpu_ns(drive, 2 * S), 570000);
    snprintf(path, sizeof(path), "%s/cpu.stat", dir);
    unlink(path);
    put(dir, "cpuacct.usage", "1000\n");
    ck_assert_int_eq(sim_drive_add_cgroup(drive, dir, NULL), 0);
    put(dir, "cpuacct.usage", "1007\n");
    ck_assert_uint_eq(sim_drive_cpu_ns(drive, 2 * S), 570007);
    sim_drive_destroy(drive);
    sim_drive_destroy(NULL);
    snprintf(path, sizeof(path), "%s/cpuacct.usage", dir);
    unlink(path);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

static void meter_line(struct sim_wattmeter *meter, int64_t mono_ns,
                       int64_t wall_ns, uint64_t node_nj)
{
    const struct sim_energy e = {.node_nj = node_nj};

    sim_wattmeter_line(meter, mono_ns, wall_ns, &e);
}

START_TEST(wattmeter_integral)
{
    char *path = tmp_file("");
    struct joule_error err = {""};
    struct sim_wattmeter *meter = sim_wattmeter_create(path, 3, &err);
    char text[256] = "";
    int64_t uj = 42;
    FILE *f;

    ck_assert_msg(meter != NULL, "%s", err.text);
    meter_line(meter, 1000, 5, 0);
    meter_line(meter, 2000, 6, 100999);
    meter_line(meter, 4000, 7, 500000);
    ck_assert_int_eq(sim_wattmeter_destroy(meter), 0);
    f = fopen(path, "a+");
    ck_assert_int_gt(fread(text, 1, sizeof(text) - 1, f), 0);
    ck_assert_str_eq(text, "mono_ns,wall_ns,node_uj,package0_uj,package1_uj,"
                           "package2_uj\n1000,5,0,0,0,0\n2000,6,100,33,33,34\n"
                           "4000,7,500,166,167,167\n");
    fputs("5000,8,6", f); /* being written */
    fclose(f);

    ck_assert_int_eq(sim_wattmeter_integrate(path, 999, 2000, &uj, &err), -1);
    ck_assert_int_eq(errno, ERANGE);
    ck_assert_int_eq(sim_wattmeter_integrate(path, 1000, 4001, &uj, &err), -1);
    ck_assert_int_eq(errno, ERANGE);
    ck_assert_int_eq(sim_wattmeter_integrate(path, 2000, 1000, &uj, &err), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(uj, 42);
    ck_assert_int_eq(sim_wattmeter_integrate(path, 1000, 4000, &uj, &err), 0);
    ck_assert_int_eq(uj, 500);
    ck_assert_int_eq(sim_wattmeter_integrate(path, 1500, 3000, &uj, &err), 0);
    ck_assert_int_eq(uj, 250);
    ck_assert_int_eq(sim_wattmeter_integrate(path, 2000, 2000, &uj, &err), 0);
    ck_assert_int_eq(uj, 0);
    tmp_remove(path);

    path = tmp_file("a,b,c\n1,2,3\n");
    ck_assert_int_eq(sim_wattmeter_integrate(path, 1, 2, &uj, &err), -1);
    ck_assert_int_eq(errno, EINVAL);
    tmp_remove(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nodesim");
    TCase *tc = tcase_create("model");
    SRunner *runner;
    int failed;

    tcase_add_test(tc, number_bad);
    tcase_add_test(tc, number_good);
    tcase_add_test(tc, load_bad);
    tcase_add_test(tc, load_const);
    tcase_add_test(tc, load_square);
    tcase_add_test(tc, load_ramp);
    tcase_add_test(tc, load_never_falls);
    tcase_add_test(tc, trace_bad);
    tcase_add_test(tc, trace_good);
    tcase_add_test(tc, model_changes_are_continuous);
    tcase_add_test(tc, parts_add_up);
    tcase_add_test(tc, machine_bad);
    tcase_add_test(tc, machine_units);
    tcase_add_test(tc, machine_places);
    tcase_add_test(tc, registers_intel);
    tcase_add_test(tc, registers_amd);
    tcase_add_test(tc, registers_add_up);
    tcase_add_test(tc, registers_wrap);
    tcase_add_test(tc, registers_faults);
    tcase_add_test(tc, node_steps);
    tcase_add_test(tc, control_commands);
    tcase_add_test(tc, talk_clients);
    tcase_add_test(tc, load_power);
    tcase_add_test(tc, model_power);
    tcase_add_test(tc, drive_pid);
    tcase_add_test(tc, drive_cgroup);
    tcase_add_test(tc, wattmeter_integral);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

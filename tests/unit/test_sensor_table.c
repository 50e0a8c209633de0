/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A sparse file stands in for an MSR device, as in test_rapl.c. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/energy/node_total.h"
#include "common/sensors/hwmon.h"
#include "common/sensors/sensor_table.h"
#include "tests/unit/tree.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define S        JOULE_NS_PER_S
#define J        UINT64_C(1000000)

#define UNIT 0x606
#define PKG  0x611
#define DRAM 0x619

static struct tree tree;
static struct joule_error err;
static struct joule_energy_config config;
static struct joule_reading readings[JOULE_DOMAINS_MAX];
static unsigned fds_before;

static const char *const names[] = {"joule_rapl", "joule_ipmi", "joule_fused"};
static const enum joule_sensor_use uses[] = {JOULE_SENSOR_MEASURE,
                                             JOULE_SENSOR_FOLLOW};

static void set(const char *key, const char *value)
{
    ck_assert_msg(
        joule_option_set(joule_option_find(joule_energy_config_options, key),
                         &config, value, &err) == 0,
        "%s", err.text);
}

static void setup(void)
{
    tree_create(&tree);
    memset(&err, 0, sizeof(err));
    joule_option_defaults(joule_energy_config_options, &config);
    fds_before = tree_open_fds();
}

/* Nothing is left of what was opened. */
static void teardown(void)
{
    ck_assert_uint_eq(tree_open_fds(), fds_before);
    tree_destroy(&tree);
}

static void poke(off_t reg, uint64_t value)
{
    tree_poke(&tree, "dev/cpu/0/msr", reg, &value, sizeof(value));
}

/* A Skylake-SP of one package. */
static void machine(void)
{
    tree_write(&tree, "proc/cpuinfo",
               "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
               "model\t\t: 85\nmodel name\t: Test CPU\nflags\t\t: fpu\n\n");
    tree_write(&tree, "sys/devices/system/cpu/online", "0\n");
    tree_cpu(&tree, 0, 0, 0, 0);
    poke(UNIT, 0xA0E03);
    poke(PKG, 0x100);
    poke(DRAM, 0x200);
}

static struct joule_sensor *open_as(const char *name, enum joule_sensor_use use)
{
    return joule_sensor_open(name, tree.fd, &config, "n1", use, &err);
}

static struct joule_sensor *
must_open(const char *name, enum joule_sensor_use use, const char *type)
{
    struct joule_sensor *sensor = open_as(name, use);

    ck_assert_msg(sensor != NULL, "%s", err.text);
    ck_assert_str_eq(sensor->ops->type, type);
    return sensor;
}

static void must_refuse(const char *name, enum joule_sensor_use use, int errnum,
                        const char *sentence)
{
    memset(&err, 0, sizeof(err));
    errno = 0;
    ck_assert_ptr_null(open_as(name, use));
    ck_assert_msg(errno == errnum, "%s: %s", strerror(errno), err.text);
    ck_assert_msg(strstr(err.text, sentence), "%s", err.text);
    ck_assert_ptr_null(
        joule_sensor_open(name, tree.fd, &config, "n1", use, NULL));
    ck_assert_int_eq(errno, errnum);
    ck_assert_uint_eq(tree_open_fds(), fds_before);
}

/* The names of the domains, "*" behind those of the total. */
static void must_have(const struct joule_sensor *sensor, const char *expected)
{
    char text[1024] = "";

    for (size_t i = 0; i < sensor->domain_count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%s",
                 i ? " " : "", sensor->domains[i].name,
                 sensor->domains[i].in_total ? "*" : "");
    ck_assert_str_eq(text, expected);
}

static void must_remark(struct joule_sensor *sensor, enum joule_event event,
                        const char *sentence)
{
    enum joule_event got;
    struct joule_error text;

    ck_assert_int_eq(sensor->ops->remark(sensor, &got, &text), 1);
    ck_assert_msg(strstr(text.text, sentence), "%s", text.text);
    ck_assert_int_eq(got, event);
}

START_TEST(test_unknown_name)
{
    static const char *const unknown[] = {
        "",          "rapl",        "jouler",     "JOULE_RAPL",
        "joule_rap", "joule_rapl ", "joule_none", "joule_ipmi,joule_rapl"};

    machine();
    for (int i = 0; i < COUNT(unknown); i++) {
        ck_assert(!joule_sensor_is_there(unknown[i]));
        must_refuse(unknown[i], uses[i % 2], ENOTSUP, "there is no sensor");
        ck_assert_msg(strstr(err.text, unknown[i]), "%s", err.text);
    }
    for (int i = 0; i < COUNT(names); i++)
        ck_assert(joule_sensor_is_there(names[i]));
}
END_TEST

START_TEST(test_no_counters)
{
    for (int i = 0; i < COUNT(uses); i++)
        must_refuse("joule_rapl", uses[i], EINVAL, "/proc/cpuinfo");
    machine();
    set("JouleRAPLDomains", "psys");
    for (int i = 0; i < COUNT(uses); i++)
        must_refuse("joule_rapl", uses[i], EOPNOTSUPP, "no psys");
}
END_TEST

/* Both read the counters. */
START_TEST(test_rapl)
{
    struct joule_sensor *sensor;

    machine();
    sensor = must_open("joule_rapl", uses[_i], "counters");
    must_have(sensor, "package-0* dram-0*");
    /* DRAM: 65,536 J at 1000 W. */
    ck_assert_int_eq(sensor->wrap_ns, 65536 * (S / 1000));
    joule_sensor_read(sensor, false, readings);
    /* 61 uJ a tick. */
    poke(PKG, 0x100 + 16384);
    joule_sensor_read(sensor, false, readings);
    ck_assert_uint_eq(readings[0].state, JOULE_READING_OK);
    ck_assert_uint_eq(readings[0].uj, J);
    joule_sensor_destroy(sensor);
    set("JouleRAPLDomains", "package");
    sensor = must_open("joule_rapl", uses[_i], "counters");
    must_have(sensor, "package-0* dram-0");
    joule_sensor_destroy(sensor);
}
END_TEST

/* ---- what the node has ---- */

static void blade(void)
{
    tree_write(&tree, "sys/cray/pm_counters/energy",
               "598732067 J 16062400 us\n");
    tree_write(&tree, "sys/cray/pm_counters/cpu_energy",
               "1000 J 16062400 us\n");
    tree_write(&tree, "sys/cray/pm_counters/memory_energy", "500 J\n");
    tree_write(&tree, "sys/cray/pm_counters/accel1_energy", "7 J 0 us\n");
    tree_write(&tree, "sys/cray/pm_counters/freshness", "10\n");
    tree_write(&tree, "sys/cray/pm_counters/startup", "100\n");
}

static void chooses(const char *name, const char *why)
{
    struct joule_error text;
    const char *chosen = joule_sensor_choose(tree.fd, &config, &text);

    ck_assert_str_eq(text.text, why);
    if (name)
        ck_assert_str_eq(chosen, name);
    else
        ck_assert_ptr_null(chosen);
}

#define NO_CRAY                                                                \
    "not cray: cannot open /sys/cray/pm_counters/energy: No such file or "     \
    "directory"
#define NO_HWMON "not hwmon: there is no /sys/class/hwmon"
#define NO_BMC   "there is no /dev/ipmi0, and JouleIPMIHost is not set"
#define CRAY                                                                   \
    "joule_cray: the counters of the blade's controller, of the whole node"
#define RAPL "joule_rapl: the CPUs' counters, no more of the node than these"

static void grace(unsigned socket, const char *label, const char *uw)
{
    static unsigned number;
    char path[96], text[64];

    snprintf(path, sizeof(path),
             "sys/class/hwmon/hwmon%u/device/power1_oem_info", number);
    snprintf(text, sizeof(text), "%s Power Socket %u\n", label, socket);
    tree_write(&tree, path, text);
    snprintf(path, sizeof(path),
             "sys/class/hwmon/hwmon%u/device/power1_average", number++);
    tree_write(&tree, path, uw);
}

START_TEST(choice)
{
    struct joule_sensor *sensor;

    machine();
    chooses("joule_rapl", RAPL "; " NO_CRAY "; not fused: " NO_BMC "; " NO_HWMON
                               "; not ipmi: " NO_BMC);
    tree_write(&tree, "dev/ipmi0", "");
    chooses("joule_fused", "joule_fused: the BMC's power in the shape of the "
                           "CPUs' counters; " NO_CRAY);
    blade();
    chooses("joule_cray", CRAY);
    sensor = must_open("joule", uses[_i], "counters");
    must_have(sensor, "Node* CPU Memory Accel1");
    joule_sensor_destroy(sensor);
    set("JouleSensors", "ipmi,rapl");
    chooses("joule_ipmi",
            "joule_ipmi: the BMC's power; not cray: JouleSensors; "
            "not fused: JouleSensors; not hwmon: JouleSensors");
    set("JouleSensors", "rapl");
    chooses("joule_rapl",
            RAPL "; not cray: JouleSensors; not fused: JouleSensors; not "
                 "hwmon: JouleSensors; not ipmi: JouleSensors");
    grace(0, "Grace", "1");
    set("JouleSensors", "hwmon,rapl");
    chooses("joule_hwmon", "joule_hwmon: the power meters of Grace; not cray: "
                           "JouleSensors; not fused: JouleSensors");
    sensor = must_open("joule", uses[_i], "meter");
    must_have(sensor, "Node* Grace0");
    joule_sensor_destroy(sensor);
    set("JouleSensors", "auto");
    tree_write(&tree, "sys/cray/pm_counters/energy", "many J\n");
    chooses("joule_fused",
            "joule_fused: the BMC's power in the shape of the CPUs' counters; "
            "not cray: /sys/cray/pm_counters/energy: it is no energy");
    tree_remove(&tree, "dev/ipmi0");
    tree_remove(&tree, "proc/cpuinfo");
    set("JouleSensors", "cray,rapl");
    must_refuse("joule", uses[_i], ENODEV, "this node has nothing; not cray: ");
}
END_TEST

START_TEST(cray)
{
    struct joule_sensor *sensor;

    blade();
    sensor = must_open("joule_cray", uses[_i], "counters");
    ck_assert_int_eq(sensor->wrap_ns, INT64_MAX);
    joule_sensor_read(sensor, 0, readings);
    ck_assert_uint_eq(readings[0].state, JOULE_READING_UNKNOWN);
    /* 500 J at once: ten updates a second, and 5 kW. */
    tree_write(&tree, "sys/cray/pm_counters/energy",
               "598732567 J 16062500 us\n");
    joule_sensor_read(sensor, 0, readings);
    ck_assert_uint_eq(readings[0].state, JOULE_READING_OK);
    ck_assert_uint_eq(readings[0].uj, 500 * J);
    ck_assert_uint_eq(readings[2].uj, 0);
    ck_assert_uint_eq(readings[0].gap_ns, 0);
    /* What is no number is none, and is counted when it is one again. */
    tree_write(&tree, "sys/cray/pm_counters/energy", "");
    joule_sensor_read(sensor, 0, readings);
    ck_assert_uint_eq(readings[0].uj, 500 * J);
    ck_assert_uint_eq(readings[0].errors, 1);
    tree_write(&tree, "sys/cray/pm_counters/energy",
               "598732569 J 16062600 us\n");
    joule_sensor_read(sensor, 0, readings);
    ck_assert_uint_eq(readings[0].uj, 502 * J);
    /* The controller restarts. */
    tree_write(&tree, "sys/cray/pm_counters/energy", "3 J 16062700 us\n");
    tree_write(&tree, "sys/cray/pm_counters/startup", "200\n");
    joule_sensor_read(sensor, 0, readings);
    ck_assert_uint_eq(readings[0].uj, 502 * J);
    ck_assert_int_gt(readings[0].gap_ns, 0);
    must_remark(sensor, JOULE_EVENT_INFO,
                "the blade's controller has restarted");
    tree_write(&tree, "sys/cray/pm_counters/energy", "5 J 16062800 us\n");
    joule_sensor_read(sensor, 0, readings);
    ck_assert_uint_eq(readings[0].uj, 504 * J);
    joule_sensor_destroy(sensor);
}
END_TEST

/* One reading of each domain: mW, or -1 where it is none. */
static void has_power(const char *names_expected, const int64_t *mw)
{
    struct joule_power power[JOULE_DOMAINS_MAX];
    struct joule_meter *meter = joule_hwmon_create(tree.fd, &err);
    char text[256] = "";

    ck_assert_msg(meter != NULL, "%s", err.text);
    ck_assert_int_eq(meter->ops->read(meter, power, &err), 0);
    for (size_t i = 0; i < meter->domain_count; i++) {
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ",
                 meter->domains[i].name);
        ck_assert_int_eq(power[i].status == JOULE_POWER_OK, mw[i] >= 0);
        if (mw[i] >= 0)
            ck_assert_int_eq(llround(power[i].watts * 1000), mw[i]);
    }
    ck_assert_str_eq(text, names_expected);
    meter->ops->interrupt(meter);
    ck_assert_int_eq(meter->ops->read(meter, power, &err), -1);
    ck_assert_int_eq(errno, ECANCELED);
    meter->ops->destroy(meter);
}

/* The sum of the modules, and not their processors beside them; of sockets where not
 * each has a module. */
START_TEST(hwmon)
{
    grace(1, "Grace", "200000000\n");
    grace(0, "CPU", "90000000\n");
    grace(0, "Grace", "100000000\n");
    grace(0, "Fan", "5\n");
    tree_write(&tree, "sys/class/hwmon/hwmon99/name", "coretemp\n");
    has_power("Node Grace0 Grace1 CPU0 ",
              (int64_t[]){300000, 100000, 200000, 90000});
    grace(0, "Module", "500000000\n");
    has_power("Node Module0 Grace0 Grace1 CPU0 ",
              (int64_t[]){300000, 500000, 100000, 200000, 90000});
    grace(1, "Module", "600000000\n");
    has_power("Node Module0 Module1 Grace0 Grace1 CPU0 ",
              (int64_t[]){1100000, 500000, 600000, 100000, 200000, 90000});
    grace(1, "Module", "600000000\n");
    must_refuse("joule_hwmon", JOULE_SENSOR_MEASURE, EINVAL, "twice");
}
END_TEST

/* What is no power makes no sum. */
static const char *const no_powers[] = {
    "4294967295000\n",
    "",
    "-1\n",
    "0\n",
    "1.5\n",
    "0x1\n",
    "1 2\n",
    "99999999999999999999\n",
    "200000000000\n",
    "1111111111111111111111111111111111111111111111111111111111111111111111\n",
};

START_TEST(hwmon_nonsense)
{
    grace(0, "Module", "500000000\n");
    grace(1, "Module", no_powers[_i]);
    has_power("Node Module0 Module1 ", (int64_t[]){-1, 500000, -1});
}
END_TEST

START_TEST(no_hwmon)
{
    must_refuse("joule_hwmon", JOULE_SENSOR_MEASURE, ENODEV, "there is no");
    grace(64, "Module", "1\n");
    grace(0, "CPU", "1\n");
    must_refuse("joule_hwmon", JOULE_SENSOR_MEASURE, ENODEV,
                "has no power of a Grace module");
    tree_write(&tree, "sys/class/hwmon/hwmon98/power1_oem_info",
               "Module Power Socket 0\n");
    must_refuse("joule_hwmon", JOULE_SENSOR_MEASURE, ENOENT,
                "cannot open the power of");
}
END_TEST

static const char *const no_energies[] = {
    "",
    "5",
    "J",
    "-5 J 1 us\n",
    "5 W 1 us\n",
    "5  J\n",
    "5 J 1 s\n",
    "5 J 1\n",
    "5 J us\n",
    "0x5 J 1 us\n",
    "5 J 1 us 2\n",
    "5 J 1 us\n\n",
    "99999999999999999999 J 1 us\n",
    "5 J -1 us\n",
    "5 J "
    "11111111111111111111111111111111111111111111111111111111111111111111111"
    "111111111111111111111 us\n",
};

START_TEST(cray_nonsense)
{
    blade();
    tree_write(&tree, "sys/cray/pm_counters/cpu_energy", no_energies[_i]);
    must_refuse("joule_cray", JOULE_SENSOR_MEASURE, EINVAL,
                "/sys/cray/pm_counters/cpu_energy: it is no energy");
    tree_bytes(&tree, "sys/cray/pm_counters/cpu_energy", "5 J\0\n", 5);
    must_refuse("joule_cray", JOULE_SENSOR_MEASURE, EINVAL, "it is no energy");
}
END_TEST

static const struct {
    const char *key, *value;
    int errnum;
    const char *sentence;
} refused[] = {
    {"EnergyIPMIPowerSensors", "Nod=1", EINVAL,
     "EnergyIPMIPowerSensors: there is no label \"Node\""},
    {"JouleIPMIReader", "/none", ENOENT, "JouleIPMIReader: "},
    {"JouleIPMIReader", "/group", EPERM, "may be written by others"},
    {"JouleIPMIReader", "/other", EPERM, "may be written by others"},
    {"JouleIPMIReader", "/open/reader", EPERM, "may be written by others"},
    {"JouleIPMIReader", "/link", EPERM, "JouleIPMIReader: "},
    {"JouleIPMICredentialsFile", "/none", ENOENT, "JouleIPMICredentialsFile: "},
};

/* What slurmd does not run, and not a moment later.  [_i] / 2: the case. */
START_TEST(test_no_bmc)
{
    const char *name = _i % 2 ? "joule_ipmi" : "joule_fused";

    tree_write(&tree, "reader", "");
    tree_write(&tree, "group", "");
    tree_write(&tree, "other", "");
    tree_write(&tree, "open/reader", "");
    ck_assert_int_eq(fchmodat(tree.fd, "reader", 0755, 0), 0);
    ck_assert_int_eq(fchmodat(tree.fd, "group", 0775, 0), 0);
    ck_assert_int_eq(fchmodat(tree.fd, "other", 0757, 0), 0);
    ck_assert_int_eq(fchmodat(tree.fd, "open/reader", 0755, 0), 0);
    ck_assert_int_eq(fchmodat(tree.fd, "open", 0777, 0), 0);
    ck_assert_int_eq(symlinkat("reader", tree.fd, "link"), 0);
    machine();
    set("JouleIPMIReader", "/reader");
    set("JouleIPMIHost", "bmc-%n");
    set(refused[_i / 2].key, refused[_i / 2].value);
    must_refuse(name, JOULE_SENSOR_MEASURE, refused[_i / 2].errnum,
                refused[_i / 2].sentence);
}
END_TEST

/* Nothing is started, and no BMC asked, before the first read; one that is not
 * there is no failure. */
START_TEST(test_measures_a_bmc)
{
    struct joule_sensor *sensor;

    tree_write(&tree, "reader", "");
    ck_assert_int_eq(fchmodat(tree.fd, "reader", 0755, 0), 0);
    tree_write(&tree, "bmc", "username a\npassword b\n");
    ck_assert_int_eq(fchmodat(tree.fd, "bmc", 0600, 0), 0);
    machine();
    set("JouleIPMIReader", "/reader");
    set("JouleIPMIHost", "127.0.0.1");
    set("JouleIPMICredentialsFile", "/bmc");
    set("EnergyIPMIPowerSensors", "GPU=1;Node=2");
    sensor = must_open("joule_ipmi", JOULE_SENSOR_MEASURE, "meter");
    must_have(sensor, "Node* GPU");
    ck_assert_int_eq(sensor->wrap_ns, INT64_MAX);
    joule_sensor_destroy(sensor);
    sensor = must_open("joule_fused", JOULE_SENSOR_MEASURE, "fused");
    must_have(sensor, "Node* BMC GPU package-0 dram-0");
    ck_assert_int_eq(sensor->wrap_ns, 65536 * (S / 1000));
    joule_sensor_destroy(sensor);
}
END_TEST

/* As slurmstepd has it: what slurmd needs to ask the BMC is not there. */
static void without_a_bmc(void)
{
    set("JouleIPMIReader", "/none");
    set("JouleIPMIHost", "nowhere.invalid");
    set("JouleIPMICredentialsFile", "/none");
}

START_TEST(test_follows_power)
{
    static struct joule_sensor_state state;
    struct joule_sensor *sensor;
    unsigned fds;
    int64_t now_ns = joule_clock_mono_ns(&joule_clock_system);

    without_a_bmc();
    set("EnergyIPMIPowerSensors", "GPU=1;Node=DCMI");
    set("EnergyIPMICalcAdjustment", _i ? "yes" : "no");
    sensor = must_open("joule_ipmi", JOULE_SENSOR_FOLLOW, "meter");
    must_have(sensor, "Node* GPU");
    fds = tree_open_fds();
    for (int i = 0; i < 3; i++)
        joule_sensor_read(sensor, false, readings);
    ck_assert_uint_eq(readings[0].state, JOULE_READING_UNKNOWN);
    ck_assert_uint_eq(tree_open_fds(), fds);
    /* slurmd has measured 100 W for 3 s, until 2 s ago. */
    state = sensor->state;
    joule_integrator_update(&state.integrator[0], 100, 7, now_ns - 5 * S, 0,
                            3 * S);
    joule_integrator_update(&state.integrator[0], 100, 7, now_ns - 2 * S, 0,
                            3 * S);
    ck_assert(joule_sensor_resume(sensor, &state));
    now_ns = joule_sensor_read(sensor, false, readings);
    ck_assert_uint_eq(readings[0].state, JOULE_READING_OK);
    if (_i) {
        ck_assert_uint_ge(readings[0].uj, 500 * J);
        ck_assert_int_eq(readings[0].mono_ns, now_ns);
    } else {
        ck_assert_uint_eq(readings[0].uj, 300 * J);
    }
    joule_sensor_destroy(sensor);
}
END_TEST

/* slurmstepd knows the same domains, and goes on with slurmd's state. */
START_TEST(test_follows_both)
{
    struct joule_sensor *slurmd, *step;

    tree_write(&tree, "reader", "");
    ck_assert_int_eq(fchmodat(tree.fd, "reader", 0755, 0), 0);
    set("JouleIPMIReader", "/reader");
    set("EnergyIPMIPowerSensors", "GPU=1;Node=2");
    machine();
    slurmd = must_open(names[_i], JOULE_SENSOR_MEASURE,
                       (const char *[]){"counters", "meter", "fused"}[_i]);
    without_a_bmc();
    step = must_open(names[_i], JOULE_SENSOR_FOLLOW, slurmd->ops->type);
    ck_assert_uint_eq(step->domain_count, slurmd->domain_count);
    ck_assert_uint_eq(joule_domains_key(step->domains, step->domain_count),
                      joule_domains_key(slurmd->domains, slurmd->domain_count));
    ck_assert_int_eq(step->wrap_ns, slurmd->wrap_ns);
    ck_assert(joule_sensor_resume(step, &slurmd->state));
    joule_sensor_destroy(step);
    joule_sensor_destroy(slurmd);
}
END_TEST

/* The BMC alone, which an admin is told. */
START_TEST(test_fused_without_counters)
{
    struct joule_sensor *sensor;

    without_a_bmc();
    sensor = must_open("joule_fused", JOULE_SENSOR_FOLLOW, "fused");
    must_have(sensor, "Node* BMC");
    must_remark(sensor, JOULE_EVENT_PROBLEM,
                "the energy of the node is that of its BMC alone: ");
    joule_sensor_destroy(sensor);
}
END_TEST

START_TEST(test_follows_no_such_label)
{
    machine();
    set("EnergyIPMIPowerSensors", "Nod=1");
    must_refuse("joule_ipmi", JOULE_SENSOR_FOLLOW, EINVAL,
                "EnergyIPMIPowerSensors: there is no label \"Node\"");
    must_refuse("joule_fused", JOULE_SENSOR_FOLLOW, EINVAL,
                "EnergyIPMIPowerSensors: there is no label \"Node\"");
    /* A name that a counter has. */
    set("EnergyIPMIPowerSensors", "Node=1;package_0=2");
    must_refuse("joule_fused", JOULE_SENSOR_FOLLOW, EINVAL,
                "has the name of another one");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sensor table");
    TCase *bad = tcase_create("refused");
    TCase *good = tcase_create("opened");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(bad, setup, teardown);
    tcase_add_test(bad, test_unknown_name);
    tcase_add_test(bad, test_no_counters);
    tcase_add_loop_test(bad, test_no_bmc, 0, 2 * COUNT(refused));
    tcase_add_test(bad, test_follows_no_such_label);
    suite_add_tcase(suite, bad);

    tcase_add_checked_fixture(good, setup, teardown);
    tcase_add_loop_test(good, test_rapl, 0, COUNT(uses));
    tcase_add_test(good, test_measures_a_bmc);
    tcase_add_loop_test(good, test_follows_power, 0, 2);
    tcase_add_loop_test(good, test_follows_both, 0, COUNT(names));
    tcase_add_test(good, test_fused_without_counters);
    tcase_add_loop_test(good, choice, 0, COUNT(uses));
    tcase_add_loop_test(good, cray, 0, COUNT(uses));
    tcase_add_test(good, hwmon);
    tcase_add_loop_test(good, hwmon_nonsense, 0, COUNT(no_powers));
    tcase_add_test(good, no_hwmon);
    tcase_add_loop_test(good, cray_nonsense, 0, COUNT(no_energies));
    suite_add_tcase(suite, good);

    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What reading a BMC costs: the reader process as slurmd's sampler uses it,
 * beside libipmimonitoring as Slurm's acct_gather_energy/ipmi uses it (one
 * context, a session for each reading of a record id).
 *
 *   bench_ipmi READER
 *
 * The BMC is ipmi_sim on loopback.  Both read the same record in turns.
 */
#include <dirent.h>
#include <errno.h>
#include <ipmi_monitoring.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/sensors/ipmi_helper.h"
#include "tests/bench/bench.h"
#include "tests/unit/asker.h"
#include "tests/unit/bmc.h"
#include "tests/unit/relay.h"

#define RECORD 2
#define WATTS  300

static const char *program;
static struct bmc bmc;

/* ---- ours ---- */

static struct joule_meter *ours;

static void open_ours(uint16_t port)
{
    static struct joule_ipmi_config config;
    const struct joule_ipmi_helper_options opt = {
        .clock = &joule_clock_system, .program = program, .config = &config};
    struct joule_error err;

    asker_config(&config, port);
    asker_sensor(&config, JOULE_IPMI_SENSOR_RECORD)->record_id = RECORD;
    ours = joule_ipmi_helper_create(&opt, &err);
    if (!ours)
        bench_die("joule_ipmi_helper_create", err.text);
}

static void read_ours(void)
{
    struct joule_power power[JOULE_IPMI_LABELS_MAX];
    struct joule_error err;

    if (ours->ops->read(ours, power, &err) < 0)
        bench_die("read", err.text);
    if (power[0].status != JOULE_POWER_OK || power[0].watts != WATTS)
        bench_die("read", "another value");
}

/* The process that the meter has started. */
static pid_t reader_pid(void)
{
    DIR *dir = opendir("/proc");
    pid_t found = 0;

    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[300], comm[32] = "";
        int pid, ppid;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
        file = fopen(path, "re");
        if (!file)
            continue;
        if (fscanf(file, "%d (%31[^)]) %*c %d", &pid, comm, &ppid) == 3 &&
            ppid == getpid() && strncmp(comm, "joule-ipmi-read", 15) == 0)
            found = pid;
        fclose(file);
    }
    if (dir)
        closedir(dir);
    if (found == 0)
        bench_die("joule-ipmi-reader", "does not run");
    return found;
}

static double cpu_ns(pid_t pid)
{
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) != 0)
        bench_die("CPU clock", strerror(errno));
    return bench_now_ns(clock);
}

/* ---- the peer ---- */

static ipmi_monitoring_ctx_t peer;
static struct ipmi_monitoring_ipmi_config peer_config;
static char peer_host[64];

static void open_peer(uint16_t port)
{
    static char user[] = BMC_USER, password[] = BMC_PASSWORD;
    int errnum;

    snprintf(peer_host, sizeof(peer_host), "127.0.0.1:%u", port);
    peer_config.driver_type = -1;
    peer_config.protocol_version = IPMI_MONITORING_PROTOCOL_VERSION_2_0;
    peer_config.username = user;
    peer_config.password = password;
    peer_config.privilege_level = IPMI_MONITORING_PRIVILEGE_LEVEL_USER;
    peer_config.cipher_suite_id = 3;
    peer_config.workaround_flags =
        IPMI_MONITORING_WORKAROUND_FLAGS_PROTOCOL_VERSION_2_0_OPEN_SESSION_PRIVILEGE;
    if (ipmi_monitoring_init(0, &errnum) < 0)
        bench_die("ipmi_monitoring_init", "failed");
    peer = ipmi_monitoring_ctx_create();
    if (!peer || ipmi_monitoring_ctx_sdr_cache_directory(peer, bmc.dir) < 0)
        bench_die("ipmi_monitoring_ctx_create", "failed");
}

static void read_peer(void)
{
    unsigned record = RECORD;
    const double *watts;

    if (ipmi_monitoring_sensor_readings_by_record_id(
            peer, peer_host, &peer_config, 0, &record, 1, NULL, NULL) != 1)
        bench_die("libipmimonitoring", ipmi_monitoring_ctx_errormsg(peer));
    watts = ipmi_monitoring_sensor_read_sensor_reading(peer);
    if (!watts || *watts != WATTS)
        bench_die("libipmimonitoring", "another value");
}

/* ---- measurements ---- */

static void latency(struct bench_result *r, uint16_t port, int rounds)
{
    const struct bench_race race = {read_ours, read_peer, 1, rounds};

    open_ours(port);
    open_peer(port);
    bench_run_race(&race, &r->ours, &r->peer);
    joule_meter_destroy(ours);
    r->ours /= 1e6;
    r->peer /= 1e6;
}

static void measure_latency(struct bench_result *r)
{
    latency(r, bmc.port, 1000);
}

static void measure_latency_20ms(struct bench_result *r)
{
    struct relay *relay = relay_create(bmc.port);

    relay->delay_us = 20000;
    latency(r, relay->port, 50);
    relay_destroy(relay);
}

/* All that it takes: the reader and the side that asks. */
static void measure_cpu(struct bench_result *r)
{
    const int calls = 200, rounds = 10;
    double begin;
    pid_t pid;

    open_ours(bmc.port);
    open_peer(bmc.port);
    read_ours();
    read_peer();
    pid = reader_pid();
    r->ours = r->peer = 0.0;
    for (int i = 0; i < rounds; i++) {
        begin = bench_now_ns(CLOCK_PROCESS_CPUTIME_ID) + cpu_ns(pid);
        for (int n = 0; n < calls; n++)
            read_ours();
        r->ours += bench_now_ns(CLOCK_PROCESS_CPUTIME_ID) + cpu_ns(pid) - begin;
        begin = bench_now_ns(CLOCK_PROCESS_CPUTIME_ID);
        for (int n = 0; n < calls; n++)
            read_peer();
        r->peer += bench_now_ns(CLOCK_PROCESS_CPUTIME_ID) - begin;
    }
    r->ours /= calls * rounds * 1e6;
    r->peer /= calls * rounds * 1e6;
    joule_meter_destroy(ours);
}

static double messages(const struct relay *relay, void (*f)(void), int calls)
{
    unsigned before = relay->requests;

    for (int i = 0; i < calls; i++)
        f();
    return (double)(relay->requests - before) / calls;
}

static void measure_messages(struct bench_result *r)
{
    struct relay *relay = relay_create(bmc.port);

    open_ours(relay->port);
    open_peer(relay->port);
    read_ours();
    read_peer();
    r->ours = messages(relay, read_ours, 100);
    r->peer = messages(relay, read_peer, 100);
    joule_meter_destroy(ours);
    relay_destroy(relay);
}

static double rss_mb(pid_t pid)
{
    char path[64], line[128];
    double mb = (double)NAN;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            mb = strtod(line + 6, NULL) / 1024;
    if (file)
        fclose(file);
    return mb;
}

static void measure_rss(struct bench_result *r)
{
    open_ours(bmc.port);
    for (int i = 0; i < 2000; i++)
        read_ours();
    r->ours = rss_mb(reader_pid());
    joule_meter_destroy(ours);
}

/* [of_reader]: of the process; else of the thread that asks. */
static void at_1hz(struct bench_result *r, bool of_reader)
{
    const int seconds = 20;
    double begin, end;
    pid_t pid;

    open_ours(bmc.port);
    read_ours();
    pid = reader_pid();
    begin = of_reader ? cpu_ns(pid) : bench_now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < seconds; i++) {
        bench_sleep_ms(1000);
        read_ours();
    }
    end = of_reader ? cpu_ns(pid) : bench_now_ns(CLOCK_THREAD_CPUTIME_ID);
    r->ours = (end - begin) / 1e9 / seconds * 100;
    joule_meter_destroy(ours);
}

static void measure_reader_1hz(struct bench_result *r)
{
    at_1hz(r, true);
}

static void measure_asker_1hz(struct bench_result *r)
{
    at_1hz(r, false);
}

static bool run(void)
{
    bool pass = true;

    bench_print_head();
    pass &= bench_print_row("one reading", "ms", bench_measure(measure_latency),
                            BENCH_RATIO, 0.4);
    pass &=
        bench_print_row("one reading; 20 ms for each answer of the BMC", "ms",
                        bench_measure(measure_latency_20ms), BENCH_RATIO, 0.15);
    pass &= bench_print_row("CPU of a reading (reader and asking side)", "ms",
                            bench_measure(measure_cpu), BENCH_RATIO, 0.5);
    pass &= bench_print_row("messages to the BMC", "per reading",
                            bench_measure(measure_messages), BENCH_AT_MOST, 1);
    pass &= bench_print_row("memory of the reader", "MB",
                            bench_measure(measure_rss), BENCH_BELOW, 8);
    pass &=
        bench_print_row("reader at 1 Hz", "% of a core",
                        bench_measure(measure_reader_1hz), BENCH_BELOW, 0.1);
    pass &=
        bench_print_row("asking side at 1 Hz", "% of a core",
                        bench_measure(measure_asker_1hz), BENCH_BELOW, 0.05);
    return pass;
}

int main(int argc, char **argv)
{
    static const struct bmc_sensor sensors[] = {
        {.name = "Node", .number = 1, .m = 2, .unit = BMC_WATTS, .raw = -1},
        {.name = "CPU", .number = 2, .m = 1, .unit = BMC_WATTS, .raw = 60},
    };
    bool pass;

    if (argc != 2 || argv[1][0] != '/') {
        fprintf(stderr, "usage: bench_ipmi READER\n");
        return 2;
    }
    program = argv[1];
    if (!bmc_installed())
        bench_die("ipmi_sim", "is not installed (Debian: openipmi)");
    bmc_create(&bmc);
    bmc_start(&bmc, sensors, 2);
    bmc_watts(&bmc, 1, WATTS);
    pass = run();
    bmc_destroy(&bmc);
    return pass ? 0 : 1;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the lag of a BMC does to a job's energy: jobs of 2, 15 and 44 minutes
 * are replayed within a moment, through the code that measures real ones
 * (integrator, tally, board, account), with a clock of its own.
 *
 *   bench_replay [TABLE.csv]
 *
 * TABLE.csv (default: the one in tests/fixtures) holds what Georgiou et al.
 * measured; its jobs at the highest frequency give the power of a node.  A job
 * is a step of power, from idle to that and back; the BMC follows it with a
 * first-order lag that has settled to 2 % after 0, 10, 30 or 70 s.
 *
 * What the lag must cost, exactly: it begins at idle power and misses
 *     (P - P_idle) x tau x (1 - exp(-T / tau))
 * of a job of T.  (What it shows after the job belongs to nobody.)  No code
 * that reads the BMC alone can do better; this shows that ours does no worse.
 * `ours` is the error in % of the job's energy, `peer` the one that the table
 * has for Slurm's plugin and a BMC of 70 s.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/board/account.h"
#include "common/board/board.h"
#include "common/sampler/reader.h"
#include "tests/bench/bench.h"
#include "tests/sim/bmcsim/value.h"

#define TABLE     "tests/fixtures/georgiou2014-precision.csv"
#define NODES     16
#define IDLE_W    100.0 /* of a node without a job, about what the paper shows */
#define PERIOD_S  1
#define TICK_NS   (100 * JOULE_NS_PER_MS) /* of the simulated BMC */
#define PHASE_NS  (370 * JOULE_NS_PER_MS) /* of the samples in the job */
#define SETTLED_S 300                     /* idle time before the job */
#define POLL_S    30                      /* as --acctg-freq's default */

struct job {
    const char *name;
    int seconds;
    double node_w;    /* from the table */
    double table_pct; /* error in the table */
};

static struct job jobs[] = {
    {"stream", 120, 0, 0},
    {"imb", 15 * 60, 0, 0},
    {"linpack", 44 * 60, 0, 0},
};

static const int settle_s[] = {0, 10, 30, 70};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- the table ---- */

static void load_table(const char *path)
{
    char line[256], name[32];
    double ghz, wattmeter_j, slurm_j, error_pct;
    FILE *table = fopen(path, "r");
    size_t i, found = 0;

    if (!table)
        bench_die(path, "cannot be opened");
    while (fgets(line, sizeof(line), table)) {
        if (sscanf(line, "%31[a-z],%lf,%lf,%lf,%lf", name, &ghz, &wattmeter_j,
                   &slurm_j, &error_pct) != 5 ||
            ghz < 2.3005)
            continue;
        for (i = 0; i < COUNT(jobs); i++) {
            if (strcmp(jobs[i].name, name) != 0)
                continue;
            jobs[i].node_w = wattmeter_j / NODES / jobs[i].seconds;
            jobs[i].table_pct = error_pct;
            found++;
        }
    }
    fclose(table);
    if (found != COUNT(jobs))
        bench_die(path, "does not have the three jobs at 2.301 GHz");
}

/* ---- the clock and the place ---- */

static int64_t now_ns;

static int64_t replay_now(void *arg)
{
    (void)arg;
    return now_ns;
}

static const struct joule_clock replay_clock = {replay_now, replay_now, NULL};

/* A root directory with what a board needs; the caller's cwd after this. */
static int make_root(char dir[static 32])
{
    static const char boot_id[] = "00000000-0000-0000-0000-000000000000\n";
    int fd;

    strcpy(dir, "/tmp/joule-replay-XXXXXX");
    if (!mkdtemp(dir) || chdir(dir) < 0 || mkdir("run", 0755) < 0 ||
        mkdir("proc", 0755) < 0 || mkdir("proc/sys", 0755) < 0 ||
        mkdir("proc/sys/kernel", 0755) < 0 ||
        mkdir("proc/sys/kernel/random", 0755) < 0)
        bench_die(dir, "cannot be made");
    fd = open("proc/sys/kernel/random/boot_id", O_WRONLY | O_CREAT, 0644);
    if (fd < 0 || write(fd, boot_id, sizeof(boot_id) - 1) < 0)
        bench_die(dir, "cannot be written to");
    close(fd);
    return open(".", O_PATH | O_DIRECTORY);
}

static void remove_root(const char *dir)
{
    static const char *const paths[] = {
        "run/slurm-joule/replay/board",
        "run/slurm-joule/replay",
        "run/slurm-joule",
        "run",
        "proc/sys/kernel/random/boot_id",
        "proc/sys/kernel/random",
        "proc/sys/kernel",
        "proc/sys",
        "proc",
    };

    for (size_t i = 0; i < COUNT(paths); i++)
        remove(paths[i]);
    if (chdir("/") < 0 || rmdir(dir) < 0)
        bench_die(dir, "cannot be removed");
}

/* ---- one job ---- */

struct replay {
    const struct job *job;
    struct bmc_value bmc;
    struct bmc_sample truth;  /* of now */
    int64_t start_ns, end_ns; /* of the job */
    struct joule_source *source;
    struct joule_board *board;
    struct joule_snapshot snapshot;
};

/* Let time pass; the BMC sees the power all the while. */
static double advance(struct replay *r, int64_t to_ns)
{
    double shown_w = 0;

    while (now_ns < to_ns) {
        int64_t next_ns = now_ns + TICK_NS < to_ns ? now_ns + TICK_NS : to_ns;

        /* The job begins and ends between two ticks, never within one. */
        if (now_ns < r->start_ns && next_ns > r->start_ns)
            next_ns = r->start_ns;
        if (now_ns < r->end_ns && next_ns > r->end_ns)
            next_ns = r->end_ns;
        r->truth.joules +=
            r->truth.watts * (double)(next_ns - now_ns) / JOULE_NS_PER_S;
        now_ns = next_ns;
        r->truth.mono_ns = now_ns;
        r->truth.watts = now_ns >= r->start_ns && now_ns < r->end_ns
                             ? r->job->node_w
                             : IDLE_W;
        shown_w = bmc_value_add(&r->bmc, &r->truth);
    }
    return shown_w;
}

/* What the sampler's thread does with one reading. */
static void take_sample(struct replay *r, double shown_w)
{
    struct joule_tally *t = &r->snapshot.tally;
    struct joule_power power = {
        .watts = round(shown_w), /* DCMI has whole watts */
        .mono_ns = now_ns,
        .status = JOULE_POWER_OK,
    };

    joule_tally_integrate(t, r->source->domains, &power,
                          joule_board_last_edge(r->board, now_ns),
                          joule_power_gap_ns(r->snapshot.period_ns));
    r->snapshot.node_mw = (uint64_t)(power.watts * 1000);
    joule_board_publish(r->board, &r->snapshot);
}

/* The job's energy by the account, in J. */
static double replay_job(struct replay *r)
{
    struct joule_account *account;
    struct joule_account_reading reading = {0};
    int64_t sample_ns = PHASE_NS, poll_ns = r->start_ns;
    double shown_w = IDLE_W;

    account = joule_account_create(&replay_clock, r->source, r->board);
    if (!account)
        bench_die("joule_account_create", "out of memory");
    while (now_ns < r->end_ns) {
        int64_t next_ns = sample_ns < poll_ns ? sample_ns : poll_ns;

        if (next_ns > r->end_ns)
            next_ns = r->end_ns;
        shown_w = advance(r, next_ns);
        if (now_ns == sample_ns) {
            take_sample(r, shown_w);
            sample_ns += PERIOD_S * JOULE_NS_PER_S;
        }
        if (now_ns == poll_ns || now_ns == r->end_ns) {
            if (now_ns == r->start_ns)
                joule_account_begin(account);
            if (joule_account_update(account, &reading) < 0)
                bench_die("joule_account_update", "energy is unknown");
            poll_ns += POLL_S * JOULE_NS_PER_S;
        }
    }
    joule_account_destroy(account);
    return (double)reading.used_uj / 1e6;
}

static double error_pct(const struct job *job, int settle)
{
    struct bmc_value_options bmc = {.settle_ns = settle * JOULE_NS_PER_S};
    static struct joule_ipmi_config config = {
        .label_count = 1, .label = {"Node"}, .sensor_count = 1};
    struct replay r = {.job = job};
    struct joule_error err;
    char dir[32];
    int root_fd = make_root(dir);
    double joules, true_j = job->node_w * job->seconds;

    now_ns = 0;
    r.start_ns = SETTLED_S * JOULE_NS_PER_S;
    r.end_ns = r.start_ns + job->seconds * JOULE_NS_PER_S;
    r.truth.watts = IDLE_W;
    bmc_value_init(&r.bmc, &bmc);
    r.source = joule_reader_labels_create(&config);
    r.board = joule_board_create(root_fd, "replay", &err);
    if (!r.source || !r.board)
        bench_die("replay", err.text);
    r.snapshot.period_ns = PERIOD_S * JOULE_NS_PER_S;
    joule_tally_start(&r.snapshot.tally, r.source->domains,
                      r.source->domain_count, 0);
    joules = replay_job(&r);
    joule_board_destroy(r.board);
    joule_source_destroy(r.source);
    close(root_fd);
    remove_root(dir);
    return (true_j - joules) / true_j * 100;
}

/* What the lag alone costs. */
static double lag_pct(const struct job *job, int settle)
{
    double tau_s = settle / log(50);

    if (settle == 0)
        return 0;
    return (job->node_w - IDLE_W) * tau_s * (1 - exp(-job->seconds / tau_s)) /
           (job->node_w * job->seconds) * 100;
}

int main(int argc, char **argv)
{
    const char *srcdir = getenv("srcdir"); /* of make check */
    char path[4096];
    bool pass = true;

    if (argc > 2) {
        fprintf(stderr, "usage: bench_replay [TABLE.csv]\n");
        return 2;
    }
    snprintf(path, sizeof(path), "%s/%s", srcdir ? srcdir : ".", TABLE);
    load_table(argc > 1 ? argv[1] : path);
    bench_print_head();
    for (size_t i = 0; i < COUNT(jobs); i++) {
        for (size_t k = 0; k < COUNT(settle_s); k++) {
            const struct job *job = &jobs[i];
            double ours = error_pct(job, settle_s[k]);
            double lag = lag_pct(job, settle_s[k]);
            /* Whole watts, and a first sample that is late by a part of a
             * period. */
            double allowed = (0.5 + (job->node_w - IDLE_W) / job->seconds) /
                             job->node_w * 100;
            bool good = fabs(ours - lag) <= allowed;

            printf("%s of %d min with a BMC that settles in %d s,%% error,"
                   "%.3f,",
                   job->name, job->seconds / 60, settle_s[k], ours);
            if (settle_s[k] == 70)
                printf("%.2f,%.3f,", job->table_pct, ours / job->table_pct);
            else
                printf(",,");
            printf("%.3f+-%.3f,%s\n", lag, allowed, good ? "pass" : "miss");
            pass = pass && good;
        }
    }
    return pass ? 0 : 1;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How right the energy of a job is by each driver, beside tables 2 to 4 of
 * Georgiou et al. 2014: three classes of jobs at 13 frequencies, replayed
 * within a moment (replay.h).
 *
 *   bench_precision TABLE.csv OUT.csv
 *   bench_precision TABLE.csv --job CLASS GHZ SETTLE_S [SECONDS]
 *
 * The power of a job is the table's (georgiou.h), of one of its 16 nodes; on
 * top of it come what fans, losses and the power supply do (nodeload.h), and a
 * wave of the job's own.  RAPL sees the sockets, which are a part of the node
 * that changes with its load.  The node runs some hours of jobs as they come,
 * then one job after the other of the table, each after a time of rest, with a
 * BMC without lag and with one that takes 70 s to settle to 2 %.
 *
 * Rows: the worst or mean error over the frequencies, `peer` the paper's.
 * OUT.csv has all jobs.
 *
 * --job prints what to make of a job of the table where time passes: its
 * seconds (or SECONDS), the watts of the node and of one at rest, what the
 * BMC's lag and its reading may cost in %, and the error in the paper.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/bench/bench.h"
#include "tests/bench/georgiou.h"
#include "tests/bench/replay.h"
#include "tests/unit/nodeload.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define BASE_W       20  /* makes a node at rest one of the paper's */
#define NOISE_W      0.5 /* of the BMC */
#define LEARN_S      (4 * 3600.0)
#define REST_S       300 /* before each job: five times what a BMC takes */
#define OWN_PART_PCT 0.05
#define NO_LAG_PCT   0.1

static const int settle_s[] = {0, 70};

/* Who measures; RAPL against the part that it sees, and against the node. */
enum what { RAPL_OWN, RAPL_NODE, IPMI, FUSED, WHATS };

static const char *const what_names[WHATS] = {
    "joule_rapl_of_part", "joule_rapl_of_node", "joule_ipmi", "joule_fused"};

/* Of a class: a wave of its power, in parts of the sockets' power, which is not
 * in step with the samplers' seconds; and what the fused driver may be off by
 * in the mean. */
static const struct {
    double wave, wave_s;
    double fused_mean_pct;
} traits[GEORGIOU_CLASSES] = {
    {0, 0, 1},
    {0.10, 22.7, 0.3},
    {0.05, 61.3, 0.15},
};

struct outcome {
    double true_j, measured_j;
    double lag_pct; /* what the BMC's lag and its reading cost */
};

typedef struct outcome outcomes[GEORGIOU_CLASSES][GEORGIOU_FREQUENCIES][WHATS];

struct node {
    struct node_load load;
    struct replay *replay;
};

/* ---- a node and its jobs ---- */

static void pass(struct node *n, double seconds)
{
    double end_s = n->load.s + seconds - NODE_LOAD_STEP_S / 2;

    while (n->load.s < end_s) {
        node_load_draw(&n->load);
        replay_power(n->replay, n->load.node_w, n->load.sockets_w);
        replay_run(n->replay, (int64_t)(NODE_LOAD_STEP_S * 1e9));
        n->load.s += NODE_LOAD_STEP_S;
    }
}

static void rest(struct node *n, double seconds)
{
    node_load_rest(&n->load, node_load_sockets(&n->load, GEORGIOU_IDLE_W));
    pass(n, seconds);
    /* The samplers do not know when a job begins. */
    replay_run(n->replay, (int64_t)node_load_uniform(&n->load, 1e9));
}

static void run_anything(struct node *n, double seconds)
{
    double end_s = n->load.s + seconds;

    while (n->load.s < end_s) {
        rest(n, node_load_uniform(&n->load, 60));
        node_load_vary(&n->load);
        pass(n, 10 + node_load_uniform(&n->load, 600));
    }
}

static void run_job(struct node *n, size_t class,
                    const struct georgiou_job *job, int settle,
                    struct outcome ret[WHATS])
{
    double idle_w, node_w;
    struct replay_used used;

    rest(n, REST_S);
    idle_w = n->load.node_w;
    n->load.job_w = node_load_sockets(&n->load, job->node_w);
    n->load.wave_w = n->load.job_w * traits[class].wave;
    n->load.wave_s = traits[class].wave_s;
    replay_step_begin(n->replay);
    pass(n, round(job->seconds / NODE_LOAD_STEP_S) * NODE_LOAD_STEP_S);
    used = replay_step_end(n->replay);
    node_w = used.node_j / used.seconds;
    ret[RAPL_OWN] =
        (struct outcome){used.rapl_j, used.by_driver[REPLAY_RAPL], 0};
    ret[RAPL_NODE] =
        (struct outcome){used.node_j, used.by_driver[REPLAY_RAPL], 0};
    ret[IPMI] = (struct outcome){
        used.node_j, used.by_driver[REPLAY_IPMI],
        georgiou_lag_pct(node_w, idle_w, used.seconds, settle) +
            georgiou_sampling_pct(node_w, idle_w, used.seconds)};
    ret[FUSED] = (struct outcome){used.node_j, used.by_driver[REPLAY_FUSED], 0};
}

static void run_node(const struct georgiou_class *classes, int settle,
                     outcomes ret)
{
    struct bmc_value_options bmc = {
        .settle_ns = settle * JOULE_NS_PER_S, .noise_w = NOISE_W, .seed = 1};
    struct node n;

    node_load_init(&n.load, 1);
    n.load.base_w = BASE_W;
    n.replay = replay_create(&bmc, GEORGIOU_IDLE_W, GEORGIOU_IDLE_W);
    run_anything(&n, LEARN_S);
    for (size_t f = 0; f < GEORGIOU_FREQUENCIES; f++)
        for (size_t c = 0; c < GEORGIOU_CLASSES; c++)
            run_job(&n, c, &classes[c].job[f], settle, ret[c][f]);
    replay_destroy(n.replay);
}

/* ---- what comes of it ---- */

static double error_pct(const struct outcome *o)
{
    return fabs(o->measured_j / o->true_j - 1) * 100;
}

static void write_jobs(FILE *out, const struct georgiou_class *classes,
                       int settle, outcomes all)
{
    for (size_t c = 0; c < GEORGIOU_CLASSES; c++)
        for (size_t f = 0; f < GEORGIOU_FREQUENCIES; f++)
            for (int w = 0; w < WHATS; w++) {
                const struct georgiou_job *job = &classes[c].job[f];
                const struct outcome *o = &all[c][f][w];

                fprintf(out, "%s,%.3f,%s,%d,%.1f,%.3f,%.3f,%.4f,%.2f\n",
                        classes[c].name, job->ghz, what_names[w], settle,
                        job->seconds, o->true_j, o->measured_j, error_pct(o),
                        job->error_pct);
            }
}

/* Over the frequencies of a class. */
struct summary {
    struct bench_result worst, mean;
    double limit;    /* of IPMI, where it is worst */
    bool in_limit;   /* everywhere */
    double seen_pct; /* by RAPL, at least */
};

static struct summary sum_up(const struct georgiou_class *class,
                             struct outcome of[GEORGIOU_FREQUENCIES][WHATS],
                             enum what what)
{
    struct summary s = {.in_limit = true, .seen_pct = 100};

    for (size_t f = 0; f < GEORGIOU_FREQUENCIES; f++) {
        const struct outcome *o = &of[f][what];
        double pct = error_pct(o), paper_pct = class->job[f].error_pct;
        double seen_pct =
            of[f][RAPL_OWN].true_j / of[f][RAPL_NODE].true_j * 100;

        if (pct > s.worst.ours) {
            s.worst.ours = pct;
            s.limit = o->lag_pct;
        }
        s.worst.peer = fmax(s.worst.peer, paper_pct);
        s.mean.ours += pct / GEORGIOU_FREQUENCIES;
        s.mean.peer += paper_pct / GEORGIOU_FREQUENCIES;
        s.in_limit = s.in_limit && pct <= o->lag_pct;
        s.seen_pct = fmin(s.seen_pct, seen_pct);
    }
    return s;
}

static bool print_row(const struct georgiou_class *class, enum what what,
                      const char *bmc, const char *of, struct bench_result r,
                      enum bench_goal goal, double limit)
{
    char name[128];

    snprintf(name, sizeof(name), "%s of %.0f min: %s%s: %s", class->name,
             class->seconds / 60, what_names[what], bmc, of);
    return bench_print_row(name, "% error", r, goal, limit);
}

static bool print_rapl(const struct georgiou_class *class,
                       struct outcome of[GEORGIOU_FREQUENCIES][WHATS])
{
    struct summary own = sum_up(class, of, RAPL_OWN);
    struct summary node = sum_up(class, of, RAPL_NODE);
    bool good = true;

    own.worst.peer = node.worst.peer = (double)NAN; /* it has no RAPL */
    good &= print_row(class, RAPL_OWN, "", "worst", own.worst, BENCH_AT_MOST,
                      OWN_PART_PCT);
    /* What it does not see, and no more. */
    good &= print_row(class, RAPL_NODE, "", "worst", node.worst, BENCH_AT_MOST,
                      100 - node.seen_pct + OWN_PART_PCT);
    return good;
}

static bool print_class(const struct georgiou_class *class, int settle,
                        struct outcome of[GEORGIOU_FREQUENCIES][WHATS],
                        double fused_mean_pct)
{
    struct summary ipmi = sum_up(class, of, IPMI);
    struct summary fused = sum_up(class, of, FUSED);
    char bmc[64];
    bool good = true;

    snprintf(bmc, sizeof(bmc), "; the BMC settles in %d s", settle);
    if (settle == 0)
        good &= print_row(class, IPMI, bmc, "worst", ipmi.worst, BENCH_AT_MOST,
                          NO_LAG_PCT);
    else
        good &= print_row(class, IPMI, bmc, "worst", ipmi.worst, BENCH_AT_MOST,
                          ipmi.in_limit ? ipmi.limit : 0);
    good &= print_row(class, FUSED, bmc, "mean", fused.mean, BENCH_AT_MOST,
                      fused_mean_pct);
    good &= print_row(class, FUSED, bmc, "worst", fused.worst, BENCH_RATIO, 1);
    return good;
}

static double number(const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value >= 0))
        bench_die(text, "is not a number");
    return value;
}

static void print_job(const struct georgiou_class *classes, const char *name,
                      double ghz, double settle, const char *seconds_text)
{
    for (size_t c = 0; c < GEORGIOU_CLASSES; c++) {
        for (size_t f = 0; f < GEORGIOU_FREQUENCIES; f++) {
            const struct georgiou_job *job = &classes[c].job[f];
            double seconds = seconds_text ? number(seconds_text) : job->seconds;

            if (strcmp(classes[c].name, name) != 0 ||
                fabs(job->ghz - ghz) > 1e-6)
                continue;
            printf("%.1f %.3f %.3f %.4f %.2f\n", seconds, job->node_w,
                   GEORGIOU_IDLE_W,
                   georgiou_lag_pct(job->node_w, GEORGIOU_IDLE_W, seconds,
                                    settle) +
                       georgiou_sampling_pct(job->node_w, GEORGIOU_IDLE_W,
                                             seconds),
                   job->error_pct);
            return;
        }
    }
    bench_die(name, "is not in the table with that frequency");
}

int main(int argc, char **argv)
{
    static outcomes all[COUNT(settle_s)];
    const struct georgiou_class *classes;
    bool good = true;
    FILE *out;

    if ((argc == 6 || argc == 7) && strcmp(argv[2], "--job") == 0) {
        print_job(georgiou_load(argv[1]), argv[3], number(argv[4]),
                  number(argv[5]), argv[6]);
        return 0;
    }
    if (argc != 3)
        bench_die("usage", "bench_precision TABLE.csv OUT.csv | "
                           "--job CLASS GHZ SETTLE_S [SECONDS]");
    classes = georgiou_load(argv[1]);
    out = fopen(argv[2], "w");
    if (!out)
        bench_die(argv[2], "cannot be written");
    fprintf(out, "# Jobs replayed with a clock of their own, one node of them. "
                 "paper_error_pct: Georgiou\n# et al. 2014, tables 2 to 4, "
                 "Slurm with BMCs.\n"
                 "class,frequency_ghz,source,bmc_settle_s,seconds,true_j,"
                 "measured_j,error_pct,paper_error_pct\n");
    for (size_t i = 0; i < COUNT(settle_s); i++) {
        fprintf(stderr, "bench_precision: a BMC that settles in %d s\n",
                settle_s[i]);
        run_node(classes, settle_s[i], all[i]);
        write_jobs(out, classes, settle_s[i], all[i]);
    }
    if (fclose(out) != 0)
        bench_die(argv[2], "cannot be written");
    bench_print_head();
    for (size_t c = 0; c < GEORGIOU_CLASSES; c++) {
        good &= print_rapl(&classes[c], all[0][c]);
        for (size_t i = 0; i < COUNT(settle_s); i++)
            good &= print_class(&classes[c], settle_s[i], all[i][c],
                                traits[c].fused_mean_pct);
    }
    return good ? 0 : 1;
}

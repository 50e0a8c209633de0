/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/step/node_energy.h"
#include "common/node/board.h"
#include "common/sensors/fused_sensor.h"
#include "common/sensors/ipmi_helper.h"
#include "tests/bench/bench.h"
#include "tests/bench/handed.h"
#include "tests/unit/fake.h"
#include "tests/unit/tree.h"

#define PERIOD_NS JOULE_NS_PER_S
#define TICK_NS   (100 * JOULE_NS_PER_MS) /* of the BMC */
#define MOVE_NS   JOULE_NS_PER_MS         /* of the counters */
#define SAMPLE_NS (370 * JOULE_NS_PER_MS) /* phase of the samples */
#define ASK_NS    (810 * JOULE_NS_PER_MS) /* of the fused driver's BMC thread */
#define POLL_NS   (30 * JOULE_NS_PER_S)   /* --acctg-freq's default */

static const double share[2] = {0.55, 0.45}; /* of each package */

const char *const replay_driver_names[REPLAY_DRIVERS] = {
    "joule_rapl", "joule_ipmi", "joule_fused"};

struct input {
    struct joule_sensor *source; /* that is sampled */
    struct joule_sensor *labels; /* what a step has of it */
    struct joule_board *board;
    struct joule_snapshot snapshot;
    struct joule_node_energy *node_energy; /* of the step; NULL: there is none */
    struct joule_node_energy_reading reading;
};

struct replay {
    struct tree tree;
    struct fake counters; /* and the clock */
    struct handed handed;
    struct bmc_value bmc;
    struct bmc_sample truth; /* of now */
    double shown_w, rapl_w, rapl_j;
    double moved_j; /* RAPL's energy when the counters moved last */
    int64_t tick_ns, sample_ns, ask_ns, poll_ns; /* when next */
    int64_t begun_ns;                            /* the step */
    double begun_node_j, begun_rapl_j;
    struct input input[REPLAY_DRIVERS];
};

/* ---- the node ---- */

int64_t replay_now_ns(const struct replay *r)
{
    return r->counters.now_ns;
}

void replay_power(struct replay *r, double node_w, double rapl_w)
{
    r->truth.watts = node_w;
    r->rapl_w = rapl_w;
}

static void add_energy(struct replay *r, int64_t to_ns)
{
    int64_t from_ns = r->truth.mono_ns;
    int64_t moved_ns = to_ns / MOVE_NS * MOVE_NS;

    if (moved_ns > from_ns) {
        r->moved_j = r->rapl_j +
                     r->rapl_w * (double)(moved_ns - from_ns) / JOULE_NS_PER_S;
        for (size_t i = 0; i < 2; i++)
            r->counters.ticks[i] =
                (uint64_t)(r->moved_j * share[i] * 1e6 * 1024 / 15625);
    }
    r->rapl_j += r->rapl_w * (double)(to_ns - from_ns) / JOULE_NS_PER_S;
    r->truth.joules +=
        r->truth.watts * (double)(to_ns - from_ns) / JOULE_NS_PER_S;
    r->truth.mono_ns = to_ns;
    r->counters.now_ns = to_ns;
}

static struct joule_power bmc_power(const struct replay *r)
{
    return (struct joule_power){
        .watts = round(r->shown_w), /* DCMI has whole watts */
        .mono_ns = r->truth.mono_ns,
        .status = JOULE_POWER_OK,
    };
}

/* ---- what the samplers' threads do with a reading ---- */

static void sample_rapl(struct replay *r)
{
    struct input *m = &r->input[REPLAY_RAPL];
    struct joule_reading readings[2];
    int64_t now_ns =
        joule_sensor_read_all(m->source, &r->counters.clock, readings);

    joule_node_total_update(&m->snapshot.total, m->source->domains, readings,
                            now_ns);
    joule_board_publish(m->board, &m->snapshot);
}

static void sample_ipmi(struct replay *r)
{
    struct input *m = &r->input[REPLAY_IPMI];
    struct joule_power power = bmc_power(r);

    joule_node_total_integrate(&m->snapshot.total, m->source->domains, &power,
                               joule_board_last_edge(m->board, power.mono_ns),
                               joule_power_gap_ns(PERIOD_NS));
    m->snapshot.node_mw = (uint64_t)(power.watts * 1000);
    joule_board_publish(m->board, &m->snapshot);
}

static void sample_fused(struct replay *r)
{
    struct input *m = &r->input[REPLAY_FUSED];
    struct joule_power power[JOULE_FUSED_SENSOR_LABELS + 2];
    struct joule_error err = {""};

    if (m->source->ops->read_power(m->source, power, &err) == 0) {
        joule_node_total_add(&m->snapshot.total, m->source->domains, power);
        m->snapshot.node_mw =
            (uint64_t)(power[JOULE_FUSED_SENSOR_NODE].watts * 1000 + 0.5);
    } else if (errno != EAGAIN) {
        bench_die("the fused driver", err.text);
    }
    joule_board_publish_fused(m->board, &m->snapshot,
                              m->source->ops->state(m->source));
}

static void sample(struct replay *r)
{
    sample_rapl(r);
    sample_ipmi(r);
    sample_fused(r);
}

/* ---- the step ---- */

static void poll_accounts(struct replay *r)
{
    for (int i = 0; i < REPLAY_DRIVERS; i++) {
        struct input *m = &r->input[i];

        if (joule_node_energy_update(m->node_energy, &m->reading) < 0)
            bench_die(replay_driver_names[i], "energy is unknown");
    }
}

void replay_step_begin(struct replay *r)
{
    r->begun_ns = r->truth.mono_ns;
    r->begun_node_j = r->truth.joules;
    r->begun_rapl_j = r->rapl_j;
    for (int i = 0; i < REPLAY_DRIVERS; i++) {
        struct input *m = &r->input[i];

        m->node_energy =
            joule_node_energy_create(&r->counters.clock, m->labels, m->board);
        if (!m->node_energy)
            bench_die("joule_node_energy_create", "out of memory");
        joule_node_energy_begin(m->node_energy);
    }
    poll_accounts(r);
    r->poll_ns = r->begun_ns + POLL_NS;
}

struct replay_used replay_step_end(struct replay *r)
{
    struct replay_used used = {
        .seconds = (double)(r->truth.mono_ns - r->begun_ns) / JOULE_NS_PER_S,
        .node_j = r->truth.joules - r->begun_node_j,
        .rapl_j = r->rapl_j - r->begun_rapl_j,
    };

    poll_accounts(r);
    for (int i = 0; i < REPLAY_DRIVERS; i++) {
        struct input *m = &r->input[i];

        used.by_driver[i] = (double)m->reading.used_uj / 1e6;
        joule_node_energy_destroy(m->node_energy);
        m->node_energy = NULL;
    }
    r->poll_ns = INT64_MAX;
    return used;
}

/* ---- time ---- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void replay_run(struct replay *r, int64_t ns)
{
    int64_t end_ns = r->truth.mono_ns + ns;

    while (r->truth.mono_ns < end_ns) {
        int64_t next_ns = earlier(earlier(r->tick_ns, r->sample_ns),
                                  earlier(r->ask_ns, r->poll_ns));

        add_energy(r, earlier(next_ns, end_ns));
        r->shown_w = bmc_value_add(&r->bmc, &r->truth);
        if (r->truth.mono_ns == r->tick_ns)
            r->tick_ns += TICK_NS;
        if (r->truth.mono_ns == r->ask_ns) {
            struct joule_power power = bmc_power(r);

            handed_give(&r->handed, &power);
            r->ask_ns += PERIOD_NS;
        }
        if (r->truth.mono_ns == r->sample_ns) {
            sample(r);
            r->sample_ns += PERIOD_NS;
        }
        if (r->truth.mono_ns == r->poll_ns) {
            poll_accounts(r);
            r->poll_ns += POLL_NS;
        }
    }
}

/* ---- from the beginning to the end ---- */

/* [period_ns] 0: the step's */
static struct joule_sensor *
make_fused(struct replay *r, struct joule_sensor *bmc, int64_t period_ns)
{
    struct joule_fused_sensor_options opt = {
        .clock = &r->counters.clock,
        .counters = &r->counters.source,
        .bmc = bmc,
        .bmc_period_ns = period_ns,
        .gap_ns = joule_power_gap_ns(PERIOD_NS),
    };
    struct joule_error err;
    struct joule_sensor *source = joule_fused_sensor_create(&opt, &err);

    if (!source)
        bench_die("joule_fused_sensor_create", err.text);
    return source;
}

static void start_meter(struct replay *r, enum replay_driver driver,
                        struct joule_sensor *source,
                        struct joule_sensor *labels)
{
    struct input *m = &r->input[driver];
    struct joule_error err;

    m->source = source;
    m->labels = labels;
    if (!source || !labels)
        bench_die(replay_driver_names[driver], "out of memory");
    m->board =
        joule_board_create(r->tree.fd, replay_driver_names[driver], &err);
    if (!m->board)
        bench_die("joule_board_create", err.text);
    m->snapshot.period_ns = PERIOD_NS;
    joule_node_total_start(&m->snapshot.total, source->domains,
                           source->domain_count, 0);
}

static void start_meters(struct replay *r)
{
    static struct joule_ipmi_config config = {
        .label_count = 1, .label = {"Node"}, .sensor_count = 1};
    struct joule_sensor *rapl = &r->counters.source;
    struct joule_sensor *ipmi = joule_ipmi_helper_labels_create(&config);

    handed_init(&r->handed);
    start_meter(r, REPLAY_RAPL, rapl, rapl);
    start_meter(r, REPLAY_IPMI, ipmi, ipmi);
    /* It waits for what it is handed. */
    start_meter(r, REPLAY_FUSED, make_fused(r, &r->handed.source, 1),
                make_fused(r, &r->handed.source, 0));
}

struct replay *replay_create(const struct bmc_value_options *bmc, double node_w,
                             double rapl_w)
{
    struct replay *r = calloc(1, sizeof(*r));

    if (!r)
        bench_die("the node", "out of memory");
    tree_create(&r->tree);
    tree_write(&r->tree, "proc/sys/kernel/random/boot_id",
               "00000000-0000-0000-0000-000000000000\n");
    tree_mkdir(&r->tree, "run");
    fake_init(&r->counters);
    fake_add(&r->counters, JOULE_DOMAIN_PACKAGE, 0, 4000000000);
    fake_add(&r->counters, JOULE_DOMAIN_PACKAGE, 1, 1000000);
    bmc_value_init(&r->bmc, bmc);
    r->truth.mono_ns = r->counters.now_ns;
    r->tick_ns = r->truth.mono_ns + TICK_NS;
    r->sample_ns = r->truth.mono_ns + SAMPLE_NS;
    r->ask_ns = r->truth.mono_ns + ASK_NS;
    r->poll_ns = INT64_MAX;
    replay_power(r, node_w, rapl_w);
    start_meters(r);
    return r;
}

void replay_destroy(struct replay *r)
{
    if (!r)
        return;
    for (int i = 0; i < REPLAY_DRIVERS; i++) {
        struct input *m = &r->input[i];

        joule_node_energy_destroy(m->node_energy);
        joule_board_destroy(m->board);
        joule_sensor_destroy(m->source);
        if (m->labels != m->source)
            joule_sensor_destroy(m->labels);
    }
    tree_destroy(&r->tree);
    free(r);
}

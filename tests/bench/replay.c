/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/replay.h"

#include <math.h>
#include <stdlib.h>

#include "common/energy/integrator.h"
#include "common/node/ledger.h"
#include "common/sensors/counter_sensor.h"
#include "common/sensors/fused_sensor.h"
#include "common/sensors/ipmi_helper.h"
#include "common/sensors/meter_sensor.h"
#include "common/step/node_energy.h"
#include "tests/bench/bench.h"
#include "tests/bench/handed.h"
#include "tests/unit/fake.h"
#include "tests/unit/tree.h"

#define PERIOD_NS JOULE_NS_PER_S
#define TICK_NS   (100 * JOULE_NS_PER_MS) /* of the BMC */
#define MOVE_NS   JOULE_NS_PER_MS         /* of the counters */
#define SAMPLE_NS (370 * JOULE_NS_PER_MS) /* phase of the samples */
#define ASK_NS    (810 * JOULE_NS_PER_MS) /* and of the BMC's readings */
#define POLL_NS   (30 * JOULE_NS_PER_S)   /* --acctg-freq's default */

static const double share[2] = {0.55, 0.45}; /* of each package */

const char *const replay_driver_names[REPLAY_DRIVERS] = {
    "joule_rapl", "joule_ipmi", "joule_fused"};

struct input {
    struct handed handed;          /* the BMC of the sensor */
    struct joule_sensor *sensor;   /* slurmd's */
    struct joule_sensor *follower; /* the step's */
    struct joule_ledger *ledger;
    struct joule_snapshot snapshot;
    struct joule_node_energy *node_energy; /* the step's; NULL: none */
    struct joule_node_energy_reading reading;
};

struct replay {
    struct tree tree;
    struct fake counters; /* and the clock */
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

/* What the BMC's threads do. */
static void ask_bmc(struct replay *r)
{
    struct joule_power power = {
        .watts = round(r->shown_w), /* DCMI has whole watts */
        .mono_ns = r->truth.mono_ns,
        .status = JOULE_POWER_OK,
    };

    handed_give(&r->input[REPLAY_IPMI].handed, &power);
    handed_give(&r->input[REPLAY_FUSED].handed, &power);
}

/* What the samplers' threads do. */
static void sample(struct replay *r, bool is_edge)
{
    struct joule_reading readings[JOULE_DOMAINS_MAX];

    for (int i = 0; i < REPLAY_DRIVERS; i++) {
        struct input *m = &r->input[i];
        int64_t now_ns = joule_sensor_read(
            m->sensor, is_edge ? joule_clock_mono_ns(&r->counters.clock) : 0,
            readings);

        joule_node_total_update(&m->snapshot.total, m->sensor->domains,
                                readings, now_ns);
        m->snapshot.samples++;
        joule_ledger_stage_node(m->ledger, &m->snapshot, &m->sensor->state);
        joule_ledger_publish(m->ledger, NULL);
    }
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
    sample(r, true);
    for (int i = 0; i < REPLAY_DRIVERS; i++) {
        struct input *m = &r->input[i];

        m->node_energy = joule_node_energy_create(&r->counters.clock,
                                                  m->follower, m->ledger);
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

    sample(r, true);
    for (int i = 0; i < REPLAY_DRIVERS; i++)
        joule_node_energy_end(r->input[i].node_energy);
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
            ask_bmc(r);
            r->ask_ns += PERIOD_NS;
        }
        if (r->truth.mono_ns == r->sample_ns) {
            sample(r, false);
            r->sample_ns += PERIOD_NS;
        }
        if (r->truth.mono_ns == r->poll_ns) {
            poll_accounts(r);
            r->poll_ns += POLL_NS;
        }
    }
}

/* ---- from the beginning to the end ---- */

static struct joule_sensor *make_rapl(struct replay *r)
{
    return fake_sensor(&r->counters);
}

/* [period_ns] 0: the step's.  Any other: the thread waits for what it is
 * handed. */
static struct joule_sensor *
make_ipmi(struct replay *r, struct joule_meter *meter, int64_t period_ns)
{
    const struct joule_meter_sensor_options opt = {
        .clock = &r->counters.clock,
        .meter = meter,
        .period_ns = period_ns,
        .gap_ns = joule_power_gap_ns(PERIOD_NS),
    };

    return meter ? joule_meter_sensor_create(&opt) : NULL;
}

static struct joule_sensor *
make_fused(struct replay *r, struct joule_meter *meter, int64_t period_ns)
{
    const struct joule_fused_sensor_options opt = {
        .clock = &r->counters.clock,
        .counters = &r->counters.counters,
        .meter = meter,
        .period_ns = period_ns,
        .gap_ns = joule_power_gap_ns(PERIOD_NS),
    };
    struct joule_error err;

    return meter ? joule_fused_sensor_create(&opt, &err) : NULL;
}

static void start_driver(struct replay *r, enum replay_driver driver,
                         struct joule_sensor *sensor,
                         struct joule_sensor *follower)
{
    struct input *m = &r->input[driver];
    struct joule_error err;

    m->sensor = sensor;
    m->follower = follower;
    if (!sensor || !follower)
        bench_die(replay_driver_names[driver], "cannot be made");
    m->ledger =
        joule_ledger_create(r->tree.fd, replay_driver_names[driver], 1, &err);
    if (!m->ledger)
        bench_die("joule_ledger_create", err.text);
    m->snapshot.period_ns = PERIOD_NS;
    joule_node_total_start(&m->snapshot.total, sensor->domains,
                           sensor->domain_count, 0);
}

static void start_drivers(struct replay *r)
{
    static const struct joule_ipmi_config config = {
        .label_count = 1, .label = {"Node"}, .sensor_count = 1};
    struct handed *ipmi = &r->input[REPLAY_IPMI].handed;
    struct handed *fused = &r->input[REPLAY_FUSED].handed;

    handed_init(ipmi);
    handed_init(fused);
    start_driver(r, REPLAY_RAPL, make_rapl(r), make_rapl(r));
    start_driver(r, REPLAY_IPMI, make_ipmi(r, &ipmi->meter, 1),
                 make_ipmi(r, joule_ipmi_helper_labels_create(&config), 0));
    start_driver(r, REPLAY_FUSED, make_fused(r, &fused->meter, 1),
                 make_fused(r, joule_ipmi_helper_labels_create(&config), 0));
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
    start_drivers(r);
    return r;
}

void replay_destroy(struct replay *r)
{
    if (!r)
        return;
    for (int i = 0; i < REPLAY_DRIVERS; i++) {
        struct input *m = &r->input[i];

        joule_node_energy_destroy(m->node_energy);
        joule_ledger_destroy(m->ledger);
        joule_sensor_destroy(m->sensor);
        joule_sensor_destroy(m->follower);
    }
    tree_destroy(&r->tree);
    free(r);
}

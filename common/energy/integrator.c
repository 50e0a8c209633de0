/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/energy/integrator.h"

#include "common/base/clock.h"

/* W * ns = nJ */
#define NJ_PER_UJ 1000.0

/* What no node uses between two readings. */
#define MOST_J 1e12

int64_t joule_power_gap_ns(int64_t period_ns)
{
    int64_t ns = 3 * period_ns;

    return ns > 3 * JOULE_NS_PER_S ? ns : 3 * JOULE_NS_PER_S;
}

/* Energy between two measurements: see the header. */
static double interval_uj(double before_w, double now_w, int64_t before_ns,
                          int64_t now_ns, int64_t edge_ns)
{
    double ns = (double)(now_ns - before_ns);

    if (edge_ns < before_ns && edge_ns >= 0 &&
        before_ns - edge_ns <= JOULE_POWER_SETTLE_NS)
        edge_ns = before_ns;
    if (edge_ns >= before_ns && edge_ns <= now_ns)
        return (before_w * (double)(edge_ns - before_ns) +
                now_w * (double)(now_ns - edge_ns)) /
               NJ_PER_UJ;
    return (before_w + now_w) / 2 * ns / NJ_PER_UJ;
}

/* Whole microjoules and the rest apart: a double alone would lose the rest
 * after some gigajoules, and with it a power of milliwatts. */
static void add_uj(struct joule_integrator *g, double uj)
{
    double sum = g->rest_uj + uj;
    uint64_t whole = (uint64_t)sum;

    g->uj += whole;
    g->rest_uj = sum - (double)whole;
}

static void follow_refresh(struct joule_integrator *g, double watts,
                           int64_t at_ns)
{
    int64_t since_ns = at_ns - g->changed_ns;

    if (watts == g->power_w) {
        if (since_ns < g->refresh_ns)
            g->held++;
        return;
    }
    /* The first one is not since a change but since the first reading. */
    if (g->changes++ > 0 && (g->refresh_ns == 0 || since_ns < g->refresh_ns))
        g->refresh_ns = since_ns;
    g->changed_ns = at_ns;
}

/* What is known of how often the BMC refreshes is of the sensor before. */
static void change_sensor(struct joule_integrator *g, uint64_t sensor_key,
                          int64_t at_ns)
{
    g->sensor_key = sensor_key;
    g->changed_ns = at_ns;
    g->refresh_ns = 0;
    g->changes = 0;
}

static void set_power(struct joule_integrator *g, double watts, int64_t at_ns)
{
    if (g->readings == 0)
        g->began_ns = at_ns;
    g->power_w = watts;
    g->read_ns = at_ns;
    if (g->readings != UINT32_MAX)
        g->readings++;
}

void joule_integrator_update(struct joule_integrator *g, double watts,
                             uint64_t sensor_key, int64_t at_ns,
                             int64_t edge_ns, int64_t gap_ns)
{
    bool is_other = sensor_key != g->sensor_key && sensor_key != 0;
    int64_t ns = at_ns - g->read_ns;

    if (g->readings > 0) {
        if (ns <= 0)
            return;
        if (ns > gap_ns || ns > JOULE_POWER_BRIDGE_NS) {
            g->gaps++;
            g->gap_ns += ns;
        }
        if (ns > JOULE_POWER_BRIDGE_NS) {
            g->lost++;
            add_uj(g, g->power_w * (double)JOULE_POWER_BRIDGE_NS / NJ_PER_UJ);
        } else
            add_uj(g, interval_uj(g->power_w, watts, g->read_ns, at_ns,
                                  is_other ? at_ns : edge_ns));
    }
    if (g->readings == 0 || is_other)
        change_sensor(g, sensor_key, at_ns);
    else
        follow_refresh(g, watts, at_ns);
    set_power(g, watts, at_ns);
}

void joule_integrator_add(struct joule_integrator *g, double watts,
                          double joules, uint64_t sensor_key, int64_t at_ns)
{
    if (g->readings > 0 && at_ns <= g->read_ns)
        return;
    if (g->readings == 0 || watts != g->power_w)
        g->changed_ns = at_ns;
    if (g->readings > 0 && joules > 0 && joules < MOST_J)
        add_uj(g, joules * 1e6);
    if (sensor_key)
        g->sensor_key = sensor_key;
    set_power(g, watts, at_ns);
}

void joule_integrator_error(struct joule_integrator *g)
{
    if (g->errors != UINT32_MAX)
        g->errors++;
}

struct joule_reading joule_integrator_reading(const struct joule_integrator *g,
                                              int64_t gap_ns, int64_t now_ns,
                                              bool carry)
{
    int64_t ns = now_ns - g->read_ns;
    struct joule_reading r = {
        .uj = g->uj,
        .began_ns = g->began_ns,
        .mono_ns = now_ns,
        .gap_ns = g->gap_ns,
        .mw = JOULE_MW_UNKNOWN,
        .sensor_key = g->sensor_key,
        .errors = g->errors,
        .state = JOULE_READING_OK,
    };

    if (g->readings == 0) {
        r.state = JOULE_READING_UNKNOWN;
        return r;
    }
    if (ns > gap_ns) {
        r.state = JOULE_READING_STALE;
        r.gap_ns += ns;
    } else {
        r.mw = (uint64_t)(g->power_w * 1000 + 0.5);
    }
    if (ns > JOULE_POWER_BRIDGE_NS)
        ns = JOULE_POWER_BRIDGE_NS;
    if (carry && ns > 0)
        r.uj += (uint64_t)(g->rest_uj + g->power_w * (double)ns / NJ_PER_UJ);
    return r;
}

bool joule_integrator_check(const struct joule_integrator *g, int64_t now_ns)
{
    return joule_is_power(g->power_w) && g->rest_uj >= 0 && g->rest_uj < 1 &&
           g->began_ns >= 0 && g->read_ns >= g->began_ns &&
           g->read_ns <= now_ns && g->changed_ns >= 0 &&
           g->changed_ns <= now_ns && g->gap_ns >= 0 && g->gap_ns <= now_ns;
}

bool joule_power_is_measured(const struct joule_power *power)
{
    return power->status == JOULE_POWER_OK && joule_is_power(power->watts);
}

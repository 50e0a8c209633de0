/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "config.h"
#include "tools/joule/ledger_command.h"
#include "tools/joule/probe.h"
#include "tools/joule/text.h"

static double seconds(int64_t ns)
{
    return (double)ns / (double)JOULE_NS_PER_S;
}

/* "50.123 W", or "unknown". */
static const char *watts(uint64_t mw, char buf[32])
{
    if (mw == JOULE_MW_UNKNOWN)
        snprintf(buf, 32, "unknown");
    else
        snprintf(buf, 32, "%" PRIu64 ".%03u W", mw / 1000,
                 (unsigned)(mw % 1000));
    return buf;
}

/* All text goes through these two: it may quote files. */
static void __attribute__((format(printf, 2, 3)))
put(FILE *out, const char *fmt, ...)
{
    char line[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    joule_text_put(out, line);
}

/* A line of its own, with a name. */
static void __attribute__((format(printf, 3, 4)))
row(FILE *out, const char *name, const char *fmt, ...)
{
    char line[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    fprintf(out, "  %-18s ", name);
    joule_text_put(out, line);
    putc('\n', out);
}

static void print_cpu(FILE *out, const struct joule_probe *p)
{
    const struct joule_rapl_info *info = &p->sensor.info;
    const struct joule_access *a = &p->access;

    fputs("CPU\n", out);
    row(out, "model", "%s", info->cpu.name[0] ? info->cpu.name : "unknown");
    row(out, "vendor", "%s family %u model %u",
        info->cpu.vendor[0] ? info->cpu.vendor : "unknown", info->cpu.family,
        info->cpu.model);
    row(out, "RAPL known as", "%s", info->row ? info->row : "not known");
    row(out, "counters read in", "%s",
        p->sensor.way ? p->sensor.way : "nothing");
    row(out, "packages, dies", "%u, %u", info->packages, info->dies);
    row(out, "virtual machine", "%s", info->cpu.hypervisor ? "yes" : "no");
    if (info->filtering_known)
        row(out, "energy filtering", "%s", info->filtering ? "on" : "off");
    fputs("\nAccess\n", out);
    row(out, "running as", "%s (user %u)", a->euid == 0 ? "root" : "not root",
        (unsigned)a->euid);
    row(out, "MSR device", "%s: %s", a->msr,
        a->msr_error ? strerror(a->msr_error) : "readable");
    if (a->lockdown[0])
        row(out, "kernel lockdown", "%s", a->lockdown);
}

/* ---- the BMC ---- */

static void print_way(FILE *out, const struct joule_bmc *bmc,
                      const struct joule_energy_config *config)
{
    const char *file = config->ipmi_credentials_file;

    row(out, "running as", "%s (user %u)", bmc->euid == 0 ? "root" : "not root",
        (unsigned)bmc->euid);
    row(out, "reader", "%s", bmc->program);
    if (!bmc->in_order) {
        row(out, "not asked", "%s", bmc->error.text);
        return;
    }
    row(out, "asked through", "%s", joule_bmc_driver_name(bmc->driver));
    if (bmc->lan) {
        row(out, "host", "%s", bmc->host);
        row(out, "credentials", "%s",
            file[0]                ? file
            : bmc->has_credentials ? "in acct_gather.conf"
                                   : "none");
    } else if (bmc->device[0]) {
        row(out, "device", "%s: %s", bmc->device,
            bmc->device_error ? strerror(bmc->device_error) : "can be opened");
    }
}

/* A change at each reading tells how often it was asked, not more. */
static void print_refresh(FILE *out, const struct joule_bmc *bmc)
{
    if (bmc->readings < 2)
        return;
    if (bmc->changes == 0)
        row(out, "value", "did not change");
    else if (bmc->refresh_ns == 0)
        row(out, "value", "changed once");
    else if (bmc->refresh_ns < 3 * JOULE_BMC_PAUSE_NS)
        row(out, "value", "changes at each reading");
    else
        row(out, "value", "changes every %.*f s",
            bmc->refresh_ns < JOULE_NS_PER_S ? 2 : 1, seconds(bmc->refresh_ns));
}

static void print_sensors(FILE *out, const struct joule_bmc *bmc)
{
    fprintf(out, "  %-18s %-18s %-8s %4s %10s %12s\n", "label", "sensor",
            "record", "unit", "step", "highest");
    for (uint32_t i = 0; i < bmc->sensor_count; i++) {
        const struct joule_bmc_sensor *s = &bmc->sensors[i];
        char record[16];

        snprintf(record, sizeof(record), "%u", s->found.record_id);
        put(out, "  %-18s %-18s %-8s %4s %10g %12g", bmc->labels[s->label].name,
            s->found.name,
            s->found.kind == JOULE_IPMI_SENSOR_RECORD ? record : "-",
            s->found.unit, s->found.step_w, s->found.max_w);
        putc('\n', out);
    }
}

static void print_label(FILE *out, const struct joule_bmc_label *label)
{
    uint64_t ok = label->readings[JOULE_POWER_OK];

    if (ok > 0)
        put(out, "  %-18s %9.1f W %9.1f W %9.1f W %9.1f W %9" PRIu64,
            label->name, label->last_w, label->sum_w / (double)ok, label->min_w,
            label->max_w, ok);
    else
        put(out, "  %-18s %11s %11s %11s %11s %9u", label->name, "unknown", "-",
            "-", "-", 0u);
    for (int s = JOULE_POWER_OK + 1; s < JOULE_POWER_STATUS_COUNT; s++)
        if (label->readings[s] > 0)
            put(out, ", %" PRIu64 " %s", label->readings[s],
                joule_bmc_status_name((enum joule_power_status)s));
    putc('\n', out);
}

static void print_candidates(FILE *out, const struct joule_bmc *bmc)
{
    const struct joule_wire_reply *list = &bmc->list;

    for (uint32_t i = 0; i < list->count; i++) {
        const struct joule_wire_value *v = &list->value[i];
        char power[32];

        if (joule_bmc_is_used(bmc, i))
            continue;
        if (v->status == JOULE_POWER_OK)
            snprintf(power, sizeof(power), "%.1f W", v->watts);
        else
            snprintf(power, sizeof(power), "%s",
                     joule_bmc_status_name(v->status));
        if (list->found[i].kind == JOULE_IPMI_SENSOR_RECORD)
            row(out, "not used", "%s (record %u): %s", list->found[i].name,
                list->found[i].record_id, power);
        else
            row(out, "not used", "%s: %s", list->found[i].name, power);
    }
    if (list->more > 0)
        row(out, "not used", "and %" PRIu32 " more", list->more);
}

static void print_bmc(FILE *out, const struct joule_bmc *bmc,
                      const struct joule_energy_config *config)
{
    fprintf(out, "\nBMC (IPMI), read for %.3f s\n", seconds(bmc->measured_ns));
    print_way(out, bmc, config);
    if (!bmc->in_order)
        return;
    if (bmc->connected) {
        if (bmc->connect_ns > 0)
            row(out, "connected", "in %.3f s", seconds(bmc->connect_ns));
        if (bmc->latency_ns > 0)
            row(out, "a reading takes", "%.4g ms (median of %" PRIu64 ")",
                (double)bmc->latency_ns / 1e6, bmc->readings);
        print_refresh(out, bmc);
        row(out, "failed readings", "%" PRIu64, bmc->failures);
        print_sensors(out, bmc);
        fprintf(out, "  %-18s %11s %11s %11s %11s %9s\n", "label", "last",
                "mean", "lowest", "highest", "readings");
        for (uint32_t i = 0; i < bmc->label_count; i++)
            print_label(out, &bmc->labels[i]);
    } else {
        row(out, "not connected", "%s", bmc->error.text);
    }
    print_candidates(out, bmc);
}

/* ---- the counters ---- */

static void wrap_text(const struct joule_domain *domain, uint64_t mw,
                      char buf[32])
{
    if (domain->width_bits >= 64 && !domain->modulus)
        snprintf(buf, 32, "never");
    else if (mw == 0)
        snprintf(buf, 32, "-");
    else
        joule_text_seconds(joule_probe_sensor_wrap_s(domain, mw), buf, 32);
}

static void print_domain(FILE *out, const struct joule_probe_sensor_domain *d)
{
    char unit[JOULE_UNIT_TEXT_MAX], wrap[32], wrap_now[32], power[32];

    joule_text_unit(d->domain.unit, unit);
    wrap_text(&d->domain, JOULE_DOMAIN_POWER_MAX_W * 1000, wrap);
    wrap_text(&d->domain, d->power_mw, wrap_now);
    if (d->state >= JOULE_COUNTER_MOVING)
        watts(d->power_mw, power);
    else
        snprintf(power, sizeof(power), "%s", joule_probe_state_name(d->state));
    fprintf(out, "  %-18s %-5s %5u %14.14s %4u %12s %12s %14s\n",
            d->domain.name, d->domain.in_total ? "yes" : "no",
            (unsigned)d->domain.cpu, unit, d->domain.width_bits, wrap, wrap_now,
            power);
}

static void print_sensor(FILE *out, const struct joule_probe_sensor *s)
{
    char power[32];

    if (!s->opened) {
        fputs("\nEnergy counters: none\n", out);
        row(out, "because", "%s", s->error.text);
        return;
    }
    fprintf(out, "\nEnergy counters (RAPL), measured for %.3f s\n",
            (double)s->measured_ns / 1e9);
    fprintf(out, "  %-18s %-5s %5s %14s %4s %12s %12s %14s\n", "domain",
            "total", "CPU", "uJ per tick", "bits", "wraps,1000 W", "wraps now",
            "power");
    for (size_t i = 0; i < s->count; i++)
        print_domain(out, &s->domains[i]);
    row(out, "node", "%s",
        watts(s->moves ? s->node_mw : JOULE_MW_UNKNOWN, power));
}

static void print_node_total(FILE *out, const struct joule_node *n)
{
    const struct joule_snapshot *s = &n->snapshot;
    char power[32], average[32];

    fputs("\nNode total of slurmd in /run/slurm-joule/", out);
    put(out, "%s", n->name);
    putc('\n', out);
    if (!n->present) {
        row(out, "none", "%s", n->error.text);
        return;
    }
    row(out, "last sample", "%.3f s ago, one every %.3f s: %s",
        (double)n->age_ns / 1e9, (double)s->period_ns / 1e9,
        n->fresh ? "slurmd measures" : "slurmd does not measure now");
    if (s->total.valid)
        row(out, "total", "%" PRIu64 ".%03u J in %.0f s",
            s->total.node_uj / 1000000,
            (unsigned)(s->total.node_uj / 1000 % 1000),
            (double)(s->total.mono_ns - s->since_ns) / 1e9);
    else
        row(out, "total", "unknown");
    row(out, "power", "%s, on average %s", watts(s->total.mw, power),
        watts(s->average_mw, average));
    row(out, "samples", "%" PRIu64, s->samples);
    if (n->is_power && n->state.integrator[0].refresh_ns > 0)
        row(out, "refreshed by BMC",
            "after %.3f s or later: %" PRIu64 " samples had no new value",
            (double)n->state.integrator[0].refresh_ns / 1e9,
            n->state.integrator[0].held);
    if (!n->is_power)
        row(out, "wraps", "%" PRIu64, n->wraps);
    row(out, "gaps", "%.3f s", (double)s->total.gap_ns / 1e9);
    row(out, "failed readings", "%" PRIu64, n->errors);
}

/* Of the time counted, how much stands on what. */
static void print_bases(FILE *out, const struct joule_fused_state *s)
{
    fprintf(out, "  %-18s ", "total stands on");
    for (int i = JOULE_FUSED_BASES - 1; i >= 0; i--) {
        char time[32];

        if (s->basis_ns[i] == 0 && i != JOULE_FUSED_BOTH)
            continue;
        joule_text_seconds((double)s->basis_ns[i] / 1e9, time, sizeof(time));
        fprintf(out, "%s%s for %s", i < JOULE_FUSED_BOTH ? ", " : "",
                joule_fused_basis_words((enum joule_fused_basis)i), time);
    }
    putc('\n', out);
}

static void print_fused(FILE *out, const struct joule_node *n)
{
    const struct joule_fused_state *s = &n->state.fused;
    const struct joule_lag_model *f = &s->lag_model;

    if (!n->present || !n->is_fused)
        return;
    fputs("\nBMC and RAPL together\n", out);
    row(out, "power now is that of", "%s",
        joule_fused_basis_words((enum joule_fused_basis)s->basis));
    print_bases(out, s);
    if (!joule_lag_model_learned(f)) {
        row(out, "learned",
            "not yet: %.0f %%, with loads that "
            "change",
            100 * joule_lag_model_learned_part(f));
        return;
    }
    row(out, "lag of the BMC", "%s", joule_lag_model_words(f));
    row(out, "node uses", "%.3f x RAPL %+.1f W", f->gain, f->rest_w);
    row(out, "BMC foretold to", "%.1f W (standard deviation)",
        joule_lag_model_deviation(f));
}

static double joules(uint64_t uj)
{
    return (double)uj / 1e6;
}

static void print_ledger(FILE *out, const struct joule_probe *p)
{
    const struct joule_attribution_check *s = &p->share;
    const struct joule_ledger_totals *t = &s->totals;

    fputs("\nLedger: whose energy it is\n", out);
    if (p->conf.config_known)
        row(out, "JouleAttribution", "%s",
            joule_ledger_how(p->conf.config.attribution + 1));
    if (!s->present) {
        row(out, "none", "%s", s->error.text);
        return;
    }
    if (joule_ledger_how(t->how))
        row(out, "in force", "%s", joule_ledger_how(t->how));
    if (p->conf.config_known && p->conf.config.idle_w)
        row(out, "idle power", "%" PRIu64 " W (JouleIdleWatts)",
            p->conf.config.idle_w);
    fprintf(out, "  %-18s ", "idle power learned");
    joule_ledger_print_idle(out, t);
    putc('\n', out);
    row(out, "steps, jobs", "%zu, %zu", s->rows, s->jobs);
    row(out, "charged", "%.3f J: jobs %.3f, unallocated %.3f, system %.3f",
        joules(t->charged_uj), joules(t->jobs_uj), joules(t->unallocated_uj),
        joules(t->system_uj));
    if (t->multiple_uj)
        row(out, "more than once", "%.3f J", joules(t->multiple_uj));
}

static void print_conf(FILE *out, const struct joule_probe *p)
{
    const struct joule_confcheck *c = &p->conf;
    char value[JOULE_OPTION_TEXT_MAX + 1];

    fputs("\nConfiguration\n", out);
    if (!p->conf_checked) {
        row(out, "not checked", "--no-conf or --ipmi");
        return;
    }
    row(out, "slurm.conf", "%s", c->slurm_conf[0] ? c->slurm_conf : "none");
    row(out, "acct_gather.conf", "%s",
        c->acct_gather_conf[0] ? c->acct_gather_conf : "none");
    row(out, "plugin", "%s", c->plugin[0] ? c->plugin : "not found");
    for (const struct joule_option *o = joule_energy_config_options; o->key;
         o++) {
        if (o->type == JOULE_OPTION_IGNORED)
            continue;
        joule_option_format(o, &c->config, value, sizeof(value));
        put(out, "  %-32s %s", o->key, value[0] ? value : "not set");
        putc('\n', out);
    }
}

static void print_findings(FILE *out, const struct joule_findings *findings)
{
    fputs("\nFindings\n", out);
    if (findings->count == 0)
        fputs("  none\n", out);
    for (int level = JOULE_LEVELS - 1; level >= 0; level--) {
        for (size_t i = 0; i < findings->count; i++) {
            const struct joule_finding *f = &findings->list[i];

            if ((int)f->level != level)
                continue;
            row(out, joule_level_name(f->level), "%s", f->text.text);
            if (f->place.file[0] && f->place.line)
                row(out, "", "%s:%u", f->place.file, f->place.line);
            else if (f->place.file[0])
                row(out, "", "%s", f->place.file);
            if (f->advice.text[0])
                row(out, "", "write: %s", f->advice.text);
        }
    }
}

void joule_probe_print_text(FILE *out, const struct joule_probe *p)
{
    put(out, "%s %s on node %s", PACKAGE_NAME, PACKAGE_VERSION, p->node.name);
    fputs("\n\n", out);
    if (p->choice.text[0]) {
        fputs("Choice\n", out);
        row(out, "measured by", "%s", p->choice.text);
        fputs("\n", out);
    }
    print_cpu(out, p);
    if (p->ipmi)
        print_bmc(out, &p->bmc, &p->conf.config);
    print_sensor(out, &p->sensor);
    print_node_total(out, &p->node);
    print_fused(out, &p->node);
    print_ledger(out, p);
    print_conf(out, p);
    print_findings(out, &p->findings);
    fprintf(out, "\nA job on this node %s be measured%s.\n",
            joule_probe_good(p) ? "would" : "would not",
            p->conf_checked ? "" : " (the configuration was not checked)");
}

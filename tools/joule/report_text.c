/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <string.h>

#include "config.h"
#include "tools/joule/ledger_command.h"
#include "tools/joule/report.h"
#include "tools/joule/text.h"

static void print_cpu(FILE *out, const struct joule_probe *p)
{
    const struct joule_rapl_info *info = &p->sensor.info;
    const struct joule_access *a = &p->access;

    fputs("CPU\n", out);
    joule_report_row(out, "model", "%s",
                     info->cpu.name[0] ? info->cpu.name : "unknown");
    joule_report_row(out, "vendor", "%s family %u model %u",
                     info->cpu.vendor[0] ? info->cpu.vendor : "unknown",
                     info->cpu.family, info->cpu.model);
    joule_report_row(out, "RAPL known as", "%s",
                     info->row ? info->row : "not known");
    joule_report_row(out, "packages, dies", "%u, %u", info->packages,
                     info->dies);
    joule_report_row(out, "virtual machine", "%s",
                     info->cpu.hypervisor ? "yes" : "no");
    if (info->filtering_known)
        joule_report_row(out, "energy filtering", "%s",
                         info->filtering ? "on" : "off");
    fputs("\nAccess\n", out);
    joule_report_row(out, "running as", "%s (user %u)",
                     a->euid == 0 ? "root" : "not root", (unsigned)a->euid);
    joule_report_row(out, "MSR device", "%s: %s", a->msr,
                     a->msr_error ? strerror(a->msr_error) : "readable");
    if (a->lockdown[0])
        joule_report_row(out, "kernel lockdown", "%s", a->lockdown);
}

static void wrap_text(const struct joule_domain *domain, uint64_t mw,
                      char buf[32])
{
    if (domain->width_bits >= 64)
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
        joule_report_watts(d->power_mw, power);
    else
        snprintf(power, sizeof(power), "%s", joule_report_state(d->state));
    fprintf(out, "  %-18s %-5s %5u %14s %4u %12s %12s %14s\n", d->domain.name,
            d->domain.in_total ? "yes" : "no", (unsigned)d->domain.cpu, unit,
            d->domain.width_bits, wrap, wrap_now, power);
}

static void print_sensor(FILE *out, const struct joule_probe_sensor *s)
{
    char power[32];

    if (!s->opened) {
        fputs("\nEnergy counters: none\n", out);
        joule_report_row(out, "because", "%s", s->error.text);
        return;
    }
    fprintf(out, "\nEnergy counters (RAPL), measured for %.3f s\n",
            (double)s->measured_ns / 1e9);
    fprintf(out, "  %-18s %-5s %5s %14s %4s %12s %12s %14s\n", "domain",
            "total", "CPU", "uJ per tick", "bits", "wraps,1000 W", "wraps now",
            "power");
    for (size_t i = 0; i < s->count; i++)
        print_domain(out, &s->domains[i]);
    joule_report_row(
        out, "node", "%s",
        joule_report_watts(s->moves ? s->node_mw : JOULE_MW_UNKNOWN, power));
}

static void print_node_total(FILE *out, const struct joule_node *n)
{
    const struct joule_snapshot *s = &n->snapshot;
    char power[32], average[32];

    fputs("\nNode total of slurmd in /run/slurm-joule/", out);
    joule_report_put(out, "%s", n->name);
    putc('\n', out);
    if (!n->present) {
        joule_report_row(out, "none", "%s", n->error.text);
        return;
    }
    joule_report_row(out, "last sample", "%.3f s ago, one every %.3f s: %s",
                     (double)n->age_ns / 1e9, (double)s->period_ns / 1e9,
                     n->fresh ? "slurmd measures"
                              : "slurmd does not measure now");
    if (s->total.valid)
        joule_report_row(out, "total", "%" PRIu64 ".%03u J in %.0f s",
                         s->total.node_uj / 1000000,
                         (unsigned)(s->total.node_uj / 1000 % 1000),
                         (double)(s->total.mono_ns - s->since_ns) / 1e9);
    else
        joule_report_row(out, "total", "unknown");
    joule_report_row(out, "power", "%s, on average %s",
                     joule_report_watts(s->total.mw, power),
                     joule_report_watts(s->average_mw, average));
    joule_report_row(out, "samples", "%" PRIu64, s->samples);
    if (n->is_power && n->state.integrator[0].refresh_ns > 0)
        joule_report_row(out, "refreshed by BMC",
                         "after %.3f s or later: %" PRIu64
                         " samples had no new value",
                         (double)n->state.integrator[0].refresh_ns / 1e9,
                         n->state.integrator[0].held);
    if (!n->is_power)
        joule_report_row(out, "wraps", "%" PRIu64, n->wraps);
    joule_report_row(out, "gaps", "%.3f s", (double)s->total.gap_ns / 1e9);
    joule_report_row(out, "failed readings", "%" PRIu64, n->errors);
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
    joule_report_row(out, "power now is that of", "%s",
                     joule_fused_basis_words((enum joule_fused_basis)s->basis));
    print_bases(out, s);
    if (!joule_lag_model_learned(f)) {
        joule_report_row(out, "learned",
                         "not yet: %.0f %%, with loads that "
                         "change",
                         100 * joule_lag_model_learned_part(f));
        return;
    }
    joule_report_row(out, "lag of the BMC", "%s", joule_lag_model_words(f));
    joule_report_row(out, "node uses", "%.3f x RAPL %+.1f W", f->gain,
                     f->rest_w);
    joule_report_row(out, "BMC foretold to", "%.1f W (standard deviation)",
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
        joule_report_row(
            out, "JouleAttribution", "%s",
            joule_ledger_how(
                (enum joule_attribution)p->conf.config.attribution));
    if (!s->present) {
        joule_report_row(out, "none", "%s", s->error.text);
        return;
    }
    if (s->how_known)
        joule_report_row(out, "in force", "%s", joule_ledger_how(s->how));
    if (p->conf.config_known && p->conf.config.idle_w)
        joule_report_row(out, "idle power", "%" PRIu64 " W (JouleIdleWatts)",
                         p->conf.config.idle_w);
    fprintf(out, "  %-18s ", "idle power learned");
    joule_ledger_print_floor(out, t);
    putc('\n', out);
    joule_report_row(out, "steps, jobs", "%zu, %zu", s->rows, s->jobs);
    joule_report_row(out, "charged",
                     "%.3f J: jobs %.3f, unallocated %.3f, system %.3f",
                     joules(t->charged_uj), joules(t->jobs_uj),
                     joules(t->unallocated_uj), joules(t->system_uj));
    if (t->multiple_uj)
        joule_report_row(out, "more than once", "%.3f J",
                         joules(t->multiple_uj));
}

static void print_conf(FILE *out, const struct joule_probe *p)
{
    const struct joule_confcheck *c = &p->conf;
    char value[JOULE_OPTION_TEXT_MAX + 1];

    fputs("\nConfiguration\n", out);
    if (!p->conf_checked) {
        joule_report_row(out, "not checked", "--no-conf or --ipmi");
        return;
    }
    joule_report_row(out, "slurm.conf", "%s",
                     c->slurm_conf[0] ? c->slurm_conf : "none");
    joule_report_row(out, "acct_gather.conf", "%s",
                     c->acct_gather_conf[0] ? c->acct_gather_conf : "none");
    joule_report_row(out, "plugin", "%s",
                     c->plugin[0] ? c->plugin : "not found");
    for (const struct joule_option *o = joule_energy_config_options; o->key;
         o++) {
        if (o->type == JOULE_OPTION_IGNORED)
            continue;
        joule_option_format(o, &c->config, value, sizeof(value));
        joule_report_put(out, "  %-32s %s", o->key,
                         value[0] ? value : "not set");
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
            joule_report_row(out, joule_level_name(f->level), "%s",
                             f->text.text);
            if (f->place.file[0] && f->place.line)
                joule_report_row(out, "", "%s:%u", f->place.file,
                                 f->place.line);
            else if (f->place.file[0])
                joule_report_row(out, "", "%s", f->place.file);
            if (f->advice.text[0])
                joule_report_row(out, "", "write: %s", f->advice.text);
        }
    }
}

void joule_probe_print_text(FILE *out, const struct joule_probe *p)
{
    joule_report_put(out, "%s %s on node %s", PACKAGE_NAME, PACKAGE_VERSION,
                     p->node.name);
    fputs("\n\n", out);
    print_cpu(out, p);
    if (p->ipmi)
        joule_report_bmc_text(out, &p->bmc, &p->conf.config);
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

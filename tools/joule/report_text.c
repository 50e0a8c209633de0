/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "config.h"
#include "tools/joule/report.h"
#include "tools/joule/text.h"

static void put(FILE *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* All text goes through here: it may quote files. */
static void put(FILE *out, const char *fmt, ...)
{
    char line[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    joule_text_put(out, line);
}

static void row(FILE *out, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void row(FILE *out, const char *name, const char *fmt, ...)
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

static void print_cpu(FILE *out, const struct joule_probe *p)
{
    const struct joule_rapl_info *info = &p->sensor.info;
    const struct joule_access *a = &p->access;

    fputs("CPU\n", out);
    row(out, "model", "%s", info->cpu_name[0] ? info->cpu_name : "unknown");
    row(out, "vendor", "%s family %u model %u",
        info->vendor[0] ? info->vendor : "unknown", info->family, info->model);
    row(out, "RAPL known as", "%s", info->row ? info->row : "not known");
    row(out, "packages, dies", "%u, %u", info->packages, info->dies);
    row(out, "virtual machine", "%s", info->hypervisor ? "yes" : "no");
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

static void wrap_text(const struct joule_domain *domain, uint64_t mw,
                      char buf[32])
{
    if (domain->width_bits >= 64)
        snprintf(buf, 32, "never");
    else if (mw == 0)
        snprintf(buf, 32, "-");
    else
        joule_text_seconds(joule_sensor_wrap_s(domain, mw), buf, 32);
}

static void print_domain(FILE *out, const struct joule_sensor_domain *d)
{
    char unit[JOULE_UNIT_TEXT_MAX], wrap[32], wrap_now[32], power[32];

    joule_text_unit(d->domain.unit, unit);
    wrap_text(&d->domain, JOULE_DOMAIN_POWER_MAX_W * 1000, wrap);
    wrap_text(&d->domain, d->power_mw, wrap_now);
    if (d->state >= JOULE_COUNTER_MOVING)
        watts(d->power_mw, power);
    else
        snprintf(power, sizeof(power), "%s", joule_report_state(d->state));
    fprintf(out, "  %-18s %-5s %5u %14s %4u %12s %12s %14s\n", d->domain.name,
            d->domain.in_total ? "yes" : "no", (unsigned)d->domain.cpu, unit,
            d->domain.width_bits, wrap, wrap_now, power);
}

static void print_sensor(FILE *out, const struct joule_sensor *s)
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

static void print_board(FILE *out, const struct joule_node *n)
{
    const struct joule_snapshot *s = &n->snapshot;
    char power[32], average[32];

    fputs("\nBoard of slurmd in /run/slurm-joule/", out);
    put(out, "%s", n->name);
    putc('\n', out);
    if (!n->present) {
        row(out, "none", "%s", n->error.text);
        return;
    }
    row(out, "last sample", "%.3f s ago, one every %.3f s: %s",
        (double)n->age_ns / 1e9, (double)s->period_ns / 1e9,
        n->fresh ? "slurmd measures" : "slurmd does not measure now");
    if (s->tally.valid)
        row(out, "total", "%" PRIu64 ".%03u J in %.0f s",
            s->tally.node_uj / 1000000,
            (unsigned)(s->tally.node_uj / 1000 % 1000),
            (double)(s->tally.mono_ns - s->since_ns) / 1e9);
    else
        row(out, "total", "unknown");
    row(out, "power", "%s, on average %s", watts(s->node_mw, power),
        watts(s->average_mw, average));
    row(out, "samples", "%" PRIu64, s->samples);
    row(out, "wraps", "%" PRIu64, n->wraps);
    row(out, "gaps", "%.3f s", (double)s->tally.gap_ns / 1e9);
    row(out, "failed readings", "%" PRIu64, n->errors);
}

static void print_conf(FILE *out, const struct joule_probe *p)
{
    const struct joule_confcheck *c = &p->conf;
    char value[JOULE_OPTION_TEXT_MAX + 1];

    fputs("\nConfiguration\n", out);
    if (!p->conf_checked) {
        row(out, "not checked", "--no-conf");
        return;
    }
    row(out, "slurm.conf", "%s", c->slurm_conf[0] ? c->slurm_conf : "none");
    row(out, "acct_gather.conf", "%s",
        c->acct_gather_conf[0] ? c->acct_gather_conf : "none");
    row(out, "plugin", "%s", c->plugin[0] ? c->plugin : "not found");
    for (const struct joule_option *o = joule_config_options; o->key; o++) {
        if (o->type == JOULE_OPTION_IGNORED)
            continue;
        joule_option_format(o, &c->config, value, sizeof(value));
        row(out, o->key, "%s", value);
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
    print_cpu(out, p);
    print_sensor(out, &p->sensor);
    print_board(out, &p->node);
    print_conf(out, p);
    print_findings(out, &p->findings);
    fprintf(out, "\nA job on this node %s be measured%s.\n",
            joule_probe_good(p) ? "would" : "would not",
            p->conf_checked ? "" : " (the configuration was not checked)");
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>
#include <string.h>

#include "config.h"
#include "tools/joule/json.h"
#include "tools/joule/ledger_command.h"
#include "tools/joule/probe.h"
#include "tools/joule/text.h"

static const char *kind_name(enum joule_domain_kind kind)
{
    static const char *const names[] = {
        [JOULE_DOMAIN_PACKAGE] = "package", [JOULE_DOMAIN_DRAM] = "dram",
        [JOULE_DOMAIN_PP0] = "pp0",         [JOULE_DOMAIN_PP1] = "pp1",
        [JOULE_DOMAIN_PSYS] = "psys",       [JOULE_DOMAIN_CORE] = "core",
    };

    return names[kind];
}

static const char *ipmi_kind_name(enum joule_ipmi_sensor_kind kind)
{
    switch (kind) {
    case JOULE_IPMI_SENSOR_DCMI:
        return "DCMI";
    case JOULE_IPMI_SENSOR_DCMI_ENHANCED:
        return "DCMI_ENHANCED";
    default:
        return "record";
    }
}

static void put_seconds(struct joule_json *j, const char *key, double s)
{
    if (s <= 0 || s > 1e12)
        joule_json_null(j, key);
    else
        joule_json_milli(j, key, (uint64_t)(s * 1000 + 0.5));
}

static void put_cpu(struct joule_json *j, const struct joule_probe_sensor *s)
{
    const struct joule_rapl_info *info = &s->info;

    joule_json_object(j, "cpu");
    joule_json_text(j, "vendor", info->cpu.vendor);
    joule_json_text(j, "name", info->cpu.name);
    joule_json_u64(j, "family", info->cpu.family);
    joule_json_u64(j, "model", info->cpu.model);
    joule_json_string(j, "rapl_row", info->row);
    joule_json_string(j, "counters_read_in", s->way);
    joule_json_u64(j, "packages", info->packages);
    joule_json_u64(j, "dies", info->dies);
    joule_json_bool(j, "hypervisor", info->cpu.hypervisor);
    joule_json_close(j);
}

static void put_access(struct joule_json *j, const struct joule_access *a)
{
    joule_json_object(j, "access");
    joule_json_u64(j, "effective_user_id", a->euid);
    joule_json_string(j, "msr_device", a->msr);
    joule_json_bool(j, "msr_readable", a->msr_error == 0);
    joule_json_string(j, "msr_error",
                      a->msr_error ? strerror(a->msr_error) : NULL);
    joule_json_text(j, "kernel_lockdown", a->lockdown);
    joule_json_close(j);
}

static void put_domain(struct joule_json *j,
                       const struct joule_probe_sensor_domain *d)
{
    char unit[JOULE_UNIT_TEXT_MAX];
    bool moves = d->state >= JOULE_COUNTER_MOVING;

    joule_text_unit(d->domain.unit, unit);
    joule_json_object(j, NULL);
    joule_json_string(j, "name", d->domain.name);
    joule_json_string(j, "kind", kind_name(d->domain.kind));
    joule_json_u64(j, "package", d->domain.package);
    joule_json_u64(j, "die", d->domain.die);
    joule_json_u64(j, "cpu", d->domain.cpu);
    joule_json_bool(j, "in_total", d->domain.in_total);
    joule_json_number(j, "unit_uj_per_tick", unit);
    joule_json_u64(j, "width_bits", d->domain.width_bits);
    put_seconds(
        j, "wrap_at_1000_w_s",
        joule_probe_sensor_wrap_s(&d->domain, JOULE_DOMAIN_POWER_MAX_W * 1000));
    put_seconds(j, "wrap_at_power_s",
                joule_probe_sensor_wrap_s(&d->domain, d->power_mw));
    joule_json_string(j, "state", joule_probe_state_name(d->state));
    joule_json_u64_if(j, "power_mw", moves, d->power_mw);
    joule_json_u64(j, "read_errors", d->errors);
    joule_json_close(j);
}

static void put_sensor(struct joule_json *j, const struct joule_probe_sensor *s)
{
    char raw[32];

    joule_json_object(j, "sensor");
    joule_json_string(j, "type", "rapl");
    joule_json_bool(j, "opened", s->opened);
    joule_json_text(j, "error", s->error.text);
    snprintf(raw, sizeof(raw), "0x%llx", (unsigned long long)s->info.unit_raw);
    joule_json_string(j, "unit_register", s->opened ? raw : NULL);
    if (s->info.filtering_known)
        joule_json_bool(j, "energy_filtering", s->info.filtering);
    else
        joule_json_null(j, "energy_filtering");
    joule_json_i64(j, "measured_ns", s->measured_ns);
    joule_json_bool(j, "moves", s->moves);
    joule_json_u64_if(j, "node_power_mw", s->moves, s->node_mw);
    joule_json_array(j, "domains");
    for (size_t i = 0; i < s->count; i++)
        put_domain(j, &s->domains[i]);
    joule_json_close(j);
    joule_json_close(j);
}

/* Milliwatts, as all power in this document. */
static void put_w(struct joule_json *j, const char *key, double watts)
{
    char text[40];

    snprintf(text, sizeof(text), "%.0f", watts * 1000);
    joule_json_number(j, key, isfinite(watts) ? text : "null");
}

static void put_found(struct joule_json *j, const struct joule_wire_found *f)
{
    bool is_record = f->kind == JOULE_IPMI_SENSOR_RECORD;

    joule_json_string(j, "name", f->name);
    joule_json_string(j, "kind", ipmi_kind_name(f->kind));
    joule_json_u64_if(j, "record_id", is_record, f->record_id);
    joule_json_u64_if(j, "number", is_record, f->number);
    joule_json_string(j, "unit", f->unit);
    put_w(j, "step_mw", f->step_w);
    put_w(j, "highest_mw", f->max_w);
}

static void put_label(struct joule_json *j, const struct joule_bmc *bmc,
                      uint32_t i)
{
    const struct joule_bmc_label *label = &bmc->labels[i];
    uint64_t ok = label->readings[JOULE_POWER_OK];
    double unknown = NAN;

    joule_json_object(j, NULL);
    joule_json_string(j, "label", label->name);
    put_w(j, "last_power_mw", ok ? label->last_w : unknown);
    put_w(j, "mean_power_mw", ok ? label->sum_w / (double)ok : unknown);
    put_w(j, "lowest_power_mw", ok ? label->min_w : unknown);
    put_w(j, "highest_power_mw", ok ? label->max_w : unknown);
    joule_json_object(j, "readings");
    for (int s = 0; s < JOULE_POWER_STATUS_COUNT; s++)
        joule_json_u64(j, joule_bmc_status_name((enum joule_power_status)s),
                       label->readings[s]);
    joule_json_close(j);
    joule_json_array(j, "sensors");
    for (uint32_t n = 0; bmc->connected && n < bmc->sensor_count; n++) {
        if (bmc->sensors[n].label != i)
            continue;
        joule_json_object(j, NULL);
        put_found(j, &bmc->sensors[n].found);
        joule_json_close(j);
    }
    joule_json_close(j);
    joule_json_close(j);
}

static void put_list(struct joule_json *j, const struct joule_bmc *bmc)
{
    const struct joule_wire_reply *list = &bmc->list;

    joule_json_array(j, "sensors_in_watts");
    for (uint32_t i = 0; i < list->count; i++) {
        const struct joule_wire_value *v = &list->value[i];

        joule_json_object(j, NULL);
        put_found(j, &list->found[i]);
        joule_json_bool(j, "used", joule_bmc_is_used(bmc, i));
        joule_json_string(j, "reading", joule_bmc_status_name(v->status));
        put_w(j, "power_mw", v->status == JOULE_POWER_OK ? v->watts : NAN);
        joule_json_close(j);
    }
    joule_json_close(j);
}

static void put_bmc(struct joule_json *j, const struct joule_bmc *bmc,
                    const struct joule_energy_config *config)
{
    bool in_band = bmc->in_order && !bmc->lan;

    joule_json_object(j, "bmc");
    joule_json_string(j, "reader", bmc->program);
    joule_json_bool(j, "configuration_in_order", bmc->in_order);
    joule_json_string(
        j, "driver", bmc->in_order ? joule_bmc_driver_name(bmc->driver) : NULL);
    joule_json_text(j, "host", bmc->host);
    joule_json_text(j, "credentials_file", config->ipmi_credentials_file);
    joule_json_text(j, "device", bmc->device);
    joule_json_string(j, "device_error",
                      in_band && bmc->device_error ? strerror(bmc->device_error)
                                                   : NULL);
    joule_json_bool(j, "connected", bmc->connected);
    joule_json_text(j, "error", bmc->error.text);
    joule_json_u64_if(j, "connect_ns", bmc->connect_ns > 0,
                      (uint64_t)bmc->connect_ns);
    joule_json_i64(j, "measured_ns", bmc->measured_ns);
    joule_json_u64(j, "readings", bmc->readings);
    joule_json_u64(j, "failed_readings", bmc->failures);
    joule_json_u64_if(j, "reading_median_ns", bmc->latency_ns > 0,
                      (uint64_t)bmc->latency_ns);
    joule_json_u64(j, "changes", bmc->changes);
    joule_json_u64_if(j, "shortest_change_ns", bmc->refresh_ns > 0,
                      (uint64_t)bmc->refresh_ns);
    joule_json_bool(j, "measures", bmc->measures);
    joule_json_array(j, "labels");
    for (uint32_t i = 0; i < bmc->label_count; i++)
        put_label(j, bmc, i);
    joule_json_close(j);
    put_list(j, bmc);
    joule_json_close(j);
}

static void put_node_total(struct joule_json *j, const struct joule_node *n)
{
    const struct joule_snapshot *s = &n->snapshot;

    joule_json_object(j, "node_total");
    joule_json_bool(j, "present", n->present);
    joule_json_text(j, "error", n->error.text);
    if (n->present) {
        joule_json_bool(j, "fresh", n->fresh);
        joule_json_i64(j, "age_ns", n->age_ns);
        joule_json_i64(j, "period_ns", s->period_ns);
        joule_json_i64(j, "sample_wall_ns", s->wall_ns);
        joule_json_i64(j, "counted_ns", s->total.mono_ns - s->since_ns);
        joule_json_bool(j, "valid", s->total.valid);
        joule_json_bool(j, "stale", s->total.stale != 0);
        joule_json_u64_if(j, "node_total_uj", s->total.valid, s->total.node_uj);
        joule_json_u64_if(j, "node_power_mw", s->total.mw != JOULE_MW_UNKNOWN,
                          s->total.mw);
        joule_json_u64_if(j, "average_power_mw",
                          s->average_mw != JOULE_MW_UNKNOWN, s->average_mw);
        joule_json_u64(j, "samples", s->samples);
        joule_json_i64(j, "gap_ns", s->total.gap_ns);
        joule_json_u64(j, "wraps", n->wraps);
        joule_json_u64(j, "read_errors", n->errors);
        if (n->is_power && n->state.integrator[0].refresh_ns > 0) {
            joule_json_i64(j, "bmc_refresh_ns",
                           n->state.integrator[0].refresh_ns);
            joule_json_u64(j, "not_refreshed", n->state.integrator[0].held);
        }
    }
    joule_json_close(j);
}

static void put_decimal(struct joule_json *j, const char *key, double value)
{
    char text[64];

    snprintf(text, sizeof(text), "%.3f", value);
    joule_json_number(j, key, text);
}

static void put_fused(struct joule_json *j, const struct joule_node *n)
{
    static const char *const bases[JOULE_FUSED_BASES] = {
        [JOULE_FUSED_NONE] = "none_ns",
        [JOULE_FUSED_BMC] = "bmc_ns",
        [JOULE_FUSED_RAPL] = "rapl_ns",
        [JOULE_FUSED_BOTH] = "bmc_and_rapl_ns",
    };
    const struct joule_fused_state *s = &n->state.fused;
    const struct joule_lag_model *f = &s->lag_model;

    if (!n->present || !n->is_fused) {
        joule_json_null(j, "fused");
        return;
    }
    joule_json_object(j, "fused");
    joule_json_string(
        j, "basis", joule_fused_basis_words((enum joule_fused_basis)s->basis));
    for (int i = 0; i < JOULE_FUSED_BASES; i++)
        joule_json_i64(j, bases[i], s->basis_ns[i]);
    joule_json_bool(j, "learned", joule_lag_model_learned(f));
    joule_json_string(
        j, "lag", joule_lag_model_learned(f) ? joule_lag_model_words(f) : NULL);
    put_decimal(j, "gain", f->gain);
    put_decimal(j, "rest_w", f->rest_w);
    put_decimal(j, "deviation_w", joule_lag_model_deviation(f));
    joule_json_close(j);
}

static void put_ledger(struct joule_json *j,
                       const struct joule_attribution_check *s)
{
    joule_json_object(j, "ledger");
    joule_json_bool(j, "present", s->present);
    joule_json_text(j, "error", s->error.text);
    joule_json_string(j, "attribution",
                      s->present ? joule_ledger_how(s->totals.how) : NULL);
    if (s->present) {
        joule_json_u64(j, "steps", s->rows);
        joule_json_u64(j, "jobs", s->jobs);
        joule_ledger_put_totals(j, &s->totals);
    }
    joule_json_close(j);
}

static void put_conf(struct joule_json *j, const struct joule_probe *p)
{
    char value[JOULE_OPTION_TEXT_MAX + 1];

    joule_json_object(j, "configuration");
    joule_json_bool(j, "checked", p->conf_checked);
    joule_json_text(j, "slurm_conf", p->conf.slurm_conf);
    joule_json_text(j, "acct_gather_conf", p->conf.acct_gather_conf);
    joule_json_text(j, "plugin", p->conf.plugin);
    joule_json_object(j, "options");
    for (const struct joule_option *row = joule_energy_config_options; row->key;
         row++) {
        if (row->type == JOULE_OPTION_IGNORED)
            continue;
        joule_option_format(row, &p->conf.config, value, sizeof(value));
        joule_json_string(j, row->key, value);
    }
    joule_json_close(j);
    joule_json_close(j);
}

static void put_findings(struct joule_json *j,
                         const struct joule_findings *findings)
{
    joule_json_array(j, "findings");
    for (size_t i = 0; i < findings->count; i++) {
        const struct joule_finding *f = &findings->list[i];

        joule_json_object(j, NULL);
        joule_json_string(j, "level", joule_level_name(f->level));
        joule_json_string(j, "id", f->id);
        joule_json_string(j, "text", f->text.text);
        joule_json_text(j, "file", f->place.file);
        joule_json_u64_if(j, "line", f->place.line, f->place.line);
        joule_json_text(j, "write", f->advice.text);
        joule_json_close(j);
    }
    joule_json_close(j);
    joule_json_u64(j, "errors", findings->total[JOULE_FAULT]);
    joule_json_u64(j, "warnings", findings->total[JOULE_WARNING]);
    joule_json_u64(j, "notes", findings->total[JOULE_NOTE]);
}

void joule_probe_print_json(FILE *out, const struct joule_probe *p)
{
    struct joule_json j;

    joule_json_begin(&j, out);
    joule_json_string(&j, "program", PACKAGE_NAME);
    joule_json_string(&j, "version", PACKAGE_VERSION);
    joule_json_string(&j, "node", p->node.name);
    joule_json_bool(&j, "job_would_be_measured", joule_probe_good(p));
    joule_json_string(&j, "measured_by",
                      p->choice.text[0] ? p->choice.text : NULL);
    put_cpu(&j, &p->sensor);
    put_access(&j, &p->access);
    put_sensor(&j, &p->sensor);
    if (p->ipmi)
        put_bmc(&j, &p->bmc, &p->conf.config);
    else
        joule_json_null(&j, "bmc");
    put_node_total(&j, &p->node);
    put_fused(&j, &p->node);
    put_ledger(&j, &p->share);
    put_conf(&j, p);
    put_findings(&j, &p->findings);
    joule_json_end(&j);
}

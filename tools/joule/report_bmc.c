/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/joule/report.h"

static double seconds(int64_t ns)
{
    return (double)ns / (double)JOULE_NS_PER_S;
}

static const char *kind_name(enum joule_ipmi_sensor_kind kind)
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

/* ---- text ---- */

static void print_way(FILE *out, const struct joule_bmc *bmc,
                      const struct joule_energy_config *config)
{
    const char *file = config->ipmi_credentials_file;

    joule_report_row(out, "running as", "%s (user %u)",
                     bmc->euid == 0 ? "root" : "not root", (unsigned)bmc->euid);
    joule_report_row(out, "reader", "%s", bmc->program);
    if (!bmc->in_order) {
        joule_report_row(out, "not asked", "%s", bmc->error.text);
        return;
    }
    joule_report_row(out, "asked through", "%s",
                     joule_bmc_driver_name(bmc->driver));
    if (bmc->lan) {
        joule_report_row(out, "host", "%s", bmc->host);
        joule_report_row(out, "credentials", "%s",
                         file[0]                ? file
                         : bmc->has_credentials ? "in acct_gather.conf"
                                                : "none");
    } else if (bmc->device[0]) {
        joule_report_row(out, "device", "%s: %s", bmc->device,
                         bmc->device_error ? strerror(bmc->device_error)
                                           : "can be opened");
    }
}

/* A change at each reading tells how often it was asked, not more. */
static void print_refresh(FILE *out, const struct joule_bmc *bmc)
{
    if (bmc->readings < 2)
        return;
    if (bmc->changes == 0)
        joule_report_row(out, "value", "did not change");
    else if (bmc->refresh_ns == 0)
        joule_report_row(out, "value", "changed once");
    else if (bmc->refresh_ns < 3 * JOULE_BMC_PAUSE_NS)
        joule_report_row(out, "value", "changes at each reading");
    else
        joule_report_row(out, "value", "changes every %.*f s",
                         bmc->refresh_ns < JOULE_NS_PER_S ? 2 : 1,
                         seconds(bmc->refresh_ns));
}

static void print_sensors(FILE *out, const struct joule_bmc *bmc)
{
    fprintf(out, "  %-18s %-18s %-8s %4s %10s %12s\n", "label", "sensor",
            "record", "unit", "step", "highest");
    for (uint32_t i = 0; i < bmc->sensor_count; i++) {
        const struct joule_bmc_sensor *s = &bmc->sensors[i];
        char record[16];

        snprintf(record, sizeof(record), "%u", s->found.record_id);
        joule_report_put(out, "  %-18s %-18s %-8s %4s %10g %12g",
                         bmc->labels[s->label].name, s->found.name,
                         s->found.kind == JOULE_IPMI_SENSOR_RECORD ? record
                                                                   : "-",
                         s->found.unit, s->found.step_w, s->found.max_w);
        putc('\n', out);
    }
}

static void print_label(FILE *out, const struct joule_bmc_label *label)
{
    uint64_t ok = label->readings[JOULE_POWER_OK];

    if (ok > 0)
        joule_report_put(out,
                         "  %-18s %9.1f W %9.1f W %9.1f W %9.1f W %9" PRIu64,
                         label->name, label->last_w, label->sum_w / (double)ok,
                         label->min_w, label->max_w, ok);
    else
        joule_report_put(out, "  %-18s %11s %11s %11s %11s %9u", label->name,
                         "unknown", "-", "-", "-", 0u);
    for (int s = JOULE_POWER_OK + 1; s < JOULE_POWER_STATUS_COUNT; s++)
        if (label->readings[s] > 0)
            joule_report_put(out, ", %" PRIu64 " %s", label->readings[s],
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
            joule_report_row(out, "not used", "%s (record %u): %s",
                             list->found[i].name, list->found[i].record_id,
                             power);
        else
            joule_report_row(out, "not used", "%s: %s", list->found[i].name,
                             power);
    }
    if (list->more > 0)
        joule_report_row(out, "not used", "and %" PRIu32 " more", list->more);
}

void joule_report_bmc_text(FILE *out, const struct joule_bmc *bmc,
                           const struct joule_energy_config *config)
{
    fprintf(out, "\nBMC (IPMI), read for %.3f s\n", seconds(bmc->measured_ns));
    print_way(out, bmc, config);
    if (!bmc->in_order)
        return;
    if (bmc->connected) {
        if (bmc->connect_ns > 0)
            joule_report_row(out, "connected", "in %.3f s",
                             seconds(bmc->connect_ns));
        if (bmc->latency_ns > 0)
            joule_report_row(out, "a reading takes",
                             "%.4g ms (median of %" PRIu64 ")",
                             (double)bmc->latency_ns / 1e6, bmc->readings);
        print_refresh(out, bmc);
        joule_report_row(out, "failed readings", "%" PRIu64, bmc->failures);
        print_sensors(out, bmc);
        fprintf(out, "  %-18s %11s %11s %11s %11s %9s\n", "label", "last",
                "mean", "lowest", "highest", "readings");
        for (uint32_t i = 0; i < bmc->label_count; i++)
            print_label(out, &bmc->labels[i]);
    } else {
        joule_report_row(out, "not connected", "%s", bmc->error.text);
    }
    print_candidates(out, bmc);
}

/* ---- JSON ---- */

static void put_w(struct joule_json *j, const char *key, double watts)
{
    char text[40];

    if (!isfinite(watts)) {
        joule_json_null(j, key);
        return;
    }
    /* Milliwatts, as all power in this document. */
    snprintf(text, sizeof(text), "%.0f", watts * 1000);
    joule_json_number(j, key, text);
}

static void put_found(struct joule_json *j, const struct joule_wire_found *f)
{
    joule_json_string(j, "name", f->name);
    joule_json_string(j, "kind", kind_name(f->kind));
    if (f->kind == JOULE_IPMI_SENSOR_RECORD) {
        joule_json_u64(j, "record_id", f->record_id);
        joule_json_u64(j, "number", f->number);
    } else {
        joule_json_null(j, "record_id");
        joule_json_null(j, "number");
    }
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
    joule_json_close_object(j);
    joule_json_array(j, "sensors");
    for (uint32_t n = 0; bmc->connected && n < bmc->sensor_count; n++) {
        if (bmc->sensors[n].label != i)
            continue;
        joule_json_object(j, NULL);
        put_found(j, &bmc->sensors[n].found);
        joule_json_close_object(j);
    }
    joule_json_close_array(j);
    joule_json_close_object(j);
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
        joule_json_close_object(j);
    }
    joule_json_close_array(j);
}

static void put_ns(struct joule_json *j, const char *key, int64_t ns)
{
    if (ns > 0)
        joule_json_i64(j, key, ns);
    else
        joule_json_null(j, key);
}

static const char *or_null(const char *s)
{
    return *s ? s : NULL;
}

void joule_report_bmc_json(struct joule_json *j, const struct joule_bmc *bmc,
                           const struct joule_energy_config *config)
{
    bool in_band = bmc->in_order && !bmc->lan;

    joule_json_object(j, "bmc");
    joule_json_string(j, "reader", bmc->program);
    joule_json_bool(j, "configuration_in_order", bmc->in_order);
    joule_json_string(
        j, "driver", bmc->in_order ? joule_bmc_driver_name(bmc->driver) : NULL);
    joule_json_string(j, "host", or_null(bmc->host));
    joule_json_string(j, "credentials_file",
                      or_null(config->ipmi_credentials_file));
    joule_json_string(j, "device", or_null(bmc->device));
    joule_json_string(j, "device_error",
                      in_band && bmc->device_error ? strerror(bmc->device_error)
                                                   : NULL);
    joule_json_bool(j, "connected", bmc->connected);
    joule_json_string(j, "error", or_null(bmc->error.text));
    put_ns(j, "connect_ns", bmc->connect_ns);
    joule_json_i64(j, "measured_ns", bmc->measured_ns);
    joule_json_u64(j, "readings", bmc->readings);
    joule_json_u64(j, "failed_readings", bmc->failures);
    put_ns(j, "reading_median_ns", bmc->latency_ns);
    joule_json_u64(j, "changes", bmc->changes);
    put_ns(j, "shortest_change_ns", bmc->refresh_ns);
    joule_json_bool(j, "measures", bmc->measures);
    joule_json_array(j, "labels");
    for (uint32_t i = 0; i < bmc->label_count; i++)
        put_label(j, bmc, i);
    joule_json_close_array(j);
    put_list(j, bmc);
    joule_json_close_object(j);
}

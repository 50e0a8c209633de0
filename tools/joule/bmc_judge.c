/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/sensors/ipmi_choice.h"
#include "tools/joule/probe.h"

#define KEY "EnergyIPMIPowerSensors"

/* A line to write is of use only as a whole. */
#define LINE_MAX_SIZE (JOULE_ERROR_MAX - 8)

/* Changes that may be called a rhythm. */
#define CHANGES_MIN 3

/* ---- lines for the configuration ---- */

/* Whether the line has this label already. */
static bool has_label(const char *line, const char *label)
{
    char begin[JOULE_IPMI_LABEL_SIZE + 2];
    const char *first = strchr(line, '=') + 1;
    size_t len = strlen(label);

    snprintf(begin, sizeof(begin), ";%s=", label);
    return strcasestr(line, begin) ||
           (strncasecmp(first, label, len) == 0 && first[len] == '=');
}

/* A label that the line does not have: of the sensor's name what a label may
 * have, else its record. */
static void label_word(const char *line, const struct joule_wire_found *f,
                       char buf[JOULE_IPMI_LABEL_SIZE])
{
    size_t len = 0;

    for (const char *c = f->name; *c && len < JOULE_IPMI_LABEL_SIZE - 1; c++)
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                   "0123456789_-",
                   *c))
            buf[len++] = *c;
    buf[len] = '\0';
    if (len == 0 || has_label(line, buf))
        snprintf(buf, JOULE_IPMI_LABEL_SIZE, "record-%u", f->record_id);
}

static void append(char line[LINE_MAX_SIZE], const char *text)
{
    strncat(line, text, LINE_MAX_SIZE - strlen(line) - 1);
}

/* What is read now, label by label. */
static void present_labels(const struct joule_bmc *bmc,
                           char line[LINE_MAX_SIZE])
{
    char word[JOULE_IPMI_WORD_SIZE];

    for (uint32_t i = 0; i < bmc->label_count; i++) {
        bool first = true;

        append(line, i > 0 ? ";" : "");
        append(line, bmc->labels[i].name);
        for (uint32_t n = 0; n < bmc->sensor_count; n++) {
            if (bmc->sensors[n].label != i)
                continue;
            joule_ipmi_sensor_word(&bmc->list, &bmc->sensors[n].found, word);
            append(line, first ? "=" : ",");
            append(line, word);
            first = false;
        }
    }
}

/* The option to believe what covers the node and says that it does not measure,
 * or NULL. */
static const char *believe_line(const struct joule_wire_reply *list)
{
    const char *line = NULL;

    for (uint32_t i = 0; i < list->count; i++) {
        if (joule_ipmi_coverage(&list->found[i]) == JOULE_IPMI_PART)
            continue;
        if (list->value[i].status == JOULE_POWER_NOT_ACTIVE)
            return "JouleIPMIIgnoreInactive=yes";
        if (list->value[i].status == JOULE_POWER_NOT_SCANNED)
            line = "EnergyIPMIIgnoreScanningDisabled=yes";
    }
    return line;
}

/* The line that makes the node's power of what covers it, or lets it be
 * believed; empty: there is none. */
static void node_line(const struct joule_bmc *bmc, char line[LINE_MAX_SIZE])
{
    const struct joule_wire_reply *list = &bmc->list;
    struct joule_ipmi_choice choice;

    const char *believe = believe_line(list);

    line[0] = '\0';
    joule_ipmi_choose(list, &choice, NULL);
    if (choice.count > 0)
        joule_ipmi_choice_line(list, &choice, line, LINE_MAX_SIZE);
    else if (believe)
        snprintf(line, LINE_MAX_SIZE, "%s", believe);
}

/* ---- findings ---- */

/* Whether it is the file that keeps the BMC from being asked. */
static bool judge_credentials_file(struct joule_probe *p)
{
    const struct joule_bmc *bmc = &p->bmc;
    static const char key[] = "JouleIPMICredentialsFile";

    if (strncmp(bmc->error.text, key, sizeof(key) - 1) != 0)
        return false;
    joule_finding_add(&p->findings, JOULE_FAULT, "bmc-credentials", NULL, NULL,
                      "%s (the file has two lines, \"username NAME\" and "
                      "\"password WORDS\", and mode 0600)",
                      bmc->error.text);
    return true;
}

static void judge_configuration(struct joule_probe *p)
{
    const struct joule_bmc *bmc = &p->bmc;
    bool lan = joule_ipmi_is_lan(&p->conf.config.ipmi);
    const char *text = bmc->error.text;

    if (lan && !p->conf.config.ipmi_host[0])
        joule_finding_add(&p->findings, JOULE_FAULT, "bmc-host", NULL,
                          "JouleIPMIHost=%n-bmc", "%s", text);
    else if (!judge_credentials_file(p))
        joule_finding_add(&p->findings, JOULE_FAULT, "bmc-configuration", NULL,
                          NULL, "%s", text);
}

static void judge_credentials(struct joule_probe *p)
{
    const struct joule_bmc *bmc = &p->bmc;
    static const char advice[] =
        "JouleIPMICredentialsFile=/etc/slurm/bmc.credentials";

    if (!bmc->lan || bmc->has_credentials)
        return;
    if (bmc->connected)
        joule_finding_add(&p->findings, JOULE_WARNING, "bmc-credentials", NULL,
                          advice,
                          "the BMC answers without a user name and a "
                          "password: anybody on its network can ask it");
    else
        joule_finding_add(&p->findings, JOULE_FAULT, "bmc-credentials", NULL,
                          advice,
                          "no user name and password are set for the BMC at "
                          "%s",
                          bmc->host);
}

static void judge_connection(struct joule_probe *p)
{
    const struct joule_bmc *bmc = &p->bmc;
    bool no_device = !bmc->lan && bmc->device_error == ENOENT;
    char line[LINE_MAX_SIZE];

    node_line(bmc, line);
    if (bmc->listed && bmc->list.count > 0)
        joule_finding_add(&p->findings, JOULE_FAULT, "bmc-sensors", NULL,
                          line[0] ? line : NULL, "%s", bmc->error.text);
    else if (bmc->listed)
        joule_finding_add(&p->findings, JOULE_FAULT, "bmc-no-power", NULL, NULL,
                          "the BMC has no sensor in watts, and no DCMI power: "
                          "it cannot measure this node");
    else if (no_device)
        joule_finding_add(&p->findings, JOULE_FAULT, "bmc-device", NULL,
                          "modprobe ipmi_si && modprobe ipmi_devintf",
                          "%s: there is no device %s", bmc->error.text,
                          bmc->device);
    else if (!judge_credentials_file(p))
        joule_finding_add(&p->findings, JOULE_FAULT, "bmc", NULL, NULL, "%s",
                          bmc->error.text);
}

/* "2 zero, 1 refused", without those that are measurements. */
static uint64_t count_others(const struct joule_bmc_label *label, char *buf,
                             size_t size)
{
    uint64_t total = 0;
    size_t len = 0;

    buf[0] = '\0';
    for (int s = JOULE_POWER_OK + 1; s < JOULE_POWER_STATUS_COUNT; s++) {
        if (!label->readings[s])
            continue;
        if (len < size)
            len += (size_t)snprintf(
                buf + len, size - len, "%s%" PRIu64 " %s", total ? ", " : "",
                label->readings[s],
                joule_bmc_status_name((enum joule_power_status)s));
        total += label->readings[s];
    }
    return total;
}

static void judge_labels(struct joule_probe *p)
{
    const struct joule_bmc *bmc = &p->bmc;
    char line[LINE_MAX_SIZE], others[256];

    for (uint32_t i = 0; i < bmc->label_count; i++) {
        const struct joule_bmc_label *label = &bmc->labels[i];
        uint64_t n = count_others(label, others, sizeof(others));

        if (n == 0)
            continue;
        node_line(bmc, line);
        if (label->readings[JOULE_POWER_OK] == 0)
            joule_finding_add(
                &p->findings, i == 0 ? JOULE_FAULT : JOULE_WARNING,
                "bmc-no-measurement", NULL, i == 0 && line[0] ? line : NULL,
                "no reading of the label %s is a measurement: %s", label->name,
                others);
        else
            joule_finding_add(
                &p->findings, JOULE_WARNING, "bmc-no-measurement", NULL, NULL,
                "of %" PRIu64 " readings of the label %s some "
                "are no measurement: %s",
                n + label->readings[JOULE_POWER_OK], label->name, others);
    }
    if (bmc->readings == 0)
        joule_finding_add(&p->findings, JOULE_FAULT, "bmc-readings", NULL, NULL,
                          "the BMC could be connected to, but not read: %s",
                          bmc->error.text);
    else if (bmc->failures > 0)
        joule_finding_add(
            &p->findings, JOULE_WARNING, "bmc-readings", NULL, NULL,
            "%" PRIu64 " of %" PRIu64 " readings failed: %s", bmc->failures,
            bmc->failures + bmc->readings, bmc->error.text);
}

/* Whole seconds, rounded up from 5 % more. */
static unsigned long long whole_s(int64_t ns)
{
    return (unsigned long long)((ns + JOULE_NS_PER_S * 19 / 20 - 1) /
                                JOULE_NS_PER_S);
}

static void judge_period(struct joule_probe *p)
{
    const struct joule_bmc *bmc = &p->bmc;
    int64_t period_ns = p->conf.config.sample_period_ns;
    char line[64];

    if (bmc->latency_ns > period_ns) {
        snprintf(line, sizeof(line), "JouleSamplePeriod=%llus",
                 whole_s(2 * bmc->latency_ns));
        joule_finding_add(&p->findings, JOULE_WARNING, "bmc-slow", NULL, line,
                          "a reading of the BMC takes %.3g s, longer than the "
                          "sample period of %.3g s",
                          (double)bmc->latency_ns / 1e9,
                          (double)period_ns / 1e9);
    } else if (bmc->changes >= CHANGES_MIN &&
               bmc->refresh_ns > period_ns + period_ns / 4) {
        if (bmc->refresh_ns < JOULE_NS_PER_S)
            snprintf(line, sizeof(line), "JouleSamplePeriod=%lldms",
                     (long long)((bmc->refresh_ns + 5 * JOULE_NS_PER_MS) /
                                 JOULE_NS_PER_MS / 10 * 10));
        else
            snprintf(line, sizeof(line), "JouleSamplePeriod=%llus",
                     whole_s(bmc->refresh_ns));
        joule_finding_add(&p->findings, JOULE_NOTE, "bmc-refresh", NULL, line,
                          "the BMC's value changed every %.3g s at the most "
                          "often, but is to be read every %.3g s: a shorter "
                          "period than the BMC's own tells nothing more",
                          (double)bmc->refresh_ns / 1e9,
                          (double)period_ns / 1e9);
    }
}

static void judge_candidates(struct joule_probe *p)
{
    const struct joule_bmc *bmc = &p->bmc;
    const struct joule_wire_reply *list = &bmc->list;
    char line[LINE_MAX_SIZE] = KEY "=", names[JOULE_ERROR_MAX] = "";
    char word[JOULE_IPMI_WORD_SIZE], label[JOULE_IPMI_LABEL_SIZE], more[128];
    size_t len = 0, labels = bmc->label_count;

    if (!bmc->listed) {
        joule_finding_add(&p->findings, JOULE_NOTE, "bmc-list", NULL, NULL,
                          "the BMC's other sensors cannot be listed: %s",
                          bmc->list_error.text);
        return;
    }
    present_labels(bmc, line);
    for (uint32_t i = 0; i < list->count; i++) {
        if (joule_bmc_is_used(bmc, i))
            continue;
        joule_ipmi_sensor_word(list, &list->found[i], word);
        label_word(line, &list->found[i], label);
        if (len < sizeof(names))
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
                                    len ? ", " : "", word);
        snprintf(more, sizeof(more), ";%s=%s", label, word);
        if (++labels > JOULE_IPMI_LABELS_MAX ||
            strlen(line) + strlen(more) + 4 > LINE_MAX_SIZE)
            continue;
        append(line, more);
    }
    if (!names[0])
        return;
    joule_ipmi_line_quote(line, sizeof(line));
    joule_finding_add(&p->findings, JOULE_NOTE, "bmc-candidates", NULL, line,
                      "the BMC has sensors in watts that are not used: %s",
                      names);
}

void joule_bmc_judge(struct joule_probe *p)
{
    const struct joule_bmc *bmc = &p->bmc;
    if (!bmc->in_order) {
        judge_configuration(p);
        return;
    }
    judge_credentials(p);
    if (!bmc->connected) {
        judge_connection(p);
        return;
    }
    judge_labels(p);
    judge_period(p);
    judge_candidates(p);
    if (bmc->remark.text[0])
        joule_finding_add(&p->findings, JOULE_NOTE, "bmc-remark", NULL, NULL,
                          "%s", bmc->remark.text);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/ipmi_choice.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define KEY "EnergyIPMIPowerSensors"

/* IPMI 2.0, table 43-13, and those of DCMI 1.5, table 6-1. */
enum {
    ENTITY_SYSTEM_BOARD = 7,
    ENTITY_POWER_SUPPLY = 10,
    ENTITY_POWER_UNIT = 19,
    ENTITY_SYSTEM_CHASSIS = 23,
    ENTITY_PROCESSING_BLADE = 41,
    ENTITY_DCMI_BASEBOARD = 66,
};

/* How far apart two sensors of the same power may be: losses of the power
 * supplies, other times of measuring. */
#define DISAGREE 0.20

/* ---- what a sensor covers ---- */

/* Whether a word of [name] (letters, with anything else around) begins with one
 * of [words]; with one in lower case, whether it is that. */
static bool has_word(const char *name, const char *const *words)
{
    while (*name) {
        size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz");

        for (const char *const *w = words; len > 0 && *w; w++) {
            size_t n = strlen(*w);
            bool whole = **w >= 'a';

            if ((whole ? len == n : len >= n) && strncasecmp(name, *w, n) == 0)
                return true;
        }
        name += len > 0 ? len : 1;
    }
    return false;
}

/* Watts that nothing draws. */
static const char *const limit_words[] = {
    "MAX", "MIN", "CAP", "LIMIT", "PEAK", "BUDGET", "RATED", "HEADROOM", NULL};

static const char *const part_words[] = {
    "CPU",   "PROC", "CORE", "SOC", "DIMM", "MEM", "DRAM", "GPU",
    "FAN",   "DISK", "HDD",  "SSD", "NVME", "PCI", "NIC",  "OCP",
    "RISER", "vr",   "VRM",  "OUT", "POUT", "io",  NULL};

/* Dell "Pwr Consumption", HPE "Power Meter", Lenovo "Sys Power", OpenBMC
 * "total_power": whatever entity the record names. */
static const char *const node_words[] = {
    "SYS", "TOTAL", "NODE", "CONSUMPTION", "METER", "SERVER", "PLATFORM", NULL};

/* "PS1 Input Power", "PSU1 PIN", "Power Supply 1" */
static const char *const supply_words[] = {"ps", "PSU", "SUPPLY", "SUPPLIES",
                                           NULL};

static const char *const input_words[] = {"in", "pin", "INPUT", NULL};

enum joule_ipmi_coverage
joule_ipmi_coverage(const struct joule_wire_found *found)
{
    const char *name = found->name;

    if (found->kind != JOULE_IPMI_SENSOR_RECORD)
        return JOULE_IPMI_NODE; /* DCMI 1.5, 6.6.1: the platform's power */
    if (has_word(name, limit_words) || has_word(name, part_words))
        return JOULE_IPMI_PART;
    if (has_word(name, node_words))
        return JOULE_IPMI_NODE;
    if (has_word(name, supply_words))
        return JOULE_IPMI_SUPPLY;
    switch (found->entity) {
    case ENTITY_SYSTEM_BOARD:
    case ENTITY_POWER_UNIT:
    case ENTITY_SYSTEM_CHASSIS:
    case ENTITY_PROCESSING_BLADE:
    case ENTITY_DCMI_BASEBOARD:
        return JOULE_IPMI_NODE;
    case ENTITY_POWER_SUPPLY:
        return JOULE_IPMI_SUPPLY;
    default:
        return JOULE_IPMI_PART;
    }
}

/* ---- the choice ---- */

/* What may be the node's power. */
struct candidates {
    const struct joule_wire_reply *list;
    uint32_t count;
    struct joule_ipmi_choice of[JOULE_IPMI_SENSORS_MAX + 1];
    struct joule_ipmi_choice some; /* the power supplies that read */
    const char *missing;           /* one that does not, or NULL */
};

static void add_sensor(const struct candidates *c, struct joule_ipmi_choice *to,
                       uint32_t i)
{
    to->index[to->count++] = i;
    to->watts += c->list->value[i].watts;
    to->step_w += c->list->found[i].step_w;
}

static void add_nodes(struct candidates *c, bool dcmi)
{
    for (uint32_t i = 0; i < c->list->count; i++)
        if (joule_ipmi_coverage(&c->list->found[i]) == JOULE_IPMI_NODE &&
            (c->list->found[i].kind != JOULE_IPMI_SENSOR_RECORD) == dcmi &&
            c->list->value[i].status == JOULE_POWER_OK)
            add_sensor(c, &c->of[c->count++], i);
}

/* All of them, or there is no sum.  Where some are named as inputs, the others
 * are the same watts once more. */
static void add_supplies(struct candidates *c)
{
    bool has_input = false;

    for (uint32_t i = 0; i < c->list->count; i++)
        if (joule_ipmi_coverage(&c->list->found[i]) == JOULE_IPMI_SUPPLY)
            has_input |= has_word(c->list->found[i].name, input_words);
    for (uint32_t i = 0; i < c->list->count; i++) {
        if (joule_ipmi_coverage(&c->list->found[i]) != JOULE_IPMI_SUPPLY ||
            (has_input && !has_word(c->list->found[i].name, input_words)))
            continue;
        if (c->list->value[i].status == JOULE_POWER_OK ||
            c->list->value[i].status == JOULE_POWER_ZERO) /* it stands by */
            add_sensor(c, &c->some, i);
        else
            c->missing = c->list->found[i].name;
    }
    if (!c->missing && c->some.watts > 0)
        c->of[c->count++] = c->some;
}

static bool agree(const struct joule_ipmi_choice *a,
                  const struct joule_ipmi_choice *b)
{
    double most = a->watts > b->watts ? a->watts : b->watts;
    double apart = a->watts + b->watts - most;

    return most - apart <= DISAGREE * most + a->step_w + b->step_w;
}

/* Append to buf[size], as far as there is room. */
static void append(char *buf, size_t size, const char *text)
{
    strncat(buf, text, size - strlen(buf) - 1);
}

/* "DCMI 322 W" */
static void append_watts(const struct candidates *c,
                         const struct joule_ipmi_choice *of, char *buf,
                         size_t size)
{
    char text[128] = "";

    if (buf[0])
        append(buf, size, ", ");
    for (uint32_t n = 0; n < of->count && n < 4; n++) {
        snprintf(text, sizeof(text), "%s%s", n > 0 ? " + " : "",
                 c->list->found[of->index[n]].name);
        append(buf, size, text);
    }
    snprintf(text, sizeof(text), "%s %.0f W", of->count > 4 ? " + ..." : "",
             of->watts);
    append(buf, size, text);
}

static int none(const struct candidates *c, struct joule_ipmi_choice *ret,
                struct joule_error *err)
{
    struct joule_ipmi_choice one;
    char text[160] = "";
    bool covers = false;

    if (c->some.watts > 0) {
        *ret = c->some;
        joule_ipmi_choice_line(c->list, ret, text, sizeof(text));
        return joule_error_set(err, ENOENT,
                               "sensor \"%s\" gives no reading, and without it "
                               "the power supplies are not known to be the "
                               "whole node: if it is not there, write %s",
                               c->missing, text);
    }
    for (uint32_t i = 0; i < c->list->count; i++) {
        if (c->list->value[i].status == JOULE_POWER_NOT_ACTIVE)
            return joule_error_set(
                err, ENOENT,
                "the BMC says that its DCMI power measurement is not active, "
                "and nothing else measures the node: activate it, or write "
                "JouleIPMIIgnoreInactive=yes if what it gives is right "
                "(joule probe)");
        covers |= joule_ipmi_coverage(&c->list->found[i]) != JOULE_IPMI_PART;
        memset(&one, 0, sizeof(one));
        add_sensor(c, &one, i);
        if (c->list->value[i].status == JOULE_POWER_OK && strlen(text) < 100)
            append_watts(c, &one, text, sizeof(text));
    }
    if (covers)
        return joule_error_set(err, ENOENT,
                               "what the BMC has for the whole node gives no "
                               "reading: see what joule probe says of it");
    if (!text[0])
        return joule_error_set(err, ENOENT,
                               "the BMC has no sensor in watts that reads, and "
                               "no DCMI power readings");
    return joule_error_set(err, ENOENT,
                           "none of the BMC's sensors is known to cover the "
                           "node (%s): if one does, name it, " KEY
                           "=Node=SENSOR",
                           text);
}

/* The one that most others agree with; of several the first. */
static const struct joule_ipmi_choice *likeliest(const struct candidates *c)
{
    const struct joule_ipmi_choice *best = &c->of[0];
    uint32_t most = 0;

    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t n = 0;

        for (uint32_t k = 0; k < c->count; k++)
            n += agree(&c->of[i], &c->of[k]);
        if (n > most) {
            most = n;
            best = &c->of[i];
        }
    }
    return best;
}

static int differ(const struct candidates *c,
                  const struct joule_ipmi_choice *first,
                  struct joule_error *err)
{
    char text[160] = "", line[160];

    for (uint32_t i = 0; i < c->count && strlen(text) < 100; i++)
        append_watts(c, &c->of[i], text, sizeof(text));
    joule_ipmi_choice_line(c->list, first, line, sizeof(line));
    return joule_error_set(err, ENOTUNIQ,
                           "the BMC's sensors of the whole node contradict "
                           "each other (%s), and " KEY " is not set: write "
                           "the one that is right, perhaps %s",
                           text, line);
}

int joule_ipmi_choose(const struct joule_wire_reply *list,
                      struct joule_ipmi_choice *ret, struct joule_error *err)
{
    struct candidates c = {.list = list};

    memset(ret, 0, sizeof(*ret));
    add_nodes(&c, true);
    add_nodes(&c, false);
    add_supplies(&c);
    if (c.count == 0)
        return none(&c, ret, err);
    *ret = *likeliest(&c);
    for (uint32_t i = 0; i < c.count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!agree(&c.of[i], &c.of[k]))
                return differ(&c, ret, err);
    return 0;
}

/* ---- words of the configuration ---- */

void joule_ipmi_sensor_word(const struct joule_wire_reply *list,
                            const struct joule_wire_found *f,
                            char buf[JOULE_IPMI_WORD_SIZE])
{
    bool quotes = strpbrk(f->name, ",;=") ||
                  !f->name[strspn(f->name, "0123456789")] ||
                  strncasecmp(f->name, "DCMI", 4) == 0;
    unsigned hits = 0;

    for (uint32_t i = 0; i < list->count; i++)
        hits += strcmp(list->found[i].name, f->name) == 0;
    if (f->kind != JOULE_IPMI_SENSOR_RECORD)
        snprintf(buf, JOULE_IPMI_WORD_SIZE, "%s",
                 f->kind == JOULE_IPMI_SENSOR_DCMI ? "DCMI" : "DCMI_ENHANCED");
    else if (!f->name[0] || strpbrk(f->name, "'\"#\\") || hits != 1)
        snprintf(buf, JOULE_IPMI_WORD_SIZE, "%u", f->record_id);
    else
        snprintf(buf, JOULE_IPMI_WORD_SIZE, "%s%s%s", quotes ? "'" : "",
                 f->name, quotes ? "'" : "");
}

void joule_ipmi_line_quote(char *line, size_t size)
{
    char *value = strchr(line, '=') + 1;
    size_t len = strlen(value);

    if (!strpbrk(value, " '"))
        return;
    if (len > size - (size_t)(value - line) - 3)
        len = size - (size_t)(value - line) - 3;
    memmove(value + 1, value, len);
    value[0] = value[len + 1] = '"';
    value[len + 2] = '\0';
}

void joule_ipmi_choice_line(const struct joule_wire_reply *list,
                            const struct joule_ipmi_choice *choice, char *buf,
                            size_t size)
{
    char word[JOULE_IPMI_WORD_SIZE];

    snprintf(buf, size, KEY "=Node=");
    for (uint32_t n = 0; n < choice->count; n++) {
        joule_ipmi_sensor_word(list, &list->found[choice->index[n]], word);
        append(buf, size, n > 0 ? "," : "");
        append(buf, size, word);
    }
    joule_ipmi_line_quote(buf, size);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/ipmi_find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/sensors/ipmi_answer.h"

#define NETFN_SENSOR 0x04
#define CMD_READING  0x2D

/* DCMI 1.5, 6.1 and 6.6. */
#define NETFN_GROUP      0x2C
#define GROUP_DCMI       0xDC
#define CMD_CAPABILITIES 0x01
#define CMD_POWER        0x02
#define PARAMETER_POWER  5 /* enhanced system power statistics */
#define MODE_SYSTEM      1
#define MODE_ENHANCED    2

/* Completion codes after which a command will never work. */
#define CC_INVALID_COMMAND 0xC1
#define CC_INVALID_FOR_LUN 0xC2
#define CC_PRIVILEGE       0xD4
#define CC_DISABLED        0xD6

/* What a walk has seen for one sensor of the configuration. */
struct hunt {
    const char *name;     /* wanted; NULL: not by name */
    unsigned hits;        /* records of that name in watts */
    unsigned ids[2];      /* of the first two */
    struct joule_sdr sdr; /* the first of them */
    bool other;           /* a record of that name is not in watts */
    struct joule_sdr odd; /* which one */
};

struct search {
    struct joule_ipmi_repo *repo;
    const struct joule_ipmi_config *config;
    int64_t deadline_ns;
    struct joule_ipmi_slot *slots;
    struct joule_error *err;
    bool walk; /* some sensor needs one */
    struct joule_ipmi_skipped skipped;
    struct hunt hunts[JOULE_IPMI_SENSORS_MAX];
};

/* ---- what the answers are asked for with ---- */

static struct joule_ipmi_question
power_question(const struct joule_ipmi_slot *slot)
{
    if (slot->kind == JOULE_IPMI_SENSOR_RECORD)
        return (struct joule_ipmi_question){
            .net_fn = NETFN_SENSOR,
            .lun = slot->sdr.lun,
            .cmd = CMD_READING,
            .owner = slot->sdr.owner,
            .channel = slot->sdr.channel,
            .size = 1,
            .data = {slot->sdr.number},
        };
    return (struct joule_ipmi_question){
        .net_fn = NETFN_GROUP,
        .cmd = CMD_POWER,
        .size = 4,
        .data = {GROUP_DCMI,
                 slot->kind == JOULE_IPMI_SENSOR_DCMI ? MODE_SYSTEM
                                                      : MODE_ENHANCED,
                 slot->attribute, 0},
    };
}

int joule_ipmi_ask_power(struct joule_ipmi_link *link,
                         const struct joule_ipmi_config *config,
                         const struct joule_ipmi_slot *slot,
                         int64_t deadline_ns, struct joule_wire_value *out,
                         struct joule_error *err)
{
    const struct joule_ipmi_question q = power_question(slot);
    uint8_t rs[JOULE_IPMI_ANSWER_MAX];
    int n;

    out->begin_ns = joule_clock_mono_ns(&joule_clock_system);
    n = joule_ipmi_link_ask(link, &q, deadline_ns, rs, sizeof(rs), err);
    out->end_ns = joule_clock_mono_ns(&joule_clock_system);
    if (n < 0)
        return -1;
    if (slot->kind == JOULE_IPMI_SENSOR_RECORD)
        joule_ipmi_sensor_answer(&slot->sdr, config->ignore_scanning, rs,
                                 (size_t)n, out);
    else
        joule_ipmi_dcmi_answer(slot->kind == JOULE_IPMI_SENSOR_DCMI_ENHANCED,
                               config->ignore_inactive, rs, (size_t)n, out);
    return 0;
}

/* ---- DCMI ---- */

static int find_window(struct search *s, struct joule_ipmi_slot *slot)
{
    const struct joule_ipmi_question q = {
        .net_fn = NETFN_GROUP,
        .cmd = CMD_CAPABILITIES,
        .size = 2,
        .data = {GROUP_DCMI, PARAMETER_POWER},
    };
    uint8_t rs[JOULE_IPMI_ANSWER_MAX];
    int n = joule_ipmi_link_ask(s->repo->link, &q, s->deadline_ns, rs,
                                sizeof(rs), s->err);

    if (n < 0)
        return -1;
    if (joule_ipmi_dcmi_window(rs, (size_t)n, &slot->attribute) < 0)
        return joule_error_set(s->err, ENOTSUP,
                               "the BMC has no averages of its power "
                               "(DCMI_ENHANCED): use DCMI");
    return 0;
}

/* Whether the BMC answers at all; *ret_active whether it measures. */
static int find_dcmi(struct search *s, enum joule_ipmi_sensor_kind kind,
                     struct joule_ipmi_slot *slot, bool *ret_active)
{
    struct joule_wire_value value;

    slot->kind = kind;
    if (kind == JOULE_IPMI_SENSOR_DCMI_ENHANCED && find_window(s, slot) < 0)
        return -1;
    if (joule_ipmi_ask_power(s->repo->link, s->config, slot, s->deadline_ns,
                             &value, s->err) < 0)
        return -1;
    *ret_active = value.status != JOULE_POWER_NOT_ACTIVE &&
                  value.status != JOULE_POWER_REFUSED &&
                  value.status != JOULE_POWER_FAILED;
    switch (value.code) {
    case CC_INVALID_COMMAND:
    case CC_INVALID_FOR_LUN:
    case CC_DISABLED:
        return joule_error_set(s->err, ENOTSUP,
                               "the BMC has no DCMI power readings "
                               "(completion code %02Xh)",
                               value.code);
    case CC_PRIVILEGE:
        return joule_error_set(s->err, ENOTSUP,
                               "the BMC's user may not read the power through "
                               "DCMI (completion code %02Xh)",
                               value.code);
    default:
        return 0;
    }
}

/* ---- records ---- */

static bool same_sdr(const struct joule_sdr *a, const struct joule_sdr *b)
{
    return a->record_id == b->record_id && a->owner == b->owner &&
           a->channel == b->channel && a->lun == b->lun &&
           a->number == b->number && a->entity == b->entity &&
           a->instance == b->instance && a->watts == b->watts &&
           strcmp(a->name, b->name) == 0 && a->format == b->format &&
           a->linearization == b->linearization && a->m == b->m &&
           a->b == b->b && a->b_exp == b->b_exp && a->r_exp == b->r_exp;
}

int joule_ipmi_check_sdr(const struct joule_sdr *sdr, struct joule_error *err)
{
    double value;

    if (!sdr->watts)
        return joule_error_set(err, EINVAL,
                               "sensor \"%s\" (record %u) is in %s, not in "
                               "watts",
                               sdr->name, sdr->record_id, sdr->unit);
    if (sdr->owner & 1)
        return joule_error_set(err, ENOTSUP,
                               "sensor \"%s\" (record %u) belongs to software, "
                               "not to a controller",
                               sdr->name, sdr->record_id);
    if (joule_sdr_value(sdr, 1, &value) < 0)
        return joule_error_set(err, ENOTSUP,
                               "sensor \"%s\" (record %u) converts its "
                               "readings in a way that is not supported",
                               sdr->name, sdr->record_id);
    return 0;
}

static void take(struct joule_ipmi_slot *slot, const struct joule_sdr *sdr)
{
    slot->kind = JOULE_IPMI_SENSOR_RECORD;
    slot->sdr = *sdr;
}

int joule_ipmi_verify(struct joule_ipmi_repo *repo,
                      const struct joule_ipmi_slot *slot, int64_t deadline_ns,
                      struct joule_error *err)
{
    struct joule_ipmi_record record;
    struct joule_sdr sdr;
    int rc;

    if (slot->kind != JOULE_IPMI_SENSOR_RECORD)
        return 0;
    rc = joule_ipmi_repo_read(repo, slot->sdr.record_id, deadline_ns, &record,
                              err);
    if (rc < 0 && errno != ENOENT)
        return -1;
    if (rc == 0 && joule_sdr_parse(record.bytes, record.size, &sdr, err) == 0 &&
        same_sdr(&sdr, &slot->sdr))
        return 0;
    return joule_error_set(err, ESTALE,
                           "the BMC's sensor records have changed: record %u "
                           "is no longer \"%s\" as it was",
                           slot->sdr.record_id, slot->sdr.name);
}

/* ---- the walk ---- */

static void match(struct search *s, const struct joule_sdr *sdr)
{
    for (uint32_t i = 0; i < s->config->sensor_count; i++) {
        struct hunt *h = &s->hunts[i];

        if (!h->name || strcmp(h->name, sdr->name) != 0)
            continue;
        if (!sdr->watts) {
            h->other = true;
            h->odd = *sdr;
            continue;
        }
        if (h->hits == 0)
            h->sdr = *sdr;
        if (h->hits < 2)
            h->ids[h->hits] = sdr->record_id;
        h->hits++;
    }
}

static int visit(void *arg, const struct joule_ipmi_record *record)
{
    struct search *s = arg;
    struct joule_sdr sdr;

    if (joule_sdr_parse(record->bytes, record->size, &sdr, s->err) < 0)
        return -1;
    match(s, &sdr);
    return 0;
}

/* ---- sensors of the configuration ---- */

/* A RECORD by its id; if that is not what it was, leave it to the walk. */
static int find_record(struct search *s, uint32_t i)
{
    const struct joule_ipmi_sensor *sensor = &s->config->sensor[i];
    struct joule_ipmi_record record;
    struct joule_sdr sdr;

    if (joule_ipmi_repo_read(s->repo, sensor->record_id, s->deadline_ns,
                             &record, s->err) < 0) {
        if (errno != ENOENT)
            return -1;
        if (!sensor->found_name[0])
            return joule_error_set(s->err, ENOENT,
                                   "the BMC has no sensor record %u",
                                   sensor->record_id);
    } else if (joule_sdr_parse(record.bytes, record.size, &sdr, s->err) < 0) {
        if (!sensor->found_name[0])
            return -1;
    } else if (!sensor->found_name[0] ||
               strcmp(sensor->found_name, sdr.name) == 0) {
        take(&s->slots[i], &sdr);
        return joule_ipmi_check_sdr(&sdr, s->err);
    }
    s->hunts[i].name = sensor->found_name;
    s->slots[i].changed = true;
    s->walk = true;
    return 0;
}

/* All that needs no walk; names for the one that others need. */
static int prepare(struct search *s, uint32_t i, bool *ret_active)
{
    const struct joule_ipmi_sensor *sensor = &s->config->sensor[i];

    switch (sensor->kind) {
    case JOULE_IPMI_SENSOR_RECORD:
        return find_record(s, i);
    case JOULE_IPMI_SENSOR_NAME:
        s->hunts[i].name = sensor->name;
        s->walk = true;
        return 0;
    default:
        return find_dcmi(s, sensor->kind, &s->slots[i], ret_active);
    }
}

/* What the walk has found for a sensor that needed it. */
static int choose_record(struct search *s, uint32_t i)
{
    const struct joule_ipmi_sensor *sensor = &s->config->sensor[i];
    const struct hunt *h = &s->hunts[i];

    if (!h->name)
        return 0;
    if (h->hits == 1) {
        take(&s->slots[i], &h->sdr);
        return joule_ipmi_check_sdr(&h->sdr, s->err);
    }
    if (h->hits > 1)
        return joule_error_set(s->err, ENOTUNIQ,
                               "the sensor name \"%s\" stands in records %u "
                               "and %u%s: give the record id",
                               h->name, h->ids[0], h->ids[1],
                               h->hits > 2 ? " and others" : "");
    if (h->other)
        return joule_ipmi_check_sdr(&h->odd, s->err);
    if (sensor->kind == JOULE_IPMI_SENSOR_NAME)
        return joule_error_set(s->err, ENOENT, "the BMC has no sensor \"%s\"",
                               h->name);
    return joule_error_set(s->err, ENOENT,
                           "the BMC's sensor records have changed: there is "
                           "no sensor \"%s\" any more",
                           h->name);
}

/* ---- remarks ---- */

static void compare(struct joule_ipmi_slot *slot,
                    const struct joule_ipmi_slot *before,
                    struct joule_error *ret_remark)
{
    if (slot->kind != JOULE_IPMI_SENSOR_RECORD)
        return;
    if (before && before->kind == slot->kind &&
        strcmp(before->sdr.name, slot->sdr.name) == 0 &&
        !same_sdr(&before->sdr, &slot->sdr))
        slot->changed = true;
    if (slot->changed)
        joule_error_set(ret_remark, 0,
                        "the BMC's sensor records have changed: sensor \"%s\" "
                        "is record %u now, in steps of %g W",
                        slot->sdr.name, slot->sdr.record_id,
                        joule_sdr_step(&slot->sdr));
}

void joule_ipmi_say_skipped(const struct joule_ipmi_skipped *skipped,
                            struct joule_error *ret_remark)
{
    if (skipped->count)
        joule_error_set(ret_remark, 0,
                        "%u of the BMC's sensor records cannot be read "
                        "(record %u)",
                        skipped->count, skipped->last_id);
}

int joule_ipmi_find(struct joule_ipmi_repo *repo,
                    const struct joule_ipmi_config *config,
                    const struct joule_ipmi_slot *before, int64_t deadline_ns,
                    struct joule_ipmi_slot *slots,
                    struct joule_error *ret_remark, struct joule_error *err)
{
    struct search *s = calloc(1, sizeof(*s));
    bool active = true;
    int rc = 0;

    if (!s)
        return joule_error_set(err, ENOMEM, "out of memory");
    memset(slots, 0, config->sensor_count * sizeof(*slots));
    ret_remark->text[0] = '\0';
    s->repo = repo;
    s->config = config;
    s->deadline_ns = deadline_ns;
    s->slots = slots;
    s->err = err;
    for (uint32_t i = 0; i < config->sensor_count && rc == 0; i++)
        rc = prepare(s, i, &active);
    if (rc == 0 && s->walk)
        rc =
            joule_ipmi_repo_walk(repo, deadline_ns, visit, s, &s->skipped, err);
    for (uint32_t i = 0; i < config->sensor_count && rc == 0; i++)
        rc = choose_record(s, i);
    if (rc == 0)
        joule_ipmi_say_skipped(&s->skipped, ret_remark);
    if (rc == 0 && !active)
        joule_error_set(ret_remark, 0,
                        "the BMC says that its DCMI power measurement is not "
                        "active (JouleIPMIIgnoreInactive=yes believes it "
                        "nevertheless)");
    for (uint32_t i = 0; i < config->sensor_count && rc == 0; i++)
        compare(&slots[i], before ? &before[i] : NULL, ret_remark);
    free(s);
    return rc;
}

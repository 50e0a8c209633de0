/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/ipmi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/sensors/ipmi_choice.h"
#include "common/sensors/ipmi_link.h"
#include "common/sensors/sdr.h"

/* How often each sensor record is looked at: each so many periods, but once a
 * minute at least. */
#define CHECK_PERIODS 60
#define CHECK_NS      INT64_C(60000000000)

/* The least time for it, and for a keep-alive. */
#define IDLE_LIMIT_NS JOULE_NS_PER_S

#define DCMI_MAX_W 65535.0

#define NETFN_SENSOR 0x04
#define CMD_READING  0x2D

#define NETFN_APP     0x06
#define CMD_DEVICE_ID 0x01

/* IPMI 2.0, section 33. */
#define NETFN_STORAGE 0x0A
#define CMD_RESERVE   0x22
#define CMD_GET       0x23
#define RECORD_FIRST  0x0000
#define RECORD_END    0xFFFF
#define ALL_BYTES     0xFF

/* DCMI 1.5, 6.1 and 6.6. */
#define NETFN_GROUP      0x2C
#define CMD_CAPABILITIES 0x01
#define CMD_POWER        0x02
#define PARAMETER_POWER  5 /* enhanced system power statistics */
#define MODE_SYSTEM      1
#define MODE_ENHANCED    2

/* Completion codes, table 5-2. */
#define CC_INVALID_COMMAND 0xC1
#define CC_INVALID_FOR_LUN 0xC2
#define CC_RESERVATION     0xC5
#define CC_LENGTH          0xC7
#define CC_FIELD_LENGTH    0xC8
#define CC_RANGE           0xC9
#define CC_TOO_MANY        0xCA
#define CC_NOT_PRESENT     0xCB
#define CC_PRIVILEGE       0xD4
#define CC_DISABLED        0xD6
#define CC_UNSPECIFIED     0xFF

/* What every BMC can give at a time (ipmitool, FreeIPMI: 16), and the least. */
#define CHUNK_FIRST 16
#define CHUNK_LEAST 4

/* A reservation is lost when anybody else reserves or the records change. */
#define RESERVE_TRIES 5

/* A repository whose records go round in a circle ends here. */
#define RECORDS_MAX 4096

/* A sensor that is read. */
struct slot {
    enum joule_ipmi_sensor_kind kind; /* RECORD, DCMI or DCMI_ENHANCED */
    uint8_t attribute;                /* DCMI_ENHANCED: averaging period */
    struct joule_sdr sdr;             /* RECORD */
};

struct joule_ipmi {
    const struct joule_ipmi_config *config;
    struct joule_ipmi_link link;
    /* of the connection's records */
    uint16_t reservation;
    bool reserved;
    uint8_t chunk; /* bytes asked for at a time; 0: the whole record */

    bool found;               /* slots[0..count-1] are filled */
    bool doubtful;            /* the last reading failed */
    bool current;             /* and are what the BMC has, as far as known */
    struct joule_error stale; /* why not */
    uint32_t count;
    uint32_t turn;      /* whose record is looked at next */
    int64_t read_ns;    /* when the last reading began */
    int64_t checked_ns; /* when a record was last looked at */
    struct slot slots[JOULE_IPMI_SENSORS_MAX];
};

struct record {
    uint16_t next; /* id of the next one, or RECORD_END */
    size_t size;
    uint8_t bytes[JOULE_SDR_SIZE_MAX];
};

/* What a connection looks at. */
struct search {
    bool is_again; /* the slots are those of an earlier connection */
    struct joule_error remark;
    /* a walk */
    unsigned skipped, skipped_id; /* records, and the last of them */
    size_t count;
    struct joule_sdr sdr[RECORDS_MAX]; /* of analog sensors */
};

static int64_t now_ns(void)
{
    return joule_clock_mono_ns(&joule_clock_system);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static unsigned word(const uint8_t *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

struct joule_ipmi *joule_ipmi_create(const struct joule_ipmi_config *config,
                                     struct joule_error *err)
{
    struct joule_ipmi *ipmi = calloc(1, sizeof(*ipmi));

    if (!ipmi) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    ipmi->config = config;
    joule_error_set(&ipmi->stale, 0, "not connected");
    if (joule_ipmi_link_init(&ipmi->link, config, err) < 0) {
        free(ipmi);
        return NULL;
    }
    return ipmi;
}

void joule_ipmi_destroy(struct joule_ipmi *ipmi)
{
    if (!ipmi)
        return;
    joule_ipmi_link_close(&ipmi->link);
    free(ipmi);
}

bool joule_ipmi_wants_ipc(const struct joule_ipmi *ipmi)
{
    return ipmi->link.wants_ipc;
}

static int open_link(struct joule_ipmi *ipmi, bool lookup,
                     struct joule_error *err)
{
    ipmi->reserved = false;
    ipmi->chunk = 0;
    return joule_ipmi_link_open(&ipmi->link, lookup, err);
}

/* ---- records: one by its id, or all in their order ---- */

static int reserve(struct joule_ipmi *ipmi, struct joule_error *err)
{
    const struct joule_ipmi_question q = {.net_fn = NETFN_STORAGE,
                                          .cmd = CMD_RESERVE};
    uint8_t rs[JOULE_IPMI_ANSWER_MAX];
    int n = joule_ipmi_link_ask(&ipmi->link, &q, rs, err);

    if (n < 0)
        return -1;
    /* Optional (table 33-1): then 0 stands for it. */
    ipmi->reservation = rs[0] == 0 && n >= 3 ? (uint16_t)word(rs + 1) : 0;
    ipmi->reserved = true;
    return 0;
}

/* Ask for [want] bytes behind those that are there.  The completion code, or
 * -1. */
static int get_part(struct joule_ipmi *ipmi, uint16_t id, size_t want,
                    struct record *r, struct joule_error *err)
{
    struct joule_ipmi_question q = {
        .net_fn = NETFN_STORAGE,
        .cmd = CMD_GET,
        .size = 6,
        .data = {(uint8_t)ipmi->reservation, (uint8_t)(ipmi->reservation >> 8),
                 (uint8_t)id, (uint8_t)(id >> 8), (uint8_t)r->size,
                 (uint8_t)want},
    };
    uint8_t rs[JOULE_IPMI_ANSWER_MAX];
    size_t got;
    int n = joule_ipmi_link_ask(&ipmi->link, &q, rs, err);

    if (n < 0)
        return -1;
    if (rs[0] != 0)
        return rs[0];
    got = n > 3 ? (size_t)n - 3 : 0;
    if (n < 3 || got > JOULE_SDR_SIZE_MAX - r->size ||
        (want != ALL_BYTES && got > want))
        return joule_error_set(err, EBADMSG,
                               "the BMC's answer about sensor record %u is "
                               "%d bytes long",
                               id, n);
    r->next = (uint16_t)word(rs + 1);
    if (got == 0)
        return joule_error_set(err, EBADMSG,
                               "the BMC ends sensor record %u after %zu bytes",
                               id, r->size);
    memcpy(r->bytes + r->size, rs + 3, got);
    r->size += got;
    return 0;
}

/* Fewer at a time, or -1 if that is not what is wrong. */
static int shrink(struct joule_ipmi *ipmi, int code)
{
    switch (code) {
    case CC_TOO_MANY:
    case CC_LENGTH:
    case CC_FIELD_LENGTH:
    case CC_RANGE:
    case CC_UNSPECIFIED:
        break;
    default:
        return -1;
    }
    if (ipmi->chunk == 0)
        ipmi->chunk = CHUNK_FIRST;
    else if (ipmi->chunk / 2 >= CHUNK_LEAST)
        ipmi->chunk /= 2;
    else
        return -1;
    return 0;
}

/* How many bytes the record has, as far as they are known. */
static size_t record_size(const struct record *r)
{
    if (r->size < JOULE_SDR_HEADER_SIZE || r->bytes[3] != JOULE_SDR_FULL)
        return JOULE_SDR_HEADER_SIZE;
    return (size_t)JOULE_SDR_HEADER_SIZE + r->bytes[4];
}

/* Read on from where *r ends; the completion code of the first refusal, 0 when
 * the record is whole, or -1. */
static int read_parts(struct joule_ipmi *ipmi, uint16_t id, struct record *r,
                      struct joule_error *err)
{
    while (r->size < record_size(r)) {
        size_t want = record_size(r) - r->size;
        int code;

        if (ipmi->chunk == 0)
            want = ALL_BYTES;
        else if (want > ipmi->chunk)
            want = ipmi->chunk;
        code = get_part(ipmi, id, want, r, err);
        if (code != 0)
            return code;
        if (ipmi->chunk == 0 && r->size < record_size(r))
            ipmi->chunk = CHUNK_FIRST; /* it gives what it can */
    }
    return 0;
}

/*
 * Read record [id], with one message where the BMC gives it whole.  Of a record
 * that is not an analog sensor's only the header is sure to be there.  -1 with a
 * sentence and ENOENT, EBADMSG, or of joule_ipmi_link_ask.
 */
static int read_record(struct joule_ipmi *ipmi, uint16_t id, struct record *ret,
                       struct joule_error *err)
{
    int tries = RESERVE_TRIES;

    for (;;) {
        int code;

        ret->size = 0;
        if (!ipmi->reserved && reserve(ipmi, err) < 0)
            return -1;
        code = read_parts(ipmi, id, ret, err);
        if (code <= 0)
            return code;
        if (code == CC_RESERVATION && --tries > 0)
            ipmi->reserved = false;
        else if (shrink(ipmi, code) < 0)
            return joule_error_set(
                err, code == CC_NOT_PRESENT ? ENOENT : EBADMSG,
                "the BMC does not give sensor record %u (completion code "
                "%02Xh)",
                id, (unsigned)code);
    }
}

/* EBADMSG: there is no way on, or no end. */
static int walk_records(struct joule_ipmi *ipmi, struct search *s,
                        struct joule_error *err)
{
    uint16_t id = RECORD_FIRST;

    for (unsigned n = 0; n < RECORDS_MAX; n++) {
        struct record r = {.next = id};
        bool bad = true;

        if (read_record(ipmi, id, &r, err) < 0) {
            if (errno == ENOENT && id == RECORD_FIRST)
                return 0; /* an empty repository */
            if ((errno != ENOENT && errno != EBADMSG) || r.next == id ||
                r.next == RECORD_END)
                return -1;
        } else if (joule_sdr_parse(r.bytes, r.size, &s->sdr[s->count], err) <
                   0) {
            bad = errno == EBADMSG;
        } else {
            s->count++;
            bad = false;
        }
        if (bad) {
            s->skipped++;
            s->skipped_id = id;
        }
        if (r.next == RECORD_END)
            return 0;
        if (r.next == id)
            break;
        id = r.next;
    }
    return joule_error_set(err, EBADMSG,
                           "the BMC's sensor records have no end");
}

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

/* Whether power can be read from what the record describes. */
static int check_sdr(const struct joule_sdr *sdr, struct joule_error *err)
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

/* ---- power ---- */

/* One message.  -1: of joule_ipmi_link_ask. */
static int ask_power(struct joule_ipmi *ipmi, const struct slot *slot,
                     struct joule_wire_value *out, struct joule_error *err)
{
    const struct joule_ipmi_question sensor = {
        .net_fn = NETFN_SENSOR,
        .lun = slot->sdr.lun,
        .cmd = CMD_READING,
        .owner = slot->sdr.owner,
        .channel = slot->sdr.channel,
        .size = 1,
        .data = {slot->sdr.number},
    };
    bool average = slot->kind == JOULE_IPMI_SENSOR_DCMI_ENHANCED;
    const struct joule_ipmi_question dcmi = {
        .net_fn = NETFN_GROUP,
        .cmd = CMD_POWER,
        .size = 4,
        .data = {JOULE_DCMI_GROUP, average ? MODE_ENHANCED : MODE_SYSTEM,
                 slot->attribute, 0},
    };
    bool is_record = slot->kind == JOULE_IPMI_SENSOR_RECORD;
    uint8_t rs[JOULE_IPMI_ANSWER_MAX];
    int n;

    out->begin_ns = now_ns();
    n = joule_ipmi_link_ask(&ipmi->link, is_record ? &sensor : &dcmi, rs, err);
    out->end_ns = now_ns();
    if (n < 0)
        return -1;
    if (is_record)
        joule_ipmi_sensor_answer(&slot->sdr, ipmi->config->ignore_scanning, rs,
                                 (size_t)n, out);
    else
        joule_ipmi_dcmi_answer(average, ipmi->config->ignore_inactive, rs,
                               (size_t)n, out);
    return 0;
}

static void describe(const struct slot *slot, struct joule_wire_found *found)
{
    const struct joule_sdr *sdr = &slot->sdr;

    *found = (struct joule_wire_found){.kind = slot->kind,
                                       .unit = "W",
                                       .name = "DCMI",
                                       .step_w = 1.0,
                                       .max_w = DCMI_MAX_W};
    if (slot->kind != JOULE_IPMI_SENSOR_RECORD)
        return;
    memcpy(found->name, sdr->name, sizeof(found->name));
    found->record_id = sdr->record_id;
    found->number = sdr->number;
    found->entity = sdr->entity;
    found->instance = sdr->instance;
    found->step_w = joule_sdr_step(sdr);
    joule_sdr_value(sdr, joule_sdr_highest(sdr), &found->max_w);
}

/* ---- which sensors there are ---- */

/* Every sensor in watts, with one reading.  DCMI stands last, if it measures or
 * only says that it does not. */
static int list_sensors(struct joule_ipmi *ipmi, struct search *s,
                        struct joule_wire_reply *reply, struct joule_error *err)
{
    enum joule_power_status status;
    uint32_t count = 0;

    if (walk_records(ipmi, s, err) < 0)
        return -1;
    memset(ipmi->slots, 0, sizeof(ipmi->slots));
    reply->more = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (check_sdr(&s->sdr[i], NULL) < 0)
            continue;
        if (count == JOULE_IPMI_SENSORS_MAX - 1) { /* DCMI needs the last */
            reply->more++;
            continue;
        }
        ipmi->slots[count].kind = JOULE_IPMI_SENSOR_RECORD;
        ipmi->slots[count++].sdr = s->sdr[i];
    }
    ipmi->slots[count++].kind = JOULE_IPMI_SENSOR_DCMI;
    for (uint32_t i = 0; i < count; i++) {
        if (ask_power(ipmi, &ipmi->slots[i], &reply->value[i], err) < 0)
            return -1;
        describe(&ipmi->slots[i], &reply->found[i]);
    }
    status = reply->value[count - 1].status;
    if (status != JOULE_POWER_OK && status != JOULE_POWER_NOT_ACTIVE)
        count--;
    reply->count = count;
    return 0;
}

/* No sensor is named: those that cover the node by what the BMC has now. */
static int find_default(struct joule_ipmi *ipmi, struct search *s,
                        struct joule_wire_reply *reply, struct joule_error *err)
{
    struct joule_ipmi_choice choice;

    if (list_sensors(ipmi, s, reply, err) < 0)
        return -1;
    if (reply->more > 0)
        return joule_error_set(err, ENOTUNIQ,
                               "the BMC has too many sensors in watts (%u) to "
                               "choose among them: EnergyIPMIPowerSensors must "
                               "say which (joule probe)",
                               reply->count + reply->more);
    if (joule_ipmi_choose(reply, &choice, err) < 0)
        return -1;
    ipmi->count = choice.count;
    /* Each comes from where it is or behind it. */
    for (uint32_t n = 0; n < choice.count; n++)
        ipmi->slots[n] = ipmi->slots[choice.index[n]];
    return 0;
}

/* ---- the sensors of the configuration ---- */

static int find_window(struct joule_ipmi *ipmi, struct slot *slot,
                       struct joule_error *err)
{
    const struct joule_ipmi_question q = {
        .net_fn = NETFN_GROUP,
        .cmd = CMD_CAPABILITIES,
        .size = 2,
        .data = {JOULE_DCMI_GROUP, PARAMETER_POWER},
    };
    uint8_t rs[JOULE_IPMI_ANSWER_MAX];
    int n = joule_ipmi_link_ask(&ipmi->link, &q, rs, err);

    if (n < 0)
        return -1;
    if (joule_ipmi_dcmi_window(rs, (size_t)n, &slot->attribute) < 0)
        return joule_error_set(err, ENOTSUP,
                               "the BMC has no averages of its power "
                               "(DCMI_ENHANCED): use DCMI");
    return 0;
}

/* Whether the BMC answers at all; a remark if it does not measure. */
static int find_dcmi(struct joule_ipmi *ipmi, enum joule_ipmi_sensor_kind kind,
                     struct slot *slot, struct joule_error *remark,
                     struct joule_error *err)
{
    struct joule_wire_value value;

    *slot = (struct slot){.kind = kind};
    if (kind == JOULE_IPMI_SENSOR_DCMI_ENHANCED &&
        find_window(ipmi, slot, err) < 0)
        return -1;
    if (ask_power(ipmi, slot, &value, err) < 0)
        return -1;
    switch (value.code) {
    case CC_INVALID_COMMAND:
    case CC_INVALID_FOR_LUN:
    case CC_DISABLED:
        return joule_error_set(err, ENOTSUP,
                               "the BMC has no DCMI power readings "
                               "(completion code %02Xh)",
                               value.code);
    case CC_PRIVILEGE:
        return joule_error_set(err, ENOTSUP,
                               "the BMC's user may not read the power through "
                               "DCMI (completion code %02Xh)",
                               value.code);
    }
    if (value.status == JOULE_POWER_NOT_ACTIVE ||
        value.status == JOULE_POWER_REFUSED ||
        value.status == JOULE_POWER_FAILED)
        joule_error_set(remark, 0,
                        "the BMC says that its DCMI power measurement is not "
                        "active (JouleIPMIIgnoreInactive=yes believes it "
                        "nevertheless)");
    return 0;
}

/* A RECORD by its id.  *ret_name: it is not what it was, look for that name. */
static int find_record(struct joule_ipmi *ipmi,
                       const struct joule_ipmi_sensor *sensor,
                       struct joule_sdr *ret, const char **ret_name,
                       struct joule_error *err)
{
    bool known = sensor->found_name[0] != '\0';
    struct record r;

    if (read_record(ipmi, sensor->record_id, &r, err) < 0) {
        if (errno != ENOENT)
            return -1;
        if (!known)
            return joule_error_set(err, ENOENT,
                                   "the BMC has no sensor record %u",
                                   sensor->record_id);
    } else if (joule_sdr_parse(r.bytes, r.size, ret, err) < 0) {
        if (!known)
            return -1;
    } else if (!known || strcmp(sensor->found_name, ret->name) == 0) {
        return 0;
    }
    *ret_name = sensor->found_name;
    return 0;
}

/* The record of a name among those of the walk. */
static int find_name(const struct search *s, const char *name, bool known,
                     struct joule_sdr *ret, struct joule_error *err)
{
    const struct joule_sdr *hit[2] = {NULL, NULL}, *other = NULL;
    unsigned hits = 0;

    for (size_t i = 0; i < s->count; i++) {
        const struct joule_sdr *sdr = &s->sdr[i];

        if (strcmp(sdr->name, name) != 0)
            continue;
        if (!sdr->watts)
            other = sdr;
        else if (hits++ < 2)
            hit[hits - 1] = sdr;
    }
    if (hits > 1)
        return joule_error_set(err, ENOTUNIQ,
                               "the sensor name \"%s\" stands in records %u "
                               "and %u%s: give the record id",
                               name, hit[0]->record_id, hit[1]->record_id,
                               hits > 2 ? " and others" : "");
    if (hits == 1 || other) {
        *ret = hits == 1 ? *hit[0] : *other;
        return 0;
    }
    if (known)
        return joule_error_set(err, ENOENT,
                               "the BMC's sensor records have changed: there "
                               "is no sensor \"%s\" any more",
                               name);
    return joule_error_set(err, ENOENT, "the BMC has no sensor \"%s\"", name);
}

/* Fill a slot; a remark if it is not what an earlier connection found there. */
static int take(struct search *s, struct slot *slot,
                const struct joule_sdr *sdr, bool changed,
                struct joule_error *err)
{
    if (check_sdr(sdr, err) < 0)
        return -1;
    if (s->is_again && slot->kind == JOULE_IPMI_SENSOR_RECORD &&
        strcmp(slot->sdr.name, sdr->name) == 0 && !same_sdr(&slot->sdr, sdr))
        changed = true;
    if (changed)
        joule_error_set(&s->remark, 0,
                        "the BMC's sensor records have changed: sensor \"%s\" "
                        "is record %u now, in steps of %g W",
                        sdr->name, sdr->record_id, joule_sdr_step(sdr));
    slot->kind = JOULE_IPMI_SENSOR_RECORD;
    slot->sdr = *sdr;
    return 0;
}

static int find_named(struct joule_ipmi *ipmi, struct search *s,
                      struct joule_error *err)
{
    const char *name[JOULE_IPMI_SENSORS_MAX] = {NULL};
    const struct joule_ipmi_config *config = ipmi->config;
    struct joule_error inactive = {""};
    struct joule_sdr sdr;
    bool walks = false;

    ipmi->count = config->sensor_count;
    for (uint32_t i = 0; i < ipmi->count; i++) {
        const struct joule_ipmi_sensor *sensor = &config->sensor[i];
        struct slot *slot = &ipmi->slots[i];

        if (sensor->kind == JOULE_IPMI_SENSOR_NAME)
            name[i] = sensor->name;
        else if (sensor->kind != JOULE_IPMI_SENSOR_RECORD) {
            if (find_dcmi(ipmi, sensor->kind, slot, &inactive, err) < 0)
                return -1;
        } else if (find_record(ipmi, sensor, &sdr, &name[i], err) < 0 ||
                   (!name[i] && take(s, slot, &sdr, false, err) < 0))
            return -1;
        walks = walks || name[i];
    }
    if (walks && walk_records(ipmi, s, err) < 0)
        return -1;
    for (uint32_t i = 0; i < ipmi->count; i++) {
        bool known = config->sensor[i].kind == JOULE_IPMI_SENSOR_RECORD;

        if (name[i] && (find_name(s, name[i], known, &sdr, err) < 0 ||
                        take(s, &ipmi->slots[i], &sdr, known, err) < 0))
            return -1;
    }
    if (!s->remark.text[0])
        s->remark = inactive;
    return 0;
}

/* ---- connect ---- */

/* Connect and fill the slots. */
static int connect_to(struct joule_ipmi *ipmi, struct search *s, bool list,
                      struct joule_wire_reply *reply, struct joule_error *err)
{
    s->is_again = ipmi->found && ipmi->count == ipmi->config->sensor_count;
    ipmi->current = ipmi->found = false;
    joule_error_set(&ipmi->stale, 0, "not connected");
    ipmi->link.deadline_ns = now_ns() + ipmi->config->connect_ns;
    if (open_link(ipmi, true, err) < 0)
        return -1;
    if (list)
        return list_sensors(ipmi, s, reply, err);
    if (ipmi->config->sensor[0].kind == JOULE_IPMI_SENSOR_DEFAULT)
        return find_default(ipmi, s, reply, err);
    return find_named(ipmi, s, err);
}

int joule_ipmi_connect(struct joule_ipmi *ipmi, bool list,
                       struct joule_wire_reply *reply, struct joule_error *err)
{
    struct search *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return joule_error_set(err, ENOMEM, "out of memory");
    rc = connect_to(ipmi, s, list, reply, err);
    if (rc < 0 || list) {
        joule_ipmi_link_close(&ipmi->link);
        free(s);
        return rc;
    }
    if (s->skipped && !s->remark.text[0])
        joule_error_set(&s->remark, 0,
                        "%u of the BMC's sensor records cannot be read "
                        "(record %u)",
                        s->skipped, s->skipped_id);
    memcpy(reply->head.text, s->remark.text, sizeof(s->remark.text));
    reply->count = ipmi->count;
    for (uint32_t i = 0; i < ipmi->count; i++)
        describe(&ipmi->slots[i], &reply->found[i]);
    ipmi->found = ipmi->current = true;
    ipmi->checked_ns = ipmi->read_ns = now_ns();
    free(s);
    return 0;
}

/* ---- between readings ---- */

/* 0, or -1; ESTALE: the record does not say what it said, and readings stop
 * until somebody connects. */
static int verify(struct joule_ipmi *ipmi, const struct slot *slot,
                  struct joule_error *err)
{
    struct joule_sdr sdr;
    struct record r;
    int rc;

    if (slot->kind != JOULE_IPMI_SENSOR_RECORD)
        return 0;
    rc = read_record(ipmi, slot->sdr.record_id, &r, err);
    if (rc < 0 && errno != ENOENT)
        return -1;
    if (rc == 0 && joule_sdr_parse(r.bytes, r.size, &sdr, err) == 0 &&
        same_sdr(&sdr, &slot->sdr))
        return 0;
    joule_error_set(err, ESTALE,
                    "the BMC's sensor records have changed: record %u is no "
                    "longer \"%s\" as it was",
                    slot->sdr.record_id, slot->sdr.name);
    ipmi->current = false;
    ipmi->stale = *err;
    joule_ipmi_link_close(&ipmi->link);
    return -1;
}

static uint32_t count_records(const struct joule_ipmi *ipmi)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < ipmi->count; i++)
        n += ipmi->slots[i].kind == JOULE_IPMI_SENSOR_RECORD;
    return n;
}

/* When the next record is to be looked at, such that each comes in time. */
static int64_t check_due_ns(const struct joule_ipmi *ipmi)
{
    int64_t ns = sooner(ipmi->config->period_ns, CHECK_NS / CHECK_PERIODS) *
                 CHECK_PERIODS;
    uint32_t n = count_records(ipmi);

    return n == 0 ? INT64_MAX : ipmi->checked_ns + ns / n;
}

static int64_t alive_due_ns(const struct joule_ipmi *ipmi)
{
    return joule_ipmi_is_lan(ipmi->config)
               ? ipmi->link.asked_ns + JOULE_IPMI_IDLE_NS
               : INT64_MAX;
}

static void check_next(struct joule_ipmi *ipmi)
{
    struct joule_error err;

    while (ipmi->slots[ipmi->turn % ipmi->count].kind !=
           JOULE_IPMI_SENSOR_RECORD)
        ipmi->turn++;
    ipmi->reserved = false; /* somebody else may have reserved since */
    verify(ipmi, &ipmi->slots[ipmi->turn++ % ipmi->count], &err);
}

/* If it fails, the link is closed and the next reading opens it. */
static void keep_alive(struct joule_ipmi *ipmi)
{
    const struct joule_ipmi_question q = {.net_fn = NETFN_APP,
                                          .cmd = CMD_DEVICE_ID};
    uint8_t rs[JOULE_IPMI_ANSWER_MAX];

    joule_ipmi_link_ask(&ipmi->link, &q, rs, NULL);
}

int64_t joule_ipmi_idle(struct joule_ipmi *ipmi)
{
    const struct joule_ipmi_config *config = ipmi->config;
    int64_t now = now_ns(), due_ns;
    int64_t limit_ns = later(
        sooner(config->answer_ns, ipmi->read_ns + config->period_ns - now),
        IDLE_LIMIT_NS);

    if (!ipmi->current || !ipmi->link.ctx)
        return -1;
    ipmi->link.deadline_ns = now + limit_ns;
    if (now >= check_due_ns(ipmi)) {
        ipmi->checked_ns = now;
        /* A BMC that needs so long is asked for its records when it is
         * connected to, and not while a reading may be waiting. */
        if (ipmi->link.slowest_ns < limit_ns / 4)
            check_next(ipmi);
    } else if (now >= alive_due_ns(ipmi)) {
        keep_alive(ipmi);
    }
    if (!ipmi->link.ctx)
        return -1;
    due_ns = sooner(check_due_ns(ipmi), alive_due_ns(ipmi));
    return due_ns == INT64_MAX ? -1 : later(due_ns - now_ns(), 0);
}

/* ---- read ---- */

static int reconnect(struct joule_ipmi *ipmi, struct joule_error *err)
{
    if (open_link(ipmi, false, err) < 0)
        return -1;
    ipmi->checked_ns = now_ns();
    for (uint32_t i = 0; i < ipmi->count; i++)
        if (verify(ipmi, &ipmi->slots[i], err) < 0)
            return -1;
    return 0;
}

/* How long an answer of this session may take before a new one is tried:
 * such that time is left for that, but not less than the BMC is known to
 * need.  After a reading that failed the BMC may need it all. */
static int64_t patience_ns(const struct joule_ipmi *ipmi)
{
    int64_t slowest_ns = ipmi->link.slowest_ns;

    if (ipmi->doubtful)
        return ipmi->config->answer_ns;
    return later(ipmi->config->answer_ns / 2, slowest_ns + slowest_ns / 2);
}

/* Ask for all of them.  [fresh]: the session is younger than the request, or
 * cannot be replaced. */
static int read_all(struct joule_ipmi *ipmi, int64_t deadline_ns, bool fresh,
                    struct joule_wire_value *out, struct joule_error *err)
{
    for (uint32_t i = 0; i < ipmi->count;) {
        ipmi->link.deadline_ns =
            fresh ? deadline_ns
                  : sooner(deadline_ns, now_ns() + patience_ns(ipmi));
        if (ask_power(ipmi, &ipmi->slots[i], &out[i], err) == 0) {
            i++;
            continue;
        }
        ipmi->link.deadline_ns = deadline_ns;
        if (fresh || now_ns() >= deadline_ns || reconnect(ipmi, err) < 0)
            return -1;
        fresh = true; /* the same sensor again */
    }
    return 0;
}

int joule_ipmi_read(struct joule_ipmi *ipmi, struct joule_wire_reply *reply,
                    struct joule_error *err)
{
    bool fresh = !joule_ipmi_is_lan(ipmi->config);
    int64_t deadline_ns;

    ipmi->read_ns = now_ns();
    deadline_ns = ipmi->read_ns + ipmi->config->answer_ns;
    if (!ipmi->current)
        return joule_error_set(err, ipmi->found ? ESTALE : ENOTCONN, "%s",
                               ipmi->stale.text);
    if (!ipmi->link.ctx) {
        if (fresh)
            return joule_error_set(err, ENOTCONN, "the device is closed");
        ipmi->link.deadline_ns = deadline_ns;
        if (reconnect(ipmi, err) < 0)
            return -1;
        fresh = true;
    }
    ipmi->doubtful = read_all(ipmi, deadline_ns, fresh, reply->value, err) < 0;
    reply->count = ipmi->count;
    return ipmi->doubtful ? -1 : 0;
}

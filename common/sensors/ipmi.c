/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/ipmi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/sensors/ipmi_choice.h"
#include "common/sensors/ipmi_find.h"

/* How often the sensor records are looked at: each so many periods, but once a
 * minute at least. */
#define CHECK_PERIODS 60
#define CHECK_NS      INT64_C(60000000000)

/* The least time for it, and for a keep-alive. */
#define IDLE_LIMIT_NS JOULE_NS_PER_S

#define DCMI_MAX_W 65535.0

#define NETFN_APP     0x06
#define CMD_DEVICE_ID 0x01

struct joule_ipmi {
    const struct joule_ipmi_config *config;
    struct joule_ipmi_link *link;
    struct joule_ipmi_repo repo;
    struct joule_ipmi_repo_info info; /* if have_info */
    bool have_info;
    bool found;               /* slots[0..count-1] are filled */
    bool doubtful;            /* the last reading failed */
    bool current;             /* and are what the BMC has, as far as known */
    struct joule_error stale; /* why not */
    uint32_t count;
    uint32_t turn;      /* whose record is looked at next */
    int64_t read_ns;    /* when the last reading began */
    int64_t checked_ns; /* when the records were last looked at */
    struct joule_ipmi_slot slots[JOULE_IPMI_SENSORS_MAX];
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
    ipmi->link = joule_ipmi_link_create(config, err);
    if (!ipmi->link) {
        free(ipmi);
        return NULL;
    }
    return ipmi;
}

void joule_ipmi_destroy(struct joule_ipmi *ipmi)
{
    if (!ipmi)
        return;
    joule_ipmi_link_destroy(ipmi->link);
    free(ipmi);
}

bool joule_ipmi_wants_ipc(const struct joule_ipmi *ipmi)
{
    return joule_ipmi_link_wants_ipc(ipmi->link);
}

bool joule_ipmi_is_connected(const struct joule_ipmi *ipmi)
{
    return joule_ipmi_link_is_open(ipmi->link);
}

static int open_link(struct joule_ipmi *ipmi, int64_t deadline_ns, bool lookup,
                     struct joule_error *err)
{
    if (joule_ipmi_link_open(ipmi->link, deadline_ns, lookup, err) < 0)
        return -1;
    ipmi->repo = (struct joule_ipmi_repo){.link = ipmi->link};
    return 0;
}

/* ---- what the BMC has ---- */

static void describe(const struct joule_ipmi_slot *slot,
                     struct joule_wire_found *found)
{
    memset(found, 0, sizeof(*found));
    found->kind = slot->kind;
    found->changed = slot->changed;
    snprintf(found->unit, sizeof(found->unit), "W");
    if (slot->kind != JOULE_IPMI_SENSOR_RECORD) {
        snprintf(found->name, sizeof(found->name), "DCMI");
        found->step_w = 1.0;
        found->max_w = DCMI_MAX_W;
        return;
    }
    snprintf(found->name, sizeof(found->name), "%s", slot->sdr.name);
    found->record_id = slot->sdr.record_id;
    found->number = slot->sdr.number;
    found->entity = slot->sdr.entity;
    found->instance = slot->sdr.instance;
    found->step_w = joule_sdr_step(&slot->sdr);
    joule_sdr_value(&slot->sdr, joule_sdr_highest(&slot->sdr), &found->max_w);
}

struct list {
    uint32_t count, more;
    struct joule_ipmi_slot slots[JOULE_IPMI_SENSORS_MAX];
    struct joule_ipmi_skipped skipped;
};

static int visit(void *arg, const struct joule_ipmi_record *record)
{
    struct list *list = arg;
    struct joule_sdr sdr;

    if (joule_sdr_parse(record->bytes, record->size, &sdr, NULL) < 0)
        return -1;
    if (joule_ipmi_check_sdr(&sdr, NULL) < 0)
        return 0;
    if (list->count == JOULE_IPMI_SENSORS_MAX - 1) { /* DCMI needs the last */
        list->more++;
        return 0;
    }
    list->slots[list->count].kind = JOULE_IPMI_SENSOR_RECORD;
    list->slots[list->count++].sdr = sdr;
    return 0;
}

/* Every sensor in watts with one reading.  DCMI stands last, if it measures or
 * only says that it does not. */
static int make_list(struct joule_ipmi *ipmi, struct list *list,
                     int64_t deadline_ns, struct joule_wire_found *found,
                     struct joule_wire_value *value, struct joule_error *err)
{
    enum joule_power_status status;

    if (joule_ipmi_repo_walk(&ipmi->repo, deadline_ns, visit, list,
                             &list->skipped, err) < 0)
        return -1;
    list->slots[list->count++].kind = JOULE_IPMI_SENSOR_DCMI;
    for (uint32_t i = 0; i < list->count; i++) {
        if (joule_ipmi_ask_power(ipmi->link, ipmi->config, &list->slots[i],
                                 deadline_ns, &value[i], err) < 0)
            return -1;
        describe(&list->slots[i], &found[i]);
    }
    status = value[list->count - 1].status;
    if (status != JOULE_POWER_OK && status != JOULE_POWER_NOT_ACTIVE)
        list->count--;
    return 0;
}

int joule_ipmi_list(struct joule_ipmi *ipmi, struct joule_wire_found *found,
                    struct joule_wire_value *value, uint32_t *ret_count,
                    uint32_t *ret_more, struct joule_error *err)
{
    int64_t deadline_ns = now_ns() + ipmi->config->connect_ns;
    struct list *list = calloc(1, sizeof(*list));
    int rc, saved;

    if (!list)
        return joule_error_set(err, ENOMEM, "out of memory");
    ipmi->current = ipmi->found = false;
    joule_error_set(&ipmi->stale, 0, "not connected");
    rc = open_link(ipmi, deadline_ns, true, err);
    if (rc == 0)
        rc = make_list(ipmi, list, deadline_ns, found, value, err);
    saved = errno;
    *ret_count = rc == 0 ? list->count : 0;
    *ret_more = list->more;
    joule_ipmi_link_close(ipmi->link);
    free(list);
    errno = saved;
    return rc;
}

/* ---- connect ---- */

static int find_named(struct joule_ipmi *ipmi,
                      const struct joule_ipmi_slot *before, int64_t deadline_ns,
                      struct joule_error *ret_remark, struct joule_error *err)
{
    ipmi->count = ipmi->config->sensor_count;
    return joule_ipmi_find(&ipmi->repo, ipmi->config, before, deadline_ns,
                           ipmi->slots, ret_remark, err);
}

/* No sensor is named: those that cover the node by what the BMC has now. */
static int find_default(struct joule_ipmi *ipmi, int64_t deadline_ns,
                        struct joule_error *ret_remark, struct joule_error *err)
{
    struct {
        struct list list;
        struct joule_wire_found found[JOULE_IPMI_SENSORS_MAX];
        struct joule_wire_value value[JOULE_IPMI_SENSORS_MAX];
        struct joule_ipmi_choice choice;
    } *d = calloc(1, sizeof(*d));
    int rc;

    if (!d)
        return joule_error_set(err, ENOMEM, "out of memory");
    ret_remark->text[0] = '\0';
    rc = make_list(ipmi, &d->list, deadline_ns, d->found, d->value, err);
    if (rc == 0 && d->list.more > 0)
        rc = joule_error_set(err, ENOTUNIQ,
                             "the BMC has too many sensors in watts (%u) to "
                             "choose among them: EnergyIPMIPowerSensors must "
                             "say which (joule probe)",
                             d->list.count + d->list.more);
    if (rc == 0)
        rc = joule_ipmi_choose(d->found, d->value, d->list.count, &d->choice,
                               err);
    if (rc == 0) {
        ipmi->count = d->choice.count;
        for (uint32_t n = 0; n < ipmi->count; n++)
            ipmi->slots[n] = d->list.slots[d->choice.index[n]];
        joule_ipmi_say_skipped(&d->list.skipped, ret_remark);
    }
    free(d);
    return rc;
}

uint32_t joule_ipmi_count(const struct joule_ipmi *ipmi)
{
    return ipmi->count;
}

int joule_ipmi_connect(struct joule_ipmi *ipmi, struct joule_wire_found *found,
                       struct joule_error *ret_remark, struct joule_error *err)
{
    const struct joule_ipmi_config *config = ipmi->config;
    struct joule_ipmi_slot *before = NULL;
    int64_t deadline_ns = now_ns() + config->connect_ns;
    int rc;

    if (ipmi->found && ipmi->count == config->sensor_count) {
        before = calloc(ipmi->count, sizeof(*before));
        if (before)
            memcpy(before, ipmi->slots, ipmi->count * sizeof(*before));
    }
    ipmi->current = false;
    joule_error_set(&ipmi->stale, 0, "not connected");
    rc = open_link(ipmi, deadline_ns, true, err);
    if (rc == 0) {
        /* Before the records: a change in between is then seen. */
        ipmi->have_info = joule_ipmi_repo_info(&ipmi->repo, deadline_ns,
                                               &ipmi->info, NULL) == 0;
        if (config->sensor[0].kind == JOULE_IPMI_SENSOR_DEFAULT)
            rc = find_default(ipmi, deadline_ns, ret_remark, err);
        else
            rc = find_named(ipmi, before, deadline_ns, ret_remark, err);
        ipmi->found = rc == 0;
    }
    if (rc == 0) {
        ipmi->current = true;
        ipmi->checked_ns = ipmi->read_ns = now_ns();
        for (uint32_t i = 0; i < ipmi->count; i++)
            describe(&ipmi->slots[i], &found[i]);
    } else {
        int saved = errno;

        joule_ipmi_link_close(ipmi->link);
        errno = saved;
    }
    free(before);
    return rc;
}

/* ---- the records are what they were ---- */

/* 0, or -1; ESTALE: they are not, and readings stop until somebody connects. */
static int verify(struct joule_ipmi *ipmi, uint32_t i, int64_t deadline_ns,
                  struct joule_error *err)
{
    if (joule_ipmi_verify(&ipmi->repo, &ipmi->slots[i], deadline_ns, err) == 0)
        return 0;
    if (errno == ESTALE) {
        ipmi->current = false;
        ipmi->stale = *err;
        joule_ipmi_link_close(ipmi->link);
        errno = ESTALE;
    }
    return -1;
}

static int verify_all(struct joule_ipmi *ipmi, int64_t deadline_ns,
                      struct joule_error *err)
{
    for (uint32_t i = 0; i < ipmi->count; i++)
        if (verify(ipmi, i, deadline_ns, err) < 0)
            return -1;
    return 0;
}

static bool same_info(const struct joule_ipmi_repo_info *a,
                      const struct joule_ipmi_repo_info *b)
{
    return a->count == b->count && a->added == b->added &&
           a->erased == b->erased;
}

/* The times of the last change are enough for BMCs that keep them; for the
 * others one record is looked at each time. */
static void check_records(struct joule_ipmi *ipmi, int64_t deadline_ns)
{
    struct joule_ipmi_repo_info info;
    struct joule_error err;

    /* Somebody else may have reserved since. */
    ipmi->repo.reserved = false;
    if (ipmi->have_info &&
        joule_ipmi_repo_info(&ipmi->repo, deadline_ns, &info, NULL) == 0 &&
        !same_info(&info, &ipmi->info)) {
        if (verify_all(ipmi, deadline_ns, &err) == 0)
            ipmi->info = info;
        return;
    }
    if (!joule_ipmi_link_is_open(ipmi->link))
        return;
    for (uint32_t n = 0; n < ipmi->count; n++) {
        uint32_t i = (ipmi->turn + n) % ipmi->count;

        if (ipmi->slots[i].kind != JOULE_IPMI_SENSOR_RECORD)
            continue;
        ipmi->turn = i + 1;
        verify(ipmi, i, deadline_ns, &err);
        return;
    }
}

static bool has_records(const struct joule_ipmi *ipmi)
{
    for (uint32_t i = 0; i < ipmi->count; i++)
        if (ipmi->slots[i].kind == JOULE_IPMI_SENSOR_RECORD)
            return true;
    return false;
}

static int64_t check_ns(const struct joule_ipmi *ipmi)
{
    int64_t period_ns = ipmi->config->period_ns;

    return period_ns < CHECK_NS / CHECK_PERIODS ? period_ns * CHECK_PERIODS
                                                : CHECK_NS;
}

static void keep_alive(struct joule_ipmi *ipmi, int64_t deadline_ns)
{
    const struct joule_ipmi_question q = {.net_fn = NETFN_APP,
                                          .cmd = CMD_DEVICE_ID};
    uint8_t rs[JOULE_IPMI_ANSWER_MAX];

    /* If it fails, the link is closed and the next reading opens it. */
    joule_ipmi_link_ask(ipmi->link, &q, deadline_ns, rs, sizeof(rs), NULL);
}

int64_t joule_ipmi_idle(struct joule_ipmi *ipmi)
{
    const struct joule_ipmi_config *config = ipmi->config;
    bool lan = joule_ipmi_link_is_lan(ipmi->link);
    bool records = has_records(ipmi);
    int64_t now = now_ns();
    int64_t limit_ns =
        sooner(config->answer_ns, ipmi->read_ns + config->period_ns - now);
    int64_t due_ns = INT64_MAX;

    limit_ns = later(limit_ns, IDLE_LIMIT_NS);
    if (!ipmi->current || !joule_ipmi_link_is_open(ipmi->link))
        return -1;
    if (records && now >= ipmi->checked_ns + check_ns(ipmi)) {
        ipmi->checked_ns = now;
        /* A BMC that needs so long is asked for its records when it is
         * connected to, and not while a reading may be waiting. */
        if (joule_ipmi_link_slowest_ns(ipmi->link) < limit_ns / 4)
            check_records(ipmi, now + limit_ns);
    } else if (lan && now >= joule_ipmi_link_asked_ns(ipmi->link) +
                                 JOULE_IPMI_IDLE_NS) {
        keep_alive(ipmi, now + limit_ns);
    }
    if (!joule_ipmi_link_is_open(ipmi->link))
        return -1;
    if (records)
        due_ns = ipmi->checked_ns + check_ns(ipmi);
    if (lan)
        due_ns = sooner(due_ns, joule_ipmi_link_asked_ns(ipmi->link) +
                                    JOULE_IPMI_IDLE_NS);
    return due_ns == INT64_MAX ? -1 : later(due_ns - now_ns(), 0);
}

/* ---- read ---- */

static int reconnect(struct joule_ipmi *ipmi, int64_t deadline_ns,
                     struct joule_error *err)
{
    if (open_link(ipmi, deadline_ns, false, err) < 0)
        return -1;
    ipmi->checked_ns = now_ns();
    return verify_all(ipmi, deadline_ns, err);
}

/* How long an answer of this session may take before a new one is tried:
 * such that time is left for that, but not less than the BMC is known to
 * need.  After a reading that failed the BMC may need it all. */
static int64_t patience_ns(const struct joule_ipmi *ipmi)
{
    int64_t slowest_ns = joule_ipmi_link_slowest_ns(ipmi->link);

    if (ipmi->doubtful)
        return ipmi->config->answer_ns;
    return later(ipmi->config->answer_ns / 2, slowest_ns + slowest_ns / 2);
}

/* Ask for all of them.  [fresh]: the session is younger than the request. */
static int read_all(struct joule_ipmi *ipmi, int64_t deadline_ns, bool fresh,
                    struct joule_wire_value *out, struct joule_error *err)
{
    bool lan = joule_ipmi_link_is_lan(ipmi->link);

    for (uint32_t i = 0; i < ipmi->count;) {
        int64_t limit_ns = deadline_ns;

        if (!fresh && lan)
            limit_ns = sooner(deadline_ns, now_ns() + patience_ns(ipmi));
        if (joule_ipmi_ask_power(ipmi->link, ipmi->config, &ipmi->slots[i],
                                 limit_ns, &out[i], err) == 0) {
            i++;
            continue;
        }
        if (fresh || !lan || now_ns() >= deadline_ns ||
            reconnect(ipmi, deadline_ns, err) < 0)
            return -1;
        fresh = true; /* the same sensor again */
    }
    return 0;
}

int joule_ipmi_read(struct joule_ipmi *ipmi, struct joule_wire_value *out,
                    struct joule_error *err)
{
    int64_t deadline_ns;
    bool fresh = false;

    ipmi->read_ns = now_ns();
    deadline_ns = ipmi->read_ns + ipmi->config->answer_ns;
    if (!ipmi->current)
        return joule_error_set(err, ipmi->found ? ESTALE : ENOTCONN, "%s",
                               ipmi->stale.text);
    if (!joule_ipmi_link_is_open(ipmi->link)) {
        if (!joule_ipmi_link_is_lan(ipmi->link))
            return joule_error_set(err, ENOTCONN, "the device is closed");
        if (reconnect(ipmi, deadline_ns, err) < 0)
            return -1;
        fresh = true;
    }
    ipmi->doubtful = read_all(ipmi, deadline_ns, fresh, out, err) < 0;
    return ipmi->doubtful ? -1 : 0;
}

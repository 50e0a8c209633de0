/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/ipmi_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/hash.h"
#include "common/base/helper.h"

#define GRACE_NS JOULE_NS_PER_S /* beyond what the BMC is given */

struct reader {
    struct joule_meter meter; /* first: a meter is cast to it */
    struct joule_domain domains[JOULE_IPMI_LABELS_MAX];
    const struct joule_clock *clock;
    char *program;                   /* NULL: it is never read */
    struct joule_ipmi_config config; /* no password, if there is a file */
    char *credentials_file;          /* empty: none */
    int root_fd;
    struct joule_helper helper;
    bool open; /* the process has answered JOULE_WIRE_OPEN */
    int interrupt_fd;
    atomic_bool interrupted;
    /* what the last connection found */
    bool has_found;
    struct joule_wire_found found[JOULE_IPMI_SENSORS_MAX];
    uint64_t sensor_key[JOULE_IPMI_LABELS_MAX]; /* of each label's, found */
    /* for the log, in this order */
    bool say_found;
    struct joule_error remark; /* empty: none */
};

_Static_assert(offsetof(struct joule_wire_request, config) ==
                       sizeof(struct joule_helper_head) &&
                   sizeof(struct joule_wire_request) ==
                       sizeof(struct joule_helper_head) +
                           sizeof(struct joule_ipmi_config),
               "head and configuration make a request");
_Static_assert(sizeof(((struct joule_domain *)0)->name) ==
                   JOULE_IPMI_LABEL_SIZE,
               "labels are the names of domains");

static const char *const driver_names[] = {
    [JOULE_IPMI_DRIVER_ANY] = "in-band",
    [JOULE_IPMI_DRIVER_OPENIPMI] = "OPENIPMI",
    [JOULE_IPMI_DRIVER_KCS] = "KCS",
    [JOULE_IPMI_DRIVER_SSIF] = "SSIF",
    [JOULE_IPMI_DRIVER_LAN] = "LAN",
    [JOULE_IPMI_DRIVER_LAN_2_0] = "LAN_2_0",
};

/* What tells a sensor from any other: its record, number, entity, name and
 * unit. */
static uint64_t hash_sensor(uint64_t hash, const struct joule_wire_found *f)
{
    hash = joule_hash_u64(hash, (uint64_t)f->kind << 32 |
                                    (uint64_t)f->record_id << 8 | f->number);
    hash = joule_hash_u64(hash, (uint64_t)f->entity << 8 | f->instance);
    hash = joule_hash_text(hash, f->name);
    return joule_hash_text(hash, f->unit);
}

static bool same_sensor(const struct joule_wire_found *a,
                        const struct joule_wire_found *b)
{
    return hash_sensor(JOULE_HASH_BEGIN, a) ==
               hash_sensor(JOULE_HASH_BEGIN, b) &&
           a->step_w == b->step_w && a->max_w == b->max_w;
}

/* Of the sensors of a label, and of the BMC, where it is not this machine's. */
static uint64_t sensor_key(const struct reader *r, uint32_t label)
{
    uint64_t hash = JOULE_HASH_BEGIN;

    if (joule_ipmi_is_lan(&r->config))
        hash = joule_hash_text(hash, r->config.host);
    for (uint32_t i = 0; i < r->config.sensor_count; i++)
        if (r->config.sensor[i].label == label)
            hash = hash_sensor(hash, &r->found[i]);
    return hash;
}

/*
 * What was chosen where the configuration names nothing is what counts from
 * now on, as if it had named it: the node's power is not another sensor's after
 * a connection that was lost.  -1: another number than there are, or a choice
 * that is none.
 */
static int take_found(struct reader *r, const struct joule_wire_reply *opened)
{
    struct joule_ipmi_config *c = &r->config;
    bool chosen = c->sensor[0].kind == JOULE_IPMI_SENSOR_DEFAULT;

    if (chosen ? opened->count < 1 || opened->count > JOULE_IPMI_SENSORS_MAX
               : opened->count != c->sensor_count)
        return -1;
    for (uint32_t i = 0; chosen && i < opened->count; i++)
        if (opened->found[i].kind != JOULE_IPMI_SENSOR_RECORD &&
            opened->found[i].kind != JOULE_IPMI_SENSOR_DCMI)
            return -1;
    c->sensor_count = opened->count;
    for (uint32_t i = 0; i < c->sensor_count; i++) {
        const struct joule_wire_found *found = &opened->found[i];
        struct joule_ipmi_sensor *sensor = &c->sensor[i];

        if (!r->has_found || !same_sensor(found, &r->found[i]))
            r->say_found = true;
        r->found[i] = *found;
        if (chosen)
            *sensor = (struct joule_ipmi_sensor){.kind = found->kind,
                                                 .record_id = found->record_id};
        if (sensor->kind <= JOULE_IPMI_SENSOR_NAME)
            memcpy(sensor->found_name, found->name, sizeof(found->name));
    }
    r->has_found = true;
    for (uint32_t i = 0; i < c->label_count; i++)
        r->sensor_key[i] = sensor_key(r, i);
    if (opened->head.text[0])
        joule_error_set(&r->remark, 0, "%s", opened->head.text);
    return 0;
}

/* A struct joule_wire_request, without a copy of a password that may be in the
 * configuration; and the open credentials file. */
static int send_config(struct reader *r, uint32_t type, int64_t wait_ns,
                       struct joule_error *err)
{
    struct joule_helper_head head = joule_helper_request(
        &r->helper, type, sizeof(struct joule_wire_request));
    struct iovec part[] = {{&head, sizeof(head)},
                           {&r->config, sizeof(r->config)}};
    struct msghdr packet = {.msg_iov = part, .msg_iovlen = 2};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {{0}};
    int fd, rc, errnum;

    if (!r->credentials_file[0])
        return joule_helper_send(&r->helper, &packet, head.size, wait_ns, err);
    fd = joule_ipmi_credentials_open(r->root_fd, r->credentials_file, err);
    if (fd < 0)
        return -1;
    snprintf(head.text, sizeof(head.text), "%s", r->credentials_file);
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
    packet.msg_control = &control;
    packet.msg_controllen = sizeof(control);
    rc = joule_helper_send(&r->helper, &packet, head.size, wait_ns, err);
    errnum = errno;
    close(fd);
    errno = errnum;
    return rc;
}

/* Start a process where there is none, and send it the configuration with a
 * request of [type]. */
static int ask_with_config(struct reader *r, uint32_t type,
                           struct joule_wire_reply *reply,
                           struct joule_error *err)
{
    int64_t wait_ns = r->config.connect_ns + GRACE_NS;

    /* One that has given up its rights ends after a failure. */
    if (!joule_helper_is_there(&r->helper))
        joule_helper_kill(&r->helper);
    if ((r->helper.pid == 0 &&
         joule_helper_start(&r->helper, r->program, err) < 0) ||
        send_config(r, type, wait_ns, err) < 0 ||
        joule_helper_reply(&r->helper, type, sizeof(*reply), wait_ns,
                           r->interrupt_fd, reply, sizeof(*reply), err) < 0)
        return -1;
    reply->head.text[sizeof(reply->head.text) - 1] = '\0';
    for (uint32_t i = 0; i < JOULE_IPMI_SENSORS_MAX; i++) {
        struct joule_wire_found *f = &reply->found[i];

        f->name[sizeof(f->name) - 1] = '\0';
        f->unit[sizeof(f->unit) - 1] = '\0';
    }
    return 0;
}

static int connect_bmc(struct reader *r, struct joule_error *err)
{
    struct joule_wire_reply reply;
    int rc = ask_with_config(r, JOULE_WIRE_OPEN, &reply, err);

    if (rc == 0 && take_found(r, &reply) < 0)
        rc = joule_helper_reject(&r->helper, "another number of sensors", err);
    if (rc < 0) {
        /* What failed attempts leave behind in it is not gathered; it has no
         * session with the BMC that it could close. */
        if (errno != ECANCELED)
            joule_helper_kill(&r->helper);
        return -1;
    }
    r->open = true;
    return 0;
}

/* The sum of a label's sensors.  One that reads 0 W may be one of several: a
 * power supply that only stands by. */
static void sum_label(const struct reader *r, uint32_t label,
                      const struct joule_wire_value *value,
                      struct joule_power *out)
{
    int64_t first_ns = 0, since_first_ns = 0, n = 0;
    enum joule_power_status worst = JOULE_POWER_OK;
    double watts = 0;

    for (uint32_t i = 0; i < r->config.sensor_count; i++) {
        const struct joule_wire_value *v = &value[i];
        int64_t middle_ns = v->begin_ns + (v->end_ns - v->begin_ns) / 2;

        if (r->config.sensor[i].label != label)
            continue;
        if (n++ == 0)
            first_ns = middle_ns;
        since_first_ns += middle_ns - first_ns;
        if (v->status == JOULE_POWER_OK)
            watts += v->watts;
        else if (v->status != JOULE_POWER_ZERO && v->status > worst)
            worst = v->status;
    }
    if (worst == JOULE_POWER_OK) {
        if (!(watts <= JOULE_POWER_MAX_W)) /* nor is NaN */
            worst = JOULE_POWER_ABSURD;
        else if (watts < 0)
            worst = JOULE_POWER_NEGATIVE;
        else if (watts == 0 && label == 0)
            worst = JOULE_POWER_ZERO;
    }
    out->watts = worst == JOULE_POWER_OK ? watts : 0;
    out->status = worst;
    out->sensor_key = r->sensor_key[label];
    out->mono_ns = first_ns + since_first_ns / n;
}

/* What arithmetic relies on; anything else in a value is judged as power. After
 * one of the future, all others until then would be too old. */
static bool is_sound(const struct joule_wire_value *v, int64_t now_ns)
{
    return (unsigned)v->status < JOULE_POWER_STATUS_COUNT && v->begin_ns >= 0 &&
           v->end_ns >= v->begin_ns && v->end_ns <= now_ns;
}

static int check_values(struct reader *r, const struct joule_wire_reply *reply,
                        struct joule_error *err)
{
    int64_t now_ns = joule_clock_mono_ns(&joule_clock_system);

    for (uint32_t i = 0; i < reply->count; i++)
        if (!is_sound(&reply->value[i], now_ns))
            return joule_helper_reject(&r->helper, "a value that cannot be",
                                       err);
    return 0;
}

static int read_values(struct reader *r, struct joule_power *out,
                       struct joule_error *err)
{
    struct joule_helper_head request =
        joule_helper_request(&r->helper, JOULE_WIRE_READ, sizeof(request));
    struct iovec part = {&request, sizeof(request)};
    const struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    struct joule_wire_reply reply;
    int64_t wait_ns = r->config.answer_ns + GRACE_NS;

    if (joule_helper_send(&r->helper, &packet, sizeof(request), wait_ns, err) <
            0 ||
        joule_helper_reply(&r->helper, JOULE_WIRE_READ, JOULE_WIRE_VALUES_SIZE,
                           wait_ns, r->interrupt_fd, &reply, sizeof(reply),
                           err) < 0)
        return -1;
    if (reply.count != r->config.sensor_count)
        return joule_helper_reject(&r->helper, "another number of values", err);
    if (check_values(r, &reply, err) < 0)
        return -1;
    for (uint32_t i = 0; i < r->config.label_count; i++)
        sum_label(r, i, reply.value, &out[i]);
    return 0;
}

static int reader_read(struct joule_meter *meter, struct joule_power *out,
                       struct joule_error *err)
{
    struct reader *r = (struct reader *)meter;
    int errnum;

    if (!r->program)
        return joule_error_set(err, ENOSYS, "the BMC is read in slurmd only");
    if (atomic_load(&r->interrupted)) {
        joule_helper_destroy(&r->helper);
        errno = ECANCELED;
        return -1;
    }
    joule_helper_reap(&r->helper);
    if (!r->open &&
        !joule_helper_is_due(&r->helper, joule_clock_mono_ns(r->clock))) {
        errno = EAGAIN;
        return -1;
    }
    if ((r->open || connect_bmc(r, err) == 0) &&
        read_values(r, out, err) == 0) {
        joule_helper_worked(&r->helper);
        return 0;
    }
    errnum = errno;
    /* A process that is well but could not read connects again: the session
     * may be gone. */
    r->open = false;
    joule_helper_failed(&r->helper, joule_clock_mono_ns(r->clock));
    errno = errnum;
    return -1;
}

static void reader_interrupt(struct joule_meter *meter)
{
    struct reader *r = (struct reader *)meter;
    const uint64_t one = 1;

    atomic_store(&r->interrupted, true);
    /* Never reset; can fail only when it has been written 2^64 - 2 times. */
    if (write(r->interrupt_fd, &one, sizeof(one)) < 0)
        return;
}

static void append(char *text, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *text, size_t size, const char *fmt, ...)
{
    size_t len = strlen(text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + len, size - len, fmt, ap);
    va_end(ap);
}

static void describe_found(const struct reader *r, struct joule_error *out)
{
    const struct joule_ipmi_config *c = &r->config;
    char text[4 * JOULE_ERROR_MAX] = "";

    for (uint32_t i = 0; i < c->sensor_count; i++) {
        const struct joule_wire_found *f = &r->found[i];

        append(text, sizeof(text), "%s", i > 0 ? ", " : "");
        if (c->label_count > 1)
            append(text, sizeof(text), "%s=", c->label[c->sensor[i].label]);
        if (f->kind == JOULE_IPMI_SENSOR_DCMI_ENHANCED)
            append(text, sizeof(text), "DCMI mean power");
        else if (f->kind == JOULE_IPMI_SENSOR_DCMI)
            append(text, sizeof(text), "DCMI power");
        else if (f->step_w > 0 && f->max_w > 0)
            append(text, sizeof(text),
                   "%s (record %u, 0-%g W in steps of %g W)", f->name,
                   (unsigned)f->record_id, f->max_w, f->step_w);
        else
            append(text, sizeof(text), "%s (record %u)", f->name,
                   (unsigned)f->record_id);
    }
    joule_error_set(out, 0, "reads sensor%s %s of %s, %s",
                    c->sensor_count > 1 ? "s" : "", text,
                    joule_ipmi_is_lan(c) ? c->host : "this machine's BMC",
                    driver_names[c->driver]);
}

static int reader_remark(struct joule_meter *meter,
                         struct joule_error *ret_remark)
{
    struct reader *r = (struct reader *)meter;

    if (r->say_found) {
        r->say_found = false;
        describe_found(r, ret_remark);
        return 1;
    }
    if (r->remark.text[0]) {
        *ret_remark = r->remark;
        r->remark.text[0] = '\0';
        return 1;
    }
    return 0;
}

static void reader_destroy(struct joule_meter *meter)
{
    struct reader *r = (struct reader *)meter;

    joule_helper_destroy(&r->helper);
    if (r->interrupt_fd >= 0)
        close(r->interrupt_fd);
    if (r->root_fd >= 0)
        close(r->root_fd);
    free(r->program);
    free(r->credentials_file);
    explicit_bzero(&r->config, sizeof(r->config));
    free(r);
}

static const struct joule_meter_ops reader_ops = {
    .read = reader_read,
    .remark = reader_remark,
    .interrupt = reader_interrupt,
    .destroy = reader_destroy,
};

int joule_reader_list(struct joule_meter *meter, struct joule_wire_reply *ret,
                      struct joule_error *err)
{
    struct reader *r = (struct reader *)meter;
    int rc, errnum;

    joule_helper_destroy(&r->helper);
    r->open = false;
    rc = ask_with_config(r, JOULE_WIRE_LIST, ret, err);
    if (rc == 0 && ret->count > JOULE_IPMI_SENSORS_MAX)
        rc = joule_helper_reject(&r->helper, "too many sensors", err);
    if (rc == 0)
        rc = check_values(r, ret, err);
    if (rc < 0)
        ret->count = 0;
    errnum = errno;
    joule_helper_destroy(&r->helper);
    errno = errnum;
    return rc;
}

struct joule_meter *
joule_ipmi_helper_create(const struct joule_ipmi_helper_options *opt,
                         struct joule_error *err)
{
    const char *file = opt->credentials_file ? opt->credentials_file : "";
    struct reader *r;
    int errnum;

    if (opt->program &&
        (opt->program[0] != '/' || !joule_ipmi_config_is_sound(opt->config))) {
        joule_error_set(err, EINVAL,
                        "no absolute path of a program, or a configuration "
                        "without sensors");
        return NULL;
    }
    r = calloc(1, sizeof(*r));
    if (!r) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    r->clock = opt->clock;
    r->config = *opt->config;
    joule_helper_init(&r->helper);
    r->helper.version = JOULE_WIRE_VERSION;
    r->helper.asks = "the BMC";
    r->interrupt_fd = r->root_fd = -1;
    r->meter.ops = &reader_ops;
    r->meter.domains = r->domains;
    r->meter.domain_count = r->config.label_count;
    for (uint32_t i = 0; i < r->config.label_count; i++) {
        r->domains[i] = (struct joule_domain){.kind = JOULE_DOMAIN_POWER,
                                              .unit.num = 1,
                                              .width_bits = 64,
                                              .in_total = i == 0};
        memcpy(r->domains[i].name, r->config.label[i],
               sizeof(r->domains[i].name));
    }
    if (!opt->program)
        return &r->meter;
    r->interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->program = strdup(opt->program);
    r->credentials_file = strdup(file);
    if (file[0])
        r->root_fd = fcntl(opt->root_fd, F_DUPFD_CLOEXEC, 0);
    if (r->interrupt_fd >= 0 && r->program && r->credentials_file &&
        (r->root_fd >= 0 || !file[0]))
        return &r->meter;
    errnum = errno;
    reader_destroy(&r->meter);
    joule_error_set(err, errnum, "cannot prepare to read the BMC: %m");
    return NULL;
}

struct joule_meter *
joule_ipmi_helper_labels_create(const struct joule_ipmi_config *config)
{
    const struct joule_ipmi_helper_options opt = {.config = config};

    return joule_ipmi_helper_create(&opt, NULL);
}

const struct joule_wire_found *
joule_reader_found(const struct joule_meter *meter, uint32_t *ret_count)
{
    const struct reader *r = (const struct reader *)meter;

    if (!r->has_found)
        return NULL;
    *ret_count = r->config.sensor_count;
    return r->found;
}

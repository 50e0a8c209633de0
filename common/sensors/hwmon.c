/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/hwmon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/parse.h"

#define CLASS     "sys/class/hwmon"
#define FILE_PATH 320
#define TEXT      64
#define UNKNOWN   UINT64_C(4294967295000) /* uW, of the firmware */
#define SOCKETS   64

enum part { MODULE, GRACE, CPU, SYSIO, PARTS };

static const struct {
    const char *label, *name; /* of the firmware; of the domain */
} parts[PARTS] = {
    {"Module Power Socket ", "Module"},
    {"Grace Power Socket ", "Grace"},
    {"CPU Power Socket ", "CPU"},
    {"SysIO Power Socket ", "SysIO"},
};

struct entry {
    enum part part;
    unsigned socket;
    int fd;
};

struct hwmon {
    struct joule_meter meter; /* first */
    _Atomic bool is_interrupted;
    bool said;
    enum part total; /* whose sum the node's is */
    uint64_t key;
    size_t count;
    struct entry entry[JOULE_DOMAINS_MAX];
    struct joule_domain
        domains[JOULE_DOMAINS_MAX]; /* "Node", and each entry's */
};

/* ---- reading ---- */

static void read_entry(const struct entry *e, const struct joule_clock *clock,
                       struct joule_power *out)
{
    int64_t before_ns = joule_clock_mono_ns(clock);
    char text[TEXT];
    ssize_t n = pread(e->fd, text, sizeof(text) - 1, 0);
    uint64_t uw = 0;

    *out = (struct joule_power){.status = JOULE_POWER_FAILED};
    out->mono_ns = before_ns + (joule_clock_mono_ns(clock) - before_ns) / 2;
    if (n <= 0)
        return;
    if (text[n - 1] == '\n')
        n--;
    text[n] = '\0';
    if (strlen(text) != (size_t)n ||
        joule_parse_u64(text, 0, UINT64_MAX, &uw) < 0 || uw == UNKNOWN)
        return;
    out->watts = (double)uw / 1e6;
    out->status = uw == 0                       ? JOULE_POWER_ZERO
                  : !joule_is_power(out->watts) ? JOULE_POWER_ABSURD
                                                : JOULE_POWER_OK;
}

static int hwmon_read(struct joule_meter *meter, struct joule_power *out,
                      struct joule_error *err)
{
    struct hwmon *h = (struct hwmon *)meter;

    (void)err;
    if (h->is_interrupted)
        return errno = ECANCELED, -1;
    out[0] = (struct joule_power){.status = JOULE_POWER_OK};
    for (size_t i = 0; i < h->count; i++) {
        struct joule_power *p = &out[i + 1];

        read_entry(&h->entry[i], &joule_clock_system, p);
        p->sensor_key = h->key;
        if (h->entry[i].part != h->total)
            continue;
        out[0].watts += p->watts;
        out[0].mono_ns = p->mono_ns;
        if (p->status != JOULE_POWER_OK)
            out[0].status = p->status;
    }
    out[0].sensor_key = h->key;
    return 0;
}

static int hwmon_remark(struct joule_meter *meter, struct joule_error *ret)
{
    struct hwmon *h = (struct hwmon *)meter;

    if (h->said)
        return 0;
    h->said = true;
    joule_error_set(ret, 0,
                    h->total == MODULE
                        ? "the node's power is that of its modules, with GPU "
                          "and memory (hwmon)"
                        : "the node's power is that of its processors' "
                          "sockets (hwmon)");
    return 1;
}

static void hwmon_interrupt(struct joule_meter *meter)
{
    ((struct hwmon *)meter)->is_interrupted = true;
}

static void hwmon_destroy(struct joule_meter *meter)
{
    struct hwmon *h = (struct hwmon *)meter;

    for (size_t i = 0; i < h->count; i++)
        close(h->entry[i].fd);
    free(h);
}

static const struct joule_meter_ops hwmon_ops = {
    .read = hwmon_read,
    .remark = hwmon_remark,
    .interrupt = hwmon_interrupt,
    .destroy = hwmon_destroy,
};

/* ---- finding ---- */

static bool parse_label(const char *text, struct entry *ret)
{
    uint64_t socket;

    for (int i = 0; i < PARTS; i++) {
        size_t length = strlen(parts[i].label);

        if (strncmp(text, parts[i].label, length) != 0)
            continue;
        if (joule_parse_u64(text + length, 0, SOCKETS - 1, &socket) < 0)
            return false;
        ret->part = (enum part)i;
        ret->socket = (unsigned)socket;
        return true;
    }
    return false;
}

/* The attribute of the ACPI device, or where other kernels have it. */
static int open_power(int root_fd, const char *name)
{
    static const char *const files[] = {"device/power1_average",
                                        "power1_average", "device/power1_input",
                                        "power1_input"};
    char path[FILE_PATH];
    int fd = -1;

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && fd < 0; i++) {
        snprintf(path, sizeof(path), CLASS "/%s/%s", name, files[i]);
        fd = joule_file_open(root_fd, path, O_RDONLY);
    }
    return fd;
}

static bool read_label(int root_fd, const char *name, char text[TEXT])
{
    static const char *const files[] = {"device/power1_oem_info",
                                        "power1_oem_info"};
    char path[FILE_PATH];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), CLASS "/%s/%s", name, files[i]);
        if (joule_file_read(root_fd, path, text, TEXT) >= 0)
            return true;
    }
    return false;
}

static int add(struct hwmon *h, int root_fd, const char *name,
               struct joule_error *err)
{
    struct entry e;
    char text[TEXT];

    if (!read_label(root_fd, name, text) || !parse_label(text, &e))
        return 0;
    for (size_t i = 0; i < h->count; i++)
        if (h->entry[i].part == e.part && h->entry[i].socket == e.socket)
            return joule_error_set(err, EINVAL, "hwmon has \"%s\" twice", text);
    if (h->count + 1 == JOULE_DOMAINS_MAX)
        return joule_error_set(err, E2BIG, "hwmon has too many power meters");
    e.fd = open_power(root_fd, name);
    if (e.fd < 0)
        return joule_error_set(err, errno,
                               "cannot open the power of \"%s\": %m", text);
    h->entry[h->count++] = e;
    return 0;
}

static int compare_entries(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;

    if (a->part != b->part)
        return a->part < b->part ? -1 : 1;
    return (a->socket > b->socket) - (a->socket < b->socket);
}

static int find(struct hwmon *h, int root_fd, struct joule_error *err)
{
    int fd = joule_file_open(root_fd, CLASS, O_RDONLY | O_DIRECTORY), rc = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir) {
        joule_close(fd);
        return joule_error_set(err, ENODEV, "there is no /" CLASS);
    }
    while (rc == 0 && (entry = readdir(dir)))
        if (strncmp(entry->d_name, "hwmon", 5) == 0)
            rc = add(h, root_fd, entry->d_name, err);
    closedir(dir);
    qsort(h->entry, h->count, sizeof(h->entry[0]), compare_entries);
    if (rc == 0 && (h->count == 0 || h->entry[0].part > GRACE))
        rc = joule_error_set(err, ENODEV,
                             "/" CLASS " has no power of a Grace module or "
                             "socket");
    return rc;
}

static size_t count_of(const struct hwmon *h, enum part part)
{
    size_t count = 0;

    for (size_t i = 0; i < h->count; i++)
        count += h->entry[i].part == part;
    return count;
}

/* A module that is not there for each socket is not the node. */
static void define(struct hwmon *h)
{
    h->total =
        count_of(h, MODULE) > 0 && count_of(h, MODULE) >= count_of(h, GRACE)
            ? MODULE
            : GRACE;
    h->key = JOULE_HASH_BEGIN;
    for (size_t i = 0; i <= h->count; i++) {
        struct joule_domain *d = &h->domains[i];

        *d = (struct joule_domain){
            .kind = JOULE_DOMAIN_POWER,
            .unit = {.num = 1, .shift = 0},
            .width_bits = 64,
            .in_total = i == 0,
        };
        if (i == 0) {
            strcpy(d->name, "Node");
            continue;
        }
        snprintf(d->name, sizeof(d->name), "%s%u",
                 parts[h->entry[i - 1].part].name, h->entry[i - 1].socket);
        h->key = joule_hash_text(h->key, d->name);
    }
}

struct joule_meter *joule_hwmon_create(int root_fd, struct joule_error *err)
{
    struct hwmon *h = calloc(1, sizeof(*h));
    int saved;

    if (!h) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    if (find(h, root_fd, err) < 0) {
        saved = errno;
        hwmon_destroy(&h->meter);
        errno = saved;
        return NULL;
    }
    define(h);
    h->meter = (struct joule_meter){&hwmon_ops, h->domains, h->count + 1};
    return &h->meter;
}

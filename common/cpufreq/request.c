/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The longest text that can mean something, as Slurm may write it. */
#define TEXT_MAX 64

const struct joule_word joule_governor_names[] = {
    {"conservative", JOULE_GOVERNOR_CONSERVATIVE},
    {"ondemand", JOULE_GOVERNOR_ONDEMAND},
    {"performance", JOULE_GOVERNOR_PERFORMANCE},
    {"powersave", JOULE_GOVERNOR_POWERSAVE},
    {"schedutil", JOULE_GOVERNOR_SCHEDUTIL},
    {"userspace", JOULE_GOVERNOR_USERSPACE},
    {NULL, 0},
};

static const struct joule_word speed_names[] = {
    {"low", JOULE_SPEED_LOW},
    {"medium", JOULE_SPEED_MEDIUM},
    {"highm1", JOULE_SPEED_HIGHM1},
    {"high", JOULE_SPEED_HIGH},
    {NULL, 0},
};

static const char *name_of(const struct joule_word *table, unsigned bits)
{
    for (; table->name; table++)
        if (table->bits == bits)
            return table->name;
    return "";
}

const char *joule_governor_name(enum joule_governor governor)
{
    return name_of(joule_governor_names, governor);
}

static int parse_speed(const char *text, struct joule_speed *ret)
{
    uint64_t khz;
    unsigned word;

    if (joule_parse_word(text, speed_names, &word) == 0) {
        *ret = (struct joule_speed){.kind = (enum joule_speed_kind)word};
        return 0;
    }
    if (joule_parse_u64(text, 1, JOULE_KHZ_MAX, &khz) < 0)
        return -1;
    *ret = (struct joule_speed){.kind = JOULE_SPEED_KHZ, .khz = (uint32_t)khz};
    return 0;
}

static bool same_speed(struct joule_speed a, struct joule_speed b)
{
    return a.kind == b.kind && a.khz == b.khz;
}

/* Whether a is above b whatever the hardware has. */
static bool is_above(struct joule_speed a, struct joule_speed b)
{
    if (a.kind == JOULE_SPEED_KHZ && b.kind == JOULE_SPEED_KHZ)
        return a.khz > b.khz;
    return a.kind != JOULE_SPEED_KHZ && b.kind != JOULE_SPEED_KHZ &&
           a.kind > b.kind;
}

/* The parts of the text, cut in place. */
static int parse_parts(char *text, struct joule_request *r)
{
    char *governor = strchr(text, ':'), *max;
    unsigned word;

    if (governor) {
        *governor++ = '\0';
        if (joule_parse_word(governor, joule_governor_names, &word) < 0)
            return -1;
        r->governor = (enum joule_governor)word;
    } else if (joule_parse_word(text, joule_governor_names, &word) == 0) {
        r->governor = (enum joule_governor)word;
        return 0;
    }
    max = strchr(text, '-');
    if (!max)
        return parse_speed(text, &r->max);
    *max++ = '\0';
    if (parse_speed(text, &r->min) < 0)
        return -1;
    return parse_speed(max, &r->max);
}

int joule_request_parse(const char *text, struct joule_request *ret,
                        struct joule_error *err)
{
    struct joule_request r = {0};
    char parts[TEXT_MAX];
    bool is_range;

    if (strlen(text) >= sizeof(parts))
        return joule_error_set(err, EINVAL,
                               "--cpu-freq=%.40s... is too long to be a "
                               "frequency",
                               text);
    memcpy(parts, text, strlen(text) + 1);
    if (parse_parts(parts, &r) < 0)
        return joule_error_set(err, errno,
                               errno == ERANGE
                                   ? "--cpu-freq=%s: a frequency is 1 to "
                                     "100000000 kHz"
                                   : "--cpu-freq=%s is not P1[-P2][:GOVERNOR] "
                                     "(kHz, low, medium, highm1, high), nor a "
                                     "governor",
                               text);
    is_range = r.min.kind != JOULE_SPEED_NONE && !same_speed(r.min, r.max);
    if (is_range && is_above(r.min, r.max))
        return joule_error_set(err, EINVAL,
                               "--cpu-freq=%s: the lower frequency comes first",
                               text);
    if (is_range && r.governor == JOULE_GOVERNOR_USERSPACE)
        return joule_error_set(err, EINVAL,
                               "--cpu-freq=%s: the governor UserSpace has one "
                               "frequency and not a range",
                               text);
    r.pin = r.max.kind != JOULE_SPEED_NONE && !is_range &&
            (r.governor == JOULE_GOVERNOR_USERSPACE ||
             r.governor == JOULE_GOVERNOR_NONE);
    if (r.pin) {
        r.min.kind = JOULE_SPEED_NONE;
        r.min.khz = 0;
        r.governor = JOULE_GOVERNOR_NONE;
    }
    *ret = r;
    return 0;
}

static void format_speed(struct joule_speed s, char buf[16])
{
    if (s.kind == JOULE_SPEED_KHZ)
        snprintf(buf, 16, "%u", (unsigned)s.khz);
    else
        snprintf(buf, 16, "%s", name_of(speed_names, s.kind));
}

void joule_request_format(const struct joule_request *r,
                          char buf[JOULE_REQUEST_TEXT_MAX])
{
    char min[16], max[16];
    const char *governor = joule_governor_name(r->governor);

    format_speed(r->min, min);
    format_speed(r->max, max);
    snprintf(buf, JOULE_REQUEST_TEXT_MAX, "%s%s%s%s%s", min, *min ? "-" : "",
             max, *max && *governor ? ":" : "", governor);
}

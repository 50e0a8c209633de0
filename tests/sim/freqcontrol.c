/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/freqcontrol.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/parse.h"
#include "tests/sim/command.h"

static int do_dump(void *context, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    struct sim_freqcontrol *c = context;

    if (*arg && strcmp(arg, "all"))
        return joule_error_set(err, EINVAL, "dump takes \"all\" or nothing");
    if (sim_freq_dump(c->freq, *arg, reply, size) >= size)
        return joule_error_set(err, EMSGSIZE,
                               "the state is too long for an answer");
    return 0;
}

static int file_find(struct sim_freqcontrol *c, const char *path,
                     enum sim_freq_dir *ret_dir, size_t *ret_i,
                     const struct sim_freq_file **ret_file,
                     struct joule_error *err)
{
    if (sim_freq_path(c->freq, path, ret_dir, ret_i, ret_file))
        return joule_error_set(err, ENOENT, "there is no file %s", path);
    return 0;
}

static int do_get(void *context, char *arg, char *reply, size_t size,
                  struct joule_error *err)
{
    struct sim_freqcontrol *c = context;
    const struct sim_freq_file *file;
    char buf[SIM_FREQ_PAGE];
    enum sim_freq_dir dir;
    ssize_t len;
    size_t i;

    if (file_find(c, arg, &dir, &i, &file, err))
        return -1;
    len = sim_freq_show(c->freq, dir, i, file, buf);
    if (len < 0)
        return joule_error_set(err, (int)-len, "%s",
                               strerrorname_np((int)-len));
    snprintf(reply, size, "%.*s", (int)len - 1, buf);
    return 0;
}

/* As an administrator would: neither faults nor the log know of it. */
static int do_set(void *context, char *arg, char *reply, size_t size,
                  struct joule_error *err)
{
    struct sim_freqcontrol *c = context;
    char *value = strchr(arg, ' ');
    const struct sim_freq_file *file;
    enum sim_freq_dir dir;
    ssize_t rc;
    size_t i;

    (void)reply;
    (void)size;
    if (!value)
        return joule_error_set(err, EINVAL, "set takes a path and a value");
    *value++ = '\0';
    if (file_find(c, arg, &dir, &i, &file, err))
        return -1;
    rc = sim_freq_store(c->freq, dir, i, file, value, strlen(value));
    c->changed(c->arg);
    if (rc < 0)
        return joule_error_set(err, (int)-rc, "%s", strerrorname_np((int)-rc));
    return 0;
}

static int do_fault(void *context, char *arg, char *reply, size_t size,
                    struct joule_error *err)
{
    struct sim_freqcontrol *c = context;

    (void)reply;
    (void)size;
    return sim_freqfault_add(c->fault, arg, err);
}

static int do_readonly(void *context, char *arg, char *reply, size_t size,
                       struct joule_error *err)
{
    struct sim_freqcontrol *c = context;

    (void)reply;
    (void)size;
    if (joule_parse_bool(arg, &c->readonly))
        return joule_error_set(err, EINVAL, "readonly takes on or off");
    return 0;
}

static int policy_gone(struct sim_freqcontrol *c, const char *arg, bool gone,
                       struct joule_error *err)
{
    struct sim_freq *freq = c->freq;
    uint64_t number;

    if (joule_parse_u64(arg, 0, UINT_MAX, &number))
        return joule_error_set(err, EINVAL, "\"%s\" is no policy's number",
                               arg);
    for (size_t i = 0; i < freq->policy_count; i++)
        if (freq->policies[i].number == number) {
            sim_freq_vanish(freq, &freq->policies[i], gone);
            c->changed(c->arg);
            return 0;
        }
    return joule_error_set(err, ENOENT, "there is no policy%s", arg);
}

static int do_vanish(void *context, char *arg, char *reply, size_t size,
                     struct joule_error *err)
{
    (void)reply;
    (void)size;
    return policy_gone(context, arg, true, err);
}

static int do_appear(void *context, char *arg, char *reply, size_t size,
                     struct joule_error *err)
{
    (void)reply;
    (void)size;
    return policy_gone(context, arg, false, err);
}

/* Call [act] for each CPU of a list, or of "all". */
static int for_cpus(struct sim_freqcontrol *c, const char *list,
                    int (*act)(struct sim_freq *freq, size_t i, unsigned value),
                    unsigned value, struct joule_error *err)
{
    struct sim_freq *freq = c->freq;
    bool all = !strcmp(list, "all");
    unsigned *numbers = NULL;
    size_t count = 0, found = 0;
    int rc = 0;

    if (!all && joule_parse_cpulist(list, &numbers, &count))
        return joule_error_set(err, EINVAL, "\"%s\" is no list of CPUs", list);
    for (size_t i = 0; i < freq->cpu_count && !rc; i++)
        for (size_t j = 0; j < (all ? 1 : count) && !rc; j++)
            if (all || freq->cpus[i].number == numbers[j]) {
                rc = act(freq, i, value);
                found++;
            }
    free(numbers);
    c->changed(c->arg);
    if (rc)
        return joule_error_set(err, rc, "%s", strerrorname_np(rc));
    if (found < count)
        return joule_error_set(err, ENOENT, "not all of CPUs %s are there",
                               list);
    return 0;
}

static int act_hotplug(struct sim_freq *freq, size_t i, unsigned value)
{
    return sim_freq_hotplug(freq, i, value);
}

static int act_load(struct sim_freq *freq, size_t i, unsigned value)
{
    freq->cpus[i].load_pct = value;
    sim_freq_refresh(freq, &freq->policies[freq->cpus[i].policy]);
    return 0;
}

static int act_firmware(struct sim_freq *freq, size_t i, unsigned value)
{
    freq->policies[freq->cpus[i].policy].firmware_max = value;
    sim_freq_refresh(freq, &freq->policies[freq->cpus[i].policy]);
    return 0;
}

static int do_offline(void *context, char *arg, char *reply, size_t size,
                      struct joule_error *err)
{
    (void)reply;
    (void)size;
    return for_cpus(context, arg, act_hotplug, false, err);
}

static int do_online(void *context, char *arg, char *reply, size_t size,
                     struct joule_error *err)
{
    (void)reply;
    (void)size;
    return for_cpus(context, arg, act_hotplug, true, err);
}

/* "CPUS NUMBER" */
static int number_for_cpus(struct sim_freqcontrol *c, char *arg, uint64_t max,
                           int (*act)(struct sim_freq *freq, size_t i,
                                      unsigned value),
                           struct joule_error *err)
{
    char *text = strchr(arg, ' ');
    uint64_t value;

    if (!text || joule_parse_u64(text + 1, 0, max, &value))
        return joule_error_set(err, EINVAL,
                               "a list of CPUs (or all) and a number up to "
                               "%" PRIu64 " are needed",
                               max);
    *text = '\0';
    return for_cpus(c, arg, act, (unsigned)value, err);
}

static int do_load(void *context, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    (void)reply;
    (void)size;
    return number_for_cpus(context, arg, 100, act_load, err);
}

static int do_firmware(void *context, char *arg, char *reply, size_t size,
                       struct joule_error *err)
{
    (void)reply;
    (void)size;
    return number_for_cpus(context, arg, UINT_MAX, act_firmware, err);
}

static int do_writes(void *context, char *arg, char *reply, size_t size,
                     struct joule_error *err)
{
    struct sim_freqcontrol *c = context;

    (void)arg;
    (void)err;
    snprintf(reply, size, "%" PRIu64, c->fault->writes);
    return 0;
}

static const struct sim_command commands[] = {
    {"dump", "[all]", do_dump,
     "lines \"path value\": what can be set, or every file"},
    {"get", "PATH", do_get, "what a read of the file gives"},
    {"set", "PATH VALUE", do_set, "a write that no fault or log sees"},
    {"fault", "read|write PATTERN ERRNO [NTH [COUNT]] | off", do_fault,
     "such a read or write fails"},
    {"readonly", "on|off", do_readonly, "no file can be opened for writing"},
    {"vanish", "N", do_vanish, "policyN is removed"},
    {"appear", "N", do_appear, "and comes back, as new"},
    {"offline", "CPUS", do_offline, "they go offline"},
    {"online", "CPUS", do_online, "they come back"},
    {"load", "CPUS|all PERCENT", do_load, "how busy they are"},
    {"firmware", "CPUS|all KHZ", do_firmware, "the firmware's limit"},
    {"writes", NULL, do_writes, "how many there were"},
    {NULL, NULL, NULL, NULL},
};

void sim_freqcontrol_help(void)
{
    sim_command_help(commands);
}

void sim_freqcontrol_command(void *arg, char *line, char *reply, size_t size)
{
    sim_command_run(commands, arg, line, reply, size);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/control.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/base/parse.h"

/* Commands: [arg] is the rest of the line, "" if none.  They return 0, with
 * an answer in [reply] if it is not just "ok", or -1 with a sentence. */

static int do_energy(struct sim_control *c, char *arg, char *reply, size_t size,
                     struct joule_error *err)
{
    int64_t mono_ns = joule_clock_mono_ns(c->node->clock);
    uint64_t uj = sim_node_exact(c->node, mono_ns).node_nj / 1000;
    unsigned packages = c->node->machine->packages;
    size_t used;

    (void)arg;
    (void)err;
    used = (size_t)snprintf(reply, size, "%" PRId64 " %" PRIu64, mono_ns, uj);
    for (unsigned i = 0; i < packages && used < size; i++)
        used += (size_t)snprintf(reply + used, size - used, " %" PRIu64,
                                 sim_part(uj, i, packages));
    return 0;
}

static int do_power(struct sim_control *c, char *arg, char *reply, size_t size,
                    struct joule_error *err)
{
    int64_t mono_ns = joule_clock_mono_ns(c->node->clock);
    uint64_t nj = sim_node_exact(c->node, mono_ns).node_nj;

    (void)arg;
    (void)err;
    snprintf(reply, size, "%" PRId64 " %" PRIu64 " %" PRId64 " %u %" PRIu32,
             mono_ns, nj, sim_node_uw(c->node, mono_ns),
             c->node->machine->packages, c->node->registers.dram_ppm);
    return 0;
}

static int do_sync(struct sim_control *c, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    int64_t mono_ns = joule_clock_mono_ns(c->node->clock);

    (void)arg;
    (void)reply;
    (void)size;
    if (!c->meter)
        return joule_error_set(err, ENOENT, "there is no wattmeter log");
    sim_wattmeter_line(c->meter, mono_ns, joule_clock_wall_ns(c->node->clock),
                       sim_node_exact(c->node, mono_ns).node_nj);
    if (sim_wattmeter_sync(c->meter))
        return joule_error_set(err, errno, "cannot write the log: %m");
    return 0;
}

static int do_eio(struct sim_control *c, char *arg, char *reply, size_t size,
                  struct joule_error *err)
{
    uint64_t every;

    (void)reply;
    (void)size;
    if (!strcmp(arg, "off"))
        every = 0;
    else if (!strcmp(arg, "all"))
        every = 1;
    else if (strncmp(arg, "every ", 6) ||
             joule_parse_u64(arg + 6, 1, UINT64_MAX, &every))
        return joule_error_set(err, EINVAL,
                               "eio takes \"every N\", \"all\" or \"off\"");
    c->node->registers.eio_every = every;
    c->node->registers.reads = 0;
    return 0;
}

static int do_freeze(struct sim_control *c, char *arg, char *reply, size_t size,
                     struct joule_error *err)
{
    struct sim_energy now = sim_node_stepped(c->node);

    (void)arg;
    (void)reply;
    (void)size;
    (void)err;
    sim_registers_freeze(&c->node->registers, &now);
    return 0;
}

static int do_thaw(struct sim_control *c, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    struct sim_energy now = sim_node_stepped(c->node);

    (void)arg;
    (void)reply;
    (void)size;
    (void)err;
    sim_registers_thaw(&c->node->registers, &now);
    return 0;
}

static int do_load(struct sim_control *c, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    struct sim_load *load = sim_load_parse(arg, err);

    (void)reply;
    (void)size;
    if (!load)
        return -1;
    sim_model_set_load(c->node->model, load,
                       joule_clock_mono_ns(c->node->clock) - c->node->start_ns);
    return 0;
}

static int do_busy(struct sim_control *c, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    (void)reply;
    (void)size;
    if (sim_parse_uw(arg, &c->node->busy_uw))
        return joule_error_set(err, EINVAL, "\"%s\" is not a power in watts",
                               arg);
    sim_node_busy_changed(c->node);
    return 0;
}

static int do_freq(struct sim_control *c, char *arg, char *reply, size_t size,
                   struct joule_error *err)
{
    int64_t khz;

    (void)reply;
    (void)size;
    if (sim_parse_fixed(arg, 6, 100000000, &khz) || khz < 1)
        return joule_error_set(err, EINVAL, "\"%s\" is not a frequency in GHz",
                               arg);
    c->node->khz = (uint64_t)khz;
    sim_node_busy_changed(c->node);
    return 0;
}

static int do_add_cgroup(struct sim_control *c, char *arg, char *reply,
                         size_t size, struct joule_error *err)
{
    (void)reply;
    (void)size;
    return sim_drive_add_cgroup(c->node->drive, arg, err);
}

static int do_add_pid(struct sim_control *c, char *arg, char *reply,
                      size_t size, struct joule_error *err)
{
    uint64_t pid;

    (void)reply;
    (void)size;
    if (joule_parse_u64(arg, 1, INT_MAX, &pid))
        return joule_error_set(err, EINVAL, "\"%s\" is not a process id", arg);
    return sim_drive_add_pid(c->node->drive, (pid_t)pid, err);
}

static const struct command {
    const char *name;
    const char *arg; /* NULL: takes none */
    int (*run)(struct sim_control *c, char *arg, char *reply, size_t size,
               struct joule_error *err);
    const char *help;
} commands[] = {
    {"energy", NULL, do_energy, "mono_ns node_uj package0_uj ... of now"},
    {"power", NULL, do_power,
     "mono_ns node_nj node_uw packages dram_ppm of now"},
    {"sync", NULL, do_sync, "write a line of now and flush the log"},
    {"eio", "every N|all|off", do_eio,
     "every Nth read of an energy counter fails"},
    {"freeze", NULL, do_freeze, "the counters stop; the wattmeter does not"},
    {"thaw", NULL, do_thaw, "they go on from where they stood"},
    {"load", "SPEC", do_load, "another generator from now on"},
    {"busy", "W", do_busy, "another power of a busy CPU from now on"},
    {"freq", "GHZ", do_freq, "another frequency from now on"},
    {"add-cgroup", "PATH", do_add_cgroup, "count this cgroup too"},
    {"add-pid", "PID", do_add_pid, "count this process too"},
    {NULL, NULL, NULL, NULL},
};

void sim_control_help(void)
{
    for (const struct command *c = commands; c->name; c++) {
        int used = printf("  %s %s", c->name, c->arg ? c->arg : "");

        printf("%*s%s\n", used < 28 ? 28 - used : 1, "", c->help);
    }
}

void sim_control_command(void *arg, char *line, char *reply, size_t size)
{
    struct sim_control *control = arg;
    struct joule_error err = {""};
    const struct command *c = commands;
    char *rest;
    int rc;

    line[strcspn(line, "\n")] = '\0';
    rest = strchrnul(line, ' ');
    if (*rest)
        *rest++ = '\0';
    while (c->name && strcmp(c->name, line))
        c++;
    reply[0] = '\0';
    if (!c->name)
        rc = joule_error_set(&err, EINVAL, "no command \"%s\"", line);
    else if (!c->arg != !*rest)
        rc = joule_error_set(&err, EINVAL, "usage: %s %s", c->name,
                             c->arg ? c->arg : "");
    else
        rc = c->run(control, rest, reply, size, &err);
    if (rc)
        snprintf(reply, size, "error: %s", err.text);
    else if (!*reply)
        snprintf(reply, size, "ok");
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nodesim - the energy counters of a node that is not there.
 *
 * One thread: poll over the FUSE device, the wattmeter's timer, signals and
 * the control socket.  See --help, and the headers for what is simulated.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "tests/sim/control.h"
#include "tests/sim/msrfs.h"
#include "tests/sim/node.h"
#include "tests/sim/options.h"
#include "tests/sim/simdir.h"
#include "tests/sim/talk.h"
#include "tests/sim/tree.h"
#include "tests/sim/wattmeter.h"
#include "tests/sim/zones.h"

enum { EXIT_USAGE = 2 };

struct server {
    int dir_fd, signal_fd, timer_fd;
    struct sim_node node;
    struct sim_wattmeter *meter;
    struct sim_control control;
    struct sim_talk *talk;
    struct sim_msrfs *fs;
};

static void meter_line(struct server *s)
{
    int64_t mono_ns = joule_clock_mono_ns(s->node.clock);
    struct sim_energy e = sim_node_exact(&s->node, mono_ns);

    if (s->meter)
        sim_wattmeter_line(s->meter, mono_ns,
                           joule_clock_wall_ns(s->node.clock), &e);
}

static struct sim_load *load_create(const struct sim_options *opt,
                                    struct joule_error *err)
{
    struct sim_load *load;

    if (opt->load)
        return sim_load_parse(opt->load, err);
    if (opt->trace)
        return sim_load_read(opt->trace, opt->trace_repeat, err);
    load = sim_load_const(opt->idle_uw);
    if (!load)
        joule_error_set(err, ENOMEM, "out of memory");
    return load;
}

static struct sim_drive *drive_create(const struct sim_options *opt,
                                      struct joule_error *err)
{
    struct sim_drive *drive = sim_drive_create();

    if (!drive) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < opt->cgroup_count; i++)
        if (sim_drive_add_cgroup(drive, opt->cgroups[i], err))
            goto fail;
    for (size_t i = 0; i < opt->pid_count; i++)
        if (sim_drive_add_pid(drive, opt->pids[i], err))
            goto fail;
    return drive;
fail:
    sim_drive_destroy(drive);
    return NULL;
}

static int jobs_begin(struct sim_node *node, const struct sim_options *opt,
                      struct joule_error *err)
{
    struct sim_jobs *jobs =
        sim_jobs_create(opt->jobs, node->machine, node->start_ns, err);

    if (!jobs)
        return -1;
    sim_node_set_jobs(node, jobs);
    return opt->jobs_also ? sim_jobs_also(jobs, opt->jobs_also, err) : 0;
}

static int node_create(struct sim_node *node, const struct sim_options *opt,
                       struct joule_error *err)
{
    struct sim_machine *machine = sim_machine_create(&opt->machine, err);
    struct sim_drive *drive = NULL;
    struct sim_load *load = NULL;
    struct sim_model *model = NULL;
    int64_t dram_ppm = opt->dram_ppm;

    if (machine)
        load = load_create(opt, err);
    if (load)
        drive = drive_create(opt, err);
    if (drive) {
        model = sim_model_create(load, opt->busy_uw);
        load = NULL;
        if (!model)
            joule_error_set(err, ENOMEM, "out of memory");
    }
    if (!model) {
        sim_machine_destroy(machine);
        sim_load_destroy(load);
        sim_drive_destroy(drive);
        return -1;
    }
    if (dram_ppm < 0)
        dram_ppm = machine->dram ? 150000 : 0;
    sim_node_init(node, &joule_clock_system, opt->step_ns, machine, model,
                  drive, (uint32_t)dram_ppm);
    node->busy_uw = opt->busy_uw;
    node->khz = (uint64_t)opt->khz;
    node->ref_khz = (uint64_t)opt->ref_khz;
    sim_node_busy_changed(node);
    node->own_stat = opt->stat;
    return opt->jobs ? jobs_begin(node, opt, err) : 0;
}

static int timer_open(struct server *s, int64_t ns, struct joule_error *err)
{
    const struct timespec period = {.tv_sec = ns / JOULE_NS_PER_S,
                                    .tv_nsec = ns % JOULE_NS_PER_S};
    const struct itimerspec timer = {period, period};

    s->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (s->timer_fd < 0 || ((s->meter || s->node.jobs) &&
                            timerfd_settime(s->timer_fd, 0, &timer, NULL)))
        return joule_error_set(err, errno, "timerfd: %m");
    return 0;
}

/* Until a signal: 0.  -1 with a sentence when the mount is gone. */
static int loop(struct server *s, struct joule_error *err)
{
    enum { FS, TIMER, SIGNAL, TALK, COUNT };
    const struct pollfd idle[COUNT] = {
        [FS] = {sim_msrfs_fd(s->fs), POLLIN, 0},
        [TIMER] = {s->timer_fd, POLLIN, 0},
        [SIGNAL] = {s->signal_fd, POLLIN, 0},
        [TALK] = {sim_talk_fd(s->talk), POLLIN, 0},
    };
    struct pollfd fds[COUNT];
    uint64_t expired;

    for (;;) {
        memcpy(fds, idle, sizeof(fds));
        if (poll(fds, COUNT, -1) < 0) {
            if (errno == EINTR)
                continue;
            return joule_error_set(err, errno, "poll: %m");
        }
        if (fds[FS].revents && sim_msrfs_serve(s->fs))
            return joule_error_set(err, errno,
                                   "the MSR devices were unmounted: %m");
        if (fds[TIMER].revents &&
            read(s->timer_fd, &expired, sizeof(expired)) > 0)
            meter_line(s);
        if (fds[TALK].revents)
            sim_talk_serve(s->talk);
        if (fds[SIGNAL].revents)
            return 0;
    }
}

static int serve(const struct sim_options *opt)
{
    struct server s = {.dir_fd = -1, .signal_fd = -1, .timer_fd = -1};
    struct joule_error err = {""};
    char *mount_path = NULL;
    int rc = EXIT_FAILURE;

    if (node_create(&s.node, opt, &err)) {
        rc = EXIT_USAGE;
        goto out;
    }
    s.dir_fd = sim_dir_open(opt->dir, "nodesim", &err);
    if (s.dir_fd < 0)
        goto out;
    s.signal_fd = sim_signals_open(&err);
    if (s.signal_fd < 0)
        goto out;
    /* FUSE needs a name; the directory may be one that is relative. */
    if (asprintf(&mount_path, "%s/dev/cpu", opt->dir) < 0) {
        joule_error_set(&err, ENOMEM, "out of memory");
        goto out;
    }
    if (opt->wattmeter) {
        s.meter = sim_wattmeter_create(opt->wattmeter, s.node.machine->packages,
                                       &err);
        if (!s.meter)
            goto out;
    }
    if (sim_tree_write(s.dir_fd, s.node.machine, &err) ||
        sim_zones_write(s.dir_fd, s.node.machine, &err))
        goto out;
    s.fs = sim_msrfs_create(mount_path, &s.node, &err);
    if (!s.fs)
        goto out;
    s.control = (struct sim_control){&s.node, s.meter, s.dir_fd};
    s.talk = sim_talk_create(s.dir_fd, SIM_CONTROL_NAME, sim_control_command,
                             &s.control, &err);
    if (!s.talk || timer_open(&s, opt->log_ns, &err))
        goto out;
    s.node.start_ns = joule_clock_mono_ns(s.node.clock);
    meter_line(&s);
    if (sim_ready_tell(s.dir_fd, opt->ready_fd, &err) || loop(&s, &err))
        goto out;
    rc = EXIT_SUCCESS;
out:
    if (rc)
        fprintf(stderr, "nodesim: %s\n", err.text);
    if (s.dir_fd >= 0)
        unlinkat(s.dir_fd, "ready", 0);
    sim_msrfs_destroy(s.fs);
    if (s.talk)
        meter_line(&s);
    sim_talk_destroy(s.talk);
    if (sim_wattmeter_destroy(s.meter)) {
        fprintf(stderr, "nodesim: the wattmeter log is not whole: %m\n");
        rc = EXIT_FAILURE;
    }
    sim_node_clear(&s.node);
    free(mount_path);
    if (s.timer_fd >= 0)
        close(s.timer_fd);
    if (s.signal_fd >= 0)
        close(s.signal_fd);
    if (s.dir_fd >= 0)
        close(s.dir_fd);
    return rc;
}

static int ask(const struct sim_options *opt)
{
    char reply[SIM_TALK_LINE];
    struct joule_error err = {""};

    if (sim_talk_ask(opt->dir, SIM_CONTROL_NAME, opt->command, reply,
                     sizeof(reply), &err)) {
        fprintf(stderr, "nodesim: %s\n", err.text);
        return EXIT_FAILURE;
    }
    puts(reply);
    return EXIT_SUCCESS;
}

static int integrate(const struct sim_options *opt)
{
    struct joule_error err = {""};
    int64_t uj;

    if (sim_wattmeter_integrate(opt->log, opt->from_ns, opt->to_ns, &uj,
                                &err)) {
        int rc = errno == ERANGE || errno == EINVAL ? EXIT_USAGE : EXIT_FAILURE;

        fprintf(stderr, "nodesim: %s\n", err.text);
        return rc;
    }
    printf("%" PRId64 "\n", uj);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct sim_options opt;
    struct joule_error err = {""};

    if (sim_options_parse(&opt, argc, argv, &err)) {
        fprintf(stderr, "nodesim: %s\n", err.text);
        return EXIT_USAGE;
    }
    switch (opt.mode) {
    case SIM_ASK:
        return ask(&opt);
    case SIM_INTEGRATE:
        return integrate(&opt);
    case SIM_HELP:
        sim_options_help();
        return EXIT_SUCCESS;
    default:
        return serve(&opt);
    }
}

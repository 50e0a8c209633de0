/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freqsim - the frequency policies of a kernel that is not there.
 *
 * One thread: poll over the FUSE device, signals and the control socket.  See
 * --help, and freq.h for what is simulated.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/parse.h"
#include "tests/sim/freqcontrol.h"
#include "tests/sim/freqfs.h"
#include "tests/sim/freqlink.h"
#include "tests/sim/freqoptions.h"
#include "tests/sim/simdir.h"
#include "tests/sim/talk.h"

#define CONTROL_NAME "control"

enum { EXIT_USAGE = 2 };

struct server {
    int dir_fd, signal_fd, base_fd;
    struct sim_freq *freq;
    struct sim_freqfault fault;
    struct sim_freqcontrol control;
    struct sim_freqlink *link; /* or NULL */
    struct sim_talk *talk;
    struct sim_freqfs *fs;
};

static void changed(void *arg)
{
    struct server *s = arg;

    sim_freqlink_tell(s->link, s->freq);
}

/* The CPUs of the base directory as a list, for --cpus. */
static int base_cpus(int base_fd, char *buf, size_t size,
                     struct joule_error *err)
{
    int fd = openat(base_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    size_t used = 0;
    uint64_t number;

    if (!dir)
        return joule_error_set(err, errno, "cannot list --base: %m");
    while ((e = readdir(dir)) && used < size)
        if (!strncmp(e->d_name, "cpu", 3) &&
            !joule_parse_u64(e->d_name + 3, 0, JOULE_CPU_MAX, &number))
            used += (size_t)snprintf(buf + used, size - used, "%s%s",
                                     used ? "," : "", e->d_name + 3);
    closedir(dir);
    if (!used || used >= size)
        return joule_error_set(err, EINVAL,
                               "--base has no CPUs, or too many without "
                               "--cpus");
    return 0;
}

static int files_open(struct server *s, struct sim_freqsim_options *opt,
                      struct joule_error *err)
{
    if (opt->log[0]) {
        s->fault.log_fd =
            open(opt->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
                 0644);
        if (s->fault.log_fd < 0)
            return joule_error_set(err, errno, "cannot open %s: %m", opt->log);
    }
    if (opt->base[0]) {
        s->base_fd = open(opt->base, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (s->base_fd < 0)
            return joule_error_set(err, errno, "cannot open %s: %m", opt->base);
        if (!opt->freq.cpus) {
            opt->freq.cpus = opt->cpus;
            return base_cpus(s->base_fd, opt->cpus, sizeof(opt->cpus), err);
        }
    }
    return 0;
}

static int mount_cpu(struct server *s, const struct sim_freqsim_options *opt,
                     struct joule_error *err)
{
    const struct sim_freqfs_options fs = {
        .freq = s->freq,
        .fault = &s->fault,
        .base_fd = s->base_fd,
        .readonly = &s->control.readonly,
        .changed = changed,
        .arg = s,
    };
    char *path;

    s->base_fd = -1; /* the file system's */
    if (mkdirat(s->dir_fd, "cpu", 0755) && errno != EEXIST)
        return joule_error_set(err, errno, "cannot make %s/cpu: %m", opt->dir);
    if (asprintf(&path, "%s/cpu", opt->dir) < 0)
        return joule_error_set(err, ENOMEM, "out of memory");
    s->fs = sim_freqfs_create(path, &fs, err);
    free(path);
    return s->fs ? 0 : -1;
}

/* Until a signal: 0.  -1 with a sentence when the mount is gone. */
static int loop(struct server *s, struct joule_error *err)
{
    struct pollfd fds[] = {
        {sim_freqfs_fd(s->fs), POLLIN, 0},
        {s->signal_fd, POLLIN, 0},
        {sim_talk_fd(s->talk), POLLIN, 0},
    };

    for (;;) {
        int64_t ns = sim_freq_settle(s->freq, false);

        changed(s);
        if (poll(fds, sizeof(fds) / sizeof(fds[0]),
                 ns < 0 ? -1 : (int)(ns / JOULE_NS_PER_MS) + 1) < 0) {
            if (errno == EINTR)
                continue;
            return joule_error_set(err, errno, "poll: %m");
        }
        if (fds[0].revents && sim_freqfs_serve(s->fs))
            return joule_error_set(err, errno, "it was unmounted: %m");
        if (fds[2].revents)
            sim_talk_serve(s->talk);
        if (fds[1].revents)
            return 0;
    }
}

static void server_close(struct server *s)
{
    if (s->dir_fd >= 0)
        unlinkat(s->dir_fd, "ready", 0);
    sim_freqfs_destroy(s->fs);
    sim_talk_destroy(s->talk);
    sim_freqlink_destroy(s->link);
    sim_freq_destroy(s->freq);
    if (s->fault.log_fd >= 0)
        close(s->fault.log_fd);
    if (s->base_fd >= 0)
        close(s->base_fd);
    if (s->signal_fd >= 0)
        close(s->signal_fd);
    if (s->dir_fd >= 0)
        close(s->dir_fd);
}

static int serve(struct sim_freqsim_options *opt)
{
    struct server s = {
        .dir_fd = -1, .signal_fd = -1, .base_fd = -1, .fault.log_fd = -1};
    struct joule_error err = {""};
    int rc = EXIT_FAILURE;

    if (files_open(&s, opt, &err))
        goto out;
    s.freq = sim_freq_create(&opt->freq, &joule_clock_system, &err);
    if (!s.freq) {
        rc = EXIT_USAGE;
        goto out;
    }
    s.dir_fd = sim_dir_open(opt->dir, "freqsim", &err);
    if (s.dir_fd < 0)
        goto out;
    s.signal_fd = sim_signals_open(&err);
    if (s.signal_fd < 0)
        goto out;
    if (opt->nodesim[0]) {
        s.link = sim_freqlink_create(opt->nodesim, &err);
        if (!s.link)
            goto out;
    }
    s.control = (struct sim_freqcontrol){
        .freq = s.freq, .fault = &s.fault, .changed = changed, .arg = &s};
    s.talk = sim_talk_create(s.dir_fd, CONTROL_NAME, sim_freqcontrol_command,
                             &s.control, &err);
    if (!s.talk || mount_cpu(&s, opt, &err) ||
        sim_ready_tell(s.dir_fd, -1, &err) || loop(&s, &err))
        goto out;
    rc = EXIT_SUCCESS;
out:
    if (rc)
        fprintf(stderr, "freqsim: %s\n", err.text);
    server_close(&s);
    return rc;
}

static int ask(const struct sim_freqsim_options *opt)
{
    static char reply[SIM_TALK_LINE];
    struct joule_error err = {""};

    if (sim_talk_ask(opt->dir, CONTROL_NAME, opt->command, reply, sizeof(reply),
                     &err)) {
        fprintf(stderr, "freqsim: %s\n", err.text);
        return EXIT_FAILURE;
    }
    puts(reply);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static struct sim_freqsim_options opt;
    struct joule_error err = {""};

    if (sim_freqsim_options_parse(&opt, argc, argv, &err)) {
        fprintf(stderr, "freqsim: %s\n", err.text);
        return EXIT_USAGE;
    }
    switch (opt.mode) {
    case SIM_FREQ_ASK:
        return ask(&opt);
    case SIM_FREQ_HELP:
        sim_freqsim_options_help();
        return EXIT_SUCCESS;
    default:
        return serve(&opt);
    }
}

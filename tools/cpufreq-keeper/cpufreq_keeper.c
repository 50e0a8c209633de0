/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * joule-cpufreq-keeper - started by spank_joule in slurmd, see
 * common/cpufreq/keeper.h.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/cpufreq/keeper.h"

#define CONFIG_WAIT_MS 5000

static int receive(struct joule_keeper_config *config)
{
    struct pollfd ready = {.fd = 0, .events = POLLIN};

    if (poll(&ready, 1, CONFIG_WAIT_MS) <= 0 ||
        recv(0, config, sizeof(*config), MSG_TRUNC) != sizeof(*config) ||
        config->version != JOULE_KEEPER_VERSION ||
        config->size != sizeof(*config))
        return -1;
    if (config->period_ns < JOULE_NS_PER_MS ||
        config->period_ns > 60 * JOULE_NS_PER_S)
        return -1;
    config->log[JOULE_KEEPER_LOG_MAX] = '\0';
    return 0;
}

/* What C libraries before 2.34 leave open for their children. */
static void close_others(void)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        int fd = atoi(entry->d_name);

        if (fd > 2 && fd != dirfd(dir))
            close(fd);
    }
    if (dir)
        closedir(dir);
}

struct log {
    int root_fd;
    const char *path;
};

/* syslog has it in any case, for machines whose logs are collected there. */
static void say(void *arg, const char *text)
{
    const struct log *log = arg;
    struct joule_error err;

    syslog(LOG_NOTICE, "%s", text);
    if (*log->path && joule_keeper_log(log->root_fd, log->path, text, &err) < 0)
        syslog(LOG_WARNING, "not in slurmd's log: %s", err.text);
}

int main(void)
{
    struct joule_keeper_config config;
    struct log log = {.path = config.log};
    pid_t pid;

    close_others();
    if (receive(&config) < 0) {
        fputs("joule-cpufreq-keeper is started by slurmd, see "
              "slurm-joule(7).\n",
              stderr);
        return 2;
    }
    /* Nobody has to wait for the process that stays. */
    pid = fork();
    if (pid != 0)
        return pid < 0;
    prctl(PR_SET_DUMPABLE, 0);
    log.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (log.root_fd < 0)
        return 1;
    openlog("joule-cpufreq-keeper", LOG_PID, LOG_DAEMON);
    joule_keeper_run(0, log.root_fd, &config, say, &log);
    return 0;
}

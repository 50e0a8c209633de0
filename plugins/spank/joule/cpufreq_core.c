/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/spank/joule/spank_joule.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/cpufreq/keeper.h"
#include "plugins/slurm_abi/host.h"
#include "plugins/slurm_abi/slurm_abi.h"

extern slurm_conf_t slurm_conf __attribute__((weak));

/* Words of CpuFreqDef and CpuFreqGovernors. */
static const struct {
    uint32_t slurm;
    struct joule_request request;
} words[] = {
    {CPU_FREQ_CONSERVATIVE, {.governor = JOULE_GOVERNOR_CONSERVATIVE}},
    {CPU_FREQ_ONDEMAND, {.governor = JOULE_GOVERNOR_ONDEMAND}},
    {CPU_FREQ_PERFORMANCE, {.governor = JOULE_GOVERNOR_PERFORMANCE}},
    {CPU_FREQ_POWERSAVE, {.governor = JOULE_GOVERNOR_POWERSAVE}},
    {CPU_FREQ_SCHEDUTIL, {.governor = JOULE_GOVERNOR_SCHEDUTIL}},
    {CPU_FREQ_USERSPACE, {.governor = JOULE_GOVERNOR_USERSPACE}},
    {CPU_FREQ_LOW, {.pin = true, .max.kind = JOULE_SPEED_LOW}},
    {CPU_FREQ_MEDIUM, {.pin = true, .max.kind = JOULE_SPEED_MEDIUM}},
    {CPU_FREQ_HIGH, {.pin = true, .max.kind = JOULE_SPEED_HIGH}},
    {CPU_FREQ_HIGHM1, {.pin = true, .max.kind = JOULE_SPEED_HIGHM1}},
};

#define WORDS (sizeof(words) / sizeof(words[0]))

/* A value of CpuFreqDef. */
static bool parse_default(uint32_t value, struct joule_request *r)
{
    if (value == 0 || value == NO_VAL)
        return false;
    for (size_t i = 0; i < WORDS; i++)
        if (words[i].slurm == value) {
            *r = words[i].request;
            return true;
        }
    if (value & CPU_FREQ_RANGE_FLAG || value > JOULE_KHZ_MAX)
        return false;
    *r = (struct joule_request){.pin = true, .max = {JOULE_SPEED_KHZ, value}};
    return true;
}

bool joule_core_conf(const struct joule_spank_options *options,
                     struct joule_control_config *ret,
                     struct joule_request *ret_default)
{
    struct joule_cpufreq_rules *rules = &ret->rules;
    bool has_default;

    memset(ret_default, 0, sizeof(*ret_default));
    *ret = (struct joule_control_config){
        .rules = {.governors = JOULE_GOVERNORS_ALL,
                  .keep_limits = options->limits == JOULE_LIMITS_SITE},
        .lock_wait_ns = options->lock_wait_ns,
    };
    if (!&slurm_conf)
        return false;
    rules->governors = 0;
    for (size_t i = 0; i < WORDS; i++)
        if (words[i].request.governor &&
            slurm_conf.cpu_freq_govs &
                (words[i].slurm & ~(uint32_t)CPU_FREQ_RANGE_FLAG))
            rules->governors |= words[i].request.governor;
    has_default = parse_default(slurm_conf.cpu_freq_def, ret_default);
    if (ret_default->governor != JOULE_GOVERNOR_USERSPACE)
        rules->range_governor = ret_default->governor;
    return has_default;
}

int joule_core_off(struct joule_error *err)
{
    const uint16_t no_cpus = 0;
    void (*receive)(int fd);
    int fds[2];
    ssize_t n;

    *(void **)&receive = dlsym(RTLD_DEFAULT, "cpu_freq_recv_info");
    if (!receive)
        return joule_error_set(err, ENOTSUP,
                               "this Slurm has no cpu_freq_recv_info: its own "
                               "code goes on setting frequencies");
    if (pipe2(fds, O_CLOEXEC) < 0)
        return joule_error_set(err, errno, "cannot make a pipe: %m");
    n = write(fds[1], &no_cpus, sizeof(no_cpus));
    /* Closed first: a release that wants more finds the end and does not
     * wait. */
    close(fds[1]);
    if (n == sizeof(no_cpus))
        receive(fds[0]);
    close(fds[0]);
    return 0;
}

void joule_core_slurmd_log(char *buf, size_t size)
{
    int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), rc;
    char host[256] = "", node[256];

    buf[0] = '\0';
    rc = joule_host_node_name(root_fd, node, sizeof(node), NULL);
    if (root_fd >= 0)
        close(root_fd);
    if (!&slurm_conf || !slurm_conf.slurmd_logfile ||
        slurm_conf.slurmd_logfile[0] != '/' ||
        gethostname(host, sizeof(host) - 1) < 0 || rc < 0)
        return;
    /* Slurm's %h is the short name. */
    host[strcspn(host, ".")] = '\0';
    joule_keeper_log_path(slurm_conf.slurmd_logfile, host, node, buf, size);
}

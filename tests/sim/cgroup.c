/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line of as many numbers as there may be CPUs. */
#define TEXT_MAX (SIM_CGROUP_CPUS * 21)

int sim_cgroup_open(struct sim_cgroup *group, int at_fd, const char *dir,
                    bool each)
{
    static const struct {
        const char *file;
        bool micro, each;
    } counters[] = {{"cpuacct.usage_percpu", false, true},
                    {"cpuacct.usage", false, false},
                    {"cpu.stat", true, false}};

    for (size_t i = each ? 0 : 1; i < 3; i++) {
        char *path;

        if (each && i == 1)
            continue;
        if (asprintf(&path, "%s/%s", dir, counters[i].file) < 0)
            return errno = ENOMEM, -1;
        group->fd = openat(at_fd, path, O_RDONLY | O_CLOEXEC);
        free(path);
        group->micro = counters[i].micro;
        group->each = counters[i].each;
        if (group->fd >= 0)
            return 0;
    }
    return -1;
}

void sim_cgroup_close(struct sim_cgroup *group)
{
    if (group->fd >= 0)
        close(group->fd);
    group->fd = -1;
}

static int text_read(const struct sim_cgroup *group, char *buf, size_t size)
{
    ssize_t len = pread(group->fd, buf, size - 1, 0);

    if (len == 0)
        errno = ENODATA;
    if (len <= 0)
        return -1;
    buf[len] = '\0';
    return 0;
}

static int number_read(const struct sim_cgroup *group, uint64_t *ret_ns)
{
    char buf[64];
    const char *number = buf;

    if (text_read(group, buf, sizeof(buf)))
        return -1;
    if (group->micro) {
        if (strncmp(buf, "usage_usec ", 11))
            return errno = EINVAL, -1;
        number += 11;
    }
    if (*number < '0' || *number > '9')
        return errno = EINVAL, -1;
    *ret_ns = strtoull(number, NULL, 10) * (group->micro ? 1000 : 1);
    return 0;
}

int sim_cgroup_read_each(const struct sim_cgroup *group,
                         uint64_t ret_ns[SIM_CGROUP_CPUS], size_t *ret_count)
{
    char buf[TEXT_MAX], *number = buf, *end;
    size_t count;

    if (!group->each) {
        *ret_count = 1;
        return number_read(group, ret_ns);
    }
    if (text_read(group, buf, sizeof(buf)))
        return -1;
    for (count = 0; count < SIM_CGROUP_CPUS; count++, number = end) {
        uint64_t ns = strtoull(number, &end, 10);

        if (end == number)
            break;
        ret_ns[count] = ns;
    }
    *ret_count = count;
    return count ? 0 : (errno = EINVAL, -1);
}

int sim_cgroup_read(const struct sim_cgroup *group, uint64_t *ret_ns)
{
    uint64_t each[SIM_CGROUP_CPUS];
    size_t count;

    if (!group->each)
        return number_read(group, ret_ns);
    if (sim_cgroup_read_each(group, each, &count))
        return -1;
    *ret_ns = 0;
    for (size_t i = 0; i < count; i++)
        *ret_ns += each[i];
    return 0;
}

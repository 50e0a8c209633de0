/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/freqtree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"

#define BOOT "proc/sys/kernel/random/boot_id"

static unsigned armed_nth, calls;
static int armed_errno, refused_errno;
static bool is_fixture; /* its own calls neither count nor fail */

void freqtree_arm(unsigned nth, int errnum)
{
    armed_nth = nth;
    armed_errno = errnum;
    calls = 0;
}

unsigned freqtree_calls(void)
{
    return calls;
}

void freqtree_refuse(int errnum)
{
    refused_errno = errnum;
}

/* -1 with errno if this call is to fail. */
static int step(void)
{
    if (is_fixture)
        return 0;
    calls++;
    if (armed_nth == 0 || calls != armed_nth)
        return 0;
    if (armed_errno == 0)
        _exit(FREQTREE_KILLED);
    errno = armed_errno;
    return -1;
}

int __real_openat(int dir_fd, const char *path, int flags, ...);
int __wrap_openat(int dir_fd, const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *p, size_t len);
ssize_t __wrap_write(int fd, const void *p, size_t len);
int __real_renameat(int from, const char *a, int to, const char *b);
int __wrap_renameat(int from, const char *a, int to, const char *b);
int __real_unlinkat(int dir_fd, const char *path, int flags);
int __wrap_unlinkat(int dir_fd, const char *path, int flags);
int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_openat(int dir_fd, const char *path, int flags, ...)
{
    mode_t mode = 0;

    if (flags & O_CREAT) {
        va_list args;

        va_start(args, flags);
        mode = (mode_t)va_arg(args, int);
        va_end(args);
    }
    if (refused_errno && (flags & O_ACCMODE) == O_WRONLY &&
        strstr(path, "cpufreq/policy")) {
        errno = refused_errno;
        return -1;
    }
    if ((flags & O_ACCMODE) != O_RDONLY && step() < 0)
        return -1;
    return __real_openat(dir_fd, path, flags, mode);
}

ssize_t __wrap_write(int fd, const void *p, size_t len)
{
    return step() < 0 ? -1 : __real_write(fd, p, len);
}

int __wrap_renameat(int from, const char *a, int to, const char *b)
{
    return step() < 0 ? -1 : __real_renameat(from, a, to, b);
}

int __wrap_unlinkat(int dir_fd, const char *path, int flags)
{
    return step() < 0 ? -1 : __real_unlinkat(dir_fd, path, flags);
}

int __wrap_fsync(int fd)
{
    return step() < 0 ? -1 : __real_fsync(fd);
}

static void path_of(unsigned id, const char *name, char buf[160])
{
    snprintf(buf, 160, JOULE_CPUFREQ_DIR "/policy%u/%s", id, name);
}

void freqtree_write(struct tree *t, unsigned id, const char *name,
                    const char *text)
{
    char path[160], line[600];

    path_of(id, name, path);
    snprintf(line, sizeof(line), "%s\n", text);
    is_fixture = true;
    tree_write(t, path, line);
    is_fixture = false;
}

const char *freqtree_read(struct tree *t, unsigned id, const char *name)
{
    static char text[600];
    char path[160];

    path_of(id, name, path);
    if (joule_file_read(t->fd, path, text, sizeof(text)) < 0)
        snprintf(text, sizeof(text), "(%s)", strerror(errno));
    return text;
}

void freqtree_process(struct tree *t, unsigned pid, uint64_t start)
{
    is_fixture = true;
    tree_process(t, pid, start);
    is_fixture = false;
}

static void add_policy(struct tree *t, unsigned id, unsigned first,
                       unsigned last, const char *const (*files)[2])
{
    char cpus[600] = "", path[64], target[64];
    struct stat st;

    if (fstatat(t->fd, BOOT, &st, 0) < 0)
        tree_write(t, BOOT, "11111111-2222-3333-4444-555555555555\n");
    for (; (*files)[0]; files++)
        freqtree_write(t, id, (*files)[0], (*files)[1]);
    for (unsigned cpu = first; cpu <= last; cpu++) {
        snprintf(cpus + strlen(cpus), sizeof(cpus) - strlen(cpus), "%u ", cpu);
        snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u", cpu);
        tree_mkdir(t, path);
        strcat(path, "/cpufreq");
        snprintf(target, sizeof(target), "../cpufreq/policy%u", id);
        if (symlinkat(target, t->fd, path) < 0 && errno != EEXIST)
            abort();
    }
    freqtree_write(t, id, "affected_cpus", cpus);
    freqtree_write(t, id, "related_cpus", cpus);
}

void freqtree_acpi(struct tree *t, unsigned id, unsigned first, unsigned last)
{
    static const char *const files[][2] = {
        {"scaling_driver", "acpi-cpufreq"},
        {"scaling_governor", "ondemand"},
        {"scaling_available_governors",
         "conservative ondemand userspace powersave performance schedutil "},
        {"scaling_available_frequencies", "3000000 2600000 2000000 1500000 "},
        {"scaling_min_freq", "1500000"},
        {"scaling_max_freq", "3000000"},
        {"scaling_cur_freq", "2000000"},
        {"scaling_setspeed", "<unsupported>"},
        {"cpuinfo_min_freq", "1500000"},
        {"cpuinfo_max_freq", "3000000"},
        {NULL, NULL},
    };

    add_policy(t, id, first, last, files);
}

void freqtree_pstate(struct tree *t, unsigned id, unsigned first, unsigned last)
{
    static const char *const files[][2] = {
        {"scaling_driver", "intel_pstate"},
        {"scaling_governor", "powersave"},
        {"scaling_available_governors", "performance powersave"},
        {"scaling_min_freq", "800000"},
        {"scaling_max_freq", "3700000"},
        {"scaling_cur_freq", "1200000"},
        {"scaling_setspeed", "<unsupported>"},
        {"cpuinfo_min_freq", "800000"},
        {"cpuinfo_max_freq", "3700000"},
        {"energy_performance_preference", "balance_performance"},
        {"energy_performance_available_preferences",
         "default performance balance_performance balance_power power "},
        {NULL, NULL},
    };

    add_policy(t, id, first, last, files);
}

void freqtree_dump(struct tree *t, unsigned count, char buf[FREQTREE_TEXT])
{
    static const char *const names[] = {"scaling_governor", "scaling_min_freq",
                                        "scaling_max_freq", "scaling_setspeed",
                                        "energy_performance_preference"};
    size_t length = 0;

    for (unsigned id = 0; id < count; id++)
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
            length += (size_t)snprintf(buf + length, FREQTREE_TEXT - length,
                                       "%u %s %s\n", id, names[i],
                                       freqtree_read(t, id, names[i]));
}

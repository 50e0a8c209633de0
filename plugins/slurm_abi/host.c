/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plugins/slurm_abi/host.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/node/node_dir.h"
#include "plugins/slurm_abi/slurm_abi.h"

/* Bits of 26.05's "uint32_t slurm_daemon"; older releases have functions. */
static const struct {
    enum joule_host host;
    const char *function;
    uint32_t daemon_bit;
    const char *program;
} hosts[] = {
    {JOULE_HOST_SLURMSTEPD, "slurm_running_in_slurmstepd", 1 << 5,
     "slurmstepd"},
    {JOULE_HOST_SLURMD, "slurm_running_in_slurmd", 1 << 4, "slurmd"},
    {JOULE_HOST_SLURMCTLD, "slurm_running_in_slurmctld", 1 << 3, "slurmctld"},
};

#define HOST_COUNT (sizeof(hosts) / sizeof(hosts[0]))

/* "slurmd", or Debian's "slurmd-wlm" behind an alternatives link. */
static bool is_program(const char *path, const char *program)
{
    const char *name = strrchr(path, '/');
    size_t length = strlen(program);

    name = name ? name + 1 : path;
    return strncmp(name, program, length) == 0 &&
           (name[length] == '\0' || name[length] == '-');
}

enum joule_host joule_host_find(void)
{
    const uint32_t *daemon_bits = dlsym(RTLD_DEFAULT, "slurm_daemon");
    bool known = daemon_bits != NULL;
    char path[4096];
    ssize_t length;
    size_t i;

    for (i = 0; i < HOST_COUNT; i++) {
        bool (*running)(void);

        if (daemon_bits) {
            if (*daemon_bits & hosts[i].daemon_bit)
                return hosts[i].host;
            continue;
        }
        *(void **)&running = dlsym(RTLD_DEFAULT, hosts[i].function);
        if (!running)
            continue;
        known = true;
        if (running())
            return hosts[i].host;
    }
    if (known)
        return JOULE_HOST_OTHER;
    length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (length < 0)
        return JOULE_HOST_OTHER;
    path[length] = '\0';
    for (i = 0; i < HOST_COUNT; i++) {
        if (is_program(path, hosts[i].program))
            return hosts[i].host;
    }
    return JOULE_HOST_OTHER;
}

int joule_host_check(struct joule_error *err)
{
    long api = slurm_api_version() >> 16;

    if (api == JOULE_SLURM_API)
        return 0;
    return joule_error_set(err, ENOTSUP,
                           "built for Slurm %d.%02d.%d (library version %d), "
                           "but loaded by one with library version %ld: "
                           "rebuild slurm-joule for this Slurm",
                           SLURM_VERSION_NUMBER >> 16,
                           SLURM_VERSION_NUMBER >> 8 & 0xff,
                           SLURM_VERSION_NUMBER & 0xff, JOULE_SLURM_API, api);
}

/* slurmd's options without an argument, in the three releases. */
#define SLURMD_FLAGS "bcCDgGhMsvVZ"

/* The argument of -N in the words of a command line, or NULL. */
static const char *find_dash_n(const char *text, size_t length)
{
    const char *end = text + length, *word, *next;

    for (word = text; word < end; word = next) {
        const char *c = word + 1;

        next = word + strlen(word) + 1;
        if (word[0] != '-' || word[1] == '-')
            continue;
        c += strspn(c, SLURMD_FLAGS);
        if (*c == 'N' && c[1])
            return c + 1;
        if (*c == 'N')
            return next < end ? next : NULL;
    }
    return NULL;
}

ssize_t joule_host_command(char *buf, size_t size)
{
    ssize_t length = -1;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        length = read(fd, buf, size - 1);
        close(fd);
    }
    if (length <= 0)
        return -1;
    buf[length] = '\0';
    return length;
}

/* What slurm.conf calls this host, as slurmd itself finds it; Slurm's memory,
 * or NULL. */
static char *name_of_conf(void)
{
    char *(*get_name)(void);

    *(void **)&get_name =
        dlsym(RTLD_DEFAULT, "slurm_conf_get_aliased_nodename");
    return get_name ? get_name() : NULL;
}

int joule_host_node_name(int root_fd, char *buf, size_t size,
                         struct joule_error *err)
{
    enum joule_host host = joule_host_find();
    struct joule_nodename from = {.option = NULL};
    char command[65536], *conf = NULL;
    ssize_t length;
    int rc, saved;

    if (host == JOULE_HOST_SLURMSTEPD) {
        from.slurmd = getenv("SLURMD_NODENAME");
    } else if (host == JOULE_HOST_SLURMD) {
        length = joule_host_command(command, sizeof(command));
        if (length > 0)
            from.option = find_dash_n(command, (size_t)length);
        from.conf = conf = name_of_conf();
    }
    rc = joule_nodename_find(&from, root_fd, buf, size, err);
    saved = errno;
    if (conf)
        slurm_xfree((void **)&conf);
    errno = saved;
    return rc;
}

/* Each of Slurm's polls comes here: one system call, and no file of /proc. */
bool joule_host_has_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/ipmi-reader/harden.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* On every Linux, whatever the password file says (the kernel's overflowuid).
 */
#define NOBODY 65534

/* Ten times what it uses. */
#define DATA_MAX (32u << 20)

/* close_range(2) is there since Linux 5.9. */
static int close_others(void)
{
    DIR *dir;
    struct dirent *entry;

#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
        return 0;
#endif
    dir = opendir("/proc/self/fd");
    if (!dir)
        return -1;
    while ((entry = readdir(dir))) {
        int fd = (int)strtol(entry->d_name, NULL, 10);

        if (fd > 2 && fd != dirfd(dir))
            close(fd);
    }
    return closedir(dir);
}

static int fill_standard(void)
{
    for (int fd = 1; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* The lowest that is free: 0 is the socket. */
        if (open("/dev/null", O_RDWR) != fd)
            return -1;
    }
    return 0;
}

/* Cleared by the kernel whenever the user changes. */
static int die_with(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -1;
    if (getppid() != parent) {
        errno = ESRCH;
        return -1;
    }
    return 0;
}

static int bound_resources(void)
{
    const struct rlimit none = {0, 0};

    if (setrlimit(RLIMIT_CORE, &none) < 0)
        return -1;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const struct rlimit data = {DATA_MAX, DATA_MAX};

    if (setrlimit(RLIMIT_DATA, &data) < 0)
        return -1;
#endif
    return 0;
}

int joule_harden_start(pid_t parent, struct joule_error *err)
{
    sigset_t all;

    sigfillset(&all);
    if (close_others() < 0 || fill_standard() < 0 || clearenv() != 0 ||
        chdir("/") < 0)
        return joule_error_set(err, errno,
                               "cannot close what was inherited: %m");
    if (sigprocmask(SIG_SETMASK, &all, NULL) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0) < 0 || bound_resources() < 0)
        return joule_error_set(err, errno, "cannot bound this process: %m");
    if (die_with(parent) < 0)
        return joule_error_set(err, errno, "who started this is gone: %m");
    return 0;
}

static int set_capabilities(bool keep_ipc)
{
    struct __user_cap_header_struct head = {.version =
                                                _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};

    if (keep_ipc)
        data[0].effective = data[0].permitted = 1u << CAP_IPC_OWNER;
    return (int)syscall(SYS_capset, &head, data);
}

int joule_harden_drop(pid_t parent, bool keep_ipc, struct joule_error *err)
{
    if (geteuid() != 0)
        return 0;
    if (prctl(PR_SET_KEEPCAPS, keep_ipc ? 1 : 0) < 0 ||
        setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0 ||
        set_capabilities(keep_ipc) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
        return joule_error_set(err, errno, "cannot give up root's rights: %m");
    if (die_with(parent) < 0)
        return joule_error_set(err, errno, "who started this is gone: %m");
    return 0;
}

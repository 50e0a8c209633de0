/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/ipmi-reader/harden.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/callfilter.h"

/* The user of the package, if it has made one. */
#define USER "slurm-joule"

/* On every Linux, whatever the password file says (the kernel's overflowuid).
 */
#define NOBODY 65534

/* Ten times what it uses. */
#define DATA_MAX (32u << 20)

/* Where the C library of slurmd's side could not. */
static int close_others(void)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;

    if (!dir)
        return -1;
    while ((entry = readdir(dir))) {
        int fd = (int)strtol(entry->d_name, NULL, 10);

        if (fd > 2 && fd != dirfd(dir))
            close(fd);
    }
    return closedir(dir);
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
#if !JOULE_HAS_SANITIZER
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
    if (close_others() < 0 || clearenv() != 0 || chdir("/") < 0)
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

/* What FreeIPMI, the resolver (its modules are loaded when it is first used)
 * and this program do: nothing that starts, traces or signals another process,
 * changes a file's name or rights, or takes other rights. */
static const int calls[] = {
    /* files, and a device that is open */
    SYS_read,
    SYS_pread64,
    SYS_readv,
    SYS_write,
    SYS_writev,
    SYS_openat,
    SYS_close,
    SYS_lseek,
    SYS_fstat,
    SYS_newfstatat,
    SYS_faccessat,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_fcntl,
    SYS_ioctl,
#ifdef SYS_statx
    SYS_statx,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
    /* sockets */
    SYS_socket,
    SYS_bind,
    SYS_connect,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_sendto,
    SYS_sendmsg,
    SYS_sendmmsg,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_recvmmsg,
    SYS_shutdown,
    SYS_ppoll,
    SYS_pselect6,
    /* memory */
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_mlock,
    SYS_munlock,
    SYS_brk,
    SYS_futex,
    /* time */
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_times,
    SYS_timer_create,
    SYS_timer_settime,
    SYS_timer_delete,
    SYS_setitimer,
    SYS_restart_syscall,
    /* itself */
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_getpid,
    SYS_getppid,
    SYS_gettid,
    SYS_tgkill, /* abort(3) */
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getrandom,
    SYS_getrusage,
    SYS_prlimit64,
    SYS_sched_getaffinity,
    SYS_sched_yield,
    SYS_uname,
    SYS_sysinfo,
    SYS_exit,
    SYS_exit_group,
    /* the semaphores with which KCS and SSIF take turns */
    SYS_semget,
    SYS_semop,
    SYS_semtimedop,
    SYS_semctl,
/* Older names of the above, which not every architecture has. */
#ifdef SYS_open
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_poll,
    SYS_select,
    SYS_time,
#endif
};

/* Of the password file alone: the services of nsswitch.conf may wait for
 * servers.  Root is none. */
static void find_user(uid_t *ret_uid, gid_t *ret_gid)
{
    FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *user;

    *ret_uid = *ret_gid = NOBODY;
    while (file && (user = fgetpwent(file))) {
        if (strcmp(user->pw_name, USER) != 0)
            continue;
        if (user->pw_uid != 0 && user->pw_gid != 0) {
            *ret_uid = user->pw_uid;
            *ret_gid = user->pw_gid;
        }
        break;
    }
    if (file)
        fclose(file);
}

/* What no program can be started with any more. */
static int empty_bounding_set(void)
{
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
        if (prctl(PR_CAPBSET_DROP, cap) < 0)
            return -1;
    return 0;
}

static int drop_root(pid_t parent, bool keep_ipc, struct joule_error *err)
{
    uid_t uid;
    gid_t gid;

    find_user(&uid, &gid);
    if (empty_bounding_set() < 0 || prctl(PR_SET_KEEPCAPS, keep_ipc) < 0 ||
        setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
        setresuid(uid, uid, uid) < 0 || set_capabilities(keep_ipc) < 0 ||
        prctl(PR_SET_DUMPABLE, 0) < 0)
        return joule_error_set(err, errno, "cannot give up root's rights: %m");
    if (die_with(parent) < 0)
        return joule_error_set(err, errno, "who started this is gone: %m");
    return 0;
}

int joule_harden_drop(pid_t parent, bool keep_ipc, struct joule_error *err)
{
    if (geteuid() == 0 && drop_root(parent, keep_ipc, err) < 0)
        return -1;
    if (joule_callfilter_enter(calls, sizeof(calls) / sizeof(calls[0]),
                               SECCOMP_RET_KILL_PROCESS) < 0)
        return joule_error_set(err, errno, "cannot bound its calls: %m");
    return 0;
}

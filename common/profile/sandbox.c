/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/profile/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/callfilter.h"
#include "common/base/parse.h"

static bool is_kept(int fd, const int *keep, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (keep[i] == fd)
            return true;
    return false;
}

static int close_others(const int *keep, size_t count, bool keeps_stderr)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;

    if (!dir)
        return -1;
    while ((entry = readdir(dir))) {
        uint64_t fd;

        /* "." and ".." are no numbers. */
        if (joule_parse_u64(entry->d_name, 0, INT_MAX, &fd) == 0 &&
            (int)fd != dirfd(dir) && !is_kept((int)fd, keep, count) &&
            !(keeps_stderr && fd == STDERR_FILENO))
            close((int)fd);
    }
    return closedir(dir);
}

/* What this process has of data, which the limit counts as well: that of its
 * parent, whose list of files may be long.  proc(5): the sixth number, in
 * pages, has the stack in it. */
static int own_data(rlim_t *ret_bytes)
{
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long pages;
    int count;

    if (!f)
        return -1;
    count = fscanf(f, "%*s %*s %*s %*s %*s %lu", &pages);
    fclose(f);
    if (count != 1)
        return errno = EINVAL, -1;
    *ret_bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
    return 0;
}

static int bound_resources(size_t data_bytes)
{
    const struct rlimit none = {0, 0};
    struct rlimit data;

    if (setrlimit(RLIMIT_CORE, &none) < 0)
        return -1;
    if (JOULE_HAS_SANITIZER)
        return 0;
    if (own_data(&data.rlim_cur) < 0)
        return -1;
    data.rlim_max = data.rlim_cur += data_bytes;
    return setrlimit(RLIMIT_DATA, &data);
}

/* All that read their arguments from registers or write to our own memory.
 * What others there are fails with EPERM. */
static const int calls[] = {
    SYS_read,
    SYS_pread64,
    SYS_readv,
    SYS_lseek,
    SYS_fstat,
    SYS_close,
    SYS_write,
    SYS_sendmsg,
    SYS_sendto,
    SYS_recvmsg,
    SYS_recvfrom,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_brk,
    SYS_madvise,
    SYS_futex,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigreturn,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_setitimer,
    SYS_getitimer,
    SYS_getpid,
    SYS_gettid,
    SYS_tgkill,
    SYS_clock_gettime,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_sched_yield,
    SYS_restart_syscall,
    SYS_newfstatat,
    /* The last two only for who writes files. */
    SYS_pwrite64,
    SYS_ftruncate,
};

int joule_sandbox_enter(pid_t parent, const int *keep, size_t count,
                        bool writes_files, size_t data_bytes,
                        struct joule_error *err)
{
    size_t allowed = sizeof(calls) / sizeof(calls[0]) - (writes_files ? 0 : 2);

    if (close_others(keep, count, !writes_files || JOULE_HAS_SANITIZER) < 0)
        return joule_error_set(err, errno, "cannot close what is open: %m");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        return joule_error_set(err, ESRCH, "who started this is gone");
    signal(SIGPIPE, SIG_IGN);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0) < 0 || bound_resources(data_bytes) < 0)
        return joule_error_set(err, errno, "cannot bound this process: %m");
    if (joule_callfilter_enter(calls, allowed, SECCOMP_RET_ERRNO | EPERM) < 0)
        return joule_error_set(err, errno, "cannot bound its calls: %m");
    return 0;
}

void joule_sandbox_watch(unsigned seconds)
{
    const struct itimerval timer = {.it_value.tv_sec = (time_t)seconds};

    setitimer(ITIMER_PROF, &timer, NULL);
}

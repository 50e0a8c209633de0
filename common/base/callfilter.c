/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/callfilter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#if defined(__x86_64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_AARCH64
#endif

#if defined(AUDIT_ARCH_HERE) && !JOULE_HAS_SANITIZER
int joule_callfilter_enter(const int *calls, size_t count, uint32_t otherwise)
{
    struct sock_filter code[JOULE_CALLFILTER_MAX + 6];
    struct sock_fprog program = {.len = (unsigned short)(count + 6),
                                 .filter = code};
    size_t n = 0;

    if (count > JOULE_CALLFILTER_MAX) {
        errno = E2BIG;
        return -1;
    }
    code[n++] = (struct sock_filter)BPF_STMT(
        BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_HERE,
                                     0, (unsigned char)(count + 2));
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < count; i++)
        code[n++] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i],
            (unsigned char)(count + 1 - i), 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
        return 0;
    /* A kernel without it. */
    return errno == EINVAL || errno == ENOSYS ? 0 : -1;
}
#else
int joule_callfilter_enter(const int *calls, size_t count, uint32_t otherwise)
{
    (void)calls;
    (void)count;
    (void)otherwise;
    return 0;
}
#endif

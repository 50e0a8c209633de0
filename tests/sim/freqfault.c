/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/freqfault.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/parse.h"

static int errno_parse(const char *name)
{
    for (int i = 1; i < 134; i++)
        if (strerrorname_np(i) && !strcmp(strerrorname_np(i), name))
            return i;
    return 0;
}

int sim_freqfault_add(struct sim_freqfault *fault, char *text,
                      struct joule_error *err)
{
    struct rule rule = {.from = 1, .count = 1};
    const char *word[5] = {NULL};
    char *rest = text, *next;
    size_t count = 0;

    while ((next = strsep(&rest, " ")))
        if (*next && count++ < 5)
            word[count - 1] = next;
    if (count == 1 && !strcmp(word[0], "off")) {
        fault->rule_count = 0;
        return 0;
    }
    if (fault->rule_count == SIM_FAULT_RULES)
        return joule_error_set(err, ENOSPC, "there are %d faults already",
                               SIM_FAULT_RULES);
    if (count < 3 || count > 5 ||
        (strcmp(word[0], "read") && strcmp(word[0], "write")) ||
        strlen(word[1]) >= sizeof(rule.pattern) ||
        !(rule.error = errno_parse(word[2])) ||
        (word[3] && joule_parse_u64(word[3], 1, UINT64_MAX, &rule.from)) ||
        (word[4] && joule_parse_u64(word[4], 0, UINT32_MAX, &rule.count)))
        return joule_error_set(err, EINVAL,
                               "a fault is read|write PATTERN ERRNO "
                               "[NTH [COUNT]], or off");
    rule.write = word[0][0] == 'w';
    strcpy(rule.pattern, word[1]);
    fault->rules[fault->rule_count++] = rule;
    return 0;
}

int sim_freqfault_strike(struct sim_freqfault *fault, const char *path,
                         bool write)
{
    int error = 0;

    for (size_t i = 0; i < fault->rule_count; i++) {
        struct rule *r = &fault->rules[i];

        if (r->write != write || fnmatch(r->pattern, path, 0))
            continue;
        r->seen++;
        if (!error && r->seen >= r->from &&
            (!r->count || r->seen - r->from < r->count))
            error = r->error;
    }
    return error;
}

static void comm_read(pid_t pid, char *comm, size_t size)
{
    char path[32];
    ssize_t len;
    int fd;

    snprintf(comm, size, "?");
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    len = read(fd, comm, size - 1);
    if (len > 0)
        comm[len] = '\0';
    comm[strcspn(comm, "\n")] = '\0';
    close(fd);
}

void sim_freqfault_log(struct sim_freqfault *fault, int64_t mono_ns, pid_t pid,
                       const char *path, const char *buf, size_t count,
                       int error)
{
    char comm[32], text[64], line[320];
    size_t len = 0;

    fault->writes++;
    if (fault->log_fd < 0)
        return;
    comm_read(pid, comm, sizeof(comm));
    if (count && buf[count - 1] == '\n')
        count--;
    for (; len < count && len < sizeof(text) - 1; len++)
        text[len] = isgraph((unsigned char)buf[len]) ? buf[len] : '?';
    text[len] = '\0';
    for (char *c = comm; *c; c++)
        if (*c == ' ')
            *c = '_';
    len = (size_t)snprintf(line, sizeof(line), "%" PRId64 " %d %s %s %s %s\n",
                           mono_ns, (int)pid, comm, path, len ? text : "-",
                           error ? strerrorname_np(error) : "ok");
    /* One write: a reader never sees half a line. */
    if (write(fault->log_fd, line, len) < 0)
        fault->log_fd = -1;
}

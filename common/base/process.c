/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"
#include "common/base/parse.h"

#define STATE_FIELD 3
#define START_FIELD 22

/* 2^22 is the most that Linux numbers processes to; 2^40 ticks are 348 years.
 */
#define PID_BITS 24

int joule_process_start(int root_fd, pid_t pid, uint64_t *ret_ticks)
{
    char path[48], text[1024], *at, *word, *rest;
    unsigned field = STATE_FIELD;

    snprintf(path, sizeof(path), "proc/%lld/stat", (long long)pid);
    if (joule_file_read(root_fd, path, text, sizeof(text)) < 0) {
        if (errno == ENOENT)
            errno = ESRCH;
        return -1;
    }
    /* The program's name is in brackets and may hold anything. */
    at = strrchr(text, ')');
    if (!at || at[1] != ' ')
        goto bad;
    for (word = strtok_r(at + 2, " ", &rest); word && field < START_FIELD;
         word = strtok_r(NULL, " ", &rest), field++)
        if (field == STATE_FIELD && strchr("ZXx", *word)) {
            errno = ESRCH;
            return -1;
        }
    if (word && joule_parse_u64(word, 0, UINT64_MAX, ret_ticks) == 0)
        return 0;
bad:
    errno = EBADMSG;
    return -1;
}

uint64_t joule_process_number(pid_t pid, uint64_t start_ticks)
{
    return start_ticks << PID_BITS | (uint64_t)pid;
}

pid_t joule_process_pid(uint64_t number)
{
    return (pid_t)(number & ((UINT64_C(1) << PID_BITS) - 1));
}

bool joule_process_is_dead(int root_fd, uint64_t number)
{
    pid_t pid = joule_process_pid(number);
    uint64_t start;

    if (pid == 0)
        return true;
    if (joule_process_start(root_fd, pid, &start) < 0)
        return errno == ESRCH;
    return joule_process_number(pid, start) != number;
}

uint64_t joule_process_namespace(int root_fd)
{
    struct stat st;

    if (fstatat(root_fd, "proc/self/ns/pid", &st, 0) < 0)
        return 0;
    return st.st_ino;
}

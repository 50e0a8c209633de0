/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peak - the most memory that a command has needed.
 *
 *     peak FILE COMMAND [ARGUMENT...]
 *
 * Writes into FILE, in KiB, what all processes of the command have had
 * together: of each the most that was resident, as the kernel notes it, read
 * when the process is about to end, so that one of some milliseconds is seen as
 * well.  Mapped files (programs, libraries) count once, with those of the
 * process that has most of them.  Of processes that share memory, or are not
 * there at the same time, this is more than they had together, and never less.
 *
 * Ends as the command does; with 2 if it cannot be watched.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define OPTIONS                                                                \
    (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |          \
     PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL)
#define PROCESSES_MAX 1024

struct need {
    long process, resident_kib, files_kib;
};

static struct need needs[PROCESSES_MAX];
static size_t need_count;

static struct need *need_of(long process)
{
    size_t i;

    for (i = 0; i < need_count; i++)
        if (needs[i].process == process)
            return &needs[i];
    if (need_count == PROCESSES_MAX)
        bench_die("peak", "too many processes");
    needs[need_count].process = process;
    return &needs[need_count++];
}

/* Thread [tid] is about to end; the figures are those of its process. */
static void note(pid_t tid)
{
    long process = 0, resident_kib = 0, files_kib = 0;
    struct need *need;
    char path[64], line[256];
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
    f = fopen(path, "re");
    if (!f)
        bench_die(path, strerror(errno));
    while (fgets(line, sizeof(line), f)) {
        sscanf(line, "Tgid: %ld", &process);
        sscanf(line, "VmHWM: %ld", &resident_kib);
        sscanf(line, "RssFile: %ld", &files_kib);
    }
    fclose(f);
    if (process == 0 || resident_kib == 0)
        bench_die(path, "does not say what was resident");
    need = need_of(process);
    if (need->resident_kib < resident_kib)
        need->resident_kib = resident_kib;
    if (need->files_kib < files_kib)
        need->files_kib = files_kib;
}

static long total_kib(void)
{
    long sum_kib = 0, files_kib = 0;
    size_t i;

    for (i = 0; i < need_count; i++) {
        sum_kib += needs[i].resident_kib - needs[i].files_kib;
        if (files_kib < needs[i].files_kib)
            files_kib = needs[i].files_kib;
    }
    return sum_kib + files_kib;
}

static pid_t start(char **argv)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0)
            bench_die("ptrace", strerror(errno));
        execvp(argv[0], argv);
        bench_die(argv[0], strerror(errno));
    }
    if (pid < 0 || waitpid(pid, &status, __WALL) < 0 || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, pid, NULL, OPTIONS) < 0 ||
        ptrace(PTRACE_CONT, pid, NULL, 0) < 0)
        bench_die("ptrace", strerror(errno));
    return pid;
}

/* The signal that a stopped thread is to go on with. */
static int signal_of(pid_t tid, int status)
{
    int event = status >> 16;

    if (event == PTRACE_EVENT_EXIT)
        note(tid);
    /* SIGSTOP: how a new thread begins. */
    if (event != 0 || WSTOPSIG(status) == SIGTRAP ||
        WSTOPSIG(status) == SIGSTOP)
        return 0;
    return WSTOPSIG(status);
}

/* Returns how the command ended. */
static int watch(pid_t command)
{
    int status, ended = 0;
    pid_t tid;

    while ((tid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        if (tid < 0)
            continue;
        if (WIFSTOPPED(status))
            ptrace(PTRACE_CONT, tid, NULL, (long)signal_of(tid, status));
        else if (tid == command)
            ended = status;
    }
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
}

int main(int argc, char **argv)
{
    int code;
    FILE *f;

    if (argc < 3)
        bench_die("usage", "peak FILE COMMAND [ARGUMENT...]");
    code = watch(start(argv + 2));
    f = fopen(argv[1], "we");
    if (!f || fprintf(f, "%ld\n", total_kib()) < 0 || fclose(f) != 0)
        bench_die(argv[1], strerror(errno));
    return code;
}

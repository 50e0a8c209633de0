/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/parse.h"

#define WAIT_S 10

/* Whether the variables [first] and [second] make up [job]: "42" and "3". */
static bool environment_is(const struct joule_job *job, const char *first,
                           char mark, const char *second)
{
    const char *a = getenv(first), *b = getenv(second);
    char text[2 * JOULE_JOB_TEXT_MAX];

    if (!a || !b)
        return false;
    snprintf(text, sizeof(text), "%.20s%c%.20s", a, mark, b);
    return strcmp(text, job->text) == 0;
}

static int take_number(const char *text, uint32_t *ret_id)
{
    uint64_t id;

    if (!text || joule_parse_u64(text, 1, UINT32_MAX - 2, &id) < 0)
        return -1;
    *ret_id = (uint32_t)id;
    return 0;
}

/* SLURM_JOB_ID_HET_GROUP_1 and so on are set within a heterogeneous job. */
static int ask_environment(const struct joule_job *job, uint32_t *ret_id)
{
    const char *plus = strchr(job->text, '+');
    char name[64];

    if (environment_is(job, "SLURM_ARRAY_JOB_ID", '_', "SLURM_ARRAY_TASK_ID"))
        return take_number(getenv("SLURM_JOB_ID"), ret_id);
    if (!plus)
        return -1;
    snprintf(name, sizeof(name), "SLURM_JOB_ID_HET_GROUP_%s", plus + 1);
    if (getenv("SLURM_JOB_ID_HET_GROUP_0") &&
        strncmp(getenv("SLURM_JOB_ID_HET_GROUP_0"), job->text,
                (size_t)(plus - job->text)) == 0)
        return take_number(getenv(name), ret_id);
    return -1;
}

/* Never returns. */
static void run_command(char *const *argv, int out)
{
    int null = open("/dev/null", O_RDWR);

    if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(null, STDERR_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(127);
    alarm(WAIT_S); /* kept over exec */
    execvp(argv[0], argv);
    _exit(127);
}

/* The first line that the command prints, if that is a number. */
static int ask_command(char *const *argv, uint32_t *ret_id)
{
    char text[64];
    size_t len = 0;
    int pipes[2], status, rc;
    pid_t pid;

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return -1;
    pid = fork();
    if (pid == 0)
        run_command(argv, pipes[1]);
    close(pipes[1]);
    while (pid > 0 && len < sizeof(text) - 1) {
        ssize_t n = read(pipes[0], text + len, sizeof(text) - 1 - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    close(pipes[0]);
    if (pid < 0)
        return -1;
    while ((rc = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    text[len] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return take_number(text, ret_id);
}

int joule_job_resolve(const struct joule_job *job, uint32_t *ret_id,
                      struct joule_error *err)
{
    char text[JOULE_JOB_TEXT_MAX];
    char *const sacct[] = {"sacct",    "-X", "-n", "-P", "-o",
                           "JobIDRaw", "-j", text, NULL};
    char *const squeue[] = {"squeue", "-h", "-t", "all", "-o",
                            "%A",     "-j", text, NULL};

    if (job->id) {
        *ret_id = job->id;
        return 0;
    }
    memcpy(text, job->text, sizeof(text));
    if (ask_environment(job, ret_id) == 0 || ask_command(sacct, ret_id) == 0 ||
        ask_command(squeue, ret_id) == 0)
        return 0;
    return joule_error_set(err, ENOENT,
                           "the number of job %s is not known (sacct and "
                           "squeue do not know it or are not there); give -j "
                           "the number that its files have",
                           job->text);
}

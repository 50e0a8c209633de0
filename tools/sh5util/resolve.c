/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/sh5util/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/parse.h"
#include "tools/joule/slurmconf.h"

#define WAIT_S 10

/* What is merely good to know. */
#define WAIT_OTHERS_S 2
#define OTHERS_SIZE   (256 * 1024)
#define OTHERS_SHOWN  3

/* ---- its configuration ---- */

/* The slurm.conf that is there, or NULL. */
static const char *find_conf(int root_fd,
                             const struct joule_slurmconf_places *places)
{
    struct stat st;

    for (size_t i = 0; places->path[i]; i++)
        if (fstatat(root_fd, places->path[i] + strspn(places->path[i], "/"),
                    &st, 0) == 0)
            return places->path[i];
    return NULL;
}

bool joule_profiledir_has_slurm(int root_fd, const char *conf)
{
    struct joule_slurmconf_places places;

    return joule_slurmconf_look(conf, &places, NULL) == 0 &&
           find_conf(root_fd, &places);
}

char *joule_profiledir(int root_fd, const char *conf_name,
                       struct joule_error *err)
{
    const struct joule_slurmconf_setting *setting;
    struct joule_slurmconf_places places;
    struct joule_slurmconf conf;
    struct joule_findings *ignored;
    const char *slurm_conf;
    char path[PATH_MAX], *dir = NULL;
    int rc;

    if (joule_slurmconf_look(conf_name, &places, err) < 0)
        return NULL;
    /* Without slurm.conf, acct_gather.conf may still be there. */
    slurm_conf = find_conf(root_fd, &places);
    if (!slurm_conf)
        slurm_conf = places.path[0];
    snprintf(path, sizeof(path), "%.*s/acct_gather.conf",
             (int)(strrchr(slurm_conf, '/') - slurm_conf), slurm_conf);
    ignored = calloc(1, sizeof(*ignored)); /* large */
    if (!ignored) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    rc = joule_slurmconf_load(root_fd, path, &conf, ignored, err);
    free(ignored);
    if (rc < 0) {
        joule_error_set(err, errno, "%s; name the directory with -p",
                        err ? err->text : "");
        return NULL;
    }
    setting = joule_slurmconf_find(&conf, "ProfileHDF5Dir");
    if (!setting || !*setting->value)
        joule_error_set(err, ENOENT,
                        "%s does not set ProfileHDF5Dir: name the directory "
                        "with -p",
                        path);
    else if (!(dir = strdup(setting->value)))
        joule_error_set(err, ENOMEM, "out of memory");
    joule_slurmconf_free(&conf);
    return dir;
}

/* ---- jobs ---- */

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
static void run_command(char *const *argv, unsigned wait_s, int out)
{
    int null = open("/dev/null", O_RDWR);

    if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(null, STDERR_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(127);
    alarm(wait_s); /* kept over exec */
    execvp(argv[0], argv);
    _exit(127);
}

/* What the command prints, as much of it as there is room for. */
static void read_command(char *const *argv, unsigned wait_s, char *text,
                         size_t size)
{
    size_t len = 0;
    int pipes[2], status;
    pid_t pid;

    text[0] = '\0';
    if (pipe2(pipes, O_CLOEXEC) < 0)
        return;
    pid = fork();
    if (pid == 0)
        run_command(argv, wait_s, pipes[1]);
    close(pipes[1]);
    while (pid > 0 && len < size - 1) {
        ssize_t n = read(pipes[0], text + len, size - 1 - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    text[len] = '\0';
    close(pipes[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
}

/* The first line that the command prints, if that is a number. */
static int ask_command(char *const *argv, uint32_t *ret_id)
{
    char text[64];

    read_command(argv, WAIT_S, text, sizeof(text));
    text[strcspn(text, "\n")] = '\0';
    return take_number(text, ret_id);
}

int joule_job_resolve(struct joule_job *job, struct joule_error *err)
{
    char text[JOULE_JOB_TEXT_MAX];
    char *const sacct[] = {"sacct",    "-X", "-n", "-P", "-o",
                           "JobIDRaw", "-j", text, NULL};
    char *const squeue[] = {"squeue", "-h", "-t", "all", "-o",
                            "%A",     "-j", text, NULL};

    if (job->id)
        return 0;
    memcpy(text, job->text, sizeof(text));
    if (ask_environment(job, &job->id) == 0 ||
        ask_command(sacct, &job->id) == 0 || ask_command(squeue, &job->id) == 0)
        return 0;
    return joule_error_set(err, ENOENT,
                           "the number of job %s is not known (sacct and "
                           "squeue do not know it or are not there): say the "
                           "number that its files have",
                           job->text);
}

/* The next line of [lines] that is one of [job]: "42", "42_3", "42+1". */
static const char *find_line(const struct joule_job *job, const char *lines)
{
    size_t len = strlen(job->text);

    while (*lines) {
        if (strncmp(lines, job->text, len) == 0 && lines[len] &&
            strchr("_+|", lines[len]))
            return lines;
        lines += strcspn(lines, "\n");
        lines += *lines == '\n';
    }
    return NULL;
}

/* Plain numbers that are not in [lines], with commas; their count. */
static size_t list_jobs(const struct joule_job *jobs, size_t count,
                        const char *lines, char *list)
{
    size_t listed = 0;

    for (size_t i = 0; i < count; i++)
        if (jobs[i].id && !find_line(&jobs[i], lines))
            list += sprintf(list, "%s%s", listed++ ? "," : "", jobs[i].text);
    return listed;
}

char *joule_jobs_ask(const struct joule_job *jobs, size_t count)
{
    char list[JOULE_JOBS_MAX * JOULE_JOB_TEXT_MAX];
    char *const squeue[] = {"squeue", "-h", "-t", "all", "-o",
                            "%i|%A",  "-j", list, NULL};
    char *const sacct[] = {"sacct",          "-X", "-n", "-P", "-o",
                           "JobID,JobIDRaw", "-j", list, NULL};
    char *lines;
    size_t len;

    if (list_jobs(jobs, count, "", list) == 0)
        return NULL;
    lines = malloc(OTHERS_SIZE);
    if (!lines)
        return NULL;
    read_command(squeue, WAIT_OTHERS_S, lines, OTHERS_SIZE);
    len = strlen(lines);
    if (list_jobs(jobs, count, lines, list) > 0)
        read_command(sacct, WAIT_OTHERS_S, lines + len, OTHERS_SIZE - len);
    return lines;
}

/* The number behind the name in a line. */
static bool is_own(const struct joule_job *job, const char *line)
{
    const char *number = line + strcspn(line, "|\n");

    return *number == '|' && strtoul(number + 1, NULL, 10) == job->id;
}

bool joule_job_has_others(const struct joule_job *job, const char *lines,
                          struct joule_error *ret)
{
    char names[128] = "";
    size_t others = 0, len = 0;
    bool is_array = false;

    for (; job->id && (lines = find_line(job, lines));
         lines += strcspn(lines, "\n")) {
        int name = (int)strcspn(lines, "|\n");
        char mark = lines[strlen(job->text)];

        if (mark == '|' || is_own(job, lines))
            continue;
        is_array = mark == '_';
        if (others++ < OTHERS_SHOWN)
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%.*s",
                                    others > 1 ? ", " : "",
                                    name < 32 ? name : 32, lines);
    }
    if (others == 0)
        return false;
    joule_error_set(ret, 0,
                    "Job %s is %s: its number is that of one %s, and the files "
                    "of the others (%s%s) are merged by -j with their names",
                    job->text, is_array ? "an array" : "a heterogeneous job",
                    is_array ? "task" : "component", names,
                    others > OTHERS_SHOWN ? ", ..." : "");
    return true;
}

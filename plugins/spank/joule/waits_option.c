/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/parse.h"
#include "plugins/slurm_abi/slurm_abi.h"
#include "plugins/spank/joule/spank_joule.h"

#define DIRECTORY_VARIABLE "JOULE_WAITS_DIR"

static bool is_off(const char *directory)
{
    return strcmp(directory, JOULE_SPANK_WAITS_OFF) == 0;
}

/* The current directory for fill_in, with a '/' behind it. */
static int put_here(char path[PATH_MAX], struct joule_error *err)
{
    char here[PATH_MAX];
    size_t at = 0;

    if (!getcwd(here, sizeof(here)))
        return joule_error_set(err, errno, "cannot tell the directory: %s",
                               strerror(errno));
    for (const char *c = here; *c && at < PATH_MAX - 3; c++) {
        path[at++] = *c;
        if (*c == '%')
            path[at++] = '%';
    }
    strcpy(path + at, "/");
    return 0;
}

int joule_spank_waits_wish(const char *directory, struct joule_error *err)
{
    char here[PATH_MAX] = "", path[JOULE_SPANK_WAITS_MAX];
    int n;

    /* That is what 22.05 makes of no argument for the steps of a job. */
    if (!directory || !*directory || strcmp(directory, "(null)") == 0)
        directory = JOULE_SPANK_WAITS_DEFAULT;
    if (directory[0] != '/' && !is_off(directory) && put_here(here, err) < 0)
        return -1;
    n = snprintf(path, sizeof(path), "%s%s", here, directory);
    if (n >= (int)sizeof(path))
        return joule_error_set(err, ENAMETOOLONG, "%.64s... is too long",
                               directory);
    if (setenv(JOULE_SPANK_WAITS_VARIABLE, path, 1) < 0)
        return joule_error_set(err, errno, "%s", strerror(errno));
    return 0;
}

/* %j and %s are the numbers of job and step, %% is a %. */
static int fill_in(const char *pattern, uint32_t job, uint32_t step,
                   char path[PATH_MAX], struct joule_error *err)
{
    size_t at = 0;

    for (; *pattern; pattern++) {
        size_t left = PATH_MAX - at;
        int n;

        if (pattern[0] == '%' && (pattern[1] == 'j' || pattern[1] == 's'))
            n = snprintf(path + at, left, "%u", *++pattern == 'j' ? job : step);
        else if (pattern[0] == '%' && pattern[1] == '%')
            n = snprintf(path + at, left, "%c", *++pattern);
        else
            n = snprintf(path + at, left, "%c", *pattern);
        if ((size_t)n >= left)
            return joule_error_set(err, ENAMETOOLONG, "%.64s... is too long",
                                   path);
        at += (size_t)n;
    }
    path[at] = '\0';
    return 0;
}

static bool get_number(struct spank_handle *spank, const char *name,
                       uint64_t *ret)
{
    char text[16];
    const char *value = text;

    if (spank_context() == S_CTX_LOCAL)
        value = getenv(name);
    else if (spank_getenv(spank, name, text, sizeof(text)) != ESPANK_SUCCESS)
        return false;
    return value && joule_parse_u64(value, 0, UINT32_MAX, ret) == 0;
}

/* A step of several components of a heterogeneous job has a number in each of them, one
 * behind the other, and one directory: that of the first. */
static uint32_t first_of(struct spank_handle *spank, uint32_t job)
{
    uint64_t first, size;

    if (!get_number(spank, "SLURM_HET_SIZE", &size) ||
        !get_number(spank, "SLURM_JOB_ID", &first) || job < first ||
        job - first >= size)
        return job;
    return (uint32_t)first;
}

static int find_directory(struct spank_handle *spank, const char *pattern,
                          char path[PATH_MAX], struct joule_error *err)
{
    uint32_t job = 0, step = 0;

    if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS)
        return joule_error_set(err, ENOENT,
                               "Slurm does not tell the step's number");
    return fill_in(pattern, first_of(spank, job), step, path, err);
}

/* ---- slurmstepd ---- */

int joule_spank_waits_begin(struct spank_handle *spank, const char *wish,
                            const struct joule_spank_options *options,
                            struct joule_error *err)
{
    char pattern[JOULE_SPANK_WAITS_MAX] = "", path[PATH_MAX];
    uint32_t step = 0;

    if (spank_getenv(spank, JOULE_SPANK_WAITS_VARIABLE, pattern,
                     sizeof(pattern)) == ESPANK_NOSPACE)
        return joule_error_set(err, EINVAL,
                               JOULE_SPANK_WAITS_VARIABLE " is too long");
    /* Without srun's environment (--export=NONE): below the program's own. */
    if (!*pattern)
        snprintf(pattern, sizeof(pattern), "%s", wish);
    /* sbatch's option is meant for the steps of the script. */
    if (!*pattern || is_off(pattern) ||
        spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
        step >= SLURM_MAX_NORMAL_STEP_ID)
        return 0;
    if (find_directory(spank, pattern, path, err) < 0)
        return -1;
    if (access(options->waits, R_OK) < 0)
        return joule_error_set(err, errno, "nothing is recorded: %s: %s",
                               options->waits, strerror(errno));
    if (spank_setenv(spank, DIRECTORY_VARIABLE, path, 1) != ESPANK_SUCCESS)
        return joule_error_set(err, ENOMEM, "cannot set " DIRECTORY_VARIABLE);
    return joule_spank_preload(spank, options->waits, true, err);
}

/* ---- srun ---- */

/* The step's directory, once its number is known. */
static char directory[PATH_MAX];

void joule_spank_waits_local(struct spank_handle *spank)
{
    const char *pattern = getenv(JOULE_SPANK_WAITS_VARIABLE);
    struct joule_error err;

    *directory = '\0';
    if (pattern && *pattern && !is_off(pattern) &&
        find_directory(spank, pattern, directory, &err) < 0) {
        slurm_error("--energy-waits: %s", err.text);
        *directory = '\0';
    }
}

/* As the user, who waits for it and may interrupt it: the logs stay. */
void joule_spank_waits_local_end(const struct joule_spank_options *options,
                                 bool is_asked)
{
    char *argv[] = {(char *)"joule-report", (char *)"waits",
                    (char *)"--make-archive", directory, NULL};
    sigset_t none;
    pid_t pid;

    if (!*directory)
        return;
    if (access(directory, R_OK | X_OK) < 0) {
        if (is_asked)
            slurm_error(
                "--energy-waits: nothing was recorded in %s: is it on a file "
                "system that all nodes share, and does the program call a "
                "dynamic MPI library?",
                directory);
        return;
    }
    pid = fork();
    if (pid == 0) {
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        setenv("JOULE_WAITS_IS_OVER", "1", 1);
        execv(options->report, argv);
        fprintf(stderr, "joule: the waits are in %s: joule waits %s\n",
                directory, directory);
        _exit(1);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sh5util - merge, list and extract the profiles of jobs; the command line of
 * Slurm's tool of that name.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/sh5util/extract.h"
#include "tools/sh5util/merge.h"
#include "tools/sh5util/options.h"
#include "tools/sh5util/resolve.h"
#include "tools/sh5util/say.h"
#include "tools/sh5util/sources.h"

static int fail(const char *text)
{
    joule_say("%s", text);
    return JOULE_EXIT_NOTHING;
}

/* The user's name of whom this runs as; the caller frees it. */
static char *own_name(void)
{
    const struct passwd *pw = getpwuid(geteuid());

    return pw ? strdup(pw->pw_name) : NULL;
}

/* [given], or a name made of the job and, for -I, series and item. */
static char *output_name(const struct joule_sh5_options *o,
                         const struct joule_job *job)
{
    const char *suffix = o->json ? "json" : "csv";
    char *name;
    int n;

    if (o->output)
        return strdup(o->output);
    switch (o->mode) {
    case JOULE_MODE_MERGE:
        n = asprintf(&name, "./job_%s.h5", job->text);
        break;
    case JOULE_MODE_ITEM:
        n = asprintf(&name, "./%s_%s_%s.%s", o->series, o->item, job->text,
                     suffix);
        break;
    default:
        n = asprintf(&name, "./extract_%s.%s", job->text, suffix);
        break;
    }
    if (n < 0)
        return NULL;
    /* A series or item is no path. */
    for (char *c = name + 2; *c; c++)
        if (*c == '/')
            *c = '_';
    return name;
}

/* [listed]: jobs that -L has printed so far. */
static int extract_job(const struct joule_sh5_options *o,
                       const struct joule_job *job, const char *output,
                       size_t *listed)
{
    char *input = NULL;
    int status;

    if ((o->input ? asprintf(&input, "%s", o->input)
                  : asprintf(&input, "./job_%s.h5", job->text)) < 0)
        return fail("out of memory");
    if (o->mode == JOULE_MODE_EXTRACT)
        status = joule_extract(o, job, input, output);
    else if (o->mode == JOULE_MODE_ITEM)
        status = joule_extract_item(o, job, input, output);
    else
        status = joule_extract_list(o, job, input, listed);
    free(input);
    return status;
}

/* What was said of all jobs together. */
static int combine(int all, int one, bool is_first)
{
    if (is_first || all == one)
        return one;
    return JOULE_EXIT_PART;
}

/* Slurm's commands are not asked where there is no slurm.conf. */
static void say_others(const struct joule_sh5_options *o, int root_fd,
                       const char *conf)
{
    struct joule_error sentence;
    char *lines = NULL;

    if (joule_profiledir_has_slurm(root_fd, conf))
        lines = joule_jobs_ask(o->job, o->jobs);
    for (size_t i = 0; lines && i < o->jobs; i++)
        if (joule_job_has_others(&o->job[i], lines, &sentence))
            joule_say("%s", sentence.text);
    free(lines);
}

/* What has to be known before root becomes the user; [o] then has [dir] and
 * [user], which the caller frees. */
static int prepare_merge(struct joule_sh5_options *o, char **dir, char **user,
                         struct joule_error *err)
{
    const char *conf = getenv("SLURM_CONF");
    int root_fd;

    if (conf && !*conf)
        conf = NULL;
    *user = o->user ? strdup(o->user) : own_name();
    if (!*user)
        return joule_error_set(err, ENOENT,
                               "who runs this has no name: give one with -u");
    root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return joule_error_set(err, errno, "cannot open /: %m");
    if (!o->dir)
        o->dir = *dir = joule_profiledir(root_fd, conf, err);
    if (o->dir)
        say_others(o, root_fd, conf);
    close(root_fd);
    if (!o->dir)
        return -1;
    for (size_t i = 0; i < o->jobs; i++)
        if (joule_job_resolve(&o->job[i], err) < 0)
            return -1;
    return 0;
}

static int run(const struct joule_sh5_options *o)
{
    int status = JOULE_EXIT_NOTHING;
    size_t listed = 0;

    for (size_t i = 0; i < o->jobs; i++) {
        const struct joule_job *job = &o->job[i];
        char *output = output_name(o, job);
        int one;

        if (!output)
            return fail("out of memory");
        one = o->mode == JOULE_MODE_MERGE
                  ? joule_merge(o, job, output)
                  : extract_job(o, job, output, &listed);
        status = combine(status, one, i == 0);
        free(output);
    }
    if (o->json && listed > 0)
        puts("]");
    return status;
}

int main(int argc, char **argv)
{
    struct joule_sh5_options o;
    struct joule_error err = {""};
    char *dir = NULL, *user = NULL;
    int status = joule_sh5_options_parse(argc, argv, &o);

    if (status < 0) {
        bool is_merge = o.mode == JOULE_MODE_MERGE;

        if ((is_merge && prepare_merge(&o, &dir, &user, &err) < 0) ||
            (o.user && joule_sources_become(o.user, &err) < 0)) {
            status = fail(err.text);
        } else {
            o.user = user;
            status = run(&o);
        }
        free(o.job);
        free(dir);
        free(user);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("sh5util: cannot write the output");
        return JOULE_EXIT_NOTHING;
    }
    return status;
}

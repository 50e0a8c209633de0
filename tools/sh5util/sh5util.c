/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sh5util - merge, list and extract the profiles of jobs; the command line of
 * Slurm's tool of that name.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/sh5util/extract.h"
#include "tools/sh5util/merge.h"
#include "tools/sh5util/options.h"
#include "tools/sh5util/profiledir.h"
#include "tools/sh5util/resolve.h"
#include "tools/sh5util/say.h"

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

/*
 * Root becomes [user] for good: whatever lies in the user's directories is then
 * read, written and removed with the user's rights.
 */
static int become(const char *user, struct joule_error *err)
{
    const struct passwd *pw;

    if (geteuid() != 0)
        return 0;
    errno = 0;
    pw = getpwnam(user);
    if (!pw)
        return joule_error_set(err, errno ? errno : ENOENT,
                               "there is no user \"%s\"", user);
    if (pw->pw_uid == 0)
        return 0;
    if (initgroups(pw->pw_name, pw->pw_gid) < 0 ||
        setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
        setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0)
        return joule_error_set(err, errno, "cannot become user %s: %m", user);
    return 0;
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

static int merge_job(const struct joule_sh5_options *o,
                     const struct joule_job *job, const char *dir,
                     const char *user, uint32_t id, const char *output)
{
    const struct joule_merge_request request = {
        .dir = dir,
        .user = user,
        .output = output,
        .job = job,
        .id = id,
        .save = o->save,
        .unfinished = o->unfinished,
        .readers = o->readers,
        .verbose = o->verbose,
    };

    return joule_merge(&request);
}

/* [listed]: jobs that -L has printed so far. */
static int extract_job(const struct joule_sh5_options *o,
                       const struct joule_job *job, const char *output,
                       size_t *listed)
{
    struct joule_extract_request request = {
        .output = output,
        .job = job,
        .listed = o->jobs > 1 ? listed : NULL,
        .node = o->node,
        .series = o->series,
        .item = o->item,
        .time_series = o->time_series,
        .json = o->json,
        .readers = o->readers,
        .verbose = o->verbose,
    };
    char *input = NULL;
    int status;

    if (!o->input && asprintf(&input, "./job_%s.h5", job->text) < 0)
        return fail("out of memory");
    request.input = o->input ? o->input : input;
    if (o->mode == JOULE_MODE_EXTRACT)
        status = joule_extract(&request);
    else if (o->mode == JOULE_MODE_ITEM)
        status = joule_extract_item(&request);
    else
        status = joule_extract_list(&request);
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

/* What has to be known before root becomes the user. */
struct setting {
    char *dir, *user;
    uint32_t id[JOULE_JOBS_MAX];
};

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

static int prepare_merge(const struct joule_sh5_options *o, struct setting *s,
                         struct joule_error *err)
{
    const char *conf = getenv("SLURM_CONF");
    int root_fd;

    if (conf && !*conf)
        conf = NULL;
    s->user = o->user ? strdup(o->user) : own_name();
    if (!s->user)
        return joule_error_set(err, ENOENT,
                               "who runs this has no name: give one with -u");
    root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return joule_error_set(err, errno, "cannot open /: %m");
    s->dir = o->dir ? strdup(o->dir) : joule_profiledir(root_fd, conf, err);
    if (s->dir)
        say_others(o, root_fd, conf);
    close(root_fd);
    if (!s->dir)
        return o->dir ? joule_error_set(err, ENOMEM, "out of memory") : -1;
    for (size_t i = 0; i < o->jobs; i++)
        if (joule_job_resolve(&o->job[i], &s->id[i], err) < 0)
            return -1;
    return 0;
}

static int prepare(const struct joule_sh5_options *o, struct setting *s,
                   struct joule_error *err)
{
    if (o->mode == JOULE_MODE_MERGE && prepare_merge(o, s, err) < 0)
        return -1;
    return o->user ? become(o->user, err) : 0;
}

static int run(const struct joule_sh5_options *o, const struct setting *s)
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
                  ? merge_job(o, job, s->dir, s->user, s->id[i], output)
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
    struct setting s = {0};
    int status = joule_sh5_options_parse(argc, argv, &o);

    if (status < 0) {
        if (prepare(&o, &s, &err) < 0)
            status = fail(err.text);
        else
            status = run(&o, &s);
        free(o.job);
        free(s.dir);
        free(s.user);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("sh5util: cannot write the output");
        return JOULE_EXIT_NOTHING;
    }
    return status;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* joule trace - power, regions and states of CPUs of a job's run, for viewers. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/joule/command.h"
#include "tools/joule/text.h"
#include "tools/report/report.h"
#include "tools/report/trace.h"
#include "tools/sh5util/sources.h"

static const char usage[] =
    "usage: joule trace --format=FORMAT [OPTION]... JOB[.STEP]\n"
    "\n"
    "Write the power of a job's steps, the regions of its programs and the "
    "states of\n"
    "its CPUs over time, from its energy profile (srun --energy-regions, or\n"
    "--profile=energy).\n"
    "\n"
    "  --format=chrome   JSON for Perfetto and chrome://tracing: job_JOB.json\n"
    "  --format=paraver  Paraver: job_JOB.prv, .pcf and .row\n"
    "  --format=otf2     OTF2: a new directory job_JOB.otf2\n"
    "  --output=PATH     in place of job_JOB (paraver), or of the whole name\n"
    "  -i FILE           a merged file of sh5util; else the job's own files, "
    "or\n"
    "                    ./job_JOB.h5\n"
    "  -p DIR            in place of ProfileHDF5Dir\n"
    "  -u USER           whose job it is\n"
    "  --help            print this\n"
    "\n"
    "Exit status: 0 well, 1 there is nothing to tell, 2 usage error, 3 a part "
    "is\n"
    "missing.\n";

static const struct format {
    const char *name, *end;
    int (*write)(const struct joule_trace *trace, const char *path,
                 struct joule_error *err);
} formats[] = {
    {"chrome", ".json", joule_trace_chrome},
    {"paraver", "", joule_trace_paraver},
    {"otf2", ".otf2", joule_trace_otf2},
};

struct arguments {
    struct joule_nodes_request request;
    const struct format *format;
    const char *output;
};

static int parse(struct arguments *a, int argc, char **argv)
{
    const char *format = NULL, *job[1] = {NULL};
    size_t jobs = 0;
    const struct joule_command_option table[] = {
        {.name = "format", .text = &format},
        {.name = "output", .text = &a->output},
        {.name = "i", .text = &a->request.input},
        {.name = "p", .text = &a->request.dir},
        {.name = "u", .text = &a->request.user},
        {.name = "", .text = job, .count = &jobs, .max = 1},
        {NULL},
    };
    int rc = joule_command_parse(table, usage, argc, argv);

    if (rc >= 0)
        return rc;
    a->request.job = job[0];
    if (jobs == 0 && (!a->request.input || !a->output))
        return joule_command_error(
            argv[0], jobs == 0 && a->request.input
                         ? "what is its name? Give a job, or --output"
                         : "which job?");
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (format && strcmp(format, formats[i].name) == 0)
            a->format = &formats[i];
    if (!a->format)
        return joule_command_error(argv[0],
                                   "--format is chrome, paraver or otf2");
    return -1;
}

static int write_trace(const struct arguments *a,
                       const struct joule_timeline *timeline,
                       const struct joule_nodes *nodes, struct joule_error *err)
{
    struct joule_trace trace;
    char name[128];
    const char *path = a->output;
    int rc;

    if (!path) {
        snprintf(name, sizeof(name), "job_%.64s%s", a->request.job,
                 a->format->end);
        path = name;
    }
    rc = joule_trace_make(timeline, nodes, &trace);
    if (rc < 0)
        joule_error_set(err, ENOMEM, "out of memory");
    else if (trace.events == 0)
        rc = joule_error_set(err, ENOENT,
                             "there is no energy profile that can be read");
    else
        rc = a->format->write(&trace, path, err);
    if (rc == 0)
        printf("%s: %zu events on %zu time lines\n", path, trace.events,
               trace.lanes);
    joule_trace_free(&trace);
    return rc == 0 && timeline->failed > 0 ? 3 : rc;
}

static int run(const struct arguments *a, struct joule_error *err)
{
    struct joule_timeline timeline = {0};
    struct joule_nodes *nodes;
    int rc;

    if (a->request.user && joule_sources_become(a->request.user, err) < 0)
        return -1;
    nodes = joule_nodes_find(&a->request, err);
    if (!nodes)
        return -1;
    rc = joule_timeline_read(nodes, &timeline, "joule trace", err);
    if (rc == 0)
        rc = write_trace(a, &timeline, nodes, err);
    joule_timeline_free(&timeline);
    joule_nodes_free(nodes);
    return rc;
}

int joule_trace_main(int argc, char **argv)
{
    struct arguments a = {0};
    struct joule_error err = {""};
    int status = parse(&a, argc, argv);

    if (status >= 0)
        return status;
    status = run(&a, &err);
    if (status >= 0)
        return status;
    fputs("joule trace: ", stderr);
    joule_text_put(stderr, err.text);
    fputc('\n', stderr);
    return 1;
}

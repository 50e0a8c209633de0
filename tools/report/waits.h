/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * waits.h - `joule waits`: what was found in a trace, and how it is printed.
 */
#ifndef JOULE_REPORT_WAITS_H
#define JOULE_REPORT_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/waits/power_states.h"
#include "tools/report/wait_profile.h"
#include "tools/waits/definitions.h"
#include "tools/waits/scratch.h"
#include "tools/waits/totals.h"
#include "tools/waits/trace_reader.h"

/* argv[0] is the command's name.  The exit status: 0 all is told, 1 there is nothing
 * to tell, 2 a wrong command line, 3 a part is missing, which was said. */
int joule_waits_main(int argc, char **argv);

/* All that there is to print. */
struct joule_waits {
    const char *trace;
    const struct joule_definitions *d;
    const struct joule_trace_facts *facts;
    const struct joule_power_envelope *envelope; /* NULL: no power states */
    const struct joule_wait_profile *profile;    /* NULL: no energy profile, */
    const struct joule_error *no_profile; /* and why; empty: none is meant */
    const struct joule_totals *all;
    unsigned by; /* enum joule_totals_by; 0: as the format likes it */
    size_t top;  /* lines of text */
    bool slack;
};

/* A group of waits, as programs get it; NULL: these are not told apart. */
struct joule_waits_line {
    const char *pattern; /* its id */
    const char *path, *process, *node, *communicator;
    bool has_rank;
    uint32_t rank;
    uint64_t count, ns, longest_ns;
    bool has_saving, has_use; /* there are power states, a profile */
    double state1_j, esp_j, esp_bw_j, used_j, used_uncertain_j;
};

/* waits_print.c: the groups by [by] (of enum joule_totals_by), the longest first.  With
 * patterns, completions are among them.  -1: with ENOMEM, or of [put]. */
int joule_waits_lines(const struct joule_waits *w, unsigned by,
                      int (*put)(void *arg,
                                 const struct joule_waits_line *line),
                      void *arg);

/* waits_print.c: to standard output.  -1 with ENOMEM. */
int joule_waits_print_text(const struct joule_waits *w);
int joule_waits_print_csv(const struct joule_waits *w);
int joule_waits_print_json(const struct joule_waits *w);

/* waits_slack.c, of --slack: a table of the longest ones, comma-separated values, and
 * a part of the JSON document.  -1 with ENOMEM. */
struct joule_json;
int joule_waits_print_slack(const struct joule_waits *w);
int joule_waits_print_slack_csv(const struct joule_waits *w);
int joule_waits_print_slack_json(struct joule_json *j,
                                 const struct joule_waits *w);

/* waits_print.c: a cell of comma-separated values; "rank 3". */
void joule_waits_put_cell(const char *text);
void joule_waits_put_process(const struct joule_waits *w, uint32_t process);

/* waits_page.c: an HTML page; a profile for CubeGUI.  -1 with errno and a sentence. */
int joule_waits_print_page(FILE *out, const struct joule_waits *w,
                           struct joule_error *err);
int joule_waits_print_cubex(FILE *out, const struct joule_waits *w,
                            struct joule_error *err);

/* waits_marked.c: a scratch file for records of [size] beside [path], which will be
 * written.  -1 with errno and a sentence; free it in any case. */
int joule_waits_scratch(struct joule_scratch *s, const char *path, size_t size,
                        struct joule_error *err);

/* A copy of the trace in the new directory [path], with the [marks] (trace_copy.h).
 * -1 with errno and a sentence, and nothing of it. */
int joule_waits_write_otf2(struct joule_scratch *marks, const char *trace,
                           const char *path, void (*tick)(void *arg),
                           struct joule_error *err);

/* waits_paraver.c: PATH.prv, PATH.pcf and PATH.row, for Paraver.  NULL with errno and a
 * sentence.  What is told comes in the threads of the reader (trace_reader.h), after
 * joule_waits_paraver_begin; it is written when all is told: -1 with errno and a
 * sentence. */
struct joule_waits_paraver *joule_waits_paraver_open(const char *path,
                                                     struct joule_error *err);
void joule_waits_paraver_begin(struct joule_waits_paraver *p,
                               const struct joule_definitions *d);
void joule_waits_paraver_wait(struct joule_waits_paraver *p, unsigned part,
                              const struct joule_wait *wait);
void joule_waits_paraver_message(struct joule_waits_paraver *p, unsigned part,
                                 const struct joule_delivery *message);
void joule_waits_paraver_call(struct joule_waits_paraver *p, unsigned part,
                              const struct joule_trace_call *call);
int joule_waits_paraver_write(struct joule_waits_paraver *p,
                              const struct joule_trace_facts *facts,
                              void (*tick)(void *arg), struct joule_error *err);
void joule_waits_paraver_close(struct joule_waits_paraver *p);

/* waits_hdf5.c: tables in the merged profile [path], of the step "JOB.STEP"; NULL: it is
 * not known.  NULL and -1 with errno and a sentence: the file is as it was. */
struct joule_waits_hdf5 *joule_waits_hdf5_open(const char *path,
                                               struct joule_error *err);
int joule_waits_hdf5_write(struct joule_waits_hdf5 *h,
                           const struct joule_waits *w, const char *step,
                           struct joule_error *err);
void joule_waits_hdf5_close(struct joule_waits_hdf5 *h);

/* A line of --each, behind its head.  Any thread, while none adds paths. */
#define JOULE_WAITS_EACH_HEAD "pattern,rank,process,begin_ns,wait_ns,path"
void joule_waits_print_each(const struct joule_definitions *d,
                            const struct joule_wait *wait);

#endif

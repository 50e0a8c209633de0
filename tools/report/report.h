/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * report.h - commands of `joule` that read profiles, and so need libhdf5: they are
 * a program of their own, joule-report, which `joule` starts.
 */
#ifndef JOULE_REPORT_REPORT_H
#define JOULE_REPORT_REPORT_H

/* argv[0] is the command's name.  They return the exit status: 0 all is told, 1
 * there is nothing to tell, 2 a wrong command line, 3 a part is missing, which
 * was said. */
int joule_regions_main(int argc, char **argv);
int joule_trace_main(int argc, char **argv);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pmlib.h - the functions of pmlib, a client for servers of power measurements,
 * for programs that are written for it.  Part of slurm-joule; link with -ljoule.
 * doc/pmlib.md says what differs, `joule pmserver` is a server.
 *
 *     pm_set_server("127.0.0.1", 6526, &server);
 *     pm_set_lines("0-3", &lines);
 *     pm_create_counter("step", lines, 0, 0, server, &counter);
 *     pm_start_counter(&counter);
 *     ...
 *     pm_stop_counter(&counter);
 *     pm_get_counter_data(&counter);
 *     pm_print_data_stdout(counter, lines, -1);
 *     pm_finalize_counter(&counter);
 *
 * Functions return 0 unless something else is said here, or -1 with errno; they
 * never end the program, and print nothing but what they are asked for.  Where a call
 * speaks with the server, errno is
 *   EREMOTEIO   the server refused
 *   EPROTO      what it sent is not of this protocol
 *   ECONNRESET  it has closed the connection
 *   ETIMEDOUT   it sent nothing for 5 s
 *   ENOMEM      there is no memory
 *   or what connect(2), send(2) or recv(2) have set it to.
 * A counter, and a copy of it, belong to one thread at a time.
 */
#ifndef JOULE_PMLIB_H
#define JOULE_PMLIB_H

/* Programs for pmlib rely on these. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SERVER_IP_LEN 16 /* "255.255.255.255" */
#define MAX_TIMING    10
#define LINE_SETSIZE  16

/* Which lines of a device: line i is bit i % 8 of byte i / 8. */
typedef struct {
    char __bits[LINE_SETSIZE];
} line_t;

/* Lines that there are not, 128 and more, are no members. */
#define LINE_SET(line, set)   joule_line_set((size_t)(line), (set))
#define LINE_CLR(line, set)   joule_line_clear((size_t)(line), (set))
#define LINE_ISSET(line, set) joule_line_is_set((size_t)(line), (set))
#define LINE_CLR_ALL(set)     ((void)memset((set)->__bits, 0x00, LINE_SETSIZE))
#define LINE_SET_ALL(set)     ((void)memset((set)->__bits, 0xff, LINE_SETSIZE))
#define LINE_AND(to, a, b)    joule_line_and((to), &(a), &(b))

static inline void joule_line_set(size_t line, line_t *set)
{
    if (line < 8 * LINE_SETSIZE)
        set->__bits[line / 8] = (char)(set->__bits[line / 8] | 1 << line % 8);
}

static inline void joule_line_clear(size_t line, line_t *set)
{
    if (line < 8 * LINE_SETSIZE)
        set->__bits[line / 8] =
            (char)(set->__bits[line / 8] & ~(1 << line % 8));
}

static inline int joule_line_is_set(size_t line, const line_t *set)
{
    return line < 8 * LINE_SETSIZE && (set->__bits[line / 8] >> line % 8 & 1);
}

static inline void joule_line_and(line_t *to, const line_t *a, const line_t *b)
{
    for (int i = 0; i < LINE_SETSIZE; i++)
        to->__bits[i] = (char)(a->__bits[i] & b->__bits[i]);
}

typedef char *unit_t; /* "ns", "us", "ms"; "" is "ns" */

typedef struct {
    char server_ip[SERVER_IP_LEN];
    int port;
} server_t;

typedef struct {
    char *name; /* the caller frees it */
    int max_frecuency;
    int n_lines;
} device_t;

/* What the server has measured. */
typedef struct {
    int watts_size;      /* values in watts */
    int watts_sets_size; /* numbers in watts_sets: one more than there are sets */
    int *watts_sets;     /* where each set begins, in samples, and the end */
    double *watts;       /* aggregate: the samples, set after set; else those of
                            the first line, then those of the second, ... */
    int lines_len;       /* lines of the counter */
} pm_measures;

typedef struct {
    int next_timing; /* sets that have begun */
    double *timing;  /* begin and end of each set, s since 1970 */
    pm_measures energy;
} pm_measures_wt;

typedef struct {
    int sock;
    int aggregate;            /* 1: samples are sums of the lines */
    line_t lines;             /* that are measured */
    int num_lines;            /* of the device */
    int interval;             /* samples a second */
    pm_measures_wt *measures; /* NULL: none */
} counter_t;

/*
 * The server's address, in dotted decimals, and port.  An [ip] of NULL or ""
 * takes both from the environment, JOULE_PMSERVER=127.0.0.1:PORT, as `joule
 * pmserver -- PROGRAM` sets it.  EINVAL: not an address or port, ENOENT: the
 * variable is not set; it is no server then.
 */
int pm_set_server(char *ip, int port, server_t *pm_server);

/* "0,2-5,100"; "" is no line.  EINVAL, ERANGE (above 127): *lines as it was. */
int pm_set_lines(char *lines_string, line_t *lines);

/* The names of the server's devices; the caller frees each, and the list. */
int pm_get_devices(server_t pm_server, char ***devices_list, int *num_devices);

int pm_get_device_info(server_t pm_server, char *pm_id, device_t *d);

/*
 * A counter of the device [pm_id].  Lines that the device has not are left out;
 * none at all stands for all of them.  [interval] is samples a second; 0: as
 * many as the device has.  After an error *pm_counter is a counter of which nothing
 * can be had: the functions below say EINVAL or EBADF.
 */
int pm_create_counter(char *pm_id, line_t lines, int aggregate, int interval,
                      server_t pm_server, counter_t *pm_counter);

/* Begin the first set, and forget others.  After pm_stop_counter,
 * pm_continue_counter begins another one.  ENOSPC: there are 5,000. */
int pm_start_counter(counter_t *pm_counter);
int pm_continue_counter(counter_t *pm_counter);
int pm_stop_counter(counter_t *pm_counter);

/* Fetch the samples of all sets into *pm_counter->measures.  Returns 1. */
int pm_get_counter_data(counter_t *pm_counter);

/* Sets that were fetched. */
int pm_get_counter_num_sets(counter_t pm_counter, int *num_sets);

/* Close the connection and free what the counter has, whatever is returned. */
int pm_finalize_counter(counter_t *pm_counter);

/*
 * What was fetched, as text to stdout or into a new file.  Of [lines] those are
 * printed that the counter has; an aggregate has none.  [set] counts from 0, -1
 * is all.  They return 1.  EINVAL: no such set, unit or line, ENODATA: nothing
 * was fetched.
 */
int pm_print_data_stdout(counter_t pm_counter, line_t lines, int set);
int pm_print_data_text(char *file_name, counter_t pm_counter, line_t lines,
                       int set);
int pm_print_data_csv(char *file_name, counter_t pm_counter, line_t lines,
                      int set);
int pm_print_data_paraver(char *file_name, counter_t pm_counter, line_t lines,
                          int set, unit_t unit);

/*
 * The same of a device whose lines are 4 states of each CPU (CSTATES0,
 * PSTATES0).  Here [set] counts from 1, and 0 is all.  [separate]: the percent
 * of each state; else which state the CPU was in, one after the other.
 */
int pm_print_data_paraver_cstates(char *file_name, counter_t pm_counter,
                                  line_t lines, int set, unit_t unit,
                                  int separate);
int pm_print_data_paraver_pstates(char *file_name, counter_t pm_counter,
                                  line_t lines, int set, unit_t unit);

/* Print seconds, mean watts and joules of a set, or of each, to stdout. */
int pm_calculate_energy(counter_t pm_counter, line_t lines, int set);

/* Append what the counter is to the file [out]. */
int pm_fprint_counter_info(char *out, counter_t pm_counter);

#ifdef __cplusplus
}
#endif

#endif

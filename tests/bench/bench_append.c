/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How an energy series grows, beside Slurm's own acct_gather_profile/hdf5 on
 * the same samples: from a thousand to a million of them, 1 and 100 a second.
 *
 *   bench_append SLURM-PLUGIN LIBSLURMFULL DIRECTORY MOST
 *
 * Prints "rate_hz rows bytes slurm_bytes us slurm_us" for each; us is all CPU
 * time of a process that does nothing else, from the first sample to the file's
 * end, for one sample.  For tests/bench/bench_files.sh.  MOST: rows.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/bench.h"
#include "tests/bench/longseries.h"

static const char *slurm_path, *directory;
static struct longseries now;

static void measure(struct bench_result *us)
{
    struct longseries ours = now, theirs = now;
    struct profilehost_plugin plugin;
    char our_user[64], their_user[64];

    /* A file that is there would stay. */
    snprintf(our_user, sizeof(our_user), "ours-%u-%u", now.rate_hz, now.rows);
    snprintf(their_user, sizeof(their_user), "theirs-%u-%u", now.rate_hz,
             now.rows);
    ours.user = our_user;
    theirs.user = their_user;
    us->ours = longseries_ours(&ours) / now.rows;
    plugin = profilehost_load(slurm_path);
    us->peer = longseries_theirs(&theirs, &plugin) / now.rows;
    printf("%u %u %.0f %.0f %.5g %.5g\n", now.rate_hz, now.rows,
           longseries_bytes(&ours), longseries_bytes(&theirs), us->ours,
           us->peer);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const unsigned rates_hz[] = {1, 100};
    unsigned most;

    if (argc != 5)
        bench_die("usage",
                  "bench_append SLURM-PLUGIN LIBSLURMFULL DIRECTORY MOST");
    profilehost_begin(argv);
    slurm_path = argv[1];
    directory = argv[3];
    profilehost_set(argv[2], directory);
    most = (unsigned)strtoul(argv[4], NULL, 10);
    for (int i = 0; i < 2; i++)
        for (unsigned rows = 1000; rows <= most; rows *= 10) {
            now = (struct longseries){directory, "", rows, rates_hz[i]};
            bench_measure(measure);
        }
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * georgiou.h - what Georgiou et al. 2014 measured of three classes of jobs on
 * 16 nodes at 13 frequencies, by wattmeters and by Slurm from BMCs (the table is
 * in tests/fixtures), and what the lag of a BMC costs such a job.
 *
 * A failure of these functions ends the program with exit code 2.
 */
#ifndef JOULE_BENCH_GEORGIOU_H
#define JOULE_BENCH_GEORGIOU_H

#define GEORGIOU_TABLE "tests/fixtures/georgiou2014-precision.csv"

enum { GEORGIOU_NODES = 16, GEORGIOU_CLASSES = 3, GEORGIOU_FREQUENCIES = 13 };

/* Of a node without a job, about what the paper shows. */
#define GEORGIOU_IDLE_W 100.0

struct georgiou_job {
    double ghz;       /* 2.301: 2.3 and turbo */
    double seconds;   /* see below */
    double node_w;    /* mean of one node, by the wattmeter */
    double error_pct; /* of Slurm and a BMC, in the paper */
};

struct georgiou_class {
    const char *name;
    double seconds; /* at 2.3 GHz and above */
    /*
     * The paper has no times for lower frequencies.  Of a job's time, this part
     * grows as the frequency falls: all of Linpack's, which computes; a
     * quarter of IMB's, which waits for the network; half of STREAM's, with
     * which the lag of a BMC is off as the paper's was, from 13 % at 2.3 GHz
     * to 6 % at 1.2 GHz.
     */
    double scales;
    struct georgiou_job job[GEORGIOU_FREQUENCIES]; /* highest first */
};

/* STREAM, IMB, Linpack; [path] NULL: GEORGIOU_TABLE below $srcdir or here. */
const struct georgiou_class *georgiou_load(const char *path);

/*
 * What a BMC must be off by, in % of a job's energy, that follows the power
 * with a first-order lag and has settled to 2 % after settle_s: it begins at
 * idle power and misses (P - P_idle) x tau x (1 - exp(-T / tau)) of a job of T.
 * (What it shows after the job belongs to nobody.)
 */
double georgiou_lag_pct(double node_w, double idle_w, double seconds,
                        double settle_s);

/* What reading it adds to that, at most: whole watts, and a first sample that
 * is late by a part of a second. */
double georgiou_sampling_pct(double node_w, double idle_w, double seconds);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rpcping - how long slurmd takes to say the node's energy.
 *
 *   rpcping NODE SECONDS [INTERVAL-MS]
 *
 * Asks slurmd of NODE by RPC every INTERVAL-MS (20) for SECONDS or until
 * SIGTERM, and prints one line:
 *
 *   asked N failed N median_ms X max_ms X joules N|unknown watts N|unknown
 *
 * with the last answer's figures.  slurmd answers in a thread that calls the
 * energy plugin under the lock that all calls share: an entry point that waits
 * for a sensor is seen here.  Exit status 1 if no answer came at all.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <slurm/slurm.h>

#define PINGS_MAX 100000

static volatile sig_atomic_t stopped;

static void on_term(int sig)
{
    (void)sig;
    stopped = 1;
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void print_u64(const char *name, uint64_t value, uint64_t unknown)
{
    if (value == unknown)
        printf(" %s unknown", name);
    else
        printf(" %s %llu", name, (unsigned long long)value);
}

int main(int argc, char **argv)
{
    static double took_ms[PINGS_MAX];
    uint64_t joules = NO_VAL64;
    uint32_t watts = NO_VAL;
    struct sigaction term;
    double end_ms, interval_ms;
    int count = 0, failed = 0;

    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: rpcping NODE SECONDS [INTERVAL-MS]\n");
        return 2;
    }
    memset(&term, 0, sizeof(term));
    term.sa_handler = on_term;
    sigaction(SIGTERM, &term, NULL);
    interval_ms = argc > 3 ? strtod(argv[3], NULL) : 20;
    end_ms = now_ms() + strtod(argv[2], NULL) * 1e3;
    slurm_init(NULL);
    while (!stopped && now_ms() < end_ms && count < PINGS_MAX) {
        acct_gather_energy_t *energy = NULL;
        uint16_t sensors = 0;
        double start_ms = now_ms(), rest_ms;

        if (slurm_get_node_energy(argv[1], 0, 0, &sensors, &energy) ==
                SLURM_SUCCESS &&
            sensors > 0 && energy) {
            took_ms[count++] = now_ms() - start_ms;
            joules = energy->consumed_energy;
            watts = energy->current_watts;
            /* Slurm's allocator has no public free; a few bytes a ping. */
        } else {
            failed++;
        }
        rest_ms = interval_ms - (now_ms() - start_ms);
        if (rest_ms > 0) {
            struct timespec rest = {0, (long)(rest_ms * 1e6)};

            rest.tv_sec = rest.tv_nsec / 1000000000;
            rest.tv_nsec %= 1000000000;
            nanosleep(&rest, NULL);
        }
    }
    qsort(took_ms, (size_t)count, sizeof(took_ms[0]), by_value);
    printf("asked %d failed %d median_ms %.2f max_ms %.2f", count + failed,
           failed, count ? took_ms[count / 2] : 0,
           count ? took_ms[count - 1] : 0);
    print_u64("joules", joules, NO_VAL64);
    print_u64("watts", watts, NO_VAL);
    printf("\n");
    return count ? 0 : 1;
}

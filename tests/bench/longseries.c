/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _FILE_OFFSET_BITS 64

#include "tests/bench/longseries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/profile/config.h"
#include "common/profile/writer.h"
#include "config.h"
#include "tests/bench/bench.h"

#define START_S   INT64_C(1700000000)
#define ROW_BYTES 64 /* of the queue, at most */

static int64_t fake_ns(void *arg)
{
    (void)arg;
    return START_S * JOULE_NS_PER_S;
}

static struct joule_writer *make_writer(const struct longseries *l)
{
    static const struct joule_clock clock = {.mono_ns = fake_ns,
                                             .wall_ns = fake_ns};
    struct joule_profile_config config;
    struct joule_writer_options opt = {
        .place = {.dir = l->directory, .user = l->user},
        .base = "7_0_n1",
        .facts = {.node = "n1", .writer = PACKAGE_STRING, .tasks = 1},
        .helper = l->converter,
        .clock = &clock,
        .flush_ns = 50 * JOULE_NS_PER_MS,
        /* No row is dropped, however slow the disk is. */
        .queue_bytes = 1024 * 1024 + (size_t)l->rows * ROW_BYTES,
    };
    struct joule_writer *writer;
    struct joule_error err;

    joule_option_defaults(joule_profile_options, &config);
    opt.facts.pack = joule_profile_pack(&config);
    writer = joule_writer_create(&opt, &err);
    if (!writer)
        bench_die("joule_writer_create", err.text);
    return writer;
}

/* Each sample is some tens of microseconds late. */
double longseries_ours(const struct longseries *l)
{
    static const struct joule_field field = {"Power", JOULE_FIELD_U64};
    double before = profilehost_cpu_ns();
    struct joule_writer *writer = make_writer(l);
    int64_t period_ns = JOULE_NS_PER_S / l->rate_hz;
    unsigned seed = 1;
    /* At 1 Hz it is Slurm that samples, and the series has no period. */
    int table = joule_writer_add_table(writer, "Energy", &field, 1,
                                       l->rate_hz > 1 ? period_ns : 0);

    for (unsigned i = 1; i <= l->rows; i++) {
        uint64_t watts = profilehost_power(&seed);
        int64_t ns =
            START_S * JOULE_NS_PER_S + i * period_ns + rand_r(&seed) % 60000;

        if (joule_writer_append(writer, table, &watts, ns / JOULE_NS_PER_S,
                                ns) < 0)
            bench_die("joule_writer_append", strerror(errno));
        /* It goes to the disk bit by bit, as from a step. */
        if (i % (l->rows / 36 + 1) == 0)
            bench_sleep_ms(10);
    }
    if (joule_writer_close(writer, 60 * JOULE_NS_PER_S) < 0)
        bench_die("joule_writer_close", strerror(errno));
    return (profilehost_cpu_ns() - before) / 1e3;
}

double longseries_theirs(const struct longseries *l,
                         const struct profilehost_plugin *plugin)
{
    double before = profilehost_cpu_ns();
    unsigned char record[PROFILEHOST_RECORD_BYTES];
    unsigned seed = 1;
    int energy;

    profilehost_record(record, l->user);
    if (plugin->start(record) != SLURM_SUCCESS)
        bench_die(l->user, "the step does not start");
    energy = plugin->create_dataset("Energy", JOULE_PROFILE_NO_PARENT,
                                    profilehost_energy);
    for (unsigned i = 1; i <= l->rows; i++) {
        uint64_t watts = profilehost_power(&seed);

        if (plugin->add(energy, &watts, START_S + i / l->rate_hz) !=
            SLURM_SUCCESS)
            bench_die(l->user, "a sample is refused");
    }
    plugin->end();
    return (profilehost_cpu_ns() - before) / 1e3;
}

double longseries_bytes(const struct longseries *l)
{
    char path[512];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s/7_0_n1.h5", l->directory, l->user);
    if (stat(path, &st) < 0)
        bench_die(path, strerror(errno));
    return (double)st.st_size;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/wattmeter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "tests/sim/model.h"

#define BUFFER_SIZE (256 * 1024)
#define FLUSH_NS    (100 * JOULE_NS_PER_MS)

struct sim_wattmeter {
    FILE *file;
    unsigned packages;
    int64_t flushed_ns;
    int error; /* of the first write that failed */
};

struct sim_wattmeter *sim_wattmeter_create(const char *path, unsigned packages,
                                           struct joule_error *err)
{
    struct sim_wattmeter *meter = calloc(1, sizeof(*meter));

    if (!meter) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    meter->packages = packages;
    meter->file = fopen(path, "we");
    if (!meter->file) {
        joule_error_set(err, errno, "cannot write wattmeter log %s: %m", path);
        free(meter);
        return NULL;
    }
    setvbuf(meter->file, NULL, _IOFBF, BUFFER_SIZE);
    fputs("mono_ns,wall_ns,node_uj", meter->file);
    for (unsigned i = 0; i < packages; i++)
        fprintf(meter->file, ",package%u_uj", i);
    putc('\n', meter->file);
    return meter;
}

int sim_wattmeter_destroy(struct sim_wattmeter *meter)
{
    int error;

    if (!meter)
        return 0;
    error = meter->error;
    if (fclose(meter->file) && !error)
        error = errno;
    free(meter);
    if (!error)
        return 0;
    errno = error;
    return -1;
}

void sim_wattmeter_line(struct sim_wattmeter *meter, int64_t mono_ns,
                        int64_t wall_ns, const struct sim_energy *e)
{
    fprintf(meter->file, "%" PRId64 ",%" PRId64 ",%" PRIu64, mono_ns, wall_ns,
            e->node_nj / 1000);
    for (unsigned i = 0; i < meter->packages; i++)
        fprintf(meter->file, ",%" PRIu64,
                sim_energy_package_uj(e, i, meter->packages));
    putc('\n', meter->file);
    if (mono_ns - meter->flushed_ns >= FLUSH_NS) {
        meter->flushed_ns = mono_ns;
        sim_wattmeter_sync(meter);
    }
}

int sim_wattmeter_sync(struct sim_wattmeter *meter)
{
    if (!fflush(meter->file))
        return 0;
    if (!meter->error)
        meter->error = errno;
    return -1;
}

struct sample {
    int64_t ns, uj;
};

/* The first and third field of a whole line. */
static int line_parse(const char *line, struct sample *ret)
{
    int64_t wall;
    int end = 0;

    if (sscanf(line, "%" SCNd64 ",%" SCNd64 ",%" SCNd64 "%n", &ret->ns, &wall,
               &ret->uj, &end) != 3)
        return -1;
    return line[end] == ',' || line[end] == '\n' ? 0 : -1;
}

static int64_t between(const struct sample *a, const struct sample *b,
                       int64_t ns)
{
    sim_fj rise = (sim_fj)(b->uj - a->uj) * (sim_fj)(ns - a->ns);

    if (b->ns == a->ns)
        return b->uj;
    return a->uj + (int64_t)(rise / (sim_fj)(b->ns - a->ns));
}

int sim_wattmeter_integrate(const char *path, int64_t from_ns, int64_t to_ns,
                            int64_t *ret_uj, struct joule_error *err)
{
    FILE *f;
    char *line = NULL;
    size_t space = 0, number = 0;
    ssize_t len;
    struct sample last = {0, 0}, next;
    bool have_from = false, have_to = false;
    int64_t from_uj = 0, to_uj = 0;
    int rc = -1;

    if (to_ns < from_ns)
        return joule_error_set(err, EINVAL, "the end is before the beginning");
    f = fopen(path, "re");
    if (!f)
        return joule_error_set(err, errno, "cannot open %s: %m", path);
    while (!have_to && (len = getline(&line, &space, f)) > 0) {
        if (line[len - 1] != '\n')
            break; /* still being written */
        if (!number++ && !strncmp(line, "mono_ns,wall_ns,node_uj", 23))
            continue;
        if (number == 1 || line_parse(line, &next) ||
            (number > 2 && (next.ns < last.ns || next.uj < last.uj))) {
            joule_error_set(err, EINVAL,
                            "%s line %zu is not of a wattmeter log", path,
                            number);
            goto out;
        }
        if (number == 2)
            last = next;
        if (!have_from && from_ns >= last.ns && from_ns <= next.ns) {
            from_uj = between(&last, &next, from_ns);
            have_from = true;
        }
        if (have_from && to_ns >= last.ns && to_ns <= next.ns) {
            to_uj = between(&last, &next, to_ns);
            have_to = true;
        }
        last = next;
    }
    if (have_to) {
        *ret_uj = to_uj - from_uj;
        rc = 0;
    } else {
        joule_error_set(err, ERANGE,
                        "%s ends at %" PRId64 " ns and does not cover %" PRId64
                        " to %" PRId64 " ns",
                        path, last.ns, from_ns, to_ns);
    }
out:
    free(line);
    fclose(f);
    return rc;
}

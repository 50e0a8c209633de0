/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct point {
    int64_t ns;
    int64_t uw;
    sim_fj twice; /* 2 x energy of 0..ns: a trapezoid may end in a half */
};

struct sim_load {
    bool repeat;
    size_t count, space;
    struct point *points;
};

static struct sim_load *load_create(void)
{
    return calloc(1, sizeof(struct sim_load));
}

void sim_load_destroy(struct sim_load *load)
{
    int saved = errno;

    if (load)
        free(load->points);
    free(load);
    errno = saved;
}

/* Append a point; the caller has checked that time does not go back. */
static int load_add(struct sim_load *load, int64_t ns, int64_t uw)
{
    struct point *p;
    sim_fj twice;

    if (load->count == load->space) {
        size_t space = load->space ? load->space * 2 : 8;

        p = realloc(load->points, space * sizeof(*p));
        if (!p)
            return -1;
        load->points = p;
        load->space = space;
    }
    if (load->count) {
        p = &load->points[load->count - 1];
        twice = p->twice + (sim_fj)(p->uw + uw) * (sim_fj)(ns - p->ns);
    } else {
        twice = 2 * (sim_fj)uw * (sim_fj)ns;
    }
    load->points[load->count++] = (struct point){ns, uw, twice};
    return 0;
}

struct sim_load *sim_load_const(int64_t uw)
{
    struct sim_load *load = load_create();

    if (load && load_add(load, 0, uw)) {
        sim_load_destroy(load);
        load = NULL;
    }
    return load;
}

/* size * d^2 / dt for d <= dt without leaving 128 bits. */
static sim_fj slope_twice(uint64_t size, uint64_t d, uint64_t dt)
{
    sim_fj product = (sim_fj)size * d;

    return product / dt * d + product % dt * d / dt;
}

/* The last point at or before ns, or the first. */
static const struct point *load_point(const struct sim_load *load, int64_t ns)
{
    size_t low = 0, high = load->count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (load->points[middle].ns <= ns)
            low = middle;
        else
            high = middle;
    }
    return &load->points[low];
}

static bool load_goes_on(const struct sim_load *load, const struct point *p)
{
    return p + 1 < load->points + load->count;
}

/* 2 x energy of 0..ns within one period. */
static sim_fj load_twice(const struct sim_load *load, int64_t ns)
{
    const struct point *p = load_point(load, ns);
    uint64_t d;
    sim_fj twice;

    if (ns < p->ns)
        return 2 * (sim_fj)p->uw * (sim_fj)ns;
    d = (uint64_t)(ns - p->ns);
    twice = p->twice + 2 * (sim_fj)p->uw * d;
    if (load_goes_on(load, p) && d) {
        uint64_t dt = (uint64_t)(p[1].ns - p->ns);

        if (p[1].uw >= p->uw)
            twice += slope_twice((uint64_t)(p[1].uw - p->uw), d, dt);
        else
            twice -= slope_twice((uint64_t)(p->uw - p[1].uw), d, dt);
    }
    return twice;
}

sim_fj sim_load_fj(const struct sim_load *load, int64_t t_ns)
{
    const struct point *last = &load->points[load->count - 1];

    if (t_ns <= 0)
        return 0;
    if (load->repeat)
        return ((sim_fj)(t_ns / last->ns) * last->twice +
                load_twice(load, t_ns % last->ns)) /
               2;
    return load_twice(load, t_ns) / 2;
}

int64_t sim_load_uw(const struct sim_load *load, int64_t t_ns)
{
    const struct point *p;

    if (t_ns < 0)
        t_ns = 0;
    if (load->repeat)
        t_ns %= load->points[load->count - 1].ns;
    p = load_point(load, t_ns);
    if (t_ns <= p->ns || !load_goes_on(load, p))
        return p->uw;
    return p->uw + (int64_t)((__int128)(p[1].uw - p->uw) * (t_ns - p->ns) /
                             (p[1].ns - p->ns));
}

/* Generators. */

#define FIELDS_MAX 5

static int square_build(struct sim_load *load, char **field, unsigned count)
{
    int64_t low, high, period, duty = 500000, edge;

    if (sim_parse_uw(field[1], &low) || sim_parse_uw(field[2], &high) ||
        sim_parse_ns(field[3], &period) || period < 1 ||
        (count == 5 && sim_parse_ppm(field[4], &duty)))
        return errno = EINVAL, -1;
    edge = (int64_t)((sim_fj)period * (sim_fj)duty / 1000000);
    load->repeat = true;
    return load_add(load, 0, high) || load_add(load, edge, high) ||
                   load_add(load, edge, low) || load_add(load, period, low)
               ? -1
               : 0;
}

static int ramp_build(struct sim_load *load, char **field, unsigned count)
{
    int64_t low, high, period;

    (void)count;
    if (sim_parse_uw(field[1], &low) || sim_parse_uw(field[2], &high) ||
        sim_parse_ns(field[3], &period) || period < 1)
        return errno = EINVAL, -1;
    load->repeat = true;
    return load_add(load, 0, low) || load_add(load, period, high) ? -1 : 0;
}

static int const_build(struct sim_load *load, char **field, unsigned count)
{
    int64_t uw;

    (void)count;
    if (sim_parse_uw(field[1], &uw))
        return errno = EINVAL, -1;
    return load_add(load, 0, uw);
}

static const struct generator {
    const char *name;
    unsigned fields_min, fields_max; /* the name is one of them */
    int (*build)(struct sim_load *load, char **field, unsigned count);
} generators[] = {
    {"const", 2, 2, const_build},
    {"square", 4, 5, square_build},
    {"ramp", 4, 4, ramp_build},
    {NULL, 0, 0, NULL},
};

struct sim_load *sim_load_parse(const char *spec, struct joule_error *err)
{
    struct sim_load *load = NULL;
    const struct generator *g;
    char *field[FIELDS_MAX], *copy, *rest, *word;
    unsigned count = 0;
    int rc = -1;

    copy = strdup(spec);
    load = load_create();
    if (!copy || !load) {
        joule_error_set(err, ENOMEM, "out of memory");
        goto out;
    }
    rest = copy;
    while ((word = strsep(&rest, ":"))) {
        if (count < FIELDS_MAX)
            field[count] = word;
        count++;
    }
    for (g = generators; g->name && strcmp(g->name, field[0]); g++)
        ;
    if (!g->name || count < g->fields_min || count > g->fields_max)
        errno = EINVAL;
    else
        rc = g->build(load, field, count);
    if (rc)
        joule_error_set(err, errno,
                        errno == ENOMEM
                            ? "out of memory for load %s"
                            : "load \"%s\" is not const:W, "
                              "square:LOW:HIGH:PERIOD[:DUTY] or "
                              "ramp:LOW:HIGH:PERIOD with watts up to 100000, "
                              "seconds above 0 and a duty of 0 to 1",
                        spec);
out:
    if (rc) {
        sim_load_destroy(load);
        load = NULL;
    }
    rc = errno;
    free(copy);
    errno = rc;
    return load;
}

/* Traces. */

static int trace_line(struct sim_load *load, char *line)
{
    char *comma = strchr(line, ',');
    int64_t ns, uw;

    if (!comma)
        return errno = EINVAL, -1;
    *comma = '\0';
    if (sim_parse_ns(line, &ns) || sim_parse_uw(comma + 1, &uw))
        return -1;
    if (load->count && ns < load->points[load->count - 1].ns)
        return errno = EINVAL, -1;
    return load_add(load, ns, uw);
}

struct sim_load *sim_load_read(const char *path, bool repeat,
                               struct joule_error *err)
{
    struct sim_load *load = NULL;
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t space = 0;
    unsigned number = 0;
    ssize_t len;
    int rc = -1;

    if (!f) {
        joule_error_set(err, errno, "cannot open trace %s: %m", path);
        return NULL;
    }
    load = load_create();
    if (!load) {
        joule_error_set(err, ENOMEM, "out of memory");
        goto out;
    }
    while ((len = getline(&line, &space, f)) >= 0) {
        number++;
        while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
            line[--len] = '\0';
        if (!len || line[0] == '#' ||
            (number == 1 && !strcmp(line, "seconds,watts")))
            continue;
        if (trace_line(load, line)) {
            joule_error_set(err, errno,
                            "%s line %u is not \"seconds,watts\" in ascending "
                            "time with watts up to 100000",
                            path, number);
            goto out;
        }
    }
    if (ferror(f))
        joule_error_set(err, EIO, "cannot read trace %s", path);
    else if (!load->count)
        joule_error_set(err, EINVAL, "trace %s holds no point", path);
    else if (repeat && !load->points[load->count - 1].ns)
        joule_error_set(err, EINVAL,
                        "trace %s cannot repeat: its last point is at 0 s",
                        path);
    else
        rc = 0;
out:
    if (rc) {
        sim_load_destroy(load);
        load = NULL;
    } else {
        load->repeat = repeat;
    }
    rc = errno;
    free(line);
    fclose(f);
    errno = rc;
    return load;
}

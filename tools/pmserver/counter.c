/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/pmserver/counter.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_FIRST 64
#define BIN_MIN_S    1e-6

/* A point is a time in s since the counter was made, and the amount of each of its
 * lines, or their sum. */
struct set {
    size_t first, count; /* points */
    double begin_s, end_s;
    bool is_complete;
};

struct joule_pm_counter {
    struct joule_pm_device *device;
    unsigned line[JOULE_PM_LINES_MAX], lines;
    bool aggregate;
    bool is_open; /* the last set is */
    int64_t from_ns;
    double step_s; /* from sample to sample */
    double *point;
    size_t width; /* doubles a point */
    size_t points, room, most;
    size_t sets, set_room, incomplete;
    struct set *set;
};

static double *point_at(const struct joule_pm_counter *c, size_t i)
{
    return c->point + i * c->width;
}

static double seconds(const struct joule_pm_counter *c, int64_t ns)
{
    return (double)(ns - c->from_ns) / 1e9;
}

/* ---- points ---- */

/* As the device has it now. */
static void fill_point(const struct joule_pm_counter *c, double *to)
{
    const struct joule_pm_device *d = c->device;

    to[0] = seconds(c, d->time_ns);
    if (c->aggregate)
        to[1] = 0;
    for (unsigned i = 0; i < c->lines; i++)
        if (c->aggregate)
            to[1] += d->amount[c->line[i]];
        else
            to[1 + i] = d->amount[c->line[i]];
}

/* Of each set keep the first, the last and each second point. */
static void thin(struct joule_pm_counter *c)
{
    size_t to = 0;

    for (size_t s = 0; s < c->sets; s++) {
        struct set *set = &c->set[s];
        size_t first = to;

        for (size_t i = 0; i < set->count; i++)
            if (i % 2 == 0 || i == set->count - 1)
                memmove(point_at(c, to++), point_at(c, set->first + i),
                        c->width * sizeof(double));
        set->first = first;
        set->count = to - first;
    }
    c->points = to;
    c->step_s *= 2;
}

/* How many points that would drop. */
static size_t can_thin(const struct joule_pm_counter *c)
{
    size_t total = 0;

    for (size_t s = 0; s < c->sets; s++)
        total += (c->set[s].count - 1) / 2;
    return total;
}

/* Room for [more] points. */
static int make_room(struct joule_pm_counter *c, size_t more)
{
    size_t room = c->room ? c->room : POINTS_FIRST;
    double *bigger;

    if (c->points + more > c->most && can_thin(c) >= c->most / 8)
        thin(c);
    if (c->points + more > c->most) {
        errno = ENOSPC;
        return -1;
    }
    while (room < c->points + more)
        room *= 2;
    if (room == c->room)
        return 0;
    bigger = reallocarray(c->point, room, c->width * sizeof(double));
    if (!bigger)
        return -1;
    c->point = bigger;
    c->room = room;
    return 0;
}

/* The amounts at [s], from the points a and b before and after it. */
static double between(const double *a, const double *b, double s, size_t k)
{
    double part = b[0] > a[0] ? (s - a[0]) / (b[0] - a[0]) : 1;

    return a[k] + (b[k] - a[k]) * part;
}

/* ---- create and destroy ---- */

static int choose_lines(struct joule_pm_counter *c, const unsigned char *mask)
{
    bool none = true;

    for (unsigned i = 0; i < JOULE_PM_MASK_BYTES; i++)
        none = none && mask[i] == 0;
    for (unsigned i = 0; i < c->device->lines; i++)
        if (none || joule_pm_has_line(mask, i))
            c->line[c->lines++] = i;
    if (c->lines > 0)
        return 0;
    errno = EINVAL;
    return -1;
}

struct joule_pm_counter *
joule_pm_counter_create(struct joule_pm_device *device,
                        const struct joule_pm_request *request)
{
    struct joule_pm_counter *c;
    int hz = request->frequency ? request->frequency : device->max_hz;
    int saved;

    if (hz < 0 || hz > device->max_hz) {
        errno = EINVAL;
        return NULL;
    }
    c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->device = device;
    c->aggregate = request->aggregate;
    c->from_ns = joule_clock_mono_ns(device->clock);
    c->step_s = round((double)device->max_hz / hz) / device->max_hz;
    if (choose_lines(c, request->mask) < 0)
        goto fail;
    c->width = 1 + (c->aggregate ? 1 : c->lines);
    c->most = JOULE_PM_VALUES_MAX / c->width;
    if (joule_pm_device_hold(device, NULL) == 0)
        return c;
fail:
    saved = errno;
    free(c);
    errno = saved;
    return NULL;
}

void joule_pm_counter_destroy(struct joule_pm_counter *c)
{
    if (!c)
        return;
    joule_pm_device_let_go(c->device);
    free(c->point);
    free(c->set);
    free(c);
}

struct joule_pm_device *
joule_pm_counter_device(const struct joule_pm_counter *c)
{
    return c->device;
}

unsigned joule_pm_counter_lines(const struct joule_pm_counter *c,
                                unsigned ret_line[JOULE_PM_LINES_MAX])
{
    memcpy(ret_line, c->line, sizeof(c->line));
    return c->lines;
}

bool joule_pm_counter_is_aggregate(const struct joule_pm_counter *c)
{
    return c->aggregate;
}

/* ---- sets ---- */

void joule_pm_counter_clear(struct joule_pm_counter *c)
{
    c->points = c->sets = c->incomplete = 0;
    c->is_open = false;
}

static int make_set_room(struct joule_pm_counter *c)
{
    size_t room = c->set_room ? 2 * c->set_room : 4;
    struct set *more;

    if (c->sets == JOULE_PM_SETS_MAX) {
        errno = ENOSPC;
        return -1;
    }
    if (c->sets < c->set_room)
        return 0;
    more = reallocarray(c->set, room, sizeof(*more));
    if (!more)
        return -1;
    c->set = more;
    c->set_room = room;
    return 0;
}

int joule_pm_counter_begin(struct joule_pm_counter *c, int64_t now_ns)
{
    if (c->is_open) {
        errno = EINVAL;
        return -1;
    }
    /* Its first point, and the two that joule_pm_counter_end adds. */
    if (make_set_room(c) < 0 || make_room(c, 3) < 0)
        return -1;
    fill_point(c, point_at(c, c->points));
    c->set[c->sets++] = (struct set){
        .first = c->points++,
        .count = 1,
        .begin_s = seconds(c, now_ns),
    };
    c->is_open = true;
    return 0;
}

/* The device may have told of the end of sets that wait for it. */
static void complete_sets(struct joule_pm_counter *c)
{
    double now[1 + JOULE_PM_LINES_MAX];

    if (c->incomplete == 0)
        return;
    fill_point(c, now);
    for (size_t s = c->sets; s-- > 0 && c->incomplete > 0;) {
        struct set *set = &c->set[s];
        double *last;

        if (set->is_complete || (c->is_open && s == c->sets - 1) ||
            now[0] < set->end_s)
            continue;
        last = point_at(c, set->first + set->count - 1);
        for (size_t k = 1; k < c->width; k++)
            last[k] = between(last - c->width, now, set->end_s, k);
        set->is_complete = true;
        c->incomplete--;
    }
}

/* One more of the last set, for which there is room. */
static double *add_point(struct joule_pm_counter *c)
{
    c->set[c->sets - 1].count++;
    return point_at(c, c->points++);
}

int joule_pm_counter_end(struct joule_pm_counter *c, int64_t now_ns)
{
    const struct joule_pm_device *d = c->device;
    struct set *set;
    double *last, late_s;

    if (!c->is_open) {
        errno = EINVAL;
        return -1;
    }
    c->is_open = false;
    set = &c->set[c->sets - 1];
    /* There is room for two: joule_pm_counter_begin. */
    if (seconds(c, d->time_ns) > point_at(c, c->points - 1)[0])
        fill_point(c, add_point(c));
    /* Until the device tells of this moment, the rate goes on. */
    last = add_point(c);
    fill_point(c, last);
    set->end_s = seconds(c, now_ns);
    if (set->end_s < set->begin_s)
        set->end_s = set->begin_s;
    late_s = set->end_s > last[0] ? set->end_s - last[0] : 0;
    for (unsigned i = 0; i < c->lines; i++)
        last[c->aggregate ? 1 : 1 + i] += d->rate[c->line[i]] * late_s;
    last[0] = set->end_s;
    c->incomplete++;
    complete_sets(c);
    return 0;
}

void joule_pm_counter_feed(struct joule_pm_counter *c)
{
    double time_s = seconds(c, c->device->time_ns);

    complete_sets(c);
    if (!c->is_open || !c->device->known)
        return;
    if (time_s < point_at(c, c->points - 1)[0] + 0.75 * c->step_s)
        return;
    /* This one, and those of the end.  Without room the last one moves. */
    if (make_room(c, 3) == 0)
        fill_point(c, add_point(c));
    else if (c->set[c->sets - 1].count > 1)
        fill_point(c, point_at(c, c->points - 1));
}

bool joule_pm_counter_is_open(const struct joule_pm_counter *c)
{
    return c->is_open;
}

size_t joule_pm_counter_sets(const struct joule_pm_counter *c)
{
    return c->sets;
}

bool joule_pm_counter_is_complete(const struct joule_pm_counter *c)
{
    return c->incomplete == 0;
}

/* ---- samples ---- */

/* At least two, and no more than the device can have told apart. */
static size_t samples_of(const struct joule_pm_counter *c,
                         const struct set *set)
{
    double samples = round((set->end_s - set->begin_s) / c->step_s);
    size_t most = 2 * set->count + 2;

    if (samples < 2)
        return 2;
    return samples < (double)most ? (size_t)samples : most;
}

size_t joule_pm_counter_sizes(const struct joule_pm_counter *c,
                              int32_t ret_index[JOULE_PM_SETS_MAX + 1])
{
    ret_index[0] = 0;
    for (size_t s = 0; s < c->sets; s++)
        ret_index[s + 1] = ret_index[s] + (int32_t)samples_of(c, &c->set[s]);
    return c->sets;
}

/* The amount at [s]; *at, which grows with it, is the point before. */
static double amount_at(const struct joule_pm_counter *c, const struct set *set,
                        double s, size_t k, size_t *at)
{
    while (*at + 2 < set->count && point_at(c, set->first + *at + 1)[0] <= s)
        ++*at;
    return between(point_at(c, set->first + *at),
                   point_at(c, set->first + *at + 1), s, k);
}

void joule_pm_counter_samples(const struct joule_pm_counter *c, unsigned line,
                              double *ret)
{
    for (size_t s = 0; s < c->sets; s++) {
        const struct set *set = &c->set[s];
        size_t samples = samples_of(c, set), at = 0;
        double bin_s = (set->end_s - set->begin_s) / (double)samples;
        double before;

        if (bin_s < BIN_MIN_S)
            bin_s = BIN_MIN_S;
        before = amount_at(c, set, set->begin_s, 1 + line, &at);
        for (size_t i = 1; i <= samples; i++) {
            double after = amount_at(c, set, set->begin_s + (double)i * bin_s,
                                     1 + line, &at);

            *ret++ = (after - before) / bin_s;
            before = after;
        }
    }
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/step/state_series.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/ticker.h"
#include "common/sensors/cpu_states.h"

static const struct {
    enum joule_cpu_states_kind kind;
    const char *table;
} kinds[] = {{JOULE_CSTATES, "CStates"}, {JOULE_PSTATES, "PStates"}};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct series {
    struct joule_cpu_states *states; /* NULL: the node has none */
    struct joule_cpu_times *before;  /* of each CPU from [first] on */
    int table;
};

struct joule_state_series {
    struct joule_state_series_options opt;
    struct joule_cpus cpus;
    unsigned first, end; /* of cpus */
    struct series series[KINDS];
    struct joule_ticker *ticker;
};

/* A row of a CPU, if anything is known of it since the one before. */
static void add_row(struct joule_state_series *s, const struct series *series,
                    unsigned cpu)
{
    const struct joule_cpu_times *now =
        joule_cpu_states_of(series->states, cpu);
    struct joule_cpu_times *before = &series->before[cpu - s->first];
    double known = (double)(now->known_ns - before->known_ns), percent;
    uint64_t cells[1 + JOULE_CPU_STATE_GROUPS] = {cpu};

    if (known <= 0)
        return;
    for (int i = 0; i < JOULE_CPU_STATE_GROUPS; i++) {
        percent =
            100 * (double)(now->group_ns[i] - before->group_ns[i]) / known;
        memcpy(&cells[1 + i], &percent, sizeof(percent));
    }
    *before = *now;
    joule_writer_append(s->opt.writer, series->table, cells,
                        joule_clock_wall_ns(s->opt.clock) / JOULE_NS_PER_S,
                        joule_cpu_states_time(series->states));
}

static void tick(void *arg)
{
    struct joule_state_series *s = arg;

    for (size_t i = 0; i < KINDS; i++) {
        const struct series *series = &s->series[i];

        if (!series->states || joule_writer_is_behind(s->opt.writer) ||
            joule_cpu_states_read(series->states, NULL) < 0)
            continue;
        for (unsigned cpu = s->first; cpu < s->end;
             cpu = joule_cpus_next(&s->cpus, cpu + 1))
            add_row(s, series, cpu);
    }
}

static int open_series(struct joule_state_series *s, size_t i,
                       struct joule_error *err)
{
    static const struct joule_field fields[] = {
        {"CPU", JOULE_FIELD_U64},         {"Percent0", JOULE_FIELD_DOUBLE},
        {"Percent1", JOULE_FIELD_DOUBLE}, {"Percent2", JOULE_FIELD_DOUBLE},
        {"Percent3", JOULE_FIELD_DOUBLE},
    };
    struct series *series = &s->series[i];
    unsigned count = s->end - s->first;

    series->states = joule_cpu_states_open(s->opt.root_fd, kinds[i].kind,
                                           s->first, count, s->opt.clock, err);
    if (!series->states)
        return -1;
    series->before = calloc(count, sizeof(*series->before));
    series->table = joule_writer_add_table(
        s->opt.writer, kinds[i].table, fields,
        sizeof(fields) / sizeof(fields[0]), s->opt.period_ns);
    if (!series->before || series->table < 0)
        return joule_error_set(err, errno, "table %s: %m", kinds[i].table);
    for (unsigned k = 0; k < count; k++)
        series->before[k] = *joule_cpu_states_of(series->states, s->first + k);
    return 0;
}

/* The one that cannot be had is no fault while there is the other. */
static int open_all(struct joule_state_series *s, struct joule_error *err)
{
    struct joule_error why[KINDS] = {{""}};
    bool any = false;

    for (size_t i = 0; i < KINDS; i++)
        if (open_series(s, i, &why[i]) == 0)
            any = true;
        else if (errno != ENODEV && errno != ENOENT)
            return joule_error_set(err, errno, "%s", why[i].text);
    if (any)
        return 0;
    return joule_error_set(err, ENODEV, "%s; %s", why[0].text, why[1].text);
}

struct joule_state_series *
joule_state_series_create(const struct joule_state_series_options *opt,
                          struct joule_error *err)
{
    struct joule_state_series *s = calloc(1, sizeof(*s));

    if (!s) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    s->opt = *opt;
    s->opt.root_fd = fcntl(opt->root_fd, F_DUPFD_CLOEXEC, 0);
    s->cpus = *opt->cpus;
    s->first = joule_cpus_next(&s->cpus, 0);
    for (unsigned cpu = s->first; cpu < JOULE_CPUS_MAX;
         cpu = joule_cpus_next(&s->cpus, cpu + 1))
        s->end = cpu + 1;
    if (s->end == 0)
        joule_error_set(err, ENODEV, "the step has no CPU that is known");
    else if (open_all(s, err) == 0)
        s->ticker =
            joule_ticker_create(opt->period_ns, opt->period_ns, tick, s, err);
    if (s->ticker)
        return s;
    joule_state_series_destroy(s);
    return NULL;
}

void joule_state_series_destroy(struct joule_state_series *s)
{
    int saved = errno;

    if (!s)
        return;
    if (s->ticker) {
        joule_ticker_destroy(s->ticker);
        tick(s);
    }
    for (size_t i = 0; i < KINDS; i++) {
        joule_cpu_states_close(s->series[i].states);
        free(s->series[i].before);
    }
    joule_close(s->opt.root_fd);
    free(s);
    errno = saved;
}

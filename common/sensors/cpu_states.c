/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/cpu_states.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cpus.h"
#include "common/base/file.h"

#define CPU_DIR    "sys/devices/system/cpu"
#define GROUPS     JOULE_CPU_STATE_GROUPS
#define STATES_MAX 16   /* CPUIDLE_STATE_MAX is 10 */
#define TABLE_MAX  8192 /* bytes of time_in_state */
#define FREQS_MAX  256
#define LIST_MAX   JOULE_CPUS_TEXT_MAX
#define TICK_NS    INT64_C(10000000)  /* USER_HZ */
#define MOST_NS    (INT64_C(1) << 56) /* two years */

struct counter {
    int fd; /* P-states: of the first alone */
    uint8_t group;
    uint64_t time; /* raw, at the last reading */
};

struct cpu {
    struct counter *counter; /* NULL: it has none now */
    size_t count;
    bool again;                  /* look for its files at the next reading */
    int64_t carry_ns[GROUPS];    /* not told yet */
    struct joule_cpu_times told; /* up to read_ns */
};

struct joule_cpu_states {
    int root_fd;
    const struct joule_clock *clock;
    enum joule_cpu_states_kind kind;
    unsigned first, count;
    int online_fd;
    char online[LIST_MAX]; /* as it was read last */
    int64_t read_ns;
    struct cpu cpu[];
};

/* ---- the files of a CPU ---- */

static void drop(struct cpu *c)
{
    for (size_t i = 0; i < c->count; i++)
        joule_close(c->counter[i].fd);
    free(c->counter);
    c->counter = NULL;
    c->count = 0;
    memset(c->carry_ns, 0, sizeof(c->carry_ns));
}

/* The text of a file that stays open: its length, or -1. */
static ssize_t read_again(int fd, char *buf, size_t size)
{
    ssize_t n;

    do
        n = pread(fd, buf, size - 1, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -1;
    buf[n] = '\0';
    return n;
}

/* Decimal digits at *at, which moves behind them. */
static int number_at(const char **at, uint64_t *ret)
{
    uint64_t number = 0;

    if (**at < '0' || **at > '9')
        return -1;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(**at - '0'), &number))
            return -1;
    *ret = number;
    return 0;
}

/* ---- C-states ---- */

static int read_idle(struct counter *counters, size_t count, uint64_t *ret)
{
    char text[32];

    for (size_t i = 0; i < count; i++) {
        const char *at = text;

        if (read_again(counters[i].fd, text, sizeof(text)) < 0 ||
            number_at(&at, &ret[i]) < 0 || (*at && *at != '\n'))
            return -1;
    }
    return 0;
}

static bool is_poll(int root_fd, unsigned cpu, unsigned state)
{
    char path[96], name[32];

    snprintf(path, sizeof(path), CPU_DIR "/cpu%u/cpuidle/state%u/name", cpu,
             state);
    return joule_file_read(root_fd, path, name, sizeof(name)) > 0 &&
           strcmp(name, "POLL") == 0;
}

/* Returns how many there are, or -1. */
static int open_idle(int root_fd, unsigned cpu, struct counter *ret)
{
    size_t count = 0, polls = 0, rest;
    char path[96];

    for (; count < STATES_MAX; count++) {
        snprintf(path, sizeof(path), CPU_DIR "/cpu%u/cpuidle/state%zu/time",
                 cpu, count);
        ret[count].fd = joule_file_open(root_fd, path, O_RDONLY);
        if (ret[count].fd < 0)
            break;
        if (count == 0)
            polls = is_poll(root_fd, cpu, 0);
    }
    if (count < STATES_MAX && errno != ENOENT && errno != ENODEV) {
        while (count > 0)
            joule_close(ret[--count].fd);
        return -1;
    }
    rest = count - polls;
    for (size_t i = 0; i < count; i++) {
        size_t at = i < polls ? 0 : i - polls;

        ret[i].group = 1;
        if (rest > 1 && at == rest - 1)
            ret[i].group = 3;
        else if (at > 0)
            ret[i].group = 2;
    }
    return (int)count;
}

/* ---- P-states ---- */

struct frequency {
    uint64_t khz, ticks;
};

/* Lines of a frequency in kHz and a number of ticks.  Returns how many, or -1. */
static int read_table(int fd, struct frequency ret[FREQS_MAX])
{
    char text[TABLE_MAX];
    const char *at = text;
    int count = 0;

    if (read_again(fd, text, sizeof(text)) < 0)
        return -1;
    while (*at && count < FREQS_MAX) {
        if (number_at(&at, &ret[count].khz) < 0 || *at++ != ' ' ||
            number_at(&at, &ret[count].ticks) < 0 || (*at && *at++ != '\n'))
            return -1;
        count++;
    }
    return count;
}

static int read_freq(struct counter *counters, size_t count, uint64_t *ret)
{
    struct frequency table[FREQS_MAX];

    if (read_table(counters[0].fd, table) != (int)count)
        return -1;
    for (size_t i = 0; i < count; i++)
        ret[i] = table[i].ticks;
    return 0;
}

static int open_freq(int root_fd, unsigned cpu, struct counter *ret)
{
    struct frequency table[FREQS_MAX];
    char path[96];
    int count, fd;

    snprintf(path, sizeof(path), CPU_DIR "/cpu%u/cpufreq/stats/time_in_state",
             cpu);
    fd = joule_file_open(root_fd, path, O_RDONLY);
    if (fd < 0)
        return errno == ENOENT || errno == ENODEV ? 0 : -1;
    count = read_table(fd, table);
    if (count <= 0) {
        joule_close(fd);
        return 0;
    }
    for (int i = 0; i < count; i++) {
        int faster = 0, last = count > 1 ? count - 1 : 1;

        for (int k = 0; k < count; k++)
            faster += table[k].khz > table[i].khz;
        ret[i] = (struct counter){
            .fd = i == 0 ? fd : -1,
            .group = (uint8_t)((faster * (GROUPS - 1) + last / 2) / last),
        };
    }
    return count;
}

/* ---- what stands for a kind ---- */

static const struct kind {
    int (*open)(int root_fd, unsigned cpu, struct counter *ret);
    int (*read)(struct counter *counters, size_t count, uint64_t *ret);
    int64_t unit_ns;
    bool has_rest; /* what no state has is the time of group 0 */
    const char *missing;
} kinds[] = {
    [JOULE_CSTATES] = {open_idle, read_idle, 1000, true,
                       "the kernel has no driver for idle states here; "
                       "virtual machines often have none"},
    [JOULE_PSTATES] = {open_freq, read_freq, TICK_NS, false,
                       "the kernel keeps no times of frequencies here; "
                       "intel_pstate, amd-pstate and virtual machines have "
                       "none"},
};

/* Look for the files of a CPU.  -1 with errno if that is to be said. */
static int find(struct joule_cpu_states *s, struct cpu *c)
{
    const struct kind *kind = &kinds[s->kind];
    struct counter found[FREQS_MAX];
    uint64_t raw[FREQS_MAX];
    int count;

    c->again = false;
    count = kind->open(s->root_fd, s->first + (unsigned)(c - s->cpu), found);
    if (count <= 0)
        return count;
    c->counter = calloc((size_t)count, sizeof(*c->counter));
    if (!c->counter) {
        for (int i = 0; i < count; i++)
            joule_close(found[i].fd);
        return -1;
    }
    memcpy(c->counter, found, (size_t)count * sizeof(*found));
    c->count = (size_t)count;
    if (kind->read(c->counter, c->count, raw) < 0) {
        drop(c); /* it has gone meanwhile */
        return 0;
    }
    for (int i = 0; i < count; i++)
        c->counter[i].time = raw[i];
    return 0;
}

/* ---- an interval ---- */

/* Tell [interval_ns] of a CPU, from what is in carry_ns. */
static void tell(struct cpu *c, int64_t interval_ns, bool has_rest)
{
    int64_t want_ns = 0, given_ns = 0, told_ns = 0, left_ns;

    for (int g = 0; g < GROUPS; g++)
        want_ns += c->carry_ns[g];
    for (int g = 0; g < GROUPS; g++) {
        int64_t give_ns = c->carry_ns[g];

        if (want_ns > interval_ns)
            give_ns = (int64_t)((double)give_ns * (double)interval_ns /
                                (double)want_ns);
        if (give_ns > interval_ns - given_ns)
            give_ns = interval_ns - given_ns;
        c->carry_ns[g] -= give_ns;
        c->told.group_ns[g] += give_ns;
        given_ns += give_ns;
    }
    c->told.known_ns += interval_ns;
    if (has_rest)
        c->told.group_ns[0] += interval_ns - given_ns;
    /* A stay that began before the CPU was observed: no more is left than what
     * was not told of any state. */
    for (int g = has_rest; g < GROUPS; g++)
        told_ns += c->told.group_ns[g];
    left_ns = c->told.known_ns - told_ns;
    for (int g = 0; g < GROUPS; g++) {
        if (c->carry_ns[g] > left_ns)
            c->carry_ns[g] = left_ns;
        left_ns -= c->carry_ns[g];
    }
}

static void read_cpu(struct joule_cpu_states *s, struct cpu *c,
                     int64_t interval_ns)
{
    const struct kind *kind = &kinds[s->kind];
    uint64_t raw[FREQS_MAX];

    if (kind->read(c->counter, c->count, raw) < 0) {
        drop(c);
        c->again = true;
        return;
    }
    for (size_t i = 0; i < c->count; i++) {
        struct counter *k = &c->counter[i];
        /* One that went back begins anew. */
        uint64_t grown = raw[i] > k->time ? raw[i] - k->time : 0;

        if (grown > (uint64_t)(MOST_NS / kind->unit_ns))
            grown = (uint64_t)(MOST_NS / kind->unit_ns);
        c->carry_ns[k->group] += (int64_t)grown * kind->unit_ns;
        if (c->carry_ns[k->group] > MOST_NS)
            c->carry_ns[k->group] = MOST_NS;
        k->time = raw[i];
    }
    tell(c, interval_ns, kind->has_rest);
}

/* ---- all CPUs ---- */

/* Close the files of CPUs that have gone; look for those that have come. */
static int follow_online(struct joule_cpu_states *s, struct joule_error *err)
{
    char text[LIST_MAX] = "", list[LIST_MAX];
    struct joule_cpus online;

    if (read_again(s->online_fd, text, sizeof(text)) < 0)
        return joule_error_set(err, errno,
                               "cannot read /" CPU_DIR "/online: %m");
    if (strcmp(text, s->online) == 0)
        return 0;
    memcpy(list, text, sizeof(list));
    list[strcspn(list, "\n")] = '\0';
    if (joule_cpus_parse(&online, list) < 0)
        return joule_error_set(err, errno,
                               "/" CPU_DIR "/online says \"%.64s\", not a "
                               "list of CPUs",
                               list);
    for (unsigned i = 0; i < s->count; i++) {
        s->cpu[i].again = joule_cpus_has(&online, s->first + i);
        if (!s->cpu[i].again)
            drop(&s->cpu[i]);
        else if (s->cpu[i].counter)
            s->cpu[i].again = false;
    }
    memcpy(s->online, text, sizeof(text));
    return 0;
}

int joule_cpu_states_read(struct joule_cpu_states *s, struct joule_error *err)
{
    int64_t now_ns, interval_ns;

    if (follow_online(s, err) < 0)
        return -1;
    now_ns = joule_clock_mono_ns(s->clock);
    interval_ns = now_ns - s->read_ns;
    s->read_ns = now_ns;
    for (unsigned i = 0; i < s->count; i++) {
        if (s->cpu[i].counter)
            read_cpu(s, &s->cpu[i], interval_ns);
        else if (s->cpu[i].again && find(s, &s->cpu[i]) < 0)
            s->cpu[i].again = true; /* no descriptor, or no memory, for now */
    }
    return 0;
}

static int open_all(struct joule_cpu_states *s, struct joule_error *err)
{
    bool found = false;

    s->online_fd = joule_file_open(s->root_fd, CPU_DIR "/online", O_RDONLY);
    if (s->online_fd < 0)
        return joule_error_set(err, errno,
                               "cannot open /" CPU_DIR "/online: %m");
    if (follow_online(s, err) < 0)
        return -1;
    s->read_ns = joule_clock_mono_ns(s->clock);
    for (unsigned i = 0; i < s->count; i++) {
        if (s->cpu[i].again && find(s, &s->cpu[i]) < 0)
            return joule_error_set(err, errno,
                                   "cannot open the states of CPU %u: %m",
                                   s->first + i);
        found |= s->cpu[i].counter != NULL;
    }
    if (!found)
        return joule_error_set(err, ENODEV, "%s", kinds[s->kind].missing);
    return 0;
}

struct joule_cpu_states *joule_cpu_states_open(int root_fd,
                                               enum joule_cpu_states_kind kind,
                                               unsigned first, unsigned count,
                                               const struct joule_clock *clock,
                                               struct joule_error *err)
{
    struct joule_cpu_states *s =
        calloc(1, sizeof(*s) + count * sizeof(s->cpu[0]));

    if (!s) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    s->root_fd = root_fd;
    s->clock = clock;
    s->kind = kind;
    s->first = first;
    s->count = count;
    if (open_all(s, err) < 0) {
        joule_cpu_states_close(s);
        return NULL;
    }
    return s;
}

void joule_cpu_states_close(struct joule_cpu_states *s)
{
    int saved = errno;

    if (!s)
        return;
    for (unsigned i = 0; i < s->count; i++)
        drop(&s->cpu[i]);
    joule_close(s->online_fd);
    free(s);
    errno = saved;
}

int64_t joule_cpu_states_time(const struct joule_cpu_states *s)
{
    return s->read_ns;
}

const struct joule_cpu_times *
joule_cpu_states_of(const struct joule_cpu_states *s, unsigned cpu)
{
    static const struct joule_cpu_times none;

    return cpu >= s->first && cpu - s->first < s->count
               ? &s->cpu[cpu - s->first].told
               : &none;
}

int joule_cpu_states_limit(int root_fd, struct joule_error *err)
{
    struct joule_cpus possible;
    char text[LIST_MAX];
    unsigned limit = 0;

    if (joule_file_read(root_fd, CPU_DIR "/possible", text, sizeof(text)) < 0)
        return joule_error_set(err, errno,
                               "cannot read /" CPU_DIR "/possible: %m");
    if (joule_cpus_parse(&possible, text) < 0)
        return joule_error_set(err, errno,
                               "/" CPU_DIR "/possible says \"%.64s\", not a "
                               "list of CPUs",
                               text);
    for (unsigned i = joule_cpus_next(&possible, 0); i < JOULE_CPUS_MAX;
         i = joule_cpus_next(&possible, i + 1))
        limit = i + 1;
    return (int)limit;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/step/energy_series.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "common/base/thread.h"
#include "common/step/row_queue.h"
#include "common/step/pace.h"

#define THREAD_STACK (256 * 1024)

#define UJ_PER_J UINT64_C(1000000)

/* Between two looks whether the step is registered. */
#define REGISTERED_NS (5 * JOULE_NS_PER_MS)

/* Counters are updated each millisecond: over less than this, power is mostly
 * that. */
#define INTERVAL_MIN_NS (5 * JOULE_NS_PER_MS)

/* Rows of the step alone are added several at a time. */
#define TOGETHER_NS (160 * JOULE_NS_PER_MS)

/* Rows that nobody has a share for are kept for so long, while slurmd may come
 * back. */
#define WAITING_NS  (20 * JOULE_NS_PER_S)
#define WAITING_MIN 16
#define WAITING_MAX 2048

/* Where so many wait, JouleSamplePeriod is longer than that, or slurmd is away:
 * a sample is asked for, once in so long a time and with a wait that delays no
 * reading. */
#define ASK_NS    (10 * JOULE_NS_PER_S)
#define GLANCE_NS (5 * JOULE_NS_PER_MS)

/* Below this, a few milliseconds of lateness matter. */
#define HURRY_BELOW_NS (100 * JOULE_NS_PER_MS)

/* While slurmstepd launches tasks, it has the rights of their user. */
#define HURRY_TRIES 100

/* Two clocks are looked at as one when they are this near. */
#define OFFSET_GOOD_NS 20000
#define OFFSET_TRIES   20

struct joule_energy_series {
    struct joule_energy_series_options opt;
    pthread_t thread;
    joule_stop stop;
    atomic_bool may_hurry;
    /* the thread's */
    struct joule_energy_columns *columns;
    int table; /* -1: none yet */
    int tries; /* left, for real-time priority */
    int64_t period_ns;
    int64_t offset_ns; /* CLOCK_MONOTONIC less opt.clock */
    int64_t last_ns;   /* of the last reading */
    int64_t ended;     /* periods that have their row, or never will */
    int64_t silent;    /* readings that told nothing, not counted yet */
    bool begun;        /* there was one that did: */
    int64_t begun_ns;  /* the first */
    uint64_t begun_uj;
    struct joule_row_queue *queue; /* NULL: without step_energy */
    int64_t waiting;               /* the rows that it holds at most */
    int64_t asked_ns;              /* when a sample was asked for */
    /* rows of the step alone */
    bool step_only;
    int64_t origin_ns; /* a multiple of the period: [ended] counts from there */
    int64_t row_ns;    /* the end of the last row */
    int64_t short_ns;  /* of the one that is shorter; 0: none yet */
    uint64_t node_uj;  /* the node's at the last reading */
    uint64_t written_uj; /* the step's in the last row */
};

/* Rows of a share alone are closer than what they are divided from is sampled. */
static int64_t sampled_each_ns(const struct joule_energy_series *s)
{
    return s->opt.columns == JOULE_ENERGY_COLUMNS_STEP &&
                   s->opt.sample_period_ns > s->period_ns
               ? s->opt.sample_period_ns
               : s->period_ns;
}

static int add_table(struct joule_energy_series *s)
{
    const struct joule_energy_column *columns;
    struct joule_field *fields;
    size_t count, i;

    columns = joule_energy_columns_list(s->columns, &count);
    fields = calloc(count, sizeof(*fields));
    if (!fields)
        return -1;
    for (i = 0; i < count; i++) {
        fields[i].name = columns[i].name;
        fields[i].type =
            columns[i].is_double ? JOULE_FIELD_DOUBLE : JOULE_FIELD_U64;
    }
    s->table = joule_writer_add_table(s->opt.writer, "Energy", fields, count,
                                      sampled_each_ns(s));
    free(fields);
    return s->table < 0 ? -1 : 0;
}

/* ---- the clock ---- */

static int64_t wall_offset_ns(const struct joule_energy_series *s)
{
    return joule_clock_wall_ns(s->opt.clock) -
           joule_clock_mono_ns(s->opt.clock);
}

/*
 * The clock of sleeping stands still while the machine is suspended.  Looked at
 * after the other clock, it is never too small: no period is read too early.
 * But all would be read too late if this thread lost its CPU in between.
 */
static void set_offset(struct joule_energy_series *s)
{
    int64_t best_ns = INT64_MAX;

    for (int i = 0; i < OFFSET_TRIES && best_ns > OFFSET_GOOD_NS; i++) {
        int64_t before_ns = joule_clock_mono_ns(s->opt.clock), took_ns;
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        took_ns = joule_clock_mono_ns(s->opt.clock) - before_ns;
        if (took_ns >= best_ns)
            continue;
        best_ns = took_ns;
        s->offset_ns = ts.tv_sec * JOULE_NS_PER_S + ts.tv_nsec - before_ns;
    }
}

static bool sleep_until(struct joule_energy_series *s, int64_t ns)
{
    return joule_pace_sleep(&s->stop, ns + s->offset_ns);
}

static void miss(struct joule_energy_series *s, int64_t periods)
{
    if (periods > 0)
        joule_writer_add_missed(s->opt.writer, (uint64_t)periods);
}

/* ---- the step's share ---- */

/* The nearest whole joule, but no less than in the row before. */
static uint64_t whole_joules(const struct joule_energy_series *s, uint64_t uj)
{
    uj = (uj + UJ_PER_J / 2) / UJ_PER_J * UJ_PER_J;
    return uj > s->written_uj ? uj : s->written_uj;
}

static void write_row(struct joule_energy_series *s,
                      const struct joule_row_queue_row *row)
{
    bool is_short = row->mono_ns == s->short_ns;

    s->written_uj = is_short ? whole_joules(s, row->uj) : row->uj;
    joule_energy_columns_set_step(s->columns, row->cells, s->written_uj,
                                  is_short ? NAN : row->mw);
    joule_writer_append(s->opt.writer, s->table, row->cells, row->epoch_s,
                        row->mono_ns);
}

/* All rows that have their share, with [give_up] the others too. */
static void write_rows(struct joule_energy_series *s, bool give_up)
{
    struct joule_row_queue_row row;

    while (joule_row_queue_next(s->queue, give_up, &row))
        write_row(s, &row);
}

/* Write the rows that end by [mono_ns], when the step had used what was read.
 */
static void write_rows_to(struct joule_energy_series *s, int64_t mono_ns,
                          const struct joule_step_energy_reading *reading)
{
    joule_row_queue_sample(s->queue, reading->mono_ns - reading->elapsed_ns,
                           mono_ns, reading->used_uj);
    write_rows(s, false);
}

/* Write the rows that the ledger has a sample for. */
static void write_due_rows(struct joule_energy_series *s)
{
    struct joule_step_energy_reading reading;

    if (joule_step_energy_read(s->opt.step_energy, &reading, NULL) == 0)
        write_rows_to(s, reading.mono_ns, &reading);
}

/* The step has ended, and what is read now is what Slurm was told: carried on,
 * if slurmd is away.  The last row ends a moment later. */
static void write_all_rows(struct joule_energy_series *s)
{
    struct joule_step_energy_reading reading;

    if (joule_step_energy_read_now(s->opt.step_energy, &reading, NULL) == 0) {
        write_rows_to(s, reading.mono_ns, &reading);
        if (reading.carried)
            write_rows_to(s, joule_clock_mono_ns(s->opt.clock), &reading);
    }
    write_rows(s, true);
}

/* Of a full share the oldest row is given up. */
static void queue_row(struct joule_energy_series *s, int64_t mono_ns,
                      uint64_t node_uj, int64_t epoch_s, const void *cells)
{
    struct joule_row_queue_row oldest;

    if (joule_row_queue_is_full(s->queue) && mono_ns - s->asked_ns >= ASK_NS) {
        s->asked_ns = mono_ns;
        joule_step_energy_ask(s->opt.step_energy, GLANCE_NS);
        write_due_rows(s);
    }
    if (joule_row_queue_is_full(s->queue) &&
        joule_row_queue_next(s->queue, true, &oldest))
        write_row(s, &oldest);
    joule_row_queue_add(s->queue, mono_ns, node_uj, epoch_s, cells);
    s->row_ns = mono_ns;
}

static int make_queue(struct joule_energy_series *s)
{
    int64_t depth = WAITING_NS / s->period_ns;
    size_t columns;

    if (!s->opt.step_energy)
        return 0;
    if (depth < WAITING_MIN)
        depth = WAITING_MIN;
    if (depth > WAITING_MAX)
        depth = WAITING_MAX;
    s->waiting = depth;
    joule_energy_columns_list(s->columns, &columns);
    s->queue =
        joule_row_queue_create((size_t)depth, columns * sizeof(uint64_t));
    if (!s->queue)
        return -1;
    if (s->begun)
        joule_row_queue_begin(s->queue, s->begun_ns, s->begun_uj);
    return 0;
}

/* ---- rows of the step alone ---- */

/* Rows end at the multiples of the period from here on.  What is added of the
 * node no longer grows, so that its share does with the time. */
static void begin_step_only(struct joule_energy_series *s, int64_t from_ns)
{
    s->step_only = true;
    s->origin_ns = (from_ns + s->period_ns - 1) / s->period_ns * s->period_ns;
    s->ended = 0;
    s->silent = 0;
    if (s->row_ns == 0)
        s->row_ns = from_ns;
    joule_row_queue_begin(s->queue, s->row_ns, 0);
}

/* The rows are begun again if another job has come: those of what was read
 * since the last look may show it. */
static bool hides_node(struct joule_energy_series *s)
{
    if (!s->step_only && s->table >= 0 &&
        s->opt.columns == JOULE_ENERGY_COLUMNS_ALONE &&
        joule_step_energy_has_other_job(s->opt.step_energy, s->opt.job))
        begin_step_only(s, joule_clock_mono_ns(s->opt.clock));
    return s->step_only;
}

static void add_step_row(struct joule_energy_series *s, int64_t ns)
{
    queue_row(s, ns, s->node_uj, (wall_offset_ns(s) + ns) / JOULE_NS_PER_S,
              joule_energy_columns_step_row(s->columns));
}

/* Of the periods that are over by now, which is returned; of more than can
 * wait, those are missed that were first. */
static int64_t add_step_rows(struct joule_energy_series *s)
{
    int64_t now_ns = joule_clock_mono_ns(s->opt.clock);
    int64_t over = (now_ns - s->origin_ns) / s->period_ns;

    if (over - s->ended > s->waiting) {
        miss(s, over - s->ended - s->waiting);
        s->ended = over - s->waiting;
        set_offset(s); /* suspended */
    }
    while (s->ended < over)
        add_step_row(s, s->origin_ns + ++s->ended * s->period_ns);
    write_due_rows(s);
    return now_ns;
}

/* Nothing is read at their ends, so several are added at a time. */
static void sample_step(struct joule_energy_series *s)
{
    int64_t count = TOGETHER_NS / s->period_ns + 1;

    while (sleep_until(s, s->origin_ns + (s->ended + count) * s->period_ns))
        add_step_rows(s);
}

static void end_step(struct joule_energy_series *s)
{
    int64_t now_ns = add_step_rows(s);

    if (now_ns - s->row_ns >= INTERVAL_MIN_NS) {
        s->short_ns = now_ns;
        add_step_row(s, now_ns);
    }
    write_all_rows(s);
}

/* ---- rows ---- */

/* [wall_ns]: the wall clock at 0 of the readings' clock. */
static void add_row(struct joule_energy_series *s,
                    const struct joule_node_energy_reading *reading,
                    int64_t wall_ns)
{
    int64_t epoch_s = (wall_ns + reading->mono_ns) / JOULE_NS_PER_S;
    const void *row;

    if (!s->begun) {
        s->begun = true;
        s->begun_ns = reading->mono_ns;
        s->begun_uj = reading->used_uj;
    }
    row = joule_energy_columns_row(s->columns, reading, NULL);
    if (!row)
        s->silent++;
    else if (s->table >= 0 && !s->queue)
        joule_writer_append(s->opt.writer, s->table, row, epoch_s,
                            reading->mono_ns);
    else if (s->table >= 0)
        queue_row(s, reading->mono_ns, reading->used_uj, epoch_s, row);
    if (s->queue)
        joule_row_queue_begin(s->queue, reading->mono_ns, reading->used_uj);
    s->node_uj = reading->used_uj;
}

static void hurry(struct joule_energy_series *s)
{
    if (s->tries == 0 || !atomic_load(&s->may_hurry))
        return;
    s->tries = joule_pace_hurry() == 0 ? 0 : s->tries - 1;
}

/* Read, and make a row of it. */
static void take(struct joule_energy_series *s)
{
    struct joule_node_energy_reading reading;

    if (hides_node(s))
        return;
    if (joule_node_energy_update(s->opt.node_energy, &reading) == 0) {
        s->last_ns = reading.mono_ns;
        add_row(s, &reading, wall_offset_ns(s));
    } else {
        s->last_ns = joule_clock_mono_ns(s->opt.clock);
        s->silent++;
    }
    if (s->queue)
        write_due_rows(s);
    hurry(s);
}

/* Of the readings so far each stands for a period. */
static void miss_silent(struct joule_energy_series *s)
{
    miss(s, s->silent);
    s->silent = 0;
}

/* Periods that are over by the last reading. */
static int64_t periods(const struct joule_energy_series *s)
{
    return (s->last_ns - joule_writer_start_ns(s->opt.writer)) / s->period_ns;
}

/* When the next period is over; if it is by now, half a period after the last
 * reading. */
static bool wait_for_period(struct joule_energy_series *s)
{
    int64_t due_ns =
        joule_writer_start_ns(s->opt.writer) + (s->ended + 1) * s->period_ns;
    int64_t least_ns = s->last_ns + s->period_ns / 2;

    return sleep_until(s, due_ns > least_ns ? due_ns : least_ns);
}

static void sample(struct joule_energy_series *s)
{
    int64_t behind;

    while (!s->step_only && wait_for_period(s)) {
        take(s);
        if (s->step_only)
            break;
        miss_silent(s);
        s->ended++;
        behind = periods(s) - s->ended;
        if (behind <= JOULE_ENERGY_CATCH_UP)
            continue;
        miss(s, behind);
        s->ended += behind;
        set_offset(s);
    }
}

/* What is left of the last period.  Of periods that are over and still had no
 * row, it is the last one's. */
static void end(struct joule_energy_series *s)
{
    int64_t behind;
    bool took;

    miss_silent(s);
    took = !s->step_only &&
           joule_clock_mono_ns(s->opt.clock) - s->last_ns >= INTERVAL_MIN_NS;
    if (took) {
        joule_node_energy_end(s->opt.node_energy);
        take(s);
    }
    if (s->step_only) {
        end_step(s);
        return;
    }
    if (s->queue)
        write_all_rows(s);
    behind = periods(s) - s->ended;
    miss(s, took && s->silent == 0 ? behind - 1 : behind);
}

/* Slurm says which CPUs the step has some ten milliseconds after the series has
 * begun. */
static int make_columns(struct joule_energy_series *s)
{
    if (s->opt.columns == JOULE_ENERGY_COLUMNS_ALONE) {
        int64_t ns = joule_clock_mono_ns(s->opt.clock),
                end_ns = ns + JOULE_NS_PER_S;

        while (!joule_step_energy_is_registered(s->opt.step_energy) &&
               ns < end_ns && sleep_until(s, ns += REGISTERED_NS))
            ;
        if (!joule_step_energy_is_alone(s->opt.step_energy))
            s->opt.columns = JOULE_ENERGY_COLUMNS_STEP;
    }
    s->columns = joule_energy_columns_create(s->opt.sensor, s->opt.columns);
    return s->columns ? 0 : -1;
}

static void run(struct joule_energy_series *s)
{
    bool more = true;

    set_offset(s);
    if (make_columns(s) < 0)
        return;
    if (s->opt.columns != JOULE_ENERGY_COLUMNS_STEP)
        take(s);
    s->silent = 0; /* it stands for no period */
    s->period_ns = s->opt.period_ns;
    if (s->period_ns == 0) {
        more = sleep_until(s, joule_writer_start_ns(s->opt.writer) +
                                  JOULE_NS_PER_S);
        s->period_ns = s->opt.ask_period_ns ? s->opt.ask_period_ns() : 0;
    }
    if (s->period_ns <= 0 || make_queue(s) < 0 || add_table(s) < 0)
        return;
    s->tries = s->period_ns < HURRY_BELOW_NS ? HURRY_TRIES : 0;
    if (s->opt.columns == JOULE_ENERGY_COLUMNS_STEP)
        begin_step_only(s, joule_writer_start_ns(s->opt.writer));
    if (more)
        sample(s);
    if (more && s->step_only)
        sample_step(s);
    end(s);
}

static void *thread_main(void *arg)
{
    prctl(PR_SET_NAME, "joule-energy");
    joule_pace_start();
    run(arg);
    return NULL;
}

static void release(struct joule_energy_series *s)
{
    joule_energy_columns_destroy(s->columns);
    joule_row_queue_destroy(s->queue);
    free(s);
}

struct joule_energy_series *
joule_energy_series_create(const struct joule_energy_series_options *opt)
{
    struct joule_energy_series *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return NULL;
    s->opt = *opt;
    s->table = -1;
    rc = joule_thread_start(&s->thread, THREAD_STACK, thread_main, s);
    if (rc == 0)
        return s;
    release(s);
    errno = rc;
    return NULL;
}

void joule_energy_series_launched(struct joule_energy_series *s)
{
    atomic_store(&s->may_hurry, true);
}

void joule_energy_series_destroy(struct joule_energy_series *s)
{
    if (!s)
        return;
    joule_pace_stop(&s->stop);
    pthread_join(s->thread, NULL);
    release(s);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The thread that samples the energy series: each period has a row, also of a
 * thread that is held up; what never gets one is counted. */
#include <check.h>
#include <errno.h>
#include <hdf5.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/daemon/sampler.h"
#include "common/sensors/counter_sensor.h"
#include "common/step/energy_series.h"
#include "common/step/pace.h"
#include "tests/unit/fake_power.h"
#include "tests/unit/rows.h"
#include "tests/unit/tree.h"

#define MS       JOULE_NS_PER_MS
#define PERIOD   (10 * MS)
#define WATTS    100
#define ROWS_MAX 1000

/* ---- a counter that follows the kernel's clock, and may be slow ---- */

static _Atomic int reads, stall_at = -1;
static _Atomic int64_t stall_ns;

/* Until then, the counter does not move. */
static _Atomic int64_t still_until_ns;

static void sleep_ns(int64_t ns)
{
    struct timespec ts = {.tv_sec = ns / JOULE_NS_PER_S,
                          .tv_nsec = ns % JOULE_NS_PER_S};

    nanosleep(&ts, NULL);
}

/* A clock whose first reader loses its CPU with the answer in its hand. */
static _Atomic int64_t held_ns;

static int64_t held_mono_ns(void *arg)
{
    int64_t now_ns = joule_clock_mono_ns(&joule_clock_system);

    (void)arg;
    sleep_ns(atomic_exchange(&held_ns, 0));
    return now_ns;
}

static int64_t held_wall_ns(void *arg)
{
    (void)arg;
    return joule_clock_wall_ns(&joule_clock_system);
}

static const struct joule_clock held_clock = {.mono_ns = held_mono_ns,
                                              .wall_ns = held_wall_ns};

static struct joule_counters steady; /* the step's; slurmd's are never slow */

static void steady_read(struct joule_counters *counters, struct joule_raw *out)
{
    int64_t now_ns;

    if (counters == &steady && reads++ == stall_at)
        sleep_ns(stall_ns);
    now_ns = joule_clock_mono_ns(&joule_clock_system);
    if (now_ns < still_until_ns)
        now_ns = still_until_ns;
    out[0].error = 0;
    out[0].raw = (uint64_t)(now_ns / 1000 * WATTS) & UINT32_MAX;
}

static void steady_destroy(struct joule_counters *counters)
{
    (void)counters;
}

static const struct joule_counters_ops steady_ops = {.read = steady_read,
                                                     .destroy = steady_destroy};
static const struct joule_domain steady_domain = {
    .kind = JOULE_DOMAIN_PACKAGE,
    .unit = {.num = 1, .shift = 0},
    .width_bits = 32,
    .in_total = true,
    .name = "package-0",
};
static struct joule_counters steady = {
    .ops = &steady_ops, .domains = &steady_domain, .domain_count = 1};
static struct joule_counters slurmd_steady = {
    .ops = &steady_ops, .domains = &steady_domain, .domain_count = 1};

/* ---- a profile ---- */

struct row {
    uint64_t power, node_uj, ns;
};

static struct tree tree;
static char path[300], log_path[300];
static struct joule_writer *writer;
static struct joule_sensor *measuring; /* slurmd's */
static struct joule_sampler *sampler;  /* NULL: slurmd is away */
static struct joule_sensor *following; /* the step's */
static struct joule_ledger *ledger;
static struct joule_node_energy *node_energy;
static struct row rows[ROWS_MAX];
static size_t row_count;
static struct joule_step_energy *step_energy; /* NULL: nothing is divided */
static enum joule_energy_columns_of columns;
static int64_t stopped_ns; /* the step's end, or a little earlier */

static void setup(void)
{
    tree_create(&tree);
    ck_assert_int_eq(fchmod(tree.fd, 0755), 0);
}

static void teardown(void)
{
    joule_sampler_destroy(sampler);
    joule_sensor_destroy(measuring);
    tree_destroy(&tree);
}

/* ---- slurmd ---- */

static void no_event(enum joule_event event, const char *text, void *arg)
{
    (void)event;
    (void)text;
    (void)arg;
}

/* On a node of four CPUs; what is charged goes by CPUs. */
static void slurmd_starts(int64_t period_ns)
{
    struct joule_sampler_options opt = {
        .clock = &joule_clock_system,
        .root_fd = tree.fd,
        .node = "n1",
        .period_ns = period_ns,
        .attribution = JOULE_ATTRIBUTION_ALLOC,
        .event = no_event,
    };
    char name[64], text[128];
    struct joule_error err;

    tree_write(&tree, "proc/sys/kernel/random/boot_id", "one\n");
    tree_write(&tree, "sys/devices/system/cpu/online", "0-3\n");
    for (unsigned cpu = 0; cpu < 4; cpu++)
        tree_cpu(&tree, cpu, 0, 0, (int)cpu);
    snprintf(name, sizeof(name), "proc/%d/stat", (int)getpid());
    snprintf(text, sizeof(text),
             "%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 1 1",
             (int)getpid());
    tree_write(&tree, name, text);
    measuring =
        joule_counter_sensor_create(&joule_clock_system, &slurmd_steady);
    ck_assert_ptr_nonnull(measuring);
    opt.sensor = measuring;
    sampler = joule_sampler_create(&opt, &err);
    ck_assert_msg(sampler != NULL, "%s", err.text);
}

/* It takes a sample each 100 ms, and knows the node's energy: the counter has
 * moved. */
static void slurmd_knows(void)
{
    static struct joule_snapshot snapshot;

    slurmd_starts(100 * MS);
    for (int i = 0; i < 5000; i++) {
        ck_assert_int_eq(joule_sampler_read(sampler, &snapshot), 0);
        if (snapshot.total.valid)
            return;
        sleep_ns(MS);
    }
    ck_abort_msg("the total is not known");
}

static void slurmd_goes(void)
{
    joule_sampler_destroy(sampler);
    joule_sensor_destroy(measuring);
    sampler = NULL;
    measuring = NULL;
}

/* ---- a step ---- */

/* [sensor] is the profile's. */
static struct joule_energy_series *start_with(struct joule_sensor *sensor,
                                              int64_t period_ns)
{
    char dir[128];
    struct joule_writer_options opt = {
        .place = {.dir = dir,
                  .user = "alice",
                  .uid = geteuid(),
                  .gid = getegid(),
                  .admin = geteuid()},
        .base = "7_0_n1",
        .facts = {.node = "n1", .writer = "test", .tasks = 1},
        .clock = &joule_clock_system,
        .flush_ns = 200 * MS,
        .queue_bytes = 64 * 1024,
    };
    struct joule_energy_series_options series = {
        .clock = &held_clock, .sensor = sensor, .period_ns = period_ns};
    struct joule_energy_series *energy;
    struct joule_error err;

    snprintf(dir, sizeof(dir), "%s/profile", tree.path);
    ck_assert_int_eq(mkdir(dir, 0755), 0);
    snprintf(log_path, sizeof(log_path), "%s/alice/7_0_n1.log", dir);
    snprintf(path, sizeof(path), "%s/7_0_n1.h5", dir);
    following = sensor;
    ledger = joule_ledger_open(tree.fd, "n1", NULL);
    node_energy =
        joule_node_energy_create(&joule_clock_system, following, ledger);
    writer = joule_writer_create(&opt, &err);
    ck_assert_msg(writer != NULL, "%s", err.text);
    joule_node_energy_begin(node_energy);
    series.node_energy = node_energy;
    series.step_energy = step_energy;
    series.columns = columns;
    series.job = 7;
    series.writer = writer;
    energy = joule_energy_series_create(&series);
    ck_assert_ptr_nonnull(energy);
    return energy;
}

static struct joule_energy_series *start(int64_t period_ns)
{
    struct joule_sensor *sensor =
        joule_counter_sensor_create(&joule_clock_system, &steady);

    ck_assert_ptr_nonnull(sensor);
    return start_with(sensor, period_ns);
}

static struct joule_energy_series *start_for(int64_t run_ns, int64_t period_ns)
{
    struct joule_energy_series *energy = start(period_ns);

    sleep_ns(run_ns);
    return energy;
}

static void stop(struct joule_energy_series *energy)
{
    stopped_ns = joule_clock_mono_ns(&joule_clock_system);
    joule_energy_series_destroy(energy);
    ck_assert_int_eq(joule_writer_close(writer, 5 * JOULE_NS_PER_S), 0);
    ck_assert(rows_convert(log_path, path));
    joule_node_energy_destroy(node_energy);
    joule_ledger_destroy(ledger);
    joule_sensor_destroy(following);
}

static void read_rows(void)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), set, type, space;
    hsize_t count;

    ck_assert_int_ge(file, 0);
    set = H5Dopen2(file, "/n1/Energy", H5P_DEFAULT);
    ck_assert_int_ge(set, 0);
    space = H5Dget_space(set);
    H5Sget_simple_extent_dims(space, &count, NULL);
    ck_assert_uint_le(count, ROWS_MAX);
    type = H5Tcreate(H5T_COMPOUND, sizeof(struct row));
    H5Tinsert(type, "Power", 0, H5T_NATIVE_UINT64);
    H5Tinsert(type, "node_uJ", 8, H5T_NATIVE_UINT64);
    H5Tinsert(type, "ElapsedTimeNs", 16, H5T_NATIVE_UINT64);
    ck_assert_int_ge(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows),
                     0);
    row_count = count;
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
}

/*
 * By the rule of energy.h, what the times of the rows say of the periods: all
 * have a row but those that the file counts as missed.  The last row may be of
 * a period's beginning.
 */
static uint64_t check_rows(int64_t period_ns)
{
    uint64_t missed = rows_attribute(path, "/n1", "Joule Missed Periods");
    uint64_t period = (uint64_t)period_ns, over, seen = 0, ended = 0, i;

    read_rows();
    ck_assert_uint_gt(row_count, 0);
    over = rows[row_count - 1].ns / period;
    ck_assert_uint_ge(row_count + missed, over);
    ck_assert_uint_le(row_count + missed, over + 1);
    for (i = 0; i + 1 < row_count; i++) {
        ck_assert_uint_ge(rows[i].ns, (ended + 1) * period);
        if (i > 0)
            ck_assert_uint_ge(rows[i].ns - rows[i - 1].ns, period / 2);
        ended++;
        if (rows[i].ns / period > ended + JOULE_ENERGY_CATCH_UP) {
            seen += rows[i].ns / period - ended;
            ended = rows[i].ns / period;
        }
    }
    /* Of what is left at the end, the last row is one. */
    if (over > ended + 1)
        seen += over - ended - 1;
    ck_assert_uint_eq(missed, seen);
    return seen;
}

/* Over the rows behind the first, which begins when the thread does. */
static void check_energy(void)
{
    uint64_t uj = 0, i;

    for (i = 1; i < row_count; i++)
        uj += rows[i].power * (rows[i].ns - rows[i - 1].ns) / 1000;
    i = rows[row_count - 1].node_uj - rows[0].node_uj;
    ck_assert_uint_ge(uj, i - i / 50);
    ck_assert_uint_le(uj, i + i / 50);
}

/* ---- tests ---- */

START_TEST(ends_at_once)
{
    slurmd_knows();
    stop(start(PERIOD));
    joule_energy_series_destroy(NULL);
}
END_TEST

START_TEST(no_period)
{
    struct joule_energy_series *energy;

    slurmd_knows();
    energy = start(0);
    sleep_ns(50 * MS);
    stop(energy);
    ck_assert_int_eq(rows_count(path, "/n1/Energy", 0, 1), -2);
}
END_TEST

START_TEST(each_period_has_a_row)
{
    static const int64_t periods[] = {PERIOD, 50 * MS, 170 * MS, 400 * MS};
    struct joule_energy_series *energy;

    slurmd_knows();
    energy = start(periods[_i]);
    sleep_ns(938 * MS);
    stop(energy);
    check_rows(periods[_i]);
    ck_assert_uint_ge(rows[row_count - 1].ns, 938 * MS);
    check_energy();
}
END_TEST

/* A step of [run_ns] whose thread is held up once; how many periods are
 * missed. */
static uint64_t held_up(int64_t for_ns, int64_t run_ns)
{
    struct joule_energy_series *energy;

    slurmd_knows();
    stall_at = 20;
    stall_ns = for_ns;
    energy = start(PERIOD);
    sleep_ns(run_ns);
    stop(energy);
    return check_rows(PERIOD);
}

/* By two periods. */
START_TEST(late_periods_are_made_up_for)
{
    held_up(25 * MS, 600 * MS);
    check_energy();
}
END_TEST

START_TEST(a_long_stall_is_counted)
{
    ck_assert_uint_ge(held_up(300 * MS, 900 * MS), 28);
    check_energy();
}
END_TEST

/* Still held up when the step ends. */
START_TEST(a_stall_at_the_end)
{
    ck_assert_uint_ge(held_up(400 * MS, 300 * MS), 28);
}
END_TEST

/* Most rows are those of the periods in whose order they come. */
static void check_beginning(int64_t period_ns)
{
    uint64_t period = (uint64_t)period_ns, late = 0, i;

    check_rows(period_ns);
    for (i = 0; i + 1 < row_count; i++)
        late += rows[i].ns > (i + 1) * period + period / 2;
    ck_assert_uint_le(late, row_count / 3);
}

/* Before its first period: the others are in time. */
START_TEST(a_stall_at_the_beginning)
{
    struct joule_energy_series *energy;

    slurmd_knows();
    held_ns = 33 * MS;
    energy = start(4 * PERIOD);
    sleep_ns(1200 * MS);
    stop(energy);
    check_beginning(4 * PERIOD);
}
END_TEST

/* The first reading comes before the counter moves; it is known to do so. */
START_TEST(still_at_first)
{
    struct joule_energy_series *energy;

    slurmd_knows();
    still_until_ns = joule_clock_mono_ns(&joule_clock_system) + 25 * MS;
    energy = start(4 * PERIOD);
    sleep_ns(1200 * MS);
    stop(energy);
    check_beginning(4 * PERIOD);
    check_energy();
}
END_TEST

/* slurmd does not know the energy when the step begins: periods without a row
 * are counted. */
START_TEST(still_for_long)
{
    struct joule_energy_series *energy;
    uint64_t missed, over, start_ns;
    int64_t still_ns;

    still_until_ns = joule_clock_mono_ns(&joule_clock_system) + 300 * MS;
    slurmd_starts(PERIOD);
    energy = start(PERIOD);
    sleep_ns(600 * MS);
    stop(energy);
    start_ns = rows_attribute(path, "/n1", "Joule Start Boot ns");
    still_ns = still_until_ns - (int64_t)start_ns;
    missed = rows_attribute(path, "/n1", "Joule Missed Periods");
    read_rows();
    ck_assert_uint_gt(row_count, 0);
    ck_assert_int_gt(still_ns, 5 * PERIOD);
    ck_assert_int_ge((int64_t)missed, still_ns / PERIOD);
    over = rows[row_count - 1].ns / PERIOD;
    ck_assert_uint_ge(row_count + missed, over);
    ck_assert_uint_le(row_count + missed, over + 1);
    ck_assert_int_ge((int64_t)rows[0].ns, still_ns);
    check_energy();
}
END_TEST

/* slurmd has no sample yet: nothing is known of the energy. */
START_TEST(nothing_is_measured)
{
    static struct fake_power bmc;
    struct joule_energy_series *energy;
    struct joule_ledger *empty;

    tree_write(&tree, "proc/sys/kernel/random/boot_id", "one\n");
    empty = joule_ledger_create(tree.fd, "n1", 1, NULL);
    ck_assert_ptr_nonnull(empty);
    fake_power_init(&bmc);
    energy = start_with(fake_power_sensor(&bmc, 3 * JOULE_NS_PER_S), PERIOD);
    sleep_ns(100 * MS);
    stop(energy);
    joule_ledger_destroy(empty);
    ck_assert_uint_eq(bmc.reads, 0);
    ck_assert_int_eq(rows_count(path, "/n1/Energy", 0, 1), 0);
    ck_assert_uint_ge(rows_attribute(path, "/n1", "Joule Missed Periods"), 9);
}
END_TEST

/* ---- a node of four CPUs that jobs share ---- */

struct queue_row {
    uint64_t power, node_uj, step_uj;
    double step_mw;
    uint64_t ns;
};

static struct queue_row shares[ROWS_MAX];

static struct joule_step_energy *job_begins(uint32_t job, uint64_t cpus,
                                            uint32_t count)
{
    struct joule_registration r = {.job = job,
                                   .uid = 1000,
                                   .kind = JOULE_STEP_NUMBERED,
                                   .cpu_count = count,
                                   .job_cpu_count = count};

    return joule_step_energy_create(&joule_clock_system, tree.fd, "n1", &r,
                                    &cpus, &cpus, 1);
}

/* Returns how many columns there are. */
static int read_shares(void)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), set, type, space;
    hid_t stored;
    hsize_t count;
    int members;

    ck_assert_int_ge(file, 0);
    set = H5Dopen2(file, "/n1/Energy", H5P_DEFAULT);
    stored = H5Dget_type(set);
    members = H5Tget_nmembers(stored);
    space = H5Dget_space(set);
    H5Sget_simple_extent_dims(space, &count, NULL);
    ck_assert_uint_le(count, ROWS_MAX);
    type = H5Tcreate(H5T_COMPOUND, sizeof(struct queue_row));
    H5Tinsert(type, "Power", offsetof(struct queue_row, power),
              H5T_NATIVE_UINT64);
    if (H5Tget_member_index(stored, "node_uJ") >= 0)
        H5Tinsert(type, "node_uJ", offsetof(struct queue_row, node_uj),
                  H5T_NATIVE_UINT64);
    H5Tinsert(type, "step_uJ", offsetof(struct queue_row, step_uj),
              H5T_NATIVE_UINT64);
    H5Tinsert(type, "step_mW", offsetof(struct queue_row, step_mw),
              H5T_NATIVE_DOUBLE);
    H5Tinsert(type, "ElapsedTimeNs", offsetof(struct queue_row, ns),
              H5T_NATIVE_UINT64);
    ck_assert_int_ge(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, shares),
                     0);
    row_count = count;
    H5Tclose(type);
    H5Tclose(stored);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(file);
    return members;
}

/* From row [from] on all end at multiples of the node's clock, but for one that
 * the step's end makes shorter, by 5 ms at least: it has whole joules. */
static void check_grid(size_t from, int64_t period_ns)
{
    uint64_t start_ns = rows_attribute(path, "/n1", "Joule Start Boot ns");
    const struct queue_row *last = &shares[row_count - 1];
    bool is_short = (start_ns + last->ns) % (uint64_t)period_ns != 0;
    size_t i;

    ck_assert_uint_gt(row_count, from + 4);
    for (i = from; i + is_short < row_count; i++) {
        ck_assert_uint_eq((start_ns + shares[i].ns) % (uint64_t)period_ns, 0);
        ck_assert(i == from ||
                  shares[i].ns - shares[i - 1].ns == (uint64_t)period_ns);
    }
    for (i = 1; i < row_count; i++)
        ck_assert_uint_ge(shares[i].step_uj, shares[i - 1].step_uj);
    if (is_short) {
        ck_assert(last->step_uj % 1000000 == 0 ||
                  last->step_uj == last[-1].step_uj);
        ck_assert_uint_lt(last->ns - last[-1].ns, (uint64_t)period_ns);
        ck_assert_uint_ge(last->ns - last[-1].ns, 5 * MS);
        ck_assert_uint_eq(last->power, 0);
        ck_assert(isnan(last->step_mw));
    } else {
        ck_assert_int_lt(stopped_ns - (int64_t)(start_ns + last->ns), 5 * MS);
    }
    ck_assert_uint_eq(rows_attribute(path, "/n1", "Joule Missed Periods"), 0);
}

/* A step with two of the four CPUs has its half of the node, and sees no more.
 * It ends in the middle of a period, or at once after one. */
START_TEST(a_shared_node)
{
    static const int64_t behind_ns[] = {25 * MS, MS};
    struct joule_energy_series *energy;
    int64_t begin_ns, begun_ns, end_ns;
    double uj;

    slurmd_knows();
    begin_ns = joule_clock_mono_ns(&joule_clock_system);
    step_energy = job_begins(7, 0x3, 2);
    begun_ns = joule_clock_mono_ns(&joule_clock_system);
    columns = JOULE_ENERGY_COLUMNS_STEP;
    energy = start_for(1220 * MS, 50 * MS);
    sleep_ns(50 * MS - joule_clock_mono_ns(&joule_clock_system) % (50 * MS) +
             behind_ns[_i]);
    stop(energy);
    ck_assert_int_eq(read_shares(), 2 + 3 + 1);
    check_grid(0, 50 * MS);
    ck_assert_uint_ge(shares[0].ns, 50 * MS);
    ck_assert_uint_lt(shares[0].ns, 100 * MS);
    /* It is charged from when it was registered. */
    end_ns = (int64_t)(rows_attribute(path, "/n1", "Joule Start Boot ns") +
                       shares[row_count - 1].ns);
    uj = (double)shares[row_count - 1].step_uj;
    ck_assert_double_ge(uj,
                        WATTS / 2.0 * (double)(end_ns - begun_ns) / 1000 - 2e6);
    ck_assert_double_le(uj,
                        WATTS / 2.0 * (double)(end_ns - begin_ns) / 1000 + 2e6);
    for (size_t i = 1; i + 1 < row_count; i++)
        ck_assert_uint_eq(shares[i].power,
                          (uint64_t)(shares[i].step_mw / 1000 + 0.5));
    joule_step_energy_destroy(step_energy);
}
END_TEST

/* No row of microjoules for a step of a few milliseconds, of which there may be
 * many. */
START_TEST(a_short_step_on_a_shared_node)
{

    slurmd_knows();
    step_energy = job_begins(7, 0x3, 2);
    columns = JOULE_ENERGY_COLUMNS_STEP;
    stop(start_for(130 * MS, 400 * MS));
    read_shares();
    ck_assert_uint_eq(row_count, 1);
    ck_assert_uint_eq(shares[0].step_uj % 1000000, 0);
    ck_assert_uint_eq(shares[0].power, 0);
    ck_assert(isnan(shares[0].step_mw));
    joule_step_energy_destroy(step_energy);
}
END_TEST

/* The step's job has all four, but shares them with a job that comes later. */
START_TEST(another_job_comes)
{
    struct joule_energy_series *energy;
    struct joule_step_energy *other;
    uint64_t start_ns, came_ns;
    size_t shown = 0;

    slurmd_knows();
    step_energy = job_begins(7, 0xf, 4);
    columns = JOULE_ENERGY_COLUMNS_ALONE;
    energy = start(50 * MS);
    sleep_ns(610 * MS);
    other = job_begins(8, 0xf, 4);
    came_ns = (uint64_t)joule_clock_mono_ns(&joule_clock_system);
    sleep_ns(660 * MS);
    stop(energy);
    ck_assert_int_eq(read_shares(), 2 + 3 + 2 + 1);
    start_ns = rows_attribute(path, "/n1", "Joule Start Boot ns");
    while (shown < row_count && shares[shown].node_uj > 0)
        shown++;
    ck_assert_uint_gt(shown, 4);
    ck_assert_uint_gt(shares[shown - 1].power, 0);
    ck_assert_uint_lt(start_ns + shares[shown - 1].ns, came_ns);
    for (size_t i = shown; i < row_count; i++) {
        ck_assert_uint_eq(shares[i].power, 0);
        ck_assert_uint_eq(shares[i].node_uj, 0);
    }
    check_grid(shown, 50 * MS);
    joule_step_energy_destroy(other);
    joule_step_energy_destroy(step_energy);
}
END_TEST

static const enum joule_energy_columns_of away_columns[] = {
    JOULE_ENERGY_COLUMNS_STEP, JOULE_ENERGY_COLUMNS_BOTH};

/* slurmd goes, and does not come back before the step's end: what Slurm is told
 * is carried on, and so are the rows.  The last has whole joules, or lacks what
 * 50 W are in 5 ms. */
START_TEST(ends_while_slurmd_is_away)
{
    struct joule_energy_series *energy;
    struct joule_step_energy_reading told;
    struct joule_step_energy *step;

    slurmd_knows();
    step = job_begins(7, 0x3, 2);
    step_energy = joule_step_energy_watch(&joule_clock_system, tree.fd, "n1");
    columns = away_columns[_i];
    energy = start_for(450 * MS, 50 * MS);
    slurmd_goes();
    sleep_ns(400 * MS);
    joule_step_energy_end(step);
    ck_assert_int_eq(joule_step_energy_read_now(step, &told, NULL), 0);
    ck_assert(told.carried);
    stop(energy);
    read_shares();
    ck_assert_double_eq_tol((double)shares[row_count - 1].step_uj,
                            (double)told.used_uj, 0.75e6);
    for (size_t i = 1; i + 1 < row_count; i++)
        ck_assert(shares[i].step_mw >= 0);
    joule_step_energy_destroy(step_energy);
    joule_step_energy_destroy(step);
}
END_TEST

static void *hurry_and_fork(void *arg)
{
    int status, *policy = arg;
    pid_t pid;

    policy[2] = joule_pace_hurry() == 0 ? 0 : errno;
    policy[0] = sched_getscheduler(gettid());
    pid = fork();
    if (pid == 0)
        _exit(sched_getscheduler(0));
    waitpid(pid, &status, 0);
    policy[1] = WEXITSTATUS(status);
    return NULL;
}

START_TEST(children_are_not_real_time)
{
    int policy[3];
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, hurry_and_fork, policy), 0);
    pthread_join(thread, NULL);
    if (policy[2] == 0)
        ck_assert_int_eq(policy[0], SCHED_FIFO | SCHED_RESET_ON_FORK);
    else
        ck_assert_int_eq(policy[2], EPERM);
    ck_assert_int_eq(policy[1], SCHED_OTHER);
    ck_assert_int_eq(sched_getscheduler(0), SCHED_OTHER);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("energy series");
    TCase *tc = tcase_create("energy");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, ends_at_once);
    tcase_add_test(tc, no_period);
    tcase_add_loop_test(tc, each_period_has_a_row, 0, 4);
    tcase_add_test(tc, late_periods_are_made_up_for);
    tcase_add_test(tc, a_long_stall_is_counted);
    tcase_add_test(tc, a_stall_at_the_beginning);
    tcase_add_test(tc, a_stall_at_the_end);
    tcase_add_test(tc, still_at_first);
    tcase_add_test(tc, still_for_long);
    tcase_add_test(tc, nothing_is_measured);
    tcase_add_loop_test(tc, a_shared_node, 0, 2);
    tcase_add_test(tc, a_short_step_on_a_shared_node);
    tcase_add_test(tc, another_job_comes);
    tcase_add_loop_test(tc, ends_while_slurmd_is_away, 0, 2);
    tcase_add_test(tc, children_are_not_real_time);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    /* A check that holds a thread up has its process for itself. */
    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

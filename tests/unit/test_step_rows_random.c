/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random histories of a node: jobs, steps, samples, samples that fail,
 * counters that misbehave, slurmd away, killed and restarted.  After each
 * event the ledger must add up and nothing must have fallen.
 *
 * JOULE_SEED repeats a run, JOULE_EVENTS makes it longer.
 */
#include <check.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/base/process.h"
#include "common/daemon/step_rows.h"
#include "common/node/ledger_file.h"
#include "tests/unit/dice.h"
#include "tests/unit/tree.h"

#define SLOTS JOULE_LEDGER_SLOTS_MAX
#define PARTS 2
#define STEPS 120
#define S     INT64_C(1000000000)

#define CARRIED_UJ UINT64_C(50000000)

/* A step of the world; the ledger knows what it is told. */
struct step {
    uint64_t owner; /* 0: none */
    unsigned slot;
    bool wild; /* CPU counters that cannot be relied upon */
    uint64_t cpu_ns, part_ns[PARTS];
};

struct world {
    struct tree tree;
    uint64_t seed;
    int64_t now_ns;
    unsigned next_pid;
    uint64_t node_uj, begun_uj, part_uj[PARTS], busy_ns[PARTS];
    uint64_t component_uj[PARTS * JOULE_COMPONENTS];
    struct step step[STEPS];
    struct joule_ledger *writer, *reader;
    struct joule_step_rows *charge;
    int64_t node_since_ns;
    uint64_t part_key;
    unsigned events, samples, restarts, steps;
};

/* As it was after the event before. */
struct known {
    struct joule_ledger_totals totals;
    struct joule_row row[SLOTS];
    size_t slots;
};

static struct world w;
static struct known before, now;

/* ck_assert takes a system call each time, and this is asked a million times.
 */
#define require(x)                                                             \
    do {                                                                       \
        if (!(x))                                                              \
            ck_abort_msg("event %u: not so: %s", w.events, #x);                \
    } while (0)

static uint64_t roll(uint64_t n)
{
    return dice(&w.seed, n);
}

static void start_slurmd(void)
{
    static const uint64_t sets[] = {0x0f, 0xf0};
    struct joule_error err = {""};
    struct joule_step_rows_options o = {
        .attribution = roll(4) ? JOULE_ATTRIBUTION_CPUTIME
                               : (enum joule_attribution)roll(3),
        .idle_uw = roll(3) ? 0 : roll(200) * 1000000,
        .part_cpus = sets,
        .part_count = 1 + roll(20) % 2,
    };

    if (roll(10) == 0)
        w.part_key++;
    if (roll(50) == 0)
        w.node_since_ns++;
    o.part_key = w.part_key + o.part_count;
    w.writer = joule_ledger_create(w.tree.fd, "n1", 1, &err);
    ck_assert_msg(w.writer != NULL, "%s", err.text);
    o.ledger = w.writer;
    w.charge = joule_step_rows_create(&o, &err);
    ck_assert_msg(w.charge != NULL, "%s", err.text);
    w.restarts++;
}

static void stop_slurmd(void)
{
    /* It may be killed with rows prepared that are not published. */
    for (uint64_t i = roll(4); i > 0 && w.writer; i--) {
        struct joule_row row;

        memset(&row, (int)roll(256), sizeof(row));
        joule_ledger_stage(w.writer,
                           (unsigned)roll(joule_ledger_slots(w.writer)), &row);
    }
    joule_step_rows_destroy(w.charge);
    joule_ledger_destroy(w.writer);
    w.charge = NULL;
    w.writer = NULL;
}

static struct step *some_step(void)
{
    struct step *s = &w.step[roll(STEPS)];

    return s->owner ? s : NULL;
}

static void begin_step(void)
{
    struct step *s = &w.step[roll(STEPS)];
    struct joule_registration r = {
        .job = 1 + (uint32_t)roll(12),
        .step = (uint32_t)roll(1000),
        .kind = (uint32_t)roll(3),
        .cpu_count = (uint32_t)roll(6),
        .job_cpu_count = (uint32_t)roll(9),
        .began_ns = w.now_ns - (int64_t)(roll(20) ? 0 : roll(5 * S)),
    };
    uint64_t cpus = roll(8) ? dice64(&w.seed) & dice64(&w.seed) & 0x1ff : 0;
    uint64_t own = roll(4) ? dice64(&w.seed) & (roll(8) ? cpus : 0x1ff) : 0;
    char path[48], text[96];

    if (s->owner)
        return;
    memset(s, 0, sizeof(*s));
    s->owner = joule_process_number((pid_t)++w.next_pid, 77);
    s->wild = roll(10) == 0;
    r.owner = s->owner;
    if (roll(50) == 0)
        r.began_ns = INT64_MAX;
    snprintf(path, sizeof(path), "proc/%u/stat", w.next_pid);
    snprintf(text, sizeof(text),
             "%u (s) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 1 1",
             w.next_pid);
    tree_write(&w.tree, path, text);
    ck_assert_int_eq(joule_ledger_register(w.reader, w.tree.fd, &r, &cpus, &own,
                                           &s->slot, NULL),
                     0);
    w.steps++;
}

/* The process is no more; whether it let go of its slot or not. */
static void end_process(struct step *s, bool release)
{
    char path[48];

    snprintf(path, sizeof(path), "proc/%d/stat",
             (int)joule_process_pid(s->owner));
    tree_remove(&w.tree, path);
    if (release)
        joule_ledger_release(w.reader, s->slot, s->owner);
    s->owner = 0;
}

static void spoil(struct step *s)
{
    struct ledger_registration *c =
        (struct ledger_registration *)&ledger_slot(w.reader, s->slot)->registration;

    c->word[roll(4)] = dice64(&w.seed);
}

static void run_time(void)
{
    int64_t ns = (int64_t)roll(2 * S);

    w.now_ns += ns;
    for (int p = 0; p < PARTS; p++) {
        uint64_t uj = roll(40) ? roll(200) * (uint64_t)ns / 1000 : 0;

        w.part_uj[p] += uj;
        for (int k = 0; k < JOULE_COMPONENTS; k++)
            w.component_uj[p * JOULE_COMPONENTS + k] += roll(uj + 1);
        w.node_uj += uj;
        w.busy_ns[p] += roll(4 * (uint64_t)ns + 1);
    }
    for (int i = 0; i < STEPS; i++) {
        uint64_t used = roll(3) ? roll((uint64_t)ns + 1) : 0;

        w.step[i].cpu_ns += used;
        w.step[i].part_ns[roll(PARTS)] += used;
        if (w.step[i].wild && roll(3) == 0)
            w.step[i].cpu_ns = dice64(&w.seed) >> roll(64);
    }
}

static void sample(void)
{
    struct joule_step_cpu_time usage[SLOTS];
    struct joule_step_rows_sample s = {
        .mono_ns = w.now_ns,
        /* A power that is carried on may go too far, and is corrected. */
        .node_uj = w.node_uj + (roll(10) ? 0 : roll(CARRIED_UJ)),
        .node_since_ns = w.node_since_ns,
        .part_uj = roll(20) ? w.part_uj : NULL,
        .part_busy_ns = roll(10) ? w.busy_ns : NULL,
        .component_uj = w.component_uj,
        .components = roll(3) ? 3 : roll(4),
        .usage = usage,
        .usage_count = joule_ledger_slots(w.writer),
        .gap = roll(30) == 0,
    };

    memset(usage, 0, sizeof(usage));
    for (unsigned i = 0; i < s.usage_count; i++)
        if (roll(3) == 0)
            joule_ledger_sweep(w.writer, w.tree.fd, i);
    for (int i = 0; i < STEPS; i++) {
        const struct step *from = &w.step[i];

        if (from->owner && from->slot < s.usage_count && roll(30))
            usage[from->slot] = (struct joule_step_cpu_time){
                .owner = from->owner,
                .state = roll(20) ? JOULE_USAGE_KNOWN
                                  : (enum joule_usage_state)roll(3),
                .cpu_ns = from->cpu_ns,
                .part_ns = roll(5) ? from->part_ns : NULL,
            };
    }
    joule_step_rows_update(w.charge, &s);
    w.samples++;
}

static void event(void)
{
    struct step *s = some_step();
    uint64_t kind = roll(100);

    if (kind < 25) {
        /* Times of many steps, and of few. */
        if (w.events / 1000 % 2 || roll(20) == 0)
            begin_step();
    } else if (kind < 60) {
        run_time();
        if (w.charge && roll(8))
            sample();
    } else if (kind < 62) {
        if (w.charge)
            stop_slurmd();
        if (roll(3))
            start_slurmd();
    } else if (kind < 68) {
        if (!w.charge)
            start_slurmd();
    } else if (s && kind < 80) {
        joule_ledger_end(w.reader, s->slot, s->owner, w.now_ns);
        if (w.charge && roll(4))
            sample();
        if (roll(2))
            end_process(s, true);
    } else if (s && kind < 97) {
        end_process(s, roll(2));
    } else if (s) {
        spoil(s);
    }
    w.events++;
}

static void check_sums(void)
{
    const struct joule_ledger_totals *t = &now.totals;
    uint64_t rows_uj = 0;

    for (size_t i = 0; i < now.slots; i++) {
        uint64_t components_uj = 0;

        rows_uj += now.row[i].uj;
        for (int k = 0; k < JOULE_COMPONENTS; k++)
            components_uj += now.row[i].component_uj[k];
        require(components_uj <= now.row[i].uj);
    }
    require(t->faults == 0);
    require(rows_uj + t->gone_uj == t->jobs_uj);
    require(t->jobs_uj + t->unallocated_uj + t->system_uj ==
            t->charged_uj + t->multiple_uj);
    require(t->node_uj <= w.node_uj + CARRIED_UJ);
    if (before.totals.begun_ns == 0 ||
        before.totals.node_since_ns != t->node_since_ns)
        w.begun_uj = t->node_uj - t->charged_uj;
    require(t->charged_uj == t->node_uj - w.begun_uj);
}

static void check_nothing_falls(void)
{
    const struct joule_ledger_totals *a = &before.totals, *b = &now.totals;
    uint64_t delta_uj = b->charged_uj - a->charged_uj;

    require(b->mono_ns >= a->mono_ns);
    require(b->charged_uj >= a->charged_uj);
    require(b->jobs_uj >= a->jobs_uj);
    require(b->unallocated_uj >= a->unallocated_uj);
    require(b->system_uj >= a->system_uj);
    require(b->multiple_uj >= a->multiple_uj);
    require(b->gone_uj >= a->gone_uj);
    require(now.slots >= before.slots);
    for (size_t i = 0; i < before.slots; i++) {
        const struct joule_row *x = &before.row[i], *y = &now.row[i];

        if (x->owner == 0 || x->owner != y->owner)
            continue;
        require(y->uj >= x->uj);
        for (int k = 0; k < JOULE_COMPONENTS; k++)
            require(y->component_uj[k] >= x->component_uj[k]);
        require(y->job_uj >= x->job_uj);
        require(y->job_uj >= y->uj);
        /* Nobody is charged more than the interval. */
        require(y->uj - x->uj <= delta_uj);
        if (x->state == JOULE_ROW_ENDED)
            require(y->uj == x->uj);
    }
}

static void look(void)
{
    now.slots = SLOTS;
    if (joule_ledger_read(w.reader, &now.totals, now.row, &now.slots) < 0) {
        ck_assert_int_eq(errno, ENODATA);
        return;
    }
    check_sums();
    check_nothing_falls();
    before = now;
}

START_TEST(test_random_histories)
{
    const char *text = getenv("JOULE_EVENTS");
    unsigned events =
        text ? (unsigned)strtoul(text, NULL, 0) : (unsigned)dice_rounds(100000);
    struct joule_ledger_totals *t = &now.totals;

    memset(&w, 0, sizeof(w));
    w.seed = dice_seed();
    w.now_ns = 1000 * S;
    tree_create(&w.tree);
    tree_write(&w.tree, "proc/sys/kernel/random/boot_id", "one\n");
    start_slurmd();
    w.reader = joule_ledger_open(w.tree.fd, "n1", NULL);
    ck_assert_ptr_nonnull(w.reader);
    while (w.events < events) {
        event();
        look();
    }
    /* All end: nothing is left of them. */
    if (!w.charge)
        start_slurmd();
    for (int i = 0; i < STEPS; i++)
        if (w.step[i].owner)
            end_process(&w.step[i], false);
    for (unsigned i = 0; i < joule_ledger_slots(w.writer); i++)
        joule_ledger_sweep(w.writer, w.tree.fd, i);
    w.now_ns++;
    sample();
    look();
    for (size_t i = 0; i < now.slots; i++)
        ck_assert_uint_eq(now.row[i].owner, 0);
    printf("%u events: %u steps, %u samples, %u restarts, %zu slots; "
           "%" PRIu64 " J: jobs %" PRIu64 ", unallocated %" PRIu64
           ", system %" PRIu64 ", multiple %" PRIu64 "; %" PRIu64
           " backwards, %" PRIu64 " unknown, %" PRIu64 " refused\n",
           w.events, w.steps, w.samples, w.restarts, now.slots,
           t->charged_uj / 1000000, t->jobs_uj / 1000000,
           t->unallocated_uj / 1000000, t->system_uj / 1000000,
           t->multiple_uj / 1000000, t->backwards, t->unknown, t->refused);
    fflush(stdout);
    /* The history had all of it. */
    ck_assert(events < 100000 || t->refused);
    ck_assert(events < 10000 ||
              (t->backwards && t->unknown && t->multiple_uj && t->jobs_uj &&
               t->system_uj && t->unallocated_uj &&
               w.restarts > events / 1000 && w.samples > events / 10));
    joule_ledger_destroy(w.reader);
    stop_slurmd();
    tree_destroy(&w.tree);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("charge_random");
    TCase *tc = tcase_create("charge_random");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(tc, test_random_histories);
    tcase_set_timeout(tc, 500);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

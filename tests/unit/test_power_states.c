/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The energy-saving potential of waits, against the formula as it is printed. */
#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/waits/power_states.h"
#include "tests/unit/dice.h"

static struct joule_power_states states;
static struct joule_power_envelope envelope;
static struct joule_error err;

static void load(const char *name)
{
    int fd = open(JOULE_SOURCE_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char path[128], *text;

    snprintf(path, sizeof(path), "etc/power-states/%s.conf", name);
    text = joule_file_load(fd, path, 1 << 16, NULL);
    ck_assert_msg(text != NULL, "cannot read %s", path);
    ck_assert_msg(joule_power_states_parse(&states, text, path, &err) == 0,
                  "%s", err.text);
    joule_power_envelope_make(&envelope, &states);
    free(text);
    close(fd);
}

/* ---- files ---- */

static const struct {
    const char *text, *sentence;
} wrong[] = {
    {"", "f: there are no states in it"},
    {"# only this\n", "f: there are no states in it"},
    {"state active_W idle_W transition_s\n1 2 1 0\n",
     "f, line 1: the header line has no column transition_J"},
    {"state active_W idle_W transition_s transition_J volts\n",
     "f, line 1: there is no column volts"},
    {"state active_W active_mW\n", "f, line 1: active_mW is told twice"},
    {"\nstate active_W idle_W transition_s transition_J\n1 2 1 0\n",
     "f, line 3: there is no number for transition_J"},
    {"state active_W idle_W transition_s transition_J\n1 2 1 0 0 0\n",
     "f, line 2: there are more numbers than columns"},
    {"state active_W idle_W transition_s transition_J\n1 2x 1 0 0\n",
     "f, line 2: this is no number in range for active_W"},
    {"state active_W idle_W transition_s transition_J\n1 -2 1 0 0\n",
     "f, line 2: this is no number in range for active_W"},
    {"state active_W idle_W transition_s transition_J\n1 2.0001 1 0 0\n",
     "f, line 2: this is no number in range for active_W"},
    {"state active_W idle_W transition_s transition_J\n1 2. 1 0 0\n",
     "f, line 2: this is no number in range for active_W"},
    {"state active_W idle_W transition_s transition_J\n1 100001 1 0 0\n",
     "f, line 2: this is no number in range for active_W"},
    {"state active_W idle_W transition_s transition_J\n"
     "1 99999999999999999999999 1 0 0\n",
     "f, line 2: this is no number in range for active_W"},
    {"state active_W idle_W transition_s transition_J\n2 2 1 0 0\n",
     "f, line 2: states are numbered 1, 2, 3 and so on"},
    {"state active_W idle_W transition_s transition_J\n1 1 2 0 0\n",
     "f, line 2: the idle power is above the active power"},
    {"state active_W idle_W transition_s transition_J\n1 2 1 0.1 0\n",
     "f, line 2: state 1 is where a wait begins: its transition is 0"},
    {"state active_W idle_W transition_s transition_J\n1 ? 1 0 0\n",
     "f, line 2: fill in what is not known yet of active_W"},
};

START_TEST(wrong_files)
{
    struct joule_power_states before;

    memset(&states, 7, sizeof(states));
    before = states;
    ck_assert_int_eq(
        joule_power_states_parse(&states, wrong[_i].text, "f", &err), -1);
    ck_assert_str_eq(err.text, wrong[_i].sentence);
    ck_assert_mem_eq(&states, &before, sizeof(states));
}
END_TEST

START_TEST(units)
{
    static const char text[] =
        "# a comment\n"
        "\n"
        "transition_us state idle_mW active_W transition_mJ frequency_MHz\r\n"
        "0 1 34300 58.8 0.000 2400 # behind\n"
        "10.5\t2 32580 53.130 100.25 1200";

    ck_assert_msg(joule_power_states_parse(&states, text, "f", &err) == 0, "%s",
                  err.text);
    ck_assert_uint_eq(states.count, 2);
    ck_assert_uint_eq(states.state[0].active_mw, 58800);
    ck_assert_uint_eq(states.state[0].idle_mw, 34300);
    ck_assert_uint_eq(states.state[1].active_mw, 53130);
    ck_assert_uint_eq(states.state[1].transition_ns, 10500);
    ck_assert_uint_eq(states.state[1].transition_uj, 100250);
}
END_TEST

START_TEST(most_states)
{
    char text[2048] = "state active_mW idle_mW transition_ns transition_uJ\n";
    size_t used = strlen(text);

    for (int i = 1; i <= 17; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "%d 9 8 0 0\n", i);
        ck_assert_int_eq(joule_power_states_parse(&states, text, "f", &err),
                         i <= 16 ? 0 : -1);
    }
    ck_assert_str_eq(err.text, "f, line 18: there are more than 16 states");
}
END_TEST

/* ---- the envelope ---- */

static joule_pj naive_pj(enum joule_wait_kind kind, uint64_t t)
{
    joule_pj most = 0;

    for (size_t p = 0; p < states.count; p++) {
        const struct joule_power_state *s = &states.state[p];
        joule_pj mw = kind == JOULE_WAIT_IDLE ? s->idle_mw : s->active_mw;
        joule_pj saving = (joule_pj)t * states.state[0].active_mw -
                          (((joule_pj)t - s->transition_ns) * mw +
                           (joule_pj)s->transition_uj * 1000000);

        if (s->transition_ns <= t && (p == 0 || saving > most))
            most = saving;
    }
    return most;
}

static void check_wait(uint64_t t)
{
    size_t piece = joule_power_piece(&envelope, t);
    struct joule_power_use use[JOULE_POWER_PIECES_MAX] = {{0, 0}};

    ck_assert_uint_le(envelope.piece[piece].from_ns, t);
    use[piece] = (struct joule_power_use){1, t};
    for (int kind = 0; kind < JOULE_WAIT_KINDS; kind++) {
        joule_pj naive = naive_pj((enum joule_wait_kind)kind, t);
        joule_pj ours =
            joule_power_saving_pj(&envelope, use, (enum joule_wait_kind)kind);

        ck_assert_msg(naive == ours, "wait of %llu ns: %g, not %g pJ",
                      (unsigned long long)t, (double)ours, (double)naive);
    }
}

static void check_envelope(uint64_t *seed)
{
    joule_power_envelope_make(&envelope, &states);
    ck_assert_uint_le(envelope.pieces, JOULE_POWER_PIECES_MAX);
    for (size_t i = 0; i < envelope.pieces; i++)
        for (uint64_t d = 0; d < 3; d++)
            if (envelope.piece[i].from_ns + d > 0)
                check_wait(envelope.piece[i].from_ns + d - 1);
    for (int i = 0; i < 200; i++)
        check_wait(dice64(seed) >> dice(seed, 64));
    check_wait(0);
    check_wait(UINT64_MAX);
}

/* Tables of all sorts, also such as no processor has. */
START_TEST(random_tables)
{
    uint64_t seed = dice_seed();

    for (int round = 0; round < dice_rounds(2000); round++) {
        uint64_t most_mw = 1 + dice(&seed, 100000);
        uint64_t most_ns = 1 + (dice64(&seed) >> (24 + dice(&seed, 40)));
        uint64_t most_uj = 1 + (dice64(&seed) >> (28 + dice(&seed, 36)));

        states.count = 1 + dice(&seed, JOULE_POWER_STATES_MAX);
        for (size_t p = 0; p < states.count; p++) {
            struct joule_power_state *s = &states.state[p];

            s->active_mw = dice(&seed, most_mw + 1);
            s->idle_mw = dice(&seed, s->active_mw + 1);
            s->transition_ns = p ? dice(&seed, most_ns) : 0;
            s->transition_uj = p ? dice(&seed, most_uj) : 0;
        }
        check_envelope(&seed);
    }
}
END_TEST

START_TEST(tables_of_the_paper)
{
    static const char *const names[] = {"opteron", "xeon", "juropa"};
    uint64_t seed = dice_seed();

    load(names[_i]);
    ck_assert_uint_eq(states.count, 5);
    check_envelope(&seed);
}
END_TEST

/* A wait that is shorter than the transition does not use the state, however much
 * that would save. */
START_TEST(transition_is_waited_for)
{
    states =
        (struct joule_power_states){2, {{1000, 900, 0, 0}, {1000, 0, 1000, 0}}};
    joule_power_envelope_make(&envelope, &states);
    ck_assert_uint_eq(
        envelope.piece[joule_power_piece(&envelope, 999)].state[0], 0);
    ck_assert_uint_eq(
        envelope.piece[joule_power_piece(&envelope, 1000)].state[0], 1);
}
END_TEST

/* Table 4 of the paper; the two rows left out do not follow from Time * A_1. */
static const struct {
    const char *machine;
    double time_s, energy_j, esp_j, esp_percent;
} rows[] = {
    {"juropa", 1863.74, 1.10e5, 4.99e4, 45.36},
    {"juropa", 1.21e5, 7.09e6, 3.36e6, 47.39},
    {"juropa", 1.48e5, 8.7e6, 4.00e6, 45.98},
    {"xeon", 129.46, 4618.96, 2127.97, 46.07},
    {"xeon", 8896.07, 3.17e5, 1.47e5, 46.37},
    {"opteron", 878.57, 1.15e4, 7458.22, 64.85},
    {"opteron", 2.62e4, 3.43e5, 2.40e5, 69.97},
};

/* The saving of so many equal waits. */
static double saving_j(double time_s, double waits)
{
    uint64_t ns = (uint64_t)(time_s / waits * 1e9);
    struct joule_power_use use[JOULE_POWER_PIECES_MAX] = {{0, 0}};
    size_t piece = joule_power_piece(&envelope, ns);

    use[piece] = (struct joule_power_use){(uint64_t)waits,
                                          (joule_pj)ns * (uint64_t)waits};
    return (double)joule_power_saving_pj(&envelope, use, JOULE_WAIT_IDLE) /
           1e12;
}

/* The energy follows from the time; and unless it is more than the best state can
 * save at all, there is a number of waits for which the saving is as printed. */
START_TEST(table_4)
{
    double few = 1, many = 1e7, most, energy_j;

    load(rows[_i].machine);
    energy_j = rows[_i].time_s * (double)states.state[0].active_mw / 1e3;
    ck_assert_double_le(fabs(energy_j / rows[_i].energy_j - 1), 0.006);
    ck_assert_double_le(
        fabs(100 * rows[_i].esp_j / energy_j - rows[_i].esp_percent), 0.4);
    most = saving_j(rows[_i].time_s, 1);
    if (rows[_i].esp_j > most) {
        ck_assert_str_eq(rows[_i].machine, "opteron");
        return;
    }
    while (many - few > 1) {
        double middle = floor((few + many) / 2);

        if (saving_j(rows[_i].time_s, middle) > rows[_i].esp_j)
            few = middle;
        else
            many = middle;
    }
    ck_assert_double_le(
        fabs(saving_j(rows[_i].time_s, few) / rows[_i].esp_j - 1), 1e-3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("power_states");
    TCase *tc = tcase_create("power_states");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tc, wrong_files, 0,
                        (int)(sizeof(wrong) / sizeof(wrong[0])));
    tcase_add_test(tc, units);
    tcase_add_test(tc, most_states);
    tcase_add_test(tc, random_tables);
    tcase_add_loop_test(tc, tables_of_the_paper, 0, 3);
    tcase_add_test(tc, transition_is_waited_for);
    tcase_add_loop_test(tc, table_4, 0, (int)(sizeof(rows) / sizeof(rows[0])));
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

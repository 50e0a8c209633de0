/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What stands in the files of users, and when it changes. */
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/node/user_file.h"
#include "tests/unit/userrows.h"

static bool has_file(unsigned uid)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof(path), USERS "/%u/rows", uid);
    return fstatat(tree.fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

START_TEST(test_rows_of_one_user)
{
    struct joule_row *row = put_row(0, 1000, 7, 4 * S);

    row->uj = 3000000;
    row->job_uj = 9000000;
    row->mw = 77; /* over a time that is not the user's business */
    put_row(1, 1001, 8, 4 * S)->uj = 5;
    row = put_row(9, 1000, 7, 5 * S);
    row->kind = JOULE_STEP_EXTERN;
    row->state = JOULE_ROW_ENDED;
    row->ended_ns = 6 * S;
    row->uj = 11000000;
    publish(10 * S);

    must_read(1000, 2);
    ck_assert_int_eq(totals.mono_ns, 10 * S);
    ck_assert_int_eq(totals.wall_ns, WALL + 10 * S);
    ck_assert_int_eq(totals.period_ns, S);
    ck_assert_int_eq(totals.sample_period_ns, 2 * S);
    ck_assert_int_eq(totals.how, JOULE_ATTRIBUTION_ALLOC);
    for (size_t i = 0; i < 2; i++) {
        const struct joule_user_row *r = &got[i];
        bool second = r->step == 9;

        ck_assert_uint_eq(r->job, 7);
        ck_assert_uint_eq(r->cpu_count, 2);
        ck_assert_uint_eq(r->job_cpu_count, 3);
        ck_assert_uint_eq(r->kind,
                          second ? JOULE_STEP_EXTERN : JOULE_STEP_NUMBERED);
        ck_assert_uint_eq(r->state,
                          second ? JOULE_ROW_ENDED : JOULE_ROW_RUNNING);
        ck_assert_int_eq(r->began_ns, second ? 5 * S : 4 * S);
        ck_assert_int_eq(r->ended_ns, second ? 6 * S : 0);
        ck_assert_uint_eq(r->uj, second ? 11000000 : 3000000);
        ck_assert_uint_eq(r->job_uj, second ? 0 : 9000000);
        /* 3 J in the 6 s since it began. */
        ck_assert_uint_eq(r->mw, second ? 0 : 500);
    }
    must_read(1001, 1);
    ck_assert_uint_eq(got[0].uj, 5);
    must_not_read(1002, ENOENT, "user 1002 has had no step");
}
END_TEST

START_TEST(test_less_room_than_rows)
{
    for (unsigned i = 0; i < 5; i++)
        put_row(i, 1000, i, 0);
    publish(S);
    got_count = 3;
    ck_assert_int_eq(joule_userview_read(tree.fd, "n1", 1000, &totals, got,
                                         &got_count, &err),
                     0);
    ck_assert_uint_eq(got_count, 3);
}
END_TEST

/* Samples each 10 ms, and some that somebody asked for in between. */
START_TEST(test_no_more_often_than_the_period)
{
    struct joule_row *row = put_row(0, 1000, 7, 0);
    int64_t last_ns = 0, shortest_ns = INT64_MAX, seen = 0;
    uint64_t last_uj = 0;

    for (int64_t now = S; now < 21 * S; now += now % 3 ? 10 * MS : 1 * MS) {
        row->uj += 1000;
        publish(now);
        must_read(1000, 1);
        if (totals.mono_ns == last_ns) {
            ck_assert_uint_eq(got[0].uj, last_uj);
            continue;
        }
        ck_assert_int_eq(totals.mono_ns, now);
        if (last_ns > 0 && now - last_ns < shortest_ns)
            shortest_ns = now - last_ns;
        last_ns = now;
        last_uj = got[0].uj;
        seen++;
    }
    ck_assert_int_ge(shortest_ns, S - S / 16);
    ck_assert_int_ge(seen, 20);
    ck_assert_int_le(seen, 21);
}
END_TEST

/* A thread that wakes up a little early or late shows each second. */
START_TEST(test_samples_show_each_second)
{
    struct joule_row *row = put_row(0, 1000, 7, 0);
    static const int64_t late_ns[] = {90000, -10000,  0,       3 * MS,
                                      0,     50 * MS, -50 * MS};

    for (int64_t i = 0; i < 70; i++) {
        int64_t now = (100 + i) * S + late_ns[i % 7];

        row->uj += 1000;
        publish(now);
        must_read(1000, 1);
        ck_assert_int_eq(totals.mono_ns, now);
    }
    /* Much too late: a whole period again from there. */
    publish(200 * S + 400 * MS);
    row->uj++;
    publish(201 * S);
    must_read(1000, 1);
    ck_assert_int_eq(totals.mono_ns, 200 * S + 400 * MS);
    publish(201 * S + 400 * MS);
    must_read(1000, 1);
    ck_assert_int_eq(totals.mono_ns, 201 * S + 400 * MS);
}
END_TEST

/* Power is the mean between two numbers of the user's. */
START_TEST(test_power)
{
    struct joule_row *row = put_row(0, 1000, 7, 9 * S);

    publish(10 * S);
    must_read(1000, 1);
    ck_assert_uint_eq(got[0].mw, 0);
    row->uj = 40000000;
    publish(10 * S + 500 * MS);
    row->uj = 50000000;
    publish(12 * S);
    must_read(1000, 1);
    ck_assert_uint_eq(got[0].mw, 25000);
    publish(13 * S);
    must_read(1000, 1);
    ck_assert_uint_eq(got[0].mw, 0);
    ck_assert_int_eq(totals.mono_ns, 13 * S);
    /* Nothing has changed: nothing is written. */
    publish(20 * S);
    must_read(1000, 1);
    ck_assert_int_eq(totals.mono_ns, 13 * S);
    row->uj += 14000000;
    publish(27 * S);
    must_read(1000, 1);
    ck_assert_uint_eq(got[0].mw, 1000);
    /* A ledger that was begun anew. */
    row->uj = 0;
    publish(28 * S);
    must_read(1000, 1);
    ck_assert_uint_eq(got[0].mw, 0);
    row->uj = UINT64_MAX;
    publish(29 * S);
    must_read(1000, 1);
    ck_assert_uint_eq(got[0].mw, UINT32_MAX);
}
END_TEST

/* A user begins and ends steps when he likes: what they had between two moments
 * of all files is in whole joules. */
START_TEST(test_short_times)
{
    struct joule_row *row = put_row(0, 1000, 7, 10 * S - 87 * MS);

    row->uj = row->job_uj = 8654321;
    row->component_uj[JOULE_COMPONENT_CPU] = 6700000;
    row->component_uj[JOULE_COMPONENT_MEMORY] = 1400000;
    publish(10 * S);
    must_read(1000, 1);
    ck_assert_uint_eq(got[0].uj, 9000000);
    ck_assert_uint_eq(got[0].job_uj, 9000000);
    ck_assert_uint_eq(got[0].component_uj[JOULE_COMPONENT_CPU], 7000000);
    ck_assert_uint_eq(got[0].component_uj[JOULE_COMPONENT_MEMORY], 1000000);
    /* At these moments, a period apart, as it is. */
    row->uj = row->job_uj = 108400001;
    publish(11 * S);
    must_read(1000, 1);
    ck_assert_uint_eq(got[0].uj, 108400001);
    /* Never less than before. */
    row->uj = row->job_uj = 108400002;
    row->state = JOULE_ROW_ENDED;
    row->ended_ns = 11 * S + MS;
    publish(12 * S);
    must_read(1000, 1);
    ck_assert_uint_eq(got[0].uj, 108400001);
    row = put_row(1, 1001, 8, 11 * S);
    row->uj = 117400003;
    row->job_uj = 300500000;
    row->state = JOULE_ROW_ENDED;
    row->ended_ns = 12 * S + 87 * MS;
    publish(13 * S);
    must_read(1001, 1);
    ck_assert_uint_eq(got[0].uj, 117000000);
    ck_assert_uint_eq(got[0].job_uj, 301000000);
}
END_TEST

START_TEST(test_what_has_gone_stays_a_minute)
{
    struct joule_row *row = put_row(0, 1000, 7, S);

    put_row(1, 1000, 8, S);
    publish(10 * S);
    /* The one ends and its row is dropped between two numbers; the other has
     * no end: its slurmstepd was killed. */
    row->uj = 123000000;
    row->state = JOULE_ROW_ENDED;
    row->ended_ns = 10 * S + 100 * MS;
    publish(10 * S + 100 * MS);
    remove_row(0);
    remove_row(1);
    publish(10 * S + 200 * MS);
    must_read(1000, 2);
    ck_assert_uint_eq(got[0].state, JOULE_ROW_RUNNING);
    publish(11 * S);
    must_read(1000, 2);
    for (size_t i = 0; i < 2; i++) {
        bool killed = got[i].job == 8;

        ck_assert_uint_eq(got[i].state, JOULE_ROW_ENDED);
        ck_assert_int_eq(got[i].ended_ns, killed ? 0 : 10 * S + 100 * MS);
        ck_assert_uint_eq(got[i].uj, killed ? 0 : 123000000);
    }
    publish(70 * S);
    must_read(1000, 2);
    publish(71 * S);
    ck_assert(!has_file(1000));
    must_not_read(1000, ENOENT, "no step here in the last minute");
    put_row(0, 1000, 9, 72 * S);
    publish(72 * S);
    must_read(1000, 1);
}
END_TEST

/* The next step has the slot at once; one with the same slot and process
 * number, but of another user, is none of his. */
START_TEST(test_a_slot_changes_hands)
{
    put_row(0, 1000, 7, S)->uj = 1;
    publish(10 * S);
    put_row(0, 1001, 8, S)->uj = 2;
    publish(11 * S);
    must_read(1000, 1);
    ck_assert_uint_eq(got[0].state, JOULE_ROW_ENDED);
    ck_assert_uint_eq(got[0].uj, 1);
    must_read(1001, 1);
    rows[0].uid = 1002;
    rows[0].uj = 3;
    publish(12 * S);
    must_read(1001, 1);
    ck_assert_uint_eq(got[0].uj, 2);
    ck_assert_uint_eq(got[0].state, JOULE_ROW_ENDED);
    must_read(1002, 1);
    ck_assert_uint_eq(got[0].uj, 3);
    /* No user has this number. */
    rows[0].uid = UINT32_MAX;
    publish(13 * S);
    ck_assert(!has_file(UINT32_MAX));
}
END_TEST

/* Many short steps of one user: the last ones are remembered, and no other
 * user loses anything. */
START_TEST(test_short_steps_do_not_pile_up)
{
    int64_t now = 10 * S;

    put_row(1, 1001, 1, 10 * S);
    publish(now);
    remove_row(1);
    for (unsigned i = 0; i < 10000; i++) {
        put_row(0, 1000, 100 + i, now)->uj = i;
        publish(now += 5 * MS);
        remove_row(0);
        publish(now += MS / 10);
    }
    publish(now += S);
    must_read(1001, 1);
    must_read(1000, JOULE_USERVIEW_PAST);
    for (size_t i = 0; i < got_count; i++)
        ck_assert_uint_ge(got[i].job, 10100 - JOULE_USERVIEW_PAST);
    publish(now + 61 * S);
    ck_assert(!has_file(1000));
}
END_TEST

/* As many users as there are slots, and then others, three times. */
START_TEST(test_users_come_and_go)
{
    int64_t now = 10 * S;
    unsigned files = 0;

    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < JOULE_LEDGER_SLOTS_MAX; i++)
            put_row(i, 10000 + 2000 * round + i, i, now)->uj = i;
        publish(now += S);
    }
    for (unsigned uid = 10000; uid < 16000; uid++)
        files += has_file(uid);
    ck_assert_uint_eq(files, JOULE_USERVIEW_USERS);
    for (unsigned i = 0; i < JOULE_LEDGER_SLOTS_MAX; i++) {
        must_read(14000 + i, 1);
        ck_assert_uint_eq(got[0].uj, i);
    }
    /* All of one user; what is past is still there. */
    for (unsigned i = 0; i < JOULE_LEDGER_SLOTS_MAX; i++)
        put_row(i, 500, i, now);
    publish(now += S);
    must_read(500, JOULE_LEDGER_SLOTS_MAX);
    must_read(14001, 1);
    memset(rows, 0, sizeof(rows));
    publish(now += S);
    must_read(500, JOULE_USERVIEW_PAST);
    publish(now + 61 * S);
    for (unsigned uid = 0; uid < 16000; uid++)
        ck_assert(!has_file(uid));
}
END_TEST

/* Between two periods, as long as a row of the user is in the ledger. */
START_TEST(test_a_file_stays_open)
{
    unsigned fds = tree_open_fds();
    struct joule_row *row = put_row(0, 1000, 7, S);

    for (int64_t i = 10; i < 20; i++) {
        row->uj += 1000;
        publish(i * S);
        ck_assert_uint_eq(tree_open_fds(), fds + 1);
    }
    /* Somebody has tidied up. */
    tree_remove(&tree, USERS "/1000/rows");
    row->uj++;
    publish(20 * S);
    must_read(1000, 1);
    ck_assert_uint_eq(got[0].uj, 10001);
    ck_assert_uint_eq(tree_open_fds(), fds + 1);
    /* Ended, then gone: the same numbers. */
    row->state = JOULE_ROW_ENDED;
    publish(21 * S);
    ck_assert_uint_eq(tree_open_fds(), fds + 1);
    remove_row(0);
    publish(22 * S);
    must_read(1000, 1);
    ck_assert_uint_eq(got[0].state, JOULE_ROW_ENDED);
    ck_assert_uint_eq(tree_open_fds(), fds);
    /* He comes back, and another user takes over from him. */
    put_row(0, 1000, 8, 23 * S);
    publish(23 * S);
    must_read(1000, 2);
    put_row(0, 1001, 9, 24 * S);
    publish(24 * S);
    must_read(1000, 2);
    must_read(1001, 1);
    ck_assert_uint_eq(tree_open_fds(), fds + 1);
}
END_TEST

#define MANY (JOULE_USERVIEW_OPEN + 36)

START_TEST(test_few_files_stay_open)
{
    unsigned fds = tree_open_fds();

    for (unsigned user = 0; user < MANY; user++)
        put_row(user, 1000 + user, 7, S);
    for (int64_t i = 10; i < 13; i++) {
        for (unsigned user = 0; user < MANY; user++)
            rows[user].uj = (uint64_t)i;
        publish(i * S);
        for (unsigned user = 0; user < MANY; user++) {
            must_read(1000 + user, 1);
            ck_assert_uint_eq(got[0].uj, (uint64_t)i);
        }
        ck_assert_uint_eq(tree_open_fds(), fds + JOULE_USERVIEW_OPEN);
    }
    joule_userview_destroy(view);
    view = open_view(S);
    ck_assert_uint_eq(tree_open_fds(), fds);
}
END_TEST

START_TEST(test_another_writer_begins_anew)
{
    put_row(0, 1000, 7, S);
    publish(10 * S);
    joule_userview_destroy(view);
    must_read(1000, 1);
    view = open_view(S);
    must_not_read(1000, ENOENT, "no step");
    publish(11 * S);
    must_read(1000, 1);
    tree_write(&tree, "proc/sys/kernel/random/boot_id", "two\n");
    must_not_read(1000, ESTALE, "another boot");
    joule_userview_destroy(NULL);
}
END_TEST

/* Each file has the rows of one moment, whenever it is read: this process
 * writes as fast as it can, two others read. */
#define LEAST   100
#define MOMENTS 2000

static int read_for_a_while(void)
{
    int64_t last_ns = 0;

    while (last_ns < MOMENTS) {
        size_t running = 0;

        /* On a busy machine a reader may meet the writer each time: nobody
         * writes like this but here. */
        if (try_read(1000) < 0) {
            if (errno != EBADMSG)
                return 1;
            continue;
        }
        if (totals.mono_ns < last_ns)
            return 2;
        last_ns = totals.mono_ns;
        for (size_t k = 0; k < got_count; k++) {
            bool runs = got[k].state == JOULE_ROW_RUNNING;

            running += runs;
            if (runs ? got[k].uj != (uint64_t)last_ns
                     : got[k].uj >= (uint64_t)last_ns)
                return 3;
        }
        if (running != (size_t)(LEAST + last_ns % LEAST))
            return 4;
    }
    return 0;
}

static void write_moment(int64_t now)
{
    unsigned n = LEAST + (unsigned)(now % LEAST);

    for (unsigned i = 0; i < 2 * LEAST; i++) {
        if (i >= n)
            remove_row(i);
        else if (rows[i].owner == 0)
            put_row(i, 1000, 1, 0);
        rows[i].uj = (uint64_t)now;
    }
    publish(now);
}

START_TEST(test_readers_and_the_writer)
{
    int64_t now = 1000;
    pid_t pid[2];
    int status, left = 2;

    joule_userview_destroy(view);
    view = open_view(1);
    write_moment(now);
    for (int p = 0; p < 2; p++) {
        pid[p] = fork();
        if (pid[p] == 0)
            _exit(read_for_a_while());
    }
    while (left > 0) {
        write_moment(++now);
        for (int p = 0; p < 2; p++)
            if (pid[p] && waitpid(pid[p], &status, WNOHANG) == pid[p]) {
                ck_assert_int_eq(status, 0);
                pid[p] = 0;
                left--;
            }
    }
    ck_assert_int_ge(now, MOMENTS);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("userview");

    tcase_add_test(tc, test_rows_of_one_user);
    tcase_add_test(tc, test_less_room_than_rows);
    tcase_add_test(tc, test_no_more_often_than_the_period);
    tcase_add_test(tc, test_samples_show_each_second);
    tcase_add_test(tc, test_power);
    tcase_add_test(tc, test_short_times);
    tcase_add_test(tc, test_what_has_gone_stays_a_minute);
    tcase_add_test(tc, test_a_slot_changes_hands);
    tcase_add_test(tc, test_short_steps_do_not_pile_up);
    tcase_add_test(tc, test_users_come_and_go);
    tcase_add_test(tc, test_a_file_stays_open);
    tcase_add_test(tc, test_few_files_stay_open);
    tcase_add_test(tc, test_another_writer_begins_anew);
    tcase_add_test(tc, test_readers_and_the_writer);
    return run_test("userview", tc);
}

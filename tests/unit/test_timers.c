/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_timers.c - Slurm's timers of profiles, which this program has in the
 * place of libslurmfull.
 */
#include <check.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "plugins/slurm_abi/timers.h"

#ifndef TIMERS
#define TIMERS 4
#endif

/* As in all releases. */
__attribute__((visibility("default"))) struct {
    int freq;
    time_t last_notify;
    pthread_cond_t notify;
    pthread_mutex_t notify_mutex;
} acct_gather_profile_timer[TIMERS];

#if TIMERS == 4
/* Waits once, in the way of Slurm's threads. */
static void *wait_once(void *arg)
{
    int i = (int)(intptr_t)arg;

    pthread_mutex_lock(&acct_gather_profile_timer[i].notify_mutex);
    pthread_cond_wait(&acct_gather_profile_timer[i].notify,
                      &acct_gather_profile_timer[i].notify_mutex);
    pthread_mutex_unlock(&acct_gather_profile_timer[i].notify_mutex);
    return NULL;
}

static void pause_ms(long ms)
{
    struct timespec ts = {.tv_nsec = ms * 1000000};

    nanosleep(&ts, NULL);
}

START_TEST(test_period)
{
    struct joule_timers *timers = joule_timers_find();

    ck_assert_ptr_eq((void *)timers, (void *)acct_gather_profile_timer);
    acct_gather_profile_timer[0].freq = 7;
    acct_gather_profile_timer[1].freq = 30;
    ck_assert_int_eq(joule_timers_energy_s(timers), 7);
    ck_assert_int_eq(joule_timers_energy_s(NULL), 0);
}
END_TEST

/* Each of them, again and again: who waits only later is woken too. */
START_TEST(test_wake)
{
    struct joule_timers *timers = joule_timers_find();
    struct joule_ticker *ticker;
    struct joule_error err;
    pthread_t thread[TIMERS];

    ticker = joule_timers_wake(timers, &err);
    ck_assert_ptr_nonnull(ticker);
    pause_ms(50);
    for (int i = 0; i < TIMERS; i++)
        ck_assert_int_eq(
            pthread_create(&thread[i], NULL, wait_once, (void *)(intptr_t)i),
            0);
    for (int i = 0; i < TIMERS; i++) /* the time limit is Check's */
        pthread_join(thread[i], NULL);
    joule_ticker_destroy(ticker);
}
END_TEST
#else
START_TEST(test_other_size)
{
    acct_gather_profile_timer[0].freq = 7;
    ck_assert_ptr_null(joule_timers_find());
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("timers");
    TCase *tcase = tcase_create("timers");
    SRunner *runner = srunner_create(suite);
    int failed;

#if TIMERS == 4
    tcase_add_test(tcase, test_period);
    tcase_add_test(tcase, test_wake);
#else
    tcase_add_test(tcase, test_other_size);
#endif
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

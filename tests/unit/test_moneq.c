/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The interface of MonEQ (moneq.h), as programs have it that were written for that. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/powermon_bgq.h"
#include "tests/unit/regionstep.h"

/* In a task: what is false ends it. */
#define must(is_true)                                                          \
    do {                                                                       \
        if (!(is_true)) {                                                      \
            fprintf(stderr, "line %d: %s\n", __LINE__, #is_true);              \
            _exit(1);                                                          \
        }                                                                      \
    } while (0)

static void is_counted(const char *name, uint64_t count)
{
    ck_assert_msg(regionstep_sum(name).count == count, "%s: %llu", name,
                  (unsigned long long)regionstep_sum(name).count);
}

static int start(const char *name)
{
    return MonEQ_StartPowerTag((char *)name);
}

static int end(const char *name)
{
    return MonEQ_EndPowerTag((char *)name);
}

static void tags(void)
{
    char name[] = "copied";

    must(strcmp(MonEQ_GetLastErrorMessage(), "No last error message.") == 0);
    must(MonEQ_MonitorAgentOnRank() == 0);
    must(start("early") == ENOTAGENTONRANK);
    must(MonEQ_Initialize() == MonEQ_SUCCESS);
    must(MonEQ_MonitorAgentOnRank() == 1);
    must(start("outer") == 0 && start(name) == 0);
    strcpy(name, "XXXXXX");
    must(end("copied") == 0 && end("outer") == 0);
    must(start("again") == 0 && start("again") == 0);
    must(end("again") == 0 && end("again") == 0);
    must(end("again") == EFINDPWRTAGNM);
    must(start("a") == 0 && start("b") == 0 && end("a") == 0 && end("b") == 0);
    must(start("") == 0 && end("") == 0);
    must(start("tab\tand/slash,") == 0 && end("tab\tand/slash,") == 0);
    must(start("with space") == EMKPWRTAGSP);
    must(strstr(MonEQ_GetLastErrorMessage(), "space") != NULL);
    must(start(NULL) == EMKPWRTAG && end(NULL) == EFINDPWRTAGNM);
    must(end("never begun") == EFINDPWRTAGNM);
    must(start("unended") == 0);
    must(MonEQ_Finalize() == MonEQ_SUCCESS);
    must(MonEQ_MonitorAgentOnRank() == 0);
    must(end("unended") == ENOTAGENTONRANK);
}

START_TEST(tags_are_regions)
{
    regionstep_run(tags);
    regionstep_end();
    is_counted("early", 0);
    is_counted("outer", 1);
    is_counted("copied", 1);
    is_counted("again", 2);
    is_counted("a", 1);
    is_counted("b", 1);
    is_counted("tab\tand/slash,", 1);
    is_counted("with space", 0);
    ck_assert_uint_eq(regionstep_sum("unended").unended, 1);
    ck_assert_uint_eq(step.processes[0].without_begin, 0);
}
END_TEST

/* Its tags are regions, too. */
static void other_rank(void)
{
    setenv("SLURM_LOCALID", "3", 1);
    must(MonEQ_Initialize() == MonEQ_SUCCESS);
    must(MonEQ_MonitorAgentOnRank() == 0);
    must(MonEQ_GetPower() < 0);
    must(start("solve") == ENOTAGENTONRANK && end("solve") == ENOTAGENTONRANK);
    must(end("solve") == EFINDPWRTAGNM);
    must(MonEQ_Finalize() == 0);
}

START_TEST(not_the_agent)
{
    regionstep_run(other_rank);
    regionstep_end();
    is_counted("solve", 1);
}
END_TEST

static void many_names(void)
{
    char name[16];
    int i;

    must(MonEQ_Initialize() == 0);
    for (i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        if (start(name) != 0)
            break;
        must(end(name) == 0);
    }
    must(i == MAX_TAGS && start(name) == EMKPWRTAG);
    must(start("t999") == 0 && end("t999") == 0);
    must(MonEQ_Finalize() == 0);
}

START_TEST(too_many_names)
{
    regionstep_run(many_names);
    regionstep_end();
    is_counted("t999", 2);
}
END_TEST

/* Without a step nothing is recorded, and every function returns. */
START_TEST(nothing_is_recorded)
{
    double watts[7], volts[14], amperes[14];
    uint32_t ratio[7];
    int id[7];

    unsetenv("SLURM_JOB_ID");
    ck_assert_int_eq(MonEQ_Initialize(), EEMONERR);
    ck_assert_str_ne(MonEQ_GetLastErrorMessage(), "No last error message.");
    ck_assert_int_eq(MonEQ_MonitorAgentOnRank(), 1);
    ck_assert_int_eq(start("x"), 0);
    ck_assert_int_eq(end("x"), 0);
    ck_assert(MonEQ_GetPower() < 0);
    ck_assert(MonEQ_GetDomainPower(watts) < 0 && isnan(watts[6]));
    ck_assert(MonEQ_GetDomainPowerByDCA(watts, watts) < 0);
    ck_assert(MonEQ_GetVoltageAndCurrent(volts, amperes) < 0 &&
              isnan(volts[13]) && isnan(amperes[0]));
    ck_assert_int_eq(MonEQ_GetVTMRatio(ratio), 0);
    ck_assert_uint_eq(ratio[6], 1);
    ck_assert_int_eq(MonEQ_GetDomainIDs(id), 0);
    ck_assert_int_eq(id[6], 6);
    ck_assert_int_eq(MonEQ_GetNumDomains(), 7);
    ck_assert_int_eq(MonEQ_GetNumDCA(), 2);
    MonEQ_PrintDomainInfo();
    MonEQ_PrintVTMRatio();
    MonEQ_PrintPowerTagsList();
    ck_assert_int_eq(MonEQ_Finalize(), 0);
    MonEQ_DisableCollection();
    ck_assert_int_eq(MonEQ_Initialize(), EEMONERR);
    ck_assert_int_eq(MonEQ_Finalize(), 0);
}
END_TEST

START_TEST(settings_and_errors)
{
    MonEQ_ERROR *error = new_moneq_error(EFSTCOLLSHORT, (char *)"short");
    uint64_t ticks = GetTimeBase();

    ck_assert_int_eq(error->err_num, -9);
    ck_assert_str_eq(MonEQ_GetMessageForError(*error), "short");
    error->error_message = NULL;
    ck_assert_str_eq(MonEQ_GetMessageForError(*error), "");
    free(error);
    ck_assert_int_eq(MonEQ_SetFirstCollectionDelay(2, 999999), EFSTCOLLSHORT);
    ck_assert_int_eq(MonEQ_SetFirstCollectionDelay(3, 0), 0);
    ck_assert_int_eq(MonEQ_SetCollectionInterval(0, 0), 0);
    usleep(10000);
    ck_assert_uint_ge(GetTimeBase() - ticks, 16000000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("moneq");
    TCase *c = tcase_create("tags");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(c, regionstep_setup, regionstep_teardown);
    tcase_add_test(c, tags_are_regions);
    tcase_add_test(c, not_the_agent);
    tcase_add_test(c, too_many_names);
    suite_add_tcase(s, c);
    c = tcase_create("without a step");
    tcase_add_test(c, nothing_is_recorded);
    tcase_add_test(c, settings_and_errors);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

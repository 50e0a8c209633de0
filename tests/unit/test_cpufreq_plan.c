/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cpufreq/plan.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static const struct joule_cpufreq_rules all = {.governors =
                                                   JOULE_GOVERNORS_ALL};

/* The rows of machines: what is different about them. */
static const struct joule_cpufreq_policy machines[] = {
    {.driver = "acpi-cpufreq",
     .hw_min_khz = 1500000,
     .hw_max_khz = 3000000,
     .step_khz = {1500000, 2000000, 2600000, 3000000},
     .step_count = 4,
     .governors =
         "conservative ondemand userspace powersave performance schedutil",
     .now = {.governor = "ondemand", .min_khz = 1500000, .max_khz = 3000000}},
    {.driver = "intel_pstate",
     .hw_min_khz = 800000,
     .hw_max_khz = 3700000,
     .governors = "performance powersave",
     .epps = "default performance balance_performance balance_power power",
     .now = {.governor = "powersave",
             .epp = "balance_performance",
             .min_khz = 800000,
             .max_khz = 3700000}},
    {.driver = "acpi-cpufreq", /* a kernel with schedutil alone */
     .hw_min_khz = 1500000,
     .hw_max_khz = 3000000,
     .step_khz = {1500000, 3000000},
     .step_count = 2,
     .governors = "performance schedutil",
     .now = {.governor = "schedutil", .min_khz = 1500000, .max_khz = 3000000}},
    {.driver = "amd-pstate",
     .mode = "guided",
     .hw_min_khz = 400000,
     .hw_max_khz = 4000000,
     .governors = "userspace schedutil performance",
     .now = {.governor = "schedutil", .min_khz = 400000, .max_khz = 4000000}},
    {.driver = "amd-pstate",
     .mode = "passive",
     .hw_min_khz = 400000,
     .hw_max_khz = 4000000,
     .governors = "userspace schedutil performance",
     .now = {.governor = "schedutil", .min_khz = 400000, .max_khz = 4000000}},
    {.driver = "amd-pstate-epp",
     .hw_min_khz = 400000,
     .hw_max_khz = 4000000,
     .governors = "performance powersave",
     .epps = "performance power",
     .now = {.governor = "performance",
             .epp = "performance",
             .min_khz = 400000,
             .max_khz = 4000000}},
    {.driver = "some-new-driver",
     .hw_min_khz = 1000000,
     .hw_max_khz = 1000000,
     .governors = "userspace powersave",
     .now = {.governor = "userspace",
             .min_khz = 1000000,
             .max_khz = 1000000,
             .setspeed_khz = 1000000}},
    {.driver = "intel_cpufreq",
     .hw_min_khz = 800000,
     .hw_max_khz = 3700000,
     .governors = "userspace ondemand powersave",
     .now = {.governor = "ondemand",
             .epp = "power",
             .min_khz = 1000000,
             .max_khz = 2000000}},
    {.driver = "cppc_cpufreq",
     .hw_min_khz = 1000000,
     .hw_max_khz = 3000000,
     .governors = "userspace schedutil",
     .now = {.governor = "schedutil", .min_khz = 1000000, .max_khz = 3000000}},
    {.driver = "pcc-cpufreq",
     .hw_min_khz = 1200000,
     .hw_max_khz = 2933000,
     .governors = "userspace ondemand",
     .now = {.governor = "ondemand", .min_khz = 1200000, .max_khz = 2933000}},
};

enum { ACPI, PSTATE, SCHEDUTIL, GUIDED, PASSIVE, EPP, OTHER, INTEL, CPPC, PCC };

/* The plan as text: the writes from the machine's state to it. */
static int plan_text(const struct joule_cpufreq_policy *p, const char *request,
                     const struct joule_cpufreq_rules *rules, char buf[512],
                     struct joule_error *err)
{
    struct joule_write_op ops[JOULE_CPUFREQ_OPS_MAX];
    struct joule_cpufreq_plan plan;
    struct joule_request r;
    unsigned count;
    int rc;

    ck_assert_int_eq(joule_request_parse(request, &r, NULL), 0);
    rc = joule_cpufreq_plan(p, &p->now, &r, rules, &plan, err);
    *buf = '\0';
    if (rc < 0)
        return rc;
    count = joule_cpufreq_ops(&p->now, &plan.target, plan.touches, ops);
    ck_assert_uint_le(count, JOULE_CPUFREQ_OPS_MAX);
    for (unsigned i = 0; i < count; i++)
        snprintf(buf + strlen(buf), 512 - strlen(buf), "%s%s=%s", i ? " " : "",
                 joule_cpufreq_file(ops[i].field), ops[i].text);
    return rc;
}

static const struct {
    int machine;
    const char *request;
    int rc;
    const char *writes;
} table[] = {
    {ACPI, "2000000", 0, "scaling_governor=userspace scaling_setspeed=2000000"},
    {ACPI, "2100000", 0, "scaling_governor=userspace scaling_setspeed=2600000"},
    {ACPI, "1", 1, "scaling_governor=userspace scaling_setspeed=1500000"},
    {ACPI, "9000000", 1, "scaling_governor=userspace scaling_setspeed=3000000"},
    {ACPI, "low", 0, "scaling_governor=userspace scaling_setspeed=1500000"},
    {ACPI, "medium", 0, "scaling_governor=userspace scaling_setspeed=2000000"},
    {ACPI, "highm1", 0, "scaling_governor=userspace scaling_setspeed=2600000"},
    {ACPI, "high", 0, "scaling_governor=userspace scaling_setspeed=3000000"},
    {ACPI, "1500000-2600000", 0, "scaling_max_freq=2600000"},
    {ACPI, "2000000-2600000", 0,
     "scaling_max_freq=2600000 scaling_min_freq=2000000"},
    {ACPI, "low-2600000:performance", 0,
     "scaling_max_freq=2600000 scaling_governor=performance"},
    {ACPI, "2000000:conservative", 0,
     "scaling_max_freq=2000000 scaling_governor=conservative"},
    {ACPI, "ondemand", 0, ""},
    {ACPI, "powersave", 0, "scaling_governor=powersave"},
    {ACPI, "userspace", 0, "scaling_governor=userspace"},
    {ACPI, "2700000-low", -1, ""},
    {PSTATE, "2000000", 0, "scaling_max_freq=2000000 scaling_min_freq=2000000"},
    {PSTATE, "medium", 0, "scaling_max_freq=2200000 scaling_min_freq=2200000"},
    {PSTATE, "highm1", 0, "scaling_max_freq=3600000 scaling_min_freq=3600000"},
    {PSTATE, "performance", 0, "scaling_governor=performance"},
    {PSTATE, "powersave", 0, "energy_performance_preference=power"},
    {PSTATE, "ondemand", 0, ""},
    {PSTATE, "conservative", 0, "energy_performance_preference=balance_power"},
    {PSTATE, "userspace", -1, ""},
    {SCHEDUTIL, "2000000", 0, "scaling_min_freq=3000000"},
    {SCHEDUTIL, "low", 0, "scaling_max_freq=1500000"},
    {SCHEDUTIL, "ondemand", -1, ""},
    {GUIDED, "2000000", 0, "scaling_max_freq=2000000 scaling_min_freq=2000000"},
    {PASSIVE, "2000000", 0,
     "scaling_governor=userspace scaling_setspeed=2000000"},
    {EPP, "powersave", 0,
     "scaling_governor=powersave energy_performance_preference=power"},
    /* There is no balance_performance here: the preference stays. */
    {EPP, "ondemand", 0,
     "scaling_governor=powersave energy_performance_preference=performance"},
    {EPP, "performance", 0, ""},
    {OTHER, "high", 0, ""},
    {OTHER, "highm1", 0, ""},
    {OTHER, "powersave", 0, "scaling_governor=powersave"},
    /* Outside of the site's limits: they go along. */
    {INTEL, "3000000", 0,
     "scaling_max_freq=3000000 scaling_governor=userspace "
     "scaling_setspeed=3000000 energy_performance_preference=power"},
    {INTEL, "800000", 0,
     "scaling_min_freq=800000 scaling_governor=userspace "
     "scaling_setspeed=800000 energy_performance_preference=power"},
    {INTEL, "2500000-3000000", 0,
     "scaling_max_freq=3000000 scaling_min_freq=2500000"},
    {INTEL, "800000-900000", 0,
     "scaling_min_freq=800000 scaling_max_freq=900000"},
    {CPPC, "1234567", 0, "scaling_governor=userspace scaling_setspeed=1234567"},
    {PCC, "high", 0, "scaling_governor=userspace scaling_setspeed=2933000"},
};

START_TEST(planned)
{
    struct joule_error err = {""};
    char text[512];
    int rc = plan_text(&machines[table[_i].machine], table[_i].request, &all,
                       text, &err);

    ck_assert_msg(rc == table[_i].rc, "%s on %s: %d %s", table[_i].request,
                  machines[table[_i].machine].driver, rc, err.text);
    ck_assert_str_eq(text, table[_i].writes);
    ck_assert_int_eq(rc != 0, *err.text != '\0');
}
END_TEST

START_TEST(site_rules)
{
    struct joule_cpufreq_rules rules = {.governors = JOULE_GOVERNOR_ONDEMAND};
    struct joule_error err = {""};
    char text[512];

    ck_assert_int_eq(
        plan_text(&machines[ACPI], "performance", &rules, text, &err), -1);
    ck_assert_int_eq(errno, ENOTSUP);
    ck_assert_ptr_nonnull(strstr(err.text, "CpuFreqGovernors"));
    /* Without userspace a frequency is held by the limits. */
    ck_assert_int_eq(plan_text(&machines[ACPI], "2000000", &rules, text, &err),
                     0);
    ck_assert_str_eq(text, "scaling_max_freq=2000000 scaling_min_freq=2000000");
    rules = (struct joule_cpufreq_rules){.governors = JOULE_GOVERNORS_ALL,
                                         .range_governor =
                                             JOULE_GOVERNOR_CONSERVATIVE};
    ck_assert_int_eq(
        plan_text(&machines[ACPI], "low-2000000", &rules, text, &err), 0);
    ck_assert_str_eq(text,
                     "scaling_max_freq=2000000 scaling_governor=conservative");
    rules.keep_limits = true;
    ck_assert_int_eq(plan_text(&machines[INTEL], "3000000", &rules, text, &err),
                     1);
    ck_assert_str_eq(text,
                     "scaling_governor=userspace scaling_setspeed=2000000 "
                     "energy_performance_preference=power");
    ck_assert_ptr_nonnull(strstr(err.text, "above the site's limit"));
    ck_assert_int_eq(plan_text(&machines[INTEL], "2500000-3000000:ondemand",
                               &rules, text, &err),
                     1);
    ck_assert_str_eq(text, "scaling_min_freq=2000000");
    ck_assert_int_eq(plan_text(&machines[INTEL], "800000-900000:ondemand",
                               &rules, text, &err),
                     1);
    ck_assert_str_eq(text, "scaling_max_freq=1000000");
    ck_assert_ptr_nonnull(strstr(err.text, "below the site's limit"));
}
END_TEST

/* A kernel, with the refusals of old ones (limits that cross) and of drivers
 * with preferences. */
static bool kernel_takes(struct joule_cpufreq_state *s,
                         const struct joule_write_op *op)
{
    uint32_t khz = (uint32_t)strtoul(op->text, NULL, 10);

    switch (op->field) {
    case JOULE_CPUFREQ_MIN:
        if (khz > s->max_khz)
            return false;
        s->min_khz = khz;
        break;
    case JOULE_CPUFREQ_MAX:
        if (khz < s->min_khz)
            return false;
        s->max_khz = khz;
        break;
    case JOULE_CPUFREQ_GOVERNOR:
        if (strcmp(op->text, "userspace") == 0)
            s->setspeed_khz = s->max_khz;
        else
            s->setspeed_khz = 0;
        if (*s->epp && strcmp(op->text, "performance") == 0)
            strcpy(s->epp, "performance");
        else if (*s->epp && strcmp(s->governor, "performance") == 0)
            strcpy(s->epp, "default");
        strcpy(s->governor, op->text);
        break;
    case JOULE_CPUFREQ_SETSPEED:
        if (strcmp(s->governor, "userspace") != 0)
            return false;
        s->setspeed_khz = khz;
        break;
    case JOULE_CPUFREQ_EPP:
        if (!*s->epp || strcmp(s->governor, "performance") == 0)
            return false;
        strcpy(s->epp, op->text);
        break;
    case JOULE_CPUFREQ_FIELDS:
        return false;
    }
    if (s->setspeed_khz && s->setspeed_khz < s->min_khz)
        s->setspeed_khz = s->min_khz;
    if (s->setspeed_khz > s->max_khz)
        s->setspeed_khz = s->max_khz;
    return true;
}

static void check_way(struct joule_cpufreq_state *s,
                      const struct joule_cpufreq_state *target,
                      unsigned touches)
{
    struct joule_write_op ops[JOULE_CPUFREQ_OPS_MAX];
    unsigned count = joule_cpufreq_ops(s, target, touches, ops);

    for (unsigned i = 0; i < count; i++)
        ck_assert_msg(kernel_takes(s, &ops[i]), "%s=%s under %s",
                      joule_cpufreq_file(ops[i].field), ops[i].text,
                      s->governor);
    ck_assert_uint_eq(joule_state_differences(s, target, touches), 0);
}

/* From every request to every other on every machine and back: the kernel
 * takes each write, and in the end everything is as it was. */
START_TEST(ways)
{
    static const char *const requests[] = {"low",
                                           "medium",
                                           "high",
                                           "2100000",
                                           "900000",
                                           "low-2600000",
                                           "2000000-high",
                                           "900000-1100000",
                                           "1100000-1200000:performance",
                                           "low-highm1:ondemand",
                                           "performance",
                                           "powersave",
                                           "userspace",
                                           "2600000:performance",
                                           "ondemand",
                                           "conservative"};
    const struct joule_cpufreq_policy *p = &machines[_i];
    unsigned count = 0;

    for (int a = 0; a < COUNT(requests); a++)
        for (int b = 0; b < COUNT(requests); b++) {
            struct joule_cpufreq_state s = p->now;
            struct joule_cpufreq_plan first, second;
            struct joule_request r;
            unsigned touches;

            joule_request_parse(requests[a], &r, NULL);
            if (joule_cpufreq_plan(p, &p->now, &r, &all, &first, NULL) < 0)
                continue;
            joule_request_parse(requests[b], &r, NULL);
            if (joule_cpufreq_plan(p, &p->now, &r, &all, &second, NULL) < 0)
                continue;
            touches = first.touches;
            check_way(&s, &first.target, touches);
            touches |= second.touches;
            check_way(&s, &second.target, touches);
            check_way(&s, &p->now, touches);
            ck_assert_str_eq(s.governor, p->now.governor);
            ck_assert_str_eq(s.epp, p->now.epp);
            ck_assert_uint_eq(s.min_khz, p->now.min_khz);
            ck_assert_uint_eq(s.max_khz, p->now.max_khz);
            ck_assert_uint_eq(s.setspeed_khz, p->now.setspeed_khz);
            count++;
        }
    ck_assert_uint_gt(count, 80);
}
END_TEST

START_TEST(unknown_state)
{
    struct joule_write_op ops[JOULE_CPUFREQ_OPS_MAX];
    const struct joule_cpufreq_state *s = &machines[PSTATE].now;

    /* All that was touched, the upper limit first. */
    ck_assert_uint_eq(joule_cpufreq_ops(NULL, s, JOULE_CPUFREQ_FIELDS, ops), 4);
    ck_assert_int_eq(ops[0].field, JOULE_CPUFREQ_MAX);
    ck_assert_int_eq(ops[1].field, JOULE_CPUFREQ_MIN);
    ck_assert_int_eq(ops[2].field, JOULE_CPUFREQ_GOVERNOR);
    ck_assert_int_eq(ops[3].field, JOULE_CPUFREQ_EPP);
    ck_assert_uint_eq(joule_cpufreq_ops(NULL, s, 0, ops), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpufreq plan");
    TCase *c = tcase_create("plan");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(c, planned, 0, COUNT(table));
    tcase_add_test(c, site_rules);
    tcase_add_loop_test(c, ways, 0, COUNT(machines));
    tcase_add_test(c, unknown_state);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

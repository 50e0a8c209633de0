/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A step in slurmstepd, and who is told what: spank_joule's part with a
 * Slurm and a machine of this test's own.
 */
#include <check.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cgroup/cpuset.h"
#include "plugins/slurm_abi/slurm_abi.h"
#include "plugins/spank/joule/spank_joule.h"
#include "tests/unit/freqtree.h"

static struct tree tree;
static const char *user_request; /* SLURM_CPU_FREQ_REQ */
static const char *conf_request; /* CpuFreqDef */
static char errors[1024];        /* on the user's terminal */
static char infos[4096];         /* in slurmd's log alone */

static void add(char *text, size_t size, const char *format, va_list ap)
{
    size_t used = strlen(text);

    vsnprintf(text + used, size - used, format, ap);
}

void slurm_error(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    add(errors, sizeof(errors), format, ap);
    va_end(ap);
}

void slurm_info(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    add(infos, sizeof(infos), format, ap);
    va_end(ap);
}

void slurm_debug(const char *format, ...)
{
    (void)format;
}

void slurm_spank_log(const char *format, ...)
{
    (void)format;
}

spank_err_t spank_getenv(spank_t spank, const char *name, char *buf, int size)
{
    (void)spank;
    if (strcmp(name, "SLURM_CPU_FREQ_REQ") != 0 || !user_request)
        return ESPANK_ENV_NOEXIST;
    snprintf(buf, (size_t)size, "%s", user_request);
    return ESPANK_SUCCESS;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
    spank_err_t rc = ESPANK_SUCCESS;
    va_list ap;

    (void)spank;
    va_start(ap, item);
    if (item == S_JOB_ID)
        *va_arg(ap, uint32_t *) = 7;
    else if (item == S_JOB_STEPID || item == S_TASK_ID)
        *va_arg(ap, uint32_t *) = 0;
    else if (item == S_JOB_LOCAL_TASK_COUNT)
        *va_arg(ap, uint32_t *) = 1;
    else if (item == S_TASK_PID)
        *va_arg(ap, pid_t *) = getpid();
    else
        rc = ESPANK_BAD_ARG;
    va_end(ap);
    return rc;
}

bool joule_core_conf(const struct joule_spank_options *options,
                     struct joule_control_config *ret,
                     struct joule_request *ret_default)
{
    *ret = (struct joule_control_config){
        .rules = {.governors = JOULE_GOVERNORS_ALL,
                  .keep_limits = options->limits == JOULE_LIMITS_SITE},
        .lock_wait_ns = options->lock_wait_ns,
    };
    return conf_request &&
           joule_request_parse(conf_request, ret_default, NULL) == 0;
}

int joule_core_off(struct joule_error *err)
{
    (void)err;
    return 0;
}

int joule_cgroup_cpus_of(int root_fd, pid_t pid, struct joule_cpus *ret_cpus,
                         struct joule_error *err)
{
    (void)root_fd;
    (void)pid;
    (void)err;
    return joule_cpus_parse(ret_cpus, "0");
}

/* The plugin's "/" is the tree. */
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    return __real_open(strcmp(path, "/") == 0 ? tree.path : path, flags, 0600);
}

static void setup(void)
{
    tree_create(&tree);
    tree_write(&tree, "proc/sys/kernel/random/boot_id",
               "11111111-2222-3333-4444-555555555555\n");
    freqtree_process(&tree, (unsigned)getpid(), 7);
    user_request = conf_request = NULL;
    errors[0] = infos[0] = '\0';
}

static void teardown(void)
{
    tree_destroy(&tree);
}

/* Whether the step's task runs; all that a step is for is in between. */
static bool run(const char *option)
{
    char *argv[] = {(char *)option};
    struct joule_spank_options options;
    struct joule_spank_step step;
    int status;
    pid_t task;

    ck_assert_int_eq(joule_spank_options_parse(&options, 1, argv, NULL), 0);
    joule_spank_step_begin(&step, NULL, &options);
    joule_spank_step_task(&step, NULL);
    task = fork();
    ck_assert_int_ge(task, 0);
    if (task == 0) {
        ck_assert_int_ge(dup2(open("/dev/null", O_WRONLY), STDERR_FILENO), 0);
        joule_spank_step_gate(&step, NULL);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(task, &status, 0), task);
    joule_spank_step_task_end(&step);
    joule_spank_step_end(&step);
    return status == 0;
}

static const char *const strictness[] = {"strict=no", "strict=yes"};

/* A node without cpufreq is none that could fail CpuFreqDef. */
START_TEST(default_without_cpufreq)
{
    conf_request = "performance";
    ck_assert(run(strictness[_i]));
    ck_assert_str_eq(errors, "");
    ck_assert_str_eq(infos, "");
}
END_TEST

/* A driver that has no such governor: the log has it. */
START_TEST(default_unmet)
{
    freqtree_pstate(&tree, 0, 0, 0);
    conf_request = "userspace";
    ck_assert(run(strictness[_i]));
    ck_assert_str_eq(errors, "");
    ck_assert_ptr_nonnull(strstr(infos, "step 7.0: CpuFreqDef: policy0"));
}
END_TEST

START_TEST(default_met)
{
    freqtree_acpi(&tree, 0, 0, 0);
    conf_request = "performance";
    ck_assert(run(strictness[_i]));
    ck_assert_str_eq(errors, "");
    ck_assert_ptr_nonnull(strstr(infos, "set performance"));
    ck_assert_str_eq(freqtree_read(&tree, 0, "scaling_governor"), "ondemand");
}
END_TEST

/* Users are told what became of their own requests, and strict is about
 * them, whatever CpuFreqDef says. */
START_TEST(user_without_cpufreq)
{
    conf_request = "performance";
    user_request = "powersave";
    ck_assert_int_eq(run(strictness[_i]), _i == 0);
    if (_i == 0)
        ck_assert_ptr_nonnull(strstr(errors, "it has no cpufreq policy"));
}
END_TEST

START_TEST(user_adjusted)
{
    freqtree_acpi(&tree, 0, 0, 0);
    user_request = "9000000";
    ck_assert_int_eq(run(strictness[_i]), _i == 0);
    if (_i == 0)
        ck_assert_ptr_nonnull(strstr(errors, "more than the hardware has"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpufreq step");
    TCase *c = tcase_create("step");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, default_without_cpufreq, 0, 2);
    tcase_add_loop_test(c, default_unmet, 0, 2);
    tcase_add_loop_test(c, default_met, 0, 2);
    tcase_add_loop_test(c, user_without_cpufreq, 0, 2);
    tcase_add_loop_test(c, user_adjusted, 0, 2);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What --energy-regions and --energy-waits make of a step's environment, with a Slurm
 * of this test's own.
 */
#include <check.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugins/slurm_abi/slurm_abi.h"
#include "plugins/spank/joule/spank_joule.h"

slurm_conf_t slurm_conf;

static char *variables[16]; /* of the step: "NAME=value" */
static unsigned count;
static uint32_t profile, job_id, step_id;
static struct joule_error err;
static struct joule_spank_options options;

bool acct_gather_profile_g_is_active(uint32_t type)
{
    return (profile & type) != 0;
}

static char **find(const char *name)
{
    size_t length = strlen(name);

    for (unsigned i = 0; i < count; i++)
        if (strncmp(variables[i], name, length) == 0 &&
            variables[i][length] == '=')
            return &variables[i];
    return NULL;
}

spank_err_t spank_getenv(spank_t spank, const char *name, char *buf, int size)
{
    char **found = find(name);
    const char *value = found ? *found + strlen(name) + 1 : NULL;

    (void)spank;
    if (!value)
        return ESPANK_ENV_NOEXIST;
    if (strlen(value) >= (size_t)size)
        return ESPANK_NOSPACE;
    strcpy(buf, value);
    return ESPANK_SUCCESS;
}

spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)
{
    va_list ap;

    (void)spank;
    ck_assert(item == S_JOB_ID || item == S_JOB_STEPID);
    va_start(ap, item);
    *va_arg(ap, uint32_t *) = item == S_JOB_ID ? job_id : step_id;
    va_end(ap);
    return ESPANK_SUCCESS;
}

spank_err_t spank_setenv(spank_t spank, const char *name, const char *value,
                         int overwrite)
{
    char **at = find(name), *text;

    (void)spank;
    ck_assert_int_eq(overwrite, 1);
    ck_assert_uint_lt(count, sizeof(variables) / sizeof(variables[0]));
    ck_assert_int_ge(asprintf(&text, "%s=%s", name, value), 0);
    if (at)
        free(*at);
    else
        at = &variables[count++];
    *at = text;
    return ESPANK_SUCCESS;
}

spank_context_t spank_context(void)
{
    return S_CTX_REMOTE;
}

void slurm_error(const char *format, ...)
{
    ck_abort_msg("%s", format);
}

static void setup(void)
{
    profile = ACCT_GATHER_PROFILE_ENERGY;
    step_id = 0;
    slurm_conf.acct_gather_profile_type =
        (char *)"acct_gather_profile/joule_hdf5";
    options = (struct joule_spank_options){.hooks = "/proc/self/maps",
                                           .waits = "/proc/self/maps"};
}

static void teardown(void)
{
    while (count > 0)
        free(variables[--count]);
}

static void has(const char *name, const char *value)
{
    char **at = find(name);

    if (!value) {
        ck_assert_msg(!at, "%s", at ? *at : "");
    } else {
        ck_assert_msg(at != NULL, "%s is not set", name);
        ck_assert_str_eq(*at + strlen(name) + 1, value);
    }
}

static void begin(const char *wish)
{
    ck_assert_int_eq(joule_spank_hooks_begin(NULL, wish, &options, &err), 0);
}

static void fails(const char *wish, const char *sentence)
{
    ck_assert_int_eq(joule_spank_hooks_begin(NULL, wish, &options, &err), -1);
    ck_assert_msg(strstr(err.text, sentence) != NULL, "%s", err.text);
}

START_TEST(all)
{
    spank_setenv(NULL, "JOULE_REGIONS", "all", 1);
    begin("all");
    has("LD_PRELOAD", options.hooks);
    has("KOKKOS_TOOLS_LIBS", options.hooks);
    has("KOKKOS_PROFILE_LIBRARY", options.hooks);
    has("NVTX_INJECTION64_PATH", options.hooks);
    has("JOULE_REGIONS", "all");
}
END_TEST

/* srun within a job: the job's variable is enough. */
START_TEST(of_the_job)
{
    spank_setenv(NULL, "JOULE_REGIONS", "kokkos", 1);
    begin("");
    has("LD_PRELOAD", NULL);
    has("KOKKOS_TOOLS_LIBS", options.hooks);
    has("NVTX_INJECTION64_PATH", NULL);
}
END_TEST

START_TEST(nobody_asks)
{
    begin("");
    spank_setenv(NULL, "JOULE_REGIONS", "", 1);
    begin("");
    ck_assert_uint_eq(count, 1);
}
END_TEST

/* Other tools stay, and a hook that is there is not there twice. */
START_TEST(what_the_user_has)
{
    spank_setenv(NULL, "JOULE_REGIONS", "all", 1);
    spank_setenv(NULL, "LD_PRELOAD", "libother.so", 1);
    spank_setenv(NULL, "KOKKOS_PROFILE_LIBRARY", "mine.so", 1);
    spank_setenv(NULL, "NVTX_INJECTION64_PATH", "", 1);
    begin("");
    has("LD_PRELOAD", "libother.so:/proc/self/maps");
    has("KOKKOS_TOOLS_LIBS", NULL);
    has("KOKKOS_PROFILE_LIBRARY", "mine.so");
    has("NVTX_INJECTION64_PATH", "");
    begin("");
    has("LD_PRELOAD", "libother.so:/proc/self/maps");
}
END_TEST

START_TEST(preload_is_too_long)
{
    char value[4096];

    memset(value, 'x', sizeof(value));
    for (size_t length = sizeof(value) - 1; length > sizeof(value) - 40;
         length--) {
        value[length] = '\0';
        teardown();
        spank_setenv(NULL, "JOULE_REGIONS", "mpi", 1);
        spank_setenv(NULL, "LD_PRELOAD", value, 1);
        if (length + 1 + strlen(options.hooks) < sizeof(value)) {
            begin("");
            continue;
        }
        fails("", "too long");
        has("LD_PRELOAD", value);
    }
}
END_TEST

START_TEST(not_on_this_node)
{
    strcpy(options.hooks, "/nowhere/libjoule_hooks.so");
    spank_setenv(NULL, "JOULE_REGIONS", "all", 1);
    fails("", "/nowhere/libjoule_hooks.so: No such");
    ck_assert_uint_eq(count, 1);
}
END_TEST

START_TEST(other_profiles)
{
    slurm_conf.acct_gather_profile_type = (char *)"acct_gather_profile/none";
    spank_setenv(NULL, "JOULE_REGIONS", "all", 1);
    fails("all", "has no acct_gather_profile/joule_hdf5");
    ck_assert_uint_eq(count, 1);
}
END_TEST

/* srun --export=NONE: the variable comes too late for the profile. */
START_TEST(without_environment)
{
    profile = ACCT_GATHER_PROFILE_TASK;
    fails("mpi", "--profile=energy");
    ck_assert_uint_eq(count, 0);
    /* A script's own step: the option is meant for those that it starts. */
    step_id = SLURM_BATCH_SCRIPT;
    begin("mpi");
    ck_assert_uint_eq(count, 0);
    profile = ACCT_GATHER_PROFILE_ALL;
    begin("mpi");
    has("JOULE_REGIONS", "mpi");
    has("LD_PRELOAD", options.hooks);
}
END_TEST

static const char *const bad[] = {
    "",
    ",",
    "mpi,",
    ",mpi",
    "mpi,,likwid",
    "mpi likwid",
    "MPI",
    "mpi,none",
    "mpix",
    "mp",
    "none",
    "mpi,likwid,roctx,kokkos,nvtx,ompt,mpi,likwid,roctx,kokkos,nvtx,ompt,all",
};

START_TEST(refused)
{
    ck_assert_int_eq(joule_spank_hooks_check(bad[_i], &err), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "is no list of mpi"));
    spank_setenv(NULL, "JOULE_REGIONS", bad[_i], 1);
    if (*bad[_i])
        fails("", "is no list of mpi");
    ck_assert_uint_eq(count, 1);
}
END_TEST

START_TEST(taken)
{
    ck_assert_int_eq(joule_spank_hooks_check("all", NULL), 0);
    ck_assert_int_eq(joule_spank_hooks_check("mpi", NULL), 0);
    ck_assert_int_eq(
        joule_spank_hooks_check("ompt,nvtx,kokkos,roctx,likwid,mpi", NULL), 0);
}
END_TEST

/* ---- --energy-waits ---- */

static void waits(const char *wish, const char *directory)
{
    ck_assert_int_eq(joule_spank_waits_begin(NULL, wish, &options, &err), 0);
    has("JOULE_WAITS_DIR", directory);
}

START_TEST(waits_directory)
{
    job_id = 12;
    step_id = 3;
    waits("", NULL);
    waits("none", NULL);
    waits("/d/%j.%s%%j%x%", "/d/12.3%j%x%");
    /* Its own environment is before the job's option. */
    spank_setenv(NULL, "JOULE_ENERGY_WAITS", "/e/%s", 1);
    waits("/d", "/e/3");
}
END_TEST

START_TEST(waits_not)
{
    spank_setenv(NULL, "JOULE_ENERGY_WAITS", "none", 1);
    waits("/d", NULL);
}
END_TEST

/* What srun makes of a directory, in one whose name has a pattern. */
START_TEST(waits_wish)
{
    char path[] = "/tmp/%j-XXXXXX", whole[64], *pattern;

    ck_assert_ptr_nonnull(mkdtemp(path));
    ck_assert_int_eq(chdir(path), 0);
    ck_assert_int_eq(joule_spank_waits_wish("w%s", &err), 0);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(rmdir(path), 0);
    pattern = getenv("JOULE_ENERGY_WAITS");
    snprintf(whole, sizeof(whole), "%s/w3", path);
    step_id = 3;
    waits(pattern, whole);
    ck_assert_int_eq(joule_spank_waits_wish("none", &err), 0);
    ck_assert_str_eq(getenv("JOULE_ENERGY_WAITS"), "none");
    ck_assert_int_eq(joule_spank_waits_wish("/w%", &err), 0);
    ck_assert_str_eq(getenv("JOULE_ENERGY_WAITS"), "/w%");
}
END_TEST

/* Components of a heterogeneous job are the jobs 12 and 13. */
START_TEST(waits_components)
{
    job_id = 13;
    spank_setenv(NULL, "SLURM_JOB_ID", "12", 1);
    waits("/d/%j", "/d/13");
    spank_setenv(NULL, "SLURM_HET_SIZE", "2", 1);
    waits("/d/%j", "/d/12");
    job_id = 14; /* another job */
    waits("/d/%j", "/d/14");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("region hooks");
    TCase *c = tcase_create("hooks");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, all);
    tcase_add_test(c, of_the_job);
    tcase_add_test(c, nobody_asks);
    tcase_add_test(c, what_the_user_has);
    tcase_add_test(c, preload_is_too_long);
    tcase_add_test(c, not_on_this_node);
    tcase_add_test(c, other_profiles);
    tcase_add_test(c, without_environment);
    tcase_add_loop_test(c, refused, 0, sizeof(bad) / sizeof(bad[0]));
    tcase_add_test(c, taken);
    tcase_add_test(c, waits_directory);
    tcase_add_test(c, waits_not);
    tcase_add_test(c, waits_wish);
    tcase_add_test(c, waits_components);
    suite_add_tcase(s, c);
    runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slurm's record of a step, made here by the offsets of each release: the one
 * of this release is read; one that is shifted, of another release, cut off or
 * full of nonsense is refused with a sentence, or read without a crash.
 *
 * slurmstepd's title is argv[0]: the program starts itself with one that has
 * room for others.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plugins/slurm_abi/slurm_abi.h"
#include "plugins/slurm_abi/slurm_step.h"
#include "plugins/slurm_abi/step_layout.h"
#include "tests/unit/dice.h"

#define JOB        4711
#define STEP       3
#define TITLE      "slurmstepd: [4711.3]"
#define TITLE_ROOM 64

static char *title; /* TITLE_ROOM bytes that others see */

static gid_t groups[] = {500, 501, 77};
static char *environment[] = {"A=1", "JOULE_PROFILE_PERIOD=10ms",
                              "EMPTY=", "JOULE_PROFILE=x", NULL};
static char node[] = "node1", user[] = "alice";
static char job_cores[] = "0-3,8", step_cores[] = "1";

struct record {
    _Alignas(8) unsigned char before[256];
    unsigned char r[JOULE_STEP_LAYOUT_SIZE_MAX];
    unsigned char after[256];
};

static void set_title(const char *text)
{
    memset(title, 0, TITLE_ROOM);
    memcpy(title, text, strlen(text));
}

static void put32(unsigned char *r, unsigned at, uint32_t value)
{
    memcpy(r + at, &value, sizeof(value));
}

static void put_pointer(unsigned char *r, unsigned at, const void *value)
{
    memcpy(r + at, &value, sizeof(value));
}

static void make(unsigned char *r, const struct joule_step_layout *l)
{
    uint16_t cpus = 2;

    put32(r, l->job_id, JOB);
    put32(r, l->step_id, STEP);
    put32(r, l->node_index, 1);
    put32(r, l->node_tasks, 6);
    put32(r, l->het_job_id, NO_VAL);
    put32(r, l->het_job_offset, NO_VAL);
    memcpy(r + l->cpus_per_task, &cpus, sizeof(cpus));
    put_pointer(r, l->env, environment);
    put_pointer(r, l->node_name, node);
    put32(r, l->uid, 5001);
    put_pointer(r, l->user_name, user);
    put32(r, l->gid, 500);
    put32(r, l->group_count, 3);
    put_pointer(r, l->groups, groups);
    put32(r, l->profile, ACCT_GATHER_PROFILE_ENERGY);
    put_pointer(r, l->job_cores, job_cores);
    put_pointer(r, l->step_cores, step_cores);
}

static const struct joule_step_layout *mine(void)
{
    const struct joule_step_layout *l = joule_step_layout();

    ck_assert_ptr_nonnull(l);
    return l;
}

static void make_mine(struct record *record, int fill)
{
    memset(record, fill, sizeof(*record));
    make(record->r, mine());
}

static void refused(const void *record, const char *why)
{
    struct joule_slurm_step step;
    struct joule_error err = {.text = ""};

    errno = 0;
    ck_assert_msg(joule_slurm_step_read(record, &step, &err) == -1,
                  "not refused: %s", why);
    ck_assert_int_eq(errno, ENOTSUP);
    ck_assert_msg(err.text[0] != '\0', "no sentence: %s", why);
}

/* It may be believed; what it points to is looked at all the same. */
static void survived(const void *record)
{
    struct joule_slurm_step step;
    char name[512];
    size_t i, sum = 0;

    if (joule_slurm_step_read(record, &step, NULL) < 0)
        return;
    sum += strlen(step.node) + strlen(step.user);
    for (i = 0; step.job_cores && step.job_cores[i]; i++)
        sum++;
    for (i = 0; step.step_cores && step.step_cores[i]; i++)
        sum++;
    joule_slurm_step_file(&step, name, sizeof(name));
    if (joule_slurm_step_getenv(&step, "JOULE_PROFILE_PERIOD"))
        sum++;
    ck_assert_uint_gt(sum, 0);
}

START_TEST(a_good_one)
{
    struct joule_slurm_step step;
    struct joule_error err;
    struct record record;
    char name[64];

    make_mine(&record, 0xa5);
    ck_assert_msg(joule_slurm_step_read(record.r, &step, &err) == 0, "%s",
                  err.text);
    ck_assert_uint_eq(step.job_id, JOB);
    ck_assert_uint_eq(step.step_id, STEP);
    ck_assert_uint_eq(step.node_index, 1);
    ck_assert_uint_eq(step.node_tasks, 6);
    ck_assert_uint_eq(step.cpus_per_task, 2);
    ck_assert_uint_eq(step.profile, ACCT_GATHER_PROFILE_ENERGY);
    ck_assert_uint_eq(step.uid, 5001);
    ck_assert_uint_eq(step.gid, 500);
    ck_assert_uint_eq(step.group_count, 3);
    ck_assert_ptr_eq(step.groups, groups);
    ck_assert_str_eq(step.user, "alice");
    ck_assert_str_eq(step.node, "node1");
    ck_assert_str_eq(step.job_cores, "0-3,8");
    ck_assert_str_eq(step.step_cores, "1");
    ck_assert_int_eq(joule_slurm_step_file(&step, name, sizeof(name)), 0);
    ck_assert_str_eq(name, "4711_3_node1");
    ck_assert_str_eq(joule_slurm_step_getenv(&step, "JOULE_PROFILE_PERIOD"),
                     "10ms");
    ck_assert_str_eq(joule_slurm_step_getenv(&step, "A"), "1");
    ck_assert_ptr_null(joule_slurm_step_getenv(&step, "EMPTY"));
    ck_assert_ptr_null(joule_slurm_step_getenv(&step, "JOULE"));
}
END_TEST

START_TEST(titles)
{
    static const struct {
        const char *title;
        uint32_t step_id;
        bool is_het; /* component 1 of job 4700 */
        bool good;
    } cases[] = {
        {"slurmstepd: [4711.3 ", STEP, false, false},
        {"slurmstepd: [4711.4]", STEP, false, false},
        {"slurmstepd: [4712.3]", STEP, false, false},
        {"slurmstepd: 4711.3", STEP, false, false},
        {"slurmstepd: [4711.99999999999]", STEP, false, false},
        {"slurmstepd: [.3]", STEP, false, false},
        {"slurmstepd: [", STEP, false, false},
        {"slurmstepd", STEP, false, false},
        {"", STEP, false, false},
        {"slurmstepd: [4711.batch]", STEP, false, false},
        {"slurmstepd: [4700+1.3]", STEP, false, false},
        {"slurmstepd: [4700+2.3]", STEP, true, false},
        {"slurmstepd: [4711.3]", STEP, false, true},
        {"slurmstepd: [4711.3] stepmgr", STEP, false, true},
        {"slurmstepd: [4711.batch]", SLURM_BATCH_SCRIPT, false, true},
        {"slurmstepd: [4711.extern]", SLURM_EXTERN_CONT, false, true},
        {"slurmstepd: [4711.interactive]", SLURM_INTERACTIVE_STEP, false, true},
        {"slurmstepd: [4700+1.3]", STEP, true, true},
    };
    struct joule_slurm_step step;
    struct joule_error err;
    struct record record;
    size_t i;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        make_mine(&record, 0);
        put32(record.r, mine()->step_id, cases[i].step_id);
        if (cases[i].is_het) {
            put32(record.r, mine()->het_job_id, 4700);
            put32(record.r, mine()->het_job_offset, 1);
        }
        set_title(cases[i].title);
        if (!cases[i].good)
            refused(record.r, cases[i].title);
        else
            ck_assert_msg(joule_slurm_step_read(record.r, &step, &err) == 0,
                          "%s: %s", cases[i].title, err.text);
    }
}
END_TEST

/* A field more or less in front of all of them. */
START_TEST(shifted)
{
    static const int fills[] = {0, 0xff, 0xa5};
    struct record record;
    char why[32];
    size_t i;
    int by;

    for (i = 0; i < sizeof(fills) / sizeof(fills[0]); i++)
        for (by = -128; by <= 128; by += 4) {
            if (by == 0)
                continue;
            snprintf(why, sizeof(why), "by %d", by);
            make_mine(&record, fills[i]);
            refused(record.r - by, why);
        }
}
END_TEST

/* One more in the middle: what is behind it has moved. */
START_TEST(grown)
{
    unsigned char other[JOULE_STEP_LAYOUT_SIZE_MAX + 16];
    struct record record;
    char why[32];
    unsigned at, by;

    for (by = 4; by <= 16; by += 4)
        for (at = 0; at < JOULE_STEP_LAYOUT_SIZE_MAX; at += 4) {
            make_mine(&record, 0);
            memset(other, 0, sizeof(other));
            memcpy(other, record.r, at);
            memcpy(other + at + by, record.r + at, sizeof(record.r) - at);
            snprintf(why, sizeof(why), "%u bytes at %u", by, at);
            if (at <= mine()->user_name)
                refused(other, why);
            else
                survived(other);
        }
}
END_TEST

START_TEST(of_other_releases)
{
    const struct joule_step_layout *l;
    struct record record;
    size_t count, i;
    int fill;

    l = joule_step_layouts(&count);
    ck_assert_uint_eq(count, 3);
    for (i = 0; i < count; i++)
        for (fill = 0; fill < 256; fill++) {
            if (l[i].series == JOULE_SLURM_SERIES)
                continue;
            memset(&record, fill, sizeof(record));
            make(record.r, &l[i]);
            refused(record.r, "another release");
        }
}
END_TEST

START_TEST(layouts_fit)
{
    const struct joule_step_layout *l;
    size_t count, i;

    l = joule_step_layouts(&count);
    for (i = 0; i < count; i++) {
        ck_assert_uint_le(l[i].size, JOULE_STEP_LAYOUT_SIZE_MAX);
        ck_assert_uint_eq(l[i].size, l[i].profile + 4);
        ck_assert_uint_lt(l[i].step_cores + 8, JOULE_STEP_LAYOUT_SIZE_MAX);
        ck_assert_uint_lt(l[i].groups, l[i].profile);
    }
}
END_TEST

/* Two pages, of which the second cannot be read. */
static unsigned char *half_page(size_t *ret_size)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *p = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(p, MAP_FAILED);
    ck_assert_int_eq(mprotect(p + size, size, PROT_NONE), 0);
    *ret_size = size;
    return p;
}

START_TEST(not_all_there)
{
    size_t page, missing;
    unsigned char *p = half_page(&page);
    struct joule_slurm_step step;
    struct joule_error err;
    struct record record;

    refused(NULL, "NULL");
    refused((void *)8, "8");
    refused(p + page, "a page that is not there");
    make_mine(&record, 0);
    for (missing = 1; missing < mine()->size; missing += 7) {
        unsigned char *at = p + page - mine()->size + missing;

        memcpy(at, record.r, mine()->size - missing);
        refused(at, "cut off");
    }
    /* Up to --profile all of it is there: the cores alone are not. */
    memcpy(p + page - mine()->size, record.r, mine()->size);
    ck_assert_msg(joule_slurm_step_read(p + page - mine()->size, &step, &err) ==
                      0,
                  "%s", err.text);
    ck_assert_ptr_null(step.job_cores);
    ck_assert_ptr_null(step.step_cores);
}
END_TEST

#define BAD_COUNT 5

START_TEST(bad_pointers)
{
    static const char no_end[] = {'n', 'o', 'd', 'e'};
    size_t page;
    unsigned char *p = half_page(&page);
    const void *bad[BAD_COUNT] = {NULL, (void *)1, (void *)UINTPTR_MAX,
                                  p + page, p + page - 4 /* no end */};
    struct joule_slurm_step step;
    struct joule_error err;
    struct record record;
    size_t i;

    memcpy(p + page - 4, no_end, 4);
    for (i = 0; i < BAD_COUNT; i++) {
        make_mine(&record, 0);
        put_pointer(record.r, mine()->node_name, bad[i]);
        refused(record.r, "the node's name");
        make_mine(&record, 0);
        put_pointer(record.r, mine()->user_name, bad[i]);
        refused(record.r, "the user's name");
        make_mine(&record, 0);
        put_pointer(record.r, mine()->job_cores, bad[i]);
        put_pointer(record.r, mine()->env, bad[i]);
        put_pointer(record.r, mine()->groups,
                    i == BAD_COUNT - 1 ? p + page : bad[i]);
        ck_assert_msg(joule_slurm_step_read(record.r, &step, &err) == 0, "%s",
                      err.text);
        ck_assert_ptr_null(step.job_cores);
        ck_assert_str_eq(step.step_cores, "1");
        ck_assert_uint_eq(step.group_count, 0);
        ck_assert_ptr_null(joule_slurm_step_getenv(&step, "A"));
    }
    /* Texts that end where the page does are there. */
    memcpy(p + page - 6, node, 6);
    make_mine(&record, 0);
    put_pointer(record.r, mine()->node_name, p + page - 6);
    ck_assert_int_eq(joule_slurm_step_read(record.r, &step, &err), 0);
}
END_TEST

START_TEST(bad_values)
{
    struct joule_slurm_step step;
    struct joule_error err;
    struct record record;

    make_mine(&record, 0);
    put32(record.r, mine()->profile, 0x40);
    refused(record.r, "a profile of nothing that is known");
    put32(record.r, mine()->profile, ACCT_GATHER_PROFILE_ALL);
    ck_assert_int_eq(joule_slurm_step_read(record.r, &step, &err), 0);
    put32(record.r, mine()->group_count, 0x7fffffff);
    ck_assert_int_eq(joule_slurm_step_read(record.r, &step, &err), 0);
    ck_assert_uint_eq(step.group_count, 0);
    put_pointer(record.r, mine()->step_cores, "1; rm");
    ck_assert_int_eq(joule_slurm_step_read(record.r, &step, &err), 0);
    ck_assert_ptr_null(step.step_cores);
    put_pointer(record.r, mine()->node_name, "");
    refused(record.r, "no name of the node");
    make_mine(&record, 0);
    setenv("SLURMD_NODENAME", "node2", 1);
    refused(record.r, "another node");
}
END_TEST

/* The environment's texts may lie anywhere. */
START_TEST(variables_at_the_edge)
{
    static const char text[] = "JOULE_PROFILE_PERIOD=10ms";
    size_t page, cut;
    unsigned char *p = half_page(&page);
    char *variables[2] = {NULL, NULL};
    struct joule_slurm_step step;
    struct record record;

    make_mine(&record, 0);
    put_pointer(record.r, mine()->env, variables);
    ck_assert_int_eq(joule_slurm_step_read(record.r, &step, NULL), 0);
    for (cut = 0; cut < sizeof(text); cut++) {
        const char *value;

        variables[0] = (char *)p + page - sizeof(text) + cut;
        memcpy(variables[0], text, sizeof(text) - cut);
        value = joule_slurm_step_getenv(&step, "JOULE_PROFILE_PERIOD");
        if (cut == 0)
            ck_assert_str_eq(value, "10ms");
        else
            ck_assert_ptr_null(value);
    }
    /* No end of the list. */
    variables[0] = (char *)p;
    put_pointer(record.r, mine()->env, p + page - 8);
    memcpy(p + page - 8, &variables[0], 8);
    ck_assert_int_eq(joule_slurm_step_read(record.r, &step, NULL), 0);
    ck_assert_ptr_null(joule_slurm_step_getenv(&step, "A"));
}
END_TEST

/* Anything at all in anything of it. */
START_TEST(nonsense)
{
    uint64_t seed = dice_seed();
    size_t page, i;
    unsigned char *p = half_page(&page);
    const void *places[] = {NULL,
                            p,
                            p + page - 3,
                            p + page,
                            node,
                            environment,
                            (void *)(UINTPTR_MAX - 7),
                            (void *)(UINTPTR_MAX / 2)};
    struct record record;
    int round;

    memset(p, '7', page);
    for (round = 0; round < 10000; round++) {
        make_mine(&record, 0);
        for (i = dice(&seed, 4); i <= 4; i++) {
            unsigned at = (unsigned)dice(&seed, mine()->size / 8) * 8;

            if (dice(&seed, 2))
                put_pointer(record.r, at, places[dice(&seed, 8)]);
            else
                put32(record.r, at + 4 * (unsigned)dice(&seed, 2),
                      (uint32_t)dice64(&seed));
        }
        survived(record.r);
    }
}
END_TEST

static void setup(void)
{
    setenv("SLURMD_NODENAME", node, 1);
    set_title(TITLE);
}

int main(int argc, char **argv)
{
    Suite *suite = suite_create("step_record");
    TCase *tc = tcase_create("all");
    SRunner *runner;
    int failed;

    (void)argc;
    if (strncmp(argv[0], TITLE, strlen(TITLE)) != 0) {
        char *const again[] = {
            TITLE "                                            ", NULL};

        execv("/proc/self/exe", again);
        return 99;
    }
    title = argv[0];
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, a_good_one);
    tcase_add_test(tc, titles);
    tcase_add_test(tc, shifted);
    tcase_add_test(tc, grown);
    tcase_add_test(tc, of_other_releases);
    tcase_add_test(tc, layouts_fit);
    tcase_add_test(tc, not_all_there);
    tcase_add_test(tc, bad_pointers);
    tcase_add_test(tc, bad_values);
    tcase_add_test(tc, variables_at_the_edge);
    tcase_add_test(tc, nonsense);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

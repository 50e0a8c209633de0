/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Annotations of other tools that become regions (lib/hooks.c): their interfaces
 * are called as the programs that have them do. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/regionstep.h"

/* ---- interfaces, as programs know them ---- */

int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);
int MPI_Pcontrol(const int level, ...);
int likwid_markerStartRegion(const char *name);
int likwid_markerStopRegion(const char *name);
void roctxMarkA(const char *text);
int roctxRangePushA(const char *text);
int roctxRangePop(void);
uint64_t roctxRangeStartA(const char *text);
void roctxRangeStop(uint64_t number);
void kokkosp_push_profile_region(const char *name);
void kokkosp_pop_profile_region(void);
int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t));

static void is_counted(const char *name, uint64_t count)
{
    ck_assert_msg(regionstep_sum(name).count == count, "%s: %llu", name,
                  (unsigned long long)regionstep_sum(name).count);
}

/* ---- MPI, which is not there ---- */

static void control(void)
{
    char unprintable[] = "\x01\x02";

    if (MPI_Init(NULL, NULL) == 0)
        _exit(1);
    MPI_Pcontrol(1, "outer");
    MPI_Pcontrol(1, "inner");
    MPI_Pcontrol(0, "now");
    MPI_Pcontrol(-1, "inner");
    MPI_Pcontrol(-1, "outer");
    MPI_Pcontrol(1, NULL);
    MPI_Pcontrol(2, (void *)8);
    MPI_Pcontrol(0, unprintable);
    MPI_Pcontrol(0, NULL);
    MPI_Finalize();
}

START_TEST(pcontrol)
{
    regionstep_run(control);
    regionstep_end();
    is_counted("outer", 1);
    is_counted("inner", 1);
    is_counted("now", 1);
    is_counted("MPI_Pcontrol", 1);
    is_counted("MPI", 0);
    ck_assert_uint_eq(step.processes[0].without_begin, 0);
}
END_TEST

/* ---- LIKWID, ROCTX, Kokkos ---- */

static void annotate(void)
{
    uint64_t number;

    likwid_markerStartRegion("likwid");
    likwid_markerStopRegion("likwid");
    roctxMarkA("mark");
    if (roctxRangePushA("pushed") != 0 ||
        roctxRangePushA("pushed twice") != 1 || roctxRangePop() != 1 ||
        roctxRangePop() != 0)
        _exit(1);
    roctxRangePop(); /* there is none */
    number = roctxRangeStartA("ranged");
    roctxRangeStop(number);
    roctxRangeStop(number);
    kokkosp_push_profile_region("kokkos");
    kokkosp_pop_profile_region();
}

START_TEST(annotations)
{
    regionstep_run(annotate);
    regionstep_end();
    is_counted("likwid", 1);
    is_counted("mark", 1);
    is_counted("pushed", 1);
    is_counted("pushed twice", 1);
    is_counted("ranged", 1);
    is_counted("kokkos", 1);
    ck_assert_uint_eq(step.processes[0].without_begin, 0);
}
END_TEST

static void only_kokkos(void)
{
    setenv("JOULE_REGIONS", "mpi,kokkos", 1);
    annotate();
}

START_TEST(chosen)
{
    regionstep_run(only_kokkos);
    regionstep_end();
    is_counted("kokkos", 1);
    is_counted("likwid", 0);
    is_counted("ranged", 0);
}
END_TEST

/* ---- NVTX: the client's side of its header ---- */

#define FUNCTIONS 16

typedef void (*function)(void);

struct callbacks {
    size_t size;
    int (*find)(int module, function ***ret_table, unsigned *ret_size);
};

struct event {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message;
};

static function core[FUNCTIONS], core2[FUNCTIONS];

static int find(int module, function ***ret_table, unsigned *ret_size)
{
    static function *tables[2][FUNCTIONS];
    function *of = module == 5 ? core2 : core;

    if (module != 1 && module != 5)
        return 0;
    for (int i = 1; i < FUNCTIONS; i++)
        tables[module == 5][i] = &of[i];
    *ret_table = tables[module == 5];
    *ret_size = FUNCTIONS;
    return 1;
}

static const void *export_table(uint32_t number)
{
    static const struct callbacks callbacks = {sizeof(callbacks), find};

    return number == 1 ? &callbacks : NULL;
}

static const void *no_table(uint32_t number)
{
    (void)number;
    return NULL;
}

static void use_nvtx(void)
{
    struct event event = {.version = 3,
                          .size = sizeof(event),
                          .message_type = 1,
                          .message = "pushed"};
    void *(*register_string)(void *, const char *);
    uint64_t number;

    if (InitializeInjectionNvtx2(NULL) || InitializeInjectionNvtx2(no_table) ||
        !InitializeInjectionNvtx2(export_table))
        _exit(1);
    ((void (*)(const char *))core[2])("mark");
    if (((int (*)(const char *))core[9])("text") != 0 ||
        ((int (*)(const struct event *))core[8])(&event) != 1 ||
        ((int (*)(void))core[11])() != 1 || ((int (*)(void))core[11])() != 0 ||
        ((int (*)(void))core[11])() >= 0)
        _exit(2);
    register_string = (void *(*)(void *, const char *))core2[10];
    event.message_type = 3;
    event.message = register_string(NULL, "registered");
    ((int (*)(void *, const struct event *))core2[4])(NULL, &event);
    ((int (*)(void *))core2[5])(NULL);
    event.message_type = 2; /* wide characters */
    ((int (*)(void *, const struct event *))core2[4])(NULL, &event);
    ((int (*)(void *))core2[5])(NULL);
    number = ((uint64_t(*)(const char *))core[5])("range");
    ((void (*)(uint64_t))core[7])(number);
}

START_TEST(nvtx)
{
    regionstep_run(use_nvtx);
    regionstep_end();
    is_counted("mark", 1);
    is_counted("text", 1);
    is_counted("pushed", 1);
    is_counted("registered", 1);
    is_counted("NVTX", 1);
    is_counted("range", 1);
    ck_assert_uint_eq(step.processes[0].without_begin, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hooks");
    TCase *tc = tcase_create("hooks");
    SRunner *sr;
    int failed;

    tcase_add_checked_fixture(tc, regionstep_setup, regionstep_teardown);
    tcase_add_test(tc, pcontrol);
    tcase_add_test(tc, annotations);
    tcase_add_test(tc, chosen);
    tcase_add_test(tc, nvtx);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

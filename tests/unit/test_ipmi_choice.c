/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sensors that make the node's power on machines as they are sold.
 */
#include "common/sensors/ipmi_choice.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOARD  7
#define SUPPLY 10
#define CPU    3
#define DCMI   255 /* not a record */

struct sensor {
    const char *name;
    uint8_t entity;
    double watts; /* below 0: a status, negated */
};

static struct joule_wire_reply list;
static struct joule_ipmi_choice choice;
static struct joule_error err;
static char line[256];

static void machine(const struct sensor *sensors)
{
    memset(&list, 0, sizeof(list));
    for (list.count = 0; sensors[list.count].name; list.count++) {
        const struct sensor *s = &sensors[list.count];
        struct joule_wire_found *f = &list.found[list.count];

        snprintf(f->name, sizeof(f->name), "%s", s->name);
        f->kind = s->entity == DCMI ? JOULE_IPMI_SENSOR_DCMI
                                    : JOULE_IPMI_SENSOR_RECORD;
        f->record_id = (uint16_t)(list.count + 20);
        f->entity = s->entity;
        f->step_w = 1;
        if (s->watts < 0)
            list.value[list.count].status =
                (enum joule_power_status) - s->watts;
        else
            list.value[list.count].watts = s->watts;
    }
}

static int choose(const struct sensor *sensors)
{
    int rc, errnum;

    machine(sensors);
    err.text[0] = '\0';
    rc = joule_ipmi_choose(&list, &choice, &err);
    errnum = errno;
    joule_ipmi_choice_line(&list, &choice, line, sizeof(line));
    errno = errnum;
    return rc;
}

static void chooses(const struct sensor *sensors, const char *words)
{
    ck_assert_msg(choose(sensors) == 0, "%s", err.text);
    ck_assert_str_eq(line, words);
}

static void refuses(const struct sensor *sensors, int errnum, const char *words)
{
    ck_assert_int_eq(choose(sensors), -1);
    ck_assert_int_eq(errno, errnum);
    ck_assert_msg(strstr(err.text, words), "%s", err.text);
}

START_TEST(nothing_covers)
{
    static const struct sensor parts[] = {
        {"CPU1 Pwr", CPU, 136}, {"CPU2 Pwr", BOARD, 120}, {0}};
    static const struct sensor unknown[] = {{"Pwr", 11, 322}, {0}};
    static const struct sensor limits[] = {
        {"Power Cap", BOARD, 800}, {"Max Power", BOARD, 1600}, {0}};
    static const struct sensor none[] = {{0}};
    static const struct sensor inactive[] = {
        {"CPU1 Pwr", CPU, 136}, {"DCMI", DCMI, -JOULE_POWER_NOT_ACTIVE}, {0}};
    static const struct sensor mute[] = {
        {"CPU1 Pwr", CPU, 136},
        {"Sys Power", BOARD, -JOULE_POWER_UNAVAILABLE},
        {0}};

    refuses(parts, ENOENT, "(CPU1 Pwr 136 W, CPU2 Pwr 120 W)");
    ck_assert_uint_eq(choice.count, 0);
    ck_assert_ptr_nonnull(strstr(err.text, "EnergyIPMIPowerSensors=Node="));
    refuses(unknown, ENOENT, "Pwr 322 W");
    refuses(limits, ENOENT, "Power Cap 800 W");
    refuses(none, ENOENT, "no sensor in watts");
    refuses(inactive, ENOENT, "JouleIPMIIgnoreInactive=yes");
    refuses(mute, ENOENT, "gives no reading");
}
END_TEST

START_TEST(contradictions)
{
    static const struct sensor two[] = {
        {"12V", BOARD, 136}, {"DCMI", DCMI, 322}, {0}};
    static const struct sensor majority[] = {{"12V", BOARD, 136},
                                             {"PSU1 Input", SUPPLY, 180},
                                             {"PSU2 Input", SUPPLY, 150},
                                             {"Pwr", BOARD, 322},
                                             {0}};
    static const struct sensor shared[] = {/* a chassis of four nodes */
                                           {"PSU1 Input", SUPPLY, 640},
                                           {"PSU2 Input", SUPPLY, 630},
                                           {"DCMI", DCMI, 310},
                                           {0}};
    static const struct sensor edge[] = {
        {"12V", BOARD, 100}, {"DCMI", DCMI, 128}, {0}};

    refuses(two, ENOTUNIQ, "(DCMI 322 W, 12V 136 W)");
    ck_assert_ptr_nonnull(strstr(err.text, "=Node=DCMI"));
    refuses(majority, ENOTUNIQ,
            "(12V 136 W, Pwr 322 W, PSU1 Input + PSU2 Input 330 W)");
    ck_assert_str_eq(line, "EnergyIPMIPowerSensors=Node=Pwr");
    refuses(shared, ENOTUNIQ, "=Node=DCMI");
    /* 20 % of 127 W and two steps of 1 W are 27.4 W. */
    refuses(edge, ENOTUNIQ, "128 W");
    list.value[1].watts = 127;
    ck_assert_int_eq(joule_ipmi_choose(&list, &choice, &err), 0);
}
END_TEST

START_TEST(machines)
{
    static const struct sensor dell[] = {
        {"Pwr Consumption", BOARD, 98}, {"DCMI", DCMI, 100}, {0}};
    static const struct sensor dell_alone[] = {
        {"CPU1 Pwr", CPU, 40}, {"Pwr Consumption", BOARD, 98}, {0}};
    static const struct sensor hpe[] = {{"Power Supply 1", SUPPLY, 95},
                                        {"Power Supply 2", SUPPLY, 90},
                                        {"Power Meter", 13, 180},
                                        {0}};
    static const struct sensor lenovo[] = {
        {"CPU1 Power", BOARD, 60},   {"Mem Power", BOARD, 20},
        {"Sys Power", BOARD, 200},   {"PSU1 Input", SUPPLY, 110},
        {"PSU2 Input", SUPPLY, 104}, {0}};
    static const struct sensor ibm[] = {/* the total is a supply's sensor */
                                        {"PS1 Power In", SUPPLY, 132},
                                        {"PS2 Power In", SUPPLY, 160},
                                        {"PWR Consumption", SUPPLY, 290},
                                        {0}};
    static const struct sensor supermicro[] = {{"DCMI", DCMI, 109}, {0}};
    static const struct sensor intel[] = {
        /* the second stands by */
        {"PS1 Input Power", SUPPLY, 168},
        {"PS2 Input Power", SUPPLY, -JOULE_POWER_ZERO},
        {0}};
    static const struct sensor huawei[] = {{"Power", BOARD, 168},
                                           {"Power1", SUPPLY, 90},
                                           {"Power2", SUPPLY, 78},
                                           {0}};
    static const struct sensor openbmc[] = {
        {"total_power", 0, 402}, {"p0_cpu_power", CPU, 130}, {0}};
    static const struct sensor outputs[] = {{"PSU1 PIN", SUPPLY, 200},
                                            {"PSU1 POUT", SUPPLY, 180},
                                            {"PSU2 PIN", SUPPLY, 210},
                                            {"PSU2 Power Out", SUPPLY, 190},
                                            {0}};

#define LINE "EnergyIPMIPowerSensors="
    chooses(dell, LINE "Node=DCMI");
    chooses(dell_alone, LINE "\"Node=Pwr Consumption\"");
    chooses(hpe, LINE "\"Node=Power Meter\"");
    chooses(lenovo, LINE "\"Node=Sys Power\"");
    chooses(ibm, LINE "\"Node=PWR Consumption\"");
    chooses(supermicro, LINE "Node=DCMI");
    chooses(intel, LINE "\"Node=PS1 Input Power,PS2 Input Power\"");
    chooses(huawei, LINE "Node=Power");
    chooses(openbmc, LINE "Node=total_power");
    chooses(outputs, LINE "\"Node=PSU1 PIN,PSU2 PIN\"");
}
END_TEST

/* A sum that lacks a supply is no sum. */
START_TEST(supply_missing)
{
    static const struct sensor one[] = {
        {"PSU1 Input", SUPPLY, 180},
        {"PSU2 Input", SUPPLY, -JOULE_POWER_UNAVAILABLE},
        {0}};
    static const struct sensor beside[] = {
        {"PSU1 Input", SUPPLY, 180},
        {"PSU2 Input", SUPPLY, -JOULE_POWER_UNAVAILABLE},
        {"DCMI", DCMI, 322},
        {0}};

    refuses(one, ENOENT, "\"PSU2 Input\" gives no reading");
    ck_assert_str_eq(line, LINE "\"Node=PSU1 Input\"");
    chooses(beside, LINE "Node=DCMI");
}
END_TEST

START_TEST(words)
{
    static const struct sensor odd[] = {
        {"12", BOARD, 1},    {"a=b", BOARD, 1},
        {"it's", BOARD, 1},  {"DCMI x", BOARD, 1},
        {"twice", BOARD, 1}, {"twice", BOARD, 1},
        {"", BOARD, 1},      {"plain", BOARD, 1},
        {"x#y", BOARD, 1},   {0}};
    static const char *const expected[] = {
        "'12'", "'a=b'", "22", "'DCMI x'", "24", "25", "26", "plain", "28"};
    char word[JOULE_IPMI_WORD_SIZE], small[40] = "K=";

    machine(odd);
    for (uint32_t i = 0; i < list.count; i++) {
        joule_ipmi_sensor_word(&list, &list.found[i], word);
        ck_assert_str_eq(word, expected[i]);
    }
    memset(small + 2, ' ', sizeof(small) - 3);
    small[sizeof(small) - 1] = '\0';
    joule_ipmi_line_quote(small, sizeof(small));
    ck_assert_uint_eq(strlen(small), sizeof(small) - 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ipmi_choice");
    TCase *t = tcase_create("ipmi_choice");
    SRunner *runner = srunner_create(s);
    int failed;

    tcase_add_test(t, nothing_covers);
    tcase_add_test(t, contradictions);
    tcase_add_test(t, machines);
    tcase_add_test(t, supply_missing);
    tcase_add_test(t, words);
    suite_add_tcase(s, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

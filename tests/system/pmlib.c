/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pmlib - a program as they are written for pmlib: two sets of 2 s of what its
 * step uses, the energy of each printed.
 */
#include <stdio.h>
#include <unistd.h>

#include <pmlib.h>

/* What it was, or 0. */
static int tell(const char *call, int rc)
{
    if (rc < 0)
        perror(call);
    return rc < 0;
}

int main(void)
{
    char step[] = "step", automatic[] = "";
    server_t server;
    counter_t counter;
    line_t lines;
    int failed;

    failed = tell("pm_set_server", pm_set_server(automatic, 0, &server));
    LINE_SET_ALL(&lines);
    if (failed || tell("pm_create_counter",
                       pm_create_counter(step, lines, 1, 0, server, &counter)))
        return 1;
    failed |= tell("pm_start_counter", pm_start_counter(&counter));
    sleep(2);
    failed |= tell("pm_stop_counter", pm_stop_counter(&counter));
    failed |= tell("pm_continue_counter", pm_continue_counter(&counter));
    sleep(2);
    failed |= tell("pm_stop_counter", pm_stop_counter(&counter));
    failed |= tell("pm_get_counter_data", pm_get_counter_data(&counter));
    failed |=
        tell("pm_calculate_energy", pm_calculate_energy(counter, lines, -1));
    failed |= tell("pm_finalize_counter", pm_finalize_counter(&counter));
    return failed;
}

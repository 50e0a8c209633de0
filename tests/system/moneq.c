/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * moneq - an MPI program as they were written for MonEQ: a tag of 1.5 s and one of
 * 0.6 s within it, on all ranks.
 */
#include "powermon_bgq.h"

static void work(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
    int rank, status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    status = MonEQ_Initialize();
    if (status != 0)
        printf("rank %d: %d: %s\n", rank, status, MonEQ_GetLastErrorMessage());
    work(500);
    status = MonEQ_StartPowerTag("work");
    work(500);
    MonEQ_StartPowerTag("inner");
    work(600);
    MonEQ_EndPowerTag("inner");
    work(400);
    if (MonEQ_MonitorAgentOnRank()) {
        double watts[7], all = MonEQ_GetDomainPower(watts);

        printf("power %.2f core %.2f dram %.2f\n", all, watts[0], watts[1]);
    }
    status = MonEQ_EndPowerTag("work");
    printf("rank %d: agent %d, tag %d\n", rank, MonEQ_MonitorAgentOnRank(),
           status);
    status = MonEQ_Finalize();
    MPI_Finalize();
    return status;
}

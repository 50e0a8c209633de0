/* SPDX-License-Identifier: GPL-2.0-or-later */
/* joule-report - what the profiles and traces of a job tell. */
#include "tools/report/report.h"

#include <stdio.h>
#include <string.h>

#include "tools/report/waits.h"

int main(int argc, char **argv)
{
    int status = 2;

    if (argc >= 2 && strcmp(argv[1], "regions") == 0)
        status = joule_regions_main(argc - 1, argv + 1);
    else if (argc >= 2 && strcmp(argv[1], "trace") == 0)
        status = joule_trace_main(argc - 1, argv + 1);
    else if (argc >= 2 && strcmp(argv[1], "waits") == 0)
        status = joule_waits_main(argc - 1, argv + 1);
    else
        fputs("joule-report is started by joule(1)\n", stderr);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("joule: cannot write the output");
        return status ? status : 1;
    }
    return status;
}

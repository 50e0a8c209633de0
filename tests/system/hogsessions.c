/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hogsessions - use up the sessions of a BMC, as monitoring that crashes does.
 *
 *   hogsessions HOST USER PASSWORD COUNT
 *
 * Opens up to COUNT sessions (IPMI 2.0) and ends without closing them; prints
 * how many it got.  Exit status 1 if it got none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <freeipmi/freeipmi.h>

int main(int argc, char **argv)
{
    int wanted, got;

    if (argc != 5) {
        fprintf(stderr, "usage: hogsessions HOST USER PASSWORD COUNT\n");
        return 2;
    }
    wanted = (int)strtol(argv[4], NULL, 10);
    for (got = 0; got < wanted; got++) {
        ipmi_ctx_t ctx = ipmi_ctx_create();

        if (!ctx ||
            ipmi_ctx_open_outofband_2_0(
                ctx, argv[1], argv[2], argv[3], NULL, 0,
                IPMI_PRIVILEGE_LEVEL_USER, 3, 2000, 500,
                IPMI_WORKAROUND_FLAGS_OUTOFBAND_2_0_OPEN_SESSION_PRIVILEGE,
                IPMI_FLAGS_DEFAULT) < 0)
            break;
    }
    printf("%d\n", got);
    fflush(stdout);
    _exit(got > 0 ? 0 : 1);
}

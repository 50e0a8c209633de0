/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/freqlink.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/sim/talk.h"

#define WAIT_MS 5000

struct sim_freqlink {
    int fd;
    bool complained;
    unsigned *told; /* kHz by CPU; 0: never */
};

struct sim_freqlink *sim_freqlink_create(const char *dir,
                                         struct joule_error *err)
{
    struct sim_freqlink *link = calloc(1, sizeof(*link));

    if (link)
        link->told = calloc(SIM_FREQ_CPUS, sizeof(*link->told));
    if (!link || !link->told) {
        free(link);
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    link->fd = sim_talk_open(dir, "control", WAIT_MS, err);
    if (link->fd < 0) {
        sim_freqlink_destroy(link);
        return NULL;
    }
    return link;
}

void sim_freqlink_destroy(struct sim_freqlink *link)
{
    if (!link)
        return;
    if (link->fd >= 0)
        close(link->fd);
    free(link->told);
    free(link);
}

void sim_freqlink_tell(struct sim_freqlink *link, const struct sim_freq *freq)
{
    char line[SIM_FREQ_CPUS * 20 + 16], reply[256];
    struct joule_error err = {""};
    size_t used = 0;

    if (!link || link->fd < 0)
        return;
    for (size_t i = 0; i < freq->cpu_count; i++) {
        unsigned khz = freq->policies[freq->cpus[i].policy].cur;

        if (link->told[i] == khz)
            continue;
        link->told[i] = khz;
        used += (size_t)sprintf(line + used, "%s %u %u", used ? "" : "cpu-khz",
                                freq->cpus[i].number, khz);
    }
    if (!used || !sim_talk_exchange(link->fd, line, reply, sizeof(reply), &err))
        return;
    if (errno != EPROTO) {
        close(link->fd);
        link->fd = -1;
    }
    if (!link->complained)
        fprintf(stderr, "freqsim: the nodesim is not told frequencies: %s\n",
                err.text);
    link->complained = true;
}

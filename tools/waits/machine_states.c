/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/waits/machine_states.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/parse.h"
#include "common/waits/power_states.h"
#include "tools/joule/text.h"

#define CPU       "sys/devices/system/cpu/cpu0/"
#define IDLE_MOST 32
#define TEXT_MAX  4096

static int read_number(int root_fd, const char *path, uint64_t *ret)
{
    char text[32];

    if (joule_file_read(root_fd, path, text, sizeof(text)) < 0)
        return -1;
    return joule_parse_u64(text, 0, UINT64_MAX, ret);
}

/* Highest first. */
static int compare(const void *pa, const void *pb)
{
    uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

    return (a < b) - (a > b);
}

/* kHz; drivers without a list have a highest and a lowest one. */
static size_t find_frequencies(int root_fd,
                               uint64_t khz[JOULE_POWER_STATES_MAX])
{
    char text[TEXT_MAX], *rest = NULL;
    size_t n = 0;

    if (joule_file_read(root_fd, CPU "cpufreq/scaling_available_frequencies",
                        text, sizeof(text)) >= 0)
        for (char *word = strtok_r(text, " ", &rest);
             word && n < JOULE_POWER_STATES_MAX;
             word = strtok_r(NULL, " ", &rest))
            n += joule_parse_u64(word, 1, UINT64_MAX, &khz[n]) == 0;
    if (n == 0) {
        n += read_number(root_fd, CPU "cpufreq/cpuinfo_max_freq", &khz[n]) == 0;
        n += read_number(root_fd, CPU "cpufreq/cpuinfo_min_freq", &khz[n]) == 0;
    }
    qsort(khz, n, sizeof(*khz), compare);
    return n;
}

static void print_idle_states(FILE *out, int root_fd)
{
    char path[128], name[64];
    uint64_t latency_us, power;

    for (int i = 0; i < IDLE_MOST; i++) {
        snprintf(path, sizeof(path), CPU "cpuidle/state%d/name", i);
        if (joule_file_read(root_fd, path, name, sizeof(name)) < 0)
            break;
        snprintf(path, sizeof(path), CPU "cpuidle/state%d/latency", i);
        fprintf(out, "# idle state %d: ", i);
        joule_text_put(out, name);
        if (read_number(root_fd, path, &latency_us) == 0)
            fprintf(out, ", %" PRIu64 " us to leave it", latency_us);
        snprintf(path, sizeof(path), CPU "cpuidle/state%d/power", i);
        /* Documentation/admin-guide/pm/cpuidle.rst: in mW, if it is set. */
        if (read_number(root_fd, path, &power) == 0 && power > 0 &&
            power < UINT32_MAX)
            fprintf(out, ", %" PRIu64 " mW", power);
        fputc('\n', out);
    }
}

int joule_machine_states_print(FILE *out, int root_fd, struct joule_error *err)
{
    uint64_t khz[JOULE_POWER_STATES_MAX], ns;
    size_t n = find_frequencies(root_fd, khz);
    bool has_latency =
        read_number(root_fd, CPU "cpufreq/cpuinfo_transition_latency", &ns) ==
            0 &&
        ns < UINT32_MAX;

    if (n == 0)
        return joule_error_set(err, ENOENT,
                               "the kernel tells no frequencies of CPU 0 "
                               "(/sys/devices/system/cpu/cpu0/cpufreq)");
    fputs("# Power states of this machine, as far as the kernel tells.  "
          "Measure and "
          "fill in\n"
          "# what is '?': the power of a process that computes and of one that "
          "is "
          "idle, and\n"
          "# the energy of a transition from state 1 and back.\n",
          out);
    if (has_latency)
        fprintf(out,
                "# The kernel's latency of a transition is %" PRIu64
                " ns; there and back is twice that.\n",
                ns);
    print_idle_states(out, root_fd);
    fputs("state  frequency_MHz  active_W  idle_W  transition_ns  "
          "transition_J\n",
          out);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "%-5zu  %9" PRIu64 ".%03" PRIu64 "  ?         ?       ",
                i + 1, khz[i] / 1000, khz[i] % 1000);
        if (i == 0)
            fputs("0              0\n", out);
        else if (has_latency)
            fprintf(out, "%-13" PRIu64 "  ?\n", 2 * ns);
        else
            fputs("?              ?\n", out);
    }
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/sim/freqfile.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/parse.h"

int sim_kernel_number(const char *s, uint64_t *ret_value)
{
    while (isspace((unsigned char)*s))
        s++;
    if (!isdigit((unsigned char)*s))
        return -1;
    *ret_value = 0;
    while (isdigit((unsigned char)*s))
        *ret_value = *ret_value * 10 + (uint64_t)(*s++ - '0');
    return 0;
}

int sim_kernel_whole_number(const char *s, int base, uint64_t max,
                            uint64_t *ret_value)
{
    uint64_t value;
    char *end;

    if (*s == '+')
        s++;
    if (!isdigit((unsigned char)*s))
        return -EINVAL;
    errno = 0;
    value = strtoull(s, &end, base);
    if (*end == '\n')
        end++;
    if (*end)
        return -EINVAL;
    if (errno || value > max)
        return -ERANGE;
    *ret_value = value;
    return 0;
}

int sim_kernel_word(const char *s, size_t max, char *ret_word)
{
    size_t len = 0;

    while (isspace((unsigned char)*s))
        s++;
    while (*s && !isspace((unsigned char)*s) && len < max)
        ret_word[len++] = *s++;
    ret_word[len] = '\0';
    return len ? 0 : -1;
}

const struct sim_freq_file *sim_freq_files(enum sim_freq_dir dir)
{
    static const struct sim_freq_file *const files[SIM_DIRS] = {
        [SIM_DIR_TOP] = sim_freq_top_files,
        [SIM_DIR_CPU] = sim_freq_cpu_files,
        [SIM_DIR_CPUFREQ] = sim_freq_boost_files,
        [SIM_DIR_POLICY] = sim_freq_policy_files,
        [SIM_DIR_INTEL] = sim_freq_intel_files,
        [SIM_DIR_AMD] = sim_freq_amd_files,
    };

    return files[dir];
}

bool sim_freq_dir_present(const struct sim_freq *freq, enum sim_freq_dir dir,
                          size_t i)
{
    switch (dir) {
    case SIM_DIR_CPU:
        return i < freq->cpu_count;
    case SIM_DIR_POLICY:
        return i < freq->policy_count &&
               sim_freq_there(freq, &freq->policies[i]);
    case SIM_DIR_INTEL:
        return freq->family == SIM_INTEL_PSTATE;
    case SIM_DIR_AMD:
        return freq->family == SIM_AMD_PSTATE;
    default:
        return true;
    }
}

bool sim_freq_file_present(const struct sim_freq *freq, enum sim_freq_dir dir,
                           size_t i, const struct sim_freq_file *file)
{
    return sim_freq_dir_present(freq, dir, i) &&
           (!file->present || file->present(freq, i));
}

/* Nothing of a policy can be read or set while all its CPUs are offline;
 * kernels before 5.3 still show. */
static int asleep(const struct sim_freq *freq, enum sim_freq_dir dir, size_t i,
                  bool write)
{
    if (dir != SIM_DIR_POLICY || sim_freq_active(freq, &freq->policies[i]))
        return 0;
    if (freq->opt.kernel > SIM_LINUX_4_18)
        return -EBUSY;
    return write ? -EINVAL : 0;
}

ssize_t sim_freq_show(struct sim_freq *freq, enum sim_freq_dir dir, size_t i,
                      const struct sim_freq_file *file, char *buf)
{
    int rc;

    sim_freq_settle(freq, false);
    if (!sim_freq_file_present(freq, dir, i, file))
        return -ENODEV;
    rc = asleep(freq, dir, i, false);
    return rc ? rc : file->show(freq, i, buf);
}

ssize_t sim_freq_store(struct sim_freq *freq, enum sim_freq_dir dir, size_t i,
                       const struct sim_freq_file *file, const char *buf,
                       size_t count)
{
    char text[SIM_FREQ_PAGE + 1];
    int rc;

    sim_freq_settle(freq, false);
    if (!sim_freq_file_present(freq, dir, i, file))
        return -ENODEV;
    if (!file->store)
        return -EACCES;
    if (!count)
        return 0;
    if (count > SIM_FREQ_PAGE)
        count = SIM_FREQ_PAGE;
    rc = asleep(freq, dir, i, true);
    if (rc)
        return rc;
    memcpy(text, buf, count);
    text[count] = '\0';
    rc = file->store(freq, i, text, count);
    return rc ? rc : (ssize_t)count;
}

static const char *const dir_names[SIM_DIRS] = {
    [SIM_DIR_TOP] = "",
    [SIM_DIR_CPU] = "cpu",
    [SIM_DIR_CPUFREQ] = "cpufreq/",
    [SIM_DIR_POLICY] = "cpufreq/policy",
    [SIM_DIR_INTEL] = "intel_pstate/",
    [SIM_DIR_AMD] = "amd_pstate/",
};

static size_t dir_count(const struct sim_freq *freq, enum sim_freq_dir dir)
{
    return dir == SIM_DIR_CPU      ? freq->cpu_count
           : dir == SIM_DIR_POLICY ? freq->policy_count
                                   : 1;
}

void sim_freq_path_print(const struct sim_freq *freq, enum sim_freq_dir dir,
                         size_t i, const struct sim_freq_file *file, char *buf,
                         size_t size)
{
    unsigned number;

    if (dir != SIM_DIR_CPU && dir != SIM_DIR_POLICY) {
        snprintf(buf, size, "%s%s", dir_names[dir], file->name);
        return;
    }
    number =
        dir == SIM_DIR_CPU ? freq->cpus[i].number : freq->policies[i].number;
    snprintf(buf, size, "%s%u/%s", dir_names[dir], number, file->name);
}

int sim_freq_path(const struct sim_freq *freq, const char *path,
                  enum sim_freq_dir *ret_dir, size_t *ret_i,
                  const struct sim_freq_file **ret_file)
{
    char name[128];

    for (int dir = 0; dir < SIM_DIRS; dir++)
        for (size_t i = 0; i < dir_count(freq, dir); i++) {
            const struct sim_freq_file *file = sim_freq_files(dir);

            for (; file->name; file++) {
                if (!sim_freq_file_present(freq, dir, i, file))
                    continue;
                sim_freq_path_print(freq, dir, i, file, name, sizeof(name));
                if (strcmp(name, path))
                    continue;
                *ret_dir = dir;
                *ret_i = i;
                *ret_file = file;
                return 0;
            }
        }
    return ENOENT;
}

size_t sim_freq_dump(struct sim_freq *freq, bool all, char *buf, size_t size)
{
    char name[128], value[SIM_FREQ_PAGE];
    size_t used = 0;

    sim_freq_settle(freq, true);
    for (int dir = 0; dir < SIM_DIRS; dir++)
        for (size_t i = 0; i < dir_count(freq, dir); i++) {
            const struct sim_freq_file *file = sim_freq_files(dir);

            for (; file->name; file++) {
                ssize_t len;

                if (!(all || file->setting) ||
                    !sim_freq_file_present(freq, dir, i, file))
                    continue;
                len = sim_freq_show(freq, dir, i, file, value);
                if (len < 0)
                    len = snprintf(value, sizeof(value), "%s\n",
                                   strerrorname_np((int)-len));
                sim_freq_path_print(freq, dir, i, file, name, sizeof(name));
                used += (size_t)snprintf(used < size ? buf + used : NULL,
                                         used < size ? size - used : 0,
                                         "%s%s %.*s", used ? "\n" : "", name,
                                         (int)len - 1, value);
            }
        }
    return used;
}

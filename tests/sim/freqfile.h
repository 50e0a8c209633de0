/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freqfile.h - the sysfs files of a struct sim_freq: their names and modes,
 * what a read gives and a write does.
 *
 * They are those below /sys/devices/system/cpu; [i] says which CPU (by its
 * place in freq->cpus) or policy (in freq->policies) is meant and is ignored
 * in directories that there are once.
 */
#ifndef SIM_FREQFILE_H
#define SIM_FREQFILE_H

#include "tests/sim/freq.h"

enum sim_freq_dir {
    SIM_DIR_TOP,     /* . */
    SIM_DIR_CPU,     /* cpuN */
    SIM_DIR_CPUFREQ, /* cpufreq */
    SIM_DIR_POLICY,  /* cpufreq/policyN */
    SIM_DIR_INTEL,   /* intel_pstate */
    SIM_DIR_AMD,     /* amd_pstate */
    SIM_DIRS,
};

struct sim_freq_file {
    const char *name;
    mode_t mode;
    bool setting; /* something to be put back, not a measurement */
    /* NULL: there whenever the directory is. */
    bool (*present)(const struct sim_freq *freq, size_t i);
    /* Bytes put into [buf], of SIM_FREQ_PAGE, or -errno. */
    ssize_t (*show)(struct sim_freq *freq, size_t i, char *buf);
    /* 0 or -errno; [buf] ends with a NUL after [count] bytes.  NULL: the
     * file cannot be opened for writing, by root either (EACCES). */
    int (*store)(struct sim_freq *freq, size_t i, const char *buf,
                 size_t count);
};

/* Those of a directory. */
extern const struct sim_freq_file sim_freq_policy_files[];
extern const struct sim_freq_file sim_freq_cpu_files[];
extern const struct sim_freq_file sim_freq_top_files[];
extern const struct sim_freq_file sim_freq_boost_files[];
extern const struct sim_freq_file sim_freq_intel_files[];
extern const struct sim_freq_file sim_freq_amd_files[];

/* The table ends with a name that is NULL. */
const struct sim_freq_file *sim_freq_files(enum sim_freq_dir dir);

/* Whether there is such a directory, and in it that file. */
bool sim_freq_dir_present(const struct sim_freq *freq, enum sim_freq_dir dir,
                          size_t i);
bool sim_freq_file_present(const struct sim_freq *freq, enum sim_freq_dir dir,
                           size_t i, const struct sim_freq_file *file);

/* As read(2) from the beginning, and write(2): bytes, or -errno.  ENODEV: the
 * directory is gone. */
ssize_t sim_freq_show(struct sim_freq *freq, enum sim_freq_dir dir, size_t i,
                      const struct sim_freq_file *file, char *buf);
ssize_t sim_freq_store(struct sim_freq *freq, enum sim_freq_dir dir, size_t i,
                       const struct sim_freq_file *file, const char *buf,
                       size_t count);

/* A path below /sys/devices/system/cpu to a file of ours; 0, or an errno
 * value: ENOENT. */
int sim_freq_path(const struct sim_freq *freq, const char *path,
                  enum sim_freq_dir *ret_dir, size_t *ret_i,
                  const struct sim_freq_file **ret_file);
/* The reverse. */
void sim_freq_path_print(const struct sim_freq *freq, enum sim_freq_dir dir,
                         size_t i, const struct sim_freq_file *file, char *buf,
                         size_t size);

/*
 * Lines "path value" of what can be set, or of every file; an errno's name in
 * place of the value where a file cannot be read.  Returns the bytes that it
 * took, or would have taken.
 */
size_t sim_freq_dump(struct sim_freq *freq, bool all, char *buf, size_t size);

/* The kernel's sscanf of "%u" and "%lu": leading blanks, digits, whatever.
 * 0, or -1: no number there. */
int sim_kernel_number(const char *s, uint64_t *ret_value);
/* And of "%Ns": a word of at most [max] characters; 0, or -1: none there. */
int sim_kernel_word(const char *s, size_t max, char *ret_word);
/* Its kstrtoul() and kstrtouint(): a number of this base (0: as in C) up to
 * [max], and at most one newline.  0, -EINVAL or -ERANGE. */
int sim_kernel_whole_number(const char *s, int base, uint64_t max,
                            uint64_t *ret_value);

/* A CPU list such as "0-3,8", of the CPUs that are [online] or not, with a
 * newline. */
ssize_t sim_freq_cpulist(const struct sim_freq *freq, bool online, bool offline,
                         char *buf);

#endif

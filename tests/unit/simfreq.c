/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/simfreq.h"

int64_t simfreq_now_ns;

static int64_t fake_mono(void *arg)
{
    (void)arg;
    return simfreq_now_ns;
}

const struct joule_clock simfreq_clock = {fake_mono, fake_mono, NULL};

struct sim_freq *simfreq_make(const struct sim_freq_options *opt)
{
    struct joule_error err = {""};
    struct sim_freq *freq;

    simfreq_now_ns = 1000;
    freq = sim_freq_create(opt, &simfreq_clock, &err);
    ck_assert_msg(freq != NULL, "%s", err.text);
    return freq;
}

struct sim_freq_options simfreq_options(const char *driver)
{
    struct sim_freq_options opt;

    sim_freq_options_init(&opt);
    opt.driver = sim_freq_driver_find(driver);
    ck_assert_ptr_nonnull(opt.driver);
    return opt;
}

struct sim_freq *simfreq_simple(const char *driver)
{
    struct sim_freq_options opt = simfreq_options(driver);

    return simfreq_make(&opt);
}

ssize_t simfreq_put(struct sim_freq *freq, const char *path, const char *value)
{
    const struct sim_freq_file *file;
    enum sim_freq_dir dir;
    size_t i;

    if (sim_freq_path(freq, path, &dir, &i, &file))
        return -ENOENT;
    return sim_freq_store(freq, dir, i, file, value, strlen(value));
}

const char *simfreq_get(struct sim_freq *freq, const char *path)
{
    static char buf[SIM_FREQ_PAGE + 1];
    const struct sim_freq_file *file;
    enum sim_freq_dir dir;
    ssize_t len;
    size_t i;

    if (sim_freq_path(freq, path, &dir, &i, &file))
        return "ENOENT";
    len = sim_freq_show(freq, dir, i, file, buf);
    if (len < 0)
        return strerrorname_np((int)-len);
    buf[len] = '\0';
    return buf;
}

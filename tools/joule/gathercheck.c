/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/gathercheck.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "common/profile/config.h"
#include "tools/joule/slurmconf.h"

/* Which of the three types a plugin belongs to. */
enum subsystem { ENERGY, PROFILE, INTERCONNECT };

/* Keys of Slurm's own plugins, by their beginning.  acct_gather.conf(5). */
static const struct {
    const char *prefix;
    enum subsystem subsystem;
    const char *plugins[3]; /* any of them takes the key */
} owners[] = {
    {"EnergyIPMI", ENERGY, {"ipmi", "xcc", NULL}},
    {"ProfileHDF5", PROFILE, {"hdf5", "joule_hdf5", NULL}},
    {"ProfileInfluxDB", PROFILE, {"influxdb", NULL}},
    {"InfinibandOFED", INTERCONNECT, {"ofed", NULL}},
    {"SysfsInterfaces", INTERCONNECT, {"sysfs", NULL}},
};

#define OWNERS (sizeof(owners) / sizeof(owners[0]))

static const char *type_of(const struct joule_gathercheck *g,
                           enum subsystem subsystem)
{
    switch (subsystem) {
    case ENERGY:
        return g->energy_type;
    case PROFILE:
        return g->profile_type;
    case INTERCONNECT:
        return g->interconnect_type;
    }
    return "";
}

/* Whether a comma separated list of types, with or without what stands before
 * the '/', names the plugin. */
static bool names_plugin(const char *types, const char *plugin)
{
    size_t len = strlen(plugin);

    for (const char *p = types; (p = strcasestr(p, plugin)); p++) {
        bool begins = p == types || p[-1] == '/' || p[-1] == ',';

        if (begins && (p[len] == '\0' || p[len] == ','))
            return true;
    }
    return false;
}

/* Our own options: a table for each type of plugin. */
struct ours {
    const struct joule_option *table;
    void *config;     /* for the values */
    const char *type; /* of slurm.conf */
    bool is_loaded;   /* it names a plugin of ours */
};

enum { OURS_ENERGY, OURS_PROFILE, OURS };

/* NULL: no table has the key. */
static const struct joule_option *find_option(const struct ours *ours,
                                              const char *key,
                                              const struct ours **ret_ours)
{
    for (size_t i = 0; i < OURS; i++) {
        const struct joule_option *row = joule_option_find(ours[i].table, key);

        if (row) {
            *ret_ours = &ours[i];
            return row;
        }
    }
    return NULL;
}

static void unknown_option(const struct ours *ours,
                           const struct joule_slurmconf_setting *s,
                           struct joule_findings *findings)
{
    char known[512] = "";

    for (size_t i = 0; i < OURS; i++) {
        for (const struct joule_option *row = ours[i].table; row->key; row++) {
            if (strncmp(row->key, "Joule", 5) != 0 ||
                row->type == JOULE_OPTION_IGNORED)
                continue;
            if (known[0])
                strncat(known, ", ", sizeof(known) - strlen(known) - 1);
            strncat(known, row->key, sizeof(known) - strlen(known) - 1);
        }
    }
    joule_finding_add(findings, JOULE_FAULT, "unknown-option", &s->place, NULL,
                      "%s is no option of slurm-joule (there are %s): "
                      "slurmctld and slurmd do not start with it",
                      s->key, known);
}

static void check_joule(const struct ours *tables,
                        const struct joule_slurmconf_setting *s,
                        struct joule_conf_place *period_place,
                        struct joule_findings *findings)
{
    const struct ours *ours;
    const struct joule_option *row = find_option(tables, s->key, &ours);
    const struct joule_energy_config *energy = tables[OURS_ENERGY].config;
    struct joule_error err;
    char value[JOULE_OPTION_TEXT_MAX + 1];
    char advice[sizeof(value) + 64];

    if (!row) {
        unknown_option(tables, s, findings);
        return;
    }
    if (!ours->is_loaded)
        joule_finding_add(findings, JOULE_FAULT, "option-without-plugin",
                          &s->place, NULL,
                          "%s is set, but %s is no plugin of slurm-joule: "
                          "slurmctld and slurmd do not start with it",
                          s->key, ours->type);
    if (row->notice)
        joule_finding_add(findings, row->secret ? JOULE_WARNING : JOULE_NOTE,
                          "notice", &s->place, NULL, "%s %s", row->key,
                          row->notice);
    if (joule_option_set(row, ours->config, s->value, &err) < 0) {
        joule_option_format(row, ours->config, value, sizeof(value));
        snprintf(advice, sizeof(advice), "%s=%s", row->key, value);
        joule_finding_add(findings, JOULE_WARNING, "bad-value", &s->place,
                          advice, "%s; the plugin uses %s", err.text, value);
        return;
    }
    if (ours == &tables[OURS_ENERGY] && row->type == JOULE_OPTION_DURATION &&
        row->offset == offsetof(struct joule_energy_config, sample_period_ns) &&
        !(row->yields && energy->sample_period_given))
        *period_place = s->place;
}

static void check_other(const struct joule_gathercheck *g,
                        const struct joule_slurmconf_setting *s,
                        struct joule_findings *findings)
{
    for (size_t i = 0; i < OWNERS; i++) {
        const char *types = type_of(g, owners[i].subsystem);

        if (strncasecmp(s->key, owners[i].prefix, strlen(owners[i].prefix)))
            continue;
        for (const char *const *p = owners[i].plugins; *p; p++)
            if (names_plugin(types, *p))
                return;
        joule_finding_add(findings, JOULE_FAULT, "option-without-plugin",
                          &s->place, NULL,
                          "%s belongs to Slurm's plugin \"%s\", which is not "
                          "configured: slurmctld and slurmd do not start with "
                          "it (\"Parsing error at unrecognized key\"); remove "
                          "the line",
                          s->key, owners[i].plugins[0]);
        return;
    }
    joule_finding_add(findings, JOULE_WARNING, "unknown-option", &s->place,
                      NULL,
                      "%s is not known to this program: unless another plugin "
                      "takes it, slurmctld and slurmd do not start with it",
                      s->key);
}

/* Slurm starts without the directory, and profiles nothing. */
static void check_profile_dir(const struct joule_gathercheck *g,
                              const struct joule_slurmconf *conf,
                              struct joule_findings *findings)
{
    const struct joule_slurmconf_setting *dir =
        joule_slurmconf_find(conf, "ProfileHDF5Dir");
    struct joule_conf_place file = {.line = 0};
    struct stat st;

    if (!names_plugin(g->profile_type, "joule_hdf5") &&
        !names_plugin(g->profile_type, "hdf5"))
        return;
    snprintf(file.file, sizeof(file.file), "%s", g->path);
    if (!dir || !dir->value[0])
        joule_finding_add(findings, JOULE_WARNING, "profile-dir",
                          dir ? &dir->place : &file,
                          "ProfileHDF5Dir=/shared/profiles",
                          "ProfileHDF5Dir is not set: nothing is profiled "
                          "(name a directory that all nodes share)");
    else if (dir->value[0] != '/')
        joule_finding_add(findings, JOULE_WARNING, "profile-dir", &dir->place,
                          NULL,
                          "ProfileHDF5Dir=%s is not an absolute path: nothing "
                          "is profiled",
                          dir->value);
    else if (fstatat(g->root_fd, dir->value + strspn(dir->value, "/"), &st, 0) <
                 0 &&
             (errno == ENOENT || errno == ENOTDIR))
        joule_finding_add(findings, JOULE_WARNING, "profile-dir", &dir->place,
                          NULL,
                          "ProfileHDF5Dir=%s is not there on this machine: "
                          "nothing is profiled on it",
                          dir->value);
}

void joule_gathercheck_run(struct joule_gathercheck *g,
                           struct joule_energy_config *config,
                           struct joule_conf_place *period_place,
                           struct joule_findings *findings)
{
    struct joule_profile_config profile;
    const struct ours tables[OURS] = {
        [OURS_ENERGY] = {joule_energy_config_options, config,
                         "AcctGatherEnergyType",
                         names_plugin(g->energy_type, "joule_rapl") ||
                             names_plugin(g->energy_type, "joule_ipmi") ||
                             names_plugin(g->energy_type, "joule_fused")},
        [OURS_PROFILE] = {joule_profile_options, &profile,
                          "AcctGatherProfileType",
                          names_plugin(g->profile_type, "joule_hdf5")},
    };
    struct joule_slurmconf conf;
    struct joule_error err;

    joule_option_defaults(joule_profile_options, &profile);
    if (joule_slurmconf_load(g->root_fd, g->path, NULL, &conf, findings, &err) <
        0) {
        /* The BMC's password may be in it: often only root may read it. */
        g->unreadable = errno != ENOENT;
        if (g->unreadable)
            joule_finding_add(findings,
                              errno == EACCES ? JOULE_WARNING : JOULE_FAULT,
                              "acct-gather-conf", NULL, NULL, "%s", err.text);
        else
            check_profile_dir(g, &conf, findings);
        return;
    }
    g->found = true;
    for (size_t i = 0; i < conf.count; i++) {
        const struct joule_slurmconf_setting *s = &conf.settings[i];
        const struct ours *ours;

        if (strncasecmp(s->key, "Joule", 5) == 0 ||
            (find_option(tables, s->key, &ours) && ours->is_loaded))
            check_joule(tables, s, period_place, findings);
        else
            check_other(g, s, findings);
    }
    check_profile_dir(g, &conf, findings);
    joule_slurmconf_free(&conf);
}

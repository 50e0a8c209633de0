/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/probe.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/parse.h"
#include "common/profile/config.h"
#include "tools/joule/slurmconf.h"

#define ITEM_MAX 256

static const struct plugin {
    const char *type; /* what is behind the '/' is enough for Slurm */
    const char *file;
} plugins[] = {
    {"acct_gather_energy/joule_rapl", "acct_gather_energy_joule_rapl.so"},
    {"acct_gather_energy/joule_ipmi", "acct_gather_energy_joule_ipmi.so"},
    {"acct_gather_energy/joule_fused", "acct_gather_energy_joule_fused.so"},
    {"acct_gather_energy/joule", "acct_gather_energy_joule.so"},
};

#define RAPL  (&plugins[0])
#define IPMI  (&plugins[1])
#define FUSED (&plugins[2])
#define ANY   (&plugins[3])

/* Options of ours: a table for each type of plugin. */
struct ours {
    const struct joule_option *table;
    void *config;     /* for the values */
    const char *type; /* of slurm.conf */
    bool is_loaded;   /* it names a plugin of ours */
};

enum { ENERGY, PROFILE, OURS };

struct check {
    struct joule_confcheck *result;
    int root_fd;
    struct joule_slurmconf conf; /* slurm.conf */
    struct joule_slurmconf_setting unset;
    struct joule_findings *findings;
    const struct plugin *plugin; /* that is configured, or would be */
    struct joule_profile_config profile;
    struct ours ours[OURS];
};

/* Without a setting, "" in the file as a whole. */
static const struct joule_slurmconf_setting *find(const struct check *c,
                                                  const char *key)
{
    const struct joule_slurmconf_setting *s =
        joule_slurmconf_find(&c->conf, key);

    return s ? s : &c->unset;
}

/* The next item of a list, blanks around it removed; NULL at the end.  An
 * item that is too long is cut. */
static const char *next_item(const char *list, char separator,
                             char item[ITEM_MAX])
{
    const char *end;
    size_t len;

    if (!list || !*list)
        return NULL;
    while (isspace((unsigned char)*list))
        list++;
    end = strchrnul(list, separator);
    len = (size_t)(end - list);
    while (len > 0 && isspace((unsigned char)list[len - 1]))
        len--;
    snprintf(item, ITEM_MAX, "%.*s", (int)len, list);
    return *end ? end + 1 : end;
}

static bool contains(const char *text, const char *word)
{
    return strcasestr(text, word) != NULL;
}

/* A type that is set and not the one that does nothing. */
static bool is_on(const char *type)
{
    return *type && !contains(type, "none");
}

/* Without trailing slashes. */
static size_t dir_length(const char *dir)
{
    size_t len = strlen(dir);

    while (len > 1 && dir[len - 1] == '/')
        len--;
    return len;
}

static bool is_dir(const char *dir, const char *other)
{
    size_t len = dir_length(dir);

    return len == dir_length(other) && memcmp(dir, other, len) == 0;
}

/* Slurm's own plugin directory: where it looks without being told, and for the
 * line to write. */
static void stock_dir(int root_fd, char *buf, size_t size)
{
    static const char *const places[] = {
        "usr/lib/x86_64-linux-gnu/slurm-wlm", "usr/lib/slurm-wlm",
        "usr/lib64/slurm", "usr/lib/slurm", "usr/local/lib/slurm"};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (faccessat(root_fd, places[i], F_OK, 0) == 0) {
            snprintf(buf, size, "/%s", places[i]);
            return;
        }
    }
    snprintf(buf, size, "SLURMS_OWN_PLUGIN_DIRECTORY");
}

static void check_plugin_dir(struct check *c)
{
    const char *dirs = find(c, "PluginDir")->value, *rest;
    const char *file = c->plugin->file;
    char dir[64], path[ITEM_MAX + 64];
    char item[ITEM_MAX], advice[PATH_MAX];
    bool ours = false, others = false, hidden = false;

    stock_dir(c->root_fd, dir, sizeof(dir));
    rest = *dirs ? dirs : dir;
    while ((rest = next_item(rest, ':', item))) {
        /* Packages install ours among the others. */
        if (is_dir(item, JOULE_PLUGIN_DIR))
            ours = true;
        if (!is_dir(item, JOULE_PLUGIN_DIR) || is_dir(item, dir))
            others = true;
        snprintf(path, sizeof(path), "%s/%s", item, file);
        if (item[0] != '/' || c->result->plugin[0])
            continue;
        if (faccessat(c->root_fd, path + strspn(path, "/"), R_OK, 0) == 0)
            snprintf(c->result->plugin, sizeof(c->result->plugin), "%s", path);
        else if (errno == EACCES)
            hidden = true;
    }
    snprintf(advice, sizeof(advice), "PluginDir=%s:%s", JOULE_PLUGIN_DIR,
             *dirs && others ? dirs : dir);
    if (c->result->plugin[0] && !others)
        joule_finding_add(c->findings, JOULE_FAULT, "plugin-dir-alone",
                          &find(c, "PluginDir")->place, advice,
                          "PluginDir names only the directory of slurm-joule: "
                          "Slurm would not find its own plugins");
    else if (c->result->plugin[0])
        return;
    else if (hidden)
        joule_finding_add(c->findings, JOULE_WARNING, "plugin-hidden",
                          &find(c, "PluginDir")->place, NULL,
                          "this user may not see whether %s is in PluginDir: "
                          "run as root",
                          file);
    else if (ours)
        joule_finding_add(c->findings, JOULE_FAULT, "plugin-missing",
                          &find(c, "PluginDir")->place, NULL,
                          "%s is not in " JOULE_PLUGIN_DIR
                          ": install slurm-joule on this machine",
                          file);
    else
        joule_finding_add(c->findings, JOULE_FAULT, "plugin-dir",
                          &find(c, "PluginDir")->place, advice,
                          "%s, so Slurm does not find %s (use the directory "
                          "of Slurm's own plugins as the last one)",
                          *dirs ? "PluginDir does not name " JOULE_PLUGIN_DIR
                                : "PluginDir is not set",
                          file);
}

/* The plugin of ours that one item of AcctGatherEnergyType names, or NULL. */
static const struct plugin *our_plugin(const char *item)
{
    for (size_t i = 0; i < sizeof(plugins) / sizeof(plugins[0]); i++)
        if (strcmp(item, plugins[i].type) == 0 ||
            strcmp(item, strchr(plugins[i].type, '/') + 1) == 0)
            return &plugins[i];
    return NULL;
}

/* Whoever has Slurm's plugins for a BMC wants ours for a BMC. */
static void choose_plugin(struct check *c)
{
    const char *type = find(c, "AcctGatherEnergyType")->value;
    const char *rest = type;
    char item[ITEM_MAX];

    c->plugin = contains(type, "ipmi") || contains(type, "xcc") ? IPMI : RAPL;
    while ((rest = next_item(rest, ',', item))) {
        if (!our_plugin(item))
            continue;
        c->plugin = our_plugin(item);
        c->result->ipmi = c->plugin == IPMI || c->plugin == FUSED;
        c->result->fused = c->plugin == FUSED;
        c->result->chooses = c->plugin == ANY;
        return;
    }
}

static void check_energy_type(struct check *c)
{
    const char *type = find(c, "AcctGatherEnergyType")->value;
    const char *rest = type;
    char item[ITEM_MAX], advice[64 + sizeof("AcctGatherEnergyType=")];
    bool ours = false;

    snprintf(advice, sizeof(advice), "AcctGatherEnergyType=%.64s",
             c->plugin->type);
    while ((rest = next_item(rest, ',', item)))
        ours = ours || our_plugin(item);
    if (!*type)
        joule_finding_add(c->findings, JOULE_FAULT, "energy-type",
                          &find(c, "AcctGatherEnergyType")->place, advice,
                          "AcctGatherEnergyType is not set: Slurm loads no "
                          "energy plugin");
    else if (contains(type, "none"))
        joule_finding_add(c->findings, JOULE_FAULT, "energy-type",
                          &find(c, "AcctGatherEnergyType")->place, advice,
                          "AcctGatherEnergyType=%s has \"none\" in it, which "
                          "switches energy accounting off",
                          type);
    else if (strchr(type, ','))
        joule_finding_add(c->findings, JOULE_FAULT, "energy-type-list",
                          &find(c, "AcctGatherEnergyType")->place, advice,
                          "AcctGatherEnergyType=%s is a list: Slurm then adds "
                          "the energy of a step again at every poll",
                          type);
    else if (!ours)
        joule_finding_add(c->findings, JOULE_FAULT, "energy-type",
                          &find(c, "AcctGatherEnergyType")->place, advice,
                          "AcctGatherEnergyType=%s is not a plugin of "
                          "slurm-joule",
                          type);
}

static void check_job_gather(struct check *c)
{
    const char *type = find(c, "JobAcctGatherType")->value;
    const char *track = find(c, "ProctrackType")->value;

    if (is_on(type))
        return;
    joule_finding_add(c->findings, JOULE_FAULT, "job-gather",
                      &find(c, "JobAcctGatherType")->place,
                      contains(track, "linuxproc") || contains(track, "pgid")
                          ? "JobAcctGatherType=jobacct_gather/linux"
                          : "JobAcctGatherType=jobacct_gather/cgroup",
                      "JobAcctGatherType is %s: Slurm then never asks for the "
                      "energy of a step",
                      *type ? "jobacct_gather/none" : "not set");
}

/* The frequency of "task", "energy", ... in JobAcctGatherFrequency, or -1 if
 * it is not given.  A bare number is that of the tasks. */
static int64_t frequency(const char *text, const char *what)
{
    char item[ITEM_MAX];
    size_t len = strlen(what);
    int64_t result = -1;
    uint64_t value;

    while ((text = next_item(text, ',', item))) {
        const char *number = NULL;

        if (strncasecmp(item, what, len) == 0 && item[len] == '=')
            number = item + len + 1;
        else if (!strchr(item, '=') && strcmp(what, "task") == 0)
            number = item;
        if (number && joule_parse_u64(number, 0, INT32_MAX, &value) == 0)
            result = (int64_t)value;
    }
    return result;
}

static void check_frequency(struct check *c)
{
    const char *text = find(c, "JobAcctGatherFrequency")->value;

    if (is_on(find(c, "AcctGatherProfileType")->value) &&
        frequency(text, "energy") <= 0)
        joule_finding_add(c->findings, JOULE_WARNING, "energy-frequency",
                          &find(c, "JobAcctGatherFrequency")->place,
                          "JobAcctGatherFrequency=task=30,energy=1",
                          "a profile plugin is configured but no energy "
                          "frequency: profiles have no energy series unless "
                          "the job asks for one with --acctg-freq");
    if (frequency(text, "task") == 0)
        joule_finding_add(c->findings, JOULE_NOTE, "task-frequency",
                          &find(c, "JobAcctGatherFrequency")->place, NULL,
                          "with a task frequency of 0 the energy of a step is "
                          "read at its start and end only: totals are right, "
                          "but sstat shows nothing new in between");
}

static void check_node_freq(struct check *c)
{
    const char *text = find(c, "AcctGatherNodeFreq")->value;
    uint64_t value;

    if (*text && (joule_parse_u64(text, 0, UINT16_MAX, &value) < 0 || value))
        return;
    joule_finding_add(c->findings, JOULE_WARNING, "node-frequency",
                      &find(c, "AcctGatherNodeFreq")->place,
                      "AcctGatherNodeFreq=30",
                      "AcctGatherNodeFreq is %s: \"scontrol show node\" shows "
                      "the node's power as it was when slurmd registered, or "
                      "none",
                      *text ? "0" : "not set");
}

static void check_contain(struct check *c)
{
    /* The last two imply it. */
    static const char *const flags[] = {"Contain", "X11", "RunInJob"};
    const char *text = find(c, "PrologFlags")->value, *rest = text;
    char item[ITEM_MAX], advice[JOULE_ERROR_MAX];

    while ((rest = next_item(rest, ',', item)))
        for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
            if (strcasecmp(item, flags[i]) == 0)
                return;
    snprintf(advice, sizeof(advice), "PrologFlags=%s%sContain", text,
             *text ? "," : "");
    joule_finding_add(c->findings, JOULE_WARNING, "contain",
                      &find(c, "PrologFlags")->place, advice,
                      "PrologFlags lacks Contain: the energy of a job is then "
                      "the sum of its srun steps, without the batch script, "
                      "and blank for a job without such a step");
}

static void check_storage(struct check *c)
{
    const char *type = find(c, "AccountingStorageType")->value;

    if (contains(type, "slurmdbd"))
        return;
    joule_finding_add(c->findings, JOULE_WARNING, "storage",
                      &find(c, "AccountingStorageType")->place,
                      "AccountingStorageType=accounting_storage/slurmdbd",
                      "AccountingStorageType is %s: sstat shows the energy of "
                      "running steps, but nothing is kept for sacct",
                      *type ? type : "not set");
}

/* ---- acct_gather.conf ----
 *
 * Slurm takes the keys that its loaded acct_gather plugins register and ends
 * slurmctld and slurmd at any other.
 */

/* Keys of Slurm's own plugins, by their beginning.  acct_gather.conf(5). */
static const struct {
    const char *prefix;
    const char *type;       /* of slurm.conf */
    const char *plugins[3]; /* any of them takes the key */
} owners[] = {
    {"EnergyIPMI", "AcctGatherEnergyType", {"ipmi", "xcc", NULL}},
    {"ProfileHDF5", "AcctGatherProfileType", {"hdf5", "joule_hdf5", NULL}},
    {"ProfileInfluxDB", "AcctGatherProfileType", {"influxdb", NULL}},
    {"InfinibandOFED", "AcctGatherInterconnectType", {"ofed", NULL}},
    {"SysfsInterfaces", "AcctGatherInterconnectType", {"sysfs", NULL}},
};

#define OWNERS (sizeof(owners) / sizeof(owners[0]))

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

/* NULL: no table of ours has the key. */
static const struct ours *owner_of(const struct check *c, const char *key,
                                   const struct joule_option **ret_row)
{
    for (size_t i = 0; i < OURS; i++)
        if ((*ret_row = joule_option_find(c->ours[i].table, key)))
            return &c->ours[i];
    return NULL;
}

static void unknown_option(const struct check *c,
                           const struct joule_slurmconf_setting *s)
{
    char known[512] = "";

    for (size_t i = 0; i < OURS; i++) {
        for (const struct joule_option *row = c->ours[i].table; row->key;
             row++) {
            if (strncmp(row->key, "Joule", 5) != 0 ||
                row->type == JOULE_OPTION_IGNORED)
                continue;
            if (known[0])
                strncat(known, ", ", sizeof(known) - strlen(known) - 1);
            strncat(known, row->key, sizeof(known) - strlen(known) - 1);
        }
    }
    joule_finding_add(c->findings, JOULE_FAULT, "unknown-option", &s->place,
                      NULL,
                      "%s is no option of slurm-joule (there are %s): "
                      "slurmctld and slurmd do not start with it",
                      s->key, known);
}

static void check_joule(const struct check *c,
                        const struct joule_slurmconf_setting *s)
{
    const struct joule_option *row;
    const struct ours *ours = owner_of(c, s->key, &row);
    struct joule_error err;
    char value[JOULE_OPTION_TEXT_MAX + 1];
    char advice[sizeof(value) + 64];

    if (!ours) {
        unknown_option(c, s);
        return;
    }
    if (!ours->is_loaded)
        joule_finding_add(c->findings, JOULE_FAULT, "option-without-plugin",
                          &s->place, NULL,
                          "%s is set, but %s is no plugin of slurm-joule: "
                          "slurmctld and slurmd do not start with it",
                          s->key, ours->type);
    if (row->notice)
        joule_finding_add(c->findings, row->secret ? JOULE_WARNING : JOULE_NOTE,
                          "notice", &s->place, NULL, "%s %s", row->key,
                          row->notice);
    if (joule_option_set(row, ours->config, s->value, &err) < 0) {
        joule_option_format(row, ours->config, value, sizeof(value));
        snprintf(advice, sizeof(advice), "%s=%s", row->key, value);
        joule_finding_add(c->findings, JOULE_WARNING, "bad-value", &s->place,
                          advice, "%s; the plugin uses %s", err.text, value);
        return;
    }
    if (joule_confcheck_is_period(row) && ours == &c->ours[ENERGY] &&
        !(row->yields && c->result->config.sample_period_given))
        c->result->period_place = s->place;
}

static void check_other(const struct check *c,
                        const struct joule_slurmconf_setting *s)
{
    for (size_t i = 0; i < OWNERS; i++) {
        const char *types = find(c, owners[i].type)->value;

        if (strncasecmp(s->key, owners[i].prefix, strlen(owners[i].prefix)))
            continue;
        for (const char *const *p = owners[i].plugins; *p; p++)
            if (names_plugin(types, *p))
                return;
        joule_finding_add(c->findings, JOULE_FAULT, "option-without-plugin",
                          &s->place, NULL,
                          "%s belongs to Slurm's plugin \"%s\", which is not "
                          "configured: slurmctld and slurmd do not start with "
                          "it (\"Parsing error at unrecognized key\"); remove "
                          "the line",
                          s->key, owners[i].plugins[0]);
        return;
    }
    joule_finding_add(c->findings, JOULE_WARNING, "unknown-option", &s->place,
                      NULL,
                      "%s is not known to this program: unless another plugin "
                      "takes it, slurmctld and slurmd do not start with it",
                      s->key);
}

/* Slurm starts without the directory, and profiles nothing. */
static void check_profile_dir(const struct check *c,
                              const struct joule_slurmconf *gather,
                              const struct joule_conf_place *file)
{
    const struct joule_slurmconf_setting *dir =
        joule_slurmconf_find(gather, "ProfileHDF5Dir");
    struct stat st;

    if (!c->ours[PROFILE].is_loaded &&
        !names_plugin(find(c, "AcctGatherProfileType")->value, "hdf5"))
        return;
    if (!dir || !dir->value[0])
        joule_finding_add(c->findings, JOULE_WARNING, "profile-dir",
                          dir ? &dir->place : file,
                          "ProfileHDF5Dir=/shared/profiles",
                          "ProfileHDF5Dir is not set: nothing is profiled "
                          "(name a directory that all nodes share)");
    else if (dir->value[0] != '/')
        joule_finding_add(c->findings, JOULE_WARNING, "profile-dir",
                          &dir->place, NULL,
                          "ProfileHDF5Dir=%s is not an absolute path: nothing "
                          "is profiled",
                          dir->value);
    else if (fstatat(c->root_fd, dir->value + strspn(dir->value, "/"), &st, 0) <
                 0 &&
             (errno == ENOENT || errno == ENOTDIR))
        joule_finding_add(c->findings, JOULE_WARNING, "profile-dir",
                          &dir->place, NULL,
                          "ProfileHDF5Dir=%s is not there on this machine: "
                          "nothing is profiled on it",
                          dir->value);
}

static void check_gather(struct check *c)
{
    struct joule_confcheck *r = c->result;
    const char *energy = find(c, "AcctGatherEnergyType")->value;
    const char *profile = find(c, "AcctGatherProfileType")->value;
    struct joule_slurmconf gather;
    struct joule_conf_place file = {.line = 0};
    struct joule_error err;

    c->ours[ENERGY] = (struct ours){joule_energy_config_options, &r->config,
                                    "AcctGatherEnergyType",
                                    names_plugin(energy, "joule_rapl") ||
                                        names_plugin(energy, "joule_ipmi") ||
                                        names_plugin(energy, "joule") ||
                                        names_plugin(energy, "joule_fused")};
    c->ours[PROFILE] = (struct ours){joule_profile_options, &c->profile,
                                     "AcctGatherProfileType",
                                     names_plugin(profile, "joule_hdf5")};
    joule_option_defaults(joule_profile_options, &c->profile);
    snprintf(file.file, sizeof(file.file), "%.*s/acct_gather.conf",
             (int)(strrchr(r->slurm_conf, '/') - r->slurm_conf), r->slurm_conf);
    r->config_known = true;
    if (joule_slurmconf_load(c->root_fd, file.file, &gather, c->findings,
                             &err) == 0) {
        memcpy(r->acct_gather_conf, file.file, sizeof(file.file));
    } else if (errno != ENOENT) {
        /* The BMC's password may be in it: often only root may read it. */
        r->config_known = false;
        joule_finding_add(c->findings,
                          errno == EACCES ? JOULE_WARNING : JOULE_FAULT,
                          "acct-gather-conf", NULL, NULL, "%s", err.text);
        return;
    }
    for (size_t i = 0; i < gather.count; i++) {
        const struct joule_slurmconf_setting *s = &gather.settings[i];
        const struct joule_option *row;
        const struct ours *ours = owner_of(c, s->key, &row);

        if (strncasecmp(s->key, "Joule", 5) == 0 || (ours && ours->is_loaded))
            check_joule(c, s);
        else
            check_other(c, s);
    }
    check_profile_dir(c, &gather, &file);
    joule_slurmconf_free(&gather);
}

/* The first file that is there, read or not; -1 if none could be read. */
static int load(struct check *c, const char *const *paths)
{
    struct joule_error err = {"no path"};
    char looked[JOULE_ERROR_MAX] = "";
    size_t len = 0;

    for (; *paths; paths++) {
        if (joule_slurmconf_load(c->root_fd, *paths, &c->conf, c->findings,
                                 &err) == 0) {
            snprintf(c->unset.place.file, JOULE_PLACE_MAX, "%s", *paths);
            memcpy(c->result->slurm_conf, c->unset.place.file, JOULE_PLACE_MAX);
            return 0;
        }
        if (errno != ENOENT && errno != ENOTDIR) {
            joule_finding_add(c->findings, JOULE_FAULT, "slurm-conf", NULL,
                              NULL, "%s", err.text);
            return -1;
        }
        if (len < sizeof(looked))
            len += (size_t)snprintf(looked + len, sizeof(looked) - len, "%s%s",
                                    len ? " and " : "", *paths);
    }
    joule_finding_add(c->findings, JOULE_FAULT, "slurm-conf", NULL, NULL,
                      "there is no slurm.conf (looked at %s): say --conf FILE, "
                      "or --no-conf to check the sensors alone",
                      looked);
    return -1;
}

bool joule_confcheck_is_period(const struct joule_option *option)
{
    return option->type == JOULE_OPTION_DURATION &&
           option->offset ==
               offsetof(struct joule_energy_config, sample_period_ns);
}

void joule_confcheck_init(struct joule_confcheck *c)
{
    memset(c, 0, sizeof(*c));
    joule_option_defaults(joule_energy_config_options, &c->config);
}

void joule_confcheck_run(struct joule_confcheck *result, int root_fd,
                         const char *const *paths,
                         struct joule_findings *findings)
{
    char none[] = "";
    struct check c = {
        .result = result,
        .unset.value = none,
        .root_fd = root_fd,
        .findings = findings,
    };

    if (load(&c, paths) < 0)
        return;
    choose_plugin(&c);
    check_plugin_dir(&c);
    check_energy_type(&c);
    check_job_gather(&c);
    check_frequency(&c);
    check_node_freq(&c);
    check_contain(&c);
    check_storage(&c);
    check_gather(&c);
    joule_attribution_check_conf(&c.conf, &result->config, findings);
    joule_slurmconf_free(&c.conf);
}

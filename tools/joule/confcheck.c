/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/confcheck.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/base/parse.h"
#include "tools/joule/gathercheck.h"
#include "tools/joule/attribution_check.h"
#include "tools/joule/slurmconf.h"

#define ITEM_MAX 256

static const struct plugin {
    const char *type; /* what is behind the '/' is enough for Slurm */
    const char *file;
} plugins[] = {
    {"acct_gather_energy/joule_rapl", "acct_gather_energy_joule_rapl.so"},
    {"acct_gather_energy/joule_ipmi", "acct_gather_energy_joule_ipmi.so"},
    {"acct_gather_energy/joule_fused", "acct_gather_energy_joule_fused.so"},
};

#define RAPL  (&plugins[0])
#define IPMI  (&plugins[1])
#define FUSED (&plugins[2])

/* What is looked at in slurm.conf. */
static const char *const keys[] = {
    "AccountingStorageType",
    "AcctGatherEnergyType",
    "AcctGatherInterconnectType",
    "AcctGatherNodeFreq",
    "AcctGatherProfileType",
    "JobAcctGatherFrequency",
    "JobAcctGatherType",
    "PluginDir",
    "ProctrackType",
    "PrologFlags",
    "SelectType",
    NULL,
};

struct check {
    struct joule_confcheck *result;
    int root_fd;
    struct joule_slurmconf conf;
    struct joule_findings *findings;
    const struct plugin *plugin; /* that is configured, or would be */
};

/* The value of [key], "" if it is not set, and where it stands: without a
 * setting the file as a whole. */
static const char *value_of(const struct check *c, const char *key,
                            struct joule_conf_place *ret_place)
{
    const struct joule_slurmconf_setting *setting =
        joule_slurmconf_find(&c->conf, key);

    if (setting) {
        *ret_place = setting->place;
        return setting->value;
    }
    memset(ret_place, 0, sizeof(*ret_place));
    snprintf(ret_place->file, sizeof(ret_place->file), "%s",
             c->result->slurm_conf);
    return "";
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
    end = strchr(list, separator);
    while (isspace((unsigned char)*list))
        list++;
    len = end ? (size_t)(end - list) : strlen(list);
    while (len > 0 && isspace((unsigned char)list[len - 1]))
        len--;
    if (len > ITEM_MAX - 1)
        len = ITEM_MAX - 1;
    memcpy(item, list, len);
    item[len] = '\0';
    return end ? end + 1 : list + strlen(list);
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
    struct joule_conf_place place;
    const char *dirs = value_of(c, "PluginDir", &place), *rest;
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
        joule_finding_add(c->findings, JOULE_FAULT, "plugin-dir-alone", &place,
                          advice,
                          "PluginDir names only the directory of slurm-joule: "
                          "Slurm would not find its own plugins");
    else if (c->result->plugin[0])
        return;
    else if (hidden)
        joule_finding_add(c->findings, JOULE_WARNING, "plugin-hidden", &place,
                          NULL,
                          "this user may not see whether %s is in PluginDir: "
                          "run as root",
                          file);
    else if (ours)
        joule_finding_add(c->findings, JOULE_FAULT, "plugin-missing", &place,
                          NULL,
                          "%s is not in " JOULE_PLUGIN_DIR
                          ": install slurm-joule on this machine",
                          file);
    else
        joule_finding_add(c->findings, JOULE_FAULT, "plugin-dir", &place,
                          advice,
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
    struct joule_conf_place ignored;
    const char *type = value_of(c, "AcctGatherEnergyType", &ignored);
    const char *rest = type;
    char item[ITEM_MAX];

    c->plugin = contains(type, "ipmi") || contains(type, "xcc") ? IPMI : RAPL;
    while ((rest = next_item(rest, ',', item))) {
        if (!our_plugin(item))
            continue;
        c->plugin = our_plugin(item);
        c->result->ipmi = c->plugin == IPMI || c->plugin == FUSED;
        c->result->fused = c->plugin == FUSED;
        return;
    }
}

static void check_energy_type(struct check *c)
{
    struct joule_conf_place place;
    const char *type = value_of(c, "AcctGatherEnergyType", &place);
    const char *rest = type;
    char item[ITEM_MAX], advice[64 + sizeof("AcctGatherEnergyType=")];
    bool ours = false;

    snprintf(advice, sizeof(advice), "AcctGatherEnergyType=%.64s",
             c->plugin->type);
    while ((rest = next_item(rest, ',', item)))
        ours = ours || our_plugin(item);
    if (!*type)
        joule_finding_add(c->findings, JOULE_FAULT, "energy-type", &place,
                          advice,
                          "AcctGatherEnergyType is not set: Slurm loads no "
                          "energy plugin");
    else if (contains(type, "none"))
        joule_finding_add(c->findings, JOULE_FAULT, "energy-type", &place,
                          advice,
                          "AcctGatherEnergyType=%s has \"none\" in it, which "
                          "switches energy accounting off",
                          type);
    else if (strchr(type, ','))
        joule_finding_add(c->findings, JOULE_FAULT, "energy-type-list", &place,
                          advice,
                          "AcctGatherEnergyType=%s is a list: Slurm then adds "
                          "the energy of a step again at every poll",
                          type);
    else if (!ours)
        joule_finding_add(c->findings, JOULE_FAULT, "energy-type", &place,
                          advice,
                          "AcctGatherEnergyType=%s is not a plugin of "
                          "slurm-joule",
                          type);
}

static void check_job_gather(struct check *c)
{
    struct joule_conf_place place, ignored;
    const char *type = value_of(c, "JobAcctGatherType", &place);
    const char *track = value_of(c, "ProctrackType", &ignored);

    if (is_on(type))
        return;
    joule_finding_add(c->findings, JOULE_FAULT, "job-gather", &place,
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
    struct joule_conf_place place, ignored;
    const char *text = value_of(c, "JobAcctGatherFrequency", &place);

    if (is_on(value_of(c, "AcctGatherProfileType", &ignored)) &&
        frequency(text, "energy") <= 0)
        joule_finding_add(c->findings, JOULE_WARNING, "energy-frequency",
                          &place, "JobAcctGatherFrequency=task=30,energy=1",
                          "a profile plugin is configured but no energy "
                          "frequency: profiles have no energy series unless "
                          "the job asks for one with --acctg-freq");
    if (frequency(text, "task") == 0)
        joule_finding_add(c->findings, JOULE_NOTE, "task-frequency", &place,
                          NULL,
                          "with a task frequency of 0 the energy of a step is "
                          "read at its start and end only: totals are right, "
                          "but sstat shows nothing new in between");
}

static void check_node_freq(struct check *c)
{
    struct joule_conf_place place;
    const char *text = value_of(c, "AcctGatherNodeFreq", &place);
    uint64_t value;

    if (*text && (joule_parse_u64(text, 0, UINT16_MAX, &value) < 0 || value))
        return;
    joule_finding_add(c->findings, JOULE_WARNING, "node-frequency", &place,
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
    struct joule_conf_place place;
    const char *text = value_of(c, "PrologFlags", &place), *rest = text;
    char item[ITEM_MAX], advice[JOULE_ERROR_MAX];

    while ((rest = next_item(rest, ',', item)))
        for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
            if (strcasecmp(item, flags[i]) == 0)
                return;
    snprintf(advice, sizeof(advice), "PrologFlags=%s%sContain", text,
             *text ? "," : "");
    joule_finding_add(c->findings, JOULE_WARNING, "contain", &place, advice,
                      "PrologFlags lacks Contain: the energy of a job is then "
                      "the sum of its srun steps, without the batch script, "
                      "and blank for a job without such a step");
}

static void check_storage(struct check *c)
{
    struct joule_conf_place place;
    const char *type = value_of(c, "AccountingStorageType", &place);

    if (contains(type, "slurmdbd"))
        return;
    joule_finding_add(c->findings, JOULE_WARNING, "storage", &place,
                      "AccountingStorageType=accounting_storage/slurmdbd",
                      "AccountingStorageType is %s: sstat shows the energy of "
                      "running steps, but nothing is kept for sacct",
                      *type ? type : "not set");
}

static void check_gather(struct check *c)
{
    struct joule_gathercheck gather = {.root_fd = c->root_fd};
    struct joule_conf_place ignored;
    char *slash;

    gather.energy_type = value_of(c, "AcctGatherEnergyType", &ignored);
    gather.profile_type = value_of(c, "AcctGatherProfileType", &ignored);
    gather.interconnect_type =
        value_of(c, "AcctGatherInterconnectType", &ignored);
    snprintf(gather.path, sizeof(gather.path), "%s", c->result->slurm_conf);
    slash = strrchr(gather.path, '/');
    snprintf(slash + 1, sizeof(gather.path) - (size_t)(slash + 1 - gather.path),
             "acct_gather.conf");
    joule_gathercheck_run(&gather, &c->result->config, &c->result->period_place,
                          c->findings);
    c->result->config_known = !gather.unreadable;
    if (gather.found)
        memcpy(c->result->acct_gather_conf, gather.path, sizeof(gather.path));
}

/* The first file that is there, read or not; -1 if none could be read. */
static int load(struct check *c, const char *const *paths)
{
    struct joule_error err = {"no path"};
    char looked[JOULE_ERROR_MAX] = "";
    size_t len = 0;

    for (; *paths; paths++) {
        if (joule_slurmconf_load(c->root_fd, *paths, keys, &c->conf,
                                 c->findings, &err) == 0) {
            snprintf(c->result->slurm_conf, sizeof(c->result->slurm_conf), "%s",
                     *paths);
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

void joule_confcheck_init(struct joule_confcheck *c)
{
    memset(c, 0, sizeof(*c));
    joule_option_defaults(joule_energy_config_options, &c->config);
}

void joule_confcheck_run(struct joule_confcheck *result, int root_fd,
                         const char *const *paths,
                         struct joule_findings *findings)
{
    struct check c = {
        .result = result,
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/parse.h"
#include "common/daemon/sampler.h"
#include "common/sensors/sensor_table.h"
#include "tools/joule/command.h"

#define MEASURE_MIN_NS (100 * JOULE_NS_PER_MS)
#define MEASURE_MAX_NS (3600 * JOULE_NS_PER_S)

/* Without --seconds.  A BMC may take a second or two for a new value. */
#define MEASURE_NS     JOULE_NS_PER_S
#define MEASURE_BMC_NS (5 * JOULE_NS_PER_S)

/* Of the counters, where they are shown beside a BMC only. */
#define GLANCE_NS (200 * JOULE_NS_PER_MS)

#define SETTINGS_MAX 64

static const char usage[] =
    "usage: joule probe [OPTION]...\n"
    "\n"
    "Show what energy this node can measure, and whether Slurm is set up to\n"
    "use it.\n"
    "\n"
    "  --conf FILE|DIR  slurm.conf, or the directory it is in (default:\n"
    "                   $SLURM_CONF, else /etc/slurm)\n"
    "  --no-conf        check the sensors only\n"
    "  --ipmi           ask the BMC, without Slurm's configuration\n"
    "  --set KEY=VALUE  an option as in acct_gather.conf; counts more than\n"
    "                   what stands there, can be given several times\n"
    "  --node NAME      the NodeName (default: the only node there is, else "
    "the\n"
    "                   job's, else the host name)\n"
    "  --seconds S      how long to measure (default 1; a BMC: 5)\n"
    "  --root DIR       look at the /proc, /sys, /dev, /run and /etc of DIR\n"
    "  --json           print a JSON document\n"
    "  --help           print this\n"
    "\n"
    "Exit status: 0 a job would be measured, 1 it would not, 2 usage error.\n";

static int check_conf(struct joule_probe *p,
                      const struct joule_probe_options *opt,
                      struct joule_error *err)
{
    const char *conf = opt->conf;
    struct joule_slurmconf_places places;

    p->conf_checked = true;
    if (!conf && !opt->root)
        conf = getenv("SLURM_CONF");
    if (conf && !*conf)
        conf = NULL;
    if (joule_slurmconf_look(conf, &places, err) < 0)
        return -1;
    /* A file that somebody names is looked up as the shell would, and so are
     * the paths in it; the standard one below the root. */
    if (conf)
        p->conf_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (p->conf_fd < 0)
        return joule_error_set(err, errno, "cannot open /: %m");
    joule_confcheck_run(&p->conf, p->conf_fd, places.path, &p->findings);
    return 0;
}

/* ---- options of acct_gather.conf that were given here ---- */

/* A command line can be read by everybody on the machine. */
static int set_one(struct joule_probe *p, const char *setting,
                   struct joule_error *err)
{
    const char *value = strchr(setting, '=');
    const struct joule_option *row;
    char key[64];

    if (!value || value == setting)
        return joule_error_set(err, EINVAL, "--set takes KEY=VALUE");
    snprintf(key, sizeof(key), "%.*s", (int)(value - setting), setting);
    row = joule_option_find(joule_energy_config_options, key);
    if (!row)
        return joule_error_set(err, EINVAL, "--set: there is no option %s",
                               key);
    if (row->secret)
        return joule_error_set(err, EINVAL,
                               "--set does not take %s: put it into a file "
                               "for --set JouleIPMICredentialsFile=FILE",
                               row->key);
    /* The place in the file is no longer that of the value. */
    if (joule_confcheck_is_period(row))
        p->conf.period_place.file[0] = '\0';
    if (row->offset == offsetof(struct joule_energy_config, ipmi_reader))
        p->own_reader = true;
    return joule_option_set(row, &p->conf.config, value + 1, err);
}

/* ---- sensors ---- */

static void check_period(struct joule_probe *p)
{
    struct joule_domain domains[JOULE_DOMAINS_MAX];
    int64_t asked_ns = p->conf.config.sample_period_ns, ns;
    char asked[32], used[32], advice[64];

    for (size_t i = 0; i < p->sensor.count; i++)
        domains[i] = p->sensor.domains[i].domain;
    ns = joule_sampler_period_ns(
        joule_domains_wrap_ns(domains, p->sensor.count), asked_ns);
    if (!p->conf.period_place.file[0] || ns >= asked_ns)
        return;
    joule_format_duration(asked_ns, asked, sizeof(asked));
    joule_format_duration(ns / JOULE_NS_PER_S * JOULE_NS_PER_S, used,
                          sizeof(used));
    snprintf(advice, sizeof(advice), "JouleSamplePeriod=%s", used);
    joule_finding_add(
        &p->findings, JOULE_WARNING, "sample-period", &p->conf.period_place,
        advice,
        "JouleSamplePeriod=%s is more than a third of the time "
        "in which a counter may wrap (%.1f s): the plugin reads "
        "every %.1f s instead",
        asked, (double)joule_domains_wrap_ns(domains, p->sensor.count) / 1e9,
        (double)ns / 1e9);
}

/* Where a BMC measures the node, the counters are worth a remark; or a warning,
 * if both do. */
static void glance_at_counters(struct joule_probe *p)
{
    struct joule_findings *scratch = calloc(1, sizeof(*scratch));

    if (!scratch)
        return;
    joule_probe_sensor_collect(p, p->fused ? MEASURE_NS : GLANCE_NS, scratch);
    for (size_t i = 0; i < scratch->count; i++) {
        bool matters = p->fused && scratch->list[i].level > JOULE_NOTE;

        joule_finding_add(&p->findings, matters ? JOULE_WARNING : JOULE_NOTE,
                          scratch->list[i].id, NULL, NULL, "%s%s",
                          p->fused ? "RAPL: " : "RAPL, which is not used: ",
                          scratch->list[i].text.text);
    }
    free(scratch);
}

/* What acct_gather_energy/joule would take here. */
static void choose(struct joule_probe *p)
{
    const char *name =
        joule_sensor_choose(p->root_fd, &p->conf.config, &p->choice);

    if (!name)
        name = "joule_rapl";
    p->cray = strcmp(name, "joule_cray") == 0;
    p->hwmon = strcmp(name, "joule_hwmon") == 0;
    p->fused = strcmp(name, "joule_fused") == 0;
    p->ipmi = p->fused || strcmp(name, "joule_ipmi") == 0;
}

static int probe_sensors(struct joule_probe *p,
                         const struct joule_probe_options *opt,
                         struct joule_error *err)
{
    if (!opt->no_conf && !opt->ipmi && check_conf(p, opt, err) < 0)
        return -1;
    for (size_t i = 0; i < opt->setting_count; i++)
        if (set_one(p, opt->settings[i], err) < 0)
            return -1;
    p->ipmi = opt->ipmi || p->conf.ipmi;
    p->fused = !opt->ipmi && p->conf.fused;
    if (!opt->ipmi && p->conf.chooses)
        choose(p);
    joule_node_collect(p, opt->node);
    joule_attribution_check_ledger(p);
    if (!p->ipmi) {
        joule_probe_sensor_collect(
            p, opt->measure_ns ? opt->measure_ns : MEASURE_NS, &p->findings);
        check_period(p);
        return 0;
    }
    glance_at_counters(p);
    if (p->fused && p->sensor.opened)
        check_period(p);
    joule_bmc_collect(p, opt->measure_ns ? opt->measure_ns : MEASURE_BMC_NS);
    joule_bmc_judge(p);
    return 0;
}

int joule_probe_collect(struct joule_probe *p,
                        const struct joule_probe_options *opt,
                        const struct joule_clock *clock,
                        struct joule_error *err)
{
    const char *root = opt->root ? opt->root : "/";
    int rc;

    memset(p, 0, sizeof(*p));
    p->clock = clock;
    p->root_fd = p->conf_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (p->root_fd < 0)
        return joule_error_set(err, errno, "cannot open %s: %m", root);
    joule_confcheck_init(&p->conf);
    joule_access_collect(&p->access, p->root_fd);
    rc = probe_sensors(p, opt, err);
    if (p->conf_fd != p->root_fd)
        joule_close(p->conf_fd);
    joule_close(p->root_fd);
    return rc;
}

bool joule_probe_good(const struct joule_probe *p)
{
    return (p->ipmi ? p->bmc.measures : p->sensor.moves) &&
           p->findings.total[JOULE_FAULT] == 0;
}

/* ---- the command ---- */

static int usage_error(const char *text)
{
    return joule_command_error("probe", text);
}

int joule_probe_main(int argc, char **argv)
{
    const char *settings[SETTINGS_MAX], *seconds = NULL;
    struct joule_probe_options opt = {.settings = settings};
    const struct joule_command_option options[] = {
        {"conf", .text = &opt.conf},
        {"no-conf", .flag = &opt.no_conf},
        {"node", .text = &opt.node},
        {"seconds", .text = &seconds},
        {"root", .text = &opt.root},
        {"json", .flag = &opt.json},
        {"ipmi", .flag = &opt.ipmi},
        {"set", .text = settings, .count = &opt.setting_count,
         .max = SETTINGS_MAX},
        {NULL},
    };
    struct joule_probe *probe;
    struct joule_error err;
    int status = joule_command_parse(options, usage, argc, argv);

    if (status >= 0)
        return status;
    if (seconds && joule_parse_duration_ns(seconds, MEASURE_MIN_NS,
                                           MEASURE_MAX_NS, &opt.measure_ns) < 0)
        return usage_error("--seconds takes 0.1 to 3600");
    if (opt.no_conf && opt.conf)
        return usage_error("--conf and --no-conf exclude each other");
    if (opt.ipmi && opt.conf)
        return usage_error("--conf and --ipmi exclude each other");
    if (opt.conf && !*opt.conf)
        return usage_error("--conf needs a name");
    probe = malloc(sizeof(*probe));
    if (!probe)
        return usage_error("out of memory");
    if (joule_probe_collect(probe, &opt, &joule_clock_system, &err) < 0) {
        status = usage_error(err.text);
    } else {
        if (opt.json)
            joule_probe_print_json(stdout, probe);
        else
            joule_probe_print_text(stdout, probe);
        status = joule_probe_good(probe) ? 0 : 1;
    }
    explicit_bzero(probe, sizeof(*probe));
    free(probe);
    return status;
}

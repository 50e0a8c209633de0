/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/parse.h"
#include "common/sampler/sampler.h"

#define MEASURE_MIN_NS (100 * JOULE_NS_PER_MS)
#define MEASURE_MAX_NS (3600 * JOULE_NS_PER_S)

/* Where slurmd and the commands look: the second is the configuration that
 * they fetched from slurmctld. */
static const char *const standard_paths[] = {
    "/etc/slurm/slurm.conf",
    "/run/slurm/conf/slurm.conf",
    NULL,
};

static const char usage[] =
    "usage: joule probe [OPTION]...\n"
    "\n"
    "Show what energy this node can measure, and whether Slurm is set up to\n"
    "use it.\n"
    "\n"
    "  --conf FILE|DIR  slurm.conf, or the directory it is in (default:\n"
    "                   $SLURM_CONF, else /etc/slurm)\n"
    "  --no-conf        check the sensors only\n"
    "  --node NAME      the NodeName (default: the host name)\n"
    "  --seconds S      how long to measure (default 1)\n"
    "  --root DIR       look at the /proc, /sys, /dev, /run and /etc of DIR\n"
    "  --json           print a JSON document\n"
    "  --help           print this\n"
    "\n"
    "Exit status: 0 a job would be measured, 1 it would not, 2 usage error.\n";

static int conf_error(const char *path, struct joule_error *err)
{
    return joule_error_set(err, ENAMETOOLONG, "%s: the name is too long", path);
}

/* [conf] as an absolute path of a file: "DIR" becomes "DIR/slurm.conf". */
static int conf_path(const char *conf, char path[JOULE_PLACE_MAX],
                     struct joule_error *err)
{
    char cwd[JOULE_PLACE_MAX] = "";
    struct stat st;
    bool is_dir = stat(conf, &st) == 0 && S_ISDIR(st.st_mode);
    int n;

    if (conf[0] != '/' && !getcwd(cwd, sizeof(cwd)))
        return conf_error(conf, err);
    n = snprintf(path, JOULE_PLACE_MAX, "%s%s%s%s", cwd, cwd[0] ? "/" : "",
                 conf, is_dir ? "/slurm.conf" : "");
    return n < JOULE_PLACE_MAX ? 0 : conf_error(conf, err);
}

/* A file that somebody names is looked up as the shell would, and so are the
 * paths in it; the standard one below the root. */
static int check_conf(struct joule_probe *p,
                      const struct joule_probe_options *opt, int root_fd,
                      struct joule_error *err)
{
    const char *conf = opt->conf;
    char path[JOULE_PLACE_MAX];
    const char *paths[] = {path, NULL};
    int fd;

    p->conf_checked = true;
    if (!conf && !opt->root)
        conf = getenv("SLURM_CONF");
    if (!conf || !*conf) {
        joule_confcheck_run(&p->conf, root_fd, standard_paths, &p->findings);
        return 0;
    }
    if (conf_path(conf, path, err) < 0)
        return -1;
    fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return joule_error_set(err, errno, "cannot open /: %m");
    joule_confcheck_run(&p->conf, fd, paths, &p->findings);
    close(fd);
    return 0;
}

static void check_period(struct joule_probe *p)
{
    struct joule_domain domains[JOULE_DOMAINS_MAX];
    int64_t asked_ns = p->conf.config.sample_period_ns, ns;
    char asked[32], used[32], advice[64];

    for (size_t i = 0; i < p->sensor.count; i++)
        domains[i] = p->sensor.domains[i].domain;
    ns = joule_sampler_period_ns(domains, p->sensor.count, asked_ns);
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

int joule_probe_collect(struct joule_probe *p,
                        const struct joule_probe_options *opt,
                        const struct joule_clock *clock,
                        struct joule_error *err)
{
    const char *root = opt->root ? opt->root : "/";
    int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int rc = 0;

    memset(p, 0, sizeof(*p));
    if (root_fd < 0)
        return joule_error_set(err, errno, "cannot open %s: %m", root);
    joule_confcheck_init(&p->conf);
    joule_access_collect(&p->access, root_fd);
    if (!opt->no_conf)
        rc = check_conf(p, opt, root_fd, err);
    if (rc == 0) {
        joule_sensor_collect(&p->sensor, root_fd, clock,
                             p->conf.config.rapl_total_kinds, opt->measure_ns,
                             &p->findings);
        check_period(p);
        joule_node_collect(&p->node, root_fd, clock, opt->node, &p->findings);
    }
    close(root_fd);
    return rc;
}

bool joule_probe_good(const struct joule_probe *p)
{
    return p->sensor.moves && p->findings.total[JOULE_FAULT] == 0;
}

enum { OPT_CONF = 256, OPT_NO_CONF, OPT_NODE, OPT_SECONDS, OPT_ROOT, OPT_JSON };

static const struct option long_options[] = {
    {"conf", required_argument, NULL, OPT_CONF},
    {"no-conf", no_argument, NULL, OPT_NO_CONF},
    {"node", required_argument, NULL, OPT_NODE},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"root", required_argument, NULL, OPT_ROOT},
    {"json", no_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int usage_error(const char *text)
{
    fprintf(stderr, "joule probe: %s\nTry 'joule probe --help'.\n", text);
    return 2;
}

/* -1: go on; otherwise the exit status. */
static int parse_options(int argc, char **argv, struct joule_probe_options *opt)
{
    int c;

    optind = 1;
    while ((c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        switch (c) {
        case OPT_CONF:
            opt->conf = optarg;
            break;
        case OPT_NO_CONF:
            opt->no_conf = true;
            break;
        case OPT_NODE:
            opt->node = optarg;
            break;
        case OPT_SECONDS:
            if (joule_parse_duration_ns(optarg, MEASURE_MIN_NS, MEASURE_MAX_NS,
                                        &opt->measure_ns) < 0)
                return usage_error("--seconds takes 0.1 to 3600");
            break;
        case OPT_ROOT:
            opt->root = optarg;
            break;
        case OPT_JSON:
            opt->json = true;
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        default:
            fputs("Try 'joule probe --help'.\n", stderr);
            return 2;
        }
    }
    if (optind < argc)
        return usage_error("there are no arguments beside the options");
    if (opt->no_conf && opt->conf)
        return usage_error("--conf and --no-conf exclude each other");
    if (opt->conf && !*opt->conf)
        return usage_error("--conf needs a name");
    return -1;
}

int joule_probe_main(int argc, char **argv)
{
    struct joule_probe_options opt = {.measure_ns = JOULE_NS_PER_S};
    struct joule_probe *probe;
    struct joule_error err;
    int status = parse_options(argc, argv, &opt);

    if (status >= 0)
        return status;
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
    free(probe);
    return status;
}

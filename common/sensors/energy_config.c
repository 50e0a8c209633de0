/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/energy_config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/energy/attribution.h"
#include "common/sensors/cpu_counters.h"
#include "common/sensors/sensor.h"

#define PACKAGE JOULE_DOMAIN_BIT(JOULE_DOMAIN_PACKAGE)
#define DRAM    JOULE_DOMAIN_BIT(JOULE_DOMAIN_DRAM)
#define PSYS    JOULE_DOMAIN_BIT(JOULE_DOMAIN_PSYS)

static const struct joule_word attribution_words[] = {
    {"cputime", JOULE_ATTRIBUTION_CPUTIME},
    {"alloc", JOULE_ATTRIBUTION_ALLOC},
    {"node", JOULE_ATTRIBUTION_NODE},
    {NULL, 0},
};

static const struct joule_word profile_node_words[] = {
    {"alone", JOULE_PROFILE_NODE_ALONE},
    {"always", JOULE_PROFILE_NODE_ALWAYS},
    {NULL, 0},
};

static const struct joule_word total_words[] = {
    {"package", PACKAGE},
    {"dram", DRAM},
    {"psys", PSYS},
    {NULL, 0},
};

static const struct joule_word sensor_words[] = {
    {"auto", JOULE_USE_ALL},
    {"cray", JOULE_USE_CRAY},
    {"fused", JOULE_USE_FUSED},
    {"hwmon", JOULE_USE_HWMON},
    {"ipmi", JOULE_USE_IPMI},
    {"rapl", JOULE_USE_RAPL},
    {NULL, 0},
};

static const struct joule_word cpu_words[] = {
    {"auto", JOULE_CPU_AUTO},
    {"msr", JOULE_CPU_MSR},
    {"powercap", JOULE_CPU_POWERCAP},
    {NULL, 0},
};

/* Slurm hands its numbers to libipmimonitoring (ipmi_monitoring.h): they are
 * taken as well. */
static const struct joule_word driver_words[] = {
    {"auto", JOULE_IPMI_DRIVER_ANY},
    {"KCS", JOULE_IPMI_DRIVER_KCS},
    {"0", JOULE_IPMI_DRIVER_KCS},
    {"SSIF", JOULE_IPMI_DRIVER_SSIF},
    {"1", JOULE_IPMI_DRIVER_SSIF},
    {"OPENIPMI", JOULE_IPMI_DRIVER_OPENIPMI},
    {"2", JOULE_IPMI_DRIVER_OPENIPMI},
    {"LAN", JOULE_IPMI_DRIVER_LAN},
    {"LAN_2_0", JOULE_IPMI_DRIVER_LAN_2_0},
    {NULL, 0},
};

static const struct joule_word protocol_words[] = {
    {"2.0", JOULE_IPMI_DRIVER_LAN_2_0},
    {"1", JOULE_IPMI_DRIVER_LAN_2_0},
    {"1.5", JOULE_IPMI_DRIVER_LAN},
    {"0", JOULE_IPMI_DRIVER_LAN},
    {NULL, 0},
};

/* To the numbers of IPMI 2.0, table 22-19. */
static const struct joule_word privilege_words[] = {
    {"USER", 2},  {"0", 2}, {"OPERATOR", 3}, {"1", 3},
    {"ADMIN", 4}, {"2", 4}, {NULL, 0},
};

/* To the numbers of IPMI 2.0, table 22-17. */
static const struct joule_word authentication_words[] = {
    {"MD5", 2}, {"3", 2},    {"MD2", 1}, {"2", 1},  {"STRAIGHT", 4},
    {"1", 4},   {"NONE", 0}, {"0", 0},   {NULL, 0},
};

static const struct joule_word variable_words[] = {
    {"Watts", 0}, {"Power", 0}, {NULL, 0}};

static int refuse(void)
{
    errno = EINVAL;
    return -1;
}

/* PSYS holds package and DRAM: a sum of them would count energy twice.
 * DRAM alone is no node total. */
static int total_check(const void *field, struct joule_error *reason)
{
    unsigned bits = *(const unsigned *)field;

    (void)reason;
    if (bits == PACKAGE || bits == (PACKAGE | DRAM) || bits == PSYS)
        return 0;
    return refuse();
}

/* Those that FreeIPMI knows. */
static int cipher_check(const void *field, struct joule_error *reason)
{
    uint64_t id = *(const uint64_t *)field;

    (void)reason;
    if (id <= 3 || (id >= 6 && id <= 8) || id == 11 || id == 12 ||
        (id >= 15 && id <= 17))
        return 0;
    return refuse();
}

static int path_check(const void *field, struct joule_error *reason)
{
    const char *path = field;

    (void)reason;
    return path[0] == '\0' || path[0] == '/' ? 0 : refuse();
}

static int host_check(const void *field, struct joule_error *reason)
{
    struct joule_ipmi_config scratch;

    if (*(const char *)field == '\0')
        return 0;
    return joule_ipmi_host_expand(field, "host", "node", &scratch, reason);
}

/* Which driver it will be is not known here. */
static int workarounds_check(const void *field, struct joule_error *reason)
{
    uint32_t flags;
    int rc = -1;

    for (unsigned driver = 0; driver <= JOULE_IPMI_DRIVER_LAN_2_0 && rc < 0;
         driver++)
        rc = joule_ipmi_workarounds_parse(field, driver, &flags, reason);
    return rc;
}

#define ROW(name, kind, field, text)                                           \
    .key = name, .type = JOULE_OPTION_##kind,                                  \
    .offset = offsetof(struct joule_energy_config, field),                     \
    .default_text = text
#define NUMBER(name, kind, field, text, least, most, ...)                      \
    {                                                                          \
        ROW(name, kind, field, text), .min = least, .max = most, __VA_ARGS__   \
    }
#define BOOL(name, field, text, ...)                                           \
    {                                                                          \
        ROW(name, BOOL, field, text), __VA_ARGS__                              \
    }
#define WORDS(name, kind, field, text, list, allowed, ...)                     \
    {                                                                          \
        ROW(name, kind, field, text), .words = list, .range = allowed,         \
                                      __VA_ARGS__                              \
    }
#define TEXT(name, field, ...)                                                 \
    {                                                                          \
        ROW(name, TEXT, field, ""),                                            \
            .max = sizeof(((struct joule_energy_config *)0)->field) - 1,       \
            __VA_ARGS__                                                        \
    }
#define IGNORED(name, why, what)                                               \
    {                                                                          \
        .key = name, .type = JOULE_OPTION_IGNORED, .notice = why, .help = what \
    }
#define NO_MEANING(name, why)                                                  \
    IGNORED(name, "has no meaning here: " why,                                 \
            "no meaning here; taken because Slurm's plugin has it")
#define PATH  .check = path_check, .range = "an absolute path"
#define MS    JOULE_NS_PER_MS
#define S     JOULE_NS_PER_S
#define GIVEN .given = offsetof(struct joule_energy_config, sample_period_given)

const struct joule_option joule_energy_config_options[] = {
    NUMBER("JouleSamplePeriod", DURATION, sample_period_ns, "1s", 10 * MS,
           60 * S, GIVEN,
           .help = "how often slurmd reads the energy counters or the BMC"),
    IGNORED("JouleQuietPeriod",
            "is no longer used: slurmd reads every JouleSamplePeriod",
            "no longer used"),
    WORDS("JouleRAPLDomains", WORDS, rapl_total_kinds, "package,dram",
          total_words, "package,dram or package or psys", .check = total_check,
          .help = "which RAPL domains make the node's energy"),
    WORDS("JouleSensors", WORDS, sensors, "auto", sensor_words,
          "auto, or some of cray, fused, hwmon, ipmi and rapl",
          .help = "which sensors acct_gather_energy/joule may take"),
    WORDS("JouleCPUCounters", WORD, cpu_way, "auto", cpu_words,
          "auto, msr or powercap",
          .help = "where the energy counters of the CPUs are read"),
    WORDS("JouleAttribution", WORD, attribution, "cputime", attribution_words,
          "cputime, alloc or node",
          .help = "how the node's energy is divided among its jobs"),
    NUMBER("JouleIdleWatts", U64, idle_w, "0", 0, 100000,
           .help = "what the node uses when nothing runs; 0: learned"),
    NUMBER("JouleUserPeriod", DURATION, user_period_ns, "1s", 10 * MS, 3600 * S,
           .help = "how often users see new numbers of their own steps"),
    WORDS("JouleProfileNode", WORD, profile_node, "alone", profile_node_words,
          "alone or always",
          .help = "whether a job's profile shows the node: if the job has it "
                  "alone, or always"),
    TEXT("JouleIPMIHost", ipmi_host, .check = host_check,
         .range = "a host name or address, in which %h and %n are replaced",
         .help = "the BMC to ask over the network"),
    TEXT("JouleIPMICredentialsFile", ipmi_credentials_file, PATH,
         .help = "where the BMC's user name and password stand"),
    NUMBER("JouleIPMIAnswerTimeout", DURATION, ipmi.answer_ns, "5s", 100 * MS,
           60 * S, .help = "longest wait for one reading of the BMC"),
    BOOL("JouleIPMIIgnoreInactive", ipmi.ignore_inactive, "no",
         .help = "believe DCMI that says that it does not measure"),
    TEXT("JouleIPMIReader", ipmi_reader, PATH,
         .help = "another program in place of the installed joule-ipmi-reader"),
    /* Not checked here: other sensors than those that were meant are no
     * default.  Without a list that makes sense, energy is unknown. */
    TEXT("EnergyIPMIPowerSensors", ipmi_sensors,
         .range = "LABEL=SENSOR[,SENSOR]...[;LABEL=...] with a label Node",
         .help = "which sensors make the node's power"),
    NUMBER("EnergyIPMIFrequency", DURATION, sample_period_ns, "1s", 10 * MS,
           60 * S, GIVEN, .yields = true,
           .help = "as JouleSamplePeriod, where that is not set"),
    BOOL("EnergyIPMICalcAdjustment", ipmi_adjust, "yes",
         .help = "carry energy on from the last sample with the last power"),
    NUMBER("EnergyIPMITimeout", DURATION, ipmi.connect_ns, "180s", 1 * S,
           600 * S, .help = "longest wait for a connection with the BMC"),
    WORDS("EnergyIPMIDriverType", WORD, ipmi.driver, "auto", driver_words,
          "auto, KCS (0), SSIF (1), OPENIPMI (2), LAN or LAN_2_0",
          .help = "the way to the BMC"),
    TEXT("EnergyIPMIDriverDevice", ipmi.device, PATH,
         .help = "the device of the driver"),
    BOOL("EnergyIPMIDisableAutoProbe", ipmi.no_probe, "no",
         .help = "do not look for the driver's address"),
    NUMBER("EnergyIPMIDriverAddress", HEX, ipmi.driver_address, "0x0", 0,
           0xFFFF, .help = "the driver's address; 0: as probed"),
    NUMBER("EnergyIPMIRegisterSpacing", U64, ipmi.register_spacing, "0", 0, 255,
           .help = "bytes between the driver's registers; 0: as probed"),
    WORDS("EnergyIPMIProtocolVersion", WORD, ipmi_protocol, "2.0",
          protocol_words, "2.0 (1) or 1.5 (0)",
          .help = "IPMI over the network: LAN_2_0 or LAN"),
    TEXT("EnergyIPMIUsername", ipmi.username, .secret = true,
         .help = "the BMC's user"),
    TEXT("EnergyIPMIPassword", ipmi.password, .secret = true,
         .notice = "should not stand in this file, which users may read: put "
                   "it into a file for root and name that by "
                   "JouleIPMICredentialsFile",
         .help = "the BMC's password"),
    WORDS("EnergyIPMIPrivilegeLevel", WORD, ipmi.privilege, "USER",
          privilege_words, "USER (0), OPERATOR (1) or ADMIN (2)",
          .help = "the privilege to ask for"),
    WORDS("EnergyIPMIAuthenticationType", WORD, ipmi.authentication, "MD5",
          authentication_words, "NONE (0), STRAIGHT (1), MD2 (2) or MD5 (3)",
          .help = "authentication of IPMI 1.5 over the network"),
    NUMBER("EnergyIPMICipherSuiteId", U64, ipmi.cipher_suite, "3", 0, 17,
           .check = cipher_check, .range = "0 to 3, 6 to 8, 11, 12, 15 to 17",
           .help = "cipher suite of IPMI 2.0 over the network"),
    NUMBER("EnergyIPMISessionTimeout", U64, ipmi.session_timeout_ms, "0", 0,
           600000,
           .help = "milliseconds without an answer that end a session; 0: "
                   "derived"),
    NUMBER("EnergyIPMIRetransmissionTimeout", U64,
           ipmi.retransmission_timeout_ms, "0", 0, 60000,
           .help = "milliseconds to a packet's repetition; 0: derived"),
    TEXT("EnergyIPMIWorkaroundFlags", ipmi_workarounds,
         .check = workarounds_check,
         .range = "FreeIPMI's words, separated by commas, or a number",
         .help = "for BMCs that err"),
    WORDS("EnergyIPMIVariable", WORD, ipmi_variable, "Watts", variable_words,
          "Watts", .help = "what is read: power and nothing else"),
    BOOL("EnergyIPMIIgnoreScanningDisabled", ipmi.ignore_scanning, "no",
         .help = "believe sensors of which the BMC says that it does not scan "
                 "them"),
    NO_MEANING("EnergyIPMIRereadSdrCache",
               "no sensor records are kept on disk, and those in use are "
               "looked at in each connection"),
    NO_MEANING("EnergyIPMIIgnoreNonInterpretableSensors",
               "only the sensors that are asked for are read"),
    NO_MEANING("EnergyIPMIBridgeSensors",
               "a sensor of another controller is always asked for there"),
    NO_MEANING("EnergyIPMIInterpretOemData", "only power is read"),
    NO_MEANING("EnergyIPMISharedSensors",
               "sensors of power have records of their own"),
    NO_MEANING("EnergyIPMIDiscreteReading", "power is not a discrete reading"),
    NO_MEANING("EnergyIPMIAssumeBmcOwner",
               "the owner that the sensor's record names is asked"),
    NO_MEANING("EnergyIPMIEntitySensorNames",
               "sensors have the names of their records"),
    {0},
};

/* ---- for the reader process ---- */

static int choose_driver(const struct joule_energy_config *config,
                         struct joule_ipmi_config *ret, struct joule_error *err)
{
    bool lan = joule_ipmi_is_lan(ret);

    if (config->ipmi_host[0] == '\0' && lan)
        return joule_error_set(err, EINVAL,
                               "EnergyIPMIDriverType is LAN or LAN_2_0, but "
                               "JouleIPMIHost is not set");
    if (config->ipmi_host[0] && !lan && ret->driver != JOULE_IPMI_DRIVER_ANY)
        return joule_error_set(err, EINVAL,
                               "JouleIPMIHost is set, but EnergyIPMIDriverType "
                               "is a driver for this machine's own BMC: leave "
                               "one of them out");
    if (config->ipmi_host[0] && !lan)
        ret->driver = config->ipmi_protocol;
    return 0;
}

/* Nobody asks for them in-band, and what is in a file is the reader's alone. */
static int check_credentials(const struct joule_energy_config *config,
                             int root_fd, struct joule_ipmi_config *ret,
                             struct joule_error *err)
{
    const char *path = config->ipmi_credentials_file;
    int fd;

    if (config->ipmi_host[0] && !path[0])
        return joule_ipmi_password_check(ret->driver, ret->password, err);
    explicit_bzero(ret->username, sizeof(ret->username));
    explicit_bzero(ret->password, sizeof(ret->password));
    if (!config->ipmi_host[0])
        return 0;
    fd = joule_ipmi_credentials_open(root_fd, path, err);
    return fd < 0 ? -1 : close(fd);
}

static int make(const struct joule_energy_config *config, int root_fd,
                const char *hostname, const char *node,
                struct joule_ipmi_config *ret, struct joule_error *err)
{
    uint64_t session_ms = ret->session_timeout_ms;
    struct joule_error reason;

    if (choose_driver(config, ret, err) < 0)
        return -1;
    if (joule_ipmi_sensors_parse(config->ipmi_sensors, ret, &reason) < 0)
        return joule_error_set(err, errno, "EnergyIPMIPowerSensors: %s",
                               reason.text);
    if (config->ipmi_host[0] &&
        joule_ipmi_host_expand(config->ipmi_host, hostname, node, ret,
                               &reason) < 0)
        return joule_error_set(err, errno, "JouleIPMIHost: %s", reason.text);
    if (joule_ipmi_workarounds_parse(config->ipmi_workarounds, ret->driver,
                                     &ret->workaround_flags, &reason) < 0)
        return joule_error_set(err, errno, "EnergyIPMIWorkaroundFlags: %s",
                               reason.text);
    if (session_ms && ret->retransmission_timeout_ms > session_ms)
        return joule_error_set(err, EINVAL,
                               "EnergyIPMIRetransmissionTimeout is more than "
                               "EnergyIPMISessionTimeout");
    return check_credentials(config, root_fd, ret, err);
}

int joule_ipmi_config_make(const struct joule_energy_config *config,
                           int root_fd, const char *hostname, const char *node,
                           struct joule_ipmi_config *ret,
                           struct joule_error *err)
{
    int errnum;

    *ret = config->ipmi;
    ret->period_ns = config->sample_period_ns;
    if (make(config, root_fd, hostname, node, ret, err) == 0)
        return 0;
    errnum = errno;
    explicit_bzero(ret, sizeof(*ret));
    errno = errnum;
    return -1;
}

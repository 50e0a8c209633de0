/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/sensors/energy_config.h"

static int choose_driver(const struct joule_energy_config *config,
                         struct joule_ipmi_config *ret, struct joule_error *err)
{
    enum joule_ipmi_driver driver = (enum joule_ipmi_driver)config->ipmi_driver;
    bool lan =
        driver == JOULE_IPMI_DRIVER_LAN || driver == JOULE_IPMI_DRIVER_LAN_2_0;

    if (config->ipmi_host[0] == '\0' && lan)
        return joule_error_set(err, EINVAL,
                               "EnergyIPMIDriverType is LAN or LAN_2_0, but "
                               "JouleIPMIHost is not set");
    if (config->ipmi_host[0] && !lan && driver != JOULE_IPMI_DRIVER_ANY)
        return joule_error_set(err, EINVAL,
                               "JouleIPMIHost is set, but EnergyIPMIDriverType "
                               "is a driver for this machine's own BMC: leave "
                               "one of them out");
    if (config->ipmi_host[0] && !lan)
        driver = (enum joule_ipmi_driver)config->ipmi_protocol;
    ret->driver = driver;
    return 0;
}

/* What is in a file is the reader's alone. */
static int take_credentials(const struct joule_energy_config *config,
                            int root_fd, struct joule_ipmi_config *ret,
                            struct joule_error *err)
{
    const char *path = config->ipmi_credentials_file;
    int fd;

    if (path[0]) {
        fd = joule_ipmi_credentials_open(root_fd, path, err);
        return fd < 0 ? -1 : close(fd);
    }
    memcpy(ret->username, config->ipmi_username, sizeof(ret->username));
    memcpy(ret->password, config->ipmi_password, sizeof(ret->password));
    return joule_ipmi_password_check(ret->driver, ret->password, err);
}

/* The texts. */
static int take_apart(const struct joule_energy_config *config,
                      const char *hostname, const char *node,
                      struct joule_ipmi_config *ret, struct joule_error *err)
{
    struct joule_error reason;

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
    return 0;
}

static int check_timeouts(const struct joule_energy_config *config,
                          struct joule_error *err)
{
    uint64_t session_ms = config->ipmi_session_timeout_ms;

    if (session_ms && config->ipmi_retransmission_timeout_ms > session_ms)
        return joule_error_set(err, EINVAL,
                               "EnergyIPMIRetransmissionTimeout is more than "
                               "EnergyIPMISessionTimeout");
    return 0;
}

int joule_ipmi_config_make(const struct joule_energy_config *config,
                           int root_fd, const char *hostname, const char *node,
                           struct joule_ipmi_config *ret,
                           struct joule_error *err)
{
    int errnum;

    memset(ret, 0, sizeof(*ret));
    memcpy(ret->device, config->ipmi_device, sizeof(ret->device));
    ret->privilege = config->ipmi_privilege;
    ret->authentication = config->ipmi_authentication;
    ret->cipher_suite = (uint32_t)config->ipmi_cipher_suite;
    ret->session_timeout_ms = (uint32_t)config->ipmi_session_timeout_ms;
    ret->retransmission_timeout_ms =
        (uint32_t)config->ipmi_retransmission_timeout_ms;
    ret->no_probe = config->ipmi_no_probe;
    ret->ignore_inactive = config->ipmi_ignore_inactive;
    ret->ignore_scanning = config->ipmi_ignore_scanning;
    ret->driver_address = (uint32_t)config->ipmi_driver_address;
    ret->register_spacing = (uint32_t)config->ipmi_register_spacing;
    ret->period_ns = config->sample_period_ns;
    ret->answer_ns = config->ipmi_answer_ns;
    ret->connect_ns = config->ipmi_connect_ns;
    if (choose_driver(config, ret, err) == 0 &&
        take_apart(config, hostname, node, ret, err) == 0 &&
        check_timeouts(config, err) == 0 &&
        (!config->ipmi_host[0] ||
         take_credentials(config, root_fd, ret, err) == 0))
        return 0;
    errnum = errno;
    explicit_bzero(ret, sizeof(*ret));
    errno = errnum;
    return -1;
}

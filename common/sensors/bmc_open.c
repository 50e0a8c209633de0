/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/bmc_open.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/sensors/ipmi_helper.h"

#define READER JOULE_LIBEXECDIR "/joule-ipmi-reader"

/* Another reader than the installed one runs with the rights of slurmd: it
 * must be a file that only root could have put there. */
static int check_reader(int root_fd, const char *program,
                        struct joule_error *err)
{
    struct joule_error reason;
    int fd =
        joule_file_open_trusted(root_fd, program, S_IWGRP | S_IWOTH, &reason);

    if (fd < 0)
        return joule_error_set(err, errno, "JouleIPMIReader: %s", reason.text);
    close(fd);
    return 0;
}

struct joule_sensor *joule_bmc_open(int root_fd,
                                    const struct joule_energy_config *config,
                                    const char *node, int64_t period_ns,
                                    struct joule_error *err)
{
    struct joule_ipmi_config ipmi;
    struct joule_ipmi_helper_options opt = {
        .clock = &joule_clock_system,
        .program = config->ipmi_reader[0] ? config->ipmi_reader : READER,
        .config = &ipmi,
        .credentials_file =
            config->ipmi_host[0] ? config->ipmi_credentials_file : NULL,
        .root_fd = root_fd,
    };
    struct joule_sensor *source = NULL;
    char hostname[256];
    int errnum;

    if (gethostname(hostname, sizeof(hostname)) < 0)
        hostname[0] = '\0';
    hostname[sizeof(hostname) - 1] = '\0';
    if (config->ipmi_reader[0] &&
        check_reader(root_fd, config->ipmi_reader, err) < 0)
        return NULL;
    if (joule_ipmi_config_make(config, root_fd, hostname, node, &ipmi, err) ==
        0) {
        ipmi.period_ns = period_ns;
        source = joule_ipmi_helper_create(&opt, err);
    }
    errnum = errno;
    explicit_bzero(&ipmi, sizeof(ipmi));
    errno = errnum;
    return source;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ipmi_config.h - which BMC to ask for which sensors: a plain struct without
 * pointers, handed as it is to the reader process.
 *
 * It holds the BMC's password: whoever has one wipes it with
 * explicit_bzero(3) and never prints it.
 */
#ifndef JOULE_SENSORS_IPMI_CONFIG_H
#define JOULE_SENSORS_IPMI_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define JOULE_IPMI_LABELS_MAX  16
#define JOULE_IPMI_SENSORS_MAX 64 /* of all labels together */
#define JOULE_IPMI_LABEL_SIZE  32 /* [A-Za-z0-9_-], with the final 0 */
/* A sensor's name, with the final 0: 31 bytes of BCD plus are 62 characters. */
#define JOULE_IPMI_NAME_SIZE     64
#define JOULE_IPMI_USER_SIZE     17 /* IPMI 2.0, 20.7: 16 bytes */
#define JOULE_IPMI_PASSWORD_SIZE 21 /* IPMI 2.0, 20.7: 20 bytes */
#define JOULE_IPMI_HOST_SIZE     256

enum joule_ipmi_driver {
    JOULE_IPMI_DRIVER_ANY, /* in-band: OPENIPMI, KCS, SSIF, what is there */
    JOULE_IPMI_DRIVER_OPENIPMI,
    JOULE_IPMI_DRIVER_KCS,
    JOULE_IPMI_DRIVER_SSIF,
    JOULE_IPMI_DRIVER_LAN,
    JOULE_IPMI_DRIVER_LAN_2_0,
};

enum joule_ipmi_sensor_kind {
    JOULE_IPMI_SENSOR_DEFAULT, /* none is named: what covers the node
                                  (ipmi_choice.h); the only one then */
    JOULE_IPMI_SENSOR_RECORD,
    JOULE_IPMI_SENSOR_NAME,
    JOULE_IPMI_SENSOR_DCMI,
    JOULE_IPMI_SENSOR_DCMI_ENHANCED, /* mean of the BMC's shortest window */
};

struct joule_ipmi_sensor {
    enum joule_ipmi_sensor_kind kind;
    uint32_t label;                  /* index of the label it counts for */
    uint16_t record_id;              /* RECORD */
    char name[JOULE_IPMI_NAME_SIZE]; /* NAME */
    /* What an earlier connection found for a RECORD or NAME sensor;
     * empty: nothing yet.  A connection that finds another name under the
     * same record looks for the name instead. */
    char found_name[JOULE_IPMI_NAME_SIZE];
};

struct joule_ipmi_config {
    unsigned driver; /* enum joule_ipmi_driver */
    /* LAN and LAN_2_0 */
    char host[JOULE_IPMI_HOST_SIZE]; /* patterns expanded; HOST or HOST:PORT */
    char username[JOULE_IPMI_USER_SIZE];
    char password[JOULE_IPMI_PASSWORD_SIZE];
    unsigned privilege;          /* 2 user, 3 operator, 4 administrator */
    unsigned authentication;     /* LAN: IPMI 2.0, table 22-17; 2: MD5 */
    uint64_t cipher_suite;       /* LAN_2_0 */
    uint64_t session_timeout_ms; /* 0: derived from the period */
    uint64_t retransmission_timeout_ms; /* 0: derived, adapts */
    /* what is believed although the BMC says that it does not measure it */
    bool ignore_inactive; /* DCMI: power measurement not active */
    bool ignore_scanning; /* a sensor: scanning disabled */
    /* in-band */
    bool no_probe;             /* do not look for the address oneself */
    uint64_t driver_address;   /* 0: as probed */
    uint64_t register_spacing; /* 0: as probed */
    char device[256];          /* empty: the driver's own */
    uint32_t workaround_flags; /* IPMI_WORKAROUND_FLAGS_... of FreeIPMI for
                                  the driver's protocol */
    int64_t period_ns;         /* of readings */
    int64_t answer_ns;         /* longest wait for one reading */
    int64_t connect_ns;        /* longest wait for a connection */
    uint32_t label_count;      /* >= 1; label[0] is "Node" */
    uint32_t sensor_count;
    char label[JOULE_IPMI_LABELS_MAX][JOULE_IPMI_LABEL_SIZE];
    struct joule_ipmi_sensor sensor[JOULE_IPMI_SENSORS_MAX];
};

static inline bool joule_ipmi_is_lan(const struct joule_ipmi_config *config)
{
    return config->driver == JOULE_IPMI_DRIVER_LAN ||
           config->driver == JOULE_IPMI_DRIVER_LAN_2_0;
}

/* Whether all of it is in range, every string has an end and every label a
 * sensor: of a configuration that another process sent. */
bool joule_ipmi_config_is_sound(const struct joule_ipmi_config *config);

/*
 * Parse EnergyIPMIPowerSensors, LABEL=SENSOR[,SENSOR]...[;LABEL=...], into
 * labels and sensors.  SENSOR: record id (decimal), DCMI, DCMI_ENHANCED, or a
 * name, in quotes if it has ',', ';', '=' or a quote or looks like one of the
 * others.  "Node" must be among the labels and is put first; empty [text] is
 * "Node=" + the DEFAULT sensor.  -1 with EINVAL and a sentence without the
 * option's key: "label \"X\" stands twice"; then nothing changes.
 */
int joule_ipmi_sensors_parse(const char *text, struct joule_ipmi_config *config,
                             struct joule_error *err);

/* Expand %h (short host name), %n (NodeName) and %% of [pattern] into
 * config->host, which must be a host name or address, with or without a port.
 * -1 with EINVAL and a sentence. */
int joule_ipmi_host_expand(const char *pattern, const char *hostname,
                           const char *node, struct joule_ipmi_config *config,
                           struct joule_error *err);

/* Split HOST, HOST:PORT, [V6]:PORT or V6 into *host and the port, which is a
 * part of [text] or NULL. */
const char *joule_ipmi_host_split(const char *text,
                                  char host[JOULE_IPMI_HOST_SIZE]);

/* Work-arounds for BMCs that err, as FreeIPMI's tools name them
 * (freeipmi.conf(5), --workaround-flags): words separated by commas, "none",
 * empty, or a number.  *ret_flags are those for [driver]; -1 with EINVAL and a
 * sentence if none is. */
int joule_ipmi_workarounds_parse(const char *text,
                                 enum joule_ipmi_driver driver,
                                 uint32_t *ret_flags, struct joule_error *err);

/* -1 with EINVAL and a sentence: it is longer than the driver allows. */
int joule_ipmi_password_check(enum joule_ipmi_driver driver,
                              const char *password, struct joule_error *err);

/* Parse "username NAME" and "password WORDS" lines, one of each; '#' begins a
 * comment only at the beginning of a line.  The password must be one that
 * config->driver allows.  -1 with EINVAL and a sentence that quotes nothing of
 * the text; then nothing changes. */
int joule_ipmi_credentials_parse(const char *text, size_t len,
                                 struct joule_ipmi_config *config,
                                 struct joule_error *err);

/* Open JouleIPMICredentialsFile, absolute [path] below root_fd.  It must be a
 * regular file of root (or the effective user) that nobody else may read, in
 * directories that nobody else may write; otherwise -1 with EPERM, or with what
 * open gave, and a sentence that begins with the option's key. */
int joule_ipmi_credentials_open(int root_fd, const char *path,
                                struct joule_error *err);

/* Parse what is behind fd, to its end.  As joule_ipmi_credentials_parse, or -1
 * with EFBIG above 4096 bytes, or what read gave; sentences begin with the
 * option's key and [path]. */
int joule_ipmi_credentials_read(int fd, const char *path,
                                struct joule_ipmi_config *config,
                                struct joule_error *err);

#endif

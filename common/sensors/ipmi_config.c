/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/ipmi_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/option.h"
#include "common/base/parse.h"

#define CREDENTIALS_KEY  "JouleIPMICredentialsFile"
#define CREDENTIALS_MAX  4096
#define LAN_PASSWORD_MAX 16     /* IPMI 2.0, 22.30: IPMI 1.5 has 16 bytes */
#define RECORD_ID_MAX    0xFFFE /* IPMI 2.0, 33.12: FFFFh is "the last one" */
#define BLANKS           " \t"
#define LETTERS_DIGITS                                                         \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/* Longer is no period and no patience. */
#define TIME_MAX_NS (INT64_C(86400) * JOULE_NS_PER_S)

/* Without the blanks at both ends. */
static char *trim(char *text)
{
    size_t len;

    text += strspn(text, BLANKS);
    len = strlen(text);
    while (len > 0 && strchr(BLANKS, text[len - 1]))
        text[--len] = '\0';
    return text;
}

static bool has_control(const char *text)
{
    while (*text && (unsigned char)*text >= 0x20 && *text != 0x7F)
        text++;
    return *text != '\0';
}

/* ---- sensors ---- */

static int add_label(struct joule_ipmi_config *c, const char *name,
                     struct joule_error *err)
{
    if (!*name)
        return joule_error_set(err, EINVAL, "a label is missing before \"=\"");
    if (c->label_count == JOULE_IPMI_LABELS_MAX)
        return joule_error_set(err, EINVAL, "there are more than %d labels",
                               JOULE_IPMI_LABELS_MAX);
    if (name[strspn(name, LETTERS_DIGITS "_-")])
        return joule_error_set(err, EINVAL,
                               "label \"%s\" has characters other than "
                               "letters, digits, \"_\" and \"-\"",
                               name);
    if (strlen(name) >= JOULE_IPMI_LABEL_SIZE)
        return joule_error_set(err, EINVAL,
                               "label \"%s\" has more than %d characters", name,
                               JOULE_IPMI_LABEL_SIZE - 1);
    if (strcasecmp(name, "Node") == 0)
        name = "Node";
    for (uint32_t i = 0; i < c->label_count; i++)
        if (strcmp(c->label[i], name) == 0)
            return joule_error_set(err, EINVAL, "label \"%s\" stands twice",
                                   name);
    strcpy(c->label[c->label_count++], name);
    return 0;
}

static int parse_sensor(const char *text, bool quoted,
                        struct joule_ipmi_sensor *sensor,
                        struct joule_error *err)
{
    uint64_t id;

    if (!quoted && strcasecmp(text, "DCMI") == 0) {
        sensor->kind = JOULE_IPMI_SENSOR_DCMI;
        return 0;
    }
    if (!quoted && strcasecmp(text, "DCMI_ENHANCED") == 0) {
        sensor->kind = JOULE_IPMI_SENSOR_DCMI_ENHANCED;
        return 0;
    }
    if (!quoted && !text[strspn(text, "0123456789")]) {
        if (joule_parse_u64(text, 1, RECORD_ID_MAX, &id) < 0)
            return joule_error_set(err, EINVAL,
                                   "%s is no record id (1 to %d; the name of a "
                                   "sensor that looks like a number stands in "
                                   "quotes)",
                                   text, RECORD_ID_MAX);
        sensor->kind = JOULE_IPMI_SENSOR_RECORD;
        sensor->record_id = (uint16_t)id;
        return 0;
    }
    if (!quoted && strpbrk(text, "\"'="))
        return joule_error_set(err, EINVAL,
                               "sensor name \"%s\" has a quote or a \"=\" in "
                               "it: put all of it in quotes",
                               text);
    if (!*text)
        return joule_error_set(err, EINVAL, "the name of a sensor is empty");
    if (has_control(text))
        return joule_error_set(err, EINVAL,
                               "the name of a sensor has a control character");
    if (strlen(text) >= sizeof(sensor->name))
        return joule_error_set(err, EINVAL,
                               "sensor name \"%s\" has more than %d characters",
                               text, JOULE_IPMI_NAME_SIZE - 1);
    sensor->kind = JOULE_IPMI_SENSOR_NAME;
    strcpy(sensor->name, text);
    return 0;
}

/* For the last label. */
static int add_sensor(struct joule_ipmi_config *c, const char *text,
                      bool quoted, struct joule_error *err)
{
    uint32_t label = c->label_count - 1;
    struct joule_ipmi_sensor *sensor = &c->sensor[c->sensor_count];

    if (!*text && !quoted)
        return joule_error_set(err, EINVAL,
                               "label \"%s\" has an empty place where a sensor "
                               "should be",
                               c->label[label]);
    if (c->sensor_count == JOULE_IPMI_SENSORS_MAX)
        return joule_error_set(err, EINVAL, "there are more than %d sensors",
                               JOULE_IPMI_SENSORS_MAX);
    sensor->label = label;
    if (parse_sensor(text, quoted, sensor, err) < 0)
        return -1;
    for (uint32_t i = 0; i < c->sensor_count; i++) {
        const struct joule_ipmi_sensor *other = &c->sensor[i];

        /* It would count twice. */
        if (other->label == label && other->kind == sensor->kind &&
            other->record_id == sensor->record_id &&
            strcmp(other->name, sensor->name) == 0)
            return joule_error_set(err, EINVAL,
                                   "sensor %s stands twice in label \"%s\"",
                                   text, c->label[label]);
    }
    c->sensor_count++;
    return 0;
}

/* The sensor at *at; *at is set behind what ends it, which is returned: ',',
 * ';' or 0; or -1. */
static int take_sensor(struct joule_ipmi_config *c, char **at,
                       struct joule_error *err)
{
    char *text = *at + strspn(*at, BLANKS), *end;
    bool quoted = *text == '"' || *text == '\'';
    int ends_with;

    if (quoted) {
        end = strchr(text + 1, *text);
        if (!end)
            return joule_error_set(
                err, EINVAL, "a quote is opened and not closed: %s", text);
        text++;
        *end++ = '\0';
        end += strspn(end, BLANKS);
        if (*end && *end != ',' && *end != ';')
            return joule_error_set(err, EINVAL,
                                   "\",\" or \";\" is missing before %s", end);
    } else {
        end = text + strcspn(text, ",;");
    }
    ends_with = *end;
    *at = end + (*end != '\0');
    *end = '\0';
    if (add_sensor(c, quoted ? text : trim(text), quoted, err) < 0)
        return -1;
    return ends_with;
}

static int take_label(struct joule_ipmi_config *c, char **at,
                      struct joule_error *err)
{
    char *name = *at;
    size_t len = strcspn(name, "=;,");
    int ends_with;

    if (name[len] != '=')
        return joule_error_set(err, EINVAL,
                               "\"%.*s\" is not of the form "
                               "LABEL=SENSOR[,SENSOR]...",
                               (int)len, name);
    name[len] = '\0';
    *at = name + len + 1;
    if (add_label(c, trim(name), err) < 0)
        return -1;
    do
        ends_with = take_sensor(c, at, err);
    while (ends_with == ',');
    return ends_with < 0 ? -1 : 0;
}

/* "Node" to the front; the others keep their order. */
static int node_first(struct joule_ipmi_config *c, struct joule_error *err)
{
    uint32_t node = 0;

    while (node < c->label_count && strcmp(c->label[node], "Node") != 0)
        node++;
    if (node == c->label_count)
        return joule_error_set(err, EINVAL, "there is no label \"Node\"");
    memmove(c->label[1], c->label[0], node * sizeof(c->label[0]));
    memset(c->label[0], 0, sizeof(c->label[0]));
    memcpy(c->label[0], "Node", sizeof("Node"));
    for (uint32_t i = 0; i < c->sensor_count; i++) {
        if (c->sensor[i].label == node)
            c->sensor[i].label = 0;
        else if (c->sensor[i].label < node)
            c->sensor[i].label++;
    }
    return 0;
}

int joule_ipmi_sensors_parse(const char *text, struct joule_ipmi_config *config,
                             struct joule_error *err)
{
    char buf[JOULE_OPTION_TEXT_MAX + 1], *at;
    struct joule_ipmi_config c;
    size_t len;

    if (strlen(text) >= sizeof(buf))
        return joule_error_set(err, EINVAL, "more than %d characters",
                               JOULE_OPTION_TEXT_MAX);
    strcpy(buf, text);
    at = trim(buf);
    len = strlen(at);
    /* Slurm's parser leaves single quotes around all of it. */
    if (len > 1 && at[0] == '\'' && at[len - 1] == '\'') {
        at[len - 1] = '\0';
        at = trim(at + 1);
    }
    memset(&c, 0, sizeof(c));
    if (*at == '\0') {
        strcpy(c.label[0], "Node");
        c.label_count = 1;
        c.sensor_count = 1; /* DEFAULT, for label 0 */
    } else {
        /* One ';' at the end does no harm. */
        for (; *at; at += strspn(at, BLANKS))
            if (take_label(&c, &at, err) < 0)
                return -1;
        if (node_first(&c, err) < 0)
            return -1;
    }
    config->label_count = c.label_count;
    config->sensor_count = c.sensor_count;
    memcpy(config->label, c.label, sizeof(config->label));
    memcpy(config->sensor, c.sensor, sizeof(config->sensor));
    return 0;
}

/* ---- host and work-arounds ---- */

const char *joule_ipmi_host_split(const char *text,
                                  char host[JOULE_IPMI_HOST_SIZE])
{
    const char *colon = strrchr(text, ':'), *end = strchr(text, ']');

    if (text[0] == '[' && end) {
        snprintf(host, JOULE_IPMI_HOST_SIZE, "%.*s", (int)(end - text - 1),
                 text + 1);
        return end[1] ? end + 2 : NULL;
    }
    /* An IPv6 address alone has more than one ':'. */
    if (colon != strchr(text, ':'))
        colon = NULL;
    snprintf(host, JOULE_IPMI_HOST_SIZE, "%.*s",
             colon ? (int)(colon - text) : JOULE_IPMI_HOST_SIZE - 1, text);
    return colon ? colon + 1 : NULL;
}

static int check_host(const char *text, struct joule_error *err)
{
    char host[JOULE_IPMI_HOST_SIZE];
    const char *port = joule_ipmi_host_split(text, host);
    const char *end = strrchr(text, ']');
    uint64_t number;

    if (text[strspn(text, LETTERS_DIGITS "._-:[]")])
        return joule_error_set(err, EINVAL,
                               "\"%s\" is not a host name or an address", text);
    if (end && end[1] != '\0' && end[1] != ':')
        return joule_error_set(err, EINVAL, "\"%s\" has no port behind \"]\"",
                               text);
    if (port && joule_parse_u64(port, 1, 65535, &number) < 0)
        return joule_error_set(
            err, EINVAL, "\"%s\" has no port behind \":\" (1 to 65535)", text);
    if (host[0] == '\0')
        return joule_error_set(err, EINVAL, "there is no host name in it");
    return 0;
}

int joule_ipmi_host_expand(const char *pattern, const char *hostname,
                           const char *node, struct joule_ipmi_config *config,
                           struct joule_error *err)
{
    char host[JOULE_IPMI_HOST_SIZE] = "";
    size_t have = 0;

    for (const char *p = pattern; *p; p++) {
        const char *text = p;
        size_t len = 1;

        if (*p == '%') {
            p++;
            if (*p != 'h' && *p != 'n' && *p != '%')
                return joule_error_set(err, EINVAL,
                                       "only %%h, %%n and %%%% may stand in "
                                       "\"%s\"",
                                       pattern);
            text = *p == 'h' ? hostname : *p == 'n' ? node : "%";
            if (!text || !*text)
                return joule_error_set(
                    err, EINVAL, "the %s for %%%c is not known",
                    *p == 'h' ? "host name" : "NodeName", *p);
            len = *p == 'h' ? strcspn(text, ".") : strlen(text);
        }
        if (len >= sizeof(host) - have)
            return joule_error_set(err, EINVAL,
                                   "\"%s\" makes a host name of more than %d "
                                   "characters",
                                   pattern, JOULE_IPMI_HOST_SIZE - 1);
        memcpy(host + have, text, len);
        have += len;
    }
    if (check_host(host, err) < 0)
        return -1;
    memcpy(config->host, host, sizeof(host));
    return 0;
}

/* A word's flags for the three kinds of drivers: the same thing has another
 * bit in each (freeipmi/api/ipmi-api.h, IPMI_WORKAROUND_FLAGS_...). */
#define LAN(bit)     ((unsigned)(bit))
#define LAN_2_0(bit) ((unsigned)(bit) << 8)
#define INBAND(bit)  ((unsigned)(bit) << 16)
#define INBAND_ALL   0x03
#define LAN_ALL      0x7F
#define EVERYWHERE   (LAN(1) | LAN_2_0(1) | INBAND(1))

static const struct joule_word workarounds[] = {
    {"none", 0},
    {"authcap", LAN(0x01) | LAN_2_0(0x01)},
    {"idzero", LAN(0x02)},
    {"forcepermsg", LAN(0x04)},
    {"unexpectedauth", LAN(0x08)},
    {"endianseq", LAN(0x10)},
    {"noauthcodecheck", LAN(0x20)},
    {"nochecksumcheck", LAN(0x40) | LAN_2_0(0x40)},
    {"intel20", LAN_2_0(0x02)},
    {"supermicro20", LAN_2_0(0x04)},
    {"sun20", LAN_2_0(0x08)},
    {"opensesspriv", LAN_2_0(0x10)},
    {"integritycheckvalue", LAN_2_0(0x20)},
    {"assumeio", INBAND(0x01)},
    {"spinpoll", INBAND(0x02)},
    {NULL, 0},
};

int joule_ipmi_workarounds_parse(const char *text,
                                 enum joule_ipmi_driver driver,
                                 uint32_t *ret_flags, struct joule_error *err)
{
    bool lan = driver == JOULE_IPMI_DRIVER_LAN,
         lan_2_0 = driver == JOULE_IPMI_DRIVER_LAN_2_0;
    unsigned bits = 0, all = lan || lan_2_0 ? LAN_ALL : INBAND_ALL, flags;
    uint64_t number;

    if (joule_parse_hex64(text, &number) == 0) {
        if (number > all)
            return joule_error_set(
                err, EINVAL, "the driver has work-arounds 0 to 0x%X", all);
        bits = (unsigned)number * EVERYWHERE;
    } else if (*text && joule_parse_words(text, workarounds, &bits) < 0) {
        return joule_error_set(err, EINVAL,
                               "neither a number nor words that FreeIPMI has "
                               "for its work-arounds, separated by commas");
    }
    flags = bits >> (lan ? 0 : lan_2_0 ? 8 : 16) & all;
    if (bits != 0 && flags == 0)
        return joule_error_set(err, EINVAL,
                               "none of the work-arounds is one of this "
                               "driver");
    *ret_flags = flags;
    return 0;
}

/* ---- credentials ---- */

struct credentials {
    char username[JOULE_IPMI_USER_SIZE];
    char password[JOULE_IPMI_PASSWORD_SIZE];
    char line[CREDENTIALS_MAX + 1];
};

static int take_value(unsigned number, const char *key, const char *value,
                      char *field, size_t size, struct joule_error *err)
{
    if (field[0])
        return joule_error_set(err, EINVAL, "line %u: a second %s", number,
                               key);
    if (!*value)
        return joule_error_set(err, EINVAL, "line %u: %s has no value", number,
                               key);
    if (has_control(value))
        return joule_error_set(
            err, EINVAL, "line %u: a control character in %s", number, key);
    if (strlen(value) >= size)
        return joule_error_set(err, EINVAL,
                               "line %u: %s has more than %zu bytes", number,
                               key, size - 1);
    strcpy(field, value);
    return 0;
}

static int take_line(struct credentials *c, unsigned number, size_t len,
                     struct joule_error *err)
{
    char *key, *value;

    if (strlen(c->line) != len)
        return joule_error_set(err, EINVAL, "line %u: a NUL byte", number);
    if (len > 0 && c->line[len - 1] == '\r')
        c->line[len - 1] = '\0';
    key = trim(c->line);
    value = key + strcspn(key, BLANKS);
    if (*value)
        *value++ = '\0';
    value += strspn(value, BLANKS);
    if (!*key || *key == '#')
        return 0;
    if (strcasecmp(key, "username") == 0)
        return take_value(number, "username", value, c->username,
                          sizeof(c->username), err);
    if (strcasecmp(key, "password") == 0)
        return take_value(number, "password", value, c->password,
                          sizeof(c->password), err);
    return joule_error_set(err, EINVAL,
                           "line %u: neither \"username NAME\" nor \"password "
                           "WORDS\"",
                           number);
}

int joule_ipmi_password_check(enum joule_ipmi_driver driver,
                              const char *password, struct joule_error *err)
{
    if (driver == JOULE_IPMI_DRIVER_LAN && strlen(password) > LAN_PASSWORD_MAX)
        return joule_error_set(err, EINVAL,
                               "the BMC's password has more than %d bytes, "
                               "which IPMI 1.5 (LAN) does not allow",
                               LAN_PASSWORD_MAX);
    return 0;
}

int joule_ipmi_credentials_parse(const char *text, size_t len,
                                 struct joule_ipmi_config *config,
                                 struct joule_error *err)
{
    struct credentials c;
    const char *at = text, *end = text + len;
    unsigned number = 1;
    int rc = 0;

    memset(&c, 0, sizeof(c));
    while (rc == 0 && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t line_len = (size_t)((stop ? stop : end) - at);

        if (line_len > CREDENTIALS_MAX)
            rc = joule_error_set(err, EINVAL, "line %u is too long", number);
        else {
            memcpy(c.line, at, line_len);
            c.line[line_len] = '\0';
            rc = take_line(&c, number++, line_len, err);
        }
        at = stop ? stop + 1 : end;
    }
    if (rc == 0 && !(c.username[0] && c.password[0]))
        rc =
            joule_error_set(err, EINVAL, "there is no line \"%s\"",
                            c.username[0] ? "password WORDS" : "username NAME");
    if (rc == 0)
        rc = joule_ipmi_password_check(config->driver, c.password, err);
    if (rc == 0) {
        memcpy(config->username, c.username, sizeof(c.username));
        memcpy(config->password, c.password, sizeof(c.password));
    }
    explicit_bzero(&c, sizeof(c));
    return rc;
}

int joule_ipmi_credentials_open(int root_fd, const char *path,
                                struct joule_error *err)
{
    struct joule_error reason;
    int fd = joule_file_open_trusted(root_fd, path, 0077, &reason);

    if (fd < 0)
        joule_error_set(err, errno, CREDENTIALS_KEY ": %s", reason.text);
    return fd;
}

int joule_ipmi_credentials_read(int fd, const char *path,
                                struct joule_ipmi_config *config,
                                struct joule_error *err)
{
    char text[CREDENTIALS_MAX + 1];
    struct joule_error reason;
    ssize_t len = joule_file_fill(fd, text, sizeof(text));
    int rc, errnum;

    if (len < 0)
        rc = joule_error_set(&reason, errno, "cannot be read: %m");
    else if (len > CREDENTIALS_MAX)
        rc = joule_error_set(&reason, EFBIG, "more than %d bytes",
                             CREDENTIALS_MAX);
    else
        rc = joule_ipmi_credentials_parse(text, (size_t)len, config, &reason);
    errnum = errno;
    explicit_bzero(text, sizeof(text));
    errno = errnum;
    return rc == 0 ? 0
                   : joule_error_set(err, errnum, CREDENTIALS_KEY ": %s: %s",
                                     path, reason.text);
}

/* ---- a configuration from another process ---- */

static bool ends(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

#define ENDS(field) ends(field, sizeof(field))

/* A bool that is neither 0 nor 1 may be both at once. */
static bool is_bool(const bool *field)
{
    return *(const unsigned char *)field <= 1;
}

static bool is_time(int64_t ns)
{
    return ns > 0 && ns <= TIME_MAX_NS;
}

static bool is_sensor(const struct joule_ipmi_config *c,
                      const struct joule_ipmi_sensor *s)
{
    return (unsigned)s->kind <= JOULE_IPMI_SENSOR_DCMI_ENHANCED &&
           s->label < c->label_count && ENDS(s->name) && ENDS(s->found_name) &&
           (s->kind != JOULE_IPMI_SENSOR_NAME || s->name[0]) &&
           (s->kind != JOULE_IPMI_SENSOR_DEFAULT || c->sensor_count == 1);
}

bool joule_ipmi_config_is_sound(const struct joule_ipmi_config *c)
{
    bool has_sensor[JOULE_IPMI_LABELS_MAX] = {false};

    if ((unsigned)c->driver > JOULE_IPMI_DRIVER_LAN_2_0 || !ENDS(c->host) ||
        !ENDS(c->username) || !ENDS(c->password) || !ENDS(c->device) ||
        (joule_ipmi_is_lan(c) && check_host(c->host, NULL) < 0) ||
        c->privilege > UINT8_MAX || c->authentication > UINT8_MAX ||
        c->cipher_suite > UINT8_MAX || c->driver_address > UINT16_MAX ||
        c->register_spacing > UINT8_MAX || !is_bool(&c->no_probe) ||
        !is_bool(&c->ignore_inactive) || !is_bool(&c->ignore_scanning) ||
        !is_time(c->period_ns) || !is_time(c->answer_ns) ||
        !is_time(c->connect_ns) ||
        c->session_timeout_ms > TIME_MAX_NS / JOULE_NS_PER_MS ||
        c->retransmission_timeout_ms > TIME_MAX_NS / JOULE_NS_PER_MS ||
        c->label_count < 1 || c->label_count > JOULE_IPMI_LABELS_MAX ||
        c->sensor_count < 1 || c->sensor_count > JOULE_IPMI_SENSORS_MAX)
        return false;
    for (uint32_t i = 0; i < c->sensor_count; i++) {
        if (!is_sensor(c, &c->sensor[i]))
            return false;
        has_sensor[c->sensor[i].label] = true;
    }
    for (uint32_t i = 0; i < JOULE_IPMI_LABELS_MAX; i++)
        if (!ENDS(c->label[i]) || (i < c->label_count && !has_sensor[i]))
            return false;
    return true;
}

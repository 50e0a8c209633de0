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

/* A part of the text that is being parsed. */
struct span {
    const char *at;
    size_t len;
};

static struct span trim(const char *at, size_t len)
{
    while (len > 0 && strchr(BLANKS, at[0])) {
        at++;
        len--;
    }
    while (len > 0 && strchr(BLANKS, at[len - 1]))
        len--;
    return (struct span){at, len};
}

static bool is_word(struct span s, const char *word)
{
    return s.len == strlen(word) && strncasecmp(s.at, word, s.len) == 0;
}

static bool is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7F;
}

/* Copy into field[size], the rest of it 0; whether it fits. */
static bool copy(struct span s, char *field, size_t size)
{
    if (s.len >= size)
        return false;
    memset(field, 0, size);
    memcpy(field, s.at, s.len);
    return true;
}

static int add_label(struct joule_ipmi_config *c, struct span name,
                     struct joule_error *err)
{
    char *label;

    if (name.len == 0)
        return joule_error_set(err, EINVAL, "a label is missing before \"=\"");
    if (c->label_count == JOULE_IPMI_LABELS_MAX)
        return joule_error_set(err, EINVAL, "there are more than %d labels",
                               JOULE_IPMI_LABELS_MAX);
    label = c->label[c->label_count];
    for (size_t i = 0; i < name.len; i++)
        if (!strchr(LETTERS_DIGITS "_-", name.at[i]))
            return joule_error_set(err, EINVAL,
                                   "label \"%.*s\" has characters other than "
                                   "letters, digits, \"_\" and \"-\"",
                                   (int)name.len, name.at);
    if (!copy(name, label, JOULE_IPMI_LABEL_SIZE))
        return joule_error_set(
            err, EINVAL, "label \"%.*s\" has more than %d characters",
            (int)name.len, name.at, JOULE_IPMI_LABEL_SIZE - 1);
    if (is_word(name, "Node"))
        memcpy(label, "Node", sizeof("Node"));
    for (uint32_t i = 0; i < c->label_count; i++)
        if (strcmp(c->label[i], label) == 0)
            return joule_error_set(err, EINVAL, "label \"%s\" stands twice",
                                   label);
    c->label_count++;
    return 0;
}

static int name_sensor(struct span name, struct joule_ipmi_sensor *sensor,
                       struct joule_error *err)
{
    if (name.len == 0)
        return joule_error_set(err, EINVAL, "the name of a sensor is empty");
    for (size_t i = 0; i < name.len; i++)
        if (is_control((unsigned char)name.at[i]))
            return joule_error_set(err, EINVAL,
                                   "the name of a sensor has a control "
                                   "character");
    if (!copy(name, sensor->name, sizeof(sensor->name)))
        return joule_error_set(err, EINVAL,
                               "sensor name \"%.*s\" has more than %d "
                               "characters",
                               (int)name.len, name.at,
                               JOULE_IPMI_NAME_SIZE - 1);
    sensor->kind = JOULE_IPMI_SENSOR_NAME;
    return 0;
}

static int record_sensor(struct span digits, struct joule_ipmi_sensor *sensor,
                         struct joule_error *err)
{
    char text[32];
    uint64_t id;

    if (!copy(digits, text, sizeof(text)) ||
        joule_parse_u64(text, 1, RECORD_ID_MAX, &id) < 0)
        return joule_error_set(err, EINVAL,
                               "%.*s is no record id (1 to %d; the name of a "
                               "sensor that looks like a number stands in "
                               "quotes)",
                               (int)digits.len, digits.at, RECORD_ID_MAX);
    sensor->kind = JOULE_IPMI_SENSOR_RECORD;
    sensor->record_id = (uint16_t)id;
    return 0;
}

static int parse_sensor(struct span s, bool quoted,
                        struct joule_ipmi_sensor *sensor,
                        struct joule_error *err)
{
    size_t digits = 0;

    if (quoted)
        return name_sensor(s, sensor, err);
    if (is_word(s, "DCMI")) {
        sensor->kind = JOULE_IPMI_SENSOR_DCMI;
        return 0;
    }
    if (is_word(s, "DCMI_ENHANCED")) {
        sensor->kind = JOULE_IPMI_SENSOR_DCMI_ENHANCED;
        return 0;
    }
    while (digits < s.len && s.at[digits] >= '0' && s.at[digits] <= '9')
        digits++;
    if (digits == s.len && digits > 0)
        return record_sensor(s, sensor, err);
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] == '"' || s.at[i] == '\'' || s.at[i] == '=')
            return joule_error_set(err, EINVAL,
                                   "sensor name \"%.*s\" has a quote or a "
                                   "\"=\" in it: put all of it in quotes",
                                   (int)s.len, s.at);
    return name_sensor(s, sensor, err);
}

static int add_sensor(struct joule_ipmi_config *c, struct span text,
                      bool quoted, struct joule_error *err)
{
    uint32_t label = c->label_count - 1;
    struct joule_ipmi_sensor *sensor;

    if (text.len == 0 && !quoted)
        return joule_error_set(err, EINVAL,
                               "label \"%s\" has an empty place where a sensor "
                               "should be",
                               c->label[label]);
    if (c->sensor_count == JOULE_IPMI_SENSORS_MAX)
        return joule_error_set(err, EINVAL, "there are more than %d sensors",
                               JOULE_IPMI_SENSORS_MAX);
    sensor = &c->sensor[c->sensor_count];
    if (parse_sensor(text, quoted, sensor, err) < 0)
        return -1;
    sensor->label = label;
    for (uint32_t i = 0; i < c->sensor_count; i++) {
        const struct joule_ipmi_sensor *other = &c->sensor[i];

        /* It would count twice. */
        if (other->label == label && other->kind == sensor->kind &&
            other->record_id == sensor->record_id &&
            strcmp(other->name, sensor->name) == 0)
            return joule_error_set(err, EINVAL,
                                   "sensor %.*s stands twice in label \"%s\"",
                                   (int)text.len, text.at, c->label[label]);
    }
    c->sensor_count++;
    return 0;
}

/* The sensor at *at, up to the ',' or ';' behind it or the end; *at is set to
 * what ends it. */
static int take_sensor(struct joule_ipmi_config *c, const char **at,
                       struct joule_error *err)
{
    const char *begin = *at + strspn(*at, BLANKS), *end;

    if (*begin != '"' && *begin != '\'') {
        end = begin + strcspn(begin, ",;");
        *at = end;
        return add_sensor(c, trim(begin, (size_t)(end - begin)), false, err);
    }
    end = strchr(begin + 1, *begin);
    if (!end)
        return joule_error_set(err, EINVAL,
                               "a quote is opened and not closed: %s", begin);
    *at = end + 1 + strspn(end + 1, BLANKS);
    if (**at != '\0' && **at != ',' && **at != ';')
        return joule_error_set(err, EINVAL,
                               "\",\" or \";\" is missing before %s", *at);
    return add_sensor(c, (struct span){begin + 1, (size_t)(end - begin - 1)},
                      true, err);
}

static int take_label(struct joule_ipmi_config *c, const char **at,
                      struct joule_error *err)
{
    size_t len = strcspn(*at, "=;,");

    if ((*at)[len] != '=')
        return joule_error_set(err, EINVAL,
                               "\"%.*s\" is not of the form "
                               "LABEL=SENSOR[,SENSOR]...",
                               (int)len, *at);
    if (add_label(c, trim(*at, len), err) < 0)
        return -1;
    *at += len;
    do {
        (*at)++; /* '=' or ',' */
        if (take_sensor(c, at, err) < 0)
            return -1;
    } while (**at == ',');
    return 0;
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

/* Without single quotes around all of it, which Slurm's parser leaves there. */
static const char *unquote(const char *text, char *buf, size_t size)
{
    struct span s = trim(text, strlen(text));

    if (s.len < 2 || s.len - 2 >= size || s.at[0] != '\'' ||
        s.at[s.len - 1] != '\'')
        return s.at;
    memcpy(buf, s.at + 1, s.len - 2);
    buf[s.len - 2] = '\0';
    return buf + strspn(buf, BLANKS);
}

int joule_ipmi_sensors_parse(const char *text, struct joule_ipmi_config *config,
                             struct joule_error *err)
{
    char buf[JOULE_OPTION_TEXT_MAX + 1];
    const char *at = unquote(text, buf, sizeof(buf));
    struct joule_ipmi_config c;

    memset(&c, 0, sizeof(c));
    if (*at == '\0') {
        memcpy(c.label[0], "Node", sizeof("Node"));
        c.label_count = 1;
        c.sensor_count = 1; /* DEFAULT, for label 0 */
    } else {
        do {
            if (take_label(&c, &at, err) < 0)
                return -1;
            /* One ';' at the end does no harm. */
            if (*at == ';')
                at += 1 + strspn(at + 1, BLANKS);
        } while (*at != '\0');
        if (node_first(&c, err) < 0)
            return -1;
    }
    config->label_count = c.label_count;
    config->sensor_count = c.sensor_count;
    memcpy(config->label, c.label, sizeof(config->label));
    memcpy(config->sensor, c.sensor, sizeof(config->sensor));
    return 0;
}

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

struct credentials {
    char username[JOULE_IPMI_USER_SIZE];
    char password[JOULE_IPMI_PASSWORD_SIZE];
};

static int take_value(unsigned line, const char *key, struct span value,
                      char *field, size_t size, struct joule_error *err)
{
    if (field[0])
        return joule_error_set(err, EINVAL, "line %u: a second %s", line, key);
    if (value.len == 0)
        return joule_error_set(err, EINVAL, "line %u: %s has no value", line,
                               key);
    for (size_t i = 0; i < value.len; i++)
        if (is_control((unsigned char)value.at[i]))
            return joule_error_set(
                err, EINVAL, "line %u: a control character in %s", line, key);
    if (!copy(value, field, size))
        return joule_error_set(err, EINVAL,
                               "line %u: %s has more than %zu bytes", line, key,
                               size - 1);
    return 0;
}

static int take_line(struct credentials *c, unsigned number, const char *at,
                     size_t len, struct joule_error *err)
{
    struct span line, key, value;

    if (memchr(at, '\0', len))
        return joule_error_set(err, EINVAL, "line %u: a NUL byte", number);
    if (len > 0 && at[len - 1] == '\r')
        len--;
    line = trim(at, len);
    if (line.len == 0 || line.at[0] == '#')
        return 0;
    key = (struct span){line.at, 0};
    while (key.len < line.len && !strchr(BLANKS, line.at[key.len]))
        key.len++;
    value = trim(line.at + key.len, line.len - key.len);
    if (is_word(key, "username"))
        return take_value(number, "username", value, c->username,
                          sizeof(c->username), err);
    if (is_word(key, "password"))
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

        if (!stop)
            stop = end;
        rc = take_line(&c, number++, at, (size_t)(stop - at), err);
        at = stop == end ? end : stop + 1;
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tools/joule/slurmconf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/conffile.h"
#include "common/base/file.h"

/* Above what sites have: thousands of node lines come to about a MB. */
#define BYTES_MAX    (16u << 20) /* of all files together */
#define FILES_MAX    256
#define DEPTH_MAX    9
#define SETTINGS_MAX 1024

#define BYTE_ORDER_MARK "\xef\xbb\xbf"
#define KEY_CHARACTERS                                                         \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_."

/* What the line of a partition has said so far. */
struct partition {
    char name[64]; /* empty: there was none yet */
    bool is_exclusive;
    struct joule_conf_place place;
};

struct loader {
    int root_fd;
    const char *main_path;
    struct joule_slurmconf *conf;
    struct joule_findings *findings;
    char cluster[256];
    struct joule_conf_place place; /* of what is read now */
    unsigned depth;                /* of its file */
    size_t bytes_left;
    unsigned files_left;
    bool full; /* said that there are too many settings */
    struct partition partition;
    bool exclusive_default; /* as PartitionName=DEFAULT says */
};

static int load_file(struct loader *l, const char *path,
                     struct joule_error *err);

int joule_slurmconf_look(const char *conf, struct joule_slurmconf_places *ret,
                         struct joule_error *err)
{
    char cwd[JOULE_PLACE_MAX] = "";
    struct stat st;
    bool is_dir = conf && stat(conf, &st) == 0 && S_ISDIR(st.st_mode);
    int n = -1;

    memset(ret, 0, sizeof(*ret));
    if (!conf) {
        ret->path[0] = "/etc/slurm/slurm.conf";
        ret->path[1] = "/run/slurm/conf/slurm.conf";
        return 0;
    }
    ret->path[0] = ret->named;
    if (conf[0] == '/' || getcwd(cwd, sizeof(cwd)))
        n = snprintf(ret->named, sizeof(ret->named), "%s%s%s%s", cwd,
                     cwd[0] ? "/" : "", conf, is_dir ? "/slurm.conf" : "");
    if (n >= 0 && n < JOULE_PLACE_MAX)
        return 0;
    return joule_error_set(err, ENAMETOOLONG, "%s: the name is too long", conf);
}

const struct joule_slurmconf_setting *
joule_slurmconf_find(const struct joule_slurmconf *conf, const char *key)
{
    for (size_t i = 0; i < conf->count; i++)
        if (strcasecmp(conf->settings[i].key, key) == 0)
            return &conf->settings[i];
    return NULL;
}

/* 0, or an errno value. */
static int keep(struct loader *l, const char *key, const char *value)
{
    struct joule_slurmconf *conf = l->conf;
    struct joule_slurmconf_setting *setting =
        (struct joule_slurmconf_setting *)joule_slurmconf_find(conf, key);
    char *copy = strdup(value);

    if (!copy)
        return ENOMEM;
    if (!setting) {
        struct joule_slurmconf_setting *more;
        char *name = strdup(key);

        more = reallocarray(conf->settings, conf->count + 1, sizeof(*more));
        if (more)
            conf->settings = more;
        if (!more || !name) {
            free(name);
            free(copy);
            return ENOMEM;
        }
        setting = &conf->settings[conf->count++];
        *setting = (struct joule_slurmconf_setting){.key = name};
    }
    free(setting->value);
    setting->value = copy;
    setting->place = l->place;
    return 0;
}

/* The file that an Include line names: absolute, or cut short if it is too
 * long, which then is no file. */
static void include_path(const struct loader *l, const char *value,
                         char path[PATH_MAX])
{
    const char *slash = strrchr(l->main_path, '/');
    const char *mark = strstr(value, "%c");
    int dir = value[0] == '/' ? 0 : (int)(slash - l->main_path) + 1;

    if (mark)
        snprintf(path, PATH_MAX, "%.*s%.*s%s%s", dir, l->main_path,
                 (int)(mark - value), value, l->cluster, mark + 2);
    else
        snprintf(path, PATH_MAX, "%.*s%s", dir, l->main_path, value);
}

static int include(struct loader *l, const char *value)
{
    struct joule_error err;
    char path[PATH_MAX];

    if (strlen(value) >= PATH_MAX / 2 || strlen(l->main_path) >= PATH_MAX / 4) {
        joule_finding_add(l->findings, JOULE_FAULT, "include", &l->place, NULL,
                          "the name of the included file is too long");
        return 0;
    }
    include_path(l, value, path);
    if (l->depth == DEPTH_MAX || l->files_left == 0) {
        joule_finding_add(l->findings, JOULE_FAULT, "include", &l->place, NULL,
                          "%s is not read: too many files include each other",
                          path);
        return 0;
    }
    if (load_file(l, path, &err) == 0)
        return 0;
    if (errno == ENOMEM)
        return ENOMEM;
    /* Slurm ends with an error where a file that it includes is missing; one
     * that only this user may not read says nothing. */
    joule_finding_add(l->findings,
                      errno == EACCES ? JOULE_WARNING : JOULE_FAULT, "include",
                      &l->place, NULL, "the included file: %s", err.text);
    return 0;
}

static void end_partition(struct loader *l)
{
    struct partition *p = &l->partition;

    if (strcasecmp(p->name, "DEFAULT") == 0) {
        l->exclusive_default = p->is_exclusive;
    } else if (p->name[0] && !p->is_exclusive &&
               !l->conf->shared_partition[0]) {
        memcpy(l->conf->shared_partition, p->name, sizeof(p->name));
        l->conf->shared_place = p->place;
    }
    p->name[0] = '\0';
}

/* slurm.conf(5): Shared is the older name of OverSubscribe. */
static void follow_partition(struct loader *l, const char *key,
                             const char *value)
{
    if (strcasecmp(key, "PartitionName") == 0) {
        end_partition(l);
        snprintf(l->partition.name, sizeof(l->partition.name), "%s", value);
        l->partition.is_exclusive = l->exclusive_default;
        l->partition.place = l->place;
    } else if (strcasecmp(key, "OverSubscribe") == 0 ||
               strcasecmp(key, "Shared") == 0) {
        l->partition.is_exclusive = strncasecmp(value, "EXCLUSIVE", 9) == 0;
    }
}

/* Text of the form KEY=VALUE, which would be right in a line of its own. */
static bool is_pair(const char *text)
{
    size_t len = strspn(text, KEY_CHARACTERS);

    return len > 0 && text[len] == '=' && text[len + 1] &&
           !strchr(" \t", text[len + 1]);
}

/* "KEY VALUE" and "KEY: VALUE" with one '=' instead; false: it is neither. */
static bool mended_pair(const char *text, char *buf, size_t size)
{
    size_t key = strspn(text, KEY_CHARACTERS);
    size_t gap = strspn(text + key, " \t:");

    if (key == 0 || gap == 0 || !text[key + gap] ||
        strpbrk(text + key + gap, " \t=:"))
        return false;
    return (size_t)snprintf(buf, size, "%.*s=%s", (int)key, text,
                            text + key + gap) < size;
}

static void stray_text(struct loader *l, const char *text)
{
    char mended[JOULE_ERROR_MAX];

    if (l->place.line == 1 && strncmp(text, BYTE_ORDER_MARK, 3) == 0)
        joule_finding_add(l->findings, JOULE_FAULT, "stray-text", &l->place,
                          NULL,
                          "the file begins with a byte-order mark: slurmctld "
                          "and slurmd do not start with it (save the file as "
                          "UTF-8 without that mark)");
    else if (is_pair(text))
        joule_finding_add(l->findings, JOULE_FAULT, "stray-text", &l->place,
                          text,
                          "\"%.100s\" follows another setting: slurmctld and "
                          "slurmd do not start unless it has a line of its own",
                          text);
    else
        joule_finding_add(l->findings, JOULE_FAULT, "stray-text", &l->place,
                          mended_pair(text, mended, sizeof(mended)) ? mended
                                                                    : NULL,
                          "\"%.100s\" is no setting (Key=Value): slurmctld and "
                          "slurmd do not start with it",
                          text);
}

static int take_pair(const char *key, const char *value, unsigned line,
                     void *arg)
{
    struct loader *l = arg;

    l->place.line = line;
    if (!key) {
        stray_text(l, value);
        return 0;
    }
    if (strcasecmp(key, "Include") == 0)
        return include(l, value);
    if (strcasecmp(key, "ClusterName") == 0)
        snprintf(l->cluster, sizeof(l->cluster), "%s", value);
    follow_partition(l, key, value);
    if (l->conf->count < SETTINGS_MAX || joule_slurmconf_find(l->conf, key))
        return keep(l, key, value);
    if (!l->full) {
        l->full = true;
        joule_finding_add(
            l->findings, JOULE_FAULT, "too-many-settings", &l->place, NULL,
            "more than %d settings: the rest is not read", SETTINGS_MAX);
    }
    return 0;
}

/* A pipe or a device in the place of the file must not hang us. */
static int check_regular(int root_fd, const char *path)
{
    struct stat st;

    if (fstatat(root_fd, path, &st, 0) < 0)
        return -1;
    if (S_ISREG(st.st_mode))
        return 0;
    errno = EINVAL;
    return -1;
}

static int load_file(struct loader *l, const char *path,
                     struct joule_error *err)
{
    const struct joule_conf_place from = l->place;
    const char *below = path + strspn(path, "/");
    char *text = NULL;
    size_t len;
    int rc;

    l->files_left--;
    if (check_regular(l->root_fd, below) == 0)
        text = joule_file_load(l->root_fd, below, l->bytes_left, &len);
    if (!text && errno == EINVAL)
        return joule_error_set(err, errno, "%s is no text file", path);
    if (!text && errno == EFBIG)
        return joule_error_set(err, errno,
                               "%s is too long (more than %u bytes in all)",
                               path, BYTES_MAX);
    if (!text)
        return joule_error_set(err, errno, "cannot read %s: %m", path);
    l->bytes_left -= len;
    snprintf(l->place.file, sizeof(l->place.file), "%s", path);
    l->depth++;
    rc = joule_conffile_walk(text, len, take_pair, l);
    l->depth--;
    l->place = from;
    free(text);
    if (rc != 0)
        return joule_error_set(err, ENOMEM, "cannot read %s: out of memory",
                               path);
    return 0;
}

int joule_slurmconf_load(int root_fd, const char *path,
                         struct joule_slurmconf *ret,
                         struct joule_findings *findings,
                         struct joule_error *err)
{
    struct joule_slurmconf conf = {0};
    struct loader l = {
        .root_fd = root_fd,
        .main_path = path,
        .conf = &conf,
        .findings = findings,
        .bytes_left = BYTES_MAX,
        .files_left = FILES_MAX,
    };

    memset(ret, 0, sizeof(*ret));
    if (path[0] != '/')
        return joule_error_set(err, EINVAL, "%s is no absolute path", path);
    if (load_file(&l, path, err) < 0) {
        int saved = errno;

        joule_slurmconf_free(&conf);
        errno = saved;
        return -1;
    }
    end_partition(&l);
    *ret = conf;
    return 0;
}

void joule_slurmconf_free(struct joule_slurmconf *conf)
{
    for (size_t i = 0; i < conf->count; i++) {
        free(conf->settings[i].key);
        free(conf->settings[i].value);
    }
    free(conf->settings);
    memset(conf, 0, sizeof(*conf));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/policy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/file.h"
#include "common/base/parse.h"
#include "common/cpufreq/request.h"

#define BUSY_TRIES 4
#define BUSY_NS    JOULE_NS_PER_MS

const char *joule_cpufreq_file(enum joule_cpufreq_field field)
{
    static const char *const names[] = {"scaling_governor", "scaling_min_freq",
                                        "scaling_max_freq", "scaling_setspeed",
                                        "energy_performance_preference"};

    return names[ffs((int)field) - 1];
}

/* The number behind "policy", the whole of the name. */
static int parse_id(const char *name, unsigned *ret_id)
{
    uint64_t id;

    if (strncmp(name, "policy", 6) != 0 ||
        joule_parse_u64(name + 6, 0, JOULE_CPUS_MAX - 1, &id) < 0) {
        errno = EBADMSG;
        return -1;
    }
    *ret_id = (unsigned)id;
    return 0;
}

int joule_cpufreq_list(int root_fd, struct joule_cpus *ret_ids,
                       struct joule_error *err)
{
    int fd =
        joule_file_open(root_fd, JOULE_CPUFREQ_DIR, O_RDONLY | O_DIRECTORY);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;
    unsigned id;
    int errnum = errno;

    memset(ret_ids, 0, sizeof(*ret_ids));
    if (!dir) {
        joule_close(fd);
        if (errnum == ENOENT)
            return 0;
        return joule_error_set(err, errnum, "cannot read /%s: %m",
                               JOULE_CPUFREQ_DIR);
    }
    while ((entry = readdir(dir)))
        if (parse_id(entry->d_name, &id) == 0)
            joule_cpus_add(ret_ids, id);
    closedir(dir);
    return 0;
}

int joule_cpufreq_policy_of(int root_fd, unsigned cpu, unsigned *ret_id)
{
    char path[64], target[PATH_MAX], *name;
    ssize_t length;

    snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/cpufreq", cpu);
    length = readlinkat(root_fd, path, target, sizeof(target) - 1);
    if (length < 0)
        return -1;
    target[length] = '\0';
    name = strrchr(target, '/');
    return parse_id(name ? name + 1 : target, ret_id);
}

/* The directory of a policy, and who is told what is wrong with it. */
struct source {
    int fd;
    unsigned id;
    struct joule_error *err;
};

static int open_source(struct source *s, int root_fd)
{
    char path[64];

    snprintf(path, sizeof(path), JOULE_CPUFREQ_DIR "/policy%u", s->id);
    s->fd = joule_file_open(root_fd, path, O_PATH | O_DIRECTORY);
    if (s->fd < 0)
        return joule_error_set(s->err, errno, "there is no policy%u: %m",
                               s->id);
    return 0;
}

static int refuse(const struct source *s, const char *name, int errnum)
{
    return joule_error_set(
        s->err, errnum, "cannot read %s of policy%u: %s", name, s->id,
        errnum == EBADMSG ? "it holds something else" : strerror(errnum));
}

/* A line of the kernel, its trailing blank dropped; empty if the file is not
 * there and need not be. */
static int read_text(const struct source *s, const char *name, bool required,
                     char *buf, size_t size)
{
    ssize_t length = joule_file_read(s->fd, name, buf, size);

    if (length < 0 && errno == ENOENT && !required)
        length = 0;
    if (length < 0)
        return refuse(s, name,
                      errno == EFBIG || errno == EINVAL ? EBADMSG : errno);
    while (length > 0 && buf[length - 1] == ' ')
        length--;
    buf[length] = '\0';
    for (ssize_t i = 0; i < length; i++)
        if ((unsigned char)buf[i] < ' ' || (unsigned char)buf[i] > '~')
            return refuse(s, name, EBADMSG);
    return 0;
}

static int read_word(const struct source *s, const char *name, bool required,
                     char buf[JOULE_CPUFREQ_WORD])
{
    if (read_text(s, name, required, buf, JOULE_CPUFREQ_WORD) < 0)
        return -1;
    if (*buf ? !joule_cpufreq_is_word(buf) : required)
        return refuse(s, name, EBADMSG);
    return 0;
}

static int read_khz(const struct source *s, const char *name, uint32_t *ret_khz)
{
    char text[JOULE_CPUFREQ_WORD];
    uint64_t khz;

    if (read_word(s, name, true, text) < 0)
        return -1;
    if (joule_parse_u64(text, 0, JOULE_KHZ_MAX, &khz) < 0)
        return refuse(s, name, EBADMSG);
    *ret_khz = (uint32_t)khz;
    return 0;
}

/* "<unsupported>" under all governors but userspace. */
static int read_setspeed(const struct source *s, struct joule_cpufreq_state *t)
{
    char text[JOULE_CPUFREQ_WORD];
    uint64_t khz;

    if (read_text(s, "scaling_setspeed", false, text, sizeof(text)) < 0)
        return -1;
    t->setspeed_khz = 0;
    if (strcmp(t->governor, "userspace") == 0 &&
        joule_parse_u64(text, 0, JOULE_KHZ_MAX, &khz) == 0)
        t->setspeed_khz = (uint32_t)khz;
    return 0;
}

/* The governor first: setspeed has a meaning under one of them. */
static int read_state(const struct source *s, unsigned fields,
                      struct joule_cpufreq_state *t)
{
    if ((fields & JOULE_CPUFREQ_GOVERNOR &&
         read_word(s, "scaling_governor", true, t->governor) < 0) ||
        (fields & JOULE_CPUFREQ_MIN &&
         read_khz(s, "scaling_min_freq", &t->min_khz) < 0) ||
        (fields & JOULE_CPUFREQ_MAX &&
         read_khz(s, "scaling_max_freq", &t->max_khz) < 0) ||
        (fields & JOULE_CPUFREQ_EPP &&
         read_word(s, "energy_performance_preference", false, t->epp) < 0) ||
        (fields & JOULE_CPUFREQ_SETSPEED && read_setspeed(s, t) < 0))
        return -1;
    return 0;
}

static int compare_khz(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Drivers list their frequencies in any order; some list one twice. */
static int read_steps(const struct source *s, struct joule_cpufreq_policy *p)
{
    const char *name = "scaling_available_frequencies";
    char text[4096], *word, *rest;
    unsigned count = 0, kept = 0;
    uint64_t khz;

    if (read_text(s, name, false, text, sizeof(text)) < 0)
        return -1;
    for (word = strtok_r(text, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest)) {
        if (count == JOULE_CPUFREQ_STEPS ||
            joule_parse_u64(word, 1, JOULE_KHZ_MAX, &khz) < 0)
            return refuse(s, name, EBADMSG);
        p->step_khz[count++] = (uint32_t)khz;
    }
    qsort(p->step_khz, count, sizeof(p->step_khz[0]), compare_khz);
    for (unsigned i = 0; i < count; i++)
        if (kept == 0 || p->step_khz[i] != p->step_khz[kept - 1])
            p->step_khz[kept++] = p->step_khz[i];
    p->step_count = kept;
    return 0;
}

static int read_all(const struct source *s, struct joule_cpufreq_policy *p)
{
    char cpus[JOULE_CPUS_TEXT_MAX];

    if (read_text(s, "affected_cpus", true, cpus, sizeof(cpus)) < 0)
        return -1;
    if (joule_cpus_parse(&p->cpus, cpus) < 0)
        return refuse(s, "affected_cpus", EBADMSG);
    if (joule_cpus_is_empty(&p->cpus))
        return joule_error_set(s->err, EBUSY,
                               "the CPUs of policy%u are offline", p->id);
    if (read_word(s, "scaling_driver", true, p->driver) < 0 ||
        read_khz(s, "cpuinfo_min_freq", &p->hw_min_khz) < 0 ||
        read_khz(s, "cpuinfo_max_freq", &p->hw_max_khz) < 0 ||
        read_text(s, "scaling_available_governors", true, p->governors,
                  sizeof(p->governors)) < 0 ||
        read_text(s, "energy_performance_available_preferences", false, p->epps,
                  sizeof(p->epps)) < 0 ||
        read_steps(s, p) < 0 ||
        read_state(s, JOULE_CPUFREQ_FIELDS, &p->now) < 0)
        return -1;
    if (p->hw_min_khz > p->hw_max_khz)
        return refuse(s, "cpuinfo_min_freq", EBADMSG);
    return 0;
}

int joule_cpufreq_read(int root_fd, unsigned id,
                       struct joule_cpufreq_policy *ret,
                       struct joule_error *err)
{
    struct source s = {.id = id, .err = err};
    int rc;

    if (open_source(&s, root_fd) < 0)
        return -1;
    memset(ret, 0, sizeof(*ret));
    ret->id = id;
    rc = read_all(&s, ret);
    joule_close(s.fd);
    /* The same name stands for two ways of control. */
    if (rc == 0 && strcmp(ret->driver, "amd-pstate") == 0 &&
        joule_file_read(root_fd, "sys/devices/system/cpu/amd_pstate/status",
                        ret->mode, sizeof(ret->mode)) < 0)
        ret->mode[0] = '\0';
    return rc;
}

int joule_cpufreq_read_state(int root_fd, unsigned id, unsigned fields,
                             struct joule_cpufreq_state *state,
                             struct joule_error *err)
{
    struct source s = {.id = id, .err = err};
    int rc;

    if (open_source(&s, root_fd) < 0)
        return -1;
    rc = read_state(&s, fields, state);
    joule_close(s.fd);
    return rc;
}

uint32_t joule_cpufreq_current_khz(int root_fd, unsigned id)
{
    char path[96], text[JOULE_CPUFREQ_WORD];
    uint64_t khz;

    snprintf(path, sizeof(path), JOULE_CPUFREQ_DIR "/policy%u/scaling_cur_freq",
             id);
    if (joule_file_read(root_fd, path, text, sizeof(text)) < 0 ||
        joule_parse_u64(text, 0, JOULE_KHZ_MAX, &khz) < 0)
        return 0;
    return (uint32_t)khz;
}

int joule_cpufreq_write(int root_fd, unsigned id,
                        enum joule_cpufreq_field field, const char *text,
                        struct joule_error *err)
{
    char path[128], line[JOULE_CPUFREQ_WORD + 1];
    ssize_t length = snprintf(line, sizeof(line), "%s\n", text);
    int errnum = EBUSY;

    snprintf(path, sizeof(path), JOULE_CPUFREQ_DIR "/policy%u/%s", id,
             joule_cpufreq_file(field));
    for (unsigned i = 0; i < BUSY_TRIES; i++) {
        /* sysfs takes no notice of O_TRUNC; plain files in its place do. */
        int fd =
            joule_file_open(root_fd, path, O_WRONLY | O_TRUNC | O_NOFOLLOW);
        /* The whole value in one write: each one is a request of its own. */
        ssize_t n = fd < 0 ? -1 : write(fd, line, (size_t)length);

        errnum = n < 0 ? errno : EIO;
        joule_close(fd);
        if (n == length)
            return 0;
        if (errnum != EBUSY && errnum != EINTR && errnum != EAGAIN)
            break;
        joule_sleep_ns(BUSY_NS);
    }
    return joule_error_set(err, errnum, "cannot write %s to %s of policy%u: %m",
                           text, joule_cpufreq_file(field), id);
}

bool joule_cpufreq_is_word(const char *text)
{
    return *text &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+")] ==
               '\0';
}

bool joule_cpufreq_has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    while (*list) {
        size_t n = strcspn(list, " ");

        if (n == length && n > 0 && memcmp(list, word, n) == 0)
            return true;
        list += n + strspn(list + n, " ");
    }
    return false;
}

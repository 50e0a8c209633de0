/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/cray.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/parse.h"

#define DIR          "sys/cray/pm_counters"
#define FILE_PATH    64
#define TEXT         96
#define ACCELERATORS 8

/* A reading that an update fell into is done again. */
#define TRIES 3

/* What is written with each update, or restart. */
struct mark {
    int fd; /* -1: the controller has none */
    char text[TEXT];
};

struct cray {
    struct joule_counters counters; /* first */
    struct mark freshness, startup;
    int fd[JOULE_DOMAINS_MAX];
    struct joule_domain domains[JOULE_DOMAINS_MAX];
};

/* ---- reading ---- */

/* The text of the file, without its newline: 0, or an errno value. */
static int read_text(int fd, char text[TEXT])
{
    ssize_t n = pread(fd, text, TEXT - 1, 0);

    if (n < 0)
        return errno;
    if (n > 0 && text[n - 1] == '\n')
        n--;
    text[n] = '\0';
    return strlen(text) == (size_t)n ? 0 : EBADMSG;
}

/* "85 J", mostly with the time behind it: " 1606240000123456 us". */
static int read_energy(int fd, uint64_t *ret_j)
{
    char text[TEXT], *unit, *time = NULL, *us;
    uint64_t ignored;
    int errnum = read_text(fd, text);

    if (errnum)
        return errnum;
    unit = strchr(text, ' ');
    if (unit)
        time = strchr(unit + 1, ' ');
    us = time ? strchr(time + 1, ' ') : NULL;
    if (!unit || (time && (!us || strcmp(us, " us") != 0)))
        return EBADMSG;
    *unit = '\0';
    if (time)
        *time = *us = '\0';
    if (strcmp(unit + 1, "J") != 0 ||
        joule_parse_u64(text, 0, UINT64_MAX, ret_j) < 0 ||
        (time && joule_parse_u64(time + 1, 0, UINT64_MAX, &ignored) < 0))
        return EBADMSG;
    return 0;
}

/* Whether it has changed since it was looked at last. */
static bool has_changed(struct mark *m)
{
    char text[TEXT];
    bool changed;

    if (m->fd < 0 || read_text(m->fd, text) != 0)
        return false;
    changed = strcmp(text, m->text) != 0;
    memcpy(m->text, text, sizeof(text));
    return changed;
}

static void cray_read(struct joule_counters *counters, struct joule_raw *out)
{
    struct cray *c = (struct cray *)counters;

    if (has_changed(&c->startup))
        joule_error_set(&counters->remark, 0,
                        "the blade's controller has restarted, and its energy "
                        "counters with it: what was used meanwhile is not "
                        "known");
    has_changed(&c->freshness);
    for (int tries = 0; tries < TRIES; tries++) {
        for (size_t i = 0; i < counters->domain_count; i++) {
            out[i].error = read_energy(c->fd[i], &out[i].raw);
            if (out[i].error)
                out[i].raw = 0;
        }
        if (!has_changed(&c->freshness))
            break;
    }
}

static void cray_destroy(struct joule_counters *counters)
{
    struct cray *c = (struct cray *)counters;

    for (size_t i = 0; i < counters->domain_count; i++)
        close(c->fd[i]);
    joule_close(c->freshness.fd);
    joule_close(c->startup.fd);
    free(c);
}

static const struct joule_counters_ops cray_ops = {
    .read = cray_read,
    .destroy = cray_destroy,
};

/* ---- opening ---- */

static int open_file(int root_fd, const char *name)
{
    char path[FILE_PATH];

    snprintf(path, sizeof(path), DIR "/%s", name);
    return joule_file_open(root_fd, path, O_RDONLY);
}

/* One that is not there is left out, but for the node's. */
static int add(struct cray *c, int root_fd, const char *file, const char *name,
               struct joule_error *err)
{
    size_t n = c->counters.domain_count;
    int fd = open_file(root_fd, file), errnum;
    uint64_t j;

    if (fd < 0 && errno == ENOENT && n > 0)
        return 0;
    if (fd < 0)
        return joule_error_set(err, errno, "cannot open /" DIR "/%s: %m", file);
    errnum = read_energy(fd, &j);
    if (errnum) {
        close(fd);
        return joule_error_set(
            err, errnum == EBADMSG ? EINVAL : errnum, "/" DIR "/%s: %s", file,
            errnum == EBADMSG ? "it is no energy" : strerror(errnum));
    }
    c->fd[n] = fd;
    c->domains[n] = (struct joule_domain){
        .kind = JOULE_DOMAIN_POWER,
        .unit = {.num = 1000000, .shift = 0},
        .width_bits = 64,
        .refresh_ms = 100,
        .in_total = n == 0,
    };
    snprintf(c->domains[n].name, sizeof(c->domains[n].name), "%s", name);
    c->counters.domain_count = n + 1;
    return 0;
}

static int add_all(struct cray *c, int root_fd, struct joule_error *err)
{
    char file[32], name[32];
    int rc = add(c, root_fd, "energy", "Node", err);

    if (rc == 0)
        rc = add(c, root_fd, "cpu_energy", "CPU", err);
    if (rc == 0)
        rc = add(c, root_fd, "memory_energy", "Memory", err);
    for (int i = 0; i < ACCELERATORS && rc == 0; i++) {
        snprintf(file, sizeof(file), "accel%d_energy", i);
        snprintf(name, sizeof(name), "Accel%d", i);
        rc = add(c, root_fd, file, name, err);
    }
    return rc;
}

bool joule_cray_is_there(int root_fd)
{
    return faccessat(root_fd, DIR "/energy", F_OK, 0) == 0;
}

struct joule_counters *joule_cray_create(int root_fd, struct joule_error *err)
{
    struct cray *c = calloc(1, sizeof(*c));
    int saved;

    if (!c) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    c->counters.ops = &cray_ops;
    c->counters.way = "pm_counters";
    c->counters.domains = c->domains;
    c->freshness.fd = open_file(root_fd, "freshness");
    c->startup.fd = open_file(root_fd, "startup");
    if (add_all(c, root_fd, err) == 0) {
        has_changed(&c->startup);
        return &c->counters;
    }
    saved = errno;
    cray_destroy(&c->counters);
    errno = saved;
    return NULL;
}

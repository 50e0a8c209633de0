/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/joule.h"
#include "lib/user_rows.h"

#define JOULE_API __attribute__((visibility("default")))

#define TRIES 10

/* What slurmctld calls a batch script; its row says its kind, too. */
#define BATCH_STEP 4294967291u

#define ROWS_AT_ONCE 32

/* Which step this is. */
struct self {
    const char *node;
    uint32_t job, step;
};

static int number_of(const char *text, uint32_t *ret)
{
    unsigned long number;
    char *end;

    if (!text || *text < '0' || *text > '9')
        return -1;
    errno = 0;
    number = strtoul(text, &end, 10);
    if (errno || *end || number > UINT32_MAX)
        return -1;
    *ret = (uint32_t)number;
    return 0;
}

static int find_self(struct self *self)
{
    const char *step = secure_getenv("SLURM_STEP_ID");

    self->node = secure_getenv("SLURMD_NODENAME");
    self->step = BATCH_STEP;
    if (self->node &&
        number_of(secure_getenv("SLURM_JOB_ID"), &self->job) == 0 &&
        (!step || number_of(step, &self->step) == 0))
        return 0;
    errno = ENODATA;
    return -1;
}

static int read_at(int fd, void *to, size_t size, off_t at)
{
    ssize_t n;

    do
        n = pread(fd, to, size, at);
    while (n < 0 && errno == EINTR);
    if (n >= 0 && (size_t)n < size)
        errno = ESTALE;
    return n == (ssize_t)size ? 0 : -1;
}

static int check_boot(const struct joule_user_head *head)
{
    char boot_id[JOULE_USER_ROWS_BOOT] = "";
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC), rc;

    if (fd < 0)
        return 0; /* not everywhere in a container */
    rc = read(fd, boot_id, sizeof(boot_id) - 1) > 0 ? 0 : -1;
    close(fd);
    boot_id[strcspn(boot_id, "\n")] = '\0';
    if (rc < 0 || strncmp(boot_id, head->boot_id, sizeof(boot_id)) == 0)
        return 0;
    errno = ESTALE;
    return -1;
}

static int read_head(int fd, struct joule_user_head *head)
{
    if (read_at(fd, head, sizeof(*head), 0) < 0)
        return -1;
    if (head->magic == JOULE_USER_ROWS_MAGIC &&
        head->version == JOULE_USER_ROWS_VERSION)
        return 0;
    errno = ESTALE;
    return -1;
}

/* The step's row of the version at [at]. */
static int find_row(int fd, off_t at, const struct self *self,
                    struct joule_user_rows *totals, struct joule_user_row *ret)
{
    struct joule_user_row rows[ROWS_AT_ONCE];
    uint64_t count;

    if (read_at(fd, totals, sizeof(*totals), at) < 0)
        return -1;
    count = totals->rows <= JOULE_USER_ROWS_MAX ? totals->rows : 0;
    at += sizeof(*totals);
    for (uint64_t i = 0, n; i < count; i += n) {
        n = count - i < ROWS_AT_ONCE ? count - i : ROWS_AT_ONCE;
        if (read_at(fd, rows, n * sizeof(*rows),
                    at + (off_t)(i * sizeof(*rows))) < 0)
            return -1;
        for (uint64_t k = 0; k < n; k++)
            if (rows[k].job == self->job && rows[k].step == self->step) {
                *ret = rows[k];
                return 0;
            }
    }
    errno = ENOENT;
    return -1;
}

static uint64_t component_uj(const struct joule_user_row *row, int component)
{
    return row->components >> component & 1 ? row->component_uj[component]
                                            : JOULE_NOT_KNOWN;
}

static int read_energy(int fd, const struct self *self,
                       struct joule_energy *ret)
{
    struct joule_user_head before, after;
    struct joule_user_rows totals;
    struct joule_user_row row = {0};
    int rc, error;

    for (int i = 0; i < TRIES; i++) {
        if (read_head(fd, &before) < 0 || check_boot(&before) < 0)
            return -1;
        rc = find_row(fd, JOULE_USER_ROWS_AT(before.generation), self, &totals,
                      &row);
        error = errno;
        if (read_head(fd, &after) < 0)
            return -1;
        if (after.generation != before.generation)
            continue;
        if (rc < 0) {
            errno = error;
            return -1;
        }
        *ret = (struct joule_energy){
            .time_ns = totals.mono_ns,
            .step_uj = row.uj,
            .job_uj = row.job_uj,
            .power_mw = row.mw,
            .cpu_uj = component_uj(&row, JOULE_USER_ROWS_CPU),
            .memory_uj = component_uj(&row, JOULE_USER_ROWS_MEMORY),
            .cpu_mw = row.component_mw[JOULE_USER_ROWS_CPU],
            .memory_mw = row.component_mw[JOULE_USER_ROWS_MEMORY],
            .period_ms = (uint32_t)((totals.period_ns > totals.sample_period_ns
                                         ? totals.period_ns
                                         : totals.sample_period_ns) /
                                    1000000),
        };
        return 0;
    }
    errno = EAGAIN;
    return -1;
}

JOULE_API int joule_energy(struct joule_energy *ret)
{
    const char *run = secure_getenv("JOULE_RUN_DIR");
    char path[PATH_MAX];
    struct self self;
    int fd, rc, error;

    if (find_self(&self) < 0)
        return -1;
    if (snprintf(path, sizeof(path),
                 "%s/%s/" JOULE_USER_ROWS_DIR "/%u/" JOULE_USER_ROWS_FILE,
                 run ? run : JOULE_RUN_DIR, self.node,
                 (unsigned)geteuid()) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    rc = read_energy(fd, &self, ret);
    error = errno;
    close(fd);
    errno = error;
    return rc;
}

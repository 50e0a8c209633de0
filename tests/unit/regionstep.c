/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/regionstep.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/profile/log.h"

#define MS JOULE_NS_PER_MS

struct regionstep step;
static struct joule_error err;

/* ---- the log ---- */

static void take_row(const char *table, const uint64_t *cells)
{
    if (strcmp(table, "Regions") == 0) {
        ck_assert_uint_lt(step.row_count, REGIONSTEP_ROWS_MAX);
        memcpy(&step.rows[step.row_count++], cells, sizeof(step.rows[0]));
    } else if (strcmp(table, "RegionProcesses") == 0) {
        memcpy(&step.processes[step.process_count++], cells,
               sizeof(step.processes[0]));
    } else if (strcmp(table, "RegionCPU") == 0) {
        ck_assert_uint_lt(cells[0], REGIONSTEP_ROWS_MAX);
        ck_assert_uint_ge(cells[1], step.cpu_ns[cells[0]]);
        ck_assert_uint_gt(cells[2], step.cpu_at_ns[cells[0]]);
        step.cpu_ns[cells[0]] = cells[1];
        step.cpu_at_ns[cells[0]] = cells[2];
        step.cpu_rows++;
    } else if (strcmp(table, "RegionNames") == 0) {
        ck_assert_uint_eq(cells[0], step.name_count);
        memcpy(step.names[step.name_count++], cells + 1, sizeof(step.names[0]));
    }
}

static void read_log(int fd)
{
    struct joule_log_reader *log = joule_log_open(fd, &err);
    struct joule_log_block block;
    char tables[8][32];
    uint32_t table;
    const uint64_t *cells;
    int rc;

    ck_assert_msg(log, "%s", err.text);
    while ((rc = joule_log_next(log, &block, &err)) > 0) {
        if (block.kind == JOULE_LOG_TABLE)
            snprintf(tables[block.number], sizeof(tables[0]), "%s",
                     block.table.name);
        while (block.kind == JOULE_LOG_ROWS &&
               (cells = joule_log_row(log, &table)))
            take_row(tables[table], cells + 2);
        if (block.kind == JOULE_LOG_STATE)
            ck_assert_uint_eq(block.state.lost_rows, 0);
    }
    ck_assert_int_eq(rc, 0);
    joule_log_close(log);
}

/* ---- the step ---- */

void regionstep_begin(void)
{
    const struct joule_writer_options opt = {
        .place = {.dir = step.dir,
                  .user = "me",
                  .uid = geteuid(),
                  .gid = getegid(),
                  .admin = geteuid()},
        .base = "7_0_n1",
        .facts = {.node = "n1", .writer = "test", .tasks = 1},
        .clock = &joule_clock_system,
        .flush_ns = 50 * MS,
        .queue_bytes = 1024 * 1024,
    };
    struct joule_regions_options regions_opt = {
        .root_fd = step.tree.fd,
        .node = "n1",
        .name = "7.0",
        .uid = geteuid(),
        .gid = getegid(),
        .clock = &joule_clock_system,
        .period_ns = 10 * MS,
    };

    step.writer = joule_writer_create(&opt, &err);
    ck_assert_msg(step.writer, "%s", err.text);
    regions_opt.writer = step.writer;
    step.regions = joule_regions_create(&regions_opt, &err);
    ck_assert_msg(step.regions, "%s", err.text);
}

void regionstep_setup(void)
{
    tree_create(&step.tree);
    tree_write(&step.tree, "proc/sys/kernel/random/boot_id", "one\n");
    tree_mkdir(&step.tree, "profiles/me");
    snprintf(step.dir, sizeof(step.dir), "%s/profiles", step.tree.path);
    snprintf(step.run_dir, sizeof(step.run_dir), "%s/run/slurm-joule",
             step.tree.path);
    setenv("JOULE_RUN_DIR", step.run_dir, 1);
    setenv("SLURMD_NODENAME", "n1", 1);
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_PROCID", "3", 1);
    step.row_count = step.process_count = step.name_count = step.cpu_rows = 0;
    memset(step.cpu_ns, 0, sizeof(step.cpu_ns));
    memset(step.cpu_at_ns, 0, sizeof(step.cpu_at_ns));
    regionstep_begin();
}

void regionstep_end(void)
{
    char path[256];
    int fd;

    step.refused = joule_regions_destroy(step.regions);
    step.regions = NULL;
    ck_assert_int_eq(joule_writer_close(step.writer, 10 * JOULE_NS_PER_S), 0);
    step.writer = NULL;
    snprintf(path, sizeof(path), "%s/me/7_0_n1.log", step.dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    read_log(fd);
    close(fd);
}

void regionstep_teardown(void)
{
    joule_regions_destroy(step.regions);
    joule_writer_close(step.writer, JOULE_NS_PER_S);
    step.regions = NULL;
    step.writer = NULL;
    tree_destroy(&step.tree);
}

pid_t regionstep_start(void (*body)(void))
{
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        body();
        _exit(0);
    }
    return pid;
}

int regionstep_wait(pid_t pid)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

void regionstep_run(void (*body)(void))
{
    ck_assert_int_eq(regionstep_wait(regionstep_start(body)), 0);
}

/* ---- what rows say ---- */

struct region_sum regionstep_sum(const char *name)
{
    struct region_sum sum = {0};

    for (size_t i = 0; i < step.row_count; i++) {
        const struct region_row *row = &step.rows[i];

        ck_assert_uint_lt(row->region, step.name_count);
        ck_assert_uint_lt(row->process, step.process_count);
        ck_assert_uint_le(row->begin, row->end);
        if (strcmp(step.names[row->region], name) != 0)
            continue;
        sum.rows++;
        sum.count += row->count;
        sum.time += row->time;
        sum.unended += row->kind == JOULE_REGION_UNENDED;
        sum.lost += row->kind == JOULE_REGION_LOST;
    }
    return sum;
}

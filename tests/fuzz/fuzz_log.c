/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The input is a profile log, as a user may have left it in place of one.  It
 * is read, and made an HDF5 file of.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/profile/convert.h"
#include "common/profile/hdf5_driver.h"
#include "common/profile/log.h"
#include "tests/fuzz/fuzz.h"

/* Rows of the log; -1: it is none. */
static int64_t read_log(int fd, size_t size, uint64_t *ret_left_out)
{
    struct joule_error err;
    struct joule_log_reader *reader = joule_log_open(fd, &err);
    struct joule_log_block block;
    uint64_t columns[256] = {0};
    uint32_t tables = 0, table;
    const uint64_t *row;
    int64_t rows = 0;
    int rc;

    if (!reader) {
        fuzz_check_sentence(&err);
        return -1;
    }
    FUZZ_MUST(joule_log_facts(reader)->node[0] != '\0');
    while ((rc = joule_log_next(reader, &block, &err)) > 0) {
        if (block.kind == JOULE_LOG_TABLE) {
            FUZZ_MUST(block.number == tables);
            FUZZ_MUST(joule_log_check_table(&block.table) == 0);
            if (tables < 256)
                columns[tables] = joule_log_cells(&block.table);
            tables++;
        } else if (block.kind == JOULE_LOG_STATE) {
            FUZZ_MUST(block.state.table_count <= tables);
        }
        while (block.kind == JOULE_LOG_ROWS &&
               (row = joule_log_row(reader, &table))) {
            FUZZ_MUST(table < tables);
            if (table < 256) {
                volatile uint64_t last =
                    row[columns[table] + JOULE_ROW_TIMES - 1];

                (void)last;
            }
            rows++;
        }
    }
    FUZZ_MUST(rc == 0);
    FUZZ_MUST((uint64_t)rows <= size / 8);
    *ret_left_out = joule_log_left_out(reader);
    FUZZ_MUST(*ret_left_out <= size);
    joule_log_close(reader);
    return rows;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("log", MFD_CLOEXEC);
    int out = memfd_create("hdf5", MFD_CLOEXEC);
    struct joule_convert_result result;
    struct joule_error err = {""};
    uint64_t left_out = 0;
    int64_t rows;

    joule_hdf5_prepare();
    FUZZ_MUST(fd >= 0 && out >= 0);
    FUZZ_MUST(write(fd, data, size) == (ssize_t)size);
    rows = read_log(fd, size, &left_out);
    if (joule_profile_convert(fd, out, &result, &err) == 0) {
        FUZZ_MUST(rows >= 0 && result.rows == (uint64_t)rows);
        FUZZ_MUST(result.bytes_left_out == left_out);
    } else {
        fuzz_check_sentence(&err);
        FUZZ_MUST(rows < 0 || errno != EBADMSG);
    }
    close(fd);
    close(out);
    return 0;
}

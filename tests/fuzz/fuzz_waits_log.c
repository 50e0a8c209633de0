/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The input is the log of rank 0 of two; that of rank 1 is sound.  There is an archive
 * of both, of rank 1 alone, or a sentence, and nothing else is left in the directory.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/waits/log.h"
#include "tests/fuzz/fuzz.h"
#include "tools/waits/trace_archive.h"

static char root[64];

static void path_of(char path[128], const char *name)
{
    snprintf(path, 128, "%s%s", root, name);
}

static void put(const char *name, const void *data, size_t size)
{
    char path[128];
    FILE *file;

    path_of(path, name);
    file = fopen(path, "we");
    FUZZ_MUST(file);
    FUZZ_MUST(fwrite(data, 1, size, file) == size);
    FUZZ_MUST(fclose(file) == 0);
}

static void drop(const char *name)
{
    char path[128];

    path_of(path, name);
    remove(path);
}

/* Locations are ranks, and further threads, no more than there are blocks. */
static void empty(void)
{
    char path[128], name[32];

    drop("/a.waits");
    drop("/b.waits");
    drop("/traces.otf2");
    drop("/traces.def");
    path_of(path, "/traces");
    for (int i = 0; access(path, F_OK) == 0 && i < 512; i++) {
        snprintf(name, sizeof(name), "/traces/%d.evt", i);
        drop(name);
        snprintf(name, sizeof(name), "/traces/%d.def", i);
        drop(name);
        rmdir(path);
    }
}

static void remove_root(void)
{
    FUZZ_MUST(rmdir(root) == 0);
}

static void make_root(void)
{
    const char *tmp = getenv("TMPDIR");

    if (!tmp || strlen(tmp) > 32)
        tmp = "/tmp";
    snprintf(root, sizeof(root), "%s/joule-fuzz-XXXXXX", tmp);
    FUZZ_MUST(mkdtemp(root));
    atexit(remove_root);
}

static void put_sound(void)
{
    const struct {
        struct joule_waits_head head;
        struct joule_waits_block comms;
        struct joule_waits_comm comm;
        struct joule_waits_block block;
        struct joule_waits_record record;
    } log = {
        .head = {.magic = JOULE_WAITS_MAGIC,
                 .version = JOULE_WAITS_VERSION,
                 .head_bytes = sizeof(log.head),
                 .record_bytes = sizeof(log.record),
                 .state = JOULE_WAITS_FINALIZED,
                 .rank = 1,
                 .size = 2,
                 .machine = 2,
                 .begin_ns = 1000,
                 .end_ns = 9000,
                 .clock = {{1000, 5, 20}, {9000, 6, 20}},
                 .node = "n2"},
        .comms = {.kind = JOULE_WAITS_COMMS, .count = 1},
        .comm = {.id = 5, .rank = 1, .size = 2},
        .block = {.kind = JOULE_WAITS_RECORDS, .count = 1},
        .record = {.enter_ns = 2000,
                   .leave_ns = 3000,
                   .kind = JOULE_WAITS_SEND},
    };

    put("/b.waits", &log, sizeof(log));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct joule_archive_facts facts;
    struct joule_error err = {""};
    char path[128];

    if (!*root)
        make_root();
    put_sound();
    put("/a.waits", data, size);
    path_of(path, "/traces.otf2");
    if (joule_archive_make(root, false, NULL, &facts, &err) < 0) {
        fuzz_check_sentence(&err);
        FUZZ_MUST(access(path, F_OK) < 0);
    } else {
        FUZZ_MUST(facts.ranks == 2 && facts.missing == 0);
        FUZZ_MUST(access(path, F_OK) == 0);
        path_of(path, "/a.waits");
        FUZZ_MUST(facts.unreadable == (access(path, F_OK) == 0));
    }
    empty();
    return 0;
}

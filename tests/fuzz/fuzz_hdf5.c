/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The input is a profile file.  It is read and merged as sh5util does it: in a
 * worker that may crash, since libhdf5 does.  What must not happen is that it
 * costs more than its task: the parent crashes, waits, or believes what is not
 * true.  With AddressSanitizer, an error in the worker that it finds (in our
 * code, or with our memory) is one, too; it ends the worker with status 99.
 *
 * Under libFuzzer, the worker hands its counters of coverage to the parent:
 * otherwise nothing would lead the fuzzer through the reader.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/profile/hdf5_copy.h"
#include "common/profile/hdf5_driver.h"
#include "common/profile/hdf5_read.h"
#include "common/profile/worker.h"
#include "tests/fuzz/fuzz.h"

#define SECONDS_MAX 5

/* Errors that the sanitizer finds have a status of their own; a signal is
 * libhdf5's, and left alone. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "exitcode=99:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:"
           "handle_abort=0:detect_leaks=0:allocator_may_return_null=1:"
           "max_allocation_size_mb=256";
}

/*
 * Where the counters of -fsanitize=fuzzer begin and end, a byte for each edge;
 * NULL without it.  In assembler: clang declares the symbols itself, and
 * renames its own where C has them, too.
 */
__asm__(".pushsection .data, \"aw\"\n"
        ".weak __start___sancov_cntrs\n"
        ".weak __stop___sancov_cntrs\n"
        ".balign 8\n"
        "fuzz_counters: .quad __start___sancov_cntrs\n"
        ".quad __stop___sancov_cntrs\n"
        ".popsection\n");
extern uint8_t *const fuzz_counters[2];

static size_t counter_bytes(void)
{
    return (size_t)((uintptr_t)fuzz_counters[1] - (uintptr_t)fuzz_counters[0]);
}

/* In memory that the child shares with its parent. */
static uint8_t *child_counters;

static void share_counters(void)
{
    if (child_counters || counter_bytes() == 0)
        return;
    child_counters = mmap(NULL, counter_bytes(), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FUZZ_MUST(child_counters != MAP_FAILED);
}

static void tell_counters(void)
{
    if (child_counters)
        memcpy(child_counters, fuzz_counters[0], counter_bytes());
}

static void take_counters(void)
{
    for (size_t i = 0; child_counters && i < counter_bytes(); i++)
        if (child_counters[i] > fuzz_counters[0][i])
            fuzz_counters[0][i] = child_counters[i];
}

/* Of the frames that follow, whether the first that is ours or libhdf5's is
 * ours; those of functions that the sanitizer has put in libc's place are
 * neither. */
static bool is_ours(const char *report)
{
    const char *line = report, *end;

    for (; (end = strchr(line, '\n')); line = end + 1) {
        size_t len = (size_t)(end - line);

        if (strncmp(line, "    #", 5) != 0)
            continue;
        if (memmem(line, len, "libhdf5", 7))
            return false;
        if (memmem(line, len, "common/profile/", 15) ||
            memmem(line, len, "common/base/", 12))
            return true;
    }
    return true;
}

/*
 * libhdf5 reads behind its memory in many damaged files, and where it does so
 * with memcpy and the like, the sanitizer sees it: that is a crash as any
 * other.  If it goes over the end of memory that we gave it, it is our error.
 */
static void on_report(const char *report)
{
    const char *allocated = strstr(report, "allocated by thread");

    if (is_ours(report) ||
        (allocated && strstr(report, "located 0 bytes") && is_ours(allocated)))
        return;
    kill(getpid(), SIGKILL);
}

/* Of AddressSanitizer; not there without it. */
void __asan_set_error_report_callback(void (*callback)(const char *))
    __attribute__((weak));

/* A crash of libhdf5's is the child's own affair, and not libFuzzer's. */
static void crash_alone(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], SIG_DFL);
    if (__asan_set_error_report_callback)
        __asan_set_error_report_callback(on_report);
}

/* What the worker says of the input. */
struct finding {
    uint64_t tables, rows, lost, notes;
    struct joule_hdf5_copied copied;
};

struct state {
    int fd, out_fd;
    uint64_t size; /* of the input */
    bool is_told;
    struct finding finding;
};

struct walk {
    hid_t group;
    uint64_t size;
    struct finding *finding;
};

static int on_table(void *arg, const char *path, struct joule_hdf5_table *seen,
                    struct joule_error *err)
{
    const struct joule_rowtype *type = seen->row;
    struct walk *w = arg;
    struct joule_hdf5_table *table;
    uint64_t rows = 0;
    size_t count;
    char *batch;

    FUZZ_MUST(strlen(path) < JOULE_PROFILE_PATH_MAX);
    FUZZ_MUST(joule_rowtype_check(type, joule_rowtype_bytes(type)) == 0);
    FUZZ_MUST(joule_hdf5_table_missing(seen) <= seen->rows + seen->chunk_rows);
    table = joule_hdf5_table_open(w->group, path, err);
    if (!table)
        return 0;
    /* Not as much as a chunk, so that a part of one is read, too. */
    batch = malloc(1000 * (size_t)type->size);
    while ((count = joule_hdf5_table_read(table, batch, 1000)) > 0) {
        FUZZ_MUST(count <= 1000);
        rows += count;
    }
    free(batch);
    FUZZ_MUST(rows + table->lost == table->rows);
    FUZZ_MUST(rows * type->size <= w->size * 1040);
    w->finding->tables++;
    w->finding->rows += rows;
    w->finding->lost += table->lost;
    joule_hdf5_table_close(table);
    return 0;
}

static int on_note(void *arg, const char *path, const char *sentence,
                   struct joule_error *err)
{
    struct walk *w = arg;
    struct joule_error text;

    (void)path;
    (void)err;
    joule_error_set(&text, 0, "%s", sentence);
    fuzz_check_sentence(&text);
    w->finding->notes++;
    return 0;
}

static int read_all(const struct state *s, struct finding *ret,
                    struct joule_error *err)
{
    struct walk w = {.size = s->size, .finding = ret};
    const struct joule_hdf5_visitor v = {
        .table = on_table, .note = on_note, .arg = &w};
    hid_t file = joule_hdf5_open_fd(s->fd, err);
    int rc;

    if (file < 0)
        return -1;
    w.group = H5Gopen2(file, "/", H5P_DEFAULT);
    rc = w.group < 0 ? joule_hdf5_error(err, EBADMSG, "no root")
                     : joule_hdf5_walk(w.group, &v, err);
    if (w.group >= 0)
        H5Gclose(w.group);
    joule_hdf5_close(file, NULL);
    return rc;
}

static int copy(const struct state *s, struct finding *ret,
                struct joule_error *err)
{
    const struct joule_hdf5_node node = {.fd = s->fd,
                                         .path = "/n1",
                                         .step = "0",
                                         .name = "n1",
                                         .is_node_file = true};
    struct joule_hdf5_copy *copy = joule_hdf5_copy_create(s->out_fd, err);
    int rc;

    FUZZ_MUST(copy);
    rc = joule_hdf5_copy_node(copy, &node, &ret->copied, err);
    FUZZ_MUST(ret->copied.write_error == 0);
    FUZZ_MUST(rc == 0 || ret->copied.rows == 0);
    if (joule_hdf5_copy_finish(copy, err) < 0)
        rc = -1;
    joule_hdf5_copy_destroy(copy);
    return rc;
}

static int run_task(void *arg, size_t task, int fd, struct joule_out *out,
                    struct joule_error *err)
{
    const struct state *s = arg;
    struct finding *finding;
    int rc;

    (void)fd;
    crash_alone();
    finding = joule_out_room(out, sizeof(*finding), err);
    memset(finding, 0, sizeof(*finding));
    rc = task ? copy(s, finding, err) : read_all(s, finding, err);
    joule_out_commit(out, sizeof(*finding));
    tell_counters();
    return rc;
}

static int take(void *arg, size_t task, const void *data, size_t len,
                struct joule_error *err)
{
    struct state *s = arg;

    (void)task;
    (void)err;
    FUZZ_MUST(len == sizeof(s->finding));
    memcpy(&s->finding, data, len);
    s->is_told = true;
    return 0;
}

static int ended(void *arg, size_t task, const struct joule_work_end *end,
                 struct joule_error *err)
{
    struct state *s = arg;

    (void)task;
    (void)err;
    FUZZ_MUST((end->errnum == 0) == (end->sentence[0] == '\0'));
    FUZZ_MUST(!strstr(end->sentence, "status 99"));
    FUZZ_MUST(end->is_dead != s->is_told);
    s->is_told = false;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct state s = {.fd = memfd_create("input", MFD_CLOEXEC),
                      .out_fd = memfd_create("output", MFD_CLOEXEC),
                      .size = size};
    const int keep[] = {s.fd, s.out_fd};
    const struct joule_work work = {
        .run = run_task,
        .take = take,
        .ended = ended,
        .arg = &s,
        .keep = keep,
        .keeps = 2,
        .writes_files = true,
        .cpu_s = SECONDS_MAX,
        .wall_s = SECONDS_MAX,
    };
    int64_t start_ns = joule_clock_mono_ns(&joule_clock_system);

    joule_hdf5_prepare();
    share_counters();
    if (child_counters)
        memset(child_counters, 0, counter_bytes());
    FUZZ_MUST(s.fd >= 0 && s.out_fd >= 0);
    FUZZ_MUST(write(s.fd, data, size) == (ssize_t)size);
    FUZZ_MUST(joule_work_run(&work, 2, 1, NULL) == 0);
    take_counters();
    /* It may have to wait for a CPU, beside its own limit. */
    FUZZ_MUST(joule_clock_mono_ns(&joule_clock_system) - start_ns <
              2 * (SECONDS_MAX + 20) * JOULE_NS_PER_S);
    close(s.fd);
    close(s.out_fd);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The input is a profile file.  It is read as sh5util reads it: in a child
 * that may crash, since libhdf5 does.  What must not happen is that it costs
 * more than its task: the parent crashes, waits, or believes what is not true.
 * With AddressSanitizer, an error in the child that it finds (in our code, or
 * with our memory) is one, too; it ends the child with status 99.
 *
 * Under libFuzzer, the child hands its counters of coverage to the parent:
 * otherwise nothing would lead the fuzzer through the reader.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/store/pool.h"
#include "common/store/record.h"
#include "common/store/send.h"
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
        if (memmem(line, len, "common/store/", 13) ||
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

struct state {
    int fd;
    uint64_t size; /* of the input */
    struct joule_decoder decoder;
    struct joule_layout layout;
    bool in_table;
    unsigned depth;
    uint64_t rows;
};

static int on_group(void *arg, const char *name, struct joule_error *err)
{
    struct state *s = arg;

    (void)err;
    FUZZ_MUST(name[0] && !strchr(name, '/') && !s->in_table);
    s->depth++;
    return 0;
}

static int on_leave(void *arg, struct joule_error *err)
{
    struct state *s = arg;

    (void)err;
    FUZZ_MUST(s->depth > 0 && !s->in_table);
    s->depth--;
    return 0;
}

static int on_attribute(void *arg, const struct joule_attribute *a,
                        struct joule_error *err)
{
    (void)arg;
    (void)err;
    FUZZ_MUST(strlen(a->name) < sizeof(a->name));
    FUZZ_MUST(a->bytes == a->type.size * (a->elements ? a->elements : 1));
    FUZZ_MUST(joule_rowtype_check(&a->type, joule_rowtype_bytes(&a->type)) ==
              0);
    return 0;
}

static int on_table(void *arg, const char *name,
                    const struct joule_layout *layout, bool stored,
                    struct joule_error *err)
{
    struct state *s = arg;

    (void)err;
    FUZZ_MUST(name[0] && !s->in_table);
    FUZZ_MUST(!stored || layout->chunk_rows > 0);
    FUZZ_MUST(joule_rowtype_check(&layout->type,
                                  joule_rowtype_bytes(&layout->type)) == 0);
    s->layout = *layout;
    s->in_table = true;
    return 0;
}

static int on_table_end(void *arg, uint64_t lost, struct joule_error *err)
{
    struct state *s = arg;

    (void)lost;
    (void)err;
    FUZZ_MUST(s->in_table);
    s->in_table = false;
    return 0;
}

static int on_note(void *arg, const char *sentence, struct joule_error *err)
{
    struct joule_error text;

    (void)arg;
    (void)err;
    FUZZ_MUST(strlen(sentence) < sizeof(text.text));
    strcpy(text.text, sentence);
    fuzz_check_sentence(&text);
    return 0;
}

static int on_rows(void *arg, const void *rows, uint64_t count, size_t bytes,
                   struct joule_error *err)
{
    struct state *s = arg;
    volatile unsigned char last = ((const unsigned char *)rows)[bytes - 1];

    (void)last;
    (void)err;
    FUZZ_MUST(s->in_table && bytes == count * s->layout.type.size);
    s->rows += count;
    return 0;
}

static int on_chunk(void *arg, uint64_t rows, uint32_t mask, const void *data,
                    size_t len, struct joule_error *err)
{
    struct state *s = arg;
    volatile unsigned char last = ((const unsigned char *)data)[len - 1];

    (void)last;
    (void)mask;
    (void)err;
    FUZZ_MUST(s->in_table && rows <= s->layout.chunk_rows);
    s->rows += rows;
    return 0;
}

/* Our own reader names nothing that is not there. */
static int on_run(void *arg, const struct joule_run *run,
                  struct joule_error *err)
{
    struct state *s = arg;

    (void)err;
    FUZZ_MUST(s->in_table && run->len > 0);
    FUZZ_MUST(run->at <= s->size && run->len <= s->size - run->at);
    s->rows += run->rows;
    return 0;
}

static int open_task(void *arg, size_t task, struct joule_error *err)
{
    struct state *s = arg;

    (void)task;
    (void)err;
    return dup(s->fd);
}

static int run_task(void *arg, size_t task, int fd, struct joule_out *out,
                    struct joule_error *err)
{
    int rc;

    (void)arg;
    (void)task;
    crash_alone();
    rc = joule_send_file(fd, "/", NULL, JOULE_WALK_TABLES, out, err);
    tell_counters();
    return rc;
}

static int take(void *arg, size_t task, const void *data, size_t len,
                struct joule_error *err)
{
    struct state *s = arg;

    (void)task;
    return joule_decoder_take(&s->decoder, data, len, err);
}

static int ended(void *arg, size_t task, int errnum, const char *sentence,
                 struct joule_error *err)
{
    (void)arg;
    (void)task;
    (void)err;
    FUZZ_MUST((errnum == 0) == (sentence[0] == '\0'));
    FUZZ_MUST(!strstr(sentence, "status 99"));
    /* Our own reader tells the truth about its own records. */
    FUZZ_MUST(!strstr(sentence, "its reader sent"));
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct state s; /* large */
    const struct joule_visitor visitor = {
        .group = on_group,
        .leave = on_leave,
        .attribute = on_attribute,
        .table = on_table,
        .table_end = on_table_end,
        .note = on_note,
        .rows = on_rows,
        .chunk = on_chunk,
        .run = on_run,
        .arg = &s,
    };
    const struct joule_work work = {
        .open = open_task,
        .run = run_task,
        .take = take,
        .ended = ended,
        .equip = joule_reader_equip,
        .arg = &s,
        .cpu_s = SECONDS_MAX,
        .wall_s = SECONDS_MAX,
    };
    int64_t start_ns = joule_clock_mono_ns(&joule_clock_system);

    memset(&s, 0, sizeof(s));
    share_counters();
    if (child_counters)
        memset(child_counters, 0, counter_bytes());
    s.fd = memfd_create("input", MFD_CLOEXEC);
    FUZZ_MUST(s.fd >= 0 && write(s.fd, data, size) == (ssize_t)size);
    s.size = size;
    joule_decoder_start(&s.decoder, &visitor);
    FUZZ_MUST(joule_pool_run(&work, 1, 1, NULL) == 0);
    FUZZ_MUST(joule_decoder_finish(&s.decoder, NULL) == 0);
    take_counters();
    FUZZ_MUST(s.depth == 0 && !s.in_table);
    /* It may have to wait for a CPU, beside its own limit. */
    FUZZ_MUST(joule_clock_mono_ns(&joule_clock_system) - start_ns <
              (SECONDS_MAX + 20) * JOULE_NS_PER_S);
    close(s.fd);
    return 0;
}

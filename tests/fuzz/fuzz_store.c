/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The input is a profile file.  It is read as sh5util reads it: in a child
 * that may crash, since libhdf5 does.  What must not happen is that it costs
 * more than its task: the parent crashes, waits, or believes what is not true.
 * With AddressSanitizer, an error in the child that it finds (in our code, or
 * with our memory) is one, too; it ends the child with status 99.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/store/hdferror.h"
#include "common/store/pool.h"
#include "common/store/reader.h"
#include "common/store/record.h"
#include "tests/fuzz/fuzz.h"

#define SECONDS_MAX 5

/* Errors that the sanitizer finds have a status of their own; a signal is
 * libhdf5's, and left alone. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "exitcode=99:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:"
           "handle_abort=0:detect_leaks=0:allocator_may_return_null=1";
}

struct state {
    int fd;
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
    struct joule_visitor sender = joule_record_sender(out);
    struct joule_reader *reader;
    int rc;

    (void)arg;
    (void)task;
    joule_hdf_quiet();
    reader = joule_reader_open(fd, err);
    if (!reader)
        return -1;
    rc = joule_reader_walk(reader, "/", JOULE_WALK_TABLES, &sender, err);
    joule_reader_close(reader);
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
        .arg = &s,
    };
    const struct joule_work work = {
        .open = open_task,
        .run = run_task,
        .take = take,
        .ended = ended,
        .arg = &s,
        .cpu_s = SECONDS_MAX,
        .wall_s = SECONDS_MAX,
    };
    int64_t start_ns = joule_clock_mono_ns(&joule_clock_system);

    memset(&s, 0, sizeof(s));
    s.fd = memfd_create("input", MFD_CLOEXEC);
    FUZZ_MUST(s.fd >= 0 && write(s.fd, data, size) == (ssize_t)size);
    joule_decoder_start(&s.decoder, &visitor);
    FUZZ_MUST(joule_pool_run(&work, 1, 1, NULL) == 0);
    FUZZ_MUST(joule_decoder_finish(&s.decoder, NULL) == 0);
    FUZZ_MUST(s.depth == 0 && !s.in_table);
    FUZZ_MUST(joule_clock_mono_ns(&joule_clock_system) - start_ns <
              (SECONDS_MAX + 1) * JOULE_NS_PER_S);
    close(s.fd);
    return 0;
}

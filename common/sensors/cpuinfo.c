/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/cpuinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/parse.h"

#define PATH "proc/cpuinfo"

/* The first block: about 2000 bytes of flags and 1000 of the rest (2026). */
#define FIRST_BLOCK_MAX 16384

/* Family and model are 12 and 8 bits wide in CPUID 1, EAX. */
#define NUMBER_MAX 4095

/* Bytes of the text: not ended by NUL. */
struct span {
    const char *p;
    size_t len;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim(const char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    while (end > p && is_blank(end[-1]))
        end--;
    return (struct span){p, (size_t)(end - p)};
}

static bool span_is(struct span s, const char *word)
{
    return s.len == strlen(word) && memcmp(s.p, word, s.len) == 0;
}

/* Whether [word] stands in the span, between blanks. */
static bool span_has(struct span s, const char *word)
{
    const char *p = s.p, *end = s.p + s.len;

    while (p < end) {
        const char *start;

        while (p < end && is_blank(*p))
            p++;
        for (start = p; p < end && !is_blank(*p); p++)
            ;
        if (span_is((struct span){start, (size_t)(p - start)}, word))
            return true;
    }
    return false;
}

/* Copy what fits; what is not printable ASCII becomes '?', as the name goes
 * into log lines. */
static void copy_printable(struct span from, char *buf, size_t size)
{
    size_t n = from.len < size - 1 ? from.len : size - 1;

    for (size_t i = 0; i < n; i++)
        buf[i] = from.p[i] >= 0x20 && from.p[i] < 0x7F ? from.p[i] : '?';
    buf[n] = '\0';
}

static int take_number(const char *key, struct span from, unsigned *ret,
                       struct joule_error *err)
{
    char digits[16];
    uint64_t value;

    copy_printable(from, digits, sizeof(digits));
    if (from.len >= sizeof(digits) ||
        joule_parse_u64(digits, 0, NUMBER_MAX, &value) < 0)
        return joule_error_set(err, EINVAL,
                               "/" PATH ": \"%s: %s\" is not a number from "
                               "0 to %d",
                               key, digits, NUMBER_MAX);
    *ret = (unsigned)value;
    return 0;
}

/* CPUID 0: EBX, EDX and ECX. */
#define X86_VENDOR_LETTERS 12

/* What the block has said so far; the first line of each key counts. */
struct block {
    struct joule_cpuinfo info;
    struct span family_text, model_text;
    bool any, processor, vendor, family, model, name, flags;
};

static int take_line(struct block *b, struct span key, struct span value,
                     struct joule_error *err)
{
    b->any = true;
    if (span_is(key, "processor")) {
        b->processor = true;
    } else if (span_is(key, "vendor_id") && !b->vendor) {
        if (value.len == 0 || value.len >= sizeof(b->info.vendor))
            return joule_error_set(err, EINVAL,
                                   "/" PATH ": \"vendor_id\" has %zu "
                                   "characters, not 1 to %zu",
                                   value.len, sizeof(b->info.vendor) - 1);
        copy_printable(value, b->info.vendor, sizeof(b->info.vendor));
        b->vendor = true;
    } else if (span_is(key, "cpu family") && !b->family) {
        b->family = true;
        b->family_text = value;
    } else if (span_is(key, "model") && !b->model) {
        b->model = true;
        b->model_text = value;
    } else if (span_is(key, "model name") && !b->name) {
        b->name = true;
        copy_printable(value, b->info.name, sizeof(b->info.name));
    } else if (span_is(key, "flags") && !b->flags) {
        b->flags = true;
        b->info.hypervisor = span_has(value, "hypervisor");
    }
    return 0;
}

static bool is_x86(const struct block *b)
{
    return strlen(b->info.vendor) == X86_VENDOR_LETTERS;
}

static int take_model(struct block *b, struct joule_error *err)
{
    if (!b->family)
        return joule_error_set(err, EINVAL,
                               "/" PATH " has no \"cpu family\" line");
    if (take_number("cpu family", b->family_text, &b->info.family, err) < 0)
        return -1;
    if (!b->model)
        return joule_error_set(err, EINVAL, "/" PATH " has no \"model\" line");
    return take_number("model", b->model_text, &b->info.model, err);
}

int joule_cpuinfo_parse(const char *text, size_t len, struct joule_cpuinfo *ret,
                        struct joule_error *err)
{
    const char *p = text, *end = text + len;
    struct block b = {0};

    while (p < end) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        const char *colon;

        if (!eol)
            eol = end;
        /* An empty line ends the first block. */
        if (trim(p, eol).len == 0 && b.any)
            break;
        colon = memchr(p, ':', (size_t)(eol - p));
        if (colon &&
            take_line(&b, trim(p, colon), trim(colon + 1, eol), err) < 0)
            return -1;
        p = eol < end ? eol + 1 : end;
    }
    if (!b.any || (is_x86(&b) && !b.processor))
        return joule_error_set(err, EINVAL,
                               "/" PATH " has no \"processor\" line");
    if (is_x86(&b) && take_model(&b, err) < 0)
        return -1;
    /* Another architecture may use these keys for something else. */
    if (!is_x86(&b) && (!b.vendor || take_model(&b, NULL) < 0)) {
        b.info.vendor[0] = '\0';
        b.info.family = 0;
        b.info.model = 0;
    }
    *ret = b.info;
    return 0;
}

int joule_cpuinfo_read(int root_fd, struct joule_cpuinfo *ret,
                       struct joule_error *err)
{
    char buf[FIRST_BLOCK_MAX];
    ssize_t len;
    int saved;
    int fd = joule_file_open(root_fd, PATH, O_RDONLY);

    if (fd < 0)
        return joule_error_set(err, errno, "cannot open /" PATH ": %m");
    len = joule_file_fill(fd, buf, sizeof(buf));
    saved = errno;
    close(fd);
    if (len < 0)
        return joule_error_set(err, saved, "cannot read /" PATH ": %m");
    return joule_cpuinfo_parse(buf, (size_t)len, ret, err);
}

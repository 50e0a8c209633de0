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

/* CPUID 0: EBX, EDX and ECX. */
#define X86_VENDOR_LETTERS 12

enum key { PROCESSOR, VENDOR, FAMILY, MODEL, NAME, FLAGS, KEYS };

static const char *const keys[KEYS] = {
    [PROCESSOR] = "processor", [VENDOR] = "vendor_id", [FAMILY] = "cpu family",
    [MODEL] = "model",         [NAME] = "model name",  [FLAGS] = "flags",
};

/* What is not printable ASCII becomes '?', as it goes into log lines. */
static void copy_printable(const char *text, size_t len, char *buf, size_t size)
{
    size_t n = len < size - 1 ? len : size - 1;

    for (size_t i = 0; i < n; i++) {
        char c = text[i] == '\t' || text[i] == '\r' ? ' ' : text[i];

        buf[i] = (c >= 0x20 && c < 0x7F) || c == '\n' ? c : '?';
    }
    buf[n] = '\0';
}

static char *trim(char *s)
{
    size_t n;

    s += strspn(s, " ");
    for (n = strlen(s); n > 0 && s[n - 1] == ' '; n--)
        s[n - 1] = '\0';
    return s;
}

/* Cut the first block, which an empty line ends, into the values of the keys;
 * the first line of each counts.  false: there is no block. */
static bool split(char *text, const char *value[KEYS])
{
    bool any = false;
    char *line, *colon;

    while ((line = strsep(&text, "\n"))) {
        line = trim(line);
        if (!*line && any)
            break;
        colon = strchr(line, ':');
        if (!colon)
            continue;
        any = true;
        *colon = '\0';
        line = trim(line);
        for (int key = 0; key < KEYS; key++)
            if (!value[key] && strcmp(line, keys[key]) == 0)
                value[key] = trim(colon + 1);
    }
    return any;
}

static int take_number(const char *value[KEYS], enum key key, unsigned *ret,
                       struct joule_error *err)
{
    uint64_t number;

    if (!value[key])
        return joule_error_set(err, EINVAL, "/" PATH " has no \"%s\" line",
                               keys[key]);
    if (joule_parse_u64(value[key], 0, NUMBER_MAX, &number) < 0)
        return joule_error_set(err, EINVAL,
                               "/" PATH ": \"%s: %.15s\" is not a number from "
                               "0 to %d",
                               keys[key], value[key], NUMBER_MAX);
    *ret = (unsigned)number;
    return 0;
}

/* Whether [word] stands in the text, between blanks. */
static bool has_word(const char *text, const char *word)
{
    size_t n;

    for (; *text; text += n + strspn(text + n, " ")) {
        n = strcspn(text, " ");
        if (n == strlen(word) && memcmp(text, word, n) == 0)
            return true;
    }
    return false;
}

int joule_cpuinfo_parse(const char *text, size_t len, struct joule_cpuinfo *ret,
                        struct joule_error *err)
{
    const char *value[KEYS] = {NULL};
    struct joule_cpuinfo info = {.vendor = ""};
    char block[FIRST_BLOCK_MAX];
    size_t letters;
    bool any, is_x86;

    copy_printable(text, len, block, sizeof(block));
    any = split(block, value);
    letters = value[VENDOR] ? strlen(value[VENDOR]) : 0;
    is_x86 = letters == X86_VENDOR_LETTERS;
    if (value[VENDOR] && (letters == 0 || letters >= sizeof(info.vendor)))
        return joule_error_set(err, EINVAL,
                               "/" PATH ": \"vendor_id\" has %zu characters, "
                               "not 1 to %zu",
                               letters, sizeof(info.vendor) - 1);
    if (!any || (is_x86 && !value[PROCESSOR]))
        return joule_error_set(err, EINVAL,
                               "/" PATH " has no \"processor\" line");
    if (take_number(value, FAMILY, &info.family, is_x86 ? err : NULL) == 0 &&
        take_number(value, MODEL, &info.model, is_x86 ? err : NULL) == 0 &&
        value[VENDOR])
        memcpy(info.vendor, value[VENDOR], letters);
    else if (is_x86)
        return -1;
    else /* another architecture may use these keys for something else */
        info.family = info.model = 0;
    if (value[NAME])
        snprintf(info.name, sizeof(info.name), "%s", value[NAME]);
    info.hypervisor = value[FLAGS] && has_word(value[FLAGS], "hypervisor");
    *ret = info;
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

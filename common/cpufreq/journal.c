/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/cpufreq/journal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/parse.h"

void joule_journal_init(struct joule_journal *j,
                        const char boot_id[JOULE_BOOT_ID_MAX])
{
    memset(j, 0, sizeof(*j));
    memcpy(j->boot_id, boot_id, JOULE_BOOT_ID_MAX);
}

void joule_journal_clear(struct joule_journal *j)
{
    free(j->entry);
    free(j->holder);
    j->entry = NULL;
    j->holder = NULL;
    j->entry_count = j->holder_count = 0;
}

static int compare_policy(const void *key, const void *entry)
{
    unsigned x = *(const unsigned *)key;
    unsigned y = ((const struct joule_entry *)entry)->policy;

    return (x > y) - (x < y);
}

struct joule_entry *joule_journal_find(struct joule_journal *j, unsigned policy)
{
    return j->entry_count ? bsearch(&policy, j->entry, j->entry_count,
                                    sizeof(*j->entry), compare_policy)
                          : NULL;
}

struct joule_entry *joule_journal_add_entry(struct joule_journal *j,
                                            const struct joule_entry *entry)
{
    struct joule_entry *array =
        reallocarray(j->entry, j->entry_count + 1, sizeof(*array));
    size_t at = j->entry_count;

    if (!array)
        return NULL;
    j->entry = array;
    while (at > 0 && array[at - 1].policy > entry->policy)
        at--;
    memmove(array + at + 1, array + at, (j->entry_count - at) * sizeof(*array));
    array[at] = *entry;
    j->entry_count++;
    return &array[at];
}

struct joule_holder *joule_journal_add_holder(struct joule_journal *j,
                                              const struct joule_holder *holder)
{
    struct joule_holder *array;
    size_t count = j->holder_count;

    if (count >= JOULE_CPUFREQ_HOLDERS_MAX) {
        errno = ENOSPC;
        return NULL;
    }
    array = reallocarray(j->holder, count + 1, sizeof(*array));
    if (!array)
        return NULL;
    j->holder = array;
    array[count] = *holder;
    array[count].number = count ? array[count - 1].number + 1 : 1;
    j->holder_count++;
    return &array[count];
}

bool joule_journal_is_held(const struct joule_journal *j, unsigned policy)
{
    for (size_t i = 0; i < j->holder_count; i++)
        if (joule_cpus_has(&j->holder[i].policies, policy))
            return true;
    return false;
}

void joule_journal_remove_entry(struct joule_journal *j, unsigned policy)
{
    struct joule_entry *e = joule_journal_find(j, policy);

    if (!e)
        return;
    memmove(e, e + 1, (size_t)(j->entry + j->entry_count - e - 1) * sizeof(*e));
    j->entry_count--;
}

void joule_journal_remove_holder(struct joule_journal *j, size_t index)
{
    struct joule_holder *h = j->holder + index;

    memmove(h, h + 1, (j->holder_count - index - 1) * sizeof(*h));
    j->holder_count--;
}

/* ---- text ----
 *
 *     slurm-joule cpufreq journal 1
 *     boot=ID
 *     policy=0 governor=ondemand min=1200000 max=2400000 setspeed=0 epp=-
 *         touched=9 tries=0                          (one line)
 *     holder=1 job=7 step=0 pid=4711 start=123456 namespace=4026531836
 *         watch=0 request=2000000 policies=0-3       (one line)
 *     crc32=0123abcd
 */

#define TITLE    "slurm-joule cpufreq journal 1\n"
#define LAST_MAX 32 /* the line of the checksum */

/* CRC-32 as in ISO 3309. */
static uint32_t crc32_of(const char *text, size_t len)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned char)text[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xEDB88320) : 0);
    }
    return ~crc;
}

static const char *or_dash(const char *word)
{
    return *word ? word : "-";
}

static void print_entry(FILE *out, const struct joule_entry *e)
{
    const struct joule_cpufreq_state *s = &e->original;

    fprintf(out,
            "policy=%u governor=%s min=%u max=%u setspeed=%u epp=%s "
            "touched=%u tries=%u\n",
            e->policy, s->governor, (unsigned)s->min_khz, (unsigned)s->max_khz,
            (unsigned)s->setspeed_khz, or_dash(s->epp), e->touched, e->tries);
}

static int print_holder(FILE *out, const struct joule_holder *h)
{
    char request[JOULE_REQUEST_TEXT_MAX], policies[JOULE_CPUS_TEXT_MAX];

    joule_request_format(&h->request, request);
    if (joule_cpus_format(&h->policies, policies, sizeof(policies)) < 0)
        return -1;
    fprintf(out,
            "holder=%llu job=%u step=%s pid=%lld start=%llu namespace=%llu "
            "watch=%d request=%s policies=%s\n",
            (unsigned long long)h->number, (unsigned)h->job, h->step,
            (long long)h->pid, (unsigned long long)h->start,
            (unsigned long long)h->namespace, h->is_watch, or_dash(request),
            or_dash(policies));
    return 0;
}

char *joule_journal_format(const struct joule_journal *j, size_t *ret_len)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    bool good;

    if (!out)
        return NULL;
    fprintf(out, TITLE "boot=%s\n", j->boot_id);
    for (size_t i = 0; i < j->entry_count; i++)
        print_entry(out, &j->entry[i]);
    for (size_t i = 0; i < j->holder_count; i++)
        print_holder(out, &j->holder[i]);
    if (fflush(out) == 0)
        fprintf(out, "crc32=%08x\n", (unsigned)crc32_of(text, len));
    good = !ferror(out);
    if (fclose(out) != 0 || !good) {
        free(text);
        errno = ENOMEM;
        return NULL;
    }
    *ret_len = len;
    return text;
}

/* The value of the next word of the line, which must be KEY=VALUE. */
static char *next_value(char **rest, const char *key)
{
    size_t length = strlen(key);
    char *word = *rest;

    if (strncmp(word, key, length) != 0 || word[length] != '=')
        return NULL;
    *rest = word + strcspn(word, " ");
    if (**rest)
        *(*rest)++ = '\0';
    return word[length + 1] ? word + length + 1 : NULL;
}

static bool next_u64(char **rest, const char *key, uint64_t max, uint64_t *ret)
{
    char *value = next_value(rest, key);

    return value && joule_parse_u64(value, 0, max, ret) == 0;
}

static bool next_unsigned(char **rest, const char *key, uint64_t max,
                          unsigned *ret)
{
    uint64_t value;

    if (!next_u64(rest, key, max, &value))
        return false;
    *ret = (unsigned)value;
    return true;
}

static bool next_word(char **rest, const char *key, char *buf, size_t size)
{
    char *value = next_value(rest, key);

    if (!value || !joule_cpufreq_is_word(value) || strlen(value) >= size)
        return false;
    memcpy(buf, value, strlen(value) + 1);
    return true;
}

static bool parse_entry(char *line, struct joule_journal *j)
{
    struct joule_entry e = {0};
    struct joule_cpufreq_state *s = &e.original;

    if (!next_unsigned(&line, "policy", JOULE_CPUS_MAX - 1, &e.policy) ||
        !next_word(&line, "governor", s->governor, sizeof(s->governor)) ||
        !next_unsigned(&line, "min", JOULE_KHZ_MAX, &s->min_khz) ||
        !next_unsigned(&line, "max", JOULE_KHZ_MAX, &s->max_khz) ||
        !next_unsigned(&line, "setspeed", JOULE_KHZ_MAX, &s->setspeed_khz) ||
        !next_word(&line, "epp", s->epp, sizeof(s->epp)) ||
        !next_unsigned(&line, "touched", JOULE_CPUFREQ_FIELDS, &e.touched) ||
        !next_unsigned(&line, "tries", UINT_MAX, &e.tries) || *line)
        return false;
    if (strcmp(s->epp, "-") == 0)
        s->epp[0] = '\0';
    if (s->min_khz > s->max_khz ||
        (j->entry_count > 0 && j->entry[j->entry_count - 1].policy >= e.policy))
        return false;
    return joule_journal_add_entry(j, &e) != NULL;
}

/* A watch asks for nothing, and nobody else does. */
static bool parse_request(const char *text, struct joule_holder *h)
{
    if (!text || h->is_watch != (strcmp(text, "-") == 0))
        return false;
    return h->is_watch || joule_request_parse(text, &h->request, NULL) == 0;
}

/* Each policy that somebody holds has its line. */
static bool parse_policies(const char *text, struct joule_journal *j,
                           struct joule_cpus *policies)
{
    unsigned id;

    if (!text)
        return false;
    if (strcmp(text, "-") == 0)
        return true;
    if (joule_cpus_parse(policies, text) < 0)
        return false;
    for (id = joule_cpus_next(policies, 0); id < JOULE_CPUS_MAX;
         id = joule_cpus_next(policies, id + 1))
        if (!joule_journal_find(j, id))
            return false;
    return true;
}

static bool parse_holder(char *line, struct joule_journal *j)
{
    struct joule_holder h = {0}, *added;
    uint64_t number, job, pid, watch;

    if (!next_u64(&line, "holder", UINT64_MAX - 1, &number) || number == 0 ||
        !next_u64(&line, "job", UINT32_MAX, &job) ||
        !next_word(&line, "step", h.step, sizeof(h.step)) ||
        !next_u64(&line, "pid", INT32_MAX, &pid) || pid == 0 ||
        !next_u64(&line, "start", UINT64_MAX, &h.start) ||
        !next_u64(&line, "namespace", UINT64_MAX, &h.namespace) ||
        !next_u64(&line, "watch", 1, &watch))
        return false;
    h.job = (uint32_t)job;
    h.pid = (pid_t)pid;
    h.is_watch = watch;
    if (!parse_request(next_value(&line, "request"), &h) ||
        !parse_policies(next_value(&line, "policies"), j, &h.policies) ||
        *line ||
        (j->holder_count > 0 &&
         j->holder[j->holder_count - 1].number >= number))
        return false;
    added = joule_journal_add_holder(j, &h);
    if (!added)
        return false;
    added->number = number;
    return true;
}

/* Lines between the title and the checksum, cut in place. */
static bool parse_lines(char *text, struct joule_journal *j)
{
    while (*text) {
        char *line = text, *end = strchr(text, '\n');
        bool good;

        if (!end)
            return false;
        *end = '\0';
        text = end + 1;
        if (!*j->boot_id)
            good = next_word(&line, "boot", j->boot_id, sizeof(j->boot_id)) &&
                   !*line;
        else if (strncmp(line, "holder=", 7) == 0)
            good = parse_holder(line, j);
        else
            good = j->holder_count == 0 && parse_entry(line, j);
        if (!good)
            return false;
    }
    return *j->boot_id;
}

/* The length of the text without its checksum, or 0: it is wrong. */
static size_t check_sum(const char *text, size_t len)
{
    char last[LAST_MAX];
    size_t body = len;

    if (len < 2 || text[len - 1] != '\n' || memchr(text, '\0', len))
        return 0;
    for (body--; body > 0 && text[body - 1] != '\n';)
        body--;
    snprintf(last, sizeof(last), "crc32=%08x\n",
             (unsigned)crc32_of(text, body));
    return len - body == strlen(last) &&
                   memcmp(text + body, last, len - body) == 0
               ? body
               : 0;
}

int joule_journal_parse(const char *text, size_t len, struct joule_journal *ret,
                        struct joule_error *err)
{
    size_t title = strlen(TITLE), body;
    char *copy;
    bool good;

    memset(ret, 0, sizeof(*ret));
    if (len < title || memcmp(text, TITLE, title) != 0)
        return joule_error_set(err, EBADMSG,
                               "the journal is not one of this version of "
                               "slurm-joule");
    body = check_sum(text, len);
    if (body <= title)
        return joule_error_set(err, EBADMSG,
                               "the journal is damaged: its checksum is wrong");
    copy = strndup(text + title, body - title);
    if (!copy)
        return joule_error_set(err, ENOMEM, "out of memory");
    errno = 0;
    good = parse_lines(copy, ret);
    free(copy);
    if (good)
        return 0;
    joule_journal_clear(ret);
    if (errno == ENOMEM)
        return joule_error_set(err, ENOMEM, "out of memory");
    return joule_error_set(err, EBADMSG,
                           "the journal has a line that makes no sense");
}

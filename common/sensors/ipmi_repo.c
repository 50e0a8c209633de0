/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/ipmi_repo.h"

#include <errno.h>
#include <string.h>

/* IPMI 2.0, section 33. */
#define NETFN_STORAGE 0x0A
#define CMD_INFO      0x20
#define CMD_RESERVE   0x22
#define CMD_GET       0x23

#define ALL_BYTES 0xFF

/* Completion codes, table 5-2. */
#define CC_LENGTH       0xC7
#define CC_FIELD_LENGTH 0xC8
#define CC_RESERVATION  0xC5
#define CC_RANGE        0xC9
#define CC_TOO_MANY     0xCA
#define CC_NOT_PRESENT  0xCB
#define CC_UNSPECIFIED  0xFF

/* What every BMC can give at a time (ipmitool, FreeIPMI: 16), and the least. */
#define CHUNK_FIRST 16
#define CHUNK_LEAST 4

/* A reservation is lost when anybody else reserves or the records change. */
#define RESERVE_TRIES 5

/* A repository whose records go round in a circle ends here. */
#define RECORDS_MAX 4096

static unsigned word(const uint8_t *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

static uint32_t dword(const uint8_t *p)
{
    return word(p) | (uint32_t)word(p + 2) << 16;
}

int joule_ipmi_repo_info(struct joule_ipmi_repo *repo, int64_t deadline_ns,
                         struct joule_ipmi_repo_info *ret,
                         struct joule_error *err)
{
    const struct joule_ipmi_question q = {.net_fn = NETFN_STORAGE,
                                          .cmd = CMD_INFO};
    uint8_t rs[JOULE_IPMI_ANSWER_MAX];
    int n =
        joule_ipmi_link_ask(repo->link, &q, deadline_ns, rs, sizeof(rs), err);

    if (n < 0)
        return -1;
    if (rs[0] != 0 || n < 14)
        return joule_error_set(err, EBADMSG,
                               "the BMC does not tell about its sensor "
                               "records (completion code %02Xh)",
                               rs[0]);
    ret->count = (uint16_t)word(rs + 2);
    ret->added = dword(rs + 6);
    ret->erased = dword(rs + 10);
    return 0;
}

static int reserve(struct joule_ipmi_repo *repo, int64_t deadline_ns,
                   struct joule_error *err)
{
    const struct joule_ipmi_question q = {.net_fn = NETFN_STORAGE,
                                          .cmd = CMD_RESERVE};
    uint8_t rs[JOULE_IPMI_ANSWER_MAX];
    int n =
        joule_ipmi_link_ask(repo->link, &q, deadline_ns, rs, sizeof(rs), err);

    if (n < 0)
        return -1;
    /* Optional (table 33-1): then 0 stands for it. */
    repo->reservation = rs[0] == 0 && n >= 3 ? (uint16_t)word(rs + 1) : 0;
    repo->reserved = true;
    return 0;
}

/* Ask for [want] bytes at [offset].  Returns how many came (0..want) and fills
 * *ret_next, or -1; *ret_code is the completion code. */
static int get_part(struct joule_ipmi_repo *repo, uint16_t id, size_t offset,
                    size_t want, int64_t deadline_ns, uint8_t *to,
                    uint16_t *ret_next, uint8_t *ret_code,
                    struct joule_error *err)
{
    struct joule_ipmi_question q = {
        .net_fn = NETFN_STORAGE,
        .cmd = CMD_GET,
        .size = 6,
        .data = {(uint8_t)repo->reservation, (uint8_t)(repo->reservation >> 8),
                 (uint8_t)id, (uint8_t)(id >> 8), (uint8_t)offset,
                 (uint8_t)want},
    };
    uint8_t rs[JOULE_IPMI_ANSWER_MAX];
    size_t got;
    int n =
        joule_ipmi_link_ask(repo->link, &q, deadline_ns, rs, sizeof(rs), err);

    if (n < 0)
        return -1;
    *ret_code = rs[0];
    if (rs[0] != 0)
        return 0;
    got = n > 3 ? (size_t)n - 3 : 0;
    if (n < 3 || got > JOULE_SDR_SIZE_MAX - offset ||
        (want != ALL_BYTES && got > want))
        return joule_error_set(err, EBADMSG,
                               "the BMC's answer about sensor record %u is "
                               "%d bytes long",
                               id, n);
    *ret_next = (uint16_t)word(rs + 1);
    memcpy(to, rs + 3, got);
    return (int)got;
}

/* Fewer at a time, or -1 if that is not what is wrong. */
static int shrink(struct joule_ipmi_repo *repo, uint8_t code)
{
    switch (code) {
    case CC_TOO_MANY:
    case CC_LENGTH:
    case CC_FIELD_LENGTH:
    case CC_RANGE:
    case CC_UNSPECIFIED:
        break;
    default:
        return -1;
    }
    if (repo->chunk == 0)
        repo->chunk = CHUNK_FIRST;
    else if (repo->chunk / 2 >= CHUNK_LEAST)
        repo->chunk /= 2;
    else
        return -1;
    return 0;
}

/* How many bytes the record has, as far as they are known. */
static size_t record_size(const struct joule_ipmi_record *r)
{
    if (r->size < JOULE_SDR_HEADER_SIZE || r->bytes[3] != JOULE_SDR_FULL)
        return JOULE_SDR_HEADER_SIZE;
    return (size_t)JOULE_SDR_HEADER_SIZE + r->bytes[4];
}

/* Read on from where *r ends; the completion code of the first refusal, 0 when
 * the record is whole, or -1. */
static int read_parts(struct joule_ipmi_repo *repo, uint16_t id,
                      int64_t deadline_ns, struct joule_ipmi_record *r,
                      struct joule_error *err)
{
    while (r->size < record_size(r)) {
        size_t want = record_size(r) - r->size;
        uint8_t code;
        int got;

        if (repo->chunk == 0)
            want = ALL_BYTES;
        else if (want > repo->chunk)
            want = repo->chunk;
        got = get_part(repo, id, r->size, want, deadline_ns, r->bytes + r->size,
                       &r->next, &code, err);
        if (got < 0)
            return -1;
        if (code != 0)
            return code;
        if (got == 0)
            return joule_error_set(err, EBADMSG,
                                   "the BMC ends sensor record %u after %zu "
                                   "bytes",
                                   id, r->size);
        r->size += (size_t)got;
        if (repo->chunk == 0 && r->size < record_size(r))
            repo->chunk = CHUNK_FIRST; /* it gives what it can */
    }
    return 0;
}

int joule_ipmi_repo_read(struct joule_ipmi_repo *repo, uint16_t id,
                         int64_t deadline_ns, struct joule_ipmi_record *ret,
                         struct joule_error *err)
{
    int tries = RESERVE_TRIES;

    for (;;) {
        int code;

        ret->size = 0;
        if (!repo->reserved && reserve(repo, deadline_ns, err) < 0)
            return -1;
        code = read_parts(repo, id, deadline_ns, ret, err);
        if (code <= 0)
            return code;
        if (code == CC_RESERVATION && --tries > 0) {
            repo->reserved = false;
            continue;
        }
        if (shrink(repo, (uint8_t)code) == 0)
            continue;
        return joule_error_set(err, code == CC_NOT_PRESENT ? ENOENT : EBADMSG,
                               "the BMC does not give sensor record %u "
                               "(completion code %02Xh)",
                               id, (unsigned)code);
    }
}

int joule_ipmi_repo_walk(struct joule_ipmi_repo *repo, int64_t deadline_ns,
                         int (*visit)(void *arg,
                                      const struct joule_ipmi_record *record),
                         void *arg, struct joule_ipmi_skipped *ret_skipped,
                         struct joule_error *err)
{
    struct joule_ipmi_record record;
    uint16_t id = JOULE_IPMI_RECORD_FIRST;

    memset(ret_skipped, 0, sizeof(*ret_skipped));
    for (unsigned n = 0; n < RECORDS_MAX; n++) {
        record.next = JOULE_IPMI_RECORD_END;
        if (joule_ipmi_repo_read(repo, id, deadline_ns, &record, err) < 0) {
            if (errno == ENOENT && id == JOULE_IPMI_RECORD_FIRST)
                return 0; /* an empty repository */
            if (errno != ENOENT && errno != EBADMSG)
                return -1;
            if (record.next == id || record.next == JOULE_IPMI_RECORD_END)
                return -1; /* no way on */
            ret_skipped->count++;
            ret_skipped->last_id = id;
        } else if (visit(arg, &record) < 0 && errno == EBADMSG) {
            ret_skipped->count++;
            ret_skipped->last_id = id;
        }
        if (record.next == JOULE_IPMI_RECORD_END)
            return 0;
        if (record.next == id)
            break;
        id = record.next;
    }
    return joule_error_set(err, EBADMSG,
                           "the BMC's sensor records have no end");
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/node/ledger_file.h"

/* Sleep while *word is [value], at most until the deadline.
 * Shared between processes: not FUTEX_PRIVATE_FLAG. */
static void sleep_on(const _Atomic uint32_t *word, uint32_t value,
                     int64_t deadline_ns)
{
    struct timespec deadline = joule_timespec(deadline_ns);

    syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, &deadline, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

static void wake_all(const _Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Tickets are numbers that go round. */
static bool is_beyond(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) > 0;
}

int joule_ledger_ask(struct joule_ledger *l, int64_t timeout_ns)
{
    int64_t deadline_ns = joule_deadline_in(timeout_ns);
    uint32_t ticket, answered;

    if (!l->writable) {
        errno = EACCES;
        return -1;
    }
    ticket = atomic_fetch_add(&l->head->asked, 1) + 1;
    wake_all(&l->head->asked);
    for (;;) {
        answered = atomic_load(&l->head->answered);
        if (!is_beyond(ticket, answered))
            return 0;
        if (joule_deadline_left(deadline_ns) == 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        sleep_on(&l->head->answered, answered, deadline_ns);
    }
}

uint32_t joule_ledger_asked(struct joule_ledger *l)
{
    return atomic_load(&l->head->asked);
}

bool joule_ledger_wait(struct joule_ledger *l, uint32_t answered,
                       int64_t timeout_ns)
{
    int64_t deadline_ns = joule_deadline_in(timeout_ns);
    uint32_t asked = atomic_load(&l->head->asked);

    if (!is_beyond(asked, answered))
        sleep_on(&l->head->asked, asked, deadline_ns);
    return is_beyond(atomic_load(&l->head->asked), answered);
}

/* A wake-up between the look and the sleep must not be lost: it is a ticket
 * of nobody's. */
void joule_ledger_wake(struct joule_ledger *l)
{
    atomic_fetch_add(&l->head->asked, 1);
    wake_all(&l->head->asked);
}

void joule_ledger_answer(struct joule_ledger *l, uint32_t ticket)
{
    atomic_store(&l->head->answered, ticket);
    wake_all(&l->head->answered);
}

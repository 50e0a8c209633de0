/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/step/step_energy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/parse.h"
#include "common/base/process.h"
#include "common/energy/counter.h"

/* Between two looks at what other steps have registered. */
#define AWAIT_NS (50 * JOULE_NS_PER_MS)

#define ONLINE_MAX 65536 /* of a list of CPUs */

#define AVERAGE_MIN_NS (5 * JOULE_NS_PER_MS)

/* Who watches may read a hundred times a second, also if there is nothing; and
 * begins to before the step is registered. */
#define RETRY_NS (100 * JOULE_NS_PER_MS)

/* A row that is older than this after slurmd has answered was not charged: the
 * node's energy is not known at this moment.  (One that begins to write the
 * ledger answers with a sample that it took just before.) */
#define STANDS_STILL_NS (100 * JOULE_NS_PER_MS)

struct joule_step_energy {
    const struct joule_clock *clock;
    int root_fd;
    bool watches; /* it was registered by another */
    bool surplus; /* it was refused for good */
    int64_t tried_ns;
    char *node;
    struct joule_ledger *ledger; /* NULL: not registered yet */
    struct joule_ledger *seen;   /* until then, a watcher's; or NULL */
    unsigned slot;
    struct joule_registration registration;
    uint64_t job_cpus[JOULE_LEDGER_WORDS_MAX];
    uint64_t step_cpus[JOULE_LEDGER_WORDS_MAX];
    bool counts_node, has_base; /* has_base: the next two are set */
    uint64_t base_uj;           /* its job's, at the first reading */
    int64_t base_ns;
    uint64_t used_uj; /* that was read last */
    int64_t fresh_ns; /* an extern step's: when it asked last */
};

/* The slot that this process has. */
static int find_slot(struct joule_step_energy *s, struct joule_error *err)
{
    size_t slots = joule_ledger_slots(s->ledger);

    for (s->slot = 0; s->slot < slots; s->slot++)
        if (joule_ledger_owner_of(s->ledger, s->slot) ==
                s->registration.owner &&
            joule_ledger_registered(s->ledger, s->slot, &s->registration,
                                    s->job_cpus, NULL) == 0)
            return 0;
    return joule_error_set(err, ENOENT, "the step is not registered");
}

/* -1 with a sentence; then it may be tried again. */
static int register_step(struct joule_step_energy *s, struct joule_error *err)
{
    int64_t now_ns = joule_clock_mono_ns(s->clock);
    uint64_t start;
    int saved;

    if (s->ledger)
        return 0;
    if (s->surplus)
        return joule_error_set(err, EDQUOT,
                               "its job has too many steps here "
                               "at once for it to have a row of its own: it is "
                               "charged to the job");
    if (s->watches && s->tried_ns && now_ns - s->tried_ns < RETRY_NS)
        return joule_error_set(err, ENOENT, "the step is not registered");
    s->tried_ns = now_ns;
    s->ledger = s->seen ? s->seen : joule_ledger_open(s->root_fd, s->node, err);
    s->seen = NULL;
    if (!s->ledger)
        return -1;
    if (joule_process_start(s->root_fd, getpid(), &start) < 0) {
        joule_error_set(err, errno, "cannot find when slurmstepd began: %s",
                        strerror(errno));
        goto fail;
    }
    s->registration.owner = joule_process_number(getpid(), start);
    if (s->watches ? find_slot(s, err) == 0
                   : joule_ledger_register(s->ledger, s->root_fd,
                                           &s->registration, s->job_cpus,
                                           s->step_cpus, &s->slot, err) == 0)
        return 0;
fail:
    saved = errno;
    s->surplus = saved == EDQUOT && !s->watches;
    if (s->surplus)
        joule_ledger_add_surplus(s->ledger);
    if (s->watches)
        s->seen = s->ledger;
    else
        joule_ledger_destroy(s->ledger);
    s->ledger = NULL;
    errno = saved;
    return -1;
}

struct joule_step_energy *
joule_step_energy_watch(const struct joule_clock *clock, int root_fd,
                        const char *node)
{
    struct joule_step_energy *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->clock = clock;
    s->watches = true;
    s->root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    s->node = strdup(node);
    if (s->root_fd >= 0 && s->node)
        return s;
    joule_step_energy_destroy(s);
    errno = ENOMEM;
    return NULL;
}

struct joule_step_energy *
joule_step_energy_create(const struct joule_clock *clock, int root_fd,
                         const char *node, const struct joule_registration *r,
                         const uint64_t *job_cpus, const uint64_t *step_cpus,
                         size_t words)
{
    struct joule_step_energy *s = joule_step_energy_watch(clock, root_fd, node);

    if (!s)
        return NULL;
    s->watches = false;
    s->registration = *r;
    s->registration.began_ns = joule_clock_mono_ns(clock);
    s->registration.ended_ns = 0;
    if (words > JOULE_LEDGER_WORDS_MAX)
        words = JOULE_LEDGER_WORDS_MAX;
    memcpy(s->job_cpus, job_cpus, words * sizeof(*job_cpus));
    memcpy(s->step_cpus, step_cpus, words * sizeof(*step_cpus));
    if (register_step(s, NULL) == 0)
        joule_ledger_ask(s->ledger, JOULE_STEP_ENERGY_WAIT_NS);
    return s;
}

void joule_step_energy_count_node(struct joule_step_energy *s)
{
    s->counts_node = true;
}

/* Only while the step runs, and only what slurmd did not see. */
static uint64_t carried_uj(const struct joule_row *row, uint64_t mw,
                           int64_t from_ns, int64_t now_ns)
{
    int64_t ns = now_ns - from_ns;

    if (row->state != JOULE_ROW_RUNNING || ns <= 0)
        return 0;
    if (ns > JOULE_STEP_ENERGY_CARRY_NS)
        ns = JOULE_STEP_ENERGY_CARRY_NS;
    return mw * (uint64_t)(ns / 1000) / 1000;
}

static int read_row(struct joule_step_energy *s, struct joule_row *ret,
                    int64_t *ret_mono_ns)
{
    return joule_ledger_read_row(s->ledger, s->slot, s->registration.owner, ret,
                                 ret_mono_ns);
}

int joule_step_energy_ask(struct joule_step_energy *s, int64_t wait_ns)
{
    if (register_step(s, NULL) < 0)
        return -1;
    return joule_ledger_ask(s->ledger, wait_ns);
}

/* [asked_ns]: when a ticket was taken, 0: none; [away]: nobody answered it. */
static int read_charged(struct joule_step_energy *s, int64_t asked_ns,
                        bool away, struct joule_step_energy_reading *ret,
                        struct joule_error *err)
{
    bool is_extern = s->registration.kind == JOULE_STEP_EXTERN;
    bool is_node = s->counts_node && !is_extern;
    int64_t mono_ns, now_ns, end_ns;
    struct joule_row row;
    uint64_t uj, mw, carried = 0;

    if (read_row(s, &row, &mono_ns) < 0)
        return joule_error_set(err, ENODATA,
                               "the ledger has no row of this "
                               "step: the node's energy is not known, or "
                               "slurmd is away");
    if (!away && asked_ns && row.state == JOULE_ROW_RUNNING &&
        asked_ns - mono_ns > STANDS_STILL_NS)
        return joule_error_set(err, ENODATA,
                               "slurmd does not know the node's energy now: "
                               "its log says why");
    uj = is_extern || is_node ? row.job_uj : row.uj;
    mw = is_extern || is_node ? row.job_mw : row.mw;
    if (!s->has_base) {
        s->base_uj = is_node ? uj : 0;
        s->base_ns = is_node ? mono_ns : s->registration.began_ns;
        s->has_base = true;
    }
    uj = uj > s->base_uj ? uj - s->base_uj : 0;
    now_ns = joule_clock_mono_ns(s->clock);
    if (asked_ns && is_extern)
        s->fresh_ns = away ? now_ns : mono_ns;
    end_ns = joule_ledger_ended(s->ledger, s->slot, s->registration.owner);
    if (end_ns == 0)
        end_ns = now_ns;
    if (away)
        carried = carried_uj(&row, mw, mono_ns, end_ns);
    if (!is_extern) {
        uj += carried;
        carried = 0;
    }
    if (uj > s->used_uj)
        s->used_uj = uj;
    uj = s->used_uj + carried;
    *ret = (struct joule_step_energy_reading){
        .mono_ns = away ? end_ns : mono_ns,
        .elapsed_ns = (away ? end_ns : mono_ns) - s->base_ns,
        .used_uj = uj,
        .mw = mw,
        .average_mw = JOULE_MW_UNKNOWN,
        .carried = away,
    };
    if (ret->elapsed_ns >= AVERAGE_MIN_NS)
        ret->average_mw = joule_power_mw(uj, ret->elapsed_ns);
    return 0;
}

int joule_step_energy_read(struct joule_step_energy *s,
                           struct joule_step_energy_reading *ret,
                           struct joule_error *err)
{
    bool is_new = !s->ledger;

    if (register_step(s, err) < 0)
        return -1;
    /* A step that could not be registered before begins here. */
    if (is_new && !s->watches)
        joule_ledger_ask(s->ledger, JOULE_STEP_ENERGY_WAIT_NS);
    return read_charged(s, 0, false, ret, err);
}

int joule_step_energy_read_now(struct joule_step_energy *s,
                               struct joule_step_energy_reading *ret,
                               struct joule_error *err)
{
    int64_t asked_ns;
    bool away;

    if (register_step(s, err) < 0)
        return -1;
    asked_ns = joule_clock_mono_ns(s->clock);
    away = joule_ledger_ask(s->ledger, JOULE_STEP_ENERGY_WAIT_NS) < 0;
    return read_charged(s, asked_ns, away, ret, err);
}

/* Whether another step of [job], or else a step of another job, is there.  One
 * whose process is dead is not, also while slurmd is away. */
static bool has_others(const struct joule_step_energy *s,
                       struct joule_ledger *ledger, uint32_t job,
                       bool of_this_job)
{
    size_t slots = joule_ledger_taken(ledger);
    struct joule_registration r;

    for (unsigned i = 0; i < slots; i++)
        if ((i != s->slot || !of_this_job) &&
            joule_ledger_registered(ledger, i, &r, NULL, NULL) == 0 &&
            (r.job == job) == of_this_job && r.ended_ns == 0 &&
            !joule_ledger_sweep(ledger, s->root_fd, i))
            return true;
    return false;
}

int joule_step_energy_await_others(struct joule_step_energy *s, int64_t wait_ns)
{
    static const struct timespec pause = {.tv_nsec = AWAIT_NS};

    while (s->ledger && has_others(s, s->ledger, s->registration.job, true)) {
        if (wait_ns <= 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        nanosleep(&pause, NULL);
        wait_ns -= AWAIT_NS;
    }
    return 0;
}

bool joule_step_energy_is_registered(struct joule_step_energy *s)
{
    s->tried_ns = 0;
    return register_step(s, NULL) == 0;
}

/* Where Slurm was told of other cores than there are, only the number of the
 * job's CPUs is known. */
static bool has_all_cpus(const struct joule_step_energy *s)
{
    char *text = joule_file_load(s->root_fd, "sys/devices/system/cpu/online",
                                 ONLINE_MAX, NULL);
    unsigned *online = NULL;
    size_t count = 0, known = 0, had = 0, i;

    if (!text || joule_parse_cpulist(text, &online, &count) < 0)
        count = 0;
    for (i = 0; i < JOULE_LEDGER_WORDS_MAX; i++)
        known += s->job_cpus[i] != 0;
    for (i = 0; i < count; i++)
        had += online[i] / 64 < JOULE_LEDGER_WORDS_MAX &&
               (s->job_cpus[online[i] / 64] >> online[i] % 64 & 1);
    free(online);
    free(text);
    return count > 0 && (known ? had : s->registration.job_cpu_count) == count;
}

bool joule_step_energy_has_other_job(struct joule_step_energy *s, uint32_t job)
{
    if (!s->ledger && !s->seen)
        s->seen = joule_ledger_open(s->root_fd, s->node, NULL);
    if (!s->ledger && !s->seen)
        return true;
    return has_others(s, s->ledger ? s->ledger : s->seen, job, false);
}

bool joule_step_energy_is_alone(struct joule_step_energy *s)
{
    return joule_step_energy_is_registered(s) && has_all_cpus(s) &&
           !joule_step_energy_has_other_job(s, s->registration.job);
}

void joule_step_energy_report_cpu(struct joule_step_energy *s, uint64_t cpu_ns)
{
    if (s->ledger && !s->watches)
        joule_ledger_report_cpu(s->ledger, s->slot, s->registration.owner,
                                cpu_ns);
}

void joule_step_energy_begin_tasks(struct joule_step_energy *s)
{
    if (s->ledger && !s->watches)
        joule_ledger_begin_tasks(s->ledger, s->slot, s->registration.owner,
                                 joule_clock_mono_ns(s->clock));
}

static void end_at(struct joule_step_energy *s, int64_t ns)
{
    if (s->watches || s->registration.ended_ns)
        return;
    s->registration.ended_ns = ns;
    if (s->ledger)
        joule_ledger_end(s->ledger, s->slot, s->registration.owner,
                         s->registration.ended_ns);
}

void joule_step_energy_end(struct joule_step_energy *s)
{
    end_at(s, joule_clock_mono_ns(s->clock));
}

void joule_step_energy_destroy(struct joule_step_energy *s)
{
    int saved = errno;

    if (!s)
        return;
    if (s->ledger && !s->watches) {
        if (!s->registration.ended_ns) {
            /* What Slurm has been told last is the job's figure. */
            if (s->fresh_ns)
                end_at(s, s->fresh_ns);
            joule_step_energy_end(s);
            joule_ledger_ask(s->ledger, JOULE_STEP_ENERGY_WAIT_NS);
        }
        joule_ledger_release(s->ledger, s->slot, s->registration.owner);
    }
    joule_ledger_destroy(s->ledger);
    joule_ledger_destroy(s->seen);
    if (s->root_fd >= 0)
        close(s->root_fd);
    free(s->node);
    free(s);
    errno = saved;
}

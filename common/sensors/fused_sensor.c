/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/sensors/fused_sensor.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "common/base/deadline.h"
#include "common/base/thread.h"
#include "common/energy/fused.h"
#include "common/sensors/ipmi_helper.h"
#include "common/sensors/rapl.h"

#define THREAD_STACK (128 * 1024)

/* Power over less than this is mostly the counters' 1 ms quantum. */
#define POWER_MIN_NS (5 * JOULE_NS_PER_MS)

#define REMARKS 4

/* What the BMC's thread has to say; of each the last that nobody has taken. */
struct mail {
    bool has_power;
    struct joule_power power[JOULE_DOMAINS_MAX]; /* of each domain of the BMC */
    struct joule_error failure;                  /* empty: none */
    struct joule_error remark[REMARKS];
    size_t remarks;
};

struct fused_sensor {
    struct joule_sensor source; /* first */
    struct joule_domain domains[JOULE_DOMAINS_MAX];
    struct joule_fused_sensor_options opt; /* both sources: ours */
    size_t counter_count, counters_at;     /* the first among the domains */
    uint32_t bmc_node; /* the node among the BMC's domains */
    struct joule_fused_state state;
    struct joule_reading readings[JOULE_DOMAINS_MAX];
    struct joule_power bmc[JOULE_DOMAINS_MAX]; /* its last word */
    double joules[JOULE_DOMAINS_MAX];
    /* mean power since then, for what is carried on */
    int64_t since_ns;
    double since_j[JOULE_DOMAINS_MAX], watts[JOULE_DOMAINS_MAX];
    struct joule_error remark; /* empty: none */
    bool said_learned, said_counters;
    /* the BMC's thread */
    pid_t pid; /* of the process that has it; 0: none */
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    bool stop;
    struct mail mail;
    /* the thread's own */
    struct joule_power power[JOULE_DOMAINS_MAX];
};

/* ------------------------------------------------------------ BMC's thread */

static void take_remarks(struct fused_sensor *f, struct mail *m)
{
    struct joule_sensor *bmc = f->opt.bmc;

    while (bmc->ops->remark && m->remarks < REMARKS &&
           bmc->ops->remark(bmc, &m->remark[m->remarks]))
        m->remarks++;
}

static void ask_bmc(struct fused_sensor *f)
{
    struct joule_sensor *bmc = f->opt.bmc;
    struct joule_error err = {""};
    int rc = bmc->ops->read_power(bmc, f->power, &err);
    int errnum = rc < 0 ? errno : 0;

    pthread_mutex_lock(&f->lock);
    take_remarks(f, &f->mail);
    if (rc == 0) {
        f->mail.has_power = true;
        memcpy(f->mail.power, f->power,
               bmc->domain_count * sizeof(f->power[0]));
        f->mail.failure.text[0] = '\0';
    } else if (errnum != EAGAIN && errnum != ECANCELED) {
        if (!err.text[0])
            joule_error_set(&err, errnum, "%s", strerror(errnum));
        f->mail.failure = err;
    }
    pthread_mutex_unlock(&f->lock);
}

/* true: go on.  At a steady pace; a reading that took longer is not made up
 * for. */
static bool wait_period(struct fused_sensor *f, int64_t *due_ns)
{
    int64_t now_ns = joule_deadline_now();
    bool stop;

    *due_ns += f->opt.bmc_period_ns;
    if (*due_ns < now_ns)
        *due_ns = now_ns;
    pthread_mutex_lock(&f->lock);
    while (!f->stop && joule_cond_wait(&f->wake, &f->lock, *due_ns))
        continue;
    stop = f->stop;
    pthread_mutex_unlock(&f->lock);
    return !stop;
}

static void *bmc_main(void *arg)
{
    struct fused_sensor *f = arg;
    int64_t due_ns = joule_deadline_now();

    prctl(PR_SET_NAME, "joule_bmc");
    do
        ask_bmc(f);
    while (wait_period(f, &due_ns));
    /* It was interrupted, and puts away what must not outlive this thread. */
    joule_sensor_end(f->opt.bmc, f->power);
    return NULL;
}

static int start_thread(struct fused_sensor *f, struct joule_error *err)
{
    int rc = joule_thread_start(&f->thread, THREAD_STACK, bmc_main, f);

    if (rc)
        return joule_error_set(err, rc, "cannot start the BMC's thread: %s",
                               strerror(rc));
    f->pid = getpid();
    return 0;
}

static void end_thread(struct fused_sensor *f)
{
    if (f->pid == 0 || f->pid != getpid())
        return;
    pthread_join(f->thread, NULL);
    f->pid = 0;
}

static void fusion_interrupt(struct joule_sensor *source)
{
    struct fused_sensor *f = (struct fused_sensor *)source;

    pthread_mutex_lock(&f->lock);
    f->stop = true;
    pthread_cond_broadcast(&f->wake);
    pthread_mutex_unlock(&f->lock);
    f->opt.bmc->ops->interrupt(f->opt.bmc);
}

/* ----------------------------------------------------------------- reading */

static int64_t read_counters(struct fused_sensor *f)
{
    if (!f->opt.counters)
        return joule_clock_mono_ns(f->opt.clock);
    return joule_sensor_read_all(f->opt.counters, f->opt.clock, f->readings);
}

static void say_counters(struct fused_sensor *f)
{
    const struct joule_domain *domains = f->opt.counters->domains;
    bool by_bmc =
        f->state.basis == JOULE_FUSED_BMC || f->state.basis == JOULE_FUSED_NONE;

    for (size_t i = 0; !f->said_counters && by_bmc && i < f->counter_count;
         i++) {
        if (!f->readings[i].error || !domains[i].in_total)
            continue;
        f->said_counters = true;
        joule_error_set(&f->remark, 0,
                        "reading energy counter %s on CPU %u failed: %s; the "
                        "power of the BMC stands in until it answers",
                        domains[i].name, domains[i].cpu,
                        strerror(f->readings[i].error));
    }
    if (f->said_counters && !by_bmc) {
        f->said_counters = false;
        joule_error_set(&f->remark, 0, "the energy counters answer again");
    }
}

static void say_learned(struct fused_sensor *f)
{
    const struct joule_lag_model *model = &f->state.lag_model;

    if (!joule_lag_model_learned(model))
        f->said_learned = false;
    if (f->said_learned || !joule_lag_model_learned(model))
        return;
    f->said_learned = true;
    joule_error_set(&f->remark, 0,
                    "the energy of the node is now that of BMC and RAPL: the "
                    "BMC's lag is %s, the node uses %.2f x RAPL %+.0f W",
                    strcmp(joule_lag_model_words(model), "none")
                        ? joule_lag_model_words(model)
                        : "less than a second",
                    model->gain, model->rest_w);
}

static void find_watts(struct fused_sensor *f, int64_t now_ns)
{
    int64_t ns = now_ns - f->since_ns;
    size_t i;

    for (i = 0; i < f->source.domain_count; i++)
        f->since_j[i] += f->joules[i];
    if (ns < POWER_MIN_NS)
        return;
    for (i = 0; i < f->source.domain_count; i++) {
        if (f->since_ns != 0)
            f->watts[i] = f->since_j[i] * 1e9 / (double)ns;
        f->since_j[i] = 0;
    }
    f->since_ns = now_ns;
}

static void fill_labels(struct fused_sensor *f, int64_t now_ns,
                        struct joule_power *out)
{
    out += JOULE_FUSED_SENSOR_LABELS;
    for (uint32_t i = 0; i < f->opt.bmc->domain_count; i++) {
        if (i == f->bmc_node)
            continue;
        *out = f->bmc[i];
        if (out->status == JOULE_POWER_OK &&
            now_ns - out->mono_ns > f->opt.gap_ns)
            out->status = JOULE_POWER_FAILED;
        /* Up to now the one before: that is what has been said
         * (board_follower.h). */
        out->mono_ns = now_ns;
        out->is_held = true;
        out++;
    }
}

static void fill(struct fused_sensor *f,
                 const struct joule_fused_interval *interval,
                 struct joule_power *out)
{
    int64_t now_ns = f->state.mono_ns;
    enum joule_power_status status = f->bmc[f->bmc_node].status;
    size_t i;

    f->joules[JOULE_FUSED_SENSOR_NODE] = interval->node_j;
    f->joules[JOULE_FUSED_SENSOR_BMC] = interval->bmc_j;
    if (interval->ns > 0)
        find_watts(f, now_ns);
    for (i = 0; i < f->source.domain_count; i++)
        out[i] = (struct joule_power){
            .watts = f->watts[i],
            .joules = f->joules[i],
            .mono_ns = now_ns,
        };
    out[JOULE_FUSED_SENSOR_NODE].gap_ns = interval->gap_ns;
    out[JOULE_FUSED_SENSOR_NODE].sensor_key = f->state.bmc_key;
    out[JOULE_FUSED_SENSOR_BMC].sensor_key = f->state.bmc_key;
    if (interval->ns == 0)
        out[JOULE_FUSED_SENSOR_NODE].watts = f->state.watts;
    out[JOULE_FUSED_SENSOR_BMC].watts = f->state.bmc_w;
    /* Without a thread, its last word is the state's. */
    if (f->opt.bmc_period_ns == 0)
        status = JOULE_POWER_OK;
    if (now_ns - f->state.bmc_mono_ns > f->opt.gap_ns &&
        status == JOULE_POWER_OK)
        status = JOULE_POWER_FAILED;
    out[JOULE_FUSED_SENSOR_BMC].status = status;
    fill_labels(f, now_ns, out);
    for (i = 0; i < f->counter_count; i++)
        if (f->readings[i].error)
            out[f->counters_at + i].status = JOULE_POWER_FAILED;
}

static int fusion_read_power(struct joule_sensor *source,
                             struct joule_power *out, struct joule_error *err)
{
    struct fused_sensor *f = (struct fused_sensor *)source;
    struct joule_fused_interval interval = {
        .domain_j = f->joules + f->counters_at,
    };
    bool stop, has_power;
    int64_t now_ns;

    pthread_mutex_lock(&f->lock);
    stop = f->stop;
    has_power = f->mail.has_power;
    f->mail.has_power = false;
    if (has_power)
        memcpy(f->bmc, f->mail.power,
               f->opt.bmc->domain_count * sizeof(f->bmc[0]));
    if (f->mail.failure.text[0])
        *err = f->mail.failure;
    f->mail.failure.text[0] = '\0';
    pthread_mutex_unlock(&f->lock);
    if (stop) {
        end_thread(f);
        errno = ECANCELED;
        return -1;
    }
    if (f->pid == 0 && f->opt.bmc_period_ns > 0 && start_thread(f, err) < 0)
        return -1;
    now_ns = read_counters(f);
    joule_fused_advance(
        &f->state, f->opt.counters ? f->opt.counters->domains : NULL,
        f->readings, now_ns, has_power ? &f->bmc[f->bmc_node] : NULL,
        f->opt.gap_ns, &interval);
    if (!interval.known) {
        errno = EAGAIN;
        return -1;
    }
    fill(f, &interval, out);
    if (f->opt.counters)
        say_counters(f);
    say_learned(f);
    return 0;
}

static int fusion_remark(struct joule_sensor *source,
                         struct joule_error *ret_remark)
{
    struct fused_sensor *f = (struct fused_sensor *)source;
    int has = 0;

    if (f->remark.text[0]) {
        *ret_remark = f->remark;
        f->remark.text[0] = '\0';
        return 1;
    }
    if (f->opt.counters && f->opt.counters->ops->remark &&
        f->opt.counters->ops->remark(f->opt.counters, ret_remark))
        return 1;
    pthread_mutex_lock(&f->lock);
    if (f->mail.remarks > 0) {
        *ret_remark = f->mail.remark[0];
        f->mail.remarks--;
        memmove(f->mail.remark, f->mail.remark + 1,
                f->mail.remarks * sizeof(f->mail.remark[0]));
        has = 1;
    }
    pthread_mutex_unlock(&f->lock);
    return has;
}

static const struct joule_fused_state *fusion_state(struct joule_sensor *source)
{
    return &((struct fused_sensor *)source)->state;
}

static bool fusion_resume(struct joule_sensor *source,
                          const struct joule_fused_state *state)
{
    struct fused_sensor *f = (struct fused_sensor *)source;
    const struct joule_domain *domains =
        f->opt.counters ? f->opt.counters->domains : NULL;

    if (!joule_fused_check(state, domains, f->counter_count,
                           joule_clock_mono_ns(f->opt.clock)))
        return false;
    f->state = *state;
    f->said_learned = joule_lag_model_learned(&state->lag_model);
    f->since_ns = state->mono_ns;
    memset(f->since_j, 0, sizeof(f->since_j));
    f->watts[JOULE_FUSED_SENSOR_NODE] = state->watts;
    return true;
}

static void fusion_destroy(struct joule_sensor *source)
{
    struct fused_sensor *f = (struct fused_sensor *)source;

    if (f->pid != 0 && f->pid == getpid()) {
        fusion_interrupt(source);
        end_thread(f);
    }
    /* In a child of fork somebody may have had the lock. */
    if (f->pid == 0) {
        pthread_cond_destroy(&f->wake);
        pthread_mutex_destroy(&f->lock);
    }
    joule_sensor_destroy(f->opt.counters);
    joule_sensor_destroy(f->opt.bmc);
    free(f);
}

static const struct joule_sensor_ops fused_sensor_ops = {
    .type = "fused",
    .read_power = fusion_read_power,
    .remark = fusion_remark,
    .interrupt = fusion_interrupt,
    .state = fusion_state,
    .resume = fusion_resume,
    .destroy = fusion_destroy,
};

/* ---------------------------------------------------------------- creation */

static void add_domain(struct fused_sensor *f, const char *name,
                       enum joule_domain_kind kind)
{
    struct joule_domain *d = &f->domains[f->source.domain_count++];

    *d = (struct joule_domain){
        .kind = kind,
        .unit = {1, 0},
        .width_bits = 64,
        .in_total = d == &f->domains[JOULE_FUSED_SENSOR_NODE],
    };
    snprintf(d->name, sizeof(d->name), "%s", name);
}

/* Where '-' may not stand, '_' does. */
static bool is_same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !(strchr("-_", *a) && strchr("-_", *b)))
            return false;
    return *a == *b;
}

static int check_names(const struct fused_sensor *f, struct joule_error *err)
{
    for (size_t i = JOULE_FUSED_SENSOR_LABELS; i < f->counters_at; i++)
        for (size_t j = 0; j < f->source.domain_count; j++)
            if (j != i && is_same_name(f->domains[i].name, f->domains[j].name))
                return joule_error_set(
                    err, EINVAL,
                    "the label \"%s\" of the BMC's power has the name of "
                    "another one: \"%s\"",
                    f->domains[i].name, f->domains[j].name);
    return 0;
}

static struct fused_sensor *make(const struct joule_sensor *counters,
                                 const struct joule_sensor *bmc,
                                 struct joule_error *err)
{
    size_t count = counters ? counters->domain_count : 0;
    struct fused_sensor *f;

    /* One of the BMC's is the node. */
    if (count + bmc->domain_count + JOULE_FUSED_SENSOR_LABELS - 1 >
        JOULE_DOMAINS_MAX) {
        joule_error_set(err, E2BIG,
                        "there are more than %d energy counters and labels",
                        JOULE_DOMAINS_MAX);
        return NULL;
    }
    f = calloc(1, sizeof(*f));
    if (!f) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    add_domain(f, "Node", JOULE_DOMAIN_POWER);
    add_domain(f, "BMC", JOULE_DOMAIN_POWER);
    for (uint32_t i = 0; i < bmc->domain_count; i++) {
        f->bmc[i].status = JOULE_POWER_FAILED;
        if (bmc->domains[i].in_total)
            f->bmc_node = i;
        else
            add_domain(f, bmc->domains[i].name, JOULE_DOMAIN_POWER);
    }
    f->counters_at = f->source.domain_count;
    for (size_t i = 0; i < count; i++) {
        const struct joule_domain *d = &counters->domains[i];

        add_domain(f, d->name, d->kind);
        f->domains[f->counters_at + i].package = d->package;
        f->domains[f->counters_at + i].die = d->die;
        f->domains[f->counters_at + i].cpu = d->cpu;
    }
    f->counter_count = count;
    f->source.domains = f->domains;
    if (check_names(f, err) < 0) {
        free(f);
        errno = EINVAL;
        return NULL;
    }
    if (count > 0)
        f->source.wrap_ns = joule_domains_wrap_ns(counters->domains, count);
    return f;
}

static void init_locks(struct fused_sensor *f)
{
    pthread_mutex_init(&f->lock, NULL);
    joule_cond_init(&f->wake);
}

struct joule_sensor *
joule_fused_sensor_create(const struct joule_fused_sensor_options *opt,
                          struct joule_error *err)
{
    struct fused_sensor *f = make(opt->counters, opt->bmc, err);

    if (!f)
        return NULL;
    f->source.ops = &fused_sensor_ops;
    f->opt = *opt;
    joule_fused_start(&f->state, opt->counters ? opt->counters->domains : NULL,
                      f->counter_count);
    init_locks(f);
    return &f->source;
}

/* ------------------------------------------------- who follows the board */

struct joule_sensor *
joule_fused_sensor_follower_open(int root_fd,
                                 const struct joule_energy_config *config,
                                 struct joule_error *err)
{
    struct joule_rapl_options rapl = {.total_kinds = config->rapl_total_kinds};
    struct joule_fused_sensor_options opt = {
        .clock = &joule_clock_system,
        .gap_ns = joule_power_gap_ns(config->sample_period_ns),
    };
    struct joule_ipmi_config ipmi;
    struct joule_sensor *source;

    if (joule_ipmi_sensors_parse(config->ipmi_sensors, &ipmi, err) < 0)
        return NULL;
    opt.bmc = joule_ipmi_helper_labels_create(&ipmi);
    if (!opt.bmc) {
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    opt.counters = joule_rapl_create(root_fd, &rapl, NULL);
    source = joule_fused_sensor_create(&opt, err);
    if (source)
        return source;
    joule_sensor_destroy(opt.counters);
    joule_sensor_destroy(opt.bmc);
    return NULL;
}

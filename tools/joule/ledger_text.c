/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/joule/ledger_command.h"
#include "tools/joule/text.h"

#define CELL       24
#define USER_WIDTH 10

/* A line comes to 80 columns with the word "ended" at its end. */
#define SUM_WIDTH 45

/* Four digits, for a table; --json has them all. */
static const char *energy_text(uint64_t uj, char buf[CELL])
{
    static const char *const units[] = {"J", "kJ", "MJ", "GJ", "TJ"};
    double value = (double)uj / 1e6;
    size_t u = 0;

    while (value >= 9999.5 && u < sizeof(units) / sizeof(units[0]) - 1) {
        value /= 1000;
        u++;
    }
    snprintf(buf, CELL, "%.*f %s",
             value < 9.9995   ? 3
             : value < 99.995 ? 2
             : value < 999.95 ? 1
                              : 0,
             value, units[u]);
    return buf;
}

static const char *power_text(uint64_t mw, char buf[CELL])
{
    snprintf(buf, CELL, "%.1f W", (double)mw / 1000);
    return buf;
}

/* Of what the node was charged with since the ledger began. */
static const char *part_text(const struct joule_ledger_view *v, uint64_t uj,
                             char buf[CELL])
{
    if (v->own || v->totals.charged_uj == 0)
        return "";
    snprintf(buf, CELL, "%.1f %%",
             (double)uj * 100 / (double)v->totals.charged_uj);
    return buf;
}

static const char *span_text(int64_t from_ns, int64_t to_ns, char buf[CELL])
{
    joule_text_seconds(to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0,
                       buf, CELL);
    return buf;
}

/* Each user is asked for once: behind names may be a directory service. */
static const char *user_text(uint32_t uid)
{
    static struct {
        bool known;
        uint32_t uid;
        char name[64];
    } memory[64];
    size_t at = uid % (sizeof(memory) / sizeof(memory[0]));
    const struct passwd *pw;

    if (memory[at].known && memory[at].uid == uid)
        return memory[at].name;
    memory[at].known = true;
    memory[at].uid = uid;
    pw = getpwuid((uid_t)uid);
    if (pw)
        snprintf(memory[at].name, sizeof(memory[at].name), "%s", pw->pw_name);
    else
        snprintf(memory[at].name, sizeof(memory[at].name), "%u", (unsigned)uid);
    return memory[at].name;
}

/* The first columns.  A user's name comes from outside. */
static void put_names(FILE *out, const char *job, const char *step,
                      const char *user)
{
    fprintf(out, "%8s %-11s ", job, step);
    joule_text_put(out, user);
    for (size_t length = strlen(user); length < USER_WIDTH; length++)
        putc(' ', out);
}

static void print_head(FILE *out, const struct joule_ledger_view *v)
{
    const struct joule_ledger_totals *t = &v->totals;
    const char *how = joule_ledger_how(t->how);
    char span[CELL], when[64] = "?";
    time_t wall =
        (time_t)((v->wall_ns - (v->mono_ns - t->begun_ns)) / JOULE_NS_PER_S);
    struct tm tm;

    fputs("Node ", out);
    joule_text_put(out, v->node);
    fprintf(out, ": attribution %s, last sample %.1f s ago\n",
            how ? how : "not known", (double)v->age_ns / 1e9);
    if (v->stale)
        fputs("STALE: slurmd does not measure now\n", out);
    if (v->own)
        return;
    if (localtime_r(&wall, &tm))
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
    fprintf(out, "Charged since %s (%s)\n", when,
            span_text(t->begun_ns, v->mono_ns, span));
}

/* The columns behind STEP and USER; users have no share. */
static void put_figures(FILE *out, const struct joule_ledger_view *v,
                        const char *cpus, const char *span, const char *energy,
                        const char *power, const char *share)
{
    fprintf(out, " %4s %8s %10s %9s", cpus, span, energy, power);
    if (!v->own)
        fprintf(out, " %7s", share);
}

/* Of a job or a step; ended_ns 0 though it has ended: nobody said when. */
static void put_energy(FILE *out, const struct joule_ledger_view *v,
                       uint32_t cpu_count, int64_t began_ns, int64_t ended_ns,
                       uint64_t uj, uint64_t mw, bool ended)
{
    char cpus[CELL], span[CELL] = "?", energy[CELL], power[CELL], share[CELL];

    snprintf(cpus, sizeof(cpus), "%u", (unsigned)cpu_count);
    if (!ended || ended_ns)
        span_text(began_ns, ended ? ended_ns : v->mono_ns, span);
    put_figures(out, v, cpus, span, energy_text(uj, energy),
                ended ? "-" : power_text(mw, power), part_text(v, uj, share));
    fputs(ended ? " ended\n" : "\n", out);
}

static void print_job(FILE *out, const struct joule_ledger_view *v,
                      const struct joule_ledger_job *job)
{
    const struct joule_ledger_line *line = &v->line[job->first];
    char energy[CELL], share[CELL], step[JOULE_STEP_TEXT_MAX];

    snprintf(step, sizeof(step), "%u", (unsigned)line->row.job);
    put_names(out, step, "job", user_text(line->uid));
    put_energy(out, v, job->cpu_count, job->began_ns, job->ended_ns, job->uj,
               job->mw, !job->runs);
    for (size_t i = 0; i < job->count; i++) {
        const struct joule_user_row *row = &line[i].row;

        put_names(out, "", joule_ledger_step(row, step), "");
        put_energy(out, v, row->cpu_count, row->began_ns, row->ended_ns,
                   row->uj, row->mw, row->state == JOULE_ROW_ENDED);
    }
    if (job->uj_gone == 0)
        return;
    put_names(out, "", "(earlier)", "");
    put_figures(out, v, "", "", energy_text(job->uj_gone, energy), "",
                part_text(v, job->uj_gone, share));
    putc('\n', out);
}

static void print_sum(FILE *out, const struct joule_ledger_view *v,
                      const char *name, uint64_t uj, const char *power)
{
    char energy[CELL], share[CELL];

    fprintf(out, "%-*s %10s %9s %7s\n", SUM_WIDTH, name,
            energy_text(uj, energy), power, part_text(v, uj, share));
}

/* What unallocated energy is, by the rule. */
static const char *unallocated_text(const struct joule_ledger_view *v)
{
    switch (v->totals.how) {
    case JOULE_ATTRIBUTION_CPUTIME + 1:
        return "unallocated (idle CPUs that no job has)";
    case JOULE_ATTRIBUTION_ALLOC + 1:
        return "unallocated (CPUs that no job has)";
    case JOULE_ATTRIBUTION_NODE + 1:
        return "unallocated (while no job was there)";
    default:
        return "unallocated";
    }
}

static void print_sums(FILE *out, const struct joule_ledger_view *v)
{
    const struct joule_ledger_totals *t = &v->totals;
    char power[CELL], gone[CELL], name[SUM_WIDTH + 1] = "jobs";

    if (t->gone_uj)
        snprintf(name, sizeof(name), "jobs (%s of it by steps that are gone)",
                 energy_text(t->gone_uj, gone));
    putc('\n', out);
    print_sum(out, v, name, t->jobs_uj, power_text(v->jobs_mw, power));
    print_sum(out, v, unallocated_text(v), t->unallocated_uj, "");
    print_sum(out, v, "system (above idle, outside of all jobs)", t->system_uj,
              "");
    if (t->multiple_uj)
        print_sum(out, v, "charged more than once, to be taken off",
                  t->multiple_uj, "");
    print_sum(out, v, "node (the sum)", t->charged_uj,
              power_text(t->node_mw, power));
}

void joule_ledger_print_idle(FILE *out, const struct joule_ledger_totals *t)
{
    char power[CELL];
    size_t known = 0;

    for (size_t p = 0; p < t->part_count; p++)
        known += t->part[p].idle_power.idle_power_uw > 0;
    if (known == 0) {
        fputs("not known until the node has been idle for a minute", out);
        return;
    }
    for (size_t p = 0; p < t->part_count; p++) {
        const struct joule_idle_power *f = &t->part[p].idle_power;

        if (p > 0)
            fputs(", ", out);
        if (t->part_count > 1)
            fprintf(out, "package %zu of %zu ", p + 1, (size_t)t->part_count);
        fputs(f->idle_power_uw ? power_text(f->idle_power_uw / 1000, power)
                               : "not known yet",
              out);
    }
}

static void print_remarks(FILE *out, const struct joule_ledger_view *v)
{
    const struct joule_ledger_totals *t = &v->totals;
    const struct {
        uint64_t count;
        const char *what;
    } remarks[] = {
        {t->faults, "intervals did not add up: please report this"},
        {t->backwards, "times a counter of CPU time went back"},
        {t->unknown, "times the CPU time of a step was not known"},
        {t->refused, "registrations made no sense and were passed over"},
        {t->surplus, "steps had no row: their jobs have too many at once"},
        {t->foreign, "jobs had cgroups that Slurm has not made"},
        {t->stray_ns / 1000000000,
         "s of CPU time were used in jobs that had no step left"},
    };

    fputs("\nLearned idle power: ", out);
    joule_ledger_print_idle(out, t);
    putc('\n', out);
    for (size_t i = 0; i < sizeof(remarks) / sizeof(remarks[0]); i++)
        if (remarks[i].count)
            fprintf(out, "%" PRIu64 " %s\n", remarks[i].count, remarks[i].what);
}

void joule_ledger_print_text(FILE *out, const struct joule_ledger_view *v)
{
    print_head(out, v);
    putc('\n', out);
    put_names(out, "JOB", "STEP", "USER");
    put_figures(out, v, "CPUS", "TIME", "ENERGY", "POWER", "SHARE");
    putc('\n', out);
    for (size_t i = 0; i < v->job_count; i++)
        print_job(out, v, &v->job[i]);
    if (v->job_count == 0)
        fputs("         no step\n", out);
    if (v->own)
        return;
    print_sums(out, v);
    print_remarks(out, v);
}

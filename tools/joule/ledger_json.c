/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>

#include "tools/joule/ledger_command.h"

static const char *const kinds[] = {
    [JOULE_STEP_NUMBERED] = "numbered",
    [JOULE_STEP_EXTERN] = "extern",
    [JOULE_STEP_OTHER] = "other",
};

static const char *const components[JOULE_COMPONENTS] = {
    [JOULE_COMPONENT_CPU] = "cpu_uj",
    [JOULE_COMPONENT_MEMORY] = "memory_uj",
};

static void put_step(struct joule_json *j, const struct joule_ledger_view *v,
                     const struct joule_ledger_line *line)
{
    const struct joule_user_row *row = &line->row;
    bool runs = row->state == JOULE_ROW_RUNNING;
    char step[JOULE_STEP_TEXT_MAX];

    joule_json_object(j, NULL);
    joule_json_string(j, "step", joule_ledger_step(row, step));
    joule_json_u64(j, "step_id", row->step);
    joule_json_string(j, "kind",
                      row->kind <= JOULE_STEP_OTHER ? kinds[row->kind] : NULL);
    joule_json_string(j, "state", runs ? "running" : "ended");
    joule_json_u64(j, "cpus", row->cpu_count);
    joule_json_i64(j, "began_ns", row->began_ns);
    joule_json_u64_if(j, "ended_ns", row->ended_ns > 0,
                      (uint64_t)row->ended_ns);
    joule_json_u64(j, "energy_uj", row->uj);
    for (unsigned k = 0; k < JOULE_COMPONENTS; k++)
        joule_json_u64_if(j, components[k], row->components >> k & 1,
                          row->component_uj[k]);
    joule_json_u64_if(j, "power_mw", runs, row->mw);
    if (!v->own) {
        joule_json_u64(j, "cpu_time_unknown", line->unknown);
        joule_json_u64(j, "cpu_time_backwards", line->backwards);
    }
    joule_json_close(j);
}

static void put_job(struct joule_json *j, const struct joule_ledger_view *v,
                    const struct joule_ledger_job *job)
{
    const struct joule_ledger_line *line = &v->line[job->first];

    joule_json_object(j, NULL);
    joule_json_u64(j, "job", line->row.job);
    joule_json_u64(j, "user_id", line->uid);
    joule_json_string(j, "state", job->runs ? "running" : "ended");
    joule_json_u64(j, "cpus", job->cpu_count);
    joule_json_i64(j, "began_ns", job->began_ns);
    joule_json_u64_if(j, "ended_ns", !job->runs && job->ended_ns > 0,
                      (uint64_t)job->ended_ns);
    joule_json_u64(j, "energy_uj", job->uj);
    joule_json_u64(j, "earlier_steps_uj", job->uj_gone);
    joule_json_u64_if(j, "power_mw", job->runs, job->mw);
    joule_json_array(j, "steps");
    for (size_t i = 0; i < job->count; i++)
        put_step(j, v, &line[i]);
    joule_json_close(j);
    joule_json_close(j);
}

static void put_parts(struct joule_json *j, const struct joule_ledger_totals *t)
{
    joule_json_array(j, "parts");
    for (size_t p = 0; p < t->part_count; p++) {
        const struct joule_idle_power *f = &t->part[p].idle_power;

        joule_json_object(j, NULL);
        joule_json_u64(j, "part", p);
        joule_json_u64_if(j, "learned_idle_mw", f->idle_power_uw,
                          f->idle_power_uw / 1000);
        joule_json_u64(j, "minutes", f->minutes);
        joule_json_close(j);
    }
    joule_json_close(j);
}

void joule_ledger_put_totals(struct joule_json *j,
                             const struct joule_ledger_totals *t)
{
    joule_json_object(j, "totals");
    joule_json_i64(j, "since_ns", t->begun_ns);
    joule_json_u64(j, "jobs_uj", t->jobs_uj);
    joule_json_u64(j, "jobs_gone_uj", t->gone_uj);
    joule_json_u64(j, "unallocated_uj", t->unallocated_uj);
    joule_json_u64(j, "system_uj", t->system_uj);
    joule_json_u64(j, "multiple_uj", t->multiple_uj);
    joule_json_u64(j, "node_uj", t->charged_uj);
    joule_json_u64(j, "node_power_mw", t->node_mw);
    joule_json_u64(j, "intervals", t->intervals);
    joule_json_u64(j, "faults", t->faults);
    joule_json_u64(j, "cpu_time_backwards", t->backwards);
    joule_json_u64(j, "cpu_time_unknown", t->unknown);
    joule_json_u64(j, "registrations_refused", t->refused);
    joule_json_u64(j, "steps_without_row", t->surplus);
    joule_json_u64(j, "jobs_with_foreign_cgroups", t->foreign);
    joule_json_u64(j, "cpu_time_without_step_ns", t->stray_ns);
    put_parts(j, t);
    joule_json_close(j);
}

void joule_ledger_print_json(FILE *out, const struct joule_ledger_view *v)
{
    struct joule_json j;

    joule_json_begin(&j, out);
    joule_json_string(&j, "node", v->node);
    joule_json_null(&j, "error");
    joule_json_u64_if(&j, "only_user_id", v->own, v->uid);
    joule_json_string(&j, "attribution", joule_ledger_how(v->totals.how));
    joule_json_i64(&j, "sample_ns", v->mono_ns);
    joule_json_i64(&j, "sample_wall_ns", v->wall_ns);
    joule_json_i64(&j, "age_ns", v->age_ns);
    joule_json_bool(&j, "stale", v->stale);
    joule_json_array(&j, "jobs");
    for (size_t i = 0; i < v->job_count; i++)
        put_job(&j, v, &v->job[i]);
    joule_json_close(&j);
    if (v->own)
        joule_json_null(&j, "totals");
    else
        joule_ledger_put_totals(&j, &v->totals);
    joule_json_end(&j);
}

void joule_ledger_print_json_error(FILE *out, const char *text)
{
    struct joule_json j;

    joule_json_begin(&j, out);
    joule_json_string(&j, "error", text);
    joule_json_end(&j);
}

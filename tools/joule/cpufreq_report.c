/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "tools/joule/cpufreq.h"
#include "tools/joule/json.h"
#include "tools/joule/text.h"

#define CELL 64

static void cpus_text(const struct joule_cpus *cpus, char *buf, size_t size)
{
    if (joule_cpus_format(cpus, buf, size) < 0)
        snprintf(buf, size, "%u CPUs", joule_cpus_count(cpus));
    else if (!*buf)
        snprintf(buf, size, "-");
}

/* GHz, as exact as kHz are. */
static void ghz_text(uint32_t khz, char buf[16])
{
    int n = snprintf(buf, 16, "%u.%06u", (unsigned)(khz / 1000000),
                     (unsigned)(khz % 1000000));

    while (n > 3 && buf[n - 1] == '0' && buf[n - 2] != '.')
        buf[--n] = '\0';
    if (khz == 0)
        snprintf(buf, 16, "-");
}

static void state_text(const struct joule_cpufreq_state *s, char *buf,
                       size_t size)
{
    char min[16], max[16], speed[16];

    ghz_text(s->min_khz, min);
    ghz_text(s->max_khz, max);
    ghz_text(s->setspeed_khz, speed);
    snprintf(buf, size, "%s%s%s %s-%s%s%s", s->governor,
             s->setspeed_khz ? " " : "", s->setspeed_khz ? speed : "", min, max,
             *s->epp ? " " : "", s->epp);
}

static void holders_text(const struct joule_freq_view *v, unsigned id,
                         char *buf, size_t size)
{
    const struct joule_journal *j = &v->journal;
    size_t length = 0;

    *buf = '\0';
    for (size_t i = 0; i < j->holder_count; i++) {
        const struct joule_holder *h = &j->holder[i];
        char request[JOULE_REQUEST_TEXT_MAX];
        int n;

        if (h->is_watch || !joule_cpus_has(&h->policies, id))
            continue;
        joule_request_format(&h->request, request);
        n = snprintf(buf + length, size - length, "%s%u.%s (%s)",
                     length ? ", " : "", (unsigned)h->job, h->step, request);
        if (n < 0 || (size_t)n >= size - length)
            return;
        length += (size_t)n;
    }
}

static void print_row(FILE *out, const struct joule_freq_view *v,
                      const struct joule_freq_row *row)
{
    const struct joule_cpufreq_policy *p = &row->policy;
    char cpus[CELL], low[16], high[16], cur[16], now[2 * CELL], held[1024];

    if (*row->error.text) {
        fprintf(out, "policy%u\n  not there: ", p->id);
        joule_text_put(out, row->error.text);
        fputc('\n', out);
    } else {
        cpus_text(&p->cpus, cpus, sizeof(cpus));
        ghz_text(p->hw_min_khz, low);
        ghz_text(p->hw_max_khz, high);
        ghz_text(p->cur_khz, cur);
        state_text(&p->now, now, sizeof(now));
        fprintf(out, "policy%u: CPUs %s, %s, %s to %s GHz\n", p->id, cpus,
                p->driver, low, high);
        fprintf(out, "  governors  %s\n", p->governors);
        fprintf(out, "  set        %s\n  runs at    %s GHz\n", now, cur);
    }
    holders_text(v, p->id, held, sizeof(held));
    if (*held)
        fprintf(out, "  held by    %s\n", held);
    if (row->is_recorded) {
        state_text(&row->entry.original, now, sizeof(now));
        fprintf(out, "  original   %s\n", now);
        if (!*held)
            fputs("  nobody holds it: it is being put back\n", out);
    }
}

void joule_freq_print_text(FILE *out, const struct joule_freq_view *v)
{
    for (size_t i = 0; i < v->row_count; i++)
        print_row(out, v, &v->row[i]);
    if (v->row_count == 0)
        fputs("This machine has no cpufreq policies: its frequencies cannot "
              "be set.\n",
              out);
    if (v->journal_errnum) {
        fputs("Journal: ", out);
        joule_text_put(out, v->journal_error.text);
        fputc('\n', out);
    }
}

static void put_khz(struct joule_json *j, const char *key, uint32_t khz)
{
    if (khz)
        joule_json_u64(j, key, khz);
    else
        joule_json_null(j, key);
}

static void put_state(struct joule_json *j, const char *key,
                      const struct joule_cpufreq_state *s)
{
    joule_json_object(j, key);
    joule_json_string(j, "governor", s->governor);
    joule_json_u64(j, "min_khz", s->min_khz);
    joule_json_u64(j, "max_khz", s->max_khz);
    put_khz(j, "setspeed_khz", s->setspeed_khz);
    joule_json_string(j, "energy_performance_preference",
                      *s->epp ? s->epp : NULL);
    joule_json_close_object(j);
}

static void put_holder(struct joule_json *j, const struct joule_holder *h)
{
    char request[JOULE_REQUEST_TEXT_MAX];

    joule_request_format(&h->request, request);
    joule_json_object(j, NULL);
    joule_json_u64(j, "job", h->job);
    joule_json_string(j, "step", h->step);
    joule_json_u64(j, "pid", (uint64_t)h->pid);
    joule_json_string(j, "request", h->is_watch ? NULL : request);
    joule_json_close_object(j);
}

static void put_row(struct joule_json *j, const struct joule_freq_view *v,
                    const struct joule_freq_row *row)
{
    const struct joule_cpufreq_policy *p = &row->policy;
    char cpus[CELL];

    joule_json_object(j, NULL);
    joule_json_u64(j, "policy", p->id);
    joule_json_string(j, "error", *row->error.text ? row->error.text : NULL);
    if (!*row->error.text) {
        cpus_text(&p->cpus, cpus, sizeof(cpus));
        joule_json_string(j, "cpus", cpus);
        joule_json_string(j, "driver", p->driver);
        joule_json_u64(j, "lowest_khz", p->hw_min_khz);
        joule_json_u64(j, "highest_khz", p->hw_max_khz);
        joule_json_string(j, "governors", p->governors);
        put_khz(j, "current_khz", p->cur_khz);
        put_state(j, "set", &p->now);
    }
    joule_json_array(j, "held_by");
    for (size_t i = 0; i < v->journal.holder_count; i++)
        if (joule_cpus_has(&v->journal.holder[i].policies, p->id))
            put_holder(j, &v->journal.holder[i]);
    joule_json_close_array(j);
    if (row->is_recorded)
        put_state(j, "original", &row->entry.original);
    else
        joule_json_null(j, "original");
    joule_json_close_object(j);
}

void joule_freq_print_json(FILE *out, const struct joule_freq_view *v)
{
    struct joule_json j;

    joule_json_begin(&j, out);
    joule_json_array(&j, "policies");
    for (size_t i = 0; i < v->row_count; i++)
        put_row(&j, v, &v->row[i]);
    joule_json_close_array(&j);
    joule_json_u64(&j, "not_put_back", joule_freq_view_loose(v));
    joule_json_string(&j, "journal_error",
                      v->journal_errnum ? v->journal_error.text : NULL);
    joule_json_end(&j);
}

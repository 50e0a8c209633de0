/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/waits/power_states.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MW_MAX UINT64_C(100000000)
#define NS_MAX UINT64_C(1000000000000)
#define UJ_MAX UINT64_C(100000000000)

#define PJ_PER_UJ 1000000

/* ---- savings ---- */

static uint64_t power_mw(const struct joule_power_state *s,
                         enum joule_wait_kind kind)
{
    return kind == JOULE_WAIT_IDLE ? s->idle_mw : s->active_mw;
}

/* The saving is slope * t - cost. */
struct line {
    joule_pj slope_mw, cost_pj;
};

static struct line line_of(const struct joule_power_states *states, size_t p,
                           enum joule_wait_kind kind)
{
    const struct joule_power_state *s = &states->state[p];
    joule_pj mw = power_mw(s, kind);

    return (struct line){(joule_pj)states->state[0].active_mw - mw,
                         (joule_pj)s->transition_uj * PJ_PER_UJ -
                             mw * s->transition_ns};
}

joule_pj joule_power_state_saving_pj(const struct joule_power_states *states,
                                     size_t p, enum joule_wait_kind kind,
                                     uint64_t wait_ns)
{
    struct line line = line_of(states, p, kind);

    return line.slope_mw * wait_ns - line.cost_pj;
}

/* Of equal savings, that of the lowest number counts. */
static uint8_t best_state(const struct joule_power_states *states,
                          enum joule_wait_kind kind, uint64_t wait_ns)
{
    size_t best = 0;
    joule_pj most = joule_power_state_saving_pj(states, 0, kind, wait_ns);

    for (size_t p = 1; p < states->count; p++) {
        joule_pj saving = joule_power_state_saving_pj(states, p, kind, wait_ns);

        if (wait_ns < states->state[p].transition_ns || saving <= most)
            continue;
        best = p;
        most = saving;
    }
    return (uint8_t)best;
}

/* The last whole ns at which the two lines have not crossed yet, and the next
 * one: how many of these are in the range of a wait. */
static size_t crossing(struct line a, struct line b, uint64_t ret_ns[2])
{
    joule_pj slope = a.slope_mw - b.slope_mw, cost = a.cost_pj - b.cost_pj, ns;

    if (slope == 0 || (cost != 0 && (slope > 0) != (cost > 0)))
        return 0;
    ns = cost / slope;
    if (ns >= (joule_pj)UINT64_MAX)
        return 0;
    ret_ns[0] = (uint64_t)ns;
    ret_ns[1] = (uint64_t)ns + 1;
    return 2;
}

static int compare(const void *pa, const void *pb)
{
    uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

    return (a > b) - (a < b);
}

/* All times at which another state may be the best; sorted. */
static size_t find_changes(const struct joule_power_states *s,
                           uint64_t ns[JOULE_POWER_PIECES_MAX])
{
    size_t n = 0;

    ns[n++] = 0;
    for (size_t p = 0; p < s->count; p++)
        ns[n++] = s->state[p].transition_ns;
    for (size_t p = 0; p < s->count; p++)
        for (size_t q = 0; q < p; q++)
            for (int kind = 0; kind < JOULE_WAIT_KINDS; kind++)
                n +=
                    crossing(line_of(s, p, (enum joule_wait_kind)kind),
                             line_of(s, q, (enum joule_wait_kind)kind), ns + n);
    qsort(ns, n, sizeof(*ns), compare);
    return n;
}

void joule_power_envelope_make(struct joule_power_envelope *ret,
                               const struct joule_power_states *states)
{
    uint64_t ns[JOULE_POWER_PIECES_MAX];
    size_t n = find_changes(states, ns);

    ret->states = *states;
    ret->pieces = 0;
    for (size_t i = 0; i < n; i++) {
        struct joule_power_piece piece = {
            ns[i],
            {best_state(states, JOULE_WAIT_IDLE, ns[i]),
             best_state(states, JOULE_WAIT_BUSY, ns[i])}};

        if (ret->pieces > 0 &&
            memcmp(piece.state, ret->piece[ret->pieces - 1].state,
                   sizeof(piece.state)) == 0)
            continue;
        ret->piece[ret->pieces++] = piece;
    }
}

size_t joule_power_piece(const struct joule_power_envelope *e, uint64_t wait_ns)
{
    size_t from = 0, to = e->pieces;

    while (to - from > 1) {
        size_t middle = (from + to) / 2;

        if (e->piece[middle].from_ns <= wait_ns)
            from = middle;
        else
            to = middle;
    }
    return from;
}

joule_pj joule_power_saving_pj(const struct joule_power_envelope *e,
                               const struct joule_power_use *use,
                               enum joule_wait_kind kind)
{
    joule_pj sum = 0;

    for (size_t i = 0; i < e->pieces; i++) {
        struct line line = line_of(&e->states, e->piece[i].state[kind], kind);

        sum += line.slope_mw * use[i].ns - line.cost_pj * use[i].count;
    }
    return sum;
}

/* ---- text ---- */

enum column {
    STATE,
    ACTIVE,
    IDLE,
    TIME,
    ENERGY,
    FREQUENCY,
    COLUMNS,
};

/* [decimals]: how many a number of this column may have. */
static const struct {
    const char *title;
    enum column column;
    int decimals;
    uint64_t max;
} titles[] = {
    {"state", STATE, 0, JOULE_POWER_STATES_MAX},
    {"active_W", ACTIVE, 3, MW_MAX},
    {"active_mW", ACTIVE, 0, MW_MAX},
    {"idle_W", IDLE, 3, MW_MAX},
    {"idle_mW", IDLE, 0, MW_MAX},
    {"transition_s", TIME, 9, NS_MAX},
    {"transition_ms", TIME, 6, NS_MAX},
    {"transition_us", TIME, 3, NS_MAX},
    {"transition_ns", TIME, 0, NS_MAX},
    {"transition_J", ENERGY, 6, UJ_MAX},
    {"transition_mJ", ENERGY, 3, UJ_MAX},
    {"transition_uJ", ENERGY, 0, UJ_MAX},
    {"frequency_MHz", FREQUENCY, 3, UINT64_C(1000000000)},
};

#define TITLES (sizeof(titles) / sizeof(titles[0]))

#define WORD_MAX 31

struct reader {
    const char *name; /* of the file */
    unsigned line;
    size_t title[COLUMNS]; /* of titles, of each column of the file */
    size_t columns;
    struct joule_power_states states;
    struct joule_error *err;
};

static int wrong(const struct reader *r, const char *what, const char *why)
{
    return joule_error_set(r->err, EINVAL, "%s, line %u: %s%s", r->name,
                           r->line, what, why);
}

/* [text] in units of 10^-decimals. */
static int parse_decimal(const char *text, int decimals, uint64_t max,
                         uint64_t *ret)
{
    uint64_t value = 0;
    int digits = 0, behind = -1;

    for (; *text; text++) {
        if (*text == '.' && behind < 0 && digits > 0) {
            behind = 0;
            continue;
        }
        if (*text < '0' || *text > '9' || value > max)
            return -1;
        digits++;
        if (behind >= decimals) {
            if (*text != '0')
                return -1;
            continue;
        }
        value = value * 10 + (uint64_t)(*text - '0');
        behind += behind >= 0;
    }
    if (digits == 0 || behind == 0)
        return -1;
    for (behind = behind < 0 ? 0 : behind; behind < decimals; behind++) {
        if (value > max)
            return -1;
        value *= 10;
    }
    if (value > max)
        return -1;
    *ret = value;
    return 0;
}

/* The next word of a line, or an empty one at its end; -1: it is too long. */
static int take_word(const char **at, const char *end, char word[WORD_MAX + 1])
{
    size_t length = 0;

    while (*at < end && (**at == ' ' || **at == '\t' || **at == '\r'))
        (*at)++;
    for (; *at < end && **at != ' ' && **at != '\t' && **at != '\r'; (*at)++) {
        if (length == WORD_MAX)
            return -1;
        word[length++] = **at;
    }
    word[length] = '\0';
    return 0;
}

static int take_title(struct reader *r, const char *word)
{
    size_t i = 0;

    while (i < TITLES && strcmp(titles[i].title, word) != 0)
        i++;
    if (i == TITLES)
        return wrong(r, "there is no column ", word);
    for (size_t c = 0; c < r->columns; c++)
        if (titles[r->title[c]].column == titles[i].column)
            return wrong(r, word, " is told twice");
    r->title[r->columns++] = i;
    return 0;
}

static bool has_column(const struct reader *r, enum column column)
{
    for (size_t c = 0; c < r->columns; c++)
        if (titles[r->title[c]].column == column)
            return true;
    return false;
}

static int check_titles(const struct reader *r)
{
    static const struct {
        enum column column;
        const char *name;
    } needed[] = {{STATE, "state"},
                  {ACTIVE, "active_W"},
                  {IDLE, "idle_W"},
                  {TIME, "transition_s"},
                  {ENERGY, "transition_J"}};

    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (!has_column(r, needed[i].column))
            return wrong(r, "the header line has no column ", needed[i].name);
    return 0;
}

static int check_state(const struct reader *r, uint64_t number,
                       const struct joule_power_state *s)
{
    if (number != r->states.count + 1)
        return wrong(r, "states are numbered 1, 2, 3 and so on", "");
    if (s->idle_mw > s->active_mw)
        return wrong(r, "the idle power is above the active power", "");
    if (number == 1 && (s->transition_ns || s->transition_uj))
        return wrong(r, "state 1 is where a wait begins: its transition is 0",
                     "");
    return 0;
}

static int take_state(struct reader *r, const char *at, const char *end)
{
    uint64_t value[COLUMNS] = {0};
    struct joule_power_state s;
    char word[WORD_MAX + 1];

    if (r->states.count == JOULE_POWER_STATES_MAX)
        return wrong(r, "there are more than 16 states", "");
    for (size_t c = 0; c < r->columns; c++) {
        size_t title = r->title[c];

        if (take_word(&at, end, word) < 0 || !*word)
            return wrong(r, "there is no number for ", titles[title].title);
        if (strcmp(word, "?") == 0)
            return wrong(r, "fill in what is not known yet of ",
                         titles[title].title);
        if (parse_decimal(word, titles[title].decimals, titles[title].max,
                          &value[titles[title].column]) < 0)
            return wrong(r, "this is no number in range for ",
                         titles[title].title);
    }
    if (take_word(&at, end, word) < 0 || *word)
        return wrong(r, "there are more numbers than columns", "");
    s = (struct joule_power_state){value[ACTIVE], value[IDLE], value[TIME],
                                   value[ENERGY]};
    if (check_state(r, value[STATE], &s) < 0)
        return -1;
    r->states.state[r->states.count++] = s;
    return 0;
}

/* A header or a state. */
static int take_line(struct reader *r, const char *at, const char *end)
{
    const char *comment = memchr(at, '#', (size_t)(end - at));
    char word[WORD_MAX + 1];
    const char *look = at;

    if (comment)
        end = comment;
    if (take_word(&look, end, word) == 0 && !*word)
        return 0;
    if (r->columns > 0)
        return take_state(r, at, end);
    for (;;) {
        if (take_word(&at, end, word) < 0)
            return wrong(r, "a title of a column is too long", "");
        if (!*word)
            return check_titles(r);
        if (take_title(r, word) < 0)
            return -1;
    }
}

int joule_power_states_parse(struct joule_power_states *ret, const char *text,
                             const char *name, struct joule_error *err)
{
    struct reader r = {.name = name, .err = err};

    while (*text) {
        const char *end = text + strcspn(text, "\n");

        r.line++;
        if (take_line(&r, text, end) < 0)
            return -1;
        text = *end ? end + 1 : end;
    }
    if (r.states.count == 0)
        return joule_error_set(err, EINVAL, "%s: there are no states in it",
                               name);
    *ret = r.states;
    return 0;
}

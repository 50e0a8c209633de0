/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/node/user_view.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/rundir.h"
#include "common/energy/counter.h"
#include "common/node/node_dir.h"
#include "common/node/user_file.h"

#define NONE (-1)

/* Who wakes up each period does so a little early or late.  Within this part of
 * it that is the same period; beyond, a new one begins. */
#define SLACK_PARTS 16

#define UJ_PER_J 1000000

_Static_assert((int)JOULE_USER_ROWS_COMPONENTS == (int)JOULE_COMPONENTS,
               "what libjoule reads");

_Static_assert(JOULE_USERVIEW_ROWS_MAX > JOULE_LEDGER_SLOTS_MAX &&
                   JOULE_USERVIEW_USERS >= JOULE_LEDGER_SLOTS_MAX,
               "whatever is remembered, there is room for what is");

/* A row that is in the ledger, or was. */
struct entry {
    uint64_t owner;
    int64_t gone_ns; /* since when it is there no more; 0: it is */
    struct joule_user_row now, shown;
    int64_t shown_ns; /* when [shown] was written; 0: never */
    int user;
    int next; /* of the same user, or in the list of free ones */
};

struct user {
    bool used;
    uid_t uid;
    struct userfile_open open;
    int first;
    size_t past;      /* entries that are there no more */
    int64_t alone_ns; /* the latest gone_ns of them */
    bool is_written;  /* the file is as [shown] of all entries */
    uint64_t generation;
};

struct joule_userview {
    int dir_fd;
    int64_t next_ns; /* nothing is written before */
    struct joule_userview_options options;
    char boot_id[JOULE_BOOT_ID_MAX];
    int slot[JOULE_LEDGER_SLOTS_MAX]; /* its entry */
    size_t slots;                     /* none has one from here on */
    struct user user[JOULE_USERVIEW_USERS];
    size_t users; /* none is used from here on */
    struct entry entry[JOULE_USERVIEW_ROWS_MAX];
    size_t entries; /* none has been used from here on */
    int free;
    struct joule_user_rows *file;
};

struct joule_userview *
joule_userview_create(int root_fd, const char *node,
                      const struct joule_userview_options *options,
                      struct joule_error *err)
{
    struct joule_userview *v = calloc(1, sizeof(*v));
    int node_fd;

    if (v)
        v->file = calloc(1, JOULE_USER_ROWS_BYTES(JOULE_USERVIEW_ROWS_MAX));
    if (!v || !v->file) {
        free(v);
        joule_error_set(err, ENOMEM, "out of memory");
        return NULL;
    }
    v->dir_fd = -1;
    v->options = *options;
    v->free = NONE;
    for (size_t i = 0; i < JOULE_LEDGER_SLOTS_MAX; i++)
        v->slot[i] = NONE;
    node_fd = joule_nodedir_open(root_fd, node, true, v->boot_id, err);
    if (node_fd >= 0) {
        v->dir_fd = joule_rundir_enter(node_fd, "users", 0711, true, err);
        joule_close(node_fd);
    }
    if (v->dir_fd >= 0 && joule_userfile_remove_all(v->dir_fd, err) == 0 &&
        joule_userfile_has_lists(v->dir_fd, err) == 0)
        return v;
    joule_userview_destroy(v);
    return NULL;
}

void joule_userview_destroy(struct joule_userview *v)
{
    int saved = errno;

    if (!v)
        return;
    for (size_t i = 0; i < v->users; i++)
        if (v->user[i].used)
            joule_userfile_close(&v->user[i].open);
    if (v->dir_fd >= 0)
        close(v->dir_fd);
    free(v->file);
    free(v);
    errno = saved;
}

/* ---- what is remembered ---- */

/* Take it out of its user's list, to be used again. */
static void forget(struct joule_userview *v, int i)
{
    struct user *u = &v->user[v->entry[i].user];
    int *link = &u->first;

    while (*link != i)
        link = &v->entry[*link].next;
    *link = v->entry[i].next;
    u->past--;
    u->is_written = false;
    v->entry[i].next = v->free;
    v->entry[i].user = NONE;
    v->free = i;
}

/* The entry of [user] (NONE: of anybody) that has gone longest ago, or NONE. */
static int oldest(const struct joule_userview *v, int user)
{
    int best = NONE;

    for (size_t i = 0; i < v->entries; i++) {
        const struct entry *e = &v->entry[i];

        if (e->user != NONE && e->gone_ns &&
            (user == NONE || e->user == user) &&
            (best == NONE || e->gone_ns < v->entry[best].gone_ns))
            best = (int)i;
    }
    return best;
}

/* It is no more in the ledger. */
static void leave(struct joule_userview *v, size_t slot, int64_t now_ns)
{
    int i = v->slot[slot];
    struct entry *e = &v->entry[i];
    struct user *u = &v->user[e->user];

    v->slot[slot] = NONE;
    e->now.state = JOULE_ROW_ENDED;
    e->gone_ns = now_ns;
    u->alone_ns = now_ns;
    if (++u->past > JOULE_USERVIEW_PAST)
        forget(v, oldest(v, e->user));
}

/* Every user has rows, and there are no more users than rows: of those whose
 * rows have all gone there is always one, when it is needed. */
static int make_room(struct joule_userview *v)
{
    int best = NONE;

    for (size_t i = 0; i < v->users; i++) {
        const struct user *u = &v->user[i];
        size_t count = 0;

        for (int e = u->first; e != NONE; e = v->entry[e].next)
            count++;
        if (count == u->past &&
            (best == NONE || u->alone_ns < v->user[best].alone_ns))
            best = (int)i;
    }
    while (v->user[best].first != NONE)
        forget(v, v->user[best].first);
    joule_userfile_close(&v->user[best].open);
    joule_userfile_remove(v->dir_fd, v->user[best].uid, NULL);
    return best;
}

static int find_user(struct joule_userview *v, uid_t uid)
{
    int unused = NONE;

    for (size_t i = 0; i < v->users; i++) {
        if (v->user[i].used && v->user[i].uid == uid)
            return (int)i;
        if (!v->user[i].used)
            unused = (int)i;
    }
    if (unused == NONE && v->users < JOULE_USERVIEW_USERS)
        unused = (int)v->users++;
    else if (unused == NONE)
        unused = make_room(v);
    v->user[unused] = (struct user){
        .used = true,
        .uid = uid,
        .open = {.fd = -1},
        .first = NONE,
    };
    return unused;
}

static void arrive(struct joule_userview *v, size_t slot,
                   const struct joule_row *row)
{
    int user = find_user(v, row->uid), i;

    if (v->free == NONE && v->entries == JOULE_USERVIEW_ROWS_MAX)
        forget(v, oldest(v, NONE));
    i = v->free != NONE ? v->free : (int)v->entries++;
    if (i == v->free)
        v->free = v->entry[i].next;
    v->entry[i] = (struct entry){
        .owner = row->owner,
        .user = user,
        .next = v->user[user].first,
    };
    v->user[user].first = i;
    v->user[user].is_written = false;
    v->slot[slot] = i;
}

static void follow(struct joule_userview *v, size_t slot,
                   const struct joule_row *row)
{
    struct joule_user_row *now = &v->entry[v->slot[slot]].now;

    now->job = row->job;
    now->step = row->step;
    now->kind = row->kind;
    now->state = row->state;
    now->cpu_count = row->cpu_count;
    now->job_cpu_count = row->job_cpu_count;
    now->began_ns = row->began_ns;
    now->ended_ns = row->ended_ns;
    now->uj = row->uj;
    now->job_uj = row->job_uj;
    now->components = row->components;
    memcpy(now->component_uj, row->component_uj, sizeof(now->component_uj));
}

/* A row belongs to the process that registered it, and to one user. */
static bool is_same(const struct joule_userview *v, int i,
                    const struct joule_row *row)
{
    return v->entry[i].owner == row->owner &&
           v->user[v->entry[i].user].uid == row->uid;
}

static void track(struct joule_userview *v, const struct joule_row *rows,
                  size_t count, int64_t now_ns)
{
    size_t slots = count > v->slots ? count : v->slots;

    for (size_t s = 0; s < slots && s < JOULE_LEDGER_SLOTS_MAX; s++) {
        const struct joule_row *row =
            s < count && rows[s].owner && rows[s].uid != (uint32_t)-1 ? &rows[s]
                                                                      : NULL;

        if (v->slot[s] != NONE && (!row || !is_same(v, v->slot[s], row)))
            leave(v, s, now_ns);
        if (!row)
            continue;
        if (v->slot[s] == NONE)
            arrive(v, s, row);
        follow(v, s, row);
    }
    v->slots = count;
}

/* ---- what is shown ---- */

/* The nearest whole joule, but no less than was shown. */
static uint64_t whole_joules(uint64_t uj, uint64_t shown_uj)
{
    uint64_t rest_uj = uj % UJ_PER_J;

    uj = rest_uj < UJ_PER_J / 2 ? uj - rest_uj : uj + UJ_PER_J - rest_uj;
    return uj > shown_uj ? uj : shown_uj;
}

/*
 * All files change at the same moments, a period apart.  The end of a step, and
 * its figure before it is a period old, are of times in between, which the user
 * chooses: with microjoules these would show the power of much less than a
 * period, and by it what others on the node do.  Where all of the node's energy
 * is the job's there are no others.
 */
static void hide_short_times(const struct joule_userview *v, struct entry *e,
                             int64_t now_ns)
{
    if (v->options.attribution == JOULE_ATTRIBUTION_NODE ||
        (e->now.state == JOULE_ROW_RUNNING && !e->now.ended_ns &&
         now_ns - e->now.began_ns >= v->options.period_ns))
        return;
    e->now.uj = whole_joules(e->now.uj, e->shown.uj);
    e->now.job_uj = whole_joules(e->now.job_uj, e->shown.job_uj);
    for (int k = 0; k < JOULE_COMPONENTS; k++)
        e->now.component_uj[k] =
            whole_joules(e->now.component_uj[k], e->shown.component_uj[k]);
}

static uint32_t power(const struct entry *e, uint64_t now_uj, uint64_t shown_uj,
                      int64_t ns)
{
    if (e->now.state != JOULE_ROW_RUNNING || now_uj <= shown_uj)
        return 0;
    return joule_mean_mw(now_uj - shown_uj, ns);
}

/* true: a file with it would be another one. */
static bool prepare(const struct joule_userview *v, struct entry *e,
                    int64_t now_ns)
{
    int64_t since_ns = e->shown_ns ? e->shown_ns : e->now.began_ns;

    hide_short_times(v, e, now_ns);
    e->now.mw = power(e, e->now.uj, e->shown.uj, now_ns - since_ns);
    for (int k = 0; k < JOULE_COMPONENTS; k++)
        e->now.component_mw[k] =
            power(e, e->now.component_uj[k], e->shown.component_uj[k],
                  now_ns - since_ns);
    return memcmp(&e->now, &e->shown, sizeof(e->now)) != 0;
}

struct moment {
    int64_t mono_ns, wall_ns;
};

static int write_file(struct joule_userview *v, struct user *u,
                      const struct moment *now, struct joule_error *err)
{
    struct joule_user_rows *f = v->file;
    size_t n = 0;

    for (int i = u->first; i != NONE; i = v->entry[i].next) {
        struct entry *e = &v->entry[i];

        f->row[n++] = e->shown = e->now;
        e->shown_ns = now->mono_ns;
    }
    f->uid = u->uid;
    f->rows = n;
    f->attribution = v->options.attribution;
    f->mono_ns = now->mono_ns;
    f->wall_ns = now->wall_ns;
    f->period_ns = v->options.period_ns;
    f->sample_period_ns = v->options.sample_period_ns;
    u->is_written = joule_userfile_write(v->dir_fd, &u->open, v->boot_id,
                                         ++u->generation, f, err) == 0;
    return u->is_written ? 0 : -1;
}

static int show(struct joule_userview *v, struct user *u,
                const struct moment *now, struct joule_error *err)
{
    bool changed = false, is_here = false;
    int next, rc = 0;

    for (int i = u->first; i != NONE; i = next) {
        struct entry *e = &v->entry[i];

        next = e->next;
        if (e->gone_ns && now->mono_ns - e->gone_ns >= JOULE_USERVIEW_LINGER_NS)
            forget(v, i);
        else
            changed |= prepare(v, e, now->mono_ns);
        is_here |= !e->gone_ns;
    }
    if (u->first == NONE) {
        joule_userfile_close(&u->open);
        if (joule_userfile_remove(v->dir_fd, u->uid, err) < 0)
            return -1;
        u->used = false;
        return 0;
    }
    if (changed || !u->is_written)
        rc = write_file(v, u, now, err);
    if (!is_here || u - v->user >= JOULE_USERVIEW_OPEN)
        joule_userfile_close(&u->open);
    return rc;
}

/* Once each period: in the mean no more often, but not missing one either. */
static bool is_due(struct joule_userview *v, int64_t now_ns)
{
    int64_t period_ns = v->options.period_ns;
    int64_t slack_ns = period_ns / SLACK_PARTS;
    int64_t late_ns = now_ns - v->next_ns;

    if (late_ns < -slack_ns)
        return false;
    v->next_ns = (late_ns <= slack_ns ? v->next_ns : now_ns) + period_ns;
    return true;
}

int joule_userview_publish(struct joule_userview *v,
                           const struct joule_row *rows, size_t count,
                           int64_t mono_ns, int64_t wall_ns,
                           struct joule_error *err)
{
    const struct moment now = {mono_ns, wall_ns};
    int rc = 0, errnum = 0;

    track(v, rows, count, mono_ns);
    if (!is_due(v, mono_ns))
        return 0;
    for (size_t i = 0; i < v->users; i++) {
        if (!v->user[i].used ||
            show(v, &v->user[i], &now, rc ? NULL : err) == 0)
            continue;
        if (rc == 0)
            errnum = errno;
        rc = -1;
    }
    while (v->users > 0 && !v->user[v->users - 1].used)
        v->users--;
    if (rc < 0)
        errno = errnum;
    return rc;
}

int joule_userview_read(int root_fd, const char *node, uid_t uid,
                        struct joule_user_totals *ret_totals,
                        struct joule_user_row *ret_rows, size_t *count,
                        struct joule_error *err)
{
    char boot_id[JOULE_BOOT_ID_MAX];
    struct joule_user_rows *f = NULL;
    int node_fd, dir_fd;

    node_fd = joule_nodedir_open(root_fd, node, false, boot_id, err);
    if (node_fd < 0)
        return -1;
    dir_fd = joule_rundir_enter(node_fd, "users", 0711, false, err);
    if (dir_fd >= 0)
        f = joule_userfile_read(dir_fd, uid, boot_id, err);
    joule_close(dir_fd);
    joule_close(node_fd);
    if (!f)
        return -1;
    *ret_totals = (struct joule_user_totals){
        .mono_ns = f->mono_ns,
        .wall_ns = f->wall_ns,
        .period_ns = f->period_ns,
        .sample_period_ns = f->sample_period_ns,
        .how = (enum joule_attribution)f->attribution,
    };
    if (*count > f->rows)
        *count = f->rows;
    memcpy(ret_rows, f->row, *count * sizeof(*ret_rows));
    free(f);
    return 0;
}

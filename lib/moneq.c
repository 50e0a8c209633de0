/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib/moneq.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/joule.h"
#include "lib/mpi_world.h"

#define MONEQ_API __attribute__((visibility("default")))

#define DCAS        2
#define NAMES_MAX   1000 /* different ones; a process may have 1,023 */
#define LEAST_DELAY 3    /* s */

enum {
    CHIP_CORE,
    DRAM, /* those that may be known */
    DOMAINS = 7
};

static const char *const domains[DOMAINS] = {
    "chip core", "dram",       "network",       "sram",
    "optics",    "PCIexpress", "link chip core"};

struct tag {
    char *name;
    unsigned open;
};

static struct {
    pthread_mutex_t lock;
    bool is_begun, is_agent, only_power;
    struct tag tag[NAMES_MAX];
    unsigned tags;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Another thread may have held it. */
static void in_child(void)
{
    pthread_mutex_init(&self.lock, NULL);
}

__attribute__((constructor)) static void at_load(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

static _Thread_local const char *last_error = "No last error message.";

static int fail(int number, const char *sentence)
{
    last_error = sentence;
    return number;
}

MONEQ_API MonEQ_ERROR *new_moneq_error(int number, char *message)
{
    MonEQ_ERROR *error = malloc(sizeof(*error));

    if (error)
        *error = (MonEQ_ERROR){number, message};
    return error;
}

MONEQ_API char *MonEQ_GetMessageForError(MonEQ_ERROR error)
{
    return error.error_message ? error.error_message : (char *)"";
}

MONEQ_API char *MonEQ_GetLastErrorMessage(void)
{
    return (char *)last_error;
}

/* ---- begin and end ---- */

/* The first process of the step on its node, or of MPI's where Slurm has not started
 * each by itself. */
static bool is_first_on_node(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK",
                                        "MPI_LOCALRANKID", "PMI_LOCAL_RANK",
                                        "SLURM_LOCALID"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);

        if (value && *value)
            return strcmp(value, "0") == 0;
    }
    return true;
}

MONEQ_API int MonEQ_Initialize(void)
{
    struct joule_energy energy;
    const char *status = joule_status();
    bool works = self.only_power ? joule_energy(&energy) == 0
                                 : strcmp(status, "recording") == 0;
    bool all_work = joule_mpi_greatest(!works) == 0;

    pthread_mutex_lock(&self.lock);
    self.is_begun = true;
    self.is_agent = is_first_on_node();
    pthread_mutex_unlock(&self.lock);
    if (all_work)
        return MonEQ_SUCCESS;
    if (works)
        status = "another process of the program records nothing";
    else if (self.only_power)
        status = "the energy of the step is not known (joule_energy)";
    return fail(EEMONERR, status);
}

MONEQ_API int MonEQ_Finalize(void)
{
    joule_mpi_barrier();
    pthread_mutex_lock(&self.lock);
    self.is_begun = self.is_agent = false;
    for (unsigned i = 0; i < self.tags; i++)
        free(self.tag[i].name);
    self.tags = 0;
    pthread_mutex_unlock(&self.lock);
    return MonEQ_SUCCESS;
}

MONEQ_API void MonEQ_DisableAutoCollection(void)
{
    self.only_power = true;
}

MONEQ_API int MonEQ_MonitorAgentOnRank(void)
{
    return self.is_agent;
}

/* ---- power ---- */

MONEQ_API double MonEQ_GetPower(void)
{
    struct joule_energy energy;

    if (!self.is_agent) {
        fail(0, "this process is not the agent of its node");
        return -1;
    }
    if (joule_energy(&energy) < 0 || energy.power_mw == 0) {
        fail(0, "the power of the step is not known");
        return -1;
    }
    return energy.power_mw / 1e3;
}

static double power_of(uint32_t mw)
{
    return mw ? mw / 1e3 : NAN;
}

/* Not 0: that would be a power. */
static void not_known(double *values, int count)
{
    for (int i = 0; values && i < count; i++)
        values[i] = NAN;
}

MONEQ_API double MonEQ_GetVoltageAndCurrent(double *volts, double *amperes)
{
    not_known(volts, DOMAINS * DCAS);
    not_known(amperes, DOMAINS * DCAS);
    return MonEQ_GetPower();
}

MONEQ_API double MonEQ_GetDomainPower(double *watts)
{
    struct joule_energy energy;

    not_known(watts, DOMAINS);
    if (watts && self.is_agent && joule_energy(&energy) == 0) {
        watts[CHIP_CORE] = power_of(energy.cpu_mw);
        watts[DRAM] = power_of(energy.memory_mw);
    }
    return MonEQ_GetPower();
}

MONEQ_API double MonEQ_GetDomainPowerByDCA(double *first, double *second)
{
    not_known(first, DOMAINS);
    not_known(second, DOMAINS);
    return MonEQ_GetPower();
}

MONEQ_API int MonEQ_GetNumDomains(void)
{
    return DOMAINS;
}

MONEQ_API int MonEQ_GetNumDCA(void)
{
    return DCAS;
}

MONEQ_API int MonEQ_GetVTMRatio(uint32_t *ret)
{
    for (int i = 0; i < DOMAINS; i++)
        ret[i] = 1;
    return MonEQ_SUCCESS;
}

MONEQ_API int MonEQ_GetDomainIDs(int *ret)
{
    for (int i = 0; i < DOMAINS; i++)
        ret[i] = i;
    return MonEQ_SUCCESS;
}

MONEQ_API void MonEQ_PrintVTMRatio(void)
{
    for (int i = 0; i < DOMAINS; i++)
        printf("%s: ratio 1\n", domains[i]);
}

MONEQ_API void MonEQ_PrintDomainInfo(void)
{
    for (int i = 0; i < DOMAINS; i++)
        printf("domain %d: %s\n", i, domains[i]);
}

MONEQ_API int MonEQ_SetFirstCollectionDelay(int seconds, int microseconds)
{
    (void)microseconds;
    if (seconds >= LEAST_DELAY)
        return MonEQ_SUCCESS;
    return fail(EFSTCOLLSHORT, "the first delay is at least 3 seconds");
}

MONEQ_API int MonEQ_SetCollectionInterval(int seconds, int microseconds)
{
    (void)seconds;
    (void)microseconds;
    return MonEQ_SUCCESS;
}

/* ---- tags ---- */

/* With [add], one that is made if there is none; NULL: none, or no room. */
static struct tag *find_tag(const char *name, bool add)
{
    struct tag *tag;

    for (unsigned i = 0; i < self.tags; i++)
        if (strcmp(self.tag[i].name, name) == 0)
            return &self.tag[i];
    if (!add || self.tags == NAMES_MAX)
        return NULL;
    tag = &self.tag[self.tags];
    *tag = (struct tag){.name = strdup(name)};
    if (!tag->name)
        return NULL;
    self.tags++;
    return tag;
}

/* Begin, or end, one; false: there is no room, or none is open. */
static bool count_tag(const char *name, bool is_start)
{
    struct tag *tag;
    bool counted;

    pthread_mutex_lock(&self.lock);
    tag = find_tag(name, is_start);
    counted = tag && (is_start || tag->open > 0);
    if (counted && is_start)
        tag->open++;
    else if (counted)
        tag->open--;
    pthread_mutex_unlock(&self.lock);
    return counted;
}

/* What start and end have to do with a rank that is not the agent. */
static int result(void)
{
    return self.is_agent ? MonEQ_SUCCESS
                         : fail(ENOTAGENTONRANK,
                                "this process is not the agent of its node");
}

MONEQ_API int MonEQ_StartPowerTag(char *name)
{
    if (!self.is_begun)
        return fail(ENOTAGENTONRANK, "MonEQ_Initialize comes first");
    if (!name)
        return fail(EMKPWRTAG, "a tag has a name");
    if (strchr(name, ' '))
        return fail(EMKPWRTAGSP, "the name of a tag has no space");
    if (!count_tag(name, true))
        return fail(EMKPWRTAG, "there are too many names of tags");
    joule_region_begin(name);
    return result();
}

MONEQ_API int MonEQ_EndPowerTag(char *name)
{
    if (!self.is_begun)
        return fail(ENOTAGENTONRANK, "MonEQ_Initialize comes first");
    if (!name || !count_tag(name, false))
        return fail(EFINDPWRTAGNM, "no tag of that name is open");
    joule_region_end(name);
    return result();
}

MONEQ_API void MonEQ_PrintPowerTagsList(void)
{
    pthread_mutex_lock(&self.lock);
    for (unsigned i = 0; i < self.tags; i++)
        puts(self.tag[i].name);
    pthread_mutex_unlock(&self.lock);
}

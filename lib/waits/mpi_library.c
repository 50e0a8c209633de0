/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib/waits/mpi_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "lib/preload.h"

#define VERSION_MAX 8192 /* what MPI may write */

struct joule_mpi_library joule_mpi;

/* Where Fortran programs have what C has constants for. */
static const char *const ignore_names[] = {
    "mpi_fortran_status_ignore_", "mpi_fortran_statuses_ignore_",
    "MPIR_F08_MPI_STATUS_IGNORE_OBJ", "MPIR_F08_MPI_STATUSES_IGNORE_OBJ"};
static const char *const in_place_names[] = {"mpi_fortran_in_place_",
                                             "MPIR_F08_MPI_IN_PLACE"};
/* These are variables with the address. */
static const char *const ignore_pointers[] = {"MPI_F_STATUS_IGNORE",
                                              "MPI_F_STATUSES_IGNORE"};
static const char *const in_place_pointers[] = {"MPIR_F_MPI_IN_PLACE"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Of Fortran: where what is not wanted, or in place, is. */
static struct {
    const void *ignored[COUNT(ignore_names)];
    const void *in_place[COUNT(in_place_names)];
    const void *const *ignored_at[COUNT(ignore_pointers)];
    const void *const *in_place_at[COUNT(in_place_pointers)];
} fortran;

/* What this object has not: a variable of the library may lie in the program (copy
 * relocation). */
static void *find_any(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    return found ? found : joule_preload_find(name);
}

static bool find(const char *name, void *function)
{
    *(void **)function = find_any(name);
    return *(void **)function != NULL;
}

static bool find_handles(struct joule_mpi_library *m)
{
    if (!m->is_mpich)
        return find("ompi_mpi_comm_world", &m->world) &&
               find("ompi_mpi_comm_self", &m->self) &&
               find("ompi_mpi_byte", &m->byte) &&
               find("ompi_request_null", &m->request_null) &&
               find("ompi_mpi_comm_null", &m->comm_null) &&
               find("ompi_mpi_datatype_null", &m->type_null) &&
               find("PMPI_Comm_f2c", &m->comm_f2c) &&
               find("PMPI_Type_f2c", &m->type_f2c) &&
               find("PMPI_Request_f2c", &m->request_f2c);
    m->world = 0x44000000;
    m->self = 0x44000001;
    m->byte = 0x4c00010d;
    m->request_null = 0x2c000000;
    m->comm_null = 0x04000000;
    m->type_null = 0x0c000000;
    return true;
}

static bool find_functions(struct joule_mpi_library *m)
{
    return find("PMPI_Send", &m->send) && find("PMPI_Recv", &m->recv) &&
           find("PMPI_Allgather", &m->allgather) &&
           find("PMPI_Barrier", &m->barrier) &&
           find("PMPI_Query_thread", &m->query_thread) &&
           find("PMPI_Comm_get_parent", &m->comm_get_parent) &&
           find("PMPI_Comm_rank", &m->comm_rank) &&
           find("PMPI_Comm_size", &m->comm_size) &&
           find("PMPI_Comm_test_inter", &m->comm_test_inter) &&
           find("PMPI_Comm_dup", &m->comm_dup) &&
           find("PMPI_Comm_free", &m->comm_free) &&
           find("PMPI_Comm_group", &m->comm_group) &&
           find("PMPI_Group_translate_ranks", &m->group_translate_ranks) &&
           find("PMPI_Group_free", &m->group_free) &&
           find("PMPI_Type_size", &m->type_size);
}

static void find_fortran(void)
{
    for (size_t i = 0; i < COUNT(ignore_names); i++)
        fortran.ignored[i] = find_any(ignore_names[i]);
    for (size_t i = 0; i < COUNT(in_place_names); i++)
        fortran.in_place[i] = find_any(in_place_names[i]);
    for (size_t i = 0; i < COUNT(ignore_pointers); i++)
        fortran.ignored_at[i] = find_any(ignore_pointers[i]);
    for (size_t i = 0; i < COUNT(in_place_pointers); i++)
        fortran.in_place_at[i] = find_any(in_place_pointers[i]);
}

/* Constants of both interfaces, which their programs are compiled with. */
static void set_constants(struct joule_mpi_library *m)
{
    m->handle_bits = m->is_mpich ? UINT32_MAX : UINT64_MAX;
    m->handle_size = m->is_mpich ? 4 : sizeof(void *);
    m->status_size = m->is_mpich ? 20 : 24;
    m->proc_null = m->is_mpich ? -1 : -2;
    m->any_source = m->is_mpich ? -2 : -1;
    m->any_tag = -1;
    m->in_place = (const void *)(m->is_mpich ? UINTPTR_MAX : 1);
    m->status_ignore = (const void *)(uintptr_t)(m->is_mpich ? 1 : 0);
}

/* Whether its Fortran writes 8 bytes where it gives a rank back: nothing else tells of
 * all libraries, and of those that stand between a program and its library. */
static bool has_wide_integers(const struct joule_mpi_library *m)
{
    void (*comm_rank)(int64_t *, int64_t *, int64_t *);
    int64_t world = m->is_mpich ? (int64_t)m->world : 0, rank = -1, error = -1;

    if (!find("mpi_comm_rank_", &comm_rank))
        return false;
    comm_rank(&world, &rank, &error);
    return rank >= 0;
}

int joule_mpi_find(void)
{
    int (*get_version)(char *, int *), length;
    struct joule_mpi_library *m = &joule_mpi;
    char version[VERSION_MAX] = "";

    if (m->is_found)
        return 0;
    if (!find("PMPI_Get_library_version", &get_version) ||
        get_version(version, &length) != 0)
        return -1;
    m->is_mpich = strstr(version, "Open MPI") == NULL;
    if (m->is_mpich && !strstr(version, "MPICH") &&
        !strstr(version, "MVAPICH") && !strstr(version, "Intel(R) MPI"))
        return -1;
    set_constants(m);
    if (!find_handles(m) || !find_functions(m))
        return -1;
    find_fortran();
    m->has_wide_integers = has_wide_integers(m);
    version[strcspn(version, "\n,")] = '\0';
    for (size_t i = 0; version[i] && i + 1 < sizeof(m->version); i++)
        m->version[i] = version[i] == '\t' ? ' ' : version[i];
    m->is_found = true;
    return 0;
}

struct joule_mpi_status joule_mpi_status(const void *statuses, int i)
{
    const char *at = (const char *)statuses + (size_t)i * joule_mpi.status_size;
    int32_t word[5];
    uint64_t bytes;

    memcpy(word, at, sizeof(word));
    if (joule_mpi.is_mpich)
        return (struct joule_mpi_status){
            .source = word[2],
            .tag = word[3],
            .bytes = (uint32_t)word[0] | (uint64_t)((uint32_t)word[1] >> 1)
                                             << 32,
            .is_cancelled = word[1] & 1,
        };
    memcpy(&bytes, at + 16, sizeof(bytes));
    return (struct joule_mpi_status){
        .source = word[0],
        .tag = word[1],
        .bytes = bytes,
        .is_cancelled = word[3] != 0,
    };
}

bool joule_mpi_is_spawned(void)
{
    uintptr_t parent = joule_mpi.comm_null;

    return joule_mpi.comm_get_parent(&parent) == 0 &&
           joule_mpi_handle(parent) != joule_mpi.comm_null;
}

bool joule_mpi_is_ignored(const void *status)
{
    if (!status || status == joule_mpi.status_ignore)
        return true;
    for (size_t i = 0; i < COUNT(ignore_names); i++)
        if (status == fortran.ignored[i])
            return true;
    for (size_t i = 0; i < COUNT(ignore_pointers); i++)
        if (fortran.ignored_at[i] && status == *fortran.ignored_at[i])
            return true;
    return false;
}

bool joule_mpi_is_in_place(const void *buffer)
{
    if (buffer == joule_mpi.in_place)
        return true;
    for (size_t i = 0; i < COUNT(in_place_names); i++)
        if (buffer && buffer == fortran.in_place[i])
            return true;
    for (size_t i = 0; i < COUNT(in_place_pointers); i++)
        if (fortran.in_place_at[i] && buffer == *fortran.in_place_at[i])
            return true;
    return false;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slurm_abi.h - every declaration of Slurm that its headers do not give,
 * by release, proved at compile time.
 *
 * Only files in plugins/ include this header.  Verified for 22.05.8 (Debian
 * 12), 24.11.5 (Debian 13) and 26.05 (sid); the facts and how they were found
 * are in doc/slurm-abi.md.  Only functions with the prefix slurm_ are
 * referenced strongly: they are in libslurm and libslurmfull of all three
 * releases.  What a release lacks is weak or looked up.
 */
#ifndef JOULE_SLURM_ABI_H
#define JOULE_SLURM_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>

#include "config.h"

/* On: 22.05, 24.11, 26.05, by series. */
#define JOULE_SLURM_SERIES (SLURM_VERSION_NUMBER >> 8)
#define JOULE_SLURM_22_05  0x1605
#define JOULE_SLURM_24_11  0x180b
#define JOULE_SLURM_26_05  0x1a05

#if JOULE_SLURM_SERIES != JOULE_SLURM_22_05 &&                                 \
    JOULE_SLURM_SERIES != JOULE_SLURM_24_11 &&                                 \
    JOULE_SLURM_SERIES != JOULE_SLURM_26_05 && !defined(JOULE_UNTESTED_SLURM)
#error "this Slurm release is not one of 22.05, 24.11, 26.05"
#endif

/* slurm_api_version() >> 16, the soname of libslurm. */
#if JOULE_SLURM_SERIES <= JOULE_SLURM_22_05
#define JOULE_SLURM_API 38
#elif JOULE_SLURM_SERIES <= JOULE_SLURM_24_11
#define JOULE_SLURM_API 42
#else
#define JOULE_SLURM_API 45
#endif

/*
 * acct_gather_energy_t is handed over in arrays: its size is part of the
 * interface.  It grew twice, once inside 24.11 (24.11.4).
 */
_Static_assert(offsetof(acct_gather_energy_t, consumed_energy) == 16 &&
                   offsetof(acct_gather_energy_t, current_watts) == 24,
               "acct_gather_energy_t has another layout");
#if JOULE_SLURM_SERIES == JOULE_SLURM_22_05
_Static_assert(sizeof(acct_gather_energy_t) == 48 &&
                   offsetof(acct_gather_energy_t, poll_time) == 40,
               "acct_gather_energy_t has another layout than 22.05's");
#elif SLURM_VERSION_NUMBER >= 0x180b04
_Static_assert(sizeof(acct_gather_energy_t) == 64 &&
                   offsetof(acct_gather_energy_t, poll_time) == 48,
               "acct_gather_energy_t has another layout than 24.11.4's");
#elif JOULE_SLURM_SERIES == JOULE_SLURM_24_11
_Static_assert(sizeof(acct_gather_energy_t) == 56,
               "acct_gather_energy_t has another layout than 24.11.0's");
#endif

/* ---- lists ---- */
#if JOULE_SLURM_SERIES < JOULE_SLURM_24_11
typedef List joule_slurm_list; /* "typedef struct xlist *List" */
#else
typedef list_t *joule_slurm_list; /* "typedef struct xlist list_t" */
#endif

/* ---- memory: what is given to Slurm must come from it ---- */
extern void *slurm_xcalloc(size_t count, size_t size, bool clear, bool try_,
                           const char *file, int line, const char *func);
extern char *slurm_xstrdup(const char *text);
extern void slurm_xfree(void **item);

/* ---- configuration parser ---- */
typedef struct s_p_hashtbl s_p_hashtbl_t;

typedef struct {
    char *key;
    int type;
    int (*handler)(void);
    void (*destroy)(void);
    void *line_options;
#if JOULE_SLURM_SERIES >= 0x1702 /* 23.02 */
    void (*pack)(void);
    void *(*unpack)(void);
#endif
} s_p_options_t;

/* slurm_transfer_s_p_options copies with the library's stride. */
#if JOULE_SLURM_SERIES >= 0x1702
_Static_assert(sizeof(s_p_options_t) == 56, "s_p_options_t is 56 bytes");
#else
_Static_assert(sizeof(s_p_options_t) == 40, "s_p_options_t is 40 bytes");
#endif

#define JOULE_S_P_STRING 1

extern void slurm_transfer_s_p_options(s_p_options_t **full_options,
                                       const s_p_options_t *options,
                                       int *full_options_count);
extern int slurm_s_p_get_string(char **ret, const char *key,
                                const s_p_hashtbl_t *table);
extern char *slurm_get_extra_conf_path(char *conf_name);

/* What slurm.conf says, in daemons and in slurmstepd; absent in other hosts. */
extern slurm_conf_t slurm_conf __attribute__((weak));

/* conf_values: what "scontrol show config" prints; freed by the list. */
struct joule_slurm_key_pair {
    char *name;
    char *value;
};
_Static_assert(sizeof(struct joule_slurm_key_pair) == 16,
               "config_key_pair_t is two pointers");

/* ---- profile: defined in libslurmfull only, absent in some hosts ---- */
typedef struct {
    char *name;
    int type;
} acct_gather_profile_dataset_t;
_Static_assert(sizeof(acct_gather_profile_dataset_t) == 16,
               "acct_gather_profile_dataset_t is 16 bytes");

#define JOULE_PROFILE_FIELD_END    0
#define JOULE_PROFILE_FIELD_UINT64 1
#define JOULE_PROFILE_FIELD_DOUBLE 2
#define JOULE_PROFILE_NO_PARENT    (-1)

/* The number of a data set that joule_hdf5 fills itself: Slurm hands it on like
 * any other (from 0 up), and nothing that is added to it is used. */
#define JOULE_PROFILE_FILLED 0x7fffffff

extern int
acct_gather_profile_g_create_dataset(const char *name, int64_t parent,
                                     acct_gather_profile_dataset_t *dataset)
    __attribute__((weak));
extern int acct_gather_profile_g_add_sample_data(int dataset_id, void *data,
                                                 time_t sample_time)
    __attribute__((weak));
/* [type]: bits of --profile. */
extern bool acct_gather_profile_g_is_active(uint32_t type)
    __attribute__((weak));
/* Whether the step's profile has begun, and not been told to end. */
extern bool acct_gather_profile_test(void) __attribute__((weak));

/* ---- energy: the same; set_data of each energy plugin, with the lock that the
 * energy thread has while it samples ---- */
extern int acct_gather_energy_g_set_data(enum acct_energy_type type, void *data)
    __attribute__((weak));

/* The entry points and variables that Slurm looks up by name. */
#define JOULE_SLURM_EXPORT __attribute__((visibility("default")))

#endif

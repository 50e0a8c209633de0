/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * requests.h - what is known of each open request.
 *
 *     joule_requests_begin(has_threads);
 *     joule_requests_add(handle, &request);     at the call that begins it
 *     if (joule_requests_take(handle, &request))
 *         at the call that has completed it
 *
 * MPI libraries give several requests that are done at once one handle: of one handle
 * the oldest is taken.  A persistent request stays until it is freed.
 */
#ifndef JOULE_WAITS_REQUESTS_H
#define JOULE_WAITS_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

enum joule_request_kind {
    JOULE_REQUEST_SEND,
    JOULE_REQUEST_RECEIVE,
    JOULE_REQUEST_COLLECTIVE,
    JOULE_REQUEST_NEW_COMM, /* the same, and a communicator comes of it */
    JOULE_REQUEST_NOBODY, /* no record is made of it: to or from MPI_PROC_NULL */
};

struct joule_request {
    uint32_t number; /* of this one, or of its last start */
    uint8_t kind;    /* enum joule_request_kind */
    bool is_persistent, is_active;
    bool has_more; /* the next of this handle is done with it */
    uint32_t comm; /* as in the log */
    int32_t peer, tag;
    uint32_t bytes;
    const void *newcomm; /* where the program has its handle */
    bool newcomm_fortran;
    uint64_t newcomm_id;
};

/* Once; [has_threads]: several of them may call at once. */
void joule_requests_begin(bool has_threads);

/* Fill in its number, and keep it.  false: there is no room. */
bool joule_requests_add(uintptr_t handle, struct joule_request *request);

/* false: nothing is known of it, or it is not active. */
bool joule_requests_take(uintptr_t handle, struct joule_request *ret);

/* Whether something is known of it, active or not. */
bool joule_requests_know(uintptr_t handle);

/* A persistent request begins again: it has a new number.  false: as above. */
bool joule_requests_start(uintptr_t handle, struct joule_request *ret);

/* The program frees it, and what is done with it. */
void joule_requests_drop(uintptr_t handle);

/* A message that was found (MPI_Mprobe) and is not yet received. */
struct joule_message {
    uint32_t handle;
    uint32_t comm; /* as in the log */
    int32_t source, tag;
};

/* More than fit are forgotten. */
void joule_messages_add(const struct joule_message *message);

/* Of one that is not known, [comm] is JOULE_WAITS_NO_COMM. */
struct joule_message joule_messages_take(uint32_t handle);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * guard.h - one hold of a name, by an owner of its own: any thread may ask for it
 *
 * An exclusive one is of two objects, the mutex of the name and its read-write lock for writing, as readers have the other
 * alone, and programs either.
 */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include "client.h"

struct guard {
    enum mode mode;
    const char *name;
    lk_client_t *client; /* NULL: closed */
    lk_owner_t *owner;
    lk_mutex_t mutex;
    lk_rwlock_t rwlock;
    lk_multi_t pair; /* of both */
    lk_sem_t sem;
    bool keeps;      /* with --hold-at-least */
    lk_mutex_t kept; /* the same mutex, which stays taken for that time */
    bool kept_twice; /* it was locked again, so that it does */
};

/* Open the client and make the object; 0, or an exit code: complained, and nothing is left. */
int guard_open(struct guard *guard, struct settings *settings, const char *name);

/* What the library answers. */
int guard_take(struct guard *guard, const lk_how_t *how);
int guard_remaining(struct guard *guard, int64_t *ms);
int guard_token(struct guard *guard, uint64_t *token); /* EPERM: readers have none */
int guard_release(struct guard *guard, bool lost); /* `lost`: a silent server is waited for once */

/* From now on the name stays taken for the time of --hold-at-least: what is held is about to be used. Without it nothing. */
int guard_keep(struct guard *guard);

/* Close the client: guard_take() of another thread ends, and what it is granted in this moment is given back. */
void guard_cancel(struct guard *guard);

/* End it all, once no other thread uses it; what is still held is released. */
void guard_close(struct guard *guard);

/* Free what is the guard's own and leave the client open: nothing is sent or waited for. */
void guard_leave(struct guard *guard);

const char *mode_name(enum mode mode);

#endif

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
    lk_multi_t pair; /* of both; with keep_ms there is none */
    lk_sem_t sem;
    int64_t keep_ms; /* the mutex stays taken for so long; 0: no */
};

/* Open the client and make the object; 0, or an exit code: complained, and nothing is left. */
int guard_open(struct guard *guard, const struct settings *settings, const char *name);

/* What the library answers. */
int guard_take(struct guard *guard, const lk_how_t *how);
int guard_remaining(struct guard *guard, int64_t *ms);
int guard_token(struct guard *guard, uint64_t *token); /* EPERM: readers have none */
int guard_release(struct guard *guard);

/* From another thread: end guard_take() and all; nothing runs, so that nothing stays taken for the time to keep it. */
void guard_give_up(struct guard *guard);

/* End it all; what is still held is released. */
void guard_close(struct guard *guard);

const char *mode_name(enum mode mode);

#endif

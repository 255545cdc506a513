/* SPDX-License-Identifier: MIT */
/*
 * guard.h - one hold of a mutex, a read-write lock or a permit, by an owner of its own: any thread may ask for it
 */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include "client.h"

struct guard {
    enum mode mode;
    const char *name;
    lk_client_t *client; /* NULL: closed */
    lk_owner_t *owner;
    union {
        lk_mutex_t mutex;
        lk_rwlock_t rwlock;
        lk_sem_t sem;
    };
};

/* Open the client and make the object; 0, or an exit code: complained, and nothing is left. */
int guard_open(struct guard *guard, const struct settings *settings, const char *name);

/* What the library answers. */
int guard_take(struct guard *guard, const lk_how_t *how);
int guard_remaining(struct guard *guard, int64_t *ms);
int guard_token(struct guard *guard, uint64_t *token); /* EPERM: readers have none */
int guard_release(struct guard *guard);

/* End it all; what is still held is released. */
void guard_close(struct guard *guard);

const char *mode_name(enum mode mode);

#endif

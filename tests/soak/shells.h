/* SPDX-License-Identifier: MIT */
/*
 * shells.h - the objects of one process, under one set of functions for all kinds
 *
 * They are made when they are first needed. Any thread may call these; `share` is for reading.
 */
#ifndef TESTS_SOAK_SHELLS_H
#define TESTS_SOAK_SHELLS_H

#include "objects.h"
#include "table.h"

#include <latchkey/latchkey.h>
#include <stdbool.h>

struct shells;

struct shells *shells_begin(lk_client_t *client, int64_t lease_ms);
int shells_end(struct shells *shells); /* after the client was closed; 0, or what a destroy said */

/*
 * An owner that is no thread, of the client of `shells`. The calls of this thread are for `owner` from now on, NULL: itself,
 * and take leases of that length; 0: those of the attributes. `fixed` is that of lk_how_t.
 */
lk_owner_t *shells_owner(struct shells *shells);
void shells_actfor(lk_owner_t *owner, int64_t lease_ms, int fixed);

/* limit_ms: 0 tries. */
int shell_take(struct shells *shells, uint32_t object, uint32_t instance, bool share, unsigned permits, int limit_ms);
int shell_give(struct shells *shells, uint32_t object, uint32_t instance, unsigned permits);

/* Of the kind STRIPED: any, from this one on. Which it was is told. */
int shell_takeany(struct shells *shells, uint32_t *object);

/* Of the kind BYID. `id` has room for LK_PERMIT_ID. */
int shell_takeid(struct shells *shells, uint32_t object, int limit_ms, char *id);
int shell_giveid(struct shells *shells, uint32_t object, const char *id);

int shell_remainingid(struct shells *shells, uint32_t object, const char *id, int64_t *ms);
int shell_tokenid(struct shells *shells, uint32_t object, const char *id, uint64_t *token);
int shell_askid(struct shells *shells, uint32_t object, const char *id);
int shell_extendid(struct shells *shells, uint32_t object, const char *id, int64_t lease_ms);

/* Of what is anonymous: end what this thread has of it, if no other thread holds permits. */
void shells_leave(struct shells *shells);
/* The instance that this thread would use, if it is to be this one: of what it could not leave, another. */
uint32_t shells_instance(struct shells *shells, uint32_t object, uint32_t instance);
/* The number of this thread, of THREADS_MAX. */
void shells_iam(unsigned thread);

/* Of the kinds GROWN, RESIZED and REMOVED. */
int shell_add(struct shells *shells, uint32_t object, uint32_t instance, long n);
int shell_resize(struct shells *shells, uint32_t object, uint32_t instance, unsigned *expected, unsigned total);
int shell_make(struct shells *shells, uint32_t object);
bool shells_unmake(struct shells *shells,
                   uint32_t object); /* first: false, if a thread of this process holds permits */

/* Of mutexes; shell_force() also deletes what is of the kind REMOVED. */
int shell_repair(struct shells *shells, uint32_t object);
int shell_force(struct shells *shells, uint32_t object);

int shell_downgrade(struct shells *shells, uint32_t object);

/* Of the hold of this thread, or of the owner that it acts for; ENOTSUP for what has no lease or no token. */
int shell_remaining(struct shells *shells, uint32_t object, uint32_t instance, int64_t *ms);
int shell_token(struct shells *shells, uint32_t object, uint32_t instance, uint64_t *token);

/* Of what has a lease: ask the server whether it stands, or give it another one. */
int shell_ask(struct shells *shells, uint32_t object, uint32_t instance);
int shell_extend(struct shells *shells, uint32_t object, int64_t lease_ms);

/* An anonymous latch, which has no other shell. */
int shells_latch(struct shells *shells, lk_latch_t *latch);

/* Of the kind BUFFER, whose mutex this thread holds: wait for items, or for room; and wake one who does, or all. */
int shell_sleep(struct shells *shells, uint32_t object, bool items, int limit_ms);
int shell_signal(struct shells *shells, uint32_t object, bool items, bool all);

/* Of the kind BARRIER: 0, LK_BARRIER_SERIAL or a code. */
int shell_meet(struct shells *shells, uint32_t object, int limit_ms);

/* Of the kind ONCE: a run is complete, and has that number. The number of the one that completed. */
int shell_complete(struct shells *shells, uint32_t object, uint32_t instance, uint64_t number);
int shell_result(struct shells *shells, uint32_t object, uint32_t instance, uint64_t *number);

/* Of the kinds BARRIER and ONCE. */
int shell_reset(struct shells *shells, uint32_t object, uint32_t instance);

lk_latch_t *shell_latch(struct shells *shells, uint32_t object, uint32_t instance);

#endif

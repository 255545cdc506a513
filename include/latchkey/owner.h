/* SPDX-License-Identifier: MIT */
/*
 * owner.h - explicit owners, for thread pools and coroutines; and what one call may
 * say beyond the attributes
 *
 * Owner    Whoever locks is usually the calling thread. Where one piece of work runs
 *          on several threads, a request on a pool or a coroutine, it gets an owner of
 *          its own: any thread may lock for it and unlock for it.
 * Hold     What an owner holds does not end with a thread. It is renewed until it is
 *          given back, max_hold_ms is over, or the client is closed. Who holds is the
 *          owner: levels of a recursive mutex and EDEADLK are counted for it, and what
 *          the thread itself holds is another's.
 * Calls    Several threads may use one owner at a time. Their calls on one object are
 *          carried out one after the other: two that lock a recursive mutex make two
 *          levels. A call that waits for somebody else keeps none of the others
 *          waiting but those that lock the same object, and these no longer than
 *          their own limit.
 * Names    lk_..._with() takes a lk_how_t. What has an owner as its second argument ends
 *          with "by": lk_mutex_unlockby(&m, owner). An owner of NULL is the calling
 *          thread there.
 * Codes    An owner of another client is EINVAL. In the child of a fork the parent's
 *          owners hold nothing: a lock is ECANCELED, all other calls EPERM. After its
 *          client was closed all are ECANCELED.
 */
#ifndef LATCHKEY_OWNER_H
#define LATCHKEY_OWNER_H

#include <latchkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lk_owner lk_owner_t;

/*
 * Make an owner. It costs a few hundred bytes here and nothing on the server.
 *
 *   client    the one whose objects it is to hold. NULL: the default client, opened if
 *             there is none
 *   owner     receives the owner, on success only
 *
 * Returns     0, EINVAL, ENOMEM, ECANCELED (the client is closed, or belongs to another
 *             process); for the default client also what lk_client_default() returns
 * Threads     any
 * Round trips 0; for the default client those of its opening
 * Frees       lk_owner_free()
 */
LK_API LK_MUST_CHECK int lk_owner_new(lk_client_t *client, lk_owner_t **owner);

/*
 * End an owner.
 *
 *   owner     no thread begins a call with it any more. NULL is allowed and does
 *             nothing
 *
 * Returns     0          gone. What it had lost and never unlocked is forgotten
 *             EBUSY      it holds something, or a call of it is under way; unchanged
 * Threads     any
 * Round trips 0
 */
LK_API int lk_owner_free(lk_owner_t *owner);

/*
 * The number of an owner, as events (lk_event_t) and the ids of holders and waiters on
 * the server ("<client id>:<owner>:<acquisition>") have it. No other owner of this
 * process, thread or not, has it or will have it.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     the number; 0 when out of memory
 * Threads     any
 * Round trips 0
 */
LK_API uint64_t lk_owner_number(const lk_owner_t *owner);

/*
 * What one call says: lk_mutex_lockwith(), lk_rwlock_rdlockwith(), _wrlockwith(),
 * lk_sem_acquirewith(), lk_once_beginwith(). LK_HOW_INIT waits as long as it takes, as
 * the attributes say, for the calling thread. The lease and whether it is fixed are those
 * of the hold: a level more of what the owner holds already leaves them as they are.
 */
typedef struct lk_how {
    size_t size;        /* sizeof(lk_how_t); see LK_HOW_INIT */
    int64_t timeout_ms; /* 0 tries once, LK_FOREVER waits on; other negatives are EINVAL */
    int64_t lease_ms;   /* 0: the attribute's, or the client's; at least 100, at most a day */
    int fixed;          /* 1: the lease is not renewed, -1: it is; 0: what the attribute says */
    lk_owner_t *owner;  /* NULL: the calling thread */
} lk_how_t;

/* clang-format off */
#define LK_HOW_INIT { sizeof(lk_how_t), LK_FOREVER, 0, 0, NULL }
/* clang-format on */

#ifdef __cplusplus
}
#endif

#endif

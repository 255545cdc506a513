/* SPDX-License-Identifier: MIT */
/*
 * stripes.h - n mutexes under one name, for what one mutex is too slow for
 *
 * Hot     One mutex has one holder at a time, and a name that everybody wants goes from hand to
 *         hand no faster than messages travel. What can be divided is better kept in n parts,
 *         each with a mutex of its own: the stock of a sale on n shelves, of which a buyer takes any
 *         (lk_stripes_trylockany()); accounts, of which each belongs to one of n mutexes by its
 *         number (lk_stripes_of()).
 * Names   Stripe 7 of "stock" is the mutex "stock:7", in every program and for Java (getLock()).
 *         So the stripes of one set lie in slots of their own, spread over a cluster. With a
 *         {tag} in the name, or in the client's prefix, they all lie in the slot of that tag.
 * n       belongs to the name: with another n a key belongs to another stripe, and two programs
 *         that differ do not exclude each other. They are told as of other settings of a name
 *         (see lk_mutexattr_t): a warning and LK_EVENT_DISAGREES, with strict=yes EINVAL. So is who
 *         uses a stripe by its name, as a mutex that knows of no n; in one client that is EINVAL.
 * Several With more than one at a time, lock in the order of their indexes, and each index
 *         once or with a recursive mutex: two keys may have the same stripe. So nobody waits
 *         in a circle. lk_stripes_trylockany() waits for nobody.
 * Memory  Some 70 bytes and the name for each stripe; one that was used as much as any mutex, until
 *         lk_mutex_destroy().
 */
#ifndef LATCHKEY_STRIPES_H
#define LATCHKEY_STRIPES_H

#include <latchkey/mutex.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most stripes of one name: as many as a cluster has slots. */
#define LK_STRIPES_MAX 16384U

/* As a hint: begin at a stripe drawn at random. No index. */
#define LK_STRIPES_ANY (~0U)

/*
 * A set of stripes; of eight shelves a seller takes any. For example:
 *
 *     static lk_stripes_t stock; // lk_stripes_init(&stock, client, "stock", 8)
 *
 *     int sell_one(int (*sell)(unsigned shelf), unsigned *shelf) // at first LK_STRIPES_ANY
 *     {
 *         int rc = lk_stripes_trylockany(&stock, *shelf, shelf); // where it went well last
 *         if (rc == EBUSY) { // all are held: wait in line for one of them
 *             *shelf = *shelf < 8 ? *shelf : 0;
 *             rc = lk_mutex_lock(lk_stripes_at(&stock, *shelf));
 *         }
 *         if (rc != 0)
 *             return rc;
 *         rc = sell(*shelf);
 *         int lost = lk_mutex_unlock(lk_stripes_at(&stock, *shelf));
 *         return rc != 0 ? rc : lost;
 *     }
 */
typedef struct lk_stripes {
    const char *lk_name;   /* private: a copy; NULL: never initialised, or destroyed */
    void *lk_impl;         /* private */
    uintptr_t lk_made;     /* private: in which process; checked before lk_impl is followed */
    uintptr_t lk_spare[5]; /* private: room to grow within one ABI */
} lk_stripes_t;

/*
 * Make `s` a set of `n` mutexes "NAME:0" to "NAME:<n - 1>". Sends nothing, starts no
 * thread; stripes of the default client need no server yet.
 *
 *   s         memory of any content; neither copied nor moved while in use
 *   client    NULL: the default client, bound by the first call that needs it
 *   name      copied. As that of a mutex, with its longest ":<index>" and the client's prefix
 *             1 to 512 bytes
 *   n         1 to LK_STRIPES_MAX; the same in all programs that use the name
 *
 * Returns     0          usable. What only shows when a stripe is first used is told then, by
 *                        the call that uses it: EINVAL, another object of its name and client
 *                        has other attributes; of the default client, what is wrong with that
 *             EINVAL     a name, n or attributes against the rules, or against another
 *                        object of this client
 *             EACCES     the client's user may not do what mutexes need, as far as is known
 *             ECANCELED  the client is closed, or belongs to another process
 *             ENOMEM     s is unchanged, as after each error
 * Threads     any
 * Round trips 0
 * Frees       lk_stripes_destroy()
 */
LK_API LK_MUST_CHECK int lk_stripes_init(lk_stripes_t *s, lk_client_t *client, const char *name, unsigned n);

/*
 * The same with attributes, which all stripes have.
 *
 *   attr      NULL: defaults; copied
 *
 * Returns     as lk_stripes_init()
 * Threads     any
 * Round trips 0
 * Frees       lk_stripes_destroy()
 */
LK_API LK_MUST_CHECK int lk_stripes_initattr(lk_stripes_t *s, lk_client_t *client, const char *name, unsigned n,
                                             const lk_mutexattr_t *attr);

/*
 * Give back what `s` has in this process, its mutexes among it. Nothing happens in Redis.
 *
 *   s         no thread begins a call with it or with a mutex of it any more
 *
 * Returns     0
 *             EBUSY      one of them is held or waited for, as lk_mutex_destroy() has it; all
 *                        are unchanged
 *             EINVAL     s is NULL
 * Holds       that nobody renews are detached, as by lk_mutex_destroy()
 * Threads     any. In a child of a fork it gives back what the child has of it
 * Round trips as lk_mutex_destroy(), for each stripe
 */
LK_API int lk_stripes_destroy(lk_stripes_t *s);

/*
 * How many stripes there are.
 *
 * Returns     n; 0: `s` was not initialised, or not in this process
 * Threads     any
 * Round trips 0
 */
LK_API unsigned lk_stripes_count(lk_stripes_t *s);

/*
 * The mutex of an index, for all calls of mutex.h but lk_mutex_init(). lk_mutex_destroy()
 * gives its memory back, and its next use takes it again.
 *
 *   index     below n
 *
 * Returns     a mutex that is there until `s` is destroyed. NULL: there is none, or `s` belongs to
 *             another process, with words in lk_errortext(); of a NULL mutex every call
 *             says EINVAL
 * Threads     any
 * Round trips 0
 */
LK_API lk_mutex_t *lk_stripes_at(lk_stripes_t *s, unsigned index);

/*
 * Which stripe a key belongs to: its CRC-32, that of zlib, gzip and Ethernet, modulo n. The
 * same for every program, machine and language: zlib.crc32(key) % n in Python.
 *
 *   key       any bytes; may be NULL if `length` is 0
 *   length    of it in bytes
 *
 * Returns     an index. LK_STRIPES_ANY: `s` has none, or key is NULL, with words in
 *             lk_errortext()
 * Threads     any
 * Round trips 0
 */
LK_API unsigned lk_stripes_index(lk_stripes_t *s, const void *key, size_t length);

/*
 * The mutex of the stripe that a key belongs to: lk_stripes_at() of lk_stripes_index().
 * Other keys have the same one, so what holds a key keeps some others waiting, too.
 *
 * Returns     as lk_stripes_at()
 * Threads     any
 * Round trips 0
 */
LK_API lk_mutex_t *lk_stripes_of(lk_stripes_t *s, const void *key, size_t length);

/*
 * Take one of the stripes that is free now, whichever: the one of the hint, or the next, and
 * so on once around. With its last index as a hint, a thread that was refused moves on,
 * and stays where it found room.
 *
 *   hint      where to begin; taken modulo n. LK_STRIPES_ANY: anywhere
 *   index     receives which one is held, for lk_stripes_at(); written if one is. May be
 *             where the hint comes from
 *
 * Returns     0          held: as if by lk_mutex_trylock(), so one that this thread holds,
 *                        of the recursive type, counts as free and is held once more
 *             EOWNERDEAD likewise, see lk_mutex_lock()
 *             EBUSY      each was held when it was asked for; lk_errorleft() has the shortest
 *                        lease that was in the way. Wait for one of them by lk_mutex_lockfor()
 *             ESTALE EAGAIN ENOTRECOVERABLE  none was held by somebody else, and one of them
 *                        says so, see lk_mutex_lock(); else such stripes are passed by
 *             EINVAL     s, or index is NULL
 *             ENOTCONN EIO EPROTO EACCES ENOSPC ECANCELED ENOTSUP ENOMEM  as lk_mutex_trylock(), by the
 *                        stripe at which the search ended; nothing is held
 * Threads     any; a server that does not answer ends it after one command timeout
 * Round trips 1 if the first one is free, one more for each that is not, n at most
 */
LK_API LK_MUST_CHECK int lk_stripes_trylockany(lk_stripes_t *s, unsigned hint, unsigned *index);

/*
 * The same for an owner; lk_mutex_unlockby() gives it back.
 *
 *   owner     NULL: the calling thread
 *
 * Returns     as lk_stripes_trylockany(), and EINVAL: an owner of another client. EBUSY also
 *             where another call of the owner was acquiring the stripe
 * Threads     as lk_stripes_trylockany()
 * Round trips as lk_stripes_trylockany()
 */
LK_API LK_MUST_CHECK int lk_stripes_trylockanyby(lk_stripes_t *s, lk_owner_t *owner, unsigned hint, unsigned *index);

#ifdef __cplusplus
}
#endif

#endif

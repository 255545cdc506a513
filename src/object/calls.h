/* SPDX-License-Identifier: MIT */
/*
 * calls.h - public calls that are alike in all kinds, as macros; KIND is mutex, rwlock, ...
 *
 * A kind has lk_KIND_t, lk_KINDattr_t and lk__KIND_kind. Contracts are in its public header.
 */
#ifndef LK__OBJECT_CALLS_H
#define LK__OBJECT_CALLS_H

#include "object/holder.h"
#include "object/queue.h"

/* destroy; and init, too, of a kind whose objects need no more than their attributes. */
#define LK__DESTROY_CALL(kind)                                                                                         \
    int lk_##kind##_destroy(lk_##kind##_t *object)                                                                     \
    {                                                                                                                  \
        return lk__op_destroy(__func__, LK__HANDLE(object), &lk__##kind##_kind);                                       \
    }

#define LK__INIT_CALLS(kind)                                                                                           \
    LK__DESTROY_CALL(kind)                                                                                             \
                                                                                                                       \
    int lk_##kind##_init(lk_##kind##_t *object, lk_client_t *client, const char *name, const lk_##kind##attr_t *attr)  \
    {                                                                                                                  \
        return lk__op_init(__func__, LK__HANDLE(object), &lk__##kind##_kind, client, name, attr);                      \
    }

/*
 * The forms of a call that waits, which differ in the moment at which it stops: timed and clock; with LK__WAIT_CALLS
 * also without a limit, and `for`; with LK__LOCK_CALLS also try, and `with`. All call one function of the file:
 * static int wait(lk_KIND_t *object, const struct lk__how *how).
 */
#define LK__TIMED_CALLS(kind, call, wait)                                                                              \
    int lk_##kind##_timed##call(lk_##kind##_t *object, const struct timespec *abstime)                                 \
    {                                                                                                                  \
        return lk_##kind##_clock##call(object, CLOCK_REALTIME, abstime);                                               \
    }                                                                                                                  \
                                                                                                                       \
    int lk_##kind##_clock##call(lk_##kind##_t *object, clockid_t clock, const struct timespec *abstime)                \
    {                                                                                                                  \
        struct lk__how how = { .limit_us = 0 };                                                                        \
        int rc = lk__deadline_at(clock, abstime, &how.limit_us);                                                       \
        return rc != 0 ? rc : wait(object, &how);                                                                      \
    }

#define LK__WAIT_CALLS(kind, call, wait)                                                                               \
    LK__TIMED_CALLS(kind, call, wait)                                                                                  \
                                                                                                                       \
    int lk_##kind##_##call(lk_##kind##_t *object)                                                                      \
    {                                                                                                                  \
        return wait(object, &(struct lk__how){ .limit_us = LK__NEVER });                                               \
    }                                                                                                                  \
                                                                                                                       \
    int lk_##kind##_##call##for(lk_##kind##_t *object, int64_t timeout_ms)                                             \
    {                                                                                                                  \
        struct lk__how how = { .limit_us = 0 };                                                                        \
        int rc = lk__deadline_in(timeout_ms, &how.limit_us);                                                           \
        return rc != 0 ? rc : wait(object, &how);                                                                      \
    }

#define LK__LOCK_CALLS(kind, call, lock)                                                                               \
    LK__WAIT_CALLS(kind, call, lock)                                                                                   \
                                                                                                                       \
    int lk_##kind##_try##call(lk_##kind##_t *object)                                                                   \
    {                                                                                                                  \
        return lock(object, &(struct lk__how){ .only_try = true });                                                    \
    }                                                                                                                  \
                                                                                                                       \
    int lk_##kind##_##call##with(lk_##kind##_t *object, const lk_how_t *given)                                         \
    {                                                                                                                  \
        struct lk__how how;                                                                                            \
        int rc = lk__how_take(&how, given);                                                                            \
        return rc != 0 ? rc : lock(object, &how);                                                                      \
    }

#define LK__UNLOCK_CALLS(kind)                                                                                         \
    int lk_##kind##_unlock(lk_##kind##_t *object)                                                                      \
    {                                                                                                                  \
        return lk__op_unlock(LK__HANDLE(object), &lk__##kind##_kind, NULL);                                            \
    }                                                                                                                  \
                                                                                                                       \
    int lk_##kind##_unlockby(lk_##kind##_t *object, lk_owner_t *owner)                                                 \
    {                                                                                                                  \
        return lk__op_unlock(LK__HANDLE(object), &lk__##kind##_kind, owner);                                           \
    }

/* Calls of a holder about its hold: see holder.h. */
#define LK__HOLDER_CALLS(kind)                                                                                         \
    int lk_##kind##_token(lk_##kind##_t *object, uint64_t *token)                                                      \
    {                                                                                                                  \
        return lk__holder_token(__func__, LK__HANDLE(object), &lk__##kind##_kind, NULL, token);                        \
    }                                                                                                                  \
                                                                                                                       \
    int lk_##kind##_tokenby(lk_##kind##_t *object, lk_owner_t *owner, uint64_t *token)                                 \
    {                                                                                                                  \
        return lk__holder_token(__func__, LK__HANDLE(object), &lk__##kind##_kind, owner, token);                       \
    }                                                                                                                  \
                                                                                                                       \
    int lk_##kind##_remaining(lk_##kind##_t *object, int64_t *ms)                                                      \
    {                                                                                                                  \
        return lk__holder_remaining(__func__, LK__HANDLE(object), &lk__##kind##_kind, NULL, ms);                       \
    }                                                                                                                  \
                                                                                                                       \
    int lk_##kind##_remainingby(lk_##kind##_t *object, lk_owner_t *owner, int64_t *ms)                                 \
    {                                                                                                                  \
        return lk__holder_remaining(__func__, LK__HANDLE(object), &lk__##kind##_kind, owner, ms);                      \
    }                                                                                                                  \
                                                                                                                       \
    int lk_##kind##_check(lk_##kind##_t *object)                                                                       \
    {                                                                                                                  \
        return lk__holder_check(LK__HANDLE(object), &lk__##kind##_kind, NULL);                                         \
    }                                                                                                                  \
                                                                                                                       \
    int lk_##kind##_checkby(lk_##kind##_t *object, lk_owner_t *owner)                                                  \
    {                                                                                                                  \
        return lk__holder_check(LK__HANDLE(object), &lk__##kind##_kind, owner);                                        \
    }

#define LK__EXTEND_CALLS(kind)                                                                                         \
    int lk_##kind##_extend(lk_##kind##_t *object, int64_t lease_ms)                                                    \
    {                                                                                                                  \
        return lk__holder_extend(LK__HANDLE(object), &lk__##kind##_kind, NULL, lease_ms);                              \
    }                                                                                                                  \
                                                                                                                       \
    int lk_##kind##_extendby(lk_##kind##_t *object, lk_owner_t *owner, int64_t lease_ms)                               \
    {                                                                                                                  \
        return lk__holder_extend(LK__HANDLE(object), &lk__##kind##_kind, owner, lease_ms);                             \
    }

#define LK__CONSISTENT_CALLS(kind)                                                                                     \
    int lk_##kind##_consistent(lk_##kind##_t *object)                                                                  \
    {                                                                                                                  \
        return lk__holder_consistent(LK__HANDLE(object), &lk__##kind##_kind, NULL);                                    \
    }                                                                                                                  \
                                                                                                                       \
    int lk_##kind##_consistentby(lk_##kind##_t *object, lk_owner_t *owner)                                             \
    {                                                                                                                  \
        return lk__holder_consistent(LK__HANDLE(object), &lk__##kind##_kind, owner);                                   \
    }

#define LK__QUEUE_CALL(kind)                                                                                           \
    int lk_##kind##_queue(lk_##kind##_t *object, lk_waiter_t *waiters, size_t stride, unsigned capacity,               \
                          unsigned *count)                                                                             \
    {                                                                                                                  \
        return lk__queue_list(__func__, LK__HANDLE(object), &lk__##kind##_kind, waiters, stride, capacity, count);     \
    }

/*
 * The file itself has static int read_info(const struct lk__op *op, lk_KINDinfo_t *info). `least`: the last field of a
 * struct of the first version.
 */
#define LK__INFO_CALL(kind, least)                                                                                     \
    int lk_##kind##_info(lk_##kind##_t *object, lk_##kind##info_t *info)                                               \
    {                                                                                                                  \
        struct lk__op op;                                                                                              \
        int rc = lk__sized_check(info, LK__THROUGH(lk_##kind##info_t, least), "lk_" #kind "info_t");                   \
        if (rc == 0)                                                                                                   \
            rc = lk__op_enter(&op, LK__HANDLE(object), &lk__##kind##_kind);                                            \
        return rc != 0 ? rc : lk__op_leave(&op, read_info(&op, info));                                                 \
    }

#endif

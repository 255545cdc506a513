/* SPDX-License-Identifier: MIT */
/*
 * calls.h - public calls that are alike in all kinds, as macros; KIND is mutex, rwlock, ...
 *
 * A kind has lk_KIND_t, lk_KINDattr_t and lk__KIND_kind. Contracts are in its public header.
 */
#ifndef LK__OBJECT_CALLS_H
#define LK__OBJECT_CALLS_H

#include "object/holder.h"

/* lk_KIND_init() and lk_KIND_destroy() of a kind that needs no more than its attributes. */
#define LK__INIT_CALLS(kind)                                                                                           \
    int lk_##kind##_init(lk_##kind##_t *object, lk_client_t *client, const char *name, const lk_##kind##attr_t *attr)  \
    {                                                                                                                  \
        return lk__op_init(__func__, LK__HANDLE(object), &lk__##kind##_kind, client, name, attr);                      \
    }                                                                                                                  \
                                                                                                                       \
    int lk_##kind##_destroy(lk_##kind##_t *object)                                                                     \
    {                                                                                                                  \
        return lk__op_destroy(__func__, LK__HANDLE(object), &lk__##kind##_kind);                                       \
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

/* What a holder may ask and say of its hold: see holder.h. */
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

#endif

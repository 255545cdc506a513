/* SPDX-License-Identifier: MIT */
/* hold.c - calls of a holder on its hold: token, remaining, check, extend, consistent */
#include "rwlock/rwlock.h"

int lk_rwlock_token(lk_rwlock_t *rw, uint64_t *token)
{
    return lk__holder_token(__func__, LK__HANDLE(rw), &lk__rwlock_kind, NULL, token);
}

int lk_rwlock_tokenby(lk_rwlock_t *rw, lk_owner_t *owner, uint64_t *token)
{
    return lk__holder_token(__func__, LK__HANDLE(rw), &lk__rwlock_kind, owner, token);
}

int lk_rwlock_remaining(lk_rwlock_t *rw, int64_t *ms)
{
    return lk__holder_remaining(__func__, LK__HANDLE(rw), &lk__rwlock_kind, NULL, ms);
}

int lk_rwlock_remainingby(lk_rwlock_t *rw, lk_owner_t *owner, int64_t *ms)
{
    return lk__holder_remaining(__func__, LK__HANDLE(rw), &lk__rwlock_kind, owner, ms);
}

int lk_rwlock_check(lk_rwlock_t *rw)
{
    return lk__holder_check(LK__HANDLE(rw), &lk__rwlock_kind, NULL);
}

int lk_rwlock_checkby(lk_rwlock_t *rw, lk_owner_t *owner)
{
    return lk__holder_check(LK__HANDLE(rw), &lk__rwlock_kind, owner);
}

int lk_rwlock_extend(lk_rwlock_t *rw, int64_t lease_ms)
{
    return lk__holder_extend(LK__HANDLE(rw), &lk__rwlock_kind, NULL, lease_ms);
}

int lk_rwlock_extendby(lk_rwlock_t *rw, lk_owner_t *owner, int64_t lease_ms)
{
    return lk__holder_extend(LK__HANDLE(rw), &lk__rwlock_kind, owner, lease_ms);
}

int lk_rwlock_consistent(lk_rwlock_t *rw)
{
    return lk__holder_consistent(LK__HANDLE(rw), &lk__rwlock_kind, NULL);
}

int lk_rwlock_consistentby(lk_rwlock_t *rw, lk_owner_t *owner)
{
    return lk__holder_consistent(LK__HANDLE(rw), &lk__rwlock_kind, owner);
}

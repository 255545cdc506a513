/* SPDX-License-Identifier: MIT */
/* hold.c - calls of a holder on its hold: token, remaining, check, extend, consistent */
#include "lock/mutex.h"

int lk_mutex_token(lk_mutex_t *m, uint64_t *token)
{
    return lk__holder_token(__func__, LK__HANDLE(m), &lk__mutex_kind, NULL, token);
}

int lk_mutex_tokenby(lk_mutex_t *m, lk_owner_t *owner, uint64_t *token)
{
    return lk__holder_token(__func__, LK__HANDLE(m), &lk__mutex_kind, owner, token);
}

int lk_mutex_remaining(lk_mutex_t *m, int64_t *ms)
{
    return lk__holder_remaining(__func__, LK__HANDLE(m), &lk__mutex_kind, NULL, ms);
}

int lk_mutex_remainingby(lk_mutex_t *m, lk_owner_t *owner, int64_t *ms)
{
    return lk__holder_remaining(__func__, LK__HANDLE(m), &lk__mutex_kind, owner, ms);
}

int lk_mutex_check(lk_mutex_t *m)
{
    return lk__holder_check(LK__HANDLE(m), &lk__mutex_kind, NULL);
}

int lk_mutex_checkby(lk_mutex_t *m, lk_owner_t *owner)
{
    return lk__holder_check(LK__HANDLE(m), &lk__mutex_kind, owner);
}

int lk_mutex_extend(lk_mutex_t *m, int64_t lease_ms)
{
    return lk__holder_extend(LK__HANDLE(m), &lk__mutex_kind, NULL, lease_ms);
}

int lk_mutex_extendby(lk_mutex_t *m, lk_owner_t *owner, int64_t lease_ms)
{
    return lk__holder_extend(LK__HANDLE(m), &lk__mutex_kind, owner, lease_ms);
}

int lk_mutex_consistent(lk_mutex_t *m)
{
    return lk__holder_consistent(LK__HANDLE(m), &lk__mutex_kind, NULL);
}

int lk_mutex_consistentby(lk_mutex_t *m, lk_owner_t *owner)
{
    return lk__holder_consistent(LK__HANDLE(m), &lk__mutex_kind, owner);
}

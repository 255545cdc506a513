/* SPDX-License-Identifier: MIT */
/* hold.c - calls of a holder on its hold: token, remaining, check, extend */
#include "redlock/redlock.h"

int lk_redlock_token(lk_redlock_t *r, uint64_t *token)
{
    return lk__holder_token(__func__, LK__HANDLE(r), &lk__redlock_kind, NULL, token);
}

int lk_redlock_tokenby(lk_redlock_t *r, lk_owner_t *owner, uint64_t *token)
{
    return lk__holder_token(__func__, LK__HANDLE(r), &lk__redlock_kind, owner, token);
}

int lk_redlock_remaining(lk_redlock_t *r, int64_t *ms)
{
    return lk__holder_remaining(__func__, LK__HANDLE(r), &lk__redlock_kind, NULL, ms);
}

int lk_redlock_remainingby(lk_redlock_t *r, lk_owner_t *owner, int64_t *ms)
{
    return lk__holder_remaining(__func__, LK__HANDLE(r), &lk__redlock_kind, owner, ms);
}

int lk_redlock_check(lk_redlock_t *r)
{
    return lk__holder_check(LK__HANDLE(r), &lk__redlock_kind, NULL);
}

int lk_redlock_checkby(lk_redlock_t *r, lk_owner_t *owner)
{
    return lk__holder_check(LK__HANDLE(r), &lk__redlock_kind, owner);
}

int lk_redlock_extend(lk_redlock_t *r, int64_t lease_ms)
{
    return lk__holder_extend(LK__HANDLE(r), &lk__redlock_kind, NULL, lease_ms);
}

int lk_redlock_extendby(lk_redlock_t *r, lk_owner_t *owner, int64_t lease_ms)
{
    return lk__holder_extend(LK__HANDLE(r), &lk__redlock_kind, owner, lease_ms);
}

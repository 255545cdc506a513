/* SPDX-License-Identifier: MIT */
/* hold.c - calls of a thread or an owner on the leased permits that it took without an id: token, remaining, check, extend */
#include "semaphore/semaphore.h"

int lk_sem_token(lk_sem_t *s, uint64_t *token)
{
    return lk__holder_token(__func__, LK__HANDLE(s), &lk__sem_kind, NULL, token);
}

int lk_sem_tokenby(lk_sem_t *s, lk_owner_t *owner, uint64_t *token)
{
    return lk__holder_token(__func__, LK__HANDLE(s), &lk__sem_kind, owner, token);
}

int lk_sem_remaining(lk_sem_t *s, int64_t *ms)
{
    return lk__holder_remaining(__func__, LK__HANDLE(s), &lk__sem_kind, NULL, ms);
}

int lk_sem_remainingby(lk_sem_t *s, lk_owner_t *owner, int64_t *ms)
{
    return lk__holder_remaining(__func__, LK__HANDLE(s), &lk__sem_kind, owner, ms);
}

int lk_sem_check(lk_sem_t *s)
{
    return lk__holder_check(LK__HANDLE(s), &lk__sem_kind, NULL);
}

int lk_sem_checkby(lk_sem_t *s, lk_owner_t *owner)
{
    return lk__holder_check(LK__HANDLE(s), &lk__sem_kind, owner);
}

int lk_sem_extend(lk_sem_t *s, int64_t lease_ms)
{
    return lk__holder_extend(LK__HANDLE(s), &lk__sem_kind, NULL, lease_ms);
}

int lk_sem_extendby(lk_sem_t *s, lk_owner_t *owner, int64_t lease_ms)
{
    return lk__holder_extend(LK__HANDLE(s), &lk__sem_kind, owner, lease_ms);
}

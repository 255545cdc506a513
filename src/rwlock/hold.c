/* SPDX-License-Identifier: MIT */
/* hold.c - calls of a holder on its hold: token, remaining, check, consistent */
#include "rwlock/rwlock.h"

int lk_rwlock_token(lk_rwlock_t *rw, uint64_t *token)
{
    return lk__holder_token(__func__, LK__HANDLE(rw), &lk__rwlock_kind, token);
}

int lk_rwlock_remaining(lk_rwlock_t *rw, int64_t *ms)
{
    return lk__holder_remaining(__func__, LK__HANDLE(rw), &lk__rwlock_kind, ms);
}

int lk_rwlock_check(lk_rwlock_t *rw)
{
    return lk__holder_check(LK__HANDLE(rw), &lk__rwlock_kind);
}

int lk_rwlock_consistent(lk_rwlock_t *rw)
{
    return lk__holder_consistent(LK__HANDLE(rw), &lk__rwlock_kind);
}

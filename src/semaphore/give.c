/* SPDX-License-Identifier: MIT */
/* give.c - post and release */
#include "semaphore/semaphore.h"

int lk_sem_post(lk_sem_t *s)
{
    return lk_sem_release(s, 1);
}

int lk_sem_release(lk_sem_t *s, unsigned n)
{
    return lk_sem_releaseby(s, NULL, n);
}

int lk_sem_releaseby(lk_sem_t *s, lk_owner_t *owner, unsigned n)
{
    struct lk__semcall call;
    int rc = lk__sem_entergiver(s, owner, &call);
    if (rc == ECANCELED && lk__sem_isinherited(s))
        return lk__fail(EPERM, "%s: held by another process, not by this one", s->lk_name);
    if (rc != 0)
        return rc;
    if (n > LK_SEM_VALUE_MAX)
        rc = lk__fail(EINVAL, "%s: %u permits at once: at most %d", call.what, n, LK_SEM_VALUE_MAX);
    else if (n > 0)
        rc = lk__sem_isleased(call.sem) ? lk__leased_give(&call, n) : lk__counted_give(&call, (long)n);
    return lk__sem_gave(&call, rc);
}

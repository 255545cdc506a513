/* SPDX-License-Identifier: MIT */
/*
 * counted.c - taking and giving permits that are a bare number
 *
 * What is taken is nobody's: there is no lease and nothing to renew. A request that got no answer is
 * settled by the once-record: asked again it finds its result, given up it is finished, and what it took
 * is given back.
 */
#include "semaphore/semaphore.h"

#include <stdio.h>
#include <string.h>

enum { SETTLED_MS = 30000 }; /* so long the library tries to give back what got no answer */

struct counted {
    struct lk__take take;
    const struct lk__semcall *call;
    struct lk__slot slot;
    char n[16];
};

static int seal(struct lk__take *take)
{
    struct counted *counted = take->arg;
    const struct lk__semcall *call = counted->call;
    const struct lk__sem *sem = call->sem;
    const struct lk__slot *slot = &counted->slot;
    struct lk__hold *hold = take->hold;
    const char *n = counted->n;
    char letters[8];
    lk__sem_letters(letters, sem, take->try_only);
    snprintf(hold->id, sizeof hold->id, "%s:%s:%s", slot->owner, slot->number, n);

    const char *ask[] = { hold->id,
                          slot->owner,
                          slot->number,
                          n,
                          call->initial,
                          letters,
                          sem->channel,
                          sem->terms.liveness_text,
                          sem->terms.claim_text,
                          NULL,
                          NULL,
                          NULL };
    const char *leave[] = { hold->id, slot->owner, slot->number, n, letters, sem->channel, sem->terms.claim_text };
    int rc = lk__command_seal(&take->waiter.ask, &lk__lua_semaphore_take, sem->keys, ask, 12);
    if (rc == 0)
        rc = lk__command_seal(&hold->release, &lk__lua_semaphore_leave, sem->keys, leave, 7);
    return rc;
}

/* The thread was cancelled: what lk__counted_take() and its callers would do on return. */
static void unwind(struct lk__take *take)
{
    struct counted *counted = take->arg;
    lk__slot_put(&counted->call->sem->object, &counted->call->sem->slots, &counted->slot, false);
    lk__sem_leave(counted->call, ECANCELED);
}

/* Under one number; ESTALE: it is overtaken, and nothing was taken. */
static int take_once(const struct lk__semcall *call, unsigned n, int64_t limit_us)
{
    struct counted counted = {
        .take = { .frame = &call->frame,
                  .owner = call->frame.self->owner,
                  .lease_ms = SETTLED_MS,
                  .seal = seal,
                  .foreign = &call->sem->foreign,
                  .unleased = true,
                  .unwind = unwind },
        .call = call,
    };
    counted.take.arg = &counted;
    snprintf(counted.n, sizeof counted.n, "%u", n);
    int rc = lk__slot_take(&call->sem->object, &call->sem->slots, &counted.slot);
    if (rc != 0)
        return rc;
    rc = lk__take_run(&counted.take, limit_us);
    lk__slot_put(&call->sem->object, &call->sem->slots, &counted.slot, rc == 0 || rc == EBUSY || rc == ETIMEDOUT);
    return rc;
}

int lk__counted_take(const struct lk__semcall *call, unsigned n, int64_t limit_us)
{
    for (int numbers = 0; numbers < LK__NUMBERS_MAX; numbers++) {
        int rc = take_once(call, n, limit_us);
        if (rc != ESTALE)
            return rc;
    }
    return lk__once_overtaken(call->frame.object);
}

int lk__counted_give(const struct lk__semcall *call, long n)
{
    struct lk__sem *sem = call->sem;
    char number[24], letters[8];
    int64_t verdict;
    snprintf(number, sizeof number, "%ld", n);
    lk__sem_letters(letters, sem, false);
    const char *more[] = { number, call->initial, letters, sem->channel, sem->terms.claim_text };
    struct lk__once give = {
        .script = &lk__lua_semaphore_give, .keys = sem->keys, .more = more, .count = 5, .lasting = true
    };
    int rc = lk__once(&call->frame, &sem->slots, &give, &verdict);
    if (rc != 0 || verdict == 1)
        return rc;
    return lk__fail(EOVERFLOW, "%s: that would be more than %d permits", call->what, LK_SEM_VALUE_MAX);
}

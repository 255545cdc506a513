/* SPDX-License-Identifier: MIT */
/*
 * counted.c - taking and giving permits that are a plain number
 *
 * A permit has no owner once it is taken: there is no lease and nothing to renew. A request that got no answer is
 * settled by the idempotency record: sent again it finds its result; given up it is recorded as finished, and what
 * it took is given back.
 */
#include "semaphore/semaphore.h"

#include <stdio.h>
#include <string.h>

enum {
    SETTLED_MS = 30000
}; /* how long the library tries to give back what a request without an answer may have taken */

struct counted {
    struct lk__acquire acquire;
    struct lk__semcall *call;
    struct lk__slot slot;
    unsigned n;
};

/* What gives it back: the request that took, by its number. NULL: with an error text. */
static struct lk__outboxentry *make_leave(const struct counted *counted)
{
    char id[LK__OWNER_ID];
    const struct lk__object *object = counted->call->op.object;
    const struct lk__sem *sem = counted->call->sem;
    const struct lk__slot *slot = &counted->slot;
    snprintf(id, sizeof id, "%s:%lld:%u", slot->owner, (long long)slot->nth, counted->n);
    struct lk__outboxentry *leave = lk__outboxentry_new(&object->client->dog, id, object->block);
    const struct lk__semaphore_leave_args args = { .channel = lk__sem_block(sem)->channel,
                                                   .flags = lk__sem_flags(sem) };
    const struct lk__command command = lk__object_command(object, &lk__lua_semaphore_leave, &args);
    if (leave != NULL)
        lk__outboxentry_set(leave, &command, sizeof args);
    return leave;
}

/* The thread was cancelled: what lk__counted_take() and its callers would do on return. */
static void unwind(struct lk__acquire *acquire)
{
    struct counted *counted = LK__CONTAINER(acquire, struct counted, acquire);
    lk__outboxentry_unref(acquire->release);
    lk__slot_put(&counted->call->sem->object, &counted->call->sem->slots, &counted->slot, false);
    lk__op_leave(&counted->call->op, ECANCELED);
}

/* With its slot. */
static int run(struct counted *counted)
{
    const struct lk__sem *sem = counted->call->sem;
    struct lk__acquire *acquire = &counted->acquire;
    lk__acquire_plan(acquire);
    const struct lk__semaphore_take_args args = { .initial = counted->call->value,
                                                  .channel = lk__sem_block(sem)->channel,
                                                  .flags = lk__sem_flags(sem) | lk__sem_telltotal(counted->call) |
                                                           (acquire->try_only ? LK__SEMAPHORE_TRY : 0) };
    acquire->ask = lk__object_command(&sem->object, &lk__lua_semaphore_take, &args);
    acquire->read = lk__semaphore_take_read;
    acquire->release = make_leave(counted);
    int rc = acquire->release != NULL ? lk__acquire_run(acquire) : ENOMEM;
    lk__outboxentry_unref(acquire->release);
    return rc;
}

/* One attempt, under one number of its slot; ESTALE: the number is overtaken, and nothing was taken. */
static int take_once(struct lk__semcall *call, unsigned n, const struct lk__how *how)
{
    struct counted counted = {
        .acquire = { .op = &call->op,
                     .how = how,
                     .lease_ms = SETTLED_MS,
                     .interruptible = call->attr->interruptible,
                     .redisson = lk__sem_redisson(call->sem),
                     .cancellable = true,
                     .unwind = unwind },
        .call = call,
        .n = n,
    };
    int rc = lk__slot_take(&call->sem->object, &call->sem->slots, &counted.slot);
    if (rc != 0)
        return rc;
    rc = run(&counted);
    lk__sem_compare(call, counted.acquire.waiter.total);
    call->absent = counted.acquire.waiter.absent;
    bool answered = rc == 0 || rc == EBUSY || rc == ETIMEDOUT || rc == EINTR;
    lk__slot_put(&call->sem->object, &call->sem->slots, &counted.slot, answered);
    return rc;
}

int lk__counted_take(struct lk__semcall *call, unsigned n, const struct lk__how *how)
{
    for (int numbers = 0; numbers < LK__NUMBERS_MAX; numbers++) {
        int rc = take_once(call, n, how);
        if (rc != ESTALE)
            return lk__sem_waited(call, rc);
    }
    return lk__idempotent_overtaken(call->op.object);
}

int lk__counted_give(const struct lk__semcall *call, long n)
{
    const struct lk__sem *sem = call->sem;
    const struct lk__semaphore_give_args args = { .n = n,
                                                  .initial = call->value,
                                                  .most = lk__semattr_most(call->attr),
                                                  .channel = lk__sem_block(sem)->channel,
                                                  .flags = lk__sem_flags(sem) };
    struct lk__idempotent give = { .command = { .script = &lk__lua_semaphore_give, .args = &args },
                                   .args_size = sizeof args,
                                   .lasting = true };
    enum lk__verdict verdict;
    int rc = lk__sem_idempotent(call, &give, &verdict);
    if (rc == 0 && verdict == LK__ABSENT)
        rc = lk__gone(call->op.object);
    if (rc == 0 && verdict == LK__IMPOSSIBLE)
        rc = lk__fail(EOVERFLOW, "%s: that would be more than %lld permits", call->what,
                      (long long)lk__semattr_most(call->attr));
    return rc;
}

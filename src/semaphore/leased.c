/* SPDX-License-Identifier: MIT */
/*
 * leased.c - taking and giving permits that have leases
 *
 * Each call that takes makes one hold, renewed by the watchdog, of one permit or several. Given back in
 * parts, the hold shrinks; with its last part it ends before the release is sent, as that of a mutex.
 */
#include "semaphore/semaphore.h"

#include <stdio.h>

struct leased {
    struct lk__acquire acquire;
    struct lk__semcall *call;
};

static void unwind(struct lk__acquire *acquire)
{
    lk__op_leave(&LK__CONTAINER(acquire, struct leased, acquire)->call->op, ECANCELED);
}

static int run(struct leased *leased)
{
    const struct lk__sem *sem = leased->call->sem;
    struct lk__acquire *acquire = &leased->acquire;
    lk__acquire_plan(acquire);
    const struct lk__semaphore_permit_take_args args = { .lease_ms = acquire->asked_ms,
                                                         .initial = leased->call->value,
                                                         .flags = lk__sem_flags(sem) | lk__sem_telltotal(leased->call) |
                                                                  (acquire->try_only ? LK__SEMAPHORE_TRY : 0) };
    acquire->ask = lk__object_command(&sem->object, &lk__lua_semaphore_permit_take, &args);
    acquire->read = lk__semaphore_permit_take_read;
    acquire->give_back =
        lk__object_command(&sem->object, &lk__lua_semaphore_permit_release, &lk__sem_block(sem)->release);
    acquire->renewal = &lk__lua_semaphore_permit_renew;
    return lk__acquire_run(acquire);
}

/* As one acquisition; ESTALE: parts of it were taken away before it was known here, and the others went back. */
static int take_once(struct lk__semcall *call, unsigned n, const struct lk__how *how, const char *id)
{
    char suffix[LK__ID_LENGTH + 16];
    snprintf(suffix, sizeof suffix, ":%u%s%s", n, id != NULL ? ":" : "", id != NULL ? id : "");
    struct leased leased = {
        .acquire = { .op = &call->op,
                     .how = how,
                     .ownerless = id != NULL,
                     .holds = (int)n,
                     .lease_ms = call->attr->lease_ms,
                     .max_hold_ms = call->attr->max_hold_ms,
                     .interruptible = call->attr->interruptible,
                     .suffix = suffix,
                     .cancellable = true,
                     .unwind = unwind },
        .call = call,
    };
    int rc = run(&leased);
    lk__sem_compare(call, leased.acquire.waiter.total);
    call->absent = leased.acquire.waiter.absent;
    return rc;
}

int lk__leased_take(struct lk__semcall *call, unsigned n, const struct lk__how *how, const char *id)
{
    for (int numbers = 0; numbers < LK__NUMBERS_MAX; numbers++) {
        int rc = take_once(call, n, how, id);
        if (rc != ESTALE)
            return lk__sem_waited(call, rc);
    }
    return lk__idempotent_overtaken(call->op.object);
}

/* --- giving back ------------------------------------------------------------------------------------------- */

/* Ask the server to take back all but `kept` of what a hold has. 0 and its answer. */
static int send_shrink(const struct lk__semcall *call, struct lk__hold *hold, int kept, enum lk__verdict *verdict)
{
    const struct lk__semblock *block = lk__sem_block(call->sem);
    const struct lk__semaphore_permit_release_args args = { .kept = kept,
                                                            .flags = block->release.flags };
    const struct lk__command command = { .script = &lk__lua_semaphore_permit_release,
                                         .keys = &block->keys,
                                         .args = &args };
    struct lk__call shrink = { .node = lk__object_node(&call->sem->object),
                               .what = call->what,
                               .command = &command,
                               .sent = { .id = hold->lease.id },
                               .by_steps = true };
    int rc = lk__call_run(&shrink);
    *verdict = shrink.answer.verdict;
    return rc;
}

/* Give back all but `kept` of what a hold has. */
static int shrink(const struct lk__semcall *call, struct lk__hold *hold, int kept)
{
    enum lk__verdict verdict;
    hold->holds = kept;
    if (!lk__lease_isgood(&hold->lease, NULL))
        return lk__gone(call->op.object);
    lk__lease_shrink(&hold->lease, kept);
    int rc = send_shrink(call, hold, kept, &verdict);
    if (rc != 0) { /* the other parts are renewed no more */
        lk__error_settles(lk__lease_endsby(&hold->lease));
        return rc;
    }
    if (verdict == LK__DONE)
        return 0;
    lk__lease_lose(&hold->lease, LK_REASON_GONE);
    return lk__gone(call->op.object);
}

int lk__leased_give(const struct lk__semcall *call, unsigned n)
{
    struct lk__object *object = call->op.object;
    uint64_t owner = lk__op_owner(&call->op);
    int worst = 0;
    unsigned held = lk__object_count(object, owner, n);
    if (held < n)
        return lk__fail(EPERM, "%s: %s holds %u permits, not %u", call->what, lk__op_holder(&call->op), held, n);
    while (n > 0) {
        struct lk__hold *hold = lk__object_hold(object, owner); /* the oldest */
        unsigned part = (unsigned)hold->holds;
        int rc;
        if (part > n) {
            rc = shrink(call, hold, (int)(part - n));
            n = 0;
        } else {
            n -= part;
            rc = lk__op_giveback(&call->op, hold);
        }
        if (worst == 0)
            worst = rc;
    }
    return worst;
}

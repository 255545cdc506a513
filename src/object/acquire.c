/* SPDX-License-Identifier: MIT */
/*
 * acquire.c - becoming the holder of something that has a lease, and giving it back
 *
 * Everything that may fail for want of memory comes before the first byte is sent: the hold, with its
 * place on the watchdog's heap. Asking, renewing and giving back need no memory.
 *
 * Given back, the hold ends here before its release is sent: a late answer then finds nobody who still believes in
 * it. Whatever comes back, it is no longer held by the caller. A release without a good answer goes on in the
 * background, as long as there may be something to release; so does one that went by steps, to serve who waits.
 */
#include "object/acquire.h"
#include "base/probe.h"

#include <sched.h>

/* How long others may have the processor before it is theirs for longer than a hand-over takes, and what follows. */
enum { YIELD_US = 1000, HURRY_US = 10000000 };

/* --- what a caller says of leases in attributes, and of one acquire ------------------------------------------------- */

int lk__attr_leases(int64_t lease_ms, int64_t max_hold_ms)
{
    if (lease_ms != 0 && (lease_ms < LK__LEASE_MIN_MS || lease_ms > LK__LEASE_MAX_MS))
        return lk__fail(EINVAL, "a lease of %lld ms: at least %d ms, at most a day", (long long)lease_ms,
                        LK__LEASE_MIN_MS);
    if (max_hold_ms != 0 && max_hold_ms < LK__LEASE_MIN_MS)
        return lk__fail(EINVAL, "max_hold_ms is %lld: at least %d, or 0 for no limit", (long long)max_hold_ms,
                        LK__LEASE_MIN_MS);
    return 0;
}

int lk__object_leasecheck(const struct lk__object *object, int64_t lease_ms)
{
    int64_t skew_ms = object->client->options->clock_skew_ms;
    if (lease_ms >= LK__SKEWS_MIN * skew_ms)
        return 0;
    return lk__fail(EINVAL, "%s: a lease of %lld ms: at least %d x clock_skew, %lld ms", object->what,
                    (long long)lease_ms, LK__SKEWS_MIN, (long long)(LK__SKEWS_MIN * skew_ms));
}

int lk__how_take(struct lk__how *how, const lk_how_t *given)
{
    lk_how_t taken = LK_HOW_INIT;
    int64_t limit_us = 0;
    int rc = lk__sized_read(&taken, sizeof taken, given, LK__THROUGH(lk_how_t, owner), "lk_how_t");
    if (rc == 0)
        rc = lk__attr_leases(taken.lease_ms, 0);
    if (rc == 0 && (taken.fixed < -1 || taken.fixed > 1))
        rc = lk__fail(EINVAL, "fixed is %d: 1 or -1, or 0 for what the attributes say", taken.fixed);
    if (rc == 0)
        rc = lk__deadline_in(taken.timeout_ms, &limit_us);
    *how = (struct lk__how){
        .limit_us = limit_us, .lease_ms = taken.lease_ms, .fixed = taken.fixed, .by = taken.owner
    };
    return rc;
}

/* --- acquiring -------------------------------------------------------------------------------------------------------- */

void lk__acquire_plan(struct lk__acquire *acquire)
{
    const struct lk__how *how = acquire->how;
    int64_t lease_ms = how->lease_ms != 0 ? how->lease_ms : acquire->lease_ms;
    if (lease_ms == 0)
        lease_ms = acquire->op->object->client->options->lease_ms;
    if (how->fixed != 0)
        acquire->fixed = how->fixed > 0;
    bool capped = acquire->max_hold_ms != 0 && acquire->max_hold_ms < lease_ms;
    acquire->lease_ms = lease_ms;
    acquire->asked_ms = capped ? acquire->max_hold_ms : lease_ms;
    acquire->began_us = lk__now_us();
    acquire->try_only = acquire->began_us >= how->limit_us;
}

static void set_block(struct lk__lease *lease, struct lk__block *block)
{
    lk__block_unref(lease->release.block);
    lease->release.block = lk__block_ref(block);
}

static int make_hold(struct lk__acquire *acquire)
{
    uint64_t owner = acquire->ownerless ? 0 : lk__op_owner(acquire->op);
    acquire->hold = lk__object_newhold(acquire->op->object, owner, acquire->suffix);
    if (acquire->hold == NULL)
        return ENOMEM;
    struct lk__lease *lease = &acquire->hold->lease;
    lease->fixed = acquire->fixed;
    lease->lease_ms = lease->wanted_ms = (int)acquire->lease_ms;
    lease->release.command = acquire->give_back;
    if (acquire->op->object->traits.robust) /* until the acquire says that it is held */
        lease->release.flags = LK__SENT_UNTOLD;
    if (acquire->block != NULL)
        set_block(lease, acquire->block);
    lease->renewal = acquire->renewal;
    lease->renewal_args = acquire->renewal_args;
    lease->parts = (unsigned short)acquire->holds;
    acquire->hold->robust = acquire->op->object->traits.robust;
    acquire->hold->holds = acquire->holds;
    acquire->hold->reads = acquire->reads;
    return 0;
}

static bool disagrees(struct lk__waiter *waiter, const char *found)
{
    struct lk__acquire *acquire = LK__CONTAINER(waiter, struct lk__acquire, waiter);
    return lk__settings_differ(acquire->op->object, acquire->settings->mine, found);
}

static void waits_long(struct lk__patience *patience)
{
    const struct lk__acquire *acquire = LK__CONTAINER(patience, struct lk__acquire, waiter.patience);
    lk__object_waitslong(acquire->op->object, acquire->ownerless ? 0 : lk__op_owner(acquire->op));
}

static void unwind(struct lk__waiter *waiter);

static int prepare(struct lk__acquire *acquire)
{
    struct lk__waiter *waiter = &acquire->waiter;
    struct lk__object *object = acquire->op->object;
    int64_t warn_ms = object->client->options->warn_wait_ms;
    lk__waiter_init(waiter);
    if (acquire->release == NULL && lk__object_leasecheck(object, acquire->asked_ms) != 0)
        return EINVAL;
    if (acquire->release == NULL && make_hold(acquire) != 0)
        return ENOMEM;
    if (acquire->interruptible && !acquire->try_only)
        lk__parker_beinterruptible(&waiter->parker, true);
    if (warn_ms > 0 && !acquire->try_only && !acquire->queues) { /* for a condition one may wait for long */
        waiter->patience.until_us = acquire->began_us + warn_ms * 1000;
        waiter->patience.tell = waits_long;
    }
    waiter->release = acquire->release != NULL ? acquire->release : &acquire->hold->lease.release;
    waiter->what = object->what;
    waiter->name = lk__object_name(object);
    waiter->ask = acquire->ask;
    waiter->read = acquire->read;
    waiter->terms = &object->client->terms[object->kind->counted];
    waiter->settings = acquire->settings;
    waiter->disagrees = disagrees;
    waiter->unwind = unwind;
    waiter->cancel_state = acquire->cancellable ? acquire->op->api.cancel_state : PTHREAD_CANCEL_DISABLE;
    lk__waiter_set(&object->client->waiters, waiter,
                   (struct lk__acquirefsm_settings){ .limit_us = acquire->how->limit_us,
                                                     .lease_ms = acquire->asked_ms,
                                                     .try_only = acquire->try_only,
                                                     .compare = acquire->settings != NULL,
                                                     .recorded = acquire->release != NULL,
                                                     .confirmed = acquire->queues });
    LK__PROBE2(acquire, waiter->name, waiter->release->id);
    return acquire->begin != NULL ? acquire->begin(acquire) : 0;
}

/* Until when what this client holds of it is good, by the last of its leases; 0: it holds nothing. */
static int64_t good_here(struct lk__object *object)
{
    int64_t last_us = 0;
    lk__mu_lock(&object->mu);
    for (struct lk__link *l = lk__list_first(&object->holds); l != NULL; l = lk__list_next(&object->holds, l)) {
        int64_t until_us = atomic_load(&LK__CONTAINER(l, struct lk__hold, mine)->lease.valid_until_us);
        last_us = until_us > last_us ? until_us : last_us;
    }
    lk__mu_unlock(&object->mu);
    return last_us;
}

/* Others of this process were before it all the time. The server was not asked, but one of them may be the holder. */
static int late_here(struct lk__object *object)
{
    lk__fail(ETIMEDOUT, "%s: not within the time; other threads of this process wait, too", object->what);
    lk__error_leaves(good_here(object));
    return ETIMEDOUT;
}

/* Queue locally first: only the head of the local queue waits in Redis, for messages of Redisson's as well. */
static int wait_for_it(struct lk__acquire *acquire)
{
    struct lk__object *object = acquire->op->object;
    struct lk__waiter *waiter = &acquire->waiter;
    struct lk__qnode *qnode = &acquire->qnode;
    struct lk__attempt attempt;
    bool queues = acquire->queue != NULL && !acquire->try_only;
    int rc = queues ? lk__localqueue_enter(acquire->queue, qnode, &waiter->parker, acquire->how->limit_us,
                                           &waiter->patience)
                    : 0;
    acquire->contended = qnode->behind;
    if (rc == ETIMEDOUT)
        return late_here(object);
    if (rc != 0)
        return lk__fail(rc, "%s: the client was closed", object->what);
    acquire->awaits_redisson = acquire->redisson != NULL && !acquire->try_only;
    if (acquire->awaits_redisson)
        lk__redissonwake_join(acquire->redisson, waiter);
    lk__waiters_begin(&object->client->waiters, waiter, &attempt);
    rc = lk__waiters_end(&attempt);
    if (acquire->awaits_redisson)
        lk__redissonwake_leave(acquire->redisson, waiter);
    if (queues)
        lk__localqueue_leave(acquire->queue, qnode);
    return rc;
}

/*
 * When to renew first: a claim is confirmed soon, with the whole lease; a fixed lease at once, and never again. The
 * client that handed over did not know our lease: one that is shorter than the claim is set at once, too.
 */
static int64_t first_renewal(const struct lk__acquire *acquire, int64_t now_us)
{
    const struct lk__acquirefsm_result *result = &acquire->waiter.machine.result;
    int64_t lease_ms = acquire->hold->lease.lease_ms;
    bool capped = acquire->max_hold_ms != 0 && acquire->max_hold_ms <= lease_ms;
    bool claimed = result->claimed && acquire->confirmed_us == 0;
    if (acquire->fixed || capped)
        return claimed ? now_us : LK__NEVER;
    if (acquire->confirmed_us != 0)
        return acquire->confirmed_us + lease_ms * 1000 / 3;
    return result->claimed && result->valid_until_us > now_us + lease_ms * 1000 ? now_us : result->first_us;
}

/* The client that handed over knew neither our lease nor our limit: no more is trusted than they allow. */
static int64_t good_until(const struct lk__acquire *acquire, int64_t now_us)
{
    const struct lk__acquirefsm_result *result = &acquire->waiter.machine.result;
    const struct lk__lease *lease = &acquire->hold->lease;
    if (acquire->confirmed_us != 0)
        return lk__lease_validuntil(lease, acquire->confirmed_us, acquire->asked_ms);
    if (!result->claimed)
        return result->valid_until_us;
    return lk__lesser(lk__lease_validuntil(lease, now_us, acquire->asked_ms), result->valid_until_us);
}

/* Granted a moment ago: for so long nobody else is to have it, whoever gives it back. */
static struct lk__until keep_for(struct lk__date granted, int64_t now_us, int64_t lasts_us)
{
    return (struct lk__until){ { granted.us + lasts_us, granted.epoch }, now_us + lasts_us };
}

void lk__object_droporphans(struct lk__object *object)
{
    struct lk__lease *lease;
    while ((lease = lk__watchdog_nextorphan(&object->client->dog, &object->orphans)) != NULL) {
        lk__object_drophold(object, lease->holder);
        lk__lease_unref(lease);
    }
}

/* Once the object knows the hold, another thread may give it back, if its owner is none. */
static void become_holder(struct lk__acquire *acquire, int code)
{
    const struct lk__acquirefsm_result *result = &acquire->waiter.machine.result;
    struct lk__object *object = acquire->op->object;
    struct lk__hold *hold = acquire->hold;
    struct lk__lease *lease = &hold->lease;
    int64_t now_us = lk__now_us();

    if (acquire->block != NULL) {
        lease->release.command = acquire->held_back;
        set_block(lease, object->block);
    }
    hold->token = acquire->reads > 0 ? 0 : result->token;
    lease->release.flags = 0;
    lease->release.past = result->duplicates_until;
    if (result->duplicates_until.date.us != 0) { /* a copy of the ask would set its lease again */
        lk__lease_expectduplicates(lease, acquire->asked_ms);
        lease->release.flags |= LK__SENT_AGAIN;
    }
    lease->epoch = result->granted.epoch;
    hold->began_us = now_us;
    hold->owner_died = code == EOWNERDEAD;
    if (acquire->min_hold_ms != 0)
        lease->release.until = keep_for(result->granted, now_us, acquire->min_hold_ms * 1000);
    if (acquire->fixed)
        lease->reason = LK_REASON_FIXED;
    if (acquire->max_hold_ms != 0) {
        lease->cap_us =
            lk__later(now_us, acquire->max_hold_ms > LK__NEVER / 1000 ? LK__NEVER : acquire->max_hold_ms * 1000);
        if (acquire->max_hold_ms <= lease->lease_ms)
            lease->reason = LK_REASON_MAX_HOLD;
    }
    if (!acquire->ownerless)
        lk__op_counthold(acquire->op);
    LK__PROBE4(grant, lease->name, lease->id, hold->token, now_us - acquire->began_us);
    if (lk__object_addhold(object, hold, good_until(acquire, now_us), first_renewal(acquire, now_us)))
        lk__object_droporphans(object);
}

/* End the acquire, held or not. */
static void end(struct lk__acquire *acquire, bool keep)
{
    if (!keep) {
        lk__hold_unref(acquire->hold);
        acquire->hold = NULL;
    }
    lk__waiter_destroy(&acquire->waiter);
}

/* The acquire ended without a hold. A hold at the server is released, and a place is given up at the next master, too. */
static void let_go(struct lk__acquire *acquire)
{
    const struct lk__waiter *waiter = &acquire->waiter;
    const struct lk__acquirefsm_result *result = &waiter->machine.result;
    bool fails_over = lk__options_failover(acquire->op->object->client->options);
    if (result->unknown)
        lk__acquire_takeback(acquire);
    else if (result->arrival != 0 && !acquire->unconfirmed && acquire->hold != NULL && fails_over)
        lk__lease_remember(&acquire->hold->lease, waiter->request.epoch, lk__later(lk__now_us(), acquire->asked_ms * 1000));
}

/* The thread ended while it was parked, and has left the queue at the server. */
static void unwind(struct lk__waiter *waiter)
{
    struct lk__acquire *acquire = LK__CONTAINER(waiter, struct lk__acquire, waiter);
    if (acquire->awaits_redisson)
        lk__redissonwake_leave(acquire->redisson, waiter);
    if (acquire->qnode.parker != NULL)
        lk__localqueue_leave(acquire->queue, &acquire->qnode);
    lk__object_addwaiting(acquire->op->object, -1);
    let_go(acquire);
    end(acquire, false);
    lk__free(acquire->text);
    acquire->unwind(acquire);
}

/* Its wait is over, with that code. */
static int conclude(struct lk__acquire *acquire, int rc)
{
    struct lk__object *object = acquire->op->object;
    if ((rc == 0 || rc == EOWNERDEAD) && object->client->options->wait_replicas > 0)
        rc = lk__acquire_confirm(acquire, rc);
    lk__object_addwaiting(object, -1);
    if (acquire->waiter.patience.over && !acquire->waiter.explained)
        lk__object_waitedlong(object, acquire->began_us);
    bool held = rc == 0 || rc == EOWNERDEAD, queued = acquire->waiter.machine.result.arrival != 0;
    if (held && acquire->hold != NULL)
        become_holder(acquire, rc);
    if (held)
        lk__object_acquired(object, acquire->began_us, queued || acquire->contended);
    else
        let_go(acquire);
    end(acquire, held);
    return rc;
}

static int run_once(struct lk__acquire *acquire)
{
    int rc = prepare(acquire);
    if (rc != 0) {
        end(acquire, false);
        return rc;
    }
    lk__object_addwaiting(acquire->op->object, 1);
    return conclude(acquire, wait_for_it(acquire));
}

/* Ask again, if there is time, where somebody took the grant away before replicas had it. */
static int go_on(struct lk__acquire *acquire, int rc)
{
    int64_t timeout_us = acquire->op->object->client->options->command_timeout_ms * 1000;
    int64_t until_us = acquire->try_only ? acquire->began_us + timeout_us : acquire->how->limit_us;
    while (rc == ESTALE && acquire->unconfirmed && acquire->release == NULL) {
        if (lk__now_us() >= until_us)
            return acquire->try_only ? EBUSY : ETIMEDOUT;
        acquire->unconfirmed = false;
        rc = run_once(acquire);
    }
    return rc;
}

/* The first acquire of the object, or the first in half an hour. The stack may be too small for the text. */
static int run_looking(struct lk__acquire *acquire)
{
    struct lk__object *object = acquire->op->object;
    acquire->text = lk__alloc(sizeof *acquire->text);
    if (acquire->text == NULL)
        return lk__fail(ENOMEM, "%s: out of memory for its settings", object->what);
    struct lk__settingsmark mark = lk__settings_mark(object, acquire->text);
    acquire->settings = &mark;
    int rc = go_on(acquire, run_once(acquire));
    lk__settings_note(object, &acquire->waiter.machine.result);
    lk__free(acquire->text);
    return rc;
}

int lk__acquire_run(struct lk__acquire *acquire)
{
    bool looks = !acquire->queues && lk__settings_isdue(acquire->op->object, acquire->began_us);
    return looks ? run_looking(acquire) : go_on(acquire, run_once(acquire));
}

void lk__acquire_begin(struct lk__begun *begun, struct lk__acquire *acquire)
{
    struct lk__object *object = acquire->op->object;
    assert(acquire->try_only);
    begun->acquire = acquire;
    if (lk__settings_isdue(object, acquire->began_us)) {
        begun->settings = lk__settings_mark(object, &begun->text);
        acquire->settings = &begun->settings;
    }
    begun->code = prepare(acquire);
    if (begun->code != 0)
        return;
    lk__object_addwaiting(object, 1);
    lk__waiters_begin(&object->client->waiters, &acquire->waiter, &begun->attempt);
}

int lk__acquire_end(struct lk__begun *begun)
{
    struct lk__acquire *acquire = begun->acquire;
    struct lk__object *object = acquire->op->object;
    int rc = begun->code;
    if (rc != 0)
        end(acquire, false);
    else
        rc = go_on(acquire, conclude(acquire, lk__waiters_end(&begun->attempt)));
    if (acquire->settings != NULL)
        lk__settings_note(object, &acquire->waiter.machine.result);
    return rc;
}

/* --- giving it back ------------------------------------------------------------------------------------------------- */

int lk__gone(const struct lk__object *object)
{
    return lk__fail(ESTALE, "%s: the lease was lost before this; somebody else may hold it", object->what);
}

/*
 * It was handed on: whoever has it now may wait for this processor, and this thread has nothing urgent to do. Where
 * others then keep the processor for long it is not tried again for a while.
 */
static void let_next_go(lk_client_t *client)
{
    int64_t began_us = lk__now_us(), hurried_us = atomic_load(&client->hurried_us);
    if (hurried_us != 0 && began_us - hurried_us < HURRY_US)
        return;
    sched_yield();
    if (lk__now_us() - began_us > YIELD_US)
        atomic_store(&client->hurried_us, began_us);
}

void lk__release_begin(struct lk__releasing *releasing, struct lk__object *object, struct lk__hold *hold,
                       struct lk__outboxentry *release)
{
    struct lk__lease *lease = &hold->lease;
    int64_t marked_until_us = object->traits.robust ? lk__hold_marked(hold) : 0;
    releasing->object = object;
    releasing->hold = hold;
    releasing->release = release;
    releasing->ended = lk__lease_end(lease, &releasing->end_us);
    if (!releasing->ended)
        return;
    lk__object_gaveback(object, hold);
    lk__hold_given(hold);
    releasing->call = (struct lk__call){
        .node = lk__object_node(object),
        .what = object->what,
        .command = &release->command,
        .sent = lk__outboxentry_sent(release),
        .by_steps = true,
        .marked_until_us = marked_until_us,
    };
    lk__call_begin(&releasing->ongoing, &releasing->call);
}

int lk__release_end(struct lk__releasing *releasing)
{
    struct lk__object *object = releasing->object;
    struct lk__lease *lease = &releasing->hold->lease;
    struct lk__outboxentry *release = releasing->release;
    const struct lk__call *call = &releasing->call;
    const struct lk__answer *answer = &call->answer;
    if (!releasing->ended)
        return lk__gone(object);
    int rc = lk__call_end(&releasing->ongoing);
    if (rc != 0) {
        lk__outbox_send(&object->client->dog, release, releasing->end_us);
        lk__error_settles(releasing->end_us);
        return rc;
    }
    lk__lease_released(lease, (struct lk__date){ answer->server_us, call->sent.epoch });
    if (call->stepped)
        lk__outbox_handon(&object->client->dog, release, releasing->end_us);
    if (answer->server_us != 0) /* most releases that nobody waited for have no date */
        let_next_go(object->client);
    bool own = release == &lease->release;
    if (answer->verdict != LK__DONE && !(own && call->repeated)) { /* else a copy of this release may have done it */
        lk__lease_wasgone(lease);
        return lk__gone(object);
    }
    if (own && lk__options_failover(object->client->options))
        lk__lease_remember(lease, call->epoch, releasing->end_us);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * take.c - becoming the holder of something that has a lease
 *
 * Everything that may fail for want of memory comes before the first byte is sent: the hold, with its
 * place on the watchdog's heap. To ask, renew and give back needs none.
 */
#include "client/client.h"

static int prepare(struct lk__take *take, int64_t limit_us)
{
    struct lk__object *object = take->frame->object;
    struct lk__waiter *waiter = &take->waiter;
    lk__waiter_init(waiter);
    take->hold = lk__client_newhold(object->client, object, take->owner);
    if (take->hold == NULL)
        return ENOMEM;
    struct lk__hold *hold = take->hold;
    hold->fixed = take->fixed;
    hold->tied = take->tied;
    hold->lease_ms = take->lease_ms != 0 ? take->lease_ms : object->client->options->lease_ms;
    hold->wanted_ms = hold->lease_ms;

    int64_t asked_ms = hold->lease_ms;
    if (take->max_hold_ms != 0 && take->max_hold_ms < asked_ms)
        asked_ms = take->max_hold_ms;
    take->try_only = take->began_us >= limit_us;
    waiter->hold = hold;
    waiter->what = object->what;
    waiter->machine.limit_us = limit_us;
    waiter->machine.lease_ms = asked_ms;
    waiter->machine.try_only = take->try_only;
    waiter->machine.recorded = take->unleased;
    take->set_commands(take);
    return 0;
}

static void unwind(struct lk__waiter *waiter);

static int wait_in_redis(struct lk__take *take)
{
    struct lk__room *room = &take->frame->object->client->room;
    take->waiter.unwind = take->unwind != NULL ? unwind : NULL;
    take->waiter.cancel_state = take->frame->manners.cancel_state;
    if (take->foreign == NULL || take->try_only)
        return lk__room_wait(room, &take->waiter);
    lk__foreign_join(take->foreign, &take->waiter);
    int rc = lk__room_wait(room, &take->waiter);
    lk__foreign_leave(take->foreign, &take->waiter);
    return rc;
}

/* In line first, where only the first one of a process goes further. */
static int wait_for_it(struct lk__take *take)
{
    struct lk__object *object = take->frame->object;
    struct lk__place place;
    if (!take->in_line || take->try_only)
        return wait_in_redis(take);
    take->contended = lk__line_length(&object->line) > 0;
    int rc = lk__line_enter(&object->line, &place, &take->waiter.parker, take->waiter.machine.limit_us);
    if (rc == ETIMEDOUT)
        return lk__fail(rc, "%s: not within the time; other threads of this process wait, too", object->what);
    if (rc != 0)
        return lk__fail(rc, "%s: the client was closed", object->what);
    rc = wait_in_redis(take);
    lk__line_leave(&object->line, &place);
    return rc;
}

/*
 * When to renew first: a claim is confirmed soon, with the whole lease; a fixed one at once, and never again. Who
 * handed it over did not know our lease: one that is shorter than the claim is set at once, too.
 */
static int64_t first_renewal(const struct lk__take *take)
{
    const struct lk__acquire *a = &take->waiter.machine;
    int64_t now_us = lk__now_us(), lease_ms = take->hold->lease_ms;
    bool capped = take->max_hold_ms != 0 && take->max_hold_ms <= lease_ms;
    if (take->fixed || capped)
        return a->claimed ? now_us : LK__NEVER;
    return a->claimed && a->valid_until_us > now_us + lease_ms * 1000 ? now_us : a->first_us;
}

/* Who handed it over knew neither our lease nor our limit: the first renewal sets what they allow, and no more. */
static int64_t good_until(const struct lk__take *take, int64_t now_us)
{
    const struct lk__acquire *a = &take->waiter.machine;
    int64_t own_us = lk__later(now_us, a->lease_ms * 1000 - lk__guard_us(a->lease_ms));
    return a->claimed && own_us < a->valid_until_us ? own_us : a->valid_until_us;
}

static void count_it(struct lk__take *take, int64_t now_us)
{
    struct lk__object *object = take->frame->object;
    lk__histogram_add(&object->client->stats[object->entry.kind].wait, now_us - take->began_us);
    atomic_fetch_add(&object->acquisitions, 1);
    if (take->waiter.machine.arrival != 0 || take->contended)
        atomic_fetch_add(&object->contended, 1);
}

static void become_holder(struct lk__take *take, int code)
{
    const struct lk__acquire *a = &take->waiter.machine;
    struct lk__object *object = take->frame->object;
    struct lk__hold *hold = take->hold;
    int64_t now_us = lk__now_us();

    hold->token = take->tokenless ? 0 : a->token;
    hold->copies_us = a->unsure_us;
    if (a->unsure_us != 0) /* a copy of the ask would set its lease again */
        lk__watchdog_doubt(hold->dog, hold, a->lease_ms);
    hold->began_us = now_us;
    hold->holds = 1;
    hold->owner_died = code == EOWNERDEAD;
    if (take->min_hold_ms != 0)
        hold->keep_until_us = a->grant_server_us + take->min_hold_ms * 1000;
    if (take->fixed)
        hold->reason = LK_REASON_FIXED;
    if (take->max_hold_ms != 0) {
        hold->cap_us = lk__later(now_us, take->max_hold_ms > LK__NEVER / 1000 ? LK__NEVER : take->max_hold_ms * 1000);
        if (take->max_hold_ms <= hold->lease_ms)
            hold->reason = LK_REASON_MAX_HOLD;
    }
    lk__object_addhold(object, hold);
    lk__watchdog_take(hold->dog, hold, good_until(take, now_us), first_renewal(take));
    count_it(take, now_us);
}

/* An ask that got no answer is given back: now, and once more when no copy of it can come any more. */
static void give_back(struct lk__take *take)
{
    const struct lk__acquire *a = &take->waiter.machine;
    int64_t end_us = lk__now_us() + 2 * a->command_us + a->lease_ms * 1000;
    int64_t past_us = take->unleased ? 0 : a->unsure_us; /* a late copy is known by the record */
    lk__watchdog_sweep(take->hold->dog, take->hold, past_us, end_us);
    lk__settles(end_us);
}

/* The end, whether or not it is held. */
static void end(struct lk__take *take, bool keep)
{
    if (!keep) {
        lk__hold_drop(take->hold);
        take->hold = NULL;
    }
    lk__waiter_destroy(&take->frame->object->client->room, &take->waiter);
}

/* The thread was cancelled while it was parked, and has left the queue. */
static void unwind(struct lk__waiter *waiter)
{
    struct lk__take *take = LK__CONTAINER(waiter, struct lk__take, waiter);
    if (take->foreign != NULL)
        lk__foreign_leave(take->foreign, waiter);
    atomic_fetch_sub(&take->frame->object->waiting, 1);
    if (waiter->machine.unknown)
        give_back(take);
    end(take, false);
    take->unwind(take);
}

int lk__take_run(struct lk__take *take, int64_t limit_us)
{
    struct lk__object *object = take->frame->object;
    take->began_us = lk__now_us();
    int rc = prepare(take, limit_us);
    bool held = false;
    if (rc == 0) {
        atomic_fetch_add(&object->waiting, 1);
        rc = wait_for_it(take);
        atomic_fetch_sub(&object->waiting, 1);
        held = rc == 0 || rc == EOWNERDEAD;
        if (held && take->unleased)
            count_it(take, lk__now_us());
        else if (held)
            become_holder(take, rc);
        else if (take->waiter.machine.unknown)
            give_back(take);
    }
    end(take, held && !take->unleased);
    return rc;
}

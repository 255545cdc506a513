/* SPDX-License-Identifier: MIT */
/* counts.c - what statistics have of an object, and of its kind */
#include "object/object.h"
#include "base/probe.h"

static struct lk__kindstats *stats_of(const struct lk__object *object)
{
    return &object->client->stats[object->kind->number];
}

void lk__object_acquired(struct lk__object *object, int64_t began_us, bool contended)
{
    struct lk__kindstats *stats = stats_of(object);
    lk__histogram_add(&stats->wait, lk__histogram_times, lk__now_us() - began_us);
    atomic_fetch_add(&object->acquisitions, 1);
    if (!contended)
        return;
    atomic_fetch_add(&object->contended, 1);
    atomic_fetch_add(&stats->contended, 1);
}

void lk__object_waitslong(struct lk__object *object, uint64_t owner)
{
    atomic_fetch_add(&stats_of(object)->long_waits, 1);
    lk__events_makeroom(&object->client->events); /* a counting semaphore's wait makes no hold, which would do it */
    lk__events_ofobject(&object->client->events, LK_EVENT_LONG_WAIT, object->kind->number, lk__object_name(object), owner);
}

void lk__object_waitedlong(struct lk__object *object, int64_t began_us)
{
    int64_t now_us = lk__now_us();
    if (lk__linepause_over(&object->client->waited, now_us))
        lk__log(LK_LOG_WARNING, "%s: waited for %lld ms", object->what, (long long)((now_us - began_us) / 1000));
}

void lk__object_gaveback(struct lk__object *object, const struct lk__hold *hold)
{
    int64_t held_us = lk__now_us() - hold->began_us;
    lk__histogram_add(&stats_of(object)->hold, lk__histogram_times, held_us);
    LK__PROBE3(release, lk__object_name(object), hold->lease->id, held_us);
}

void lk__object_addlive(struct lk__object *object, struct lk__memberstats *stats)
{
    lk__mu_lock(&object->mu);
    for (struct lk__link *l = lk__list_first(&object->holds); l != NULL; l = lk__list_next(&object->holds, l)) {
        struct lk__hold *hold = LK__CONTAINER(l, struct lk__hold, mine);
        stats->renewals += atomic_load(&hold->lease->renewals);
        stats->losses += lk__lease_waslost(hold->lease) && hold->lease->reason != LK_REASON_RELEASED;
    }
    lk__mu_unlock(&object->mu);
}

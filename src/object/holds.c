/* SPDX-License-Identifier: MIT */
/*
 * holds.c - the holds of an object: who has which, how many, what a close leaves
 *
 * Guards: object->mu the holds of all threads. Order: after client->mu, before dog->mu.
 *
 * An owner's holds are a ring of links; only the oldest of them is in the map. A permit that belongs to no owner is in
 * the map by its id.
 */
#include "object/object.h"

#include <inttypes.h>
#include <stdio.h>

_Static_assert(offsetof(struct lk__hold, lease) + sizeof(struct lk__lease) == sizeof(struct lk__hold), "the last");

/* --- one hold: made, put on, taken off ------------------------------------------------------------------------------ */

struct lk__hold *lk__object_newhold(struct lk__object *object, uint64_t owner, const char *suffix)
{
    lk_client_t *client = object->client;
    size_t id_size = object->kind->long_ids ? LK__OWNER_ID : LK__OWNER_ID_SHORT;
    lk__events_makeroom(&client->events);
    struct lk__lease *lease = lk__lease_new(&client->dog, offsetof(struct lk__hold, lease), id_size);
    if (lease == NULL)
        return NULL;
    unsigned long long acquisition = atomic_fetch_add(&client->acquisitions, 1) + 1;
    snprintf(lease->id, id_size, "%s:%" PRIu64 ":%llu%s", client->id, owner, acquisition, suffix != NULL ? suffix : "");
    struct lk__hold *hold = LK__CONTAINER(lease, struct lk__hold, lease);
    lease->holder = hold;
    lease->owner = owner;
    lease->by_id = owner == 0;
    lease->name = lk__object_name(object);
    lease->release.block = lk__block_ref(object->block);
    hold->refs = 1;
    hold->kind = object->kind->number;
    return hold;
}

static void enter_as_oldest(struct lk__object *object, struct lk__hold *hold)
{
    assert(lk__mu_held(&object->mu));
    const struct lk__lease *lease = &hold->lease;
    size_t length = strlen(lease->id);
    if (lease->owner != 0)
        hold->owned = (struct lk__entry){ NULL, (const char *)&lease->owner, sizeof lease->owner, LK__BY_OWNER };
    else
        hold->owned = (struct lk__entry){ NULL, lease->id + length - LK__ID_LENGTH, LK__ID_LENGTH, LK__BY_ID };
    lk__map_insert(&object->owners, &hold->owned);
}

struct lk__hold *lk__object_oldest(const struct lk__object *object, uint64_t owner)
{
    assert(lk__mu_held(&object->mu));
    struct lk__entry *entry = lk__map_find(&object->owners, LK__BY_OWNER, (const char *)&owner, sizeof owner);
    return entry != NULL ? LK__CONTAINER(entry, struct lk__hold, owned) : NULL;
}

bool lk__object_takeoff(struct lk__object *object, struct lk__hold *hold)
{
    assert(lk__mu_held(&object->mu));
    if (!lk__listed(&hold->mine))
        return false;
    atomic_fetch_sub(&object->client->stats[hold->kind].held, 1);
    struct lk__link *next = lk__list_first(&hold->kin);
    bool oldest = hold->owned.key != NULL;
    if (oldest)
        lk__map_remove(&object->owners, &hold->owned);
    hold->owned.key = NULL;
    lk__list_remove(&hold->kin);
    lk__list_remove(&hold->mine);
    if (oldest && next != NULL)
        enter_as_oldest(object, LK__CONTAINER(next, struct lk__hold, kin));
    return true;
}

struct lk__hold *lk__object_hold(struct lk__object *object, uint64_t owner)
{
    lk__mu_lock(&object->mu);
    struct lk__hold *hold = lk__object_oldest(object, owner);
    lk__mu_unlock(&object->mu);
    return hold;
}

bool lk__object_addhold(struct lk__object *object, struct lk__hold *hold, int64_t valid_until_us, int64_t first_us)
{
    hold->lease.orphans = &object->orphans;
    atomic_fetch_add(&object->client->stats[hold->kind].held, 1);
    lk__mu_lock(&object->mu);
    struct lk__hold *oldest = lk__object_oldest(object, hold->lease.owner);
    lk__list_append(&object->holds, &hold->mine);
    if (oldest != NULL) {
        lk__list_append(&oldest->kin, &hold->kin);
    } else {
        lk__list_init(&hold->kin);
        enter_as_oldest(object, hold);
    }
    bool orphans = lk__lease_take(&hold->lease, valid_until_us, first_us);
    lk__mu_unlock(&object->mu);
    return orphans;
}

void lk__object_drophold(struct lk__object *object, struct lk__hold *hold)
{
    if (hold->lease.state != LK__OVER)
        lk__lease_end(&hold->lease, NULL);
    bool lost = lk__lease_waslost(&hold->lease) && hold->lease.reason != LK_REASON_RELEASED;
    lk__mu_lock(&object->mu);
    bool mine = lk__object_takeoff(object, hold);
    lk__mu_unlock(&object->mu);
    if (!mine)
        return;
    atomic_fetch_add(&object->renewals, atomic_load(&hold->lease.renewals));
    if (lost)
        atomic_fetch_add(&object->losses, 1);
    lk__hold_unref(hold);
}

/* --- all of them ---------------------------------------------------------------------------------------------------- */

static void leave_over(struct lk__object *object, struct lk__link *link, struct lk__link *leftover)
{
    struct lk__hold *hold = LK__CONTAINER(link, struct lk__hold, mine);
    lk__mu_lock(&object->mu);
    lk__object_takeoff(object, hold);
    lk__mu_unlock(&object->mu);
    lk__lease_forget(&hold->lease);
    lk__list_append(leftover, link);
}

void lk__object_dropholds(struct lk__object *object, struct lk__link *leftover)
{
    assert(lk__mu_held(&object->client->mu));
    struct lk__link *link;
    while ((link = lk__list_first(&object->holds)) != NULL) /* holds whose owners never unlocked, or cannot any more */
        if (leftover != NULL)
            leave_over(object, link, leftover);
        else
            lk__object_drophold(object, LK__CONTAINER(link, struct lk__hold, mine));
}

struct lk__hold *lk__object_permit(struct lk__object *object, const char *id)
{
    assert(lk__mu_held(&object->mu));
    struct lk__entry *entry = lk__map_find(&object->owners, LK__BY_ID, id, LK__ID_LENGTH);
    return entry != NULL ? LK__CONTAINER(entry, struct lk__hold, owned) : NULL;
}

struct lk__hold *lk__object_usepermit(struct lk__object *object, const char *id)
{
    lk__mu_lock(&object->mu);
    struct lk__hold *hold = lk__object_permit(object, id);
    if (hold != NULL)
        hold = hold->holds != 0 ? lk__hold_ref(hold) : NULL;
    lk__mu_unlock(&object->mu);
    return hold;
}

struct lk__hold *lk__object_nexthold(struct lk__object *object, struct lk__hold *hold)
{
    lk__mu_lock(&object->mu);
    struct lk__hold *oldest = lk__object_oldest(object, hold->lease.owner);
    struct lk__link *next = hold == oldest ? lk__list_first(&oldest->kin) : lk__list_next(&oldest->kin, &hold->kin);
    lk__mu_unlock(&object->mu);
    return next != NULL ? LK__CONTAINER(next, struct lk__hold, kin) : NULL;
}

unsigned lk__object_count(struct lk__object *object, uint64_t owner, unsigned enough)
{
    unsigned sum = 0;
    lk__mu_lock(&object->mu);
    const struct lk__hold *oldest = lk__object_oldest(object, owner);
    if (oldest != NULL)
        sum = (unsigned)oldest->holds;
    for (struct lk__link *l = oldest != NULL ? lk__list_first(&oldest->kin) : NULL; l != NULL && sum < enough;
         l = lk__list_next(&oldest->kin, l))
        sum += (unsigned)LK__CONTAINER(l, struct lk__hold, kin)->holds;
    lk__mu_unlock(&object->mu);
    return sum;
}

/* A hold whose fixed lease was handed over and is not set yet, with a reference; or NULL. */
static struct lk__hold *unsettled(struct lk__object *object)
{
    struct lk__hold *found = NULL;
    lk__mu_lock(&object->mu);
    for (struct lk__link *l = lk__list_first(&object->holds); l != NULL && found == NULL;
         l = lk__list_next(&object->holds, l)) {
        struct lk__hold *hold = LK__CONTAINER(l, struct lk__hold, mine);
        if (hold->lease.fixed && !lk__lease_issettled(&hold->lease))
            found = lk__hold_ref(hold);
    }
    lk__mu_unlock(&object->mu);
    return found;
}

bool lk__object_settle(struct lk__object *object)
{
    int64_t until_us = lk__now_us() + object->client->options->command_timeout_ms * 1000;
    struct lk__hold *hold;
    int rc = 0;
    while (rc == 0 && (hold = unsettled(object)) != NULL) {
        rc = lk__lease_settle(&hold->lease, until_us);
        lk__hold_unref(hold);
        if (rc == ESTALE)
            rc = 0;
    }
    return rc == 0;
}

bool lk__object_isbusy(struct lk__object *object)
{
    bool busy = atomic_load(&object->waiting) > 0;
    lk__mu_lock(&object->mu);
    for (struct lk__link *l = lk__list_first(&object->holds); l != NULL && !busy;
         l = lk__list_next(&object->holds, l)) {
        struct lk__hold *hold = LK__CONTAINER(l, struct lk__hold, mine);
        busy = lk__lease_isgood(&hold->lease, NULL) && !hold->lease.fixed && !lk__lease_isownerless(&hold->lease);
    }
    lk__mu_unlock(&object->mu);
    return busy;
}

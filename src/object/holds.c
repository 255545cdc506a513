/* SPDX-License-Identifier: MIT */
/*
 * holds.c - the holds of an object, all of them: how many, of which permit, what a close leaves; acquire.c adds and
 * drops them
 *
 * Guards: object->mu. Order: after client->mu, before dog->mu.
 */
#include "object/object.h"

static void leave_over(struct lk__object *object, struct lk__link *link, struct lk__link *leftover)
{
    struct lk__hold *hold = LK__CONTAINER(link, struct lk__hold, mine);
    lk__mu_lock(&object->mu);
    lk__object_takeoff(object, hold);
    lk__mu_unlock(&object->mu);
    lk__lease_forget(hold->lease);
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
    struct lk__hold *oldest = lk__object_oldest(object, hold->owner);
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
        if (hold->lease->fixed && !lk__lease_issettled(hold->lease))
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
        rc = lk__lease_settle(hold->lease, until_us);
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
        busy = lk__lease_isgood(hold->lease, NULL) && !hold->lease->fixed && !lk__lease_isownerless(hold->lease);
    }
    lk__mu_unlock(&object->mu);
    return busy;
}

void lk__object_addlive(struct lk__object *object, struct lk__memberstats *stats)
{
    lk__mu_lock(&object->mu);
    for (struct lk__link *l = lk__list_first(&object->holds); l != NULL; l = lk__list_next(&object->holds, l)) {
        struct lk__hold *hold = LK__CONTAINER(l, struct lk__hold, mine);
        stats->renewals += atomic_load(&hold->lease->renewals);
        stats->losses += lk__lease_waslost(hold->lease);
    }
    lk__mu_unlock(&object->mu);
}

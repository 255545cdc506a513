/* SPDX-License-Identifier: MIT */
/*
 * holds.c - the holds of an object: of all threads of this process
 *
 * Guards: object->mu. Order: after client->mu, before dog->mu.
 */
#include "object/object.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct lk__hold *lk__object_newhold(struct lk__object *object, uint64_t owner, const char *suffix)
{
    lk_client_t *client = object->client;
    size_t id_size = object->kind->long_ids ? LK__OWNER_ID : LK__OWNER_ID_SHORT;
    struct lk__hold *hold = lk__hold_new(&client->dog, owner, id_size);
    if (hold == NULL)
        return NULL;
    unsigned long long acquisition = atomic_fetch_add(&client->acquisitions, 1) + 1;
    snprintf(hold->lease->id, id_size, "%s:%" PRIu64 ":%llu%s", client->id, owner, acquisition,
             suffix != NULL ? suffix : "");
    hold->lease->name = object->name;
    hold->lease->release.block = lk__block_ref(object->block);
    hold->kind = object->kind->number;
    return hold;
}

enum { BY_OWNER, BY_ID };

static void enter_as_oldest(struct lk__object *object, struct lk__hold *hold)
{
    assert(lk__mu_held(&object->mu));
    size_t length = strlen(hold->lease->id);
    if (hold->owner != 0)
        hold->owned = (struct lk__entry){ NULL, (const char *)&hold->owner, sizeof hold->owner, BY_OWNER };
    else
        hold->owned = (struct lk__entry){ NULL, hold->lease->id + length - LK__ID_LENGTH, LK__ID_LENGTH, BY_ID };
    lk__map_insert(&object->owners, &hold->owned);
}

static struct lk__hold *oldest_of(const struct lk__object *object, uint64_t owner)
{
    assert(lk__mu_held(&object->mu));
    struct lk__entry *entry = lk__map_find(&object->owners, BY_OWNER, (const char *)&owner, sizeof owner);
    return entry != NULL ? LK__CONTAINER(entry, struct lk__hold, owned) : NULL;
}

/* The links of an owner's holds are a ring; its head is that of the oldest, which is in the map. */
static void put_on(struct lk__object *object, struct lk__hold *hold)
{
    assert(lk__mu_held(&object->mu));
    struct lk__hold *oldest = oldest_of(object, hold->owner);
    lk__list_append(&object->holds, &hold->mine);
    if (oldest != NULL) {
        lk__list_append(&oldest->kin, &hold->kin);
        return;
    }
    lk__list_init(&hold->kin);
    enter_as_oldest(object, hold);
}

/* False: the hold was removed before. */
static bool take_off(struct lk__object *object, struct lk__hold *hold)
{
    assert(lk__mu_held(&object->mu));
    if (!lk__listed(&hold->mine))
        return false;
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

static void leave_over(struct lk__object *object, struct lk__link *link, struct lk__link *leftover)
{
    struct lk__hold *hold = LK__CONTAINER(link, struct lk__hold, mine);
    lk__mu_lock(&object->mu);
    take_off(object, hold);
    lk__mu_unlock(&object->mu);
    lk__lease_forget(hold->lease);
    lk__list_append(leftover, link);
}

void lk__object_dropholds(struct lk__object *object, struct lk__link *leftover)
{
    struct lk__link *link;
    while ((link = lk__list_first(&object->holds)) != NULL) /* holds whose owners never unlocked, or cannot any more */
        if (leftover != NULL)
            leave_over(object, link, leftover);
        else
            lk__object_drophold(object, LK__CONTAINER(link, struct lk__hold, mine));
}

struct lk__hold *lk__object_hold(struct lk__object *object, uint64_t owner)
{
    lk__mu_lock(&object->mu);
    struct lk__hold *hold = oldest_of(object, owner);
    lk__mu_unlock(&object->mu);
    return hold;
}

struct lk__hold *lk__object_permit(struct lk__object *object, const char *id)
{
    assert(lk__mu_held(&object->mu));
    struct lk__entry *entry = lk__map_find(&object->owners, BY_ID, id, LK__ID_LENGTH);
    return entry != NULL ? LK__CONTAINER(entry, struct lk__hold, owned) : NULL;
}

unsigned lk__object_count(struct lk__object *object, uint64_t owner, unsigned enough)
{
    unsigned sum = 0;
    lk__mu_lock(&object->mu);
    const struct lk__hold *oldest = oldest_of(object, owner);
    if (oldest != NULL)
        sum = (unsigned)oldest->holds;
    for (struct lk__link *l = oldest != NULL ? lk__list_first(&oldest->kin) : NULL; l != NULL && sum < enough;
         l = lk__list_next(&oldest->kin, l))
        sum += (unsigned)LK__CONTAINER(l, struct lk__hold, kin)->holds;
    lk__mu_unlock(&object->mu);
    return sum;
}

/* Drop lost holds whose owners are gone: the next call on the object does it. */
static void drop_orphans(struct lk__object *object)
{
    struct lk__lease *lease;
    while ((lease = lk__watchdog_nextorphan(&object->client->dog, &object->orphans)) != NULL) {
        lk__object_drophold(object, lease->holder);
        lk__lease_unref(lease);
    }
}

void lk__object_addhold(struct lk__object *object, struct lk__hold *hold)
{
    hold->lease->orphans = &object->orphans;
    lk__mu_lock(&object->mu);
    put_on(object, hold);
    lk__mu_unlock(&object->mu);
    drop_orphans(object);
}

void lk__object_drophold(struct lk__object *object, struct lk__hold *hold)
{
    bool lost =
        !lk__lease_end(hold->lease) && lk__lease_waslost(hold->lease) && hold->lease->reason != LK_REASON_RELEASED;
    lk__mu_lock(&object->mu);
    bool mine = take_off(object, hold);
    lk__mu_unlock(&object->mu);
    if (!mine)
        return;
    atomic_fetch_add(&object->renewals, atomic_load(&hold->lease->renewals));
    if (lost)
        atomic_fetch_add(&object->losses, 1);
    lk__hold_unref(hold);
}

bool lk__object_isbusy(struct lk__object *object)
{
    bool busy = atomic_load(&object->waiting) > 0;
    lk__mu_lock(&object->mu);
    for (struct lk__link *l = lk__list_first(&object->holds); l != NULL && !busy;
         l = lk__list_next(&object->holds, l)) {
        struct lk__hold *hold = LK__CONTAINER(l, struct lk__hold, mine);
        busy = lk__lease_isgood(hold->lease, NULL) && !lk__lease_isownerless(hold->lease);
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

/* SPDX-License-Identifier: MIT */
/*
 * hold.c - the life of one hold: made before it is granted, freed when nobody looks at it any more
 *
 * Its memory is that of its own lease, which may be needed longer: for a renewal under way, or in the outbox.
 */
#include "client/hold.h"

_Static_assert(offsetof(struct lk__hold, own) + sizeof(struct lk__lease) == sizeof(struct lk__hold), "the last");

struct lk__hold *lk__hold_new(struct lk__watchdog *dog, uint64_t owner, size_t id_size)
{
    struct lk__lease *lease = lk__lease_new(dog, offsetof(struct lk__hold, own), id_size);
    if (lease == NULL)
        return NULL;
    struct lk__hold *hold = LK__CONTAINER(lease, struct lk__hold, own);
    lease->holder = hold;
    lease->owner = owner;
    lease->by_id = owner == 0;
    hold->refs = 1;
    hold->owner = owner;
    hold->lease = lease;
    return hold;
}

struct lk__hold *lk__hold_ref(struct lk__hold *hold)
{
    atomic_fetch_add(&hold->refs, 1);
    return hold;
}

void lk__hold_unref(struct lk__hold *hold)
{
    if (hold == NULL || atomic_fetch_sub(&hold->refs, 1) != 1)
        return;
    assert(!lk__listed(&hold->mine) && !lk__listed(&hold->for_listener) && !lk__listed(&hold->for_eventfd));
    if (hold->lease != &hold->own)
        lk__lease_unref(hold->lease);
    lk__lease_unref(&hold->own);
}

void lk__hold_given(const struct lk__hold *hold)
{
    struct lk__outboxentry *release = &hold->lease->release;
    release->dating = release->until.date.us != 0 ? LK__KEEP : LK__UNDATED;
    release->flags = hold->owner_died ? LK__SENT_UNREPAIRED : 0;
}

/* SPDX-License-Identifier: MIT */
/* hold.c - the life of one hold: made before it is granted, freed when nobody looks at it any more */
#include "watchdog/watchdog.h"

int64_t lk__guard_us(int64_t lease_ms)
{
    return lease_ms * 10 + 2000; /* 1 % and 2 ms */
}

int64_t lk__hold_longest(const struct lk__hold *hold)
{
    int64_t longest_ms = hold->lease_ms > hold->wanted_ms ? hold->lease_ms : hold->wanted_ms;
    return hold->unsure_lease_ms > longest_ms ? hold->unsure_lease_ms : longest_ms;
}

int64_t lk__hold_endsby(struct lk__hold *hold)
{
    struct lk__watchdog *dog = hold->dog;
    pthread_mutex_lock(&dog->mu);
    int64_t lease_ms = lk__hold_longest(hold);
    pthread_mutex_unlock(&dog->mu);
    int64_t known_us = atomic_load(&hold->valid_until_us), renewed_us = lk__now_us() + lease_ms * 1000;
    int64_t late_us = dog->options->command_timeout_ms * 1000 + lk__guard_us(lease_ms);
    return (renewed_us > known_us ? renewed_us : known_us) + late_us;
}

void lk__hold_given(struct lk__hold *hold)
{
    hold->release_keep_us = hold->keep_until_us;
    hold->release_flags = hold->owner_died ? LK__SENT_UNREPAIRED : 0;
}

struct lk__sent lk__hold_torelease(const struct lk__hold *hold)
{
    return (struct lk__sent){ .id = hold->id,
                              .nth = hold->nth,
                              .deadline_us = hold->release_deadline_us,
                              .keep_until_us = hold->release_keep_us,
                              .flags = hold->release_flags };
}

struct lk__hold *lk__hold_keep(struct lk__hold *hold)
{
    atomic_fetch_add(&hold->refs, 1);
    return hold;
}

void lk__hold_drop(struct lk__hold *hold)
{
    if (hold == NULL || atomic_fetch_sub(&hold->refs, 1) != 1)
        return;
    struct lk__watchdog *dog = hold->dog;
    pthread_mutex_lock(&dog->mu);
    assert(hold->timer.place == 0 && !lk__listed(&hold->all) && hold->flight == NULL);
    assert(!lk__listed(&hold->ready) && !lk__listed(&hold->news));
    dog->reserved--;
    pthread_mutex_unlock(&dog->mu);
    lk__block_drop(hold->block);
    lk__release(hold);
}

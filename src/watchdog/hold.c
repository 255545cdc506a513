/* SPDX-License-Identifier: MIT */
/* hold.c - the life of one hold: made before it is granted, freed when nobody looks at it any more */
#include "watchdog/watchdog.h"

#include <string.h>

/* Of each client. A sanitizer is to see who uses one that is over. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SPARES = 0 };
#else
enum { SPARES = 16 };
#endif

int64_t lk__guard_us(int64_t lease_ms)
{
    return lease_ms * 10 + 2000; /* 1 % and 2 ms */
}

int64_t lk__hold_longest(const struct lk__hold *hold)
{
    int64_t longest_ms = hold->lease_ms > hold->wanted_ms ? hold->lease_ms : hold->wanted_ms;
    return hold->duplicates_lease_ms > longest_ms ? hold->duplicates_lease_ms : longest_ms;
}

int64_t lk__hold_endsby(struct lk__hold *hold)
{
    struct lk__watchdog *dog = hold->dog;
    lk__mu_lock(&dog->mu);
    int64_t lease_ms = lk__hold_longest(hold);
    lk__mu_unlock(&dog->mu);
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

struct lk__hold *lk__hold_ref(struct lk__hold *hold)
{
    atomic_fetch_add(&hold->refs, 1);
    return hold;
}

/* Under dog->mu: keep the memory for the next one. False: there is enough. */
static bool keep_spare(struct lk__watchdog *dog, struct lk__hold *hold)
{
    bool wanted = dog->spare_count < SPARES && hold->id_size == LK__OWNER_ID_SHORT;
    if (wanted) {
        lk__list_append(&dog->spares, &hold->all);
        dog->spare_count++;
    }
    return wanted;
}

/* Under dog->mu: one that is left, or NULL. */
static struct lk__hold *take_spare(struct lk__watchdog *dog, size_t id_size)
{
    struct lk__link *link = id_size == LK__OWNER_ID_SHORT ? lk__list_first(&dog->spares) : NULL;
    if (link == NULL)
        return NULL;
    lk__list_remove(link);
    dog->spare_count--;
    return LK__CONTAINER(link, struct lk__hold, all);
}

void lk__hold_freespares(struct lk__watchdog *dog)
{
    struct lk__hold *hold;
    while ((hold = take_spare(dog, LK__OWNER_ID_SHORT)) != NULL)
        lk__free(hold);
}

/* Under dog->mu no more: its memory, of a spare or new; all zeroes. */
static struct lk__hold *memory_for(struct lk__hold *spare, size_t size)
{
    if (spare == NULL)
        return lk__alloc(size);
    memset(spare, 0, size);
    return spare;
}

struct lk__hold *lk__hold_new(struct lk__watchdog *dog, size_t id_size)
{
    lk__mu_lock(&dog->mu);
    int rc = lk__watchdog_reserve(dog);
    struct lk__hold *spare = rc == 0 ? take_spare(dog, id_size) : NULL;
    lk__mu_unlock(&dog->mu);
    if (rc != 0)
        return NULL;
    struct lk__hold *hold = memory_for(spare, offsetof(struct lk__hold, id) + id_size);
    if (hold == NULL) {
        lk__mu_lock(&dog->mu);
        dog->reserved--;
        lk__mu_unlock(&dog->mu);
        lk__fail(ENOMEM, "out of memory for a hold");
        return NULL;
    }
    hold->refs = 1;
    hold->id_size = (unsigned)id_size;
    hold->dog = dog;
    hold->state = LK__OVER;
    hold->cap_us = hold->renew_us = LK__NEVER;
    return hold;
}

void lk__hold_unref(struct lk__hold *hold)
{
    if (hold == NULL || atomic_fetch_sub(&hold->refs, 1) != 1)
        return;
    struct lk__watchdog *dog = hold->dog;
    lk__block_unref(hold->block);
    lk__mu_lock(&dog->mu);
    assert(hold->timer.place == 0 && !lk__listed(&hold->all) && hold->inflight == NULL);
    assert(!lk__listed(&hold->ready) && !lk__listed(&hold->news));
    dog->reserved--;
    bool kept = keep_spare(dog, hold);
    lk__mu_unlock(&dog->mu);
    if (!kept)
        lk__free(hold);
}

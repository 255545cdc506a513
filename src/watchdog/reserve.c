/* SPDX-License-Identifier: MIT */
/*
 * reserve.c - all that may fail, done before anything is granted: memory, room for timers, slots, the thread
 *
 * Guards: dog->mu the numbers of leases and entries, and the memory kept for the next leases.
 */
#include "watchdog/watchdog.h"

#include <string.h>

/* Spares of each client. With a sanitizer none, so that it sees uses of a lease that is over. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SPARES = 0 };
#else
enum { SPARES = 16 };
#endif

/* Make room for one entry of the outbox more, and for its lease if it has one. 0, or why not, with an error
   text. */
static int reserve(struct lk__watchdog *dog, size_t leases)
{
    assert(lk__mu_held(&dog->mu));
    if (dog->stopping)
        return lk__fail(ECANCELED, "the client was closed");
    if (lk__heap_reserve(&dog->heap, dog->reserved + leases) != 0 ||
        lk__heap_reserve(&dog->outbox.heap, dog->outbox.reserved + 1) != 0 || lk__window_reserve(&dog->window) != 0)
        return lk__fail(ENOMEM, "out of memory for a hold");
    int rc = lk__watchdog_start(dog);
    if (rc != 0)
        return rc;
    dog->reserved += leases;
    dog->outbox.reserved++;
    return 0;
}

/* --- outbox entries --------------------------------------------------------------------------------------------- */

struct lone {
    struct lk__outboxentry entry;
    struct lk__watchdog *dog;
    char id[];
};

static void free_lone(struct lk__outboxentry *entry)
{
    struct lone *lone = LK__CONTAINER(entry, struct lone, entry);
    struct lk__watchdog *dog = lone->dog;
    lk__block_unref(entry->block);
    lk__mu_lock(&dog->mu);
    assert(!entry->pending && !entry->inflight && entry->timer.place == 0);
    dog->outbox.reserved--;
    lk__mu_unlock(&dog->mu);
    lk__free(lone);
}

struct lk__outboxentry *lk__outboxentry_new(struct lk__watchdog *dog, const char *id, struct lk__block *block)
{
    struct lone *lone = lk__alloc(sizeof *lone + strlen(id) + 1);
    if (lone == NULL) {
        lk__fail(ENOMEM, "out of memory for a request");
        return NULL;
    }
    lk__mu_lock(&dog->mu);
    int rc = reserve(dog, 0);
    lk__mu_unlock(&dog->mu);
    if (rc != 0) {
        lk__free(lone);
        return NULL;
    }
    lone->dog = dog;
    lone->entry.refs = 1;
    lone->entry.free = free_lone;
    lone->entry.block = lk__block_ref(block);
    lone->entry.id = strcpy(lone->id, id);
    return &lone->entry;
}

/* --- leases ------------------------------------------------------------------------------------------------------ */

/* Memory for one of the next leases. */
struct spare {
    struct lk__link link; /* first: so its list is one of memory to be freed */
    size_t size;
};

static size_t size_of(size_t ahead, size_t id_size)
{
    return ahead + offsetof(struct lk__lease, id) + id_size;
}

/* Keep memory for the next lease. False: enough is kept. */
static bool keep_spare(struct lk__watchdog *dog, void *memory, size_t id_size, size_t size)
{
    assert(lk__mu_held(&dog->mu));
    struct spare *spare = memory;
    if (dog->spare_count >= SPARES || id_size != LK__OWNER_ID_SHORT)
        return false;
    *spare = (struct spare){ .size = size };
    lk__list_append(&dog->spares, &spare->link);
    dog->spare_count++;
    return true;
}

/* Memory that was kept, or NULL. */
static struct spare *take_spare(struct lk__watchdog *dog, size_t size)
{
    assert(lk__mu_held(&dog->mu));
    for (struct lk__link *l = lk__list_first(&dog->spares); l != NULL; l = lk__list_next(&dog->spares, l)) {
        struct spare *spare = LK__CONTAINER(l, struct spare, link);
        if (spare->size != size)
            continue;
        lk__list_remove(l);
        dog->spare_count--;
        return spare;
    }
    return NULL;
}

static void free_lease(struct lk__outboxentry *entry)
{
    struct lk__lease *lease = LK__CONTAINER(entry, struct lk__lease, release);
    struct lk__watchdog *dog = lease->dog;
    size_t id_size = lease->id_size, size = size_of(lease->ahead, id_size);
    void *memory = (char *)lease - lease->ahead;
    lk__block_unref(entry->block);
    lk__mu_lock(&dog->mu);
    assert(!entry->pending && !entry->inflight && entry->timer.place == 0);
    assert(lease->timer.place == 0 && !lease->inflight);
    assert(!lk__listed(&lease->all) && !lk__listed(&lease->queue) && !lk__listed(&lease->orphan));
    dog->reserved--;
    dog->outbox.reserved--;
    bool kept = keep_spare(dog, memory, id_size, size);
    lk__mu_unlock(&dog->mu);
    if (!kept)
        lk__free(memory);
}

/* Zeroed memory, kept or new. NULL: ENOMEM. */
static void *memory_for(struct spare *spare, size_t size)
{
    return spare != NULL ? memset(spare, 0, size) : lk__alloc(size);
}

struct lk__lease *lk__lease_new(struct lk__watchdog *dog, size_t ahead, size_t id_size)
{
    size_t size = size_of(ahead, id_size);
    lk__mu_lock(&dog->mu);
    int rc = reserve(dog, 1);
    struct spare *spare = rc == 0 ? take_spare(dog, size) : NULL;
    lk__mu_unlock(&dog->mu);
    if (rc != 0)
        return NULL;
    char *memory = memory_for(spare, size);
    if (memory == NULL) {
        lk__mu_lock(&dog->mu);
        dog->reserved--;
        dog->outbox.reserved--;
        lk__mu_unlock(&dog->mu);
        lk__fail(ENOMEM, "out of memory for a hold");
        return NULL;
    }
    struct lk__lease *lease = (void *)(memory + ahead);
    lease->dog = dog;
    lease->ahead = (unsigned short)ahead;
    lease->id_size = (unsigned short)id_size;
    lease->state = LK__OVER;
    lease->cap_us = lease->renew_us = LK__NEVER;
    lease->release.refs = 1;
    lease->release.free = free_lease;
    lease->release.id = lease->id;
    return lease;
}

/* SPDX-License-Identifier: MIT */
/*
 * spare.c - memory of leases and entries that are over, kept for the next ones
 *
 * There are few sizes: each of them, from its first block on, has a pool of its own. So who takes and gives back again
 * and again asks for memory once, and no size keeps another one's out.
 *
 * Guards: dog->mu, all of it.
 */
#include "watchdog/watchdog.h"

#include <string.h>

/* Blocks of each pool. With a sanitizer none, so that it sees uses of a block that was given back. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SPARES = 0 };
#else
enum { SPARES = 16 };
#endif

/* A block that is kept. */
struct spare {
    struct spare *next;
};

/* The pool of that size, or one that has none yet; NULL: there is none left. */
static struct lk__spares *pool_of(struct lk__watchdog *dog, size_t size)
{
    assert(lk__mu_held(&dog->mu));
    for (int i = 0; i < LK__SPARE_SIZES; i++)
        if (dog->spares[i].size == size || dog->spares[i].size == 0)
            return &dog->spares[i];
    return NULL;
}

void *lk__spare_take(struct lk__watchdog *dog, size_t size)
{
    struct lk__spares *pool = pool_of(dog, size);
    if (pool == NULL || pool->first == NULL)
        return NULL;
    struct spare *spare = pool->first;
    pool->first = spare->next;
    pool->count--;
    return spare;
}

bool lk__spare_keep(struct lk__watchdog *dog, void *memory, size_t size)
{
    struct lk__spares *pool = pool_of(dog, size);
    if (pool == NULL || pool->count >= SPARES)
        return false;
    struct spare *spare = memory;
    spare->next = pool->first;
    pool->first = spare;
    pool->size = size;
    pool->count++;
    return true;
}

void *lk__spare_clear(void *spare, size_t size)
{
    return spare != NULL ? memset(spare, 0, size) : lk__alloc(size);
}

void lk__spares_destroy(struct lk__watchdog *dog)
{
    for (int i = 0; i < LK__SPARE_SIZES; i++)
        while (dog->spares[i].first != NULL) {
            struct spare *spare = dog->spares[i].first;
            dog->spares[i].first = spare->next;
            lk__free(spare);
        }
}

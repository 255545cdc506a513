/* SPDX-License-Identifier: MIT */
/*
 * reserve.c - all that may fail, done before anything is granted: room for timers, slots, the thread, entries
 *
 * Guards: dog->mu the numbers of leases and entries. A lease comes here when there is no room for it: for the first,
 * and whenever there are more at once than ever before.
 */
#include "watchdog/watchdog.h"

#include <string.h>

/* The watchdog's thread, if it does not run. */
static int start(struct lk__watchdog *dog)
{
    assert(lk__mu_held(&dog->mu));
    if (dog->started)
        return 0;
    int rc = lk__thread_start(&dog->thread, "lk-watchdog", dog->run, dog);
    if (rc != 0)
        return rc;
    dog->started = true;
    lk__node_want(dog->node, LK__LANE_RENEWALS);
    return 0;
}

int lk__watchdog_reserve(struct lk__watchdog *dog, size_t leases)
{
    assert(lk__mu_held(&dog->mu));
    if (dog->stopping)
        return lk__fail(ECANCELED, "the client was closed");
    if (lk__heap_reserve(&dog->heap, dog->reserved + leases) != 0 ||
        lk__heap_reserve(&dog->outbox.heap, dog->outbox.reserved + 1) != 0 ||
        (!dog->started && lk__window_make(&dog->window) != 0))
        return lk__fail(ENOMEM, "out of memory for a hold");
    return start(dog);
}

/* --- outbox entries --------------------------------------------------------------------------------------------- */

/* All are of one size, so that the memory of one serves the next. */
struct lone {
    struct lk__outboxentry entry;
    struct lk__watchdog *dog;
    union {
        max_align_t aligned;
        unsigned char bytes[LK__OUTBOX_ARGS];
    } args; /* of the command, copied */
    char id[LK__OWNER_ID];
};

static void free_lone(struct lk__outboxentry *entry)
{
    struct lone *lone = LK__CONTAINER(entry, struct lone, entry);
    struct lk__watchdog *dog = lone->dog;
    lk__block_unref(entry->block);
    lk__watchdog_lock(dog);
    assert(!entry->pending && !entry->inflight && entry->timer.place == 0);
    dog->outbox.reserved--;
    bool kept = lk__spare_keep(dog, lone, sizeof *lone);
    lk__mu_unlock(&dog->mu);
    if (!kept)
        lk__free(lone);
}

/* Room for an entry more, and memory for it, all zeroes. NULL: with an error text. */
static struct lone *make_lone(struct lk__watchdog *dog)
{
    lk__watchdog_lock(dog);
    int rc = lk__watchdog_reserve(dog, 0);
    dog->outbox.reserved += rc == 0;
    void *spare = rc == 0 ? lk__spare_take(dog, sizeof(struct lone)) : NULL;
    lk__mu_unlock(&dog->mu);
    struct lone *lone = rc == 0 ? lk__spare_clear(spare, sizeof *lone) : NULL;
    if (lone != NULL || rc != 0)
        return lone;
    lk__watchdog_lock(dog);
    dog->outbox.reserved--;
    lk__mu_unlock(&dog->mu);
    lk__fail(ENOMEM, "out of memory for a request");
    return NULL;
}

struct lk__outboxentry *lk__outboxentry_new(struct lk__watchdog *dog, const char *id, struct lk__block *block)
{
    struct lone *lone = make_lone(dog);
    if (lone == NULL)
        return NULL;
    assert(strlen(id) < sizeof lone->id);
    lone->dog = dog;
    lone->entry.refs = 1;
    lone->entry.free = free_lone;
    lone->entry.block = lk__block_ref(block);
    lone->entry.id = strcpy(lone->id, id);
    return &lone->entry;
}

void lk__outboxentry_set(struct lk__outboxentry *entry, const struct lk__command *command, size_t args_size)
{
    struct lone *lone = LK__CONTAINER(entry, struct lone, entry);
    assert(args_size <= sizeof lone->args);
    entry->command = *command;
    entry->command.args = command->script != NULL ? memcpy(lone->args.bytes, command->args, args_size) : NULL;
}

/* --- memory of leases and entries that are over, kept for the next ones ------------------------------------------- */

/*
 * There are few sizes: each of them, from its first block on, has a pool of its own. So who takes and gives back again
 * and again asks for memory once, and no size keeps another one's out.
 *
 * Guards: dog->mu, all of it.
 */

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

/* SPDX-License-Identifier: MIT */
/* object.c - the keys of a read-write lock, and its handle */
#include "rwlock/rwlock.h"

#include <string.h>

_Static_assert(sizeof(lk_rwlock_t) == 8 * sizeof(void *), "ABI");

static void rwlock_free(struct lk__object *object)
{
    struct lk__rwlock *lock = LK__CONTAINER(object, struct lk__rwlock, object);
    lk__block_unref(&lock->block->block);
    lk__free(lock);
}

/* Nothing of its own listens: grants come on the client's channel. */
static const struct lk__kind kind = { .free = rwlock_free };

/* The keys, one after the other. */
static void write_keys(struct lk__rwlockblock *block, const char *full, const char *end)
{
    char *at = block->strings;
    block->keys.holders = at;
    at += lk__key_ours(at, "latchkey:rw", full) + 1;
    block->keys.token = at;
    at += lk__key_redisson(at, "redisson_lock_token", full) + 1;
    block->keys.queue = at;
    at += lk__key_ours(at, "latchkey:queue:rw", full) + 1;
    block->keys.seen = at;
    at += lk__key_ours(at, "latchkey:seen:rw", full) + 1;
    block->keys.mark = at;
    at += lk__key_ours(at, "latchkey:robust:rw", full) + 1;
    assert(at <= end);
    (void)end;
}

static unsigned flags_of(const struct lk__options *options, int prefer, bool robust)
{
    static const unsigned first[] = { [LK_RWLOCK_PREFER_FAIR] = 0,
                                      [LK_RWLOCK_PREFER_READER] = LK__RWLOCK_READERS_FIRST,
                                      [LK_RWLOCK_PREFER_WRITER] = LK__RWLOCK_WRITERS_FIRST };
    return first[prefer] | (robust ? LK__RWLOCK_ROBUST : 0) | (options->redisson ? LK__RWLOCK_SHARED : 0);
}

static struct lk__rwlockblock *make_block(const struct lk__handover *terms, const char *full, unsigned flags)
{
    size_t room = 5 * (strlen(full) + 64);
    struct lk__rwlockblock *block = lk__alloc(sizeof *block + room);
    if (block == NULL)
        return NULL;
    block->block.refs = 1;
    write_keys(block, full, block->strings + room);
    block->release = (struct lk__rwlock_release_args){ .claim_ms = terms->claim_ms, .flags = flags };
    return block;
}

static struct lk__object *make(lk_client_t *client, const char *full, int prefer, bool robust)
{
    struct lk__rwlock *lock = lk__alloc(sizeof *lock);
    struct lk__handover terms;
    lk__handover_init(&terms, client->options, true);
    if (lock != NULL)
        lock->block = make_block(&terms, full, flags_of(client->options, prefer, robust));
    if (lock == NULL || lock->block == NULL) {
        lk__free(lock);
        return NULL;
    }
    lock->liveness_2048ths = terms.liveness_2048ths;
    lock->object.block = &lock->block->block;
    lock->object.kind = &kind;
    return &lock->object;
}

static void traits(const void *checked, int *fair, bool *robust)
{
    const lk_rwlockattr_t *attr = checked;
    *fair = attr->prefer;
    *robust = attr->robust;
}

static const struct lk__handletype rwlock_type = {
    .kind = LK_KIND_RWLOCK,
    .attr_size = sizeof(lk_rwlockattr_t),
    .commands = lk__lua_rwlock_commands,
    .make = make,
    .check = lk__rwlockattr_check,
    .traits = traits,
};

struct lk__handle lk__rwlock_handle(lk_rwlock_t *rw)
{
    return (struct lk__handle){ &rw->lk_name, (const void **)&rw->lk_attr, &rw->lk_impl, &rw->lk_process,
                                rw->lk_spare };
}

int lk__rwlock_enter(lk_rwlock_t *rw, struct lk__op *op)
{
    return lk__rwlock_enterby(rw, LK__NEVER, op);
}

int lk__rwlock_enterby(lk_rwlock_t *rw, int64_t limit_us, struct lk__op *op)
{
    if (rw == NULL)
        return lk__fail(EINVAL, "no read-write lock was given");
    return lk__op_enterby(op, lk__rwlock_handle(rw), &rwlock_type, limit_us);
}

int lk_rwlock_init(lk_rwlock_t *rw, lk_client_t *client, const char *name, const lk_rwlockattr_t *attr)
{
    if (rw == NULL)
        return lk__fail(EINVAL, "lk_rwlock_init: no read-write lock was given");
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, lk__handle_init(lk__rwlock_handle(rw), &rwlock_type, client, name, attr));
}

int lk_rwlock_destroy(lk_rwlock_t *rw)
{
    if (rw == NULL)
        return lk__fail(EINVAL, "lk_rwlock_destroy: no read-write lock was given");
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, lk__handle_destroy(lk__rwlock_handle(rw)));
}

/* SPDX-License-Identifier: MIT */
/* object.c - the keys and channels of a mutex, and its shell */
#include "lock/lock.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(lk_mutex_t) == 8 * sizeof(void *), "ABI");

static void mutex_stop(struct lk__object *object)
{
    lk__foreign_stop(&LK__CONTAINER(object, struct lk__mutex, object)->foreign);
}

static void mutex_free(struct lk__object *object)
{
    struct lk__mutex *mutex = LK__CONTAINER(object, struct lk__mutex, object);
    lk__foreign_destroy(&mutex->foreign);
    lk__block_drop(&mutex->block->block);
    lk__release(mutex);
}

/* The keys and channels, one after the other. */
static void write_keys(struct lk__mutex *mutex, const char *full, const char *end)
{
    struct lk__lock_keys *keys = &mutex->block->keys;
    char *at = mutex->block->strings, *channel;
    keys->mutex = at;
    at += sprintf(at, "%s", full) + 1;
    keys->token = at;
    at += lk__key_redisson(at, "redisson_lock_token", full) + 1;
    keys->queue = at;
    at += lk__key_ours(at, "latchkey:queue:mutex", full) + 1;
    keys->seen = at;
    at += lk__key_ours(at, "latchkey:seen:mutex", full) + 1;
    keys->mark = at;
    at += lk__key_ours(at, "latchkey:robust:mutex", full) + 1;
    channel = at;
    at += lk__key_redisson(at, "redisson_lock__channel", full) + 1;
    mutex->beside = at;
    at = stpcpy(at, LK__BESIDE);
    at += lk__key_redisson(at, "redisson_lock__channel", full) + 1;
    assert(at <= end);
    (void)end;
    mutex->block->release.channel = mutex->block->renew.channel = channel;
}

static int make_block(struct lk__mutex *mutex, const struct lk__options *options, const char *full, bool robust)
{
    size_t room = 7 * (strlen(full) + 64);
    struct lk__terms terms;
    struct lk__mutexblock *block = mutex->block = lk__alloc(sizeof *block + room);
    if (block == NULL)
        return ENOMEM;
    block->block.refs = 1;
    write_keys(mutex, full, block->strings + room);
    lk__terms_of(&terms, options, true);
    mutex->liveness_2048ths = terms.liveness_2048ths;
    block->release.claim_ms = terms.claim_ms;
    block->release.flags = (robust ? LK__LOCK_ROBUST : 0) | (options->redisson ? LK__LOCK_SHARED : 0);
    return 0;
}

struct lk__object *lk__mutex_make(lk_client_t *client, const char *full, int fair, bool robust)
{
    struct lk__mutex *mutex = lk__alloc(sizeof *mutex);
    (void)fair; /* what takes it says so */
    if (mutex == NULL || make_block(mutex, client->options, full, robust) != 0) {
        lk__release(mutex);
        return NULL;
    }
    mutex->object.block = &mutex->block->block;
    mutex->object.stop = mutex_stop;
    mutex->object.free = mutex_free;
    lk__foreign_init(&mutex->foreign, client, mutex->block->renew.channel, mutex->beside, false);
    return &mutex->object;
}

static void traits(const void *checked, int *fair, bool *robust)
{
    const lk_mutexattr_t *attr = checked;
    *fair = attr->fair;
    *robust = attr->robust;
}

const struct lk__shelltype lk__mutex_type = {
    .kind = LK_KIND_MUTEX,
    .attr_size = sizeof(lk_mutexattr_t),
    .commands = lk__lua_lock_commands,
    .make = lk__mutex_make,
    .check = lk__mutexattr_check,
    .traits = traits,
};

int lk__mutex_enter(lk_mutex_t *m, struct lk__frame *frame)
{
    return lk__mutex_enterby(m, LK__NEVER, frame);
}

int lk__mutex_enterby(lk_mutex_t *m, int64_t limit_us, struct lk__frame *frame)
{
    if (m == NULL)
        return lk__fail(EINVAL, "no mutex was given");
    return lk__frame_enterby(frame, lk__mutex_shell(m), &lk__mutex_type, limit_us);
}

struct lk__shell lk__mutex_shell(lk_mutex_t *m)
{
    return (struct lk__shell){ &m->lk_name, (const void **)&m->lk_attr, &m->lk_impl, &m->lk_process, m->lk_spare };
}

int lk_mutex_init(lk_mutex_t *m, lk_client_t *client, const char *name, const lk_mutexattr_t *attr)
{
    if (m == NULL)
        return lk__fail(EINVAL, "lk_mutex_init: no mutex was given");
    struct lk__manners manners = lk__begin();
    return lk__end(&manners, lk__shell_init(lk__mutex_shell(m), &lk__mutex_type, client, name, attr));
}

int lk_mutex_destroy(lk_mutex_t *m)
{
    if (m == NULL)
        return lk__fail(EINVAL, "lk_mutex_destroy: no mutex was given");
    struct lk__manners manners = lk__begin();
    return lk__end(&manners, lk__shell_destroy(lk__mutex_shell(m)));
}

/* SPDX-License-Identifier: MIT */
/* object.c - the keys and channels of a mutex, and its handle */
#include "lock/mutex.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(lk_mutex_t) == 8 * sizeof(void *), "ABI");

static void mutex_stop(struct lk__object *object)
{
    struct lk__mutex *mutex = LK__CONTAINER(object, struct lk__mutex, object);
    if (mutex->redisson != NULL)
        lk__redissonwake_stop(mutex->redisson);
}

static void mutex_free(struct lk__object *object)
{
    struct lk__mutex *mutex = LK__CONTAINER(object, struct lk__mutex, object);
    if (mutex->redisson != NULL)
        lk__redissonwake_destroy(mutex->redisson);
    lk__free(mutex->redisson);
    lk__block_unref(object->block);
    lk__free(mutex);
}

static const struct lk__kind kind = { .stop = mutex_stop, .free = mutex_free };

/* Of each key but the first, and the channels, what stands before the name; the last is for Redisson's sake alone. */
enum { TOKEN, QUEUE, SEEN, MARK, CHANNEL, BESIDE, TEXTS };

static const char *const prefixes[TEXTS] = { "redisson_lock_token",    "latchkey:queue:mutex",
                                             "latchkey:seen:mutex",    "latchkey:robust:mutex",
                                             "redisson_lock__channel", LK__BESIDE "redisson_lock__channel" };

/* One after the other. */
static void write_texts(char *at, const char *texts[TEXTS], int count, const char *full)
{
    for (int i = 0; i < count; i++) {
        bool ours = i == QUEUE || i == SEEN || i == MARK;
        texts[i] = at;
        at += (ours ? lk__key_ours(at, prefixes[i], full) : lk__key_redisson(at, prefixes[i], full)) + 1;
    }
}

static struct lk__mutexblock *make_block(const char *full, const char *texts[TEXTS], int count)
{
    size_t room = 0;
    for (int i = 0; i < count; i++)
        room += lk__key_room(prefixes[i], full);
    struct lk__mutexblock *block = lk__alloc(sizeof *block + room);
    if (block == NULL)
        return NULL;
    write_texts(block->strings, texts, count, full);
    block->block.refs = 1;
    block->keys = (struct lk__lock_keys){
        .mutex = full, .token = texts[TOKEN], .queue = texts[QUEUE], .seen = texts[SEEN], .mark = texts[MARK]
    };
    block->release.channel = block->renew.channel = texts[CHANNEL];
    return block;
}

struct lk__object *lk__mutex_make(lk_client_t *client, const char *full, int fair, bool robust)
{
    const struct lk__options *options = client->options;
    const char *texts[TEXTS];
    struct lk__handover terms;
    struct lk__mutex *mutex = lk__alloc(sizeof *mutex);
    struct lk__redissonwake *redisson = options->redisson ? lk__alloc(sizeof *redisson) : NULL;
    struct lk__mutexblock *block = make_block(full, texts, options->redisson ? TEXTS : BESIDE);
    (void)fair; /* what takes it says so */
    if (mutex == NULL || block == NULL || (options->redisson && redisson == NULL)) {
        lk__free(mutex);
        lk__free(redisson);
        lk__free(block);
        return NULL;
    }
    lk__handover_init(&terms, options, true);
    block->release.claim_ms = terms.claim_ms;
    block->release.flags = (robust ? LK__LOCK_ROBUST : 0) | (options->redisson ? LK__LOCK_SHARED : 0);
    mutex->liveness_2048ths = terms.liveness_2048ths;
    mutex->object.block = &block->block;
    mutex->object.kind = &kind;
    mutex->redisson = redisson;
    if (redisson != NULL)
        lk__redissonwake_init(redisson, client, texts[CHANNEL], texts[BESIDE], false);
    return &mutex->object;
}

static void traits(const void *checked, int *fair, bool *robust)
{
    const lk_mutexattr_t *attr = checked;
    *fair = attr->fair;
    *robust = attr->robust;
}

const struct lk__handletype lk__mutex_type = {
    .kind = LK_KIND_MUTEX,
    .attr_size = sizeof(lk_mutexattr_t),
    .commands = lk__lua_lock_commands,
    .make = lk__mutex_make,
    .check = lk__mutexattr_check,
    .traits = traits,
};

int lk__mutex_enter(lk_mutex_t *m, struct lk__op *op)
{
    return lk__mutex_enterby(m, LK__NEVER, op);
}

int lk__mutex_enterby(lk_mutex_t *m, int64_t limit_us, struct lk__op *op)
{
    if (m == NULL)
        return lk__fail(EINVAL, "no mutex was given");
    return lk__op_enterby(op, lk__mutex_handle(m), &lk__mutex_type, limit_us);
}

struct lk__handle lk__mutex_handle(lk_mutex_t *m)
{
    return (struct lk__handle){ &m->lk_name, (const void **)&m->lk_attr, &m->lk_impl, &m->lk_process, m->lk_spare };
}

int lk_mutex_init(lk_mutex_t *m, lk_client_t *client, const char *name, const lk_mutexattr_t *attr)
{
    if (m == NULL)
        return lk__fail(EINVAL, "lk_mutex_init: no mutex was given");
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, lk__handle_init(lk__mutex_handle(m), &lk__mutex_type, client, name, attr));
}

int lk_mutex_destroy(lk_mutex_t *m)
{
    if (m == NULL)
        return lk__fail(EINVAL, "lk_mutex_destroy: no mutex was given");
    struct lk__apistate api = lk__api_enter();
    return lk__api_leave(&api, lk__handle_destroy(lk__mutex_handle(m)));
}

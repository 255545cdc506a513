/* SPDX-License-Identifier: MIT */
/* object.c - the table of the mutex: its keys and channels, and what goes with its attributes */
#include "lock/mutex.h"

_Static_assert(sizeof(lk_mutex_t) == 8 * sizeof(void *), "ABI");

static struct lk__mutex *mutex_of(struct lk__object *object)
{
    return LK__CONTAINER(object, struct lk__mutex, object);
}

static bool mutex_init(struct lk__object *object)
{
    struct lk__mutex *mutex = mutex_of(object);
    struct lk__mutexblock *block = lk__mutex_block(mutex);
    bool shared = object->client->options->redisson;
    lk__localqueue_init(&mutex->queue, &object->mu);
    block->release.flags = (object->traits.order != 0 ? LK__LOCK_FAIR : 0) |
                           (object->traits.robust ? LK__LOCK_ROBUST : 0) | (shared ? LK__LOCK_SHARED : 0);
    return lk__redissonwake_make(&mutex->redisson, object->client, block->release.channel, block->beside);
}

static void mutex_stop(struct lk__object *object)
{
    lk__redissonwake_stop(mutex_of(object)->redisson);
}

static void mutex_cancel(struct lk__object *object)
{
    lk__localqueue_cancel(&mutex_of(object)->queue);
}

static void mutex_destroy(struct lk__object *object)
{
    lk__localqueue_destroy(&mutex_of(object)->queue);
    lk__redissonwake_free(mutex_of(object)->redisson);
}

static struct lk__traits traits(const void *checked)
{
    const lk_mutexattr_t *attr = checked;
    return (struct lk__traits){ .order = (unsigned)attr->fair, .robust = attr->robust != 0 };
}

LK__ASK_QUEUE(lock)

static void read_waiter(lk_waiter_t *waiter)
{
    waiter->wants = LK_WANTS_LOCK;
}

#define AT(member) offsetof(struct lk__mutexblock, member)

static const struct lk__keyspec keys[] = {
    { AT(keys.mutex), NULL, LK__KEY_NAME, false },
    { AT(keys.token), "redisson_lock_token", LK__KEY_REDISSON, false },
    { AT(keys.queue), "latchkey:queue:mutex", LK__KEY_OURS, false },
    { AT(keys.alive), "latchkey:alive:mutex", LK__KEY_OURS, false },
    { AT(keys.mark), "latchkey:robust:mutex", LK__KEY_OURS, false },
    { AT(release.channel), "redisson_lock__channel", LK__KEY_REDISSON, false },
    { AT(renew.channel), NULL, LK__KEY_SAME, false },
    { AT(beside), LK__BESIDE "redisson_lock__channel", LK__KEY_REDISSON, true },
};

static const char *const settings[] = { "fair=no robust=no", "fair=no robust=yes", "fair=yes robust=no",
                                        "fair=yes robust=yes" };

const struct lk__kind lk__mutex_kind = {
    .number = LK_KIND_MUTEX,
    .noun = "mutex",
    .commands = lk__lua_lock_commands,
    .size = sizeof(struct lk__mutex),
    .block_size = sizeof(struct lk__mutexblock),
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .attr_size = sizeof(lk_mutexattr_t),
    .check = lk__mutexattr_check,
    .traits = traits,
    .settings_key = "latchkey:settings:mutex",
    .settings = settings,
    .holder = "holder",
    .check_script = &lk__lua_lock_check,
    .unlock_inner = lk__mutex_unlockinner,
    .ask_queue = ask_queue,
    .read_waiter = read_waiter,
    .init = mutex_init,
    .stop = mutex_stop,
    .cancel = mutex_cancel,
    .destroy = mutex_destroy,
};

LK__INIT_CALLS(mutex)
LK__HOLDER_CALLS(mutex)
LK__EXTEND_CALLS(mutex)
LK__CONSISTENT_CALLS(mutex)

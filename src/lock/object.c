/* SPDX-License-Identifier: MIT */
/* object.c - the keys and channels of a mutex, and its shell */
#include "lock/lock.h"
#include "lock/scripts.h"

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
    lk__release(mutex->strings);
    lk__release(mutex);
}

/* All keys and the channels, one after the other in one block. */
static int write_keys(struct lk__mutex *mutex, const char *full)
{
    size_t room = 6 * (strlen(full) + 64);
    char *at = mutex->strings = lk__alloc(room);
    if (at == NULL)
        return ENOMEM;
    mutex->keys[LK__KEY_NAME] = full;
    mutex->keys[LK__KEY_TOKEN] = at;
    at += lk__key_redisson(at, "redisson_lock_token", full) + 1;
    mutex->keys[LK__KEY_QUEUE] = at;
    at += lk__key_ours(at, "latchkey:queue:mutex", full) + 1;
    mutex->keys[LK__KEY_SEEN] = at;
    at += lk__key_ours(at, "latchkey:seen:mutex", full) + 1;
    mutex->keys[LK__KEY_MARK] = at;
    at += lk__key_ours(at, "latchkey:robust:mutex", full) + 1;
    mutex->channel = at;
    at += lk__key_redisson(at, "redisson_lock__channel", full) + 1;
    mutex->beside = at;
    at += sprintf(at, LK__BESIDE "%s", mutex->channel) + 1;
    assert((size_t)(at - mutex->strings) <= room);
    return 0;
}

struct lk__object *lk__mutex_make(lk_client_t *client, const char *full)
{
    struct lk__mutex *mutex = lk__alloc(sizeof *mutex);
    if (mutex == NULL || write_keys(mutex, full) != 0) {
        lk__release(mutex);
        return NULL;
    }
    lk__terms_of(&mutex->terms, client->options, true);
    mutex->object.stop = mutex_stop;
    mutex->object.free = mutex_free;
    lk__foreign_init(&mutex->foreign, client, mutex->channel, mutex->beside, false);
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

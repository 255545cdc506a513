/* SPDX-License-Identifier: MIT */
/* object.c - the keys of a read-write lock, and its shell */
#include "rwlock/rwlock.h"
#include "rwlock/scripts.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(lk_rwlock_t) == 8 * sizeof(void *), "ABI");

static void rwlock_stop(struct lk__object *object)
{
    (void)object; /* nothing of its own listens: grants come on the client's channel */
}

static void rwlock_free(struct lk__object *object)
{
    struct lk__rwlock *lock = LK__CONTAINER(object, struct lk__rwlock, object);
    lk__release(lock->strings);
    lk__release(lock);
}

/* All keys, one after the other in one block. */
static int write_keys(struct lk__rwlock *lock, const char *full)
{
    static const char *const ours[LK__RW_KEYS] = { [LK__RW_HOLDERS] = "latchkey:rw",
                                                   [LK__RW_QUEUE] = "latchkey:queue:rw",
                                                   [LK__RW_SEEN] = "latchkey:seen:rw",
                                                   [LK__RW_MARK] = "latchkey:robust:rw" };
    size_t room = LK__RW_KEYS * (strlen(full) + 64);
    char *at = lock->strings = lk__alloc(room);
    if (at == NULL)
        return ENOMEM;
    for (int i = 0; i < LK__RW_KEYS; i++) {
        lock->keys[i] = at;
        at +=
            (ours[i] != NULL ? lk__key_ours(at, ours[i], full) : lk__key_redisson(at, "redisson_lock_token", full)) + 1;
    }
    assert((size_t)(at - lock->strings) <= room);
    return 0;
}

static struct lk__object *make(lk_client_t *client, const char *full, int fair, bool robust)
{
    struct lk__rwlock *lock = lk__alloc(sizeof *lock);
    (void)fair, (void)robust;
    if (lock == NULL || write_keys(lock, full) != 0) {
        lk__release(lock);
        return NULL;
    }
    lk__terms_of(&lock->terms, client->options, true);
    lock->object.stop = rwlock_stop;
    lock->object.free = rwlock_free;
    return &lock->object;
}

static void traits(const void *checked, int *fair, bool *robust)
{
    const lk_rwlockattr_t *attr = checked;
    *fair = attr->prefer;
    *robust = attr->robust;
}

static const struct lk__shelltype rwlock_type = {
    .kind = LK_KIND_RWLOCK,
    .attr_size = sizeof(lk_rwlockattr_t),
    .commands = lk__lua_rwlock_commands,
    .make = make,
    .check = lk__rwlockattr_check,
    .traits = traits,
};

struct lk__shell lk__rwlock_shell(lk_rwlock_t *rw)
{
    return (struct lk__shell){ &rw->lk_name, (const void **)&rw->lk_attr, &rw->lk_impl, &rw->lk_process, rw->lk_spare };
}

int lk__rwlock_enter(lk_rwlock_t *rw, struct lk__frame *frame)
{
    return lk__rwlock_enterby(rw, LK__NEVER, frame);
}

int lk__rwlock_enterby(lk_rwlock_t *rw, int64_t limit_us, struct lk__frame *frame)
{
    if (rw == NULL)
        return lk__fail(EINVAL, "no read-write lock was given");
    return lk__frame_enterby(frame, lk__rwlock_shell(rw), &rwlock_type, limit_us);
}

int lk_rwlock_init(lk_rwlock_t *rw, lk_client_t *client, const char *name, const lk_rwlockattr_t *attr)
{
    if (rw == NULL)
        return lk__fail(EINVAL, "lk_rwlock_init: no read-write lock was given");
    struct lk__manners manners = lk__begin();
    return lk__end(&manners, lk__shell_init(lk__rwlock_shell(rw), &rwlock_type, client, name, attr));
}

int lk_rwlock_destroy(lk_rwlock_t *rw)
{
    if (rw == NULL)
        return lk__fail(EINVAL, "lk_rwlock_destroy: no read-write lock was given");
    struct lk__manners manners = lk__begin();
    return lk__end(&manners, lk__shell_destroy(lk__rwlock_shell(rw)));
}

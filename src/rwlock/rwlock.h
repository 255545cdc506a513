/* SPDX-License-Identifier: MIT */
/*
 * rwlock.h - the read-write lock
 *
 * acquire.c  becoming a holder          unlock.c   giving back, and from writing to reading
 * lock.c     rdlock, wrlock, try, timed hold.c     what a holder may ask and say
 * object.c   keys                       inspect.c  what anybody may ask and do
 *
 * A thread has at most one hold on a lock, and the server sees one, whatever was nested: hold->holds counts
 * how often it wrote, hold->reads how often it read. A hold with holds above 0 is a writer's.
 */
#ifndef LK__RWLOCK_H
#define LK__RWLOCK_H

#include "client/client.h"
#include "redis/keys.h"

#include <latchkey/rwlock.h>

enum lk__rwlockkey { LK__RW_HOLDERS, LK__RW_TOKEN, LK__RW_QUEUE, LK__RW_SEEN, LK__RW_MARK, LK__RW_KEYS };

/* Holes of downgrade.lua. */
enum { LK__DOWN_LEASE, LK__DOWN_DEADLINE, LK__DOWN_UNREPAIRED };

struct lk__rwlock {
    struct lk__object object;
    const char *keys[LK__RW_KEYS];
    struct lk__terms terms;
    char *strings; /* where the keys lie */
};

static inline struct lk__rwlock *lk__rwlock_of(const struct lk__frame *frame)
{
    return LK__CONTAINER(frame->object, struct lk__rwlock, object);
}

static inline const lk_rwlockattr_t *lk__rwlock_attr(const struct lk__frame *frame)
{
    return frame->attr;
}

static inline bool lk__rwlock_iswriter(const struct lk__hold *hold)
{
    return hold->holds > 0;
}

int lk__rwlock_enter(lk_rwlock_t *rw, struct lk__frame *frame); /* then lk__frame_leave() */
int lk__rwlock_enterby(lk_rwlock_t *rw, int64_t limit_us, struct lk__frame *frame);
struct lk__shell lk__rwlock_shell(lk_rwlock_t *rw);

int lk__rwlockattr_check(void *attr, const void *given);

/* Scripts know a lock by letters: t try only, r robust, j token shared with Redisson, R W whom it prefers. */
void lk__rwlock_letters(char letters[8], const struct lk__object *object, bool try_only);

/* Become a holder for the first time, within the limit. */
int lk__rwlock_acquire(const struct lk__frame *frame, bool write, int64_t limit_us);

#endif

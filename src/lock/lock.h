/* SPDX-License-Identifier: MIT */
/*
 * lock.h - the mutex
 *
 * acquire.c  becoming the holder        unlock.c   giving back
 * lock.c     lock, trylock, timedlock   hold.c     what a holder may ask and say
 * object.c   keys and channels          inspect.c  what anybody may ask and do
 */
#ifndef LK__LOCK_H
#define LK__LOCK_H

#include "client/client.h"
#include "redis/keys.h"

#include <latchkey/mutex.h>

enum lk__mutexkey { LK__KEY_NAME, LK__KEY_TOKEN, LK__KEY_QUEUE, LK__KEY_SEEN, LK__KEY_MARK, LK__KEYS };

/* Holes of nest.lua. */
enum { LK__NEST_HOLDS, LK__NEST_LEASE, LK__NEST_DEADLINE };

struct lk__mutex {
    struct lk__object object;
    const char *keys[LK__KEYS]; /* keys[0] is object.full */
    struct lk__terms terms;
    char *channel;              /* Redisson's */
    char *beside;               /* the channel of ours beside it */
    char *strings;              /* where the keys and the channels lie */
    struct lk__foreign foreign; /* Java's unlock wakes one of those who wait here */
};

static inline struct lk__mutex *lk__mutex_of(const struct lk__frame *frame)
{
    return LK__CONTAINER(frame->object, struct lk__mutex, object);
}

static inline const lk_mutexattr_t *lk__mutex_attr(const struct lk__frame *frame)
{
    return frame->attr;
}

int lk__mutex_enter(lk_mutex_t *m, struct lk__frame *frame); /* then lk__frame_leave() */
int lk__mutex_enterby(lk_mutex_t *m, int64_t limit_us, struct lk__frame *frame);
struct lk__shell lk__mutex_shell(lk_mutex_t *m);
extern const struct lk__shelltype lk__mutex_type;

int lk__mutexattr_check(void *attr, const void *given);
struct lk__object *lk__mutex_make(lk_client_t *client, const char *full);

/* Scripts know a mutex by letters: t try only, f fair, r robust, j shared with Redisson. */
void lk__mutex_letters(char letters[8], const struct lk__object *object, bool try_only);

/* Become the holder for the first time, within the limit. */
int lk__mutex_acquire(const struct lk__frame *frame, int64_t limit_us);

/* Tell the server that this hold now counts `holds`. 0, ESTALE, or why not. */
int lk__mutex_nest(const struct lk__frame *frame, struct lk__hold *hold, int holds);

#endif

/* SPDX-License-Identifier: MIT */
#include "guard.h"
#include "words.h"

#include <string.h>

enum { LATE_MS = 1000 }; /* a command of ours is with the server by then */

const char *mode_name(enum mode mode)
{
    static const char *const names[] = { "exclusive", "shared", "permit" };
    return names[mode];
}

/* The mutex and the read-write lock of the name, to be taken together, or one after the other as sets take them. */
static int make_pair(struct guard *g, const struct settings *s)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.fair = s->fair;
    attr.min_hold_ms = g->keep_ms = s->hold_ms;
    int rc = lk_mutex_init(&g->mutex, g->client, g->name, &attr);
    if (rc == 0)
        rc = lk_rwlock_init(&g->rwlock, g->client, g->name, NULL);
    if (rc != 0 || g->keep_ms != 0)
        return rc;
    rc = lk_multi_init(&g->pair);
    if (rc == 0)
        rc = lk_multi_addmutex(&g->pair, &g->mutex);
    return rc == 0 ? lk_multi_addwrite(&g->pair, &g->rwlock) : rc;
}

static int make_object(struct guard *g, const struct settings *s)
{
    lk_semattr_t sem = LK_SEMATTR_INIT;
    sem.leased = 1;
    if (g->mode == MODE_PERMIT)
        return lk_sem_init(&g->sem, g->client, g->name, s->permits, &sem);
    return g->mode == MODE_SHARED ? lk_rwlock_init(&g->rwlock, g->client, g->name, NULL) : make_pair(g, s);
}

int guard_open(struct guard *g, const struct settings *s, const char *name)
{
    *g = (struct guard){ .mode = s->mode, .name = name };
    int code = open_client(s, &g->client);
    if (code != 0)
        return code;
    int rc = make_object(g, s);
    if (rc == 0)
        rc = lk_owner_new(g->client, &g->owner);
    if (rc == 0)
        return 0;
    code = complain_of(s->command->name, rc);
    close_client(g->client);
    return code;
}

/* Has the server kept the mutex for this owner, for so long that nobody else takes it meanwhile? */
static bool is_kept(struct guard *g)
{
    char owner[96];
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    name_owner(g->client, g->owner, owner, sizeof owner);
    size_t length = strlen(owner);
    return length > 0 && lk_mutex_info(&g->mutex, &info) == 0 && info.held && info.remaining_ms > LATE_MS &&
           strncmp(info.holder, owner, length) == 0 && info.holder[length] == ':';
}

/* The mutex is of no use: it is not kept. One that was lost is another's by now. */
static void leave_mutex(struct guard *g)
{
    if (lk_mutex_unlockby(&g->mutex, g->owner) == 0 && g->keep_ms != 0 && is_kept(g))
        (void)!lk_mutex_forceunlock(&g->mutex);
}

/* With the read-write lock: the mutex may have been lost while that was waited for. */
static int check_mutex(struct guard *g)
{
    int64_t ms;
    int rc = lk_mutex_remainingby(&g->mutex, g->owner, &ms);
    if (rc != 0)
        (void)lk_rwlock_unlockby(&g->rwlock, g->owner);
    return rc;
}

/*
 * By hand, in the order of sets. A set takes no mutex that stays taken; and of two that are tried at once each may get what
 * the other one lacks, so that of those who do not wait nobody would have it.
 */
static int take_in_order(struct guard *g, const lk_how_t *how)
{
    lk_how_t rest = *how;
    int64_t began = boot_ms();
    int rc = lk_mutex_lockwith(&g->mutex, how);
    if (rc != 0)
        return rc;
    int64_t passed = boot_ms() - began;
    if (how->timeout_ms != LK_FOREVER)
        rest.timeout_ms = passed < how->timeout_ms ? how->timeout_ms - passed : 0;
    rc = lk_rwlock_wrlockwith(&g->rwlock, &rest);
    if (rc == 0)
        rc = check_mutex(g);
    if (rc != 0)
        leave_mutex(g);
    return rc;
}

int guard_take(struct guard *g, const lk_how_t *how)
{
    switch (g->mode) {
    case MODE_EXCLUSIVE:
        return g->keep_ms != 0 || how->timeout_ms == 0 ? take_in_order(g, how) : lk_multi_lockwith(&g->pair, how);
    case MODE_SHARED: return lk_rwlock_rdlockwith(&g->rwlock, how);
    case MODE_PERMIT: break;
    }
    return lk_sem_acquirewith(&g->sem, 1, how);
}

int guard_remaining(struct guard *g, int64_t *ms)
{
    int64_t mutex_ms = 0;
    if (g->mode == MODE_PERMIT)
        return lk_sem_remainingby(&g->sem, g->owner, ms);
    if (g->mode == MODE_EXCLUSIVE && g->keep_ms == 0)
        return lk_multi_remainingby(&g->pair, g->owner, ms);
    int rc = lk_rwlock_remainingby(&g->rwlock, g->owner, ms);
    if (rc != 0 || g->mode == MODE_SHARED)
        return rc;
    rc = lk_mutex_remainingby(&g->mutex, g->owner, &mutex_ms);
    if (rc == 0 && mutex_ms < *ms)
        *ms = mutex_ms;
    return rc;
}

/* Both objects of a name count their tokens together: the larger one is above all that anybody had before. */
int guard_token(struct guard *g, uint64_t *token)
{
    uint64_t other = 0;
    if (g->mode == MODE_PERMIT)
        return lk_sem_tokenby(&g->sem, g->owner, token);
    int rc = lk_rwlock_tokenby(&g->rwlock, g->owner, token);
    if (rc != 0 || g->mode == MODE_SHARED)
        return rc;
    rc = lk_mutex_tokenby(&g->mutex, g->owner, &other);
    if (rc == 0 && other > *token)
        *token = other;
    return rc;
}

int guard_release(struct guard *g)
{
    if (g->mode == MODE_PERMIT)
        return lk_sem_releaseby(&g->sem, g->owner, 1);
    if (g->mode == MODE_EXCLUSIVE && g->keep_ms == 0)
        return lk_multi_unlockby(&g->pair, g->owner);
    int rc = lk_rwlock_unlockby(&g->rwlock, g->owner);
    int mutex_rc = g->mode == MODE_EXCLUSIVE ? lk_mutex_unlockby(&g->mutex, g->owner) : 0;
    return mutex_rc != 0 ? mutex_rc : rc;
}

/* A mutex that was granted and not kept yet: closing alone would keep it. */
void guard_give_up(struct guard *g)
{
    if (g->mode == MODE_EXCLUSIVE && g->keep_ms != 0)
        leave_mutex(g);
    guard_close(g);
}

void guard_close(struct guard *g)
{
    close_client(g->client);
    g->client = NULL;
}

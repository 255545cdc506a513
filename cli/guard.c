/* SPDX-License-Identifier: MIT */
#include "guard.h"
#include "words.h"

const char *mode_name(enum mode mode)
{
    static const char *const names[] = { "exclusive", "shared", "permit" };
    return names[mode];
}

/* The same mutex once more: who locks it again by this handle keeps it for that time. */
static int make_kept(struct guard *g, const struct settings *s)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.fair = s->fair;
    attr.nested_local = 1;
    attr.min_hold_ms = s->hold_ms;
    g->keeps = true;
    return lk_mutex_init(&g->kept, g->client, g->name, &attr);
}

/* The mutex and the read-write lock of the name, to be taken together, or one after the other as sets take them. */
static int make_pair(struct guard *g, const struct settings *s)
{
    lk_mutexattr_t attr = LK_MUTEXATTR_INIT;
    attr.fair = s->fair;
    int rc = lk_mutex_init(&g->mutex, g->client, g->name, &attr);
    if (rc == 0 && s->hold_ms != 0)
        rc = make_kept(g, s);
    if (rc == 0)
        rc = lk_rwlock_init(&g->rwlock, g->client, g->name, NULL);
    if (rc == 0)
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

int guard_open(struct guard *g, struct settings *s, const char *name)
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
    guard_close(g);
    return code;
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
 * By hand, in the order of sets: of two that are tried at once each may get what the other one lacks, so that of those who
 * do not wait nobody would have it.
 */
static int try_in_order(struct guard *g, const lk_how_t *how)
{
    int rc = lk_mutex_lockwith(&g->mutex, how);
    if (rc != 0)
        return rc;
    rc = lk_rwlock_wrlockwith(&g->rwlock, how);
    if (rc == 0)
        rc = check_mutex(g);
    if (rc != 0)
        (void)lk_mutex_unlockby(&g->mutex, g->owner);
    return rc;
}

int guard_take(struct guard *g, const lk_how_t *how)
{
    switch (g->mode) {
    case MODE_EXCLUSIVE: return how->timeout_ms == 0 ? try_in_order(g, how) : lk_multi_lockwith(&g->pair, how);
    case MODE_SHARED: return lk_rwlock_rdlockwith(&g->rwlock, how);
    case MODE_PERMIT: break;
    }
    return lk_sem_acquirewith(&g->sem, 1, how);
}

/* Only now, as what gives the mutex back before this may be a signal, or a server that hears of it later. */
int guard_keep(struct guard *g)
{
    lk_how_t how = LK_HOW_INIT;
    how.owner = g->owner;
    int rc = g->keeps ? lk_mutex_lockwith(&g->kept, &how) : 0;
    g->kept_twice = g->keeps && rc == 0;
    return rc;
}

int guard_remaining(struct guard *g, int64_t *ms)
{
    switch (g->mode) {
    case MODE_EXCLUSIVE: return lk_multi_remainingby(&g->pair, g->owner, ms);
    case MODE_SHARED: return lk_rwlock_remainingby(&g->rwlock, g->owner, ms);
    case MODE_PERMIT: break;
    }
    return lk_sem_remainingby(&g->sem, g->owner, ms);
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

int guard_release(struct guard *g, bool lost)
{
    int rc = g->kept_twice ? lk_mutex_unlockby(&g->kept, g->owner) : 0; /* what is wrong the other level says, too */
    if (lost && (rc == EIO || rc == ENOTCONN))
        return rc; /* what was lost is worth one wait for a silent server */
    switch (g->mode) {
    case MODE_EXCLUSIVE: return lk_multi_unlockby(&g->pair, g->owner);
    case MODE_SHARED: return lk_rwlock_unlockby(&g->rwlock, g->owner);
    case MODE_PERMIT: break;
    }
    return lk_sem_releaseby(&g->sem, g->owner, 1);
}

void guard_cancel(struct guard *g)
{
    close_client(g->client);
    g->client = NULL;
}

void guard_leave(struct guard *g)
{
    lk_owner_free(g->owner);
    lk_multi_destroy(&g->pair);
    lk_sem_destroy(&g->sem);
    lk_rwlock_destroy(&g->rwlock);
    lk_mutex_destroy(&g->kept);
    lk_mutex_destroy(&g->mutex);
}

void guard_close(struct guard *g)
{
    guard_cancel(g);
    guard_leave(g);
}

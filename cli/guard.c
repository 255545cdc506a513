/* SPDX-License-Identifier: MIT */
#include "guard.h"
#include "words.h"

const char *mode_name(enum mode mode)
{
    static const char *const names[] = { "mutex", "write", "read", "permit" };
    return names[mode];
}

static int make_object(struct guard *g, const struct settings *s)
{
    lk_mutexattr_t mutex = LK_MUTEXATTR_INIT;
    lk_semattr_t sem = LK_SEMATTR_INIT;
    mutex.fair = s->fair;
    mutex.min_hold_ms = s->hold_ms;
    sem.leased = 1;
    if (g->mode == MODE_MUTEX)
        return lk_mutex_init(&g->mutex, g->client, g->name, &mutex);
    if (g->mode == MODE_PERMIT)
        return lk_sem_init(&g->sem, g->client, g->name, s->permits, &sem);
    return lk_rwlock_init(&g->rwlock, g->client, g->name, NULL);
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

int guard_take(struct guard *g, const lk_how_t *how)
{
    switch (g->mode) {
    case MODE_MUTEX: return lk_mutex_lockwith(&g->mutex, how);
    case MODE_WRITE: return lk_rwlock_wrlockwith(&g->rwlock, how);
    case MODE_READ: return lk_rwlock_rdlockwith(&g->rwlock, how);
    case MODE_PERMIT: break;
    }
    return lk_sem_acquirewith(&g->sem, 1, how);
}

int guard_remaining(struct guard *g, int64_t *ms)
{
    if (g->mode == MODE_MUTEX)
        return lk_mutex_remainingby(&g->mutex, g->owner, ms);
    return g->mode == MODE_PERMIT ? lk_sem_remainingby(&g->sem, g->owner, ms) :
                                    lk_rwlock_remainingby(&g->rwlock, g->owner, ms);
}

int guard_token(struct guard *g, uint64_t *token)
{
    if (g->mode == MODE_MUTEX)
        return lk_mutex_tokenby(&g->mutex, g->owner, token);
    return g->mode == MODE_PERMIT ? lk_sem_tokenby(&g->sem, g->owner, token) :
                                    lk_rwlock_tokenby(&g->rwlock, g->owner, token);
}

int guard_release(struct guard *g)
{
    if (g->mode == MODE_MUTEX)
        return lk_mutex_unlockby(&g->mutex, g->owner);
    return g->mode == MODE_PERMIT ? lk_sem_releaseby(&g->sem, g->owner, 1) : lk_rwlock_unlockby(&g->rwlock, g->owner);
}

void guard_close(struct guard *g)
{
    close_client(g->client);
    g->client = NULL;
}

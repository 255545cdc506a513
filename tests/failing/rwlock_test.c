/* SPDX-License-Identifier: MIT */
/*
 * rwlock_test.c - every allocation and every system call on the way of a read-write lock fails
 *
 * labels: memory
 * simulated: yes
 * seconds: 61
 * processors: 2
 * support: failing
 */
#include "failing/failing.h"

static lk_client_t *client;
static lk_rwlock_t *rw;

static void begin(struct world *w)
{
    client = world_client(w, failing_options());
    rw = world_rwlock(w, client, "rw", NULL);
}

/* It works again, and all is given back. */
static void end(struct world *w)
{
    failing_end();
    assert_lk(0, lk_rwlock_wrlockfor(rw, FAILING_LONG_MS));
    assert_lk(0, lk_rwlock_unlock(rw));
    world_close(w, client);
}

/* A hold that was lost meanwhile is no failure of the release. */
static void give(void)
{
    tried(0, lk_rwlock_unlock(rw), UNREACHABLE, ESTALE);
}

static void read_and_write(struct world *w)
{
    lk_rwlockinfo_t info = LK_RWLOCKINFO_INIT;
    lk_waiter_t waiters[2];
    unsigned count;
    begin(w);
    failing_begin();
    if (tried(0, lk_rwlock_rdlockfor(rw, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0) {
        if (tried(0, lk_rwlock_rdlockfor(rw, failing_patience_ms()), ESTALE) == 0)
            give();
        tried(0, lk_rwlock_check(rw), ENOMEM, UNREACHABLE, ESTALE);
        tried(0, lk_rwlock_extend(rw, FAILING_LEASE_MS), UNREACHABLE, ESTALE);
        give();
    }
    tried(0, lk_rwlock_info(rw, &info), ENOMEM, UNREACHABLE);
    tried(0, lk_rwlock_queue(rw, waiters, sizeof(lk_waiter_t), 2, &count), ENOMEM, UNREACHABLE);
    end(w);
}

static void write_and_downgrade(struct world *w)
{
    begin(w);
    failing_begin();
    if (tried(0, lk_rwlock_wrlockfor(rw, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0) {
        tried(0, lk_rwlock_downgrade(rw), UNREACHABLE, ESTALE);
        give();
    }
    end(w);
}

/* Its owner can be freed whatever failed. */
static void read_for_an_owner(struct world *w)
{
    lk_how_t how = { .size = sizeof how, .lease_ms = FAILING_LEASE_MS };
    begin(w);
    assert_lk(0, lk_owner_new(client, &how.owner));
    failing_begin();
    how.timeout_ms = failing_patience_ms();
    if (tried(0, lk_rwlock_wrlockwith(rw, &how), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0) {
        if (tried(0, lk_rwlock_rdlockwith(rw, &how), ESTALE) == 0)
            tried(0, lk_rwlock_unlockby(rw, how.owner), ESTALE);
        tried(0, lk_rwlock_downgradeby(rw, how.owner), UNREACHABLE, ESTALE);
        tried(0, lk_rwlock_extendby(rw, how.owner, FAILING_LEASE_MS), UNREACHABLE, ESTALE);
        tried(0, lk_rwlock_unlockby(rw, how.owner), UNREACHABLE, ESTALE);
    }
    failing_end();
    assert_lk(0, lk_owner_free(how.owner));
    end(w);
}

static void all_of(struct world *w, enum failing kind)
{
    each_failure(w, "reading", kind, read_and_write);
    each_failure(w, "writing", kind, write_and_downgrade);
    each_failure(w, "owner", kind, read_for_an_owner);
}

int main(void)
{
    return all_failures(all_of);
}

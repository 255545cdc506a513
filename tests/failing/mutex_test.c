/* SPDX-License-Identifier: MIT */
/*
 * mutex_test.c - every allocation and every system call on the way of a mutex fails: never held unknown to the
 * caller, never lost, nothing left
 *
 * labels: memory
 * simulated: yes
 * seconds: 33
 * processors: 2
 * support: failing
 */
#include "failing/failing.h"

static lk_client_t *client;
static lk_mutex_t *m;

static void begin(struct world *w)
{
    client = world_client(w, failing_options());
    m = world_mutex(w, client, "m", NULL);
}

/* It works again, and all is given back. */
static void end(struct world *w)
{
    failing_end();
    assert_lk(0, lk_mutex_lockfor(m, FAILING_LONG_MS));
    assert_lk(0, lk_mutex_unlock(m));
    world_close(w, client);
}

static int take(int64_t limit_ms)
{
    return tried(0, lk_mutex_lockfor(m, limit_ms), ENOMEM, UNREACHABLE, ETIMEDOUT);
}

/* A hold that was lost meanwhile is no failure of the release. */
static void give(void)
{
    tried(0, lk_mutex_unlock(m), UNREACHABLE, ESTALE);
}

static void lock_and_look(struct world *w)
{
    lk_mutex_t another;
    begin(w);
    failing_begin();
    if (tried(0, lk_mutex_init(&another, client, "another", NULL), ENOMEM) == 0)
        tried(0, lk_mutex_destroy(&another));
    if (take(failing_patience_ms()) == 0) {
        assert_that(spared(world_holds(w, "m")) == 1);
        give();
    }
    end(w);
}

/* Made and used for an owner: the owner can be freed whatever failed. */
static void lock_for_an_owner(struct world *w)
{
    lk_how_t how = { .size = sizeof how, .lease_ms = FAILING_LEASE_MS };
    begin(w);
    failing_begin();
    how.timeout_ms = failing_patience_ms();
    if (tried(0, lk_owner_new(client, &how.owner), ENOMEM) == 0) {
        if (tried(0, lk_mutex_lockwith(m, &how), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0) {
            tried(0, lk_mutex_checkby(m, how.owner), ENOMEM, UNREACHABLE, ESTALE);
            tried(0, lk_mutex_unlockby(m, how.owner), UNREACHABLE, ESTALE);
        }
        failing_end();
        assert_lk(0, lk_owner_free(how.owner));
    }
    end(w);
}

static void lock_twice(struct world *w)
{
    begin(w);
    assert_lk(0, lk_mutex_lock(m));
    failing_begin();
    int rc = tried(0, lk_mutex_lockfor(m, failing_patience_ms()), UNREACHABLE, ESTALE);
    if (rc == 0)
        give();
    failing_end();
    tried(0, lk_mutex_unlock(m), UNREACHABLE, ESTALE);
    end(w);
}

static void extend_and_look(struct world *w)
{
    lk_mutexinfo_t info = LK_MUTEXINFO_INIT;
    lk_waiter_t waiters[2];
    unsigned count;
    int64_t left_ms;
    uint64_t token;
    begin(w);
    assert_lk(0, lk_mutex_lock(m));
    eventually(lk_mutex_extend(m, FAILING_LEASE_MS) == 0, FAILING_LONG_MS); /* the watchdog has its connection */
    failing_begin();
    tried(0, lk_mutex_extend(m, FAILING_LEASE_MS), UNREACHABLE, ESTALE);
    tried(0, lk_mutex_check(m), ENOMEM, UNREACHABLE, ESTALE);
    tried(0, lk_mutex_info(m, &info), ENOMEM, UNREACHABLE);
    tried(0, lk_mutex_queue(m, waiters, sizeof(lk_waiter_t), 2, &count), ENOMEM, UNREACHABLE);
    tried(0, lk_mutex_token(m, &token), ESTALE);
    tried(0, lk_mutex_remaining(m, &left_ms), ESTALE);
    give();
    end(w);
}

/* By an operator's word, who is the holder: once it was obeyed, nothing is held. */
static void force(struct world *w)
{
    begin(w);
    assert_lk(0, lk_mutex_lock(m));
    failing_begin();
    int rc = tried(0, lk_mutex_forceunlock(m), ENOMEM, UNREACHABLE);
    assert_that(rc != 0 || spared(world_holds(w, "m")) <= 0);
    tried(rc == 0 ? ESTALE : 0, lk_mutex_unlock(m), UNREACHABLE, ESTALE, 0);
    end(w);
}

static void close_while_holding(struct world *w)
{
    begin(w);
    assert_lk(0, lk_mutex_lock(m));
    failing_begin();
    tried(0, close_by_hand(w, client), EIO);
    failing_end();
    world_close(w, m);
}

static void all_of(struct world *w, enum failing kind)
{
    each_failure(w, "lock", kind, lock_and_look);
    each_failure(w, "owner", kind, lock_for_an_owner);
    each_failure(w, "nested", kind, lock_twice);
    each_failure(w, "extend", kind, extend_and_look);
    each_failure(w, "force", kind, force);
    each_failure(w, "close", kind, close_while_holding);
}

int main(void)
{
    return all_failures(all_of);
}

/* SPDX-License-Identifier: MIT */
/*
 * rwlock_wait_test.c - every allocation and every system call fails while a read-write lock is waited for
 *
 * labels: memory
 * seconds: 33
 * processors: 2
 * support: failing
 */
#include "failing/failing.h"

#define LEASE_MS FAILING_LEASE_MS
#define LONG_MS (LEASE_MS + 3000)
#define UNREACHABLE ENOTCONN, EIO

static lk_client_t *client, *other;
static lk_rwlock_t rw, theirs;

static void begin(struct world *w)
{
    client = world_open(w, failing_options());
    assert_lk(0, lk_rwlock_init(&rw, client, "rw", NULL));
}

/* It works again, and all is given back. */
static void end(void)
{
    failing_end();
    assert_lk(0, lk_rwlock_wrlockfor(&rw, LONG_MS));
    assert_lk(0, lk_rwlock_unlock(&rw));
    assert_lk(0, lk_rwlock_destroy(&rw));
    assert_lk(0, lk_client_close(client));
}

/* A hold that was lost meanwhile is no failure of the release. */
static void give(void)
{
    tried(0, lk_rwlock_unlock(&rw), UNREACHABLE, ESTALE);
}

static int take_theirs(void)
{
    return lk_rwlock_wrlock(&theirs);
}

static int give_theirs(void)
{
    return lk_rwlock_unlock(&theirs);
}

static void wait_for_a_writer(struct world *w)
{
    struct rival rival;
    begin(w);
    rival_start(&rival, take_theirs, give_theirs, 20);
    failing_begin();
    if (tried(0, lk_rwlock_rdlockfor(&rw, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0)
        give();
    failing_end();
    rival_end(&rival);
    end();
}

static void wait_in_vain(struct world *w)
{
    begin(w);
    assert_lk(0, lk_rwlock_rdlock(&theirs));
    failing_begin();
    tried(ETIMEDOUT, lk_rwlock_wrlockfor(&rw, 15), ENOMEM, UNREACHABLE);
    failing_end();
    assert_lk(0, lk_rwlock_unlock(&theirs));
    end();
}

static void all_of(struct world *w, enum failing kind)
{
    other = world_open(w, "lease=20s");
    assert_lk(0, lk_rwlock_init(&theirs, other, "rw", NULL));
    each_failure(w, "grant", kind, LEASE_MS, wait_for_a_writer);
    each_failure(w, "timeout", kind, LEASE_MS, wait_in_vain);
    assert_lk(0, lk_rwlock_destroy(&theirs));
    assert_lk(0, lk_client_close(other));
}

int main(void)
{
    return all_failures(all_of);
}

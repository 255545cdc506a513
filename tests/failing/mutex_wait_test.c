/* SPDX-License-Identifier: MIT */
/*
 * mutex_wait_test.c - every allocation and every system call fails while a mutex is waited for: the wait ends in its
 * time, and a grant is taken or goes on to the next one
 *
 * labels: memory
 * seconds: 52
 * processors: 2
 * support: failing
 */
#include "failing/failing.h"

#define LEASE_MS FAILING_LEASE_MS
#define LONG_MS (LEASE_MS + 3000)
#define UNREACHABLE ENOTCONN, EIO

static lk_client_t *client, *other;
static lk_mutex_t m, theirs;
static int fair;

static void begin(struct world *w)
{
    client = world_open(w, failing_options());
    assert_lk(0, lk_mutex_init(&m, client, "m", &(lk_mutexattr_t){ .size = sizeof(lk_mutexattr_t), .fair = fair }));
}

/* It works again, and all is given back. */
static void end(void)
{
    failing_end();
    assert_lk(0, lk_mutex_lockfor(&m, LONG_MS));
    assert_lk(0, lk_mutex_unlock(&m));
    assert_lk(0, lk_mutex_destroy(&m));
    assert_lk(0, lk_client_close(client));
}

/* A hold that was lost meanwhile is no failure of the release. */
static void give(void)
{
    tried(0, lk_mutex_unlock(&m), UNREACHABLE, ESTALE);
}

static int take_theirs(void)
{
    return lk_mutex_lock(&theirs);
}

static int give_theirs(void)
{
    return lk_mutex_unlock(&theirs);
}

static void wait_for_a_grant(struct world *w)
{
    struct rival rival;
    begin(w);
    rival_start(&rival, take_theirs, give_theirs, 20);
    failing_begin();
    if (tried(0, lk_mutex_lockfor(&m, failing_patience_ms()), ENOMEM, UNREACHABLE, ETIMEDOUT) == 0) {
        assert_that(spared(world_holds(w, "m")) == 1);
        give();
    }
    failing_end();
    rival_end(&rival);
    end();
}

static void wait_in_vain(struct world *w)
{
    begin(w);
    assert_lk(0, lk_mutex_lock(&theirs));
    failing_begin();
    tried(ETIMEDOUT, lk_mutex_lockfor(&m, 15), ENOMEM, UNREACHABLE);
    failing_end();
    assert_lk(0, lk_mutex_unlock(&theirs));
    end();
}

static void with_a_rival(struct world *w, const char *name, enum failing kind, void (*scenario)(struct world *w))
{
    other = world_open(w, "lease=20s");
    assert_lk(0, lk_mutex_init(&theirs, other, "m", &(lk_mutexattr_t){ .size = sizeof(lk_mutexattr_t), .fair = fair }));
    each_failure(w, name, kind, LEASE_MS, scenario);
    assert_lk(0, lk_mutex_destroy(&theirs));
    assert_lk(0, lk_client_close(other));
}

static void all_of(struct world *w, enum failing kind)
{
    fair = 0;
    with_a_rival(w, "grant", kind, wait_for_a_grant);
    with_a_rival(w, "timeout", kind, wait_in_vain);
    fair = 1;
    with_a_rival(w, "fair grant", kind, wait_for_a_grant);
}

int main(void)
{
    return all_failures(all_of);
}
